"""Models in stages: not yet."""

from .._absent import absent, kind

_HERE = "torch.distributed.pipelining"

PipelineStage = kind("PipelineStage", _HERE)
Schedule1F1B = kind("Schedule1F1B", _HERE)
ScheduleGPipe = kind("ScheduleGPipe", _HERE)
SplitPoint = kind("SplitPoint", _HERE)
pipeline = absent("pipeline", _HERE)
