"""In what CuPy differs from NumPy and PyTorch, and that nothing of it shows: a test for each known difference, which
its docstring states. On the simulator.

Arrays on CUDA are our own and so are their kernels; of CuPy come memory, streams, compiled programs and cuBLAS.
"""

from __future__ import annotations

import itertools
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import torchlite as torch
from tests.cuda.fake_backend import installed
from tests.cuda_simulator import kernel_compiler
from tests.cuda_simulator.driver import Simulated
from torchlite._settings.backend_flags import FLAGS
from torchlite_backends.cupy import cublas as blas
from torchlite_backends.cupy import cusolver as solver
from torchlite_backends.cupy.backend import CUDABackend
from torchlite_backends.device_runtime.core.array import Array
from torchlite_backends.device_runtime.linalg.gemm import GemmShape

pytestmark = pytest.mark.skipif(bool(kernel_compiler.missing()), reason=kernel_compiler.missing() or "-")


@pytest.fixture(scope="module")
def backend():
    with installed(other=CUDABackend(Simulated(count=2))) as made:
        yield made


@pytest.fixture
def cublas(backend):
    """The simulator's cuBLAS of device 0, its calls counted anew."""
    library = backend.device(0).blas.library
    library.calls = 0
    return library


def on(values, dtype=None):
    return torch.tensor(values, dtype=dtype, device="cuda")


def test_results_without_dimensions(backend):
    """A CuPy reduction gives a 0-d array on the device where NumPy gives a scalar on the host. Ours gives a 0-d Array,
    and nothing is copied to the host before it is read.
    """
    from torchlite_backends.device_runtime.core.host_transfer import TRANSFER_COUNTS

    x = on([[1.0, 5.0], [3.0, 2.0]])
    before = TRANSFER_COUNTS["to_host"]
    results = [x.sum(), x.mean(), x.max(), x.argmax(), x.any(), x.norm(), x[0, 1], x.sum() + 1, torch.dot(x[0], x[1])]
    assert (
        all(r.shape == () and type(r._tl_array) is Array and r.device.type == "cuda" for r in results)
        and TRANSFER_COUNTS["to_host"] == before
    )
    assert [r.item() for r in results] == [11.0, 2.75, 5.0, 1, True, pytest.approx(39**0.5), 5.0, 12.0, 13.0]
    x[0, 1] = x.sum()
    assert x.tolist() == [[1.0, 11.0], [3.0, 2.0]] and float(x.max()) == 11.0


KINDS = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.complex64]


@pytest.mark.parametrize("first, second", [*itertools.combinations(KINDS, 2)], ids=str)
def test_promotion(backend, first, second):
    """CuPy 13 and 14 promote differently from one another, and both from PyTorch (int64 with float16 is float64 in
    NumPy). The dtypes are computed before a kernel is chosen.
    """
    x, y = on([1, 2]).to(first), on([3, 4]).to(second)
    wanted = torch.promote_types(first, second)
    assert (x + y).dtype == (y + x).dtype == torch.where(on([True, False]), x, y).dtype == wanted
    assert (x * on(2).to(second)).dtype == (
        torch.ones(2, dtype=first) * torch.tensor(2, dtype=second)
    ).dtype  # a 0-d operand counts by its category


def test_python_numbers_do_not_promote(backend):
    """CuPy 13 looks at a Python number's value and CuPy 14 at its type only; PyTorch at its category."""
    assert (on([1], torch.int8) + 1000).dtype == torch.int8
    assert (on([1.0], torch.float16) * 2.5).dtype == torch.float16
    assert (on([1], torch.int32) * 2.5).dtype == torch.float32
    assert (on([1.0], torch.float32) * 1j).dtype == torch.complex64


