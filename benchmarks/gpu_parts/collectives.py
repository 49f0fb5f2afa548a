"""The collectives of `torch.distributed` with one rank on the device: over NCCL where it is a CUDA device, else over
host memory.
"""

from __future__ import annotations

from typing import Any

from . import Options, Result, library, say
from .bandwidth import milliseconds

MEBIBYTE = 1 << 20


def calls(torch: Any, dist: Any, x: Any) -> dict[str, Any]:
    """By name a call that gives a tensor, which one rank must find as `x` was."""
    out = torch.empty_like(x)
    one = lambda call: lambda: call() or x
    return {
        "all_reduce": one(lambda: dist.all_reduce(x)),
        "broadcast": one(lambda: dist.broadcast(x, 0)),
        "reduce": one(lambda: dist.reduce(x, 0)),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(out, x) or out,
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(out, x) or out,
        "all_to_all_single": lambda: dist.all_to_all_single(out, x) or out,
        "gather": lambda: dist.gather(x, [out], 0) or out,
        "scatter": lambda: dist.scatter(out, [x], 0) or out,
        "barrier": one(dist.barrier),
    }


def run(options: Options, result: Result) -> None:
    torch = library()
    import torchlite.distributed as dist

    backend = "nccl" if options.kind == "cuda" and dist.is_nccl_available() else "gloo"
    result.put(rows=[], failed=[], backend=backend)
    if options.kind == "cuda" and backend != "nccl":
        result.put(note="NCCL is not there: pip install nvidia-nccl-cu12")
    dist.init_process_group(backend, rank=0, world_size=1)
    x = torch.arange(256.0 if options.quick else MEBIBYTE * 16.0, device=options.device)
    wanted = x.cpu()
    for name, call in calls(torch, dist, x).items():
        try:
            found = call().cpu()
            assert torch.equal(found, wanted), f"{name} changed what one rank has"
            row = {"name": name, "ms": milliseconds(torch, options.device, call, 3 if options.quick else 20)}
        except Exception as error:
            result.add("failed", f"{name}: {type(error).__name__}: {error}")
            say(f"FAILED {name}: {error}")
            continue
        result.add("rows", row)
        say(f"{name}: {row['ms']:.3f} ms")
    dist.destroy_process_group()
