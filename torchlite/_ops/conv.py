"""Convolution and transposed convolution in one to three spatial dimensions.

`convolution` is the only record with a kernel. Its backward is a separate record, whose composite computes the three
gradients as convolutions, so derivatives of every order use the same two records. A backend without a kernel runs the
composites: windows by `as_strided`, then `matmul`.
"""

import math
import operator

from torchlite._dispatch import composite, memory_layout, op

from ._dtype_checks import refuse_floats

_NAMES = {1: ("width",), 2: ("height", "width"), 3: ("depth", "height", "width")}


def tuple_of(value, count):
    """`value` for each of `count` spatial dimensions."""
    if value.__class__ not in (tuple, list) and hasattr(value, "__index__"):
        return (operator.index(value),) * count
    value = tuple(map(operator.index, value))
    return value * count if len(value) == 1 else value


def window_count(size, kernel, stride, padding, dilation):
    """Number of places a window has along each dimension."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


# -- shapes and errors -----------------------------------------------------------------------------


def _list(shape):
    return list(shape)


def _format_sizes(sizes):
    return " x ".join(str(n) for n in sizes)


def _check_parameters(weight, stride, padding, dilation, output_padding, groups):
    count = len(weight.shape) - 2
    if count < 1:
        raise RuntimeError("weight should have at least three dimensions")
    for name, value in (
        ("stride", stride),
        ("padding", padding),
        ("dilation", dilation),
        ("output_padding", output_padding),
    ):
        if len(value) != count:
            raise RuntimeError(
                f"expected {name} to be a single integer value or a list of {count} values to match the convolution "
                f"dimensions, but got {name}={_list(value)}"
            )
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) < 0:
        raise RuntimeError("dilation should be greater than zero")
    if min(dilation) == 0:
        shown = [1, *dilation] if count == 1 else _list(dilation)  # one dimension is a plane of one row
        raise RuntimeError(f"dilation should be greater than zero, but got {shown}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _check_types(input, weight, bias):
    if input.dtype is not weight.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {weight.dtype.scalar_name}")
    if bias is not None and bias.dtype is not input.dtype:
        raise RuntimeError(f"Input type ({input.dtype.c_name}) and bias type ({bias.dtype.c_name}) should be the same")


def _check_channels(input, weight, bias, groups, transposed):
    rows, shape = weight.shape[0], _list(weight.shape)
    if rows < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{shape} instead"
        )
    if rows % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{shape}] instead"
        )
    channels = rows if transposed else weight.shape[1] * groups
    filters = weight.shape[1] * groups if transposed else rows
    if input.shape[1] != channels:
        given = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {given}, weight of size {shape}, expected input{_list(input.shape)} to have {channels} channels, "
            f"but got {input.shape[1]} channels instead"
        )
    if bias is not None and tuple(bias.shape) != (filters,):
        given = "transposed=1, " if transposed else ""
        raise RuntimeError(
            f"Given {given}weight of size {shape}, expected bias to be 1-dimensional with {filters} elements, but "
            f"got bias of size {_list(bias.shape)} instead"
        )
    return filters


def _check_ranks(input, weight, gap):
    if len(input.shape) != len(weight.shape):
        raise RuntimeError(
            f"Expected {len(weight.shape)}-dimensional input for {len(weight.shape)}-dimensional weight{gap}"
            f"{_list(weight.shape)}, but got {len(input.shape)}-dimensional input of size {_list(input.shape)} "
            "instead"
        )


def convolution_shape_fn(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    count = len(weight.shape) - 2
    if count < 1:
        raise RuntimeError("weight should have at least three dimensions")
    stride, padding, dilation, extra = (tuple_of(v, count) for v in (stride, padding, dilation, output_padding))
    _check_parameters(weight, stride, padding, dilation, extra, groups)
    _check_ranks(input, weight, " ")
    filters = _check_channels(input, weight, bias, groups, transposed)
    _check_types(input, weight, bias)
    size, kernel = input.shape[2:], weight.shape[2:]
    if 0 in kernel:
        names = (f"kernel_{name}: {n}" for name, n in zip(("height", "width"), (1, *kernel)[-2:], strict=True))
        shown = f": {_format_sizes(kernel)} (TxHxW)" if count == 3 else f" {' '.join(names)}"
        raise RuntimeError(f"kernel size should be greater than zero, but got{shown}")
    if not transposed:
        out = window_count(size, kernel, stride, padding, dilation)
        if min(out) <= 0:
            around = [n + 2 * p for n, p in zip(size, padding, strict=True)]
            reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
            raise RuntimeError(
                f"Calculated padded input size per channel: ({_format_sizes(around)}). "
                f"Kernel size: ({_format_sizes(reach)}). "
                "Kernel size can't be greater than actual input size"
            )
        return (input.shape[0], filters, *out), input.dtype
    out = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, d, e in zip(size, kernel, stride, padding, dilation, extra, strict=True)
    )
    if min(out) <= 0:
        raise RuntimeError(
            f"Given input size per channel: ({_format_sizes(size)}). "
            f"Calculated output size per channel: ({_format_sizes(out)}). "
            "Output size is too small"
        )
    return (input.shape[0], filters, *out), input.dtype


def _check_output_padding(stride, dilation, output_padding):
    if all(e < s or e < d for e, s, d in zip(output_padding, stride, dilation, strict=True)):
        return
    names = _NAMES[len(stride)] if len(stride) > 1 else ("height", "width")
    words = []
    for label, numbers in (("output_padding", output_padding), ("stride", stride), ("dilation", dilation)):
        fill = (0 if label == "output_padding" else 1,) * (len(names) - len(numbers))
        words += [f"{label}_{name}: {n}" for name, n in zip(names, (*fill, *numbers), strict=True)]
    raise RuntimeError("output padding must be smaller than either stride or dilation, but got " + " ".join(words))


# -- composites ------------------------------------------------------------------------------------


def _strides(shape):
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return steps[::-1]


def _pad_with_zeros(F, x, before, after):
    """Zeros before and after each spatial dimension; a negative number of them cuts."""
    for i, (b, a) in enumerate(zip(before, after, strict=True)):
        dim = 2 + i
        if b < 0 or a < 0:
            start = max(0, -b)
            x = F.narrow(x, dim, start, x.shape[dim] - start - max(0, -a))
        parts = [F._new_zeros(x, (*x.shape[:dim], n, *x.shape[dim + 1 :])) for n in (max(0, b), max(0, a))]
        pieces = ([parts[0]] if b > 0 else []) + [x] + ([parts[1]] if a > 0 else [])
        x = F.cat(pieces, dim) if len(pieces) > 1 else x
    return x


def _dilate_with_zeros(F, x, stride):
    """`stride - 1` zeros after every place of each spatial dimension but the last."""
    for i, step in enumerate(stride):
        if step == 1:
            continue
        dim = 2 + i
        n = x.shape[dim]
        wide = F.unsqueeze(x, dim + 1)
        zeros = F._new_zeros(x, (*wide.shape[: dim + 1], step - 1, *wide.shape[dim + 2 :]))
        wide = F.reshape(F.cat([wide, zeros], dim + 1), (*x.shape[:dim], n * step, *x.shape[dim + 1 :]))
        x = F.narrow(wide, dim, 0, (n - 1) * step + 1)
    return x


def _correlate_padded(F, x, weight, stride, dilation, groups):
    """The convolution of an input whose zeros are already around it."""
    spatial = x.ndim - 2
    kernel, size = weight.shape[2:], x.shape[2:]
    out = window_count(size, kernel, stride, (0,) * spatial, dilation)
    x = F.contiguous(x)
    steps = _strides(x.shape)
    taps = [step * d for step, d in zip(steps[2:], dilation, strict=True)]
    moves = [step * s for step, s in zip(steps[2:], stride, strict=True)]
    channels = x.shape[1]
    windows = F._as_strided(x, (x.shape[0], channels, *kernel, *out), (*steps[:2], *taps, *moves))
    columns = F.reshape(windows, (x.shape[0], groups, channels // groups * math.prod(kernel), math.prod(out)))
    rows = F.reshape(weight, (groups, weight.shape[0] // groups, channels // groups * math.prod(kernel)))
    return F.reshape(F.matmul(rows, columns), (x.shape[0], weight.shape[0], *out))


def _flip_kernel(F, weight, groups):
    """The kernel of the transposed convolution as that of a plain one: turned over in space, with the channels' roles
    exchanged within each group.
    """
    spatial = weight.ndim - 2
    kernel = weight.shape[2:]
    weight = F.flip(weight, tuple(range(2, 2 + spatial)))
    weight = F.reshape(weight, (groups, weight.shape[0] // groups, weight.shape[1], *kernel))
    weight = F.transpose(weight, 1, 2)
    return F.reshape(weight, (weight.shape[0] * weight.shape[1], weight.shape[2], *kernel))


def _convolution(F, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    spatial = input.ndim - 2
    stride, padding, dilation, extra = (tuple_of(v, spatial) for v in (stride, padding, dilation, output_padding))
    if transposed:
        reach = [d * (k - 1) - p for d, k, p in zip(dilation, weight.shape[2:], padding, strict=True)]
        x = _pad_with_zeros(
            F, _dilate_with_zeros(F, input, stride), reach, [r + e for r, e in zip(reach, extra, strict=True)]
        )
        out = _correlate_padded(F, x, _flip_kernel(F, weight, groups), (1,) * spatial, dilation, groups)
    else:
        out = _correlate_padded(F, _pad_with_zeros(F, input, padding, padding), weight, stride, dilation, groups)
    return out if bias is None else F.add(out, F.reshape(bias, (1, bias.shape[0]) + (1,) * spatial))


def _input_gradient(F, g, shape, weight, stride, padding, dilation, transposed, groups):
    spatial = len(shape) - 2
    none = (0,) * spatial
    weight = F.conj(weight)
    if transposed:
        out = F.convolution(g, weight, None, stride, padding, dilation, False, none, groups)
        for i, n in enumerate(shape[2:]):
            if out.shape[2 + i] != n:
                out = F.narrow(out, 2 + i, 0, n)
        return out
    extra = tuple(
        n - ((o - 1) * s - 2 * p + d * (k - 1) + 1)
        for n, o, k, s, p, d in zip(shape[2:], g.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    )
    return F.convolution(g, weight, None, stride, padding, dilation, True, extra, groups)


def _weight_gradient(F, g, x, kernel, stride, padding, dilation, groups):
    """The correlation of x with g: channels as the batch, the batch as the channels, stride and dilation exchanged."""
    batch, size, places = x.shape[0], x.shape[2:], g.shape[2:]
    per_group, filters = x.shape[1] // groups, g.shape[1]
    if groups == 1:
        x = F.transpose(x, 0, 1)
    else:
        x = F.reshape(x, (batch, groups, per_group, *size))
        x = F.permute(x, (2, 1, 0, *range(3, 3 + len(size))))
        x = F.reshape(x, (per_group, groups * batch, *size))
    g = F.transpose(g, 0, 1)
    out = F.convolution(x, g, None, dilation, padding, stride, False, (0,) * len(size), groups)
    for i, k in enumerate(kernel):
        if out.shape[2 + i] != k:
            out = F.narrow(out, 2 + i, 0, k)
    assert g.shape == (filters, batch, *places)
    return F.transpose(out, 0, 1)


def _conv_backward(F, grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs):
    spatial = input.ndim - 2
    stride, padding, dilation = (tuple_of(v, spatial) for v in (stride, padding, dilation))
    grad_input = grad_weight = grad_bias = None
    if needs[0]:
        grad_input = _input_gradient(F, grad_output, input.shape, weight, stride, padding, dilation, transposed, groups)
    if needs[1]:
        first, second = (F.conj(input), grad_output) if transposed else (grad_output, F.conj(input))
        grad_weight = _weight_gradient(F, first, second, weight.shape[2:], stride, padding, dilation, groups)
    if needs[2]:
        grad_bias = F.sum(grad_output, (0, *range(2, grad_output.ndim)), False)
    return grad_input, grad_weight, grad_bias


def check_gradient(
    grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs=(True,)
):
    """RuntimeError where a convolution of these tensors has no result of the gradient's shape."""
    ndim = len(grad_output.shape)
    if ndim != len(input.shape):
        raise RuntimeError(
            f"Expected input and grad_output to have the same number of dimensions, but got: {len(input.shape)} and "
            f"{ndim}"
        )
    want, _ = convolution_shape_fn(input, weight, None, stride, padding, dilation, transposed, output_padding, groups)
    if not any(needs):
        return
    plane = ndim == 3  # one dimension is a plane of one row
    for d, (n, m) in enumerate(zip(want, grad_output.shape, strict=True)):
        if n != m:
            where = f"dimension {ndim + plane} and tensor.size[{d + (plane and d > 1)}]"
            raise RuntimeError(f"Expected a tensor of {where} == {n} but got: {where} = {m}")


