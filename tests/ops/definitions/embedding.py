"""Look-ups of rows."""

from tests.ops.op_db import A, S, row

INDICES = A((2, 3), low=0, high=4, dtype="int64")

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
    "embedding_bag",
    *(
        S(
            A((5, 3), kind="distinct"),
            A((6,), low=0, high=4, dtype="int64"),
            A((2,), low=0, high=1, dtype="int64"),
            *more,
        )
        for more in ((False, 0), (False, 1), (False, 2), (False, 0, False, None, False, 2))
    ),
    meta=False,
)
row("one_hot", S(A((2, 3), low=0, high=4, dtype="int64"), 6), S(A((4,), low=0, high=4, dtype="int64")), meta=False)
