"""DataParallel."""

from torchlite.nn.modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """Holds a model as `module` and calls it, so that programs and checkpoints written for several devices run on one.

    device_ids of more than one device raise NotImplementedError: batches are not split.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
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

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)
