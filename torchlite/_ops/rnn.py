"""Recurrent layers: tanh and relu networks, GRU and LSTM, over padded or packed sequences, and their cells.

A layer works time-major. One matrix product for all steps multiplies the inputs by their weights; only the products of
the states run step by step. The dense LSTM layer is a separate record with a backward record, which a backend may fuse.
"""

from torchlite._dispatch import composite, op
from torchlite._dispatch.shapes import wrap_dim
from torchlite._tensor import Tensor

# --- one step -------------------------------------------------------------------------------------


def _take_chunk(F, x, count, place):
    size = x.shape[-1] // count
    return F.narrow(x, x.ndim - 1, place * size, size)


def _project(F, x, weight, bias):
    out = F.matmul(x, F.transpose(weight, 0, 1))
    return out if bias is None else F.add(out, bias)


def _lstm_update(F, gates, c):
    """(h', c', activated gates) from the sums i, f, g, o."""
    i, f = F.sigmoid(_take_chunk(F, gates, 4, 0)), F.sigmoid(_take_chunk(F, gates, 4, 1))
    g, o = F.tanh(_take_chunk(F, gates, 4, 2)), F.sigmoid(_take_chunk(F, gates, 4, 3))
    c = F.add(F.mul(f, c), F.mul(i, g))
    return F.mul(o, F.tanh(c)), c, (i, f, g, o)


def _gru_update(F, from_input, from_state, h):
    """(h', (r, z, n, the state's part of n)) from the sums of input and state."""
    r = F.sigmoid(F.add(_take_chunk(F, from_input, 3, 0), _take_chunk(F, from_state, 3, 0)))
    z = F.sigmoid(F.add(_take_chunk(F, from_input, 3, 1), _take_chunk(F, from_state, 3, 1)))
    s = _take_chunk(F, from_state, 3, 2)
    n = F.tanh(F.add(_take_chunk(F, from_input, 3, 2), F.mul(r, s)))
    return F.add(n, F.mul(z, F.sub(h, n))), (r, z, n, s)


def _check_cell(input, h, weight_ih, weight_hh, gates):
    for tensor in (input, weight_ih, weight_hh):
        wrap_dim(1, tensor.ndim)
    if input.shape[1] != weight_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]} expected {weight_ih.shape[1]}")
    hidden = weight_hh.shape[1]
    for name, weight in (("weight_ih", weight_ih), ("weight_hh", weight_hh)):
        if weight.shape[0] != gates * hidden:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {gates * hidden}, but got {weight.shape[0]}"
            )
    for place, state in enumerate(h):
        if input.shape[0] != state.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{place} batch size {state.shape[0]}"
            )
        if state.shape[1] != hidden:
            raise RuntimeError(f"hidden{place} has inconsistent hidden_size: got {state.shape[1]}, expected {hidden}")


@composite("lstm_cell(Tensor input, hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)", where="torch")
def _lstm_cell(F, input, hx, w_ih, w_hh, b_ih, b_hh):
    """Computes one step of a long short-term memory cell (Hochreiter and Schmidhuber, 1997).

    Args:
        input: The input, of shape ``(N, I)``.
        hx: The states ``(h, c)``, each of shape ``(N, H)``.
        w_ih: The weight of the input, of shape ``(4 * H, I)``.
        w_hh: The weight of the state, of shape ``(4 * H, H)``.
        b_ih: The bias of the input, of shape ``(4 * H,)``. Default: none.
        b_hh: The bias of the state, of shape ``(4 * H,)``. Default: none.

    Returns:
        The new states ``(h, c)``.

    Example:
        >>> state = torch.zeros(1, 3), torch.zeros(1, 3)
        >>> h, c = torch.lstm_cell(torch.zeros(1, 2), state, torch.ones(12, 2), torch.ones(12, 3))
        >>> h.shape
        torch.Size([1, 3])

    See also:
        `torch.nn.LSTMCell`.
    """
    if not isinstance(hx, (tuple, list)):
        raise TypeError(f"lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not {type(hx).__name__}")
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    _check_cell(input, hx, w_ih, w_hh, 4)
    h, c, _ = _lstm_update(F, F.add(F.linear(input, w_ih, b_ih), F.linear(hx[0], w_hh, b_hh)), hx[1])
    return h, c


