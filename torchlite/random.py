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
    """The generator of the DataLoader worker that the calling thread is, None elsewhere (random functions then use the
    default one).
    """
    from .utils.data import get_worker_info

    info = get_worker_info()
    rng = getattr(info, "rng", None) if getattr(info, "worker_method", None) == "thread" else None
    return None if rng is None else rng.torch_generator


def __getattr__(name: str):
    if name == "default_generator":
        from ._device import generators as _random

        return _random.default_generator
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
