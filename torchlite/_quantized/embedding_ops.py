"""`torch.ops.quantized`: embeddings with rows of eight, four or two bits.

There are two forms of a weight. Packed parameters have a quantized tensor. A tensor of bytes has rows with the levels,
then the step and the least number: as float32 with eight bits, as float16 with fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.nn.functional as F

from .packed_levels import pack, unpack
from .packed_parameters import EmbeddingPackedParams

_WEIGHT = EmbeddingPackedParams._schema_type
_ARGUMENTS = (
    "Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, "
    "Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False"
)
_BITS = {"byte": 8, "4bit": 4, "2bit": 2}
# The functions that compute the ops, by schema.
EMBEDDING_OPS: dict[str, Callable[..., Any]] = {
    f"embedding_bag_prepack(Tensor weight) -> {_WEIGHT} W_prepack": EmbeddingPackedParams,
    f"embedding_bag_unpack({_WEIGHT} W_prepack) -> Tensor W_origin": lambda packed: packed.unpack(),
}


# -- rows of bytes --------------------------------------------------------------------------------------------------


def _as_bytes(numbers: Any) -> Any:
    return numbers.contiguous().view(torch.uint8)


def _greatest_level(bits: int) -> int:
    return (1 << bits) - 1


def _levels_of_rows(weight: Any, low: Any, high: Any, bits: int) -> tuple[Any, Any, Any]:
    """Return the levels of rows, and their steps and least numbers in the dtype that is kept."""
    if bits == 8:
        span = high - low
        return torch.round((weight - low) * (255.0 / (span + 1e-8))), span / 255.0, low
    low = low.to(torch.float16)
    step = ((high - low.to(torch.float32)) / _greatest_level(bits)).to(torch.float16)
    step = torch.where((step == 0) | torch.isinf(1 / step.to(torch.float32)), torch.ones_like(step), step)
    levels = torch.round((weight - low.to(torch.float32)) * (1 / step.to(torch.float32)))
    return levels.clamp(0, _greatest_level(bits)), step, low


def _pack_rows(weight: Any, bits: int, low: Any, high: Any) -> Any:
    if weight.dtype not in (torch.float32, torch.float16):
        raise RuntimeError(f"expected float32 or float16 numbers, but got {weight.dtype}")
    weight = weight.detach().to(torch.float32)
    levels, step, low = _levels_of_rows(weight, low.to(torch.float32), high.to(torch.float32), bits)
    levels = levels.to(torch.uint8)
    if bits < 8:
        missing = -levels.shape[-1] % (8 // bits)
        levels = F.pad(levels, (0, missing))
        levels = pack(levels, bits).reshape(*levels.shape[:-1], levels.shape[-1] * bits // 8)
    return torch.cat([levels, _as_bytes(step), _as_bytes(low)], -1)


def _search_ranges(weight: Any, bits: int, nbins: int, ratio: float) -> tuple[Any, Any]:
    """Return the least and the greatest number of each row by `choose_qparams_optimized`."""
    rows = weight.detach().to(torch.float32).reshape(-1, weight.shape[-1])
    found = [torch.choose_qparams_optimized(row, len(row), nbins, ratio, bits) for row in rows]
    high, low = (torch.stack([pair[place].reshape(()) for pair in found]) for place in (0, 1))
    return low.reshape(*weight.shape[:-1], 1), high.reshape(*weight.shape[:-1], 1)


def _prepack(bits: int) -> Callable:
    def prepack(weight: Any, optimized_qparams: bool = False, nbins: int = 200, ratio: float = 0.16) -> Any:
        if optimized_qparams:
            return _pack_rows(weight, bits, *_search_ranges(weight, bits, nbins, ratio))
        return _pack_rows(weight, bits, weight.amin(-1, keepdim=True), weight.amax(-1, keepdim=True))

    return prepack


def _prepack_with_range(bits: int) -> Callable:
    def prepack(
        weight: Any, rowwise_min_max: Any, optimized_qparams: bool = False, nbins: int = 200, ratio: float = 0.16
    ) -> Any:
        if optimized_qparams:
            return _pack_rows(weight, bits, *_search_ranges(weight, bits, nbins, ratio))
        return _pack_rows(weight, bits, rowwise_min_max[..., :1], rowwise_min_max[..., 1:])

    return prepack


def _rows_of_bytes(weight: Any, bits: int) -> Any:
    """Return the numbers of rows of bytes."""
    kind = torch.float32 if bits == 8 else torch.float16
    size = kind.itemsize
    levels = weight[..., : -2 * size]
    if bits < 8:
        count = levels.shape[-1] * 8 // bits
        levels = unpack(levels.reshape(-1), bits, levels.numel() * 8 // bits).reshape(*levels.shape[:-1], count)
    step, low = (
        weight[..., start:end].contiguous().view(kind).to(torch.float32)
        for start, end in ((-2 * size, -size), (-size, weight.shape[-1]))
    )
    return levels.to(torch.float32) * step + low


# -- bags -----------------------------------------------------------------------------------------------------------


def _look_up(rows: Callable[[Any], Any], indices: Any, pruned: bool, mapping: Any) -> Any:
    """Return rows as numbers. Of a pruned weight, a mapping has the place of each row, or -1 for a row of zeros."""
    flat = indices.reshape(-1).to(torch.int64)
    if not pruned or mapping is None or mapping.numel() == 1 and int(mapping) == 0:
        return rows(flat)
    places = mapping.to(torch.int64)[flat]
    return rows(places.clamp(min=0)) * (places >= 0).unsqueeze(1)


def _bags(
    rows: Callable[[Any], Any], name: str, indices: Any, offsets: Any = None, scale_grad_by_freq: bool = False,
    mode: int = 0, pruned_weights: bool = False, per_sample_weights: Any = None, compressed_indices_mapping: Any = None,
    include_last_offset: bool = False,
) -> Any:  # fmt: skip
    if mode != 0:
        raise RuntimeError(f"{name}: only the mode sum is supported")
    found = _look_up(rows, indices, pruned_weights, compressed_indices_mapping)
    places = torch.arange(indices.numel(), device=indices.device).reshape(indices.shape)
    return F.embedding_bag(
        places, found, None if offsets is None else offsets.to(torch.int64), mode="sum",
        per_sample_weights=per_sample_weights, include_last_offset=include_last_offset,
    )  # fmt: skip


def _check_width(packed: Any, bits: int, name: str) -> None:
    if packed.bit_rate() != bits:
        raise RuntimeError(f"{name}: expected a weight of {bits} bits, but got one of {packed.bit_rate()}")


def _declare(name: str, bits: int) -> None:
    bag, single = f"embedding_bag_{name}", f"embedding_{name}"

    def of_bytes(weight: Any, *args: Any, **kwargs: Any) -> Any:
        return _bags(lambda places: _rows_of_bytes(weight[places], bits), f"{bag}_rowwise_offsets", *args, **kwargs)

    def of_packed(packed: Any, *args: Any, **kwargs: Any) -> Any:
        _check_width(packed, bits, bag)
        return _bags(packed.rows, bag, *args, **kwargs)

    def one_each(packed: Any, indices: Any, pruned_weights: bool = False) -> Any:
        _check_width(packed, bits, single)
        return _look_up(packed.rows, indices, pruned_weights, None).reshape(*indices.shape, -1)

    search = "" if bits == 8 else ", bool optimized_qparams=False, int nbins=200, float ratio=0.16"
    EMBEDDING_OPS.update({
        f"{bag}_prepack(Tensor weight{search}) -> Tensor": _prepack(bits),
        f"{bag}_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max{search}) -> Tensor":
            _prepack_with_range(bits),
        f"{bag}_unpack(Tensor weight) -> Tensor": lambda weight: _rows_of_bytes(weight, bits),
        f"{bag}_rowwise_offsets(Tensor weight, {_ARGUMENTS}) -> Tensor": of_bytes,
    })  # fmt: skip
    if bits > 2:
        EMBEDDING_OPS[f"{bag}({_WEIGHT} weight, {_ARGUMENTS}) -> Tensor"] = of_packed
        EMBEDDING_OPS[f"{single}({_WEIGHT} weight, Tensor indices, bool pruned_weights=False) -> Tensor"] = one_each


for _name, _bits in _BITS.items():
    _declare(_name, _bits)
