"""Compiles every program that the CUDA backend can ask for with NVRTC, to sm_75, sm_80 and sm_90, on a machine without
a GPU.

    python -m tests.nvrtc [--record] [--all] [op ...]

The programs are found by running ops on a driver that records (find_cuda_programs.py): every sample of the op table in
the dtypes that the op takes, forward and backward, pointwise ops in each way that the memory of one, two and three
operands can lie, and what tests/oclgrind.py runs besides.

In a dtype of each kind everything is compiled every time, pointwise rules over one long run. Some thousand programs
more differ from these by a dtype alone, or are products of two texts that do not depend on each other: a pointwise rule
and a way through memory. They are compiled where an op's line in tests/nvrtc/product.txt, a digest of all their texts,
is not that of the last run that compiled all of them; `--all` compiles them anyway. Where every digest is that of then,
the programs that are compiled every time are so for the newest architecture alone.

Fails where a program does not compile or warns, where a kernel's parameters are not of the sizes that it is given,
where a block needs more registers or shared memory than there are, where a text was not compiled, and where a kernel
spills more registers than tests/nvrtc/registers.txt says. `--record` compiles all and writes both tables anew. NVRTC is
the package `nvidia-cuda-nvrtc-cu12`.
"""

from __future__ import annotations

import collections
import ctypes
import hashlib
import importlib.util
import os
import re
import struct
import time
import warnings
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .find_cuda_programs import OTHER_PRODUCTS, Ops

ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
TABLE, PRODUCT = (Path(__file__).with_name(f"{name}.txt") for name in ("registers", "product"))
# Kernels that only CPUs are given.
FOR_CPUS = """
    embedding_backward.embedding_by_columns gemm.dots gemm.product gather_scatter.gather_rows pooling.maximum_backward
    rearrange.transpose_vectors
    reduce.part' reduce.whole' rnn.layer_steps sort.rank sort.rows
""".split()
_BATCH = 24
_EVERY_TIME = "*"  # the line of product.txt for what is compiled every time
_REGISTERS, _SHARED = 65536, 48 << 10  # of a block
_NAME_WIDTH = 52  # the first column of registers.txt


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
    """Resources of a kernel on one architecture: registers, bytes spilled (written and read), bytes of local and of
    shared memory; the sizes of its parameters.
    """

    registers: int = 0
    spilled: int = 0
    local: int = 0
    shared: int = 0
    parameters: list[int] = field(default_factory=list)


def uses_in(log: str, cubin: bytes) -> dict[str, Use]:
    """The kernels of a compiled text. What functions that are not inlined spill counts for the kernels of their
    namespace.
    """
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
    (sections,) = struct.unpack_from("<Q", cubin, 40)
    entry, count, names = struct.unpack_from("<HHH", cubin, 58)
    heads = [struct.unpack_from("<IIQQQQ", cubin, sections + entry * i) for i in range(count)]
    text = heads[names][4]
    wanted = f".nv.info.{kernel}\0".encode()
    for name, _, _, _, at, size in heads:
        if cubin[text + name : text + name + len(wanted)] == wanted:
            break
    else:
        return []
    sizes, end = {}, at + size
    while at < end:
        kind, attribute, length = struct.unpack_from("<BBH", cubin, at)
        if kind == 4 and attribute == 0x17:  # a parameter
            (ordinal,) = struct.unpack_from("<H", cubin, at + 8)
            sizes[ordinal] = struct.unpack_from("<I", cubin, at + 12)[0] >> 18
        at += 4 + (length if kind == 4 else 0)
    return [sizes[k] for k in sorted(sizes)]


def compile_batch(job: tuple[str, str, dict[int, str]]) -> tuple[dict[str, Use], list[tuple[int, str]]]:
    """Compile programs for an architecture; return the kernels, and the compiler's output for failures and warnings."""
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


# -- what this must see: a text that does not compile, one that means something else in C++, spills, and the sizes of
# parameters --

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
    missed = [
        name for name, body in _FAULTS.items() if not compile_batch(("sm_80", preamble, {0: body, 1: _SPILLS}))[1]
    ]
    use = compile_batch(("sm_80", preamble, {1: _SPILLS}))[0].get("spills__1", Use())
    missed += [] if use.spilled else ["registers that are spilled"]
    missed += [] if use.parameters == [8, 4, 8] else ["the sizes of parameters"]
    missed += [] if unlike_c(_FAULTS["a warning"]) and unlike_c("LOCAL float x[3];") else ["what is unlike C"]
    return [f"not seen: {name}" for name in missed]


# -- the table --


