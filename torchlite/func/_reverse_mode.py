"""Reverse-mode transforms: `vjp`, `grad`, `grad_and_value`, `jacrev`.

They use the regular autograd graph. A transform differentiates with respect to aliases of the arguments, each with its
own node, so nested transforms do not interfere. Inside `vmap`, an alias is batched even if its argument is not, so
gradients are per example.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torchlite as torch

from .._dispatch import MODE, F
from .._dispatch.autograd_graph import Node, OutputEdge, autograd_meta_of, gradient_edge, make_node
from .._dispatch.dispatch_state import LEAF, SEQUENCE, set_grad_mode
from .._dispatch.hooks import saved_tensor_hooks
from .._dispatch.interceptors import show_only_within, stack
from .._dispatch.mode_restoring import restores_modes
from .._dispatch.op_record import REGISTRY
from .._tensor import Tensor
from ..autograd._tangents import copy_tangents
from ..autograd.functional import _construct_standard_basis_for
from ..utils._pytree import tree_flatten, tree_unflatten
from ._batched_tensor import BatchedTensor, expose_batch_dim, hide_batch_dim
from ._vmap import vmap
from ._vmap_interceptor import VmapLevel, active_levels

Argnums = int | tuple[int, ...]


class _GradLevel:
    """One transform level: aliases of the inputs, and the graph position at its start."""

    def __init__(self) -> None:
        self.levels = active_levels()
        self.outer = MODE.grad
        self.start = next(SEQUENCE)
        self.scope = inside_transform()
        self.inputs: list[Tensor] = []  # batches, with all levels exposed

    def to_physical(self, tensor: Tensor) -> Tensor:
        """Return a tensor with the batch dimensions of all levels exposed, outermost first."""
        for level in reversed(self.levels):
            tensor = self._below_level(level, expose_batch_dim, tensor)
        return tensor

    def example(self, tensor: Tensor) -> Tensor:
        """Undo `to_physical`."""
        for level in self.levels:
            tensor = hide_batch_dim(tensor, level)
        return tensor

    def _below_level(self, level: VmapLevel, function, tensor):
        with without_levels(level):
            return function(tensor, level)

    def input(self, tensor: Tensor) -> Tensor:
        """Return an alias of an argument to differentiate with respect to."""
        value = self.to_physical(tensor)
        made = copy_tangents(value, value.detach())
        if value.requires_grad:
            made._tl_node = make_node(REGISTRY["_identity"], (gradient_edge(value),), (), (), value._tl_kernels)
            made._tl_node._shape = value._tl_array.shape
        else:
            if made.dtype.category < 2:
                raise RuntimeError("only Tensors of floating point dtype can require gradients")
            autograd_meta_of(made)
            made._tl_node = LEAF
            made._scope = self.scope  # type: ignore[attr-defined]
        self.inputs.append(made)
        return self.example(made)

    def has_outer_history(self, tensors) -> bool:
        """True if the tensors depend on earlier history or on inputs of an enclosing transform."""
        ends = {id(i._tl_node) for i in self.inputs if isinstance(i._tl_node, Node)}
        seen: set[int] = set()
        pending = [gradient_edge(t) for t in tensors if t._tl_node is not None]
        while pending:
            item = pending.pop()
            node = item.node if item.__class__ is OutputEdge else item
            if node is None or id(node) in seen:
                continue
            seen.add(id(node))
            if not isinstance(node, Node):
                scope = getattr(node, "_scope", None)
                if scope is None or scope.open and scope is not self.scope:
                    return True
                continue
            if node._seq < self.start or id(node) in ends:  # inputs have a node only if they have history
                return True
            for e in node._edges:
                pending += e if e.__class__ is tuple else (e,)
        return False

    def released(self, value: Any) -> Any:
        """Return a result for outer code, detached if its history ends at the inputs."""
        if not isinstance(value, Tensor):
            return value
        inner = value
        while inner.__class__ is BatchedTensor:
            inner = inner._value
        if inner._tl_node is None or self.outer and self.has_outer_history((inner,)):
            return value
        return copy_tangents(value, value.detach(), self.released)

    @restores_modes
    def gradients(self, outputs: list, cotangents: list, retain: bool, unused: bool = True) -> list:
        """Return the gradient of each input, zeros for unused ones."""
        outs = [self.to_physical(t) for t in outputs]
        given = [self.to_physical(g) for g in cotangents]
        create = MODE.grad and (
            self.has_outer_history(outs) or any(_to_innermost_level(g).requires_grad for g in given)
        )
        pairs = [(o, g) for o, g in zip(outs, given, strict=True) if o.requires_grad]
        found: Any = [None] * len(self.inputs)
        if pairs:
            with without_levels(*self.levels):
                found = torch.autograd.grad(
                    [o for o, _ in pairs],
                    self.inputs,
                    [g for _, g in pairs],
                    retain_graph=retain or create,
                    create_graph=create,
                    allow_unused=True,
                )
        return [
            self.example(F._zeros_like(i.detach()) if g is None else g) for g, i in zip(found, self.inputs, strict=True)
        ]


def _to_innermost_level(tensor):
    while tensor.__class__ is BatchedTensor:
        tensor = tensor._value
    return tensor


_SAVED_HOOKS_ERROR = (
    "torch.func transforms don't yet support saved tensor hooks. Please open an issue with your use case."
)


class inside_transform:
    """Context of a transform's function: enables grad mode and refuses unsupported features."""

    open = False

    def __enter__(self):
        if saved_tensor_hooks.stack:
            raise RuntimeError(_SAVED_HOOKS_ERROR)
        self.forbidden, saved_tensor_hooks.forbidden = saved_tensor_hooks.forbidden, _SAVED_HOOKS_ERROR
        MODE.transforms += 1
        self.open = True
        self.grad = MODE.grad
        set_grad_mode(True)

    def __exit__(self, *exc):
        set_grad_mode(self.grad)
        self.open = False
        MODE.transforms -= 1
        saved_tensor_hooks.forbidden = self.forbidden


