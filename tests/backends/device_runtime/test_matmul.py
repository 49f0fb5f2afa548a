"""Matrix products of OpenCL devices against NumPy: sizes around the tiles, every way matrices can lie, long sums in
parts, batches, data types, the forms for GPUs.
"""

import itertools

import numpy as np
import pytest

import torchlite as torch

# (rows, columns, inner): one, primes, the tiles' sizes and one more, few rows or columns, sums long enough for parts
# and for several panels, nothing to sum
SIZES = [
    (1, 1, 1), (4, 4, 4), (3, 5, 7), (8, 32, 16), (9, 33, 17), (33, 47, 129), (1, 300, 70), (300, 1, 70), (5, 200, 3),
    (100, 70, 64), (1, 1, 5000), (2, 3, 3001), (40, 7, 9000), (20, 40, 5000), (50, 70, 0),
]  # fmt: skip
LAYOUTS = list(itertools.product(("plain", "transposed", "apart"), repeat=2))
DTYPES = [np.float64, np.float16, np.complex64, np.complex128, np.int64, np.int32, np.int8, np.uint8]


def made(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(-100 if dtype.kind == "i" else 0, 100, shape).astype(dtype)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if dtype.kind == "c" else values).astype(dtype)


def laid(array, layout, device):
    """A tensor of these values: row-major, the transpose of a row-major one, or every second element of one."""
    if layout == "transposed":
        return torch.tensor(np.ascontiguousarray(np.swapaxes(array, -1, -2)), device=device).transpose(-1, -2)
    if layout == "apart":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return torch.tensor(wide, device=device)[..., ::2]
    return torch.tensor(array, device=device)


def close(got, want, dtype, inner):
    dtype = np.dtype(dtype)
    got = got.detach().cpu().numpy()
    if dtype.kind in "iu":
        np.testing.assert_array_equal(got, want.astype(dtype))
        return
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got, want.astype(dtype), rtol=20 * eps, atol=4 * eps * max(20, inner))


def exact(a, b):
    """NumPy's product, in double precision for floats."""
    kind = a.dtype.kind
    return np.matmul(
        a.astype({"f": np.float64, "c": np.complex128}.get(kind, np.int64)),
        b.astype({"f": np.float64, "c": np.complex128}.get(kind, np.int64)),
    )


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes_and_layouts(any_form, rng, size):
    m, n, k = size
    a, b = made(rng, (m, k), np.float32), made(rng, (k, n), np.float32)
    for first, second in LAYOUTS:
        close(laid(a, first, any_form) @ laid(b, second, any_form), exact(a, b), np.float32, k)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_dtypes(any_form, rng, dtype):
    for m, n, k in ((9, 41, 17), (2, 3, 3001), (33, 5, 40), (20, 40, 5000 if np.dtype(dtype).itemsize > 2 else 300)):
        a, b = made(rng, (m, k), dtype), made(rng, (k, n), dtype)
        for first, second in (("plain", "plain"), ("plain", "transposed"), ("transposed", "plain")):
            close(laid(a, first, any_form) @ laid(b, second, any_form), exact(a, b), dtype, k)


def test_bfloat16(any_form, rng):
    a, b = (torch.tensor(made(rng, shape, np.float32), device=any_form).bfloat16() for shape in ((9, 300), (300, 35)))
    want = a.float() @ b.float()
    np.testing.assert_allclose((a @ b).float().cpu().numpy(), want.cpu().numpy(), rtol=2**-7, atol=1e-6)
    np.testing.assert_allclose((a[:2] @ b).float().cpu().numpy(), want[:2].cpu().numpy(), rtol=2**-7, atol=1e-6)


