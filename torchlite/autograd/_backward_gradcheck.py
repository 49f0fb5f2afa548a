"""`gradcheck` of reverse mode beyond the Jacobian: determinism, batched gradients, and undefined or zero gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor import Tensor
from .._tensor.creation import tensor
from .backward_api import grad
from .function import UndefinedGrad

Fail = Callable[[str], Exception]


class BackwardCheck:
    """Checks of one function at given inputs, differentiated with respect to those at `wanted`."""

    def __init__(self, outputs: Callable[[], list[Tensor]], inputs: list[Tensor], masked: bool, fail: Fail, rng: Any):
        self.outputs, self.inputs, self.masked, self.fail, self.rng = outputs, inputs, masked, fail, rng

    def _draw_random_like(self, like: Any, *more: int) -> Any:
        shape = (*more, *like.shape)
        values = self.rng.standard_normal(shape)
        if like.is_complex():
            values = values + 1j * self.rng.standard_normal(shape)
        return tensor(values, dtype=like.dtype, device=like.device)

    def _compute_gradient(self, outputs: list[Any], vectors: list[Any], **options: Any) -> tuple[Any, ...]:
        return grad(outputs, self.inputs, vectors, retain_graph=True, allow_unused=True, **options)

    def check_deterministic(self, tolerance: float) -> None:
        """Check that two backward passes give the same gradients within a tolerance."""
        outputs = self.outputs()
        vectors = [self._draw_random_like(output) for output in outputs]
        first, second = (self._compute_gradient(outputs, vectors) for _ in range(2))
        for a, b in zip(map(_gradient_to_numpy, first), map(_gradient_to_numpy, second), strict=True):
            if (np.abs(a - b) > tolerance).any():
                raise self.fail(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                    "times gives different values, although analytical gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {tolerance}."
                )

    def check_batched(self) -> None:
        """Check that `vmap` over backward gives the same as one pass per vector."""
        for number, output in enumerate(self.outputs()):
            vectors: Any = self._draw_random_like(output, 2)
            one_by_one = [self._compute_gradient([output], [v]) for v in vectors.unbind(0)]
            try:
                batched = self._compute_gradient([output], [vectors], is_grads_batched=True)
            except RuntimeError as error:
                raise self.fail(
                    f"While computing batched gradients, got: {error}\n\ngradcheck called vmap over backward "
                    "(check_batched_grad=True)"
                ) from error
            found: Any
            for position, found in enumerate(batched):
                for row, expected in enumerate(each[position] for each in one_by_one):
                    a, b = (_gradient_to_numpy(g) for g in (None if found is None else found[row], expected))
                    if not np.allclose(a, b):
                        raise self.fail(
                            f"For output {number} and input {position}:\n\ngradcheck called vmap over backward "
                            f"(check_batched_grad=True)\n\nGot:\n{found}\n\nExpected:\n{expected}"
                        )

    def check_zeros(self) -> None:
        """Gradients of zeros are zeros, and like their inputs."""
        outputs = self.outputs()
        for x, g in zip(
            self.inputs, self._compute_gradient(outputs, [o.detach().new_zeros(o.shape) for o in outputs]), strict=True
        ):
            if g is None:
                continue
            values = _gradient_to_numpy(g)
            if not (np.allclose(values, 0) if self.masked else not values.any()):
                raise self.fail("backward not multiplied by grad_output")
            for what, have, want in (
                ("type", g.dtype, x.dtype), ("device", g.device, x.device), ("size", g.shape, x.shape),
            ):  # fmt: skip
                if have != want:
                    raise self.fail(f"grad is incorrect {what}")

    def check_undefined(self) -> None:
        """A gradient of an output may be None, which counts as zeros."""
        count = len(self.outputs())
        for undefined in [set(range(count)), *({i} for i in range(count) if count > 1)]:
            outputs = [UndefinedGrad()(o) if i in undefined else o for i, o in enumerate(self.outputs())]
            try:
                found = self._compute_gradient(outputs, [o.detach().new_zeros(o.shape) for o in outputs])
            except RuntimeError as error:
                raise self.fail("Expected backward function to handle undefined output grads.") from error
            if any(g is not None and _gradient_to_numpy(g).any() for g in found):
                raise self.fail(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
                )


def _gradient_to_numpy(gradient: Any) -> Any:
    if gradient is None:
        return np.zeros(())
    return (gradient.to_dense() if gradient._tl_is_sparse else gradient).detach()._host_array(force=True)
