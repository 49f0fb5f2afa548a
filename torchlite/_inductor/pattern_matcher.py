"""Patterns of calls that packages describe for PyTorch's own compiler, and their match in a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torchlite as torch
from torchlite.fx import Node

MULTIPLE = object()  # any number of users


class Match:
    """A place in a graph that a pattern describes.

    `nodes` are the matched calls, inner ones first. `args` are the arguments at `Arg()`, `kwargs` those at
    `KeywordArg(name)`.
    """

    def __init__(self, pattern: PatternExpr) -> None:
        self.pattern = pattern
        self.args: list[Any] = []
        self.kwargs: dict[str, Any] = {}
        self.nodes: list[Node] = []
        self.found: dict[PatternExpr, Any] = {}

    @property
    def graph(self) -> torch.fx.Graph:
        """The graph of the nodes."""
        return self.nodes[0].graph

    def output_node(self) -> Node:
        """Return the node of the complete pattern."""
        return self.found[self.pattern]

    def output_nodes(self) -> list[Node]:
        """Return the node of the complete pattern in a list."""
        return [self.output_node()]

    def erase_nodes(self) -> None:
        """Erase the matched nodes that nothing uses."""
        for node in reversed(self.nodes):
            if not node.users:
                node.graph.erase_node(node)


class PatternExpr:
    """Base of patterns. A pattern that occurs twice in another one matches the same argument twice."""

    def match(self, node: Node) -> Match | None:
        """Return the match of the pattern that ends at a node; None if there is none."""
        match = Match(self)
        return match if self._accepts(node, match) else None

    def _accepts(self, value: Any, match: Match) -> bool:
        if self in match.found:
            return match.found[self] is value
        match.found[self] = value
        return self._fits(value, match)

    def _fits(self, value: Any, match: Match) -> bool:
        raise NotImplementedError


class Arg(PatternExpr):
    """Pattern of any argument."""

    def _fits(self, value: Any, match: Match) -> bool:
        match.args.append(value)
        return True


class KeywordArg(PatternExpr):
    """Pattern of any argument, by a name: equal names are equal arguments."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _fits(self, value: Any, match: Match) -> bool:
        before = match.kwargs.setdefault(self.name, value)
        return before is value or before == value


class CallFunction(PatternExpr):
    """Pattern of a call of one of several functions; a packet means each of its overloads.

    >>> import torchlite as torch
    >>> from torchlite._inductor.pattern_matcher import CallFunction, KeywordArg
    >>> aten, x = torch.ops.aten, torch.ones(2)
    >>> graph = torch.export.export(torch.nn.Softsign(), (x,)).module().graph
    >>> x = KeywordArg("x")
    >>> pattern = CallFunction(aten.div, x, CallFunction(aten.add, CallFunction(aten.abs, x), 1))
    >>> match = pattern.match(next(node for node in graph.nodes if node.target is aten.div.Tensor))
    >>> len(match.nodes), match.kwargs["x"].op
    (3, 'placeholder')
    """

    op = "call_function"

    def __init__(self, fns: Any, *args: Any, _users: Any = 1, **kwargs: Any) -> None:
        functions = fns if isinstance(fns, (list, tuple)) else [fns]
        self.fns = [one for fn in functions for one in (fn, *_overloads(fn))]
        self.args, self.kwargs, self.users = args, kwargs, _users

    def _fits(self, value: Any, match: Match) -> bool:
        if not isinstance(value, Node) or value.op != self.op or not any(value.target == fn for fn in self.fns):
            return False
        if self is not match.pattern and self.users is not MULTIPLE and len(value.users) != self.users:
            return False
        if len(value.args) != len(self.args) or value.kwargs.keys() != self.kwargs.keys():
            return False
        pairs = [*zip(self.args, value.args, strict=True), *((self.kwargs[k], value.kwargs[k]) for k in self.kwargs)]
        if not all(_accepts_argument(wanted, given, match) for wanted, given in pairs):
            return False
        match.nodes.append(value)
        return True


def _overloads(fn: Any) -> list[Any]:
    names = getattr(fn, "overloads", None)
    return [getattr(fn, name) for name in names()] if callable(names) else []


def _accepts_argument(wanted: Any, given: Any, match: Match) -> bool:
    if isinstance(wanted, PatternExpr):
        return wanted._accepts(given, match)
    if isinstance(wanted, (list, tuple)) and isinstance(given, (list, tuple)):
        return len(wanted) == len(given) and all(map(lambda w, g: _accepts_argument(w, g, match), wanted, given))
    return type(wanted) is type(given) and wanted == given or isinstance(given, (int, float)) and wanted == given


def filter_nodes(nodes: Iterable[Node], fn: Any) -> list[Node]:
    """Return the nodes that call a function, or one of a packet's overloads."""
    functions = [fn, *_overloads(fn)]
    return [node for node in nodes if any(node.target == one for one in functions)]


def _always(match: Match) -> bool:
    return True


class PatternMatcherPass:
    """Patterns with the functions that replace what they match.

    >>> from torchlite._inductor.pattern_matcher import PatternMatcherPass
    >>> PatternMatcherPass().patterns
    []
    """

    def __init__(self, pass_name: str | None = None) -> None:
        self.pass_name = pass_name
        self.patterns: list[tuple[PatternExpr, Callable[[Match], bool], Callable]] = []

    def apply(self, graph: torch.fx.Graph) -> int:
        """Replace each match in a graph and return how many there were."""
        count = 0
        for node in reversed(list(graph.nodes)):
            for pattern, check, handler in self.patterns:
                match = None if node._erased else pattern.match(node)
                if match is not None and check(match):
                    handler(match, *match.args, **match.kwargs)
                    count += 1
        return count


def register_graph_pattern(
    pattern: PatternExpr, extra_check: Callable[[Match], bool] = _always, *, pass_dict: PatternMatcherPass
) -> Callable[[Callable], Callable]:
    """Return a decorator that adds a pattern's function to a pass."""

    def decorator(handler: Callable) -> Callable:
        pass_dict.patterns.append((pattern, extra_check, handler))
        return handler

    return decorator
