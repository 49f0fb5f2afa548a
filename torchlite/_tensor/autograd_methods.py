"""Autograd methods of tensors: gradients, hooks, detaching."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from collections import OrderedDict

from .._dispatch import call
from .._dispatch.autograd_graph import (
    LEAF_HOOKS,
    AutogradMeta,
    Node,
    OutputEdge,
    adopt_memory_counter,
    alias_meta,
    autograd_meta_of,
    base_of,
    find_node_hooks,
    gradient_edge,
    is_inference,
    is_stale_view,
    refuses_writes,
    regenerate_grad_fn,
    separate_meta,
    shown_index,
    skip_transparent,
    to_python_node,
    version_of,
)
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import LEAF, MODE, REQUIRES_GRAD_DETACHED
from .._dispatch.hooks import PackedTensor, RemovableHandle
from .._dispatch.interceptors import call_torch_function, find_torch_function_override
from .._dispatch.tracing import TRACES, trace_method
from .._types import dtypes
from .properties import PropertyMethods

_new = object.__new__


_INSIDE_TRANSFORM = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of "
    "a function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch "
    "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
    "transformed instead."
)


def _invalid_grad_message(tensor, value) -> str:
    """The error message for a tensor that cannot be assigned as a gradient; None if it can."""
    if value.dtype is not tensor.dtype:
        own, other = tensor.dtype.scalar_name, value.dtype.c_name
        return (
            f"attempting to assign a gradient with dtype '{other}' to a tensor with grad_dtype '{own}'. The gradient "
            "must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype "
            "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the "
            "dtypes of a tensor and its gradient may break downstream systems that assume they match."
        )
    if value._tl_kernels is not tensor._tl_kernels:
        own, other = tensor.device.type, value.device.type
        return (
            f"attempting to assign a gradient with device type '{other}' to a tensor with device type '{own}'. Please "
            "ensure that the gradient and the tensor are on the same device"
        )
    return (
        f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(tensor.shape)}'. "
        "Please ensure that the gradient and the tensor are the same size"
    )


def _refuse_saved(tensor) -> None:
    """Let the nodes that saved a tensor raise PyTorch's error, since it loses its history."""

    def refuse(_):
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, "
            "please use out-of-place `.detach()` instead"
        )

    for saved in [found for found in gc.get_referrers(tensor) if found.__class__ is tuple]:
        for node in gc.get_referrers(saved):
            if isinstance(node, Node) and node._saved is saved and not node._is_custom:
                node._saved = tuple(PackedTensor(None, refuse, None) if v is tensor else v for v in saved)


def _warn_of_no_gradient(tensor) -> None:
    """PyTorch's warning for the gradient of a tensor that gets none."""
    if tensor.grad_fn is not None and not tensor.retains_grad:
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
            "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
            "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make "
            "sure you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
            UserWarning,
            stacklevel=3,
        )


