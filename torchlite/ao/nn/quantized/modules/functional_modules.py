"""Arithmetic as modules: their results have an observer."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn.modules.linear import Identity
from torchlite.nn.modules.module import Module

__all__ = ["FXFloatFunctional", "FloatFunctional"]


class FXFloatFunctional(Module):
    """Arithmetic on tensors, for graphs that have observers of their own.

    Example:
        >>> torch.ao.nn.quantized.FXFloatFunctional().add(torch.ones(1), torch.ones(1))
        tensor([2.])
    """

    def forward(self, x: Any) -> Any:
        """Refuse: there is no one operation.

        Args:
            x: No effect.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def _observed(self, result: Tensor) -> Tensor:
        return result

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """``x + y``.

        Args:
            x: A tensor.
            y: A tensor.
        """
        return self._observed(torch.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """``x + y``, which is not observed.

        Args:
            x: A tensor.
            y: A number.
        """
        return torch.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """``x * y``.

        Args:
            x: A tensor.
            y: A tensor.
        """
        return self._observed(torch.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """``x * y``, which is not observed.

        Args:
            x: A tensor.
            y: A number.
        """
        return torch.mul(x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """The tensors joined along a dimension.

        Args:
            x: The tensors.
            dim: The dimension. Default: 0.
        """
        return self._observed(torch.cat(x, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """``relu(x + y)``.

        Args:
            x: A tensor.
            y: A tensor.
        """
        return self._observed(torch.nn.functional.relu(torch.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """``x @ y``.

        Args:
            x: A tensor.
            y: A tensor.
        """
        return self._observed(torch.matmul(x, y))


class FloatFunctional(FXFloatFunctional):
    """Arithmetic on tensors whose results are observed by ``activation_post_process``, which `prepare` sets.

    Example:
        >>> torch.ao.nn.quantized.FloatFunctional().add(torch.ones(1), torch.ones(1))
        tensor([2.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Any = Identity()

    def _observed(self, result: Tensor) -> Tensor:
        return self.activation_post_process(result)