@composite(
    "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)", where="torch"
)
def _gru_cell(F, input, hx, w_ih, w_hh, b_ih, b_hh):
    """Computes one step of a gated recurrent unit (Cho et al., 2014).

    Args:
        input: The input, of shape ``(N, I)``.
        hx: The state, of shape ``(N, H)``.
        w_ih: The weight of the input, of shape ``(3 * H, I)``.
        w_hh: The weight of the state, of shape ``(3 * H, H)``.
        b_ih: The bias of the input, of shape ``(3 * H,)``. Default: none.
        b_hh: The bias of the state, of shape ``(3 * H,)``. Default: none.

    Returns:
        The new state, of shape ``(N, H)``.

    Example:
        >>> torch.gru_cell(torch.zeros(1, 2), torch.zeros(1, 3), torch.ones(9, 2), torch.ones(9, 3)).shape
        torch.Size([1, 3])

    See also:
        `torch.nn.GRUCell`.
    """
    _check_cell(input, (hx,), w_ih, w_hh, 3)
    return _gru_update(F, F.linear(input, w_ih, b_ih), F.linear(hx, w_hh, b_hh), hx)[0]


@composite(
    "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)",
    where="torch",
)
def _rnn_tanh_cell(F, input, hx, w_ih, w_hh, b_ih, b_hh):
    """Computes one step of an Elman network: ``tanh(w_ih @ input + b_ih + w_hh @ hx + b_hh)``.

    Args:
        input: The input, of shape ``(N, I)``.
        hx: The state, of shape ``(N, H)``.
        w_ih: The weight of the input, of shape ``(H, I)``.
        w_hh: The weight of the state, of shape ``(H, H)``.
        b_ih: The bias of the input, of shape ``(H,)``. Default: none.
        b_hh: The bias of the state, of shape ``(H,)``. Default: none.

    Returns:
        The new state, of shape ``(N, H)``.

    Example:
        >>> torch.rnn_tanh_cell(torch.zeros(1, 2), torch.zeros(1, 1), torch.ones(1, 2), torch.ones(1, 1))
        tensor([[0.]])

    See also:
        `torch.nn.RNNCell`.
    """
    _check_cell(input, (hx,), w_ih, w_hh, 1)
    return F.tanh(F.add(F.linear(input, w_ih, b_ih), F.linear(hx, w_hh, b_hh)))


@composite(
    "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)",
    where="torch",
)
def _rnn_relu_cell(F, input, hx, w_ih, w_hh, b_ih, b_hh):
    """Computes one step of an Elman network: ``relu(w_ih @ input + b_ih + w_hh @ hx + b_hh)``.

    Args:
        input: The input, of shape ``(N, I)``.
        hx: The state, of shape ``(N, H)``.
        w_ih: The weight of the input, of shape ``(H, I)``.
        w_hh: The weight of the state, of shape ``(H, H)``.
        b_ih: The bias of the input, of shape ``(H,)``. Default: none.
        b_hh: The bias of the state, of shape ``(H,)``. Default: none.

    Returns:
        The new state, of shape ``(N, H)``.

    Example:
        >>> torch.rnn_relu_cell(torch.ones(1, 2), torch.zeros(1, 1), torch.ones(1, 2), torch.ones(1, 1))
        tensor([[2.]])

    See also:
        `torch.nn.RNNCell`.
    """
    _check_cell(input, (hx,), w_ih, w_hh, 1)
    return F.relu(F.add(F.linear(input, w_ih, b_ih), F.linear(hx, w_hh, b_hh)))


# --- the dense LSTM layer -------------------------------------------------------------------------


