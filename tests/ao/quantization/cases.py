"""Programs that observe, round and train, for torchlite and for PyTorch (`tools/record_quantization.py`)."""

from __future__ import annotations

import importlib
import pathlib
import re
import warnings
from collections.abc import Callable
from typing import Any

ANSWERS = pathlib.Path(__file__).with_name("answers.json")
PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable) -> Callable:
    PROGRAMS[function.__name__] = function
    return function


def described(value: Any) -> Any:
    """A result as data: tensors with their dtype, modules and other objects as text."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        numbers = value.double() if value.is_floating_point() else value
        return {
            str(value.dtype): [str(x) if x != x or abs(x) == float("inf") else x for x in numbers.reshape(-1).tolist()]
        }
    if isinstance(value, dict):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = re.sub(r",\s+device='[\w:]+'", "", str(value).replace("torchlite", "torch"))
    text = re.sub(r"(?<=[(\[])\s+|\s+(?=[)\]])", "", " ".join(text.split()))  # lines are broken elsewhere
    return re.sub(r"-?\d+\.\d{5,}", lambda found: f"{float(found[0]):.3f}", text)


def answer(torch: Any, name: str, programs: dict[str, Callable[[Any], Any]] = PROGRAMS) -> Any:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return described(programs[name](torch))


def refused(function: Callable, *args: Any, **kwargs: Any) -> str:
    """The error of a call: its type and words, without the spaces of broken lines."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return "accepted"


def named(torch: Any, module: str, names: str) -> Any:
    """Names of a module within the package, or the one."""
    home = importlib.import_module(f"{torch.__name__}.{module}")
    found = [
        getattr(home, name) if hasattr(home, name) else named(torch, f"{module}.{name}", "") for name in names.split()
    ]
    return (found[0] if len(found) == 1 else found) if names else home


def wave(torch: Any, *shape: int, step: float = 0.37, size: float = 2.0) -> Any:
    count = 1
    for n in shape:
        count *= n
    return (torch.sin(torch.arange(count) * step) * size + torch.arange(count) % 5 * 0.1).reshape(shape)


def settled(torch: Any, model: Any) -> Any:
    """The model with weights that no random numbers are."""
    for k, parameter in enumerate(model.parameters()):
        numbers = wave(torch, parameter.numel(), step=0.9 + 0.1 * k, size=0.4)
        parameter.data.copy_(numbers.reshape(parameter.shape) + (1.0 if parameter.ndim == 1 else 0.0))
    return model


# --- observers ------------------------------------------------------------------------------------------------------


def observed(torch: Any, observer: Any) -> Any:
    """The state, the scale and the zero point after each of three tensors."""
    found = [observer.calculate_qparams()]
    for size in (1.0, 3.0, 2.0):
        observer(wave(torch, 4, 6, size=size))
        found.append([dict(observer.state_dict()), observer.calculate_qparams()])
    return [*found, observer]


@program
def range_observers(torch):
    ao = torch.ao.quantization
    one, each = (
        ("MinMaxObserver", "MovingAverageMinMaxObserver"),
        ("PerChannelMinMaxObserver", "MovingAveragePerChannelMinMaxObserver"),
    )
    schemes = {
        **dict.fromkeys(one, ("per_tensor_affine", "per_tensor_symmetric")),
        **dict.fromkeys(each, ("per_channel_affine", "per_channel_symmetric", "per_channel_affine_float_qparams")),
    }
    return {
        f"{name} {scheme} {dtype}": observed(
            torch, getattr(ao, name)(dtype=getattr(torch, dtype), qscheme=getattr(torch, scheme))
        )
        for name, names in schemes.items()
        for scheme in names
        for dtype in ("quint8", "qint8", "int16", "qint32")
    }


