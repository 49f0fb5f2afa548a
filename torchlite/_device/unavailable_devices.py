"""Modules of devices without a backend. They behave as in a PyTorch build without these devices: none is available, and
functions that need one raise an error.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any


def _empty_list() -> list[Any]:
    return []


# Results of functions that work without a device, by name.
_ANSWERS: dict[str, Callable[..., Any]] = {
    "is_available": lambda: False,
    "is_initialized": lambda: False,
    "device_count": lambda: 0,
    "manual_seed": lambda seed: None,
    "manual_seed_all": lambda seed: None,
    "seed": lambda: None,
    "seed_all": lambda: None,
    "get_rng_state_all": _empty_list,
    "get_arch_list": _empty_list,
    "is_bf16_supported": lambda including_emulation=True: False,
    "is_tf32_supported": lambda: False,
    "memory_allocated": lambda device=None: 0,
    "max_memory_allocated": lambda device=None: 0,
    "memory_reserved": lambda device=None: 0,
    "max_memory_reserved": lambda device=None: 0,
    "memory_stats": lambda device=None: OrderedDict(),
}


_SEED, _DEVICE = "    seed: Has no effect.", "    device: Has no effect."
# What they return or do, and their arguments.
_MEANINGS: dict[str, tuple[str, str]] = {
    "is_available": ("Returns ``False``: there is no such device.", ""),
    "is_initialized": ("Returns ``False``: there is no such device.", ""),
    "device_count": ("Returns 0: there is no such device.", ""),
    "manual_seed": ("Does nothing: there is no such device.", _SEED),
    "manual_seed_all": ("Does nothing: there is no such device.", _SEED),
    "seed": ("Does nothing: there is no such device.", ""),
    "seed_all": ("Does nothing: there is no such device.", ""),
    "get_rng_state_all": ("Returns an empty list: there is no such device.", ""),
    "get_arch_list": ("Returns an empty list: there is no such device.", ""),
    "is_bf16_supported": ("Returns ``False``: there is no such device.", "    including_emulation: Has no effect."),
    "is_tf32_supported": ("Returns ``False``: there is no such device.", ""),
    "memory_allocated": ("Returns 0: there is no such device.", _DEVICE),
    "max_memory_allocated": ("Returns 0: there is no such device.", _DEVICE),
    "memory_reserved": ("Returns 0: there is no such device.", _DEVICE),
    "max_memory_reserved": ("Returns 0: there is no such device.", _DEVICE),
    "memory_stats": ("Returns an empty dictionary: there is no such device.", _DEVICE),
}


def make_functions(module: str, names: str, wants: str, error: Callable[[str], Exception]) -> dict[str, Any]:
    """Return the functions of a module: `names` work without a device, `wants` raise `error(name)`."""
    made = {name: _make_named_function(module, name, _ANSWERS[name]) for name in names.split()}
    return made | {name: _make_raising_function(module, name, error) for name in wants.split()}


def _make_named_function(module: str, name: str, answer: Callable[..., Any]) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        return answer(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    meaning, arguments = _MEANINGS[name]
    result = answer(0) if arguments else answer()
    parts = [meaning, f"Args:\n{arguments}" if arguments else "", f"Example:\n    >>> torch.{module}.{name}"]
    shown = "" if result is None else f"\n    {result!r}"
    function.__doc__ = "\n\n".join(filter(None, parts)) + f"({'0' if arguments == _SEED else ''}){shown}\n"
    function.__wrapped__ = answer  # type: ignore[attr-defined]  # for its signature
    return function


def _make_raising_function(module: str, name: str, error: Callable[[str], Exception]) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise error(name)

    function.__name__ = function.__qualname__ = name
    raised = error(name)
    kind = type(raised).__name__
    function.__doc__ = (
        f"Raises {kind}: there is no such device.\n\nArgs:\n    args: Ignored.\n    kwargs: Ignored.\n\n"
        f"Example:\n    >>> torch.{module}.{name}()\n    Traceback (most recent call last):\n    {kind}: {raised}\n"
    )
    return function
