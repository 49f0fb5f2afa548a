"""Recurrent layers with weights of eight bits or in half precision, for float inputs.

A layer quantizes its inputs of all time steps at once, and its state in each step.
"""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite._quantized.recurrent_ops import CellParams
from torchlite.ao.nn.quantized.modules.utils import quantize_weight
from torchlite.nn.utils.rnn import PackedSequence

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _check_dtype(dtype: Any) -> None:
    if dtype not in (torch.qint8, torch.float16):
        raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {dtype}")


def _empty_weight(rows: int, columns: int, dtype: Any) -> Any:
    numbers = torch.randn(rows, columns)
    return numbers if dtype is torch.float16 else torch.quantize_per_tensor(numbers, 1.0, 0, torch.qint8)


def _observer_of(mod: Any) -> Any:
    """Return the observer of weights of a qconfig, or the usual one."""
    qconfig = getattr(mod, "qconfig", None)
    if qconfig is None or qconfig.weight is None:
        from torchlite.ao.quantization.qconfig import default_dynamic_qconfig

        qconfig = default_dynamic_qconfig
    observer = qconfig.weight()
    _check_dtype(observer.dtype)
    return observer


def _quantized(weight: Any, mod: Any) -> Any:
    """Return a weight of a float module, quantized by the observer of its qconfig. In half precision it stays."""
    observer = _observer_of(mod)
    if observer.dtype is torch.float16:
        return weight.detach().float()
    observer(weight)
    return quantize_weight(weight.detach().float(), observer)


def _prepack(weight: Any, bias: Any) -> Any:
    """Pack a quantized weight, or a float one in half precision."""
    name = "linear_prepack" if weight.is_quantized else "linear_prepack_fp16"
    return getattr(torch.ops.quantized, name)(weight, bias)


def _pack_cell(input_weight: Any, state_weight: Any, input_bias: Any, state_bias: Any) -> Any:
    """Return the packed weights of one layer and direction."""
    packed = _prepack(input_weight, input_bias), _prepack(state_weight, state_bias)
    if not input_weight.is_quantized:
        return CellParams("quantized_fp16", *packed)
    biases = () if input_bias is None else (input_bias, state_bias)
    return CellParams("quantized_dynamic", *packed, biases, True)


class PackedParameter(nn.Module):
    """A part of a recurrent layer with the packed weights of one layer and direction.

    Args:
        param: The packed weights.
    """

    def __init__(self, param: Any) -> None:
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}param"] = self.param

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        found = state_dict.pop(f"{prefix}param")
        if isinstance(found, tuple):  # the weights and biases that torchlite saved before it saved the object
            input_weight, input_bias, state_weight, state_bias = found
            found = _pack_cell(input_weight, state_weight, input_bias, state_bias)
        self.param = found
        local_metadata, _, *lists = rest
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)


