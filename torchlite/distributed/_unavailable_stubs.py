"""Placeholder classes for unavailable parts of `torch.distributed`, for annotations and isinstance."""

from __future__ import annotations

from typing import Any, NoReturn

from torchlite._types.unsupported import unsupported_function


def make_unavailable_class(name: str, module: str = "torch.distributed", base: type = object) -> Any:
    """Return a class without instances: its constructor raises NotImplementedError."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        unsupported_function(f"{module}.{name}")()

    doc = "For annotations and `isinstance`: the constructor raises NotImplementedError."
    return type(name, (base,), {"__init__": __init__, "__module__": module, "__doc__": doc})
