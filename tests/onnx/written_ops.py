"""Calls of every op, written as ONNX: the samples of tests/ops, and each argument of a sample off its value.

A case is wrong if its model gives other results than the call. An export that raises an error of the exporter is a
refusal. `python -m tests.onnx.written_ops` writes `not_written.txt`, the ops whose first sample is refused.
"""

from __future__ import annotations

import pathlib
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import torchlite as torch
from tests.ops.op_db import ROWS, Row, leaves, load_rows
from torchlite._dispatch import REGISTRY

load_rows()
NOT_WRITTEN = pathlib.Path(__file__).with_name("not_written.txt")
# Ops whose results are not those of another call: random numbers, and memory that nobody wrote.
OPS = sorted(name for name, row in ROWS.items() if not row.random and "empty" not in name)
STRINGS = (
    "none", "mean", "sum", "max", "floor", "trunc", "tanh", "linear", "bilinear", "bicubic", "nearest", "nearest-exact",
    "border", "reflection", "zeros", "reflect", "replicate", "circular", "constant", "left", "right", "xy", "ij",
    "prod", "amin", "amax", "lower", "higher", "midpoint", "ortho", "forward", "backward", "add", "multiply", "same",
)  # fmt: skip
# Names of parameters that say where a result is, and of probabilities, with which it is random.
PLACES = frozenset("out device layout pin_memory requires_grad memory_format generator dropout_p".split())


class Case(NamedTuple):
    """A call of an op: its row, the name of the case, its arguments with arrays for tensors."""

    row: Row
    label: str
    args: tuple
    kwargs: dict


class Call(torch.nn.Module):
    """A function with some arguments fixed; the tensors among them are forward's."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict) -> None:
        super().__init__()
        self.function, self.given = function, (args, kwargs)

    def forward(self, *tensors: Any) -> Any:
        rest = iter(tensors)
        args, kwargs = _map(self.given, lambda _: next(rest))
        found = self.function(*args, **kwargs)
        return found.clone() if any(found is t for t in tensors) else found


def _map(tree: Any, change: Callable) -> Any:
    """A tree with its arrays changed."""
    if isinstance(tree, np.ndarray):
        return change(tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)(_map(item, change) for item in tree)
    if isinstance(tree, dict):
        return {key: _map(value, change) for key, value in tree.items()}
    return tree


def as_float32(array: np.ndarray) -> np.ndarray:
    """What ONNX's runtimes compute everywhere: float32 for float64."""
    return array.astype({"float64": "float32", "complex128": "complex64"}.get(array.dtype.name, array.dtype))


def cases(row: Row) -> Iterator[Case]:
    """The samples of an op in float32, each also with each of its arguments off its value."""
    for index, label in enumerate(row.labels):
        args, kwargs = _map(row.values(index), as_float32)
        yield Case(row, label, args, kwargs)
        yield from _variants(row, label, args, kwargs)


def some_cases(row: Row, one_in: int) -> Iterator[Case]:
    """The first case of an op, and one in so many of the others."""
    for i, case in enumerate(cases(row)):
        if i == 0 or zlib.crc32(f"{row.name} {case.label}".encode()) % one_in == 0:
            yield case


def _variants(row: Row, label: str, args: tuple, kwargs: dict) -> Iterator[Case]:
    params = REGISTRY[row.name].params
    if row.call is None and row.oracle is None:
        names = [p.name for p in params if not p.kwonly]
        defaults = {p.name: p.default for p in params if p.kind not in ("tensor", "list")}
    else:
        names, defaults = row.parameters, {}
    given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
    for name, value in given.items():
        if name in PLACES or isinstance(value, np.ndarray) or not isinstance(name, str):
            continue
        for other in _others(name, value):
            text = f"{label} {name}={other!r}"
            if name in names and names.index(name) < len(args):
                at = names.index(name)
                yield Case(row, text, (*args[:at], other, *args[at + 1 :]), kwargs)
            else:
                yield Case(row, text, args, {**kwargs, name: other})


