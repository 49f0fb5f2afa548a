"""Guards: finds the state that a function can reach besides its arguments, and checks that it is unchanged.

`ReachableState` walks globals, closures and modules by the names that the function's bytecode loads, without running
it. Objects are compared by identity. Tensors become inputs of the captured program. A function that reaches an opaque
object runs eagerly.
"""

from __future__ import annotations

import builtins
import collections
import ctypes
import dataclasses
import dis
import enum
import functools
import inspect
import io
import operator
import re
import struct
import sys
import threading
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import numpy as np

from torchlite._aten import OpNamespace
from torchlite._device.generators import Generator
from torchlite._dispatch import tracing
from torchlite._dispatch.call import Parameter, Tensor
from torchlite._dispatch.inference_calls import InferenceCalls
from torchlite._dispatch.op_record import Op
from torchlite._library.custom_ops import CustomOpDef
from torchlite._library.library_op import DEFINED, LibraryOverload
from torchlite._library.op_overload import OpOverload, OpOverloadPacket
from torchlite._types.devices import device, is_backend_module
from torchlite._types.dtypes import dtype
from torchlite._types.layouts import layout, memory_format
from torchlite.amp.autocast_mode import autocast
from torchlite.amp.grad_scaler import GradScaler
from torchlite.autograd.grad_mode import _DecoratorContextManager
from torchlite.autograd.graph import saved_tensors_hooks
from torchlite.fx import GraphModule
from torchlite.nn.modules import module as modules
from torchlite.nn.modules._module_hooks import _WrappedHook
from torchlite.nn.modules.module import Module
from torchlite.optim.lr_scheduler import LRScheduler
from torchlite.optim.optimizer import Optimizer
from torchlite.utils._pytree_spec import TreeSpec

from .compile_source import define_function
from .exc import NotYet, Unsupported
from .known_modules import ATTRIBUTE_MODULES, COMPUTING_LIBRARIES, JUDGED_AT_CALL

ConstantPair = collections.namedtuple("ConstantPair", "a")
SIMPLE_TYPES = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), dtype, device,
          layout, memory_format)  # fmt: skip
# Immutable objects, except generators, which kernels read.
_CONSTANT_CLASSES = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
    types.GenericAlias, types.UnionType, enum.Enum, np.ufunc, type(np.sum), operator.attrgetter, operator.itemgetter,
    Op, Generator, re.Pattern, type(vars(ConstantPair)["a"]), type(threading.Lock()),
    type(threading.RLock()), dataclasses.Field, TreeSpec, io.TextIOWrapper, io.BufferedWriter, io.BufferedReader,
    np.generic, inspect.Parameter, inspect.Signature,
)  # fmt: skip
_SEQUENCES = (list, deque, set, frozenset)
_CONTEXT_MANAGERS = (_DecoratorContextManager, autocast, saved_tensors_hooks)
_OPTIMIZER_ATTRIBUTES = frozenset(("param_groups", "defaults", "state"))
_CACHE: Any = type(functools.lru_cache(len))
_GRAPH_ATTRIBUTES = frozenset(("_graph", "_code", "_lineno_map", "_prologue_start", "meta"))
_ABSENT = object()
# Hooks shared by all modules.
GLOBAL_MODULE_HOOKS = tuple(
    value for name, value in vars(modules).items() if name.startswith("_global_") and name[-5:] == "hooks"
)
_PLAIN_BASES = (object, Module, *Module.__mro__)
# Names by which code may reach attributes that it does not name.
DYNAMIC_ACCESS = frozenset(("getattr", "setattr", "delattr", "hasattr", "vars", "dir", "__dict__", "__getattr__"))
MODULE_ATTRIBUTES = frozenset(vars(Module())) | frozenset(dir(Module))


def is_known_module(module: Any) -> bool:
    """True if a module (by name) needs no walk."""
    name = canonical_module_name(str(module))
    first = name.partition(".")[0]
    return (first in JUDGED_AT_CALL or is_backend_module(name)) and not name.startswith("torchlite._cli")