def _bias_sum(F, b_ih, b_hh):
    return None if b_ih is None else F.add(b_ih, b_hh)


def _take_time_step(F, x, t):
    return F.reshape(F.narrow(x, 0, t, 1), x.shape[1:])


def _lstm_layer(F, input, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse):
    sums = _project(F, input, w_ih, _bias_sum(F, b_ih, b_hh))
    recurrent = F.transpose(w_hh, 0, 1)
    steps = input.shape[0]
    h, c = h0, c0
    outputs, cells, gates = [None] * steps, [None] * steps, [None] * steps
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        h, c, activated = _lstm_update(F, F.add(_take_time_step(F, sums, t), F.matmul(h, recurrent)), c)
        outputs[t], cells[t], gates[t] = h, F.transpose(c, 0, 1), F.transpose(F.cat(list(activated), 1), 0, 1)
    return F.stack(outputs, 0), h, c, F.stack(gates, 0), F.stack(cells, 0)


def _lstm_layer_backward(
    F, grad_output, grad_h, grad_c, input, h0, c0, w_ih, w_hh, b_ih, b_hh, output, gates, cells, reverse, needs
):
    # The forward's saved values are not differentiable functions of the inputs here. They are recomputed, so that this
    # backward is differentiable too.
    output, _, _, gates, cells = _lstm_layer(F, input, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse)
    steps = input.shape[0]
    order = list(range(steps - 1, -1, -1)) if reverse else list(range(steps))
    dh = F._zeros_like(h0) if grad_h is None else grad_h
    dc = F._zeros_like(c0) if grad_c is None else grad_c
    sums = [None] * steps
    for place in range(steps - 1, -1, -1):
        t = order[place]
        c_before = c0 if place == 0 else F.transpose(_take_time_step(F, cells, order[place - 1]), 0, 1)
        i, f, g, o = (_take_chunk(F, F.transpose(_take_time_step(F, gates, t), 0, 1), 4, k) for k in range(4))
        squashed = F.tanh(F.transpose(_take_time_step(F, cells, t), 0, 1))
        if grad_output is not None:
            dh = F.add(dh, _take_time_step(F, grad_output, t))
        dc = F.add(dc, F.mul(F.mul(dh, o), _one_minus_x(F, F.mul(squashed, squashed))))
        parts = [
            F.mul(F.mul(dc, g), _sigmoid_slope(F, i)),
            F.mul(F.mul(dc, c_before), _sigmoid_slope(F, f)),
            F.mul(F.mul(dc, i), _one_minus_x(F, F.mul(g, g))),
            F.mul(F.mul(dh, squashed), _sigmoid_slope(F, o)),
        ]
        sums[t] = F.cat(parts, 1)
        dc = F.mul(dc, f)
        dh = F.matmul(sums[t], w_hh)
    dsums = F.stack(sums, 0)
    flat = F.reshape(dsums, (-1, dsums.shape[2]))
    across = F.transpose(flat, 0, 1)
    first = F.unsqueeze(h0, 0)
    before = F.cat(
        [F.narrow(output, 0, 1, steps - 1), first] if reverse else [first, F.narrow(output, 0, 0, steps - 1)], 0
    )
    db = F.sum(flat, (0,), False) if b_ih is not None else None
    return (
        F.matmul(dsums, w_ih) if needs[0] else None,
        dh,
        dc,
        F.matmul(across, F.reshape(input, (-1, input.shape[2]))),
        F.matmul(across, F.reshape(before, (-1, before.shape[2]))),
        db,
        db,
    )


def _one_minus_x(F, x):
    return F.add(F.neg(x), 1.0)


def _sigmoid_slope(F, s):
    return F.mul(s, _one_minus_x(F, s))


def _lstm_layer_vjp(F, g, input, h0, c0, w_ih, w_hh, b_ih, b_hh, out0, out3, out4, reverse, needs):
    return F._lstm_layer_backward(
        g[0], g[1], g[2], input, h0, c0, w_ih, w_hh, b_ih, b_hh, out0, out3, out4, reverse, needs
    )


