"""Record which first gradients require a gradient in PyTorch, for every sample of the op table and every choice of
inputs that require a gradient.

usage: python tools/record_gradient_graphs.py

It needs the extra `oracle` and rewrites tests/ops/gradient_graphs.json.
"""

from __future__ import annotations

import json
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from record_golden import resolve

from tests.ops.gradient_graphs import RECORDED, REFUSALS, gradient_graph
from tests.ops.op_db import ROWS, load_rows, public_name
from tests.ops.saved_tensors import choices


def main() -> None:
    import torch

    warnings.simplefilter("ignore")
    load_rows()
    lines = []
    for name, row in sorted(ROWS.items()):
        if public_name(name) is None and (row.oracle is None or not row.grad):
            continue

        def call(*args, row=row, **kwargs):
            if row.oracle is not None:
                return row.oracle(torch, *args, **kwargs)
            return resolve(torch, public_name(row.name))(*args, **kwargs)

        found: dict = {}
        for i, label in enumerate(row.labels):
            for choice, wanted in choices(row, i).items():
                try:
                    answer = gradient_graph(torch, call, row, i, wanted)
                except REFUSALS:
                    answer = "refused"
                found.setdefault(label, {})[choice] = answer
        if found:
            lines.append(f"{json.dumps(name)}: {json.dumps(found)}")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
