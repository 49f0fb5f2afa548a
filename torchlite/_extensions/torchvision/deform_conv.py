"""Deformable convolution: bilinear sampling at offset positions, then a matrix product."""

from __future__ import annotations

from typing import Any

from ..op_spec import require


def _deform_im2col(input: Any, offset: Any, mask: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Return the sampled pixels (N, C, kernel positions, out, out). offset is (N, groups, positions, 2, out, out), mask
    (N, groups, positions, out, out) or None.
    """
    import torchlite as torch

    batch, channels, height, width = input.shape
    groups, out = offset.shape[1], offset.shape[-2:]
    images = input.reshape(batch, groups, channels // groups, height * width)
    at = []
    for i in (0, 1):
        taps = torch.arange(kernel[i], device=input.device) * dilation[i] - padding[i]
        taps = taps.repeat_interleave(kernel[1]) if i == 0 else taps.repeat(kernel[0])
        moves = torch.arange(out[i], device=input.device) * stride[i]
        moves = moves[:, None] if i == 0 else moves[None, :]
        at.append((taps[:, None, None] + moves).to(input.dtype) + offset[:, :, :, i])
    y, x = at
    seen = (y > -1) & (y < height) & (x > -1) & (x < width)
    low = [p.detach().floor() for p in at]
    part_y, part_x = y - low[0], x - low[1]
    total: Any = 0
    for down in (0, 1):
        for right in (0, 1):
            row, column = low[0] + down, low[1] + right
            valid = seen & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            weight = (part_y if down else 1 - part_y) * (part_x if right else 1 - part_x)
            weight = torch.where(valid, weight, 0)
            place = torch.where(valid, row * width + column, 0).long()
            place = place.reshape(batch, groups, 1, -1).expand(-1, -1, channels // groups, -1)
            total = total + images.gather(3, place) * weight.reshape(batch, groups, 1, -1)
    if mask is not None:
        total = total * mask.reshape(batch, groups, 1, -1)
    return total.reshape(batch, channels, kernel[0] * kernel[1], out[0] * out[1])


def deform_conv2d(
    input: Any, weight: Any, offset: Any, mask: Any, bias: Any, stride_h: int, stride_w: int, pad_h: int, pad_w: int,
    dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Any:  # fmt: skip
    """Return the deformable convolution of (N, C, H, W) with offsets (N, 2 * groups * positions, out, out)."""
    _check_deform_conv_arguments(input, weight, offset, mask, use_mask, groups, offset_groups)
    kernel = tuple(weight.shape[2:])
    batch, out = input.shape[0], tuple(offset.shape[2:])
    places = kernel[0] * kernel[1]
    moved = offset.reshape(batch, offset_groups, places, 2, *out)
    scale = mask.reshape(batch, offset_groups, places, *out) if use_mask else None
    columns = _deform_im2col(
        input, moved, scale, kernel, (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w)
    )
    columns = columns.reshape(batch, groups, -1, out[0] * out[1])
    found = weight.reshape(groups, weight.shape[0] // groups, -1) @ columns
    return found.reshape(batch, weight.shape[0], *out) + bias[:, None, None]


def _check_deform_conv_arguments(
    input: Any, weight: Any, offset: Any, mask: Any, use_mask: bool, groups: int, offset_groups: int
) -> None:
    places = weight.shape[2] * weight.shape[3]
    require(input.ndim == 4 and offset.ndim == 4 and weight.ndim == 4, lambda: "Expected tensors of 4 dimensions")
    require(weight.shape[1] * groups == input.shape[1], lambda: f"Expected {weight.shape[1] * groups} input channels")
    require(
        offset.shape[1] == offset_groups * 2 * places,
        lambda: f"offset.shape[1] is not valid: got: {offset.shape[1]} expected: {offset_groups * 2 * places}",
    )
    require(
        not use_mask or mask.shape[1] == offset_groups * places,
        lambda: f"mask.shape[1] is not valid: got: {mask.shape[1]} expected: {offset_groups * places}",
    )


def deform_conv2d_backward(grad: Any, *values: Any) -> Any:
    """Return the gradients of input, weight, offset, mask and bias."""
    import torchlite as torch

    with torch.enable_grad():
        wanted = [value.detach().requires_grad_() for value in values[:5]]
        found = torch.autograd.grad(deform_conv2d(*wanted, *values[5:]), wanted, grad, allow_unused=True)
    return tuple(torch.zeros_like(w) if g is None else g for g, w in zip(found, wanted, strict=True))
