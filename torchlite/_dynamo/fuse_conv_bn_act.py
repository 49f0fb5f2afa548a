"""Fusion of convolution, batch norm and clamping activation into one step of a captured program.

The arithmetic and the conditions are those of `torchlite._ops.fused_inference`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from torchlite._ops.fused_inference import NO_CLAMP, can_fuse_dtypes, clamp_range_of_activation

from .alias_analysis import AliasAnalysis
from .program_ir import Layouts, Program, Slot, Step
from .step_purity import is_pure

_FUSED_CONV_BN = "_fused_conv_bn"
_FUSIBLE_PRODUCERS = frozenset(("convolution", "_batch_norm_eval", _FUSED_CONV_BN))


def fuse_conv_bn_act(program: Program, layouts: Layouts, place: dict[int, int], table: Any) -> Program:
    """Fuse each convolution with the batch norm after it, and either with a clamping activation after that.

    No other step may read the intermediate result. The fused kernels go over results while they are in cache.
    """
    memory = AliasAnalysis(program, place)
    count = Counter(n for step in program.steps for n in step.uses())
    firsts: dict[int, Step] = {}  # by result slot, since the last write
    steps: list[Step] = []
    done: set[int] = set()
    for step in program.steps:
        if not is_pure(step):
            firsts.clear()
        before = firsts.get(step.args[0].number) if step.args and step.args[0].__class__ is Slot else None
        if before is not None:
            found = _fuse_batch_norm(before, step, layouts, table) or _fuse_clamp(before, step, layouts, table)
            if found is not None:
                done.add(id(before))
                step = found
        steps.append(step)
        if step.name in _FUSIBLE_PRODUCERS and step.out.__class__ is Slot:
            number = step.out.number
            kind = layouts.get(number)
            if (
                kind is not None
                and kind[2]
                and can_fuse_dtypes([kind[1]])
                and count[number] == 1
                and memory.is_plain(number)
            ):
                firsts[number] = step
    return replace(program, steps=[step for step in steps if id(step) not in done])


def _fuse_batch_norm(before: Step, step: Step, layouts: Layouts, table: Any) -> Step | None:
    """A convolution and the batch norm of its result as one step, or None."""
    if before.name != "convolution" or step.name != "_batch_norm_eval" or step.kwargs:
        return None
    if not _has_one_dtype({*before.uses(), *step.uses(), *step.makes()}, layouts) or not layouts[step.out.number][2]:
        return None
    return replace(
        step, name=_FUSED_CONV_BN, kernel=getattr(table, _FUSED_CONV_BN), args=(*before.args, *step.args[1:])
    )


def _fuse_clamp(before: Step, step: Step, layouts: Layouts, table: Any) -> Step | None:
    """A step and the activation that clamps its result as one step, or None."""
    limits = clamp_range_of(step)
    if limits is None or layouts.get(step.out.number) != layouts[before.out.number]:
        return None
    if before.name == "convolution":
        if not _has_one_dtype({*before.uses(), before.out.number}, layouts):
            return None
        args = (*before.args, None, None, None, None, 0.0, *limits)  # no batch norm
        return replace(step, name=_FUSED_CONV_BN, kernel=getattr(table, _FUSED_CONV_BN), args=args)
    if before.args[-2:] != NO_CLAMP:
        return None
    return replace(step, name=before.name, kernel=before.kernel, args=(*before.args[:-2], *limits))


def _has_one_dtype(slots: set[int], layouts: Layouts) -> bool:
    return all(n in layouts for n in slots) and can_fuse_dtypes([layouts[n][1] for n in slots])


def clamp_range_of(step: Step) -> tuple[float, float] | None:
    """Bounds between which an elementwise step clamps its input; None for other steps."""
    return None if step.kwargs else clamp_range_of_activation(step.name, step.args[1:])
