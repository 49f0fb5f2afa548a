"""Attention on OpenCL devices: the streaming kernels against the composite, over shapes, layouts and dtypes."""

import itertools

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of

F = torch.nn.functional


def composite(grad, query, key, value, mask, is_causal, scale):
    """Result and gradients by the op's composites, in double precision on the CPU."""
    table = table_of(torch.device("cpu"))
    raw = [x.detach().cpu().double()._tl_array for x in (grad, query, key, value)]
    if mask is not None:
        mask = (mask.cpu() if mask.dtype is torch.bool else mask.cpu().double())._tl_array
    out, lse = REGISTRY["_sdpa"].composite(table, *raw[1:], mask, is_causal, scale)
    return out, *REGISTRY["_sdpa_backward"].composite(table, *raw, mask, out, lse, is_causal, scale, (True, True, True))


def laid_out(x, layout):
    """The same values in other memory: dimensions stored in another order, every second element of a wider array, or an
    offset.
    """
    if layout == "heads inside rows" and x.ndim > 2:
        return x.transpose(-3, -2).contiguous().transpose(-3, -2)
    if layout == "transposed":
        return x.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "every second":
        wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype, device=x.device)
        wide[..., ::2] = x
        return wide[..., ::2]
    return x


def compare(
    device,
    rng,
    lead,
    rows,
    columns,
    features,
    values,
    mask,
    is_causal,
    dtype=torch.float32,
    layout="",
    tolerance=1e-5,
    scale=0.3,
):
    def draw(*shape):
        return laid_out(torch.from_numpy(rng.standard_normal(shape)).to(dtype).to(device), layout)

    query, key, value = draw(*lead, rows, features), draw(*lead, columns, features), draw(*lead, columns, values)
    grad = draw(*lead, rows, values)
    if mask == "bool":
        mask = torch.from_numpy(rng.random((rows, columns)) < 0.6).to(device)
        mask[0] = False
    elif mask == "keys":
        mask = torch.from_numpy(rng.random((*lead[:1], *[1] * (len(lead) - 1), 1, columns)) < 0.6).to(device)
    elif mask == "added":
        mask = draw(*lead[-1:], rows, columns)
    for x in (query, key, value):
        x.requires_grad_()
    out = F.scaled_dot_product_attention(query, key, value, mask, 0.0, is_causal, scale=scale)
    assert out.dtype is dtype and out._tl_node is not None
    found = [out.detach(), *torch.autograd.grad(out, (query, key, value), grad)]
    expected = composite(grad, query, key, value, mask, is_causal, scale)
    for name, x, wanted in zip(("out", "query", "key", "value"), found, expected, strict=True):
        largest = max(1.0, np.abs(wanted).max(initial=0.0))
        np.testing.assert_allclose(
            x.cpu().double().numpy() / largest, wanted / largest, atol=tolerance, rtol=0, err_msg=name
        )


SMALL = [((2, 3), 70, 45, 20, 17), ((3,), 33, 100, 64, 64), ((2, 2, 2), 1, 1, 1, 1)]
WIDE = [((), 40, 31, 100, 120), ((1, 2), 20, 34, 200, 256)]
CASES = [(shape, mask) for shape in SMALL for mask in (None, "causal", "bool", "keys", "added")] + [
    (shape, mask) for shape in WIDE for mask in (None, "causal")
]


@pytest.mark.parametrize(("shape", "mask"), CASES, ids=str)
def test_masks(opencl, rng, shape, mask):
    compare(opencl, rng, *shape, None if mask == "causal" else mask, mask == "causal")


def test_cached_launches(device, rng):
    """A cached launch of attention is reused for equal shapes only if all other
    launch arguments are equal too.
    """
    for _ in range(2):
        for layout, mask, is_causal, scale in itertools.product(
            ("", "heads inside rows"), (None, "bool", "added"), (False, True), (0.3, 0.5)
        ):
            if mask is None or not is_causal:
                compare(device, rng, (2, 3), 20, 20, 8, 8, mask, is_causal, layout=layout, scale=scale)


