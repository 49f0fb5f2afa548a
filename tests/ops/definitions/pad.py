"""Padding."""

from tests.ops.op_db import A, S, row

row(
    "constant_pad_nd",
    S((2, 3), (1, 2)),
    S((2, 3), (1, 0, 2, -1), 1.5),
    S((), ()),
    S((0, 3), (1, 1, 1, 1)),
    S(A((2, 3), dtype="bool"), (1, 1), True),
)
row(
    "pad",
    S((2, 3), (1, 2)),
    S((2, 3), (-1, 0, 1, 1), value=2.5),
    S((2, 3, 4), (2, 3), mode="reflect"),
    S((2, 3, 4), (5, 1, 2, 3), mode="replicate"),
    S((2, 3, 4), (4, 1, -1, 2), mode="circular"),
    S((1, 2, 3, 4, 3), (1, 2, 1, 1, 2, 1), mode="reflect"),
    S((2, 4), (-1, 2), mode="replicate"),
    covers=("_pad_border", "_pad_border_backward"),
)
