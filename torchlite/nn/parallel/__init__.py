"""Models over several devices."""

from .data_parallel import DataParallel

__all__ = ["DataParallel"]
