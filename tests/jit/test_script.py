"""`torch.jit.script`: Python runs what it makes, and the text that is saved does the same."""

import ast
import dataclasses
import enum
import io
import math
import zipfile
from typing import List, Optional  # noqa: UP035

import pytest

import torchlite as torch

from ..graph_models import MODELS
from . import samples
from .test_load import ARCHIVE, SAMPLES
from .test_trace import again, same

SCRIPTED = [name for name, one in MODELS.items() if one.scripts]


@pytest.mark.parametrize("name", SCRIPTED)
def test_models(name):
    one = MODELS[name]
    module, inputs = one.make(torch), one.inputs(torch)
    scripted = torch.jit.script(module)
    assert [n for n, _ in scripted.named_parameters()] == [n for n, _ in module.named_parameters()]
    with torch.no_grad():
        same(scripted(*inputs), module(*inputs))
        same(again(scripted)(*inputs), module(*inputs))


def test_the_language():
    for name, (module, inputs) in samples.build(torch).items():
        wanted = ast.literal_eval(ARCHIVE.read(f"sample.{name}.txt").decode())
        assert samples.plain(again(torch.jit.script(module))(*inputs)) == wanted, name
    assert len(SAMPLES) >= 14


def test_functions():
    @torch.jit.script
    def function(x: torch.Tensor, more: Optional[List[int]] = None, scale: float = math.pi):  # noqa: UP006, UP045
        """The function's docstring."""
        if more is not None:
            for one in more:
                x = x + one
        return x * scale

    assert isinstance(function, torch.jit.ScriptFunction) and function.__doc__ == "The function's docstring."
    assert function(torch.ones(1), [1, 2], 2.0).item() == 8 and torch.jit.script(function) is function
    assert "def function" in function.code and "graph(" in str(function.graph)
    out = io.BytesIO()
    torch.jit.save(function, out)
    assert torch.jit.load(io.BytesIO(out.getvalue()))(torch.ones(1), [1]).item() == pytest.approx(2 * math.pi)


def test_marks():
    class Net(torch.nn.Module):
        def forward(self, x):
            return self.kept(x) + (100 if torch.jit.is_scripting() else 1)

        def kept(self, x):
            return x * 2

        @torch.jit.ignore
        def left(self, x):
            return x.numpy()

        @torch.jit.export
        def shown(self, n: int) -> int:
            return n + 1

    net = Net()
    scripted = torch.jit.script(net)
    assert net(torch.zeros(1)).item() == 1 and scripted(torch.zeros(1)).item() == 100
    assert scripted.shown(2) == 3 and again(scripted).shown(2) == 3 and again(scripted)(torch.zeros(1)).item() == 100
    assert scripted.left(torch.ones(1)).tolist() == [1.0]

    class Calls(Net):
        def forward(self, x):
            return x + torch.as_tensor(self.left(x))

    with pytest.raises(RuntimeError, match="Could not export Python function call 'left'"):
        torch.jit.script(Calls()).save(io.BytesIO())


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def f(x):\n  try:\n    return x\n  except ValueError:\n    return x", "try blocks aren't supported"),
        ("def f(*x):\n  return x", "can't take variable number of arguments"),
        ("def f(x):\n  return [y for y in x if y]", "Comprehension ifs are not supported"),
        ("def f(x):\n  return unknown_name(x)", "undefined value unknown_name"),
        ("def f(x):\n  return torch.no_such_function(x)", "undefined value|no_such_function|no attribute|Unknown"),
        ("def f(x: list):\n  return x", "without a contained type"),
        ("def f(x):\n  y = lambda z: z\n  return y(x)", "lambda functions aren't supported"),
        ("def f(x):\n  def y(z):\n    return z\n  return y(x)", "function definitions aren't supported"),
        ("n = 3\ndef f(x):\n  return x * n", "python value of type 'int' cannot be used as a value"),
        ("def f(x, n: int = 'a'):\n  return x", 'Expected a default value of type int on parameter "n"'),
        ("from typing import *\ndef f(x, n: List[int] = [1]):\n  return x", "Mutable default parameters"),
    ],
)
def test_unsupported_syntax_raises(tmp_path, source, words):
    path = tmp_path / "program.py"
    path.write_text(source)
    import linecache

    linecache.checkcache(str(path))
    names = {"torch": torch}
    exec(compile(source, str(path), "exec"), names)
    with pytest.raises(RuntimeError, match=words):
        torch.jit.script(names["f"])


