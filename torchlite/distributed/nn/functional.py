"""Messages between processes that gradients follow: each says that there is no process group."""

from __future__ import annotations

from .. import distributed_c10d as _groups

__all__ = ["all_gather", "all_reduce", "all_to_all", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]

all_gather, all_reduce, all_to_all = _groups.all_gather, _groups.all_reduce, _groups.all_to_all
broadcast, gather, reduce = _groups.broadcast, _groups.gather, _groups.reduce
reduce_scatter, scatter = _groups.reduce_scatter, _groups.scatter
