"""Record what PyTorch answers to programs that observe, round and train: tests/ao/quantization/answers.json,
and to networks that are traced and quantized: graph_answers.json.

usage: python tools/record_quantization.py [PROGRAM ...]     (needs the extra `oracle`)
"""

from __future__ import annotations

import itertools
import json
import pathlib
import sys

import torch
import torch.ao.nn.intrinsic.qat
import torch.ao.nn.qat.dynamic
import torch.ao.quantization.quantize_fx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tests.ao.quantization import cases, graph_cases


def main() -> None:
    names = sys.argv[1:] or list(cases.PROGRAMS)
    known = json.loads(cases.ANSWERS.read_text()) if sys.argv[1:] else {}
    found = {**known, **{name: cases.answer(torch, name) for name in names}}
    lines = [json.dumps({name: found[name]})[1:-1] for name in cases.PROGRAMS]
    cases.ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def record_graphs() -> None:
    found = {}
    for name in graph_cases.NETWORKS:
        found[name] = graph_cases.answer(torch, name)
        # Numbers differ by one step of the last scale where a product lies between two levels.
        numbers = sorted(set(found[name]["numbers"]))
        steps = [b - a for a, b in itertools.pairwise(numbers) if b - a > 1e-6]
        has_levels = found[name]["quantized"][-2].startswith("call_method dequantize")
        found[name]["step"] = min(steps) if has_levels else 0.0
    lines = [json.dumps({name: answer})[1:-1] for name, answer in found.items()]
    graph_cases.ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
    record_graphs()
