"""Quantized modules: states and results of networks that PyTorch quantized, and each module beside its op."""

import copy
import io
import re

import pytest

import torchlite as torch
from tests.ao.nn.quantized import networks

nnq = torch.ao.nn.quantized
NORM = (None, None, 0.125, 60)  # a weight, a bias, and the parameters of the result
MAKERS = {"static": networks.make_quantized_network, "dynamic": networks.make_dynamic_layers}


def quantized(*shape, scale=0.05, zero_point=60):
    return torch.quantize_per_tensor(torch.randn(shape), scale, zero_point, torch.quint8)


def same(found, expected):
    return torch.equal(found, expected) if found.is_quantized else torch.allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", MAKERS)
def test_networks_of_pytorch_give_its_results(kind):
    recorded = torch.load(networks.WRITTEN)[kind]
    net = MAKERS[kind](torch)
    assert list(net.state_dict()) == list(recorded["state"])
    assert str(net.load_state_dict(recorded["state"])) == "<All keys matched successfully>"
    assert same(net(recorded["x"]), recorded["y"]) and repr(net) == recorded["text"]
    assert same(copy.deepcopy(net)(recorded["x"]), recorded["y"])
    stream = io.BytesIO()
    torch.save(net.state_dict(), stream)
    stream.seek(0)
    again = MAKERS[kind](torch)
    again.load_state_dict(torch.load(stream))
    assert same(again(recorded["x"]), recorded["y"])


@pytest.mark.parametrize(
    ("module", "shape", "call"),
    [
        (nnq.ReLU6(), (3, 4), lambda q, x: q.relu6(x)),
        (nnq.Hardswish(0.125, 9), (3, 4), lambda q, x: q.hardswish(x, 0.125, 9)),
        (nnq.ELU(0.125, 9, 1.5), (3, 4), lambda q, x: q.elu(x, 0.125, 9, 1.5)),
        (nnq.LeakyReLU(0.125, 9, 0.2), (3, 4), lambda q, x: q.leaky_relu(x, 0.2, False, 0.125, 9)),
        (nnq.Sigmoid(0.125, 3), (3, 4), lambda q, x: q.sigmoid(x, 0.125, 3)),
        (nnq.Softmax(None, 1 / 256, 0), (3, 4), lambda q, x: q.softmax(x, 1, 1 / 256, 0)),
        (nnq.GroupNorm(2, 4, *NORM), (2, 4, 3), lambda q, x: q.group_norm(x, 2, None, None, 1e-5, 0.125, 60)),
        (nnq.InstanceNorm1d(4, *NORM), (2, 4, 3), lambda q, x: q.instance_norm(x, None, None, 1e-5, 0.125, 60)),
        (nnq.InstanceNorm2d(4, *NORM), (2, 4, 3, 3), lambda q, x: q.instance_norm(x, None, None, 1e-5, 0.125, 60)),
        (nnq.InstanceNorm3d(4, *NORM), (2, 4, 3, 3, 2), lambda q, x: q.instance_norm(x, None, None, 1e-5, 0.125, 60)),
        (nnq.Dropout(), (3, 4), lambda q, x: x),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, torch.nn.Module) else "",
)
def test_modules_are_their_ops(module, shape, call):
    x = quantized(*shape)
    assert torch.equal(module(x), call(torch.ops.quantized, x))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("padding_mode", ["zeros", "reflect"])
def test_convolutions_pad(rank, padding_mode):
    name, sizes = f"Conv{rank}d", (7, 6, 5)[:rank]
    plain = getattr(torch.nn, name)(2, 4, 3, stride=2, padding=1, groups=2, padding_mode=padding_mode)
    layer = getattr(nnq, name)(2, 4, 3, stride=2, padding=1, groups=2, padding_mode=padding_mode)
    weight = torch.quantize_per_tensor(plain.weight.detach(), 0.01, 0, torch.qint8)
    layer.set_weight_bias(weight, plain.bias)
    layer.scale, layer.zero_point = 0.05, 60
    x = quantized(2, 2, *sizes)
    plain.weight.data = weight.dequantize()
    expected = torch.quantize_per_tensor(plain(x.dequantize()).detach(), 0.05, 60, torch.quint8)
    assert (layer(x).int_repr().int() - expected.int_repr().int()).abs().max() <= 1
    with pytest.raises(ValueError, match="Input shape must be"):
        layer(quantized(2, 2))


