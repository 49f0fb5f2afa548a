"""Interpreter runs a graph node by node; Transformer rewrites it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ..func import _predispatch
from . import traceback as fx_traceback
from ._codegen import _find_last_uses
from ._compatibility import compatibility
from ._lazy_graph_module import _make_graph_module
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


@compatibility(is_backward_compatible=True)
class Interpreter:
    """Runs a module's graph node by node.

    Subclasses override the method of a kind of node, or `run_node`.

    Args:
        module: A module with a graph.
        garbage_collect_values: Whether values are freed after their last use. Default: ``True``.
        graph: A graph that replaces the module's. Default: ``None``.

    Example:
        >>> import torchlite as torch
        >>> class Counting(torch.fx.Interpreter):
        ...     calls = 0
        ...     def call_function(self, target, args, kwargs):
        ...         self.calls += 1
        ...         return super().call_function(target, args, kwargs)
        >>> counting = Counting(torch.fx.symbolic_trace(lambda x: torch.relu(x) + x))
        >>> counting.run(torch.ones(2)), counting.calls
        (tensor([2., 2.]), 2)
    """

    @compatibility(is_backward_compatible=True)
    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = _find_last_uses(list(self.graph.nodes)) if garbage_collect_values else {}

    @compatibility(is_backward_compatible=True)
    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Runs the graph.

        Args:
            *args: The inputs.
            initial_env: Known values by node; these nodes do not run. Default: none.
            enable_io_processing: Whether to map inputs and results as the graph's `CodeGen` does. Default: ``True``.

        Returns:
            The graph's output.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        with _predispatch.end_open_levels():
            return self._run(enable_io_processing)

    def _run(self, enable_io_processing: bool) -> Any:
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    self._say_where(error, node)
                raise
            for done in self.user_to_last_uses.get(node, ()):
                del self.env[done]
            if node.op == "output":
                found = self.env[node]
                return self.graph.process_outputs(found) if enable_io_processing else found
        return None

    def _say_where(self, error: Exception, node: Node) -> None:
        """Append the node to an error's message."""
        said = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
        if error.args:
            said = f"{error.args[0]}\n\n{said}"
        error.args = (said, *error.args[1:])
        if isinstance(error, KeyError):  # its str() would quote the message
            raise RuntimeError(*error.args) from error

    @compatibility(is_backward_compatible=True)
    def boxed_run(self, args_list: list[Any]) -> Any:
        """Runs the graph on inputs in a list, which is emptied so that they can be freed early.

        Args:
            args_list: List of the inputs.
        """
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(args_list) != len(inputs):
            detail = "extra arguments" if len(args_list) > len(inputs) else "missing arguments"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(inputs)} arguments for placeholders but received "
                f"{len(args_list)} ({detail})"
            )
        env = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    @contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    @compatibility(is_backward_compatible=True)
    def run_node(self, n: Node) -> Any:
        """Returns a node's value, by the method of its kind.

        Args:
            n: The node.
        """
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the next input, or the rest of them for `*args`.

        Args:
            target: Name of the parameter.
            args: Tuple of its default, or ``()``.
            kwargs: No effect.
        """
        if str(target).startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!")

    @compatibility(is_backward_compatible=True)
    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Returns an attribute of the module.

        Args:
            target: Dotted name of the attribute.
            args: No effect.
            kwargs: No effect.
        """
        return self.fetch_attr(str(target))

    @compatibility(is_backward_compatible=True)
    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Returns a function's result.

        Args:
            target: The function.
            args: Tuple of positional arguments.
            kwargs: Dict of keyword arguments.
        """
        if isinstance(target, str):
            raise AssertionError("target should not be a string for call_function")
        return target(*args, **kwargs)

    @compatibility(is_backward_compatible=True)
    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the result of a method of the first argument.

        Args:
            target: Name of the method.
            args: Tuple of the object and the positional arguments.
            kwargs: Dict of keyword arguments.
        """
        first, *rest = args
        return getattr(first, str(target))(*rest, **kwargs)

    @compatibility(is_backward_compatible=True)
    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Returns a submodule's result.

        Args:
            target: Dotted name of the submodule.
            args: Tuple of positional arguments.
            kwargs: Dict of keyword arguments.
        """
        return self.fetch_attr(str(target))(*args, **kwargs)

    @compatibility(is_backward_compatible=True)
    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the graph's output.

        Args:
            target: No effect.
            args: Tuple of the output.
            kwargs: No effect.
        """
        return args[0]

    @compatibility(is_backward_compatible=True)
    def fetch_attr(self, target: str) -> Any:
        """Returns an attribute of the module.

        Args:
            target: Dotted name of the attribute.

        Raises:
            RuntimeError: There is no such attribute.
        """
        found = self.module
        path = target.split(".")
        for place, part in enumerate(path):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(path[: place + 1])}")
            found = getattr(found, part)
        return found

    @compatibility(is_backward_compatible=True)
    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns a node's arguments as values.

        Args:
            n: The node.
        """
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    @compatibility(is_backward_compatible=True)
    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Returns a structure with its nodes replaced by their values.

        Args:
            args: The structure.
            n: Node that errors name.
        """

        def value_of(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value_of)


class _TransformerTracer(Tracer):
    """Tracer that adds a Transformer's calls to the new graph."""

    def __init__(self, graph: Graph, root: Any) -> None:
        super().__init__()
        self.graph, self.root = graph, root
        self.tensor_attrs = {}

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return True


@compatibility(is_backward_compatible=True)
class Transformer(Interpreter):
    """Rewrites a module's graph: the methods of the kinds of nodes take Proxies and return replacements.

    Args:
        module: A `GraphModule`.

    Example:
        >>> import torchlite as torch
        >>> class Flipped(torch.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         if target is torch.sigmoid:
        ...             return torch.neg(*args, **kwargs)
        ...         return super().call_function(target, args, kwargs)
        >>> module = torch.fx.symbolic_trace(lambda x: torch.sigmoid(x) + 1)
        >>> Flipped(module).transform()(torch.ones(2))
        tensor([0., 0.])
    """

    @compatibility(is_backward_compatible=True)
    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph, module)

    @compatibility(is_backward_compatible=True)
    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Returns an input of the new graph.

        Args:
            target: Name of the parameter.
            args: Tuple of its default, or ``()``.
            kwargs: No effect.
        """
        return Proxy(self.new_graph.placeholder(str(target), default_value=args[0] if args else ...), self.tracer)

    @compatibility(is_backward_compatible=True)
    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Returns an attribute in the new graph.

        Args:
            target: Dotted name of the attribute.
            args: ``()``.
            kwargs: ``{}``.
        """
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Returns a submodule's call in the new graph, as the tracer records it.

        Args:
            target: Dotted name of the submodule.
            args: Tuple of positional arguments.
            kwargs: Dict of keyword arguments.
        """
        module = self.fetch_attr(str(target))
        return self.tracer.call_module(module, module.forward, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Returns a function's call in the new graph.

        Args:
            target: The function.
            args: Tuple of positional arguments.
            kwargs: Dict of keyword arguments.
        """
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def transform(self) -> GraphModule:
        """Return the module with the new graph."""
        with fx_traceback.preserve_node_meta():
            found = super().run(enable_io_processing=False)
        if found is not None:
            value = map_aggregate(found, lambda a: a.node if isinstance(a, Proxy) else a)
            made = self.new_graph.output(value)
            made.meta.update(self.graph.output_node().meta)
        return _make_graph_module(self.module, self.new_graph)


__dir__ = make_module_dir(globals())
