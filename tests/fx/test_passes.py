"""Passes over graphs."""

import operator

import pytest

import torchlite as torch
from torchlite.fx import GraphModule, replace_pattern, subgraph_rewriter, symbolic_trace
from torchlite.fx.experimental import const_fold, normalize, optimization, rewriter
from torchlite.fx.operator_schemas import create_type_hint, normalize_function, type_matches
from torchlite.fx.passes import (
    annotate_getitem_nodes,
    graph_drawer,
    graph_manipulation,
    operator_support,
    param_fetch,
    split_utils,
    tools_common,
)
from torchlite.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from torchlite.fx.passes.fake_tensor_prop import FakeTensorProp
from torchlite.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torchlite.fx.passes.infra.pass_base import PassBase, PassResult
from torchlite.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper, this_before_that_pass_constraint
from torchlite.fx.passes.shape_prop import ShapeProp
from torchlite.fx.passes.split_module import split_module
from torchlite.fx.passes.utils.matcher_utils import SubgraphMatcher
from torchlite.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
from torchlite.fx.passes.utils.source_matcher_utils import check_subgraphs_connected, get_source_partitions

F = torch.nn.functional


def names(module):
    return [node.name for node in module.graph.nodes]


def test_patterns_are_replaced_wherever_they_stand():
    module = symbolic_trace(lambda x, w: torch.relu(torch.relu(x + w) + w).sum() + w)
    found = replace_pattern(module, lambda a, b: torch.relu(a + b), lambda a, b: torch.sigmoid(a) * b)
    assert len(found) == 2 and all(match.anchor.target is torch.relu for match in found)
    module.graph.lint()
    x, w = torch.randn(3), torch.randn(3)
    inner = torch.sigmoid(x) * w
    assert torch.allclose(module(x, w), (torch.sigmoid(inner) * w).sum() + w)


def test_patterns_that_others_look_into_stay():
    module = symbolic_trace(lambda x: (torch.relu(x + 1), (x + 1).sum()))
    traced = symbolic_trace(lambda x: (torch.relu(y := x + 1), y.sum()))
    assert len(replace_pattern(module, lambda a: torch.relu(a + 1), lambda a: a)) == 1
    assert not replace_pattern(traced, lambda a: torch.relu(a + 1), lambda a: a)


def test_patterns_of_several_results_and_of_values():
    module = symbolic_trace(lambda x: torch.add(x.sum(), x.prod(), alpha=2) + x.clamp(0, 1))
    found = replace_pattern(module, lambda a: (a.sum(), a.prod()), lambda a: (a.mean(), a.max()))
    x = torch.tensor([1.0, 2.0])
    assert len(found) == 1 and torch.equal(module(x), x.mean() + 2 * x.max() + x.clamp(0, 1))
    assert not replace_pattern(module, lambda a: a.clamp(0, 2), lambda a: a)
    match = subgraph_rewriter.replace_pattern_with_filters
    assert not match(module, lambda a: a.clamp(0, 2), lambda a: a, [lambda *_: False], ignore_literals=True)
    (done,) = match(module, lambda a: a.clamp(0, 2), lambda a: a.neg(), ignore_literals=True)
    assert [node.target for node in done.replacements] == ["neg"]


def test_values_stand_for_inputs_of_a_pattern():
    module = symbolic_trace(lambda x: x.clamp(0, 1))
    replace_pattern(module, lambda a, low, high: a.clamp(low, high), lambda a, low, high: a.clamp(high, low))
    assert module.graph.find_nodes(op="call_method")[0].args[1:] == (1, 0)


def test_replacement_callback_runs_for_each_match():
    module = symbolic_trace(lambda x: x.clamp(0, 1) + x.clamp(0, 5))

    def made(match, graph, pattern):
        return symbolic_trace(lambda a, high: a * 10 if match.placeholder_nodes[1] == 5 else a + high).graph

    subgraph_rewriter.replace_pattern_with_filters(module, lambda a, high: a.clamp(0, high), replacement_callback=made)
    assert module(torch.tensor(2.0)).item() == 3.0 + 20.0
    with pytest.raises(AssertionError, match="either a replacement"):
        subgraph_rewriter.replace_pattern_with_filters(module, lambda a: a.neg())