@pytest.mark.parametrize("name", ["ConvAdd2d", "ConvAddReLU2d"])
@pytest.mark.parametrize("padding_mode", ["zeros", "reflect"])
def test_convolutions_with_a_sum_pad(name, padding_mode):
    layer = getattr(torch.ao.nn.intrinsic.quantized, name)(2, 4, 3, padding=1, padding_mode=padding_mode)
    plain = nnq.Conv2d(2, 4, 3, padding=1, padding_mode=padding_mode)
    weight = torch.quantize_per_tensor(torch.randn(4, 2, 3, 3) * 0.1, 0.01, 0, torch.qint8)
    bias = torch.tensor([-0.5, 0.0, 0.5, 1.0])
    for made in (layer, plain):
        made.set_weight_bias(weight, bias)
        made.scale, made.zero_point = 0.05, 60
    x, extra = quantized(2, 2, 7, 6), quantized(2, 4, 7, 6)
    total = plain(x).dequantize() + extra.dequantize()
    expected = torch.quantize_per_tensor(total.relu() if "ReLU" in name else total, 0.05, 60, torch.quint8)
    found = layer(x, extra)
    assert found.shape == extra.shape
    assert (found.int_repr().int() - expected.int_repr().int()).abs().max() <= 1
    with pytest.raises(ValueError, match="Input shape must be"):
        layer(quantized(2, 2), extra)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolutions(rank):
    name, sizes = f"ConvTranspose{rank}d", (4, 3, 2)[:rank]
    plain = getattr(torch.nn, name)(2, 4, 3, stride=2, padding=1, output_padding=1)
    layer = getattr(nnq, name)(2, 4, 3, stride=2, padding=1, output_padding=1)
    layer.set_weight_bias(torch.quantize_per_tensor(plain.weight.detach(), 0.01, 0, torch.qint8), plain.bias)
    layer.scale, layer.zero_point = 0.05, 60
    x = quantized(2, 2, *sizes)
    plain.weight.data = layer.weight().dequantize()
    assert torch.equal(layer(x), torch.quantize_per_tensor(plain(x.dequantize()).detach(), 0.05, 60, torch.quint8))
    with pytest.raises(ValueError, match='Only "zeros" padding mode'):
        getattr(nnq, name)(2, 4, 3, padding_mode="reflect")


def test_batch_norms_have_a_scale():
    layer, x = nnq.BatchNorm2d(3), quantized(2, 3, 4, 4)
    layer.scale.fill_(0.125)
    layer.zero_point.fill_(50)
    expected = torch.nn.functional.batch_norm(
        x.dequantize(), layer.running_mean, layer.running_var, layer.weight, layer.bias
    )
    assert torch.equal(layer(x), torch.quantize_per_tensor(expected.detach(), 0.125, 50, torch.quint8))
    with pytest.raises(ValueError, match="Input shape must be"):
        layer(quantized(2, 3))


@pytest.mark.parametrize("kind", MAKERS)
def test_networks_move_to_devices(kind, device):
    recorded = torch.load(networks.WRITTEN)[kind]
    net = MAKERS[kind](torch)
    net.load_state_dict(recorded["state"])
    net, x = net.to(device), recorded["x"].to(device)
    # Kernels of devices may round a sum to the next integer.
    assert torch.allclose(net(x).cpu(), recorded["y"], atol=2 * getattr(getattr(net, "last", None), "scale", 1e-5))


def test_functional_modules():
    x, y = torch.ones(2), torch.full((2,), -3.0)
    for functional in (nnq.FloatFunctional(), nnq.FXFloatFunctional()):
        assert functional.add(x, y).tolist() == [-2, -2] and functional.add_relu(x, y).tolist() == [0, 0]
        assert functional.mul(x, y).tolist() == [-3, -3] and functional.cat([x, y]).shape == (4,)
        assert functional.add_scalar(x, 2).tolist() == [3, 3] and functional.mul_scalar(x, 2).tolist() == [2, 2]
        with pytest.raises(RuntimeError, match="not intended to use the 'forward'"):
            functional(x)
    made = nnq.QFunctional()
    made.scale, made.zero_point = 0.1, 50
    a, b = quantized(2, 3), quantized(2, 3)
    assert torch.equal(made.add(a, b), torch.ops.quantized.add(a, b, 0.1, 50))
    assert torch.equal(made.matmul(a, b.t()), torch.ops.quantized.matmul(a, b.t(), 0.1, 50))
    assert list(made.state_dict()) == ["scale", "zero_point"]


