"""Modules for arithmetic of two tensors, which can be observed and quantized as other modules can."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import nn

from .utils import observed_result


class FloatFunctional(nn.Module):
    """Sums, products and concatenations of float tensors, each of which is observed.

    Use one for each place in a network: `torch.ao.quantization.convert` makes a `QFunctional` of it.

    Example:
        >>> torch.ao.nn.quantized.FloatFunctional().add(torch.ones(2), torch.ones(2))
        tensor([2., 2.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x: Any) -> Any:
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Any, y: Any) -> Any:
        """Return the sum."""
        return self.activation_post_process(torch.add(x, y))

    def add_scalar(self, x: Any, y: float) -> Any:
        """Return the sum with a number, which is not observed."""
        return torch.add(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """Return the product."""
        return self.activation_post_process(torch.mul(x, y))

    def mul_scalar(self, x: Any, y: float) -> Any:
        """Return the product with a number, which is not observed."""
        return torch.mul(x, y)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Return the tensors, joined along a dimension."""
        return self.activation_post_process(torch.cat(x, dim=dim))

    def add_relu(self, x: Any, y: Any) -> Any:
        """Return the positive part of the sum."""
        return self.activation_post_process(torch.relu(torch.add(x, y)))

    def matmul(self, x: Any, y: Any) -> Any:
        """Return the matrix product."""
        return self.activation_post_process(torch.matmul(x, y))


class FXFloatFunctional(nn.Module):
    """As `FloatFunctional`, without observers: FX mode inserts them.

    Example:
        >>> torch.ao.nn.quantized.FXFloatFunctional().mul(torch.ones(2), torch.ones(2))
        tensor([1., 1.])
    """

    def forward(self, x: Any) -> Any:
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Any, y: Any) -> Any:
        """Return the sum."""
        return torch.add(x, y)

    def add_scalar(self, x: Any, y: float) -> Any:
        """Return the sum with a number."""
        return torch.add(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """Return the product."""
        return torch.mul(x, y)

    def mul_scalar(self, x: Any, y: float) -> Any:
        """Return the product with a number."""
        return torch.mul(x, y)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Return the tensors, joined along a dimension."""
        return torch.cat(x, dim=dim)

    def add_relu(self, x: Any, y: Any) -> Any:
        """Return the positive part of the sum."""
        return torch.relu(torch.add(x, y))

    def matmul(self, x: Any, y: Any) -> Any:
        """Return the matrix product."""
        return torch.matmul(x, y)


class QFunctional(nn.Module):
    """Sums, products and concatenations of quantized tensors, with the scale and zero point of the results.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.QFunctional().add(q, q).dequantize()
        tensor([2., 2.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = nn.Identity()

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

    def forward(self, x: Any) -> Any:
        raise RuntimeError("Functional is not intended to use the 'forward'. Please use the underlying operation")

    def _compute(self, name: str, *args: Any) -> Any:
        made = getattr(torch.ops.quantized, name)(*args, self.scale, self.zero_point)
        return self.activation_post_process(made)

    def add(self, x: Any, y: Any) -> Any:
        """Return the sum."""
        return self._compute("add", x, y)

    def add_scalar(self, x: Any, y: float) -> Any:
        """Return the sum with a number."""
        return torch.ops.quantized.add_scalar(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """Return the product."""
        return self._compute("mul", x, y)

    def mul_scalar(self, x: Any, y: float) -> Any:
        """Return the product with a number."""
        return torch.ops.quantized.mul_scalar(x, y)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Return the tensors, joined along a dimension."""
        made = torch.ops.quantized.cat(x, dim, self.scale, self.zero_point)
        return self.activation_post_process(made)

    def add_relu(self, x: Any, y: Any) -> Any:
        """Return the positive part of the sum."""
        return self._compute("add_relu", x, y)

    def matmul(self, x: Any, y: Any) -> Any:
        """Return the matrix product."""
        return self._compute("matmul", x, y)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """Make the quantized module of a `FloatFunctional` that was observed."""
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        made = cls()
        made.scale, made.zero_point = observed_result(mod)
        return made
