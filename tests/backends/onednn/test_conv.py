"""Convolutions by oneDNN are NumPy's up to rounding, whatever their shape and layout, and the same for any number of
threads. What finds the library is tested without one.
"""

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import torchlite as torch
from torchlite._settings import thread_count
from torchlite_backends.numpy import conv_geometry, conv_onednn, winograd
from torchlite_backends.onednn import conv_heuristics, conv_partition, library

FOUND = library.find_library()
installed = pytest.mark.skipif(FOUND.library is None, reason=f"oneDNN is not used: {FOUND.why_not}")
F = torch.nn.functional
winograd_fits = winograd.get_transposing_copy(np.dtype("f4")) is not None
# batch, channels, filters, size, kernel, then stride, padding, dilation, groups
SHAPES = [
    (4, 64, 64, (30, 30), 3, 1, 1),
    (3, 5, 7, (9, 11), 3),
    (2, 3, 64, (64, 64), 7, 2, 3),
    (2, 1, 32, (28, 28), 3),
    (16, 128, 128, (4, 4), 3, 1, 1),
    (1, 256, 256, (7, 7), 3, 1, 1),
    (1, 32, 48, (129, 65), 3, 2, 1),
    (1, 16, 16, (40, 40), 3, 3, 0),
    (2, 64, 128, (15, 15), 1, 2),
    (4, 128, 64, (28, 28), 1),
    (2, 33, 17, (13, 13), (3, 2), (2, 1), (1, 0), (1, 2)),
    (8, 96, 96, (28, 28), 3, 1, 1, 1, 96),
    (1, 96, 96, (56, 56), 3, 2, 1, 1, 96),
    (2, 96, 96, (56, 56), 3, 1, 1, 1, 96),
    (2, 48, 48, (30, 30), 5, 1, 2, 1, 48),
    (2, 8, 8, (40, 40), 3, 1, 2, 2, 8),
    (3, 64, 64, (28, 28), 3, 1, 1, 1, 4),
    (2, 64, 64, (14, 14), 3, 1, 1, 1, 16),
    (8, 32, 32, (2000,), 3, 1, 4, 4),
    (1, 64, 64, (3000,), 2, 1, 0, 16),
    (2, 24, 24, (101,), 5, 2, 3, 1, 3),
    (2, 16, 32, (8, 16, 16), 3, 1, 1),
    (1, 8, 8, (20, 30, 30), (3, 1, 1), 1, (1, 0, 0)),
    (1, 4, 4, (1, 1), 1),
    (1, 64, 64, (66, 66), 3, 1, 0, 4),
]
LAYOUTS = ["row-major", "channels last", "with gaps"]


