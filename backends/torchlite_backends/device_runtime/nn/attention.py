"""Scaled dot product attention: strides of the operands, launches of `torchlite_backends.kernel_sources.attention`."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any, NamedTuple

from torchlite._dispatch import REGISTRY, table_of
from torchlite._types.devices import device as torch_device
from torchlite_backends.kernel_sources.attention import BACKWARD_KEY, BACKWARD_QUERY, DELTA, FORWARD
from torchlite_backends.kernel_sources.dtype_kinds import KINDS

from ..core.array import Array, empty, is_row_major
from ..core.broadcasting import broadcast_shape, collapse_dims
from ..core.contiguous_copy import clone_row_major
from ..core.copy_fill import fill_with
from ..core.device_asserts import check_takes
from ..core.views import broadcast_view

LARGEST = 256  # features per work-item
_WALK = struct.Struct("4i")


@functools.lru_cache(4096)
def _operand_strides(shape: tuple[int, ...], steps: tuple[int, ...]) -> bytes | None:
    """Return (outer, inner, row, column) strides of an operand, None if they do not suffice.

    The outer stride is that of all batch dimensions but the last, merged.
    """
    lead, (*outer, row, column) = shape[:-2], steps
    if len(lead) < 2:
        return _WALK.pack(0, outer[0] if outer else 0, row, column)
    sizes, ((step, *_),) = collapse_dims(lead[:-1], outer[:-1])
    return _WALK.pack(step, outer[-1], row, column) if len(sizes) == 1 else None


def pack_walk(x: Array | None) -> bytes:
    """Return the packed strides of a broadcast operand; zeros for None."""
    found = bytes(_WALK.size) if x is None else _operand_strides(x.shape, x.steps)
    assert found is not None
    return found


def _broadcast_batch(x: Array, lead: tuple[int, ...]) -> Array:
    """Broadcast batch dimensions of `x`, with a copy if two strides do not suffice."""
    x = broadcast_view(x, lead + x.shape[-2:])
    return x if _operand_strides(x.shape, x.steps) is not None else clone_row_major(x)


def empty_in_order_of(x: Array, columns: int) -> Array:
    """Return a new array with shape and memory order of `x` (heads inside rows, or the reverse) but its last
    dimension.
    """
    shape = (*x.shape[:-1], columns)
    out = empty(x.device, shape, x.kind)
    if len(shape) > 2 and 0 < x.steps[-3] < x.steps[-2]:
        rows, heads = shape[-2], shape[-3]
        out.steps = (*out.steps[:-3], columns, heads * columns, 1)
        out.contiguous = is_row_major(shape, out.steps)
        assert out.steps[:-3] == () or out.steps[-4] == rows * heads * columns
    return out


class Launch(NamedTuple):
    """Launch but for arrays: the kernel, its sizes, and the arguments behind the arrays."""

    function: Any
    items: tuple[int, ...]
    group: tuple[int, ...]
    numbers: tuple


class Attention:
    """Attention of given operands, with cached launches. A runtime's subclass may use other kernels with the same
    parameters.
    """

    TEXTS = {"forward": FORWARD, "dots": DELTA, "backward_query": BACKWARD_QUERY, "backward_key": BACKWARD_KEY}

    __slots__ = (
        "columns", "device", "features", "heads", "is_causal", "key", "launches", "lead", "mask", "query", "rows",
        "scale", "value", "values",
    )  # fmt: skip

    def __init__(self, query: Array, key: Array, value: Array, mask: Array | None, is_causal, scale):
        check_takes(query, "f", "_sdpa_cpu")
        self.device, self.is_causal, self.scale = query.device, bool(is_causal), scale
        leads = [x.shape[:-2] for x in (query, key, value, mask) if x is not None]
        self.lead = lead = leads[0] if leads.count(leads[0]) == len(leads) else broadcast_shape(leads)
        self.rows, self.columns, self.features, self.values = (
            query.shape[-2],
            key.shape[-2],
            query.shape[-1],
            value.shape[-1],
        )
        self.heads = math.prod(lead)
        self.query, self.key, self.value = (
            self.prepare_operand(query),
            self.prepare_operand(key),
            self.prepare_operand(value),
        )
        self.mask = (
            None
            if mask is None
            else _broadcast_batch(broadcast_view(mask, (*mask.shape[:-2], self.rows, self.columns)), lead)
        )
        operands = [x for x in (self.query, self.key, self.value, self.mask) if x is not None]
        plans, seen = (
            self.device.plans,
            (self.__class__, self.is_causal, scale, *[(x.kind, x.shape, x.steps) for x in operands]),
        )
        launches = plans.get(seen)
        if launches is None:
            launches = plans[seen] = {}
        self.launches: dict[tuple, Launch] = launches

    def prepare_operand(self, x: Array) -> Array:
        """Return an operand broadcast to the batch shape, with strides that the kernels support."""
        return _broadcast_batch(x, self.lead)

    def allocate_compute_array(self, shape) -> Array:
        """Return a new array of the compute kind."""
        return empty(self.device, shape, "f64" if self.query.kind == "f64" else "f32")

    def start(self, name: str, arrays: tuple, *walked: Any) -> None:
        """Launch a kernel. `walked` are arrays whose strides are passed besides the operands': a gradient and
        results.
        """
        key = (name, *[None if x is None else x.steps for x in walked])
        launch = self.launches.get(key)
        if launch is None:
            launch = self.launches[key] = self.launch(name, len(arrays), *walked)
        launch.function(launch.items, launch.group, *arrays, *launch.numbers)

    def launch(self, name: str, count: int, grad: Array | None, out: Array | None, *more: Array) -> Launch:
        """Return the launch of a kernel with so many arrays.

        Its work-items partition the rows of each head, those of the keys in `backward_key`.
        """
        kinds, lanes, own = self.choose_variant()
        signature = "p" * count + "x" + KINDS[self.query.kind].pack + "x" * len(more)
        function = self.device.function(self.TEXTS[name], name, signature, (lanes,) if lanes > 1 else (), **kinds)
        group = 1 if self.device.is_cpu else 64
        taken = group * (1 if name == "dots" else own)
        return Launch(
            function,
            (-(-self.rows_of_side(name) // taken) * group, self.heads),
            (group, 1),
            (self.shape(grad, out), self.scale, *map(pack_walk, more)),
        )

    def rows_of_side(self, name: str) -> int:
        """Return the rows of each head that a kernel's work-items partition."""
        return self.columns if name == "backward_key" else self.rows

    def shape(self, grad: Array | None, out: Array | None) -> bytes:
        """Return the kernels' Shape."""
        numbers = struct.pack(
            "6i",
            self.lead[-1] if self.lead else 1,
            self.rows,
            self.columns,
            self.features,
            self.values,
            int(self.is_causal),
        )
        return numbers + b"".join(map(pack_walk, (self.query, self.key, self.value, grad, out, self.mask)))

    def choose_variant(self) -> tuple[dict[str, str], int, int]:
        """Return the kernel variant, vector lanes, and rows per work-item."""
        query, mask = self.query, self.mask
        widest = max(self.features, self.values, 1)
        room = 64 if widest <= 64 else 128 if widest <= 128 else LARGEST
        computed = KINDS[query.kind].computed
        masked = "0" if mask is None else "1" if mask.kind == "b8" else "2"
        kinds = {"T": query.kind, "DMAX": str(room), "M": query.kind if mask is None else mask.kind, "MASK": masked}
        lanes = own = 1
        if self.device.is_cpu:
            lanes, several = (8 if computed == "double" else 16), 2 if room <= 128 else 1
            kinds |= {"LANES": str(lanes), "V": f"{computed}{lanes}", "NV": str(several)}
            kinds |= {"WIDE_LOAD": f"T_LD{lanes}", "WIDE_STORE": f"T_ST{lanes}", "WIDE_TILE": f"vstore{lanes}"}
            own = lanes * several
        else:
            kinds |= {"LANES": "1", "V": computed, "NV": "1"}
        tile = 32
        while (
            not self.device.is_cpu
            and 2 * tile * room * (8 if computed == "double" else 4) > self.device.local_memory
            and tile > 8
        ):
            tile //= 2  # backward stages rows of two operands
        return kinds | {"BK": str(tile)}, lanes, own


