"""Exceptions and warnings of `torch.onnx`."""

from __future__ import annotations

from typing import Any

from torchlite._settings.module_dir import make_module_dir

__all__ = ["CheckerError", "OnnxExporterError", "OnnxExporterWarning", "OnnxFileError", "SymbolicValueError",
           "UnsupportedOperatorError"]  # fmt: skip


class OnnxExporterWarning(UserWarning):
    """Warning category of the exporter.

    Example:
        >>> issubclass(torch.onnx.errors.OnnxExporterWarning, UserWarning)
        True
    """


class OnnxExporterError(RuntimeError):
    """Raised where a model cannot be exported.

    Example:
        >>> issubclass(torch.onnx.OnnxExporterError, RuntimeError)
        True
    """

    _target: Any = None  # the op that the writer refuses


class WrittenViewError(OnnxExporterError):
    """A write to a tensor with views, which ONNX cannot express."""


class UnsupportedOperatorError(OnnxExporterError):
    """Raised for an op that ONNX, or the version of its ops, cannot express.

    Args:
        name: Name of the op.
        version: Version of ONNX's ops.
        supported_version: First version that has it. Default: none.

    Example:
        >>> raise torch.onnx.errors.UnsupportedOperatorError("aten::foo", 11, 18)
        Traceback (most recent call last):
        torchlite.onnx.errors.UnsupportedOperatorError: Exporting the operator 'aten::foo' to ONNX opset ...
    """

    def __init__(self, name: str, version: int, supported_version: int | None = None) -> None:
        since = "" if supported_version is None else f"; opset {supported_version} has it"
        super().__init__(f"Exporting the operator '{name}' to ONNX opset version {version} is not supported{since}")


class SymbolicValueError(OnnxExporterError):
    """Raised where a symbolic function does not support a value.

    Args:
        msg: The message.
        value: The value. Default: ``None``.

    Example:
        >>> raise torch.onnx.errors.SymbolicValueError("no number", "text")
        Traceback (most recent call last):
        torchlite.onnx.errors.SymbolicValueError: no number  [Caused by the value 'text']
    """

    def __init__(self, msg: str, value: Any = None) -> None:
        super().__init__(f"{msg}  [Caused by the value '{value}']")


class CheckerError(OnnxExporterError):
    """Raised where a model violates ONNX's specification.

    Example:
        >>> issubclass(torch.onnx.errors.CheckerError, torch.onnx.OnnxExporterError)
        True
    """


class OnnxFileError(RuntimeError):
    """Raised where a file is no ONNX model, or needs features that torchlite lacks.

    The message names the part of the file.

    Args:
        text: The message; of long ones the first 2,000 characters are kept.

    Example:
        >>> torch.onnx.load(b"junk")
        Traceback (most recent call last):
        torchlite.onnx.errors.OnnxFileError: ...
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(text if len(text) <= 2000 else f"{text[:2000]} ...")


__dir__ = make_module_dir(globals(), hidden="WrittenViewError")
