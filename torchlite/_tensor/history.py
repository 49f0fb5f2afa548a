"""A tensor's place in the recorded graph: gradients, hooks, detaching."""

from __future__ import annotations

import weakref

from .._dispatch import call
from .._dispatch.graph import OutputOf, alias_meta, base_of, edge, is_stale, meta_of, node_hooks, renew_history, version
from .._dispatch.hooks import RemovableHandle
from .._dispatch.runtime import LEAF
from .._dispatch.slots import SLOTS
from .._types import dtypes
from .properties import Properties

_new = object.__new__


class History(Properties):
    """The part of Tensor that autograd knows."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool):
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True):
        """Say whether a leaf wants a gradient; returns the tensor. RuntimeError for integers and for non-leaves."""
        if requires_grad:
            if self._node is None:
                if self.dtype.category < dtypes.FLOAT:
                    raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
                meta_of(self)
                self._node = LEAF
        elif self._node is not None:
            if self._node is not LEAF:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed "
                    "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            self._node = None
        return self

    @property
    def is_leaf(self) -> bool:
        return self._node is None or self._node is LEAF

    @property
    def grad_fn(self):
        if self._node is None or self._node is LEAF:
            return None
        if is_stale(self):
            renew_history(self)
        return self._node.node if self._node.__class__ is OutputOf else self._node

    @property
    def output_nr(self) -> int:
        return self._node.index if self._node.__class__ is OutputOf else 0

    @property
    def grad(self):
        return getattr(self._meta, "grad", None)

    @grad.setter
    def grad(self, value):
        if value is not None:
            if not isinstance(value, call.Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value._data.shape != self._data.shape:
                raise RuntimeError("assigned grad has data of a different size")
            if value.dtype is not self.dtype:
                raise RuntimeError("assigned grad has data of a different type")
            if value._table is not self._table:
                raise RuntimeError("assigned grad has data located on a different device")
        meta_of(self).grad = value

    @grad.deleter
    def grad(self):
        meta_of(self).grad = None

    @property
    def _version(self) -> int:
        return version(self)

    @property
    def _base(self):
        return base_of(self)

    def _is_view(self) -> bool:
        return base_of(self) is not None

    @property
    def retains_grad(self) -> bool:
        return getattr(self._meta, "retains", False)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add to the `.grad` of the leaves the gradient of this tensor. See `torch.autograd.backward`."""
        SLOTS.backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)

    def detach(self):
        """A tensor on the same memory without history. In-place changes of either are seen, and counted, by both."""
        out = _new(call.Tensor)
        out._data, out._table, out.dtype, out._node = self._data, self._table, self.dtype, None
        out._meta = alias_meta(self)
        return out

    def detach_(self):
        """Drop the tensor's history in place."""
        if self._is_view():
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self._node = None
        return self

    @property
    def data(self):
        out = _new(call.Tensor)
        out._data, out._table, out.dtype, out._node, out._meta = self._data, self._table, self.dtype, None, None
        return out

    @data.setter
    def data(self, value):
        if not isinstance(value, call.Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        self._data, self._table, self.dtype = value._data, value._table, value.dtype

    def retain_grad(self):
        """Keep the gradient of a non-leaf in `.grad`."""
        if self._node is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self._node is LEAF or meta_of(self).retains:
            return
        meta_of(self).retains = True
        me = weakref.ref(self)

        def keep(gradient):
            tensor = me()
            if tensor is not None:
                tensor._meta.grad = gradient.clone() if tensor._meta.grad is None else tensor._meta.grad + gradient

        self.register_hook(keep)

    def register_hook(self, hook):
        """Call `hook(grad)` whenever a gradient of this tensor is computed; what it returns replaces it. Returns a
        handle with `remove()`.
        """
        if self._node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._node is LEAF:
            found = meta_of(self)
            if found.hooks is None:
                found.hooks = {}
            return RemovableHandle(found.hooks, hook)
        where = edge(self)
        node, index = (where.node, where.index) if where.__class__ is OutputOf else (where, 0)
        return RemovableHandle(node_hooks(node).tensor.setdefault(index, {}), hook)

    def register_post_accumulate_grad_hook(self, hook):
        """Call `hook(param)` after a gradient was accumulated into this leaf. Returns a handle with `remove()`."""
        if self._node is not LEAF:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        found = meta_of(self)
        if found.post_hooks is None:
            found.post_hooks = {}
        return RemovableHandle(found.post_hooks, hook)

    @property
    def name(self):
        return getattr(self._meta, "name", None)
