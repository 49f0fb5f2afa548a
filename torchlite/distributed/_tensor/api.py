"""Classes and functions of `torch.distributed.tensor` under an older path."""

from ..tensor import DTensor, distribute_module, distribute_tensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
