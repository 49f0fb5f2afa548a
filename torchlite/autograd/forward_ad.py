"""Forward-mode differentiation: within a level, dual tensors have tangents, which ops propagate.

>>> import torchlite as torch
>>> import torchlite.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(torch.tensor(2.0), torch.tensor(1.0))
...     fwAD.unpack_dual(x ** 3).tangent
tensor(12.)
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from torchlite._settings.module_dir import make_module_dir

from .._dispatch import MODE
from .._dispatch.autograd_graph import autograd_meta_of
from .._tensor import Tensor
from . import _forward_mode
from ._tangents import set_tangent, tangent_of
from .grad_mode import _is_fwd_grad_enabled as _is_fwd_grad_enabled
from .grad_mode import _set_fwd_grad_enabled as _set_fwd_grad_enabled

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class _Levels(threading.local):
    """The levels of a thread: none or one."""

    def __init__(self) -> None:
        self.entered: list[_forward_mode.ForwardLevel] = []


_levels = _Levels()


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`: a tensor and its tangent.

    Args:
        primal: The tensor without its tangent.
        tangent: The tangent, or ``None`` if there is none.

    Example:
        >>> from torchlite.autograd import forward_ad as fwAD
        >>> fwAD.unpack_dual(torch.ones(2))
        UnpackedDualTensor(primal=tensor([1., 1.]), tangent=None)
    """

    primal: Any
    tangent: Any


def _current_level_number() -> int:
    """The number of the calling thread's level; -1 outside of any."""
    return len(_levels.entered) - 1


def __getattr__(name: str) -> int:
    if name == "_current_level":
        return _current_level_number()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Begins a level of forward-mode differentiation in this thread; `dual_level` is the context manager.

    Returns:
        The level's number, 0.

    Raises:
        RuntimeError: A level is open. Levels do not nest; `torch.func.jvp` does.

    Example:
        >>> from torchlite.autograd import forward_ad as fwAD
        >>> fwAD.enter_dual_level()
        0
        >>> fwAD.exit_dual_level()
    """
    if _levels.entered:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.entered.append(_forward_mode.ForwardLevel().__enter__())
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level of this thread and drops its tangents.

    Args:
        level: The level's number. Default: the current level.

    Raises:
        RuntimeError: No level is open, or ``level`` is not the current one.

    Example:
        >>> from torchlite.autograd import forward_ad as fwAD
        >>> level = fwAD.enter_dual_level()
        >>> fwAD.exit_dual_level(level=level)
    """
    current = _current_level_number()
    level = current if level is None else level
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if level != current:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _levels.entered.pop().__exit__(None, None, None)


def _find_level(level: int | None) -> Any:
    entered = _levels.entered
    return entered[-1] if entered and (level is None or level >= 0) else None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Returns a view of a tensor that has a tangent.

    Args:
        tensor: The primal, of a floating or complex dtype. The result shares its memory.
        tangent: The tangent, of the same shape. It is stored with the memory layout of ``tensor``.
        level: The level's number. Default: the current level.

    Returns:
        A dual tensor; ops in the level compute the tangents of their results from it.

    Raises:
        RuntimeError: No level is open, the shapes differ, or one of the two has a tangent.
        ValueError: One of the two has an integer or boolean dtype.

    Example:
        >>> from torchlite.autograd import forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        ...     fwAD.unpack_dual(x * x).tangent
        tensor(6.)
    """
    at = _find_level(level)
    if at is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    check_tangent(tensor, tangent, at)
    made = _alias_as_view(tensor)
    set_tangent(made, at, tangent)
    return made


def _alias_as_view(tensor: Any) -> Tensor:
    """A tensor on the same memory, which is a view to those who ask, and a base to its own views: these have parts of
    its tangent.
    """
    made = _forward_mode.alias_with_tangents(tensor, MODE.grad)
    if made._tl_level is None:
        autograd_meta_of(made).dual_primal = tensor if tensor._base is None else tensor._base
    return made


def check_tangent(tensor: Tensor, tangent: Tensor, at: _forward_mode.ForwardLevel) -> None:
    """PyTorch's errors for a tangent that a tensor cannot have."""
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tangent_of(tensor, at) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if tangent_of(tangent, at) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
        )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Returns a tensor without its tangent, and the tangent.

    Args:
        tensor: The tensor; it need not be dual.
        level: The level's number. Default: the current level.

    Returns:
        An `UnpackedDualTensor`. Its ``tangent`` is ``None`` if the tensor has none, or if no level is open.

    Example:
        >>> from torchlite.autograd import forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        ...     fwAD.unpack_dual(torch.exp(x) * 0 + x).tangent
        tensor(1.)
    """
    at = _find_level(level)
    if at is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(_strip_tangent(tensor, at), tangent_of(tensor, at))


def _strip_tangent(tensor: Tensor, at: _forward_mode.ForwardLevel) -> Tensor:
    made = _alias_as_view(tensor)
    _forward_mode.drop_tangent(made, at)
    return made


class dual_level:
    """Runs a block in a level of forward-mode differentiation; tangents exist until the block ends.

    Raises:
        RuntimeError: A level is open in this thread.

    Example:
        >>> from torchlite.autograd import forward_ad as fwAD
        >>> with fwAD.dual_level() as level:
        ...     level
        0

    See also:
        `make_dual`, `torch.func.jvp`.
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: Any) -> None:
        exit_dual_level()


__dir__ = make_module_dir(globals(), "_set_fwd_grad_enabled", hidden="check_tangent")
