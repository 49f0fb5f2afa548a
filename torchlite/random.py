"""torch.random: seeds and states of the default generators."""

from ._device.generators import Generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

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


def thread_safe_generator():
    """Return ``None``: no thread has a generator of its own here.

    In PyTorch it is the generator of the DataLoader worker that the calling thread is. Here DataLoader's workers are
    processes, and random functions use the default generator.

    Returns:
        ``None``.

    Example:
        >>> torch.random.thread_safe_generator() is None
        True
    """


def __getattr__(name: str):
    if name == "default_generator":
        from ._device import generators as _random

        return _random.default_generator
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
