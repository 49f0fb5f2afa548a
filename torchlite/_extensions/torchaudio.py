"""Replacements of torchaudio's compiled ops: IIR filters, forced alignment and RNN-T loss, in NumPy on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from .op_spec import OpSpec, require

_BLOCK = 64


def _iir_filter(x: np.ndarray, coefficients: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return y[t] = x[t] - sum of coefficients[j] * y[t - order + j] for j below the order. x is (channels, rows,
    time), coefficients (channels, order), before (channels, rows, order): initial outputs.

    Each block of y solves a small triangular system by its inverse, after earlier outputs are subtracted.
    """
    channels, order = coefficients.shape
    line = np.arange(_BLOCK)[:, None]
    width = order + _BLOCK
    matrix = np.zeros((channels, _BLOCK, width))
    for j in range(order):
        matrix[:, line[:, 0], line[:, 0] + j] = coefficients[:, j, None]
    matrix[:, line[:, 0], line[:, 0] + order] = 1
    inverse = np.linalg.inv(matrix[:, :, order:])
    earlier = np.swapaxes(inverse @ matrix[:, :, :order], 1, 2)
    inverse = np.swapaxes(inverse, 1, 2)
    time = x.shape[2]
    out = np.concatenate([before, np.zeros_like(x)], 2)
    for start in range(0, time, _BLOCK):
        count = min(_BLOCK, time - start)
        block = x[:, :, start : start + count] @ inverse[:, :count, :count]
        block -= out[:, :, start : start + order] @ earlier[:, :, :count]
        out[:, :, start + order : start + order + count] = block
    return out[:, :, order:]


def lfilter_core_loop(input_signal_windows: Any, a_coeff_flipped: Any, padded_output_waveform: Any) -> Any:
    """Run the recursive part of a filter: input (batch, channels, time), coefficients (channels, order), last to first,
    the first being 1. Write the output (batch, channels, time + order - 1) in place.
    """
    import torchlite as torch

    order = a_coeff_flipped.shape[1] - 1
    x, coefficients, padded = (
        t.detach().cpu().double().numpy() for t in (input_signal_windows, a_coeff_flipped, padded_output_waveform)
    )
    found = _iir_filter(np.swapaxes(x, 0, 1), coefficients[:, :order], np.swapaxes(padded[:, :, :order], 0, 1))
    with torch.no_grad():
        padded_output_waveform[:, :, order:] = torch.from_numpy(np.ascontiguousarray(np.swapaxes(found, 0, 1)))
    return padded_output_waveform


def overdrive_core_loop(waveform: Any, temp: Any, last_in: Any, last_out: Any, output_waveform: Any) -> Any:
    """Run the final stage of the overdrive effect on (rows, time); write the last three arguments in place."""
    import torchlite as torch

    x, before, past = (t.detach().cpu().double().numpy() for t in (temp, last_in, last_out))
    steps = np.diff(x, axis=1, prepend=before[:, None])
    found = _iir_filter(steps[None], np.array([[-0.995]]), past[None, :, None])[0]
    with torch.no_grad():
        out = torch.from_numpy(found).to(waveform.device, waveform.dtype)
        output_waveform.copy_(waveform * 0.5 + out * 0.75)
        if waveform.shape[1]:
            last_in.copy_(temp[:, -1])
            last_out.copy_(out[:, -1])
    return last_in, last_out, output_waveform


def forced_align(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int) -> Any:
    """Return the most likely alignment (1, T) of labels (1, L) with log probabilities (1, T, classes), and its scores.
    Raise RuntimeError for other batch sizes and for labels longer than the time.
    """
    import torchlite as torch

    require(log_probs.ndim == 3, lambda: "log_probs must be a 3-D tensor")
    require(log_probs.shape[0] == 1, lambda: "The batch dimension for log_probs must be 1 at the current version")
    scores = log_probs.detach().cpu().float().numpy()[0].astype(np.float64)
    labels = targets.detach().cpu().numpy()[0]
    repeats = int((labels[1:] == labels[:-1]).sum())
    time = len(scores)
    require(
        time >= len(labels) + repeats,
        lambda: (
            f"targets length is too long for CTC. Found log_probs length: {time}, targets length: {len(labels)}, "
            f"and number of repeats: {repeats}"
        ),
    )
    states = np.full(2 * len(labels) + 1, blank, np.int64)
    states[1::2] = labels
    path = _viterbi_path(scores[:, states], states)
    return torch.from_numpy(path[None]).to(targets.device, targets.dtype), log_probs.detach().clone()


