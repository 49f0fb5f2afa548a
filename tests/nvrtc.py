"""Compiles every program that the CUDA backend can ask for with NVRTC, to sm_75, sm_80 and sm_90, on a machine without a GPU.

    python -m tests.nvrtc [--record] [op ...]

The programs are found by running ops on a driver that records (tests/recording.py): every sample of the op table in every dtype that the op takes, forward and backward,
pointwise ops also on large arrays in each way that memory can lie, and what tests/oclgrind.py runs besides. Fails where a program does not compile or warns, where a kernel's
parameters are not of the sizes that it is given, where a block needs more registers or shared memory than there are, where a text was not compiled, and where a kernel spills
more registers than tests/nvrtc_registers.txt says, which `--record` writes anew. NVRTC is the package `nvidia-cuda-nvrtc-cu12`.
"""
from __future__ import annotations

import collections
import contextlib
import ctypes
import hashlib
import importlib.util
import os
import re
import struct
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
TABLE = Path(__file__).with_name("nvrtc_registers.txt")
DTYPES = ("", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128")
# Samples that read values on the host which only real kernels can give.
_UNPREDICTABLE = ("istft", "multinomial")
# What new memory holds beside zeros: nothing, or bytes with a one, as integers of 8 or 4 bytes that a kernel would have counted.
FILLINGS = (None, slice(0, None, 8), slice(4, None, 8), slice(0, None, 4))
# How much longer arrays are made, where kernels are chosen by size, and in which dtypes. What does not fit an op at that size raises an error and is passed over.
FACTORS, SCALED, _LARGEST = (6, 40), ("", "float16"), 1 << 20
# Kernels that only CPUs are given.
FOR_CPUS = """
    embedding.embedding_by_columns gemm.dots gemm.product pooling.maximum_backward reduce_text.part' reduce_text.whole'
    rearranging.transpose_vectors sort_text.rank sort_text.rows
""".split()
_BATCH = 24
_REGISTERS, _SHARED = 65536, 48 << 10  # of a block


# -- NVRTC --

def library() -> ctypes.CDLL | None:
    """NVRTC from its package or from the system; None where there is none."""
    found = importlib.util.find_spec("nvidia")
    for folder in found.submodule_search_locations or () if found else ():
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*")):
            return ctypes.CDLL(str(path))
    try:
        return ctypes.CDLL("libnvrtc.so")
    except OSError:
        return None


_nvrtc: Any = None


def compiled(text: str, architecture: str) -> tuple[bool, str, bytes]:
    """Whether a text compiles, the compiler's log, and the cubin."""
    global _nvrtc
    if _nvrtc is None:
        _nvrtc = library()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = [b"--std=c++17", f"-arch={architecture}".encode(), b"--ptxas-options=-v"]
    _nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"text.cu", 0, None, None)
    failed = _nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    _nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    _nvrtc.nvrtcGetProgramLog(program, log)
    cubin = ctypes.create_string_buffer(0)
    if not failed:
        _nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        _nvrtc.nvrtcGetCUBIN(program, cubin)
    _nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return not failed, log.value.decode(), cubin.raw


# -- several programs in one: each in a namespace, its kernels renamed, its macros forgotten at its end --

_KERNEL = re.compile(r"\bKERNEL\b[^;{}()]*(?:\([^()]*\))?[^;{}()]*?\bvoid\s+(\w+)\s*\(")
_MACRO = re.compile(r"(?m)^\s*#\s*define (\w+)")


def joined(preamble: str, bodies: dict[int, str]) -> str:
    """One text of the programs' bodies by number; kernel `k` of body 3 becomes `k__3`."""
    parts = [preamble]
    for number, body in bodies.items():
        kernels = list(dict.fromkeys(_KERNEL.findall(body)))
        parts += [f"#define {k} {k}__{number}" for k in kernels]
        parts += [f"namespace body_{number} {{", body, "}"]
        parts += [f"#undef {name}" for name in dict.fromkeys([*_MACRO.findall(body), *kernels])]
    return "\n".join(parts) + "\n"


@dataclass
class Use:
    """What a kernel takes on one architecture: registers, bytes spilled (written and read), bytes of local and of shared memory; the sizes of its parameters."""

    registers: int = 0
    spilled: int = 0
    local: int = 0
    shared: int = 0
    parameters: list[int] = field(default_factory=list)


