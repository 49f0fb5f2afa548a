"""Reductions, statistics and running sums."""

from tests.ops.op_db import A, S, row

D = A((3, 5), kind="distinct")
I = A((3, 4), low=-3, high=4, dtype="int64")
B = A((3, 4), dtype="bool")
OVER = (S((3, 4)), S((3, 4), 0), S((2, 3, 4), (0, -1), True), S(()))

row("sum", *OVER, S(I), S(B, 1), S((0, 3), 0), S(A((2, 3), dtype="complex128"), 1))
row("mean", *OVER, S(A((2, 3), dtype="complex128"), 1), S((0, 3), 1), S((2, 3), 1, True))
row("amax", *OVER, S(D, 1), S(I, 0))
row("amin", *OVER, S(D, 1), S(I, 0))
row("any", S(B), S(B, 1), S((3, 4), 0, True), S(A((3,), dtype="uint8", low=0, high=2)))
row("all", S(B), S(B, 1), S((3, 4), 0, True), S((0,)))
row("argmax", S(D), S(D, 1), S(D, 0, True))
row("argmin", S(D), S(D, 1), S(D, 0, True))
row(
    "prod",
    S((3, 4)),
    S((3, 4), 1),
    S((3, 4), 0, True),
    S(I),
    S(A((2, 3), dtype="complex128"), 1),
    S((0, 2), 0),
    S(A((3, 3), low=0, high=1, dtype="int64")),
)
row(
    "var",
    *OVER[:3],
    S((3, 4), 1, correction=0),
    S((3, 4), False),
    S((3, 4), 0, False, True),
    S(A((2, 3), dtype="complex128"), 1),
    covers=("_var_correction",),
)
row(
    "std",
    *OVER[:3],
    S((3, 4), 1, correction=0.5),
    S((3, 4), False),
    S(A((2, 3), dtype="complex128"), 1),
    covers=("_std_correction",),
)
row("var_mean", S((3, 4)), S((3, 4), 1, correction=0, keepdim=True), covers=("_var_mean",))
row("std_mean", S((3, 4)), S((3, 4), 1, correction=0, keepdim=True), covers=("_std_mean",))
row("logsumexp", S((3, 4), 0), S((2, 3, 4), (0, -1), True), S((), 0), S(I, 1))
row("max", S(D), S(D, 1), S(D, 0, True), S(I, 1), S(()), covers=("_max_dim",))
row("min", S(D), S(D, 1), S(D, 0, True), S(I, 1), S(()), covers=("_min_dim",))
row(
    "median",
    S(D),
    S(D, 1),
    S(D, 0, True),
    S(A((7,), low=-9, high=9, dtype="int64")),
    covers=("_median_dim", "_median_all"),
)
row("nanmedian", S(D), S(D, 1), S(D, 0, True), covers=("_nanmedian_dim", "_nanmedian_all"))
row("mode", S(D, 1), S(A((9,), low=0, high=3, dtype="int64")), free=lambda found: found[0])
row("aminmax", S(D), S(D, dim=1), S(D, dim=0, keepdim=True))
row("nansum", *OVER)
row("nanmean", *OVER)
row("count_nonzero", S(I), S(I, 1), S(I, (0, 1)), S(B))
row(
    "quantile",
    S(D, 0.4),
    S(D, 0.25, 1, True),
    S(D, [0.1, 0.55, 0.9], 0),
    S(D, 0.6, 1, interpolation="lower"),
    S(D, 0.6, 1, interpolation="midpoint"),
    S(D, 0.6, 1, interpolation="nearest"),
    meta=False,
    oracle=lambda torch, x, q, *args, **kwargs: torch.quantile(
        x, torch.tensor(q, dtype=x.dtype, device=x.device) if isinstance(q, list) else q, *args, **kwargs
    ),
)
row("nanquantile", S(D, 0.4), S(D, 0.25, 1, True), S(D, 0.6, 0, interpolation="higher"), meta=False)
row("histc", S((20,), 5), S((20,), 4, -1, 1))
row(
    "bincount",
    S(A((9,), low=0, high=5, dtype="int64")),
    S(A((9,), low=0, high=5, dtype="int64"), (9,)),
    S(A((3,), low=0, high=3, dtype="int64"), minlength=7),
    meta=False,
    grad=False,
)
row(
    "histogram",
    S((20,), 5),
    S((20,), 4, range=(-1.0, 1.0)),
    S((20,), 4, weight=A((20,)), density=True),
    S((20,), 3),
    meta=False,
    grad=False,
    covers=("_histogram_counts",),
)
row("histogramdd", S((20, 2), [3, 4]), S((20, 2), [2, 2], range=[-1.0, 1.0, -2.0, 2.0]), meta=False, grad=False)
row("diff", S((3, 5)), S((3, 5), 2, 0), S((3, 4), 1, -1, A((3, 1)), A((3, 2))), S(I, 1), S(B, 1))
row("trapezoid", S((3, 5)), S((3, 5), A((5,))), S((3, 5), dx=0.5, dim=0), S((3, 5), A((3, 5))))
row("hash_tensor", S(D), S(I, 1), S(B, (0, 1), keepdim=True), grad=False)
row("cumulative_trapezoid", S((3, 5)), S((3, 5), A((5,))), S((3, 5), dx=0.5, dim=0))
row(
    "gradient",
    S((4, 5)),
    S((4, 5), spacing=2.0, dim=1),
    S((5,), edge_order=2),
    S((5, 4), spacing=[1.0, 0.5], edge_order=2),
)

RUN = (S((3, 4), 0), S((3, 4), -1), S((), 0), S((0, 2), 0))
row("cumsum", *RUN, S(I, 1), S(B, 0), S(A((2, 3), dtype="complex128"), 1))
row("cumprod", *RUN, S(I, 1), S(A((2, 3), dtype="complex128"), 1), covers=("_linear_recurrence",))
row("cummax", S(D, 1), S(D, 0), S(I, 1), S((), 0))
row("cummin", S(D, 1), S(D, 0), S(I, 1), S((), 0))
row(
    "logcumsumexp",
    S((3, 4), 0),
    S((3, 4), -1),
    S((), 0),
    S(A((3,), low=-300, high=300), 0),
    S(A((2, 3), dtype="complex128"), 1),
)
row(
    "segment_reduce",
    *(S((4, 2), how, lengths=A((2,), low=2, high=3, dtype="int64")) for how in ("sum", "mean", "max", "min", "prod")),
    meta=False,
    covers=("_segments",),
)
