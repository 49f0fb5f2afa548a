"""Linear layers with a quantized weight that compute on numbers."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor, nn
from torchlite.nn import functional as F

from .utils import ReferenceQuantizedModule, with_float_parameters

__all__ = ["Linear"]


class Linear(nn.Linear, ReferenceQuantizedModule):
    """A linear layer whose weight is quantized before each product of numbers.

    Args:
        in_features: Size of the input's last dimension.
        out_features: Size of the result's.
        bias_: Whether there is a bias. Default: ``True``.
        device: Device of the weight. Default: the current one.
        dtype: Dtype of the weight. Default: float32.
        weight_qparams: Scheme, dtype, scale and zero point of the weight. Default: `torch.quint8` with scale 1.

    Example:
        >>> torch.ao.nn.quantized.reference.Linear(3, 2)
        QuantizedLinear(Reference)(in_features=3, out_features=2, bias=True)
    """

    _IS_REFERENCE = True

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features, bias_, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return "QuantizedLinear(Reference)"

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_linear: Any, weight_qparams: dict[str, Any]) -> Any:
        """The layer of a float one.

        Args:
            float_linear: The float layer.
            weight_qparams: Scheme, dtype, scale and zero point of the weight.
        """
        weight = float_linear.weight
        made = cls(
            float_linear.in_features, float_linear.out_features, float_linear.bias is not None, weight.device,
            weight.dtype, weight_qparams,
        )  # fmt: skip
        return with_float_parameters(made, float_linear)
