"""C++ that turns floats into levels, and the linear layers that do so with their input: a part of the program of
`integer_gemm_source`, after its products.
"""

from __future__ import annotations

LEVELS = r"""
// The least and the greatest of each part of an array, and its levels around a zero point.
typedef float V __attribute__((vector_size(64)));
struct Extremes { const float* x; float *low, *high; i64 count, part; };
static int extremes(const Extremes& of, i64 begin, i64 end) {
    for (i64 item = begin; item < end; item++) {
        const float* x = of.x + item * of.part;
        const i64 n = least(of.part, of.count - item * of.part);
        V low = V{} + x[0], high = low;
        auto strange = low != low;
        i64 i = 0;
        for (; i < n; i += 16) {
            V v = low;  // behind the end there is nothing new
            if (i + 16 <= n) memcpy(&v, x + i, sizeof v);
            else for (int j = 0; j < n - i; j++) v[j] = x[i + j];
            low = v < low ? v : low;
            high = v > high ? v : high;
            strange |= v != v;
        }
        for (int j = 0; j < 16; j++) {
            if (strange[j]) return 1;
            low[0] = low[j] < low[0] ? low[j] : low[0];
            high[0] = high[j] > high[0] ? high[j] : high[0];
        }
        of.low[item] = low[0];
        of.high[item] = high[0];
    }
    return 0;
}
ENTRY(extremes, Extremes)
struct Levels { const float* x; u8* out; double scale, zero; i64 count, part; };
static int quantize(const Levels& of, i64 begin, i64 end) {
    const float scale = (float)of.scale, zero = (float)of.zero, low = -zero, high = 255 - zero;
    for (i64 item = begin; item < end; item++) {
        const float* x = of.x + item * of.part;
        u8* out = of.out + item * of.part;
        const i64 n = least(of.part, of.count - item * of.part);
        for (i64 i = 0; i < n; i++) {
            float v = x[i] / scale;
            v = v < low ? low : v;
            v = v > high ? high : v;
            v = (v + 12582912.0f) - 12582912.0f;
            out[i] = (u8)(int)(v + zero);
        }
    }
    return 0;
}
ENTRY(quantize, Levels)

// A linear layer whose input is quantized by the range of all its numbers, in three steps. `scratch` has what a step
// leaves to the next one: the zero point and the step of the levels, the least and the greatest number of each part of
// the input, and the levels. Other numbers are those of `Product`.
enum { DYNAMIC_PART = 1 << 14 };
struct Dynamic {
    const float* x;
    float* out;
    char* scratch;
    const void* b;
    const int *sums, *b_zero;
    const float *scale, *bias;
    i64 rows, columns, depth, b_zeros, scales, most, rectify, tall, down, wide, across, isa;
    i64 count() const { return rows * depth; }
    i64 parts() const { return (count() + DYNAMIC_PART - 1) / DYNAMIC_PART; }
    float* low() const { return (float*)(scratch + 64); }
    float* high() const { return low() + parts(); }
    u8* levels() const { return (u8*)scratch + 64 + (parts() + 7) / 8 * 64; }
};
struct Chosen { int zero; float step; };
// The scale and the zero point of a range, see `choose_parameters`.
static Chosen choose(double low, double high, int most) {
    low = low < 0 ? low : 0, high = high > 0 ? high : 0;
    double scale = (high - low) / most;
    if (scale == 0 || 1 / scale == INFINITY) scale = 0.1;
    const double below = fabs(low / scale), above = high / scale;
    double zero = nearbyint(below < most + above ? below : most - above);
    zero = zero < 0 ? 0 : zero > most ? most : zero;
    return {(int)zero, (float)scale};
}
static int dynamic_range(const Dynamic& of, i64 begin, i64 end) {
    return extremes({of.x, of.low(), of.high(), of.count(), DYNAMIC_PART}, begin, end);
}
// Numbers that are not finite are refused.
static int dynamic_levels(const Dynamic& of, i64 begin, i64 end) {
    float low = 0, high = 0;
    for (i64 k = 0; k < of.parts(); k++) {
        low = of.low()[k] < low ? of.low()[k] : low;
        high = of.high()[k] > high ? of.high()[k] : high;
    }
    if (!(high - low < INFINITY)) return 1;
    const Chosen chosen = choose(low, high, (int)of.most);
    if (begin == 0) *(Chosen*)of.scratch = chosen;
    const float factor = 1.0f / chosen.step, zero = (float)chosen.zero;
    const i64 last = least(end * DYNAMIC_PART, of.count());
    const float* x = of.x;
    u8* out = of.levels();
    for (i64 i = begin * DYNAMIC_PART; i < last; i++) {
        float v = x[i] * factor + zero;
        v = v < 0.0f ? 0.0f : v;
        v = v > 255.0f ? 255.0f : v;
        out[i] = (u8)(int)((v + 12582912.0f) - 12582912.0f);
    }
    return 0;
}
static int dynamic_product(const Dynamic& of, i64 begin, i64 end) {
    const i64 places[3] = {};
    const Chosen& chosen = *(const Chosen*)of.scratch;
    const Product given = {
        of.levels(), of.b, of.sums, of.out, places, &chosen.zero, of.b_zero, nullptr, of.scale, of.rows, of.columns,
        of.depth, of.depth, 0, of.b_zeros, 0, 0, 0, of.scales, FLOATS, 0, 0, 0, of.columns, of.tall, of.down, of.wide,
        of.across, of.isa, &chosen.step, of.bias, of.rectify,
    };
    return product(given, begin, end);
}
static int dynamic_linear(const Dynamic& of, i64, i64) {
    return dynamic_range(of, 0, of.parts()) || dynamic_levels(of, 0, of.parts())
        || dynamic_product(of, 0, of.down * of.across);
}
ENTRY(dynamic_range, Dynamic)
ENTRY(dynamic_levels, Dynamic)
ENTRY(dynamic_product, Dynamic)
ENTRY(dynamic_linear, Dynamic)
"""
