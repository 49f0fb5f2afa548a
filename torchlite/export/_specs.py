"""Trees of arguments and results as text: read without looking anything up that the text names."""

from __future__ import annotations

import collections
import functools
import json
from typing import Any

from torchlite._types.source import is_identifier
from torchlite.utils import _pytree_text as text

from ._codes import wrong

_FACTORIES = frozenset(("list", "dict", "int", "float", "set", "str", "tuple", "bool"))
_DEEPEST = 100


def read(written: Any, fields: dict[str, list[str]]) -> Any:
    """The tree of a text; `fields` has those of named tuples, which are made where no class is registered."""
    where = "a tree of arguments"
    try:
        loaded = json.loads(written)
        if type(loaded) is not list or len(loaded) != 2 or loaded[0] != text.PROTOCOL:
            raise wrong(where, "it is of another protocol")
        classes: dict[str, type] = {}
        _check(loaded[1], fields, classes, 0)
        return text.loads(written, classes)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, NotImplementedError) as error:
        raise wrong(where, str(error)[:300]) from None


def _check(entry: Any, fields: dict[str, list[str]], classes: dict[str, type], depth: int) -> None:
    if type(entry) is not dict or depth > _DEEPEST:
        raise ValueError("it is no tree")
    kind, context = entry["type"], entry["context"]
    if kind is not None and type(kind) is not str:
        raise ValueError("a class is named by text")
    if kind == "collections.namedtuple":  # whose context is its name, and no JSON
        if context not in text.BY_NAME:
            classes[context] = _class_for(context, fields)
    loaded = json.loads(context) if type(context) is str and kind != "collections.namedtuple" else context
    if _asks(loaded):
        raise ValueError("its context names objects of a module")
    if kind == "collections.defaultdict":
        if loaded["default_factory_module"] != "builtins" or loaded["default_factory_name"] not in _FACTORIES:
            raise ValueError("the factory of a defaultdict is no builtin type")
    for child in entry["children_spec"]:
        _check(child, fields, classes, depth + 1)


def _asks(value: Any) -> bool:
    """Whether a context is one that the reader of trees imports something for."""
    if type(value) is dict:
        return "__enum__" in value or any(map(_asks, value.values()))
    return type(value) is list and any(map(_asks, value))


def _class_for(name: Any, fields: dict[str, list[str]]) -> type:
    """The class of named tuples that no class is registered for. A file registers nothing in the process."""
    names = fields.get(name)
    if type(name) is not str or not names or not all(map(is_identifier, names)):
        raise ValueError(f"the named tuple {str(name)[:100]} is not registered, and the file has no fields of it")
    return _made(name, tuple(names))


@functools.lru_cache(256)
def _made(name: str, fields: tuple[str, ...]) -> type:
    last = name.rpartition(".")[2]
    made = collections.namedtuple(last if is_identifier(last) else "Tuple", fields)  # type: ignore[misc]
    made._serialized_type_name = name  # type: ignore[attr-defined]
    return made
