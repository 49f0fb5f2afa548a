"""PassBase and PassResult: interface of graph passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ..._compatibility import compatibility

__all__ = ["PassBase", "PassResult"]


@compatibility(is_backward_compatible=False)
class PassResult(NamedTuple):
    """Module after a pass, and whether it changed."""

    graph_module: Any
    modified: bool


@compatibility(is_backward_compatible=False)
class PassBase(ABC):
    """Base class of passes: subclasses implement `call` and may check pre- and postconditions.

    >>> import torchlite as torch
    >>> from torchlite.fx.passes.infra.pass_base import PassBase, PassResult
    >>> class Nothing(PassBase):
    ...     def call(self, graph_module):
    ...         return PassResult(graph_module, False)
    >>> Nothing()(torch.fx.symbolic_trace(lambda x: x)).modified
    False
    """

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """Run the pass."""

    def requires(self, graph_module: Any) -> None:
        """Check the preconditions; raise if violated. `graph_module` has no effect; subclasses read it."""
        return

    def ensures(self, graph_module: Any) -> None:
        """Check the postconditions; raise if violated. `graph_module` has no effect; subclasses read it."""
        return
