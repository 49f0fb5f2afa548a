"""An LSTM over quantized tensors, made of quantized parts."""

from __future__ import annotations

from typing import Any, NoReturn

from torchlite._dispatch.callbacks import CALLBACKS
from torchlite.ao.nn.quantizable.modules import rnn

__all__ = ["LSTM"]


class LSTM(rnn.LSTM):
    """An LSTM over quantized tensors; `from_observed` makes it of a `torch.ao.nn.quantizable.LSTM`.

    Args:
        input_size: Size of the input.
        hidden_size: Size of the states.
        num_layers: The number of layers. Default: 1.
        bias: Whether there are biases. Default: ``True``.
        batch_first: Whether the batch is the first dimension, not the second. Default: ``False``.
        dropout: No effect but a warning. Default: 0.
        bidirectional: Whether layers go through the steps in both directions. Default: ``False``.
        device: Device of the weights. Default: the current one.
        dtype: Dtype of the weights. Default: float32.
        split_gates: Whether each gate has linear layers of its own. Default: ``False``.

    Example:
        >>> torch.ao.nn.quantized.LSTM(2, 3).hidden_size
        3
    """

    _FLOAT_MODULE: Any = rnn.LSTM

    def _get_name(self) -> str:
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuses: `torch.ao.nn.quantizable.LSTM` has the observed form.

        Args:
            *args: No effect.
            **kwargs: No effect.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed LSTM module. Please, see the examples on "
            "quantizable LSTMs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The quantized layer of an observed one.

        Args:
            other: The observed layer.
        """
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        converted = CALLBACKS.convert_observed(other, inplace=False, remove_qconfig=True)
        converted.__class__ = cls
        return converted
