"""The backend of docs/backend.md as a module, for tests that register it or derive others from it."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "backend.md"
LACKS = Path(__file__).with_name("toy_lacks.txt")
MODULE = "toy_backend"


def source() -> str:
    """The page's Python blocks at their lines, without examples and without the line that registers the backend."""
    page, text = PAGE.read_text(), ""
    for block in re.finditer(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        if ">>>" not in block.group(1) and "register_backend" not in block.group(1):
            text += "\n" * (page.count("\n", 0, block.start(1)) - text.count("\n")) + block.group(1)
    return text


def load_page() -> types.ModuleType:
    """A new module with the page's names. It is `toy_backend` to those who ask where a function comes from."""
    module = types.ModuleType(MODULE)
    exec(compile(source(), str(PAGE), "exec"), vars(module))
    sys.modules.setdefault(MODULE, module)
    return module


def register() -> None:
    """Register the page's backend as the device type "toy"."""
    from torchlite.backends.protocol import register_backend

    register_backend("toy", load_page().backend)


def register_for_tests() -> None:
    """Register the page's backend as the device type "toy". A test that calls an op that it may lack is skipped."""
    import pytest

    from torchlite.backends.protocol import register_backend

    def lacked(name: str):
        return lambda *args, **options: pytest.skip(f"a minimal backend may lack '{name}'")

    class ToyBackend(load_page().ToyBackend):
        __module__ = MODULE  # for torch.compile, which takes what this module defines for kernels

        def kernels(self, index):
            return {**{name: lacked(name) for name in lacked_ops()}, **super().kernels(index)}

    register_backend("toy", ToyBackend())


def _lacks() -> list[str]:
    return [line for line in LACKS.read_text().split("\n") if line and not line.startswith("#")]


def lacked_ops() -> list[str]:
    """The ops that a minimal backend may lack."""
    return [line for line in _lacks() if not line.startswith("tests/")]


def lacked_tests() -> dict[str, str]:
    """Tests that may fail on a minimal backend, by node id, and why."""
    return {test: why for test, _, why in (line.partition("  # ") for line in _lacks() if "::" in line)}


def lacked_files() -> dict[str, str]:
    """Files and folders of tests that need more than a minimal backend, and why."""
    return {path: why for path, _, why in (line.partition("  # ") for line in _lacks() if line.startswith("tests/"))
            if "::" not in path}  # fmt: skip
