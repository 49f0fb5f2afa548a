"""ConstantTensors: the tensors of a function's state that are constants of a replay, and the test of these."""

from __future__ import annotations

import operator
from typing import Any

from torchlite._dispatch.autograd_graph import memory_counter_of
from torchlite._tensor.shared_memory import mapping_of

from .alias_analysis import AliasAnalysis
from .program_ir import CapturedCall
from .tensor_guards import TensorSource

_read_array = operator.attrgetter("_tl_array")
_read_node = operator.attrgetter("_tl_node")
_read_count = operator.attrgetter("n")
_read_other_changes = operator.attrgetter("others")


class ConstantTensors:
    """Tensors with the memory, the version and the node that they have now."""

    def __init__(self, tensors: list[Any]) -> None:
        self.tensors = tensors
        self.arrays, self.nodes = [*map(_read_array, tensors)], [*map(_read_node, tensors)]
        self.counters = [*map(memory_counter_of, tensors)]
        self.counts, self.others = [*map(_read_count, self.counters)], [*map(_read_other_changes, self.counters)]

    def is_same(self) -> bool:
        """True if no tensor was written or got other memory."""
        return (
            all(map(operator.is_, map(_read_array, self.tensors), self.arrays))
            and [*map(_read_count, self.counters)] == self.counts
            and [*map(_read_other_changes, self.counters)] == self.others
            and all(map(operator.is_, map(_read_node, self.tensors), self.nodes))
        )


def has_gradients(captured: CapturedCall) -> bool:
    """True if a call has a backward pass, or reads or writes gradients."""
    return (
        captured.backward is not None
        or bool(captured.grads)
        or captured.reads_gradients
        or any(step.kind == "object" for step in captured.program.steps)
    )


def find_constant_tensors(captured: CapturedCall, sources: list[TensorSource]) -> set[int]:
    """Return the places in `sources` of the tensors that a replay of a call without gradients can take for constants:
    the call neither writes nor returns their memory, and nobody else can write it without a count.
    """
    program = captured.program
    memory = AliasAnalysis(program, captured.memory)
    owners = [i for result in captured.results for i in (result.outside, result.shares) if i >= 0]
    fixed = memory.written.union(map(memory.of, owners), map(memory.of, program.outputs))
    return {
        place
        for place, source in enumerate(sources)
        if source.held is not None
        and memory.of(place) not in fixed
        and not memory_counter_of(source.held).lent
        and not getattr(mapping_of(source.held._tl_array), "shared", False)
    }
