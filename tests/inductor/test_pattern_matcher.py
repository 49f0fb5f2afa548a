"""Patterns of calls in exported graphs, and constants in place of calls."""

import pytest

import torchlite as torch
from torchlite._inductor import lowering, virtualized
from torchlite._inductor.constant_folding import constant_fold
from torchlite._inductor.custom_graph_pass import CustomGraphModulePass, CustomGraphPass, get_hash_for_files
from torchlite._inductor.freezing_utils import maybe_set_is_frozen_param
from torchlite._inductor.fx_passes import freezing_patterns, mkldnn_fusion
from torchlite._inductor.ir import Pointwise, TensorBox
from torchlite._inductor.pattern_matcher import (
    MULTIPLE,
    Arg,
    CallFunction,
    KeywordArg,
    PatternMatcherPass,
    filter_nodes,
    register_graph_pattern,
)

aten = torch.ops.aten


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def graph_of(function, *inputs):
    return torch.export.export(Function(function), inputs).module(check_guards=False)


def matches(pattern, module):
    return [match for match in map(pattern.match, module.graph.nodes) if match is not None]


@pytest.mark.parametrize(
    ("pattern", "function"),
    [
        (mkldnn_fusion._gelu_fusion_1, lambda x: (y := x.neg()) * 0.5 * ((y * 0.7071067811865476).erf() + 1)),
        (
            mkldnn_fusion._gelu_fusion_2,
            lambda x: (y := x.neg()) * 0.5 * (((y + y * y * y * 0.044715) * 0.7978845608028654).tanh() + 1),
        ),
        (mkldnn_fusion._hardswish_fusion, lambda x: (y := x.neg()) * torch.clamp_max(torch.clamp_min(y + 3, 0), 6) / 6),
        (mkldnn_fusion._silu_fusion, lambda x: (y := x.neg()) * y.sigmoid()),
        (mkldnn_fusion._hardtanh_fusion, lambda x: torch.clamp_max(torch.clamp_min(x.neg(), -1), 2)),
    ],
)
def test_activations_are_found(pattern, function):
    module = graph_of(function, torch.ones(2))
    (match,) = matches(pattern(CallFunction(aten.neg, KeywordArg("x"), _users=MULTIPLE)), module)
    assert match.kwargs["x"].op == "placeholder" and match.output_nodes() == [match.output_node()]
    assert match.graph is module.graph
    assert not matches(pattern(CallFunction(aten.abs, KeywordArg("x"), _users=MULTIPLE)), module)


def test_arguments_and_users_decide():
    module = graph_of(lambda x, y: (x.exp() + y, x.exp() * x), torch.ones(2), torch.ones(2))
    exp = CallFunction([aten.exp, aten.log], Arg())
    (match,) = matches(CallFunction(aten.add.Tensor, exp, KeywordArg("other")), module)
    assert [node.name for node in match.args] == ["args_0"] and match.kwargs["other"].name == "args_1"
    assert len(matches(CallFunction(aten.mul, exp, Arg()), module)) == 1
    assert not matches(CallFunction(aten.mul, CallFunction(aten.exp, Arg(), _users=2), Arg()), module)
    assert not matches(CallFunction(aten.add, KeywordArg("same"), KeywordArg("same")), module)
    assert not matches(CallFunction(aten.add, exp), module)
    assert [node.name for node in filter_nodes(module.graph.nodes, aten.exp)] == ["exp", "exp_1"]


def test_a_pass_replaces_what_it_finds():
    module = graph_of(lambda x: (x + x).neg().neg(), torch.ones(2))
    rules = PatternMatcherPass("double")

    @register_graph_pattern(CallFunction(aten.add, KeywordArg("x"), KeywordArg("x")), pass_dict=rules)
    def double(match, x):
        node = match.output_node()
        with match.graph.inserting_before(node):
            node.replace_all_uses_with(match.graph.call_function(aten.mul.Tensor, (x, 2)))
        match.erase_nodes()

    assert rules.apply(module.graph) == 1
    module.recompile()
    assert next(str(node.target) for node in module.graph.nodes if node.op == "call_function") == "aten.mul.Tensor"
    assert module(torch.ones(2)).tolist() == [2, 2]


