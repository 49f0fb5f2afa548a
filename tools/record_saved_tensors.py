"""Record what PyTorch's nodes keep of inputs and outputs for every sample of the op table and every choice of inputs
that want a gradient.

usage: python tools/record_saved_tensors.py

It needs the extra `oracle` and rewrites tests/ops/saved_tensors.json.
"""

from __future__ import annotations

import json
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from record_golden import resolve

from tests.ops.op_db import ROWS, load_rows, public_name
from tests.ops.saved_tensors import RECORDED, floats, look, subsets


def main() -> None:
    import torch

    def place_of(tensor):
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()

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

        for i in range(len(row.samples)):
            args, kwargs = row.values(i)
            for wanted in subsets(floats((args, kwargs))):
                try:
                    found = look(torch, call, args, kwargs, wanted, place_of)
                except (RuntimeError, TypeError, ValueError, AttributeError):
                    continue  # PyTorch refuses it
                key = f"{name}/{i}/{','.join(map(str, wanted))}"
                lines.append(f"{json.dumps(key)}: {json.dumps(found, separators=(',', ':'))}")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
