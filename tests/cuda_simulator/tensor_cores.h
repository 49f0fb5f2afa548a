// The functions behind which kernels reach tensor cores and asynchronous copies. Fragments are PTX's: `g` is a lane's group of four, `q` its place there.
#pragma once

static inline float cuda_simulator_half(unsigned int bits) {
    unsigned short low = (unsigned short)bits;
    _Float16 value;
    __builtin_memcpy(&value, &low, 2);
    return (float)value;
}
static inline float cuda_simulator_bfloat16(unsigned int bits) {
    unsigned int high = bits << 16;
    float value;
    __builtin_memcpy(&value, &high, 4);
    return value;
}
static inline float cuda_simulator_tf32(unsigned int bits) {
    bits &= 0xffffe000u;  // the tensor core does not see the low 13 bits
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
}

struct cuda_simulator_fragments { const unsigned int *a, *b; const float* c; float d[4]; };

// d = a b + c for 16 x K times K x 8. A register holds PER neighbouring elements along K; a half of K is 4 * PER elements.
template <int K, int PER, float (*element)(unsigned int)> static void cuda_simulator_resolve_mma(void** lanes, unsigned int) {
    float a[16][K], b[K][8];
    for (int lane = 0; lane < 32; lane++) {
        const cuda_simulator_fragments* it = (const cuda_simulator_fragments*)lanes[lane];
        int g = lane / 4, q = lane % 4;
        for (int half = 0; half < K / (4 * PER); half++)
            for (int e = 0; e < PER; e++) {
                int k = half * 4 * PER + q * PER + e, shift = 16 * e;
                a[g][k] = element(it->a[2 * half] >> shift);
                a[g + 8][k] = element(it->a[2 * half + 1] >> shift);
                b[k][g] = element(it->b[half] >> shift);
            }
    }
    for (int lane = 0; lane < 32; lane++) {
        cuda_simulator_fragments* it = (cuda_simulator_fragments*)lanes[lane];
        for (int e = 0; e < 4; e++) {
            int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
            float total = it->c[e];
            for (int k = 0; k < K; k++) total += a[row][k] * b[k][column];
            it->d[e] = total;
        }
    }
}
static inline void cuda_simulator_mma(float* d, const unsigned int* a, const unsigned int* b, const float* c,
                                      cuda_simulator_resolve resolve, int line, const char* name) {
    cuda_simulator_fragments it = {a, b, c, {0, 0, 0, 0}};
    cuda_simulator.runtime->collective(0xffffffffu, &it, resolve, line, name);
    for (int e = 0; e < 4; e++) d[e] = it.d[e];
}
#define CUDA_SIMULATOR_MMA(name, k, per, element)                                                                                    \
    static inline void name(float d[4], const unsigned int* a, const unsigned int* b, const float c[4], int line = __builtin_LINE()) { \
        cuda_simulator_mma(d, a, b, c, cuda_simulator_resolve_mma<k, per, element>, line, #name);                                      \
    }
CUDA_SIMULATOR_MMA(mma_16x8x16_f16, 16, 2, cuda_simulator_half)
CUDA_SIMULATOR_MMA(mma_16x8x16_bf16, 16, 2, cuda_simulator_bfloat16)
CUDA_SIMULATOR_MMA(mma_16x8x8_f16, 8, 2, cuda_simulator_half)
CUDA_SIMULATOR_MMA(mma_16x8x8_bf16, 8, 2, cuda_simulator_bfloat16)
CUDA_SIMULATOR_MMA(mma_16x8x8_tf32, 8, 1, cuda_simulator_tf32)
CUDA_SIMULATOR_MMA(mma_16x8x4_tf32, 4, 1, cuda_simulator_tf32)
#undef CUDA_SIMULATOR_MMA

// Matrices of 8 x 8 elements of 16 bits: lane 8 m + r gives the place of row r of matrix m, and gets a pair of each matrix.
struct cuda_simulator_rows { const void* row; unsigned int pairs[4]; };
template <int MATRICES, bool TRANSPOSED> static void cuda_simulator_resolve_ldmatrix(void** lanes, unsigned int) {
    for (int lane = 0; lane < 32; lane++)
        for (int m = 0; m < MATRICES; m++) {
            unsigned int pair = 0;
            for (int e = 0; e < 2; e++) {
                int row = TRANSPOSED ? lane % 4 * 2 + e : lane / 4, column = TRANSPOSED ? lane / 4 : lane % 4 * 2 + e;
                const void* from = ((cuda_simulator_rows*)lanes[8 * m + row])->row;
                unsigned short element;
                __builtin_memcpy(&element, (const unsigned short*)from + column, 2);
                pair |= (unsigned int)element << (16 * e);
            }
            ((cuda_simulator_rows*)lanes[lane])->pairs[m] = pair;
        }
}
template <int MATRICES, bool TRANSPOSED> static inline void cuda_simulator_ldmatrix(unsigned int* r, const void* row, int line, const char* name) {
    bool used = cuda_simulator_lane() < 8 * MATRICES;
    if (used && (size_t)row % 16) cuda_simulator.runtime->fail("%s in line %d from %p, no multiple of 16 bytes", name, line, row);
    cuda_simulator_rows it = {row, {}};
    cuda_simulator.runtime->collective(0xffffffffu, &it, cuda_simulator_resolve_ldmatrix<MATRICES, TRANSPOSED>, line, name);
    for (int m = 0; m < MATRICES; m++) r[m] = it.pairs[m];
}
#define CUDA_SIMULATOR_LDMATRIX(name, matrices, transposed)                                      \
    static inline void name(unsigned int* r, const void* row, int line = __builtin_LINE()) {     \
        cuda_simulator_ldmatrix<matrices, transposed>(r, row, line, #name);                      \
    }
CUDA_SIMULATOR_LDMATRIX(ldmatrix_x1, 1, false)
CUDA_SIMULATOR_LDMATRIX(ldmatrix_x2, 2, false)
CUDA_SIMULATOR_LDMATRIX(ldmatrix_x4, 4, false)
CUDA_SIMULATOR_LDMATRIX(ldmatrix_x1_trans, 1, true)
CUDA_SIMULATOR_LDMATRIX(ldmatrix_x2_trans, 2, true)
CUDA_SIMULATOR_LDMATRIX(ldmatrix_x4_trans, 4, true)
#undef CUDA_SIMULATOR_LDMATRIX

// The last argument: the bytes to read, the rest becoming zero.
static inline void cp_async_16(void* to, const void* from, int given = 16) { cuda_simulator.runtime->copy_later(to, from, 16, given); }
static inline void cp_async_8(void* to, const void* from, int given = 8) { cuda_simulator.runtime->copy_later(to, from, 8, given); }
static inline void cp_async_4(void* to, const void* from, int given = 4) { cuda_simulator.runtime->copy_later(to, from, 4, given); }
static inline void cp_async_commit() { cuda_simulator.runtime->copies_commit(); }
template <int pending> static inline void cp_async_wait() { cuda_simulator.runtime->copies_wait(pending); }
static inline void cp_async_wait_all() { cuda_simulator.runtime->copies_wait(-1); }
