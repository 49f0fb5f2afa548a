"""C++ definitions of the macros and OpenCL built-ins of kernel sources, for the host's compiler (g++ or clang++).

Vectors are compiler vectors (`vector_size`) in a class with OpenCL's vector operations. Exponential functions of float
vectors are implemented here, other functions use glibc's vector versions if available, else C's element by element.
`opencl_to_cpp` generates the programs. A work-group is a loop there, so kernels with local memory or barriers run in
groups of one; otherwise the entry refuses (`ALONE`).
"""

from __future__ import annotations

from .cpp_preamble import FLOAT_LIMITS_AND_TYPES, LONG_LIMITS, conversions

_TYPES = r"""
#define FUNCTION inline
#define KERNEL inline
#define ALONE (alone_ = alone_ & (group_ == 1))
#define LOCAL_ARRAY(T, name, n) T name[n]; ALONE
#define LOCAL_MATRIX(T, name, n, m) T name[n][m]; ALONE
#define NOT_UNROLLED
#define FEW_TIMES
#define GROUP_SIZE(n)
#define BARRIER ALONE
#define BARRIER_ALL ALONE
#define THREAD (item_.x - group_start_.x)
#define THREAD_Y (item_.y - group_start_.y)
#define THREADS (local_.x)
#define BLOCK (item_.x / local_.x)
#define BLOCKS ((global_.x + local_.x - 1) / local_.x)
#define BLOCK_Y (item_.y / local_.y)
#define BLOCK_Z (item_.z / local_.z)
#define ITEM (item_.x)
#define ITEM_Y (item_.y)
#define ITEM_Z (item_.z)
#define ITEMS (global_.x)
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define INT_MAX 0x7fffffff
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 0xffffffffu
#define INLINE inline __attribute__((always_inline))
typedef decltype(sizeof(0)) size_t;
template <int... I> struct Indices {};
#ifdef __clang__
template <class, int... I> struct Listed { typedef Indices<I...> Type; };
template <int n> using UpTo = typename __make_integer_seq<Listed, int, n>::Type;
#else
template <int n> using UpTo = Indices<__integer_pack(n)...>;
#endif
// The compiler's vectors; in memory they need lie no better than their elements do.
template <class T, int N> struct Natives {
    typedef T Type __attribute__((vector_size(sizeof(T) * N), aligned(sizeof(T))));
};
template <class T, int N> struct Cells { typename Natives<T, N>::Type v; };
template <class T> struct Cells<T, 2> { union { typename Natives<T, 2>::Type v; struct { T x, y; }; }; };
template <class T> struct Cells<T, 4> { union { typename Natives<T, 4>::Type v; struct { T x, y, z, w; }; }; };
template <class T, int N> struct Vector;
template <class T> struct Is { static constexpr bool vector = false; };
template <class T, int N> struct Is<Vector<T, N>> { static constexpr bool vector = true; };
template <class T, int N> struct Vector : Cells<T, N> {
    typedef T Element;
    typedef typename Natives<T, N>::Type Native;
    typedef Vector<typename Signed<sizeof(T)>::Type, N> Mask;
    Vector() = default;
    INLINE Vector(Native n) { this->v = n; }
    INLINE Vector(T s) { this->v = s - Native{}; }
    template <class... More> INLINE Vector(T first, T second, More... more) {
        static_assert(sizeof...(More) + 2 <= N, "no more numbers than elements");
        int at = 0;
        put(at, first); put(at, second);
        (put(at, more), ...);
    }
    template <class P, int M, class Q, class... More> INLINE Vector(Vector<P, M> first, Q second, More... more) {
        if constexpr (sizeof...(More) == 0 && 2 * M == N && Is<Q>::vector) join(first, second, UpTo<N>());
        else {
            int at = 0;
            put(at, first); put(at, second);
            (put(at, more), ...);
        }
    }
    INLINE void put(int& at, T part) { this->v[at++] = part; }
    template <int M> INLINE void put(int& at, Vector<T, M> part) {
        for (int k = 0; k < M; k++) this->v[at++] = part.v[k];
    }
    INLINE T& operator[](int i) { return reinterpret_cast<T*>(this)[i]; }
    INLINE T operator[](int i) const { return this->v[i]; }
    // The elements first, first + step, ...: n of them.
    template <int first, int step, int n, int... I> INLINE Vector<T, n> taken(Indices<I...>) const {
        if constexpr (n == 1) return Vector<T, n>(this->v[first]);
        else return Vector<T, n>(
            typename Natives<T, n>::Type(__builtin_shufflevector(this->v, this->v, (first + step * I)...)));
    }
    // place % 16 elements from place / 16 on.
    template <int place> INLINE Vector<T, place % 16> part() const {
        return taken<place / 16, 1, place % 16>(UpTo<place % 16>());
    }
    INLINE Vector<T, N / 2> lower() const { return taken<0, 1, N / 2>(UpTo<N / 2>()); }
    INLINE Vector<T, N / 2> upper() const { return taken<N / 2, 1, N / 2>(UpTo<N / 2>()); }
    template <int first> INLINE Vector<T, N / 2> every_other() const { return taken<first, 2, N / 2>(UpTo<N / 2>()); }
    template <int first> INLINE void set_every_other(Vector<T, N / 2> c) { set_other<first>(c, UpTo<N>()); }
    template <int first, int... I> INLINE void set_other(Vector<T, N / 2> c, Indices<I...>) {
        const Native wide = __builtin_shufflevector(c.v, c.v, (I / 2)...);
        this->v = __builtin_shufflevector(this->v, wide, (I % 2 == first ? N + I : I)...);
    }
    // All elements `count` places further on, and `one` in the first places.
    template <int count> INLINE Vector moved(T one) const { return moved_on<count>(Vector(one), UpTo<N>()); }
    template <int count, int... I> INLINE Vector moved_on(Vector one, Indices<I...>) const {
        return Vector(Native(__builtin_shufflevector(this->v, one.v, (I < count ? N + I : I - count)...)));
    }
    template <int... I> INLINE void join(Vector<T, N / 2> a, Vector<T, N / 2> b, Indices<I...>) {
        this->v = __builtin_shufflevector(a.v, b.v, I...);
    }
#define BINARY(op) \
    friend INLINE Vector operator op(Vector a, Vector b) { return Vector(Native(a.v op b.v)); } \
    INLINE Vector& operator op##=(Vector b) { return *this = *this op b; }
#define COMPARISON(op) \
    friend INLINE Mask operator op(Vector a, Vector b) { return Mask((typename Mask::Native)(a.v op b.v)); }
    BINARY(+) BINARY(-) BINARY(*) BINARY(/) BINARY(%) BINARY(&) BINARY(|) BINARY(^) BINARY(<<) BINARY(>>)
    COMPARISON(<) COMPARISON(>) COMPARISON(<=) COMPARISON(>=) COMPARISON(==) COMPARISON(!=)
#undef BINARY
#undef COMPARISON
    friend INLINE Mask operator&&(Vector a, Vector b) { return (a != Vector(T(0))) & (b != Vector(T(0))); }
    friend INLINE Mask operator||(Vector a, Vector b) { return (a != Vector(T(0))) | (b != Vector(T(0))); }
    friend INLINE Mask operator!(Vector a) { return a == Vector(T(0)); }
    friend INLINE Vector operator-(Vector a) { return Vector(Native(-a.v)); }
    friend INLINE Vector operator~(Vector a) { return Vector(Native(~a.v)); }
};
template <class A, class B, bool first> struct Chosen { typedef A Type; };
template <class A, class B> struct Chosen<A, B, false> { typedef B Type; };
// OpenCL's ?: for scalars and for vectors. What is not chosen of scalars is not computed.
template <class C, class T> INLINE T choose(C c, T a, T b) {
    if constexpr (Is<C>::vector) return T(typename T::Native(c.v ? a.v : b.v));
    else return c ? a : b;
}
template <class C, class A, class B> INLINE auto choose_of(C c, A a, B b) {
    if constexpr (Is<C>::vector) {
        typedef typename Chosen<decltype(a()), decltype(b()), Is<decltype(a())>::vector>::Type T;
        return choose(c, T(a()), T(b()));
    } else return c ? a() : b();
}
template <class T, int N> INLINE bool all_of(Vector<T, N> c) {
    if constexpr (sizeof(T) * N > 16) return all_of(c.lower() & c.upper());
    else if constexpr (sizeof(T) * N == 16) {
        cl_long parts[2];
        __builtin_memcpy(parts, &c.v, sizeof parts);
        return (parts[0] & parts[1]) == -1;
    } else {
        bool all = true;
        for (int k = 0; k < N; k++) all &= c.v[k] != 0;
        return all;
    }
}
// The same where the second value takes long: it is not computed for a vector that has none.
template <class C, class A, class B> INLINE auto choose_first_of(C c, A a, B b) {
    if constexpr (Is<C>::vector) {
        typedef typename Chosen<decltype(a()), decltype(b()), Is<decltype(a())>::vector>::Type T;
        const T first = T(a());
        if (all_of(c)) return first;
        return choose(c, first, T(b()));
    } else return c ? a() : b();
}
#define SELECT(c, a, b) choose(c, a, b)
#define LATER [&]() __attribute__((always_inline))
#define VEC2(T, ...) T(__VA_ARGS__)
#define VEC4(T, ...) T(__VA_ARGS__)
#define VEC8(T, ...) T(__VA_ARGS__)
#define VEC16(T, ...) T(__VA_ARGS__)
template <int N, class T, class S> INLINE Vector<T, N> converted(Vector<S, N> v) {
    return Vector<T, N>(__builtin_convertvector(v.v, typename Natives<T, N>::Type));
}
template <int N, class T> INLINE Vector<T, N> load_cells(const T* p, cl_long i) {
    return Vector<T, N>(*(const typename Natives<T, N>::Type*)(p + i));
}
template <int N, class T> INLINE void store_cells(T* p, cl_long i, Vector<T, N> v) {
    *(typename Natives<T, N>::Type*)(p + i) = v.v;
}
template <class D, class S> INLINE D bits_as(S s) {
    static_assert(sizeof(D) == sizeof(S), "types of one size");
    D d;
    __builtin_memcpy((void*)&d, &s, sizeof d);
    return d;
}
"""