@program
def observers_with_options(torch):
    ao = torch.ao.quantization
    made = {
        "range": ao.MinMaxObserver(quant_min=0, quant_max=15),
        "reduced": ao.MinMaxObserver(reduce_range=True),
        "both": ao.MinMaxObserver(quant_min=-8, quant_max=7, reduce_range=True, dtype=torch.qint8),
        "symmetric range": ao.MinMaxObserver(quant_min=0, quant_max=100, qscheme=torch.per_tensor_symmetric),
        "eps": ao.MinMaxObserver(eps=0.5),
        "average": ao.MovingAverageMinMaxObserver(averaging_constant=0.5),
        "axis": ao.PerChannelMinMaxObserver(ch_axis=1),
        "uint16": ao.MinMaxObserver(dtype=torch.uint16, qscheme=torch.per_tensor_symmetric),
        "double": ao.MinMaxObserver(factory_kwargs={"dtype": torch.float64}),
    }
    return {name: observed(torch, observer) for name, observer in made.items()}


@program
def histogram_observer(torch):
    ao, found = torch.ao.quantization, {}
    for name, options in {
        "default": {},
        "few": {"bins": 16},
        "symmetric": {"qscheme": torch.per_tensor_symmetric, "dtype": torch.qint8},
        "reduced": {"reduce_range": True},
    }.items():
        observer = ao.HistogramObserver(**options)
        for x in (wave(torch, 300), wave(torch, 300, size=0.5), wave(torch, 300, size=8.0), torch.zeros(3)):
            observer(x)
            histogram = observer.histogram.double()
            place = torch.arange(len(histogram), dtype=torch.float64)
            found[f"{name} {len(found)}"] = [
                histogram.sum(), (histogram * place).sum(), observer.min_val, observer.max_val,
                observer.calculate_qparams(),
            ]  # fmt: skip
    single = ao.HistogramObserver(bins=8)
    single(torch.ones(5))
    single(torch.tensor([0.0, 2.0, float("inf")]))
    return [found, single.histogram, single, ao.HistogramObserver().calculate_qparams()]


@program
def observers_without_range(torch):
    ao, x = torch.ao.quantization, torch.ones(2)
    recording = ao.RecordingObserver()
    recording(x)
    return [
        recording.get_tensor_value(), ao.NoopObserver()(x), ao.PlaceholderObserver(torch.float16),
        ao.ReuseInputObserver(), ao.FixedQParamsObserver(0.5, 3).calculate_qparams(),
        dict(ao.FixedQParamsObserver(0.5, 3).state_dict()),
        *(refused(kind().calculate_qparams) for kind in (ao.RecordingObserver, ao.NoopObserver, ao.PlaceholderObserver,
                                                         ao.ReuseInputObserver)),
    ]  # fmt: skip


@program
def refused_observers(torch):
    ao = torch.ao.quantization
    from_tensor, from_channels = torch.per_tensor_affine, torch.per_channel_affine
    return [
        refused(ao.MinMaxObserver, quant_min=1, quant_max=5),
        refused(ao.MinMaxObserver, quant_min=0, quant_max=0),
        refused(ao.MinMaxObserver, dtype=torch.float32)[:60],
        refused(ao.MinMaxObserver, dtype=torch.qint8, quant_min=-200, quant_max=200),
        refused(ao.MinMaxObserver, qscheme=from_channels)[:80],
        refused(ao.PerChannelMinMaxObserver, qscheme=from_tensor)[:80],
        refused(ao.PerChannelMinMaxObserver, is_dynamic=True),
        refused(ao.HistogramObserver, is_dynamic=True),
        refused(ao.MovingAverageMinMaxObserver, is_dynamic=True),
        refused(ao.FixedQParamsObserver, 1.0, 0, is_dynamic=True),
        refused(ao.MinMaxObserver, qscheme=torch.per_tensor_symmetric, reduce_range=True),
        refused(ao.PerChannelMinMaxObserver().reset_min_max_vals),
        refused(ao.HistogramObserver().reset_min_max_vals),
    ]


