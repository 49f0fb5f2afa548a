"""Arithmetic, comparisons, logic and basic functions."""

from tests.ops.op_db import A, S, row

PAIRS = (S((3, 4), (3, 4)), S((3, 1), (4,)), S((), (2, 3)))
INTS = S(A((2, 3), -9, 9, "int64"), A((2, 3), 1, 9, "int64"))
COMPLEX = S(A((2, 2), dtype="complex128"), (2, 2))
MASK, NUMBERS = A((2, 3), dtype="bool"), A((2, 3), -3, 3, "int64")

for _name in ("maximum", "minimum"):
    row(_name, *PAIRS, INTS)
for _name in ("add", "sub"):
    row(_name, *PAIRS, S((2, 3), 1.5), INTS, COMPLEX, oracle=lambda torch, a, b, n=_name: getattr(torch, n)(a, b))
    row(
        f"{_name}_alpha",
        *PAIRS[:2],
        S((2, 3), 1.5),
        oracle=lambda torch, a, b, n=_name: getattr(torch, n)(a, b, alpha=2),
    )
row("rsub", *PAIRS[:2], S((2, 3), 1.5, alpha=2))
row(
    "mul",
    *PAIRS,
    S((2, 3), 1.5),
    S(A((2, 3), dtype="int64"), A((2, 3), dtype="int64")),
    S(A((2, 2), dtype="complex128"), (2, 2)),
)
row("div", S((3, 4), A((3, 4), 0.5, 2)), S((2, 3), 1.5), INTS, COMPLEX, oracle=lambda torch, a, b: torch.div(a, b))
row("div_rounded", S((3, 4), A((3, 1), 0.5, 2)), INTS, oracle=lambda torch, a, b: torch.div(a, b, rounding_mode=None))
for _mode in ("floor", "trunc"):
    row(
        f"_{_mode}_divide",
        S((3, 4), A((3, 1), 0.5, 2)),
        INTS,
        oracle=lambda torch, a, b, m=_mode: torch.div(a, b, rounding_mode=m),
    )
row("floor_divide", S((3, 4), A((3, 1), 0.5, 2)), S((2, 3), 0.7), INTS, grad=False)
row(
    "pow",
    S(A((3, 4), 0.5, 2), (3, 4)),
    S((3, 4), 2),
    S((3, 4), 3.0),
    S(A((3,), 0.5, 2), 0.5),
    S(A((3,), 0.5, 2), -1),
    S((3,), 1.0),
    S((3,), 0),
    S(2.0, (2, 3)),
    S(A((2, 3), -3, 3, "int64"), A((2, 3), 0, 4, "int64")),
    S(A((2, 2), dtype="complex128"), A((2, 2), dtype="complex128")),
    S(A((2, 2), dtype="complex128"), 2),
)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    row(_name, *PAIRS, S(NUMBERS, 1), S(NUMBERS, NUMBERS))
for _name in ("logical_and", "logical_or", "logical_xor"):
    row(_name, *PAIRS[:2], S(MASK, MASK), S(NUMBERS, MASK))
row("logical_not", S(NUMBERS), S(MASK), S((2, 3)))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    row(_name, S(NUMBERS, A((3,), -9, 9, "int64")), S(NUMBERS, 5), S(MASK, MASK))
for _name in ("bitwise_left_shift", "bitwise_right_shift"):
    row(_name, S(A((2, 3), -99, 99, "int64"), A((2, 3), 0, 5, "int64")), S(A((2, 3), -99, 99, "int64"), 2))

POSITIVE = A((3, 4), 0.2, 2)
for _name in ("neg", "abs", "exp", "square", "sin", "cos", "tanh", "sigmoid"):
    row(_name, S((3, 4)), S(A((2, 3), 0.2, 2, "float32")), S(A((2, 2), dtype="complex128")))
for _name in ("log", "sqrt", "rsqrt", "reciprocal"):
    row(
        _name, S(POSITIVE), S(A((2, 3), 0.2, 2, "float32")), S(A((2, 2), dtype="complex128")), S(A((3,), 1, 9, "int64"))
    )
for _name in ("sign", "floor", "ceil", "trunc"):
    row(_name, S((3, 4)), S(NUMBERS))
for _name in ("isnan", "isinf", "isfinite"):
    row(_name, S((3, 4)), S(NUMBERS), S(A((2, 2), dtype="complex128")))
row("real", S((3, 4)), S(A((2, 2), dtype="complex128")))
row("to", S((3, 4)), oracle=lambda torch, x: x.to(torch.complex128))
row(
    "_where",
    S(MASK, (2, 3), (2, 1)),
    S(MASK, (2, 3), 0.5),
    S(MASK, 1.5, (3,)),
    oracle=lambda torch, c, a, b: torch.where(c, a, b),
    covers=("_choose",),
)
row("where", S(MASK, (2, 3), (2, 1)), S(MASK, (2, 3), 0.5), S(MASK, A((2, 3), dtype="complex128"), (3,)))
row("where_method", S(MASK, (2, 3), (2, 1)), oracle=lambda torch, c, a, b: a.where(c, b))
row("fill", S((2, 3), 1.5), S((2, 3), A((), grad=False)), S(NUMBERS, 2))
