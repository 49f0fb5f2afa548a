"""Inline caches: each operator call site of a program caches the overload chosen for its argument classes.

Literals are converted once. A call costs one comparison of classes and one call. Generated functions contain numbered
arguments and literals only, and no program text.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from .._types.devices import device
from .._types.python_source import compile_function, compile_source, identifier
from ._builtin_ops import TENSORS, BuiltinOperator, CallPlan, VariadicCallPlan
from ._dtype_codes import code_to_dtype
from ._non_literal_argument import PLACEHOLDER, Placeholder
from ._runtime import SCRIPTED, call_method, method_of

# Argument of a call site: placeholder, list of items, or literal.
Item = Any

_BINARY: dict[str, Callable] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "matmul": operator.matmul,
    "rsub": lambda x, other: other - x,
    "add_": operator.iadd,
    "mul_": operator.imul,
    "sub_": operator.isub,
    "gt": operator.gt,
    "lt": operator.lt,
    "ge": operator.ge,
    "le": operator.le,
}
_NUMBERS = (int, float, bool, complex)
_REAL = (*TENSORS, int, float)
# defaults of `to`: non_blocking, copy, memory_format
_AS_EVER: tuple[list, ...] = ([], [False, False], [False, False, None])


def make_call_site(name: str, op: Any, items: list[Item], keywords: list[tuple[str, Item]], method: bool) -> Callable:
    """Return a function of the non-literal arguments of a call site, in order.

    op: the operator. method: the first argument may be an object with a method of that name.
    """
    number = sum(_placeholder_arguments(item) for item in items) + sum(
        _placeholder_arguments(item) for _, item in keywords
    )
    known: dict[Any, Callable] = {}

    def miss(given: tuple) -> Callable:
        key = tuple(
            [v.__class__ if v.__class__ not in _LISTED else (v.__class__, frozenset(map(type, v))) for v in given]
        )
        run = known.get(key)
        if run is not None:
            return run
        values = iter(given)
        args = tuple([_substitute_placeholders(item, values) for item in items])
        kwargs = {key: _substitute_placeholders(item, values) for key, item in keywords}
        if method and args[0].__class__ in SCRIPTED:
            run = _fill_arguments(functools.partial(_call_operator, name), items, keywords)
        else:
            run = _bind_plan(op if op is not None else method_of(args[0], name), name, args, kwargs, items, keywords)
        if not any(v.__class__ is dict for v in given):
            known[key] = run
        return run

    return _make_plan_cache_factory(number)(miss) if number <= _MAX_CACHED_PLANS else lambda *given: miss(given)(*given)


def _placeholder_arguments(item: Item) -> int:
    return sum(map(_placeholder_arguments, item)) if item.__class__ is list else int(item is PLACEHOLDER)


def _substitute_placeholders(item: Item, values: Iterator) -> Any:
    """Return an argument with values for its placeholders."""
    if item.__class__ is list:
        return [_substitute_placeholders(one, values) for one in item]
    return next(values) if item is PLACEHOLDER else item


def _call_operator(name: str, obj: Any, *args: Any, **kwargs: Any) -> Any:
    return call_method(obj, name, *args, **kwargs)


_MAX_CACHED_PLANS = 8  # above this number of arguments, do not cache
_LISTED = frozenset((list, tuple))
_UNSTABLE = frozenset((list, tuple, dict))  # classes that do not determine the overload


def _make_cached_plan(miss: Callable) -> Callable:
    """Return a function without arguments that caches its plan: zero-argument case of `_make_plan_cache_factory`."""
    run = None

    def run_cached() -> Any:
        nonlocal run
        if run is None:
            run = miss(())
        return run()

    return run_cached


@functools.cache
def _make_plan_cache_factory(number: int) -> Callable:
    """Return a factory of functions with this number of arguments that cache the choice for the last classes."""
    if not number:
        return _make_cached_plan
    given = ", ".join(f"a{i}" for i in range(number))
    kinds = ", ".join(f"k{i}" for i in range(number))
    classes = ", ".join(f"a{i}.__class__" for i in range(number))
    text = f"""def make(miss):
  run = None
  {kinds.replace(", ", " = ")} = Hole
  def place({given}):
    nonlocal run, {kinds}
    if {" and ".join(f"a{i}.__class__ is k{i}" for i in range(number))}:
      return run({given})
    found = miss(({given},))
    if unstable.isdisjoint(({classes},)):
      run = found
      {kinds} = {classes}
    return found({given})
  return place"""
    space = {"__builtins__": {}, "Hole": Placeholder, "unstable": _UNSTABLE}
    return compile_source(text, f"<TorchScript: call of {number} arguments>", space)["make"]


def _bind_plan(op: Any, name: str, args: tuple, kwargs: dict, items: list[Item], keywords: list) -> Callable:
    """Return the function of a call site for given non-literal arguments."""
    if not isinstance(op, BuiltinOperator):
        return _fill_arguments(op, items, keywords)
    quick = _find_fast_call(name, args, kwargs, items, keywords)
    if quick is not None:
        return quick
    found = op.find_implementation(args, kwargs)
    if isinstance(found, VariadicCallPlan):
        items, found = found.gathered(items), found.plan
    return (
        _compile_plan(found, items, keywords, kwargs)
        if isinstance(found, CallPlan)
        else _fill_arguments(found, items, keywords)
    )


def _find_fast_call(name: str, args: tuple, kwargs: dict, items: list[Item], keywords: list) -> Callable | None:
    """Return a direct Python operator for tensors, None for other calls."""
    if not args or items[0] is not PLACEHOLDER:
        return None
    is_tensor = args[0].__class__ in TENSORS
    if name in _BINARY and len(args) > 1 and args[1].__class__ in _REAL:
        if not is_tensor and (args[0].__class__ not in _REAL or args[1].__class__ not in TENSORS or name[-1] == "_"):
            return None
        scale = [*items[2:], *(value for _, value in keywords)]
        if scale not in ([], [1]) or any(key != "alpha" for key, _ in keywords):
            return None
        return _BINARY[name] if items[1] is PLACEHOLDER else _find_fast_scalar_call(_BINARY[name], args[1])
    if not is_tensor or keywords:
        return None
    if name == "index" and items[1:] == [[PLACEHOLDER]] and args[1][0].__class__ in TENSORS:
        return operator.getitem
    values = items[1:]
    if name == "to" and len(values) > 1 and args[1].__class__ is device and values[0] is PLACEHOLDER:
        return _make_move(code_to_dtype(values[1])) if values[1].__class__ is int and values[2:] in _AS_EVER else None
    if any(map(_placeholder_arguments, values)):
        return None
    if name == "size" and len(values) == 1 and values[0].__class__ is int:
        return _make_size_getter(values[0])
    if name == "to" and values and values[0].__class__ is int and values[1:] in _AS_EVER:
        return operator.methodcaller("to", code_to_dtype(values[0]))
    if name in ("select", "slice") and values and all(v.__class__ is int or v is None for v in values):
        return _make_constant_item_getter(name, values)
    return None


def _find_fast_scalar_call(run: Callable, number: Any) -> Callable:
    return lambda x: run(x, number)


def _make_move(dtype: Any) -> Callable:
    return lambda x, where: x.to(where, dtype)


def _make_size_getter(dim: int) -> Callable:
    return lambda x: x.shape[dim]


def _make_constant_item_getter(name: str, values: list) -> Callable | None:
    """Return `x[...]` with a constant index."""
    if values[0] is None or abs(values[0]) > 20:
        return None
    part = _part_as_index(name, values)
    if part is None:
        return None
    dim = values[0]
    if dim == 0:
        return operator.itemgetter(part)
    index = (*[_FULL_SLICE] * dim, part) if dim >= 0 else (Ellipsis, part, *[_FULL_SLICE] * (-dim - 1))
    return operator.itemgetter(index)


def _part_as_index(name: str, values: list) -> int | slice | None:
    """Return the index of a select or slice, None if an index cannot express it."""
    if name == "select":
        return values[1] if len(values) == 2 else None
    start, end, step = [*values[1:], *(None, None, 1)[len(values) - 1 :]]
    if step is None or step < 1:
        return None
    return slice(start, None if end == 0x7FFFFFFFFFFFFFFF else end, None if step == 1 else step)


Part = tuple[str, list]  # operator, and its arguments after the tensor: dimension, position
_PARTS = {"unsqueeze": 1, "select": 2, "slice": 4}  # number of arguments after the tensor
_FULL_SLICE = slice(None)


def find_item_getter(name: str, items: list[Item], keywords: list) -> Part | None:
    """Return the indexing of a call site whose only non-literal argument is a tensor, None for others."""
    values = items[1:]
    if _PARTS.get(name) != len(values) or keywords or items[0] is not PLACEHOLDER:
        return None
    plain = all(v.__class__ is int or v is None for v in values) and values[0] in range(20)
    return (name, values) if plain and (name == "unsqueeze" or _part_as_index(name, values) is not None) else None


def make_item_site(parts: list[Part], find: Callable[[str], BuiltinOperator]) -> Callable | None:
    """Return a site that combines chained indexing, None if a dimension is cut twice."""
    index: list[Any] = [_FULL_SLICE] * 32
    left = list(range(32))  # index positions whose dimensions still exist
    for name, values in parts:
        if values[0] >= len(left):
            return None
        place = left[values[0]]
        if name == "unsqueeze":
            index.insert(place, None)
            left = [at + (at >= place) for at in left]
            left.insert(values[0], place)
        elif index[place] is not _FULL_SLICE:
            return None
        else:
            index[place] = _part_as_index(name, values)
            if name == "select":
                left.remove(place)
    while index[-1] is _FULL_SLICE:
        index.pop()
    take = operator.itemgetter(tuple(index))

    def one_by_one(x: Any) -> Any:
        for name, values in parts:
            x = find(name)(x, *values)
        return x

    return _make_plan_cache_factory(1)(lambda given: take if given[0].__class__ in TENSORS else one_by_one)


class _CallSource:
    """Source of a call's arguments: numbered arguments and literals. keeps: each call needs fresh lists."""

    def __init__(self, keeps: bool = False) -> None:
        self.keeps = keeps
        self.parts: list[str] = []
        self.values: dict[str, Any] = {}
        self.number = 0

    def _literal_expression(self, value: Any) -> str:
        name = f"l{len(self.values)}"
        self.values[name] = value
        return name

    def _item_expression(self, item: Item) -> str:
        if item is PLACEHOLDER:
            self.number += 1
            return f"a{self.number - 1}"
        if item.__class__ is list and (self.keeps or _placeholder_arguments(item)):
            return f"[{', '.join(map(self._item_expression, item))}]"
        return self._literal_expression(item)

    def add(self, item: Item, convert: Any = None, key: str | None = None) -> None:
        """Add an argument with an optional conversion."""
        if not _placeholder_arguments(item) and not (self.keeps and item.__class__ is list):
            text = self._literal_expression(item if convert is None else convert(item))
        else:
            inner = self._item_expression(item)
            text = inner if convert is None else f"{self._literal_expression(convert)}({inner})"
        self.parts.append(text if key is None else f"{identifier(key)}={text}")

    def call(self, run: Callable) -> Callable:
        """Return the function of the arguments that calls `run`."""
        if self.parts == [f"a{i}" for i in range(self.number)]:
            return run
        return _make_function(", ".join(self.parts), self.number, tuple(self.values))(run, *self.values.values())


