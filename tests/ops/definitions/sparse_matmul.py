"""Building blocks of sparse matrix products."""

from tests.ops.op_db import A, S, row
from torchlite._dispatch import REGISTRY, function_for


def index(count, high):
    return A((count,), low=0, high=high, dtype="int64")


def _starts(rows):
    """Start index of each of six rows among sorted row numbers."""
    return function_for(REGISTRY["searchsorted"])(rows, rows.new_tensor(range(7)))


def _times(rows, columns, values, dense):
    starts = _starts(rows.sort().values)
    return function_for(REGISTRY["_csr_mm"])(columns, starts, values, dense)


def _times_in_torch(torch, rows, columns, values, dense):
    out = torch.zeros(6, dense.shape[1], dtype=dense.dtype)
    return out.index_add(0, rows.sort().values, dense[columns] * values.unsqueeze(1))


row(
    "_csr_mm",
    S(index(11, 6), index(11, 5), (11,), (5, 3)),
    S(index(11, 6), index(11, 5), (11,), (5, 1)),
    S(index(500, 6), index(500, 9), (500,), (9, 2)),
    S(index(9, 6), index(9, 5), A((9,), dtype="complex128"), A((5, 2), dtype="complex128")),
    S(index(0, 6), index(0, 5), (0,), (5, 3)),
    S(index(40, 6), index(40, 5), (40,), (5, 70)),
    call=_times,
    oracle=_times_in_torch,
    meta=False,
)


def _extremes(rows, columns, values, dense, largest):
    starts = _starts(rows.sort().values)
    return function_for(REGISTRY["_csr_mm_extremes"])(columns, starts, values, dense, largest)


def _extremes_in_torch(torch, rows, columns, values, dense, largest):
    rows, terms = rows.sort().values, dense[columns] * values.unsqueeze(1)
    out = torch.full((6, dense.shape[1]), rows.shape[0])
    for number in rows.unique().tolist():
        first = int((rows < number).sum())
        of_row = terms[rows == number]
        out[number] = first + (of_row.argmax(0) if largest else of_row.argmin(0))
    return out


row(
    "_csr_mm_extremes",
    S(index(11, 6), index(11, 5), (11,), (5, 3), True),
    S(index(11, 6), index(11, 5), (11,), (5, 1), False),
    S(index(500, 6), index(500, 9), (500,), (9, 2), False),
    S(index(0, 6), index(0, 5), (0,), (5, 3), True),
    S(index(40, 6), index(40, 5), (40,), (5, 70), True),
    call=_extremes,
    oracle=_extremes_in_torch,
    grad=False,
    meta=False,
)
row(
    "_sampled_mm",
    S(index(7, 4), index(7, 5), (4, 3), (5, 3)),
    S(index(7, 4), index(7, 5), (4, 40), (5, 40)),
    S(index(7, 4), index(7, 5), A((4, 3), dtype="complex128"), A((5, 3), dtype="complex128")),
    S(index(0, 4), index(0, 5), (4, 3), (5, 3)),
    oracle=lambda torch, rows, columns, left, right: (left[rows] * right[columns]).sum(1),
    call=lambda *arguments: function_for(REGISTRY["_sampled_mm"])(*arguments),
    meta=False,
)
row(
    "_stable_argsort_rows",
    S(index(11, 6), 6),
    S(index(500, 70000), 70001),
    S(index(0, 6), 6),
    oracle=lambda torch, rows, size: (
        rows.sort(stable=True).indices,
        torch.searchsorted(rows.sort().values, torch.arange(size + 1)),
    ),
    call=lambda *arguments: tuple(function_for(REGISTRY["_stable_argsort_rows"])(*arguments)),
    grad=False,
    meta=False,
)
