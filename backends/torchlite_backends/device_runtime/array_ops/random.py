"""Random number generators and sampling kernels over Philox (`torchlite_backends.kernel_sources.philox`)."""

from __future__ import annotations

import functools
import math
import os
import struct
import threading

import numpy as np

from torchlite._settings import fork_locks
from torchlite_backends.kernel_sources.dtype_kinds import KINDS
from torchlite_backends.kernel_sources.philox import (
    BINOMIAL,
    MULTINOMIAL,
    POISSON,
    distribution_source,
    integer_source,
    read_seed_from_memory_source,
)

from ..core.array import Array, empty, kind_of, numpy_dtype_of_kind
from ..core.broadcasting import broadcast_shape
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device, round_up_to_groups
from ..core.kernel_markers import mark_device_first
from ..core.pointwise_dispatch import cast
from ..core.views import broadcast_view
from .scan import cumsum
from .sort import sort

_STATE = struct.Struct("<QQ")
_MASK64 = (1 << 64) - 1
_IOTA = f"(ulong16)({', '.join(map(str, range(16)))})"


class PhiloxEngine:
    """Philox4x32-10 generator: its seed, and the number of used blocks of four words as `offset`."""

    def __init__(self, seed: int = 0) -> None:
        self.lock = fork_locks.acquire_before_fork(threading.RLock())
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> None:
        """Restart from `seed`, an unsigned 64-bit integer."""
        with self.lock:
            self.initial_seed, self.offset = seed, 0

    def seed(self) -> int:
        """Restart from a random seed (53 bits) and return it."""
        seed = int.from_bytes(os.urandom(8), "little") >> 11
        self.manual_seed(seed)
        return seed

    def get_state(self) -> np.ndarray:
        """Return seed and offset as 16 bytes."""
        with self.lock:
            return np.frombuffer(_STATE.pack(self.initial_seed, self.offset), np.uint8).copy()

    def set_state(self, state: np.ndarray) -> None:
        """Restore a state from `get_state`. RuntimeError for a wrong size."""
        if state.size != _STATE.size:
            raise RuntimeError("RNG state is wrong size")
        with self.lock:
            self.initial_seed, self.offset = _STATE.unpack(state.tobytes())

    def get_offset(self) -> int:
        return self.offset

    def set_offset(self, offset: int) -> None:
        with self.lock:
            self.offset = offset & _MASK64

    def take(self, blocks: int) -> tuple[int, int, int]:
        """Reserve `blocks` blocks; return (low word of the seed, high word, first block)."""
        with self.lock:
            first, seed = self.offset, self.initial_seed
            self.offset = first + blocks & _MASK64
        return seed & 0xFFFFFFFF, seed >> 32, first


class CapturedDraws:
    """Random draws of a graph being captured.

    For each generator: the address of its seed and first block, and the number of blocks per replay.
    """

    def __init__(self, device: Device):
        self._device = device
        self.places: dict[PhiloxEngine, tuple[Array, int]] = {}

    def take(self, engine: PhiloxEngine, blocks: int) -> tuple[Array, int]:
        """Return the generator's address, and the offset of the next blocks from the stored first block."""
        place, ahead = self.places.get(engine) or (empty(self._device, (2,), "i64"), 0)
        self.places[engine] = place, ahead + blocks
        return place, ahead

    def advance_offsets(self) -> None:
        """Before a replay, store the generators' current offsets and advance them."""
        for engine, (place, blocks) in self.places.items():
            low, high, first = engine.take(blocks)
            self._device.write(place.buffer, np.array([low | high << 32, first], np.uint64).view(np.uint8), keep=True)


def make_seed_arguments(device: Device, engine: PhiloxEngine, blocks: int, text: str) -> tuple[str, str, tuple]:
    """Return source, signature and arguments of a kernel's seed: numbers, or during capture an address."""
    if device.capturing:
        return read_seed_from_memory_source(text), "pQ", device.draws.take(engine, blocks)
    return text, "IIQ", engine.take(blocks)


