"""Forward-mode transforms: `jvp`, `jacfwd`, `linearize`, and `hessian`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._dispatch import MODE, F
from .._dispatch.mode_restoring import restores_modes
from .._tensor import Tensor
from ..autograd._forward_mode import ForwardLevel, alias_with_tangents, drop_tangent
from ..autograd._tangents import set_tangent, tangent_of
from ..utils._pytree import tree_flatten, tree_unflatten
from ._reverse_mode import Argnums, _replace_args, _select_args, _vjp, jacrev, unit_vectors
from ._vmap import vmap

_JVP_SIGNATURE = "jvp(f, primals, tangents)"


def jvp(func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Compute the output of a function and its Jacobian-vector product, in forward mode.

    Args:
        func: Function of the primals that returns a tensor or a pytree of tensors.
        primals: Tuple of tensors, or of pytrees of tensors, at which to differentiate.
        tangents: Tuple with the structure of ``primals``, and tensors of the same shapes and dtypes.
        strict: Whether an output that does not depend on the primals raises RuntimeError; else its product is 0.
            Default: ``False``.
        has_aux: Whether ``func`` returns ``(output, aux)``, with an ``aux`` of tensors that is not differentiated.
            Default: ``False``.

    Returns:
        The output ``func(*primals)``; the product, with the output's structure; and ``aux`` with ``has_aux``.

    Raises:
        RuntimeError: ``primals`` is no tuple, ``tangents`` has another structure, or an input or output is not a
            tensor.

    Example:
        >>> torch.func.jvp(torch.sin, (torch.zeros(2),), (torch.tensor([1.0, 2.0]),))
        (tensor([0., 0.]), tensor([1., 2.]))

    See also:
        `vjp`, `jacfwd`, `linearize`.
    """
    return _jvp(func, primals, tangents, strict, has_aux)


@restores_modes
def _jvp(func, primals, tangents, strict=False, has_aux=False, argnums: Argnums | None = None):
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{_JVP_SIGNATURE}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    diff = primals if argnums is None else _select_args(primals, argnums)
    flat, spec = tree_flatten(diff)
    directions, tangents_spec = tree_flatten(tangents)
    if spec != tangents_spec:
        raise RuntimeError(
            f"{_JVP_SIGNATURE}: Expected primals and tangents to have the same python structure. For example, if "
            f"primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents "
            f"with structure {tangents_spec}"
        )
    _check_tensors(flat, "primals")
    _check_tensors(directions, "tangents")
    MODE.transforms += 1
    try:
        with _Level() as level, _ForwardGradEnabled():
            duals = tree_unflatten([_make_dual(p, t, level) for p, t in zip(flat, directions, strict=True)], spec)
            result = func(*(duals if argnums is None else _replace_args(primals, argnums, duals)))
            aux = None
            if has_aux:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{_JVP_SIGNATURE}: output of function f should be a tuple: (output, aux) if has_aux is True"
                    )
                result, aux = result
                more, aux_spec = tree_flatten(aux)
                for item in more:
                    if not isinstance(item, Tensor):
                        raise RuntimeError(f"{_JVP_SIGNATURE}: Expected tensors, got unsupported type {type(item)}")
                aux = tree_unflatten([_unwrap_primal(t, level) for t in more], aux_spec)
            outs, out_spec = tree_flatten(result)
            _check_outputs(outs)
            pairs = [(_unwrap_primal(t, level), _tangent_or_zeros(t, level, strict)) for t in outs]
    finally:
        MODE.transforms -= 1
    first = tree_unflatten([p for p, _ in pairs], out_spec)
    second = tree_unflatten([t for _, t in pairs], out_spec)
    return (first, second, aux) if has_aux else (first, second)


class _Level(ForwardLevel):
    is_scoped = True


class _ForwardGradEnabled:
    """Enable tangent propagation regardless of the outer setting."""

    def __enter__(self):
        self.before, MODE.forward = MODE.forward, True

    def __exit__(self, *exc):
        MODE.forward = self.before


def _check_tensors(flat: list, name: str) -> None:
    if not flat:
        raise RuntimeError(f"{_JVP_SIGNATURE}: Expected {name} to contain at least one Tensor.")
    for item in flat:
        if not isinstance(item, Tensor):
            raise RuntimeError(f"{_JVP_SIGNATURE}: Expected {name} to only contain Tensors, got {type(item)}")


def _check_outputs(outs: list) -> None:
    if not outs:
        raise RuntimeError(
            f"{_JVP_SIGNATURE}: Expected f to be a function that has non-empty output (got output = {outs})"
        )
    for item in outs:
        if not isinstance(item, Tensor):
            raise RuntimeError(
                f"{_JVP_SIGNATURE}: expected f(*primals) to return only tensors, got unsupported type {type(item)}"
            )


def _make_dual(primal: Tensor, tangent: Tensor, level: ForwardLevel) -> Tensor:
    from ..autograd.forward_ad import check_tangent

    check_tangent(primal, tangent, level)
    made = alias_with_tangents(primal, MODE.grad)
    set_tangent(made, level, tangent)
    return made


def _unwrap_primal(tensor: Tensor, level: ForwardLevel) -> Tensor:
    if tangent_of(tensor, level) is None:
        return tensor
    made = alias_with_tangents(tensor, MODE.grad)
    drop_tangent(made, level)
    return made


def _tangent_or_zeros(tensor: Tensor, level: ForwardLevel, strict: bool) -> Tensor:
    tangent = tangent_of(tensor, level)
    if tangent is not None:
        return tangent
    if strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    return F._zeros_like(tensor.detach())