def test_modules_of_replacements_are_copied():
    class With(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.layer(x) * self.weight

    module, new = symbolic_trace(torch.nn.Sequential(torch.nn.ReLU())), With()
    replace_pattern(module, torch.nn.Sequential(torch.nn.ReLU()), symbolic_trace(new))
    x = torch.ones(1, 2)
    assert torch.equal(module(x), new(x)) and module.layer is not new.layer
    assert [name for name, _ in module.named_children()] == ["layer"]


def test_matchers():
    with pytest.raises(ValueError, match="empty pattern"):
        SubgraphMatcher(torch.fx.Graph())
    with pytest.raises(AssertionError, match="dead code"):
        graph = symbolic_trace(lambda x: x).graph
        with graph.inserting_before(graph.output_node()):
            graph.call_function(torch.relu, (graph.find_nodes(op="placeholder")[0],))
        SubgraphMatcher(graph)
    pattern = symbolic_trace(lambda x: (y := torch.relu(x), {"relu": y}))
    matcher = SubgraphMatcherWithNameNodeMap(pattern)
    (match,) = matcher.match(symbolic_trace(lambda a, b: torch.relu(b) + a).graph)
    assert match.name_node_map["relu"].name == "relu" and match.placeholder_nodes[0].name == "b"
    shapes = SubgraphMatcher(symbolic_trace(lambda x: torch.cat([x, x])).graph)
    assert not shapes.match(symbolic_trace(lambda x, y: torch.cat([x, y])).graph)
    assert len(shapes.match(symbolic_trace(lambda x, y: torch.cat([y, y]) + x).graph)) == 1


def test_nodes_by_their_source():
    module = symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2)))
    for node in module.graph.find_nodes(op="call_module"):
        kind = type(module.get_submodule(node.target))
        node.meta["source_fn_stack"] = [(node.target, kind)]
    found = get_source_partitions(module.graph, [torch.nn.Linear, torch.nn.ReLU])
    first, second = found[torch.nn.Linear]
    (relu,) = found[torch.nn.ReLU]
    assert [node.name for node in first.output_nodes] == ["_0"] and relu.input_nodes == first.nodes
    assert check_subgraphs_connected(first, relu) and not check_subgraphs_connected(first, second)
    assert get_source_partitions(module.graph, [torch.nn.ReLU], lambda node: False) == {torch.nn.ReLU: []}


def test_shapes(device):
    module = symbolic_trace(lambda x: (y := x.float().unsqueeze(0), torch.max(y, 1), y.shape[0]))
    ShapeProp(module).propagate(torch.ones(2, 3, device=device, dtype=torch.int32))
    by_name = {node.name: node.meta for node in module.graph.nodes}
    meta = by_name["unsqueeze"]["tensor_meta"]
    assert meta.shape == (1, 2, 3) and meta.dtype is torch.float32 and meta.memory_format is torch.contiguous_format
    assert by_name["max_1"]["tensor_meta"][1].dtype is torch.int64 and "tensor_meta" not in by_name["getitem"]
    assert by_name["getitem"]["type"] is int
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%float_1"):
        ShapeProp(module).propagate(3)


def test_shapes_without_elements():
    module = symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 4)))
    out = FakeTensorProp(module).propagate(torch.ones(2, 3))
    assert out.shape == (2, 4) and module.graph.find_nodes(op="call_module")[0].meta["val"].shape == (2, 4)
    assert module.get_parameter("0.weight").device.type == "cpu"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.param = torch.nn.Parameter(torch.ones(3, 4))
        self.linear = torch.nn.Linear(4, 5)

    def forward(self, x, y):
        z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
        w = self.linear(y).clamp(min=0.0, max=1.0)
        return z + w


@pytest.mark.parametrize("options", [{}, {"keep_original_order": True}, {"tuple_return": True}])
def test_splitting(options):
    net = Net()
    traced = symbolic_trace(net)
    counts = iter(range(100))
    old = {}
    split = split_module(traced, net, lambda node: next(counts) % 3, old, **options)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    assert torch.equal(split(x, y), net(x, y)) and {"submod_0", "submod_1", "submod_2"} == set(
        dict(split.named_children())
    )
    assert set(old.values()) == {"linear"} and all(name.startswith("submod_") for name in old)
    named = split_module(traced, net, lambda node: 0, partition_affix="pp", keep_original_node_name=True)
    assert [name for name, _ in named.named_children()] == ["submod_pp_0"] and torch.equal(named(x, y), net(x, y))


def test_splitting_in_circles():
    traced = symbolic_trace(lambda x: torch.relu(torch.sigmoid(torch.relu(x))))
    with pytest.raises(RuntimeError, match="cycle exists"):
        split_module(traced, None, lambda node: 1 if node.target is torch.sigmoid else 0)


