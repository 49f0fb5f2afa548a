"""Connectionist temporal classification: the alignment-free sequence loss of Graves et al. (2006)."""

import operator

from torchlite._dispatch import composite
from torchlite._dispatch.shape_and_value_checks import min_and_max
from torchlite._types.dtypes import float32, int64

from ._dtype_checks import refuse_floats
from .node_graphs import ctc_loss_graph

LOG_ZERO = -1e30  # the log of a probability of zero, finite so that differences of two of them are not NaN


def _lengths_to_tensor(lengths, name, batch):
    """Lengths as a tensor, on the host where they are numbers."""
    if not hasattr(lengths, "dtype"):
        from torchlite._tensor.creation import tensor

        lengths = tensor([operator.index(n) for n in lengths], dtype=int64, device="cpu")
    if lengths.dtype.is_floating_point or lengths.dtype.is_complex:
        raise RuntimeError(f"{name} must be integral")
    lengths = lengths.to(int64).reshape(-1)
    if lengths.numel() != batch:
        raise RuntimeError(f"{name} must be of size batch_size")
    return lengths


_REDUCTIONS = ("none", "mean", "sum")  # by their numbers
_ERROR_SUFFIX = "(while checking arguments for ctc_loss_allocate_outputs)"


def _check_lengths(targets, input_lengths, target_lengths, times, longest):
    """Raise unless all lengths are non-negative and within the size of their dimension."""
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        smallest = min_and_max(lengths)[0] if lengths.numel() else 0
        if smallest < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {smallest} {_ERROR_SUFFIX}")
    most = min_and_max(input_lengths)[1] if input_lengths.numel() else 0
    if most > times:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {times}, but got value {most} {_ERROR_SUFFIX}"
        )
    what = f"for argument #2 'targets' {_ERROR_SUFFIX}"
    if targets.ndim == 1:
        total = int(target_lengths.sum())
        if targets.shape[0] != total:
            raise RuntimeError(
                f"Expected tensor to have size {total} at dimension 0, but got size {targets.shape[0]} {what}"
            )
        return
    if targets.shape[0] != target_lengths.numel():
        raise RuntimeError(
            f"Expected tensor to have size {target_lengths.numel()} at dimension 0, but got size {targets.shape[0]} "
            f"{what}"
        )
    if targets.shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} {what}"
        )


def _pad_targets(F, targets, lengths, longest):
    """Targets as (batch, longest), whether they came so or one after the other."""
    steps = F._new_arange(targets, 0, longest, 1, int64)
    if targets.ndim == 2:
        index = steps.expand(targets.shape[0], longest)
        limit = max(targets.shape[1] - 1, 0)
        return F.gather(targets, 1, index.clamp(0, limit)) if targets.shape[1] else F._zeros_like(index)
    start = F.cumsum(lengths, 0) - lengths
    index = start.unsqueeze(1) + steps
    return targets[index.clamp(0, max(targets.numel() - 1, 0))] if targets.numel() else F._zeros_like(index)


def _log_add(F, *terms):
    largest = terms[0]
    for term in terms[1:]:
        largest = F.maximum(largest, term)
    largest = largest.detach()
    total = F.exp(terms[0] - largest)
    for term in terms[1:]:
        total = total + F.exp(term - largest)
    return F.log(total) + largest


def _shift_states_right(F, alpha, steps):
    """Shift alpha to the right by some states, with zeros in log space (-inf) entering from the left."""
    filler = F._new_full(alpha, (alpha.shape[0], steps), LOG_ZERO)
    return F.cat([filler, F.narrow(alpha, 1, 0, alpha.shape[1] - steps)], 1)


def _negative_log_likelihood(F, log_probs, states, may_skip, input_lengths, target_lengths):
    """Minus the log-probability of all alignments, for each sample: the forward recursion over (time, state)."""
    times, batch, _ = log_probs.shape
    count = states.shape[1]
    emitted = F.clamp_min(F.gather(log_probs, 2, states.unsqueeze(0).expand(times, batch, count)), LOG_ZERO)
    first = F._new_arange(states, 0, count, 1, int64) < 2
    blocked = F._new_full(emitted[0], (batch, count), LOG_ZERO)
    alpha = F.where(first, emitted[0], blocked)
    state_of_end = (2 * target_lengths).unsqueeze(1)
    for time in range(1, times):
        skipped = F.where(may_skip, _shift_states_right(F, alpha, 2), blocked) if count > 2 else blocked
        moved = _log_add(F, alpha, _shift_states_right(F, alpha, 1), skipped) if count > 1 else alpha
        alpha = F.where((time < input_lengths).unsqueeze(1), moved + emitted[time], alpha)
    last = F.gather(alpha, 1, state_of_end).squeeze(1)
    before = F.gather(alpha, 1, (state_of_end - 1).clamp_min(0)).squeeze(1)
    before = F.where(target_lengths > 0, before, F._full_like(before, LOG_ZERO))
    nothing = F.where(target_lengths == 0, F._zeros_like(last), F._full_like(last, float("inf")))
    return F.where(input_lengths > 0, -_log_add(F, last, before), nothing)


