"""Runs OpenCL kernels at small sizes under Oclgrind, a simulator that sees data races, accesses out of bounds and uses
of values that were never set.

    python -m tests.oclgrind [op ...]

Samples of the op table (tests/ops/rows) are run forward and backward, with the launches that CPUs get and with those
that GPUs get: those below, which start every kernel of torchlite_backends.kernel_sources, or all of the ops that are
named. Fails on
any report, error or crash, when a kernel was not started, and when Oclgrind does not see the three faults of a test
program. Every array has memory of its own, of just its size and never used before. Oclgrind is Debian's package
`oclgrind`.
"""

from __future__ import annotations

import ast
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

DRIVERS = [Path(p) for p in ("/usr/lib/oclgrind/liboclgrind-rt-icd.so", "/usr/local/lib/liboclgrind-rt-icd.so")]
# The ops of each layout and the numbers of their samples.
SAMPLES = {
    "cpu": """
    embedding_bag:1 _index:0,1 torch_dropout_ adaptive_avg_pool1d:1 binomial cdist:4 cholesky:1 col2im:2
    constant_pad_nd:4 conv2d:2 cross_entropy:1 fft_irfft fft_irfftn:2 fractional_max_pool3d group_norm:1 histogram:1
    batch_norm:1 index_reduce:2 isin:1 linalg_det linalg_eigvals:1 linalg_eigvalsh linalg_ldl_factor linalg_ldl_solve
    linalg_lstsq linalg_lu_factor linalg_qr log_softmax lstm masked_scatter matrix_exp max_pool2d:1 mode:1
    multinomial:0,2 nanmedian:2 nonzero poisson repeat_interleave:2 rms_norm:1 roll scaled_dot_product_attention:1
    slogdet softmax:2 unfold:2 unique:0,2 upsample:0 gather dot _sampled_mm:0 _csr_mm_extremes:0 _csr_mm:0
    _quantized_matmul:0,1 _dynamic_quantize:0,1 _weight_int8pack_mm:1 _weight_int4pack_mm_for_cpu:1
    _recurrent_steps:0,2,3,5
""",
    "gpu": """
    torch_dropout_ adaptive_avg_pool2d:3 binomial cdist:4 cholesky col2im:2 conv2d:2 cross_entropy:6 embedding:1
    fft_hfft fft_irfft:4 fractional_max_pool3d histogram:1 index_put:0,1 batch_norm:1 interpolate:1 isin:1 kthvalue:1
    linalg_det linalg_eigh linalg_eigvals linalg_ldl_factor linalg_ldl_solve linalg_lu_factor linalg_pinv linalg_qr:1
    log_normal_:1 log_softmax masked_scatter matrix_exp max_pool2d:1 nonzero:1 pad poisson rms_norm:1 roll
    scaled_dot_product_attention scatter_add searchsorted slogdet softmax topk unfold:1 unique:1 unique_consecutive:0
    _sampled_mm:1 _csr_mm_extremes:1 _csr_mm:2 _quantized_matmul:0,1,9,10
    _dynamic_quantize:0,1 _weight_int8pack_mm:1 _weight_int4pack_mm_for_cpu:1 _recurrent_steps:0,3
""",
}
# Kernels that convert on loading and storing: these samples run in single and half precision as well.
CONVERTED = (
    "softmax",
    "log_softmax",
    "layer_norm",
    "rms_norm",
    "batch_norm",
    "cross_entropy",
    "embedding",
    "gelu",
    "_sampled_mm",
    "_csr_mm",
    "dot",
    "scaled_dot_product_attention",
)
_FAULTS = """
kernel void race(global int* x) { x[0] = get_local_id(0); }
kernel void bounds(global int* x) { x[get_global_id(0) + 1] = 0; }
kernel void unset(global int* x, global int* y) { x[get_global_id(0)] = y[get_global_id(0)]; }
"""
_SEEN = ("data race", "Invalid write", "Uninitialized value")
# Optimisation makes `freeze` and vectors as wholes of what the look for unset values follows one by one; so do
# contracted sums of products.
_OPTIONS = "-O0 -ffp-contract=off"


