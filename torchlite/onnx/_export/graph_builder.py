"""OnnxGraphBuilder: builds an ONNX graph, with names, constants and nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._element_types import NUMBERS
from .._protobuf import Message
from ..errors import OnnxExporterError

_KINDS = {"float": 1, "int": 2, "string": 3, "tensor": 4, "graph": 5, "floats": 6, "ints": 7, "strings": 8}
_RANK = {"bool": 0, "uint8": 1, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "bfloat16": 5,
         "float32": 6, "float64": 7}  # fmt: skip
LAST = (1 << 63) - 1
SCOPES = "pkg.torch.onnx.name_scopes"  # key of a node's metadata, as PyTorch's exporter writes it


class WriterValue(NamedTuple):
    """Value of the graph: name, element type name, sizes (None if dynamic), and whether PyTorch's is contiguous."""

    name: str
    dtype: str
    sizes: tuple[int | None, ...]
    dense: bool = True

    @property
    def ndim(self) -> int:
        return len(self.sizes)

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith(("float", "bfloat"))


Value = WriterValue | str | int | float | bool


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype of torch or torchlite."""
    return str(dtype).rpartition(".")[2]


def is_fixed(size: Any) -> bool:
    """True if a size is a number."""
    return type(size) is int


def make_tensor(name: str, array: np.ndarray, dtype: str) -> Message:
    """Return a TensorProto that shares the array's memory."""
    flat = np.ascontiguousarray(array)
    data = flat.reshape(-1).view(np.uint8).data if flat.size else b""
    return Message("Tensor", dims=[int(n) for n in array.shape], data_type=NUMBERS[dtype], name=name, raw_data=data)


def make_attribute(name: str, value: Any) -> Message:
    """Return an AttributeProto of the value's type."""
    if isinstance(value, (bool, int)):
        return Message("Attribute", name=name, type=_KINDS["int"], i=int(value))
    if isinstance(value, float):
        return Message("Attribute", name=name, type=_KINDS["float"], f=value)
    if isinstance(value, str):
        return Message("Attribute", name=name, type=_KINDS["string"], s=value.encode())
    if isinstance(value, Message):
        kind, field = ("tensor", "t") if value._kind == "Tensor" else ("graph", "g")
        return Message("Attribute", name=name, type=_KINDS[kind], **{field: value})
    items = list(value)
    if all(isinstance(item, str) for item in items) and items:
        return Message("Attribute", name=name, type=_KINDS["strings"], strings=[item.encode() for item in items])
    if all(isinstance(item, int) for item in items):
        return Message("Attribute", name=name, type=_KINDS["ints"], ints=[int(item) for item in items])
    return Message("Attribute", name=name, type=_KINDS["floats"], floats=[float(item) for item in items])


def promoted_type(*dtypes: str) -> str:
    """Return the promoted element type."""
    floats = [d for d in dtypes if _RANK.get(d, 0) >= 5]
    best = max(floats or dtypes, key=lambda d: _RANK.get(d, 0))
    if {"uint8", "int8"} <= set(dtypes) and not floats:
        return "int16"
    return "float32" if {"float16", "bfloat16"} <= set(floats) and best in ("float16", "bfloat16") else best


class InputList(list):
    """Inputs that a rule of `OLDER` leaves to the original node."""


# Ops of ONNX that take floats only.
FLOATS_ONLY = frozenset(
    "Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Celu Conv ConvTranspose Cos Cosh Elu Exp "
    "Floor Gelu GlobalAveragePool GridSample GroupNormalization HardSigmoid HardSwish InstanceNormalization IsInf "
    "LayerNormalization LeakyRelu Log LogSoftmax LpPool LSTM GRU RNN MaxPool Mish NegativeLogLikelihoodLoss Reciprocal "
    "Round Selu Sigmoid Sin Sinh Softmax SoftmaxCrossEntropyLoss Softplus Softsign Sqrt Tan Tanh".split()
)

# By node kind: the version from which on it keeps its form, and the rule for older ones (`downgrade_opset`).
OLDER: dict[str, tuple[int, Callable]] = {}


