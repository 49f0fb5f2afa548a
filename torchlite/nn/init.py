"""Initialisation of parameters, in place and without gradient. Seeded draws equal PyTorch's on the CPU."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import torchlite as torch

if TYPE_CHECKING:
    from torchlite import Generator, Tensor


__all__ = [
    "calculate_gain", "uniform_", "normal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_", "dirac_",
    "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_", "uniform",
    "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal",
    "orthogonal", "sparse",
]  # fmt: skip

_LINEAR = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
)


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    r"""Returns the factor by which a nonlinearity's input should be scaled to keep its variance.

    The gain is 1 for ``"linear"``, ``"sigmoid"`` and the names of convolutions (``"conv2d"``, ``"conv_transpose2d"``,
    …), 5/3 for ``"tanh"``, :math:`\sqrt{2}` for ``"relu"``, :math:`\sqrt{2 / (1 + a^2)}` for ``"leaky_relu"`` with the
    slope :math:`a`, and 3/4 for ``"selu"``.

    Args:
        nonlinearity: Name of the nonlinearity.
        param: Slope of ``"leaky_relu"``; other names ignore it. Default: 0.01.

    Returns:
        The gain.

    Raises:
        ValueError: ``nonlinearity`` is unknown, or ``param`` is not a number.

    Example:
        >>> torch.nn.init.calculate_gain("leaky_relu", 1.0)
        1.0

    See also:
        `kaiming_uniform_`, `xavier_uniform_`.
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills a tensor with draws from the uniform distribution :math:`U(a, b)`.

    Args:
        tensor: The tensor to fill.
        a: Lower bound. Default: 0.
        b: Upper bound. Default: 1.
        generator: Source of the random numbers. Default: the default generator of the device.

    Returns:
        The tensor.

    Example:
        >>> weight = torch.nn.init.uniform_(torch.empty(3, 5), 2.0, 3.0)
        >>> bool((weight >= 2).all() and (weight < 3).all())
        True
    """
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    r"""Fills a tensor with draws from the normal distribution :math:`N(\text{mean}, \text{std}^2)`.

    Args:
        tensor: The tensor to fill.
        mean: Mean. Default: 0.
        std: Standard deviation. Default: 1.
        generator: Source of the random numbers. Default: the default generator of the device.

    Returns:
        The tensor.

    Example:
        >>> weight = torch.nn.init.normal_(torch.empty(100, 100), mean=3.0, std=0.1)
        >>> round(weight.mean().item(), 1), round(weight.std().item(), 1)
        (3.0, 0.1)
    """
    with torch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fills a tensor with draws from a normal distribution that is truncated to an interval.

    Draws outside of [a, b] are repeated. If the interval has at most 0.3 of the distribution's mass, the draws are
    uniform over it, and are rejected by the normal density.

    Args:
        tensor: The tensor to fill.
        mean: Mean before the truncation. More than 2 ``std`` outside of the interval, it warns. Default: 0.
        std: Standard deviation before the truncation. Default: 1.
        a: Lower bound, not in units of ``std``. Default: -2.
        b: Upper bound. Default: 2.
        generator: Source of the random numbers. Default: the default generator of the device.

    Returns:
        The tensor.

    Example:
        >>> weight = torch.nn.init.trunc_normal_(torch.empty(100, 100), a=-1.0, b=0.5)
        >>> bool((weight >= -1).all() and (weight <= 0.5).all())
        True
    """
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )

    def below(x):
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    with torch.no_grad():
        if below(b) - below(a) > 0.3:
            low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()
            tensor.normal_(mean, std, generator=generator)
            outside = (tensor < low) | (tensor > high)
            while outside.any():
                tensor.copy_(
                    torch.where(outside, torch.empty_like(tensor).normal_(mean, std, generator=generator), tensor)
                )
                outside = (tensor < low) | (tensor > high)
            return tensor
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
        chance = torch.empty_like(tensor)
        tensor.uniform_(a, b, generator=generator)
        rejected = _is_rejected(tensor, mean, std, peak, chance, generator)
        while rejected.any():
            candidates = torch.empty_like(tensor).uniform_(a, b, generator=generator)
            tensor.copy_(torch.where(rejected, candidates, tensor))
            rejected = rejected & _is_rejected(candidates, mean, std, peak, chance, generator)
        return tensor


def _is_rejected(candidates, mean, std, peak, chance, generator):
    """Draw which uniform candidates to reject: those above the normal density, relative to its `peak` (a logarithm)."""
    height = candidates.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
    return chance.uniform_(generator=generator).log_().gt(height)


