"""The files of TensorBoard's projector: vectors, labels, sprite images, and their configuration."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ._image_encoding import make_grid, to_uint8


def write_embedding(
    folder: Path, place: str, name: str, vectors: np.ndarray, metadata: Any, header: Any, images: np.ndarray | None
) -> None:
    """Write vectors (n, features) into `folder`/`place` and append them to the projector's configuration.
    AssertionError if the number of labels or images differs.
    """
    if vectors.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    where = folder / place
    where.mkdir(parents=True, exist_ok=True)
    lines = [f'  tensor_name: "{name}"']
    if metadata is not None:
        if len(metadata) != len(vectors):
            raise AssertionError("#labels should equal with #data points")
        rows = ["\t".join(str(part) for part in row) for row in ([header, *metadata] if header else [])]
        rows = rows or [str(row) for row in metadata]
        (where / "metadata.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        lines.append(f'  metadata_path: "{place}/metadata.tsv"')
    if images is not None:
        if len(images) != len(vectors):
            raise AssertionError("#images should equal with #data points")
        _write_sprite(where / "sprite.png", images)
        size = images.shape[3]
        lines += ["  sprite {", f'    image_path: "{place}/sprite.png"', *[f"    single_image_dim: {size}"] * 2, "  }"]
    rows = ["\t".join(map(str, row)) for row in vectors.tolist()]
    (where / "tensors.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    lines.append(f'  tensor_path: "{place}/tensors.tsv"')
    with (folder / "projector_config.pbtxt").open("a", encoding="utf-8") as file:
        file.write("embeddings {\n" + "".join(f"{line}\n" for line in lines) + "}\n")


def _write_sprite(path: Path, images: np.ndarray) -> None:
    """All pictures (n, channels, size, size) in a square."""
    from PIL import Image

    if images.shape[2] != images.shape[3]:
        raise AssertionError("Image should be square, see tensorflow/tensorboard#670")
    side = math.ceil(math.sqrt(len(images)))
    missing = np.zeros((side * side - len(images), *images.shape[1:]), images.dtype)
    square = make_grid(np.concatenate([images, missing]).transpose(0, 2, 3, 1), side)
    Image.fromarray(to_uint8(square).squeeze()).save(path)