BATCHES = [
    ((7, 5, 3), (7, 3, 4)), ((2, 3, 8, 16), (2, 3, 16, 40)), ((2, 3, 8, 16), (16, 40)), ((8, 16), (2, 3, 16, 40)),
    ((2, 1, 8, 16), (1, 3, 16, 40)), ((2, 1, 3, 1, 8, 6), (1, 4, 1, 5, 6, 9)), ((16,), (16,)), ((16,), (16, 5)),
    ((5, 16), (16,)), ((16,), (3, 16, 5)), ((3, 5, 16), (16,)), ((0, 5, 3), (0, 3, 2)), ((5, 0), (0, 4)),
    ((2, 0, 3), (3, 4)), ((3, 4, 0), (0, 5)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", BATCHES, ids=str)
def test_batches(any_form, rng, shapes):
    a, b = (made(rng, shape, np.float32) for shape in shapes)
    for first, second in LAYOUTS:
        if (first == "transposed" and a.ndim < 2) or (second == "transposed" and b.ndim < 2):
            continue
        close(laid(a, first, any_form) @ laid(b, second, any_form), exact(a, b), np.float32, a.shape[-1])


def test_batch_dimensions_that_lie_apart(any_form, rng):
    """Heads of attention: the batch's two dimensions have no common step."""
    x = torch.tensor(made(rng, (2, 9, 3, 4, 8), np.float32), device=any_form)
    q, k, _ = x.permute(2, 0, 3, 1, 4).unbind(0)
    close(q @ k.transpose(-1, -2), exact(q.cpu().numpy(), np.swapaxes(k.cpu().numpy(), -1, -2)), np.float32, 8)


def test_repeated_operands(any_form, rng):
    """Steps of zero: what an expanded gradient brings."""
    ones, x = torch.ones((), device=any_form).expand(12, 40), made(rng, (40, 33), np.float32)
    close(ones @ torch.tensor(x, device=any_form), exact(np.ones((12, 40), np.float32), x), np.float32, 40)
    close(torch.tensor(x, device=any_form) @ ones[:, :33].t(), exact(x, np.ones((33, 12), np.float32)), np.float32, 40)


@pytest.mark.parametrize("added", [(), (1,), (33,), (9, 1), (9, 33)], ids=str)
def test_sums_with_products(any_form, rng, added):
    for k in (17, 0):
        a, b, c = made(rng, (9, k), np.float32), made(rng, (k, 33), np.float32), made(rng, added, np.float32)
        tensors = [torch.tensor(x, device=any_form) for x in (c, a, b)]
        close(torch.addmm(*tensors, beta=2, alpha=0.5), 2 * c + 0.5 * exact(a, b), np.float32, k)
    nan = torch.full(added, float("nan"), device=any_form)
    close(torch.addmm(nan, *tensors[1:], beta=0), exact(a, b), np.float32, 17)


def test_sums_with_products_of_batches(any_form, rng):
    a, b, c = made(rng, (4, 9, 7), np.float32), made(rng, (4, 7, 33), np.float32), made(rng, (4, 1, 33), np.float32)
    tensors = [torch.tensor(x, device=any_form) for x in (c, a, b)]
    close(torch.baddbmm(*tensors, beta=2, alpha=3), 2 * c + 3 * exact(a, b), np.float32, 7)
    close(torch.addbmm(tensors[0][0], *tensors[1:]), c[0] + exact(a, b).sum(0), np.float32, 28)
    close(
        torch.addmv(torch.ones(9, device=any_form), tensors[1][0], tensors[2][0, :, 0]),
        1 + exact(a[0], b[0, :, 0]),
        np.float32,
        7,
    )
    long, vector = made(rng, (3, 5000), np.float32), made(rng, (5000,), np.float32)
    got = torch.addmv(
        torch.ones(3, device=any_form),
        torch.tensor(long, device=any_form),
        torch.tensor(vector, device=any_form),
        beta=4,
    )
    close(got, 4 + exact(long, vector), np.float32, 5000)


def test_wrapped_integers(any_form):
    a = torch.full((9, 20), 100, dtype=torch.int8, device=any_form)
    assert int((a @ a.t())[0, 0]) == (100 * 100 * 20 + 128) % 256 - 128
    big = torch.full((9, 20), 2**40, device=any_form)
    assert int((big @ big.t())[3, 3]) == (2**80 * 20) % 2**64


def test_conjugates(any_form, rng):
    a, b = made(rng, (40,), np.complex64), made(rng, (40,), np.complex64)
    close(
        torch.vdot(torch.tensor(a, device=any_form), torch.tensor(b, device=any_form)), np.vdot(a, b), np.complex64, 40
    )
    x, w = (
        torch.tensor(made(rng, shape, np.complex64), device=any_form, requires_grad=True)
        for shape in ((5, 40), (35, 40))
    )
    g = torch.tensor(made(rng, (5, 35), np.complex64), device=any_form)
    torch.nn.functional.linear(x, w).backward(g)
    x_, w_, g_ = (t.detach().cpu().numpy() for t in (x, w, g))
    close(x.grad, g_ @ w_.conj(), np.complex64, 40)
    close(w.grad, g_.T @ x_.conj(), np.complex64, 40)


@pytest.mark.parametrize("shape", [(40,), (3, 40), (2, 3, 40), (0, 40)], ids=str)
def test_linear(any_form, rng, shape):
    x, w, b = (made(rng, s, np.float32) for s in (shape, (35, 40), (35,)))
    tensors = [torch.tensor(t, device=any_form, requires_grad=True) for t in (x, w, b)]
    out = torch.nn.functional.linear(*tensors)
    close(out, x @ w.T + b, np.float32, 40)
    g = made(rng, out.shape, np.float32)
    out.backward(torch.tensor(g, device=any_form))
    rows, flat = g.reshape(-1, 35), x.reshape(-1, 40)
    for tensor, want in zip(tensors, (g @ w, rows.T @ flat, rows.sum(0)), strict=True):
        close(tensor.grad, want, np.float32, 40)


def test_errors(opencl):
    x = torch.ones(2, 3, device=opencl)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied \\(2x3 and 2x3\\)"):
        x @ x
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        x.bool() @ x.t().bool()
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.mm(x, x.t().double())


@pytest.mark.parametrize("mode", ["LSTM", "GRU"])
def test_recurrent_layers(any_form, rng, mode):
    """Odd sizes, both directions, two layers: as on the CPU."""
    layer = getattr(torch.nn, mode)(7, 19, 2, bidirectional=True)
    x = torch.tensor(made(rng, (5, 3, 7), np.float32))
    grads = []
    for device in ("cpu", any_form):
        layer = layer.to(device)
        layer.zero_grad()
        out, _ = layer(x.to(device))
        (out * out).sum().backward()
        grads.append([out.detach().cpu().numpy()] + [p.grad.cpu().numpy() for p in layer.parameters()])
    for got, want in zip(*grads[::-1], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.float64], ids=lambda d: d.__name__)
def test_all_forms_of_a_product_add_up_in_the_same_order(any_form, rng, dtype):
    from torchlite_backends.device_runtime.linalg import autotune, gemm

    device = torch.ones(1, device=any_form)._tl_array.device
    for size in ((9, 33, 17), (50, 10, 700), (130, 70, 40), (6, 40, 9000)):
        m, n, k = size
        a, b = laid(made(rng, (m, k), dtype), "transposed", any_form), laid(made(rng, (k, n), dtype), "plain", any_form)
        want = a @ b
        kind, sizes = a._tl_array.kind, gemm.GemmShape(m, n, k, a.stride(), b.stride(), (n, 1))
        forms = gemm.list_candidate_configs(device, kind, sizes)
        assert len(forms) > 2 and autotune.find_fastest_config(device, kind, sizes, False, forms) in forms
        for form in forms:
            found = torch.zeros_like(want)
            gemm.plan_gemm(device, kind, sizes, form=form).run(a._tl_array, b._tl_array, found._tl_array)
            # Compilers make one step of a product and a sum in some of the GPUs' texts, and two in others.
            bound = 0 if device.is_cpu else {np.float32: 1e-5, np.float16: 2e-3, np.float64: 1e-12}.get(dtype, 0)
            torch.testing.assert_close(found, want, rtol=bound, atol=bound * n, msg=str(form))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.float64], ids=lambda d: d.__name__)
def test_products_with_an_op_behind_them(any_form, rng, dtype):
    from torchlite_backends.device_runtime.linalg import matmul

    for m, n, k in ((9, 33, 17), (50, 10, 700), (130, 70, 40), (6, 40, 9000), (2, 3, 4), (1, 70, 30)):
        a, b = laid(made(rng, (m, k), dtype), "plain", any_form), laid(made(rng, (n, k), dtype), "plain", any_form)
        c = torch.tensor(made(rng, (n,), dtype), device=any_form)
        product, sums = a @ b.t(), torch.addmm(c, a, b.t())
        found = [
            matmul.kernel_with_epilogue(name, "relu")(*[x._tl_array for x in given])
            for name, given in (("mm", (a, b.t())), ("addmm", (c, a, b.t())), ("linear", (a, b, c)), ("linear", (a, b)))
        ]
        for one, want in zip(found, (product, sums, sums, product), strict=True):
            assert (a._tl_kernels.to_numpy(one) == want.relu().cpu().numpy()).all()
    assert matmul.kernel_with_epilogue("bmm", "relu") is None is matmul.kernel_with_epilogue("mm", "exp")
