"""Random numbers: the kernels that draw them, and PyTorch's functions and in-place methods that use these.

A kernel `random_*(size, dtype, parameters ..., engine)` makes a new contiguous array from a generator's engine (see
`torchlite._device.generators`). A backend needs `_random_uniform`, `_random_normal` and `_random_integers`; the others
have composites.
"""

from __future__ import annotations

import math
import operator
import warnings
from typing import Any

import numpy as np

from .._device.generators import engine_for_table, new_random_tensor
from .._dispatch import NONDIFF, RANDOM, REGISTRY, Out, call, composite, memory_layout, op, out_variants
from .._dispatch.interceptors import is_inside_vmap
from .._dispatch.node_names import default_node_name, saved_argument
from .._dispatch.public_functions import torch
from .._dispatch.shape_and_value_checks import all_true, any_true, set_requires_grad
from .._dispatch.shapes import broadcast_shapes
from .._types.dtypes import as_argument, bool_, float32, float64, get_default_dtype, int64
from ._gradient_helpers import make_missing_derivative_formula
from .creation import _check_size, _resolve_device

_SHAPE: dict[str, Any] = {"where": "", "tags": RANDOM | NONDIFF, "shape_fn": lambda size, dtype: (size, dtype)}


def _draw_dtype(F, dtype):
    """The dtype to draw reals in before they are cast to `dtype`."""
    return float64 if dtype is float64 else float32


def _make_inverse_transform_sampler(formula):
    """A composite that casts `formula(F, u, a, b)` of uniforms u in [0, 1) to the wanted dtype."""

    def draw(F, size, dtype, *parameters):
        *values, generator = parameters
        return F.to(formula(F, F._random_uniform(size, _draw_dtype(F, dtype), 0.0, 1.0, generator), *values), dtype)

    return draw


op(
    "_random_uniform(size, dtype, low, high, generator)",
    **_SHAPE,
    doc="Uniform in [low, high).",
    out=Out(resize="silent"),
)
op(
    "_random_normal(size, dtype, mean, std, serial, generator)",
    **_SHAPE,
    doc="Normal. `serial`: drawn for a tensor that is not contiguous (PyTorch's CPU then draws otherwise).",
)
op(
    "_random_integers(size, dtype, low, span, generator)",
    **_SHAPE,
    doc="low + draw % span, of 32-bit draws for a span below 2**28, else of 64-bit ones.",
)
op(
    "_random_bits(size, dtype, span, generator)",
    **_SHAPE,
    composite=lambda F, size, dtype, span, generator: F._random_integers(size, dtype, 0, span, generator),
    doc="Draws of 32 bits % span, whatever the span.",
)
op(
    "_random_permutation(size, dtype, generator)",
    **_SHAPE,
    composite=lambda F, size, dtype, generator: F.to(
        F.sort(F._random_uniform(size, float64, 0.0, 1.0, generator))[1], dtype
    ),
    doc="The numbers below size[0], shuffled.",
)
op(
    "_random_bernoulli(size, dtype, p, generator)",
    **_SHAPE,
    composite=_make_inverse_transform_sampler(lambda F, u, p: F.lt(u, p)),
    doc="1 with probability p, else 0.",
)
op(
    "_random_keep_mask(size, dtype, p, generator)",
    **_SHAPE,
    composite=lambda F, size, dtype, p, generator: F.div(F._random_bernoulli(size, dtype, 1.0 - p, generator), 1.0 - p),
    doc="1 / (1 - p) with probability 1 - p, else 0: the factors of dropout.",
)
op(
    "_random_exponential(size, dtype, lambd, generator)",
    **_SHAPE,
    composite=_make_inverse_transform_sampler(lambda F, u, lambd: F.mul(F.log1p(F.neg(u)), -1.0 / lambd)),
    doc="Exponential of rate lambd.",
)
op(
    "_random_cauchy(size, dtype, median, sigma, generator)",
    **_SHAPE,
    composite=_make_inverse_transform_sampler(
        lambda F, u, median, sigma: F.add(F.mul(F.tan(F.mul(F.add(u, -0.5), math.pi)), sigma), median)
    ),
    doc="Cauchy.",
)
op(
    "_random_geometric(size, dtype, p, generator)",
    **_SHAPE,
    composite=_make_inverse_transform_sampler(lambda F, u, p: F.ceil(F.mul(F.log1p(F.neg(u)), 1.0 / math.log1p(-p)))),
    doc="Trials up to the first success.",
)
op(
    "_random_log_normal(size, dtype, mean, std, generator)",
    **_SHAPE,
    composite=lambda F, size, dtype, mean, std, generator: F.to(
        F.exp(F._random_normal(size, _draw_dtype(F, dtype), mean, std, True, generator)), dtype
    ),
    doc="exp of a normal.",
)


