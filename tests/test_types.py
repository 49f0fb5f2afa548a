"""The programs that type checkers accept are right: they run. `tox -e types` has them, and wrong.py, checked."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "types"


@pytest.mark.parametrize("name", ["tensors", "training"])
def test_program_runs(name: str) -> None:
    found = runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
    for other in ("sets_of_data", "hooks", "second_order", "accelerators"):
        if other in found:
            found[other]()
    if "infer" in found:
        import torchlite as torch

        assert not found["infer"](torch.ones(2)).requires_grad