@program
def loaded_observers(torch):
    """State of older versions, of another size, and of whole models."""
    ao, found = torch.ao.quantization, []
    for kind in (ao.MinMaxObserver, ao.PerChannelMinMaxObserver, ao.HistogramObserver):
        source, target = kind(), kind()
        source(wave(torch, 4, 6))
        found.append([target.load_state_dict(source.state_dict()), target.calculate_qparams()])
        found.append(refused(kind().load_state_dict, {})[:80])
    old = torch.nn.Sequential(ao.MinMaxObserver())
    state = old.state_dict()
    state._metadata["0"]["version"] = 1
    del state["0.eps"]
    found.append(old.load_state_dict(state))
    model = settled(torch, torch.nn.Sequential(torch.nn.Linear(3, 2)))
    model.qconfig = ao.default_qconfig
    model = ao.prepare(model)
    model(wave(torch, 4, 3))
    again = ao.prepare(torch.nn.Sequential(torch.nn.Linear(3, 2)))
    again[0].qconfig = ao.default_qconfig
    again = ao.prepare(again)
    state = ao.get_observer_state_dict(model)
    ao.load_observer_state_dict(again, state)
    return [*found, list(state), again[0].activation_post_process]


# --- fake quantization ----------------------------------------------------------------------------------------------
DEFAULTS = """
    default_fake_quant default_weight_fake_quant default_dynamic_fake_quant
    default_fixed_qparams_range_neg1to1_fake_quant
    default_fixed_qparams_range_0to1_fake_quant default_per_channel_weight_fake_quant default_embedding_fake_quant
    default_embedding_fake_quant_4bit default_histogram_fake_quant default_fused_act_fake_quant
    default_fused_wt_fake_quant default_fused_per_channel_wt_fake_quant fused_wt_fake_quant_range_neg_127_to_127
    fused_per_channel_wt_fake_quant_range_neg_127_to_127
""".split()


@program
def fake_quantization(torch):
    ao, found = torch.ao.quantization, {}
    for name in DEFAULTS:
        fake = getattr(ao, name)()
        found[name] = [fake]
        for size in (1.0, 3.0):
            x = wave(torch, 3, 4, size=size).requires_grad_()
            y = fake(x)
            y.backward(torch.ones(3, 4))
            found[name] += [
                y,
                x.grad,
                {key: value for key, value in fake.state_dict().items() if "histogram" not in key},
            ]
        fake.apply(ao.disable_observer)
        found[name].append(fake(wave(torch, 3, 4, size=9.0)))
        fake.apply(ao.disable_fake_quant)
        found[name] += [fake(wave(torch, 3, 4)), fake]
        fake.apply(ao.enable_fake_quant).apply(ao.enable_observer)
        copy = getattr(ao, name)()
        found[name] += [copy.load_state_dict(fake.state_dict()), copy.scale]
    return found


@program
def refused_fake_quantization(torch):
    ao = torch.ao.quantization
    return [
        refused(ao.FakeQuantize, quant_min=5, quant_max=1),
        refused(ao.FakeQuantize, quant_min=-1, quant_max=5),
        refused(ao.FakeQuantize, quant_min=0, quant_max=300),
        refused(ao.FixedQParamsFakeQuantize, ao.MinMaxObserver),
        refused(ao.FusedMovingAvgObsFakeQuantize, ao.MinMaxObserver),
        refused(ao.QConfig, ao.MinMaxObserver(), None),
        refused(ao.get_default_qconfig, "none"),
        refused(ao.get_default_qconfig, "x86", 7),
        refused(ao.get_default_qat_qconfig, "x86", 7),
        refused(ao.prepare_qat, torch.nn.Sequential(torch.nn.Linear(1, 1)).eval()),
        refused(ao.fuse_modules, torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU()), ["0", "1"]),
        refused(ao.fuse_conv_bn, True, torch.nn.Conv2d(1, 2, 1), torch.nn.BatchNorm2d(3)),
        refused(ao.fuse_conv_bn, False, torch.nn.Conv2d(1, 2, 1), torch.nn.BatchNorm2d(2).eval()),
        refused(ao.fuse_convtranspose_bn, True, torch.nn.ConvTranspose2d(1, 2, 1), torch.nn.BatchNorm2d(2)),
        refused(torch.ao.nn.intrinsic.ConvReLU2d, torch.nn.Conv2d(1, 1, 1), torch.nn.Tanh()),
        refused(torch.ao.nn.qat.Linear, 1, 1),
        refused(torch.ao.nn.qat.Linear.from_float, torch.nn.ReLU()),
        refused(torch.ao.nn.qat.Linear.from_float, torch.nn.Linear(1, 1)),
    ]


