"""A network from a file under torchlite, PyTorch or ONNX Runtime, without gradients."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .context import Context

# Calls before the timing; torchlite optimizes from the second on. The first and the last of them are compared.
WARM_UPS = 6


def load(T: Any, path: str, kind: str, inputs: list[tuple[str, Any]], device: str, threads: int) -> Callable[[], Any]:
    """Return the call of a network with its inputs. ONNX Runtime computes on the CPU."""
    if T.__name__ == "onnxruntime":
        options = T.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        session, feed = T.InferenceSession(path, options, providers=["CPUExecutionProvider"]), dict(inputs)
        return lambda: session.run(None, feed)
    T.set_grad_enabled(False)
    if kind == "onnx":
        module = T.onnx.load(path).to(device)
    elif kind == "pt2":
        module = T.export.load(path).module().to(device)
    else:
        module = T.jit.load(path, map_location=device).eval()
    arguments = [
        value.item() if kind != "onnx" and value.ndim == 0 else T.from_numpy(value).to(device) for _, value in inputs
    ]
    return lambda: module(*arguments)


def measure_loading(
    context: Context, request: dict[str, Any], threads: int
) -> tuple[Callable[[], Any], dict[str, float]]:
    """Load a network and warm it up. Return its call, and {"load", "first"} in seconds; write its outputs."""
    import numpy as np

    with np.load(request["inputs"]) as arrays:
        inputs = [(name, arrays[f"arr_{place}"]) for place, name in enumerate(request["names"])]
    start = time.perf_counter()
    call = load(context.T, request["load"], request["kind"], inputs, context.device, threads)
    context.wait(call)
    loaded = time.perf_counter()
    first = last = call()
    context.wait(first)
    called = time.perf_counter()
    for _ in range(WARM_UPS - 1):
        last = call()
    np.savez(request["outputs"], *flatten(first), *flatten(last))
    return call, {"load": loaded - start, "first": called - loaded}


def flatten(value: Any) -> list[Any]:
    """Return the arrays of numbers in a result, in order."""
    import numpy as np

    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [array for part in value for array in flatten(part)]
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.double() if value.is_floating_point() else value).numpy()
    array = np.asarray(value)
    return [array] if array.dtype.kind in "biufc" else []


def describe_replays(T: Any) -> dict[str, Any]:
    """Return how many calls torchlite replayed in this process, and why others were not."""
    from importlib import import_module

    known = list(import_module(f"{T.__name__}._dynamo.compiled_function").COMPILED_FUNCTIONS)
    functions = [function for function in known if not function.is_part]
    reasons = dict.fromkeys(why for f in functions for why in (*f.reasons, f.postponed) if why)
    return {"replays": sum(function.replays for function in functions), "reasons": list(reasons)}
