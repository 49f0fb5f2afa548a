"""The data of sparse tensors, and their class.

A sparse tensor is a Tensor whose `_tl_array` is a `SparseData`: ordinary tensors with the indices and the values of the
specified elements. Its class is a subclass of Tensor, so generated functions do not take it for a plain tensor; the
general path looks up its rule (`op_dispatch.py`).
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

from .._dispatch.autograd_graph import alias_meta, autograd_meta_of, is_inference
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import GLOBALS, MODE
from .._dispatch.error_translation import no_backend_kernel_error
from .._tensor import Tensor
from .._types.layouts import (
    contiguous_format,
    layout,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)

COMPRESSED = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
ROW_COMPRESSED = (sparse_csr, sparse_bsr)
BLOCK_LAYOUTS = (sparse_bsr, sparse_bsc)
# How PyTorch's errors call the layouts.
LAYOUT_NAMES: dict[Any, str] = {
    strided: "Strided", sparse_coo: "Sparse", sparse_csr: "SparseCsr", sparse_csc: "SparseCsc",
    sparse_bsr: "SparseBsr", sparse_bsc: "SparseBsc",
}  # fmt: skip
_new = object.__new__


class SparseData:
    """The specified elements of a sparse tensor: `values`, and `parts`, their indices.

    COO: parts are (indices,), of shape (sparse_dim, nnz); values are (nnz, *dense sizes). Compressed: parts are the
    compressed and the plain indices, (*batch, rows + 1) and (*batch, nnz), values (*batch, nnz, *block, *dense sizes).
    All are plain tensors without history. `coalesced` applies to COO only: indices are unique and sorted.
    """

    __slots__ = ("layout", "shape", "parts", "values", "coalesced")
    base = None

    def __init__(self, kind: Any, shape, parts: tuple, values: Any, coalesced: bool = False):
        if math.prod(shape) >= 1 << 63:  # flat indices are int64
            raise RuntimeError("numel: integer multiplication overflow")
        self.layout, self.shape, self.parts, self.values, self.coalesced = kind, tuple(shape), parts, values, coalesced

    def over(self, values) -> SparseData:
        """Return the same indices with other values."""
        return SparseData(self.layout, self.shape, self.parts, values, self.coalesced)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self):
        return self.values._tl_array.dtype

    @property
    def itemsize(self) -> int:
        return self.values.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        return (0,) * len(self.shape)

    @property
    def nnz(self) -> int:
        return self.parts[-1].shape[-1]

    @property
    def batch(self) -> int:
        """Return the number of batch dimensions of a compressed tensor."""
        return 0 if self.layout is sparse_coo else self.parts[0].ndim - 1

    @property
    def sparse_dim(self) -> int:
        return self.parts[0].shape[0] if self.layout is sparse_coo else 2

    @property
    def dense_dim(self) -> int:
        return len(self.shape) - self.sparse_dim - self.batch

    @property
    def blocksize(self) -> tuple[int, int]:
        at = self.batch + 1
        return tuple(self.values.shape[at : at + 2]) if self.layout in BLOCK_LAYOUTS else (1, 1)

    def same_places(self, other: SparseData) -> bool:
        """True if the indices are the same tensors."""
        return self.layout is other.layout and all(
            a is b or a._tl_array is b._tl_array for a, b in zip(self.parts, other.parts, strict=True)
        )

    def mapped(self, function) -> SparseData:
        """The same with a function of each tensor."""
        parts = tuple(function(part) for part in self.parts)
        return SparseData(self.layout, self.shape, parts, function(self.values), self.coalesced)


def wrap_sparse(data: SparseData) -> SparseTensor:
    """A sparse tensor without history."""
    GLOBALS["SPARSE"] = GLOBALS["CLASS_RULES"] = True
    out: Any = _new(SparseTensor)
    values = data.values
    out._tl_array, out._tl_kernels, out.dtype, out._tl_node, out._tl_meta = (
        data,
        values._tl_kernels,
        values.dtype,
        None,
        None,
    )
    if MODE.inference:
        autograd_meta_of(out).inference = True
    return out


def no_kernel_error(name: str, tensor) -> NotImplementedError:
    """Return PyTorch's error for an op without a kernel for the tensor's layout."""
    return no_backend_kernel_error(name, {strided: "", sparse_coo: "Sparse"}.get(tensor.layout, "SparseCsr"), tensor)


def _raise_no_strides(tensor) -> NoReturn:
    raise RuntimeError(f"Sparse {tensor.layout.name[7:].upper()} tensors do not have strides")


class SparseTensor(Tensor):
    """A tensor that stores only its specified elements; the others are zero."""

    __slots__ = ()
    _tl_is_plain = True
    _tl_is_sparse = True
    _tl_rules = "sparse"

    @property
    def layout(self) -> layout:
        return self._tl_array.layout

    is_sparse = property(lambda self: self._tl_array.layout is sparse_coo)
    is_sparse_csr = property(lambda self: self._tl_array.layout is sparse_csr)

    def stride(self, dim=None):
        if self._tl_array.layout is not sparse_coo:
            _raise_no_strides(self)
        return (0,) * self._tl_array.ndim if dim is None else 0

    def storage_offset(self) -> int:
        return 0

    def untyped_storage(self):
        kind = "Sparse" if self._tl_array.layout is sparse_coo else "SparseCsr"
        raise NotImplementedError(f"Cannot access storage of {kind}TensorImpl")

    storage = _typed_storage = untyped_storage

    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    _tl_address = data_ptr

    @property
    def nbytes(self) -> int:
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the "
            "nbytes of the indices and values.  If you want the size of the  equivalent dense tensor, multiply numel() "
            "by element_size()"
        )

    def is_contiguous(self, memory_format=contiguous_format) -> bool:
        if self._tl_array.layout is not sparse_coo:
            raise RuntimeError(f"Sparse {self._tl_array.layout.name[7:].upper()} tensors do not have is_contiguous")
        return False

    def numpy(self, *, force: bool = False):
        kind = LAYOUT_NAMES[self._tl_array.layout]
        raise TypeError(f"can't convert {kind} layout tensor to numpy. Use Tensor.to_dense() first.")

    def tolist(self):
        self.data_ptr()

    def item(self):
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.to_dense().item()

    def __bool__(self) -> bool:
        return bool(self.to_dense()) if self.numel() == 1 else Tensor.__bool__(self)

    def __getitem__(self, index):
        return CALLBACKS.sparse("getitem")(self, index)

    def __setitem__(self, index, value):
        raise TypeError("Cannot assign to a sparse tensor")

    def type(self, dtype=None, non_blocking=False):
        if dtype is None:
            where = "" if self.is_cpu else f"{self.device.type}."
            kind = "sparse" if self._tl_array.layout is sparse_coo else "sparse_csr"
            return f"torch.{where}{kind}.{self.dtype.scalar_name}Tensor"
        return Tensor.type(self, dtype, non_blocking)

    def detach(self):
        out = wrap_sparse(self._tl_array)
        out._tl_meta = alias_meta(self)
        return out

    @property
    def data(self):
        out = wrap_sparse(self._tl_array)
        if is_inference(self):
            autograd_meta_of(out).inference = True
        return out

    @data.setter
    def data(self, value):
        Tensor.data.fset(self, value)  # type: ignore[attr-defined]

    def as_subclass(self, cls):
        if not issubclass(cls, SparseTensor) and cls.__module__.startswith("torchlite"):
            cls = SparseTensor
        return Tensor.as_subclass(self, cls)

    def to(self, *args, **kwargs):
        return CALLBACKS.sparse("sparse_to")(self, *args, **kwargs)

    share_memory_ = is_shared = untyped_storage

    def __dlpack__(self, **keywords):
        raise BufferError("Can't export tensors with layout other than torch.strided")

    def __repr__(self, *, tensor_contents=None) -> str:
        return ("Parameter containing:\n" if getattr(self, "_is_param", False) else "") + CALLBACKS.sparse(
            "sparse_repr"
        )(self)

    def _copied_with_storage(self, memo):
        return wrap_sparse(self._tl_array.mapped(lambda part: part.clone()))


SparseTensor.__name__ = SparseTensor.__qualname__ = "Tensor"
SparseTensor.__module__ = Tensor.__module__


def pickle_parts(tensor) -> tuple:
    """Return the layout of a sparse tensor and its parts, as PyTorch pickles them."""
    data = tensor._tl_array
    if data.layout is sparse_coo:
        return data.layout, (data.parts[0], data.values, tensor.shape, data.coalesced)
    return data.layout, (*data.parts, data.values, tensor.shape)


def is_sparse(value) -> bool:
    """True if a value is a sparse tensor."""
    return getattr(value, "_tl_is_sparse", False)
