"""Arithmetic, comparisons, logic and basic functions."""
from tests.ops.table import A, S, row

PAIRS = (S((3, 4), (3, 4)), S((3, 1), (4,)), S((), (2, 3)))
for _name in ("maximum", "minimum"):
    row(_name, *PAIRS)
for _name in ("add", "sub"):
    row(_name, *PAIRS, S((2, 3), 1.5), oracle=lambda torch, a, b, n=_name: getattr(torch, n)(a, b), covers=(f"_{_name}",))
row("mul", *PAIRS, S((2, 3), 1.5), S(A((2, 3), dtype="int64"), A((2, 3), dtype="int64")), S(A((2, 2), dtype="complex128"), (2, 2)))
