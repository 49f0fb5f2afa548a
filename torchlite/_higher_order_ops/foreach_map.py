"""`foreach_map`: applies a function elementwise over lists of tensors, like `torch._foreach_` functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def foreach_map(op: Callable, *operands: Any, **kwargs: Any) -> Any:
    """Return the list of `op(a, b, ..., **kwargs)` over zipped lists or tuples; other operands are passed to each call.
    Without a list, return one call's result. `torch.compile` fuses the calls.

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