op(
    "_lstm_layer(Tensor input, Tensor h0, Tensor c0, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, reverse)",
    where="",
    outputs=("output", "h", "c", "gates", "cells"),
    nondiff=(3, 4),
    composite=_lstm_layer,
    vjp={("input", "h0", "c0", "w_ih", "w_hh", "b_ih", "b_hh"): _lstm_layer_vjp},
    doc="One LSTM layer in one direction: input (T, N, I) -> output (T, N, H), last h and c (N, H), and what a fused "
    "backward wants of the gates and cells.",
)
op(
    "_lstm_layer_backward(Tensor? grad_output, Tensor? grad_h, Tensor? grad_c, Tensor input, Tensor h0, Tensor c0, "
    "Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor output, Tensor gates, Tensor cells, reverse, needs)",
    where="",
    composite=_lstm_layer_backward,
    doc="The gradients of `_lstm_layer` with respect to its seven tensors.",
)


# --- the dense GRU layer --------------------------------------------------------------------------


def _gru_layer(F, input, h0, w_ih, w_hh, b_ih, b_hh, reverse):
    sums = _project(F, input, w_ih, b_ih)
    steps = input.shape[0]
    h = h0
    outputs, kept = [None] * steps, [None] * steps
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        h, parts = _gru_update(F, _take_time_step(F, sums, t), _project(F, h, w_hh, b_hh), h)
        outputs[t], kept[t] = h, F.cat(list(parts), 1)
    return F.stack(outputs, 0), h, F.stack(kept, 0)


def _gru_layer_backward(F, grad_output, grad_h, input, h0, w_ih, w_hh, b_ih, b_hh, output, gates, reverse, needs):
    # As for the LSTM: computed again, so that this can be differentiated too.
    output, _, gates = _gru_layer(F, input, h0, w_ih, w_hh, b_ih, b_hh, reverse)
    steps = input.shape[0]
    order = list(range(steps - 1, -1, -1)) if reverse else list(range(steps))
    dh = F._zeros_like(h0) if grad_h is None else grad_h
    of_input, of_state = [None] * steps, [None] * steps
    for place in range(steps - 1, -1, -1):
        t = order[place]
        before = h0 if place == 0 else _take_time_step(F, output, order[place - 1])
        r, z, n, s = (_take_chunk(F, _take_time_step(F, gates, t), 4, k) for k in range(4))
        if grad_output is not None:
            dh = F.add(dh, _take_time_step(F, grad_output, t))
        dn = F.mul(F.mul(dh, _one_minus_x(F, z)), _one_minus_x(F, F.mul(n, n)))
        dz = F.mul(F.mul(dh, F.sub(before, n)), _sigmoid_slope(F, z))
        dr = F.mul(F.mul(dn, s), _sigmoid_slope(F, r))
        of_input[t] = F.cat([dr, dz, dn], 1)
        of_state[t] = F.cat([dr, dz, F.mul(dn, r)], 1)
        dh = F.add(F.mul(dh, z), F.matmul(of_state[t], w_hh))
    of_input, of_state = F.stack(of_input, 0), F.stack(of_state, 0)
    flat_input, flat_state = F.reshape(of_input, (-1, of_input.shape[2])), F.reshape(of_state, (-1, of_state.shape[2]))
    first = F.unsqueeze(h0, 0)
    before = F.cat(
        [F.narrow(output, 0, 1, steps - 1), first] if reverse else [first, F.narrow(output, 0, 0, steps - 1)], 0
    )
    return (
        F.matmul(of_input, w_ih) if needs[0] else None,
        dh,
        F.matmul(F.transpose(flat_input, 0, 1), F.reshape(input, (-1, input.shape[2]))),
        F.matmul(F.transpose(flat_state, 0, 1), F.reshape(before, (-1, before.shape[2]))),
        F.sum(flat_input, (0,), False) if b_ih is not None else None,
        F.sum(flat_state, (0,), False) if b_hh is not None else None,
    )


