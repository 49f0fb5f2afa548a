"""float32 convolutions by a compiled C++ program (`convolution_source`): plans, layouts and launches.

Images are copied once into zero-padded rows (no copy for 1x1 kernels). A register tile of outputs is then summed over
channels and kernel positions without spilling. im2col would read nine times as many columns, and OpenBLAS would pack
the weights anew for every block.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from torchlite._settings.cached_property import cached_property
from torchlite._settings.thread_count import get_threads
from torchlite_backends.device_runtime.core.device import NotBuiltError
from torchlite_backends.numpy.cache_blocking import can_share_work, get_scratch_buffer, parallel_for
from torchlite_backends.numpy.threaded_copy import contiguous

from . import program_build
from .channels_last_source import SOURCE as _CHANNELS_LAST
from .convolution_source import SOURCE as _TEXT
from .device import address
from .winograd_source import SOURCE as _WINOGRAD

SOURCE = _TEXT + _WINOGRAD + _CHANNELS_LAST

# Floats that may be read behind the end of memory, and a vector's of the widest machine.
_READ_PADDING, _MAX_VECTOR = 64, 32
# Multiplications, and elements moved, from which another thread is woken.
_MIN_MULS_PER_THREAD, _MIN_MOVES_PER_THREAD = 1 << 22, 1 << 16
# Minimum number of multiplications for a launch to pay.
_MIN_MULS = 1 << 14
# Multiplications of a part of the work, about.
_PART_MULS = 1 << 22
# Inputs of a part that stay in the second-level cache, so that all its outputs of some filters are written one after
# the other: 0.6 to 0.9 of the time where outputs are large, else the same.
_CACHED_INPUTS = 1 << 16
# Size of weights that do not fit the second-level cache: the part that one input channel's gradient reads is gathered
# first (0.6 of the time with 512 channels and filters).
_MIN_WEIGHTS_TO_GATHER = 1 << 18
# Weights per block: 256 KiB, which fit the second-level cache.
_PART_WEIGHTS = 1 << 16
# Channels and filters, and tiles of all images, from which Winograd's filtering is faster (0.6 to 0.9 of the time, Zen
# 4 with AVX-512 and two threads; half the tiles 1.0 to 1.1), and the maximum number of weights: more leave the caches
# in the transformed domain (512 channels 1.0 to 1.5).
_WINOGRAD_MIN_CHANNELS, _WINOGRAD_MIN_TILES, _WINOGRAD_MAX_WEIGHTS = 24, 256, 1 << 16
# Minimum number of image positions, and maximum number of kernel positions times channels, for which the weight's
# gradient is summed along untransposed images: 0.4 to 0.9 of the time, and 1.05 to 1.7 with 128 to 256 channels.
_UNTRANSPOSED_MIN_PLACES, _UNTRANSPOSED_MAX_TAPS = 256, 96
# Minimum share of outputs among the computed results; below it im2col is faster.
_MIN_USEFUL_SHARE = 0.6
_SCRATCH_IMAGES, _SCRATCH_GRADS = 30, 31  # scratch memory


_ENTRY_POINTS = """lay_images turn_images swap_weights filtering_weights filtering_tiles sum_places weight_products
    filter_channels channel_products channel_sums place_products
    last_products last_filtering last_windows last_means join_last turn_last""".split()


class PaddedRows(NamedTuple):
    """Layout of images as padded rows, the program's `Layout`. `firsts` are (row, column) of each phase."""

    high: int
    wide: int
    rows: int
    width: int
    down: int
    right: int
    above: int
    left: int
    firsts: tuple[tuple[int, int], ...]

    @property
    def plane_size(self) -> int:
        return -(-len(self.firsts) * self.rows * self.width // 16) * 16


class OutputPhase(NamedTuple):
    """Evenly spaced outputs: (rows, columns) of them, `width` apart in the input, go to `start + row * down + column *
    right`.

    Each sums over its kernel positions (of the weight, of the image).
    """

    rows: int
    columns: int
    width: int
    start: int
    down: int
    right: int
    weight_places: tuple[int, ...]
    image_places: tuple[int, ...]

    @property
    def length(self) -> int:
        return (self.rows - 1) * self.width + self.columns


def _geometry_as_2d(plan: Any) -> tuple:
    """Return the geometry of one or two dimensions as that of two."""
    if len(plan.size) == 2:
        return plan.size, plan.out, plan.kernel, plan.stride, plan.padding, plan.dilation
    return tuple((neutral, *given) for neutral, given in zip(
        (1, 1, 1, 1, 0, 1), (plan.size, plan.out, plan.kernel, plan.stride, plan.padding, plan.dilation), strict=True
    ))  # fmt: skip


class ImagesGradient(NamedTuple):
    """Layout of the spread gradients, phases of the images' gradient, and whether all reads stay within the rows."""

    grads: PaddedRows
    phases: list[OutputPhase]
    fits: bool


class ConvLayouts:
    """Layouts of a convolution: for the forward pass, for the weight's gradient, and for the images' gradient."""

    def __init__(self, plan: Any):
        size, out, kernel, stride, padding, dilation = _geometry_as_2d(plan)
        (high, wide), (rows, columns) = size, out
        at = list(product(range(kernel[0]), range(kernel[1])))
        places = [(i * dilation[0], j * dilation[1]) for i, j in at]
        firsts = sorted({(y % stride[0], x % stride[1]) for y, x in places})
        most = [max(p[d] // stride[d] for p in places) for d in (0, 1)]
        # With stride 1 the zeros behind a line are those before the next one.
        width = max(wide + padding[1], columns) if stride[1] == 1 else columns + most[1]
        self.images = PaddedRows(
            high, wide, rows + most[0], width, stride[0], stride[1], padding[0], padding[1], tuple(firsts)
        )
        step, number = self.images.rows * width, {first: i for i, first in enumerate(firsts)}
        self.image_places = tuple(
            number[y % stride[0], x % stride[1]] * step + y // stride[0] * width + x // stride[1] for y, x in places
        )
        taps = tuple(range(len(at)))
        self.forward = OutputPhase(rows, columns, width, 0, columns, 1, taps, self.image_places)
        self.grads = PaddedRows(rows, columns, rows, width, 1, 1, 0, 0, ((0, 0),))
        self._back_arguments = size, out, stride, padding, places

    @cached_property
    def images_gradient(self) -> ImagesGradient:
        """Layout of the images' gradient: phases, each a sum over the kernel positions that reach it."""
        size, out, stride, padding, places = self._back_arguments
        reaching: dict[tuple, list] = {}  # kernel positions by phase
        for t, place in enumerate(places):
            reaching.setdefault(tuple(y % s for y, s in zip(place, stride, strict=True)), []).append((t, place))
        found = []  # first position, count and kernel positions of each phase
        for phase in product(range(stride[0]), range(stride[1])):
            first = [-(-(p - r) // s) if p > r else 0 for p, r, s in zip(padding, phase, stride, strict=True)]
            start = [m * s + r - p for m, s, r, p in zip(first, stride, phase, padding, strict=True)]
            count = [max(0, -(-(n - y) // s)) for n, y, s in zip(size, start, stride, strict=True)]
            taps = [
                (t, tuple(m - y // s for m, y, s in zip(first, place, stride, strict=True)))
                for t, place in reaching.get(phase, ())
            ]
            found.append((start, count, taps))
        reached = [offset for _, _, taps in found for _, offset in taps]
        before = [max(0, *(-o[d] for o in reached)) for d in (0, 1)]
        after = [max(0, *(o[d] + count[d] for _, count, taps in found for _, o in taps)) - out[d] for d in (0, 1)]
        width = max(out[1] + max(before[1], after[1]), *(count[1] for _, count, _ in found))
        rows = max(1, out[0] + before[0] + after[0])
        grads = PaddedRows(out[0], out[1], rows, width, 1, 1, before[0], before[1], ((0, 0),))
        phases = [
            OutputPhase(count[0], count[1], width, start[0] * size[1] + start[1], stride[0] * size[1], stride[1],
                   tuple(t for t, _ in taps),
                   tuple((o[0] + before[0]) * width + o[1] + before[1] for _, o in taps))
            for start, count, taps in found
            if min(count) > 0
        ]  # fmt: skip
        return ImagesGradient(
            grads,
            phases,
            all(max(t.image_places, default=0) + t.length <= rows * width + _READ_PADDING for t in phases),
        )


@functools.lru_cache(1024)
def conv_layouts(plan: Any) -> ConvLayouts:
    return ConvLayouts(plan)


def _useful_output_fraction(target: OutputPhase) -> float:
    """Return the share of outputs among the results computed for them."""
    return target.rows * target.columns / (-(-target.length // 16) * 16)


class Convolutions:
    """Forward, input gradient and weight gradient. Each returns None where the program is not faster."""

    def __init__(self, library: ctypes.CDLL, sharing: Any):
        self._sharing, self._wide = sharing, library.vectors()
        self._entries = {}
        for name in _ENTRY_POINTS:
            entry = library[name]
            entry.argtypes = (
                ctypes.c_char_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong, ctypes.c_void_p,
            )  # fmt: skip
            self._entries[name] = entry, ctypes.cast(entry, ctypes.c_void_p).value

    # -- launches --

    def _launch(self, name: str, parts: int, threads: bool, *values: Any) -> None:
        """Run an entry with these parameters: numbers, arrays (passed as addresses), and lists of both."""
        flat: list[int] = []
        for value in values:
            flat += expand_to_int64s(value)
        self._start(name, parts, threads, struct.pack(f"{len(flat)}q", *flat))

    def _start(self, name: str, parts: int, threads: bool, given: bytes) -> None:
        """Run an entry with packed parameters."""
        entry, where = self._entries[name]
        helpers = min(get_threads(), parts) - 1 if threads and can_share_work() else 0
        if helpers > 0 and self._sharing is not None:
            failed = self._sharing(where, given, None, parts, parts, helpers)
        else:
            taken, failures = ctypes.c_int(0), []
            parallel_for(
                lambda: failures.append(entry(given, None, parts, parts, ctypes.addressof(taken))), [()] * (helpers + 1)
            )
            failed = any(failures)
        if failed:
            raise MemoryError("a convolution's scratch memory")

    def _copy_to_padded_rows(
        self, slot: int, x: np.ndarray, rows: PaddedRows, joined: bool = False
    ) -> tuple[np.ndarray, int, int]:
        """Copy images (batch, channels, high, wide) to padded rows; return them with the strides of images and
        channels.

        `joined`: all images of a channel follow each other.
        """
        batch, channels = x.shape[:2]
        plane = rows.high * rows.wide if joined else rows.plane_size
        by_image, by_channel = (plane, batch * plane) if joined else (channels * plane, plane)
        end = batch * channels * plane
        memory = self._scratch(slot, end + _READ_PADDING)
        planes = batch * channels
        step = max(1, -(-planes // 32), _MIN_MOVES_PER_THREAD // 2 // max(plane, 1))
        self._launch(
            "lay_images", -(-planes // step), end >= _MIN_MOVES_PER_THREAD, x, memory, channels, planes, step,
            rows.high * rows.wide,
            by_channel, by_image, end, _pack_layout_arguments(rows, plane),
        )  # fmt: skip
        return memory, by_image, by_channel

    def _scratch(self, slot: int, size: int) -> np.ndarray:
        """Return scratch memory for so many floats."""
        return get_scratch_buffer(slot, (size,), np.float32)

    # -- passes --

    def forward(
        self, plan: Any, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, finish: Any = None
    ) -> np.ndarray | None:
        """Convolve x (batch, channels, *size) with weight (filters, channels of a group, *kernel).

        `finish` (`torchlite_backends.numpy.fused_inference.ConvEpilogue`) is applied before the results are written.
        """
        if not _is_supported(plan, x, weight):
            return None
        shape = conv_layouts(plan)
        single = _is_single(plan)
        if not single and not _is_faster(plan, False):
            return None
        x, weight, bias = contiguous(x), np.ascontiguousarray(weight), _contiguous_bias(bias)
        out = np.empty((plan.batch, plan.filters, *plan.out), np.float32)
        if finish is not None and finish.scale is None:  # kernels add the bias behind the limits
            finish, bias = _fold_bias_into_finish(finish, bias, plan.filters), None
        if single:
            self._run_winograd_filter(plan, x, shape.images, weight, bias, out, shape.forward, finish)
            return out
        if _is_winograd_faster(plan) and self._convolve_winograd(
            plan, x, weight, bias, out, plan.padding, False, finish
        ):
            return out
        per_group, count = plan.channels // plan.groups, plan.taps
        inner = per_group, plan.filters // plan.groups, per_group * count, count
        self._sum_over_taps(plan, x, plan.channels, shape.images, inner, weight, bias, out, [shape.forward], finish)
        return out

    def conv_transpose(
        self, plan: Any, g: np.ndarray, weight: np.ndarray, bias: np.ndarray | None
    ) -> np.ndarray | None:
        """Transpose of `forward`: the gradient of the images, and the transposed convolution."""
        if not _is_supported(plan, g, weight):
            return None
        shape, single = conv_layouts(plan).images_gradient, _is_single(plan)
        if not shape.fits or not single and not _is_faster(plan, True):
            return None
        g, weight, bias = contiguous(g), np.ascontiguousarray(weight), _contiguous_bias(bias)
        # Elements that no kernel position reaches stay zero.
        whole = all(t.image_places for t in shape.phases) and len(shape.phases) == math.prod(plan.stride)
        make = np.empty if whole or bias is not None else np.zeros
        out = make((plan.batch, plan.channels, *plan.size), np.float32)
        if bias is not None:
            out[...] = bias.reshape(-1, *(1,) * len(plan.size))
        targets = [t for t in shape.phases if t.image_places]
        if single:
            for target in targets:
                self._run_winograd_filter(plan, g, shape.grads, weight, bias, out, target)
            return out
        reach = tuple(2 - p for p in plan.padding)
        if (
            _is_winograd_faster(plan)
            and min(reach) >= 0
            and self._convolve_winograd(plan, g, weight, bias, out, reach, True)
        ):
            return out
        per_group, count = plan.channels // plan.groups, plan.taps
        inner = plan.filters // plan.groups, per_group, count, per_group * count
        if weight.size >= _MIN_WEIGHTS_TO_GATHER:
            filters = plan.filters // plan.groups
            swapped = np.empty((plan.channels, filters, count), np.float32)
            self._launch("swap_weights", 16, True, weight, swapped, plan.groups, filters, per_group, count)
            weight, inner = swapped, (filters, per_group, filters * count, count)
        self._sum_over_taps(plan, g, plan.filters, shape.grads, inner, weight, bias, out, targets)
        return out

    def _sum_over_taps(self, plan, x, channels, rows, inner, weight, bias, out, targets, finish=None):
        depth, filters, by_filter, by_depth = inner
        batch, area = x.shape[0], rows.high * rows.wide
        plain = rows[:2] == rows[2:4] and len(rows.firsts) == 1 and rows[4:8] == (1, 1, 0, 0)
        by_image, by_channel, memory = channels * area, area, x
        joined = (
            plan.pointwise and batch > 1 and plan.groups == 1 and area < 8 * _MAX_VECTOR and area % _MAX_VECTOR != 0
        )
        exact = plain and not joined and all(t.length >= _MAX_VECTOR for t in targets)
        if not exact:
            memory, by_image, by_channel = self._copy_to_padded_rows(_SCRATCH_IMAGES, x, rows, joined)
        plane = math.prod(out.shape[2:])
        for t in targets:
            if joined:
                t = t._replace(rows=batch, columns=area, width=area, down=out.shape[1] * plane)
            taps, length = len(t.weight_places), t.length
            images = 1 if joined else batch
            share_of = min(filters, max(8, _PART_WEIGHTS // (depth * taps) // 8 * 8))
            work = filters * depth * taps * length
            pieces = max(
                1,
                min(-(-length // _MAX_VECTOR), -(-work * images * plan.groups // _PART_MULS) // (images * plan.groups)),
            )
            if images * plan.groups * pieces < 8 and work >= _MIN_MULS_PER_THREAD:
                shares = -(-filters // share_of)
                pieces = min(-(-length // _MAX_VECTOR), max(pieces, -(-8 // (images * plan.groups * shares))))
                if images * plan.groups * pieces * shares < 8:
                    share_of = max(8, -(-filters // (8 // (images * plan.groups * pieces))) // 8 * 8)
            span = -(-length // (pieces * _MAX_VECTOR)) * _MAX_VECTOR
            pieces, shares = -(-length // span), -(-filters // share_of)
            self._launch(
                "sum_places", images * plan.groups * pieces * shares,
                work * images * plan.groups >= _MIN_MULS_PER_THREAD,
                memory, weight, 0 if bias is None else bias, out.reshape(-1)[t.start :],
                images, plan.groups, depth, filters, by_image, by_channel, by_filter, by_depth,
                weight.size // plan.groups, taps,
                _cached_int64_array(t.weight_places), _cached_int64_array(t.image_places),
                out.shape[1] * plane, plane, int(exact), length, pieces, span, shares, share_of,
                int(depth * span <= _CACHED_INPUTS),
                [t.rows, t.width, t.columns, t.down, t.right], _pack_epilogue_arguments(finish),
            )  # fmt: skip

    def _convolve_winograd(self, plan, x, weight, bias, out, padding, turned, finish=None) -> bool:
        """Convolve by Winograd's filtering into `out`; False if values are not finite, whose results may be
        misplaced.
        """
        batch, channels, filters = x.shape[0], x.shape[1], out.shape[1]
        (high, wide), (rows, columns) = x.shape[2:], out.shape[2:]
        across, down = -(-columns // 2), -(-rows // 2)
        domain = self._scratch(_SCRATCH_IMAGES, 16 * channels * filters)
        tiles = max(32, min(128, (1 << 13) // channels))
        step = max(1, tiles // across)
        values = (
            x, weight, 0 if bias is None else bias, out, domain, batch, channels, filters, high, wide, *padding, rows,
            columns, int(turned), -(-batch * down // step), across, down, step, _pack_epilogue_arguments(finish),
        )  # fmt: skip
        self._launch("filtering_weights", 8, channels * filters >= _MIN_MOVES_PER_THREAD // 4, *values)
        try:
            self._launch("filtering_tiles", -(-batch * down // step), True, *values)
        except MemoryError:
            return False
        return True

    def _run_winograd_filter(self, plan, x, rows, weight, bias, out, target, finish=None):
        planes, plane = plan.batch * plan.channels, math.prod(out.shape[2:])
        work = max(target.length, rows.plane_size) * (len(target.image_places) + 4)
        step = max(1, -(-planes // 64), _MIN_MULS_PER_THREAD // 64 // work)
        self._launch(
            "filter_channels", -(-planes // step), planes * work >= _MIN_MULS_PER_THREAD // 4, x, weight,
            0 if bias is None else bias, out.reshape(-1)[target.start :], plan.channels, planes, step,
            rows.high * rows.wide, plane, len(target.image_places), _cached_int64_array(target.weight_places),
            _cached_int64_array(target.image_places), plan.taps, target.length,
            _pack_layout_arguments(rows, rows.plane_size),
            [target.rows, target.width, target.columns, target.down, target.right], _pack_epilogue_arguments(finish),
        )  # fmt: skip

    def weight_gradient(self, plan: Any, g: np.ndarray, x: np.ndarray) -> np.ndarray | None:
        """Return the gradient of the weight (filters, channels of a group, *kernel)."""
        if not _is_supported(plan, g, x):
            return None
        shape = conv_layouts(plan)
        g, x = contiguous(g), contiguous(x)
        out = np.empty((plan.filters, plan.channels // plan.groups, *plan.kernel), np.float32)
        rows, lines = shape.images, shape.grads
        if _is_single(plan):
            work = plan.batch * rows.plane_size * (plan.taps + 4)
            step = max(1, -(-plan.channels // 32), _MIN_MULS_PER_THREAD // 64 // work)
            self._launch(
                "channel_products", -(-plan.channels // step), plan.channels * work >= _MIN_MULS_PER_THREAD // 4,
                g, x, out,
                plan.batch, plan.channels, step, lines.high * lines.wide, rows.high * rows.wide, plan.taps,
                _cached_int64_array(shape.image_places), lines.rows * lines.width,
                _pack_layout_arguments(rows, rows.plane_size),
                _pack_layout_arguments(lines, lines.plane_size),
            )  # fmt: skip
            return out
        self._multiply_for_weight_gradient(plan, g, x, rows, lines, shape.image_places, out)
        return out

    def bias_gradient(self, g: np.ndarray) -> np.ndarray | None:
        """Sum over all dimensions but the channels."""
        if g.dtype.char != "f" or g.size < _MIN_MULS or not g.flags.c_contiguous:
            return None
        batch, channels = g.shape[:2]
        out = np.empty(channels, np.float32)
        parts = min(channels, 32)
        self._launch(
            "channel_sums",
            parts,
            g.size >= _MIN_MOVES_PER_THREAD,
            g,
            out,
            batch,
            channels,
            g.size // (batch * channels),
        )
        return out

    def _multiply_for_weight_gradient(self, plan, g, x, rows, lines, places, out):
        area = rows.high * rows.wide
        images, by_image, by_channel = x, plan.channels * area, area
        if not plan.pointwise:
            images, by_image, by_channel = self._copy_to_padded_rows(_SCRATCH_IMAGES, x, rows)
        if _can_skip_transpose(plan, rows):
            self._place_products(plan, g, images, by_image, by_channel, places, out)
            return
        # The gradients with filters innermost, and room for a vector behind the last ones.
        row, count = -(-plan.filters // 16) * 16, lines.high * lines.wide
        grads = get_scratch_buffer(_SCRATCH_GRADS, (plan.batch * count * row + _READ_PADDING,), np.float32)
        parts = min(plan.batch * -(-count // 16), 32)
        self._launch(
            "turn_images", parts, g.size >= _MIN_MOVES_PER_THREAD, g, grads, plan.batch, plan.filters, count, row
        )
        per_group, filters = plan.channels // plan.groups, plan.filters // plan.groups
        depth, shares = per_group * plan.taps, -(-filters // self._wide)
        work = plan.batch * plan.groups * count * filters * depth
        # Sums of a block stay in the first-level cache; there are enough blocks for several threads.
        step = max(16, min(144, -(-depth * shares * plan.groups // 128) * 8))
        self._launch(
            "weight_products", plan.groups * shares * -(-depth // step), work >= _MIN_MULS_PER_THREAD,
            grads, images, out, plan.batch,
            plan.groups, per_group, filters, plan.taps, row, lines.high, lines.wide,
            rows.width if not plan.pointwise else lines.wide, by_image, by_channel, _cached_int64_array(places), shares,
            -(-depth // step), step,
        )  # fmt: skip

    def _place_products(self, plan, g, images, by_image, by_channel, places, out):
        depth = plan.channels * plan.taps
        shares = -(-depth // 64)
        shares = max(shares, min(-(-depth // 16), -(-12 // -(-plan.filters // 12))))
        step = (-(-depth // shares) + 3) // 4 * 4
        shares = -(-depth // step)
        self._launch(
            "place_products", -(-plan.filters // 12) * shares,
            plan.batch * plan.places * depth * plan.filters >= _MIN_MULS_PER_THREAD,
            g, images, out, plan.batch, plan.filters, depth, plan.taps, plan.places, by_image, by_channel,
            _cached_int64_array(places), 0, shares, step,
        )  # fmt: skip


def _can_skip_transpose(plan: Any, rows: PaddedRows) -> bool:
    """True if the reads of a kernel position are contiguous, and so many that the gradient need not be transposed."""
    return (
        plan.groups == 1
        and plan.places >= _UNTRANSPOSED_MIN_PLACES
        and plan.channels * plan.taps <= _UNTRANSPOSED_MAX_TAPS
        and (plan.pointwise or len(plan.size) == 1 and plan.stride == (1,))
        # Filters are processed in blocks of 12, transposed ones of 16.
        and 16 * -(-plan.filters // 16) >= 0.75 * 12 * -(-plan.filters // 12)
    )


def expand_to_int64s(value: Any) -> list[int]:
    """Return the words of a parameter: a number, an address, or those of a list."""
    if value.__class__ is int:
        return [value]
    if value.__class__ is np.ndarray:
        return [address(value)]
    if value.__class__ is list:
        return [word for item in value for word in expand_to_int64s(item)]
    return [ctypes.addressof(value)]


def _contiguous_bias(bias: np.ndarray | None) -> np.ndarray | None:
    return None if bias is None else np.ascontiguousarray(bias)


class _ChannelAffine(NamedTuple):
    """Scale and shift per filter, and clamp limits."""

    scale: np.ndarray
    shift: np.ndarray
    limits: np.ndarray


def _fold_bias_into_finish(finish: Any, bias: np.ndarray | None, filters: int) -> _ChannelAffine:
    """Return the limits of a `finish` without scale and shift, with a shift that adds the bias."""
    shift = np.zeros(filters, np.float32) if bias is None else bias
    return _ChannelAffine(np.ones(filters, np.float32), shift, finish.limits)


def _pack_epilogue_arguments(finish: Any) -> list:
    """Return the program's `Finish`; its arrays live as long as the argument."""
    return [0, 0, 0] if finish is None else [finish.scale, finish.shift, finish.limits]


def _pack_layout_arguments(rows: PaddedRows, plane: int) -> list:
    firsts = _cached_int64_array(tuple(n for first in rows.firsts for n in first))
    return [*rows[:8], len(rows.firsts), plane, firsts]


@functools.lru_cache(4096)
def _cached_int64_array(values: tuple[int, ...]) -> Any:
    """Return numbers as an int64 array, from a cache that keeps it alive."""
    return (ctypes.c_longlong * max(1, len(values)))(*values)


def _is_single(plan: Any) -> bool:
    return plan.channels == plan.groups == plan.filters and plan.groups > 1


def _is_winograd_faster(plan: Any) -> bool:
    """True if Winograd's filtering is faster."""
    tiles = plan.batch * math.prod(-(-n // 2) for n in plan.out)
    return (
        plan.kernel == (3, 3)
        and plan.groups == 1
        and max(plan.stride + plan.dilation) == 1
        and min(plan.channels, plan.filters) >= _WINOGRAD_MIN_CHANNELS
        and plan.channels * plan.filters <= _WINOGRAD_MAX_WEIGHTS
        and tiles >= _WINOGRAD_MIN_TILES
    )


def _is_supported(plan: Any, *arrays: np.ndarray) -> bool:
    return (
        len(plan.size) in (1, 2)
        and all(a.dtype.char == "f" and a.dtype.isnative for a in arrays)
        and plan.batch * plan.places * plan.filters * plan.channels * plan.taps >= _MIN_MULS * plan.groups
        and plan.filters % plan.groups == 0
        and min(plan.batch, plan.channels, plan.filters, *plan.size, *plan.out) > 0
    )


@functools.lru_cache(1024)
def _is_faster(plan: Any, back: bool) -> bool:
    if plan.pointwise:
        return True
    shape = conv_layouts(plan)
    targets = [t for t in shape.images_gradient.phases if t.image_places] if back else [shape.forward]
    return not targets or min(map(_useful_output_fraction, targets)) >= _MIN_USEFUL_SHARE


def load_convolutions(may_build: bool) -> Convolutions | None:
    """Return the convolutions; None if the program is not built and must not be."""
    from . import thread_pool

    try:
        return Convolutions(program_build.load_program(SOURCE, may_build), thread_pool.parallel_runner(may_build))
    except (NotBuiltError, RuntimeError):
        return None
