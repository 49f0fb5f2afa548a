"""What `torch.cuda` and `torch.opencl` have in common: asking the registry, never a runtime."""
from __future__ import annotations

from ._dispatch.registry import backend_of


def is_available(name: str) -> bool:
    """Whether a device of this type can be used. Never raises."""
    return why_not(name) == ""


def why_not(name: str) -> str:
    """"" when a device of this type can be used, else one sentence saying what is missing."""
    try:
        return backend_of(name).why_not()
    except (RuntimeError, ImportError) as error:
        return str(error)


def device_count(name: str) -> int:
    """How many devices of this type can be used; 0 when none."""
    return backend_of(name).device_count() if is_available(name) else 0