# Half precision by bits, for scalars and vectors alike: U an unsigned integer or a vector of it, F the float as wide.
_HALVES = r"""
template <class U, class F> INLINE F half_bits_as_float(U h) {
    const U sign = (h & U(0x8000u)) << U(16), rest = (h & U(0x7fffu)) << U(13);
    const F v = bits_as<F>(rest) * F(5.192296858534828e+33f);  // 2**112: the exponents' distance
    return bits_as<F>(bits_as<U>(v) | sign | choose(rest >= U(0x0f800000u), U(0x7f800000u), U(0u)));
}
template <class U, class F> INLINE U float_as_half_bits(F v) {
    const U all = bits_as<U>(v), sign = (all >> U(16)) & U(0x8000u), u = all & U(0x7fffffffu);
    const U small = bits_as<U>(bits_as<F>(u) + F(0.5f)) - U(0x3f000000u);
    const U usual = (u + U(0xfffu) + ((u >> U(13)) & U(1u)) - U(0x38000000u)) >> U(13);
    const U finite = choose(u < U(0x38800000u), small, usual);
    return choose(u > U(0x7f800000u), U(0x7fffu), sign | choose(u >= U(0x477ff000u), U(0x7c00u), finite));
}
template <class U, class F> INLINE U float_as_bf16_bits(F v) {
    const U u = bits_as<U>(v);
    return choose(v != v, U(0x7fc0u), (u + U(0x7fffu) + ((u >> U(16)) & U(1u))) >> U(16));
}
INLINE float half_as_float(cl_half h) { return half_bits_as_float<cl_uint, float>(h); }
INLINE cl_half float_as_half(float v) { return float_as_half_bits<cl_uint, float>(v); }
INLINE float bf16_as_float(cl_ushort h) { return bits_as<float>(cl_uint(h) << 16); }
INLINE cl_ushort float_as_bf16(float v) { return float_as_bf16_bits<cl_uint, float>(v); }
template <int N> INLINE Vector<float, N> load_half(const cl_ushort* p, cl_long i) {
    return half_bits_as_float<Vector<cl_uint, N>, Vector<float, N>>(converted<N, cl_uint>(load_cells<N>(p, i)));
}
template <int N> INLINE void store_half(cl_ushort* p, cl_long i, Vector<float, N> v) {
    store_cells(p, i, converted<N, cl_ushort>(float_as_half_bits<Vector<cl_uint, N>, Vector<float, N>>(v)));
}
template <int N> INLINE Vector<float, N> load_bf16(const cl_ushort* p, cl_long i) {
    return bits_as<Vector<float, N>>(converted<N, cl_uint>(load_cells<N>(p, i)) << Vector<cl_uint, N>(16));
}
template <int N> INLINE void store_bf16(cl_ushort* p, cl_long i, Vector<float, N> v) {
    store_cells(p, i, converted<N, cl_ushort>(float_as_bf16_bits<Vector<cl_uint, N>, Vector<float, N>>(v)));
}
#define LD_HALF(p, i) half_as_float((p)[i])
#define ST_HALF(p, i, v) ((p)[i] = float_as_half(v))
#define LD_BF16(p, i) bf16_as_float((p)[i])
#define ST_BF16(p, i, v) ((p)[i] = float_as_bf16(v))
"""

