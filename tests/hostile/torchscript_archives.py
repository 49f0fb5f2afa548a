"""TorchScript archives that somebody damaged or wrote to do harm: made by number, loaded, and run where they load.

`python -m tests.hostile.torchscript_archives --count 5000` prints what is wrong with how they are taken: nothing of a
file may run but
forms of the language, no load may hang or take memory that the file does not pay for, and errors are RuntimeErrors
(of the byte order, as
in checkpoints, ValueErrors).
"""

from __future__ import annotations

import argparse
import io
import pathlib
import random
import sys
import time
import tracemalloc
import warnings
import zipfile
from typing import Any

import torchlite as torch

_RECORDED = pathlib.Path(__file__).parents[1] / "jit" / "pytorch_archives.zip"
SECONDS, SPARE, TREE = 10, 48 << 20, 500  # TREE: bytes that Python's parser takes for one of a text that is all nodes
_ALLOWED = (
    RuntimeError,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    ZeroDivisionError,
    NotImplementedError,
    AttributeError,
    OverflowError,
)
_FORBIDDEN = {
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.putenv",
    "subprocess.Popen",
    "socket.connect",
    "socket.bind",
    "shutil.rmtree",
    "ctypes.dlopen",
}
_CLASS = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
_EXPRESSIONS = (
    "().__class__.__bases__",
    "x.__class__",
    "x.__reduce_ex__(2)",
    "self.__dict__",
    "self.__class__",
    "self._modules",
    "self.forward.__globals__",
    "torch.__builtins__",
    'torch.load("/etc/passwd")',
    'torch.save(x, "/tmp/harm")',
    'torch.from_file("/etc/passwd", False, 10)',
    "ops.prim.__class__",
    "ops.aten.__init__",
    'torch.ops.load_library("a")',
    'ops.os.system("true")',
    'ops._C.system("true")',
    '__import__("os")',
    'eval("1")',
    'exec("1")',
    'open("/etc/passwd")',
    'getattr(x, "__class__")',
    'getattr(self, "__init__")',
    '"{0.__class__}".format(x)',
    'torch.format("{0.__class__}", x)',
    'torch.format("{!r}", x)',
    'torch.percentFormat("%999999999d", 3)',
    "(lambda: 1)()",
    "[y for y in [1] for z in [2]]",
    "torch.mul([1], 9000000000)",
    'torch.mul("a", 9000000000)',
    'torch.zfill("a", 9000000000)',
    "9 ** 9 ** 9 ** 9",
    "torch.pow(10, 1000000000)",
    "1 << 1000000000",
    "torch.__lshift__(1, 1000000000)",
    'f"{x}"',
    "(yield 1)",
    "(await x)",
    "*x",
    "{**x}",
    "x if x else x.__class__",
    "CONSTANTS.c99",
    "CONSTANTS.__class__",
    "CONSTANTS.c0.__class__",
    "__torch__.M.__class__",
    '__torch__.os.system("true")',
    "__torch__.M.__new__(__torch__.M)",
    "globals()",
    "vars(self)",
    "__builtins__",
    "__name__",
    'torch.expandtabs("\\t", 9000000000)',
    'b"bytes"',
    "...",
    "0x" + "f" * 400,
    "1" * 5000,
    "(y := 1)",
    "x[().__class__]",
    "self.training.__class__",
    "torch.ops.aten.add(x, x)",
    'hasattr(x, "__class__")',
    "torch.hash(x)",
    "torch.list(range(9000000000))",
    "isinstance(x, ().__class__)",
    "isinstance(x, __import__)",
    'annotate(__import__("os"), x)',
    "unchecked_cast(().__class__, x)",
    'fork(__import__, "os")',
    "fork(self.__init__)",
    "torch.backends.__class__",
    "torch.nn.Module()",
    "torch._C",
    "x.numpy()",
    "x.untyped_storage()",
    "x.register_hook(x)",
    "x.data_ptr()",
    "x.storage()",
    "x.share_memory_()",
    "torch.set_num_threads(1)",
    "print.__self__",
    "str.format(x)",
    '"a".join.__self__',
    "x.__getitem__.__globals__",
    "[].append.__self__",
    'torch.jit.load("x")',
    "torch.tensor.__module__",
)
_STATEMENTS = (
    "import os",
    "from os import system",
    "global x",
    "nonlocal x",
    "class A: pass",
    "try:\n  pass\nexcept E:\n  pass",
    "def g(a=().__class__):\n  return a",
    "async def g():\n  pass",
    "del x.__class__",
    "x.__class__ = x",
    "self.__class__ = x",
    "__builtins__ = x",
    "__class__ = x",
    "raise SystemExit",
    'raise __import__("os")',
    'with open("/etc/passwd") as f:\n  pass',
    "with x:\n  pass",
    "for x.__class__ in [1]:\n  pass",
    "for i in self:\n  pass",
    "for i in range(3):\n  pass\nelse:\n  pass",
    "return ().__class__",
    "@print\ndef g():\n  pass",
    "def g(*a):\n  return a",
    "x: ().__class__ = 1",
    "self.training.x = 1",
    "x[().__class__] = 1",
    "assert False, ().__class__",
    "match x:\n  case _:\n    pass",
    "self.forward = 1",
    "*a, b = x",
)
_seen: list[str] = []
_watching = False


