"""Sliding blocks, pixel and channel shuffles: `unfold` and `fold` of nn.functional, `pixel_shuffle` and similar ops."""

import math

from torchlite._dispatch import composite, memory_layout, op
from torchlite._types.dtypes import INT

from ._gradient_helpers import copy_if_aliased
from .conv import tuple_of, window_count

# -- sliding blocks --------------------------------------------------------------------------------


def _blocks_composite(F, input, kernel_size, dilation, padding, stride):
    pad = tuple(n for p in reversed(padding) for n in (p, p))
    x = F.constant_pad_nd(input, pad, 0)
    out = window_count(x.shape[2:], kernel_size, stride, (0,) * len(kernel_size), dilation)
    pieces = []
    for place in _kernel_positions(kernel_size):
        piece = x
        for i, (j, d, o, s) in enumerate(zip(place, dilation, out, stride, strict=True)):
            piece = F._slice(piece, 2 + i, j * d, j * d + (o - 1) * s + 1, s)
        pieces.append(piece)
    blocks = F.stack(pieces, 2)
    return F.reshape(blocks, (input.shape[0], input.shape[1] * len(pieces), math.prod(out)))


def _kernel_positions(kernel):
    places = [()]
    for k in kernel:
        places = [(*place, j) for place in places for j in range(k)]
    return places


def _sum_blocks_composite(F, input, output_size, kernel_size, dilation, padding, stride):
    """Each block's element added at its place: one scatter_add over the padded image's flat places."""
    out = window_count(output_size, kernel_size, stride, padding, dilation)
    wide = tuple(n + 2 * p for n, p in zip(output_size, padding, strict=True))
    places = None
    for i, (k, d, s, o) in enumerate(zip(kernel_size, dilation, stride, out, strict=True)):
        taps = F.reshape(
            F.mul(_index_range(F, input, k), d), (*(k if j == i else 1 for j in range(len(out))), *(1,) * len(out))
        )
        moves = F.reshape(
            F.mul(_index_range(F, input, o), s), (*(1,) * len(out), *(o if j == i else 1 for j in range(len(out))))
        )
        along = F.mul(F.add(taps, moves), math.prod(wide[i + 1 :]))
        places = along if places is None else F.add(places, along)
    channels = input.shape[1] // math.prod(kernel_size)
    flat = (input.shape[0], channels, math.prod(kernel_size) * math.prod(out))
    index = F.expand(F.reshape(places, (1, 1, flat[2])), flat)
    image = F.scatter_add(F._new_zeros(input, (*flat[:2], math.prod(wide))), 2, index, F.reshape(input, flat))
    image = F.reshape(image, (*flat[:2], *wide))
    return F.constant_pad_nd(image, tuple(-n for p in reversed(padding) for n in (p, p)), 0)


def _index_range(F, like, n):
    from torchlite._types.dtypes import BY_NAME

    return F._new_arange(like, 0, n, 1, BY_NAME["int64"])


def _blocks_shape_fn(input, kernel_size, dilation, padding, stride):
    size = tuple(input.shape[2:])
    out = window_count(size, kernel_size, stride, padding, dilation)
    if min(out) < 1:
        shown = [tuple(v) for v in (size, kernel_size, dilation, padding, out)]
        raise RuntimeError(
            "Given input with spatial size ({}), kernel_size=({}), dilation=({}), padding=({}), calculated shape of "
            "the array of sliding blocks as ({}), but its components must be at least one.".format(
                *(", ".join(str(n) for n in v) for v in shown)
            )
        )
    return (input.shape[0], input.shape[1] * math.prod(kernel_size), math.prod(out)), input.dtype


