"""Fused kernels on the device against the composites of the same records, run on the device in double precision from
the same (rounded) inputs.
"""

from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
import os
import time
from typing import Any

import numpy as np

from . import Options, Result, library, plain_environment, say

# The largest difference, relative to an entry and the root mean square of all.
LIMITS = {"float64": 1e-9, "float32": 1e-4, "float16": 5e-3, "bfloat16": 4e-2}


class Checked(Exception):
    """A kernel's result is not the composite's."""


class Device:
    """Runs ops twice: the device's kernel in one precision, the composite in double precision."""

    def __init__(self, device: str, dtype: str):
        import torchlite._dispatch as dispatch

        torch = library()
        self.torch, self.device, self.dtype, self.registry = torch, device, dtype, dispatch.REGISTRY
        self.table = dispatch.table_of(torch.device(device))
        self.rng = np.random.default_rng(0)
        self.worst = 0.0

    def put(self, array: np.ndarray, dtype: str = "") -> Any:
        """A raw array on the device."""
        return torch_to(self.torch, array, dtype or self.dtype, self.device)._tl_array

    def numpy(self, raw: Any) -> np.ndarray:
        return np.asarray(self.table.to_numpy(raw))

    def exact(self, operand: Any) -> Any:
        """An operand in double precision, with the same values."""
        if isinstance(operand, (list, tuple)):
            return type(operand)(self.exact(item) for item in operand)
        if not isinstance(operand, self.table.array):
            return operand
        values = self.numpy(operand)
        return self.put(values.astype(np.float64), "float64") if values.dtype.kind not in "iub" else operand

    def normal(self, *shape: int, scale: float = 2.0) -> Any:
        return self.put(self.rng.standard_normal(shape) * scale)

    def is_fused(self, name: str) -> bool:
        """Whether the device has a kernel of its own for an op."""
        kernel = getattr(self.table, name)
        return not (isinstance(kernel, functools.partial) and kernel.func is self.registry[name].composite)

    def compare(self, name: str, mine: Any, want: Any, limit: float) -> None:
        found, right = (self.numpy(raw).astype(np.float64) for raw in (mine, want))
        if found.shape != right.shape:
            raise Checked(f"{name}: the shape is {found.shape}, the composite's {right.shape}")
        if not found.size:
            return
        scale = max(math.sqrt(float(np.mean(np.square(np.where(np.isfinite(right), right, 0))))), 1e-30)
        same = (found == right) | (np.isnan(found) & np.isnan(right))
        with np.errstate(invalid="ignore"):
            error = np.where(same, 0, np.abs(found - right) / (np.abs(right) + scale))
        worst = float(np.max(np.where(np.isnan(error), np.inf, error)))
        self.worst = max(self.worst, worst)
        if not worst <= limit:
            at = np.unravel_index(int(np.argmax(error)), error.shape)
            raise Checked(
                f"{name}: {found[at]:.6g} at {tuple(int(i) for i in at)}, the composite gives {right[at]:.6g} (off "
                f"by {worst:.2g}, allowed {limit:.2g})"
            )

    def agree(self, name: str, *operands: Any, looser: float = 1) -> tuple:
        """The kernel's results, compared with the composite's."""
        record = self.registry[name]
        positional = sum(not p.kwonly for p in record.params)
        keywords = {
            p.name: operand for p, operand in zip(record.params[positional:], operands[positional:], strict=False)
        }
        mine = getattr(self.table, name)(*operands[:positional], **keywords)
        want = record.composite(self.table, *self.exact(operands))
        mine, want = (r if isinstance(r, tuple) else (r,) for r in (mine, want))
        for n, (a, b) in enumerate(zip(mine, want, strict=True)):
            if a is not None and b is not None:
                self.compare(f"{name}, result {n}", a, b, LIMITS[self.dtype] * looser)
        return mine


def torch_to(torch: Any, array: np.ndarray, dtype: str, device: str) -> Any:
    return torch.from_numpy(np.ascontiguousarray(array)).to(getattr(torch, dtype)).to(device)


