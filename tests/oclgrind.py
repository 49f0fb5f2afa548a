"""Runs OpenCL kernels at small sizes under Oclgrind, a simulator that sees data races, accesses out of bounds and uses of values that were never set.

    python -m tests.oclgrind [op ...]

The samples of the op table (tests/ops/rows) are run forward and backward, with the launches that CPUs get and with those that GPUs get. Fails on any report, on a
crash, and when a kernel of `torchlite_kernels` was not run. Oclgrind is Debian's package `oclgrind`.
"""
from __future__ import annotations

import os
import pkgutil
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

DRIVERS = [Path(p) for p in ("/usr/lib/oclgrind/liboclgrind-rt-icd.so", "/usr/local/lib/liboclgrind-rt-icd.so")]
LAYOUTS = ("cpu", "gpu")
# Families (files of tests/ops/rows) and ops with matrix products: these compute columns past the edge of a panel from memory that was never set and drop them, and
# Oclgrind's checker of unset values takes itself down on some of their vector instructions. Races and bounds are looked for there too.
WITH_PRODUCTS = ("affine_grid", "affine_grid_generator", "attention", "conv", "linalg", "matmul", "recurrent",
                 "corrcoef", "cov", "cdist", "bilinear", "linear", "linear_cross_entropy", "einsum", "tensordot")
# Kernels that convert on loading and storing: these samples run in single and half precision as well.
CONVERTED = ("softmax", "log_softmax", "layer_norm", "rms_norm", "batch_norm", "cross_entropy", "embedding", "gelu", "scaled_dot_product_attention")


def _halves() -> str:
    """`lo_half(v)` and `hi_half(v)` for vectors, element by element: Oclgrind 21.10 takes what `v.lo` and `v.hi` give for unset."""
    text = []
    for scalar in ("float", "double", "int", "uint"):
        for name, first in (("lo", 0), ("hi", 1)):
            for n in (1, 2, 4, 8):
                half = scalar + (str(n) if n > 1 else "")
                parts = f"return v.s{first};" if n == 1 else f"{half} r; " + " ".join(f"r.s{k:x} = v.s{k + first * n:x};" for k in range(n)) + " return r;"
                text.append(f"{half} __attribute__((overloadable)) {name}_half({scalar}{2 * n} v) {{ {parts} }}")
    return "\n".join(text) + "\n"


def halved(text: str) -> str:
    """A program whose vectors are halved by functions."""
    changed = re.sub(r"\b(\w+)\.(lo|hi)\b", r"\2_half(\1)", text)
    return text if changed == text else _halves() + changed


def shipped() -> set[str]:
    """The names of the kernels in the texts of torchlite_kernels."""
    import torchlite_kernels
    texts = [Path(torchlite_kernels.__path__[0], f"{info.name}.py").read_text() for info in pkgutil.iter_modules(torchlite_kernels.__path__)]
    return {name for text in texts for name in re.findall(r"KERNEL void (\w+)\(", text)}


def use_simulator(layout: str, built: set[str]) -> None:
    """Make Oclgrind's device the only one of the backend, with the launches of a layout; `built` gets the names of the kernels that are built."""
    import pyopencl as cl

    import torchlite as torch
    from torchlite_opencl import drivers
    from torchlite_opencl.backend import backend
    from torchlite_opencl.runtime import Device
    simulated = [d for p in cl.get_platforms() if p.name == "Oclgrind" for d in p.get_devices()]
    drivers.devices = lambda: simulated  # type: ignore[assignment]
    drivers.why_not = lambda: ""  # type: ignore[attr-defined]
    build, function = Device.build, Device._function

    def noted(self, key, source, name, *rest):
        built.add(name)
        return function(self, key, source, name, *rest)

    Device.build = lambda self, text: build(self, halved(text))  # type: ignore[method-assign]
    Device._function = noted  # type: ignore[method-assign]
    device = backend.device(0)
    device.is_cpu = layout == "cpu"
    device.width = 16 if device.is_cpu else 4
    assert torch.ones(2, device="opencl").sum().item() == 2


def run_sample(row, index: int, dtype: str) -> None:
    """One sample, forward and, where it has derivatives, backward."""
    import torchlite as torch

    from .ops.table import leaves, to_tensors

    def in_type(tree):
        if isinstance(tree, (list, tuple)):
            return type(tree)(map(in_type, tree))
        return tree.astype(dtype) if getattr(getattr(tree, "dtype", None), "kind", "") == "f" else tree

    args, kwargs = row.values(index)
    if dtype:
        args, kwargs = in_type(args), {k: in_type(v) for k, v in kwargs.items()}
    args, kwargs = to_tensors((args, kwargs), "opencl", requires_grad=row.grad)
    torch.manual_seed(0)
    results = [r for r in leaves(row.function()(*args, **kwargs)) if isinstance(r, torch.Tensor)]
    for result in results:
        if result.requires_grad:
            result.backward(torch.ones_like(result), retain_graph=True)
    for result in results:
        result.cpu()


