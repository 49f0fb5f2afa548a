"""Matrix products of strided arrays: selection of the `torchlite_backends.kernel_sources.gemm` kernel, split-k, scratch
memory.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from torchlite_backends.kernel_sources import gemm

from ..core.array import Array, empty
from ..core.device import Device, Function, round_up_to_groups

# Elements of k in a packed panel: with 32 float32 columns it takes half of a 1 MiB second-level cache.
_PANEL_DEPTH = 4096
# The same for shorter panels, which leave room for rows far apart in memory.
_SHORT_PANEL_DEPTH = 512
# Row tiles whose partial sums a work-item stores in memory if k takes several panels.
_MAX_TILES_IN_MEMORY = 64
# Multiplications for which waking another thread pays.
_MIN_MULS_PER_THREAD = 150_000
# Work-items per core: enough for balance, few enough that panels are packed once.
_ITEMS_PER_CORE = 4
# Maximum rows for which contiguous columns are read in place, not packed.
_DIRECT_ROWS = 48
# Kinds that are stored as they are summed.
_SAME_STORAGE_KINDS = ("f32", "f64", "i32", "u32", "i64", "u64")


LEVELS = "i8_i32"  # the kind of products of int8 whose results are int32, which only libraries have


class GemmShape(NamedTuple):
    """Batch of products: sizes, strides of a[m, k], b[k, n], c[m, n] and d[m, n], then two batch strides of each."""

    m: int
    n: int
    k: int
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: tuple[int, ...]
    d: tuple[int, ...] = (0, 0)
    batch: tuple[int, ...] = (1, 1)
    a_batch: tuple[int, ...] = (0, 0)
    b_batch: tuple[int, ...] = (0, 0)
    c_batch: tuple[int, ...] = (0, 0)
    d_batch: tuple[int, ...] = (0, 0)

    def transpose(self) -> GemmShape:
        """Return the product of the transposes, with a and b exchanged."""
        return self._replace(
            m=self.n,
            n=self.m,
            a=self.b[::-1],
            b=self.a[::-1],
            c=self.c[::-1],
            d=self.d[::-1],
            a_batch=self.b_batch,
            b_batch=self.a_batch,
        )

    @property
    def count(self) -> int:
        return self.batch[0] * self.batch[1]


class PanelConfig(NamedTuple):
    """Configuration of the CPU kernel: rows and vectors of a work-item's tile, and elements of k per panel."""

    rows: int
    vectors: int
    block: int = _PANEL_DEPTH


class TileConfig(NamedTuple):
    """Configuration of the GPU kernel: threads per side of a work-group, rows and columns per thread, k in local
    memory.
    """

    side: int
    each: int = gemm.TILE_PER_THREAD
    depth: int = gemm.TILE_DEPTH


def list_candidate_configs(device: Device, kind: str, sizes: GemmShape) -> list[Any]:
    """Return a kernel's possible configurations, which all add up in the same order; the first is the default."""
    if not device.is_cpu:
        sides = (16, 8) if device.max_group >= 256 else (8,)
        return [
            TileConfig(sides[0]),
            TileConfig(sides[0], depth=16),
            *map(TileConfig, sides[1:]),
            TileConfig(8, 8),
            TileConfig(sides[0], 2, 16),
        ]
    sums = gemm.accumulation_type_of(kind)
    if kind[0] == "c":
        return [PanelConfig(gemm.REGISTER_ROWS, 1)]
    if (
        sizes.m == 1
        and sizes.b[1] == 1
        and kind in _SAME_STORAGE_KINDS
        and sizes.n > gemm.SINGLE_ROW_VECTORS * sums.width // 2
    ):
        return [PanelConfig(1, gemm.SINGLE_ROW_VECTORS)]
    vectors = 1 if sizes.n <= sums.width else 2
    found = [(gemm.REGISTER_ROWS, vectors), (12, vectors), (16, 1) if vectors == 1 else (4, 4)]
    short = [_PANEL_DEPTH] if sizes.k <= _SHORT_PANEL_DEPTH else [_PANEL_DEPTH, _SHORT_PANEL_DEPTH]
    return [PanelConfig(rows, vectors, block) for rows, vectors in found for block in short]


