"""BatchedTensor: the tensor inside `vmap`, shaped like one example, backed by the batch."""

from __future__ import annotations

from typing import Any

from .._dispatch import MODE, F
from .._dispatch.interceptors import show_only_within, stack
from .._tensor import Tensor
from .._types.layouts import contiguous_format
from ..autograd._tangents import assign_tangent, tangent_of, vmap_levels

_new = object.__new__
_NO_STORAGE_ERROR = (
    "Cannot access data pointer of Tensor that doesn't have storage: it stands for one example of a batch inside "
    "`vmap`. Either your tensor may have escaped from inside a function being vmapped over, or it has been given to "
    "what reads its memory. This is a user error, see https://pytorch.org/functorch/stable/ux_limitations.html"
)
_ESCAPED_ERROR = (
    "Either your tensor may have escaped from inside a function being vmapped and this is a user error (see "
    "https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal functorch error in "
    "`gen_vmap_plumbing` Please file an issue if it looks like the latter"
)
_ITEM_ERROR = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
    "internals, please file a bug report."
)
_CONTROL_FLOW_ERROR = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)


class BatchedArray:
    """Placeholder of a BatchedTensor's raw array: shape and strides of one example, without memory."""

    __slots__ = ("shape", "strides", "dtype")
    base = None

    def __init__(self, data, dim: int):
        self.shape = (*data.shape[:dim], *data.shape[dim + 1 :])
        self.strides = (*data.strides[:dim], *data.strides[dim + 1 :])
        self.dtype = data.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array_ufunc__(self, *args, **kwargs):
        raise RuntimeError(_ESCAPED_ERROR)

    __array__ = __array_function__ = __getitem__ = __setitem__ = __array_ufunc__

    def __getattr__(self, name: str) -> Any:
        if name in ("flags", "ctypes", "data_ptr") or name.startswith("__") and name != "__array__":
            raise AttributeError(name)
        raise RuntimeError(_ESCAPED_ERROR)


def _make_raising_method(words: str):
    def refuse(self, *args, **kwargs):
        raise RuntimeError(words)

    return refuse


class BatchedTensor(Tensor):
    """One example of a batch. `_value` is the batch, `_dim` its batch dimension, `_tl_level` the `vmap` level.

    Shape, strides, dtype and device are those of one example; history and version are the batch's.
    """

    __slots__ = ("_value", "_dim", "_tl_level")
    _is_plain = True
    _value: Any
    _dim: int

    @property
    def _tl_array(self) -> Any:
        return BatchedArray(self._value._tl_array, self._dim)

    _tl_memory = _tl_array

    @property
    def _tl_node(self) -> Any:
        return self._value._tl_node

    @property
    def _tl_meta(self) -> Any:
        return self._value._tl_meta

    @_tl_meta.setter
    def _tl_meta(self, value) -> None:
        self._value._tl_meta = value

    def _batch_like(self, batch):
        """Return a batch with the same batch dimension and level as a BatchedTensor."""
        return hide_batch_dim(batch, self._tl_level, self._dim)

    def _as_batch(self, tensor):
        """Return a tensor as a batch with this tensor's batch dimension."""
        with vmap_levels(tensor, apart=self._tl_level):
            out = expose_batch_dim(tensor, self._tl_level)
            return move_dim(out, 0, self._dim)

    def _to_same_levels(self, tensor):
        """Return a tensor as a BatchedTensor of the same levels."""
        inner = self._value if self._value._tl_level is None else None
        level = self._tl_level
        found = tensor if inner is not None else self._value._to_same_levels(tensor)
        with vmap_levels(found):
            return hide_batch_dim(F.clone(F.expand(F.unsqueeze(found, 0), level.size, *found.shape)), level)

    @property
    def grad(self):
        return None

    @property
    def data(self):
        raise RuntimeError("accessing `data` under vmap transform is not allowed")

    @data.setter
    def data(self, value):
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")

    def is_conj(self) -> bool:
        return self._value.is_conj()

    def is_neg(self) -> bool:
        return self._value.is_neg()

    def storage_offset(self) -> int:
        return self._value.storage_offset()

    def detach(self):
        return make_batched(self._value.detach(), self._dim, self._tl_level)

    def detach_(self):
        self._value.detach_()
        return self

    def register_hook(self, hook):
        level, dim = self._tl_level, self._dim

        def call_hook_on_batch(gradient):
            with level.again():
                answer = hook(None if gradient is None else make_batched(gradient, dim, level))
            return None if answer is None else move_dim(expose_batch_dim(answer, level), 0, dim)

        return self._value.register_hook(call_hook_on_batch)

    def as_subclass(self, cls):
        return self

    def is_contiguous(self, memory_format=contiguous_format) -> bool:
        if memory_format is not contiguous_format:
            raise RuntimeError(
                "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format"
            )
        return Tensor.is_contiguous(self)

    item = _make_raising_method(_ITEM_ERROR)
    __bool__ = _make_raising_method(_CONTROL_FLOW_ERROR)
    __int__ = __float__ = __complex__ = __index__ = tolist = _make_raising_method(_ITEM_ERROR)
    numpy = __array__ = _make_raising_method(_NO_STORAGE_ERROR)
    data_ptr = _address = _make_raising_method(_NO_STORAGE_ERROR)
    untyped_storage = storage = _typed_storage = __dlpack__ = _make_raising_method(_NO_STORAGE_ERROR)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __repr__(self, *, tensor_contents=None) -> str:
        body = repr(self._value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self._tl_level.number}, bdim={self._dim}, value=\n    {body}\n)"

    def __deepcopy__(self, memo):
        return self.clone()

    def __reduce_ex__(self, protocol):
        raise RuntimeError(_NO_STORAGE_ERROR)


