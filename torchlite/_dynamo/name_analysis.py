"""Names of local variables in statements: which are read and written, which are needed later, which are bound."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

Names = frozenset[str]
_NONE: Names = frozenset()
_LAZY = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.GeneratorExp)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Functions that exhaust a generator expression before they return.
_CONSUMERS = frozenset("sum any all max min tuple list set frozenset dict sorted".split())
# Context managers that raise again what their block raises.
_NEVER_SUPPRESS = frozenset(
    "no_grad enable_grad set_grad_enabled inference_mode autocast record_function profile autograd_profile "
    "deterministic_algorithms detect_anomaly set_detect_anomaly fork_rng sdpa_kernel".split()
)


class Exits(NamedTuple):
    """Variables that are needed after a statement raises, breaks from its loop or continues it."""

    error: Names = _NONE
    after_break: Names = _NONE
    after_continue: Names = _NONE


class _Collector(ast.NodeVisitor):
    """Collects the names that a node reads and writes in its own scope. `captured` has those that code which may run
    later reads, `shared` those that it writes.
    """

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.maybe: set[str] = set()  # written inside of expressions
        self.captured: set[str] = set()
        self.shared: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        (self.reads if isinstance(node.ctx, ast.Load) else self.writes).add(node.id)
        if isinstance(node.ctx, ast.Del):
            self.reads.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.reads.add(node.target.id)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.maybe.add(node.target.id)
        self.reads.add(node.target.id)  # the value may be unbound after the expression

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.writes.update([node.name] if node.name else [])
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.writes.add((node.asname or node.name).partition(".")[0])

    def visit_MatchAs(self, node: Any) -> None:
        self.writes.update([node.name] if node.name else [])
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: Any) -> None:
        self.writes.update([node.rest] if node.rest else [])
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _CONSUMERS:
            for one in node.args:
                self._visit_scope(one, False) if isinstance(one, ast.GeneratorExp) else self.visit(one)
            for word in node.keywords:
                self.visit(word)
            self.visit(node.func)
        else:
            self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, (*_LAZY, *_COMPREHENSIONS)):
            self._visit_scope(node, isinstance(node, _LAZY))
        else:
            super().generic_visit(node)

    def _visit_scope(self, node: Any, is_lazy: bool) -> None:
        inner = _Collector()
        if isinstance(node, _COMPREHENSIONS):
            self.visit(node.generators[0].iter)
            for child in ast.iter_child_nodes(node):
                inner.visit(child)
            self.maybe |= inner.maybe
        else:
            for child in (*getattr(node, "decorator_list", ()), *getattr(node, "bases", ())):
                self.visit(child)
            arguments = getattr(node, "args", None)
            if arguments is not None:
                for child in (*arguments.defaults, *arguments.kw_defaults):
                    if child is not None:
                        self.visit(child)
                every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
                inner.writes.update(one.arg for one in (*every, arguments.vararg, arguments.kwarg) if one is not None)
                for one in every:
                    if one.annotation is not None:
                        self.visit(one.annotation)
            for child in node.body if isinstance(node.body, list) else [node.body]:
                inner.visit(child)
            if hasattr(node, "name"):
                self.writes.add(node.name)
        outer = {name for one in ast.walk(node) if isinstance(one, ast.Nonlocal) for name in one.names}
        free = (inner.reads | inner.captured) - (inner.writes - outer)
        self.reads |= free | outer
        self.shared |= inner.shared | outer
        if is_lazy:
            self.captured |= free | inner.captured | outer
        else:
            self.captured |= inner.captured


class FlowAnalysis:
    """Flow of local variables through the statements of a function. local: its variables."""

    def __init__(self, local: set[str]) -> None:
        self.local = local
        self._known: dict[int, tuple[Any, _Collector]] = {}

    def names(self, *nodes: Any) -> _Collector:
        """Return the local names in nodes."""
        found = _Collector()
        for node in nodes:
            if node is not None:
                known = self._known.get(id(node))
                if known is None:
                    one = _Collector()
                    one.visit(node)
                    self._known[id(node)] = known = node, one
                for name in ("reads", "writes", "maybe", "captured", "shared"):
                    getattr(found, name).update(getattr(known[1], name) & self.local)
        return found

    def reads(self, *nodes: Any) -> Names:
        return frozenset(self.names(*nodes).reads)

    # -- what is needed later -------------------------------------------------------------------

    def live(self, statements: list, after: Names, exits: Exits) -> Names:
        """Return the variables that may be read from the beginning of a block on. after: those after its end."""
        for statement in reversed(statements):
            after = self.live_at(statement, after, exits)
        return after

    def live_at(self, s: Any, after: Names, exits: Exits) -> Names:
        """Return the variables that may be read from the beginning of a statement on."""
        return self._live_at(s, after, exits) | exits.error

    def _live_at(self, s: Any, after: Names, exits: Exits) -> Names:
        if isinstance(s, ast.If):
            return self.reads(s.test) | self.live(s.body, after, exits) | self.live(s.orelse, after, exits)
        if isinstance(s, (ast.For, ast.While)):
            header, _, top = self.loop(s, after, exits)
            return header | top
        if isinstance(s, ast.With):
            return self.reads(*s.items) | self.live(s.body, after, self.within(s, after, exits))
        if isinstance(s, TRIES):
            return self.live(s.body, *self.try_body(s, after, exits))
        if isinstance(s, ast.Match):
            bodies = [self.reads(case.pattern, case.guard) | self.live(case.body, after, exits) for case in s.cases]
            return self.reads(s.subject).union(after, *bodies)
        found = self.names(s)
        if isinstance(s, ast.Return):
            return frozenset(found.reads)
        if isinstance(s, ast.Raise):
            return exits.error | found.reads
        if isinstance(s, ast.Break):
            return exits.after_break
        if isinstance(s, ast.Continue):
            return exits.after_continue
        return (after - found.writes) | found.reads

    def loop(self, s: Any, after: Names, exits: Exits) -> tuple[Names, Exits, Names]:
        """Return what a loop's header reads, the exits of its body, and what is live where a turn begins."""
        test = _NONE if isinstance(s, ast.For) else self.reads(s.test)
        top = test | self.live(s.orelse, after, exits) | after
        while True:
            inside = Exits(exits.error, after, top)
            wider = top | self.live(s.body, top, inside)
            if wider == top:
                return self.reads(s.iter) if isinstance(s, ast.For) else _NONE, inside, top
            top = wider

    def within(self, s: ast.With, after: Names, exits: Exits) -> Exits:
        """Return the exits of a with statement's body."""
        if all(name_of(item.context_expr) in _NEVER_SUPPRESS for item in s.items):
            return exits
        return exits._replace(error=exits.error | after)

    def try_body(self, s: Any, after: Names, exits: Exits) -> tuple[Names, Exits]:
        """Return what is live after a try statement's body, and the body's exits."""
        last = self.try_end(s, after, exits)
        beyond = self.try_handlers(s, exits)
        handlers = [self.live_at_handler(h, last, beyond) for h in s.handlers]
        inside = exits._replace(error=beyond.error.union(*handlers))
        return self.live(s.orelse, last, beyond), inside

    def live_at_handler(self, handler: ast.ExceptHandler, last: Names, exits: Exits) -> Names:
        """Return the variables that may be read from the beginning of a handler on, which binds its own name."""
        inside = self.live(handler.body, self.after_handler(handler, last), exits)
        return self.reads(handler.type) | (inside - {handler.name})

    def after_handler(self, handler: ast.ExceptHandler, last: Names) -> Names:
        """Return the variables that are needed at the end of a handler's body: Python deletes the handler's name."""
        return last - {handler.name} if handler.name else last

    def try_end(self, s: Any, after: Names, exits: Exits) -> Names:
        """Return what is live after the handlers of a try statement."""
        return self.live(s.finalbody, after, exits) if s.finalbody else after

    def try_handlers(self, s: Any, exits: Exits) -> Exits:
        """Return the exits of the handlers of a try statement: each runs its last block."""
        return Exits(*[self.live(s.finalbody, after, exits) for after in exits])

    # -- what is bound --------------------------------------------------------------------------

    def bound_after(self, statements: list, bound: Names | None) -> Names | None:
        """Return the variables that surely have a value after a block; None if its end is never reached."""
        for s in statements:
            if bound is None:
                return None
            bound = self._bound_after(s, bound)
        return bound

    def _bound_after(self, s: Any, bound: Names) -> Names | None:
        if isinstance(s, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return None
        if isinstance(s, ast.If):
            return _meet(self.bound_after(s.body, bound), self.bound_after(s.orelse, bound))
        if isinstance(s, (ast.For, ast.While, ast.Match)):
            return bound
        if isinstance(s, ast.With):
            inside = self.bound_after(s.body, bound | self.names(*s.items).writes)
            suppresses = self.within(s, frozenset(("?",)), Exits()) != Exits()
            return bound if suppresses else inside
        if isinstance(s, TRIES):
            ends = [self.bound_after([*s.body, *s.orelse], bound)]
            ends += [self._bound_after_handler(h, bound) for h in s.handlers]
            found = ends[0]
            for end in ends[1:]:
                found = _meet(found, end)
            if found is None:
                return None
            last = self.bound_after(s.finalbody, bound)
            return None if last is None else (found - (bound - last)) | (last - bound)
        names = self.names(s)
        if isinstance(s, ast.Delete):
            return bound - names.writes
        return bound | (names.writes - names.maybe)

    def _bound_after_handler(self, handler: ast.ExceptHandler, bound: Names) -> Names | None:
        if not handler.name:
            return self.bound_after(handler.body, bound)
        end = self.bound_after(handler.body, bound | {handler.name})
        return None if end is None else end - {handler.name}


def _meet(a: Names | None, b: Names | None) -> Names | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def name_of(node: Any) -> str:
    """Return the last name of a called function: `no_grad` of `torch.no_grad()`."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


TRIES: Any = (ast.Try, ast.TryStar)