def entries(functions: dict) -> dict[tuple[str, str], list[str]]:
    """(program text, kernel): the line of the table that it belongs to, for what devices built: kernels of
    torchlite_backends.kernel_sources by dtype, generated ones by family.
    """
    from tests.oclgrind import shipped

    kernels = shipped()
    by_name: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    for key, (name, text) in kernels.items():
        by_name[name].append((key, text))
    found: dict[tuple[str, str], list[str]] = {}
    for (source, name, *kinds), function in functions.items():
        fits = [(key, text) for key, text in by_name[name] if text in source]
        keys = [key for key, text in fits if not any(other != text and other.startswith(text) for _, other in fits)]
        dtype = dict(kinds[0]).get("T", "") if kinds else ""
        mine = [f"{key} {dtype}".strip() for key in keys] or [f"generated.{name}"]
        found[function._text, name] = min(
            mine, found.get((function._text, name), mine)
        )  # one text for bool and for uint8
    return found


def lines_of(lines: dict[tuple[str, str], list[str]], text: str, name: str) -> list[str]:
    """Return a kernel's lines; a kernel that was compiled but never started has the line of its name."""
    return lines.get((text, name), [f"generated.{name}"])


def table_of(
    uses: dict[tuple[str, str, str], Use], lines: dict[tuple[str, str], list[str]]
) -> dict[str, dict[str, Use]]:
    """The most of each line's kernels by architecture."""
    table: dict[str, dict[str, Use]] = {}
    for (text, name, architecture), use in uses.items():
        for line in lines_of(lines, text, name):
            most = table.setdefault(line, {}).setdefault(architecture, Use())
            for what in ("registers", "spilled", "local", "shared"):
                setattr(most, what, max(getattr(most, what), getattr(use, what)))
    return table


def written(table: dict[str, dict[str, Use]], version: str) -> str:
    """The table's text."""
    head = [
        f"NVRTC {version}. For each architecture: registers, bytes spilled, bytes of local memory, bytes of shared "
        "memory; the most of a kernel's variants.",
        f"{'kernel and dtype':{_NAME_WIDTH}}" + "".join(f"{a:>24}" for a in ARCHITECTURES),
    ]
    rows = []
    for line in sorted(table):
        cells = [table[line].get(a, Use()) for a in ARCHITECTURES]
        rows.append(
            f"{line:{_NAME_WIDTH}}" + "".join(f"{f'{u.registers} {u.spilled} {u.local} {u.shared}':>24}" for u in cells)
        )
    return "\n".join(head + rows) + "\n"


def read() -> tuple[str, dict[str, list[int]]]:
    """NVRTC's version and the bytes spilled on each architecture, by line."""
    head, _, *rows = TABLE.read_text().splitlines()
    cells = {row[:_NAME_WIDTH].strip(): [int(n) for n in row[_NAME_WIDTH:].split()] for row in rows}
    return head.split()[1].rstrip("."), {line: numbers[1::4] for line, numbers in cells.items()}


def version() -> str:
    """NVRTC's version."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    found = library()
    assert found is not None
    found.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def known_products() -> dict[str, str]:
    """The digest of each op's product at the last run that compiled all of them with this NVRTC."""
    head, *rows = PRODUCT.read_text().splitlines() if PRODUCT.exists() else [""]
    return dict(row.split() for row in rows) if head == f"NVRTC {version()}" else {}


def digest(texts: list[str]) -> str:
    return hashlib.sha256("\0".join(sorted(texts)).encode()).hexdigest()[:32]


def compare(table: dict[str, dict[str, Use]], lines: set[str]) -> list[str]:
    """Return differences from the recorded table: lines, and bytes spilled if the table has the same version of NVRTC.
    `lines` are those of all kernels, compiled or left out.
    """
    recorded_with, recorded = read()
    complaints = [
        f"{line} is not in {TABLE.name}: python -m tests.nvrtc --record" for line in sorted(lines - set(recorded))
    ]
    complaints += [f"{line} is in {TABLE.name}, and nothing asks for it" for line in sorted(set(recorded) - lines)]
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