class RNNBase(nn.Module):
    """What LSTM and GRU share."""

    _FLOAT_MODULE: Any
    _version = 2
    _states: int

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, dtype: Any = torch.qint8,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_dtype(dtype)
        if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.dtype, self.version, self.training = dtype, 2, False
        rows, ways = _GATES[mode] * hidden_size, 1 + bidirectional
        cells = []
        for place in range(num_layers * ways):
            columns = input_size if place < ways else hidden_size * ways
            weights = _empty_weight(rows, columns, dtype), _empty_weight(rows, hidden_size, dtype)
            biases = (torch.randn(rows), torch.randn(rows)) if bias else (None, None)
            cells.append(PackedParameter(_pack_cell(*weights, *biases)))
        self._all_weight_values = nn.ModuleList(cells)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, usual in (
            ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0), ("bidirectional", False),
        ):  # fmt: skip
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def _names(self, kind: str) -> list[tuple[str, str, Any]]:
        ends = ["", "_reverse"][: 1 + self.bidirectional]
        places = [f"l{layer}{end}" for layer in range(self.num_layers) for end in ends]
        return [
            (f"{kind}_ih_{place}", f"{kind}_hh_{place}", values.param)
            for place, values in zip(places, self._all_weight_values, strict=True)
        ]

    def get_weight(self) -> dict[str, Any]:
        """Return the quantized weights by their names in the float layer."""
        return {
            name: part.unpack()[0]
            for first, second, cell in self._names("weight")
            for name, part in ((first, cell.input), (second, cell.state))
        }

    def get_bias(self) -> dict[str, Any]:
        """Return the biases by their names in the float layer."""
        return {
            name: part.unpack()[1]
            for first, second, cell in self._names("bias")
            for name, part in ((first, cell.input), (second, cell.state))
        }

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Pack quantized weights and biases, by their names in the float layer."""
        cells = []
        for (w_input, w_state, _), (b_input, b_state, _) in zip(
            self._names("weight"), self._names("bias"), strict=True
        ):
            given = [weight_bias_dict.get(name) for name in (w_input, w_state, b_input, b_state)]
            cells.append(PackedParameter(_pack_cell(*given)))
        self._all_weight_values = nn.ModuleList(cells)

    def forward(self, input: Any, hx: Any = None) -> Any:
        packed = isinstance(input, PackedSequence)
        data, sizes = (input.data, input.batch_sizes) if packed else (input, None)
        if not packed and data.ndim != 3:
            raise RuntimeError(f"input must have 3 dimensions, got {data.ndim}")
        if data.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {data.shape[-1]}"
            )
        batch = data.shape[0 if self.batch_first else 1] if sizes is None else int(sizes[0])
        states: Any = self._initial_states(input, hx, batch, data)
        where = (data,) if sizes is None else (data, sizes)
        params = [values.param for values in self._all_weight_values]
        flags = self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        end = (self.batch_first,) if sizes is None else ()
        if self._states == 2:
            output, *lasts = torch.ops.aten.quantized_lstm(
                *where, states, params, *flags, *end, dtype=self.dtype, use_dynamic=True
            )
        else:
            output, *lasts = torch.ops.aten.quantized_gru(*where, states[0], params, *flags, *end)
        if packed:
            if input.unsorted_indices is not None:
                lasts = [state.index_select(1, input.unsorted_indices) for state in lasts]
            output = PackedSequence(output, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
        return output, tuple(lasts) if self._states == 2 else lasts[0]

    def _tl_script_text(self) -> tuple[str, str, str]:
        """The parameters, the statements and the results of `forward` in TorchScript, for inputs that are tensors."""
        several = self._states == 2
        state = "Tuple[Tensor, Tensor]" if several else "Tensor"
        count, batch = self.num_layers * (1 + self.bidirectional), 0 if self.batch_first else 1
        size = f"[{count}, torch.size(input, {batch}), {self.hidden_size}]"
        zeros = f"torch.zeros({size}, dtype=ops.prim.dtype(input), layout=None, device=ops.prim.device(input))"
        params = ", ".join(f'getattr(self._all_weight_values, "{i}").param' for i in range(count))
        flags = f"{self.bias}, {self.num_layers}, {self.dropout!r}, self.training, {self.bidirectional}"
        if several:
            given = "  h, c = unchecked_cast(Tuple[Tensor, Tensor], hx)\n  states = [h, c]"
            call = f"torch.quantized_lstm(input, states, [{params}], {flags}, {self.batch_first}, "
            call = f"out, h1, c1 = {call}dtype=self.dtype, use_dynamic=True)\nreturn (out, (h1, c1))"
        else:
            given = "  states = unchecked_cast(Tensor, hx)"
            call = f"out, h1 = torch.quantized_gru(input, states, [{params}], {flags}, {self.batch_first})"
            call += "\nreturn (out, h1)"
        first = "  states = [zeros, zeros]" if several else "  states = zeros"
        body = f"if torch.__is__(hx, None):\n  zeros = {zeros}\n{first}\nelse:\n{given}\n{call}"
        return f"input: Tensor, hx: Optional[{state}]=None", body, f"Tuple[Tensor, {state}]"

    def _initial_states(self, input: Any, hx: Any, batch: int, data: Any) -> list[Any]:
        shape = (self.num_layers * (1 + self.bidirectional), batch, self.hidden_size)
        if hx is None:
            return [torch.zeros(shape, dtype=data.dtype, device=data.device)] * self._states
        given = list(hx) if self._states == 2 else [hx]
        for name, state in zip(("hidden[0]", "hidden[1]") if self._states == 2 else ("hx",), given, strict=True):
            if tuple(state.shape) != shape:
                raise RuntimeError(f"Expected {name} size {shape}, got {tuple(state.shape)}")
        order = getattr(input, "sorted_indices", None) if isinstance(input, PackedSequence) else None
        return given if order is None else [state.index_select(1, order) for state in given]

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make the layer of a float one, with the observer of its qconfig or dynamic quantization's usual one.

        Args:
            mod: The float layer, which has a bias.
            use_precomputed_fake_quant: Has no effect.
        """
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"nnqd.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        made = cls(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional,
            dtype=_observer_of(mod).dtype,
        )  # fmt: skip
        made.set_weight_bias(
            {k: _quantized(v, mod) if k.startswith("weight") else v.detach() for k, v in mod.named_parameters()}
        )
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """Make the layer of a reference one, which has quantized weights.

        Args:
            ref_mod: The reference layer.
        """
        made = cls(
            ref_mod.input_size, ref_mod.hidden_size, ref_mod.num_layers, ref_mod.bias, ref_mod.batch_first,
            ref_mod.dropout, ref_mod.bidirectional,
        )  # fmt: skip
        given = ref_mod.get_quantized_weight_bias_dict().items()
        made.set_weight_bias({k: v if k.startswith("weight") or v is None else v.detach() for k, v in given})
        return made


