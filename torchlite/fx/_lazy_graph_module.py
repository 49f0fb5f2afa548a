"""GraphModule that compiles its code lazily at first use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._codegen import PythonCode
from ._compatibility import compatibility
from ._generated_source import import_block
from .graph_module import GraphModule, reduce_graph_module

__all__: list[str] = []


class _State(threading.local):
    use = False
    skip = False


_STATE = _State()


@compatibility(is_backward_compatible=False)
@contextmanager
def _force_skip_lazy_graph_module() -> Iterator[None]:
    """Compile all modules immediately within the context, regardless of `_use_lazy_graph_module`."""
    before, _STATE.skip = _STATE.skip, True
    try:
        yield
    finally:
        _STATE.skip = before


@compatibility(is_backward_compatible=False)
@contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Make new modules compile lazily or immediately within the context."""
    before = _STATE.use
    _STATE.use = should_use and not _STATE.skip
    try:
        yield
    finally:
        _STATE.use = before


@compatibility(is_backward_compatible=False)
def _get_graph_module_cls() -> type[GraphModule]:
    return _LazyGraphModule if _STATE.use else GraphModule


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> GraphModule:
    """Return a GraphModule of the class in use."""
    return (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)


@compatibility(is_backward_compatible=False)
class _LazyGraphModule(GraphModule):
    """GraphModule that marks its code as stale and regenerates it at first use."""

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> GraphModule:
        """Return the module as an instance of this class."""
        return gm if isinstance(gm, _LazyGraphModule) else _LazyGraphModule(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: Any) -> None:
        """Regenerate the code of a lazy module."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def real_recompile(self) -> None:
        """Regenerate the code if it is stale."""
        if self._needs_recompile():
            self._real_recompile()

    def _generate_waiting_code(self) -> None:
        self.real_recompile()

    @classmethod
    def _needs_recompile(cls) -> bool:
        return cls.forward is cls._lazy_forward

    def _lazy_forward(self, *args: Any, **kwargs: Any) -> Any:
        self.real_recompile()
        return self(*args, **kwargs)

    forward = _lazy_forward

    def _real_recompile(self) -> PythonCode:
        return super().recompile()

    @classmethod
    def recompile(cls) -> Any:
        """Mark the code as stale."""
        cls.forward = cls._lazy_forward  # type: ignore[method-assign]

    def __reduce__(self) -> Any:
        code = self._real_recompile()
        body = {name: value for name, value in self.__dict__.items() if name != "_graph"}
        return reduce_graph_module, (body, import_block(code.globals))

    @property
    def code(self) -> str:
        """Return the Python code of `forward`."""
        self.real_recompile()
        return super().code

    def __str__(self) -> str:
        self.real_recompile()
        return super().__str__()
