"""The simulator itself: launches, barriers, warp functions, tensor cores, and that it reports what is wrong with a
kernel.
"""

import math
import re
import struct
from statistics import NormalDist

import numpy as np
import pytest

from tests.cuda_simulator import Program, SimulatorError, allocate, free, in_sanitized_child, kernel_compiler, view

pytestmark = pytest.mark.skipif(bool(kernel_compiler.missing()), reason=kernel_compiler.missing())
SEEDS = (0, 1, 2, 3)


@pytest.fixture(autouse=True)
def _folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.getbasetemp() / "cuda_programs"
    monkeypatch.setattr(kernel_compiler, "default_folder", lambda: folder)


class Arrays:
    """NumPy arrays in the simulator's memory, and parameters from them and from numbers."""

    def __init__(self, sanitize=False):
        self.sanitize, self.addresses = sanitize, []

    def new(self, shape, dtype, value=0xFF):
        dtype = np.dtype(dtype)
        nbytes = int(np.prod(shape)) * dtype.itemsize
        self.addresses.append(allocate(nbytes, value, self.sanitize))
        return np.frombuffer(view(self.addresses[-1], nbytes), dtype).reshape(shape)

    def of(self, values):
        made = self.new(values.shape, values.dtype)
        made[...] = values
        return made

    def free(self):
        for address in self.addresses:
            free(address, self.sanitize)
        self.addresses = []


@pytest.fixture
def arrays():
    made = Arrays()
    yield made
    made.free()


def parameters(*values):
    """An array as its address, a Python int as int, bytes as they are."""
    return [
        struct.pack("P", v.ctypes.data)
        if isinstance(v, np.ndarray)
        else struct.pack("i", v)
        if isinstance(v, int)
        else v
        for v in values
    ]


def results_of(text, name, threads, make, seeds=SEEDS, blocks=1, **options):
    """Return the first array after a kernel's launch for each seed; `make` creates the arguments."""
    program = Program(text, **options)
    found = []
    for seed in seeds:
        memory = Arrays()
        arguments = make(memory)
        program.launch(name, (blocks,), (threads,), parameters(*arguments), seed)
        found.append(arguments[0].copy())
        memory.free()
    return found


# ---- launching ----

ADD = r"""
extern "C" __global__ void __launch_bounds__(256) add(const float* __restrict__ x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}
"""


@pytest.mark.parametrize("portable", [False, True])
def test_add(arrays, rng, portable):
    x, y = (arrays.of(rng.standard_normal(1000).astype(np.float32)) for _ in range(2))
    program = Program(ADD, portable=portable)
    for seed in SEEDS:
        out = arrays.new(1000, np.float32)
        program.launch("add", (4,), (256,), parameters(x, y, out, 1000), seed)
        np.testing.assert_array_equal(out, x + y)


def test_parameters_and_dimensions(arrays):
    text = r"""
    struct Pair { double real, imaginary; };
    __global__ void k(long long* out, char a, long long b, Pair c, float d, unsigned short e) {
        long long at = ((long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        long long count = blockDim.x * blockDim.y * blockDim.z;
        at = at * count + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        out[at] = at * 1000 + a + b + (long long)(c.real * c.imaginary) + (long long)d + e;
    }
    """
    out = arrays.new(2 * 3 * 4 * 5 * 3 * 2, np.int64)
    values = [
        struct.pack(code, *v)
        for code, *v in (("P", out.ctypes.data), ("b", -3), ("q", 2**40), ("dd", 3, 5), ("f", 7), ("H", 65535))
    ]
    for seed in SEEDS:
        out[:] = 0
        Program(text).launch("k", (2, 3, 4), (5, 3, 2), values, seed)
        np.testing.assert_array_equal(out, np.arange(out.size) * 1000 - 3 + 2**40 + 15 + 7 + 65535)


def test_ctypes_parameters(arrays):
    import ctypes

    out = arrays.new(3, np.float32)
    Program(ADD).launch("add", (1,), (32,), [ctypes.c_void_p(out.ctypes.data)] * 3 + [ctypes.c_int(0)])
    assert np.isnan(out).all()