class LSTM(RNNBase):
    """An LSTM with weights of eight bits or in half precision.

    Inputs, states and results are float32. The inputs of all time steps are quantized at once, to 7 bits. The state is
    quantized in each step. `torch.ao.quantization.quantize_dynamic` makes the layer of a trained one.

    Args:
        *args: Arguments of `torch.nn.LSTM`: `input_size`, `hidden_size`, `num_layers`, `bias`, `batch_first`, `dropout`
            and `bidirectional`.
        **kwargs: The same by name, and `dtype`, the weights' dtype: `torch.qint8`
            or `torch.float16`.

    Raises:
        RuntimeError: Another dtype of weights.

    Example:
        >>> torch.ao.nn.quantized.dynamic.LSTM(3, 4)(torch.ones(5, 2, 3))[0].shape
        torch.Size([5, 2, 4])
    """

    _FLOAT_MODULE = nn.LSTM
    _states = 2

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """A GRU with weights of eight bits or in half precision.

    Inputs, states and results are float32. The inputs of all time steps are quantized at once, to 7 bits. The state is
    quantized in each step. `torch.ao.quantization.quantize_dynamic` makes the layer of a trained one.

    Args:
        *args: Arguments of `torch.nn.GRU`: `input_size`, `hidden_size`, `num_layers`, `bias`, `batch_first`, `dropout`
            and `bidirectional`.
        **kwargs: The same by name, and `dtype`, the weights' dtype: `torch.qint8`
            or `torch.float16`.

    Raises:
        RuntimeError: Another dtype of weights.

    Example:
        >>> torch.ao.nn.quantized.dynamic.GRU(3, 4)(torch.ones(5, 2, 3))[0].shape
        torch.Size([5, 2, 4])
    """

    _FLOAT_MODULE = nn.GRU
    _states = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(nn.Module):
    """What the cells share: one step with packed weights."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, num_chunks: int = 4, dtype: Any = torch.qint8
    ) -> None:
        super().__init__()
        _check_dtype(dtype)
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        rows = num_chunks * hidden_size
        biases = (torch.randn(rows), torch.randn(rows)) if bias else (None, None)
        self._set(_empty_weight(rows, input_size, dtype), _empty_weight(rows, hidden_size, dtype), *biases)

    def _mode(self) -> str:
        raise NotImplementedError

    def _set(self, input_weight: Any, state_weight: Any, input_bias: Any, state_bias: Any) -> None:
        self._packed_weight_ih = _prepack(input_weight, input_bias)
        self._packed_weight_hh = _prepack(state_weight, state_bias)
        self.bias_ih, self.bias_hh = input_bias, state_bias

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        return text + (f", nonlinearity={self.nonlinearity}" if getattr(self, "nonlinearity", "tanh") != "tanh" else "")

    def get_weight(self) -> dict[str, Any]:
        """Return the quantized weights."""
        return {"weight_ih": self._packed_weight_ih.unpack()[0], "weight_hh": self._packed_weight_hh.unpack()[0]}

    def get_bias(self) -> dict[str, Any]:
        """Return the biases."""
        return {"bias_ih": self.bias_ih, "bias_hh": self.bias_hh}

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Pack quantized weights and biases."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        self._set(*(weight_bias_dict.get(name) for name in names))

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}_packed_weight_ih"] = self._packed_weight_ih
        destination[f"{prefix}_packed_weight_hh"] = self._packed_weight_hh

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        found = [state_dict.pop(f"{prefix}_packed_weight_{end}") for end in ("ih", "hh")]
        (input_weight, input_bias), (state_weight, state_bias) = (
            part if isinstance(part, tuple) else part.unpack() for part in found
        )
        self._set(input_weight, state_weight, input_bias, state_bias)
        local_metadata, _, *lists = rest
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)

    def _step(self, input: Any, states: list[Any]) -> tuple:
        if input.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]}, expected {self.input_size}")
        for state in states:
            if tuple(state.shape) != (len(input), self.hidden_size):
                raise RuntimeError(
                    f"hidden has the shape {tuple(state.shape)}, expected {(len(input), self.hidden_size)}"
                )
        compute = getattr(torch.ops.quantized, f"quantized_{self._mode().lower()}_cell_dynamic")
        biases = [torch.empty(0) if bias is None else bias for bias in (self.bias_ih, self.bias_hh)]
        given = states if self._mode() == "LSTM" else states[0]
        return compute(input, given, self._packed_weight_ih, self._packed_weight_hh, *biases)

    def _tl_script_text(self) -> tuple[str, str, str]:
        """The parameters, the statements and the results of `forward` in TorchScript."""
        several = self._mode() == "LSTM"
        state = "Tuple[Tensor, Tensor]" if several else "Tensor"
        size = f"[torch.size(input, 0), {self.hidden_size}]"
        zeros = f"torch.zeros({size}, dtype=ops.prim.dtype(input), layout=None, device=ops.prim.device(input))"
        first = "  states = [zeros, zeros]" if several else "  states = zeros"
        given = (
            "  h, c = unchecked_cast(Tuple[Tensor, Tensor], hx)\n  states = [h, c]" if several
            else "  states = unchecked_cast(Tensor, hx)"
        )  # fmt: skip
        biases = "self.bias_ih, self.bias_hh" if self.bias else "torch.zeros([0]), torch.zeros([0])"
        name = f"ops.quantized.quantized_{self._mode().lower()}_cell_dynamic"
        call = f"{name}(input, states, self._packed_weight_ih, self._packed_weight_hh, {biases})"
        end = f"h1, c1 = {call}\nreturn (h1, c1)" if several else f"return {call}"
        body = f"if torch.__is__(hx, None):\n  zeros = {zeros}\n{first}\nelse:\n{given}\n{end}"
        return f"input: Tensor, hx: Optional[{state}]=None", body, state

    def _zeros(self, input: Any) -> Any:
        return torch.zeros(input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make the cell of a float one, with the observer of its qconfig or dynamic quantization's usual one.

        Args:
            mod: The float cell, which has a bias.
            use_precomputed_fake_quant: Has no effect.
        """
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        named = {"nonlinearity": mod.nonlinearity} if hasattr(mod, "nonlinearity") else {}
        made = cls(mod.input_size, mod.hidden_size, mod.bias, dtype=_observer_of(mod).dtype, **named)
        made._set(
            _quantized(mod.weight_ih, mod), _quantized(mod.weight_hh, mod), mod.bias_ih.detach(), mod.bias_hh.detach()
        )
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """Make the cell of a reference one, which has quantized weights.

        Args:
            ref_mod: The reference cell.
        """
        named = {"nonlinearity": ref_mod.nonlinearity} if hasattr(ref_mod, "nonlinearity") else {}
        made = cls(ref_mod.input_size, ref_mod.hidden_size, ref_mod.bias, **named)
        biases = [bias if bias is None else bias.detach() for bias in (ref_mod.bias_ih, ref_mod.bias_hh)]
        made._set(ref_mod.get_quantized_weight_ih(), ref_mod.get_quantized_weight_hh(), *biases)
        return made


