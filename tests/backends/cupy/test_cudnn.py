"""cuDNN under the CUDA backend: graphs as the real package takes them, which needs no GPU; and what runs them, on the
simulator.

There `tests/cuda_simulator/cudnn.py` stands in for the package.
"""

import itertools

import numpy as np
import pytest

import torchlite as torch
import torchlite.nn.functional as F
from tests.cuda.fake_backend import installed
from tests.cuda_simulator import cudnn as stand_in
from tests.cuda_simulator import kernel_compiler
from torchlite._dispatch import backend_registry
from torchlite.backends import cudnn as switches
from torchlite_backends.cupy import cudnn as module
from torchlite_backends.cupy import cudnn_attention, cudnn_conv
from torchlite_backends.device_runtime.core.array import row_major_layout
from torchlite_backends.device_runtime.nn.conv_shape import ConvShape

simulated = pytest.mark.skipif(bool(kernel_compiler.missing()), reason=kernel_compiler.missing())
TOLERANCE = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-10}


# --- the real package -----------------------------------------------------------------------------


@pytest.fixture
def real():
    """The package, when cuDNN itself is there too."""
    pytest.importorskip("cudnn", reason="nvidia-cudnn-frontend is not installed")
    found = module.import_frontend()
    if found is None:
        pytest.skip("nvidia-cudnn-frontend is installed and does not find cuDNN")
    return found


GEOMETRIES = [
    ConvShape(2, 16, 32, (14,), (7,), (3,), (2,), (1,), (1,), 1),
    ConvShape(2, 16, 32, (14, 12), (7, 12), (3, 3), (2, 1), (1, 1), (1, 1), 1),
    ConvShape(1, 16, 16, (9, 9), (5, 5), (3, 3), (1, 1), (0, 0), (2, 2), 4),
    ConvShape(2, 16, 16, (9, 9), (9, 9), (1, 1), (1, 1), (0, 0), (1, 1), 16),
    ConvShape(2, 16, 32, (8, 8, 8), (8, 8, 8), (3, 3, 3), (1, 1, 1), (2, 2, 2), (2, 2, 2), 2),
]


@pytest.mark.parametrize("what", ["forward", "backward", "weight"])
@pytest.mark.parametrize("kind", module.TYPES)
def test_convolutions_are_valid_graphs(real, what, kind):
    for g, last, capability in itertools.product(GEOMETRIES, (False, True), (75, 80, 90)):
        graph = module.Graph(real, None, capability, kind)
        cudnn_conv.describe_convolution(graph, what, g, kind, last)
        graph.made.validate()


def tensor(*shape, kind="f16"):
    return module.Tensor(shape, row_major_layout(shape)[1], kind)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_attention_is_a_valid_graph(real, kind, causal):
    for rows, features, values, capability in itertools.product((1, 64, 77), (32, 128), (64, 128), (80, 90)):
        query, key, value, out = (
            tensor(2, 4, *s, kind=kind) for s in ((rows, features), (80, features), (80, values), (rows, values))
        )
        lse = tensor(2, 4, rows, 1, kind="f32")
        graph = module.Graph(real, None, capability, kind)
        cudnn_attention.describe_forward(graph, [query, key, value], [out, lse], 0.1, causal)
        if real.__version__.startswith("1.18."):  # asks the device here
            continue
        graph.made.validate()
        graph = module.Graph(real, None, capability, kind)
        cudnn_attention.describe_backward(
            graph, [query, key, value, out, out, lse], [query, key, value], 0.1, causal, True
        )
        graph.made.validate()


def test_stand_in_has_names_of_the_package(real):
    public = lambda of: [name for name in vars(of) if name[0] != "_"]
    assert set(public(stand_in.Graph)) <= set(dir(real.pygraph))
    assert {name for name in public(stand_in.Tensor) if name.startswith("set_")} <= set(
        dir(type(real.pygraph().tensor(dim=[1], stride=[1])))
    )
    for ours, theirs in (
        (stand_in.DataType, real.data_type),
        (stand_in.HeurMode, real.heur_mode),
        (stand_in.NumericalNote, real.numerical_note),
    ):
        assert {kind.name for kind in ours} <= set(theirs.__members__)
    assert {"create_handle", "set_stream", "backend_version"} <= set(dir(real))


# --- running, with the stand-in -------------------------------------------------------------------


