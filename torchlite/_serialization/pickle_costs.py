"""Cost accounting of unpickling, against the budget of a file.

Hashing can cost much more than the size of the pickle: the hash of a tuple visits all nested values, without a depth
limit, and shared values repeatedly. So the cost of keys is computed before hashing. Copies are the reverse case: a set
of a list that the file refers to many times.
"""

from __future__ import annotations

import collections
import copyreg
import pickle
import sys
import time
import types
from typing import Any

from .._tensor import Parameter, Tensor
from .._types.devices import device
from .._types.layouts import Size
from . import pytorch_names
from .resource_budget import MAX_DEPTH, Budget, BudgetExceeded

CALL_COST = 40  # for the object created; the shortest call of a pickle that `save` wrote takes four bytes
TENSOR_COST = 250  # about fifty bytes of pickle
_SMALL = 1 << 60  # hash(n) == n below it
_KEYS = 64  # small integer keys between two clock reads
_MOST_VISITS = 1 << 62
_SEARCHES = 3  # of an OrderedDict for each key added
_NAME = 8  # steps of an attribute lookup in a class
_LEAF_TYPES = frozenset((str, bytes, int, float, bool, complex, type(None)))  # values without parts
_ENTRY = 100  # bytes of an entry of a table
_KEY = 4  # bytes that a key of a file has at least


def short_repr(value: Any) -> str:
    """Format a value for an error message: short, and without the items of containers, which may be deep."""
    if value is None or isinstance(value, (bool, float)):
        return repr(value)
    if type(value) is int:
        return repr(value) if abs(value) < 1 << 128 else f"an integer of {value.bit_length()} bits"
    if type(value) in (str, bytes):
        return repr(value) if len(value) <= 100 else f"{value[:100]!r}... ({len(value)} long)"
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return str(value)
    return f"{type(value)} of length {len(value)}" if type(value) in (tuple, list, dict, set) else str(type(value))


class Meter:
    """Charges the tables and calls of one pickle to its file's budget, by counts and by CPU time.

    A file can contain keys with colliding hashes, for example, so that each lookup visits all entries. The thread's CPU
    time between `start` and `tick` covers costs that cannot be counted in advance.
    """

    __slots__ = ("_keys", "_last", "budget")

    def __init__(self, budget: Budget):
        self.budget = budget
        self._keys = 0
        self.start()

    def start(self) -> None:
        """Start the measurement of CPU time."""
        self._last = time.thread_time_ns()

    def tick(self) -> None:
        """Charge the CPU time since the start or the last tick."""
        now = time.thread_time_ns()
        self.budget.pass_time(now - self._last)
        self._last = now

    def check_key(self, key: Any) -> None:
        """Charge for the hash of a key of a dict or set before it is computed, and for the time since the last
        charge.
        """
        kind = type(key)
        if kind is str or kind is bytes or key is None:
            return
        if kind is not int or not -_SMALL < key < _SMALL:
            self.budget.spend(bound_visits(key)[0])
            self.tick()
            return
        self._keys += 1
        if self._keys % _KEYS == 0:
            self.tick()

    def check_arguments(self, values: tuple) -> int:
        """Charge for the arguments of a user-defined class or function. It may copy each value and the strings within
        it, and visit all nested values. Returns the number of bytes charged.
        """
        visits, texts = bound_visits(values)
        if visits > self.budget.work:
            raise BudgetExceeded("an argument holds the same values too many times")
        size = sum(map(sys.getsizeof, values)) + texts
        self.budget.take(size)
        return size

    def fill(self, table: Any, keys: Any, again: int = 0) -> Any:
        """Put keys into a set, or into a dict without values. `again` is the number of later lookups of each key.
        Returns the table.
        """
        self.tick()
        left = self.budget.time
        add = table.add if type(table) is set else lambda key: table.setdefault(key)
        for key in keys:
            if type(key) is not str:
                self.check_key(key)
            add(key)
        self.tick()
        self.budget.pass_time(again * (left - self.budget.time))
        return table


def bound_visits(value: Any) -> tuple[int, int]:
    """Return an upper bound of the values that `hash`, `==` or `repr` visit, with shared values counted repeatedly, and
    the number of characters and bytes of the strings in its containers.

    >>> from torchlite._serialization.pickle_costs import bound_visits
    >>> pair = (1, "two")
    >>> bound_visits((pair, pair))
    (7, 3)
    """
    visits: dict[int, int] = {}  # of finished containers, by identity; 0 of those in progress
    under_way: list[tuple[int, Any, int]] = []
    counts: list[int] = []
    texts = 0

    def visit(value: Any, depth: int) -> None:
        nonlocal texts
        if depth > MAX_DEPTH:
            raise BudgetExceeded(f"a key or an argument is a tuple nested more than {MAX_DEPTH} deep")
        parts = _iterate_hashed_values(value)
        kinds = set(map(type, parts))
        containers = [] if kinds <= _LEAF_TYPES else [part for part in parts if type(part) not in _LEAF_TYPES]
        count = 1 + len(parts) - len(containers)
        if int in kinds:
            count += sum(part.bit_length() >> 9 for part in parts if type(part) is int)
        if str in kinds or bytes in kinds:
            texts += sum(len(part) for part in parts if type(part) is str or type(part) is bytes)
        if isinstance(value, int):
            count += value.bit_length() >> 9
        elif isinstance(value, (str, bytes, bytearray)):
            texts += len(value)
        visits[id(value)] = 0
        under_way.append((id(value), iter(containers), depth))
        counts.append(count)

    visit(value, 1)
    while True:
        name, containers, depth = under_way[-1]
        for part in containers:
            known = visits.get(id(part))
            if known is None:
                # The hash of nested tuples has no depth limit.
                visit(part, depth + 1 if isinstance(part, (tuple, frozenset)) else 0)
                break
            counts[-1] += known
        else:
            under_way.pop()
            visits[name] = count = min(counts.pop(), _MOST_VISITS)
            if not counts:
                return count, texts
            counts[-1] += count