@pytest.fixture(autouse=True, scope="module")
def small_pieces():
    """Small shapes are cut as large ones are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conv_partition, "_MIN_MULS", 1 << 20)
        patch.setattr(conv_partition, "_MIN_ELEMENTS", 1 << 15)
        conv_onednn._load_convolutions.cache_clear()
        yield
    conv_onednn._load_convolutions.cache_clear()


def drawn(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def laid(array, layout):
    """A tensor of the same elements."""
    if layout == "channels last" and array.ndim > 2:
        array = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
    elif layout == "with gaps":
        array = np.repeat(array, 2, -1)[..., ::2]
    return torch.from_numpy(array)


def geometry(case):
    batch, channels, filters, size, kernel, *rest = case
    stride, padding, dilation, groups = (*rest, *(1, 0, 1, 1)[len(rest) :])
    every = lambda v: v if isinstance(v, tuple) else (v,) * len(size)
    return batch, channels, filters, size, every(kernel), every(stride), every(padding), every(dilation), groups


def results(case, layout="row-major", bias=True, transposed=False):
    """A convolution, and the gradients of its input, weight and bias."""
    batch, channels, filters, size, kernel, stride, padding, dilation, groups = geometry(case)
    ends = (channels, filters // groups) if transposed else (filters, channels // groups)
    x = laid(drawn((batch, channels, *size), 0), layout).requires_grad_()
    w = torch.from_numpy(drawn((*ends, *kernel), 1)).requires_grad_()
    b = torch.from_numpy(drawn((filters,), 2)).requires_grad_() if bias else None
    call = getattr(F, f"conv{'_transpose' if transposed else ''}{len(size)}d")
    words = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = call(x, w, b, **words)
    y.backward(laid(drawn(tuple(y.shape), 3), layout))
    return [y.detach(), x.grad, w.grad, *([] if b is None else [b.grad])]


def by_numpy(*args, **words):
    with torch.backends.mkldnn.flags(enabled=False):
        return results(*args, **words)


def assert_close(found, expected):
    for a, b in zip(found, expected, strict=True):
        a, b = a.numpy(), b.numpy()
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=4e-6 * max(1.0, np.abs(b).max(initial=0)))


@pytest.fixture
def counted(monkeypatch):
    """How many pieces of work oneDNN got, which computes all that it can, also what it is not the fastest at."""
    from torchlite_backends.onednn.primitives import Task

    monkeypatch.setattr(conv_onednn, "_is_faster", lambda kind, geometry: True)
    monkeypatch.setattr(conv_onednn, "_is_winograd_faster", lambda plan, dtype: False)
    conv_onednn._geometry_if_faster.cache_clear()

    runs, run = [], Task.run
    monkeypatch.setattr(Task, "run", lambda self, addresses: (runs.append(1), run(self, addresses)))
    yield runs
    conv_onednn._geometry_if_faster.cache_clear()


@installed
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_values_and_gradients(case, layout, counted):
    found = results(case, layout)
    assert counted
    assert_close(found, by_numpy(case, layout))


@installed
@pytest.mark.parametrize("case", SHAPES[:3] + SHAPES[11:13] + SHAPES[18:21], ids=str)
def test_transposed(case, counted):
    found = results(case, transposed=True)
    assert counted
    assert_close(found, by_numpy(case, transposed=True))


@installed
@pytest.mark.parametrize("case", [SHAPES[0], SHAPES[9], SHAPES[11], SHAPES[18], SHAPES[21]], ids=str)
def test_the_bias_is_added_by_onednn(case, counted):
    """A layout of the bias that oneDNN refuses would leave the forward pass to NumPy."""
    batch, channels, filters, size, kernel, stride, padding, dilation, groups = geometry(case)
    x, w = drawn((batch, channels, *size), 0), drawn((filters, channels // groups, *kernel), 1)
    call = getattr(F, f"conv{len(size)}d")
    b = torch.from_numpy(drawn((filters,), 2))
    call(torch.from_numpy(x), torch.from_numpy(w), b, stride, padding, dilation, groups)
    assert counted


@installed
def test_without_a_bias_and_from_gradients_that_are_one_number(counted):
    case = SHAPES[0]
    assert_close(results(case, bias=False), by_numpy(case, bias=False))
    w = torch.from_numpy(drawn((8, 8, 3, 3), 1)).requires_grad_()
    x = torch.from_numpy(drawn((2, 8, 9, 9), 0)).requires_grad_()
    F.conv2d(x, w).sum().backward()  # its gradient has steps of nothing
    found = [x.grad, w.grad]
    x.grad = w.grad = None
    with torch.backends.mkldnn.flags(enabled=False):
        F.conv2d(x, w).sum().backward()
    assert_close(found, [x.grad, w.grad])


@installed
def test_channels_last_stays(counted):
    y, grad, *_ = results(SHAPES[0], "channels last")
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert grad.is_contiguous(memory_format=torch.channels_last)


@installed
def test_weights_written_through_numpy_are_seen():
    w, x = torch.from_numpy(drawn((8, 8, 3, 3), 1)), torch.from_numpy(drawn((2, 8, 9, 9), 0))
    with torch.no_grad():
        before = F.conv2d(x, w)
        w.numpy()[...] *= 2
        assert torch.allclose(F.conv2d(x, w), 2 * before, rtol=1e-5, atol=1e-5)


@installed
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_no_numbers(value):
    x = drawn((2, 16, 12, 12), 0)
    x[0, 3, 5, 6] = value
    w = drawn((16, 16, 3, 3), 1)
    found = F.conv2d(torch.from_numpy(x), torch.from_numpy(w), padding=1).numpy()
    with torch.backends.mkldnn.flags(enabled=False):
        expected = F.conv2d(torch.from_numpy(x), torch.from_numpy(w), padding=1).numpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))
    assert np.isfinite(found[1]).all()


@installed
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
def test_other_dtypes_are_left_to_numpy(dtype, counted):
    F.conv2d(torch.ones(1, 2, 5, 5, dtype=dtype), torch.ones(2, 2, 3, 3, dtype=dtype))
    assert not counted


@installed
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single_and_rounded_once(dtype):
    x, w = torch.from_numpy(drawn((2, 16, 9, 9), 0)).to(dtype), torch.from_numpy(drawn((8, 16, 3, 3), 1)).to(dtype)
    assert torch.equal(F.conv2d(x, w), F.conv2d(x.float(), w.float()).to(dtype))


@installed
@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (2, 3, 3, 3)])
def test_nothing_and_one_place(shape):
    x, w = torch.ones(shape, requires_grad=True), torch.ones(4, 3, 3, 3, requires_grad=True)
    y = F.conv2d(x, w)
    y.sum().backward()
    assert y.shape == (shape[0], 4, shape[2] - 2, shape[3] - 2) and x.grad.shape == shape
    assert (w.grad == shape[0] * (shape[2] - 2) * (shape[3] - 2)).all()


@installed
def test_second_derivatives():
    x = torch.from_numpy(drawn((2, 4, 6, 6), 0)).requires_grad_()
    w = torch.from_numpy(drawn((4, 2, 3, 3), 1)).requires_grad_()

    def twice():
        y = F.conv2d(x, w, padding=1, groups=2)
        (g,) = torch.autograd.grad((y**3).sum(), x, create_graph=True)
        return torch.autograd.grad((g**2).sum(), [x, w])

    found = twice()
    with torch.backends.mkldnn.flags(enabled=False):
        assert_close(found, twice())


@installed
@pytest.mark.parametrize("case", [SHAPES[0], SHAPES[5], SHAPES[11], SHAPES[13], SHAPES[18]], ids=str)
def test_any_number_of_threads_gives_the_same_bits(case, monkeypatch):
    found = []
    for count in (1, 2, 3):
        monkeypatch.setattr(thread_count, "_count", count)
        found.append([a.numpy().tobytes() for a in results(case)])
    assert found[0] == found[1] == found[2]


@installed
def test_threads_of_the_user_at_once():
    expected = [a.numpy().tobytes() for a in results(SHAPES[0])]
    wrong = []

    def work():
        for _ in range(5):
            if [a.numpy().tobytes() for a in results(SHAPES[0])] != expected:
                wrong.append(1)

    users = [threading.Thread(target=work) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert not wrong


def _in_a_child(queue):
    queue.put([a.numpy().tobytes() for a in results(SHAPES[0])])


@installed
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_children_compute_the_same(monkeypatch):
    monkeypatch.setattr(thread_count, "_count", 2)
    expected = [a.numpy().tobytes() for a in results(SHAPES[0])]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_a_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == expected
    child.join()


@installed
def test_the_switch(counted):
    x, w = torch.ones(1, 16, 8, 8), torch.ones(16, 16, 3, 3)
    with torch.backends.mkldnn.flags(enabled=False):
        F.conv2d(x, w)
    assert not counted
    F.conv2d(x, w)
    assert counted and torch.backends.mkldnn.is_available()


@installed
def test_ways_that_oned_nn_is_slow_at_are_left_to_numpy(monkeypatch, counted):
    from torchlite_backends.onednn import primitives

    monkeypatch.setattr(primitives, "is_fast", lambda library, description: False)
    conv_onednn._load_convolutions.cache_clear()
    try:
        found = results(SHAPES[0])
    finally:
        conv_onednn._load_convolutions.cache_clear()
    assert not counted
    assert_close(found, by_numpy(SHAPES[0]))


@installed
def test_the_openmp_thread_count_is_restored():
    served = FOUND.library
    served._set_threads(3)
    F.conv2d(torch.ones(1, 16, 8, 8), torch.ones(16, 16, 3, 3))
    assert served._get_threads() == 3


@installed
@pytest.mark.parametrize(
    "case,served",
    [
        ((4, 64, 64, (30, 30), 3, 1, 1), True),
        ((8, 96, 96, (28, 28), 3, 1, 1, 1, 96), True),
        ((4, 128, 64, (28, 28), 1), False),  # one matrix product
        ((4, 128, 128, (28, 28), 3, 1, 1), not winograd_fits),
        ((1, 128, 128, (14, 14), 3, 1, 1), True),
    ],
    ids=str,
)
def test_only_large_convolutions_use_onednn(case, served, monkeypatch):
    from torchlite_backends.onednn.primitives import Task

    runs, run = [], Task.run
    monkeypatch.setattr(Task, "run", lambda self, addresses: (runs.append(1), run(self, addresses)))
    results(case)
    assert bool(runs) == served


# -- without the library ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case,kinds",
    [
        ((2, 3, 64, (64, 64), 7, 2, 3), "forward weights"),
        ((2, 64, 64, (64, 64), 3, 1, 1), "forward data weights"),
        ((2, 64, 1, (64, 64), 3, 1, 1), ""),
        ((2, 64, 64, (2000,), 2, 1, 0, 16), ""),
        ((1, 64, 64, (2000,), 2, 1, 0, 16), "forward data weights"),
        ((2, 33, 17, (13, 13), 3), ""),
        ((2, 24, 24, (101,), 5, 2, 3, 1, 24), ""),
        ((2, 8, 8, (40, 40), 3, 1, 2, 2, 8), "forward data weights"),
        ((2, 20, 40, (30, 30), 5, 1, 2, 1, 20), "forward"),
        ((2, 64, 64, (14, 14), 3, 1, 1, 1, 16), "forward data"),
        ((2, 16, 16, (8, 16, 16), 3, 1, 1, 1, 16), "forward data"),
    ],
    ids=str,
)
def test_rules(case, kinds):
    g = conv_partition.ConvShape(*geometry(case), ())
    assert [
        kind
        for kind in (conv_partition.FORWARD, conv_partition.DATA, conv_partition.WEIGHTS)
        if conv_heuristics.is_faster(kind, g)
    ] == kinds.split()


@pytest.mark.parametrize("kind", [conv_partition.FORWARD, conv_partition.DATA, conv_partition.WEIGHTS])
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_pieces_cover_the_convolution(case, kind):
    """NumPy computes each piece as a separate convolution."""
    batch, channels, filters, size, kernel, stride, padding, dilation, groups = geometry(case)
    plan = conv_geometry.get_conv_geometry(batch, channels, filters, size, kernel, stride, padding, dilation, groups)
    g = conv_partition.ConvShape(batch, channels, filters, size, kernel, stride, padding, dilation, groups, plan.out)
    made = np.zeros((batch, channels, *size) if kind == conv_partition.DATA else (batch, filters, *plan.out), np.int64)
    for piece in conv_partition.split_into_pieces(g, kind):
        rows, ends = (
            (piece.source_rows, piece.channels) if kind == conv_partition.DATA else (piece.target_rows, piece.filters)
        )
        made[slice(*piece.images), slice(*ends), slice(*rows)] += 1
        height = piece.source_rows[1] - piece.source_rows[0] + piece.low + piece.high
        reach = dilation[0] * (kernel[0] - 1) + 1
        assert (height - reach) // stride[0] + 1 == piece.target_rows[1] - piece.target_rows[0]
        # The first row of the piece's first window is where the whole one has it.
        assert piece.source_rows[0] - piece.low == piece.target_rows[0] * stride[0] - padding[0]
    assert (made == 1).all()


def found_in(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )


SHOWN = "import torchlite as torch; print(torch.backends.mkldnn.is_available())"


def test_switched_off_by_the_environment():
    assert found_in(SHOWN, TORCHLITE_ONEDNN="0").stdout.strip() == "False"


def test_a_file_that_will_not_do_is_an_error():
    code = "import torchlite as torch; torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))"
    run = found_in(code, TORCHLITE_ONEDNN="/nowhere/libdnnl.so.3")
    assert run.returncode and "TORCHLITE_ONEDNN" in run.stderr and "/nowhere/libdnnl.so.3" in run.stderr


def test_info_names_the_library_or_the_reason():
    from torchlite._cli.info import format_report

    (line,) = [line for line in format_report().splitlines() if line.startswith("  oneDNN ")]
    assert (FOUND.library.path if FOUND.library else FOUND.why_not) in line


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setattr(library, "_list_candidate_paths", lambda: ["libnone.so.3"])
    monkeypatch.delenv("TORCHLITE_ONEDNN", raising=False)
    found = library.find_library.__wrapped__()
    assert found.library is None and "pip install 'torchlite-nd[onednn]'" in found.why_not


def test_importing_torchlite_looks_for_nothing():
    code = (
        "import sys, torchlite; torchlite.ones(2) + 1; print([m for m in sys.modules if "
        "'torchlite_backends.onednn' in m])"
    )
    assert found_in(code).stdout.strip() == "[]"


class Version:
    """Version struct of a library."""

    def __init__(self, major, runtime):
        self.contents = library._Version(major, 1, 2, b"", runtime, 0)


@pytest.mark.parametrize(
    "major,runtime,words",
    [(2, 2, "version 3 is needed"), (3, 4, "built for TBB"), (3, 512, "built for SYCL"), (4, 2, "is oneDNN 4.1")],
)
def test_libraries_that_will_not_do(monkeypatch, major, runtime, words):
    class Dll:
        def dnnl_version(self):
            return Version(major, runtime)

    class Function:
        argtypes = restype = None

        def __call__(self):
            return Version(major, runtime)

    dll = Dll()
    dll.dnnl_version = Function()
    monkeypatch.setattr(library.ctypes, "CDLL", lambda path: dll)
    with pytest.raises(OSError, match=words):
        library._load_library("/some/libdnnl.so")
