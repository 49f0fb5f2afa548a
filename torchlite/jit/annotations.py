"""Type annotations for TorchScript under PyTorch's module name."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from .._types.layouts import Size as Size
from ..futures import Future
from ._function_modifiers import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
)

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4", "BroadcastingList5",
    "BroadcastingList6", "Dict", "Future", "List", "Optional", "Tuple", "Union",
]  # fmt: skip
