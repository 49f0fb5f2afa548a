"""Arithmetic as modules: their results have an observer."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn.modules.linear import Identity
from torchlite.nn.modules.module import Module

from .utils import observed_result

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]


class FXFloatFunctional(Module):
    """Arithmetic on tensors, for graphs that have observers of their own.

    Example:
        >>> torch.ao.nn.quantized.FXFloatFunctional().add(torch.ones(1), torch.ones(1))
        tensor([2.])
    """

    def forward(self, x: Tensor) -> Tensor:
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


class QFunctional(FXFloatFunctional):
    """Sums, products and concatenations of quantized tensors, with the scale and zero point of the results.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.QFunctional().add(q, q).dequantize()
        tensor([2., 2.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = Identity()

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}scale"] = torch.tensor(self.scale)
        destination[f"{prefix}zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        self.scale = float(state_dict.pop(f"{prefix}scale"))
        self.zero_point = int(state_dict.pop(f"{prefix}zero_point"))
        local_metadata, _, *lists = rest
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("Functional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(torch.ops.quantized.add(x, y, self.scale, self.zero_point))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        return torch.ops.quantized.add_scalar(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(torch.ops.quantized.mul(x, y, self.scale, self.zero_point))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        return torch.ops.quantized.mul_scalar(x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        return self.activation_post_process(torch.ops.quantized.cat(x, dim, self.scale, self.zero_point))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(torch.ops.quantized.add_relu(x, y, self.scale, self.zero_point))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(torch.ops.quantized.matmul(x, y, self.scale, self.zero_point))

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """Makes the quantized module of a `FloatFunctional` that was observed.

        Args:
            mod: The module.
            use_precomputed_fake_quant: No effect: there is no weight.
        """
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        made = cls()
        made.scale, made.zero_point = observed_result(mod)
        return made
