"""Levels of instructions: the sets that many processors share, for which kernels are compiled ahead."""

from __future__ import annotations

import functools
import os
import platform

VARIABLE = "TORCHLITE_CPU_LEVEL"
NATIVE = "native"  # all instructions of this processor
V3, V4 = "x86-64-v3", "x86-64-v4"  # AVX2 and FMA; AVX-512
BASELINE = "baseline"  # what the compiler builds for the architecture without a flag
HOW_TO_GET_KERNELS = "python -m torchlite build-kernels (needs a C++ compiler), or install torchlite-nd-kernels"


def is_x86_64() -> bool:
    """True on processors of the architecture x86-64."""
    return platform.machine().lower() in ("x86_64", "amd64")


def list_levels() -> tuple[str, ...]:
    """Return the levels of this architecture, the widest first."""
    return (V4, V3) if is_x86_64() else (BASELINE,)


@functools.cache
def processor_level() -> str:
    """Return the widest level of this processor, as NumPy sees its features; "" on x86-64 without AVX2."""
    if not is_x86_64():
        return BASELINE
    from numpy._core._multiarray_umath import __cpu_features__ as features

    if features.get("X86_V4") or features.get("AVX512_SKX"):
        return V4
    older = all(features.get(name) for name in ("AVX2", "FMA3", "F16C"))
    return V3 if features.get("X86_V3", older) else ""


def requested_level() -> str:
    """Return the level that `TORCHLITE_CPU_LEVEL` names; "" without it. RuntimeError for an unknown one."""
    named = os.environ.get(VARIABLE, "").strip().lower()
    known = (NATIVE, *list_levels())
    if named and named not in known:
        raise RuntimeError(f"{VARIABLE} names '{named}', and there are {', '.join(known[:-1])} and {known[-1]}")
    return named


def why_not(level: str) -> str:
    """Return a sentence why this processor cannot run a level's kernels; empty if it can."""
    levels = list_levels()
    own = processor_level()
    if level == NATIVE or (own and levels.index(own) <= levels.index(level)):
        return ""
    return f"this processor lacks instructions of {level}"


def has_avx512() -> bool:
    """True if this process's kernels may use AVX-512: by the named level, else by the processor."""
    named = requested_level()
    return (processor_level() if named in ("", NATIVE) else named) == V4
