"""GraphReader: turns the nodes of an ONNX graph into statements of NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._types.python_source import evaluate, quote
from .._element_types import NAMES, NARROW
from .._export.graph_builder import SCOPES
from .._protobuf import Message
from .._tensor_data import TensorData
from . import program_functions
from .expressions import Constant, Sizes, Statement, UnwritableError, Value, Variable, literal_array, shown

_INLINE = 8  # elements of integers that are written in the source
_FOLDED = 1 << 10  # elements of constants of which a result is computed while the program is written
_DEEPEST = 50  # functions, or modules, inside others
_MOST_VARIABLES = 200_000
_MOST_PARTS = 1000  # of a tuple
# Attributes that say what inputs say as well, or what only training needs.
_WITHOUT_EFFECT = frozenset("consumed_inputs kernel_shape hidden_size momentum is_test ratio seed stash_type sorted "
                            "output_sequence saturate allowzero dtype".split())  # fmt: skip
# Operators whose results may be much larger than their inputs.
_GROWING = frozenset("Pad Tile Expand ConstantOfShape Range OneHot EyeLike Resize Upsample ConvTranspose".split())
# Kinds of attributes by number: the field of the value.
_ATTRIBUTE_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings"}
REFUSED_TYPES = frozenset(("string", "bfloat16", "undefined", *(n for n in NAMES if n.startswith("float8")), *NARROW))

Rule = Callable[["GraphReader", "NodeArguments"], Any]
RULES: dict[str, Rule] = {}


def writes(*names: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of ONNX operators. It gets the reader and the node's arguments, and returns an
    expression, a list of expressions of several results, a value, or None after it added the statements itself.
    """

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


class NodeArguments:
    """Inputs and attributes of a node for its rule."""

    def __init__(self, reader: GraphReader, node: Message) -> None:
        self.reader, self.node, self.kind = reader, node, node.op_type
        self.inputs = [reader.value(name) if name else None for name in node.input]
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()
        self._attributes = {item.name: item for item in node.attribute}
        self._read: set[str] = set()
        self.outputs = list(node.output)
        while len(self.outputs) > 1 and not self.outputs[-1]:
            self.outputs.pop()

    @property
    def opset(self) -> int:
        return self.reader.opset

    def has(self, place: int) -> bool:
        """True if an optional input is given."""
        return place < len(self.inputs) and self.inputs[place] is not None

    def text(self, place: int) -> str:
        """Return the expression of an input. UnwritableError if it is missing."""
        value = self.inputs[place] if place < len(self.inputs) else None
        if value is None:
            raise UnwritableError(f"its input {place} is missing")
        return self.reader.text(value)

    def texts(self) -> list[str]:
        """Return the expressions of all inputs."""
        return [self.text(place) for place in range(len(self.inputs))]

    def constant(self, place: int) -> np.ndarray | None:
        """Return an input that the file has, None for others."""
        return self.reader.array(self.inputs[place]) if self.has(place) else None

    def scalar(self, place: int) -> Any:
        """Return the number that an input is, None if it is computed."""
        array = self.constant(place)
        return array.reshape(-1)[0].item() if array is not None and array.size == 1 else None

    def sizes(self, place: int) -> Sizes | None:
        """Return an input as expressions of integers, None for computed ones."""
        return self.reader.sizes(self.inputs[place]) if self.has(place) else None

    def ints(self, place: int, name: str = "") -> list[int] | None:
        """Return integers of an input that the file has, or of the attribute that older opsets have for it. None for
        computed and absent ones.
        """
        array = self.constant(place)
        if array is not None:
            return [int(n) for n in array.reshape(-1)]
        return self.integers(name, None) if name else None

    def _attribute(self, name: str, default: Any, *fields: str) -> Any:
        """Return an attribute of one of the types. UnwritableError for another type."""
        self._read.add(name)
        item = self._attributes.get(name)
        if item is not None and item.ref_attr_name:
            item = self.reader.attributes.get(item.ref_attr_name)
        if item is None:
            return default
        field = _ATTRIBUTE_FIELDS.get(item.type) or item.which(*_ATTRIBUTE_FIELDS.values())
        if field not in fields:
            raise UnwritableError(f"its attribute {shown(name)} is of another type than {fields[0]}")
        return getattr(item, field)

    def integer(self, name: str, default: int | None) -> Any:
        """Return an attribute that is an integer."""
        found = self._attribute(name, default, "i")
        return found if found is None else int(found)

    def integers(self, name: str, default: list[int] | None) -> Any:
        """Return an attribute that is a list of integers."""
        found = self._attribute(name, default, "ints", "i")
        return [int(found)] if isinstance(found, int) else None if found is None else [int(n) for n in found]

    def number(self, name: str, default: float | None) -> Any:
        """Return an attribute that is a number of single precision."""
        found = self._attribute(name, default, "f", "i")
        return None if found is None else np.float32(found)

    def numbers(self, name: str) -> list[float]:
        """Return an attribute that is a list of numbers."""
        return [float(n) for n in self._attribute(name, [], "floats")]

    def option(self, name: str, default: str) -> str:
        """Return an attribute that is a text. It may enter the source only as one of the texts that a rule knows."""
        found = self._attribute(name, default, "s")
        return found if isinstance(found, str) else bytes(found).decode("utf-8", "replace")

    def options(self, name: str, default: list[str]) -> list[str]:
        """Return an attribute that is a list of texts."""
        return [p if isinstance(p, str) else bytes(p).decode("utf-8", "replace")
                for p in self._attribute(name, default, "strings")]  # fmt: skip

    def graph(self, name: str) -> Message:
        """Return an attribute that is a graph."""
        found = self._attribute(name, None, "g")
        if not isinstance(found, Message):
            raise UnwritableError(f"its graph {shown(name)} is missing")
        return found

    def tensor(self, name: str) -> Constant | None:
        """Return an attribute that is a tensor, None if it is absent."""
        found = self._attribute(name, None, "t")
        return self.reader.constant(found) if isinstance(found, Message) else None

    def check_all_read(self) -> None:
        """Raise UnwritableError for an attribute that the rule did not read."""
        unread = sorted(set(self._attributes) - self._read - _WITHOUT_EFFECT)
        if unread:
            raise UnwritableError(f"its attribute {shown(unread[0])} is not supported")


