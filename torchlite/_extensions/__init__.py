"""Replacements of compiled extensions (torchvision, torchaudio, optimum-quanto) by torchlite ops.

`torch.ops.load_library` and `torch.utils.cpp_extension.load` look here; nothing is imported before.
"""

from __future__ import annotations

import importlib
import pathlib
import types
from collections.abc import Iterable
from typing import Any

# Library file suffix to op namespace and the module that lists its ops.
_KNOWN_LIBRARIES = {
    "torchvision/_C": ("torchvision", "torchvision.op_schemas", "OPS"),
    "torchaudio/lib/_torchaudio": ("_torchaudio", "torchaudio", "EXTENSION"),
    "torchaudio/lib/libtorchaudio": ("torchaudio", "torchaudio", "OPS"),
}
# Extensions that are compiled when first used: name and source files to a module with the same functions.
_KNOWN_SOURCES: dict[tuple[str, tuple[str, ...]], str] = {("quanto_cpp", ("pybind_module.cpp", "unpack.cpp")): "quanto"}
_provided: set[str] = set()


def declare_library_ops(path: Any) -> bool:
    """Declare the ops of the library at `path`; return False if there is no replacement."""
    file = pathlib.Path(path)
    place = file.with_name(file.name.partition(".")[0]).as_posix()
    known = next((known for end, known in _KNOWN_LIBRARIES.items() if place.endswith(f"/{end}")), None)
    if known is None:
        return False
    namespace, module, listed = known
    if namespace not in _provided:
        from .._library.library_op import define_op

        for op in getattr(importlib.import_module(f"{__name__}.{module}"), listed):
            declared = define_op(namespace, op.schema)
            if op.kernel is not None:
                declared.kernels["CompositeExplicitAutograd"] = op.kernel
            declared.backward, declared.setup_context = op.backward, op.setup_context
        _provided.add(namespace)
    return True


def find_source_extension(name: str, sources: Iterable[Any]) -> types.ModuleType | None:
    """The replacement of an extension with these source files; None if there is none."""
    files = tuple(sorted(pathlib.Path(source).name for source in sources))
    known = _KNOWN_SOURCES.get((name, files))
    return None if known is None else importlib.import_module(f"{__name__}.{known}")
