"""Graph IR of TorchScript as Python classes: Graph, Node, Value and CompleteTensorType of torch._C."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torchlite as torch

from ._types import BoolType, FloatType, IntType, NoneType, StringType, TensorType, Type

_LITERALS: dict[type, Any] = {
    int: IntType, bool: BoolType, float: FloatType, str: StringType, type(None): NoneType,
}  # fmt: skip
_FIELDS = {int: "i", bool: "i", float: "f", str: "s", torch.Tensor: "t"}
_NUMBERED = (torch.dtype, torch.layout, torch.memory_format)


class CompleteTensorType(TensorType):
    """Tensor type with recorded shape, strides, dtype and device."""

    def __init__(self, tensor: Any) -> None:
        self._sizes, self._strides = list(tensor.shape), list(tensor.stride())
        self._dtype, self._device, self._requires = tensor.dtype, tensor.device, tensor.requires_grad

    def kind(self) -> str:
        """Return "TensorType"."""
        return "TensorType"

    def sizes(self) -> list[int]:
        """Return the shape."""
        return self._sizes

    def varyingSizes(self) -> list[int]:
        """Return the shape."""
        return self._sizes

    def strides(self) -> list[int]:
        """Return the strides in elements."""
        return self._strides

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._sizes)

    def dtype(self) -> torch.dtype:
        """Return the dtype."""
        return self._dtype

    def scalarType(self) -> str:
        """Return the dtype's C++ name, such as "Float"."""
        return torch.empty(0, dtype=self._dtype).type().rpartition(".")[2].removesuffix("Tensor")

    def device(self) -> torch.device:
        """Return the device."""
        return self._device

    def requiresGrad(self) -> bool:
        """True if the tensor requires a gradient."""
        return self._requires

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self._sizes))
        return (
            f"{self.scalarType()}({sizes}{', ' if sizes else ''}strides={self._strides}, "
            f"requires_grad={int(self._requires)}, device={self._device})"
        )


class Value:
    """Input of a graph or output of a node."""

    def __init__(self, node: Node, number: int, kind: Type) -> None:
        self._node, self._number, self._type = node, number, kind
        self._name = str(number)
        self._uses: list[Node] = []

    def debugName(self) -> str:
        """Return the name in the graph's text."""
        return self._name

    def setDebugName(self, name: str) -> Value:
        """Set the name."""
        self._name = name
        return self

    def unique(self) -> int:
        """Return the number in the graph."""
        return self._number

    def type(self) -> Type:
        """Return the type, for tensors with sizes and dtype."""
        return self._type

    def isCompleteTensor(self) -> bool:
        """True for a tensor with known sizes."""
        return isinstance(self._type, CompleteTensorType)

    def requires_grad(self) -> bool:
        """True for a tensor that requires a gradient."""
        return isinstance(self._type, CompleteTensorType) and self._type.requiresGrad()

    def node(self) -> Node:
        """Return the producing node."""
        return self._node

    def uses(self) -> list[Node]:
        """Return the users."""
        return self._uses

    def toIValue(self) -> Any:
        """Return the value of a constant, None for others."""
        return self._node.constant

    def __repr__(self) -> str:
        return f"{self._name} defined in ({self._node!r})"

    def __str__(self) -> str:
        return f"%{self._name} : {self._type}"


class Node:
    """Operator call, constant, or list construction."""

    def __init__(self, graph: Graph, kind: str, inputs: list[Value], scope: str, constant: Any = None) -> None:
        self._graph, self._kind, self._inputs, self._scope = graph, kind, inputs, scope
        self._outputs: list[Value] = []
        self.constant = constant
        for value in inputs:
            value._uses.append(self)

    def kind(self) -> str:
        """Return the operator, such as "aten::linear" or "prim::Constant"."""
        return self._kind

    def scopeName(self) -> str:
        """Return the scopes at the call, joined by "/"."""
        return self._scope

    def inputs(self) -> Iterator[Value]:
        """Return the inputs in schema order; defaults are constants."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """Return the outputs."""
        return iter(self._outputs)

    def inputsSize(self) -> int:
        """Return the number of inputs."""
        return len(self._inputs)

    def outputsSize(self) -> int:
        """Return the number of outputs."""
        return len(self._outputs)

    def inputsAt(self, place: int) -> Value:
        """Return an input by position."""
        return self._inputs[place]

    def outputsAt(self, place: int) -> Value:
        """Return an output by position."""
        return self._outputs[place]

    def input(self) -> Value:
        """Return the single input."""
        (value,) = self._inputs
        return value

    def output(self) -> Value:
        """Return the single output."""
        (value,) = self._outputs
        return value

    def attributeNames(self) -> list[str]:
        """Return `["value"]` for a constant that is not None, else an empty list."""
        return [] if self.constant is None else ["value"]

    def hasAttribute(self, name: str) -> bool:
        """True if the node has an attribute."""
        return name in self.attributeNames()

    def kindOf(self, name: str) -> str:
        """Return the kind of an attribute: i, f, s, t; "ival" for others."""
        if not self.hasAttribute(name):
            raise IndexError(f"required keyword attribute '{name}' is undefined")
        return _FIELDS.get(type(self.constant), "ival")

    def __getitem__(self, name: str) -> Any:
        self.kindOf(name)
        return self.constant

    i = f = s = t = ival = __getitem__

    def __repr__(self) -> str:
        outputs = ", ".join(map(str, self._outputs))
        value = "" if self.constant is None else f"[value={self.constant!r}]"
        return f"{outputs} = {self._kind}{value}({', '.join('%' + v.debugName() for v in self._inputs)})"


class Graph:
    """Nodes of a run in order, inputs including the module's parameters and buffers, and outputs."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._count = 0
        self._param = Node(self, "prim::Param", [], "")
        self._results: list[Value] = []

    def nodes(self) -> Iterator[Node]:
        """Return the nodes."""
        return iter(self._nodes)

    def inputs(self) -> Iterator[Value]:
        """Return the inputs of the run, then parameters and buffers."""
        return self._param.outputs()

    def outputs(self) -> Iterator[Value]:
        """Return the outputs."""
        return iter(self._results)

    def param_node(self) -> Node:
        """Return the node whose outputs are the graph's inputs."""
        return self._param

    def return_node(self) -> Node:
        """Return the node whose inputs are the graph's outputs."""
        return Node(self, "prim::Return", list(self._results), "")

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """Return all nodes of a kind."""
        return [node for node in self._nodes if node.kind() == kind]

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """Return the first node of a kind."""
        return next(iter(self.findAllNodes(kind)), None)

    def __str__(self) -> str:
        inputs = ",\n      ".join(map(str, self.inputs()))
        lines = "".join(f"  {node!r}\n" for node in self._nodes)
        return f"graph({inputs}):\n{lines}  return ({', '.join('%' + v.debugName() for v in self._results)})\n"

    __repr__ = __str__

    def _add_value(self, node: Node, kind: Type) -> Value:
        value = Value(node, self._count, kind)
        self._count += 1
        node._outputs.append(value)
        return value

    def _add_node(
        self, kind: str, inputs: list[Value], scope: str, types: list[Type], constant: Any = None
    ) -> list[Value]:
        node = Node(self, kind, inputs, scope, constant)
        self._nodes.append(node)
        return [self._add_value(node, one) for one in types]
