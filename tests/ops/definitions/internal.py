"""Ops that the core calls: aliases, writes through views, device transfers."""

from tests.ops.op_db import A, S, row


def _through_a_view(torch, x, column):
    out = x * 1
    out[:, 1].copy_(column)
    out.diagonal().mul_(2)
    return out


row(
    "alias",
    S((2, 3)),
    S(()),
    oracle=lambda torch, x: x.view_as(x),
    call=lambda x: x.alias(),
    covers=("_identity",),
    noncontiguous=False,
)
row("_depend_on", S((2, 3), (4,)), oracle=lambda torch, x, other: x + 0 * other.sum())
for _name in ("_with_constant_gradient", "_with_absent_gradient"):
    row(_name, S((2, 3)), oracle=lambda torch, x: x.view_as(x), noncontiguous=False)
row("_copy_slices", S((3, 4), A((3,))), oracle=_through_a_view, meta=False, covers=("_view_of_base",))
# That gradients move as well is tests/test_toy_backend.py's: here the only other device has no data.
row(
    "_move",
    S((2, 3)),
    oracle=lambda torch, x: torch.ones(tuple(x.to("meta").shape)),
    grad=False,
    meta=False,
    covers=("_device_copy",),
)