@pytest.fixture
def cudnn():
    """The stand-in, under a simulated CUDA device with no other library."""
    from tests.cuda_simulator.driver import Simulated
    from torchlite_backends.cupy.backend import CUDABackend

    made = stand_in.Cudnn()
    with installed(other=CUDABackend(Simulated(libraries=False, cudnn=made))):
        yield made


def library() -> module.Library:
    return torch.ones(1, device="cuda")._tl_array.device.state["cudnn"]


def calls(cudnn) -> list[str]:
    return [graph.call for graph in cudnn.graphs]


def compare(
    rng, x_shape, weight_shape, *, biased=True, dtype=torch.float32, channels_last=False, needs=(True, True), **options
):
    """A convolution and its gradients on the simulator and on the CPU."""
    spatial = len(x_shape) - 2
    options = {
        "stride": [1] * spatial,
        "padding": [0] * spatial,
        "dilation": [1] * spatial,
        "transposed": False,
        "output_padding": [0] * spatial,
        "groups": 1,
    } | options
    filters = weight_shape[1] * options["groups"] if options["transposed"] else weight_shape[0]
    draw = lambda *shape: torch.from_numpy(rng.standard_normal(shape)).to(dtype)
    tensors = [draw(*x_shape), draw(*weight_shape)] + ([draw(filters)] if biased else [])
    found, gradient = [], None
    for where in ("cpu", "cuda"):
        inputs = [t.detach().to(where) for t in tensors]
        if channels_last and where == "cuda":
            inputs[0] = inputs[0].contiguous(
                memory_format=torch.channels_last if spatial == 2 else torch.channels_last_3d
            )
        inputs = [t.requires_grad_(need) for t, need in zip(inputs, (*needs, True), strict=False)]
        out = torch.convolution(*inputs, *([] if biased else [None]), **options)
        gradient = draw(*out.shape) if gradient is None else gradient
        out.backward(gradient.to(where))
        found.append([out.detach()] + [t.grad for t in inputs if t.requires_grad])
    for want, got in zip(*found, strict=True):
        assert got.dtype is dtype and got.device.type == "cuda"
        bound = TOLERANCE[dtype] * max(1.0, float(want.double().abs().max()))
        torch.testing.assert_close(got.cpu().double(), want.double(), rtol=0, atol=bound)
    return found[1]


CONVOLUTIONS = {
    "2-d": ((2, 3, 9, 8), (4, 3, 3, 2), {"padding": [1, 0], "stride": [2, 1]}),
    "1-d": ((2, 3, 20), (4, 3, 5), {"stride": [3], "padding": [2], "dilation": [2]}),
    "3-d": ((1, 2, 5, 6, 7), (4, 2, 2, 3, 2), {"stride": [1, 2, 1], "padding": [1, 0, 1]}),
    "groups": ((2, 6, 7, 6), (9, 2, 3, 2), {"groups": 3, "biased": False}),
    "transposed": (
        (2, 6, 7, 5),
        (6, 4, 3, 3),
        {"transposed": True, "stride": [2, 3], "padding": [1, 1], "output_padding": [1, 2]},
    ),
    "transposed, groups": ((2, 6, 7), (6, 2, 4), {"transposed": True, "groups": 2, "dilation": [2]}),
    "half": ((2, 3, 9, 8), (4, 3, 3, 2), {"dtype": torch.float16}),
    "bfloat16": ((2, 3, 9, 8), (4, 3, 3, 2), {"dtype": torch.bfloat16}),
    "channels last": ((2, 3, 9, 8), (4, 3, 3, 2), {"channels_last": True, "dtype": torch.float16}),
    "channels last, 3-d": ((2, 3, 4, 5, 6), (4, 3, 1, 3, 2), {"channels_last": True}),
    "only the weight's gradient": ((2, 3, 9, 8), (4, 3, 3, 2), {"needs": (False, True)}),
}


@simulated
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(cudnn, rng, name):
    x, weight, options = CONVOLUTIONS[name]
    results = compare(rng, x, weight, **options)
    expected = ["conv_fprop", "conv_dgrad", "conv_wgrad"]
    if options.get("transposed"):
        expected = ["conv_dgrad", "conv_fprop", "conv_wgrad"]
    if "needs" in options:
        expected.remove("conv_dgrad")
    assert calls(cudnn) == expected and library().refused == {}
    if options.get("channels_last"):
        how = torch.channels_last if len(x) == 4 else torch.channels_last_3d
        assert all(t.is_contiguous(memory_format=how) for t in results[:2])


