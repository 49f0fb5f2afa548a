"""The operator of Python's syntax that a running program has called an op by: `a + b` or `a += b`, not `torch.add`."""

from __future__ import annotations

import dis
import functools
import operator
import sys
from collections.abc import Callable
from types import CodeType

_OPERATORS: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul, "&=": operator.iand, "|=": operator.ior,
    "^=": operator.ixor, "<<=": operator.ilshift, ">>=": operator.irshift,
}  # fmt: skip


@functools.lru_cache(maxsize=256)
def _operators_in(code: CodeType) -> dict[int, Callable]:
    """The operators of a function's code, by the place of their instruction."""
    found = {}
    for step in dis.get_instructions(code):
        if step.opname == "BINARY_OP" and step.argrepr in _OPERATORS:
            found[step.offset] = _OPERATORS[step.argrepr]
    return found


def calling_operator(is_user_file: Callable[[str], bool]) -> Callable | None:
    """Return the operator that the innermost frame of the user's files is at, as a function of `operator`; None if it
    is at a call.
    """
    frame = sys._getframe(1)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else _operators_in(frame.f_code).get(frame.f_lasti)
