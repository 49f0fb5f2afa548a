"""A run of a module as a graph of operators: what `torch.jit._get_trace_graph` gives to tools that count them."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any

import torchlite as torch
from torchlite.fx import Graph as Recorded
from torchlite.fx.experimental._op_recorder import OpRecorder
from torchlite.utils import _pytree as pytree

from .._settings.jit_state import STATE
from ._types import (
    AnyType,
    BoolType,
    DeviceObjType,
    FloatType,
    IntType,
    ListType,
    NoneType,
    StringType,
    TensorType,
    Type,
)

_LITERALS: dict[type, Any] = {
    int: IntType, bool: BoolType, float: FloatType, str: StringType, type(None): NoneType,
}  # fmt: skip
_FIELDS = {int: "i", bool: "i", float: "f", str: "s", torch.Tensor: "t"}
_NUMBERED = (torch.dtype, torch.layout, torch.memory_format)


class CompleteTensorType(TensorType):
    """A tensor's type with what was seen of it."""

    def __init__(self, tensor: Any) -> None:
        self._sizes, self._strides = list(tensor.shape), list(tensor.stride())
        self._dtype, self._device, self._requires = tensor.dtype, tensor.device, tensor.requires_grad

    def kind(self) -> str:
        """ "TensorType"."""
        return "TensorType"

    def sizes(self) -> list[int]:
        """The tensor's shape."""
        return self._sizes

    def varyingSizes(self) -> list[int]:
        """The tensor's shape."""
        return self._sizes

    def strides(self) -> list[int]:
        """The tensor's strides, in elements."""
        return self._strides

    def dim(self) -> int:
        """How many dimensions the tensor has."""
        return len(self._sizes)

    def dtype(self) -> torch.dtype:
        """The tensor's dtype."""
        return self._dtype

    def scalarType(self) -> str:
        """The dtype's name in C++, such as "Float"."""
        return torch.empty(0, dtype=self._dtype).type().rpartition(".")[2].removesuffix("Tensor")

    def device(self) -> torch.device:
        """The tensor's device."""
        return self._device

    def requiresGrad(self) -> bool:
        """Whether the tensor has or wants a history."""
        return self._requires

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self._sizes))
        return (
            f"{self.scalarType()}({sizes}{', ' if sizes else ''}strides={self._strides}, "
            f"requires_grad={int(self._requires)}, device={self._device})"
        )


class Value:
    """An input of a graph, or what a node gives."""

    def __init__(self, node: Node, number: int, kind: Type) -> None:
        self._node, self._number, self._type = node, number, kind
        self._name = str(number)
        self._uses: list[Node] = []

    def debugName(self) -> str:
        """The name that the graph's text has."""
        return self._name

    def setDebugName(self, name: str) -> Value:
        """Give it another name."""
        self._name = name
        return self

    def unique(self) -> int:
        """Its number in the graph."""
        return self._number

    def type(self) -> Type:
        """Its type: of a tensor with sizes and dtype."""
        return self._type

    def isCompleteTensor(self) -> bool:
        """Whether it is a tensor whose sizes are known."""
        return isinstance(self._type, CompleteTensorType)

    def requires_grad(self) -> bool:
        """Whether it is a tensor that has or wants a history."""
        return isinstance(self._type, CompleteTensorType) and self._type.requiresGrad()

    def node(self) -> Node:
        """The node that gives it."""
        return self._node

    def uses(self) -> list[Node]:
        """The nodes that take it."""
        return self._uses

    def toIValue(self) -> Any:
        """The value of a constant; None for what a run gives."""
        return self._node.constant

    def __repr__(self) -> str:
        return f"{self._name} defined in ({self._node!r})"

    def __str__(self) -> str:
        return f"%{self._name} : {self._type}"


