"""Meshes of devices over several processes: none."""

from ._absent import absent, kind

_HERE = "torch.distributed.device_mesh"

__all__ = ["DeviceMesh", "init_device_mesh"]

DeviceMesh = kind("DeviceMesh", _HERE)
init_device_mesh = absent("init_device_mesh", _HERE)
