"""Activations of `torch.nn.functional` with `inplace=`, and softmax with an implicit dimension."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

from torchlite._dispatch import REGISTRY, F
from torchlite._dispatch.dispatch_state import OVERRIDES
from torchlite._dispatch.interceptors import call_override as _call_override
from torchlite._dispatch.op_functions import in_place_method
from torchlite._dispatch.parsed_functions import parsed
from torchlite._dispatch.tracing import TRACES as _TRACES
from torchlite._dispatch.tracing import trace_function as _handled

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DType


@functools.cache
def _make_in_place_function(name: str):
    return in_place_method(REGISTRY[name])


def _refuse_gradient(name: str, result: Tensor, slope: float) -> Tensor:
    """The result of an in-place activation. Its backward raises PyTorch's error for a negative slope: there the result
    does not tell the input's sign.
    """
    if slope < 0 and result.grad_fn is not None:

        def refuse(grads):
            if grads[0] is None:
                return
            raise RuntimeError(
                f"In-place {name} backward calculation is triggered with a negative slope which is not supported. "
                "This is caused by calling in-place forward function with a negative slope, please call out-of-place "
                "version instead."
            )

        result.grad_fn.register_prehook(refuse)
    return result


# --- activations with inplace= --------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Applies the rectified linear unit to each element.

    .. math::

        y = \max(0, x)

    Args:
        input: The input tensor, of any shape.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])

    See also:
        `torch.nn.ReLU`.
    """
    if OVERRIDES and (found := _call_override(relu, (input,), {"inplace": inplace})) is not NotImplemented:
        return found
    if _TRACES and (found := _handled("relu", **locals())) is not NotImplemented:
        return found
    return input.relu_() if inplace else F.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Limits each element to the range from 0 to 6.

    .. math::

        y = \min(\max(0, x), 6)

    Args:
        input: The input tensor, of any shape.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.relu6(torch.tensor([-1.0, 2.0, 8.0]))
        tensor([0., 2., 6.])

    See also:
        `torch.nn.ReLU6`.
    """
    if OVERRIDES and (found := _call_override(relu6, (input,), {"inplace": inplace})) is not NotImplemented:
        return found
    if _TRACES and (found := _handled("relu6", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("relu6")(input) if inplace else F.relu6(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    r"""Applies the rectified linear unit with a slope for negative elements.

    .. math::

        y = \max(0, x) + \text{negative\_slope} \cdot \min(0, x)

    Args:
        input: The input tensor, of any shape.
        negative_slope: Factor of negative elements. Default: ``0.01``.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
        tensor([-0.1000,  2.0000])

    See also:
        `torch.nn.LeakyReLU`.
    """
    if (
        OVERRIDES
        and (found := _call_override(leaky_relu, (input,), {"negative_slope": negative_slope, "inplace": inplace}))
        is not NotImplemented
    ):
        return found
    if (
        _TRACES
        and (found := _handled("leaky_relu", input, negative_slope=negative_slope, inplace=inplace))
        is not NotImplemented
    ):
        return found
    if not inplace:
        return F.leaky_relu(input, negative_slope)
    return _refuse_gradient("leakyReLu", _make_in_place_function("leaky_relu")(input, negative_slope), negative_slope)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Limits each element to a range.

    .. math::

        y = \min(\max(x, \text{min\_val}), \text{max\_val})

    Args:
        input: The input tensor, of any shape.
        min_val: Least value of the result. Default: ``-1``.
        max_val: Greatest value of the result. Default: ``1``.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.hardtanh(torch.tensor([-3.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])

    See also:
        `torch.nn.Hardtanh`.
    """
    if (
        OVERRIDES
        and (found := _call_override(hardtanh, (input,), {"min_val": min_val, "max_val": max_val, "inplace": inplace}))
        is not NotImplemented
    ):
        return found
    if (
        _TRACES
        and (found := _handled("hardtanh", input, min_val=min_val, max_val=max_val, inplace=inplace))
        is not NotImplemented
    ):
        return found
    return (
        _make_in_place_function("hardtanh")(input, min_val, max_val) if inplace else F.hardtanh(input, min_val, max_val)
    )


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    r"""Replaces the elements that are not above a threshold.

    .. math::

        y = x \text{ where } x > \text{threshold, else value}

    Args:
        input: The input tensor, of any shape.
        threshold: The threshold.
        value: The value that replaces elements up to and including the threshold.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.threshold(torch.tensor([0.5, 2.0]), 1.0, -1.0)
        tensor([-1.,  2.])

    See also:
        `torch.nn.Threshold`.
    """
    if (
        OVERRIDES
        and (found := _call_override(_THRESHOLD[0], (input, threshold, value), {"inplace": inplace}))
        is not NotImplemented
    ):
        return found
    if _TRACES and (found := _handled("threshold", **locals())) is not NotImplemented:
        return found
    return (
        _make_in_place_function("threshold")(input, threshold, value)
        if inplace
        else F.threshold(input, threshold, value)
    )


