"""Record what PyTorch answers to programs that observe, round and train: tests/ao/quantization/answers.json,
and to networks that are traced and quantized: graph_answers.json. Programs that prune and compare networks are in
tests/ao/pruning and tests/ao/ns.

usage: python tools/record_quantization.py [PROGRAM ...]     (needs the extra `oracle`)
"""

from __future__ import annotations

import itertools
import json
import pathlib
import sys
from typing import Any

import torch
import torch.ao.nn.intrinsic.qat
import torch.ao.nn.qat.dynamic
import torch.ao.quantization.quantize_fx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tests.ao.ns import cases as comparison_cases
from tests.ao.pruning import cases as pruning_cases
from tests.ao.quantization import cases, graph_cases


def record(folder: Any, names: list[str]) -> None:
    chosen = [name for name in names or folder.PROGRAMS if name in folder.PROGRAMS]
    if not chosen:
        return
    known = json.loads(folder.ANSWERS.read_text()) if names else {}
    found = {**known, **{name: cases.answer(torch, name, folder.PROGRAMS) for name in chosen}}
    lines = [json.dumps({name: found[name]})[1:-1] for name in folder.PROGRAMS]
    folder.ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> None:
    for folder in (cases, pruning_cases, comparison_cases):
        record(folder, sys.argv[1:])


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
    if not sys.argv[1:]:
        record_graphs()
