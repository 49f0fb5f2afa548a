"""torchlite against tinygrad on one and the same OpenCL device in one run. Prints the times and how many times faster
torchlite is.

usage: python benchmarks/against_tinygrad.py [--rounds 5]      (needs tinygrad and the extra `opencl`)

tinygrad takes the first driver that the system's loader shows it, so the loader is shown that of torchlite's first
device alone (`TORCHLITE_OPENCL_PLATFORM` chooses it). torchlite runs eagerly; tinygrad does once as it is written and
once under TinyJit, warmed up. The three take turns of ten calls.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torchlite_opencl import drivers

ROWS, COLUMNS = 4096, 1024


def show_one_driver() -> str:
    """Make the OpenCL loader see only the driver of torchlite's device 0; returns the platform's name."""
    device = drivers.devices()[0]
    intel = "intel" in device.platform.name.lower()
    driver = next(d for d in drivers.installed() if ("intel" in d.library) == intel)
    for library in driver.before:
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    folder = Path(tempfile.mkdtemp(prefix="one-driver-"))
    (folder / "one.icd").write_text(driver.library + "\n")
    os.environ.update(OCL_ICD_VENDORS=str(folder), DEV="CL", TRAINING="1")
    return device.platform.name


def with_torchlite() -> tuple[dict[str, Callable], Callable]:
    """The workloads on torchlite, and a function that waits for the device."""
    import torchlite as torch

    nn, F = torch.nn, torch.nn.functional
    torch.set_default_device("opencl")
    x, y = torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    data, target = torch.randn(32, 64), torch.randint(0, 10, (32,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(data), target).backward()
        optimizer.step()

    return {
        "softmax": lambda: x.softmax(1),
        "chain": lambda: ((x * 2 + y).tanh() * x - y).relu(),
        "mlp step": step,
    }, torch.opencl.synchronize


def with_tinygrad() -> tuple[dict[str, Callable], dict[str, Callable], Callable]:
    """The same on tinygrad, without and with TinyJit."""
    from tinygrad import Device, Tensor, TinyJit, nn

    class Model:
        def __init__(self):
            self.layers = [nn.Linear(64, 64), Tensor.relu, nn.Linear(64, 64), Tensor.relu, nn.Linear(64, 10)]

        def __call__(self, x):
            return x.sequential(self.layers)

    x, y = Tensor.randn(ROWS, COLUMNS).realize(), Tensor.randn(ROWS, COLUMNS).realize()
    model, data, target = Model(), Tensor.randn(32, 64).realize(), Tensor.randint(32, high=10).realize()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = model(data).sparse_categorical_crossentropy(target).backward()
        return loss.realize(*optimizer.schedule_step())

    def softmax(x):
        return x.softmax(1).realize()

    def chain(x, y):
        return ((x * 2 + y).tanh() * x - y).relu().realize()

    fast_softmax, fast_chain, fast_step = TinyJit(softmax), TinyJit(chain), TinyJit(step)
    print(f"tinygrad's device: {Device.DEFAULT}, {Device[Device.DEFAULT].device_name}")
    rows = {"softmax": lambda: softmax(x), "chain": lambda: chain(x, y), "mlp step": step}
    jitted = {"softmax": lambda: fast_softmax(x), "chain": lambda: fast_chain(x, y), "mlp step": fast_step}
    return rows, jitted, Device[Device.DEFAULT].synchronize


def milliseconds(function: Callable, wait: Callable) -> float:
    """The median time of ten calls, the device's work included."""
    times = []
    for _ in range(10):
        start = time.perf_counter()
        function()
        wait()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(f"torchlite's device: {show_one_driver()}")
    mine, wait = with_torchlite()
    plain, jitted, wait_theirs = with_tinygrad()
    for name, function in mine.items():
        runs = ((function, wait), (plain[name], wait_theirs), (jitted[name], wait_theirs))
        times = [[milliseconds(*run) for run in runs] for _ in range(rounds + 1)][1:]
        ours, other, fast = (statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"{name:10} torchlite {ours:8.3f} ms   tinygrad {other:8.3f} ms ({other / ours:.1f} times)   with "
            f"TinyJit {fast:8.3f} ms ({fast / ours:.1f} times)",
            flush=True,
        )


if __name__ == "__main__":
    main()
