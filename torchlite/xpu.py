"""Intel's GPUs by PyTorch's own name: there are none here (`torch.opencl` runs on them)."""

from __future__ import annotations

from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ._device.unavailable_devices import make_functions

_ANSWERED = (
    "is_available is_initialized device_count manual_seed manual_seed_all seed seed_all get_rng_state_all "
    "get_arch_list is_bf16_supported is_tf32_supported memory_allocated max_memory_allocated memory_reserved "
    "max_memory_reserved memory_stats"
)
_WANTED = (
    "init current_device set_device current_stream set_stream synchronize get_device_name get_device_properties "
    "get_device_capability mem_get_info get_rng_state set_rng_state initial_seed"
)
globals().update(
    make_functions("xpu", _ANSWERED, _WANTED, lambda name: AssertionError("Torch not compiled with XPU enabled"))
)
__all__ = [*_ANSWERED.split(), *_WANTED.split(), "device", "empty_cache", "is_current_stream_capturing"]  # noqa: PLE0604


def empty_cache() -> None:
    """Has no effect: there is no cached memory.

    Example:
        >>> torch.xpu.empty_cache()
    """


def is_current_stream_capturing() -> bool:
    """Raises RuntimeError: there is no such device.

    Raises:
        RuntimeError: Always.

    Example:
        >>> torch.xpu.is_current_stream_capturing()
        Traceback (most recent call last):
        RuntimeError: Tried to instantiate dummy base class _xpu_isCurrentStreamCapturing
    """
    raise RuntimeError("Tried to instantiate dummy base class _xpu_isCurrentStreamCapturing")


class device:
    """Context manager of the current device, which has no effect: there are none.

    Args:
        device: No effect.

    Example:
        >>> with torch.xpu.device(0):
        ...     torch.xpu.device_count()
        0
    """

    def __init__(self, device: Any) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None: ...


__dir__ = make_module_dir(globals())
