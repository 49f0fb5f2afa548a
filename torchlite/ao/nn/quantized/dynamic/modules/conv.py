"""Convolutions with weights of eight bits, for float inputs."""

from __future__ import annotations

import warnings
from typing import Any

import torchlite as torch
from torchlite.ao.nn.quantized.modules import conv

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


def _make(name: str) -> Any:
    base: Any = getattr(conv, name)
    rank = int(name[-2])
    shape = ", ".join("4" * rank)

    def __init__(self: Any, *args: Any, reduce_range: bool = True, **kwargs: Any) -> None:
        warnings.warn(
            f"The current implementation of the {self._get_name()} module has poor numerical accuracy and its use is "
            "not recommended",
            stacklevel=2,
        )
        base.__init__(self, *args, **kwargs)

    def _get_name(self: Any) -> str:
        return f"DynamicQuantized{name}"

    def _tl_script_text(self: Any) -> tuple[str, str, str]:
        call = f"ops.quantized.{self._op_name()}_dynamic({self._padded_text()}, self._packed_params, reduce_range)"
        return "input: Tensor, reduce_range: bool=True", f"return {call}", "Tensor"

    def forward(self: Any, input: Any, reduce_range: bool = True) -> Any:
        """Convolves float inputs, which are quantized by their range.

        Args:
            input: The images.
            reduce_range: Whether the inputs' integers have 7 bits instead of 8. Default: ``True``.
        """
        compute = getattr(torch.ops.quantized, f"{self._op_name()}_dynamic")
        return compute(self._padded(input), self._packed_params, reduce_range)

    document = f"""A `torch.nn.{name}` with a weight of eight bits. Each call quantizes the inputs by their range.

    Its parameters are those of `torch.ao.nn.quantized.{name}`. `reduce_range` has no effect on the
    module, as in PyTorch: its calls take one.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     layer = torch.ao.nn.quantized.dynamic.{name}(1, 1, 1)
        >>> layer(torch.ones(1, 1, {shape})).dtype
        torch.float32
    """
    facts = {"__init__": __init__, "_get_name": _get_name, "forward": forward, "_tl_script_text": _tl_script_text}
    return type(name, (base,), {"__doc__": document, "__module__": __name__, **facts})


Conv1d, Conv2d, Conv3d = _make("Conv1d"), _make("Conv2d"), _make("Conv3d")
ConvTranspose1d, ConvTranspose2d = _make("ConvTranspose1d"), _make("ConvTranspose2d")
ConvTranspose3d = _make("ConvTranspose3d")
