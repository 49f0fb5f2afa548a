"""Losses and distances."""

from tests.ops.op_db import A, S, row

POSITIVE, TARGET = A((3, 4), low=0.3, high=2), A((3, 4), low=0.3, high=2, grad=False)
PROBABILITY, RATE = A((3, 4), low=0.1, high=0.9), A((3, 4), low=0.1, high=0.9, grad=False)
SIGNS = A((3, 4), low=0, high=1, dtype="int64")
PAIRED = A((3,), low=0, high=1, dtype="int64")
CLASSES = A((3,), low=0, high=4, dtype="int64")
WEIGHT = A((4,), low=0.5, high=2, grad=False)


def every(*args, **kwargs):
    return tuple(S(*args, **kwargs, reduction=reduction) for reduction in ("mean", "sum", "none"))


def signed(name):
    """Targets of -1 and 1 from 0 and 1."""
    return lambda torch, x, y, **options: getattr(torch.nn.functional, name)(x, y * 2 - 1, **options)


row("mse_loss", *every((3, 4), (3, 4)), S((3, 4), (3, 4), weight=TARGET))
row("l1_loss", *every((3, 4), (3, 4)), S((3, 4), (3, 4), weight=TARGET))
row("smooth_l1_loss", *every((3, 4), (3, 4)), S((3, 4), (3, 4), beta=0.5), S((3, 4), (3, 4), beta=0.0))
row(
    "huber_loss",
    *every((3, 4), (3, 4)),
    S((3, 4), (3, 4), delta=0.5),
    S((3, 4), (3, 4), weight=TARGET),
    covers=("_huber",),
)
row("poisson_nll_loss", *every((3, 4), TARGET), S(POSITIVE, TARGET, False), S((3, 4), TARGET, full=True))
row(
    "gaussian_nll_loss",
    *every((3, 4), (3, 4), POSITIVE),
    S((3, 4), (3, 4), A((3, 1), low=0.5), full=True),
    S((3, 4), (3, 4), 0.7),
)
row(
    "kl_div",
    *every((3, 4), PROBABILITY),
    S((3, 4), PROBABILITY, reduction="batchmean"),
    S((3, 4), (3, 4), log_target=True),
)
row("binary_cross_entropy", *every(PROBABILITY, RATE), S(PROBABILITY, RATE, TARGET), covers=("_bce", "_bce_backward"))
row("binary_cross_entropy_with_logits", *every((3, 4), RATE), S((3, 4), RATE, TARGET, pos_weight=WEIGHT))
row("soft_margin_loss", *every((3, 4), SIGNS), oracle=signed("soft_margin_loss"))
row("multilabel_soft_margin_loss", *every((3, 4), SIGNS), S((3, 4), SIGNS, WEIGHT))
row("hinge_embedding_loss", *every((3, 4), SIGNS), oracle=signed("hinge_embedding_loss"))
row("margin_ranking_loss", *every((3, 4), (3, 4), SIGNS), oracle=lambda torch, a, b, y, **options:
    torch.nn.functional.margin_ranking_loss(a, b, y * 2 - 1, 0.3, **options))  # fmt: skip
row("multi_margin_loss", *every((3, 5), CLASSES), S((3, 5), CLASSES, 2, 0.5, A((5,), low=0.5, high=2, grad=False)))
row("multilabel_margin_loss", *every((3, 4), A((3, 4), low=-1, high=4, dtype="int64")))
row("cosine_similarity", S((3, 4), (3, 4)), S((3, 1, 4), (2, 4), 2), S((4,), (4,), 0))
row("pairwise_distance", S((3, 4), (3, 4)), S((3, 4), (4,), 1.0, 1e-6, True))
row(
    "cosine_embedding_loss",
    S((3, 4), (3, 4), PAIRED, reduction="none"),
    S((3, 4), (3, 4), PAIRED),
    oracle=lambda torch, a, b, y, **options: torch.nn.functional.cosine_embedding_loss(a, b, y * 2 - 1, 0.1, **options),
)
row("triplet_margin_loss", *every((3, 4), (3, 4), (3, 4)), S((3, 4), (3, 4), (3, 4), swap=True))
row("triplet_margin_with_distance_loss", S((3, 4), (3, 4), (3, 4)), S((3, 4), (3, 4), (3, 4), margin=2.0, swap=True))
row(
    "nll_loss",
    *every((3, 5), CLASSES),
    S((3, 5, 2), A((3, 2), low=0, high=4, dtype="int64"), A((5,), low=0.5, high=2, grad=False)),
    S((3, 5), CLASSES, None, None, 1),
    S((5,), A((), low=0, high=4, dtype="int64")),
    covers=("_nll_loss", "_nll_loss_backward"),
)
row(
    "cross_entropy",
    *every((3, 5), CLASSES),
    S((3, 5), CLASSES, A((5,), low=0.5, high=2, grad=False), label_smoothing=0.1),
    S((3, 5, 2), A((3, 2), low=0, high=4, dtype="int64"), ignore_index=1),
    S((3, 4), PROBABILITY, label_smoothing=0.2),
    S((5,), A((), low=0, high=4, dtype="int64")),
    covers=("_cross_entropy", "_cross_entropy_backward"),
)
row(
    "linear_cross_entropy", S((3, 4), (5, 4), CLASSES), S((3, 4), (5, 4), CLASSES, linear_bias=A((5,)), reduction="sum")
)
row(
    "ctc_loss",
    S((5, 2, 4), A((2, 2), low=1, high=3, dtype="int64"), [5, 4], [2, 1]),
    S((5, 2, 4), A((3,), low=1, high=3, dtype="int64"), [5, 4], [2, 1], reduction="none"),
    covers=("functional_ctc_loss",),
    # Its gradient is not that of its value: it includes what a log_softmax before it would add.
    oracle=lambda torch, x, *args, **options: torch.nn.functional.ctc_loss(
        torch.nn.functional.log_softmax(x, -1), *args, **options
    ),
    meta=False,
)
