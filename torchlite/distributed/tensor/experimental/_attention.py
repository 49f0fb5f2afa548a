"""Context parallelism of attention: unsupported."""

from ..._unavailable_stubs import unavailable_function

__all__ = ["context_parallel"]

_HERE = "torch.distributed.tensor.experimental"
context_parallel, set_rotate_method = (
    unavailable_function("context_parallel", _HERE),
    unavailable_function("set_rotate_method", _HERE),
)