def test_splitting_by_tags():
    net = Net()
    traced = symbolic_trace(net)
    for node in traced.graph.nodes:
        node.tag = "late" if node.name in ("linear_1", "clamp_1", "add_1") else "early"
    made, found = split_utils.split_by_tags(traced, ["early", "late"], return_fqn_mapping=True)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    assert torch.equal(made(x, y), net(x, y)) and found["linear"] == "late.linear" and found["param"] == "early.param"
    with pytest.raises(AssertionError, match="order must be >="):
        split_utils.split_by_tags(traced, ["late", "early"])
    assert split_utils.getattr_recursive(net, "linear.nothing") is None
    split_utils.setattr_recursive(net, "linear.extra", 3)
    assert net.linear.extra == 3


def test_cse_merges_equal_calls():
    module = symbolic_trace(lambda x: torch.sin(x) + torch.sin(x) * torch.add(x, 1) - torch.add(x, 1.0))
    result = CSEPass()(module)
    x = torch.ones(2)
    assert result.modified and torch.equal(result.graph_module(x), module(x))
    assert names(result.graph_module).count("sin") == 1 and "sin_1" not in names(result.graph_module)
    assert "add_1" in names(result.graph_module)  # 1 and 1.0 are not the same
    assert not CSEPass()(result.graph_module).modified
    drawn = symbolic_trace(lambda x: torch.ops.aten.rand_like.default(x) + torch.ops.aten.rand_like.default(x))
    assert CSEPass()(drawn).modified and not CSEPass(get_CSE_banned_ops())(drawn).modified


def test_constants_are_folded():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x + (self.a + self.b)) - self.a * 2

    net = Net()
    folded = const_fold.split_const_subgraphs(net)
    x = torch.ones(1, 2)
    assert torch.allclose(folded(x), net(x)) and torch.allclose(folded(x), net(x)) and folded.has_folding_been_run
    assert [node.target for node in folded.graph.find_nodes(op="call_module")] == ["layer"]
    assert len(folded.get_submodule("_FX_CONST_FOLDED_ATTRS")) == 2
    kept = const_fold.split_const_subgraphs(net, lambda node: node.op != "get_attr")
    assert kept.const_subgraph_module is None and torch.allclose(kept(x), net(x))
    with pytest.raises(AssertionError, match="already been run"):
        folded.run_folding()
    assert const_fold.get_unique_attr_name_in_module(net, "a") == "a_1"


def test_pass_managers():
    def swap(module):
        for node in module.graph.find_nodes(op="call_function", target=torch.add):
            node.target = torch.mul

    class Never(PassBase):
        def call(self, graph_module):
            return PassResult(graph_module, False)

    module = symbolic_trace(lambda x: torch.add(x, x))
    manager = PassManager([pass_result_wrapper(swap), Never()], steps=3)
    result = manager(module)
    assert result.modified and result.graph_module(torch.tensor(3.0)) == 9
    a, b = pass_result_wrapper(lambda module: None), pass_result_wrapper(lambda module: None)
    manager = PassManager([b, a], [this_before_that_pass_constraint(a, b)])
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        manager.validate_constraints()
    manager.solve_constraints()
    assert manager.passes == [a, b]
    circle = [this_before_that_pass_constraint(a, b), this_before_that_pass_constraint(b, a)]
    with pytest.raises(RuntimeError, match="Circular dependency"):
        PassManager([a, b], circle)(module)
    with pytest.raises(Exception, match="An error occurred when running the 'wrong' pass after the following passes"):

        def wrong(module):
            return module

        PassManager([a, wrong])(module)
    with pytest.raises(TypeError, match="only take in one variable"):
        manager.add_checks(lambda a, b: None)
    seen = []
    checked = PassManager([a], run_checks_after_each_pass=True)
    checked.add_checks(seen.append)
    checked(module)
    assert len(seen) == 2


def test_pictures(tmp_path):
    module = symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
    ShapeProp(module).propagate(torch.ones(1, 2))
    drawer = graph_drawer.FxGraphDrawer(module, "net")
    text = drawer.get_dot_graph().to_string()
    assert text.startswith('digraph "net" {') and text.rstrip().endswith("}") and text.count("{") == text.count("}")
    assert '"input_1" -> "_0";' in text and '"_0.weight"' in text and "shape=(1, 3)" in text
    drawer.get_dot_graph().write_raw(tmp_path / "net.dot")
    assert (tmp_path / "net.dot").read_text() == text
    bare = graph_drawer.FxGraphDrawer(module, "net", ignore_parameters_and_buffers=True).get_dot_graph()
    assert "weight" not in bare.to_string()
    graph = torch.fx.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    inner = GraphModule({"inner": module}, graph)
    assert set(graph_drawer.FxGraphDrawer(inner, "outer").get_all_dot_graphs()) == {"outer", "outer_inner"}


