"""C++ source of Winograd's minimal filtering F(2x2, 3x3), part of the program of `convolution_source`.

Tiles of 4x4 inputs, two apart, are transformed to 16 positions, at each of which a convolution is a sum over channels.
Tiles fill the lanes of vectors in the order of images, rows and columns, so that small images use all lanes. The sums
of some filters and a panel of tiles are transformed back and written while they are in the first-level cache.
"""

SOURCE = r"""
// --- 3x3 with stride 1 by Winograd's filtering ------------------------------------------------------

struct Filtering {
    const float *images, *weights, *bias;
    float *out, *domain;
    i64 batch, channels, filters, high, wide, above, left, rows, columns, turned, lines, across, down, step;
    Finish finish;
};

// The weights (outer, inner, 3, 3) in the domain, (16, outer, inner); `turned` are those of the images' gradient.
ENTRY filtering_weights(const void* given, const int*, i64, i64 parts, int* taken) {
    const Filtering& p = *(const Filtering*)given;
    const i64 count = p.channels * p.filters;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 end = count * (part + 1) / parts;
        for (i64 first = count * part / parts; first < end; first += W) {
            const i64 n = least(W, end - first);
            float taps[9][W] = {}, half[4][3][W], line[W];
            for (i64 k = 0; k < n; k++) for (int t = 0; t < 9; t++)
                taps[p.turned ? 8 - t : t][k] = p.weights[(first + k) * 9 + t];
            for (int j = 0; j < 3; j++) for (int k = 0; k < W; k++) {
                const float a = taps[j][k], b = taps[3 + j][k], c = taps[6 + j][k];
                half[0][j][k] = a;
                half[1][j][k] = 0.5f * (a + b + c);
                half[2][j][k] = 0.5f * (a - b + c);
                half[3][j][k] = c;
            }
            for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) {
                for (int k = 0; k < W; k++) {
                    const float a = half[i][0][k], b = half[i][1][k], c = half[i][2][k];
                    line[k] = j == 0 ? a : j == 1 ? 0.5f * (a + b + c) : j == 2 ? 0.5f * (a - b + c) : c;
                }
                memcpy(p.domain + (4 * i + j) * count + first, line, 4 * n);
            }
        }
        return true;
    });
}

// A line of tiles of one channel: four lines of inputs, zeros beside them, into places `apart`.
static void filtering_inputs(const Filtering& p, const float* image, i64 line, float* room, float* target, i64 apart) {
    const i64 across = p.across, length = 2 * across + 2;
    float *half = room + 4 * length;
    for (i64 i = 0; i < 4; i++) {
        float* row = room + i * length;
        const i64 y = 2 * line + i - p.above, end = least(length, p.left + p.wide);
        if (y < 0 || y >= p.high) {
            memset(row, 0, 4 * length);
        } else {
            for (i64 k = 0; k < p.left; k++) row[k] = 0;
            memcpy(row + p.left, image + y * p.wide, 4 * (end - p.left));
            for (i64 k = end; k < length; k++) row[k] = 0;
        }
        float* to = half + 4 * i * across;
        for (i64 t = 0; t < across; t++) {
            const float a = row[2 * t], b = row[2 * t + 1], c = row[2 * t + 2], d = row[2 * t + 3];
            to[t] = a - c;
            to[across + t] = b + c;
            to[2 * across + t] = c - b;
            to[3 * across + t] = b - d;
        }
    }
    const float *a = half, *b = a + 4 * across, *c = b + 4 * across, *d = c + 4 * across;
    for (int j = 0; j < 4; j++, a += across, b += across, c += across, d += across) {
        float *w = target + j * apart, *x = w + 4 * apart, *y = x + 4 * apart, *z = y + 4 * apart;
        for (i64 t = 0; t < across; t++) {
            w[t] = a[t] - c[t];
            x[t] = b[t] + c[t];
            y[t] = c[t] - b[t];
            z[t] = b[t] - d[t];
        }
    }
}

// The outputs of a panel of tiles, of one filter, of the sums in the domain (16, MR, WIDE): both lines of each tile.
INLINE V filtering_outputs(const float* sums, float bias, float lines[2][2 * WIDE]) {
    V watch{};
    for (int v = 0; v < NV; v++) {
        V m[4][4], half[2][4];
        for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++)
            m[i][j] = *(const V*)(sums + (4 * i + j) * MR * WIDE + v * W);
        for (int j = 0; j < 4; j++) {
            half[0][j] = m[0][j] + m[1][j] + m[2][j];
            half[1][j] = m[1][j] - m[2][j] - m[3][j];
        }
        for (int i = 0; i < 2; i++) {
            const V even = half[i][0] + half[i][1] + half[i][2] + bias;
            const V odd = half[i][1] - half[i][2] - half[i][3] + bias;
            watch += even * 0.0f + odd * 0.0f;
            for (int k = 0; k < W; k++) {
                lines[i][2 * (v * W + k)] = even[k];
                lines[i][2 * (v * W + k) + 1] = odd[k];
            }
        }
    }
    return watch;
}

// A part is `step` lines of tiles, counted through all images. It fails where something is not finite.
ENTRY filtering_tiles(const void* given, const int*, i64, i64 parts, int* taken) {
    const Filtering& p = *(const Filtering*)given;
    const i64 all = p.batch * p.down, inner = p.channels * p.filters, zero = 0;
    return parts_of(taken, parts, [&](i64 part) {
        const i64 begin = part * p.step, end = least(all, begin + p.step), tiles = (end - begin) * p.across;
        const i64 width = (tiles + WIDE - 1) / WIDE * WIDE, apart = p.channels * width;
        const i64 room = (4 * (2 * p.across + 2) + 16 * p.across + 15) / 16 * 16;
        float* domain = scratch(16 * apart + room);
        if (!domain) return false;
        for (i64 c = 0; c < p.channels; c++) {
            float* target = domain + c * width;
            for (i64 line = begin; line < end; line++) {
                const float* image = p.images + (line / p.down * p.channels + c) * p.high * p.wide;
                float* to = target + (line - begin) * p.across;
                filtering_inputs(p, image, line % p.down, domain + 16 * apart, to, apart);
            }
            for (int k = 0; k < 16; k++)
                for (i64 t = tiles; t < width; t++) target[k * apart + t] = 0;
        }
        Sum sum{};
        sum.channels = p.channels;
        sum.taps = 1;
        sum.weight_places = sum.image_places = &zero;
        sum.by_channel = width;
        sum.by_filter = p.turned ? 1 : p.channels;
        sum.by_depth = p.turned ? p.filters : 1;
        V watch{};
        float sums[16 * MR * WIDE], lines[2][2 * WIDE];
        for (i64 f = 0; f < p.filters; f += MR) for (i64 first = 0; first < tiles; first += WIDE) {
            const i64 m = least(MR, p.filters - f), count = least(WIDE, tiles - first);
            for (int k = 0; k < 16; k++)
                Few<MR>::go(m, sum, p.domain + k * inner + f * sum.by_filter, domain + k * apart + first, WIDE,
                            sums + k * MR * WIDE);
            for (i64 i = 0; i < m; i++) {
                watch += filtering_outputs(sums + i * WIDE, p.bias ? p.bias[f + i] : 0.0f, lines);
                if (p.finish.scale) for (int k = 0; k < 2; k++) finished(p.finish, f + i, lines[k], 2 * WIDE);
                i64 line = begin + first / p.across, column = first % p.across;
                for (i64 done = 0; done < count; line++, column = 0) {
                    const i64 run = least(count - done, p.across - column), y = line % p.down * 2;
                    const i64 kept = least(2 * run, p.columns - 2 * column), image = line / p.down;
                    float* to = p.out + ((image * p.filters + f + i) * p.rows + y) * p.columns + 2 * column;
                    memcpy(to, lines[0] + 2 * done, 4 * kept);
                    if (y + 1 < p.rows) memcpy(to + p.columns, lines[1] + 2 * done, 4 * kept);
                    done += run;
                }
            }
        }
        float bad = 0;
        for (int k = 0; k < W; k++) bad += watch[k];
        return bad == 0;
    });
}
"""
