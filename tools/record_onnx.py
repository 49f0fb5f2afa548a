"""Record ONNX files that tests read: `python tools/record_onnx.py`, with torch, onnx and onnxscript installed.

tests/onnx/files gets some models of tests/graph_models as PyTorch exports them, and nodes.zip: of each op the smallest
case of ONNX's own tests, as the model, its inputs and outputs.
"""

from __future__ import annotations

import io
import pathlib
import sys
import zipfile

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.graph_models import MODELS  # noqa: E402

FOLDER = ROOT / "tests" / "onnx" / "files"
NAMES = "mlp lenet resnet vae detection recsys moe gnn pointnet lstm gru swin".split()
DYNAMIC = ("lenet", "detection", "recsys", "gru")


def models() -> None:
    for name in NAMES:
        model = MODELS[name]
        shapes = model.dynamic(torch) if name in DYNAMIC else None
        program = torch.onnx.export(model.make(torch), model.inputs(torch), dynamic_shapes=shapes, verbose=False)
        proto = program.model_proto
        for node in proto.graph.node:  # where each came from, in the exporter's words
            del node.metadata_props[:]
            node.doc_string = ""
        for value in proto.graph.value_info:
            del value.metadata_props[:]
        (FOLDER / f"{name}.onnx").write_bytes(proto.SerializeToString())


def _plain(value: object) -> np.ndarray | None:
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    # Text, sequences and types that NumPy has no dtype for stay with tests/oracle.
    if not isinstance(value, np.ndarray | np.generic) or np.asarray(value).dtype.type.__module__ != "numpy":
        return None
    return None if np.asarray(value).dtype.kind == "O" else np.asarray(value)


def nodes() -> None:
    best: dict[tuple[str, int], tuple[int, str, bytes]] = {}
    for case in collect_testcases(None):
        kind, inputs, outputs = case.model.graph.node[0].op_type, *case.data_sets[0]
        arrays = [_plain(value) for value in (*inputs, *outputs)]
        if len(case.model.graph.node) > 1 or any(a is None for a in arrays) or kind in ("Bernoulli", "ImageDecoder"):
            continue
        if "training_dropout" in case.name or "inverse" in case.name:
            continue
        data = io.BytesIO()
        named = {f"input_{i}": a for i, a in enumerate(arrays[: len(inputs)])}
        named |= {f"output_{i}": a for i, a in enumerate(arrays[len(inputs) :])}
        np.savez(data, **named)
        whole = zipfile.ZipFile(data)
        packed = b"".join(whole.read(n) for n in whole.namelist())
        if len(packed) > 6000:
            continue
        key = (kind, len(case.model.graph.node[0].attribute) > 0)
        entry = (len(packed), case.name, case.model.SerializeToString(), data.getvalue())
        best[key] = min(best.get(key, entry), entry)
    with zipfile.ZipFile(FOLDER / "nodes.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for _, name, model, data in sorted(best.values(), key=lambda item: item[1]):
            for path, content in ((f"{name}.onnx", model), (f"{name}.npz", data)):
                archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    nodes()
    models()