def _watch(event: str, arguments: tuple) -> None:
    if _watching and (event in _FORBIDDEN or event == "open" and set(str(arguments[1])) & set("wax+")):
        _seen.append(event)


def archive(records: dict[str, bytes], deflated: bool = False) -> bytes:
    """An archive of records."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for name, data in records.items():
            kind = zipfile.ZIP_DEFLATED if deflated and name.endswith(".py") else zipfile.ZIP_STORED
            file.writestr(zipfile.ZipInfo(f"archive/{name}"), data, kind)
    return out.getvalue()


def program(text: str, pickled: bytes | None = None, constants: bytes = b"\x80\2).", version: int = 3) -> bytes:
    """An archive of one class `__torch__.M`, whose text is given."""
    data = pickled or b"\x80\2c__torch__\nM\n)\x81}(X\x08\0\0\0training\x89ub."
    return archive(
        {
            "data.pkl": data,
            "code/__torch__.py": text.encode("utf-8", "surrogatepass"),
            "constants.pkl": constants,
            "version": b"%d\n" % version,
        },
        True,
    )


# What a pickle may name, and make of names, that is no value of TorchScript; and where it may put values.
GLOBALS = (
    b"ccollections\nOrderedDict\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b"c__builtin__\nset\n", b"ctorch\nTensor\n",
    b"ctorch\nFloatStorage\n", b"ctorch\nfloat32\n", b"ctorch.jit._pickle\nbuild_intlist\n", b"c__torch__\nM\n",
    b"c__torch__\nNT\n", b"c__torch__\nE\n", b"c__torch__\nC\n", b"c__builtin__\nset\n)R", b"ccollections\nCounter\n)R",
    b"ctorch\nSize\n((K\1ttR", b"C\1a",
)  # fmt: skip
PLACES = {
    "alone": b"%b", "in a list": b"](K\1%be", "in a dict": b"}X\1\0\0\0k%bs", "in a tuple": b"(K\1(%btt",
    "in a named tuple": b"c__torch__\nNT\n(%bt\x81", "in an object": b"c__torch__\nC\n)\x81}X\1\0\0\0v%bsb",
    "put there later": b"(]q\7(h\7h\7th\7%ba0t", "recalled": b"(%bq\7]q\x08(h\7eh\x08t",
    "the state of an object": b"c__torch__\nS\n)\x81%bb",
}  # fmt: skip
CLASSES = (
    "class NT(NamedTuple):\n  float : Any\nclass E(Enum):\n  A = 1\nclass C:\n  v : Any\n"
    "class S:\n  v : Any\n  def __setstate__(self: __torch__.S, v: Any) -> NoneType:\n    self.v = v\n    return None\n"
    f"{_CLASS}  a : Any\n  def forward(self: __torch__.M, x: Tensor) -> Any:\n    return %s\n"
)


def holding(value: bytes, form: str = "self.a", constants: bytes = b"\x80\2).") -> bytes:
    """A program whose module has an attribute of this pickle."""
    data = b"\x80\2c__torch__\nM\n)\x81}(X\x08\0\0\0training\x89X\1\0\0\0a" + value + b"ub."
    return program(CLASSES % form, data, constants)


def _naming(rng: random.Random) -> bytes:
    """A program that has what its pickles name among its values, and hands it out, calls it or looks at it."""
    value = rng.choice(list(PLACES.values())) % rng.choice(GLOBALS)
    form = rng.choice(
        ("self.a", "[self.a]", "(self.a).float()", "self.a(x)", "(self.a)[0]", "fork(self.a, x)", "CONSTANTS.c0")
    )
    if rng.random() < 0.3:
        return holding(b"N", form, b"\x80\2" + value + b"\x85.")
    return holding(value, form)


def _written(rng: random.Random) -> bytes:
    """A class whose method has a form that the language does not have, somewhere."""
    if rng.random() < 0.3:
        body = rng.choice(_STATEMENTS).replace("\n", "\n    ")
        return program(f"{_CLASS}  def forward(self, x: Tensor) -> Tensor:\n    {body}\n    return x\n")
    harm = rng.choice(_EXPRESSIONS)
    places = (
        "y = {0}\n    return x",
        "return torch.add(x, {0})",
        "if {0}:\n      pass\n    return x",
        "self.training = {0}\n    return x",
        "for i in {0}:\n      pass\n    return x",
        "y = [{0}]\n    return y[0]",
        'y = torch.format("{{}}", {0})\n    return y',
        "while {0}:\n      return x\n    return x",
        "y, z = ({0}, x)\n    return y",
        "return ({0}).forward(x)",
        "x[{0}] = 1\n    return x",
        "with {0}:\n      pass\n    return x",
        "y = annotate(List[int], {0})\n    return y",
        "def g():\n      return {0}\n    return fork(g)",
    )
    body = rng.choice(places).format(harm)
    if rng.random() < 0.2:
        return program(
            f"{_CLASS}  a : {harm}\n  def forward(self, x: Tensor, y: int={harm}) -> Tensor:\n    return x\n"
        )
    return program(f"{_CLASS}  def forward(self, x: Tensor) -> Tensor:\n    {body}\n")


def _deep(rng: random.Random) -> bytes:
    """Texts that are deep, long, or ask for more than they hold."""
    n = rng.choice((200, 3000, 100_000))
    texts = (
        "(" * n + "x" + ")" * n,
        "-" * n + "x",
        "[" * n + "]" * n,
        "x" + ".a" * n,
        "x" + "[0]" * n,
        "not " * n + "x",
        " + ".join(["x"] * n),
        "torch.neg(" * n + "x" + ")" * n,
        "x if x else " * n + "x",
        " and ".join(["x"] * n),
    )
    if rng.random() < 0.2:
        lines = "".join("  " * (i + 2) + "if x:\n" for i in range(min(n, 300)))
        return program(
            f"{_CLASS}  def forward(self, x: Tensor) -> Tensor:\n{lines}" + "  " * (min(n, 300) + 2) + "return x\n"
        )
    if rng.random() < 0.2:
        return program(
            _CLASS + "".join(f"  a{i} : int\n" for i in range(min(n, 20_000))) + "#" * (1 << rng.randrange(10, 24))
        )
    kind = rng.choice(("Tensor", "List[" * n + "int" + "]" * n, "Optional[" * 50 + "int" + "]" * 50))
    return program(f"{_CLASS}  def forward(self, x: {kind}) -> Tensor:\n    return {rng.choice(texts)}\n")


def _pickled(rng: random.Random) -> bytes:
    """Pickles that name, call or build what no program's does."""
    text = (
        f"{_CLASS}  def forward(self, x: Tensor) -> Tensor:\n    return x\nclass E(Enum):\n  A = 1\nclass "
        "P(NamedTuple):\n  a : int\nclass I(ModuleInterface):\n  pass\n"
    )
    m, training = b"c__torch__\nM\n)\x81", b"X\x08\0\0\0training"
    pieces = (
        b"cos\nsystem\n(X\x04\0\0\0truetR.",
        b"cbuiltins\neval\n(X\1\0\0\x001tR.",
        m + b"}(X\x09\0\0\0__class__Nub.",
        b"c__torch__\nM\n(K\1t\x81.",
        b"c__torch__\nE\n(K\2tR.",
        b"c__torch__\nE\nK\1R.",
        b"c__torch__\nP\n(K\1K\2t\x81.",
        b"c__torch__\nI\n)\x81.",
        b"c__torch__\nNo\n)\x81.",
        b"c__torch__.torch.nn\nModule\n)\x81.",
        b"c__torch__\nforward\n)R.",
        m + b"q\0}(" + training + b"h\0ub.",
        m + b"}(" + training + m + b"ub.",
        b"ctorch.jit._pickle\nbuild_intlist\n(](X\1\0\0\0aetR.",
        b"ctorch.jit._pickle\nrestore_type_tag\n(K\1K\1tR.",
        b"ctorch.jit._pickle\nunknown\n)R.",
        m + b"Nb.",
        m + b"(K\1K\2tb.",
        b"K\1.",
        b"ctorch.nn\nModule\n)\x81.",
        b"ctorchlite.jit\nload\n(X\1\0\0\0atR.",
        m + b"q\0}(X\1\0\0\0ah\0ub.",
        b"]" * 5000 + b".",
        b"(" * 100 + b"t.",
    )
    return program(text, b"\x80\2" + rng.choice(pieces), rng.choice((b"\x80\2).", b"\x80\2" + rng.choice(pieces))))


