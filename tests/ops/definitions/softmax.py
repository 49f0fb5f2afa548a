"""softmax and log_softmax."""

from tests.ops.op_db import A, S, row
from torchlite._dispatch import F

SAMPLES = (S((3, 4), 1), S((3, 4), 0), S((2, 3, 4), -2), S((), 0), S((0, 3), 1))
row("softmax", *SAMPLES, covers=("_softmax", "_softmax_backward"))
row("log_softmax", *SAMPLES, covers=("_log_softmax", "_log_softmax_backward"))
row(
    "_safe_softmax",
    S((3, 4), 1),
    S((2, 3, 4), 0),
    oracle=lambda torch, x, dim: torch._safe_softmax(x, dim) if torch.__name__ == "torch" else F._safe_softmax(x, dim),
)
row(
    "_masked_softmax",
    S((2, 4), A((2, 4), dtype="bool"), 1, 2),
    S((2, 3, 4, 4), A((4, 4), dtype="bool"), 3, 0),
    grad=False,
)
