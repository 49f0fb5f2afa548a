"""Modules of exported programs: the order of nodes, their metadata, and calls in place."""

import operator

import torchlite as torch
from torchlite._types.python_source import compile_function
from torchlite.nn import functional as F


class Network(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.function = function

    def forward(self, x):
        return self.function(self.layer(x))


def module_of(function, **options):
    return torch.export.export(Network(function), (torch.ones(1, 2),)).module(**options)


def test_parameters_come_before_inputs():
    module = module_of(torch.relu)
    assert [node.op for node in module.graph.nodes] == [
        "get_attr", "get_attr", "placeholder", "call_module", "call_function", "call_function", "output",
    ]  # fmt: skip
    assert all(node.meta for node in module.graph.nodes)
    guards = next(node for node in module.graph.nodes if node.op == "call_module")
    assert "L__self__" in guards.meta["nn_module_stack"]
    expected = F.linear(torch.ones(1, 2), module.layer.weight, module.layer.bias).relu()
    assert torch.equal(module(torch.ones(1, 2)), expected)


def test_some_packages_get_no_guards(tmp_path):
    source = "def build(program): return program.module()"
    build = compile_function("build", source, str(tmp_path / "torchao" / "passes.py"), {})
    module = build(torch.export.export(Network(torch.relu), (torch.ones(1, 2),)))
    assert "call_module" not in [node.op for node in module.graph.nodes]
    module(torch.ones(3, 2))


def calls(module):
    return [node for node in module.graph.nodes if node.op == "call_function"][1:]


def test_functions_with_inplace_are_ops_in_place():
    for training in (True, False):
        (node,) = calls(module_of(lambda x, training=training: F.dropout(x, 0.5, training, inplace=True)))
        assert node.target is torch.ops.aten.dropout_.default and node.args[1:] == (0.5, training)
    (node,) = calls(module_of(lambda x: F.dropout(x, 0.5, True)))
    assert node.target is torch.ops.aten.dropout.default


def test_nodes_name_the_operator_of_the_program():
    def function(x):
        y = x + 1
        y += x
        return torch.add(y, x).add(2) * 2 @ x.t()

    found = [node.meta.get("source_fn_stack") for node in calls(module_of(function))]
    sources = [stack and stack[0][1] for stack in found]
    assert sources == [operator.add, operator.iadd, None, None, operator.mul, None, operator.matmul]


def test_integers_of_a_library_op_are_exported_without_gradient():
    def function(x):
        levels = torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8)
        return torch.ops.quantized_decomposed.dequantize_per_tensor(levels, 0.1, 0, -128, 127, torch.int8)

    quantize, dequantize = calls(module_of(function))
    assert not quantize.meta["val"].requires_grad and quantize.meta["val"].dtype is torch.int8
    mode = dequantize.meta["val"].fake_mode
    assert mode is quantize.meta["val"].fake_mode
    assert mode.from_tensor(torch.ones(2), static_shapes=True).shape == (2,)