def canonical_module_name(module: str) -> str:
    """Return a module's canonical name: torchlite's own modules without the `as_torch` alias."""
    root, dot, rest = module.partition(".")
    if root == "torch" and sys.modules.get("torch") is sys.modules.get("torchlite"):
        return f"torchlite{dot}{rest}"
    return module


class CodeReads:
    """Names that a code object's instructions read, excluding nested code."""

    def __init__(self, code: types.CodeType) -> None:
        self.within = [c for c in code.co_consts if isinstance(c, types.CodeType)]
        self.globals: dict[str, None] = {}
        self.attributes = {c for c in code.co_consts if isinstance(c, str) and c in _OPTIMIZER_ATTRIBUTES}
        self.imports: set[str] = set()
        self.appends: set[str] = set()  # names and attributes whose `append` is read
        self.uses: set[str] = set()  # those that are used in other ways
        self.formats = False  # True if `%` may format a string, which reads unknown attributes
        self.chains: set[tuple[str, ...]] = set()  # a global name and the chain of attributes read from it
        chain: tuple[str, ...] = ()
        instructions = [one for one in dis.get_instructions(code) if one.opname != "CACHE"]
        for instruction, following in zip(instructions, [*instructions[1:], None], strict=True):
            name = instruction.opname
            if name.startswith("LOAD_") and name.endswith(_NAMED):  # whether names get other lists is guarded
                is_append = following is not None and following.argval == "append"
                (self.appends if is_append else self.uses).add(instruction.argval)
            if name in ("LOAD_ATTR", "LOAD_METHOD") and chain:
                chain += (instruction.argval,)
            elif chain:
                self.chains.add(chain)
                chain = ()
            if name.endswith(("_GLOBAL", "_NAME")) and name != "IMPORT_NAME":
                self.globals[instruction.argval] = None
                chain = (instruction.argval,)
            elif name in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "STORE_ATTR"):
                self.attributes.add(instruction.argval)
            elif name == "IMPORT_NAME":
                self.imports.add(instruction.argval)
            elif name.endswith("_MODULO") or name == "BINARY_OP" and instruction.argrepr in ("%", "%="):
                self.formats = True


_NAMED = ("_GLOBAL", "_NAME", "_DEREF", "_ATTR", "_METHOD")  # instructions
_reads = functools.lru_cache(4096)(CodeReads)

_pointer = ctypes.c_void_p.from_address
_ELEMENTS = list.__basicsize__ - 2 * struct.calcsize("P")  # where a list's C struct has the address of its elements


def _read_addresses(objects: list) -> Any:
    """Return the addresses of a list's elements. A comparison takes a fifth of the time of `is` for each."""
    return ctypes.string_at(_pointer(id(objects) + _ELEMENTS).value or 0, len(objects) * struct.calcsize("P"))


def _list_addresses(objects: list) -> Any:
    return [*map(id, objects)]


_probe = [object(), None, object()]
_addresses: Any = _list_addresses
if sys.implementation.name == "cpython" and _ELEMENTS == object.__basicsize__ + struct.calcsize("P"):
    if _read_addresses(_probe) == struct.pack("3P", *map(id, _probe)):
        _addresses = _read_addresses


def _appended_only(codes: Iterable[Any]) -> set[str]:
    """Return the names of which code reads `append` and nothing else."""
    reads = [_reads(code) for code in codes]
    appends, uses = (set().union(*[getattr(one, kind) for one in reads]) for kind in ("appends", "uses"))
    return appends - uses


class IdentityGuard:
    """Guard of a place that holds objects: dictionary, list, closure cell or module namespace."""

    __slots__ = ("read", "place", "keys", "values", "ids")

    def __init__(self, read: Any, place: Any) -> None:
        self.read, self.place = read, place
        self.keys, self.values = read(place)
        self.ids = [*map(id, self.values)]

    def is_same(self) -> bool:
        """True if the contents are identical; equal numbers and strings count as identical."""
        keys, values = self.read(self.place)
        if [*map(id, values)] == self.ids and keys == self.keys:
            return True
        if len(values) != len(self.values) or keys != self.keys:
            return False
        if not all(a is b or is_indistinguishable(a, b) for a, b in zip(values, self.values, strict=True)):
            return False
        self.values, self.ids = values, [*map(id, values)]
        return True

    def replace(self, replaced: Callable[[Any], Any]) -> None:
        """Put `replaced(object)` in the place of the objects."""
        place = self.place
        if self.read is namespace_items and isinstance(place[0], dict):
            place[0].update({name: replaced(place[0][name]) for name in place[1] if name in place[0]})
        elif self.read is _cell_items and place != types.CellType():
            place.cell_contents = replaced(place.cell_contents)
        elif isinstance(place, (list, dict)):
            replaced(place)