class without_levels(show_only_within):
    """Deactivate these levels, so their batch dimensions are visible."""

    def __init__(self, *gone: VmapLevel):
        super().__init__([item for item in stack.items if item not in gone])


def _check_tensors(tree: Any) -> tuple[list, Any]:
    flat, spec = tree_flatten(tree)
    for item in flat:
        if not isinstance(item, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(item)}")
    return flat, spec


class _LeafRepr:
    """Placeholder of a leaf in the repr of a pytree."""

    def __repr__(self) -> str:
        return "*"


def _format_treespec(spec) -> str:
    return str(tree_unflatten([_LeafRepr()] * spec.num_leaves, spec))


def _split_aux(result: Any, where: str) -> tuple[Any, Any]:
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{where}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def _release_aux(tape, aux):
    """Return auxiliary outputs, any pytree of tensors, released to outer code."""
    flat, spec = tree_flatten(aux)
    for item in flat:
        if not isinstance(item, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(item)}")
    return tree_unflatten([tape.released(t) for t in flat], spec)


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """Compute the output of a function and its vector-Jacobian product, in reverse mode.

    Args:
        func: Function of the primals that returns a tensor or a pytree of tensors.
        *primals: Tensors, or pytrees of tensors, at which to differentiate.
        has_aux: Whether ``func`` returns ``(output, aux)``, with an ``aux`` of tensors that is not differentiated.
            Default: ``False``.

    Returns:
        The output ``func(*primals)``; a function from cotangents with the output's structure to a tuple of cotangents,
        one for each primal; and ``aux`` with ``has_aux``.

    Raises:
        RuntimeError: An input or output is not a tensor, or the cotangents have another structure than the output.

    Example:
        >>> y, backward = torch.func.vjp(torch.sin, torch.zeros(2))
        >>> backward(torch.ones(2))
        (tensor([1., 1.]),)

    See also:
        `jvp`, `jacrev`, `grad`.
    """
    return _vjp(func, primals, has_aux=has_aux)


