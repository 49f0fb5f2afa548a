"""Write what editors and type checkers read: torchlite/__init__.pyi, torchlite/_tensor/_methods.pyi and the generated
files of torchlite/_stubs.

They come from the op records and tools/stub_types.py. What no record makes (Tensor itself, devices, modes …) is written
by hand in torchlite/_stubs/{aliases,basic,tensor,functions}.pyi; its docstrings are those of the code, and are written
here too. Run it after adding or changing an op or a docstring:

    python tools/make_stubs.py

tests/stubs/test_stubs.py fails when they are stale. The text is laid out as `ruff format` would.
"""

from __future__ import annotations

import ast
import importlib
import keyword
import math
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import stub_docs  # noqa: E402
import stub_types as types  # noqa: E402

import torchlite  # noqa: E402
from torchlite._dispatch import INPLACE, NAMESPACES  # noqa: E402
from torchlite._dispatch.op_record import EMPTY, Op, Param  # noqa: E402
from torchlite._types import dtypes  # noqa: E402

TYPES = ROOT / "torchlite" / "_stubs"
FOR_TENSOR = ROOT / "torchlite" / "_tensor" / "_methods.pyi"  # where the class Tensor has its bases from
HEADER = "# Made by tools/make_stubs.py from the op records: do not edit.\n"
# So that torchlite's own modules may hand their Tensor to functions that take the public one.
BASE_OF_TENSOR = """from typing import Any

from torchlite import Tensor

class TensorMethods(Tensor):
    dtype: Any
"""
WIDTH = 120
# The stubs that are written by hand and whose names are torchlite's.
BY_HAND = ("basic", "functions", "tensor")
# Stubs by hand whose docstrings are copied from the code, and the modules that have their names.
DOCUMENTED = {
    "_stubs/basic.pyi": ("",),
    "_stubs/functions.pyi": ("",),
    "_stubs/tensor.pyi": ("",),
    "_stubs/accelerator.pyi": ("cuda",),
    "autograd/__init__.pyi": ("autograd",),
    "cuda/__init__.pyi": ("cuda",),
    "random.pyi": ("random",),
}


# -- layout ---------------------------------------------------------------------------


