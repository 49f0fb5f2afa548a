"""Conversion of arrays to images: three channels, last, from 0 to 255."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np


def to_image(array: np.ndarray, order: str) -> np.ndarray:
    """Return (height, width, 3 or 4) from an array with dimensions named by `order`; several images are put in rows of
    eight. AssertionError if the names do not fit.
    """
    order = order.upper()
    if len(set(order)) != len(order):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {order}")
    if array.ndim != len(order):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: {order}"
        )
    if not set("HW") <= set(order) <= set("NHWC"):
        raise AssertionError(f"images have the dimensions H and W, and may have N and C, got {order}")
    if "C" not in order:
        array, order = array[..., None], order + "C"
    if "N" in order:
        array, order = make_grid(array.transpose([order.index(name) for name in "NHWC"])), "HWC"
    array = array.transpose([order.index(name) for name in "HWC"])
    return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array


def make_grid(images: np.ndarray, columns: int = 8) -> np.ndarray:
    """Arrange (n, height, width, channels) in one image, row by row; unused cells are black."""
    count, height, width, channels = images.shape
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    cells = np.zeros((rows * columns, height, width, channels), images.dtype)
    cells[:count] = images
    return (
        cells.reshape(rows, columns, height, width, channels)
        .swapaxes(1, 2)
        .reshape(rows * height, columns * width, channels)
    )


def to_uint8(picture: np.ndarray, rescale: float = 1) -> np.ndarray:
    """Convert floats up to 1 to bytes; bytes are unchanged."""
    scale = 1 if picture.dtype == np.uint8 else 255
    return np.clip(picture.astype(np.float32) * scale * rescale, 0, 255).astype(np.uint8)


def encode_image(picture: Any, form: str = "PNG", **options: Any) -> bytes:
    """A picture of Pillow as a file."""
    buffer = io.BytesIO()
    picture.save(buffer, format=form, **options)
    return buffer.getvalue()


def draw_boxes(picture: np.ndarray, boxes: np.ndarray, labels: Any = None) -> np.ndarray:
    """Draw red boxes (left, top, right, bottom) with labels on an image of bytes."""
    from PIL import Image, ImageDraw

    drawn = Image.fromarray(picture)
    pen = ImageDraw.Draw(drawn)
    for i, box in enumerate(boxes.reshape(-1, 4).tolist()):
        pen.rectangle(box, outline="red", width=2)
        if labels is not None:
            corner = (box[0] + 2, box[1] + 2)
            pen.rectangle(pen.textbbox(corner, str(labels[i])), fill="red")
            pen.text(corner, str(labels[i]), fill="black")
    return np.asarray(drawn)


def encode_gif(frames: np.ndarray, fps: float) -> bytes:
    """(time, height, width, channels) of bytes as a GIF."""
    from PIL import Image

    pictures = [Image.fromarray(frame) for frame in frames]
    return encode_image(
        pictures[0], "GIF", save_all=True, append_images=pictures[1:], duration=round(1000 / fps), loop=0
    )
