"""Selection of the scaled dot-product attention implementation."""

import contextlib
import enum

from torchlite._settings.module_dir import make_module_dir

from ..._settings.backend_flags import FLAGS

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """PyTorch's implementations of attention. The choice has no effect on a device with only one.

    Example:
        >>> from torchlite.nn.attention import SDPBackend
        >>> SDPBackend.FLASH_ATTENTION.value
        1
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_BACKEND_FLAGS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "mem_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Limits the implementations of `scaled_dot_product_attention` within a `with` block.

    The context manager sets the switches of `torch.backends.cuda` and restores them at its end.

    Args:
        backends: One `SDPBackend`, or a list of them.
        set_priority: Has no effect: the backends are one implementation with one result.

    Raises:
        AssertionError: An item is not an `SDPBackend`, or the list is empty.

    Example:
        >>> from torchlite.nn.attention import SDPBackend, sdpa_kernel
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled()
        (True, False)
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not chosen or not all(isinstance(backend, SDPBackend) for backend in chosen):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    before = dict(FLAGS.sdp)
    FLAGS.sdp.update({name: backend in chosen for name, backend in _BACKEND_FLAGS.items()})
    try:
        yield
    finally:
        FLAGS.sdp.update(before)


__dir__ = make_module_dir(globals())
