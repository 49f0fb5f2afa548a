"""Checks of the arguments of pooling: PyTorch's errors, in its order.

A pool of one dimension is checked as a pool of planes with one row, except for `max_pool1d` without indices.
"""

import operator

from torchlite._types.dtypes import BOOL, COMPLEX, INT

from ._dtype_checks import refuse_kinds
from .conv import tuple_of

BATCHED = {1: "2D or 3D", 2: "3D or 4D", 3: "4D or 5D"}
_PLACES = {2: "HW", 3: "THW"}
_LENGTHS = {2: "a tuple of two ints", 3: "a tuple of three ints"}


def pooled_size(n, kernel, stride, padding, dilation, ceil_mode):
    """Number of windows fit along a dimension of `n` places."""
    span = n + 2 * padding - dilation * (kernel - 1) - 1
    out = (-(-span // stride) if ceil_mode else span // stride) + 1
    return out - 1 if ceil_mode and (out - 1) * stride >= n + padding else out


def _check_pad(p, k, d):
    if p < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
    if p > int((d * (k - 1) + 1) / 2):
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
        )


def check_padding(kernel, padding, dilation):
    """RuntimeError for padding that is negative or wider than half a window."""
    for p, k, d in zip(padding, kernel, dilation, strict=True):
        _check_pad(p, k, d)


def refuse_dtype(input, function, integers=True):
    """NotImplementedError for dtypes that a pooling op does not take."""
    refuse_kinds(input.dtype, function, BOOL, COMPLEX, *(() if integers else (INT,)))


def refuse_ndim(input, count):
    """RuntimeError for an input that is neither a batch nor an item of one."""
    if input.ndim not in (count + 1, count + 2):
        raise RuntimeError(f"non-empty {BATCHED[count]} (batch mode) tensor expected for input")


def _refuse_ndim_of_rows(input, function):
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {function})"
        )


def _words_of_length(function, count, name, alone, given):
    """The error of an argument with another number of elements."""
    if alone:
        omitted = "None, " if name == "stride" else ""
        comma = "," if name in ("stride", "padding") else ""
        return (
            f"{function}() {name} must be {omitted}an int, list of ints{comma} or tuple of ints of size 1 but got size "
            f"{given}"
        )
    if count == 1:
        return f"{function}() argument '{name}' should contain one int (got {given})"
    own = {"avg_pool3d": "must be", "dilation": "must be either"}
    must = own.get(function) or own.get(name) or "must either be"
    return f"{function}: {name} {must} {'omitted, ' if name == 'stride' else ''}a single int, or {_LENGTHS[count]}"


def window_argument(value, count, name, function, alone=False):
    """A window argument for each dimension. PyTorch's error if it has another length."""
    given = tuple_of(value, count)
    if len(given) != count:
        raise RuntimeError(_words_of_length(function, count, name, alone, len(given)))
    return given


def _window_arguments(function, count, kernel_size, stride, padding, dilation, alone=False):
    kernel = window_argument(kernel_size, count, "kernel_size", function, alone)
    empty = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    return (
        kernel,
        kernel if empty else window_argument(stride, count, "stride", function, alone),
        window_argument(padding, count, "padding", function, alone),
        window_argument(dilation, count, "dilation", function, alone),
    )


def _check_window(kernel, stride, padding, dilation):
    """RuntimeError for a window that has no size or does not move."""
    for k, step, p, d in zip(kernel, stride, padding, dilation, strict=True):
        if not step:
            raise RuntimeError("stride should not be zero")
        _check_pad(p, k, d)
    letters = _PLACES[len(kernel)]
    for what, prefix, values in (
        ("kernel size", "k", kernel),
        ("stride", "d", stride),
        ("dilation", "dilation", dilation),
    ):
        if min(values) <= 0:
            shown = " ".join(f"{prefix}{place}: {n}" for place, n in zip(letters, values, strict=True))
            raise RuntimeError(f"{what} should be greater than zero, but got {shown}")


