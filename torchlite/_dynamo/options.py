"""What `mode` and `options` of `torch.compile` may be: the names are PyTorch's, so that programs that set them run. Of
the modes "reduce-overhead" and those that begin with "max-autotune" change what is done, and of the options
"triton.cudagraphs" and "max_autotune", which are these; the others are checked, and change nothing: they are about
PyTorch's own compiler.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "lite": {"fallback_by_default": True, "allow_buffer_reuse": False, "use_dce": False},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}
_KINDS = {kind.__name__: kind for kind in (bool, int, float, str, list, dict, tuple)}


@functools.cache
def known() -> dict[str, type | None]:
    """The options that there are, and what their values are: None where any will do."""
    found: dict[str, type | None] = {}
    kind: type | None = None
    for line in Path(__file__).with_name("options.txt").read_text().splitlines()[1:]:
        if line.startswith("["):
            kind = _KINDS.get(line[1:-1])
        else:
            found.update(dict.fromkeys(line.split(), kind))
    return found


def mode_of(mode: str | None, options: Any) -> str | None:
    """The mode that options ask for: graphs of launches, measured forms of kernels, or both."""
    wanted = {name.replace("-", "_"): value for name, value in (options or {}).items()}
    graphs, measured = wanted.get("triton.cudagraphs"), wanted.get("max_autotune")
    if measured:
        return "max-autotune" if graphs else "max-autotune-no-cudagraphs"
    return "reduce-overhead" if graphs else mode


def check(mode: str | None, options: Any) -> None:
    """RuntimeError for a mode or an option that there is not, or a value of another type."""
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    for name, value in (options or {}).items():
        name = name.replace("-", "_")
        if name not in known():
            raise RuntimeError(f"Unexpected optimization option {name}, known options are {list(known())}")
        kind = known()[name]
        if kind is not None and type(value) is not kind:
            raise RuntimeError(f"Unexpected type of attr {name}, got {type(value).__name__} should be {kind.__name__}")