op(
    "_im2col(Tensor input, kernel_size, dilation, padding, stride)",
    where="",
    composite=_blocks_composite,
    shape_fn=_blocks_shape_fn,
    vjp={
        "input": lambda F, g, input_shape, kernel_size, dilation, padding, stride: F._col2im(
            g, tuple(input_shape[2:]), kernel_size, dilation, padding, stride
        )
    },
    doc="The sliding blocks of a batched input as columns.",
    refuses={("input", INT): "im2col_out_cpu"},
    node_name="Im2ColBackward0",
)
op(
    "_col2im(Tensor input, output_size, kernel_size, dilation, padding, stride)",
    where="",
    composite=_sum_blocks_composite,
    shape_fn=lambda input, output_size, kernel_size: (
        (input.shape[0], input.shape[1] // math.prod(kernel_size), *output_size),
        input.dtype,
    ),
    vjp={
        "input": lambda F, g, kernel_size, dilation, padding, stride: F._im2col(
            g, kernel_size, dilation, padding, stride
        )
    },
    doc="Columns of sliding blocks added up at their places: the transpose of `_im2col`.",
    refuses={("input", INT): "col2im_out_cpu"},
)


def _check_window_pairs(kernel_size, dilation, padding, stride):
    found = [tuple_of(v, 2) for v in (kernel_size, dilation, padding, stride)]
    for name, pair in zip(("kernel size", "dilation"), found, strict=False):
        if min(pair) <= 0:
            label = name.partition(" ")[0]
            raise RuntimeError(
                f"{name} should be greater than zero, but got {label}_height: {pair[0]} {label}_width: {pair[1]}"
            )
    if min(found[2]) < 0:
        raise RuntimeError(
            f"padding should be non-negative, but got pad_height: {found[2][0]} pad_width: {found[2][1]}"
        )
    if min(found[3]) <= 0:
        raise RuntimeError(
            f"stride should be greater than zero, but got stride_height: {found[3][0]} stride_width: {found[3][1]}"
        )
    return found


@composite(
    "im2col(Tensor input, kernel_size, dilation=1, padding=0, stride=1)",
    where="",
    alias="nn.functional.unfold",
    node_name="Im2ColBackward0(input)",
)
def im2col(F, input, kernel_size, dilation, padding, stride):
    """Copies the sliding blocks of images into columns.

    Args:
        input: The images, of shape ``(N, C, H, W)`` or ``(C, H, W)``.
        kernel_size: The size of a block, a number or two.
        dilation: The distance of the elements of a block. Default: 1.
        padding: The border of zeros on both sides. Default: 0.
        stride: The distance of blocks. Default: 1.

    Returns:
        A tensor of shape ``(N, C * elements of a block, blocks)``.

    Raises:
        RuntimeError: No block fits.

    Example:
        >>> F.unfold(torch.ones(1, 1, 3, 3), 2).shape
        torch.Size([1, 4, 4])

    See also:
        `torch.nn.Unfold`, `torch.Tensor.unfold`.
    """
    kernel, dilation, padding, stride = _check_window_pairs(kernel_size, dilation, padding, stride)
    if input.ndim < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(input.ndim, 1)}, {max(input.ndim, 1) - 1}], "
            f"but got {input.ndim})"
        )
    if input.ndim > 4 or 0 in tuple(input.shape[input.ndim - 3 :]):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    if input.ndim == 3:
        return F.squeeze(F._im2col(F.unsqueeze(input, 0), kernel, dilation, padding, stride), 0)
    return F._im2col(input, kernel, dilation, padding, stride)


def _str_pair(pair):
    return f"({pair[0]}, {pair[1]})"


@composite(
    "col2im(Tensor input, output_size, kernel_size, dilation=1, padding=0, stride=1)",
    where="",
    alias="nn.functional.fold",
    node_name="Col2ImBackward0(input)",
)
def col2im(F, input, output_size, kernel_size, dilation, padding, stride):
    """Adds columns of sliding blocks up into images.

    Args:
        input: The columns, of shape ``(N, C * elements of a block, blocks)``.
        output_size: The height and the width of the images.
        kernel_size: The size of a block, a number or two.
        dilation: The distance of the elements of a block. Default: 1.
        padding: The border of zeros on both sides. Default: 0.
        stride: The distance of blocks. Default: 1.

    Returns:
        A tensor of shape ``(N, C, *output_size)``.

    Raises:
        RuntimeError: The number of columns is not that of `output_size`.

    Example:
        >>> F.fold(torch.ones(1, 4, 4), 3, 2)
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])

    See also:
        `torch.nn.Fold`.
    """
    kernel, dilation, padding, stride = _check_window_pairs(kernel_size, dilation, padding, stride)
    size = tuple_of(output_size, 2)
    if input.ndim not in (2, 3) or 0 in tuple(input.shape[input.ndim - 2 :]):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    if input.shape[-2] % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={input.shape[-2]} and kernel_size={_str_pair(kernel)}."
        )
    out = window_count(size, kernel, stride, padding, dilation)
    given = (
        f"Given output_size={_str_pair(size)}, kernel_size={_str_pair(kernel)}, dilation={_str_pair(dilation)}, "
        f"padding={_str_pair(padding)}, stride={_str_pair(stride)}, "
    )
    if min(out) < 1:
        raise RuntimeError(
            given
            + f"calculated shape of the array of sliding blocks as {_str_pair(out)}, which is too small (non-positive)"
        )
    if math.prod(out) != input.shape[-1]:
        raise RuntimeError(
            given + f"expected size of input's dimension 2 to match the calculated number of sliding blocks {out[0]} * "
            f"{out[1]} = {math.prod(out)}, but got input.size(2)={input.shape[-1]}."
        )
    if input.ndim == 2:
        return F.squeeze(F._col2im(F.unsqueeze(input, 0), size, kernel, dilation, padding, stride), 0)
    return F._col2im(input, size, kernel, dilation, padding, stride)


