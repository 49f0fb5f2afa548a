"""Integer products against onnxruntime's recorded results, level by level."""

from __future__ import annotations

import io
import pathlib
import warnings
import zipfile

import numpy as np
import pytest

import torchlite as torch
from tests.ao.nn.quantized import scripted
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS

ARCHIVE = pathlib.Path(__file__).parent / "files" / "quantized.zip"
with zipfile.ZipFile(ARCHIVE) as _archive:
    CASES = sorted(name[:-5] for name in _archive.namelist() if name.endswith(".onnx"))
OPS = [case for case in CASES if not case.startswith("graph_")]
GRAPHS = [case for case in CASES if case.startswith("graph_")]


def read(case):
    """The model's bytes, its inputs and its results."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        arrays = np.load(io.BytesIO(archive.read(f"{case}.npz")))
        return (
            archive.read(f"{case}.onnx"),
            [arrays[name] for name in arrays if name[0] == "i"],
            [arrays[name] for name in arrays if name[0] == "o"],
        )


def run(module, inputs):
    found = module(*inputs)
    return [x.cpu().numpy() for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("case", OPS)
def test_op(case, device):
    model, given, wanted = read(case)
    module = torch.onnx.load(model).to(device)
    inputs = [torch.from_numpy(value).to(device) for value in given]
    with torch.no_grad():
        for _ in range(5):  # the later ones are optimized
            for got, want in zip(run(module, inputs), wanted, strict=True):
                assert got.dtype == want.dtype and np.array_equal(got, want)


@pytest.mark.parametrize("case", GRAPHS)
def test_graph(case, device):
    """Eager calls compute in floats, optimized ones on levels."""
    model, given, wanted = read(case)
    module = torch.onnx.load(model).to(device)
    inputs = [torch.from_numpy(value).to(device) for value in given]
    with torch.no_grad():
        for number in range(5):
            (got,), (want,) = run(module, inputs), wanted
            assert got.dtype == want.dtype
            if number == 4 and device == "cpu":
                assert np.array_equal(got, want)
            elif want.dtype.kind == "f":
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
            else:
                assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
    if device == "cpu":
        (function,) = [found for found in COMPILED_FUNCTIONS if found.module() is module]
        (variant,) = [v for found in function.variants.values() for v in found if v.replay is not None]
        text = variant.replay.forward.text
        assert "_quantized_" in text
        assert not any(f"= {name}(" in text for name in ("matmul", "linear", "convolution"))
        if "dynamic" in case:  # the product adds the bias, and multiplies by the scale
            assert not any(f"= {name}(" in text for name in ("to", "add"))


class FakeQuantized(torch.nn.Module):
    """A layer with fake quantization of each kind, to ranges that ONNX has and that it clips to."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 4)
        self.register_buffer("scales", torch.tensor([0.01, 0.02, 0.03, 0.04]))
        self.register_buffer("zeros", torch.tensor([0, 3, -2, 1], dtype=torch.int32))

    def forward(self, x):
        x = torch.fake_quantize_per_tensor_affine(x, 0.02, 30, 0, 127)
        weight = torch.fake_quantize_per_channel_affine(self.layer.weight, self.scales, self.zeros, 0, -127, 127)
        out = torch.nn.functional.linear(x, weight, self.layer.bias)
        return torch.fake_quantize_per_tensor_affine(
            out, torch.tensor([0.01]), torch.tensor([100], dtype=torch.int32), 0, 255
        )


class Decomposed(torch.nn.Module):
    """A layer with 8-bit weights, whose inputs are quantized by their range."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (4, 6), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(4) / 50)
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))

    def forward(self, x):
        ops = torch.ops.quantized_decomposed
        scale, zero = ops.choose_qparams.tensor(x, 0, 255, 1e-7, torch.uint8)
        levels = ops.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
        x = ops.dequantize_per_tensor.tensor(levels, scale, zero, 0, 255, torch.uint8)
        weight = ops.dequantize_per_channel.default(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8)
        out = torch.nn.functional.linear(x, weight)
        return ops.quantize_per_tensor.default(out, 0.01, 3, -128, 127, torch.int8)


class Levels(torch.nn.Module):
    """The integer steps of a dynamically quantized product."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (6, 4), dtype=torch.int8))

    def forward(self, x):
        levels, scale, zero = torch.ops.torchlite._dynamic_quantize(x)
        return torch.ops.torchlite._quantized_matmul(levels, self.weight, zero).to(torch.float32) * scale


