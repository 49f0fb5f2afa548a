"""Functions of two and three operands."""

from tests.ops.op_db import A, S, row

PAIRS = (S((3, 4), (3, 4)), S((3, 1), (4,)), S((), (2, 3)))
INTS = S(A((2, 3), -9, 9, "int64"), A((2, 3), 1, 9, "int64"))
HIGH, NUMBERS = A((3, 4), 0.5, 2), A((2, 3), -9, 9, "int64")

for _name in ("fmod", "remainder"):
    row(_name, S((3, 4), HIGH), S((3, 4), 0.7), INTS, S(NUMBERS, 4))
row("atan2", *PAIRS, INTS)
row("copysign", *PAIRS, S((3, 4), -1.0), INTS)
for _name in ("hypot", "logaddexp", "logaddexp2", "fmax", "fmin"):
    row(_name, *PAIRS)
row("nextafter", *PAIRS, grad=False)
row("heaviside", *PAIRS, INTS, grad=False)
for _name in ("gcd", "lcm"):
    row(_name, INTS)
LIMITS = (
    S((3, 4), -1.0, 1.0),
    S((3, 4), min=-0.5),
    S((3, 4), max=0.5),
    S((3, 4), A((4,), -1, 0), A((3, 1), 0, 1)),
    S(NUMBERS, -3, 3),
)
row("clamp", *LIMITS, covers=("_clamp_tensors", "_clamp_scalars"))
for _name in ("clamp_min", "clamp_max"):
    row(_name, *PAIRS, S((3, 4), 0.3), S(NUMBERS, 2))
COMPLEX = A((2,), dtype="complex128")
row(
    "lerp",
    S((3, 4), (3, 4), 0.3),
    S((3, 4), (4,), 0.8),
    S((3, 4), (3, 4), A((3, 1), 0, 1)),
    S(COMPLEX, COMPLEX, 0.3),
    covers=("_lerp_tensor", "_lerp_scalar"),
)
row("addcmul", S((3, 4), (3, 4), (4,)), S((3, 4), (3, 1), (3, 4), value=0.5), S(NUMBERS, NUMBERS, NUMBERS, value=2))
row("addcdiv", S((3, 4), (3, 4), HIGH), S((3, 4), (3, 1), HIGH, value=0.5))
row("complex", S((3, 4), (3, 4)), S(A((2, 3), dtype="float32"), A((2, 3), dtype="float32")))
row("polar", S(HIGH, (3, 4)))
row("frexp", S((3, 4)), S(A((2, 3), dtype="float32")))
row("isclose", *PAIRS[:2], S(A((3, 4)), A((3, 4)), 1.0, 0.5, True), INTS)
row(
    "allclose",
    *PAIRS[:2],
    grad=False,
    meta=False,
    oracle=lambda torch, a, b: torch.tensor([torch.allclose(a, b), torch.allclose(a, a)]),
    noncontiguous=False,
)
row("ldexp", S((3, 4), A((3, 4), -3, 3, "int64")), *PAIRS, covers=("_ldexp",))
row("float_power", S(HIGH, (3, 4)), S((3, 4), 2), S(NUMBERS, 3), S(2.0, (2, 3)))
