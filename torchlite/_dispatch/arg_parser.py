"""Argument parsing with PyTorch's signatures, NumPy's argument names, and PyTorch's error messages.

Valid calls take the generated function's own signature. The slow path calls this parser when a call does not bind to
the op's record, or when a kernel raised an error. `signatures.txt` has one line for each public name;
`tools/record_signatures.py` writes it.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from .._settings.backend_flags import FLAGS
from .._types.devices import device
from .._types.dtypes import dtype
from .._types.layouts import layout, memory_format
from .._types.package_name import is_torchlite_object
from .dispatch_state import GLOBALS
from .op_record import ABSENT, EMPTY, NAMESPACES, NUMPY_NAMES, Op
from .signature_table import lines, split_at_commas

RECORD_NAMES = {theirs: ours for ours, names in NUMPY_NAMES.items() for theirs in names}
_TYPE_DISPLAY = {
    "dtype": "torch.dtype", "layout": "torch.layout", "memory_format": "torch.memory_format", "device": "torch.device",
    "generator": "torch.Generator", "storage": "torch.Storage", "ints": "tuple of ints", "floats": "tuple of floats",
    "Tensors": "tuple of Tensors", "Tensor?s": "tuple of Tensors", "Numbers": "tuple of Scalars", "stream": "Stream",
}  # fmt: skip
_has_warned = False


def _is_index(value) -> bool:
    """True if the parser accepts a value as an int."""
    if value.__class__ is int:
        return True
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, GLOBALS["Tensor"]):
        return not value._tl_array.ndim and value.dtype.category == 1 and value._tl_node is None
    return hasattr(value, "__index__") and not isinstance(value, np.ndarray)


def _is_number(value, complex_too: bool = True) -> bool:
    """True if the parser accepts a value as a number."""
    if isinstance(value, GLOBALS["Tensor"]):
        return not value._tl_array.ndim and value._tl_node is None
    if isinstance(value, (complex, np.complexfloating)):
        return complex_too
    return isinstance(value, (int, float, np.generic)) or hasattr(value, "__float__") and not hasattr(value, "shape")


_CHECKS = {
    "Tensor": lambda v: isinstance(v, (GLOBALS["Tensor"], np.ndarray)),
    "Number": _is_number,
    "int": _is_index,
    "float": lambda v: _is_number(v, False),
    "bool": lambda v: isinstance(v, (bool, np.bool_)),
    "str": lambda v: isinstance(v, str),
    "dtype": lambda v: isinstance(v, dtype) or any(v is t for t in (float, int, bool, complex)),
    "layout": lambda v: isinstance(v, layout),
    "memory_format": lambda v: isinstance(v, memory_format),
    "device": lambda v: isinstance(v, (device, str, int)),
}
_ITEMS = {"ints": _is_index, "floats": lambda v: _is_number(v, False), "Numbers": _is_number}


class Argument:
    """One parameter of a signature."""

    __slots__ = ("name", "type", "size", "optional", "nullable", "default", "kwonly")

    def __init__(self, text: str, kwonly: bool):
        head, has_default, self.default = text.partition("=")
        kind, _, self.name = head.rpartition(" ")
        self.nullable = kind.endswith("?") or self.default == "None"
        kind, _, size = kind.removesuffix("?").partition("[")
        self.type, self.size = kind, bool(size)
        self.optional, self.kwonly = bool(has_default), kwonly

    def takes(self, value, numbers: bool) -> bool:
        """True if the parser accepts a value for this argument."""
        if self.type in ("Tensors", "Tensor?s"):
            return isinstance(value, (list, tuple))
        if self.type in _ITEMS:
            item = _ITEMS[self.type]
            if isinstance(value, (list, tuple)):
                return not value or item(value[0])
            return self.size and item(value)
        if self.type == "Tensor" and numbers and _is_number(value):
            return True
        check = _CHECKS.get(self.type)
        return check is None or check(value)

    def __str__(self) -> str:
        return f"{_TYPE_DISPLAY.get(self.type, self.type)} {self.name}{f' = {self.default}' if self.optional else ''}"


def type_name(value) -> str:
    """A value's type as the parser names it."""
    cls = type(value)
    if isinstance(value, (dtype, layout, memory_format, device)):
        return f"torch.{cls.__name__}"
    return (
        cls.__name__ if cls.__module__ == "builtins" or is_torchlite_object(cls) else f"{cls.__module__}.{cls.__name__}"
    )


