"""The public pooling functions: arguments, PyTorch's errors, and overloads with and without indices, over the records
in `pooling_kernels.py`.
"""

import math
import operator

from torchlite._dispatch import Out, call, composite, memory_layout
from torchlite._dispatch.shape_and_value_checks import min_and_max
from torchlite._types.dtypes import BOOL, COMPLEX, FLOAT, INT
from torchlite._types.layouts import channels_last

from ._dtype_checks import refuse_kinds
from .conv import tuple_of
from .pooling_checks import BATCHED, check_avg_pool, check_max_pool, check_max_pool1d, refuse_dtype, window_argument


def _max_pool(F, count, input, kernel_size, stride, padding, dilation, ceil_mode, indices):
    arguments = input, kernel_size, stride, padding, dilation, ceil_mode
    window = check_max_pool1d(*arguments) if count == 1 and not indices else check_max_pool(count, *arguments)
    if indices:
        return tuple(F._max_pool_with_indices(input, *window, ceil_mode))
    return F._max_pool(input, *window, ceil_mode)


def _avg_pool(F, count, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    window = check_avg_pool(count, input, kernel_size, stride, padding, ceil_mode, divisor_override)
    return F._avg_pool(input, *window, bool(ceil_mode), count_include_pad, divisor_override)


def _refuse_negative(input, size, function):
    """RuntimeError for a negative output size of an adaptive pool, which in one dimension is a plane of one row."""
    shown = (1, *size) if len(size) == 1 else size
    if "max" in function:
        shape = [*input.shape[: input.ndim - len(size)], *shown]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {shape}")
    name = function.replace("1d", "2d")
    listed = f"{shown[0]}, {','.join(map(str, shown[1:]))}"
    raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {{{listed}}}")


def _adaptive_size(input, output_size, count, function):
    if output_size is None or isinstance(output_size, int) or hasattr(output_size, "__index__"):
        output_size = (output_size,) * count
    elif count > 1 and input.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    output_size = tuple(output_size)
    for place, n in enumerate(output_size):
        if n is not None and not hasattr(n, "__index__"):
            raise TypeError(
                f"{function}(): argument 'output_size' (position 2) must be tuple of ints, but found element of type "
                f"{type(n).__name__} at pos {place}"
            )
    if len(output_size) != count:
        if count == 1:
            raise RuntimeError(f"{function}() argument 'output_size' should contain one int (got {len(output_size)})")
        words = "(): internal error: output_size.size()" if "max" in function else ": output_size"
        raise RuntimeError(f"{function}{words} must be {count}")
    if input.ndim not in (count + 1, count + 2):
        colon = ":" if "max" in function else ""
        raise RuntimeError(f"{function}(): Expected {BATCHED[count]} tensor, but got{colon} {list(input.shape)}")
    size = tuple(
        n if o is None else int(o) for o, n in zip(output_size, input.shape[input.ndim - count :], strict=True)
    )
    if min(size) < 0:
        _refuse_negative(input, size, function)
    _refuse_empty(input, size, count, function)
    if "max" in function or any(n != 1 for n in size):
        refuse_dtype(
            input, {"1d": f"{function[:-2]}2d", "3d": f"{function}_cpu"}.get(function[-2:], function), integers=False
        )
    return size


def _refuse_empty(input, size, count, function):
    """RuntimeError if the input is empty. An average over everything is a mean, which is NaN for an empty input."""
    if "avg" in function and all(n == 1 for n in size):
        return
    shape, first = list(input.shape), 1
    if function == "adaptive_avg_pool1d":
        function, shape = "adaptive_avg_pool2d", [*shape[:-1], 1, shape[-1]]
    if function == "adaptive_avg_pool2d":
        first = len(shape) - 2
    for dim in range(first, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{function}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{shape} with dimension {dim} being empty"
            )


_WINDOW_ARGS = """
    input: The input, of shape ``(N, C, *)`` or ``(C, *)`` with {n} spatial dimension(s).
    kernel_size: The size of a window, a number or one a dimension.
    stride: The distance of windows. Default: `kernel_size`."""
_MAX_ARGS = (
    _WINDOW_ARGS
    + """
    padding: The border on both sides, whose elements count as minus infinity. Default: 0.
    dilation: The distance of the elements of a window. Default: 1.
    ceil_mode: Whether a last window may reach over the end. Default: ``False``."""
)
_MAX_DOC = (
    """Computes the maximum of each window of {n} spatial dimension(s).

Args:"""
    + _MAX_ARGS
    + """
    return_indices: Whether to return the flat spatial indices of the maxima too. Default: ``False``.

Returns:
    A tensor, or with `return_indices` a tuple of it and of the indices (int64).

Raises:
    RuntimeError: No window fits, or the padding is more than half of a window.

Example:
    >>> F.max_pool{n}d(torch.ones(1, 1{sizes}), 2).shape
    torch.Size([1, 1{halves}])

See also:
    `torch.nn.MaxPool{n}d`."""
)
_MAX_INDICES_DOC = (
    """Computes the maximum of each window of {n} spatial dimension(s) and its index.

Args:"""
    + _MAX_ARGS
    + """
    return_indices: Has no effect: indices are always returned.

Returns:
    A tuple of the maxima and of their flat spatial indices (int64).

Example:
    >>> F.max_pool{n}d_with_indices(torch.ones(1, 1{sizes}), 2)[1].shape
    torch.Size([1, 1{halves}])

See also:
    `torch.nn.functional.max_pool{n}d`."""
)
_AVG_DOC = (
    """Computes the average of each window of {n} spatial dimension(s).

Args:"""
    + _WINDOW_ARGS
    + """
    padding: The border of zeros on both sides. Default: 0.
    ceil_mode: Whether a last window may reach over the end. Default: ``False``.
    count_include_pad: Whether zeros of the border count. Default: ``True``.{divisor}

Raises:
    RuntimeError: No window fits, or the padding is more than half of a window.

Example:
    >>> F.avg_pool{n}d(torch.ones(1, 1{sizes}), 2).shape
    torch.Size([1, 1{halves}])

See also:
    `torch.nn.AvgPool{n}d`."""
)
_DIVISOR = """
    divisor_override: The divisor of the sums. Default: the number of elements."""
_ADAPTIVE_ARGS = """Computes the {kind} of windows that divide {n} spatial dimension(s) into a given number.

Window ``i`` of ``out`` covers the elements from ``floor(i * size / out)`` to ``ceil((i + 1) * size / out)``.

Args:
    input: The input, of shape ``(N, C, *)`` or ``(C, *)``.
    output_size: The number of windows, one or one a dimension; ``None`` keeps a size."""
_ADAPTIVE_END = """

Example:
    >>> F.adaptive_{name}_pool{n}d(torch.ones(1, 1{sizes}), 2).shape
    torch.Size([1, 1{halves}])

See also:
    `torch.nn.Adaptive{layer}Pool{n}d`."""
_ADAPTIVE_AVG_DOC = _ADAPTIVE_ARGS + _ADAPTIVE_END
_ADAPTIVE_MAX_DOC = (
    _ADAPTIVE_ARGS
    + """
    return_indices: Whether to return the flat spatial indices of the maxima too. Default: ``False``.

Returns:
    A tensor, or with `return_indices` a tuple of it and of the indices (int64)."""
    + _ADAPTIVE_END
)
_ADAPTIVE_INDICES_DOC = (
    _ADAPTIVE_ARGS
    + """
    return_indices: Has no effect: indices are always returned.

Returns:
    A tuple of the maxima and of their flat spatial indices (int64).

Example:
    >>> F.adaptive_max_pool{n}d_with_indices(torch.ones(1, 1{sizes}), 2)[1].shape
    torch.Size([1, 1{halves}])

See also:
    `torch.nn.functional.adaptive_max_pool{n}d`."""
)
_POWER_DOC = (
    r"""Computes the power average of each window of {n} spatial dimension(s).

.. math::

    y = \left( \sum_{{x \in \text{{window}}}} x^p \right)^{{1 / p}}

A negative sum counts as 0.

Args:
    norm_type: The exponent :math:`p`."""
    + _WINDOW_ARGS
    + """
    ceil_mode: Whether a last window may reach over the end. Default: ``False``.

Example:
    >>> F.lp_pool{n}d(torch.ones(1, 1{sizes}), 1, 2).shape
    torch.Size([1, 1{halves}])

See also:
    `torch.nn.LPPool{n}d`."""
)
_UNPOOL_DOC = """Computes a partial inverse of `max_pool{n}d`: the maxima at their positions, and zeros elsewhere.

Args:
    input: The maxima, of shape ``(N, C, *)`` or ``(C, *)``.
    indices: Their flat spatial indices, int64, as `max_pool{n}d` returns them.
    kernel_size: The size of a window, a number or one a dimension.
    stride: The distance of windows. Default: `kernel_size`.
    padding: The border of the pooling. Default: 0.
    output_size: The spatial sizes of the result. Default: the least that the windows cover.

Raises:
    RuntimeError: The indices are not int64, have another shape or are out of range.
    ValueError: The pooling has no input of `output_size`.

Example:
    >>> values, indices = F.max_pool{n}d(torch.ones(1, 1{sizes}), 2, return_indices=True)
    >>> F.max_unpool{n}d(values, indices, 2).shape
    torch.Size([1, 1{sizes}])

See also:
    `torch.nn.MaxUnpool{n}d`."""
_FRACTIONAL_ARGS = """

The boundaries of the windows are pseudorandom (Graham, 2014).

Args:
    input: The input, of shape ``(N, C, *)`` or ``(C, *)``.
    kernel_size: The size of a window, a number or one a dimension.
    output_size: The spatial sizes of the result.
    output_ratio: The spatial sizes of the result relative to the input's, in place of `output_size`."""
_FRACTIONAL_SAMPLES = """
    _random_samples: The positions of windows, from 0 to 1, of shape ``(N, C, {n})``. Default: drawn."""
_FRACTIONAL_DOC = (
    "Computes the maximum of windows that divide {n} spatial dimensions pseudorandomly."
    + _FRACTIONAL_ARGS
    + """
    return_indices: Whether to return the flat spatial indices of the maxima too. Default: ``False``."""
    + _FRACTIONAL_SAMPLES
    + """

Returns:
    A tensor, or with `return_indices` a tuple of it and of the indices (int64).

Example:
    >>> F.fractional_max_pool{n}d(torch.ones(1, 1{sizes}), 2, output_size=2).shape
    torch.Size([1, 1{halves}])

See also:
    `torch.nn.FractionalMaxPool{n}d`."""
)
_FRACTIONAL_INDICES_DOC = (
    "Computes the maximum and its index of windows that divide {n} spatial dimensions pseudorandomly."
    + _FRACTIONAL_ARGS
    + """
    return_indices: Has no effect: indices are always returned."""
    + _FRACTIONAL_SAMPLES
    + """

Returns:
    A tuple of the maxima and of their flat spatial indices (int64).

Example:
    >>> F.fractional_max_pool{n}d_with_indices(torch.ones(1, 1{sizes}), 2, output_size=2)[1].shape
    torch.Size([1, 1{halves}])

See also:
    `torch.nn.functional.fractional_max_pool{n}d`."""
)


def _document_pool(text, n, **words):
    return text.format(n=n, sizes=", 4" * n, halves=", 2" * n, **words)


def _declare_max(n, where):
    def max_pool(F, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
        return _max_pool(F, n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    def with_indices(F, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
        return _max_pool(F, n, input, kernel_size, stride, padding, dilation, ceil_mode, True)

    arguments = "Tensor input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False"
    composite(f"max_pool{n}d({arguments})", where=where, doc=_document_pool(_MAX_DOC, n))(max_pool)
    composite(
        f"max_pool{n}d_with_indices({arguments})",
        where="torch nn.functional" if n == 1 else "nn.functional",
        doc=_document_pool(_MAX_INDICES_DOC, n),
    )(with_indices)


def _declare_average(n):
    if n == 1:

        def avg_pool(F, input, kernel_size, stride, padding, ceil_mode, count_include_pad):
            return _avg_pool(F, n, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)
    else:

        def avg_pool(F, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
            return _avg_pool(F, n, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    last = "" if n == 1 else ", divisor_override=None"
    composite(
        f"avg_pool{n}d(Tensor input, kernel_size, stride=None, padding=0, ceil_mode=False, "
        f"count_include_pad=True{last})",
        where="torch nn.functional" if n == 1 else "nn.functional",
        doc=_document_pool(_AVG_DOC, n, divisor="" if n == 1 else _DIVISOR),
        out=Out(supported=n > 1),
    )(avg_pool)


def _declare_adaptive(n):
    where = "torch nn.functional" if n == 1 else "nn.functional"

    def adaptive_avg(F, input, output_size):
        size = _adaptive_size(input, output_size, n, f"adaptive_avg_pool{n}d")
        if all(length == 1 for length in size) and (not input.numel() or input.dtype.category != FLOAT):
            return F.mean(input, tuple(range(-n, 0)), True)
        return F._adaptive_avg_pool(input, size)

    def adaptive_max(F, input, output_size, return_indices):
        values, indices = F._adaptive_max_pool(input, _adaptive_size(input, output_size, n, f"adaptive_max_pool{n}d"))
        return (values, indices) if return_indices else values

    def with_indices(F, input, output_size, return_indices):
        return tuple(F._adaptive_max_pool(input, _adaptive_size(input, output_size, n, f"adaptive_max_pool{n}d")))

    composite(
        f"adaptive_avg_pool{n}d(Tensor input, output_size)",
        where=where,
        doc=_document_pool(_ADAPTIVE_AVG_DOC, n, kind="average", name="avg", layer="Avg"),
    )(adaptive_avg)
    composite(
        f"adaptive_max_pool{n}d(Tensor input, output_size, return_indices=False)",
        where="nn.functional",
        doc=_document_pool(_ADAPTIVE_MAX_DOC, n, kind="maximum", name="max", layer="Max"),
    )(adaptive_max)
    composite(
        f"adaptive_max_pool{n}d_with_indices(Tensor input, output_size, return_indices=False)",
        where="nn.functional",
        doc=_document_pool(_ADAPTIVE_INDICES_DOC, n, kind="maximum and its index"),
    )(with_indices)


@composite("adaptive_max_pool1d_pair(Tensor input, output_size)", where="", alias="torch.adaptive_max_pool1d")
def adaptive_max_pool1d_pair(F, input, output_size):
    """Computes the maxima over windows that divide the input into `output_size` parts, and their indices.

    Args:
        input: The input, of shape ``(N, C, L)`` or ``(C, L)``.
        output_size: The number of windows.

    Returns:
        ``(values, indices)``.

    Example:
        >>> torch.adaptive_max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        (tensor([[3., 2.]]), tensor([[1, 2]]))

    See also:
        `torch.nn.functional.adaptive_max_pool1d`.
    """
    return F.adaptive_max_pool1d(input, output_size, True)


for _n in (1, 2, 3):
    _declare_max(_n, "torch nn.functional")
    _declare_average(_n)
    _declare_adaptive(_n)


def _power_mean(F, count, input, norm_type, kernel_size, stride, ceil_mode):
    """(sum of x^p over each window)^(1/p), as PyTorch does it: the average times the window's size, negative sums
    counted as zero before the root.
    """
    kernel = window_argument(kernel_size, count, "kernel_size", f"lp_pool{count}d")
    p = float(norm_type)
    powers = F.pow(input, p)
    mean = _avg_pool(F, count, powers, kernel, stride, 0, ceil_mode, True, None)
    return F.pow(F.mul(F.mul(F.sign(mean), F.relu(F.abs(mean))), math.prod(kernel)), 1.0 / p)


def _declare_power(n):
    def lp_pool(F, input, norm_type, kernel_size, stride, ceil_mode):
        return _power_mean(F, n, input, norm_type, kernel_size, stride, ceil_mode)

    composite(
        f"lp_pool{n}d(Tensor input, norm_type, kernel_size, stride=None, ceil_mode=False)",
        where="nn.functional",
        doc=_document_pool(_POWER_DOC, n),
    )(lp_pool)


for _n in (1, 2, 3):
    _declare_power(_n)


# -- unpooling -------------------------------------------------------------------------------------


def _unpooled_size(input, kernel, stride, padding, output_size, count):
    size = input.shape[input.ndim - count :]
    default = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(size, stride, kernel, padding, strict=True))
    if output_size is None:
        return default
    output_size = tuple(map(operator.index, output_size))
    if len(output_size) == count + 2:
        output_size = output_size[2:]
    if len(output_size) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for d, (n, base, s) in enumerate(zip(output_size, default, stride, strict=True)):
        if not base - s < n < base + s:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {base - s} and {base + s})')
    return output_size


def _max_unpool(F, count, input, indices, kernel_size, stride, padding, output_size):
    kernel = tuple_of(kernel_size, count)
    stride = kernel if stride is None else tuple_of(stride, count)
    size = _unpooled_size(input, kernel, stride, tuple_of(padding, count), output_size, count)
    if str(indices.dtype).rpartition(".")[2] != "int64":
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype.scalar_name}")
    if tuple(indices.shape) != tuple(input.shape):
        plane = [1] if count == 1 else []  # one dimension is a plane of one column
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({[*input.shape, *plane]}) but got "
            f"indices tensor with shape: {[*indices.shape, *plane]}"
        )
    if input.ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"Input to max_unpooling{count}d should be a {BATCHED[count].replace('D', 'd')} Tensor, but got a "
            f"tensor with {input.ndim} dimensions."
        )
    name = f"max_unpool{max(count, 2)}d"
    of_channels_last = count == 2 and input._tl_level is None and input.is_contiguous(memory_format=channels_last)
    if of_channels_last and not input.is_contiguous():
        name += "_channels_last"
    refuse_kinds(input.dtype, name, BOOL, INT, COMPLEX)
    lead, places = tuple(input.shape[: input.ndim - count]), math.prod(size)
    flat = (*lead, math.prod(input.shape[input.ndim - count :]))
    if input.device.type != "meta" and 0 not in flat:
        low, high = min_and_max(indices)
        if low < 0 or high >= places:
            wrong = low if low < 0 else high
            raise RuntimeError(
                f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(str(n) for n in size)})"
            )
    values = F.reshape(F._with_constant_gradient(input), flat)
    out = F.scatter(F._new_zeros(input, (*lead, places)), len(lead), F.reshape(indices, flat), values)
    return F.reshape(out, (*lead, *size))