# --- configurations -------------------------------------------------------------------------------------------------


@program
def configurations(torch):
    ao = torch.ao.quantization
    found = {name: getattr(ao.qconfig, name) for name in dir(ao.qconfig) if name.endswith(("_qconfig", "_qconfig_v2"))}
    found = {name: value for name, value in found.items() if isinstance(value, tuple)}
    for backend in ("x86", "fbgemm", "qnnpack", "onednn"):
        found[backend] = ao.get_default_qconfig(backend)
        for version in (0, 1):
            found[f"{backend} qat {version}"] = ao.get_default_qat_qconfig(backend, version)
        found[f"{backend} mapping"] = ao.get_default_qconfig_mapping(backend)
        found[f"{backend} qat mapping"] = ao.get_default_qat_qconfig_mapping(backend)
    return {name: re.sub(r" at 0x[0-9a-f]+|<built-in method (\w+)[^>]*>|<function (\w+)[^>]*>", r"\1\2", str(value))
            for name, value in found.items()}  # fmt: skip


@program
def configuration_mappings(torch):
    ao = torch.ao.quantization
    mapping = ao.QConfigMapping().set_global(None).set_object_type("add", ao.default_qconfig)
    mapping.set_module_name_regex("a.*", None).set_module_name("b", None)
    mapping.set_module_name_object_type_order("c", "mul", 1, None)
    again = ao.QConfigMapping.from_dict(mapping.to_dict())
    first, second = ao.get_default_qat_qconfig("x86"), ao.get_default_qat_qconfig("onednn")
    return [
        mapping, again, ao.qconfig_equals(first, first), ao.qconfig_equals(first, second),
        ao.qconfig_equals(first, ao.get_default_qat_qconfig("x86")), ao.qconfig_equals(None, first),
    ]  # fmt: skip


@program
def questions(torch):
    ao = torch.ao.quantization
    utils = ao.utils
    names = """activation_dtype weight_dtype activation_is_statically_quantized activation_is_dynamically_quantized
        activation_is_int8_quantized activation_is_int32_quantized weight_is_quantized weight_is_statically_quantized
        op_is_int8_dynamically_quantized get_qconfig_dtypes""".split()
    qconfigs = """default_qconfig default_dynamic_qconfig float16_dynamic_qconfig float16_static_qconfig
        default_qat_qconfig float_qparams_weight_only_qconfig""".split()
    found = {q: [getattr(utils, name)(getattr(ao.qconfig, q)) for name in names] for q in qconfigs}
    kinds = [utils.get_quant_type(getattr(ao.qconfig, q)).name for q in qconfigs]
    dicts = [
        utils.get_qparam_dict(observer)
        for observer in (ao.FixedQParamsObserver(0.5, 3), ao.PlaceholderObserver(), ao.default_weight_fake_quant())
    ]
    low, high, eps = torch.tensor([-1.0, 0.5]), torch.tensor([2.0, 3.0]), torch.tensor([1e-7])
    chosen = [
        utils.determine_qparams(low, high, 0, 255, torch.uint8, eps, False, getattr(torch, scheme))
        for scheme in ("per_channel_affine", "per_channel_symmetric", "per_channel_affine_float_qparams")
    ]
    return [found, kinds, dicts, chosen]


