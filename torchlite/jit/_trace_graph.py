"""Traces a run to a TorchScript graph: the tracer behind `torch.jit._get_trace_graph`."""

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
from ._graph_ir import _LITERALS, _NUMBERED, CompleteTensorType, Graph, Value
from ._types import AnyType, DeviceObjType, IntType, ListType, TensorType, Type


class TracingState:
    """Tracing state returned by `torch._C._get_tracing_state()` during a trace."""

    def __init__(self) -> None:
        self._scopes: list[str] = []

    def push_scope(self, name: str) -> None:
        """Enter a scope."""
        self._scopes.append(name)

    def pop_scope(self) -> None:
        """Leave the innermost scope."""
        self._scopes.pop()

    def current_scope(self) -> str:
        """Return the scopes, joined by "/"."""
        return "/".join(self._scopes)


class _ScopedGraph(Recorded):
    """Recorded graph whose nodes store their scope."""

    state: TracingState

    def create_node(self, *args: Any, **kwargs: Any) -> Any:
        """Create a node with its scope."""
        node = super().create_node(*args, **kwargs)
        node.meta["scope"] = self.state.current_scope()
        return node


def trace_graph(f: Any, args: Any = (), kwargs: Any = None, return_inputs: bool = False) -> Any:
    """Return the graph of a run, its outputs, and the inputs if requested."""
    args = args if isinstance(args, tuple) else (args,)
    kwargs = kwargs or {}
    recorded = _ScopedGraph()
    recorded.state = TracingState()
    recorder = OpRecorder(recorded, lambda tensor: recorded.get_attr(_add_constant(constants, tensor)), whole=True)
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


def _add_constant(constants: dict[str, Any], tensor: Any) -> str:
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
    """Converter of a recorded graph to operators by schema name."""

    def __init__(self, inputs: list[tuple[Any, Type]], constants: dict[str, Any]) -> None:
        self._inputs, self._constants = inputs, constants
        self._graph = Graph()
        self._values: dict[Any, Any] = {}

    def graph(self, recorded: Any, results: list[Any]) -> Graph:
        """Return the converted graph."""
        made = self._graph
        for node, kind in self._inputs:
            self._values[node] = made._add_value(made._param, kind)
        for node in recorded.nodes:
            if node.op == "get_attr":
                (self._values[node],) = self._add_constant(self._constants[node.target], node.meta["scope"])
            elif node.op == "call_function":
                self._convert_call(node)
        made._results = [self._values[node] for node in results]
        return made

    def _add_constant(self, value: Any, scope: str) -> list[Value]:
        if _is_tensor(value):
            kind: Type = CompleteTensorType(value)
        elif isinstance(value, torch.device):
            kind = DeviceObjType()
        elif isinstance(value, _NUMBERED):
            from ._dtype_codes import to_code

            value, kind = to_code(value), IntType()
        else:
            kind = _LITERALS.get(type(value), AnyType)()
        return self._graph._add_node("prim::Constant", [], scope, [kind], value)

    def _value_of(self, argument: Any, scope: str) -> Value:
        if isinstance(argument, torch.fx.Node):
            found: Value = self._values[argument]
            return found
        if not isinstance(argument, (list, tuple)):
            return self._add_constant(argument, scope)[0]
        items = [self._value_of(item, scope) for item in argument]
        kind = ListType(items[0].type() if items else TensorType())
        return self._graph._add_node("prim::ListConstruct", items, scope, [kind])[0]

    def _convert_call(self, node: Any) -> None:
        scope, seen = node.meta["scope"], node.meta.get("val")
        if node.target is operator.getitem:
            self._values[node] = self._values[node.args[0]][node.args[1]]  # one of several results
            return
        if not hasattr(node.target, "_schema"):
            if seen is not None:
                raise NotImplementedError(f"torch.jit._get_trace_graph: {node.target} is no operator of such a graph")
            return  # grad mode changes, not part of the graph
        name, values = _schema_call(node)
        inputs = [self._value_of(value, scope) for value in values]
        several = isinstance(seen, (list, tuple))
        outs = self._graph._add_node(name, inputs, scope, [_type_of(one) for one in (seen if several else [seen])])
        self._values[node] = outs if several else outs[0]


def _type_of(value: Any) -> Type:
    return CompleteTensorType(value) if _is_tensor(value) else _LITERALS.get(type(value), AnyType)()


def _schema_call(node: Any) -> tuple[str, list[Any]]:
    """Return the operator name of a node, and all arguments in schema order."""
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