def test_constants_are_computed_once():
    class Quantized(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([[1.0, -1.0]]))

        def forward(self, x):
            levels = torch.ops.quantized_decomposed.quantize_per_tensor(self.weight, 0.5, 0, -128, 127, torch.int8)
            weight = torch.ops.quantized_decomposed.dequantize_per_tensor(levels, 0.5, 0, -128, 127, torch.int8)
            return torch.nn.functional.linear(x, weight) + torch.rand(1)

    module = torch.export.export(Quantized(), (torch.ones(1, 2),)).module(check_guards=False)
    kept = torch.export.export(Quantized(), (torch.ones(1, 2),)).module(check_guards=False)
    torch.manual_seed(0)
    expected = module(torch.tensor([[3.0, 1.0]]))
    freezing_patterns.freezing_passes(module, (torch.ones(1, 2),))
    names = [str(node.target) for node in module.graph.nodes if node.op != "placeholder"]
    back = "quantized_decomposed.dequantize_per_tensor.default"  # stays for a product of levels
    assert names == ["_frozen_param0", back, "aten.linear.default", "aten.rand.default", "aten.add.Tensor", "output"]
    torch.manual_seed(0)
    assert torch.equal(module(torch.tensor([[3.0, 1.0]])), expected)
    constant_fold(kept, lambda node: False)
    assert len(kept.graph.nodes) == 8
    maybe_set_is_frozen_param(kept.weight)


def test_registered_patterns_replace_calls_of_frozen_graphs():
    pattern = CallFunction(aten.relu, CallFunction(aten.linear, KeywordArg("x"), KeywordArg("w"), KeywordArg("b")))
    layers, seen = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()), []

    @freezing_patterns.register_freezing_graph_pattern(pattern, pass_number=1)
    def fuse(match, x, w, b):
        end = match.output_node()
        seen.append((tuple(end.meta["val"].shape), end.meta["tensor_meta"].dtype, x.meta["tensor_meta"].shape))
        with match.graph.inserting_before(end):
            packed = match.graph.call_function(torch.ops.onednn.linear_prepack_fp16, (w, None))
            made = match.graph.call_function(torch.ops.onednn.linear_relu_dynamic_fp16.default, (x, packed, b))
        end.replace_all_uses_with(made)
        match.erase_nodes()

    try:
        x = torch.randn(2, 3)
        module = torch.export.export(layers, (x,)).module(check_guards=False)
        expected = module(x)
        freezing_patterns.freezing_passes(module, (x,))
        constant_fold(module)
    finally:
        freezing_patterns.pass_patterns[1].patterns.pop()
    assert seen == [((2, 4), torch.float32, (2, 3))]
    names = [str(node.target) for node in module.graph.nodes if node.op == "call_function"]
    assert names == ["onednn.linear_relu_dynamic_fp16.default"]  # the packed weight is a constant
    torch.testing.assert_close(module(x), expected, rtol=1e-2, atol=1e-3)


def test_rules_for_another_compiler_are_kept_alone(tmp_path):
    handler = freezing_patterns.register_freezing_graph_pattern(Arg(), pass_number=5)(lambda match, x: None)
    assert freezing_patterns.pass_patterns[5].patterns.pop()[2] is handler
    assert lowering.register_lowering(["a", "b"])(len) is len and lowering.lowerings.pop("a") is len
    for call in (lambda: Pointwise.create(), lambda: TensorBox(1), lambda: virtualized.ops.constant(1.0)):
        with pytest.raises(NotImplementedError, match="no loops"):
            call()
    with pytest.raises(NotImplementedError, match="no loops"):
        lowering.to_dtype(None, torch.int8)
    path = tmp_path / "file"
    path.write_text("text", encoding="utf-8")
    assert get_hash_for_files((str(path),)) != get_hash_for_files((str(path),), "more")
    for base in (CustomGraphPass, CustomGraphModulePass):
        with pytest.raises(TypeError):
            base()


def test_users_that_remain():
    module = graph_of(lambda x: (y := x.relu()).exp() + y, torch.ones(2))
    relu, exp, add = (node for node in module.graph.nodes if node.op == "call_function")
    assert mkldnn_fusion._get_remaining_users(relu, exp) == [add]
    assert mkldnn_fusion._get_remaining_users(relu, add) == []
