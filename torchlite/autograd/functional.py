"""Jacobians, Hessians and their products with vectors, by repeated reverse mode."""

from __future__ import annotations

from torchlite._settings.module_dir import make_module_dir

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.public_functions import torch
from .._tensor import Tensor
from .backward_api import grad
from .grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _to_tuple_with_flag(value, what: str, name: str):
    """True if a value is a single Tensor, and the value as a tuple. TypeError for what is neither."""
    if isinstance(value, Tensor):
        return True, (value,)
    words = f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the "
    if not isinstance(value, tuple):
        raise TypeError(f"{words}given {what} has type {type(value)}.")
    for i, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise TypeError(f"{words}value at index {i} has type {type(item)}.")
    return False, value


def _as_tuple(inp, arg_name=None, fn_name=None):
    """True if a value is a tuple (of tensors), and the value as one. TypeError for what is neither a Tensor nor a
    tuple of them. Packages call this name and those of the next two.
    """
    if arg_name is None and fn_name is None:
        return isinstance(inp, tuple), inp if isinstance(inp, tuple) else (inp,)
    single, values = _to_tuple_with_flag(inp, arg_name, fn_name)
    return not single, values


def _grad_postprocess(inputs, create_graph):
    """A tuple of tensors, or of tuples of them, without history unless it is to be differentiated again."""
    if create_graph:
        return inputs
    return tuple(x.detach() if isinstance(x, Tensor) else _grad_postprocess(x, False) for x in inputs)


def _tuple_postprocess(res, to_unpack):
    """A tuple, or its only item where `to_unpack` is False; with a pair, the same for the tuples in it."""
    if isinstance(to_unpack, tuple):
        outer, inner = to_unpack
        rows = res if inner else tuple(row[0] for row in res)
        return rows if outer else rows[0]
    return res if to_unpack else res[0]


def _call_for_outputs(func, inputs, name: str, strict: bool):
    """(whether the output is a single Tensor, the outputs)."""
    single, outs = _to_tuple_with_flag(func(*inputs), "outputs of the user-provided function", name)
    for i, out in enumerate(outs):
        if strict and not out.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in "
                "a differentiable manner from the input when running in strict mode."
            )
    return single, outs


def _call_for_scalar(func, inputs, name: str, strict: bool):
    """The output, which must be a single one-element Tensor."""
    single, outs = _call_for_outputs(func, inputs, name, strict)
    if not single:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    (out,) = outs
    if out.numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return out.squeeze() if out.ndim else out


def _grad_inputs(inputs, create_graph: bool):
    """Differentiable copies of the inputs; with create_graph they stay connected to the caller's graph."""
    return tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in inputs)


def _detach_unless_create_graph(values, create_graph: bool):
    if isinstance(values, Tensor):
        return values if create_graph else values.detach()
    return tuple(_detach_unless_create_graph(v, create_graph) for v in values)


