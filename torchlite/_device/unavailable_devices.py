"""Modules of devices without a backend. They behave as in a PyTorch build without these devices: none is available, and
functions that need one raise an error.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

# Results of functions that work without a device, by name.
_ANSWERS: dict[str, Callable[..., Any]] = {
    "is_available": lambda: False,
    "is_initialized": lambda: False,
    "device_count": lambda: 0,
    "manual_seed": lambda seed: None,
    "manual_seed_all": lambda seed: None,
    "seed": lambda: None,
    "seed_all": lambda: None,
    "get_rng_state_all": list,
    "get_arch_list": list,
    "is_bf16_supported": lambda including_emulation=True: False,
    "is_tf32_supported": lambda: False,
    "memory_allocated": lambda device=None: 0,
    "max_memory_allocated": lambda device=None: 0,
    "memory_reserved": lambda device=None: 0,
    "max_memory_reserved": lambda device=None: 0,
    "memory_stats": lambda device=None: OrderedDict(),
}


def make_functions(names: str, wants: str, error: Callable[[str], Exception]) -> dict[str, Any]:
    """A module's functions: `names` answer without a device; `wants` raise `error(name)`."""
    made = {name: _make_named_function(name, _ANSWERS[name]) for name in names.split()}
    return made | {name: _make_raising_function(name, error) for name in wants.split()}


def _make_named_function(name: str, answer: Callable[..., Any]) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        return answer(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "What is true without such a device."
    function.__wrapped__ = answer  # type: ignore[attr-defined]  # for its signature
    return function


def _make_raising_function(name: str, error: Callable[[str], Exception]) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise error(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises: there is no such device."
    return function
