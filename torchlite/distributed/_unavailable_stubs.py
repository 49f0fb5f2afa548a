"""Classes and functions of `torch.distributed` that are not implemented: remote calls and what builds on them."""

from __future__ import annotations

from typing import Any, NoReturn

from torchlite._types.unsupported import unsupported_function


def unavailable_class(name: str, module: str = "torch.distributed", base: type = object) -> Any:
    """A class without instances, for annotations and `isinstance`. Its constructor raises NotImplementedError."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        unsupported_function(f"{module}.{name}")()

    doc = "For annotations and `isinstance`: the constructor raises NotImplementedError."
    return type(name, (base,), {"__init__": __init__, "__module__": module, "__doc__": doc})


def unavailable_function(name: str, module: str) -> Any:
    """A function that raises NotImplementedError."""
    return unsupported_function(f"{module}.{name}")
