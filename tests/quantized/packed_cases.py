"""Programs with levels of fewer than eight bits, embeddings and recurrent ops, for torchlite and for PyTorch
(`tools/record_quantized_tensors.py`).
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import as_json, result_or_error

ANSWERS = pathlib.Path(__file__).with_name("packed_answers.json")
WRITTEN = pathlib.Path(__file__).with_name("packed_by_pytorch.pt")
WIDTHS = {"byte": 8, "4bit": 4, "2bit": 2}


class Inputs:
    """Tensors of the programs."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.random = torch, np.random.default_rng(2)
        self.weight, self.x, self.steps = self.floats(7, 12), self.floats(3, 4), self.floats(5, 3, 4)
        self.indices, self.offsets = torch.tensor([0, 3, 6, 2, 2]), torch.tensor([0, 2, 2, 5])
        self.factors = self.floats(5)
        self.mapping = torch.tensor([0, -1, 1, 2, -1, 3, 4], dtype=torch.int32)
        self.h, self.c = self.floats(3, 5), self.floats(3, 5)

    def floats(self, *shape: int) -> Any:
        return self.torch.from_numpy(self.random.normal(size=shape).astype(np.float32))

    def rows(self, dtype: Any, count: int = 7) -> Any:
        """The packed first rows of the weight."""
        weight, most = self.weight[:count], 255 if dtype is self.torch.quint8 else 15
        low = weight.min(1)[0]
        scales = (weight.max(1)[0] - low) / most
        made = self.torch.quantize_per_channel(weight, scales, -low / scales, 0, dtype)
        return self.torch.ops.quantized.embedding_bag_prepack(made)

    def packed(self, rows: int, columns: int, half: bool = False) -> Any:
        weight, bias = self.floats(rows, columns), self.floats(rows)
        if half:
            return self.torch.ops.quantized.linear_prepack_fp16(weight, bias)
        return self.torch.ops.quantized.linear_prepack(
            self.torch.quantize_per_tensor(weight, 0.02, 0, self.torch.qint8), bias
        )

    def cell(self, gates: int, columns: int = 4, half: bool = False) -> Any:
        """The packed weights of a layer with five states."""
        parts, ops = [self.packed(gates * 5, n, half) for n in (columns, 5)], self.torch.ops.quantized
        if half:
            return ops.make_quantized_cell_params_fp16(*parts)
        biases = [self.floats(gates * 5) for _ in parts]
        return ops.make_quantized_cell_params_dynamic(*parts, *biases, True)


def levels(torch: Any, i: Inputs, dtype: Any) -> Any:
    """A tensor of a dtype, quantized for each row."""
    parameters = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1.5, 0.0, -1.0])
    return torch.quantize_per_channel(torch.linspace(-1, 3, 15).reshape(3, 5), *parameters, 0, dtype)


def _one(torch: Any, dtype: Any) -> Any:
    return torch.quantize_per_tensor(torch.linspace(-1, 3, 15).reshape(3, 5), 0.25, 2, dtype)