@simulated
def test_not_for_cudnn(cudnn, rng):
    compare(rng, (2, 3, 6, 6), (4, 3, 3, 3), dtype=torch.float64)
    compare(rng, (2, 4, 6, 6), (4, 1, 3, 3), groups=4)  # our own depthwise kernel
    assert torch.convolution(
        torch.ones(0, 3, 5, 5, device="cuda"),
        torch.ones(4, 3, 3, 3, device="cuda"),
        None,
        [1, 1],
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        1,
    ).shape == (0, 4, 3, 3)
    with switches.flags(enabled=False):
        compare(rng, (2, 3, 6, 6), (4, 3, 3, 3))
    assert cudnn.graphs == [] and cudnn.handles == 0
    with pytest.raises(RuntimeError, match="Given groups=1"):
        F.conv2d(torch.ones(1, 2, 5, 5, device="cuda"), torch.ones(4, 3, 3, 3, device="cuda"))


@simulated
def test_operands_where_they_do_not_lie_right(cudnn, rng):
    x = torch.from_numpy(rng.standard_normal(2 * 3 * 6 * 6 + 1).astype(np.float32))
    weight = torch.from_numpy(rng.standard_normal((3, 4, 3, 3)).astype(np.float32))
    convolve = lambda x, weight: F.conv2d(x[1:].reshape(2, 3, 6, 6).mT, weight.transpose(0, 1))
    torch.testing.assert_close(convolve(x.cuda(), weight.cuda()).cpu(), convolve(x, weight), atol=1e-4, rtol=1e-4)
    odd = x.cuda()[1:].reshape(2, 3, 6, 6)
    torch.testing.assert_close(
        F.conv2d(odd, weight.cuda().transpose(0, 1)).cpu(),
        F.conv2d(odd.cpu(), weight.transpose(0, 1)),
        atol=1e-4,
        rtol=1e-4,
    )
    assert len(cudnn.graphs) == 1 and library().runs == 2


@simulated
def test_plans_are_cached(cudnn, rng):
    for _ in range(2):
        compare(rng, (2, 3, 6, 6), (4, 3, 3, 3))
    compare(rng, (1, 3, 6, 6), (4, 3, 3, 3))
    assert len(cudnn.graphs) == 6 and cudnn.handles == 1
    assert (
        backend_registry.backend_of("cuda").runtime(0).cudnn_statistics()
        == library().statistics()
        == {"runs": 9, "plans": 6, "refused": 0}
    )
    assert all(graph.capability == 80 for graph in cudnn.graphs)


@simulated
def test_switches_select_the_implementation(cudnn, rng):
    def unwanted(dtype=torch.float32):
        x, weight = (torch.ones(shape, device="cuda", dtype=dtype) for shape in ((2, 3, 6, 6), (4, 3, 3, 3)))
        before = len(cudnn.graphs)
        F.conv2d(x, weight)
        F.conv2d(x, weight)
        assert len(cudnn.graphs) == before + 1
        return [note.name for note in cudnn.graphs[-1].unwanted]

    assert unwanted() == ["DOWN_CONVERT_INPUTS"]
    assert unwanted(torch.float16) == []
    with switches.flags(enabled=True, deterministic=True):
        assert unwanted() == ["DOWN_CONVERT_INPUTS", "NONDETERMINISTIC"]
    with switches.flags(enabled=True, allow_tf32=False):
        assert unwanted() == ["DOWN_CONVERT_INPUTS", "TENSOR_CORE"]


@simulated
def test_benchmark_takes_the_fastest(cudnn, rng):
    cudnn.slowness = 0.1
    with switches.flags(enabled=True, benchmark=True):
        compare(rng, (2, 3, 6, 6), (4, 3, 3, 3))
        compare(rng, (2, 3, 6, 6), (4, 3, 3, 3))
    assert [graph.executed for graph in cudnn.graphs] == [[1, 1, 2, 2, 2, 2]] * 3
    with switches.flags(enabled=True, benchmark=True, benchmark_limit=1):
        compare(rng, (1, 3, 6, 6), (4, 3, 3, 3))
    assert cudnn.graphs[-1].executed == [1, 1, 1]


