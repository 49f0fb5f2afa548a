"""Kernels of torchlite_backends.kernel_sources as CUDA programs against NumPy, launched without the code above them:
under several schedules, and under the address sanitizer.

The whole device suite runs on the simulator with `--device cuda --simulate-cuda`; these are the ones that share memory
and wait for one another.
"""

import re
import struct

import numpy as np
import pytest

from tests.cuda_simulator import Program, allocate, free, in_sanitized_child, kernel_compiler, view
from torchlite_backends.kernel_sources import cross_entropy, flash_attention_cuda, gemm, normalisation, philox, softmax
from torchlite_backends.kernel_sources.dtype_kinds import KINDS
from torchlite_backends.kernel_sources.preamble import CUDA, dtype_macros_source

pytestmark = pytest.mark.skipif(bool(kernel_compiler.missing()), reason=kernel_compiler.missing())
SEEDS = (0, 1, 2)
LIMITS = {"f32": 1e-5, "f64": 1e-13, "f16": 2e-3, "bf16": 1.6e-2}


def to_bits(values, kind):
    """An array as a kernel stores it."""
    if kind != "bf16":
        return np.ascontiguousarray(values, KINDS[kind].numpy)
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def to_numbers(stored, kind):
    """Return the stored values in double precision."""
    return ((stored.astype(np.uint32) << 16).view(np.float32) if kind == "bf16" else stored).astype(np.float64)


