"""Pytrees: flatten nested containers into leaves and a structure, map over the leaves, and unflatten.

Lists, tuples, named tuples, dicts, ordered and default dicts, deques, `torch.Size` and classes registered with
`register_pytree_node` are containers. Every other value, None included, is a leaf.

>>> from torchlite.utils._pytree import tree_flatten, tree_map, tree_unflatten
>>> leaves, spec = tree_flatten({"a": 1, "b": [2, (3,)]})
>>> leaves
[1, 2, 3]
>>> tree_unflatten([x * 10 for x in leaves], spec)
{'a': 10, 'b': [20, (30,)]}
>>> tree_map(lambda x, y: x + y, (1, [2]), (5, [6]))
(6, [8])
"""

from __future__ import annotations

import dataclasses
import types
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torchlite as torch

from . import _pytree_serialization as _text
from ._pytree_spec import (
    BUILTIN_TYPES,  # noqa: F401
    LEAF,
    STANDARD_DICT_TYPES,  # noqa: F401
    SUPPORTED_NODES,
    Context,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    LeafSpec,
    MappingKey,  # noqa: F401
    NodeDef,
    PyTree,
    SequenceKey,
    TreeSpec,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    node_type,
)

__all__ = [
    "PyTree", "Context", "FlattenFn", "UnflattenFn", "DumpableContext", "ToDumpableContextFn", "FromDumpableContextFn",
    "PyTreeSpec", "TreeSpec", "LeafSpec", "keystr", "key_get", "register_pytree_node", "tree_is_leaf", "tree_flatten",
    "tree_flatten_with_path", "tree_unflatten", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_structure",
    "tree_map", "tree_map_with_path", "tree_map_", "tree_map_only", "tree_map_only_", "tree_all", "tree_any",
    "tree_all_only", "tree_any_only", "treespec_dumps", "treespec_loads", "treespec_pprint", "is_namedtuple",
    "is_namedtuple_class", "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance",
]  # fmt: skip

PyTreeSpec = TreeSpec
DumpableContext = Any
FlattenFn = FlattenFunc = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = UnflattenFunc = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFunc = Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Any]]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
ToStrFunc = Callable[["TreeSpec", list[str]], str]
MaybeFromStrFunc = Callable[[str], tuple[Any, Context, str] | None]
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = _text.PROTOCOL
NO_SERIALIZED_TYPE_NAME_FOUND = _text.NO_TYPE_NAME
SUPPORTED_SERIALIZED_TYPES = _text.NODES_BY_TYPE
SERIALIZED_TYPE_TO_PYTHON_TYPE = _text.NODES_BY_NAME
CONSTANT_NODES: set[type] = set()
_get_node_type = node_type
_is_namedtuple_instance = is_namedtuple_instance
IsLeaf = Callable[[Any], bool] | None


# Registering


