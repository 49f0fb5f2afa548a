"""Scaled dot product attention: how the operands are walked, and the launches of the kernels in `torchlite_kernels.attention`."""
from __future__ import annotations

import math
import struct

from torchlite._device import device as torch_device
from torchlite._dispatch import REGISTRY, table_of
from torchlite_kernels.attention import BACKWARD_KEY, BACKWARD_QUERY, DELTA, FORWARD
from torchlite_kernels.preamble import KINDS

from .array import Array, empty, is_row_major
from .checks import check_takes
from .copying import clone_row_major, fill_with
from .layout import broadcast_shape, collapse
from .views import repeated_to

LARGEST = 256  # features that a work-item holds
_WALK = struct.Struct("4i")


def _two_steps(lead, steps) -> tuple[int, int] | None:
    """The step of all batch dimensions but the last taken as one, and that of the last; None where several are needed."""
    if len(lead) < 2:
        return 0, steps[-1] if steps else 0
    sizes, (outer,) = collapse(lead[:-1], steps[:-1])
    return (outer[0], steps[-1]) if len(sizes) == 1 else None


def _spread(x: Array, lead: tuple[int, ...]) -> Array:
    """`x` with its batch dimensions broadcast, copied where they cannot be walked in two steps."""
    x = repeated_to(x, lead + x.shape[-2:])
    return x if _two_steps(lead, x.steps[:-2]) is not None else clone_row_major(x)


def _walk(x: Array | None) -> bytes:
    """(outer, inner, row, column) steps of an operand."""
    if x is None:
        return _WALK.pack(0, 0, 0, 0)
    found = _two_steps(x.shape[:-2], x.steps[:-2])
    assert found is not None
    return _WALK.pack(*found, *x.steps[-2:])


def in_order_of(x: Array, columns: int) -> Array:
    """A new array of the shape and the memory order of `x` (heads inside rows, or rows inside heads) but for its last dimension."""
    shape = (*x.shape[:-1], columns)
    out = empty(x.device, shape, x.kind)
    if len(shape) > 2 and 0 < x.steps[-3] < x.steps[-2]:
        rows, heads = shape[-2], shape[-3]
        out.steps = (*out.steps[:-3], columns, heads * columns, 1)
        out.contiguous = is_row_major(shape, out.steps)
        assert out.steps[:-3] == () or out.steps[-4] == rows * heads * columns
    return out


