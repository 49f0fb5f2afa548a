"""immutable_list and immutable_dict: containers of node arguments."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from ..utils._pytree import MappingKey, SequenceKey, register_pytree_node
from ._compatibility import compatibility

__all__ = ["immutable_dict", "immutable_list"]

_Item = TypeVar("_Item")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def _raise_immutable(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. The arguments of a torch.fx.Node are changed by "
        "assigning new ones:\n\n    new_args = ...  # a copy of node.args, with what is to change\n"
        "    node.args = new_args"
    )


@compatibility(is_backward_compatible=True)
class immutable_list(list[_Item]):
    """List that raises on mutation and is hashable.

    >>> from torchlite.fx.immutable_collections import immutable_list
    >>> immutable_list([1, 2]) == [1, 2]
    True
    """

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _raise_immutable  # type: ignore[assignment]
    append = clear = extend = insert = pop = remove = reverse = sort = _raise_immutable  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


@compatibility(is_backward_compatible=True)
class immutable_dict(dict[_Key, _Value]):
    """Dictionary that raises on mutation and is hashable."""

    __delitem__ = __ior__ = __setitem__ = _raise_immutable  # type: ignore[assignment]
    clear = pop = popitem = setdefault = update = _raise_immutable  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


register_pytree_node(
    immutable_list,
    lambda items: (list(items), None),
    lambda items, _: immutable_list(items),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda items: ([(SequenceKey(i), item) for i, item in enumerate(items)], None),
)
register_pytree_node(
    immutable_dict,
    lambda items: (list(items.values()), list(items)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda items: ([(MappingKey(key), value) for key, value in items.items()], list(items)),
)