def _compile_plan(plan: CallPlan, items: list[Item], keywords: list, kwargs: dict) -> Callable:
    """Return a call of an overload with literals converted in advance."""
    text, byname, start = _CallSource(), {}, sum(map(_placeholder_arguments, items))
    for key, item in keywords:
        byname[key] = item, start
        start += _placeholder_arguments(item)
        default = plan.defaults.get(key)
        if (
            _placeholder_arguments(item)
            and kwargs[key].__class__ is default.__class__
            and default.__class__ in _NUMBERS
        ):
            return _fill_arguments(plan.call, items, keywords)  # defaults are detected at call time
    for place, item in enumerate(items):
        if place >= plan.count:
            name = plan.names[place]
            text.add(item, plan.code(name), name)
        elif plan.scaled and place == len(items) - 1:
            if item is PLACEHOLDER:
                return _fill_arguments(plan.call, items, keywords)
            if item != 1:
                text.add(item, plan.converts[place])
        else:
            text.add(item, plan.converts[place])
    named = len(items) > plan.count
    byname = {key: found for key, found in byname.items() if not plan.is_default(key, kwargs[key])}
    last = max((place for place, name in enumerate(plan.names[: plan.count]) if name in byname), default=-1)
    for place in range(len(items), last + 1 if plan.by_position else 0):
        name = plan.names[place]
        if name in byname:
            item, text.number = byname.pop(name)
            text.add(item, plan.named.get(name) or plan.code(name))
        elif plan.places[name].has_default:
            text.add(plan.places[name].default_value)
        else:
            return _fill_arguments(plan.call, items, keywords)
    for key, (item, text.number) in byname.items():
        named = named or key in plan.names[: plan.count]
        text.add(item, plan.named.get(key) or plan.code(key), key)
    text.number = start
    return text.call(plan.target(named))


def _fill_arguments(run: Callable, items: list[Item], keywords: list) -> Callable:
    """Return a call with literals filled in."""
    text = _CallSource(keeps=True)
    for item in items:
        text.add(item)
    for key, item in keywords:
        text.add(item, None, key)
    return text.call(run)


@functools.lru_cache(512)
def _make_function(call_text: str, holes: int, literals: tuple[str, ...]) -> Callable:
    """Return a factory of functions that call `run` with numbered arguments and literals."""
    given = ", ".join(f"a{i}" for i in range(holes))
    text = f"def make({', '.join(['run', *literals])}):\n  return lambda {given}: run({call_text})\n"
    return compile_function("make", text, f"<TorchScript: run({call_text[:200]})>", {"__builtins__": {}})
