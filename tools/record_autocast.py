"""Record the dtypes that PyTorch's autocast gives every sample of the op table: tests/amp/dtypes.json, so that the
tests need no PyTorch.

usage: python tools/record_autocast.py     (needs the extra `oracle`)

CUDA's list is asked for without a GPU, by tensors that have a device and a dtype but no data. Recorded is what autocast
changes; null stands for samples that PyTorch cannot run so.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import sys
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tests.ops.op_db import ROWS, leaves, load_rows, public_name
from tools.record_golden import resolve

PATH = pathlib.Path(__file__).resolve().parents[1] / "tests" / "amp" / "dtypes.json"


def on_device(torch, tree, device: str, dtype):
    """A tree with its arrays as tensors, the floating-point ones of a dtype."""
    if isinstance(tree, np.ndarray):
        made = torch.from_numpy(tree.copy())
        made = made.to(dtype) if made.is_floating_point() else made.to(torch.complex64) if made.is_complex() else made
        return torch.empty(made.shape, dtype=made.dtype, device=device) if device != "cpu" else made
    if isinstance(tree, (list, tuple)):
        return type(tree)(on_device(torch, item, device, dtype) for item in tree)
    return {k: on_device(torch, v, device, dtype) for k, v in tree.items()} if isinstance(tree, dict) else tree


def dtypes(torch, row, i: int, device: str, dtype, on: bool):
    """The dtypes of a sample's results, space-separated; an error's first words."""
    args, kwargs = on_device(torch, row.values(i), device, dtype)
    torch.manual_seed(0)
    torch.set_autocast_enabled(device, on)
    try:
        result = (
            row.oracle(torch, *args, **kwargs)
            if row.oracle is not None
            else resolve(torch, public_name(row.name))(*args, **kwargs)
        )
        return " ".join(str(leaf.dtype).removeprefix("torch.") for leaf in leaves(result))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:40]}"
    finally:
        torch.set_autocast_enabled(device, False)


def record(torch) -> dict:
    """{op/sample: {list/inputs: dtypes of the results}}, of what autocast changes."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    found: dict = {}
    for name, row in sorted(ROWS.items()):
        if row.oracle is None and public_name(name) is None:
            continue
        for i in range(len(row.samples)):
            for device, low in (("cpu", torch.bfloat16), ("cuda", torch.float16)):
                for inputs, dtype in (("float32", torch.float32), ("lower", low)):
                    with contextlib.ExitStack() as surroundings:
                        if device == "cuda":
                            surroundings.enter_context(FakeTensorMode())
                            surroundings.enter_context(torch.device(device))
                        off, on = (dtypes(torch, row, i, device, dtype, flag) for flag in (False, True))
                    if on != off or ":" in on:
                        found.setdefault(f"{name}/{i}", {})[f"{device}/{inputs}"] = (
                            None if ":" in on and ":" in off else on
                        )
    return found


def main() -> None:
    import logging

    import torch

    logging.disable()
    warnings.simplefilter("ignore")
    load_rows()
    found = record(torch)
    PATH.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
    print(f"{len(found)} samples, {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