# --- models ---------------------------------------------------------------------------------------------------------


def network(torch):
    nn, ao = torch.nn, torch.ao.quantization

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = ao.QuantStub(), ao.DeQuantStub()
            self.conv1, self.bn1, self.relu1 = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
            self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
            self.add = torch.ao.nn.quantized.FloatFunctional()
            self.conv3, self.relu3 = nn.Conv2d(4, 3, 1), nn.ReLU()
            self.fc1, self.relu4 = nn.Linear(3 * 16, 8), nn.ReLU()
            self.sigmoid, self.fc2 = nn.Sigmoid(), nn.Linear(8, 3)

        def forward(self, x):
            x = self.relu1(self.bn1(self.conv1(self.quant(x))))
            x = self.add.add(x, self.bn2(self.conv2(x)))
            x = self.relu3(self.conv3(x)).flatten(1)
            return self.dequant(self.fc2(self.sigmoid(self.relu4(self.fc1(x)))))

    return settled(torch, Network())


GROUPS = [["conv1", "bn1", "relu1"], ["conv2", "bn2"], ["conv3", "relu3"], ["fc1", "relu4"]]


def perceptron(torch):
    nn = torch.nn
    layers = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3), nn.Tanh(), nn.Softmax(1)
    return settled(torch, nn.Sequential(*layers))


def trained(torch, model, x, steps=5):
    """Losses, and the gradients, parameters and buffers after the last step."""
    target = torch.arange(len(x)) % 3
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    gradients = {name: p.grad for name, p in model.named_parameters()}
    model.eval()
    return [losses, gradients, dict(model.state_dict()), model(x)]


@program
def trained_networks(torch):
    ao, found = torch.ao.quantization, {}
    for backend, version in (("qnnpack", 1), ("x86", 1), ("x86", 0)):
        model = ao.fuse_modules_qat(network(torch), GROUPS)
        model.qconfig = ao.get_default_qat_qconfig(backend, version)
        found[f"{backend} {version}"] = trained(torch, ao.prepare_qat(model), wave(torch, 6, 2, 6, 6))
    return found


@program
def trained_perceptrons(torch):
    ao, found = torch.ao.quantization, {}
    for backend in ("qnnpack", "onednn"):
        model = ao.fuse_modules_qat(perceptron(torch), [["0", "1"], ["2", "3"]])
        model.qconfig = ao.get_default_qat_qconfig(backend)
        found[backend] = trained(torch, ao.prepare_qat(model), wave(torch, 6, 6))
    return found


@program
def prepared_models(torch):
    ao, x = torch.ao.quantization, wave(torch, 6, 2, 6, 6)
    model = ao.fuse_modules(network(torch).eval(), GROUPS)
    plain = model(x)
    model.qconfig = ao.get_default_qconfig("qnnpack")
    model = ao.prepare(model)
    out = model(x)
    training = ao.fuse_modules_qat(network(torch), GROUPS)
    training.qconfig = ao.get_default_qat_qconfig("qnnpack")
    training = ao.prepare_qat(training)
    wrapped = perceptron(torch)
    wrapped.qconfig = ao.default_qconfig
    ao.propagate_qconfig_(wrapped)
    return [
        plain, out, str(model), list(model.state_dict()), str(training), list(training.state_dict()),
        ao.add_quant_dequant(wrapped),
    ]  # fmt: skip


@program
def drawn_numbers(torch):
    """Layers draw as many random numbers as PyTorch's."""
    ao, found = torch.ao.quantization, []
    for make, groups in ((network, GROUPS), (perceptron, [["0", "1"], ["2", "3"]])):
        model = ao.fuse_modules_qat(make(torch), groups)
        model.qconfig = ao.get_default_qat_qconfig("qnnpack")
        torch.manual_seed(0)
        ao.prepare_qat(model)
        found.append(torch.randn(2))
    qconfig = ao.get_default_qat_qconfig("qnnpack")
    layer = torch.ao.nn.intrinsic.qat.ConvBn2d(2, 3, 3, bias=True, qconfig=qconfig)
    return [*found, dict(layer.state_dict())]


