"""Modules of graphs: copies, pickles, folders, submodules, errors; what runs and writes graphs."""

import copy
import io
import pickle
import sys

import pytest

import torchlite as torch
from torchlite.fx import GraphModule, Interpreter, Transformer, symbolic_trace
from torchlite.fx._lazy_graph_module import _LazyGraphModule, _use_lazy_graph_module

F = torch.nn.functional


def halved(x):
    return x / 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3)
        self.norm = torch.nn.BatchNorm2d(2)
        self.tail = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.ones(3), persistent=False)

    def forward(self, x):
        y = self.norm(self.conv(x)).mean((2, 3))
        return self.tail(y) * self.weight + self.shift


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture
def x():
    torch.manual_seed(1)
    return torch.randn(2, 1, 5, 5)


def test_copies(net, x):
    traced = symbolic_trace(net)
    traced.meta["kept"] = [1]
    copied = copy.deepcopy(traced)
    assert torch.equal(copied(x), net(x)) and type(copied).__name__ == "Net" and copied.meta == {"kept": [1]}
    assert copied.weight is not traced.weight and copied.graph is not traced.graph
    assert copied.graph.owning_module is copied and not copied.training
    assert copied.state_dict().keys() == {*net.state_dict(), "shift"}
    shallow = copy.copy(traced)
    assert shallow.weight is traced.weight and torch.equal(shallow(x), net(x))


def test_pickles(net, x):
    traced = symbolic_trace(net)
    for node in traced.graph.nodes:
        node.stack_trace = f"of {node.name}"
    found = pickle.loads(pickle.dumps(traced))
    assert torch.equal(found(x), net(x)) and str(found.graph) == str(traced.graph) and type(found).__name__ == "Net"
    assert [node.stack_trace for node in found.graph.nodes] == [node.stack_trace for node in traced.graph.nodes]
    held = symbolic_trace(torch.nn.Sequential(traced, torch.nn.ReLU()))
    assert torch.equal(pickle.loads(pickle.dumps(held))(x), F.relu(net(x)))


def test_pickles_find_functions_of_other_modules(x):
    torch.fx._symbolic_trace._wrapped_fns_to_patch[id(globals()), "halved"] = globals()
    try:
        traced = symbolic_trace(lambda x: halved(x) + torch.ops.aten.add.Tensor(x, 1))
        assert "halved" in traced.code
        found = pickle.loads(pickle.dumps(traced))
    finally:
        del torch.fx._symbolic_trace._wrapped_fns_to_patch[id(globals()), "halved"]
    assert torch.allclose(found(x), x / 2 + x + 1)
    module = symbolic_trace(lambda x: x)
    with module.graph.inserting_before(module.graph.output_node()):
        module.graph.call_function(lambda x: x, ())
    with pytest.raises((pickle.PicklingError, AttributeError, RuntimeError, SyntaxError)):
        pickle.dumps(module)


def test_files_hold_modules_that_only_trust_loads(net, x):
    file = io.BytesIO()
    torch.save(symbolic_trace(net), file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x), net(x))


def test_pickles_of_pytorch_name_torch(x):
    body = symbolic_trace(lambda x: torch.relu(x))
    code = "import torch\nfrom torch import device\nfrom torch.nn import Linear as torch_linear"
    made = torch.fx.graph_module.reduce_graph_module({**body.__dict__, "_code": body._code}, code)
    assert torch.equal(made(x), torch.relu(x)) and made.graph.find_nodes(op="call_function")[0].target is torch.relu


def test_folders(net, x, tmp_path, monkeypatch):
    traced = symbolic_trace(net)
    with pytest.warns(UserWarning, match="tail"):
        traced.to_folder(tmp_path / "written", "Written")
    monkeypatch.syspath_prepend(str(tmp_path))
    from written import Written

    monkeypatch.delitem(sys.modules, "written")
    assert torch.equal(Written().eval()(x), net(x))