def _backward_shape_fn(
    grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs
):
    check_gradient(grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs)
    filters = (grad_output.shape[1],)
    shapes = (input.shape, weight.shape, filters)
    return [(shape if wanted else (0,), input.dtype) for shape, wanted in zip(shapes, needs, strict=True)]


def _conv_gradients(F, g, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs):
    return F._convolution_backward(
        g, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs
    )


op(
    "convolution(Tensor input, Tensor weight, Tensor? bias, stride, padding, dilation, transposed, output_padding, "
    "groups)",
    where="torch",
    composite=_convolution,
    shape_fn=convolution_shape_fn,
    vjp={("input", "weight", "bias"): _conv_gradients},
    absent_derivatives=dict.fromkeys(("input", "weight", "bias"), ("input", "weight")),
    doc="""Applies a convolution or a transposed convolution over one to three spatial dimensions.

    Args:
        input: The input, of shape ``(N, C, *)``.
        weight: The kernels, of shape ``(O, C / groups, *)``, or ``(C, O / groups, *)`` if `transposed`.
        bias: The offsets, of shape ``(O,)``, or ``None``.
        stride: The strides, one a dimension.
        padding: The borders of zeros, one a dimension.
        dilation: The distances of the elements of the kernel, one a dimension.
        transposed: Whether the convolution is transposed.
        output_padding: The elements that a transposed convolution adds at one side, one a dimension.
        groups: The number of groups of channels that do not mix.

    Returns:
        A tensor of shape ``(N, O, *)``.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.

    Example:
        >>> x, w = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
        >>> torch.convolution(x, w, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1)
        tensor([[[[4., 4.],
                  [4., 4.]]]])

    See also:
        `torch.nn.functional.conv2d`.
    """,
    layout=memory_layout.convolution,
)

