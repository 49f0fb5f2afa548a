"""`unflatten`: rebuilds the module hierarchy of an exported program."""

from __future__ import annotations

import abc
import operator
from typing import Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir
from torchlite.fx import Graph, GraphModule, Node
from torchlite.fx._codegen import _custom_builtins
from torchlite.nn import Module
from torchlite.utils import _pytree as pytree

from ._assign_attr import _assign_attr, _AttrKind  # noqa: F401
from ._unlift import resolve_owner
from .exported_program import ExportedProgram, ModuleCallSignature
from .graph_signature import ConstantArgument, InputKind, OutputKind

__all__ = [
    "FlatArgsAdapter", "InterpreterModule", "InterpreterModuleDispatcher", "UnflattenedModule", "unflatten",
]  # fmt: skip


class _RunnableGraph(Module):
    """Module that runs a graph; submodules and tensors are its attributes, so they can be swapped."""

    graph: Graph
    _ty: str | None

    def type_name(self) -> str | None:
        """Return the class name of the original module."""
        return self._ty

    def finalize(self) -> None:
        """Regenerate the code after a change of the graph."""
        self.graph.lint()
        self.__dict__["graph_module"] = GraphModule(self, self.graph)
        self.__dict__["arg_names"] = [str(n.target) for n in self.graph.nodes if n.op == "placeholder"]

    def _run_graph(self, args: Any, kwargs: dict[str, Any]) -> Any:
        return type(self.__dict__["graph_module"]).forward(self, *args, **kwargs)

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> str:
        """Return or print the graph's code with value metadata."""
        made = self.__dict__["graph_module"].print_readable(
            print_output=False, include_stride=include_stride, include_device=include_device, colored=colored
        )
        made = made.replace("class GraphModule(", f"class {type(self).__name__}(", 1)
        if print_output:
            print(made)
        return made


class InterpreterModule(_RunnableGraph):
    """Submodule of an unflattened program, with its `graph` and parameters.

    Args:
        graph: The graph.
        ty: Name of the original module's class. Default: ``None``.

    Example:
        >>> program = torch.export.export(torch.nn.Sequential(torch.nn.ReLU()), (torch.ones(2),))
        >>> torch.export.unflatten(program).get_submodule("0")
        InterpreterModule()
    """

    def __init__(self, graph: Graph, ty: str | None = None) -> None:
        super().__init__()
        self.graph, self._ty = graph, ty

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph.

        Args:
            *args: Inputs of the graph.
            **kwargs: Further inputs by name.
        """
        return self._run_graph(args, kwargs)


class InterpreterModuleDispatcher(Module):
    """Module that is called several times with different graphs; its calls use them in turn.

    Args:
        attrs: Names of attributes that it takes from the first module.
        call_modules: A module for each call.

    Raises:
        AssertionError: There are no modules.
    """

    def __init__(self, attrs: set[str], call_modules: list[InterpreterModule]) -> None:
        super().__init__()
        if not call_modules:
            raise AssertionError("call_modules must not be empty")
        self.__dict__["_modules"] = call_modules[0]._modules
        for name in attrs:
            setattr(self, name, getattr(call_modules[0], name))
        self._ty = call_modules[0]._ty
        self.__dict__["_call_modules"] = call_modules
        self._num_calls = 0

    def type_name(self) -> str | None:
        """Return the class name of the original module."""
        return self._ty

    def call_modules(self) -> list[InterpreterModule]:
        """Return the modules, one for each call."""
        return self.__dict__["_call_modules"]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module of the current call.

        Args:
            *args: Inputs of the graph.
            **kwargs: Further inputs by name.
        """
        calls = self.call_modules()
        chosen = calls[self._num_calls]
        self._num_calls = (self._num_calls + 1) % len(calls)
        try:
            return chosen(*args, **kwargs)
        except Exception:
            self._num_calls = 0
            raise

    def print_readable(self, *args: Any, **kwargs: Any) -> str:
        """Returns the code of every call, and prints it.

        Args:
            *args: Arguments of `torch.fx.GraphModule.print_readable`.
            **kwargs: Further ones by name.
        """
        return "\n".join(module.print_readable(*args, **kwargs) for module in self.call_modules())