_THRESHOLD = (threshold,)  # the function, under another name than its argument


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Applies the exponential linear unit to each element (Clevert et al., 2015).

    .. math::

        y = \max(0, x) + \min(0, \alpha (\exp(x) - 1))

    Args:
        input: The input tensor, of any shape.
        alpha: The factor :math:`\alpha` of the negative part. Default: ``1``.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.elu(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])

    See also:
        `torch.nn.ELU`.
    """
    if (
        OVERRIDES
        and (found := _call_override(elu, (input,), {"alpha": alpha, "inplace": inplace})) is not NotImplemented
    ):
        return found
    if _TRACES and (found := _handled("elu", **locals())) is not NotImplemented:
        return found
    if not inplace:
        return F.elu(input, alpha)
    return _refuse_gradient("elu", _make_in_place_function("elu")(input, alpha), alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Applies the self-normalizing exponential linear unit to each element (Klambauer et al., 2017).

    .. math::

        y = \lambda (\max(0, x) + \min(0, \alpha (\exp(x) - 1)))

    The constants are :math:`\alpha \approx 1.6733` and :math:`\lambda \approx 1.0507`.

    Args:
        input: The input tensor, of any shape.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.selu(torch.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])

    See also:
        `torch.nn.SELU`.
    """
    if OVERRIDES and (found := _call_override(selu, (input,), {"inplace": inplace})) is not NotImplemented:
        return found
    if _TRACES and (found := _handled("selu", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("selu")(input) if inplace else F.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Applies the continuously differentiable exponential linear unit to each element (Barron, 2017).

    .. math::

        y = \max(0, x) + \min(0, \alpha (\exp(x / \alpha) - 1))

    Args:
        input: The input tensor, of any shape.
        alpha: The constant :math:`\alpha`, not 0. Default: ``1``.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.celu(torch.tensor([-1.0, 2.0]), alpha=2.0)
        tensor([-0.7869,  2.0000])

    See also:
        `torch.nn.CELU`.
    """
    if (
        OVERRIDES
        and (found := _call_override(celu, (input,), {"alpha": alpha, "inplace": inplace})) is not NotImplemented
    ):
        return found
    if _TRACES and (found := _handled("celu", **locals())) is not NotImplemented:
        return found
    if not inplace:
        return F.celu(input, alpha)
    return _refuse_gradient("elu", _make_in_place_function("celu")(input, alpha), alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Multiplies each element by its logistic function; also called swish.

    .. math::

        y = x \, \sigma(x)

    Args:
        input: The input tensor, of any shape.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.silu(torch.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])

    See also:
        `torch.nn.SiLU`.
    """
    if OVERRIDES and (found := _call_override(silu, (input,), {"inplace": inplace})) is not NotImplemented:
        return found
    if _TRACES and (found := _handled("silu", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("silu")(input) if inplace else F.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Multiplies each element by the hyperbolic tangent of its softplus (Misra, 2019).

    .. math::

        y = x \tanh(\log(1 + \exp(x)))

    Args:
        input: The input tensor, of any shape.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.mish(torch.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])

    See also:
        `torch.nn.Mish`.
    """
    if OVERRIDES and (found := _call_override(mish, (input,), {"inplace": inplace})) is not NotImplemented:
        return found
    if _TRACES and (found := _handled("mish", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("mish")(input) if inplace else F.mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Applies the piecewise form of swish to each element (Howard et al., 2019).

    .. math::

        y = x \, \frac{\min(\max(x + 3, 0), 6)}{6}

    Args:
        input: The input tensor, of any shape.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.hardswish(torch.tensor([-4.0, 1.0, 4.0]))
        tensor([-0.0000,  0.6667,  4.0000])

    See also:
        `torch.nn.Hardswish`.
    """
    if OVERRIDES and (found := _call_override(hardswish, (input,), {"inplace": inplace})) is not NotImplemented:
        return found
    if _TRACES and (found := _handled("hardswish", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("hardswish")(input) if inplace else F.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Applies a piecewise linear form of the logistic function to each element.

    .. math::

        y = \frac{\min(\max(x + 3, 0), 6)}{6}

    Args:
        input: The input tensor, of any shape.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.hardsigmoid(torch.tensor([-4.0, 0.0, 4.0]))
        tensor([0.0000, 0.5000, 1.0000])

    See also:
        `torch.nn.Hardsigmoid`.
    """
    if OVERRIDES and (found := _call_override(hardsigmoid, (input,), {"inplace": inplace})) is not NotImplemented:
        return found
    if _TRACES and (found := _handled("hardsigmoid", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("hardsigmoid")(input) if inplace else F.hardsigmoid(input)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    r"""Applies the rectified linear unit with a random slope for negative elements (Xu et al., 2015).

    .. math::

        y = \max(0, x) + a \min(0, x)

    In training each negative element draws :math:`a \sim U(\text{lower}, \text{upper})`; otherwise :math:`a` is
    the mean of the bounds.

    Args:
        input: The input tensor, of any shape.
        lower: Lower bound of the slope. Default: ``1/8``.
        upper: Upper bound of the slope. Default: ``1/3``.
        training: Whether to draw slopes. Default: ``False``.
        inplace: Whether the result is written into `input`. Default: ``False``.

    Returns:
        A tensor of the input's shape and dtype; `input` itself with ``inplace=True``.

    Example:
        >>> F.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  2.0000])

    See also:
        `torch.nn.RReLU`.
    """
    if (
        OVERRIDES
        and (
            found := _call_override(
                rrelu, (input,), {"lower": lower, "upper": upper, "training": training, "inplace": inplace}
            )
        )
        is not NotImplemented
    ):
        return found
    if (
        _TRACES
        and (found := _handled("rrelu", input, lower=lower, upper=upper, training=training, inplace=inplace))
        is not NotImplemented
    ):
        return found
    return rrelu_(input, lower, upper, training) if inplace else F.rrelu(input, lower, upper, training)


# --- softmax with an implicit dimension -----------------------------------------------------------


def _choose_implicit_dim(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    r"""Scales the elements along a dimension to positive values with sum 1.

    .. math::

        y_i = \frac{\exp(x_i)}{\sum_j \exp(x_j)}

    Args:
        input: The input tensor.
        dim: The dimension that the sum runs over. Without it the function warns and takes dimension 0 of inputs with 0,
            1 or 3 dimensions, and dimension 1 of others.
        dtype: The dtype to which the input is converted first. Default: the input's.

    Returns:
        A tensor of the input's shape.

    Example:
        >>> F.softmax(torch.tensor([0.0, 0.0]), dim=0)
        tensor([0.5000, 0.5000])

    See also:
        `torch.nn.Softmax`.
    """
    if (
        OVERRIDES
        and (found := _call_override(softmax, (input,), {"dim": dim, "_stacklevel": _stacklevel, "dtype": dtype}))
        is not NotImplemented
    ):
        return found
    if _TRACES and (found := _handled("softmax", **locals())) is not NotImplemented:
        return found
    return F.softmax(input, _choose_implicit_dim("softmax", input.ndim, _stacklevel) if dim is None else dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    r"""Computes the logarithm of the softmax along a dimension, without overflow.

    .. math::

        y_i = x_i - \log \sum_j \exp(x_j)

    Args:
        input: The input tensor.
        dim: The dimension that the sum runs over. Without it the function warns and takes dimension 0 of inputs with 0,
            1 or 3 dimensions, and dimension 1 of others.
        dtype: The dtype to which the input is converted first. Default: the input's.

    Returns:
        A tensor of the input's shape.

    Example:
        >>> F.log_softmax(torch.tensor([0.0, 0.0]), dim=0)
        tensor([-0.6931, -0.6931])

    See also:
        `torch.nn.LogSoftmax`.
    """
    if (
        OVERRIDES
        and (found := _call_override(log_softmax, (input,), {"dim": dim, "_stacklevel": _stacklevel, "dtype": dtype}))
        is not NotImplemented
    ):
        return found
    if (
        _TRACES
        and (found := _handled("log_softmax", input, dim=dim, _stacklevel=_stacklevel, dtype=dtype))
        is not NotImplemented
    ):
        return found
    return F.log_softmax(
        input, _choose_implicit_dim("log_softmax", input.ndim, _stacklevel) if dim is None else dim, dtype
    )


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    r"""Computes the softmax of the negative input along a dimension.

    .. math::

        y_i = \frac{\exp(-x_i)}{\sum_j \exp(-x_j)}

    Args:
        input: The input tensor.
        dim: The dimension that the sum runs over. Without it the function warns and takes dimension 0 of inputs with 0,
            1 or 3 dimensions, and dimension 1 of others.
        dtype: The dtype to which the input is converted first. Default: the input's.

    Returns:
        A tensor of the input's shape.

    Example:
        >>> F.softmin(torch.tensor([0.0, 1.0]), dim=0)
        tensor([0.7311, 0.2689])

    See also:
        `torch.nn.Softmin`.
    """
    if (
        OVERRIDES
        and (found := _call_override(softmin, (input,), {"dim": dim, "_stacklevel": _stacklevel, "dtype": dtype}))
        is not NotImplemented
    ):
        return found
    if _TRACES and (found := _handled("softmin", **locals())) is not NotImplemented:
        return found
    return F.softmax(-input, _choose_implicit_dim("softmin", input.ndim, _stacklevel) if dim is None else dim, dtype)


@parsed("nn.functional.elu_")
def elu_(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """Computes `elu` in place.

    Args:
        input: The tensor, which gets the result.
        alpha: The negative of the limit at minus infinity. Default: 1.0.
        scale: The factor of the result. Default: 1.0.
        input_scale: The factor of negative elements in the exponent. Default: 1.0.

    Example:
        >>> F.elu_(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    if scale == 1 and input_scale == 1:
        return elu(input, alpha, inplace=True)
    negative = F.mul(F.expm1(F.mul(input, input_scale)), alpha * scale)
    return input.copy_(F.where(F.gt(input, 0), F.mul(input, scale), negative))


@parsed("celu_")
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Computes `celu` in place.

    Args:
        input: The tensor, which gets the result.
        alpha: The negative of the limit at minus infinity. Default: 1.0.

    Example:
        >>> F.celu_(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return celu(input, alpha, inplace=True)


@parsed("nn.functional.leaky_relu_")
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Computes `leaky_relu` in place.

    Args:
        input: The tensor, which gets the result.
        negative_slope: The slope of negative elements. Default: 0.01.

    Example:
        >>> F.leaky_relu_(torch.tensor([-1.0, 2.0]))
        tensor([-0.0100,  2.0000])
    """
    return leaky_relu(input, negative_slope, inplace=True)


@parsed("rrelu_")
def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, generator: Any = None
) -> Tensor:
    """Computes `rrelu` in place.

    Args:
        input: The tensor, which gets the result.
        lower: The least slope. Default: 1/8.
        upper: The greatest slope. Default: 1/3.
        training: Whether the slopes are random. Default: ``False``.
        generator: The generator of the slopes. Default: the device's.

    Example:
        >>> F.rrelu_(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  2.0000])
    """
    out = _make_in_place_function("rrelu")(input, lower, upper, training, generator)
    return _refuse_gradient("leakyReLu", out, 0 if training else (lower + upper) / 2)