def _gru_layer_vjp(F, g, input, h0, w_ih, w_hh, b_ih, b_hh, out0, out2, reverse, needs):
    return F._gru_layer_backward(g[0], g[1], input, h0, w_ih, w_hh, b_ih, b_hh, out0, out2, reverse, needs)


op(
    "_gru_layer(Tensor input, Tensor h0, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, reverse)",
    where="",
    outputs=("output", "h", "gates"),
    nondiff=(2,),
    composite=_gru_layer,
    vjp={("input", "h0", "w_ih", "w_hh", "b_ih", "b_hh"): _gru_layer_vjp},
    doc="One GRU layer in one direction: input (T, N, I) -> output (T, N, H), last h (N, H), and what a fused "
    "backward wants of the gates.",
)
op(
    "_gru_layer_backward(Tensor? grad_output, Tensor? grad_h, Tensor input, Tensor h0, Tensor w_ih, Tensor w_hh, "
    "Tensor? b_ih, Tensor? b_hh, Tensor output, Tensor gates, reverse, needs)",
    where="",
    composite=_gru_layer_backward,
    doc="The gradients of `_gru_layer` with respect to its six tensors.",
)


# --- layers over padded and packed sequences ------------------------------------------------------


def _run_dense_steps(F, update, input, state, reverse):
    """Run `update(t, state) -> state` over (T, N, ...); returns the stacked first states and the last state."""
    steps = input.shape[0]
    outputs = [None] * steps
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        state = update(_take_time_step(F, input, t), state)
        outputs[t] = state[0]
    return F.stack(outputs, 0), state


def _run_packed_steps(F, update, data, sizes, state, reverse):
    """Like `_run_dense_steps` for packed data, where `sizes[t]` sequences reach step t. Sequences leave the batch
    at their ends (or enter it there, if reversed).
    """
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    outputs = [None] * len(sizes)
    if reverse:
        first = state
        state = tuple(F.narrow(part, 0, 0, sizes[-1]) for part in first)
        for t in range(len(sizes) - 1, -1, -1):
            have = state[0].shape[0]
            if sizes[t] > have:
                state = tuple(
                    F.cat([part, F.narrow(begin, 0, have, sizes[t] - have)], 0)
                    for part, begin in zip(state, first, strict=True)
                )
            state = update(F.narrow(data, 0, starts[t], sizes[t]), state)
            outputs[t] = state[0]
        return F.cat(outputs, 0), state
    finished = []
    for t, size in enumerate(sizes):
        have = state[0].shape[0]
        if size < have:
            finished.append(tuple(F.narrow(part, 0, size, have - size) for part in state))
            state = tuple(F.narrow(part, 0, 0, size) for part in state)
        state = update(F.narrow(data, 0, starts[t], size), state)
        outputs[t] = state[0]
    finished.append(state)
    return F.cat(outputs, 0), tuple(F.cat(list(parts), 0) for parts in zip(*reversed(finished), strict=True))


def _run_layer(F, mode, input, sizes, state, weights, reverse):
    """One layer in one direction: (output, state). `weights` are w_ih, w_hh, then the two biases and the projection if
    they exist.
    """
    w_ih, w_hh, *rest = weights
    biased = len(rest) >= 2
    b_ih, b_hh = rest[:2] if biased else (None, None)
    projection = rest[-1] if len(rest) in (1, 3) else None
    if mode == "lstm" and sizes is None and projection is None:
        output, h, c, _, _ = F._lstm_layer(input, state[0], state[1], w_ih, w_hh, b_ih, b_hh, reverse)
        return output, (h, c)
    if mode == "gru" and sizes is None:
        output, h, _ = F._gru_layer(input, state[0], w_ih, w_hh, b_ih, b_hh, reverse)
        return output, (h,)
    recurrent = F.transpose(w_hh, 0, 1)
    if mode == "gru":
        sums = _project(F, input, w_ih, b_ih)

        def update(x, state):
            from_state = F.matmul(state[0], recurrent)
            return (_gru_update(F, x, from_state if b_hh is None else F.add(from_state, b_hh), state[0])[0],)
    elif mode == "lstm":
        sums = _project(F, input, w_ih, _bias_sum(F, b_ih, b_hh))

        def update(x, state):
            h, c, _ = _lstm_update(F, F.add(x, F.matmul(state[0], recurrent)), state[1])
            return (h if projection is None else F.matmul(h, F.transpose(projection, 0, 1))), c
    else:
        sums = _project(F, input, w_ih, _bias_sum(F, b_ih, b_hh))
        squash = F.tanh if mode == "tanh" else F.relu

        def update(x, state):
            return (squash(F.add(x, F.matmul(state[0], recurrent))),)

    if sizes is None:
        return _run_dense_steps(F, update, sums, state, reverse)
    return _run_packed_steps(F, update, sums, sizes, state, reverse)


