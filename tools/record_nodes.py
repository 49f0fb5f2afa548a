"""Record the names and edges of PyTorch's nodes for every sample of the op table and every choice of inputs that
require a gradient.

usage: python tools/record_nodes.py

It needs the extra `oracle` and rewrites tests/ops/nodes.json.
"""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from choice_recording import record_choices

from tests.ops.nodes import RECORDED, nodes_of


def main() -> None:
    import torch

    record_choices(RECORDED, lambda *given: nodes_of(torch, *given))


if __name__ == "__main__":
    main()
