"""A node saves the inputs and results that PyTorch's saves, for every choice of inputs that require a gradient. Others
may be written to, and are freed, as in PyTorch.
"""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite._dispatch.backend import owner_of

from .op_db import ROWS, load_rows
from .saved_tensors import choices, recorded, saved_by

load_rows()

# More is saved of these, by reason.
KEEP_MORE = {
    "the loss keeps its logits, PyTorch their log-probabilities: as large": ("cross_entropy",),
    "one formula for all gradients, which recomputes": ("gru", "lstm", "scaled_dot_product_attention", "rms_norm"),
    "a product with a sparse matrix, which keeps both": ("embedding_bag",),
    "PyTorch keeps a copy": (
        "einsum", "instance_norm", "matmul", "norm_except_dim", "special_ndtr", "vander", "max_pool1d", "max_pool2d",
        "max_pool3d",
    ),
    "PyTorch's has no derivative": (
        "_add_relu", "_addmm_activation", "_compute_linear_combination", "_native_multi_head_attention",
    ),
}  # fmt: skip
ALLOWED = {name for names in KEEP_MORE.values() for name in names}
# A result that wants a gradient in PyTorch, whose backward then is an error or zero, and wants none here.
UNLIKE = {"bernoulli", "detach_copy", "lu_unpack", "batch_norm_update_stats", "_standard_gamma_grad"}
# Refused with a gradient, which PyTorch's row of the table detaches.
REFUSED = {"resize_", "resize_as_"}
ANSWERS = recorded()


def place_of(tensor):
    owner = owner_of(tensor._tl_array)
    return id(owner), owner.nbytes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", sorted({row.family for row in ROWS.values()}))
def test_saved_tensors_are_pytorchs(family):
    wrong, needless = [], []
    for name in sorted(name for name, row in ROWS.items() if row.family == family and name in ANSWERS.keys() - REFUSED):
        row, more = ROWS[name], False
        for i, label in enumerate(row.labels):
            for choice, wanted in choices(row, i).items():
                expected = ANSWERS[name][label][choice]
                if expected == "refused":
                    continue
                found = saved_by(torch, row.function(), row, i, wanted, place_of)
                if (found is None) != (expected is None):
                    if name not in UNLIKE:
                        wrong.append((name, label, choice, found, expected))
                elif not set(found or ()) <= set(expected or ()):
                    more = True
                    if name not in ALLOWED:
                        wrong.append((name, label, choice, found, expected))
        if name in ALLOWED and not more:
            needless.append(name)
    assert not wrong
    assert not needless, "these save no more than PyTorch's: take them out of KEEP_MORE"
