"""Parser of function schemas: `name.overload(Tensor x, float s=2.0, *, Tensor(a!) out) -> (Tensor, Tensor[])`."""

from __future__ import annotations

import collections.abc
import inspect
import itertools
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .._dispatch import call
from .._types.devices import device
from .._types.dtypes import dtype
from .._types.layouts import layout, memory_format

_NUMBERS = (int, float, bool, complex)
# Types to which other numbers are converted: the conversion, and the types of Python that it takes.
_CONVERSIONS: dict[str, tuple[Callable, tuple]] = {
    "int": (int, ()), "SymInt": (int, ()), "float": (float, (bool,)), "bool": (bool, (float, complex)),
}  # fmt: skip


def _parse_integer(value: Any) -> bool:
    return isinstance(value, int) or (
        isinstance(value, call.Tensor) and not value._tl_array.ndim and value.dtype.category < 2
    )


# Type checks by base type name.
_TYPES: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda v: isinstance(v, call.Tensor),
    "int": _parse_integer,
    "SymInt": _parse_integer,
    "float": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "bool": lambda v: isinstance(v, (bool, int)),
    "SymBool": lambda v: isinstance(v, (bool, int)),
    "complex": lambda v: isinstance(v, _NUMBERS),
    "Scalar": lambda v: isinstance(v, _NUMBERS),
    "str": lambda v: isinstance(v, str),
    "Device": lambda v: isinstance(v, (str, int, device)),
    "ScalarType": lambda v: isinstance(v, dtype),
    "Layout": lambda v: isinstance(v, layout),
    "MemoryFormat": lambda v: isinstance(v, memory_format),
    "Generator": lambda v: type(v).__name__ == "Generator",
    "Any": lambda v: True,
    "None": lambda v: v is None,
    "NoneType": lambda v: v is None,
}
# Classes that PyTorch's libraries define in C++. Ours name theirs as `_schema_type`.
_CUSTOM = "__torch__.torch.classes."
_TYPE_NAMES = {
    "None": "NoneType",
    "Scalar": "number",
    "SymInt": "int",
    "ScalarType": "int",
    "Layout": "int",
    "MemoryFormat": "int",
}


class SchemaType:
    """Type of an argument or result: base type and suffixes for lists and optionals."""

    def __init__(self, text: str) -> None:
        self.text, self.suffixes = text, []
        while text.endswith(("?", "]")):
            cut = len(text) - 1 if text[-1] == "?" else text.rindex("[")
            self.suffixes.append(text[cut:])
            text = text[:cut]
        self.base = text
        if text not in _TYPES and not text.startswith(_CUSTOM):
            raise RuntimeError(
                "unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; "
                "for a full list, please see "
                "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func"
            )

    def holds(self, value: Any, level: int = 0) -> bool:
        """True if a value has this type."""
        if level == len(self.suffixes):
            if self.base in _TYPES:
                return _TYPES[self.base](value)
            return getattr(type(value), "_schema_type", None) == self.base
        suffix = self.suffixes[level]
        if suffix == "?":
            return value is None or self.holds(value, level + 1)
        if isinstance(value, (list, tuple)):
            return all(self.holds(item, level + 1) for item in value)
        return suffix != "[]" and self.holds(value, level + 1)  # `int[2]` accepts a number

    def __str__(self) -> str:
        shown = _TYPE_NAMES.get(self.base, self.base)
        for suffix in reversed(self.suffixes):
            shown = f"Optional[{shown}]" if suffix == "?" else f"List[{shown}]"
        return shown

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def kind(self) -> str:
        return (
            "OptionalType"
            if "?" in self.suffixes[:1]
            else "ListType"
            if self.suffixes
            else f"{self.base.removesuffix('Type')}Type"
        )


class AliasInfo:
    """Alias annotation of a tensor: alias sets, and whether the op writes to them."""

    def __init__(self, names: str) -> None:
        before, arrow, after = (part.strip() for part in names.partition("->"))
        self.is_write = before.endswith("!")
        self.before_set = set(before.rstrip("!").split("|"))
        self.after_set = set(after.split("|")) - {""} if arrow else self.before_set


# Groups: base type, list suffix before the alias annotation, annotation, list suffix after it, name. The annotation `!`
# means a write to an alias set of its own.
_ARGUMENT = re.compile(
    r"\s*([\w.]+)((?:\[\])?(?=\s*[(!]))?(?:\s*(?:\(([\w|]+!?(?:\s*->\s*[^)]*)?)\)|(!)\s*))?((?:\?|\[\d*\])*)"
    r"(?:(?:\s+|(?<=[!\s]))(\w+))?\s*"
)


