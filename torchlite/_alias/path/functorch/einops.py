"""`rearrange` of named dimensions."""

from torchlite.func import rearrange

__all__ = ["rearrange"]