class AutogradMethods(PropertyMethods):
    """Autograd methods of Tensor."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """Whether autograd records operations on the tensor."""
        found = self._tl_meta
        if self._tl_node is not None and self._tl_node is not REQUIRES_GRAD_DETACHED or found is None:
            return self._tl_node is not None
        # A view's value is its base's.
        base = found[0] if found.__class__ is tuple else found.base
        return base is not None and base._tl_node is not None and self.dtype.category >= dtypes.FLOAT

    @requires_grad.setter
    def requires_grad(self, value: bool):
        if value and self.dtype.category < dtypes.FLOAT:
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        self.requires_grad_(value)

    @requires_grad.deleter
    def requires_grad(self):
        raise RuntimeError("cannot delete requires_grad")

    def requires_grad_(self, requires_grad: bool = True):
        """Sets in place whether autograd records operations on this leaf.

        Args:
            requires_grad: The new value. Default: ``True``.

        Returns:
            The tensor.

        Raises:
            RuntimeError: The dtype is an integer or bool, or the tensor is not a leaf.
        """
        if requires_grad:
            if MODE.transforms:
                raise RuntimeError(_INSIDE_TRANSFORM)
            if self._tl_node is None or self._tl_node is REQUIRES_GRAD_DETACHED:
                if self.dtype.category < dtypes.FLOAT:
                    raise RuntimeError("only Tensors of floating point dtype can require gradients")
                if not MODE.inference and is_inference(self):
                    raise RuntimeError(
                        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
                    )
                autograd_meta_of(self)
                self._tl_node = LEAF
        elif self._tl_node is not None and self._tl_node is not REQUIRES_GRAD_DETACHED:
            if self._tl_node is not LEAF:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed "
                    "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            self._tl_node = None
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation computed the tensor."""
        return self.grad_fn is None

    @property
    def grad_fn(self):
        """The node of the autograd graph that computed the tensor, or ``None`` for a leaf."""
        node = self._tl_node
        if self._tl_meta is not None and is_stale_view(self):
            regenerate_grad_fn(self)
            node = self._tl_node
        if node is None or node is LEAF or node is REQUIRES_GRAD_DETACHED:
            return None
        node = skip_transparent(node)
        return to_python_node(node.node if node.__class__ is OutputEdge else node)

    @property
    def _grad_fn(self):
        return self.grad_fn

    @_grad_fn.deleter
    def _grad_fn(self):
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def _backward_hooks(self):
        """The hooks of `register_hook` by their number, or None."""
        if self.grad_fn is None:
            return getattr(self._tl_meta, "hooks", None)
        return self._gradient_hooks() or None

    @_backward_hooks.setter
    def _backward_hooks(self, hooks):
        if self.grad_fn is None:  # those of a tensor without gradients wait until it requires them
            autograd_meta_of(self).hooks = hooks
            LEAF_HOOKS[:] = [None]
            return
        found = self._gradient_hooks()
        found.clear()
        found.update(hooks or {})

    @_backward_hooks.deleter
    def _backward_hooks(self):
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    @property
    def volatile(self) -> bool:
        """Always ``False``: an attribute that earlier versions of PyTorch had."""
        warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
        return False

    def _fix_weakref(self) -> None:
        """Does nothing: a weak reference always returns the tensor itself."""

    @property
    def output_nr(self) -> int:
        """The position of the tensor among the results of `grad_fn`."""
        where = skip_transparent(self._tl_node)
        if not isinstance(where, (Node, OutputEdge)):
            return 0
        return shown_index(where.node, where.index) if isinstance(where, OutputEdge) else shown_index(where, 0)

    @property
    def grad(self):
        """The gradient that `backward` has added up, or ``None``."""
        found = getattr(self._tl_meta, "grad", None)
        if found is None and self._tl_node is not None and self._tl_node is not LEAF:
            _warn_of_no_gradient(self)
        return found

    @grad.setter
    def grad(self, value):
        if value is not None:
            if not isinstance(value, call.Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if (
                value.dtype is not self.dtype
                or value._tl_kernels is not self._tl_kernels
                or value._tl_array.shape != self._tl_array.shape
            ):
                raise RuntimeError(_invalid_grad_message(self, value))
        autograd_meta_of(self).grad = value

    @grad.deleter
    def grad(self):
        autograd_meta_of(self).grad = None

    # The same; PyTorch's own name for the field behind it.
    _grad = property(grad.fget, grad.fset, grad.fdel)  # type: ignore[attr-defined]

    @property
    def _version(self) -> int:
        if refuses_writes(self):
            raise RuntimeError("Inference tensors do not track version counter.")
        return version_of(self)

    def is_inference(self) -> bool:
        """True if the tensor was created in inference mode (and is not a view of a tensor that was not)."""
        return is_inference(self)

    @property
    def _base(self):
        base = base_of(self)
        if base is not None and is_inference(self):  # such a view is none in PyTorch
            return None
        shown = getattr((self if base is None else base)._tl_meta, "dual_primal", None)
        return base if shown is None else shown

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def retains_grad(self) -> bool:
        """Whether a tensor that is no leaf keeps its gradient."""
        return getattr(self._tl_meta, "retains", False)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Computes the gradients of this tensor with respect to the leaves and adds them to their `.grad`.

        Args:
            gradient: The gradient with respect to this tensor, of its shape. Default: 1, for a tensor of one element.
            retain_graph: Whether the graph is kept. Default: `create_graph`.
            create_graph: Whether the gradients are differentiable themselves. Default: ``False``.
            inputs: The tensors whose `.grad` is computed. Default: all leaves.

        Raises:
            RuntimeError: The tensor requires no gradient, the graph is freed already, or `gradient` is needed.

        See also:
            `torch.autograd.backward`, `torch.autograd.grad`.
        """
        CALLBACKS.backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)

    def detach(self):
        """A tensor on the same memory without history. In-place changes of either are seen, and counted, by both."""
        if TRACES and (found := trace_method("detach", self)) is not NotImplemented:
            return found
        if self._tl_dispatches and not MODE.torch_dispatch_disabled:
            return CALLBACKS.detached(self)
        if not self._tl_is_plain and find_torch_function_override((self,)) is not None:
            return call_torch_function(call.Tensor.detach, (self,), (self,), {})
        out = _new(call.Tensor)
        out._tl_array, out._tl_kernels, out.dtype, out._tl_node = self._tl_array, self._tl_kernels, self.dtype, None
        if self._tl_meta is not None and is_inference(self) and not MODE.inference:  # still one, whose changes count
            out._tl_meta = AutogradMeta()
            out._tl_meta.inference = out._tl_meta.counts = True
        else:
            out._tl_meta = alias_meta(self)
        return out

    def detach_(self):
        """Drop the tensor's history in place."""
        if TRACES and (found := trace_method("detach_", self)) is not NotImplemented:
            return found
        if self._is_view():
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        if isinstance(self._tl_node, (Node, OutputEdge)) and sys.getrefcount(self) > 3:  # than the caller's own
            _refuse_saved(self)
        self._tl_node = None
        if MODE.forwards:
            CALLBACKS.drop_tangents(self)
        return self

    @property
    def data(self):
        """The tensor on the same memory without its history; assigning it replaces the memory."""
        if TRACES and (found := trace_method("data", self)) is not NotImplemented:
            return found
        if self._tl_dispatches and not MODE.torch_dispatch_disabled and self._tl_kernels.wraps:
            return CALLBACKS.detached(self)
        if not self._tl_is_plain and find_torch_function_override((self,)) is not None:
            return call_torch_function(call.Tensor.data.__get__, (self,), (self,), {})
        out = _new(call.Tensor)
        out._tl_array, out._tl_kernels, out.dtype, out._tl_node, out._tl_meta = (
            self._tl_array,
            self._tl_kernels,
            self.dtype,
            None,
            separate_meta(self),
        )
        if MODE.inference or is_inference(self):
            for found in (out._tl_meta, out._tl_meta.root):
                found.inference, found.counts = True, not MODE.inference
        return out

    @data.setter
    def data(self, value):
        if not isinstance(value, call.Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if getattr(self, "_tl_is_sparse", False) is not getattr(value, "_tl_is_sparse", False):
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor "
                "type."
            )
        if self._tl_node is not None and value.dtype.category < dtypes.FLOAT:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self._tl_array, self._tl_kernels, self.dtype = value._tl_array, value._tl_kernels, value.dtype
        adopt_memory_counter(self, value)

    @data.deleter
    def data(self):
        raise RuntimeError("cannot delete data")

    def retain_grad(self):
        """Keep the gradient of a non-leaf in `.grad`."""
        if MODE.transforms:
            raise RuntimeError(
                "You are attempting to call Tensor.retain_grad() inside of a function being transformed by a functorch "
                "transform. This is unsupported, please call Tensor.retain_grad() outside of it."
            )
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self.grad_fn is None or autograd_meta_of(self).retains:
            return
        autograd_meta_of(self).retains = True
        node, index = self._tl_gradient_edge()
        find_node_hooks(node).retain[index] = weakref.ref(self)

    def _tl_gradient_edge(self):
        """(node, index) of a non-leaf."""
        where = gradient_edge(self)
        return (where.node, where.index) if where.__class__ is OutputEdge else (where, 0)

    def register_hook(self, hook):
        """Registers a function that runs whenever the gradient of this tensor is computed.

        Args:
            hook: A function ``hook(grad)``; a tensor that it returns replaces the gradient.

        Returns:
            A handle whose ``remove()`` removes the hook.

        Raises:
            RuntimeError: The tensor requires no gradient.
        """
        return RemovableHandle(self._gradient_hooks(), hook)

    def _gradient_hooks(self) -> dict:
        """The hooks on this tensor's gradient: a leaf's own, or those that its node has for it."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn is None:
            found = autograd_meta_of(self)
            if found.hooks is None:
                found.hooks = OrderedDict()
                LEAF_HOOKS[:] = [None]
            return found.hooks
        node, index = self._tl_gradient_edge()
        return find_node_hooks(node).tensor.setdefault(index, OrderedDict())

    def register_post_accumulate_grad_hook(self, hook):
        """Registers a function that runs after a gradient was added to the `.grad` of this leaf.

        Args:
            hook: A function ``hook(param)``.

        Returns:
            A handle whose ``remove()`` removes the hook.

        Raises:
            RuntimeError: The tensor is not a leaf.
        """
        if self._tl_node is not LEAF:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        found = autograd_meta_of(self)
        if found.post_hooks is None:
            found.post_hooks = {}
            LEAF_HOOKS[:] = [None]
        return RemovableHandle(found.post_hooks, hook)

    @property
    def name(self):
        """The name of the tensor: always ``None``."""
        return getattr(self._tl_meta, "name", None)
