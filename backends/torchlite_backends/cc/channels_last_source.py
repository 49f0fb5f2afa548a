"""C++ source of kernels for images whose channels are last, part of the program of `convolution_source`.

An image is (rows, columns, channels). A convolution multiplies a number of each of up to `LM` positions with a vector
of filters' weights, which are packed in that order. All memory is read in order, and no vector has unused lanes at the
ends of rows. A position outside of the image is read from a row of zeros.
"""

SOURCE = r"""
// --- images with channels last ----------------------------------------------------------------------

// Positions of a tile, and how many numbers ahead of their use weights are asked for: they may
// lie in the last cache, and the processor fetches no more than a page of its own accord.
enum { LM = W == 16 ? 12 : 6, AHEAD = 1024 };

// The first n numbers of a vector, and the reverse.
INLINE V few_at(const float* x, i64 n) {
    if (n >= W) return *(const V*)x;
#if defined(__AVX512F__)
    return (V)__builtin_ia32_loadups512_mask(x, (__attribute__((vector_size(64))) float){}, (1 << n) - 1);
#else
    return first_few(x, n);
#endif
}

INLINE void put_few(float* to, V v, i64 n) {
    if (n >= W) {
        *(V*)to = v;
        return;
    }
#if defined(__AVX512F__)
    __builtin_ia32_storeups512_mask(to, v, (1 << n) - 1);
#else
    for (i64 i = 0; i < n; i++) to[i] = v[i];
#endif
}

INLINE V limited(V v, V least, V most) {
    v = v < least ? least : v;  // NaN stays
    return v > most ? most : v;
}

// Output (r, c) reads the image's places (r * down - above + i * far_down, c * right - left + j * far_right).
struct Window {
    i64 batch, high, wide, rows, columns, kernel_rows, kernel_columns, down, right, far_down, far_right, above, left;
};

// A chain of elementwise ops (`native_chain`) on the results of a part, which are contiguous. `kinds` of its arrays:
// 0 the same for each position, 1 as large as the results, 2 the results before the chain. The addresses of the arrays
// follow the entry's parameters, `arrays` words from their beginning.
struct Ending {
    int (*run)(const void* given, const int*, i64 begin, i64 end);
    const i64 *words, *kinds;
    i64 arrays, word_count, array_count, block;
};

// `room` has the results first..last of the part, and space for the chain's parameters behind them.
static void end_part(const Ending& p, const void* given, float* room, i64 first, i64 last) {
    const i64* arrays = (const i64*)given + p.arrays;
    i64* words = (i64*)(room + (last - first + 15) / 16 * 16);
    memcpy(words, p.words, 8 * p.word_count);
    words[4] = last - first;
    for (i64 k = 0; k < p.array_count; k++) {
        i64& word = words[p.word_count + k];
        word = p.kinds[k] == 2 ? (i64)room : arrays[k] + (p.kinds[k] == 1 ? 4 * first : 0);
    }
    p.run(words, nullptr, 0, (last - first + p.block - 1) / p.block);
}

static i64 ending_room(const Ending& p, i64 count) {
    return p.run ? (count + 15) / 16 * 16 + 2 * (p.word_count + p.array_count) + 16 : 0;
}

// Positions of the images are `row` numbers apart. `limits` may be null.
struct Last {
    const float* images;
    float* out;
    i64 row;
    const float *weights, *bias, *limits;
    i64 channels, filters, groups, gathered, step, shares;
    Window at;
    Ending ending;
};

template <int M, int N>
static void last_tile(const float* const* from, i64 apart, i64 taps, i64 channels, const float* w, const float* bias,
                      const float* limits, float* out, i64 out_row, i64 filters) {
    V sum[M][N], all[M][N];
    for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) sum[i][j] = *(const V*)(bias + j * W);
    i64 done = 0;
    bool parted = false;
    for (i64 t = 0; t < taps; t++) for (i64 first = 0; first < channels; first += DEPTH) {
        const i64 count = least(DEPTH, channels - first);
        const float* x[M];
        for (int i = 0; i < M; i++) x[i] = from[t * apart + i] + first;
        for (i64 c = 0; c < count; c++, w += N * W) {
            V right[N];
            for (int j = 0; j < N; j++) {
                right[j] = *(const V*)(w + j * W);
                __builtin_prefetch(w + AHEAD + j * W);
            }
            for (int i = 0; i < M; i++) {
                const float left = x[i][c];
                for (int j = 0; j < N; j++) sum[i][j] += left * right[j];
            }
        }
        done += count;
        if (done >= DEPTH) {  // the sums of a long kernel are added up in parts, for the sake of rounding
            for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) {
                all[i][j] = parted ? all[i][j] + sum[i][j] : sum[i][j];
                sum[i][j] = V{};
            }
            parted = true;
            done = 0;
        }
    }
    if (parted) for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) sum[i][j] += all[i][j];
    if (limits) {
        const V least = limits[0] + V{}, most = limits[1] + V{};
        for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) sum[i][j] = limited(sum[i][j], least, most);
    }
    if (filters >= N * W) {
        for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) *(V*)(out + i * out_row + j * W) = sum[i][j];
    } else {
        for (int i = 0; i < M; i++) for (int j = 0; j < N; j++)
            put_few(out + i * out_row + j * W, sum[i][j], filters - j * W);
    }
}

template <int M> struct LastTiles {
    template <class... Of> static void go(i64 m, bool wide, Of... of) {
        if (m < M) LastTiles<M - 1>::go(m, wide, of...);
        else if (wide) last_tile<M, 2>(of...);
        else last_tile<M, 1>(of...);
    }
};
template <> struct LastTiles<0> {
    template <class... Of> static void go(i64, bool, Of...) {}
};

// Where the positions first..last of the output read each tap; `zeros` outside of the image.
static void last_places(const Window p, const float* images, i64 row, const float* zeros, i64 first, i64 last,
                        const float** from) {
    const i64 count = last - first, area = p.rows * p.columns;
    if (p.kernel_rows * p.kernel_columns == 1 && area == p.high * p.wide && !p.above && !p.left) {
        for (i64 k = 0; k < count; k++) from[k] = images + (first + k) * row;
        return;
    }
    i64 image = first / area, r = first % area / p.columns, c = first % p.columns;
    for (i64 k = 0; k < count;) {  // from line to line of the output
        const i64 run = least(count - k, p.columns - c);
        const float** to = from + k;
        for (i64 i = 0; i < p.kernel_rows; i++) {
            const i64 y = r * p.down - p.above + i * p.far_down;
            const float* line = images + (image * p.high + y) * p.wide * row;
            for (i64 j = 0; j < p.kernel_columns; j++, to += count) {
                i64 x = c * p.right - p.left + j * p.far_right;
                if (y < 0 || y >= p.high) for (i64 n = 0; n < run; n++) to[n] = zeros;
                else for (i64 n = 0; n < run; n++, x += p.right)
                    to[n] = x >= 0 && x < p.wide ? line + x * row : zeros;
            }
        }
        k += run;
        c = 0;
        if (++r == p.rows) r = 0, image++;
    }
}

// Numbers between what two positions have gathered: nothing is overwritten if whole vectors are copied.
static i64 gathered_apart(const Window& p, i64 channels) {
    const i64 run = p.kernel_columns * channels, apart = (p.kernel_rows - 1) * run + (run + W - 1) / W * W;
    return apart % 256 ? apart : apart + 16;
}

// The numbers that the positions first..last read: `channels` of each tap.
static void gather_last(const Window p, const float* images, i64 row, i64 channels, i64 first, i64 last, float* to,
                        i64 apart) {
    const i64 area = p.rows * p.columns, run = p.kernel_columns * channels;
    const bool joined = p.kernel_columns == 1 || (p.far_right == 1 && row == channels);
    const float* end = images + (p.batch * p.high * p.wide - 1) * row + channels;
    i64 image = first / area, r = first % area / p.columns, c = first % p.columns;
    for (i64 k = first; k < last;) {
        const i64 count = least(last - k, p.columns - c), reach = (p.kernel_columns - 1) * p.far_right;
        // Positions c + begin .. c + inside read no column beside the image.
        const i64 x = c * p.right - p.left, begin = x < 0 ? least(count, (p.right - 1 - x) / p.right) : 0;
        const i64 spare = p.wide - 1 - reach - x, whole = spare < 0 ? 0 : least(count, spare / p.right + 1);
        for (i64 i = 0; i < p.kernel_rows; i++) {
            const i64 y = r * p.down - p.above + i * p.far_down;
            float* target = to + i * run;
            if (y < 0 || y >= p.high) {
                for (i64 n = 0; n < count; n++) for (i64 m = 0; m < run; m++) target[n * apart + m] = 0;
                continue;
            }
            const float* line = images + ((image * p.high + y) * p.wide + x) * row;
            const auto carefully = [&](i64 n) {
                for (i64 j = 0; j < p.kernel_columns; j++) {
                    const i64 at = x + n * p.right + j * p.far_right;
                    const bool there = at >= 0 && at < p.wide;
                    const float* from = line + (n * p.right + j * p.far_right) * row;
                    for (i64 m = 0; m < channels; m++)
                        target[n * apart + j * channels + m] = there ? from[m] : 0;
                }
            };
            i64 n = 0;
            for (; n < begin; n++) carefully(n);
            if (joined) for (; n < whole && line + n * p.right * row + (run + W) <= end; n++)
                for (i64 m = 0; m < run; m += W)
                    *(V*)(target + n * apart + m) = *(const V*)(line + n * p.right * row + m);
            for (; n < count; n++) carefully(n);
        }
        to += count * apart;
        k += count;
        c = 0;
        if (++r == p.rows) r = 0, image++;
    }
}

// A part is `step` positions of the output, and one of `shares` of each group's filters.
ENTRY last_products(const void* given, const int*, i64, i64 parts, int* taken) {
    const Last& p = *(const Last*)given;
    const i64 total = p.at.batch * p.at.rows * p.at.columns, kernel = p.at.kernel_rows * p.at.kernel_columns;
    const i64 depth = p.channels / p.groups, filters = p.filters / p.groups;
    const i64 panels = (filters + WIDE - 1) / WIDE, by_group = (filters + W - 1) / W * W * depth * kernel;
    const i64 taps = p.gathered ? 1 : kernel, channels = p.gathered ? depth * kernel : depth;
    const i64 apart = p.gathered ? gathered_apart(p.at, depth) : 0;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 first = part / p.shares * p.step, last = least(total, first + p.step), count = last - first;
        const i64 share = part % p.shares;
        const i64 pointers = 2 * taps * count, copies = p.gathered ? apart * count + W : p.channels;
        float* from_room = scratch(pointers + copies + 32 + ending_room(p.ending, count * p.filters));
        if (!from_room) return false;
        const float** from = (const float**)from_room;
        float *copied = from_room + (pointers + 15) / 16 * 16, *room = copied + (copies + 15) / 16 * 16;
        if (p.gathered) {
            gather_last(p.at, p.images, p.row, p.channels, first, last, copied, apart);
            for (i64 k = 0; k < count; k++) from[k] = copied + k * apart;
        } else {
            for (i64 k = 0; k < p.channels; k++) copied[k] = 0;
            last_places(p.at, p.images, p.row, copied, first, last, from);
        }
        float* out = p.ending.run ? room : p.out + first * p.filters;
        const i64 blocks = (count + LM - 1) / LM;
        for (i64 g = 0; g < p.groups; g++) {
            if (g) for (i64 k = 0; k < taps * count; k++)
                if (from[k] != copied) from[k] += depth;
            for (i64 panel = panels * share / p.shares; panel < panels * (share + 1) / p.shares; panel++) {
                const i64 f = panel * WIDE, left = filters - f;
                const float* w = p.weights + g * by_group + f * depth * kernel;
                const float* bias = p.bias + g * ((filters + W - 1) / W * W) + f;
                for (i64 b = 0; b < blocks; b++) {
                    const i64 begin = count * b / blocks, m = count * (b + 1) / blocks - begin;
                    LastTiles<LM>::go(m, left > W, from + begin, count, taps, channels, w, bias, p.limits,
                                      out + begin * p.filters + g * filters + f, p.filters, left);
                }
            }
        }
        if (p.ending.run) end_part(p.ending, given, room, first * p.filters, last * p.filters);
        return true;
    });
}

// 3x3 with stride 1 by Winograd's filtering F(2x2, 3x3), see `winograd_source`. The weights are 16 packed matrices. A
// part is `step` lines of tiles, counted through all images; it has the results of whole lines. With a dilation, the
// places of a tile are so far apart, and a line is followed by those that lie between. It fails where something is not
// finite.
struct LastFiltering {
    const float* images;
    float* out;
    i64 row;
    const float *weights, *bias, *limits;
    i64 channels, filters, step;
    Window at;
    Ending ending;
};

// The tile of 4x4 inputs from (top, side) on, in the domain: 16 rows of channels, `apart`.
static void filter_last_inputs(const LastFiltering& p, const float* image, i64 top, i64 side, float* to, i64 apart) {
    for (i64 channel = 0; channel < p.channels; channel += W) {
        const i64 n = least(W, p.channels - channel);
        V d[4][4], half[4][4];
        for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) {
            const i64 y = top + i * p.at.far_down, x = side + j * p.at.far_right;
            const bool there = y >= 0 && y < p.at.high && x >= 0 && x < p.at.wide;
            d[i][j] = there ? few_at(image + (y * p.at.wide + x) * p.row + channel, n) : V{};
        }
        for (int i = 0; i < 4; i++) {
            half[i][0] = d[i][0] - d[i][2];
            half[i][1] = d[i][1] + d[i][2];
            half[i][2] = d[i][2] - d[i][1];
            half[i][3] = d[i][1] - d[i][3];
        }
        for (int j = 0; j < 4; j++) {
            float* at = to + j * apart + channel;
            put_few(at, half[0][j] - half[2][j], n);
            put_few(at + 4 * apart, half[1][j] + half[2][j], n);
            put_few(at + 8 * apart, half[2][j] - half[1][j], n);
            put_few(at + 12 * apart, half[1][j] - half[3][j], n);
        }
    }
}

// The results of a tile, up to 2x2 at `to`, of 16 rows of sums, `apart`.
static void filter_last_outputs(const LastFiltering& p, const float* sums, i64 apart, i64 down, i64 right, float* to,
                                V& watch) {
    for (i64 f = 0; f < p.filters; f += W) {
        const i64 n = least(W, p.filters - f);
        const V bias = few_at(p.bias + f, n);
        V m[4][4], half[2][4];
        for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) m[i][j] = few_at(sums + (4 * i + j) * apart + f, n);
        for (int j = 0; j < 4; j++) {
            half[0][j] = m[0][j] + m[1][j] + m[2][j];
            half[1][j] = m[1][j] - m[2][j] - m[3][j];
        }
        for (int i = 0; i < 2; i++) {
            V pair[2] = {half[i][0] + half[i][1] + half[i][2] + bias, half[i][1] - half[i][2] - half[i][3] + bias};
            watch += pair[0] * 0.0f + pair[1] * 0.0f;
            for (int j = 0; j < 2; j++) if (i < down && j < right) {
                const V v = p.limits ? limited(pair[j], p.limits[0] + V{}, p.limits[1] + V{}) : pair[j];
                put_few(to + (i * p.at.far_down * p.at.columns + j * p.at.far_right) * p.filters + f, v, n);
            }
        }
    }
}

ENTRY last_filtering(const void* given, const int*, i64, i64 parts, int* taken) {
    const LastFiltering& p = *(const LastFiltering*)given;
    const i64 far_down = p.at.far_down, far_right = p.at.far_right;
    const i64 down = (p.at.rows + 2 * far_down - 1) / (2 * far_down) * far_down, all = p.at.batch * down;
    const i64 across = (p.at.columns + 2 * far_right - 1) / (2 * far_right) * far_right;
    const i64 line = p.at.columns * p.filters, panels = (p.filters + WIDE - 1) / WIDE;
    const i64 matrix = (p.filters + W - 1) / W * W * p.channels;
    const float none[WIDE] = {};
    return parts_of(taken, parts, [&](i64 part) {
        const i64 begin = part * p.step, end = least(all, begin + p.step), tiles = (end - begin) * across;
        // Lines of zeros keep rows of a multiple of 4 KiB from the same places of the first-level cache.
        const i64 inner = tiles * p.channels + 16, outer = tiles * p.filters + 16;
        // The first of two places that the k-th tile of a line or column has.
        const auto place = [](i64 k, i64 far) { return k / far * 2 * far + k % far; };
        const auto row_of = [&](i64 k) { return k / down * p.at.rows + place(k % down, far_down); };
        const i64 first = row_of(begin) * line, last = (end == all ? p.at.batch * p.at.rows : row_of(end)) * line;
        float* domain = scratch(16 * (inner + outer) + 2 * tiles + 64 + ending_room(p.ending, last - first));
        if (!domain) return false;
        float* sums = domain + 16 * inner;
        const float** from = (const float**)(sums + 16 * outer);
        float* room = sums + 16 * outer + (2 * tiles + 15) / 16 * 16;
        float* out = p.ending.run ? room : p.out + first;
        i64 tile = 0;
        for (i64 k = begin; k < end; k++) for (i64 t = 0; t < across; t++, tile++) {
            const float* image = p.images + k / down * p.at.high * p.at.wide * p.row;
            filter_last_inputs(p, image, place(k % down, far_down) - p.at.above, place(t, far_right) - p.at.left,
                               domain + tile * p.channels, inner);
        }
        const i64 blocks = (tiles + LM - 1) / LM;
        for (int k = 0; k < 16; k++) {
            for (i64 t = 0; t < tiles; t++) from[t] = domain + k * inner + t * p.channels;
            for (i64 panel = 0; panel < panels; panel++) {
                const i64 f = panel * WIDE, left = p.filters - f;
                const float *w = p.weights + k * matrix + f * p.channels, *no_limits = nullptr;
                for (i64 b = 0; b < blocks; b++) {
                    const i64 at = tiles * b / blocks, m = tiles * (b + 1) / blocks - at, one = 1;
                    LastTiles<LM>::go(m, left > W, from + at, tiles, one, p.channels, w, (const float*)none, no_limits,
                                      sums + k * outer + at * p.filters + f, p.filters, left);
                }
            }
        }
        V watch{};
        tile = 0;
        for (i64 k = begin; k < end; k++) for (i64 t = 0; t < across; t++, tile++) {
            const i64 y = place(k % down, far_down), x = place(t, far_right);
            if (y >= p.at.rows || x >= p.at.columns) continue;
            filter_last_outputs(p, sums + tile * p.filters, outer, y + far_down < p.at.rows ? 2 : 1,
                                x + far_right < p.at.columns ? 2 : 1, out + (row_of(k) * line - first) + x * p.filters,
                                watch);
        }
        if (p.ending.run) end_part(p.ending, given, room, first, last);
        float bad = 0;
        for (int k = 0; k < W; k++) bad += watch[k];
        return bad == 0;
    });
}

// A kernel of its own for each channel, or (`largest`) the largest number of a window.
struct LastSingle {
    const float* images;
    float* out;
    i64 row;
    const float *weights, *bias, *limits;
    i64 channels, largest, step;
    Window at;
    Ending ending;
};

template <bool LARGEST, int M>
INLINE void last_window(const float* x, i64 step, const i64* offsets, const i64* numbers, i64 taps, const float* w,
                        i64 channels, V start, V least, V most, float* to, i64 n) {
    V sum[M];
    for (int i = 0; i < M; i++) sum[i] = start;
    for (i64 t = 0; t < taps; t++) {
        const V weight = LARGEST ? V{} : few_at(w + numbers[t] * channels, n);
        for (int i = 0; i < M; i++) {
            const V v = few_at(x + offsets[t] + i * step, n);
            if (LARGEST) sum[i] = (v > sum[i]) | (v != v) ? v : sum[i];  // NaN is the largest
            else sum[i] += weight * v;
        }
    }
    for (int i = 0; i < M; i++) put_few(to + i * channels, LARGEST ? sum[i] : limited(sum[i], least, most), n);
}

// One row of outputs. `offsets` and `numbers` have room for each tap.
template <bool LARGEST>
static void last_row(const LastSingle& p, i64 image, i64 r, i64* offsets, i64* numbers, float* to) {
    const Window& at = p.at;
    const i64 y = r * at.down - at.above, row = p.row, channels = p.channels;
    const i64 top = y < 0 ? least((-y + at.far_down - 1) / at.far_down, at.kernel_rows) : 0;
    const i64 below = y >= at.high ? top : least(at.kernel_rows, (at.high - 1 - y) / at.far_down + 1);
    const float* line = p.images + (image * at.high + y) * at.wide * row;
    for (i64 c = 0; c < at.columns;) {
        const i64 x = c * at.right - at.left;
        const i64 j0 = x < 0 ? least((-x + at.far_right - 1) / at.far_right, at.kernel_columns) : 0;
        const i64 j1 = x >= at.wide ? j0 : least(at.kernel_columns, (at.wide - 1 - x) / at.far_right + 1);
        i64 run = 1, taps = 0;  // positions whose windows have the same taps
        if (j0 == 0 && j1 == at.kernel_columns) {
            const i64 spare = at.wide - 1 - (x + (at.kernel_columns - 1) * at.far_right);
            run = least(at.columns - c, spare / at.right + 1);
        }
        for (i64 i = top; i < below; i++) for (i64 j = j0; j < j1; j++, taps++) {
            offsets[taps] = (i * at.far_down * at.wide + j * at.far_right) * row;
            numbers[taps] = i * at.kernel_columns + j;
        }
        for (i64 channel = 0; channel < channels; channel += W) {
            const i64 n = least(W, channels - channel), step = at.right * row;
            const V start = LARGEST ? -__builtin_inff() + V{} : few_at(p.bias + channel, n);
            const float infinite = __builtin_inff();
            const V least = (p.limits ? p.limits[0] : -infinite) + V{};
            const V most = (p.limits ? p.limits[1] : infinite) + V{};
            const float *from = line + x * row + channel, *w = p.weights + channel;
            float* out = to + c * channels + channel;
            const auto windows = [&](i64 n) __attribute__((always_inline)) {
                i64 k = 0;
                for (; k + 4 <= run; k += 4)
                    last_window<LARGEST, 4>(from + k * step, step, offsets, numbers, taps, w, channels, start, least,
                                            most, out + k * channels, n);
                for (; k < run; k++)
                    last_window<LARGEST, 1>(from + k * step, step, offsets, numbers, taps, w, channels, start, least,
                                            most, out + k * channels, n);
            };
            if (n == W) windows(W);
            else windows(n);
        }
        c += run;
    }
}

// A part is `step` rows of the output.
ENTRY last_windows(const void* given, const int*, i64, i64 parts, int* taken) {
    const LastSingle& p = *(const LastSingle*)given;
    const i64 total = p.at.batch * p.at.rows, row = p.at.columns * p.channels;
    const i64 taps = p.at.kernel_rows * p.at.kernel_columns;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 first = part * p.step, last = least(total, first + p.step);
        float* memory = scratch(4 * taps + 16 + ending_room(p.ending, (last - first) * row));
        if (!memory) return false;
        i64 *offsets = (i64*)memory, *numbers = offsets + taps;
        float* room = memory + (4 * taps + 15) / 16 * 16;
        float* out = p.ending.run ? room : p.out + first * row;
        for (i64 k = first; k < last; k++) {
            float* to = out + (k - first) * row;
            if (p.largest) last_row<true>(p, k / p.at.rows, k % p.at.rows, offsets, numbers, to);
            else last_row<false>(p, k / p.at.rows, k % p.at.rows, offsets, numbers, to);
        }
        if (p.ending.run) end_part(p.ending, given, room, first * row, last * row);
        return true;
    });
}

struct LastMeans {
    const float* images;
    float* out;
    i64 row, batch, places, channels;
};

// The mean of each channel. A part is four vectors of an image's channels.
ENTRY last_means(const void* given, const int*, i64, i64 parts, int* taken) {
    const LastMeans& p = *(const LastMeans*)given;
    const i64 shares = (p.channels + 4 * W - 1) / (4 * W);
    return parts_of(taken, parts, [&](i64 part) {
        const i64 image = part / shares, begin = part % shares * 4 * W;
        const float* from = p.images + image * p.places * p.row;
        for (i64 channel = begin; channel < least(p.channels, begin + 4 * W); channel += W) {
            const i64 n = least(W, p.channels - channel);
            V all{};
            for (i64 first = 0; first < p.places; first += 64) {
                const i64 last = least(p.places, first + 64);
                V sum{};
                for (i64 k = first; k < last; k++) sum += few_at(from + k * p.row + channel, n);
                all += sum;
            }
            put_few(p.out + image * p.channels + channel, all / (float)p.places, n);
        }
        return true;
    });
}

struct LastJoin {
    const float** sources;
    float* target;
    const i64 *rows, *channels;  // of each source: how far apart its positions are, and how many numbers they have
    i64 count, places, row, step;
};

// Arrays side by side, position for position. A part is `step` positions.
ENTRY join_last(const void* given, const int*, i64, i64 parts, int* taken) {
    const LastJoin& p = *(const LastJoin*)given;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 first = part * p.step, last = least(p.places, first + p.step);
        for (i64 k = 0, begin = 0; k < p.count; begin += p.channels[k], k++) {
            const i64 n = p.channels[k], row = p.rows[k];
            const float* from = p.sources[k] + first * row;
            float* to = p.target + first * p.row + begin;
            for (i64 at = first; at < last; at++, from += row, to += p.row) {
                i64 i = 0;
                for (; i + W <= n; i += W) *(V*)(to + i) = *(const V*)(from + i);
                if (i < n) put_few(to + i, few_at(from + i, n - i), n - i);
            }
        }
        return true;
    });
}

struct LastTurn {
    const float* source;
    float* target;
    i64 row, batch, down, across;
};

template <int D> static void turn_few(const float* source, float* target, i64 across, i64 begin, i64 end) {
    for (i64 j = begin; j < end; j++) for (int i = 0; i < D; i++) target[j * D + i] = source[i * across + j];
}

// Matrices (down, across) as (across, down). A part is 64 numbers of each row of a matrix.
ENTRY turn_last(const void* given, const int*, i64, i64 parts, int* taken) {
    const LastTurn& p = *(const LastTurn*)given;
    enum { SIDE = 16, SHARE = 64 };
    const i64 shares = (p.across + SHARE - 1) / SHARE;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 matrix = part / shares, begin = part % shares * SHARE, end = least(p.across, begin + SHARE);
        const float* source = p.source + matrix * p.down * p.across;
        float* target = p.target + matrix * p.down * p.across;
        if (p.down == 2) return turn_few<2>(source, target, p.across, begin, end), true;
        if (p.down == 3) return turn_few<3>(source, target, p.across, begin, end), true;
        if (p.down == 4) return turn_few<4>(source, target, p.across, begin, end), true;
        for (i64 i0 = 0; i0 < p.down; i0 += SIDE) for (i64 j0 = begin; j0 < end; j0 += SIDE) {
            const i64 i1 = least(p.down, i0 + SIDE), j1 = least(end, j0 + SIDE);
            if (i1 - i0 == SIDE && j1 - j0 == SIDE) {
                float block[SIDE][SIDE];
                for (int i = 0; i < SIDE; i++) memcpy(block[i], source + (i0 + i) * p.across + j0, 4 * SIDE);
                for (int j = 0; j < SIDE; j++) {
                    float line[SIDE];
                    for (int i = 0; i < SIDE; i++) line[i] = block[i][j];
                    memcpy(target + (j0 + j) * p.down + i0, line, 4 * SIDE);
                }
            } else {
                for (i64 j = j0; j < j1; j++) for (i64 i = i0; i < i1; i++)
                    target[j * p.down + i] = source[i * p.across + j];
            }
        }
        return true;
    });
}
"""
