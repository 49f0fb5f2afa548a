"""The bandwidth of a large copy on the device and, beside it, that of kernels that do little but read and write;
products and attention beside torch's.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

from . import Options, Result, library, say
from .workload_ratios import reference_of

# Elements of an array: far more than any cache holds; and rows of 1024 of them.
ELEMENTS, QUICK_ELEMENTS, COLUMNS = 1 << 27, 1 << 14, 1024
FORWARD = ("softmax", "layer_norm", "gelu")
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


def kernel(torch: Any, device: str, elements: int, dtype: Any, name: str) -> Callable:
    """What starts a kernel: a forward one, or that of its gradient."""
    F = torch.nn.functional
    rows = elements // COLUMNS

    def made() -> Any:
        return torch.randn(rows, COLUMNS, device=device).to(dtype)

    if name == "Adam":  # reads a parameter, its gradient and two states, and writes all but the gradient
        parameter = torch.nn.Parameter(made())
        parameter.grad = made()
        return torch.optim.Adam([parameter], lr=1e-3).step
    weight, bias = torch.ones(COLUMNS, device=device, dtype=dtype), torch.zeros(COLUMNS, device=device, dtype=dtype)
    function = {
        "softmax": lambda x: torch.softmax(x, 1),
        "layer_norm": lambda x: F.layer_norm(x, (COLUMNS,), weight, bias),
        "gelu": F.gelu,
    }[name.split()[0]]
    x = made()
    if name in FORWARD:
        return lambda: function(x)
    x.requires_grad_()
    out, grad = function(x), made()
    return lambda: torch.autograd.grad(out, x, grad, retain_graph=True)


# (name, dtype, bytes of an element, arrays that must be read or written)
KERNELS = [
    (name + way, dtype, size, arrays)
    for dtype, size in (("float32", 4), ("bfloat16", 2))
    for name in FORWARD
    for way, arrays in (("", 2), (" backward", 3))
] + [("Adam", "float32", 4, 7)]


def products(torch: Any, device: str, quick: bool) -> dict[str, Callable[[], Callable]]:
    """{name: what makes what starts it} of work that is more arithmetic than memory, which torch
    does with libraries.
    """
    n, (batch, heads, length, features) = (64, (1, 2, 32, 32)) if quick else (4096, (4, 16, 2048, 64))

    def matmul(dtype: Any) -> Callable:
        a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
        return lambda: a @ b

    def attention(dtype: Any, backward: bool) -> Callable:
        query, key, value = (
            torch.randn(batch, heads, length, features, device=device).to(dtype).requires_grad_(backward)
            for _ in range(3)
        )

        def forward() -> Any:
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)

        if not backward:
            return forward
        out = forward()
        grad = torch.randn(batch, heads, length, features, device=device).to(dtype)
        return lambda: torch.autograd.grad(out, (query, key, value), grad, retain_graph=True)

    def sparse() -> Callable:
        rows, per = (100, 4) if quick else (100_000, 32)
        starts = torch.arange(0, rows * per + 1, per)
        columns = (torch.arange(rows * per) * 7919 % rows).reshape(rows, per).sort(1).values.reshape(-1)
        matrix = torch.sparse_csr_tensor(starts, columns, torch.randn(rows * per), (rows, rows)).to(device)
        dense = torch.randn(rows, 64, device=device)
        return lambda: torch.sparse.mm(matrix, dense)

    found: dict[str, Callable[[], Callable]] = {
        f"matmul {n} {name}": lambda name=name: matmul(getattr(torch, name)) for name in ("float32", "bfloat16")
    }
    for name in ("float32", "bfloat16"):
        for way, backward in (("", False), (" backward", True)):
            found[f"causal attention {batch}x{heads}x{length}x{features} {name}{way}"] = (
                lambda name=name, backward=backward: attention(getattr(torch, name), backward)
            )
    return {**found, "sparse matrix, 32 a row, times 64 columns": sparse}


def run(options: Options, result: Result) -> None:
    torch, oracle = library(), None
    elements, repeats = (QUICK_ELEMENTS, 3) if options.quick else (ELEMENTS, REPEATS)
    copies = {"torchlite": copy(torch, options.device, 2 * elements, repeats)}
    result.put(copies=copies, rows=[], products=[], failed=[], elements=elements)
    say(f"copy: {copies['torchlite'] / 1e9:.1f} GB/s")
    if reference_of(options).startswith("cuda"):
        oracle = library("torch")
        copies["torch"] = copy(oracle, options.device, 2 * elements, repeats)
        oracle.cuda.empty_cache()
        result.put(copies=copies)
        say(f"torch's copy: {copies['torch'] / 1e9:.1f} GB/s")
    best = max(copies.values())

    def measured(name: str, make: Callable[[], Callable]) -> float | None:
        """Milliseconds; None where it fails, which is noted."""
        gc.collect()  # the arrays of the one before
        try:
            return milliseconds(torch, options.device, make(), repeats)
        except Exception as error:
            result.add("failed", f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            say(f"FAILED {result.found['failed'][-1]}")
            return None

    for name, dtype, size, arrays in KERNELS:
        taken = measured(
            f"{name} {dtype}",
            lambda name=name, dtype=dtype: kernel(torch, options.device, elements, getattr(torch, dtype), name),
        )
        if taken is not None:
            rate = arrays * size * elements / taken * 1e3
            result.add("rows", {"name": name, "dtype": dtype, "ms": taken, "bytes/s": rate, "share": rate / best})
            say(f"{name} {dtype}: {taken:.3f} ms, {rate / 1e9:.1f} GB/s, {100 * rate / best:.0f}% of the copy")
    theirs = products(oracle, options.device, options.quick) if oracle else {}
    for name, make in products(torch, options.device, options.quick).items():
        mine = measured(name, make)
        try:
            other = milliseconds(oracle, options.device, theirs[name](), repeats) if oracle else None
        except Exception as error:
            other = None
            say(f"torch, {name}: {error}")
        result.add("products", {"name": name, "torchlite": mine, "torch": other})
        say(f"{name}: torchlite {mine} ms, torch {other} ms")
