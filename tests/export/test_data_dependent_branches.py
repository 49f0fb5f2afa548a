"""Truth values and fractions that depend on elements or sizes, and branches and loops on them, in exported programs."""

import io
import json
import zipfile

import pytest

import torchlite as torch
from torchlite._dispatch import interceptors
from torchlite._dispatch.dispatch_state import GLOBALS
from torchlite._symbolic_expression_text import parse_srepr
from torchlite.export import Dim, export
from torchlite.func import _predispatch
from torchlite.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

tensor = torch.tensor
X = torch.arange(15.0).reshape(5, 3) - 6


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.scale = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, *args):
        return self.function(self, *args)


def double(x):
    return x * 2


def more(x):
    return x + 1


def by_truth(m, x, k):
    flag = k.item()
    return torch.cond(flag, double, more, (x,)), x * flag, torch.sym_ite(flag, 3, 5)


def by_fraction(m, x, k):
    k = k.item()
    torch._check(k < 100)
    return torch.cond(k > 0.5, double, more, (x,)), x * (k * 2 + 1), 2 / k - 1


def by_several(m, x, a, b):
    a, b = a.item(), b.item()
    both, either = (b > 2) & a, a | (b > 2)
    return torch.cond(both, double, more, (x,)), torch.cond(torch.sym_not(either), double, more, (x,)), a + 2


def by_loop(m, x, n):
    return torch._higher_order_ops.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * m.scale + n), (n, x))


def looped(m, x):
    return torch._higher_order_ops.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, (x * m.scale).tanh() + m.scale.sum()), (tensor(0), x)
    )[1]


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (by_truth, [(X, tensor(True)), (X, tensor(False))]),
        (by_fraction, [(X, tensor(1.5)), (X, tensor(0.25))]),
        (by_several, [(X, tensor(True), tensor(3)), (X, tensor(False), tensor(3)), (X, tensor(False), tensor(1))]),
        (by_loop, [(X, tensor(3)), (X, tensor(1)), (X, tensor(9))]),
        (looped, [(X,), (X + 3,)]),
    ],
)
def test_a_condition_is_a_node(function, calls):
    module = Module(function)
    program = export(module, calls[0])
    held = io.BytesIO()
    torch.export.save(program, held)
    for found in (program, torch.export.load(io.BytesIO(held.getvalue())), program.run_decompositions()):
        for call in calls:
            torch.testing.assert_close(found.module()(*call), module(*call))


def test_symbols_have_distinct_names_and_ranges():
    program = export(Module(lambda m, a, b, c: (a.item(), b.item(), c.item())), (tensor(True), tensor(3), tensor(0.5)))
    assert {name: (r.lower, r.upper) for name, r in program.range_constraints.items()} == {
        "u0": (0, 1),
        "u1": (-float("inf"), float("inf")),
        "zuf0": (-float("inf"), float("inf")),
    }


def test_a_branch_by_a_size_leaves_the_range_as_it_is():
    def chosen(m, x):
        return torch.cond(x.shape[0] > 5, double, more, (x,)), x.shape[0] > 6

    program = export(Module(chosen), (X,), dynamic_shapes=(({0: Dim("n")},),))
    for found in (program, program.run_decompositions()):
        for rows in (3, 5, 6, 9):
            x = torch.ones(rows, 2)[:, :1].expand(rows, 3)
            torch.testing.assert_close(found.module()(x), chosen(None, x))
    assert program._guards_code == []


def test_a_condition_on_a_size_passed_to_an_op_is_specialized():
    def causal(m, x):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=x.shape[-2] > 1)

    program = export(Module(causal), (torch.ones(2, 4, 3),), dynamic_shapes=(({1: Dim.DYNAMIC},),))
    x = torch.arange(18.0).reshape(1, 6, 3).expand(2, 6, 3).sin()
    torch.testing.assert_close(program.module()(x), causal(None, x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if (x.shape[0] > 3) == True else x,  # noqa: E712
        lambda x: x * {True: 2, False: 3}[x.shape[0] > 3],
        lambda x: x * [2, 3][x.shape[0] > 3] + int(x.shape[0] > 2) + float(x.shape[0] < 3),
        lambda x: x * sum(n > 3 for n in x.shape) + torch.tensor(x.shape[0] > 3),
        lambda x: x * (x.shape[0] > 3) if x.shape[0] in (2, 5) else x,
        lambda x: x[: (x.shape[0] > 3) + 1] * (x.shape[0] > 3),
    ],
)
def test_conditions_on_sizes_are_truth_values_for_python(function):
    program = export(Module(lambda m, x: function(x)), (X,), dynamic_shapes=(({0: Dim.AUTO},),))
    torch.testing.assert_close(program.module()(X), function(X))
    x = torch.ones(9, 3)
    try:
        found = program.module()(x)
    except AssertionError:
        return  # a guard: what the program decided was otherwise
    torch.testing.assert_close(found, function(x))


