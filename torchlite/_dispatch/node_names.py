"""PyTorch's names for the nodes of the graph, and the edges that it shows.

An op's fact `node_name` is a name, which has an edge for each tensor argument with a derivative, or a graph in text:
`"SqueezeBackward1(AvgPool2DBackward0(UnsqueezeBackward0(input)))"`. An argument's name there stands for its edge, that
of a list for all of its edges, `x[0]` for one of them, `-` for no edge, and `#1` after a node's name for its second
output. A composite with the fact is shown as that graph, whatever ops it calls; results with different graphs are
separated by `;`. The engine knows nothing of this: it runs the nodes that were recorded.
"""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Callable
from typing import Any

from .autograd_graph import Node, OutputEdge, edge_to_pair, gradient_edge, make_python_class
from .callbacks import CALLBACKS
from .dispatch_state import LEAF
from .op_record import Op

# The mark of a node of `number op tensor`.
REFLECTED = "a number, then a tensor"
_TOKEN = re.compile(r"[\w:]+(?:#\d+)?(?:\[\d+\])?|[-(),;]")


def saved_argument(node: Any, name: str, kinds: tuple[str, ...] = ("value", "plain")) -> Any:
    """The value that a node saved of an argument (with `kinds=("dtype",)` its dtype), or None."""
    for i, (saved, kind, _) in enumerate(node._op.saved_variables.saves):
        if saved == name and kind in kinds and node._saved is not None:
            return node._saved[i]
    return None


def scalar_or_tensor_name(name: str, argument: str = "other", number: int = 0, first: int = 2) -> Callable[[Any], str]:
    """The name of an op with overloads, by whether `argument` is a number, which then has no edge, or a tensor.

    number, first: the names' last digits where `argument` is a number, and where the op's first argument is one.
    Tensors have the one of 0 and 1 that is left.
    """

    def choose_name(node: Any) -> str:
        own, mark = node._op.params[0].name, getattr(node, "_shown", None)
        if mark == argument:
            return f"{name}Backward{number}({own})"
        return (
            f"{name}Backward{first}({argument})" if mark in (own, REFLECTED) else f"{name}Backward{0 if number else 1}"
        )

    return choose_name


def all_or_dim_name(name: str) -> Callable[[Any], str]:
    """The name of a reduction with two overloads: the first reduces all dimensions."""
    return lambda node: f"{name}Backward{0 if saved_argument(node, 'dim') in (None, ()) else 1}"


def default_node_name(op: Op) -> str:
    """The name of an op's node after the op's own: MulBackward0."""
    return "".join(word[:1].upper() + word[1:] for word in op.name.removesuffix("_").split("_")) + "Backward0"


class CompositeCall:
    """The arguments of a composite's call: (shape, dtype) for a tensor, a list of these for a list."""

    __slots__ = ("op", "edges", "values")

    def __init__(self, op: Op, edges: dict[str, Any], values: Any):
        self.op, self.edges = op, edges
        self.values = dict(zip([p.name for p in op.params], values or (), strict=False))

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def ndim(self, name: str) -> int:
        """The number of dimensions of a tensor argument."""
        return len(self.values[name][0])


def edges_of(value: Any) -> Any:
    """The gradient edges of an argument in the place of a tensor or of several."""
    if value.__class__ in (list, tuple):
        return tuple(map(edges_of, value))
    return None if getattr(value, "_tl_node", None) is None else gradient_edge(value)


def facts_of(value: Any) -> Any:
    """Shape and dtype of a tensor, those of a list's tensors, and any other value itself."""
    if value.__class__ in (list, tuple) and any(hasattr(item, "_tl_node") for item in value):
        return [facts_of(item) for item in value]
    return (tuple(value.shape), value.dtype) if hasattr(value, "_tl_node") else value


def show_composite(op: Op, start: int, result: Any, values: Any) -> Any:
    """Let the results of a composite, which began at the number `start` of SEQUENCE, show PyTorch's nodes.

    A node's `_shown` is the op, the edges of its arguments that are tensors or None by default (a list: of all), the
    facts of all arguments, and the numbers of the result and of the output, which is None where the node has several.
    """
    call: tuple | None = None
    output = 0
    for i, item in enumerate(result if isinstance(result, (tuple, list)) else (result,)):
        where = getattr(item, "_tl_node", None)
        if where is None or where is LEAF:
            continue
        node = where.node if where.__class__ is OutputEdge else where
        if getattr(node, "_seq", 0) > start and not node._is_custom:  # an argument that is returned keeps its own
            if call is None:
                edges = [edges_of(value) for value in values]
                if op.name[-1] == "_":  # written in place: the history is that before
                    if node._op is CALLBACKS.copy_slices:
                        return result
                    edges[0] = node._edges[0]
                call = op, edges, tuple(map(facts_of, values)) if callable(op.node_name) else None
            node._shown = *call, i, None if where.__class__ is OutputEdge else output
        output += 1
    return result


@functools.cache
def _parse(text: str) -> list[tuple]:
    """The graphs of a text: (name, output, edges), where an edge is such a tuple or the name of an argument."""
    tokens = _TOKEN.findall(text)
    place = 0

    def node() -> Any:
        nonlocal place
        name, _, number = tokens[place].partition("#")
        place += 1
        if place == len(tokens) or tokens[place] != "(":
            return name
        edges = []
        while tokens[place] != ")":
            place += 1
            edges.append(node())
        place += 1
        return name, int(number or 0), edges

    found = [node()]
    while place < len(tokens):
        place += 1
        found.append(node())
    return [(each, 0, None) if each.__class__ is str else each for each in found]


