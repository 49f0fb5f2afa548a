"""The structure of a pytree, the registered container classes, and the keys of a path into a tree."""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .._types.package_name import package_name

Context = Any
PyTree = Any


@dataclass(frozen=True)
class SequenceKey:
    """A step of a path into a tree: an index."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the item at the index."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A step of a path into a tree: the key of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the value of the key."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A step of a path into a tree: the name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the attribute."""
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple[KeyEntry, ...]


class NodeDef(NamedTuple):
    """The flatten and unflatten functions of a container class."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


def is_namedtuple_class(cls: type) -> bool:
    """True if the class is a named tuple, by `collections.namedtuple` or `typing.NamedTuple`, or a subclass of one."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and all(type(name) is str for name in cls._fields)  # type: ignore[attr-defined]
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: object) -> bool:
    """True if `obj` is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object | type) -> bool:
    """True if `obj` is a named tuple or the class of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """True if a class is a CPython structseq with named fields, such as `time.struct_time`."""
    names = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(type(getattr(cls, name, None)) is int for name in names)
    )


def is_structseq_instance(obj: object) -> bool:
    """True if `obj` is an instance of a class such as `time.struct_time`."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object | type) -> bool:
    """True if `obj` is an instance of a class such as `time.struct_time`, or such a class."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def node_type(tree: Any) -> Any:
    """The class under which `tree` is, or would be, registered: `namedtuple` for every named tuple."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES:
        if is_namedtuple_class(kind):
            return namedtuple
        if kind.__module__ == f"{package_name()}.return_types":  # the result of an op with several results
            SUPPORTED_NODES[kind] = _make_sequence_node(kind)
    return kind


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TreeSpec:
    """The structure of a tree without its leaves; `unflatten` takes new leaves.

    type: the class of the outermost container, None for a leaf; context: the data its class needs in addition (a dict's
    keys); children: the specs of its items. Specs compare and print by these.

    >>> from torchlite.utils._pytree import tree_structure
    >>> tree_structure([1, {"a": 2}])
    TreeSpec(list, None, [*,
      TreeSpec(dict, ['a'], [*])])
    """

    type: Any
    _context: Any
    _children: list[TreeSpec]
    num_nodes: int = field(compare=False)
    num_leaves: int = field(compare=False)
    num_children: int = field(compare=False)

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        keep = object.__setattr__
        keep(self, "type", type)
        keep(self, "_context", context)
        keep(self, "_children", children_specs)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Count nodes, leaves and children. Packages call it after they have changed the list of children."""
        keep, children = object.__setattr__, self._children
        keep(self, "num_nodes", 1 + sum(child.num_nodes for child in children))
        keep(self, "num_leaves", 1 if self.type is None else sum(child.num_leaves for child in children))
        keep(self, "num_children", len(children))

    @property
    def context(self) -> Any:
        """The data of the container besides its items: the keys of a dict, the class of a named tuple."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The specs of the items; deprecated in favour of `children()`."""
        warnings.warn(
            "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a single child, or "
            "`treespec.children()` to get all children.",
            FutureWarning,
            stacklevel=2,
        )
        return self._children

    def is_leaf(self) -> bool:
        """True if the tree is a single leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The specs of the items."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The spec of one item."""
        return self._children[index]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self._context, self._children) == (other.type, other._context, other._children)

    def __hash__(self) -> int:
        return hash((self.type, tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.is_leaf():
            return "*"
        inner = indent + 2
        items = f",\n{' ' * inner}".join(child.__repr__(inner) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{items}])"

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of `tree` at the leaves of this spec; ValueError if the structure of `tree` above them
        differs. Dicts of all standard classes match each other, in any key order.
        """
        parts: list[Any] = []
        self._collect(tree, parts)
        return parts

    def _collect(self, tree, parts):
        if self.is_leaf():
            parts.append(tree)
            return
        found = node_type(tree)
        if self.type in BUILTIN_TYPES:
            items = self._items_of_builtin(tree, found)
        else:
            if found != self.type:
                raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {found!r}.")
            items, context = SUPPORTED_NODES[found].flatten_fn(tree)
            self._check_arity(len(items))
            self._check_context(context)
        for item, child in zip(items, self._children, strict=True):
            child._collect(item, parts)

    def _check_arity(self, found):
        if found != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {found}.")

    def _check_context(self, context):
        if context != self._context:
            raise ValueError(
                f"Node context mismatch for node type {self.type!r}; expected {self._context!r}, but got {context!r}."
            )

    def _items_of_builtin(self, tree, found):
        dicts = self.type in STANDARD_DICT_TYPES and found in STANDARD_DICT_TYPES
        if found != self.type and not dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {found!r}.")
        self._check_arity(len(tree))
        if dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            if set(keys) != set(tree):
                missing, extra = set(keys) - set(tree), set(tree) - set(keys)
                words = f"; missing key(s): {missing}" if missing else ""
                words += f"; extra key(s): {extra}" if extra else ""
                raise ValueError(f"Node keys mismatch{words}.")
            return [tree[key] for key in keys]
        items, context = SUPPORTED_NODES[found].flatten_fn(tree)
        if self.type is not deque:  # the maxlen of a deque does not matter
            self._check_context(context)
        return items

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree with these leaves; ValueError if their number is not that of the spec."""
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._put_together(iter(leaves))

    def _put_together(self, leaves):
        if self.is_leaf():
            return next(leaves)
        items = [child._put_together(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(items, self._context)


LEAF = TreeSpec(None, None, [])


class _LeafSpecType(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            raise TypeError(
                f"LeafSpec.__init__() takes 1 positional argument but {1 + len(args) + len(kwargs)} were given"
            )
        return LEAF

    def __instancecheck__(cls, instance: object) -> bool:
        warnings.warn(
            "`isinstance(treespec, LeafSpec)` is deprecated, use `isinstance(treespec, TreeSpec) and "
            "treespec.is_leaf()` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return isinstance(instance, TreeSpec) and instance.is_leaf()


class LeafSpec(TreeSpec, metaclass=_LeafSpecType):
    """`LeafSpec()` is the spec of a single leaf."""


def _make_sequence_node(kind):
    def flatten(items):
        return list(items), None

    def keys(items):
        return [(SequenceKey(index), item) for index, item in enumerate(items)], None

    return NodeDef(kind, flatten, lambda items, context: kind(items), keys)


def _make_mapping_node(kind):
    def flatten(mapping):
        return list(mapping.values()), list(mapping)

    def keys(mapping):
        return [(MappingKey(key), value) for key, value in mapping.items()], list(mapping)

    return NodeDef(kind, flatten, lambda items, context: kind(zip(context, items, strict=True)), keys)


def _make_defaultdict_node():
    def context_of(mapping):
        return [mapping.default_factory, list(mapping)]

    def keys(mapping):
        return [(MappingKey(key), value) for key, value in mapping.items()], context_of(mapping)

    return NodeDef(
        defaultdict,
        lambda mapping: (list(mapping.values()), context_of(mapping)),
        lambda items, context: defaultdict(context[0], zip(context[1], items, strict=True)),
        keys,
    )


def _make_namedtuple_node():
    def keys(items):
        return [(GetAttrKey(name), item) for name, item in zip(items._fields, items, strict=True)], type(items)

    return NodeDef(namedtuple, lambda items: (list(items), type(items)), lambda items, context: context(*items), keys)


def _make_deque_node():
    def keys(items):
        return [(SequenceKey(index), item) for index, item in enumerate(items)], items.maxlen

    return NodeDef(
        deque, lambda items: (list(items), items.maxlen), lambda items, context: deque(items, maxlen=context), keys
    )


for _node in (
    _make_sequence_node(list),
    _make_sequence_node(tuple),
    _make_mapping_node(dict),
    _make_mapping_node(OrderedDict),
    _make_defaultdict_node(),
    _make_namedtuple_node(),
    _make_deque_node(),
):
    SUPPORTED_NODES[_node.type] = _node
del _node
