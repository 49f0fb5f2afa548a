"""Calls of the op table's samples with one optional argument at another value, and what they answer in short.

`tools/record_changed_arguments.py` records PyTorch's answers; test_changed_arguments.py compares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchlite._dispatch import REGISTRY
from torchlite._dispatch.op_record import EMPTY

from .op_db import Row

# Other values of arguments whose default does not say what they may be, by name. "dtype:" names a dtype.
_BY_NAME: dict[str, tuple[Any, ...]] = {
    "dim": (0, 1), "axis": (0, 1), "dtype": ("dtype:float32", "dtype:complex64"), "reduction": ("sum", "none"),
    "norm": ("ortho", "forward"), "mode": ("reflect", "nearest", "bilinear", "max"),
    "rounding_mode": ("floor", "trunc"),
    "interpolation": ("lower", "higher"), "side": ("left", "right"), "approximate": ("tanh",), "UPLO": ("U",),
    "padding_mode": ("border", "reflection"), "pad_mode": ("constant",), "indexing": ("xy",), "ord": (1, 2),
    "correction": (0, 2), "n": (3, 5), "s": ((3,),), "atol": (0.5,), "rtol": (0.5,), "eps": (0.25,), "min": (0.5,),
    "max": (0.5,), "output_size": ((2,), (2, 2)), "stride": (2,), "padding": (1, "same"), "dilation": (2,),
    "groups": (2,), "bins": (3,), "range": ((-1.0, 1.0),), "p": (0.25, 3), "driver": ("gelsd", "gesvd"), "nan": (7.0,),
    "posinf": (7.0,), "neginf": (-7.0,), "prepend": (), "scale_factor": (2.0,), "size": ((6,), (6, 6)),
    "spacing": (2.0,), "padding_idx": (1,), "max_norm": (0.5,), "num_classes": (9,), "side_": (), "hop_length": (2,),
    "win_length": (3,), "tol": (0.9,), "full_matrices": (False, True), "k": (1, 2),
    "value": (0.5,), "divisor_override": (3,), "storage_offset": (1,), "length": (5,), "margin": (0.25,),
    "minlength": (12,), "repeats": (2,), "memory_format": ("format:preserve_format", "format:contiguous_format"),
    "layout": ("layout:strided",),
}  # fmt: skip
# Arguments that choose how, not what: none changes a value. `out` is tested elsewhere.
_LEFT_OUT = {"generator", "out", "device", "requires_grad", "pin_memory", "non_blocking", "layout"}
# The older forms of `reduction`, with a warning of their own (tests/nn/test_functional.py).
_LEFT_OUT |= {"size_average", "reduce"}


# Ops whose results have no values to compare: not initialised, random bases, and an order that is free.
_WITHOUT_VALUES = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "pca_lowrank",
    "svd_lowrank", "uniform_",
}  # fmt: skip


def changes(row: Row) -> Iterator[tuple[int, str, Any]]:
    """The sample, the argument's name, and its other value, for each call of a row."""
    record = REGISTRY[row.name]
    if row.name in _WITHOUT_VALUES:
        return
    for index in range(len(row.samples)):
        for p in record.params:
            if p.kind == "varargs" or p.default is EMPTY or p.name in _LEFT_OUT or p.kind in ("optional", "list"):
                continue
            for value in other_values(p.name, p.default):
                yield index, p.name, value


def other_values(name: str, default: Any) -> list[Any]:
    """Values that differ from a default."""
    if isinstance(default, bool):
        return [not default]
    found = [value for value in _BY_NAME.get(name, ()) if value != default]
    if found:
        return found
    if isinstance(default, int):
        return [default + 1]
    if isinstance(default, float):
        return [default / 2 + 0.25] if math.isfinite(default) else [0.5]
    return []


def as_argument(library: Any, value: Any) -> Any:
    """A value, in which text such as "dtype:float32" is the library's object."""
    if isinstance(value, str) and ":" in value:
        return getattr(library, value.partition(":")[2])
    return value


def with_change(row: Row, args: tuple, kwargs: dict, name: str, value: Any) -> tuple[tuple, dict] | None:
    """The arguments of a sample with one of them changed; None if an argument that follows it is given by position."""
    positions = [p.name for p in REGISTRY[row.name].params if not p.kwonly]
    if any(p.kind == "varargs" for p in REGISTRY[row.name].params):
        return args, {**kwargs, name: value}
    if name in positions and positions.index(name) < len(args):
        place = positions.index(name)
        return (*args[:place], value, *args[place + 1 :]), kwargs
    return args, {**kwargs, name: value}


def in_short(result: Any) -> str:
    """What a call answers: the dtype and shape of each tensor, and two sums of its elements; other values as text."""
    return " ".join(_leaf(leaf) for leaf in _parts(result))


def _parts(tree: Any) -> list[Any]:
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "numel"):
        return [part for item in tree for part in _parts(item)] or ["()"]
    return [tree]


def _leaf(leaf: Any) -> str:
    if not hasattr(leaf, "detach"):
        return f"{leaf:.5g}" if isinstance(leaf, float) else str(leaf).replace(" ", "")
    kind = str(leaf.dtype).rpartition(".")[2]
    array = leaf.detach().cpu().resolve_conj().resolve_neg()
    if kind == "bfloat16":
        array = array.float()
    data = np.asarray(array.numpy()).reshape(-1)
    data = data.astype(np.complex128 if data.dtype.kind == "c" else np.float64)
    data = np.where(np.isfinite(data), data, 12.5)
    weights = np.cos(np.arange(data.size) * 1.7 + 0.3)
    total = complex((data * weights).sum())
    return f"{kind}[{','.join(map(str, leaf.shape))}]{_number(total.real)},{_number(total.imag)}"


def _number(value: float) -> str:
    return f"{value:.6g}" if abs(value) > 1e-9 else "0"


def alike(ours: str, theirs: str, tolerance: float = 2e-3) -> bool:
    """True if two answers are the same but for rounding."""
    left, right = ours.split(" "), theirs.split(" ")
    return len(left) == len(right) and all(_leaf_alike(a, b, tolerance) for a, b in zip(left, right, strict=True))


def _leaf_alike(ours: str, theirs: str, tolerance: float) -> bool:
    if "]" not in ours or "]" not in theirs:
        return ours == theirs
    (head, _, sums), (other, _, others) = ours.partition("]"), theirs.partition("]")
    pairs = zip(map(float, sums.split(",")), map(float, others.split(",")), strict=True)
    return head == other and all(abs(a - b) <= tolerance * (1 + max(abs(a), abs(b))) for a, b in pairs)
