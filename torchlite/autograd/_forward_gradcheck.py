"""`gradcheck` of forward mode: directional derivatives against central differences, single and batched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._dispatch.callbacks import CALLBACKS
from .._tensor import Tensor
from .._tensor.creation import tensor
from .forward_ad import dual_level, make_dual, unpack_dual

Fail = Callable[[str], Exception]


def _compute_differentiable_outputs(function, inputs) -> list[Tensor]:
    found = function(*inputs)
    found = (found,) if isinstance(found, Tensor) else tuple(found)
    return [o for o in found if isinstance(o, Tensor) and o.dtype.category >= 2]


def jvp_outputs(function, inputs: list, tangents: dict[int, Any]) -> list[Tensor]:
    """The tangents of the outputs; zeros for outputs without one."""
    with dual_level():
        duals = [make_dual(x, tangents[i]) if i in tangents else x for i, x in enumerate(inputs)]
        pairs = [unpack_dual(o) for o in _compute_differentiable_outputs(function, duals)]
        return [p.primal.detach().new_zeros(p.primal.shape) if p.tangent is None else p.tangent for p in pairs]


def _to_numpy(value: Tensor) -> np.ndarray:
    return value.detach()._host_array(force=True)


class ForwardCheck:
    """Checks of one function at given inputs, differentiated with respect to those at `wanted`."""

    def __init__(self, function, inputs, wanted: list[int], eps: float, atol: float, rtol: float, fail: Fail):
        self.function, self.positions, self.eps, self.fail = function, wanted, eps, fail
        self.inputs = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
        self.atol, self.rtol = atol, rtol

    def _tensor_like_input(self, position: int, values: Any) -> Any:
        x = self.inputs[position]
        return tensor(values, dtype=x.dtype, device=x.device)

    def _draw_random_tangent(self, position: int, rng) -> Any:
        x = self.inputs[position]
        values = rng.standard_normal(x.shape) + (1j * rng.standard_normal(x.shape) if x.is_complex() else 0)
        return self._tensor_like_input(position, values)

    def check_against_differences(self, directions: Callable[[int], Any]) -> None:
        """Compare with central differences in the directions of each input."""
        for position in self.positions:
            for u in directions(position):
                found = jvp_outputs(self.function, self.inputs, {position: self._tensor_like_input(position, u)})
                step = self._tensor_like_input(position, u * self.eps)
                ends = [
                    [
                        _to_numpy(o)
                        for o in _compute_differentiable_outputs(
                            self.function, self._perturb_input(position, sign * step)
                        )
                    ]
                    for sign in (1, -1)
                ]
                for number, (tangent, high, low) in enumerate(zip(found, *ends, strict=True)):
                    slope = (high - low) / (2 * self.eps)
                    if not np.allclose(slope, _to_numpy(tangent), atol=self.atol, rtol=self.rtol):
                        raise self.fail(
                            f"Jacobian computed with forward mode mismatch for output {number} with respect to input "
                            f"{position},\nnumerical:{slope}\nanalytical:{_to_numpy(tangent)}\n"
                        )

    def _perturb_input(self, position: int, step: Any) -> list:
        return [x + step if i == position else x for i, x in enumerate(self.inputs)]

    def check_zero_tangents(self, rng) -> None:
        """An input without a tangent counts as one whose tangent is zero."""
        for position in self.positions:
            mine = {position: self._draw_random_tangent(position, rng)}
            zeros = {i: self._tensor_like_input(i, np.zeros(self.inputs[i].shape)) for i in self.positions}
            whole = jvp_outputs(self.function, self.inputs, zeros | mine)
            if len(self.positions) > 1:
                for a, b in zip(whole, jvp_outputs(self.function, self.inputs, mine), strict=True):
                    if not np.allclose(_to_numpy(a), _to_numpy(b), equal_nan=True):
                        raise self.fail(
                            "Expected the forward gradients to be the same whether an input has no tangent or one of "
                            f"zeros; input {position} alone had one"
                        )

    def check_batched_tangents(self, rng) -> None:
        """Two tangents by `vmap` are each by itself."""
        for position in self.positions:
            x = self.inputs[position]
            both = [self._draw_random_tangent(position, rng) for _ in range(2)]
            apart = [jvp_outputs(self.function, self.inputs, {position: u}) for u in both]

            def jvp_of_one(u, position=position):
                return tuple(jvp_outputs(self.function, self.inputs, {position: u}))

            batch = tensor(np.stack([_to_numpy(u) for u in both]), dtype=x.dtype, device=x.device)
            try:
                together = CALLBACKS.vmap(jvp_of_one)(batch)
            except RuntimeError as error:
                raise self.fail(
                    f"While computing batched gradients, got: {error}\n\ngradcheck called vmap over the tangents of "
                    "forward mode (check_batched_forward_grad=True)"
                ) from error
            for number, batched in enumerate(together):
                for row, expected in zip(batched, apart, strict=True):
                    if not np.allclose(_to_numpy(row), _to_numpy(expected[number])):
                        raise self.fail(
                            f"For output {number} and input {position}: the tangents computed by vmap differ from "
                            "those computed one by one"
                        )
