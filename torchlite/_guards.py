"""PyTorch's names for the mode of fake tensors during a trace. torchlite has no FakeTensorMode, so none is active."""

from __future__ import annotations

from typing import Any

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> Any:
    """None: FakeTensorMode is not implemented. Traces compute on real tensors, or on the device "meta"."""
    return None


def detect_fake_mode(inputs: Any = None) -> Any:
    """None, as `active_fake_mode`. `inputs` has no effect."""
    return None
