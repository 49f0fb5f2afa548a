"""Methods that fill a tensor with random numbers."""

from __future__ import annotations

import math

from .._device.generators import check_in_place_random, engine_for_table, fill_random, write_random_values
from .._dispatch import REGISTRY, call, composite
from .._dispatch.memory_overlap import check_in_place
from .._types.dtypes import finfo
from .node_graphs import number_or_tensor
from .random import (
    _C_NAMES,
    _DIGITS,
    _check_all_bits,
    _check_random_bounds,
    _check_std,
    _integer_draw_limits,
    _to_python_int,
)


def _to_python_number(value) -> float:
    return value.item() if isinstance(value, call.Tensor) else value


def _reject_integer_tensor(input, name: str, words: str | None = None, empty: bool = False) -> None:
    """PyTorch's refusal of integer tensors; of those without elements if `empty` says so."""
    if input.dtype.category >= 2 or 0 in input.shape and not empty:
        return
    if words:
        raise NotImplementedError(f"\"{words}\" not implemented for '{input.dtype.scalar_name}'")
    raise RuntimeError(
        f"{name} distribution is a continuous probability distribution. dtype must be a floating point but you "
        f"specified {input.dtype.scalar_name}"
    )


def _check_uniform_bounds(dtype, low: float, high: float) -> None:
    """PyTorch's errors for bounds that are not numbers of the dtype, or farther apart than its largest number."""
    real = dtype.to_real()
    largest = finfo(real).max
    for name, bound in (("from", low), ("to", high)):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {real.c_name}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{real.scalar_name}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )


@composite("uniform_(Tensor input, from_=0.0, to=1.0, *, generator=None)", where="Tensor")
def uniform_(F, input, from_, to, generator):
    """Fills the tensor with numbers that are uniform on [from_, to).

    Args:
        input: The tensor, which is overwritten.
        from_: The lower bound. Default: 0.
        to: The upper bound. Default: 1.

    Returns:
        The tensor.

    Raises:
        RuntimeError: The lower bound is above the upper one, or a bound or their distance is beyond the dtype's range.

    Example:
        >>> torch.empty(2).uniform_(2.0, 2.0)
        tensor([2., 2.])

    See also:
        `torch.nn.init.uniform_`.
    """
    _reject_integer_tensor(input, "", "check_uniform_bounds", empty=True)
    low, high = _to_python_number(from_), _to_python_number(to)
    _check_uniform_bounds(input.dtype, low, high)
    if input.dtype.category == 3:
        fill_random(REGISTRY["uniform_"], F.view_as_real(input), "_random_uniform", low, high, generator=generator)
        return input
    return fill_random(REGISTRY["uniform_"], input, "_random_uniform", low, high, generator=generator)


@composite("normal_(Tensor input, mean=0.0, std=1.0, *, generator=None)", where="Tensor")
def normal_(F, input, mean, std, generator):
    """Fills the tensor with normal numbers.

    The parts of complex numbers have half of the variance each.

    Args:
        input: The tensor, which is overwritten.
        mean: The mean. Default: 0.
        std: The standard deviation. Default: 1.

    Returns:
        The tensor.

    Raises:
        RuntimeError: The standard deviation is negative.

    Example:
        >>> torch.empty(2).normal_(3.0, 0.0)
        tensor([3., 3.])

    See also:
        `torch.nn.init.normal_`.
    """
    _reject_integer_tensor(input, "", "normal_kernel_cpu")
    mean, std = _to_python_number(mean), _to_python_number(std)
    _check_std(std)
    if input.dtype.category == 3:
        parts = F.view_as_real(input)
        fill_random(
            REGISTRY["normal_"],
            parts,
            "_random_normal",
            0.0,
            std * math.sqrt(0.5),
            not parts.is_contiguous(),
            generator=generator,
        )
        return input.add_(mean) if mean else input
    return fill_random(
        REGISTRY["normal_"], input, "_random_normal", mean, std, not input.is_contiguous(), generator=generator
    )


def _random_node_name(call):
    """`random_` has overloads for no bound, one and two."""
    return f"RandomBackward{0 if call['to'] is not ... else 2 if call['from_'] is None else 1}(input)"


@composite("random_(Tensor input, from_=None, to=..., *, generator=None)", where="Tensor", node_name=_random_node_name)
def random_(F, input, from_, to, generator):
    """Fills the tensor with integers.

    ``random_(from, to)`` draws from [from, to), ``random_(to)`` from [0, to). ``random_()`` draws from 0 to the
    greatest integer up to which the dtype holds all. ``to=None`` stands for the dtype's greatest integer.

    Args:
        input: The tensor, which is overwritten.
        from_: The least integer.
        to: The bound, which is not drawn.

    Returns:
        The tensor.

    Example:
        >>> torch.empty(2).random_(1, 2)
        tensor([1., 1.])

    See also:
        `torch.randint`.
    """
    dtype = input.dtype
    this = REGISTRY["random_"]
    largest = (1 << _DIGITS[dtype.name]) if dtype.name in _DIGITS else int(_integer_draw_limits(dtype)[1])
    if from_ is None and to is ...:
        span = largest + 1
        if dtype.itemsize == 8:
            return fill_random(this, input, "_random_integers", 0, span, generator=generator)
        return fill_random(this, input, "_random_bits", span, generator=generator)
    if to is None:
        if from_ is None or _to_python_int(from_) == -1 << 63:
            _check_all_bits(dtype)
            return fill_random(this, input, "_random_integers", 0, 1 << 64, generator=generator)
        low, high = _to_python_int(from_), largest + 1
    else:
        low, high = (0, _to_python_int(from_)) if to is ... else (_to_python_int(from_ or 0), _to_python_int(to))
    low, high = _check_random_bounds(low, high, dtype)
    return fill_random(this, input, "_random_integers", low, high - low, generator=generator)