def _damaged(rng: random.Random, whole: list[bytes]) -> bytes:
    """A file of PyTorch's with other bytes in it, cut, or with another text."""
    data = bytearray(rng.choice(whole))
    how = rng.random()
    if how < 0.3:
        for _ in range(rng.choice((1, 2, 8, 40))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)
    if how < 0.4:
        return bytes(data[: rng.randrange(len(data))])
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as file:
        records = {i.filename.partition("/")[2]: file.read(i) for i in file.infolist()}
    name = rng.choice([n for n in records if n.endswith((".py", ".pkl", "version", "byteorder"))])
    part = bytearray(records[name])
    if how < 0.5 or not part:
        del records[name]
    elif how < 0.75 or not name.endswith(".py"):
        for _ in range(rng.choice((1, 1, 3))):
            part[rng.randrange(len(part))] = rng.randrange(256)
        records[name] = bytes(part)
    else:
        lines = part.decode().split("\n")
        for _ in range(rng.choice((1, 2))):
            at = rng.randrange(len(lines))
            indent = len(lines[at]) - len(lines[at].lstrip())
            lines[at] = rng.choice(
                (
                    "",
                    lines[rng.randrange(len(lines))],
                    " " * indent + "y = " + rng.choice(_EXPRESSIONS),
                    " " * indent + rng.choice(_STATEMENTS).split("\n")[0],
                )
            )
        records[name] = "\n".join(lines).encode()
    return archive(records, True)