# -- shuffles --------------------------------------------------------------------------------------


@composite(
    "pixel_shuffle(Tensor input, upscale_factor)",
    where="torch nn.functional",
    layout=memory_layout.suggest_memory_format,
    node_name="PixelShuffleBackward0(input)",
)
def pixel_shuffle(F, input, upscale_factor):
    """Moves channels into space (Shi et al., 2016).

    The shape ``(*, C * r * r, H, W)`` becomes ``(*, C, H * r, W * r)``.

    Args:
        upscale_factor: The factor ``r``.

    Raises:
        RuntimeError: ``r * r`` does not divide the number of channels.

    Example:
        >>> F.pixel_shuffle(torch.ones(1, 8, 2, 3), 2).shape
        torch.Size([1, 2, 4, 6])

    See also:
        `torch.nn.PixelShuffle`.
    """
    r, n = upscale_factor, input.ndim
    if n < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {n} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    x = F.reshape(input, (*lead, channels // (r * r), r, r, height, width))
    first = n - 3
    x = F.permute(x, (*range(first), first, first + 3, first + 1, first + 4, first + 2))
    return copy_if_aliased(F, F.reshape(F.contiguous(x), (*lead, channels // (r * r), height * r, width * r)), input)


@composite(
    "pixel_unshuffle(Tensor input, downscale_factor)",
    where="torch nn.functional",
    layout=memory_layout.suggest_memory_format,
    node_name="PixelUnshuffleBackward0(input)",
)
def pixel_unshuffle(F, input, downscale_factor):
    """Moves space into channels; the inverse of `pixel_shuffle`.

    The shape ``(*, C, H * r, W * r)`` becomes ``(*, C * r * r, H, W)``.

    Args:
        downscale_factor: The factor ``r``.

    Raises:
        RuntimeError: ``r`` does not divide the height and the width.

    Example:
        >>> F.pixel_unshuffle(torch.ones(1, 2, 4, 6), 2).shape
        torch.Size([1, 8, 2, 3])

    See also:
        `torch.nn.PixelUnshuffle`.
    """
    r, n = downscale_factor, input.ndim
    if n < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {n} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, channels, height, width = input.shape
    for name, dim, length in (("height", -2, height), ("width", -1, width)):
        if length % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={length} "
                f"is not divisible by {r}"
            )
    x = F.reshape(input, (*lead, channels, height // r, r, width // r, r))
    first = n - 3
    x = F.permute(x, (*range(first), first, first + 2, first + 4, first + 1, first + 3))
    return copy_if_aliased(F, F.reshape(F.contiguous(x), (*lead, channels * r * r, height // r, width // r)), input)


@composite(
    "channel_shuffle(Tensor input, groups)",
    where="torch nn.functional",
    alias="native_channel_shuffle",
    layout=memory_layout.suggest_memory_format,
    node_name="ChannelShuffleBackward0(input)",
)
def channel_shuffle(F, input, groups):
    """Interleaves groups of channels (Zhang et al., 2018).

    Args:
        input: The input, of shape ``(N, C, *)``.
        groups: The number of groups; it divides ``C``.

    Example:
        >>> F.channel_shuffle(torch.arange(4.0).reshape(1, 4, 1), 2).flatten()
        tensor([0., 2., 1., 3.])

    See also:
        `torch.nn.ChannelShuffle`.
    """
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    channels = input.shape[1]
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    x = F.reshape(input, (input.shape[0], groups, channels // groups, *input.shape[2:]))
    return copy_if_aliased(F, F.reshape(F.contiguous(F.transpose(x, 1, 2)), tuple(input.shape)), input)
