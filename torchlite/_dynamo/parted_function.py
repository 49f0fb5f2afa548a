"""Runs functions in parts: where one cannot be captured as a whole, what is between its graph breaks is compiled."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from typing import Any, NamedTuple

from torchlite._dispatch.call import Parameter, Tensor
from torchlite.nn.modules.module import Module

from .break_expressions import CALLEE
from .guards import GLOBAL_MODULE_HOOKS, canonical_module_name, is_known_module
from .known_modules import COMPUTING_LIBRARIES
from .program_ir import Frame
from .split_function import SplitFunction, split_function


class Break(NamedTuple):
    """A graph break: why, the source line, and the position of the expression if it was foreseen."""

    reason: str
    place: str
    position: Any = None

    def has_operand(self, other: Break) -> bool:
        """True if another break is in an operand of this one's expression: no graph ends here then."""
        if self.place != other.place or self.position is None or other.position is None or self is other:
            return False
        (top, bottom, left, right), (top2, bottom2, left2, right2) = self.position, other.position
        return (top, left) <= (top2, left2) and (bottom2, right2) <= (bottom, right)


class PartTree:
    """The parts of a compiled function and of the functions that it calls. root: the compiled function."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.breaks: list[Break] = []
        self._splits: dict[types.CodeType, SplitFunction | None] = {}
        self._by_code: dict[Any, _PartedFunction] = {}
        self._by_function: weakref.WeakKeyDictionary[Any, _PartedFunction] = weakref.WeakKeyDictionary()
        self._attempts: dict[Any, Any] = {}  # compiled functions of calls in statements that run as written

    # -- graph breaks ---------------------------------------------------------------------------

    def add_break(self, compiled: Any, why: str, place: str, frames: tuple[Frame, ...]) -> bool:
        """Split a function that cannot be captured. frames: where it failed, empty if that is not known. Return whether
        the function can run in parts.
        """
        changed = [split.mark(frame.code, frame.place) for frame, split in self._find_splits(frames)]
        if any(changed):
            self.breaks.append(Break(why, place))
            return True
        if compiled.part is not None:
            split, part = compiled.part
            statements = part.statements
        else:
            function = _function_of(compiled.function)
            split = None if function is None else self._split_of(function.__code__, function.__module__)
            statements = None
        if split is None:
            return False
        written = split.split_further(statements)
        if written is not None:
            self.breaks.append(Break(why, place or f"{split.code.co_filename}:{written.lineno}"))
        return True

    def foresee(self, split: SplitFunction, position: Any, is_test: bool, why: str, place: str) -> None:
        """Mark a break that a call will have."""
        (split.plan.tests if is_test else split.plan.breaks).add(position)
        split.version += 1
        self.breaks.append(Break(why, place, position))

    def split_of_function(self, function: types.FunctionType) -> SplitFunction | None:
        """Return the split function of a function, None if it cannot be split."""
        return self._split_of(function.__code__, function.__module__)

    def _find_splits(self, frames: tuple[Frame, ...]) -> list[tuple[Frame, SplitFunction]]:
        found = [(frame, self._split_of(frame.code, frame.module)) for frame in frames]
        return [(frame, split) for frame, split in found if split is not None]

    def _split_of(self, code: types.CodeType, module: str | None) -> SplitFunction | None:
        """Return the split function of a code object, or of the function that it is a part of."""
        if code not in self._splits:
            self._splits[code] = split_function(code) if _may_be_split(str(module)) else None
        return self._splits[code]

    def forget_attempt(self, function: Any) -> None:
        """Call a function as it is: it does not compute with tensors."""
        self._attempts[function.__code__] = None

    def note_part(self, split: SplitFunction, code: types.CodeType) -> None:
        """Note that a code object is that of a part."""
        self._splits[code] = split

    # -- calls ----------------------------------------------------------------------------------

    def run(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Call a function that cannot be captured."""
        return self._resolve(function, False)(*args, **kwargs)

    def callee(self, function: Any) -> Any:
        """Return what a statement that runs as written calls in place of a function. The statement's frame makes the
        call, so that warnings and loggers find it.
        """
        owner = getattr(function, "__self__", None)
        if owner.__class__ is Tensor or owner.__class__ is Parameter or function.__class__ is types.BuiltinFunctionType:
            return function
        return self._resolve(function, True)

    def _resolve(self, function: Any, attempts: bool) -> Any:
        """Return what is called in place of a function."""
        cls = function.__class__
        if cls is types.FunctionType:
            return self._find_parted(function, attempts) or function
        if cls is types.MethodType and function.__func__.__class__ is types.FunctionType:
            found = self._find_parted(function.__func__, attempts)
            return function if found is None else functools.partial(found, function.__self__)
        if cls is functools.partial:
            inner = self._resolve(function.func, attempts)
            return functools.partial(inner, *function.args, **function.keywords)
        if isinstance(function, Module):
            forward = _forward_of(function)
            if forward is not None:
                found = self._find_parted(forward, attempts)
                return function if found is None else functools.partial(found, function)
        return function

    def _find_parted(self, function: types.FunctionType, attempts: bool) -> Any:
        """Return a function that runs in parts, or as a compiled function of its own; None if it runs as written."""
        if not _KEPT_FROM_PARTS.isdisjoint(function.__dict__):
            return None
        split = self._split_of(function.__code__, function.__module__)
        if split is None:
            return None
        is_plain = function.__closure__ is None and function.__defaults__ is None and not function.__kwdefaults__
        if split.version:
            known: Any = self._by_code if is_plain else self._by_function
            key: Any = function.__code__ if is_plain else function
            if key not in known:
                if len(known) > _MAX_FUNCTIONS:
                    return None
                known[key] = _PartedFunction(self, split, function)
            return known[key].current()
        if not attempts or not is_plain:
            return None
        if function.__code__ not in self._attempts:
            self._attempts[function.__code__] = self.root.make_part(function, self, None)
        return self._attempts[function.__code__]


