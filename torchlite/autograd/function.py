"""Custom differentiable functions."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._dispatch import call
from .._dispatch.autograd_graph import (
    Node,
    OutputEdge,
    autograd_meta_of,
    base_of,
    bump_version,
    check_in_place_autograd,
    gradient_edge,
    raise_freed_error,
    version_of,
    view_meta,
)
from .._dispatch.dispatch_state import GLOBALS, LEAF, MODE, REQUIRES_GRAD_DETACHED, SEQUENCE, recording
from .._dispatch.hooks import pack_saved_tensor
from .._dispatch.in_place_calls import rebase_history
from .._dispatch.interceptors import vmap_custom_function
from .._dispatch.public_functions import torch
from .._tensor import Tensor
from ._function_context import FunctionCtx
from .hook_runner import is_expandable_to

_NO_CONTEXT = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
    "the setup_context staticmethod. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)


class _SavedOutput:
    """An output saved by its own node: the array without the Tensor, which would create a cycle."""

    __slots__ = ("data", "dtype", "meta", "index")

    def __init__(self, tensor, index):
        self.data, self.dtype, self.meta, self.index = tensor._tl_array, tensor.dtype, autograd_meta_of(tensor), index


class BackwardCFunction(Node, FunctionCtx):
    """Node of a custom `Function`: the `ctx` of its `forward` and `backward`, and the `grad_fn` of its outputs.

    Each Function has its own subclass, named after the Function.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> node = Double.apply(torch.ones(1, requires_grad=True)).grad_fn
        >>> isinstance(node, torch.autograd.function.BackwardCFunction), node.name()
        (True, 'DoubleBackward')
    """

    _is_custom = True
    _forward_cls: Any = None
    _several = False
    _dtypes: tuple = ()
    _is_tensor: tuple = ()
    _input_dtypes: tuple = ()

    def name(self) -> str:
        """Returns the node's name: the Function's with ``Backward`` behind it."""
        return type(self).__name__

    @property
    def saved_tensors(self):
        """The tensors that `save_for_backward` saved.

        Raises:
            RuntimeError: The graph is freed, or a saved tensor changed in place since it was saved.
        """
        if self._saved is None:
            raise_freed_error(self)
        return tuple(
            _unpack_saved(self, item, expected) for item, expected in zip(self._saved, self._versions, strict=True)
        )

    @property
    def saved_variables(self):
        """Deprecated name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self):
        from .saved_tensors import raw_saved_tensors_of_function

        return raw_saved_tensors_of_function(self)

    def apply(self, *grads):
        """Calls the Function's `backward` or `vjp`.

        Args:
            grads: The gradients of the outputs.

        Returns:
            The gradients of the inputs, as the Function returns them.

        Raises:
            RuntimeError: The Function implements both `backward` and `vjp`.
        """
        cls = self._forward_cls
        backward, vjp = cls.backward, cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return (vjp if vjp is not Function.vjp else backward)(self, *grads)

    def _run(self, run, g):
        """Call the Function's backward with Tensors, and hand its gradients to the engine in its own form."""
        mode, table = run.mode, self._tl_kernels
        grads = []
        for i, item in enumerate(g if self._several else [g]):
            if item is None and self.materialize_grads and self._dtypes[i] is not None:
                shape = self._shape[i] if self._several else self._shape
                grads.append(call.wrap_array(table, table._full(shape, 0, self._dtypes[i])))
            else:
                grads.append(None if item is None else mode.tensor(table, item))
        with recording(mode.differentiable and MODE.grad):
            found = self.apply(*grads)
        found = found if isinstance(found, tuple) else (found,)
        edges = self._edges
        while len(found) > len(edges) and found[-1] is None:
            found = found[:-1]
        if len(found) != len(edges):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {len(edges)}, got "
                f"{len(found)})"
            )
        return tuple(
            self._check_gradient(mode, i, item, target)
            for i, (item, target) in enumerate(zip(found, edges, strict=True))
        )

    def _check_gradient(self, mode, i, item, target):
        """The gradient that backward returned for input i, checked and converted for the engine."""
        if item is None:
            return None
        if not isinstance(item, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(item).__name__})")
        if not self._is_tensor[i]:
            raise RuntimeError(
                f"function {self.name()} returned a gradient different than None at position {i + 1}, but the "
                "corresponding forward input was not a Variable"
            )
        if target is None:
            return None
        want = (
            target.node._shape[target.index]
            if target.__class__ is OutputEdge
            else (target._shape if isinstance(target, Node) else target._tl_array.shape)
        )
        if item._tl_array.shape != want and not is_expandable_to(want, item._tl_array.shape):
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {i} - got {list(item.shape)} but "
                f"expected shape compatible with {list(want)}"
            )
        d = self._input_dtypes[i]
        if item.dtype is not d:
            if item.dtype.is_complex and not d.is_complex:
                raise RuntimeError(
                    "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, "
                    "but got false.  (Could this error message be improved?  If so, please report an enhancement "
                    "request to PyTorch.)"
                )
            item = item.to(d)
        if item._tl_is_sparse and not mode.takes_sparse:  # the first sparse tensor of the program
            item = item.to_dense()
        return mode.tensor_to_grad(item)