@restores_modes
def _vjp(func, primals, argnums: Argnums | None = None, has_aux: bool = False):
    tape = _GradLevel()
    args = tuple(primals)
    chosen = args if argnums is None else _select_args(args, argnums)
    flat, spec = _check_tensors(chosen)
    with tape.scope:
        inner = tree_unflatten([tape.input(t) for t in flat], spec)
        result = func(*(inner if argnums is None else _replace_args(args, argnums, inner)))
    aux = None
    if has_aux:
        result, aux = _split_aux(result, "vjp(f, *primals)")
        aux = _release_aux(tape, aux)
    outs, out_spec = tree_flatten(result)
    if not outs:
        raise RuntimeError(
            f"vjp(f, *primals): Expected f to be a function that has non-empty output (got output = {outs})"
        )
    for item in outs:
        if not isinstance(item, Tensor):
            raise RuntimeError(
                f"vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported type {type(item)}"
            )
    released = tree_unflatten([tape.released(t) for t in outs], out_spec)

    def backward(*cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        flat_given, given_spec = tree_flatten(given)
        if given_spec != out_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {_format_treespec(given_spec)}, primal output: {_format_treespec(out_spec)}"
            )
        found = tree_unflatten(tape.gradients(outs, flat_given, retain_graph), spec)
        return found

    return (released, backward, aux) if has_aux else (released, backward)


def _check_argnums(argnums: Any, count: int) -> Any:
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, tuple) and not argnums:
        raise RuntimeError("argnums must be non-empty")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"Expected elements of argnums to be ints, got: {type(n)}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    wrapped = tuple(n % count for n in numbers)
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return wrapped if isinstance(argnums, tuple) else wrapped[0]


def _select_args(args: tuple, argnums: Argnums) -> Any:
    """Return the arguments to differentiate with respect to."""
    numbers = _check_argnums(argnums, len(args))
    return tuple(args[n] for n in numbers) if isinstance(numbers, tuple) else args[numbers]


def _replace_args(args: tuple, argnums: Argnums, values: Any) -> tuple:
    numbers = _check_argnums(argnums, len(args))
    if not isinstance(numbers, tuple):
        numbers, values = (numbers,), (values,)
    out = list(args)
    for n, value in zip(numbers, values, strict=True):
        out[n] = value
    return tuple(out)


