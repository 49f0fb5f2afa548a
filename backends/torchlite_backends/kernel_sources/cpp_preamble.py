"""Parts of the preamble that C++ on the CPU and CUDA C++ share: limits, type names and conversions."""

from __future__ import annotations

_SCALARS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double")
_WIDTHS = (2, 4, 8, 16)

FLOAT_LIMITS_AND_TYPES = r"""
#define FLT_EPSILON 1.1920928955078125e-07f
#define FLT_MIN 1.17549435082228751e-38f
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MIN 2.2250738585072014e-308
typedef signed char cl_char;
typedef unsigned char cl_uchar;
typedef short cl_short;
typedef unsigned short cl_ushort;
typedef int cl_int;
typedef unsigned int cl_uint;
typedef long long cl_long;
typedef unsigned long long cl_ulong;
typedef float cl_float;
typedef double cl_double;
typedef unsigned short cl_half;
"""[1:]
LONG_LIMITS = r"""
#undef LONG_MAX
#undef LONG_MIN
#undef ULONG_MAX
#define LONG_MAX 0x7fffffffffffffffLL
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 0xffffffffffffffffULL
template <int bytes> struct Signed;
template <> struct Signed<1> { typedef signed char Type; };
template <> struct Signed<2> { typedef short Type; };
template <> struct Signed<4> { typedef int Type; };
template <> struct Signed<8> { typedef long long Type; };
"""[1:]


def conversions(qualifier: str, convert: str, load: str, store: str) -> str:
    """Return `convert_T`, `as_T`, vector loads and stores, and type names, for scalars and vectors of each width.

    `qualifier` precedes every function. The others are bodies: of the conversion of a vector v to `{n}` elements of the
    type `{to}`, of the load of `{n}` elements from the vector i of p, and of the store of v there.
    """
    lines = []
    for scalar in _SCALARS:
        own = f"cl_{scalar}"
        lines.append(f"template <class S> {qualifier} {own} convert_{scalar}(S v) {{ return {own}(v); }}")
        lines.append(f"template <class S> {qualifier} {own} as_{scalar}(S v) {{ return bits_as<{own}>(v); }}")
        for n in _WIDTHS:
            lines.append(f"typedef Vector<{own}, {n}> {own}{n};")
            lines.append(
                f"template <class S> {qualifier} {own}{n} convert_{scalar}{n}(Vector<S, {n}> v) "
                f"{{ {convert.format(n=n, to=own)} }}"
            )
            lines.append(
                f"template <class S> {qualifier} {own}{n} as_{scalar}{n}(S v) {{ return bits_as<{own}{n}>(v); }}"
            )
    for n in _WIDTHS:
        lines.append(
            f"template <class T> {qualifier} Vector<T, {n}> vload{n}(cl_long i, const T* p) {{ {load.format(n=n)} }}"
        )
        lines.append(
            f"template <class T> {qualifier} void vstore{n}(Vector<T, {n}> v, cl_long i, T* p) "
            f"{{ {store.format(n=n)} }}"
        )
        lines += [
            f"#define LD_{short}{n}(p, i) load_{short.lower()}<{n}>(p, i)\n"
            f"#define ST_{short}{n}(p, i, v) store_{short.lower()}<{n}>(p, i, v)"
            for short in ("HALF", "BF16")
        ]
    names = [f"{scalar}{n}" for scalar in _SCALARS for n in _WIDTHS]
    return (
        "\n".join(
            [
                *lines,
                *(
                    f"#define {name} cl_{name}"
                    for name in ("char", "uchar", "ushort", "uint", "long", "ulong", "half", *names)
                ),
            ]
        )
        + "\n"
    )
