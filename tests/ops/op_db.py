"""The op table: for every op sample arguments, from which the tests of values, derivatives, layouts and devices are
driven.

A row: `row("mul", S((3, 4), (3, 4)), S((3, 1), (4,)))`. In `S(*args, **kwargs)` a tuple that stands where the op's
schema has a tensor is the shape of a seeded float64 tensor with values in (-2, 2); `A(...)` gives other data and may
stand anywhere, also in lists. Everything else is passed as it is.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import pathlib
import pkgutil
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import torchlite as torch
from tests.case_names import described, shape_name
from torchlite._dispatch import NAMESPACES, REGISTRY, function_for

ROWS: dict[str, Row] = {}
COVERED: dict[str, str] = {}
GOLDEN = pathlib.Path(__file__).with_name("golden")  # a file a family


@dataclass
class A:
    """Data of a tensor argument: shape, range, dtype name; `kind` "spd" (symmetric positive definite), "distinct" (no
    ties) or "unit" (well-conditioned square).
    """

    shape: tuple
    low: float = -2
    high: float = 2
    dtype: str = "float64"
    kind: str = ""
    grad: bool = True

    def make(self, rng) -> np.ndarray:
        if self.dtype == "bool":
            return np.asarray(rng.random(self.shape) < 0.5)
        if self.dtype.startswith(("int", "uint")):
            return rng.integers(int(self.low), max(int(self.high), int(self.low) + 1), self.shape).astype(self.dtype)
        if self.kind == "distinct":
            n = int(np.prod(self.shape))
            return (rng.permutation(n).reshape(self.shape) * ((self.high - self.low) / max(n, 1)) + self.low).astype(
                self.dtype
            )
        data = np.asarray(rng.uniform(self.low, self.high, self.shape))
        if self.dtype.startswith("complex"):
            data = data + 1j * rng.uniform(self.low, self.high, self.shape)
        if self.kind == "spd":
            data = data @ np.conj(np.swapaxes(data, -1, -2)) + np.eye(self.shape[-1])
        if self.kind == "unit":
            data = data * 0.3 + np.eye(self.shape[-1])
        return np.asarray(data.astype(self.dtype))


@dataclass
class S:
    """The arguments of one sample."""

    args: tuple
    kwargs: dict
    constant: bool = False

    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs


def constant(sample: S) -> S:
    """The sample, of which no result depends on its tensors' values: there is no derivative to check."""
    sample.constant = True
    return sample


@dataclass
class Row:
    """An op's samples and what is tested of it.

    grad, gradgrad: whether derivatives of first and second order are checked. random: only dtype and shape are compared
    with PyTorch. oracle: `(torch, *args, **kwargs)` -> what PyTorch calls it (default: the public function of the same
    name; the same callable runs under torchlite when `call` is not given). call: how torchlite is called. free:
    compared by shape and dtype only (sign or phase freedom), or a function that brings results into a comparable form.
    meta: whether shapes are checked on "meta". covers: internal ops that this row exercises (forward or backward). tol:
    relative tolerance. form: the names of the parameters that the samples have, if the op has several forms and the
    record is another one.
    """

    name: str
    samples: tuple
    grad: bool = True
    gradgrad: bool = True
    random: bool = False
    oracle: Callable | None = None
    call: Callable | None = None
    free: Any = False
    meta: bool = True
    noncontiguous: bool = True
    tol: float = 1e-7
    covers: tuple = field(default=())
    form: str = ""
    family: str = ""

    def function(self):
        """The callable under torchlite."""
        if self.call is not None:
            return self.call
        if self.oracle is not None:
            return lambda *args, **kwargs: self.oracle(torch, *args, **kwargs)
        return public(self.name)

    @functools.cached_property
    def parameters(self) -> list[str]:
        """The names of the positional parameters of what is called: the op's, or those of `call` or `oracle`."""
        if self.form:
            return self.form.split()
        called = self.call or self.oracle
        if called is None:
            return [p.name for p in REGISTRY[self.name].params if not p.kwonly]
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [p.name for p in inspect.signature(called).parameters.values() if p.kind in kinds]
        return names if self.call else names[1:]

    @functools.cached_property
    def labels(self) -> list[str]:
        """A description of each sample's arguments, unique within the row."""
        short = [sample_label(self, sample) for sample in self.samples]
        full = [sample_label(self, sample, full=True) for sample in self.samples]
        found = [s if short.count(s) == 1 else f for s, f in zip(short, full, strict=True)]
        return [
            label if found.count(label) == 1 else f"{label}#{found[:i].count(label)}" for i, label in enumerate(found)
        ]

    def float_inputs(self, index: int) -> list[np.ndarray]:
        """The arrays of a sample that can require a gradient."""
        return [array for array in _arrays(self.values(index)) if array.dtype.kind in "fc"]

    def has_derivative(self, index: int) -> bool:
        """Whether a result of a sample depends differentiably on one of its tensors."""
        return self.grad and not self.random and not self.samples[index].constant and bool(self.float_inputs(index))

    def values(self, index: int, seed: str = ""):
        """(args, kwargs) of a sample with NumPy arrays in place of shapes."""
        sample = self.samples[index]
        rng = np.random.default_rng(zlib.crc32(f"{self.name}/{index}{seed}".encode()))
        record = REGISTRY.get(self.name)
        kinds = {p.name: p for p in record.params} if record is not None else {}
        order = list(kinds.values())
        args = tuple(_fill(a, order[i] if i < len(order) else None, rng) for i, a in enumerate(sample.args))
        return args, {k: _fill(v, kinds.get(k), rng) for k, v in sample.kwargs.items()}