class _PartedFunction:
    """A function that runs in parts."""

    def __init__(self, tree: PartTree, split: SplitFunction, function: types.FunctionType) -> None:
        self.tree, self.split = tree, split
        self.globals, self.name = function.__globals__, function.__name__
        self.defaults, self.keyword_defaults = function.__defaults__, function.__kwdefaults__
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self.parts: dict[tuple, Any] = {}  # compiled parts, by key
        self.version, self.whole = -1, function

    def current(self) -> types.FunctionType:
        """Return the function as it is split now."""
        if self.version != self.split.version:
            self._rebuild()
        return self.whole

    def _rebuild(self) -> None:
        """Make the rewritten function, with the parts that stayed the same."""
        self.version = self.split.version
        built = self.split.build()
        before, self.parts = self.parts, {}
        cells = {**self.cells, CALLEE: types.CellType(self.tree.callee)}
        for part, code in built.parts:
            compiled = before.get(part.key)
            if compiled is None:
                self.tree.note_part(self.split, code)
                compiled = self.tree.root.make_part(self._make(code, self.cells), self.tree, (self.split, part))
                compiled.ignore_attributes(frozenset(built.whole.co_names))
            self.parts[part.key] = compiled
            cells[part.name] = types.CellType(compiled)
        whole = self._make(built.whole, cells)
        whole.__defaults__, whole.__kwdefaults__ = self.defaults, self.keyword_defaults
        self.whole = whole

    def _make(self, code: types.CodeType, cells: dict[str, Any]) -> types.FunctionType:
        closure = tuple([cells[name] for name in code.co_freevars])
        return types.FunctionType(code, self.globals, self.name, None, closure)


def _function_of(function: Any) -> types.FunctionType | None:
    """Return the Python function that a callable runs."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, Module):
        return _forward_of(function)
    function = getattr(function, "__func__", function)
    return function if function.__class__ is types.FunctionType else None


def _forward_of(module: Module) -> types.FunctionType | None:
    """Return the function that a call of a module runs, None if more runs than that."""
    cls: Any = type(module)
    if cls.__call__ is not Module.__call__ or cls._call_impl is not Module._call_impl or has_hooks(module):
        return None
    forward = None if "forward" in module.__dict__ else cls.forward
    return forward if forward.__class__ is types.FunctionType else None


def has_hooks(module: Module) -> bool:
    """True if a module's call does more than to run `forward`."""
    own = module.__dict__
    return "_compiled_call_impl" in own or any(own.get(name) for name in _HOOKS) or any(GLOBAL_MODULE_HOOKS)


def _may_be_split(module: str) -> bool:
    name = canonical_module_name(module)
    if name in _SPLIT_MODULES:
        return True
    top = name.partition(".")[0]
    return not (is_known_module(module) or top in COMPUTING_LIBRARIES or top in sys.stdlib_module_names - {"__main__"})


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
# Modules of torchlite whose functions call the program's.
_SPLIT_MODULES = ("torchlite.nn.modules.container", "torchlite.autograd.grad_mode")
_MAX_FUNCTIONS = 256
_KEPT_FROM_PARTS = frozenset(
    ("_torchdynamo_disable", "_torchdynamo_orig_callable", "_torchlite_allowed", "_dynamo_marked_constant")
)
