"""OpenCL devices."""

from ._types.accelerator import *