class GraphReader:
    """Statements and values of a graph. A body of control flow has a reader whose `outer` is that of the graph around
    it.
    """

    def __init__(self, opset: int, data: TensorData, outer: GraphReader | None = None) -> None:
        self.opset, self.data, self.outer = opset, data, outer
        self.functions: dict[tuple[str, str], Message] = outer.functions if outer else {}
        self.open: list[tuple[str, str]] = outer.open if outer else []  # functions that are being read
        self.attributes: dict[str, Message] = outer.attributes if outer else {}  # of the function
        self.known_shapes: dict[int, list[int | None]] = outer.known_shapes if outer else {}
        self.values: dict[str, Value] = {}
        self.statements: list[Statement] = []
        self.hints: dict[int, str] = outer.hints if outer else {}
        self.weights: dict[str, np.ndarray] = outer.weights if outer else {}
        self.refused: dict[str, None] = outer.refused if outer else {}
        self.scope: tuple[str, ...] | None = None

    # -- values

    def value(self, name: str) -> Value:
        """Return a value by its name in the file."""
        reader: GraphReader | None = self
        while reader is not None:
            if name in reader.values:
                return reader.values[name]
            reader = reader.outer
        raise UnwritableError(f"there is no value {shown(name)}")

    def variable(self, hint: str) -> Variable:
        """Return a new variable, whose name begins with the hint."""
        number = len(self.hints)
        self.hints[number] = hint
        return Variable(number)

    def text(self, value: Value) -> str:
        """Return the expression of a value as an array."""
        if isinstance(value, Variable):
            return value.text
        if isinstance(value, Sizes):
            if value.scalar:
                return f"np.int64({value.items[0]})"
            if len(value.items) == 1 and value.items[0].startswith("*"):
                return f"np.array({value.items[0][1:]}, dtype=np.int64)"
            return f"np.array([{', '.join(value.items)}], dtype=np.int64)"
        array = value.array
        small = array.dtype.kind in "iub" and array.size <= _INLINE
        if array.ndim == 0 or array.ndim < 3 and (small or array.size == 1):
            return literal_array(array)
        return self.weight(value)

    def weight(self, value: Constant) -> str:
        """Return the expression of an array of the weights' file."""
        wish, stored = value.key or "constant", value.array if value.stored is None else value.stored
        key, count = wish, 0
        while key in self.weights and not self.is_same(self.weights[key], stored, value.key):
            count += 1
            key = f"{wish}_{count}"
        self.weights[key] = stored
        return f"weights[{quote(key)}]{value.view}"

    @staticmethod
    def is_same(known: np.ndarray, stored: np.ndarray, key: str | None) -> bool:
        """True for the same tensor of the file, and for equal arrays that it has no name for."""
        if known is stored or key:
            return known is stored
        return known.dtype == stored.dtype and known.shape == stored.shape and known.tobytes() == stored.tobytes()

    @staticmethod
    def array(value: Value | None) -> np.ndarray | None:
        """Return the array of a constant, None for others."""
        if isinstance(value, Sizes) and all(re.fullmatch(r"-?\d+", item) for item in value.items):
            numbers = np.array([int(item) for item in value.items], np.int64)
            return numbers.reshape(()) if value.scalar else numbers
        return value.array if isinstance(value, Constant) else None

    @staticmethod
    def sizes(value: Value | None) -> Sizes | None:
        """Return a value as expressions of integers, None if it is computed otherwise."""
        if isinstance(value, Sizes):
            return value
        if isinstance(value, Constant) and value.array.dtype == np.int64 and value.array.ndim <= 1:
            return Sizes(tuple(str(int(n)) for n in value.array.reshape(-1)), value.array.ndim == 0)
        return None

    # -- graphs

    def constant(self, tensor: Message) -> Constant:
        """Return a tensor of the file."""
        array, kind = self.data.array(tensor)
        if kind in REFUSED_TYPES:
            raise UnwritableError(f"the tensor {shown(tensor.name)} is of {kind}, which NumPy lacks")
        return Constant(array, safe_key(tensor.name))

    def initializers(self, graph: Message) -> None:
        """Add the graph's tensors."""
        if graph.sparse_initializer:
            self.refused["sparse tensors"] = None
        for tensor in graph.initializer:
            try:
                self.values[tensor.name] = self.constant(tensor)
            except UnwritableError as error:
                self.refused[str(error)] = None
                self.values[tensor.name] = self.variable("refused")

    def nodes(self, nodes: list[Message]) -> None:
        """Add statements for nodes; list those that cannot be written in `refused`."""
        for node in nodes:
            try:
                self.node(node)
            except (RuntimeError, ValueError, TypeError, LookupError, ArithmeticError) as error:  # a damaged node
                name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
                self.refused[f"{name} (node {shown(node.name or ', '.join(node.output))}): {error}"] = None
                self.values.update((name, self.variable("refused")) for name in node.output)

    def node(self, node: Message) -> None:
        """Add the statements of a node."""
        if (node.domain, node.op_type) in self.functions:
            self.function(self.functions[node.domain, node.op_type], node)
            return
        rule = RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        if rule is None:
            raise UnwritableError("the operator is not supported")
        given = NodeArguments(self, node)
        self.scope = node_scope(node, given)
        result = rule(self, given)
        given.check_all_read()
        if result is not None:
            folded = self.folded(given, result)
            self.assign(given.outputs, result if folded is None else folded, variable_hint(node.op_type))

    def function(self, function: Message, node: Message) -> None:
        """Add the statements of a call of a function that the file defines."""
        key = (node.domain, node.op_type)
        if key in self.open or len(self.open) > _DEEPEST or len(self.hints) > _MOST_VARIABLES:
            raise UnwritableError("the functions of the file call each other too often")
        given = NodeArguments(self, node)
        inner = GraphReader(opset_of(function.opset_import) or self.opset, self.data, self)
        inner.outer, inner.scope = None, self.scope
        inner.attributes = {item.name: item for item in function.attribute_proto} | {
            name: self.attributes.get(item.ref_attr_name, item) for name, item in given._attributes.items()
        }
        inner.values = {
            name: value for name, value in zip(function.input, given.inputs, strict=False) if value is not None
        }
        self.open.append(key)
        inner.nodes(function.node)
        self.open.pop()
        self.statements += inner.statements
        self.values.update(
            (name, inner.value(inside)) for name, inside in zip(node.output, function.output, strict=False) if name
        )

    def folded(self, given: NodeArguments, result: Any) -> Any:
        """Return the values of expressions of constants, None for others: large ones, and those that may grow."""
        values = [value for value in given.inputs if value is not None]
        arrays = [self.array(value) for value in values]
        if given.kind in _GROWING or not isinstance(result, (str, list)) or not arrays:
            return None
        if any(array is None for array in arrays) or sum(array.size for array in arrays if array is not None) > _FOLDED:
            return None
        space = {**vars(program_functions), "weights": self.weights}
        keys = [value.key for value in values if isinstance(value, Constant) and value.key]
        key = f"{keys[0].removesuffix(f'.{snake(given.kind)}')}.{snake(given.kind)}" if keys else None
        try:
            with np.errstate(all="ignore"):
                found = [
                    Constant(np.asarray(evaluate(part, space)), key) if isinstance(part, str) else part
                    for part in (result if isinstance(result, list) else [result])
                ]
        except (ValueError, TypeError, IndexError, ArithmeticError) as error:
            raise UnwritableError(f"its constants do not fit: {error}") from None
        return found if isinstance(result, list) else found[0]

    def assign(self, names: list[str], result: Any, hint: str) -> None:
        """Give results their names, and add the statement of a computed one."""
        if not isinstance(result, list):
            if len(names) > 1:
                raise UnwritableError(f"it has {len(names)} results, of which only one is supported")
            if isinstance(result, (Constant, Sizes, Variable)):
                self.values[names[0]] = result
                return
            if TOKEN_ALONE.fullmatch(result):
                self.values[names[0]] = Variable(int(result[1:-1]))
                return
            self.values[names[0]] = target = self.variable(hint)
            self.add([target.number], result)
            return
        if len(names) > len(result):
            raise UnwritableError(f"it has {len(names)} results, of which {len(result)} are supported")
        for name, part in zip(names, result, strict=False):
            if name:
                self.assign([name], part, hint)

    def add(self, targets: list[int], text: str) -> None:
        """Add a statement that assigns variables."""
        self.statements.append(Statement(targets, text, self.scope))

    def unpack(self, text: str, count: int, hint: str) -> list[Variable]:
        """Add a statement that assigns the parts of a tuple or list."""
        if not 0 < count <= _MOST_PARTS:
            raise UnwritableError(f"it has {count} parts")
        targets = [self.variable(hint) for _ in range(count)]
        if count == 1:
            self.add([targets[0].number], f"{text}[0]")
        else:
            self.add([target.number for target in targets], text)
        return targets


