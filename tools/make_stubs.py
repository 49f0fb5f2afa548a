"""Write what editors and type checkers read: torchlite/__init__.pyi (the public functions) and
torchlite/_tensor_methods.pyi (the methods of Tensor).

Both come from the op records, and from what torchlite/__init__.py and torchlite/_tensor define by hand. Run it after
adding or changing an op:

    python tools/make_stubs.py

tests/test_stubs.py fails when they are stale.
"""

from __future__ import annotations

import ast
import importlib.util
import keyword
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torchlite  # noqa: E402
from torchlite._dispatch import INPLACE, NAMESPACES  # noqa: E402
from torchlite._dispatch.record import EMPTY, Op, Param  # noqa: E402
from torchlite._types import dtypes as _dtype  # noqa: E402

HEADER = "# Made by tools/make_stubs.py from the op records: do not edit.\n"
# Composites whose result is not one tensor. What depends on the arguments is Any.
ANY = set(
    "aminmax histogram histogramdd lstsq lu lu_unpack max median min mode norm qr slogdet svd svd_lowrank "
    "pca_lowrank std_mean var_mean triangular_solve unique unique_consecutive where gru gru_cell lstm lstm_cell "
    "rnn_tanh rnn_relu adaptive_max_pool1d max_pool1d_with_indices native_batch_norm native_dropout "
    "native_group_norm native_layer_norm einsum result_type meshgrid nonzero gradient nanmedian kthvalue cummax "
    "cummin topk sort frexp".split()
)
TUPLES = set(
    "broadcast_tensors chunk dsplit hsplit vsplit split split_with_sizes tensor_split unbind unbind_copy "
    "unsafe_chunk unsafe_split split_with_sizes_copy atleast_1d atleast_2d atleast_3d".split()
)
BOOLS = {"allclose", "equal", "is_same_size"}
# What a plain parameter of this name takes.
PLAIN = {
    "keepdim": "_b.bool", "dtype": "_DType | None", "device": "_Device", "requires_grad": "_b.bool",
    "generator": "Generator | None", "pin_memory": "_b.bool", "layout": "_Layout | None",
    "memory_format": "_MemoryFormat | None", "descending": "_b.bool", "stable": "_b.bool", "largest": "_b.bool",
    "k": "_b.int", "equal_nan": "_b.bool", "rtol": "_b.float", "atol": "_b.float", "dim0": "_b.int", "dim1": "_b.int",
    "diagonal": "_b.int",
}  # fmt: skip
KINDS = {"tensor": "Tensor", "optional": "Tensor | None", "number": "Tensor | Number", "list": "Sequence[Tensor]"}


def annotation(param: Param) -> str:
    if param.kind in KINDS:
        return KINDS[param.kind] + (
            " | None" if param.default is None and param.kind in ("tensor", "number", "list") else ""
        )
    if param.name in PLAIN:
        return PLAIN[param.name]
    default = param.default
    for kind in (bool, int, float, str):
        if type(default) is kind and kind not in (int, float):
            return f"_b.{kind.__name__}"
    return "Any"


def parameter(param: Param) -> str:
    text = f"{param.name}: {annotation(param)}"
    return text if param.default is EMPTY else f"{text} = ..."


def parameters(record: Op, method: bool, out: bool) -> str:
    parts: list[str] = []
    params = record.params[1:] if method else record.params
    if any(keyword.iskeyword(p.name) for p in params):
        return "*args: Any, **kwargs: Any"
    star = False
    had_default = False
    for param in params:
        if param.kind == "varargs":
            parts.append(f"*{param.name}: Any")
            star = True
            continue
        if (param.kwonly or (had_default and param.default is EMPTY)) and not star:
            parts.append("*")
            star = True
        had_default = had_default or param.default is not EMPTY
        parts.append(parameter(param))
    if out and record.has_out:
        parts += [] if star else ["*"]
        parts.append("out: Any = ...")
    return ", ".join((["self"] if method else []) + parts)


def result(record: Op, name: str) -> str:
    if name in BOOLS:
        return "_b.bool"
    if name in TUPLES or record.several:
        return "tuple[Tensor, ...]"
    if record.outputs and not record.is_implicit:
        return f"_{record.name.strip('_')}_result"
    return "Any" if name in ANY or record.outputs else "Tensor"


def result_types(records) -> str:
    lines = []
    for record in sorted(
        {r.name: r for r in records if r.outputs and not r.is_implicit}.values(), key=lambda r: r.name
    ):
        fields = "".join(f"    {field}: Tensor\n" for field in record.outputs)
        lines.append(f"class _{record.name.strip('_')}_result(NamedTuple):\n{fields}")
    return "\n".join(lines)


