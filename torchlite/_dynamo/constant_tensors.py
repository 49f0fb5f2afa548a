"""ConstantTensors: the tensors of a function's state that are constants of a replay, and the test of these."""

from __future__ import annotations

from typing import Any

from torchlite._dispatch.autograd_graph import memory_counter_of
from torchlite._tensor.shared_memory import mapping_of

from .alias_analysis import AliasAnalysis
from .compile_source import define_function
from .program_ir import CapturedCall
from .tensor_guards import TensorSource


class ConstantTensors:
    """Tensors with the memory, version and node that they have now. `is_same` returns True if no tensor was written
    since, or got other memory.
    """

    def __init__(self, tensors: list[Any]) -> None:
        self.tensors = tensors
        self.is_same = _compile_test(tensors)


def _compile_test(tensors: list[Any]) -> Any:
    space: dict[str, Any] = {}
    tests = []
    for i, tensor in enumerate(tensors):
        counter = memory_counter_of(tensor)
        space |= {f"t{i}": tensor, f"array{i}": tensor._tl_array, f"node{i}": tensor._tl_node, f"counter{i}": counter}
        tests += [
            f"t{i}._tl_array is array{i} and t{i}._tl_node is node{i}",
            f"counter{i}.n == {counter.n} and counter{i}.others == {counter.others}",
        ]
    condition = " and\n        ".join(tests) or "True"
    return define_function("is_same", f"def is_same():\n    return (\n        {condition}\n    )\n", space)


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
