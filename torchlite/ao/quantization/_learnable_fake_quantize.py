"""Fake quantization whose scale and zero point are parameters that training changes."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import Parameter

from ._bases import FakeQuantizeBase
from .utils import is_per_channel

__all__: list[str] = []


class _LearnableFakeQuantize(FakeQuantizeBase):
    """Rounds its input to levels whose scale and zero point are parameters.

    At first, an observer sets both in each call (``static_enabled``). After `enable_param_learning` their gradients
    train them.

    Args:
        observer: The class of the observer.
        quant_min: The least integer. Default: 0.
        quant_max: The greatest integer. Default: 255.
        scale: The first scale. Default: 1.
        zero_point: The first zero point. Default: 0.
        channel_len: Count of channels, or -1 for one scale. Default: -1.
        use_grad_scaling: Whether the gradients of both parameters are divided by the square root of the count of
            numbers times `quant_max`. Default: ``False``.
        **observer_kwargs: Arguments of the observer.

    Raises:
        AssertionError: `channel_len` is neither -1 nor a positive integer.

    Example:
        >>> from torchlite.ao.quantization._learnable_fake_quantize import _LearnableFakeQuantize
        >>> fake = _LearnableFakeQuantize(torch.ao.quantization.MinMaxObserver, 0, 15)
        >>> fake(torch.tensor([0.0, 0.26, 1.5])).detach()
        tensor([0.0000, 0.3000, 1.5000])
    """

    static_enabled: Tensor
    learning_enabled: Tensor
    eps: Tensor

    def __init__(
        self, observer: Any, quant_min: int = 0, quant_max: int = 255, scale: float = 1.0, zero_point: float = 0.0,
        channel_len: int = -1, use_grad_scaling: bool = False, **observer_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if channel_len != -1 and not (isinstance(channel_len, int) and channel_len > 0):
            raise AssertionError("Channel size must be a positive integer.")
        count = 1 if channel_len == -1 else channel_len
        self.quant_min, self.quant_max, self.use_grad_scaling = quant_min, quant_max, use_grad_scaling
        self.scale = Parameter(torch.tensor([scale] * count))
        self.zero_point = Parameter(torch.tensor([zero_point] * count))
        observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.activation_post_process = observer(**observer_kwargs)
        seen = self.activation_post_process
        self.dtype, self.qscheme, self.ch_axis = seen.dtype, seen.qscheme, getattr(seen, "ch_axis", -1)
        self.register_buffer("static_enabled", torch.tensor([1], dtype=torch.uint8))
        self.register_buffer("learning_enabled", torch.tensor([0], dtype=torch.uint8))
        self.bitwidth = (quant_max - quant_min + 1).bit_length() - 1
        self.register_buffer("eps", torch.tensor([torch.finfo(torch.float32).eps]))

    def _switch(self, learning: bool, rounding: bool, observing: bool) -> _LearnableFakeQuantize:
        self.toggle_qparam_learning(learning)
        self.toggle_fake_quant(rounding)
        return self.toggle_observer_update(observing)

    @torch.jit.export
    def enable_param_learning(self) -> _LearnableFakeQuantize:
        """Rounds with parameters that are trained, and observes no more."""
        return self._switch(learning=True, rounding=True, observing=False)

    @torch.jit.export
    def enable_static_estimate(self) -> None:
        """Rounds with what the observer sees."""
        self._switch(learning=False, rounding=True, observing=True)

    @torch.jit.export
    def enable_static_observation(self) -> None:
        """Observes and does not round."""
        self._switch(learning=False, rounding=False, observing=True)

    @torch.jit.export
    def toggle_observer_update(self, enabled: bool = True) -> _LearnableFakeQuantize:
        """Switches observation.

        Args:
            enabled: Whether the observer sets the parameters. Default: ``True``.
        """
        self.static_enabled[0] = int(enabled)
        return self

    @torch.jit.export
    def enable_observer(self, enabled: bool = True) -> None:
        """Switches observation.

        Args:
            enabled: Whether the observer sets the parameters. Default: ``True``.
        """
        self.toggle_observer_update(enabled)

    @torch.jit.export
    def toggle_qparam_learning(self, enabled: bool = True) -> _LearnableFakeQuantize:
        """Switches the gradients of both parameters.

        Args:
            enabled: Whether they have gradients. Default: ``True``.
        """
        self.learning_enabled[0] = int(enabled)
        self.scale.requires_grad = self.zero_point.requires_grad = enabled
        return self

    @torch.jit.export
    def toggle_fake_quant(self, enabled: bool = True) -> _LearnableFakeQuantize:
        """Switches rounding.

        Args:
            enabled: Whether inputs are rounded. Default: ``True``.
        """
        self.fake_quant_enabled[0] = int(enabled)
        return self

    @torch.jit.export
    def observe_quant_params(self) -> None:
        """Prints both parameters."""
        print(f"_LearnableFakeQuantize Scale: {self.scale.detach()}")
        print(f"_LearnableFakeQuantize Zero Point: {self.zero_point.detach()}")

    @torch.jit.export
    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The scale, and the zero point as an integer of the range."""
        self.scale.data.clamp_(min=self.eps.item())
        zero_point = self.zero_point.detach().round().clamp(self.quant_min, self.quant_max)
        return self.scale.detach(), zero_point.long()

    def forward(self, X: Tensor) -> Tensor:
        if self.static_enabled[0] == 1:
            self.activation_post_process(X.detach())
            found = self.activation_post_process.calculate_qparams()
            for parameter, value in zip((self.scale, self.zero_point), found, strict=True):
                parameter.data.copy_(value.to(parameter.device))
        else:
            self.scale.data.clamp_(min=self.eps.item())
        if self.fake_quant_enabled[0] != 1:
            return X
        if self.qscheme in (torch.per_channel_symmetric, torch.per_tensor_symmetric):
            self.zero_point.data.zero_()
        factor = (X.numel() * self.quant_max) ** -0.5 if self.use_grad_scaling else 1.0
        levels = self.quant_min, self.quant_max, factor
        if is_per_channel(self.qscheme):
            scales = self.scale, self.zero_point, self.ch_axis
            return torch._fake_quantize_learnable_per_channel_affine(X, *scales, *levels)
        return torch._fake_quantize_learnable_per_tensor_affine(X, self.scale, self.zero_point, *levels)
