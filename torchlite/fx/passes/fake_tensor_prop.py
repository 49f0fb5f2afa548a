"""Propagates fake tensors through a graph."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from ..._tensor import Tensor
from ...nn.modules.module import Module
from ...utils._pytree import tree_leaves
from .._compatibility import compatibility
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


@compatibility(is_backward_compatible=False)
class FakeTensorProp(Interpreter):
    """Run a graph with fake tensors and store each node's value in `meta["val"]`.

    mode: creates fake tensors by `from_tensor`; without one they are meta tensors.
    """

    def __init__(self, module: Any, mode: Any = None, *, check_consistency: bool = False) -> None:
        super().__init__(module)
        self._mode = mode
        self.check_consistency = check_consistency

    def _as_fake(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return value.to("meta") if self._mode is None else self._mode.from_tensor(value)

    def fetch_attr(self, target: str) -> Any:
        found = super().fetch_attr(target)
        if not isinstance(found, Module):
            return self._as_fake(found)
        tensors = [tensor for kind in (found.parameters(), found.buffers()) for tensor in kind]
        return copy.deepcopy(found, {id(tensor): self._as_fake(tensor) for tensor in tensors})

    def run_node(self, n: Node) -> Any:
        """Return and store a node's value."""
        result = super().run_node(n)
        if any(isinstance(value, (Tensor, int, float, bool)) for value in tree_leaves(result)):
            n.meta["val"] = map_aggregate(result, lambda value: value)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the module on sample inputs; return the fake result."""
        return self.propagate_dont_convert_inputs(*map(self._as_fake, args))

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the module on fake inputs; return the fake result."""
        with contextlib.nullcontext() if self._mode is None else self._mode:
            return super().run(*args)
