"""Rearranging by name."""

from torchlite.func import rearrange

__all__ = ["rearrange"]