class RNNCell(RNNCellBase):
    """One step of an RNN with weights of eight bits or in half precision.

    Inputs, states and results are float32. Each call quantizes the input and the state to 7 bits.

    Args:
        input_size: Size of the input's last dimension.
        hidden_size: Size of the state's.
        bias: Whether there are biases. Default: ``True``.
        nonlinearity: ``"tanh"`` or ``"relu"``. Default: ``"tanh"``.
        dtype: Dtype of the weights: `torch.qint8` or `torch.float16`.

    Raises:
        RuntimeError: Another dtype of weights.

    Example:
        >>> torch.ao.nn.quantized.dynamic.RNNCell(3, 4)(torch.ones(2, 3)).shape
        torch.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = torch.qint8
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {nonlinearity}")
        super().__init__(input_size, hidden_size, bias, 1, dtype)
        self.nonlinearity = nonlinearity

    def _mode(self) -> str:
        return f"RNN_{self.nonlinearity.upper()}"

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step(input, [self._zeros(input) if hx is None else hx])


class LSTMCell(RNNCellBase):
    """One step of an LSTM with weights of eight bits or in half precision.

    Inputs, states and results are float32. Each call quantizes the input and the state to 7 bits.

    Args:
        input_size: Size of the input's last dimension.
        hidden_size: Size of the state's.
        bias: Whether there are biases. Default: ``True``.
        dtype: Dtype of the weights: `torch.qint8` or `torch.float16`.

    Raises:
        RuntimeError: Another dtype of weights.

    Example:
        >>> h, c = torch.ao.nn.quantized.dynamic.LSTMCell(3, 4)(torch.ones(2, 3))
        >>> h.shape, c.shape
        (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__(input_size, hidden_size, bias, 4, dtype)

    def _mode(self) -> str:
        return "LSTM"

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step(input, [self._zeros(input)] * 2 if hx is None else list(hx))


class GRUCell(RNNCellBase):
    """One step of a GRU with weights of eight bits or in half precision.

    Inputs, states and results are float32. Each call quantizes the input and the state to 7 bits.

    Args:
        input_size: Size of the input's last dimension.
        hidden_size: Size of the state's.
        bias: Whether there are biases. Default: ``True``.
        dtype: Dtype of the weights: `torch.qint8` or `torch.float16`.

    Raises:
        RuntimeError: Another dtype of weights.

    Example:
        >>> torch.ao.nn.quantized.dynamic.GRUCell(3, 4)(torch.ones(2, 3)).shape
        torch.Size([2, 4])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__(input_size, hidden_size, bias, 3, dtype)

    def _mode(self) -> str:
        return "GRU"

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step(input, [self._zeros(input) if hx is None else hx])
