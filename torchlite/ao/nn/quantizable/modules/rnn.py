"""An LSTM made of linear layers, activations and sums, each of which can be observed and quantized."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite.ao.nn.quantized.modules.functional_modules import FloatFunctional
from torchlite.nn import Parameter

__all__ = ["LSTM", "LSTMCell"]
_GATES = ("input", "forget", "cell", "output")


class LSTMCell(nn.Module):
    """One step of an LSTM, made of parts that can be quantized.

    Args:
        input_dim: Size of the input.
        hidden_dim: Size of the states.
        bias: Whether there are biases. Default: ``True``.
        device: Device of the weights. Default: the current one.
        dtype: Dtype of the weights. Default: float32.
        split_gates: Whether each gate has linear layers of its own. Default: ``False``.

    Example:
        >>> h, c = torch.ao.nn.quantizable.LSTMCell(2, 3)(torch.ones(1, 2))
        >>> h.shape
        torch.Size([1, 3])
    """

    _FLOAT_MODULE = nn.LSTMCell
    __constants__ = ["split_gates"]

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None, dtype: Any = None, *,
        split_gates: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.split_gates = input_dim, hidden_dim, bias, split_gates
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.igates: Any
        self.hgates: Any
        self.gates: Any
        if split_gates:
            self.igates = nn.ModuleDict({gate: nn.Linear(input_dim, hidden_dim, **options) for gate in _GATES})
            self.hgates = nn.ModuleDict({gate: nn.Linear(hidden_dim, hidden_dim, **options) for gate in _GATES})
            self.gates = nn.ModuleDict({gate: FloatFunctional() for gate in _GATES})
        else:
            self.igates = nn.Linear(input_dim, 4 * hidden_dim, **options)
            self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, **options)
            self.gates = FloatFunctional()
        self.input_gate, self.forget_gate = nn.Sigmoid(), nn.Sigmoid()
        self.cell_gate, self.output_gate = nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = FloatFunctional(), FloatFunctional()
        self.fgate_cx_igate_cgate, self.ogate_cy = FloatFunctional(), FloatFunctional()
        # The scale and the zero point of states that are zero.
        self.initial_hidden_state_qparams: tuple[float, int] = (1.0, 0)
        self.initial_cell_state_qparams: tuple[float, int] = (1.0, 0)
        self.hidden_state_dtype = self.cell_state_dtype = torch.quint8

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Tensor]:
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        if self.split_gates:
            sums = [self.gates[gate].add(self.igates[gate](x), self.hgates[gate](hx)) for gate in _GATES]
        else:
            sums = self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        input_gate, forget_gate, cell_gate, output_gate = sums
        input_gate, forget_gate = self.input_gate(input_gate), self.forget_gate(forget_gate)
        cell_gate, output_gate = self.cell_gate(cell_gate), self.output_gate(output_gate)
        kept = self.fgate_cx.mul(forget_gate, cx)
        new = self.igate_cgate.mul(input_gate, cell_gate)
        cy = self.fgate_cx_igate_cgate.add(kept, new)
        return self.ogate_cy.mul(output_gate, torch.tanh(cy)), cy

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> tuple[Tensor, Tensor]:
        """States of zero.

        Args:
            batch_size: The number of rows.
            is_quantized: Whether the states are quantized. Default: ``False``.
        """
        h, c = (torch.zeros((batch_size, self.hidden_size)) for _ in range(2))
        if is_quantized:
            h = torch.quantize_per_tensor(h, *self.initial_hidden_state_qparams, self.hidden_state_dtype)
            c = torch.quantize_per_tensor(c, *self.initial_cell_state_qparams, self.cell_state_dtype)
        return h, c

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(cls, wi: Tensor, wh: Tensor, bi: Any = None, bh: Any = None, split_gates: bool = False) -> Any:
        """The cell with given weights.

        Args:
            wi: The weight of inputs.
            wh: The weight of states.
            bi: The bias of inputs. Default: none.
            bh: The bias of states. Default: none.
            split_gates: Whether each gate has linear layers of its own. Default: ``False``.
        """
        if (bi is None) != (bh is None):
            raise AssertionError("bi and bh must both be None or both have values")
        cell = cls(wi.shape[1], wh.shape[1], bi is not None, split_gates=split_gates)
        for weight, bias, layers in ((wi, bi, cell.igates), (wh, bh, cell.hgates)):
            linears = list(layers.values()) if split_gates else [layers]
            for linear, part in zip(linears, weight.chunk(len(linears), 0), strict=True):
                linear.weight = Parameter(part)
            if bias is not None:
                for linear, part in zip(linears, bias.chunk(len(linears), 0), strict=True):
                    linear.bias = Parameter(part)
        return cell

    @classmethod
    def from_float(cls, other: Any, use_precomputed_fake_quant: bool = False, split_gates: bool = False) -> Any:
        """The cell of a float one.

        Args:
            other: The float cell, with a ``qconfig``.
            use_precomputed_fake_quant: No effect.
            split_gates: Whether each gate has linear layers of its own. Default: ``False``.
        """
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls.from_params(other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh, split_gates)
        parts = [made, made.igates, made.hgates]
        if split_gates:
            parts += [*made.igates.values(), *made.hgates.values()]
        for part in parts:
            part.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """The steps of one layer in one direction."""

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None, dtype: Any = None, *,
        split_gates: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.cell = LSTMCell(input_dim, hidden_dim, bias, device, dtype, split_gates=split_gates)

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Any]:
        results = []
        for step in range(x.shape[0]):
            hidden = self.cell(x[step], hidden)
            results.append(hidden[0])
        return torch.stack(results, 0), hidden

    @classmethod
    def from_params(cls, *args: Any, **kwargs: Any) -> Any:
        cell = LSTMCell.from_params(*args, **kwargs)
        layer = cls(cell.input_size, cell.hidden_size, cell.bias, split_gates=cell.split_gates)
        layer.cell = cell
        return layer


class _LSTMLayer(nn.Module):
    """One layer in one direction or both."""

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, batch_first: bool = False,
        bidirectional: bool = False, device: Any = None, dtype: Any = None, *, split_gates: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.batch_first, self.bidirectional = batch_first, bidirectional
        options: dict[str, Any] = {"split_gates": split_gates, "device": device, "dtype": dtype}
        self.layer_fw = _LSTMSingleLayer(input_dim, hidden_dim, bias, **options)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(input_dim, hidden_dim, bias, **options)

    def forward(self, x: Tensor, hidden: Any = None) -> Any:
        if self.batch_first:
            x = x.transpose(0, 1)
        hx, cx = (None, None) if hidden is None else hidden
        if not self.bidirectional:
            result, (h, c) = self.layer_fw(x, None if hx is None and cx is None else (hx, cx))
        else:
            ways = [None if hx is None or cx is None else (hx[way], cx[way]) for way in (0, 1)]
            forward, (h_fw, c_fw) = self.layer_fw(x, ways[0])
            backward, (h_bw, c_bw) = self.layer_bw(x.flip(0), ways[1])
            result = torch.cat([forward, backward.flip(0)], forward.dim() - 1)
            h, c = torch.stack([h_fw, h_bw], 0), torch.stack([c_fw, c_bw], 0)
        if self.batch_first:
            result = result.transpose(0, 1)
        return result, (h, c)

    @classmethod
    def from_float(cls, other: Any, layer_idx: int = 0, qconfig: Any = None, **kwargs: Any) -> Any:
        if not hasattr(other, "qconfig") and qconfig is None:
            raise AssertionError("Either other must have a 'qconfig' attribute or qconfig must be provided.")
        given = {
            name: kwargs.get(name, getattr(other, name))
            for name in ("input_size", "hidden_size", "bias", "batch_first", "bidirectional")
        }
        split_gates = kwargs.get("split_gates", False)
        layer = cls(*given.values(), split_gates=split_gates)
        layer.qconfig = getattr(other, "qconfig", qconfig)
        for name, end in (("layer_fw", ""), ("layer_bw", "_reverse"))[: 1 + bool(other.bidirectional)]:
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            weights = [getattr(other, f"{kind}_l{layer_idx}{end}", None) for kind in names]
            setattr(layer, name, _LSTMSingleLayer.from_params(*weights, split_gates=split_gates))
        return layer


class LSTM(nn.Module):
    """An LSTM of several layers, made of parts that can be quantized.

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

    Raises:
        ValueError: `dropout` is not a number between 0 and 1.

    Example:
        >>> torch.ao.nn.quantizable.LSTM(2, 3)(torch.ones(4, 1, 2))[0].shape
        torch.Size([4, 1, 3])
    """

    _FLOAT_MODULE: Any = nn.LSTM

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None, *,
        split_gates: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0:
            warnings.warn(
                "dropout option for quantizable LSTM is ignored. If you are training, please, use nn.LSTM version "
                "followed by `prepare` step.",
                stacklevel=2,
            )
            if num_layers == 1:
                warnings.warn(
                    "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                    f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                    stacklevel=2,
                )
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        self.training = False
        options: dict[str, Any] = {"split_gates": split_gates, "device": device, "dtype": dtype}
        sizes = [input_size] + [hidden_size * (1 + bidirectional)] * (num_layers - 1)
        self.layers = nn.ModuleList(_LSTMLayer(n, hidden_size, bias, False, bidirectional, **options) for n in sizes)

    def forward(self, x: Tensor, hidden: Any = None) -> Any:
        if self.batch_first:
            x = x.transpose(0, 1)
        batch, ways = x.size(1), 1 + self.bidirectional
        if hidden is None:
            zeros = torch.zeros(ways, batch, self.hidden_size, dtype=torch.float, device=x.device).squeeze(0)
            if x.is_quantized:
                zeros = torch.quantize_per_tensor(zeros, 1.0, 0, x.dtype)
            states = [(zeros, zeros)] * self.num_layers
        elif isinstance(hidden[0], Tensor):
            shape = (self.num_layers, ways, batch, self.hidden_size)
            hx, cx = (state.reshape(shape) for state in hidden)
            states = [(hx[layer].squeeze(0), cx[layer].squeeze(0)) for layer in range(self.num_layers)]
        else:
            states = hidden
        lasts = []
        for layer, state in zip(self.layers, states, strict=True):
            x, last = layer(x, state)
            lasts.append(last)
        h, c = (torch.stack([last[part] for last in lasts]) for part in (0, 1))
        h, c = (state.reshape(-1, state.shape[-2], state.shape[-1]) for state in (h, c))
        return x.transpose(0, 1) if self.batch_first else x, (h, c)

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other: Any, qconfig: Any = None, split_gates: bool = False) -> Any:
        """The layer of a float one, with observers.

        Args:
            other: The float layer.
            qconfig: Its configuration, if it has none.
            split_gates: Whether each gate has linear layers of its own. Default: ``False``.
        """
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("Either other must have a 'qconfig' attribute or qconfig must be provided.")
        made = cls(
            other.input_size, other.hidden_size, other.num_layers, other.bias, other.batch_first, other.dropout,
            other.bidirectional, split_gates=split_gates,
        )  # fmt: skip
        made.qconfig = getattr(other, "qconfig", qconfig)
        for place in range(other.num_layers):
            made.layers[place] = _LSTMLayer.from_float(
                other, place, qconfig, batch_first=False, split_gates=split_gates
            )
        made.train(other.training)
        prepare = CALLBACKS.prepare_to_train_quantized if other.training else CALLBACKS.prepare_to_quantize
        return prepare(made, inplace=True)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Refuses: `torch.ao.nn.quantized.LSTM` has the quantized form.

        Args:
            other: No effect.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "It looks like you are trying to convert a non-quantizable LSTM module. Please, see the examples on "
            "quantizable LSTMs."
        )
