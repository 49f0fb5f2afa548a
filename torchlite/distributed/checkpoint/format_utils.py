"""Checkpoints of several processes as one file: not yet."""

from .._absent import absent, kind

_HERE = "torch.distributed.checkpoint.format_utils"

_EmptyStateDictLoadPlanner = kind("_EmptyStateDictLoadPlanner", _HERE)
dcp_to_torch_save = absent("dcp_to_torch_save", _HERE)
torch_save_to_dcp = absent("torch_save_to_dcp", _HERE)