BatchedTensor.__module__ = "torchlite"
BatchedTensor.__name__ = BatchedTensor.__qualname__ = "Tensor"  # name in error messages


def make_batched(value: Tensor, dim: int, level) -> Tensor:
    """Wrap a batch as a BatchedTensor."""
    out: Any = _new(BatchedTensor)
    out._value, out._dim, out._tl_level = value, dim, level
    out._tl_kernels, out.dtype = value._tl_kernels, value.dtype
    return out


def is_batched_at(value: Any, level) -> bool:
    """True if a value is a BatchedTensor of this level."""
    return value.__class__ is BatchedTensor and value._tl_level is level


def move_dim(value: Tensor, source: int, target: int) -> Tensor:
    """Return the tensor with one dimension moved."""
    if source == target:
        return value
    order = list(range(value.ndim))
    order.insert(target, order.pop(source))
    return F.permute(value, *order)


def batch_dim_first(tensor: Any) -> Tensor:
    """Return the batch with the batch dimension first."""
    return move_dim(tensor._value, tensor._dim, 0)


def expose_batch_dim(tensor: Any, level) -> Tensor:
    """Return a tensor with the batch dimension of one level visible and first; other levels stay hidden. A tensor
    without this level is expanded.
    """
    if tensor.__class__ is BatchedTensor:
        if tensor._tl_level is level:
            return batch_dim_first(tensor)
        if tensor._tl_level.number > level.number:
            value = expose_batch_dim(tensor._value, level)
            return make_batched(value, tensor._dim + 1, tensor._tl_level)
    return (
        expand_at_level(tensor, level) if MODE.forwards else F.expand(F.unsqueeze(tensor, 0), level.size, *tensor.shape)
    )


def expand_at_level(tensor: Tensor, level) -> Tensor:
    """Return a tensor without this level expanded to a batch, batch dimension first, including batched tangents."""
    forward = [item for item in stack.items if item.is_forward]
    with show_only_within([item for item in stack.items if not item.is_forward and item is not level]):
        out = F.expand(F.unsqueeze(tensor, 0), level.size, *tensor.shape)
    for item in forward:
        tangent = tangent_of(tensor, item)
        if tangent is not None:
            with item.below_level(), vmap_levels(tangent, apart=level):
                assign_tangent(out, item, expose_batch_dim(tangent, level))
    return out


def has_batched_tangent(tensor: Any, level) -> bool:
    """True if a tensor is not batched at a level but its tangent is."""
    if not isinstance(tensor, Tensor) or is_batched_at(tensor, level):
        return False
    for item in stack.items:
        found: Any = tangent_of(tensor, item) if item.is_forward else None
        while found.__class__ is BatchedTensor:
            if found._tl_level is level:
                return True
            found = found._value
    return False


def hide_batch_dim(tensor: Any, level, dim: int = 0) -> Tensor:
    """Hide a dimension as the batch dimension of a level, below the levels above it; the inverse of
    `expose_batch_dim`.
    """
    if tensor.__class__ is BatchedTensor and tensor._tl_level.number > level.number:
        own = tensor._dim
        inner = hide_batch_dim(tensor._value, level, dim if dim < own else dim + 1)
        return make_batched(inner, own - 1 if dim < own else own, tensor._tl_level)
    return make_batched(tensor, dim, level)