def test_launch_rejects_wrong_names_parameters_and_sizes(arrays):
    out = arrays.new(3, np.float32)
    program = Program(ADD)
    good = parameters(out, out, out, 3)
    with pytest.raises(SimulatorError, match=r"no kernel sub; it has add"):
        program.launch("sub", (1,), (1,), good)
    with pytest.raises(SimulatorError, match=r"takes parameters of \[8, 8, 8, 4\] bytes, not \[8, 8, 8\]"):
        program.launch("add", (1,), (1,), good[:3])
    with pytest.raises(SimulatorError, match=r"takes parameters of \[8, 8, 8, 4\] bytes, not \[8, 8, 8, 8\]"):
        program.launch("add", (1,), (1,), [*good[:3], struct.pack("q", 3)])
    with pytest.raises(SimulatorError, match="more than 1024 threads"):
        program.launch("add", (1,), (64, 32), good)
    with pytest.raises(SimulatorError, match=r"a grid of \(1, 65536\)"):
        program.launch("add", (1, 65536), (1,), good)
    with pytest.raises(SimulatorError, match=r"a block of \(1, 1, 65\)"):
        program.launch("add", (1,), (1, 1, 65), good)
    with pytest.raises(SimulatorError, match="blocks of 512 threads, but kernel bounded has __launch_bounds__ of 256"):
        Program("#define N 64\n__global__ void __launch_bounds__(4 * (N), 2) bounded() {}").launch(
            "bounded", (1,), (512,), []
        )
    with pytest.raises(
        SimulatorError, match="kernel large shares 49156 bytes among the threads of a block, more than 49152"
    ):
        Program(
            "__global__ void large(int* x) { __shared__ int kept[12289]; kept[threadIdx.x] = 1; x[0] = kept[x[1]]; }"
        ).kernel("large")
    with pytest.raises(SimulatorError, match=r"'?missing_function'? was not declared"):
        Program("__global__ void k() { missing_function(); }")


def test_names_of_kernels():
    text = r"""
    // __global__ void not_this() {}
    #define KERNEL extern "C" __global__
    #define BOUNDED(n) KERNEL void __launch_bounds__(n)
    #define WRITTEN(name) KERNEL void name() {}
    KERNEL void a(int x) {}
    KERNEL __launch_bounds__(128, 2) void b() {}
    KERNEL void __launch_bounds__(128) c() {}
    BOUNDED(64) d() {}
    WRITTEN(e)
    """
    assert kernel_compiler.kernel_names(text) == {"a": "1024", "b": "128", "c": "128"}
    assert Program(text, names=("d", "e")).kernel("e").sizes == []


def test_programs_are_cached_on_disk(tmp_path, arrays, monkeypatch):
    x = arrays.of(np.ones(4, np.float32))
    Program(ADD, folder=tmp_path)
    kept = list(tmp_path.rglob("*.so"))
    assert len(kept) == 1
    monkeypatch.setattr(kernel_compiler.subprocess, "run", None)
    Program(ADD, folder=tmp_path).launch("add", (1,), (4,), parameters(x, x, x, 4))
    np.testing.assert_array_equal(x, 2)


# ---- barriers ----

SUM = r"""
__global__ void total(float* out, const float* x, int n) {
    __shared__ float parts[8];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[i];
    for (int k = 16; k > 0; k /= 2) v += __shfl_xor_sync(0xffffffffu, v, k);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 8) {
        v = parts[threadIdx.x];
        for (int k = 4; k > 0; k /= 2) v += __shfl_down_sync(0xff, v, k, 8);
        if (threadIdx.x == 0) *out = v;
    }
}
"""
REVERSE = r"""
__global__ void reversed(int* out, const int* x) {
    __shared__ int kept[256];
    kept[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = kept[255 - threadIdx.x];
}
"""


@pytest.mark.parametrize("portable", [False, True])
def test_reduction(rng, portable):
    x = rng.integers(-100, 100, 5000).astype(np.float32)
    for found in results_of(
        SUM, "total", 256, lambda memory: (memory.new(1, np.float32), memory.of(x), 5000), portable=portable
    ):
        assert found[0] == x.sum()


