"""Record what PyTorch answers for every sample of the op table, so that the tests need no PyTorch.

usage: python tools/record_golden.py [FAMILY ...]

It needs the extra `oracle` and rewrites tests/ops/golden/FAMILY.npz, all families by default.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tests.ops.op_db import GOLDEN, ROWS, leaves, load_rows, public_name, to_tensors


def resolve(torch, dotted: str):
    """torch's function of a dotted name; Tensor methods unbound."""
    found = torch
    for part in dotted.split("."):
        found = getattr(found, part)
    return found


def record(torch, row) -> dict[str, np.ndarray]:
    """The answers for one row."""
    name = public_name(row.name)
    if row.oracle is None and name is None:
        return {}
    out = {}
    for i in range(len(row.samples)):
        args, kwargs = to_tensors(row.values(i), library=torch)
        torch.manual_seed(0)
        result = row.oracle(torch, *args, **kwargs) if row.oracle is not None else resolve(torch, name)(*args, **kwargs)
        if row.free and callable(row.free):
            result = row.free(result)
        for j, leaf in enumerate(leaves(result)):
            leaf = leaf.detach().resolve_conj().resolve_neg()
            out[f"{row.name}/{i}/{j}"] = (leaf.float() if leaf.dtype is torch.bfloat16 else leaf).numpy().copy()
    return out


def main() -> None:
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    load_rows()
    GOLDEN.mkdir(exist_ok=True)
    for family in options.families or sorted({row.family for row in ROWS.values()}):
        answers: dict[str, np.ndarray] = {}
        for name, row in sorted(ROWS.items()):
            if row.family != family:
                continue
            try:
                answers.update(record(torch, row))
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}")
        path = GOLDEN / f"{family}.npz"
        temporary = path.with_suffix(".tmp.npz")
        np.savez_compressed(temporary, **answers)
        temporary.replace(path)
        print(f"{family}: {len(answers)} answers, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
