"""DataParallel, a module that splits each batch over several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite.nn.modules.module import Module

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Wraps a model as `module` and calls it on one device.

    Programs and checkpoints written for several devices run with it. A batch is not split over devices.

    Args:
        module: The model.
        device_ids: A list of at most one device. Default: none.
        output_device: The device of the output. Default: that of ``device_ids``.
        dim: The batch dimension. Default: 0.

    Raises:
        NotImplementedError: ``device_ids`` has several devices.

    Example:
        >>> model = torch.nn.DataParallel(torch.nn.Linear(2, 1))
        >>> list(model.state_dict()), model(torch.ones(3, 2)).shape
        (['module.weight', 'module.bias'], torch.Size([3, 1]))

    See also:
        `DistributedDataParallel`, which uses several devices.
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
    """Returns the output of a model on one device, as `DataParallel` computes it.

    Args:
        module: The model.
        inputs: Its input, or a tuple of inputs.
        device_ids: A list of at most one device. Default: none.
        output_device: The device of the output. Default: that of ``device_ids``.
        dim: The batch dimension. Default: 0.
        module_kwargs: Keyword arguments of the model. Default: none.

    Raises:
        NotImplementedError: ``device_ids`` has several devices.

    Example:
        >>> torch.nn.parallel.data_parallel(torch.nn.Linear(2, 1), torch.ones(3, 2)).shape
        torch.Size([3, 1])
    """
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*given, **(module_kwargs or {}))
