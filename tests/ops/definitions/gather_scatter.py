"""Reading and writing by index."""

import torchlite as torch
from tests.ops.op_db import A, S, row


def index(*shape, high=3, low=0):
    return A(shape, low=low, high=high, dtype="int64")


def mask(*shape):
    return A(shape, dtype="bool")


ROWS = index(4)
row(
    "_index",
    S((4, 5), (index(3, 2), index(2))),
    S((4, 5), (mask(4),)),
    oracle=lambda torch, x, at: x[at],
    covers=("_index_backward",),
    meta=False,
)
row(
    "_slice_index",
    S((4, 5), (1, slice(1, 4))),
    S((4, 5), (..., None, 2)),
    oracle=lambda torch, x, at: x[at],
    covers=("_slice_index_backward",),
    meta=False,
)


def _assigned(torch, x, at, value):
    out = x.clone()
    out[at] = value
    return out


row(
    "_setitem",
    S((4, 5), (slice(1, 3),), (2, 5)),
    S((4, 5), (1, 2), 3.0),
    S((4, 5), (A((2,), low=0, high=2, dtype="int64"),), 2.0),
    oracle=_assigned,
    meta=False,
)
row("masked_select", S((3, 4), mask(3, 4)), S((3, 4), mask(4)), S((), mask(2)), meta=False)
row(
    "masked_fill",
    S((3, 4), mask(3, 4), 2.5),
    S((3, 4), mask(3, 1), ()),
    S(index(3), mask(3), 7),
    S((3,), mask(2, 3), -7.0),
    covers=("_masked_fill", "_masked_fill_tensor"),
)
row("masked_scatter", S((3, 4), mask(3, 4), (12,)), S((3, 4), mask(4), (3, 4)))
row("take", S((3, 4), index(2, 2, low=-12, high=12)), S((3,), index(5)))
row(
    "put",
    S((3, 4), index(1, low=-12, high=12), (1,)),
    S((3, 4), index(6, high=12), (6,), True),
    oracle=lambda torch, x, at, src, *a: x.put(at, src, *a),
)
row("take_along_dim", S((3, 4), index(3, 2), 1), S((3, 4), index(1, 4), 0), S((3, 4), index(5, high=12)))
row("gather", S((3, 4), 1, index(3, 2)), S((3, 4), 0, index(5, 2)), S((), 0, index(high=1)), S((3, 4), 1, index(0, 2)))
UNIQUE = S((3, 4), 0, A((1, 4), low=0, high=3, dtype="int64"), (1, 4))
row(
    "scatter",
    UNIQUE,
    S((3, 4), 1, index(3, 1), 2.5),
    S((3, 4), 1, index(3, 1), value=1.5),
    S((3, 4), 0, A((1, 2), low=0, high=3, dtype="int64"), (1, 2)),
)
row("scatter_add", S((3, 4), 0, index(5, 4), (5, 4)), S((3, 4), 1, index(2, 3), (2, 3)), S((3,), 0, index(6), (6,)))
row(
    "scatter_reduce",
    *(
        S((3, 4), 0, index(5, 4), (5, 4), how, include_self=own)
        for how in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    ),
)
row("index_select", S((3, 4), 0, ROWS), S((3, 4), -1, index(2)), S((2, 3, 2), 1, index(0)))
row("index_add", S((3, 4), 0, ROWS, (4, 4)), S((3, 4), 1, index(2), (3, 2), alpha=2.0), S((3,), 0, ROWS, (4,)))
row("index_copy", S((3, 4), 0, index(1), (1, 4)), S((3, 4), 1, index(1), (3, 1)))
row("index_fill", S((3, 4), 0, ROWS, 2.0), S((3, 4), 1, index(2), ()), S((3, 4), 1, index(2, low=-3), 1.0))
row(
    "index_reduce",
    *(
        S((3, 4), 0, ROWS, (4, 4), how, include_self=own)
        for how in ("prod", "mean", "amax", "amin")
        for own in (True, False)
    ),
    meta=False,
)
row(
    "index_put",
    S((3, 4), [index(2), index(2)], (2,), True),
    S((3, 4), [mask(3)], ()),
    S((3, 4), [index(1)], (4,)),
    covers=("_index_put",),
    meta=False,
    oracle=lambda torch, x, at, value, *a: torch.index_put(x, tuple(at), value, *a),
)
row(
    "repeat_interleave",
    S((2, 3), 2),
    S((2, 3), 2, 1),
    S((2, 3), index(3), 1),
    S(index(4)),
    meta=False,
    covers=("_repeat_interleave_indices",),
)
row("slice_scatter", S((5, 2), (2, 2), 0, 1, 5, 2), S((2, 4), (2, 4), 1))
row("select_scatter", S((3, 4), (4,), 0, 1), S((3, 4), (3,), 1, -1))
row("diagonal_scatter", S((3, 4), (3,)), S((3, 4), (2,), 2))
row("as_strided_scatter", S((4, 3), (2, 2), (2, 2), (3, 1), 1), noncontiguous=False, meta=False)
row("unravel_index", S(index(3, high=12), (3, 4)))