def test_submodules(net, x):
    traced = symbolic_trace(net)
    assert traced.add_submodule("deep.inside.relu", torch.nn.ReLU())
    assert not traced.add_submodule("weight.inside", torch.nn.ReLU())
    assert isinstance(traced.get_submodule("deep.inside.relu"), torch.nn.ReLU)
    assert traced.delete_submodule("deep.inside.relu") and not traced.delete_submodule("deep.inside.relu")
    assert not traced.delete_submodule("nothing.here") and not traced.delete_submodule("weight")
    for node in list(traced.graph.nodes):
        if node.target == "norm":
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.recompile()
    traced.delete_all_unused_submodules()
    assert {name for name, _ in traced.named_children()} == {"conv", "tail"}
    assert torch.equal(traced(x), (net.tail(net.conv(x).mean((2, 3)))) * net.weight + net.shift)


def test_graph_module_from_a_dictionary():
    graph = torch.fx.Graph()
    a = graph.get_attr("inner.weight")
    graph.output(graph.call_module("inner", (a,)))
    inner = torch.nn.Linear(2, 2)
    module = GraphModule({"inner.weight": inner.weight, "inner": inner}, graph, "Made")
    assert torch.equal(module(), inner(inner.weight)) and module._get_name() == "Made"
    with pytest.raises(RuntimeError, match="referenced target inner.weight but that target was not provided"):
        GraphModule({"inner": inner}, graph)
    with pytest.raises(RuntimeError, match="Unsupported type"):
        GraphModule(3, graph)
    with pytest.raises(AssertionError, match="Expected a Graph instance"):
        module.graph = 3


def test_traced_modules_train(net, x):
    traced = symbolic_trace(net.train())
    traced(x).sum().backward()
    assert net.weight.grad is not None and traced.weight is net.weight
    assert traced.train(False).training is False and not traced.norm.training


def test_classes_of_a_program_stay():
    class Own(GraphModule):
        def __init__(self, root, graph, class_name="Own"):
            super().__init__(root, graph, class_name)
            self.extra = 3

        def __call__(self, x):
            return super().__call__(x) + self.extra

    traced = symbolic_trace(lambda x: x * 2)
    own = Own(traced, traced.graph)
    own.recompile()
    own.recompile()
    assert own(1) == 5 and isinstance(own, Own)


def test_errors_in_generated_code_show_the_line(capfd):
    module = symbolic_trace(lambda x, y: (x + 1) @ y)
    with pytest.raises(RuntimeError):
        module(torch.ones(2, 3), torch.ones(2, 3))
    told = capfd.readouterr().err
    assert "of the traced Module's generated forward function" in told and "add @ y" in told
    with pytest.raises(RuntimeError):
        symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 4)))(torch.ones(2, 2))
    assert "traced Module's generated forward" not in capfd.readouterr().err
    with pytest.raises(TypeError):
        module(torch.ones(2, 3))


def test_hooks_see_changes():
    module = symbolic_trace(lambda x: torch.relu(x) + 1)
    seen = []
    module._register_create_node_hook(lambda node: seen.append(("made", node.name)))
    module._register_erase_node_hook(lambda node: seen.append(("gone", node.name)))
    relu = module.graph.find_nodes(op="call_function", target=torch.relu)[0]
    with module._set_replace_hook(lambda old, new, user: seen.append((old.name, new, user.name))):
        with module.graph.inserting_after(relu):
            made = module.graph.call_function(torch.sigmoid, relu.args)
        relu.replace_all_uses_with(made)
        made._rename("other")
    module.graph.erase_node(relu)
    assert seen == [("made", "sigmoid"), ("relu", "sigmoid", "add"), ("sigmoid", "other", "add"), ("gone", "relu")]
    with pytest.raises(AssertionError, match="must be a callable"):
        module._register_create_node_hook(3)