class Attention:
    """One attention: its sizes, and the words that choose its kernels. Another runtime's class may have kernels of its own that take the same parameters."""

    TEXTS = {"forward": FORWARD, "dots": DELTA, "backward_query": BACKWARD_QUERY, "backward_key": BACKWARD_KEY}

    __slots__ = ("columns", "device", "features", "head", "heads", "key", "kinds", "lanes", "lead", "mask", "own", "query", "rows", "scale", "value", "values")

    def __init__(self, query: Array, key: Array, value: Array, mask: Array | None, is_causal, scale):
        check_takes(query, "f", "_sdpa_cpu")
        self.device, self.scale = query.device, scale
        self.lead = lead = broadcast_shape([x.shape[:-2] for x in (query, key, value, mask) if x is not None])
        self.rows, self.columns, self.features, self.values = query.shape[-2], key.shape[-2], query.shape[-1], value.shape[-1]
        self.heads = math.prod(lead)
        self.query, self.key, self.value = self.operand(query), self.operand(key), self.operand(value)
        self.mask = None if mask is None else _spread(repeated_to(mask, (*mask.shape[:-2], self.rows, self.columns)), lead)
        self.head = struct.pack("6i", lead[-1] if lead else 1, self.rows, self.columns, self.features, self.values, int(is_causal))
        self.head += _walk(self.query) + _walk(self.key) + _walk(self.value)
        self.choose()

    def operand(self, x: Array) -> Array:
        """An operand of the shape of all batches, as the kernels walk it."""
        return _spread(x, self.lead)

    def choose(self) -> None:
        """Set `kinds` and what else the kernels' launches depend on."""
        query, mask = self.query, self.mask
        widest = max(self.features, self.values, 1)
        room = 64 if widest <= 64 else 128 if widest <= 128 else LARGEST
        computed = KINDS[query.kind].computed
        masked = "0" if mask is None else "1" if mask.kind == "b8" else "2"
        self.kinds = {"T": query.kind, "DMAX": str(room), "M": query.kind if mask is None else mask.kind, "MASK": masked}
        if self.device.is_cpu:
            self.lanes, several = (8 if computed == "double" else 16), 2 if room <= 128 else 1
            self.kinds |= {"LANES": str(self.lanes), "V": f"{computed}{self.lanes}", "NV": str(several)}
            self.kinds |= {"WIDE_LOAD": f"T_LD{self.lanes}", "WIDE_STORE": f"T_ST{self.lanes}", "WIDE_TILE": f"vstore{self.lanes}"}
            self.own = self.lanes * several
        else:
            self.lanes = self.own = 1
            self.kinds |= {"LANES": "1", "V": computed, "NV": "1"}
        tile = 32
        while not self.device.is_cpu and 2 * tile * room * (8 if computed == "double" else 4) > self.device.local_memory and tile > 8:
            tile //= 2  # backward stages rows of two operands
        self.kinds["BK"] = str(tile)

    def exact(self, shape) -> Array:
        """A new array of the kind that is computed in."""
        return empty(self.device, shape, "f64" if self.query.kind == "f64" else "f32")

    def shape(self, grad: Array | None, out: Array | None) -> bytes:
        """The kernels' Shape."""
        return self.head + _walk(grad) + _walk(out) + _walk(self.mask)

    def start(self, name: str, side: int, arrays: tuple, grad: Array | None, out: Array | None, *more: bytes) -> None:
        """Launch a kernel whose work-items share the `side` rows of each head."""
        shape = self.shape(grad, out)
        signature = "p" * len(arrays) + "x" + KINDS[self.query.kind].pack + "x" * len(more)
        run = self.device.function(self.TEXTS[name], name, signature, (self.lanes,) if self.lanes > 1 else (), **self.kinds)
        group = 1 if self.device.is_cpu else 64
        taken = group * (1 if name == "dots" else self.own)
        run((-(-side // taken) * group, self.heads), (group, 1), *arrays, shape, self.scale, *more)


def _is_large(query: Array, value: Array) -> bool:
    """Whether the kernels cannot hold a row: then the ops' composites serve."""
    return max(query.shape[-1], value.shape[-1]) > LARGEST


def _composite(name: str, device, *arguments):
    table = table_of(torch_device(device.type, device.index))
    return REGISTRY[name].composite(table, *arguments)


def _sdpa(query, key, value, attn_mask, is_causal, scale):
    if _is_large(query, value):
        return _composite("_sdpa", query.device, query, key, value, attn_mask, is_causal, scale)
    return forward(Attention(query, key, value, attn_mask, is_causal, scale))


def forward(a: Attention) -> tuple[Array, Array]:
    """The result, and the log of each row's sum."""
    out, lse = in_order_of(a.query, a.values), a.exact((*a.lead, a.rows, 1))
    if not lse.size:
        return out, lse
    if not a.columns or not a.values:
        return fill_with(out, 0), fill_with(lse, 0)
    a.start("forward", a.rows, (a.query, a.key, a.value, a.mask or a.query, out, lse), None, out)
    return out, lse


def _sdpa_backward(grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs):
    if _is_large(query, value):
        return _composite("_sdpa_backward", query.device, grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs)
    return backward(Attention(query, key, value, attn_mask, is_causal, scale), grad, out, lse, needs)


def backward(a: Attention, grad: Array, out: Array, lse: Array, needs: tuple[bool, bool, bool]) -> tuple[Array | None, ...]:
    """The gradients of query, key and value, None for those that are not needed."""
    if not (a.heads and a.rows and a.columns):
        made = (fill_with(in_order_of(x, x.shape[-1]), 0) for x in (a.query, a.key, a.value))
        return tuple(x if need else None for x, need in zip(made, needs, strict=True))
    grad, out, mask = a.operand(grad), a.operand(out), a.mask or a.query
    delta = a.exact((*a.lead, a.rows))
    a.start("dots", a.rows, (grad, out, delta), grad, out)
    grad_query = grad_key = grad_value = None
    if needs[0]:
        grad_query = in_order_of(a.query, a.features)
        a.start("backward_query", a.rows, (grad, a.query, a.key, a.value, mask, lse, delta, grad_query), grad, grad_query)
    if needs[1] or needs[2]:
        grad_key, grad_value = in_order_of(a.key, a.features), in_order_of(a.value, a.values)
        arrays = (grad, a.query, a.key, a.value, mask, lse, delta, grad_key, grad_value)
        a.start("backward_key", a.columns, arrays, grad, grad_key, _walk(grad_value))
    return grad_query, grad_key if needs[1] else None, grad_value if needs[2] else None
