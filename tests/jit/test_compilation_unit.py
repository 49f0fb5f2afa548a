"""Programs from texts, subclasses of ScriptModule, interfaces, and what only Python runs."""

import io
from typing import List  # noqa: UP035

import pytest

import torchlite as torch

from .test_trace import again, same

SCALE = 3  # a global variable, which no program sees


def test_texts_are_programs():
    unit = torch.jit.CompilationUnit("""
    def helper(a, n):
        # type: (Tensor, int) -> Tensor
        for i in range(n):
            a = a + i * 3
        return a

    def func(x, y: List[int] = [1, 2]) -> Tensor:
        return helper(x, len(y)) * 2
    """)
    assert unit.func(torch.ones(2)).tolist() == [8, 8] and unit.func(torch.ones(1), [0]).tolist() == [2]
    assert str(unit.helper.schema) == "helper(Tensor a, int n) -> Tensor"
    unit.define("def more(x):\n    return func(x) + 1")
    assert unit.more(torch.ones(1)).tolist() == [9] and len(unit.get_functions()) == 3
    same(again(unit.more)(torch.ones(1)), unit.more(torch.ones(1)))
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        unit.other
    for wrong in (
        "import os",
        "x = 1",
        "def f(x):\n    return os.getcwd()",
        "def f(x):\n    return x * SCALE",
        "def f(x: os.name):\n    return x",
        "def (",
    ):
        with pytest.raises(RuntimeError):
            torch.jit.CompilationUnit(wrong)


class Own(torch.jit.ScriptModule):
    __constants__ = ["k"]

    def __init__(self):
        super().__init__()
        self.w, self.k, self.count = torch.nn.Parameter(torch.ones(2)), 3, 0
        self.define("""
        def twice(self, x):
            self.count = self.count + 1
            return x * self.w * self.k + self.k
        """)

    @torch.jit.script_method
    def forward(self, x):
        return self.twice(x) if torch.jit.is_scripting() else x


def test_script_modules_that_are_written():
    module = Own()
    assert module(torch.ones(2)).tolist() == [6, 6] and module.count == 1 and torch.jit.script(module) is module
    assert "self.twice" in module.code and isinstance(module, torch.jit.ScriptModule)
    module.w.data.fill_(2)
    assert again(module)(torch.ones(2)).tolist() == [9, 9] == module(torch.ones(2)).tolist()


def test_define_gives_forward_to_a_script_module():
    module = torch.jit.ScriptModule()
    module.define("def forward(self, x):\n    return x + 1")
    assert module(torch.ones(2)).tolist() == [2, 2] and "x + 1" in module.code
    assert again(module)(torch.ones(2)).tolist() == [2, 2]


@torch.jit.interface
class Adds(torch.nn.Module):
    def forward(self, x: torch.Tensor, k: int = 2) -> torch.Tensor:
        pass


class Two(torch.nn.Module):
    def forward(self, x: torch.Tensor, k: int = 2) -> torch.Tensor:
        return x + k


class Holder(torch.nn.Module):
    part: Adds

    def __init__(self):
        super().__init__()
        self.part = Two()

    def forward(self, x: torch.Tensor):
        return self.part.forward(x)


def test_interfaces():
    scripted = torch.jit.script(Holder())
    assert scripted(torch.ones(1)).item() == 3 == again(scripted)(torch.ones(1)).item()
    with pytest.raises(RuntimeError, match="must be applied to a class"):
        torch.jit.interface(3)


def test_code_of_unprintable_functions_raises_on_access():
    @torch.jit.script
    def limits(x: torch.Tensor):
        return x * torch.finfo(torch.float32).eps

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            return x + torch.finfo(torch.float32).eps

    scripted = torch.jit.script(Net())
    assert limits(torch.ones(1)).item() == torch.finfo(torch.float32).eps and scripted(torch.zeros(1)).item() > 0
    for ask in (
        lambda: limits.code,
        lambda: limits.graph,
        lambda: torch.jit.save(limits, io.BytesIO()),
        lambda: scripted.code,
        lambda: scripted.save_to_buffer(),
    ):
        with pytest.raises(RuntimeError, match="has no TorchScript for"):
            ask()
    with pytest.raises(torch.jit.frontend.NotSupportedError):  # unsupported syntax raises at once

        @torch.jit.script
        def refused(*x: List[torch.Tensor]):  # noqa: UP006
            return x


def test_call_sites_cache_the_chosen_overload():
    unit = torch.jit.CompilationUnit("""
    def f(x, n: int, part: Optional[Tensor] = None) -> Tensor:
        y = x[:, 1:, -1] + x.select(1, 0).slice(1, 0, 1, 1) - n
        y = torch.add(y, y, alpha=2) + torch.zeros([n, 1], dtype=torch.float64, device=x.device)
        if part is not None:
            y = y * part
        return torch.cat([y, y.view([y.size(0), -1])], 1).to(torch.float32)
    """)
    x = torch.arange(12.0).reshape(2, 2, 3)
    for part in (None, torch.ones(1), None):
        y = x[:, 1:, -1] + x[:, 0, 0:1] - 2
        assert unit.f(x, 2, part).tolist() == torch.cat([y * 3, y * 3], 1).tolist()
    with pytest.raises(RuntimeError):
        unit.f(x, 2, "text")
    with pytest.raises(RuntimeError, match="y is not defined in the false branch"):
        torch.jit.CompilationUnit("def g(x, n: int):\n    if n > 0:\n        y = x\n    return y")


def test_modules_by_other_names():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts, self.drop = torch.nn.ModuleList([torch.nn.Linear(2, 2)]), torch.nn.Dropout(0.25)

        def forward(self, x: torch.Tensor):
            act = getattr(self, "act", None)
            if act is not None:
                x = act(x)
            known = getattr(self, "drop", None)
            last = self.parts[0]
            if known is not None:
                x = known(x) * known.p
            return last(x) + len(self.parts)

    module = Net().eval()
    scripted = torch.jit.script(module)
    assert torch.jit.script(Net())._c._type() == scripted._c._type()  # one class for one text
    x = torch.ones(1, 2)
    same(again(scripted)(x), module(x))


def test_attributes_without_a_type():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x: List[int] = []  # noqa: UP006

        def forward(self, x: List[int]):  # noqa: UP006
            self.x = x

    with (
        pytest.warns(UserWarning, match="instance-level annotations"),
        pytest.raises(RuntimeError, match="nonexistent"),
    ):
        torch.jit.script(Net())


def test_graphs_show_types():
    unit = torch.jit.CompilationUnit(
        "def f(a: List[int], b: Optional[Tensor], c: Dict[str, Tuple[int, str]], d: Union[str, int]) -> int:\n"
        "    return a[0]"
    )
    shown = str(unit.f.graph)
    for kind in ("%a : int[]", "%b : Tensor?", "%c : Dict(str, (int, str))", "%d : Union(int, str)"):
        assert kind in shown


def test_texts_are_padded_to_a_limit():
    unit = torch.jit.CompilationUnit(
        "def f(x: str, n: int) -> List[str]:\n    return [x.center(n, '-'), x.ljust(n), x.rjust(n), x.zfill(n)]"
    )
    assert unit.f("ab", 4) == ["-ab-", "ab  ", "  ab", "00ab"]
    with pytest.raises(RuntimeError, match="text cannot be 1099511627776 letters wide"):
        unit.f("ab", 1 << 40)
