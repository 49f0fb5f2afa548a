"""What a pass is, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ..._compatibility import compatibility

__all__ = ["PassBase", "PassResult"]


@compatibility(is_backward_compatible=False)
class PassResult(NamedTuple):
    """The module after a pass, and whether it changed."""

    graph_module: Any
    modified: bool


@compatibility(is_backward_compatible=False)
class PassBase(ABC):
    """A pass: classes derive from it and write `call`, and may check what must hold before and after.

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
        """The pass itself."""

    def requires(self, graph_module: Any) -> None:
        """Raise where the module is not fit for the pass. `graph_module` has no effect; subclasses check it."""
        return

    def ensures(self, graph_module: Any) -> None:
        """Raise where the module is not as the pass should leave it. `graph_module` has no effect; subclasses check it."""
        return
