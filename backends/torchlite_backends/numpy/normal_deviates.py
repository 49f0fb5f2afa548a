"""Normal deviates with PyTorch's CPU algorithms, bit for bit.

Sixteen or more values of a contiguous tensor use blocks of 16 uniforms (Box-Muller, eight pairs per block). A remainder
after the last full block makes the last 16 values be drawn again. In float32 PyTorch computes these blocks with the
logarithm, sine and cosine of the Cephes library (S. L. Moshier) in single precision with fused multiply-adds. The same
steps here run in float64, rounded to float32 after each, which gives the same bits. Fewer values, or a non-contiguous
tensor, are drawn one by one in double precision, and the generator caches the second of a pair.
"""

from __future__ import annotations

import math

import numpy as np

from torchlite_backends.cpu_engines.engine_selection import find_native

from .cache_blocking import run_blocks
from .mt19937 import WORDS, Engine

BLOCK = 16
BATCH = 1 << 20  # values per draw of words
CHUNK = 1 << 15  # values computed at a time, so that temporaries stay in cache
_MIN_NATIVE = 256  # values for an engine's kernel
SCALE24 = 2.0**-24
SCALE53 = 2.0**-53
LOW21, LOW53 = np.uint32(0x1FFFFF), np.uint64((1 << 53) - 1)
# up to so many float64 results are computed with the C library's functions, which PyTorch calls; NumPy's may round
# differently
SCALAR_LIMIT = 1024


def _round_to_float32(*values: float) -> list[float]:
    return [float(np.float32(v)) for v in values]


