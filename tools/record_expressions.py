"""Record PyTorch's answers to the expressions of some tests: values, error messages, strides, conversions of numbers.

    python tools/record_expressions.py [NAME ...]

A name is that of a file of `FILES`; all are written by default. It needs the extra `oracle`. The expressions are in the
test beside each file.
"""

from __future__ import annotations

import json
import pathlib
import sys
import warnings
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "backends")]

from tests.dispatch import test_memory_layout, test_python_scalars  # noqa: E402
from tests.ops import test_edge_values, test_linalg_error_messages  # noqa: E402


def edge_values(torch) -> dict[str, Any]:
    expressions = test_edge_values.EXPRESSIONS + test_edge_values.ON_CPU
    return {e: test_edge_values.answer(torch, torch.nn.functional, e) for e in expressions}


def linalg_error_messages(torch) -> dict[str, Any]:
    return {call: test_linalg_error_messages.answer(torch, call) for call in test_linalg_error_messages.CALLS}


def python_scalars(torch) -> dict[str, Any]:
    test = test_python_scalars
    return {
        f"{way}/{dtype}": {value: test.answer(torch, way, value, dtype) for value in test.VALUES}
        for way in test.WAYS
        for dtype in test.DTYPES
    }


FILES = {
    "edge_values": (test_edge_values.FILE, edge_values),
    "linalg_error_messages": (test_linalg_error_messages.FILE, linalg_error_messages),
    "memory_layouts": (test_memory_layout.FILE, test_memory_layout.answers),
    "python_scalars": (test_python_scalars.FILE, python_scalars),
}


def main(names: list[str]) -> None:
    import torch

    warnings.simplefilter("ignore")
    for name in names or FILES:
        path, answers = FILES[name]
        lines = [f"{json.dumps(key)}: {json.dumps(found)}" for key, found in answers(torch).items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
