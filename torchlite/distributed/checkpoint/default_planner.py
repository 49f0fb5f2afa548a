"""Who writes and reads what: nobody yet."""

from .._absent import kind

_HERE = "torch.distributed.checkpoint.default_planner"

DefaultLoadPlanner = kind("DefaultLoadPlanner", _HERE)
DefaultSavePlanner = kind("DefaultSavePlanner", _HERE)