# Cephes' single-precision polynomials: of the logarithm of 1 + x, the cosine and the sine on [-pi/4, pi/4]; log(2) and
# pi/4 in parts.
LOG = _round_to_float32(
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
LN2_LOW, LN2_HIGH = _round_to_float32(-2.12194440e-4, 0.693359375)
COS = _round_to_float32(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
SIN = _round_to_float32(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
QUARTER_PI = _round_to_float32(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
FOUR_OVER_PI = np.float32(1.27323954473516)
ANGLE_OF_WORD = np.float32(2 * math.pi) * np.float32(SCALE24)
SQRT_HALF_BITS, ONE_BITS, MANTISSA = 0x3F3504F3, 0x3F800000, 0x007FFFFF


def _horner_fma(x: np.ndarray, coefficients: list[float]) -> np.ndarray:
    """Evaluate a polynomial by Horner's rule with single-precision fused multiply-adds, each in float64 rounded to
    float32.
    """
    y = x * coefficients[0]
    y += coefficients[1]
    single = y.astype(np.float32)
    for coefficient in coefficients[2:]:
        np.copyto(y, single)
        y *= x
        y += coefficient
        np.copyto(single, y, casting="unsafe")
    return single


def _box_muller_radius(words: np.ndarray) -> np.ndarray:
    """Return sqrt(-2 log(1 - u)), u = words / 2**24, in float32."""
    bits = ((1 << 24) - words).astype(np.float32).view(np.int32)
    bits += ONE_BITS - SQRT_HALF_BITS
    exponent = (bits >> 23).astype(np.float64)
    exponent -= 127 + 24
    bits &= MANTISSA
    bits += SQRT_HALF_BITS
    x = bits.view(np.float32)  # in [sqrt(1/2), sqrt(2))
    x -= np.float32(1)
    square = x * x
    y = _horner_fma(x.astype(np.float64), LOG)
    y *= x
    wide, wide_square = y.astype(np.float64), square.astype(np.float64)
    wide *= wide_square
    np.multiply(exponent, LN2_LOW, out=wide_square)
    np.copyto(y, wide_square, casting="unsafe")
    np.copyto(wide_square, y)
    wide += wide_square
    np.copyto(y, wide, casting="unsafe")
    square *= np.float32(0.5)
    y -= square
    x += y
    exponent *= LN2_HIGH
    np.copyto(wide, x)
    exponent += wide
    np.copyto(x, exponent, casting="unsafe")
    x *= np.float32(-2)
    return np.sqrt(x, out=x)


def _box_muller_cos_sin(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return cosine and sine of 2 pi u, u = words / 2**24, in float32."""
    angle = words.astype(np.float32)
    angle *= ANGLE_OF_WORD
    octant = (angle * FOUR_OVER_PI).astype(np.int32)
    octant += 1
    octant &= ~1
    turns = octant.astype(np.float64)
    wide = angle.astype(np.float64)
    for part in QUARTER_PI:
        wide += turns * part
        np.copyto(angle, wide, casting="unsafe")
        np.copyto(wide, angle)
    square = angle * angle
    square_wide = square.astype(np.float64)
    cosine = _horner_fma(square_wide, COS)
    cosine *= square
    sine = _horner_fma(square_wide, SIN)
    sine *= square
    np.multiply(cosine, square_wide, out=turns)
    square_wide *= 0.5
    turns -= square_wide
    np.copyto(cosine, turns, casting="unsafe")
    cosine += np.float32(1)
    np.multiply(sine, wide, out=turns)
    turns += wide
    np.copyto(sine, turns, casting="unsafe")
    # In every second quadrant the two are exchanged, by exclusive or of their bits; then the signs are set.
    cosine_bits, sine_bits = cosine.view(np.int32), sine.view(np.int32)
    change = cosine_bits ^ sine_bits
    change &= -((octant >> 1) & 1)
    cosine_bits ^= change
    sine_bits ^= change
    sine_bits ^= (octant & 4) << 29
    octant += 2
    octant &= 4
    cosine_bits ^= octant << 29
    return cosine, sine


def sample_box_muller(words: np.ndarray) -> np.ndarray:
    """Return standard normals in float32 from a multiple of 16 words."""
    pairs = (words.reshape(-1, 2, BLOCK // 2) & 0xFFFFFF).view(np.int32)
    radius = _box_muller_radius(pairs[:, 0].ravel())
    cosine, sine = _box_muller_cos_sin(pairs[:, 1].ravel())
    out = np.empty(pairs.shape, np.float32)
    half = radius.reshape(-1, BLOCK // 2)
    np.multiply(half, cosine.reshape(half.shape), out=out[:, 0])
    np.multiply(half, sine.reshape(half.shape), out=out[:, 1])
    return out.reshape(-1)


def sample_buffered_normals(engine: Engine, count: int) -> np.ndarray | None:
    """Return `count` normals (a multiple of 16) from words of the current block; None if it has fewer.

    The rest of the block is computed ahead. Later small draws are slices of it.
    """
    with engine.lock:
        start = engine.position
        if count > WORDS - start:
            return None
        offset = start - engine.ahead_from
        if offset < 0 or offset % BLOCK:
            unread = engine.unread_words()
            engine.ahead = sample_box_muller(unread[: len(unread) // BLOCK * BLOCK])
            engine.ahead_from, offset = start, 0
        engine.position = start + count
        return engine.ahead[offset : offset + count]


def _fill_part(part: np.ndarray, engine: Engine, mean: float, std: float) -> None:
    words = engine.words(part.size)
    if part.size >= _MIN_NATIVE and _fill_natively(words, part, mean, std):
        return

    def fill_blocks(first: int, last: int) -> None:
        span = slice(first * BLOCK, last * BLOCK)
        fused_multiply_add_into(part[span], sample_box_muller(words[span]), std, mean)

    run_blocks(fill_blocks, part.size // BLOCK, BLOCK, CHUNK)


def _fill_natively(words: np.ndarray, part: np.ndarray, mean: float, std: float) -> bool:
    native = find_native("normals")
    if native is None:
        return False
    single = part if part.dtype == np.float32 else np.empty(part.size, np.float32)
    if not native(words, single, mean, std):
        return False
    if single is not part:
        part[...] = single
    return True


def fused_multiply_add_into(out: np.ndarray, values: np.ndarray, factor: float, term: float) -> None:
    """Compute out = values * factor + term with one rounding to the dtype of `out`.

    That is float32, or a narrower one rounded from float32.
    """
    if factor != 1.0 or term != 0.0:
        values = np.multiply(values, factor, dtype=np.float64)
        values += term
    if out.dtype.itemsize < 4:
        values = values.astype(np.float32)
    out[...] = values


def fill_block_normals(engine: Engine, out: np.ndarray, mean: float, std: float) -> None:
    """Fill `out`, flat and of 16 or more values, from the float32 stream; mean and std are float32 numbers."""
    with engine.lock:
        rest = out.size % BLOCK
        whole = out[: out.size - rest]
        for start in range(0, whole.size, BATCH):
            _fill_part(whole[start : start + BATCH], engine, mean, std)
        if rest:
            if (
                out.dtype == np.float32
            ):  # PyTorch draws the rest too before it draws the last 16 again; not so in the narrower dtypes
                engine.words(rest)
            fused_multiply_add_into(out[-BLOCK:], sample_box_muller(engine.words(BLOCK)), std, mean)


def _box_muller_double(uniform: np.ndarray) -> np.ndarray:
    pairs = uniform.reshape(-1, 2, BLOCK // 2)
    if uniform.size <= SCALAR_LIMIT:
        radius = np.array([math.sqrt(-2 * math.log(1 - u)) for u in pairs[:, 0].ravel().tolist()])
        angles = (2 * math.pi * pairs[:, 1]).ravel().tolist()
        cosine, sine = np.array([math.cos(a) for a in angles]), np.array([math.sin(a) for a in angles])
    else:
        radius = np.sqrt(-2 * np.log(1 - pairs[:, 0])).ravel()
        angle = (2 * np.pi * pairs[:, 1]).ravel()
        cosine, sine = np.cos(angle), np.sin(angle)
    shape = pairs[:, 0].shape
    return np.stack([(radius * cosine).reshape(shape), (radius * sine).reshape(shape)], axis=1).ravel()


def sample_block_normals_double(engine: Engine, count: int) -> np.ndarray:
    """Return `count` >= 16 standard normals of the float64 stream."""
    with engine.lock:
        uniform = sample_uniform_doubles(engine, count)
        rest = count % BLOCK
        out = np.empty(count)
        out[: count - rest] = _box_muller_double(uniform[: count - rest])
        if rest:
            out[-BLOCK:] = _box_muller_double(sample_uniform_doubles(engine, BLOCK))
    return out


def _box_muller_pair(u: float, v: float) -> tuple[float, float]:
    radius, angle = math.sqrt(-2.0 * math.log1p(-v)), 2.0 * math.pi * u
    return radius * math.cos(angle), radius * math.sin(angle)


def sample_serial_normals(engine: Engine, count: int, exact: bool) -> np.ndarray:
    """Return `count` standard normals drawn one by one, in float64, starting with the generator's cached one.

    A left-over one is cached. `exact`: use the C library's functions for up to SCALAR_LIMIT values (a float32 result
    cannot show the difference).
    """
    out = np.empty(count)
    if count == 0:
        return out
    with engine.lock:
        start = 0
        if engine.next_normal is not None:
            out[0], engine.next_normal, start = engine.next_normal, None, 1
        remaining = count - start
        here = engine.position
        end = here + 2 * (remaining + remaining % 2)
        if end <= WORDS:  # as `Engine.words`, whose lock this thread has
            engine.position = end
            uniform = _words_to_doubles(engine._block[here:end]).reshape(-1, 2)
        else:
            uniform = sample_uniform_doubles(engine, remaining + remaining % 2).reshape(-1, 2)
        if count < BLOCK or (exact and count <= SCALAR_LIMIT):
            pairs = np.array([x for u, v in uniform.tolist() for x in _box_muller_pair(u, v)])
        else:
            radius, angle = np.sqrt(-2.0 * np.log1p(-uniform[:, 1])), 2.0 * np.pi * uniform[:, 0]
            pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()
        out[start:] = pairs[:remaining]
        if remaining % 2:
            engine.next_normal = _box_muller_pair(*uniform[-1].tolist())[1]
    return out


def sample_uniform_doubles(engine: Engine, count: int) -> np.ndarray:
    """Return `count` uniforms in [0, 1) of 53 bits: two words each, the low 21 bits of the first above the second."""
    if count < WORDS or find_native("doubles") is not None:
        return _words_to_doubles(engine.words(2 * count))
    pairs = engine.pairs_of_words(count)
    pairs &= LOW53
    return pairs.view(np.int64) * SCALE53


def _words_to_doubles(words: np.ndarray) -> np.ndarray:
    if words.size >= 2 * _MIN_NATIVE and words.flags.c_contiguous and (native := find_native("doubles")) is not None:
        found = np.empty(words.size // 2)
        if native(words, found):
            return found
    out = (words[0::2] & LOW21) * 2.0**-21
    out += words[1::2] * SCALE53
    return out
