"""`torch.onnx`: `export` writes ONNX models, `load` reads them as modules."""

from __future__ import annotations

import importlib
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from . import errors as errors
from . import symbolic_helper as symbolic_helper
from . import symbolic_opset9 as symbolic_opset9
from . import symbolic_opset11 as symbolic_opset11
from ._enums import OperatorExportTypes as OperatorExportTypes
from ._enums import TensorProtoDataType as TensorProtoDataType
from ._enums import TrainingMode as TrainingMode
from .errors import OnnxExporterError, OnnxFileError

__all__ = ["ONNXProgram", "OnnxExporterError", "OnnxFileError", "errors", "export", "is_in_onnx_export", "load",
           "register_custom_op_symbolic", "unregister_custom_op_symbolic"]  # fmt: skip

producer_name = "torchlite"
# Lazily loaded names, with their module.
_WHERE = {
    "ONNXProgram": "_onnx_program", "export": "_export_api", "load": "_load", "ops": "",
    "select_model_mode_for_export": "utils", "utils": "",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_WHERE[name] or name}")
    found = globals()[name] = getattr(module, name) if _WHERE[name] else module
    return found


def is_in_onnx_export() -> bool:
    """Returns whether the calling thread exports a model.

    Example:
        >>> torch.onnx.is_in_onnx_export()
        False
    """
    import sys

    module = sys.modules.get(f"{__name__}._export_api")
    return module is not None and bool(module.STATE.depth)


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Registers how an op is exported, from an opset version on.

    Args:
        symbolic_name: Name of the op, ``library::op``.
        symbolic_fn: Function of a graph and the op's arguments. It adds nodes by ``graph.op("domain::Name", ...)`` and
            returns their results.
        opset_version: First version of ONNX's ops for which the function is used.

    Raises:
        ValueError: The name has another form.

    Example:
        >>> def export_relu(graph, x):
        ...     return graph.op("my.domain::Relu", x)
        >>> torch.onnx.register_custom_op_symbolic("aten::relu", export_relu, 18)
        >>> program = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),), custom_opsets={"my.domain": 1})
        >>> program.model.graph.node[0].domain
        'my.domain'
        >>> torch.onnx.unregister_custom_op_symbolic("aten::relu", 18)
    """
    library, _, name = symbolic_name.partition("::")
    if not library or not name:
        raise ValueError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name"
        )
    importlib.import_module(f"{__name__}._custom_symbolics").SYMBOLICS[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Removes a function that `register_custom_op_symbolic` registered.

    Args:
        symbolic_name: Name of the op, ``library::op``.
        opset_version: The version with which it was registered.

    Example:
        >>> torch.onnx.unregister_custom_op_symbolic("aten::relu", 18)
    """
    importlib.import_module(f"{__name__}._custom_symbolics").SYMBOLICS.pop((symbolic_name, opset_version), None)


__dir__ = make_module_dir(globals(), "producer_name")
