"""Parses tree specs of arguments and results from text, without imports that the text names."""

from __future__ import annotations

import collections
import functools
import json
from typing import Any

from torchlite._serialization.pickle_costs import index_of_keys
from torchlite._serialization.resource_budget import Budget
from torchlite._types.python_source import is_identifier
from torchlite.utils import _pytree_serialization as text

from ._serde_schema import format_error

_FACTORIES = frozenset(("list", "dict", "int", "float", "set", "str", "tuple", "bool"))


def parse_treespec(written: Any, fields: dict[str, list[str]], budget: Budget) -> Any:
    """Return the tree spec of a text. `fields` has the fields of named tuples without a registered class."""
    where = "a tree of arguments"
    try:
        loaded = json.loads(written)
        if type(loaded) is not list or len(loaded) != 2 or loaded[0] != text.PROTOCOL:
            raise format_error(where, "it is of another protocol")
        classes: dict[str, type] = {}
        _check_tree_entry(loaded[1], fields, classes, 0, budget)
        return text.loads(written, classes)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, NotImplementedError) as error:
        raise format_error(where, str(error)[:300]) from None


def _check_tree_entry(
    entry: Any, fields: dict[str, list[str]], classes: dict[str, type], depth: int, budget: Budget
) -> None:
    budget.check_depth(depth, "a tree lies")
    if type(entry) is not dict:
        raise ValueError("it is no tree")
    kind, context = entry["type"], entry["context"]
    if kind is not None and type(kind) is not str:
        raise ValueError("a class is named by text")
    if kind == "collections.namedtuple":  # the context is a name, not JSON
        if context not in text.NODES_BY_NAME:
            classes[context] = _make_namedtuple_class(context, fields)
    loaded = json.loads(context) if type(context) is str and kind != "collections.namedtuple" else context
    if _needs_import(loaded):
        raise ValueError("its context names objects of a module")
    if kind == "collections.defaultdict":
        if type(loaded) is not dict:
            raise ValueError("a defaultdict has no factory")
        if loaded["default_factory_module"] != "builtins" or loaded["default_factory_name"] not in _FACTORIES:
            raise ValueError("the factory of a defaultdict is no builtin type")
    children = entry["children_spec"]
    if type(children) is not list:
        raise ValueError("the parts of a tree are no list")
    wrong_with = _CONTEXTS.get(kind, lambda *_: None)(loaded, len(children))
    if wrong_with:
        raise ValueError(f"the context of a {kind} is {wrong_with}")
    if kind == "collections.namedtuple" and len(_check_fields(context, classes)) != len(children):
        raise ValueError("a named tuple has other fields than parts")
    for child in children:
        _check_tree_entry(child, fields, classes, depth + 1, budget)


def _check_fields(name: str, classes: dict[str, type]) -> Any:
    return getattr(classes.get(name) or text.NODES_BY_NAME[name], "_fields", ())


def _check_leaf(context: Any, count: int) -> str | None:
    return None if context is None else "not null"


def _check_keys(context: Any, count: int) -> str | None:
    if type(context) is not list or len(context) != count:
        return "no list of a key for each part"
    if not all(type(key) in (str, int, float, bool) or key is None for key in context):
        return "a list of keys that are none"
    return None if len(index_of_keys(context)) == count else "a list of keys that are the same"


def _check_factory(context: Any, count: int) -> str | None:
    return _check_keys(context.get("dict_context") if type(context) is dict else None, count)


def _check_deque(context: Any, count: int) -> str | None:
    fits = context is None or type(context) is int and count <= context < 1 << 32
    return None if fits else "no length of a deque that holds its parts"


# By tree class: returns why a context is invalid for a number of children, None if valid.
_CONTEXTS: dict[Any, Any] = {
    None: _check_leaf, "builtins.tuple": _check_leaf, "builtins.list": _check_leaf, "builtins.dict": _check_keys,
    "collections.OrderedDict": _check_keys, "collections.defaultdict": _check_factory,
    "collections.deque": _check_deque,
}  # fmt: skip


def _needs_import(value: Any) -> bool:
    """True if the parser would import a name for this context."""
    if type(value) is dict:
        return "__enum__" in value or any(map(_needs_import, value.values()))
    return type(value) is list and any(map(_needs_import, value))


def _make_namedtuple_class(name: Any, fields: dict[str, list[str]]) -> type:
    """Return the class of an unregistered named tuple; files register nothing."""
    names = fields.get(name)
    if type(name) is not str or not names or not all(map(is_identifier, names)):
        raise ValueError(f"the named tuple {str(name)[:100]} is not registered, and the file has no fields of it")
    return _make_namedtuple(name, tuple(names))


@functools.lru_cache(256)
def _make_namedtuple(name: str, fields: tuple[str, ...]) -> type:
    last = name.rpartition(".")[2]
    made = collections.namedtuple(last if is_identifier(last) else "Tuple", fields)  # type: ignore[misc]
    made._serialized_type_name = name  # type: ignore[attr-defined]
    return made
