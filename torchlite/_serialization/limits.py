"""What a pickle spends of its file's budget.

Hashing is where a pickle can ask for much more than it holds: the hash of a tuple visits all that is in it, without a
limit on depth, and twice what is in it twice. So keys are walked here first. Copies are the other way: a set of a list
that the file names again and again.
"""

from __future__ import annotations

import collections
import copyreg
import pickle
import time
import types
from typing import Any

from .._tensor import Parameter, Tensor
from .._tensor.own_names import is_apart
from .._types.devices import device
from .._types.layouts import Size
from . import names
from .budget import Budget

STEPS_OF_A_CALL = 40  # for the object that it makes; the shortest call of a pickle that `save` wrote takes four bytes
STEPS_OF_A_TENSOR = 250  # which takes some fifty bytes
_SMALL = 1 << 60  # integers below it are their own hash
_LARGE = 32  # entries of a table in which searches are measured
_MEASURED = 1 << 22  # entries that searches may visit until they are measured: some 20 ms
_KEYS = 1 << 12  # searches until they are measured
_STEP = 50  # nanoseconds
_PLAIN = frozenset((str, bytes, float, bool, complex, type(None)))  # keys that have no parts
_ENTRY = 100  # bytes of an entry of a table
_KEY = 4  # bytes that a key of a file has at least


def short(value: Any) -> str:
    """A value as an error shows it: never long, and without a look into containers, which may be deep."""
    if value is None or isinstance(value, (bool, float)):
        return repr(value)
    if type(value) is int:
        return repr(value) if abs(value) < 1 << 128 else f"an integer of {value.bit_length()} bits"
    if type(value) in (str, bytes):
        return repr(value) if len(value) <= 100 else f"{value[:100]!r}... ({len(value)} long)"
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return str(value)
    return f"{type(value)} of length {len(value)}" if type(value) in (tuple, list, dict, set) else str(type(value))


class Keys:
    """The keys of one pickle's dicts and sets, whose hashes and searches its budget pays for.

    A file can choose numbers whose hashes meet each other in a table, so that each search visits all entries. Searches
    in large tables are therefore made a second time and measured by the thread's CPU time.
    """

    __slots__ = ("_due", "_put", "budget")

    def __init__(self, budget: Budget):
        self.budget = budget
        self._put: list[tuple[Any, Any]] = []  # keys, and the tables that they were put into since the last measurement
        self._due = 0  # entries that searches for them may visit at most

    def check(self, key: Any, table: Any) -> None:
        """Before `key` is hashed for a dict or set."""
        kind = type(key)
        if kind is str or kind is bytes or key is None:
            return
        steps = 1 if kind is int and -_SMALL < key < _SMALL else self._walk(key)
        count = len(table)
        if count >= _LARGE:
            self._put.append((key, table))
            self._due += count * steps
            if self._due >= _MEASURED or len(self._put) >= _KEYS:
                self._measure()

    def _walk(self, key: Any, what: str = "a key is a tuple nested") -> int:
        """Pay for the hash of a key. Returns its steps, which a comparison takes as well."""
        budget = self.budget
        before = budget.work
        pending, depths = [key], [1]
        while pending:
            value, depth = pending.pop(), depths.pop()
            kind = type(value)
            if kind is int:
                budget.spend(1 + (value.bit_length() >> 9))
            elif parts := _parts(value):
                budget.check_depth(depth, what)
                # Searches of a set for the members of an equal one may meet all of them.
                budget.spend(1 + (len(parts) ** 2 >> 4 if isinstance(value, frozenset) else len(parts)))
                pending.extend(parts)
                depths.extend([depth + 1] * len(parts))
        return 1 + before - budget.work

    def visit(self, values: Any) -> None:
        """Pay for what a class or function of the user's is called with. It may go through all of it, or copy it."""
        sizes = {int: lambda n: n.bit_length() >> 3, str: len, bytes: len, list: lambda x: 8 * len(x)}
        self.budget.take(sum(sizes.get(type(value), lambda _: 0)(value) for value in values))
        self._walk(values, "an argument is nested")

    def _measure(self) -> None:
        """Pay for searches by the time that they take again. Nothing in the loop can start a garbage collection."""
        put, self._put, self._due = self._put, [], 0
        begun = time.thread_time_ns()
        for key, table in put:
            key in table  # noqa: B015
        self.budget.spend((time.thread_time_ns() - begun) // _STEP)

    def fill(self, table: Any, keys: Any) -> Any:
        """Put keys into a set, or into a dict without values. Returns the table."""
        add = table.add if type(table) is set else lambda key: table.setdefault(key)
        for key in keys:
            if type(key) is not str:
                self.check(key, table)
            add(key)
        return table


def _parts(value: Any) -> Any:
    """The values that a hash or a comparison visits: items of a container, named tuples included, and attributes of an
    object of a class that the user allowed, such as a frozen dataclass.
    """
    if isinstance(value, (tuple, frozenset, list, set)):
        return value
    if isinstance(value, dict):
        return (*value, *value.values())
    cls = type(value)
    if cls.__hash__ is object.__hash__ or cls in _PLAIN:
        return ()
    slots = copyreg._slotnames(cls)  # type: ignore[attr-defined]
    return (*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots))


