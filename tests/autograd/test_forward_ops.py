"""Forward mode for every op of the table: tangents against backward's products, and against central differences."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite.autograd import forward_ad as fwAD

from ..ops.op_db import ROWS, leaves, load_rows, to_tensors

load_rows()
ROWS_WITH_GRADIENTS = sorted(name for name, row in ROWS.items() if row.grad and not row.random)
STEP = 1e-6
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def _floats(tree):
    return [t for t in leaves(tree) if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())]


def _product(a, b) -> float:
    return float(torch.sum(a.conj().resolve_conj() * b).real)


def _with(tree, made):
    """The tree with other tensors in the place of its float ones."""
    if isinstance(tree, torch.Tensor):
        return next(made) if tree.is_floating_point() or tree.is_complex() else tree
    if isinstance(tree, (list, tuple)):
        return type(tree)(_with(item, made) for item in tree)
    if isinstance(tree, dict):
        return {k: _with(v, made) for k, v in tree.items()}
    return tree


def _random_like(tensor, rng):
    values = rng.standard_normal(tensor.shape)
    if tensor.is_complex():
        values = values + 1j * rng.standard_normal(tensor.shape)
    return torch.from_numpy(np.asarray(values)).to(tensor.dtype)


class Case:
    """One op at one sample, in random directions."""

    def __init__(self, row, index: int = 0):
        self.row = row
        self.tree = to_tensors(row.values(index))
        self.inputs = _floats(self.tree)
        self.rng = np.random.default_rng(0)
        self.tangents = [_random_like(x, self.rng) for x in self.inputs]

    def at(self, inputs) -> list:
        torch.manual_seed(0)
        args, kwargs = _with(self.tree, iter(inputs))
        return _floats(self.row.function()(*args, **kwargs))

    def pushed(self) -> list:
        with fwAD.dual_level():
            outs = self.at([fwAD.make_dual(x, t) for x, t in zip(self.inputs, self.tangents, strict=True)])
            return [fwAD.unpack_dual(o).tangent for o in outs]

    def pulled(self, cotangents) -> list:
        inputs = [x.detach().requires_grad_() for x in self.inputs]
        outs = self.at([x.view_as(x) for x in inputs])
        pairs = [(o, c) for o, c in zip(outs, cotangents, strict=True) if o.requires_grad and c is not None]
        return torch.autograd.grad([o for o, _ in pairs], inputs, [c for _, c in pairs], allow_unused=True)

    def slopes(self) -> list:
        ends = [
            self.at([x + sign * STEP * t for x, t in zip(self.inputs, self.tangents, strict=True)]) for sign in (1, -1)
        ]
        return [(high - low) / (2 * STEP) for high, low in zip(*ends, strict=True)]


@pytest.mark.parametrize("name", ROWS_WITH_GRADIENTS)
def test_tangents_are_backwards_products_and_slopes(name):
    case = Case(ROWS[name])
    found = case.pushed()
    if all(t is None for t in found):
        return _nothing_to_differentiate(case)
    cotangents = [None if t is None else _random_like(t, case.rng) for t in found]
    forward = sum(_product(c, t) for c, t in zip(cotangents, found, strict=True) if t is not None)
    backward = sum(_product(g, t) for g, t in zip(case.pulled(cotangents), case.tangents, strict=True) if g is not None)
    assert forward == pytest.approx(backward, rel=1e-8, abs=1e-8)
    if not ROWS[name].free and all(t.dtype.itemsize >= 8 for t in case.inputs):
        for tangent, slope in zip(found, case.slopes(), strict=True):
            if tangent is not None:
                torch.testing.assert_close(tangent, slope, rtol=1e-4, atol=1e-5, check_dtype=False)


def _nothing_to_differentiate(case) -> None:
    inputs = [x.detach().requires_grad_() for x in case.inputs]
    assert not any(o.requires_grad for o in case.at([x.view_as(x) for x in inputs]))