@simulated
def test_refused_graphs_fall_back_to_torchlites_kernels(cudnn, rng):
    asked = []
    cudnn.refuses = lambda graph: asked.append(graph.call) or graph.call != "conv_fprop"
    for _ in range(2):
        compare(rng, (2, 3, 6, 6), (4, 3, 3, 3))
    assert asked == ["conv_fprop", "conv_dgrad", "conv_wgrad"] and library().runs == 2
    assert list(library().refused.values()) == ["GraphNotSupported: no valid engine configs for this graph"] * 2
    cudnn.fails = lambda graph: True
    compare(rng, (1, 3, 6, 6), (4, 3, 3, 3))
    assert "RuntimeError: CUDNN_STATUS_EXECUTION_FAILED" in library().refused.values()
    assert library().statistics() == {"runs": 2, "plans": 1, "refused": 5}


@simulated
def test_temporary_failures_are_retried(cudnn, rng, monkeypatch):
    x, weight = torch.ones(2, 3, 6, 6, device="cuda"), torch.ones(4, 3, 3, 3, device="cuda")
    with switches.flags(enabled=False):
        F.conv2d(x, weight)  # our own kernel writes a table, which a capture forbids
    cudnn.refuses = lambda graph: True
    monkeypatch.setattr(x._tl_array.device, "capturing", True)
    first = F.conv2d(x, weight)
    monkeypatch.undo()
    cudnn.refuses = lambda graph: False
    monkeypatch.setattr(stand_in, "WORKSPACE", 1 << 40)
    second = F.conv2d(x, weight)
    assert library().runs == 0
    monkeypatch.undo()
    library().plans.clear()  # the plan's workspace was recorded
    third = F.conv2d(x, weight)
    assert library().runs == 1 and library().refused == {}
    assert torch.equal(first, second) and torch.allclose(first, third)


@simulated
def test_work_runs_in_the_threads_stream(cudnn):
    x, weight = torch.ones(2, 3, 6, 6, device="cuda"), torch.ones(4, 3, 3, 3, device="cuda")
    F.conv2d(x, weight)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        F.conv2d(x, weight)
    F.conv2d(x, weight)
    assert cudnn.streams == [0, stream.cuda_stream, 0] and stream.cuda_stream != 0


@simulated
def test_graphs_capture_it(cudnn):
    x, weight = torch.ones(2, 3, 6, 6, device="cuda"), torch.ones(4, 3, 3, 3, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        F.conv2d(x, weight).relu()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = F.conv2d(x, weight).relu()
    assert library().runs == 2 and len(cudnn.graphs[0].executed) == 1
    assert [plan.graph for plan in library().captured.values()] == cudnn.graphs
    x.fill_(2)
    graph.replay()
    assert torch.equal(out.cpu(), torch.full((2, 4, 4, 4), 54.0)) and len(cudnn.graphs[0].executed) == 2


@simulated
def test_waiting_ops_start_first(cudnn):
    x = torch.ones(2, 4, 160, 160, device="cuda")
    for _ in range(3):
        out = F.conv2d((x * 2 + 1).relu(), torch.ones(2, 4, 1, 1, device="cuda"), torch.ones(2, device="cuda"))
        assert torch.equal(out.cpu(), torch.full((2, 2, 160, 160), 13.0))


def attention(
    rng, lead, rows, columns, features, values, *, causal=False, dtype=torch.float16, layout="", scale=None, mask=None
):
    """Attention and its gradients on the simulator, against products and a softmax in double precision."""

    def draw(*shape):
        if layout == "heads inside rows":
            return (
                torch.from_numpy(rng.standard_normal((shape[0], shape[2], shape[1], shape[3])))
                .to(dtype)
                .transpose(1, 2)
            )
        return torch.from_numpy(rng.standard_normal(shape)).to(dtype)

    given = [draw(*lead, rows, features), draw(*lead, columns, features), draw(*lead, columns, values)]
    grad = torch.from_numpy(rng.standard_normal((*lead, rows, values))).to(dtype)
    there = [x.cuda().requires_grad_() for x in given]
    assert layout == "" or not there[0].is_contiguous()
    out = F.scaled_dot_product_attention(*there, None if mask is None else mask.cuda(), is_causal=causal, scale=scale)
    found = [out.detach(), *torch.autograd.grad(out, there, grad.cuda())]
    query, key, value = (x.double().requires_grad_() for x in given)
    wanted = F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal, scale=scale)
    for got, want in zip(
        found, [wanted.detach(), *torch.autograd.grad(wanted, (query, key, value), grad.double())], strict=True
    ):
        assert got.dtype is dtype
        torch.testing.assert_close(
            got.cpu().double(), want, rtol=0, atol=TOLERANCE[dtype] * max(1.0, float(want.abs().max()))
        )
    return found