def _others(name: str, value: Any) -> list[Any]:
    """Values of another kind of result: those that the op refuses are left out later."""
    if name == "dtype":
        return [d for d in (torch.float64, torch.float32, torch.int32) if d != value]
    if name == "unbiased":
        return [v for v in (True, False) if v is not value]
    if value is None:
        texts = STRINGS if name in ("mode", "reduce", "norm", "rounding_mode", "side", "padding_mode", "fill") else ()
        return [0, 1, True, 0.3, [0], [0, 1], *texts]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value * 2 + 0.3, value * 0.5]
    if isinstance(value, str):
        return [text for text in STRINGS if text != value]
    if isinstance(value, (list, tuple)) and value and all(type(n) in (int, float) for n in value):
        return [type(value)(n + 1 for n in value), type(value)(reversed(value))]
    return []


def _real(tensor: Any) -> Any:
    """A tensor as a model has it: complex numbers have their parts in a last dimension."""
    tensor = tensor.detach()
    return torch.view_as_real(tensor.resolve_conj()).contiguous() if tensor.is_complex() else tensor


class Outcome(NamedTuple):
    """`kind`: "same", "refused", "wrong", "unreadable" (the model does not load), or "" (the op refuses the call)."""

    kind: str
    text: str


Reader = Callable[[bytes, list], list]


def read_by_torchlite(data: bytes, inputs: list) -> list[np.ndarray]:
    """The results of a model, by `torch.onnx.load`."""
    found = torch.onnx.load(data)(*inputs)
    found = found if isinstance(found, (list, tuple)) else [found]
    return [value.detach().numpy() for value in found]


def read_by_onnxruntime(data: bytes, inputs: list) -> list[np.ndarray]:
    """The results of a model, by onnxruntime without its own optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: x.numpy() for i, x in _by_name(session, inputs)})


def _by_name(session: Any, inputs: list) -> Iterator[tuple[Any, Any]]:
    """Inputs that the model kept: they are named after their place."""
    for item in session.get_inputs():
        yield item, inputs[int(item.name.rpartition("_")[2])]


def outcome(case: Case, read: Reader, version: int | None = None) -> Outcome:
    """What becomes of a case as a model."""
    arrays: list[np.ndarray] = []
    _map((case.args, case.kwargs), lambda array: arrays.append(array))
    inputs = [torch.from_numpy(array.copy()) for array in arrays]
    module = Call(case.row.function(), case.args, case.kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = [_real(t).numpy() for t in leaves(module(*inputs)) if isinstance(t, torch.Tensor)]
        except Exception as error:
            return Outcome("", f"{type(error).__name__}: {error}")
        if not wanted:
            return Outcome("", "no tensor")
        inputs = [torch.from_numpy(array.copy()) for array in arrays]
        names = [f"input_{i}" for i in range(len(inputs))]
        try:
            data = torch.onnx.export(module, tuple(inputs), input_names=names, opset_version=version).to_bytes()
        except Exception as error:
            return Outcome("refused", f"{type(error).__name__}: {error}")
        try:
            found = read(data, [_real(t) for t in inputs])
        except Exception as error:
            return Outcome("unreadable", f"{type(error).__name__}: {error}")
    return _compare(found, wanted)


def _compare(found: list, wanted: list) -> Outcome:
    if len(found) != len(wanted):
        return Outcome("wrong", f"{len(found)} results for {len(wanted)}")
    for got, want in zip(found, wanted, strict=True):
        if got.dtype != want.dtype or got.shape != want.shape:
            return Outcome("wrong", f"{got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}")
        if not np.allclose(got, want, rtol=2e-4, atol=2e-5, equal_nan=True):
            return Outcome("wrong", f"{got.ravel()[:6]} for {want.ravel()[:6]}")
    return Outcome("same", "")


def wrong_cases(given: Iterator[Case], read: Reader) -> list[str]:
    """The cases whose models do not give what the calls give."""
    found = []
    for case in given:
        kind, text = outcome(case, read)
        if kind in ("wrong", "unreadable"):
            found.append(f"{case.label}: {kind}: {text[:300]}")
    return found


def is_refused(name: str) -> bool:
    """True if the exporter refuses an op's first sample."""
    return outcome(next(cases(ROWS[name])), read_by_torchlite).kind == "refused"


if __name__ == "__main__":
    NOT_WRITTEN.write_text("".join(f"{name}\n" for name in OPS if is_refused(name)))
