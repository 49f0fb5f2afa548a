"""The globals that a pickle refers to, found without running it.

The module simulates the stack and the memo of the unpicklers; every value but strings is unknown. So the name that
STACK_GLOBAL takes from the stack is the one that an unpickler would take.
"""

from __future__ import annotations

import pickle
import pickletools
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from typing import Any

_MARK, _UNKNOWN = object(), object()
_STRINGS = frozenset(("STRING", "BINSTRING", "SHORT_BINSTRING"))  # of Python 2: text when they are ASCII
_GET = frozenset(("GET", "BINGET", "LONG_BINGET"))
_PUT = frozenset(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"))
_EXTENSIONS = frozenset(("EXT1", "EXT2", "EXT4"))


def _opcode_stack_effect(info: Any) -> tuple[bool, int, int]:
    """Return an opcode's stack effect: whether it pops to a mark, the number of values it pops below, and the number it
    pushes.
    """
    marked = pickletools.markobject in info.stack_before
    takes = info.stack_before.index(pickletools.markobject) if marked else len(info.stack_before)
    return marked, takes, len(info.stack_after)


_STACK_EFFECTS = {info.name: _opcode_stack_effect(info) for info in pickletools.opcodes}


class _PickleMachine:
    def __init__(self) -> None:
        self.found: set[tuple[str, str]] = set()
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise pickle.UnpicklingError("an opcode takes more from the stack than there is")
        return self._stack.pop()

    def _pop_mark(self) -> None:
        while self._stack:
            if self._stack.pop() is _MARK:
                return
        raise pickle.UnpicklingError("could not find MARK")

    def run(self, data: bytes) -> None:
        for info, argument, _ in pickletools.genops(data):
            self._execute_opcode(info.name, argument)

    def _execute_opcode(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name == "MARK":
            stack.append(_MARK)
        elif name in ("GLOBAL", "INST"):
            if name == "INST":
                self._pop_mark()
            module, _, attribute = argument.partition(" ")
            self.found.add((module, attribute))
            stack.append(_UNKNOWN)
        elif name == "STACK_GLOBAL":
            attribute, module = self._pop(), self._pop()
            # A string that is not in the pickle itself would be the result of a call.
            self.found.add(tuple(x if isinstance(x, str) else "?" for x in (module, attribute)))  # type: ignore[arg-type]
            stack.append(_UNKNOWN)
        elif name in _EXTENSIONS:
            self.found.add(("copyreg", f"extension {argument}"))
            stack.append(_UNKNOWN)
        elif name in _PUT:
            stack.append(self._pop())
            self._memo[len(self._memo) if argument is None else argument] = stack[-1]
        elif name in _GET:
            if argument not in self._memo:
                raise pickle.UnpicklingError(f"Memo value not found at index {argument}")
            stack.append(self._memo[argument])
        elif name == "POP":
            if not stack:
                raise pickle.UnpicklingError("an opcode takes more from the stack than there is")
            stack.pop()  # a mark too
        elif name == "DUP":
            stack.append(self._pop())
            stack.append(stack[-1])
        elif isinstance(argument, str) and ("UNICODE" in name or name in _STRINGS and argument.isascii()):
            stack.append(argument)
        else:
            marked, takes, leaves = _STACK_EFFECTS[name]
            if marked:
                self._pop_mark()
            for _ in range(takes):
                self._pop()
            stack.extend([_UNKNOWN] * leaves)


def to_python3_name(module: str, name: str) -> tuple[str, str]:
    """Return the Python 3 names of a module and a name that protocol 2 writes as Python 2 names."""
    return NAME_MAPPING.get((module, name)) or (IMPORT_MAPPING.get(module, module), name)


def find_globals(data: bytes) -> set[tuple[str, str]]:
    """Return the module and name of all globals of a pickle; "?" for a name that the pickle computes. UnpicklingError
    for a malformed pickle.
    """
    machine = _PickleMachine()
    try:
        machine.run(data)
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # pickletools has no error class
        raise pickle.UnpicklingError(
            f"the pickle is not well formed: {type(error).__name__}: {str(error)[:200]}"
        ) from None
    return {to_python3_name(module, name) for module, name in machine.found}