@pytest.mark.parametrize("kind", [FakeQuantized, Decomposed, Levels])
def test_quantization_is_written(kind):
    import torchlite.ao.quantization.fx._decomposed  # noqa: F401 (registers the ops)

    torch.manual_seed(0)
    module, x = kind().eval(), torch.randn(5, 6)
    program = torch.onnx.export(module, (x,))
    names = {node.op_type for node in program.model.graph.node}
    assert names >= ({"QuantizeLinear", "DequantizeLinear"} if kind is not Levels else {"MatMulInteger"})
    with torch.no_grad():
        want, got = module(x), torch.onnx.load(program.to_bytes())(x)
    assert got.dtype is want.dtype and torch.equal(got, want)


def test_a_network_trained_with_fake_quantization_is_written():
    import torchlite.ao.quantization as ao
    from torchlite import nn

    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)).train()
    net.qconfig = ao.QConfig(
        ao.FusedMovingAvgObsFakeQuantize.with_args(quant_min=0, quant_max=255, dtype=torch.quint8),
        ao.FusedMovingAvgObsFakeQuantize.with_args(
            observer=ao.MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8,
            qscheme=torch.per_channel_symmetric,
        ),
    )  # fmt: skip
    x = torch.randn(2, 3, 6, 6)
    prepared = ao.prepare_qat(net)
    prepared(x)
    prepared.eval().apply(ao.disable_observer)
    program = torch.onnx.export(prepared, (x,))
    with torch.no_grad():
        want, got = prepared(x), torch.onnx.load(program.to_bytes())(x)
    assert sum(node.op_type == "QuantizeLinear" for node in program.model.graph.node) >= 4
    assert torch.equal(got, want)
    prepared.apply(ao.disable_fake_quant)
    program = torch.onnx.export(prepared, (x,))
    assert not any(node.op_type == "QuantizeLinear" for node in program.model.graph.node)


@pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max")
@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("name", ["static", "trained"])
def test_eager_quantized_networks_are_written(name, dynamo):
    """Their ops are floats between DequantizeLinear and QuantizeLinear, and weights are levels."""
    net, x = scripted.NETWORKS[name](torch)
    stream = io.BytesIO()
    torch.onnx.export(net, (x,), stream, dynamo=dynamo)
    data = stream.getvalue()
    assert data.count(b"QuantizeLinear") >= 10 and b"HardSwish" in data
    assert torch.equal(torch.onnx.load(io.BytesIO(data))(x), net(x))
    assert net(x).isfinite().all() and type(net.quant.scale) is torch.Tensor  # the network is as it was


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
def test_dynamic_layers_and_embeddings_are_written(dtype):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.layer = torch.nn.Embedding(9, 12), torch.nn.Linear(12, 8)

        def forward(self, x):
            return self.layer(self.table(x))

    torch.manual_seed(0)
    net, x, quantization = Net().eval(), torch.tensor([[1, 2, 8], [0, 0, 3]]), torch.ao.quantization
    net.table.qconfig = quantization.float_qparams_weight_only_qconfig
    net = quantization.convert(quantization.prepare(net))
    net = quantization.quantize_dynamic(net, {torch.nn.Linear}, dtype=getattr(torch, dtype))
    stream = io.BytesIO()
    torch.onnx.export(net, (x,), stream, dynamo=False)
    stream.seek(0)
    torch.testing.assert_close(torch.onnx.load(stream)(x), net(x), rtol=1e-5, atol=1e-5)


class FirstResult(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args):
        return self.module(*args)[0]


def dynamic(module):
    kinds = {torch.nn.Linear, torch.nn.LSTM, torch.nn.GRU, torch.nn.LSTMCell, torch.nn.GRUCell, torch.nn.RNNCell}
    return torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(module).eval(), kinds)


def table(kind, dtype, **options):
    made = kind(10, 16, **options)
    names = {torch.quint8: "", torch.quint4x2: "_4bit"}
    made.qconfig = getattr(torch.ao.quantization, f"float_qparams_weight_only_qconfig{names[dtype]}")
    return getattr(torch.ao.nn.quantized, kind.__name__).from_float(made)