def _compute_grads(outputs, inputs, vectors, create_graph: bool):
    """The gradients; None for an unused input."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outs, weights = zip(*pairs, strict=True)
    return grad(outs, inputs, weights, retain_graph=True, create_graph=create_graph, allow_unused=True)


def _replace_none(found, like, words: str):
    """Replace None among gradients by zeros; if `words` is given, raise an error that begins with it."""
    for i, g in enumerate(found):
        if g is None and words:
            raise RuntimeError(f"{words} {i}. This is not allowed in strict mode.")
    return tuple(torch.zeros_like(x) if g is None else g for g, x in zip(found, like, strict=True))


def _check_depends(found, words: str) -> None:
    """RuntimeError for a gradient that is no function of the inputs."""
    for i, g in enumerate(found):
        if not g.requires_grad:
            raise RuntimeError(words.format(i))


_OF_OUTPUT = "The output of the user-provided function is independent of input"
_OF_JACOBIAN = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
    "create_graph=True."
)
_OF_HESSIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example)."
)


def _check_vectors(v, like, single: bool, name: str, absent: str):
    """The vectors, checked against the shapes of some tensors; ones for a single element."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if the {absent} a single Tensor with a single element.")
        return (torch.ones_like(like[0]),)
    vectors = _to_tuple_with_flag(v, "v", name)[1]
    if len(vectors) != len(like):
        if single:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
    for i, (a, b) in enumerate(zip(vectors, like, strict=True)):
        if a.shape != b.shape:
            where = "" if single else f"Entry {i} in "
            raise RuntimeError(f"{where}v has invalid size: should be {b.shape} but got {a.shape}.")
    return vectors


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    r"""Computes a function's outputs and the product :math:`v^{\mathsf{T}} J` of a vector with its Jacobian.

    Args:
        func: The function of tensors; returns a tensor or a tuple of tensors.
        inputs: The tensor, or tuple of tensors, to call it with.
        v: The vector: like the outputs in number and shape. May be ``None`` for one output of one element.
        create_graph: Whether the results can be differentiated. Default: ``False``.
        strict: Whether an output that does not depend on an input raises, in place of zeros. Default: ``False``.

    Returns:
        A pair: the outputs of ``func``, and the product, which has the structure of ``inputs``.

    Raises:
        TypeError: The inputs, ``v`` or the outputs are neither a tensor nor a tuple of tensors.
        RuntimeError: ``v`` does not fit the outputs, or ``strict`` finds an independent output.

    Example:
        >>> torch.autograd.functional.vjp(torch.exp, torch.zeros(2), torch.tensor([1.0, 2.0]))
        (tensor([1., 1.]), tensor([1., 2.]))

    See also:
        `torch.func.vjp`.
    """
    with enable_grad():
        single, inputs = _to_tuple_with_flag(inputs, "inputs", "vjp")
        inputs = _grad_inputs(inputs, create_graph)
        single_out, outs = _call_for_outputs(func, inputs, "vjp", strict)
        vectors = _check_vectors(v, outs, single_out, "vjp", "user-provided function returns")
        found = _replace_none(_compute_grads(outs, inputs, vectors, create_graph), inputs, _OF_OUTPUT if strict else "")
        if strict and create_graph:
            _check_depends(found, _OF_JACOBIAN)
    return _detach_unless_create_graph(outs[0] if single_out else outs, create_graph), _detach_unless_create_graph(
        found[0] if single else found, create_graph
    )


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """Computes a function's outputs and the product :math:`J v` of its Jacobian with a vector.

    It differentiates the vector-Jacobian product in reverse mode, which takes two backward passes.

    Args:
        func: The function of tensors; returns a tensor or a tuple of tensors.
        inputs: The tensor, or tuple of tensors, to call it with.
        v: The vector: like the inputs in number and shape. May be ``None`` for one input of one element.
        create_graph: Whether the results can be differentiated. Default: ``False``.
        strict: Whether an output that does not depend on an input raises, in place of zeros. Default: ``False``.

    Returns:
        A pair: the outputs of ``func``, and the product, which has their structure.

    Raises:
        TypeError: The inputs, ``v`` or the outputs are neither a tensor nor a tuple of tensors.
        RuntimeError: ``v`` does not fit the inputs, or ``strict`` finds an independent output.

    Example:
        >>> torch.autograd.functional.jvp(lambda x: x * x, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        (tensor([1., 4.]), tensor([2., 4.]))

    See also:
        `torch.func.jvp`, which takes one pass in forward mode.
    """
    with enable_grad():
        single, inputs = _to_tuple_with_flag(inputs, "inputs", "jvp")
        inputs = _grad_inputs(inputs, create_graph)
        vectors = _check_vectors(v, inputs, single, "jvp", "input to the user-provided function is")
        single_out, outs = _call_for_outputs(func, inputs, "jvp", strict)
        dummies = tuple(torch.zeros_like(o).requires_grad_() for o in outs)
        pulled = _replace_none(_compute_grads(outs, inputs, dummies, True), inputs, _OF_OUTPUT if strict else "")
        found = _replace_none(_compute_grads(pulled, dummies, vectors, create_graph), dummies, "")
        if strict and create_graph:
            _check_depends(found, _OF_JACOBIAN)
    return _detach_unless_create_graph(outs[0] if single_out else outs, create_graph), _detach_unless_create_graph(
        found[0] if single_out else found, create_graph
    )