def _shown_graph(node: Any) -> tuple[str, int, list | None, dict[str, Any]]:
    """(name, output, edges, edges of the arguments) that a node is shown with; the edges are None for the usual."""
    mark = getattr(node, "_shown", None)
    call, result, output = None, 0, 0
    if mark.__class__ is tuple:
        own, ends, facts, result, output = mark
        takers = [p for p in own.params if ends.__class__ is list or p.is_tensor or p.default is None]
        call = CompositeCall(own, dict(zip([p.name for p in takers], ends, strict=True)), facts)
    op = node._op if call is None else call.op
    text: Any = op.node_name
    number_first = mark is REFLECTED
    if text.__class__ is tuple:
        text = text[number_first]
    elif text.__class__ is not str:
        text = text(node if call is None else call)
    if not text and call is not None:  # a composite's call that is shown as it is
        del node._shown
        return _shown_graph(node)
    several = _parse(text) if text else [(default_node_name(op), 0, None)]
    name, own_output, shown = several[min(result, len(several) - 1)]
    if call is not None:
        return name, output if len(several) == 1 else own_output, shown, call.edges
    edges = list(zip([p.name for p in op.tensor_params], node._edges, strict=False))
    return name, own_output, shown, dict(edges[::-1] if number_first else edges)


def mark_reflected(result: Any) -> Any:
    """The result of `number op tensor`, of which PyTorch shows the tensor first."""
    node = getattr(result, "_tl_node", None)
    if node.__class__ is Node and getattr(node, "_shown", None) == node._op.params[0].name:
        node._shown = REFLECTED
    return result


def node_name(node: Any) -> str:
    """PyTorch's name for a node, e.g. MulBackward0."""
    return _shown_graph(node)[0]


def shown_output(node: Any, index: int) -> int:
    """The number that PyTorch's node has for output `index` of a node."""
    output = _shown_graph(node)[1]
    return index if output is None or getattr(node, "_shown", None).__class__ is not tuple else output


def next_functions(node: Any) -> tuple:
    """((node, output index), ...) of the inputs, as PyTorch shows them."""
    if not isinstance(node._op, Op):  # a custom Function, which has an edge for each tensor among its arguments
        flags = getattr(node, "_is_tensor", None)
        return _pairs(
            node._edges if flags is None else [edge for edge, own in zip(node._edges, flags, strict=True) if own]
        )
    name, _, shown, edges = _shown_graph(node)
    if name == "NotImplemented":
        return tuple(pair for pair in _pairs(edges.values()) if pair[0] is not None)
    if shown is None:
        return _pairs(_with_derivative(node, edges))
    if not any(each.__class__ is tuple for each in shown):
        return _shown_pairs(shown, edges)
    if node not in _shown_parts:  # the same objects as long as the node exists
        _shown_parts[node] = _shown_pairs(shown, edges)
    return _shown_parts[node]


_shown_parts: weakref.WeakKeyDictionary[Any, tuple] = weakref.WeakKeyDictionary()


def _with_derivative(node: Any, edges: dict[str, Any]) -> Any:
    """The edges of the arguments that have a derivative."""
    if getattr(node, "_shown", None).__class__ is tuple or not node._op.vjp:
        return edges.values()
    having = {name for formula in node._op.formulas for name in formula.targets}
    return (edge for name, edge in edges.items() if name in having)


def _pairs(edges: Any) -> tuple:
    flat = [e for edge in edges for e in (edge if edge.__class__ is tuple else (edge,))]
    return tuple((None, 0) if e is None else edge_to_pair(e) for e in flat)


def _shown_pairs(shown: list, edges: dict[str, Any]) -> tuple:
    pairs: list[tuple] = []
    for each in shown:
        if each.__class__ is tuple:
            name, output, below = each
            further = _shown_pairs(below, edges)
            lost = all(node is None for node, _ in further)
            pairs.append((None, 0) if lost else (make_python_class(name, PartOfNode)(name, further), output))
        elif each == "-":
            pairs.append((None, 0))
        else:
            name, _, place = each.partition("[")
            edge = edges[name]
            pairs += _pairs((edge,) if not place else (edge[int(place[:-1])] if edge is not None else None,))
    return tuple(pairs)


class PartOfNode(Node):
    """A node that PyTorch has and torchlite computes as a part of another: it can be seen, and not be run."""

    __slots__ = ("_name", "_pairs")

    def __init__(self, name: str, pairs: tuple):
        self._name, self._pairs = name, pairs
        self._op = self._saved = self._out = self._counter = self._hooks = self._trace = None
        self._edges = self._versions = ()
        self._seq = 0

    def name(self) -> str:
        return self._name

    @property
    def next_functions(self) -> tuple:
        return self._pairs

    def __call__(self, *grads: Any, **others: Any) -> Any:
        raise NotImplementedError(f"torchlite computes {self._name} as a part of another node: it cannot be called")

    def register_hook(self, hook: Any) -> Any:
        raise NotImplementedError(f"torchlite computes {self._name} as a part of another node: it has no hooks")

    register_prehook = register_hook


CALLBACKS.node_name, CALLBACKS.next_functions, CALLBACKS.shown_output = node_name, next_functions, shown_output
