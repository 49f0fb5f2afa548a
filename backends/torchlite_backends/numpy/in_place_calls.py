"""NumPy calls in place, generated from formulas: the register allocation of a chain of ufuncs over a block in cache.

A formula is a few assignments of expressions over arrays and numbers. Each operation becomes one call that writes into
the target, into the buffer of an operand that is not read again, or into a free buffer.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable
from typing import Any

import numpy as np

from torchlite._types.optimizer_formulas import find_names
from torchlite._types.python_source import compile_function, parse

from .cache_blocking import get_scratch_buffer

_UFUNCS: dict[type, str] = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}
_MANY = 1024  # elements from which a choice by bits takes less time
# These take `out` by keyword alone. The others take it in less time by position.
_KEYWORD_OUT = frozenset(("maximum", "minimum", "clip"))
_FUNCTIONS = (
    *_UFUNCS.values(), "absolute", "negative", "sqrt", "exp", "expm1", "log1p", "reciprocal", "copyto", *_KEYWORD_OUT,
)  # fmt: skip
_COMPARISONS: dict[type, str] = {ast.Gt: ">", ast.Lt: "<", ast.GtE: ">=", ast.LtE: "<="}


def make_namespace() -> dict[str, Any]:
    """Return the globals of generated source. NumPy's warnings are filtered by module."""
    return {name: getattr(np, name) for name in _FUNCTIONS} | {"__name__": __name__, "write_where": write_where}


def write_where(out: np.ndarray, value: Any, mask: np.ndarray) -> None:
    """`copyto(out, value, where=mask)`. A branch for each element takes four times as long on a random mask."""
    if out.size < _MANY or out.dtype.kind != "f":
        return np.copyto(out, value, casting="unsafe", where=mask)
    if mask.any():
        target = out.view(f"i{out.itemsize}")
        change = target ^ np.asarray(value, out.dtype).view(target.dtype)
        change &= np.negative(mask.view(np.int8), dtype=target.dtype)
        np.bitwise_xor(target, change, out=target)
    return None


class _Value:
    """An operand of a call: its name in the generated source, the buffer that is free after its last use, and how often
    it is still used.
    """

    __slots__ = ("buffer", "name", "uses")

    def __init__(self, name: str, uses: int = 1, buffer: str | None = None):
        self.name, self.uses, self.buffer = name, uses, buffer


