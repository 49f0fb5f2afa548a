"""`torch.onnx.export`: what is written, read again by `torch.onnx.load` (tests/oracle has onnxruntime read it)."""

import io
import warnings

import numpy as np
import pytest

import torchlite as torch
from tests.graph_models import MODELS
from torchlite.nn import functional as F
from torchlite.onnx._export import graph_builder
from torchlite.onnx._export.program_to_model import ExportOptions, find_unwritten
from torchlite.onnx._protobuf import parse_message
from torchlite.onnx._translate_program import program_to_export

SAMPLE = ("mlp", "resnet", "gru", "gpt", "detection")


class Calls(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def kinds(program):
    return [node.op_type for node in program.model.graph.node]


def outputs(found):
    return found if isinstance(found, (tuple, list)) else (found,)


OLDER = (11, 13, 17, 14, 12)  # for each of the sample


@pytest.mark.parametrize(
    "name, version", [*((name, 25 if i % 2 else 18) for i, name in enumerate(SAMPLE)), *zip(SAMPLE, OLDER, strict=True)]
)
def test_models(name, version):
    made = MODELS[name]
    net = made.make(torch)
    program = torch.onnx.export(net, made.inputs(torch), dynamic_shapes=made.dynamic(torch), opset_version=version)
    assert program.model.opset_import[0].version == version
    module = torch.onnx.load(program.to_bytes())
    for batch in (2, 5):
        inputs = made.inputs(torch, batch)
        for got, want in zip(outputs(module(*inputs)), outputs(net(*inputs)), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


OPS = {
    "add with a number": (lambda x: torch.add(x, 3, alpha=2), 1),
    "integers and floats": (lambda x: x.to(torch.int64) + x, 1),
    "floor division": (lambda x: torch.div(x, 0.3, rounding_mode="floor"), 1),
    "remainders": (lambda x: (x * 10).to(torch.int64) % 3, 1),
    "compare": (lambda x: torch.where(x > 0, x, 2.0), 1),
    "clamp": (lambda x: x.clamp(-0.5) + x.clamp(max=0.1), 1),
    "gelu": (lambda x: F.gelu(x) + F.gelu(x, approximate="tanh"), 1),
    "softplus": (lambda x: F.softplus(x, 2, 0.5), 1),
    "glu": (lambda x: F.glu(x, -1), 1),
    "slices": (lambda x: x[:, 1:3, ::2] + x[:, -2:, ::2], 1),
    "picked": (lambda x: x[:, [0, 2]][:, :, torch.tensor([1, 0])], 1),
    "picked in two dimensions": (lambda x: x[:, torch.tensor([0, 1]), torch.tensor([1, 3])], 1),
    "roll and flip": (lambda x: torch.roll(x, 1, 2).flip(1), 1),
    "pad": (lambda x: F.pad(x, (1, 2), value=3.0) + F.pad(x, (2, 1), "reflect"), 1),
    "variance": (lambda x: x.var(1) + x.std(1, unbiased=False), 1),
    "deviations and means": (lambda x: sum(torch.std_mean(x, 1, correction=0)), 1),
    "numbers that are not zero": (lambda x: torch.linalg.vector_norm(x.relu(), 0, 1), 1),
    "norms": (lambda x: x.norm(dim=1) + x.abs().amax(1), 1),
    "argmax": (lambda x: torch.argmax(x, 1) + torch.max(x, 1)[1], 1),
    "top": (lambda x: torch.topk(x, 2, 1)[0], 1),
    "sorted": (lambda x: torch.sort(x, 1, descending=True)[0], 1),
    "cumulative": (lambda x: torch.cumsum(x, 1), 1),
    "cut": (lambda x: torch.cat(torch.split(x, [1, 2, 1], 1)[::-1], 1), 1),
    "differences": (lambda x: torch.diff(x, 2, 1, prepend=x[:, :1]) + torch.diff(x > 0, dim=1)[:, :1], 1),
    "stack": (lambda x: torch.stack([x, x * 2], 1).flatten(1, 2), 1),
    "repeat": (lambda x: x.repeat(1, 2, 1) + x.repeat_interleave(2, 1), 1),
    "triangles": (lambda x: torch.tril(x) + torch.triu(x, 1), 1),
    "made by an op that ONNX lacks": (lambda x: x + torch.kaiser_window(4), 1),
    "made": (lambda x: x + torch.arange(4) + torch.ones(4) + torch.full((4,), 2.0) + torch.eye(4), 1),
    "einsum": (lambda x: torch.einsum("bij,bkj->bik", x, x), 1),
    "layer norm": (lambda x: F.layer_norm(x, (4,)), 1),
    "rms norm": (lambda x: F.rms_norm(x, (4,)), 1),
    "group norm": (lambda x: F.group_norm(x, 2), 1),
    "pools": (lambda x: F.max_pool1d(x, 2, 1) + F.avg_pool1d(x, 2, 1), 1),
    "pools that end behind the input": (
        lambda x: F.avg_pool1d(x, 3, 2, ceil_mode=True) + F.avg_pool1d(x, 2, 5, 1, ceil_mode=True),
        1,
    ),
    "adaptive": (lambda x: F.adaptive_avg_pool1d(x, 3) + F.adaptive_avg_pool1d(x, 1), 1),
    "adaptive, largest of uneven windows": (
        lambda x: F.adaptive_max_pool2d(x, 3) + F.adaptive_max_pool2d(x, (3, 2)).amax(),
        1,
    ),
    "adaptive, places": (lambda x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True)[1], 1),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2.0) + F.interpolate(x, size=8, mode="linear"), 1),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), 1),
    "scatter": (lambda x: torch.zeros_like(x).scatter_add(1, torch.zeros(2, 4, 4, dtype=torch.int64), x), 1),
    "in place": (lambda x: (x + 1).relu_().mul_(2), 1),
    "one hot": (lambda x: F.one_hot((x > 0).to(torch.int64), 3), 1),
    "masked places": (lambda x: x.masked_scatter(x > 0, torch.arange(40.0) - x.flatten()[0]), 1),
    "imaginary parts": (lambda x: torch.complex(x, x * 2).imag + torch.complex(x, x * 2).abs(), 1),
    "masked": (lambda x: x.masked_fill(x > 0, float("-inf")).softmax(-1), 1),
}


