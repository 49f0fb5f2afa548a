"""Nodes that need no function of ours: what torch's own does with the same arguments."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torchlite as torch
from torchlite.nn import functional as F

from ._import.elementwise import CHECKED, DIRECT

MAX_GROWTH = 64  # elements for one of the inputs, up to which no function of ours has to check them
# Ops that functions of ours do, whose results are not larger than their inputs.
_SAME = {
    "BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization",
    "Identity", "Dropout", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Cast",
    "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "AveragePool", "Clip", "LeakyRelu", "Elu", "Selu", "HardSigmoid",
    "Gelu", "Swish", "Softmax", "LogSoftmax", "DepthToSpace", "SpaceToDepth",
}  # fmt: skip
_CONV = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}


def torch_equivalent(
    name: str, version: int, values: list, args: list, kwargs: dict[str, Any], host: set, known: KnownResult
) -> tuple[Any, tuple, dict] | None:
    """A function of torch and its arguments; None where it takes more than a call. `values` has constants as they are,
    `host` the nodes whose tensors may be on another device than the others', `known` what is known of the result.
    """
    if any(a in host for a in args if a.__class__.__name__ == "Node"):
        return None
    small = known.growth <= MAX_GROWTH
    if name in DIRECT and not kwargs and (len(args) == 1 or small):
        return DIRECT[name], tuple(args), {}
    if name == "MatMul" and small:
        return torch.matmul, tuple(args), {}
    if name in CHECKED and not kwargs and len(args) == 2:
        return CHECKED[name], tuple(args), {}
    if name in ("Softmax", "LogSoftmax") and version >= 13:
        return (torch.softmax if name == "Softmax" else torch.log_softmax), (args[0], kwargs.get("axis", -1)), {}
    if name == "Transpose" and "perm" in kwargs:
        return torch.permute, (args[0], kwargs["perm"]), {}
    if name == "Conv" and small:
        return _conv(values, args, kwargs)
    if name == "Gemm" and small:
        return _gemm(values, args, kwargs)
    return None


class KnownResult(NamedTuple):
    """What is known of a node's result before it runs.

    `growth` is how many elements it has at most for each one of the program's inputs, through nodes that nothing
    checks. A result that was checked, or comes from the file, has the most, so that what is larger is checked. `width`
    is the size of the last dimension, and `matrix` the shape of a constant that was transposed.
    """

    growth: float = 1.0
    width: int | None = None
    matrix: tuple[int, ...] | None = None


NOTHING, CHECKED_RESULT = KnownResult(), KnownResult(MAX_GROWTH)


def known_result_of(
    name: str, values: list, args: list, kwargs: dict[str, Any], known: dict[Any, KnownResult]
) -> KnownResult:
    """What is known of a node's result where torch's own function makes it."""
    data = args[:1] if name in ("Conv", "Gemm", "MatMul") else args
    growth = max((known.get(a, NOTHING).growth for a in data if a.__class__.__name__ == "Node"), default=MAX_GROWTH)
    array = getattr(values[1], "array", None) if len(values) > 1 else None
    if name == "Transpose" and hasattr(values[0], "array") and values[0].array.ndim == 2:
        turned = kwargs.get("perm", [1, 0]) == [1, 0]
        return KnownResult(growth, None, values[0].array.shape[::-1] if turned else values[0].array.shape)
    if name == "Conv":
        return KnownResult(_conv_growth(array, kwargs, growth))
    if name in ("Gemm", "MatMul"):
        if len(args) < 2:
            return KnownResult(math.inf)
        matrix = known.get(args[1], NOTHING).matrix if array is None else array.shape
        if matrix is None or len(matrix) != 2:
            return KnownResult(math.inf)
        columns, rows = matrix if kwargs.get("transB", 0) else matrix[::-1]
        return KnownResult(growth * columns / max(rows, 1), columns)
    if name in CHECKED and len(args) == 2:
        for value, other in ((values[0], args[1]), (values[1], args[0])):
            if other.__class__.__name__ != "Node":
                continue
            shape, found = getattr(getattr(value, "array", None), "shape", ()), known.get(other, NOTHING)
            if _is_single_element(value) and len(shape) < 2 or found.width is not None and shape == (found.width,):
                return KnownResult(found.growth, found.width)
        return KnownResult(math.inf)
    return KnownResult(growth)


def _conv_growth(array: Any, kwargs: dict[str, Any], growth: float) -> float:
    if array is None or array.ndim not in _CONV:
        return math.inf
    rank = array.ndim - 2
    pads, dilations = kwargs.get("pads") or [0] * 2 * rank, kwargs.get("dilations") or [1] * rank
    reach = [(k - 1) * d for k, d in zip(array.shape[2:], dilations, strict=False)]
    wide = any(a + b > r for a, b, r in zip(pads[:rank], pads[rank:], reach, strict=False))
    return math.inf if wide else growth * array.shape[0] / max(array.shape[1] * kwargs.get("group", 1), 1)


def known_result_after(name: str, known: KnownResult, plain: bool) -> KnownResult:
    """What is known of a node's result, by whether torch's own function makes it."""
    if name in _SAME or name.startswith("Reduce") or plain and known.growth <= MAX_GROWTH:
        return known
    return known._replace(growth=MAX_GROWTH)


def _is_single_element(value: Any) -> bool:
    """Whether a value is a constant of one element, with which a result is as large as its other input."""
    array = getattr(value, "array", None)
    return array is not None and array.size == 1


def _conv(values: list, args: list, kwargs: dict[str, Any]) -> tuple[Any, tuple, dict] | None:
    array = getattr(values[1], "array", None) if len(values) > 1 else None
    if array is None or array.ndim not in _CONV or kwargs.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    rank = array.ndim - 2
    pads = kwargs.get("pads") or [0] * 2 * rank
    if pads[:rank] != pads[rank:] or min(pads) < 0:
        return None
    bias = args[2] if len(args) > 2 else None
    strides, dilations = kwargs.get("strides") or [1] * rank, kwargs.get("dilations") or [1] * rank
    return _CONV[array.ndim], (args[0], args[1], bias, strides, pads[:rank], dilations, kwargs.get("group", 1)), {}


def _gemm(values: list, args: list, kwargs: dict[str, Any]) -> tuple[Any, tuple, dict] | None:
    plain = kwargs.get("alpha", 1.0) == 1 and kwargs.get("beta", 1.0) == 1 and not kwargs.get("transA", 0)
    bias = getattr(values[2], "array", None) if len(values) > 2 else None
    if not plain or not kwargs.get("transB", 0) or len(values) < 2:
        return None
    if len(values) > 2 and (bias is None or bias.ndim != 1):
        return None
    weight = getattr(values[1], "array", None)
    if weight is None or weight.dtype.kind != "f" or bias is not None and bias.size != weight.shape[0]:
        return None
    return F.linear, tuple(args[:3]), {}
