"""Side effects of program steps: purity and in-place writes."""

from __future__ import annotations

from torchlite._dispatch.op_record import RANDOM, REGISTRY

from .program_ir import Step


def is_pure(step: Step) -> bool:
    """True if a step is pure."""
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
    """True if a step's only effect is writing to its arguments."""
    op = REGISTRY.get(step.name.rstrip("_"))
    draws = step.name.startswith("_random_") or op is not None and op.tags & RANDOM
    return step.kind == "kernel" and (step.name[-1] == "_" or step.name in _IN_PLACE_OPS) and not draws


# In-place kernels without an in-place name.
_IN_PLACE_OPS = frozenset(("copy_into", "_scale_all", "_clamp_all", "_unscale_homogeneous", "_random_fill"))