def split(text: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [*parts, part.strip()] if part.strip() else parts


def define(name: str, parameters: str, result: str, indent: str = "", doc: str = "") -> str:
    """A function's line, or its lines where it does not fit one: parameters on one line, or one a line. A docstring
    follows, and a blank line after it outside classes.
    """
    lines = stub_docs.docstring(doc, f"{indent}    ")
    after = f"\n{lines}" + ("" if indent else "\n") if lines else " ...\n"
    line = f"{indent}def {name}({parameters}) -> {result}:"
    if len(line + after.partition("\n")[0]) <= WIDTH:
        return line + after
    inside = f"{indent}    {parameters}"
    if len(inside) > WIDTH:
        parts = split(parameters)
        inside = "\n".join(f"{indent}    {part}," for part in parts)
    return f"{indent}def {name}(\n{inside}\n{indent}) -> {result}:{after}"


def overloads(name: str, signatures: Sequence[tuple[str, str]], indent: str = "", doc: str = "") -> str:
    """The first has the docstring: editors show it for each."""
    mark = f"{indent}@overload\n" if len(signatures) > 1 else ""
    return "".join(
        mark + define(name, parameters, result, indent, "" if i else doc)
        for i, (parameters, result) in enumerate(signatures)
    )


def imports(text: str) -> str:
    """The imports that a generated stub needs."""

    def used(names: str) -> str:
        return ", ".join(n for n in names.split() if re.search(rf"(?<![\w.]){n}\b", text))

    lines = ["import builtins as _b\n"] if "_b." in text else []
    for module, names in (("collections.abc", "Callable Sequence"), ("typing", "Any Literal NamedTuple Self overload")):
        lines += [f"from {module} import {used(names)}\n"] if used(names) else []
    lines += ["\n"] if lines else []
    lines += ["from . import results\n"] if "results." in text else []
    for module, names in (
        ("aliases", "DeviceLike DType Ints Layout MemoryFormat Number Operand OutputSize TensorLike"),
        ("basic", "Generator TypedStorage UntypedStorage"),
        ("tensor", "Tensor"),
    ):
        lines += [f"from .{module} import {used(names)}\n"] if used(names) else []
    return "".join(lines)


def stub(body: str, doc: str) -> str:
    return f'{HEADER}"""{doc}"""\n\n{imports(body)}\n{body.rstrip()}\n'


# -- parameters and results -----------------------------------------------------------


def or_none(kind: str, param: Param) -> str:
    optional = param.default is None and not kind.endswith("None") and kind not in ("Any", "DeviceLike")
    return f"{kind} | None" if optional else kind


def annotation(name: str, param: Param) -> str:
    if (name, param.name) in types.OF_OP:
        return types.OF_OP[name, param.name]
    if param.kind in types.TENSORS:
        return or_none(types.TENSORS[param.kind], param)
    if param.name == "output_size" and name.startswith("adaptive_"):
        return "OutputSize"
    default = param.default
    if param.name == "reduce":  # losses have PyTorch's old flag of this name
        return or_none("_b.str" if default is EMPTY or name.startswith("scatter") else "_b.bool", param)
    if type(default) is bool:
        return "_b.bool"
    if type(default) is str and param.name not in ("ord", "p"):
        return "_b.str"
    if param.name == "dim" and name in types.SEVERAL_DIMS:
        return or_none("Ints", param)
    if param.name in types.PLAIN:
        return or_none(types.PLAIN[param.name], param)
    return "Number" if type(default) in (int, float) else "Any"


def default(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "..."
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value) if value is None or isinstance(value, (bool, int, float)) else "..."


def parameter(name: str, param: Param) -> str:
    text = f"{param.name}: {annotation(name, param)}"
    return text if param.default is EMPTY else f"{text} = {default(param.default)}"


def parameters(record: Op, name: str, method: bool, out: bool) -> str:
    params = record.params[1:] if method else record.params
    if any(keyword.iskeyword(p.name) for p in params):
        return ", ".join((["self"] if method else []) + ["*args: Any", "**kwargs: Any"])
    parts, star, had_default = [], False, False
    for param in params:
        if param.kind == "varargs":
            parts.append(f"*{param.name}: {types.VARARGS.get(param.name, 'Any')}")
            star = True
            continue
        if (param.kwonly or (had_default and param.default is EMPTY)) and not star:
            parts.append("*")
            star = True
        had_default = had_default or param.default is not EMPTY
        parts.append(parameter(name, param))
    if out and record.has_out and result(record, name) != "_b.bool":
        several = result(record, name) != "Tensor"
        parts += [] if star else ["*"]
        parts.append(f"out: {'Sequence[Tensor]' if several else 'Tensor'} | None = None")
    return ", ".join((["self"] if method else []) + parts)


def result(record: Op, name: str, space: str = "torch") -> str:
    if (space, name) in types.RESULTS_OF:
        return f"results.{types.RESULTS_OF[space, name]}"
    if record.outputs:
        return f"results.{record.name.strip('_')}"
    for known in (record.name, name):
        if known in types.RESULTS:
            return types.RESULTS[known]
    return types.ANY_NUMBER if record.multi_output else "Tensor"


def signatures(record: Op, name: str, method: bool, space: str = "torch") -> list[tuple[str, str]]:
    """[(parameters, result)] of a function or method: several where the result depends on the arguments."""
    special = (types.METHOD_OVERLOADS if method else types.FUNCTION_OVERLOADS).get(name)
    if space in ("torch", "Tensor") and special:
        return [
            (("self, " if method else "") + text.replace("{options}", types.OPTIONS), kind) for text, kind in special
        ]
    if space in ("torch", "Tensor") and name in types.OVERLOADS:
        first = "self" if method else "input: Tensor"
        return [(", ".join(filter(None, (first, text))), kind) for text, kind in types.OVERLOADS[name]]
    text, kind = parameters(record, name, method, out=not method), result(record, name, space)
    if space == "torch" and text.startswith("*size: Ints"):
        return [(text, kind), (text.replace("*size: Ints", "*, size: Sequence[_b.int]", 1), kind)]
    if "return_indices: _b.bool = False" in text:
        where = text.index("return_indices")
        star = "" if "*, " in text[:where] else "*, "
        asked = text[:where] + star + text[where:].replace("*, ", "").replace("_b.bool = False", "Literal[True]", 1)
        plain = text.replace("return_indices: _b.bool = False", "return_indices: Literal[False] = False")
        either = text.replace("return_indices: _b.bool = False", "return_indices: _b.bool", 1)
        if re.search(r" = [^,]*, (?=.*return_indices)", text) and star:
            either = asked.replace("Literal[True]", "_b.bool")
        return [(plain, "Tensor"), (asked, types.PAIR), (either, f"Tensor | {types.PAIR}")]
    return [(text, kind)]


# -- files ----------------------------------------------------------------------------


def family(record: Op) -> str:
    return Path(record.file).stem


def functions(space: str, names: Iterable[str]) -> str:
    found = NAMESPACES[space]
    return "".join(
        overloads(name, signatures(found[name], name, False, space), doc=found[name].doc)
        for name in names
        if not keyword.iskeyword(name)
    )


def in_place_functions(names: Iterable[str]) -> str:
    found = NAMESPACES["torch"]
    writing = {*torchlite._IN_PLACE, *torchlite._HOMES["nn._functional_activation"]}
    return "".join(
        define(f"{name}_", parameters(found[name], f"{name}_", False, False), "Tensor", doc=in_place_doc(name))
        for name in names
        if f"{name}_" in writing and not name.startswith("_")
    )


def in_place_doc(name: str) -> str:
    return f"In-place version of `{name}`: writes the result into the tensor and returns it."


def methods(names: Sequence[str], taken: set[str]) -> str:
    found = NAMESPACES["Tensor"]
    lines = []
    for name in names:
        if name not in taken and not keyword.iskeyword(name):
            made = signatures(found[name], name, True, "Tensor")
            if name.endswith("_"):
                made = [(text, "Self") for text, _ in made]
            lines.append(overloads(name, made, "    ", found[name].doc))
    lines += [
        define(f"{name}_", parameters(found[name], f"{name}_", True, False), "Self", "    ", in_place_doc(name))
        for name in names
        if found[name].tags & INPLACE and f"{name}_" not in taken and f"{name}_" not in found
    ]
    return "".join(lines)


def room(name: str) -> str:
    """One stub: the functions of some op families, and a class of their methods."""
    mine = set(types.ROOMS[name])
    by_hand = hand_written()
    names = sorted(n for n, record in NAMESPACES["torch"].items() if family(record) in mine and n not in by_hand)
    of_tensor = sorted(n for n, record in NAMESPACES["Tensor"].items() if family(record) in mine)
    body = methods(of_tensor, written_methods())
    if body:
        body = f"class {name.title()}Methods:\n{body}\n"
    what = "Functions and methods" if body else "Functions"
    return stub(body + functions("torch", names) + in_place_functions(names), f"{what} of ops: {name}.")


def namespace(space: str, leave_out: Iterable[str] = ()) -> str:
    names = sorted(set(NAMESPACES[space]) - set(leave_out))
    return stub(functions(space, names), f"The functions of torchlite.{space}.")


def functional(pooling: bool) -> str:
    """The functions of nn.functional that nn/functional.py does not have by hand: those of pooling, or the others."""
    from torchlite.nn import functional as module

    own = {
        n for n, f in vars(module).items() if getattr(f, "__module__", "") == module.__name__ and not hasattr(f, "op")
    }
    lines = sorted(name for name in set(NAMESPACES["nn.functional"]) - own if ("pool" in name) is pooling)
    more = sorted(
        n for n in module._TORCH_FUNCTIONS - own - set(NAMESPACES["nn.functional"]) if ("pool" in n) is pooling
    )
    body = functions("nn.functional", lines) + functions("torch", more)
    if not pooling:
        body += "".join(define(f"{n}_", p, "Tensor", doc=in_place_doc(n)) for n, p in in_place_activations())
    return stub(body, "The functions of torchlite.nn.functional that come from op records.")


def in_place_activations() -> list[tuple[str, str]]:
    from torchlite._dispatch import REGISTRY

    names = [name.removesuffix("_") for name in sorted(torchlite.nn.functional._IN_PLACE)]
    return [(name, parameters(REGISTRY[name], f"{name}_", False, False)) for name in names]


def result_types() -> str:
    records = {record.name: record for names in NAMESPACES.values() for record in names.values() if record.outputs}
    classes = []
    for name, record in sorted((record.name.strip("_"), record) for record in records.values()):
        fields = "".join(f"    {f}: {types.FIELDS.get((name, f), 'Tensor')}\n" for f in record.outputs)
        classes.append(f"class {name}(NamedTuple):\n{fields}")
    return stub("\n".join(classes), "Named results, as in torch.return_types.")


def definitions(path: Path) -> set[str]:
    """The names that a stub or module defines or assigns at its top."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def hand_written() -> set[str]:
    return set().union(*(definitions(TYPES / f"{name}.pyi") for name in BY_HAND))


def written_methods() -> set[str]:
    """What the class Tensor has by hand in _stubs/tensor.pyi."""
    tree = ast.parse((TYPES / "tensor.pyi").read_text())
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    return {node.name for node in body if isinstance(node, ast.FunctionDef)} | {
        node.target.id for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def module_stub() -> str:
    lines = [
        HEADER,
        '"""PyTorch\'s API over array runtimes that already exist."""\n\n',
        *(f"from math import {name} as {name}\n" for name in ("e", "inf", "nan", "pi")),
        "\n",
        *(f"from . import {name} as {name}\n" for name in sorted(torchlite._MODULES)),
        "from ._compile import _disable_dynamo as _disable_dynamo\n",
        "from ._dynamo.eval_frame import compile as compile\n",
        "from ._serialization.pytorch_file import PyTorchFileReader as PyTorchFileReader\n",
        "from ._serialization.pytorch_file import PyTorchFileWriter as PyTorchFileWriter\n",
        *sorted(
            ["from ._stubs.basic import dtype as dtype\n"]
            + [f"from ._stubs.{name} import *\n" for name in [*BY_HAND, *types.ROOMS]]
            + [imported(room, name) for room, name in private_functions()],
            key=lambda text: text.replace("(\n    ", ""),
        ),
        "from .amp import GradScaler as GradScaler\n",
        "from .futures import Future as Future\n",
        "from .jit import CompilationUnit as CompilationUnit\n",
        "from .jit import ScriptFunction as ScriptFunction\n",
        "from .jit import ScriptModule as ScriptModule\n",
        "from .jit._runtime import ScriptObject as ScriptObject\n",
        *(f"from .jit._types import {name} as {name}\n" for name in sorted(torchlite._HOMES["jit._types"])),
        "\n__version__: str\n__torchlite_version__: str\nnewaxis: None\n",
        *(
            f"{name}: dtype\n"
            for d in (*dtypes.BY_NAME.values(), *dtypes.NAME_ONLY.values())
            for name in (d.name, *dtypes.ALIASES.get(d.name, ()))
        ),
    ]
    return "".join(lines)


