"""Default timeouts of process groups."""

from ._collective_options import default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_nccl_timeout = None  # NCCL carries no messages yet
