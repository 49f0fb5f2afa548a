"""DynamicSizes: symbols of dynamic input sizes with ranges, and sample sizes for tracing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import torchlite as torch
from torchlite._symbolic_shapes import Expr, compare_by_name
from torchlite.export import dynamic_shapes as ds
from torchlite.fx.experimental._unbacked_symbols import Guard
from torchlite.fx.experimental.symbolic_shapes import ConstraintViolationError

from ._capture import ExportTrace
from ._errors import UserError


class DynamicSizes:
    """Dynamic sizes by symbol name: source, range, and dependent dimensions."""

    def __init__(self, leaves: list[Any], said: list[dict[int, Any]]) -> None:
        self.leaves = leaves
        self.preserved: tuple[str, ...] = ()
        self.captured: Any = None  # the tensors from before the first trace
        self.ranges: dict[str, ds.ValueRanges] = {}
        self.hints: dict[str, int] = {}
        self.places: dict[tuple[int, int], tuple[str, int, int]] = {}  # symbol, factor, offset
        self.named: dict[str, str] = {}  # symbols by Dim name
        self.elements: dict[str, list[int]] = {}  # example values of unbacked symbols
        self.guards: list[Guard] = []  # the program's decisions on sizes
        self.free: set[str] = set()  # symbols that may turn out to be constant
        numbers = itertools.count()
        for leaf, dims in enumerate(said):
            for dim, one in dims.items():
                self._add_size(leaf, dim, one, numbers)

    def _add_size(self, leaf: int, dim: int, one: Any, numbers: Any) -> None:
        size = self.leaves[leaf].shape[dim]
        if isinstance(one, ds.Dim):
            root = one.root or one
            base, rest = divmod(size - one.offset, one.factor)
            if rest or base < 0:
                raise UserError(f"Expected size {size} of dimension {dim} to be {one.__name__}")
            name = self.named.get(root.__name__)
            if name is None:
                name = self.named[root.__name__] = f"s{next(numbers)}"
                self.hints[name], self.ranges[name] = base, ds.ValueRanges(root.min, root.max)
                if not root.min <= base <= root.max:
                    raise ConstraintViolationError(
                        f"{base} not in range [{root.min}, {'int_oo' if root.max == math.inf else root.max}]"
                    )
            if self.hints[name] != base:
                raise UserError(
                    f'Constraints violated ({root.__name__})! For more information, run with TORCH_LOGS="+dynamic".\n'
                    f"  - The values of {root.__name__} must be equal, but were {self.hints[name]} and {base}."
                )
            self.places[leaf, dim] = (name, one.factor, one.offset)
            return
        name = f"s{next(numbers)}"
        if one.type == "AUTO" and size < 2:
            return
        low, high = 0 if one.min is None else one.min, math.inf if one.max is None else one.max
        self.hints[name], self.ranges[name] = size, ds.ValueRanges(low, high)
        if one.type == "AUTO":
            self.free.add(name)
        self.places[leaf, dim] = (name, 1, 0)

    def inputs(self, sizes: dict[str, int]) -> list[Any]:
        """Return the arguments with other sizes: truncated or repeated."""
        found = []
        for number, leaf in enumerate(self.leaves):
            for (place, dim), (name, factor, offset) in self.places.items():
                wanted = sizes[name] * factor + offset
                if place == number and wanted != leaf.shape[dim]:
                    rows = torch.arange(wanted, device=leaf.device) % max(1, leaf.shape[dim])
                    leaf = leaf.detach().index_select(dim, rows).requires_grad_(leaf.requires_grad)
            found.append(leaf)
        return found

    def expressions(self) -> dict[tuple[int, int], Expr]:
        """Return the dynamic sizes as expressions, by leaf and dimension."""
        return {at: Expr.symbol(name) * factor + offset for at, (name, factor, offset) in self.places.items()}

    def bounds(self) -> dict[str, tuple[float, float]]:
        """Return the ranges in the form that traces take."""
        return {name: (low, high) for name, (low, high) in self.ranges.items()}

    def found(self, trace: ExportTrace) -> None:
        """Add the unbacked numbers of a trace."""
        for name, hint in trace.unbacked.hints.items():
            low, high = trace.unbacked.ranges[name]
            self.hints[name], self.ranges[name] = hint, ds.ValueRanges(low, high)
            self.elements[name] = []

    def others(self, name: str) -> list[int]:
        """Return alternative sizes of a symbol, within its range and consistent with the guards."""
        low, high = self.ranges[name]
        hint = self.hints[name]
        if name in self.elements:
            return list(self.elements[name])
        steps = [hint + d for d in (3, 8, 5, 12, 4, 1, 2, 6, 7, 16)] + [2 * hint, 3 * hint]
        steps += [hint // 2, hint - 1, hint - 2, hint - 3]
        found = [n for n in dict.fromkeys(steps) if max(low, 2) <= n <= high and n != hint]
        return [n for n in found if self.fits({**self.hints, name: n})]

    def fits(self, sizes: dict[str, int]) -> bool:
        """True if the guards hold for these sizes."""
        known = [g for g in self.guards if g.difference.free_symbols <= set(sizes)]
        return all(compare_by_name(g.name, g.difference.value(sizes), 0) for g in known)

    def together(self, smaller: bool) -> Iterator[dict[str, int]]:
        """Return rows in which all sizes differ, larger or smaller."""
        few = {n: [v for v in self.others(n) if (v < self.hints[n]) == smaller] or self.others(n) for n in self.hints}
        if not all(few.values()):
            return
        for turn in range(8):
            row = {n: few[n][(turn + place) % len(few[n])] for place, n in enumerate(few)}
            if self.fits(row):
                yield row

    def shown(self, name: str) -> str:
        """Return a symbol's user-visible name."""
        return next((own for own, symbol in self.named.items() if symbol == name), name)

    def places_of(self) -> set[str]:
        """Return the symbols of input sizes."""
        return {name for name, _, _ in self.places.values()}

    def narrowed(self, guard: Guard) -> tuple[str, ds.ValueRanges] | None:
        """Return the symbol's range under a guard, None if the guard is no simple bound."""
        terms = [(atoms, count) for atoms, count in guard.difference.terms if atoms]
        if len(terms) != 1 or len(terms[0][0]) != 1 or len(terms[0][0][0]) != 1 or guard.name == "ne":
            return None
        name, count = terms[0][0][0][0], terms[0][1]
        low, high = self.ranges[name]
        rest = sum(c for atoms, c in guard.difference.terms if not atoms)
        kind = guard.name if count > 0 else {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(guard.name, "eq")
        edge = Fraction(-rest, count)
        if kind in ("gt", "ge"):
            low = max(low, math.floor(edge) + 1 if kind == "gt" else math.ceil(edge))
        elif kind in ("lt", "le"):
            high = min(high, math.ceil(edge) - 1 if kind == "lt" else math.floor(edge))
        return name, ds.ValueRanges(low, high)

    def drop(self, name: str) -> None:
        """Make a size constant."""
        for table in (self.ranges, self.hints):
            table.pop(name, None)
        self.places = {where: what for where, what in self.places.items() if what[0] != name}

    def unite(self, name: str, other: str) -> None:
        """Make two sizes equal."""
        self.places = {where: ((other, *what[1:]) if what[0] == name else what) for where, what in self.places.items()}
        a, b = self.ranges[name], self.ranges[other]
        self.ranges[other] = ds.ValueRanges(max(a.lower, b.lower), min(a.upper, b.upper))
        for table in (self.ranges, self.hints):
            table.pop(name, None)