def _arrays(tree) -> list[np.ndarray]:
    if isinstance(tree, np.ndarray):
        return [tree]
    items = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (list, tuple)) else ()
    return [array for item in items for array in _arrays(item)]


def sample_label(row: Row, sample: S, full: bool = False) -> str:
    """A sample's arguments as text: tensors as shapes and dtypes other than float64, others with their names. `full`
    adds the range of the tensors' values.
    """
    kinds = {p.name: p for p in REGISTRY[row.name].params}
    order = list(kinds.values())
    given = [(order[i] if i < len(order) else None, value) for i, value in enumerate(sample.args)]
    given += [(kinds.get(key), value) for key, value in sample.kwargs.items()]
    names = [row.parameters[i] if i < len(row.parameters) else "" for i in range(len(sample.args))] + [*sample.kwargs]
    parts = []
    for (param, value), key in zip(given, names, strict=True):
        tensor = param is not None and param.kind in ("tensor", "optional", "number") and isinstance(value, tuple)
        listed = param is not None and param.kind == "list" and isinstance(value, (list, tuple))
        text = _argument_label(value, tensor, listed, full)
        is_tensor = isinstance(value, A) or tensor or listed
        parts.append(text if is_tensor or not key else f"{key}={text}")
    return ",".join(parts)


def _argument_label(value, is_shape: bool, is_list: bool, full: bool) -> str:
    if isinstance(value, A):
        text = shape_name(value.shape) + (f":{value.dtype}" if value.dtype != "float64" else "")
        return f"{text}:{value.kind or 'in'}[{value.low},{value.high}]" if full else text
    if is_shape:
        return shape_name(value)
    if isinstance(value, (list, tuple)) and (is_list or any(isinstance(item, A) for item in value)):
        return "[" + ",".join(_argument_label(v, is_list and isinstance(v, tuple), False, full) for v in value) + "]"
    return described(value)


def _fill(value, param, rng):
    if isinstance(value, A):
        return value.make(rng)
    kind = param.kind if param is not None else "plain"
    if kind in ("tensor", "optional", "number") and isinstance(value, tuple):
        return A(value).make(rng)
    if kind == "list" and isinstance(value, (list, tuple)):
        return [A(v).make(rng) if isinstance(v, tuple) else _fill(v, None, rng) for v in value]
    if isinstance(value, list):
        return [_fill(v, None, rng) for v in value]
    if type(value) is tuple and any(isinstance(v, A) for v in value):
        return tuple(_fill(v, None, rng) for v in value)
    return value


