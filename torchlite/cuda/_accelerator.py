"""The Accelerator of CUDA, and device properties."""

from __future__ import annotations

from typing import Any

from .._device.accelerators import CUDA as cuda


def runtime_of(device: Any, what: str, method: str) -> Any:
    """Return a device's runtime, which must have a method. NotImplementedError naming the missing method."""
    found = cuda._runtime(device)
    if not hasattr(found, method):
        raise NotImplementedError(f"the CUDA backend has no {what}")
    return found


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the device's compute capability, such as (8, 0) for an A100."""
    found = cuda.get_device_properties(device)
    return found.major, found.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """True if a device can access the memory of another one. AssertionError for an invalid device."""
    there, peer = cuda.index(device), cuda.index(peer_device)
    count = cuda.device_count()
    if not 0 <= there < count:
        raise AssertionError("Invalid device id")
    if not 0 <= peer < count:
        raise AssertionError("Invalid peer device id")
    return bool(
        runtime_of(there, "answer to whether a device reads another one's memory", "can_access").can_access(peer)
    )


def get_arch_list() -> list[str]:
    """Return the architectures that kernels are built for: those of the visible devices, since every kernel is built on
    first use.

    >>> import torchlite as torch
    >>> torch.cuda.is_available() or torch.cuda.get_arch_list() == []
    True
    """
    return sorted({"sm_{}{}".format(*get_device_capability(i)) for i in range(cuda.device_count())})


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True if bfloat16 can be used on the current device; with including_emulation=False, if the hardware supports it
    (compute capability 8.0 and up).
    """
    return cuda.is_available() and (including_emulation or get_device_capability() >= (8, 0))


def is_tf32_supported() -> bool:
    """True if the current device supports TF32 (compute capability 8.0 and up)."""
    return cuda.is_available() and get_device_capability() >= (8, 0)


def get_gencode_flags() -> str:
    """`get_arch_list` as options of NVIDIA's compiler."""
    return " ".join(f"-gencode compute=compute_{arch[3:]},code={arch}" for arch in get_arch_list())