def check_uses(
    uses: dict[tuple[str, str, str], Use], programs: dict, given: dict[tuple[str, str], list[int]]
) -> list[str]:
    """Kernels that could not be started as they were."""
    complaints = []
    for (text, name, architecture), use in uses.items():
        kernel = programs[text].get(name)
        threads = kernel.threads if kernel else 0
        if -(-use.registers // 8) * 8 * (-(-threads // 32) * 32) > _REGISTERS or use.shared > _SHARED:
            complaints.append(
                f"{name} on {architecture}: {threads} threads of {use.registers} registers, {use.shared} bytes of "
                "shared memory"
            )
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
    """Return constructs with another meaning in C++ than in OpenCL C: vectors written as casts of several
    numbers, local arrays without the macro.
    """
    found = []
    for match in re.finditer(r"\(\w+\)\(", text):
        depth, at = 1, match.end()
        while depth and at < len(text):
            depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(text[at], 0)
            if text[at] == "," and depth == 1:
                found.append(f"{text[match.start() : at + 20]}: use VEC2")
                break
            at += 1
    return found + [f"{match[0]}: use LOCAL_ARRAY" for match in re.finditer(r"\bLOCAL \w+ \w+\[.*", text)]


def architectures_of(body: str) -> tuple[str, ...]:
    """Where a program can run: tensor cores take bfloat16 from sm_80 on."""
    return ARCHITECTURES[1:] if "mma_16x8x16_bf16" in body and "#define BF16 1\n" in body else ARCHITECTURES


class Compiler:
    """Compiles programs, many at a time and in other processes, while more are found: at once for the newest
    architecture, for the others when asked to.
    """

    def __init__(self, preamble: str):
        self.preamble = preamble
        self.texts: list[str] = []
        self.architectures = ARCHITECTURES[-1:]
        self._batch: dict[int, str] = {}
        self._batches: list[dict[int, str]] = []
        self._pool = ProcessPoolExecutor(os.cpu_count())
        self._jobs: list[tuple[str, Future]] = []

    def add(self, text: str) -> None:
        """A program, whose number is its place in `texts`."""
        self._batch[len(self.texts)] = text.removeprefix(self.preamble)
        self.texts.append(text)
        if len(self._batch) == _BATCH:
            self._close()

    def for_all_architectures(self) -> None:
        """Compiles what was added for the other architectures too."""
        self._close()
        self.architectures = ARCHITECTURES
        for batch in self._batches:
            self._submit(batch, ARCHITECTURES[:-1])

    def _close(self) -> None:
        self._batches.append(self._batch)
        self._submit(self._batch, ARCHITECTURES[-1:])
        self._batch = {}

    def _submit(self, batch: dict[int, str], architectures: tuple[str, ...]) -> None:
        for architecture in architectures:
            bodies = {number: body for number, body in batch.items() if architecture in architectures_of(body)}
            self._jobs.append((architecture, self._pool.submit(compile_batch, (architecture, self.preamble, bodies))))

    def results(self) -> tuple[dict[tuple[str, str, str], Use], list[tuple[str, str, str]]]:
        """The kernels of all programs: (text, kernel, architecture): use; and (text, architecture, log) of those that
        do not compile as they should.
        """
        self._close()
        uses, failed = {}, []
        for architecture, job in self._jobs:
            found, complaints = job.result()
            for name, use in found.items():
                kernel, _, number = name.rpartition("__")
                uses[self.texts[int(number)], kernel, architecture] = use
            failed += [(self.texts[number], architecture, log) for number, log in complaints]
        self._pool.shutdown()
        return uses, failed


def uncompiled(programs: dict) -> list[str]:
    """The kernels in the texts of torchlite_backends.kernel_sources that no program has, and those for CPUs that one
    has.
    """
    from tests.oclgrind import shipped

    texts = "\0".join(programs)
    return sorted(key for key, (_, text) in shipped().items() if (text in texts) == (key in FOR_CPUS))


def main(arguments: list[str]) -> int:
    if library() is None:
        print("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
        return 2
    from torchlite_backends.kernel_sources.preamble import CUDA

    warnings.simplefilter("ignore")
    began, names = time.time(), [a for a in arguments if not a.startswith("--")]
    compiler = Compiler(CUDA)
    ops = Ops(compiler.add)
    ops.record(names)
    known, left_out = {} if {"--all", "--record"} & set(arguments) else known_products(), 0
    found = {} if names else {_EVERY_TIME: digest(compiler.texts)}
    for name in names or (*ops.rows, *OTHER_PRODUCTS):
        texts = ops.product(name)
        found[name] = digest(texts)
        if known.get(name) == found[name]:
            left_out += len(texts)
        else:
            for text in texts:
                compiler.add(text)
    if any(known.get(name) != found[name] for name in found):
        compiler.for_all_architectures()
    uses, failed = compiler.results()
    functions = ops.backend.device(0).functions
    complaints = [
        *unseen(CUDA),
        *ops.complaints,
        *(words for text in compiler.texts for words in unlike_c(text.removeprefix(CUDA))),
        *check_uses(uses, ops.driver.programs, given_sizes(functions)),
    ]
    for text, architecture, log in failed:
        complaints.append(f"{list(ops.driver.programs[text])} on {architecture}:\n{log[:1500]}")
    lines = entries(functions)
    table = table_of(uses, lines)
    if "--record" in arguments and not names:
        TABLE.write_text(written(table, version()))
        if not complaints:
            PRODUCT.write_text(
                "\n".join([f"NVRTC {version()}", *(f"{name} {found[name]}" for name in sorted(found))]) + "\n"
            )
    elif not names:
        complaints += compare(
            table,
            {
                line
                for text in ops.driver.programs
                for name in _KERNEL.findall(text.removeprefix(CUDA))
                for line in lines_of(lines, text, name)
            },
        )
        complaints += [
            f"{key} is {'for CPUs and' if key in FOR_CPUS else 'not'} compiled"
            for key in uncompiled(ops.driver.programs)
        ]
    print(*dict.fromkeys(complaints), sep="\n")
    print(
        f"NVRTC {version()}: {len(compiler.texts)} programs, {len(uses)} kernels "
        f"on {', '.join(compiler.architectures)}, {left_out} programs more "
        f"as they were; {ops.runs} runs of ops, {time.time() - began:.0f} s: "
        f"{'failed' if complaints else 'all compile, no new spill'}"
    )
    return int(bool(complaints))
