"""Files that PyTorch wrote (tools/record_exported.py)."""

from __future__ import annotations

import functools
import io
import pathlib
import tarfile

import numpy as np

import torchlite as torch

PATH = pathlib.Path(__file__).with_name("pytorch_programs.tar.xz")


@functools.cache
def files() -> dict[str, bytes]:
    """The recorded files by their names."""
    with tarfile.open(PATH) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive.getmembers()}


def results(stem: str) -> list[np.ndarray]:
    """Return PyTorch's results."""
    with np.load(io.BytesIO(files()[f"{stem}.npz"])) as held:
        return [held[name] for name in held.files]


def leaves(value) -> list:
    """The tensors of a result."""
    return [value] if not isinstance(value, (tuple, list)) else [leaf for part in value for leaf in leaves(part)]


def check(found, expected, tolerance: float) -> None:
    """Results within a tolerance of the largest element."""
    found = [t.detach().cpu().numpy() for t in leaves(found)]
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        largest = max(1.0, float(np.abs(theirs).max(initial=0)))
        np.testing.assert_allclose(ours.astype("f8"), theirs.astype("f8"), rtol=0, atol=tolerance * largest)


def moved(program, device):
    """A program on a device."""
    return program if str(device) == "cpu" else torch.export.passes.move_to_device_pass(program, str(device))