def _is_unsupported(query: Array, value: Array) -> bool:
    """True if a row is too long for the kernels: the composite ops serve then."""
    return max(query.shape[-1], value.shape[-1]) > LARGEST


def _composite_kernel(name: str, device, *arguments):
    table = table_of(torch_device(device.type, device.index))
    return REGISTRY[name].composite(table, *arguments)


def _sdpa(query, key, value, attn_mask, is_causal, scale):
    if _is_unsupported(query, value):
        return _composite_kernel("_sdpa", query.device, query, key, value, attn_mask, is_causal, scale)
    return attention_forward(Attention(query, key, value, attn_mask, is_causal, scale))


def attention_forward(a: Attention) -> tuple[Array, Array]:
    """Return the result, and the log-sum-exp of each row."""
    out, lse = empty_in_order_of(a.query, a.values), a.allocate_compute_array((*a.lead, a.rows, 1))
    if not lse.size:
        return out, lse
    if not a.columns or not a.values:
        return fill_with(out, 0), fill_with(lse, 0)
    a.start("forward", (a.query, a.key, a.value, a.mask or a.query, out, lse), None, out)
    return out, lse


def _sdpa_backward(grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs):
    if _is_unsupported(query, value):
        return _composite_kernel(
            "_sdpa_backward", query.device, grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs
        )
    return attention_backward(Attention(query, key, value, attn_mask, is_causal, scale), grad, out, lse, needs)


def attention_backward(
    a: Attention, grad: Array, out: Array, lse: Array, needs: tuple[bool, bool, bool]
) -> tuple[Array | None, ...]:
    """Return the gradients of query, key and value, None for those not needed."""
    if not (a.heads and a.rows and a.columns):
        gradients = (fill_with(empty_in_order_of(x, x.shape[-1]), 0) for x in (a.query, a.key, a.value))
        return tuple(x if need else None for x, need in zip(gradients, needs, strict=True))
    grad, out, mask = a.prepare_operand(grad), a.prepare_operand(out), a.mask or a.query
    delta = a.allocate_compute_array((*a.lead, a.rows))
    a.start("dots", (grad, out, delta), grad, out)
    grad_query = grad_key = grad_value = None
    if needs[0]:
        grad_query = empty_in_order_of(a.query, a.features)
        a.start("backward_query", (grad, a.query, a.key, a.value, mask, lse, delta, grad_query), grad, grad_query)
    if needs[1] or needs[2]:
        grad_key, grad_value = empty_in_order_of(a.key, a.features), empty_in_order_of(a.value, a.values)
        arrays = (grad, a.query, a.key, a.value, mask, lse, delta, grad_key, grad_value)
        a.start("backward_key", arrays, grad, grad_key, grad_value)
    return grad_query, grad_key if needs[1] else None, grad_value if needs[2] else None