def _iterate_hashed_values(value: Any) -> Any:
    """Return the values that a hash or a comparison visits: items of a container, named tuples included, and attributes
    of an object of a user-allowed class, such as a frozen dataclass.
    """
    if isinstance(value, (tuple, frozenset, list, set)):
        return value
    if isinstance(value, dict):
        return (*value, *value.values())
    cls = type(value)
    if cls.__hash__ is object.__hash__ or cls in _LEAF_TYPES or issubclass(cls, Tensor):
        return ()
    slots = copyreg._slotnames(cls)  # type: ignore[attr-defined]
    return (*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots))


def index_of_keys(keys: Any) -> dict[Any, int]:
    """Return the index of each key of a list from a file; the last of equal keys wins. BudgetExceeded if too many
    hashes of the keys collide.

    >>> from torchlite._serialization.pickle_costs import index_of_keys
    >>> index_of_keys(["a", "b", "a"])
    {'a': 2, 'b': 1}
    """
    Meter(Budget(_KEY * len(keys))).fill({}, keys)
    return {key: place for place, key in enumerate(keys)}


def _make_argument_error(what: str, args: tuple) -> pickle.UnpicklingError:
    got = ", ".join(map(short_repr, args[:4])) + (", ..." if len(args) > 4 else "")
    return pickle.UnpicklingError(f"{what}, but got ({got})")


def _charge_copy(meter: Meter, items: Any) -> None:
    """Charge for a table with the items of another, which a file may refer to many times."""
    meter.budget.spend(len(items))
    meter.budget.take(_ENTRY * len(items))


def check_tables(meter: Meter, cls: Any, args: tuple) -> None:
    """Check the arguments of a user-defined dict or set subclass: lists of keys or pairs, and tables."""
    for items in args:
        if isinstance(items, (list, tuple, set, frozenset, dict)):
            _charge_copy(meter, items)
            if isinstance(items, (list, tuple)) and issubclass(cls, dict):
                items = [pair[0] for pair in items if isinstance(pair, (list, tuple)) and len(pair) == 2]
            meter.fill({}, items, _SEARCHES)


def _charge_ordered_dict(meter: Meter, args: tuple) -> None:
    if not args:
        return
    pairs = args[0]
    if len(args) > 1 or type(pairs) not in (list, tuple, dict, collections.OrderedDict):
        raise _make_argument_error("OrderedDict takes a list of pairs", args)
    _charge_copy(meter, pairs)
    if type(pairs) in (list, tuple):
        if not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in pairs):
            raise _make_argument_error("OrderedDict takes a list of pairs", args)
        pairs = [pair[0] for pair in pairs]
    meter.fill({}, pairs, _SEARCHES)


def _charge_counter(meter: Meter, args: tuple) -> None:
    if not args:
        return
    if len(args) > 1 or type(args[0]) is not dict:
        raise _make_argument_error("Counter takes a dict", args)
    _charge_copy(meter, args[0])
    meter.fill({}, args[0], _SEARCHES)


def _charge_set(meter: Meter, args: tuple) -> None:
    if not args:
        return
    if len(args) > 1 or type(args[0]) not in (list, tuple, set, frozenset):
        raise _make_argument_error("set takes a list", args)
    _charge_copy(meter, args[0])
    meter.fill(set(), args[0], _SEARCHES)


def _check_size_call(meter: Meter, args: tuple) -> None:
    if args and (len(args) > 1 or type(args[0]) not in (tuple, list, Size) or any(type(n) is not int for n in args[0])):
        raise _make_argument_error("torch.Size takes a tuple of integers", args)
    if args:
        meter.budget.spend(len(args[0]))
        meter.budget.take(8 * len(args[0]))


def _check_complex_call(meter: Meter, args: tuple) -> None:
    if len(args) > 2 or any(type(x) not in (float, int) for x in args):
        raise _make_argument_error("complex takes two numbers", args)


def _check_text_call(meter: Meter, args: tuple) -> None:
    if not 0 <= len(args) <= 2 or any(type(x) not in (str, bytes, bytearray) for x in args):
        raise _make_argument_error("bytes are made of text", args)
    meter.budget.spend(sum(map(len, args)))


