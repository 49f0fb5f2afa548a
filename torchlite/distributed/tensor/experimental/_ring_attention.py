"""Attention of a sequence that is cut over the ranks of a group.

Each rank has some queries, and the keys and values of the same positions. The keys and values go round the ring of
ranks. A rank computes attention to those that it has at the moment, and merges the results by the logarithms of their
sums (Liu, Zaharia, Abbeel: Ring attention, 2023). The gradients of keys and values go round the same ring, and end at
the rank that has them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.autograd import Function
from torchlite.autograd.function import once_differentiable


@dataclass(frozen=True)
class Settings:
    """Arguments of an attention besides its tensors."""

    group: Any
    is_causal: bool
    scale: float
    dropout_p: float
    seed: int
    is_balanced: bool  # the order is that of `_HeadTailLoadBalancer`
    gathers: bool  # keys and values are gathered at once in place of going round

    @property
    def rank(self) -> int:
        return self.group.rank()

    @property
    def size(self) -> int:
        return self.group.size()

    def pieces(self, rank: int) -> tuple[int, ...]:
        """Return the numbers of the pieces of the sequence that a rank has."""
        return (rank, 2 * self.size - 1 - rank) if self.is_balanced else (rank,)


def _send_on(data: torch.Tensor, group: Any) -> Callable[[], torch.Tensor]:
    """Send a tensor to the next rank; return a function that waits for that of the rank before."""
    size, rank = group.size(), group.rank()
    counts, into = [0] * size, [0] * size
    counts[(rank + 1) % size] = into[(rank - 1) % size] = data.numel()
    found = torch.empty_like(data)
    work = dist.all_to_all_single(found, data, into, counts, group, async_op=True)

    def wait() -> torch.Tensor:
        if work is not None:
            work.wait()
        return found

    return wait


def _rotate(data: torch.Tensor, how: Settings) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield the data of each rank with its number: this one's, then those of the ranks before. Messages travel while
    the caller computes.
    """
    rank, size = how.rank, how.size
    if how.gathers and size > 1:
        whole = data.new_empty(size * data.numel())
        work = dist.all_gather_into_tensor(whole, data, how.group, async_op=True)
        yield rank, data
        if work is not None:
            work.wait()
        parts = whole.chunk(size)
        for step in range(1, size):
            yield (rank - step) % size, parts[(rank - step) % size]
        return
    for step in range(size):
        last = step == size - 1
        wait = None if last else _send_on(data, how.group)
        yield (rank - step) % size, data
        if wait is not None:
            data = wait()