class OnnxGraphBuilder:
    """Nodes and constants of a graph. `version` is the opset version."""

    def __init__(self, version: int, outer: OnnxGraphBuilder | None = None) -> None:
        self.version, self.outer = version, outer
        self.nodes: list[Message] = []
        self.initializers: dict[str, Message] = {}
        self.taken: set[str] = outer.taken if outer is not None else set()
        self.constants: dict[Any, str] = {}
        self.functions: dict[str, Message] = outer.functions if outer is not None else {}
        self.domains: dict[str, int] = outer.domains if outer is not None else {"": version}
        self.where = ""  # prefix of value names: the current node
        self.scopes: list[str] = []  # names of the modules that the current node is in, and of the node

    def name(self, wish: str) -> str:
        """Return a unique name."""
        unique, count = wish, 0
        while unique in self.taken:
            count += 1
            unique = f"{wish}_{count}"
        self.taken.add(unique)
        return unique

    def constant(self, array: Any, dtype: str) -> str:
        """Return the name of a small constant; equal constants share a name."""
        from .._tensor_data import numpy_dtype

        array = np.asarray(array, numpy_dtype(dtype))
        key = (dtype, array.shape, array.tobytes())
        if key not in self.constants:
            name = self.name("val")
            self.initializers[name] = make_tensor(name, array.copy(), dtype)
            self.constants[key] = name
        return self.constants[key]

    def put(self, value: Any, dtype: str = "int64") -> str:
        """Return the name of a value, or of a constant of the given type."""
        if isinstance(value, WriterValue):
            return value.name
        return value if isinstance(value, str) else self.constant(value, dtype)

    def op(self, kind: str, *inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node of opset 18, or of a later one that `OLDER` has a rule for, downgraded to the builder's opset if
        needed; return the name of its output, or a list.
        """
        if not domain:
            since, rule = OLDER.get(kind, (0, None))
            if rule is not None and self.version < since:
                found = rule(self, kind, list(inputs), outputs, attributes)
                if not isinstance(found, InputList):
                    return found
                inputs = tuple(found)
        return self.node(kind, inputs, outputs, attributes, domain)

    def node(self, kind: str, inputs: Sequence[Any], outputs: int, attributes: dict[str, Any], domain: str = "") -> Any:
        """Add a node without downgrade."""
        if kind in FLOATS_ONLY and isinstance(inputs[0], WriterValue) and not inputs[0].is_float:
            raise OnnxExporterError(f"ONNX's {kind} takes floating-point numbers, but the value is {inputs[0].dtype}")
        names = [self.name(f"{self.where or kind.lower()}_{kind.lower()}") for _ in range(outputs)]
        given = ["" if value is None else self.put(value) for value in inputs]
        while given and not given[-1]:
            given.pop()
        fields: dict[str, Any] = {
            "input": given, "output": list(names), "name": f"node_{names[0]}", "op_type": kind,
            "attribute": [make_attribute(n, v) for n, v in attributes.items() if v is not None],
        }  # fmt: skip
        if self.scopes:
            fields["metadata_props"] = [Message("StringString", key=SCOPES, value=repr(self.scopes))]
        if domain:
            fields["domain"] = domain
        self.nodes.append(Message("Node", **{key: value for key, value in fields.items() if value != []}))
        return names[0] if outputs == 1 else names

    def cast(self, value: Any, dtype: str, known: str | None = None) -> str:
        """Cast a value; `known` is its type if only a name is given."""
        now = value.dtype if isinstance(value, WriterValue) else known
        if isinstance(value, (bool, int, float)):
            return self.constant(value, dtype)
        return self.put(value) if now == dtype else self.op("Cast", value, to=NUMBERS[dtype])

    def ints(self, values: Sequence[Any]) -> str:
        """Return an integer list, some of which may be values."""
        if all(is_fixed(value) or isinstance(value, bool) for value in values):
            return self.constant([int(v) for v in values], "int64")
        parts = [
            self.constant([int(v)], "int64")
            if not isinstance(v, (WriterValue, str))
            else self.op("Reshape", v, self.constant([1], "int64"))
            for v in values
        ]
        return self.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def size(self, x: WriterValue, dim: int) -> Any:
        """Return a size: a number, or the name of a scalar value."""
        dim %= x.ndim
        fixed = x.sizes[dim]
        if fixed is not None:
            return fixed
        part = self.op("Shape", x, start=dim, end=dim + 1)
        return self.op("Squeeze", part, self.constant([0], "int64"))

    def shape(self, x: WriterValue) -> str:
        """Return all sizes."""
        if all(n is not None for n in x.sizes):
            return self.constant(list(x.sizes), "int64")
        return self.op("Shape", x)

    def reshape(self, x: Any, sizes: Sequence[Any]) -> str:
        """Reshape a value; 0 denotes an empty dimension here."""
        unknown = [i for i, n in enumerate(sizes) if not is_fixed(n)]
        if len(unknown) == 1 and all(is_fixed(n) and n > 0 for i, n in enumerate(sizes) if i not in unknown):
            sizes = [-1 if i in unknown else n for i, n in enumerate(sizes)]
        zero = any(is_fixed(n) and n == 0 for n in sizes)
        return self.op("Reshape", x, self.ints(sizes), allowzero=1 if zero else None)

    def unsqueeze(self, x: Any, *dims: int) -> str:
        return self.op("Unsqueeze", x, self.constant(list(dims), "int64"))

    def squeeze(self, x: Any, *dims: int) -> str:
        return self.op("Squeeze", x, self.constant(list(dims), "int64"))

    def slice(self, x: Any, dim: int, begin: Any, end: Any, step: int = 1) -> str:
        return self.op("Slice", x, self.ints([begin]), self.ints([end]), self.ints([dim]), self.ints([step]))

    def product(self, sizes: Sequence[Any]) -> Any:
        """Return the product of sizes."""
        fixed = math.prod(n for n in sizes if is_fixed(n))
        out: Any = fixed
        for n in sizes:
            if not is_fixed(n):
                out = n if is_fixed(out) and out == 1 else self.op("Mul", n, self.put(out))
        return out

    def permute(self, x: Any, order: Sequence[int]) -> str:
        return self.op("Transpose", x, perm=list(order))


_TABLE: dict[str, Callable] = {}
COMPLEX: set[Callable] = set()  # rules of complex numbers
# The type of the parts of complex numbers. ONNX has no ops for them: a value has the parts in a last dimension.
REAL_PARTS = {"complex64": "float32", "complex128": "float64"}


def translates(*names: str, complex: bool = False) -> Callable[[Callable], Callable]:
    """Register a function as export rule of ATen ops. It takes the builder and the op's arguments, values as
    `WriterValue`, and returns the name of the result or a list, in which None stands for a result that is not written.
    The rule's positional parameters are those of the op's schema in their order, others have their names. An argument
    that it has no parameter for is an error (`arguments.py`). `complex`: the rule takes complex numbers.
    """

    def register(function: Callable) -> Callable:
        if complex:
            COMPLEX.add(function)
        for name in names:
            _TABLE[name] = function
        return function

    return register


def find_rule(target: str) -> Callable | None:
    """Return the export rule of an op, by overload name, else by op name."""
    return _TABLE.get(target) or _TABLE.get(target.rpartition(".")[0])
