"""Recurrent layers with quantized weights that compute on numbers."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn

from .utils import USUAL, _quantize_and_dequantize_weight, _quantize_weight, as_buffer

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase", "get_quantized_weight"]


def _qparams(module: Any, wn: str) -> list[Any]:
    return [getattr(module, f"{wn}_{name}", None) for name in ("qscheme", "dtype", "scale", "zero_point", "axis_int")]


def get_quantized_weight(module: Any, wn: str) -> Any:
    """The quantized weight of a layer, or ``None`` if it has none of the name.

    Args:
        module: The layer.
        wn: The name.

    Example:
        >>> from torchlite.ao.nn.quantized.reference.modules.rnn import get_quantized_weight
        >>> get_quantized_weight(torch.ao.nn.quantized.reference.RNNCell(1, 1), "weight_ih").dtype
        torch.quint8
    """
    return _quantize_weight(getattr(module, wn), *_qparams(module, wn)) if hasattr(module, wn) else None


def _rounded(module: Any, wn: str) -> Any:
    """The numbers of a weight after it was quantized."""
    if not hasattr(module, wn):
        return None
    return _quantize_and_dequantize_weight(getattr(module, wn), *_qparams(module, wn))


class _QuantizedWeights(nn.Module):
    """The parameters by which the weights are quantized, as attributes that begin with a weight's name."""

    def _init_weight_qparams_dict(self, weight_qparams_dict: dict[str, Any], device: Any) -> None:
        self.is_decomposed = weight_qparams_dict["is_decomposed"]
        for name, given in weight_qparams_dict.items():
            if name == "is_decomposed":
                continue
            scheme = given["qscheme"]
            setattr(self, f"{name}_qscheme", scheme)
            setattr(self, f"{name}_dtype", given["dtype"])
            if scheme is not None:
                axis = given["axis"] if scheme is torch.per_channel_affine else 0
                self.register_buffer(f"{name}_scale", as_buffer(given["scale"], torch.float, device))
                self.register_buffer(f"{name}_zero_point", as_buffer(given["zero_point"], torch.int, device))
                self.register_buffer(f"{name}_axis", as_buffer(axis, torch.int, device))
                setattr(self, f"{name}_axis_int", int(axis))

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"


class RNNCellBase(_QuantizedWeights, nn.RNNCellBase):
    """The base of reference cells.

    Args:
        input_size: Size of the input.
        hidden_size: Size of the state.
        bias: Whether there are biases.
        num_chunks: The number of gates.
        device: Device of the weights. Default: the current one.
        dtype: Dtype of the weights. Default: float32.
        weight_qparams_dict: Scheme, dtype, scale and zero point of each weight, and ``"is_decomposed"``.

    Example:
        >>> from torchlite.ao.nn.quantized.reference.modules.rnn import RNNCellBase
        >>> RNNCellBase(2, 3, True, 4).get_weight_ih().shape
        torch.Size([12, 2])
    """

    _step: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None,
        weight_qparams_dict: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, num_chunks, device=device, dtype=dtype)
        if weight_qparams_dict is None:
            weight_qparams_dict = {"weight_ih": USUAL, "weight_hh": USUAL, "is_decomposed": False}
        self._init_weight_qparams_dict(weight_qparams_dict, device)

    def get_quantized_weight_ih(self) -> Any:
        """The quantized weight of inputs."""
        return get_quantized_weight(self, "weight_ih")

    def get_quantized_weight_hh(self) -> Any:
        """The quantized weight of states."""
        return get_quantized_weight(self, "weight_hh")

    def get_weight_ih(self) -> Any:
        """The numbers of the weight of inputs after it was quantized."""
        return _rounded(self, "weight_ih")

    def get_weight_hh(self) -> Any:
        """The numbers of the weight of states after it was quantized."""
        return _rounded(self, "weight_hh")

    def _compute(self, function: Any, input: Tensor, hx: Any, states: int) -> Any:
        """The next states of a batch, or of one input without a dimension for it."""
        is_batched = input.dim() == 2
        rows = input if is_batched else input.unsqueeze(0)
        if hx is None:
            given = [torch.zeros(rows.size(0), self.hidden_size, dtype=input.dtype, device=input.device)] * states
        else:
            given = [state if is_batched else state.unsqueeze(0) for state in (hx if states == 2 else [hx])]
        out = function(
            rows, given if states == 2 else given[0], self.get_weight_ih(), self.get_weight_hh(), self.bias_ih,
            self.bias_hh,
        )  # fmt: skip
        if is_batched:
            return out
        return tuple(state.squeeze(0) for state in out) if states == 2 else out.squeeze(0)

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: dict[str, Any], use_precomputed_fake_quant: bool = False) -> Any:
        """The cell of a float one.

        Args:
            mod: The float cell.
            weight_qparams_dict: Scheme, dtype, scale and zero point of each weight, and ``"is_decomposed"``.
            use_precomputed_fake_quant: No effect.
        """
        weight, options = mod.weight_ih, [mod.input_size, mod.hidden_size, mod.bias]
        if hasattr(mod, "nonlinearity"):
            options.append(mod.nonlinearity)
        make: Any = cls
        made = make(*options, weight.device, weight.dtype, weight_qparams_dict)
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            setattr(made, name, getattr(mod, name))
        return made


