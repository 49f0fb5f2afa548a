"""`torch.export` by its names: nothing is exported yet, and what would says so."""

from __future__ import annotations

from typing import Any

__all__ = ["Dim", "ExportedProgram", "export", "load", "save"]


def _refuse(name: str) -> NotImplementedError:
    return NotImplementedError(f"torch.export.{name}: torchlite does not export programs yet")


class _Hint:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"_DimHint({self.name})"


class Dim:
    """A size that varies from call to call, for an export: `Dim("batch", min=1, max=64)`."""

    AUTO, DYNAMIC, STATIC = _Hint("AUTO"), _Hint("DYNAMIC"), _Hint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.__name__ = name
        self.min, self.max = 0 if min is None else min, max
        if max is not None and max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")


class ExportedProgram:
    """A class for programs that ask whether something is one: nothing is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _refuse("ExportedProgram")


def export(mod: Any, args: Any = (), kwargs: Any = None, **options: Any) -> Any:
    """NotImplementedError: torchlite does not export programs yet."""
    raise _refuse("export")


def save(ep: Any, f: Any, **options: Any) -> None:
    """NotImplementedError: torchlite does not export programs yet."""
    raise _refuse("save")


def load(f: Any, **options: Any) -> Any:
    """NotImplementedError: torchlite does not export programs yet."""
    raise _refuse("load")
