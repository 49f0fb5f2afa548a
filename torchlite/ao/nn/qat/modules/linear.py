"""The linear layer whose weight is rounded while it is trained."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor, nn
from torchlite.ao.nn.intrinsic.modules.fused import _FusedModule
from torchlite.nn import functional as F
from torchlite.nn.utils.parametrize import is_parametrized, transfer_parametrizations_and_params

from ._from_float import check_source, configured, with_weights_of

__all__ = ["Linear"]


class Linear(nn.Linear):
    """A `torch.nn.Linear` whose weight is rounded to levels by fake quantization.

    Args:
        in_features: Size of the input.
        out_features: Size of the output.
        bias: Whether a bias is added. Default: ``True``.
        qconfig: The configuration; its ``weight`` makes ``weight_fake_quant``.
        device: The parameters' device. Default: the current one.
        dtype: The parameters' dtype. Default: float32.

    Raises:
        AssertionError: There is no configuration.

    Example:
        >>> layer = torch.ao.nn.qat.Linear(2, 3, qconfig=torch.ao.quantization.get_default_qat_qconfig())
        >>> layer(torch.ones(4, 2)).shape
        torch.Size([4, 3])
    """

    _FLOAT_MODULE: Any = nn.Linear

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        factory_kwargs = {"device": device, "dtype": dtype}
        super().__init__(in_features, out_features, bias, **factory_kwargs)
        self.qconfig = configured(qconfig)
        self.weight_fake_quant = qconfig.weight(factory_kwargs=factory_kwargs)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for a float layer, whose parameters it has.

        Args:
            mod: The float layer, with a ``qconfig``.
            use_precomputed_fake_quant: No effect: a float layer has no fake quantizer yet.
        """
        qconfig = check_source(cls, mod)
        mod = mod[0] if isinstance(mod, _FusedModule) else mod
        qconfig = getattr(mod, "qconfig", None) or qconfig
        made = cls(mod.in_features, mod.out_features, bias=mod.bias is not None, qconfig=qconfig)
        for name in ("weight", "bias"):
            if is_parametrized(mod, name):
                transfer_parametrizations_and_params(mod, made, name)
            else:
                setattr(made, name, getattr(mod, name))
        return made

    def to_float(self) -> Any:
        """The float layer with copies of the parameters."""
        return with_weights_of(nn.Linear(self.in_features, self.out_features, self.bias is not None), self)
