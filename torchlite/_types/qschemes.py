"""`torch.qscheme` and its values: how numbers of a quantized tensor follow from its integers."""

from __future__ import annotations


class qscheme:
    """A quantization scheme, such as `torch.per_tensor_affine`.

    An affine scheme stores a number ``x`` as the integer ``round(x / scale + zero_point)``. A symmetric one has the
    zero point 0, or the middle of an unsigned range. Scale and zero point belong to a tensor, or to each channel.

    Example:
        >>> torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8).qscheme()
        torch.per_tensor_affine
    """

    __slots__ = ("name",)
    name: str

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    def __copy__(self) -> qscheme:
        return self

    def __deepcopy__(self, memo: dict) -> qscheme:
        return self


def _make(name: str) -> qscheme:
    made = qscheme()
    made.name = name
    return made


qscheme.__module__ = "torchlite"
per_tensor_affine = _make("per_tensor_affine")
per_channel_affine = _make("per_channel_affine")
per_tensor_symmetric = _make("per_tensor_symmetric")
per_channel_symmetric = _make("per_channel_symmetric")
per_channel_affine_float_qparams = _make("per_channel_affine_float_qparams")
BY_NAME = {value.name: value for value in list(globals().values()) if isinstance(value, qscheme)}