def _count_sums_below_draws(F, weights, num_samples, generator):
    """The number of cumulative sums below each draw."""
    sums = F.to(F.cumsum(weights, -1), float32)
    total = F.unsqueeze(F._slice(sums, -1, weights.shape[-1] - 1, None, 1), -1)
    uniform = F._random_uniform((*weights.shape[:-1], num_samples, 1), float32, 0.0, 1.0, generator)
    return F.sum(F.to(F.le(F.unsqueeze(sums, -2), F.mul(uniform, total)), int64), -1)


op(
    "_random_multinomial(Tensor weights, num_samples, generator)",
    where="",
    tags=RANDOM | NONDIFF,
    shape_fn=lambda weights, num_samples: ((*weights.shape[:-1], num_samples), int64),
    composite=_count_sums_below_draws,
    doc="Indices drawn with replacement by the weights of each row.",
)
op(
    "_random_slopes(Tensor input, lower, upper, generator)",
    where="",
    tags=RANDOM | NONDIFF,
    shape_fn=lambda input: (input.shape, input.dtype),
    composite=lambda F, input, lower, upper, generator: F.where(
        F.gt(input, 0), F._ones_like(input), F._random_uniform(input.shape, F.dtype_of(input), lower, upper, generator)
    ),
    doc="For rrelu: 1 where the input is positive, else uniform in [lower, upper).",
)
_ZERO: dict[str, Any] = {"where": "", "tags": RANDOM}
op(
    "_random_bernoulli_each(Tensor p, dtype, generator)",
    **_ZERO,
    shape_fn=lambda p, dtype: (p.shape, dtype),
    composite=lambda F, p, dtype, generator: F.to(
        F.lt(F._random_uniform(p.shape, F.dtype_of(p), 0.0, 1.0, generator), p), dtype
    ),
    vjp={"p": lambda F, g: F._zeros_like(g)},
    doc="1 with the probability of each entry, else 0.",
    node_name="BernoulliBackward0",
)
op(
    "_random_poisson(Tensor rate, generator)",
    **_ZERO,
    shape_fn=lambda rate: (rate.shape, rate.dtype),
    vjp={"rate": lambda F, g: F._zeros_like(g)},
    doc="Poisson.",
    node_name="PoissonBackward0",
)
op(
    "_random_binomial(Tensor count, Tensor prob, generator)",
    **_ZERO,
    shape_fn=lambda count, prob: (prob.shape, prob.dtype),
    vjp=dict.fromkeys(("count", "prob"), make_missing_derivative_formula("binomial")),
    doc="Binomial.",
    node_name="NotImplemented",
)


def _normal_node_name(node):
    mean, std = (edge is not None for edge in node._edges[1:])
    return "NormalBackward3(mean, std)" if mean and std else "NormalBackward2(std)" if std else "NormalBackward1(mean)"


op(
    "_normal_sample(Tensor value, Tensor mean, Tensor std)",
    where="",
    tags=RANDOM,
    composite=lambda F, value, mean, std: F.clone(value),
    shape_fn=lambda value: (value.shape, value.dtype),
    vjp={
        "mean": lambda F, g, mean_shape: F._new_zeros(g, mean_shape),
        "std": lambda F, g, std_shape: F._new_zeros(g, std_shape),
    },
    doc="Numbers that were drawn by parameters: the parameters' gradients are zero.",
    node_name=_normal_node_name,
)


