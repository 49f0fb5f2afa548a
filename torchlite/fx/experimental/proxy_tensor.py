"""`make_fx`: traces a function to a graph of ATen ops."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ..._dispatch.dispatch_state import MODE
from ..._dispatch.interceptors import show_only_within, stack
from ..._dispatch.mode_restoring import restores_modes
from ..._symbolic_shapes import SymFloat, SymInt
from ..._tensor import Tensor
from ...amp.autocast_mode import without_cast_cache
from ...nn import Module, Parameter
from ...utils import _pytree as pytree
from .._codegen import _PyTreeCodeGen, _PyTreeInfo
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ._op_recorder import OpRecorder, current_recorder

__all__ = [
    "ProxyTorchDispatchMode", "disable_proxy_modes_tracing", "get_innermost_proxy_mode", "get_proxy_mode", "make_fx",
    "maybe_disable_thunkify", "maybe_enable_thunkify", "py_sym_types",
]  # fmt: skip

ProxyTorchDispatchMode = OpRecorder
py_sym_types = (SymInt, SymFloat)


def get_proxy_mode() -> OpRecorder | None:
    """Return the recording mode, None if there is none."""
    return current_recorder()


get_innermost_proxy_mode = get_proxy_mode


@contextlib.contextmanager
def disable_proxy_modes_tracing() -> Iterator[OpRecorder | None]:
    """Disable recording within the context."""
    found = current_recorder()
    with show_only_within([item for item in stack.items if not isinstance(item, OpRecorder)]):
        yield found


@contextlib.contextmanager
def maybe_disable_thunkify() -> Iterator[None]:
    """No-op: sizes are computed on access."""
    yield


@contextlib.contextmanager
def maybe_enable_thunkify() -> Iterator[None]:
    """No-op: sizes are computed on access."""
    yield


class _MakeFxTrace:
    """One recorded run of a function."""

    @restores_modes
    def __init__(self, f: Callable, args: tuple, table: Any, pre_dispatch: bool) -> None:
        self.f, self.root, self.graph = f, Module(), Graph()
        self.names: dict[int, str] = {}
        self.objects: dict[int, Node] = {}
        leaves, self.spec = pytree.tree_flatten(args)
        self.recorder = OpRecorder(self.graph, self._constant_node, whole=True, decompositions=table)
        self.recorder.object_node = self._object_node
        self.recorder.decomposing = not pre_dispatch
        self.recorder.grad_mode = before = MODE.grad if pre_dispatch else None
        self.inputs = [
            self._add_input(leaf, name) for leaf, name in zip(leaves, _argument_leaf_names(f, args), strict=True)
        ]
        with without_cast_cache(), self.recorder:
            result = f(*args)
        if before is not None:
            self.recorder.follow(before)
        self.result = pytree.tree_map(self.recorder.argument, result)

    def _add_input(self, leaf: Any, name: str) -> Node:
        node = self.graph.placeholder(f"{name}_1")
        if isinstance(leaf, Tensor):
            self.recorder.bind(node, leaf)
        else:
            node.meta["val"] = leaf
        return node

    def _constant_node(self, tensor: Any) -> Node:
        """Return the node of a constant tensor."""
        if id(tensor) not in self.names:
            kind = "param" if isinstance(tensor, Parameter) else "tensor"
            number = sum(name.startswith(f"_{kind}") for name in self.names.values())
            name = self.names[id(tensor)] = f"_{kind}_constant{number}"
            if isinstance(tensor, Parameter):
                self.root.register_parameter(name, tensor)
            else:
                self.root.register_buffer(name, tensor)
        name = self.names[id(tensor)]
        return self.graph.create_node("get_attr", name, (), {}, name)

    def _object_node(self, value: Any) -> Node:
        """Return the node of an object of a class that the library defines, such as packed weights."""
        if id(value) not in self.objects:
            name = f"_torchbind_obj{len(self.objects)}"
            setattr(self.root, name, value)
            self.objects[id(value)] = self.graph.create_node("get_attr", name, (), {}, name)
        return self.objects[id(value)]

    def module(self) -> GraphModule:
        """Return the function as a module."""
        for name, module in self.recorder.modules.items():
            self.root.add_module(name, module)
        if all(child.is_leaf() for child in self.spec.children()):
            self.graph.output(self.result)
        else:
            leaves, out_spec = pytree.tree_flatten(self.result)
            self.graph.output(leaves)
            names = [node.name.removesuffix("_1") for node in self.inputs]
            if self.spec.num_children != len(names):
                names = _parameter_names(self.f, self.spec.num_children)
            self.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, self.spec, out_spec)))
        return GraphModule(self.root, self.graph)


def _parameter_names(f: Any, count: int) -> list[str]:
    function = f.forward if isinstance(f, Module) else f
    try:
        found = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    except (TypeError, ValueError):
        found = []
    names = [p.name for p in found if p.kind is not p.VAR_POSITIONAL]
    return [*names, *(f"arg_{i}" for i in range(len(names), count))][:count]


def _argument_leaf_names(f: Any, args: tuple) -> list[str]:
    """Return names of argument leaves: parameter names, numbered if there are several."""
    found = []
    for name, value in zip(_parameter_names(f, len(args)), args, strict=True):
        count = len(pytree.tree_leaves(value))
        found += [name] if count == 1 else [f"{name}_{i + 1}" for i in range(count)]
    return found


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    proxy_module_inputs: bool = False,
    _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., GraphModule]:
    """Return a function that runs `f` and returns its ops, including gradients, as a `torch.fx.GraphModule`.

    decomposition_table: functions by overload, traced instead of the overload. tracing_mode: "real" and "fake"
    specialize on sizes, "symbolic" adds nodes for input sizes. pre_dispatch: record ops before decomposition and
    autograd, with changes of the grad mode. Casts of autocast are recorded. Reading elements raises
    GuardOnDataDependentSymNode with the source line.

    `record_stack_traces` has no effect: nodes always have `meta["stack_trace"]`.

    >>> import torchlite as torch
    >>> from torchlite.fx.experimental.proxy_tensor import make_fx
    >>> print(make_fx(lambda x: (x * 2).relu())(torch.ones(3)).code.strip())
    def forward(self, x_1):
        mul = torch.ops.aten.mul.Tensor(x_1, 2);  x_1 = None
        relu = torch.ops.aten.relu.default(mul);  mul = None
        return relu
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")
    if proxy_module_inputs or record_module_stack:
        option = "proxy_module_inputs" if proxy_module_inputs else "record_module_stack"
        raise NotImplementedError(f"make_fx(): torchlite does not support {option}=True")
    table = dict(decomposition_table or {})

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        traced = _MakeFxTrace(f, args, table, pre_dispatch)
        if tracing_mode == "symbolic":
            from ._symbolic_make_fx import insert_size_nodes

            insert_size_nodes(traced, args, lambda others: _MakeFxTrace(f, others, table, pre_dispatch))
        return traced.module()

    return wrapped


__dir__ = make_module_dir(globals())