def grad_and_value(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes the gradient of a function and its value.

    Args:
        func: Function that returns a 0-dimensional tensor.
        argnums: Index of the argument to differentiate with respect to, or a tuple of indices. Default: 0.
        has_aux: Whether ``func`` returns ``(value, aux)``, with an ``aux`` of tensors that is not differentiated.
            Default: ``False``.

    Returns:
        A function of the same arguments that returns ``(gradient, value)``, or ``(gradient, (value, aux))`` with
        ``has_aux``. The gradient is a tuple if ``argnums`` is one.

    Raises:
        RuntimeError: At a call: the value is no 0-dimensional tensor, or ``argnums`` does not fit the arguments.

    Example:
        >>> torch.func.grad_and_value(lambda x: x**2)(torch.tensor(3.0))
        (tensor(6.), tensor(9.))

    See also:
        `grad`.
    """

    @functools.wraps(func)
    def derived(*args, **kwargs):
        return _grad_and_value(func, argnums, has_aux, args, kwargs)

    return derived


@restores_modes
def _grad_and_value(func, argnums, has_aux, args, kwargs):
    tape = _GradLevel()
    flat, spec = _check_tensors(_select_args(args, argnums))
    with tape.scope:
        inner = tree_unflatten([tape.input(t) for t in flat], spec)
        result = func(*_replace_args(args, argnums, inner), **kwargs)
    aux = None
    if has_aux:
        if not (isinstance(result, tuple) and len(result) == 2):
            raise RuntimeError(
                "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
            )
        result, aux = result
    if not isinstance(result, Tensor):
        raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(result)}")
    if result.dim() != 0:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{result.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )
    found = tape.gradients([result], [F._ones_like(result.detach())], retain=False)
    grads = tree_unflatten(list(found), spec)
    value = tape.released(result)
    if has_aux:
        return grads, (value, _release_aux(tape, aux))
    return grads, value


def grad(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes the gradient of a function.

    Transforms nest: ``grad(grad(f))`` is the second derivative, and ``vmap(grad(f))`` computes per-example gradients.

    Args:
        func: Function that returns a 0-dimensional tensor.
        argnums: Index of the argument to differentiate with respect to, or a tuple of indices. Default: 0.
        has_aux: Whether ``func`` returns ``(value, aux)``, with an ``aux`` of tensors that is not differentiated.
            Default: ``False``.

    Returns:
        A function of the same arguments that returns the gradient, or ``(gradient, aux)`` with ``has_aux``. The
        gradient is a tuple if ``argnums`` is one.

    Raises:
        RuntimeError: At a call: the value is no 0-dimensional tensor, or ``argnums`` does not fit the arguments.

    Example:
        >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.5))
        tensor(-0.4794)

    See also:
        `grad_and_value`, `vjp`, `torch.autograd.grad`.
    """

    @functools.wraps(func)
    def derived(*args, **kwargs):
        found = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (found[0], found[1][1]) if has_aux else found[0]

    return derived


def jacrev(
    func: Callable,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """Return a function that computes the Jacobian of a function, row by row in reverse mode.

    It costs one backward pass for each element of the output, vectorized by `vmap`. It suits functions with fewer
    outputs than inputs.

    Args:
        func: Function of tensors that returns a tensor or a pytree of tensors, all real.
        argnums: Index of the argument to differentiate with respect to, or a tuple of indices. Default: 0.
        has_aux: Whether ``func`` returns ``(output, aux)``, with an ``aux`` of tensors that is not differentiated.
            Default: ``False``.
        chunk_size: Number of rows that are computed at once, to limit memory. 1 computes them without `vmap`. Default:
            ``None``, all.

    Returns:
        A function of the same arguments that returns the Jacobian, or ``(jacobian, aux)`` with ``has_aux``. It has a
        tensor of shape ``(*output, *input)`` for each output and input.

    Raises:
        ValueError: ``chunk_size`` is below 1.
        RuntimeError: At a call: an input or output is complex or not a tensor, or ``argnums`` does not fit the
            arguments.

    Example:
        >>> torch.func.jacrev(lambda x: x**2)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])

    See also:
        `jacfwd`, `hessian`, `vjp`.
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        called = functools.partial(func, **kwargs) if kwargs else func
        _check_real("inputs", tree_flatten(_select_args(args, argnums))[0])
        result = _vjp(called, args, argnums, has_aux=has_aux)
        _check_real("outputs", tree_flatten(result[0])[0])
        outs, out_spec = tree_flatten(result[0])
        pull = functools.partial(_jacobian_rows, result[1], outs, out_spec, chunk_size)
        return (pull(), result[2]) if has_aux else pull()

    return jacobian


def _check_real(what: str, tensors) -> None:
    for tensor in tensors:
        if isinstance(tensor, Tensor) and tensor.dtype.is_complex:
            raise RuntimeError(
                f"jacrev: Expected all {what} to be real but received complex tensor at flattened {what[:-1]} index"
            )


def unit_vectors(tensors: list) -> list:
    """Return the unit vectors over all elements of the tensors, split by tensor, one vector per row."""
    found = _construct_standard_basis_for(tensors, [t.numel() for t in tensors])
    return [unit.view(len(unit), *t.shape) for unit, t in zip(found, tensors, strict=True)]


def _jacobian_rows(backward, outs, out_spec, chunk_size):
    """Return the Jacobian from vector-Jacobian products with all unit vectors."""
    numels, basis = [t.numel() for t in outs], unit_vectors(outs)
    if chunk_size == 1:  # for functions that `vmap` does not support
        rows = [tree_flatten(backward(tree_unflatten([u[i] for u in basis], out_spec))) for i in range(sum(numels))]
        flat, spec = [torch.stack(column) for column in zip(*(leaves for leaves, _ in rows), strict=True)], rows[0][1]
    else:
        flat, spec = tree_flatten(vmap(backward, chunk_size=chunk_size)(tree_unflatten(basis, out_spec)))
    pieces = [t.split(numels, 0) for t in flat]
    jacobians = []
    for i, out in enumerate(outs):
        parts = [p[i].view((*out.shape, *t.shape[1:])) for p, t in zip(pieces, flat, strict=True)]
        jacobians.append(tree_unflatten(parts, spec))
    return tree_unflatten(jacobians, out_spec)
