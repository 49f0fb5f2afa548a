"""Record what PyTorch answers to programs that observe, round and train: tests/ao/quantization/answers.json.

usage: python tools/record_quantization.py [PROGRAM ...]     (needs the extra `oracle`)
"""

from __future__ import annotations

import json
import pathlib
import sys

import torch
import torch.ao.nn.intrinsic.qat
import torch.ao.nn.qat.dynamic

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tests.ao.quantization import cases


def main() -> None:
    names = sys.argv[1:] or list(cases.PROGRAMS)
    known = json.loads(cases.ANSWERS.read_text()) if sys.argv[1:] else {}
    found = {**known, **{name: cases.answer(torch, name) for name in names}}
    lines = [json.dumps({name: found[name]})[1:-1] for name in cases.PROGRAMS]
    cases.ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
