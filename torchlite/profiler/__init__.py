"""`torch.profiler`: time and memory of the ops of a program, with a schedule of steps.

>>> import torchlite as torch
>>> from torchlite.profiler import ProfilerActivity, profile, record_function
>>> model, x = torch.nn.Linear(8, 4), torch.ones(2, 8)
>>> with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
...     with record_function("model"):
...         model(x).sum().backward()
>>> table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)
>>> "aten::linear" in table and "model" in table
True
"""

from ..autograd.profiler import record_function
from . import itt as itt
from .profiler import (
    DeviceType,
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile",
    "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip
