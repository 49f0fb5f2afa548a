"""Backward pass of a captured call: recorded from its graph, replayed as a single autograd node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torchlite._dispatch import call
from torchlite._dispatch.autograd_graph import Node, OutputEdge, gradient_edge, raise_freed_error, root_meta_of
from torchlite._dispatch.dispatch_state import GLOBALS, SEQUENCE, recording
from torchlite._dispatch.hooks import PackedTensor
from torchlite._dispatch.interceptors import show_only_within
from torchlite._dispatch.numpy_errors import run_quietly
from torchlite._tensor import Tensor
from torchlite.autograd.engine import BackwardPass, RawMode, TensorMode, is_absent, run_backward
from torchlite.autograd.function import BackwardCFunction, Function
from torchlite.autograd.saved_values import raise_modified_error

from .exc import Unsupported
from .flatten_args import callable_name, flatten_result
from .function_purity import is_pure
from .guards import canonical_module_name
from .program_ir import HOST_VALUES, Program

_NO_DERIVATIVE = (NotImplementedError, RuntimeError)
# maximum number of recorded passes, one per result with history; one pass of a six-layer T5 takes about 0.1 s
_MAX_PASSES = 32


class _EqualToAnything(dict):
    """Set that contains every object: accepts all earlier results."""

    def __contains__(self, key: object) -> bool:
        return True


ANYTHING = _EqualToAnything()


@dataclass
class CapturedPass:
    """Steps from the gradients of results to those of outside tensors. grads: input slots by the node's output number.
    outputs: slots of the gradients, None where there is none.
    """

    program: Program
    grads: list[int | None]
    outputs: list[int | None]
    run: Any = None  # the compiled function


@dataclass
class CapturedBackward:
    """Backward of a captured call. `outputs` numbers the node's results, `wanted` the outside tensors of its edges."""

    outputs: list[int]  # numbers of the results
    shapes: list[tuple]
    wanted: list[int]  # numbers of the outside tensors
    is_freed: bool = False
    together: CapturedPass | None = None
    apart: list[CapturedPass] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)  # slots of the forward pass
    checked_outside: list[int] = field(default_factory=list)  # outside tensors whose memory is saved
    checked_results: list[int] = field(default_factory=list)
    error: Exception | None = None  # raised by every backward pass: an op has no derivative


class _RecordingPass(BackwardPass):
    """Backward pass that stops at the boundary of the call and does not accumulate into leaves or run hooks there."""

    def __init__(self, inside: set) -> None:
        super().__init__(RawMode, True, [])
        self.useful = inside


