"""The table of `convert --quantize`: size, time and error before and after."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections import Counter
from typing import Any

import torchlite as torch
from torchlite import Tensor

_WARM_UP, _CALLS = 6, 10


def file_bytes(path: str) -> int:
    """The size of a model's file, with the file of its weights beside it."""
    return sum(os.path.getsize(name) for name in (path, f"{path}.data") if os.path.exists(name))


def call_seconds(module: Any, given: list[Tensor]) -> float:
    """The median time of a call, after the calls in which programs are recorded."""
    found = []
    with torch.no_grad():
        for _ in range(_WARM_UP + _CALLS):
            begin = time.perf_counter()
            module(*given)
            found.append(time.perf_counter() - begin)
    return statistics.median(found[_WARM_UP:])


def measure_errors(expected: list[Any], found: list[Any]) -> dict[str, float]:
    """The largest difference of results, the difference's norm relative to theirs, and the least cosine."""
    largest, cosine, off, whole = 0.0, 1.0, 0.0, 0.0
    for want, got in zip(expected, found, strict=True):
        if not isinstance(want, Tensor) or not want.numel():
            continue
        a, b = want.detach().to(torch.float64).flatten(), got.detach().to(torch.float64).flatten()
        largest = max(largest, (a - b).abs().max().item())
        off, whole = off + ((a - b) ** 2).sum().item(), whole + (a**2).sum().item()
        norms = (a.norm() * b.norm()).item()
        cosine = min(cosine, (a @ b).item() / norms if norms else 1.0)
    return {"largest": largest, "relative": (off / whole) ** 0.5 if whole else off**0.5, "cosine": cosine}


def describe(
    source: str, target: str, bits: str, samples: int, layers: int, kept: Counter, sizes: tuple[int, int],
    seconds: tuple[float, float], errors: dict[str, float], as_json: bool,
) -> str:  # fmt: skip
    """Return the table, or the JSON."""
    if as_json:
        return json.dumps(
            {
                "source": source, "target": target, "quantize": bits, "samples": samples, "layers": layers,
                "left_in_float": dict(kept), "bytes": list(sizes), "seconds": list(seconds), "error": errors,
            }, indent=2,
        )  # fmt: skip
    how = f"{samples} samples" if samples else "ranges of each call" if bits == "int8" else "weights alone"
    lines = [
        f"{target}: {layers} layers in {bits}, {how}",
        f"{'':12}{'before':>12}{'after':>12}{'ratio':>8}",
        f"{'size':12}{sizes[0] / 1e3:>9.1f} kB{sizes[1] / 1e3:>9.1f} kB{sizes[1] / sizes[0]:>8.2f}",
        f"{'time a call':12}{seconds[0] * 1e3:>9.3f} ms{seconds[1] * 1e3:>9.3f} ms{seconds[1] / seconds[0]:>8.2f}",
        f"{'error':12}largest {errors['largest']:.3g}, relative {errors['relative']:.3g}, "
        f"cosine {errors['cosine']:.6f}",
    ]
    if kept:
        lines.append("left in float32: " + ", ".join(f"{name} ({count})" for name, count in sorted(kept.items())))
    return "\n".join(lines)