def _random_fill_node_name(node):
    """The name of the in-place op that drew the numbers."""
    record = REGISTRY[saved_argument(node, "name")]
    return f"{default_node_name(record)}(input)"


op(
    "_random_fill(Tensor input, Tensor value, name)",
    where="",
    tags=RANDOM,
    composite=lambda F, input, value, name: value,
    shape_fn=lambda value: (value.shape, value.dtype),
    vjp={"input": lambda F, g, name: F._zeros_like(g), "value": lambda F, g: g},
    doc="Numbers that were drawn into a tensor by the method of that name: what it was before has a gradient of zero.",
    node_name=_random_fill_node_name,
)


# --- bounds of integers -----------------------------------------------------------------------------

_DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
_C_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int",
    "int64": "long", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
}  # fmt: skip


def _integer_draw_limits(dtype) -> tuple[float, float]:
    """The smallest and the largest value that a draw of integers may ask of a dtype."""
    if dtype is bool_:
        return 0, 1
    if dtype.category == 1:
        bits = dtype.itemsize * 8
        return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype.is_signed else (0, (1 << bits) - 1)
    if dtype.category == 3 or dtype.name not in _DIGITS:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    largest = 65504 if dtype.name == "float16" else math.inf
    return -largest, largest


def _check_random_bounds(low: int, high: int, dtype) -> tuple[int, int]:
    """The bounds, moved inwards to where a floating dtype can tell them from their neighbours.

    RuntimeError when they are not in order or beyond the dtype.
    """
    smallest, largest = _integer_draw_limits(dtype)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    digits = _DIGITS.get(dtype.name)
    if digits is not None:
        after, before = _round_to_dtype(low + 1, dtype), _round_to_dtype(high - 1, dtype)
        if after < low:
            low = int(after) + (1 << (abs(low + 1).bit_length() - digits))
        if math.inf > before >= high:
            high -= 1 << (high.bit_length() - digits)
        if low >= high:
            raise RuntimeError(
                f"random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from={low} >= "
                f"to={high}"
            )
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not smallest <= value <= largest:
            raise RuntimeError(f"{name} is out of bounds for {_C_NAMES[dtype.name]}")
        if digits is not None and not -(1 << digits) <= value <= 1 << digits:
            warnings.warn(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                f"{_C_NAMES[dtype.name]} can support discrete uniform distribution only within this range. This "
                "warning will become an error in version 1.7 release, please fix the code in advance",
                stacklevel=2,
            )
    return low, high


def _round_to_dtype(value: int, dtype) -> float:
    """An integer as a floating dtype has it, infinite beyond its range."""
    with np.errstate(over="ignore"):
        return float(dtype.np.type(value))


def _check_all_bits(dtype) -> None:
    """Dtypes that can be filled with 64 bits drawn."""
    kernel = "random_full_64_bits_range_kernel_cpu"
    if dtype.name in ("bool", "float16"):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype.scalar_name}'")
    if dtype.name not in ("int64", "float64", "float32", "bfloat16"):
        raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")


# --- creation -------------------------------------------------------------------------------------

_OPTIONS = "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False"
_LIKE = (
    "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None, generator=None"
)


def _create_or_write_out(out, result):
    """The result of a creation function, or `out` holding it."""
    return result if out is None else out_variants.write_out(REGISTRY["_random_uniform"], result, out)


def _resolve_draw_dtype(name: str, dtype, out, default):
    """The dtype to draw: the requested one, that of `out=`, or a default one."""
    if dtype is None:
        return default if out is None else out.dtype
    return as_argument(dtype, name)


def _reject_integer_dtype(dtype, words: str):
    """PyTorch's refusal of integer dtypes."""
    if dtype.category < 2:
        raise NotImplementedError(f"\"{words}\" not implemented for '{dtype.scalar_name}'")
    return dtype


def _draw_complex(size, dtype, kernel, parameters, device, generator, requires_grad):
    """Complex numbers, whose parts are drawn in turn."""
    parts = new_random_tensor(kernel, (*size, 2), dtype.to_real(), *parameters, device=device, generator=generator)
    out = torch.view_as_complex(parts).clone()
    return set_requires_grad(out, requires_grad)


