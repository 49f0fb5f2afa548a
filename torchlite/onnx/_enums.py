"""Export options under PyTorch's names: TrainingMode, OperatorExportTypes."""

import enum

from ._element_types import NUMBERS


class TrainingMode(enum.Enum):
    """Mode in which a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """Kind of ops to export."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


TensorProtoDataType = enum.IntEnum(
    "TensorProtoDataType",
    {
        {"float32": "FLOAT", "float64": "DOUBLE"}.get(name, name.upper().replace("FLOAT8_", "FLOAT8")): number
        for name, number in NUMBERS.items()
        if number <= NUMBERS["float8_e5m2fnuz"]
    },
)