def accepts_scalars(name: str) -> bool:
    """True if a function of `torch`, or the method of its name, accepts Python numbers in place of all tensors."""
    record = NAMESPACES["torch"].get(name.removesuffix("_"))
    return record is not None and record.accepts_scalars


class Signature:
    """One form of a call."""

    def __init__(self, name: str, text: str):
        self.name = name
        self.deprecated = text.endswith("|deprecated")
        self.arguments: list[Argument] = []
        kwonly = False
        for part in split_at_commas(text.removesuffix("|deprecated")):
            if part == "*":
                kwonly = True
            else:
                self.arguments.append(Argument(part, kwonly))
        self.positional = sum(not a.kwonly for a in self.arguments)
        self.least = sum(not a.optional for a in self.arguments)
        self.numbers = accepts_scalars(name)

    def __str__(self) -> str:
        shown: list[str] = []
        for i, a in enumerate(self.arguments):
            if a.kwonly and (not i or not self.arguments[i - 1].kwonly):
                shown.append("*")
            shown.append(str(a))
        return f"({', '.join(shown)})"

    def accepts_count(self, count: int) -> bool:
        """True if this signature can take that many arguments."""
        return not self.deprecated and self.least <= count <= len(self.arguments)

    def _too_many_arguments_error(self, count: int) -> TypeError:
        least = sum(not a.kwonly and not a.optional for a in self.arguments)
        if least < self.positional:
            takes = f"from {least} to {self.positional} positional arguments"
        else:
            takes = f"{self.positional} positional argument{'s' * (self.positional != 1)}"
        return TypeError(f"{self.name}() takes {takes} but {count} {'was' if count == 1 else 'were'} given")

    def _missing_arguments_error(self, given: int) -> TypeError:
        names = [a.name for a in self.arguments[given:] if not a.optional and not a.kwonly]
        names = names or [a.name for a in self.arguments[given:] if not a.optional]
        plural = "s" if len(names) == 1 else ""
        shown = ", ".join(f'"{name}"' for name in names)
        return TypeError(f"{self.name}() missing {len(names)} required positional argument{plural}: {shown}")

    def _wrong_type_error(self, a: Argument, value, place: int | None) -> TypeError:
        want = f"{_TYPE_DISPLAY.get(a.type, a.type)}"
        where = f"{self.name}(): argument '{a.name}'" + (f" (position {place + 1})" if place is not None else "")
        if isinstance(value, (list, tuple)) and value and a.type in _ITEMS:
            return TypeError(f"{where} must be {want}, but found element of type {type_name(value[0])} at pos 0")
        return TypeError(f"{where} must be {want}, not {type_name(value)}")

    def match(self, args: tuple, kwargs: dict) -> dict[str, Any] | TypeError:
        """The arguments by parameter name, or the error."""
        place_of_ints = self.positional - 1
        several = self.positional == 1 and self.arguments[0].type == "ints"
        if len(args) > self.positional and not several:
            return self._too_many_arguments_error(len(args))
        found: dict[str, Any] = {}
        used: set[str] = set()
        place = 0
        for i, a in enumerate(self.arguments):
            value, at = ABSENT, None
            if place < len(args):
                if a.kwonly:
                    return self._too_many_arguments_error(len(args))
                value, at, place = args[place], place, place + 1
            else:
                for name in (a.name, *NUMPY_NAMES.get(a.name, ())):
                    if name in kwargs:
                        value = kwargs[name]
                        used.add(name)
                        break
            if value is ABSENT or value is None and a.nullable:
                if value is ABSENT and not a.optional:
                    return self._missing_arguments_error(i)
                if value is None:
                    found[a.name] = None
            elif a.takes(value, self.numbers):
                found[a.name] = value
            elif several and at == place_of_ints and all(map(_is_index, args[at:])):
                found[a.name] = args[at:]
                place = len(args)
            else:
                return self._wrong_type_error(a, value, at)
        if place < len(args):
            return self._too_many_arguments_error(len(args))
        for name in kwargs:
            if name not in used:
                known = any(a.name == name for a in self.arguments)
                what = "multiple values for" if known else "an unexpected keyword"
                return TypeError(f"{self.name}() got {what} argument '{name}'")
        return found

    def describe_mismatch(self, args: tuple, kwargs: dict) -> str:
        """The line with marks that PyTorch prints below this signature in an error; empty if the number of arguments
        differs. The star counts as one argument, and types are compared by name, as PyTorch does.
        """
        slots: list[Argument | None] = []
        for a in self.arguments:
            slots += [None, a] if a.kwonly and None not in slots else [a]
        if len(args) + len(kwargs) != len(slots):
            return ""
        rest = {a.name: a for a in slots[len(args) :] if a is not None}
        unknown = [name for name in kwargs if name not in rest]
        if unknown:
            return f"      didn't match because some of the keywords were incorrect: {', '.join(unknown)}\n"
        pairs = [*zip(slots, args, strict=False), *((rest[name], value) for name, value in kwargs.items())]
        shown = [
            name if a is not None and name == _TYPE_DISPLAY.get(a.type, a.type) else f"!{name}!"
            for a, name in ((a, type_name(value)) for a, value in pairs)
        ]
        return f"      didn't match because some of the arguments have invalid types: ({', '.join(shown)})\n"