class FlatArgsAdapter(abc.ABC):
    """Base class of adapters from arguments of another tree structure to those of a program.

    Subclasses implement `adapt`; `unflatten` takes an instance.

    Example:
        >>> class TakeFirst(torch.export.FlatArgsAdapter):
        ...     def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        ...         return input_args[:1]
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> torch.export.unflatten(program, TakeFirst())(-torch.ones(2), torch.ones(3))
        tensor([0., 0.])
    """

    @abc.abstractmethod
    def adapt(
        self, target_spec: Any, input_spec: Any, input_args: list[Any], metadata: Any = None, obj: Any = None
    ) -> list[Any]:
        """Returns the leaves of the program's arguments.

        Args:
            target_spec: Tree spec of the program's arguments.
            input_spec: Tree spec of the call's arguments.
            input_args: Leaves of the call's arguments.
            metadata: Metadata of the program. Default: ``None``.
            obj: The call's positional arguments. Default: ``None``.
        """

    def get_flat_arg_paths(self) -> list[str]:
        """Return names of the leaves for error messages."""
        return []


class UnflattenedModule(_RunnableGraph):
    """An exported program as a tree of modules with their original names; `unflatten` makes it.

    Args:
        export_module: An `ExportedProgram`.
        flat_args_adapter: A `FlatArgsAdapter`. Default: none.

    Example:
        >>> program = torch.export.export(torch.nn.Sequential(torch.nn.Linear(3, 2)), (torch.ones(4, 3),))
        >>> torch.export.UnflattenedModule(program).get_submodule("0").weight.shape
        torch.Size([2, 3])
    """

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__()
        import copy

        from ._input_guards import GuardsFn, _make_guards

        self.graph_signature = copy.deepcopy(export_module.graph_signature)
        self.module_call_graph = copy.deepcopy(export_module.module_call_graph)
        self.flat_args_adapter = flat_args_adapter
        self.range_constraints = export_module.range_constraints
        self.equality_constraints: list[Any] = []
        self.meta = dict(export_module.graph_module.meta)
        self.check_input_constraints, self.adapted = True, False
        lifted = {s.arg.name for s in self.graph_signature.input_specs if s.kind in _STATE_KINDS}
        inputs = [n for n in export_module.graph.nodes if n.op == "placeholder" and n.name not in lifted]
        self.__dict__["_checks"] = GuardsFn(_make_guards(export_module, inputs))
        self._ty = None
        _ModuleTreeBuilder(export_module, self).build()
        self.input_placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]

    def process_forward_inputs(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Returns the adapted and checked leaves of a call's arguments.

        Args:
            *args: Positional arguments of the call.
            **kwargs: Keyword arguments of the call.

        Raises:
            TypeError: The arguments have another tree structure than the program's, and there is no adapter.
        """
        in_spec = self._root_signature().in_spec
        names = list(in_spec.child(1).context or ())
        if kwargs and set(names) == set(kwargs):
            kwargs = {name: kwargs[name] for name in names}
        leaves, found = pytree.tree_flatten((args, kwargs))
        if found != in_spec:
            if self.flat_args_adapter is None:
                raise TypeError(
                    "There is no flat args adapter specified. Are you sure you are calling this with the right "
                    f"arguments? \nInput treespec: {found}. Exported module treespec: {in_spec}"
                )
            leaves = self.flat_args_adapter.adapt(
                target_spec=in_spec, input_spec=found, input_args=leaves, metadata=self.meta, obj=args
            )
            if len(leaves) != in_spec.num_leaves:
                raise TypeError(
                    f"Flat args adaption failed, number of args mismatch Adapted: {len(leaves)} \n"
                    f"Exported module: {in_spec.num_leaves}"
                )
            self.adapted = True
        if self.check_input_constraints:
            self.__dict__["_checks"](*leaves)
        return leaves

    def _root_signature(self) -> ModuleCallSignature:
        found = self.module_call_graph[0].signature
        if found is None:
            raise RuntimeError("the program does not say how it is called")
        return found

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program.

        Args:
            *args: Positional arguments of the program.
            **kwargs: Keyword arguments of the program.
        """
        found = self._run_graph(self.process_forward_inputs(*args, **kwargs), {})
        return pytree.tree_unflatten(list(found), self._root_signature().out_spec)

    def _print_graph(self) -> None:
        for name, module in self.named_modules():
            if isinstance(module, _RunnableGraph):
                print(f"{name}:\n{module.graph}")


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """Returns a program as a tree of modules with their original names, which can be inspected and swapped.

    Modules in `preserve_module_call_signature` keep their call signature. Others take and return the tensors that cross
    their boundary.

    Args:
        module: An `ExportedProgram`.
        flat_args_adapter: A `FlatArgsAdapter`, which converts arguments of another tree structure. Default: none.

    Returns:
        An `UnflattenedModule`.

    Raises:
        TypeError: ``module`` is not a program.
        RuntimeError: The program's modules cannot be made.

    Example:
        >>> import torchlite as torch
        >>> net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
        >>> module = torch.export.unflatten(torch.export.export(net, (torch.ones(4, 3),)))
        >>> [name for name, _ in module.named_children()], module(torch.ones(4, 3)).shape
        (['0', '1'], torch.Size([4, 2]))
    """
    if not isinstance(module, ExportedProgram):
        raise TypeError(f"unflatten takes an ExportedProgram, not {type(module).__name__}")
    try:
        return UnflattenedModule(module, flat_args_adapter)
    except (KeyError, AttributeError, IndexError, TypeError, RecursionError) as error:
        raise RuntimeError(f"unflatten: the program's modules cannot be made: {str(error)[:300]}") from error


_STATE_KINDS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR, InputKind.CUSTOM_OBJ)