def _check_half(kernel, padding):
    """RuntimeError for padding that is wider than half a window without its gaps."""
    if any(p > k // 2 for p, k in zip(padding, kernel, strict=True)):
        words = "pad should be smaller than or equal to half of kernel size, but got "
        if len(kernel) == 2:
            raise RuntimeError(f"{words}padW = {padding[1]}, padH = {padding[0]}, kW = {kernel[1]}, kH = {kernel[0]}")
        (t, h, w), (pad_t, pad_h, pad_w) = kernel, padding
        raise RuntimeError(f"{words}kT: {t} kW: {w} kH: {h} padT: {pad_t} padW: {pad_w} padH: {pad_h}")


def check_output(channels, size, out):
    """RuntimeError if a dimension has no window."""
    if min(out) < 1:
        given, made = ("x".join(str(n) for n in (*channels, *sizes)) for sizes in (size, (max(n, 0) for n in out)))
        raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({made}). Output size is too small")


def _check_shape(function, shape, window, ceil_mode):
    kernel, stride, padding, dilation = window
    count = len(kernel)
    batched = len(shape) == count + 2
    if count == 2:
        if len(shape) not in (3, 4) or 0 in shape[batched:]:
            raise RuntimeError(
                f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{shape}"
            )
    elif 0 in shape[batched:]:
        raise RuntimeError(
            f"{function}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{shape} and non-batch dimension 0 has length zero!"
        )
    size = shape[len(shape) - count :]
    if function == "avg_pool3d" and any(k > n for k, n in zip(kernel, size, strict=True)):
        image, window = (
            " ".join(f"{k}{place}: {n}" for place, n in zip("THW", numbers, strict=True))
            for k, numbers in (("", size), ("k", kernel))
        )
        raise RuntimeError(f"input image ({image}) smaller than kernel size ({window})")
    _check_half(kernel, padding)
    out = [pooled_size(*numbers, ceil_mode) for numbers in zip(size, kernel, stride, padding, dilation, strict=True)]
    check_output(shape[-count - 1 : -count], size, out)


def _fits(shape, kernel, stride, padding, dilation):
    """True if all windows have elements of the input; False says that the other checks must find out."""
    first = len(shape) - len(kernel)
    if not 1 <= first <= 2 or not shape[first - 1]:
        return False
    for n, k, step, pad, gap in zip(shape[first:], kernel, stride, padding, dilation, strict=True):
        if k < 1 or step < 1 or gap < 1 or not 0 <= pad <= k // 2 or n < k or n <= gap * (k - 1):
            return False
    return True


def _check_pool(function, input, window, ceil_mode):
    """The checks that maxima and averages share."""
    if _fits(input.shape, *window):
        return
    shape = list(input.shape)
    if len(window[0]) == 1:
        window = tuple((neutral, *values) for neutral, values in zip((1, 1, 0, 1), window, strict=True))
        shape.insert(len(shape) - 1, 1)
    _check_window(*window)
    _check_shape(function, shape, window, ceil_mode)


def check_max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode):
    """The window of `max_pool1d` without indices, which has errors of its own."""
    shape = list(input.shape)
    if input.ndim not in (2, 3) or 0 in shape[input.ndim - 2 :]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{shape}"
        )
    window = _window_arguments("max_pool1d", 1, kernel_size, stride, padding, dilation, alone=True)
    (kernel,), (stride,), (padding,), (dilation,) = window
    for name, n in (("kernel_size", kernel), ("stride", stride)):
        if n <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {n}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
            f"kernel_size={kernel}"
        )
    if dilation <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {dilation}")
    out = pooled_size(shape[-1], kernel, stride, padding, dilation, ceil_mode)
    if out <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out}")
    refuse_dtype(input, "max_pool1d_impl", integers=False)
    return window


def check_max_pool(count, input, kernel_size, stride, padding, dilation, ceil_mode):
    """The window of a pool of maxima, for each dimension."""
    function = f"max_pool{count}d"
    if count == 1:
        _refuse_ndim_of_rows(input, function)
    window = _window_arguments(function, count, kernel_size, stride, padding, dilation)
    if count > 1:
        refuse_ndim(input, count)
    _check_pool("max_pool3d_with_indices_out_cpu_template", input, window, ceil_mode)
    refuse_dtype(input, f"max_pool{max(count, 2)}d")
    return window


def check_avg_pool(count, input, kernel_size, stride, padding, ceil_mode, divisor_override):
    """The window of a pool of averages, for each dimension."""
    function = f"avg_pool{count}d"
    if count == 1:
        _refuse_ndim_of_rows(input, function)
    window = _window_arguments(function, count, kernel_size, stride, padding, 1)
    if count == 3:
        refuse_ndim(input, count)
    if divisor_override is not None and operator.index(divisor_override) == 0:
        raise RuntimeError("divisor must be not zero")
    if count == 2 and input.ndim < 3:
        if not input.ndim:
            raise IndexError("Dimension specified as -3 but tensor has no dimensions")
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got -3)"
        )
    _check_pool(function, input, window, ceil_mode)
    refuse_dtype(input, "avg_pool3d_out_frame" if count == 3 else "avg_pool2d", integers=input.dtype.itemsize == 8)
    return window[:3]
