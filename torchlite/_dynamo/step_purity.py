"""Side effects of program steps: purity and in-place writes."""

from __future__ import annotations

from torchlite._dispatch.op_record import RANDOM, REGISTRY

from .program_ir import Step


def is_pure(step: Step) -> bool:
    """True if a step is pure."""
    op = REGISTRY.get(step.name)
    if step.name in _PURE_STEPS:
        return True
    return step.kind == "kernel" and op is not None and not (step.name[-1] == "_" or op.mutates or op.tags & RANDOM)


def only_mutates_args(step: Step) -> bool:
    """True if a step's only effect is writing to its arguments."""
    op = REGISTRY.get(step.name.rstrip("_"))
    if step.kind != "kernel" or op is not None and op.tags & RANDOM:
        return False
    return step.name[-1] == "_" or step.name == "copy_into" or op is not None and op.mutates == "arguments"


# Steps that passes make: casts between half precision and float32, kernels for images whose channels are last, and
# products with constant weights.
# Loops of files are also steps (`onnx/_import/loop_calls.py`).
_PURE_STEPS = frozenset(
    """_wide _narrowed _last_convolution _last_max_pool _last_mean _last_resize _last_cat _to_last _from_last
    _loop _scan _constant_product""".split()
)
