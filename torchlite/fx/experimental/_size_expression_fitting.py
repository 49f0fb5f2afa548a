"""Infers size expressions by tracing a program with several input sizes.

A number that differs between traces is solved for: a linear combination of sizes, a multiple of a product, or a floor
division. One trace beyond the number of unknowns verifies it.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torchlite as torch
from torchlite._symbolic_shapes import Expr, SymBool, SymFloat, SymInt, sym_float, sym_max, sym_min, sym_sqrt
from torchlite.fx import Graph, Node

_LARGEST_DIVISOR = 64
_MAX_NEIGHBOURS = 8


class NoExpressionError(Exception):
    """Programs differ in more than numbers, or no expression fits."""


def fit_expression(values: tuple[int, ...], sizes: list[dict[str, int]]) -> Expr:
    """Return an expression with these values for these sizes, one dictionary per trace. Raise NoExpressionError if none
    fits.

    >>> from torchlite.fx.experimental._size_expression_fitting import fit_expression
    >>> fit_expression((8, 12, 20), [{"s0": 4}, {"s0": 6}, {"s0": 10}])
    2*s0
    >>> fit_expression((2, 3, 4), [{"s0": 5}, {"s0": 6}, {"s0": 9}])
    (s0//2)
    """
    for found in _candidate_expressions(values, sizes):
        try:
            if all(found.value(s) == v for s, v in zip(sizes, values, strict=True)):
                return found
        except (ArithmeticError, KeyError):
            continue
    raise NoExpressionError(f"no expression of the sizes is {values}")


def _candidate_expressions(values: tuple[int, ...], sizes: list[dict[str, int]]) -> Iterator[Expr]:
    names = sorted(sizes[0])
    if len(set(values)) == 1:
        yield Expr.of(values[0])
        return
    moved = [n for n in names if _depends_on_size(values, sizes, n)] or names
    for powers in itertools.product(range(3), repeat=len(moved)):
        product = math.prod(sizes[0][n] ** p for n, p in zip(moved, powers, strict=True))
        if any(powers) and product and values[0] % product == 0:
            found = Expr.of(values[0] // product)
            for name, power in zip(moved, powers, strict=True):
                for _ in range(power):
                    found = found * Expr.symbol(name)
            yield found
    total, fine = Expr.of(values[0]), True
    for name in moved:
        step = _slope_between_traces(values, sizes, name)
        if step is None:
            fine = False
            break
        total = total + (Expr.symbol(name) - sizes[0][name]) * step
    if fine:
        yield total
    if len(moved) == 1:
        yield from _floor_div_candidates(values, [s[moved[0]] for s in sizes], Expr.symbol(moved[0]))


def _depends_on_size(values: tuple[int, ...], sizes: list[dict[str, int]], name: str) -> bool:
    """True if a trace that changes only this size gives another value."""
    return any(
        v != values[0] and all((s[n] != sizes[0][n]) == (n == name) for n in s)
        for s, v in zip(sizes, values, strict=True)
    )


def _slope_between_traces(values: tuple[int, ...], sizes: list[dict[str, int]], name: str) -> int | None:
    for s, v in zip(sizes, values, strict=True):
        if all((s[n] != sizes[0][n]) == (n == name) for n in s):
            step, rest = divmod(v - values[0], s[name] - sizes[0][name])
            return None if rest else step
    return None


def _floor_div_candidates(values: tuple[int, ...], sizes: list[int], of: Expr) -> Iterator[Expr]:
    """Return floor division candidates of a size, as in convolutions and pools."""
    common = math.gcd(*values) or 1
    for factor in [f for f in range(common, 0, -1) if common % f == 0]:
        parts = [v // factor for v in values]
        for divisor in range(2, _LARGEST_DIVISOR):
            low = max(divisor * v - s for v, s in zip(parts, sizes, strict=True))
            high = min(divisor * v - s + divisor - 1 for v, s in zip(parts, sizes, strict=True))
            if low <= high:
                add = 0 if low <= 0 <= high else low if low > 0 else high
                yield (of + add) // divisor * factor


def fit_from_argument_sizes(values: tuple[int, ...], near: list[tuple[Expr, tuple[int, ...]]]) -> Iterator[Expr]:
    """Fit an expression of argument sizes: linear, sum, difference, product, quotient, floor division, minimum or
    maximum.
    """
    moving = [(e, v) for e, v in near if len(set(v)) > 1][:_MAX_NEIGHBOURS]
    for expr, sizes in moving:
        other = next((i for i, v in enumerate(sizes) if v != sizes[0]), 0)
        step, rest = divmod(values[other] - values[0], sizes[other] - sizes[0])
        if not rest and step:
            yield expr * step + (values[0] - step * sizes[0])
    for (a, _), (b, _) in itertools.combinations(moving, 2):
        yield from (a + b, a - b, b - a, a * b)
    for (a, m), (b, n) in itertools.permutations(moving, 2):
        if 0 not in n and values[0] and not m[0] % (values[0] * n[0]):
            yield a // (b * (m[0] // (values[0] * n[0])))
    for expr, sizes in moving:
        yield from _floor_div_candidates(values, list(sizes), expr)
        yield from (Expr.function("Min", expr, max(values)), Expr.function("Max", expr, min(values)))
    for (a, _), (b, _) in itertools.combinations(moving, 2):
        yield from (Expr.function("Min", a, b), Expr.function("Max", a, b))


def _product_candidates(rows: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(math.prod(row) for row in zip(*rows, strict=True))


class GraphMerger:
    """Replaces numbers of a graph by size expressions. `graphs` are traces of one program with sizes `sizes`; the first
    is changed.
    """

    def __init__(
        self, graphs: list[Graph], sizes: list[dict[str, int]], sources: Mapping[str, tuple[Node, int | None]]
    ) -> None:
        self.graphs, self.sizes, self.sources = graphs, sizes, sources
        self.known: dict[tuple, Expr] = {}
        self.own: dict[str, Expr] = {}  # symbols of single sizes
        self.found: dict[tuple[int, int], Expr] = {}  # sizes by value number and dimension
        self.near: dict[Node, list[tuple[Expr, tuple[int, ...]]]] = {}  # argument sizes by node
        self.nodes: dict[Expr, Node] = {}
        for name in sizes[0]:
            self.known.setdefault(tuple(s[name] for s in sizes), Expr.symbol(name))

    def run(self) -> None:
        rows = [list(graph.nodes) for graph in self.graphs]
        if len({len(row) for row in rows}) != 1:
            raise NoExpressionError("the program calls other ops for other sizes")
        for nodes in zip(*rows, strict=True):
            first = nodes[0]
            if any(n.op != first.op or n.target != first.target for n in nodes[1:]) and first.op != "placeholder":
                raise NoExpressionError(
                    f"the program calls other ops for other sizes: {first.target} or "
                    f"{next(n.target for n in nodes if n.target != first.target)}\n{first.meta.get('stack_trace', '')}"
                )
            self._merge_value_metadata(nodes)
            if first.op == "call_function":
                args = self._merge_arguments([n.args for n in nodes], first)
                kwargs = self._merge_arguments([n.kwargs for n in nodes], first)
                first.args, first.kwargs = tuple(args), dict(kwargs)
            elif first.op == "output" and first.args and isinstance(first.args[0], tuple):
                first.args = (tuple(self._merge_arguments([list(n.args[0]) for n in nodes], first)),)  # type: ignore[arg-type]

    def expression(self, values: tuple[int, ...], near: list[tuple[Expr, tuple[int, ...]]] | None = None) -> Expr:
        """Return an expression of a number's values in all traces. `near`: sizes it may be computed from."""
        if values in self.known:
            return self.known[values]
        if len(set(values)) == 1:
            held = (e for e, v in near or () if v == values and not e.is_number)
            return next(held, Expr.of(values[0]))
        found = next((e for e in fit_from_argument_sizes(values, near or []) if self._matches(e, values)), None)
        self.known[values] = fit_expression(values, self.sizes) if found is None else found
        return self.known[values]

    def _matches(self, expr: Expr, values: tuple[int, ...]) -> bool:
        try:
            return all(expr.value(s) == v for s, v in zip(self.sizes, values, strict=True))
        except (ArithmeticError, KeyError):
            return False

    def _merge_arguments(self, values: list[Any], user: Node) -> Any:
        """Return the merged arguments of a node in all traces, with nodes for numbers that differ."""
        first = values[0]
        if isinstance(first, Node):
            return first
        if isinstance(first, (list, tuple)):
            if len({len(v) for v in values}) != 1:
                raise NoExpressionError(f"an argument of {user.target} is longer for other sizes")
            return [self._merge_arguments(list(items), user) for items in zip(*values, strict=True)]
        if isinstance(first, dict):
            return {key: self._merge_arguments([v[key] for v in values], user) for key in first}
        if all(type(v) is type(first) and (v == first or v != v) for v in values):
            return first
        if all(type(v) is int for v in values):
            return self.node(self.expression(tuple(values), self._nearby_sizes(user)), user)
        if all(type(v) is float for v in values):
            fraction = self._fraction_node(tuple(values), user)
            if fraction is not None:
                return fraction
            raise NoExpressionError(f"a number of {user.target} depends on sizes:\n{user.meta.get('stack_trace', '')}")
        raise NoExpressionError(f"an argument of {user.target} depends on sizes")

    def _fraction_node(self, values: tuple[float, ...], user: Node) -> Any:
        """Return the node of a float that Python computed from a size: a multiple, a quotient, or one of its square
        root. Return None for other floats.
        """
        for sizes, expr in self.known.items():
            if len(set(sizes)) == 1 or 0 in sizes:
                continue
            for root, turned in itertools.product((False, True), repeat=2):
                parts = [math.sqrt(s) if root and s > 0 else float(s) for s in sizes]
                numbers = [v * p if turned else v / p for v, p in zip(values, parts, strict=True)]
                if all(math.isclose(n, numbers[0], rel_tol=1e-14) for n in numbers):
                    return self._scaled_node(expr, numbers[0], root, turned, user)
        return None

    def _scaled_node(self, expr: Expr, number: float, root: bool, turned: bool, user: Node) -> Node:
        of = self.node(expr, user)
        steps: list[tuple[Any, ...]] = [(sym_float,), *[(sym_sqrt,)] * root]
        near = round(number, 9)
        number = near if math.isclose(near, number, rel_tol=1e-13) else number
        with self.graphs[0].inserting_before(user):
            value = of.meta["val"]
            for (step,) in steps:
                of, value = (
                    self.graphs[0].call_function(step, (of,)),
                    SymFloat.of(step(float(value)), (step, value), self),
                )
                of.meta["val"] = value
            args = (number, of) if turned else (of, number)
            node = self.graphs[0].call_function(operator.truediv if turned else operator.mul, args)
        parts = (number, value) if turned else (value, number)
        scaled = number / float(value) if turned else number * float(value)
        node.meta["val"] = SymFloat.of(scaled, (node.target, *parts), self)
        return node

    open = False  # if symbols depend on the trace

    def _nearby_sizes(self, node: Node) -> list[tuple[Expr, tuple[int, ...]]]:
        """Return the sizes and element counts of a node's arguments."""
        near = list(dict.fromkeys(pair for n in node.all_input_nodes for pair in self.near.get(n, ())))
        for argument in list(dict.fromkeys(node.all_input_nodes))[:4]:
            pairs = self.near.get(argument, ())
            if len(pairs) > 1:
                near.append(
                    (math.prod((e for e, _ in pairs), start=Expr.of(1)), _product_candidates([v for _, v in pairs]))
                )
        return near

    def _merge_value_metadata(self, nodes: tuple[Node, ...]) -> None:
        """Return the sizes in a node's value metadata."""
        found = [n.meta.get("val") for n in nodes]
        near = self._nearby_sizes(nodes[0])
        nodes[0].meta["val"] = self._merge_value(found, near, nodes[0])

    def _merge_value(self, found: list[Any], near: list, node: Node) -> Any:
        from torchlite._subclasses.fake_constructors import new_fake_tensor

        first = found[0]
        if isinstance(first, list):
            return [self._merge_value(list(items), near, node) for items in zip(*found, strict=True)]
        if isinstance(first, torch.Tensor):
            if len({v.ndim for v in found}) != 1:
                raise NoExpressionError("a tensor has more dimensions for other sizes")
            sizes = [
                self._merge_size(v, near, node, d) for d, v in enumerate(zip(*(v.shape for v in found), strict=True))
            ]
            own = self.near.get(node, [])[-first.ndim :] if first.ndim else []
            for end in range(len(own) - 1):
                pairs = own[end : first.ndim]
                products = (
                    math.prod((e for e, _ in pairs), start=Expr.of(1)),
                    _product_candidates([v for _, v in pairs]),
                )
                near = [*near, products]
            strides = [self._merge_stride(v, [*own, *near]) for v in zip(*(v.stride() for v in found), strict=True)]
            return new_fake_tensor(first.dtype, sizes, strides, first.device, first.requires_grad)
        if isinstance(first, SymInt) and first.node.trace is not None:
            expr, values = first.node.expr.replaced(self.own), tuple(map(int, found))
            if self._matches(expr, values):
                self.near[node] = [(expr, values)]
                if len(set(values)) > 1:
                    self.known.setdefault(values, expr)
            return SymInt.of(expr, int(first))
        if isinstance(first, SymBool) and first.b is not None:
            parts = zip(*((c.a, c.b) for c in found), strict=True)
            a, b = (self._merge_value(list(items), near, node) for items in parts)
            return SymBool.of(first.name, a, b, first.holds, first.trace, first.place)
        return first

    def _merge_size(self, values: tuple[int, ...], near: list, node: Node, dim: int) -> Any:
        values = tuple(map(int, values))
        try:
            expr = self.expression(values, near)
        except NoExpressionError:
            return values[0]  # the program reads it from the value itself
        self.own[f"{node.name}.{dim}"] = expr
        if "number" in node.meta:
            self.found[node.meta["number"], dim] = expr
        self.near.setdefault(node, []).append((expr, values))
        return SymInt.of(expr, values[0])

    def _merge_stride(self, values: tuple[int, ...], near: list[tuple[Expr, tuple[int, ...]]]) -> Any:
        values = tuple(map(int, values))
        if len(set(values)) == 1:
            return values[0]
        held = next((e for e, v in near if v == values), None)
        found = held or next((e for e in fit_from_argument_sizes(values, near) if self._matches(e, values)), None)
        return values[0] if found is None else SymInt.of(found, values[0])

    # -- nodes of expressions ------------------------------------------------------------------

    def node(self, expr: Expr, user: Node) -> Any:
        """Return the node of an expression, inserted before its first user."""
        if expr.is_number:
            return int(expr)
        if expr in self.nodes:
            return self.nodes[expr]
        graph = self.graphs[0]

        def call(target: Any, *args: Any) -> Any:
            with graph.inserting_before(user):
                name = "sym_size_int" if target is torch.ops.aten.sym_size.int else None
                made = graph.create_node("call_function", target, args, {}, name=name)
            if "nn_module_stack" in user.meta:
                made.meta["nn_module_stack"] = user.meta["nn_module_stack"]
            return made

        total: Any = None
        for atoms, count in expr.terms:
            term: Any = None
            for atom in atoms:
                part = self._atom_node(atom, user, call)
                term = part if term is None else call(operator.mul, term, part)
            term = count if term is None else term if count == 1 else call(operator.mul, term, count)
            total = term if total is None else call(operator.add, total, term)
        total.meta["val"] = SymInt.of(expr, expr.value(self.sizes[0]))
        self.nodes[expr] = total
        self._set_metadata(total)
        return total

    def _atom_node(self, atom: Any, user: Node, call: Any) -> Any:
        if len(atom) == 1:
            single = Expr.symbol(atom[0])
            if single not in self.nodes:
                source, dim = self.sources[atom[0]]
                if dim is None:
                    return source
                made = call(torch.ops.aten.sym_size.int, source, dim)
                made.meta["val"] = SymInt.of(single, self.sizes[0][atom[0]])
                self.nodes[single] = made
            return self.nodes[single]
        parts = [self.node(part, user) for part in atom[1:]]
        target = {"FloorDiv": operator.floordiv, "PythonMod": operator.mod, "Max": sym_max, "Min": sym_min}[atom[0]]
        return call(target, *parts)

    def _set_metadata(self, node: Node) -> None:
        """Set the metadata of intermediate sums and products."""
        for inner in node.all_input_nodes:
            if "val" not in inner.meta:
                parts = [
                    Expr.of(a.meta["val"]) if isinstance(a, Node) else Expr.of(a) for a in self._node_operands(inner)
                ]
                name = getattr(inner.target, "__name__", "")
                found = {
                    "mul": lambda a, b: a * b, "add": lambda a, b: a + b, "floordiv": lambda a, b: a // b,
                    "mod": lambda a, b: a % b, "sym_max": lambda a, b: Expr.function("Max", a, b),
                    "sym_min": lambda a, b: Expr.function("Min", a, b),
                }[name](*parts)  # fmt: skip
                inner.meta["val"] = SymInt.of(found, found.value(self.sizes[0]))

    def _node_operands(self, node: Node) -> tuple:
        self._set_metadata(node)
        return node.args
