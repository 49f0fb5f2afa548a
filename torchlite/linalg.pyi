"""Linear algebra: the names of `torch.linalg`."""

from . import matrix_transpose as matrix_transpose
from . import outer as outer
from . import tensordot as tensordot
from . import trace as trace
from ._ops._linalg_common import LinAlgError as LinAlgError
from ._stubs.linalg import *
