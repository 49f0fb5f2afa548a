"""Record the parameters of PyTorch's public functions for tests/public_names/test_parameters.py.

usage: python tools/record_parameters.py     (needs the extra `oracle` and PyYAML)

tests/public_names/parser.txt.gz: a line is the name of a function written in C, its signatures, and for each call of
`tests.public_names.parser_calls` whether PyTorch takes it (1) or not (0). Signatures come from the declarations of
PyTorch's ops, or from its stubs.
tests/public_names/signatures.txt.gz: a line is the name of a function or class written in Python, and its parameters.
"""

from __future__ import annotations

import ast
import gzip
import importlib
import os
import pathlib
import sys
import types
import warnings
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from record_public_names import SPACES
from record_signatures import declared

from tests.public_names import parser_calls, python_signatures
from torchlite._dispatch.arg_parser import Signature

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "tests" / "public_names"
IN_C = (types.BuiltinFunctionType, types.MethodDescriptorType, types.BuiltinMethodType)
# Annotations of PyTorch's stubs, and the types of the recorded signatures.
STUB_TYPES = {
    "Tensor": "Tensor", "_int": "int", "_bool": "bool", "_float": "float", "Number": "Number", "_complex": "Number",
    "_dtype": "dtype", "_layout": "layout", "_size": "ints", "SymInt": "int", "DeviceLikeType": "device",
    "memory_format": "memory_format", "Any": "Any", "str": "str", "_device": "device",
}  # fmt: skip
# Modules beyond those whose names are recorded.
MORE_SPACES = ("nn.utils.weight_norm", "nn.utils.spectral_norm", "optim.adam", "optim.sgd", "utils.data.dataloader")
# Threads, streams of TorchScript and switches of the process, which no call may change.
LEFT_OUT = {"fork", "wait", "set_num_interop_threads", "set_num_threads", "Tensor.__setstate__", "Tensor.set_"}


def _stub_type(node: ast.expr | None) -> str:
    """The type of an annotation, with "?" if it may be None."""
    words = ast.unparse(node).replace('"', "").replace("'", "").split(" | ") if node is not None else ["Any"]
    words = [part.removeprefix("torch.").strip() for part in words]
    kind = next((STUB_TYPES[word] for word in words if word in STUB_TYPES), "")
    return kind + "?" * ("None" in words) if kind else "unknown"


def _stub_signature(function: ast.FunctionDef, method: bool) -> str:
    """A stub's function in the form of signatures.txt."""
    arguments, parts = function.args, []
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for a, default in list(zip(positional, defaults, strict=True))[method:]:
        parts.append(f"{_stub_type(a.annotation)} {a.arg}" + ("" if default is None else f"={ast.unparse(default)}"))
    if arguments.vararg is not None:
        parts.append(f"ints {arguments.vararg.arg}")
    if arguments.kwonlyargs:
        parts.append("*")
    for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parts.append(f"{_stub_type(a.annotation)} {a.arg}" + ("" if default is None else f"={ast.unparse(default)}"))
    return ", ".join(parts)


def stubs() -> dict[str, list[str]]:
    """{public name: signatures} by PyTorch's stubs."""
    import torch

    found: dict[str, list[str]] = {}
    folder = pathlib.Path(torch.__file__).parent / "_C"
    for path, inside, prefix in (("_VariableFunctions.pyi", "", ""), ("__init__.pyi", "TensorBase", "Tensor."),
                                 ("__init__.pyi", "", "")):  # fmt: skip
        body = ast.parse((folder / path).read_text()).body
        if inside:
            body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == inside)
        for node in body:
            if isinstance(node, ast.FunctionDef):
                text = _stub_signature(node, bool(inside))
                if text not in found.setdefault(prefix + node.name, []):
                    found[prefix + node.name].append(text)
    return found


def c_functions() -> dict[str, list[str]]:
    """{public name: signatures} of PyTorch's public functions and methods that are written in C."""
    import torch

    natives, others, found = declared(), stubs(), {}
    for space in ("", "nn.functional", "linalg", "fft", "special", "Tensor"):
        home: Any = importlib.import_module(f"torch.{space}") if space not in ("", "Tensor") else torch
        home = torch.Tensor if space == "Tensor" else home
        for name in dir(home):
            public = f"{space}.{name}" if space else name
            if name.startswith("_") or public in LEFT_OUT or not isinstance(getattr(home, name), IN_C):
                continue
            forms = natives.get(public)
            if forms is None and space not in ("Tensor", ""):
                forms = natives.get(name)
            forms = forms or others.get(public) or (others.get(name) if space != "Tensor" else None)
            if forms and getattr(home, name).__name__ not in ("_add_docstr",):
                found[public] = forms
    return found


def outcomes(name: str, forms: list[str]) -> str:
    """A digit for each call, found in a process of its own, which a call may end: then "x" stands for it."""
    import torch

    todo = parser_calls.calls([Signature(name, text) for text in forms])
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        for call in todo:
            try:
                digit = b"01"[parser_calls.is_taken(torch, name, call)]
                os.write(writing, bytes([digit]))
            except KeyError:
                os.write(writing, b"-")
        os._exit(0)
    os.close(writing)
    digits = b""
    while part := os.read(reading, 1 << 16):
        digits += part
    os.close(reading)
    os.waitpid(child, 0)
    return digits.decode().ljust(len(todo), "x")


def python_functions() -> list[str]:
    """A line for each function and class in Python of the public modules: `nn.functional.relu: input inplace=False`."""
    lines, seen = [], set()
    for space in ("torch", *SPACES, *MORE_SPACES):
        try:
            home = python_signatures.module("torch", space)
        except ImportError:
            continue
        for name, value in sorted(python_signatures.callables(home, "torch").items()):
            text = python_signatures.described(value)
            if text is None or (id(value), name) in seen:
                continue
            seen.add((id(value), name))
            lines.append(f"{space}\t{name}\t{text}\n")
    return lines


def main() -> None:
    warnings.simplefilter("ignore")
    lines = python_functions()
    with gzip.GzipFile(FOLDER / "signatures.txt.gz", "wb", mtime=0) as file:
        file.write("".join(lines).encode())
    print(f"{len(lines)} functions in Python")
    lines = []
    if "--python" in sys.argv:
        return
    for name, forms in sorted(c_functions().items()):
        lines.append(f"{name}\t{' | '.join(forms)}\t{outcomes(name, forms)}\n")
    with gzip.GzipFile(FOLDER / "parser.txt.gz", "wb", mtime=0) as file:
        file.write("".join(lines).encode())
    print(f"{len(lines)} functions in C")


if __name__ == "__main__":
    main()