def uses_in(log: str, cubin: bytes) -> dict[str, Use]:
    """The kernels of a compiled text. What functions that are not inlined spill counts for the kernels of their namespace."""
    found: dict[str, Use] = {}
    current, beside = "", collections.Counter[str]()
    owner = ""
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            current = match[1]
            found[current] = Use()
        elif match := re.search(r"Function properties for (\S+)", line):
            owner = match[1]
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stack, spilled = int(match[1]), int(match[2]) + int(match[3])
            if owner in found:
                found[owner].local, found[owner].spilled = stack, spilled
            elif number := re.search(r"body_(\d+)", owner):
                beside[number[1]] += spilled
        elif match := re.search(r"Used (\d+) registers", line):
            found[current].registers = int(match[1])
            shared = re.search(r"(\d+) bytes smem", line)
            found[current].shared = int(shared[1]) if shared else 0
    for name, use in found.items():
        use.spilled += beside[name.rpartition("__")[2]]
        use.parameters = parameters_in(cubin, name)
    return found


def parameters_in(cubin: bytes, kernel: str) -> list[int]:
    """The sizes of a kernel's parameters in bytes, from the section `.nv.info.<kernel>` of a cubin (an ELF file)."""
    sections, = struct.unpack_from("<Q", cubin, 40)
    entry, count, names = struct.unpack_from("<HHH", cubin, 58)
    heads = [struct.unpack_from("<IIQQQQ", cubin, sections + entry * i) for i in range(count)]
    text = heads[names][4]
    wanted = f".nv.info.{kernel}\0".encode()
    for name, _, _, _, at, size in heads:
        if cubin[text + name:text + name + len(wanted)] == wanted:
            break
    else:
        return []
    sizes, end = {}, at + size
    while at < end:
        kind, attribute, length = struct.unpack_from("<BBH", cubin, at)
        if kind == 4 and attribute == 0x17:  # a parameter
            ordinal, = struct.unpack_from("<H", cubin, at + 8)
            sizes[ordinal] = struct.unpack_from("<I", cubin, at + 12)[0] >> 18
        at += 4 + (length if kind == 4 else 0)
    return [sizes[k] for k in sorted(sizes)]


def compile_batch(job: tuple[str, str, dict[int, str]]) -> tuple[dict[str, Use], list[tuple[int, str]]]:
    """The kernels of some programs on an architecture, and what the compiler says of those that fail or warn."""
    architecture, preamble, bodies = job
    fine, log, cubin = compiled(joined(preamble, bodies), architecture)
    said = re.findall(r"text\.cu\(\d+\): (?:warning|error).*", log)
    if fine and not said:
        return uses_in(log, cubin), []
    if len(bodies) == 1:
        return {}, [(number, log) for number in bodies]
    uses: dict[str, Use] = {}
    complaints = []
    for number, body in bodies.items():
        more, words = compile_batch((architecture, preamble, {number: body}))
        uses |= more
        complaints += words
    return uses, complaints


# -- what this must see: a text that does not compile, one that means something else in C++, spills, and the sizes of parameters --

_FAULTS = {
    "a compile error": "KERNEL void fault(OUT(float, x)) { AT(x)[ITEM] = undeclared; }",
    "a warning": "KERNEL void fault(OUT(float2, x)) { AT(x)[ITEM] = (float2)(1.0f, 2.0f); }",
}
_SPILLS = """
KERNEL __launch_bounds__(1024) void spills(OUT(float, x), const double n) {
    float v[100];
    for (int i = 0; i < 100; i++) v[i] = AT(x)[i * 1024 + THREAD];
    BARRIER;
    for (int i = 0; i < 100; i++) AT(x)[i * 1024 + THREAD] = v[99 - i] * n;
}
"""


def unseen(preamble: str) -> list[str]:
    """The faults that are not found."""
    missed = [name for name, body in _FAULTS.items() if not compile_batch(("sm_80", preamble, {0: body, 1: _SPILLS}))[1]]
    use = compile_batch(("sm_80", preamble, {1: _SPILLS}))[0].get("spills__1", Use())
    missed += [] if use.spilled else ["registers that are spilled"]
    missed += [] if use.parameters == [8, 4, 8] else ["the sizes of parameters"]
    missed += [] if unlike_c(_FAULTS["a warning"]) and unlike_c("LOCAL float x[3];") else ["what is unlike C"]
    return [f"not seen: {name}" for name in missed]