def test_a_branch_on_a_value_raises():
    with pytest.raises(GuardOnDataDependentSymNode, match="a.item"):
        export(Module(lambda m, a: a + 1 if a.item() and a.item() else a), (tensor(True),))


def model_of(program):
    held = io.BytesIO()
    torch.export.save(program, held)
    with zipfile.ZipFile(held) as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        return held, name, json.loads(archive.read(name))


def test_branches_that_read_a_constant_of_a_program_with_sizes():
    constant = torch.arange(4.0)

    class Net(torch.nn.Module):
        def forward(self, x):
            return x + torch.cond(x.sum() > 0, lambda a: a + constant[0].detach(), lambda a: a - x[0] + constant, (x,))

    program = torch.export.export(
        Net(), (torch.ones(3, 4),), dynamic_shapes=({0: torch.export.Dim("n", min=2, max=9)},)
    )
    for x in (torch.ones(5, 4), -torch.ones(2, 4)):
        for run in (program.module(), program.run_decompositions().module()):
            assert torch.equal(run(x), Net()(x))


def test_saved_while_loop_conditions_return_a_single_tensor():
    graph = model_of(export(Module(by_loop), (X, tensor(3))))[2]["graph_module"]["graph"]
    loop = next(node for node in graph["nodes"] if node["name"] == "while_loop")
    graphs = [entry["arg"]["as_graph"]["graph"] for entry in loop["inputs"] if "as_graph" in entry["arg"]]
    assert [g["is_single_tensor_return"] for g in graphs] == [True, False]


def test_floats_of_sizes_and_elements_are_saved_with_their_hints():
    """A float of a known size has its value as a hint; one of an element has none."""
    n = torch.export.Dim("n")
    module = Module(lambda m, x, k: (x * (x.shape[0] / 3), x * (k.item() * 0.5)))
    program = export(module, (torch.ones(6, 2), tensor(4.0)), dynamic_shapes=(({0: n}, None),))
    held, _, model = model_of(program)
    saved = model["graph_module"]["graph"]["sym_float_values"]
    assert saved["truediv"]["as_expr"]["hint"] == {"as_float": 2.0}
    assert [entry["as_expr"]["hint"] for name, entry in saved.items() if name != "truediv"] == [None, None]
    held.seek(0)
    first, second = torch.export.load(held).module()(torch.ones(9, 2), tensor(4.0))
    assert (first == 3).all() and (second == 2).all()


def test_unknown_expressions_are_preserved_as_text():
    program = export(Module(lambda m, x, k: torch.zeros(torch.sym_ite(k.item(), 3, 5))), (X, tensor(True)))
    held, name, model = model_of(program)
    text = "Piecewise(ExprCondPair(Integer(3), Equality(Symbol('u0', integer=True), Integer(1))), ExprCondPair(true))"
    assert parse_srepr(text) is None
    model["graph_module"]["graph"]["sym_int_values"]["sym_ite"] = {"as_expr": {"expr_str": text, "hint": None}}
    changed = io.BytesIO()
    with zipfile.ZipFile(held) as before, zipfile.ZipFile(changed, "w") as after:
        for entry in before.namelist():
            after.writestr(entry, json.dumps(model) if entry == name else before.read(entry))
    changed.seek(0)
    loaded = torch.export.load(changed)
    assert loaded.module()(X, tensor(False)).shape == (5,)
    again = model_of(loaded)[2]["graph_module"]["graph"]["sym_int_values"]["sym_ite"]
    assert again["as_expr"]["expr_str"] == text


