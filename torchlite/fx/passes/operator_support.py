"""Operator support: predicates that decide which nodes a backend can run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from .._compatibility import compatibility
from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

TargetTypeName = str
SupportedArgumentDTypes = Any
SupportDict = Mapping[str, Any]
IsNodeSupported = Callable[[Mapping[str, Any], Node], bool]


@compatibility(is_backward_compatible=False)
class OperatorSupportBase(ABC):
    """Base class of the predicates."""

    @abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """True if the backend can run a node. `submodules`: modules by name."""


@compatibility(is_backward_compatible=False)
class OperatorSupport(OperatorSupportBase):
    """Support table by target name. A value is None (any dtype), or a pair: dtypes of each positional argument (or None
    for any), and of keyword arguments.
    """

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        if self._support_dict[target] is None:
            return True
        by_place, by_name = self._support_dict[target]
        pairs = [*zip(node.args, by_place, strict=False)]
        pairs += [(node.kwargs[name], dtypes) for name, dtypes in by_name.items() if name in node.kwargs]
        return all(
            dtypes is None or not isinstance(arg, Node) or _get_arg_dtype(arg) in dtypes for arg, dtypes in pairs
        )


@compatibility(is_backward_compatible=False)
def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """Return an OperatorSupport from a function of submodules and node."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


@compatibility(is_backward_compatible=False)
def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return an OperatorSupport that is the conjunction of several."""
    return create_op_support(lambda modules, node: all(one.is_node_supported(modules, node) for one in op_support))


@compatibility(is_backward_compatible=False)
def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return an OperatorSupport that is the disjunction of several."""
    return create_op_support(lambda modules, node: any(one.is_node_supported(modules, node) for one in op_support))


@compatibility(is_backward_compatible=False)
class OpSupports:
    """Predefined predicates."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Reject nodes with an input of this dtype."""
        return create_op_support(
            lambda modules, node: all(_get_arg_dtype(arg) != dtype for arg in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Reject nodes with these names."""
        return create_op_support(lambda modules, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Node) -> Any:
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta["type"]
