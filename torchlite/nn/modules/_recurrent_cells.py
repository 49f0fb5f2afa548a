"""Cells of recurrent layers: one step of a network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import init
from torchlite.nn.parameter import Parameter

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


class RNNCellBase(Module):
    r"""The base class of `RNNCell`, `LSTMCell` and `GRUCell`: their parameters.

    Use one of the subclasses; this class has no ``forward``.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the hidden state.
        bias: Whether the cell has the biases.
        num_chunks: Number of gates whose rows the parameters stack.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Attributes:
        weight_ih (Parameter): Shape ``(num_chunks * hidden_size, input_size)``, drawn from :math:`U(-k, k)` with
            :math:`k = 1 / \sqrt{\text{hidden\_size}}`.
        weight_hh (Parameter): Shape ``(num_chunks * hidden_size, hidden_size)``, drawn from the same distribution.
        bias_ih (Parameter): Shape ``(num_chunks * hidden_size,)``, drawn from the same distribution. ``None`` if
            ``bias=False``.
        bias_hh (Parameter): Shape ``(num_chunks * hidden_size,)``, drawn from the same distribution. ``None`` if
            ``bias=False``.

    Returns:
        A module with the parameters of one cell.

    Example:
        >>> base = torch.nn.RNNCellBase(4, 8, bias=True, num_chunks=3)
        >>> base.weight_ih.shape, base.weight_hh.shape
        (torch.Size([24, 4]), torch.Size([24, 8]))

    See also:
        `RNNCell`, `LSTMCell`, `GRUCell`.
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: Any,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(torch.empty((num_chunks * hidden_size, input_size), **factory_kwargs))
        self.weight_hh = Parameter(torch.empty((num_chunks * hidden_size, hidden_size), **factory_kwargs))
        self.register_parameter(
            "bias_ih", Parameter(torch.empty(num_chunks * hidden_size, **factory_kwargs)) if bias else None
        )
        self.register_parameter(
            "bias_hh", Parameter(torch.empty(num_chunks * hidden_size, **factory_kwargs)) if bias else None
        )
        self.reset_parameters()

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def reset_parameters(self) -> None:
        """Initialise the parameters from U(-k, k) with k = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)


def _cell_weights(module):
    return module.weight_ih, module.weight_hh, module.bias_ih, module.bias_hh


def _check_dims(module, input, states):
    name = module._get_name()
    if input.dim() not in (1, 2):
        raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
    for place, state in enumerate(states):
        if state.dim() not in (1, 2):
            what = "hidden" if len(states) == 1 else f"hx[{place}]"
            raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {state.dim()}D instead")


def _run_cell(module, run, input, hx):
    """Run one step of a cell with one state."""
    _check_dims(module, input, () if hx is None else (hx,))
    batched = input.dim() == 2
    if not batched:
        input = input.unsqueeze(0)
    if hx is None:
        hx = torch.zeros(input.size(0), module.hidden_size, dtype=input.dtype, device=input.device)
    elif not batched:
        hx = hx.unsqueeze(0)
    result = run(input, hx, *_cell_weights(module))
    return result if batched else result.squeeze(0)


class RNNCell(RNNCellBase):
    r"""Computes one step of a recurrent network of Elman's form.

    .. math::

        h' = \tanh(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})

    With ``nonlinearity="relu"`` the function is `ReLU`.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the hidden state.
        bias: Whether the cell has the biases. Default: ``True``.
        nonlinearity: ``"tanh"`` or ``"relu"``. Default: ``"tanh"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, input_size)`` or ``(input_size)``.
        - h: ``(N, hidden_size)`` or ``(hidden_size)``. Default: zeros.
        - Output: the new h, of the same shape.

    Attributes:
        weight_ih (Parameter): Shape ``(hidden_size, input_size)``, drawn from :math:`U(-k, k)` with
            :math:`k = 1 / \sqrt{\text{hidden\_size}}`.
        weight_hh (Parameter): Shape ``(hidden_size, hidden_size)``, drawn from the same distribution.
        bias_ih (Parameter): Shape ``(hidden_size,)``, drawn from the same distribution. ``None`` if ``bias=False``.
        bias_hh (Parameter): Shape ``(hidden_size,)``, drawn from the same distribution. ``None`` if ``bias=False``.

    Raises:
        ValueError: Input or state has neither 1 nor 2 dimensions.
        RuntimeError: ``nonlinearity`` is unknown, at the call.

    Example:
        >>> cell = torch.nn.RNNCell(10, 20)
        >>> h = torch.zeros(3, 20)
        >>> for x in torch.zeros(6, 3, 10):
        ...     h = cell(x, h)
        >>> h.shape
        torch.Size([3, 20])

    References:
        - J. L. Elman. Finding structure in time. 1990.

    See also:
        `RNN`, `LSTMCell`, `GRUCell`.
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return _run_cell(self, torch.rnn_tanh_cell if self.nonlinearity == "tanh" else torch.rnn_relu_cell, input, hx)


