"""Checks derivatives against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite._settings.module_dir import make_module_dir

from .._dispatch.callbacks import CALLBACKS
from .._tensor import Tensor
from .backward_api import grad


class GradcheckError(RuntimeError):
    """Error of `gradcheck`: a derivative differs from the finite difference, or a gradient has a wrong property.

    Example:
        >>> issubclass(torch.autograd.gradcheck.__globals__["GradcheckError"], RuntimeError)
        True
    """


def _flatten_outputs(function, inputs):
    found = function(*inputs)
    found = (found,) if isinstance(found, Tensor) else tuple(found)
    return [o for o in found if isinstance(o, Tensor) and o.requires_grad]


def _perturb_input(inputs, target, change):
    """The inputs with `change` added to the one at position `target`."""
    from .grad_mode import no_grad

    with no_grad():
        moved = (inputs[target].detach() + change).requires_grad_()
    return [*inputs[:target], moved, *inputs[target + 1 :]]


def _outputs_to_numpy(outputs) -> np.ndarray:
    parts = [o.detach()._host_array(force=True).reshape(-1) for o in outputs]
    flat = np.concatenate(parts) if parts else np.zeros(0)
    return flat.astype(np.complex128 if np.iscomplexobj(flat) else np.float64)


def _test_directions(shape, complex_: bool, rng, count: int | None):
    """Directions to test in: `count` random ones, or (None) every unit vector."""
    n = int(np.prod(shape))
    if count is not None:
        for _ in range(count):
            for part in (1, 1j) if complex_ else (1,):
                u = rng.standard_normal(shape)
                yield part * u / max(float(np.linalg.norm(u)), np.finfo(float).tiny)
        return
    for i in range(n):
        unit = np.zeros(n)
        unit[i] = 1
        yield unit.reshape(shape)
        if complex_:
            yield 1j * unit.reshape(shape)


def _check_input(function, inputs, position, eps, atol, rtol, count, rng):
    from .._tensor.creation import tensor

    x = inputs[position]
    outputs = _flatten_outputs(function, inputs)
    cotangents = [
        rng.standard_normal(o.shape) + (1j * rng.standard_normal(o.shape) if o.is_complex() else 0) for o in outputs
    ]
    v = [tensor(c, dtype=o.dtype, device=o.device) for c, o in zip(cotangents, outputs, strict=True)]
    (g,) = grad(outputs, [x], v, allow_unused=True)
    analytic_g = np.zeros(x.shape) if g is None else _to_dense(g.detach())._host_array(force=True)
    flat_v = np.concatenate([c.reshape(-1) for c in cotangents]) if cotangents else np.zeros(0)
    for u in _test_directions(x.shape, x.is_complex(), rng, count):
        step = tensor(u * eps, dtype=x.dtype, device=x.device)
        high, low = (
            _outputs_to_numpy(_flatten_outputs(function, _perturb_input(inputs, position, s))) for s in (step, -step)
        )
        numeric = np.sum((high - low) / (2 * eps) * np.conj(flat_v)).real
        analytic = np.sum(np.conj(analytic_g) * u).real
        if not np.isclose(numeric, analytic, atol=atol * max(1.0, np.abs(u).sum()), rtol=rtol):
            raise GradcheckError(
                f"Jacobian mismatch for input {position}: numerical {numeric:.8g}, analytical {analytic:.8g} "
                "(projected on a random cotangent, in the direction "
                f"{np.array2string(u.reshape(-1)[:4], precision=3)} …)"
            )


def _to_dense(tensor):
    return tensor.to_dense() if tensor._tl_is_sparse else tensor


def _make_dense_function(function, inputs, masked: bool):
    """A function of dense tensors in place of a function's sparse inputs, and these inputs."""
    if any(
        isinstance(x, Tensor) and x._tl_is_sparse for x in (inputs if isinstance(inputs, (tuple, list)) else [inputs])
    ):
        return CALLBACKS.sparse("as_dense_function")(function, inputs, masked)
    return function, inputs


def _prepare_inputs(inputs):
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    positions = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not positions:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    import warnings

    for i in positions:
        if inputs[i].dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                UserWarning,
                stacklevel=3,
            )
    return inputs, positions


