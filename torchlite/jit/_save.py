"""`torch.jit.save`: writes a program with objects and constants to an archive for `torch.jit.load`, here and in
PyTorch.
"""

from __future__ import annotations

import ast
import enum
import io
import os
import re
import struct
import sys
from typing import Any

from .._dispatch.call import Tensor
from .._dispatch.callbacks import CALLBACKS
from .._serialization.atomic_files import replace_file
from .._serialization.checkpoint_writer import StorageCollector
from .._serialization.pytorch_file import archive_name
from .._serialization.zip_archive import ArchiveWriter
from .._types import dtypes
from .._types.devices import device
from .._types.python_source import parse
from .._types.qschemes import qscheme
from ..serialization import location_tag
from ._compilation_unit import ScriptProgram
from ._dtype_codes import to_code
from ._runtime import ScriptObject
from ._script_modules import RecursiveScriptModule, ScriptFunction, ScriptModule
from ._value_limits import count_visited

VERSION = 10  # operator version written
_QUALIFIED_NAME = re.compile(r"__torch__(?:\.\w+)+")
_CONSTANT = re.compile(r"\bCONSTANTS\.c(\d+)\b")


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Write a module or function to a file for `torch.jit.load`, here and in PyTorch.

    f: a path, which is replaced atomically, or an object with `write`. _extra_files: names and contents to add. Raise
    AttributeError for an object that is no program; `torch.jit.script` and `trace` create them.
    """
    m = getattr(m, "_module", m)
    if not isinstance(m, (ScriptModule, ScriptFunction)):
        raise AttributeError(f"'{type(m).__name__}' object has no attribute 'save'")
    records = _archive_records(m, _extra_files)
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        with replace_file(path) as stream:
            _write(stream, archive_name(path), records)
        return
    f.write(_archive_bytes(records))


def to_bytes(m: Any, _extra_files: Any = None) -> bytes:
    """Return the bytes of a saved file."""
    return _archive_bytes(_archive_records(m, _extra_files))


def _archive_bytes(records: list) -> bytes:
    out = io.BytesIO()
    _write(out, "archive", records)
    return out.getvalue()


def _write(stream: Any, top: str, records: list) -> None:
    writer = ArchiveWriter(stream, top)
    for name, data in records:
        writer.record(name, data)
    writer.finish(VERSION)


def _archive_records(m: Any, extra: Any) -> list[tuple[str, Any]]:
    """Return the records of an archive: names and bytes."""
    root = m
    if isinstance(m, ScriptFunction):
        root = _as_module(m)
    else:
        root = m._actual_script_module
    programs = _ProgramCollector()
    programs.gather(root)
    data, constants = _Pickler(programs), _Pickler(programs)
    pickled = data.pickle_value(root, None)
    fixed = constants.pickle_value(tuple(programs.constants), None)
    records: list[tuple[str, Any]] = [("data.pkl", pickled), ("byteorder", sys.byteorder.encode())]
    records += [(f"data/{i}", array) for i, array in enumerate(data.storages.arrays)]
    for name, text in sorted(programs.sources.items()):
        records.append((f"code/{name.replace('.', '/')}.py", text.encode()))
    records.append(("constants.pkl", fixed))
    records += [(f"constants/{i}", array) for i, array in enumerate(constants.storages.arrays)]
    for name, value in (extra or {}).items():
        records.append((f"extra/{name}", value.encode() if isinstance(value, str) else bytes(value)))
    return records


def _as_module(function: Any) -> Any:
    """Return a module whose `forward` is a function, the form in which files store functions."""
    script = function._script
    node = script.nodes[function.name]
    arguments = [*node.args.args, *node.args.kwonlyargs]
    given = ", ".join(a.arg for a in arguments)
    head = ast.unparse(node.args)
    result = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    text = "class PlaceholderModule(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
    text += f"  def forward(self{', ' if head else ''}{head}){result}:\n    return {script.name}({given})\n"
    old = script.program
    sources = {**old.sources, "__torch__": old.sources.get("__torch__", "") + text}
    program = ScriptProgram(sources, old.constants, old.version)
    program.ignored, program.unknown, program.of_file = old.ignored, old.unknown, old.of_file
    return RecursiveScriptModule(program.find("__torch__.PlaceholderModule"))


# -- programs --------------------------------------------------------------------------------------


class _ProgramCollector:
    """Collector of texts and constants of all programs in a module tree, with unique names."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.constants: list[Any] = []
        self._names: dict[int, dict[str, str]] = {}  # renamed classes, per program
        self._taken: set[str] = set()
        self._seen: set[int] = set()  # visited objects
        self._keep: list[Any] = []

    def gather(self, root: Any) -> None:
        """Collect the programs of a module and its attributes."""
        for module in root.modules():
            self._collect_program(module._script if isinstance(module, RecursiveScriptModule) else None, module)
            values = getattr(module, "_attributes", {}).values()
            count_visited(*values, tensor=0)
            for value in values:
                self._collect_from(value)

    def _collect_from(self, value: Any) -> None:
        if isinstance(value, ScriptObject):
            if id(value) in self._seen:
                return
            self._seen.add(id(value))
            self._collect_program(value._script, value)
            count_visited(*value._attributes.values(), tensor=0)
            for inner in value._attributes.values():
                self._collect_from(inner)
        elif isinstance(value, (list, tuple)):
            for inner in value:
                self._collect_from(inner)
        elif isinstance(value, dict):
            for inner in value.values():
                self._collect_from(inner)

    def _collect_program(self, script: Any, owner: Any) -> None:
        if script is None:
            raise RuntimeError(f"{type(owner).__name__} is no part of a program: it cannot be saved with one")
        program = script.program
        if program is None or id(program) in self._names:
            return
        self._keep.append(program)
        if program.ignored:
            raise RuntimeError(
                f"Could not export Python function call '{program.ignored[0]}'. Remove calls to Python functions "
                "before "
                "export. Did you forget to add @script or @script_method annotation? If this is a nn.ModuleList, "
                "add it "
                "to __constants__"
            )
        if program.unknown:
            what, why = next(iter(program.unknown.items()))
            raise RuntimeError(f"torchlite has no TorchScript for {what} ({why}): torch.jit.trace writes it down")
        defined = program.defined()
        names = {}
        for name in defined:
            if name in self._taken:
                names[name] = self._unused_name(name)
        self._taken |= {names.get(name, name) for name in defined}
        self._names[id(program)] = names
        count_visited(*program.constants, tensor=0)
        start = len(self.constants)
        self.constants += program.constants
        for module, text in program.sources.items():
            self._add_text(module, text, names, start)

    def _unused_name(self, name: str) -> str:
        module, _, last = name.rpartition(".")
        number = 0
        while f"{module}.___torch_mangle_{number}.{last}" in self._taken:
            number += 1
        return f"{module}.___torch_mangle_{number}.{last}"

    def _add_text(self, module: str, text: str, names: dict[str, str], start: int) -> None:
        if names:
            text = _QUALIFIED_NAME.sub(lambda found: _rename_path(found[0], names), text)
        if start:
            text = _CONSTANT.sub(lambda found: f"CONSTANTS.c{int(found[1]) + start}", text)
        if not names:
            self.sources[module] = self.sources.get(module, "") + text
            return
        lines = text.split("\n")
        for node in parse(text).body:
            whole = f"{module}.{node.name}"  # type: ignore[attr-defined]
            target = names.get(whole, whole).rpartition(".")[0]
            piece = "\n".join(lines[node.lineno - 1 : node.end_lineno]) + "\n"
            self.sources[target] = self.sources.get(target, "") + piece

    def name(self, script: Any) -> str:
        """Return a class's name in the file."""
        return self._names.get(id(script.program), {}).get(script.name, script.name)


