"""Input guards of exported programs: the GuardsFn submodule, and guards as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torchlite as torch
from torchlite._symbolic_shapes import Expr, SymInt, compare_by_name
from torchlite.fx.experimental._unbacked_symbols import Guard
from torchlite.nn import Module
from torchlite.utils import _pytree as pytree

from ._lifted_inputs import lifted_names
from .graph_signature import ConstantArgument, InputKind


class GuardsFn(Module):
    """Checks a program's inputs. `guards` has conditions as functions and text. Conditions on constant sizes are
    checked together first, and individually on failure.
    """

    _is_impure = True  # the call matters though it returns nothing

    def __init__(self, guards: list[tuple[Any, str]]) -> None:
        super().__init__()
        self.guards = guards
        sizes = [(holds.place, holds.value) for holds, _ in guards if isinstance(holds, _RankCheck)]
        self.__dict__["_sizes"] = [(place, value) for place, value in sizes if all(type(n) is int for n in value)]
        whole = {place for place, _ in self.__dict__["_sizes"]}
        self.__dict__["_others"] = [
            g for g in guards if not (isinstance(g[0], (_SizeCheck, _RankCheck)) and g[0].place in whole)
        ]

    def forward(self, *args: Any) -> None:
        for place, value in self.__dict__["_sizes"]:
            if getattr(args[place], "shape", None) != value:
                return self._check_guards(self.guards, args)
        return self._check_guards(self.__dict__["_others"], args)

    @staticmethod
    def _check_guards(guards: list[tuple[Any, str]], args: tuple) -> None:
        for holds, text in guards:
            try:
                fine = holds(args)
            except (AttributeError, IndexError, TypeError, ArithmeticError):
                fine = False
            if not fine:
                raise AssertionError(f"Guard failed: {text}")


def _list_argument_names(in_spec: Any) -> list[str]:
    count = in_spec.child(0).num_children
    return [*(f"arg_{i}" for i in range(count)), *map(str, in_spec.child(1).context or ())]


def input_paths(program: Any) -> list[str]:
    """Return the names of a program's inputs: `x`, `d['y']`."""
    signature = program._root()
    names = signature.forward_arg_names or _list_argument_names(signature.in_spec)
    leaves = pytree.tree_unflatten(list(range(signature.in_spec.num_leaves)), signature.in_spec)
    found = []
    args, kwargs = leaves
    for name, value in zip(names, [*args, *kwargs.values()], strict=False):
        found += [name + pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(value)]
    return found


def _make_size_getter(place: int, dim: int) -> Any:
    return lambda args: args[place].shape[dim]


class _SizeCheck:
    """Guard that an input size is a constant."""

    _tl_is_immutable = True  # for `torch.compile`

    def __init__(self, place: int, dim: int, value: int) -> None:
        self.place, self.dim, self.value = place, dim, value

    def __call__(self, args: Any) -> bool:
        return args[self.place].shape[self.dim] == self.value


class _RankCheck:
    """Guard of an input's number of dimensions."""

    _tl_is_immutable = True

    def __init__(self, place: int, value: tuple) -> None:
        self.place, self.value = place, value

    def __call__(self, args: Any) -> bool:
        return len(args[self.place].shape) == len(self.value)