def indexed(keys: Any) -> dict[Any, int]:
    """The place of each key of a list that is a file's: the last one of equal keys. OverBudget where the list is made
    so that searches for its keys meet each other.

    >>> from torchlite._serialization.limits import indexed
    >>> indexed(["a", "b", "a"])
    {'a': 2, 'b': 1}
    """
    Keys(Budget(_KEY * len(keys))).fill({}, keys)
    return {key: place for place, key in enumerate(keys)}


def _wrong(what: str, args: tuple) -> pickle.UnpicklingError:
    got = ", ".join(map(short, args[:4])) + (", ..." if len(args) > 4 else "")
    return pickle.UnpicklingError(f"{what}, but got ({got})")


def _copied(keys: Keys, items: Any) -> None:
    """Pay for a table of other items, which a file may name many times."""
    keys.budget.spend(len(items))
    keys.budget.take(_ENTRY * len(items))


def check_tables(keys: Keys, cls: Any, args: tuple) -> None:
    """Check what a class of the user's that is a dict or a set is called with: lists of keys or pairs, and tables."""
    for items in args:
        if isinstance(items, (list, tuple)) and issubclass(cls, dict):
            items = [pair[0] for pair in items if isinstance(pair, (list, tuple)) and len(pair) == 2]
        if isinstance(items, (list, tuple, set, frozenset, dict)):
            _copied(keys, items)
            keys.fill({}, items)


def _ordered_dict(keys: Keys, args: tuple) -> None:
    if not args:
        return
    pairs = args[0]
    if len(args) > 1 or type(pairs) not in (list, tuple, dict, collections.OrderedDict):
        raise _wrong("OrderedDict takes a list of pairs", args)
    _copied(keys, pairs)
    if type(pairs) in (list, tuple):
        if not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in pairs):
            raise _wrong("OrderedDict takes a list of pairs", args)
        pairs = [pair[0] for pair in pairs]
    keys.fill({}, pairs)


def _counter(keys: Keys, args: tuple) -> None:
    if not args:
        return
    if len(args) > 1 or type(args[0]) is not dict:
        raise _wrong("Counter takes a dict", args)
    _copied(keys, args[0])
    keys.fill({}, args[0])


def _set(keys: Keys, args: tuple) -> None:
    if not args:
        return
    if len(args) > 1 or type(args[0]) not in (list, tuple, set, frozenset):
        raise _wrong("set takes a list", args)
    _copied(keys, args[0])
    keys.fill(set(), args[0])


def _size(keys: Keys, args: tuple) -> None:
    if args and (len(args) > 1 or type(args[0]) not in (tuple, list, Size) or any(type(n) is not int for n in args[0])):
        raise _wrong("torch.Size takes a tuple of integers", args)
    if args:
        keys.budget.spend(len(args[0]))


def _complex(keys: Keys, args: tuple) -> None:
    if len(args) > 2 or any(type(x) not in (float, int) for x in args):
        raise _wrong("complex takes two numbers", args)


def _text(keys: Keys, args: tuple) -> None:
    if not 0 <= len(args) <= 2 or any(type(x) not in (str, bytes, bytearray) for x in args):
        raise _wrong("bytes are made of text", args)
    keys.budget.spend(sum(map(len, args)))