class GemmPlan(NamedTuple):
    """Launches of a product. With split-k, `finish` adds the parts: `parts` is their array's kind, `size` its
    elements.
    """

    function: Function
    items: tuple[int, ...]
    group: tuple[int, ...] | None
    shape: bytes
    swapped: bool
    takes: str  # the arrays after a, b, c and d: s for scratch memory, t for the table of offsets
    scratch_kind: str
    scratch: int
    ones: tuple[Any, Any]  # alpha and beta as arguments where both are 1
    parts: str = ""
    size: int = 0
    finish: Function | None = None
    finish_shape: bytes = b""
    then: str = ""  # the op that the result went through

    def run(
        self,
        a: Array,
        b: Array,
        c: Array,
        d: Array | None = None,
        alpha: Any = 1,
        beta: Any = 1,
        table: Array | None = None,
    ) -> None:
        """Compute c. `d` is read only if the plan adds it."""
        device, ones = c.device, self.ones
        numbers = ones if alpha == 1 and beta == 1 else (pack_scalar(a.kind, alpha), pack_scalar(a.kind, beta))
        if self.swapped:
            a, b = b, a
        added = a if d is None else d
        more = [
            get_scratch_memory(device, self.scratch_kind, self.scratch)
            if letter == "s"
            else (a if table is None else table)
            for letter in self.takes
        ]
        if self.finish is None:
            self.function(self.items, self.group, a, b, c, added, *more, self.shape, *numbers)
            return
        parts = empty(device, (self.size,), self.parts)
        self.function(self.items, self.group, a, b, parts, added, *more, self.shape, *ones)
        self.finish(
            round_up_to_groups(c.size, device.group), (device.group,), parts, c, added, self.finish_shape, *numbers
        )


def get_scratch_memory(device: Device, kind: str, size: int) -> Array:
    """Return scratch memory for one launch. Launches are sequential, so all share it."""
    key = ("scratch", kind)
    have = device.state.get(key)
    if have is None or have.size < size:
        have = device.state[key] = empty(device, (max(size, 1 << 16),), kind)
    return have


def _struct_fields(sizes: GemmShape, added: bool, conj: tuple[bool, bool]) -> dict[str, int]:
    """Return the values of a kernel's struct."""
    s = sizes
    names = (
        "m",
        "n",
        "k",
        "am",
        "ak",
        "bk",
        "bn",
        "cm",
        "cn",
        "dm",
        "dn",
        "inner",
        "a0",
        "a1",
        "b0",
        "b1",
        "c0",
        "c1",
        "d0",
        "d1",
    )
    values = (s.m, s.n, s.k, *s.a, *s.b, *s.c, *s.d, s.batch[1], *s.a_batch, *s.b_batch, *s.c_batch, *s.d_batch)
    return dict(
        zip(names, values, strict=True),
        added=int(added),
        conj_a=int(conj[0]),
        conj_b=int(conj[1]),
        splits=1,
        depth=max(s.k, 1),
    )


def _pack_fields(fields: dict[str, int]) -> bytes:
    return gemm.pack_shape(*(fields.get(name, 0) for name in gemm.FIELDS))


def _scalar_signature(kind: str) -> str:
    """Return the signature of alpha and beta."""
    return "xx" if kind[0] == "c" else gemm.accumulation_type_of(kind).pack * 2


def pack_scalar(kind: str, value: Any) -> Any:
    """Return alpha or beta as a kernel's argument."""
    if kind[0] == "c":
        value = complex(value)
        return struct.pack("ff" if kind == "c64" else "dd", value.real, value.imag)
    if kind[0] in "iu":
        bits = 64 if kind in ("i64", "u64") else 32
        value = int(value) & ((1 << bits) - 1)
        return (
            value - (1 << bits)
            if kind[0] == "i" and value >> (bits - 1) or kind in ("u8", "u16") and value >> 31
            else value
        )
    return float(value)


def _pack_pair_of_ones(kind: str) -> tuple[Any, Any]:
    return (pack_scalar(kind, 1),) * 2


