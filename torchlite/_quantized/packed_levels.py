"""Tensors of `quint4x2` and `quint2x4`: levels of four and two bits, packed along the whole memory.

The first level is in the low bits of a byte. Rules of ops see the levels with a byte each. As in PyTorch, there are few
ops: views, comparisons and the numbers. Views are copies, as nothing writes to such a tensor.
"""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch

from .._dispatch.autograd_graph import alias_meta
from .._dispatch.dispatch_state import GLOBALS
from .quantized_tensor import QuantizedData, QuantizedTensor, wrap_quantized
from .quantizers import BITS

# The ops that PyTorch has for these tensors.
ALLOWED = frozenset(
    ("alias", "detach", "contiguous", "_view", "reshape", "unsqueeze", "squeeze", "select", "_slice", "getitem",
     "_index", "equal", "eq", "ne", "lt", "le", "gt", "ge", "empty_like", "_move", "to", "resolve_conj", "resolve_neg")
)  # fmt: skip

_KERNELS = {"clone": "copy_kernel", "fill_": "Copy", "relu": "qrelu", "cat": "qcat"}  # names in PyTorch's errors


class PackedData(QuantizedData):
    """Levels of fewer than eight bits: their bytes, a tensor of one dimension, the shape and the quantizer."""

    __slots__ = ("packed", "dims", "bits")

    def __init__(self, packed: Any, shape: Any, quantizer: Any, bits: int) -> None:
        self.packed, self.dims, self.bits, self.quantizer = packed, tuple(shape), bits, quantizer

    shape = property(lambda self: self.dims)
    ndim = property(lambda self: len(self.dims))
    dtype = property(lambda self: self.packed._tl_array.dtype)
    itemsize = property(lambda self: 1)

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(math.prod(self.dims[place + 1 :]) for place in range(len(self.dims)))

    @property  # type: ignore[override]
    def values(self) -> Any:
        """The levels, a byte each."""
        return unpack(self.packed, self.bits, math.prod(self.dims)).reshape(self.dims)

    def rows(self, places: Any) -> Any:
        """The levels of some rows, a byte each."""
        count, columns = self.dims[0], math.prod(self.dims[1:])
        if columns * self.bits % 8:
            return self.values.reshape(count, columns)[places]
        size = columns * self.bits // 8
        chosen = self.packed[: count * size].reshape(count, size)[places]
        return unpack(chosen.reshape(-1), self.bits, len(places) * columns).reshape(len(places), columns)


def pack(levels: Any, bits: int) -> Any:
    """Return levels as bytes."""
    each = 8 // bits
    flat = levels.reshape(-1)
    missing = -flat.numel() % each
    if missing:
        flat = torch.cat([flat, flat.new_zeros(missing)])
    parts = flat.reshape(-1, each)
    out = parts[:, 0]
    for place in range(1, each):
        out = out | parts[:, place] << bits * place
    return out


def unpack(packed: Any, bits: int, count: int) -> Any:
    """Return `count` levels, a byte each."""
    each = 8 // bits
    used = packed[: math.ceil(count / each)]
    parts = [used >> bits * place & (1 << bits) - 1 for place in range(each)]
    return torch.stack(parts, 1).reshape(-1)[:count]


def packed_size(shape: Any, bits: int) -> int:
    """Return the number of bytes that PyTorch allocates: those of whole rows."""
    if not shape:
        return 1
    return math.prod(shape[:-1]) * math.ceil(shape[-1] * bits / 8)


class PackedTensor(QuantizedTensor):
    """A tensor of `quint4x2` or `quint2x4`."""

    __slots__ = ()

    def untyped_storage(self) -> Any:
        return self._tl_array.packed.untyped_storage()

    def storage_offset(self) -> int:
        return 0

    def storage(self) -> Any:
        return self._tl_array.packed.storage()

    _typed_storage = storage

    def data_ptr(self) -> int:
        return self._tl_array.packed.data_ptr()

    _tl_address = data_ptr

    def is_contiguous(self, memory_format: Any = torch.contiguous_format) -> bool:
        return memory_format is torch.contiguous_format

    def is_shared(self) -> bool:
        return self._tl_array.packed.is_shared()

    def share_memory_(self) -> Any:
        self._tl_array.packed.share_memory_()
        return self

    def resize_(self, *sizes: Any, memory_format: Any = torch.contiguous_format) -> Any:
        raise NotImplementedError(f"torchlite does not resize tensors of {self.dtype}")

    def as_strided_(self, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
        raise NotImplementedError(f"torchlite has no strides of tensors of {self.dtype}")

    def detach(self) -> Any:
        data = self._tl_array
        out = wrap_packed(data.packed, data.dims, data.quantizer, self.dtype)
        out._tl_meta = alias_meta(self)
        return out

    @property
    def data(self) -> Any:
        return self.detach()

    def _copied_with_storage(self, memo: Any) -> Any:
        data = self._tl_array
        return wrap_packed(data.packed._copied_with_storage(memo), data.dims, data.quantizer.copied(), self.dtype)


PackedTensor.__name__ = PackedTensor.__qualname__ = "Tensor"
PackedTensor.__module__ = QuantizedTensor.__module__


def wrap_packed(packed: Any, shape: Any, quantizer: Any, dtype: Any) -> PackedTensor:
    """A tensor of packed levels."""
    GLOBALS["CLASS_RULES"] = True
    out: Any = object.__new__(PackedTensor)
    out._tl_array, out._tl_kernels, out.dtype, out._tl_node, out._tl_meta = (
        PackedData(packed, shape, quantizer, BITS[dtype]), packed._tl_kernels, dtype, None, None,
    )  # fmt: skip
    return out


def wrap_levels(levels: Any, quantizer: Any, dtype: Any) -> Any:
    """A quantized tensor of a dtype, of levels with a byte each."""
    if BITS[dtype] >= 8:
        return wrap_quantized(levels, quantizer)
    packed = pack(levels, BITS[dtype])
    missing = packed_size(levels.shape, BITS[dtype]) - packed.numel()
    if missing > 0:
        packed = torch.cat([packed, packed.new_zeros(missing)])
    return wrap_packed(packed, levels.shape, quantizer, dtype)


def is_packed(value: Any) -> bool:
    """True if a value is a tensor of `quint4x2` or `quint2x4`."""
    return isinstance(value, PackedTensor)


def run_on_bytes(run: Any, name: str, values: list) -> Any:
    """Run an op with packed operands on their levels. NotImplementedError for an op that there is none of."""
    first = next((value for value in values if is_packed(value)), None)
    if first is None:  # in a list
        first = next(part for value in values if isinstance(value, (list, tuple)) for part in value if is_packed(part))
    if name not in ALLOWED:
        name = _KERNELS.get(name, name)
        raise NotImplementedError(f"\"{name}\" not implemented for '{first.dtype.scalar_name}'")
    if name in ("alias", "detach", "contiguous", "resolve_conj", "resolve_neg"):
        return first.detach()
    given = [wrap_quantized(v._values, v._quantizer) if is_packed(v) else v for v in values]
    result = run(*given)
    if isinstance(result, QuantizedTensor):
        return wrap_levels(result._values, result._quantizer, first.dtype)
    return result
