"""Sizes that depend on elements: numbers that `item` and `tolist` give, and how many rows `nonzero` and masks take.

Each is a symbol u0, u1, ... with a range. A trace may be told other numbers for them than its tensors have, so the
numbers that depend on them are found as those that depend on the sizes of inputs are.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from ..._aten import ops
from ..._dispatch.interceptors import stack
from ..._symbolic import Expr, SymBool, SymInt, UnbackedInt
from ..._tensor import Tensor

_aten = ops.aten
ITEMS = (_aten.item.default, _aten._local_scalar_dense.default)
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


class Unbacked:
    """The symbols of one trace: `sizes` has numbers that they are to have, `hints` those that they had."""

    def __init__(self, recorder: Any, sizes: dict[str, int] | None = None) -> None:
        self.recorder, self.sizes = recorder, sizes or {}
        self.hints: dict[str, int] = {}
        self.ranges: dict[str, tuple[float, float]] = {}
        self.sources: dict[str, tuple[Any, int | None]] = {}
        self.counted: dict[Any, str] = {}  # by the nodes of masks
        self.facts: set[tuple[str, Expr]] = set()
        self.nodes: dict[Any, Any] = {}
        self.name: str | None = None  # of the next symbol, where the program has one already
        self.open = True

    # -- where symbols come from ------------------------------------------------------------------

    def _fresh(self, node: Any, dim: int | None, found: int, low: float, high: float) -> tuple[str, int]:
        name = self.name or f"u{len(self.hints)}"
        hint = self.hints[name] = self.sizes.get(name, found)
        self.ranges.setdefault(name, (low, high))
        self.sources.setdefault(name, (node, dim))
        return name, hint

    def result(self, node: Any, result: Any) -> Any:
        """What a node gives, with a symbol where it depends on elements."""
        if node.target in ITEMS and type(result) is int:
            name, hint = self._fresh(node, None, result, -math.inf, math.inf)
            self.nodes[Expr.symbol(name)] = node
            return SymInt.of(Expr.symbol(name), hint, self)
        if isinstance(result, Tensor):
            dim = self._counted(node)
            if dim is not None:
                return self._resized(node, result, dim)
        return result

    def _counted(self, node: Any) -> int | None:
        """The dimension that is as long as elements say."""
        if node.target in (_aten.nonzero.default, _aten.masked_select.default):
            return 0
        if node.target is _aten.index.Tensor:
            arrays = list(node.args[1])
            masks = [i for i, a in enumerate(arrays) if a is not None and _is_mask(a.meta["val"])]
            return masks[0] if masks and sum(a is not None for a in arrays) == 1 else None
        return None

    def _resized(self, node: Any, result: Any, dim: int) -> Any:
        import torchlite as torch

        of = node.args[0] if node.target is not _aten.index.Tensor else next(a for a in node.args[1] if a is not None)
        most = math.prod(int(n) for n in of.meta["val"].shape)
        counted = None if node.target is _aten.masked_select.default else of
        if self.name is None and counted in self.counted:  # as many as another op found in the same tensor
            hint = self.hints[self.counted[counted]]
        else:
            name, hint = self._fresh(node, dim, result.shape[dim], 0, most)
            if counted is not None:
                self.counted[counted] = name
        if hint == result.shape[dim]:
            return result
        self.recorder.__exit__(None, None, None)
        try:
            plain = result.detach()
            if not plain.shape[dim]:
                shape = list(plain.shape)
                shape[dim] = hint
                made = torch.zeros(shape, dtype=plain.dtype, device=plain.device)
            else:
                made = plain.index_select(dim, torch.arange(hint, device=plain.device) % plain.shape[dim])
            return made.requires_grad_(result.requires_grad)
        finally:
            self.recorder.__enter__()

    # -- conditions ---------------------------------------------------------------------------------

    def compared(self, name: str, a: Any, b: Any) -> Any:
        """A comparison: its truth where ranges or checks say it, else a condition."""
        from ..._symbolic import compare

        holds = compare(name, int(a), int(b))
        if not self.open or self.recorder is not _in_force():  # an op asks, which runs for this trace alone
            return holds
        difference = Expr.of(a) - Expr.of(b)
        known = self._decided(name, difference)
        return known if known is not None else SymBool.of(name, a, b, holds, self)

    def _decided(self, name: str, difference: Expr) -> bool | None:
        if difference.is_number:
            return _against_zero(name, int(difference))
        if (name, difference) in self.facts or (_TURNED[name], -difference) in self.facts:
            return True
        low, high = self._bounds(difference)
        always = {"lt": high < 0, "le": high <= 0, "gt": low > 0, "ge": low >= 0}
        never = {"lt": low >= 0, "le": low > 0, "gt": high <= 0, "ge": high < 0}
        if name in always:
            return True if always[name] else False if never[name] else None
        apart = low > 0 or high < 0
        return (name == "ne") if apart else None

    def _bounds(self, expr: Expr) -> tuple[float, float]:
        low = high = 0.0
        for atoms, count in expr.terms:
            if not atoms:
                low, high = low + count, high + count
                continue
            found = self.ranges.get(atoms[0][0]) if len(atoms) == 1 and len(atoms[0]) == 1 else None
            a, b = found if found is not None else (-math.inf, math.inf)
            low, high = low + min(a * count, b * count), high + max(a * count, b * count)
        return low, high

    def require(self, condition: Any) -> None:
        """Have a condition hold from here on: the program asserts it, and ranges are narrower."""
        name, difference = condition.name, Expr.of(condition.a) - Expr.of(condition.b)
        if self._decided(name, difference) is True:
            return
        self.facts.add((name, difference))
        self._narrow(name, difference)
        node = self.recorder.argument(condition)
        text = f"Runtime assertion failed for expression {condition} on node '{node.name}'"
        self.recorder.note(_aten._assert_scalar.default, (node, text), {})

    def _narrow(self, name: str, difference: Expr) -> None:
        symbols = [(atoms[0][0], count) for atoms, count in difference.terms if atoms]
        single = len(symbols) == 1 and all(len(a) <= 1 and all(len(x) == 1 for x in a) for a, _ in difference.terms)
        if not single or abs(symbols[0][1]) != 1:
            return
        symbol, count = symbols[0]
        number = -sum(c for atoms, c in difference.terms if not atoms) * count  # symbol NAME number
        name = name if count > 0 else _TURNED[name]
        low, high = self.ranges.get(symbol, (-math.inf, math.inf))
        if name in ("ge", "gt", "eq"):
            low = max(low, number + (name == "gt"))
        if name in ("le", "lt", "eq"):
            high = min(high, number - (name == "lt"))
        self.ranges[symbol] = (low, high)

    # -- nodes ----------------------------------------------------------------------------------------

    def node(self, value: Any) -> Any:
        """The node of a size or of a condition."""
        if isinstance(value, SymBool):
            made = self._call(getattr(operator, value.name), value.a, value.b)
            made.meta["val"] = value.holds
            return made
        expr = value.node.expr
        if expr not in self.nodes:
            self.nodes[expr] = self._made(expr)
        return self.nodes[expr]

    def _call(self, target: Any, *args: Any) -> Any:
        return self.recorder.note(target, args, {})

    def _made(self, expr: Expr) -> Any:
        total: Any = None
        for atoms, count in expr.terms:
            term: Any = None
            for atom in atoms:
                part = self._atom(atom)
                term = part if term is None else self._known(operator.mul, term, part)
            term = count if term is None else term if count == 1 else self._known(operator.mul, term, count)
            total = term if total is None else self._known(operator.add, total, term)
        return total

    def _atom(self, atom: Any) -> Any:
        if len(atom) == 1:
            source, dim = self.sources[atom[0]]
            if dim is None:
                return source
            single = Expr.symbol(atom[0])
            if single not in self.nodes:
                made = self.nodes[single] = self._call(_aten.sym_size.int, source, dim)
                made.meta["val"] = SymInt.of(single, self.hints[atom[0]], self)
            return self.nodes[single]
        parts = [self.node(SymInt.of(p, p.value(self.hints), self)) if not p.is_number else int(p) for p in atom[1:]]
        from ..._symbolic import sym_max, sym_min

        target = {"FloorDiv": operator.floordiv, "PythonMod": operator.mod, "Max": sym_max, "Min": sym_min}[atom[0]]
        return self._known(target, *parts)

    def _known(self, target: Any, *args: Any) -> Any:
        made = self._call(target, *args)
        made.meta["val"] = target(*(a.meta["val"] if hasattr(a, "meta") else a for a in args))
        return made


def _in_force() -> Any:
    items = stack.items
    return items[-1] if items else None


def plain(value: Any) -> Any:
    """Arguments as ops take them: symbols as numbers, and conditions as what holds."""
    if isinstance(value, UnbackedInt):
        return int(value)
    if isinstance(value, SymBool):
        return True
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, slice):
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    return value


def _against_zero(name: str, value: int) -> bool:
    from ..._symbolic import compare

    return compare(name, value, 0)


def _is_mask(value: Any) -> bool:
    return str(value.dtype) in ("torch.bool", "torch.uint8")
