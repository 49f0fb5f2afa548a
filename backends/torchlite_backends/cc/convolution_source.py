"""C++ source of the CPU's float32 convolutions; `convolution` describes its entries.

Images are stored as zero-padded rows, one per channel. With a stride other than one, positions that different kernel
positions read are stored apart. The inputs of neighbouring outputs are then contiguous, and vectors load directly from
memory without im2col. A few results at the end of each output row are meaningless and not written.

Every entry takes blocks of its work from an atomic counter (`taken`), like the programs of `opencl_to_cpp`. The results
of a block do not depend on the thread that computes it.
"""

SOURCE = r"""
#include <stdlib.h>
#include <string.h>
typedef long long i64;
#if defined(__AVX512F__)
enum { W = 16, MR = 8, NV = 2 };
#elif defined(__AVX__)
enum { W = 8, MR = 6, NV = 2 };
#else
enum { W = 4, MR = 6, NV = 2 };
#endif
typedef float V __attribute__((vector_size(4 * W), aligned(4), may_alias));
#define ENTRY extern "C" __attribute__((visibility("default"))) int
#define INLINE static inline __attribute__((always_inline))
enum { DEPTH = 256, WIDE = NV * W, PIECE = 256 };

// Neighbours that a sum has in registers.
ENTRY vectors() { return WIDE; }

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

struct Swap {
    const float* source;
    float* target;
    i64 groups, filters, channels, taps;
};

// Weights (groups, filters, channels, taps) as (groups, channels, filters, taps).
ENTRY swap_weights(const void* given, const int*, i64, i64 parts, int* taken) {
    const Swap& p = *(const Swap*)given;
    const i64 count = p.groups * p.channels;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 end = count * (part + 1) / parts;
        for (i64 first = count * part / parts; first < end;) {
            const i64 group = first / p.channels, c0 = first % p.channels;
            const i64 n = least(16, least(end - first, p.channels - c0));
            for (i64 c = c0; c < c0 + n; c++) for (i64 f = 0; f < p.filters; f++) {
                float* to = p.target + ((group * p.channels + c) * p.filters + f) * p.taps;
                const float* from = p.source + ((group * p.filters + f) * p.channels + c) * p.taps;
                if (p.taps == 9) memcpy(to, from, 36);
                else if (p.taps == 1) *to = *from;
                else memcpy(to, from, 4 * p.taps);
            }
            first += n;
        }
        return true;
    });
}

// --- sums over channels and kernel places ----------------------------------------------------------

// Lines of outputs: result `r * width + c` belongs at `r * down + c * right`.
struct Lines {
    i64 rows, width, columns, down, right;
};

// What is done with the results of a channel before they are written: a line, and limits. No scale: nothing.
struct Finish {
    const float *scale, *shift, *limits;
};

INLINE void finished(const Finish& p, i64 channel, float* values, i64 count) {
    const V scale = p.scale[channel] + V{}, shift = p.shift[channel] + V{};
    const V least = p.limits[0] + V{}, most = p.limits[1] + V{};
    for (i64 i = 0; i < count; i += W) {
        V* at = (V*)(values + i);
        V v = *at * scale + shift;
        v = v < least ? least : v;  // NaN stays
        *at = v > most ? most : v;
    }
}

struct Sum {
    const float *images, *weights, *bias;
    float* out;
    i64 batch, groups, channels, filters, by_image, by_channel, by_filter, by_depth, by_group, taps;
    const i64 *weight_places, *image_places;
    i64 out_image, out_filter, exact, length, pieces, span, shares, share, along;
    Lines lines;
    Finish finish;
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
        const auto block = [&](i64 first, i64 f) {
            const i64 m = least(MR, stop - f);
            i64 from = first, count = least(WIDE, last - first);
            if (p.exact && first + (count > W ? (i64)WIDE : (i64)W) > p.length) {  // nothing may be read behind the end
                from = p.length - (count > W ? (i64)WIDE : (i64)W);
                count = p.length - from;
            }
            Few<MR>::go(m, p, a + f * p.by_filter, b + from, count, tile);
            if (p.finish.scale) for (i64 i = f; i < f + m; i++)
                finished(p.finish, group * p.filters + i, tile + (i - f) * WIDE, WIDE);
            for (i64 i = f; i < f + m; i++)
                write(p.lines, tile + (i - f) * WIDE, bias ? bias[i] : 0.0f, from, count, out + i * p.out_filter);
        };
        const i64 begin = piece * p.span, least_filter = share * p.share;
        if (p.along) {
            for (i64 f = least_filter; f < stop; f += MR)
                for (i64 first = begin; first < last; first += WIDE) block(first, f);
        } else {
            for (i64 first = begin; first < last; first += WIDE)
                for (i64 f = least_filter; f < stop; f += MR) block(first, f);
        }
        return true;
    });
}

// --- the gradient of the weight ---------------------------------------------------------------------

struct Turn {
    const float* source;
    float* target;
    i64 images, filters, places, row;
};

// Images (filters, places) as (places, filters), `row` apart, with zeros behind the filters. A part is 16 places.
ENTRY turn_images(const void* given, const int*, i64, i64 parts, int* taken) {
    const Turn& p = *(const Turn*)given;
    enum { SIDE = 16 };
    const i64 across = (p.places + SIDE - 1) / SIDE, count = p.images * across;
    return parts_of(taken, parts, [&](i64 part) {
        for (i64 k = count * part / parts; k < count * (part + 1) / parts; k++) {
            const i64 image = k / across, first = k % across * SIDE, places = least(SIDE, p.places - first);
            const float* source = p.source + image * p.filters * p.places + first;
            float* target = p.target + (image * p.places + first) * p.row;
            for (i64 f = 0; f < p.row; f += SIDE) {
                float block[SIDE][SIDE];
                if (places == SIDE && f + SIDE <= p.filters) {
                    for (int i = 0; i < SIDE; i++) memcpy(block[i], source + (f + i) * p.places, 4 * SIDE);
                } else {
                    for (i64 i = 0; i < SIDE; i++) for (i64 j = 0; j < SIDE; j++)
                        block[i][j] = j < places && f + i < p.filters ? source[(f + i) * p.places + j] : 0;
                }
                for (i64 j = 0; j < places; j++) {
                    float line[SIDE];
                    for (int i = 0; i < SIDE; i++) line[i] = block[i][j];
                    memcpy(target + j * p.row + f, line, 4 * SIDE);
                }
            }
        }
        return true;
    });
}

struct Dots {
    const float *grads, *images;  // the gradients turned, the images as long rows
    float* out;
    i64 batch, groups, channels, filters, taps, row, rows, columns, width, by_image, by_channel;
    const i64* image_places;
    i64 shares, depths, depth;
};

// Outputs that are summed over at once: of some images, some rows and columns.
struct Piece {
    i64 images, rows, columns, by_image, by_row, grad_image, grad_row, grad_step;
};

template <int M, int N> INLINE void products(const Piece& p, const float* const* x, const float* g, float* sums) {
    V sum[M][N];
    for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) sum[i][j] = *(const V*)(sums + i * WIDE + j * W);
    for (i64 n = 0; n < p.images; n++) for (i64 r = 0; r < p.rows; r++) {
        const float* grad = g + n * p.grad_image + r * p.grad_row;
        const i64 at = n * p.by_image + r * p.by_row;
        for (i64 c = 0; c < p.columns; c++, grad += p.grad_step) {
            V right[N];
            for (int j = 0; j < N; j++) right[j] = *(const V*)(grad + j * W);
            for (int i = 0; i < M; i++) {
                const float left = x[i][at + c];
                for (int j = 0; j < N; j++) sum[i][j] += left * right[j];
            }
        }
    }
    for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) *(V*)(sums + i * WIDE + j * W) = sum[i][j];
}

static float added_up(const float* v) {
    float sum = 0;
    for (int i = 0; i < W; i++) sum += v[i];
    return sum;
}

struct Bias {
    const float* grads;
    float* out;
    i64 batch, channels, length;
};

// The sum of each channel's gradients, in double precision from image to image. A part is some channels.
ENTRY channel_sums(const void* given, const int*, i64, i64 parts, int* taken) {
    const Bias& p = *(const Bias*)given;
    return parts_of(taken, parts, [&](i64 part) {
        for (i64 c = p.channels * part / parts; c < p.channels * (part + 1) / parts; c++) {
            double sum = 0;
            for (i64 n = 0; n < p.batch; n++) {
                const float* g = p.grads + (n * p.channels + c) * p.length;
                V sums[4] = {};
                i64 i = 0;
                for (; i + 4 * W <= p.length; i += 4 * W)
                    for (int k = 0; k < 4; k++) sums[k] += *(const V*)(g + i + k * W);
                for (; i + W <= p.length; i += W) sums[0] += *(const V*)(g + i);
                float lanes[W], rest = 0;
                const V all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
                memcpy(lanes, &all, sizeof all);
                for (; i < p.length; i++) rest += g[i];
                sum += added_up(lanes) + rest;
            }
            p.out[c] = (float)sum;
        }
        return true;
    });
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
    const i64 depth = p.channels * p.taps, places = p.rows * p.columns;
    const i64 images = places < PIECE ? least(PIECE / places, p.batch) : 1;
    const i64 columns = least(p.columns, PIECE), rows = columns < p.columns ? 1 : least(p.rows, PIECE / columns);
    return parts_of(taken, parts, [&](i64 part) {
        const i64 deep = part % p.depths, share = part / p.depths % p.shares, group = part / p.depths / p.shares;
        const i64 f0 = share * WIDE, count = least(WIDE, p.filters - f0), begin = group * p.filters + f0;
        const i64 k0 = deep * p.depth, k1 = least(depth, k0 + p.depth), blocks = (k1 - k0 + MR - 1) / MR;
        float* sums = scratch(blocks * MR * WIDE + blocks * MR * 2);
        if (!sums) return false;
        memset(sums, 0, 4 * blocks * MR * WIDE);
        i64* offsets = (i64*)(sums + blocks * MR * WIDE);  // where what each sum reads begins in an image
        for (i64 k = 0; k < blocks * MR; k++) {
            const i64 at = least(k0 + k, k1 - 1);
            offsets[k] = (group * p.channels + at / p.taps) * p.by_channel + p.image_places[at % p.taps];
        }
        for (i64 n = 0; n < p.batch; n += images) for (i64 r = 0; r < p.rows; r += rows)
            for (i64 c = 0; c < p.columns; c += columns) {
                const Piece piece = {least(images, p.batch - n), least(rows, p.rows - r), least(columns, p.columns - c),
                                     p.by_image, p.width, places * p.row, p.columns * p.row, p.row};
                const float* g = p.grads + (n * places + r * p.columns + c) * p.row + begin;
                const float* x = p.images + n * p.by_image + r * p.width + c;
                for (i64 b = 0; b < blocks; b++) {
                    const float* from[MR];
                    for (int i = 0; i < MR; i++) from[i] = x + offsets[b * MR + i];
                    if (count > W) products<MR, NV>(piece, from, g, sums + b * MR * WIDE);
                    else products<MR, 1>(piece, from, g, sums + b * MR * WIDE);
                }
            }
        for (i64 f = 0; f < count; f++) for (i64 k = k0; k < k1; k++)
            p.out[(begin + f) * depth + k] = sums[(k - k0) * WIDE + f];
        return true;
    });
}

struct Alongs {
    const float *grads, *images;
    float* out;
    i64 batch, filters, depth, taps, length, by_image, by_channel;
    const i64* image_places;
    i64 share, shares, step;
};
enum { AF = 6, AD = 4, CHUNK = 512 };

INLINE V first_few(const float* x, i64 count) {
    float lanes[W] = {};
    for (i64 i = 0; i < count; i++) lanes[i] = x[i];
    return *(const V*)lanes;
}

INLINE void along_places(const float* const* g, const float* const* x, i64 count, float* sums) {
    V sum[AF][AD];
    for (int i = 0; i < AF; i++) for (int j = 0; j < AD; j++) sum[i][j] = *(const V*)(sums + (i * AD + j) * W);
    i64 at = 0;
    for (; at + W <= count; at += W) {
        V right[AD];
        for (int j = 0; j < AD; j++) right[j] = *(const V*)(x[j] + at);
        for (int i = 0; i < AF; i++) {
            const V left = *(const V*)(g[i] + at);
            for (int j = 0; j < AD; j++) sum[i][j] += left * right[j];
        }
    }
    if (at < count) {
        V right[AD];
        for (int j = 0; j < AD; j++) right[j] = first_few(x[j] + at, count - at);
        for (int i = 0; i < AF; i++) {
            const V left = first_few(g[i] + at, count - at);
            for (int j = 0; j < AD; j++) sum[i][j] += left * right[j];
        }
    }
    for (int i = 0; i < AF; i++) for (int j = 0; j < AD; j++) *(V*)(sums + (i * AD + j) * W) = sum[i][j];
}

// The gradient of the weight where a kernel place reads the places of a whole image one after the other: both are read
// as they lie. A part is 2 * AF filters and `step` kernel places.
ENTRY place_products(const void* given, const int*, i64, i64 parts, int* taken) {
    const Alongs& p = *(const Alongs*)given;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 f0 = part / p.shares * 2 * AF, k0 = part % p.shares * p.step, k1 = least(p.depth, k0 + p.step);
        const i64 blocks = (k1 - k0 + AD - 1) / AD;
        float* sums = scratch(2 * blocks * AF * AD * W);
        if (!sums) return false;
        memset(sums, 0, 4 * 2 * blocks * AF * AD * W);
        for (i64 n = 0; n < p.batch; n++) for (i64 at = 0; at < p.length; at += CHUNK) {
            const i64 count = least(CHUNK, p.length - at);
            for (i64 b = 0; b < blocks; b++) {
                const float *x[AD], *g[AF];
                for (int j = 0; j < AD; j++) {
                    const i64 k = least(k0 + b * AD + j, k1 - 1);
                    x[j] = p.images + n * p.by_image + k / p.taps * p.by_channel + p.image_places[k % p.taps] + at;
                }
                for (int half = 0; half < 2; half++) {
                    for (int i = 0; i < AF; i++) {
                        const i64 f = least(f0 + half * AF + i, p.filters - 1);
                        g[i] = p.grads + (n * p.filters + f) * p.length + at;
                    }
                    along_places(g, x, count, sums + (half * blocks + b) * AF * AD * W);
                }
            }
        }
        for (i64 f = f0; f < least(p.filters, f0 + 2 * AF); f++) for (i64 k = k0; k < k1; k++) {
            const i64 block = (f - f0) / AF * blocks + (k - k0) / AD;
            p.out[f * p.depth + k] = added_up(sums + ((block * AF + (f - f0) % AF) * AD + (k - k0) % AD) * W);
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
    Finish finish;
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
            if (p.finish.scale) finished(p.finish, channel, result, p.length);
            write(p.lines, result, p.bias ? p.bias[channel] : 0.0f, 0, p.length, p.out + k * p.out_plane);
        }
        return true;
    });
}

template <int N> INLINE void channel_sums(const float* g, const float* const* x, i64 steps, float* sums) {
    V sum[N];
    for (int j = 0; j < N; j++) sum[j] = ((const V*)sums)[j];
    for (i64 s = 0; s < steps; s++) {
        const V left = *(const V*)(g + s * W);
        for (int j = 0; j < N; j++) sum[j] += left * *(const V*)(x[j] + s * W);
    }
    for (int j = 0; j < N; j++) ((V*)sums)[j] = sum[j];
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
                    channel_sums<N>(grad, from, steps, sums + b * N * W);
                }
            }
            for (i64 t = 0; t < p.taps; t++) p.out[c * p.taps + t] = added_up(sums + t * W);
        }
        return true;
    });
}
"""
