"""Sequences that lie over several processes in attention."""

from ..._absent import absent

__all__ = ["context_parallel"]

context_parallel = absent("context_parallel", "torch.distributed.tensor.experimental")
