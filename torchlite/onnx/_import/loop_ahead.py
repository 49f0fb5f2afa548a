"""What the steps of a loop compute from their numbers alone, for many steps at once: a body in two parts.

Converters write recurrent layers as loops. The body takes a step's row of the inputs and multiplies it with weights.
The part that depends on counters and on values from outside, but on no state, runs ahead under `vmap`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite.fx import Graph, Node

_STEPS = 64  # that are computed ahead
# By the optimized function of a body, its parts.
_SPLIT: weakref.WeakKeyDictionary[Any, SplitBody | None] = weakref.WeakKeyDictionary()


class SplitBody:
    """A body of a loop in two parts. fixed: the places of carried values that never change.

    `starts` are the step's number and the counters: carried values to which each step adds a constant. `outside` are
    the fixed values and those from outside of the loop. `ahead` gets both, and `later` gets its results, the state, and
    `outside`. `condition` is None if the loop runs as often as it is told.
    """

    def __init__(self, body: Any, carried: int, fixed: tuple[int, ...]) -> None:
        nodes = list(body.graph.nodes)
        number, going, *given = [node for node in nodes if node.op == "placeholder"]
        results = nodes[-1].args[0] if isinstance(nodes[-1].args[0], (tuple, list)) else (nodes[-1].args[0],)
        values, made = given[:carried], results[1:]
        added = {k: _find_added(values[k], made[k]) for k in range(carried) if k not in fixed}
        self.counters = {k: _compute_constant(body, node) for k, node in added.items() if node is not None}
        self.fixed, self.state = fixed, [k for k in added if k not in self.counters]
        starts = [number, *(values[k] for k in self.counters)]
        outside = [*(values[k] for k in fixed), *given[carried:]]
        known = _find_computable(nodes, {*starts, *outside})
        kept = [*(made[k] for k in self.state), *made[carried:]]
        others = [node for node in nodes if node.op not in ("placeholder", "output") and node not in known]
        needed = {node for one in others for node in one.all_input_nodes} | set(kept)
        between = [node for node in nodes if node in needed and node in known and node not in outside]
        between = [node for node in between if node.op == "placeholder" or node.all_input_nodes]
        self.is_worthwhile = (
            any(_is_product(node) for node in between)
            and going not in needed
            and (results[0] is going or results[0] in known)
            and all(isinstance(value, Node) for value in kept)
        )
        if self.is_worthwhile:
            inputs = [*starts, *outside]
            of_steps = len(starts)
            self.condition = None
            if results[0] is not going:
                self.condition = _Ahead(_extract(body, inputs, [results[0]]), of_steps)
            self.ahead = _Ahead(_extract(body, inputs, between), of_steps)
            self.later = _extract(body, [*between, *(values[k] for k in self.state), *outside], kept)
            self.run_later = CALLBACKS.inference_function(self.later, _call)
            self.run_later.is_part = True

    def serves(self, carried: tuple) -> bool:
        """True for counters of whole numbers, whose sums are exact."""
        return all(
            carried[k].dtype == step.dtype and not step.dtype.is_floating_point for k, step in self.counters.items()
        )

    def outside(self, carried: tuple, reads: tuple) -> tuple:
        return (*(carried[k] for k in self.fixed), *reads)

    def count(self, carried: tuple, numbers: Tensor) -> list[Tensor]:
        """Return the counters in the steps with these numbers, in a first dimension."""
        found = []
        for k, step in self.counters.items():
            by = step.to(numbers.device).reshape((1,) * carried[k].ndim)
            found.append(carried[k] + numbers.to(step.dtype).reshape(-1, *(1,) * carried[k].ndim) * by)
        return found

    def compute_ahead(self, carried: tuple, outside: tuple, first: int, count: int) -> tuple[list[tuple], bool]:
        """Return what `later` gets in some steps from the first on, up to the last one that runs, and whether the loop
        goes on.
        """
        device = outside[0].device if outside else None
        numbers = torch.arange(first, first + count, dtype=torch.int64, device=device)
        starts, going = [numbers, *self.count(carried, numbers)], True
        if self.condition is not None:
            goes = self.condition(*starts, *outside)[0].reshape(count).tolist()
            count = goes.index(False) + 1 if False in goes else count
            going, starts = goes[count - 1], [value[:count] for value in starts]
        return list(zip(*(value.unbind() for value in self.ahead(*starts, *outside)), strict=True)), going


class _Ahead:
    """A part of which the first inputs have a dimension of steps, and so have the results."""

    def __init__(self, part: Any, of_steps: int) -> None:
        self.part, self.of_steps = part, of_steps
        self.function = CALLBACKS.inference_function(part, self._run)
        self.function.is_part = True

    def _run(self, part: Any, *args: Any) -> Any:
        return torch.vmap(part, tuple([0 if k < self.of_steps else None for k in range(len(args))]))(*args)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


def find_split(function: Any, carried: tuple, fixed: tuple[int, ...]) -> SplitBody | None:
    """Return the parts of an optimized body if it computes products ahead."""
    if function not in _SPLIT:
        split = SplitBody(function.module(), len(carried), fixed)
        _SPLIT[function] = split if split.is_worthwhile else None
    found = _SPLIT[function]
    return found if found is not None and found.serves(carried) else None


def _call(body: Any, *args: Any) -> Any:
    return body(*args)


def _is_product(node: Node) -> bool:
    return "matmul" in getattr(node.target, "__name__", "").lower()


def _find_added(given: Node, made: Any) -> Node | None:
    """Return the constant that is added to a carried value, if that is all that happens to it."""
    if not isinstance(made, Node) or not getattr(made.target, "__name__", "").startswith("Add"):
        return None
    others = [value for value in made.args if value is not given]
    if len(made.args) != 2 or len(others) != 1 or not isinstance(others[0], Node) or others[0].all_input_nodes:
        return None
    return others[0] if others[0].op in ("get_attr", "call_function") else None


def _compute_constant(body: Any, node: Node) -> Tensor:
    value = getattr(body, str(node.target)) if node.op == "get_attr" else node.target(*node.args, **node.kwargs)  # type: ignore[operator]
    return value


def _find_computable(nodes: list[Node], known: set[Node]) -> set[Node]:
    """Return the nodes that compute on known ones and on constants alone."""
    found = set(known)
    for node in nodes:
        if node.op == "get_attr" or node.op == "call_function" and found.issuperset(node.all_input_nodes):
            found.add(node)
    return found


def _extract(body: Any, inputs: list[Node], results: list[Node]) -> Any:
    """Return a module of the nodes of a body that lead from inputs to results."""
    wanted, stack = set(inputs), list(results)
    while stack:
        node = stack.pop()
        if node not in wanted:
            wanted.add(node)
            stack += node.all_input_nodes
    graph = Graph()
    made: dict[Node, Node] = {}
    for node in inputs:
        made[node] = graph.placeholder(f"given_{len(made)}")
    for node in body.graph.nodes:
        if node in wanted and node not in made:
            made[node] = graph.node_copy(node, made.__getitem__)
    graph.output(tuple([made[node] for node in results]))
    return body.make_part(graph)


def run_ahead(
    split: SplitBody, make_step: Callable, most: int | None, carried: tuple, reads: tuple, scanned: int
) -> Any:
    """Run a loop whose condition holds at first. Return its last carried values but for the fixed ones, and what each
    step gives besides. make_step: gives the function of a step, of its varying arguments.
    """
    outside = split.outside(carried, reads)
    state = [carried[k] for k in split.state]
    found: list[list] = [[] for _ in range(scanned)]
    run_step, first, going = make_step(split.run_later, outside), 0, True
    while going and (most is None or first < most):
        given, going = split.compute_ahead(
            carried, outside, first, _STEPS if most is None else min(_STEPS, most - first)
        )
        for values in given:
            results = run_step(*values, *state)
            state = list(results[: len(state)])
            for kept, value in zip(found, results[len(state) :], strict=True):
                kept.append(value)
        first += len(given)
    counters = split.count(carried, torch.tensor([first], device=outside[0].device if outside else None))
    last = dict(zip(split.counters, [value[0] for value in counters], strict=True)) | dict(
        zip(split.state, state, strict=True)
    )
    return [last[k] for k in sorted(last)], found
