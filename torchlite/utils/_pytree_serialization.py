"""Serialization of tree specs as JSON, in PyTorch's format."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

from ._pytree_spec import LEAF, SUPPORTED_NODES, TreeSpec

PROTOCOL = 1
NO_TYPE_NAME = "NO_SERIALIZED_TYPE_NAME_FOUND"
UNREGISTERED_NAMEDTUPLE = (
    "Can't serialize TreeSpec of namedtuple class {} because we didn't register a serializated_type_name. Please "
    "register using `_register_namedtuple`."
)


class SerializedNode(NamedTuple):
    """The name of a class in text, and how its context is written there and read."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: Callable[[Any], Any] | None
    from_dumpable_context: Callable[[Any], Any] | None


NODES_BY_TYPE: dict[Any, SerializedNode] = {}
NODES_BY_NAME: dict[str, Any] = {}


def register(kind: Any, name: str | None, to_dumpable: Any, from_dumpable: Any) -> None:
    """Note how specs of a class are written."""
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {kind} must be None or registered.")
    name = NO_TYPE_NAME if name is None else name
    NODES_BY_TYPE[kind] = SerializedNode(kind, name, to_dumpable, from_dumpable)
    NODES_BY_NAME[name] = kind


def _encode_enum(value: Any) -> dict[str, Any]:
    """The form of a value that JSON lacks."""
    kind = type(value)
    if not isinstance(value, Enum):
        raise TypeError(f"Object of type {kind.__name__} is not JSON serializable")
    return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": value.name}


def _import_qualified(path):
    module, _, names = path.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


def _decode_enum(entry):
    return _import_qualified(entry["fqn"])[entry["name"]] if "__enum__" in entry else entry


def _spec_to_json(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    node = NODES_BY_TYPE.get(spec.type)
    if node is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if node.serialized_type_name == NO_TYPE_NAME:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call "
            "with a `serialized_type_name` kwarg."
        )
    if node.to_dumpable_context is not None:
        context = node.to_dumpable_context(spec.context)
    else:
        import json

        try:
            context = json.dumps(spec.context, default=_encode_enum)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer "
                "using _register_pytree_node."
            ) from error
    children = [_spec_to_json(child) for child in spec.children()]
    return {"type": node.serialized_type_name, "context": context, "children_spec": children}


def _spec_from_json(entry, classes):
    name = entry["type"]
    if name is None:
        return LEAF
    if name not in NODES_BY_NAME:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    kind = NODES_BY_NAME[name]
    node = NODES_BY_TYPE[kind]
    if kind is namedtuple and entry["context"] in classes:
        context = classes[entry["context"]]
    elif node.from_dumpable_context is not None:
        context = node.from_dumpable_context(entry["context"])
    else:
        import json

        context = json.loads(entry["context"], object_hook=_decode_enum)
    return TreeSpec(kind, context, [_spec_from_json(child, classes) for child in entry["children_spec"]])


def dumps(spec: TreeSpec, protocol: int | None = None) -> str:
    """The text of a spec."""
    import json

    protocol = PROTOCOL if protocol is None else protocol
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")
    return json.dumps((protocol, _spec_to_json(spec)), default=_encode_enum)


def loads(serialized: str, classes: Mapping[str, type] = MappingProxyType({})) -> TreeSpec:
    """Return the spec of a JSON text. classes: named tuple classes by name, in addition to the registered ones."""
    import json

    protocol, entry = json.loads(serialized)
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")
    return _spec_from_json(entry, classes)


def name_of_namedtuple(kind):
    if kind not in NODES_BY_TYPE and isinstance(getattr(kind, "_serialized_type_name", None), str):
        return kind._serialized_type_name
    if kind not in NODES_BY_TYPE:
        raise NotImplementedError(UNREGISTERED_NAMEDTUPLE.format(kind))
    name = NODES_BY_TYPE[kind].serialized_type_name
    if name == NO_TYPE_NAME:
        raise NotImplementedError(UNREGISTERED_NAMEDTUPLE.format(kind))
    return name


def _namedtuple_of_name(name):
    if name not in NODES_BY_NAME:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a serializated name."
        )
    return NODES_BY_NAME[name]


def _dump_default_factory(context):
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _load_default_factory(context):
    names = ("default_factory_module", "default_factory_name", "dict_context")
    if not isinstance(context, dict) or set(context) != set(names):
        raise ValueError(f"Missing keys in defaultdict context: {context}")
    module, factory, keys = (context[name] for name in names)
    return [_import_qualified(f"{module}:{factory}"), keys]


for _kind in (list, tuple, dict):
    register(_kind, f"builtins.{_kind.__name__}", None, None)
register(OrderedDict, "collections.OrderedDict", None, None)
register(deque, "collections.deque", None, None)
register(defaultdict, "collections.defaultdict", _dump_default_factory, _load_default_factory)
register(namedtuple, "collections.namedtuple", name_of_namedtuple, _namedtuple_of_name)
assert set(NODES_BY_TYPE) == set(SUPPORTED_NODES)
del _kind
