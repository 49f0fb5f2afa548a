"""Default timeouts of process groups."""

from ._collective_options import default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_nccl_timeout = None  # as in PyTorch without NCCL: all backends have `default_pg_timeout`