def _check_strategy(strategy: str, hint: str = "") -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f'Expected strategy to be either "forward-mode" or "reverse-mode".{hint}')


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    r"""Computes the Jacobian :math:`J_{ij} = \partial y_i / \partial x_j` of a function.

    Args:
        func: The function of tensors; returns a tensor or a tuple of tensors.
        inputs: The tensor, or tuple of tensors, to call it with.
        create_graph: Whether the result can be differentiated. Default: ``False``.
        strict: Whether an output that does not depend on an input raises, in place of zeros. Default: ``False``.
        vectorize: Whether `torch.vmap` computes all rows (or columns) at once. Default: ``False``: one backward pass
            for each element of the outputs.
        strategy: ``"reverse-mode"`` (default) or ``"forward-mode"``, which needs ``vectorize=True``.

    Returns:
        For one input and one output, a tensor of shape ``output.shape + input.shape``. A tuple of outputs gives a
        tuple,
        and a tuple of inputs gives a tuple in each place of it.

    Raises:
        AssertionError: ``strategy`` is none of the two.
        NotImplementedError: Forward mode is used without ``vectorize``, or with ``create_graph``.
        RuntimeError: ``strict`` finds an independent output, or is used with ``vectorize``.

    Example:
        >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])

    See also:
        `torch.func.jacrev`, `torch.func.jacfwd`.
    """
    _check_strategy(
        strategy,
        ' Hint: If your function has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, '
        'prefer to use "reverse-mode".',
    )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )
    if strategy == "forward-mode":
        if strict:
            raise RuntimeError(
                'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
                'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
            )
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not '
                'supported together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        return _vectorized_forward_jacobian(func, inputs)
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    with enable_grad():
        single, inputs = _to_tuple_with_flag(inputs, "inputs", "jacobian")
        inputs = _grad_inputs(inputs, create_graph)
        single_out, outs = _call_for_outputs(func, inputs, "jacobian", strict)
        if vectorize:
            rows = [_vectorized_jacobian(out, inputs, create_graph) for out in outs]
        else:
            rows = [_jacobian_rows(i, out, inputs, create_graph, strict) for i, out in enumerate(outs)]
    result = tuple(r[0] if single else r for r in rows)
    return _detach_unless_create_graph(result[0] if single_out else result, create_graph)


def _vectorized_forward_jacobian(func, inputs):
    """The Jacobian in forward mode, by `vmap` over the unit vectors of all inputs."""
    from .forward_ad import dual_level, make_dual, unpack_dual

    with enable_grad():
        single, inputs = _to_tuple_with_flag(inputs, "inputs", "jacobian")
        inputs = _grad_inputs(inputs, False)
        numels, start, units = [x.numel() for x in inputs], 0, []
        for x, n in zip(inputs, numels, strict=True):
            unit = torch.zeros(sum(numels), n, dtype=x.dtype, device=x.device)
            unit.diagonal(-start).fill_(1)
            units.append(unit.view(-1, *x.shape) if n else unit.view(sum(numels), *x.shape))
            start += n
        single_out: list[bool] = []

        def push(*tangents):
            with dual_level():
                duals = [make_dual(x, t) for x, t in zip(inputs, tangents, strict=True)]
                is_single, outs = _call_for_outputs(func, duals, "jacobian", False)
                single_out[:] = [is_single]
                pairs = [unpack_dual(o) for o in outs]
                return tuple(torch.zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs)

        columns = CALLBACKS.vmap(push)(*units)
    result = []
    for column in columns:
        parts = column.movedim(0, -1).split(numels, -1)
        jacobians = tuple(p.reshape((*p.shape[:-1], *x.shape)).detach() for p, x in zip(parts, inputs, strict=True))
        result.append(jacobians[0] if single else jacobians)
    return result[0] if single_out[0] else tuple(result)


def _vectorized_jacobian(out, inputs, create_graph: bool) -> tuple:
    """The Jacobian of one output, by `vmap` over its elements."""
    count, shape = out.numel(), tuple(out.shape)
    found = [None] * len(inputs)
    if out.requires_grad and count:
        units = torch.eye(count, dtype=out.dtype, device=out.device).reshape((count, *shape))
        found = grad((out,), inputs, (units,), True, create_graph, allow_unused=True, is_grads_batched=True)
    return tuple(
        torch.zeros_like(x).expand(shape + tuple(x.shape)) if g is None else g.reshape(shape + tuple(x.shape))
        for g, x in zip(found, inputs, strict=True)
    )


def _construct_standard_basis_for(tensors, tensor_numels):
    """The unit vectors of all tensors' elements, split by tensor, with shapes (total number of elements, number of
    elements) and the tensors' dtypes and devices. External packages use this name.
    """
    total, basis, start = sum(tensor_numels), [], 0
    for t, n in zip(tensors, tensor_numels, strict=True):
        unit = torch.zeros(total, n, dtype=t.dtype, device=t.device)
        unit.diagonal(-start).fill_(1)
        basis.append(unit)
        start += n
    return tuple(basis)