def _check_device_call(meter: Meter, args: tuple) -> None:
    if (
        not 1 <= len(args) <= 2
        or type(args[0]) not in (str, int)
        or any(type(x) is not int and x is not None for x in args[1:])
        or type(args[0]) is str
        and len(args[0]) > 100
    ):
        raise _make_argument_error("torch.device takes a name and an index", args)


def _check_parameter_call(meter: Meter, args: tuple) -> None:
    if args and not isinstance(args[0], Tensor) or any(type(x) is not bool for x in args[1:]) or len(args) > 2:
        raise _make_argument_error("Parameter takes a tensor and whether it wants a gradient", args)
    meter.budget.spend(TENSOR_COST)


def _check_layout_call(meter: Meter, args: tuple) -> None:
    if len(args) != 1 or type(args[0]) is not str:
        raise _make_argument_error("a layout is named by text", args)


def _rebuild_tensor(meter: Meter, args: tuple) -> None:
    """A tensor's size and strides are walked; a conjugate or negative bit costs nothing."""
    steps = TENSOR_COST
    for values in args:
        if type(values) is tuple:
            steps += len(values)
    meter.budget.spend(steps)


def _from_type(meter: Meter, args: tuple) -> None:
    if len(args) != 4 or type(args[2]) is not tuple:
        raise _make_argument_error("_rebuild_from_type_v2 takes a function, a class, its arguments and a state", args)
    check_call(meter, args[0], args[2])
    check_state(meter, args[1], args[3])


def _with_state(meter: Meter, args: tuple) -> None:
    _rebuild_tensor(meter, args)
    if len(args) != 4:
        raise _make_argument_error(
            "a parameter with a state takes a tensor, whether it wants a gradient, hooks and a state", args
        )
    check_state(meter, Parameter, args[3])


def check_call(meter: Meter, function: Any, args: tuple) -> int | None:
    """Check the arguments of a function that a pickle calls. Returns the number of bytes charged for a copy, or None if
    the function's result is charged.
    """
    check = CHECKS.get(id(function))
    if check is not None:
        check(meter, args)
        return None
    paid = meter.check_arguments(args)
    if isinstance(function, type) and issubclass(function, (dict, set, frozenset)):
        check_tables(meter, function, args)
    return paid


def check_state(meter: Meter, cls: Any, state: Any) -> None:
    """Check the attributes and slots set on a tensor subclass. A class with `__setstate__` gets the complete state."""
    if getattr(cls, "__setstate__", None) is not getattr(Tensor, "__setstate__", None):
        meter.check_arguments((state,))
        return
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    for part in parts:
        if isinstance(part, dict):
            charge_attributes(meter, part)
            check_attributes(cls, part)


def charge_attributes(meter: Meter, names: dict) -> None:
    """Charge for the copy of a dict of attributes, and for checks of their names."""
    meter.budget.spend(_NAME * len(names))
    meter.budget.take(sys.getsizeof(names))


def check_attributes(cls: Any, names: Any) -> None:
    """UnpicklingError for an attribute that would hide a method of the object's class, or that Python or NumPy looks
    up: `__array_interface__` refers to memory by address. Torchlite's attributes of tensors are refused, too.
    """
    texts = [name for name in names if isinstance(name, str)]
    hidden = [name for name in texts if callable(getattr(cls, name, None))]
    own = hasattr(cls, "_tl_array") and [name for name in texts if hasattr(Tensor, name)]
    special = [name for name in texts if name.startswith("__")]
    if special:
        raise pickle.UnpicklingError(f"an attribute {special[0][:100]!r} of {cls} has a meaning beyond the file")
    if hidden:
        raise pickle.UnpicklingError(f"an attribute {hidden[0][:100]!r} would hide a method of {cls}")
    if own:
        raise pickle.UnpicklingError(f"an attribute {own[0][:100]!r} would hide what every tensor has by this name")


_REBUILD = {name: function for (_, name), function in pytorch_names.REBUILDERS.items()}
TENSOR_FUNCTIONS = {
    id(function) for name, function in _REBUILD.items() if name not in ("_rebuild_from_type_v2", "_get_layout")
}  # the callables of _rebuild_from_type_v2
# By the identity of a function that a pickle may call: the check of its arguments.
CHECKS = {
    id(collections.OrderedDict): _charge_ordered_dict,
    id(collections.Counter): _charge_counter,
    id(set): _charge_set,
    id(Size): _check_size_call,
    id(complex): _check_complex_call,
    id(device): _check_device_call,
    id(Parameter): _check_parameter_call,
    id(_REBUILD["_get_layout"]): _check_layout_call,
    **dict.fromkeys(TENSOR_FUNCTIONS, _rebuild_tensor),
    id(_REBUILD["_rebuild_from_type_v2"]): _from_type,
    id(_REBUILD["_rebuild_parameter_with_state"]): _with_state,
}


def check_text(function: Any) -> Any:
    """Allow only text as the arguments of a function that may copy it."""
    CHECKS[id(function)] = _check_text_call
    return function