def _unpack_saved(node, item, expected):
    """Unpack a saved tensor for backward, and check that it was not changed."""
    from .saved_values import PackedTensor, raise_modified_error, restore_history, saved_raw

    if item is None:
        return None
    if item.__class__ is PackedTensor:
        return restore_history(item, node)
    if item.__class__ is _SavedOutput:
        tensor = call.wrap_array(node._tl_kernels, item.data, item.dtype)
        found = item.meta
        have = found.n if found.root is None else found.root.n
        if have != expected:
            raise_modified_error(item.data, node, have, expected)
        tensor._tl_node = node if item.index is None else OutputEdge(node, item.index)
        return tensor
    saved_raw(item, expected, node, 0)
    return item


class _FunctionType(type):
    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        cls._op = _FunctionOp(cls)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})


class _FunctionOp:
    """Represents the op record in a custom Function's node."""

    outputs = None
    multi_output = False
    aux_outputs = False
    saves_tensors = True
    nondiff: frozenset = frozenset()

    def __init__(self, cls):
        self.name = cls.__name__


class Function(metaclass=_FunctionType):
    """Base class of custom differentiable functions.

    A subclass defines two static methods: `forward(ctx, *args)` computes the outputs, and `backward(ctx, *grads)` the
    gradients of the inputs. Call the function with `apply`. In the newer style, `forward(*args)` takes no context, and
    `setup_context(ctx, inputs, output)` saves what `backward` needs; the transforms of `torch.func` require this style.

    Args:
        args: Ignored. An instance is of no use, and creating one warns.
        kwargs: Ignored.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor(2.)

    See also:
        `FunctionCtx`, `once_differentiable`, `torch.library.custom_op`.
    """

    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, *args):
        """Computes the Function on batches, under `torch.vmap`.

        A subclass overrides it, or sets `generate_vmap_rule` to ``True``.

        Args:
            info: Has ``batch_size`` and ``randomness`` of the `vmap`.
            in_dims: The batch dimension of each argument, or ``None`` for an argument without one.
            args: The arguments of `forward`, with their batch dimensions.

        Returns:
            A pair ``(output, out_dims)``.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    def __init__(self, *args, **kwargs):
        """Warn, as PyTorch does: the methods are static. `args` and `kwargs` have no effect."""
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    def __getattr__(self, name):
        if not hasattr(BackwardCFunction, name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        raise RuntimeError(
            f"Attribute '{name}' is invalid for this instance of _C._FunctionBase. Accessing this attribute directly "
            "on an instance of autograd.Function is a legacy access pattern that is no longer supported. For examples "
            "on how to use new-style autograd functions, see "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function "
        )

    @staticmethod
    def forward(*args, **kwargs):
        """Computes the outputs; a subclass overrides it.

        Args:
            args: The context, unless `setup_context` is overridden, and the arguments of `apply`.
            kwargs: Keyword arguments of `apply`.

        Returns:
            A tensor, or a tuple of tensors and other values.
        """
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Saves what `backward` needs, for a `forward` that takes no context.

        Args:
            ctx: The context.
            inputs: The tuple of all arguments of `forward`, with defaults.
            output: What `forward` returned.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Computes the gradients of the inputs; a subclass overrides it. `vjp` is another name of it.

        Args:
            ctx: The context.
            grad_outputs: The gradient of each output.

        Returns:
            A gradient for each argument of `forward`, ``None`` for an argument without one; a tuple if there are
            several.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    # Another name for `backward`: one of the two is overridden.
    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Computes the tangents of the outputs; a subclass overrides it for forward mode.

        Args:
            ctx: The context.
            grad_inputs: The tangent of each argument of `forward`, ``None`` for an argument without one.

        Returns:
            A tangent for each output; a tuple if there are several.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs `forward` and records the Function in the graph.

        Args:
            args: The arguments of `forward`.
            kwargs: Keyword arguments of `forward`.

        Returns:
            What `forward` returns; its tensors have the Function as their `grad_fn` if an input requires grad.

        Raises:
            RuntimeError: Inside a transform of `torch.func`, for a Function without `setup_context`; or for an in-place
                change that autograd does not allow.
        """
        newer = cls.setup_context is not Function.setup_context
        if MODE.transforms:
            if not newer:
                raise RuntimeError(_NO_CONTEXT)
            found = vmap_custom_function(cls, args, kwargs)
            if found is not None:
                return found
        if newer:
            args, kwargs = _bind_positional(cls.forward, args, kwargs), {}
        if GLOBALS["DISPATCHES"]:
            taker = next((a for a in args if getattr(a, "_takes_records", False)), None)
            if taker is not None:
                return taker._run_function(cls, args, kwargs)
        if GLOBALS["STALE_VIEW_CHECKS"]:
            call.regenerate_stale_views(args)
        tensors = [a for a in args if isinstance(a, Tensor)]
        wants = MODE.grad and any(t.requires_grad for t in tensors)
        node: Any = object.__new__(cls._backward_cls)
        node._op, node._saved, node._versions = cls._op, (), ()
        node._out = node._counter = node._hooks = node._trace = node._shape = None
        node.needs_input_grad = needs = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        node._edges = tuple([gradient_edge(a) if wants and n else None for a, n in zip(args, needs, strict=True)])
        node._is_tensor = tuple([isinstance(a, Tensor) for a in args])
        node._input_dtypes = tuple([a.dtype if n else None for a, n in zip(args, node.needs_input_grad, strict=True)])
        node._tl_kernels = tensors[0]._tl_kernels if tensors else None
        node._seq = next(SEQUENCE)
        if GLOBALS["NODE_CREATED_HOOK"] is not None:
            GLOBALS["NODE_CREATED_HOOK"](node)
        if MODE.forwards:
            return _with_tangents(cls, node, newer, tensors, args, kwargs, wants)
        with recording(False):
            result = _run_forward(cls, node, newer, args, kwargs)
        return _attach_history(node, tensors, result, wants)


