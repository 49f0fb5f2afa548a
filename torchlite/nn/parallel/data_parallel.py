"""DataParallel, a module that splits each batch over several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite.nn.modules.module import Module

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Wraps a model as `module` and calls it, so that programs and checkpoints for several devices run on one.

    More than one device in device_ids raises NotImplementedError: batches are not split.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        device_ids = list(device_ids or [])
        if len(device_ids) > 1:
            raise NotImplementedError(
                f"DataParallel over {len(device_ids)} devices: torchlite does not split batches. Pass one device, or "
                "none."
            )
        self.dim = dim
        self.module = module
        self.device_ids = device_ids
        self.output_device = output_device if output_device is not None else (device_ids[0] if device_ids else None)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Tensor:
    """Return the output of `DataParallel(module, device_ids, output_device, dim)` for inputs (one, or a tuple)."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*given, **(module_kwargs or {}))
