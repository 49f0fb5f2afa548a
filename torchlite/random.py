"""torch.random: seeds and states of the default generators."""

from ._random import (
    Generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
    thread_safe_generator,
)

__all__ = [
    "Generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def __getattr__(name: str):
    if name == "default_generator":
        from . import _random

        return _random.default_generator
    raise AttributeError(f"module 'torchlite.random' has no attribute '{name}'")
