"""Sharding rules of matrix products: a sharded contraction dimension gives a partial result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._dispatch import R
from .._op_strategy import OpCall, Strategy, register_op_strategy
from ..placement_types import Placement
from .rule_helpers import SUM, partial_kinds, shard_kinds


def einsum_strategies(
    found: OpCall, number: int, operands: Sequence[Any], letters: Sequence[str], out: str, added: Any = None
) -> Iterator[Strategy]:
    """Yield the strategies of an einsum by its letters; `added` is the addend, which broadcasts to the result."""
    index = {id(t): i for i, t in enumerate(found.tensors)}

    def make_strategy(ins: Sequence[Placement], outs: Placement, beside: Placement) -> Strategy:
        places: list[Placement] = [R] * len(found.tensors)
        for operand, placement in zip(operands, ins, strict=True):
            places[index[id(operand)]] = placement
        if added is not None:
            places[index[id(added)]] = beside
        return places, outs

    if len({id(o) for o in operands}) < len(operands):
        return
    for cut in shard_kinds(found, number):
        for letter in dict.fromkeys("".join(letters)):
            sizes = [
                o.shape[text.index(letter)] if letter in text else 1 for o, text in zip(operands, letters, strict=True)
            ]
            ins = [
                cut(text.index(letter)) if letter in text and size == max(sizes) else R
                for text, size in zip(letters, sizes, strict=True)
            ]
            if letter not in out:
                if added is None or added.is_floating_point():
                    yield make_strategy(ins, SUM, SUM)
                continue
            place = out.index(letter)
            own = None if added is None else place - (len(out) - added.ndim)
            beside = R if own is None or own < 0 or added.shape[own] == 1 else cut(own)
            yield make_strategy(ins, cut(place), beside)
    for partial in partial_kinds(found, number):
        if added is not None and partial != SUM:
            continue
        for i in range(len(operands)):
            yield make_strategy([partial if j == i else R for j in range(len(operands))], partial, partial)


_LETTERS = "abcdefghijklmnopqrstuvw"


def _matmul_letters(a: int, b: int) -> tuple[str, str, str]:
    """Return the letters of a matmul of tensors with `a` and `b` dimensions."""
    lead = _LETTERS[: max(a, b, 2) - 2]
    left = lead[len(lead) - (a - 2) :] + "xk" if a > 1 else "k"
    right = lead[len(lead) - (b - 2) :] + "ky" if b > 1 else "k"
    if a == 2:
        left = "xk"
    if b == 2:
        right = "ky"
    return left, right, lead + ("x" if a > 1 else "") + ("y" if b > 1 else "")


@register_op_strategy("matmul", "mm", "bmm", "mv", "dot", "vdot")
def _product_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    a, b = found.values[:2]
    left, right, out = _matmul_letters(a.ndim, b.ndim)
    yield from einsum_strategies(found, number, [a, b], [left, right], out)


@register_op_strategy("linear")
def _linear_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    x, weight, bias = found["input"], found["weight"], found["bias"]
    lead = _LETTERS[: x.ndim - 1]
    right, out = ("yk", lead + "y") if weight.ndim == 2 else ("k", lead)
    yield from einsum_strategies(found, number, [x, weight], [lead + "k", right], out, bias)


@register_op_strategy("addmm", "addmv", "baddbmm")
def _addmm_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    added, a, b = found.values[:3]
    left, right, out = _matmul_letters(a.ndim, b.ndim)
    yield from einsum_strategies(found, number, [a, b], [left, right], out, added)
