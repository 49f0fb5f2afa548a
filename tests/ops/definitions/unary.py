"""Functions of one operand: inverse and hyperbolic functions, rounding, classification, parts of complex numbers."""

from tests.ops.op_db import A, S, row

SINGLE, COMPLEX = S(A((2, 3), 0.2, 0.9, "float32")), S(A((2, 2), dtype="complex128"))
NUMBERS, MASK = A((2, 3), -3, 3, "int64"), A((2, 3), dtype="bool")

for _name in ("acos", "asin", "atanh"):
    row(_name, S(A((3, 4), -0.9, 0.9)), SINGLE, COMPLEX)
for _name in ("atan", "asinh", "cosh", "sinh", "expm1", "exp2"):
    row(_name, S((3, 4)), SINGLE, COMPLEX, S(NUMBERS))
row("tan", S(A((3, 4), -1, 1)), SINGLE, COMPLEX)
row("acosh", S(A((3, 4), 1.1, 3)), COMPLEX)
for _name in ("log2", "log10", "log1p"):
    row(_name, S(A((3, 4), 0.2, 2)), SINGLE, COMPLEX, S(A((3,), 1, 9, "int64")))
for _name in ("deg2rad", "rad2deg"):
    row(_name, S((3, 4)), S(NUMBERS))
DECIMALS = (S((3, 4), decimals=1), S(A((3, 4), -200, 200), decimals=-2))
row("round", S((3, 4)), S(NUMBERS), *DECIMALS, oracle=lambda torch, x, **more: torch.round(x, **more))
row("frac", S((3, 4)))
for _name in ("sgn", "positive", "conj_physical", "resolve_conj", "resolve_neg"):
    row(_name, S((3, 4)), S(NUMBERS), COMPLEX)
for _name in ("signbit", "isposinf", "isneginf"):
    row(_name, S((3, 4)), S(NUMBERS))
row("isreal", S((3, 4)), S(NUMBERS), COMPLEX)
row("angle", S((3, 4)), S(NUMBERS), COMPLEX)
row("imag", COMPLEX, covers=("conj", "_conj", "_conj_physical", "_neg_view"))  # tests/tensor/test_conj_neg_views.py
row("nan_to_num", S((3, 4)), S((3, 4), 0.5, 1.0, -1.0), S(NUMBERS), COMPLEX)
row("bitwise_not", S(NUMBERS), S(MASK))