# Each takes torch, the inputs and a dtype of packed levels.
LEVELS: dict[str, Callable[[Any, Inputs, Any], Any]] = {
    "int_repr": lambda torch, i, dtype: _one(torch, dtype).int_repr(),
    "dequantize": lambda torch, i, dtype: _one(torch, dtype).dequantize(),
    "str": lambda torch, i, dtype: str(_one(torch, dtype)),
    "rows int_repr": lambda torch, i, dtype: levels(torch, i, dtype).int_repr(),
    "rows dequantize": lambda torch, i, dtype: levels(torch, i, dtype).dequantize(),
    "rows str": lambda torch, i, dtype: str(levels(torch, i, dtype)),
    "bytes": lambda torch, i, dtype: _one(torch, dtype).untyped_storage().nbytes(),
    "size": lambda torch, i, dtype: [list(_one(torch, dtype).shape), list(_one(torch, dtype).stride())],
    "part": lambda torch, i, dtype: _one(torch, dtype)[0].dequantize(),
    "view": lambda torch, i, dtype: _one(torch, dtype).view(5, 3).dequantize(),
    "copy": lambda torch, i, dtype: torch._empty_affine_quantized([3, 5], scale=1, zero_point=0, dtype=dtype)
    .copy_(_one(torch, dtype)).dequantize(),
    "limits": lambda torch, i, dtype: torch.quantize_per_tensor(
        torch.tensor([float("nan"), 1e9, -1e9]), 0.1, 0, dtype
    ).dequantize(),
    "empty": lambda torch, i, dtype: torch.quantize_per_tensor(torch.zeros(0, 5), 1.0, 0, dtype).int_repr(),
    "one": lambda torch, i, dtype: torch.quantize_per_tensor(torch.tensor(0.3), 0.1, 0, dtype).int_repr(),
    "type": lambda torch, i, dtype: _one(torch, dtype).type(),
    "clone": lambda torch, i, dtype: _one(torch, dtype).clone(),
    "relu": lambda torch, i, dtype: torch.relu(_one(torch, dtype)),
    "cat": lambda torch, i, dtype: torch.cat([_one(torch, dtype)] * 2),
    "fill": lambda torch, i, dtype: _one(torch, dtype).fill_(1.0),
    "integers for channels": lambda torch, i, dtype: torch.quantize_per_channel(
        torch.ones(2, 2), torch.ones(2), torch.zeros(2, dtype=torch.int64), 0, dtype
    ),
}  # fmt: skip
# Each takes torch, the inputs and the end of an op's name.
ROWS: dict[str, Callable[[Any, Inputs, str], Any]] = {
    "prepack": lambda torch, i, end: _op(torch, end, "prepack")(i.weight),
    "prepack constant": lambda torch, i, end: _op(torch, end, "prepack")(torch.ones(2, 8)),
    "prepack range": lambda torch, i, end: _op(torch, end, "prepack_with_rowwise_min_max")(
        i.weight, torch.tensor([[-3.0, 3.5]] * 7)
    ),
    "unpack": lambda torch, i, end: _op(torch, end, "unpack")(_op(torch, end, "prepack")(i.weight)),
    "bags": lambda torch, i, end: _op(torch, end, "rowwise_offsets")(
        _op(torch, end, "prepack")(i.weight), i.indices, i.offsets
    ),
    "bags with factors": lambda torch, i, end: _op(torch, end, "rowwise_offsets")(
        _op(torch, end, "prepack")(i.weight), i.indices.int(), i.offsets.int(), per_sample_weights=i.factors,
        include_last_offset=True,
    ),
    "pruned bags": lambda torch, i, end: _op(torch, end, "rowwise_offsets")(
        _op(torch, end, "prepack")(i.weight)[:5], i.indices, i.offsets, pruned_weights=True,
        compressed_indices_mapping=i.mapping,
    ),
}  # fmt: skip
SEARCHED = {end: lambda torch, i, end=end: _op(torch, end, "prepack")(i.weight, True) for end in ("4bit", "2bit")}
# Each takes torch, the inputs, the end of an op's name and a dtype.
EMBEDDINGS: dict[str, Callable[[Any, Inputs, str, Any], Any]] = {
    "embedding": lambda torch, i, end, dtype: getattr(torch.ops.quantized, f"embedding_{end}")(
        i.rows(dtype), i.indices
    ),
    "embedding of a matrix": lambda torch, i, end, dtype: getattr(torch.ops.quantized, f"embedding_{end}")(
        i.rows(dtype), i.indices[:4].reshape(2, 2)
    ),
    "bag": lambda torch, i, end, dtype: getattr(torch.ops.quantized, f"embedding_bag_{end}")(
        i.rows(dtype), i.indices, i.offsets, per_sample_weights=i.factors
    ),
    "pruned bag": lambda torch, i, end, dtype: getattr(torch.ops.quantized, f"embedding_bag_{end}")(
        i.rows(dtype, 5), i.indices, i.offsets, pruned_weights=True, compressed_indices_mapping=i.mapping
    ),
}
RECURRENT: dict[str, Callable[[Any, Inputs], Any]] = {
    **{
        f"lstm half={half}": lambda torch, i, half=half: torch.quantized_lstm(
            i.steps, [i.h[None], i.c[None]], [i.cell(4, half=half)], True, 1, 0.0, False, False, False,
            dtype=torch.float16 if half else torch.qint8, use_dynamic=True,
        )
        for half in (False, True)
    },
    "gru both ways": lambda torch, i: torch.quantized_gru(
        i.steps, torch.stack([i.h, i.c]), [i.cell(3), i.cell(3)], True, 1, 0.0, False, True, False
    ),
    "lstm of a packed sequence": lambda torch, i: torch.quantized_lstm(
        i.steps.reshape(15, 4)[:6], torch.tensor([3, 2, 1]), [i.h[None], i.c[None]], [i.cell(4)], True, 1, 0.0, False,
        False, dtype=torch.qint8, use_dynamic=True,
    ),
    "lstm cell": lambda torch, i: torch.ops.quantized.quantized_lstm_cell_dynamic(
        i.x, [i.h, i.c], i.packed(20, 4), i.packed(20, 5), i.floats(20), i.floats(20)
    ),
    **{
        f"{name} cell half={half}": lambda torch, i, name=name, gates=gates, half=half: getattr(
            torch.ops.quantized, f"quantized_{name}_cell_dynamic"
        )(
            i.x, i.h, i.packed(gates * 5, 4, half), i.packed(gates * 5, 5, half), i.floats(gates * 5),
            i.floats(gates * 5),
        )
        for name, gates in (("gru", 3), ("rnn_relu", 1), ("rnn_tanh", 1))
        for half in (False, True)
    },
    "linear half": lambda torch, i: torch.ops.quantized.linear_dynamic_fp16(i.x, i.packed(6, 4, True)),
    "linear relu half": lambda torch, i: torch.ops.quantized.linear_relu_dynamic_fp16(i.x, i.packed(6, 4, True)),
    "linear of a float weight": lambda torch, i: torch.ops.quantized.linear_dynamic_fp16_unpacked_weight(
        i.x, i.floats(6, 4) * 1e5, i.floats(6)
    ),
    "linear with float results": lambda torch, i: (
        torch.ops.quantized.linear_with_input_q_dq_qweight_dq_relu_output_fp32(i.x, 0.05, 100, i.packed(6, 4))
    ),
    "saturate": lambda torch, i: torch._saturate_weight_to_fp16(i.x * 1e6),
    "sizes": lambda torch, i: torch.ops.quantized.conv2d_unpack_sizes(
        torch.ops.quantized.conv_prepack(
            torch.quantize_per_tensor(i.floats(2, 3, 1, 1), 0.1, 0, torch.qint8), None, [1, 2], [0, 1], [1, 1], 1
        )
    ),
    "states": lambda torch, i: [
        _plain(part.__getstate__())
        for part in (i.packed(6, 4), i.packed(6, 4, True), i.rows(torch.quint8), i.rows(torch.quint4x2), i.cell(3),
                     i.cell(3, half=True), *_convolutions(torch, i))
    ],
}  # fmt: skip


