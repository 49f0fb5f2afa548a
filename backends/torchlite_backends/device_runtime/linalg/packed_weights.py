"""Products of floats with weights of half precision, eight and four bits.

Kernels multiply a few rows. For more rows, blocks of weights become float32 numbers for a matrix product: never all
weights at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlite._dispatch import REGISTRY, table_of
from torchlite._types.devices import device as torch_device
from torchlite_backends.kernel_sources.packed_weights import INT4_BLOCK, int4_product_source, int8_product_source

from ..array_ops.rearrange import cat
from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device, round_up_to_groups
from ..core.views import slice_view

_FEW, _FEW_OF_INT4 = 16, 64  # rows that kernels multiply: the numbers of four bits take long to unpack
_BLOCK = 1 << 22  # weights that are converted at a time
_PER, _LANES, _SLICES = 16, 64, 16  # columns of a processor's item; items that share a sum elsewhere
_MOST = 1 << 31  # elements of an array that kernels number


def _int8_weight_product(input, weight, scales):
    (m, k), n = input.shape, weight.shape[0]
    if not _is_for_kernel(input, m, k, n, _FEW):
        return _by_blocks(
            "_int8_weight_product", input, weight, 1, lambda start, count: (_part(scales, 0, start, count),)
        )
    device, out = input.device, empty(input.device, (m, n), input.kind)
    width, lanes, per = (device.width, 1, _PER) if device.is_cpu else (4, min(_LANES, device.max_group), 1)
    function = device.function(
        int8_product_source(width, lanes), "int8_product", "ppppiiii", (width,), T=input.kind, B=weight.kind
    )
    items = -(-n // per) * lanes
    arrays = (as_contiguous(x) for x in (input, weight, scales))
    function((items,), (lanes,), *arrays, out, m, n, k, per)
    return out


def _int4_weight_product(input, weight, group_size, factors):
    (m, k), n = input.shape, weight.shape[0]
    if not _is_for_kernel(input, m, k, n, _FEW_OF_INT4):
        return _by_blocks(
            "_int4_weight_product", input, weight, INT4_BLOCK,
            lambda start, count: (group_size, _part(factors, 1, start, count)),
        )  # fmt: skip
    device, out = input.device, empty(input.device, (m, n), input.kind)
    given = *(as_contiguous(x) for x in (input, weight, factors)), out, m, n, k, group_size
    blocks = n // INT4_BLOCK
    width, slices = (16, 1) if device.is_cpu else (4, min(_SLICES, device.max_group // 8))
    source, kinds = int4_product_source(width, slices), {"T": input.kind, "B": "u8"}
    if blocks:
        function = device.function(source, "int4_product", "ppppiiii", (width,), **kinds)
        local = 1 if slices == 1 else slices * (INT4_BLOCK // 2 // width)
        function((blocks * local,), (local,), *given)
    if n % INT4_BLOCK:
        function = device.function(source, "int4_rest", "ppppiiiii", (width,), **kinds)
        function(round_up_to_groups(n % INT4_BLOCK, 16), (16,), *given, blocks * INT4_BLOCK)
    return out


def _is_for_kernel(input: Array, m: int, k: int, n: int, most: int) -> bool:
    return 0 < m <= most and 0 < k and 0 < n and n * k < _MOST and input.kind in ("f32", "f16", "bf16")


def _part(x: Array, dim: int, start: int, count: int) -> Array:
    return slice_view(x, dim, start, count)


def _by_blocks(name: str, input: Array, weight: Array, multiple: int, rest: Callable[[int, int], tuple]) -> Array:
    """Return the op's composite, of some columns at a time. Blocks have a multiple of `multiple` columns."""
    device: Device = input.device
    table: Any = table_of(torch_device(device.type, device.index))
    composite, n = REGISTRY[name].composite, weight.shape[0]
    step = max(1, _BLOCK // max(1, input.shape[1] * multiple)) * multiple
    parts = []
    for start in range(0, n, step) or (0,):
        count = min(step, n - start)
        parts.append(composite(table, input, slice_view(weight, 0, start, count), *rest(start, count)))
    return parts[0] if len(parts) == 1 else cat(parts, 1)