class Argument:
    """Argument or result of a schema."""

    def __init__(self, text: str, kwarg_only: bool = False, numbers: Iterator[int] | None = None) -> None:
        head, equals, default = text.partition("=")
        found = _ARGUMENT.fullmatch(head)
        if found is None:
            raise RuntimeError(f"cannot read {text.strip()!r} in a schema")
        base, inner, alias, writes, suffix, name = found.groups()
        if writes:
            alias = f"${next(numbers or itertools.count())}! -> "
        inner = inner or ""
        suffix = inner + suffix
        self.type = self.real_type = SchemaType(base + suffix)
        self.alias_info = AliasInfo(alias) if alias else None
        self.alias_text, self._inner = f"({alias})" if alias else "", inner
        self.name, self.kwarg_only = name or "", kwarg_only
        self.is_out = kwarg_only and self.alias_info is not None and self.alias_info.is_write
        self.has_default = bool(equals)
        self.default_value = _parse_default(default.strip(), self.type) if equals else None
        self._default_written = self.default_value
        sizes = re.findall(r"\[(\d+)\]", suffix)
        self.N = int(sizes[0]) if sizes else None
        if self.N and equals and self.default_value is not None and not isinstance(self.default_value, list):
            self.default_value = [self.default_value] * self.N

    def has_default_value(self) -> bool:
        return self.has_default

    @property
    def is_write(self) -> bool:
        return self.alias_info is not None and self.alias_info.is_write

    def __str__(self) -> str:
        base = self.type.base + self._inner
        base = "NoneType" if base == "None" else base
        text = f"{base}{self.alias_text}{self.type.text[len(base) :]}" + (f" {self.name}" if self.name else "")
        if not self.has_default:
            return text
        return f"{text}={_format_value(self._default_written)}"

    def __repr__(self) -> str:
        return f"Argument({self})"


def _parse_default(text: str, kind: SchemaType) -> Any:
    """Return the value of a default in a schema."""
    words = {"None": None, "True": True, "False": False, "contiguous_format": "contiguous_format", "inf": float("inf")}
    if text in words:
        return words[text]
    if text.startswith("["):
        inner = text[1:-1].strip()
        return [_parse_default(part.strip(), kind) for part in inner.split(",")] if inner else []
    if text[:1] in "'\"":
        return text[1:-1]
    try:
        return float(text) if kind.base == "float" or re.search(r"[.eE]", text) else int(text)
    except ValueError:
        return text  # the name of a dtype, layout or reduction


def _format_value(value: Any) -> str:
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return f"{int(value)}."
    if isinstance(value, float):
        return f"{value:.17g}"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_format_value, value))}]"
    return str(value)


