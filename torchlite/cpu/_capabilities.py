"""Instruction sets of the processor, as Linux lists them."""

from __future__ import annotations

import functools
import os
import platform
import re
from typing import Any

# PyTorch's names of the instruction sets of x86-64, and Linux's where they differ.
_SETS = (
    "sse sse2 sse3=pni ssse3 sse4_1 sse4_2 sse4a avx avx2 avx_vnni avx_vnni_int8 avx_vnni_int16 avx_ne_convert "
    "avx512_f=avx512f avx512_cd=avx512cd avx512_dq=avx512dq avx512_bw=avx512bw avx512_vl=avx512vl "
    "avx512_ifma=avx512ifma avx512_vbmi=avx512vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq avx512_vnni "
    "avx512_bf16 avx512_fp16 avx512_vp2intersect avx512_4vnniw avx512_4fmaps avx10_1 avx10_2 amx_bf16 amx_tile "
    "amx_int8 amx_fp16 f16c fma3=fma fma4 bmi=bmi1 bmi2 popcnt lzcnt=abm aes sha=sha_ni clflush clflushopt clwb"
)


def _cpu_info() -> str:
    """The text of the first processor, "" where the system has no such list."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return file.read().partition("\n\n")[0]
    except OSError:
        return ""


@functools.cache
def cpu_capability() -> dict[str, Any]:
    """Return the architecture, the number of cores, and for x86-64 whether the processor has each instruction set."""
    info = dict(re.findall(r"^(.+?)\s*: (.*)$", _cpu_info(), re.MULTILINE))
    flags = set(info.get("flags", "").split())
    found: dict[str, Any] = {"architecture": platform.machine(), "num_logical_cores": os.cpu_count() or 1}
    if "model name" in info:
        found["cpu_name"] = info["model name"]
    if platform.machine() in ("x86_64", "AMD64"):
        pairs = (word.partition("=") for word in _SETS.split())
        found |= {name: (other or name) in flags for name, _, other in pairs}
    return found
