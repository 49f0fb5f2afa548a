"""Convolutions whose weights are rounded while they are trained."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor, nn
from torchlite.ao.nn.intrinsic.modules.fused import _FusedModule

from ._from_float import check_source, configured, with_weights_of

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


class _ConvNd:
    """Mixin of the convolutions. It stands before a class of `torch.nn` among the bases."""

    _FLOAT_MODULE: Any
    _FLOAT_CONV_MODULE: Any
    _conv_forward: Any
    weight: Any
    bias: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", qconfig: Any = None,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        factory_kwargs = {"device": device, "dtype": dtype}
        super().__init__(  # type: ignore[call-arg]
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
            **factory_kwargs,
        )  # fmt: skip
        self.qconfig = configured(qconfig)
        self.weight_fake_quant = qconfig.weight(factory_kwargs=factory_kwargs)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for a float layer, whose parameters it has.

        Args:
            mod: The float layer, with a ``qconfig``.
            use_precomputed_fake_quant: No effect: a float layer has no fake quantizer yet.
        """
        qconfig = check_source(cls, mod)
        mod = mod[0] if isinstance(mod, _FusedModule) else mod
        made = cls(**_options(mod), qconfig=getattr(mod, "qconfig", None) or qconfig)
        made.weight, made.bias = mod.weight, mod.bias
        return made

    def to_float(self) -> Any:
        """The float layer with copies of the parameters."""
        conv = with_weights_of(self._FLOAT_CONV_MODULE(**_options(self)), self)
        if not isinstance(self, _FusedModule):
            return conv
        fused = self._FLOAT_MODULE(conv, nn.ReLU())
        fused.train(self.training)
        return fused


def _options(conv: Any) -> dict[str, Any]:
    names = "in_channels out_channels kernel_size stride padding dilation groups padding_mode".split()
    return {**{name: getattr(conv, name) for name in names}, "bias": conv.bias is not None}


def _make(dims: int) -> Any:
    name, float_class = f"Conv{dims}d", getattr(nn, f"Conv{dims}d")
    shape = ", ".join("4" * dims)
    document = f"""A `torch.nn.{name}` whose weight is rounded to levels by fake quantization.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: The size of the kernel.
        stride: The step of the kernel. Default: 1.
        padding: Zeros at each end of each dimension. Default: 0.
        dilation: Distance of the kernel's elements. Default: 1.
        groups: The number of groups of channels. Default: 1.
        bias: Whether a bias is added. Default: ``True``.
        padding_mode: What the padding is. Default: ``"zeros"``.
        qconfig: The configuration; its ``weight`` makes ``weight_fake_quant``.
        device: The parameters' device. Default: the current one.
        dtype: The parameters' dtype. Default: float32.

    Raises:
        AssertionError: There is no configuration.

    Example:
        >>> layer = torch.ao.nn.qat.{name}(1, 1, 3, qconfig=torch.ao.quantization.get_default_qat_qconfig())
        >>> layer(torch.ones(1, 1, {shape})).shape[1:] == torch.nn.{name}(1, 1, 3)(torch.ones(1, 1, {shape})).shape[1:]
        True
    """
    facts = {"__doc__": document, "__module__": __name__, "_FLOAT_MODULE": float_class}
    return type(name, (_ConvNd, float_class), {**facts, "_FLOAT_CONV_MODULE": float_class})


Conv1d, Conv2d, Conv3d = _make(1), _make(2), _make(3)
