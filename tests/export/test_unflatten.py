"""Programs as trees of modules."""

import io

import pytest

import torchlite as torch
import torchlite.nn.functional as F
from tests.graph_models import MODELS
from torchlite.export import FlatArgsAdapter, UnflattenedModule, export, unflatten
from torchlite.export import graph_signature as gs
from torchlite.export._deserialize import _ProgramDeserializer

from . import pytorch_files

nn = torch.nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x, y=None, *, scale=None):
        found = self.linear(x) if y is None else self.linear(x) + y
        return {"a": found if scale is None else found * scale, "b": (x + 1, None)}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.BatchNorm1d(3)])
        self.tail = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, x):
        first = self.part(x)
        second = self.part(first["a"], x, scale=first["b"][0])
        found = self.layers[1](self.layers[0](second["a"]) + self.part.linear.weight)
        return self.tail(self.tail(found) + second["b"][0])


def through_a_file(program):
    held = io.BytesIO()
    torch.export.save(program, held)
    held.seek(0)
    return torch.export.load(held)


@pytest.mark.parametrize("kept", [(), ("part",), ("tail", "layers.0", "part.linear")])
@pytest.mark.parametrize("decomposed", [False, True])
def test_the_tree_is_the_module_s(kept, decomposed):
    torch.manual_seed(0)
    net, x = Net(), torch.randn(3, 3)
    program = export(net, (x,), preserve_module_call_signature=kept)
    program = program.run_decompositions() if decomposed else program
    expected = net(x)
    for found in (program, through_a_file(program)):
        module = unflatten(found)
        assert isinstance(module, UnflattenedModule)
        torch.testing.assert_close(module(x), expected, rtol=1e-6, atol=1e-6)
        names = {name for name, _ in module.named_modules() if "@" not in name}
        assert names == {name for name, _ in net.named_modules()}
        assert set(net.state_dict()) <= set(module.state_dict())
        assert module.get_submodule("part.linear").type_name() == "torch.nn.modules.linear.Linear"


def test_a_preserved_module_is_called_as_it_was_and_may_be_another():
    torch.manual_seed(0)
    net, x = Net().eval(), torch.randn(3, 3)
    program = through_a_file(export(net, (x,), preserve_module_call_signature=("part",)))
    signature = {entry.fqn: entry.signature for entry in program.module_call_graph}
    assert [a.name for a in signature["part"].inputs] == ["x"]
    assert signature["part@1"].in_spec.num_leaves == 3 and signature["tail"] is None
    module = unflatten(program)
    assert module.part.type_name().endswith("Part")

    class Other(nn.Module):
        def forward(self, x, y=None, scale=None):
            return {"a": x * 2 if y is None else (x + y) * scale, "b": (x + 1, None)}

    net.part.forward = Other().forward
    module.part = Other()
    module.part.linear = net.part.linear
    torch.testing.assert_close(module(x), net(x))
    with pytest.raises(AttributeError):
        export(net, (x,), preserve_module_call_signature=("nothing",))


def test_equal_calls_of_a_module_share_one_submodule():
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x):
            return self.net(self.net(x))

    x = torch.randn(2, 3)
    module = unflatten(export(Twice(), (x,), preserve_module_call_signature=("net",)))
    assert [name for name, _ in module.named_modules()] == ["", "net", "net.0", "net.1"]
    torch.testing.assert_close(module(x), net(net(x)))
    assert "class UnflattenedModule" in module.print_readable(print_output=False)
    with torch.no_grad():
        module.get_parameter("net.0.weight").mul_(2)
    assert not torch.equal(module(x), net(net(x)))


@pytest.mark.parametrize("stem", sorted(name[:-4] for name in pytorch_files.files() if name.endswith(".pt2"))[::9])
def test_files_of_pytorch_as_trees(stem):
    program = torch.export.load(io.BytesIO(pytorch_files.files()[f"{stem}.pt2"]))
    name, mode, sizes, *_ = stem.split("-")
    batch = 5 if sizes == "dynamic" else 2
    model = MODELS[name]
    module = unflatten(program)
    pytorch_files.check(module(*model.inputs(torch, batch)), pytorch_files.results(f"{name}-{mode}-{batch}"), 1e-5)
    known = {name for name, _ in model.make(torch).named_modules()}
    assert {name for name, _ in module.named_modules() if "@" not in name and "_graph_" not in name} <= known


def test_graphs_within_sizes_that_vary_and_writes():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x):
            self.count.add_(1)
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)).reshape(x.shape[0] * 3) / x.shape[0]

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x) + self.inner.count.sum()

    program = export(Outer(), (torch.ones(4, 3),), dynamic_shapes=({0: torch.export.Dim("n", max=9)},))
    for found in (program, program.run_decompositions()):
        module, expected = unflatten(found), Outer()
        for size in (2, 5):
            torch.testing.assert_close(module(torch.ones(size, 3)), expected(torch.ones(size, 3)))
        torch.testing.assert_close(module.inner.count, expected.inner.count)
        with pytest.raises(AssertionError, match="Guard failed"):
            module(torch.ones(10, 3))


