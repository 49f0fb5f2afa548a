"""Intel ITT marks for VTune, which torchlite does not support."""

from __future__ import annotations

from typing import Any, NoReturn

from torchlite._settings.module_dir import make_module_dir

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Returns ``False``: Intel's ITT is not supported."""
    return False


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError("torchlite makes no marks for VTune; use torch.profiler.record_function")


mark = range = range_pop = range_push = _refuse


__dir__ = make_module_dir(globals())
