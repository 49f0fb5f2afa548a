"""Schemas and implementations of torchvision's ops. The derivatives here serve versions whose compiled library has
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..op_spec import OpSpec
from . import boxes, deform_conv, roi_pooling

_SIZE = "SymInt pooled_height, SymInt pooled_width"
_IMAGE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_PLACES = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, "
    "SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
    "bool use_mask"
)


def _make_pooling_derivative(backward: Callable, arguments: int, image_at: int) -> dict[str, Any]:
    """Return a pooling op's derivative. arguments: their number. image_at: position of the image shape among the
    backward function's integers.
    """

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[1], *(output[1:] if isinstance(output, tuple) else ()))
        ctx.image, ctx.numbers = tuple(inputs[0].shape), inputs[2:]

    def run_pooling_backward(ctx: Any, grad: Any, *rest: Any) -> tuple:
        numbers = [*ctx.numbers[:image_at], *ctx.image, *ctx.numbers[image_at:]]
        return (backward(grad, *ctx.saved_tensors, *numbers), *(None,) * (arguments - 1))

    return {"backward": run_pooling_backward, "setup_context": setup_context}


def _save_all(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.numbers = inputs[5:]


def _run_deform_conv_backward(ctx: Any, grad: Any) -> tuple:
    found = deform_conv.deform_conv2d_backward(grad, *ctx.saved_tensors, *ctx.numbers)
    return (*found, *(None,) * len(ctx.numbers))


OPS = [
    OpSpec("_cuda_version() -> int", lambda: -1),
    OpSpec("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", boxes.nms),
    OpSpec("box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor", boxes.box_iou_rotated),
    OpSpec(
        f"roi_align(Tensor input, Tensor rois, float spatial_scale, {_SIZE}, int sampling_ratio, bool aligned) -> "
        "Tensor",
        roi_pooling.roi_align,
        **_make_pooling_derivative(roi_pooling.roi_align_backward, 7, 3),
    ),
    OpSpec(
        f"_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, {_SIZE}, {_IMAGE}, int sampling_ratio, "
        "bool aligned) -> Tensor",
        roi_pooling.roi_align_backward,
    ),
    OpSpec(
        f"ps_roi_align(Tensor input, Tensor rois, float spatial_scale, {_SIZE}, int sampling_ratio) -> "
        "(Tensor, Tensor)",
        roi_pooling.ps_roi_align,
        **_make_pooling_derivative(roi_pooling.ps_roi_align_backward, 6, 4),
    ),
    OpSpec(
        f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, {_SIZE}, "
        f"int sampling_ratio, {_IMAGE}) -> Tensor",
        roi_pooling.ps_roi_align_backward,
    ),
    OpSpec(
        f"roi_pool(Tensor input, Tensor rois, float spatial_scale, {_SIZE}) -> (Tensor, Tensor)",
        roi_pooling.roi_pool,
        **_make_pooling_derivative(roi_pooling.roi_pool_backward, 5, 3),
    ),
    OpSpec(
        f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, {_SIZE}, {_IMAGE}) -> "
        "Tensor",
        roi_pooling.roi_pool_backward,
    ),
    OpSpec(
        f"ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, {_SIZE}) -> (Tensor, Tensor)",
        roi_pooling.ps_roi_pool,
        **_make_pooling_derivative(roi_pooling.ps_roi_pool_backward, 5, 3),
    ),
    OpSpec(
        f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, {_SIZE}, "
        f"{_IMAGE}) -> Tensor",
        roi_pooling.ps_roi_pool_backward,
    ),
    OpSpec(f"deform_conv2d({_PLACES}) -> Tensor", deform_conv.deform_conv2d, _run_deform_conv_backward, _save_all),
    OpSpec(
        f"_deform_conv2d_backward(Tensor grad, {_PLACES}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
        deform_conv.deform_conv2d_backward,
    ),
    # Quantized ops: schemas only.
    OpSpec("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
    OpSpec(
        "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, "
        f"int rois_zero_point, float spatial_scale, {_SIZE}, int sampling_ratio, bool aligned) -> Tensor"
    ),
]