_UNARY_MATH = (
    "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "tgamma", "floor", "ceil",
    "trunc", "round", "rint", "fabs",
)  # fmt: skip
_BINARY_MATH = ("pow", "fmod", "remainder", "atan2", "hypot", "fmax", "fmin", "copysign", "nextafter")
# glibc's vector functions: names, arguments, and the version that introduced them on x86 and on AArch64.
_LIBMVEC = (
    *((name, 1, 22, 38) for name in ("exp", "log", "sin", "cos")),
    ("pow", 2, 22, 40),
    *((name, 1, 35, 39) for name in ("acos", "asin", "atan", "expm1", "log10", "log1p", "log2", "exp2", "tan")),
    *((name, 1, 35, 40) for name in ("acosh", "asinh", "atanh", "cbrt", "cosh", "erf", "erfc", "sinh", "tanh")),
    ("atan2", 2, 35, 39), ("hypot", 2, 35, 40),
)  # fmt: skip

_VECTOR_MATHS = r"""
#define FLOATING template <class T, int N> INLINE Vector<T, N>
template <class T, int N> struct Bits { typedef Vector<typename Signed<sizeof(T)>::Type, N> Type; };
template <class T> struct Sign;
template <> struct Sign<float> { static constexpr int bit = -INT_MAX - 1; static constexpr float whole = 8388608.0f; };
template <> struct Sign<double> {
    static constexpr long long bit = LONG_MIN;
    static constexpr double whole = 4503599627370496.0;
};
FLOATING fabs(Vector<T, N> v) {
    typedef typename Bits<T, N>::Type B;
    return bits_as<Vector<T, N>>(bits_as<B>(v) & B(~Sign<T>::bit));
}
FLOATING copysign(Vector<T, N> v, Vector<T, N> s) {
    typedef typename Bits<T, N>::Type B;
    return bits_as<Vector<T, N>>((bits_as<B>(v) & B(~Sign<T>::bit)) | (bits_as<B>(s) & B(Sign<T>::bit)));
}
FLOATING copysign(Vector<T, N> v, T s) { return copysign(v, Vector<T, N>(s)); }
FLOATING rint(Vector<T, N> v) {  // what is added leaves no place for a fraction
    const Vector<T, N> big(Sign<T>::whole), size = fabs(v);
    const Vector<T, N> whole = size + big;
    return choose(size < big, copysign(whole - big, v), v);
}
FLOATING floor(Vector<T, N> v) {
    const Vector<T, N> r = rint(v);
    return copysign(r - choose(r > v, Vector<T, N>(1), Vector<T, N>(0)), v);
}
FLOATING ceil(Vector<T, N> v) { return -floor(-v); }
FLOATING trunc(Vector<T, N> v) { return copysign(floor(fabs(v)), v); }
FLOATING rsqrt(Vector<T, N> v) { return Vector<T, N>(1) / sqrt(v); }
FLOATING fmin(Vector<T, N> a, Vector<T, N> b) { return choose((a < b) | (b != b), a, b); }
FLOATING fmax(Vector<T, N> a, Vector<T, N> b) { return choose((a > b) | (b != b), a, b); }
template <class T, int N> INLINE typename Vector<T, N>::Mask isnan(Vector<T, N> v) { return v != v; }
template <class T, int N> INLINE typename Vector<T, N>::Mask isfinite(Vector<T, N> v) {
    return v - v == Vector<T, N>(0);
}
template <class T, int N> INLINE typename Vector<T, N>::Mask isinf(Vector<T, N> v) {
    return fabs(v) == Vector<T, N>(__builtin_inff());
}
template <class T, int N> INLINE typename Vector<T, N>::Mask signbit(Vector<T, N> v) {
    return bits_as<typename Bits<T, N>::Type>(v) < typename Bits<T, N>::Type(0);
}
// v * 2**n, rounded once, for whole n from -151 to 128 (`shifted`: n above 1.5 * 2**23): two factors, neither of which
// is out of range.
template <int N> INLINE Vector<float, N> scaled(Vector<float, N> v, Vector<float, N> n, Vector<float, N> shifted) {
    typedef Vector<int, N> I;
    typedef Vector<float, N> V;
#if defined(__AVX512F__) && !defined(__clang__)
    if constexpr (N == 16) return V(__builtin_ia32_scalefps512_mask(v.v, n.v, v.v, -1, 4));
#endif
    const I whole = bits_as<I>(shifted) - I(0x4b400000), half = whole >> I(1), rest = whole - half;
    return v * bits_as<V>((half + I(127)) << I(23)) * bits_as<V>((rest + I(127)) << I(23));
}
// v between two limits; what is not a number stays so.
template <int N> INLINE Vector<float, N> within(Vector<float, N> v, float low, float high) {
    typedef Vector<float, N> V;
#if defined(__AVX512F__) && !defined(__clang__)
    if constexpr (N == 16) {
        v = V(__builtin_ia32_minps512_mask(V(high).v, v.v, v.v, -1, 4));
        return V(__builtin_ia32_maxps512_mask(V(low).v, v.v, v.v, -1, 4));
    }
#endif
    return choose(v > V(high), V(high), choose(v < V(low), V(low), v));
}
// 1 + c0 r + c1 r**2 + ...; the coefficients below keep exp and exp2 within 0.95 units in the last place.
template <int N, class... More> INLINE Vector<float, N> series(Vector<float, N> r, float last, More... before) {
    typedef Vector<float, N> V;
    V p(last);
    ((p = p * r + V(before)), ...);
    return p * r + V(1);
}
template <int N> INLINE Vector<float, N> exp(Vector<float, N> x) {
    typedef Vector<float, N> V;
    const V shift(12582912.0f);
    x = within(x, -104.0f, 89.0f);
    const V moved = x * V(1.44269504088896341f) + shift, n = moved - shift;
    const V r = (x - n * V(0.693359375f)) - n * V(-2.12194440e-4f);
    const V p = series(r, 1.3843643246218562e-3f, 8.374163880944252e-3f, 4.166800156235695e-2f, 0.16666431725025177f,
        0.4999999403953552f, 1.0f);
    return scaled(p, n, moved);
}
template <int N> INLINE Vector<float, N> exp2(Vector<float, N> x) {
    typedef Vector<float, N> V;
    const V shift(12582912.0f);
    x = within(x, -151.0f, 128.0f);
    const V moved = x + shift, n = moved - shift;
    const V p = series(x - n, 1.5353360504377633e-4f, 1.3398875016719103e-3f, 9.61843691766262e-3f,
        5.5503323674201965e-2f, 0.24022647738456726f, 0.6931471824645996f);
    return scaled(p, n, moved);
}
"""