def _device(keys: Keys, args: tuple) -> None:
    if (
        not 1 <= len(args) <= 2
        or type(args[0]) not in (str, int)
        or any(type(x) is not int and x is not None for x in args[1:])
        or type(args[0]) is str
        and len(args[0]) > 100
    ):
        raise _wrong("torch.device takes a name and an index", args)


def _parameter(keys: Keys, args: tuple) -> None:
    if args and not isinstance(args[0], Tensor) or any(type(x) is not bool for x in args[1:]) or len(args) > 2:
        raise _wrong("Parameter takes a tensor and whether it wants a gradient", args)


def _layout(keys: Keys, args: tuple) -> None:
    if len(args) != 1 or type(args[0]) is not str:
        raise _wrong("a layout is named by text", args)


def _rebuilt(keys: Keys, args: tuple) -> None:
    """A tensor's size and strides are walked; a conjugate or negative bit costs nothing."""
    steps = STEPS_OF_A_TENSOR
    for values in args:
        if type(values) is tuple:
            steps += len(values)
    keys.budget.spend(steps)


def _from_type(keys: Keys, args: tuple) -> None:
    if len(args) != 4 or type(args[2]) is not tuple:
        raise _wrong("_rebuild_from_type_v2 takes a function, a class, its arguments and a state", args)
    CHECKS.get(id(args[0]), lambda *_: None)(keys, args[2])
    check_state(keys.budget, args[1], args[3])


def _with_state(keys: Keys, args: tuple) -> None:
    _rebuilt(keys, args)
    if len(args) != 4:
        raise _wrong("a parameter with a state takes a tensor, whether it wants a gradient, hooks and a state", args)
    check_state(keys.budget, Parameter, args[3])


def check_state(budget: Budget, cls: Any, state: Any) -> None:
    """Check what a tensor of a class gets as its attributes and slots, unless the class has its own way."""
    if getattr(cls, "__setstate__", None) is not getattr(Tensor, "__setstate__", None):
        return
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    for part in parts:
        if isinstance(part, dict):
            budget.spend(len(part))
            check_attributes(cls, part)


def check_attributes(cls: Any, names: Any) -> None:
    """UnpicklingError for an attribute that would hide a method of the object's class, or that Python or NumPy would
    ask for: `__array_interface__` names memory by its address. Tensors have attributes of torchlite's, too.
    """
    texts = [name for name in names if isinstance(name, str)]
    hidden = [name for name in texts if callable(getattr(cls, name, None))]
    own = hasattr(cls, "_data") and [name for name in texts if hasattr(Tensor, name) and not is_apart(cls, name)]
    special = [name for name in texts if name.startswith("__")]
    if special:
        raise pickle.UnpicklingError(f"an attribute {special[0][:100]!r} of {cls} has a meaning beyond the file")
    if hidden:
        raise pickle.UnpicklingError(f"an attribute {hidden[0][:100]!r} would hide a method of {cls}")
    if own:
        raise pickle.UnpicklingError(f"an attribute {own[0][:100]!r} would hide what every tensor has by this name")


_REBUILD = {name: function for (_, name), function in names.REBUILDERS.items()}
TENSOR_FUNCTIONS = {
    id(function) for name, function in _REBUILD.items() if name not in ("_rebuild_from_type_v2", "_get_layout")
}  # what _rebuild_from_type_v2 may call
# By the identity of a function that a pickle may call: what is asked of its arguments first.
CHECKS = {
    id(collections.OrderedDict): _ordered_dict, id(collections.Counter): _counter, id(set): _set, id(Size): _size,
    id(complex): _complex, id(device): _device, id(Parameter): _parameter, id(_REBUILD["_get_layout"]): _layout,
    **dict.fromkeys(TENSOR_FUNCTIONS, _rebuilt), id(_REBUILD["_rebuild_from_type_v2"]): _from_type,
    id(_REBUILD["_rebuild_parameter_with_state"]): _with_state,
}  # fmt: skip


def check_text(function: Any) -> Any:
    """Let a function be called with text alone, which it may copy."""
    CHECKS[id(function)] = _text
    return function
