"""Graphs, their nodes, and the code that is written from them."""

import copy
import enum
import itertools
import math
import operator
import pickle
from typing import NamedTuple

import pytest

import torchlite as torch
from torchlite.fx import Graph, GraphModule, Node, Proxy
from torchlite.fx.immutable_collections import immutable_dict, immutable_list
from torchlite.fx.node import map_aggregate, map_arg
from torchlite.fx.passes.utils.common import compare_graphs


class Pair(NamedTuple):
    x: object
    y: object


class Color(enum.Enum):
    RED = 1


def plus(a, b):
    return a + b


def small():
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.relu, (x,))
    z = graph.call_method("add", (y, x), {"alpha": 2})
    graph.output(z)
    return graph, x, y, z


def test_nodes_track_their_users():
    graph, x, y, z = small()
    assert list(x.users) == [y, z] and z.all_input_nodes == [y, x] and not graph.output_node().users
    z.args = (x, x)
    assert list(y.users) == [] and z.all_input_nodes == [x]
    z.update_arg(0, y)
    z.update_kwarg("alpha", 3)
    assert list(y.users) == [z] and z.kwargs == {"alpha": 3}
    y.insert_arg(1, 7)
    assert y.args == (x, 7)
    with pytest.raises(AssertionError, match="between 0 and len"):
        y.insert_arg(9, 1)
    assert x < y < z and z > x and x <= x and sorted([z, x, y]) == [x, y, z]
    assert x.next is y and z.prev is y and repr(z) == "add" and isinstance(z, Node)


def test_arguments_cannot_be_changed_in_place():
    graph, x, _, _ = small()
    node = graph.call_function(plus, ([x, 1], {"a": x}))
    assert type(node.args[0]) is immutable_list and type(node.args[1]) is immutable_dict
    for change in (lambda: node.args[0].append(1), lambda: node.args[1].update(a=1), lambda: node.args[0].sort()):
        with pytest.raises(TypeError, match="does not support mutation"):
            change()
    assert hash(node.args[0]) == hash((x, 1)) and pickle.loads(pickle.dumps(immutable_list([1]))) == [1]
    assert copy.deepcopy(immutable_dict(a=[1])) == {"a": [1]}


def test_map_arg_keeps_structures():
    _, x, y, _ = small()
    found = map_arg((x, [y, 3], {"k": x}, slice(x, None, 2), Pair(x, 1)), lambda node: node.name)
    assert found == ("x", ["relu", 3], {"k": "x"}, slice("x", None, 2), Pair("x", 1)) and type(found[4]) is Pair
    assert map_aggregate([1, (2,)], lambda value: value * 2) == [2, (4,)]


def test_replacing_and_erasing():
    graph, x, y, z = small()
    with graph.inserting_after(y):
        w = graph.call_function(torch.neg, (x,))
    assert [node.name for node in graph.nodes] == ["x", "relu", "neg", "add", "output"]
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(y)
    y.meta["said"] = 1
    assert y.replace_all_uses_with(w, propagate_meta=True) == [z] and w.meta == {"said": 1}
    graph.erase_node(y)
    with pytest.warns(UserWarning, match="already erased"):
        graph.erase_node(y)
    assert [node.name for node in reversed(graph.nodes)] == ["output", "add", "neg", "x"] and len(graph.nodes) == 4
    assert set(x.users) == {z, w} and graph.find_nodes(op="call_function", target=torch.neg) == [w]
    z.append(w)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()
    z.prepend(w)
    graph.lint()
    with pytest.raises(RuntimeError, match="from wrong graph"):
        Graph().erase_node(graph.call_function(torch.neg, (x,)))


def test_nodes_may_be_erased_and_inserted_while_walked():
    graph, x, y, z = small()
    for node in graph.nodes:
        if node is y:
            node.replace_all_uses_with(x)
            graph.erase_node(node)
            with graph.inserting_before(z):
                graph.call_function(torch.neg, (x,))
    assert [node.op for node in graph.nodes] == ["placeholder", "call_function", "call_method", "output"]


