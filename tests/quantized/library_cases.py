"""Calls of `torch.ops.quantized`, for torchlite and for PyTorch (`tools/record_quantized_tensors.py`).

Inputs use 7 bits: with 8 bits some of PyTorch's kernels overflow.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import as_json, result_or_error

ANSWERS = pathlib.Path(__file__).with_name("library_answers.json")


class Inputs:
    """Tensors of the calls."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.random = torch, np.random.default_rng(1)
        self.x, self.image, self.bias = self.floats(3, 8), self.floats(2, 4, 7, 6), self.floats(6)
        self.qx = torch.quantize_per_tensor(self.x, 0.05, 60, torch.quint8)
        self.qy = torch.quantize_per_tensor(self.floats(3, 8), 0.04, 50, torch.quint8)
        self.qimage = torch.quantize_per_tensor(self.image, 0.05, 64, torch.quint8)
        self.weight = torch.quantize_per_tensor(self.floats(6, 8), 0.03, 0, torch.qint8)
        self.shifted = torch.quantize_per_tensor(self.floats(6, 8), 0.03, 3, torch.qint8)
        self.rows = self.per_channel(6, 8)
        self.table = torch.quantize_per_channel(
            self.floats(9, 4), self.floats(9).abs() * 0.1, self.floats(9), 0, torch.quint8
        )

    def floats(self, *shape: int) -> Any:
        return self.torch.from_numpy(self.random.normal(size=shape).astype(np.float32))

    def per_channel(self, *shape: int) -> Any:
        scales, zeros = self.floats(shape[0]).abs() * 0.02 + 0.01, self.torch.zeros(shape[0], dtype=self.torch.int64)
        return self.torch.quantize_per_channel(self.floats(*shape), scales, zeros, 0, self.torch.qint8)

    def conv(self, rank: int, groups: int = 2) -> Any:
        shape = (6, 4 // groups, *(3,) * rank)
        geometry = [2] + [1] * (rank - 1), [1] * rank, [1] * rank, groups
        prepack = getattr(self.torch.ops.quantized, f"conv{rank}d_prepack")
        return prepack(self.per_channel(*shape), self.bias, *geometry)

    def transposed(self) -> Any:
        weight = self.torch.quantize_per_tensor(self.floats(4, 3, 3, 3), 0.02, 0, self.torch.qint8)
        return self.torch.ops.quantized.conv_transpose2d_prepack(
            weight, self.bias[:3], [2, 2], [1, 1], [1, 1], [1, 1], 1
        )


CALLS: dict[str, Callable[[Any, Inputs], Any]] = {
    "linear": lambda ops, i: ops.linear(i.qx, ops.linear_prepack(i.weight, i.bias), 0.1, 100),
    "linear shifted": lambda ops, i: ops.linear(i.qx, ops.linear_prepack(i.shifted, i.bias), 0.1, 100),
    "linear rows": lambda ops, i: ops.linear(i.qx, ops.linear_prepack(i.rows, None), 0.1, 100),
    "linear_relu": lambda ops, i: ops.linear_relu(i.qx, ops.linear_prepack(i.rows, i.bias), 0.1, 100),
    "linear_dynamic": lambda ops, i: ops.linear_dynamic(i.x, ops.linear_prepack(i.rows, i.bias), True),
    "linear_relu_dynamic": lambda ops, i: ops.linear_relu_dynamic(i.x, ops.linear_prepack(i.weight, i.bias), True),
    "linear_unpack": lambda ops, i: ops.linear_unpack(ops.linear_prepack(i.weight, i.bias)),
    "conv1d": lambda ops, i: ops.conv1d(i.qimage[:, :, 0].contiguous(), i.conv(1), 0.1, 90),
    "conv2d": lambda ops, i: ops.conv2d(i.qimage, i.conv(2), 0.1, 90),
    "conv2d_relu": lambda ops, i: ops.conv2d_relu(i.qimage, i.conv(2), 0.1, 90),
    "conv2d parts": lambda ops, i: [
        part(i.conv(2)) for part in (ops.conv2d_stride, ops.conv2d_padding, ops.conv2d_groups, ops.conv2d_transpose)
    ],
    "conv_transpose2d": lambda ops, i: ops.conv_transpose2d(i.qimage, i.transposed(), 0.1, 90),
    "add": lambda ops, i: ops.add(i.qx, i.qy, 0.1, 50),
    "add_relu": lambda ops, i: ops.add_relu(i.qx, i.qy, 0.1, 50),
    "add out": lambda ops, i: ops.add(i.qx, i.qy, out=i.torch.quantize_per_tensor(i.x, 0.1, 9, i.torch.quint8)),
    "mul": lambda ops, i: ops.mul(i.qx, i.qy, 0.1, 50),
    "mul_relu": lambda ops, i: ops.mul_relu(i.qx, i.qy, 0.1, 50),
    **{
        f"{name} {number}": lambda ops, i, name=name, number=number: getattr(ops, name)(i.qx, number)
        for name in ("add_scalar", "mul_scalar", "mul_scalar_relu")
        for number in (1.0, -3.0, 20.0, -20.0, 0.0, 2.5)
    },
    "cat": lambda ops, i: ops.cat([i.qx, i.qy], 0, 0.1, 9),
    "cat as the first": lambda ops, i: ops.cat([i.qx, i.qy], 1, None, None),
    "cat_relu": lambda ops, i: ops.cat_relu([i.qx, i.qy], 1, 0.1, 9),
    "hardswish": lambda ops, i: ops.hardswish(i.qx, 0.1, 9),
    "sigmoid": lambda ops, i: ops.sigmoid(i.qx, 0.01, 3),
    "softmax": lambda ops, i: ops.softmax(i.qx, 1, 1 / 256, 0),
    "elu": lambda ops, i: ops.elu(i.qx, 0.1, 100, 1.3),
    "celu": lambda ops, i: ops.celu(i.qx, 0.1, 100, 1.3),
    "leaky_relu": lambda ops, i: ops.leaky_relu(i.qx, 0.1, False, 0.1, 60),
    "relu6": lambda ops, i: ops.relu6(i.qx),
    "clamp": lambda ops, i: ops.clamp(i.qx, -1.0, 1.0),
    "layer_norm": lambda ops, i: ops.layer_norm(i.qx, [8], None, None, 1e-5, 0.05, 60),
    "group_norm": lambda ops, i: ops.group_norm(i.qimage, 2, None, None, 1e-5, 0.05, 60),
    "instance_norm": lambda ops, i: ops.instance_norm(i.qimage, i.bias[:4], i.bias[1:5], 1e-5, 0.05, 60),
    "batch_norm2d_relu": lambda ops, i: ops.batch_norm2d_relu(
        i.qimage, i.bias[:4], i.bias[1:5], i.bias[:4], i.bias[:4].abs(), 1e-5, 0.05, 60
    ),
    "matmul": lambda ops, i: ops.matmul(i.qx, i.qy.t(), 0.5, 60),
    "max_pool2d": lambda ops, i: ops.max_pool2d(i.qimage, [2, 2], [2, 2], [0, 0], [1, 1], False),
    "embedding_byte": lambda ops, i: ops.embedding_byte(
        ops.embedding_bag_prepack(i.table), i.torch.tensor([1, 8, 0])
    ),
    "embedding_bag_byte": lambda ops, i: ops.embedding_bag_byte(
        ops.embedding_bag_prepack(i.table), i.torch.tensor([1, 8, 0, 3]), i.torch.tensor([0, 1])
    ),
    "floats as a weight": lambda ops, i: ops.linear_prepack(i.x, None),
    "floats as an input": lambda ops, i: ops.linear(i.x, ops.linear_prepack(i.weight, None), 0.1, 1),
    "str": lambda ops, i: str(ops.linear_prepack(i.weight, None)),
}  # fmt: skip


def answer(torch: Any, name: str) -> Any:
    """Return the result of a call, or its error."""

    def call() -> Any:
        found = CALLS[name](torch.ops.quantized, Inputs(torch))
        # PyTorch's convolutions give images with channels last.
        return as_json(torch, found.contiguous() if isinstance(found, torch.Tensor) else found)

    return result_or_error(call)