def module_stub() -> str:
    functions = NAMESPACES["torch"]
    out = [
        HEADER,
        '"""PyTorch\'s API over array runtimes that already exist."""\n',
        "import builtins as _b\nfrom collections.abc import Sequence\nfrom typing import Any, NamedTuple\n\n",
        by_hand(),
        "Number = _b.int | _b.float | _b.bool | _b.complex\n"
        "_Device = device | _b.str | _b.int | None\n"
        "_DType = dtype\n"
        "_Layout = layout\n"
        "_MemoryFormat = memory_format\n"
        "\n",
        "__version__: _b.str\n",
        "".join(f"{name}: dtype\n" for d in _dtype.ALL.values() for name in (d.name, *_dtype.ALIASES.get(d.name, ()))),
        "\n",
        result_types(functions.values()),
        "\n",
    ]
    mine = {
        name
        for name in vars(torchlite)
        if name in functions
        and (getattr(vars(torchlite)[name], "__module__", None) or "").startswith("torchlite._tensor.")
    }
    for name, record in sorted(functions.items()):
        if name not in mine and not keyword.iskeyword(name):
            out.append(f"def {name}({parameters(record, False, True)}) -> {result(record, name)}: ...\n")
    out += [
        f"def {name}_({parameters(record, False, False)}) -> Tensor: ...\n"
        for name, record in sorted(functions.items())
        if record.tags & INPLACE and not name.startswith("_") and not name.endswith("_")
    ]
    out.append("def __getattr__(name: _b.str) -> Any: ...\n")
    return "".join(out)


def by_hand() -> str:
    """Imports of what torchlite/__init__.py defines or loads lazily."""
    lines = []
    for node in ast.parse((ROOT / "torchlite" / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module not in ("_dispatch", "_ops", None):
            lines += [f"from .{node.module} import {alias.name} as {alias.name}\n" for alias in node.names]
    names = set(NAMESPACES["torch"])
    lines += [
        f"from .{module} import {name} as {name}\n"
        for name, module in torchlite._LAZY.items()
        if name not in names and defined(module, name)
    ]
    lines += [
        f"from . import {name} as {name}\n"
        for name in sorted(torchlite._MODULES)
        if importlib.util.find_spec(f"torchlite.{name}")
    ]
    return "".join(sorted(set(lines))) + "\n"


def defined(module: str, name: str) -> bool:
    found = importlib.util.find_spec(f"torchlite.{module}")
    return found is not None and hasattr(importlib.import_module(f"torchlite.{module}"), name)


def written_methods() -> set[str]:
    """What the class Tensor has by hand: the bodies of its parts in torchlite/_tensor."""
    names: set[str] = set()
    for part in ("tensor", "properties", "history", "protocols", "conversions"):
        tree = ast.parse((ROOT / "torchlite" / "_tensor" / f"{part}.py").read_text())
        for body in (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == part.title()):
            names |= {node.name for node in body if isinstance(node, ast.FunctionDef)}
            for node in body:
                if isinstance(node, ast.Assign):
                    names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def methods_stub() -> str:
    from torchlite._tensor.operators import _COMPARISONS, _OPERATORS

    records = NAMESPACES["Tensor"]
    taken = written_methods()
    out = [
        HEADER,
        "import builtins as _b\nfrom collections.abc import Sequence\nfrom typing import Any, NamedTuple, Self\n\n",
        "from ._device.generators import Generator\n"
        "from ._types.devices import device\n"
        "from ._types.dtypes import dtype as _DType\n"
        "from ._types.layouts import layout as _Layout, memory_format as _MemoryFormat\n",
        "from ._tensor import Tensor\n"
        "\n"
        "Number = _b.int | _b.float | _b.bool | _b.complex\n"
        "_Device = device | _b.str | _b.int | None\n"
        "\n",
        result_types(r for n, r in records.items() if n not in taken),
        "\n",
        "class TensorMethods:\n",
    ]
    for operator in _OPERATORS:
        out += [
            f"    def __{prefix}{operator}__(self, other: Any) -> {'Self' if prefix == 'i' else 'Tensor'}: ...\n"
            for prefix in ("", "r", "i")
            if (prefix, operator) != ("i", "matmul")
        ]
    note = {"eq": "  # type: ignore[override]", "ne": "  # type: ignore[override]"}
    out += [f"    def __{name}__(self, other: Any) -> Tensor: ...{note.get(name, '')}\n" for name in _COMPARISONS]
    out += [f"    def __{name}__(self) -> Tensor: ...\n" for name in ("neg", "abs", "invert", "pos")]
    casts = [
        name
        for d in _dtype.ALL.values()
        for name in (*_dtype.ALIASES.get(d.name, ()), *((d.name,) if d.name in ("bool", "bfloat16") else ()))
    ]
    out += [
        f"    def {name}(self, memory_format: _MemoryFormat = ...) -> Tensor: ...\n"
        for name in casts
        if name not in taken
    ]
    for name, record in sorted(records.items()):
        if name in taken or keyword.iskeyword(name) or name in casts:
            continue
        attribute = not record.params[1:] and name in ("T", "mT", "H", "mH")
        out.append(
            f"    @property\n    def {name}(self) -> Tensor: ...\n"
            if attribute
            else f"    def {name}({parameters(record, True, False)}) -> {result(record, name)}: ...\n"
        )
    out += [
        f"    def {name}_({parameters(record, True, False)}) -> Self: ...\n"
        for name, record in sorted(records.items())
        if record.tags & INPLACE and f"{name}_" not in taken and f"{name}_" not in records
    ]
    return "".join(out)


def stubs() -> dict[Path, str]:
    """{path: text} of all stubs."""
    return {
        ROOT / "torchlite" / "__init__.pyi": module_stub(),
        ROOT / "torchlite" / "_tensor_methods.pyi": methods_stub(),
    }


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
        print(f"{path.relative_to(ROOT)}: {len(text.splitlines())} lines")
