"""The C++ program of the CPU's convolutions, float32. `convolution` says how its entries are used.

All of it reads images that lie as long rows, one a channel, with their zeros around them (and, where the stride is not
one, with the places apart that different kernel places read): then what a kernel place reads for neighbouring outputs
are neighbours in memory, and vectors are loaded from where they are. Nothing is unrolled into columns. At the end of
each line of outputs a few results mean nothing and are not written.

Every entry takes parts of its work by a counter (`taken`), as the programs of `c_programs` do, and what a part computes
does not depend on who takes it.
"""

TEXT = r"""
#include <stdlib.h>
#include <string.h>
typedef long long i64;
#if defined(__AVX512F__)
enum { W = 16, MR = 8, NV = 2, MF = 8, NK = 3 };
#elif defined(__AVX__)
enum { W = 8, MR = 6, NV = 2, MF = 4, NK = 3 };
#else
enum { W = 4, MR = 6, NV = 2, MF = 4, NK = 4 };
#endif
typedef float V __attribute__((vector_size(4 * W), aligned(4), may_alias));
#define ENTRY extern "C" __attribute__((visibility("default"))) int
#define INLINE static inline __attribute__((always_inline))
enum { DEPTH = 512, WIDE = NV * W, PIECE = 1024 };

static inline i64 least(i64 a, i64 b) { return a < b ? a : b; }

// body(part) for parts that nobody took; 1 if it wants for memory.
template <class Body> static int parts_of(int* taken, i64 parts, Body body) {
    for (i64 i; (i = __atomic_fetch_add(taken, 1, __ATOMIC_RELAXED)) < parts;) if (!body(i)) return 1;
    return 0;
}

// Images as long rows: `rows` lines of `width` for each of `phases` (first row, first column), which are `down` and
// `right` apart in the image, `above` and `left` places of which lie before it.
struct Layout {
    i64 high, wide, rows, width, down, right, above, left, phases, plane;
    const i64* firsts;
};

static void lay(const float* source, float* target, const Layout& l) {
    for (i64 k = 0; k < l.phases; k++) {
        float* line = target + k * l.rows * l.width;
        const i64 column = l.firsts[2 * k + 1] - l.left;
        const i64 begin = least(l.width, column < 0 ? (l.right - 1 - column) / l.right : 0);
        i64 end = l.wide - column <= 0 ? 0 : least(l.width, (l.wide - column + l.right - 1) / l.right);
        if (end < begin) end = begin;
        for (i64 j = 0; j < l.rows; j++, line += l.width) {
            const i64 y = j * l.down + l.firsts[2 * k] - l.above;
            if (y < 0 || y >= l.high) {
                memset(line, 0, 4 * l.width);
                continue;
            }
            const float* from = source + y * l.wide + column;
            for (i64 i = 0; i < begin; i++) line[i] = 0;
            if (l.right == 1) memcpy(line + begin, from + begin, 4 * (end - begin));
            else if (l.right == 2) for (i64 i = begin; i < end; i++) line[i] = from[2 * i];
            else for (i64 i = begin; i < end; i++) line[i] = from[i * l.right];
            for (i64 i = end; i < l.width; i++) line[i] = 0;
        }
    }
    for (i64 i = l.phases * l.rows * l.width; i < l.plane; i++) target[i] = 0;
}

struct Laying {
    const float* source;
    float* target;
    i64 channels, planes, step, source_plane, by_channel, by_image, end;
    Layout layout;
};

ENTRY lay_images(const void* given, const int*, i64, i64 parts, int* taken) {
    const Laying& p = *(const Laying*)given;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 stop = least(p.planes, (part + 1) * p.step);
        for (i64 k = part * p.step; k < stop; k++) {
            const i64 image = k / p.channels, channel = k % p.channels;
            lay(p.source + k * p.source_plane, p.target + channel * p.by_channel + image * p.by_image, p.layout);
        }
        if (part == parts - 1) memset(p.target + p.end, 0, 4 * 2 * WIDE);
        return true;
    });
}

// --- sums over channels and kernel places ----------------------------------------------------------

// Lines of outputs: result `r * width + c` belongs at `r * down + c * right`.
struct Lines {
    i64 rows, width, columns, down, right;
};

struct Sum {
    const float *images, *weights, *bias;
    float* out;
    i64 batch, groups, channels, filters, by_image, by_channel, by_filter, by_depth, by_group, taps;
    const i64 *weight_places, *image_places;
    i64 out_image, out_filter, exact, length, pieces, span, shares, share;
    Lines lines;
};

template <int M, int N>
INLINE void multiply(const Sum& p, const float* a, const float* b, i64 from, i64 to, float* tile, bool add) {
    V sum[M][N];
    for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) sum[i][j] = V{};
    const i64 taps = p.taps, step = p.by_filter;
    const i64 *wp = p.weight_places, *ip = p.image_places;
    for (i64 k = from; k < to; k++) {
        const float *ak = a + k * p.by_depth, *bk = b + k * p.by_channel;
        for (i64 t = 0; t < taps; t++) {
            const float *at = ak + wp[t], *bt = bk + ip[t];
            V right[N];
            for (int j = 0; j < N; j++) right[j] = *(const V*)(bt + j * W);
            for (int i = 0; i < M; i++) {
                const float left = at[i * step];
                for (int j = 0; j < N; j++) sum[i][j] += left * right[j];
            }
        }
    }
    for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) {
        V* to_tile = (V*)(tile + i * WIDE + j * W);
        *to_tile = add ? *to_tile + sum[i][j] : sum[i][j];
    }
}

template <int M> static void deep(const Sum& p, const float* a, const float* b, i64 count, float* tile) {
    const i64 step = DEPTH / p.taps > 0 ? DEPTH / p.taps : 1;
    for (i64 k = 0; k < p.channels; k += step) {
        const i64 stop = least(p.channels, k + step);
        if (count > W) multiply<M, NV>(p, a, b, k, stop, tile, k > 0);
        else multiply<M, 1>(p, a, b, k, stop, tile, k > 0);
    }
}

template <int M> struct Few {
    static void go(i64 m, const Sum& p, const float* a, const float* b, i64 count, float* tile) {
        if (m == M) deep<M>(p, a, b, count, tile);
        else Few<M - 1>::go(m, p, a, b, count, tile);
    }
};
template <> struct Few<0> {
    static void go(i64, const Sum&, const float*, const float*, i64, float*) {}
};

static void write(const Lines& l, const float* tile, float bias, i64 first, i64 count, float* out) {
    i64 row = first / l.width, column = first % l.width;
    for (i64 done = 0; done < count;) {
        const i64 run = least(count - done, l.width - column), kept = least(run, l.columns - column);
        float* to = out + row * l.down + column * l.right;
        const float* from = tile + done;
        if (l.right == 1) for (i64 i = 0; i < kept; i++) to[i] = from[i] + bias;
        else for (i64 i = 0; i < kept; i++) to[i * l.right] = from[i] + bias;
        done += run;
        column = 0;
        row++;
    }
}

ENTRY sum_places(const void* given, const int*, i64, i64 parts, int* taken) {
    const Sum& p = *(const Sum*)given;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 share = part % p.shares, piece = part / p.shares % p.pieces, outer = part / p.shares / p.pieces;
        const i64 image = outer / p.groups, group = outer % p.groups;
        const float* b = p.images + image * p.by_image + group * p.channels * p.by_channel;
        const float* a = p.weights + group * p.by_group;
        float* out = p.out + image * p.out_image + group * p.filters * p.out_filter;
        const float* bias = p.bias ? p.bias + group * p.filters : nullptr;
        const i64 stop = least(p.filters, (share + 1) * p.share), last = least(p.length, (piece + 1) * p.span);
        float tile[MR * WIDE];
        for (i64 first = piece * p.span; first < last; first += WIDE) {
            i64 from = first, count = least(WIDE, last - first);
            if (p.exact && first + (count > W ? (i64)WIDE : (i64)W) > p.length) {  // nothing may be read behind the end
                from = p.length - (count > W ? (i64)WIDE : (i64)W);
                count = p.length - from;
            }
            for (i64 f = share * p.share; f < stop; f += MR) {
                const i64 m = least(MR, stop - f);
                Few<MR>::go(m, p, a + f * p.by_filter, b + from, count, tile);
                for (i64 i = f; i < f + m; i++)
                    write(p.lines, tile + (i - f) * WIDE, bias ? bias[i] : 0.0f, from, count, out + i * p.out_filter);
            }
        }
        return true;
    });
}

// --- the gradient of the weight ---------------------------------------------------------------------

struct Dots {
    const float *grads, *images;
    float* out;
    i64 batch, groups, channels, filters, taps, grad_image, grad_filter, image_image, image_channel, length;
    const i64* image_places;
    i64 shares, share, columns, column;
};

// What is read of some images: `steps` vectors of each.
struct Piece {
    i64 images, steps, by_filter, grad_image, image_image;
};

template <int M, int N> INLINE void products(const Piece& p, const float* g, const float* const* x, float* sums) {
    V sum[M][N];
    for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) sum[i][j] = ((const V*)sums)[i * N + j];
    for (i64 n = 0; n < p.images; n++) for (i64 s = 0; s < p.steps; s++) {
        V left[M];
        const float* grad = g + n * p.grad_image + s * W;
        const i64 at = n * p.image_image + s * W;
        for (int i = 0; i < M; i++) left[i] = *(const V*)(grad + i * p.by_filter);
        for (int j = 0; j < N; j++) {
            const V right = *(const V*)(x[j] + at);
            for (int i = 0; i < M; i++) sum[i][j] += left[i] * right;
        }
    }
    for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) ((V*)sums)[i * N + j] = sum[i][j];
}

template <int M> struct Some {
    static void go(i64 m, const Piece& p, const float* g, const float* const* x, float* sums) {
        if (m == M) products<M, NK>(p, g, x, sums);
        else Some<M - 1>::go(m, p, g, x, sums);
    }
};
template <> struct Some<0> {
    static void go(i64, const Piece&, const float*, const float* const*, float*) {}
};

static float added_up(const float* v) {
    float sum = 0;
    for (int i = 0; i < W; i++) sum += v[i];
    return sum;
}

static float* scratch(i64 floats) {
    static thread_local struct Kept {
        float* memory = nullptr;
        i64 size = 0;
        ~Kept() { free(memory); }
    } kept;
    if (kept.size < floats) {
        free(kept.memory);
        kept.size = floats + 1024;
        kept.memory = (float*)aligned_alloc(64, (4 * kept.size + 63) / 64 * 64);
        if (!kept.memory) kept.size = 0;
    }
    return kept.memory;
}

ENTRY weight_products(const void* given, const int*, i64, i64 parts, int* taken) {
    const Dots& p = *(const Dots*)given;
    const i64 depth = p.channels * p.taps;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 column = part % p.columns, share = part / p.columns % p.shares, group = part / p.columns / p.shares;
        const i64 f0 = share * p.share, f1 = least(p.filters, f0 + p.share);
        const i64 k0 = column * p.column, k1 = least(depth, k0 + p.column);
        const i64 across = (k1 - k0 + NK - 1) / NK, size = ((f1 - f0 + MF - 1) / MF) * across * MF * NK * W;
        float* sums = scratch(size + 2 * across * NK);
        if (!sums) return false;
        memset(sums, 0, 4 * size);
        i64* places = (i64*)(sums + size);  // where each column of the sums begins in an image
        for (i64 k = 0; k < across * NK; k++) {
            const i64 at = least(k0 + k, k1 - 1);
            places[k] = (group * p.channels + at / p.taps) * p.image_channel + p.image_places[at % p.taps];
        }
        const i64 together = p.length < PIECE ? PIECE / p.length : 1;
        for (i64 n = 0; n < p.batch; n += together) for (i64 at = 0; at < p.length; at += PIECE) {
            const Piece piece = {least(together, p.batch - n), least(PIECE, p.length - at) / W, p.grad_filter,
                                 p.grad_image, p.image_image};
            const float* g = p.grads + n * p.grad_image + (group * p.filters) * p.grad_filter + at;
            const float* x = p.images + n * p.image_image + at;
            float* sum = sums;
            for (i64 f = f0; f < f1; f += MF) for (i64 k = 0; k < across; k++, sum += MF * NK * W) {
                const float* from[NK];
                for (int j = 0; j < NK; j++) from[j] = x + places[k * NK + j];
                Some<MF>::go(least(MF, f1 - f), piece, g + f * p.grad_filter, from, sum);
            }
        }
        float* sum = sums;
        for (i64 f = f0; f < f1; f += MF) for (i64 k = k0; k < k1; k += NK, sum += MF * NK * W) {
            for (i64 i = 0; i < least(MF, f1 - f); i++) for (i64 j = 0; j < least(NK, k1 - k); j++)
                p.out[(group * p.filters + f + i) * depth + k + j] = added_up(sum + (i * NK + j) * W);
        }
        return true;
    });
}

// --- a kernel of its own for every channel ----------------------------------------------------------

struct Single {
    const float *images, *weights, *bias;
    float* out;
    i64 channels, planes, step, image_plane, out_plane, taps;
    const i64 *weight_places, *image_places;
    i64 first, length;
    Layout layout;
    Lines lines;
};

template <int T> INLINE void filtered(const Single& p, const float* x, const float* w, float* to, i64 taps) {
    const i64* ip = p.image_places;
    for (i64 at = 0; at < p.length; at += 2 * W) {
        V first{}, second{};
        for (i64 t = 0; t < (T ? T : taps); t++) {
            const float* from = x + ip[t] + at;
            first += w[t] * *(const V*)from;
            second += w[t] * *(const V*)(from + W);
        }
        *(V*)(to + at) = first;
        *(V*)(to + at + W) = second;
    }
}

ENTRY filter_channels(const void* given, const int*, i64, i64 parts, int* taken) {
    const Single& p = *(const Single*)given;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 stop = least(p.planes, (part + 1) * p.step), room = p.layout.plane + 4 * W, more = p.length + 4 * W;
        float *image = scratch(room + more + p.taps), *result = image + room, *w = result + more;
        if (!image) return false;
        memset(image + p.layout.plane, 0, 4 * 4 * W);
        for (i64 k = part * p.step; k < stop; k++) {
            const i64 channel = k % p.channels;
            lay(p.images + k * p.image_plane, image, p.layout);
            for (i64 t = 0; t < p.taps; t++) w[t] = p.weights[channel * p.first + p.weight_places[t]];
            if (p.taps == 9) filtered<9>(p, image, w, result, 9);
            else if (p.taps == 4) filtered<4>(p, image, w, result, 4);
            else filtered<0>(p, image, w, result, p.taps);
            write(p.lines, result, p.bias ? p.bias[channel] : 0.0f, 0, p.length, p.out + k * p.out_plane);
        }
        return true;
    });
}

struct SingleDots {
    const float *grads, *images;
    float* out;
    i64 batch, channels, step, grad_plane, image_plane, taps;
    const i64* image_places;
    i64 length;
    Layout layout, lines;
};

ENTRY channel_products(const void* given, const int*, i64, i64 parts, int* taken) {
    const SingleDots& p = *(const SingleDots*)given;
    enum { N = 9 };
    return parts_of(taken, parts, [&](i64 part) {
        const i64 stop = least(p.channels, (part + 1) * p.step), room = p.layout.plane + 4 * W;
        const i64 steps = (p.length + W - 1) / W, blocks = (p.taps + N - 1) / N;
        float *image = scratch(room + p.lines.plane + 4 * W + blocks * N * W), *grad = image + room;
        float* sums = grad + p.lines.plane + 4 * W;
        if (!image) return false;
        memset(image + p.layout.plane, 0, 4 * 4 * W);
        memset(grad + p.lines.plane, 0, 4 * 4 * W);
        for (i64 c = part * p.step; c < stop; c++) {
            memset(sums, 0, 4 * blocks * N * W);
            for (i64 n = 0; n < p.batch; n++) {
                lay(p.images + (n * p.channels + c) * p.image_plane, image, p.layout);
                lay(p.grads + (n * p.channels + c) * p.grad_plane, grad, p.lines);
                for (i64 b = 0; b < blocks; b++) {
                    const float* from[N];
                    for (int j = 0; j < N; j++) from[j] = image + p.image_places[least(b * N + j, p.taps - 1)];
                    products<1, N>({1, steps, 0, 0, 0}, grad, from, sums + b * N * W);
                }
            }
            for (i64 t = 0; t < p.taps; t++) p.out[c * p.taps + t] = added_up(sums + t * W);
        }
        return true;
    });
}
"""
