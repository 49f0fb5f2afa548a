"""The unpickler of `weights_only=True`: a stack machine with the data opcodes and a fixed list of globals.

Python's Unpickler with a restricted `find_class` is not safe: its BUILD sets attributes on any object of the stack,
classes and functions included. Here every opcode checks its operands, and no name outside of the list is imported.
"""

from __future__ import annotations

import _compat_pickle
import collections
import enum
import functools
import pickle
import struct
import sys
import types
from typing import Any

from .._tensor import Parameter, Tensor
from .._tensor.pickling import set_state
from .._types.devices import device
from .._types.layouts import Size
from .pickle_costs import (
    CALL_COST,
    TENSOR_FUNCTIONS,
    Meter,
    charge_attributes,
    check_attributes,
    check_call,
    check_state,
    check_text,
    short_repr,
)
from .pytorch_names import REBUILDERS, find_plain_value
from .resource_budget import Budget
from .script_objects import ScriptObjectInFile

_BLOCKED = ("sys", "os", "posix", "nt")
_LONG = 1 << 16
_LONGEST_NAME = 1000
_MARK = object()


@check_text
def _encode_codecs_call(text, encoding="latin1"):
    """Encode text as bytes; protocol 2 pickles bytes as a call of `_codecs.encode`."""
    if encoding not in ("latin1", "latin-1") or not isinstance(text, str):
        raise pickle.UnpicklingError(f"_codecs.encode is allowed for latin1 text only, but got {short_repr(encoding)}")
    return text.encode("latin1")


@check_text
def _make_bytearray(text=b"", encoding="latin1"):
    """bytearray, but not bytearray(size)."""
    return bytearray(_encode_codecs_call(text, encoding) if isinstance(text, str) else memoryview(text))


_CALLABLES: dict[tuple[str, str], Any] = {
    **REBUILDERS,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "Counter"): collections.Counter,
    ("_codecs", "encode"): _encode_codecs_call,
    ("torch", "Size"): Size,
    ("torch", "device"): device,
    ("torch.nn.parameter", "Parameter"): Parameter,
    **{
        (module, name): value
        for module in ("builtins", "__builtin__")
        for name, value in (("set", set), ("complex", complex), ("bytearray", _make_bytearray))
    },
}
# Only arguments of _rebuild_from_type_v2, never called themselves.
_NAMED = {
    ("torch", "Tensor"): Tensor, ("torch._tensor", "Tensor"): Tensor, ("torch", "ScriptObject"): ScriptObjectInFile,
}  # fmt: skip
_CALLABLE_IDS = {id(value) for value in _CALLABLES.values()}
_NEWOBJ_IDS = {
    id(value) for value in (Parameter, collections.OrderedDict, collections.Counter, Size, set, ScriptObjectInFile)
}
_FROM_TYPE = REBUILDERS["torch._tensor", "_rebuild_from_type_v2"]
_SPARSE = REBUILDERS["torch._utils", "_rebuild_sparse_tensor"]
_LIST, _DICT, _SET, _PLACE = 72, 80, 232, 104  # bytes of an object, and of a memo entry
_PLACES = 1024  # memo entries charged in one step
_SET_ITEM = (dict.__setitem__, collections.OrderedDict.__setitem__)
_DICTS = (dict, collections.OrderedDict, collections.Counter)
_user_allowed: list[Any] = []
_library_allowed: list[Any] = []  # of parts of the library that are loaded at their first use


def user_globals() -> list[Any]:
    return _user_allowed


def allow_library_globals(*items: Any) -> None:
    """Allow classes and functions of the library, whatever the user's list has."""
    _library_allowed.extend(items)


def _user_global_names() -> dict[tuple[str, str], Any]:
    out = {}
    for item in (*_library_allowed, *_user_allowed):
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(
                    "Expected tuple of length 2 (global, str of callable full path), but got tuple of length: "
                    f"{len(item)}"
                )
            value, path = item
            if type(path) is not str:
                raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(path)}")
            module, _, name = path.rpartition(".")
            out[module, name] = value
        else:
            out[item.__module__, item.__qualname__] = item
            # A torchlite class that PyTorch has as well is written under PyTorch's name.
            if item.__module__.split(".")[0] == "torchlite":
                out["torch" + item.__module__.removeprefix("torchlite"), item.__qualname__] = item
    return out