class _Block:
    """Attention of some queries to some keys, all of a wide dtype."""

    def __init__(self, query: torch.Tensor, key: torch.Tensor, how: Settings, own: int, other: int) -> None:
        self.repeats = query.shape[-3] // key.shape[-3]  # heads of queries for one of keys
        self.query, self.key = query, self._repeat(key)
        self.scores = (query * how.scale) @ self.key.transpose(-2, -1)
        if how.is_causal and own == other:
            later = torch.ones(self.scores.shape[-2:], dtype=torch.bool, device=query.device).triu(1)
            self.scores.masked_fill_(later, -float("inf"))
        self.kept = None
        if how.dropout_p:
            generator = torch.Generator(query.device)
            generator.manual_seed(how.seed + 4 * how.size * own + other)  # the same in forward and backward
            drawn = torch.rand(self.scores.shape, dtype=query.dtype, device=query.device, generator=generator)
            self.kept = (drawn >= how.dropout_p) / (1 - how.dropout_p) if how.dropout_p < 1 else torch.zeros_like(drawn)

    def _repeat(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.repeat_interleave(self.repeats, -3) if self.repeats > 1 else tensor

    def _sum_repeats(self, grad: torch.Tensor) -> torch.Tensor:
        return grad.unflatten(-3, (-1, self.repeats)).sum(-3) if self.repeats > 1 else grad

    def _drop(self, weights: torch.Tensor) -> torch.Tensor:
        return weights if self.kept is None else weights * self.kept

    def forward(self, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the result, and the logarithm of each row's sum."""
        sums = self.scores.logsumexp(-1, True)
        return self._drop((self.scores - sums).exp_()) @ self._repeat(value), sums

    def backward(
        self, grad: torch.Tensor, value: torch.Tensor, sums: torch.Tensor, products: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the gradients of queries, keys and values.

        Args:
            grad: The gradient of the result.
            value: The values.
            sums: The logarithm of each row's sum over all keys.
            products: For each row the scalar product of the result and its gradient.
            scale: The factor of the scores.
        """
        weights = (self.scores - sums).exp_()
        grad_value = self._sum_repeats(self._drop(weights).transpose(-2, -1) @ grad)
        grad_weights = self._drop(grad @ self._repeat(value).transpose(-2, -1))
        grad_scores = weights * (grad_weights - products) * scale
        return grad_scores @ self.key, self._sum_repeats(grad_scores.transpose(-2, -1) @ self.query), grad_value


def _merge(first: tuple, second: tuple) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention to the keys of both, from the results and the sums of each."""
    (out1, sums1), (out2, sums2) = first, second
    sums = torch.logaddexp(sums1, sums2)
    return out1 * (sums1 - sums).exp() + out2 * (sums2 - sums).exp(), sums


def _pairs(how: Settings, source: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the pieces of this rank and of another of which some pairs take part: places and numbers of both."""
    for (i, own), (j, other) in itertools.product(enumerate(how.pieces(how.rank)), enumerate(how.pieces(source))):
        if not how.is_causal or other <= own:
            yield i, j, own, other


def _split(data: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return keys and values out of one flat tensor."""
    return data[: key.numel()].view(key.shape), data[key.numel() :].view(value.shape)


def _cut(tensor: torch.Tensor, how: Settings) -> tuple[torch.Tensor, ...]:
    return tensor.chunk(len(how.pieces(0)), -2)


class RingAttention(Function):
    """Attention over the ring; gradients of first order."""

    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, how: Settings) -> torch.Tensor:
        wide = torch.promote_types(query.dtype, torch.float32)
        queries = _cut(query.to(wide), how)
        found: list[Any] = [None] * len(queries)
        for source, data in _rotate(torch.cat([key.flatten(), value.flatten()]), how):
            keys, values = (_cut(part.to(wide), how) for part in _split(data, key, value))
            for i, j, own, other in _pairs(how, source):
                one = _Block(queries[i], keys[j], how, own, other).forward(values[j])
                found[i] = one if found[i] is None else _merge(found[i], one)
        out, sums = (torch.cat(parts, -2) for parts in zip(*found, strict=True))
        ctx.save_for_backward(query, key, value, out, sums)
        ctx.how = how
        return out.to(query.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        query, key, value, out, sums = ctx.saved_tensors
        how, wide = ctx.how, out.dtype
        grad = grad.to(wide)
        rows = [_cut(t, how) for t in (query.to(wide), grad, sums, (grad * out).sum(-1, True))]
        grad_query = torch.zeros(query.shape, dtype=wide, device=query.device)
        travelling = torch.zeros(key.numel() + value.numel(), dtype=wide, device=key.device)
        arrival = None
        for source, data in _rotate(torch.cat([key.flatten(), value.flatten()]), how):
            keys, values = (_cut(part.to(wide), how) for part in _split(data, key, value))
            grads = torch.zeros_like(travelling)
            parts = [_cut(part, how) for part in _split(grads, key, value)]
            for i, j, own, other in _pairs(how, source):
                block = _Block(rows[0][i], keys[j], how, own, other)
                for into, one in zip(
                    (_cut(grad_query, how)[i], parts[0][j], parts[1][j]),
                    block.backward(rows[1][i], values[j], rows[2][i], rows[3][i], how.scale),
                    strict=True,
                ):
                    into += one
            travelling = grads if arrival is None else arrival().add_(grads)
            arrival = _send_on(travelling, how.group) if how.size > 1 else None
        if arrival is not None:
            travelling = arrival()
        grad_key, grad_value = _split(travelling, key, value)
        return grad_query.to(query.dtype), grad_key.to(key.dtype), grad_value.to(value.dtype), None