def softmax(d: Device, shape: tuple[int, ...]) -> None:
    for dim in sorted({0, len(shape) - 1}):
        x, grad = d.normal(*shape), d.normal(*shape)
        for name in ("softmax", "log_softmax"):
            (out,) = d.agree(f"_{name}", x, dim)
            d.agree(f"_{name}_backward", grad, out, dim)


def layer_norm(d: Device, shape: tuple[int, ...]) -> None:
    for affine in (True, False):
        x, grad = d.normal(*shape), d.normal(*shape)
        weight, bias = (d.normal(shape[-1]), d.normal(shape[-1])) if affine else (None, None)
        _, mean, rstd = d.agree("_layer_norm", x, weight, bias, 1, 1e-5)
        d.agree("_layer_norm_backward", grad, x, weight, mean, rstd, 1, 1e-5, (True, affine, affine))
        _, rstd = d.agree("_rms_norm", x, weight, 1, 1e-5)
        d.agree("_rms_norm_backward", grad, x, weight, rstd, 1, 1e-5, (True, affine))


def batch_norm(d: Device, shape: tuple[int, ...]) -> None:
    for affine in (True, False):
        x, grad = d.normal(*shape), d.normal(*shape)
        weight, bias = (d.normal(shape[1]), d.normal(shape[1])) if affine else (None, None)
        _, mean, var = d.agree("_batch_norm_train", x, weight, bias, 1e-5)
        d.agree("_batch_norm_backward", grad, x, weight, mean, var, 1e-5, (True, affine, affine))
        d.agree("_channel_affine", x, d.normal(shape[1]), d.normal(shape[1]))


def cross_entropy(d: Device, shape: tuple[int, ...]) -> None:
    for reduction, weighted in (("mean", True), ("sum", False), ("none", True)):
        x = d.normal(*shape)
        target = d.put(d.rng.integers(0, shape[1], shape[:1] + shape[2:]), "int64")
        weight = d.put(d.rng.random(shape[1]) + 0.5) if weighted else None
        loss, lse = d.agree("_cross_entropy", x, target, weight, 1, reduction)
        d.agree("_cross_entropy_backward", d.normal(*loss.shape), x, target, weight, lse, 1, reduction)


def activations(d: Device, shape: tuple[int, ...]) -> None:
    x, grad = d.normal(*shape), d.normal(*shape)
    for approximate in ("none", "tanh"):
        d.agree("gelu", x, approximate)
        d.agree("_gelu_backward", grad, x, approximate)
    d.agree("silu", x)
    d.agree("_silu_backward", grad, x)


def attention(d: Device, sizes: tuple[int, ...]) -> None:
    batch, heads, rows, columns, features = sizes
    for mask in ("", "causal", "bool"):
        query, key, value, grad = (
            d.normal(batch, heads, n, features, scale=1.0) for n in (rows, columns, columns, rows)
        )
        given = d.put(d.rng.random((rows, columns)) > 0.3, "bool") if mask == "bool" else None
        scale, causal = 1 / math.sqrt(features), mask == "causal"
        out, lse = d.table._sdpa(query, key, value, given, causal, scale)
        d.compare(
            f"_sdpa {mask}",
            out,
            d.registry["_sdpa"].composite(d.table, *d.exact((query, key, value, given)), causal, scale)[0],
            LIMITS[d.dtype],
        )
        # Twice as much: the kernels take the rounded result for what the composite sums anew.
        d.agree("_sdpa_backward", grad, query, key, value, given, out, lse, causal, scale, (True, True, True), looser=2)


STEPS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    (
        "_fused_adam", ("exp_avg", "exp_avg_sq"),
        {
            "lr": 1e-2, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.1, "decoupled": False,
            "maximize": False,
        },
    ),
    (
        "_fused_adam",
        ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"),
        {
            "lr": 1e-2, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.1, "decoupled": True,
            "maximize": True,
        },
    ),
    (
        "_fused_sgd", ("momentum_buffer",),
        {"lr": 1e-2, "momentum": 0.9, "dampening": 0.1, "weight_decay": 1e-2, "nesterov": True, "maximize": False},
    ),
    (
        "_fused_rmsprop",
        ("square_avg", "grad_avg", "momentum_buffer"),
        {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "momentum": 0.9, "weight_decay": 1e-2, "maximize": False},
    ),
    ("_fused_adagrad", ("sum",), {"lr": 1e-2, "lr_decay": 0.1, "eps": 1e-10, "weight_decay": 1e-2, "maximize": False}),
)  # fmt: skip