def test_missing_barrier_shows_under_two_seeds():
    x = np.arange(256, dtype=np.int32)

    def make(memory):
        return memory.new(256, np.int32), memory.of(x)

    for found in results_of(REVERSE, "reversed", 256, make):
        np.testing.assert_array_equal(found, x[::-1])
    ascending, descending = results_of(REVERSE.replace("__syncthreads();", ""), "reversed", 256, make, seeds=(0, 1))
    assert not np.array_equal(ascending, descending)


def test_shared_memory_begins_spoiled():
    text = r"""
    __global__ void sums(float* out) {
        __shared__ float kept[64];
        kept[threadIdx.x] += 1;
        out[blockIdx.x * 64 + threadIdx.x] = kept[threadIdx.x];
    }
    """
    even, odd = results_of(text, "sums", 64, lambda memory: (memory.new(192, np.float32),), seeds=(0, 1), blocks=3)
    assert np.isnan(even).all()
    assert (odd > 1e36).all()


def test_dynamic_shared_memory(arrays):
    text = r"""
    __global__ void shift(int* x) {
        extern __shared__ int kept[];
        kept[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = kept[(threadIdx.x + 1) % blockDim.x];
    }
    """
    x = arrays.of(np.arange(100, dtype=np.int32))
    Program(text).launch("shift", (1,), (100,), parameters(x), 2, shared=400)
    np.testing.assert_array_equal(x, (np.arange(100) + 1) % 100)


def test_votes_of_a_block():
    text = r"""
    __global__ void votes(int* out) {
        int odd = threadIdx.x & 1, t = 3 * threadIdx.x;
        out[t] = __syncthreads_count(odd);
        out[t + 1] = __syncthreads_or(threadIdx.x == 70);
        out[t + 2] = __syncthreads_and(threadIdx.x != 70);
    }
    """
    for found in results_of(text, "votes", 96, lambda memory: (memory.new((96, 3), np.int32),)):
        np.testing.assert_array_equal(found, np.broadcast_to([48, 1, 0], (96, 3)))


def report_of(body, threads=64, seed=0):
    program = Program("__global__ void k(int* out, int n) {\n" + body + "\n}")
    memory = Arrays()
    out = memory.new(256, np.int32)
    with pytest.raises(SimulatorError) as caught:
        program.launch("k", (2,), (threads,), parameters(out, 0), seed)
    # The same simulator goes on after it.
    ones = memory.of(np.ones(256, np.float32))
    total = memory.new(1, np.float32)
    Program(SUM).launch("total", (1,), (256,), parameters(total, ones, 256))
    assert total[0] == 256
    memory.free()
    return str(caught.value)


def test_barrier_that_some_threads_never_reach():
    report = report_of("    if (threadIdx.x < 40)\n    __syncthreads();")
    assert report == (
        "kernel k, block (0, 0, 0), 40 of 64 threads wait for others that never come:\n"
        "  thread (0, 0, 0) and 39 others at __syncthreads() in line 3\n"
        "  thread (40, 0, 0) and 23 others ended"
    )
    assert "block (1, 0, 0)" in report_of("    if (threadIdx.x < 40)\n    __syncthreads();", seed=1)


def test_two_barriers_at_once():
    report = report_of("    if (threadIdx.x == 5)\n    __syncthreads();\n    else\n    __syncthreads();")
    assert "thread (0, 0, 0) and 62 others at __syncthreads() in line 5" in report
    assert "thread (5, 0, 0) at __syncthreads() in line 3" in report


def test_shuffle_that_some_threads_never_reach():
    report = report_of(
        "    if (threadIdx.x < 8)\n    out[threadIdx.x] = __shfl_sync(0xffffffff, 1, 0);\n    else __syncthreads();"
    )
    assert "thread (0, 0, 0) and 7 others at __shfl_sync with mask 0xffffffff in line 3" in report
    assert "thread (8, 0, 0) and 55 others at __syncthreads() in line 4" in report
    report = report_of("if (threadIdx.x == 9) __shfl_sync(0xff, 1, 0);")
    assert "thread (9, 0, 0): __shfl_sync in line 2 with mask 0x000000ff, which lacks the calling lane 9" in report


