"""Random numbers of CUDA devices: seeds and states of their default generators."""

from __future__ import annotations

from typing import Any

from ._accelerator import cuda

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]

manual_seed, manual_seed_all, seed, seed_all, initial_seed = (
    cuda.manual_seed,
    cuda.manual_seed_all,
    cuda.seed,
    cuda.seed_all,
    cuda.initial_seed,
)
get_rng_state_all, set_rng_state_all = cuda.get_rng_state_all, cuda.set_rng_state_all


def get_rng_state(device: Any = "cuda"):
    """Returns the state of a device's generator, a uint8 tensor on the CPU.

    Args:
        device: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.cuda.is_available():
        ...     state = torch.cuda.get_rng_state()
    """
    return cuda.get_rng_state(device)


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Sets the state of a device's generator; does nothing without a device.

    Args:
        new_state: The state, as `get_rng_state` returns it.
        device: The device. Default: the current one.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    """
    cuda.set_rng_state(new_state, device)
