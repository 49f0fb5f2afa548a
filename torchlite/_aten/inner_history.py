"""The autograd part of tensor classes that take records: their history and gradients are those of an inner tensor."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite._dispatch import call
from torchlite._dispatch.meta_backend import MetaArray
from torchlite._library.library_op import LibraryOp

from .torch_dispatch import _table_without_data

_DATA, _TABLE = torch.Tensor.__dict__["_tl_array"], torch.Tensor.__dict__["_tl_kernels"]


class InnerHistory(torch.Tensor):
    """A tensor without elements of its own. `_values` is the tensor in the graph; `_like(values)` is this tensor of
    others. Ops on it go to `_run_record` of its class.
    """

    __slots__ = ()
    _takes_records = True
    _wraps = True
    _values: Any  # a tensor
    _tl_array: Any
    _tl_kernels: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def _fill_slots(self, values: torch.Tensor, shape: tuple[int, ...], device: Any = None) -> None:
        """Set the slots of a Tensor: a shape without elements, the values' device and dtype."""
        shape = tuple(int.__add__(n, 0) for n in shape)  # also of a ragged size, whose number is too large for memory
        dtype: Any = values.dtype
        strides = [1] * len(shape)
        for i in range(len(shape) - 2, -1, -1):
            strides[i] = strides[i + 1] * shape[i + 1]
        _DATA.__set__(self, MetaArray(shape, dtype, tuple(strides)))
        _TABLE.__set__(self, _table_without_data(values.device if device is None else device))
        call.set_dtype(self, values.dtype)
        self._values = values

    def _like(self, values: torch.Tensor) -> Any:
        raise NotImplementedError

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run ops by their ATen names, for modes: each is dispatched as its record. A custom op runs its kernel."""
        op = getattr(func, "_op", None)
        if isinstance(op, LibraryOp):
            return cls._run_library_op(op, op.schema.bind(args, kwargs or {}))
        return func(*args, **(kwargs or {}))

    @classmethod
    def _run_library_op(cls, op: LibraryOp, values: list) -> Any:
        return op.run(values)

    @property
    def _tl_node(self) -> Any:
        return self._values._tl_node

    @_tl_node.setter
    def _tl_node(self, value: Any) -> None:
        self._values._tl_node = value

    @property
    def _tl_meta(self) -> Any:
        return self._values._tl_meta

    @_tl_meta.setter
    def _tl_meta(self, value: Any) -> None:
        self._values._tl_meta = value

    @property
    def _autograd_representative(self) -> torch.Tensor:
        """The tensor that represents this one in the graph."""
        return self._values

    def _gradient_to_local(self, gradient: Any) -> Any:
        """A gradient of this tensor as one of its values."""
        if gradient is None:
            return None
        if not isinstance(gradient, type(self)) or gradient._values.shape != self._values.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output has a shape of {gradient.shape} and output has a shape of "
                f"{self.shape}."
            )
        return gradient._values

    def _gradient_from_local(self, gradient: Any) -> Any:
        """The gradient of this tensor from that of its values."""
        return None if gradient is None else self._like(gradient)

    def _backward_root(self, gradient: Any) -> tuple[torch.Tensor, Any]:
        """The root of backward in the graph, and its gradient."""
        return self._values, self._gradient_to_local(gradient)

    @property
    def grad(self) -> Any:  # type: ignore[override]
        """The gradient, a tensor of this class."""
        part = self._values.grad
        if part is None:
            return None
        known = self.__dict__.get("_gradient")
        if known is None or known._values is not part:
            known = self.__dict__["_gradient"] = self._like(part)
        return known

    @grad.setter
    def grad(self, value: Any) -> None:
        self.__dict__.pop("_gradient", None)
        self._values.grad = self._gradient_to_local(value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    _grad = grad

    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False, inputs: Any = None
    ) -> Any:
        """Adds the gradients to the leaves; see `torch.autograd.backward`.

        Args:
            gradient: As for `torch.autograd.backward`.
            retain_graph: As for `torch.autograd.backward`.
            create_graph: As for `torch.autograd.backward`.
            inputs: As for `torch.autograd.backward`.
        """
        torch.autograd.backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)

    def detach(self) -> Any:
        """Returns the same tensor without history."""
        return self._like(self._values.detach())

    def detach_(self) -> Any:
        """Drops the history in place."""
        self._values.detach_()
        return self

    @property
    def data(self) -> Any:  # type: ignore[override]
        """The same tensor without history, whose writes are not counted."""
        return self._like(self._values.data)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Sets whether a leaf requires grad, and returns the tensor.

        Args:
            requires_grad: Whether it does. Default: ``True``.
        """
        self._values.requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        """Keeps the gradient of a tensor that is no leaf in `.grad`."""
        self._values.retain_grad()

    def register_hook(self, hook: Any) -> Any:
        """Registers a hook on the tensor's gradient.

        Args:
            hook: Called as ``hook(grad)`` with this class; a result replaces the gradient.

        Returns:
            A handle with ``remove()``.
        """

        def call_hook(gradient: torch.Tensor | None) -> Any:
            return self._gradient_to_local(hook(None if gradient is None else self._like(gradient)))

        return self._values.register_hook(call_hook)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Registers a hook that runs after a gradient was added to this leaf.

        Args:
            hook: Called as ``hook(tensor)``.

        Returns:
            A handle with ``remove()``.
        """
        return self._values.register_post_accumulate_grad_hook(lambda part: hook(self))

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment."
            )
        made = self._like(self._values.detach().clone().requires_grad_(self.requires_grad))
        memo[id(self)] = made
        return made
