"""Compilers of a program's own: calls given to them as `torch.fx` graphs, once for each kind of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlite._device.generators import default_states, set_default_states

from .frames import Frame
from .trees import flattened, with_tensors


class _All(dict):
    """Any object is itself."""

    def __contains__(self, key: object) -> bool:
        return True


class GraphFrame(Frame):
    """A compiled function whose calls `compiler(graph module, example inputs)` makes functions of. The graph's inputs
    are the tensors among the arguments, in their order; its targets are overloads of PyTorch's library, modules'
    tensors are its attributes, and it returns a tuple of tensors. What is more than computing (writes to tensors that
    live on, elements that decide) runs as it is written.
    """

    kind_of = staticmethod(lambda key: key)
    needed = 0  # calls of a size before it gets a graph: what a call costs without one, nobody knows

    def __init__(
        self,
        function: Any,
        name: str,
        compiler: Callable,
        fullgraph: bool = False,
        limit: int | None = None,
        dynamic: bool | None = None,
    ) -> None:
        super().__init__(function, name, fullgraph, limit, dynamic=dynamic)
        self.compiler = compiler
        self.graphs: list[Any] = []

    def _recorded(self, key: Any, tensors: list, objects: list, modes: tuple, args: tuple, kwargs: dict) -> Any:
        """A call unlike those before: it runs once as it is written, to see what it does, and as a graph."""
        states = default_states()
        result = super()._recorded(key, tensors, objects, modes, args, kwargs)
        variant = self.variants.get(key, [None])[-1]
        if variant is None or variant.replay is not None:
            return result
        why = _why_not(variant.captured)
        if why:
            self._give_up(key, why, self._definition())
            return result
        variant.replay = self._compiled(variant.captured, tensors, args, kwargs)
        set_default_states(states)
        return variant.replay((self.function, args, kwargs), *tensors)

    def _compiled(self, captured: Any, tensors: list, args: tuple, kwargs: dict) -> Any:
        """What the compiler makes of the call."""
        from torchlite.fx.experimental.proxy_tensor import make_fx

        function = self.function

        def flat(*given: Any) -> tuple:
            inputs = iter(given)
            result = function(*with_tensors(args, inputs), **with_tensors(kwargs, inputs))
            return tuple(flattened(result, _All())[0])

        graph = make_fx(flat)(*tensors)
        self.graphs.append(graph)
        run, rebuild = self.compiler(graph, list(tensors)), captured.rebuild

        def replay(again: tuple, *given: Any) -> Any:
            return rebuild(list(run(*given)))

        return replay


def _why_not(captured: Any) -> str:
    """Why a captured call is no graph of ops alone; an empty text where it is."""
    if captured.bumps or captured.grads:
        return "it writes to tensors that live on, which graphs for compilers of a program's own do not"
    if any(step.kind != "kernel" for step in captured.program.steps) or any(r.kind == "item" for r in captured.results):
        return "it reads elements, or an optimizer steps, which graphs for compilers of a program's own do not"
    return ""