# -- what is recorded --

class Ops:
    """Runs ops on the recording driver."""

    def __init__(self) -> None:
        from torchlite._dispatch import register_backend
        from torchlite_cupy.backend import CUDABackend

        from .ops.table import ROWS, load_rows
        from .recording import Recording
        load_rows()
        self.rows = ROWS
        recording = Recording()
        self.backend = CUDABackend(recording)
        self.driver = recording.driver
        self.complaints: list[str] = []
        self.runs = 0
        register_backend("cuda", self.backend)

    def sample(self, row: Any, index: int, dtype: str, shaped: Any = None, factor: int = 1) -> bool:
        """One sample, forward and backward, with memory of zeros or, where that raises an error, of ones; `factor` times as large in each direction. Whether it ran."""
        try:
            args, kwargs = scaled(in_dtype(row.values(index), dtype), factor)
        except ValueError:
            return False
        done = 0
        for self.driver.filling in FILLINGS:
            if done and (dtype or factor > 1 or shaped):  # the others are for paths that depend on values, which one dtype shows
                break
            try:
                self._run(row, args, kwargs, row.grad and dtype[:3] not in ("int", "uin", "boo"), shaped)
                done += 1
            except AssertionError:
                raise
            except Exception as error:
                failure = error
        self.runs += done
        if done:
            return True
        if not dtype and row.name not in _UNPREDICTABLE and shaped is None and factor == 1:
            self.complaints.append(f"{row.name} {index}: {type(failure).__name__}: {str(failure)[:200]}")
        return False

    def _run(self, row: Any, args: Any, kwargs: Any, grad: bool, shaped: Any) -> None:
        import torchlite as torch

        from .ops.table import leaves, to_tensors
        args, kwargs = to_tensors((args, kwargs), "cuda", requires_grad=grad and shaped is None)
        if shaped is not None:
            args = shaped(args, grad)
        torch.manual_seed(0)
        results = [r for r in leaves(row.function()(*args, **kwargs)) if isinstance(r, torch.Tensor)]
        for result in results:
            if result.requires_grad:
                result.backward(torch.ones_like(result), retain_graph=True)
        for result in results:
            result.cpu()

    def record(self, names: list[str]) -> None:
        """Every sample in every dtype that the op takes. Of pointwise ops the text of a rule and that of a way through memory do not depend on each other: every rule is run
        small and in one long run in every dtype, and one of those with the same kinds of operands in every way.
        """
        from torchlite._dispatch import POINTWISE, REGISTRY
        seen = set()
        for name in names or self.rows:
            row, op = self.rows[name], REGISTRY[name]
            samples = range(len(row.samples))
            for dtype in DTYPES:
                if op.tags & POINTWISE:
                    taken = [self.sample(row, index, dtype, way) for way in ((WAYS[0],) if dtype else (None, WAYS[0])) for index in samples]
                    alike = dtype, op.promote, tuple(type(value).__name__ for value in row.values(0)[0])
                    if any(taken) and dtype in SCALED and alike not in seen:
                        seen.add(alike)
                        for way in WAYS[1:]:
                            self.sample(row, 0, dtype, way)
                    continue
                taken = [self.sample(row, index, dtype) for index in samples]
                for factor in FACTORS if any(taken) and dtype in SCALED else ():
                    for index in samples:
                        self.sample(row, index, dtype, None, factor)
        if not names:
            self.more()
            self.captured()

    def captured(self) -> None:
        """What is started while a graph is recorded: kernels that draw read their seed from memory there, as Adam's step its numbers with `capturable`."""
        import torchlite as torch
        from torchlite_device.random import Drawn
        device = self.backend.device(0)
        for name in ("float32", "float64", "float16", "bfloat16"):
            dtype = getattr(torch, name)
            x = torch.full((100,), 0.5, dtype=dtype, device="cuda")
            device.draws, device.capturing = Drawn(device), True
            try:
                for draw in (torch.rand, torch.randn):
                    draw(100, dtype=dtype, device="cuda")
                for draw in ("bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_"):
                    getattr(x.clone(), draw)(*((0.5,) if draw == "geometric_" else ()))
                torch.nn.functional.dropout(x, 0.5)
                torch.poisson(x)
                torch.binomial(x * 4, x)
                torch.randperm(100, device="cuda")
                for top in (9, 1 << 40):
                    torch.randint(0, top, (100,), device="cuda")
            finally:
                device.draws, device.capturing = None, False
            for kind in (torch.optim.Adam, torch.optim.AdamW):
                for amsgrad in (False, True):
                    for count in (1, 3, 12):
                        parameters = [torch.ones(5, dtype=dtype, device="cuda", requires_grad=True) for _ in range(count)]
                        for p in parameters:
                            p.grad = torch.ones_like(p)
                        kind(parameters, amsgrad=amsgrad, capturable=True).step()

    def more(self) -> None:
        """What no sample starts: what tests/oclgrind.py knows of, attention on tensor cores, and what depends on more than shapes and dtypes."""
        import torchlite as torch

        from .oclgrind import further
        from .recording import attend_in_every_way
        self.driver.filling = None
        attend_in_every_way()
        for name, function in {**further(torch, "gpu", "cuda"), **unusual(torch)}.items():
            done = 0
            for self.driver.filling in FILLINGS:
                try:
                    function()
                    done += 1
                except RuntimeError as error:
                    failure = error
            if not done:
                self.complaints.append(f"{name}: {failure}")