# The versions of ONNX's ops from which on it has words for some.
SINCE = {"scatter": 16}


@pytest.mark.parametrize("version", [11, 13, 17, 20])
@pytest.mark.parametrize("name", OPS)
def test_ops(name, version):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 4, 4)).astype("float32"))
    function, _ = OPS[name]
    if version < SINCE.get(name, 0):
        with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match=f"opset {SINCE[name]} has it"):
            torch.onnx.export(Calls(function), (x,), opset_version=version)
        return
    found = torch.onnx.load(torch.onnx.export(Calls(function), (x,), opset_version=version).to_bytes())(x)
    torch.testing.assert_close(found, function(x), rtol=1e-5, atol=1e-5, equal_nan=True)


def attributes(program, kind):
    return [{a.name for a in node.attribute} for node in program.model.graph.node if node.op_type == kind]


def test_nodes_of_older_opsets():
    """Older opsets have attributes instead of inputs, and other ops."""
    x = torch.arange(24.0).reshape(2, 3, 4)

    def f(x):
        wide = F.layer_norm(x.unsqueeze(0), (4,)).mean(1).squeeze(0)
        a, b = F.softmax(x, 1).split([1, 2], 1)
        return wide.sum(-1), a + b.amax((0, 2), True), F.hardswish(x).tril(1), torch.clamp(x.long(), 2, 9) >= 4

    for version in (11, 13, 17, 18):
        program = torch.onnx.export(Calls(f), (x,), opset_version=version)
        found = set(kinds(program))
        assert ("axes" in attributes(program, "Unsqueeze")[0]) == (version < 13)
        assert ("axes" in attributes(program, "ReduceMax")[0]) == (version < 18)
        assert ("LayerNormalization" in found) == (version >= 17) and ("Trilu" in found) == (version >= 14)
        for got, want in zip(torch.onnx.load(program.to_bytes())(x), f(x), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert program.model.ir_version == 8 and torch.onnx.export(Calls(f), (x,), opset_version=11).model.ir_version == 6


@pytest.mark.parametrize("version, kind", [(17, "Max"), (18, "Max"), (19, "Max"), (20, "Relu"), (21, "Relu")])
def test_a_rule_for_an_opset_after_18(monkeypatch, version, kind):
    def rule(w, kind, inputs, outputs, attributes):
        return w.op("Max", inputs[0], w.constant([0.0], "float32"))

    monkeypatch.setitem(graph_builder.OLDER, "Relu", (20, rule))
    x = torch.tensor([-1.0, 2.0])
    program = torch.onnx.export(Calls(torch.relu), (x,), opset_version=version)
    assert kinds(program) == [kind] and torch.equal(torch.onnx.load(program.to_bytes())(x), torch.relu(x))


def test_a_recurrent_layer_is_one_node():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = torch.nn.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True)

        def forward(self, x):
            return self.rnn(x)[0]

    net, x = Net(), torch.ones(2, 5, 3)
    program = torch.onnx.export(net, (x,))
    assert kinds(program).count("LSTM") == 2 and "MatMul" not in kinds(program)
    torch.testing.assert_close(program.call_reference(x)[0], net(x))