def _run_forward(cls, node, newer: bool, args, kwargs):
    if not newer:
        return cls.forward(node, *args, **kwargs)
    result = cls.forward(*args, **kwargs)
    cls.setup_context(node, args, result)
    kept = (*node.to_save, *getattr(node, "saved_for_forward", ()))
    if kept:
        _check_kept(kept, node, args, result)
    return result


def _check_kept(kept, node, args, result) -> None:
    """RuntimeError if `setup_context` saves an input that is also returned unchanged, because it is ambiguous which of
    the two is meant.
    """
    outs = result if isinstance(result, tuple) else (result,)
    dirty = {id(t) for t in node.dirty_tensors}
    both = {id(a) for a in args if isinstance(a, Tensor) and any(a is o for o in outs)} - dirty
    if any(id(t) in both for t in kept):
        raise RuntimeError(
            "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
            "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or "
            "setup ctx inside the forward function itself."
        )


def _with_tangents(cls, node, newer: bool, tensors, args, kwargs, wants):
    """A Function inside a level of forward-mode differentiation."""
    from ._function_jvp import PendingTangents, without_forward_levels

    pending = PendingTangents(args)
    with without_forward_levels():
        with recording(False):
            result = _run_forward(cls, node, newer, args, kwargs)
        dirty, several = {id(t) for t in node.dirty_tensors}, isinstance(result, tuple)
        outs = result if several else (result,)
        fixed = [any(o is t for t in node.non_differentiable) for o in outs]
        final = _attach_history(node, tensors, result, wants)
    gone = {id(o) for o, f in zip(final if several else (final,), fixed, strict=True) if f}
    pending.send(node, final, gone, dirty, tuple(getattr(node, "saved_for_forward", ())))
    return final


