"""PyTorch's names for the nodes of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .op_record import Op


def saved_argument(node: Any, name: str, kinds: tuple[str, ...] = ("value", "plain")) -> Any:
    """The value that a node saved of an argument (with `kinds=("dtype",)` its dtype), or None."""
    for i, (saved, kind, _) in enumerate(node._op.saved_variables.saves):
        if saved == name and kind in kinds and node._saved is not None:
            return node._saved[i]
    return None


def scalar_or_tensor_name(name: str, argument: str = "other") -> Callable[[Any], str]:
    """The name of an op with two overloads, by whether `argument` is a number or a tensor."""

    def choose_name(node: Any) -> str:
        number = (
            isinstance(saved_argument(node, argument), (int, float, complex))
            or node._saved is None
            and not node._edges[-1]
        )
        return f"{name}Backward{0 if number else 1}"

    return choose_name


def all_or_dim_name(name: str) -> Callable[[Any], str]:
    """The name of a reduction with two overloads: the first reduces all dimensions."""
    return lambda node: f"{name}Backward{0 if saved_argument(node, 'dim') in (None, ()) else 1}"


def default_node_name(op: Op) -> str:
    """The name of an op's node after the op's own: MulBackward0."""
    return "".join(word[:1].upper() + word[1:] for word in op.name.removesuffix("_").split("_")) + "Backward0"


def node_name(node: Any) -> str:
    """PyTorch's name for a node, e.g. MulBackward0."""
    name = node._op.node_name
    return name if name.__class__ is str and name else name(node) if name else default_node_name(node._op)
