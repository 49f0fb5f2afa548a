"""ONNX: `load` reads a file as a module; nothing is exported yet: what would export says so."""

from __future__ import annotations

import enum
from typing import Any

from . import errors as errors
from . import symbolic_helper as symbolic_helper
from . import symbolic_opset11 as symbolic_opset11
from .errors import OnnxExporterError

__all__ = ["OnnxExporterError", "export", "is_in_onnx_export", "load", "register_custom_op_symbolic",
           "unregister_custom_op_symbolic"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "load":
        from ._loading import load

        globals()["load"] = load
        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class TrainingMode(enum.Enum):
    """In which mode a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """As which ops a model is exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


_symbolics: dict[tuple[str, int], Any] = {}


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def export(*args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: torchlite does not export yet."""
    raise NotImplementedError("torch.onnx.export: torchlite does not export models to ONNX yet")


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Keep how an op is to be exported. ValueError for a name that is not `library::op`."""
    library, _, name = symbolic_name.partition("::")
    if not library or not name:
        raise ValueError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name"
        )
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget what `register_custom_op_symbolic` kept."""
    _symbolics.pop((symbolic_name, opset_version), None)