_FUNCTIONS = r"""
INLINE bool isnan(float x) { return x != x; }
INLINE bool isnan(double x) { return x != x; }
INLINE bool isinf(float x) { return __builtin_isinf(x); }
INLINE bool isinf(double x) { return __builtin_isinf(x); }
INLINE bool isfinite(float x) { return __builtin_isfinite(x); }
INLINE bool isfinite(double x) { return __builtin_isfinite(x); }
INLINE bool signbit(float x) { return __builtin_signbit(x); }
INLINE bool signbit(double x) { return __builtin_signbit(x); }
INLINE float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
INLINE double ldexp(double x, int e) { return __builtin_ldexp(x, e); }
INLINE float frexp(float x, int* e) { return __builtin_frexpf(x, e); }
INLINE double frexp(double x, int* e) { return __builtin_frexp(x, e); }
INLINE int ilogb(float x) { return __builtin_ilogbf(x); }
INLINE int ilogb(double x) { return __builtin_ilogb(x); }
INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
INLINE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
INLINE float rsqrt(float v) { return 1 / __builtin_sqrtf(v); }
INLINE double rsqrt(double v) { return 1 / __builtin_sqrt(v); }
template <class A, class B> INLINE auto cl_min(A a, B b) {
    if constexpr (Is<A>::vector) return choose(A(b) < a, A(b), a);
    else { typedef decltype(true ? a : b) T; return T(b) < T(a) ? T(b) : T(a); }
}
template <class A, class B> INLINE auto cl_max(A a, B b) {
    if constexpr (Is<A>::vector) return choose(a < A(b), A(b), a);
    else { typedef decltype(true ? a : b) T; return T(a) < T(b) ? T(b) : T(a); }
}
template <class T> INLINE T cl_abs(T a) { return choose(a < T(0), T(T(0) - a), a); }
template <class T> INLINE T clamp(T v, T low, T high) { return cl_min(cl_max(v, low), high); }
#define min cl_min
#define max cl_max
#define abs cl_abs
INLINE cl_uint mul_hi(cl_uint a, cl_uint b) { return cl_uint(cl_ulong(a) * b >> 32); }
INLINE cl_ulong mul_hi(cl_ulong a, cl_ulong b) { return cl_ulong((unsigned __int128)a * b >> 64); }
template <int N> INLINE Vector<cl_uint, N> mul_hi(Vector<cl_uint, N> a, Vector<cl_uint, N> b) {
    return converted<N, cl_uint>((converted<N, cl_ulong>(a) * converted<N, cl_ulong>(b)) >> Vector<cl_ulong, N>(32));
}
template <int N> INLINE Vector<cl_ulong, N> mul_hi(Vector<cl_ulong, N> a, Vector<cl_ulong, N> b) {
    for (int k = 0; k < N; k++) a.v[k] = mul_hi(cl_ulong(a.v[k]), cl_ulong(b.v[k]));
    return a;
}
// Products and sums of vectors become one instruction where the processor has it: the compiler is told to.
#if defined(__FMA__) || defined(__aarch64__)
FLOATING fma(Vector<T, N> x, Vector<T, N> y, Vector<T, N> z) { return x * y + z; }
#else
FLOATING fma(Vector<T, N> x, Vector<T, N> y, Vector<T, N> z) {
    for (int k = 0; k < N; k++) x.v[k] = fma(T(x.v[k]), T(y.v[k]), T(z.v[k]));
    return x;
}
#endif
// Whether an element of a mask is set.
template <class M, int N> INLINE int any(Vector<M, N> c) {
#if defined(__AVX512F__) && !defined(__clang__)
    if constexpr (N * sizeof(M) == 64 && sizeof(M) == 4) return __builtin_ia32_ptestmd512(c.v, c.v, -1) != 0;
    if constexpr (N * sizeof(M) == 64 && sizeof(M) == 8) return __builtin_ia32_ptestmq512(c.v, c.v, -1) != 0;
#endif
    if constexpr (N > 2) return any(c.lower() | c.upper());
    else return (c.v[0] | c.v[1]) != 0;
}
template <class T> INLINE T exchange_if(volatile T* p, T before, T now) {
    __atomic_compare_exchange_n(p, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return before;
}
INLINE cl_int atomic_cmpxchg(volatile cl_int* p, cl_int before, cl_int now) { return exchange_if(p, before, now); }
INLINE cl_uint atomic_cmpxchg(volatile cl_uint* p, cl_uint before, cl_uint now) { return exchange_if(p, before, now); }
INLINE cl_ulong atom_cmpxchg(volatile cl_ulong* p, cl_ulong before, cl_ulong now) {
    return exchange_if(p, before, now);
}
"""


