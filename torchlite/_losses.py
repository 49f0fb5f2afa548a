"""The losses in `torch`: those of `torch.nn.functional` with the reduction as an int (0 none, 1 mean, 2 sum).

It is none by default: PyTorch's parser reads the name of its default, the mean, as 0.
"""

from __future__ import annotations

from typing import Any

from ._dispatch.parsed_functions import parsed
from .nn import functional as F

_REDUCTIONS = ("none", "mean", "sum")


def _reduction_from_number(number: int) -> str:
    if not isinstance(number, int) or not 0 <= number < 3:
        raise ValueError(f"{number} is not a valid value for reduction")
    return _REDUCTIONS[number]


@parsed("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 0
) -> Any:
    """`torch.nn.functional.binary_cross_entropy_with_logits`.

    >>> import torchlite as torch
    >>> torch.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2), None, None, 2)
    tensor(1.3863)
    """
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_reduction_from_number(reduction), pos_weight=pos_weight
    )


@parsed("cosine_embedding_loss")
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 0) -> Any:
    """`torch.nn.functional.cosine_embedding_loss`."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction_from_number(reduction))


@parsed("hinge_embedding_loss")
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: int = 0) -> Any:
    """`torch.nn.functional.hinge_embedding_loss`."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_reduction_from_number(reduction))


@parsed("kl_div")
def kl_div(input: Any, target: Any, reduction: int = 0, *, log_target: bool = False) -> Any:
    """`torch.nn.functional.kl_div`; the mean is that of all elements, without the other's warning."""
    summed = F.kl_div(input, target, reduction="none", log_target=log_target)
    return (lambda x: x, lambda x: x.mean(), lambda x: x.sum())[_REDUCTIONS.index(_reduction_from_number(reduction))](
        summed
    )


@parsed("margin_ranking_loss")
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 0) -> Any:
    """`torch.nn.functional.margin_ranking_loss`."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_reduction_from_number(reduction))


@parsed("poisson_nll_loss")
def poisson_nll_loss(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    """`torch.nn.functional.poisson_nll_loss`."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_reduction_from_number(reduction))


@parsed("triplet_margin_loss")
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: int = 0,
) -> Any:  # fmt: skip
    """`torch.nn.functional.triplet_margin_loss`."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_reduction_from_number(reduction)
    )