def _make_guards(program: Any, users: list[Any]) -> list[tuple[Any, str]]:
    """Return the guards of a program's inputs."""
    found: list[tuple[Any, str]] = []
    known: dict[str, tuple[Any, str]] = {}
    later: list[tuple[Any, str, Expr]] = []
    specs = {s.arg.name: s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT}
    for place, (node, path) in enumerate(zip(users, input_paths(program), strict=False)):
        spec, value = specs[node.name], node.meta.get("val")
        if isinstance(spec.arg, ConstantArgument):
            found.append(_find_constant(place, path, spec.arg.value))
            continue
        if isinstance(value, SymInt):
            continue
        if not isinstance(value, torch.Tensor):
            continue
        sizes = tuple(n if isinstance(n, SymInt) else int(n) for n in value.shape)
        found.append((_RankCheck(place, sizes), f"{path}.dim() == {value.ndim}"))
        for dim, size in enumerate(value.shape):
            text, read = f"{path}.size()[{dim}]", _make_size_getter(place, dim)
            if not isinstance(size, SymInt):
                found.append((_SizeCheck(place, dim, int(size)), f"{text} == {int(size)}"))
                continue
            expr = size.node.expr
            names = expr.free_symbols
            if len(names) == 1 and expr == Expr.symbol(next(iter(names))) and next(iter(names)) not in known:
                name = next(iter(names))
                known[name] = (read, text)
                found += _format_range(read, text, program.range_constraints.get(name))
            else:
                later.append((read, text, expr))
    for read, text, expr in later:
        names = expr.free_symbols
        if names <= set(known):
            # Replace simultaneously: a replacement may contain another symbol's name.
            shown = re.sub(r"\w+", lambda m: known[m[0]][1] if m[0] in names else m[0], repr(expr))
            found.append((_format_equality(read, expr, known), f"{text} == {shown}"))
    for name, difference in program._guards:
        if difference.free_symbols <= set(known):
            shown = format_guard(Guard(name, difference, ""), {n: known[n][1] for n in difference.free_symbols})
            found.append((_format_comparison(name, difference, known), shown))
    return found


def format_guard(guard: Any, names: Mapping[str, str]) -> str:
    """Return a size guard as the program displays it."""
    shown = {Expr.symbol(name): text for name, text in names.items()}
    left, right = _split_difference(guard.difference)
    return f"{_format_expression(left, shown) or 0} {_SIGNS[guard.name]} {_format_expression(right, shown) or 0}"


def guards_code(program: Any) -> list[str]:
    """Return the size guards as stored in files: `L['x'].size()[0] > 2`."""
    users = [n for n in program.graph.nodes if n.op == "placeholder" and n.name not in lifted_names(program)]
    names: dict[str, str] = {}
    for node, path in zip(users, input_paths(program), strict=False):
        value = node.meta.get("val")
        for dim, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, SymInt):
                head = re.match(r"\w*", path).group()  # type: ignore[union-attr]
                names.setdefault(repr(size), f"L['{head}']{path[len(head) :]}.size()[{dim}]")
    guards = [Guard(name, difference, "") for name, difference in program._guards]
    return [format_guard(guard, names) for guard in guards if guard.difference.free_symbols <= set(names)]


_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def _split_difference(difference: Expr) -> tuple[Expr, Expr]:
    """Return the positive and negative terms of a difference."""
    added = Expr({atoms: count for atoms, count in difference.terms if count > 0})
    return added, added - difference


def _format_expression(expr: Expr, names: Mapping[Expr, str]) -> str:
    terms = []
    for atoms, count in expr.terms:
        factors = [str(count)] * (count != 1 or not atoms)
        for atom in atoms:
            if len(atom) == 1:
                factors.append(names[Expr.symbol(atom[0])])
                continue
            parts = [_format_expression(part, names) for part in atom[1:]]
            signs = {"FloorDiv": "//", "CleanDiv": "//", "PythonMod": "%", "Mod": "%"}
            sign = signs.get(atom[0])
            factors.append(f"{atom[0].lower()}({', '.join(parts)})" if sign is None else f"({f' {sign} '.join(parts)})")
        terms.append("*".join(factors))
    return " + ".join(terms) if len(terms) < 2 else f"({' + '.join(terms)})"


def _find_constant(place: int, path: str, value: Any) -> tuple[Any, str]:
    if value is None:
        return (lambda args: args[place] is None), f"{path} is None"
    return (lambda args: args[place] == value), f"{path} == {value!r}"


def _format_range(read: Any, text: str, ranged: Any) -> list[tuple[Any, str]]:
    if ranged is None:
        return []
    low, high = ranged.lower, ranged.upper
    found: list[tuple[Any, str]] = []
    if low > 0:
        found.append((lambda args: read(args) >= low, f"{text} >= {low}"))
    if high != math.inf:
        found.append((lambda args: read(args) <= high, f"{text} <= {high}"))
    return found


def _format_comparison(name: str, difference: Expr, known: dict) -> Any:
    return lambda args: compare_by_name(
        name, difference.value({n: known[n][0](args) for n in difference.free_symbols}), 0
    )


def _format_equality(read: Any, expr: Expr, known: dict) -> Any:
    return lambda args: read(args) == expr.value({n: known[n][0](args) for n in expr.free_symbols})
