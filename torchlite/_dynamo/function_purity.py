"""Purity analysis of functions by their bytecode: may a backward function or hook run more than once?"""

from __future__ import annotations

import builtins
import dis
import functools
import types
from typing import Any

from torchlite._dispatch.call import Tensor
from torchlite.autograd.function import Function

from .guards import SIMPLE_TYPES, is_known_module

# Opcodes that write to non-local state.
_WRITING_OPCODES = frozenset((
    "STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE",
    "IMPORT_NAME", "YIELD_VALUE",
))  # fmt: skip
_PURE_BUILTINS = frozenset(
    "len range tuple list dict zip enumerate isinstance float int bool min max sum abs any all sorted reversed map "
    "None True False super slice round".split()
)
_PURE_METHODS = frozenset(
    "append extend insert update pop popitem clear remove setdefault discard write writelines appendleft popleft sort "
    "reverse send put backward register_hook retain_grad step zero_grad manual_seed seed set_ numpy tolist item "
    "grad save_for_backward".split()
)


def is_pure(function: Any) -> bool:
    """True if the bytecode shows no side effect."""
    try:
        return _is_pure(function, set())
    except RecursionError:
        return False


def _is_pure(function: Any, seen: set[int]) -> bool:
    if id(function) in seen:
        return True
    seen.add(id(function))
    if isinstance(function, types.MethodType):
        return is_known_module(function.__module__) or _is_pure(function.__func__, seen)
    if isinstance(function, functools.partial):
        return all(_is_pure_value(v, seen) for v in (function.func, *function.args, *function.keywords.values()))
    if not isinstance(function, types.FunctionType):
        return is_known_module(getattr(function, "__module__", "?"))
    if is_known_module(function.__module__):
        return all(
            not isinstance(v, (types.FunctionType, types.MethodType)) or _is_pure(v, seen)
            for v in _closure_cells(function)
        )
    codes = [function.__code__]
    for code in codes:  # grows during the loop
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        if not all(_is_pure_instruction(i, code, function.__globals__, seen) for i in dis.get_instructions(code)):
            return False
    return all(_is_pure_value(v, seen) for v in (*_closure_cells(function), *(function.__defaults__ or ())))


def _closure_cells(function: Any) -> list:
    return [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]


def _is_pure_instruction(i: dis.Instruction, code: types.CodeType, space: dict, seen: set[int]) -> bool:
    name = i.opname
    if name in _WRITING_OPCODES or name == "STORE_DEREF" and i.argval in code.co_freevars:
        return False
    if name.startswith(("INPLACE_", "BINARY_OP")) and i.argrepr.endswith("="):
        return False
    if name in ("LOAD_ATTR", "LOAD_METHOD"):
        return i.argval not in _PURE_METHODS and (not i.argval.endswith("_") or i.argval.startswith("__"))
    if name in ("LOAD_GLOBAL", "LOAD_NAME"):
        if i.argval in space:
            return not isinstance(space[i.argval], SIMPLE_TYPES) and _is_pure_value(space[i.argval], seen)
        return i.argval in _PURE_BUILTINS and hasattr(builtins, i.argval)
    return True


def _is_pure_value(value: Any, seen: set[int]) -> bool:
    """True if using a value has no side effect."""
    if isinstance(value, (*SIMPLE_TYPES, Tensor)):
        return True
    if isinstance(value, types.ModuleType):
        return is_known_module(value.__name__)
    if isinstance(value, type):
        return is_known_module(value.__module__) or issubclass(value, Function)
    if isinstance(value, tuple):
        return all(_is_pure_value(item, seen) for item in value)
    return callable(value) and _is_pure(value, seen)