def row(name: str, *samples: S, covers=(), **options) -> None:
    """Put an op into the table."""
    if name in ROWS:
        raise RuntimeError(f"{name} has two rows")
    if name not in REGISTRY:
        raise RuntimeError(f"a row for '{name}', which is no op")
    if not samples:
        raise RuntimeError(f"the row of {name} has no samples")
    family = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]
    ROWS[name] = Row(name, samples, covers=tuple(covers), family=family, **options)
    for other in covers:
        COVERED[other] = name


def public_name(name: str) -> str | None:
    """The dotted public name of an op, e.g. "linalg.svd" or "Tensor.expand"; None for an internal one."""
    record = REGISTRY[name]
    for space in sorted(NAMESPACES, key=lambda s: (s == "Tensor", s)):
        for public_, found in NAMESPACES[space].items():
            if found is record:
                return public_ if space == "torch" else f"{space}.{public_}"
    return None


def public(name: str):
    """The op's public function under torchlite."""
    return function_for(REGISTRY[name])


def to_tensors(tree, device="cpu", requires_grad=False, laid_out=np.copy, library=torch):
    """Arrays in a tree as tensors, in memory as `laid_out` gives them; the float ones may require grad."""
    if isinstance(tree, np.ndarray):
        made = library.from_numpy(laid_out(tree))
        if library is torch:
            made = made.to(device)
        if requires_grad and tree.dtype.kind in "fc":
            made.requires_grad_()
        return made
    if isinstance(tree, (list, tuple)):
        return type(tree)(to_tensors(item, device, requires_grad, laid_out, library) for item in tree)
    if isinstance(tree, dict):
        return {k: to_tensors(v, device, requires_grad, laid_out, library) for k, v in tree.items()}
    return tree


def spread_out(array: np.ndarray) -> np.ndarray:
    """The same values with gaps between the elements and dimensions in another memory order."""
    if array.ndim == 0:
        return np.stack([array, array])[1:].reshape(())
    big = np.zeros(tuple(2 * n for n in reversed(array.shape)), array.dtype)
    view = big.transpose()[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


ORDERS = 6  # all of three dimensions


def reordered(number: int) -> Callable[[np.ndarray], np.ndarray]:
    """A layout: the same values without gaps, dimensions in one of ORDERS orders."""

    def laid_out(array: np.ndarray) -> np.ndarray:
        orders = list(itertools.permutations(range(array.ndim)))
        order = orders[number * max(len(orders) // ORDERS, 1) % len(orders)]
        return array.transpose(order).copy("C").transpose(np.argsort(order))

    return laid_out


def leaves(tree) -> list:
    """The tensors of a tree, in order."""
    if hasattr(tree, "detach"):
        return [tree]
    if isinstance(tree, (list, tuple)):
        return [leaf for item in tree for leaf in leaves(item)]
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in leaves(item)]
    return []


def load_rows() -> None:
    """Import every family's rows."""
    from . import definitions

    for info in pkgutil.iter_modules(definitions.__path__):
        importlib.import_module(f"{definitions.__name__}.{info.name}")


def in_dtype(tree, dtype):
    """The arrays of floats in a tree as another dtype; as they are for ""."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(in_dtype(item, dtype) for item in tree)
    if isinstance(tree, dict):
        return {k: in_dtype(v, dtype) for k, v in tree.items()}
    if not dtype or getattr(getattr(tree, "dtype", None), "kind", "") != "f":
        return tree
    if dtype == "bfloat16":
        import ml_dtypes

        return tree.astype(ml_dtypes.bfloat16)
    return tree.astype(dtype)


def run_through(row, args, kwargs):
    """Call a row's op with tensors, go backward from each result that has a history, and wait for all of them."""
    torch.manual_seed(0)
    results = [r for r in leaves(row.function()(*args, **kwargs)) if isinstance(r, torch.Tensor)]
    for result in results:
        if result.requires_grad:
            result.backward(torch.ones_like(result), retain_graph=True)
    for result in results:
        result.cpu()