def _split_at_commas(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [part for part in (*parts, text[start:]) if part.strip()]


def _to_numbers(value: Any, base: str) -> Any:
    """A number of NumPy or in a tensor, or such items of a list, as Python's numbers of a base type."""
    convert, others = _CONVERSIONS[base]
    if value.__class__ in (list, tuple):
        return [_to_numbers(item, base) for item in value] if any(map(_is_foreign_number, value)) else value
    if _is_foreign_number(value):
        value = value.item() if isinstance(value, (call.Tensor, np.ndarray)) else value
        return value if isinstance(value, (complex, np.complexfloating)) and base != "bool" else convert(value)
    return convert(value) if isinstance(value, others) else value


def _is_foreign_number(value: Any) -> bool:
    """True for a number of NumPy that is none of Python's, and for a tensor with one number, whose value is at hand."""
    if isinstance(value, call.Tensor):
        return value.numel() == 1 and value.device.type != "meta"
    if isinstance(value, np.generic):
        return value.dtype.kind in "biufc" and not isinstance(value, (float, complex))
    return isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"


class FunctionSchema:
    """Parsed function schema.

    >>> from torchlite._library.function_schema import FunctionSchema
    >>> schema = FunctionSchema("lib::scale(Tensor x, float s=2.0) -> Tensor")
    >>> schema.name, [argument.name for argument in schema.arguments]
    ('lib::scale', ['x', 's'])
    """

    def __init__(self, text: str) -> None:
        found = re.fullmatch(r"\s*((?:\w+::)?\w+)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.+?)\s*", text, re.DOTALL)
        if found is None:
            raise RuntimeError("Tried to parse a function schema but only the operator name was given")
        self.name, self.overload_name = found[1], found[2] or ""
        self.arguments: list[Argument] = []
        keywords, numbers = False, itertools.count()
        for part in _split_at_commas(found[3]):
            if part.strip() == "*":
                keywords = True
            else:
                self.arguments.append(Argument(part, keywords, numbers))
        results = found[4]
        several = results.startswith("(") and results.endswith(")")
        self.returns = [
            Argument(part, numbers=numbers) for part in _split_at_commas(results[1:-1] if several else results)
        ]
        self.positional = [argument for argument in self.arguments if not argument.kwarg_only]
        self._positional_names = frozenset([argument.name for argument in self.positional])
        self.is_vararg = self.is_varret = False

    @property
    def is_mutable(self) -> bool:
        """True if the op writes to an argument."""
        return any(argument.is_write for argument in self.arguments)

    @property
    def is_functional(self) -> bool:
        """True if the op writes to no argument and no result aliases one."""
        return not any(part.alias_info for part in (*self.arguments, *self.returns))

    def place_by_position(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Return a call with positional arguments by position. Raise RuntimeError if an earlier one is missing."""
        if self._positional_names.isdisjoint(kwargs):
            return args, kwargs
        names = [argument.name for argument in self.positional]
        last = max((place for place, name in enumerate(names) if name in kwargs), default=-1)
        if last < len(args):
            return args, kwargs
        values, kwargs = list(args), dict(kwargs)
        for argument in self.positional[len(args) : last + 1]:
            if argument.name in kwargs:
                values.append(kwargs.pop(argument.name))
            elif argument.has_default:
                values.append(argument.default_value)
            else:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {self}"
                )
        return tuple(values), kwargs

    def bind(self, args: tuple, kwargs: dict, numbers: bool = False, exact: bool = False) -> list:
        """Return the values of all arguments including defaults; `numbers` accepts a number for a tensor, `exact` no
        tensor for a number. Raise RuntimeError with PyTorch's messages for a mismatch.
        """
        positional = self.positional
        if len(args) > len(positional):
            raise RuntimeError(
                f"{self.name}() expected at most {len(self.arguments)} argument(s) but received {len(args)} "
                f"argument(s). Declaration: {self}"
            )
        given = dict(kwargs)
        values = []
        for position, argument in enumerate(self.arguments):
            if not argument.kwarg_only and position < len(args):
                value = args[position]
            elif argument.name in given:
                value = given.pop(argument.name)
            elif argument.has_default:
                values.append(argument.default_value)
                continue
            else:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {self}"
                )
            if argument.type.suffixes and isinstance(value, _SEQUENCES[1]) and not isinstance(value, _LISTS):
                value = list(value)
            if not exact and argument.type.base in _CONVERSIONS:
                if argument.type.suffixes and isinstance(value, np.ndarray) and value.ndim:
                    value = list(value)
                value = _to_numbers(value, argument.type.base)
            if not argument.type.holds(value) and not (
                numbers and argument.type.text == "Tensor" and isinstance(value, _NUMBERS)
            ):
                number = argument.type.base == "Scalar" and not isinstance(value, _LISTS)
                details = (
                    f"Cannot cast {value!s} to number" if number else f"Unable to cast {value!r} to {argument.type}"
                )
                raise RuntimeError(
                    f"{self.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but "
                    f"instead found type '{type(value).__name__}'.\nPosition: {position}\nValue: {value!r}\n"
                    f"Declaration: {self}\nCast error details: {details}"
                )
            values.append(value)
        if given:
            raise RuntimeError(
                f"Unknown keyword argument '{next(iter(given))}' for operator '{self.name}'. Schema: {self}"
            )
        return values

    def call_form(self, values: list) -> tuple[tuple, dict]:
        """Return values in call form: without trailing and keyword arguments at their defaults."""
        plain = [
            not argument.has_default
            or not (value is argument.default_value or _is_same_default(value, argument.default_value))
            for argument, value in zip(self.arguments, values, strict=True)
        ]
        count = len(self.positional)
        last = max((i + 1 for i in range(count) if plain[i]), default=0)
        keywords = {self.arguments[i].name: values[i] for i in range(count, len(values)) if plain[i]}
        return tuple(values[:last]), keywords

    def __str__(self) -> str:
        parts = [str(argument) for argument in self.arguments]
        count = len(self.positional)
        if count < len(parts):
            parts.insert(count, "*")
        results = ", ".join(map(str, self.returns))
        results = results if len(self.returns) == 1 else f"({results})"
        name = self.name + f".{self.overload_name}" * bool(self.overload_name)
        return f"{name}({', '.join(parts)}) -> {results}"

    def __repr__(self) -> str:
        return str(self)


def _is_same_default(value: Any, default: Any) -> bool:
    return type(value) is type(default) and not isinstance(value, call.Tensor) and bool(value == default)


# -- from Python annotations -------------------------------------------------------------

_NAMES: dict[Any, str] = {
    int: "SymInt", float: "float", bool: "bool", str: "str", dtype: "ScalarType", device: "Device",
}  # fmt: skip
_SEQUENCES = (list, collections.abc.Sequence)
_LISTS = (list, tuple, str)


def _schema_type_name(annotation: Any, result: bool = False) -> str | None:
    """Return the schema's name of an annotated type, None if there is none."""
    if annotation is call.Tensor:
        return "Tensor"
    if annotation in _NAMES:
        return _NAMES[annotation]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _SEQUENCES and len(parts) == 1:
        inner = _schema_type_name(parts[0])
        return None if inner is None or (inner.endswith("?") and inner != "Tensor?") else f"{inner}[]"
    if origin in (typing.Union, types.UnionType):
        rest = [part for part in parts if part is not type(None)]
        if set(rest) == {int, float, bool} or set(rest) == {int, float, bool, complex}:
            name: str | None = "Scalar"
        else:
            name = _schema_type_name(rest[0]) if len(rest) == 1 else None
        return None if name is None else name + "?" * (len(rest) < len(parts))
    return None


def infer_schema(
    prototype_function: Callable, /, *, mutates_args: str | Iterable[str], op_name: str | None = None, tags: Any = ()
) -> str:
    """Returns a function's schema, made from its annotations.

    Args:
        prototype_function: The function.
        mutates_args: Names of the arguments that it changes in place, or ``"unknown"`` for all tensors.
        op_name: Name of the op that the text begins with. Default: none.
        tags: Tags of the op. Default: none.

    Raises:
        ValueError: An annotation is missing or unsupported, or ``mutates_args`` has another form.

    Example:
        >>> import torchlite as torch
        >>> def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        ...     return x * factor
        >>> torch.library.infer_schema(scaled, mutates_args=())
        '(Tensor x, float factor=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    if any(getattr(tag, "name", tag) in ("inplace", "out") for tag in (tags if isinstance(tags, Iterable) else [tags])):
        raise NotImplementedError("infer_schema(): an op with the tag inplace or out needs its schema as text")

    def schema_error(what: str) -> ValueError:
        return ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    try:
        hints = typing.get_type_hints(prototype_function)
    except (NameError, TypeError) as error:
        raise schema_error(f"Unsupported type annotation. {error}") from error
    changed = mutates_args if isinstance(mutates_args, str) else set(mutates_args)
    if isinstance(changed, str) and changed != "unknown":
        raise ValueError("mutates_args must either be a sequence of the names of the arguments that are mutated or "
                         "the string 'unknown'. ")  # fmt: skip
    parts: list[str] = []
    seen: set[str] = set()
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise schema_error("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if parameter.annotation is parameter.empty:
            raise schema_error(f"Parameter {name} must have a type annotation.")
        kind = _schema_type_name(hints[name])
        if kind is None and parameter.default is None:
            kind = _schema_type_name(typing.Optional[hints[name]])  # noqa: UP045
        if kind is None:
            raise schema_error(
                f"Parameter {name} has unsupported type {hints[name]}. The valid types are tensors, numbers, "
                "strings, dtypes, devices, and lists of them."
            )
        seen.add(name)
        written = name in changed if not isinstance(changed, str) else kind.startswith("Tensor")
        if written:
            if not kind.startswith("Tensor"):
                raise schema_error(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
                )
            kind = f"Tensor(a{position}!){kind[6:]}"
        text = f"{kind} {name}"
        if parameter.default is not parameter.empty:
            text += f"={_format_default(parameter.default, schema_error, name)}"
        parts.append(text)
    if not isinstance(changed, str) and not changed <= seen:
        raise schema_error(
            f"{changed - seen} in mutates_args were not found in the custom op's signature. mutates_args should "
            "contain the names of all args that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    if "return" not in hints or signature.return_annotation is signature.empty:
        raise schema_error("No return type annotation was provided. Please add one.")
    return f"{op_name or ''}({', '.join(parts)}) -> {_format_returns(hints['return'], schema_error)}"


def _format_default(value: Any, refuse: Callable, name: str) -> str:
    if value is None or isinstance(value, (int, float, bool)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (dtype, device)):
        text = str(value).removeprefix("torch.").removeprefix("torchlite.")
        return text if isinstance(value, dtype) else f'"{value}"'
    raise refuse(f"Parameter {name} has an unsupported default value type {type(value)}. Please file an issue on "
                 "GitHub so we can prioritize this.")  # fmt: skip


def _format_returns(annotation: Any, refuse: Callable) -> str:
    if annotation is type(None):
        return "()"
    parts = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else (annotation,)
    names = [_schema_type_name(part, True) for part in parts]
    for part, name in zip(parts, names, strict=True):
        if name is None:
            raise refuse(f"Return has unsupported type {part}.")
    return names[0] or "" if typing.get_origin(annotation) is not tuple else f"({', '.join(map(str, names))})"