@composite(
    "functional_ctc_loss(Tensor log_probs, Tensor targets, Tensor|Number input_lengths, Tensor|Number target_lengths, "
    "blank=0, reduction='mean', zero_infinity=False)",
    where="",
    alias="nn.functional.ctc_loss",
)
def ctc_loss_by_name(F, log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """Computes the connectionist temporal classification loss (Graves et al., 2006).

    The loss is minus the logarithm of the total probability of all alignments of the targets with the input. As in
    PyTorch, the gradient assumes that `log_probs` is the output of ``log_softmax``.

    Args:
        log_probs: Logarithms of probabilities, of shape ``(T, N, C)`` or ``(T, C)``.
        targets: The labels: ``(N, S)`` padded, or all sequences one after the other.
        input_lengths: The lengths of the inputs, of shape ``(N,)``.
        target_lengths: The lengths of the targets, of shape ``(N,)``.
        blank: The class of the blank. Default: 0.
        reduction: ``"none"``, ``"mean"`` (each loss divided by its target's length, then averaged) or ``"sum"``.
        zero_infinity: Whether infinite losses and their gradients are 0. Default: ``False``.

    Raises:
        ValueError: The reduction is unknown.

    Example:
        >>> log_probs = torch.tensor([[[0.5, 0.5]]]).log()
        >>> F.ctc_loss(log_probs, torch.tensor([[1]]), torch.tensor([1]), torch.tensor([1]))
        tensor(0.6931)

    See also:
        `torch.nn.CTCLoss`.
    """
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    number = _REDUCTIONS.index(reduction)
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)


@composite(
    "ctc_loss(Tensor log_probs, Tensor targets, Tensor|Number input_lengths, Tensor|Number target_lengths, blank=0, "
    "reduction=0, zero_infinity=False)",
    where="torch",
    node_name=ctc_loss_graph,
)
def ctc_loss(F, log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """Computes the connectionist temporal classification loss (Graves et al., 2006).

    The loss is minus the logarithm of the total probability of all alignments of the targets with the input. As in
    PyTorch, the gradient assumes that `log_probs` is the output of ``log_softmax``. Lengths on a device are read
    from it.

    Args:
        log_probs: Logarithms of probabilities, of shape ``(T, N, C)`` or ``(T, C)``.
        targets: The labels: ``(N, S)`` padded, or all sequences one after the other.
        input_lengths: The lengths of the inputs, of shape ``(N,)``.
        target_lengths: The lengths of the targets, of shape ``(N,)``.
        blank: The class of the blank. Default: 0.
        reduction: 0 (none), 1 (each loss divided by its target's length, then averaged), 2 (sum), or the name.
        zero_infinity: Whether infinite losses and their gradients are 0. Default: ``False``.

    Example:
        >>> log_probs = torch.tensor([[[0.5, 0.5]]]).log()
        >>> torch.ctc_loss(log_probs, torch.tensor([[1]]), torch.tensor([1]), torch.tensor([1]))
        tensor([0.6931])

    See also:
        `torch.nn.CTCLoss`.
    """
    refuse_floats(blank, reduction)
    reduction = {0: "none", 1: "mean", 2: "sum"}.get(reduction, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if log_probs.dtype.itemsize == 2:  # which has no number for `LOG_ZERO`
        wide = log_probs.to(float32)
        found = F.ctc_loss(wide, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
        return found.to(log_probs.dtype)
    unbatched = log_probs.ndim == 2
    if unbatched:
        log_probs = log_probs.unsqueeze(1)
    if not log_probs.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    times, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    input_lengths, target_lengths = (
        _lengths_to_tensor(input_lengths, "input_lengths", batch),
        _lengths_to_tensor(target_lengths, "target_lengths", batch),
    )
    if unbatched and targets.ndim == 1:
        targets = targets.unsqueeze(0)
    longest = min_and_max(target_lengths)[1]
    _check_lengths(targets, input_lengths, target_lengths, times, longest)
    input_lengths, target_lengths = input_lengths.to(log_probs.device), target_lengths.to(log_probs.device)
    labels = _pad_targets(F, targets.to(log_probs.device, int64), target_lengths, longest)
    blanks = F._new_full(labels, (batch, longest), blank)
    states = F.cat(
        [F.stack([blanks, labels], 2).reshape(batch, 2 * longest), F._new_full(labels, (batch, 1), blank)], 1
    )
    may_skip = None
    if longest:
        differs = states[:, 2:] != states[:, :-2]
        closed = F._new_full(states, (batch, 2), False).to(differs.dtype)
        may_skip = F.cat([closed, differs & (states[:, 2:] != blank)], 1)
    losses = _negative_log_likelihood(F, log_probs, states, may_skip, input_lengths, target_lengths)
    # Zero in value; its gradient, exp(log_probs), is what a preceding log_softmax would add.
    valid = (F._new_arange(log_probs, 0, times, 1, int64).unsqueeze(1) < input_lengths).unsqueeze(2)
    mass = F.where(valid, F.exp(log_probs), F._zeros_like(log_probs)).sum((0, 2))
    losses = losses + (mass - mass.detach())
    impossible = losses.detach() > 1e29
    instead = F._zeros_like(losses)
    if not zero_infinity:  # infinity, whose gradient is NaN
        instead = -F.log(F.where(impossible, mass * 0, F._full_like(mass, 1)))
    losses = F.where(impossible, instead, losses)
    if reduction == "mean":
        return (losses / target_lengths.clamp_min(1)).mean()
    if reduction == "sum":
        return losses.sum()
    return losses.reshape(()) if unbatched else losses
