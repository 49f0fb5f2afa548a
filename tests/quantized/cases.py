"""Programs with quantized tensors, for torchlite and for PyTorch (`tools/record_quantized_tensors.py`)."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

ANSWERS = pathlib.Path(__file__).with_name("answers.json")
WRITTEN = pathlib.Path(__file__).with_name("written_by_pytorch.pt")
ZERO_POINTS = {"quint8": 100, "qint8": -5, "qint32": 7}
# Each takes torch, a quantized tensor of (2, 4, 6, 6), and the numbers that it was made of.
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "relu": lambda torch, q, x: torch.relu(q),
    "relu6": lambda torch, q, x: torch.nn.functional.relu6(q),
    "hardtanh": lambda torch, q, x: torch.nn.functional.hardtanh(q, -0.52, 0.73),
    "leaky_relu": lambda torch, q, x: torch.nn.functional.leaky_relu(q, 0.2),
    "gelu": lambda torch, q, x: torch.nn.functional.gelu(q),
    "sigmoid": lambda torch, q, x: torch.sigmoid(q),
    "tanh": lambda torch, q, x: torch.tanh(q),
    "hardsigmoid": lambda torch, q, x: torch.nn.functional.hardsigmoid(q),
    "clamp": lambda torch, q, x: q.clamp(-1, 1),
    "clamp min": lambda torch, q, x: q.clamp(min=0.0),
    "max_pool2d": lambda torch, q, x: torch.nn.functional.max_pool2d(q, 3, 1, 1),
    "max_pool1d": lambda torch, q, x: torch.nn.functional.max_pool1d(q[0], 2),
    "avg_pool2d": lambda torch, q, x: torch.nn.functional.avg_pool2d(q, 2),
    "adaptive_avg_pool2d": lambda torch, q, x: torch.nn.functional.adaptive_avg_pool2d(q, (3, 2)),
    "nearest": lambda torch, q, x: torch.nn.functional.interpolate(q, scale_factor=2, mode="nearest"),
    "bilinear": lambda torch, q, x: torch.nn.functional.interpolate(q, size=(9, 5), mode="bilinear"),
    "mean": lambda torch, q, x: q.mean((2, 3)),
    "mean keepdim": lambda torch, q, x: q.mean(1, keepdim=True),
    "std": lambda torch, q, x: q.std(1),
    "max": lambda torch, q, x: q.max(),
    "max dim": lambda torch, q, x: torch.max(q, 1),
    "min": lambda torch, q, x: q.min(),
    "sort": lambda torch, q, x: q[0, 0].sort(dim=-1, stable=True),
    "topk": lambda torch, q, x: q.topk(2)[0],
    "eq": lambda torch, q, x: q == q,
    "lt": lambda torch, q, x: q < 0.31,
    "ge": lambda torch, q, x: torch.ge(q, x),
    "equal": lambda torch, q, x: torch.equal(q, q.clone()),
    "flip": lambda torch, q, x: q.flip(1),
    "permute": lambda torch, q, x: q.permute(0, 2, 3, 1),
    "channels_last": lambda torch, q, x: q.contiguous(memory_format=torch.channels_last),
    "transpose": lambda torch, q, x: q.transpose(0, 1),
    "unfold": lambda torch, q, x: q.unfold(2, 2, 2),
    "stack": lambda torch, q, x: torch.stack([q, q], 1),
    "cat": lambda torch, q, x: torch.cat([q, torch.quantize_per_tensor(x, 0.1, 3, q.dtype)], 1),
    "slice": lambda torch, q, x: q[:, 1:3],
    "index": lambda torch, q, x: q[..., torch.tensor([0, 2])],
    "mask": lambda torch, q, x: q[x > 1],
    "index_select": lambda torch, q, x: q.index_select(1, torch.tensor([2, 0])),
    "flatten": lambda torch, q, x: q.flatten(1),
    "view": lambda torch, q, x: q.view(2, -1),
    "expand": lambda torch, q, x: q[:1].expand(3, 4, 6, 6),
    "repeat": lambda torch, q, x: q.repeat(2, 1, 1, 1),
    "squeeze": lambda torch, q, x: q[:1].squeeze(0),
    "unsqueeze_": lambda torch, q, x: q.clone().unsqueeze_(0),
    "chunk": lambda torch, q, x: q.chunk(2, 1),
    "split": lambda torch, q, x: q.split(1, 0),
    "unbind": lambda torch, q, x: q.unbind(1),
    "masked_fill": lambda torch, q, x: q.masked_fill(x > 0, 1.0),
    "reflect": lambda torch, q, x: torch.nn.functional.pad(q, (1, 1, 1, 1), mode="reflect"),
    "ones_like": lambda torch, q, x: torch.ones_like(q),
    "full_like": lambda torch, q, x: torch.full_like(q, 2.0),
    "fill_": lambda torch, q, x: q.clone().fill_(0.51),
    "copy_": lambda torch, q, x: q.clone().copy_(x * 2),
    "relu_": lambda torch, q, x: q.clone().relu_(),
    "dequantize": lambda torch, q, x: q.dequantize(),
    "item": lambda torch, q, x: q[0, 0, 0, 0].item(),
    "repr": lambda torch, q, x: repr(q[0, 0]),
    "type": lambda torch, q, x: q.type(),
    "channel repr": lambda torch, q, x: repr(per_channel(torch, q, x)[0]),
    "channels": lambda torch, q, x: per_channel(torch, q, x).int_repr(),
    "channel numbers": lambda torch, q, x: per_channel(torch, q, x).dequantize(),
    "channel unsqueeze": lambda torch, q, x: per_channel(torch, q, x).unsqueeze(0).q_per_channel_axis(),
    "channel relu": lambda torch, q, x: torch.relu(per_channel(torch, q, x)),
    "channel permute": lambda torch, q, x: per_channel(torch, q, x).permute(1, 0, 2, 3),
    "channel cat": lambda torch, q, x: torch.cat([per_channel(torch, q, x)] * 2),
    "float channels": lambda torch, q, x: torch.quantize_per_channel(
        x, torch.tensor([0.1, 0.2]), torch.tensor([1.5, 2.0]), 0, torch.quint8
    ).int_repr(),
    "dynamic": lambda torch, q, x: torch.quantize_per_tensor_dynamic(x, torch.qint8, True),
    "dynamic unsigned": lambda torch, q, x: torch.quantize_per_tensor_dynamic(x + 9, torch.quint8, False),
    "zero point": lambda torch, q, x: torch.quantize_per_tensor(x, 0.1, 300, torch.quint8),
    "double": lambda torch, q, x: torch.quantize_per_tensor(x.double(), 0.1, 3, torch.quint8),
    "plain dtype": lambda torch, q, x: torch.quantize_per_tensor(x, 0.1, 3, torch.int8),
    "few scales": lambda torch, q, x: torch.quantize_per_channel(
        x, torch.tensor([0.1]), torch.tensor([1]), 0, torch.qint8
    ),
    "no axis": lambda torch, q, x: torch.quantize_per_channel(x, torch.ones(2), torch.ones(2).int(), 5, torch.qint8),
    "int_repr of floats": lambda torch, q, x: x.int_repr(),
    "q_scale of channels": lambda torch, q, x: per_channel(torch, q, x).q_scale(),
    "numpy": lambda torch, q, x: q.numpy(),
    "tolist": lambda torch, q, x: q.tolist(),
    "float": lambda torch, q, x: q.float(),
    "zeros_like": lambda torch, q, x: torch.zeros_like(q),
    "copy to floats": lambda torch, q, x: torch.empty(2, 4, 6, 6).copy_(q),
    "sum": lambda torch, q, x: q.sum(),
}


def per_channel(torch: Any, q: Any, x: Any) -> Any:
    scales, zero_points = torch.tensor([0.1, 0.037]), torch.tensor([1, 2])
    return torch.quantize_per_channel(x, scales, zero_points, 0, torch.qint8)


def numbers(torch: Any) -> Any:
    return torch.from_numpy(np.random.default_rng(0).normal(size=(2, 4, 6, 6)).astype(np.float32) * 2)


def as_json(torch: Any, value: Any) -> Any:
    """A result in a form that JSON keeps."""
    if isinstance(value, torch.Tensor) and value.is_quantized:
        parameters = [float(f"{value.q_scale():.6g}"), value.q_zero_point()]
        return [str(value.dtype), list(value.stride()), parameters, value.int_repr().cpu().tolist()]
    if isinstance(value, torch.Tensor):
        return [str(value.dtype).rpartition(".")[2], value.cpu().tolist()]
    return [as_json(torch, part) for part in value] if isinstance(value, (tuple, list)) else value


def answer(torch: Any, name: str, dtype: str, device: Any = "cpu") -> Any:
    """Return the result of a program, or its error."""
    x = numbers(torch).to(device)
    q = torch.quantize_per_tensor(x, 0.05, ZERO_POINTS[dtype], getattr(torch, dtype))
    return result_or_error(lambda: as_json(torch, PROGRAMS[name](torch, q, x)))


def result_or_error(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the type and the first line of its error."""
    try:
        return call()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return [type(error).__name__, str(error).partition("\n")[0].partition(" This could be")[0]]