def _in_place(name):
    def run(torch, x, *args):
        out = x.clone()
        getattr(out, name)(*args)
        return out

    return run


row(
    "copy_",
    S((3, 4), A((4,))),
    S((3, 4), A((3, 1), dtype="int64")),
    oracle=_in_place("copy_"),
    covers=("_copy",),
    meta=False,
)
row("fill_", S((3, 4), 2.5), S((3, 4), A(())), oracle=_in_place("fill_"), covers=("_fill",), meta=False)
row("zero_", S((3, 4)), oracle=_in_place("zero_"), meta=False)
row(
    "fill_diagonal_",
    S((4, 2), 1.5),
    S((7, 2), 1.5, True),
    oracle=_in_place("fill_diagonal_"),
    covers=("_fill_diagonal",),
    meta=False,
)
# These keep elements by their place in memory, which is the order of rows in the clone.
row(
    "resize_",
    S((3, 4), 2, 3),
    call=lambda x, *size: x.clone(memory_format=torch.contiguous_format).resize_(size),
    oracle=lambda torch, x, *size: x.detach().clone().resize_(size),
    grad=False,
    meta=False,
)
row(
    "resize_as_",
    S((3, 4), (2, 3)),
    call=lambda x, like: x.clone(memory_format=torch.contiguous_format).resize_as_(like),
    oracle=lambda torch, x, like: x.detach().clone().resize_as_(like),
    grad=False,
    meta=False,
)
row(
    "set_",
    S((3, 4), A((2, 3))),
    oracle=lambda torch, x, other: x.detach().clone().set_(other.detach()),
    grad=False,
    meta=False,
    covers=("_set",),
)
row(
    "equal",
    S((3, 4), (3, 4)),
    S(index(1, high=1), index(1, high=1)),
    oracle=lambda torch, a, b: torch.tensor(torch.equal(a, b)),
    grad=False,
    meta=False,
    covers=("_equal",),
)
for _name, _args in {
    "transpose_": (0, 1),
    "swapaxes_": (0, 1),
    "swapdims_": (1, 0),
    "unsqueeze_": (1,),
    "t_": (),
    "squeeze_": (),
}.items():
    row(_name, S((3, 4), *_args), oracle=_in_place(_name), meta=False)
row(
    "as_strided_",
    S((3, 4), (2, 2), (4, 1), 1),
    oracle=_in_place("as_strided_"),
    covers=("_restride_",),
    meta=False,
    noncontiguous=False,
)
row("detach", S((3, 4)), grad=False)
row("detach_", S((3, 4)), oracle=lambda torch, x: torch.detach_(x * 1), grad=False)
row("detach_copy", S((3, 4)), grad=False)
row("is_nonzero", S(()), oracle=lambda torch, x: torch.tensor(x.is_nonzero()), grad=False, meta=False)
row(
    "is_same_size",
    S((3, 4), A((4,))),
    oracle=lambda torch, a, b: torch.tensor(a.is_same_size(b)),
    grad=False,
    meta=False,
)
row(
    "is_set_to",
    S((3, 4)),
    oracle=lambda torch, x: torch.tensor([x.is_set_to(x.view(3, 4)), x.is_set_to(x[:2])]),
    grad=False,
    meta=False,
    noncontiguous=False,
)
row(
    "map2_",
    S((3, 4), A((4,)), A(())),
    oracle=lambda torch, x, y, z: x.detach().clone().map2_(y.detach(), z.detach(), lambda a, b, c: a + 2 * b * c),
    grad=False,
    meta=False,
)
row(
    "map_",
    S((3, 4), A((4,))),
    oracle=lambda torch, x, y: x.detach().clone().map_(y.detach(), lambda a, b: a + 2 * b),
    grad=False,
    meta=False,
)