def test_faults():
    assert "thread (3, 0, 0): division of an integer by zero" in report_of(
        "if (threadIdx.x == 3) out[0] = (n + 100) / n;"
    )
    assert "thread (3, 0, 0): access to address" in report_of(
        "if (threadIdx.x == 3) *(volatile int*)(size_t)(n + 64) = 1;"
    )
    assert re.search(
        r"line 2: address 0x\w+1 of 'int' is no multiple of 4",
        report_of("if (threadIdx.x == 3) out[1] = *(int*)((char*)out + 1 + n);"),
    )
    assert re.search(
        r"address 0x\w+ of 'double' is no multiple of 8",
        report_of("if (threadIdx.x == 3) atomicAdd((double*)(out + 1), 1.0);"),
    )
    assert "line 3: index 4 is out of range of 'int [4]'" in report_of(
        "__shared__ int kept[4];\nif (threadIdx.x == 4) kept[threadIdx.x] = n;"
    )
    assert "line 3: index -1 is out of range of 'int [4]'" in report_of(
        "int kept[4] = {};\nif (threadIdx.x == 3) out[0] = kept[n - 1];"
    )
    assert "line 2: shift of 'int' by 32 bits" in report_of(
        "if (threadIdx.x == 3) out[1] = threadIdx.x << (n + 32);"
    ).replace("unsigned int", "int")
    assert "thread (3, 0, 0): its stack of 128 KiB overflowed" in report_of(
        "volatile char big[200000]; if (threadIdx.x == 3) big[n] = 1;"
    )
    assert "assertion in line 2: n == 1" in report_of("if (threadIdx.x == 3) assert(n == 1);")


def test_endless_loop(monkeypatch):
    monkeypatch.setattr(kernel_compiler.runtime().patience, "value", 1)
    report = report_of("if (threadIdx.x == 3) while (*(volatile int*)(out + n) != 7) {}")
    assert "thread (3, 0, 0): the launch has taken 1 seconds" in report


def test_zones_around_memory():
    for index, where in ((-1, "1 before it"), (10, "1 past its end")):
        memory = Arrays()
        x = memory.new(10, np.uint8)
        program = Program("__global__ void k(unsigned char* x, int at) { x[at] = 1; }")
        program.launch("k", (1,), (1,), parameters(x, index))
        with pytest.raises(SimulatorError, match=f"written out of bounds: the first byte found is {where}"):
            memory.free()


# ---- warps ----


