"""Programs that are captured here."""

import collections
import dataclasses
import io

import pytest

import torchlite as torch
from tests.graph_models import MODELS
from torchlite._dynamo.exc import UserError
from torchlite.export import Dim
from torchlite.fx.experimental.symbolic_shapes import ConstraintViolationError, GuardOnDataDependentSymNode

from . import pytorch_files


class Module(torch.nn.Module):
    """A module of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def calls(program):
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize(
    ("name", "train"),
    [*((name, True) for name in MODELS), *((name, False) for name in ("resnet", "lstm", "detection"))],
)
def test_a_model_captured_is_the_model(name, train):
    """With a batch that varies, through a file, and in smaller ops: always with the buffers that it writes."""
    model = MODELS[name]
    module = model.make(torch, train)
    before = {key: value.clone() for key, value in module.state_dict().items()}
    program = torch.export.export(module, model.inputs(torch), dynamic_shapes=model.dynamic(torch))
    assert all(torch.equal(before[key], value) for key, value in module.state_dict().items())
    assert all(type(p) is torch.nn.Parameter for p in module.parameters())
    held = io.BytesIO()
    torch.export.save(program, held)
    held.seek(0)
    inputs = model.inputs(torch, 2 if model.batch is None else 5)
    other = model.make(torch, train)
    expected = [t.detach().numpy() for t in pytorch_files.leaves(other(*inputs))]
    for found in (torch.export.load(held), program.run_decompositions()):
        pytorch_files.check(found.module()(*inputs), expected, 1e-5)
    for key, buffer in other.named_buffers():
        torch.testing.assert_close(dict(module.named_buffers())[key], buffer, rtol=1e-4, atol=1e-5)


def test_trees_keywords_constants_and_mutations():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)
            self.register_buffer("steps", torch.zeros(2), persistent=False)

        def forward(self, x, d, *, k=2):
            self.steps.add_(1)
            return {"a": self.linear(x) * k + torch.tensor([1.0, 2.0]) + self.steps, "b": [d["y"] + x.shape[0]]}

    net = Net()
    args = torch.ones(4, 3), {"y": torch.ones(4)}
    batch = Dim("batch", max=9)
    shapes = {"x": {0: batch}, "d": {"y": {0: batch}}, "k": None}
    program = torch.export.export(net, args, {"k": 3}, dynamic_shapes=shapes)
    assert program.graph_signature.non_persistent_buffers == ("steps",)
    assert program.graph_signature.user_inputs == ("x", "d_y", 3)
    assert list(program.constants) == ["lifted_tensor_0", "steps"]
    for found in (program, program.run_decompositions()):
        net.steps.zero_()
        module = found.module()
        other = torch.ones(6, 3), {"y": torch.ones(6)}
        result, again = module(*other, k=3), module(*other, k=3)
        torch.testing.assert_close(result["b"][0], torch.full((6,), 7.0))
        torch.testing.assert_close(again["a"] - result["a"], torch.ones(6, 2))
        assert net.steps.tolist() == [2, 2]
        with pytest.raises(AssertionError, match="Guard failed: k == 3"):
            module(*other, k=4)
        with pytest.raises(AssertionError, match=r"Guard failed: d\['y'\].size\(\)\[0\] == x.size\(\)\[0\]"):
            module(torch.ones(6, 3), {"y": torch.ones(5)}, k=3)
        with pytest.raises(ValueError, match="kwarg keyword mismatch"):
            module(*other)


def test_writes_to_inputs_and_through_views():
    def f(x):
        y = x * 2
        y[1:, 0] = 5.0
        x.add_(1)
        y.view(-1)[0:2].mul_(10)
        return y + x.t()[0].sum()

    x = torch.arange(6.0).reshape(2, 3)
    program = torch.export.export(Module(f), (x.clone(),))
    functional = program.run_decompositions()
    assert not any(t.rpartition(".")[0].endswith("_") for t in calls(functional))
    expected = f(first := x.clone())
    for found in (program, functional):
        second = x.clone()
        torch.testing.assert_close(found.module()(second), expected)
        torch.testing.assert_close(second, first)


def test_elements_that_are_read_name_the_line():
    def f(x):
        if x.sum() > 0:  # the line
            return x
        return -x

    with pytest.raises(GuardOnDataDependentSymNode, match="data-dependent") as caught:
        torch.export.export(Module(f), (torch.ones(3),))
    assert "test_export.py" in str(caught.value) and "if x.sum() > 0:" in str(caught.value)
    for read in (lambda x: x * float(x.sum()), lambda x: x + int(x[0]), lambda x: x[: int(x[0])], lambda x: x.numpy()):
        with pytest.raises(GuardOnDataDependentSymNode):
            torch.export.export(Module(read), (torch.ones(3),))


def test_is_exporting_is_true_during_export():
    class Net(torch.nn.Module):
        def forward(self, x):
            told.append((torch.compiler.is_compiling(), torch.compiler.is_exporting()))
            return x + 1

    told = []
    Net()(torch.ones(1))
    torch.export.export(Net(), (torch.ones(1),))
    assert told[0] == (False, False) and set(told[1:]) == {(True, True)} and not torch.compiler.is_exporting()


def test_parts_of_a_traced_program_that_have_no_forward(tmp_path):
    net, x = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()), torch.ones(1, 2)
    torch.jit.trace(net, (x,)).save(tmp_path / "net.pt")
    program = torch.export.export(torch.jit.load(tmp_path / "net.pt"), (x,))
    assert torch.equal(program.module()(x), net(x))


def test_branches_and_loops_are_nodes_with_graphs():
    weight = torch.nn.Parameter(torch.tensor(3.0))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = weight

        def forward(self, x):
            y = torch.cond(x.sum() > 0, lambda a: a * self.weight, lambda a: a - 1, (x,))
            from torchlite._higher_order_ops import map, scan, while_loop

            i, z = while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (torch.tensor(0), y))
            total, running = scan(lambda c, row: (c + row, c * row), torch.zeros(2), z)
            return map(lambda row, c: row * c, z, total), running, i

    program = torch.export.export(Net(), (torch.ones(3, 2),))
    assert {"cond", "while_loop", "scan", "map_impl"} <= set(calls(program))
    held = io.BytesIO()
    torch.export.save(program, held)
    held.seek(0)
    for found in (program, torch.export.load(held)):
        for x in (torch.ones(3, 2), -torch.ones(3, 2)):
            for ours, theirs in zip(found.module()(x), Net()(x), strict=True):
                torch.testing.assert_close(ours, theirs)


def test_sizes():
    """Derived, divided, equal, ranged and constant ones."""
    conv = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, 2, 1), torch.nn.MaxPool2d(2), torch.nn.Flatten())
    program = torch.export.export(conv, (torch.ones(2, 1, 16, 16),), dynamic_shapes=({0: Dim.AUTO, 2: Dim.DYNAMIC},))
    assert program.module()(torch.ones(3, 1, 21, 16)).shape == conv(torch.ones(3, 1, 21, 16)).shape

    class Both(torch.nn.Module):
        def forward(self, x, y):
            return x + y[1:], x.reshape(x.shape[0] * 2, -1).sum() / x.shape[0]

    batch = Dim("batch", min=2, max=10)
    shapes = {"x": {0: batch}, "y": {0: batch + 1}}
    program = torch.export.export(Both(), (torch.ones(4, 2), torch.ones(5, 2)), dynamic_shapes=shapes)
    assert program.module()(torch.ones(7, 2), torch.ones(8, 2))[1] == 2
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(torch.ones(7, 2), torch.ones(7, 2))

    class Added(torch.nn.Module):
        def forward(self, x, y):
            return x + y

    auto = ({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.AUTO})
    program = torch.export.export(Added(), (torch.ones(4, 3), torch.ones(4, 3)), dynamic_shapes=auto)
    assert program.module()(torch.ones(6, 5), torch.ones(6, 5)).shape == (6, 5)
    program = torch.export.export(
        torch.nn.Linear(3, 2), (torch.ones(4, 3),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},)
    )
    assert program.module()(torch.ones(9, 3)).shape == (9, 2)
    with pytest.raises(UserError, match="Constraints violated"):
        torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),), dynamic_shapes=({1: Dim("wide")},))
    with pytest.raises(UserError, match="Constraints violated"):
        branching = Module(lambda x: x if x.shape[0] > 5 else -x)
        torch.export.export(branching, (torch.ones(4),), dynamic_shapes=({0: Dim("a")},))
    with pytest.raises(ConstraintViolationError, match=r"3 not in range \[4, int_oo\]"):
        torch.export.export(Module(torch.sin), (torch.ones(3),), dynamic_shapes=({0: Dim("a", min=4)},))


def test_wrong_arguments_and_calls_raise():
    with pytest.raises(ValueError, match="Expected `mod` to be an instance of `torch.nn.Module`, got"):
        torch.export.export(lambda x: x, (torch.ones(2),))
    with pytest.raises(UserError, match="Expecting `args` to be a tuple of example positional inputs, got"):
        torch.export.export(torch.nn.ReLU(), torch.ones(2))
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(torch.ones(2))
    with pytest.raises(NotImplementedError, match="Calling train"):
        program.module().train()
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram', got 'int'"):
        torch.export.save(1, io.BytesIO())


def test_collections_of_shapes_and_dataclasses():
    @dataclasses.dataclass
    class Pair:
        a: torch.Tensor
        b: torch.Tensor

    torch.export.register_dataclass(Pair)

    class Net(torch.nn.Module):
        def forward(self, pair):
            return Pair(pair.a + pair.b, pair.b)

    x, y = torch.ones(3), torch.ones(3)
    shapes = torch.export.ShapesCollection()
    shapes[x] = shapes[y] = {0: Dim("n")}
    program = torch.export.export(Net(), (Pair(x, y),), dynamic_shapes=shapes)
    assert program.module()(Pair(torch.ones(5), torch.ones(5))).a.tolist() == [2.0] * 5
    more = torch.export.AdditionalInputs()
    more.add((torch.ones(7),))
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(3),), dynamic_shapes=more)
    more.verify(program)


def test_a_failed_write_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "model.pt2"
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    torch.export.save(program, path)
    before = path.read_bytes()
    next(n for n in program.graph.nodes if n.op == "call_function").meta.clear()
    with pytest.raises(RuntimeError, match="does not say what the value of relu is"):
        torch.export.save(program, path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_casts_of_autocast_are_part_of_the_program():
    class Cast(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.linear(x)
            return y + x

    model, x = Cast(), torch.randn(4, 3)
    program = torch.export.export(model, (x,))
    assert torch.equal(program.module()(x), model(x))
    assert torch.equal(program.run_decompositions().module()(x), model(x))


def test_named_tuples_that_no_class_is_registered_for():
    """A file makes classes for them, and registers nothing in the process."""
    from torchlite.utils import _pytree as pytree
    from torchlite.utils import _pytree_serialization as text

    Pair = collections.namedtuple("Pair", "first second")
    pytree._register_namedtuple(Pair, serialized_type_name="tests.Pair")

    class Net(torch.nn.Module):
        def forward(self, x):
            return Pair(x + 1, x * 2)

    held = io.BytesIO()
    torch.export.save(torch.export.export(Net(), (torch.ones(2),)), held)
    assert type(torch.export.load(io.BytesIO(held.getvalue())).module()(torch.ones(2))) is Pair
    del text.NODES_BY_NAME["tests.Pair"], text.NODES_BY_TYPE[Pair]
    before = dict(text.NODES_BY_NAME), dict(text.NODES_BY_TYPE)
    loaded = torch.export.load(io.BytesIO(held.getvalue()))
    again = io.BytesIO()
    torch.export.save(loaded, again)
    for program in (loaded, torch.export.load(io.BytesIO(again.getvalue()))):
        result = program.module()(torch.ones(2))
        assert (result.first.tolist(), result.second.tolist()) == ([2, 2], [2, 2])
    assert (text.NODES_BY_NAME, text.NODES_BY_TYPE) == before


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.nn.functional.leaky_relu(x, 0.375),
        lambda x: torch.nn.functional.softplus(x, 2.5, 0.5),
        lambda x: torch.clamp(x, -0.625, float("inf")),
        lambda x: torch.nn.functional.hardtanh(x, float("-inf"), 0.125),
        lambda x: torch.add(x, x, alpha=0.75),
        lambda x: torch.full_like(x, float("nan")) + x,
        lambda x: torch.nn.functional.interpolate(x[None, None], scale_factor=1.5, mode="nearest"),
    ],
)
def test_numbers_of_a_saved_program_are_those_of_the_function(function):
    x = torch.linspace(-2, 2, 7)
    file = io.BytesIO()
    torch.export.save(torch.export.export(Module(function), (x,)), file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    torch.testing.assert_close(loaded(x), function(x), rtol=0, atol=0, equal_nan=True)
