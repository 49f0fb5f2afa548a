"""Gradcheck support for sparse tensors. They count as functions of dense tensors: their values or, in unmasked mode,
all elements.
"""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .differentiable_values import with_values
from .layout_conversion import to_layout_of, values_at
from .sparse_tensor import is_sparse


def as_dense_function(func: Any, inputs: Any, masked: bool) -> tuple[Any, tuple]:
    """Return a function of dense tensors equivalent to `func` of sparse ones, and its inputs."""
    inputs = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    given: list[Any] = []
    places: list[Any] = []
    for value in inputs:
        if is_sparse(value) and value.requires_grad:
            dense = value._tl_array.values if masked else value.detach().to_dense()
            places.append(
                value._tl_array if masked else to_layout_of(torch.ones_like(dense), value._tl_array)._tl_array
            )
            value = dense.detach().clone().requires_grad_()
        else:
            places.append(None)
        given.append(value)

    def call_with_dense(*values):
        args = [
            value if where is None else with_values(where, value if masked else values_at(value, where))
            for where, value in zip(places, values, strict=True)
        ]
        out = func(*args)
        if isinstance(out, (list, tuple)):
            return type(out)(one.to_dense() if is_sparse(one) else one for one in out)
        return out.to_dense(masked_grad=masked) if is_sparse(out) else out

    return call_with_dense, tuple(given)
