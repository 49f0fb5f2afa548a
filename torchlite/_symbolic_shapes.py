"""Symbolic sizes: SymInt, SymFloat, SymBool, their expressions, and `torch.sym_*` functions.

A `SymInt` is an `int`, the size during tracing, with an expression of input sizes. Arithmetic returns a SymInt,
comparisons return bool.
"""

from __future__ import annotations

import collections
import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any


class Atom(tuple):
    """Atom of an expression: a symbol `(name,)`, or a function application `("FloorDiv", a, b)`."""

    def __repr__(self) -> str:
        return self[0] if len(self) == 1 else _format_atom(self)


# Limits of an expression, whatever its origin: number of parts, nesting depth, bits of its numbers and value. Sizes
# have 63 bits, and expressions in practice about ten parts.
_LARGEST, _DEEPEST, _BITS = 10_000, 100, 256


def check_bit_length(number: int) -> int:
    """Return the number if it has at most 256 bits, else raise OverflowError."""
    if number.bit_length() > _BITS:
        raise OverflowError(f"a size of {number.bit_length()} bits is too large")
    return number


_FUNCTIONS: dict[str, Any] = {
    "FloorDiv": lambda a, b: a // b, "PythonMod": lambda a, b: a % b, "Mod": lambda a, b: a % b,
    "Max": max, "Min": min, "CleanDiv": lambda a, b: a // b, "CeilDiv": lambda a, b: -(-a // b),
}  # fmt: skip


def _format_atom(atom: Atom) -> str:
    plain = [str(part) for part in atom[1:]]  # format each part once: they are deeply nested
    parts = [f"({text})" if part.is_sum else text for part, text in zip(atom[1:], plain, strict=True)]
    if atom[0] in ("FloorDiv", "CleanDiv"):
        return f"({parts[0]}//{parts[1]})"
    if atom[0] == "PythonMod":
        return f"({parts[0]} % {parts[1]})"
    return f"{atom[0]}({', '.join(plain)})"


