"""Which quantized layers and functions take the place of reference ones."""

from __future__ import annotations

import operator
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn import quantized as nnq
from torchlite.ao.nn.intrinsic import quantized as nniq
from torchlite.ao.nn.quantized import dynamic as nnqd
from torchlite.ao.nn.quantized import reference as nnqr
from torchlite.nn import functional as F


def _named(module: Any, names: str) -> list[Any]:
    return [getattr(module, name) for name in names.split()]


_CONVS = "Conv1d Conv2d Conv3d"
STATIC: dict[Any, Any] = dict(zip(_named(nnqr, f"Linear {_CONVS}"), _named(nnq, f"Linear {_CONVS}"), strict=True))
_RECURRENT = "Linear GRUCell LSTMCell RNNCell LSTM GRU"
DYNAMIC: dict[Any, Any] = dict(zip(_named(nnqr, _RECURRENT), _named(nnqd, _RECURRENT), strict=True))
WEIGHT_ONLY: dict[Any, Any] = {nnqr.Embedding: nnq.Embedding, nnqr.EmbeddingBag: nnq.EmbeddingBag}
# By container: the reference layer in it, and the quantized class.
_INNER = {"Linear": nnqr.Linear, "Conv1d": nnqr.Conv1d, "Conv2d": nnqr.Conv2d, "Conv3d": nnqr.Conv3d}
STATIC_FUSED: dict[Any, tuple[Any, Any]] = {
    getattr(nni, f"{name}{end}"): (_INNER[f"{inner}{end}"], getattr(nniq, f"{name}{end}"))
    for name, inner, end in (
        ("LinearReLU", "Linear", ""), ("LinearLeakyReLU", "Linear", ""), ("LinearTanh", "Linear", ""),
        ("ConvReLU", "Conv", "1d"), ("ConvReLU", "Conv", "2d"), ("ConvReLU", "Conv", "3d"),
    )
}  # fmt: skip
TWO_INPUTS: dict[Any, tuple[Any, Any]] = {
    nni.ConvAdd2d: (nnqr.Conv2d, nniq.ConvAdd2d), nni.ConvAddReLU2d: (nnqr.Conv2d, nniq.ConvAddReLU2d),
}  # fmt: skip
DYNAMIC_FUSED: dict[Any, tuple[Any, Any]] = {nni.LinearReLU: (nnqr.Linear, nniq.dynamic.LinearReLU)}
# Layers with a scale of the output, but without a weight that an observer saw.
_SPECIAL = """BatchNorm2d BatchNorm3d ELU LeakyReLU Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm
    Dropout Softmax PReLU"""
_TRANSPOSED = "ConvTranspose1d ConvTranspose2d ConvTranspose3d"
SPECIAL: dict[Any, Any] = {
    **dict(zip(_named(nn, _SPECIAL), _named(nnq, _SPECIAL), strict=True)),
    **dict(zip(_named(nnqr, _TRANSPOSED), _named(nnq, _TRANSPOSED), strict=True)),
    **dict(zip(_named(nni, "BNReLU2d BNReLU3d"), _named(nniq, "BNReLU2d BNReLU3d"), strict=True)),
}
_FIXED = (
    {F.hardsigmoid, F.sigmoid, torch.sigmoid, torch.tanh},
    {"hardsigmoid", "hardsigmoid_", "sigmoid", "sigmoid_", "tanh", "tanh_"},
    {nn.Hardsigmoid, nn.Sigmoid, nn.Tanh, nn.Softmax},
)
DEFAULT: tuple[set[Any], set[Any], set[Any]] = (
    {F.elu, F.hardswish, F.instance_norm, F.layer_norm, F.leaky_relu, F.dropout},
    set(),
    set(SPECIAL) - {nn.Softmax},
)
_COPY = (
    {
        *_named(F, """adaptive_avg_pool2d adaptive_avg_pool3d hardtanh hardtanh_ interpolate max_pool1d max_pool2d
            max_pool3d relu relu6 avg_pool2d avg_pool3d"""),
        *_named(torch, "adaptive_avg_pool1d avg_pool1d clamp flatten mean channel_shuffle"), operator.floordiv,
    },
    {"clamp", "mean", "relu", "relu_"},
    set(_named(nn, """AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AvgPool1d AvgPool2d AvgPool3d Hardtanh
        MaxPool1d MaxPool2d MaxPool3d ReLU ReLU6 ChannelShuffle""")),
)  # fmt: skip
_SHAPE = (
    {
        *_named(torch, "narrow transpose repeat_interleave squeeze stack unsqueeze"), F.pixel_shuffle,
        F.pixel_unshuffle,
    },
    set("""contiguous detach detach_ permute repeat repeat_interleave reshape resize_ shape size squeeze squeeze_
        transpose unsqueeze unsqueeze_ view""".split()),
    {nn.Identity, nn.PixelShuffle, nn.PixelUnshuffle},
)  # fmt: skip
# Functions, methods and classes that compute on quantized tensors as they are.
_TUPLES: list[Any] = [_FIXED, DEFAULT, _COPY, _SHAPE, ({torch.cat}, set(), set())]
SPECIAL_NODES: tuple = tuple(set().union(*sets) for sets in zip(*_TUPLES, strict=True))
# Of these, half precision stays as it is.
NOT_IN_HALF: tuple = tuple(set().union(*sets) for sets in zip(*_TUPLES[:2], strict=True))


def _quantized(name: str) -> Any:
    return getattr(torch.ops.quantized, name)


def functions() -> dict[Any, tuple[Any, Any]]:
    """Functions with a weight: the quantized one, and that with a ReLU or None."""
    found: dict[Any, tuple[Any, Any]] = {F.linear: (_quantized("linear"), _quantized("linear_relu"))}
    for d in (1, 2, 3):
        found[getattr(F, f"conv{d}d")] = (_quantized(f"conv{d}d"), _quantized(f"conv{d}d_relu"))
        found[getattr(F, f"conv_transpose{d}d")] = (_quantized(f"conv_transpose{d}d"), None)
    return found


def dynamic_functions() -> dict[Any, tuple[Any, Any]]:
    """The same for inputs that are quantized by their range, by the dtypes of input and weight."""
    half, whole = (torch.float16, torch.float16), (torch.quint8, torch.qint8)
    return {
        (F.linear, *whole): (_quantized("linear_dynamic"), _quantized("linear_relu_dynamic")),
        (F.linear, *half): (_quantized("linear_dynamic_fp16"), _quantized("linear_relu_dynamic_fp16")),
        **{(getattr(F, f"conv{d}d"), *whole): (_quantized(f"conv{d}d_dynamic"), None) for d in (1, 2, 3)},
    }


BINARY = {
    operator.add: "add", torch.add: "add", operator.mul: "mul", torch.mul: "mul", operator.matmul: "matmul",
    torch.matmul: "matmul",
}  # fmt: skip
# Arguments of float functions that quantized ones lack, by name.
ARGUMENTS_TO_SKIP = {
    F.hardswish: ("inplace",), F.elu: ("inplace",), F.dropout: ("inplace",),
    F.instance_norm: ("running_mean", "running_var", "use_input_stats", "momentum"),
}  # fmt: skip
