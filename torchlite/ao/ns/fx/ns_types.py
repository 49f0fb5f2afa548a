"""Types of the comparison of graph modules."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from torchlite.fx import Node


class NSSingleResultValuesType(str, enum.Enum):  # noqa: UP042 - str() shows the member's name, as in PyTorch
    """The kind of a result: weights, or the outputs or inputs of a node."""

    WEIGHT = "weight"
    NODE_OUTPUT = "node_output"
    NODE_INPUT = "node_input"


class NSSubgraph(NamedTuple):
    """Nodes that follow each other: the first, the last, and the one that names what they compute."""

    start_node: Node
    end_node: Node
    base_op_node: Node


NSSingleResultType = dict[str, Any]
# By layer, kind of values and model.
NSResultsType = dict[str, dict[str, dict[str, list[NSSingleResultType]]]]
NSNodeTargetType = Callable | str