def _is_submodule_name(name: str, owner: str) -> bool:
    """True if a dotted name is inside a module."""
    return not owner or name == owner or name.startswith(owner + ".")


class _ModuleCallFrame:
    """A module call: its nodes and inner calls in order."""

    def __init__(self, call: str, name: str, kind: str | None, parent: _ModuleCallFrame | None) -> None:
        self.call, self.name, self.kind, self.parent = call, name, kind, parent
        self.items: list[Any] = []
        self.path: list[_ModuleCallFrame] = [*parent.path, self] if parent is not None else [self]
        self.graph = Graph()
        self.values: dict[Node, Any] = {}
        self.inputs: list[Node] = []
        self.results: dict[Node, None] = {}
        self.attributes: dict[str, Any] = {}
        self.module: Any = None
        self.signature: ModuleCallSignature | None = None
        self.last: Node | None = None  # last input or attribute node, which come first

    def first(self, kind: str, target: str, meta: dict) -> Node:
        """Insert a node before those of ops."""
        if kind == "placeholder" and target in _GLOBALS:
            target += "_"
        before = self.last.next if self.last is not None else next(iter(self.graph.nodes), None)
        with self.graph.inserting_before(before) if before is not None else self.graph.inserting_after(self.last):
            made = self.graph.create_node(kind, target, (), {}, target.replace(".", "_"))
        made.meta.update({k: v for k, v in meta.items() if k != "nn_module_stack"})
        self.last = made
        return made


# Names that generated code reads as globals or builtins; parameters must not shadow them.
_GLOBALS = frozenset((*_custom_builtins, "getattr", "slice", "self"))


