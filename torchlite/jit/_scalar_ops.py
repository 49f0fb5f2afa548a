"""TorchScript's operators on numbers, strings, lists and dictionaries.

Integers wrap to 64 bits as in PyTorch, and the size of repeated lists and strings is bounded.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

from .._dispatch.call import Tensor

_MAX_LENGTH = 1 << 21  # maximum items or characters of a derived list or string
_MAX_REPEATED_LENGTH = 1 << 19  # maximum for results sized by a number alone: `*`, padding, ranges


# Maximum visits (items and characters) of `str`, `==`, `hash`, sorting and similar in shared structures; additional
# cost of a container or tensor; maximum depth.
VISITS, _OF_CONTAINER, _DEEPEST = 1 << 24, 32, 200
_LEAF_TYPES = frozenset((int, float, bool, complex, type(None)))
_MAX_PRINTED_ELEMENTS = 1 << 13  # visits; printing a tensor costs about as much


def count_visited(*values: Any, tensor: int = 256, most: int = VISITS) -> int:
    """Return the size of values, shared ones counted at each occurrence. Raise RuntimeError if too large: a list that
    contains a list twice, nested, grows exponentially.

    tensor: count per tensor; 0 also ignores strings. most: limit for shared structures; trees may be larger.
    """
    spent, depth, level = 0, 0, [value for value in values if value.__class__ not in _LEAF_TYPES]
    while level:
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                spent += len(value) if tensor else 0
            elif isinstance(value, Tensor):
                spent += tensor
            elif isinstance(value, (list, tuple, dict)):
                spent += _OF_CONTAINER + len(value)
                parts = value if not isinstance(value, dict) else (*value, *value.values())
                if not _LEAF_TYPES.issuperset(map(type, parts)):
                    below += [part for part in parts if part.__class__ not in _LEAF_TYPES]
            if spent > most:
                if 4 * len({*map(id, level)}) <= len(level) or 4 * len({*map(id, below)}) <= len(below) > 4:
                    raise RuntimeError(f"a value holds others in so many places that {spent} would be visited")
                most = 2 * spent
        level, depth = below, depth + 1
        if depth > _DEEPEST:
            raise RuntimeError(f"a value is nested more than {_DEEPEST} deep")
    return spent


def wrap_int64(value: Any) -> Any:
    """Wrap an integer to 64 bits; return other values unchanged."""
    if value.__class__ is int and not -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        return ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000
    return value


def add(a: Any, b: Any, alpha: Any = 1) -> Any:
    """Add numbers, or concatenate strings or lists."""
    if isinstance(a, (list, str, tuple)):
        _check_length(len(a) + len(b))
        return a + b
    return wrap_int64(a + (b if alpha == 1 else wrap_int64(b * alpha)))


def _check_length(length: int) -> None:
    """Raise RuntimeError if a list or string would be too long."""
    if length > _MAX_LENGTH:
        raise RuntimeError(f"a list or text of {length} items would be too long")


def sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    """Subtract numbers."""
    return wrap_int64(a - (b if alpha == 1 else wrap_int64(b * alpha)))


def mul(a: Any, b: Any) -> Any:
    """Multiply numbers, or repeat a list or string."""
    if isinstance(a, (list, str, tuple)) or isinstance(b, (list, str, tuple)):
        items, times = (a, b) if isinstance(a, (list, str, tuple)) else (b, a)
        return list_mul(items, times)
    return wrap_int64(a * b)


def list_mul(items: Any, times: Any) -> Any:
    """Repeat a list or string. Raise RuntimeError if too long."""
    if times > 1 and len(items) * times > _MAX_REPEATED_LENGTH:
        raise RuntimeError(f"a list or text of {len(items)} items cannot be repeated {times} times")
    return items * times


def div(a: Any, b: Any, rounding_mode: Any = None) -> Any:
    """Divide numbers (true division)."""
    if rounding_mode == "floor":
        return float(a // b) if isinstance(a, float) or isinstance(b, float) else a // b
    if rounding_mode == "trunc":
        return math.trunc(a / b)
    if not isinstance(a, complex) and not isinstance(b, complex) and b == 0 and isinstance(b, float):
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def power(a: Any, b: Any) -> Any:
    """Return a power as float, as in PyTorch."""
    if isinstance(a, complex) or isinstance(b, complex):
        return a**b
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def remainder(a: Any, b: Any) -> Any:
    """Return the remainder of numbers, or a formatted string."""
    return str_percent(a, b) if isinstance(a, str) else a % b


def safe_hash(value: Any) -> int:
    """Return a hash independent of addresses. Raise RuntimeError for values that hash by identity."""
    if value is None:
        return 0
    if value.__class__ is tuple:
        count_visited(value)
        return _safe_hash(value)
    if value.__class__ in (int, float, bool, complex, str):
        return hash(value)
    raise RuntimeError(f"unhashable type: '{value.__class__.__name__}'")


def _safe_hash(value: Any) -> int:
    return hash(tuple(map(_safe_hash, value))) if value.__class__ is tuple else safe_hash(value)


def shift_left(a: int, b: int) -> int:
    """Shift left in 64 bits."""
    return wrap_int64(a << b) if 0 <= b < 64 else 0


def _float_function(function: Callable) -> Callable:
    """Return a float function that gives NaN or infinity where Python raises."""

    def run(*args: Any) -> Any:
        try:
            return function(*args)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if function in (math.log, math.log2, math.log10) and args[0] == 0 else math.nan

    return run


# -- strings -------------------------------------------------------------------------------------


def format_value(value: Any) -> str:
    """Format a value as TorchScript prints it. Raise RuntimeError if that would take too long."""
    if value.__class__ is not str:
        count_visited(value, tensor=_MAX_PRINTED_ELEMENTS)
    return _format_value(value)


def _format_value(value: Any) -> str:
    kind = value.__class__
    if kind is float:
        return (
            f"{int(value)}."
            if math.isfinite(value) and value == int(value) and abs(value) < 1e15
            else _format_tensor(value)
        )
    if kind is str:
        return value
    if kind is list:
        return "[" + ", ".join(map(_format_value, value)) + "]"
    if kind is tuple:
        return "(" + ", ".join(map(_format_value, value)) + (",)" if len(value) == 1 else ")")
    if kind is dict:
        return "{" + ", ".join(f"{_format_value(k)}: {_format_value(v)}" for k, v in value.items()) + "}"
    # Other objects print by Python, which would show addresses.
    return f"<{kind.__name__}>" if kind.__repr__ is object.__repr__ or callable(value) else str(value)


def _format_tensor(value: float) -> str:
    return format(value, ".6g")


def to_str(value: Any) -> str:
    """`str(value)` of a program."""
    return value if value.__class__ is str else str(value) if value.__class__ is float else format_value(value)


def str_format(pattern: str, *values: Any) -> str:
    """`"{} {}".format(a, b)`: supports empty braces only."""
    parts = pattern.split("{}")
    if len(values) < len(parts) - 1:
        raise RuntimeError("Too few arguments for format string: " + pattern[:200])
    if len(values) >= len(parts):
        raise RuntimeError("Too many arguments for format string: " + pattern[:200])
    count_visited(values, tensor=_MAX_PRINTED_ELEMENTS)
    out = [parts[0]]
    for value, part in zip(values, parts[1:], strict=True):
        out += (_format_value(value), part)
    return "".join(out)


_PERCENT = re.compile(r"%(.?)", re.DOTALL)


def str_percent(pattern: str, *values: Any) -> str:
    """`"%d" % value`, with plain conversions only."""
    count_visited(values, tensor=_MAX_PRINTED_ELEMENTS)
    given = iter(values[0] if len(values) == 1 and values[0].__class__ is tuple else values)

    def one(match: Any) -> str:
        letter = match[1]
        if letter == "%":
            return "%"
        value: Any = next(given, given)
        if value is given:
            raise RuntimeError("Too few arguments for format string: " + pattern[:200])
        if letter in ("d", "i"):
            return str(int(value))
        if letter in ("f", "F", "e", "E", "g", "G"):
            return format(float(value), "." + "6" + letter)
        if letter in ("x", "X"):
            return format(int(value), letter)
        if letter == "c":
            return value if isinstance(value, str) else chr(value)
        if letter == "s":
            return _format_value(value)
        raise RuntimeError(f"The specifier %{letter} is not supported in TorchScript format strings")

    out = _PERCENT.sub(one, pattern)
    if next(given, given) is not given:
        raise RuntimeError("Too many arguments for format string: " + pattern[:200])
    return out


def _padding(name: str) -> Callable:
    method = getattr(str, name)

    def pad(value: str, width: int, *fill: str) -> str:
        if width > _MAX_REPEATED_LENGTH:
            raise RuntimeError(f"text cannot be {width} letters wide")
        return method(value, width, *fill)

    return pad


def _replace(value: str, old: str, new: str, count: int = -1) -> str:
    found = value.count(old)
    _check_length(len(value) + found * max(0, len(new) - len(old)))
    return value.replace(old, new, count)


def _find(name: str) -> Callable:
    method = getattr(str, name)

    def find(value: str, part: str, start: int = 0, end: int = -1) -> int:
        if name[0] == "r":
            _check_search(value, part)
        return method(value, part, start, len(value) if end == -1 else end)

    return find


def _check_search(value: str, part: Any) -> None:
    """Raise RuntimeError if a reverse search, quadratic in the worst case, would take too long."""
    if part.__class__ is str and len(value) * len(part) > VISITS << 4:
        raise RuntimeError(f"text of {len(part)} letters cannot be searched for in {len(value)} from the right")


def _search_from_right(name: str) -> Callable:
    method = getattr(str, name)

    def run(value: str, separator: Any = None, *rest: Any) -> Any:
        _check_search(value, separator)
        return method(value, separator, *rest)

    return run


def _join(separator: str, parts: list) -> str:
    _check_length(len(separator) * len(parts) + sum(map(len, parts)))
    return separator.join(parts)


def _expandtabs(value: str, size: int = 8) -> str:
    _check_length(max(0, value.count("\t") * size))
    if size > _MAX_REPEATED_LENGTH:
        raise RuntimeError(f"text cannot be {size} letters wide")
    return value.expandtabs(size)


# -- lists and dictionaries ------------------------------------------------------------------------


def is_equal(a: Any, b: Any) -> bool:
    """True if two values are equal, tensors in lists by value. Raise RuntimeError if that would take too long."""
    if isinstance(a, (list, tuple, dict)):
        count_visited(a)
    return _is_equal(a, b)


def _is_equal(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_is_equal(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b) if getattr(a, "shape", ()) == getattr(b, "shape", ()) == () else bool((a == b).all())


def contains(items: Any, item: Any) -> bool:
    """True if a list contains an item, a dictionary a key, or a string a substring."""
    if items.__class__ is list or items.__class__ is tuple:
        count_visited(items)
        return any(_is_equal(x, item) for x in items)
    return safe_key(item) in items


def safe_key(key: Any) -> Any:
    """Return a hashable key. Raise RuntimeError for a tuple that is too large."""
    if isinstance(key, tuple):
        count_visited(key)
    return key


def _append(items: list, item: Any) -> list:
    items.append(item)
    return items


def _insert(items: list, place: int, item: Any) -> None:
    items.insert(place, item)


def _remove(items: list, item: Any) -> None:
    del items[index_of(items, item)]


def index_of(items: list, item: Any) -> int:
    """Return the first index of an item. Raise ValueError if there is none."""
    count_visited(items)
    for place, one in enumerate(items):
        if _is_equal(one, item):
            return place
    raise ValueError(f"'{format_value(item)[:100]}' is not in list")


def _sort(items: list, reverse: bool = False) -> None:
    count_visited(items)
    items.sort(reverse=reverse)


def sorted_(items: Any, reverse: bool = False) -> list:
    """Return a list's items sorted."""
    found = to_list(items)
    count_visited(found)
    return sorted(found, reverse=reverse)


