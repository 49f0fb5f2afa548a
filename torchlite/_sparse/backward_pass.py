"""The backward pass of programs with sparse tensors. Gradients may be sparse and accumulate as in PyTorch. Programs
without sparse tensors do not run this code.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import call
from .._dispatch.autograd_graph import bump_version
from ..autograd.engine import BackwardPass, RawMode, TensorMode
from .elementwise import add_scaled
from .layout_conversion import densify
from .sparse_tensor import SparseData, wrap_sparse


class _RawGradientMode(RawMode):
    """Gradients as raw arrays, or as the data of sparse tensors."""

    takes_sparse = True

    @staticmethod
    def run(node, g):
        if g.__class__ is SparseData:
            # The formula's ops may have rules for sparse tensors; without a rule the gradient is dense.
            try:
                found = TensorMode.run(node, wrap_sparse(g))
            except (NotImplementedError, RuntimeError):
                g = densify(wrap_sparse(g))._tl_array
            else:
                return tuple(one._tl_array if isinstance(one, call.Tensor) else one for one in found)
        elif g.__class__ is list:
            g = [densify(wrap_sparse(one))._tl_array if one.__class__ is SparseData else one for one in g]
        return RawMode.run(node, g)

    @staticmethod
    def add(table, a, b):
        if a.__class__ is not SparseData and b.__class__ is not SparseData:
            return RawMode.add(table, a, b)
        return add_scaled(_RawGradientMode.tensor(table, a), _RawGradientMode.tensor(table, b))._tl_array

    @staticmethod
    def fit(table, g, shape):
        if g.__class__ is SparseData:
            g = densify(wrap_sparse(g))._tl_array
        return RawMode.fit(table, g, shape)

    @staticmethod
    def tensor(table, g):
        return wrap_sparse(g) if g.__class__ is SparseData else call.wrap_array(table, g)


class _TensorGradientMode(TensorMode):
    """Gradients as tensors with history, of which some may be sparse."""

    takes_sparse = True

    @staticmethod
    def add(table, a, b):
        return add_scaled(a, b) if a._tl_is_sparse or b._tl_is_sparse else TensorMode.add(table, a, b)


class _SparseBackwardPass(BackwardPass):
    """A backward pass that may accumulate sparse gradients in the leaves."""

    def add_to_grad(self, tensor, found, g) -> None:
        sparse = g._tl_is_sparse if self.mode.differentiable else g.__class__ is SparseData
        existing = found.grad
        if not sparse and (existing is None or not existing._tl_is_sparse):
            super().add_to_grad(tensor, found, g)
            return
        new: Any = g if self.mode.differentiable else self.mode.tensor(tensor._tl_kernels, g)
        if existing is None:
            existing = new._tl_array
            alone = id(g) not in self.given and existing.values.is_contiguous() and existing.parts[0].is_contiguous()
            found.grad = new if alone else new.clone()
        elif self.mode.differentiable or existing._tl_is_sparse and not new._tl_is_sparse:
            found.grad = add_scaled(existing, new)
        else:  # in place, as in PyTorch
            total = add_scaled(existing, new)
            if existing._tl_is_sparse:
                existing._tl_array = total._tl_array
                bump_version(existing)
            else:
                existing.copy_(total)
        self.given.add(id(g))


def sparse_backward_mode(mode: type) -> tuple[type, type]:
    """Return the mode and the class of a backward pass with sparse tensors. A mode with interceptors is unchanged:
    there gradients are dense.
    """
    modes: dict[type, type] = {RawMode: _RawGradientMode, TensorMode: _TensorGradientMode}
    return modes.get(mode, mode), _SparseBackwardPass