@pytest.mark.parametrize("layout", ["heads inside rows", "transposed", "every second"])
@pytest.mark.parametrize("is_causal", [False, True])
def test_layouts(opencl, rng, layout, is_causal):
    compare(opencl, rng, (2, 3), 50, 50, 24, 16, None, is_causal, layout=layout)


@pytest.mark.parametrize(
    ("dtype", "tolerance", "mask"),
    [(torch.float64, 1e-13, "added"), (torch.float16, 2e-3, "bool"), (torch.bfloat16, 2e-2, None)],
    ids=str,
)
def test_dtypes(opencl, rng, dtype, tolerance, mask):
    compare(opencl, rng, (2, 3), 37, 45, 20, 17, mask, mask is None, dtype=dtype, tolerance=tolerance)


def test_random_shapes(opencl, rng):
    for _ in range(20):
        lead = tuple(rng.integers(1, 4, rng.integers(0, 4)).tolist())
        rows, columns, features, values = rng.integers(1, 80, 4).tolist()
        mask = [None, "bool", "added", "keys"][rng.integers(4)]
        compare(
            opencl,
            rng,
            lead,
            rows,
            columns,
            features,
            values,
            mask,
            mask is None and bool(rng.integers(2)),
            scale=float(rng.normal()),
        )


def test_sides_are_broadcast(opencl, rng):
    shapes = ((2, 1, 6, 8), (1, 3, 9, 8), (3, 9, 5))
    query, key, value = (
        torch.from_numpy(rng.standard_normal(s).astype(np.float32)).to(opencl).requires_grad_() for s in shapes
    )
    out = F.scaled_dot_product_attention(query, key, value)
    wanted = torch.softmax(query @ key.transpose(-1, -2) / 8**0.5, -1) @ value
    assert torch.allclose(out, wanted, atol=1e-5)
    grad = torch.ones_like(out) * torch.arange(5, device=opencl)
    for a, b in zip(*(torch.autograd.grad(x, (query, key, value), grad) for x in (out, wanted)), strict=True):
        assert torch.allclose(a, b, atol=1e-4)


@pytest.mark.parametrize("needs", [n for n in itertools.product((False, True), repeat=3) if any(n)], ids=str)
def test_only_wanted_gradients(opencl, rng, needs):
    tensors = [
        torch.from_numpy(rng.standard_normal((2, 9, 8)).astype(np.float32)).to(opencl).requires_grad_(need)
        for need in needs
    ]
    F.scaled_dot_product_attention(*tensors).sum().backward()
    assert tuple(x.grad is not None for x in tensors) == needs


def test_nothing_to_attend_to(opencl):
    query, key = torch.ones(2, 3, 4, device=opencl, requires_grad=True), torch.ones(2, 0, 4, device=opencl)
    out = F.scaled_dot_product_attention(query, key, key)
    out.sum().backward()
    assert out.shape == (2, 3, 4) and not out.any() and not query.grad.any()
    assert F.scaled_dot_product_attention(
        torch.ones(2, 0, 4, device=opencl), *[torch.ones(2, 5, 4, device=opencl)] * 2
    ).shape == (2, 0, 4)


def test_more_features_than_the_kernels_hold(opencl, rng):
    compare(opencl, rng, (2,), 9, 11, 300, 20, None, True)


def test_no_matrix_of_scores_is_stored(opencl, rng):
    """2048 positions: the weights of 8 heads would take 128 MiB."""
    x = torch.from_numpy(rng.standard_normal((8, 2048, 16)).astype(np.float32)).to(opencl).requires_grad_()
    torch.opencl.reset_peak_memory_stats(opencl)
    before = torch.opencl.memory_allocated(opencl)
    F.scaled_dot_product_attention(x, x, x).sum().backward()
    assert torch.opencl.max_memory_allocated(opencl) - before < 16 << 20
