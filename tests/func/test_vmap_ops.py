"""`vmap` against a loop, for every sample of the op table: with all tensor arguments differing from example to example,
and with each of them alone.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import torchlite as torch
from tests.ops.op_db import ROWS, load_rows
from torchlite._dispatch import REGISTRY
from torchlite.func._batching_rules import LOOPS, rule_kind
from torchlite.utils._pytree import tree_flatten, tree_unflatten

load_rows()
SIZE = 3

# Ops that cannot be vectorised, as in PyTorch, and why.
REFUSED = {
    **dict.fromkeys(("allclose", "equal", "is_nonzero"), "data-dependent control flow"),
    **dict.fromkeys(("map_", "map2_", "_choose_qparams_per_tensor"), r"calling .item\(\)"),
    **dict.fromkeys(
        ("masked_select", "unique", "_unique_and_all", "_unique", "unique_consecutive", "nonzero"), "dynamic shape"
    ),
    "set_": "other memory",
    **dict.fromkeys(("_move", "choose_qparams_optimized"), "Cannot access data pointer"),
    **dict.fromkeys(
        ("_fused_adam", "_fused_sgd", "_fused_rmsprop", "_fused_adagrad", "_total_norm"), r"requires_grad_\(\)"
    ),
}
# Ops that write into a tensor without a batch dimension.
IN_PLACE = {
    "embedding_renorm_",
    "_copy_slices",
    "_setitem",
    "as_strided_scatter",
    "copy_",
    "fill_",
    "batch_norm_update_stats",
    "bernoulli_",
    "fused_moving_avg_obs_fake_quant",
    "_fused_moving_avg_obs_fq_helper",
}
# Ops without values to compare, and those with a constant matrix, of which examples have no parts.
ASIDE = {"_amp_foreach_non_finite_check_and_unscale_", "empty_like", "new_empty", "new_empty_strided", "is_set_to"} | {
    "_constant_matmul", "_dynamic_linear",
}  # fmt: skip


@pytest.fixture(autouse=True)
def convolutions_of_numpy():
    """Those of a batch and of its examples are others, which oneDNN adds up in other orders."""
    with torch.backends.mkldnn.flags(enabled=False):
        yield


def samples(row, index):
    """The leaves of a sample for each example, and how they are nested."""
    each = []
    for i in range(SIZE):
        args, kwargs = row.values(index, str(i))
        leaves, spec = tree_flatten((args, kwargs), is_leaf=lambda x: isinstance(x, np.ndarray))
        each.append(leaves)
    return each, spec


def tensors_in(leaves):
    return [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]


def results_of(value):
    flat, _ = tree_flatten(value)
    return [leaf for leaf in flat if isinstance(leaf, torch.Tensor)]


def call(row, spec, leaves):
    args, kwargs = tree_unflatten(leaves, spec)
    return results_of(row.function()(*args, **kwargs))


def expected_of(row, index, chosen, each, spec):
    """The results of a loop; None where the op refuses an example, or gives others shapes."""
    made = []
    for i in range(SIZE):
        leaves = [
            torch.from_numpy(np.array(each[i if k in chosen else 0][k])) if isinstance(leaf, np.ndarray) else leaf
            for k, leaf in enumerate(each[0])
        ]
        try:
            made.append(call(row, spec, leaves))
        except RuntimeError:
            return None
    shapes = [[t.shape for t in results] for results in made]
    return made if shapes[0] and all(s == shapes[0] for s in shapes) else None


def found_by_vmap(row, chosen, each, spec):
    """The results of `vmap` over the chosen leaves."""
    where = -1 if row.noncontiguous else 0  # some look at how their arguments lie in memory
    stacked = [torch.from_numpy(np.stack([each[i][k] for i in range(SIZE)], where)) for k in chosen]

    def one(*given):
        made = [torch.from_numpy(np.array(leaf)) if isinstance(leaf, np.ndarray) else leaf for leaf in each[0]]
        for k, t in zip(chosen, given, strict=True):
            made[k] = t
        return tuple(call(row, spec, made))

    return torch.vmap(one, in_dims=where, randomness="different")(*stacked)


def assert_close(found, expected):
    """Equal but for the order of sums, which the processor's BLAS chooses by the sizes of a product: that of a batch is
    another than those of its examples, and an element near 0 carries the rounding of the terms that it is a sum of.
    """
    found, expected = (t.detach().resolve_conj().resolve_neg().numpy() for t in (found, expected))
    rounding = 2 * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0.0
    largest = np.abs(expected, where=np.isfinite(expected), out=np.zeros(expected.shape)).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=max(1e-9, rounding * largest))


# Products of packed weights: how many rows there are chooses the order of their sums.
PACKED_PRODUCTS = frozenset(["_weight_int4pack_mm_for_cpu"])


def assert_close_to_exact(row, index, chosen, found, expected):
    """Both differ from the product in float64 by at most the bound of a sum of n terms in any order: n roundings of the
    sum of their magnitudes. The largest difference in these samples is 3 roundings.
    """
    each, spec = samples(row, index)
    for i in range(SIZE):
        leaves = [
            torch.from_numpy(np.array(each[i if k in chosen else 0][k])) if isinstance(leaf, np.ndarray) else leaf
            for k, leaf in enumerate(each[0])
        ]
        (rows, *packed), _ = tree_unflatten(leaves, spec)
        weight = row.function()(torch.eye(rows.shape[1]), *packed).double()  # the products with a unit matrix
        exact, magnitudes = rows.double() @ weight, rows.double().abs() @ weight.abs()
        bound = rows.shape[1] * torch.finfo(rows.dtype).eps / 2 * magnitudes
        for result in (found[i], expected[i]):
            assert bool(((result.double() - exact).abs() <= bound).all())


def compare(row, index, chosen):
    """vmap over the chosen leaves against a loop. Whether there was something to compare."""
    each, spec = samples(row, index)
    expected = expected_of(row, index, chosen, each, spec)
    if expected is None:
        return False
    found = found_by_vmap(row, chosen, each, spec)
    assert len(found) == len(expected[0])
    for position, t in enumerate(found):
        want = torch.stack([e[position] for e in expected])
        assert t.shape == want.shape and t.dtype is want.dtype, (t.shape, want.shape, t.dtype, want.dtype)
        if row.name in PACKED_PRODUCTS:
            assert_close_to_exact(row, index, chosen, t, want)
        elif not row.random:
            assert_close(t, want)
    return True


@pytest.mark.parametrize("family", sorted({row.family for row in ROWS.values()}))
@pytest.mark.filterwarnings("ignore")
def test_vmap_is_a_loop(family):
    compared = 0
    for row in (row for row in ROWS.values() if row.family == family and row.name not in ASIDE):
        for index in range(len(row.samples)):
            tensors = tensors_in(samples(row, index)[0][0])
            for chosen in [tensors, *([[k] for k in tensors] if len(tensors) > 1 else [])] if tensors else []:
                try:
                    compared += compare(row, index, chosen)
                except (RuntimeError, AttributeError) as error:
                    words = REFUSED.get(row.name) or (
                        "not possible because|unbatched tensor" if row.name in IN_PLACE else None
                    )
                    if words is None or not re.search(words, str(error)):
                        raise AssertionError(f"{row.name}, sample {index}, arguments {chosen}") from error
                except AssertionError as error:
                    raise AssertionError(f"{row.name}, sample {index}, arguments {chosen}") from error
    assert compared or family == "fused_optim"


def test_only_the_listed_ops_loop():
    looping = {op.name for op in REGISTRY.values() if rule_kind(op) == "loop"}
    assert looping == set(LOOPS)
