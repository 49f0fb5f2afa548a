"""NVIDIA tensor cores and asynchronous copies behind functions with fixed names, which the test simulator also
implements.

Fragments are PTX's: lane l of a warp has, of the 16 x 16 matrix a, the pairs of columns that begin at 2 (l % 4) and 8
further, in rows l / 4 and 8 further. Of the 16 x 8 result it has the pair of both rows.
"""

from __future__ import annotations


def _mma_source(kind: str) -> str:
    return f"""
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 "
                 "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%10, %11, %12, %13}};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
                     "f"(c[3]));"""


def _half_mma_source(first: int, source: str) -> str:
    """Return half of a 16 x 8 x 16 product, for the GPU generation that has only such ones."""
    return f"""
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                 "{{%0, %1, %2, %3}}, {{%4, %5}}, {{%6}}, {{%7, %8, %9, %10}};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[{2 * first}]), "r"(a[{2 * first + 1}]), "r"(b[{first}]), "f"({source}[0]), "f"({source}[1]),
                     "f"({source}[2]), "f"({source}[3]));"""


def _ldmatrix_source(name: str, way: str) -> str:
    return f"""
FUNCTION void {name}(unsigned* r, const void* row) {{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4{way}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((unsigned)__cvta_generic_to_shared(row))
                     : "memory");
}}"""


# `pack_*` rounds two numbers to one register; the first has the lower half. `fast_exp2` is accurate to 2 ulp.
TENSOR_CORES = (
    r"""
#ifdef __CUDACC_RTC__
FUNCTION void mma_16x8x16_f16(float* d, const unsigned* a, const unsigned* b, const float* c) {
#if __CUDA_ARCH__ >= 800"""
    + _mma_source("f16")
    + r"""
#else"""
    + _half_mma_source(0, "c")
    + _half_mma_source(1, "d")
    + r"""
#endif
}
FUNCTION unsigned pack_f16(float low, float high) {
    unsigned r;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
#else
    asm("{ .reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h}; }" : "=r"(r) : "f"(low),
        "f"(high));
#endif
    return r;
}
#if __CUDA_ARCH__ >= 800
FUNCTION void mma_16x8x16_bf16(float* d, const unsigned* a, const unsigned* b, const float* c) {"""
    + _mma_source("bf16")
    + r"""
}
FUNCTION unsigned pack_bf16(float low, float high) {
    unsigned r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
#endif"""
    + _ldmatrix_source("ldmatrix_x4", "")
    + _ldmatrix_source("ldmatrix_x4_trans", ".trans")
    + r"""
// Of 16 bytes the first `given` (16 or 0) are copied, the others become zero.
FUNCTION void cp_async_16(void* to, const void* from, int given) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"((unsigned)__cvta_generic_to_shared(to)),
        "l"(from), "r"(given) : "memory");
#else
    *(Chunk<16>*)to = given ? *(const Chunk<16>*)from : Chunk<16>();
#endif
}
FUNCTION void cp_async_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int pending> FUNCTION void cp_async_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
#endif
}
FUNCTION float fast_exp2(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
#else
FUNCTION float fast_exp2(float x) { return exp2f(x); }
FUNCTION unsigned pack_f16(float low, float high) { return float_as_half(low) | (unsigned)float_as_half(high) << 16; }
FUNCTION unsigned pack_bf16(float low, float high) { return float_as_bf16(low) | (unsigned)float_as_bf16(high) << 16; }
#endif
"""
)
