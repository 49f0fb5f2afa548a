"""Sizes that are kept as expressions, and the functions that take them.

A `SymInt` is an `int`, the size that a program was traced with, which knows by what expression of the sizes of inputs
it came. Arithmetic gives such again; comparisons give plain truth values.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min",
    "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip


class Atom(tuple):
    """A symbol, `(name,)`, or a function of expressions: `("FloorDiv", a, b)`."""

    def __repr__(self) -> str:
        return self[0] if len(self) == 1 else _written(self)


_FUNCTIONS: dict[str, Any] = {
    "FloorDiv": lambda a, b: a // b, "PythonMod": lambda a, b: a % b, "Mod": lambda a, b: a % b,
    "Max": max, "Min": min, "CleanDiv": lambda a, b: a // b, "CeilDiv": lambda a, b: -(-a // b),
}  # fmt: skip


def _written(atom: Atom) -> str:
    parts = [f"({part})" if part.is_sum else str(part) for part in atom[1:]]
    if atom[0] in ("FloorDiv", "CleanDiv"):
        return f"({parts[0]}//{parts[1]})"
    if atom[0] in ("PythonMod", "Mod"):
        return f"({parts[0]} % {parts[1]})" if atom[0] == "PythonMod" else f"Mod({atom[1]}, {atom[2]})"
    return f"{atom[0]}({', '.join(map(str, atom[1:]))})"


class Expr:
    """An expression of sizes: a polynomial of atoms with whole coefficients.

    >>> from torchlite._symbolic import Expr
    >>> s = Expr.symbol("s0")
    >>> 2 * s * s + 1, (s + s) // 2
    (2*s0**2 + 1, (2*s0//2))
    >>> (s + 1).value({"s0": 4})
    5
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[tuple, int]) -> None:
        self.terms = tuple(sorted(((k, v) for k, v in terms.items() if v), key=_order))

    @staticmethod
    def symbol(name: str) -> Expr:
        return Expr({(Atom((name,)),): 1})

    @staticmethod
    def of(value: Any) -> Expr:
        """A number, a size or an expression as an expression."""
        if isinstance(value, Expr):
            return value
        return value.node.expr if isinstance(value, SymInt) else Expr({(): int(value)})

    @staticmethod
    def function(name: str, *args: Any) -> Expr:
        """FloorDiv, PythonMod, Max, Min of expressions; a number where all of them are."""
        parts = [Expr.of(a) for a in args]
        if all(p.is_number for p in parts):
            return Expr.of(_FUNCTIONS[name](*(int(p) for p in parts)))
        return Expr({(Atom((name, *parts)),): 1})

    @property
    def is_number(self) -> bool:
        return not self.terms or (len(self.terms) == 1 and not self.terms[0][0])

    @property
    def is_sum(self) -> bool:
        return len(self.terms) > 1 or any(c < 0 for _, c in self.terms)

    def __int__(self) -> int:
        if not self.is_number:
            raise TypeError(f"{self} is no number")
        return self.terms[0][1] if self.terms else 0

    @property
    def free_symbols(self) -> set[str]:
        """The names of its symbols."""
        found: set[str] = set()
        for atoms, _ in self.terms:
            for atom in atoms:
                if len(atom) == 1:
                    found.add(atom[0])
                for part in atom[1:]:
                    found |= part.free_symbols
        return found

    def value(self, sizes: Mapping[str, int]) -> int:
        """The number where the symbols are these numbers. KeyError where one is not given."""
        total = 0
        for atoms, count in self.terms:
            for atom in atoms:
                if len(atom) == 1:
                    count *= sizes[atom[0]]
                else:
                    count *= _FUNCTIONS[atom[0]](*(part.value(sizes) for part in atom[1:]))
            total += count
        return total

    def __add__(self, other: Any) -> Expr:
        terms = dict(self.terms)
        for atoms, count in Expr.of(other).terms:
            terms[atoms] = terms.get(atoms, 0) + count
        return Expr(terms)

    def __mul__(self, other: Any) -> Expr:
        terms: dict[tuple, int] = {}
        for a, m in self.terms:
            for b, n in Expr.of(other).terms:
                both = tuple(sorted((*a, *b), key=repr))
                terms[both] = terms.get(both, 0) + m * n
        return Expr(terms)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Expr:
        return self * -1

    def __sub__(self, other: Any) -> Expr:
        return self + Expr.of(other) * -1

    def __rsub__(self, other: Any) -> Expr:
        return Expr.of(other) - self

    def __floordiv__(self, other: Any) -> Expr:
        return Expr.function("FloorDiv", self, other)

    def __mod__(self, other: Any) -> Expr:
        return Expr.function("PythonMod", self, other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    def __repr__(self) -> str:
        parts = []
        for atoms, count in self.terms:
            factors = [
                repr(atom) + (f"**{atoms.count(atom)}" if atoms.count(atom) > 1 else "")
                for i, atom in enumerate(atoms)
                if atom not in atoms[:i]
            ]
            if count != 1 or not atoms:
                factors.insert(0, str(abs(count)) if abs(count) != 1 or not atoms else "")
            parts.append(("- " if count < 0 else "+ ") + "*".join(f for f in factors if f))
        text = " ".join(parts).removeprefix("+ ")
        return text.replace("- ", "-", 1) if text.startswith("- ") else text or "0"

    def srepr(self) -> str:
        """The text that PyTorch's files have, which is SymPy's."""
        terms = []
        for atoms, count in self.terms:
            factors = [] if count == 1 and atoms else [f"Integer({count})"]
            factors += [
                f"Pow({_srepr(atom)}, Integer({atoms.count(atom)}))" if atoms.count(atom) > 1 else _srepr(atom)
                for i, atom in enumerate(atoms)
                if atom not in atoms[:i]
            ]
            terms.append(factors[0] if len(factors) == 1 else f"Mul({', '.join(factors)})")
        return "Integer(0)" if not terms else terms[0] if len(terms) == 1 else f"Add({', '.join(terms)})"


def _order(term: tuple) -> tuple:
    atoms, _ = term
    return -len(atoms), repr(atoms)


def _srepr(atom: Atom) -> str:
    if len(atom) > 1:
        return f"{atom[0]}({', '.join(part.srepr() for part in atom[1:])})"
    return f"Symbol('{atom[0]}', {'positive=True, ' * atom[0].startswith('s')}integer=True)"


_DEEPEST = 40


def read(text: str) -> Expr | None:
    """An expression from the text of `srepr`; None for one that is written with other forms.

    >>> from torchlite._symbolic import read
    >>> read("Mul(Integer(2), Symbol('s39', positive=True, integer=True))")
    2*s39
    """
    if len(text) > 10_000:
        return None
    try:
        return _read(ast.parse(text, mode="eval").body, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, ZeroDivisionError):
        return None


def _read(node: Any, depth: int) -> Expr:
    if depth > _DEEPEST or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError
    name = node.func.id
    if name in ("Integer", "Symbol"):
        value = ast.literal_eval(node.args[0])
        if name == "Symbol" and isinstance(value, str) and value.isidentifier():
            return Expr.symbol(value)
        if name == "Integer" and type(value) is int:
            return Expr.of(value)
        raise ValueError
    parts = [_read(part, depth + 1) for part in node.args]
    if name == "Add":
        return sum(parts, Expr.of(0))
    if name == "Mul":
        return _product(parts)
    if name == "Pow" and len(parts) == 2 and parts[1].is_number and 0 <= int(parts[1]) <= 8:
        return _product([parts[0]] * int(parts[1]))
    if name in _FUNCTIONS and len(parts) == 2:
        return Expr.function(name, *parts)
    raise ValueError


def _product(parts: Iterable[Expr]) -> Expr:
    found = Expr.of(1)
    for part in parts:
        if len(found.terms) * len(part.terms) > 1000:
            raise ValueError
        found = found * part
    return found


class SymNode:
    """The expression of a size, and its value in the trace. `trace` decides comparisons of what depends on elements."""

    __slots__ = ("expr", "hint", "trace")

    def __init__(self, expr: Expr, hint: int | None, trace: Any = None) -> None:
        self.expr, self.hint, self.trace = expr, hint, trace

    def __repr__(self) -> str:
        return repr(self.expr)


class SymInt(int):
    """A whole number that came of the sizes of inputs: `node.expr` says how.

    >>> import torchlite as torch
    >>> from torchlite._symbolic import Expr
    >>> size = torch.SymInt.of(Expr.symbol("s0"), 3)
    >>> size * 2, (size * 2).node, size + 0 == 3
    (2*s0, 2*s0, True)
    """

    node: SymNode

    @staticmethod
    def of(expr: Expr, hint: int, trace: Any = None) -> SymInt | int:
        """A size of this expression; a plain number where it has no symbol."""
        if expr.is_number:
            return int(expr)
        made = int.__new__(SymInt if trace is None else UnbackedInt, hint)
        made.node = SymNode(expr, hint, trace)
        return made

    def __repr__(self) -> str:
        return repr(self.node.expr)

    def __reduce__(self) -> Any:
        return int, (int(self),)


def _arithmetic(name: str, run: Any) -> None:
    whole = getattr(int, f"__{name}__")

    def method(self: SymInt, other: Any) -> Any:
        found = whole(self, other)
        if found is NotImplemented or not isinstance(other, int) or type(found) is not int:
            return found
        return SymInt.of(run(self.node.expr, Expr.of(other)), found, self.node.trace or _trace_of(other))

    method.__name__ = f"__{name}__"
    setattr(SymInt, method.__name__, method)


for _name, _run in {
    "add": lambda a, b: a + b, "radd": lambda a, b: b + a, "sub": lambda a, b: a - b, "rsub": lambda a, b: b - a,
    "mul": lambda a, b: a * b, "rmul": lambda a, b: b * a, "floordiv": lambda a, b: a // b,
    "rfloordiv": lambda a, b: b // a, "mod": lambda a, b: a % b, "rmod": lambda a, b: b % a,
}.items():  # fmt: skip
    _arithmetic(_name, _run)
SymInt.__neg__ = lambda self: SymInt.of(-self.node.expr, -int(self), self.node.trace)  # type: ignore


def _trace_of(value: Any) -> Any:
    return value.node.trace if isinstance(value, SymInt) else None


class UnbackedInt(SymInt):
    """A whole number that depends on elements of tensors while a program is captured: its comparisons are conditions,
    whose truth is an error unless ranges or `torch._check` say it.
    """

    __hash__ = int.__hash__

    def __bool__(self) -> bool:
        return bool(self.node.trace.compared("ne", self, 0))


def compare(name: str, a: int, b: int) -> bool:
    """A comparison by its name in `operator`."""
    return bool(getattr(operator, name)(a, b))


def _comparison(name: str) -> None:
    def method(self: UnbackedInt, other: Any) -> Any:
        if not isinstance(other, int):
            return getattr(int, f"__{name}__")(self, other)
        return self.node.trace.compared(name, self, other)

    method.__name__ = f"__{name}__"
    setattr(UnbackedInt, method.__name__, method)


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _comparison(_name)


class SymFloat(float):
    """A number that came of the sizes of inputs: a float, as none is kept as an expression."""


class SymBool:
    """A condition on numbers that depend on elements of tensors: `torch._check` takes it, and `bool` is an error."""

    name: str
    a: Any
    b: Any
    holds: bool
    trace: Any

    def __init__(self, node: Any) -> None:
        raise NotImplementedError("SymBool: a condition is made by comparing sizes while a program is captured")

    @staticmethod
    def of(name: str, a: Any, b: Any, holds: bool, trace: Any) -> SymBool:
        """The condition of a comparison."""
        made = object.__new__(SymBool)
        made.name, made.a, made.b, made.holds, made.trace = name, a, b, holds, trace
        return made

    def __bool__(self) -> bool:
        if not self.trace.open:
            return self.holds
        known = self.trace.compared(self.name, self.a, self.b)
        return known if isinstance(known, bool) else self.trace.recorder.undecided(self)

    def _assumed(self) -> bool:
        """Have the program assert it, as `torch._check` asks. False where it does not hold in this trace."""
        if self.holds:
            self.trace.require(self)
        return self.holds

    def negated(self) -> SymBool:
        """The condition that holds where this one does not."""
        return SymBool.of(_NEGATED[self.name], self.a, self.b, not self.holds, self.trace)

    def __repr__(self) -> str:
        return f"{self.a!r} {_SIGNS[self.name]} {self.b!r}"


_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def sym_int(a: Any) -> int:
    """The whole number towards zero."""
    return a if isinstance(a, SymInt) else int(a)


def sym_float(a: Any) -> float:
    """`float(a)`."""
    return float(a)


def sym_not(a: Any) -> Any:
    """`not a`."""
    return a.negated() if isinstance(a, SymBool) else not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger number; a float where one of them is."""
    return _extreme("Max", max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float where one of them is."""
    return _extreme("Min", min, a, b)


def _extreme(name: str, run: Any, a: Any, b: Any) -> Any:
    if isinstance(a, SymInt) or isinstance(b, SymInt):
        return SymInt.of(Expr.function(name, a, b), run(int(a), int(b)), _trace_of(a) or _trace_of(b))
    found = run(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t if b else f`."""
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """`math.sqrt(a)`."""
    return math.sqrt(a)


def sym_sum(args: Any) -> Any:
    """`sum(args)`."""
    return sum(args)


def sym_fresh_size(expr: Any) -> Any:
    """NotImplementedError: a size without a trace is a number."""
    raise NotImplementedError("sym_fresh_size: a size that is not known is made by a trace alone")
