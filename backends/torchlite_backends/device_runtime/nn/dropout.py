"""Dropout with its mask drawn in the forward kernel and stored as a byte per element for backward."""

from __future__ import annotations

from torchlite_backends.kernel_sources.dropout import BACKWARD, FORWARD
from torchlite_backends.kernel_sources.dtype_kinds import KINDS

from ..array_ops.random import (
    compute_bernoulli_limit,
    compute_block_sizes,
    make_seed_arguments,
    random_definitions_source,
)
from ..core.array import empty
from ..core.contiguous_copy import as_contiguous
from ..core.device import round_up_to_groups


def _launch(x, source: str, name: str, signature: str, global_size, *arguments) -> None:
    computed, wide = KINDS[x.kind].computed, x.device.is_cpu
    signature = signature.replace("S", KINDS[x.kind].pack)
    run = x.device.function(
        source, name, signature, (16,) if wide else (), **random_definitions_source(x.device, x.kind, computed)
    )
    run(global_size, (64,), *arguments)


def _dropout(input, p, generator):
    x = as_contiguous(input)
    out, kept = empty(x.device, x.shape, x.kind), empty(x.device, x.shape, "b8")
    if x.size:
        blocks, global_size = compute_block_sizes(x.size, 4, 16 if x.device.is_cpu else 1)
        text, letters, start = make_seed_arguments(x.device, generator, blocks, FORWARD)
        _launch(
            x,
            text,
            "dropout",
            f"pppi{letters}IS",
            global_size,
            x,
            out,
            kept,
            x.size,
            *start,
            compute_bernoulli_limit(1.0 - p),
            1.0 / (1.0 - p),
        )
    return out, kept


def _dropout_backward(grad, kept, p):
    grad, kept = as_contiguous(grad), as_contiguous(kept)
    out = empty(grad.device, grad.shape, grad.kind)
    if grad.size:
        lanes = 16 if grad.device.is_cpu else 1
        _launch(
            grad,
            BACKWARD,
            "dropout_backward",
            "pppiS",
            round_up_to_groups(-(-grad.size // lanes), 64),
            grad,
            kept,
            out,
            grad.size,
            1.0 / (1.0 - p),
        )
    return out