def _private_register_pytree_node(
    cls: type,
    flatten_fn: Any,
    unflatten_fn: Any,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    if cls in SUPPORTED_NODES:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.", stacklevel=3
        )
    _text.register(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    CONSTANT_NODES.discard(cls)


def register_pytree_node(
    cls: type,
    flatten_fn: Any,
    unflatten_fn: Any,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Make the instances of a class containers.

    flatten_fn: an instance -> (list of items, context). unflatten_fn: (items, context) -> an instance.
    flatten_with_keys_fn: an instance -> (list of (key, item), context), for paths. serialized_type_name and the two
    functions of contexts: for `treespec_dumps`. ValueError if the class is registered already.

    >>> from torchlite.utils import _pytree as pytree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda items, _: Pair(*items))
    >>> pytree.tree_leaves([Pair(1, [2]), 3])
    [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _private_register_pytree_node(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )


def _register_pytree_node(
    cls: type, flatten_fn: Any, unflatten_fn: Any, to_str_fn: Any = None, maybe_from_str_fn: Any = None, **options: Any
) -> None:
    """The older name of `register_pytree_node`, which allows registering twice, with a warning."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
        "`torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` and "
            "`from_dumpable_context` instead.",
            FutureWarning,
            stacklevel=2,
        )
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: type) -> None:
    """Unregister a class."""
    del SUPPORTED_NODES[cls]
    name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
    if SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name) is cls:
        del SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    CONSTANT_NODES.discard(cls)


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Name a named tuple class, so that specs with it can be serialized."""
    _text.register(cls, serialized_type_name, None, None)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Register a dataclass as a container of the fields `field_names` (by default all in `__init__`). Those of
    `drop_field_names`, which need defaults, are skipped.
    """
    drop = list(drop_field_names or ())
    if dataclasses.is_dataclass(cls):
        have = {f.name for f in dataclasses.fields(cls) if f.init}
        names = [f.name for f in dataclasses.fields(cls) if f.init and f.name not in drop]
        field_names = names if field_names is None else field_names
        if set(field_names) != have - set(drop):
            missing, unexpected = have - set(drop) - set(field_names), set(field_names) - (have - set(drop))
            words = "field_names does not include all dataclass fields.\n"
            if missing:
                words += (
                    f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, "
                    "please add them to `field_names`, otherwise please add them to `drop_field_names`.\n"
                )
            if unexpected:
                words += (
                    f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add them to "
                    "`drop_field_names`.\n"
                )
            raise ValueError(words)
    elif field_names is None:
        raise ValueError(
            "field_names must be specified with a list of all fields used to initialize the class, as it is not a "
            "dataclass."
        )
    registered_names = list(field_names)

    def split_fields(obj):
        full: list[str] = []
        empty: list[str] = []
        for name in registered_names:
            (full if getattr(obj, name) is not None else empty).append(name)
        return full, empty

    def flatten(obj):
        full, empty = split_fields(obj)
        return [getattr(obj, name) for name in full], [full, empty]

    def keys(obj):
        full, empty = split_fields(obj)
        return [(GetAttrKey(name), getattr(obj, name)) for name in full], [full, empty]

    def unflatten(items, context):
        full, empty = context
        return cls(**dict(zip(full, items, strict=True)), **dict.fromkeys(empty))

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=keys)


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: the constant."""

    value: Any


def register_constant(cls: type) -> None:
    """Register a class whose instances are part of the structure: neither containers nor leaves. The class needs
    `__eq__` and `__hash__`.
    """
    for name in ("__eq__", "__hash__"):
        if getattr(cls, name) in (getattr(object, name), None):
            raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `{name}` implementation.")
    register_pytree_node(
        cls,
        lambda value: ([], ConstantNode(value)),
        lambda items, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """True if the class was registered with `register_constant`."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


# Flatten and unflatten


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """True if `tree` is not a container, or `is_leaf(tree)` is true."""
    return (is_leaf is not None and is_leaf(tree)) or node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def _flatten_into(tree, leaves, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return LEAF
    kind = node_type(tree)
    items, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(item, leaves, is_leaf) for item in items])


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Return (the leaves in order, the structure). `is_leaf(subtree)`, if given, marks additional leaves."""
    leaves: list[Any] = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def _check_spec(treespec):
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Return the tree of these leaves and this structure; ValueError if their number does not match."""
    return _check_spec(treespec).unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Iterate over the leaves in order."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
    else:
        for item in SUPPORTED_NODES[node_type(tree)].flatten_fn(tree)[0]:
            yield from tree_iter(item, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the list of leaves."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """Return the leaves of all arguments, keyword arguments last."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the structure without the leaves."""
    return tree_flatten(tree, is_leaf)[1]


def treespec_leaf() -> TreeSpec:
    """The structure of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Return the structure of a tuple with items of these structures."""
    return TreeSpec(tuple, None, [_check_spec(child) for child in iterable])


def treespec_dict(mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: Any) -> TreeSpec:
    """Return the structure of a dict with values of these structures."""
    specs = dict(mapping, **kwargs)
    return TreeSpec(dict, list(specs), [_check_spec(child) for child in specs.values()])


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """Return the leaves of `tree`, each repeated for its subtree of the structure, or None on a mismatch."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or treespec.type != (kind := node_type(tree)):
        return None
    items, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(items) != treespec.num_children or context != treespec.context:
        return None
    leaves: list[Any] = []
    for item, child in zip(items, treespec.children(), strict=True):
        part = _broadcast_to_and_flatten(item, child, is_leaf)
        if part is None:
            return None
        leaves += part
    return leaves


# Mapping


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Return the tree of `func(leaf, ...)`, with the corresponding subtrees of `rests` as further arguments; ValueError
    if the structure of one differs from that of `tree`.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(list(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests])))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` for side effects: returns `tree` itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for args in zip(leaves, *[spec.flatten_up_to(rest) for rest in rests], strict=True):
        func(*args)
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorator: the function is called for values of these classes, or for which this function is true; others are
    returned unchanged.
    """
    chosen = type_or_types_or_pred
    if isinstance(chosen, (type, tuple, types.UnionType)):

        def predicate(value):
            return isinstance(value, chosen)

    elif callable(chosen):
        predicate = chosen
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def wrap(func):
        return lambda value: func(value) if predicate(value) else value

    return wrap


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """`tree_map` over the leaves of these classes (or for which this function is true); others are unchanged."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """`tree_map_` over such leaves only."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """True if `pred` is true of all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """True if `pred` is true of a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """True if `pred` is true of all leaves of these classes."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """True if `pred` is true of a leaf of these classes."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


# Paths


def _leaves_with_path(path, tree, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn argument "
            "to register_pytree_node."
        )
    for key, item in node.flatten_with_keys_fn(tree)[0]:
        yield from _leaves_with_path((*path, key), item, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return (path, leaf) pairs in order; a path is a tuple of keys, for `keystr` and `key_get`.

    >>> from torchlite.utils._pytree import keystr, tree_leaves_with_path
    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_leaves_with_path((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """((path, leaf) pairs, the structure)."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` with the leaf's path as the first argument of the function."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*pair, *rest) for pair, *rest in zip(pairs, *others, strict=True)])


def keystr(kp: KeyPath) -> str:
    """Format a path as a Python expression."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return the value at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# Text


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The structure as JSON, in PyTorch's form; NotImplementedError for a class without a registered name."""
    return _text.dumps(_check_spec(treespec), protocol)


def treespec_loads(serialized: str) -> TreeSpec:
    """Deserialize the output of `treespec_dumps`."""
    return _text.loads(serialized)


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The structure as its containers print, an asterisk for each leaf."""
    return repr(tree_unflatten([_Asterisk()] * _check_spec(treespec).num_leaves, treespec))


def _make_deprecated_alias(old, new, function):
    def call(value):
        warnings.warn(f"`{old}` is deprecated. Please use `{new}` instead.", FutureWarning, stacklevel=2)
        return function(value)

    call.__name__ = old
    call.__doc__ = f"The older name of `{new}`."
    return call


pytree_to_str = _make_deprecated_alias("pytree_to_str", "treespec_dumps", treespec_dumps)
str_to_pytree = _make_deprecated_alias("str_to_pytree", "treespec_loads", treespec_loads)

register_pytree_node(
    torch.Size,
    lambda size: (list(size), None),
    lambda items, context: torch.Size(items),
    serialized_type_name="torch.Size",
    flatten_with_keys_fn=lambda size: ([(SequenceKey(index), n) for index, n in enumerate(size)], None),
)

# Flatten and unflatten functions of built-in containers, by the names that packages import: `_dict_flatten` and so on.
for _name, _kind in (
    ("tuple", tuple), ("list", list), ("dict", dict), ("namedtuple", namedtuple), ("ordereddict", OrderedDict),
    ("odict", OrderedDict), ("defaultdict", defaultdict), ("deque", deque),
):  # fmt: skip
    _node = SUPPORTED_NODES[_kind]
    globals().update(
        {
            f"_{_name}_flatten": _node.flatten_fn,
            f"_{_name}_unflatten": _node.unflatten_fn,
            f"_{_name}_flatten_with_keys": _node.flatten_with_keys_fn,
        }
    )
_is_leaf, _is_namedtuple_instance = tree_is_leaf, is_namedtuple_instance