@functools.cache
def signatures(public: str) -> list[Signature]:
    """The signatures of a public name such as "linalg.qr" or "Tensor.add_"; empty if PyTorch's parser does not parse
    it.
    """
    found = lines().get(public)
    if found is None:
        return []
    space, _, name = public.rpartition(".")
    prefix = f"{space}_" if space in ("linalg", "fft", "special") else ""
    return [Signature(prefix + name, text.strip()) for text in found.split(" | ")]


def match_signature(public: str, args: tuple, kwargs: dict) -> dict[str, Any] | None:
    """Bind a call to the first signature that accepts it; None for a name that PyTorch's parser does not parse.
    TypeError with the parser's message if no signature accepts the call.
    """
    forms = signatures(public)
    if not forms:
        return None
    errors = []
    for form in forms:
        found = form.match(args, kwargs)
        if isinstance(found, dict):
            if form.deprecated:
                _warn_deprecated_form(form, forms)
            return found
        errors.append(found)
    if len(forms) == 1:
        raise errors[0]
    count = len(args) + len(kwargs)
    plausible = [error for form, error in zip(forms, errors, strict=True) if form.accepts_count(count)]
    if len(plausible) == 1:
        raise plausible[0]
    got = ", ".join([*map(type_name, args), *(f"{name}={type_name(value)}" for name, value in kwargs.items())])
    got += ", " if kwargs and not args else ""  # as PyTorch writes it
    shown = [form for form in forms if not form.deprecated]
    listed = "".join(f" * {form}\n{form.describe_mismatch(args, kwargs)}" for form in shown)
    expected = f"one of:\n{listed}" if len(shown) > 1 else str(shown[0])
    raise TypeError(
        f"{forms[0].name}() received an invalid combination of arguments - got ({got}), but expected {expected}"
    )


def _warn_deprecated_form(form: Signature, forms: list[Signature]) -> None:
    """PyTorch's warning of deprecated forms, once in a process."""
    global _has_warned
    if _has_warned and not FLAGS.warn_always:
        return
    _has_warned = True
    better = next(other for other in forms if not other.deprecated)
    warnings.warn(
        f"This overload of {form.name} is deprecated:\n\t{form.name}{form}\nConsider using one of the following "
        f"signatures instead:\n\t{form.name}{better}",
        UserWarning,
        stacklevel=8,
    )