class Expr:
    """Expression of sizes: a polynomial of atoms with integer coefficients.

    >>> from torchlite._symbolic_shapes import Expr
    >>> s = Expr.symbol("s0")
    >>> 2 * s * s + 1, (s + s) // 2
    (2*s0**2 + 1, (2*s0//2))
    >>> (s + 1).value({"s0": 4})
    5
    """

    __slots__ = ("depth", "parts", "shown", "terms")

    def __init__(self, terms: Mapping[tuple, int]) -> None:
        self.shown = ""  # cached text
        self.parts, self.depth = 0, 0  # number of symbols and functions, and nesting depth
        for atoms, count in terms.items():
            self.parts += 1
            check_bit_length(count)
            for atom in atoms:
                self.parts += 1
                for part in atom[1:]:
                    self.parts += part.parts
                    self.depth = max(self.depth, part.depth + 1)
        if self.parts > _LARGEST or self.depth > _DEEPEST:
            raise OverflowError(f"an expression of {self.parts} parts, {self.depth} of them deep, is too large")
        self.terms = tuple(sorted(((k, v) for k, v in terms.items() if v), key=_term_sort_key))

    @staticmethod
    def sum(parts: Iterable[Expr]) -> Expr:
        """Return the sum of expressions."""
        terms: dict[tuple, int] = {}
        for part in parts:
            for atoms, count in part.terms:
                terms[atoms] = terms.get(atoms, 0) + count
        return Expr(terms)

    @staticmethod
    def symbol(name: str) -> Expr:
        return Expr({(Atom((name,)),): 1})

    @staticmethod
    def of(value: Any) -> Expr:
        """Return a number, size or expression as an expression."""
        if isinstance(value, Expr):
            return value
        return value.node.expr if isinstance(value, SymInt) else Expr({(): int(value)})

    @staticmethod
    def function(name: str, *args: Any) -> Expr:
        """Return FloorDiv, PythonMod, Max or Min of expressions, a number if all arguments are."""
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
        """Return the names of the symbols."""
        found: set[str] = set()
        for atoms, _ in self.terms:
            for atom in atoms:
                if len(atom) == 1:
                    found.add(atom[0])
                for part in atom[1:]:
                    found |= part.free_symbols
        return found

    def replaced(self, found: Mapping[str, Expr]) -> Expr:
        """Return the expression with symbols replaced by expressions."""
        if not self.free_symbols & set(found):
            return self
        terms = []
        for atoms, count in self.terms:
            term = Expr.of(count)
            for atom in atoms:
                parts = [part.replaced(found) for part in atom[1:]]
                term = term * (Expr.function(atom[0], *parts) if parts else found.get(atom[0], Expr({(atom,): 1})))
            terms.append(term)
        return Expr.sum(terms)

    def value(self, sizes: Mapping[str, int]) -> int:
        """Return the value for given symbol values. Raise KeyError for a missing symbol, ArithmeticError if the value
        is undefined or an intermediate value too large.
        """
        total = 0
        for atoms, count in self.terms:
            for atom in atoms:
                if len(atom) == 1:
                    count = check_bit_length(count * sizes[atom[0]])
                else:
                    count = check_bit_length(count * _FUNCTIONS[atom[0]](*(part.value(sizes) for part in atom[1:])))
            total = check_bit_length(total + count)
        return total

    def __add__(self, other: Any) -> Expr:
        terms = dict(self.terms)
        for atoms, count in Expr.of(other).terms:
            terms[atoms] = terms.get(atoms, 0) + count
        return Expr(terms)

    def __mul__(self, other: Any) -> Expr:
        terms: dict[tuple, int] = {}
        other = Expr.of(other)
        if len(self.terms) * other.parts + len(other.terms) * self.parts > 2 * _LARGEST:
            raise OverflowError(f"a product of {len(self.terms)} by {len(other.terms)} terms is too large")
        for a, m in self.terms:
            for b, n in other.terms:
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
        if not self.shown:
            self.shown = self._format()
        return self.shown

    def _format(self) -> str:
        parts = []
        for atoms, count in self.terms:
            factors = [repr(atom) + (f"**{n}" if n > 1 else "") for atom, n in collections.Counter(atoms).items()]
            if count != 1 or not atoms:
                factors.insert(0, str(abs(count)) if abs(count) != 1 or not atoms else "")
            parts.append(("- " if count < 0 else "+ ") + "*".join(f for f in factors if f))
        text = " ".join(parts).removeprefix("+ ")
        return text.replace("- ", "-", 1) if text.startswith("- ") else text or "0"

    def srepr(self) -> str:
        """Return the text in PyTorch files, which is SymPy's `srepr`."""
        terms = []
        for atoms, count in self.terms:
            factors = [] if count == 1 and atoms else [f"Integer({count})"]
            factors += [
                f"Pow({_format_srepr(atom)}, Integer({n}))" if n > 1 else _format_srepr(atom)
                for atom, n in collections.Counter(atoms).items()
            ]
            terms.append(factors[0] if len(factors) == 1 else f"Mul({', '.join(factors)})")
        return "Integer(0)" if not terms else terms[0] if len(terms) == 1 else f"Add({', '.join(terms)})"


def _term_sort_key(term: tuple) -> tuple:
    atoms, _ = term
    return -len(atoms), repr(atoms)


def _format_srepr(atom: Atom) -> str:
    if len(atom) > 1:
        return f"{atom[0]}({', '.join(part.srepr() for part in atom[1:])})"
    if "(" in atom[0]:
        return atom[0]
    return f"Symbol('{atom[0]}', {'positive=True, ' * atom[0].startswith('s')}integer=True)"


def _multiply_expressions(parts: Iterable[Expr]) -> Expr:
    found = Expr.of(1)
    for part in parts:
        found = found * part
    return found


class SymNode:
    """Expression of a size and its traced value. `trace` decides data-dependent comparisons."""

    __slots__ = ("expr", "hint", "trace")

    def __init__(self, expr: Expr, hint: int | None, trace: Any = None) -> None:
        self.expr, self.hint, self.trace = expr, hint, trace

    def __repr__(self) -> str:
        return repr(self.expr)


