"""What a pickle spends of its file's budget.

Hashing is where a pickle can ask for much more than it holds: the hash of a tuple visits all that is in it, without a
limit on depth, and twice what is in it twice. So keys are walked here first. Copies are the other way: a set of a list
that the file names again and again.
"""

from __future__ import annotations

import collections
import pickle
import types
from typing import Any

from .._tensor import Parameter, Tensor
from .._types.devices import device
from .._types.layouts import Size
from . import names
from .budget import Budget, OverBudget

STEPS_OF_A_CALL = 40  # for the object that it makes; the shortest call of a pickle that `save` wrote takes four bytes
STEPS_OF_A_TENSOR = 250  # which takes some fifty bytes
_SAME_HASH = 100
_PROBES, _NEAR = 64, 256  # entries of a table that a search meets in a step, and keys that lie near each other
_SMALL = 1 << 60  # integers below it are their own hash


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
    """The keys of one pickle's dicts and sets, whose hashes and searches its budget pays for."""

    __slots__ = ("_same", "budget")

    def __init__(self, budget: Budget):
        self.budget = budget
        self._same: collections.Counter[tuple[int, int]] = collections.Counter()

    def check(self, key: Any, target: Any) -> None:
        """Before `key` is hashed for a dict or set."""
        kind = type(key)
        if kind is str or kind is bytes or key is None:
            return
        if kind is int and -_SMALL < key < _SMALL:
            self.check_place(key, len(target))
            return
        budget = self.budget
        pending, depths = [key], [1]
        while pending:
            value, depth = pending.pop(), depths.pop()
            kind = type(value)
            if kind is tuple or kind is Size:
                budget.check_depth(depth, "a key is a tuple nested")
                budget.spend(1 + len(value))
                pending.extend(value)
                depths.extend([depth + 1] * len(value))
            elif kind is frozenset:
                budget.spend(1 + len(value))
            elif kind is int:
                budget.spend(1 + (value.bit_length() >> 9))
        self._same[id(target), hash(key)] += 1
        if self._same[id(target), hash(key)] > _SAME_HASH:  # each is compared with all before it
            raise pickle.UnpicklingError(f"more than {_SAME_HASH} keys have the same hash")

    def check_place(self, key: int, count: int) -> None:
        """Before a table of `count` entries is asked for an integer, which is its own hash: one beyond the table's size
        may meet every entry.
        """
        if count >= _PROBES and not 0 <= key <= 4 * count + _NEAR:
            budget = self.budget
            budget.work -= count // _PROBES
            if budget.work < 0:
                raise OverBudget("the file has more integers as keys, far from each other, than it may")

    def check_all(self, keys: Any, target: Any) -> None:
        for key in keys:
            self.check(key, target)


def _wrong(what: str, args: tuple) -> pickle.UnpicklingError:
    got = ", ".join(map(short, args[:4])) + (", ..." if len(args) > 4 else "")
    return pickle.UnpicklingError(f"{what}, but got ({got})")


def _ordered_dict(keys: Keys, args: tuple) -> None:
    if not args:
        return
    pairs = args[0]
    if len(args) > 1 or type(pairs) not in (list, tuple, dict, collections.OrderedDict):
        raise _wrong("OrderedDict takes a list of pairs", args)
    keys.budget.spend(len(pairs))
    if type(pairs) in (list, tuple):
        if not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in pairs):
            raise _wrong("OrderedDict takes a list of pairs", args)
        keys.check_all((pair[0] for pair in pairs), pairs)
    else:
        keys.check_all(pairs, pairs)


def _counter(keys: Keys, args: tuple) -> None:
    if not args:
        return
    if len(args) > 1 or type(args[0]) is not dict:
        raise _wrong("Counter takes a dict", args)
    keys.budget.spend(len(args[0]))
    keys.check_all(args[0], args)


def _set(keys: Keys, args: tuple) -> None:
    if not args:
        return
    if len(args) > 1 or type(args[0]) not in (list, tuple, set, frozenset):
        raise _wrong("set takes a list", args)
    keys.budget.spend(len(args[0]))
    keys.check_all(args[0], args)


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
    keys.budget.spend(STEPS_OF_A_TENSOR)
    for values in args:
        if type(values) is tuple:
            keys.budget.spend(len(values))


def _from_type(keys: Keys, args: tuple) -> None:
    if len(args) != 4 or type(args[2]) is not tuple:
        raise _wrong("_rebuild_from_type_v2 takes a function, a class, its arguments and a state", args)
    CHECKS.get(id(args[0]), lambda *_: None)(keys, args[2])


_REBUILD = {name: function for (_, name), function in names.REBUILDERS.items()}
TENSOR_FUNCTIONS = {
    id(function) for name, function in _REBUILD.items() if name not in ("_rebuild_from_type_v2", "_get_layout")
}  # what _rebuild_from_type_v2 may call
# By the identity of a function that a pickle may call: what is asked of its arguments first.
CHECKS = {
    id(collections.OrderedDict): _ordered_dict, id(collections.Counter): _counter, id(set): _set, id(Size): _size,
    id(complex): _complex, id(device): _device, id(Parameter): _parameter, id(_REBUILD["_get_layout"]): _layout,
    id(_REBUILD["_rebuild_from_type_v2"]): _from_type, **dict.fromkeys(TENSOR_FUNCTIONS, _rebuilt),
}  # fmt: skip


def check_text(function: Any) -> Any:
    """Let a function be called with text alone, which it may copy."""
    CHECKS[id(function)] = _text
    return function