op(
    "_convolution_backward(Tensor grad_output, Tensor input, Tensor weight, stride, padding, dilation, transposed, "
    "output_padding, groups, needs)",
    where="",
    composite=_conv_backward,
    shape_fn=_backward_shape_fn,
    doc="The gradients of `convolution` for input, weight and bias, None where `needs` has False.",
    check=check_gradient,
)


# -- public functions ------------------------------------------------------------------------------


def _add_batch_dim(F, input, spatial, name):
    """The input with a batch dimension, and whether it had none."""
    if input.ndim == spatial + 2:
        return input, False
    if input.ndim == spatial + 1:
        return F.unsqueeze(input, 0), True
    raise RuntimeError(
        f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {name}, but got input of size: "
        f"{_list(input.shape)}"
    )


def _compute_same_padding(F, input, weight, stride, dilation):
    """Padding that keeps the size. An odd remainder is padded separately, at the end."""
    if max(stride) > 1:
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for k, d in zip(weight.shape[2:], dilation, strict=True)]
    if any(t % 2 for t in total):
        input = _pad_with_zeros(F, input, [0] * len(total), [t % 2 for t in total])
    return input, tuple(t // 2 for t in total)


def _conv(F, spatial, input, weight, bias, stride, padding, dilation, groups):
    if input.ndim != spatial + 2:
        input, single = _add_batch_dim(F, input, spatial, f"conv{spatial}d")
    else:
        single = False
    stride, dilation = tuple_of(stride, spatial), tuple_of(dilation, spatial)
    refuse_floats(groups)
    if not isinstance(padding, str):
        padding = tuple_of(padding, spatial)
    elif padding == "valid":
        padding = (0,) * spatial
    elif padding == "same":
        if weight.ndim < 3:
            raise RuntimeError("weight should have at least three dimensions")
        _check_ranks(input, weight, "")
        input, padding = _compute_same_padding(F, input, weight, stride, dilation)
    else:
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    out = F.convolution(input, weight, bias, stride, padding, dilation, False, (0,) * spatial, groups)
    return F.squeeze(out, 0) if single else out


def _conv_transpose(F, spatial, input, weight, bias, stride, padding, output_padding, groups, dilation):
    input, single = _add_batch_dim(F, input, spatial, f"conv_transpose{spatial}d")
    stride, padding, dilation, extra = (tuple_of(v, spatial) for v in (stride, padding, dilation, output_padding))
    refuse_floats(groups)
    if any(extra) and len(extra) == len(stride) == len(dilation) and min(stride) > 0:
        _check_output_padding(stride, dilation, extra)
    out = F.convolution(input, weight, bias, stride, padding, dilation, True, extra, groups)
    return F.squeeze(out, 0) if single else out


_CONV_DOC = r"""Applies a convolution over {n} spatial dimension(s), as networks define it: a cross-correlation.

The kernel is not flipped. An output size is ``(size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1``.

Args:
    input: The input, of shape ``(N, C, {size})`` or ``(C, {size})``.
    weight: The kernels, of shape ``(O, C / groups, {kernel})``.
    bias: The offsets, of shape ``(O,)``. Default: none.
    stride: The distance of the positions of the kernel, a number or one a dimension. Default: 1.
    padding: The border of zeros on both sides, ``"valid"`` (none), or ``"same"`` (the output has the input's size; it
        needs stride 1). Default: 0.
    dilation: The distance of the elements of the kernel. Default: 1.
    groups: The number of groups of channels that do not mix; it divides ``C`` and ``O``. Default: 1.

Returns:
    A tensor of shape ``(N, O, {out})`` or ``(O, {out})``.

Raises:
    RuntimeError: Shapes or dtypes do not fit.

Example:
    >>> F.conv{n}d(torch.ones(1, 1{ones}), torch.ones(2, 1{twos})).shape
    torch.Size([1, 2{expected}])

See also:
    `torch.nn.Conv{n}d`."""
_TRANSPOSE_DOC = r"""Applies a transposed convolution over {n} spatial dimension(s).

It is the gradient of `conv{n}d` with respect to its input. An output size is
``(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.

Args:
    input: The input, of shape ``(N, C, {size})`` or ``(C, {size})``.
    weight: The kernels, of shape ``(C, O / groups, {kernel})``.
    bias: The offsets, of shape ``(O,)``. Default: none.
    stride: The stride of the convolution, a number or one a dimension. Default: 1.
    padding: The border that is removed on both sides. Default: 0.
    output_padding: The elements that are added at one side. Default: 0.
    groups: The number of groups of channels that do not mix; it divides ``C`` and ``O``. Default: 1.
    dilation: The distance of the elements of the kernel. Default: 1.

Returns:
    A tensor of shape ``(N, O, {out})`` or ``(O, {out})``.

Raises:
    RuntimeError: Shapes or dtypes do not fit, or an output padding is below neither the stride nor the dilation.

Example:
    >>> F.conv_transpose{n}d(torch.ones(1, 2{ones}), torch.ones(2, 1{twos})).shape
    torch.Size([1, 1{expected}])

See also:
    `torch.nn.ConvTranspose{n}d`."""


def _document_conv(text, n, grows):
    letters = {1: "L", 2: "H, W", 3: "D, H, W"}[n]
    return text.format(
        n=n,
        size=letters,
        kernel=", ".join("k" + c for c in letters.split(", ")),
        out=", ".join(c + "_out" for c in letters.split(", ")),
        ones=", 4" * n,
        twos=", 2" * n,
        expected=(", 5" if grows else ", 3") * n,
    )


def _declare_conv(n):
    def conv(F, input, weight, bias, stride, padding, dilation, groups):
        return _conv(F, n, input, weight, bias, stride, padding, dilation, groups)

    def conv_transpose(F, input, weight, bias, stride, padding, output_padding, groups, dilation):
        return _conv_transpose(F, n, input, weight, bias, stride, padding, output_padding, groups, dilation)

    composite(
        f"conv{n}d(Tensor input, Tensor weight, Tensor? bias=None, stride=1, padding=0, dilation=1, groups=1)",
        where="torch nn.functional",
        doc=_document_conv(_CONV_DOC, n, False),
    )(conv)
    composite(
        f"conv_transpose{n}d(Tensor input, Tensor weight, Tensor? bias=None, stride=1, padding=0, output_padding=0, "
        "groups=1, dilation=1)",
        where="torch nn.functional",
        doc=_document_conv(_TRANSPOSE_DOC, n, True),
    )(conv_transpose)


for _n in (1, 2, 3):
    _declare_conv(_n)


@composite(
    "conv_tbc(Tensor input, Tensor weight, Tensor bias, pad=0)",
    where="torch nn.functional",
    node_name="ConvTbcBackward0(input, weight, bias)",
)
def conv_tbc(F, input, weight, bias, pad):
    """Applies a one-dimensional convolution to an input with the time first.

    Args:
        input: The input, of shape ``(time, batch, C)``.
        weight: The kernels, of shape ``(kernel, C, O)``.
        bias: The offsets, of shape ``(O,)``.
        pad: The border of zeros on both sides. Default: 0.

    Returns:
        A tensor of shape ``(time + 2 * pad - kernel + 1, batch, O)``.

    Example:
        >>> F.conv_tbc(torch.ones(4, 1, 1), torch.ones(2, 1, 3), torch.zeros(3)).shape
        torch.Size([3, 1, 3])

    See also:
        `torch.nn.functional.conv1d`.
    """
    if input.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.ndim != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    refuse_floats(pad)
    out = F.convolution(
        F.permute(input, (1, 2, 0)), F.permute(weight, (2, 1, 0)), bias, (1,), (pad,), (1,), False, (0,), 1
    )
    return F.permute(out, (2, 0, 1))
