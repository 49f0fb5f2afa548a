"""Every row of the op table under `torch.compile`: results, gradients and random streams are eager's, bit for bit."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import torchlite as torch
from tests.ops.op_db import ROWS, leaves, load_rows, public, to_tensors
from torchlite._dynamo.compiled_function import CompiledFunction

pytestmark = pytest.mark.night

load_rows()
FAMILIES = sorted({row.family for row in ROWS.values()})
# Of these not all samples are replayed: they take other memory, step an optimizer that is made inside, call Python for
# each element, return tensors with histories in one memory, or have gradients whose shapes depend on elements.
EAGER = frozenset(
    """
    _fused_adagrad _fused_adam _fused_rmsprop _fused_sgd is_set_to map_ map2_ index_put linalg_lstsq masked_scatter
    resize_ resize_as_ set_
""".split()
)
# On other devices these too: they ask the CPU.
EAGER_ON_DEVICES = frozenset("_move ctc_loss linalg_ldl_solve".split())
UNINITIALIZED = frozenset(("_empty", "empty_like", "empty", "new_empty", "new_empty_strided", "empty"))


def bits(result):
    """Return the values that two results must share."""
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
def test_compiled_rows_match_eager(family, device):
    missing = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, row in sorted(ROWS.items()):
            if row.family != family or name in UNINITIALIZED:
                continue
            for i in range(len(row.samples)):
                for requires_grad in (False, True):
                    function = function_of(row)
                    frame, fails = CompiledFunction(function, name), False
                    for seed in ("", "a") * 3:  # each of two ways that elements may decide is captured, and replayed
                        want = outcome(row, function, (i, seed), requires_grad, device)
                        fails = fails or isinstance(want, type)
                        assert outcome(row, frame, (i, seed), requires_grad, device) == want, (
                            name,
                            i,
                            seed,
                            requires_grad,
                        )
                    missing.update([] if frame.replays or fails else [name])
    missing -= EAGER | (EAGER_ON_DEVICES if device != "cpu" else frozenset())
    assert not missing, f"not all samples are replayed of {sorted(missing)}"
