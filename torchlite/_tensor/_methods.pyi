# Made by tools/make_stubs.py from the op records: do not edit.
from typing import Any

from torchlite import Tensor

class TensorMethods(Tensor):
    dtype: Any
