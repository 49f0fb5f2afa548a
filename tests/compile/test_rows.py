"""Every row of the op table under `torch.compile`: results, gradients and random streams are eager's, bit for bit."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite._dynamo.frames import Frame

from ..ops.table import ROWS, leaves, load_rows, public, to_tensors

load_rows()
FAMILIES = sorted({row.family for row in ROWS.values()})
# Of these no sample is replayed: their shapes depend on elements, they read elements that are too many, warn, or answer
# with what is no plain tensor.
EAGER = frozenset("""
    _detach_ _fused_adagrad _fused_adam _fused_rmsprop _fused_sgd _is_nonzero _is_set_to _map _map2 _norm_of_all
    _safe_softmax fft_ihfft fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
    fractional_max_pool3d_with_indices max_unpool3d set_ upsample upsample_bilinear upsample_nearest
    argwhere bincount combinations range fft_ifft fft_irfft histogram histogramdd kl_div masked_select nonzero resize_
    resize_as_ unique unique_consecutive
""".split())  # fmt: skip
# On other devices these too: their kernels answer with Python's numbers, or ask the CPU.
EAGER_ON_DEVICES = frozenset("_is_same_size _move allclose ctc_loss equal linalg_ldl_solve".split())
UNINITIALIZED = frozenset(("_empty", "_empty_like", "_new", "_new_empty", "_new_empty_strided", "empty"))


def bits(result):
    """What two results must agree in."""
    found = []
    for t in leaves(result):
        raw = t.detach().resolve_conj().resolve_neg().cpu().numpy()
        found.append((t.dtype, t.shape, t.stride(), t.requires_grad, np.ascontiguousarray(raw).tobytes()))
    return found


def function_of(row):
    """The row's callable, which knows nothing of the table."""
    return row.call or (functools.partial(row.oracle, torch) if row.oracle is not None else public(row.name))


def called(row, function, seed, requires_grad, device):
    """(result, gradients) of a call."""
    try:
        args, kwargs = to_tensors(row.values(0 if seed is None else seed[0], "" if seed is None else seed[1]), device,
                                  requires_grad=requires_grad)  # fmt: skip
    except ValueError:  # data that only one seed gives
        args, kwargs = to_tensors(row.values(seed[0]), device, requires_grad=requires_grad)
    torch.manual_seed(0)
    result = function(*args, **kwargs)
    inputs = [t for t in leaves((args, kwargs)) if t.requires_grad]
    outs = [t for t in leaves(result) if t.requires_grad and t.dtype.is_floating_point]
    if not inputs or not outs:
        return bits(result), []
    cotangents = [torch.full_like(o, 0.5 + 0.25 * k).detach() for k, o in enumerate(outs)]
    return bits(result), bits(
        [g for g in torch.autograd.grad(outs, inputs, cotangents, allow_unused=True) if g is not None]
    )


def outcome(row, function, seed, requires_grad, device):
    try:
        return called(row, function, seed, requires_grad, device)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_give_what_eager_gives(family, device):
    replayed, total = set(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, row in sorted(ROWS.items()):
            if row.family != family or name in UNINITIALIZED:
                continue
            for i in range(len(row.samples)):
                for requires_grad in (False, True):
                    function = function_of(row)
                    frame = Frame(function, name)
                    for seed in ("", "a", ""):  # the second call has other elements: the third is replayed
                        want = outcome(row, function, (i, seed), requires_grad, device)
                        assert outcome(row, frame, (i, seed), requires_grad, device) == want, (
                            name,
                            i,
                            seed,
                            requires_grad,
                        )
                    total += 1
                    replayed.update([name] if frame.replays else [])
    missing = {n for n, row in ROWS.items() if row.family == family} - replayed - EAGER - UNINITIALIZED
    missing -= set() if device == "cpu" else EAGER_ON_DEVICES
    assert not missing, f"not one sample is replayed of {sorted(missing)}"