def imported(room: str, name: str) -> str:
    line = f"from ._stubs.{room} import {name} as {name}\n"
    return line if len(line) <= 121 else f"from ._stubs.{room} import (\n    {name} as {name},\n)\n"


def private_functions() -> list[tuple[str, str]]:
    """(room, name) of functions that torchlite's own modules call; a star does not give them out."""
    rooms = {family: room for room, families in types.ROOMS.items() for family in families}
    return [(rooms[family(r)], name) for name, r in NAMESPACES["torch"].items() if name.startswith("_")]


def methods_stub() -> str:
    from torchlite._tensor.operators import _COMPARISONS, _OPERATORS

    lines = [f"    def __{op}__(self, other: Operand) -> Tensor: ...\n" for op in _OPERATORS]
    lines += [f"    def __r{op}__(self, other: Operand) -> Tensor: ...\n" for op in _OPERATORS]
    lines += [f"    def __i{op}__(self, other: Operand) -> Self: ...\n" for op in _OPERATORS if op != "matmul"]
    note = "  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]"
    for name in _COMPARISONS:
        other, ignore = ("object", note) if name in ("eq", "ne") else ("Operand", "")
        lines.append(f"    def __{name}__(self, other: {other}) -> Tensor: ...{ignore}\n")
    lines += [f"    def __{name}__(self) -> Tensor: ...\n" for name in ("neg", "abs", "invert", "pos")]
    taken = written_methods()
    casts = [
        name
        for d in dtypes.BY_NAME.values()
        for name in (*dtypes.ALIASES.get(d.name, ()), *((d.name,) if d.name in ("bool", "bfloat16") else ()))
    ]
    lines += [
        define(name, "self, memory_format: MemoryFormat = ...", "Tensor", "    ", cast_doc(name))
        for name in casts
        if name not in taken
    ]
    rooms = sorted(
        {room for room, mine in types.ROOMS.items() for r in NAMESPACES["Tensor"].values() if family(r) in mine}
    )
    from_rooms = "".join(f"from .{name} import {name.title()}Methods\n" for name in rooms)
    bases = ", ".join(f"{name.title()}Methods" for name in rooms)
    body = f"class TensorMethods({bases}):\n{''.join(lines)}"
    head = imports(body)
    names = [line for line in (head + from_rooms).splitlines() if line.startswith("from .")]
    names.sort(key=lambda line: line.split()[1])
    head = "".join(line + "\n" for line in head.splitlines() if not line.startswith("from ."))
    return (
        f'{HEADER}"""What Tensor has from op records, and its operators."""\n\n{head}'
        + "\n".join(names)
        + f"\n\n{body}"
    )