def _jacobian_rows(number: int, out, inputs, create_graph: bool, strict: bool) -> tuple:
    """The Jacobian of one output, as one tensor for each input."""
    columns = []
    for i in range(out.numel()):
        unit = torch.zeros_like(out).reshape(-1)
        unit[i] = 1
        words = f"Output {number} of the user-provided function is independent of input" if strict else ""
        columns.append(
            _replace_none(_compute_grads((out,), inputs, (unit.reshape(out.shape),), create_graph), inputs, words)
        )
        if strict and create_graph:
            _check_depends(columns[-1], _OF_JACOBIAN)
    return tuple(
        torch.stack([c[j] for c in columns]).reshape(tuple(out.shape) + tuple(x.shape))
        if columns
        else torch.zeros_like(x).expand(tuple(out.shape) + tuple(x.shape))
        for j, x in enumerate(inputs)
    )


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    r"""Computes the Hessian :math:`H_{ij} = \partial^2 y / \partial x_i \, \partial x_j` of a scalar function.

    Args:
        func: The function of tensors; returns a tensor of one element.
        inputs: The tensor, or tuple of tensors, to call it with.
        create_graph: Whether the result can be differentiated. Default: ``False``.
        strict: Whether a gradient that does not depend on an input raises, in place of zeros. Default: ``False``.
        vectorize: Whether `torch.vmap` computes all rows at once. Default: ``False``.
        outer_jacobian_strategy: The ``strategy`` of the outer `jacobian`. Default: ``"reverse-mode"``.

    Returns:
        For one input, a tensor of shape ``input.shape + input.shape``; for several, a tuple of tuples.

    Raises:
        RuntimeError: ``func`` does not return a single element, or ``strict`` finds an independent gradient.

    Example:
        >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])

    See also:
        `torch.func.hessian`.
    """
    single, inputs = _to_tuple_with_flag(inputs, "inputs", "hessian")
    _check_strategy(outer_jacobian_strategy)

    def gradient(*x):
        found = jacobian(
            lambda *y: _call_for_scalar(func, y, "hessian", strict), x[0] if single else x, create_graph=True
        )
        if strict:
            _check_depends(_to_tuple_with_flag(found, "", "")[1], _OF_HESSIAN)
        return found

    return jacobian(gradient, inputs[0] if single else inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    r"""Computes a scalar function's output and the product :math:`v^{\mathsf{T}} H` of a vector with its Hessian.

    Args:
        func: The function of tensors; returns a tensor of one element.
        inputs: The tensor, or tuple of tensors, to call it with.
        v: The vector: like the inputs in number and shape. May be ``None`` for one input of one element.
        create_graph: Whether the results can be differentiated. Default: ``False``.
        strict: Whether a gradient that does not depend on an input raises, in place of zeros. Default: ``False``.

    Returns:
        A pair: the output of ``func``, and the product, which has the structure of ``inputs``.

    Raises:
        RuntimeError: ``func`` does not return a single element, ``v`` does not fit the inputs, or ``strict`` finds an
            independent gradient.

    Example:
        >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _with_hessian("vhp", func, inputs, v, create_graph, strict)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """Computes a scalar function's output and the product :math:`H v` of its Hessian with a vector.

    The Hessian is symmetric, so this computes the same as `vhp`, at the same cost.

    Args:
        func: The function of tensors; returns a tensor of one element.
        inputs: The tensor, or tuple of tensors, to call it with.
        v: The vector: like the inputs in number and shape. May be ``None`` for one input of one element.
        create_graph: Whether the results can be differentiated. Default: ``False``.
        strict: Whether a gradient that does not depend on an input raises, in place of zeros. Default: ``False``.

    Returns:
        A pair: the output of ``func``, and the product, which has the structure of ``inputs``.

    Raises:
        RuntimeError: ``func`` does not return a single element, ``v`` does not fit the inputs, or ``strict`` finds an
            independent gradient.

    Example:
        >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _with_hessian("hvp", func, inputs, v, create_graph, strict)


def _with_hessian(name: str, func, inputs, v, create_graph: bool, strict: bool):
    with enable_grad():
        single, inputs = _to_tuple_with_flag(inputs, "inputs", name)
        inputs = _grad_inputs(inputs, create_graph)
        vectors = _check_vectors(v, inputs, single, name, "input to the user-provided function is")
        out = _call_for_scalar(func, inputs, name, strict)
        first = _compute_grads((out,), inputs, (None,), True)
        if strict:
            for i, g in enumerate(first):
                if g is not None and not g.requires_grad:
                    raise RuntimeError(_OF_HESSIAN.format(i))
                _replace_none(first[: i + 1], inputs[: i + 1], _OF_OUTPUT)
        first = _replace_none(first, inputs, "")
        found = _replace_none(
            _compute_grads(first, inputs, vectors, create_graph),
            inputs,
            "The jacobian of the user-provided function is independent of input" if strict else "",
        )
    return _detach_unless_create_graph(out, create_graph), _detach_unless_create_graph(
        found[0] if single else found, create_graph
    )


__dir__ = make_module_dir(globals())