def _rename_path(path: str, names: dict[str, str]) -> str:
    """Return a path with its prefix renamed."""
    whole = path
    while path:
        if path in names:
            return names[path] + whole[len(path) :]
        path = path.rpartition(".")[0]
    return whole


# -- pickles ------------------------------------------------------------------------------------------


def _type_arguments(kind: str | None) -> list[str]:
    """Return the type arguments in brackets."""
    if not kind or "[" not in kind:
        return []
    try:
        node = parse(kind, mode="eval").body
    except SyntaxError:
        return []
    if not isinstance(node, ast.Subscript):
        return []
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [ast.unparse(part) for part in parts]


def type_of(value: Any) -> str:
    """Return a value's type as a program writes it."""
    if value is None:
        return "NoneType"
    if isinstance(value, Tensor):
        return "Tensor"
    for kind in (bool, int, float, complex, str):
        if isinstance(value, kind):
            return kind.__name__
    if isinstance(value, device):
        return "Device"
    if isinstance(value, (dtypes.dtype, qscheme)):
        return "int"
    named = getattr(type(value), "_script_name", None) or getattr(type(value), "_schema_type", None)
    if named is not None:
        return named
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(map(type_of, value)) or '()'}]"
    if isinstance(value, list):
        return f"List[{_join_types(value)}]"
    if isinstance(value, dict):
        return f"Dict[{_join_types(list(value))}, {_join_types(list(value.values()))}]"
    if isinstance(value, (ScriptObject, RecursiveScriptModule)):
        return value._script.name
    raise RuntimeError(f"TorchScript has no type for a value of the class {type(value).__name__}")


