"""Test backends that count or record the graphs they receive."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .backends import lookup_backend

__all__ = ["CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs", "same"]


class CompileCounterWithBackend:
    """Backend that counts graphs (`frame_count`) and their function calls (`op_count`), stores them (`graphs`) and
    passes them to another backend.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.clear()

    def __call__(self, gm: Any, example_inputs: list) -> Any:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)

    def clear(self) -> None:
        """Reset the counters."""
        self.frame_count = self.op_count = 0
        self.graphs: list[Any] = []


class CompileCounter(CompileCounterWithBackend):
    """CompileCounterWithBackend that interprets graphs op by op."""

    def __init__(self) -> None:
        super().__init__("eager")


class EagerAndRecordGraphs:
    """Backend that stores graphs and interprets them op by op."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list) -> Any:
        self.graphs.append(gm)
        return gm.forward


def same(a: Any, b: Any, cos_similarity: bool = False, tol: float = 1e-4, equal_nan: bool = False) -> bool:
    """True if two results, including nested lists, tuples and dictionaries, are close.

    >>> torchlite._dynamo.testing.same([torchlite.ones(2), 1], [torchlite.ones(2), 1])
    True
    """
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, cos_similarity, tol, equal_nan) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k], cos_similarity, tol, equal_nan) for k in a)
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.allclose(a, b, tol, tol, equal_nan)
    return a == b
