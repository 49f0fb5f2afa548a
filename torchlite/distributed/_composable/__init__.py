"""Composable module transforms for distributed training: replicate, fully_shard, checkpoint, in place."""

from .checkpoint_activation import checkpoint
from .contract import _get_registry as _get_registry
from .contract import contract
from .replicate import replicate

__all__ = ["checkpoint", "contract", "replicate"]
