"""Graph modules that are exported again: new nodes name the old ones, and keep their tags."""

from __future__ import annotations

import torchlite as torch


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 4)

    def forward(self, x, scale=None):
        y = torch.relu(self.layer(x)).reshape(x.shape[0], 2, -1)
        return y if scale is None else y * scale


X = torch.arange(6.0).reshape(2, 3)


def calls(graph):
    return [node for node in graph.nodes if node.op == "call_function"]


def test_new_nodes_name_the_old_ones_and_keep_their_tags():
    module = torch.export.export(Network(), (X,)).module()
    for number, node in enumerate(calls(module.graph)):
        node.meta["quantization_tag"], node.meta["custom"] = f"tag{number}", {"number": number}
    program = torch.export.export(module, (X,))
    found = [node for node in calls(program.graph) if node.target is not torch.ops.aten.sym_size.int]
    assert [str(node.target) for node in found] == ["aten.linear.default", "aten.relu.default", "aten.reshape.default"]
    for number, node in enumerate(found):
        (source,) = node.meta["from_node"]
        assert (source.pass_name, source.name) == ("Interpreter_Interpreter", node.name)
        assert source.graph_id == id(module.graph) and source.from_node[0].pass_name == "ExportedProgram.module()"
        assert node.meta["quantization_tag"] == f"tag{number}" and node.meta["custom"] == {"number": number}
    layer = found[0].meta["nn_module_stack"]
    assert [path for path, _ in layer.values()] == ["", "layer"] and "Linear" in list(layer.values())[-1][1]
    assert torch.equal(program.module()(X), module(X))


def test_sizes_stay_dynamic():
    net = Network()
    module = torch.export.export(net, (X,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}}).module()
    program = torch.export.export(module, (X,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    larger = torch.randn(5, 3)
    assert torch.equal(program.module()(larger), net(larger))


def test_arguments_by_name():
    net = Network()
    module = torch.export.export(net, (X,), {"scale": torch.tensor(2.0)}).module()
    program = torch.export.export(module, (X,), {"scale": torch.tensor(2.0)})
    assert torch.equal(program.module()(X, scale=torch.tensor(3.0)), net(X, torch.tensor(3.0)))


def test_symbolic_traces_are_exported():
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()))
    program = torch.export.export(traced, (X,))
    assert [str(node.target) for node in calls(program.graph)] == ["aten.linear.default", "aten.relu.default"]
    assert torch.equal(program.module()(X), traced(X))


def test_hooks_of_a_graph_module_are_part_of_the_program():
    module = torch.export.export(Network(), (X,)).module()
    module.register_forward_hook(lambda module, args, result: result + 1)
    assert torch.equal(torch.export.export(module, (X,)).module()(X), module(X))