def test_names_and_dynamic_axes(tmp_path):
    net, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
    path = tmp_path / "net.onnx"
    axes = {"left": {0: "batch"}, "right": {0: "batch"}}
    given = {"input_names": ["left"], "output_names": ["right"], "dynamic_axes": axes}
    assert torch.onnx.export(net, x, path, dynamo=False, **given) is None
    graph = parse_message(path.read_bytes()).graph
    for part, name in ((graph.input[0], "left"), (graph.output[0], "right")):
        assert part.name == name and part.type.tensor_type.shape.dim[0].dim_param == "batch"
    module = torch.onnx.load(path)
    assert module(torch.ones(7, 3)).shape == (7, 2)
    assert {name for name, _ in module.named_parameters()} == {"weight", "bias"}


def test_export_uses_eval_mode_and_restores_the_mode():
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Dropout(0.5))
    file = io.BytesIO()
    torch.onnx.export(net, (torch.ones(1, 1, 5, 5),), file, dynamo=False)
    found = [node.op_type for node in parse_message(file.getvalue()).graph.node]
    assert found == ["Conv", "BatchNormalization"] and net.training and net[1].training


def test_an_op_of_the_program():
    def symbolic(g, x):
        return g.op("own::Cube", x, power_i=3)

    class Net(torch.nn.Module):
        def forward(self, x):
            assert torch.onnx.is_in_onnx_export()
            return torch.sinh(x)

    table = {torch.ops.aten.sinh.default: symbolic}
    program = torch.onnx.export(Net(), (torch.ones(2),), custom_translation_table=table)
    (node,) = program.model.graph.node
    assert (node.op_type, node.domain, node.attribute[0].i) == ("Cube", "own", 3) and not torch.onnx.is_in_onnx_export()
    module = torch.onnx.load(program.to_bytes(), custom_ops={("own", "Cube"): lambda x, power: x**power})
    assert module(torch.full((2,), 2.0)).tolist() == [8, 8]
    torch.onnx.register_custom_op_symbolic("aten::sinh", symbolic, 18)
    try:
        assert kinds(torch.onnx.export(Net(), (torch.ones(2),))) == ["Cube"]
    finally:
        torch.onnx.unregister_custom_op_symbolic("aten::sinh", 18)
    assert kinds(torch.onnx.export(Net(), (torch.ones(2),))) == ["Sinh"]


def test_ops_of_onnx_in_a_program():
    class Net(torch.nn.Module):
        def forward(self, x):
            two = torch.tensor([2])
            values, places = torch.onnx.ops.symbolic_multi_out(
                "TopK", (x, two), {"axis": 1}, dtypes=(x.dtype, 7), shapes=[(1, 2, 4), (1, 2, 4)]
            )
            heads = values[:, None] + torch.onnx.ops.symbolic(
                "own::A",
                (x,),
                {"s": ["a"], "f": [1, 2.0], "i": True},
                dtype=1,
                shape=(1,),
                version=3,
                metadata_props={"k": "v"},
            )
            return torch.onnx.ops.attention(heads, heads, heads, is_causal=True)[0], places

    x = torch.arange(12.0).reshape(1, 3, 4)
    program = torch.onnx.export(Net(), (x,), opset_version=23)
    node = next(node for node in program.model.graph.node if node.op_type == "A")
    given = {a.name: a.strings or a.floats or a.i for a in node.attribute}
    assert {k: v if k == "i" else list(v) for k, v in given.items()} == {"s": [b"a"], "f": [1, 2], "i": 1}
    assert node.metadata_props[0].value == "v" and program.model.opset_import[1].version == 3
    module = torch.onnx.load(program.to_bytes(), custom_ops={("own", "A"): lambda x, **attributes: torch.zeros(1)})
    heads = x[:, [2, 1]][:, None]
    torch.testing.assert_close(module(x)[0], F.scaled_dot_product_attention(heads, heads, heads, is_causal=True))
    assert module(x)[1][0, :, 0].tolist() == [2, 1]
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="opset 23 has it"):
        torch.onnx.export(Net(), (x,), opset_version=22)
    for wrong, kind, words in (({"x": []}, ValueError, "Empty sequence"), ({"x": {}}, ValueError, "Unsupported attr")):
        with pytest.raises(kind, match=words):
            torch.onnx.ops.symbolic("own::A", (), wrong, dtype=1, shape=[1])
    with pytest.raises(RuntimeError, match="77 is invalid as an ONNX data type"):
        torch.onnx.ops.symbolic("own::A", (), dtype=77, shape=[1])