@composite(f"rand(*size, generator=None, out=None, {_OPTIONS})", where="torch", varargs_required=True)
def rand(F, size, generator, out, dtype, device, requires_grad):
    """Returns numbers that are uniform on [0, 1).

    On the CPU the numbers are PyTorch's for the same seed.

    Args:
        size: The sizes, as integers or as one sequence.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.rand(2)
        tensor([0.4963, 0.7682])

    See also:
        `torch.rand_like`, `torch.randn`.
    """
    device = _resolve_device(device, out)
    dtype = _reject_integer_dtype(_resolve_draw_dtype("rand", dtype, out, get_default_dtype()), "check_uniform_bounds")
    size = _check_size("rand", size)
    if dtype.category == 3:
        return _create_or_write_out(
            out, _draw_complex(size, dtype, "_random_uniform", (0.0, 1.0), device, generator, requires_grad)
        )
    return _create_or_write_out(
        out,
        new_random_tensor(
            "_random_uniform", size, dtype, 0.0, 1.0, device=device, generator=generator, requires_grad=requires_grad
        ),
    )


@composite(f"randn(*size, generator=None, out=None, {_OPTIONS})", where="torch", varargs_required=True)
def randn(F, size, generator, out, dtype, device, requires_grad):
    """Returns standard normal numbers: mean 0 and variance 1.

    The parts of complex numbers have variance 1/2 each. On the CPU the numbers are PyTorch's for the same seed.

    Args:
        size: The sizes, as integers or as one sequence.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.randn(2)
        tensor([ 1.5410, -0.2934])

    See also:
        `torch.randn_like`, `torch.normal`.
    """
    device = _resolve_device(device, out)
    dtype = _resolve_draw_dtype("randn", dtype, out, get_default_dtype())
    size = _check_size("randn", size)
    if 0 not in size:  # PyTorch draws nothing, and refuses nothing
        _reject_integer_dtype(dtype, "normal_kernel_cpu")
    if dtype.category == 3:
        return _create_or_write_out(
            out,
            _draw_complex(
                size, dtype, "_random_normal", (0.0, math.sqrt(0.5), False), device, generator, requires_grad
            ),
        )
    return _create_or_write_out(
        out,
        new_random_tensor(
            "_random_normal",
            size,
            dtype,
            0.0,
            1.0,
            False,
            device=device,
            generator=generator,
            requires_grad=requires_grad,
        ),
    )


def _to_python_int(value):
    return operator.index(value.item() if isinstance(value, call.Tensor) else value)


def _draw_integers(size, low, high, dtype, device, generator, requires_grad):
    low, high = _check_random_bounds(low, high, dtype)
    return new_random_tensor(
        "_random_integers",
        size,
        dtype,
        low,
        high - low,
        device=device,
        generator=generator,
        requires_grad=requires_grad,
    )


@composite(f"randint(low=0, high=None, size=None, *, generator=None, out=None, {_OPTIONS})", where="torch")
def randint(F, low, high, size, generator, out, dtype, device, requires_grad):
    """Returns integers that are uniform on [low, high).

    ``randint(high, size)`` begins at 0. On the CPU the numbers are PyTorch's for the same seed.

    Args:
        low: The least number. Default: 0.
        high: The bound, which is not drawn.
        size: The sizes.
        dtype: The dtype of the result. Default: int64.

    Raises:
        RuntimeError: `high` is not above `low`, or a bound is outside the dtype's range.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.randint(3, 10, (2,))
        tensor([7, 6])

    See also:
        `torch.randint_like`.
    """
    if size is None and not isinstance(high, (int, float)):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None:
        raise TypeError('randint() missing 1 required positional arguments: "size"')
    dtype = _resolve_draw_dtype("randint", dtype, out, int64)
    return _create_or_write_out(
        out,
        _draw_integers(
            _check_size("randint", size),
            _to_python_int(low),
            _to_python_int(high),
            dtype,
            _resolve_device(device, out),
            generator,
            requires_grad,
        ),
    )


