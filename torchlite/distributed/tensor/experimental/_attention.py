"""Sequences that lie over several processes in attention."""

from ..._absent import absent

__all__ = ["context_parallel"]

_HERE = "torch.distributed.tensor.experimental"
context_parallel, set_rotate_method = absent("context_parallel", _HERE), absent("set_rotate_method", _HERE)