class LSTMCell(RNNCellBase):
    r"""Computes one step of a long short-term memory.

    .. math::

        \begin{aligned}
        i &= \sigma(W_{ii} x + b_{ii} + W_{hi} h + b_{hi}) \\
        f &= \sigma(W_{if} x + b_{if} + W_{hf} h + b_{hf}) \\
        g &= \tanh(W_{ig} x + b_{ig} + W_{hg} h + b_{hg}) \\
        o &= \sigma(W_{io} x + b_{io} + W_{ho} h + b_{ho}) \\
        c' &= f \odot c + i \odot g \\
        h' &= o \odot \tanh(c')
        \end{aligned}

    The parameters stack the rows of the gates in the order i, f, g, o.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the hidden state.
        bias: Whether the cell has the biases. Default: ``True``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, input_size)`` or ``(input_size)``.
        - h and c: ``(N, hidden_size)`` or ``(hidden_size)``, in a tuple. Default: zeros.
        - Output: the new h and c, of the same shapes.

    Attributes:
        weight_ih (Parameter): Shape ``(4 * hidden_size, input_size)``, drawn from :math:`U(-k, k)` with
            :math:`k = 1 / \sqrt{\text{hidden\_size}}`.
        weight_hh (Parameter): Shape ``(4 * hidden_size, hidden_size)``, drawn from the same distribution.
        bias_ih (Parameter): Shape ``(4 * hidden_size,)``, drawn from the same distribution. ``None`` if
            ``bias=False``.
        bias_hh (Parameter): Shape ``(4 * hidden_size,)``, drawn from the same distribution. ``None`` if
            ``bias=False``.

    Returns:
        A tuple ``(h, c)``: the new hidden and cell state.

    Raises:
        ValueError: Input or state has neither 1 nor 2 dimensions.

    Example:
        >>> cell = torch.nn.LSTMCell(10, 20)
        >>> h, c = cell(torch.zeros(3, 10))
        >>> h.shape, c.shape
        (torch.Size([3, 20]), torch.Size([3, 20]))

    References:
        - S. Hochreiter, J. Schmidhuber. Long short-term memory. 1997.
        - F. A. Gers, J. Schmidhuber, F. Cummins. Learning to forget: continual prediction with LSTM. 1999.

    See also:
        `LSTM`, `GRUCell`, `RNNCell`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        _check_dims(self, input, () if hx is None else hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = torch.lstm_cell(input, hx, *_cell_weights(self))
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    r"""Computes one step of a gated recurrent unit.

    .. math::

        \begin{aligned}
        r &= \sigma(W_{ir} x + b_{ir} + W_{hr} h + b_{hr}) \\
        z &= \sigma(W_{iz} x + b_{iz} + W_{hz} h + b_{hz}) \\
        n &= \tanh(W_{in} x + b_{in} + r \odot (W_{hn} h + b_{hn})) \\
        h' &= (1 - z) \odot n + z \odot h
        \end{aligned}

    The parameters stack the rows of the gates in the order r, z, n.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the hidden state.
        bias: Whether the cell has the biases. Default: ``True``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, input_size)`` or ``(input_size)``.
        - h: ``(N, hidden_size)`` or ``(hidden_size)``. Default: zeros.
        - Output: the new h, of the same shape.

    Attributes:
        weight_ih (Parameter): Shape ``(3 * hidden_size, input_size)``, drawn from :math:`U(-k, k)` with
            :math:`k = 1 / \sqrt{\text{hidden\_size}}`.
        weight_hh (Parameter): Shape ``(3 * hidden_size, hidden_size)``, drawn from the same distribution.
        bias_ih (Parameter): Shape ``(3 * hidden_size,)``, drawn from the same distribution. ``None`` if
            ``bias=False``.
        bias_hh (Parameter): Shape ``(3 * hidden_size,)``, drawn from the same distribution. ``None`` if
            ``bias=False``.

    Raises:
        ValueError: Input or state has neither 1 nor 2 dimensions.

    Example:
        >>> cell = torch.nn.GRUCell(10, 20)
        >>> cell(torch.zeros(3, 10), torch.zeros(3, 20)).shape
        torch.Size([3, 20])

    References:
        - K. Cho, B. van Merriënboer, C. Gulcehre, D. Bahdanau, F. Bougares, H. Schwenk, Y. Bengio. Learning phrase
          representations using RNN encoder-decoder for statistical machine translation. 2014.

    See also:
        `GRU`, `LSTMCell`, `RNNCell`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> Tensor:
        return _run_cell(self, torch.gru_cell, input, hx)
