"""Weights of linear layers as the blocks that are not zero, and `torch.ops.sparse`, which computes with them."""

from __future__ import annotations

from typing import Any

import torchlite as torch
import torchlite.nn.functional as F

from .._settings.backend_flags import FLAGS
from .packed_parameters import LinearPackedParams
from .quantized_tensor import is_quantized, wrap_quantized
from .quantizers import PerChannel, PerTensor

_TYPE = "__torch__.torch.classes.sparse.LinearPackedParamsBase"
_VERSION = 2  # of the state
_BLOCKS = ((1, 4), (8, 1))


class SparseLinearPackedParams:
    """The weight, of shape ``(out_features, in_features)``, and the bias of a linear layer. Its state has the blocks
    of the weight that differ from the zero point.
    """

    _schema_type = _TYPE
    _tl_is_immutable = True  # graphs read them as constants

    def __init__(self, weight: Any, bias: Any, rows: int, columns: int) -> None:
        if not is_quantized(weight) or weight.dtype is not torch.qint8:
            raise RuntimeError("sparse::qlinear_prepack: expected a weight of torch.qint8")
        if weight.ndim != 2:
            raise RuntimeError("The weight tensor for quantized::sparse_linear should be 2-dimensional.")
        if (rows, columns) not in _BLOCKS:
            raise RuntimeError(f"Unsupported block size {rows}x{columns}: blocks have 1x4 or 8x1 elements")
        self._block = rows, columns
        self._dense = LinearPackedParams(weight, bias)

    def __repr__(self) -> str:
        return f"ScriptObject <{self._schema_type}>"

    def _tl_parts(self) -> list[Any]:
        return self._dense._tl_parts()

    def unpack(self) -> tuple[Any, Any, list[int]]:
        """Return the weight, the bias, and the rows and columns of a block."""
        return *self._dense.unpack(), [*self._block]

    def __call__(self, x: Any, scale: float, zero_point: int) -> Any:
        """The quantized result of the layer."""
        return self._dense(x, scale, zero_point)

    def dynamic(self, x: Any) -> Any:
        """The result for float32 numbers, which are quantized by their range."""
        return self._dense.dynamic(x)

    def __getstate__(self) -> tuple[tuple[Any, ...], str]:
        weight, bias = self._dense.unpack()
        quantizer, whole = weight._quantizer, isinstance(weight._quantizer, PerTensor)
        scales = torch.tensor([quantizer.scale]) if whole else quantizer.scales.to(torch.float32)
        zeros = torch.tensor([quantizer.zero_point]) if whole else quantizer.zero_points
        levels = weight._values.to(torch.int16)
        padding = [-levels.shape[1] % self._block[1], -levels.shape[0] % self._block[0]]
        offsets = F.pad(levels - zeros.to(torch.int16).view(-1, 1), (0, padding[0], 0, padding[1]))
        blocks = _tiles(offsets, self._block)
        chosen = (blocks != 0).flatten(2).any(2)
        counts = torch.cat([torch.zeros(1, dtype=torch.int64), chosen.sum(1).cumsum(0)])
        places = chosen.nonzero()[:, 1]
        # Elements behind the edges have the zero point of their row.
        rows = F.pad(zeros.to(torch.int16).expand(levels.shape[0]), (0, padding[1])).view(-1, 1)
        numbers = (_tiles(offsets + rows, self._block)[chosen] + 128).to(torch.uint8).flatten()
        index = _index_dtype(max([*counts.tolist(), *places.tolist()]))
        state = (
            _VERSION, bias, *self._block, scales, zeros.to(torch.int8), whole, counts.to(index), places.to(index),
            numbers, *weight.shape,
        )  # fmt: skip
        return state, self._schema_type

    def __setstate__(self, state: tuple[tuple[Any, ...], str]) -> None:
        _, bias, rows, columns, scales, zeros, whole, counts, places, numbers, outputs, inputs = state[0]
        tall, wide = -(-outputs // rows), -(-inputs // columns)
        zero = F.pad(zeros.to(torch.int16).expand(outputs), (0, tall * rows - outputs))
        blocks = _tiles(zero.view(-1, 1).expand(-1, wide * columns), (rows, columns)).clone()
        counts = counts.to(torch.int64)
        where = torch.repeat_interleave(torch.arange(tall), counts[1:] - counts[:-1])
        found = numbers.to(torch.int16).view(-1, rows, columns) - 128
        blocks[where, places.to(torch.int64)] = found
        levels = blocks.transpose(1, 2).reshape(tall * rows, wide * columns)[:outputs, :inputs].to(torch.int8)
        quantizer: Any = PerTensor(float(scales[0]), int(zeros[0]))
        if not whole:
            quantizer = PerChannel(scales.to(torch.float64), zeros.to(torch.int64), 0)
        self.__init__(wrap_quantized(levels.contiguous(), quantizer), bias, rows, columns)  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.__getstate__(),)


def _restore(state: Any) -> SparseLinearPackedParams:
    made = SparseLinearPackedParams.__new__(SparseLinearPackedParams)
    made.__setstate__(state)
    return made


def _tiles(matrix: Any, block: tuple[int, int]) -> Any:
    """Return the blocks of a matrix, of shape ``(down, across, rows, columns)``."""
    return matrix.unfold(0, block[0], block[0]).unfold(1, block[1], block[1])


def _index_dtype(greatest: int) -> Any:
    """Return the dtype of indices."""
    return torch.int32 if FLAGS.quantized_engine == "fbgemm" else _least_dtype(greatest)


def _least_dtype(greatest: int) -> Any:
    return next(dtype for dtype in (torch.int8, torch.int16, torch.int32) if greatest <= torch.iinfo(dtype).max)


def _relu(x: Any) -> Any:
    return torch.relu(x)


OPS: dict[str, Any] = {
    "qlinear_prepack(Tensor W, Tensor? B, int out_features_block_size, int in_features_block_size) "
    f"-> {_TYPE} W_prepack":
        SparseLinearPackedParams,
    f"qlinear_unpack({_TYPE} W_prepack) -> (Tensor W_origin, Tensor? B_origin, int[] block_pattern)":
        lambda packed: packed.unpack(),
    f"qlinear(Tensor X, {_TYPE} W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y":
        lambda x, packed, scale, zero_point: packed(x, scale, zero_point),
    f"qlinear_relu(Tensor X, {_TYPE} W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y":
        lambda x, packed, scale, zero_point: _relu(packed(x, scale, zero_point)),
    f"qlinear_dynamic(Tensor X, {_TYPE} W_prepack) -> Tensor Y": lambda x, packed: packed.dynamic(x),
    f"qlinear_relu_dynamic(Tensor X, {_TYPE} W_prepack) -> Tensor Y": lambda x, packed: _relu(packed.dynamic(x)),
}  # fmt: skip


def declare_sparse_ops() -> None:
    """Define the ops, at the first use of `torch.ops.sparse`."""
    from .._library.library_op import define_op

    for schema, function in OPS.items():
        define_op("sparse", schema).kernels["CompositeExplicitAutograd"] = function
