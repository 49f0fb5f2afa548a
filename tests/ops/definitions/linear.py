"""Linear layers."""

from tests.ops.op_db import S, row

row(
    "linear",
    S((3, 4), (5, 4)),
    S((3, 4), (5, 4), (5,)),
    S((2, 3, 4), (5, 4), (5,)),
    S((4,), (5, 4), (5,)),
    S((3, 4), (4,)),
    covers=("_linear_weight_grad", "_linear_bias_grad", "_linear_input_grad"),
)
row("bilinear", S((3, 2), (3, 4), (5, 2, 4)), S((2, 3, 2), (2, 3, 4), (5, 2, 4), (5,)))
