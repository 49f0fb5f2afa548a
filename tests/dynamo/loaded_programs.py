"""Modules that are written as a file and loaded, and the text of their replayed calls."""

from __future__ import annotations

import io
from typing import Any

import torchlite as torch
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS


def replay(module: Any, *given: Any) -> str:
    """Return the text of the replayed calls of a module that is written and loaded, compared with calls without."""
    held = io.BytesIO()
    with torch.no_grad():
        torch.export.save(torch.export.export(module.eval(), given), held)
        held.seek(0)
        loaded = torch.export.load(held).module()
        for _ in range(5):
            found = loaded(*given)
        with torch.jit.optimized_execution(False):
            wanted = loaded(*given)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=2e-6)
    (function,) = [f for f in COMPILED_FUNCTIONS if getattr(f, "module", lambda: None)() is loaded]
    assert function.replays > 0
    ((variant,),) = function.variants.values()
    return variant.replay.forward.text
