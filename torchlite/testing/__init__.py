"""Comparison of tensors in tests, and creation of random ones."""

import unittest.mock  # as with PyTorch, test files have `unittest.mock` without an import of their own

from . import _comparison as _comparison
from . import _creation as _creation
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor
from ._file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
