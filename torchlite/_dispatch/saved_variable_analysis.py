"""The values that a record's derivative formulas need saved, derived from their parameter names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .op_record import Op, Param


class SavedVariables:
    """The values that an op's derivative needs, derived from its formulas' parameter names."""

    def __init__(self, op: Op):
        names = {p.name: p for p in op.params}
        kept: dict[int, set] = {}
        users: dict[tuple[str, str], set] = {}
        for formula in op.formulas:
            for target in formula.targets:
                if target not in names:
                    raise RuntimeError(f"op {op.name}: a formula for '{target}', which is no argument")
            for need in formula.needs:
                key = parse_saved_name(need, names)
                targets = op.saved_for.get(need, formula.targets)
                if is_output_name(need):
                    kept.setdefault(int(need[3:] or 0), set()).update(targets)
                elif key is not None:
                    users.setdefault(key, set()).update(targets)
                elif need != "needs":
                    raise RuntimeError(f"op {op.name}: a formula needs '{need}', which is no argument or output")
        # The outputs that formulas need, and the inputs whose formulas they are.
        self.keeps: dict[int, frozenset] = {i: frozenset(who) for i, who in sorted(kept.items())}
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
        self.first_input_saved_for = (
            frozenset(users.get((op.params[0].name, "value"), ())) if op.params else frozenset()
        )
        self.has_formulas = bool(op.formulas)

    def reads_or_saves_target(self, wanted: set) -> bool:
        """True if, with gradients of these inputs needed, a formula reads the old or the new value of an in-place
        target.
        """
        users = (self.first_input_saved_for, *self.keeps.values())
        return not self.has_formulas or any(not wanted.isdisjoint(who) for who in users)


def is_output_name(need: str) -> bool:
    """True if a formula's parameter names an output: "out", "out1" …"""
    return need == "out" or need[:3] == "out" and need[3:].isdigit()


def parse_saved_name(need: str, names: dict[str, Param]) -> tuple[str, str] | None:
    """The argument that a formula's parameter names, and what of it: value (of a tensor), plain, shape or dtype."""
    if need in names:
        return need, "value" if names[need].is_tensor else "plain"
    for suffix in ("shape", "dtype"):
        if need.endswith("_" + suffix) and need[: -len(suffix) - 1] in names:
            return need[: -len(suffix) - 1], suffix
    return None
