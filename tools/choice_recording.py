"""Records PyTorch's answers for every sample of the op table and every choice of inputs that require a gradient."""

from __future__ import annotations

import json
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

from record_golden import resolve

from tests.ops.op_db import ROWS, load_rows, public_name
from tests.ops.saved_tensors import REFUSALS, choices


def record_choices(path: pathlib.Path, answer_of: Callable[..., Any]) -> None:
    """Write the answers as a JSON file: op, sample, choice, answer.

    Args:
        path: The file.
        answer_of: Called with the function of the op, its row, the sample's number and the choice. An error in
            `REFUSALS` gives the answer "refused".
    """
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
                    answer = answer_of(call, row, i, wanted)
                except REFUSALS:
                    answer = "refused"
                found.setdefault(label, {})[choice] = answer
        if found:
            lines.append(f"{json.dumps(name)}: {json.dumps(found)}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