def _vectors_by_element() -> str:
    """`lo_of(v)`, `even_of(v)` and so on, for two vectors `joined_even(v, w)`, `joined_odd(v, w)`, `woven(v, w)`,
    element by element.
    """
    text = []
    for scalar in ("float", "double", "int", "uint", "long", "ulong"):
        for n in (1, 2, 4, 8):
            half = scalar + (str(n) if n > 1 else "")
            for name, first, step in (("lo", 0, 1), ("hi", n, 1), ("even", 0, 2), ("odd", 1, 2)):
                parts = (
                    f"return v.s{first};"
                    if n == 1
                    else f"{half} r; "
                    + " ".join(f"r.s{k:x} = v.s{k * step + first:x};" for k in range(n))
                    + " return r;"
                )
                text.append(f"{half} __attribute__((overloadable)) {name}_of({scalar}{2 * n} v) {{ {parts} }}")
            parts = " ".join(
                f"r.s{2 * k:x} = v.s{k:x}; r.s{2 * k + 1:x} = w.s{k:x};" if n > 1 else "r.s0 = v; r.s1 = w;"
                for k in range(n)
            )
            text.append(
                f"{scalar}{2 * n} __attribute__((overloadable)) woven({half} v, {half} w) {{ {scalar}{2 * n} r; "
                f"{parts} return r; }}"
            )
        for n in (4, 8, 16):
            for name, first in (("even", 0), ("odd", 1)):
                parts = " ".join(f"r.s{k:x} = {'v' if 2 * k < n else 'w'}.s{(2 * k) % n + first:x};" for k in range(n))
                text.append(
                    f"{scalar}{n} __attribute__((overloadable)) joined_{name}({scalar}{n} v, {scalar}{n} w) {{ "
                    f"{scalar}{n} r; {parts} return r; }}"
                )
    return "\n".join(text) + "\n"


def by_element(text: str) -> str:
    """A program whose vectors are taken apart and joined by functions: Oclgrind 21.10 takes what `v.lo` gives for
    unset, and crashes on `VEC2(V, v.even, w.even)`.
    """
    changed = re.sub(r"VEC2\(\w+, ([^;\n]+?)\.(even|odd), ([^;\n]+?)\.\2\)", r"joined_\2(\1, \3)", text)
    changed = re.sub(r"\b(\w+)\.even = ([\w.]+); \1\.odd = ([\w.]+);", r"\1 = woven(\2, \3);", changed)
    changed = re.sub(r"\b(\w+)\.(lo|hi|even|odd)\b(?! =)", r"\2_of(\1)", changed)
    return text if changed == text else _vectors_by_element() + changed


