"""Context parallelism of attention: unsupported."""

from ..._unavailable_stubs import make_unavailable_function

__all__ = ["context_parallel"]

_HERE = "torch.distributed.tensor.experimental"
context_parallel, set_rotate_method = (
    make_unavailable_function("context_parallel", _HERE),
    make_unavailable_function("set_rotate_method", _HERE),
)