def live_statements(statements: list[Statement], wanted: set[int]) -> list[Statement]:
    """Return the statements that wanted variables depend on."""
    kept, needed = [], set(wanted)
    for statement in reversed(statements):
        if needed & set(statement.targets):
            kept.append(statement)
            needed.update(statement.reads)
    return kept[::-1]


def opset_of(imports: list[Message]) -> int:
    """Return the version of ONNX's own operators, 0 if there is none."""
    return max((item.version for item in imports if item.domain in ("", "ai.onnx")), default=0)


TOKEN_ALONE = re.compile("\x00[0-9]+\x00")


def call(function: str, *args: str, **options: str | None) -> str:
    """Return the call of a function of the program, without options that are None."""
    named = [f"{name}={text}" for name, text in options.items() if text is not None]
    return f"{function}({', '.join([*args, *named])})"


def snake(name: str) -> str:
    """Return a name in lower case with underscores.

    >>> snake("BatchNormalization"), snake("LSTM"), snake("GatherND")
    ('batch_normalization', 'lstm', 'gather_nd')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


_HINTS = {"Slice": "part", "Pow": "power", "Not": "inverted", "Pad": "padded", "And": "both", "Or": "either"}


def variable_hint(kind: str) -> str:
    """Return how the names of an operator's results begin."""
    return _HINTS.get(kind) or snake(kind)


def safe_key(name: str) -> str:
    """Return the name of an array in the weights' file, made of a tensor's name: letters, digits, dots, underscores."""
    return re.sub(r"[^0-9A-Za-z_.]+", "_", name)[:60].strip("._") or "weight"


def node_scope(node: Message, given: NodeArguments) -> tuple[str, ...] | None:
    """Return the path of the module that a node belongs to: from its metadata, its name, or its weights' names. None
    if nothing says it.
    """
    for entry in node.metadata_props:
        if entry.key == SCOPES:
            names = re.findall(r"'([^']*)'", entry.value)
            return _path_parts(names[-2]) if len(names) > 1 else ()
    if "/" in node.name:
        parts = [part for part in node.name.partition(";")[0].split("/") if part]
        return tuple(piece for part in parts[:-1][:_DEEPEST] for piece in _path_parts(part))[:_DEEPEST]
    keys = [v.key for v in given.inputs if isinstance(v, Constant) and v.key and "." in v.key]
    return _path_parts(keys[0].rpartition(".")[0]) if keys else None


def _path_parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split(".") if part)[:_DEEPEST]