def find_global(module: str, name: str, allowed: dict) -> Any:
    """The object of an allowed name. UnpicklingError for every other name."""
    if module.split(".")[0] in _BLOCKED:
        raise pickle.UnpicklingError(
            f"Trying to load unsupported GLOBAL {module}.{name} whose module {module} is blocked."
        )
    for table in (_CALLABLES, _NAMED, allowed):
        if (module, name) in table:
            return table[module, name]
    found = find_plain_value(module, name)
    if found is not None:
        return found
    # Protocol 2 writes the names of Python 2: __builtin__.long is int.
    today = _compat_pickle.NAME_MAPPING.get((module, name)) or (_compat_pickle.IMPORT_MAPPING.get(module, module), name)
    if today in allowed:
        return allowed[today]
    path = f"{module}.{name}"
    raise pickle.UnpicklingError(
        f"Unsupported global: GLOBAL {path} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{path}])` or the `torch.serialization.safe_globals([{path}])` "
        "context manager to allowlist this global if you trust this class/function."
    )


def is_allowed(module: str, name: str) -> bool:
    try:
        find_global(module, name, _user_global_names())
    except pickle.UnpicklingError:
        return False
    return True


class RestrictedUnpickler:
    """Reads one pickle from a stream with `size` more bytes; `persistent_load(id)` returns the storages. `data` is the
    buffer of the stream, if it is in memory; `budget` is the file's, if it has more parts. Raises UnpicklingError
    (EOFError for truncated data), and the errors of the functions that build tensors.
    """

    handlers: dict[bytes, Any] = {}  # the handler of each opcode

    def __init__(
        self, stream, persistent_load, encoding: str = "utf-8", size: int = 0, data: bytes | None = None,
        budget: Budget | None = None,
    ):  # fmt: skip
        self._read_some, self._persistent_load, self._encoding = stream, persistent_load, encoding
        self._allowed = _user_global_names()
        self._allowed_ids = {id(v) for v in self._allowed.values()}
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._budget = Budget(size) if budget is None else budget
        self._meter = Meter(self._budget)
        self._size, self._end = size, stream.tell() + size
        self._data = data
        self.sparse: list[Any] = []  # the sparse tensors created, whose indices are not validated

    def load(self) -> Any:
        handlers, read = self.handlers, self._read_some.read
        try:
            while True:
                code = read(1)
                handler = handlers.get(code)
                if handler is not None:
                    handler(self)
                elif code == pickle.STOP:
                    return self._pop()
                elif code:
                    raise pickle.UnpicklingError(f"Unsupported operand {code[0]}")
                else:
                    raise EOFError("Ran out of input: the pickle ends too early")
        except (MemoryError, RecursionError) as error:
            raise pickle.UnpicklingError(f"the pickle is not well formed: {type(error).__name__}") from None
        except (
            IndexError, KeyError, TypeError, ValueError, AttributeError, struct.error, UnicodeError, OverflowError,
        ) as error:  # fmt: skip
            # The message of a KeyError is its key.
            detail = "" if isinstance(error, KeyError) else f": {str(error)[:500]}"
            raise pickle.UnpicklingError(f"the pickle is not well formed: {type(error).__name__}{detail}") from error

    # -- reading and the stack ---------------------------------------------------

    def _read(self, count: int) -> bytes:
        out = self._read_some.read(count)
        if len(out) != count:
            raise EOFError("Ran out of input: the pickle ends too early")
        return out

    def _read_sized(self, form: str) -> Any:
        """Read bytes with a length prefix. Long ones are a view of the pickle if it is in memory."""
        (count,) = struct.unpack(form, self._read(struct.calcsize(form)))
        if count < 0 or count > 1 << 40:
            raise pickle.UnpicklingError("String is too long")
        if count > _LONG and self._read_some.tell() + count > self._end:  # before a false length claims memory
            raise EOFError("Ran out of input: the pickle ends too early")
        if count > _LONG and self._data is not None:
            start = self._read_some.tell()
            self._read_some.seek(start + count)
            return memoryview(self._data)[start : start + count]
        return self._read(count)

    def _text(self, form: str) -> None:
        self._push(str(self._read_sized(form), "utf-8", "surrogatepass"))

    def _bytes(self, form: str, kind: type = bytes) -> None:
        self._push(kind(self._read_sized(form)))

    def _line(self) -> str:
        line = self._read_some.readline(_LONGEST_NAME)
        if not line.endswith(b"\n"):
            raise pickle.UnpicklingError("pickle data was truncated")
        return line[:-1].decode("utf-8")

    def _push(self, value) -> None:
        self._stack.append(value)

    def _pop(self):
        if self._stack[-1] is _MARK:
            raise pickle.UnpicklingError("unexpected MARK found")
        return self._stack.pop()

    def _top(self):
        if self._stack[-1] is _MARK:
            raise pickle.UnpicklingError("unexpected MARK found")
        return self._stack[-1]

    def _pop_mark(self) -> list:
        stack = self._stack
        for position in range(len(stack) - 1, -1, -1):
            if stack[position] is _MARK:
                items = stack[position + 1 :]
                del stack[position:]
                return items
        raise pickle.UnpicklingError("could not find MARK")

    # -- opcodes that do more than push data -----------------------------------------

    def _global(self, module: str, name: str) -> None:
        self._push(find_global(module, name, self._allowed))

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise pickle.UnpicklingError("STACK_GLOBAL requires str")
        if len(name) + len(module) > _LONGEST_NAME:
            raise pickle.UnpicklingError(f"a name of {len(name) + len(module)} letters")
        self._global(module, name)

    def _reduce(self) -> None:
        args = self._pop()
        function = self._stack[-1]
        if id(function) not in _CALLABLE_IDS and id(function) not in self._allowed_ids:
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {short_repr(function)}")
        if type(args) is not tuple:
            raise pickle.UnpicklingError(f"REDUCE needs a tuple of arguments, but got {type(args)}")
        if function is _FROM_TYPE and (not args or not self._makes_tensors(args[0])):
            raise pickle.UnpicklingError(
                f"Trying to call reduce for unrecognized function {short_repr(args[0] if args else None)} in "
                "_rebuild_from_type_v2"
            )
        self._stack[-1] = found = self._call(function, function, args)
        if function is _SPARSE or function is _FROM_TYPE and args[0] is _SPARSE:
            self.sparse.append(found)

    def _makes_tensors(self, function) -> bool:
        return id(function) in TENSOR_FUNCTIONS or id(function) in self._allowed_ids

    def _check(self, function, args: tuple) -> int | None:
        return check_call(self._meter, function, args)

    def _call(self, function, how, args: tuple) -> Any:
        """Return the result of `how`, a function or class that the pickle may call."""
        self._meter.start()
        paid = self._check(function, args)
        self._budget.spend(CALL_COST)
        found = how(*args)
        self._meter.tick()
        if paid is not None:
            self._budget.take(max(0, sys.getsizeof(found) - paid))
        return found

    def _new(self) -> None:
        args = self._pop()
        cls = self._pop()
        if id(cls) not in _NEWOBJ_IDS and id(cls) not in self._allowed_ids:
            raise pickle.UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{short_repr(cls)}"
            )
        if type(args) is not tuple:
            raise pickle.UnpicklingError(f"NEWOBJ needs a tuple of arguments, but got {type(args)}")
        self._push(self._call(cls, functools.partial(cls.__new__, cls), args))

    def _build(self) -> None:
        state = self._pop()
        self._meter.start()
        self._set_state(self._stack[-1], state)
        self._meter.tick()

    def _set_state(self, target, state) -> None:
        if type(target) in (collections.OrderedDict, collections.Counter):
            if not isinstance(state, dict) or not all(type(k) is str for k in state):
                raise pickle.UnpicklingError("the attributes of an OrderedDict must be a dict")
            charge_attributes(self._meter, state)
            check_attributes(type(target), state)
            target.__dict__.update(state)
        elif isinstance(target, Tensor):
            check_state(self._meter, type(target), state)
            set_state(target, state)
        elif type(target) is ScriptObjectInFile:
            target.__setstate__(state)
        elif isinstance(target, (enum.Enum, type)):
            raise pickle.UnpicklingError(f"the state of {short_repr(target)} belongs to the process, and not to a file")
        elif id(type(target)) in self._allowed_ids:
            self._build_allowed(target, state)
        else:
            raise pickle.UnpicklingError(
                f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{type(target)}"
            )

    def _build_allowed(self, target, state) -> None:
        """BUILD for classes that the user allowed, as pickle does it. The attributes come from the file."""
        cls = type(target)
        set_state = getattr(cls, "__setstate__", None)
        if set_state is not None:
            self._meter.check_arguments((state,))
            set_state(target, state)
            return
        slots = None
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        for part in (state, slots):
            if part is not None and (type(part) is not dict or not all(type(name) is str for name in part)):
                raise pickle.UnpicklingError(f"the attributes of {cls} must be a dict")
            charge_attributes(self._meter, part or {})
        if state:
            target.__dict__.update(state)
        for name, value in (slots or {}).items():
            if type(getattr(cls, name, None)) is not types.MemberDescriptorType:
                raise pickle.UnpicklingError(f"{cls} has no slot {short_repr(name)}")
            setattr(target, name, value)

    def _append(self, items, how: str) -> None:
        if type(self._stack[-1]) is not list:
            raise pickle.UnpicklingError(f"Can only {how} lists, but got {type(self._stack[-1])}")
        self._stack[-1].extend(items)

    def _set_items(self, items, opcode: str) -> None:
        target = self._stack[-1]
        if type(target) not in _DICTS and id(type(target)) not in self._allowed_ids:
            raise pickle.UnpicklingError(
                f"Can only {opcode} for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )
        if len(items) % 2:
            raise pickle.UnpicklingError("odd number of items for SETITEMS")
        meter, own = self._meter, type(target).__setitem__ not in _SET_ITEM
        meter.start()
        for key, value in zip(items[::2], items[1::2], strict=True):
            if own:
                meter.check_arguments((key, value))
                meter.tick()
            elif type(key) is not str:
                meter.check_key(key)
            target[key] = value
        meter.tick()

    def _add_items(self, items) -> None:
        target = self._stack[-1]
        if type(target) is not set:
            raise pickle.UnpicklingError(f"Can only add items to sets, but got {type(target)}")
        self._meter.start()
        self._meter.fill(target, items)

    def _frozen_set(self) -> None:
        items = self._pop_mark()
        self._budget.take(_SET)
        self._meter.start()
        self._push(frozenset(self._meter.fill(set(), items)))

    def _persistent(self) -> None:
        name = self._pop()
        if type(name) is not tuple:
            raise pickle.UnpicklingError(f"persistent_load id must be tuple or int, but got {type(name)}")
        if not name or type(name[0]) not in (str, bytes) or name[0] not in ("storage", b"storage"):
            raise pickle.UnpicklingError(
                f"Only persistent_load of storage is allowed, but got {type(name[0]) if name else 'nothing'}"
            )
        self._push(self._persistent_load(name))

    def _empty_list(self) -> None:
        budget = self._budget
        budget.memory -= _LIST
        if budget.memory < 0:
            budget.take(0)
        self._stack.append([])

    def _empty_dict(self) -> None:
        budget = self._budget
        budget.memory -= _DICT
        if budget.memory < 0:
            budget.take(0)
        self._stack.append({})

    def _empty_set(self) -> None:
        self._budget.take(_SET)
        self._push(set())

    def _memoize(self, index: int) -> None:
        memo = self._memo
        if not len(memo) % _PLACES:
            self._budget.take(_PLACES * _PLACE)
        if (
            index > self._size
        ):  # picklers number the memo in sequence; crafted files may choose indices with colliding hashes
            raise pickle.UnpicklingError(f"Memo index {index} is larger than the pickle")
        memo[index] = self._top()

    def _recall(self, index: int) -> None:
        if index not in self._memo:
            raise pickle.UnpicklingError(f"Memo value not found at index {index}")
        self._push(self._memo[index])

    def _tuple_of_one(self) -> None:
        self._stack[-1] = (self._top(),)

    def _tuple(self, count: int) -> None:
        if len(self._stack) < count or any(item is _MARK for item in self._stack[-count:]):
            raise pickle.UnpicklingError("unexpected MARK found")
        self._stack[-count:] = [tuple(self._stack[-count:])]

    def _binary_string(self, form: str) -> None:
        data = self._read_sized(form)
        self._push(bytes(data) if self._encoding == "bytes" else str(data, self._encoding))


def _read_global_lines(vm: RestrictedUnpickler) -> None:
    module = vm._line()
    vm._global(module, vm._line())


def _make_number_reader(form: str):
    size = struct.calcsize(form)
    return lambda vm: vm._push(struct.unpack(form, vm._read(size))[0])


def _read_long(vm: RestrictedUnpickler, form: str) -> None:
    vm._push(int.from_bytes(vm._read_sized(form), "little", signed=True))


def _make_two_item_tuple(vm: RestrictedUnpickler) -> list:
    value, key = vm._pop(), vm._pop()
    return [key, value]


def _check_protocol(vm: RestrictedUnpickler) -> None:
    version = vm._read(1)[0]
    if not 2 <= version <= 5:
        raise pickle.UnpicklingError(f"unsupported pickle protocol: {version}")


def _make_opcode_table() -> dict[bytes, Any]:
    p, push = pickle, RestrictedUnpickler._push
    vm = RestrictedUnpickler
    table = {
        p.PROTO: _check_protocol,
        p.FRAME: lambda m: m._read(8),
        p.GLOBAL: _read_global_lines,
        p.STACK_GLOBAL: vm._stack_global,
        p.REDUCE: vm._reduce,
        p.NEWOBJ: vm._new,
        p.BUILD: vm._build,
        p.BINPERSID: vm._persistent,
        p.MARK: lambda m: push(m, _MARK),
        p.POP: lambda m: m._stack.pop(),
        p.POP_MARK: lambda m: m._pop_mark(),
        p.DUP: lambda m: push(m, m._top()),
        p.APPEND: lambda m: m._append([m._pop()], "append to"),
        p.APPENDS: lambda m: m._append(m._pop_mark(), "extend"),
        p.SETITEM: lambda m: m._set_items(_make_two_item_tuple(m), "SETITEM"),
        p.SETITEMS: lambda m: m._set_items(m._pop_mark(), "SETITEMS"),
        p.ADDITEMS: lambda m: m._add_items(m._pop_mark()),
        p.EMPTY_TUPLE: lambda m: push(m, ()),
        p.EMPTY_LIST: vm._empty_list,
        p.EMPTY_DICT: vm._empty_dict,
        p.EMPTY_SET: vm._empty_set,
        p.TUPLE: lambda m: push(m, tuple(m._pop_mark())),
        p.TUPLE1: vm._tuple_of_one,
        p.TUPLE2: lambda m: m._tuple(2),
        p.TUPLE3: lambda m: m._tuple(3),
        p.FROZENSET: vm._frozen_set,
        p.NONE: lambda m: push(m, None),
        p.NEWTRUE: lambda m: push(m, True),
        p.NEWFALSE: lambda m: push(m, False),
        p.BININT: _make_number_reader("<i"),
        p.BININT1: _make_number_reader("<B"),
        p.BININT2: _make_number_reader("<H"),
        p.BINFLOAT: _make_number_reader(">d"),
        p.LONG1: lambda m: _read_long(m, "<B"),
        p.LONG4: lambda m: _read_long(m, "<i"),
        p.BINUNICODE: lambda m: m._text("<I"),
        p.BINUNICODE8: lambda m: m._text("<Q"),
        p.SHORT_BINUNICODE: lambda m: m._text("<B"),
        p.BINSTRING: lambda m: m._binary_string("<i"),
        p.SHORT_BINSTRING: lambda m: m._binary_string("<B"),
        p.BINBYTES: lambda m: m._bytes("<I"),
        p.SHORT_BINBYTES: lambda m: m._bytes("<B"),
        p.BINBYTES8: lambda m: m._bytes("<Q"),
        p.BYTEARRAY8: lambda m: m._bytes("<Q", bytearray),
        p.BINGET: lambda m: m._recall(m._read(1)[0]),
        p.LONG_BINGET: lambda m: m._recall(struct.unpack("<I", m._read(4))[0]),
        p.BINPUT: lambda m: m._memoize(m._read(1)[0]),
        p.LONG_BINPUT: lambda m: m._memoize(struct.unpack("<I", m._read(4))[0]),
        p.MEMOIZE: lambda m: m._memoize(len(m._memo)),
    }
    return table


RestrictedUnpickler.handlers = _make_opcode_table()