def test_order_after_many_insertions():
    graph, x, _, z = small()
    nodes = []
    for i in range(60):
        with graph.inserting_before(z if i % 3 else (nodes[-1] if nodes else z)):
            nodes.append(graph.call_function(torch.neg, (x,)))
        with graph.inserting_after(nodes[len(nodes) // 2]):
            nodes.append(graph.call_function(torch.neg, (x,)))
    ordered = list(graph.nodes)
    assert all(a < b for a, b in itertools.pairwise(ordered))


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda g: g.create_node("call", "f"), "not in _legal_ops"),
        (lambda g: g.create_node("call_function", "f"), "a Callable is expected"),
        (lambda g: g.create_node("call_module", torch.relu), "a str is expected"),
        (lambda g: g.create_node("call_method", "f", [1]), "args must be a tuple"),
    ],
)
def test_wrong_nodes(make, words):
    with pytest.raises((AssertionError, ValueError), match=words):
        make(Graph())


def test_lint_asks_the_module():
    module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    with module.graph.inserting_before(module.graph.output_node()):
        with pytest.warns(UserWarning, match="insert a get_attr Node with no underlying reference"):
            node = module.graph.get_attr("nothing")
        with pytest.warns(UserWarning, match="insert a call_module Node with no underlying reference"):
            module.graph.erase_node(module.graph.call_module("absent"))
    with pytest.raises(RuntimeError, match="references nonexistent attribute nothing"):
        module.graph.lint()
    module.graph.erase_node(node)
    module.graph.lint()
    other = Graph()
    x = other.placeholder("x")
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        module.graph.call_function(torch.neg, (x,))
        module.graph.lint()


def test_dead_code_elimination_preserves_side_effects():
    def program(x):
        torch.neg(x)
        torch._assert(x.sum() > 0, "no")
        return x + 1

    graph = torch.fx.symbolic_trace(program).graph
    with graph.inserting_before(graph.output_node()):
        graph.call_function(operator.setitem, (graph.find_nodes(op="placeholder")[0], 0, 1))
    assert graph.eliminate_dead_code() and not graph.eliminate_dead_code()
    names = [node.name for node in graph.nodes]
    assert "neg" not in names and "_assert" in names and "setitem" in names and names[-1] == "output"
    assert graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    assert [node.name for node in graph.nodes] == ["x", "add", "output"]

    @torch.fx.has_side_effect
    def noted(x):
        return x

    graph = Graph()
    x = graph.placeholder("x")
    graph.call_function(noted, (x,))
    graph.output(x)
    assert not graph.eliminate_dead_code()


def test_copies_have_new_nodes():
    graph, _, y, _ = small()
    y.meta["kept"] = 1
    copied = copy.deepcopy(graph)
    assert str(copied) == str(graph) and compare_graphs(copied, graph)
    assert all(node.graph is copied for node in copied.nodes) and list(copied.nodes)[1].meta == {"kept": 1}
    other = Graph()
    found = other.graph_copy(graph, {})
    assert found.name == "add" and len(other.nodes) == 3


@pytest.mark.parametrize(
    "target, args, kwargs, line",
    [
        (operator.add, ("x", 2), {}, "x + 2"),
        (operator.getitem, ("x", (slice(None), 1)), {}, "x[(slice(None, None, None), 1)]"),
        (operator.setitem, ("x", 0, 1.5), {}, "x[0] = 1.5;  "),
        (operator.iadd, ("x", 1), {}, "x += 1;  "),
        (getattr, ("x", "shape"), {}, "x.shape"),
        (getattr, ("x", "a b"), {}, "getattr(x, 'a b')"),
        (torch.relu, ("x",), {}, "torch.relu(x)"),
        (torch.nn.functional.relu, ("x",), {"inplace": False}, "torch.nn.functional.relu(x, inplace = False)"),
        (torch.linalg.inv, ("x",), {}, "torch.linalg.inv(x)"),
        (torch.ops.aten.add.Tensor, ("x", "x"), {}, "torch.ops.aten.add.Tensor(x, x)"),
        (torch.ops.aten.cat, (["x"],), {}, "torch.ops.aten.cat([x])"),
        (len, ("x",), {}, "len(x)"),
        (math.sqrt, ("x",), {}, "math_sqrt(x)"),
        (plus, ("x", float("inf")), {}, "plus(x, inf)"),
        (torch.zeros, ((2,),), {"dtype": torch.int8}, "torch.zeros((2,), dtype = torch.int8)"),
        (torch.full, ((2,), 1), {"device": torch.device("cpu")}, "device = device(type='cpu'))"),
        (plus, (Pair("x", 1), Color.RED), {}, "Pair(x, 1), Color.RED)"),
        (plus, ({"a": "x"}, torch.ops.aten.mul.Tensor), {}, "({'a': x}, torch.ops.aten.mul.Tensor)"),
        (isinstance, ("x", torch.Tensor), {}, "isinstance(x, torch.Tensor)"),
    ],
)
def test_code_of_calls(target, args, kwargs, line):
    graph = Graph()
    x = graph.placeholder("x")
    args = map_aggregate(args, lambda value: x if isinstance(value, str) and value == "x" else value)
    graph.output(graph.call_function(target, tuple(args), kwargs))
    assert line in graph.python_code("self").src