@composite(f"randperm(n, *, generator=None, out=None, {_OPTIONS})", where="torch")
def randperm(F, n, generator, out, dtype, device, requires_grad):
    """Returns the integers from 0 to ``n - 1`` in random order.

    On the CPU the numbers are PyTorch's for the same seed.

    Args:
        n: The number of integers.
        dtype: The dtype of the result. Default: int64.

    Example:
        >>> torch.randperm(4).sort().values
        tensor([0, 1, 2, 3])
    """
    dtype = _resolve_draw_dtype("randperm", dtype, out, int64)
    (n,) = _check_size("randperm", (n,))
    _check_permuted(n, dtype)
    return _create_or_write_out(
        out,
        new_random_tensor(
            "_random_permutation",
            (n,),
            dtype,
            device=_resolve_device(device, out),
            generator=generator,
            requires_grad=requires_grad,
        ),
    )


def _check_permuted(n: int, dtype) -> None:
    """Raise unless a dtype can represent all integers below n."""
    if dtype.category not in (1, 2):
        raise NotImplementedError(f"\"randperm\" not implemented for '{dtype.scalar_name}'")
    if dtype.category == 1:
        if n > 1 << (dtype.itemsize * 8 - (1 if dtype.is_signed else 0)):
            raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    elif dtype.name in ("float16", "float32", "float64") and n > (1 << _DIGITS[dtype.name]) + 1:
        limit = "2049" if dtype.name == "float16" else f"2^{_DIGITS[dtype.name]}+1"
        raise RuntimeError(f"n cannot be greater than {limit} for {dtype.scalar_name} type.")


def _draw_like(F, input, options: tuple, fill_in):
    dtype, device, requires_grad, memory_format = options
    out = F.empty_like(input, dtype=dtype, device=device, memory_format=memory_format)
    fill_in(out)
    return set_requires_grad(out, requires_grad)


@composite(f"rand_like(Tensor input, *, {_LIKE})", where="torch")
def rand_like(F, input, dtype, device, requires_grad, memory_format, generator):
    """Returns numbers that are uniform on [0, 1), with the shape of another tensor.

    Args:
        input: The tensor whose shape, dtype, device and order in memory the result has by default.
        dtype: The dtype of the result. Default: the input's.
        layout: The layout of the result. Default: the input's.

    Example:
        >>> torch.rand_like(torch.zeros(2)).shape
        torch.Size([2])

    See also:
        `torch.rand`.
    """
    return _draw_like(
        F, input, (dtype, device, requires_grad, memory_format), lambda out: out.uniform_(0, 1, generator=generator)
    )


@composite(f"randn_like(Tensor input, *, {_LIKE})", where="torch")
def randn_like(F, input, dtype, device, requires_grad, memory_format, generator):
    """Returns standard normal numbers, with the shape of another tensor.

    Args:
        input: The tensor whose shape, dtype, device and order in memory the result has by default.
        dtype: The dtype of the result. Default: the input's.
        layout: The layout of the result. Default: the input's.

    Example:
        >>> torch.randn_like(torch.zeros(2)).shape
        torch.Size([2])

    See also:
        `torch.randn`.
    """
    return _draw_like(
        F, input, (dtype, device, requires_grad, memory_format), lambda out: out.normal_(0, 1, generator=generator)
    )


@composite(f"randint_like(Tensor input, low=0, high=None, *, {_LIKE})", where="torch")
def randint_like(F, input, low, high, dtype, device, requires_grad, memory_format, generator):
    """Returns integers that are uniform on [low, high), with the shape of another tensor.

    Args:
        input: The tensor whose shape, dtype, device and order in memory the result has by default.
        dtype: The dtype of the result. Default: the input's.
        layout: The layout of the result. Default: the input's.
        low: The least number. Default: 0.
        high: The bound, which is not drawn.

    Example:
        >>> torch.randint_like(torch.zeros(2), 1, 2)
        tensor([1., 1.])

    See also:
        `torch.randint`.
    """
    low, high = (0, low) if high is None else (low, high)
    if isinstance(low, call.Tensor) and low.ndim:
        raise TypeError("randint_like(): the bounds are numbers, or tensors of one")
    return _draw_like(
        F,
        input,
        (dtype, device, requires_grad, memory_format),
        lambda out: out.random_(_to_python_int(low), _to_python_int(high), generator=generator),
    )