class _ModuleTreeBuilder:
    """Builder of a program's module tree."""

    def __init__(self, program: ExportedProgram, root: UnflattenedModule) -> None:
        self.program, self.root = program, root
        self.specs = {s.arg.name: s for s in program.graph_signature.input_specs if s.kind in _STATE_KINDS}
        self.signatures = {e.fqn: e.signature for e in program.module_call_graph if e.fqn and e.signature}
        self.home: dict[Node, _ModuleCallFrame] = {}
        self.by_name = {node.name: node for node in program.graph.nodes}
        self.module_calls: dict[
            str, list[tuple[Any, Any]]
        ] = {}  # graph fingerprints and modules of the calls of a module
        self.frames: list[_ModuleCallFrame] = []
        self.tensors: dict[int, Any] = {}
        self.calls: dict[str, list[Any]] = {}  # by modules with preserved signatures, in order

    def build(self) -> None:
        top = self._build_frames()
        self._used_outputs(top)
        self._make_root(top)
        for frame in self.frames:
            if frame.module is not None:
                self._add_attributes(frame)
        self._add_unread_tensors()
        for module in dict.fromkeys(f.module for f in self.frames if f.module is not None):
            module.finalize()
        self._add_dispatchers()
        self.root.finalize()

    # -- assignment of nodes to calls -------------------------------------------------------------

    def _module_stack_of(self, node: Node) -> list[tuple[str, str, str]] | None:
        """Return the module stack of a node as (call, module, class), None if unknown."""
        source = node
        while source.target is operator.getitem and "nn_module_stack" not in source.meta:
            if not isinstance(source.args[0], Node):
                break
            source = source.args[0]
        found = source.meta.get("nn_module_stack")
        if not found:
            return None
        calls: list[tuple[str, str, str]] = []
        for key, (path, kind) in found.items():
            name, _, number = str(path).partition("@")
            number = number or key.rpartition("@")[2] * ("@" in key)
            if not name:
                self.root._ty = str(kind)
                continue
            inside = calls[-1][1] if calls else ""
            if (
                _is_submodule_name(name, inside) and name != inside
            ):  # calls a module outside its own tree: part of the caller
                calls.append((f"{name}@{number}" if number.isdecimal() and int(number) else name, name, str(kind)))
        return calls

    def _build_frames(self) -> _ModuleCallFrame:
        top = now = _ModuleCallFrame("", "", None, None)
        taken: set[str] = set()
        original: dict[int, str] = {}
        for node in self.program.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            calls = self._module_stack_of(node)
            if calls is not None:
                depth = 0
                for frame, (call, _, _) in zip(now.path[1:], calls, strict=False):
                    if original[id(frame)] != call:
                        break
                    depth += 1
                now = now.path[depth]
                for call, name, kind in calls[depth:]:
                    given, number = call, 0
                    while given in taken:
                        number += 1
                        given = f"{name}@{number}"
                    taken.add(given)
                    inner = _ModuleCallFrame(given, name, kind, now)
                    original[id(inner)] = call
                    inner.signature = self.signatures.get(given) if given == call else None
                    now.items.append(inner)
                    self.frames.append(inner)
                    now = inner
            now.items.append(node)
            self.home[node] = now
        self.home[self.program.graph.output_node()] = top
        return top

    def _used_outputs(self, top: _ModuleCallFrame) -> None:
        """Return the values of a call that are used outside."""
        for node, home in self.home.items():
            for user in node.users:
                place = self.home[user]
                for frame in reversed(home.path[1:]):
                    if frame in place.path:
                        break
                    frame.results[node] = None
        for frame in self.frames:
            if frame.signature is not None:
                self._as_called(frame, frame.signature)

    def _as_called(self, frame: _ModuleCallFrame, signature: ModuleCallSignature) -> None:
        """Route a preserved call's results through its signature, so no other value leaves it."""
        names = {a.name for a in signature.outputs if not isinstance(a, ConstantArgument)}
        given = {a.name for a in signature.inputs if not isinstance(a, ConstantArgument)}
        missing = [n.name for n in frame.results if n.name not in names]
        absent = [n for n in names | given if n not in self.by_name]
        if missing or absent:
            raise RuntimeError(
                f"unflatten: the call of {frame.call} cannot be preserved: {', '.join(missing or absent)} "
                + ("is used outside of it" if missing else "is not in the graph")
            )
        for node in map(self.by_name.__getitem__, names):
            path = self.home[node].path if node in self.home else []
            for inner in path[path.index(frame) + 1 :] if frame in path else ():
                inner.results[node] = None

    # -- graphs --------------------------------------------------------------------------------------

    def _resolve_value(self, frame: _ModuleCallFrame, node: Node) -> Any:
        """Return a value inside a call: attribute, input or computed node."""
        if node in frame.values:
            return frame.values[node]
        spec = self.specs.get(node.name)
        if node.op == "get_attr":
            attribute = frame.first("get_attr", str(node.target), node.meta)
            frame.attributes[str(node.target)] = getattr(self.program.graph_module, str(node.target))
        elif spec is not None and _is_submodule_name(str(spec.target), frame.name):
            own = str(spec.target)[len(frame.name) + 1 if frame.name else 0 :]
            attribute = frame.first("get_attr", own, node.meta)
            frame.attributes[own] = spec
        elif frame.parent is None:
            raise RuntimeError(f"unflatten: {node.name} is used before it is computed")
        elif frame.signature is not None:
            raise RuntimeError(f"unflatten: the call of {frame.call} reads {node.name}, which it is not given")
        else:
            attribute = frame.first("placeholder", node.name, node.meta)
            frame.inputs.append(node)
        frame.values[node] = attribute
        return attribute

    def _copy_node(self, frame: _ModuleCallFrame, node: Node) -> None:
        made = frame.values[node] = frame.graph.node_copy(node, lambda n: self._resolve_value(frame, n))
        if made.target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
            made.target = torch.ops.aten.reshape.default  # strides may differ from those of the export

    def _fill_frame(self, frame: _ModuleCallFrame) -> None:
        for item in frame.items:
            if isinstance(item, Node):
                self._copy_node(frame, item)
            else:
                self._add_module_call(frame, item)

    def _add_spec_attribute(self, frame: _ModuleCallFrame, value: Any) -> Node:
        """Store a tree spec as an attribute; return its node."""
        number = sum(name.startswith("_spec_") for name in frame.attributes)
        frame.attributes[f"_spec_{number}"] = value
        return frame.first("get_attr", f"_spec_{number}", {})

    def _add_module_call(self, frame: _ModuleCallFrame, inner: _ModuleCallFrame) -> None:
        """Build a call's graph and add the node that calls it."""
        if inner.signature is None:
            self._fill_frame(inner)
            outs = list(inner.results)
            values = [inner.values[n] for n in outs]
            inner.graph.output(values[0] if len(values) == 1 else tuple(values))
            target = self._make_module(frame, inner)
            node = frame.graph.call_module(target, tuple(self._resolve_value(frame, n) for n in inner.inputs))
            if len(outs) == 1:
                node.meta.update({k: v for k, v in outs[0].meta.items() if k == "val"})
                frame.values[outs[0]] = node
                return
            for number, out in enumerate(outs):
                frame.values[out] = self._add_getitem(frame, node, number, out.meta)
            return
        self._call_as_it_was(frame, inner, inner.signature)

    @staticmethod
    def _add_getitem(frame: _ModuleCallFrame, node: Node, place: int, meta: dict | None = None) -> Node:
        made = frame.graph.call_function(operator.getitem, (node, place))
        made.meta.update({k: v for k, v in (meta or {}).items() if k == "val"})
        return made

    def _call_as_it_was(self, frame: _ModuleCallFrame, inner: _ModuleCallFrame, signature: ModuleCallSignature) -> None:
        """Add a call with the original arguments and results."""
        count = signature.in_spec.child(0).num_children
        words = list(signature.in_spec.child(1).context or ())
        names = [f"_positional_arg_{i}" for i in range(count)]
        places = [inner.first("placeholder", name, {}) for name in (*names, *words)]
        given = tuple(places[:count]), dict(zip(words, places[count:], strict=True))
        flat = inner.graph.call_function(
            torch.fx._pytree.tree_flatten_spec, (given, self._add_spec_attribute(inner, signature.in_spec))
        )
        for number, arg in enumerate(signature.inputs):
            source = None if isinstance(arg, ConstantArgument) else self.by_name.get(arg.name)
            if source is not None and source not in inner.values:
                inner.values[source] = self._add_getitem(inner, flat, number, source.meta)
        self._fill_frame(inner)
        outs = [self._resolve_signature_argument(inner, arg) for arg in signature.outputs]
        inner.graph.output(
            inner.graph.call_function(
                pytree.tree_unflatten, (outs, self._add_spec_attribute(inner, signature.out_spec))
            )
        )
        target = self._make_module(frame, inner)
        leaves = [self._resolve_signature_argument(frame, arg) for arg in signature.inputs]
        whole = frame.graph.call_function(
            pytree.tree_unflatten, (leaves, self._add_spec_attribute(frame, signature.in_spec))
        )
        args, kwargs = self._add_getitem(frame, whole, 0), self._add_getitem(frame, whole, 1)
        call = frame.graph.call_module(
            target,
            tuple(self._add_getitem(frame, args, i) for i in range(count)),
            {word: frame.graph.call_function(operator.getitem, (kwargs, word)) for word in words},
        )
        parts = frame.graph.call_function(
            torch.fx._pytree.tree_flatten_spec, (call, self._add_spec_attribute(frame, signature.out_spec))
        )
        for number, arg in enumerate(signature.outputs):
            node = None if isinstance(arg, ConstantArgument) else self.by_name[arg.name]
            if node is not None and node not in frame.values:
                frame.values[node] = self._add_getitem(frame, parts, number, node.meta)

    def _resolve_signature_argument(self, frame: _ModuleCallFrame, arg: Any) -> Any:
        return arg.value if isinstance(arg, ConstantArgument) else self._resolve_value(frame, self.by_name[arg.name])

    def _make_module(self, frame: _ModuleCallFrame, inner: _ModuleCallFrame) -> str:
        """Create or reuse the module of a call; return its name in the caller."""
        does = _graph_fingerprint(inner.graph), {k: v for k, v in inner.attributes.items() if k.startswith("_spec_")}
        calls = self.module_calls.setdefault(inner.name, [])
        number, found = next(((i, m) for i, (d, m) in enumerate(calls) if d == does), (len(calls), None))
        if found is None:
            found = inner.module = InterpreterModule(inner.graph, inner.kind)
            calls.append((does, found))
        if inner.signature is not None:
            self.calls.setdefault(inner.name, []).append(found)
        inner.module = found
        own = inner.name[len(frame.name) + 1 if frame.name else 0 :]
        return f"{own}@{number}" if number else own

    def _make_root(self, top: _ModuleCallFrame) -> None:
        lifted = self.specs
        for node in self.program.graph.nodes:
            if node.op == "placeholder" and node.name not in lifted:
                top.values[node] = top.first("placeholder", node.name, node.meta)
        self._fill_frame(top)
        writes = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)
        targets = {str(s.target): self.by_name[s.arg.name] for s in lifted.values()}
        results: list[Any] = []
        found = self.program.graph.output_node().args[0]
        for spec, result in zip(self.program.graph_signature.output_specs, found, strict=True):  # type: ignore[arg-type]
            value = self._resolve_value(top, result) if isinstance(result, Node) else result
            if spec.kind in writes or spec.kind is OutputKind.USER_INPUT_MUTATION:
                name = str(spec.target)
                target = targets[name] if spec.kind in writes else self.by_name[name]
                top.graph.call_function(torch.ops.aten.copy_.default, (self._resolve_value(top, target), value))
            elif spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
                results.append(value)
            else:
                raise ValueError("Unflattening on JointExportModule NYI")
        top.graph.output(tuple(results))
        self.root.graph = top.graph
        top.module = self.root
        self.frames.insert(0, top)

    # -- modules -------------------------------------------------------------------------------------

    def _add_attributes(self, frame: _ModuleCallFrame) -> None:
        """Add a call's module to its caller, and the tensors and subgraphs that it reads."""
        if frame.parent is not None:
            target = next(i for i, (_, m) in enumerate(self.module_calls[frame.name]) if m is frame.module)
            own = frame.name[len(frame.parent.name) + 1 if frame.parent.name else 0 :]
            _set_submodule(frame.parent.module, f"{own}@{target}" if target else own, frame.module)
        for name, value in frame.attributes.items():
            if isinstance(value, (Module,)) or name.startswith("_spec_"):
                setattr(frame.module, name, value)
            else:
                self._add_tensor(frame.module, name, value)

    def _add_tensor(self, owner: Any, name: str, spec: Any) -> None:
        target = str(spec.target)
        held = target in self.program.state_dict and spec.persistent is not False
        value = (self.program.state_dict if held else self.program.constants)[target]
        if id(value) not in self.tensors:  # separate tensors stay separate
            copy = value.detach().clone() if isinstance(value, torch.Tensor) else value
            is_parameter = isinstance(value, torch.nn.Parameter)
            self.tensors[id(value)] = torch.nn.Parameter(copy, value.requires_grad) if is_parameter else copy
        _set_submodule(owner, name, self.tensors[id(value)], spec)

    def _add_unread_tensors(self) -> None:
        """Add tensors that no op reads."""
        for spec in self.specs.values():
            self._add_tensor(self.root, str(spec.target), spec)
        order = {e.fqn: i for i, e in enumerate(self.program.module_call_graph)}
        for name, module in list(self.root.named_modules()):
            prefix = f"{name}." if name else ""
            inner = sorted(module._modules.items(), key=lambda item: order.get(prefix + item[0], len(order)))
            module._modules.clear()
            module._modules.update(inner)

    def _add_dispatchers(self) -> None:
        """Replace modules with several graphs by dispatchers."""
        for name, modules in self.calls.items():
            if len(set(map(id, modules))) > 1:
                own = {n for t in ("_parameters", "_buffers") for n in getattr(modules[0], t)}
                dispatcher = InterpreterModuleDispatcher(own, modules)
                for frame in self.frames:
                    self._redirect_calls(frame, name, dispatcher)

    @staticmethod
    def _redirect_calls(frame: _ModuleCallFrame, name: str, dispatcher: Any) -> None:
        changed = False
        for node in frame.graph.nodes:
            full = f"{frame.name}.{node.target}" if frame.name else str(node.target)
            if node.op == "call_module" and full.split("@")[0] == name:
                *path, last = str(node.target).split(".")
                owner = frame.module.get_submodule(".".join(path))
                owner._modules.pop(last, None)
                last = last.split("@")[0]
                owner._modules[last] = dispatcher
                node.target = ".".join([*path, last])
                changed = True
        if changed:
            frame.module.finalize()


