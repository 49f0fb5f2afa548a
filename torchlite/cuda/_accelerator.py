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
    """Returns a device's compute capability, such as (8, 0) for an A100.

    Args:
        device: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.cuda.is_available():
        ...     major, minor = torch.cuda.get_device_capability()
    """
    found = cuda.get_device_properties(device)
    return found.major, found.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Returns whether a device can access the memory of another one.

    Args:
        device: The device.
        peer_device: The other device.

    Raises:
        AssertionError: There is no such device.

    Example:
        >>> torch.cuda.can_device_access_peer(-1, 0)
        Traceback (most recent call last):
        AssertionError: Invalid device id
    """
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
    """Returns the architectures that kernels are built for, such as ``"sm_80"``: those of the visible devices.

    Every kernel is built when it is first used.

    Example:
        >>> torch.cuda.is_available() or torch.cuda.get_arch_list() == []
        True
    """
    return sorted({"sm_{}{}".format(*get_device_capability(i)) for i in range(cuda.device_count())})


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns whether the current device computes in bfloat16.

    Args:
        including_emulation: ``False`` asks for support by the hardware, from compute capability 8.0. Default: ``True``.

    Example:
        >>> torch.cuda.is_bf16_supported() and not torch.cuda.is_available()
        False
    """
    return cuda.is_available() and (including_emulation or get_device_capability() >= (8, 0))


def is_tf32_supported() -> bool:
    """Returns whether the current device supports TF32, as from compute capability 8.0.

    Example:
        >>> torch.cuda.is_tf32_supported() and not torch.cuda.is_available()
        False
    """
    return cuda.is_available() and get_device_capability() >= (8, 0)


def get_gencode_flags() -> str:
    """Returns `get_arch_list` as options of NVIDIA's compiler.

    Example:
        >>> torch.cuda.is_available() or torch.cuda.get_gencode_flags() == ""
        True
    """
    return " ".join(f"-gencode compute=compute_{arch[3:]},code={arch}" for arch in get_arch_list())
