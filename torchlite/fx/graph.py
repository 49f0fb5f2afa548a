"""Graph: a list of nodes, with methods to create, move, erase, check and print them."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

from .._types.checked_callable import CheckedCallable
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ._codegen import (  # noqa: F401
    CodeGen,
    PythonCode,
    _BoxedCodeGen,
    _custom_builtins,
    _CustomBuiltin,
    _PyTreeCodeGen,
    _PyTreeInfo,
    _register_custom_builtin,
    inplace_methods,
    magic_methods,
)
from ._compatibility import compatibility
from ._naming import Namespace, is_magic, snake_case
from ._naming import format_target as _format_target  # noqa: F401
from .immutable_collections import immutable_dict
from .node import Argument, Node, Target, _get_qualified_name, _legal_ops, _type_repr, map_arg  # noqa: F401

__all__ = ["CodeGen", "Graph", "PythonCode"]

_Namespace, _is_magic, _snake_case = Namespace, is_magic, snake_case
reflectable_magic_methods = {
    name: magic_methods[name]
    for name in (
        "add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "getitem",
        "matmul",
    )
}  # fmt: skip
TransformCodeFunc = Callable[[list[str]], list[str]]


class _InsertPoint:
    """Insert point for new nodes, restored on exit as a context manager."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        self.graph._insert = self.before