def test_pictures_beyond_text_require_graphviz(monkeypatch):
    drawer = graph_drawer.FxGraphDrawer(symbolic_trace(lambda x: x), "net")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="program `dot`, which is not installed"):
        drawer.get_dot_graph().create()


def test_groups_of_supported_nodes():
    module = symbolic_trace(lambda x: torch.relu(torch.sigmoid(torch.relu(x) + 1)) - torch.neg(x))
    support = operator_support.OperatorSupport({"torch.relu": None, "_operator.add": None, "_operator.sub": None})
    partitioner = CapabilityBasedPartitioner(module, support, allows_single_node_partition=True)
    groups = [[node.name for node in partition.nodes] for partition in partitioner.propose_partitions()]
    assert groups == [["relu_1", "sub"], ["relu", "add"]]  # the last one first
    x = torch.randn(3)
    want = module(x)
    fused = partitioner.partition_and_fuse()
    assert torch.equal(fused(x), want) and len(fused.graph.find_nodes(op="call_module")) == 2
    assert names(fused).count("sigmoid") == 1


def test_parts_of_results_join_the_group_of_their_producer():
    wanted = {"torch.relu": None, "_operator.add": None, "_operator.getitem": None}

    module = torch.fx.Graph()
    x = module.placeholder("x")
    parts = module.call_function(torch.split, (x, 2))
    first = module.call_function(operator.getitem, (parts, 0))
    module.output(first)
    support = operator_support.OperatorSupport(wanted)
    assert CapabilityBasedPartitioner(GraphModule({}, module), support, True).propose_partitions() == []
    support = operator_support.OperatorSupport({**wanted, "torch.functional.split": None, "torch.split": None})
    (group,) = CapabilityBasedPartitioner(GraphModule({}, module), support, True).propose_partitions()
    assert {node.name for node in group.nodes} == {"split", "getitem"}


def test_split_by_tags_matches_the_module():
    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x * 2)

    module = torch.export.export(Net(), (torch.ones(3),)).module()
    for node in module.graph.nodes:
        node.tag = "a" if node.name == "mul" else "b"
    found = split_utils.split_by_tags(module, ["a", "b"])(torch.ones(3))
    assert isinstance(found, torch.Tensor) and found.tolist() == [2.0, 2.0, 2.0]


def test_the_pattern_of_an_exported_function_has_no_dead_code():
    class Pattern(torch.nn.Module):
        def forward(self, x):
            found = torch.relu(x)
            return found, {"relu": found}

    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x + 1) * 2

    pattern, net = (torch.export.export(made(), (torch.ones(3),)).module() for made in (Pattern, Net))
    (match,) = SubgraphMatcherWithNameNodeMap(pattern).match(net.graph)
    assert match.name_node_map["relu"].name == "relu"


def test_support_by_dtypes():
    module = symbolic_trace(lambda x, y: torch.add(x, y))
    ShapeProp(module).propagate(torch.ones(1), torch.ones(1, dtype=torch.int64))
    (node,) = module.graph.find_nodes(op="call_function")
    dtypes = {"torch.add": (([torch.float32], [torch.int64]), {})}
    other = {"torch.add": (([torch.float32], [torch.float32]), {})}
    yes, no = operator_support.OperatorSupport(dtypes), operator_support.OperatorSupport(other)
    assert yes.is_node_supported({}, node) and not no.is_node_supported({}, node)
    assert not operator_support.chain(yes, no).is_node_supported({}, node)
    assert operator_support.any_chain(yes, no).is_node_supported({}, node)
    rules = operator_support.OpSupports
    assert not rules.decline_if_input_dtype(torch.int64).is_node_supported({}, node)
    assert not rules.decline_if_node_in_names({"add"}).is_node_supported({}, node)


def test_order():
    module = symbolic_trace(lambda x: torch.relu(x) + torch.neg(x))
    relu = module.graph.find_nodes(op="call_function", target=torch.relu)[0]
    module.graph.find_nodes(op="call_function", target=operator.add)[0].append(relu)
    with pytest.raises(RuntimeError):
        module.graph.lint()
    tools_common.stable_topological_sort(module).graph.lint()
    assert tools_common.legalize_graph(module)(torch.tensor(-2.0)).item() == 2.0
    relu = module.graph.find_nodes(op="call_function", target=torch.relu)[0]
    relu.args = (module.graph.find_nodes(op="call_function", target=operator.add)[0],)
    with pytest.raises(RuntimeError, match="cycles"):
        tools_common.legalize_graph(module)