def optimizers(d: Device, shape: tuple[int, ...]) -> None:
    """Three steps of each fused optimizer, parameters and states in place."""
    sizes = [shape, (7,), (3, 5), (130,)]
    total = sum(math.prod(s) for s in sizes)
    for name, states, options in STEPS:
        record = d.registry[name]
        mine = {
            "params": [d.put(d.rng.standard_normal(s)) for s in sizes],
            "cache": {},
            **{state: d.put(np.zeros(total)) for state in states},
        }
        exact = {key: d.exact(value) for key, value in mine.items()} | {"cache": {}}
        for step in (1, 2, 3):
            grads = [d.put(d.rng.standard_normal(s)) for s in sizes]
            given = {**options, "step": step, "first": step == 1}
            for run, own in (
                (getattr(d.table, name), {**mine, "grads": grads}),
                (functools.partial(record.composite, d.table), {**exact, "grads": d.exact(grads)}),
            ):
                run(*[(own | given).get(p.name) for p in record.params])  # None: a state or an option that is not used
        for a, b in zip(
            [*mine["params"], *[mine[state] for state in states]],
            [*exact["params"], *[exact[state] for state in states]],
            strict=True,
        ):
            d.compare(name, a, b, LIMITS[d.dtype] * 10)


def dropout(d: Device, shape: tuple[int, ...]) -> None:
    """Random, so no composite: what is kept is the input scaled, about as much as asked for, and the gradient is that
    of what was kept.
    """
    torch, p = d.torch, 0.3
    x = torch_to(torch, d.rng.random(shape) + 0.5, d.dtype, d.device).requires_grad_()
    results = []
    for _ in range(2):
        torch.manual_seed(1)
        out = torch.nn.functional.dropout(x, p)
        out.backward(torch.ones_like(out))
        results.append([t.detach().cpu().to(torch.float64).numpy() for t in (out, x.grad)])
        x.grad = None
    (out, grad), again = results
    if not np.array_equal(out, again[0]):
        raise Checked("dropout: one seed gave two results")
    kept = out != 0
    values = x.detach().cpu().to(torch.float64).numpy()
    for name, mine, want in (
        ("dropout", out, np.where(kept, values / (1 - p), 0)),
        ("its gradient", grad, np.where(kept, 1 / (1 - p), 0)),
    ):
        error = float(np.max(np.abs(mine - want)))
        d.worst = max(d.worst, error)
        if error > 2 * LIMITS[d.dtype]:
            raise Checked(f"{name}: off by {error:.2g}")
    share, allowed = float(np.mean(kept)), 6 * math.sqrt(p * (1 - p) / kept.size)
    if abs(share - (1 - p)) > allowed:
        raise Checked(f"dropout: {share:.4f} of the entries were kept, {1 - p} asked for")


