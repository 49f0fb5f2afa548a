"""Custom ops by their names before `torch.library`."""

from __future__ import annotations

from typing import Any

__all__ = ["impl_abstract"]


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """`torch.library.register_fake`."""
    from .library import register_fake

    return register_fake(qualname, func)
