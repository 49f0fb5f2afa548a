"""`torch.onnx.utils`: older names of the exporter."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from . import is_in_onnx_export as is_in_onnx_export
from . import register_custom_op_symbolic as register_custom_op_symbolic
from . import unregister_custom_op_symbolic as unregister_custom_op_symbolic
from ._enums import TrainingMode
from ._export_api import export as export

__all__ = ["export", "is_in_onnx_export", "register_custom_op_symbolic", "select_model_mode_for_export",
           "unregister_custom_op_symbolic"]  # fmt: skip


@contextlib.contextmanager
def select_model_mode_for_export(model: Any, mode: TrainingMode) -> Iterator[None]:
    """Context manager that sets a module's mode for an export.

    Args:
        model: A module.
        mode: ``TrainingMode.EVAL``, ``TrainingMode.TRAINING``, or ``TrainingMode.PRESERVE``, which leaves it.

    Example:
        >>> net = torch.nn.Dropout()
        >>> with torch.onnx.utils.select_model_mode_for_export(net, torch.onnx.TrainingMode.EVAL):
        ...     net.training
        False
        >>> net.training
        True
    """
    before = [(module, module.training) for module in model.modules()]
    if mode is not TrainingMode.PRESERVE:
        model.train(mode is TrainingMode.TRAINING)
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


__dir__ = make_module_dir(globals())
