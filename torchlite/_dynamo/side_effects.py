"""What steps do besides giving results."""

from __future__ import annotations

from torchlite._dispatch.op_record import RANDOM, REGISTRY

from .program_ir import Step


def is_pure(step: Step) -> bool:
    """Whether a step does nothing but give a result."""
    op = REGISTRY.get(step.name)
    if step.name in ("_wide", "_narrowed"):  # casts between half precision and float32
        return True
    return (
        step.kind == "kernel"
        and op is not None
        and step.name[-1] != "_"
        and not op.tags & RANDOM
        and not step.name.startswith(("_random_", "_fused_", "_amp_"))
        and step.name not in _IN_PLACE_OPS
    )


def only_mutates_args(step: Step) -> bool:
    """Whether all that a step does is to write into arrays that it gets."""
    op = REGISTRY.get(step.name.rstrip("_"))
    draws = step.name.startswith("_random_") or op is not None and op.tags & RANDOM
    return step.kind == "kernel" and (step.name[-1] == "_" or step.name in _IN_PLACE_OPS) and not draws


# Kernels that write into what they get, whatever their names.
_IN_PLACE_OPS = frozenset(("copy_into", "_scale_all", "_clamp_all", "_unscale_homogeneous", "_random_fill"))