def is_indistinguishable(a: Any, b: Any) -> bool:
    """True if two numbers, strings or tuples of them are indistinguishable."""
    if a.__class__ is not b.__class__:
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(is_indistinguishable(x, y) for x, y in zip(a, b, strict=True))
    return isinstance(a, SIMPLE_TYPES) and (repr(a) == repr(b))


def items_of(place: Any) -> tuple[list, list]:
    return [*place.keys()], [*place.values()]


def _items_without(ignored: frozenset[str], place: Any) -> tuple[None, list]:
    """Return the items of a dictionary of attributes but for some."""
    kept = [name for name in place if name not in ignored]
    return None, [*kept, *[place[name] for name in kept]]


def _has_own_attributes(cls: type) -> bool:
    """True if only the program's code knows the attributes of a class that `Module` does not have."""
    return not any(is_known_module(base.__module__) and base not in _PLAIN_BASES for base in cls.__mro__)


def _mapping_items(place: Any) -> tuple[None, list]:
    """Return the items of a dict subclass without calling its methods."""
    return None, [*dict.keys(place), *dict.values(place)]


def elements_of(place: Any) -> tuple[None, list]:
    return None, [*place]


def _size_of(place: Any) -> tuple[int, list]:
    return len(place), []


def _cell_items(place: Any) -> tuple[None, list]:
    try:
        return None, [place.cell_contents]
    except ValueError:
        return None, [_ABSENT]


def _context_items(place: Any) -> tuple[None, list]:
    return None, [place.get(_ABSENT)]


def namespace_items(place: Any) -> tuple[None, list]:
    space, names = place
    found = [space.get(name, _ABSENT) for name in names]
    return None, [
        getattr(builtins, name, _ABSENT) if value is _ABSENT else tracing.unwrap_traced(value)
        for name, value in zip(names, found, strict=True)
    ]


def _check_not_random(module: Any) -> None:
    if module.__name__.startswith("numpy.random"):
        raise Unsupported("it draws numbers of NumPy's")