def batched(before):
    """A program as PyTorch writes `vmap(lambda a: a * a.sum())(x)`; `before`: whether it ends its level."""
    program = export(Module(lambda m, x: x * x.sum()), (X,))
    graph, calls = program.graph, {}
    x, mul = graph.find_nodes(op="placeholder")[-1], graph.find_nodes(op="call_function")[-1]
    for target, args, place in [
        (_predispatch.lazy_load_decompositions, (), None),
        (_predispatch._vmap_increment_nesting, (5, "error"), None),
        (_predispatch._add_batch_dim, (x, 0, 1), None),
        (_predispatch._remove_batch_dim, (mul, 1, 5, 0), graph.output_node()),
        (_predispatch._vmap_decrement_nesting, (), graph.output_node()),
    ][: None if before else -1]:
        with graph.inserting_before(
            place or graph.find_nodes(op="call_function", target=torch.ops.aten.sum.default)[0]
        ):
            calls[target] = graph.call_function(target, args)
        calls[target].meta["val"] = None
    example, whole = calls[_predispatch._add_batch_dim], calls[_predispatch._remove_batch_dim]
    x.replace_all_uses_with(example, delete_user_cb=lambda user: user is not example)
    graph.output_node().args = ((whole,),)
    example.meta["val"] = whole.meta["val"] = x.meta["val"]
    program.graph_signature.output_specs[0].arg.name = whole.name
    program.graph_module.recompile()
    return program


def lifted(program):
    """The parameters and constants that the program's graph takes before its inputs."""
    return [torch.zeros(1)] * (len(program.graph.find_nodes(op="placeholder")) - 1)


@pytest.mark.parametrize("kind", ["module", "graph_module", "Interpreter"])
def test_levels_of_vmap_end_where_a_graph_raises_an_error(kind):
    program = batched(True)
    graph = program.graph_module.graph
    add = graph.find_nodes(op="call_function", target=torch.ops.aten.sum.default)[0]
    with graph.inserting_before(add):
        graph.call_function(torch.ops.aten.view.default, (add.args[0], [7])).meta["val"] = None
    program.graph_module.recompile()
    run = {
        "module": lambda: program.module()(X),
        "graph_module": lambda: program.graph_module(*lifted(program), X),
        "Interpreter": lambda: torch.fx.Interpreter(program.graph_module).run(*lifted(program), X),
    }[kind]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="invalid for input of size"):
            run()
        assert not interceptors.stack.items and not GLOBALS["INTERCEPTORS"] and not _predispatch._vmap_levels.levels
        assert (torch.ones(2).requires_grad_() * 2).requires_grad


def test_a_file_with_levels_of_vmap():
    held = model_of(batched(True))[0]
    held.seek(0)
    found = torch.export.load(held).module()
    torch.testing.assert_close(found(X), X * X.sum(1, keepdim=True))


def test_levels_of_vmap_end_with_the_program():
    program = batched(False)
    found = program.module()
    for _ in range(2):
        torch.testing.assert_close(found(X), X * X.sum(1, keepdim=True))
    assert torch.ones(2).sum().item() == 2
    with pytest.raises(RuntimeError, match="no level 0 of vmap"):
        _predispatch._vmap_decrement_nesting()
    for run in (program.graph_module, torch.fx.Interpreter(program.graph_module).run):
        torch.testing.assert_close(run(*lifted(program), X)[0], X * X.sum(1, keepdim=True))
        assert not interceptors.stack.items and not GLOBALS["INTERCEPTORS"]
    held = model_of(program)[0]
    held.seek(0)
    with pytest.raises(RuntimeError, match="a level of vmap does not end in the graph"):
        torch.export.load(held)


def test_branches_move_to_another_device_too():
    def made(x):
        return x + torch.zeros(3, device="cpu")

    program = export(Module(lambda m, x: torch.cond(x.sum() > 0, made, more, (made(x),))), (X,))
    moved = torch.export.passes.move_to_device_pass(program, "meta")
    graphs = [moved.graph, *(inner.graph for inner in moved.graph_module.children())]
    nodes = [node for graph in graphs for node in graph.nodes]
    assert [str(node.kwargs["device"]) for node in nodes if "device" in node.kwargs] == ["meta"] * 2
    assert {node.meta["val"].device.type for node in nodes if isinstance(node.meta.get("val"), torch.Tensor)} == {
        "meta"
    }
    for inner in moved.graph_module.children():
        assert inner(X.to("meta"))[0].device.type == "meta"
