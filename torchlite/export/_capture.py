"""Traces one run of a module to an ATen graph with fake tensors."""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
import re
from collections.abc import Iterator
from typing import Any

import torchlite as torch
from torchlite._device.generators import use_copied_generators
from torchlite._dispatch.mode_restoring import restores_modes
from torchlite._dispatch.tracing import Trace as Seen
from torchlite._dispatch.tracing import unwrap_traced
from torchlite._settings.compiler_directives import exporting
from torchlite._subclasses.fake_constructors import fake_tensor_like
from torchlite._symbolic_shapes import Expr, SymBool, SymFloat, UnbackedInt, sym_max, sym_min, sym_sqrt
from torchlite._tensor.live_tensors import live_tensors
from torchlite._types.python_source import is_identifier
from torchlite.fx import Graph, Node
from torchlite.fx._dead_code import eliminate_unused
from torchlite.fx.experimental._op_recorder import OpRecorder
from torchlite.fx.experimental._unbacked_symbols import UnbackedSymbols
from torchlite.nn import Module
from torchlite.utils import _pytree as pytree

from . import graph_signature as gs
from ._call_graph import reachable_functions, referenced_names
from ._errors import UserError
from ._graph_runner import run_module
from ._nn_module_stack import ROOT, ModuleStackTracker, type_name


class CapturedTensors:
    """The tensors that exist before a module is traced: those among its attributes, and any others."""

    def __init__(self, module: Any) -> None:
        # A list keeps them alive, so that none of their ids gets a second meaning.
        self._held = live_tensors()
        self._ids = {id(tensor) for tensor in self._held}
        self._names: dict[int, str] = {}
        for path, part in module.named_modules():
            for name, value in vars(part).items():
                if isinstance(value, torch.Tensor):
                    self._names.setdefault(id(value), f"{path}.{name}" if path else name)

    def __contains__(self, tensor: Any) -> bool:
        return id(tensor) in self._ids

    def attribute_name(self, tensor: Any) -> str | None:
        """Return the dotted name of a tensor that is an attribute."""
        return self._names.get(id(tensor))