def _set_submodule(owner: Any, name: str, value: Any, spec: Any = None) -> None:
    """Set a module or tensor under a dotted name; create missing modules."""
    owner, last = resolve_owner(owner, name)
    if isinstance(value, Module):
        before = owner._modules.get(last)
        if before is not None and before is not value:  # tensors are set first
            value._parameters.update(before._parameters)
            value._buffers.update(before._buffers)
            value._modules.update({k: m for k, m in before._modules.items() if k not in value._modules})
        owner.add_module(last, value)
    elif spec.kind is InputKind.PARAMETER:
        owner.register_parameter(last, value)
    elif spec.kind is InputKind.BUFFER:
        owner.register_buffer(last, value, persistent=bool(spec.persistent))
    elif last not in owner._buffers:
        owner.register_buffer(last, value, persistent=False)


def _graph_fingerprint(graph: Graph) -> list[Any]:
    """Return a graph's structure independent of node names."""
    from torchlite.fx.node import map_arg

    numbers = {node: i for i, node in enumerate(graph.nodes)}

    def format_node(node: Node) -> str:
        return f"%{numbers[node]}"

    return [
        (
            n.op,
            n.target if n.op != "placeholder" else "",
            repr(map_arg(n.args, format_node)),
            repr(map_arg(n.kwargs, format_node)),
        )
        for n in graph.nodes
    ]


__dir__ = make_module_dir(globals())