def _scalar_math_source() -> str:
    """Return overloads of C's functions for float, double and integers, and their elementwise form for vectors."""
    lines = [
        "template <class> struct Whole {};",
        *(f"template <> struct Whole<{t}> {{ typedef double Real; }};" for t in (
            "bool", "cl_char", "cl_uchar", "cl_short", "cl_ushort", "cl_int", "cl_uint", "cl_long", "cl_ulong", "long",
            "unsigned long",
        )),
    ]  # fmt: skip
    for name in _UNARY_MATH:
        lines += [
            f"INLINE float {name}(float x) {{ return __builtin_{name}f(x); }}",
            f"INLINE double {name}(double x) {{ return __builtin_{name}(x); }}",
            f"template <class T> INLINE typename Whole<T>::Real {name}(T x) {{ return __builtin_{name}((double)x); }}",
        ]
    for name in _BINARY_MATH:
        lines += [
            f"INLINE float {name}(float x, float y) {{ return __builtin_{name}f(x, y); }}",
            f"INLINE double {name}(double x, double y) {{ return __builtin_{name}(x, y); }}",
            f"INLINE double {name}(float x, double y) {{ return __builtin_{name}(x, y); }}",
            f"INLINE double {name}(double x, float y) {{ return __builtin_{name}(x, y); }}",
            f"template <class T> INLINE typename Whole<T>::Real {name}(T x, double y) "
            f"{{ return __builtin_{name}((double)x, y); }}",
            f"template <class T> INLINE typename Whole<T>::Real {name}(double x, T y) "
            f"{{ return __builtin_{name}(x, (double)y); }}",
        ]
    return "\n".join(lines) + "\n"