def _op(torch: Any, end: str, name: str) -> Any:
    return getattr(torch.ops.quantized, f"embedding_bag_{end}_{name}")


def _convolutions(torch: Any, i: Inputs) -> list[Any]:
    ops = torch.ops.quantized
    line, image = (torch.quantize_per_tensor(i.floats(2, 2, *(3,) * rank), 0.1, 0, torch.qint8) for rank in (1, 2))
    return [
        ops.conv1d_prepack(line, i.floats(2), [2], [1], [3], 1),
        ops.conv2d_prepack(image, None, [2, 1], [1, 0], [1, 3], 1),
        ops.conv_transpose2d_prepack(image, None, [2, 1], [1, 0], [1, 0], [1, 1], 1),
    ]


def _plain(value: Any) -> Any:
    """The numbers of a state, in which there are quantized tensors and other objects."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if hasattr(value, "dequantize"):
        return (value.dequantize() if value.is_quantized else value).tolist()
    return _plain(value.__getstate__()) if hasattr(value, "_method_names") else value


def programs(torch: Any) -> dict[str, Callable[[], Any]]:
    """All programs by name."""
    made: dict[str, Callable[[], Any]] = {}
    for name, program in LEVELS.items():
        for dtype in ("quint4x2", "quint2x4"):
            made[f"{name} {dtype}"] = lambda program=program, dtype=dtype: program(
                torch, Inputs(torch), getattr(torch, dtype)
            )
    for name, program in ROWS.items():
        for end in WIDTHS:
            made[f"rows {name} {end}"] = lambda program=program, end=end: program(torch, Inputs(torch), end)
    for end, program in SEARCHED.items():
        made[f"rows searched {end}"] = lambda program=program: program(torch, Inputs(torch))
    for name, program in EMBEDDINGS.items():
        for end, dtype in (("byte", "quint8"), ("4bit", "quint4x2")):
            made[f"{name} {end}"] = lambda program=program, end=end, dtype=dtype: program(
                torch, Inputs(torch), end, getattr(torch, dtype)
            )
    for name, program in RECURRENT.items():
        made[name] = lambda program=program: program(torch, Inputs(torch))
    return made


def answer(torch: Any, name: str) -> Any:
    """Return the result of a program, or its error."""
    return result_or_error(lambda: as_json(torch, programs(torch)[name]()))


def written(torch: Any) -> dict[str, Any]:
    """A checkpoint with packed levels and packed parameters."""
    i = Inputs(torch)
    return {
        "levels": levels(torch, i, torch.quint4x2), "quarters": levels(torch, i, torch.quint2x4),
        "linear": i.packed(6, 4), "rows": i.rows(torch.quint4x2), "cell": i.cell(4),
    }  # fmt: skip