def test_small_passes():
    module = symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
    graph_manipulation.get_size_of_all_nodes(module, [torch.ones(1, 2)])
    linear = module.graph.find_nodes(op="call_module")[0]
    assert linear.size_bytes == (12, 12 + 4 * 9)
    param_fetch.lift_lowering_attrs_to_nodes(module)
    assert linear.attrs_for_lowering["weight"] is module.get_parameter("0.weight")
    with pytest.raises(RuntimeError, match="not in the module_fetch_book"):
        param_fetch.extract_attrs_for_lowering(torch.nn.GELU())
    module = symbolic_trace(lambda x: x.relu())
    graph_manipulation.replace_target_nodes_with(module, "call_method", "relu", "call_function", torch.neg)
    assert module(torch.tensor(2.0)).item() == -2.0
    with pytest.raises(RuntimeError, match="no tensor metadata"):
        graph_manipulation.get_tensor_meta(module.graph.output_node())
    module = symbolic_trace(lambda x: x[1])
    module.graph.find_nodes(op="placeholder")[0].type = tuple[int, str]
    annotate_getitem_nodes.annotate_getitem_nodes(module.graph)
    assert module.graph.find_nodes(op="call_function")[0].type is str


def test_layers_are_folded_and_left_out():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten(), torch.nn.Linear(18, 4),
        torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5),
    )  # fmt: skip
    net[1].running_mean.uniform_()
    net[4].running_var.uniform_(0.5, 1)
    net.eval()
    x = torch.randn(2, 1, 5, 5)
    fused = optimization.fuse(net)
    assert torch.allclose(fused(x), net(x), atol=1e-5) and len(fused.graph.find_nodes(op="call_module")) == 4
    assert torch.equal(optimization.remove_dropout(net)(x), net(x)) and len(net) == 6


def test_arguments_by_their_names():
    def function(a, b=2, *, c=3): ...

    assert normalize_function(function, (1,), {"c": 4}) == ((1,), {"b": 2, "c": 4})
    assert normalize_function(function, (1,), {}, normalize_to_only_use_kwargs=True).kwargs == {"a": 1, "b": 2, "c": 3}
    assert normalize_function(function, (), {}) is None and normalize_function(lambda *a: a, (1,)) is None
    module = symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    (node,) = module.graph.find_nodes(op="call_module")
    assert list(node.normalized_arguments(module, normalize_to_only_use_kwargs=True).kwargs) == ["input"]
    overload = torch.ops.aten.add.Tensor
    found = normalize_function(overload, (1, 2), {}, normalize_to_only_use_kwargs=True)
    assert found.kwargs == {"input": 1, "other": 2, "alpha": 1}
    traced = symbolic_trace(lambda x: F.conv1d(x, x, stride=2))
    made = normalize.NormalizeArgs(traced).transform()
    x = torch.ones(1, 1, 3)
    assert torch.equal(made(x), traced(x)) and "stride" in made.graph.find_nodes(op="call_function")[0].kwargs
    assert "x / y" in normalize.NormalizeOperators(symbolic_trace(lambda x, y: torch.div(x, y))).transform().code
    assert type_matches(list[int], int) and not type_matches(int, str) and create_type_hint([int, int]) == list[int]


class Asserts(torch.nn.Module):
    def forward(self, x):
        assert x.shape[0] == 2, "two rows"
        return super().__class__ and x + 1


def test_programs_are_rewritten_before_they_are_traced():
    module = Asserts()
    traced = GraphModule(module, rewriter.RewritingTracer().trace(module))
    assert torch.equal(traced(torch.zeros(2)), torch.ones(2))
    with pytest.raises(AssertionError, match="two rows"):
        traced(torch.zeros(3))


def test_passes_by_hand():
    from torchlite.fx.passes import pass_manager as pm

    def double(n):
        return n * 2

    def increment(n):
        return n + 1

    manager = pm.PassManager.build_from_passlist([double])
    manager.add_pass(increment)
    assert manager(3) == 7
    manager.add_constraint(pm.this_before_that_pass_constraint(increment, double))
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        manager(3)
    manager = pm.PassManager([pm.loop_pass(double, n_iter=2), increment])
    manager.add_constraint(pm.these_before_those_pass_constraint(double, increment))
    assert manager(3) == 13
    manager.passes.reverse()
    manager.add_constraint(pm.these_before_those_pass_constraint(double, increment))
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        manager.validate()
    manager = pm.PassManager([double, increment])
    manager.replace_pass(double, pm.log_hook(lambda n: n * 5))
    manager.remove_pass(["increment"])
    assert manager(3) == 15
    with pytest.raises(AssertionError, match="Exactly one"):
        pm.loop_pass(double, n_iter=1, predicate=bool)
