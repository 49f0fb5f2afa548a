"""A node keeps of inputs and outputs what PyTorch's keeps, for every choice of inputs that want a gradient, so that
they may be written to, and are let go of, where they may in PyTorch.
"""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite._dispatch.backend import owner_of

from .op_db import ROWS, load_rows
from .saved_tensors import floats, look, recorded, subsets

load_rows()

# More is kept of these, by reason.
KEEP_MORE = {
    "the loss keeps its logits, PyTorch their log-probabilities: as large": ("cross_entropy",),
    "one formula for all gradients, which recomputes": ("gru", "lstm", "scaled_dot_product_attention", "rms_norm"),
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
def test_what_is_kept(family):
    wrong, needless, compared = [], [], 0
    for name, row in sorted(ROWS.items()):
        if row.family != family or name in REFUSED:
            continue
        more = False
        for i in range(len(row.samples)):
            args, kwargs = row.values(i)
            for wanted in subsets(floats((args, kwargs))):
                key = f"{name}/{i}/{','.join(map(str, wanted))}"
                if key not in ANSWERS:
                    continue
                compared += 1
                expected = ANSWERS[key]
                found = look(torch, row.function(), args, kwargs, wanted, place_of)
                if found[3] != expected[3]:
                    if name not in UNLIKE:
                        wrong.append((key, "requires_grad", found[3]))
                elif not set(found[0]) <= set(expected[0]) or not set(found[1]) <= set(expected[1]):
                    more = True
                    if name not in ALLOWED:
                        wrong.append((key, found[:2], expected[:2]))
        if name in ALLOWED and not more:
            needless.append(name)
    assert not wrong
    assert not needless, "these keep no more than PyTorch's: take them out of KEEP_MORE"