def test_a_symbolic_function_of_older_ops():
    from torchlite.onnx import symbolic_opset9 as opset9
    from torchlite.onnx import symbolic_opset11 as opset11

    assert opset9.add is opset11.add
    assert opset9._prepare_onnx_paddings(2, [1, 2]) == [0, 1, 0, 2]

    def symbolic(g, x):
        index = g.op("Constant", value_t=torch.tensor([1]))
        picked = opset11.squeeze(g, opset11.select(g, x, 0, index), 0)
        return g.op(
            "Cast", opset11.add(g, opset11.unsqueeze(g, picked, 0), x), to_i=torch.onnx.TensorProtoDataType.FLOAT
        )

    program = torch.onnx.export(
        Calls(torch.digamma), (torch.ones(2, 3),), custom_translation_table={torch.ops.aten.digamma.default: symbolic}
    )
    assert program.call_reference(torch.tensor([[1.0, 2, 3], [10, 20, 30]]))[0].tolist() == [[11, 22, 33], [20, 40, 60]]


def test_writes_through_views():
    def program(x):
        y = torch.zeros(3, 4)
        y[0].copy_(x[0])
        y[:, 1:2] = 5.0
        y[1].view(-1)[2:].add_(x[1, 2:])
        return y + x

    x = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(torch.onnx.export(Calls(program), (x,)).call_reference(x)[0], program(x))


def test_unsupported_ops_and_opsets_raise():
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="aten::digamma"):
        torch.onnx.export(Calls(torch.digamma), (torch.ones(2),))
    with pytest.raises(ValueError, match="Unsupported ONNX opset version: 30"):
        torch.onnx.export(Calls(torch.relu), (torch.ones(2),), opset_version=30)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        program = torch.onnx.export(Calls(torch.relu), (torch.ones(2),), opset_version=9)
    assert program.model.opset_import[0].version == 11 and "older than what torchlite writes" in str(said[0].message)


def test_constants_need_no_rule():
    """The writer computes them, so they are not decomposed for want of a rule."""

    class Windowed(torch.nn.Module):
        def forward(self, x):
            return torch.special.i1e(x * torch.kaiser_window(4) + torch.logspace(0, 1, 4))

    exported = torch.export.export(Windowed(), (torch.ones(4),))
    options = ExportOptions(18, [], [], {}, {}, {}, True, False, "main")
    found = find_unwritten(program_to_export(exported), options)
    assert found == {torch.ops.aten.special_i1e.default}
    windowed = Calls(lambda x: x * torch.kaiser_window(4))
    assert kinds(torch.onnx.export(windowed, (torch.ones(4),), dynamo=True)) == ["Mul"]


def test_weights_left_out_or_other_ones():
    net = torch.nn.Linear(2, 1)
    program = torch.onnx.export(net, (torch.ones(1, 2),), export_params=False)
    assert [info.name for info in program.model.graph.input][1:] == ["weight", "bias"]
    program = torch.onnx.export(net, (torch.ones(1, 2),))
    program.apply_weights({"weight": torch.tensor([[2.0, 3.0]]), "bias": torch.tensor([1.0])})
    assert program.call_reference(torch.ones(1, 2))[0].tolist() == [[6]]
    with pytest.raises(ValueError, match="weight: a tensor of shape"):
        program.apply_weights({"weight": torch.ones(1)})