def _bounded_comparison(function: Callable) -> Callable:
    """Return a comparison or selection that first bounds the size of its arguments."""

    def run(*values: Any) -> Any:
        if any(isinstance(value, (list, tuple)) for value in values):
            count_visited(*values)
        return function(*values)

    return run


def _slice(items: Any, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return items[start : None if end == 0x7FFFFFFFFFFFFFFF else end : step]


def set_item(items: Any, key: Any, value: Any) -> None:
    """Set `items[key] = value`."""
    items[safe_key(key)] = value


def delete(items: Any, key: Any) -> None:
    """Delete `items[key]`."""
    del items[safe_key(key)]


def _pop(items: Any, *args: Any) -> Any:
    return items.pop(*map(safe_key, args))


def _get(items: dict, key: Any, default: Any = None) -> Any:
    return items.get(safe_key(key), default)


def to_dict(items: Any = (), *rest: Any, **named: Any) -> dict:
    """Return a dictionary from pairs or a dictionary, and keywords."""
    if items.__class__ is not dict:
        items = [(safe_key(key), value) for key, value in items]
    return {**dict(items), **named}


def _length(items: range) -> int:
    """Return the length of a range, which may be 2**63 or more, beyond `len`."""
    return max(0, -(-(items.stop - items.start) // items.step))


def to_list(items: Any = ()) -> list:
    """Return a list of a list, string or range. Raise RuntimeError if too long."""
    if items.__class__ is range and _length(items) > _MAX_REPEATED_LENGTH:
        raise RuntimeError(f"a list of {_length(items)} numbers would be too long")
    return list(items)


def _round(value: Any, digits: Any = None) -> Any:
    return float(round(value)) if digits is None else round(value, max(-400, min(400, digits)))


def _factorial(n: int) -> int:
    if not 0 <= n <= 20:
        raise ValueError("factorial() is of 0 to 20: its result has 64 bits")
    return math.factorial(n)


def _equal(a: Any, b: Any) -> bool:
    return is_equal(a, b) if isinstance(a, (list, dict, tuple)) else a == b


def _not_equal(a: Any, b: Any) -> bool:
    return not _equal(a, b)


_TEXT = (
    "capitalize isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper "
    "lower upper title swapcase casefold strip lstrip rstrip splitlines partition startswith endswith"
).split()
_REAL: dict[str, Callable] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": math.atan2,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "erf": math.erf,
    "erfc": math.erfc,
    "gamma": math.gamma,
    "lgamma": math.lgamma,
    "fmod": math.fmod,
    "copysign": math.copysign,
    "fabs": math.fabs,
    "degrees": math.degrees,
    "radians": math.radians,
    "ldexp": lambda x, n: math.ldexp(x, max(-5000, min(5000, n))),
}

# Operators by name, for calls without tensors or with a list, dictionary or string first.
SCALARS: dict[str, Callable] = {
    **{name: getattr(str, name) for name in _TEXT},
    **{name: _float_function(function) for name, function in _REAL.items()},
    **{name: _search_from_right(name) for name in ("rsplit", "rpartition")},
    **{name: _padding(name) for name in ("center", "ljust", "rjust", "zfill")},
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
    "append": _append,
    "extend": lambda items, more: _list_extend(items, more) and None,
    "insert": _insert,
    "pop": _pop,
    "remove": _remove,
    "reverse": lambda items: items.reverse(),
    "sort": _sort,
    "index": lambda items, item, *rest: (
        index_of(items, item) if items.__class__ is list else _find("index")(items, item, *rest)
    ),
    "rindex": _find("rindex"),
    "find": _find("find"),
    "rfind": _find("rfind"),
    "replace": _replace,
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
    "get": _get,
    "setdefault": lambda items, key, value: items.setdefault(safe_key(key), value),
    "popitem": lambda items: items.popitem(),
    "update": lambda items, more: items.update(to_dict(more)),
    "slice": _slice,
    "format": str_format,
    "percentFormat": str_percent,
    "join": _join,
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
