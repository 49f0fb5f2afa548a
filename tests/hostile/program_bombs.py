"""Bombs among `.pt2` files, TorchScript programs, expressions of sizes and checkpoints; see `bombs`."""

from __future__ import annotations

import copy
import functools
import io
import itertools
import json
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

from .bombs import Bomb

BOMBS: dict[str, Bomb] = {}


def _archive(records: dict[str, bytes | str], deflated: tuple[str, ...] = ()) -> bytes:
    """A zip archive. deflated: the records that are."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in records.items():
            archive.writestr(f"m/{name}", data, zipfile.ZIP_DEFLATED if name in deflated else zipfile.ZIP_STORED)
    return file.getvalue()


# -- TorchScript -------------------------------------------------------------------------------

_STATE = b"\x80\x02c__torch__\nM\nq\x00)\x81}(X\x08\x00\x00\x00trainingq\x01\x89ubq\x02."


def script(body: str, *, extra: str = "", fields: str = "", after: str = "", **records: bytes) -> bytes:
    """A TorchScript archive of one module whose `forward` has this body, between other definitions and methods."""
    text = (
        f"{extra}class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n{fields}"
        f"  def forward(self: __torch__.M,\n    x: Tensor):\n{body}{after}"
    )
    found: dict[str, bytes | str] = {
        "data.pkl": records.get("data", _STATE),
        "code/__torch__.py": text,
        "constants.pkl": records.get("constants", b"\x80\x02)."),
        "version": b"10\n",
    }
    return _archive(found, ("code/__torch__.py", *records.get("deflated", ())))  # type: ignore[arg-type]


def lines(*statements: str) -> str:
    """Statements as the body of a method."""
    return "".join(f"    {statement}\n" for statement in statements)


def _script(name: str, make: Callable[[], bytes]) -> None:
    BOMBS[f"script: {name}"] = lambda: (make(), "torch.jit.load(path)(torch.ones(2))")


def _running(name: str, *statements: str) -> None:
    """A program that loads, and does too much when it runs."""
    _script(name, lambda: script(lines(*statements)))


for _name, _statements in {
    "percent width": ('return "%1000000000d" % 1',),
    "percent precision": ('return "%.1000000000f" % 1.0',),
    "percent width of a tuple": ('return torch.percentFormat("%1000000000s", "a")',),
    "remainder of text": ('return torch.remainder("%1000000000d", 1)',),
    "format width": ('return torch.format("{:1000000000}", 1)',),
    "text times number": ('return "a" * 1000000000',),
    "number times text": ('return torch.mul(1000000000, "a")',),
    "list times number": ("return [0] * 1000000000000",),
    "tuple times number": ("return (1, 2) * 1000000000",),
    "tensors times number": ("return torch.cat([x] * 500000)",),
    "list of lists times number": ("return [[0], [1]] * 100000000",),
    "ljust": ('return torch.ljust("a", 1000000000)',),
    "rjust": ('return torch.rjust("a", 1000000000, "b")',),
    "center": ('return torch.center("a", 1000000000)',),
    "zfill": ('return torch.zfill("a", 1000000000)',),
    "expandtabs": ('return torch.expandtabs("\\t", 1000000000)',),
    "expandtabs of many": ('return torch.expandtabs("\\t" * 1000000, 1000)',),
    "replace": ('return torch.replace("a" * 100000, "a", "b" * 100000)',),
    "replace nothing": ('return torch.replace("a" * 100000, "", "b" * 100000)',),
    "join": ('return torch.join("b" * 100000, ["a"] * 100000)',),
    "join of long ones": ('return torch.join("", ["b" * 1000000] * 100000)',),
    "shift": ("a = 1 << 1000000000", "return a"),
    "power": ("return torch.pow(10, 1000000000)",),
    "power to an integer": ("a = 10 ** 18", "return torch.pow(a, a)"),
    "products": ("a = 9223372036854775807", *(["a = a * a"] * 60), "return a"),
    "factorial": ("return torch.factorial(100000000)",),
    "range as a list": ("return list(range(1000000000000))",),
    "range sorted": ("return sorted(range(1000000000000))",),
    "range reversed": ("return reversed(range(1000000000000))",),
    "range summed": ("return sum(range(1000000000000))",),
    "range in a comprehension": ("return [i for i in range(1000000000000)]",),
    "range as a dict": ("a = range(1000000000000)", "return dict(zip(a, a))"),
    "range as a tuple": ("return tuple(range(1000000000000))",),
    "a float in a range": ("return 0.5 in range(1000000000000)",),
    "rangelist": ("return ops.prim.rangelist(1000000000000)",),
    "round": ("return round(1.5, -1000000000)",),
    "doubled text": ('a = "a"', *(['a = torch.add(a, a)'] * 60), "return a"),
    "doubled list": ("a = [0]", *(["a = torch.add(a, a)"] * 60), "return a"),
    "list extended by itself": ("a = [0]", *(["_ = torch.extend(a, a)"] * 60), "return a"),
    "list added to itself": ("a = [0]", *(["a += a"] * 60), "return a"),
    "zeros": ("return torch.zeros([1000000000000000])",),
    "ones": ("return torch.ones([1000000000000000])",),
    "full": ("return torch.full([1000000000000000], 1.5)",),
    "arange": ("return torch.arange(1000000000000000)",),
    "eye": ("return torch.eye(100000000)",),
    "linspace": ("return torch.linspace(0.0, 1.0, 1000000000000000)",),
    "repeat": ("return torch.repeat(x, [1000000000000000])",),
    "expanded and cloned": ("return torch.contiguous(torch.expand(torch.ones([1]), [1000000000000000]))",),
    "one_hot": ("return torch.one_hot(torch.zeros([1], dtype=4), 1000000000000000)",),
    "pad": ("return torch.pad(x, [1000000000000000, 0])",),
    "sections": ("return torch.tensor_split(x, 1000000000000)",),
    "combinations": ("return torch.combinations(x, 1000000000)",),
    "polynomials": ("return torch.special_legendre_polynomial_p(torch.mul(x, 0.5), 1000000000000)",),
    "mvlgamma": ("return torch.mvlgamma(torch.add(x, 1e15), 1000000000000)",),
    "unbind of one element": ("return torch.unbind(torch.expand(torch.ones([1]), [1000000000000]))",),
    "split of one element": ("return torch.split(torch.expand(torch.ones([1]), [1000000000000]), 1)",),
    "chunks of one element": ("return torch.chunk(torch.expand(torch.ones([1]), [1000000000000]), 1000000000000)",),
    "list of one element": ("return list(torch.expand(torch.ones([1]), [1000000000000]))",),
    "tolist of one element": ("return torch.tolist(torch.expand(torch.ones([1]), [1000000000000]))",),
    "comprehension of one element": ("return [i for i in torch.expand(torch.ones([1]), [1000000000000])]",),
    "text of one element": ("return str(torch.expand(torch.ones([1]), [1000000000000]))",),
    "kernels": ("return torch.max_pool1d(torch.ones([1, 1, 4]), [1000000000000], [1], [500000000000])",),
    "outputs": ("return torch.adaptive_avg_pool1d(torch.ones([1, 1, 4]), [1000000000000])",),
    "zoom": ("return torch.upsample_nearest1d(torch.ones([1, 1, 4]), [1000000000000])",),
    "bins": ("return torch.histc(x, 1000000000000)",),
    "windows": ("return torch.kaiser_window(1000000000000)",),
    "reflection": ("return torch.reflection_pad1d(torch.ones([1, 4]), [1000000000000, 3])",),
    "draws": ("return torch.multinomial(x, 1000000000000, True)",),
    "permutation": ("return torch.randperm(1000000000000)",),
    "product of sets": (f"return torch.cartesian_prod([{', '.join(['x'] * 40)}])",),
    "tril_indices": ("return torch.tril_indices(100000000, 100000000)",),
}.items():  # fmt: skip
    _running(_name, *_statements)


def _many(text: str, number: int) -> str:
    return "".join(text.replace("#", str(i)) for i in range(number))


_script("30,000 functions", lambda: script(lines("return x"), extra=_many("def f#(x):\n  return x\n", 30_000)))
_script(
    "30,000 functions that are called",
    lambda: script(
        lines("y = x", *(f"y = __torch__.f{i}(y)" for i in range(30_000)), "return y"),
        extra=_many("def f#(x):\n  return x\n", 30_000),
    ),
)
_script(
    "4,000 functions that call the next",
    lambda: script(
        lines("return __torch__.f0(x)"),
        extra="".join(f"def f{i}(x):\n  return __torch__.f{i + 1}(x)\n" for i in range(4_000)),
    ),
)
_script("10,000 methods", lambda: script(lines("return x"), after=_many("  def m#(self, x):\n    return x\n", 10_000)))
_script("5,000 classes", lambda: script(
    lines(*(f"a = __torch__.C{i}()" for i in range(5_000)), "return x"),
    extra=_many("class C#:\n  a : int\n  def __init__(self):\n    return None\n", 5_000),
))  # fmt: skip
_script(
    "20,000 attributes",
    lambda: script(
        lines("return x"), extra=f"class C:\n{_many('  a# : int', 1)}\n{_many('  b# : int' + chr(10), 20_000)}"
    ),
)
_script("many calls", lambda: script(lines(*(["x = torch.add(x, 1)"] * 20_000), "return x")))
_script("many branches", lambda: script(lines(*(["if torch.gt(x.dim(), 0): x = x"] * 10_000), "return x")))
_script("branches within branches", lambda: script(
    "".join("  " * i + "    if True:\n" for i in range(140)) + ("  " * 140 + "    y = x\n") * 600 + lines("return x")
))  # fmt: skip
_script("forms within forms", lambda: script(lines("return " + "(" * 5_000 + "x" + ")" * 5_000)))
_script("minus signs", lambda: script(lines("return " + "-" * 100_000 + "1")))
_script("a long number", lambda: script(lines("return " + "9" * 200_000)))
_script("a long list", lambda: script(lines("return [" + "1, " * 80_000 + "1]")))
_script("a list of lists", lambda: script(lines("return " + "[" * 90 + "1" + "]" * 90)))
_script("a long text", lambda: script(lines('return "' + "a" * 200_000 + '"')))
_script("text of blanks", lambda: script(lines("return x"), extra="\n" * 50_000_000))
_script("text of one letter", lambda: script(lines("return x"), extra="#" + "a" * 50_000_000 + "\n"))
_script(
    "deflated pickle", lambda: script(lines("return x"), data=b"\x80\x02" + b"]" * 30_000_000, deflated=("data.pkl",))
)  # type: ignore[arg-type]
_script("pickle of sets", lambda: script(lines("return x"), data=b"\x80\x04" + b"\x8f0" * 500_000 + b"N."))
_script("pickle of lists", lambda: script(lines("return x"), data=b"\x80\x02" + b"]" * 1_000_000 + b"."))
_script("pickle of dicts", lambda: script(lines("return x"), data=b"\x80\x02(" + b"}" * 1_000_000 + b"t."))
_script(
    "pickle of a deep list",
    lambda: script(lines("return x"), constants=b"\x80\x02" + b"(" * 500_000 + b"t" * 500_000 + b"."),
)
_script(
    "5,000 objects whose state is set",
    lambda: script(
        lines("return x"),
        extra="class C:\n  a : int\n  def __setstate__(self, s: int):\n    self.a = s\n    return None\n",
        constants=b"\x80\x02(" + b"c__torch__\nC\n)\x81K\x01b" * 5_000 + b"t.",
    ),
)
_script("60,000 records", lambda: _archive({f"code/a{i}.py": b"" for i in range(60_000)}))
_script("a function within functions", lambda: script(
    "".join(f"{'  ' * i}    def f{i}(y):\n" for i in range(60)) + "  " * 60 + "    return y\n" + lines("return x")
))  # fmt: skip
_script("a function that calls itself", lambda: script(
    lines("return __torch__.f(x)"), extra="def f(x):\n  return __torch__.f(x)\n"
))  # fmt: skip
_script("types within types", lambda: script(
    lines("return isinstance(x, " + "List[" * 80 + "int" + "]" * 80 + ")")
))  # fmt: skip
_script("constants of long numbers", lambda: script(lines("return x"), constants=pickle.dumps((1 << 800_000,), 2)))

# -- TorchScript: values that hold a value twice, and what visits all of them --------------------

_KINDS = {"lists": ("[1]", "[#, #]"), "tuples": ("(1,)", "(#, #)"), "dicts": ("{'a': 1}", "{'a': #, 'b': #}")}
_VISITS = {
    "str": "return str(a)",
    "format": 'return torch.format("{}", a)',
    "percent": 'return "%s" % (a,)',
    "equal": "return a == b",
    "not equal": "return a != b",
    "less": "return a < b",
    "hash": "return hash(a)",
    "in a list": "return a in [b]",
    "in a dict": "return a in {1: 2}",
    "key": "return {a: 1}",
    "key of a comprehension": "return {i: 1 for i in [a]}",
    "pairs": "return dict([(a, 1)])",
    "looked up": "c = {1: 2}\n    return c[a]",
    "looked up by a call": "c = {1: 2}\n    return c[(a, 1)]",
    "set": "c = {1: 2}\n    c[a] = 1\n    return c",
    "get": "c = {1: 2}\n    return c.get(a)",
    "deleted": "c = {1: 2}\n    del c[a]\n    return c",
    "sorted": "return sorted([a, b])",
    "sort": "c = [a, b]\n    c.sort()\n    return c",
    "max": "return max(a, b)",
    "minimum of a list": "return torch.min([a, b])",
    "index": "c = [b]\n    return c.index(a)",
    "count": "c = [b]\n    return c.count(a)",
    "remove": "c = [b]\n    c.remove(a)\n    return c",
    "tensor": "return torch.tensor(a)",
    "as_tensor": "return torch.as_tensor(a)",
    "cat": "return torch.cat(a)",
    "view": "return x.view(a)",
    "printed": "print(a)\n    return x",
    "warned of": "torch.warn(a)\n    return x",
    "raised": "raise Exception(a)",
    "asserted": "assert False, a",
    "type": f"return isinstance(a, {'List[' * 28}int{']' * 28})",
    "returned": "return a",
    "text that is asked for many times": 'return torch.format("{}" * 100000, a)',
    "many texts": 'return ("%s" * 1000) % tuple([a] * 1000)',
}


def _doubled(first: str, again: str, last: str, times: int = 60) -> str:
    body = [f"a = {first}", f"b = {first}", f"for i in range({times}):"]
    body += [f"  a = {again.replace('#', 'a')}", f"  b = {again.replace('#', 'b')}"]
    return script(lines(*body) + f"    {last}\n")


for _kind, (_first, _again) in _KINDS.items():
    for _name, _last in _VISITS.items():
        _script(f"doubled {_kind}: {_name}", functools.partial(_doubled, _first, _again, _last))
for _name in ("str", "equal", "hash", "sorted", "max", "key", "tensor", "type"):
    for _kind, _again in (("lists", "[#]"), ("tuples", "(#,)")):
        make = functools.partial(_doubled, _KINDS[_kind][0], _again, _VISITS[_name], 200_000)
        _script(f"{_kind} 200,000 deep: {_name}", make)
_running("search from the right", 'a = "a" * 500000', 'return torch.rfind(a, "a" * 200000 + "b" + "a" * 200000)')
_running("split from the right", 'a = "a" * 500000', 'return torch.rsplit(a, "a" * 200000 + "b" + "a" * 200000)')
_running("text of tensors", "return str([x] * 500000)")
_running("equal tensors", "return [x] * 500000 == [x] * 500000")

# -- TorchScript: what a `__setstate__` does while its file is read -----------------------------


def setting(*statements: str, extra: str = "", after: str = "", **records: bytes) -> bytes:
    """A program whose module has a `__setstate__` of these statements."""
    method = f"  def __setstate__(self, state: Any):\n{lines(*statements)}    return None\n"
    return script(lines("return x"), extra=extra, after=method + after, **records)


def _setting(name: str, *statements: str, **more: str) -> None:
    BOMBS[f"script: setstate: {name}"] = lambda: (setting(*statements, **more), "torch.jit.load(path)")


_TEN = "for i in range(1000000000000):"
_setting("endless", "while True:", "  n = 1")
_setting("endless without a body", "while True:", "  pass")
_setting("a long range", _TEN, "  pass")
_setting("itself", "self.__setstate__(state)")
_setting("a function that calls itself", "return __torch__.f(1)", extra="def f(x: int):\n  return __torch__.f(x)\n")
_setting("two branches", "return __torch__.f(60)", extra=(
    "def f(n: int):\n  if n == 0:\n    return 1\n  return __torch__.f(n - 1) + __torch__.f(n - 1)\n"
))  # fmt: skip
_setting("an inner function", "def f(n):", "  while True:", "    n = n + 1", "  return n", "return f(1)")
_setting(
    "a forked function", "a = fork(__torch__.f, 1)", extra="def f(x: int):\n  while True:\n    x = 1\n  return x\n"
)
_setting("a method", "self.f()", after="  def f(self):\n    while True:\n      pass\n    return None\n")
_setting("an object", "a = __torch__.C()", extra=(
    "class C:\n  a : int\n  def __init__(self):\n    while True:\n      pass\n    return None\n"
))  # fmt: skip
_setting("an object that compares", "a = __torch__.C()", "b = a == a", extra=(
    "class C:\n  a : int\n  def __eq__(self, o: Any):\n    while True:\n      pass\n    return True\n"
))  # fmt: skip
_setting("a property", "a = self.p", after="  def __p_getter(self):\n    while True:\n      pass\n    return 1\n")
_setting("a list", "a = [1]", _TEN, "  a.append(i)")
_setting("lists", "a = [[1]]", _TEN, "  a.append([i] * 500000)")
_setting("doubled lists", "a = [1]", *(["a = a + a"] * 60))
_setting("texts", "a = ['a']", _TEN, "  a.append('a' * 500000)")
_setting("dicts", "a = {1: [1]}", _TEN, "  a[i] = [i]")
_setting("comprehensions", _TEN, "  a = [j for j in range(500000)]")
_setting("comprehensions within", "a = [[j for j in range(500000)] for i in range(500000)]")
_setting("sorting", "a = [1] * 500000", _TEN, "  b = sorted(a)")
_setting("searching", "a = [1] * 500000", _TEN, "  b = 2 in a")
_setting("comparing", "a = [1] * 500000", "b = [1] * 500000", _TEN, "  c = a == b")
_setting("slicing", "a = [1] * 500000", _TEN, "  b = a[1:]")
_setting("slices kept", "a = [1] * 500000", "b = [a]", _TEN, "  b.append(a[1:])")
_setting("inserting", "a = [1] * 500000", _TEN, "  a.insert(0, 1)")
_setting("extending", "a = [1] * 500000", "b = [1]", _TEN, "  b.extend(a)", "  b.clear()")
_setting("summing", "a = [1] * 500000", _TEN, "  b = sum(a)")
_setting("texts of doubled lists", "a = [1]", "for i in range(14):", "  a = [a, a]", _TEN, "  b = str(a)")
_setting("searching text", "a = 'a' * 500000", _TEN, "  b = torch.find(a, 'b')")
_setting("a large tensor", "a = torch.ones([1000000000])")
_setting("large tensors", "a = [torch.ones([1])]", _TEN, "  a.append(torch.ones([1000000]))")
_setting("a large tensor of numbers", "a = torch.arange(1000000000)")
_setting("a large tensor of small steps", "a = torch.arange(0.0, 1.0, 0.000000001)")
_setting("repeated", "a = torch.repeat(torch.ones([1]), [1000000000])")
_setting("repeated by numbers", "a = torch.repeat(torch.ones([1]), 1000, 1000, 1000)")
_setting("expanded", "a = torch.clone(torch.expand(torch.ones([1]), [1000000000]))")
_setting("expanded and indexed", "a = torch.expand(torch.ones([1]), [1000000000])", "b = a[a == 1]")
_setting("broadcast", "a = torch.ones([100000, 1])", "b = torch.ones([1, 100000])", "c = a + b")
_setting("changed in place", "a = torch.ones([1000000])", _TEN, "  a = torch.add_(a, 1)")
_setting("changed by an operator", "a = torch.ones([1000000])", _TEN, "  a += 1")
_setting("as a list", "a = torch.tolist(torch.expand(torch.ones([1]), [100000000]))")
_setting("listed", "a = list(torch.expand(torch.ones([1]), [100000000]))")
_setting("iterated", "for i in torch.expand(torch.ones([1]), [100000000]):", "  pass")
_setting("joined", "a = torch.ones([1000000])", "b = torch.cat([a] * 1000)")
_setting("a product", "a = torch.ones([2000, 2000])", _TEN, "  b = torch.mm(a, a)")
_setting("a decomposition", "a = torch.ones([1000, 1000])", "b = torch.linalg_svd(a)")
_setting("a convolution", "a = torch.ones([1, 1, 1000, 1000])", "b = torch.conv2d(a, a)")
_setting("a one-hot", "a = torch.one_hot(torch.zeros([1], dtype=4), 1000000000)")
_setting("identity", "a = torch.eye(100000)")
_setting("printing", _TEN, '  print("a")')
_setting("drawing", _TEN, "  a = torch.rand([1000000])")
_setting("by one name", "a = torch.full([1000, 1000, 1000], 1.5)")
_setting("by keywords", "a = torch.full(size=[1000, 1000, 1000], fill_value=1.5)")
_setting("like another", "a = torch.new_zeros(torch.ones([1]), [1000, 1000, 1000])")
_setting("in a dtype", "a = torch.ones([1000, 1000, 4])", "b = [a]", _TEN, "  b.append(torch.to(a, 7))")
BOMBS["script: setstate: of 9,000 objects"] = lambda: (
    script(
        lines("return x"),
        extra="class C:\n  a : int\n  def __setstate__(self, s: int):\n    for i in range(100000):\n      self.a = i\n"
        "    return None\n",
        constants=b"\x80\x02(" + b"c__torch__\nC\n)\x81K\x01b" * 9_000 + b"t.",
    ),
    "torch.jit.load(path)",
)

_setting("pieces", "a = torch.unbind(torch.zeros([10000000, 0]))")
_setting("pieces again and again", "a = torch.ones([1000])", "while True:", "  b = torch.unbind(a)")
for _i, _line in enumerate((
    "torch.arange(step=1, start=0, end=300000000)", "torch.arange(torch.tensor(300000000))",
    "torch.zeros([torch.tensor(300000000)])", "torch.zeros(torch.tensor(300000000))",
    "torch.repeat(torch.ones([1]), [torch.tensor(300000000)])", "torch.rand([torch.tensor(300000000)])",
    "torch.new_full(torch.ones([1]), [torch.tensor(300000000)], 1)",
    "torch.where(torch.ones([100000, 1]) > 0, torch.ones([1, 1]), torch.ones([1, 100000]))",
    "torch.allclose(torch.ones([50000, 1]), torch.ones([1, 50000]))",
    "torch.chunk(torch.zeros([0]), 100000000)", "torch.hsplit(torch.zeros([0]), 10000000)",
    "torch.tensor_split(torch.ones([2]), 1000000)", "torch.tensor_split(torch.ones([2]), torch.tensor(100000000))",
    "torch.special_legendre_polynomial_p(torch.ones([4]), torch.full([4], 1000000000.0))",
)):  # fmt: skip
    _setting(f"sizes of another kind {_i}", f"a = {_line}")
_setting("an op that repeats", "a = torch.ones([1])", "while True:", "  b = torch.mvlgamma(a, 4000)")
_setting("a list of pieces", "a = list(torch.zeros([10000000, 0]))")

# -- TorchScript: records whose cost is more than their length ----------------------------------


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


_script(
    "a list of integers that is built again",
    lambda: script(
        lines("return x"),
        constants=b"\x80\x02" + _global("torch.jit._pickle", "build_intlist") + b"q\x00](" + b"K\x01" * 100_000
        + b"eq\x010" + b"h\x00h\x01\x85R0" * 20_000 + b")." ,
    ),
)  # fmt: skip
_script(
    "tuples of defaults",
    lambda: script(
        lines("return x"), extra="class T(NamedTuple):\n" + _many("  a# : int = 1\n", 4_000),
        constants=b"\x80\x02" + _global("__torch__", "T") + b"q\x00" + b"h\x00)R0" * 20_000 + b").",
    ),
)  # fmt: skip


_TWICE = b"]q\x00K\x01a0" + b"".join(b"](h" + bytes([i, 104, i]) + b"eq" + bytes([i + 1]) + b"0" for i in range(60))
_MOVED = "torch.jit.load(path, 'cpu').to('meta').to(torch.float64)"
BOMBS["script: constants that hold one twice, moved"] = lambda: (
    script(lines("return CONSTANTS.c0"), constants=b"\x80\x02" + _TWICE + b"h\x3c\x85."), _MOVED,
)  # fmt: skip
BOMBS["script: attributes that hold one twice, moved"] = lambda: (
    script(
        lines("return x"), fields="  a : List[int]\n",
        data=b"\x80\x02" + _TWICE + b"c__torch__\nM\n)\x81}(X\x08\x00\x00\x00training\x89X\x01\x00\x00\x00ah\x3cub.",
    ),
    _MOVED,
)  # fmt: skip
_script("an attribute that is set to doubled lists, saved", lambda: script(
    lines("a = [1]", "for i in range(60):", "  a = [a, a]", "self.a = a", "return x"), fields="  a : List[int]\n"
))  # fmt: skip
_file, _ = BOMBS.pop("script: an attribute that is set to doubled lists, saved")()
for _what in ("torch.jit.save(m, __import__('io').BytesIO())", "torch.jit.freeze(m.eval())"):
    BOMBS[f"script: doubled lists in an attribute: {_what[:15]}"] = lambda what=_what: (
        _file, f"[{what} for m in [torch.jit.load(path)] if m(torch.ones(1)) is not None]",
    )  # fmt: skip

# -- .pt2 ------------------------------------------------------------------------------------------

_TREE = '{"type": null, "context": null, "children_spec": []}'


def _tuple(*children: str) -> str:
    return f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{", ".join(children)}]}}'


def _value(*sizes: Any) -> dict[str, Any]:
    found = [{"as_int": n} if type(n) is int else n for n in sizes]
    return {
        "dtype": 7, "sizes": found, "strides": [{"as_int": 1}] * len(found), "requires_grad": False, "layout": 7,
        "device": {"type": "cpu", "index": None}, "storage_offset": {"as_int": 0},
    }  # fmt: skip


def node(target: str, name: str, *args: dict, kind: str = "as_tensor", **more: Any) -> dict[str, Any]:
    """A node that gives one tensor (or a number, by its kind)."""
    output = {kind: {"name": name} if kind == "as_tensor" else {"as_name": name}}
    inputs = [{"name": "", "arg": arg, "kind": 1} for arg in args]
    return {"target": target, "inputs": inputs, "outputs": [output], "metadata": {}, "name": name, **more}


X = {"as_tensor": {"name": "x"}}


def exported(nodes: list[dict] = (), last: dict | None = None, **changes: Any) -> bytes:  # type: ignore[assignment]
    """A `.pt2` file of a graph of `x`. changes: of the parts of its JSON, by name."""
    made = [n for n in nodes if "as_tensor" in n["outputs"][0]]
    end = last or ({"as_tensor": {"name": made[-1]["name"]}} if made else X)
    tree = f"[1, {_tuple(_tuple(_TREE), _tuple().replace('tuple', 'dict').replace('null', '[]'))}]"
    graph = {
        "inputs": [X], "outputs": [end], "nodes": list(nodes), "sym_bool_values": {}, "sym_int_values": {},
        "tensor_values": {"x": _value(2), **{n["name"]: _value(2) for n in made}}, "is_single_tensor_return": False,
        "custom_obj_values": {}, "sym_float_values": {}, **changes.pop("graph", {}),
    }  # fmt: skip
    call = {
        "fqn": "", "signature": {"inputs": [], "outputs": [], "in_spec": changes.pop("in_spec", tree),
                                 "out_spec": changes.pop("out_spec", f"[1, {_tuple(_TREE)}]"),
                                 "forward_arg_names": ["x"]},
    }  # fmt: skip
    data = {
        "graph_module": {
            "graph": graph,
            "signature": {
                "input_specs": [{"user_input": {"arg": X}}, *changes.pop("specs", [])],
                "output_specs": [{"user_output": {"arg": end}}],
            },
            "module_call_graph": [call, *changes.pop("calls", [])], "metadata": {}, "treespec_namedtuple_fields": {},
        },
        "opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 20},
        "verifiers": [], "torch_version": "2.13", "guards_code": [], **changes,
    }  # fmt: skip
    return _archive(
        {"models/model.json": json.dumps(data), "archive_format": "pt2", "archive_version": "0", "version": "3"}
    )


def _loaded(name: str, make: Callable[[], bytes]) -> None:
    BOMBS[f"pt2: {name}"] = lambda: (make(), "torch.export.load(path)")


def _called(name: str, make: Callable[[], bytes]) -> None:
    BOMBS[f"pt2: {name}"] = lambda: (make(), "torch.export.load(path).module()(torch.ones(2))")


def _sized(name: str, text: str, number: int = 1) -> None:
    """A size that is an expression, in tensors of the graph."""
    size = {"as_expr": {"expr_str": text, "hint": None}}
    values = {f"y{i}": _value(size) for i in range(number)}

    def make() -> bytes:
        nodes = [node("torch.ops.aten.relu.default", f"y{i}", X) for i in range(number)]
        return exported(nodes, graph={"tensor_values": {"x": _value(2), **values}})

    _loaded(f"size {name}", make)


def _nested(form: str, times: int, inner: str) -> str:
    for _ in range(times):
        inner = form.replace("#", inner)
    return inner


_S = "Symbol('s0', positive=True, integer=True)"
_SUM = f"Add({', '.join(f'{_S[:9]}{i}{_S[10:]}' for i in range(50))})"
_SUM_OF_FIVE = f"Add({', '.join(f'{_S[:9]}{i}{_S[10:]}' for i in range(5))})"
for _name, _text in {
    "of powers of numbers": _nested("Pow(#, Integer(8))", 12, "Integer(9)"),
    "of powers": _nested("Pow(#, Integer(8))", 12, _S),
    "of one power": f"Pow({_S}, Integer(1000000000))",
    "of a sum of sums": _nested("Add(#, #)", 7, _S),
    "of a product of sums": f"Mul({_SUM}, {_SUM}, {_SUM})",
    "of products of sums": f"Add({', '.join([f'Mul({_SUM}, {_SUM})'] * 2)})",
    "of a power of a sum": f"Pow({_SUM}, Integer(8))",
    "of deep maxima": _nested(f"Max(#, Add({_S}, Integer(1)))", 95, _S),
    "of deep divisions": _nested("FloorDiv(Add(#, Integer(1)), Integer(2))", 95, _S),
    "of divisions by nothing": f"FloorDiv({_S}, Integer(0))",
    "of a remainder by nothing": "PythonMod(Integer(7), Integer(0))",
    "of a remainder of powers": f"Mod({_nested('Pow(#, Integer(8))', 4, _S)}, {_nested('Pow(#, Integer(7))', 4, _S)})",
    "of a long number": f"Integer({'9' * 9_000})",
    "of long numbers": f"Mul({', '.join(['Integer(' + '9' * 4_000 + ')'] * 2)})",
    "of a rational": "Rational(1, 3)",
    "of a float": "Float('1e999999999', precision=999999999)",
    "of a factorial": "factorial(Integer(1000000000))",
    "of parentheses": "(" * 4_500 + "1" + ")" * 4_500,
    "of minus signs": "-" * 9_900 + "1",
}.items():  # fmt: skip
    _sized(_name, _text)
_sized("of a sum, 200 times", _SUM, 200)
_sized("of a power of a sum of five, 1,000 times", f"Pow({_SUM_OF_FIVE}, Integer(8))", 1_000)


def _different(name: str, text: str, number: int) -> None:
    """As many different sizes, each an expression; `#` becomes a number in it."""
    values = {
        f"y{i}": _value({"as_expr": {"expr_str": text.replace("#", str(i)), "hint": None}}) for i in range(number)
    }

    def make() -> bytes:
        nodes = [node("torch.ops.aten.relu.default", f"y{i}", X) for i in range(number)]
        return exported(nodes, graph={"tensor_values": {"x": _value(2), **values}})

    _loaded(f"sizes {name}", make)


_different("of powers of sums", f"Add(Integer(#), Pow({_SUM_OF_FIVE}, Integer(8)))", 1_000)
_different(
    "of short powers of sums", "Add(Integer(#), Pow(Add(Symbol('a'), Symbol('b'), Symbol('c')), Integer(4)))", 1_000
)
_different("of powers of two", "Add(Integer(#), Pow(Add(Symbol('a'), Symbol('b')), Integer(8)))", 1_000)
_different(
    "of products of two",
    f"Add(Integer(#), Mul({', '.join(['Add(a, b)'.replace('a', _S).replace('b', 'Integer(1)')] * 30)}))",
    200,
)
_sized("of deep maxima, 100 times", _nested(f"Max(#, {_S})", 95, _S), 100)


def _arithmetic(name: str, target: str, args: Callable[[str], tuple[dict, ...]], times: int = 60) -> None:
    """Nodes on numbers that grow, when the program runs."""

    def make() -> bytes:
        found, before = [node("torch.ops.aten.sym_size.int", "n0", X, {"as_int": 0}, kind="as_sym_int")], "n0"
        for i in range(1, times + 1):
            found.append(node(target, f"n{i}", *args(before), kind="as_sym_int"))
            before = f"n{i}"
        return exported(found, X)

    _called(name, make)


def _number(name: str) -> dict:
    return {"as_sym_int": {"as_name": name}}


def _elsewhere(name: str, run: str, make: Callable[[], bytes]) -> None:
    """A program that runs in another way than by its module."""
    BOMBS[f"pt2: {name}"] = lambda: (make(), run.replace("P", "torch.export.load(path)"))


_POLYNOMIAL = ("torch.ops.aten.special_laguerre_polynomial_l.n_scalar", X, {"as_int": 10**12})
for _name, _run in {
    "graph_module": "P.graph_module(torch.ones(2))",
    "an interpreter": "torch.fx.Interpreter(P.graph_module).run(torch.ones(2))",
    "decompositions": "P.run_decompositions()",
    "unflatten": "torch.export.unflatten(P)(torch.ones(2))",
    "onnx": "torch.onnx.export(P, (torch.ones(2),))",
}.items():
    _elsewhere(
        f"polynomials by {_name}",
        _run,
        lambda: exported([node(_POLYNOMIAL[0], "y", *_POLYNOMIAL[1:])]),  # type: ignore[arg-type]
    )
    _elsewhere(
        f"squares by {_name}", _run,
        lambda: exported([
            node("torch.ops.aten.sym_size.int", "n0", X, {"as_int": 0}, kind="as_sym_int"),
            *(node("_operator.mul", f"n{i + 1}", *[{"as_sym_int": {"as_name": f"n{i}"}}] * 2, kind="as_sym_int")
              for i in range(60)),
            node("torch.ops.aten.add.Tensor", "y", X, {"as_sym_int": {"as_name": "n60"}}),
        ]),
    )  # fmt: skip


_arithmetic("powers", "_operator.pow", lambda n: (_number(n), {"as_int": 1 << 40}))
_arithmetic("powers of powers", "_operator.pow", lambda n: (_number(n), _number(n)))
_arithmetic("shifts", "_operator.lshift", lambda n: (_number(n), {"as_int": 1 << 40}))
_arithmetic("squares", "_operator.mul", lambda n: (_number(n), _number(n)))
_arithmetic("text times number", "_operator.mul", lambda n: ({"as_string": "a"}, {"as_int": 1 << 30}), 1)
_arithmetic("list times number", "_operator.mul", lambda n: ({"as_ints": [1, 2]}, {"as_int": 1 << 40}), 1)
_arithmetic("percent width", "_operator.mod", lambda n: ({"as_string": "%1000000000d"}, {"as_int": 1}), 1)
_arithmetic("doubled text", "_operator.add", lambda n: ({"as_string": "a"}, {"as_string": "a"}), 1)
_arithmetic("round", "builtins.round", lambda n: (_number("n0"), {"as_int": -(1 << 40)}), 1)
for _name, _op, _args in (
    ("zeros", "zeros", ({"as_ints": [10**15]},)),
    ("full", "full", ({"as_ints": [10**15]}, {"as_float": 1.5})),
    ("arange", "arange", ({"as_int": 10**15},)),
    ("eye", "eye", ({"as_int": 10**8},)),
    ("repeat", "repeat", (X, {"as_ints": [10**15]})),
    ("combinations", "combinations", (X, {"as_int": 10**9})),
    ("polynomials", "special_laguerre_polynomial_l.n_scalar", (X, {"as_int": 10**12})),
    ("sections", "tensor_split.sections", (X, {"as_int": 1 << 40})),
):
    _op += ".default" if "." not in _op else ""
    _called(_name, lambda op=_op, args=_args: exported([node(f"torch.ops.aten.{op}", "y", *args)]))  # type: ignore[misc]


def _chain(number: int) -> list[dict]:
    names = ["x", *(f"y{i}" for i in range(number))]
    return [
        node("torch.ops.aten.relu.default", name, {"as_tensor": {"name": before}})
        for before, name in itertools.pairwise(names)
    ]


for _name in ("select.int", "slice.Tensor"):
    _called(
        f"a dimension of {_name}",
        lambda name=_name: exported([node(f"torch.ops.aten.{name}", "y", X, {"as_int": 1 << 27}, {"as_int": 0})]),
    )
_called("2,000 nodes", lambda: exported(_chain(2_000)))


def _graphs(number: int) -> list[dict]:
    inner = {
        "inputs": [X], "outputs": [X], "nodes": [], "tensor_values": {"x": _value(2)}, "sym_int_values": {},
        "sym_bool_values": {}, "is_single_tensor_return": False,
    }  # fmt: skip
    strict = "torch.ops.higher_order.strict_mode"
    return [
        {**node(strict, f"h{i}", {"as_graph": {"name": f"g{i}", "graph": inner}}, {"as_tensors": [{"name": "x"}]}),
         "outputs": [{"as_tensors": [{"name": f"y{i}"}]}]}
        for i in range(number)
    ]  # fmt: skip


def _within(depth: int) -> dict:
    graph: dict = {"nodes": []}
    for _ in range(depth):
        inner = {
            "inputs": [X], "outputs": [X], "tensor_values": {"x": _value(2)}, "sym_int_values": {},
            "sym_bool_values": {}, "is_single_tensor_return": False, **graph,
        }  # fmt: skip
        call = node("torch.ops.higher_order.strict_mode", "y", {"as_graph": {"name": "g", "graph": inner}})
        graph = {"nodes": [{**call, "outputs": [{"as_tensors": [{"name": "y"}]}]}]}
    return graph["nodes"][0]


def _weights(number: int, pickled: bool, spread: bool) -> bytes:
    """Weights that all lie in one record, or in records over each other."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02]q\x00(" + b"K\x01" * 200_000 + b"e.")
        archive.writestr("a/version", b"3\n")
    data = inner.getvalue() if pickled else bytes(1 << 20)
    entry = {
        "use_pickle": pickled, "is_param": True, "tensor_meta": {**_value(1 << 18), "sizes": [{"as_int": 1 << 18}]},
    }  # fmt: skip
    config = {f"w{i}": {**entry, "path_name": f"weight_{i if spread else 0}"} for i in range(number)}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("m/archive_version", "0")
        archive.writestr("m/version", "3")
        archive.writestr("m/models/model.json", "{}")
        archive.writestr("m/data/weights/model_weights_config.json", json.dumps({"config": config}))
        archive.writestr("m/data/weights/weight_0", data)
        first = archive.getinfo("m/data/weights/weight_0")
        for i in range(1, number if spread else 0):
            other = copy.copy(first)
            other.filename = f"m/data/weights/weight_{i}"
            archive.filelist.append(other)
    return file.getvalue()


