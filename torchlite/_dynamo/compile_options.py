"""Values of `mode` and `options` of `torch.compile`, under PyTorch's names.

Effective are the modes "reduce-overhead" and "max-autotune*" and the options "triton.cudagraphs" and "max_autotune".
Other options are validated only: they concern PyTorch's compiler.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

from .._settings.compiler_state import PROCESS_STATE
from .._types.python_source import literal

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "lite": {"fallback_by_default": True, "allow_buffer_reuse": False, "use_dce": False},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}
_VALUE_TYPES = {kind.__name__: kind for kind in (bool, int, float, str, list, dict, tuple)}


@functools.cache
def _option_specs() -> dict[str, tuple[type | None, Any]]:
    """Return all options with the types of their values (None for any) and PyTorch's defaults."""
    found: dict[str, tuple[type | None, Any]] = {}
    kind: type | None = None
    for line in Path(__file__).with_name("options.txt").read_text().splitlines():
        if line.startswith("["):
            kind = _VALUE_TYPES.get(line[1:-1])
        elif not line.startswith("#"):
            for name, given, text in (word.partition("=") for word in line.split()):
                found[name] = kind, literal(text) if given else None if kind is None else kind()
    return found


@functools.cache
def option_types() -> dict[str, type | None]:
    """Return all options with the types of their values, None for any."""
    return {name: kind for name, (kind, _) in _option_specs().items()}


def default_options() -> dict[str, Any]:
    """Return the options with PyTorch's defaults, None for machine-dependent ones."""
    return {name: copy.copy(value) for name, (_, value) in _option_specs().items()}


def compile_mode_of(mode: str | None, options: Any) -> str | None:
    """Return the mode implied by the options, or without mode by `torch._inductor.config`: launch graphs, autotuned
    kernels, or both.
    """
    settings = PROCESS_STATE.inductor_config
    wanted = {name.replace("-", "_"): value for name, value in (options or {}).items()}
    if settings is not None and mode is None:
        wanted = {"triton.cudagraphs": settings.triton.cudagraphs, "max_autotune": settings.max_autotune} | wanted
    graphs, measured = wanted.get("triton.cudagraphs"), wanted.get("max_autotune")
    if measured:
        return "max-autotune" if graphs else "max-autotune-no-cudagraphs"
    return "reduce-overhead" if graphs else mode


def check_options(mode: str | None, options: Any) -> None:
    """Raise RuntimeError for an unknown mode or option, or a value of another type."""
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    for name, value in (options or {}).items():
        name = name.replace("-", "_")
        if name not in option_types():
            raise RuntimeError(f"Unexpected optimization option {name}, known options are {list(option_types())}")
        kind = option_types()[name]
        if kind is not None and type(value) is not kind:
            raise RuntimeError(f"Unexpected type of attr {name}, got {type(value).__name__} should be {kind.__name__}")