def _run_layers(
    F, mode, input, sizes, states, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
):
    """All layers: (output, states stacked over layers and directions)."""
    directions = 2 if bidirectional else 1
    per = len(params) // (num_layers * directions)
    if sizes is None and batch_first:
        input = F.transpose(input, 0, 1)
    if not input.shape[0]:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    finals = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            state = tuple(part[place] for part in states)
            output, final = _run_layer(
                F, mode, input, sizes, state, params[place * per : (place + 1) * per], direction == 1
            )
            outputs.append(output)
            finals.append(final)
        input = outputs[0] if directions == 1 else F.cat(outputs, outputs[0].ndim - 1)
        if dropout and train and layer < num_layers - 1:
            input = F.dropout(input, dropout, True)
    if sizes is None and batch_first:
        input = F.transpose(input, 0, 1)
    return (input, *(F.stack(list(parts), 0) for parts in zip(*finals, strict=True)))


def _run_call_form(F, mode, args, pair):
    """The two call forms: (input, hx, params, ..., batch_first) and (data, batch_sizes, hx, params, ...)."""
    data, second, third = args[:3]
    if isinstance(third, Tensor) or (pair and isinstance(second, Tensor)):
        sizes = second.tolist()
        states, params, has_biases, num_layers, dropout, train, bidirectional = args[2:9]
        batch_first = False
    else:
        sizes = None
        states, params, has_biases, num_layers, dropout, train, bidirectional = args[1:8]
        batch_first = args[8]
    states = tuple(states) if pair else (states,)
    return _run_layers(
        F, mode, data, sizes, states, list(params), has_biases, num_layers, dropout, train, bidirectional, batch_first
    )


