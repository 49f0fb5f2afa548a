"""How calls of the library are written in files: for the tool that records PyTorch's, and the tests that compare."""

from __future__ import annotations

import math
from typing import Any


def shown(value: Any, library: Any) -> str:
    """An argument as text: of a tensor its shape and dtype."""
    if isinstance(value, library.Tensor):
        return f"T{tuple(value.shape)}{str(value.dtype).rpartition('.')[2]}".replace(" ", "")
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(shown(v, library) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}={shown(v, library)}" for name, v in sorted(value.items())) + "}"
    if isinstance(value, float):
        return f"{value:.9g}" if not math.isfinite(value) or value != int(value) else f"{int(value)}."
    if isinstance(value, library.Generator):
        return "generator"
    return str(value).replace("torchlite", "torch").replace("\t", " ").replace("\n", " ")
