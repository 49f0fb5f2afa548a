"""The errors of what TorchScript does not have, by PyTorch's names."""

from ._source_writer import FrontendError, NotSupportedError, UnsupportedNodeError

__all__ = ["FrontendError", "NotSupportedError", "UnsupportedNodeError"]
