"""NestedTensor: parts of different length in one dimension, as one tensor of values and the offsets of the parts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torchlite as torch

from .history import NestedBase
from .nested_int import RaggedSizes, ragged_sizes_of

__all__ = [
    "NestedTensor", "buffer_from_jagged", "get_tensor_symint", "jagged_from_list", "jagged_from_tensor_and_lengths",
    "nested_view_from_values_offsets", "nested_view_from_values_offsets_lengths",
]  # fmt: skip


class NestedTensor(NestedBase):
    """A nested tensor with the layout `torch.jagged`: a batch of parts whose sizes differ in one dimension.

    `torch.nested.nested_tensor` and its relatives make one.

    Args:
        values: The parts, one after the other along the ragged dimension; without the dimension of the batch.
        offsets: Where each part begins, and where the last one ends: int32 or int64.
        lengths: The lengths of the parts, if there are holes between them. Default: none.
        _ragged_idx: The ragged dimension of the nested tensor. Default: 1.
        _metadata_cache: The smallest and the largest length, by the names ``min_seqlen`` and ``max_seqlen``.

    Example:
        >>> nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
        >>> nt.dim(), nt.size(0), nt.size(2), nt.offsets()
        (3, 2, 3, tensor([0, 2, 6]))
    """

    __slots__ = ()
    layout = torch.jagged  # type: ignore[assignment]
    _offsets: torch.Tensor
    _lengths: torch.Tensor | None
    _ragged_idx: int
    _ragged: RaggedSizes
    _metadata_cache: dict[str, int]
    _run_record: Any  # `dispatch` sets it

    def __new__(
        cls,
        values: torch.Tensor,
        offsets: torch.Tensor,
        *,
        lengths: torch.Tensor | None = None,
        _ragged_idx: int = 1,
        _metadata_cache: dict[str, int] | None = None,
        **kwargs: Any,
    ) -> Any:
        if offsets.dtype not in (torch.int64, torch.int32):
            raise AssertionError("offsets must be int32 or int64")
        if not 0 < _ragged_idx <= values.ndim:
            raise RuntimeError(f"the ragged dimension {_ragged_idx} is none of a tensor with {values.ndim + 1} dims")
        made = object.__new__(cls)
        made._offsets, made._lengths, made._ragged_idx = offsets, lengths, _ragged_idx
        made._ragged = ragged_sizes_of(offsets, lengths)
        made._metadata_cache = {} if _metadata_cache is None else _metadata_cache
        made._fill_slots(values, (offsets.shape[0] - 1, *made._sizes_of(values)))
        return made

    def _sizes_of(self, values: torch.Tensor) -> tuple[Any, ...]:
        sizes: list[Any] = list(values.shape)
        sizes[self._ragged_idx - 1] = self._ragged.size
        return tuple(sizes)

    def _like(self, values: torch.Tensor, ragged_idx: int | None = None) -> Any:
        """The nested tensor of other values with the same parts."""
        offsets, lengths = self._offsets, self._lengths
        if values.device != self._values.device:
            offsets, lengths = self._moved_parts(values.device)
        return NestedTensor(
            values,
            offsets,
            lengths=lengths,
            _ragged_idx=self._ragged_idx if ragged_idx is None else ragged_idx,
            _metadata_cache=self._metadata_cache,
        )

    def _moved_parts(self, device: Any) -> tuple[Any, Any]:
        """Offsets and lengths on another device, with the same ragged size."""
        from .nested_int import _KNOWN

        offsets, lengths = (None if t is None else t.to(device) for t in (self._offsets, self._lengths))
        ragged = RaggedSizes()
        ragged.size, ragged.parts = self._ragged.size, self._bounds()
        _KNOWN[offsets if lengths is None else lengths] = ragged
        return offsets, lengths

    # -- sizes -----------------------------------------------------------------------------------

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The size, with a `torch.SymInt` for the ragged dimension."""
        return tuple.__new__(torch.Size, (self._offsets.shape[0] - 1, *self._sizes_of(self._values)))

    _size = shape

    def size(self, dim: int | None = None) -> Any:
        """Returns the size, or that of a dimension.

        Args:
            dim: The dimension. Default: all.
        """
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """Returns the strides, or that of a dimension.

        Args:
            dim: The dimension. Default: all.
        """
        own = self._values.stride()
        place = self._ragged_idx - 1
        batch: Any = self._ragged.size * own[place]
        outer = tuple(s if s <= own[place] else self._ragged.size * own[place] for s in own)
        strides = (batch, *outer)
        return strides if dim is None else strides[dim]

    def __len__(self) -> int:
        return self._offsets.shape[0] - 1

    def is_contiguous(self, memory_format: Any = torch.contiguous_format) -> bool:
        """Returns whether the parts lie one behind the other in row-major order, without holes."""
        if self._lengths is not None or self._ragged_idx != 1 or not self._values.is_contiguous():
            return False
        return self._bounds_end() == self._values.shape[0]

    def _bounds_end(self) -> int:
        bounds = self._bounds()
        return sum(bounds[-1]) if bounds else 0

    def _bounds(self) -> list[tuple[int, int]]:
        """The start and length of each part."""
        ragged = self._ragged
        if ragged.parts is None:
            starts: list[int] = self._offsets.tolist()
            if self._lengths is not None:
                ragged.parts = list(zip(starts, self._lengths.tolist(), strict=False))
            else:
                ragged.parts = [(a, b - a) for a, b in itertools.pairwise(starts)]
        return ragged.parts

    def _rows(self) -> tuple[torch.Tensor, torch.Tensor]:
        """For each row of the values the number of its part and its place in the part."""
        ragged = self._ragged
        if ragged.rows is None:
            bounds = self._bounds()
            counts = torch.tensor([n for _, n in bounds], dtype=torch.int64)
            part = torch.repeat_interleave(torch.arange(len(bounds)), counts)
            first = torch.tensor([start for start, _ in bounds], dtype=torch.int64)
            place = torch.arange(part.shape[0]) + first[:1] - first[part] if part.shape[0] else part
            device = self._values.device
            ragged.rows = part.to(device), place.to(device)
        return ragged.rows

    def _get_max_seqlen(self) -> int:
        cache = self._metadata_cache
        if "max_seqlen" not in cache:
            cache["max_seqlen"] = max((n for _, n in self._bounds()), default=0)
        return cache["max_seqlen"]

    def _get_min_seqlen(self) -> int:
        cache = self._metadata_cache
        if "min_seqlen" not in cache:
            cache["min_seqlen"] = min((n for _, n in self._bounds()), default=0)
        return cache["min_seqlen"]

    @property
    def _max_seqlen(self) -> int:
        return self._get_max_seqlen()

    @property
    def _min_seqlen(self) -> int:
        return self._get_min_seqlen()

    @property
    def _maybe_max_seqlen(self) -> int | None:
        return self._metadata_cache.get("max_seqlen")

    @property
    def _maybe_min_seqlen(self) -> int | None:
        return self._metadata_cache.get("min_seqlen")

    # -- parts -----------------------------------------------------------------------------------

    def values(self) -> torch.Tensor:
        """Returns the elements of all parts, one part after the other along the ragged dimension."""
        return self._values

    def offsets(self) -> torch.Tensor:
        """Returns where each part begins in the values, and where the last one ends."""
        return self._offsets

    def lengths(self) -> torch.Tensor | None:
        """Returns the lengths of the parts if there are holes between them, else ``None``."""
        return self._lengths

    def unbind(self, dim: int = 0) -> Any:
        """Returns the parts.

        Args:
            dim: The dimension of the batch, 0.

        Raises:
            RuntimeError: It is another dimension.
        """
        if dim not in (0, -self.ndim):
            raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
        place = self._ragged_idx - 1
        return tuple(self._values.narrow(place, start, length) for start, length in self._bounds())

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> torch.Tensor:
        """Returns the parts as one dense tensor, each padded to the size of the largest.

        Args:
            padding: The value of the added elements.
            output_size: A larger size of the result. Default: the least.

        Raises:
            RuntimeError: There are holes between the parts, or ``output_size`` is too small.
        """
        if self._lengths is not None:
            raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
        return self._padded(padding, output_size)

    def _padded(self, padding: Any, output_size: Sequence[int] | None = None) -> torch.Tensor:
        """The parts, padded, with the ragged dimension where it is."""
        place = self._ragged_idx - 1
        values = self._values.movedim(place, 0) if place else self._values
        count, longest = len(self), self._get_max_seqlen()
        if output_size is not None:
            wanted = list(output_size)
            least = [count, *self._values.shape]
            least[self._ragged_idx] = longest
            if len(wanted) != len(least) or any(a < b for a, b in zip(wanted, least, strict=True)):
                raise RuntimeError(
                    "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
                )
            longest = wanted[self._ragged_idx]
        rows = self._rows()
        out = torch.full((count, longest, *values.shape[1:]), padding, dtype=values.dtype, device=values.device)
        out = out.index_put(rows, values[: rows[0].shape[0]])
        out = out.movedim(1, self._ragged_idx) if place else out
        if output_size is not None:
            extra = [n for a, b in zip(reversed(wanted), reversed(out.shape), strict=True) for n in (0, a - b)]
            out = torch.nn.functional.pad(out, extra, value=padding) if any(extra) else out
        return out

    def _from_padded(self, padded: torch.Tensor) -> Any:
        """The rows of a padded tensor that belong to the parts."""
        place = self._ragged_idx
        rows = padded.movedim(place, 1)[self._rows()]
        return self._like(rows.movedim(0, place - 1))

    def _set_items(self, index: Any, value: Any) -> None:
        """Assign `self[i, ...] = value`, in one part."""
        index = index if isinstance(index, tuple) else (index,)
        if not index or not isinstance(index[0], int):
            raise NotImplementedError("aten.index_put_.default: assign to one part of a nested tensor, such as nt[0]")
        self.unbind()[index[0]][tuple(index[1:]) or ...] = value

    # -- text and files -----------------------------------------------------------------------------

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        grad = f", grad_fn={self.grad_fn}" if self.grad_fn is not None else ", requires_grad=True" * self.requires_grad
        return (
            f"NestedTensor(size={tuple(self.shape)}, offsets={self._offsets}{grad}, contiguous={self.is_contiguous()})"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        values = self._values.detach().requires_grad_(self.requires_grad and self.is_leaf)
        state = {
            "values": values,
            "offsets": self._offsets,
            "lengths": self._lengths,
            "_ragged_idx": self._ragged_idx,
            "_metadata_cache": dict(self._metadata_cache),
        }
        return _rebuild_njt, (state,)


def _rebuild_njt(constructor_kwargs: dict[str, Any]) -> NestedTensor:
    """Make a nested tensor of its saved parts. PyTorch's files have the least and largest length as tensors' sizes."""
    cache = dict(constructor_kwargs.pop("_metadata_cache", None) or {})
    found = {name: n.shape[0] if isinstance(n, torch.Tensor) else int(n) for name, n in cache.items()}
    return NestedTensor(**constructor_kwargs, _metadata_cache=found)


def get_tensor_symint(tensor: torch.Tensor, *, coeff: int = 1) -> Any:
    """The ragged size of the tensors with these offsets (or lengths), times a number."""
    return ragged_sizes_of(tensor, None).size * coeff if coeff != 1 else ragged_sizes_of(tensor, None).size


def nested_view_from_values_offsets(
    values: torch.Tensor,
    offsets: torch.Tensor,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """The nested tensor of values and offsets, with the values' history."""
    return nested_view_from_values_offsets_lengths(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: torch.Tensor,
    offsets: torch.Tensor,
    lengths: torch.Tensor | None,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """The nested tensor of values, offsets and lengths, with the values' history."""
    cache = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    return NestedTensor(
        values,
        offsets,
        lengths=lengths,
        _ragged_idx=ragged_idx,
        _metadata_cache={name: n for name, n in cache.items() if n is not None},
    )


def buffer_from_jagged(jagged: NestedTensor) -> torch.Tensor:
    """The values of a nested tensor."""
    return jagged.values()


def _offsets_of(lengths: Sequence[int], device: Any) -> torch.Tensor:
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    return torch.tensor(ends, dtype=torch.int64, device=device)


def jagged_from_list(
    tensors: list[torch.Tensor], offsets: torch.Tensor | None, dtype: Any = None, device: Any = None
) -> tuple[NestedTensor, torch.Tensor]:
    """The nested tensor of a list of tensors, with their history, and its offsets."""
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for name in ("dtype", "device"):
        if len({str(getattr(t, name)) for t in tensors}) != 1:
            raise RuntimeError(f"When constructing a nested tensor, all tensors in list must have the same {name}")
    if len({t.ndim for t in tensors}) != 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
    if not tensors[0].ndim:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    shapes = [tuple(t.shape) for t in tensors]
    ragged = [d for d in range(tensors[0].ndim) if len({shape[d] for shape in shapes}) > 1]
    if len(ragged) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged "
            "layout only allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged "
            "* dim."
        )
    dim = ragged[0] if ragged else 0
    values = torch.cat([t.to(dtype=dtype, device=device) for t in tensors], dim)
    lengths = [shape[dim] for shape in shapes]
    if offsets is None:
        offsets = _offsets_of(lengths, values.device)
    made = nested_view_from_values_offsets(values, offsets, dim + 1, min(lengths), max(lengths))
    return made, offsets


def jagged_from_tensor_and_lengths(
    tensor: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor
) -> tuple[NestedTensor, torch.Tensor, torch.Tensor | None]:
    """The nested tensor of a part of each row of a dense tensor, its offsets and its lengths (None without holes)."""
    batch, width = tensor.shape[:2]
    starts = starts.to(tensor.device).expand(batch) if starts.ndim <= 1 else starts
    lengths = lengths.to(tensor.device).expand(batch) if lengths.ndim <= 1 else lengths
    if starts.shape != (batch,) or lengths.shape != (batch,):
        raise RuntimeError(
            "When constructing a jagged nested tensor using narrow(), your start and length must be Tensors that "
            "broadcast to input.shape[0]"
        )
    first = torch.arange(batch, device=tensor.device, dtype=torch.int64) * width + starts
    last = first[-1:] + lengths[-1:]
    offsets = torch.cat([first, last])
    values = tensor.reshape(batch * width, *tensor.shape[2:]) if tensor.is_contiguous() else tensor.flatten(0, 1)
    bounds = lengths.tolist()
    smallest, largest = min(bounds, default=0), max(bounds, default=0)
    if torch.equal(offsets.diff(), lengths) and not int(starts[0]) and int(last) == values.shape[0]:
        return nested_view_from_values_offsets(values, offsets, 1, smallest, largest), offsets, None
    whole = lengths.clone()
    made = nested_view_from_values_offsets_lengths(values, offsets, whole, 1, smallest, largest)
    return made, offsets, whole
