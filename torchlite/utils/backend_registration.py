"""The name of the device type that is left to other makers, `privateuseone`."""

from __future__ import annotations

from torchlite._settings.module_dir import make_module_dir

from .._types.devices import rename_private_use

__all__ = ["rename_privateuse1_backend"]


def rename_privateuse1_backend(backend_name: str) -> None:
    """Gives the device type ``privateuseone`` another name, once in a process.

    Devices of that type have the new name, `torch.autocast` takes it, and `torch.profiler.ProfilerActivity` has it in
    capitals. Tensors can be created there if a backend for the name is registered. A module with
    ``get_amp_supported_dtype()``, which returns a list of dtypes, must be ``torch.<name>`` for autocast.

    Args:
        backend_name: The new name.

    Raises:
        RuntimeError: Another device type has the name, or the type has got another one before.

    Example:
        >>> import torchlite as torch
        >>> torch.utils.rename_privateuse1_backend("npu")  # doctest: +SKIP
        >>> torch.device("npu:1")  # doctest: +SKIP
        device(type='npu', index=1)
    """
    rename_private_use(backend_name)


__dir__ = make_module_dir(globals())
