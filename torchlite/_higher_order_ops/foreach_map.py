"""One function over lists of tensors, as the `torch._foreach_` functions are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def foreach_map(op: Callable, *operands: Any, **kwargs: Any) -> Any:
    """The list of `op(a, b, ..., **kwargs)` for the elements a, b, ... of lists or tuples, as far as the shortest goes;
    other operands are given to each call. One call's result where no operand is a list. `torch.compile` joins what the
    calls do as it joins any ops.

    >>> import torchlite as torch
    >>> from torchlite._higher_order_ops import foreach_map
    >>> foreach_map(torch.add, [torch.tensor(1), torch.tensor(2)], 10, alpha=2)
    [tensor(21), tensor(22)]
    """
    lengths = [len(operand) for operand in operands if isinstance(operand, (list, tuple))]
    if not lengths:
        return op(*operands, **kwargs)
    rows = [operand if isinstance(operand, (list, tuple)) else [operand] * min(lengths) for operand in operands]
    return [op(*items, **kwargs) for items in zip(*rows, strict=False)]