def _vector_math_source() -> str:
    """Return C's functions of vectors without a faster form: glibc's if available, else element by element."""
    own = {"exp", "exp2", "floor", "ceil", "trunc", "rint", "fabs", "copysign", "fmin", "fmax"}
    lines = []
    for name in _UNARY_MATH:
        if name not in {"floor", "ceil", "trunc", "rint", "fabs"}:
            lines.append(
                f"template <class T, int N> INLINE Vector<T, N> {name}(Vector<T, N> v) "
                f"{{ for (int k = 0; k < N; k++) v.v[k] = {name}(T(v.v[k])); return v; }}"
            )
    for name in _BINARY_MATH:
        if name not in own:
            lines += [
                f"template <class T, int N> INLINE Vector<T, N> {name}(Vector<T, N> a, Vector<T, N> b) "
                f"{{ for (int k = 0; k < N; k++) a.v[k] = {name}(T(a.v[k]), T(b.v[k])); return a; }}",
                f"template <class T, int N> INLINE Vector<T, N> {name}(Vector<T, N> a, typename Vector<T, N>::Element "
                f"b) {{ return {name}(a, Vector<T, N>(b)); }}",
            ]
    for name in ("fmin", "fmax"):
        lines.append(
            f"template <class T, int N> INLINE Vector<T, N> {name}(Vector<T, N> a, typename Vector<T, N>::Element b) "
            f"{{ return {name}(a, Vector<T, N>(b)); }}"
        )
    lines.append(_libmvec_source())
    return "\n".join(lines) + "\n"


