"""LoadedModule: a GraphModule of a loaded ONNX model, pickled as its graph."""

from __future__ import annotations

import functools
import inspect
import operator
from typing import Any

from torchlite._dispatch.inference_calls import InferenceCalls
from torchlite.fx import Graph, GraphModule, Interpreter, Node
from torchlite.fx._codegen import CodeGen, _find_last_uses, _SourceLine
from torchlite.fx.node import map_aggregate
from torchlite.nn import Module

from ._import.elementwise import BINARY, CHECKED, PLAIN
from ._import.lazy_functions import FunctionSet
from ._import.resource_limits import RUN, RunLimits, count_elements, element_budget, value_counter
from .errors import OnnxFileError

_GRAPHS = ("_graph", "_code", "_lineno_map", "_prologue_start")  # regenerated attributes
_VIEW_FUNCTIONS = FunctionSet(("permute",))  # whose results alias inputs; and `getitem`
# Functions whose results are new memory, and among them those whose result is as large as the input.
_FRESH_RESULT_FUNCTIONS = FunctionSet(
    (*PLAIN.values(), *BINARY.values(), "matmul", "F.conv1d", "F.conv2d", "F.conv3d", "F.linear")
)
_SAME_SIZE_FUNCTIONS = FunctionSet((*PLAIN.values(), "softmax", "log_softmax"))


class _NodeReference:
    """Pickled reference to a node."""

    def __init__(self, number: int) -> None:
        self.number = number


class CountingCode(CodeGen):
    """CodeGen that counts each value. A value that replaces a freed one of equal size counts only with gradients
    recorded, as both stay alive then. Graphs that are not `compiled` are interpreted.
    """

    def __init__(self, compiled: bool = True) -> None:
        super().__init__()
        self.compiled = compiled

    def _body_lines(self, nodes: list[Node], writer: Any) -> list[str]:
        body: list[Any] = super()._body_lines(nodes, writer)
        ends, names = _find_last_uses(nodes), [writer.namespace.create_name(n, None) for n in ("hold", "replace")]
        for at, line in enumerate(body):
            node = None if line.node is None else nodes[line.node]
            if node is None or not _has_own_memory(node) or not line.startswith(f"{node!r} "):
                continue
            statement, _, freed = line.rstrip("\n").rpartition(";  ")
            if not freed.endswith(" = None"):
                statement, freed = line.rstrip("\n"), ""
            count = f"{names[_can_reuse_input(node, ends)]}({node!r})"
            parts = [statement, freed, count] if node.users else [statement, count, freed]
            body[at] = _SourceLine.of(";  ".join(filter(None, parts[:2])) + f"\n{parts[2]}\n", line.node)
        return [_SourceLine.of(f"{', '.join(names)} = {writer.add_global('holder', value_counter)}()\n", None), *body]