_loaded("500 graphs", lambda: exported(_graphs(500), X))
_loaded("graphs within graphs", lambda: exported([_within(60)], X))
_loaded("1,000 weights in one record", lambda: _weights(1_000, False, False))
_loaded("1,000 weights in records over each other", lambda: _weights(1_000, False, True))
_loaded("1,000 pickled weights in one record", lambda: _weights(1_000, True, False))
_loaded("1,000 pickled weights in records over each other", lambda: _weights(1_000, True, True))
_loaded("60,000 records", lambda: _archive({f"a{i}": b"" for i in range(60_000)}))
_loaded("5,000 calls of modules", lambda: exported(calls=[{"fqn": f"a{i}", "signature": None} for i in range(5_000)]))
_loaded(
    "20,000 ranges", lambda: exported(range_constraints={f"s{i}": {"min_val": 2, "max_val": 9} for i in range(20_000)})
)
_loaded("20,000 guards", lambda: exported(guards_code=[f"L['x'].size()[0] > {i}" for i in range(20_000)]))
_loaded("deep JSON", lambda: exported(guards_code=[])[:0] or _archive({
    "models/model.json": "[" * 200_000 + "]" * 200_000, "archive_format": "pt2", "archive_version": "0", "version": "3",
}))  # fmt: skip
_loaded("a long number in JSON", lambda: _archive({
    "models/model.json": "9" * 400_000, "archive_format": "pt2", "archive_version": "0", "version": "3",
}))  # fmt: skip
_loaded("deflated JSON", lambda: _archive(
    {"models/model.json": "[" + "1," * 20_000_000 + "1]", "archive_format": "pt2", "archive_version": "0",
     "version": "3"}, ("models/model.json",),
))  # fmt: skip
_loaded("a deep tree", lambda: exported(in_spec=f"[1, {_nested(_tuple('#'), 5_000, _TREE)}]"))
_loaded("a wide tree", lambda: exported(out_spec=f"[1, {_tuple(*[_TREE] * 5_000)}]"))
_loaded("a tree of 2**62 dimensions", lambda: exported(graph={"tensor_values": {"x": _value(*[1 << 61] * 60)}}))
_loaded("long names", lambda: exported(calls=[{"fqn": ".".join("a" * 2_000), "signature": None}] * 100))