def shipped() -> dict[str, tuple[str, str]]:
    """The kernels in the texts of torchlite_backends.kernel_sources: {module.name: (name, the text that begins there,
    as far as it is fixed)}.
    """
    import torchlite_backends.kernel_sources

    head = r"KERNEL\s+(?:[A-Z]+\s+|__launch_bounds__\(.*?\)\s+)?void (\w+)"
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(Path(torchlite_backends.kernel_sources.__path__[0]).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for match in re.finditer(head + r".*?(?=KERNEL |@|BODY|PER|POINTERS|$)", node.value, re.DOTALL):
                    key = f"{path.stem}.{match[1]}"
                    while key in found:
                        key += "'"
                    found[key] = match[1], match[0].rstrip()
    return found


def further(torch, layout: str, device: str = "opencl") -> dict:
    """Kernels that the op table does not start: creation on the device, and sizes at which work is split among
    work-items.
    """
    many, rows = (33000, 520) if layout == "cpu" else (8300, 140)

    def some(*shape, dtype="float32"):
        return torch.arange(math.prod(shape)).remainder(7).reshape(shape).to(getattr(torch, dtype)).to(device)

    def chain():
        x = some(300)
        for _ in range(2):
            ((x * 2 + x).tanh() - x).cpu()

    def rows_that_wait():
        x, scale, shift = some(64, 128), some(128), some(64, 1)
        for _ in range(2):
            with x._tl_array.device.waiting.joining(256):
                y = ((x * scale + shift).tanh() - x) * 2
                y.sum(1), (y + 1).mean()

    def optimizer():
        params = [torch.nn.Parameter(some(3, 5)), torch.nn.Parameter(some(20))]
        for kind in (torch.optim.SGD, torch.optim.Adam):
            for p in params:
                p.grad = torch.ones_like(p)
            kind(params, lr=0.1).step()
        for kind, options in (
            (torch.optim.SGD, {"momentum": 0.9}),
            (torch.optim.AdamW, {}),
            (torch.optim.Adagrad, {"lr_decay": 0.1}),
        ):
            scaler, fused = torch.amp.GradScaler(device.partition(":")[0]), kind(params, lr=0.1, fused=True, **options)
            for unscaled in (False, True):
                fused.zero_grad()
                scaler.scale(sum((p * p).sum() for p in params)).backward()
                if unscaled:
                    scaler.unscale_(fused)
                scaler.step(fused)
                scaler.update()

    def frequencies():
        weight = some(5, 6).requires_grad_()
        torch.nn.functional.embedding(
            some(2, 3, dtype="int64").remainder(5), weight, scale_grad_by_freq=True
        ).sum().backward()

    on_cpus = {
        "running in columns": lambda: some(rows, 64).cumsum(0),
        "running in rows": lambda: [rows_of.cumsum(1) for rows_of in (some(3, 50), some(2, 40, dtype="int32"))],
        "largest so far": lambda: some(3, 50).cummax(1),
        "sorted": lambda: some(33000, dtype="int16").sort(),
        "deep": lambda: some(3, 2100) @ some(2100, 5),
    }
    return {
        "randint": lambda: [torch.randint(0, high, (37,), device=device) for high in (9, 1 << 40)],
        "randn": lambda: torch.randn(37, device=device),
        "rand": lambda: torch.rand(3, 5, device=device),
        "linspace": lambda: torch.linspace(0, 1, 37, device=device),
        "tril_indices": lambda: torch.tril_indices(4, 5, device=device),
        "chain": chain,
        "rows that wait": rows_that_wait,
        "optimizer": optimizer,
        "frequencies": frequencies,
        "nonzero": lambda: some(5, 6).nonzero(),
        "mask": lambda: some(5, 6)[some(5, 6) > 2],
        "mask of rows": lambda: some(5, 6, 3)[some(5, 6) > 2, some(1, dtype="int64")],
        "pinv": lambda: torch.linalg.pinv(some(3, 2, dtype="complex64")),
        "transposed": lambda: some(70, 72).t().contiguous(),
        "resized bytes": lambda: torch.nn.functional.interpolate(
            some(1, 2, 4, 5, dtype="uint8"), (7, 3), mode="bilinear"
        ),
        "total": lambda: some(many).sum(),
        "totals of columns": lambda: some(rows, 64).sum(0),
        "columns": lambda: some(80, 64).sum(0),
        "sorted rows": lambda: some(1, 1100).sort(),
        "largest": lambda: some(many).topk(3),
        "prime": lambda: torch.fft.fft(some(131)),
        "long": lambda: torch.fft.fft(some(4200, dtype="complex64")),
        **(on_cpus if layout == "cpu" else {"running": lambda: some(many).cumsum(0)}),
    }


class Simulator:
    """Makes Oclgrind's device the only one of the backend, with the launches of a layout, and notes which kernels
    start.
    """

    def __init__(self, layout: str):
        import pyopencl as cl

        import torchlite as torch
        from torchlite_backends.device_runtime.core import lazy_fusion
        from torchlite_backends.opencl import device as module
        from torchlite_backends.opencl import driver_discovery
        from torchlite_backends.opencl.backend import backend

        self.started: set[str] = set()
        self.launches = 0
        self.kernels = shipped()
        self.of: dict[int, set[str]] = {}
        self.blocks: list = []
        lazy_fusion.LazyQueue.least = 256
        simulated = [d for p in cl.get_platforms() if p.name == "Oclgrind" for d in p.get_devices()]
        driver_discovery.devices = lambda: simulated  # type: ignore[assignment]
        driver_discovery.why_not = lambda: ""  # type: ignore[attr-defined]
        build, function, init, start, write = (
            module.Device.build,
            module.Device._function,
            module.Device.__init__,
            module.enqueue_nd_range_kernel,
            module._enqueue_write_buffer,
        )

        def noted(device, key, source, name, *rest):
            found = function(device, key, source, name, *rest)
            texts = {which: text for which, (other, text) in self.kernels.items() if other == name and text in source}
            self.of[id(found.kernel)] = {
                w
                for w, text in texts.items()
                if not any(other != text and other.startswith(text) for other in texts.values())
            }
            return found

        def started(queue, kernel, *sizes):
            self.started |= self.of[id(kernel)]
            self.launches += 1
            event = start(queue, kernel, *sizes)
            queue.finish()
            return event

        def made(device, *arguments):
            init(device, *arguments)

            def allocate(nbytes, array=None):  # never freed: Oclgrind mistakes a new block for the old one at its place
                self.blocks.append(cl.Buffer(device.context, cl.mem_flags.READ_WRITE, nbytes or 4))
                return self.blocks[-1]

            device.allocate = allocate

        module.Device.build = lambda device, text: build(device, by_element(text))  # type: ignore
        module.Device._function = noted  # type: ignore[method-assign]
        module.Device.__init__ = made  # type: ignore[method-assign]
        module.enqueue_nd_range_kernel = started  # type: ignore[attr-defined]
        module._enqueue_write_buffer = lambda *a: write(*a[:-1], True)  # type: ignore
        device = backend.device(0)
        device.is_cpu = layout == "cpu"
        device.width = 16 if device.is_cpu else 4
        assert torch.ones(2, device="opencl").sum().item() == 2


def run_sample(row, index: int, dtype: str) -> None:
    """One sample, forward and, where it has derivatives, backward."""
    from .ops.op_db import in_dtype, run_through, to_tensors

    args, kwargs = in_dtype(row.values(index), dtype)
    run_through(row, *to_tensors((args, kwargs), "opencl", requires_grad=row.grad))


def chosen(layout: str, names: list[str]) -> list[tuple[str, int]]:
    """The samples to run: all of the ops that are named, else those of the layout."""
    from .ops.op_db import ROWS, load_rows

    load_rows()
    if names:
        return [(name, index) for name in names for index in range(len(ROWS[name].samples))]
    words = [word.partition(":") for word in SAMPLES[layout].split()]
    return [(name, int(index)) for name, _, numbers in words for index in (numbers or "0").split(",")]


def child(layout: str, names: list[str], folder: Path) -> None:
    """Run the samples; what happens goes to the file `progress` in `folder`, Oclgrind's reports to `log`."""
    warnings.simplefilter("ignore")
    if layout == "faults":
        return faults()
    simulator = Simulator(layout)
    import torchlite as torch

    from .ops.op_db import ROWS

    log = folder / "log"
    with (folder / "progress").open("w", 1) as out:
        for name, index in chosen(layout, names):
            for dtype in ("", "float32", "float16") if name in CONVERTED else ("",):
                before = log.stat().st_size if log.exists() else 0
                print(f"run {name} {index} {dtype}", file=out)
                try:
                    run_sample(ROWS[name], index, dtype)
                except Exception as error:
                    print(f"error {name} {index} {dtype} {type(error).__name__} {str(error)[:200]!r}", file=out)
                if log.exists() and log.stat().st_size > before:
                    print(f"report {name} {index} {dtype}", file=out)
        for name, function in further(torch, layout).items() if not names else ():
            print(f"run {name}", file=out)
            began, launches = time.time(), simulator.launches
            try:
                function()
            except Exception as error:
                print(f"error {name} {type(error).__name__} {str(error)[:200]!r}", file=out)
            print(f"took {time.time() - began:.1f} s, {simulator.launches - launches} launches", file=out)
        print("started", simulator.launches, *sorted(simulator.started), file=out)
        print("done", file=out)


def faults() -> None:
    """Start a kernel with each fault."""
    import numpy as np
    import pyopencl as cl

    context = cl.Context([d for p in cl.get_platforms() if p.name == "Oclgrind" for d in p.get_devices()])
    queue, program = cl.CommandQueue(context), cl.Program(context, _FAULTS).build()
    x, y = (cl.Buffer(context, cl.mem_flags.READ_WRITE, 16) for _ in range(2))
    program.race(queue, (4,), (4,), x)
    program.bounds(queue, (4,), (4,), x)
    program.unset(queue, (4,), (4,), x, y)
    cl.enqueue_copy(queue, np.empty(4, np.int32), x)


def start(layout: str, names: list[str], folder: Path, driver: Path) -> subprocess.Popen:
    """A process that runs the samples with one layout."""
    folder.mkdir()
    (folder / "oclgrind.icd").write_text(f"{driver}\n")
    told = {
        "OCL_ICD_VENDORS": str(folder),
        "OCLGRIND_LOG": str(folder / "log"),
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_UNINITIALIZED": "1",
        "OCLGRIND_MAX_ERRORS": "3000",
        "OCLGRIND_BUILD_OPTIONS": _OPTIONS,
        "TORCHLITE_CACHE_DIR": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "tests.oclgrind", "--child", layout, str(folder), *names]
    return subprocess.Popen(command, env={**os.environ, **told}, stderr=(folder / "stderr").open("w"))


def reports_in(log: Path) -> list[str]:
    """The reports of a log, each once."""
    found: list[str] = []
    for report in re.split(r"\n\s*\n", log.read_text() if log.exists() else ""):
        text = re.sub(r"(address|Entity:).*", "", report).strip()
        if text and text not in found:
            found.append(text)
    return found


def main(names: list[str]) -> int:
    driver = next((d for d in DRIVERS if d.exists()), None)
    if driver is None:
        print("Oclgrind is not installed: apt-get install oclgrind")
        return 2
    began, complaints, started, launches, samples = time.time(), [], set(), 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        folders = {layout: Path(temporary, layout) for layout in ("faults", *SAMPLES)}
        start("faults", [], folders["faults"], driver).wait()
        seen = "".join(reports_in(folders["faults"] / "log"))
        complaints += [f"Oclgrind does not see: {fault}" for fault in _SEEN if fault not in seen]
        running = [start(layout, names, folders[layout], driver) for layout in SAMPLES]
        for layout, process in zip(SAMPLES, running, strict=True):
            code, folder = process.wait(), folders[layout]
            lines = (folder / "progress").read_text().splitlines() if (folder / "progress").exists() else []
            samples += sum(line.startswith("run ") for line in lines)
            if lines[-1:] != ["done"]:
                complaints.append(
                    f"[{layout}] the process ended with {code} after {lines[-1:]}\n"
                    f"{(folder / 'stderr').read_text()[-2000:]}"
                )
            for line in lines:
                if line.startswith("started "):
                    launches += int(line.split()[1])
                    started |= set(line.split()[2:])
                elif line.startswith(("error ", "report ")):
                    complaints.append(f"[{layout}] {line}")
            complaints += [f"[{layout}] {report}" for report in reports_in(folder / "log")[:20]]
    # Modules of that name are for CUDA alone.
    kernels = {key: kernel for key, kernel in shipped().items() if not key.partition(".")[0].endswith("_cuda")}
    missing = sorted(set(kernels) - started) if not names else []
    if missing:
        complaints.append(f"kernels that no sample started: {' '.join(missing)}")
    print(*complaints, sep="\n")
    print(
        f"Oclgrind: {len(started & set(kernels))} of {len(kernels)} kernels, {samples} samples, {launches} launches, "
        f"{time.time() - began:.0f} s: "
        f"{'failed' if complaints else 'no race, no access out of bounds, nothing unset'}"
    )
    return int(bool(complaints))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[4:], Path(sys.argv[3]))
    else:
        sys.exit(main(sys.argv[1:]))