def _split_k(
    device: Device,
    kind: str,
    sizes: GemmShape,
    jobs: int,
    added: bool,
    conj: tuple[bool, bool],
    tables: bool,
    whole: bool,
) -> tuple[dict[str, int], str, dict[str, Any]]:
    """Split k if there are few tiles and k is long.

    Returns the struct's values, the kind that the first kernel writes, and the plan's second launch. With tables each
    part has the layout of c, to which nothing is added.
    """
    fields = _struct_fields(sizes, added, conj)
    splits = min(4 * device.units // max(jobs, 1), sizes.k // 1024)
    if jobs >= 2 * device.units or splits < 2 or tables and (added or not whole):
        return fields, kind, {}
    depth = -(-sizes.k // splits // 16) * 16
    splits = -(-sizes.k // depth)
    area = sizes.m * sizes.n
    part = area * sizes.count
    sums = kind if kind[0] == "c" else gemm.accumulation_type_of(kind).kind
    finish = device.function(
        gemm.split_k_sum_source(),
        "total",
        "pppx" + _scalar_signature(kind),
        T=kind,
        P=sums,
        **({"COMPLEX": "1"} if kind[0] == "c" else {}),
    )
    finish_shape = _pack_fields(fields | {"part": part, "splits": splits})
    parts = sizes._replace(c=(sizes.n, 1), c_batch=(sizes.batch[1] * area, area))
    if tables:
        finish_shape = _pack_fields(
            _struct_fields(GemmShape(1, part, 0, (0, 0), (0, 0), (0, 1)), False, conj)
            | {"part": part, "splits": splits}
        )
        parts = sizes
    fields = _struct_fields(parts, False, conj) | {"splits": splits, "part": part, "depth": depth}
    return fields, sums, {"parts": sums, "size": part * splits, "finish": finish, "finish_shape": finish_shape}


def plan_gemm(
    device: Device,
    kind: str,
    sizes: GemmShape,
    added: bool = False,
    conj: tuple[bool, bool] = (False, False),
    tables: bool = False,
    whole: bool = True,
    form: Any = None,
    then: str = "",
) -> Any:
    """Plan a product: a vendor library's, or a GemmPlan. m, n and the batch are positive.

    With `tables`, offsets in a and of c's rows come from a table; `whole` means that they cover all of c. form: one of
    `list_candidate_configs`, by default the first, or when autotuning the fastest. then: an op of `gemm.EPILOGUES`; the
    plan's `then` tells whether it is fused.
    """
    found = None if tables else device.product(kind, sizes, added, conj)
    if found is not None:
        return found
    plain = not tables and kind[0] != "c"
    if form is None and plain and device.forms is not None:
        form = device.forms.fastest_config_if_known(kind, sizes, added)
    if not device.is_cpu:
        return _plan_tile_gemm(device, kind, sizes, added, conj, tables, whole, form, then)
    if (
        plain
        and min(sizes.m, sizes.n) <= gemm.DOTS_TILE
        and (sizes.a[1] == 1 or sizes.k == 1)
        and (sizes.b[0] == 1 or sizes.k == 1)
    ):
        return _plan_dot_gemm(device, kind, sizes, added)
    return _plan_panel_gemm(device, kind, sizes, added, conj, tables, whole, form, then)


def _choose_work_items(device: Device, jobs: int, multiplications: int) -> tuple[int]:
    return (max(1, min(jobs, device.units * _ITEMS_PER_CORE, multiplications // _MIN_MULS_PER_THREAD)),)


def _plan_panel_gemm(
    device: Device,
    kind: str,
    sizes: GemmShape,
    added: bool,
    conj: tuple[bool, bool],
    tables: bool,
    whole: bool,
    form: PanelConfig | None,
    then: str,
) -> GemmPlan:
    swapped = not tables and sizes.n <= gemm.DOTS_TILE and sizes.m >= 16 and sizes.a[0] == 1
    if swapped:
        sizes, conj = sizes.transpose(), conj[::-1]
    sums = gemm.accumulation_type_of(kind)
    usual = list_candidate_configs(device, kind, sizes)[0]
    rows, vectors, longest = form or usual
    columns = sums.width * vectors
    # Where k is cut into parts does not depend on the form, so that all forms add up alike.
    jobs = -(-sizes.m // usual.rows) * -(-sizes.n // (sums.width * usual.vectors)) * sizes.count
    fields, out, second = _split_k(device, kind, sizes, jobs, added, conj, tables, whole)
    then = "" if second else then
    tiles, panels = -(-sizes.m // rows), -(-sizes.n // columns)
    depth, total = fields["depth"], tiles * panels * sizes.count * fields["splits"]
    longest = 2 * longest // vectors
    block = depth if depth <= longest else longest // 2
    most = tiles if block == depth else min(tiles, _MAX_TILES_IN_MEMORY)
    slot = (block + (1 if block == depth else most) * rows) * columns * (2 if kind[0] == "c" else 1)
    direct = sizes.b[1] == 1 and sizes.m <= _DIRECT_ROWS
    shape = _pack_fields(
        fields
        | {
            "tiles": tiles,
            "panels": panels,
            "block": block,
            "most": most,
            "slot": slot,
            "total": total,
            "direct": direct,
        }
    )
    defines = ({"TABLES": "1"} if tables else {}) | ({"SAME": "1"} if kind in _SAME_STORAGE_KINDS else {})
    function = device.function(
        gemm.panels_source(kind, out, vectors, rows, then),
        "product",
        "ppppppx" + _scalar_signature(kind),
        tuple({8, sums.width}),
        T=kind,
        U=out,
        **defines,
    )
    items = _choose_work_items(device, total, sizes.m * sizes.n * sizes.k * sizes.count)
    scratch, ones = items[0] * slot, _pack_pair_of_ones(kind)
    return GemmPlan(function, items, (1,), shape, swapped, "st", sums.kind, scratch, ones, **second, then=then)


def _plan_dot_gemm(device: Device, kind: str, sizes: GemmShape, added: bool) -> GemmPlan:
    swapped = sizes.m > sizes.n
    if swapped:
        sizes = sizes.transpose()
    sums = gemm.accumulation_type_of(kind)
    panels = -(-sizes.n // gemm.DOTS_TILE)
    fields, out, second = _split_k(device, kind, sizes, panels * sizes.count, added, (False, False), False, True)
    total = panels * sizes.count * fields["splits"]
    function = device.function(
        gemm.dots_source(kind, out), "dots", "ppppx" + _scalar_signature(kind), tuple({8, sums.width}), T=kind, U=out
    )
    items = _choose_work_items(device, total, sizes.n * sizes.k * sizes.count)
    return GemmPlan(
        function,
        items,
        (1,),
        _pack_fields(fields | {"panels": panels, "total": total}),
        swapped,
        "",
        "",
        0,
        _pack_pair_of_ones(kind),
        **second,
    )


def _plan_tile_gemm(
    device: Device,
    kind: str,
    sizes: GemmShape,
    added: bool,
    conj: tuple[bool, bool],
    tables: bool,
    whole: bool,
    form: TileConfig | None,
    then: str,
) -> GemmPlan:
    usual = list_candidate_configs(device, kind, sizes)[0]
    side, each, depth = form or usual
    width = usual.side * usual.each
    jobs = -(-sizes.m // width) * -(-sizes.n // width) * sizes.count
    fields, out, second = _split_k(device, kind, sizes, jobs, added, conj, tables, whole)
    then = "" if second else then
    tiles, panels = -(-sizes.m // (side * each)), -(-sizes.n // (side * each))
    jobs = tiles * panels * sizes.count
    shape = _pack_fields(
        fields
        | {
            "tiles": tiles,
            "panels": panels,
            "a_fast": not tables and sizes.a[1] == 1,
            "b_fast": tables or sizes.b[0] == 1,
        }
    )
    function = device.function(
        gemm.tiles_source(kind, out, side, each, depth, then),
        "tiles",
        "pppppx" + _scalar_signature(kind),
        T=kind,
        U=out,
        **({"TABLES": "1"} if tables else {}),
    )
    group, count = side * side, jobs * fields["splits"]
    ones = _pack_pair_of_ones(kind)
    return GemmPlan(function, (count * group,), (group,), shape, False, "t", "", 0, ones, **second, then=then)
