"""Nodes that need no function of ours: what torch's own does with the same arguments."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch
from torchlite.nn import functional as F

from ._ops.elementwise import DIRECT

MOST_GROWTH = 4096  # elements for one of the inputs, up to which no function of ours has to check them
# Ops whose results are as large as values or attributes say, or many times their inputs.
_SIZED = {
    "ConstantOfShape", "Range", "Expand", "Tile", "Pad", "CenterCropPad", "Resize", "Upsample", "OneHot", "Multinomial",
    "RandomNormal", "RandomUniform", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix", "DFT", "STFT",
    "Col2Im", "MaxUnpool", "ConvTranspose", "AffineGrid", "RoiAlign", "MaxRoiPool", "Loop", "Scan", "Einsum",
    "TfIdfVectorizer", "EyeLike", "LRN",
}  # fmt: skip
_CONV = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}


def direct(
    name: str, version: int, values: list, args: list, kwargs: dict[str, Any], host: set, growth: float
) -> tuple[Any, tuple, dict] | None:
    """A function of torch and its arguments; None where it takes more than a call. `values` has constants as they are,
    `host` the nodes whose tensors may be on another device than the others', `growth` the result's (`grown`).
    """
    if any(a in host for a in args if a.__class__.__name__ == "Node"):
        return None
    if name in DIRECT and not kwargs and (len(args) == 1 or any(_one(v) for v in values)):
        return DIRECT[name], tuple(args), {}
    if name == "MatMul" and growth <= MOST_GROWTH:
        return torch.matmul, tuple(args), {}
    if name in ("Softmax", "LogSoftmax") and version >= 13:
        return (torch.softmax if name == "Softmax" else torch.log_softmax), (args[0], kwargs.get("axis", -1)), {}
    if name == "Transpose" and "perm" in kwargs:
        return torch.permute, (args[0], kwargs["perm"]), {}
    if name == "Conv" and growth <= MOST_GROWTH:
        return _conv(values, args, kwargs)
    if name == "Gemm" and growth <= MOST_GROWTH:
        return _gemm(values, args, kwargs)
    return None


def grown(name: str, values: list, kwargs: dict[str, Any], growth: float) -> float:
    """How many elements a layer's result has for each one that its input's source had, at most: its weight says it."""
    array = getattr(values[1], "array", None) if len(values) > 1 else None
    if name == "Conv" and array is not None and array.ndim in _CONV:
        rank = array.ndim - 2
        pads, dilations = kwargs.get("pads") or [0] * 2 * rank, kwargs.get("dilations") or [1] * rank
        reach = [(k - 1) * d for k, d in zip(array.shape[2:], dilations, strict=False)]
        wide = any(a + b > r for a, b, r in zip(pads[:rank], pads[rank:], reach, strict=False))
        return math.inf if wide else growth * array.shape[0] / max(array.shape[1] * kwargs.get("group", 1), 1)
    if name in ("Gemm", "MatMul") and array is not None and array.ndim == 2:
        after, before = array.shape if kwargs.get("transB", 0) else array.shape[::-1]
        return growth * after / max(before, 1)
    return math.inf if name in _SIZED or name in ("Conv", "Gemm", "MatMul") else growth


def _one(value: Any) -> bool:
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