class _node_list:
    """Ordered nodes of a graph; robust to insertion and erasure during iteration."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> Iterator[Node]:
        return iter(_node_list(self.graph, "_next" if self.direction == "_prev" else "_prev"))


@compatibility(is_backward_compatible=True)
class Graph:
    """A program as a list of nodes: inputs, calls and output.

    `placeholder`, `get_attr`, `call_function`, `call_method`, `call_module` and `output` create nodes at the end, or at
    the point set by `inserting_before` and `inserting_after`. A `GraphModule` runs the graph.

    Args:
        owning_module: The `GraphModule` of the graph. Default: ``None``.
        tracer_cls: Class of the tracer that made the graph, which copies keep. Default: ``None``.
        tracer_extras: Keyword arguments of the tracer's class. Default: none.

    Example:
        >>> import torchlite as torch
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(torch.relu, (x,))
        >>> out = graph.output(graph.call_method("sum", (y, 0)))
        >>> print(graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
            %sum_1 : [num_users=1] = call_method[target=sum](args = (%relu, 0), kwargs = {})
            return sum_1
        >>> torch.fx.GraphModule(torch.nn.Module(), graph)(torch.tensor([[1.0, -2.0], [3.0, 4.0]]))
        tensor([4., 4.])
    """

    @compatibility(is_backward_compatible=True)
    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: dict[str, Any] | None = None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """Return the owning GraphModule, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """Return the nodes in execution order. Supports `reversed`."""
        return _node_list(self)

    @compatibility(is_backward_compatible=False)
    def output_node(self) -> Node:
        """Return the output node."""
        last = next(iter(reversed(self.nodes)))
        if last.op != "output":
            raise AssertionError(f"Expected output node, got {last.op}")
        return last

    @compatibility(is_backward_compatible=False)
    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Returns the nodes of a kind, in order.

        Args:
            op: The kind, such as ``"call_function"``.
            target: Target of the nodes. Default: any.
            sort: No effect: the nodes are always in order.
        """
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # -- creating nodes ----------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Creates a node at the insert point.

        Args:
            op: Kind of the node; see `Node`.
            target: What it reads or calls.
            args: Tuple of positional arguments. Default: none.
            kwargs: Dict of keyword arguments. Default: none.
            name: Candidate for the node's name. Default: made from the target.
            type_expr: Type of its value. Default: ``None``.
        """
        if args is not None and not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if kwargs is not None and not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = self._target_to_str(target) if name is None else name
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args or (), kwargs or immutable_dict(), type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Any) -> str:
        """Return the name candidate for a target."""
        if not isinstance(target, str):
            target = target.__name__
        elif is_magic(target):
            target = target[2:-2]
        return snake_case(target)

    @compatibility(is_backward_compatible=True)
    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Creates an input.

        Args:
            name: Name of the parameter; ``*args`` and ``**kwargs`` take the rest.
            type_expr: Type of its value. Default: ``None``.
            default_value: Default of the parameter. Default: none.
        """
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Creates a node that reads an attribute of the module. It warns if the owning module lacks it.

        Args:
            qualified_name: Dotted name of the attribute.
            type_expr: Type of its value. Default: ``None``.
        """
        if self.owning_module is not None and not _is_reference(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the "
                "necessary Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Creates a call of a submodule. It warns if the owning module lacks it.

        Args:
            module_name: Dotted name of the submodule.
            args: Tuple of positional arguments. Default: none.
            kwargs: Dict of keyword arguments. Default: none.
            type_expr: Type of the result. Default: ``None``.
        """
        if self.owning_module is not None:
            try:
                self.owning_module.get_submodule(module_name)
            except AttributeError:
                warnings.warn(
                    "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! "
                    "Call GraphModule.add_submodule to add the necessary submodule",
                    stacklevel=2,
                )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Creates a call of a method of the first argument.

        Args:
            method_name: Name of the method.
            args: Tuple of the object and the positional arguments. Default: none.
            kwargs: Dict of keyword arguments. Default: none.
            type_expr: Type of the result. Default: ``None``.
        """
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Creates a call of a function.

        Args:
            the_function: The function.
            args: Tuple of positional arguments. Default: none.
            kwargs: Dict of keyword arguments. Default: none.
            type_expr: Type of the result. Default: ``None``.
            name: Candidate for the node's name. Default: made from the function's.
        """
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Creates the output node, the last one.

        Args:
            result: The result: a node, a constant, or a container of these.
            type_expr: Type of the result. Default: ``None``.
        """
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    # -- copying, moving and erasing ----------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Copies a node of another graph to the insert point.

        Args:
            node: The node.
            arg_transform: Function from the node's input nodes to nodes of this graph. Default: the same nodes.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    @compatibility(is_backward_compatible=True)
    def graph_copy(self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False) -> Any:
        """Copies all nodes of another graph except its output.

        Args:
            g: The other graph.
            val_map: Dict from its nodes to values of this graph. Nodes in it are not copied; the others are added to
                it.
            return_output_node: Whether to return the other graph's output node too. Default: ``False``.

        Returns:
            The value that corresponds to the other graph's output, or a pair of it and the output node. ``None``
            without one.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        memo = {} if memo is None else memo
        copied = Graph(tracer_cls=self._tracer_cls)
        made: dict[Node, Node] = {}
        found = copied.graph_copy(self, made, return_output_node=True)
        memo.update({id(old): new for old, new in made.items()})
        copied._codegen = copy.deepcopy(self._codegen)
        if found is not None:
            value, old = found
            copied.output(value, type_expr=old.type).meta = copy.copy(old.meta)
        return copied

    @compatibility(is_backward_compatible=True)
    def erase_node(self, to_erase: Node) -> None:
        """Removes a node.

        Args:
            to_erase: A node of this graph without users.

        Raises:
            RuntimeError: The node has users, or belongs to another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True  # an iterator may be at this node
        self._len -= 1
        to_erase._update_args_kwargs(map_arg(to_erase.args, _do_nothing), map_arg(to_erase.kwargs, _do_nothing))

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    @compatibility(is_backward_compatible=True)
    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Makes new nodes go before a node, within a `with` statement or from now on.

        Args:
            n: A node of this graph. Default: the graph's beginning.
        """
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    @compatibility(is_backward_compatible=True)
    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Makes new nodes go after a node, within a `with` statement or from now on.

        Args:
            n: A node of this graph. Default: the graph's end.
        """
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    @compatibility(is_backward_compatible=True)
    def process_inputs(self, *args: Any) -> Any:
        """Returns the graph's inputs, given the function's.

        Args:
            *args: The function's arguments.
        """
        return self._codegen.process_inputs(*args)

    @compatibility(is_backward_compatible=True)
    def process_outputs(self, out: Any) -> Any:
        """Returns the function's result, given the graph's output.

        Args:
            out: The graph's output.
        """
        return self._codegen.process_outputs(out)

    # -- code generation -----------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: Sequence[str] | None = None,
    ) -> PythonCode:
        """Returns the graph as Python code.

        Args:
            root_module: Name of the object that has the attributes, usually ``"self"``.
            verbose: Whether comments give the source locations and metadata of values. Default: ``False``.
            include_stride: Whether metadata has strides. Default: ``False``.
            include_device: Whether metadata has devices. Default: ``False``.
            colored: Whether the text has colors for a terminal. Default: ``False``.
            expanded_def: Whether each parameter has a line of its own. Default: ``False``.
            record_func: Only ``False`` is supported.
            additional_meta: Further keys of ``meta`` that comments have. Default: none.

        Returns:
            A `PythonCode` with ``src`` and ``globals``.
        """
        if record_func:
            raise NotImplementedError("Graph.python_code(): record_func=True")
        return self._generate_with_names(
            root_module,
            verbose=verbose,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            additional_meta=additional_meta,
        )

    def _running_code(self, code: PythonCode) -> PythonCode:
        """Return the executable form of `code`, where functions that check their arguments are called in that form."""
        if not any(isinstance(node.target, CheckedCallable) for node in self.nodes):
            return code
        return self._generate_with_names("self", runs=True)

    def _generate_with_names(self, root_module: str, **style: Any) -> PythonCode:
        namespace = Namespace()  # separates node names from global names
        before = [(node, node._repr_fn) for node in self.nodes]

        def name_node(node: Node) -> str:
            return namespace.create_name(node.name, node)

        for node, _ in before:
            node._repr_fn = name_node
        try:
            return self._python_code(root_module, namespace, **style)
        finally:
            for node, name in before:
                node._repr_fn = name

    def _python_code(self, root_module: str, namespace: Namespace, **style: Any) -> PythonCode:
        return self._codegen._gen_python_code(self.nodes, root_module, namespace, **style)

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "\n    ".join(["graph():", *(line for line in lines if line)])

    @compatibility(is_backward_compatible=True)
    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [[node.op, node.name, str(node.target), str(node.args), str(node.kwargs)] for node in self.nodes]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, ["-" * width for width in widths])
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    # -- checks and whole-graph changes ---------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def lint(self) -> None:
        """Raise RuntimeError for foreign or later inputs, duplicate names, or targets that the owning module lacks."""
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.op not in _legal_ops:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for arg in node._input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an "
                        "argument! If you are copying nodes from another graph, make sure to use ``arg_transform`` on "
                        f"node_copy() to remap values\n{self}"
                    )
                if arg not in seen:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that "
                        f"Nodes in the graph are topologically ordered\n{self}"
                    )
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self.owning_module is not None:
                self._check_target(node)

    def _check_target(self, node: Node) -> None:
        """Check that the owning module has a node's target."""
        expected = "a Callable" if node.op == "call_function" else "a str"
        if not (callable(node.target) if node.op == "call_function" else isinstance(node.target, str)):
            raise ValueError(
                f"Node {node} target {node.target} has type {torch.typename(node.target)} but {expected} is expected"
            )
        if node.op not in ("get_attr", "call_module"):
            return
        found, path = self.owning_module, str(node.target).split(".")
        for place, part in enumerate(path):
            found, above = getattr(found, part, None), ".".join(path[:place])
            if found is None:
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of {above}"
                )
            if node.op == "call_module" and not isinstance(found, Module):
                raise RuntimeError(
                    f"Node {node} target {node.target} {part} of {above} does not reference an nn.Module"
                )

    @compatibility(is_backward_compatible=True)
    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Removes nodes without users and without side effects.

        Args:
            is_impure_node: Function of a node that returns whether to keep it. Default: `Node.is_impure`.

        Returns:
            Whether a node was removed.
        """
        self.lint()
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not (node.is_impure() if is_impure_node is None else is_impure_node(node)):
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            used = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in used and isinstance(getattr(child, "graph", None), Graph):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed

    @compatibility(is_backward_compatible=False)
    def set_codegen(self, codegen: CodeGen) -> None:
        """Sets the `CodeGen` that generates the code.

        Args:
            codegen: A `CodeGen`.
        """
        self._codegen = codegen

    @compatibility(is_backward_compatible=False)
    def on_generate_code(self, make_transformer: Callable[[Any], TransformCodeFunc]) -> Any:
        """Registers a function of the code's lines, which is applied when code is generated.

        Args:
            make_transformer: Function of the present one, or ``None``, that returns the new one.

        Returns:
            A context manager that restores the old one at its end.
        """
        codegen, before = self._codegen, self._codegen._body_transformer
        codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until_left() -> Iterator[None]:
            try:
                yield
            finally:
                codegen._body_transformer = before

        return until_left()


def _do_nothing(node: Node) -> None:
    return None


def _is_reference(module: Any, name: str) -> bool:
    """True if a module has a submodule, parameter or buffer of this dotted name."""
    path, _, last = name.rpartition(".")
    try:
        owner = module.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!", stacklevel=3)
        return False
    return isinstance(getattr(owner, last, None), (Module, Parameter)) or last in owner._buffers


__dir__ = make_module_dir(
    globals(),
    (
        "_BoxedCodeGen _CustomBuiltin _Namespace _PyTreeCodeGen _PyTreeInfo _custom_builtins _format_target "
        "_is_magic _legal_ops _register_custom_builtin _snake_case inplace_methods magic_methods "
        "reflectable_magic_methods"
    ),
)
