"""Proxy: symbolic values that record operations, and TracerBase, which creates nodes."""

from __future__ import annotations

import copy
import dis
import enum
import inspect
import operator
import os
import sys
import traceback
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._types.layouts import Size
from ..nn.parameter import Parameter
from ..utils._pytree import tree_leaves
from . import traceback as fx_traceback
from ._compatibility import compatibility
from ._naming import public_name
from .graph import Graph, magic_methods, reflectable_magic_methods
from .node import Argument, Node, Target, base_types, map_arg
from .operator_schemas import check_for_mutable_operation

__all__ = [
    "Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager", "TraceError",
    "TracerBase", "assert_fn",
]  # fmt: skip

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@compatibility(is_backward_compatible=True)
class TraceError(ValueError):
    """The program cannot be traced: control flow depends on a value."""


@compatibility(is_backward_compatible=False)
class Scope:
    """Module in which a node is created: dotted name and class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


@compatibility(is_backward_compatible=False)
class ScopeContextManager:
    """Context manager that replaces a scope."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exc: Any) -> None:
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


@compatibility(is_backward_compatible=True)
class TracerBase:
    """Base class of tracers: creates nodes for Proxies."""

    graph: Graph
    record_stack_traces: bool = False
    _record_forward_stack_traces_only: bool = False
    check_mutable_operations: bool = False  # refuse mutating functions
    trace_asserts: bool = False  # record `assert value` as a node
    proxy_buffer_attributes: bool = False  # record buffer reads as nodes
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    @compatibility(is_backward_compatible=True)
    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Create a node with the current metadata."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            fx_traceback.kept(node)
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if "custom" not in node.meta and fx_traceback.get_current_meta().get("custom"):
            node.meta["custom"] = dict(fx_traceback.get_current_meta()["custom"])
        if self.record_stack_traces and not node.stack_trace:
            lines = self._filter_traceback_frames(traceback.extract_stack())
            if lines:
                node.stack_trace = "".join(lines.format()).strip()
        return node

    def _filter_traceback_frames(self, user_stack_summary: traceback.StackSummary) -> traceback.StackSummary:
        """Return the stack frames from the first `forward` on without torchlite's."""
        lines = list(user_stack_summary)
        first = next((i for i, line in enumerate(lines) if line.name == "forward"), len(lines))
        lines = [
            line
            for line in lines[first:]
            if not line.filename.startswith(_HOME)
            and (line.name == "forward" or not self._record_forward_stack_traces_only)
        ]
        return traceback.StackSummary.from_list(lines)

    def _find_user_frame(self) -> Any:
        """Return the innermost frame outside torchlite."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename.startswith(_HOME):
            frame = frame.f_back
        return frame

    @compatibility(is_backward_compatible=True)
    def proxy(self, node: Node) -> Proxy:
        """Return a Proxy of a node."""
        return Proxy(node, self)

    @compatibility(is_backward_compatible=True)
    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Create a node and return its Proxy."""
        found_args, found_kwargs = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(found_args, tuple):
            raise AssertionError(f"Expected args_ to be tuple, got {type(found_args)}")
        if not isinstance(found_kwargs, dict):
            raise AssertionError(f"Expected kwargs_ to be dict, got {type(found_kwargs)}")
        node = self.create_node(kind, target, found_args, found_kwargs, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    @compatibility(is_backward_compatible=True)
    def create_arg(self, a: Any) -> Any:
        """Convert a value to a node argument: a Proxy's node, constants, and containers. Raise NotImplementedError for
        other types.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_make") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._check_dict_key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))  # type: ignore[misc]
        if is_dataclass(a) and not isinstance(a, type):
            given = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), given)
        if a is None or a is ... or isinstance(a, (*base_types, enum.Enum)) or hasattr(a, "_is_higher_order_operator"):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _check_dict_key(self, key: Any) -> Any:
        key = self.create_arg(key)

        def raise_node_in_key(node: Node) -> Any:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")

        map_arg(key, raise_node_in_key)
        return key

    @compatibility(is_backward_compatible=True)
    def to_bool(self, obj: Proxy) -> bool:
        """Return `bool(proxy)`: raises TraceError unless overridden."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    @compatibility(is_backward_compatible=True)
    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Return `iter(proxy)`: raises TraceError unless overridden."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. A loop whose length is known can go over range(n) and take items by their "
            "index; a function that goes over a value can be one call of the graph, by torch.fx.wrap"
        )

    @compatibility(is_backward_compatible=True)
    def keys(self, obj: Proxy) -> Any:
        """Return `proxy.keys()`, for `**proxy`."""
        return Attribute(obj, "keys")()


@compatibility(is_backward_compatible=True)
class GraphAppendingTracer(TracerBase):
    """Tracer that appends to the graph of a Proxy's node."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


@compatibility(is_backward_compatible=False)
def assert_fn(x: Any) -> None:
    """Assert x; function form for graphs."""
    if not x:
        raise AssertionError("Assertion failed")


def _current_instruction(frame: Any) -> tuple[list[dis.Instruction], int]:
    """Return a frame's instructions and the index of the current one."""
    found = list(dis.get_instructions(frame.f_code))
    return found, bisect_left(found, frame.f_lasti, key=lambda x: x.offset)


