"""OpenCL devices."""

from ._types.accelerator import *
from ._types.basic import Event as Event
from ._types.basic import Stream as Stream