class Launcher:
    """Builds programs and launches them with arrays that lie an odd number of elements into memory
    of just their size.
    """

    def __init__(self, folder, sanitize=False):
        self.folder, self.sanitize, self.addresses = folder, sanitize, []

    def new(self, shape, kind, offset=0):
        dtype = np.dtype("uint16" if kind == "bf16" else KINDS[kind].numpy)
        size = int(np.prod(shape)) + offset
        self.addresses.append(allocate(size * dtype.itemsize, sanitize=self.sanitize))
        return np.frombuffer(view(self.addresses[-1], size * dtype.itemsize), dtype)[offset:].reshape(shape)

    def of(self, values, kind, offset=0):
        made = self.new(np.shape(values), kind, offset)
        made[...] = to_bits(values, kind)
        return made

    def program(self, text):
        return Program(text, sanitize=self.sanitize, folder=self.folder)

    def run(self, source, name, blocks, threads, arguments, seed, widths=(), **kinds):
        """`arguments` are arrays, and packed numbers; `kinds` data types and macros, as for a Device's `function`."""
        typed = {k: v for k, v in kinds.items() if v in KINDS}
        defined = "".join(f"#define {k} {v}\n" for k, v in kinds.items() if v not in KINDS)
        program = self.program(CUDA + dtype_macros_source(widths, target="cuda", **typed) + defined + source)
        packed = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                base = max(a for a in self.addresses if a <= argument.ctypes.data)
                packed += [struct.pack("P", base), struct.pack("i", (argument.ctypes.data - base) // argument.itemsize)]
            else:
                packed.append(argument)
        program.launch(name, (blocks,), (threads,), packed, seed)

    def free(self):
        for address in self.addresses:
            free(address, self.sanitize)
        self.addresses = []


def ints(*values):
    return [struct.pack("i", v) for v in values]


def laid_out(rows, n, kind, inner=1):
    """Macros, widths, blocks and threads of a launch over rows as GPUs get it: a block for a long row, a thread for a
    short one or one across memory.
    """
    lanes = 1 if n <= 32 or inner > 1 else 128
    width = 1 if lanes == 1 else 2 if kind == "f64" else 4
    macros = {"W": str(width), "LANES": str(lanes), "COLUMNS": str(int(inner > 1))}
    return (
        macros,
        tuple(w for w in (2, 4) if w <= width),
        rows if lanes > 1 else -(-rows // 64),
        lanes if lanes > 1 else 64,
    )


def compare(found, expected, kind, scale=1.0):
    np.testing.assert_allclose(to_numbers(found, kind), expected, rtol=LIMITS[kind] * scale, atol=LIMITS[kind] * scale)


# ---- each check makes its arrays, runs under one schedule and compares ----


def rows_of_softmax(launcher, seed, kind, shape, offset):
    rng = np.random.default_rng(7)
    rows, n = shape
    x = launcher.of(rng.standard_normal(shape) * 3, kind, offset)
    values = to_numbers(x, kind)
    e = np.exp(values - values.max(1, keepdims=True))
    right = e / e.sum(1, keepdims=True)
    macros, widths, blocks, threads = laid_out(rows, n, kind)
    macros["RECOMPUTE"] = str(int(kind in ("f16", "bf16")))
    out = launcher.new(shape, kind, offset)
    launcher.run(
        softmax.SOFTMAX, "softmax", blocks, threads, [x, out, *ints(rows, n, 1, 1)], seed, widths, T=kind, **macros
    )
    compare(out, right, kind)
    g = launcher.of(rng.standard_normal(shape), kind, offset)
    grad = launcher.new(shape, kind, offset)
    launcher.run(
        softmax.SOFTMAX_BACKWARD,
        "softmax_backward",
        blocks,
        threads,
        [g, out, grad, *ints(rows, n, 1, 1)],
        seed,
        widths,
        T=kind,
        **macros,
    )
    g, y = to_numbers(g, kind), to_numbers(out, kind)
    compare(grad, (g - (g * y).sum(1, keepdims=True)) * y, kind)


def columns_of_log_softmax(launcher, seed, kind, shape, offset):
    rng = np.random.default_rng(8)
    outer, n, inner = shape
    x = launcher.of(rng.standard_normal(shape) * 3, kind, offset)
    values = to_numbers(x, kind)
    out = launcher.new(shape, kind, offset)
    macros, widths, blocks, threads = laid_out(outer * inner, n, kind, inner)
    macros["RECOMPUTE"] = "0"
    launcher.run(
        softmax.LOG_SOFTMAX,
        "log_softmax",
        blocks,
        threads,
        [x, out, *ints(outer * inner, n, inner, 1)],
        seed,
        widths,
        T=kind,
        **macros,
    )
    compare(out, values - np.log(np.exp(values).sum(1, keepdims=True)), kind, 4)


def layer_norm(launcher, seed, kind, shape, offset):
    rng = np.random.default_rng(9)
    rows, n = shape
    wide = "f64" if kind == "f64" else "f32"
    x, g = (launcher.of(rng.standard_normal(shape) * 2 + 1, kind, offset) for _ in range(2))
    weight, bias = (launcher.of(rng.standard_normal(n), kind, offset) for _ in range(2))
    out, dx = (launcher.new(shape, kind, offset) for _ in range(2))
    mean, rstd = (launcher.new(rows, wide) for _ in range(2))
    macros, widths, blocks, threads = laid_out(rows, n, kind)
    kinds = {"T": kind, "P": kind, **macros}
    numbers = [*ints(rows, n, 1, 7), struct.pack(KINDS[wide].pack, 1e-5)]
    launcher.run(
        normalisation.LAYER_NORM,
        "layer_norm",
        blocks,
        threads,
        [x, weight, bias, out, mean, rstd, *numbers],
        seed,
        widths,
        **kinds,
    )
    v, w, b, dy = (to_numbers(a, kind) for a in (x, weight, bias, g))
    centred, inverse = v - v.mean(1, keepdims=True), 1 / np.sqrt(v.var(1, keepdims=True) + 1e-5)
    compare(out, centred * inverse * w + b, kind, 4)
    compare(mean, v.mean(1), wide, 4)
    compare(rstd, inverse[:, 0], wide, 4)
    # Each worker has its rows' share of the sums, which COLUMN_SUMS adds up.
    per = 2
    workers = -(-rows // per)
    sums = [launcher.new((workers, n), wide) for _ in range(2)]
    launcher.run(
        normalisation.LAYER_NORM_BACKWARD,
        "layer_norm_backward",
        workers if threads == 128 else 1,
        threads,
        [g, x, weight, mean, rstd, dx, *sums, *ints(rows, n, per, 61)],
        seed,
        widths,
        **kinds,
    )
    scaled = dy * w
    right = (
        scaled - scaled.mean(1, keepdims=True) - centred * inverse**2 * (scaled * centred).mean(1, keepdims=True)
    ) * inverse
    compare(dx, right, kind, 8)
    compare(sums[0].sum(0), (dy * centred * inverse).sum(0), wide, 20)
    compare(sums[1].sum(0), dy.sum(0), wide, 20)
    total = [launcher.new(n, kind, offset) for _ in range(2)]
    columns = {"T": wide, "P": kind, "W": "1", "LANES": "1", "COLUMNS": "1"}
    launcher.run(
        normalisation.COLUMN_SUMS,
        "column_sums",
        -(-2 * n // 64),
        64,
        [*sums, *total, *ints(workers, n, 48)],
        seed,
        **columns,
    )
    compare(total[0], sums[0].astype(np.float64).sum(0), kind, 4)
    compare(total[1], sums[1].astype(np.float64).sum(0), kind, 4)


def losses(launcher, seed, kind, shape, offset):
    rng = np.random.default_rng(10)
    rows, n = shape
    wide = "f64" if kind == "f64" else "f32"
    x = launcher.of(rng.standard_normal(shape) * 3, kind, offset)
    chosen = rng.integers(0, n, rows)
    chosen[1] = -100
    target = launcher.of(chosen, "i64", offset)
    weight = launcher.of(rng.uniform(0.5, 2, n), wide, offset)
    lse, each, shares, total = (launcher.new(k, wide) for k in (rows, rows, rows, 1))
    result, grad, dx, error = (
        launcher.new(1, kind),
        launcher.of([1.5], kind),
        launcher.new(shape, kind, offset),
        launcher.of([0, 0, 0, 0], "i32"),
    )
    macros, widths, blocks, threads = laid_out(rows, n, kind)
    kinds = {"T": kind, "P": wide, "I": "i64", **macros}
    numbers = [*ints(rows, n, 1, 1, 3), struct.pack("q", -100)]
    launcher.run(
        cross_entropy.CROSS_ENTROPY,
        "cross_entropy",
        blocks,
        threads,
        [x, target, weight, lse, each, shares, result, error, *ints(1), *numbers],
        seed,
        widths,
        **kinds,
    )
    v = to_numbers(x, kind)
    sums, place = np.log(np.exp(v).sum(1)), np.where(chosen < 0, 0, chosen)
    share = np.where(chosen < 0, 0, to_numbers(weight, wide)[place])
    compare(lse, sums, wide, 4)
    compare(each, (sums - v[np.arange(rows), place]) * share, wide, 8)
    one = laid_out(1, rows, kind)
    launcher.run(
        cross_entropy.CROSS_ENTROPY_TOTAL,
        "cross_entropy_total",
        1,
        one[3],
        [each, shares, result, *ints(rows, 3)],
        seed,
        one[1],
        T=kind,
        **one[0],
    )
    compare(result, [((sums - v[np.arange(rows), place]) * share).sum() / share.sum()], kind, 4)
    launcher.run(
        cross_entropy.CROSS_ENTROPY_WEIGHTS,
        "cross_entropy_weights",
        1,
        one[3],
        [target, weight, total, *ints(rows, n, 3), struct.pack("q", -100)],
        seed,
        one[1],
        T=kind,
        P=wide,
        I="i64",
        **one[0],
    )
    compare(total, [share.sum()], wide, 4)
    launcher.run(
        cross_entropy.CROSS_ENTROPY_BACKWARD,
        "cross_entropy_backward",
        blocks,
        threads,
        [grad, x, target, weight, lse, total, dx, *ints(rows, n, 1, 1, 3, rows), struct.pack("q", -100)],
        seed,
        widths,
        **kinds,
    )
    right = np.exp(v - sums[:, None])
    right[np.arange(rows), place] -= 1
    compare(dx, right * (1.5 * share / share.sum())[:, None], kind, 4)


def philox_words(blocks, key):
    """Philox4x32-10 (Salmon et al., 2011) of the counters (block, 0, 0, 0)."""
    nothing = np.zeros_like(blocks)
    c = [blocks & np.uint64(0xFFFFFFFF), blocks >> np.uint64(32), nothing, nothing]
    for k in range(10):
        k0, k1 = ((key[0] + k * 0x9E3779B9) & 0xFFFFFFFF, (key[1] + k * 0xBB67AE85) & 0xFFFFFFFF)
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        high, low = np.uint64(32), np.uint64(0xFFFFFFFF)
        c = [(p1 >> high) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> high) ^ c[3] ^ np.uint64(k1), p0 & low]
    return np.stack(c)


def drawn(launcher, seed, kind, count, offset):
    real = "double" if kind == "f64" else "float"
    text, per = philox.distribution_source("uniform", real)
    out = launcher.new(count, kind, offset)
    words = {
        "T": kind,
        "S": real,
        "R": real,
        "U": "uint",
        "UL": "ulong",
        "LANES": "1",
        "IOTA": "0",
        "TO_T": f"({KINDS[kind].computed})",
        "TO_R": f"({real})",
        "TO_U": "(uint)",
        "TO_UL": "(ulong)",
    }
    key, first = (0x12345678, 0x9ABCDEF0), 2**32 - 7
    blocks = 16 * -(-count // (16 * per))
    code = "d" if kind == "f64" else "f"
    numbers = [*ints(count), *(struct.pack("I", k) for k in key), struct.pack("Q", first)]
    numbers += [*(struct.pack(code, v) for v in (-1, 3, 2)), struct.pack("I", 0)]
    launcher.run(text, "draw", -(-blocks // 64), 64, [out, *numbers], seed, **words)
    w = philox_words(np.arange(first, first + blocks, dtype=np.uint64), key)
    unit = (
        (w >> np.uint64(8)) * 2.0**-24 if per == 4 else (w[::2] << np.uint64(21) ^ w[1::2] >> np.uint64(11)) * 2.0**-53
    )
    # Sixteen blocks fill neighbouring elements, the first values first.
    right = unit.reshape(per, -1, 16).transpose(1, 0, 2).reshape(-1)[:count] * 3 - 1
    compare(out, right, kind)


def product(launcher, seed, kind, sizes, offset):
    rng = np.random.default_rng(11)
    m, n, k = sizes
    sums = gemm.accumulation_type_of(kind)
    a, b, d, c = (launcher.of(rng.standard_normal(s), kind, offset) for s in ((2, m, k), (n, k), (2, m, n), (2, m, n)))
    side = 8
    tile = side * gemm.TILE_PER_THREAD
    fields = {
        "m": m,
        "n": n,
        "k": k,
        "am": k,
        "ak": 1,
        "bk": 1,
        "bn": k,
        "cm": n,
        "cn": 1,
        "dm": n,
        "dn": 1,
        "inner": 1,
        "a0": m * k,
        "c0": m * n,
        "d0": m * n,
        "added": 1,
        "tiles": -(-m // tile),
        "panels": -(-n // tile),
        "splits": 1,
        "depth": k,
        "a_fast": 1,
        "b_fast": 1,
    }
    shape = gemm.pack_shape(*(fields.get(name, 0) for name in gemm.FIELDS))
    nothing = launcher.of([0], "i32")
    numbers = [shape, struct.pack(sums.pack, 2), struct.pack(sums.pack, -1)]
    launcher.run(
        gemm.tiles_source(kind, kind, side),
        "tiles",
        2 * fields["tiles"] * fields["panels"],
        side * side,
        [a, b, c, d, nothing, *numbers],
        seed,
        T=kind,
        U=kind,
    )
    a, b, d = (to_numbers(v, kind) for v in (a, b, d))
    compare(c, 2 * a @ b.T - d, kind, 20)


def attention_on_tensor_cores(launcher, seed, kind, sizes, causal):
    rng = np.random.default_rng(12)
    heads, rows, columns, features = sizes
    kernel = flash_attention_cuda.kernel_source("forward", kind, -(-features // 32) * 32)
    q, k, v = (launcher.of(rng.standard_normal((heads, n, features)), kind) for n in (rows, columns, columns))
    out, lse, nothing = launcher.new(q.shape, kind), launcher.new((heads, rows), "f32"), launcher.of([0], "f32")
    walk = [struct.pack("4i", 0, n * features, features, 0) for n in (rows, columns, columns, 0, rows, 0)]
    shape = struct.pack("6i", heads, rows, columns, features, features, causal) + b"".join(walk)
    scale = features**-0.5
    launcher.run(
        kernel.text,
        "forward",
        heads * -(-rows // kernel.tiles.own),
        32 * flash_attention_cuda.WARPS,
        [q, k, v, nothing, out, lse, shape, struct.pack("f", scale)],
        seed,
        **kernel.kinds,
    )
    q, k, v = (to_numbers(a, kind) for a in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) * scale
    if causal:
        scores = np.where(np.arange(columns) > np.arange(rows)[:, None], -np.inf, scores)
    e = np.exp(scores - scores.max(2, keepdims=True))
    compare(out, e / e.sum(2, keepdims=True) @ v, kind)
    np.testing.assert_allclose(lse, np.log(np.exp(scores).sum(2)), rtol=1e-4, atol=1e-4)


FLOATS = ("f32", "f16", "bf16", "f64")
CASES = {
    "softmax": [
        (rows_of_softmax, kind, shape, offset)
        for kind in FLOATS
        for shape, offset in (((3, 130), 0), ((2, 700), 1), ((70, 9), 3))
    ],
    "log_softmax": [(columns_of_log_softmax, kind, (2, 5, 40), offset) for kind in FLOATS for offset in (0, 1)],
    "layer_norm": [
        (layer_norm, kind, shape, offset)
        for kind in FLOATS
        for shape, offset in (((5, 257), 1), ((4, 256), 0), ((7, 12), 0))
    ],
    "cross_entropy": [
        (losses, kind, shape, offset) for kind in FLOATS for shape, offset in (((4, 131), 1), ((40, 10), 0))
    ],
    "philox": [(drawn, kind, count, offset) for kind in FLOATS for count, offset in ((1000, 0), (77, 1))],
    "gemm": [
        (product, kind, sizes, offset) for kind in FLOATS for sizes, offset in (((40, 33, 19), 1), ((32, 64, 16), 0))
    ],
    "attention": [
        (attention_on_tensor_cores, kind, sizes, causal)
        for kind in ("f16", "bf16")
        for sizes, causal in (((2, 70, 130, 32), 0), ((1, 150, 150, 64), 1), ((1, 33, 65, 40), 0))
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.getbasetemp() / "cuda_programs"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", [*CASES])
def test_against_numpy(family, seed, folder):
    run_family(family, str(folder), seed, False)


def run_family(family, folder, seed, sanitize):
    for check, *arguments in CASES[family]:
        launcher = Launcher(folder, sanitize)
        try:
            check(launcher, seed, *arguments)
        except Exception as error:
            error.add_note(f"{check.__name__}{(*arguments,)} with seed {seed}")
            raise
        launcher.free()
    print(f"{family} went through")


@pytest.mark.night
@pytest.mark.parametrize("family", [*CASES])
def test_under_the_address_sanitizer(family, folder):
    done = in_sanitized_child(__name__, "run_family", family, str(folder), 0, True)
    assert done.returncode == 0 and f"{family} went through" in done.stdout, done.stderr


# The barriers of kernels, and which of them order accesses: the others guard against an earlier use, which these
# kernels do not make.
ORDERED = {
    "softmax": (rows_of_softmax, ("f32", (3, 130), 0), r"\bBARRIER\b(?=;)", (0, 1, 2, 4, 5)),
    "gemm": (product, ("f32", (40, 33, 19), 0), r"\bBARRIER\b(?=;)", (0, 1)),
    "attention": (
        attention_on_tensor_cores, ("f16", (1, 150, 150, 64), 0), r"\bBARRIER\b(?=;)|cp_async_wait<0>\(\)",
        (0, 1, 2, 3),
    ),
}  # fmt: skip


class Without(Launcher):
    """Leaves out one of the places of a kernel that a pattern finds."""

    def __init__(self, folder, pattern, which):
        super().__init__(folder)
        self.pattern, self.which = pattern, which

    def program(self, text):
        kernel = text[len(CUDA) :]
        places = [*re.finditer(self.pattern, kernel)]
        if self.which < len(places):
            at = places[self.which]
            kernel = f"{kernel[: at.start()]}(void)0{kernel[at.end() :]}"
        return super().program(CUDA + kernel)


@pytest.mark.parametrize("family, which", [(family, which) for family in ORDERED for which in ORDERED[family][3]])
def test_missing_barriers_are_detected(family, which, folder):
    """With two schedules or three: its results are wrong under one of them."""
    check, arguments, pattern, _ = ORDERED[family]
    wrong = []
    for seed in SEEDS:
        launcher = Without(folder, pattern, which)
        try:
            check(launcher, seed, *arguments)
        except AssertionError:
            wrong.append(seed)
        launcher.free()
    assert wrong