@composite(
    "bernoulli_(Tensor input, Tensor|Number p=0.5, *, generator=None)",
    where="Tensor",
    node_name=number_or_tensor("p", "BernoulliBackward2(input)", "BernoulliBackward1(input, p)"),
)
def bernoulli_(F, input, p, generator):
    """Fills the tensor with 1 with a probability, else 0.

    Args:
        input: The tensor, which is overwritten.
        p: The probability: a number, or a tensor that broadcasts. Default: ``0.5``.

    Returns:
        The tensor.

    Example:
        >>> torch.empty(2).bernoulli_(1.0)
        tensor([1., 1.])

    See also:
        `torch.bernoulli`.
    """
    if isinstance(p, call.Tensor):
        if p.dtype.category != 2:
            raise RuntimeError(f"expected probabilities tensor to have floating type, got {p.dtype.scalar_name}")
        check_in_place_random(input)
        check_in_place(REGISTRY["bernoulli_"], [input, p])
        drawn = F._random_bernoulli_each(
            p.expand(input.shape), input.dtype, engine_for_table(input._tl_kernels, generator)
        )
        return write_random_values(REGISTRY["bernoulli_"], input, drawn)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if input.dtype.category == 3:
        raise NotImplementedError(f"\"bernoulli_scalar_cpu_\" not implemented for '{input.dtype.scalar_name}'")
    return fill_random(REGISTRY["bernoulli_"], input, "_random_bernoulli", float(p), generator=generator)


@composite("exponential_(Tensor input, lambd=1.0, *, generator=None)", where="Tensor")
def exponential_(F, input, lambd, generator):
    r"""Fills the tensor with exponential numbers: density :math:`\lambda \exp(-\lambda x)`.

    Args:
        input: The tensor, which is overwritten.
        lambd: The rate :math:`\lambda`, positive. Default: 1.

    Returns:
        The tensor.

    Example:
        >>> (torch.empty(2).exponential_() >= 0).all().item()
        True

    See also:
        `torch.distributions.Exponential`.
    """
    _reject_integer_tensor(input, "Exponential")
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return fill_random(REGISTRY["exponential_"], input, "_random_exponential", lambd, generator=generator)


@composite("cauchy_(Tensor input, median=0.0, sigma=1.0, *, generator=None)", where="Tensor")
def cauchy_(F, input, median, sigma, generator):
    """Fills the tensor with Cauchy numbers.

    Args:
        input: The tensor, which is overwritten.
        median: The median. Default: 0.
        sigma: The scale, positive. Default: 1.

    Returns:
        The tensor.

    Example:
        >>> torch.empty(2).cauchy_().shape
        torch.Size([2])

    See also:
        `torch.distributions.Cauchy`.
    """
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if input.dtype.category < 2:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified { {'int64': 'long int'}.get(input.dtype.name, _C_NAMES[input.dtype.name]) }"
        )
    return fill_random(REGISTRY["cauchy_"], input, "_random_cauchy", median, sigma, generator=generator)


@composite("geometric_(Tensor input, p, *, generator=None)", where="Tensor")
def geometric_(F, input, p, generator):
    """Fills the tensor with the numbers of trials up to the first success.

    Args:
        input: The tensor, which is overwritten.
        p: The probability of success, between 0 and 1.

    Returns:
        The tensor.

    Example:
        >>> (torch.empty(2).geometric_(0.5) >= 1).all().item()
        True

    See also:
        `torch.distributions.Geometric`, which counts failures.
    """
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    return fill_random(REGISTRY["geometric_"], input, "_random_geometric", p, generator=generator)


@composite("log_normal_(Tensor input, mean=1.0, std=2.0, *, generator=None)", where="Tensor")
def log_normal_(F, input, mean, std, generator):
    """Fills the tensor with exponentials of normal numbers.

    Args:
        input: The tensor, which is overwritten.
        mean: The mean of the normal numbers. Default: 1.
        std: Their standard deviation, positive. Default: 2.

    Returns:
        The tensor.

    Example:
        >>> (torch.empty(2).log_normal_() > 0).all().item()
        True

    See also:
        `torch.distributions.LogNormal`.
    """
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    _reject_integer_tensor(input, "", "log_normal_cpu")
    return fill_random(REGISTRY["log_normal_"], input, "_random_log_normal", mean, std, generator=generator)
