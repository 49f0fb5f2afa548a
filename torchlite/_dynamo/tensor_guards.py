"""Tensor guards: generates the check that argument tensors and held tensors are as captured."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torchlite._dispatch.autograd_graph import grad_of, root_meta_of
from torchlite._dispatch.call import Tensor
from torchlite._dispatch.dispatch_state import LEAF

from .capture import version_counter_groups
from .compile_source import define_function
from .program_ir import CapturedCall


class TensorSource:
    """Source of an outside tensor: argument number `argument`, else the object `held`."""

    __slots__ = ("argument", "held")

    def __init__(self, argument: int, held: Any = None) -> None:
        self.argument, self.held = argument, held

    def text(self, place: int) -> str:
        """Return the expression of the tensor in generated source."""
        return f"t{self.argument}" if self.argument >= 0 else f"held{place}"


def compile_tensor_guard(
    tensors: list,
    sources: list[TensorSource],
    outside: list,
    captured: CapturedCall,
    varying: dict[int, dict] | None = None,
    constants: Collection[int] = (),
) -> Any:
    """Return a function that checks that argument tensors and held tensors are as captured. `varying` gives, by
    position in `outside`, size ranges of dynamic dimensions. The tensors at `constants` have a test of their own.
    """
    space: dict[str, Any] = {"LEAF": LEAF, "root_of": root_meta_of}
    tests = []
    twins: dict[int, int] = {}
    groups = _VersionGroups(outside, sources, captured) if captured.bumps else None
    for i, tensor in enumerate(tensors):
        first = next(j for j, other in enumerate(tensors) if other is tensor)
        source_index = next((k for k, s in enumerate(sources) if s.held is tensor), None)
        if first < i:
            tests.append(f"t{i} is t{first}")
        elif source_index is not None:
            tests.append(f"t{i} is held{source_index}")
    for k, (source, tensor) in enumerate(zip(sources, outside, strict=True)):
        name = source.text(k)
        if source.held is not None:
            space[f"held{k}"] = tensor
        counters = [] if groups is None else groups.test_expressions(k)
        if k in constants:
            tests += counters
            continue
        tests += _tensor_test_expressions(name, str(k), tensor, space) + counters
        sizes = None if varying is None or source.argument < 0 else varying[k]
        tests += (
            _layout_test_expressions(name, str(k), tensor, space)
            if sizes is None
            else _size_test_expressions(name, tensor, sizes)
        )
        twin = twins.setdefault(id(tensor._tl_array), k)
        if twin != k:
            tests.append(f"{name}._tl_array is {sources[twin].text(twin)}._tl_array")
        if captured.reads_gradients and (tensor._tl_node is LEAF or captured.gradients[k] is not None):
            is_used = -1 - k in captured.program.inputs and sizes is None
            tests.append(_gradient_test_expression(name, captured.gradients[k], is_used, space))
    parameters = ", ".join(f"t{i}" for i in range(len(tensors)))
    condition = " and\n        ".join(tests) or "True"
    return define_function("guard", f"def guard({parameters}):\n    return (\n        {condition}\n    )\n", space)


def _tensor_test_expressions(name: str, number: str, tensor: Any, space: dict) -> list[str]:
    space[f"class{number}"], space[f"table{number}"] = tensor.__class__, tensor._tl_kernels
    space[f"dtype{number}"] = tensor.dtype
    node = tensor._tl_node
    tests = [
        f"{name}.__class__ is class{number}",
        f"{name}._tl_kernels is table{number}",
        f"{name}.dtype is dtype{number}",
    ]
    if node is None or node is LEAF:
        tests.append(f"{name}._tl_node is {'None' if node is None else 'LEAF'}")
    else:
        tests.append(f"{name}._tl_node is not None and {name}._tl_node is not LEAF")
    return tests


def _layout_test_expressions(name: str, number: str, tensor: Any, space: dict) -> list[str]:
    space[f"strides{number}"] = tensor._tl_array.strides
    return [
        f"{name}._tl_array.shape == {tuple(tensor._tl_array.shape)!r}",
        f"{name}._tl_array.strides == strides{number}",
    ]


def _size_test_expressions(name: str, tensor: Any, varying: dict) -> list[str]:
    """Return the size checks of a tensor with dynamic dimensions."""
    tests = [f"len({name}._tl_array.shape) == {tensor.dim()}"]
    for dim, size in enumerate(tensor._tl_array.shape):
        least, largest = varying.get(dim, (size, size))
        if least is not None:
            tests.append(f"{name}._tl_array.shape[{dim}] >= {least}")
        if largest is not None:
            tests.append(f"{name}._tl_array.shape[{dim}] <= {largest}")
    return tests


class _VersionGroups:
    """Writes checks that tensors with a shared version counter still share it, and do not share one that the call
    changes with others.
    """

    def __init__(self, outside: list, sources: list[TensorSource], captured: CapturedCall) -> None:
        self.firsts, self.sources = version_counter_groups(outside), sources
        groups = range(len(outside)) if min(captured.bumps, default=0) < 0 else captured.bumps  # below 0: gradients
        self.written = {self.firsts[i] for i in groups}
        self._names: dict[int, str] = {}  # of the counters that earlier checks have looked up

    def test_expressions(self, k: int) -> list[str]:
        firsts, sources = self.firsts, self.sources
        first = firsts[k]
        if first < k:
            return [f"{self._counter(k)} is {self._counter(first)}"]
        given, written = sources[k].argument >= 0, k in self.written
        return [
            f"{self._counter(k)} is not {self._counter(j)}"
            for j in range(k)
            if (given or sources[j].argument >= 0) and firsts[j] == j and (written or j in self.written)
        ]

    def _counter(self, place: int) -> str:
        """Return the expression of a tensor's counter, which the first one keeps in a variable."""
        if place in self._names:
            return self._names[place]
        self._names[place] = f"root{place}"
        return f"(root{place} := root_of({self.sources[place].text(place)}))"


def _gradient_test_expression(name: str, strides: tuple | None, is_used: bool, space: dict) -> str:
    space["grad_of"] = grad_of
    if strides is None:
        return f"grad_of({name}) is None"
    if not is_used:
        return f"grad_of({name}) is not None"
    space["plain_gradient"] = _is_plain_gradient
    return f"plain_gradient({name}, {strides!r})"


def _is_plain_gradient(tensor: Any, strides: tuple) -> bool:
    grad = grad_of(tensor)
    return grad.__class__ is Tensor and grad._tl_node is None and grad._tl_array.strides == strides
