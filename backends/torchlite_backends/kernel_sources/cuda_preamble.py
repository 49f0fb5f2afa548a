"""CUDA C++ definitions of the macros and OpenCL built-ins of kernel sources.

CUDA-specific code is behind `__CUDACC_RTC__`: other compilers take the same source.
"""

from __future__ import annotations

from .cpp_preamble import FLOAT_LIMITS_AND_TYPES, LONG_LIMITS, conversions

_TYPES = (
    r"""
#ifdef __CUDACC_RTC__
#pragma nv_diag_suppress 177, 186
#elif !defined(CUDA_SIMULATOR)
#include <cmath>
#include <climits>
#endif
#define FUNCTION static inline __device__
#define GLOBAL
#define LOCAL
#define KERNEL extern "C" __global__
#define LOCAL_ARRAY(T, name, n) __shared__ T name[n]
#define LOCAL_MATRIX(T, name, n, m) __shared__ T name[n][m]
#define NOT_INLINE __attribute__((noinline))
#define NOT_UNROLLED _Pragma("unroll 1")
#define FEW_TIMES NOT_UNROLLED
#define GROUP_SIZE(n) __launch_bounds__(n)
#define VECTOR_HINT(V)
#define BARRIER __syncthreads()
#define BARRIER_ALL __syncthreads()
#define THREAD ((int)threadIdx.x)
#define THREAD_Y ((int)threadIdx.y)
#define THREADS ((int)blockDim.x)
#define BLOCK ((int)blockIdx.x)
#define BLOCKS ((int)gridDim.x)
#define BLOCK_Y ((int)blockIdx.y)
#define BLOCK_Z ((int)blockIdx.z)
#define ITEM ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define ITEM_Y ((int)(blockIdx.y * blockDim.y + threadIdx.y))
#define ITEM_Z ((int)(blockIdx.z * blockDim.z + threadIdx.z))
#define ITEMS ((int)(gridDim.x * blockDim.x))
#define IN(T, x) const T* x##_, const int x##_o
#define OUT(T, x) T* x##_, const int x##_o
#define AT(x) (x##_ + x##_o)
#if defined(__CUDACC_RTC__) || defined(CUDA_SIMULATOR)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif
"""
    + FLOAT_LIMITS_AND_TYPES
    + r"""#if defined(__CUDACC_RTC__) || defined(CUDA_SIMULATOR)
#define INT_MAX 0x7fffffff
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 0xffffffffu
#endif
"""
    + LONG_LIMITS
    + r"""template <class T, int N> struct Cells { T s[N]; };
template <class T> struct Cells<T, 2> { T x, y; };
template <class T> struct Cells<T, 4> { T x, y, z, w; };
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vector : Cells<T, N> {
    typedef T Element;
    typedef Vector<typename Signed<sizeof(T)>::Type, N> Mask;
    Vector() = default;
    __device__ Vector(T v) { for (int i = 0; i < N; i++) (*this)[i] = v; }
    template <class... More> __device__ Vector(T first, T second, More... more) {
        const T all[] = {first, second, T(more)...};
        static_assert(sizeof...(More) + 2 == N, "as many numbers as elements");
        for (int i = 0; i < N; i++) (*this)[i] = all[i];
    }
    __device__ T& operator[](int i) { return reinterpret_cast<T*>(this)[i]; }
    __device__ T operator[](int i) const { return reinterpret_cast<const T*>(this)[i]; }
#define BINARY(op) \
    friend __device__ Vector operator op(Vector a, Vector b) { \
        for (int i = 0; i < N; i++) a[i] = T(a[i] op b[i]); return a; \
    } \
    __device__ Vector& operator op##=(Vector b) { return *this = *this op b; }
#define COMPARISON(op) friend __device__ Mask operator op(Vector a, Vector b) { \
    Mask c; for (int i = 0; i < N; i++) c[i] = a[i] op b[i] ? -1 : 0; return c; \
}
    BINARY(+) BINARY(-) BINARY(*) BINARY(/) BINARY(%) BINARY(&) BINARY(|) BINARY(^) BINARY(<<) BINARY(>>)
    COMPARISON(<) COMPARISON(>) COMPARISON(<=) COMPARISON(>=) COMPARISON(==) COMPARISON(!=)
#undef BINARY
#undef COMPARISON
    friend __device__ Vector operator-(Vector a) { for (int i = 0; i < N; i++) a[i] = -a[i]; return a; }
    friend __device__ Vector operator~(Vector a) { for (int i = 0; i < N; i++) a[i] = ~a[i]; return a; }
};
template <class T> struct ElementOf { typedef T Type; };
template <class T, int N> struct ElementOf<Vector<T, N>> { typedef T Type; };
// OpenCL's ?: for vectors; of scalars both values are computed.
template <class C, class T> FUNCTION T choose(C c, T a, T b) { return c ? a : b; }
template <class M, class T, int N> FUNCTION Vector<T, N> choose(Vector<M, N> c, Vector<T, N> a, Vector<T, N> b) {
    for (int i = 0; i < N; i++) b[i] = c[i] ? a[i] : b[i];
    return b;
}
#define SELECT(c, a, b) choose(c, a, b)
#define VEC2(T, a, b) T(a, b)
#define VEC4(T, a, b, c, d) T(a, b, c, d)
#define VEC8(T, ...) T(__VA_ARGS__)
#define VEC16(T, ...) T(__VA_ARGS__)
"""
)

