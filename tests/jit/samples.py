"""Samples of TorchScript's language: modules that use its forms, built from `torch`, an argument."""

from __future__ import annotations

import enum
import importlib.util
import math
import pathlib
import sys
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union  # noqa: UP035


def plain(value: Any) -> Any:
    """A value that prints the same in every library: tensors as lists."""
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def build(torch: Any) -> dict[str, tuple[Any, tuple]]:
    """The samples by name: a module and its arguments."""
    path = pathlib.Path(tempfile.mkdtemp()) / "torchscript_samples.py"  # TorchScript reads the sources of classes
    path.write_text(SOURCE)
    spec: Any = importlib.util.spec_from_file_location("torchscript_samples", path)
    module: Any = importlib.util.module_from_spec(spec)
    module.__dict__.update(
        torch=torch, Tensor=torch.Tensor, Color=Color, math=math, List=List, Dict=Dict, Optional=Optional, Tuple=Tuple,  # noqa: UP006
        Union=Union, NamedTuple=NamedTuple, Any=Any,
    )  # fmt: skip
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    x = torch.arange(12.0).view(3, 4)
    return {name[6:].lower(): (cls(), (x,)) for name, cls in vars(module).items() if name.startswith("Sample")}


SOURCE = """
class Pair(NamedTuple):
    x: Tensor
    n: int

@torch.jit.script
class Counter:
    def __init__(self, v: int):
        self.v = v

    def add(self, t: Tensor) -> int:
        self.v += int(t.numel())
        return self.v

    @property
    def double(self) -> int:
        return self.v * 2

def helper(x: Tensor, k: int = 2, z: float = 1.5) -> Tensor:
    return x * k + z

class Plus(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1

class Times(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 3

class SampleContainers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mods = torch.nn.ModuleList([Plus(), Times()])
        self.table = torch.nn.ModuleDict({"a": Plus(), "1b": Times()})
    def forward(self, x: Tensor):
        for m in self.mods:
            x = m(x)
        for i, m in enumerate(self.mods):
            x = m(x) + i
        for n, m in self.table.items():
            x = m(x)
        return self.mods[1](x)

class SampleLoops(torch.nn.Module):
    def forward(self, x: Tensor):
        n = 0
        while n < 10:
            n += 1
            if n == 3:
                continue
            if n > 6:
                break
            x = x + n
        out: List[int] = []
        for i in range(1, 10, 3):
            out.append(i)
        for a, b in zip(out, [i * 2 for i in range(3)]):
            n += a * b
        return x, n, out

class SampleDicts(torch.nn.Module):
    def forward(self, x: Tensor):
        d: Dict[str, Tensor] = {}
        d["q"] = x
        d["r"] = x * 2
        keys = [k for k in d.keys()]
        if "q" in d:
            del d["q"]
        return d, keys, len(d), d.get("no", x + 1)

class SampleOptional(torch.nn.Module):
    def forward(self, x: Tensor, opt: Optional[Tensor] = None, flag: bool = True):
        if opt is None and flag:
            y = x * 2
        elif opt is not None:
            y = opt
        else:
            y = x
        return y

class SampleTuples(torch.nn.Module):
    def forward(self, x: Tensor) -> Tuple[Pair, int]:
        p = Pair(x, 3)
        a, b = p.x, p.n
        return Pair(a + 1, b), p.n

class SampleClasses(torch.nn.Module):
    def forward(self, x: Tensor):
        c = Counter(4)
        n = c.add(x)
        return n, c.double

class SampleEnums(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.color = Color.BLUE
    def forward(self, x: Tensor):
        if self.color == Color.RED:
            x = x + 1
        return x, self.color.value, self.color.name

class SampleTexts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.name = "quote\\"' and more"
    def forward(self, x: Tensor):
        n = x.size(0)
        s = "{} {}".format(n, self.name) + f"z{n}" + "%d" % n
        return s, s.upper(), s.split(" "), s[1:3], ",".join(["a", "b"]), "a" in s, ord("a"), chr(98), hex(10)

class SampleNumbers(torch.nn.Module):
    def forward(self, x: Tensor):
        n = x.dim()
        r = (7 // n, 7 / n, -7 // n, -7 % 3, 1 << n, abs(-3), round(2.5), min(n, 3), max(n, 3))
        return r, math.sqrt(float(n)) + math.pi, math.floor(2.5), float(n) / 3, int(x.sum().item()), bool(x.sum() > 0)

class SampleIndices(torch.nn.Module):
    def forward(self, x: Tensor):
        y = x.clone()
        y[0] = 1.5
        y[:, 0] += 2
        return y, x[1:, ::2], x[..., None, 0], x[[0, 2]], x[x > 5], x[-1], x[None, 1]

class SampleMethods(torch.nn.Module):
    def forward(self, x: Tensor):
        if x.dtype == torch.float32:
            x = x.to(torch.float64)
        y = x.view(-1)[1:5:2]
        return -x, x @ x.t(), ~(x > 2), (x > 0) & (x < 2), y, torch.ones_like(x), x.shape[0] + x.size(-1)

class SampleUnions(torch.nn.Module):
    def one(self, v: Union[int, str]) -> str:
        if isinstance(v, int):
            return "int " + str(v)
        else:
            return "str " + v
    def forward(self, x: Tensor):
        return self.one(3), self.one("a")

class SampleForks(torch.nn.Module):
    def forward(self, x: Tensor):
        f = torch.jit.fork(helper, x, 3)
        return torch.jit.wait(f) + 1

class SampleContexts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))
    def forward(self, x: Tensor):
        with torch.no_grad():
            y = x + self.count.sum()
        assert y.dim() > 0, "no dimensions"
        if torch.jit.is_scripting():
            y = y + 1
        return y
    @torch.jit.export
    def other(self, n: int) -> str:
        if n > 1000:
            raise ValueError("too big")
        return "n=" + str(n)
    @torch.jit.unused
    def unused(self, x):
        return x.nothing()
"""