@composite(
    "lstm(Tensor data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)", where="torch"
)
def _lstm(F, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    """Computes a long short-term memory network of several layers over sequences.

    Args:
        data: The elements of a packed sequence. With ``(input, hx, params, ..., batch_first)``, the second form of the
            arguments, the sequences of shape ``(T, N, I)``.
        batch_sizes: The number of sequences at each time.
        hx: The initial states ``(h0, c0)``, each of shape ``(num_layers * directions, N, H)``.
        params: The weights and biases of each layer and direction.
        has_biases: Whether `params` has biases.
        num_layers: The number of layers.
        dropout: The probability to drop an output between layers in training.
        train: Whether dropout applies.
        bidirectional: Whether a second direction runs backwards.
            The second form ends with `batch_first`: whether the shape of the input is ``(N, T, I)``.

    Returns:
        ``(output, h, c)``.

    Example:
        >>> params = (torch.ones(4 * 3, 2), torch.ones(4 * 3, 3))
        >>> state = torch.zeros(1, 1, 3), torch.zeros(1, 1, 3)
        >>> out, h, c = torch.lstm(torch.zeros(4, 1, 2), state, params, False, 1, 0.0, False, False, False)
        >>> out.shape
        torch.Size([4, 1, 3])

    See also:
        `torch.nn.LSTM`.
    """
    return _run_call_form(
        F, "lstm", (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional), True
    )


@composite(
    "gru(Tensor data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)", where="torch"
)
def _gru(F, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    """Computes a network of gated recurrent units of several layers over sequences.

    Args:
        data: The elements of a packed sequence. With ``(input, hx, params, ..., batch_first)``, the second form of the
            arguments, the sequences of shape ``(T, N, I)``.
        batch_sizes: The number of sequences at each time.
        hx: The initial state, of shape ``(num_layers * directions, N, H)``.
        params: The weights and biases of each layer and direction.
        has_biases: Whether `params` has biases.
        num_layers: The number of layers.
        dropout: The probability to drop an output between layers in training.
        train: Whether dropout applies.
        bidirectional: Whether a second direction runs backwards.
            The second form ends with `batch_first`: whether the shape of the input is ``(N, T, I)``.

    Returns:
        ``(output, h)``.

    Example:
        >>> params = (torch.ones(3 * 3, 2), torch.ones(3 * 3, 3))
        >>> out, h = torch.gru(torch.zeros(4, 1, 2), torch.zeros(1, 1, 3), params, False, 1, 0.0, False, False, False)
        >>> out.shape
        torch.Size([4, 1, 3])

    See also:
        `torch.nn.GRU`.
    """
    return _run_call_form(
        F, "gru", (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional), False
    )


@composite(
    "rnn_tanh(Tensor data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)",
    where="torch",
)
def _rnn_tanh(F, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    """Computes an Elman network with tanh of several layers over sequences.

    Args:
        data: The elements of a packed sequence. With ``(input, hx, params, ..., batch_first)``, the second form of the
            arguments, the sequences of shape ``(T, N, I)``.
        batch_sizes: The number of sequences at each time.
        hx: The initial state, of shape ``(num_layers * directions, N, H)``.
        params: The weights and biases of each layer and direction.
        has_biases: Whether `params` has biases.
        num_layers: The number of layers.
        dropout: The probability to drop an output between layers in training.
        train: Whether dropout applies.
        bidirectional: Whether a second direction runs backwards.
            The second form ends with `batch_first`: whether the shape of the input is ``(N, T, I)``.

    Returns:
        ``(output, h)``.

    Example:
        >>> params = (torch.ones(3, 2), torch.ones(3, 3))
        >>> options = False, 1, 0.0, False, False, False
        >>> out, h = torch.rnn_tanh(torch.zeros(4, 1, 2), torch.zeros(1, 1, 3), params, *options)
        >>> out.shape
        torch.Size([4, 1, 3])

    See also:
        `torch.nn.RNN`.
    """
    return _run_call_form(
        F, "tanh", (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional), False
    )


@composite(
    "rnn_relu(Tensor data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)",
    where="torch",
)
def _rnn_relu(F, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    """Computes an Elman network with relu of several layers over sequences.

    Args:
        data: The elements of a packed sequence. With ``(input, hx, params, ..., batch_first)``, the second form of the
            arguments, the sequences of shape ``(T, N, I)``.
        batch_sizes: The number of sequences at each time.
        hx: The initial state, of shape ``(num_layers * directions, N, H)``.
        params: The weights and biases of each layer and direction.
        has_biases: Whether `params` has biases.
        num_layers: The number of layers.
        dropout: The probability to drop an output between layers in training.
        train: Whether dropout applies.
        bidirectional: Whether a second direction runs backwards.
            The second form ends with `batch_first`: whether the shape of the input is ``(N, T, I)``.

    Returns:
        ``(output, h)``.

    Example:
        >>> params = (torch.ones(3, 2), torch.ones(3, 3))
        >>> options = False, 1, 0.0, False, False, False
        >>> out, h = torch.rnn_relu(torch.zeros(4, 1, 2), torch.zeros(1, 1, 3), params, *options)
        >>> out.shape
        torch.Size([4, 1, 3])

    See also:
        `torch.nn.RNN`.
    """
    return _run_call_form(
        F, "relu", (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional), False
    )
