"""Sparse-dense matrix products."""

from __future__ import annotations

from torchlite_backends.kernel_sources import spmm as texts
from torchlite_backends.kernel_sources.dtype_kinds import CATEGORY

from ..array_ops.creation import full
from ..array_ops.gather_scatter_launch import as_contiguous_index
from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device, round_up_to_groups
from ..core.pointwise_dispatch import cast
from .row_launch import raise_not_implemented

_MIN_ROW_LENGTH_FOR_GROUP = 64  # elements of a row, on average, that several work-items share on GPUs
_ITEM_WORK = 1 << 14  # minimum products per work-item on CPUs


def _choose_columns_per_item(device: Device, kind: str, n: int) -> int:
    """Return adjacent columns of `n` per work-item: a power of two."""
    if CATEGORY[kind] == "c":
        return 1
    most = device.width // 2 if kind in ("f64", "i64", "u64") else device.width
    if not device.is_cpu:  # enough adjacent work-items first
        most = min(4, n // 32)
    return 1 << min(most, n).bit_length() - 1 if min(most, n) else 1


def _launch(
    device: Device, text: str, name: str, index: Array, kind: str, width: int, lanes: int, workers: int, **more
):
    """Return (function, launcher on arrays and numbers) for `workers` rows, each of one work-item or of `lanes`."""
    function = device.function(
        text, name, "pppppiiiii", tuple([w for w in (2, 4, 8, 16) if w <= width]), T=kind, I=index.kind, W=str(width),
        LANES=str(lanes), COLUMNS="0", COMPLEX=str(int(CATEGORY[kind] == "c")), **more,
    )  # fmt: skip

    def start(work: int, *arguments) -> None:
        per = 1
        if device.is_cpu:
            per = max(1, min(-(-workers // (4 * device.units)), _ITEM_WORK // max(work, 1)))
        count = -(-workers // per)
        local = lanes if lanes > 1 else 1 if device.is_cpu else 64
        function((count * lanes,) if lanes > 1 else round_up_to_groups(count, local), (local,), *arguments, per)

    return start


def _as_common_index_kind(one: Array, two: Array) -> tuple[Array, Array]:
    """Return two index arrays, contiguous and of one type."""
    one, two = as_contiguous_index(one), as_contiguous_index(two)
    if one.kind == two.kind:
        return one, two
    return (cast(one, "i64"), two) if two.kind == "i64" else (one, cast(two, "i64"))


def _csr_mm(columns, starts, values, dense):
    device, kind = dense.device, dense.kind
    rows, (size, n), count = starts.size - 1, dense.shape, values.size
    if not rows or not n or not count or not size:
        return full(device, (rows, n), 0, kind)
    starts, columns = _as_common_index_kind(starts, columns)
    width = _choose_columns_per_item(device, kind, n)
    lanes = (
        32
        if not device.is_cpu and n < 16 and count > _MIN_ROW_LENGTH_FOR_GROUP * rows and device.max_group >= 32
        else 1
    )
    out = empty(device, (rows, n), kind)
    pieces = rows * -(-n // width)
    start = _launch(device, texts.SPMM, "rows_times", starts, kind, width, lanes, pieces)
    start(width * -(-count // rows), starts, columns, as_contiguous(values), as_contiguous(dense), out, pieces, n,
          size, count)  # fmt: skip
    return out


def _csr_mm_extremes(columns, starts, values, dense, largest):
    device, kind = dense.device, dense.kind
    rows, (size, n), count = starts.size - 1, dense.shape, values.size
    if CATEGORY[kind] == "c":
        raise_not_implemented(dense, "spmm_reduce_kernel")
    if not rows or not n or not count or not size:
        return full(device, (rows, n), count, "i64")
    starts, columns = _as_common_index_kind(starts, columns)
    out = empty(device, (rows, n), "i64")
    start = _launch(device, texts.SPMM_MINMAX, "rows_extremes", starts, kind, 1, 1, rows * n,
                    SMALLEST=str(int(not largest)))  # fmt: skip
    start(-(-count // rows), starts, columns, as_contiguous(values), as_contiguous(dense), out, rows * n, n, size,
          count)  # fmt: skip
    return out


def _sampled_mm(rows, columns, left, right):
    device, kind = left.device, left.kind
    count, n = rows.size, left.shape[1]
    if not count or not n:
        return full(device, (count,), 0, kind)
    rows, columns = _as_common_index_kind(rows, columns)
    width, lanes = _choose_columns_per_item(device, kind, n), 1
    if not device.is_cpu and n > 32 and device.max_group >= 32:
        width, lanes = 1, 32
    out = empty(device, (count,), kind)
    start = _launch(device, texts.SDDMM, "products_at", rows, kind, width, lanes, count)
    start(n, rows, columns, as_contiguous(left), as_contiguous(right), out, count, n, left.shape[0],
          right.shape[0])  # fmt: skip
    return out