def _check_std(std) -> None:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def _draw_normals(size, dtype, device, mean, std, generator):
    if is_inside_vmap():  # for each example, where that is wanted
        return new_random_tensor("_random_normal", size, dtype, mean, std, False, device=device, generator=generator)
    return call.create_tensor("_empty", size, dtype, device=device).normal_(mean, std, generator=generator)


def _check_number_with_size(value):
    if not isinstance(value, call.Tensor):
        return value
    if value.ndim or value.requires_grad:
        raise TypeError(
            "normal() received an invalid combination of arguments: beside a size, mean and std are numbers or tensors "
            "of no dimension that want no gradient"
        )
    return float(value)


@composite(
    f"normal(Tensor|Number mean=0.0, Tensor|Number std=1.0, size=None, *, generator=None, out=None, {_OPTIONS})",
    where="torch",
)
def normal(F, mean, std, size, generator, out, dtype, device, requires_grad):
    """Returns normal numbers of given means and standard deviations.

    The parameters are tensors that broadcast, or numbers with a `size`. On the CPU the numbers are PyTorch's for
    the same seed.

    Args:
        mean: The mean. Default: 0.
        std: The standard deviation, at least 0. Default: 1.
        size: The sizes, for parameters that are numbers.

    Raises:
        RuntimeError: A standard deviation is negative.

    Example:
        >>> torch.normal(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
        tensor([1., 2.])

    See also:
        `torch.randn`.
    """
    if size is not None:
        mean, std = (_check_number_with_size(x) for x in (mean, std))
    tensors = [x for x in (mean, std) if isinstance(x, call.Tensor)]
    if not tensors:
        if size is None:
            raise TypeError("normal() received an invalid combination of arguments: two numbers need a size")
        size, dtype = _check_size("normal", size), _resolve_draw_dtype("normal", dtype, out, get_default_dtype())
        made = _draw_normals(size, dtype, _resolve_device(device, out), mean, std, generator)
        return _create_or_write_out(out, set_requires_grad(made, requires_grad))
    if isinstance(std, call.Tensor):
        if std.dtype.category == 3:
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.numel() and not std.is_meta and any_true(std.detach() < 0):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    else:
        _check_std(std)
    if size is None and (dtype is not None or device is not None or requires_grad):
        raise TypeError("normal() received an invalid combination of arguments: the options need a size")
    kind = tensors[0].dtype
    with_std = isinstance(std, call.Tensor)
    shape = tensors[0].shape if len(tensors) == 1 else broadcast_shapes(mean.shape, std.shape)
    noise = _draw_normals(tuple(shape), kind, tensors[0].device, 0, 1 if with_std else std, generator)
    result = F.add_alpha(
        F.mul(noise, std.detach()) if with_std else noise, mean.detach() if isinstance(mean, call.Tensor) else mean
    )
    result = result if result.dtype is kind else F.to(result, kind)
    if call.MODE.grad and any(t.requires_grad for t in tensors):
        by = [t if isinstance(t, call.Tensor) else tensors[0].detach() for t in (mean, std)]
        result = F._normal_sample(result, *by)
    if call.MODE.forwards:
        for t in tensors:
            call.CALLBACKS.map_tangents(t, result, lambda tangent: F._zeros_like(F.expand(tangent, result.shape)))
    return _create_or_write_out(out, result)


# --- drawing by the entries of a tensor -----------------------------------------------------------


