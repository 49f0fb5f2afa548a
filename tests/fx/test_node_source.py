"""Which node of which graph a node was made of."""

import copy

import pytest

import torchlite as torch
from torchlite.fx.traceback import NodeSource, NodeSourceAction, preserve_node_meta, set_current_meta


def nodes_of(function):
    return list(torch.fx.symbolic_trace(function).graph.nodes)


def test_a_source_names_its_node():
    first = nodes_of(lambda x: x + 1)[1]
    first.meta["from_node"] = [NodeSource(None, "earlier")]
    source = NodeSource(first, "pass", NodeSourceAction.CREATE)
    assert (source.name, source.target, source.graph_id) == ("add", str(first.target), id(first.graph))
    assert [one.pass_name for one in source.from_node] == ["earlier"]
    assert repr(source) == (
        f"(name=add, pass_name=pass, action=create, graph_id={id(first.graph)})\n"
        "    (name=, pass_name=earlier, action=, graph_id=-1)\n"
    )
    again = NodeSource._from_dict(source.to_dict())
    assert again == source and hash(again) == hash(source) and copy.deepcopy(source) == source
    assert again != NodeSource(first, "other", NodeSourceAction.CREATE) and again != "pass"
    both = NodeSource(first, "pass", [NodeSourceAction.CREATE, NodeSourceAction.REPLACE])
    assert both.to_dict()["action"] == "create+replace" and NodeSource._from_dict(both.to_dict()) == both
    assert NodeSource._from_dict(None) is None and NodeSource._from_dict({}).name == ""
    with pytest.raises(AssertionError, match="Expected NodeSourceAction"):
        NodeSource(first, "pass", "create")
    with pytest.raises(AssertionError, match="Expected a dict"):
        NodeSource._from_dict([])


def test_sources_end_after_ten():
    source = NodeSource(None, "0")
    for number in range(1, 12):
        outer = NodeSource(None, str(number))
        outer.from_node, source = [source], outer
    assert len(repr(source).splitlines()) == 10


def test_an_interpreted_node_is_the_source_of_new_ones():
    node = nodes_of(lambda x: x + 1)[1]
    with preserve_node_meta(), set_current_meta(node, "none"):
        pass  # a node without metadata is no source
    node.meta["custom"] = {}
    with preserve_node_meta(), set_current_meta(node, "pass"):
        made = nodes_of(lambda x: x * 2)[1]
    (source,) = made.meta["from_node"]
    assert (source.name, source.pass_name, source.action) == ("add", "pass", [NodeSourceAction.CREATE])


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x) + 1


def test_exported_nodes_have_one_first_source():
    program = torch.export.export(Scaled(), (torch.ones(1, 2),))

    def first_names(graph):
        found = {}
        for node in graph.nodes:
            if node.op == "call_function":
                source = node.meta["from_node"][-1]
                while source.from_node:
                    source = source.from_node[-1]
                found[node.name] = source.name, source.graph_id
        return found

    here = id(program.graph)
    assert first_names(program.module().graph) == {"linear": ("linear", here), "add": ("add", here)}
    decomposed = program.run_decompositions().module().graph
    names = first_names(decomposed)
    assert set(names.values()) == {("linear", here), ("add", here)} and len(names) > 2
    assert first_names(copy.deepcopy(program).module().graph) == first_names(program.module().graph)
    parameter = next(node for node in program.module().graph.nodes if node.op == "get_attr")
    assert parameter.meta["from_node"][0].to_dict()["action"] == "create+replace"
