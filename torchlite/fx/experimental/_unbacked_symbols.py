"""Symbols of a trace: input sizes, and unbacked symbols for data-dependent numbers (`item`, `tolist`, `nonzero`,
masks).

Unbacked symbols are named u0, u1, ... (zuf0, ... for floats) and have a range. A trace can assign them other values
than its tensors have, so dependent sizes are inferred like those of inputs. A size is the expression given to the
trace, or a symbol of its own ("add.0": dimension 0 of node `add`). Comparisons of sizes are decided by this trace and
recorded as guards.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

from ..._aten import ops
from ..._dispatch.interceptors import stack
from ..._symbolic_shapes import (
    Expr,
    SymBool,
    SymFloat,
    SymInt,
    UnbackedInt,
    compare_by_name,
    sym_ite,
    sym_max,
    sym_min,
    sym_not,
)
from ..._tensor import Tensor
from ..node import Node

_aten = ops.aten
ITEM_OPS = (_aten.item.default, _aten._local_scalar_dense.default)
NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


class Guard(NamedTuple):
    """A decision of the program: comparison of a size difference with 0, and its source line."""

    name: str
    difference: Expr
    place: str


class UnbackedSymbols:
    """Symbols of one trace. `sizes` has values to assign, `hints` the traced values."""

    def __init__(self, recorder: Any, sizes: dict[str, int] | None = None) -> None:
        self.recorder, self.sizes = recorder, sizes or {}
        self.follows = False  # True if tensor sizes are expressions
        self.known_sizes: dict[tuple[int, int], Expr] = {}  # by value number and dimension
        self.bounds: dict[str, tuple[float, float]] = {}  # ranges of size symbols
        self.given: dict[tuple[Any, int], Expr] = {}  # input sizes
        self.count = 0  # number of values
        self.guards: list[Guard] = []
        self.names: dict[Any, str] = {}  # by nodes of Boolean elements
        self.symbols = 0
        self.hints: dict[str, int] = {}
        self.numbers: dict[str, int] = dict(self.sizes)  # values of all symbols
        self.ranges: dict[str, tuple[float, float]] = {}
        self.sources: dict[str, tuple[Any, int | None]] = {}
        self.counted: dict[Any, str] = {}  # by nodes of masks
        self.counts: dict[tuple[Any, int], Expr] = {}  # data-dependent sizes
        self.floats = 0
        self.facts: set[tuple[str, Expr]] = set()
        self.asserted: set[str] = set()  # asserted conditions that are no integer comparisons
        self.nodes: dict[Any, Any] = {}
        self.name: str | None = None  # name of the next symbol, if predefined
        self.open = True

    # -- sources of symbols ------------------------------------------------------------------------

    def _new_symbol(self, node: Any, dim: int | None, found: int, low: float, high: float) -> tuple[str, int]:
        name = self._new_symbol_name()
        hint = self.hints[name] = self.numbers[name] = self.sizes.get(name, found)
        self.ranges.setdefault(name, (low, high))
        self.sources.setdefault(name, (node, dim))
        return name, hint

    def _new_symbol_name(self) -> str:
        self.symbols += 1
        return self.name or f"u{self.symbols - 1}"

    def input(self, node: Any, dim: int, expr: Expr, size: int) -> None:
        """Define the size of an input."""
        name = next(iter(expr.free_symbols))
        if expr != Expr.symbol(name):  # the symbol has no single source
            name = f"{node.name}.{dim}"
        self.sources.setdefault(name, (node, dim))
        self.numbers.setdefault(name, size)
        self.given[node, dim] = Expr.symbol(name)
        self.follows = True

    def size_of(self, node: Any, dim: int, size: int) -> int:
        """Return the size of a node's value: a number or an expression."""
        expr: Expr | None
        if node.op == "placeholder":
            expr = self.given.get((node, dim), Expr.of(size))
        elif "number" not in node.meta:  # a constant of the program
            expr = Expr.of(size)
        else:
            expr = self.counts.get((node, dim)) or self.known_sizes.get((node.meta["number"], dim))
        if expr is None:
            name = f"{node.name}.{dim}"
            self.sources[name], self.numbers[name] = (node, dim), size
            expr = Expr.symbol(name)
        return size if expr.is_number else SymInt.of(expr, size, self)

    def whole(self, function: Any, value: Any) -> Any:
        """Return the integer that `math.floor` and similar compute from a float of this trace."""
        node, found = self._add_call(function, value), function(float(value))
        if self.of_elements(value):
            name, found = self._new_symbol(node, None, found, -math.inf, math.inf)
        else:
            name = f"{node.name}.value"
            self.sources[name], self.numbers[name] = (node, None), found
        node.meta["val"] = made = SymInt.of(Expr.symbol(name), found, self)
        self.nodes[Expr.symbol(name)] = node
        return made

    def chosen(self, condition: Any, a: Any, b: Any) -> Any:
        """Return a number selected by a data-dependent condition."""
        node = self._add_call(sym_ite, condition, a, b)
        found = to_concrete(a) if condition.holds else to_concrete(b)
        return self.element(node, float(found) if isinstance(a, float) or isinstance(b, float) else found)

    def of_elements(self, value: Any) -> bool:
        """True if a number is data-dependent."""
        if isinstance(value, SymFloat):
            return value.elements
        return isinstance(value, SymInt) and not value.node.expr.free_symbols.isdisjoint(self.hints)

    def element(self, node: Any, result: Any) -> Any:
        """Return a data-dependent node's number as a symbol."""
        if type(result) is bool:
            self.names[node] = self._new_symbol_name()
            self.ranges[self.names[node]] = 0, 1
            symbol: Any = SymBool.of("item", node, None, result, self)
        elif type(result) is float:
            symbol = SymFloat.of(result, (f"zuf{self.floats}",), self, True)
            self.ranges[f"zuf{self.floats}"] = -math.inf, math.inf
            self.floats += 1
            self.nodes[id(symbol)] = symbol, node
        else:
            name, hint = self._new_symbol(node, None, result, -math.inf, math.inf)
            self.nodes[Expr.symbol(name)] = node
            symbol = SymInt.of(Expr.symbol(name), hint, self)
        node.meta["val"] = symbol
        return symbol

    def result(self, node: Any, result: Any) -> Any:
        """Return a node's result with a symbol for a data-dependent size."""
        if node.target in ITEM_OPS and type(result) in (int, float, bool):
            return self.element(node, result)
        if isinstance(result, Tensor):
            node.meta["number"], self.count = self.count, self.count + 1
            dim = self._data_dependent_dim(node)
            if dim is not None:
                return self._resize_result(node, result, dim)
        return result

    def _data_dependent_dim(self, node: Any) -> int | None:
        """Return the dimension whose size is data-dependent."""
        if node.target in (_aten.nonzero.default, _aten.masked_select.default):
            return 0
        if node.target is _aten.index.Tensor:
            arrays = list(node.args[1])
            masks = [i for i, a in enumerate(arrays) if a is not None and _is_mask(a.meta["val"])]
            return masks[0] if masks and sum(a is not None for a in arrays) == 1 else None
        return None

    def _resize_result(self, node: Any, result: Any, dim: int) -> Any:
        import torchlite as torch

        of = node.args[0] if node.target is not _aten.index.Tensor else next(a for a in node.args[1] if a is not None)
        most = math.prod(int(n) for n in of.meta["val"].shape)
        counted = None if node.target is _aten.masked_select.default else of
        if self.name is None and counted in self.counted:  # equal to another op's count on the same tensor
            name = self.counted[counted]
            hint = self.hints[name]
        else:
            name, hint = self._new_symbol(node, dim, result.shape[dim], 0, most)
            if counted is not None:
                self.counted[counted] = name
        self.counts[node, dim] = Expr.symbol(name)
        if hint == result.shape[dim]:
            return result
        with self.recorder.paused():
            plain = result.detach()
            if not plain.shape[dim]:
                shape = list(plain.shape)
                shape[dim] = hint
                resized = torch.zeros(shape, dtype=plain.dtype, device=plain.device)
            else:
                resized = plain.index_select(dim, torch.arange(hint, device=plain.device) % plain.shape[dim])
            return resized.requires_grad_(result.requires_grad)

    # -- conditions ---------------------------------------------------------------------------------

    def compared(self, name: str, a: Any, b: Any) -> Any:
        """Return a comparison: bool if ranges or checks decide it, or if it concerns sizes; else a condition."""
        holds = compare_by_name(name, to_concrete(a), to_concrete(b))
        if not self.open or self.recorder is not _find_active_symbols():  # called by an op at run time
            return holds
        fraction = isinstance(a, float) or isinstance(b, float)
        elements = self.of_elements(a) or self.of_elements(b)
        if fraction:
            return SymBool.of(name, a, b, holds, self) if elements else holds
        difference = Expr.of(a) - Expr.of(b)
        known = self._decide_by_facts(name, difference)
        if known is not None:
            return known
        if elements:
            return SymBool.of(name, a, b, holds, self)
        place = self.recorder.asking()
        return holds if place is None else SymBool.of(name, a, b, holds, self, place)

    def decided(self, condition: Any) -> bool:
        """Return a condition's truth. Conditions on sizes are decided by this trace."""
        known = self.known(condition)
        if known is not None:
            return bool(known)
        if condition.place is None:
            return self.recorder.undecided(condition)
        taken = condition.name if condition.holds else NEGATED[condition.name]
        difference = Expr.of(condition.a) - Expr.of(condition.b)
        self.guards.append(Guard(taken, difference, condition.place))
        self.facts.add((taken, difference))
        return condition.holds

    def with_tensor(self, name: str, tensor: Any, condition: Any) -> Any:
        """Return a tensor and a condition as op arguments."""
        return getattr(_aten, name).Tensor(tensor, condition)

    def known(self, condition: Any) -> Any:
        """Return a condition's truth if ranges or checks decide it, else None."""
        if condition.name in ("and", "or"):
            parts = [self.known(condition.a), self.known(condition.b)]
            deciding = condition.name == "or"  # one true operand suffices
            if deciding in parts:
                return deciding
            return None if None in parts else not deciding
        if condition.b is None or isinstance(condition.a, float) or isinstance(condition.b, float):
            return True if repr(condition) in self.asserted else None
        return self._decide_by_facts(condition.name, Expr.of(condition.a) - Expr.of(condition.b))

    def _decide_by_facts(self, name: str, difference: Expr) -> bool | None:
        if difference.is_number:
            return _compare_with_zero(name, int(difference))
        if (name, difference) in self.facts or (_MIRRORED[name], -difference) in self.facts:
            return True
        low, high = self._bounds_of(difference)
        always = {"lt": high < 0, "le": high <= 0, "gt": low > 0, "ge": low >= 0}
        never = {"lt": low >= 0, "le": low > 0, "gt": high <= 0, "ge": high < 0}
        if name in always:
            return True if always[name] else False if never[name] else None
        apart = low > 0 or high < 0
        return (name == "ne") if apart else None

    def _bounds_of(self, expr: Expr) -> tuple[float, float]:
        low = high = 0.0
        for atoms, count in expr.terms:
            if not atoms:
                low, high = low + count, high + count
                continue
            a, b = self._range_of(atoms[0][0]) if len(atoms) == 1 and len(atoms[0]) == 1 else (-math.inf, math.inf)
            low, high = low + min(a * count, b * count), high + max(a * count, b * count)
        return low, high

    def _range_of(self, name: str) -> tuple[float, float]:
        """Return a symbol's range. A size's range begins at 2 unless the traced size is smaller, as in PyTorch."""
        if name in self.hints:
            return self.ranges.get(name, (-math.inf, math.inf))
        low, high = self.bounds.get(name, (0, math.inf))
        return max(low, min(2, self.numbers.get(name, 2))), high

    def require(self, condition: Any) -> None:
        """Assert a condition from here on and narrow ranges."""
        if self.known(condition) is True:
            return
        if condition.b is None or isinstance(condition.a, float) or isinstance(condition.b, float):
            self.asserted.add(repr(condition))
        elif condition.name in ("and", "or"):
            if condition.name == "and":
                self.require(condition.a)
                self.require(condition.b)
                return
        else:
            name, difference = condition.name, Expr.of(condition.a) - Expr.of(condition.b)
            self.facts.add((name, difference))
            self._narrow_range(name, difference)
        node = self.recorder.argument(condition)
        text = f"Runtime assertion failed for expression {condition} on node '{node.name}'"
        self.recorder.note(_aten._assert_scalar.default, (node, text), {})

    def _narrow_range(self, name: str, difference: Expr) -> None:
        symbols = [(atoms[0][0], count) for atoms, count in difference.terms if atoms]
        single = len(symbols) == 1 and all(len(a) <= 1 and all(len(x) == 1 for x in a) for a, _ in difference.terms)
        if not single or abs(symbols[0][1]) != 1:
            return
        symbol, count = symbols[0]
        number = -sum(c for atoms, c in difference.terms if not atoms) * count  # symbol NAME number
        name = name if count > 0 else _MIRRORED[name]
        if symbol not in self.hints:
            return
        low, high = self.ranges.get(symbol, (-math.inf, math.inf))
        if name in ("ge", "gt", "eq"):
            low = max(low, number + (name == "gt"))
        if name in ("le", "lt", "eq"):
            high = min(high, number - (name == "lt"))
        self.ranges[symbol] = (low, high)

    # -- nodes ----------------------------------------------------------------------------------------

    def node(self, value: Any) -> Any:
        """Return the node of a size or condition."""
        if isinstance(value, SymBool):
            if value.name == "item":
                return value.a
            new_node = self._add_call(sym_not, value.a) if value.name == "not" else (
                self._add_call(_OPERATORS.get(value.name) or getattr(operator, value.name), value.a, value.b)
            )  # fmt: skip
            new_node.meta["val"] = value
            return new_node
        if isinstance(value, SymFloat):
            if id(value) not in self.nodes:
                new_node = self._add_call(*value.parts)
                new_node.meta["val"] = value
                self.nodes[id(value)] = value, new_node
            return self.nodes[id(value)][1]
        expr = value.node.expr
        if expr not in self.nodes:
            self.nodes[expr] = self._expression_node(expr)
        return self.nodes[expr]

    def _add_call(self, target: Any, *args: Any) -> Any:
        return self.recorder.note(target, args, {})

    def _expression_node(self, expr: Expr) -> Any:
        total: Any = None
        for atoms, count in expr.terms:
            term: Any = None
            for atom in atoms:
                part = self._atom_node(atom)
                term = part if term is None else self._add_call_with_value(operator.mul, term, part)
            term = (
                count if term is None else term if count == 1 else self._add_call_with_value(operator.mul, term, count)
            )
            total = term if total is None else self._add_call_with_value(operator.add, total, term)
        return total

    def _atom_node(self, atom: Any) -> Any:
        if len(atom) == 1:
            source, dim = self.sources[atom[0]]
            if dim is None:
                return source
            single = Expr.symbol(atom[0])
            if single not in self.nodes:
                made = self.nodes[single] = self._add_call(_aten.sym_size.int, source, dim)
                made.meta["val"] = SymInt.of(single, self.numbers[atom[0]], self)
            return self.nodes[single]
        parts = [self.node(SymInt.of(p, p.value(self.numbers), self)) if not p.is_number else int(p) for p in atom[1:]]
        target = {"FloorDiv": operator.floordiv, "PythonMod": operator.mod, "Max": sym_max, "Min": sym_min}[atom[0]]
        return self._add_call_with_value(target, *parts)

    def _add_call_with_value(self, target: Any, *args: Any) -> Any:
        made = self._add_call(target, *args)
        made.meta["val"] = target(*(a.meta["val"] if isinstance(a, Node) else a for a in args))
        return made


_OPERATORS = {"and": operator.and_, "or": operator.or_}


def _find_active_symbols() -> Any:
    items = stack.items
    return items[-1] if items else None


def to_concrete(value: Any) -> Any:
    """Return op arguments with symbols and conditions replaced by their values."""
    if isinstance(value, UnbackedInt):
        return int(value)
    if isinstance(value, SymFloat):
        return float(value)
    if isinstance(value, SymBool):
        return value.holds
    if type(value) in (list, tuple):
        return type(value)(map(to_concrete, value))
    if type(value) is dict:
        return {key: to_concrete(v) for key, v in value.items()}
    if isinstance(value, slice):
        return slice(to_concrete(value.start), to_concrete(value.stop), to_concrete(value.step))
    return value


def _compare_with_zero(name: str, value: int) -> bool:
    return compare_by_name(name, value, 0)


def _is_mask(value: Any) -> bool:
    return str(value.dtype) in ("torch.bool", "torch.uint8")
