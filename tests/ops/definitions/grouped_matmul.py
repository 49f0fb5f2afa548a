"""Products of groups of matrices."""

from tests.ops.op_db import A, S, row

GROUPS = A((4,), dtype="int32", low=2, high=2)


def _grouped_mm(torch, input, mat2, sizes=None):
    """PyTorch has no float64 here; the groups' sizes stand for their ends."""
    ends = None if sizes is None else sizes.cumsum(0).to(torch.int32)
    return torch._grouped_mm(input.to(torch.float32), mat2.to(torch.float32), ends)


row(
    "_grouped_mm",
    S((8, 8), (4, 8, 4), GROUPS),
    S((4, 4, 8), (8, 8), GROUPS),
    S((4, 8), (8, 8), GROUPS),
    S((3, 4, 8), (3, 8, 4)),
    oracle=_grouped_mm,
    grad=False,
    gradgrad=False,
    tol=1e-5,
)