def constant_(tensor: Tensor, val: Any) -> Tensor:
    """Fills a tensor with one value.

    Args:
        tensor: The tensor to fill.
        val: The value.

    Returns:
        The tensor.

    Example:
        >>> torch.nn.init.constant_(torch.empty(3), 0.5)
        tensor([0.5000, 0.5000, 0.5000])
    """
    with torch.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills a tensor with 1.

    Args:
        tensor: The tensor to fill.

    Returns:
        The tensor.

    Example:
        >>> torch.nn.init.ones_(torch.empty(3))
        tensor([1., 1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills a tensor with 0.

    Args:
        tensor: The tensor to fill.

    Returns:
        The tensor.

    Example:
        >>> torch.nn.init.zeros_(torch.empty(3))
        tensor([0., 0., 0.])
    """
    with torch.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity: 1 on the diagonal, else 0.

    Args:
        tensor: The matrix to fill; it need not be square.

    Returns:
        The tensor.

    Raises:
        ValueError: The tensor has not 2 dimensions.

    Example:
        >>> torch.nn.init.eye_(torch.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with torch.no_grad():
        tensor.zero_()
        for i in range(min(tensor.shape)):
            tensor[i, i] = 1
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills the weight of a convolution so that it returns its input channels unchanged.

    The weight is 1 at the centre of the kernel from each input channel to the output channel of the same number in each
    group, else 0.

    Args:
        tensor: The weight to fill, of 3, 4 or 5 dimensions.
        groups: Number of groups of the convolution. Default: 1.

    Returns:
        The tensor.

    Raises:
        ValueError: The tensor has another number of dimensions, or ``groups`` does not divide the first size.

    Example:
        >>> weight = torch.nn.init.dirac_(torch.empty(2, 2, 3))
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> torch.nn.functional.conv1d(x, weight, padding=1)
        tensor([[1., 2., 3.],
                [4., 5., 6.]])
    """
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    centre = tuple(size // 2 for size in sizes[2:])
    with torch.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, sizes[1])):
                tensor[(g * per_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive, tensor.size(0) * receptive


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    r"""Fills a weight with draws from :math:`U(-a, a)`, by Glorot's method.

    .. math::

        a = \text{gain} \cdot \sqrt{\frac{6}{\text{fan\_in} + \text{fan\_out}}}

    Here fan_in is ``tensor.size(1)`` and fan_out is ``tensor.size(0)``, both times the number of elements of a kernel.

    Args:
        tensor: The weight to fill, of at least 2 dimensions.
        gain: Factor of the bound, such as of `calculate_gain`. Default: 1.
        generator: Source of the random numbers. Default: the default generator of the device.

    Returns:
        The tensor.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions.

    Example:
        >>> weight = torch.nn.init.xavier_uniform_(torch.empty(2, 4))
        >>> bool(weight.abs().max() <= 1)
        True

    References:
        - X. Glorot, Y. Bengio. Understanding the difficulty of training deep feedforward neural networks. 2010.

    See also:
        `xavier_normal_`, `kaiming_uniform_`.
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    a = math.sqrt(3.0) * std
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    r"""Fills a weight with draws from :math:`N(0, \sigma^2)`, by Glorot's method.

    .. math::

        \sigma = \text{gain} \cdot \sqrt{\frac{2}{\text{fan\_in} + \text{fan\_out}}}

    Here fan_in is ``tensor.size(1)`` and fan_out is ``tensor.size(0)``, both times the number of elements of a kernel.

    Args:
        tensor: The weight to fill, of at least 2 dimensions.
        gain: Factor of the standard deviation, such as of `calculate_gain`. Default: 1.
        generator: Source of the random numbers. Default: the default generator of the device.

    Returns:
        The tensor.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions.

    Example:
        >>> weight = torch.nn.init.xavier_normal_(torch.empty(100, 100))
        >>> round(weight.std().item(), 1)
        0.1

    References:
        - X. Glorot, Y. Bengio. Understanding the difficulty of training deep feedforward neural networks. 2010.

    See also:
        `xavier_uniform_`, `kaiming_normal_`.
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    r"""Fills a weight with draws from :math:`U(-b, b)`, by He's method.

    .. math::

        b = \text{gain} \cdot \sqrt{\frac{3}{\text{fan}}}

    Here fan_in is ``tensor.size(1)`` and fan_out is ``tensor.size(0)``, both times the number of elements of a kernel.
    The gain is that of `calculate_gain`.

    Args:
        tensor: The weight to fill, of at least 2 dimensions. Without elements it warns.
        a: Slope of the leaky ReLU that follows; used with ``"leaky_relu"``. Default: 0.
        mode: ``"fan_in"`` keeps the variance in the forward pass, ``"fan_out"`` in the backward pass. Default:
            ``"fan_in"``.
        nonlinearity: Name of the nonlinearity, as in `calculate_gain`. Default: ``"leaky_relu"``.
        generator: Source of the random numbers. Default: the default generator of the device.

    Returns:
        The tensor.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions, or ``mode`` or ``nonlinearity`` is unknown.

    Example:
        >>> weight = torch.nn.init.kaiming_uniform_(torch.empty(2, 6), nonlinearity="relu")
        >>> bool(weight.abs().max() <= 1)
        True

    References:
        - K. He, X. Zhang, S. Ren, J. Sun. Delving deep into rectifiers: Surpassing human-level performance on ImageNet
          classification. 2015.

    See also:
        `kaiming_normal_`, `xavier_uniform_`.
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    r"""Fills a weight with draws from :math:`N(0, \sigma^2)`, by He's method.

    .. math::

        \sigma = \frac{\text{gain}}{\sqrt{\text{fan}}}

    Here fan_in is ``tensor.size(1)`` and fan_out is ``tensor.size(0)``, both times the number of elements of a kernel.
    The gain is that of `calculate_gain`.

    Args:
        tensor: The weight to fill, of at least 2 dimensions. Without elements it warns.
        a: Slope of the leaky ReLU that follows; used with ``"leaky_relu"``. Default: 0.
        mode: ``"fan_in"`` keeps the variance in the forward pass, ``"fan_out"`` in the backward pass. Default:
            ``"fan_in"``.
        nonlinearity: Name of the nonlinearity, as in `calculate_gain`. Default: ``"leaky_relu"``.
        generator: Source of the random numbers. Default: the default generator of the device.

    Returns:
        The tensor.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions, or ``mode`` or ``nonlinearity`` is unknown.

    Example:
        >>> weight = torch.nn.init.kaiming_normal_(torch.empty(100, 200), nonlinearity="relu")
        >>> round(weight.std().item(), 1)
        0.1

    References:
        - K. He, X. Zhang, S. Ren, J. Sun. Delving deep into rectifiers: Surpassing human-level performance on ImageNet
          classification. 2015.

    See also:
        `kaiming_uniform_`, `xavier_normal_`.
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fills a weight with a random matrix whose rows or columns are orthonormal.

    The matrix is Q of the QR decomposition of a matrix of normal draws. Dimensions after the first count as columns.
    The rows are orthonormal if there are at most as many as columns, else the columns.

    Args:
        tensor: The weight to fill, of at least 2 dimensions.
        gain: Factor of the matrix. Default: 1.
        generator: Source of the random numbers. Default: the default generator of the device.

    Returns:
        The tensor.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions.

    Example:
        >>> weight = torch.nn.init.orthogonal_(torch.empty(2, 5))
        >>> torch.allclose(weight @ weight.T, torch.eye(2), atol=1e-5)
        True

    References:
        - A. M. Saxe, J. L. McClelland, S. Ganguli. Exact solutions to the nonlinear dynamics of learning in deep linear
          neural networks. 2014.

    See also:
        `torch.nn.utils.parametrizations.orthogonal`, which keeps a weight orthogonal.
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with torch.no_grad():
        flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        if rows < cols:
            flat = flat.t()
        q, r = torch.linalg.qr(flat)
        q = q * torch.diag(r, 0).sign()
        if rows < cols:
            q = q.t()
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    r"""Fills a matrix with draws from :math:`N(0, \text{std}^2)` and sets a share of each column to 0.

    Args:
        tensor: The matrix to fill.
        sparsity: Share of zeros in each column; their number is rounded up.
        std: Standard deviation of the other elements. Default: 0.01.
        generator: Source of the draws. Default: the device's default generator. The places of the zeros come from the
            CPU's default generator always.

    Returns:
        The tensor.

    Raises:
        ValueError: The tensor has not 2 dimensions.

    Example:
        >>> weight = torch.nn.init.sparse_(torch.empty(10, 3), sparsity=0.25)
        >>> (weight == 0).sum(0)
        tensor([3, 3, 3])

    References:
        - J. Martens. Deep learning via Hessian-free optimization. 2010.
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with torch.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(cols):
            tensor[torch.randperm(rows)[:zeros], column] = 0
    return tensor


# Aliases for packages that call them without the checks of an init: there are no checks here.
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_


_DOCSTRING_OF_DEPRECATED = """Deprecated name of `{new}`: warns, then calls it.

Args:
    args: Positional arguments of `{new}`.
    kwargs: Keyword arguments of `{new}`.

Returns:
    The tensor.

Example:
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     weight = torch.nn.init.{old}({arguments})
    >>> weight.shape
    torch.Size([2, 2{more}])
"""


def _make_deprecate(function, *arguments, more=""):
    new = function.__name__
    old = new[:-1]

    def wrapper(*args, **kwargs):
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    wrapper.__name__ = wrapper.__qualname__ = old
    example = ", ".join((f"torch.empty(2, 2{more})", *map(str, arguments)))
    wrapper.__doc__ = _DOCSTRING_OF_DEPRECATED.format(new=new, old=old, arguments=example, more=more)
    return wrapper


uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_, 0.5)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_, more=", 3")
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_, 0.5)


# What this module imports for itself.
_INTERNAL = {"Any", "TYPE_CHECKING", "annotations"}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - _INTERNAL)
