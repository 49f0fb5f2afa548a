"""Probe program for OpenCL drivers, which may crash: `python -P driver_probe.py FOLDER LIBRARY...`.

Prints a line of JSON for each device. FOLDER has the .icd files of the drivers, the libraries are loaded before them;
without arguments the system's own drivers are probed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

_SOURCE = """
__kernel void trial(__global const float* x, __global float* y, __local float* block) {
    const int i = get_global_id(0), l = get_local_id(0);
    block[l] = exp(x[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    y[i] = block[get_local_size(0) - 1 - l] + vload4(i / 4, x).y;
}
"""


@contextlib.contextmanager
def set_environment_variables(**values: str) -> Iterator[None]:
    """Set environment variables inside a block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def list_platforms(folder: str | None, libraries: Sequence[str]) -> list[Any]:
    """Return the platforms of the folder's .icd files. The loader reads them once per process."""
    for library in libraries:
        # Local: their exp and sin are for the driver, and must not interpose the C library's in libraries loaded later.
        ctypes.CDLL(library, mode=ctypes.RTLD_LOCAL)
    import pyopencl as cl

    # PyOpenCL's own loader also searches its home (the driver of pocl-binary-distribution is there).
    with (
        set_environment_variables(OCL_ICD_VENDORS=folder, PYOPENCL_HOME=folder) if folder else contextlib.nullcontext()
    ):
        try:
            return cl.get_platforms()
        except cl.Error:  # none
            return []


def iter_devices(found: Sequence[Any]) -> Iterator[tuple[dict, Any]]:
    """Yield each device of some platforms with its identifying properties."""
    import pyopencl as cl

    met: dict[tuple, int] = {}
    for platform in found:
        try:
            inside = platform.get_devices()
        except cl.Error:  # a driver without a device
            continue
        for device in inside:
            key = platform.name.strip(), platform.version.strip(), device.name.strip()
            met[key] = met.get(key, -1) + 1
            kind = (
                "gpu"
                if device.type & cl.device_type.GPU
                else "accelerator"
                if device.type & cl.device_type.ACCELERATOR
                else "cpu"
            )
            yield {"platform": key[0], "version": key[1], "name": key[2], "nth": met[key], "kind": kind}, device


def get_kernel(program: Any, name: str) -> Any:
    """Return a kernel of a built program.

    PyOpenCL keeps generated source in a database in the user's home; if that is not writable, this does without it.
    """
    import pyopencl as cl

    first = "pyopencl.invoker" not in sys.modules  # its import opens the database
    hook = sys.unraisablehook
    if first:
        sys.unraisablehook = lambda _: None  # half an object that cannot be finished either
    try:
        return cl.Kernel(program, name)
    except cl.Error:
        raise
    except Exception:  # PyOpenCL's cache of invokers fails in any way: once more without it
        if cl._PYOPENCL_NO_CACHE:
            raise
    finally:
        if first:
            sys.unraisablehook = hook
    cl._PYOPENCL_NO_CACHE = True
    return cl.Kernel(program, name)


def run_probe(device: Any) -> None:
    """Build and run a kernel. RuntimeError if its result is wrong."""
    import numpy as np
    import pyopencl as cl

    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    x = np.linspace(0, 1, 64, dtype=np.float32)
    source = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    target = cl.Buffer(context, cl.mem_flags.READ_WRITE, x.nbytes)
    program: Any = cl.Program(context, _SOURCE)
    work: Any = get_kernel(program.build(cache_dir=False), "trial")
    work(queue, (64,), (16,), source, target, cl.LocalMemory(64))
    found = np.empty_like(x)
    cl.enqueue_copy(queue, found, target)
    expected = np.exp(x).reshape(4, 16)[:, ::-1].ravel() + np.repeat(x[1::4], 4)
    if not np.allclose(found, expected, rtol=1e-4):
        raise RuntimeError("a trial kernel gives wrong results")


def main(arguments: list[str]) -> None:
    import warnings

    warnings.simplefilter("ignore")  # compiler output is not a failure
    try:
        import pyopencl  # noqa: F401
    except Exception as problem:  # a broken installation raises anything: the probe reports it
        print(f"no PyOpenCL: {type(problem).__name__}: {problem}")
        return
    for record, device in iter_devices(list_platforms(arguments[0] if arguments else None, arguments[1:])):
        try:
            run_probe(device)
            error = ""
        except Exception as problem:  # a broken driver raises anything: the probe reports it
            error = str(problem).strip().splitlines()[0][:300] if str(problem).strip() else type(problem).__name__
        print("device " + json.dumps({**record, "error": error}), flush=True)
    print("done", flush=True)
    sys.stdout.flush()
    os._exit(0)  # some drivers crash at process exit, after correct work


if __name__ == "__main__":
    main(sys.argv[1:])