# -- calls of records ------------------------------------------------------------------


def public_name_of(op: Op, function) -> str:
    """The name of a public function with recorded signatures: the record's main one, or that of the method or of the
    function of another namespace that a copy of the function is. Empty without one.
    """
    public = getattr(function, "public", "")
    if public and public in lines():
        return public
    return op.parsed_names[0] if op.parsed_names else ""


def to_record_args(op: Op, function, args: tuple, kwargs: dict, more: tuple) -> tuple[tuple, dict]:
    """Convert a call of an op's function to its record's form. `args` and `kwargs` are the record's arguments, ABSENT
    if not given; `more` are the other arguments, first positional ones, then those by other names of parameters.
    """
    names = tuple(op.argument_names)
    absent = next((i for i, value in enumerate(args) if value is ABSENT), len(args))
    surplus = len(more) - len(names)
    others = {name: value for name, value in zip(names, more[surplus:], strict=True) if value is not None}
    # An argument given by another name leaves its parameter's default in the positional list. From there on, pass all
    # arguments by name.
    renamed = {op.argument_names[name] for name in others}
    places = [i for i, p in enumerate(op.params) if p.name in renamed]
    if places and places[0] < absent and args[places[0]] is op.params[places[0]].default:
        rest = zip(op.params[places[0] :], args[places[0] :], strict=False)
        kwargs = {**{p.name: value for p, value in rest if value is not p.default}, **kwargs}
        args, absent = args[: places[0]], places[0]
    positional = (*args[:absent], *(value for value in more[:surplus] if value is not None))
    keywords = dict(zip([p.name for p in op.params][absent:], args[absent:], strict=False))
    keywords = {name: value for name, value in {**keywords, **kwargs}.items() if value is not ABSENT}
    positional, keywords = _strip_defaults(op, positional, keywords)
    public = public_name_of(op, function)
    keywords |= others
    target, positional, keywords = _split_self(op, public, positional, keywords)
    first, keywords = parse_args(op, public, positional, keywords)
    return (*target, *first), keywords


