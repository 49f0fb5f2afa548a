"""Run recorded lines of programs and describe their answers as data.

A file of lines has a line for each program: statements, and an expression whose value is the answer. The names in it
are `torch` (whose factories make tensors on the device of the test), `F`, `np`, `copy` and `pickle`.
"""

from __future__ import annotations

import ast
import copy
import math
import pathlib
import pickle
import re
import warnings

import numpy as np

HERE = pathlib.Path(__file__).parent
LINES, ANSWERS = HERE / "lines.txt", HERE / "answers.json"
_MAKING = frozenset(
    "tensor zeros ones empty full arange rand linspace logspace eye empty_strided scalar_tensor range "
    "tril_indices triu_indices".split()
)


class OnDevice:
    """A library whose factories create tensors on a given device by default."""

    def __init__(self, library, device: str):
        self._library, self._device = library, device

    def __getattr__(self, name: str):
        found = getattr(self._library, name)
        if name not in _MAKING or self._device == "cpu":
            return found
        return lambda *a, **k: found(*a, **k if "out" in k else {"device": self._device, **k})


def lines() -> list[str]:
    return [line for line in LINES.read_text().splitlines() if line and not line.startswith("#")]


def _words(error: object) -> str:
    """The first line of a message, without what differs between devices and libraries."""
    text = str(error).split("\n")[0].replace("torchlite", "torch")
    text = re.sub(r"\[enforce fail at \S+ err == 0\. ", "", text)
    text = re.sub(r"torch\.(opencl|cuda)\.(\w+Tensor)\b", r"torch.\2", text)
    return re.sub(r"allocate \d+ bytes", "allocate so many bytes", text)


def _number(value):
    if isinstance(value, (list, tuple)):
        return [_number(v) for v in value]
    if isinstance(value, complex):
        return ["complex", _number(value.real), _number(value.imag)]
    if isinstance(value, float):
        if not math.isfinite(value) or value == 0 and math.copysign(1, value) < 0:
            return str(value)
        return float(f"{value:.4g}")
    return value


def _described(library, value):
    if isinstance(value, library.Tensor):
        about = {"dtype": str(value.dtype).split(".")[1], "shape": list(value.shape), "stride": list(value.stride())}
        if value.numel():
            about["offset"] = value.storage_offset()
        if value.grad_fn is not None:
            about["node"] = type(value.grad_fn).__name__
        about["values"] = None if value.device.type == "meta" else _number(value.detach().resolve_conj().tolist())
        return about
    if isinstance(value, (list, tuple)):
        return [_described(library, v) for v in value]
    return _number(value) if isinstance(value, (int, float, complex, str, type(None))) else str(value)


def answer(library, line: str, device: str = "cpu"):
    """Return a line's answer and its warnings."""
    names = {"torch": OnDevice(library, device), "F": library.nn.functional, "np": np, "copy": copy, "pickle": pickle}
    library.manual_seed(0)
    program = ast.parse(line)
    expression = ast.Expression(program.body.pop().value)  # type: ignore[attr-defined]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(program, line, "exec"), names)
            found = _described(library, eval(compile(expression, line, "eval"), names))
        except Exception as error:
            found = {"error": type(error).__name__, "words": _words(error)}
    said = sorted({f"{w.category.__name__}: {_words(w.message)[:60]}" for w in caught})
    return {"answer": found, "warnings": said} if said else {"answer": found}