def test_freeze():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout())
    scripted = torch.jit.script(net)
    with pytest.raises(RuntimeError, match="modules in eval mode"):
        torch.jit.freeze(scripted)
    frozen = torch.jit.freeze(scripted.eval())
    x = torch.randn(2, 3)
    same(frozen(x), net.eval()(x))
    assert not list(frozen.parameters()) and not frozen.state_dict()
    same(again(frozen)(x), net(x))
    same(torch.jit.optimize_for_inference(scripted)(x), net(x))
    with pytest.raises(RuntimeError, match="expects a ScriptModule"):
        torch.jit.freeze(net)


def test_archives_of_two_programs_join():
    class Both(torch.nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.a, self.b = a, b

        def forward(self, x):
            return self.a(x) + self.b(x)

    a, b = (torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2)) for _ in range(2))
    both = torch.jit.script(Both(a, b))
    x = torch.randn(3, 2)
    same(both(x), a(x) + b(x))
    same(again(both)(x), a(x) + b(x))


def test_load_of_weights_dispatches(tmp_path):
    path = str(tmp_path / "x.pt")
    torch.jit.script(torch.nn.Linear(2, 1)).save(path)
    with pytest.raises(RuntimeError, match="TorchScript archives"):
        torch.load(path)
    with pytest.warns(UserWarning, match="dispatching to 'torch.jit.load'"):
        assert isinstance(torch.load(path, weights_only=False), torch.jit.ScriptModule)
    assert zipfile.is_zipfile(path)


@dataclasses.dataclass
class Choice:
    index: torch.Tensor
    count: int
    weight: torch.Tensor | None = None

    def __post_init__(self):
        if self.count < 0:
            raise ValueError("count")

    def total(self) -> int:
        return self.count + self.index.numel()