nn, quantized = torch.nn, torch.ao.nn.quantized
INDICES, OFFSETS = torch.tensor([1, 2, 3, 4, 5, 9]), torch.tensor([0, 2, 5])
BYTES, FOUR_BITS = torch.quint8, torch.quint4x2
# A network and the shapes of its inputs, or the inputs.
OTHER_LAYERS = {
    "two_linear": (lambda: dynamic(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))), [(2, 5, 12)]),
    "lstm": (lambda: dynamic(FirstResult(nn.LSTM(6, 8, 2, bidirectional=True))), [(4, 3, 6)]),
    "gru": (lambda: dynamic(FirstResult(nn.GRU(6, 8, batch_first=True))), [(3, 4, 6)]),
    "lstm_cell": (lambda: dynamic(FirstResult(nn.LSTMCell(6, 8))), [(3, 6)]),
    "gru_cell": (lambda: dynamic(nn.GRUCell(6, 8)), [(3, 6)]),
    "rnn_cell": (lambda: dynamic(nn.RNNCell(6, 8)), [(3, 6)]),
    "conv1d": (lambda: quantized.dynamic.Conv1d(4, 8, 3, padding=1), [(2, 4, 9)]),
    "conv2d": (lambda: quantized.dynamic.Conv2d(4, 8, 3, groups=2, stride=2), [(2, 4, 9, 9)]),
    "conv3d": (lambda: quantized.dynamic.Conv3d(4, 8, 2), [(2, 4, 5, 5, 5)]),
    "conv_transpose2d": (lambda: quantized.dynamic.ConvTranspose2d(4, 8, 3, stride=2), [(2, 4, 5, 5)]),
    "rows_of_four_bits": (lambda: table(nn.Embedding, FOUR_BITS), [INDICES]),
    "bags": (lambda: table(nn.EmbeddingBag, BYTES, mode="sum"), [INDICES, OFFSETS]),
    "bags_of_four_bits": (lambda: table(nn.EmbeddingBag, FOUR_BITS, mode="sum"), [INDICES.reshape(2, 3)]),
    "bags_with_last_offset": (
        lambda: table(nn.EmbeddingBag, BYTES, mode="sum", include_last_offset=True),
        [INDICES, torch.tensor([0, 2, 5, 6])],
    ),
    "means_of_bags": (lambda: table(nn.EmbeddingBag, BYTES, mode="mean"), [INDICES, OFFSETS]),
}


def other_layers(name):
    torch.manual_seed(3)
    make, given = OTHER_LAYERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of inaccurate layers
        net = make()
    return net, tuple([torch.randn(x) if isinstance(x, tuple) else x for x in given])


@pytest.mark.parametrize("name", OTHER_LAYERS)
def test_recurrent_layers_dynamic_convolutions_and_bags(name):
    net, inputs = other_layers(name)
    data = torch.onnx.export(net, inputs, dynamo=True).to_bytes()
    found, expected = torch.onnx.load(data)(*inputs), net(*inputs)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_dynamic_products_are_integer_products():
    net, inputs = other_layers("two_linear")
    program = torch.onnx.export(net, inputs, dynamo=True)
    ops = [node.op_type for node in torch.onnx._load.read_model(program.to_bytes())[0].graph.node]
    assert ops.count("MatMulInteger") == 2 and "DequantizeLinear" not in ops


@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_results_of_float_ops_after_dequantization_are_not_rounded():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.layer = torch.ao.quantization.QuantStub(), torch.nn.Linear(4, 4)
            self.after = torch.ao.quantization.DeQuantStub()

        def forward(self, x):
            return torch.tanh(self.after(self.layer(self.before(x))) * 3)

    torch.manual_seed(0)
    net, x = Net().eval(), torch.randn(5, 4)
    net.qconfig = torch.ao.quantization.get_default_qconfig("x86")
    torch.ao.quantization.prepare(net, inplace=True)(x)
    torch.ao.quantization.convert(net, inplace=True)
    data = torch.onnx.export(net, (x,), dynamo=True).to_bytes()
    torch.testing.assert_close(torch.onnx.load(data)(x), net(x))


def test_what_is_not_written_is_named():
    class Pruned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = table(nn.EmbeddingBag, BYTES, mode="sum")

        def forward(self, indices, offsets):
            packed = self.rows._packed_params._packed_weight
            mapping = torch.tensor([0, 1, -1, 2, 3, 4, 5, 6, 7, 8], dtype=torch.int32)
            return torch.ops.quantized.embedding_bag_byte(
                packed, indices, offsets, False, 0, True, None, mapping, False
            )

    with pytest.raises(torch.onnx.OnnxExporterError, match="pruned rows"):
        torch.onnx.export(Pruned(), (INDICES, OFFSETS), io.BytesIO(), dynamo=False)
