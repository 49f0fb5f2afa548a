"""`ops`: the operators inside loops of PyTorch's own compiler, which packages import."""

from __future__ import annotations

from typing import NoReturn


class _Operators:
    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError("torchlite has no loops of PyTorch's own compiler")


ops = _Operators()
