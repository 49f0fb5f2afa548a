"""Record what onnxruntime gives for RNN, GRU, LSTM and DynamicQuantizeLSTM with their options, as small models.

usage: python tools/record_recurrent.py

It needs onnx and onnxruntime, and rewrites tests/onnx/files/recurrent.zip.
"""

from __future__ import annotations

import io
import itertools
import pathlib
import zipfile
from typing import Any

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

ARCHIVE = pathlib.Path(__file__).resolve().parents[1] / "tests/onnx/files/recurrent.zip"
rng = np.random.default_rng(0)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4, "DynamicQuantizeLSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3, "DynamicQuantizeLSTM": 3}
OTHERS = [
    "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign",
    "Softplus",
]  # fmt: skip
ALPHAS = {"Affine": 0.8, "LeakyRelu": 0.1, "ThresholdedRelu": 0.2, "ScaledTanh": 0.9, "HardSigmoid": 0.3, "Elu": 0.7}
BETAS = {"Affine": 0.1, "ScaledTanh": 0.8, "HardSigmoid": 0.4}
STEPS, FEATURES, HIDDEN = 5, 3, 6
SHAPES: dict[str, tuple] = {"x": ("T", "N", FEATURES), "lengths": ("N",)}


def f(*shape: int, size: float = 0.6) -> Any:
    return (rng.standard_normal(shape) * size).astype("f4")


def levels(dtype: str, *shape: int) -> Any:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def make_quantization(ways: int, dtype: str, by_column: bool, size: float) -> list:
    shape = (ways, 4 * HIDDEN) if by_column else (ways,)
    # onnxruntime takes other zero points of columns than 0 for unsigned levels alone.
    zero = np.zeros(shape, dtype) if by_column else levels(dtype, *shape) // 4
    return [((abs(f(*shape)) * 0.01 + 0.002) * size).astype("f4"), zero.astype(dtype)]


def make_case(
    op: str, direction: str, *, batch: int = 2, lengths: Any = None, state: bool = False, peepholes: bool = False,
    bias: bool = True, activations: list | None = None, dtype: str = "i1", by_column: bool = False, **attributes: Any,
) -> tuple[bytes, dict, list]:  # fmt: skip
    """Return a model, its inputs and its results."""
    ways = 2 if direction == "bidirectional" else 1
    columns = GATES[op] * HIDDEN
    size = 0.6 if activations is None else 0.15  # some functions grow
    quantized = op == "DynamicQuantizeLSTM"
    given: dict[str, Any] = {"x": f(STEPS, batch, FEATURES)}
    constants: dict[str, Any] = {}
    if quantized:
        constants |= {"w": levels(dtype, ways, FEATURES, columns), "r": levels(dtype, ways, HIDDEN, columns)}
    else:
        constants |= {"w": f(ways, columns, FEATURES), "r": f(ways, columns, HIDDEN, size=size)}
    if bias:
        constants["b"] = f(ways, 2 * columns)
    if lengths is not None:
        given["lengths"] = np.array(lengths, "i4")
    if state:
        given["h"] = f(ways, batch, HIDDEN)
        if columns == 4 * HIDDEN:
            given["c"] = f(ways, batch, HIDDEN)
    if peepholes:
        constants["p"] = f(ways, 3 * HIDDEN)
    names = ["x", "w", "r", "b", "lengths", "h"] + ["c", "p"] * (columns == 4 * HIDDEN)
    if quantized:
        for name, arrays in (("w", make_quantization(ways, dtype, by_column, size)),
                             ("r", make_quantization(ways, dtype, by_column, size))):  # fmt: skip
            constants |= {f"{name}_scale": arrays[0], f"{name}_zero": arrays[1]}
        names += ["w_scale", "w_zero", "r_scale", "r_zero"]
    if activations is not None:
        attributes["activations"] = activations
        attributes["activation_alpha"] = [ALPHAS[name] for name in activations if name in ALPHAS]
        attributes["activation_beta"] = [BETAS[name] for name in activations if name in BETAS]
    names = [name if name in given or name in constants else "" for name in names]
    while not names[-1]:
        names.pop()
    results = ["y", "y_h"] + ["y_c"] * (columns == 4 * HIDDEN)
    domain = "com.microsoft" if quantized else ""
    node = helper.make_node(
        op, names, results, domain=domain, hidden_size=HIDDEN, direction=direction,
        **{name: value for name, value in attributes.items() if value != []},
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "graph",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), SHAPES.get(n, (ways, "N", HIDDEN)))
         for n, v in given.items()],
        [helper.make_tensor_value_info(n, 1, None) for n in results],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # several threads quantize parts of a batch apart
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return model, given, session.run(results, given)


def cases() -> Any:
    """Yield the name and the arguments of each case."""
    ways = ("forward", "reverse", "bidirectional")
    options: dict[str, list[tuple[str, dict]]] = {
        op: [("lengths", {"lengths": [5, 3], "state": True}), ("clip", {"clip": 0.5}), ("one", {"batch": 1}),
             ("ended", {"lengths": [2, 1], "state": True, "bias": False})]
        for op in GATES
    }  # fmt: skip
    options["GRU"] += [("reset", {"linear_before_reset": 1, "lengths": [4, 2]}), ("state", {"state": True}),
                       ("reset_clip", {"linear_before_reset": 1, "clip": 0.4, "state": True})]  # fmt: skip
    for op in ("LSTM", "DynamicQuantizeLSTM"):
        options[op] += [("peepholes", {"peepholes": True, "state": True}), ("forget", {"input_forget": 1}),
                        ("all", {"peepholes": True, "lengths": [3, 5], "state": True, "clip": 0.6})]  # fmt: skip
    options["DynamicQuantizeLSTM"] += [
        (f"{dtype}_{by_column}", {"dtype": dtype, "by_column": by_column, "batch": 3})
        for dtype, by_column in itertools.product(("i1", "u1"), (False, True))
    ]
    for op, found in options.items():
        for direction in ways:
            for name, arguments in found:
                yield f"{op}_{direction}_{name}", (op, direction), arguments
    for op, count in FUNCTIONS.items():
        for place, direction in enumerate(ways):
            for k in range(0, len(OTHERS), 2):
                total = count * (2 if direction == "bidirectional" else 1)
                names = [OTHERS[(k + place + 3 * j) % len(OTHERS)] for j in range(total)]
                yield f"{op}_{direction}_functions{k}", (op, direction), {"activations": names}


def main() -> None:
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, given, arguments in cases():
            try:
                model, inputs, results = make_case(*given, **arguments)
            except Exception as error:  # what onnxruntime refuses
                print(f"{name}: {error}")
                continue
            held = io.BytesIO()
            np.savez(held, **{f"i_{key}": value for key, value in inputs.items()},
                     **{f"o{k}": value for k, value in enumerate(results)})  # fmt: skip
            for suffix, data in (("onnx", model), ("npz", held.getvalue())):
                info = zipfile.ZipInfo(f"{name}.{suffix}")
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, data)


if __name__ == "__main__":
    main()
