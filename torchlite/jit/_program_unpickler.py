"""Unpickler of program archives: plain data, and objects of the program's classes only."""

from __future__ import annotations

import enum
import pickle
from typing import Any

from .._dispatch.call import Tensor
from .._dispatch.callbacks import CALLBACKS
from .._serialization.pickle_costs import CALL_COST, short_repr
from .._serialization.resource_budget import Budget
from .._serialization.weights_only_unpickler import RestrictedUnpickler
from .._tensor import Parameter
from .._types.devices import device
from ._compilation_unit import ScriptClass
from ._python_translator import ProgramError
from ._runtime import ScriptObject, host_entry, to_parameter
from ._script_modules import RecursiveScriptModule

_LISTS = {
    "build_intlist": (int,),
    "build_boollist": (bool,),
    "build_doublelist": (float, int),
    "build_tensorlist": (Tensor,),
}


class _Builder:
    """Stand-in for a constructor function of `torch.jit._pickle`."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, args: Any) -> Any:
        if self.name == "restore_type_tag" and len(args) == 2 and isinstance(args[1], str):
            return args[0]
        kinds = _LISTS.get(self.name)
        if (
            kinds is None
            or len(args) != 1
            or type(args[0]) is not list
            or not all(isinstance(v, kinds) for v in args[0])
        ):
            raise pickle.UnpicklingError(f"torch.jit._pickle.{self.name} was called with {short_repr(args)}")
        return args[0]


class _LibraryClass:
    """A class that the library defines, and an object of it that has no state yet."""

    def __init__(self, name: str):
        self.name = name


_BUILDERS = {name: _Builder(name) for name in (*_LISTS, "restore_type_tag")}
_VALUES = frozenset((int, float, bool, complex, str, type(None), Tensor, Parameter, device))
_CONTAINERS = (list, tuple, dict)


class ProgramUnpickler(RestrictedUnpickler):
    """Unpickler for a program's classes. Types from `add_safe_globals` are not available. The result contains
    TorchScript values only; classes and functions named by the pickle can only be called by it.
    """

    def __init__(self, stream: Any, storages: Any, data: bytes, program: Any, budget: Budget):
        super().__init__(stream, storages, "utf-8", len(data), data, budget)
        self._allowed, self._allowed_ids = {}, set()
        self._program = program
        self._classes: set[Any] = set()  # named tuples and enums that the pickle names
        self._waiting: list[tuple[Any, Any]] = []  # objects with pending `__setstate__`

    def load(self) -> Any:
        found = super().load()
        self._check_values([found, *(state for _, state in self._waiting)])
        return found

    def _check_values(self, pending: list) -> None:
        """Raise UnpicklingError if values contain, at any depth, a non-TorchScript value."""
        seen: set[int] = set()
        while pending:
            value = pending.pop()
            cls = type(value)
            if cls in _VALUES or id(value) in seen:
                continue
            seen.add(id(value))
            parts: Any = ()
            if isinstance(value, Tensor) and value.is_quantized or hasattr(cls, "_schema_type"):
                continue
            if cls is list or cls is tuple or cls in self._classes and issubclass(cls, tuple):
                parts = value
            elif cls is dict:
                parts = (*value, *value.values())
            elif cls is ScriptObject:
                parts = value._attributes.values()
            elif cls is RecursiveScriptModule:
                parts = (*value._attributes.values(), *value._modules.values())
            elif cls not in self._classes:
                raise pickle.UnpicklingError(f"an object of the class {cls.__name__} is no value of TorchScript")
            if not _VALUES.issuperset(map(type, parts)):
                pending += [
                    part for part in parts if type(part) not in _VALUES and (type(part) not in _CONTAINERS or part)
                ]

    def set_states(self, size: int) -> None:
        """Call pending `__setstate__` methods. size: file size, which bounds their work."""
        if not self._waiting:
            return
        from ._setstate_budget import Budget, count_program

        self._program.budget = self._program.budget or Budget(size)
        with count_program(self._program, self._program.budget):
            for target, state in self._waiting:
                host_entry(target._script.methods["__setstate__"], target, state)

    def _global(self, module: str, name: str) -> None:
        if module.startswith("__torch__"):
            if CALLBACKS.quantized("is_object_class")(f"{module}.{name}"):
                self._push(_LibraryClass(f"{module}.{name}"))
                return
            try:
                found = self._program.find(f"{module}.{name}")
            except ProgramError:
                raise
            if not isinstance(found, ScriptClass) and not isinstance(found, type):
                raise pickle.UnpicklingError(f"the program has no class {module}.{name}")
            if isinstance(found, type):
                self._classes.add(found)
            self._push(found)
        elif module == "torch.jit._pickle":
            if name not in _BUILDERS:
                raise pickle.UnpicklingError(f"there is no {module}.{name}")
            self._push(_BUILDERS[name])
        else:
            super()._global(module, name)

    def _reduce(self) -> None:
        function = self._stack[-2] if len(self._stack) > 1 else None
        if not isinstance(function, (_Builder, enum.EnumMeta)) and getattr(function, "_script_fields", None) is None:
            super()._reduce()
            return
        args = self._pop()
        if type(args) is tuple:
            listed = len(args[0]) if args and type(args[0]) is list else 0
            fields = getattr(function, "_script_fields", None) or ()
            self._budget.spend(CALL_COST + max(len(args), listed, len(fields)))
        if isinstance(function, _Builder) and type(args) is tuple:
            self._stack[-1] = function(args)
            return
        if isinstance(function, enum.EnumMeta):
            value = args[0] if type(args) is tuple and len(args) == 1 else args
            if type(value) not in (int, float, str):
                raise pickle.UnpicklingError(f"a member of an enumeration is called with {short_repr(args)}")
            try:
                self._stack[-1] = function(value)
            except ValueError as error:
                raise pickle.UnpicklingError(str(error)[:200]) from None
        elif type(args) is tuple:
            try:
                self._stack[-1] = function(*args)  # type: ignore[operator, misc]
            except TypeError as error:
                raise pickle.UnpicklingError(str(error)[:200]) from None
        else:
            raise pickle.UnpicklingError(f"REDUCE needs a tuple of arguments, but got {type(args)}")

    def _make_object(self) -> None:
        cls = self._stack[-2] if len(self._stack) > 1 else None
        if getattr(cls, "_script_fields", None) is not None:
            self._reduce()
            return
        if isinstance(cls, _LibraryClass):
            if self._pop() != ():
                raise pickle.UnpicklingError(f"an object of {cls.name} is made with arguments")
            self._budget.spend(CALL_COST * 4)
            return
        if not isinstance(cls, ScriptClass):
            super()._make_object()
            return
        if self._pop() != ():
            raise pickle.UnpicklingError(f"an object of {cls.name} is made with arguments")
        self._pop()
        self._budget.spend(CALL_COST * 4)
        if cls.kind == "interface":
            raise pickle.UnpicklingError(f"{cls.name} is an interface, which has no objects")
        self._push(RecursiveScriptModule(cls) if cls.kind == "Module" else ScriptObject(cls))

    def _build(self) -> None:
        target = self._stack[-2] if len(self._stack) > 1 else None
        if isinstance(target, _LibraryClass):
            state = self._pop()
            self._stack[-1] = CALLBACKS.quantized("rebuild_object")(target.name, state)
            return
        if not isinstance(target, (RecursiveScriptModule, ScriptObject)):
            super()._build()
            return
        state = self._pop()
        script = target._script
        if "__setstate__" in script.methods:
            if target._attributes or len(self._waiting) > 10_000:
                raise pickle.UnpicklingError(f"the state of an object of {script.name} is set twice")
            self._waiting.append((target, state))
            return
        if type(state) is not dict or not all(type(name) is str for name in state):
            raise pickle.UnpicklingError(f"the state of an object of {script.name} is no dict of attributes")
        self._budget.spend(len(state))
        for name, value in state.items():
            set_attribute(target, name, value)


ProgramUnpickler.handlers = RestrictedUnpickler.handlers | {
    pickle.REDUCE: ProgramUnpickler._reduce,
    pickle.NEWOBJ: ProgramUnpickler._make_object,
    pickle.BUILD: ProgramUnpickler._build,
}


def set_attribute(target: Any, name: str, value: Any) -> None:
    """Set an attribute from the file. Raise UnpicklingError if the class lacks it."""
    script = target._script
    if name.startswith("__") and name.endswith("__"):  # Python or NumPy would call it
        raise pickle.UnpicklingError(f"the class {script.name} has an attribute {name[:100]}")
    if name not in script.types:
        raise pickle.UnpicklingError(f"the class {script.name} has no attribute {name[:100]}")
    if isinstance(target, ScriptObject):
        target._attributes[name] = value
    elif isinstance(value, RecursiveScriptModule):
        target._modules[name] = value
    elif isinstance(value, Tensor) and name in script.listed("parameters"):
        target._parameters[name] = to_parameter(value)
    elif isinstance(value, Tensor) and name in script.listed("buffers"):
        target._buffers[name] = value
    elif name == "training":
        object.__setattr__(target, "training", bool(value))
    elif name != "_is_full_backward_hook":
        target._attributes[name] = value
