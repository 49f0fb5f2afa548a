"""How gradcheck sees sparse tensors: through the dense tensors that they are made from and become."""

from __future__ import annotations

from typing import Any

from .convert import like
from .data import is_sparse
from .history import with_values


def over_values(func: Any, inputs: Any, masked: bool) -> tuple[Any, tuple]:
    """A function of dense tensors that does as `func` does with sparse ones, and its inputs."""
    inputs = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    given: list[Any] = []
    for value in inputs:
        if is_sparse(value) and value.requires_grad:
            dense = value._data.values if masked else value.detach().to_dense()
            value = dense.detach().clone().requires_grad_()
        given.append(value)

    def of_dense(*values):
        args = [
            value
            if not (is_sparse(old) and old.requires_grad)
            else with_values(old._data, value)
            if masked
            else like(value, old._data)
            for old, value in zip(inputs, values, strict=True)
        ]
        out = func(*args)
        if isinstance(out, (list, tuple)):
            return type(out)(one.to_dense() if is_sparse(one) else one for one in out)
        return out.to_dense(masked_grad=masked) if is_sparse(out) else out

    return of_dense, tuple(given)