class SymInt(int):
    """Integer computed from input sizes; `node.expr` is its expression.

    >>> import torchlite as torch
    >>> from torchlite._symbolic_shapes import Expr
    >>> size = torch.SymInt.of(Expr.symbol("s0"), 3)
    >>> size * 2, (size * 2).node, size + 0 == 3
    (2*s0, 2*s0, True)
    """

    node: SymNode

    @staticmethod
    def of(expr: Expr, hint: int, trace: Any = None) -> SymInt | int:
        """Return a size with this expression, a plain int if it has no symbol."""
        if expr.is_number:
            return int(expr)
        made = int.__new__(SymInt if trace is None else UnbackedInt, hint)
        made.node = SymNode(expr, hint, trace)
        return made

    def __repr__(self) -> str:
        return repr(self.node.expr)

    def __reduce__(self) -> Any:
        return int, (int(self),)


def _raise_to_power(base: SymInt, exponent: int, found: int) -> Any:
    if isinstance(exponent, SymInt) or not 0 <= exponent <= 8:
        return found
    return SymInt.of(_multiply_expressions([base.node.expr] * exponent), found, base.node.trace)


def _make_arithmetic_method(name: str, run: Any) -> None:
    whole = getattr(int, f"__{name}__")

    def method(self: SymInt, other: Any) -> Any:
        found = whole(self, other)
        if found is NotImplemented or not isinstance(other, int) or type(found) is not int:
            return found
        if name.endswith("pow"):
            return _raise_to_power(self, other, found) if name == "pow" else found
        return SymInt.of(run(self.node.expr, Expr.of(other)), found, self.node.trace or _trace_of(other))

    method.__name__ = f"__{name}__"
    setattr(SymInt, method.__name__, method)


for _name, _run in {
    "add": lambda a, b: a + b, "radd": lambda a, b: b + a, "sub": lambda a, b: a - b, "rsub": lambda a, b: b - a,
    "mul": lambda a, b: a * b, "rmul": lambda a, b: b * a, "floordiv": lambda a, b: a // b,
    "rfloordiv": lambda a, b: b // a, "mod": lambda a, b: a % b, "rmod": lambda a, b: b % a, "pow": None, "rpow": None,
}.items():  # fmt: skip
    _make_arithmetic_method(_name, _run)
SymInt.__neg__ = lambda self: SymInt.of(-self.node.expr, -int(self), self.node.trace)  # type: ignore


def _trace_of(value: Any) -> Any:
    return value.node.trace if isinstance(value, SymInt) else value.trace if isinstance(value, SymFloat) else None


class UnbackedInt(SymInt):
    """Data-dependent integer of a captured program. Comparisons return SymBool, whose truth value raises unless ranges
    or `torch._check` imply it.
    """

    __hash__ = int.__hash__

    def __bool__(self) -> bool:
        return bool(self.node.trace.compared("ne", self, 0))


def compare_by_name(name: str, a: float, b: float) -> bool:
    """Compare by a function name of `operator`."""
    return bool(getattr(operator, name)(a, b))