class RNNCell(RNNCellBase):
    """A `torch.nn.RNNCell` whose weights are quantized before each step.

    Its parameters are those of `torch.nn.RNNCell`, and ``weight_qparams_dict``, as in the base class.

    Example:
        >>> torch.ao.nn.quantized.reference.RNNCell(2, 3)(torch.ones(1, 2)).shape
        torch.Size([1, 3])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None, weight_qparams_dict: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype, weight_qparams_dict)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._compute(getattr(torch, f"rnn_{self.nonlinearity}_cell"), input, hx, 1)


class LSTMCell(RNNCellBase):
    """A `torch.nn.LSTMCell` whose weights are quantized before each step.

    Its parameters are those of `torch.nn.LSTMCell`, and ``weight_qparams_dict``, as in the base class.

    Example:
        >>> torch.ao.nn.quantized.reference.LSTMCell(2, 3)(torch.ones(1, 2))[0].shape
        torch.Size([1, 3])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams_dict: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 4, device, dtype, weight_qparams_dict)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        return self._compute(torch.lstm_cell, input, hx, 2)


class GRUCell(RNNCellBase):
    """A `torch.nn.GRUCell` whose weights are quantized before each step.

    Its parameters are those of `torch.nn.GRUCell`, and ``weight_qparams_dict``, as in the base class.

    Example:
        >>> torch.ao.nn.quantized.reference.GRUCell(2, 3)(torch.ones(1, 2)).shape
        torch.Size([1, 3])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams_dict: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 3, device, dtype, weight_qparams_dict)

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        return self._compute(torch.gru_cell, input, hx, 1)


class RNNBase(_QuantizedWeights, nn.RNNBase):
    """The base of reference layers of several steps.

    Args:
        mode: ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``.
        *args: The arguments of `torch.nn.RNNBase` after the mode.
        weight_qparams_dict: Scheme, dtype, scale and zero point of each weight, and ``"is_decomposed"``.
        **kwargs: The named arguments of `torch.nn.RNNBase`.

    Example:
        >>> from torchlite.ao.nn.quantized.reference.modules.rnn import RNNBase
        >>> RNNBase("GRU", 2, 3).weight_ih_l0_dtype
        torch.quint8
    """

    def __init__(self, *args: Any, weight_qparams_dict: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if weight_qparams_dict is None:
            names = [name for name in self._flat_weights_names if name.startswith("weight")]
            weight_qparams_dict = {"is_decomposed": False, **dict.fromkeys(names, USUAL)}
        self._init_weight_qparams_dict(weight_qparams_dict, kwargs.get("device"))

    def get_flat_weights(self) -> list[Any]:
        """The numbers of the weights after they were quantized, and the biases."""
        return [
            _rounded(self, name) if name.startswith("weight") else getattr(self, name, None)
            for name in self._flat_weights_names
        ]

    def get_quantized_weight_bias_dict(self) -> dict[str, Any]:
        """The quantized weights, and the biases, by name."""
        return {
            name: get_quantized_weight(self, name) if name.startswith("weight") else getattr(self, name, None)
            for name in self._flat_weights_names
        }

    def _update_flat_weights(self) -> None:
        super()._update_flat_weights()  # type: ignore[no-untyped-call]
        self._flat_weights = self.get_flat_weights()

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: dict[str, Any]) -> Any:
        """The layer of a float one.

        Args:
            mod: The float layer.
            weight_qparams_dict: Scheme, dtype, scale and zero point of each weight, and ``"is_decomposed"``.
        """
        made = cls(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout,
            mod.bidirectional, weight_qparams_dict=weight_qparams_dict,
        )  # fmt: skip
        for name in mod._flat_weights_names:
            setattr(made, name, getattr(mod, name))
        return made


class LSTM(RNNBase, nn.LSTM):
    """A `torch.nn.LSTM` whose weights are quantized before each call.

    Its parameters are those of `torch.nn.LSTM`, and ``weight_qparams_dict``, as in the base class.

    Example:
        >>> torch.ao.nn.quantized.reference.LSTM(2, 3)(torch.ones(4, 1, 2))[0].shape
        torch.Size([4, 1, 3])
    """


class GRU(RNNBase, nn.GRU):
    """A `torch.nn.GRU` whose weights are quantized before each call.

    Its parameters are those of `torch.nn.GRU`, and ``weight_qparams_dict``, as in the base class.

    Example:
        >>> torch.ao.nn.quantized.reference.GRU(2, 3)(torch.ones(4, 1, 2))[0].shape
        torch.Size([4, 1, 3])
    """