def test_ops_by_their_module():
    assert torch._ops.ops is torch.ops and torch._ops.OpOverload is type(torch.ops.aten.add.Tensor).__mro__[1]


def test_code_runs_and_releases_values():
    graph, _, _, _ = small()
    module = GraphModule(torch.nn.Module(), graph)
    assert module.code.strip().splitlines() == [
        "def forward(self, x):",
        "    relu = torch.relu(x)",
        "    add = relu.add(x, alpha = 2);  relu = x = None",
        "    return add",
    ]
    assert module(torch.tensor([-1.0, 2.0])).tolist() == [-2.0, 6.0]


def test_names_hide_nothing():
    graph = Graph()
    names = [graph.placeholder(name).name for name in ("x", "x", "max", "0.weight", "class", "a-b", "x_1", "")]
    assert names == ["x", "x_1", "max_1", "_0_weight", "class_1", "a_b", "x_2", "_unnamed"]
    node = graph.call_function(torch.nn.functional.max_pool2d, (None, 2))
    assert node.name == "max_pool2d"
    node._rename("better")
    assert node.name == "better" and graph.call_function(plus, (1, 2), name="better").name == "better_1"


def test_printing(capsys):
    graph, x, y, _ = small()
    graph.print_tabular()
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["opcode", "name", "target", "args", "kwargs"] and table[1].startswith("-----")
    assert table[4].split()[:3] == ["call_method", "add", "add"] and "{'alpha': 2}" in table[4]
    assert str(graph).splitlines()[2] == (
        "    %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})"
    )
    y.type = torch.Tensor
    assert y.format_node().startswith("%relu : torch.Tensor [num_users=1]") and "alpha: 2" in str(graph)
    assert x.format_node() == "%x : [num_users=2] = placeholder[target=x]"


def test_types_are_written():
    from typing import List, Optional  # noqa: UP035

    graph = Graph()
    x = graph.placeholder("x", type_expr=List[int])  # noqa: UP006
    y = graph.placeholder("y", type_expr=Optional[torch.Tensor], default_value=None)  # noqa: UP045
    graph.output((x, y), type_expr=tuple[int, ...])
    code = graph.python_code("self").src
    assert "x : typing_List[int], y : typing_Optional[torch.Tensor] = None) -> tuple[int,...]" in code or "y :" in code
    assert GraphModule({}, graph)([1]) == ([1], None)


def test_on_generate_code_transforms_the_code():
    module = torch.fx.symbolic_trace(lambda x: x + 1)
    seen = []

    def noting(before):
        return lambda body: seen.append(len(body)) or ["seen = 3\n", *body]

    with module.graph.on_generate_code(noting):
        module.recompile()
        assert "seen = 3" in module.code and seen
    module.recompile()
    assert "seen" not in module.code


def test_code_generators():
    class Listed(torch.fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, args_list):\n    {', '.join(free_vars)}, = args_list"

        def additional_globals(self):
            return [("Thing", Pair)]

        def generate_output(self, output_args):
            return f"return Thing({output_args!r}, 1)"

        def process_inputs(self, args):
            return args

        def process_outputs(self, outputs):
            return Pair(outputs, 1)

    module = torch.fx.symbolic_trace(lambda x, y: x + y)
    module.graph.set_codegen(Listed())
    module.recompile()
    assert module([torch.ones(1), 2]) == Pair(torch.tensor([3.0]), 1)
    assert torch.fx.Interpreter(module).run([torch.ones(1), 2]) == Pair(torch.tensor([3.0]), 1)
    assert copy.deepcopy(module)([torch.ones(1), 2]).y == 1


def test_proxies_of_a_graph_that_is_there():
    graph, x, y, z = small()
    with graph.inserting_before(z):
        made = torch.sigmoid(Proxy(y)) * 3 - [Proxy(x)][0].abs()
    z.update_arg(0, made.node)
    graph.lint()
    module = GraphModule(torch.nn.Module(), graph)
    x = torch.tensor([0.5])
    assert torch.allclose(module(x), torch.sigmoid(x.relu()) * 3 - x.abs() + 2 * x)