class _CountingInterpreter(Interpreter):
    """Interpreter that counts each value, as `CountingCode` does."""

    def __init__(self, module: GraphModule, ends: dict[Node, list[Node]]) -> None:
        self.module, self.graph, self.env, self.ends = module, module._graph, {}, ends
        self.garbage_collect_values, self.extra_traceback, self.user_to_last_uses = False, False, {}
        self.counts = value_counter()

    def run_node(self, n: Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        value = getattr(self, n.op)(n.target, args, kwargs)
        del args, kwargs
        for done in self.ends.get(n, ()):
            del self.env[done]
        if _has_own_memory(n):
            self.counts[_can_reuse_input(n, self.ends)](value)
        return value if n.users or n.op == "output" else None


def _make_interpreting_forward(graph: Graph) -> Any:
    """Return a `forward` that interprets the graph."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    kind, own = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    takes = inspect.Signature([inspect.Parameter(str(node.target), kind) for node in inputs])
    ends = _find_last_uses(list(graph.nodes))

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _CountingInterpreter(self, ends).run(*takes.bind(*args, **kwargs).args)

    forward.__signature__ = takes.replace(parameters=[own, *takes.parameters.values()])  # type: ignore[attr-defined]
    return forward


def _make_counting_forward(run: Any) -> Any:
    """Return a `forward` that counts. A body counts with its caller."""

    @functools.wraps(run)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.file_elements is None:
            return run(self, *args, **kwargs)
        return calls(self, args, kwargs)

    def run_counting(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = RUN.limits
        RUN.limits = self._make_limits((*args, *kwargs.values()))
        try:
            return run(self, *args, **kwargs)
        # not explained by any input's shape
        except (ArithmeticError, AttributeError, KeyError, RecursionError) as error:
            raise OnnxFileError(f"the model asks an op for what it has not: {error}") from error
        finally:
            RUN.limits = before

    calls = InferenceCalls(run_counting, ("max_elements", "file_elements"))
    return forward


def _has_own_memory(node: Node) -> bool:
    """True if a node's value does not alias its inputs."""
    return node.op == "call_function" and node.target is not operator.getitem and node.target not in _VIEW_FUNCTIONS


def _can_reuse_input(node: Node, ends: dict[Node, list[Node]]) -> bool:
    """True if a node's value is as large as its single input, which dies there."""
    if node.target not in _SAME_SIZE_FUNCTIONS:
        return False
    sources = node.all_input_nodes
    if len(sources) != 1 or sources[0] not in ends.get(node, ()):
        return False
    function = sources[0].target
    return function in _FRESH_RESULT_FUNCTIONS or CHECKED.has_made(function)


class LoadedModule(GraphModule):
    """FX module of an ONNX model.

    It pickles its nodes, as tracing cannot recover them: input checks refuse Proxies, and host constants are calls
    without inputs.

    `max_elements` limits the elements that live at once in a call, None for the default by file and inputs.
    `file_elements` is the file's part, None for a control flow body, which counts with its caller.
    """

    # A server catches the errors of wrong inputs: they do not write to stderr.
    _shows_generated_line = False
    max_elements: int | None = None
    file_elements: int | None = None

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        if not isinstance(graph._codegen, CountingCode):
            graph.set_codegen(CountingCode())
        super().__init__(root, graph, class_name)

    def recompile(self) -> Any:
        """Regenerate the code, unless the graph is interpreted."""
        code = None
        if self._is_compiled():
            code = super().recompile()
        else:
            type(self).forward = _make_interpreting_forward(self._graph)
        type(self).forward = _make_counting_forward(type(self).forward)
        return code

    def _is_compiled(self) -> bool:
        return getattr(self._graph._codegen, "compiled", True)

    @property
    def code(self) -> str:
        """Return the Python code of `forward`."""
        return super().code if self._is_compiled() else self._graph.python_code("self").src

    def _make_limits(self, given: tuple) -> RunLimits:
        def list_live_values() -> list[Any]:
            return [*_find_arrays(given), *self.parameters(), *self.buffers()]

        if self.max_elements is not None:
            return RunLimits(self.max_elements, 0, list_live_values)
        file, inputs = self.file_elements or 0, sum(map(count_elements, given))
        most = element_budget(file, inputs)
        return RunLimits(most, most // 2, list_live_values)

    def __deepcopy__(self, memo: Any) -> GraphModule:
        return self._set_limits(super().__deepcopy__(memo))

    def __copy__(self) -> GraphModule:
        made = LoadedModule(self, self.graph, type(self).__name__)
        made.meta = self.meta
        return self._set_limits(made)

    def make_part(self, graph: Graph) -> LoadedModule:
        """Return a module of some of the nodes, which counts with its caller."""
        graph.set_codegen(CountingCode(self._is_compiled()))
        return LoadedModule(self, graph, type(self).__name__)

    def _set_limits(self, made: Any) -> Any:
        made.max_elements, made.file_elements = self.max_elements, self.file_elements
        return made

    def __reduce__(self) -> Any:
        numbers = {node: number for number, node in enumerate(self.graph.nodes)}

        def replace_nodes(value: Any) -> Any:
            return _NodeReference(numbers[value]) if isinstance(value, Node) else value

        nodes = [
            (
                node.op,
                node.target,
                map_aggregate(node.args, replace_nodes),
                map_aggregate(node.kwargs, replace_nodes),
                node.name,
            )
            for node in numbers
        ]
        body = {key: value for key, value in self.__dict__.items() if key not in _GRAPHS}
        return _rebuild_module, (type(self).__name__, body, nodes, self._is_compiled())


def _find_arrays(values: Any) -> list[Any]:
    """Return the tensors and arrays among inputs."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += _find_arrays(value)
        elif hasattr(value, "shape"):
            found.append(value)
    return found


def _rebuild_module(name: str, body: dict[str, Any], nodes: list[tuple], compiled: bool = True) -> LoadedModule:
    """Return the module of a pickle."""
    graph = Graph()
    graph.set_codegen(CountingCode(compiled))
    rebuilt: list[Node] = []

    def node(value: Any) -> Any:
        return rebuilt[value.number] if isinstance(value, _NodeReference) else value

    for op, target, args, kwargs, called in nodes:
        rebuilt.append(graph.create_node(op, target, map_aggregate(args, node), map_aggregate(kwargs, node), called))
    root = Module()
    root.__dict__.update(body)
    module = LoadedModule(root, graph, name)
    for key, value in body.items():
        if not hasattr(module, key):
            setattr(module, key, value)
    module.max_elements, module.file_elements = body.get("max_elements"), body.get("file_elements")
    module.meta.update(body.get("meta", {}))
    return module