def test_print_readable_includes_metadata(net, x, capsys):
    from torchlite.fx.passes.shape_prop import ShapeProp

    traced = symbolic_trace(net)
    ShapeProp(traced).propagate(x)
    text = traced.print_readable(include_device=True)
    assert text == capsys.readouterr().out.removesuffix("\n")
    assert text.startswith('class Net(torch.nn.Module):\n    def forward(self, x: "f32[2, 1, 5, 5]"):')
    outer = symbolic_trace(torch.nn.Sequential(traced))
    holder = GraphModule({"inner": traced}, outer.graph.__class__())
    assert "class inner(torch.nn.Module)" not in holder.code
    traced.graph.find_nodes(op="placeholder")[0].meta["val"] = x
    colored = traced.print_readable(print_output=False, colored=True)
    assert "\033[31mf32" in colored
    assert "To see more debug info" in str(traced)


def test_interpreters(net, x):
    class Seeing(Interpreter):
        def __init__(self, module):
            super().__init__(module)
            self.seen = []

        def run_node(self, n):
            out = super().run_node(n)
            self.seen.append((n.op, n.name))
            return out

        def call_module(self, target, args, kwargs):
            return super().call_module(target, args, kwargs) * (2 if target == "conv" else 1)

    traced = symbolic_trace(net)
    seeing = Seeing(traced)
    want = net.tail(net.norm(net.conv(x) * 2).mean((2, 3))) * net.weight + net.shift
    assert torch.equal(seeing.run(x), want) and len(seeing.seen) == len(traced.graph.nodes) and len(seeing.env) == 1
    kept = Interpreter(traced, garbage_collect_values=False)
    kept.run(x)
    assert len(kept.env) == len(traced.graph.nodes)
    given = [x]
    assert torch.equal(Interpreter(traced).boxed_run(given), net(x)) and given == []
    conv = traced.graph.find_nodes(op="call_module", target="norm")[0]
    start = {conv: torch.zeros(2, 2, 3, 3)}
    assert Interpreter(traced).run(x, initial_env=start).shape == (2, 3)
    with pytest.raises(RuntimeError, match="expected 1 arguments for placeholders but received 2"):
        Interpreter(traced).boxed_run([x, x])
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        Interpreter(traced).run()
    with pytest.raises(RuntimeError, match="While executing %conv"):
        Interpreter(traced).run(torch.ones(2, 3))


def test_transformers(net, x):
    class Swapped(Transformer):
        def call_function(self, target, args, kwargs):
            return args[0] - args[1] if target is torch.add else super().call_function(target, args, kwargs)

        def call_module(self, target, args, kwargs):
            return args[0] if target == "norm" else super().call_module(target, args, kwargs)

        def get_attr(self, target, args, kwargs):
            return super().get_attr(target, args, kwargs) * 3 if target == "weight" else 0

    made = Swapped(symbolic_trace(net)).transform()
    assert torch.allclose(made(x), net.tail(net.conv(x).mean((2, 3))) * net.weight * 3)
    defaults = symbolic_trace(lambda x, y=3, *rest: {"a": x + y})
    assert Transformer(defaults).transform()(1) == {"a": 4}


def test_late_code(net, x):
    with _use_lazy_graph_module(True):
        traced = symbolic_trace(net)
        assert isinstance(traced, _LazyGraphModule) and traced._needs_recompile()
        assert torch.equal(traced(x), net(x)) and not traced._needs_recompile()
        traced.recompile()
        assert "def forward" in traced.code and not traced._needs_recompile()
        assert isinstance(symbolic_trace(traced), _LazyGraphModule)
    assert not isinstance(symbolic_trace(net), _LazyGraphModule)


def test_marks_on_nodes():
    def program(x):
        with torch.fx.traceback.annotate({"where": "here"}):
            y = x + 1
        return y * 2

    import torchlite.fx.traceback  # noqa: F401

    module = symbolic_trace(program)
    add, mul = module.graph.find_nodes(op="call_function")
    assert add.meta["custom"] == {"where": "here"} and "custom" not in mul.meta
    assert "Annotation: {'where': 'here'}" in module.print_readable(print_output=False)


def test_scripted_modules(x):
    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(5, 2)
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return F.relu(self.layer(x) * self.weight + 1)

    module = Small()
    scripted = torch.jit.script(symbolic_trace(module))
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    assert torch.equal(scripted(x), module(x)) and torch.equal(torch.jit.load(file)(x), module(x))