def _libmvec_source() -> str:
    """Return functions over vectors of the register width, and over two or four of them."""
    lines = [
        "#if defined(__GLIBC__) && defined(__x86_64__)",
        "#define HAS(x86, arm) (__GLIBC__ == 2 && __GLIBC_MINOR__ >= x86)",
        "#if defined(__AVX512F__)\n#define WIDEST 64\n#define MVEC_f(v, name) _ZGVeN16##v##_##name##f\n"
        "#define MVEC_d(v, name) _ZGVeN8##v##_##name\n"
        "#elif defined(__AVX2__)\n#define WIDEST 32\n#define MVEC_f(v, name) _ZGVdN8##v##_##name##f\n"
        "#define MVEC_d(v, name) _ZGVdN4##v##_##name\n"
        "#else\n#define WIDEST 16\n#define MVEC_f(v, name) _ZGVbN4##v##_##name##f\n"
        "#define MVEC_d(v, name) _ZGVbN2##v##_##name\n#endif",
        "#elif defined(__GLIBC__) && defined(__aarch64__)",
        "#define HAS(x86, arm) (__GLIBC__ == 2 && __GLIBC_MINOR__ >= arm)",
        "#define WIDEST 16\n#define MVEC_f(v, name) _ZGVnN4##v##_##name##f\n"
        "#define MVEC_d(v, name) _ZGVnN2##v##_##name",
        "#else\n#define HAS(x86, arm) 0\n#define WIDEST 16\n#endif",
        "typedef float Floats __attribute__((vector_size(WIDEST)));",
        "typedef double Doubles __attribute__((vector_size(WIDEST)));",
    ]
    for name, count, x86, arm in _LIBMVEC:
        v = "v" * count
        lines.append(f"#if HAS({x86}, {arm})")
        for kind, native, scalar in (("f", "Floats", "float"), ("d", "Doubles", "double")):
            if kind == "f" and name in ("exp", "exp2"):
                continue  # ours are faster
            if kind == "f" and name in ("log10", "atan2"):  # glibc's have errors of 2 units in the last place
                letters = "ab"[:count]
                lines.append(
                    f"template <int N> INLINE Vector<float, N> {name}("
                    f"{', '.join(f'Vector<float, N> {x}' for x in letters)}) {{ return converted<N, float>({name}("
                    f"{', '.join(f'converted<N, double>({x})' for x in letters)})); }}"
                )
                continue
            given = ", ".join([native] * count)
            own = [f"Vector<{scalar}, N> {letter}" for letter in "ab"[:count]]
            wide = ", ".join(f"({native}){letter}.v" for letter in "ab"[:count])
            each = ", ".join(f"{scalar}({x}.v[k])" for x in "ab"[:count])
            halves = [", ".join(f"{x}.{half}()" for x in "ab"[:count]) for half in ("lower", "upper")]
            lines += [
                f'extern "C" {native} MVEC_{kind}({v}, {name})({given});',
                f"template <int N> INLINE Vector<{scalar}, N> {name}({', '.join(own)}) {{",
                f"    if constexpr (N * sizeof({scalar}) == WIDEST) return Vector<{scalar}, N>(typename "
                f"Natives<{scalar}, N>::Type(MVEC_{kind}({v}, {name})({wide})));",
                f"    else if constexpr (N * sizeof({scalar}) > WIDEST)",
                f"        return Vector<{scalar}, N>({name}({halves[0]}), {name}({halves[1]}));",
                "    else {",
                f"        for (int k = 0; k < N; k++) a.v[k] = {name}({each});",
                "        return a;\n    }\n}",
            ]
        lines.append("#endif")
    return "\n".join(lines)


