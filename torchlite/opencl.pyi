"""OpenCL devices."""

from ._stubs.accelerator import *
from ._stubs.basic import Event as Event
from ._stubs.basic import Stream as Stream
