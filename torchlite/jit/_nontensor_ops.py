"""TorchScript's operators on values other than tensors, by name: numbers, strings, lists and dictionaries."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ._list_ops import (
    _append_item,
    _bounded_comparison,
    _get_item,
    _insert,
    _is_equal,
    _pop,
    _remove,
    _slice_list,
    _sort,
    contains,
    delete,
    index_of,
    is_equal,
    list_mul,
    safe_hash,
    safe_key,
    set_item,
    sorted_,
    to_dict,
    to_list,
)
from ._number_ops import _REAL, _factorial, _make_float_function, _round, div, power, shift_left, sub, wrap_int64
from ._str_ops import (
    _TEXT,
    _expandtabs,
    _join_texts,
    _make_find,
    _make_padding,
    _replace_text,
    _search_from_right,
    str_format,
    str_percent,
    to_str,
)
from ._value_limits import _check_length, count_visited


def add(a: Any, b: Any, alpha: Any = 1) -> Any:
    """Add numbers, or concatenate strings or lists."""
    if isinstance(a, (list, str, tuple)):
        _check_length(len(a) + len(b))
        return a + b
    return wrap_int64(a + (b if alpha == 1 else wrap_int64(b * alpha)))


def mul(a: Any, b: Any) -> Any:
    """Multiply numbers, or repeat a list or string."""
    if isinstance(a, (list, str, tuple)) or isinstance(b, (list, str, tuple)):
        items, times = (a, b) if isinstance(a, (list, str, tuple)) else (b, a)
        return list_mul(items, times)
    return wrap_int64(a * b)


def remainder(a: Any, b: Any) -> Any:
    """Return the remainder of numbers, or a formatted string."""
    return str_percent(a, b) if isinstance(a, str) else a % b


def _equal(a: Any, b: Any) -> bool:
    return is_equal(a, b) if isinstance(a, (list, dict, tuple)) else a == b


def _not_equal(a: Any, b: Any) -> bool:
    return not _equal(a, b)


# Operators by name, for calls without tensors or with a list, dictionary or string first.
NONTENSOR_OPS: dict[str, Callable] = {
    **{name: getattr(str, name) for name in _TEXT},
    **{name: _make_float_function(function) for name, function in _REAL.items()},
    **{name: _search_from_right(name) for name in ("rsplit", "rpartition")},
    **{name: _make_padding(name) for name in ("center", "ljust", "rjust", "zfill")},
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "floordiv": lambda a, b: wrap_int64(a // b),
    "floor_divide": lambda a, b: wrap_int64(a // b),
    "remainder": remainder,
    "pow": power,
    "neg": lambda a: wrap_int64(-a),
    "add_": lambda a, b, alpha=1: _list_extend(a, b),
    "rsub": lambda a, b, alpha=1: wrap_int64(b - a * alpha),
    "abs": abs,
    "eq": _equal,
    "ne": _not_equal,
    **{name: _bounded_comparison(getattr(operator, name)) for name in ("lt", "le", "gt", "ge")},
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "bitwise_not": operator.invert,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "__lshift__": shift_left,
    "__rshift__": lambda a, b: a >> min(b, 64),
    "__not__": operator.not_,
    "logical_not": operator.not_,
    "__range_length": lambda low, high, step: len(range(low, high, step)),
    "__derive_index": lambda index, start, step: wrap_int64(start + index * step),
    "__is__": operator.is_,
    "__isnot__": operator.is_not,
    "__contains__": contains,
    "__getitem__": lambda items, key: items[safe_key(key)],
    "_set_item": set_item,
    "Delete": delete,
    "append": _append_item,
    "extend": lambda items, more: _list_extend(items, more) and None,
    "insert": _insert,
    "pop": _pop,
    "remove": _remove,
    "reverse": lambda items: items.reverse(),
    "sort": _sort,
    "index": lambda items, item, *rest: (
        index_of(items, item) if items.__class__ is list else _make_find("index")(items, item, *rest)
    ),
    "rindex": _make_find("rindex"),
    "find": _make_find("find"),
    "rfind": _make_find("rfind"),
    "replace": _replace_text,
    "count": lambda items, item, *rest: (
        count_visited(items) and sum(_is_equal(one, item) for one in items)
        if items.__class__ is list
        else items.count(item, *rest)
    ),
    "clear": lambda items: items.clear(),
    "copy": lambda items: items.copy(),
    "len": len,
    "list": to_list,
    "dict": to_dict,
    "keys": lambda items: list(items.keys()),
    "values": lambda items: list(items.values()),
    "items": lambda items: list(items.items()),
    "get": _get_item,
    "setdefault": lambda items, key, value: items.setdefault(safe_key(key), value),
    "popitem": lambda items: items.popitem(),
    "update": lambda items, more: items.update(to_dict(more)),
    "slice": _slice_list,
    "format": str_format,
    "percentFormat": str_percent,
    "join": _join_texts,
    "split": lambda value, separator=None, most=-1: value.split(separator, most),
    "expandtabs": _expandtabs,
    "ord": ord,
    "chr": chr,
    "hex": hex,
    "oct": oct,
    "bin": bin,
    "hash": safe_hash,
    "floor": lambda a: wrap_int64(math.floor(a)),
    "ceil": lambda a: wrap_int64(math.ceil(a)),
    "round": _round,
    "trunc": lambda a: wrap_int64(math.trunc(a)),
    "sum": lambda items, *rest: wrap_int64(sum(items)),
    "any": lambda items: any(items),
    "all": lambda items: all(items),
    "max": _bounded_comparison(max),
    "min": _bounded_comparison(min),
    "sorted": sorted_,
    "divmod": divmod,
    "factorial": _factorial,
    "gcd": math.gcd,
    "modf": math.modf,
    "frexp": math.frexp,
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
    "mathremainder": math.remainder,
    "str": to_str,
    "equal": _equal,
    "polar": lambda a, b: complex(a * math.cos(b), a * math.sin(b)),
    "real": lambda a: a.real,
    "imag": lambda a: a.imag,
    "angle": lambda a: math.atan2(a.imag, a.real),
    "conj": lambda a: a.conjugate(),
    "Int": lambda a: wrap_int64(int(a)),
    "Float": lambda a: float(a),
    "Bool": lambda a: bool(a),
    "item": lambda a: a,
}


def _list_extend(a: Any, b: Any) -> Any:
    """`a += b`: extend a list."""
    if a.__class__ is list:
        _check_length(len(a) + len(b))
        a.extend(b)
        return a
    return add(a, b)
