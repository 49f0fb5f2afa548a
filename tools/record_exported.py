"""Writes tests/export/pytorch_programs.tar.xz: PyTorch's `.pt2` files of tests/graph_models, and their results.

    python tools/record_exported.py

Needs PyTorch. Each model is exported in eval mode and training, static, with a batch that varies, and after
`run_decompositions()`. Where nodes come from is taken out of the files, for it names folders.
"""

from __future__ import annotations

import io
import json
import logging
import pathlib
import sys
import tarfile
import warnings
import zipfile

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.graph_models import MODELS  # noqa: E402


def leaves(value: object) -> list:
    """The tensors of a result."""
    return [value] if not isinstance(value, (tuple, list)) else [leaf for part in value for leaf in leaves(part)]


def without_places(data: bytes) -> bytes:
    """A file whose nodes do not say where they come from."""
    found, out = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name in found.namelist():
            content = found.read(name)
            if name.endswith("models/model.json"):
                loaded = json.loads(content)
                clean(loaded["graph_module"]["graph"])
                content = json.dumps(loaded).encode()
            made.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def clean(graph: dict) -> None:
    for node in graph["nodes"]:
        node["metadata"] = {}
        for given in node["inputs"]:
            if "as_graph" in given["arg"]:
                clean(given["arg"]["as_graph"]["graph"])


def written(program: object) -> bytes:
    held = io.BytesIO()
    torch.export.save(program, held)
    return without_places(held.getvalue())


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    with tarfile.open(ROOT / "tests" / "export" / "pytorch_programs.tar.xz", "w:xz", preset=9) as archive:

        def add(name: str, data: bytes) -> None:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))

        for name, model in MODELS.items():
            for mode in ("eval", "train"):
                for batch in (2, 5) if model.batch is not None else (2,):
                    results = leaves(model.make(torch, mode == "train")(*model.inputs(torch, batch)))
                    held = io.BytesIO()
                    np.savez(held, *(r.detach().numpy() for r in results))
                    add(f"{name}-{mode}-{batch}.npz", held.getvalue())
                for sizes in ("static", "dynamic") if model.batch is not None else ("static",):
                    shapes = model.dynamic(torch) if sizes == "dynamic" else None
                    module = model.make(torch, mode == "train")
                    program = torch.export.export(module, model.inputs(torch), dynamic_shapes=shapes)
                    add(f"{name}-{mode}-{sizes}.pt2", written(program))
                    add(f"{name}-{mode}-{sizes}-decomposed.pt2", written(program.run_decompositions()))
            print(name, flush=True)


if __name__ == "__main__":
    main()