def test_arguments_in_another_tree_are_adapted():
    class Adapter(FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            return input_args[:2]

    class Sum(nn.Module):
        def forward(self, pair):
            return pair[0] + pair[1]

    x = torch.ones(2)
    program = export(Sum(), ((x, x),))
    with pytest.raises(TypeError, match="There is no flat args adapter"):
        unflatten(program)([x, x, x])
    assert unflatten(program, Adapter())([x, x, x]).tolist() == [2, 2]


def _changed(program, change):
    """The file of a program with other JSON, loaded."""
    import json
    import zipfile

    held, other = io.BytesIO(), io.BytesIO()
    torch.export.save(program, held)
    with zipfile.ZipFile(held) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("models/model.json"):
                loaded = json.loads(data)
                change(loaded)
                data = json.dumps(loaded).encode()
            target.writestr(name, data)
    other.seek(0)
    return torch.export.load(other)


@pytest.mark.parametrize(
    ("path", "fails"), [("forward", True), ("a..b", True), ("part.forward", True), ("", False), ("xxx...", True)]
)
def test_modules_that_a_file_makes_up(path, fails):
    program = export(Net().eval(), (torch.ones(3, 3),))

    def change(data):
        for node in data["graph_module"]["graph"]["nodes"]:
            node["metadata"]["nn_module_stack"] = f"L__self__,,Net;L__self__x,{path},Part"

    changed = _changed(program, change)
    expected = changed.module()(torch.ones(3, 3))
    if fails:
        with pytest.raises(RuntimeError, match="unflatten: "):
            unflatten(changed)
    else:
        torch.testing.assert_close(unflatten(changed)(torch.ones(3, 3)), expected)


def test_calls_that_a_file_makes_up():
    program = export(Net().eval(), (torch.ones(3, 3),), preserve_module_call_signature=("part",))

    def renamed(data):
        data["graph_module"]["module_call_graph"][1]["signature"]["inputs"] = [{"as_tensor": {"name": "nothing"}}]

    def fewer(data):
        data["graph_module"]["module_call_graph"][1]["signature"]["outputs"] = []

    with pytest.raises(RuntimeError, match="nothing is not in the graph"):
        unflatten(_changed(program, renamed))
    with pytest.raises(RuntimeError, match="not those of the trees"):
        _changed(program, fewer)


@pytest.mark.parametrize("first, second", [("part", "part.weight"), ("part.weight", "part.weight")])
def test_a_file_s_tensors_have_places_of_their_own(first, second):
    places = [
        gs.InputSpec(gs.InputKind.PARAMETER, gs.TensorArgument(f"p{i}"), name) for i, name in enumerate((first, second))
    ]
    with pytest.raises(RuntimeError, match=f"one module cannot have both '{first}' and '{second}'"):
        _ProgramDeserializer._check_names(gs.ExportGraphSignature(places, []), [])


def test_inputs_that_a_file_makes_up():
    def renamed(data):
        data["graph_module"]["signature"]["input_specs"][0] = {"surprise": {}}

    with pytest.raises(RuntimeError, match="an input 'surprise' is unknown"):
        _changed(export(Net().eval(), (torch.ones(3, 3),)), renamed)


def test_the_first_part_of_a_decomposed_program_keeps_its_call():
    class Part(nn.Module):
        def forward(self, x):
            return F.dropout(x * 2, 0.5, self.training).view(3, 3).add(1)

    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x):
            return self.part(x) * 3

    program = export(First().eval(), (torch.ones(3, 3),), preserve_module_call_signature=("part",))
    decomposed = program.run_decompositions()
    assert [entry.signature is not None for entry in decomposed.module_call_graph] == [True, True]
    assert torch.equal(unflatten(decomposed).part(torch.ones(3, 3)), torch.full((3, 3), 3.0))


def test_optional_tensors_of_a_list_are_read():
    class Split(nn.Module):
        def forward(self, x):
            first, second = x.split(2)
            return first + second

    def optional(data):
        (outputs,) = (n["outputs"] for n in data["graph_module"]["graph"]["nodes"] if "split" in n["target"])
        outputs[0] = {"as_optional_tensors": [{"as_tensor": item} for item in outputs[0]["as_tensors"]]}

    assert _changed(export(Split(), (torch.arange(4.0),)), optional).module()(torch.ones(4)).tolist() == [2.0, 2.0]


def test_results_that_an_op_leaves_out_are_read():
    class Backward(nn.Module):
        def forward(self, g, x, w):
            return torch.ops.aten.convolution_backward.default(
                g, x, w, [2], [1], [0], [1], False, [0], 1, [True, False, True]
            )

    given = torch.ones(1, 2, 3), torch.ones(1, 1, 3), torch.ones(2, 1, 1)
    program = through_a_file(export(Backward(), given))
    (node,) = (n for n in program.graph.nodes if "convolution" in str(n.target))
    assert [value is None for value in node.meta["val"]] == [False, True, False]
    gradient, _, bias = program.module()(*given)
    assert gradient.tolist() == [[[2.0, 2.0, 2.0]]] and bias.tolist() == [3.0, 3.0]
