"""What a record's derivative formulas need saved, worked out from the names of their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .record import Op, Param


class Plan:
    """What an op's derivative needs, worked out from its formulas' parameter names."""

    def __init__(self, op: Op):
        names = {p.name: p for p in op.params}
        self.keeps: set[int] = set()
        users: dict[tuple[str, str], set] = {}
        for formula in op.formulas:
            for target in formula.targets:
                if target not in names:
                    raise RuntimeError(f"op {op.name}: a formula for '{target}', which is no argument")
            for need in formula.needs:
                key = saved_key(need, names)
                if is_output(need):
                    self.keeps.add(int(need[3:] or 0))
                elif key is not None:
                    users.setdefault(key, set()).update(formula.targets)
                elif need != "needs":
                    raise RuntimeError(f"op {op.name}: a formula needs '{need}', which is no argument or output")
        # An input's shape that only its own formula needs is known at its edge.
        self.shapes = [
            name
            for (name, kind), who in users.items()
            if kind == "shape" and who == {name} and names[name].kind != "list"
        ]
        self.saves: list[tuple[str, str, frozenset]] = [
            (name, kind, frozenset(who))
            for (name, kind), who in users.items()
            if kind != "shape" or name not in self.shapes
        ]
        first = op.params[0].name if op.params else ""
        self.touches_target = bool(self.keeps) or (first, "value") in users or not op.formulas


def is_output(need: str) -> bool:
    """Whether a formula's parameter asks for an output: "out", "out1" …"""
    return need == "out" or need[:3] == "out" and need[3:].isdigit()


def saved_key(need: str, names: dict[str, Param]) -> tuple[str, str] | None:
    """The argument that a formula's parameter names, and what of it: value (of a tensor), plain, shape or dtype."""
    if need in names:
        return need, "value" if names[need].is_tensor else "plain"
    for suffix in ("shape", "dtype"):
        if need.endswith("_" + suffix) and need[: -len(suffix) - 1] in names:
            return need[: -len(suffix) - 1], suffix
    return None
