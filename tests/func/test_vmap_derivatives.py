"""Vectorised derivatives against loops, for every differentiable row of the op table: `vmap` of a vector-Jacobian
product (as `jacrev` has it), and vector-Jacobian products inside `vmap`.
"""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from tests.func.test_vmap_ops import ASIDE, SIZE, assert_close, call, samples
from tests.ops.op_db import ROWS
from torchlite.func import vjp, vmap
from torchlite.utils._pytree import tree_leaves


@pytest.fixture(autouse=True)
def convolutions_of_numpy():
    """Those of a batch and of its examples are others, which oneDNN adds up in other orders."""
    with torch.backends.mkldnn.flags(enabled=False):
        yield


def floats_in(leaves):
    return [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc"]


def differentiated(row, spec, leaves, chosen):
    """A function of the chosen leaves that gives the results that have a derivative."""

    def function(*given):
        made = [torch.from_numpy(np.array(leaf)) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
        for k, t in zip(chosen, given, strict=True):
            made[k] = t
        return tuple(t for t in call(row, spec, made) if t.dtype.category >= 2)

    return function


def cotangents(outs, seed):
    rng = np.random.default_rng(seed)
    made = []
    for out in outs:
        data = rng.uniform(-1, 1, (SIZE, *out.shape))
        if out.dtype.is_complex:
            data = data + 1j * rng.uniform(-1, 1, data.shape)
        made.append(torch.from_numpy(np.asarray(data)).to(out.dtype))
    return tuple(made)


def same(found, expected):
    for got, wanted in zip(tree_leaves(found), expected, strict=True):
        assert got.shape == wanted.shape, (got.shape, wanted.shape)
        assert_close(got, wanted)


def stacked(rows):
    return [torch.stack(column) for column in zip(*map(tree_leaves, rows), strict=True)]


def compare(row, index):
    """Whether there was something to compare."""
    each, spec = samples(row, index)
    chosen = floats_in(each[0])
    if not chosen:
        return False
    primals = [tuple(torch.from_numpy(np.array(leaves[k])) for k in chosen) for leaves in each]
    functions = [differentiated(row, spec, leaves, chosen) for leaves in each]
    function = functions[0]
    try:
        outs, back = vjp(function, *primals[0])
    except RuntimeError:
        return False  # refused at all, or no result has a derivative
    if not any(t.numel() for t in outs):
        return False
    given = cotangents(outs, index)
    single = stacked([back(tuple(g[i] for g in given)) for i in range(SIZE)])
    same(vmap(lambda *g: back(g))(*given), single)

    def whole(*values):
        return vjp(function, *values[: len(chosen)])[1](values[len(chosen) :])

    try:
        rows = [whole(*primals[i], *(g[i] for g in given)) for i in range(SIZE)]
    except RuntimeError:
        return True  # other examples do not fit what is the same for all
    batches = [torch.stack(column) for column in zip(*primals, strict=True)]
    same(vmap(whole)(*batches, *given), stacked(rows))
    return True


@pytest.mark.parametrize("family", sorted({row.family for row in ROWS.values() if row.grad and not row.random}))
@pytest.mark.filterwarnings("ignore")
def test_vmap_of_derivatives_is_a_loop(family):
    for row in ROWS.values():
        if row.family != family or row.random or not row.grad or row.name in ASIDE:
            continue
        try:
            compare(row, len(row.samples) - 1)
        except RuntimeError as error:
            if row.name != "masked_select" or "dynamic shape" not in str(error):
                raise AssertionError(row.name) from error
        except (AssertionError, TypeError, ValueError) as error:
            raise AssertionError(row.name) from error
