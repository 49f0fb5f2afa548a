"""Record the names of PyTorch's public namespaces for tests/public_names/test_dir.py, which then needs no PyTorch.

usage: python tools/record_public_names.py     (needs the extra `oracle`; rewrites tests/public_names/pytorch_names.txt)

A line is a namespace and its names: `linalg: LinAlgError cholesky ...`, `torch` being the first.
"""

from __future__ import annotations

import importlib
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
SPACES = (
    "amp", "autograd", "distributions", "fft", "func", "linalg", "nn", "nn.functional", "nn.init", "nn.parallel",
    "optim", "optim.lr_scheduler", "random", "return_types", "signal", "special", "utils.data",
)  # fmt: skip


def main() -> None:
    import torch

    lines = []
    for name in ("", *SPACES):
        module = importlib.import_module(f"torch.{name}") if name else torch
        lines.append(f"{name or 'torch'}: {' '.join(n for n in dir(module) if not n.startswith('__'))}\n")
    (ROOT / "tests" / "public_names" / "pytorch_names.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