def whole_files() -> list[bytes]:
    """Files of PyTorch's that damaged ones are made of."""
    with zipfile.ZipFile(_RECORDED) as recorded:
        return [
            recorded.read(n)
            for n in recorded.namelist()
            if n.endswith(".pt") and recorded.getinfo(n).file_size < 30_000
        ]


def file(number: int, whole: list[bytes]) -> bytes:
    """The file of a number."""
    rng = random.Random(number)
    kinds = (_written, _deep, _pickled, _naming)
    return kinds[number % 8](rng) if number % 8 < 4 else _damaged(rng, whole)


def wrong(data: bytes) -> str:
    """What is wrong with how a file is loaded, and run where it loads; "" where nothing is."""
    global _watching
    _seen.clear()
    tracemalloc.reset_peak()
    before, begin, problem = tracemalloc.get_traced_memory()[0], time.process_time(), ""
    _watching = True
    module: Any = None
    try:
        module = torch.jit.load(io.BytesIO(data))
    except (RuntimeError, ValueError) as error:
        problem = "a long error" if len(str(error)) > 5000 else ""
        if type(error) is ValueError and "record" not in str(error):
            problem = f"no record is named: {error}"
    except BaseException as error:
        problem = f"load: {type(error).__name__}: {str(error)[:200]}"
    peak = tracemalloc.get_traced_memory()[1] - before
    if module is not None:
        try:
            with torch.no_grad():
                if _is_of_python(module(torch.ones(2, 3))):
                    problem = "a class or function of Python came out"
        except _ALLOWED:
            problem = ""
        except BaseException as error:
            problem = f"run: {type(error).__name__}: {str(error)[:200]}"
    _watching = False
    seconds = time.process_time() - begin
    if _seen:
        return f"it did {_seen}"
    if seconds > SECONDS:
        return f"it took {seconds:.1f} seconds"
    if not problem and peak > SPARE + 40 * len(data) + TREE * _text_length(data):
        problem = f"it took {peak >> 10} kB of memory, the file has {len(data) >> 10} kB"
    return problem


def _is_of_python(value: Any) -> bool:
    """Whether a result is, or holds, something that can be called, modules aside."""
    if isinstance(value, (list, tuple, set)):
        return any(map(_is_of_python, value))
    return callable(value) and not isinstance(value, torch.nn.Module)


def _text_length(data: bytes) -> int:
    """How long the texts of a file are, as far as a load reads them."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as found:
            return sum(min(i.file_size, 1 << 20) for i in found.infolist() if i.filename.endswith(".py"))
    except Exception:
        return 0


def check(numbers: range) -> list[str]:
    """What is wrong with the files of these numbers."""
    whole = whole_files()
    found = []
    torch.jit.load(io.BytesIO(whole[0]))
    torch.nn.LSTM(2, 2)(torch.ones(3, 2) @ torch.ones(2, 2))  # libraries that torchlite loads when it first needs them
    torch.nn.Conv2d(1, 1, 2)(torch.ones(1, 1, 3, 3))
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in numbers:
                problem = wrong(file(number, whole))
                if problem:
                    found.append(f"{number}: {problem}")
    finally:
        tracemalloc.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.torchscript_archives", description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    sys.addaudithook(_watch)
    found = check(range(arguments.first, arguments.first + arguments.count))
    print(f"{arguments.count} files: {len(found)} wrong", *found[:60], sep="\n    ")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