def _join_types(values: list) -> str:
    kinds = list(dict.fromkeys(map(type_of, values)))
    if not kinds:
        return "Tensor"
    if len(kinds) == 2 and "NoneType" in kinds:
        return f"Optional[{next(k for k in kinds if k != 'NoneType')}]"
    return kinds[0] if len(kinds) == 1 else "Any"


_BUILD = {"int": "build_intlist", "float": "build_doublelist", "bool": "build_boollist", "Tensor": "build_tensorlist"}


class _Pickler:
    """Writer of protocol 2 pickles, opcode by opcode."""

    def __init__(self, programs: _ProgramCollector):
        self._out = io.BytesIO()
        self._programs = programs
        self._memo: dict[int, int] = {}
        self._keep: list[Any] = []
        self.storages = StorageCollector(
            lambda value: location_tag(value) if not isinstance(value, Tensor) else _device_for_file(value)
        )

    def pickle_value(self, value: Any, kind: str | None) -> bytes:
        """Return the pickle of a value."""
        self._out.write(b"\x80\x02")
        self._write_value(value, kind)
        self._out.write(b".")
        return self._out.getvalue()

    def _write_global(self, module: str, name: str) -> None:
        self._out.write(f"c{module}\n{name}\n".encode())

    def _write_text(self, value: str) -> None:
        data = value.encode("utf-8", "surrogatepass")
        self._out.write(b"X" + struct.pack("<I", len(data)) + data)

    def _write_int(self, value: int) -> None:
        if 0 <= value < 256:
            self._out.write(b"K" + bytes([value]))
        elif -(1 << 31) <= value < 1 << 31:
            self._out.write(b"J" + struct.pack("<i", value))
        else:
            self._out.write(b"\x8a\x08" + struct.pack("<q", value))

    def _memoize(self, value: Any) -> None:
        number = len(self._memo)
        self._memo[id(value)] = number
        self._keep.append(value)
        self._out.write(b"r" + struct.pack("<I", number))

    def _write_value(self, value: Any, kind: str | None) -> None:
        out = self._out
        inner = _type_arguments(kind)
        if kind and kind.startswith("Optional[") and inner:
            kind, inner = inner[0], _type_arguments(inner[0])
        if id(value) in self._memo:
            out.write(b"j" + struct.pack("<I", self._memo[id(value)]))
        elif value is None:
            out.write(b"N")
        elif value is True or value is False:
            out.write(b"\x88" if value else b"\x89")
        elif isinstance(value, enum.Enum):
            self._write_enum(value)
        elif isinstance(value, int):
            out.write(b"G" + struct.pack(">d", value)) if kind == "float" else self._write_int(value)
        elif isinstance(value, float):
            out.write(b"G" + struct.pack(">d", value))
        elif isinstance(value, str):
            self._write_text(value)
        elif isinstance(value, Tensor):
            self._write_tensor(value)
        elif isinstance(value, (RecursiveScriptModule, ScriptObject)):
            self._write_object(value)
        elif isinstance(value, (list, tuple, dict)):
            self._write_container(value, kind, inner)
        else:
            self._write_other(value)

    def _write_container(self, value: Any, kind: str | None, inner: list[str]) -> None:
        if isinstance(value, list):
            self._write_list(value, inner[0] if inner else _join_types(value))
        elif isinstance(value, tuple):
            self._write_tuple(value, inner if inner and len(inner) == len(value) else [None] * len(value))
        else:
            self._write_dict(
                value, inner if len(inner) == 2 else [_join_types(list(value)), _join_types(list(value.values()))]
            )

    def _write_list(self, value: list, kind: str) -> None:
        out, built = self._out, _BUILD.get(kind)
        self._write_global("torch.jit._pickle", built or "restore_type_tag")
        out.write(b"(](")
        for item in value:
            self._write_value(item, kind)
        out.write(b"e")
        if built is None:
            self._write_text(f"List[{kind}]")
        out.write(b"tR")

    def _write_tuple(self, value: tuple, kinds: Any) -> None:
        named = getattr(type(value), "_script_name", None)
        if named is not None:
            module, _, name = named.rpartition(".")
            self._write_global(module, name)
            kinds = list(type(value)._script_fields.values())  # type: ignore[attr-defined]
        self._out.write(b"(")
        for item, kind in zip(value, kinds, strict=True):
            self._write_value(item, kind)
        self._out.write(b"t" if named is None else b"t\x81")

    def _write_dict(self, value: dict, kinds: list[str]) -> None:
        self._write_global("torch.jit._pickle", "restore_type_tag")
        self._out.write(b"(}(")
        for key, item in value.items():
            self._write_value(key, kinds[0])
            self._write_value(item, kinds[1])
        self._out.write(b"u")
        self._write_text(f"Dict[{kinds[0]}, {kinds[1]}]")
        self._out.write(b"tR")

    def _write_enum(self, value: Any) -> None:
        module, _, name = type(value)._script_name.rpartition(".")
        self._write_global(module, name)
        self._write_value(value.value, None)
        self._out.write(b"R")

    def _write_other(self, value: Any) -> None:
        if isinstance(value, device):
            self._write_global("torch", "device")
            self._write_text(str(value))
            self._out.write(b"\x85R")
        elif isinstance(value, complex):
            self._write_global("__builtin__", "complex")
            self._out.write(b"(G" + struct.pack(">d", value.real) + b"G" + struct.pack(">d", value.imag) + b"tR")
        elif isinstance(value, (dtypes.dtype, qscheme)):
            self._write_int(to_code(value))
        elif hasattr(type(value), "_schema_type"):
            self._write_library_object(value)
        else:
            raise RuntimeError(f"TorchScript does not save values of the class {type(value).__name__}")

    def _write_library_object(self, value: Any) -> None:
        """Write an object of a class that the library defines. Its state makes it, so it is known after that."""
        state, name = value.__getstate__()
        module, _, last = name.rpartition(".")
        self._write_global(module, last)
        self._out.write(b")\x81")
        self._write_value(state, None)
        self._out.write(b"b")
        self._memoize(value)

    def _write_tensor(self, value: Tensor) -> None:
        shown: Any = value.detach()
        if shown.is_quantized:
            self._write_quantized(value)
            return
        if shown.is_conj() or shown.is_neg():
            shown = shown.resolve_conj().resolve_neg()
        self._write_storage(shown, "_rebuild_tensor_v2", "_rebuild_tensor_v3")
        self._write_tensor_end(value)

    def _write_quantized(self, value: Any) -> None:
        integers, (_, *parameters) = CALLBACKS.quantized("saved_parts")(value)
        self._write_storage(integers, "_rebuild_qtensor", "_rebuild_qtensor", value)
        self._out.write(b"(")
        self._write_global("torch", value.qscheme().name)
        for parameter in parameters:
            self._write_value(parameter, None)
        self._out.write(b"t")
        self._write_tensor_end(value)

    def _write_storage(self, shown: Any, typed: str, untyped: str, quantized: Any = None) -> None:
        """Write the first arguments of a function that rebuilds a tensor: storage, offset, sizes and strides.

        quantized: the tensor whose integers are in the storage.
        """
        reference, offset, strides = self.storages.reference(shown, None if quantized is None else quantized.dtype)
        shape = tuple(shown.shape)
        if quantized is not None:
            shape, strides = tuple(quantized.shape), tuple(quantized.stride())
        _, storage, key, location, count = reference.id
        self._write_global("torch._utils", typed if storage.dtype else untyped)
        self._out.write(b"((")
        self._write_text("storage")
        self._write_global("torch" if storage.dtype else "torch.storage", storage.name)
        self._write_text(key)
        self._write_text(location)
        self._write_int(count)
        self._out.write(b"tQ")
        self._write_int(offset)
        for numbers in (shape, strides):
            self._out.write(b"(")
            for one in numbers:
                self._write_int(one)
            self._out.write(b"t")

    def _write_tensor_end(self, value: Any) -> None:
        self._out.write(b"\x88" if value.requires_grad and value.is_leaf else b"\x89")
        self._write_global("collections", "OrderedDict")
        self._out.write(b")RtR")
        self._memoize(value)

    def _write_object(self, value: Any) -> None:
        script = value._script
        module, _, name = self._programs.name(script).rpartition(".")
        self._write_global(module, name)
        self._out.write(b")\x81")
        self._memoize(value)
        if "__getstate__" in script.methods:
            self._write_value(script.methods["__getstate__"](value), None)
        else:
            self._out.write(b"}(")
            for attribute, kind in script.types.items():
                if attribute in script.constants:
                    continue
                self._write_text(attribute)
                self._write_value(attribute_of(value, attribute), kind)
            self._out.write(b"u")
        self._out.write(b"b")


def attribute_of(value: Any, name: str) -> Any:
    """Return an attribute as stored in files."""
    if isinstance(value, ScriptObject):
        return value._attributes[name]
    for table in (value._parameters, value._buffers, value._modules, value._attributes):
        if name in table:
            return table[name]
    return value.training if name == "training" else None


def _device_for_file(tensor: Any) -> str:
    """Return the device that a file stores: CPU for devices that PyTorch lacks."""
    return "cpu" if tensor.device.type == "opencl" else location_tag(tensor)