def _viterbi_path(scores: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the label of each time step on the best path; a step stays, advances, or skips a blank between different
    labels.
    """
    count = len(states)
    skips = np.zeros(count, bool)
    skips[3::2] = states[3::2] != states[1:-2:2]
    best = np.full(count, -np.inf)
    best[:2] = scores[0, :2]
    came = np.zeros(scores.shape, np.int64)
    for t in range(1, len(scores)):
        one = np.concatenate([[-np.inf], best[:-1]])
        two = np.where(skips, np.concatenate([[-np.inf, -np.inf], best[:-2]])[:count], -np.inf)
        came[t] = np.where((two > one) & (two > best), 2, np.where((one > best) & (one > two), 1, 0))
        best = np.choose(came[t], [best, one, two]) + scores[t]
    at = count - 1 if count == 1 or best[-1] > best[-2] else count - 2
    path = np.empty(len(scores), np.int64)
    for t in reversed(range(len(scores))):
        path[t] = states[at]
        at -= came[t, at]
    return path


def rnnt_loss_forward(
    logits: Any, targets: Any, logit_lengths: Any, target_lengths: Any, blank: int, clamp: float,
    fused_log_softmax: bool,
) -> Any:  # fmt: skip
    """Return RNN-T losses (B,) of logits (B, T, U + 1, classes), and their gradients."""
    import torchlite as torch

    raw = logits.detach().cpu().float().numpy().astype(np.float64)
    labels = targets.detach().cpu().numpy().astype(np.int64)
    times, counts = (t.detach().cpu().tolist() for t in (logit_lengths, target_lengths))
    losses, gradients = np.zeros(len(raw)), np.zeros_like(raw)
    for i, (time, count) in enumerate(zip(times, counts, strict=True)):
        part = raw[i, :time, : count + 1]
        losses[i], gradients[i, :time, : count + 1] = _rnnt_loss(part, labels[i, :count], blank, fused_log_softmax)
    if clamp > 0:
        gradients = gradients.clip(-clamp, clamp)
    to = (logits.device, logits.dtype)
    return torch.from_numpy(losses).to(*to), torch.from_numpy(gradients).to(*to)


def _rnnt_loss(raw: np.ndarray, labels: np.ndarray, blank: int, fused: bool) -> tuple[float, np.ndarray]:
    """Return one loss and its gradient: sums over all paths of the time-label grid, computed by diagonals."""
    time, wide = raw.shape[:2]
    top = raw.max(2, keepdims=True)
    logs = raw - (top + np.log(np.exp(raw - top).sum(2, keepdims=True))) if fused else raw
    silent = logs[:, :, blank]
    spoken = np.full((time, wide), -np.inf)
    spoken[:, :-1] = logs[:, np.arange(wide - 1), labels]
    forward, backward = np.full((time + 1, wide + 1), -np.inf), np.full((time + 1, wide + 1), -np.inf)
    forward[0, 0] = 0
    backward[time, wide - 1] = 0
    for diagonal in range(1, time + wide - 1):
        t = np.arange(max(0, diagonal - wide + 1), min(time, diagonal + 1))
        u = diagonal - t
        stayed = np.where(t > 0, forward[t - 1, u] + silent[t - 1, u], -np.inf)
        moved = np.where(u > 0, forward[t, u - 1] + spoken[t, u - 1], -np.inf)
        forward[t, u] = np.logaddexp(stayed, moved)
    for diagonal in reversed(range(time + wide - 1)):
        t = np.arange(max(0, diagonal - wide + 1), min(time, diagonal + 1))
        u = diagonal - t
        backward[t, u] = np.logaddexp(backward[t + 1, u] + silent[t, u], backward[t, u + 1] + spoken[t, u])
    total = backward[0, 0]
    ways = forward[:time, :wide] - total
    gradient = np.exp((ways + backward[:time, :wide])[..., None] + logs) if fused else np.zeros_like(logs)
    gradient[:, :, blank] -= np.exp(ways + silent + backward[1:, :wide])
    column = np.arange(wide - 1)
    gradient[:, column, labels] -= np.exp(ways + spoken + backward[:time, 1:])[:, :-1]
    return -total, gradient


EXTENSION = [OpSpec("is_align_available() -> bool", lambda: True), OpSpec("cuda_version() -> int?", lambda: None)]
OPS = [
    OpSpec(
        "_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> "
        "Tensor(a!)",
        lfilter_core_loop,
    ),
    OpSpec(
        "_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor(a!) last_in, Tensor(b!) last_out, "
        "Tensor(c!) output_waveform) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
        overdrive_core_loop,
    ),
    OpSpec(
        "forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> "
        "(Tensor, Tensor)",
        forced_align,
    ),
    OpSpec(
        "rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, "
        "float clamp, bool fused_log_softmax) -> (Tensor, Tensor)",
        rnnt_loss_forward,
    ),
]