def random_definitions_source(device: Device, kind: str, real: str) -> dict[str, str]:
    """Return definitions for a kernel whose results are of `kind` and computed in `real`."""
    computed = KINDS[kind].computed
    w = "16" if device.is_cpu else ""
    words = {
        "T": kind,
        "S": real,
        "R": real + w,
        "U": "uint" + w,
        "UL": "ulong" + w,
        "LANES": w or "1",
        "IOTA": _IOTA if w else "0",
    }
    if real == "double":
        words["UNUSED"] = "f64"
    if w:
        return words | {
            "TO_T": f"convert_{computed}16",
            "TO_R": f"convert_{real}16",
            "TO_U": "convert_uint16",
            "TO_UL": "convert_ulong16",
        }
    return words | {"TO_T": f"({computed})", "TO_R": f"({real})", "TO_U": "(uint)", "TO_UL": "(ulong)"}


@functools.lru_cache(256)
def compute_block_sizes(count: int, per: int, lanes: int) -> tuple[int, tuple[int]]:
    """Return the number of blocks for `count` values, and the grid of work-items of `lanes` blocks each."""
    blocks = 16 * -(-count // (16 * per))
    return blocks, round_up_to_groups(blocks // lanes, 64)


def _launch_draw(
    device: Device,
    size,
    kind: str,
    source: tuple[str, int],
    signature: str,
    kinds: dict[str, str],
    engine: PhiloxEngine,
    *parameters,
) -> Array:
    """Return a new array sampled by a kernel of `kernel_sources.philox`."""
    text, per = source
    out = empty(device, tuple(size), kind)
    if out.size:
        lanes = 16 if device.is_cpu else 1
        blocks, global_size = compute_block_sizes(out.size, per, lanes)
        text, letters, start = make_seed_arguments(device, engine, blocks, text)
        run = device.function(text, "draw", f"pi{letters}{signature}", (16,) if lanes == 16 else (), **kinds)
        run(global_size, (64,), out, out.size, *start, *parameters)
    return out


_distribution_source, _integer_source = functools.cache(distribution_source), functools.cache(integer_source)


def _draw_distribution(
    device: Device, size, dtype, value: str, engine: PhiloxEngine, a=0.0, b=0.0, edge=0.0, limit: int = 0
) -> Array:
    """Return a new array of real samples, computed in double for float64 and else in float."""
    kind = kind_of(dtype.np)
    real, code = ("double", "d") if kind == "f64" else ("float", "f")
    return _launch_draw(
        device,
        size,
        kind,
        _distribution_source(value, real),
        code * 3 + "I",
        random_definitions_source(device, kind, real),
        engine,
        a,
        b,
        edge,
        limit,
    )


@functools.lru_cache(256)
def _find_rounding_edge(low: float, high: float, kind: str) -> float:
    """Return the least number that rounds to `high` in a kind: the midpoint below it."""
    if kind in ("f64", "f32") or low >= high:
        return high
    dtype = numpy_dtype_of_kind(kind)
    top = dtype.type(high)
    return (float(np.nextafter(top, dtype.type(low))) + float(top)) / 2


@mark_device_first
def _random_uniform(device, size, dtype, low, high, generator):
    low, high = float(low), float(high)
    return _draw_distribution(
        device, size, dtype, "uniform", generator, low, high - low, _find_rounding_edge(low, high, kind_of(dtype.np))
    )


@mark_device_first
def _random_normal(device, size, dtype, mean, std, serial, generator):
    return _draw_distribution(device, size, dtype, "normal", generator, float(mean), float(std))


@mark_device_first
def _random_log_normal(device, size, dtype, mean, std, generator):
    return _draw_distribution(device, size, dtype, "log_normal", generator, float(mean), float(std))


@mark_device_first
def _random_exponential(device, size, dtype, lambd, generator):
    return _draw_distribution(device, size, dtype, "exponential", generator, -1.0 / float(lambd))


@mark_device_first
def _random_cauchy(device, size, dtype, median, sigma, generator):
    return _draw_distribution(device, size, dtype, "cauchy", generator, float(median), float(sigma))


@mark_device_first
def _random_geometric(device, size, dtype, p, generator):
    return _draw_distribution(device, size, dtype, "geometric", generator, 1.0 / math.log1p(-float(p)))


def compute_bernoulli_limit(p: float) -> int:
    """Return the largest word that counts as a success of probability p > 0."""
    return min(max(math.ceil(p * 4294967296.0) - 1, 0), 0xFFFFFFFF)


@mark_device_first
def _random_bernoulli(device, size, dtype, p, generator):
    return _draw_distribution(
        device, size, dtype, "below", generator, 1.0 if p > 0 else 0.0, limit=compute_bernoulli_limit(p)
    )


@mark_device_first
def _random_keep_mask(device, size, dtype, p, generator):
    return _draw_distribution(
        device,
        size,
        dtype,
        "below",
        generator,
        1.0 / (1.0 - p) if p < 1 else 0.0,
        limit=compute_bernoulli_limit(1.0 - p),
    )


def _draw_integers(device: Device, size, dtype, low: int, span: int, bits: int, engine: PhiloxEngine) -> Array:
    kind = kind_of(dtype.np)
    low = (low + (1 << 63)) % (1 << 64) - (1 << 63)
    return _launch_draw(
        device,
        size,
        kind,
        _integer_source(bits),
        "qQ",
        random_definitions_source(device, kind, "float"),
        engine,
        low,
        span & _MASK64,
    )


@mark_device_first
def _random_integers(device, size, dtype, low, span, generator):
    return _draw_integers(device, size, dtype, low, span, 32 if span < 1 << 28 else 64, generator)


@mark_device_first
def _random_bits(device, size, dtype, span, generator):
    return _draw_integers(device, size, dtype, 0, span, 32, generator)


@mark_device_first
def _random_permutation(device, size, dtype, generator):
    """Return a random permutation, by sorting random 64-bit keys."""
    keys = _launch_draw(
        device,
        size,
        "i64",
        _integer_source(64),
        "qQ",
        random_definitions_source(device, "i64", "float"),
        generator,
        0,
        0,
    )
    return cast(sort(keys)[1], kind_of(dtype.np))


def _draw_per_element(
    source: str, signature: str, operands: tuple[Array, ...], out: Array, engine: PhiloxEngine, *parameters
) -> Array:
    """Fill `out` by a kernel with one random stream per element."""
    device = out.device
    if out.size:
        real = "double" if device.fp64 else "float"
        words = {"T": operands[0].kind, "S": real, "U": "uint", "UL": "ulong", "IOTA": "0", "TO_U": "(uint)"}
        text, letters, start = make_seed_arguments(device, engine, 1, source)
        run = device.function(
            text,
            "draw",
            f"{'p' * (len(operands) + 1)}i{letters}{signature}",
            **words,
            **({"UNUSED": "f64"} if device.fp64 else {}),
        )
        run(round_up_to_groups(out.size, 64), (64,), *operands, out, out.size, *start, *parameters)
    return out


def _random_poisson(rate, generator):
    return _draw_per_element(POISSON, "", (as_contiguous(rate),), empty(rate.device, rate.shape, rate.kind), generator)


def _random_binomial(count, prob, generator):
    shape = broadcast_shape([count.shape, prob.shape])
    operands = (as_contiguous(broadcast_view(count, shape)), as_contiguous(broadcast_view(prob, shape)))
    return _draw_per_element(BINOMIAL, "", operands, empty(prob.device, shape, prob.kind), generator)


def _random_multinomial(weights, num_samples, generator):
    """Sample with replacement by bisection of each row's cumulative sum."""
    if weights.kind in ("f16", "bf16"):
        weights = cast(weights, "f32")
    sums = as_contiguous(cumsum(weights, -1))
    out = empty(weights.device, (*weights.shape[:-1], num_samples), "i64")
    return _draw_per_element(MULTINOMIAL, "ii", (sums,), out, generator, num_samples, weights.shape[-1])