def _check_forward(func, inputs, wanted, eps, atol, rtol, fast_mode, rng, undefined: bool, batched: bool) -> None:
    from ._forward_gradcheck import ForwardCheck

    check = ForwardCheck(func, inputs, wanted, eps, atol, rtol, GradcheckError)

    def draw_directions(position):
        x = inputs[position]
        if not fast_mode:
            return _test_directions(x.shape, x.is_complex(), rng, None)
        return [rng.standard_normal(x.shape) + (1j * rng.standard_normal(x.shape) if x.is_complex() else 0)]

    check.check_against_differences(draw_directions)
    if undefined:
        check.check_zero_tangents(rng)
    if batched:
        check.check_batched_tangents(rng)


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
) -> bool:
    r"""Compares the derivatives of a function with central differences.

    The difference quotient in a direction :math:`u` is :math:`(f(x + \epsilon u) - f(x - \epsilon u)) / 2 \epsilon`.
    It is compared with the analytical derivative after a projection on a random cotangent. The random numbers have a
    fixed seed.

    Args:
        func: The function of tensors; returns a tensor or a tuple of tensors.
        inputs: The tensor, or tuple of arguments, to call it with. Tensors that require grad are checked; they should
            be
            float64 or complex128.
        eps: The step of the difference. Default: 1e-6.
        atol: Absolute tolerance. Default: 1e-5.
        rtol: Relative tolerance. Default: 1e-3.
        raise_exception: Whether a mismatch raises. Default: ``True``; else the result is ``False``.
        nondet_tol: The difference allowed between two backward passes of the same point. Default: 0.
        check_undefined_grad: Whether to check that an output without a gradient counts as zeros. Default: ``True``.
        check_grad_dtypes: Whether to check that each gradient has its input's dtype. Default: ``False``.
        check_batched_grad: Whether to check `torch.vmap` over backward. Default: ``False``.
        check_batched_forward_grad: Whether to check `torch.vmap` over forward mode. Default: ``False``.
        check_forward_ad: Whether to check forward mode. Default: ``False``.
        check_backward_ad: Whether to check reverse mode. Default: ``True``.
        fast_mode: Whether to test one random direction in place of every element. Default: ``False``.
        masked: For sparse inputs, whether only the specified elements count. Default: ``None``, as ``False``.

    Returns:
        ``True`` if all checks pass.

    Raises:
        GradcheckError: A check fails; a RuntimeError.
        ValueError: No input requires grad.
        AssertionError: The flags contradict each other.

    Example:
        >>> x = torch.rand(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(torch.sin, (x,))
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    func, inputs = _make_dense_function(func, inputs, bool(masked))
    inputs, positions = _prepare_inputs(inputs)
    rng = np.random.default_rng(0)
    try:
        for position in positions if check_backward_ad else ():
            _check_input(func, inputs, position, eps, atol, rtol, 1 if fast_mode else None, rng)
        if check_forward_ad:
            _check_forward(
                func,
                inputs,
                positions,
                eps,
                atol,
                rtol,
                fast_mode,
                rng,
                check_undefined_grad,
                check_batched_forward_grad,
            )
        if check_backward_ad:
            from ._backward_gradcheck import BackwardCheck  # its modules are loaded with the first check

            check = BackwardCheck(
                lambda: _flatten_outputs(func, inputs),
                [inputs[i] for i in positions],
                bool(masked),
                GradcheckError,
                rng,
            )
            check.check_deterministic(nondet_tol)
            if check_batched_grad:
                check.check_batched()
            check.check_zeros()
            if check_undefined_grad:
                check.check_undefined()
        if check_grad_dtypes and check_backward_ad:
            outputs = _flatten_outputs(func, inputs)
            for x, g in zip(
                [inputs[i] for i in positions],
                grad(outputs, [inputs[i] for i in positions], [o.detach() for o in outputs], allow_unused=True),
                strict=True,
            ):
                if g is not None and g.dtype is not x.dtype:
                    raise GradcheckError(f"a gradient has dtype {g.dtype}, its input {x.dtype}")
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _random_like(output: Any, rng: Any, non_contiguous: bool) -> Any:
    from .._tensor.creation import tensor

    shape = (*output.shape, 2) if non_contiguous and output.ndim else output.shape
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if output.is_complex() else 0)
    made: Any = tensor(values, dtype=output.dtype, device=output.device)
    return (made[..., 0] if len(shape) > output.ndim else made).detach().requires_grad_()


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
) -> bool:
    """Compares the second derivatives of a function with central differences: `gradcheck` of its gradient.

    Args:
        func: The function of tensors; returns a tensor or a tuple of tensors.
        inputs: The tensor, or tuple of arguments, to call it with.
        grad_outputs: The weights of the outputs. Default: random values.
        eps: As for `gradcheck`.
        atol: As for `gradcheck`.
        rtol: As for `gradcheck`.
        gen_non_contig_grad_outputs: Whether the random weights are not contiguous in memory. Default: ``False``.
        raise_exception: As for `gradcheck`.
        nondet_tol: As for `gradcheck`.
        check_undefined_grad: As for `gradcheck`.
        check_grad_dtypes: As for `gradcheck`.
        check_batched_grad: As for `gradcheck`.
        check_fwd_over_rev: Whether to check forward mode of the gradient. Default: ``False``.
        check_rev_over_rev: Whether to check reverse mode of the gradient. Default: ``True``.
        fast_mode: As for `gradcheck`.
        masked: As for `gradcheck`.

    Returns:
        ``True`` if all checks pass.

    Raises:
        GradcheckError: A check fails; a RuntimeError.
        ValueError: No input requires grad.
        AssertionError: The flags contradict each other.

    Example:
        >>> x = torch.rand(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(torch.sin, (x,))
        True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")

    func, inputs = _make_dense_function(func, inputs, masked)
    inputs, positions = _prepare_inputs(inputs)
    outputs = _flatten_outputs(func, inputs)
    if grad_outputs is None:
        rng = np.random.default_rng(1)
        grad_outputs = [_random_like(o, rng, gen_non_contig_grad_outputs) for o in outputs]
    grad_outputs = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    count = len(inputs)
    differentiated = {*positions, *(count + i for i, g in enumerate(grad_outputs) if g.requires_grad)}

    def gradient(*everything):
        for i, value in enumerate(everything):  # forward mode gives them without
            if i in differentiated and not value.requires_grad:
                value.requires_grad_()
        x, g = everything[:count], everything[count:]
        found = grad(_flatten_outputs(func, x), [x[i] for i in positions], g, create_graph=True, allow_unused=True)
        return tuple(_to_dense(f) for f in found if f is not None and f.requires_grad)

    if not gradient(*inputs, *grad_outputs):
        return True
    return gradcheck(
        gradient,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad and check_rev_over_rev,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _warn_deprecated(name: str, grad_out: float) -> None:
    import warnings

    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be "
        "removed in a future version of PyTorch. If you have a specific use for this or feature request for this to be "
        "a stable API, please file us an issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def _refuse_complex(name: str, output: Tensor) -> None:
    if output.is_complex():
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return complex outputs."
        )


def _tensors_requiring_grad(inputs) -> list[Tensor]:
    """The tensors among the inputs, which may be nested, that want gradients."""
    if isinstance(inputs, Tensor):
        return [inputs] if inputs.requires_grad else []
    return [x for part in inputs for x in _tensors_requiring_grad(part)] if isinstance(inputs, (tuple, list)) else []


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """Computes Jacobians by central differences. Deprecated, as in PyTorch; use `gradcheck`.

    Args:
        fn: Called as ``fn(inputs)``; returns a tensor or a sequence whose first item is one.
        inputs: A tensor, or a nested sequence of tensors. Their elements change during the call.
        target: The tensors to differentiate by. Default: ``inputs``.
        eps: The step of the difference. Default: 1e-3.
        grad_out: Must be 1.

    Returns:
        A tuple with a matrix for each tensor that requires grad, of shape (elements of the tensor, elements of the
        output).

    Raises:
        ValueError: The output is complex, or ``grad_out`` is not 1.
    """
    from .grad_mode import no_grad

    name = "get_numerical_jacobian"
    _warn_deprecated(name, grad_out)
    inputs = (inputs,) if isinstance(inputs, Tensor) else inputs

    def value() -> Tensor:
        found = fn(inputs)
        found = found if isinstance(found, Tensor) else found[0]
        _refuse_complex(name, found)
        return found.detach().clone().reshape(-1)

    def slopes(x: Tensor, direction: complex) -> list[Tensor]:
        found = []
        for i in range(x.numel()):
            place = tuple(map(int, np.unravel_index(i, tuple(x.shape))))
            before, ends = x[place].item(), []
            for step in (eps, -eps):
                x[place] = before + direction * step
                ends.append(value())
            x[place] = before
            found.append((ends[0] - ends[1]) / (2 * eps))
        return found

    jacobians = []
    with no_grad():
        for tensor in _tensors_requiring_grad(inputs if target is None else target):
            x, width = tensor.data, value().numel()
            jacobian = x.new_zeros((x.numel(), width))
            for direction in (1, 1j) if x.is_complex() else (1,):
                for i, row in enumerate(slopes(x, direction)):
                    jacobian[i] += direction * row
            jacobians.append(jacobian)
    return tuple(jacobians)


def get_analytical_jacobian(inputs, output, nondet_tol=0.0, grad_out=1.0):
    """Computes Jacobians by backward passes. Deprecated, as in PyTorch; use `gradcheck`.

    Args:
        inputs: A tensor, or a nested sequence of tensors.
        output: The tensor to differentiate.
        nondet_tol: The difference allowed between two backward passes. Default: 0.
        grad_out: Must be 1.

    Returns:
        A tuple of the Jacobians, as `get_numerical_jacobian` returns them; whether two passes gave the same; whether
        the gradients had the shapes of the inputs; and whether they had their dtypes.

    Raises:
        ValueError: The output is complex, or ``grad_out`` is not 1.
    """
    _warn_deprecated("get_analytical_jacobian", grad_out)
    _refuse_complex("get_analytical_jacobian", output)
    input_tensors = _tensors_requiring_grad(inputs)
    jacobians = [[x.new_zeros((x.numel(), output.numel())) for x in input_tensors] for _ in range(2)]
    sizes = types = True
    for j in range(output.numel()):
        unit = output.detach().new_zeros(output.numel())
        unit[j] = 1
        for found in jacobians:
            grads = grad([output], input_tensors, [unit.reshape(output.shape)], retain_graph=True, allow_unused=True)
            for x, jacobian, g in zip(input_tensors, found, grads, strict=True):
                if g is not None:
                    sizes, types = sizes and g.shape == x.shape, types and g.dtype is x.dtype
                    jacobian[:, j] = g.detach().reshape(-1)
    alike = all((a - b).abs().max() <= nondet_tol for a, b in zip(*jacobians, strict=True) if a.numel())
    return tuple(jacobians[0]), alike, sizes, types


__dir__ = make_module_dir(globals())
