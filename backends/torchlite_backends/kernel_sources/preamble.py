"""OpenCL and CUDA preambles that let one kernel source compile as both, and the macros of a dtype.

A kernel's array parameter is a pointer and an offset: `IN(T, x)` and `OUT(T, x)` declare both, `AT(x)` is its first
element. `dtype_macros_source` defines, for the name T: `T` (storage type), `T_C` (compute type), `T_LD(p, i)` and
`T_ST(p, i, v)` (element i, converted), and `T_LD16(p, i)`, `T_ST16(p, i, v)` for 16 elements from i on (also 4 and 8).
"""

from __future__ import annotations

from .cuda_preamble import CUDA as CUDA
from .dtype_kinds import KINDS

OPENCL = r"""
#define GLOBAL __global
#define LOCAL __local
#define KERNEL __kernel
#define FUNCTION
#define SELECT(c, a, b) ((c) ? (a) : (b))
#define VEC2(T, a, b) ((T)(a, b))
#define VEC4(T, a, b, c, d) ((T)(a, b, c, d))
#define VEC8(T, a, b, c, d, e, f, g, h) ((T)(a, b, c, d, e, f, g, h))
#define VEC16(T, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) ((T)(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p))
#define LOCAL_ARRAY(T, name, n) __local T name[n]
#define LOCAL_MATRIX(T, name, n, m) __local T name[n][m]
#define NOT_INLINE __attribute__((noinline))
#define NOT_UNROLLED _Pragma("nounroll")
#define FEW_TIMES
#define GROUP_SIZE(n) __attribute__((reqd_work_group_size(n, 1, 1)))
#define VECTOR_HINT(V) __attribute__((vec_type_hint(V)))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define BARRIER_ALL barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define THREAD ((int)get_local_id(0))
#define THREAD_Y ((int)get_local_id(1))
#define THREADS ((int)get_local_size(0))
#define BLOCK ((int)get_group_id(0))
#define BLOCKS ((int)get_num_groups(0))
#define BLOCK_Y ((int)get_group_id(1))
#define BLOCK_Z ((int)get_group_id(2))
#define ITEM ((int)get_global_id(0))
#define ITEM_Y ((int)get_global_id(1))
#define ITEM_Z ((int)get_global_id(2))
#define ITEMS ((int)get_global_size(0))
#define IN(T, x) GLOBAL const T* x##_, const int x##_o
#define OUT(T, x) GLOBAL T* x##_, const int x##_o
#define AT(x) (x##_ + x##_o)
#define LD_HALF(p, i) vload_half(0, (p) + (i))
#define ST_HALF(p, i, v) vstore_half_rte(v, 0, (p) + (i))
"""
_HALF_WIDE = (
    "#define LD_HALF{w}(p, i) vload_half{w}(0, (p) + (i))\n"
    "#define ST_HALF{w}(p, i, v) vstore_half{w}_rte(v, 0, (p) + (i))"
)
_BF16 = r"""
uint bf16_bits(float v) { uint u = as_uint(v); return v != v ? 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16; }
#define LD_BF16(p, i) as_float((uint)(p)[i] << 16)
#define ST_BF16(p, i, v) ((p)[i] = (ushort)bf16_bits(v))
"""
_BF16_WIDE = r"""
uint{w} bf16_bits{w}(float{w} v) {{ uint{w} u = as_uint{w}(v);
return v != v ? (uint{w})(0x7fc0u) : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16; }}
#define LD_BF16{w}(p, i) as_float{w}(convert_uint{w}(vload{w}(0, (p) + (i))) << 16)
#define ST_BF16{w}(p, i, v) vstore{w}(convert_ushort{w}(bf16_bits{w}(v)), 0, (p) + (i))
"""
_C32 = {
    "opencl": """
#define LD_C32(p, i) vload_half2(0, (GLOBAL const half*)((p) + (i)))
#define ST_C32(p, i, v) vstore_half2_rte(v, 0, (GLOBAL half*)((p) + (i)))
""",
    "cuda": """
FUNCTION float2 half2_as_float2(cl_uint h) { return VEC2(float2, half_as_float(h & 0xffff), half_as_float(h >> 16)); }
FUNCTION cl_uint float2_as_half2(float2 v) { return float_as_half(v.x) | (cl_uint)float_as_half(v.y) << 16; }
#define LD_C32(p, i) half2_as_float2((p)[i])
#define ST_C32(p, i, v) ((p)[i] = float2_as_half2(v))
""",
}


def dtype_macros_source(widths: tuple[int, ...] = (), target: str = "opencl", **names: str) -> str:
    """Return the macros of dtypes for a language: `dtype_macros((16,), T="f16")`. `widths` lists the vector widths that
    the kernel loads and stores.
    """
    text = []
    kinds = set(names.values())
    if target == "opencl":
        if "f64" in kinds or "c128" in kinds:
            text.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
        if "bf16" in kinds:
            text.append(_BF16 + "".join(_BF16_WIDE.format(w=w) for w in widths))
        text += [_HALF_WIDE.format(w=w) for w in widths if "f16" in kinds]
    if "c32" in kinds:
        text.append(_C32[target])
    load, store = (
        ("vload{w}(0, (p) + (i))", "vstore{w}(v, 0, (p) + (i))")
        if target == "opencl"
        else ("load_cells<{w}>(p, i)", "store_cells(p, i, {own}{w}(v))")
    )
    for name, kind in names.items():
        how = KINDS[kind]
        text += [f"#define {name} {how.stored}", f"#define {name}_C {how.computed}"]
        text.append(f"#define {name}_LD(p, i) {how.load}(p, i)" if how.load else f"#define {name}_LD(p, i) ((p)[i])")
        text.append(
            f"#define {name}_ST(p, i, v) {how.store}(p, i, v)"
            if how.store
            else f"#define {name}_ST(p, i, v) ((p)[i] = (v))"
        )
        for w in widths if kind[0] != "c" else ():
            read, write = (
                (f"{how.load}{w}(p, i)", f"{how.store}{w}(p, i, v)")
                if how.load
                else (load.format(w=w), store.format(w=w, own=how.stored))
            )
            text += [
                f"#define {name}_LD{w}(p, i) {read}",
                f"#define {name}_ST{w}(p, i, v) {write}",
                f"#define {name}_C{w} {how.computed}{w}",
            ]
    return "\n".join(text) + "\n"
