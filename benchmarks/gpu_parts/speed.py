"""The bandwidth of a large copy on the device and, beside it, that of kernels that do little but read and write: bytes that must move over time."""
from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

from . import Options, Result, here, library, say

# Elements of an array: far more than any cache holds; and rows of 1024 of them.
ELEMENTS, QUICK_ELEMENTS, COLUMNS = 1 << 26, 1 << 14, 1024
REPEATS = 20


def milliseconds(torch: Any, device: str, call: Callable[[], Any], repeats: int) -> float:
    """The median time of a call on the device, between events; on the CPU the clock's."""
    for _ in range(3):
        call()
    kind = device.split(":")[0]
    if kind == "cpu":
        found = []
        for _ in range(repeats):
            begun = time.perf_counter()
            call()
            found.append((time.perf_counter() - begun) * 1e3)
        return statistics.median(found)
    module = getattr(torch, kind)
    module.synchronize()
    marks = [module.Event(enable_timing=True) for _ in range(repeats + 1)]
    marks[0].record()
    for mark in marks[1:]:
        call()
        mark.record()
    module.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in itertools.pairwise(marks))


def copy(torch: Any, device: str, elements: int, repeats: int) -> float:
    """Bytes a second of a copy of a float32 array, read and written."""
    source = torch.randn(elements, device=device)
    target = torch.empty_like(source)
    return 8 * elements / milliseconds(torch, device, lambda: target.copy_(source), repeats) * 1e3


def kernels(torch: Any, device: str, elements: int, dtype: Any):
    """(name, arrays' worth of bytes that must move, what starts the kernel), one at a time so that only its arrays are held."""
    F = torch.nn.functional
    shape = (elements // COLUMNS, COLUMNS)

    def made():
        return torch.randn(*shape, device=device).to(dtype)

    def backward(out: Any, x: Any) -> Callable:
        grad = made()
        return lambda: torch.autograd.grad(out, x, grad, retain_graph=True)

    weight, bias = torch.ones(COLUMNS, device=device, dtype=dtype), torch.zeros(COLUMNS, device=device, dtype=dtype)
    forward = {"softmax": lambda x: torch.softmax(x, 1), "layer_norm": lambda x: F.layer_norm(x, (COLUMNS,), weight, bias), "gelu": F.gelu}
    for name, function in forward.items():
        x = made()
        yield name, 2, lambda: function(x)
        x.requires_grad_()
        yield f"{name} backward", 3, backward(function(x), x)


def adam(torch: Any, device: str, elements: int) -> Callable:
    """A step of Adam, one parameter: reads it, its gradient and two states, and writes all but the gradient."""
    parameter = torch.nn.Parameter(torch.randn(elements, device=device))
    parameter.grad = torch.randn(elements, device=device)
    return torch.optim.Adam([parameter], lr=1e-3).step


def run(options: Options, result: Result) -> None:
    torch = library()
    elements, repeats = (QUICK_ELEMENTS, 3) if options.quick else (ELEMENTS, REPEATS)
    copies = {"torchlite": copy(torch, options.device, 4 * elements, repeats)}
    result.put(copies=copies, rows=[], failed=[], elements=elements)
    say(f"copy: {copies['torchlite'] / 1e9:.1f} GB/s")
    if options.kind == "cuda" and here("torch") and library("torch").cuda.is_available():
        oracle = library("torch")
        copies["torch"] = copy(oracle, options.device, 4 * elements, repeats)
        oracle.cuda.empty_cache()
        result.put(copies=copies)
        say(f"torch's copy: {copies['torch'] / 1e9:.1f} GB/s")
    best = max(copies.values())

    def measure(name: str, kind: str, arrays: int, size: int, call: Callable) -> None:
        try:
            time_taken = milliseconds(torch, options.device, call, repeats)
        except Exception as error:
            result.add("failed", f"{name} {kind}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            say(f"FAILED {result.found['failed'][-1]}")
            return
        rate = arrays * size * elements / time_taken * 1e3
        result.add("rows", {"name": name, "dtype": kind, "ms": time_taken, "bytes/s": rate, "share": rate / best})
        say(f"{name} {kind}: {time_taken:.3f} ms, {rate / 1e9:.1f} GB/s, {100 * rate / best:.0f}% of the copy")

    for kind, size in (("float32", 4), ("bfloat16", 2)):
        found = kernels(torch, options.device, elements, getattr(torch, kind))
        while True:
            try:
                name, arrays, call = next(found)
            except StopIteration:
                break
            except Exception as error:
                result.add("failed", f"{kind}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
                say(f"FAILED {result.found['failed'][-1]}")
                break
            measure(name, kind, arrays, size, call)
            del call
            gc.collect()
    measure("Adam", "float32", 7, 4, adam(torch, options.device, elements))