def parse_args(op: Op, public: str, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Bind a call's arguments to the parameters of an op's record. TypeError with the parser's message for a wrong
    call.
    """
    found = _match_any_form(op, public, args, kwargs)
    if found is None:
        return args, kwargs
    known = [p.name for p in op.params]
    if "input" not in found and public.startswith("Tensor."):
        known = known[1:]
    keywords = {p.name for p in op.params if p.kwonly} | {"out"}
    others = iter([name for name in known if name not in found and name not in keywords])
    if known and known[0] not in found and not public.startswith("Tensor."):
        others = iter([name for name in known if name not in keywords])  # a form of its own: positions count
        named = {name if name in keywords else next(others, name): v for name, v in found.items()}
    else:
        named = {name if name in known or name == "out" else next(others, name): v for name, v in found.items()}
    if strange := named.keys() - {"out", *known}:
        raise NotImplementedError(f"Could not run 'aten::{op.function_name}' with the argument '{min(strange)}'.")
    first = (named.pop(op.params[0].name),) if op.params and op.params[0].name in named else ()
    return first, named


def _match_any_form(op: Op, public: str, args: tuple, kwargs: dict) -> dict[str, Any] | None:
    """`match_signature` with the forms of the public name, then of the op's other names of that kind."""
    try:
        return match_signature(public, args, kwargs)
    except TypeError:
        for name in op.parsed_names:
            alike = name.startswith("Tensor.") == public.startswith("Tensor.")
            if alike and name != public and (found := _try_match(name, args, kwargs)) is not None:
                return found
        raise


def _try_match(public: str, args: tuple, kwargs: dict) -> dict[str, Any] | None:
    """`matched`, with None for a wrong call."""
    try:
        return match_signature(public, args, kwargs)
    except TypeError:
        return None


def parse_in_place_args(op: Op, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Like `parse_args` for the op's in-place method, whose first argument is the tensor."""
    first, named = parse_args(op, f"Tensor.{op.function_name}_", args[1:], kwargs)
    if first:
        raise TypeError(f"{op.function_name}_() got multiple values for argument '{op.params[0].name}'")
    return args[:1], named


def _split_self(op: Op, public: str, args: tuple, kwargs: dict) -> tuple[tuple, tuple, dict]:
    """The tensor whose method is called, which no signature of a method has, and the other arguments."""
    if not public.startswith("Tensor."):
        return (), args, kwargs
    if args or not op.params:
        return args[:1], args[1:], kwargs
    first = op.params[0].name
    return (kwargs[first],) * (first in kwargs), (), {name: v for name, v in kwargs.items() if name != first}


def _strip_defaults(op: Op, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Drop trailing arguments that equal their defaults: the most likely form of the original call."""
    defaults = {p.name: p.default for p in op.params} | {"out": None}
    kwargs = {name: value for name, value in kwargs.items() if not _is_default(value, defaults.get(name, EMPTY))}
    params = [p for p in op.params if not p.kwonly]
    while args and len(args) <= len(params) and _is_default(args[-1], params[len(args) - 1].default):
        args = args[:-1]
    return args, kwargs


def _is_default(value, default) -> bool:
    return value is default or value.__class__ is default.__class__ and value.__class__ is float and value == default


def has_list_among_numbers(op: Op, values) -> bool:
    """True if one of several separate sizes is a list of sizes."""
    sizes = next((v for p, v in zip(op.params, values, strict=True) if p.kind == "varargs" and p.name != "tensors"), ())
    return len(sizes) > 1 and any(isinstance(size, (list, tuple)) for size in sizes)


def parser_error(op: Op, values, function=None) -> TypeError | None:
    """The parser's error for arguments in the order of an op's parameters; None if it accepts them. `function` is the
    public function that was called.
    """
    public = public_name_of(op, function)
    if not public:
        return None
    pairs = list(zip(op.params, values, strict=True))
    args: tuple = tuple(v for p, v in pairs if not p.kwonly)
    args, kwargs = _strip_defaults(op, args, {p.name: v for p, v in pairs if p.kwonly})
    if op.params[-1].kind == "varargs" and has_list_among_numbers(op, values):
        args = (*args[:-1], *args[-1])
    elif any(p.kind == "varargs" for p in op.params):
        return None
    _, args, kwargs = _split_self(op, public, args, kwargs)
    try:
        match_signature(public, args, kwargs)
    except TypeError as error:
        return None if _fits_by_name(op, public, pairs) else error.with_traceback(None)
    return None


def _fits_by_name(op: Op, public: str, pairs: list) -> bool:
    """True if the parser accepts the arguments by their names: an op's parameters may have another order."""
    first, others = pairs[:1], pairs[1:]
    args, kwargs = _strip_defaults(op, tuple(v for _, v in first), {p.name: v for p, v in others})
    _, args, kwargs = _split_self(op, public, args, kwargs)
    try:
        match_signature(public, args, kwargs)
    except TypeError:
        return False
    return True


def call_with_aliases(op: Op, function, given: dict, also: dict):
    """Call `function` with the Array API's keywords `also` renamed to the function's own parameters; None means
    absent.
    """
    defaults = {p.name: p.default for p in op.params}
    given = {name: v for name, v in given.items() if v is not ABSENT and v is not defaults.get(name)}
    given = {RECORD_NAMES.get(name, name) if name not in defaults else name: v for name, v in given.items()}
    also = {name: v for name, v in also.items() if v is not None}
    aliases = op.keyword_aliases
    for name, value in also.items():
        if not callable(meaning := aliases[name]):
            if meaning in given:
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")
            given[meaning] = value
    for p in op.params:
        if p.default is EMPTY and p.name not in given:
            raise TypeError(f'{function.__name__}() missing 1 required positional arguments: "{p.name}"')
        if p.kind == "varargs" and p.name in given and not hasattr(given[p.name], "__iter__"):
            given[p.name] = (given[p.name],)
    for name in also:
        if callable(aliases[name]):
            return aliases[name](function, given, also[name])
    return function(**given)
