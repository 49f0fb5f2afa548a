"""TorchScript's frontend errors under PyTorch's module name."""

from ._source_writer import FrontendError, NotSupportedError, UnsupportedNodeError

__all__ = ["FrontendError", "NotSupportedError", "UnsupportedNodeError"]
