"""PyTorch's names for the nodes of the graph."""

from __future__ import annotations

# Where a record is called otherwise than PyTorch's derivative.
_NAMES: dict[str, str] = {"_copy_slices": "CopySlices", "_elements": "AsStridedBackward0"}


def node_name(node) -> str:
    """PyTorch's name for a node, e.g. MulBackward0."""
    name = node._op.name
    return _NAMES.get(name) or "".join(word[:1].upper() + word[1:] for word in name.split("_")) + "Backward0"