@program
def layers_of_training(torch):
    """Layers with a batch norm: frozen, by the slow way, and as float layers again."""
    ao, qat, x = torch.ao.quantization, torch.ao.nn.intrinsic.qat, wave(torch, 4, 2, 5, 5)
    qconfig, found = ao.get_default_qat_qconfig("qnnpack"), []
    for bias in (False, True):
        for slow in (False, True):
            layer = settled(torch, qat.ConvBnReLU2d(2, 3, 3, bias=bias, qconfig=qconfig))
            layer._enable_slow_path_for_better_numerical_stability = slow
            found += [layer(x), dict(layer.state_dict())]
            layer.apply(qat.freeze_bn_stats)
            layer.train()
            found += [layer.bn.training, layer(x), layer.eval()(x), layer.to_float(), layer.to_float()(x)]
            layer.apply(qat.update_bn_stats)
            found.append(layer.train().bn.training)
    state = {
        name.replace("bn.weight", "gamma").replace("bn.bias", "beta"): value
        for name, value in layer.state_dict().items()
    }
    state = {name.replace("bn.", ""): value for name, value in state.items()}
    found.append(refused(layer.load_state_dict, state))
    linear = settled(torch, qat.LinearBn1d(5, 3, qconfig=qconfig))
    y = wave(torch, 4, 5)
    found += [linear(y), linear.eval().to_float()(y)]
    embedding = settled(torch, torch.ao.nn.qat.Embedding(4, 3, qconfig=ao.qconfig.default_embedding_qat_qconfig))
    bag = settled(torch, torch.ao.nn.qat.EmbeddingBag(4, 3, qconfig=ao.qconfig.default_embedding_qat_qconfig))
    index = torch.tensor([[0, 2], [3, 3]])
    dynamic = settled(torch, torch.ao.nn.qat.dynamic.Linear(5, 3, qconfig=ao.qconfig.default_dynamic_qat_qconfig))
    found += [embedding(index), bag(index), dynamic(y), embedding.to_float(), bag.to_float()]
    conv = settled(torch, torch.ao.nn.qat.Conv1d(2, 3, 3, qconfig=qconfig))
    return [*found, conv(wave(torch, 2, 2, 6)), conv.to_float(), qat.ConvReLU1d(2, 3, 3, qconfig=qconfig).to_float()]


# --- ops on integers ------------------------------------------------------------------------------------------------