def cast_doc(name: str) -> str:
    return f"The tensor as `torch.{getattr(torchlite, name).name}`; itself if it is already."


def documented(name: str) -> str:
    """The stub by hand with the docstrings of the code."""
    owners = [importlib.import_module(f"torchlite.{owner}") if owner else torchlite for owner in DOCUMENTED[name]]
    return stub_docs.document((ROOT / "torchlite" / name).read_text(), owners)


def stubs() -> dict[Path, str]:
    """{path: text} of all generated stubs."""
    return {
        ROOT / "torchlite" / "__init__.pyi": module_stub(),
        FOR_TENSOR: f"{HEADER}{BASE_OF_TENSOR}",
        TYPES / "methods.pyi": methods_stub(),
        TYPES / "results.pyi": result_types(),
        **{TYPES / f"{name}.pyi": room(name) for name in types.ROOMS},
        **{TYPES / f"{space}.pyi": namespace(space) for space in ("fft", "linalg", "special")},
        **{ROOT / "torchlite" / name: documented(name) for name in DOCUMENTED},
        TYPES / "functional.pyi": functional(pooling=False),
        TYPES / "functional_pooling.pyi": functional(pooling=True),
    }


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
        print(f"{path.relative_to(ROOT)}: {len(text.splitlines())} lines")