class GraphBoundary:
    """Subgraph recorded during a capture, and the nodes at its boundary."""

    def __init__(self, capture: Any, start: int) -> None:
        self.capture, self.start = capture, start
        self.forward_steps = capture.steps

    def record_backward_passes(self, tensors: list, results: list, leaves: list) -> CapturedBackward | None:
        """Return the recorded backward passes of some of the results."""
        results_of_call = [t for t in tensors if results[_leaf_index(leaves, t)].outside < 0]
        if not results_of_call:
            return None
        if GLOBALS["NODE_CREATED_HOOK"] is not None:
            raise Unsupported("anomalies are looked for")
        inside = self._find_nodes_of_call([gradient_edge(t) for t in results_of_call])
        if self.capture.is_part:
            _check_independent(inside, results_of_call)
        places = {
            key: i
            for i, t in reversed([*enumerate(self.capture.outside)])
            if (key := _edge_key(gradient_edge(t))) is not None
        }
        ends = self._find_boundary_tensors(inside, places, leaves)
        numbers = [_leaf_index(leaves, t) for t in results_of_call]
        found = CapturedBackward(numbers, [t._tl_array.shape for t in results_of_call], ends)
        if any(node._saved is None for node in inside):
            found.is_freed = True
            return found
        if len(results_of_call) > _MAX_PASSES:
            raise Unsupported(f"it returns more than {_MAX_PASSES} tensors with histories")
        parts = (
            [[i == j for j in range(len(results_of_call))] for i in range(len(results_of_call))]
            if len(results_of_call) > 1
            else []
        )
        try:
            found.together = self._record_backward_pass(results_of_call, [True] * len(results_of_call), inside, ends)
            found.apart = [self._record_backward_pass(results_of_call, part, inside, ends) for part in parts]
        except _NO_DERIVATIVE as error:
            if "not implemented" not in str(error) or not all(
                self._fail(results_of_call, part, inside, ends) for part in parts
            ):
                raise
            found.together, found.error = None, error.with_traceback(None)
            return found
        self._set_saved_slots(found, leaves, results)
        return found

    def _fail(self, *given: Any) -> bool:
        try:
            self._record_backward_pass(*given)
        except _NO_DERIVATIVE:
            return True
        return False

    def _find_nodes_of_call(self, starts: list) -> set:
        """Return the nodes that the call created."""
        pending = [_resolve_node(e) for e in starts]
        found = set(pending)
        for node in pending:  # grows during the loop
            _check_node_is_pure(node)
            for e in _flatten_edges(node._edges):
                other = _resolve_node(e)
                if other is not None and other._seq > self.start and other not in found:
                    found.add(other)
                    pending.append(other)
        return found

    def _find_boundary_tensors(self, inside: set, places: dict, leaves: list) -> list[int]:
        """Return the outside tensors at the boundary of the subgraph."""
        found: set[int] = set()
        for node in inside:
            for e in _flatten_edges(node._edges):
                if e is None or _resolve_node(e) in inside:
                    continue
                place = places.get(_edge_key(e))
                if place is not None:
                    found.add(place)
                elif _resolve_node(e) is not None or any(e is t for t in leaves):
                    raise Unsupported("its history goes back to a tensor that it does not get")
        return sorted(found)

    def _record_backward_pass(self, made: list, given: list, inside: set, ends: list) -> CapturedPass:
        """Record one backward pass."""
        capture = self.capture
        capture.steps = []
        known = dict(capture.names.slots)  # restored for the next pass
        run = _RecordingPass(inside)
        grads: list[int | None] = []
        try:
            with recording(False), _without_modes():
                for tensor, wanted in zip(made, given, strict=True):
                    if not wanted:
                        grads.append(None)
                        continue
                    capture.depth = 1
                    g = tensor._tl_kernels._full(tensor._tl_memory.shape, 1, tensor.dtype)
                    capture.depth = 0
                    grads.append(capture.new_slot(g).number)
                    run.accumulate(gradient_edge(tensor), g, tensor._tl_kernels)
                run.run()
            outputs = [self._gradient_slot_of(run, gradient_edge(capture.outside[i])) for i in ends]
            steps = capture.steps
        finally:
            capture.steps = self.forward_steps
            capture.names.restore(known)
        if capture.failure is not None:
            raise Unsupported(capture.failure)
        inputs = [n for n in grads if n is not None]
        return CapturedPass(Program(steps, inputs, {}, [n for n in outputs if n is not None]), grads, outputs)

    def _gradient_slot_of(self, run: Any, where: Any) -> int | None:
        """Return the slot of the gradient that reached a boundary tensor."""
        if isinstance(where, Tensor):
            g = run.leaves.get(id(where), (None, None))[1]
        elif where.__class__ is OutputEdge:
            g = (run.buffers.get(where.node) or {where.index: None})[where.index]
        else:
            g = run.buffers.get(where)
        if g is None:
            return None
        return self.capture.slot(
            g if g.__class__ is self.capture.table.array else self.capture.table.as_array(g)
        ).number

    def _set_saved_slots(self, found: CapturedBackward, leaves: list, results: list) -> None:
        """Set the slots that the forward pass saves, and the outside tensors to check for later changes."""
        capture, needed = self.capture, set()
        assert found.together is not None
        passes = [found.together, *found.apart]
        for one in passes:
            defined = {n for step in one.program.steps for n in step.makes()} | set(one.program.inputs)
            needed |= {n for step in one.program.steps for n in step.uses() if n not in defined}
            needed |= {n for n in one.program.outputs if n not in defined}
        found.saved = sorted(needed)
        for one in passes:
            one.program.inputs = [*found.saved, *one.program.inputs]
        names = capture.names
        owners = {names.memory[n] for n in found.saved if n in names.memory}
        found.checked_outside = [i for i, t in enumerate(capture.outside) if names.memory_of(t._tl_array) in owners]
        found.checked_results = [
            i
            for i, t in enumerate(leaves)
            if isinstance(t, Tensor) and results[i].outside < 0 and names.memory_of(t._tl_memory) in owners
        ]