FLOATS = ("float32", "float16", "bfloat16", "float64")
# What is checked, the ops that a device must have kernels for (else there is nothing to compare), sizes, those of a
# quick run, dtypes.
FAMILIES: tuple[tuple[Any, tuple[str, ...], tuple, tuple, tuple[str, ...]], ...] = (
    (
        softmax,
        ("_softmax", "_log_softmax", "_softmax_backward"),
        ((1000, 1000), (64, 50257), (3, 70001), (8, 8, 128, 128), (5, 1, 17)),
        ((7, 33),), FLOATS,
    ),
    (
        layer_norm, ("_layer_norm", "_layer_norm_backward"),
        ((4096, 1024), (33, 8, 768), (5, 12289), (300, 3)),
        ((7, 33),), FLOATS,
    ),
    (
        batch_norm,
        ("_batch_norm_train", "_batch_norm_backward"),
        ((64, 32, 16, 16), (4, 256, 7, 7), (1000, 10)),
        ((5, 3, 4, 4),), FLOATS,
    ),
    (
        cross_entropy,
        ("_cross_entropy", "_cross_entropy_backward"),
        ((512, 1000), (64, 50257), (8, 21, 33, 35)),
        ((9, 5),), FLOATS,
    ),
    (activations, ("gelu", "_gelu_backward"), ((1024, 1024), (3, 5, 7)), ((5, 7),), FLOATS),
    (
        attention, ("_sdpa", "_sdpa_backward"),
        (
            (2, 4, 512, 512, 64), (1, 2, 129, 257, 32), (2, 3, 100, 100, 128), (1, 2, 77, 33, 96), (1, 1, 64, 64, 40),
            (1, 2, 50, 50, 256),
        ),
        ((1, 2, 9, 9, 16),), FLOATS,
    ),
    (optimizers, ("_fused_adam", "_fused_sgd"), ((1000, 1000), (33, 65)), ((4, 9),), ("float32", "float64")),
    (dropout, (), ((1024, 1024), (3, 333)), ((40, 50),), FLOATS),
)  # fmt: skip


def checked(options: Options, number: int, dtype: str, size: tuple[int, ...]) -> dict[str, Any]:
    """A family's kernels in one dtype and size: a row of the table, or why there is none, and what went wrong."""
    begun = time.monotonic()
    family, needed, *_ = FAMILIES[number]
    name = family.__name__
    d = Device(options.device, dtype)
    lacking = [op for op in needed if not d.is_fused(op)]
    if lacking:
        return {"note": f"{name}: {options.device} has no kernel of its own for {', '.join(lacking)}"}
    trouble = ""
    try:
        family(d, size)
    except Checked as error:
        trouble = str(error)
    except Exception as error:
        trouble = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    row = {
        "name": name,
        "dtype": dtype,
        "size": list(size),
        "worst": d.worst if math.isfinite(d.worst) else None,
        "seconds": round(time.monotonic() - begun, 2),
        "ok": not trouble,
    }
    return {"row": row, "failed": trouble and f"{name} {dtype} {size}: {trouble}"}


def wanted(options: Options) -> list[tuple[int, str, tuple[int, ...]]]:
    """The number of a family, dtype and size of each check."""
    found = []
    for number, (_, _, sizes, quick, dtypes) in enumerate(FAMILIES):
        chosen = (dtypes[:2], quick) if options.quick else (dtypes, sizes)
        found += [(number, dtype, size) for dtype, size in itertools.product(*chosen)]
    return found


def run(options: Options, result: Result) -> None:
    result.put(rows=[], failed=[], notes=[])
    checks = wanted(options)
    os.environ.update(plain_environment())
    # A process for each check: most of the time goes into compiling, and an error that loses the device loses one.
    workers = max(1, min(options.workers, len(checks)))
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        waiting = {check: pool.apply_async(checked, (options, *check)) for check in checks}
        while waiting and result.left(options) > 3:
            ready = [check for check, call in waiting.items() if call.ready()]
            for check in ready:
                _note(result, waiting.pop(check).get())
            time.sleep(0 if ready else 0.05)
        for number, dtype, size in waiting:
            name = FAMILIES[number][0].__name__
            result.add("failed", f"the time limit of {options.limit:.0f} s: {name} {dtype} {size} did not end")
            say(f"FAILED {result.found['failed'][-1]}")
    order = [(FAMILIES[number][0].__name__, dtype, list(size)) for number, dtype, size in checks]
    result.put(rows=sorted(result.found["rows"], key=lambda r: order.index((r["name"], r["dtype"], r["size"]))))
    for name in dict.fromkeys(row["name"] for row in result.found["rows"]):
        done = [row for row in result.found["rows"] if row["name"] == name]
        say(f"{name}: {sum(row['ok'] for row in done)} of {len(done)}")


def _note(result: Result, found: dict[str, Any]) -> None:
    """Keep what a check found."""
    if "note" in found:
        if found["note"] not in result.found["notes"]:
            result.add("notes", found["note"])
        return
    result.add("rows", found["row"])
    if found["failed"]:
        result.add("failed", found["failed"])
        say(f"FAILED {found['failed']}")
