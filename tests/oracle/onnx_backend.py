"""`python -m tests.oracle.onnx_backend [node simple pytorch-converted pytorch-operator light]`: ONNX's own test sets.

Needs the package onnx (and onnxruntime for the answers of `light`). Prints how many cases give the answers, and which
do not. Those that draw random numbers cannot: Bernoulli and Dropout in training.
"""

from __future__ import annotations

import pathlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import torchlite as torch

_DATA = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
_AS = {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8, "float4_e2m1fn": np.float32,
       "float8_e8m0fnu": np.float32}  # fmt: skip
Case = tuple[str, Any, list[tuple[list, list]], float, float]


def value_of(value: Any) -> Any:
    """An input or answer as torchlite has it."""
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if value is None or isinstance(value, list):
        return None if value is None else [value_of(item) for item in value]
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        flat = [item.decode() if isinstance(item, bytes) else item for item in array.ravel()]
        return np.array(flat, object).reshape(array.shape)
    array = array.astype(_AS.get(array.dtype.name, array.dtype))
    return torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape))


def compare(got: Any, want: Any, rtol: float, atol: float) -> None:
    if isinstance(want, list):
        assert len(got) == len(want), "another number of elements"
        for a, b in zip(got, want, strict=True):
            compare(a, b, rtol, atol)
    elif isinstance(want, np.ndarray):
        assert got.shape == want.shape and got.tolist() == want.tolist(), "other text"
    elif want is None:
        assert got is None, "something where there is nothing"
    else:
        assert got.dtype is want.dtype and got.shape == want.shape, (
            f"{got.dtype} {got.shape}, {want.dtype} {want.shape}"
        )
        wide = torch.float64 if got.is_floating_point() else got.dtype
        rtol = max(rtol, 2**-6) if got.dtype is torch.bfloat16 else rtol  # as in ONNX's own runner
        a, b = got.detach().to(wide).numpy(), want.to(wide).numpy()
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def of_code() -> Iterator[Case]:
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        yield case.name, case.model.SerializeToString(), case.data_sets, max(case.rtol, 1e-3), max(case.atol, 1e-7)


def _message(path: pathlib.Path, type: Any) -> Any:
    data = path.read_bytes()
    if type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if type.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def of_folders(kind: str) -> Iterator[Case]:
    for folder in sorted(path for path in (_DATA / kind).iterdir() if path.is_dir()):
        graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
        sets = []
        for one in sorted(folder.glob("test_data_set_*")):
            parts = []
            for name, infos in (("input", graph.input), ("output", graph.output)):
                count = len(list(one.glob(f"{name}_*.pb")))
                parts.append([_message(one / f"{name}_{i}.pb", infos[i].type) for i in range(count)])
            sets.append((parts[0], parts[1]))
        yield folder.name, folder / "model.onnx", sets, 1e-3, 1e-5


def of_light() -> Iterator[Case]:
    import onnxruntime

    for path in sorted((_DATA / "light").glob("*.onnx")):
        graph = onnx.load(path).graph
        known = {item.name for item in graph.initializer}
        draw = np.random.default_rng(0)
        feeds = {
            item.name: draw.random([d.dim_value or 1 for d in item.type.tensor_type.shape.dim]).astype("float32")
            for item in graph.input if item.name not in known
        }  # fmt: skip
        answers = onnxruntime.InferenceSession(str(path)).run(None, feeds)
        yield path.name, path, [(list(feeds.values()), answers)], 1e-3, 1e-5


def main() -> None:
    kinds = sys.argv[1:] or ["node", "simple", "pytorch-converted", "pytorch-operator", "light"]
    warnings.simplefilter("ignore")
    for kind in kinds:
        right, wrong = 0, []
        for name, model, sets, rtol, atol in {"node": of_code, "light": of_light}.get(
            kind, lambda k=kind: of_folders(k)
        )():
            try:
                module = torch.onnx.load(model)
                for inputs, answers in sets:
                    with torch.no_grad():
                        found = module(*map(value_of, inputs))
                    found = list(found) if isinstance(found, tuple) and len(answers) > 1 else [found]
                    compare(found, [value_of(answer) for answer in answers], rtol, atol)
                right += 1
            except Exception as error:
                wrong.append(f"    {name}: {type(error).__name__}: {' '.join(str(error).split())[:150]}")
        print(f"{kind}: {right} of {right + len(wrong)}", *wrong, sep="\n", flush=True)


if __name__ == "__main__":
    main()
