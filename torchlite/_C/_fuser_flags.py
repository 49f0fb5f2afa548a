"""Switches of TorchScript's fusers and executors: they keep what they are set to, and nothing reads them."""

from __future__ import annotations

_set = {"profiling_executor": True, "profiling_mode": True, "texpr": True, "cpu": False, "gpu": False, "nvfuser": False}


def _exchanged(name: str, value: bool) -> bool:
    before, _set[name] = _set[name], bool(value)
    return before


def _jit_set_profiling_executor(value: bool) -> bool:
    """Set the switch; what it was."""
    return _exchanged("profiling_executor", value)


def _jit_set_profiling_mode(value: bool) -> bool:
    """Set the switch; what it was."""
    return _exchanged("profiling_mode", value)


def _jit_set_texpr_fuser_enabled(value: bool) -> None:
    """Set the switch."""
    _exchanged("texpr", value)


def _jit_texpr_fuser_enabled() -> bool:
    """Return the current value of the switch."""
    return _set["texpr"]


def _jit_set_nvfuser_enabled(value: bool) -> bool:
    """Set the switch; what it was."""
    return _exchanged("nvfuser", value)


def _jit_nvfuser_enabled() -> bool:
    """Return the current value of the switch."""
    return _set["nvfuser"]


def _jit_override_can_fuse_on_cpu(value: bool) -> None:
    """Set the switch."""
    _exchanged("cpu", value)


def _jit_can_fuse_on_cpu() -> bool:
    """Return the current value of the switch."""
    return _set["cpu"]


def _jit_override_can_fuse_on_gpu(value: bool) -> None:
    """Set the switch."""
    _exchanged("gpu", value)


def _jit_can_fuse_on_gpu() -> bool:
    """Return the current value of the switch."""
    return _set["gpu"]