def _check_independent(inside: set, results: list) -> None:
    """Raise Unsupported if a result is computed from another one: one node for both has no path between them."""
    keys = {_edge_key(gradient_edge(t)) for t in results}
    if any(_edge_key(e) in keys for node in inside for e in _flatten_edges(node._edges) if e is not None):
        raise Unsupported("a result is computed from another one")


class _NodeOpRecord:
    """Replacement for the op record in a node."""

    name = "CompiledFunction"
    outputs = None
    multi_output = aux_outputs = False
    saves_tensors = True
    nondiff: frozenset = frozenset()


class CompiledFunctionBackward(Node):
    """Autograd node of a replayed call."""

    __slots__ = ("_backward", "_again")
    _is_custom = True
    _skips_absent = True
    _backward: CapturedBackward
    _again: Any  # (function, args, kwargs, variant, outside tensors); None if the call cannot be repeated

    def name(self) -> str:
        return "CompiledFunctionBackward"

    def _run(self, run: Any, g: Any) -> tuple:
        """Return the gradients of the outside tensors."""
        how, mode = self._backward, run.mode
        if self._saved is None:
            raise_freed_error(self)
        if is_absent(g):
            return (None,) * len(how.wanted)
        if how.error is not None:
            raise type(how.error)(*how.error.args)
        for meta, expected, raw in self._counter or ():
            if meta.n != expected:
                raise_modified_error(raw, self, meta.n, expected)
        if mode.differentiable:
            return self._run_original_differentiably(g if len(how.outputs) > 1 else [g])
        grads = [x._tl_array if isinstance(x, Tensor) else x for x in (g if len(how.outputs) > 1 else [g])]
        saved = self._saved
        if saved and not run.retain:
            self._saved = self._counter = None  # frees each array after its last use in the pass
        found: list = [None] * len(how.wanted)
        if all(x is not None for x in grads):
            assert how.together is not None
            given = [*saved, *grads]
            del saved, grads, g
            found = _run_pass(how.together, given)
        else:
            for one, x in zip(how.apart, grads, strict=True):
                if x is not None:
                    more = _run_pass(one, [*saved, x])
                    found = [
                        b if a is None else a if b is None else RawMode.add(self._tl_kernels, a, b)
                        for a, b in zip(found, more, strict=True)
                    ]
        if mode is not RawMode and issubclass(mode, TensorMode):
            return tuple([None if x is None else call.wrap_array(self._tl_kernels, x) for x in found])
        return tuple(found)

    def _run_original_differentiably(self, grads: list) -> tuple:
        """Return differentiable gradients by running the original function. Raise RuntimeError if it drew random
        numbers or wrote memory.
        """
        if self._again is None:
            raise RuntimeError("torch.compile with aot_autograd does not currently support double backward")
        function, args, kwargs, variant, outside = self._again
        if not variant.is_unchanged():
            raise RuntimeError(
                "torch.compile: derivatives of derivatives need the function once more, and what it reads (a closure, "
                "a global, a module's attribute, a mode) is not what it was in the forward pass"
            )
        with recording(True):
            results = flatten_result(function(*args, **kwargs), ANYTHING)[0]
            # Numbers and lists that the call returns are no tensors of this run.
            hosts = [i for i, r in enumerate(variant.captured.results) if r.kind in HOST_VALUES]
            numbers = [i - sum(host < i for host in hosts) for i in self._backward.outputs]
            used = [(results[i], g) for i, g in zip(numbers, grads, strict=True) if g is not None]
            inputs = [outside[i] for i in self._backward.wanted]
            return tuple(run_backward([t for t, _ in used], [g for _, g in used], True, True, inputs, False))


