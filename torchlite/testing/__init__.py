"""Comparison of tensors in tests, and creation of random ones."""

# Test files have `unittest.mock` with PyTorch, without an import of their own.
from unittest import mock as _mock

from . import _comparison as _comparison
from . import _creation as _creation
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor
from ._file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
