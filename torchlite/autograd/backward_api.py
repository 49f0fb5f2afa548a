"""`backward` and `grad`: the public entry points of the engine."""

from __future__ import annotations

import warnings

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import GLOBALS, MODE, OVERRIDES
from .._dispatch.error_translation import filter_traceback
from .._dispatch.interceptors import call_override
from .._dispatch.public_functions import torch
from .._settings.backend_flags import warn_once
from .._tensor import Tensor
from .gradient_edge import GradientEdge


def _to_tuple(value):
    if value.__class__ is tuple:
        return value
    return (value,) if isinstance(value, (Tensor, GradientEdge)) or value is None else tuple(value)


def _run_backward(*arguments, **keywords):
    """The engine's `run_backward`; the first backward imports the engine and replaces this function."""
    from .engine import run_backward

    globals()["_run_backward"] = run_backward
    return run_backward(*arguments, **keywords)


def _check_inputs(inputs, words: str) -> None:
    for item in inputs:
        if isinstance(item, GradientEdge):
            continue
        if not isinstance(item, Tensor):
            raise TypeError(words.format(type(item).__name__))
        if not item.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    r"""Adds the gradients of tensors to the `.grad` of the leaves of their graph.

    For outputs :math:`y_i` with weights :math:`v_i`, the gradient of a leaf :math:`x` is
    :math:`\sum_i v_i^{\mathsf{T}} \, \partial y_i / \partial x`.

    Args:
        tensors: The tensor, or a sequence of tensors, to differentiate; `GradientEdge` objects count as tensors.
        grad_tensors: The weight of each tensor, of the same shape; ``None`` stands for 1 and needs a tensor of one
            element. Default: ``None`` for every tensor.
        retain_graph: Whether to keep what the graph saved, for another backward. Default: the value of
            ``create_graph``.
        create_graph: Whether to record the backward pass, so that the gradients can be differentiated. Default:
            ``False``.
        grad_variables: Deprecated name of ``grad_tensors``.
        inputs: The tensors that get a gradient; not only leaves. Default: all leaves.

    Raises:
        RuntimeError: A tensor has no history; a weight is missing or has another shape; ``inputs`` is empty; an
            earlier backward freed the graph; or the call is inside a transform of `torch.func`.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.backward([x.sum(), x * x], [None, torch.tensor([1.0, 10.0])])
        >>> x.grad
        tensor([ 3., 41.])

    See also:
        `grad`, which returns the gradients and leaves `.grad` alone; `torch.Tensor.backward`.
    """
    if MODE.transforms:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
            "functorch.vjp instead or call backward() outside of functorch transforms."
        )
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        grad_tensors = grad_variables
    tensors = _to_tuple(tensors)
    grads = (None,) * len(tensors) if grad_tensors is None else _to_tuple(grad_tensors)
    if len(grads) != len(tensors):
        raise RuntimeError(f"Mismatch in number of grads: got {len(tensors)} tensors and {len(grads)} gradients")
    if inputs is not None:
        inputs = _to_tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    if OVERRIDES:
        options = {"grad_tensors": grad_tensors, "retain_graph": retain_graph, "create_graph": create_graph}
        given = options | {"inputs": inputs}
        if (found := call_override(backward, (tensors,), given, tensors)) is not NotImplemented:
            return found
    if create_graph:
        warn_once(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            stacklevel=4,
        )
    retain = create_graph if retain_graph is None else retain_graph
    if GLOBALS["DISPATCHES"]:
        tensors, grads = _unwrap_roots(tensors, grads)
        inputs = inputs and tuple(
            t._autograd_representative if getattr(t, "_takes_records", False) else t for t in inputs
        )
    try:
        _run_backward(tensors, grads, retain, create_graph, inputs=inputs)
    except Exception:
        filter_traceback()
        raise


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """Computes the gradients of outputs with respect to inputs and returns them; `.grad` does not change.

    Args:
        outputs: The tensor, or a sequence of tensors, to differentiate.
        inputs: The tensor, or a sequence of tensors or `GradientEdge` objects, to differentiate by.
        grad_outputs: The weight of each output, of the same shape; ``None`` stands for 1 and needs an output of one
            element. Default: ``None`` for every output.
        retain_graph: Whether to keep what the graph saved. Default: the value of ``create_graph``.
        create_graph: Whether to record the backward pass, for derivatives of higher order. Default: ``False``.
        only_inputs: Deprecated; has no effect.
        allow_unused: Whether an input that the outputs do not depend on gets ``None`` in place of an error. Default:
            the value of ``materialize_grads``.
        is_grads_batched: Whether ``grad_outputs`` have a leading batch dimension; the results then have it too. The
            batch runs through `torch.vmap`. Default: ``False``.
        materialize_grads: Whether an unused input gets zeros. Default: ``False``.

    Returns:
        A tuple with a gradient for each input, of its shape.

    Raises:
        RuntimeError: An input does not require grad, or is unused and neither ``allow_unused`` nor
            ``materialize_grads`` is set; ``inputs`` is empty; or the graph is freed.
        ValueError: ``materialize_grads`` is set and ``allow_unused`` is ``False``.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> g, = torch.autograd.grad(x ** 3, x, create_graph=True)
        >>> torch.autograd.grad(g, x)
        (tensor(18.),)

    See also:
        `backward`, `torch.func.grad`.
    """
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    outputs, inputs = _to_tuple(outputs), _to_tuple(inputs)
    if OVERRIDES:
        options = {
            "grad_outputs": grad_outputs, "retain_graph": retain_graph, "create_graph": create_graph,
            "only_inputs": only_inputs, "allow_unused": bool(allow_unused), "is_grads_batched": is_grads_batched,
            "materialize_grads": materialize_grads,
        }  # fmt: skip
        if (found := call_override(grad, (outputs, inputs), options, (*outputs, *inputs))) is not NotImplemented:
            return found
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grads = (None,) * len(outputs) if grad_outputs is None else _to_tuple(grad_outputs)
    if is_grads_batched:
        return _compute_batched_grad(outputs, inputs, grads, create_graph, allow_unused, materialize_grads)
    if MODE.transforms and any(isinstance(t, Tensor) and t._tl_level is not None for t in (*outputs, *inputs)):
        raise RuntimeError(
            "element 0 of tensors does not require grad and does not have a grad_fn: inside vmap it stands for one "
            "example of a batch. Please use torch.func.grad or torch.func.vjp"
        )
    _check_inputs(inputs, "grad requires Tensors as inputs, but got {0}")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    retain = create_graph if retain_graph is None else retain_graph
    if GLOBALS["DISPATCHES"]:
        outputs, grads = _unwrap_roots(outputs, grads)
        ends = tuple(t._autograd_representative if getattr(t, "_takes_records", False) else t for t in inputs)
        found = _run_backward(outputs, grads, retain, create_graph, inputs=ends, accumulate=False)
        found = [g if end is t else t._gradient_from_local(g) for t, end, g in zip(inputs, ends, found, strict=True)]
    else:
        try:
            found = _run_backward(outputs, grads, retain, create_graph, inputs=inputs, accumulate=False)
        except Exception:
            filter_traceback()
            raise
    if not (allow_unused or materialize_grads) and any(g is None for g in found):
        unused = next(i for i, g in enumerate(found) if g is None)
        raise RuntimeError(
            f"The differentiated Tensor at index {unused} appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    if materialize_grads:
        found = [_zero_grad(i, create_graph) if g is None else g for g, i in zip(found, inputs, strict=True)]
    return tuple(found)


def _unwrap_roots(tensors, grads):
    """The roots and their gradients, with tensor classes that take records replaced by their representation in the
    graph.
    """
    pairs = [
        (t._backward_root(g) if getattr(t, "_takes_records", False) else (t, g))
        for t, g in zip(tensors, grads, strict=True)
    ]
    return tuple(t for t, _ in pairs), tuple(g for _, g in pairs)


def _zero_grad(item, requires_grad: bool):
    """A gradient of zeros for an input that was not used."""
    if isinstance(item, GradientEdge):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    return torch.zeros_like(item, requires_grad=requires_grad)


def _compute_batched_grad(outputs, inputs, grads, create_graph, allow_unused, materialize_grads):
    """The gradients for a batch of first gradients."""
    given = [i for i, g in enumerate(grads) if g is not None]
    used: list[bool] = []

    def grad_of_one(*parts):
        by_place = dict(zip(given, parts, strict=True))
        found = grad(
            outputs,
            inputs,
            [by_place.get(i) for i in range(len(outputs))],
            True,
            create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )
        used[:] = [g is not None for g in found]
        return tuple(g for g in found if g is not None)

    batched = iter(CALLBACKS.vmap(grad_of_one)(*(grads[i] for i in given)))
    return tuple(next(batched) if is_used else None for is_used in used)


def _run_node(node, grads):
    from .engine import run_node

    return run_node(node, grads)


def _raise_modified_error(value, node, have: int, expected: int):
    from .saved_values import raise_modified_error

    raise_modified_error(value, node, have, expected)


def _saved_value(node, name: str):
    from .saved_tensors import saved_value

    return saved_value(node, name)


def _saved_names(node) -> list[str]:
    from .saved_tensors import saved_names

    return saved_names(node)


def _visible_tangents(tensor) -> list:
    from ._tangents import visible_tangents

    return visible_tangents(tensor)


def _drop_tangents(tensor) -> None:
    from ._tangents import drop_tangents

    drop_tangents(tensor)


def _send_tangents(source, target, function) -> None:
    from ._tangents import map_tangents

    map_tangents(source, target, function)


def _with_tangents(source, target) -> Tensor:
    from ._tangents import copy_tangents

    return copy_tangents(source, target)


CALLBACKS.visible_tangents, CALLBACKS.drop_tangents, CALLBACKS.map_tangents = (
    _visible_tangents,
    _drop_tangents,
    _send_tangents,
)
CALLBACKS.copy_tangents = _with_tangents
CALLBACKS.backward, CALLBACKS.run_node = backward, _run_node
CALLBACKS.saved_value, CALLBACKS.saved_names = _saved_value, _saved_names
CALLBACKS.raise_modified_error = _raise_modified_error
