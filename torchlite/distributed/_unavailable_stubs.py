"""Classes of `torch.distributed` that programs name in annotations and ask about: there are no process groups."""

from __future__ import annotations

from typing import Any, NoReturn

from torchlite._types.unsupported import unsupported_function


def unavailable_class(name: str, module: str = "torch.distributed", base: type = object) -> Any:
    """A class that nothing is an instance of: making one raises NotImplementedError."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        unsupported_function(f"{module}.{name}")()

    doc = "For annotations, and for programs that ask whether something is one: nothing is."
    return type(name, (base,), {"__init__": __init__, "__module__": module, "__doc__": doc})


def unavailable_function(name: str, module: str) -> Any:
    """A function that would begin work in several processes: it raises NotImplementedError."""
    return unsupported_function(f"{module}.{name}")