class ExportTrace:
    """Recording of one run of a module: its graph, input and output specs."""

    @restores_modes
    def __init__(
        self,
        module: Any,
        args: tuple,
        kwargs: dict,
        *,
        preserved: tuple[str, ...] = (),
        sizes: dict[str, int] | None = None,
        places: dict[tuple[int, int], Expr] | None = None,
        known_sizes: dict[tuple[int, int], Expr] | None = None,
        bounds: dict[str, tuple[float, float]] | None = None,
        captured: CapturedTensors | None = None,
    ) -> None:
        self.module = module
        self.captured = CapturedTensors(module) if captured is None else captured
        self.written: list[tuple[Any, Any]] = []  # captured tensors that the run wrote, and their new values
        self._before: list[tuple[Any, int, Any]] = []
        self.graph = Graph()
        self.constants: dict[str, Any] = {}
        self.input_specs: list[gs.InputSpec] = []
        self.output_specs: list[gs.OutputSpec] = []
        self._taken: set[str] = set()
        self.recorder = OpRecorder(self.graph, self._constant_node, whole=True)
        self.unbacked = self.recorder.unbacked = UnbackedSymbols(self.recorder, sizes)
        self.unbacked.known_sizes, self.unbacked.bounds = known_sizes or {}, bounds or {}
        self.places = places or {}
        self.calls = ModuleStackTracker(module, self.recorder, preserved)
        self._lifted: Node | None = None
        leaves, self.in_spec = pytree.tree_flatten((args, kwargs))
        self.names = _leaf_names(module, args, kwargs)
        inputs = [
            leaf.detach().clone().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf
            for leaf in leaves
        ]
        try:
            with _restore_module_state(module):
                self._record_graph(inputs)
        finally:
            self.unbacked.open = False
            self._restore_captured()

    def _record_graph(self, inputs: list) -> None:
        for name, parameter in self.module.named_parameters(remove_duplicate=False):
            self._attribute_node(gs.InputKind.PARAMETER, "p", name, parameter, None)
        for name, buffer in self.module.named_buffers(remove_duplicate=False):
            self._attribute_node(gs.InputKind.BUFFER, "b", name, buffer, _is_persistent(self.module, name))
        self.inputs = [self._add_input(leaf, name) for leaf, name in zip(inputs, self.names, strict=True)]
        self._lifted = next(iter(self.inputs), None)
        for (leaf, dim), expr in sorted(self.places.items(), key=lambda place: len(place[1].terms)):
            self.unbacked.input(self.inputs[leaf], dim, expr, inputs[leaf].shape[dim])
        args, kwargs = pytree.tree_unflatten(inputs, self.in_spec)
        self.recorder.module_stack = {ROOT: ("", type_name(self.module))}
        run = _TraceInterceptor(self.calls)
        with exporting(), self.recorder, run:
            run.search(self.module)
            result = run_module(self.module, self.recorder, run.replaced, args, kwargs)
        results, self.out_spec = pytree.tree_flatten(result)
        self.graph.output(tuple(self._add_output(leaf) for leaf in results)).meta["val"] = None
        eliminate_unused(self.graph, self.calls.kept() | {node for node, _ in self.unbacked.sources.values()})

    def _unique_name(self, wanted: str) -> str:
        name = re.sub(r"[^0-9A-Za-z_]", "_", wanted)
        name, count = name if is_identifier(name) else f"arg_{name}", 0
        while name in self._taken:
            count += 1
            name = f"{re.sub(r'_[0-9]+$', '', name)}_{count}"
        self._taken.add(name)
        return name

    def _add_placeholder(self, name: str) -> Node:
        node = self.graph.placeholder(name)
        node.name = name
        return node

    def _attribute_node(self, kind: gs.InputKind, prefix: str, name: str, tensor: Any, persistent: bool | None) -> None:
        node = self._add_placeholder(self._unique_name(f"{prefix}_{name}"))
        node.meta["val"] = fake_tensor_like(tensor)
        if not self.recorder.knows(tensor):
            self.recorder.track(tensor, node)
        self.input_specs.append(gs.InputSpec(kind, gs.TensorArgument(node.name), name, persistent))

    def _add_input(self, leaf: Any, name: str) -> Node:
        node = self._add_placeholder(self._unique_name(name))
        if isinstance(leaf, torch.Tensor):
            node.meta["val"] = fake_tensor_like(leaf)
            self.recorder.track(leaf, node)
            arg: Any = gs.TensorArgument(node.name)
        else:
            node.meta["val"] = leaf
            if leaf is not None and type(leaf) not in (int, float, bool, str):
                raise UserError(
                    f"Unsupported input type {type(leaf)}. Export only supports pytree containers of basic types "
                    "(Tensor, int, float, ...) as input. To register a custom dataclass, use "
                    "torch.export.register_dataclass. To register a custom container type, use "
                    "torch.utils._pytree.register_pytree_node."
                )
            arg = gs.ConstantArgument(node.name, leaf)
        self.input_specs.append(gs.InputSpec(gs.InputKind.USER_INPUT, arg, None))
        return node

    def _restore_captured(self) -> None:
        """Give captured tensors their values before the run; keep the new ones."""
        with torch.no_grad():
            for tensor, version, value in self._before:
                if tensor._version != version:
                    self.written.append((tensor, tensor.clone()))
                    tensor.copy_(value)

    def _next_lifted_name(self) -> str:
        return f"lifted_tensor_{sum(name.startswith('lifted_tensor_') for name in self.constants)}"

    def _constant_node(self, tensor: Any) -> Node:
        """Return the node of a constant tensor, an input before the user's. A tensor that the run made is copied at its
        use. One that was there before is the same in every call, so writes to it stay.
        """
        name = self.captured.attribute_name(tensor) or self._next_lifted_name()
        detached = tensor.detach() if tensor in self.captured else tensor.detach().clone()  # the run may write it
        self.constants[name] = detached
        before = self._lifted
        with self.graph.inserting_before(before) if before is not None else contextlib.nullcontext():
            node = self._add_placeholder(self._unique_name(f"c_{name}"))
        node.meta["val"] = fake_tensor_like(detached)
        place = next(
            (i for i, s in enumerate(self.input_specs) if s.kind is gs.InputKind.USER_INPUT), len(self.input_specs)
        )
        spec = gs.InputSpec(gs.InputKind.CONSTANT_TENSOR, gs.TensorArgument(node.name), name)
        self.input_specs.insert(place, spec)
        if tensor in self.captured:
            with torch.no_grad():
                self._before.append((detached, detached._version, detached.clone()))
            return node
        copy = self.graph.call_function(torch.ops.aten.lift_fresh_copy.default, (node,))
        copy.meta["val"] = fake_tensor_like(detached)
        return copy

    def _add_output(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            node = self.recorder.node_of(leaf)
            self.output_specs.append(gs.OutputSpec(gs.OutputKind.USER_OUTPUT, gs.TensorArgument(node.name), None))
            return node
        kinds: Any = {UnbackedInt: gs.SymIntArgument, SymFloat: gs.SymFloatArgument, SymBool: gs.SymBoolArgument}
        if type(leaf) in kinds:
            node = self.recorder.argument(leaf)
            kind = kinds[type(leaf)]
            self.output_specs.append(gs.OutputSpec(gs.OutputKind.USER_OUTPUT, kind(node.name), None))
            return node
        if leaf is not None and type(leaf) not in (int, float, bool, str):
            raise UserError(f"Unsupported output type {type(leaf)} of an exported program")
        self.output_specs.append(gs.OutputSpec(gs.OutputKind.USER_OUTPUT, gs.ConstantArgument("", leaf), None))
        return leaf


def _make_symbolic_min_max(plain: Any, symbolic: Any) -> Any:
    """Return `min` or `max` with support for symbolic numbers."""

    def choose_min_max(*args: Any, **options: Any) -> Any:
        if options or not args:
            return plain(*args, **options)
        items = args if len(args) > 1 else list(args[0])
        if not any(isinstance(item, _NUMBERS) for item in items):
            return plain(items)
        return functools.reduce(symbolic, items)

    return choose_min_max


def _root_of_signature(x: Any, /) -> Any:
    return sym_sqrt(x) if isinstance(x, _NUMBERS) else math.sqrt(x)


class _TraceInterceptor(Seen):
    """Interceptor of a recorded run: tracks module calls, and makes Python's number functions return symbolic
    numbers.
    """

    calls_modules = True

    def __init__(self, calls: ModuleStackTracker) -> None:
        super().__init__()
        self.calls = calls
        self.replaced = {
            id(min): _make_symbolic_min_max(min, sym_min),
            id(max): _make_symbolic_min_max(max, sym_max),
            id(math.sqrt): _root_of_signature,
        }
        self._functions: set[int] = set()

    def call_module(self, module: Any, call: Any, args: tuple, kwargs: dict) -> Any:
        """Call a module and add its name to the nodes."""
        self.search(module)
        return self.calls.follow(module, functools.partial(call, module), args, kwargs)

    def search(self, module: Any) -> None:
        """Rebind these functions in the globals of all code that the module's call reaches."""
        if id(module) in self._functions:
            return
        self._functions.add(id(module))
        for function in reachable_functions(module):
            names, space = referenced_names(function.__code__), function.__globals__
            for name in names:
                value = unwrap_traced(space.get(name, vars(builtins).get(name)))
                if value is math or value is builtins or id(value) in self.replaced:
                    self.rebind(space, name, value)

    def tensor(self, data: Any, dtype: Any, device: Any) -> Any:
        """Create a tensor from numbers of the trace by an op."""
        numbers = pytree.tree_leaves(data) if isinstance(data, (list, tuple)) else [data]
        if any(isinstance(number, SymBool) for number in numbers):  # decided during the trace
            plain = pytree.tree_map(lambda v: bool(v) if isinstance(v, SymBool) else v, data)
            return torch.tensor(plain, dtype=dtype, device=device)
        if not any(isinstance(number, _NUMBERS) for number in numbers):
            return None
        if dtype is None:
            dtype = torch.get_default_dtype() if any(isinstance(n, float) for n in numbers) else torch.int64
        if not isinstance(data, (list, tuple)):
            return torch.scalar_tensor(data, dtype=dtype, device=device)
        return torch.stack([torch.tensor(item, dtype=dtype, device=device) for item in data])


_NUMBERS = (UnbackedInt, SymFloat)


def _is_persistent(module: Any, name: str) -> bool:
    path, _, last = name.rpartition(".")
    return last not in module.get_submodule(path)._non_persistent_buffers_set


def _leaf_names(module: Any, args: tuple, kwargs: dict) -> list[str]:
    """Return names for the leaves of arguments: `x`, `d_y`."""
    names = argument_names(module, args, kwargs)
    found = []
    for name, value in zip(names, [*args, *kwargs.values()], strict=True):
        for path, _ in pytree.tree_leaves_with_path(value):
            parts = [str(getattr(p, "key", getattr(p, "idx", getattr(p, "name", "")))) for p in path]
            found.append("_".join([name, *parts]))
    return found


def argument_names(module: Any, args: tuple, kwargs: dict) -> list[str]:
    """Return the names of `forward`'s arguments."""
    import inspect

    names: list[str] = []
    for p in inspect.signature(module.forward).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}_{i}" for i in range(len(args) - len(names))]
        elif len(names) < len(args):
            names.append(p.name)
    return [*names[: len(args)], *kwargs]


@contextlib.contextmanager
def _restore_module_state(module: Module) -> Iterator[None]:
    """Restore the module's buffers and attributes and the default generators afterwards."""
    before = [(buffer, buffer._version, buffer.detach().clone()) for buffer in module.buffers()]
    attributes = [(m, dict(m.__dict__)) for m in module.modules()]
    try:
        with use_copied_generators():
            yield
    finally:
        for m, found in attributes:
            for name, value in found.items():
                if name not in ("_parameters", "_modules") and m.__dict__.get(name) is not value:
                    m.__dict__[name] = value
        with torch.no_grad():
            for buffer, version, value in before:
                if buffer._version != version:
                    buffer.copy_(value)