def unusual(torch: Any) -> dict[str, Any]:
    """What depends on a GPU's size or on values: (name: what runs it)."""
    from torchlite._random import engine_of
    from torchlite_device.reduce_text import OPS
    calls = {"max_dim": "max", "min_dim": "min", "norm1": "norm", "norm2": "norm", "normp": "norm"}

    def large_reductions() -> None:
        device = torch.empty(1, device="cuda")._data.device
        units, device.units = device.units, 132
        for op in OPS:
            for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.complex64):
                with contextlib.suppress(RuntimeError, NotImplementedError):
                    getattr(torch, calls.get(op, op))(torch.empty((9001, 1031), dtype=dtype, device="cuda"), dim=0)
        device.units = units

    def with_replacement() -> None:
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            weights = torch.ones((2, 5), dtype=dtype, device="cuda")
            weights._table.random_multinomial(weights._data, 3, engine_of(weights._table, None))

    return {"large reductions": large_reductions, "with replacement": with_replacement}


def scaled(tree: Any, factor: int) -> Any:
    """The arrays in a tree made longer in each direction."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(scaled(item, factor) for item in tree)
    if isinstance(tree, dict):
        return {k: scaled(v, factor) for k, v in tree.items()}
    if not isinstance(tree, np.ndarray) or factor == 1:
        return tree
    shape = [n * factor for n in tree.shape]
    if np.prod(shape) > _LARGEST:
        raise ValueError("large enough without")
    return np.resize(tree, shape)


def in_dtype(tree: Any, dtype: str) -> Any:
    """The arrays of floats in a tree as another dtype."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(in_dtype(item, dtype) for item in tree)
    if isinstance(tree, dict):
        return {k: in_dtype(v, dtype) for k, v in tree.items()}
    if not dtype or getattr(getattr(tree, "dtype", None), "kind", "") != "f":
        return tree
    if dtype == "bfloat16":
        import ml_dtypes
        return tree.astype(ml_dtypes.bfloat16)
    return tree.astype(dtype)


def _large(tensors: Any, grad: bool, change: Any) -> Any:
    """The arguments with every tensor as one of 70 x 66, changed by its number, and with gradients of it."""
    import torchlite as torch
    count = 0

    def made(x: Any) -> Any:
        nonlocal count
        if not isinstance(x, torch.Tensor):
            return x
        flat = np.resize(x.cpu().numpy().reshape(-1) if x.numel() else np.zeros(1, x.dtype.np), 70 * 66)
        count += 1
        out = change(torch.from_numpy(flat.reshape(70, 66)).to("cuda"), count)
        return out.requires_grad_() if grad and (x.is_floating_point() or x.is_complex()) else out

    return tuple(made(x) for x in tensors)


def _way(change: Any) -> Any:
    return lambda args, grad: _large(args, grad, change)


# How the memory of large operands lies: in one run, every second row, every second element, the first operand crosswise, the others of one row or of one column.
WAYS = [_way(change) for change in (
    lambda x, k: x, lambda x, k: x.repeat(2, 1)[::2], lambda x, k: x.repeat(1, 2)[:, ::2], lambda x, k: x.reshape(66, 70).t() if k == 1 else x,
    lambda x, k: x if k == 1 else x[0], lambda x, k: x if k == 1 else x[:, :1])]


