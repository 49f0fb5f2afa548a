"""Random numbers. What has no tensor argument is drawn on the CPU, whose stream is PyTorch's: there the values are
compared too.
"""

from tests.ops.op_db import A, S, row

PROBABILITIES = A((3, 4), low=0, high=1)
DROPOUT = {"random": True, "noncontiguous": False}


def in_place(name):
    """Called on a clone, since a leaf cannot be written to."""
    return lambda torch, x, *args, **kwargs: getattr(x.clone(), name)(*args, **kwargs)


row("rand", S(3, 4), S((20,)), S(()), S(0, 3), covers=("_random_uniform",))
row("randn", S(3, 4), S((5, 7)), S(2), S(0, 3), covers=("_random_normal",))
row("randint", S(10, (3, 4)), S(-3, 5, (20,)), S(1 << 40, (5,)), covers=("_random_integers",))
row("randperm", S(10), S(1), S(0), covers=("_random_permutation",))
row(
    "normal",
    S(0.5, 2.0, (3, 4)),
    S((3, 4), 2.0),
    S((3, 4), A((4,), low=0.1, high=2)),
    random=True,
    covers=("_normal_sample",),
)
row("rand_like", S((3, 4)), random=True)
row("randn_like", S((3, 4)), random=True)
row("randint_like", S((3, 4), 10), S((3, 4), -3, 5), random=True)
row("bernoulli", S(PROBABILITIES), S((3, 4), 0.3), random=True, covers=("_random_bernoulli_each", "_random_bernoulli"))
row(
    "multinomial",
    S(PROBABILITIES, 2),
    S(A((5,), low=0.1, high=1), 1),
    S(PROBABILITIES, 7, True),
    random=True,
    covers=("_random_multinomial",),
)
row("poisson", S(A((3, 4), low=0, high=30)), random=True, covers=("_random_poisson",))
row("binomial", S(A((3, 4), low=1, high=30), PROBABILITIES), grad=False, random=True, covers=("_random_binomial",))
row("uniform_", S((3, 4)), S((3, 4), -1, 2), random=True, oracle=in_place("uniform_"))
row("normal_", S((3, 4)), S((3, 4), -1, 2), random=True, oracle=in_place("normal_"), covers=("_random_fill",))
row(
    "random_",
    S((3, 4)),
    S((3, 4), 9),
    S((3, 4), -4, 9),
    random=True,
    oracle=in_place("random_"),
    covers=("_random_bits",),
)
row(
    "bernoulli_",
    S((3, 4)),
    S((3, 4), 0.2),
    S((3, 4), A((4,), low=0, high=1)),
    random=True,
    oracle=in_place("bernoulli_"),
)
row(
    "exponential_",
    S((3, 4)),
    S((3, 4), 2.0),
    random=True,
    oracle=in_place("exponential_"),
    covers=("_random_exponential",),
)
row("cauchy_", S((3, 4)), S((3, 4), 1.0, 2.0), random=True, oracle=in_place("cauchy_"), covers=("_random_cauchy",))
row("geometric_", S((3, 4), 0.3), random=True, oracle=in_place("geometric_"), covers=("_random_geometric",))
row(
    "log_normal_",
    S((3, 4)),
    S((3, 4), 0.5, 0.2),
    random=True,
    oracle=in_place("log_normal_"),
    covers=("_random_log_normal",),
)

row(
    "dropout",
    S((3, 4), 0.5),
    S((3, 4), 0.2, False),
    S((3, 4), 1.0),
    S((3, 4), 0.0),
    covers=("_random_keep_mask", "_dropout", "_dropout_backward"),
    **DROPOUT,
)
row("alpha_dropout", S((3, 4), 0.5, True), S((3, 4)), **DROPOUT)
row("feature_alpha_dropout", S((3, 4, 2), 0.5, True), S((3, 4)), **DROPOUT)
row("dropout1d", S((3, 4, 2), 0.5), S((4, 2), 0.5), **DROPOUT)
row("dropout2d", S((3, 4, 2, 2), 0.5), S((4, 2, 2), 0.5), **DROPOUT)
row("dropout3d", S((3, 4, 2, 2, 1), 0.5), S((4, 2, 2, 1), 0.5), **DROPOUT)
for name in ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"):
    row(f"torch_{name}", S((3, 4, 2), 0.5, True), S((3, 4), 0.5, False), **DROPOUT)
    row(
        f"torch_{name}_",
        S((3, 4, 2), 0.5, True),
        oracle=lambda torch, x, p, train, name=name: getattr(torch, name + "_")(x.clone(), p, train),
        **DROPOUT,
    )
row("native_dropout", S((3, 4), 0.5, True), S((3, 4), 0.5, False), **DROPOUT)
row(
    "native_dropout_backward",
    S((3, 4), A((3, 4), dtype="bool"), 2.0),
    oracle=lambda torch, g, mask, scale: (
        torch.native_dropout_backward(g, mask, scale)
        if hasattr(torch, "native_dropout_backward")
        else torch.ops.aten.native_dropout_backward(g, mask, scale)
    ),
)
row(
    "_random_slopes",
    S((3, 4), 0.1, 0.3),
    random=True,
    noncontiguous=False,
    oracle=lambda torch, x, lower, upper: torch.nn.functional.rrelu(x, lower, upper, True),
)
row("_standard_gamma", S(A((3, 4), low=0.1, high=9)), gradgrad=False, random=True, covers=("_random_gamma",))
row(
    "_sample_dirichlet",
    S(A((3, 4), low=0.1, high=9)),
    grad=False,
    gradgrad=False,
    random=True,
    covers=("_random_dirichlet",),
)
row(
    "_standard_gamma_grad",
    S(A((3, 4), low=0.1, high=9), A((3, 4), low=0.1, high=9)),
    grad=False,
    gradgrad=False,
    tol=1e-4,
)
row(
    "_dirichlet_grad",
    S(A((3, 4), low=0.1, high=0.9), A((3, 4), low=0.1, high=3), A((3, 4), low=3.1, high=9)),
    grad=False,
    gradgrad=False,
    tol=2e-3,
)
