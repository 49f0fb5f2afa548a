"""Checkpoints that several processes write: not yet."""

from .._absent import absent, kind

_HERE = "torch.distributed.checkpoint"

FileSystemReader = kind("FileSystemReader", _HERE)
FileSystemWriter = kind("FileSystemWriter", _HERE)
async_save = absent("async_save", _HERE)
load = absent("load", _HERE)
load_state_dict = absent("load_state_dict", _HERE)
save = absent("save", _HERE)
save_state_dict = absent("save_state_dict", _HERE)
