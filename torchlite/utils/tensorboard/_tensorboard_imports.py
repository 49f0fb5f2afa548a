"""Import of the package that writes TensorBoard's files."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from torchlite import Tensor

MISSING_PACKAGE = (
    "SummaryWriter writes through the package tensorboard or tensorboardX, and neither is installed: "
    "pip install 'torchlite-nd[tensorboard]'"
)


# tensorboardX has these in one folder, tensorboard with the plugins.
_PLUGINS = {
    "api_pb2": "hparams.api_pb2",
    "layout_pb2": "custom_scalar.layout_pb2",
    "plugin_hparams_pb2": "hparams.plugin_data_pb2",
    "plugin_mesh_pb2": "mesh.plugin_data_pb2",
    "plugin_pr_curve_pb2": "pr_curve.plugin_data_pb2",
    "plugin_text_pb2": "text.plugin_data_pb2",
}


def import_proto(name: str) -> Any:
    """Return a module of protocol buffers. ImportError naming the extra if no package has it."""
    home = f"tensorboard.plugins.{_PLUGINS[name]}" if name in _PLUGINS else f"tensorboard.compat.proto.{name}"
    for place in (home, f"tensorboardX.proto.{name}"):
        try:
            return importlib.import_module(place)
        except ImportError:
            continue
    raise ImportError(MISSING_PACKAGE)


def make_event_writer(folder: str, queue: int, seconds: int, suffix: str) -> Any:
    """Return a writer that appends events to a file."""
    try:
        found = importlib.import_module("tensorboard.summary.writer.event_file_writer")
    except ImportError:
        try:
            found = importlib.import_module("tensorboardX.event_file_writer")
        except ImportError as error:
            raise ImportError(MISSING_PACKAGE) from error
    return found.EventFileWriter(folder, queue, seconds, suffix)


def as_array(value: Any) -> np.ndarray:
    """A tensor, an array, a list or a number as an array."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().float() if value.dtype.itemsize == 2 else value.detach().cpu()
        return value.numpy()
    return np.asarray(value)
