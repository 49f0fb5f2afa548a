"""The conjugate and negative bits: views whose elements are the conjugates or negatives of the memory's values.

Such a tensor has one of three subclasses of Tensor, so generated functions do not treat it as a plain tensor; the slow
path resolves it. Its `_tl_array` computes the elements when read; its `_tl_memory` is the memory, which only views and
writes access.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import REGISTRY, call
from .._dispatch.autograd_graph import alias_meta, autograd_meta_of, gradient_edge, is_inference, view_meta
from .._dispatch.backend import is_view
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import GLOBALS, MODE
from .._dispatch.numpy_errors import run_quietly
from .._dispatch.op_record import MAYBE_VIEW, VIEW
from .tensor import Tensor

CONJ, NEG = 1, 2
_new = object.__new__


def apply_conj_neg(table, raw, signs: int):
    """A raw array's conjugate, negative, or both. Repeated elements of an expanded array are computed once."""
    shape = tuple(raw.shape)
    shown = [dim for dim, stride in enumerate(raw.strides) if stride == 0 and shape[dim] > 1]
    for dim in shown:
        raw = table._slice(raw, dim, 0, 1, 1)
    if signs & CONJ:
        raw = table.conj_physical(raw)
    if signs & NEG:
        raw = table.neg(raw)
    return table.expand(raw, shape) if shown else raw


class _ConjNegView(Tensor):
    """A view of memory by other signs."""

    __slots__ = ()

    @property
    def _tl_array(self) -> Any:
        return apply_conj_neg(self._tl_kernels, self._tl_memory, self._tl_signs)

    @_tl_array.setter
    def _tl_array(self, raw) -> None:
        self.__class__ = Tensor  # type: ignore[assignment]
        self._tl_array = raw

    def _write(self, raw) -> None:
        table = self._tl_kernels
        if raw.__class__ is not table.array:
            raw = table.as_array(raw)
        run_quietly(
            lambda: table.copy_into(self._tl_memory, apply_conj_neg(table, table.to(raw, self.dtype), self._tl_signs))
        )

    def _plain_tensor_on_memory(self) -> Tensor:
        """The memory as a plain tensor."""
        out = conj_neg_tensor(0, self._tl_kernels, self._tl_memory, self.dtype)
        out._tl_meta = alias_meta(self)
        return out

    def detach(self):
        out = conj_neg_tensor(self._tl_signs, self._tl_kernels, self._tl_memory, self.dtype)
        out._tl_meta = alias_meta(self)
        return out

    @property
    def data(self):
        """The tensor on the same memory without its history; assigning it replaces the memory."""
        out = conj_neg_tensor(self._tl_signs, self._tl_kernels, self._tl_memory, self.dtype)
        if MODE.inference or is_inference(self):
            autograd_meta_of(out).inference = True
        return out

    @data.setter
    def data(self, value):
        Tensor.data.fset(self, value)  # type: ignore[attr-defined]

    def storage_offset(self) -> int:
        return self._plain_tensor_on_memory().storage_offset()

    def untyped_storage(self):
        return self._plain_tensor_on_memory().untyped_storage()

    def storage(self):
        return self._plain_tensor_on_memory().storage()

    def is_shared(self) -> bool:
        return self._plain_tensor_on_memory().is_shared()

    def share_memory_(self):
        self._tl_memory = self._plain_tensor_on_memory().share_memory_()._tl_array
        return self

    def _host_array(self, force: bool = False):
        if not force:
            bit, name = ("conjugate", "conj") if self._tl_signs & CONJ else ("negative", "neg")
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.resolve_{name}().numpy() instead."
            )
        return call.wrap_array(self._tl_kernels, self._tl_array, self.dtype)._host_array(force=True)

    def __dlpack__(self, **keywords):
        if self._tl_node is not None:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        bit = "conjugate" if self._tl_signs & CONJ else "negative"
        raise BufferError(f"Can't export tensors with the {bit} bit set")


def _conj_neg_class_of(signs: int) -> type:
    made = type("Tensor", (_ConjNegView,), {"__slots__": (), "_tl_signs": signs, "__module__": Tensor.__module__})
    made._tl_is_plain = True  # type: ignore[attr-defined]
    return made


_CLASSES = (Tensor, *(_conj_neg_class_of(signs) for signs in (CONJ, NEG, CONJ | NEG)))


def conj_neg_tensor(signs: int, table, memory, dtype):
    """A tensor on memory, with signs."""
    out: Any = _new(_CLASSES[signs])
    out._tl_memory, out._tl_kernels, out.dtype, out._tl_node, out._tl_meta = memory, table, dtype, None, None
    return out


def resolve_conj_neg(value):
    """A tensor with its bits resolved and the same autograd history; anything else unchanged."""
    if value.__class__ in (list, tuple):
        return (
            value.__class__([resolve_conj_neg(v) for v in value])
            if any(getattr(v, "_tl_signs", 0) for v in value)
            else value
        )
    if not getattr(value, "_tl_signs", 0):
        return value
    out = call.wrap_array(value._tl_kernels, value._tl_array, value.dtype)
    if value._tl_node is not None:
        out._tl_node = gradient_edge(value)
    return out


def toggle_conj_neg(tensor, sign: int):
    """A view of a tensor's memory with one bit toggled, recorded as the op `op`."""
    GLOBALS["SIGNED"] = True
    out = conj_neg_tensor(tensor._tl_signs ^ sign, tensor._tl_kernels, tensor._tl_memory, tensor.dtype)
    out._tl_meta = view_meta(tensor)
    if tensor._tl_node is not None and MODE.grad:
        call.record_node(REGISTRY["conj" if sign == CONJ else "neg"], tensor._tl_kernels, [tensor], (out,))
    return out


def view_with_bits(tensor, signs: int):
    """A plain tensor with the conjugates, or negatives, of its elements, as views."""
    for sign in (CONJ, NEG):
        if signs & sign:
            tensor = toggle_conj_neg(tensor, sign)
    return tensor


def conj_neg_view_op(op, values: list):
    """A view op on a tensor with signs: on its memory, with the signs that the view's elements have."""
    source = values[0]
    table, signs = source._tl_kernels, source._tl_signs
    found = _view_bits(op.name, signs)
    raw = [source._tl_memory, *map(call.to_raw, values[1:])]
    data = call.call_kernel(op, table, raw, values)
    if data is source._tl_memory and op.tags & MAYBE_VIEW:
        return source
    several = data.__class__ in (tuple, list)
    outs = []
    for each in data if several else (data,):
        if op.tags & VIEW or is_view(each, source._tl_memory):
            out = conj_neg_tensor(found, table, each, table.dtype_of(each))
            out._tl_meta = view_meta(source)
        else:
            out = call.wrap_array(table, apply_conj_neg(table, each, found))
        outs.append(out)
    if MODE.grad and source._tl_node is not None:
        call.record_node(op, table, values, tuple(outs))
    return tuple(outs) if several else outs[0]


def _view_bits(name: str, signs: int) -> int:
    """The bits of a view op's result on a tensor with bits. RuntimeError if no such view exists."""
    if name == "real":
        return signs & NEG
    if name == "imag":
        return (signs ^ NEG if signs & CONJ else signs) & NEG
    if name == "view_as_real" and signs & CONJ:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    if name == "_view_dtype":
        what = "conjugate view tensors" if signs & CONJ else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {what} when converting to a different dtype.")
    return signs


CALLBACKS.conj_neg_view_op = conj_neg_view_op
CALLBACKS.resolve_conj_neg = resolve_conj_neg
CALLBACKS.view_with_bits = view_with_bits
