"""Type annotations for TorchScript under PyTorch's module name."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from .._jit_internal import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
)
from .._types.layouts import Size as Size
from ..futures import Future

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4", "BroadcastingList5",
    "BroadcastingList6", "Dict", "Future", "List", "Optional", "Tuple", "Union",
]  # fmt: skip