def child(layout: str, with_products: bool, names: list[str], folder: Path) -> None:
    """Run the samples of ops, from the one after that in which the last process ended; what happens goes to files in `folder`."""
    from .ops.table import ROWS, load_rows
    built: set[str] = set()
    warnings.simplefilter("ignore")
    use_simulator(layout, built)
    load_rows()
    log, progress = folder / "log", folder / "progress"
    names = [n for n in names or sorted(ROWS) if with_products == (ROWS[n].family in WITH_PRODUCTS or n in WITH_PRODUCTS)]
    done = [line.split()[1] for line in progress.read_text().splitlines() if line.startswith("run ")] if progress.exists() else []
    with progress.open("a", 1) as out:
        for name in names[names.index(done[-1]) + 1 if done else 0:]:
            before, known = log.stat().st_size if log.exists() else 0, len(built)
            for index in range(len(ROWS[name].samples)):
                for dtype in ("", "float32", "float16") if name in CONVERTED else ("",):
                    print(f"run {name} {index} {dtype}", file=out)
                    try:
                        run_sample(ROWS[name], index, dtype)
                    except Exception as error:  # the op tests are about that
                        print(f"error {name} {index} {dtype} {type(error).__name__} {str(error)[:200]!r}", file=out)
            if log.exists() and log.stat().st_size > before:
                print(f"report {name}", file=out)
            if len(built) > known:
                print("built", *sorted(built), file=out)


def start(layout: str, with_products: bool, names: list[str], folder: Path, driver: Path) -> subprocess.Popen:
    """A process that runs the samples with one layout, those that no process before it ran."""
    folder.mkdir(exist_ok=True)
    (folder / "oclgrind.icd").write_text(f"{driver}\n")
    told = {"OCL_ICD_VENDORS": str(folder), "OCLGRIND_LOG": str(folder / "log"), "OCLGRIND_DATA_RACES": "1", "OCLGRIND_UNINITIALIZED": str(int(not with_products)),
            "OCLGRIND_MAX_ERRORS": "3000", "OCLGRIND_BUILD_OPTIONS": "-O0", "TORCHLITE_CACHE_DIR": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.oclgrind", "--child", layout, "products" if with_products else "", str(folder), *names]
    return subprocess.Popen(command, env={**os.environ, **told}, stderr=subprocess.DEVNULL)


def progress_of(folder: Path) -> list[str]:
    """What the processes of a layout wrote."""
    path = folder / "progress"
    return path.read_text().splitlines() if path.exists() else []


def reports_in(log: str) -> list[str]:
    """The reports of a log, each once."""
    found: list[str] = []
    for report in re.split(r"\n\s*\n", log):
        text = re.sub(r"(address|Entity:).*", "", report)
        if "Kernel:" in text and text not in found:
            found.append(text)
    return found


def main(names: list[str]) -> int:
    driver = next((d for d in DRIVERS if d.exists()), None)
    if driver is None:
        print("Oclgrind is not installed: apt-get install oclgrind")
        return 2
    began, failed, built = time.time(), False, set()
    with tempfile.TemporaryDirectory() as temporary:
        parts = [(layout, products, Path(temporary, f"{layout}{products}")) for products in (False, True) for layout in LAYOUTS]
        running = [start(layout, products, names, folder, driver) for layout, products, folder in parts]
        for (layout, products, folder), process in zip(parts, running, strict=True):
            complaints = []
            while code := process.wait():
                complaints.append(f"a process ended with {code} in {progress_of(folder)[-1:]}")
                if len(complaints) > 20 or not progress_of(folder):
                    break
                process = start(layout, products, names, folder, driver)
            complaints += reports_in((folder / "log").read_text()) if (folder / "log").exists() else []
            lines = progress_of(folder)
            for line in lines:
                if line.startswith("built "):
                    built |= set(line.split()[1:])
                elif line.startswith("error ") or line.startswith("report ") and complaints:
                    print(f"[{layout}] {line}")
            for complaint in complaints[:20]:
                print(f"[{layout}] {complaint}")
            failed = failed or bool(complaints)
            print(f"[{layout}] {sum(line.startswith('run ') for line in lines)} samples, {len(complaints)} complaints", flush=True)
    missing = sorted(shipped() - built) if not names else []
    if missing:
        failed = True
        print("kernels of torchlite_kernels that no sample ran:", *missing)
    print(f"Oclgrind: {len(built)} kernels, {'failed' if failed else 'no race, no access out of bounds, nothing unset'}, {time.time() - began:.0f} s")
    return int(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], bool(sys.argv[3]), sys.argv[5:], Path(sys.argv[4]))
    else:
        sys.exit(main(sys.argv[1:]))
