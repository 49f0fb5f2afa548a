"""Maps ONNX nodes to equivalent torch functions, for nodes that need no function of `_import`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torchlite as torch
from torchlite.nn import functional as F

from ._import.elementwise import CHECKED, DIRECT
from ._import.lazy_functions import torch_function

MAX_GROWTH = 64  # maximum growth per input element without size check
# Ops whose results are not larger than their inputs.
_NEVER_LARGER = {
    "BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization",
    "Identity", "Dropout", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Cast",
    "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "AveragePool", "Clip", "LeakyRelu", "Elu", "Selu", "HardSigmoid",
    "Gelu", "Swish", "Softmax", "LogSoftmax", "DepthToSpace", "SpaceToDepth",
}  # fmt: skip
_CONV = {3: "F.conv1d", 4: "F.conv2d", 5: "F.conv3d"}  # by the number of the weight's dimensions


def torch_equivalent(
    name: str, version: int, values: list, args: list, kwargs: dict[str, Any], host: set, known: KnownResult
) -> tuple[Any, tuple, dict] | None:
    """Return a torch function and its arguments, None if one call is not enough. `values` includes constants, `host`
    has nodes possibly on another device, `known` has properties of results.
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
        return _torch_conv(values, args, kwargs)
    if name == "Gemm" and small:
        return _torch_gemm(values, args, kwargs)
    return None


class KnownResult(NamedTuple):
    """Static properties of a node's result.

    `growth`: maximum elements per program input element through unchecked nodes; the maximum for checked results and
    file constants, so larger ones are checked. `width`: size of the last dimension. `matrix`: shape of a transposed
    constant.
    """

    growth: float = 1.0
    width: int | None = None
    matrix: tuple[int, ...] | None = None


NOTHING, CHECKED_RESULT = KnownResult(), KnownResult(MAX_GROWTH)


def known_result_of(
    name: str, values: list, args: list, kwargs: dict[str, Any], known: dict[Any, KnownResult]
) -> KnownResult:
    """Return the properties of the result of a torch function."""
    data = args[:1] if name in ("Conv", "Gemm", "MatMul") else args
    growth = max((known.get(a, NOTHING).growth for a in data if a.__class__.__name__ == "Node"), default=MAX_GROWTH)
    array = getattr(values[1], "array", None) if len(values) > 1 else None
    if name == "Transpose" and hasattr(values[0], "array") and values[0].array.ndim == 2:
        turned = kwargs.get("perm", [1, 0]) == [1, 0]
        return KnownResult(growth, None, values[0].array.shape[::-1] if turned else values[0].array.shape)
    if name == "Conv":
        return KnownResult(_bound_conv_growth(array, kwargs, growth))
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


def _bound_conv_growth(array: Any, kwargs: dict[str, Any], growth: float) -> float:
    if array is None or array.ndim not in _CONV:
        return math.inf
    rank = array.ndim - 2
    pads, dilations = kwargs.get("pads") or [0] * 2 * rank, kwargs.get("dilations") or [1] * rank
    reach = [(k - 1) * d for k, d in zip(array.shape[2:], dilations, strict=False)]
    wide = any(a + b > r for a, b, r in zip(pads[:rank], pads[rank:], reach, strict=False))
    return math.inf if wide else growth * array.shape[0] / max(array.shape[1] * kwargs.get("group", 1), 1)


def known_result_after(name: str, known: KnownResult, plain: bool) -> KnownResult:
    """Return the properties of a node's result, by whether a torch function computes it."""
    if name in _NEVER_LARGER or name.startswith("Reduce") or plain and known.growth <= MAX_GROWTH:
        return known
    return known._replace(growth=MAX_GROWTH)


def _is_single_element(value: Any) -> bool:
    """True if a value is a one-element constant, so the result is as large as the other input."""
    array = getattr(value, "array", None)
    return array is not None and array.size == 1


def _torch_conv(values: list, args: list, kwargs: dict[str, Any]) -> tuple[Any, tuple, dict] | None:
    array = getattr(values[1], "array", None) if len(values) > 1 else None
    if array is None or array.ndim not in _CONV or kwargs.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    if array.shape[1] * kwargs.get("group", 1) == 1:  # the function of `_import` makes its strides row-major
        return None
    rank = array.ndim - 2
    pads = kwargs.get("pads") or [0] * 2 * rank
    if pads[:rank] != pads[rank:] or min(pads) < 0:
        return None
    bias = args[2] if len(args) > 2 else None
    strides, dilations = kwargs.get("strides") or [1] * rank, kwargs.get("dilations") or [1] * rank
    return (
        torch_function(_CONV[array.ndim]),
        (args[0], args[1], bias, strides, pads[:rank], dilations, kwargs.get("group", 1)),
        {},
    )


def _torch_gemm(values: list, args: list, kwargs: dict[str, Any]) -> tuple[Any, tuple, dict] | None:
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