# Work-item functions, and entries that run work-groups.
_ENTRIES = r"""
struct Places { int x, y, z; };
struct Work {
    Places item_, group_start_, local_, global_;
    int group_, alone_, past_caches_;
};
// Where a launch's arrays are larger than caches, results go past them to memory: what they would take the place of is
// read again, and their own lines need not be read before they are written.
struct Streaming : Work {
    template <int N, class T> INLINE void store_cells(T* p, cl_long i, Vector<T, N> v) const {
#if defined(__SSE2__)
        if (past_caches_ && sizeof v >= 16 && !((cl_ulong)(p + i) & 15)) {
            for (int k = 0; k < int(sizeof v / 16); k++) {
                __m128i part;
                __builtin_memcpy((void*)&part, (const char*)&v + 16 * k, 16);
                _mm_stream_si128((__m128i*)(p + i) + k, part);
            }
            return;
        }
#endif
        cc::store_cells(p, i, v);
    }
};
template <class A> struct Plain { typedef A Type; };
template <class A> struct Plain<const A> { typedef A Type; };
// Parameters lie one behind the other, each at a multiple of 8 bytes.
template <class A> INLINE typename Plain<A>::Type parameter(const void* from, int at) {
    typename Plain<A>::Type value;
    __builtin_memcpy((void*)&value, (const unsigned char*)from + at, sizeof value);
    return value;
}
template <class P, class... A> struct Entry {
    template <int k> static constexpr int place() {
        const int sizes[] = {int(sizeof(A))..., 0};
        int at = 0;
        for (int j = 0; j < k; j++) at += (sizes[j] + 7) / 8 * 8;
        return at;
    }
    // Runs the work-groups from `begin` to `end`; not 0 when the kernel cannot run in groups like these.
    template <void (P::*kernel)(A...), int... I>
    static INLINE int run(Indices<I...>, const void* given, const int* sizes, cl_long begin, cl_long end) {
        return go<kernel>(sizes, begin, end, parameter<A>(given, place<I>())...);
    }
    template <void (P::*kernel)(A...)>
    static INLINE int go(const int* sizes, long long begin, long long end, const A... arguments) {
        P program;
        const Places local = {sizes[3], sizes[4], sizes[5]}, global = {sizes[0], sizes[1], sizes[2]};
        program.local_ = local;
        program.global_ = global;
        program.group_ = local.x * local.y * local.z;
        program.alone_ = 1;
        program.past_caches_ = sizes[6];
        const int across = (global.x + local.x - 1) / local.x, down = (global.y + local.y - 1) / local.y;
        for (cl_long g = begin; g < end; g++) {
            const Places at = {int(g % across), int(g / across % down), int(g / across / down)};
            const Places start = {at.x * local.x, at.y * local.y, at.z * local.z};
            const Places stop = {start.x + local.x < global.x ? start.x + local.x : global.x,
                start.y + local.y < global.y ? start.y + local.y : global.y,
                start.z + local.z < global.z ? start.z + local.z : global.z};
            program.group_start_ = start;
            for (int z = start.z; z < stop.z; z++) for (int y = start.y; y < stop.y; y++) {
                for (int x = start.x; x < stop.x; x++) {
                    program.item_ = {x, y, z};
                    (program.*kernel)(arguments...);
                }
            }
        }
#if defined(__SSE2__)
        if (program.past_caches_) _mm_sfence();
#endif
        return !program.alone_;
    }
};
template <class P, class... A> constexpr Entry<P, A...> entry_of(void (P::*)(A...)) { return {}; }
template <class P, class... A> constexpr int count_of(void (P::*)(A...)) { return sizeof...(A); }
"""
_MACROS = r"""
#define GLOBAL
#define LOCAL
#define NOT_INLINE __attribute__((noinline))
#define VECTOR_HINT(V)
#define IN(T, x) const T* x##_, const int x##_o
#define OUT(T, x) T* x##_, const int x##_o
#define AT(x) (x##_ + x##_o)
"""
CPP = (
    "#if __has_include(<features.h>)\n#include <features.h>\n#endif\n"
    "#if defined(__SSE2__)\n#include <emmintrin.h>\n#endif\nnamespace cc {\n"
    + _MACROS
    + FLOAT_LIMITS_AND_TYPES
    + LONG_LIMITS
    + _TYPES
    + _HALVES
    + _scalar_math_source()
    + _vector_math_source()
    + _VECTOR_MATHS
    + _FUNCTIONS
    + _ENTRIES
    + conversions(
        "INLINE",
        convert="return converted<{n}, {to}>(v);",
        load="return load_cells<{n}>(p, i * {n});",
        store="store_cells(p, i * {n}, v);",
    )
)