class Chooses(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        choice = Choice(x, 3)
        return x * choice.total()


def test_dataclasses(tmp_path):
    assert torch.jit.script(Choice) is Choice
    scripted = torch.jit.script(Chooses())
    scripted.save(tmp_path / "net.pt")
    for module in (scripted, torch.jit.load(tmp_path / "net.pt")):
        assert module(torch.ones(2)).tolist() == [5.0, 5.0]


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.total = start

    def less(self, other: "Counter") -> bool:  # the class is not there yet when the decorator runs
        return self.total < other.total


class Parts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = torch.nn.ParameterList([torch.nn.Parameter(torch.full((2,), float(n))) for n in (2, 3)])

    def forward(self, x, times: float = 1):
        for scale in self.scales:
            x = x * scale
        wide = torch.nn.functional.interpolate(x[None, None], scale_factor=2.0, mode="nearest")
        done = torch.jit.fork(scaled, x, n=int(times))
        return wide + self.scales[1][0], torch.jit.wait(done), Counter(1).less(Counter(2)), len(self.scales), times


def scaled(x, n: int):
    return x * n


def test_programs_that_files_got_wrong():
    scripted = torch.jit.script(Parts())
    for module in (scripted, again(scripted)):
        wide, done, less, count, times = module(torch.ones(2))
        assert wide.tolist() == [[[9.0] * 4]] and done.tolist() == [6, 6] and (less, count, times) == (True, 2, 1.0)
    assert isinstance(again(scripted)(torch.ones(2))[4], float)


class Kept(torch.nn.Module):
    last: Optional[torch.Tensor]  # noqa: UP045

    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        if self.last is None:
            self.last = x
        last = self.last
        assert last is not None
        self.last = last + x
        return last


def test_assigned_attributes_are_read_in_each_call():
    module = again(torch.jit.script(Kept()))
    assert [module(torch.ones(1)).item() for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            "def f(x):\n  if x.sum() > 0:\n    y = 1\n  else:\n    y = 'a'\n  return y",
            "Type mismatch: y is set to type int",
        ),
        ("def f(x):\n  if x.sum() > 0:\n    y = 1\n  return y", "y is not defined in the false branch"),
        ("def f(x):\n  for i in range(3):\n    y = x\n  return y", "undefined value y"),
        ("def f(x):\n  y = 1\n  for i in range(3):\n    y = y + 0.5\n  return y", "previously had type int"),
        ("def f(x):\n  if x.sum() > 0:\n    return 1\n  return x", "Previous return statement returned"),
        ("def f(x, y: Optional[Tensor]):\n  return x + y", "Arguments for call are not valid"),
        ("def f(x, y: Optional[Tensor]):\n  return y.sum()", r"'Optional\[Tensor\]' object has no attribute"),
        ("def f(x, n: Optional[int]) -> int:\n  return n", r"annotated as having type int but is actually"),
        ("def f(x):\n  return x.numpy()", "'Tensor' object has no attribute or method 'numpy'"),
        ("def f(x):\n  y = []\n  y.append(1)\n  return y", "previously matched to type Tensor"),
        ("def f(x):\n  y: int = 'a'\n  return y", "annotated with type int"),
        ("def f(x):\n  a, b, c = (1, 2)\n  return a", "need 3 values to unpack but found only 2"),
        ("def f(x):\n  y = (1, 2)\n  y[0] = 3\n  return y", "does not support subscripted assignment"),
        ("def f(n: int):\n  for i in n:\n    pass\n  return n", "'int' object is not iterable"),
        ("def g(x, n: int):\n  return x\ndef f(x):\n  return g(x)", "Argument n not provided"),
        ("def g(x, n: int):\n  return x\ndef f(x):\n  return g(x, 'a')", "Expected a value of type 'int'"),
    ],
)
def test_types_that_are_refused(source, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.CompilationUnit(source).f(torch.ones(1))


def test_conditions_refine_types():
    unit = torch.jit.CompilationUnit("""
    def f(x, y: Optional[Tensor], n: Optional[int]):
        if y is None or n is None:
            return x
        z = y + n
        if n > 2 and y is not None:
            w = 1
        elif n > 1:
            raise ValueError("two")
        else:
            w = 2
        out: List[int] = []
        last: Optional[Tensor] = None
        while len(out) < w:
            out.append(n)
            last = z
        return x + z + len(out) + (last if last is not None else x)
    """)
    assert unit.f(torch.ones(1), torch.ones(1), 1).item() == 7 and unit.f(torch.ones(1), None, 1).item() == 1


class Shade(enum.Enum):
    RED = 1
    BLUE = 2


class Tint(enum.Enum):
    RED = 1
    BLUE = 7


class Shades(torch.nn.Module):
    def forward(self, x, one: Shade, many: list[Shade], named: dict[str, Shade], other: Shade | None = None):
        count = 0
        for shade in many:
            if shade == Shade.RED:
                count += 1
        if other is not None and other == Shade.BLUE:
            count += 10
        if named["a"] == Shade.BLUE:
            count += 100
        if one == Shade.RED:
            count += 1000
        return x * one.value, count


def test_a_loaded_program_takes_members_of_the_user_s_enumerations():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Shades()), file)
    file.seek(0)
    loaded = torch.jit.load(file)
    x = torch.ones(2)
    both = [Shade.RED, Shade.BLUE, Shade.RED]
    assert loaded(x, Shade.RED, both, {"a": Shade.BLUE}, Shade.BLUE)[1] == 1112
    assert loaded(x, Shade.BLUE, both, {"a": Shade.RED}, other=None)[1] == 2
    assert loaded(x, Tint.RED, [], {"a": Shade.RED})[1] == 1000  # by name and value, as PyTorch compares
    result, count = loaded(x, Tint.BLUE, [Tint.BLUE], {"a": Tint.BLUE}, other=Tint.BLUE)
    assert (result.tolist(), count) == ([7.0, 7.0], 0)
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'Enum<__torch__\..*Shade>' for argument 'one'"):
        loaded(x, 1, both, {"a": Shade.RED})
    with pytest.raises(RuntimeError, match="Expected a value of type 'List"):
        loaded(x, Shade.RED, [1], {"a": Shade.RED})


def test_methods_that_other_modules_call_are_saved():
    class Inner(torch.nn.Module):
        def helper(self, x):
            return self.more(x) + 1

        def more(self, x):
            return 2 * x

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner.helper(x)

    stream = io.BytesIO()
    torch.jit.save(torch.jit.script(Outer()), stream)
    stream.seek(0)
    assert torch.equal(torch.jit.load(stream)(torch.ones(2)), torch.full((2,), 3.0))


def test_attributes_that_programs_lack_are_left_out():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qconfig = torch.ao.quantization.default_qconfig

        def forward(self, x):
            return x + 1

    stream = io.BytesIO()
    torch.jit.save(torch.jit.script(Net()), stream)
    stream.seek(0)
    assert torch.equal(torch.jit.load(stream)(torch.ones(2)), torch.full((2,), 2.0))
