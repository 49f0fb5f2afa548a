"""Recurrent layers. Their cells are in _recurrent_cells.py."""

from __future__ import annotations

import math
import numbers
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.adopted_classes import adopt_classes
from torchlite.nn import init
from torchlite.nn.parameter import Parameter
from torchlite.nn.utils.rnn import PackedSequence

from ._recurrent_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _is_autocast_enabled():
    """True if autocast is enabled and will cast the arguments to one dtype."""
    from ...amp.autocast_mode import is_any_autocast_enabled

    return is_any_autocast_enabled()


def apply_permutation(tensor: Tensor, permutation: Any, dim: int = 1) -> Any:
    """Deprecated: use index_select."""
    warnings.warn(
        "apply_permutation is deprecated, please use tensor.index_select(dim, permutation) instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


def _apply_permutation(tensor, permutation, dim=1):
    return tensor.index_select(dim, permutation)


def _num_directions(module):
    return 2 if module.bidirectional else 1


class RNNBase(Module):
    """The base class of `RNN`, `LSTM` and `GRU`: their parameters, and the checks of their arguments.

    Use one of the subclasses; this class has no ``forward``. The mode sets the number G of gates: 4 for ``"LSTM"``, 3
    for ``"GRU"``, else 1. D is 2 if ``bidirectional``, else 1. H_out is ``proj_size`` if that is greater than 0, else
    ``hidden_size``.

    Args:
        mode: ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``.
        input_size: Number of features of an element of the input; greater than 0.
        hidden_size: Number of features of the hidden state; greater than 0.
        num_layers: Number of layers. Each takes the outputs of the one before it. Default: 1.
        bias: Whether the layers have the biases. Default: ``True``.
        batch_first: Whether dimension 0 of input and output is the batch, not the time. States keep their shape.
            Default: ``False``.
        dropout: Probability of zeroing an output of each layer but the last, in training mode; in [0, 1]. Default: 0.
        bidirectional: Whether each layer also runs from the end to the beginning. Default: ``False``.
        proj_size: Size of the hidden state after a learnable projection; smaller than ``hidden_size``. 0 projects
            nothing. Default: 0.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Attributes:
        weight_ih_l{k} (Parameter): Weights of the input of layer k, with G gates, shape
            ``(G * hidden_size, input_size)`` for k = 0, else ``(G * hidden_size, D * H_out)``.
        weight_hh_l{k} (Parameter): Weights of the hidden state, shape ``(G * hidden_size, H_out)``.
        bias_ih_l{k} (Parameter): Shape ``(G * hidden_size,)``. Absent if ``bias=False``.
        bias_hh_l{k} (Parameter): Shape ``(G * hidden_size,)``. Absent if ``bias=False``.
        weight_hr_l{k} (Parameter): Weights of the projection, shape ``(proj_size, hidden_size)``. Absent if
            ``proj_size=0``.

    Returns:
        A module with the parameters of all layers and directions.

    Raises:
        ValueError: An argument is out of range.
        TypeError: A size is not an int, or ``bias`` or ``batch_first`` is not a bool.

    Example:
        >>> base = torch.nn.RNNBase("GRU", 4, 8)
        >>> [name for name, _ in base.named_parameters()]
        ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
        >>> isinstance(torch.nn.GRU(4, 8), torch.nn.RNNBase)
        True

    See also:
        `RNN`, `LSTM`, `GRU`.
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        _check_arguments(self, dropout)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: _num_directions(self)]:
                _add_layer(self, layer, suffix, _GATES[mode] * hidden_size, device, dtype)
        self._init_flat_weights()
        self.reset_parameters()

    # The weights as a list, which forward passes to the op. Programs replace its items.

    def _init_flat_weights(self):
        self._flat_weights: list[Any] = [getattr(self, name, None) for name in self._flat_weights_names]
        self._flat_weight_refs: list[Any] = [
            None if weight is None else weakref.ref(weight) for weight in self._flat_weights
        ]
        self.flatten_parameters()

    def _weights_have_changed(self):
        """True if an attribute is not the tensor in the flat weight list, as inside `functional_call`."""
        params = self._parameters
        for reference, name in zip(self._flat_weight_refs, self._flat_weights_names, strict=True):
            weight = params[name] if name in params else getattr(self, name, None)
            if weight is not None and reference is not None and reference() is not weight:
                return True
        return False

    def _update_flat_weights(self):
        if self._weights_have_changed():
            self._init_flat_weights()

    def __setattr__(self, name: str, value: Any) -> None:
        names = self.__dict__.get("_flat_weights_names")
        if names and "_flat_weights" in self.__dict__ and name in names:
            self._flat_weights[names.index(name)] = value
        super().__setattr__(name, value)

    def __getstate__(self) -> Any:
        self._update_flat_weights()
        state = super().__getstate__()
        del state["_flat_weight_refs"]
        return state

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        attributes = self.__dict__
        attributes.setdefault("proj_size", 0)
        names = attributes["_all_weights"]
        attributes.setdefault("_flat_weights_names", [name for group in names for name in group])
        self._init_flat_weights()

    def _apply(self, fn, recurse=True):
        self._flat_weight_refs = []
        applied = super()._apply(fn, recurse)
        self._init_flat_weights()
        return applied

    def _replicate_for_data_parallel(self):
        replica = super()._replicate_for_data_parallel()
        replica._flat_weights = replica._flat_weights[:]
        replica._flat_weights_names = replica._flat_weights_names[:]
        return replica

    @property
    def all_weights(self) -> Any:
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> Any:
        """No effect: parameters need no particular layout here."""

    def reset_parameters(self) -> None:
        """Initialise the parameters from U(-k, k) with k = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input: Tensor, batch_sizes: Any) -> Any:
        """Raises an error for an input of a wrong dtype, dimension or size.

        Args:
            input: The input of `forward`.
            batch_sizes: The batch sizes of a `PackedSequence`, or ``None``.

        Raises:
            ValueError: The dtype is not the weights'.
            RuntimeError: The number of dimensions or the size of the last one does not fit.
        """
        weight = self._flat_weights[0]
        if input.dtype is not weight.dtype and not _is_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Any) -> Any:
        """Returns the shape of the hidden state for an input.

        Args:
            input: The input of `forward`.
            batch_sizes: The batch sizes of a `PackedSequence`, or ``None``.
        """
        return _expected_state_size(self, input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: Any, msg: str = "Expected hidden size {}, got {}"
    ) -> Any:
        """Raises an error for a state of a wrong shape.

        Args:
            hx: The state.
            expected_hidden_size: The shape that it must have.
            msg: The message, with two places for the expected and the given shape.

        Raises:
            RuntimeError: The shape differs.
        """
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Any) -> Any:
        """Raises an error for an input or a state of a wrong dtype or shape.

        Args:
            input: The input of `forward`.
            hidden: The state; a pair of states for `LSTM`.
            batch_sizes: The batch sizes of a `PackedSequence`, or ``None``.
        """
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Returns a state with its sequences in another order.

        Args:
            hx: The state; a pair of states for `LSTM`.
            permutation: The indices of the sequences, int64, of shape ``(batch,)``, or ``None`` for no change.
        """
        return hx if permutation is None else _apply_permutation(hx, permutation)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text


def _check_arguments(module, dropout: Any):
    is_number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not is_number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and module.num_layers == 1:  # type: ignore[operator]
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={module.num_layers}",
            stacklevel=4,
        )
    for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
        value = getattr(module, name)
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    if module.input_size <= 0:
        raise ValueError("input_size must be greater than zero")
    if module.hidden_size <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if module.num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if module.proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if module.proj_size >= module.hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if module.proj_size > 0 and module.mode != "LSTM":
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


def _add_layer(module, layer, suffix, gate_size, device, dtype):
    real_size = module.proj_size or module.hidden_size
    input_size = module.input_size if layer == 0 else real_size * _num_directions(module)
    shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gate_size, input_size), "weight_hh": (gate_size, real_size)}
    if module.bias:
        shapes |= {"bias_ih": (gate_size,), "bias_hh": (gate_size,)}
    if module.proj_size > 0:
        shapes["weight_hr"] = (module.proj_size, module.hidden_size)
    names = []
    for kind, shape in shapes.items():
        names.append(f"{kind}_l{layer}{suffix}")
        setattr(module, names[-1], Parameter(torch.empty(shape, device=device, dtype=dtype)))
    module._all_weights.append(names)
    module._flat_weights_names += names


def _expected_state_size(module, input, batch_sizes, size):
    if batch_sizes is not None:
        batch = int(batch_sizes[0])
    else:
        batch = input.size(0) if module.batch_first else input.size(1)
    return module.num_layers * _num_directions(module), batch, size


def _unpack_input(module, input):
    """(data, batch sizes or None, sorted indices, unsorted indices, whether the input had a batch dimension)."""
    if isinstance(input, PackedSequence):
        return (*input, True)
    if input.dim() not in (2, 3):
        raise ValueError(f"{module._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
    batched = input.dim() == 3
    return (input if batched else input.unsqueeze(0 if module.batch_first else 1)), None, None, None, batched


def _make_zeros(like, size):
    return torch.zeros(size, dtype=like.dtype, device=like.device)


def _repack_output(module, input, output, batch_sizes, sorted_indices, unsorted_indices, batched):
    if batch_sizes is not None:
        return PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
    return output if batched else output.squeeze(0 if module.batch_first else 1)


def _run_one_state(module, input, hx):
    """Run the forward of RNN and GRU, which have one state."""
    module._update_flat_weights()
    packed = isinstance(input, PackedSequence)
    data, batch_sizes, sorted_indices, unsorted_indices, batched = _unpack_input(module, input)
    if hx is None:
        hx = _make_zeros(data, _expected_state_size(module, data, batch_sizes, module.hidden_size))
    else:
        if not packed:
            if batched and hx.dim() != 3:
                raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")
            if not batched:
                if hx.dim() != 2:
                    raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
                hx = hx.unsqueeze(1)
        hx = module.permute_hidden(hx, sorted_indices)
    module.check_forward_args(data, hx, batch_sizes)
    run: Any = {"GRU": torch.gru, "RNN_TANH": torch.rnn_tanh, "RNN_RELU": torch.rnn_relu}[module.mode]
    options: Any = (
        module._flat_weights,
        module.bias,
        module.num_layers,
        module.dropout,
        module.training,
        module.bidirectional,
    )
    if packed:
        output, hidden = run(data, batch_sizes, hx, *options)
    else:
        output, hidden = run(data, hx, *options, module.batch_first)
    output = _repack_output(module, data, output, batch_sizes, sorted_indices, unsorted_indices, batched)
    hidden = module.permute_hidden(hidden, unsorted_indices)
    return output, (hidden if batched else hidden.squeeze(1))


class RNN(RNNBase):
    r"""Applies a recurrent network of Elman's form to a sequence.

    .. math::

        h_t = \tanh(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})

    With ``nonlinearity="relu"`` the function is `ReLU`. D is 2 if ``bidirectional``, else 1. Parameters are drawn from
    :math:`U(-k, k)` with :math:`k = 1 / \sqrt{\text{hidden\_size}}`. Those of the reverse direction have the suffix
    ``_reverse``.

    Args:
        input_size: Number of features of an element of the input; greater than 0.
        hidden_size: Number of features of the hidden state; greater than 0.
        num_layers: Number of layers. Each takes the outputs of the one before it. Default: 1.
        nonlinearity: ``"tanh"`` or ``"relu"``. Default: ``"tanh"``.
        bias: Whether the layers have the biases. Default: ``True``.
        batch_first: Whether dimension 0 of input and output is the batch, not the time. States keep their shape.
            Default: ``False``.
        dropout: Probability of zeroing an output of each layer but the last, in training mode; in [0, 1]. Default: 0.
        bidirectional: Whether each layer also runs from the end to the beginning. Default: ``False``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.
        proj_size: Only 0; projections are for `LSTM`.

    Shape:
        - Input: ``(T, N, input_size)``, ``(N, T, input_size)`` with ``batch_first``, or ``(T, input_size)`` without a
          batch; or a `PackedSequence`.
        - h_0: ``(D * num_layers, N, hidden_size)``, or ``(D * num_layers, hidden_size)`` without a batch. Default:
          zeros.
        - Output: ``(T, N, D * hidden_size)``, ``(N, T, D * hidden_size)`` with ``batch_first``, or
          ``(T, D * hidden_size)``; a `PackedSequence` for a packed input.
        - h_n: the shape of h_0.

    Attributes:
        weight_ih_l{k} (Parameter): Weights of the input of layer k, shape ``(hidden_size, input_size)`` for k = 0,
            else ``(hidden_size, D * hidden_size)``.
        weight_hh_l{k} (Parameter): Weights of the hidden state, shape ``(hidden_size, hidden_size)``.
        bias_ih_l{k} (Parameter): Shape ``(hidden_size,)``. Absent if ``bias=False``.
        bias_hh_l{k} (Parameter): Shape ``(hidden_size,)``. Absent if ``bias=False``.

    Returns:
        A tuple ``(output, h_n)``: the hidden states of the last layer at all times, both directions joined, and the
        last hidden state of each layer and direction.

    Raises:
        ValueError: An argument is out of range, or the input has a wrong dtype or number of dimensions.
        TypeError: A size is not an int, or ``bias`` or ``batch_first`` is not a bool.
        RuntimeError: The sizes of input or states do not match.

    Example:
        >>> rnn = torch.nn.RNN(10, 20, num_layers=2)
        >>> output, h_n = rnn(torch.zeros(5, 3, 10))
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))

    References:
        - J. L. Elman. Finding structure in time. 1990.

    See also:
        `LSTM`, `GRU`, `RNNCell`, `torch.nn.utils.rnn.pack_padded_sequence`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
        proj_size: int = 0,
    ) -> None:
        if proj_size:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.__dict__["nonlinearity"] = nonlinearity
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Runs all layers over a sequence.

        Args:
            input: A tensor or a `PackedSequence`; see the class for the shapes.
            hx: The initial state h_0. ``None`` is zeros. Default: ``None``.

        Returns:
            A tuple ``(output, h_n)``.
        """
        return _run_one_state(self, input, hx)


class GRU(RNNBase):
    r"""Applies a network of gated recurrent units to a sequence.

    .. math::

        \begin{aligned}
        r_t &= \sigma(W_{ir} x_t + b_{ir} + W_{hr} h_{t-1} + b_{hr}) \\
        z_t &= \sigma(W_{iz} x_t + b_{iz} + W_{hz} h_{t-1} + b_{hz}) \\
        n_t &= \tanh(W_{in} x_t + b_{in} + r_t \odot (W_{hn} h_{t-1} + b_{hn})) \\
        h_t &= (1 - z_t) \odot n_t + z_t \odot h_{t-1}
        \end{aligned}

    The reset gate :math:`r` multiplies the product with the hidden state, as in cuDNN; in the paper it multiplies the
    state before the product. The parameters stack the rows of the gates in the order r, z, n. D is 2 if
    ``bidirectional``, else 1. Parameters are drawn from :math:`U(-k, k)` with
    :math:`k = 1 / \sqrt{\text{hidden\_size}}`. Those of the reverse direction have the suffix ``_reverse``.

    Args:
        input_size: Number of features of an element of the input; greater than 0.
        hidden_size: Number of features of the hidden state; greater than 0.
        num_layers: Number of layers. Each takes the outputs of the one before it. Default: 1.
        bias: Whether the layers have the biases. Default: ``True``.
        batch_first: Whether dimension 0 of input and output is the batch, not the time. States keep their shape.
            Default: ``False``.
        dropout: Probability of zeroing an output of each layer but the last, in training mode; in [0, 1]. Default: 0.
        bidirectional: Whether each layer also runs from the end to the beginning. Default: ``False``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.
        proj_size: Only 0; projections are for `LSTM`.

    Shape:
        - Input: ``(T, N, input_size)``, ``(N, T, input_size)`` with ``batch_first``, or ``(T, input_size)`` without a
          batch; or a `PackedSequence`.
        - h_0: ``(D * num_layers, N, hidden_size)``, or ``(D * num_layers, hidden_size)`` without a batch. Default:
          zeros.
        - Output: ``(T, N, D * hidden_size)``, ``(N, T, D * hidden_size)`` with ``batch_first``, or
          ``(T, D * hidden_size)``; a `PackedSequence` for a packed input.
        - h_n: the shape of h_0.

    Attributes:
        weight_ih_l{k} (Parameter): Weights of the input of layer k, shape ``(3 * hidden_size, input_size)`` for k = 0,
            else ``(3 * hidden_size, D * hidden_size)``.
        weight_hh_l{k} (Parameter): Weights of the hidden state, shape ``(3 * hidden_size, hidden_size)``.
        bias_ih_l{k} (Parameter): Shape ``(3 * hidden_size,)``. Absent if ``bias=False``.
        bias_hh_l{k} (Parameter): Shape ``(3 * hidden_size,)``. Absent if ``bias=False``.

    Returns:
        A tuple ``(output, h_n)``: the hidden states of the last layer at all times, both directions joined, and the
        last hidden state of each layer and direction.

    Raises:
        ValueError: An argument is out of range, or the input has a wrong dtype or number of dimensions.
        TypeError: A size is not an int, or ``bias`` or ``batch_first`` is not a bool.
        RuntimeError: The sizes of input or states do not match.

    Example:
        >>> gru = torch.nn.GRU(10, 20, num_layers=2, bidirectional=True)
        >>> output, h_n = gru(torch.zeros(5, 3, 10))
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 40]), torch.Size([4, 3, 20]))

    References:
        - K. Cho, B. van Merriënboer, C. Gulcehre, D. Bahdanau, F. Bougares, H. Schwenk, Y. Bengio. Learning phrase
          representations using RNN encoder-decoder for statistical machine translation. 2014.

    See also:
        `LSTM`, `RNN`, `GRUCell`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
        proj_size: int = 0,
    ) -> None:
        if proj_size:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Runs all layers over a sequence.

        Args:
            input: A tensor or a `PackedSequence`; see the class for the shapes.
            hx: The initial state h_0. ``None`` is zeros. Default: ``None``.

        Returns:
            A tuple ``(output, h_n)``.
        """
        return _run_one_state(self, input, hx)


class LSTM(RNNBase):
    r"""Applies a long short-term memory network to a sequence.

    .. math::

        \begin{aligned}
        i_t &= \sigma(W_{ii} x_t + b_{ii} + W_{hi} h_{t-1} + b_{hi}) \\
        f_t &= \sigma(W_{if} x_t + b_{if} + W_{hf} h_{t-1} + b_{hf}) \\
        g_t &= \tanh(W_{ig} x_t + b_{ig} + W_{hg} h_{t-1} + b_{hg}) \\
        o_t &= \sigma(W_{io} x_t + b_{io} + W_{ho} h_{t-1} + b_{ho}) \\
        c_t &= f_t \odot c_{t-1} + i_t \odot g_t \\
        h_t &= o_t \odot \tanh(c_t)
        \end{aligned}

    With ``proj_size > 0`` the hidden state is :math:`W_{hr} h_t`. The parameters stack the rows of the gates in the
    order i, f, g, o. H_out is ``proj_size`` if that is greater than 0, else ``hidden_size``. D is 2 if
    ``bidirectional``, else 1. Parameters are drawn from :math:`U(-k, k)` with
    :math:`k = 1 / \sqrt{\text{hidden\_size}}`. Those of the reverse direction have the suffix ``_reverse``.

    Args:
        input_size: Number of features of an element of the input; greater than 0.
        hidden_size: Number of features of the hidden state; greater than 0.
        num_layers: Number of layers. Each takes the outputs of the one before it. Default: 1.
        bias: Whether the layers have the biases. Default: ``True``.
        batch_first: Whether dimension 0 of input and output is the batch, not the time. States keep their shape.
            Default: ``False``.
        dropout: Probability of zeroing an output of each layer but the last, in training mode; in [0, 1]. Default: 0.
        bidirectional: Whether each layer also runs from the end to the beginning. Default: ``False``.
        proj_size: Size of the hidden state after a learnable projection; smaller than ``hidden_size``. 0 projects
            nothing. Default: 0.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(T, N, input_size)``, ``(N, T, input_size)`` with ``batch_first``, or ``(T, input_size)`` without a
          batch; or a `PackedSequence`.
        - h_0: ``(D * num_layers, N, H_out)``, or ``(D * num_layers, H_out)`` without a batch. Default: zeros.
        - c_0: ``(D * num_layers, N, hidden_size)``, or ``(D * num_layers, hidden_size)``. Default: zeros.
        - Output: ``(T, N, D * H_out)``, ``(N, T, D * H_out)`` with ``batch_first``, or ``(T, D * H_out)``; a
          `PackedSequence` for a packed input.
        - h_n and c_n: the shape of h_0 and c_0.

    Attributes:
        weight_ih_l{k} (Parameter): Weights of the input of layer k, shape ``(4 * hidden_size, input_size)`` for k = 0,
            else ``(4 * hidden_size, D * H_out)``.
        weight_hh_l{k} (Parameter): Weights of the hidden state, shape ``(4 * hidden_size, H_out)``.
        bias_ih_l{k} (Parameter): Shape ``(4 * hidden_size,)``. Absent if ``bias=False``.
        bias_hh_l{k} (Parameter): Shape ``(4 * hidden_size,)``. Absent if ``bias=False``.
        weight_hr_l{k} (Parameter): Weights of the projection, shape ``(proj_size, hidden_size)``. Absent if
            ``proj_size=0``.

    Returns:
        A tuple ``(output, (h_n, c_n))``: the hidden states of the last layer at all times, both directions joined, and
        the last hidden and cell states of each layer and direction. ``forward(input, (h_0, c_0))`` takes the initial
        states as a tuple too.

    Raises:
        ValueError: An argument is out of range, or the input has a wrong dtype or number of dimensions.
        TypeError: A size is not an int, or ``bias`` or ``batch_first`` is not a bool.
        RuntimeError: The sizes of input or states do not match.

    Example:
        >>> lstm = torch.nn.LSTM(10, 20, num_layers=2)
        >>> output, (h_n, c_n) = lstm(torch.zeros(5, 3, 10))
        >>> output.shape, h_n.shape, c_n.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]), torch.Size([2, 3, 20]))
        >>> lstm.weight_ih_l0.shape
        torch.Size([80, 10])

    References:
        - S. Hochreiter, J. Schmidhuber. Long short-term memory. 1997.
        - F. A. Gers, J. Schmidhuber, F. Cummins. Learning to forget: continual prediction with LSTM. 1999.
        - H. Sak, A. Senior, F. Beaufays. Long short-term memory based recurrent neural network architectures for large
          vocabulary speech recognition. 2014. (Projection.)

    See also:
        `GRU`, `RNN`, `LSTMCell`, `torch.nn.utils.rnn.pack_padded_sequence`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Any) -> Any:
        """Returns the shape of the cell state for an input.

        Args:
            input: The input of `forward`.
            batch_sizes: The batch sizes of a `PackedSequence`, or ``None``.
        """
        return _expected_state_size(self, input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Any) -> Any:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        if permutation is None:
            return hx
        return _apply_permutation(hx[0], permutation), _apply_permutation(hx[1], permutation)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Runs all layers over a sequence.

        Args:
            input: A tensor or a `PackedSequence`; see the class for the shapes.
            hx: The tuple ``(h_0, c_0)`` of initial states. ``None`` is zeros. Default: ``None``.

        Returns:
            A tuple ``(output, (h_n, c_n))``.
        """
        self._update_flat_weights()
        packed = isinstance(input, PackedSequence)
        data, batch_sizes, sorted_indices, unsorted_indices, batched = _unpack_input(self, input)
        if hx is None:
            hx = (
                _make_zeros(data, self.get_expected_hidden_size(data, batch_sizes)),
                _make_zeros(data, self.get_expected_cell_size(data, batch_sizes)),
            )
        else:
            if not packed:
                hx = _check_lstm_state(self, hx, batched)
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, hx, batch_sizes)
        options: Any = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        run: Any = torch.lstm
        if packed:
            output, h_n, c_n = run(data, batch_sizes, hx, *options)
        else:
            output, h_n, c_n = run(data, hx, *options, self.batch_first)
        output = _repack_output(self, data, output, batch_sizes, sorted_indices, unsorted_indices, batched)
        hidden = self.permute_hidden((h_n, c_n), unsorted_indices)
        return output, (hidden if batched else (hidden[0].squeeze(1), hidden[1].squeeze(1)))


def _check_lstm_state(module, hx, batched):
    if batched:
        if hx[0].dim() != 3 or hx[1].dim() != 3:
            raise RuntimeError(
                f"For batched 3-D input, hx and cx should also be 3-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) "
                "tensors"
            )
        return hx
    if hx[0].dim() != 2 or hx[1].dim() != 2:
        raise RuntimeError(
            f"For unbatched 2-D input, hx and cx should also be 2-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
        )
    return hx[0].unsqueeze(1), hx[1].unsqueeze(1)


adopt_classes(globals())
