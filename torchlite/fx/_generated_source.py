"""Compiles generated code with source for tracebacks, and resolves its imports from pickles and folders."""

from __future__ import annotations

import itertools
import linecache
import os
import pickle
import re
import traceback
from collections.abc import Callable
from typing import Any

from .._types.package_name import package_name
from .._types.python_source import compile_function, compile_source, identifier
from ._codegen import _custom_builtins

_EVAL_PREFIX = "<eval_with_key>"
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LAYERS = os.path.join(_HOME, "nn", "modules")


_numbers = itertools.count()


def _file_name_for(fields: dict[str, Any] | None) -> str:
    """Return a unique file name for a source, or the one defined by a graph's code fields."""
    key = f"{_EVAL_PREFIX}.{next(_numbers)}"
    if not fields or "co_filename" not in fields:
        return key
    if "co_firstlineno" in fields and "co_name" in fields:
        return f"{key} from {fields['co_filename']}:{fields['co_firstlineno']} in {fields['co_name'].strip('<>')}"
    return fields["co_filename"]


def _exec_with_source(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> None:
    """Execute source in globals, under a file name that tracebacks can resolve."""
    compile_source(src, _file_name_for(co_fields), globals)


def _method_from_src(
    method_name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """Return a function that source defines; `globals` are unchanged."""
    names = dict(globals)
    method = compile_function(method_name, src, _file_name_for(co_fields), names, names)
    del names[method_name]
    return method


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Callable[..., Any]:
    return _method_from_src("forward", src, globals, co_fields)


def import_block(names: dict[str, Any]) -> str:
    """Return import lines for the globals of generated code. Raise PicklingError for an object that cannot be
    imported.
    """
    lines = set()
    for name, value in names.items():
        if name in _custom_builtins:
            lines.add(_custom_builtins[name].import_str)
            continue
        found = (getattr(value, key, None) for key in ("__qualname__", "__name__", "_name"))
        attribute = next((text for text in found if isinstance(text, str)), None)
        if attribute is None:
            raise pickle.PicklingError(f"Can't import {value!r}, which the code of a GraphModule names")
        if "<locals>" in attribute or "<lambda>" in attribute:
            raise pickle.PicklingError(f"Can't get local object {attribute!r}: the code of a GraphModule imports it")
        lines.add(_import_attribute(pickle.whichmodule(value, attribute), attribute, name))  # type: ignore[attr-defined]
    return "\n".join(sorted(lines))


def _import_attribute(module: str, attribute: str, name: str) -> str:
    for part in (name, *module.split("."), *attribute.split(".")):
        identifier(part)
    first, _, rest = attribute.partition(".")
    if not rest:
        return f"from {module} import {attribute} as {name}"
    return f"from {module} import {first} as _{name}; {name} = _{name}.{rest}"


def redirect_imports(lines: str) -> str:
    """Return import lines with PyTorch replaced by torchlite.

    >>> from torchlite.fx._generated_source import redirect_imports
    >>> redirect_imports("import torch\\nfrom torch.nn import Linear as L\\nimport torchvision")
    'import torchlite as torch\\nfrom torchlite.nn import Linear as L\\nimport torchvision'
    """
    ours = package_name()
    if ours == "torch":
        return lines
    lines = re.sub(r"^import torch$", f"import {ours} as torch", lines, flags=re.MULTILINE)
    return re.sub(r"^(from|import) torch(?=[. ])", rf"\1 {ours}", lines, flags=re.MULTILINE)


def format_generated_error(error: BaseException) -> str | None:
    """Return the text of an error raised by generated code: traceback and surrounding lines. Return None if a callee
    raised it.
    """
    walked = traceback.walk_tb(error.__traceback__)
    places = [(frame.f_code.co_filename, number) for frame, number in walked]
    while places and _is_internal_file(places[-1][0]):
        places.pop()
    if not places or _EVAL_PREFIX not in places[-1][0]:
        return None
    filename, number = places[-1]
    lines = linecache.getlines(filename)
    return "\n".join(
        [
            "".join(traceback.format_exception(error)),
            f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:",
            "".join(lines[number - 2 : number]),
            "~" * len(lines[number - 1].strip()) + "~~~ <--- HERE",
            "\n".join(lines[number : number + 2]),
        ]
    )


def _is_internal_file(filename: str) -> bool:
    """True if a file is internal to torchlite, so the error belongs to the caller."""
    if _EVAL_PREFIX in filename:
        return False
    ours = filename.startswith((_HOME + os.sep, "<torch")) or f"{os.sep}torchlite_" in filename
    return ours and not filename.startswith((_LAYERS, os.path.join(_HOME, "fx")))
