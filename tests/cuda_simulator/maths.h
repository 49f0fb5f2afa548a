// Functions on numbers: overloads for float and double as in CUDA, then the functions whose names begin with two underscores.
#pragma once

#define INTEGRAL(T) typename cuda_simulator_integral<T>::real
template <class> struct cuda_simulator_integral {};
#define CUDA_SIMULATOR_INTEGRAL(T) template <> struct cuda_simulator_integral<T> { typedef double real; };
CUDA_SIMULATOR_INTEGRAL(bool) CUDA_SIMULATOR_INTEGRAL(char) CUDA_SIMULATOR_INTEGRAL(signed char) CUDA_SIMULATOR_INTEGRAL(unsigned char)
CUDA_SIMULATOR_INTEGRAL(short) CUDA_SIMULATOR_INTEGRAL(unsigned short) CUDA_SIMULATOR_INTEGRAL(int) CUDA_SIMULATOR_INTEGRAL(unsigned int)
CUDA_SIMULATOR_INTEGRAL(long) CUDA_SIMULATOR_INTEGRAL(unsigned long) CUDA_SIMULATOR_INTEGRAL(long long) CUDA_SIMULATOR_INTEGRAL(unsigned long long)
#undef CUDA_SIMULATOR_INTEGRAL

#define CUDA_SIMULATOR_1(name)                                                    \
    static inline float name(float x) { return __builtin_##name##f(x); }           \
    static inline float name##f(float x) { return __builtin_##name##f(x); }        \
    static inline double name(double x) { return __builtin_##name(x); }            \
    template <class T> static inline INTEGRAL(T) name(T x) { return __builtin_##name((double)x); }
#define CUDA_SIMULATOR_2_OF(own, name)                                                                    \
    static inline float name(float x, float y) { return own##name##f(x, y); }                   \
    static inline float name##f(float x, float y) { return own##name##f(x, y); }                \
    static inline double name(double x, double y) { return own##name(x, y); }                   \
    static inline double name(float x, double y) { return own##name((double)x, y); }            \
    static inline double name(double x, float y) { return own##name(x, (double)y); }            \
    template <class T> static inline INTEGRAL(T) name(T x, double y) { return own##name((double)x, y); } \
    template <class T> static inline INTEGRAL(T) name(double x, T y) { return own##name(x, (double)y); }
#define CUDA_SIMULATOR_2(name) CUDA_SIMULATOR_2_OF(__builtin_, name)
// Of two zeros a GPU takes 0 for the larger one and -0 for the smaller one.
static inline float cuda_simulator_fmaxf(float x, float y) { return x == 0 && y == 0 ? x + y : __builtin_fmaxf(x, y); }
static inline double cuda_simulator_fmax(double x, double y) { return x == 0 && y == 0 ? x + y : __builtin_fmax(x, y); }
static inline float cuda_simulator_fminf(float x, float y) { return -cuda_simulator_fmaxf(-x, -y); }
static inline double cuda_simulator_fmin(double x, double y) { return -cuda_simulator_fmax(-x, -y); }
CUDA_SIMULATOR_1(sqrt) CUDA_SIMULATOR_1(cbrt) CUDA_SIMULATOR_1(exp) CUDA_SIMULATOR_1(exp2) CUDA_SIMULATOR_1(exp10) CUDA_SIMULATOR_1(expm1)
CUDA_SIMULATOR_1(log) CUDA_SIMULATOR_1(log2) CUDA_SIMULATOR_1(log10) CUDA_SIMULATOR_1(log1p) CUDA_SIMULATOR_1(logb)
CUDA_SIMULATOR_1(sin) CUDA_SIMULATOR_1(cos) CUDA_SIMULATOR_1(tan) CUDA_SIMULATOR_1(asin) CUDA_SIMULATOR_1(acos) CUDA_SIMULATOR_1(atan)
CUDA_SIMULATOR_1(sinh) CUDA_SIMULATOR_1(cosh) CUDA_SIMULATOR_1(tanh) CUDA_SIMULATOR_1(asinh) CUDA_SIMULATOR_1(acosh) CUDA_SIMULATOR_1(atanh)
CUDA_SIMULATOR_1(erf) CUDA_SIMULATOR_1(erfc) CUDA_SIMULATOR_1(lgamma) CUDA_SIMULATOR_1(tgamma)
CUDA_SIMULATOR_1(j0) CUDA_SIMULATOR_1(j1) CUDA_SIMULATOR_1(y0) CUDA_SIMULATOR_1(y1)
CUDA_SIMULATOR_1(floor) CUDA_SIMULATOR_1(ceil) CUDA_SIMULATOR_1(trunc) CUDA_SIMULATOR_1(round) CUDA_SIMULATOR_1(rint) CUDA_SIMULATOR_1(nearbyint)
CUDA_SIMULATOR_1(fabs)
CUDA_SIMULATOR_2(pow) CUDA_SIMULATOR_2(fmod) CUDA_SIMULATOR_2(remainder) CUDA_SIMULATOR_2(atan2) CUDA_SIMULATOR_2(hypot)
CUDA_SIMULATOR_2_OF(cuda_simulator_, fmax) CUDA_SIMULATOR_2_OF(cuda_simulator_, fmin) CUDA_SIMULATOR_2(fdim) CUDA_SIMULATOR_2(copysign) CUDA_SIMULATOR_2(nextafter)
#undef CUDA_SIMULATOR_1
#undef CUDA_SIMULATOR_2
#undef CUDA_SIMULATOR_2_OF

// Functions of both types from one expression on them.
#define CUDA_SIMULATOR_BOTH(result_float, result_double, name, parameters_float, parameters_double, of_float, of_double) \
    static inline result_float name parameters_float { return of_float; }                                                \
    static inline result_float name##f parameters_float { return of_float; }                                             \
    static inline result_double name parameters_double { return of_double; }
CUDA_SIMULATOR_BOTH(float, double, fma, (float x, float y, float z), (double x, double y, double z), __builtin_fmaf(x, y, z), __builtin_fma(x, y, z))
CUDA_SIMULATOR_BOTH(float, double, rsqrt, (float x), (double x), (float)(1 / __builtin_sqrt((double)x)), 1 / __builtin_sqrt(x))
CUDA_SIMULATOR_BOTH(float, double, rcbrt, (float x), (double x), (float)(1 / __builtin_cbrt((double)x)), 1 / __builtin_cbrt(x))
CUDA_SIMULATOR_BOTH(float, double, rhypot, (float x, float y), (double x, double y), 1 / __builtin_hypotf(x, y), 1 / __builtin_hypot(x, y))
CUDA_SIMULATOR_BOTH(float, double, ldexp, (float x, int e), (double x, int e), __builtin_ldexpf(x, e), __builtin_ldexp(x, e))
CUDA_SIMULATOR_BOTH(float, double, scalbn, (float x, int e), (double x, int e), __builtin_scalbnf(x, e), __builtin_scalbn(x, e))
CUDA_SIMULATOR_BOTH(float, double, frexp, (float x, int* e), (double x, int* e), __builtin_frexpf(x, e), __builtin_frexp(x, e))
CUDA_SIMULATOR_BOTH(float, double, modf, (float x, float* whole), (double x, double* whole), __builtin_modff(x, whole), __builtin_modf(x, whole))
CUDA_SIMULATOR_BOTH(int, int, ilogb, (float x), (double x), __builtin_ilogbf(x), __builtin_ilogb(x))
CUDA_SIMULATOR_BOTH(long, long, lrint, (float x), (double x), __builtin_lrintf(x), __builtin_lrint(x))
CUDA_SIMULATOR_BOTH(long, long, lround, (float x), (double x), __builtin_lroundf(x), __builtin_lround(x))
CUDA_SIMULATOR_BOTH(long long, long long, llrint, (float x), (double x), __builtin_llrintf(x), __builtin_llrint(x))
CUDA_SIMULATOR_BOTH(long long, long long, llround, (float x), (double x), __builtin_llroundf(x), __builtin_llround(x))
CUDA_SIMULATOR_BOTH(float, double, jn, (int n, float x), (int n, double x), __builtin_jnf(n, x), __builtin_jn(n, x))
CUDA_SIMULATOR_BOTH(float, double, yn, (int n, float x), (int n, double x), __builtin_ynf(n, x), __builtin_yn(n, x))
static inline float pow(float x, int n) { return __builtin_powf(x, (float)n); }

// sin(pi x) and cos(pi x), exact at whole and half numbers.
static inline double sinpi(double x) {
    if (!__builtin_isfinite(x)) return __builtin_nan("");
    double r = __builtin_remainder(x, 2);  // -1 .. 1
    if (r > 0.5) r = 1 - r;
    else if (r < -0.5) r = -1 - r;
    return r == 0 ? __builtin_copysign(0.0, x) : __builtin_sin(3.14159265358979323846 * r);
}
static inline double cospi(double x) {
    if (!__builtin_isfinite(x)) return __builtin_nan("");
    double r = __builtin_fabs(__builtin_remainder(x, 2));
    return r == 0.5 ? 0 : r > 0.25 ? __builtin_sin(3.14159265358979323846 * (0.5 - r)) : __builtin_cos(3.14159265358979323846 * r);
}
static inline float sinpi(float x) { return (float)sinpi((double)x); }
static inline float cospi(float x) { return (float)cospi((double)x); }
static inline float sinpif(float x) { return sinpi(x); }
static inline float cospif(float x) { return cospi(x); }
static inline void sincos(double x, double* s, double* c) { *s = __builtin_sin(x), *c = __builtin_cos(x); }
static inline void sincos(float x, float* s, float* c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
static inline void sincosf(float x, float* s, float* c) { sincos(x, s, c); }
static inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
static inline void sincospi(float x, float* s, float* c) { *s = sinpi(x), *c = cospi(x); }
// Winitzki's formula, then Newton's method.
static inline double erfinv(double y) {
    double a = __builtin_fabs(y);
    if (!(a < 1)) return a == 1 ? __builtin_copysign(__builtin_inf(), y) : __builtin_nan("");
    double l = __builtin_log1p(-a * a), h = 4.3307467508 + l / 2, x = __builtin_sqrt(__builtin_sqrt(h * h - l / 0.147) - h);
    for (int k = 0; k < 4; k++) x -= ((1 - a) - __builtin_erfc(x)) * 0.88622692545275801365 * __builtin_exp(x * x);
    return __builtin_copysign(x, y);
}
static inline float erfinv(float y) { return (float)erfinv((double)y); }
static inline float erfinvf(float y) { return erfinv(y); }
static inline double normcdf(double x) { return 0.5 * __builtin_erfc(-x * 0.70710678118654752440); }
static inline float normcdf(float x) { return (float)normcdf((double)x); }
static inline float normcdff(float x) { return normcdf(x); }

static inline bool isnan(float x) { return __builtin_isnan(x); }
static inline bool isnan(double x) { return __builtin_isnan(x); }
static inline bool isinf(float x) { return __builtin_isinf(x); }
static inline bool isinf(double x) { return __builtin_isinf(x); }
static inline bool isfinite(float x) { return __builtin_isfinite(x); }
static inline bool isfinite(double x) { return __builtin_isfinite(x); }
static inline bool signbit(float x) { return __builtin_signbit(x); }
static inline bool signbit(double x) { return __builtin_signbit(x); }

static inline int abs(int x) { return x < 0 ? (int)-(unsigned int)x : x; }
static inline long abs(long x) { return x < 0 ? (long)-(unsigned long)x : x; }
static inline long long abs(long long x) { return x < 0 ? (long long)-(unsigned long long)x : x; }
static inline long long llabs(long long x) { return abs(x); }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }
#define CUDA_SIMULATOR_EXTREMES(type)                                     \
    static inline type min(type x, type y) { return x < y ? x : y; }      \
    static inline type max(type x, type y) { return x > y ? x : y; }
CUDA_SIMULATOR_EXTREMES(int) CUDA_SIMULATOR_EXTREMES(unsigned int) CUDA_SIMULATOR_EXTREMES(long) CUDA_SIMULATOR_EXTREMES(unsigned long)
CUDA_SIMULATOR_EXTREMES(long long) CUDA_SIMULATOR_EXTREMES(unsigned long long)
#undef CUDA_SIMULATOR_EXTREMES
static inline unsigned int min(int x, unsigned int y) { return min((unsigned int)x, y); }
static inline unsigned int min(unsigned int x, int y) { return min(x, (unsigned int)y); }
static inline unsigned int max(int x, unsigned int y) { return max((unsigned int)x, y); }
static inline unsigned int max(unsigned int x, int y) { return max(x, (unsigned int)y); }
static inline float min(float x, float y) { return __builtin_fminf(x, y); }
static inline float max(float x, float y) { return __builtin_fmaxf(x, y); }
static inline double min(double x, double y) { return __builtin_fmin(x, y); }
static inline double max(double x, double y) { return __builtin_fmax(x, y); }
static inline double min(float x, double y) { return __builtin_fmin((double)x, y); }
static inline double min(double x, float y) { return __builtin_fmin(x, (double)y); }
static inline double max(float x, double y) { return __builtin_fmax((double)x, y); }
static inline double max(double x, float y) { return __builtin_fmax(x, (double)y); }

// ---- bits ----

template <class To, class From> static inline To cuda_simulator_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    __builtin_memcpy((void*)&to, &from, sizeof to);
    return to;
}
static inline unsigned int __float_as_uint(float x) { return cuda_simulator_bits<unsigned int>(x); }
static inline int __float_as_int(float x) { return cuda_simulator_bits<int>(x); }
static inline float __uint_as_float(unsigned int x) { return cuda_simulator_bits<float>(x); }
static inline float __int_as_float(int x) { return cuda_simulator_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return cuda_simulator_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return cuda_simulator_bits<double>(x); }
static inline int __double2hiint(double x) { return (int)(cuda_simulator_bits<unsigned long long>(x) >> 32); }
static inline int __double2loint(double x) { return (int)cuda_simulator_bits<unsigned long long>(x); }
static inline double __hiloint2double(int high, int low) {
    return cuda_simulator_bits<double>((unsigned long long)(unsigned int)high << 32 | (unsigned int)low);
}
static inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
static inline unsigned int __umulhi(unsigned int x, unsigned int y) { return (unsigned int)((unsigned long long)x * y >> 32); }
static inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline int __mul24(int x, int y) { return (int)((unsigned int)(x << 8 >> 8) * (unsigned int)(y << 8 >> 8)); }
static inline unsigned int __umul24(unsigned int x, unsigned int y) { return (x & 0xffffffu) * (y & 0xffffffu); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned int)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __popc(unsigned int x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned int __brev(unsigned int x) {
    unsigned int r = 0;
    for (int k = 0; k < 32; k++) r |= (x >> k & 1u) << (31 - k);
    return r;
}
static inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned int)x) << 32 | __brev((unsigned int)(x >> 32));
}
static inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
    return (unsigned int)((((unsigned long long)high << 32 | low) << (shift & 31)) >> 32);
}
static inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
    return (unsigned int)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
static inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int which) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned int r = 0;
    for (int k = 0; k < 4; k++) {
        unsigned int take = which >> (4 * k) & 15, byte = (unsigned int)(both >> (8 * (take & 7))) & 255;
        r |= (take & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * k);
    }
    return r;
}
template <class T> static inline T __ldg(const T* p) { return *p; }
template <class T> static inline T __ldcs(const T* p) { return *p; }
template <class T> static inline T __ldcg(const T* p) { return *p; }
template <class T> static inline void __stcs(T* p, T v) { *p = v; }
static inline void __nanosleep(unsigned int) {}
static inline long long clock64() {
    static long long ticks;
    return ++ticks;
}

// ---- arithmetic that is not contracted, conversions, and the quick functions of the special function unit ----

#define CUDA_SIMULATOR_OPAQUE(type, expression) { volatile type r = expression; return r; }
static inline float __fadd_rn(float x, float y) CUDA_SIMULATOR_OPAQUE(float, x + y)
static inline float __fsub_rn(float x, float y) CUDA_SIMULATOR_OPAQUE(float, x - y)
static inline float __fmul_rn(float x, float y) CUDA_SIMULATOR_OPAQUE(float, x * y)
static inline float __fdiv_rn(float x, float y) CUDA_SIMULATOR_OPAQUE(float, x / y)
static inline double __dadd_rn(double x, double y) CUDA_SIMULATOR_OPAQUE(double, x + y)
static inline double __dsub_rn(double x, double y) CUDA_SIMULATOR_OPAQUE(double, x - y)
static inline double __dmul_rn(double x, double y) CUDA_SIMULATOR_OPAQUE(double, x * y)
static inline double __ddiv_rn(double x, double y) CUDA_SIMULATOR_OPAQUE(double, x / y)
#undef CUDA_SIMULATOR_OPAQUE
static inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
static inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
static inline float __frcp_rn(float x) { return 1 / x; }
static inline float __frsqrt_rn(float x) { return rsqrt(x); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float fdividef(float x, float y) { return x / y; }
static inline float __expf(float x) { return __builtin_expf(x); }
static inline float __exp10f(float x) { return __builtin_exp10f(x); }
static inline float __logf(float x) { return __builtin_logf(x); }
static inline float __log2f(float x) { return __builtin_log2f(x); }
static inline float __log10f(float x) { return __builtin_log10f(x); }
static inline float __powf(float x, float y) { return __builtin_powf(x, y); }
static inline float __sinf(float x) { return __builtin_sinf(x); }
static inline float __cosf(float x) { return __builtin_cosf(x); }
static inline float __tanf(float x) { return __builtin_tanf(x); }
static inline void __sincosf(float x, float* s, float* c) { sincos(x, s, c); }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

// From floating point to whole numbers: the nearest that there is, and 0 (of 64 bits: the lowest number) for NaN.
template <class To, class From> static inline To cuda_simulator_whole(From x, To lowest, To highest, To nan) {
    if (x != x) return nan;
    return x <= (From)lowest ? lowest : x >= (From)highest ? highest : (To)x;
}
#define CUDA_SIMULATOR_WHOLE(name, type, from, rounded, lowest, highest, nan) \
    static inline type name(from x) { return cuda_simulator_whole<type, from>(rounded, lowest, highest, nan); }
#define CUDA_SIMULATOR_WHOLES(prefix, from, type, lowest, highest, nan, f)                              \
    CUDA_SIMULATOR_WHOLE(prefix##_rn, type, from, __builtin_nearbyint##f(x), lowest, highest, nan)      \
    CUDA_SIMULATOR_WHOLE(prefix##_rz, type, from, __builtin_trunc##f(x), lowest, highest, nan)          \
    CUDA_SIMULATOR_WHOLE(prefix##_rd, type, from, __builtin_floor##f(x), lowest, highest, nan)          \
    CUDA_SIMULATOR_WHOLE(prefix##_ru, type, from, __builtin_ceil##f(x), lowest, highest, nan)
#define CUDA_SIMULATOR_LOWEST (-0x7fffffffffffffffll - 1)
CUDA_SIMULATOR_WHOLES(__float2int, float, int, -0x7fffffff - 1, 0x7fffffff, 0, f)
CUDA_SIMULATOR_WHOLES(__float2uint, float, unsigned int, 0u, 0xffffffffu, 0u, f)
CUDA_SIMULATOR_WHOLES(__float2ll, float, long long, CUDA_SIMULATOR_LOWEST, 0x7fffffffffffffffll, CUDA_SIMULATOR_LOWEST, f)
CUDA_SIMULATOR_WHOLES(__float2ull, float, unsigned long long, 0ull, ~0ull, 1ull << 63, f)
CUDA_SIMULATOR_WHOLES(__double2int, double, int, -0x7fffffff - 1, 0x7fffffff, 0, )
CUDA_SIMULATOR_WHOLES(__double2uint, double, unsigned int, 0u, 0xffffffffu, 0u, )
CUDA_SIMULATOR_WHOLES(__double2ll, double, long long, CUDA_SIMULATOR_LOWEST, 0x7fffffffffffffffll, CUDA_SIMULATOR_LOWEST, )
CUDA_SIMULATOR_WHOLES(__double2ull, double, unsigned long long, 0ull, ~0ull, 1ull << 63, )
#undef CUDA_SIMULATOR_WHOLE
#undef CUDA_SIMULATOR_WHOLES
#undef CUDA_SIMULATOR_LOWEST
#undef CUDA_SIMULATOR_BOTH
#undef INTEGRAL
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned int x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline float __double2float_rn(double x) { return (float)x; }
static inline double __int2double_rn(int x) { return x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
