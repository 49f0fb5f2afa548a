"""Distributed autograd: unavailable."""

from torchlite._settings.module_dir import make_module_dir

from ._unavailable_stubs import make_unavailable_class, make_unavailable_function

_HERE = "torch.distributed.autograd"

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]

DistAutogradContext, context = (make_unavailable_class(name, _HERE) for name in ("DistAutogradContext", "context"))
backward, get_gradients = (make_unavailable_function(name, _HERE) for name in ("backward", "get_gradients"))


def is_available() -> bool:
    """Returns ``False``: distributed autograd is not supported.

    Example:
        >>> torch.distributed.autograd.is_available()
        False
    """
    return False


__dir__ = make_module_dir(globals())
