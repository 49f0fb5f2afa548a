"""Look-ups and the layers' products."""

from tests.ops.table import A, S, row

INDICES = A((2, 3), low=0, high=4, dtype="int64")

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
row("embedding", S((5, 3), INDICES), S((5, 3), A((), low=0, high=4, dtype="int64")),
    covers=("_embedding_backward",))  # fmt: skip
row(
    "embedding_renorm_",
    S(A((5, 3), grad=False), A((4,), low=0, high=4, dtype="int64"), 1.0, 2.0),
    grad=False,
    meta=False,
    oracle=lambda torch, x, i, most, p: torch.embedding_renorm_(x.clone(), i, most, p),
)
row(
    "_embedding_bag",
    *(S(A((5, 3), kind="distinct"), A((6,), low=0, high=4, dtype="int64"), mode) for mode in ("sum", "mean", "max")),
    meta=False,
    oracle=lambda torch, w, i, mode: torch.nn.functional.embedding_bag(
        i, w, torch.tensor([0, 2, 2], device=i.device), mode=mode
    ),
)
row("one_hot", S(A((2, 3), low=0, high=4, dtype="int64"), 6), S(A((4,), low=0, high=4, dtype="int64")), meta=False)
