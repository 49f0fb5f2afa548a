"""Custom `torch.compile` backends: passes each kind of call to a user's compiler as an FX graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlite._device.generators import copy_default_generators, use_copied_generators
from torchlite._dispatch.autograd_graph import nodes_created_since
from torchlite._dispatch.dispatch_state import SEQUENCE
from torchlite._settings.compiler_state import THREAD_STATE
from torchlite._tensor import Tensor
from torchlite.autograd.grad_mode import _unsafe_preserve_version_counter

from .compiled_function import PART_LIMIT, CompiledFunction
from .exc import BackendCompilerFailed
from .flatten_args import flatten_result, replace_tensors
from .program_ir import HOST_VALUES


class _EveryObject(dict):
    """Mapping of every object to itself."""

    def __contains__(self, key: object) -> bool:
        return True


class GraphCompiledFunction(CompiledFunction):
    """Compiled function that calls `compiler(graph module, example inputs)` for each kind of call. The graph's inputs
    are the argument tensors in order, its targets ATen overloads. Module tensors are attributes, and it returns a tuple
    of tensors. A call that a graph of ops cannot express (custom gradients, data-dependent control flow) runs in parts,
    each of which has a graph.
    """

    structure_key = staticmethod(lambda key: key)
    keeps_logs = keeps_reads = shares_sizes = False
    needed = 0  # calls of a size before it gets a graph; the cost of an eager call is unknown

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

    def _record_first_call(
        self, key: Any, tensors: list, objects: list, modes: tuple, args: tuple, kwargs: dict
    ) -> Any:
        """Run a call with a new key once eagerly, to observe its side effects, and once to make the graph."""
        if not self.fullgraph and not THREAD_STATE.fails and self._foresee_breaks(args, kwargs):
            self.eager.add(key)
            return self._run_as_written(args, kwargs)
        copies, start = copy_default_generators(), next(SEQUENCE)
        result = super()._record_first_call(key, tensors, objects, modes, args, kwargs)
        variants = self.variants.get(key)
        if not variants or variants[-1].captured is None or variants[-1].replay is not None:
            return result
        variant, captured = variants[-1], variants[-1].captured
        outside = self._outside_tensors(variant, tensors)
        written = [outside[i] for i in captured.bumps if i >= 0]
        why = _why_not_fx_graph(captured) or _why_custom_gradients(nodes_created_since(start, _find_tensors_in(result)))
        graph = None if why else self._trace_graph(tensors, args, kwargs, written)
        if graph is None:
            self._give_up(key, why or "it cannot be recorded as a graph of PyTorch's library", self._definition())
            return result
        try:
            run, rebuild = self.compiler(graph, list(tensors)), captured.rebuild
        except Exception as error:  # the user's compiler may raise anything
            del self.variants[key]
            raise BackendCompilerFailed(self.compiler, error) from error

        def replay_graph(again: tuple, *given: Any) -> Any:
            return rebuild(list(run(*given)))

        variant.replay = replay_graph
        if written:
            return result
        with use_copied_generators(copies):  # draw the random numbers of the first run again
            return replay_graph((self.function, args, kwargs), *tensors)

    def _foresee_breaks(self, args: tuple, kwargs: dict) -> bool:
        """Split the function at the breaks that a call will have. Return whether there are any."""
        from .break_prediction import BreakPrediction
        from .parted_function import PartTree

        if self.part is not None:
            return False
        tree = self.tree or PartTree(self)
        before = len(tree.breaks)
        if not BreakPrediction(tree).visit_call(self.function, args, kwargs)[0]:
            return False
        self.tree = tree
        reasons = [f"{one.reason} ({one.place})" for one in tree.breaks[before:]]
        if reasons and self.warns:
            self._warn(reasons[0], True)
        self.reasons += reasons
        return True

    def _make_part(self, function: Any) -> CompiledFunction:
        limit = max(self._recompile_limit(), PART_LIMIT)
        made = GraphCompiledFunction(function, self.name, self.compiler, False, limit, self.dynamic)
        made.graphs = self.graphs
        return made

    def _trace_graph(self, tensors: list, args: tuple, kwargs: dict, written: list) -> Any:
        """Return the call's graph, None if it has none. Restore random state and written tensors."""
        from torchlite.fx.experimental.proxy_tensor import make_fx

        function = self.function

        def call_with_flat_tensors(*given: Any) -> tuple:
            inputs = iter(given)
            result = function(*replace_tensors(args, inputs), **replace_tensors(kwargs, inputs))
            return tuple(flatten_result(result, _EveryObject())[0])

        contents = [t.detach().clone() for t in written]
        with _unsafe_preserve_version_counter(tuple(written)):
            try:
                with use_copied_generators():
                    graph = make_fx(call_with_flat_tensors, pre_dispatch=True)(*tensors)
            except Exception:  # the program ran without error before, so the recording failed
                return None
            finally:
                for tensor, content in zip(written, contents, strict=True):
                    tensor.data.copy_(content)
        self.graphs.append(graph)
        return graph


def _find_tensors_in(result: Any) -> list:
    return [leaf for leaf in flatten_result(result, _EveryObject())[0] if isinstance(leaf, Tensor)]


def _why_custom_gradients(nodes: list) -> str:
    """Return why this history is not expressible as a graph of ops, an empty string if it is."""
    if any(node._is_custom for node in nodes):
        return "it runs a custom Function, which graphs for compilers of a program's own do not"
    if any(node._hooks is not None for node in nodes):
        return "it hooks gradients, which graphs for compilers of a program's own do not"
    return ""


def _why_not_fx_graph(captured: Any) -> str:
    """Return why a captured call is not expressible as a graph of ops, an empty string if it is."""
    if captured.grads or any(i < 0 for i in captured.bumps):
        return "it writes to gradients, which graphs for compilers of a program's own do not"
    if any(step.kind != "kernel" for step in captured.program.steps) or any(
        r.kind in HOST_VALUES for r in captured.results
    ):
        return "it reads elements, or an optimizer steps, which graphs for compilers of a program's own do not"
    return ""
