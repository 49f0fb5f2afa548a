"""Kernels for images of constant shape whose channels are last (`channels_last_source`), with constant weights.

The arrays are (images, rows, columns, channels). A convolution or pooling may end in a chain of elementwise ops
(`native_chain`), which runs on a part of the results while it is in cache.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlite._settings.equal_arrays import share_equal
from torchlite._settings.thread_count import get_threads

from .convolution import Convolutions, expand_to_int64s
from .device import address

# Multiplications of a part of the work, about, and from which another thread is woken.
_PART_MULS, _MIN_MULS_PER_THREAD = 1 << 21, 1 << 21
# Numbers of a part's inputs and results, which shall stay in the second-level cache.
_PART_NUMBERS = 1 << 16
# Numbers gathered at a time, which shall stay in the first-level cache.
_GATHERED_NUMBERS = 1 << 12
# Channels of fewer numbers are gathered for all kernel positions first.
_MIN_CHANNELS = 16
# Channels of one of several groups from which vectors of filters pay.
_MIN_GROUP_CHANNELS = 4
# Numbers moved from which another thread is woken.
_MIN_MOVES_PER_THREAD = 1 << 16
# Nanoseconds for a thousand multiplications, in PyTorch's order and here with all lanes in use: of products, of
# Winograd's filtering, and of channels with a kernel of their own.
_TIME_OF_PRODUCTS, _TIME_OF_FILTERING, _TIME_OF_WINDOWS = (22, 18), (15, 10), (70, 55)
# Rows up to which a product is faster than BLAS on all processors.
_MAX_ROWS_BESIDE_BLAS = 64
# Rows of a product up to which they are one part, rows of a part of more, and how many parts threads shall have.
_MAX_TOGETHER, _PRODUCT_ROWS, _PRODUCT_PARTS = 96, 48, 8
# Winograd's filtering: channels, filters and positions from which it is faster, and the largest number of weights.
_FILTERING_MIN_CHANNELS, _FILTERING_MIN_PLACES, _FILTERING_MAX_WEIGHTS = 16, 64, 1 << 16


_NO_ENDING = struct.pack("7q", 0, 0, 0, 0, 0, 0, 1)


def _empty_aligned(shape: tuple) -> np.ndarray:
    """Return float32 memory that begins at a cache line: a vector of 64 bytes is then read from one line, not two."""
    size = math.prod(shape)
    memory = np.empty(size + 16, np.float32)
    start = -address(memory) % 64 // 4
    return memory[start : start + size].reshape(shape)


class LastKernel:
    """A function of images that writes addresses into packed parameters of an entry, and runs it.

    shape: of the results. held: the entry's constant arrays. fixed: parameters behind them. make_otherwise: makes the
    function of images that the entry refuses. gain: nanoseconds that a convolution takes less than in PyTorch's order,
    as estimated.
    """

    text, gain = "", 0.0
    make_otherwise: Callable[[], LastKernel] | None = None

    def __init__(self, run: Convolutions, name: str, shape: tuple, parts: int, threads: bool, held: list, fixed: list):
        self._run, self._name, self.shape, self._parts, self._threads = run, name, shape, parts, threads
        self._held = held
        words = [word for value in (*held, *fixed) for word in expand_to_int64s(value)]
        self._fixed = struct.pack(f"{len(words)}q", *words)
        self._parameters = self._fixed + _NO_ENDING

    def __call__(self, x: np.ndarray) -> np.ndarray:
        x, row = self.read(x)
        out = np.empty(self.shape, np.float32)
        given = _pack_images(address(x), address(out), row) + self._parameters
        try:
            self._run._start(self._name, self._parts, self._threads, given)
        except MemoryError:  # Winograd's filtering, of values that are not finite
            if self.make_otherwise is None:
                raise
            return self.make_otherwise()(x)
        return out

    def read(self, x: np.ndarray) -> tuple[np.ndarray, int]:
        """Return images that the entry can read, and how far their positions are apart."""
        return _with_even_rows(x)

    def with_chain(self, chain: Any, place: int) -> LastKernelWithChain | None:
        """Return a function of the images and of the other arrays of a chain, whose array number `place` are this
        kernel's results. None if another array has no part that belongs to a part of the results.
        """
        if self._name not in _ENTRIES_WITH_ENDING or chain.shape != self.shape:
            return None
        kinds = chain.kinds_by_row(self.shape[-1])
        return None if kinds is None or kinds[place] != _AS_LARGE else LastKernelWithChain(self, chain, kinds, place)


_pack_images = struct.Struct("3q").pack
_ENTRIES_WITH_ENDING = frozenset(("last_products", "last_filtering", "last_windows"))
_AS_LARGE, _RESULTS = 1, 2  # kinds of arrays in `channels_last_source`


class LastKernelWithChain:
    """A kernel whose results go through a chain, part by part."""

    def __init__(self, first: LastKernel, chain: Any, kinds: list[int], place: int) -> None:
        self._first, self._chain, self._kinds, self._place, self.text = first, chain, kinds, place, chain.text
        of_arrays = np.array([_RESULTS if k == place else kind for k, kind in enumerate(kinds)], np.int64)
        words = np.frombuffer(chain.head, np.int64).copy()
        self._held = of_arrays, words
        # The addresses of the arrays follow the parameters.
        behind = 3 + len(first._fixed) // 8 + 7
        ending = struct.pack(
            "7q", chain.entry_address, address(words), address(of_arrays), behind, len(words), len(kinds), chain.block
        )
        self._parameters = first._fixed + ending
        self._pack = struct.Struct(f"{len(kinds)}q").pack

    def __call__(self, x: np.ndarray, *others: np.ndarray) -> Any:
        first = self._first
        images, row = first.read(x)
        others = tuple(map(np.asarray, others))
        outs = [np.empty(first.shape, np.float32) for _ in range(self._chain.results)]
        places = [*map(address, others)]
        places.insert(self._place, 0)
        given = _pack_images(address(images), 0, row) + self._parameters + self._pack(*places, *map(address, outs))
        try:
            first._run._start(first._name, first._parts, first._threads, given)
        except MemoryError:  # Winograd's filtering, of values that are not finite
            if first.make_otherwise is None:
                raise
            otherwise = LastKernelWithChain(first.make_otherwise(), self._chain, self._kinds, self._place)
            return otherwise(x, *others)
        return outs[0] if len(outs) == 1 else tuple(outs)


def _with_even_rows(x: np.ndarray) -> tuple[np.ndarray, int]:
    """Return images (images, rows, columns, channels), copied unless the channels of all positions are contiguous and
    equally far apart; and how far.
    """
    if x.flags.c_contiguous:
        return x, x.shape[-1]
    _, high, wide, _ = x.shape
    row = x.strides[2]
    if x.strides == (high * wide * row, wide * row, row, x.itemsize) and row >= x.shape[3] * x.itemsize:
        return x, row // x.itemsize
    return np.ascontiguousarray(x), x.shape[-1]


def _window(plan: Any) -> list[int]:
    return [plan.batch, *plan.size, *plan.out, *plan.kernel, *plan.stride, *plan.dilation, *plan.padding]


def pack_weights(weight: np.ndarray, groups: int, vector: int) -> np.ndarray:
    """Return weights (filters, channels of a group, *kernel) as panels of two vectors of filters, the last one of one
    or two: (group, panel, kernel position, channel, filter), zeros behind the last filter.
    """
    filters, channels = weight.shape[0] // groups, weight.shape[1]
    taps = math.prod(weight.shape[2:])
    width = -(-filters // vector) * vector
    source = weight.reshape(groups, filters, channels, taps).transpose(0, 3, 2, 1)
    packed = _empty_aligned((groups, taps * channels * width))
    for first in range(0, width, 2 * vector):
        last = min(first + 2 * vector, width)
        panel = packed[:, taps * channels * first : taps * channels * last].reshape(groups, taps, channels, -1)
        whole = min(last, filters) - first
        panel[..., :whole] = source[..., first : first + whole]
        panel[..., whole:] = 0
    return share_equal(packed, "panels")


def bind_convolution(
    run: Convolutions, plan: Any, weight: np.ndarray, bias: np.ndarray | None, limits: Any
) -> LastKernel | None:
    """Return a convolution of two dimensions. None if its groups have several channels, but few.

    limits: the results lie between these two.
    """
    bounds: Any = 0 if limits is None else np.array(limits, np.float32)
    if plan.channels == plan.groups == plan.filters and plan.groups > 1:
        found = _bind_single(run, plan, weight, bias, bounds)
        found.gain = _estimate_gain(plan, plan.channels, run._wide // 2, _TIME_OF_WINDOWS)
        return found
    if plan.groups > 1 and plan.channels // plan.groups < _MIN_GROUP_CHANNELS:
        return None
    make_products = functools.partial(_bind_products, run, plan, weight, bias, bounds)
    filters = plan.filters // plan.groups
    if not _is_filtering_faster(plan):
        found = make_products()
        found.gain = _estimate_gain(plan, filters, run._wide // 2, _TIME_OF_PRODUCTS)
        return found
    found = _bind_filtering(run, plan, weight, bias, bounds)
    found.gain = _estimate_gain(plan, filters, run._wide // 2, _TIME_OF_FILTERING)
    found.make_otherwise = functools.cache(make_products)
    return found


def _estimate_gain(plan: Any, lanes: int, vector: int, times: tuple[int, int]) -> float:
    """Return the nanoseconds that a convolution takes less than in PyTorch's order, whose lanes are all in use. lanes:
    numbers for which there are whole vectors.
    """
    muls = plan.batch * plan.places * plan.filters * plan.channels // plan.groups * plan.taps
    return muls / 1000 * (times[0] - times[1] * (-(-lanes // vector) * vector / lanes))


def _pad_bias(bias: np.ndarray | None, groups: int, filters: int, vector: int) -> np.ndarray:
    """Return a bias for whole vectors of each group's filters."""
    width = -(-filters // vector) * vector
    found = np.zeros(groups * width + vector, np.float32)
    if bias is not None:
        found[: groups * width].reshape(groups, width)[:, :filters] = bias.reshape(groups, filters)
    return found


def _bind_products(run: Convolutions, plan: Any, weight: Any, bias: Any, bounds: Any) -> LastKernel:
    vector, depth, filters = run._wide // 2, plan.channels // plan.groups, plan.filters // plan.groups
    places, muls = plan.batch * plan.places, plan.filters * depth * plan.taps
    gathered = plan.groups == 1 and (depth < _MIN_CHANNELS or depth % 1024 == 0)
    step = max(24, min(_PART_MULS // muls, _PART_NUMBERS // max(plan.channels, plan.filters)))
    if gathered:
        step = min(step, max(24, _GATHERED_NUMBERS // (depth * plan.taps)))
    threads = places * muls >= _MIN_MULS_PER_THREAD
    step = min(step, max(12, -(-places // 8)) if threads else places)
    step = -(-places // -(-places // step))  # the last part is as large as the others
    return LastKernel(
        run, "last_products", (plan.batch, *plan.out, plan.filters), -(-places // step), threads,
        [pack_weights(weight, plan.groups, vector), _pad_bias(bias, plan.groups, filters, vector), bounds],
        [plan.channels, plan.filters, plan.groups, int(gathered), step, 1, _window(plan)],
    )  # fmt: skip


def _bind_single(run: Convolutions, plan: Any, weight: Any, bias: Any, bounds: Any) -> LastKernel:
    """Return a convolution whose channels have a kernel of their own each."""
    weights = share_equal(weight.reshape(plan.channels, plan.taps).T.copy())
    return _bind_windows(run, plan, weights, _pad_bias(bias, 1, plan.channels, 1), bounds)


def _bind_windows(run: Convolutions, plan: Any, weights: Any, bias: Any, bounds: Any) -> LastKernel:
    rows, row = plan.batch * plan.out[0], plan.out[1] * plan.channels
    threads = rows * row * plan.taps >= _MIN_MULS_PER_THREAD // 8
    step = max(1, min(-(-rows // 8) if threads else rows, _PART_NUMBERS // row))
    return LastKernel(
        run, "last_windows", (plan.batch, *plan.out, plan.channels), -(-rows // step), threads,
        [weights, bias, bounds], [plan.channels, int(weights.__class__ is int), step, _window(plan)],
    )  # fmt: skip


def bind_max_pool(run: Convolutions, plan: Any) -> LastKernel:
    """Return the largest number of each window; places outside of the image do not count."""
    return _bind_windows(run, plan, 0, 0, 0)


# Winograd's transformation of weights.
_TO_DOMAIN = np.array(((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)))


def _is_filtering_faster(plan: Any) -> bool:
    """True if Winograd's filtering is faster."""
    return (
        plan.kernel == (3, 3)
        and plan.groups == 1
        and max(plan.stride) == 1
        and min(plan.channels, plan.filters) >= _FILTERING_MIN_CHANNELS
        and plan.channels * plan.filters <= _FILTERING_MAX_WEIGHTS
        and plan.batch * plan.places >= _FILTERING_MIN_PLACES
    )


def _bind_filtering(run: Convolutions, plan: Any, weight: Any, bias: Any, bounds: Any) -> LastKernel:
    vector = run._wide // 2
    domain = np.einsum("ij,fcjk,lk->ilfc", _TO_DOMAIN, weight.astype(np.float64), _TO_DOMAIN)
    matrices = domain.reshape(16 * plan.filters, plan.channels, 1, 1)
    # Lines and columns of tiles: those between the places of dilated tiles follow each other.
    down, across = (-(-n // (2 * far)) * far for n, far in zip(plan.out, plan.dilation, strict=True))
    tiles = max(24, min(96, (1 << 13) // (plan.channels + plan.filters)))
    far = plan.dilation[0]
    step = max(1, min(tiles // (across * far), -(-plan.batch * down // (4 * far)))) * far
    return LastKernel(
        run, "last_filtering", (plan.batch, *plan.out, plan.filters), -(-plan.batch * down // step), True,
        [pack_weights(matrices, 16, vector), _pad_bias(bias, 1, plan.filters, vector), bounds],
        [plan.channels, plan.filters, step, _window(plan)],
    )  # fmt: skip


def bind_means(run: Convolutions, shape: tuple) -> LastKernel:
    """Return the mean of each channel of images of this shape."""
    batch, high, wide, channels = shape
    return LastKernel(
        run, "last_means", (batch, 1, 1, channels), batch * -(-channels // (2 * run._wide)),
        math.prod(shape) >= 4 * _MIN_MOVES_PER_THREAD, [], [batch, high * wide, channels],
    )  # fmt: skip


class Join:
    """Arrays of some shapes (images, rows, columns, channels) side by side along their channels."""

    text = ""

    def __init__(self, run: Convolutions, shapes: list[tuple]) -> None:
        self._run = run
        channels = [shape[-1] for shape in shapes]
        self.shape = *shapes[0][:-1], sum(channels)
        places = math.prod(self.shape[:-1])
        self._channels = np.array(channels, np.int64)
        step = max(64, -(-places // 16))
        self._threads = places * sum(channels) >= 4 * _MIN_MOVES_PER_THREAD
        self._parts = -(-places // step)
        self._behind = struct.pack("4q", len(shapes), places, sum(channels), step)

    def __call__(self, given: list[np.ndarray]) -> np.ndarray:
        arrays, rows = zip(*map(_with_even_rows, given), strict=True)
        out = np.empty(self.shape, np.float32)
        sources = np.array([*map(address, arrays)], np.int64)
        of_rows = np.array(rows, np.int64)
        parameters = struct.pack("4q", *map(address, (sources, out, of_rows, self._channels))) + self._behind
        self._run._start("join_last", self._parts, self._threads, parameters)
        return out


class Turn(LastKernel):
    """Matrices (images, down, across) as (images, across, down), in arrays of four dimensions."""

    def __init__(self, run: Convolutions, shape: tuple, batch: int, down: int, across: int) -> None:
        parts = batch * -(-across // 64)
        super().__init__(
            run, "turn_last", shape, parts, batch * down * across >= 2 * _MIN_MOVES_PER_THREAD, [],
            [batch, down, across],
        )  # fmt: skip

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return super().__call__(np.ascontiguousarray(x))


def bind_turn(run: Convolutions, shape: tuple, to_last: bool) -> Turn:
    """Return a function of images of this shape that puts the channels last, or second."""
    batch, *rest = shape
    if to_last:
        channels, high, wide = rest
        return Turn(run, (batch, high, wide, channels), batch, channels, high * wide)
    high, wide, channels = rest
    return Turn(run, (batch, channels, high, wide), batch, high * wide, channels)


class Product(LastKernel):
    """Rows times constant weights (filters, channels): the products of a convolution of one position.

    packed: the weights as panels, and the bias for whole vectors. whole: a part has all filters of its rows, which a
    chain needs; else several threads share the filters of a few rows.
    """

    def __init__(self, run: Convolutions, shape: tuple, filters: int, packed: list, whole: bool = False) -> None:
        *lengths, channels = shape
        rows = math.prod(lengths)
        threads = rows * filters * channels >= _MIN_MULS_PER_THREAD
        step, shares = rows, 1
        if rows > _MAX_TOGETHER or whole and threads and get_threads() > 1:
            step = min(_PRODUCT_ROWS, -(-rows // (12 * _PRODUCT_PARTS)) * 12 if threads else rows)
            step = -(-rows // -(-rows // step))  # the last part is as large as the others
        elif threads and not whole:
            shares = min(8, -(-filters // run._wide))
        window = [1, 1, rows, 1, rows, *(1,) * 6, 0, 0]
        super().__init__(
            run, "last_products", (*lengths, filters), shares * -(-rows // step), threads, [*packed, 0],
            [channels, filters, 1, int(channels % 1024 == 0), step, shares, window],
        )  # fmt: skip
        self._again = run, shape, filters, packed
        self._images = 1, 1, rows, channels

    def read(self, x: np.ndarray) -> tuple[np.ndarray, int]:
        """See `LastKernel.read`."""
        return super().read(x.reshape(self._images))

    def with_chain(self, chain: Any, place: int) -> LastKernelWithChain | None:
        """See `LastKernel.with_chain`."""
        return LastKernel.with_chain(Product(*self._again, whole=True), chain, place)


def bind_product(run: Convolutions, shape: tuple, weight: np.ndarray, bias: np.ndarray | None) -> Product:
    """Return the product of rows (*shape) with weights (filters, channels)."""
    vector, filters = run._wide // 2, len(weight)
    packed = [pack_weights(weight, 1, vector), _pad_bias(bias, 1, filters, vector)]
    return Product(run, shape, filters, packed)


class ChannelsLast:
    """The kernels, of which each has constant shapes."""

    def __init__(self, run: Convolutions) -> None:
        self._run = run

    def convolution(self, plan: Any, weight: np.ndarray, bias: np.ndarray | None, limits: Any) -> LastKernel | None:
        """See `bind_convolution`."""
        return bind_convolution(self._run, plan, weight, bias, limits)

    def product(self, shape: tuple, weight: np.ndarray, bias: np.ndarray | None) -> Product | None:
        """See `bind_product`. None where BLAS is faster: for many rows without AVX-512, or if the last vector is too
        empty.
        """
        vector, filters = self._run._wide // 2, len(weight)
        if math.prod(shape[:-1]) > _MAX_ROWS_BESIDE_BLAS and (vector < 16 or -filters % vector * 8 > filters):
            return None
        return bind_product(self._run, shape, weight, bias)

    def max_pool(self, plan: Any) -> LastKernel:
        """See `bind_max_pool`."""
        return bind_max_pool(self._run, plan)

    def means(self, shape: tuple) -> LastKernel:
        """See `bind_means`."""
        return bind_means(self._run, shape)

    def join(self, shapes: list[tuple]) -> Join:
        """See `Join`."""
        return Join(self._run, shapes)

    def turn(self, shape: tuple, to_last: bool) -> LastKernel:
        """See `bind_turn`."""
        return bind_turn(self._run, shape, to_last)