@composite("bernoulli(Tensor input, p=None, *, generator=None)", layout=memory_layout.like_first, out=Out("unchecked"))
def bernoulli(F, input, p, generator):
    """Draws 1 with a probability, else 0.

    The gradient is zero.

    Args:
        input: The probabilities; the result has their dtype.
        p: One probability in place of these; then `input` is its shape and dtype alone.

    Raises:
        RuntimeError: A probability is not between 0 and 1.

    Example:
        >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
        tensor([0., 1.])

    See also:
        `torch.distributions.Bernoulli`.
    """
    if p is not None:
        return F.empty_like(input).bernoulli_(p, generator=generator)
    if input.dtype.category != 2:
        raise NotImplementedError(f"\"bernoulli_tensor_cpu_p_\" not implemented for '{input.dtype.scalar_name}'")
    return F._random_bernoulli_each(input, input.dtype, engine_for_table(input._tl_kernels, generator))


@composite(
    "multinomial(Tensor input, num_samples, replacement=False, *, generator=None)",
    out=Out("same", "multinomial expects Long tensor out, got: {got}"),
)
def multinomial(F, input, num_samples, replacement, generator):
    """Draws indices with given weights.

    Args:
        input: The weights, of shape ``(n,)`` or ``(rows, n)``; they need not add up to 1.
        num_samples: The number of draws of each row.
        replacement: Whether an index may be drawn again. Default: ``False``.

    Returns:
        An int64 tensor of shape ``(num_samples,)`` or ``(rows, num_samples)``.

    Raises:
        RuntimeError: A weight is negative, infinite or NaN, or there are fewer positive weights than draws without
            replacement.

    Example:
        >>> torch.multinomial(torch.tensor([0.0, 1.0]), 3, replacement=True)
        tensor([1, 1, 1])

    See also:
        `torch.distributions.Categorical`.
    """
    if input.dtype.category != 2:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype.scalar_name}")
    if not 1 <= input.ndim <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if input.shape[-1] > 2**24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    input = input.detach()
    if input.numel() == 0:
        return call.create_tensor("_empty", (*input.shape[:-1], num_samples), int64, device=input.device)
    if input.device.type != "meta":
        negative, finite = any_true(input < 0), all_true(F.isfinite(input))
        if negative or not finite:
            if replacement and num_samples > 1:
                entry = "entry < 0" if negative else "entry = infinity or NaN"
                raise RuntimeError(f"invalid multinomial distribution (encountering probability {entry})")
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        if any_true(input.sum(-1) == 0):
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if replacement and num_samples > 1:
        return F._random_multinomial(input, num_samples, engine_for_table(input._tl_kernels, generator))
    # The largest of weights over exponentials: a race that each index wins with its probability.
    race = F.div_rounded(input, F.empty_like(input).exponential_(1, generator=generator))
    return F.argmax(race, -1, True) if num_samples == 1 else F.topk(race, num_samples)[1]


@composite("poisson(Tensor input, generator=None)", where="torch", layout=memory_layout.like_first)
def poisson(F, input, generator):
    """Draws Poisson numbers of given rates.

    The gradient is zero.

    Args:
        input: The rates; the result has their dtype.

    Raises:
        RuntimeError: A rate is negative.

    Example:
        >>> torch.poisson(torch.tensor([0.0]))
        tensor([0.])

    See also:
        `torch.distributions.Poisson`.
    """
    if input.dtype.category != 2:
        raise NotImplementedError(f"\"poisson_cpu\" not implemented for '{input.dtype.scalar_name}'")
    return F._random_poisson(input, engine_for_table(input._tl_kernels, generator))


@composite("binomial(Tensor count, Tensor prob, generator=None)", where="torch", layout=memory_layout.like_first)
def binomial(F, count, prob, generator):
    """Draws binomial numbers.

    Args:
        count: The numbers of trials, floating point.
        prob: The probabilities of success, of the same dtype.

    Example:
        >>> torch.binomial(torch.tensor([3.0]), torch.tensor([1.0]))
        tensor([3.])

    See also:
        `torch.distributions.Binomial`.
    """
    for name, tensor in (("count", count), ("prob", prob)):
        if tensor.dtype.category != 2:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {tensor.dtype.scalar_name}"
            )
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"Found dtype {prob.dtype.scalar_name} but expected {count.dtype.scalar_name}")
    return F._random_binomial(count, prob, engine_for_table(count._tl_kernels, generator))