@simulated
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("lead", "sizes", "options"),
    [
        ((2, 3), (20, 20, 16, 16), {}),
        ((2, 3), (20, 33, 16, 24), {"dtype": torch.bfloat16, "scale": 0.3}),
        ((2, 3), (20, 20, 16, 16), {"layout": "heads inside rows"}),
        ((1, 3), (5, 7, 8, 8), {"layout": "heads inside rows"}),
        ((3,), (9, 4, 8, 8), {}),
        ((), (1, 6, 8, 16), {}),
    ],
)
def test_attention(cudnn, rng, monkeypatch, lead, sizes, causal, options):
    monkeypatch.setattr(cudnn_attention, "CALLS_BEFORE_BUILD", 0)
    out, *_ = attention(rng, lead, *sizes, causal=causal, **options)
    assert calls(cudnn) == ["sdpa", "sdpa_backward"] and library().refused == {}
    if lead == (2, 3) and options.get("layout"):
        assert out.transpose(1, 2).is_contiguous()


@simulated
def test_attention_not_for_cudnn(cudnn, rng):
    attention(rng, (2,), 5, 6, 8, 8, dtype=torch.float32)
    attention(rng, (2,), 5, 6, 12, 8)
    attention(rng, (2,), 5, 6, 8, 8, mask=torch.ones(5, 6, dtype=torch.bool).tril())
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        attention(rng, (2,), 5, 6, 8, 8)
    assert cudnn.graphs == []


@simulated
def test_attention_uses_cudnn_for_repeated_shapes(cudnn, rng):
    for _ in range(2):
        attention(rng, (2,), 5, 6, 8, 8)
    assert cudnn.graphs == []
    for _ in range(2):
        attention(rng, (2,), 5, 6, 8, 8)
    assert calls(cudnn) == ["sdpa", "sdpa_backward"] and library().runs == 4
    with switches.flags(enabled=True, deterministic=True):
        attention(rng, (2,), 7, 6, 8, 8)
    assert (
        calls(cudnn)[2:] == ["sdpa", "sdpa_backward"] and cudnn.graphs[-1].same_bits and not cudnn.graphs[1].same_bits
    )


@simulated
def test_attention_that_cudnn_refuses(cudnn, rng, monkeypatch):
    monkeypatch.setattr(cudnn_attention, "CALLS_BEFORE_BUILD", 0)
    cudnn.refuses = lambda graph: graph.call == "sdpa_backward"
    attention(rng, (2,), 5, 6, 8, 8, causal=True)  # our own backward reads cuDNN's logs
    assert calls(cudnn) == ["sdpa"] and library().statistics() == {"runs": 1, "plans": 1, "refused": 1}


@simulated
def test_the_front_end_knows(cudnn):
    assert switches.is_available() and switches.version() == stand_in.VERSION
    assert backend_registry.backend_of("cuda").describe(0).endswith(f"cuDNN {stand_in.VERSION}")
    assert backend_registry.backend_of("cuda").runtime(0).cudnn_statistics() == {"runs": 0, "plans": 0, "refused": 0}


class Old(stand_in.Cudnn):
    def backend_version(self):
        return 8907


class Lost(stand_in.Cudnn):
    def backend_version(self):
        raise RuntimeError("Unable to find symbol cudnnGetVersion")


@pytest.mark.parametrize(
    "found", [None, Old(), Lost(), stand_in.Cudnn()], ids=["no package", "too old", "no library", "there"]
)
def test_whether_it_is_there(monkeypatch, found):
    import sys

    monkeypatch.setitem(sys.modules, "cudnn", found)
    module.import_frontend.cache_clear()
    try:
        assert module.import_frontend() is (found if type(found) is stand_in.Cudnn else None)
    finally:
        module.import_frontend.cache_clear()