class ReachableState:
    """State reachable from a function: tensors, places that hold objects, and code.

    ran: the code objects that a call executed, if known; names read by other code are ignored. ignored: attributes of
    the program's objects that the function does not read. keeps_logs: leave out the lists that the code only appends
    to: `logs`.
    """

    def __init__(self, ran: set | None = None, ignored: frozenset[str] = frozenset(), keeps_logs: bool = False) -> None:
        self.keeps_logs = keeps_logs
        self.logs: list[list] = []
        self._named: dict[int, tuple[list, set[str]]] = {}  # lists found by names alone, with these
        self._methods: set[Any] = set()  # code of classes' functions, which may not run
        self._called: set[Any] = set()  # code of the roots and of bound methods
        self.ran, self.ignored = ran, ignored
        self.tensors: dict[int, Any] = {}
        self.held: list[IdentityGuard] = []
        self.empty: list[Any] = []  # containers guarded to stay empty
        self.codes: set[Any] = set()
        self.disabled_codes: dict[Any, Any] = {}  # code of functions excluded from compilation, with the reason
        self.allowed_codes: set[Any] = set()  # code of functions allowed by `allow_in_graph`
        self.constant_codes: set[Any] = set()  # code of functions whose results are assumed constant
        self.spaces: list[tuple[dict, tuple[str, ...]]] = []  # globals, and the names that code reads of them
        self.leaves: dict[int, Any] = {}  # objects compared by identity alone
        self._seen: dict[int, Any] = {}
        self._modules: list[Any] = []  # objects of which only named attributes are followed
        self._libraries: set[str] = set()  # whose ops are followed that the code names
        self._references: list[Any] = []
        self._optimizers: list[Any] = []
        self._attributes: set[str] = set()
        self.asks_for_classes = False  # True if the code may inspect a number's class or value unobserved

    def walk(self, *roots: Any) -> ReachableState:
        """Walk the state from these roots. Raise Unsupported for an opaque object."""
        self._pending = list(roots)
        self._called.update(root.__code__ for root in roots if root.__class__ is types.FunctionType)
        done: set[tuple[int, str]] = set()
        while self._pending:
            while self._pending:
                self._visit_value(self._pending.pop())
            for module in self._modules:
                names = [n for n in self._attributes if n in vars(module) and (id(module), n) not in done]
                done.update((id(module), n) for n in names)
                if names:
                    self._add_identity_guard(namespace_items, (vars(module), tuple(names)))
            self._pending += [
                packet
                for (library, name), packet in DEFINED.items()
                if name in self._attributes
                and (library in self._attributes or library in self._libraries)
                and id(packet) not in self._seen
            ]
            for name in sorted(_OPTIMIZER_ATTRIBUTES & self._attributes):  # attributes of optimizers that programs read
                for optimizer in self._optimizers:
                    if (id(optimizer), name) not in done:
                        done.add((id(optimizer), name))
                        self._pending.append(getattr(optimizer, name))
            if not self._pending:
                self._pending += self._lists_to_visit()
        self.logs = [value for value, _ in self._named.values() if id(value) not in self._seen]
        for reference in self._references:
            if isinstance(reference(), Tensor) and id(reference()) not in self.tensors:
                raise Unsupported("a weak reference to a tensor is read")
        return self

    def _lists_to_visit(self) -> list[list]:
        """Return the lists found by names that the code does more with than to append to them. What methods that may
        not run do is tested when they run (`reads_logs`).
        """
        only = _appended_only(self.codes) | _appended_only(self.codes - (self._methods - self._called))
        is_open = not DYNAMIC_ACCESS.isdisjoint(self.reads())
        return [
            value
            for value, names in self._named.values()
            if id(value) not in self._seen and (is_open or not names <= only)
        ]

    def reads_logs(self, ran: Iterable[Any]) -> bool:
        """True if code that ran does more with `logs` than to append to them."""
        names = set().union(*[names for value, names in self._named.values() if id(value) not in self._seen])
        return any(not names.isdisjoint(_reads(code).uses) for code in ran if code in self.codes)

    def reads(self) -> set[str]:
        """Return the names that the code reads."""
        return self._attributes | {name for _, names in self.spaces for name in names}

    def is_same(self) -> bool:
        """True if all state is as found."""
        return not any(self.empty) and all(held.is_same() for held in self.held)

    def test(self) -> Any:
        """Return a function equivalent to `is_same`, with a fast path for identical objects."""
        space: dict[str, Any] = {"slowly": self.is_same, "addresses": _addresses, "found": [], "names": []}
        space["empty"] = tuple(self.empty)
        tests = ["any(empty)"]
        values: list[str] = []
        keys: list[str] = []
        names: dict[int, tuple[Any, dict]] = {}  # of a module or class, that all code reads
        for i, held in enumerate(self.held):
            place = f"place{i}"
            if held.read is namespace_items:
                own, read = held.place
                names.setdefault(id(own), (own, {}))[1].update(zip(read, held.values, strict=True))
                continue
            space[place] = held.place
            space["found"] += held.values
            if held.read is items_of:
                values.append(f"*{place}.values()")
                keys.append(f"*{place}")
                space["names"] += held.keys
            elif held.read is _size_of:
                keys.append(f"len({place})")
                space["names"].append(len(held.place))
            elif held.read is _cell_items and held.values[0] is not _ABSENT:
                values.append(f"{place}.cell_contents")
            elif held.read is elements_of:
                values.append(f"*{place}")
                keys.append(f"len({place})")
                space["names"].append(len(held.values))
            else:
                space[f"read{i}"] = held.read
                values.append(f"*read{i}({place})[1]")
        for own, found in names.values():
            self._test_names(own, found, space, tests, values)
        lines = [
            "def is_same():",
            "    try:",
            f"        if {' or '.join(tests)}:",
            "            return False",
            f"        same = [{', '.join(keys)}] == names and addresses([{', '.join(values)}]) == wanted",
            "    except (KeyError, ValueError):",  # a name was deleted, or the value of a cell
            "        same = False",
            "    return same or slowly()",
        ]
        space["wanted"] = _addresses(space["found"])
        return define_function("is_same", "\n".join(lines) + "\n", space)

    def _test_names(self, own: Any, found: dict, space: dict, tests: list[str], values: list[str]) -> None:
        """Add a check of names of a module or class that runs in C. Missing names must stay missing, and resolve to
        builtins.
        """
        absent = frozenset(name for name in found if name not in own)
        builtin_names = [name for name in absent if name in vars(builtins)]
        for holder, these in ((own, [name for name in found if name in own]), (vars(builtins), builtin_names)):
            if these:
                get = f"get{len(space)}"
                space[get], space[f"of_{get}"] = operator.itemgetter(*these), holder
                values.append(f"{'*' if len(these) > 1 else ''}{get}(of_{get})")
                space["found"] += [found[name] for name in these]
        if absent:
            place = f"names{len(space)}"
            space[f"absent_{place}"], space[place] = absent, own.keys()
            tests.append(f"not absent_{place}.isdisjoint({place})")

    def _add_identity_guard(self, read: Any, place: Any, modules: bool = True, names: list[str] | None = None) -> None:
        """Hold the contents of a place. names: those by which code gets the last ones of them."""
        held = IdentityGuard(read, place)
        self.held.append(held)
        values = held.values
        if names and self.keeps_logs:
            values, named = values[: -len(names)], values[-len(names) :]
            for name, value in zip(names, named, strict=True):
                if value.__class__ is list:
                    self._named.setdefault(id(value), (value, set()))[1].add(name)
                else:
                    values.append(value)
        self._pending += [
            value for value in values if value is not _ABSENT and (modules or not isinstance(value, types.ModuleType))
        ]

    def _visit_value(self, value: Any) -> None:
        if isinstance(value, SIMPLE_TYPES) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        cls = value.__class__
        if isinstance(value, Tensor):
            if cls is not Tensor and cls is not Parameter:
                raise Unsupported(f"a tensor of the class {cls.__name__} is read")
            self.tensors[id(value)] = value
            meta = value._tl_meta
            if meta is not None and meta.__class__ is not tuple:
                for hooks in (meta.hooks, meta.post_hooks):
                    self._pending += [*hooks.values()] if isinstance(hooks, dict) else [*(hooks or ())]
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif value is sys.modules:  # code asks which modules are loaded
            self.held.append(IdentityGuard(_size_of, value))
        elif cls in (dict, OrderedDict, defaultdict):
            if value:
                self._add_identity_guard(items_of, value)
            else:
                self.empty.append(value)
        elif cls in _SEQUENCES:
            self._add_identity_guard(elements_of, value)
        elif isinstance(value, tuple):
            self._pending.extend([*tuple.__iter__(value)])  # a subclass may have another length
        elif cls is slice:
            self._pending += [value.start, value.stop, value.step]
        elif isinstance(value, types.MethodType):
            self._pending += [value.__self__, value.__func__]
            self._called.add(getattr(value.__func__, "__code__", None))
        elif cls in (staticmethod, classmethod):
            self._pending.append(value.__func__)
        elif cls is property:
            self._pending += [value.fget, value.fset, value.fdel]
        elif cls is weakref.ref:
            self.leaves[id(value)] = value
            self._references.append(value)
            if not isinstance(value(), Tensor):
                self._pending.append(value())
        elif cls is functools.partial:
            self._pending += [value.func, value.args, value.keywords]
        elif isinstance(value, type):
            self._visit_class(value)
        elif isinstance(value, types.ModuleType):
            self._visit_module(value)
        else:
            self._visit_object(value, cls)

    def _visit_function(self, function: Any) -> None:
        original = getattr(function, "_torchdynamo_orig_callable", None)
        if original is not None:
            self._pending.append(original)
        if is_known_module(function.__module__) and original is None:
            # A wrapper of the library may hold user functions.
            for cell in function.__closure__ or ():
                kept = _cell_items(cell)[1][0]
                if isinstance(kept, (types.FunctionType, types.MethodType)) and not is_known_module(kept.__module__):
                    self._pending.append(kept)
            return
        if str(function.__module__).partition(".")[0] in COMPUTING_LIBRARIES:
            self.leaves[id(function)] = function
            return
        if function.__dict__.get("_dynamo_marked_constant"):
            self.constant_codes.add(function.__code__)
            return
        if function.__dict__.get("_torchdynamo_disable"):
            self.disabled_codes[function.__code__] = function.__dict__.get("_torchdynamo_disable_msg")
        if function.__dict__.get("_torchlite_allowed"):
            self.allowed_codes.add(function.__code__)
            return
        if self.ran is not None and function.__code__ not in self.ran and original is None:
            self.leaves[id(function)] = function
            return
            return
        if original is None:
            self.add_code(function.__code__, function.__globals__)
        self._pending += [function.__defaults__, function.__kwdefaults__, function.__dict__]
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._add_identity_guard(_cell_items, cell, names=[name])

    def add_code(self, code: Any, space: dict) -> None:
        """Add the names that a code object and its nested code read of a module."""
        codes = [code]
        for one in codes:  # grows during the loop
            reads = _reads(one)
            codes += [c for c in reads.within if self.ran is None or c in self.ran]
            self._attributes |= reads.attributes
            self.asks_for_classes |= reads.formats or "type" in reads.globals or "__class__" in reads.attributes
            for name in reads.imports:
                if not is_known_module(name):
                    self._follow_import(name, str(space.get("__package__")))
            if reads.globals:
                self.spaces.append((space, tuple(reads.globals)))
                names = list(reads.globals)
                self._add_identity_guard(namespace_items, (space, tuple(names)), modules=False, names=names)
            for name, *attributes in reads.chains:
                self._follow_attributes(space.get(name), attributes)
        self.codes.update(codes)

    def _follow_import(self, name: str, package: str) -> None:
        """Follow an import statement. A module not imported yet is noticed when the statement runs."""
        if self.ran is None:
            raise Unsupported(f"it imports {name}")
        while package:
            self._pending.append(sys.modules.get(f"{package}.{name}" if name else package))
            package = package.rpartition(".")[0]
        self._pending.append(sys.modules.get(name))

    def _follow_attributes(self, value: Any, attributes: list[str]) -> None:
        """Follow a chain of attributes of a module."""
        for name in attributes:
            if not isinstance(value, types.ModuleType) or is_known_module(value.__name__):
                return
            _check_not_random(value)
            self._add_identity_guard(namespace_items, (vars(value), (name,)), modules=False)
            value = vars(value).get(name)
        if isinstance(value, types.ModuleType):
            self._pending.append(value)

    def _visit_class(self, cls: type) -> None:
        for base in cls.__mro__:
            if base is object or is_known_module(base.__module__) or base.__module__ == "builtins":
                continue
            if not base.__flags__ & 1 << 9:  # defined in Python, not in C
                self.leaves[id(base)] = base
                continue
            skipped = ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__slots__",
                       "__static_attributes__", "__firstlineno__", "_op", "_backward_cls")  # fmt: skip
            self._methods.update(one.__code__ for one in vars(base).values() if one.__class__ is types.FunctionType)
            names = tuple(
                name
                for name, value in vars(base).items()
                if name not in skipped
                and not name.startswith(("_abc_", "__dataclass", "__match_args"))
                and not isinstance(value, types.MemberDescriptorType)
            )
            if names:
                self._add_identity_guard(namespace_items, (vars(base), names))

    def _visit_module(self, module: Any) -> None:
        if self.ran is None:  # otherwise only if executed code names it (`_follow_attributes`)
            _check_not_random(module)
        if not is_known_module(module.__name__):
            self._modules.append(module)

    def _visit_grad_scaler(self, scaler: GradScaler) -> None:
        """Follow a GradScaler: the scale tensor is fixed at the first loss, step counts are internal."""
        if scaler.is_enabled() and scaler._scale is None:
            raise NotYet("the scale of a GradScaler comes with the first loss")
        self.leaves[id(scaler)] = scaler
        names = [name for name in vars(scaler) if name != "_per_optimizer_states"]
        self._add_identity_guard(namespace_items, (vars(scaler), tuple(names)))

    def _visit_graph_module(self, module: Any) -> None:
        """Follow a graph module: its code is that of its class, and replaced with the graph."""
        module._generate_waiting_code()
        forward = type(module).forward
        self.codes.add(inspect.unwrap(forward).__code__)
        self._add_identity_guard(namespace_items, (vars(type(module)), ("forward",)), modules=False)
        names = [name for name in vars(module) if name not in _GRAPH_ATTRIBUTES]
        self._add_identity_guard(namespace_items, (vars(module), tuple(names)))

    def _visit_object(self, value: Any, cls: type) -> None:
        if isinstance(value, Optimizer):
            if not is_known_module(cls.__module__):
                raise Unsupported(f"an optimizer of a user-defined class, {cls.__name__}, is read")
            self.leaves[id(value)] = value
            self._optimizers.append(value)
        elif isinstance(value, LRScheduler):
            self.leaves[id(value)] = value
            self._pending.append(value.optimizer)
        elif isinstance(value, GradScaler):
            self._visit_grad_scaler(value)
        elif isinstance(value, _WrappedHook):
            self.leaves[id(value)] = value
            self._pending.append(value.hook)
        elif isinstance(value, InferenceCalls):
            self.leaves[id(value)] = value
            self._pending.append(value.run)
        elif isinstance(value, CustomOpDef):
            self.leaves[id(value)] = value
            self._pending.append(value._op.overload)
        elif isinstance(value, OpOverloadPacket):
            self.leaves[id(value)] = value
            self._pending += value._overloads.values()
        elif isinstance(value, OpOverload):
            self.leaves[id(value)] = value
            if isinstance(value, LibraryOverload):
                self.held.append(IdentityGuard(items_of, value._op.kernels))
                self._pending += value._op.traced_functions()
        elif isinstance(value, OpNamespace):
            self.leaves[id(value)] = value
            self._libraries.add(value.name)
        elif isinstance(value, ContextVar):
            self.leaves[id(value)] = value
            self._add_identity_guard(_context_items, value)
        elif isinstance(value, _CACHE):
            self.leaves[id(value)] = value
            self._pending.append(value.__wrapped__)
        elif getattr(cls, "is_compiled", False):
            self.leaves[id(value)] = value
            self._pending.append(value.function)
        elif (
            isinstance(value, _CONSTANT_CLASSES)
            or getattr(cls, "_tl_is_immutable", False)
            or cls is object
            or cls.__module__ == "typing"
        ):
            self.leaves[id(value)] = value
            if (parts := getattr(cls, "_tl_parts", None)) is not None:
                self._pending += parts(value)
        elif cls.__module__.partition(".")[0] in ATTRIBUTE_MODULES and hasattr(value, "__dict__"):
            self.leaves[id(value)] = value
            self._modules.append(value)
        elif isinstance(value, Module) or (hasattr(value, "__dict__") and cls.__flags__ & 1 << 9):
            if getattr(cls, "__slots__", None):
                raise Unsupported(f"an object of {cls.__name__}, which has slots, is read")
            self.leaves[id(value)] = value
            if isinstance(value, GraphModule):
                self._visit_graph_module(value)
                return
            names = list(value.__dict__)
            if self.ignored and _has_own_attributes(cls):
                names = [name for name in names if name not in self.ignored]
                self._add_identity_guard(functools.partial(_items_without, self.ignored), value.__dict__, names=names)
            else:
                self._add_identity_guard(items_of, value.__dict__, names=names)
            if isinstance(value, dict):
                self._add_identity_guard(_mapping_items, value)
            elif isinstance(value, _SEQUENCES):
                self._add_identity_guard(elements_of, value)
            if not is_known_module(cls.__module__):
                self._visit_class(cls)
            elif not isinstance(value, (Module, _CONTEXT_MANAGERS)):
                raise Unsupported(f"an object of {cls.__module__}.{cls.__name__} is read")
        else:
            raise Unsupported(f"an object of {cls.__module__}.{cls.__name__} is read")
