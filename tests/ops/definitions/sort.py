"""Sorting, selection by rank, search and distinct elements."""

from tests.ops.op_db import A, S, row

D = A((3, 5), kind="distinct")
I = A((4, 3), low=0, high=3, dtype="int64")

row(
    "sort",
    S(D),
    S(D, 0, True),
    S(D, stable=True, dim=1, descending=True),
    S(()),
    S(A((3,), low=0, high=9, dtype="int64")),
    S((0, 2)),
)
row("argsort", S(D), S(D, 0, True), grad=False)
row("msort", S(D))
row("topk", S(D, 2), S(D, 3, 0, False), S(D, 5), S(D, 0), S(A((90,), kind="distinct"), 7))
row("kthvalue", S(D, 2), S(D, 1, 0, True), S((), 1))
row(
    "searchsorted",
    S(A((4,), kind="distinct"), (3, 2)),
    S(A((2, 5), low=0, high=1), (2, 3), right=True),
    S((4,), 0.5, side="left", out_int32=True),
    oracle=lambda torch, keys, values, **k: torch.searchsorted(torch.sort(keys.detach())[0], values, **k),
    grad=False,
)
row(
    "bucketize",
    S((3, 2), A((4,), kind="distinct")),
    S((3,), A((4,), kind="distinct"), right=True),
    grad=False,
    oracle=lambda torch, x, keys, **k: torch.bucketize(x, torch.sort(keys.detach())[0], **k),
)
row("isin", S(I, A((2,), low=0, high=3, dtype="int64")), S(I, 1, invert=True))
row(
    "unique",
    S(I),
    S(I, return_inverse=True, return_counts=True),
    S(I, dim=0, return_inverse=True, return_counts=True),
    S(I, dim=1),
    S((0,)),
    meta=False,
    grad=False,  # that it wants a gradient, which is an error: tests/autograd/test_graph.py
    covers=("_unique_flat", "_unique_rows", "_unique2", "_unique_dim"),
)
row(
    "_unique_and_all", S(I, True, True, True), S(I), meta=False, grad=False, oracle=lambda torch, *a: torch._unique2(*a)
)
row("_unique", S(I, True, True), S(I), meta=False, grad=False)
row(
    "unique_consecutive",
    S(I),
    S(I, return_inverse=True, return_counts=True),
    S(I, dim=0, return_counts=True),
    meta=False,
    grad=False,
    covers=("_unique_runs", "_unique_consecutive"),
)
row("nonzero", S(I), S(I, as_tuple=True), S(()), grad=False, meta=False, covers=("_nonzero_indices",))
row("argwhere", S(I), meta=False)
row("nonzero_static", S(I, size=3), S(I, size=20, fill_value=-2))
