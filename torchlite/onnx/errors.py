"""What reading and writing ONNX raises, by PyTorch's names."""

from __future__ import annotations

from typing import Any

__all__ = ["CheckerError", "OnnxExporterError", "OnnxExporterWarning", "OnnxFileError", "SymbolicValueError",
           "UnsupportedOperatorError"]  # fmt: skip


class OnnxExporterWarning(UserWarning):
    """What an export warns of."""


class OnnxExporterError(RuntimeError):
    """What an export raises."""


class WrittenViewError(OnnxExporterError):
    """A write to a tensor that others are views of, for which ONNX has no words."""


class UnsupportedOperatorError(OnnxExporterError):
    """An op that ONNX, or an opset of it, has no words for."""

    def __init__(self, name: str, version: int, supported_version: int | None = None) -> None:
        since = "" if supported_version is None else f"; opset {supported_version} has it"
        super().__init__(f"Exporting the operator '{name}' to ONNX opset version {version} is not supported{since}")


class SymbolicValueError(OnnxExporterError):
    """A value that an op's symbolic function cannot do with."""

    def __init__(self, msg: str, value: Any = None) -> None:
        super().__init__(f"{msg}  [Caused by the value '{value}']")


class CheckerError(OnnxExporterError):
    """A model that is not as ONNX has it."""


class OnnxFileError(RuntimeError):
    """A file that is no ONNX model, or asks for what torchlite cannot do. The text names the part, and is short."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text if len(text) <= 2000 else f"{text[:2000]} ...")