def _run_pass(one: CapturedPass, given: list) -> list:
    """Return the gradients at the boundary; empties the list `given` of its inputs."""
    raws = iter(run_quietly(one.run, given))
    return [None if n is None else next(raws) for n in one.outputs]


def make_replay_node(
    how: CapturedBackward, table: Any, outside: tuple, saved: tuple, results: list
) -> CompiledFunctionBackward:
    """Create the node of a replay and attach it to the results that require gradients."""
    node: Any = object.__new__(CompiledFunctionBackward)
    node._op, node._backward, node._tl_kernels = _NodeOpRecord, how, table
    node._edges = tuple([gradient_edge(outside[i]) for i in how.wanted])
    node._versions = ()
    node._out = node._hooks = node._trace = None
    node._saved = None if how.is_freed else (saved or ())
    node._seq = next(SEQUENCE)
    tensors = [results[i] for i in how.outputs]
    if len(tensors) == 1:
        node._shape = tensors[0]._tl_array.shape
        tensors[0]._tl_node = node
    else:
        node._shape = tuple([t._tl_array.shape for t in tensors])
        for i, tensor in enumerate(tensors):
            tensor._tl_node = OutputEdge(node, i)
    counters = [(root_meta_of(outside[i]), outside[i]._tl_array) for i in how.checked_outside]
    counters += [(root_meta_of(results[i]), results[i]._tl_array) for i in how.checked_results]
    node._counter = tuple([(meta, meta.n, raw) for meta, raw in counters])
    return node


def _check_node_is_pure(node: Any) -> None:
    """Raise Unsupported if a node runs impure user code."""
    called = [value.unpack for value in (*(node._saved or ()), *(node._out or ())) if value.__class__ is PackedTensor]
    if node._is_custom:
        if not isinstance(node, BackwardCFunction) or not issubclass(node._forward_cls, Function):
            raise Unsupported(f"{node.name()} has a part in it")
        cls = node._forward_cls
        if canonical_module_name(cls.__module__) == "torchlite.utils._backward_hook":
            raise Unsupported("a module has hooks for its backward pass")
        called.append(cls.vjp if cls.vjp is not Function.vjp else cls.backward)
    hooks = node._hooks
    if hooks is not None:
        if any(tensor() is not None for tensor in hooks.retain.values()):
            raise Unsupported("a tensor that is not returned retains its gradient")
        called += [hook for of in hooks.tensor.values() for hook in of.values()]
        called += [*hooks.pre.values(), *hooks.post.values()]
    for function in called:
        if not is_pure(function):
            raise Unsupported(f"{callable_name(function)} of its backward pass may do more than compute")


def _without_modes() -> show_only_within:
    """Disable the modes active around the call: backward passes normally run outside them."""
    return show_only_within([])


def _flatten_edges(edges: Any) -> Any:
    for item in edges:
        if item.__class__ is tuple:
            yield from item
        else:
            yield item


def _resolve_node(where: Any) -> Any:
    return where.node if where.__class__ is OutputEdge else where if isinstance(where, Node) else None


def _edge_key(where: Any) -> Any:
    return None if where is None else (id(where.node), where.index) if where.__class__ is OutputEdge else id(where)


def _leaf_index(leaves: list, tensor: Any) -> int:
    return next(i for i, t in enumerate(leaves) if t is tensor)