@program
def decomposed_ops(torch):
    import importlib

    importlib.import_module(f"{torch.__name__}.ao.quantization.fx._decomposed")
    ops, found = torch.ops.quantized_decomposed, []
    x = torch.cat([wave(torch, 5, 8), torch.tensor([[0.5, 1.5, 2.5, -0.5, 1e9, -1e9, 12.75, -0.0]])])
    half = x.clamp(-100, 100).half()
    scale, zero = torch.tensor(0.1), torch.tensor(3)
    low, high = torch.tensor(-128), torch.tensor(127)
    scales, zeros = torch.linspace(0.01, 0.2, 6), torch.arange(6, dtype=torch.int32)
    for dtype, limits in ((torch.int8, (-128, 127)), (torch.uint8, (0, 255)), (torch.int16, (-999, 999))):
        q = ops.quantize_per_tensor(x, 0.1, 3, *limits, dtype)
        found += [
            q,
            ops.dequantize_per_tensor(q, 0.1, 3, *limits, dtype),
            ops.quantize_per_tensor(half, 0.1, 3, *limits, dtype),
        ]
        q = ops.quantize_per_channel(x, scales, zeros, 0, *limits, dtype)
        found += [q, ops.dequantize_per_channel(q, scales, zeros, 0, *limits, dtype)]
        found += [ops.choose_qparams.tensor(x[:5], *limits, 1e-7, dtype)]
        found += [ops.choose_qparams_symmetric.tensor(x[:5], *limits, 1e-7, dtype)]
    q = ops.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
    found += [q, ops.quantize_per_tensor.tensor2(x, scale, zero, low, high, torch.int8)]
    found += [ops.dequantize_per_tensor.tensor(q, scale, zero, -128, 127, torch.int8, out_dtype=torch.float16)]
    found += [ops.dequantize_per_tensor.tensor2(q, scale, zero, low, high, torch.int8)]
    found += [ops.dequantize_per_channel(q, scales, None, 0, -128, 127, torch.int8, out_dtype=torch.float16)]
    found += [ops.quantize_per_channel(x.T, scales, zeros, 1, -128, 127, torch.int8)]
    for choose in (ops.choose_qparams_per_token, ops.choose_qparams_per_token_asymmetric):
        s, z = choose(x[:5], torch.int8)
        q = ops.quantize_per_token(x[:5], s, z, -128, 127, torch.int8)
        found += [
            s,
            z,
            q,
            ops.dequantize_per_token(q, s, z, -128, 127, torch.int8, torch.float32),
            choose(half, torch.int8),
        ]
    s, z = torch.linspace(0.05, 0.3, 24).reshape(6, 4), torch.zeros(6, 4, dtype=torch.int32)
    q = ops.quantize_per_channel_group(x, s, z, -8, 7, torch.int8, 2)
    found += [q, ops.dequantize_per_channel_group(q, s, z, -8, 7, torch.int8, 2, torch.float32)]
    found += [ops.dequantize_per_channel_group(q, s, None, -8, 7, torch.int8, 2, torch.float16)]
    wanted = x.clone().requires_grad_()
    y = ops.fake_quant_per_channel(wanted, scales, zeros, 0, 0, 60)
    y.backward(torch.ones(6, 8))
    found += [y, wanted.grad, ops.convert_element_type.no_fuse(x, torch.float16)]
    meta = x.to("meta")
    shapes = [
        ops.quantize_per_tensor(meta, 0.1, 3, -128, 127, torch.int8),
        *ops.choose_qparams.tensor(meta, 0, 255, 1e-7, torch.uint8),
        *ops.choose_qparams_per_token(meta, torch.int8),
        ops.quantize_per_channel(meta, scales.to("meta"), zeros.to("meta"), 0, -128, 127, torch.int8),
    ]
    found += [[list(t.shape), str(t.dtype)] for t in shapes]
    found += [
        refused(ops.quantize_per_tensor, x.double(), 0.1, 3, 0, 255, torch.uint8),
        refused(ops.quantize_per_tensor, x, 0.1, 3, 0, 256, torch.uint8),
        refused(ops.quantize_per_tensor, x, 0.1, 3, -1, 255, torch.uint8),
        refused(ops.quantize_per_tensor, x, 0.1, 3, 0, 255, torch.int64),
        refused(ops.quantize_per_tensor.tensor, x, scales, zero, 0, 255, torch.uint8),
        refused(ops.dequantize_per_tensor, q, 0.1, 3, 0, 255, torch.uint8),
        refused(ops.quantize_per_channel, x, scales, zeros, 2, 0, 255, torch.uint8),
        refused(ops.choose_qparams.tensor, x, 1, 255, 1e-7, torch.uint8),
        refused(ops.choose_qparams.tensor, x.double(), 0, 255, 1e-7, torch.uint8),
        refused(ops.choose_qparams_per_token, x, torch.uint8),
        refused(ops.quantize_per_token, x, scales[:2], zeros, 0, 255, torch.uint8),
        refused(ops.quantize_per_channel_group, x, s, z, -8, 7, torch.int8, 3),
        refused(ops.quantize_per_channel_group, x, s, z, -8, 7, torch.int8, 1),
        refused(ops.fake_quant_per_channel, x, scales, zeros, 2, 0, 255),
    ]
    return found
