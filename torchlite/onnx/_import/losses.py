"""ONNX loss ops."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor

from .op_registry import op


def _negative_log_likelihood(
    x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int | None, reduction: str
) -> Tensor:
    places = target.to(torch.int64)
    kept = None if ignore_index is None else places != ignore_index
    inside = places if kept is None else torch.where(kept, places, torch.zeros_like(places))
    loss = -torch.gather(x, 1, inside.unsqueeze(1)).squeeze(1)
    factor = torch.ones_like(loss) if weight is None else weight[inside.reshape(-1)].reshape(inside.shape)
    if kept is not None:
        factor = torch.where(kept, factor, torch.zeros_like(factor))
        loss = torch.where(kept, loss, torch.zeros_like(loss))
    loss = loss * factor
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.mean() if weight is None and kept is None else loss.sum() / factor.sum()


@op("NegativeLogLikelihoodLoss")
def nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Tensor:
    return _negative_log_likelihood(x, target, weight, ignore_index, reduction)


@op("SoftmaxCrossEntropyLoss")
def cross_entropy(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, ignore_index: int | None = None,
    reduction: str = "mean", outputs: int = 1,
) -> Any:  # fmt: skip
    log = torch.log_softmax(scores, 1)
    loss = _negative_log_likelihood(log, labels, weights, ignore_index, reduction)
    return loss if outputs == 1 else (loss, log)
