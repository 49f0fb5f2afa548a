"""Products of matrices and vectors."""

from tests.ops.op_db import A, S, row


def C(*shape):
    return A(shape, dtype="complex128")


row(
    "matmul",
    S((3, 4), (4, 2)),
    S((4,), (4,)),
    S((4,), (4, 2)),
    S((3, 4), (4,)),
    S((2, 3, 4), (4, 5)),
    S((3, 4), (2, 4, 5)),
    S((2, 1, 3, 4), (5, 4, 2)),
    S((2, 3, 4), (4,)),
    S((4,), (2, 4, 3)),
    S(C(3, 4), C(4, 2)),
    S((0, 4), (4, 2)),
    S((3, 0), (0, 2)),
    S((2, 0, 4), (4, 3)),
)
row(
    "mm",
    S((3, 4), (4, 2)),
    S(C(2, 3), C(3, 2)),
    S((3, 0), (0, 2)),
    S(A((2, 3), dtype="int64", low=-5, high=5), A((3, 2), dtype="int64", low=-5, high=5)),
)
row("bmm", S((2, 3, 4), (2, 4, 5)), S(C(2, 2, 3), C(2, 3, 2)))
row("mv", S((3, 4), (4,)), S(C(2, 3), C(3)))
row("dot", S((4,), (4,)), S(C(3), C(3)), S((0,), (0,)))
row("vdot", S((4,), (4,)), S(C(3), C(3)))
row(
    "addmm",
    S((3, 2), (3, 4), (4, 2)),
    S((2,), (3, 4), (4, 2), beta=0.5, alpha=-2.0),
    S(C(3, 2), C(3, 4), C(4, 2), beta=1j, alpha=2 - 1j),
    S((3, 2), (3, 4), (4, 2), beta=0),
)
row("addmv", S((3,), (3, 4), (4,)), S(C(3), C(3, 4), C(4), beta=0.5, alpha=1j), S((1,), (3, 4), (4,), beta=2.0))
row(
    "baddbmm",
    S((2, 3, 5), (2, 3, 4), (2, 4, 5)),
    S((5,), (2, 3, 4), (2, 4, 5), beta=0.5, alpha=2.0),
    S(C(2, 2, 2), C(2, 2, 3), C(2, 3, 2), alpha=1j),
)
row("addbmm", S((3, 5), (2, 3, 4), (2, 4, 5)), S((5,), (2, 3, 4), (2, 4, 5), beta=0.5, alpha=2.0))
row("addr", S((3, 4), (3,), (4,)), S((4,), (3,), (4,), beta=0.5, alpha=2.0))
row("outer", S((3,), (4,)), S(C(2), C(3)))
row("inner", S((2, 3), (4, 3)), S((3,), (3,)), S((), (2, 3)))
row("linalg_multi_dot", S([A((2, 3)), A((3, 4)), A((4, 2))]), S([A((3,)), A((3, 4)), A((4,))]), S([C(2, 3), C(3, 2)]))
row("chain_matmul", S(A((2, 3)), A((3, 4)), A((4, 2))), S(A((2, 3))))
row(
    "tensordot",
    S((2, 3, 4), (3, 4, 5), 2),
    S((2, 3, 4), (4, 3, 5), ([1, 2], [1, 0])),
    S((2,), (3,), 0),
    S((2, 3), (3,), 1),
    S(C(2, 3), C(3, 2), 1),
)
row("kron", S((2, 3), (2, 2)), S((3,), (2, 2)), S((), (2,)), S(C(2, 2), C(2)))
row("linalg_cross", S((2, 3), (2, 3)), S((3, 1), (3, 2), dim=0), S(C(2, 3), C(1, 3)))
row("cross", S((2, 3), (2, 3)), S((3, 2), (3, 2)), S((2, 3, 3), (2, 3, 3), 1))
row("linalg_vecdot", S((2, 3), (2, 3)), S(C(2, 3), C(1, 3)), S((2, 3), (2, 3), dim=0))


def _einsum(equation, *shapes):
    """A sample of an equation: the operands come first, as the table fills only tensors it knows."""
    return S(equation, *(s if isinstance(s, A) else A(s) for s in shapes))


row(
    "einsum",
    _einsum("ij,jk->ik", (2, 3), (3, 4)),
    _einsum("ii", (3, 3)),
    _einsum("ii->i", (3, 3)),
    _einsum("ij->ji", (2, 3)),
    _einsum("bij,bjk->bik", (2, 3, 4), (2, 4, 2)),
    _einsum("i,j", (2,), (3,)),
    _einsum("...ij,...jk", (2, 3, 4), (4, 2)),
    _einsum("i...->...", (2, 3, 4)),
    _einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    _einsum("ijj,j->i", (2, 3, 3), (3,)),
    _einsum("ij,ij->", (2, 3), (2, 3)),
    _einsum("bij,bij->b", (2, 3, 4), (2, 3, 4)),
    _einsum("ij,kj->ik", (2, 1), (3, 4)),
    _einsum("ba,ab,c->", (2, 3), (3, 2), (4,)),
    _einsum("ij,jk", C(2, 3), C(3, 2)),
    _einsum("i->", (3,)),
)
row("_compute_linear_combination", S((2, 3), (4, 2)), S((3, 2, 2), (2, 3)), grad=False)
row(
    "_int_mm",
    S(A((3, 4), -128, 127, "int8"), A((4, 2), -128, 127, "int8")),
    S(A((2, 2000), -128, 127, "int8"), A((2000, 3), -128, 127, "int8")),
    grad=False,
    meta=False,
)
row(
    "_addmm_activation",
    S((4,), (3, 2), (2, 4)),
    S((3, 4), (3, 2), (2, 4), beta=0.5, alpha=2, use_gelu=True),
    grad=False,
)