@pytest.mark.parametrize(
    "take",
    [
        lambda x, i: x[i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.gather(0, i),
        lambda x, i: torch.take(x, i),
        lambda x, i: torch.nn.functional.embedding(i, x.reshape(-1, 1)),
    ],
    ids=["index", "index_select", "gather", "take", "embedding"],
)
@pytest.mark.parametrize("bad", [4, -5, 1 << 40])
def test_indices_out_of_bounds(backend, take, bad):
    """CuPy takes an index that is out of bounds modulo the length, in silence. Here it is an error, at the latest where
    the host waits, and nothing is read or written there.
    """
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        take(on([0.0, 1.0, 2.0, 3.0]), on([0, bad])).cpu()


def test_writes_out_of_bounds(backend):
    """CuPy would write to another element; PyTorch raises, and the elements around keep their values."""
    x = torch.zeros(6, device="cuda")
    inside = x[1:5]
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        inside[on([4])] = 1.0
        torch.cuda.synchronize()
    assert x.tolist() == [0.0] * 6


def test_an_index_that_occurs_twice(backend):
    """With CuPy it is undefined which value is stored at an index that occurs twice, and `x[i] += y` adds one of
    them. Adding here adds them all, gradients too.
    """
    i = on([1, 3, 1, 1])
    x = torch.zeros(5, device="cuda")
    x.index_add_(0, i, on([1.0, 2.0, 4.0, 8.0]))
    assert x.tolist() == [0, 13, 0, 2, 0]
    assert torch.zeros(5, device="cuda").index_put((i,), on([1.0, 2.0, 4.0, 8.0]), accumulate=True).tolist() == [
        0,
        13,
        0,
        2,
        0,
    ]
    assert torch.zeros(5, device="cuda").scatter_add(0, i, on([1.0, 2.0, 4.0, 8.0])).tolist() == [0, 13, 0, 2, 0]
    leaf = on([1.0, 2.0, 3.0, 4.0, 5.0]).requires_grad_()
    leaf[i].sum().backward()
    assert leaf.grad.tolist() == [0, 3, 0, 1, 0]
    many = torch.zeros(3, device="cuda")
    many.index_add_(0, torch.arange(3000, device="cuda") % 3, torch.ones(3000, device="cuda"))
    assert many.tolist() == [1000.0] * 3


def test_bfloat16_where_cupy_lacks_it(backend):
    """CuPy has bfloat16 through ml_dtypes and not everywhere: no FFT, few ufuncs, no random numbers. Ours is stored in
    16 bits and computed in float32 in every kernel.
    """
    x = torch.randn(40, 33, device="cuda", dtype=torch.bfloat16)
    host = x.float().cpu()
    for op in (
        torch.erf,
        torch.lgamma,
        torch.expm1,
        torch.asinh,
        lambda t: torch.softmax(t, 1),
        lambda t: t.cumsum(0),
        lambda t: torch.sort(t, 1).values,
        lambda t: torch.nn.functional.gelu(t),
        lambda t: torch.topk(t, 3).values,
        lambda t: t.var(0),
        lambda t: t @ t.T,
    ):
        got = op(x)
        assert got.dtype == torch.bfloat16 and got.device.type == "cuda"
        assert torch.allclose(got.float().cpu(), op(host), rtol=2e-2, atol=2e-2)
    assert torch.rand(1000, device="cuda", dtype=torch.bfloat16).float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert torch.equal(x.cpu(), torch.from_numpy(host.numpy().astype(ml_dtypes.bfloat16)))


def test_strides(backend):
    """RawKernel looks at no strides: it gets addresses. Every kernel here gets an operand's steps, or one that lies
    without gaps.
    """
    base = torch.arange(240.0).reshape(4, 6, 10)
    for view in (
        lambda t: t.transpose(0, 2),
        lambda t: t[:, ::2, 1::3],
        lambda t: t.permute(2, 0, 1)[3:],
        lambda t: t.flip(1)[:, :, 2],
    ):
        x, y = view(base.cuda()), view(base.clone())
        for op in (
            lambda t: t.sin() + t,
            lambda t: t.sum(-1),
            lambda t: t.softmax(0),
            lambda t: t.reshape(-1)[1:].cumsum(0),
            lambda t: torch.nn.functional.layer_norm(t, t.shape[-1:]),
        ):
            assert torch.allclose(op(x).cpu(), op(y), rtol=1e-5, atol=1e-4)
        x.add_(1.0)
        assert x.stride() == y.stride() and torch.equal(x.cpu(), y + 1)


@pytest.mark.parametrize("libraries", [True, False], ids=["cuBLAS", "own"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sums_of_half_precision(libraries, dtype):
    """A sum of 4096 ones in float16 stops at 2048, and in bfloat16 at 256. CuPy asks cuBLAS for float32 sums by its own
    switches; we always do, and so do our kernels.
    """
    with installed(other=CUDABackend(Simulated(libraries=libraries))):
        x, y = torch.ones(3, 4096, device="cuda", dtype=dtype), torch.ones(4096, 2, device="cuda", dtype=dtype)
        assert (x @ y).tolist() == [[4096.0] * 2] * 3 and x.sum().item() == 12288 and x.mean().item() == 1
        assert torch.nn.functional.linear(x, y.T.contiguous(), on([1.0, 2.0], dtype)).dtype == dtype


def test_functions_that_are_missing(backend):
    """CuPy lacks some of NumPy's functions, and those of SciPy that PyTorch has are in another package. None is needed:
    each of these ops has a kernel in the backend.
    """
    from torchlite._dispatch.backend_registry import has_kernel, table_of

    table = table_of(torch.device("cuda:0"))
    for name in (
        "digamma",
        "polygamma",
        "lgamma",
        "erfinv",
        "special_i0e",
        "special_zeta",
        "special_ndtri",
        "nextafter",
        "frexp",
        "heaviside",
        "logaddexp2",
        "gcd",
        "lcm",
        "median",
        "kthvalue",
        "mode",
        "unique_consecutive",
        "searchsorted",
        "histc",
        "cummax",
        "logcumsumexp",
        "lu_unpack",
        "linalg_ldl_factor_ex",
        "linalg_eig",
        "matrix_exp",
    ):
        assert has_kernel(table, name), name
    x = on([0.5, 1.5, 2.5])
    assert torch.allclose(torch.digamma(x).cpu(), torch.digamma(x.cpu())) and torch.allclose(
        torch.erfinv(x / 3).cpu(), torch.erfinv(x.cpu() / 3)
    )


def test_host_arrays_and_lists(backend):
    """CuPy's ufuncs refuse NumPy arrays and lists; PyTorch takes a number or a 0-d tensor of the CPU beside a CUDA
    tensor, and raises its own errors for others.
    """
    x = on([1.0, 2.0])
    assert (
        (x + torch.tensor(3.0)).tolist() == [4.0, 5.0]
        and (x * np.float64(2)).tolist() == [2.0, 4.0]
        and (x + True).tolist() == [2.0, 3.0]
    )
    with pytest.raises(
        RuntimeError,
        match="Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu",
    ):
        x + torch.ones(2)
    with pytest.raises(TypeError):
        torch.add(x, [1.0, 2.0])
    x[[0, 1]] = on([5.0, 6.0])
    assert x[np.array([1])].tolist() == [6.0] and x[torch.tensor([0])].tolist() == [5.0]


def test_each_device_uses_its_memory_pool(backend):
    """CuPy allocates and launches on the thread's current device, whatever the arrays are on. Here an array decides
    where its op runs; the current device is where new ones go.
    """
    first, second = (backend.device(i).driver for i in (0, 1))
    x = torch.ones(2000, device="cuda:1")
    assert second.pool.used_bytes() >= 8000 and torch.cuda.current_device() == 0
    before = first.launches, second.launches
    y = (x.sin() + 1).sum()
    assert y.device.index == 1 and first.launches == before[0] and second.launches > before[1]
    with torch.cuda.device(1):
        assert torch.zeros(2, device="cuda").device.index == 1
    with pytest.raises(RuntimeError, match="cuda:1 and cuda:0"):
        x[:1] + torch.ones(1, device="cuda:0")
    assert x.to("cuda:0").device.index == 0 and torch.equal(x.to("cuda:0").cpu(), x.cpu())


# -- cuFFT --


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_long_transforms_are_cuffts(backend, dtype, norm):
    """CuPy's transforms take no bfloat16, and return arrays with permuted strides; ours take them
    as they are.
    """
    driver = backend.device(0).driver
    x = torch.randn(24, 20, 40, dtype=dtype)
    ops = [
        lambda t: torch.fft.fft(t, norm=norm),
        lambda t: torch.fft.ifft2(t, norm=norm),
        lambda t: torch.fft.fftn(t.transpose(0, 2), dim=(0, 1), norm=norm),
        lambda t: torch.fft.irfft(t, n=77, norm=norm),
        lambda t: torch.fft.irfft2(t, norm=norm),
    ]
    if not dtype.is_complex:
        ops += [lambda t: torch.fft.rfft(t, norm=norm), lambda t: torch.fft.rfftn(t, norm=norm)]
    for op in ops:
        before, got, wanted = driver.transforms, op(x.cuda()), op(x)
        assert got.dtype == wanted.dtype and torch.allclose(got.cpu(), wanted, rtol=1e-4, atol=1e-3)
        assert (got + 1).sum().item() == pytest.approx((wanted + 1).sum().item(), rel=1e-3)
        assert driver.transforms > before or not dtype.is_complex  # a whole transform of real numbers is our own


def test_short_and_captured_transforms_avoid_cufft(backend):
    driver, x = backend.device(0).driver, torch.randn(40, 512, dtype=torch.complex64, device="cuda")
    before = driver.transforms
    torch.fft.fft(x[:2])
    assert driver.transforms == before
    torch.fft.fft(x)
    assert driver.transforms == before + 1
    backend.device(0).capturing = True
    try:
        from torchlite_backends.cupy.cufft import _is_faster

        assert not _is_faster(x._tl_array, (1,))
    finally:
        backend.device(0).capturing = False


# -- cuSOLVER --


@pytest.fixture
def cusolver(backend, monkeypatch):
    """The simulator's cuSOLVER of device 0, for small matrices too."""
    monkeypatch.setattr(solver, "MIN_SIZE", 3)
    device = backend.device(0)
    device.library_factorise("lu", torch.ones(1, 1, device="cuda")._tl_array)
    device._solver.library.calls = 0
    return device._solver.library


def matrices(dtype, *shape):
    x = torch.randn(shape, dtype=dtype)
    return x, x @ x.mH + 3 * torch.eye(shape[-2], dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_factors_of_large_matrices(cusolver, dtype):
    """CuPy's solvers return NaN if a matrix cannot be factored, and raise during capture; cuSOLVER
    reports the step that failed, and so do ours.
    """

    def near(got, wanted):
        return torch.allclose(got.cpu(), wanted, rtol=1e-3, atol=1e-3)

    x, positive = matrices(dtype, 2, 5, 7)
    square = x[..., :5] + 2 * torch.eye(5, dtype=dtype)
    assert near(torch.linalg.cholesky(positive.cuda()), torch.linalg.cholesky(positive))
    bad = positive.clone()
    bad[1, 3, 3] = -50
    info = torch.linalg.cholesky_ex(bad.cuda()).info
    assert info.tolist() == torch.linalg.cholesky_ex(bad).info.tolist() == [0, 4]
    for wide in (x, x.mT.contiguous(), square):
        lu, pivots = torch.linalg.lu_factor(wide.cuda())
        assert (
            near(lu, torch.linalg.lu_factor(wide)[0])
            and pivots.tolist() == torch.linalg.lu_factor(wide)[1].tolist()
            and pivots.dtype == torch.int32
        )
    assert near(torch.linalg.solve(square.cuda(), x.cuda()), torch.linalg.solve(square, x)) and near(
        torch.linalg.det(square.cuda()), torch.linalg.det(square)
    )
    calls = cusolver.calls
    for uplo in "LU":
        half = (torch.tril if uplo == "L" else torch.triu)(positive)
        values, vectors = torch.linalg.eigh(half.cuda(), UPLO=uplo)
        assert near(values, torch.linalg.eigvalsh(positive)) and near(
            positive.cuda() @ vectors, (vectors * values.unsqueeze(-2)).cpu()
        )
        assert near(torch.linalg.eigvalsh(half.cuda(), UPLO=uplo), values.cpu())
    assert cusolver.calls == calls + 8 and calls == 14


def test_small_matrices_avoid_cusolver(backend):
    assert backend.device(0).library_factorise("lu", torch.ones(255, 300, device="cuda")._tl_array) is None
    assert not backend.device(0)._solver.should_factor(
        torch.ones(300, 300, device="cuda", dtype=torch.float16)._tl_array
    )
    assert not backend.device(0)._solver.should_factor(torch.ones(17, 256, 256, device="cuda")._tl_array)


# -- cuBLAS --


LAYOUTS = {
    "rows": lambda m, n: torch.randn(m, n),
    "columns": lambda m, n: torch.randn(n, m).T,
    "part of rows": lambda m, n: torch.randn(m, n + 3)[:, 1 : n + 1],
    "part of columns": lambda m, n: torch.randn(n + 2, m + 5)[2:, 3 : m + 3].T,
    "steps of two": lambda m, n: torch.randn(m, 2 * n)[:, ::2],
    "repeated": lambda m, n: torch.randn(1, n).expand(m, n),
}


@pytest.mark.parametrize("sizes", [(5, 7, 3), (1, 8, 4), (6, 1, 5), (4, 9, 1), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_products_of_every_layout(cublas, sizes, first, second):
    """cuBLAS's matrices are column-major, with leading dimensions that it checks; what has other steps goes to our own
    kernel. Columns times rows, which have one term, are elementwise: a sum from 0 would lose -0.
    """
    m, k, n = sizes
    a, b = LAYOUTS[first](m, k), LAYOUTS[second](k, n)
    assert torch.allclose((a.cuda() @ b.cuda()).cpu(), a @ b, atol=1e-5)
    c = torch.randn(n)
    assert torch.allclose(
        torch.addmm(c.cuda(), a.cuda(), b.cuda(), beta=0.5, alpha=2).cpu(),
        torch.addmm(c, a, b, beta=0.5, alpha=2),
        atol=1e-5,
    )
    if "rows" in (first, second) and not {"steps of two", "repeated"} & {first, second}:
        assert cublas.calls == (0 if k == 1 < m else 2)


@pytest.mark.parametrize("first", ["rows", "columns", "later"])
@pytest.mark.parametrize("second", ["rows", "columns", "later"])
@pytest.mark.parametrize("sizes", [(24, 16, 8), (17, 32, 40), (1, 8, 4), (20, 12, 6)], ids=str)
def test_products_of_signed_levels(cublas, sizes, first, second):
    """cuBLAS multiplies int8 with int32 sums if addresses and leading dimensions are multiples of four."""
    m, k, n = sizes

    def levels(rows, columns, layout):
        flat = torch.randint(-128, 128, (rows * columns + 1,), dtype=torch.int8)
        start = int(layout == "later")
        if layout == "columns":
            return flat[:-1].view(columns, rows).t(), flat.cuda()[:-1].view(columns, rows).t()
        part = slice(start, start + rows * columns)
        return flat[part].view(rows, columns), flat.cuda()[part].view(rows, columns)

    (a, a_there), (b, b_there) = levels(m, k, first), levels(k, n, second)
    assert torch.equal(torch._int_mm(a_there, b_there).cpu(), a.int() @ b.int())
    leading = (m if first == "columns" and m > 1 else k, k if second == "columns" else n)
    is_aligned = "later" not in (first, second) and not any(x % 4 for x in leading)
    assert cublas.calls == int(is_aligned)


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.int32],
)
def test_products_of_every_dtype(cublas, dtype):
    a, b = torch.randn(6, 5, 4).to(dtype), torch.randn(6, 4, 3).to(dtype)
    tolerance = {torch.float16: 1e-2, torch.bfloat16: 1e-1}.get(dtype, 1e-5)
    assert torch.allclose(
        (a.cuda() @ b.cuda()).cpu().to(torch.complex128), (a @ b).to(torch.complex128), rtol=tolerance, atol=tolerance
    )
    assert cublas.calls == (0 if dtype == torch.int32 else 1)
    if dtype.is_complex:
        x, y = a.cuda().requires_grad_(), b.cuda()
        (x @ y).abs().sum().backward()
        xh = a.clone().requires_grad_()
        (xh @ b).abs().sum().backward()
        assert torch.allclose(x.grad.cpu(), xh.grad, atol=1e-5)


def test_batches(cublas):
    a, b = torch.randn(3, 1, 5, 4, 6), torch.randn(1, 2, 1, 6, 7)
    assert torch.allclose((a.cuda() @ b.cuda()).cpu(), a @ b, atol=1e-5)
    x = torch.randn(8, 10, 4, 6).transpose(1, 2)  # as heads of attention lie
    y = x.cuda()
    assert torch.allclose((y @ y.transpose(-1, -2)).cpu(), x @ x.transpose(-1, -2), atol=1e-5)


def test_tf32_only_with_allow_tf32(cublas, monkeypatch):
    """CuPy's switch for TF32 is private, and read once; PyTorch's can be set at any time."""
    monkeypatch.setattr(FLAGS, "precisions", dict(FLAGS.precisions))
    monkeypatch.setattr(FLAGS, "matmul_precision", FLAGS.matmul_precision)
    x = torch.full((1, 1), 1 + 2.0**-12, device="cuda")
    assert (x @ x).item() == pytest.approx((1 + 2.0**-12) ** 2, rel=1e-7)
    torch.backends.cuda.matmul.allow_tf32 = True
    assert (x @ x).item() == 1
    assert (x.double() @ x.double()).item() == pytest.approx((1 + 2.0**-12) ** 2, rel=1e-12)
    torch.backends.cuda.matmul.allow_tf32 = False
    assert (x @ x).item() > 1


def test_reduced_sums_can_be_forbidden(cublas, monkeypatch):
    monkeypatch.setattr(FLAGS, "allow_fp16_reduced_precision_reduction", True)
    x = torch.ones(2, 2, device="cuda", dtype=torch.float16)
    x @ x
    assert set(cublas.modes.values()) <= {0}
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    x @ x
    assert blas.NO_REDUCED_SUMS in cublas.modes.values()
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    x @ x
    assert set(cublas.modes.values()) == {0}


def test_streams_have_separate_workspaces(cublas):
    x, stream = torch.full((2, 2), 2.0, device="cuda"), torch.cuda.Stream()
    x @ x
    with torch.cuda.stream(stream):
        x @ x
    first = cublas.workspaces[stream.cuda_stream]
    x @ x
    with torch.cuda.stream(stream):
        assert (x @ x).tolist() == [[8.0] * 2] * 2
    assert cublas.workspaces[stream.cuda_stream] == first != cublas.workspaces[0]


def test_threads_in_separate_streams(backend, monkeypatch):
    """A handle has one stream at a time, and alpha and beta lie in one place: a product is not interrupted by another
    thread's.
    """
    x = torch.eye(3, device="cuda")
    wrong = []

    def set_numbers(self, alpha, beta, plain=blas.CublasGemm._set_numbers):
        plain(self, alpha, beta)
        time.sleep(0.001)  # another thread's turn

    monkeypatch.setattr(blas.CublasGemm, "_set_numbers", set_numbers)

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                if torch.addmm(x, x, x, alpha=number, beta=0)[2, 2].item() != number:
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_unsupported_gemms_are_declined(backend):
    """A conjugate is free only with a transposition; without an inner dimension there is nothing to sum."""
    made = backend.device(0).blas
    plain = GemmShape(4, 5, 3, (3, 1), (5, 1), (5, 1))
    assert blas.plan_cublas_gemm(made, "f32", plain, False, (False, False)) is not None
    for sizes, kind in ((plain, "i32"), (plain._replace(k=0), "f32"), (plain._replace(c=(1, 4)), "f32")):
        assert blas.plan_cublas_gemm(made, kind, sizes, False, (False, False)) is None
    assert blas.plan_cublas_gemm(made, "c64", plain, False, (True, False)) is None
    assert (
        blas.plan_cublas_gemm(made, "c64", plain._replace(a=(1, 4)), False, (True, False)).before[1] == blas.CONJUGATED
    )


def test_a_complex_factor_of_real_matrices_is_refused(cublas):
    x = on([[1.0, 2.0], [3.0, 4.0]])
    for factors in ({"beta": 1j}, {"alpha": 1j}):
        with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
            torch.addmm(x, x, x, **factors)


def test_an_error_of_cublas_is_raised():
    with pytest.raises(RuntimeError, match="CUBLAS_STATUS_ALLOC_FAILED"):
        blas.check_status(3)
