"""What changes modules in place, each once, for work in several processes."""

from .checkpoint_activation import checkpoint
from .contract import _get_registry as _get_registry
from .contract import contract
from .replicate import replicate

__all__ = ["checkpoint", "contract", "replicate"]