def test_embeddings():
    weight = torch.quantize_per_channel(torch.rand(5, 3), torch.full((5,), 0.01), torch.zeros(5), 0, torch.quint8)
    indices, offsets = torch.tensor([1, 4, 0]), torch.tensor([0, 1])
    table, bag = nnq.Embedding(5, 3, _weight=weight), nnq.EmbeddingBag(5, 3, _weight=weight)
    assert torch.equal(table(indices), weight.dequantize()[indices])
    assert torch.equal(bag(indices, offsets)[1], weight.dequantize()[[4, 0]].sum(0))
    again = nnq.Embedding(5, 3)
    again.load_state_dict(table.state_dict())
    assert torch.equal(again.weight(), weight)


def _flatten(value):
    return [part for item in value for part in _flatten(item)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("name", [*networks.LAYERS, *networks.CELLS])
def test_recurrent_layers_give_the_results_of_pytorch(name, device):
    recorded = torch.load(networks.WRITTEN)["recurrent"][name]
    kind, options = (networks.LAYERS | networks.CELLS)[name]
    made = getattr(nnq.dynamic, kind)(3, 4, **options)
    made.set_weight_bias({key: value.to(device) for key, value in recorded["weights"].items()})
    assert repr(made) == recorded["text"]
    x, h = recorded["x"].to(device), recorded["h"].to(device)
    found = _flatten(networks.run_recurrent(torch, name, made, x, h))
    for value, expected in zip(found, _flatten(recorded["results"]), strict=True):
        torch.testing.assert_close(value.cpu(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["lstm", "gru cell"])
def test_states_of_recurrent_layers_are_loaded(name):
    recorded = torch.load(networks.WRITTEN)["recurrent"][name]
    kind, options = (networks.LAYERS | networks.CELLS)[name]
    made, other = (getattr(nnq.dynamic, kind)(3, 4, **options) for _ in range(2))
    made.set_weight_bias(recorded["weights"])
    stream = io.BytesIO()
    torch.save(made.state_dict(), stream)
    stream.seek(0)
    other.load_state_dict(torch.load(stream))
    for value, expected in zip(_flatten(other(recorded["x"])), _flatten(recorded["results"][0]), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-5)


def test_recurrent_layers_check_their_arguments():
    layer, cell = nnq.dynamic.LSTM(3, 4), nnq.dynamic.GRUCell(3, 4)
    with pytest.raises(RuntimeError, match="input must have 3 dimensions"):
        layer(torch.ones(5, 3))
    with pytest.raises(RuntimeError, match="must be equal to input_size"):
        layer(torch.ones(5, 2, 4))
    with pytest.raises(RuntimeError, match=r"Expected hidden\[1\] size"):
        layer(torch.ones(5, 2, 3), (torch.zeros(1, 2, 4), torch.zeros(1, 3, 4)))
    with pytest.raises(RuntimeError, match="inconsistent input_size"):
        cell(torch.ones(2, 4))
    with pytest.raises(RuntimeError, match="Unknown nonlinearity"):
        nnq.dynamic.RNNCell(3, 4, nonlinearity="x")
    with pytest.raises(RuntimeError, match="Unsupported dtype for dynamic RNN quantization: torch.quint8"):
        nnq.dynamic.LSTM(3, 4, dtype=torch.quint8)
    with pytest.raises(ValueError, match="dropout should be a number"):
        nnq.dynamic.LSTM(3, 4, dropout=1.5)


@pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max")  # as in PyTorch
def test_static_quantization_gives_the_network_of_pytorch():
    recorded = torch.load(networks.WRITTEN)
    net = networks.make_float_network(torch)
    net.load_state_dict(recorded["float static"])
    net.qconfig = torch.ao.quantization.get_default_qconfig("x86")
    prepared = torch.ao.quantization.prepare(net)
    prepared(recorded["static"]["x"])
    made = torch.ao.quantization.convert(prepared)
    assert list(made.state_dict()) == list(recorded["static"]["state"])
    # Parameters come of sums over histograms.
    texts = [re.sub(r"scale=[\d.]+", "", text) for text in (repr(made), recorded["static"]["text"])]
    assert texts[0] == texts[1] and made.last.scale == pytest.approx(
        recorded["static"]["state"]["last.scale"].item(), rel=1e-5
    )
    torch.testing.assert_close(
        made(recorded["static"]["x"]), recorded["static"]["y"], rtol=0, atol=made.last.scale + 1e-6
    )


def test_dynamic_quantization_gives_the_layers_of_pytorch():
    recorded = torch.load(networks.WRITTEN)
    net = networks.make_float_layers(torch)
    net.load_state_dict(recorded["float dynamic"])
    made = torch.ao.quantization.quantize_dynamic(net)
    assert repr(made) == recorded["dynamic"]["text"]
    torch.testing.assert_close(made(recorded["dynamic"]["x"]), recorded["dynamic"]["y"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "LSTMCell", "GRUCell", "RNNCell", "Embedding", "EmbeddingBag"])
def test_dynamic_quantization_is_near_the_numbers(kind):
    of_numbers = kind.startswith("Embedding")
    options = {"mode": "sum"} if kind == "EmbeddingBag" else {}
    net = torch.nn.Sequential(getattr(torch.nn, kind)(9, 4, **options)).eval()
    spec = {type(net[0]): torch.ao.quantization.float_qparams_weight_only_qconfig} if of_numbers else None
    made = torch.ao.quantization.quantize_dynamic(net, spec)
    assert type(made[0]).__module__.endswith("rnn") or of_numbers
    x = torch.randint(9, (2, 3)) if of_numbers else torch.randn(2, 9) if "Cell" in kind else torch.randn(5, 2, 9)
    for found, expected in zip(_flatten(made(x)), _flatten(net(x)), strict=True):
        torch.testing.assert_close(found, expected.detach(), rtol=0, atol=0.05)


@pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max")  # as in PyTorch
def test_networks_trained_with_rounding_are_converted():
    quantization = torch.ao.quantization
    torch.manual_seed(0)
    layers = (
        torch.nn.Conv2d(1, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 3),
    )
    net = quantization.QuantWrapper(torch.nn.Sequential(*layers))
    quantization.fuse_modules_qat(net, [["module.0", "module.1", "module.2"]], inplace=True)
    net.qconfig = quantization.get_default_qat_qconfig("x86")
    quantization.prepare_qat(net, inplace=True)
    optimizer, x, y = torch.optim.SGD(net.parameters(), 0.1), torch.randn(16, 1, 6, 6), torch.randint(3, (16,))
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    net.eval()
    expected = net(x).detach()
    made = quantization.convert(net)
    assert type(made.module[0]).__name__ == "ConvReLU2d" and type(made.module[4]) is nnq.Linear
    assert (made(x) - expected).abs().max() <= 2.1 * made.module[4].scale


def test_unknown_dtypes_are_refused():
    with pytest.raises(ValueError, match="Unknown dtype specified for quantize_dynamic: torch.int8"):
        torch.ao.quantization.quantize_dynamic(torch.nn.Linear(2, 2), dtype=torch.int8)


@pytest.mark.parametrize("kind", ["MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver"])
@pytest.mark.parametrize("fake", [False, True])
def test_weights_stay_in_the_range_of_their_observer(kind, fake):
    """A moving average leaves numbers beyond its range."""
    scheme = torch.per_channel_symmetric if "Channel" in kind else torch.per_tensor_symmetric
    given = {"dtype": torch.qint8, "quant_min": -10, "quant_max": 10, "qscheme": scheme, "averaging_constant": 1.0}
    make = getattr(torch.ao.quantization, kind).with_args(**given)
    if fake:
        given["observer"] = getattr(torch.ao.quantization, kind)
        make = torch.ao.quantization.FakeQuantize.with_args(**given)
    observer, weight = make(), torch.tensor([[-1000.0, 1000.0], [-500.0, 20.0]])
    observer(weight)
    found = torch.ao.nn.quantized.modules.utils._quantize_weight(weight * 1.2, observer).int_repr()
    assert (found.min().item(), found.max().item()) == (-10, 10)
    layer = torch.nn.Linear(2, 2)
    layer.qconfig = torch.ao.quantization.QConfig(torch.ao.quantization.MinMaxObserver, make)
    layer.activation_post_process = torch.ao.quantization.MinMaxObserver()
    layer.activation_post_process(weight)
    made = nnq.Linear.from_float(layer)
    assert made.weight().int_repr().abs().max() == 10
