"""Bombs among `.pt2` files, TorchScript programs, expressions of sizes and checkpoints; `bombs` says what these are."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

from .bombs import Bomb

BOMBS: dict[str, Bomb] = {}


def _script(body: str, *, extra: str = "", deflated: bool = True) -> bytes:
    """A TorchScript archive of one module whose `forward` has this body, after other texts."""
    text = (
        f"{extra}class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
        f"  def forward(self: __torch__.M,\n    x: Tensor):\n{body}"
    )
    pickled = b"\x80\x02c__torch__\nM\nq\x00)\x81}(X\x08\x00\x00\x00trainingq\x01\x89ubq\x02."
    file = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("m/data.pkl", pickled)
        archive.writestr("m/code/__torch__.py", text, kind)
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/version", b"10\n")
    return file.getvalue()


def _lines(*lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines)


def _running(name: str, *lines: str) -> None:
    """A program that loads, and is to be stopped when it runs."""
    data = _script(_lines(*lines))
    BOMBS[f"script: {name}"] = lambda: (data, "torch.jit.load(path)(torch.ones(2))")


def _loading(name: str, make: Callable[[], bytes]) -> None:
    BOMBS[f"script: {name}"] = lambda: (make(), "torch.jit.load(path)(torch.ones(2))")


_running("percent width", 'return "%1000000000d" % 1')
_running("text times number", 'a = "a" * 1000000000', "return len(a)")
_loading(
    "30,000 functions",
    lambda: _script(_lines("return x"), extra="".join(f"def f{i}(x):\n  return x\n" for i in range(30_000))),
)
