"""Creation ops, also like other tensors, and windows."""

from tests.ops.op_db import A, S, constant, row

INTEGERS = A((3,), dtype="int64", low=0, high=9)
UNINITIALISED = {"free": True, "grad": False}

row("zeros", S(2, 3), S((4,)), S(()), S(0, 2), covers=("_full",))
row("ones", S(2, 3), S((4,)))
row("empty", S(2, 3), S((4,)), covers=("_empty",), **UNINITIALISED)
row("full", S((2, 3), 4), S((2,), 1.5), S((2,), True), S((2,), 1 + 2j))
row("scalar_tensor", S(3), S(2.5))
row("empty_strided", S((2, 3), (1, 2)), oracle=lambda torch, size, stride: torch.empty_strided(size, stride).fill_(1))
row(
    "empty_permuted",
    S((2, 3, 4), (0, 2, 1)),
    oracle=lambda torch, size, layout: torch.empty_permuted(size, layout).fill_(1),
)
row("empty_like", S((2, 3)), **UNINITIALISED)
row("zeros_like", S((2, 3)), S(()), grad=False, covers=("_zeros_like",))
row("ones_like", S((2, 3)), S(()), grad=False, covers=("_ones_like",))
row("full_like", S((2, 3), 2.5), S(INTEGERS, 2), grad=False, covers=("_full_like",))
row("new_empty", S((2, 3), (4, 2)), **UNINITIALISED)
row("new_zeros", S((2, 3), 4, 2), S((2,), (3,)), grad=False, covers=("_new_zeros",))
row("new_ones", S((2, 3), 4, 2), S(INTEGERS, (3,)), grad=False)
row("new_full", S((2, 3), (4, 2), 1.5), S(INTEGERS, (3,), 7), grad=False, covers=("_new_full",))
row("new_empty_strided", S((2, 3), (2, 3), (1, 2)), **UNINITIALISED)
row("new_tensor", S((2, 3), [1, 2]), S(INTEGERS, [[1.5], [2.5]]), grad=False)
row("arange", S(5), S(2, 9, 3), S(0.5, 3.0, 0.25), S(5, 0, -2), S(1.5), covers=("_arange", "_new_arange"))
row("range", S(0, 3), S(1, 2, 0.25))
row("linspace", S(0, 1, 5), S(-3, 2.5, 10), S(2, 3, 1), S(0, 1, 0), S(0, 1j, 3), covers=("_linspace",))
row("logspace", S(0, 2, 5), S(-1, 1, 4, 2.0), S(2, 3, 1), covers=("_logspace",))
row("eye", S(3), S(2, 4), S(0), covers=("_identity_matrix",))
row("tril_indices", S(3, 3), S(4, 3, -1), S(3, 4, 2), S(0, 3), covers=("_tril_indices",), meta=False)
row("triu_indices", S(3, 3), S(4, 3, -1), S(3, 4, 2), S(0, 3), covers=("_triu_indices",), meta=False)
row(
    "meshgrid",
    S(A((3,)), A((4,))),
    S(A((3,)), A((4,)), A(())),
    oracle=lambda torch, *x: (torch.meshgrid(*x, indexing="ij"), torch.meshgrid(*x, indexing="xy")),
)
row("cartesian_prod", S(A((3,)), A((4,))), S(A((3,))))
row("combinations", S((4,)), S((4,), 3), S((3,), 2, True), S((2,), 3), constant(S((2,), 0)), meta=False)
row("vander", S((3,)), S((3,), 2, True), S(INTEGERS, 4))
for name in ("bartlett", "blackman", "hamming", "hann", "kaiser"):
    row(f"{name}_window", S(7), S(6, False), S(1), S(0))
