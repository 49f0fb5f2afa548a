"""Record what PyTorch answers to programs with quantized tensors, and write a checkpoint of them.

usage: python tools/record_quantized_tensors.py

It needs PyTorch, and rewrites the answers and the files of PyTorch in tests/quantized,
tests/ops/weight_only_answers.json, and networks.pt and scripted.zip in tests/ao/nn/quantized.
"""

from __future__ import annotations

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tests.ao.nn.quantized import networks, scripted
from tests.ops import weight_only_cases
from tests.quantized import cases, library_cases, packed_cases


def main() -> None:
    answers = {
        dtype: {name: cases.answer(torch, name, dtype) for name in cases.PROGRAMS} for dtype in cases.ZERO_POINTS
    }
    lines = [json.dumps({dtype: found})[1:-1] for dtype, found in answers.items()]
    cases.ANSWERS.write_text("{" + ",\n".join(lines) + "}\n")
    calls = {name: library_cases.answer(torch, name) for name in library_cases.CALLS}
    library_cases.ANSWERS.write_text(json.dumps(calls) + "\n")
    packed = {name: packed_cases.answer(torch, name) for name in packed_cases.programs(torch)}
    packed_cases.ANSWERS.write_text(json.dumps(packed) + "\n")
    torch.save(packed_cases.written(torch), packed_cases.WRITTEN)
    lines = [json.dumps({call: weight_only_cases.answer(torch, call)})[1:-1] for call in weight_only_cases.CALLS]
    weight_only_cases.ANSWERS.write_text("{" + ",\n".join(lines) + "}\n")
    torch.save(networks.record(torch), networks.WRITTEN)
    scripted.record(torch)
    x = cases.numbers(torch)
    q = torch.quantize_per_tensor(x, 0.05, 7, torch.quint8)
    torch.save({"tensor": q, "view": q[1], "channels": cases.per_channel(torch, q, x)}, cases.WRITTEN)


if __name__ == "__main__":
    main()