class Node:
    """A call of an operator, a constant, or a list made of values."""

    def __init__(self, graph: Graph, kind: str, inputs: list[Value], scope: str, constant: Any = None) -> None:
        self._graph, self._kind, self._inputs, self._scope = graph, kind, inputs, scope
        self._outputs: list[Value] = []
        self.constant = constant
        for value in inputs:
            value._uses.append(self)

    def kind(self) -> str:
        """The operator, such as "aten::linear" or "prim::Constant"."""
        return self._kind

    def scopeName(self) -> str:
        """The scopes that were pushed when it was called, joined by "/"."""
        return self._scope

    def inputs(self) -> Iterator[Value]:
        """What it takes, as the operator's schema has it: defaults are constants."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """What it gives."""
        return iter(self._outputs)

    def inputsSize(self) -> int:
        """How many values it takes."""
        return len(self._inputs)

    def outputsSize(self) -> int:
        """How many values it gives."""
        return len(self._outputs)

    def inputsAt(self, place: int) -> Value:
        """What it takes at a place."""
        return self._inputs[place]

    def outputsAt(self, place: int) -> Value:
        """What it gives at a place."""
        return self._outputs[place]

    def input(self) -> Value:
        """The only value that it takes."""
        (value,) = self._inputs
        return value

    def output(self) -> Value:
        """The only value that it gives."""
        (value,) = self._outputs
        return value

    def attributeNames(self) -> list[str]:
        """`["value"]` of a constant that is not None."""
        return [] if self.constant is None else ["value"]

    def hasAttribute(self, name: str) -> bool:
        """Whether it has an attribute."""
        return name in self.attributeNames()

    def kindOf(self, name: str) -> str:
        """The letter of an attribute's type: i, f, s, t; "ival" for others."""
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
    """The nodes of a run in order, with its inputs, the module's parameters and buffers among them, and outputs."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._count = 0
        self._param = Node(self, "prim::Param", [], "")
        self._results: list[Value] = []

    def nodes(self) -> Iterator[Node]:
        """The nodes."""
        return iter(self._nodes)

    def inputs(self) -> Iterator[Value]:
        """The inputs of the run, then parameters and buffers."""
        return self._param.outputs()

    def outputs(self) -> Iterator[Value]:
        """What the run gives."""
        return iter(self._results)

    def param_node(self) -> Node:
        """The node that gives the inputs."""
        return self._param

    def return_node(self) -> Node:
        """A node that takes the outputs."""
        return Node(self, "prim::Return", list(self._results), "")

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """The nodes of a kind."""
        return [node for node in self._nodes if node.kind() == kind]

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of a kind."""
        return next(iter(self.findAllNodes(kind)), None)

    def __str__(self) -> str:
        inputs = ",\n      ".join(map(str, self.inputs()))
        lines = "".join(f"  {node!r}\n" for node in self._nodes)
        return f"graph({inputs}):\n{lines}  return ({', '.join('%' + v.debugName() for v in self._results)})\n"

    __repr__ = __str__

    def _value(self, node: Node, kind: Type) -> Value:
        value = Value(node, self._count, kind)
        self._count += 1
        node._outputs.append(value)
        return value

    def _add(self, kind: str, inputs: list[Value], scope: str, types: list[Type], constant: Any = None) -> list[Value]:
        node = Node(self, kind, inputs, scope, constant)
        self._nodes.append(node)
        return [self._value(node, one) for one in types]


class TracingState:
    """What `torch._C._get_tracing_state()` gives while a run is recorded."""

    def __init__(self) -> None:
        self._scopes: list[str] = []

    def push_scope(self, name: str) -> None:
        """Name what is called from now on."""
        self._scopes.append(name)

    def pop_scope(self) -> None:
        """Leave the scope that was entered last."""
        self._scopes.pop()

    def current_scope(self) -> str:
        """The scopes, joined by "/"."""
        return "/".join(self._scopes)


class _ScopedGraph(Recorded):
    """A recorded graph whose nodes know in which scope they were called."""

    state: TracingState

    def create_node(self, *args: Any, **kwargs: Any) -> Any:
        """A node, with its scope."""
        node = super().create_node(*args, **kwargs)
        node.meta["scope"] = self.state.current_scope()
        return node


def trace_graph(f: Any, args: Any = (), kwargs: Any = None, return_inputs: bool = False) -> Any:
    """The graph of a run of a function or module, what it gave, and the inputs where they are wanted."""
    args = args if isinstance(args, tuple) else (args,)
    kwargs = kwargs or {}
    recorded = _ScopedGraph()
    recorded.state = TracingState()
    recorder = OpRecorder(recorded, lambda tensor: recorded.get_attr(_is_constant(constants, tensor)), whole=True)
    constants: dict[str, Any] = {}
    leaves, spec = pytree.tree_flatten((args, kwargs))
    leaves = [leaf.detach().requires_grad_(leaf.requires_grad) if _is_tensor(leaf) else leaf for leaf in leaves]
    state = f.state_dict(keep_vars=True) if isinstance(f, torch.nn.Module) else {}
    given = [leaf for leaf in leaves if _is_tensor(leaf)] + [value for value in state.values() if _is_tensor(value)]
    inputs: list[tuple[Any, Any]] = []
    for number, tensor in enumerate(given):
        node = recorded.placeholder(f"input_{number}")
        inputs.append((node, CompleteTensorType(tensor)))
        if not recorder.knows(tensor):
            recorder.track(tensor, node)
    again, keywords = pytree.tree_unflatten(leaves, spec)
    with _set_tracing_state(recorded.state), recorder:
        out = f(*again, **keywords)
    results = [recorder.node_of(leaf) for leaf in pytree.tree_leaves(out) if _is_tensor(leaf)]
    graph = _GraphConverter(inputs, constants).graph(recorded, results)
    return (graph, out, args) if return_inputs else (graph, out)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_constant(constants: dict[str, Any], tensor: Any) -> str:
    name = f"constant_{len(constants)}"
    constants[name] = tensor
    return name