def jacfwd(func: Callable, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable:
    """Return a function that computes the Jacobian of a function, column by column in forward mode.

    It costs one forward pass for each element of the input, vectorized by `vmap`. It suits functions with fewer inputs
    than outputs.

    Args:
        func: Function of tensors that returns a tensor or a pytree of tensors, all real.
        argnums: Index of the argument to differentiate with respect to, or a tuple of indices. Default: 0.
        has_aux: Whether ``func`` returns ``(output, aux)``, with an ``aux`` of tensors that is not differentiated.
            Default: ``False``.
        randomness: What random ops do: ``"error"`` raises RuntimeError, ``"different"`` draws for each column,
            ``"same"`` draws once for all. Default: ``"error"``.

    Returns:
        A function of the same arguments that returns the Jacobian, or ``(jacobian, aux)`` with ``has_aux``. It has a
        tensor of shape ``(*output, *input)`` for each output and input.

    Raises:
        RuntimeError: At a call: an input or output is complex or not a tensor, or ``argnums`` does not fit the
            arguments.

    Example:
        >>> torch.func.jacfwd(lambda x: x**2)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])

    See also:
        `jacrev`, `hessian`, `jvp`.
    """

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        called = functools.partial(func, **kwargs) if kwargs else func
        chosen = _select_args(args, argnums)
        flat, spec = tree_flatten(chosen)
        _check_tensors(flat, "primals")
        _check_real("inputs", flat)

        def push(*unit):
            found = _jvp(called, args, tree_unflatten(list(unit), spec), False, has_aux, argnums)
            _check_real("outputs", tree_flatten(found[0])[0])
            return (found[1], found[2]) if has_aux else found[1]

        found = vmap(push, randomness=randomness)(*unit_vectors(flat))
        if has_aux:
            found, aux = found
            more, aux_spec = tree_flatten(aux)
            aux = tree_unflatten([t[0] for t in more], aux_spec)
        columns, out_spec = tree_flatten(found)
        jacobians = tree_unflatten([tree_unflatten(_jacobian_from_columns(c, flat), spec) for c in columns], out_spec)
        return (jacobians, aux) if has_aux else jacobians

    return jacobian


def _check_real(what: str, tensors: list) -> None:
    for i, tensor in enumerate(tensors):
        if tensor.dtype.is_complex:
            raise RuntimeError(
                f"jacfwd: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )


def _jacobian_from_columns(rows: Tensor, tensors: list) -> list:
    """Return one output's Jacobian for each input from its directional derivatives."""
    pieces = rows.movedim(0, -1).split([t.numel() for t in tensors], -1)
    return [piece.reshape((*piece.shape[:-1], *t.shape)) for piece, t in zip(pieces, tensors, strict=True)]


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """Compute the output of a function and a function that applies its Jacobian, for many Jacobian-vector products.

    ``func`` runs once; each product reuses that run.

    Args:
        func: Function of the primals that returns a tensor or a pytree of tensors.
        *primals: Tensors, or pytrees of tensors, at which to differentiate.

    Returns:
        The output ``func(*primals)``, and a function from tangents with the structure of the primals to the
        Jacobian-vector product.

    Raises:
        RuntimeError: An input or output is not a tensor, or the tangents have another structure, shape, dtype or device
            than the primals.

    Example:
        >>> value, push = torch.func.linearize(torch.sin, torch.zeros(2))
        >>> push(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])

    See also:
        `jvp`.
    """
    flat, spec = tree_flatten(primals)
    output, pull = _vjp(func, primals)
    outs, out_spec = tree_flatten(output)

    def apply_vjp(*cotangents):
        return pull(tree_unflatten(list(cotangents), out_spec))

    given = [F._zeros_like(t.detach()) for t in outs]
    transposed = _vjp(apply_vjp, tuple(given))[1]

    def push(*tangents):
        found, found_spec = tree_flatten(tangents)
        if found_spec != spec:
            raise RuntimeError(f"Expected the tangents {found_spec} to have the same argspec as the primals {spec}")
        for i, (t, p) in enumerate(zip(found, flat, strict=True)):
            for what, a, b in (
                ("shape", t.shape, p.shape),
                ("device", t.device, p.device),
                ("dtype", t.dtype, p.dtype),
            ):
                if a != b:
                    raise RuntimeError(
                        f"tangent:{i} with {what} {a} in flattened pytree doesn't match the {what} {b} of the "
                        "corresponding primal."
                    )
        pushed = list(transposed(tangents))
        if not any(t.requires_grad for t in (*outs, *found)):
            pushed = [t.detach() for t in pushed]
        return tree_unflatten(pushed, out_spec)

    return output, push


def hessian(func: Callable, argnums: Argnums = 0) -> Callable:
    """Return a function that computes the Hessian of a function, in forward-over-reverse mode.

    It is ``jacfwd(jacrev(func, argnums), argnums)``.

    Args:
        func: Function of tensors that returns a tensor, usually a 0-dimensional one.
        argnums: Index of the argument to differentiate with respect to, or a tuple of indices. Default: 0.

    Returns:
        A function of the same arguments that returns the Hessian, of shape ``(*output, *input, *input)``; nested tuples
        if ``argnums`` is a tuple.

    Raises:
        RuntimeError: At a call: an input or output is complex or not a tensor, or ``argnums`` does not fit the
            arguments.

    Example:
        >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])

    See also:
        `jacfwd`, `jacrev`.
    """
    return jacfwd(jacrev(func, argnums), argnums)