_ACCESS = r"""
template <int bytes> struct alignas(bytes) Chunk { unsigned word[bytes / 4]; };
template <> struct alignas(2) Chunk<2> { unsigned short word; };
template <> struct Chunk<1> { unsigned char word; };
// N cells from i on, whatever their alignment: in whole chunks where they lie on a chunk's boundary.
template <int N, class T> FUNCTION Vector<T, N> load_cells(const T* p, cl_long i) {
    const int bytes = sizeof(T) * N < 16 ? sizeof(T) * N : 16;
    typedef Chunk<bytes> C;
    Vector<T, N> v;
    p += i;
    if (reinterpret_cast<size_t>(p) % bytes == 0) for (int k = 0; k < int(sizeof(T) * N / bytes); k++)
        reinterpret_cast<C*>(&v)[k] = reinterpret_cast<const C*>(p)[k];
    else for (int k = 0; k < N; k++) v[k] = p[k];
    return v;
}
template <int N, class T> FUNCTION void store_cells(T* p, cl_long i, Vector<T, N> v) {
    const int bytes = sizeof(T) * N < 16 ? sizeof(T) * N : 16;
    typedef Chunk<bytes> C;
    p += i;
    if (reinterpret_cast<size_t>(p) % bytes == 0) for (int k = 0; k < int(sizeof(T) * N / bytes); k++)
        reinterpret_cast<C*>(p)[k] = reinterpret_cast<const C*>(&v)[k];
    else for (int k = 0; k < N; k++) p[k] = v[k];
}
template <class D, class S> FUNCTION D bits_as(S s) {
    static_assert(sizeof(D) == sizeof(S), "types of one size");
    union { S from; D to; } u;
    u.from = s;
    return u.to;
}
FUNCTION float half_as_float(cl_half h) {
#ifdef __CUDACC_RTC__
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
#else
    const cl_uint sign = cl_uint(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
    if (e == 0) return bits_as<float>(sign | bits_as<cl_uint>(float(m) * 5.9604644775390625e-8f));
    return bits_as<float>(sign | (e == 31 ? 255u : e + 112) << 23 | m << 13);
#endif
}
FUNCTION cl_half float_as_half(float v) {
#ifdef __CUDACC_RTC__
    cl_half h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
#else
    cl_uint u = bits_as<cl_uint>(v), sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    if (u > 0x7f800000) return 0x7fff;
    if (u >= 0x477ff000) return sign | 0x7c00;
    if (u < 0x38800000) return sign | (bits_as<cl_uint>(bits_as<float>(u) + 0.5f) - 0x3f000000);
    return sign | (u + 0xfff + (u >> 13 & 1) - 0x38000000) >> 13;
#endif
}
FUNCTION float bf16_as_float(cl_ushort h) { return bits_as<float>(cl_uint(h) << 16); }
FUNCTION cl_ushort float_as_bf16(float v) {
    const cl_uint u = bits_as<cl_uint>(v);
    return v != v ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
#define SHORT_FLOAT(NAME, name) \
    template <int N> FUNCTION Vector<float, N> load_##name(const cl_ushort* p, cl_long i) { \
        const Vector<cl_ushort, N> h = load_cells<N>(p, i); \
        Vector<float, N> v; \
        for (int k = 0; k < N; k++) v[k] = name##_as_float(h[k]); \
        return v; \
    } \
    template <int N> FUNCTION void store_##name(cl_ushort* p, cl_long i, Vector<float, N> v) { \
        Vector<cl_ushort, N> h; \
        for (int k = 0; k < N; k++) h[k] = float_as_##name(v[k]); \
        store_cells(p, i, h); \
    }
SHORT_FLOAT(HALF, half)
SHORT_FLOAT(BF16, bf16)
#define LD_HALF(p, i) half_as_float((p)[i])
#define ST_HALF(p, i, v) ((p)[i] = float_as_half(v))
#define LD_BF16(p, i) bf16_as_float((p)[i])
#define ST_BF16(p, i, v) ((p)[i] = float_as_bf16(v))
"""

