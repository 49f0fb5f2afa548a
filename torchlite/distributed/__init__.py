"""Several processes: not yet. As a PyTorch that was built without them, `is_available()` is False, and there is little
else.
"""

from __future__ import annotations

__all__ = ["ProcessGroup", "is_available", "is_initialized", "is_torchelastic_launched"]


class ProcessGroup:
    """A class for annotations: there is no group."""


def is_available() -> bool:
    """Whether processes can work together: not yet."""
    return False


def is_initialized() -> bool:
    """Whether there is a default process group: there is none."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher started this process: `torchrun` needs `torch.distributed`."""
    return False