def _bind_positional(forward, args, kwargs) -> tuple:
    """All arguments by position, defaults among them."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _attach_history(node, tensors, result, wants):
    """The outputs of a Function that ran, with their history."""
    several = isinstance(result, tuple)
    outs = list(result) if several else [result]
    inputs = {id(t) for t in tensors}
    dirty = {id(d) for d in node.dirty_tensors}
    _check_dirty(node, outs, inputs, dirty, wants)
    fixed = {id(t) for t in node.non_differentiable}
    node._several = several
    node._shape = tuple([o._tl_array.shape if isinstance(o, Tensor) else None for o in outs])
    without = () if node._materialize_non_diff_grads else fixed
    node._dtypes = tuple([o.dtype if isinstance(o, Tensor) and id(o) not in without else None for o in outs])
    if not several:
        node._shape = node._shape[0]
    final: list[Any] = []
    seen: dict[int, Any] = {}
    positions: dict[int, int] = {}
    for i, out in enumerate(outs):
        if not isinstance(out, Tensor):
            final.append(out)
            continue
        fresh = seen.get(id(out))
        if fresh is None:
            fresh = seen[id(out)] = _as_view(out) if id(out) in inputs and id(out) not in dirty else out
        if wants and out.dtype.category >= 2 and id(out) not in fixed:
            positions.setdefault(id(fresh), i)
        elif wants and id(out) in fixed and base_of(fresh) is None:
            fresh._tl_node = None
        final.append(fresh)
    for d in node.dirty_tensors:
        if not (wants and id(d) in positions):
            bump_version(d)
    if wants:
        _link_node_to_outputs(node, final, outs, positions, dirty)
    _set_saved_outputs(node, positions, several, wants)
    node.dirty_tensors = node.non_differentiable = ()
    return tuple(final) if several else final[0]


def _check_dirty(node, outs, inputs, dirty, wants) -> None:
    returned = {id(o) for o in outs}
    for d in node.dirty_tensors:
        if id(d) not in inputs:
            warnings.warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
                "should be passed to ctx.mark_dirty().",
                stacklevel=4,
            )
            dirty.discard(id(d))
            continue
        if id(d) not in returned:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
        if not wants:
            continue
        if d._tl_node is LEAF:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        with recording(True):
            check_in_place_autograd(d)
        if base_of(d) is not None and len(outs) > 1:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                "return more than one Tensor. This is not supported by the current autograd engine. You should either "
                "make sure the input is not a view (using .clone() for example) or make your Function only return one "
                "Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single "
                "Tensor and a second one that does the other operations). You can ask on the forum "
                "https://discuss.pytorch.org/ if you need help to do this change."
            )


def _as_view(tensor):
    """A view of an input that forward returned unchanged; the view can have another grad_fn."""
    fresh = call.new(type(tensor) if type(tensor) is not call.Parameter else Tensor)
    fresh._tl_array, fresh._tl_kernels, fresh._tl_node = tensor._tl_array, tensor._tl_kernels, None
    call.set_dtype(fresh, tensor.dtype)
    fresh._tl_meta = view_meta(tensor, "custom")
    return fresh


def _link_node_to_outputs(node, final, outs, positions, dirty) -> None:
    """Hang the node on its outputs."""
    kind = "multi_output" if len(positions) > 1 else "custom"
    for key, i in positions.items():
        out = final[i]
        where = OutputEdge(node, i) if node._several else node
        if key in dirty:
            twin = call.new(Tensor)
            twin._tl_array, twin._tl_kernels, twin.dtype, twin._tl_node, twin._tl_meta = (
                out._tl_array,
                out._tl_kernels,
                out.dtype,
                where,
                None,
            )
            with recording(True):
                rebase_history(out, twin)
            continue
        out._tl_node = where
        if base_of(out) is not None:
            autograd_meta_of(out).kind = kind
    for out in final:
        if isinstance(out, Tensor) and out._tl_node is REQUIRES_GRAD_DETACHED and base_of(out) is not None:
            autograd_meta_of(out).kind = kind


def _set_saved_outputs(node, positions, several, wants) -> None:
    for i, item in enumerate(node.to_save if wants else ()):
        if item is not None and not isinstance(item, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {i} is of type {type(item).__name__}"
            )
    saved: list[Any] = []
    versions: list[int] = []
    for item in node.to_save if wants else ():
        if item is None:
            saved.append(None)
            versions.append(0)
            continue
        is_output = id(item) in positions
        where = gradient_edge(item) if item._tl_node is not None else None
        if is_output:
            where = positions[id(item)] if several else -1
        packed = pack_saved_tensor(item, where)
        if packed is not None:
            saved.append(packed)
        elif is_output:
            saved.append(_SavedOutput(item, positions[id(item)] if several else None))
        else:
            saved.append(item)
        versions.append(version_of(item))
    node._saved, node._versions = tuple(saved), tuple(versions)
    node.to_save = ()


def once_differentiable(fn):
    """Decorates a `backward` that cannot be differentiated itself.

    A second derivative through it raises, where it would otherwise be wrong without notice.

    Args:
        fn: The `backward` of a `Function`. It runs without recording.

    Returns:
        The wrapped function.

    Example:
        >>> from torchlite.autograd.function import once_differentiable
        >>> class Square(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @once_differentiable
        ...     def backward(ctx, g):
        ...         return 2 * g * ctx.saved_tensors[0]
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> g, = torch.autograd.grad(Square.apply(x) ** 2, x, create_graph=True)
        >>> g.backward()
        Traceback (most recent call last):
        RuntimeError: trying to differentiate twice a function that was marked with @once_differentiable
    """

    @functools.wraps(fn)
    def once(ctx, *grads):
        with recording(False):
            found = fn(ctx, *grads)
        if not MODE.grad or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return found
        parts = found if isinstance(found, tuple) else (found,)
        refuse = DelayedError(
            "trying to differentiate twice a function that was marked with @once_differentiable", len(parts)
        )
        refused = refuse(*[p if p is None else p.detach().requires_grad_() for p in parts])
        return (refused if len(parts) > 1 else (refused,)) if isinstance(found, tuple) else refused

    return once


class _Error(Function):
    """Raises when it is differentiated."""

    @staticmethod
    def forward(ctx, message, *values):
        ctx.message = message
        return values

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.message)


_Error._backward_cls.__name__ = "Error"


class DelayedError:
    """Callable that returns its tensors unchanged; differentiating them raises.

    Args:
        message: The text of the RuntimeError; `str` or `bytes`.
        count: Has no effect: the call counts its tensors.

    Example:
        >>> from torchlite.autograd.function import DelayedError
        >>> y = DelayedError("no derivative", 1)(torch.ones(1, requires_grad=True))
        >>> y.backward()
        Traceback (most recent call last):
        RuntimeError: no derivative
    """

    def __init__(self, message, count: int):
        self.message = message.decode() if isinstance(message, bytes) else message

    def __call__(self, *tensors):
        # A tensor without gradient stands for None, which has an edge of the node too.
        found = _Error.apply(self.message, *[torch.empty((0,)) if t is None else t for t in tensors])
        found = tuple(None if t is None else part for t, part in zip(tensors, found, strict=True))
        return found if len(found) > 1 else found[0]


class _Undefined(Function):
    """Its gradient is None."""

    @staticmethod
    def forward(ctx, value):
        return value

    @staticmethod
    def backward(ctx, g):
        return None


_Undefined._backward_cls.__name__ = "UndefinedGradBackward"


class UndefinedGrad:
    """Callable that returns a tensor unchanged and passes no gradient on.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> torch.autograd.function.UndefinedGrad()(x).backward()
        >>> x.grad is None
        True
    """

    def __call__(self, tensor):
        return _Undefined.apply(tensor)


class InplaceFunction(Function):
    """`Function` with an ``inplace`` attribute; programs written for older versions derive from it.

    Args:
        inplace: The value of the attribute. Default: ``False``.

    Example:
        >>> class AddOne(torch.autograd.function.InplaceFunction):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x + 1
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g
        >>> AddOne.apply(torch.zeros(2))
        tensor([1., 1.])
    """

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Name of PyTorch's Function of nested tuples; `forward` raises NotImplementedError.

    PyTorch's class no longer runs either. Derive from `Function`.

    Args:
        args: Ignored.
        kwargs: Ignored.

    Example:
        >>> issubclass(torch.autograd.NestedIOFunction, torch.autograd.Function)
        True
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Raises NotImplementedError.

        Args:
            args: Ignored.
            kwargs: Ignored.
        """
        raise NotImplementedError("torchlite runs no torch.autograd.NestedIOFunction: subclass torch.autograd.Function")


__dir__ = make_module_dir(globals(), hidden="DelayedError UndefinedGrad")