def _make_comparison_method(name: str) -> None:
    def method(self: UnbackedInt, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return getattr(int, f"__{name}__")(self, other)
        return self.node.trace.compared(name, self, other)

    method.__name__ = f"__{name}__"
    setattr(UnbackedInt, method.__name__, method)


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _make_comparison_method(_name)


class SymFloat(float):
    """A float computed from input sizes or elements of a traced program.

    `parts` has the function and its arguments, `trace` the program that is being captured. Without them it is a plain
    float.

    Example:
        >>> torch.SymFloat(1.5) + 1
        2.5
    """

    parts: tuple = ()
    trace: Any = None
    elements = False  # True if data-dependent

    @staticmethod
    def of(value: float, parts: tuple, trace: Any, elements: bool = False) -> SymFloat:
        """Return a float of a trace. `parts`: a function and its arguments, or a symbol's name."""
        made = SymFloat(value)
        made.parts, made.trace, made.elements = parts, trace, elements
        return made

    @staticmethod
    def by(function: Any, *args: Any) -> Any:
        """Return a function's value on numbers of which at least one belongs to a trace."""
        value = function(*(_to_plain_number(a) for a in args))
        trace = next(t for a in args if (t := _trace_of(a)) is not None)
        if not isinstance(value, float):
            return value
        return SymFloat.of(value, (function, *args), trace, any(map(trace.of_elements, args)))

    __hash__ = float.__hash__

    def __repr__(self) -> str:
        if not self.parts:
            return float.__repr__(self)
        function, *args = self.parts
        return function if isinstance(function, str) else f"{function.__name__}({', '.join(map(repr, args))})"

    def srepr(self) -> str:
        """Return the text in PyTorch files, which is SymPy's `srepr`."""
        function, *args = self.parts
        if isinstance(function, str):  # a symbol or text from a file
            return function if "(" in function else f"Symbol('{function}')"
        whole = all(isinstance(a, int) for a in args)
        name = _TEXTS.get(function.__name__, function.__name__)
        name = "IntTrueDiv" if name == "FloatTrueDiv" and whole else name
        if function is operator.sub:
            return f"Add({_format_value(args[0])}, Mul(Integer(-1), {_format_value(args[1])}))"
        return f"{name}({', '.join(map(_format_value, args))})"

    def __bool__(self) -> bool:
        return float.__bool__(self) if self.trace is None else bool(self.trace.compared("ne", self, 0.0))

    def __floor__(self) -> int:
        return math.floor(float(self)) if self.trace is None else self.trace.whole(math.floor, self)

    def __ceil__(self) -> int:
        return math.ceil(float(self)) if self.trace is None else self.trace.whole(math.ceil, self)

    def __trunc__(self) -> int:
        return math.trunc(float(self)) if self.trace is None else self.trace.whole(math.trunc, self)


_TEXTS = {
    "truediv": "FloatTrueDiv", "pow": "FloatPow", "mul": "Mul", "add": "Add", "sym_float": "ToFloat",
    "sym_sqrt": "OpaqueUnaryFn_sqrt", "neg": "Mul",
}  # fmt: skip


def _format_value(value: Any) -> str:
    if isinstance(value, SymInt):
        return value.node.expr.srepr()
    if isinstance(value, SymFloat) and value.parts:
        return value.srepr()
    return f"Float('{float(value)!r}', precision=53)" if isinstance(value, float) else f"Integer({int(value)})"


def _to_plain_number(value: Any) -> Any:
    """Return the plain number."""
    return int(value) if isinstance(value, SymInt) else float(value) if isinstance(value, SymFloat) else value


def _make_fraction_method(name: str, run: Any, turned: bool) -> None:
    of_float = getattr(float, name)

    def method(self: Any, other: Any, *rest: Any) -> Any:
        traced = _trace_of(self) is not None or _trace_of(other) is not None
        if rest or not traced or not isinstance(other, (int, float)):
            return of_float(_to_plain_number(self), _to_plain_number(other), *rest)
        # convert an int operand to float by a node, except in int / int
        both = run is operator.truediv and isinstance(self, int) and isinstance(other, int)
        a, b = (self, other) if both else (sym_float(self), sym_float(other))
        return SymFloat.by(run, *((b, a) if turned else (a, b)))

    method.__name__ = name
    setattr(SymFloat, name, method)
    if run is operator.truediv:
        setattr(UnbackedInt, name, method)
    else:
        whole = getattr(UnbackedInt, name)

        def mixed_method(self: UnbackedInt, other: Any, *rest: Any) -> Any:
            if isinstance(other, float) or run is operator.pow and _is_fraction(self, other, turned):
                return method(self, other, *rest)
            return whole(self, other, *rest)

        mixed_method.__name__ = name
        setattr(UnbackedInt, name, mixed_method)


def _is_fraction(a: Any, b: Any, turned: bool) -> bool:
    """True if an integer power is fractional: the exponent is negative."""
    exponent = a if turned else b
    return isinstance(exponent, int) and int(exponent) < 0


for _name, _run in {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv, "pow": operator.pow,
}.items():  # fmt: skip
    for _turned in (False, True):
        _make_fraction_method(f"__{'r' * _turned}{_name}__", _run, _turned)


def _negate(self: SymFloat) -> Any:
    return -float(self) if self.trace is None else SymFloat.by(operator.mul, -1.0, self)


SymFloat.__neg__ = _negate  # type: ignore[method-assign, assignment]


def _make_float_comparison_method(name: str) -> None:
    def method(self: SymFloat, other: Any) -> Any:
        if not isinstance(other, (int, float)) or (self.trace is None and _trace_of(other) is None):
            return getattr(float, f"__{name}__")(self, other)
        return (self.trace or _trace_of(other)).compared(name, self, other)

    method.__name__ = f"__{name}__"
    setattr(SymFloat, method.__name__, method)


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _make_float_comparison_method(_name)


class SymBool:
    """A data-dependent condition of a traced program.

    `torch._check` takes it, and `bool` of it raises an error where the data decide. Comparisons of sizes make it.

    Args:
        node: No value is accepted.

    Raises:
        NotImplementedError: The class is called.

    Example:
        >>> isinstance(True, torch.SymBool)
        False
    """

    name: str
    a: Any
    b: Any
    holds: bool
    trace: Any
    place: str | None  # source line of the program, for a condition on sizes only

    def __init__(self, node: Any) -> None:
        raise NotImplementedError("SymBool: a condition is made by comparing sizes while a program is captured")

    @staticmethod
    def of(name: str, a: Any, b: Any, holds: bool, trace: Any, place: str | None = None) -> SymBool:
        """Return the condition of a comparison. The name "item" marks a Boolean element `a` (its node), "not" a
        negation, "and" and "or" a combination.
        """
        made = object.__new__(SymBool)
        made.name, made.a, made.b, made.holds, made.trace, made.place = name, a, b, holds, trace, place
        return made

    def __bool__(self) -> bool:
        return self.holds if self.trace is None or not self.trace.open else self.trace.decided(self)

    def __int__(self) -> int:
        return int(bool(self))

    __index__ = __int__

    def __float__(self) -> float:
        return float(bool(self))

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, (bool, int, float, SymBool)) and bool(self) == other

    def __hash__(self) -> int:
        return hash(bool(self))

    def __and__(self, other: Any) -> Any:
        return _combine_conditions("and", self, other)

    def __or__(self, other: Any) -> Any:
        return _combine_conditions("or", self, other)

    __rand__, __ror__ = __and__, __or__

    def _assume(self) -> bool:
        """Add an assertion to the program, as `torch._check` does. Return False if it does not hold in this trace."""
        if self.place is not None:
            return bool(self)
        if self.holds:
            self.trace.require(self)
        return self.holds

    def negated(self) -> SymBool:
        """Return the negated condition."""
        if self.name == "not":
            return self.a
        if self.name not in _NEGATED:
            return SymBool.of("not", self, None, not self.holds, self.trace)
        return SymBool.of(_NEGATED[self.name], self.a, self.b, not self.holds, self.trace, self.place)

    def __repr__(self) -> str:
        if self.name in _JOINED:
            return f"({self.a!r}) {_JOINED[self.name][0]} ({self.b!r})"
        if self.b is None:
            return f"Not({self.a!r})" if self.name == "not" else str(self.a)
        return f"{self.a!r} {_SIGNS[self.name]} {self.b!r}"

    def srepr(self) -> str:
        """Return the text in PyTorch files, which is SymPy's `srepr`."""
        if self.trace is None:
            return str(self.a)
        if self.name == "item":
            return f"Equality(Symbol('{self.trace.names[self.a]}', integer=True), Integer(1))"
        if self.name == "not":
            return f"Not({self.a.srepr()})"
        if self.name in _JOINED:
            return f"{_JOINED[self.name][1]}({self.a.srepr()}, {self.b.srepr()})"
        return f"{_CLASSES[self.name]}({_format_value(self.a)}, {_format_value(self.b)})"


