"""Forward-mode differentiation by its names. There are no levels yet, so no tensor is a dual one: what is asked of
tensors outside a level is answered as PyTorch does, and what would enter one says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent; None where it has none."""

    primal: Any
    tangent: Any


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor and its tangent, which there is within a level alone."""
    return UnpackedDualTensor(tensor, None)


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> NoReturn:
    """RuntimeError: there is no level."""
    raise RuntimeError(
        "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
    )


def enter_dual_level() -> NoReturn:
    """NotImplementedError: torchlite has no forward-mode differentiation yet."""
    raise NotImplementedError(
        "torch.autograd.forward_ad: torchlite has no forward-mode differentiation yet; torch.autograd.functional.jvp "
        "goes by two backward passes"
    )


def exit_dual_level(*, level: int | None = None) -> NoReturn:
    """RuntimeError: there is no level."""
    raise RuntimeError("Trying to exit a forward AD level that was not entered")


class dual_level:
    """A level, within which tensors have tangents: NotImplementedError when it is entered."""

    def __enter__(self) -> NoReturn:
        enter_dual_level()

    def __exit__(self, *error: Any) -> None: ...
