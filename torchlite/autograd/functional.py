"""Jacobians, Hessians and their products with vectors, by repeated reverse mode."""

from __future__ import annotations

from .._dispatch.public import torch
from .._tensor import Tensor
from .entry import grad
from .grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(value, what: str):
    single = isinstance(value, Tensor)
    values = (value,) if single else tuple(value)
    for i, item in enumerate(values):
        if not isinstance(item, Tensor):
            raise TypeError(
                f"The {what} given to this function must be either a Tensor or a tuple of Tensors but the value at "
                f"index {i} has type {type(item)}."
            )
    return single, values


def _fresh(inputs, create_graph: bool):
    """Inputs whose gradient can be asked for, still linked to the caller's when a graph is wanted."""
    return tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in inputs)


def _finish(values, create_graph: bool):
    if isinstance(values, Tensor):
        return values if create_graph else values.detach()
    return tuple(_finish(v, create_graph) for v in values)


def _grad(outputs, inputs, vectors, create_graph: bool, strict: bool):
    if not any(o.requires_grad for o in outputs):
        if strict:
            raise RuntimeError(
                "The output of the user-provided function is independent of the input. This is not allowed in strict "
                "mode."
            )
        return tuple(torch.zeros_like(x) for x in inputs)
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    found = grad(
        [o for o, _ in pairs],
        inputs,
        [v for _, v in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    if strict and any(g is None for g in found):
        raise RuntimeError(
            "The output of the user-provided function is independent of an input. This is not allowed in strict mode."
        )
    return tuple(torch.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True))


def _vectors(v, like, name: str):
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {name} of the user-provided function is a single Tensor with "
                "a single element."
            )
        return (torch.ones_like(like[0]),)
    vectors = _as_tuple(v, "v")[1]
    if len(vectors) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
    for i, (a, b) in enumerate(zip(vectors, like, strict=True)):
        if a.shape != b.shape:
            raise RuntimeError(f"Entry {i} of v has invalid size: should be {b.shape} but got {a.shape}.")
    return vectors


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), v^T J): the product of a vector with the Jacobian.

    v: like the output(s); may be None for one output of one element. With `create_graph` the result is differentiable.

    >>> import torchlite as torch
    >>> torch.autograd.functional.vjp(torch.exp, torch.zeros(2), torch.ones(2))[1]
    tensor([1., 1.])
    """
    with enable_grad():
        single, inputs = _as_tuple(inputs, "inputs")
        inputs = _fresh(inputs, create_graph)
        outputs = func(*inputs)
        single_out, outs = _as_tuple(outputs, "outputs of the user-provided function")
        vectors = _vectors(v, outs, "output")
        found = _grad(outs, inputs, vectors, create_graph, strict)
    return _finish(outs[0] if single_out else outs, create_graph), _finish(found[0] if single else found, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), J v): the product of the Jacobian with a vector, by differentiating the vector-Jacobian product.

    v: like the input(s); may be None for one input of one element.
    """
    with enable_grad():
        _, inputs = _as_tuple(inputs, "inputs")
        inputs = _fresh(inputs, create_graph)
        vectors = _vectors(v, inputs, "input")
        outputs = func(*inputs)
        single_out, outs = _as_tuple(outputs, "outputs of the user-provided function")
        dummies = tuple(torch.zeros_like(o).requires_grad_() for o in outs)
        pulled = _grad(outs, inputs, dummies, True, strict)
        found = _grad(pulled, dummies, vectors, create_graph, False)
    return _finish(outs[0] if single_out else outs, create_graph), _finish(
        found[0] if single_out else found, create_graph
    )


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian of func: for each output and input a tensor of shape output.shape + input.shape (nested tuples when
    there are several).

    >>> import torchlite as torch
    >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    with enable_grad():
        single, inputs = _as_tuple(inputs, "inputs")
        inputs = _fresh(inputs, create_graph)
        outputs = func(*inputs)
        single_out, outs = _as_tuple(outputs, "outputs of the user-provided function")
        rows = []
        for out in outs:
            columns = []
            for i in range(out.numel()):
                unit = torch.zeros_like(out).reshape(-1)
                unit[i] = 1
                columns.append(_grad((out,), inputs, (unit.reshape(out.shape),), create_graph, strict))
            rows.append(
                tuple(
                    torch.stack([c[j] for c in columns]).reshape(tuple(out.shape) + tuple(x.shape))
                    if columns
                    else torch.zeros_like(x).expand(tuple(out.shape) + tuple(x.shape))
                    for j, x in enumerate(inputs)
                )
            )
    result = tuple(r[0] if single else r for r in rows)
    return _finish(result[0] if single_out else result, create_graph)


def _scalar(func):
    def checked(*inputs):
        out = func(*inputs)
        if not isinstance(out, Tensor):
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if out.numel() != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return out.squeeze() if out.ndim else out

    return checked


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a function with one scalar output: the Jacobian of its gradient (nested tuples when there are
    several inputs).
    """
    single, inputs = _as_tuple(inputs, "inputs")
    scalar = _scalar(func)

    def gradient(*x):
        found = jacobian(scalar, x if len(x) > 1 else x[0], create_graph=True)
        return found

    found = jacobian(gradient, inputs if not single else inputs[0], create_graph=create_graph, strict=strict)
    return found


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), v^T H): the product of a vector with the Hessian of a function with one scalar output."""
    with enable_grad():
        single, inputs = _as_tuple(inputs, "inputs")
        inputs = _fresh(inputs, create_graph)
        vectors = _vectors(v, inputs, "input")
        out = _scalar(func)(*inputs)
        first = _grad((out,), inputs, (None,), True, strict)
        found = _grad(first, inputs, vectors, create_graph, False)
    return _finish(out, create_graph), _finish(found[0] if single else found, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), H v): the product of the Hessian, which is symmetric, with a vector."""
    return vhp(func, inputs, v, create_graph, strict)