# -- the table --

def entries(functions: dict) -> dict[tuple[str, str], list[str]]:
    """(program text, kernel): the line of the table that it belongs to, for what devices built: kernels of torchlite_kernels by dtype, generated ones by family."""
    from .oclgrind import shipped
    kernels = shipped()
    by_name: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    for key, (name, text) in kernels.items():
        by_name[name].append((key, text))
    found: dict[tuple[str, str], list[str]] = {}
    for (source, name, *kinds), function in functions.items():
        fits = [(key, text) for key, text in by_name[name] if text in source]
        keys = [key for key, text in fits if not any(other != text and other.startswith(text) for _, other in fits)]
        dtype = dict(kinds[0]).get("T", "") if kinds else ""
        found[function._text, name] = [f"{key} {dtype}".strip() for key in keys] or [f"generated.{name}"]
    return found


def table_of(uses: dict[tuple[str, str, str], Use], lines: dict[tuple[str, str], list[str]]) -> dict[str, dict[str, Use]]:
    """The most of each line's kernels by architecture."""
    table: dict[str, dict[str, Use]] = {}
    for (text, name, architecture), use in uses.items():
        for line in lines.get((text, name), ["generated." + name]):
            most = table.setdefault(line, {}).setdefault(architecture, Use())
            for what in ("registers", "spilled", "local", "shared"):
                setattr(most, what, max(getattr(most, what), getattr(use, what)))
    return table


def written(table: dict[str, dict[str, Use]], version: str) -> str:
    """The table's text."""
    head = [f"NVRTC {version}. For each architecture: registers, bytes spilled, bytes of local memory, bytes of shared memory; the most of a kernel's variants.",
            f"{'kernel and dtype':44}" + "".join(f"{a:>24}" for a in ARCHITECTURES)]
    rows = []
    for line in sorted(table):
        cells = [table[line].get(a, Use()) for a in ARCHITECTURES]
        rows.append(f"{line:44}" + "".join(f"{f'{u.registers} {u.spilled} {u.local} {u.shared}':>24}" for u in cells))
    return "\n".join(head + rows) + "\n"


def read() -> tuple[str, dict[str, list[int]]]:
    """NVRTC's version and the bytes spilled on each architecture, by line."""
    head, _, *rows = TABLE.read_text().splitlines()
    cells = {row[:44].strip(): [int(n) for n in row[44:].split()] for row in rows}
    return head.split()[1].rstrip("."), {line: numbers[1::4] for line, numbers in cells.items()}


def version() -> str:
    """NVRTC's version."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    found = library()
    assert found is not None
    found.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compare(table: dict[str, dict[str, Use]]) -> list[str]:
    """What the table does not have: kernels, and bytes spilled where the version of NVRTC is the table's."""
    recorded_with, recorded = read()
    complaints = [f"{line} is not in {TABLE.name}: python -m tests.nvrtc --record" for line in sorted(set(table) - set(recorded))]
    complaints += [f"{line} is in {TABLE.name} and was not compiled" for line in sorted(set(recorded) - set(table))]
    if recorded_with != version():
        print(f"{TABLE.name} was written with NVRTC {recorded_with}, this is {version()}: spills are not compared")
        return complaints
    for line in sorted(set(table) & set(recorded)):
        for architecture, before in zip(ARCHITECTURES, recorded[line], strict=True):
            now = table[line].get(architecture, Use()).spilled
            if now > before:
                complaints.append(f"{line} spills {now} bytes on {architecture}, {before} before")
    return complaints


# -- the run --