@contextlib.contextmanager
def _set_tracing_state(state: TracingState) -> Iterator[None]:
    before, STATE.tracing = STATE.tracing, state
    try:
        yield
    finally:
        STATE.tracing = before


class _GraphConverter:
    """A recorded graph as one of operators by the names of their schemas."""

    def __init__(self, inputs: list[tuple[Any, Type]], constants: dict[str, Any]) -> None:
        self._inputs, self._constants = inputs, constants
        self._graph = Graph()
        self._values: dict[Any, Any] = {}

    def graph(self, recorded: Any, results: list[Any]) -> Graph:
        """The graph."""
        made = self._graph
        for node, kind in self._inputs:
            self._values[node] = made._value(made._param, kind)
        for node in recorded.nodes:
            if node.op == "get_attr":
                (self._values[node],) = self._constant(self._constants[node.target], node.meta["scope"])
            elif node.op == "call_function":
                self._call(node)
        made._results = [self._values[node] for node in results]
        return made

    def _constant(self, value: Any, scope: str) -> list[Value]:
        if _is_tensor(value):
            kind: Type = CompleteTensorType(value)
        elif isinstance(value, torch.device):
            kind = DeviceObjType()
        elif isinstance(value, _NUMBERED):
            from ._dtype_codes import to_code

            value, kind = to_code(value), IntType()
        else:
            kind = _LITERALS.get(type(value), AnyType)()
        return self._graph._add("prim::Constant", [], scope, [kind], value)

    def _value_of(self, argument: Any, scope: str) -> Value:
        if isinstance(argument, torch.fx.Node):
            found: Value = self._values[argument]
            return found
        if not isinstance(argument, (list, tuple)):
            return self._constant(argument, scope)[0]
        items = [self._value_of(item, scope) for item in argument]
        kind = ListType(items[0].type() if items else TensorType())
        return self._graph._add("prim::ListConstruct", items, scope, [kind])[0]

    def _call(self, node: Any) -> None:
        scope, seen = node.meta["scope"], node.meta.get("val")
        if node.target is operator.getitem:
            self._values[node] = self._values[node.args[0]][node.args[1]]  # one of several results
            return
        if not hasattr(node.target, "_schema"):
            if seen is not None:
                raise NotImplementedError(f"torch.jit._get_trace_graph: {node.target} is no operator of such a graph")
            return  # of grad mode, which the graph does not have
        name, values = _schema_call(node)
        inputs = [self._value_of(value, scope) for value in values]
        several = isinstance(seen, (list, tuple))
        outs = self._graph._add(name, inputs, scope, [_type_of(one) for one in (seen if several else [seen])])
        self._values[node] = outs if several else outs[0]


def _type_of(value: Any) -> Type:
    return CompleteTensorType(value) if _is_tensor(value) else _LITERALS.get(type(value), AnyType)()


def _schema_call(node: Any) -> tuple[str, list[Any]]:
    """The name of what a node calls, and all its arguments in the schema's order."""
    schema = node.target._schema
    given = dict(zip([a.name for a in schema.arguments], node.args, strict=False)) | node.kwargs
    values = [given.get(a.name, a.default_value) for a in schema.arguments]
    name: str = schema.name
    short = name.partition("::")[2]
    if short in ("conv1d", "conv2d", "conv3d") and not isinstance(given.get("padding", 0), str):
        spatial = int(short[4])
        groups, values = values[6], [[v] * spatial if isinstance(v, int) else v for v in values[:6]]
        return "aten::_convolution", [*values, False, [0] * spatial, groups, False, False, True, True]
    if short.startswith("conv_transpose"):
        image, weight, bias, stride, padding, output_padding, groups, dilation = values
        lists = [[v] * int(short[14]) if isinstance(v, int) else v for v in (stride, padding, dilation, output_padding)]
        values = [image, weight, bias, *lists[:3], True, lists[3], groups, False, False, True, True]
        return "aten::_convolution", values
    return name, values


__all__ = ["Graph", "Node", "TracingState", "Value", "trace_graph"]