def _declare_unpool(n):
    def max_unpool(F, input, indices, kernel_size, stride, padding, output_size):
        return _max_unpool(F, n, input, indices, kernel_size, stride, padding, output_size)

    composite(
        f"max_unpool{n}d(Tensor input, Tensor indices, kernel_size, stride=None, padding=0, output_size=None)",
        where="nn.functional",
        doc=_document_pool(_UNPOOL_DOC, n),
        layout=memory_layout.suggest_memory_format_2d if n > 1 else None,
        node_name="SqueezeBackward1(MaxUnpool2DBackward0(UnsqueezeBackward0(input)))"
        if n == 1
        else f"MaxUnpool{n}DBackward0(input)",
    )(max_unpool)


for _n in (1, 2, 3):
    _declare_unpool(_n)


# -- fractional pooling ----------------------------------------------------------------------------


def _fractional_size(input, output_size, output_ratio, count, name):
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is not None:
        return tuple_of(output_size, count)
    if len(output_ratio) > count:
        raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
    return tuple(int(n * ratio) for n, ratio in zip(input.shape[input.ndim - count :], output_ratio, strict=True))


def _check_samples(samples, x, count):
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.shape[0] < x.shape[0]:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != x.shape[1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != count:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {count}; got {samples.shape[2]}.")


def _fractional_pool(F, count, input, kernel_size, output_size, output_ratio, samples):
    name = f"fractional_max_pool{count}d"
    size = _fractional_size(input, output_size, output_ratio, count, name)
    kernel = tuple_of(kernel_size, count)
    for what, given in (("kernel_size", kernel_size), ("output_size", output_size)):
        if hasattr(given, "__len__") and len(given) != count:
            raise RuntimeError(f"{name}: {what} must either be a single Int or tuple of Ints")
    if input.ndim not in (count + 1, count + 2):
        raise RuntimeError(f"{name}(): Expected {BATCHED[count]} tensor, but got: {list(input.shape)}")
    single = input.ndim == count + 1
    for d in range(1, input.ndim):
        if input.shape[d] == 0:
            raise RuntimeError(
                f"{name}{'_out' * (count == 3)}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"got{list(input.shape)} with dimension {d} being empty."
            )
    x = call.hide_node(F.unsqueeze(input, 0)) if single else input
    for label, n, k, o in zip(("time", "height", "width")[-count:], x.shape[2:], kernel, size, strict=True):
        if o + k - 1 > n:
            raise RuntimeError(f"{name}(): pool {label} {k} too large relative to input {label} {n}")
    if samples is None:
        from .._dispatch.public_functions import torch

        samples = torch.rand((x.shape[0], x.shape[1], count), dtype=x.dtype, device=x.device)
    _check_samples(samples, x, count)
    values, indices = F._fractional_max_pool(x, samples, kernel, size)
    return (call.hide_node(F.squeeze(values, 0)), F.squeeze(indices, 0)) if single else (values, indices)


def _declare_fractional(n):
    def fractional(F, input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
        values, indices = _fractional_pool(F, n, input, kernel_size, output_size, output_ratio, _random_samples)
        return (values, indices) if return_indices else values

    def with_indices(F, input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
        return _fractional_pool(F, n, input, kernel_size, output_size, output_ratio, _random_samples)

    arguments = (
        "Tensor input, kernel_size, output_size=None, output_ratio=None, return_indices=False, Tensor? "
        "_random_samples=None"
    )
    composite(f"fractional_max_pool{n}d({arguments})", where="nn.functional", doc=_document_pool(_FRACTIONAL_DOC, n))(
        fractional
    )
    composite(
        f"fractional_max_pool{n}d_with_indices({arguments})",
        where="nn.functional",
        doc=_document_pool(_FRACTIONAL_INDICES_DOC, n),
    )(with_indices)


for _n in (2, 3):
    _declare_fractional(_n)