@compatibility(is_backward_compatible=True)
class Proxy:
    """Symbolic value of a node: functions, methods and operators on it create nodes.

    During tracing, tensors are Proxies. Outside tracing, `Proxy(node)` creates nodes at its graph's insert point.

    Args:
        node: A node.
        tracer: The tracer that creates nodes. Default: one that appends to the node's graph.

    Example:
        >>> import torchlite as torch
        >>> graph = torch.fx.Graph()
        >>> x = torch.fx.Proxy(graph.placeholder("x"))
        >>> y = torch.relu(x) + 1
        >>> y, y.node.args
        (Proxy(add), (relu, 1))
    """

    @compatibility(is_backward_compatible=True)
    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        # The node is created on use, as a method call needs none.
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: Any) -> Proxy:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            try:
                made.__dict__[name] = copy.deepcopy(value, memo)
            except Exception:  # objects held by the program may not be copyable
                made.__dict__[name] = copy.copy(value)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        found, place = _current_instruction(sys._getframe(1))
        if found[place].opname == "UNPACK_SEQUENCE":  # `a, b = proxy` gives the number of items
            return (self[i] for i in range(found[place].argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_asserted(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    @compatibility(is_backward_compatible=True)
    def keys(self) -> Any:
        """Return the keys, for `**proxy`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable[..., Any], types: Any, args: Any = None, kwargs: Any = None
    ) -> Proxy:
        args, kwargs = tuple(args or ()), dict(kwargs or {})
        tracers = {id(leaf.tracer): leaf.tracer for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, cls)}
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers.values())} while trying to trace operations "
                f"{orig_method}"
            )
        tracer = next(iter(tracers.values()))
        name = orig_method.__name__
        if is_method(orig_method):
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=tracer.graph._target_to_str(name))


def is_method(function: Callable[..., Any]) -> bool:
    """True if a function is a Tensor method without equivalent in `torch`."""
    return (public_name(function) or "").startswith("torch.Tensor.")


def _is_asserted(frame: Any) -> bool:
    """True if a frame evaluates the condition of an `assert`."""
    found, place = _current_instruction(frame)
    while found[place].opname in ("TO_BOOL", "CACHE", "NOT_TAKEN"):
        place += 1
    if found[place].opname not in ("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE"):
        return False
    following = next(step for step in found[place + 1 :] if step.opname not in ("CACHE", "NOT_TAKEN"))
    return following.opname == "LOAD_ASSERTION_ERROR" or following.argval in (AssertionError, "AssertionError")


@compatibility(is_backward_compatible=True)
class Attribute(Proxy):
    """Attribute of a Proxy; a call records a method call."""

    @compatibility(is_backward_compatible=True)
    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """Return the node that reads the attribute, created on first access."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


@compatibility(is_backward_compatible=False)
class MetaProxy(Proxy):
    """Proxy that runs each call on the values in `meta["val"]` and records the result."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable[..., Any], types: Any, args: Any = None, kwargs: Any = None
    ) -> MetaProxy:
        args, kwargs = tuple(args or ()), dict(kwargs or {})
        first = next((arg for arg in args if isinstance(arg, MetaProxy)), None)
        if first is None:
            raise AssertionError("No MetaProxy found in arguments, but one is expected.")
        made = super().__torch_function__(orig_method, types, args, kwargs)
        with first.fake_mode:
            made.node.meta["val"] = orig_method(
                *(arg.node.meta["val"] if isinstance(arg, Proxy) else arg for arg in args), **kwargs
            )
        return MetaProxy(made.node, made.tracer, first.fake_mode)


@compatibility(is_backward_compatible=False)
class ParameterProxy(Proxy):
    """Proxy of a parameter, with concrete shape, so programs can branch on it."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param: Any = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Size:
        """Return the parameter's shape."""
        return self.param.shape

    def size(self, *args: Any) -> Any:
        """Return the parameter's shape, or one size."""
        return self.param.size(*args)

    def dim(self) -> int:
        """Return the parameter's number of dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """Return the parameter's number of dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """Return the parameter's number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """Return the parameter's number of elements."""
        return self.param.nelement()


def _make_operator_method(name: str, reflected: bool) -> Callable[..., Any]:
    target = getattr(operator, name)

    def called(self: Proxy, *args: Any) -> Proxy:
        values = (*args, self) if reflected else (self, *args)
        return self.tracer.create_proxy("call_function", target, values, {})

    called.__name__ = called.__qualname__ = f"__{'r' * reflected}{name.strip('_')}__"
    return called


for _name in magic_methods:
    setattr(Proxy, f"__{_name.strip('_')}__", _make_operator_method(_name, False))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name.strip('_')}__", _make_operator_method(_name, True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


__dir__ = make_module_dir(globals(), "base_types magic_methods reflectable_magic_methods", hidden="is_method")
