"""Record what PyTorch answers to the lines of tests/behaviours.

usage: python tools/record_behaviours.py

It needs the extra `oracle` and rewrites tests/behaviours/answers.json.
"""

from __future__ import annotations

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.behaviours.replay import ANSWERS, answer, lines  # noqa: E402


def main() -> None:
    import torch

    torch.sparse.check_sparse_tensor_invariants.disable()  # else the first sparse tensor of the process warns
    found = {line: answer(torch, line) for line in lines()}
    rows = ",\n".join(f"{json.dumps(line)}: {json.dumps(found[line])}" for line in sorted(found))
    ANSWERS.write_text("{\n" + rows + "\n}\n")


if __name__ == "__main__":
    main()