_FUNCTIONS = r"""
#if !defined(__CUDACC_RTC__) && !defined(CUDA_SIMULATOR)
using std::fmin; using std::fmax; using std::fmod; using std::hypot; using std::pow; using std::atan2;
using std::copysign; using std::ldexp; using std::frexp; using std::fma;
using std::nextafter; using std::isnan; using std::isinf; using std::isfinite; using std::signbit; using std::remainder;
using std::exp; using std::exp2; using std::expm1; using std::log; using std::log2; using std::log10; using std::log1p;
using std::sqrt; using std::cbrt;
using std::sin; using std::cos; using std::tan; using std::asin; using std::acos; using std::atan; using std::sinh;
using std::cosh; using std::tanh;
using std::asinh; using std::acosh; using std::atanh; using std::erf; using std::erfc; using std::tgamma;
using std::lgamma;
using std::floor; using std::ceil; using std::trunc; using std::rint; using std::round; using std::fabs;
template <class T> FUNCTION T rsqrt(T v) { return 1 / sqrt(v); }
FUNCTION int atomicCAS(int* p, int before, int now) { const int seen = *p; if (seen == before) *p = now; return seen; }
#endif
#define UNARY(name) template <class T, int N> FUNCTION Vector<T, N> name(Vector<T, N> v) { \
    for (int i = 0; i < N; i++) v[i] = name(v[i]); return v; \
}
UNARY(exp) UNARY(exp2) UNARY(expm1) UNARY(log) UNARY(log2) UNARY(log10) UNARY(log1p) UNARY(sqrt) UNARY(rsqrt) UNARY(sin)
    UNARY(cos) UNARY(tan) UNARY(tanh)
UNARY(erf) UNARY(floor) UNARY(ceil) UNARY(trunc) UNARY(rint) UNARY(fabs)
#define BINARY(name) \
    template <class T, int N> FUNCTION Vector<T, N> name(Vector<T, N> a, Vector<T, N> b) { \
        for (int i = 0; i < N; i++) a[i] = name(a[i], b[i]); return a; \
    } \
    template <class T, int N> FUNCTION Vector<T, N> name(Vector<T, N> a, typename Vector<T, N>::Element b) { \
        for (int i = 0; i < N; i++) a[i] = name(a[i], b); return a; \
    }
template <class T> FUNCTION T cl_min(T a, T b) { return b < a ? b : a; }
template <class T> FUNCTION T cl_max(T a, T b) { return a < b ? b : a; }
template <class T> FUNCTION T cl_abs(T a) { return a < 0 ? T(0 - a) : a; }
template <class T> FUNCTION T clamp(T v, T low, T high) { return cl_min(cl_max(v, low), high); }
BINARY(fmin) BINARY(fmax) BINARY(pow) BINARY(cl_min) BINARY(cl_max)
#define min cl_min
#define max cl_max
#define abs cl_abs
FUNCTION cl_uint mul_hi(cl_uint a, cl_uint b) { return cl_uint(cl_ulong(a) * b >> 32); }
FUNCTION cl_ulong mul_hi(cl_ulong a, cl_ulong b) {
#if defined(__CUDACC_RTC__) || defined(CUDA_SIMULATOR)
    return __umul64hi(a, b);
#else
    return cl_ulong((unsigned __int128)a * b >> 64);
#endif
}
template <class M, int N> FUNCTION int any(Vector<M, N> c) {
    int found = 0; for (int i = 0; i < N; i++) found |= c[i] < 0; return found;
}
FUNCTION cl_int atomic_cmpxchg(volatile cl_int* p, cl_int before, cl_int now) {
    return atomicCAS(const_cast<cl_int*>(p), before, now);
}
FUNCTION cl_uint atomic_cmpxchg(volatile cl_uint* p, cl_uint before, cl_uint now) {
    return atomicCAS(const_cast<cl_uint*>(p), before, now);
}
FUNCTION cl_ulong atom_cmpxchg(volatile cl_ulong* p, cl_ulong before, cl_ulong now) {
    return atomicCAS(const_cast<cl_ulong*>(p), before, now);
}
"""


CUDA = (
    _TYPES
    + _ACCESS
    + _FUNCTIONS
    + conversions(
        "FUNCTION",
        convert="{to}{n} c; for (int i = 0; i < {n}; i++) c[i] = {to}(v[i]); return c;",
        load="Vector<T, {n}> v; for (int k = 0; k < {n}; k++) v[k] = p[i * {n} + k]; return v;",
        store="for (int k = 0; k < {n}; k++) p[i * {n} + k] = v[k];",
    )
)