def check_uses(uses: dict[tuple[str, str, str], Use], programs: dict, given: dict[tuple[str, str], list[int]]) -> list[str]:
    """Kernels that could not be started as they were."""
    complaints = []
    for (text, name, architecture), use in uses.items():
        kernel = programs[text].get(name)
        threads = kernel.threads if kernel else 0
        if -(-use.registers // 8) * 8 * (-(-threads // 32) * 32) > _REGISTERS or use.shared > _SHARED:
            complaints.append(f"{name} on {architecture}: {threads} threads of {use.registers} registers, {use.shared} bytes of shared memory")
        sizes = given.get((text, name))
        if sizes and use.parameters != sizes:
            complaints.append(f"{name} on {architecture} has parameters of {use.parameters} bytes and is given {sizes}")
    return complaints


def given_sizes(functions: dict) -> dict[tuple[str, str], list[int]]:
    """The sizes of what kernels were started with."""
    found = {}
    for function in functions.values():
        if function._parameters is not None:
            codes = re.findall(r"\d+x(\d*\w)", function._parameters.pack.func.__self__.format)
            found[function._text, function.name] = [struct.calcsize("=" + code) for code in codes]
    return found


def unlike_c(text: str) -> list[str]:
    """What means one thing in OpenCL C and another in C++: vectors written as casts of several numbers, arrays of local memory without the macro."""
    found = []
    for match in re.finditer(r"\(\w+\)\(", text):
        depth, at = 1, match.end()
        while depth and at < len(text):
            depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(text[at], 0)
            if text[at] == "," and depth == 1:
                found.append(f"{text[match.start():at + 20]}: use VEC2")
                break
            at += 1
    return found + [f"{match[0]}: use LOCAL_ARRAY" for match in re.finditer(r"\bLOCAL \w+ \w+\[.*", text)]


def architectures_of(body: str) -> tuple[str, ...]:
    """Where a program can run: tensor cores take bfloat16 from sm_80 on."""
    return ARCHITECTURES[1:] if "mma_16x8x16_bf16" in body and "#define BF16 1\n" in body else ARCHITECTURES


def compile_all(bodies: dict[int, str], preamble: str) -> tuple[dict[tuple[int, str, str], Use], list[tuple[int, str, str]]]:
    """The kernels of all programs on all architectures, and (number, architecture, log) of those that do not compile as they should."""
    order = sorted(bodies, key=lambda n: hashlib.sha256(bodies[n].encode()).digest())  # the long ones among the others
    groups = [order[at:at + _BATCH] for at in range(0, len(order), _BATCH)]
    jobs = [(a, preamble, {n: bodies[n] for n in group if a in architectures_of(bodies[n])}) for group in groups for a in ARCHITECTURES]
    uses, failed = {}, []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for (architecture, _, _), (found, complaints) in zip(jobs, pool.map(compile_batch, jobs), strict=True):
            for name, use in found.items():
                kernel, _, number = name.rpartition("__")
                uses[int(number), kernel, architecture] = use
            failed += [(number, architecture, log) for number, log in complaints]
    return uses, failed


def uncompiled(programs: dict) -> list[str]:
    """The kernels in the texts of both packages that no program has, and those for CPUs that one has."""
    from .oclgrind import shipped
    texts = "\0".join(programs)
    return sorted(key for key, (_, text) in shipped().items() if (text in texts) == (key in FOR_CPUS))


def main(arguments: list[str]) -> int:
    if library() is None:
        print("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
        return 2
    from torchlite_kernels.preamble import CUDA
    warnings.simplefilter("ignore")
    began, names = time.time(), [a for a in arguments if a != "--record"]
    ops = Ops()
    ops.record(names)
    recorded = time.time()
    texts = list(ops.driver.programs)
    bodies = {number: text.removeprefix(CUDA) for number, text in enumerate(texts)}
    numbered, failed = compile_all(bodies, CUDA)
    uses = {(texts[number], kernel, architecture): use for (number, kernel, architecture), use in numbered.items()}
    functions = ops.backend.device(0).functions
    complaints = [*unseen(CUDA), *ops.complaints, *(words for body in bodies.values() for words in unlike_c(body)), *check_uses(uses, ops.driver.programs, given_sizes(functions))]
    for number, architecture, log in failed:
        complaints.append(f"{list(ops.driver.programs[texts[number]])} on {architecture}:\n{log[:1500]}")
    table = table_of(uses, entries(functions))
    if "--record" in arguments and not names:
        TABLE.write_text(written(table, version()))
    elif not names:
        complaints += compare(table)
        complaints += [f"{key} is {'for CPUs and' if key in FOR_CPUS else 'not'} compiled" for key in uncompiled(ops.driver.programs)]
    print(*dict.fromkeys(complaints), sep="\n")
    print(f"NVRTC {version()}: {len(texts)} programs, {len(uses)} kernels on {', '.join(ARCHITECTURES)}, {ops.runs} runs of ops; recorded in {recorded - began:.0f} s, "
          f"compiled in {time.time() - recorded:.0f} s: {'failed' if complaints else 'all compile, no new spill'}")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