class InPlaceCalls:
    """The lines of a formula's statements but for the last one, which `finish` adds.

    inputs: arrays that the formula reads, each with the buffer that is free after its last use, or None. free: buffers
    that are free from the start. states: arrays that are assigned in place. numbers: names that are no arrays.
    temporaries: how many more buffers `s0`, `s1` ... there may be; `used` counts those that are.
    """

    def __init__(
        self,
        statements: list[Any],
        inputs: dict[str, str | None],
        free: list[str],
        states: Container[str] = (),
        numbers: Container[str] = (),
        temporaries: int = 0,
    ) -> None:
        self.lines: list[str] = []
        self._constants: dict[Any, str] = {}
        self._states, self._numbers, self._free = states, numbers, list(free)
        self._temporaries, self.used, self._masks = temporaries, 0, 0
        uses: dict[tuple[str, int], int] = {}
        versions: dict[str, int] = {}
        for s in statements:
            for node in ast.walk(s.value):
                if isinstance(node, ast.Name):
                    key = node.id, versions.get(node.id, 0)
                    uses[key] = uses.get(key, 0) + 1
            versions[s.targets[0].id] = versions.get(s.targets[0].id, 0) + 1
        self._values = {name: _Value(name, uses.get((name, 0), 0), buffer) for name, buffer in inputs.items()}
        versions = {}
        for s in statements[:-1]:
            name = s.targets[0].id
            value = self._compute(s.value, name if name in states else None)
            versions[name] = versions.get(name, 0) + 1
            if name not in states:
                aliased = isinstance(s.value, ast.Name) and value is self._values.get(s.value.id)
                value.uses = (value.uses - 1 if aliased else 0) + uses.get((name, versions[name]), 0)
                self._values[name] = value
            elif value.name != name:  # a state becomes another array
                self._release_use(value)
                self.lines.append(f"copyto({name}, {value.name})")

    def finish(self, expression: Any, target: str) -> None:
        """Add the calls that compute an expression into a buffer."""
        value = self._compute(expression, target)
        if value.name != target:
            self.lines.append(f"copyto({target}, {value.name})")

    def _release_use(self, value: _Value) -> None:
        value.uses -= 1
        if value.uses == 0 and value.buffer is not None:
            self._free.append(value.buffer)

    def _take_buffer(self, wanted: Iterable[str | None]) -> str:
        for name in (*wanted, *self._free):
            if name in self._free:
                self._free.remove(name)
                return name
        if self.used == self._temporaries:
            raise ValueError("a formula needs more buffers than there are")
        self.used += 1
        return f"s{self.used - 1}"

    def _is_number(self, node: Any) -> bool:
        return (
            isinstance(node, ast.Constant) or bool(names := find_names(node)) and all(n in self._numbers for n in names)
        )

    def _compute(self, node: Any, target: str | None = None) -> _Value:
        """Append the calls that compute an expression, into `target` where that can hold it."""
        if self._is_number(node):
            return _Value(self._number_name(node))
        if isinstance(node, ast.Name):
            return self._values.get(node.id) or _Value(node.id)
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.BinOp):
            name, parts = _UFUNCS[type(node.op)], [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            name, parts = "negative", [node.operand]
        else:
            name, parts = node.func.id, node.args
            if name == "where":
                return self._where(node, target)
        # A state may hold the first operand where the others do not read it.
        into = target if target in self._states and not any(target in find_names(part) for part in parts[1:]) else None
        first = self._compute(parts[0], into if isinstance(parts[0], ast.BinOp) else None)
        operands = [first, *(self._compute(part) for part in parts[1:])]
        for operand in operands:
            self._release_use(operand)
        if target is not None and target in self._states:
            out = _Value(target)
        else:
            buffer = self._take_buffer([target, *(operand.name for operand in operands)])
            out = _Value(buffer, 1, buffer)
        written = f"out={out.name}" if name in _KEYWORD_OUT else out.name
        self.lines.append(f"{name}({', '.join([operand.name for operand in operands] + [written])})")
        return out

    def _number_name(self, node: Any) -> str:
        if not isinstance(node, ast.Constant):
            return ast.unparse(node)
        value: Any = node.value
        return self._constants.setdefault(value, f"c{len(self._constants)}")

    def _compare(self, node: Any) -> _Value:
        """`a > b` as a new array of bools."""
        sides = [self._compute(node.left), self._compute(node.comparators[0])]
        for side in sides:
            self._release_use(side)
        self._masks += 1
        out = _Value(f"m{self._masks}")
        self.lines.append(f"{out.name} = {sides[0].name} {_COMPARISONS[type(node.ops[0])]} {sides[1].name}")
        return out

    def _where(self, node: Any, target: str | None) -> _Value:
        """`where(condition, x, y)`: `y` computed into a buffer, then `x` copied where the condition is true."""
        condition, chosen, other = node.args
        mask, value = self._compute(condition), self._compute(chosen)
        out = self._compute(other, target)
        if out.buffer is None or out.uses > 1:
            buffer = self._take_buffer([target])
            self.lines.append(f"copyto({buffer}, {out.name})")
            self._release_use(out)
            out = _Value(buffer, 1, buffer)
        self._release_use(mask)
        self._release_use(value)
        self.lines.append(f"write_where({out.name}, {value.name}, {mask.name})")
        return out

    def constants(self) -> dict[str, float]:
        """The numbers of the formula by their names in the source."""
        return {name: value for value, name in self._constants.items()}


def compile_block(name: str, text: str, arrays: str, numbers: str = "") -> Callable[[Any], Callable[..., None]]:
    """A function from a dtype to `block(out, *arrays, *numbers)`, which computes a formula over blocks of that dtype.

    >>> block = compile_block("silu", "out = x / (exp(-x) + 1)", "x")(np.dtype("f4"))
    >>> out = np.empty(1, "f4"); block(out, np.zeros(1, "f4")); out
    array([0.], dtype=float32)
    """
    blocks: dict[Any, Callable[..., None]] = {}

    def get_block_of_dtype(dtype: Any) -> Callable[..., None]:
        found = blocks.get(dtype.char)
        if found is None:
            statements = parse(text).body
            read = arrays.split()
            calls = InPlaceCalls(statements, dict.fromkeys(read), ["out"], (), numbers.split(), temporaries=8)
            calls.finish(statements[-1].value, "out")
            lines = [f"s{i} = get_scratch_buffer({i}, out.shape, out.dtype)" for i in range(calls.used)] + calls.lines
            source = f"def block({', '.join(['out', *read, *numbers.split()])}):\n" + "".join(
                f"    {x}\n" for x in lines
            )
            space = make_namespace() | {"get_scratch_buffer": get_scratch_buffer}
            # NumPy takes an array without dimensions faster than a Python number.
            space |= {constant: np.array(value, dtype) for constant, value in calls.constants().items()}
            found = blocks[dtype.char] = compile_function("block", source, f"<{name} of {dtype}>", space)
        return found

    return get_block_of_dtype