def test_shuffles():
    text = r"""
    __global__ void k(int* out, int width) {
        int t = threadIdx.x;
        out[t] = __shfl_sync(0xffffffffu, t, 5, width);
        out[t + 64] = __shfl_up_sync(0xffffffffu, t, 3, width);
        out[t + 128] = __shfl_down_sync(0xffffffffu, t, 3, width);
        out[t + 192] = __shfl_xor_sync(0xffffffffu, t, 6, width);
        double wide = __shfl_sync(0xffffffffu, t + 0.5, 1);
        long long integer = __shfl_xor_sync(0xffffffffu, (long long)t << 40, 1);
        out[t + 256] = (int)(2 * wide) + (int)(integer >> 40);
    }
    """
    t = np.arange(64)
    for width in (8, 16, 32):
        first = t // width * width
        expected = [
            first + 5 % width,
            np.where(t - 3 < first, t, t - 3),
            np.where(t + 3 >= first + width, t, t + 3),
            np.where((t ^ 6) >= first + width, t, t ^ 6),
            2 * (t // 32 * 32 + 1) + 1 + (t ^ 1),
        ]
        for found in results_of(text, "k", 64, lambda memory, w=width: (memory.new((5, 64), np.int32), w)):
            np.testing.assert_array_equal(found, expected)


def test_votes_of_a_warp():
    text = r"""
    __global__ void k(unsigned* out) {
        unsigned t = threadIdx.x, mask = t % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
        unsigned* mine = out + 6 * t;
        mine[0] = __ballot_sync(mask, t % 3 == 0);
        mine[1] = __any_sync(mask, t == 20);
        mine[2] = __all_sync(mask, t != 20);
        mine[3] = __match_any_sync(mask, t % 4);
        mine[4] = __reduce_add_sync(mask, t);
        mine[5] = (unsigned)__reduce_min_sync(mask, -(int)t);
    }
    """
    expected = np.zeros((64, 6), np.int64)
    for t in range(64):
        group = [u for u in range(64) if u // 16 == t // 16]
        bits = {u: 1 << u % 32 for u in group}
        thirds, like = (sum(bits[u] for u in group if u % 3 == 0), sum(bits[u] for u in group if u % 4 == t % 4))
        expected[t] = [thirds, 20 in group, 20 not in group, like, sum(group), -max(group)]
    for found in results_of(text, "k", 64, lambda memory: (memory.new((64, 6), np.uint32),)):
        np.testing.assert_array_equal(found, expected.astype(np.uint32))


def test_threads_that_ended_are_not_waited_for_in_a_warp():
    """CUDA asks only for the threads of the mask that have not ended, and blocks may be smaller than a warp."""
    text = (
        "__global__ void k(int* out) { int t = threadIdx.x; if (t >= 10) return; out[t] = "
        "__shfl_xor_sync(0xffffffffu, t, 1); }"
    )
    for threads in (32, 10):
        for found in results_of(text, "k", threads, lambda memory: (memory.new(10, np.int32),)):
            np.testing.assert_array_equal(found, np.arange(10) ^ 1)


def test_atomics():
    text = r"""
    __global__ void k(unsigned* out, float* f, double* d, unsigned long long* u, int* i) {
        int t = threadIdx.x + blockIdx.x * blockDim.x;
        atomicAdd(out, 2u);
        atomicMax(out + 1, (unsigned)t);
        atomicMin(out + 2, (unsigned)t);
        atomicOr(out + 3, 1u << t % 32);
        atomicAnd(out + 4, ~(1u << t % 8));
        unsigned seen = out[5], before;
        do { before = seen; seen = atomicCAS(out + 5, before, before + (unsigned)t); } while (seen != before);
        atomicAdd(f, 0.5f);
        atomicAdd(d, 0.25);
        atomicAdd(u, 1ull << 32);
        i[atomicAdd(i, 1) + 1] = atomicExch(out + 6, 7u) == 7u;
    }
    """
    program = Program(text)
    for seed in SEEDS:
        memory = Arrays()
        out = memory.of(np.array([0, 0, 9999, 0, 255, 0, 0], np.uint32))
        f, d, u, i = (
            memory.new(n, dtype, 0) for n, dtype in ((1, np.float32), (1, np.float64), (1, np.uint64), (201, np.int32))
        )
        program.launch("k", (2,), (100,), parameters(out, f, d, u, i), seed)
        np.testing.assert_array_equal(out, [400, 199, 0, 2**32 - 1, 0, 199 * 100, 7])
        assert (f[0], d[0], u[0], i[0], i[1:].sum()) == (100, 50, 200 << 32, 200, 199)
        memory.free()


# ---- tensor cores ----


def bits_of(values, kind):
    """Return numbers of a format as 16- or 32-bit integers, and their values."""
    if kind == "f16":
        half = values.astype(np.float16)
        return half.view(np.uint16), half.astype(np.float64)
    cut = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000 if kind == "bf16" else 0xFFFFE000)
    return (cut >> 16).astype(np.uint16) if kind == "bf16" else cut, cut.view(np.float32).astype(np.float64)


@pytest.mark.parametrize("kind, k", [("f16", 16), ("bf16", 16), ("f16", 8), ("bf16", 8), ("tf32", 8), ("tf32", 4)])
def test_mma(rng, kind, k):
    """Fragments as in the PTX manual's figures: row `g`, and pairs (of tf32: single elements) along K at `2 q` and 8
    (of tf32: 4) further on.
    """
    per = 1 if kind == "tf32" else 2
    halves = k // (4 * per)
    text = f"""
    typedef {"unsigned" if kind == "tf32" else "unsigned short"} E;
    __global__ void k(float* out, const E* a, const E* b, const float* c) {{
        int g = threadIdx.x % 32 >> 2, q = threadIdx.x & 3;
        unsigned ra[{2 * halves}], rb[{halves}];
        for (int h = 0; h < {halves}; h++) {{
            int at = h * {4 * per} + q * {per};
            ra[2 * h] = a[g * {k} + at], ra[2 * h + 1] = a[(g + 8) * {k} + at], rb[h] = b[at * 8 + g];
#if {per} == 2
            ra[2 * h] |= a[g * {k} + at + 1] << 16, ra[2 * h + 1] |= a[(g + 8) * {k} + at + 1] << 16,
                rb[h] |= b[(at + 1) * 8 + g] << 16;
#endif
        }}
        float d[4] = {{c[g * 8 + 2 * q], c[g * 8 + 2 * q + 1], c[(g + 8) * 8 + 2 * q], c[(g + 8) * 8 + 2 * q + 1]}};
        mma_16x8x{k}_{kind}(d, ra, rb, d);
        out += threadIdx.x / 32 * 128;
        out[g * 8 + 2 * q] = d[0], out[g * 8 + 2 * q + 1] = d[1], out[(g + 8) * 8 + 2 * q] = d[2],
            out[(g + 8) * 8 + 2 * q + 1] = d[3];
    }}
    """
    (a, a_values), (b, b_values) = (
        bits_of(rng.standard_normal((16, k)), kind),
        bits_of(rng.standard_normal((k, 8)), kind),
    )
    c = rng.standard_normal((16, 8)).astype(np.float32)
    for found in results_of(
        text, "k", 64, lambda memory: (memory.new((2, 16, 8), np.float32), memory.of(a), memory.of(b), memory.of(c))
    ):
        for warp in found:
            np.testing.assert_allclose(warp, a_values @ b_values + c, rtol=1e-5, atol=1e-5)


def test_matrix_product_with_ldmatrix_and_asynchronous_copies(rng):
    """16 x 16 times 16 x 8 by way of shared memory: A as it lies there, B (by rows of K) turned on loading."""
    text = r"""
    __global__ void k(float* out, const unsigned short* a, const unsigned short* b) {
        __shared__ __align__(16) unsigned short sa[256], sb[128];
        int lane = threadIdx.x, g = lane >> 2, q = lane & 3;
        cp_async_16(sa + 8 * lane, a + 8 * lane);
        cp_async_commit();
        if (lane < 16) cp_async_16(sb + 8 * lane, b + 8 * lane);
        cp_async_commit();
        cp_async_wait<0>();
        __syncwarp();
        unsigned ra[4], rb[2];
        float d[4] = {0, 0, 0, 0};
        ldmatrix_x4(ra, sa + lane % 16 * 16 + lane / 16 * 8);
        ldmatrix_x2_trans(rb, sb + lane % 16 * 8);
        mma_16x8x16_bf16(d, ra, rb, d);
        out[g * 8 + 2 * q] = d[0], out[g * 8 + 2 * q + 1] = d[1], out[(g + 8) * 8 + 2 * q] = d[2],
            out[(g + 8) * 8 + 2 * q + 1] = d[3];
    }
    """
    (a, a_values), (b, b_values) = (
        bits_of(rng.standard_normal((16, 16)), "bf16"),
        bits_of(rng.standard_normal((16, 8)), "bf16"),
    )

    def make(memory):
        return memory.new((16, 8), np.float32), memory.of(a), memory.of(b)

    for found in results_of(text, "k", 32, make):
        np.testing.assert_allclose(found, a_values @ b_values, rtol=1e-5, atol=1e-5)
    early = results_of(text.replace("cp_async_wait<0>", "cp_async_wait<1>"), "k", 32, make, seeds=(0, 1))
    assert not np.allclose(early[0], a_values @ b_values, equal_nan=True)  # B had not come when it was read
    np.testing.assert_allclose(early[1], a_values @ b_values, rtol=1e-5, atol=1e-5)
    with pytest.raises(SimulatorError, match=r"ldmatrix_x4 in line 13 from 0x\w+, no multiple of 16 bytes"):
        results_of(text.replace("lane / 16 * 8)", "lane / 16 * 8 + 1)"), "k", 32, make)


def test_groups_of_asynchronous_copies():
    text = r"""
    __global__ void k(int* out, const int* x) {
        __shared__ __align__(16) int kept[24];
        for (int i = 0; i < 24; i++) kept[i] = 0;
        for (int part = 0; part < 6; part++) {
            cp_async_16(kept + 4 * part, x + 4 * part, part == 5 ? 8 : 16);
            if (part % 2) cp_async_commit();
        }
        cp_async_wait<1>();
        for (int i = 0; i < 24; i++) out[i] = kept[i];
        cp_async_wait_all();
        for (int i = 0; i < 24; i++) out[24 + i] = kept[i];
    }
    """
    x = np.arange(1, 25, dtype=np.int32)
    late, early = results_of(text, "k", 1, lambda memory: (memory.new((2, 24), np.int32), memory.of(x)), seeds=(0, 1))
    np.testing.assert_array_equal(late[0], np.where(x <= 16, x, 0))
    np.testing.assert_array_equal(early[0], np.where(x <= 22, x, 0))
    for found in (late, early):
        np.testing.assert_array_equal(found[1], np.where(x <= 22, x, 0))


# ---- numbers ----


def test_functions_of_both_types(rng):
    """Overloads by type: of float in single, of double in double."""
    names = (
        "exp exp2 log1p sqrt cbrt sin cos tan tanh asinh atan floor ceil trunc rint fabs rsqrt "
        "erf erfc lgamma tgamma erfinv normcdf sinpi cospi"
    ).split()
    own = {
        "fabs": np.abs,
        "atan": np.arctan,
        "asinh": np.arcsinh,
        "rsqrt": lambda v: 1 / np.sqrt(v),
        "sinpi": lambda v: np.sin(np.pi * v),
        "cospi": lambda v: np.cos(np.pi * v),
        "tgamma": np.vectorize(math.gamma),
        "normcdf": np.vectorize(NormalDist().cdf),
        "erfinv": lambda v: np.vectorize(NormalDist().inv_cdf)((v + 1) / 2) / np.sqrt(2),
        **{name: np.vectorize(getattr(math, name)) for name in ("erf", "erfc", "lgamma")},
    }
    calls = "".join(f"out[i + {k} * n] = {name}(v);\n" for k, name in enumerate(names))
    for kind, dtype, limit in (("float", np.float32, 2e-6), ("double", np.float64, 4e-14)):
        text = (
            f"__global__ void k({kind}* out, const {kind}* x, int n) {{ int i = threadIdx.x; {kind} v = x[i];\n"
            f"{calls} }}"
        )
        x = rng.uniform(0.05, 0.95, 64).astype(dtype)
        (found,) = results_of(
            text, "k", 64, lambda memory, x=x: (memory.new((len(names), 64), x.dtype), memory.of(x), 64), seeds=(0,)
        )
        for name, row in zip(names, found):
            right = own.get(name, getattr(np, name, None))(x.astype(np.float64))
            np.testing.assert_allclose(row, right, rtol=limit, atol=limit, err_msg=f"{name} of {kind}")


def test_bits():
    text = r"""
    __global__ void k(unsigned long long* out, unsigned x, unsigned y) {
        unsigned long long wide = (unsigned long long)x << 32 | y;
        unsigned long long all[] = {
            __umulhi(x, y), (unsigned)__mulhi((int)x, (int)y), __umul64hi(wide, wide),
            (unsigned long long)__mul64hi((long long)wide, (long long)wide),
            (unsigned)__clz((int)x), (unsigned)__clzll((long long)wide), (unsigned)__popc(x), (unsigned)__popcll(wide),
            __brev(x), (unsigned)__ffs((int)x),
            __float_as_uint(__uint_as_float(x)),
                (unsigned long long)__double_as_longlong(__longlong_as_double((long long)wide)),
            __funnelshift_l(x, y, 7), __funnelshift_r(x, y, 7), __byte_perm(x, y, 0x7152),
            (unsigned)__float2int_rn(2.5f), (unsigned)__float2int_rz(3e9f), __float2uint_rn(-4.f)};
        for (int i = 0; i < 18; i++) out[i] = all[i];
    }
    """
    x, y = 0x89ABCDEF, 0x01234567
    wide = x << 32 | y
    signed = wide - 2**64
    expected = [
        x * y >> 32,
        ((x - 2**32) * y >> 32) % 2**32,
        wide * wide >> 64,
        (signed * signed >> 64) % 2**64,
        0,
        0,
        bin(x).count("1"),
        bin(wide).count("1"),
        int(f"{x:032b}"[::-1], 2),
        1,
        x,
        wide,
        (y << 7 | x >> 25) % 2**32,
        (y << 32 | x) >> 7 & 0xFFFFFFFF,
        0x01CD45AB,
        2,
        2**31 - 1,
        0,
    ]
    (found,) = results_of(
        text, "k", 1, lambda memory: (memory.new(18, np.uint64), struct.pack("I", x), struct.pack("I", y)), seeds=(0,)
    )
    assert [hex(v) for v in found] == [hex(v) for v in expected]


def test_half_conversions(arrays):
    """The conversions behind the tensor cores' functions: every half, and single precision rounded to nearest even."""
    text = r"""
    #define I (blockIdx.x * 256 + threadIdx.x)
    __global__ void widen(float* out, const unsigned short* x) { out[I] = cuda_simulator_half(x[I]); }
    __global__ void widen_bfloat16(float* out, const unsigned short* x) { out[I] = cuda_simulator_bfloat16(x[I]); }
    """
    bits = arrays.of(np.arange(65536).astype(np.uint16))
    out = arrays.new(65536, np.float32)
    program = Program(text)
    program.launch("widen", (256,), (256,), parameters(out, bits))
    np.testing.assert_array_equal(out, bits.view(np.float16).astype(np.float32))
    program.launch("widen_bfloat16", (256,), (256,), parameters(out, bits))
    np.testing.assert_array_equal(out, (bits.astype(np.uint32) << 16).view(np.float32))


# ---- the address sanitizer ----

_OUT_OF_BOUNDS = {
    "global": "if (threadIdx.x == 3) x[at + 61] = 1;",
    "shared": "__shared__ int kept[64];\n"
    " int* p = kept;\n"
    " p[threadIdx.x + at] = 1;\n"
    " __syncthreads();\n"
    " x[0] = kept[0];",
    "dynamic": "extern __shared__ int kept[];\n kept[threadIdx.x + at] = 1;\n __syncthreads();\n x[0] = kept[0];",
    "private": "int kept[64];\n"
    " for (int i = 0; i < 64; i++) kept[i] = i;\n"
    " int* p = kept;\n"
    " x[0] = p[threadIdx.x + at];",
}


def run_sanitized(folder, body, at):
    """In the child: one launch."""
    memory = Arrays(sanitize=True)
    x = memory.new(64, np.int32)
    program = Program("__global__ void k(int* x, int at) {\n" + body + "\n}", sanitize=True, folder=folder)
    for seed in (0, 1):
        program.launch("k", (1,), (64,), parameters(x, at), seed, shared=256)
    memory.free()
    print("went through")


@pytest.mark.slow
@pytest.mark.parametrize("where", [*_OUT_OF_BOUNDS])
def test_out_of_bounds(where, tmp_path_factory):
    folder = str(tmp_path_factory.getbasetemp() / "cuda_programs")
    good, bad = (in_sanitized_child(__name__, "run_sanitized", folder, _OUT_OF_BOUNDS[where], at) for at in (0, 3))
    assert good.returncode == 0 and "went through" in good.stdout, good.stderr
    assert bad.returncode == 86 and "went through" not in bad.stdout
    assert "AddressSanitizer" in bad.stderr and "program.cu:" in bad.stderr
    assert "CUDA simulator: kernel k, block (0, 0, 0), thread (" in bad.stderr


def test_sanitized_programs_need_their_environment():
    with pytest.raises(SimulatorError, match="sanitizer_environment"):
        Program(ADD, sanitize=True)
