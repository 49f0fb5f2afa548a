"""`maybe_set_is_frozen_param`, which packages call for the constants that they compute."""

from __future__ import annotations

from typing import Any


def maybe_set_is_frozen_param(t: Any) -> None:
    """Do nothing: PyTorch's own compiler, which freezes parameters, is not here."""
