"""Softmax and classification losses over sharded classes, without gathering them."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .._dispatch import R
from .._dtensor_factory import make_dtensor
from .._dtensor_spec import DTensorSpec, TensorMeta
from .._op_strategy import OpCall, register_op_handler
from .._redistribute import redistribute_local_tensor
from ..placement_types import Partial, Placement, Shard
from .rule_helpers import has_empty_part


def _is_sharded_nonempty(tensor: Any, dim: int) -> bool:
    """True if a dimension is sharded, and every process has some of it."""
    own = [i for i, p in enumerate(tensor.placements) if isinstance(p, Shard) and p.dim == dim]
    return (
        len(own) == 1
        and type(tensor.placements[own[0]]) is Shard
        and not has_empty_part(tensor.shape[dim], tensor.device_mesh)
        and not any(p.is_partial() for p in tensor.placements)
    )


def _replicate_small(tensor: Any) -> Any:
    """Return a small tensor replicated, if it is partial."""
    return tensor.redistribute(placements=[R if p.is_partial() else p for p in tensor.placements])


@register_op_handler("_softmax", "_log_softmax")
def _handle_softmax(found: OpCall) -> Any:
    """Softmax by the all-reduced maximum and sum."""
    tensor = found.tensors[0]
    dim = found["dim"] % max(tensor.ndim, 1)
    if not tensor.ndim or not _is_sharded_nonempty(tensor, dim):
        return NotImplemented
    shifted = tensor - _replicate_small(tensor.detach().amax(dim, True))
    if found.op.name == "_softmax":
        powers = shifted.exp()
        return powers / _replicate_small(powers.sum(dim, True))
    return shifted - _replicate_small(shifted.exp().sum(dim, True)).log()


def _target_placement(placement: Placement, classes: int) -> Placement:
    """Return the placement of targets for one of scores."""
    if not isinstance(placement, Shard) or placement.dim == classes:
        return R
    return placement.at(placement.dim - (placement.dim > classes))


def negative_likelihood(found: OpCall, scores: Any, target: Any, weight: Any, ignore: int, reduction: str) -> Any:
    """Return the negative log likelihood of log-probabilities (N, C, ...) or (C) for classes (N, ...).

    `ignore` is an ignored class. The result is replicated, or has the targets' placements with reduction "none".
    """
    mesh, classes = found.mesh, 1 if scores.ndim > 1 else 0
    places = [_target_placement(p, classes) for p in scores.placements]
    given = redistribute_local_tensor(target._local_tensor, target.shape, mesh, target.placements, places)
    counts = given != ignore
    cut = next((i for i, p in enumerate(scores.placements) if isinstance(p, Shard) and p.dim == classes), None)
    local = scores._local_tensor
    known = given.where(counts, 0)
    if bool(((known < 0) | (known >= scores.shape[classes])).any()):
        bad = known[(known < 0) | (known >= scores.shape[classes])][0]
        raise IndexError(f"Target {int(bad)} is out of bounds.")
    inside, own = counts, known
    if cut is not None:
        place = mesh.get_coordinate()[cut]
        length, start = Shard.local_shard_size_and_offset(scores.shape[classes], mesh.size(cut), place)
        inside = counts & (known >= start) & (known < start + length)
        own = (known - start).where(inside, 0)
    picked = local.gather(classes, own.unsqueeze(classes)).squeeze(classes)
    factors = counts.to(local.dtype)
    if weight is not None:
        whole = weight.full_tensor()
        factors = factors * whole[known]
    losses = torch.where(inside, -picked * factors, 0)
    outs = [Partial() if i == cut else p for i, p in enumerate(places)]

    def result(part: torch.Tensor, how: list[Placement]) -> Any:
        whole_strides = torch.empty(target.shape, device="meta").stride()
        return make_dtensor(part, DTensorSpec(mesh, how, TensorMeta(target.shape, whole_strides, part.dtype)))

    each = _replicate_small(result(losses, outs))
    if reduction == "none":
        return each
    total = _replicate_small(each.sum())
    return total if reduction == "sum" else total / _replicate_small(result(factors, places).sum())


def _can_compute_sharded(scores: Any, target: Any) -> bool:
    """True if some dimension is sharded, so that the loss can be computed on shards."""
    classes = 1 if scores.ndim > 1 else 0
    if any(p.is_partial() for p in scores.placements) or not any(p.is_shard() for p in scores.placements):
        return False
    cut = [p for p in scores.placements if isinstance(p, Shard) and p.dim == classes]
    if target.is_floating_point() or target.ndim != scores.ndim - 1:
        return False
    return len(cut) <= 1 and all(type(p) is Shard for p in cut) and (not cut or _is_sharded_nonempty(scores, classes))


@register_op_handler("_cross_entropy")
def _cross_entropy(found: OpCall) -> Any:
    scores, target = found["input"], found["target"]
    if not _can_compute_sharded(scores, target):
        return NotImplemented
    known = torch.log_softmax(scores, 1 if scores.ndim > 1 else 0)
    return negative_likelihood(found, known, target, found["weight"], found["ignore_index"], found["reduction"])


@register_op_handler("nll_loss")
def _nll_loss(found: OpCall) -> Any:
    names = [p.name for p in found.op.params]
    scores, target = found["input"], found["target"]
    old = any(found[name] is not None for name in ("size_average", "reduce") if name in names)
    if old or not _can_compute_sharded(scores, target):
        return NotImplemented
    return negative_likelihood(found, scores, target, found["weight"], found["ignore_index"], found["reduction"])
