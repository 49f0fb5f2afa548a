"""Record what PyTorch answers to the programs of tests/sparse, and a file of sparse tensors that PyTorch writes.

usage: python tools/record_sparse.py

It needs the extra `oracle` and rewrites tests/sparse/answers.json and written_by_pytorch.pt.
"""

from __future__ import annotations

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.sparse.replay import ANSWERS, FILE, answer, file_contents, programs  # noqa: E402


def main() -> None:
    import torch

    found: dict = {}
    for layout, dtype, line in programs():
        found.setdefault(f"{layout} {dtype}", {})[line] = answer(torch, layout, dtype, line)
    rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(lines)}" for key, lines in found.items())
    ANSWERS.write_text("{\n" + rows + "\n}\n")
    torch.save(file_contents(torch), FILE)


if __name__ == "__main__":
    main()
