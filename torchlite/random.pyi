"""Seeds and states of the default generators."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from . import Generator as Generator
from . import default_generator as default_generator
from . import get_rng_state as get_rng_state
from . import initial_seed as initial_seed
from . import manual_seed as manual_seed
from . import seed as seed
from . import set_rng_state as set_rng_state
from . import thread_safe_generator as thread_safe_generator

def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> AbstractContextManager[None]:
    """Context manager that restores the states of the default generators at its end."""