def _combine_conditions(name: str, a: Any, b: Any) -> Any:
    """Return the combination of two conditions. Conditions on sizes are decided, since only data-dependent ones need a
    node.
    """
    if not isinstance(b, (bool, SymBool)):
        return NotImplemented
    a, b = (bool(c) if isinstance(c, SymBool) and c.place is not None else c for c in (a, b))
    for one, other in ((a, b), (b, a)):
        if isinstance(one, bool):
            return (other if one else False) if name == "and" else (True if one else other)
    return SymBool.of(name, a, b, a.holds and b.holds if name == "and" else a.holds or b.holds, a.trace)


def _make_condition_arithmetic_method(name: str, turned: bool) -> None:
    """Return an arithmetic method on conditions: as 0 and 1 with numbers, by an op with tensors."""
    run = getattr(operator, name)

    def method(self: SymBool, other: Any) -> Any:
        if isinstance(other, (int, float, SymBool)):
            parts = [sym_ite(v, 1, 0) if isinstance(v, SymBool) else v for v in (self, other)]
            return run(*(parts[::-1] if turned else parts))
        if not turned or not hasattr(other, "_tl_memory"):
            return NotImplemented
        return self.trace.with_tensor(name, other, self)

    method.__name__ = f"__{'r' * turned}{name}__"
    setattr(SymBool, method.__name__, method)


