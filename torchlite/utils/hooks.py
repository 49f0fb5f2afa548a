"""Removable handles of hooks, and the backward hooks of modules."""

from typing import TYPE_CHECKING

from torchlite._settings.module_dir import make_module_dir

from .._dispatch.hooks import RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f):
    """Marks a tensor hook that is not pickled with the tensor, which suppresses the warning.

    Args:
        f: The hook.

    Returns:
        The hook.

    Example:
        >>> import torchlite as torch, pickle
        >>> x = torch.ones(1, requires_grad=True)
        >>> _ = x.register_hook(torch.utils.hooks.unserializable_hook(lambda grad: grad))
        >>> pickle.loads(pickle.dumps(x))
        tensor([1.], requires_grad=True)
    """
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    """Warns of each hook on a tensor that would not be in its pickle.

    Args:
        tensor: A tensor.

    Example:
        >>> torch.utils.hooks.warn_if_has_hooks(torch.ones(1, requires_grad=True))
    """
    from .._tensor.pickling import warn_hooks_not_pickled

    warn_hooks_not_pickled(tensor)


if TYPE_CHECKING:
    from ._backward_hook import BackwardHook
else:

    def __getattr__(name):
        if name == "BackwardHook":
            from ._backward_hook import BackwardHook

            globals()[name] = BackwardHook
            return BackwardHook
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__dir__ = make_module_dir(globals())
