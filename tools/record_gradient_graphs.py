"""Record which first gradients require a gradient in PyTorch, for every sample of the op table and every choice of
inputs that require a gradient.

usage: python tools/record_gradient_graphs.py

It needs the extra `oracle` and rewrites tests/ops/gradient_graphs.json.
"""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from choice_recording import record_choices

from tests.ops.gradient_graphs import RECORDED, gradient_graph


def main() -> None:
    import torch

    record_choices(RECORDED, lambda *given: gradient_graph(torch, *given))


if __name__ == "__main__":
    main()