for _name in ("add", "sub", "mul"):
    _make_condition_arithmetic_method(_name, False)
    _make_condition_arithmetic_method(_name, True)
_JOINED = {"and": ("&", "And"), "or": ("|", "Or")}
_CLASSES = {
    "lt": "StrictLessThan", "le": "LessThan", "gt": "StrictGreaterThan", "ge": "GreaterThan", "eq": "Equality",
    "ne": "Unequality",
}  # fmt: skip
_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def sym_int(a: Any) -> int:
    """Returns the integer part of a number, rounded towards zero.

    Args:
        a: An int, float, `SymInt` or `SymFloat`.

    Example:
        >>> torch.sym_int(-2.7)
        -2
    """
    return a if isinstance(a, SymInt) else math.trunc(a) if isinstance(a, SymFloat) else int(a)


def sym_float(a: Any) -> float:
    """Returns `float(a)`, and of a traced size a `SymFloat`.

    Args:
        a: An int, float, `SymInt` or `SymFloat`.

    Example:
        >>> torch.sym_float(2)
        2.0
    """
    if isinstance(a, SymFloat):
        return a
    return float(a) if _trace_of(a) is None else SymFloat.by(sym_float, a)


def sym_not(a: Any) -> Any:
    """Returns `not a`, and of a traced condition its negation.

    Args:
        a: A bool or `SymBool`.

    Example:
        >>> torch.sym_not(3 > 4)
        True
    """
    return a.negated() if isinstance(a, SymBool) else not a


def sym_max(a: Any, b: Any) -> Any:
    """Returns the larger number, a float if either is one.

    Args:
        a: A number, possibly symbolic.
        b: The other number.

    Example:
        >>> torch.sym_max(2, 3), torch.sym_max(2.0, 3)
        (3, 3.0)
    """
    return _max_or_min("Max", max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Returns the smaller number, a float if either is one.

    Args:
        a: A number, possibly symbolic.
        b: The other number.

    Example:
        >>> torch.sym_min(2, 3)
        2
    """
    return _max_or_min("Min", min, a, b)


def _max_or_min(name: str, run: Any, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and (isinstance(a, SymInt) or isinstance(b, SymInt)):
        return SymInt.of(Expr.function(name, a, b), run(int(a), int(b)), _trace_of(a) or _trace_of(b))
    if _trace_of(a) is not None or _trace_of(b) is not None:
        return SymFloat.by(sym_max if name == "Max" else sym_min, sym_float(a), sym_float(b))
    found = run(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Returns `t if b else f`; a graph that is being captured keeps both values.

    Args:
        b: A bool or `SymBool`.
        t: The value where the condition holds.
        f: The value where it does not.

    Example:
        >>> torch.sym_ite(3 > 4, 1, 0)
        0
    """
    return b.trace.chosen(b, t, f) if isinstance(b, SymBool) and b.trace is not None and b.trace.open else t if b else f


def sym_sqrt(a: Any) -> float:
    """Returns the square root of a number as a float.

    Args:
        a: A non-negative number, possibly symbolic.

    Raises:
        ValueError: The number is negative.

    Example:
        >>> torch.sym_sqrt(9)
        3.0
    """
    return math.sqrt(a) if _trace_of(a) is None else SymFloat.by(sym_sqrt, sym_float(a))


def sym_sum(args: Any) -> Any:
    """Returns the sum of numbers.

    Args:
        args: A sequence of numbers, possibly symbolic.

    Example:
        >>> torch.sym_sum([2, 3, 4])
        9
    """
    return sum(args)


def sym_fresh_size(expr: Any) -> Any:
    """Raises NotImplementedError: only a trace makes sizes that are not known.

    Args:
        expr: No effect.

    Raises:
        NotImplementedError: Always.

    Example:
        >>> torch.sym_fresh_size(None)
        Traceback (most recent call last):
        NotImplementedError: sym_fresh_size: a size that is not known is made by a trace alone
    """
    raise NotImplementedError("sym_fresh_size: a size that is not known is made by a trace alone")
