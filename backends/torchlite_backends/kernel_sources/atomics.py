"""Atomic read-modify-write of any element type by compare-and-swap: portable OpenCL has no atomic float addition."""

from __future__ import annotations

from .dtype_kinds import KINDS

# COMBINE(a, b) by operation, in the compute type: for numbers, booleans and complex numbers.
COMBINE = {
    "add": ("((a) + (b))", "((a) | (b))", "((a) + (b))"),
    "multiply": (
        "((a) * (b))",
        "((a) & (b))",
        "(VEC2(O, (a).x * (b).x - (a).y * (b).y, (a).x * (b).y + (a).y * (b).x))",
    ),
    "amax": ("((b) > (a) || (b) != (b) ? (b) : (a))", "((a) | (b))", ""),
    "amin": ("((b) < (a) || (b) != (b) ? (b) : (a))", "((a) & (b))", ""),
    "set": ("(b)", "(b)", "(b)"),
}


def combine_macro(operation: str, kind: str) -> str:
    """Return the definition of COMBINE for arrays of a kind."""
    text = COMBINE[operation][2 if kind[0] == "c" else kind == "b8"]
    if not text:
        raise NotImplementedError(f'"{operation}" not implemented for complex numbers')
    return f"#define COMBINE(a, b) {text}\n"


_CAS_32BIT = """
FUNCTION void combine_at(volatile GLOBAL O* p, O_C v) {{
    volatile GLOBAL {word}* place = (volatile GLOBAL {word}*)p;
    {word} seen = 0, before;
    do {{ before = seen; seen = {exchange}(place, before, as_{word}((O)COMBINE(as_{stored}(before), v))); }}
    while (seen != before);
}}
"""
_CAS_SUBWORD = """
FUNCTION void combine_at(volatile GLOBAL O* p, O_C v) {{
    size_t at = (size_t)p;
    volatile GLOBAL uint* place = (volatile GLOBAL uint*)(at & ~(size_t)3);
    uint shift = (uint)(at & 3) * 8, mask = {mask}u << shift, seen = 0, before;
    do {{
        before = seen;
        O now = (O)COMBINE((O)((before & mask) >> shift), v);
        seen = atomic_cmpxchg(place, before, (before & ~mask) | ((uint){bits}(now) << shift));
    }} while (seen != before);
}}
"""
_CAS_COMPLEX = """
FUNCTION void add_double(volatile GLOBAL double* p, double v) {
    volatile GLOBAL ulong* place = (volatile GLOBAL ulong*)p;
    ulong seen = 0, before;
    do { before = seen; seen = atom_cmpxchg(place, before, as_ulong(as_double(before) + v)); } while (seen != before);
}
FUNCTION void combine_at(volatile GLOBAL O* p, O_C v) {
    volatile GLOBAL double* parts = (volatile GLOBAL double*)p;
    add_double(parts, v.x);
    add_double(parts + 1, v.y);
}
"""
_CAS_64BIT_EXTENSION = (
    "#ifdef __OPENCL_VERSION__\n#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n#endif\n"
)
_SIZES = {
    "b8": 1, "u8": 1, "i8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8, "c64": 8,
    "c128": 16, "c32": 4,
}  # fmt: skip


def is_supported(operation: str, kind: str, long_atomics: bool) -> bool:
    """True if elements of a kind can be combined atomically; half precision accumulates in float32."""
    size = _SIZES.get(kind, 0)
    return 0 < size and (size < 8 or long_atomics) and (size < 16 or operation == "add")


def combine_at_source(kind: str) -> str:
    """Return the source of `combine_at(p, v)`: *p = COMBINE(*p, v), atomically, for arrays O of a kind."""
    size, stored = _SIZES[kind], KINDS[kind].stored
    if size == 16:
        return _CAS_64BIT_EXTENSION + _CAS_COMPLEX
    if size == 8:
        return _CAS_64BIT_EXTENSION + _CAS_32BIT.format(word="ulong", exchange="atom_cmpxchg", stored=stored)
    if size == 4:
        return _CAS_32BIT.format(word="uint", exchange="atomic_cmpxchg", stored=stored)
    return _CAS_SUBWORD.format(mask="0xff" if size == 1 else "0xffff", bits="as_uchar" if size == 1 else "as_ushort")
