"""Nested tensors with the layout `torch.strided`: any dimension may differ. Their elements are one flat buffer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._dispatch.op_record import POINTWISE, Op

from .history import NestedBase

_NO_SIZES = "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."


class StridedNestedTensor(NestedBase):
    """A nested tensor with the layout `torch.strided`: a batch of parts of any sizes.

    `torch.nested.nested_tensor` makes one.

    Args:
        buffer: The elements of all parts, one part after the other.
        sizes: The sizes of the parts.

    Example:
        >>> nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 4)])
        >>> nt.to_padded_tensor(0.0).shape
        torch.Size([2, 2, 4])
    """

    __slots__ = ()
    _sizes: list[tuple[int, ...]]

    def __new__(cls, buffer: torch.Tensor, sizes: Sequence[Sequence[int]]) -> Any:
        made = object.__new__(cls)
        made._sizes = [tuple(size) for size in sizes]
        inner = tuple(max(size) for size in zip(*made._sizes, strict=True)) if made._sizes else ()
        made._fill_slots(buffer, (len(made._sizes), *inner))
        return made

    def _like(self, values: torch.Tensor) -> Any:
        return StridedNestedTensor(values, self._sizes)

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """Raises RuntimeError: the sizes differ. `_nested_tensor_size` returns them."""
        raise RuntimeError(_NO_SIZES)

    def size(self, dim: int | None = None) -> Any:
        """Returns the size of a dimension in which the parts are equal.

        Args:
            dim: The dimension.

        Raises:
            RuntimeError: The parts differ in it, or no dimension is given.
        """
        if dim is None:
            raise RuntimeError(_NO_SIZES)
        count = self.ndim
        if not -count <= dim < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
            )
        if not dim % count:
            return len(self._sizes)
        found = {size[dim % count - 1] for size in self._sizes}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {dim % count} is irregular and does not have a size.")
        return found.pop()

    def stride(self, dim: int | None = None) -> Any:
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides. Please file an issue.")

    def __len__(self) -> int:
        raise RuntimeError(_NO_SIZES)

    def is_contiguous(self, memory_format: Any = torch.contiguous_format) -> bool:
        """Returns True: the parts lie one behind the other."""
        return True

    def _nested_tensor_size(self) -> torch.Tensor:
        """The sizes of the parts, a row each."""
        return torch.tensor(self._sizes, dtype=torch.int64)

    def _nested_tensor_strides(self) -> torch.Tensor:
        """The strides of the parts, a row each."""
        return torch.tensor([[math.prod(s[i + 1 :]) for i in range(len(s))] for s in self._sizes], dtype=torch.int64)

    def _nested_tensor_storage_offsets(self) -> torch.Tensor:
        """Where each part begins in the elements."""
        starts, at = [], 0
        for size in self._sizes:
            starts.append(at)
            at += math.prod(size)
        return torch.tensor(starts, dtype=torch.int64)

    def values(self) -> torch.Tensor:
        """Returns the elements of all parts, one part after the other."""
        return self._values

    def unbind(self, dim: int = 0) -> Any:
        """Returns the parts.

        Args:
            dim: The dimension of the batch, 0.

        Raises:
            RuntimeError: It is another dimension.
        """
        if dim not in (0, -self.ndim):
            raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
        parts = self._values.split([math.prod(size) for size in self._sizes])
        return tuple(part.view(size) for part, size in zip(parts, self._sizes, strict=True))

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> torch.Tensor:
        """Returns the parts as one dense tensor, each padded to the size of the largest.

        Args:
            padding: The value of the added elements.
            output_size: A larger size of the result. Default: the least.

        Raises:
            RuntimeError: ``output_size`` is too small.
        """
        least = [len(self._sizes), *map(max, zip(*self._sizes, strict=True))]
        wanted = least if output_size is None else list(output_size)
        if len(wanted) != len(least) or any(a < b for a, b in zip(wanted, least, strict=True)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
            )
        parts = []
        for part in self.unbind():
            extra = [n for a, b in zip(reversed(wanted[1:]), reversed(part.shape), strict=True) for n in (0, a - b)]
            parts.append(torch.nn.functional.pad(part, extra, value=padding))
        out = torch.stack(parts)
        return torch.nn.functional.pad(out, [0] * (2 * out.ndim - 1) + [wanted[0] - least[0]], value=padding)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        parts = [repr(part.detach()).replace("\n", "\n  ") for part in self.unbind()]
        lines = ",\n".join(f"  {part}" for part in parts)
        grad = f", grad_fn=<{type(self.grad_fn).__name__}>" if self.grad_fn is not None else ""
        return f"nested_tensor([\n{lines}\n]{grad or ', requires_grad=True' * self.requires_grad})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        values = self._values.detach().requires_grad_(self.requires_grad and self.is_leaf)
        return StridedNestedTensor, (values, self._sizes)

    @staticmethod
    def _run_record(op: Any, values: Any, writes: bool = False) -> Any:
        return run_record(op, list(values), writes)


def strided_from_list(tensors: Sequence[torch.Tensor], dtype: Any, device: Any) -> StridedNestedTensor:
    """The nested tensor of a list of tensors, with their history."""
    if len({t.ndim for t in tensors}) > 1:
        raise RuntimeError(
            "All Tensors given to nested_tensor must have the same dimension. Found dimension "
            f"{tensors[1].ndim} for Tensor at index 1 and dimension {tensors[0].ndim} for Tensor at index 0."
        )
    sizes = [tuple(t.shape) for t in tensors]
    parts = [t.to(dtype=dtype, device=device).reshape(-1) for t in tensors]
    return StridedNestedTensor(torch.cat(parts) if parts else torch.empty(0, dtype=dtype, device=device), sizes)


# -- ops --------------------------------------------------------------------------------------------

# Ops on the buffer: the parts keep their sizes.
_ON_BUFFER = frozenset(
    "clone detach to _to contiguous dropout _dropout torch_dropout native_dropout zero_ fill_ _fill fill empty_like "
    "zeros_like ones_like full_like _zeros_like _ones_like _full_like rand_like randn_like where _where masked_fill "
    "_masked_fill".split()
)
# Ops of each part with dimensions of the nested tensor.
_WITH_DIM = frozenset(("softmax", "_softmax", "log_softmax", "_log_softmax", "sum", "mean", "cumsum"))
# Ops of each part as it is.
_ON_PARTS = frozenset(("linear", "layer_norm", "_layer_norm", "rms_norm", "_rms_norm", "embedding"))


def run_record(op: Op, values: list[Any], writes: bool = False) -> Any:
    """The result of an op with nested tensors of this layout among its bound arguments."""
    from .ops import call_op, flatten

    nested = next(v for v in flatten(values) if isinstance(v, StridedNestedTensor))
    if any(getattr(v, "is_nested", False) and not isinstance(v, StridedNestedTensor) for v in flatten(values)):
        raise RuntimeError(f"{op.function_name}(): nested tensors of two layouts cannot be mixed")

    def each(change: Callable[..., Any] = lambda *args: call_op(op, args)) -> Any:
        columns = [v.unbind() if isinstance(v, StridedNestedTensor) else [v] * len(nested._sizes) for v in values]
        return strided_from_list([change(*row) for row in zip(*columns, strict=True)], None, None)

    if op.name in (
        "transpose",
        "unsqueeze",
        "narrow",
        "chunk",
        "select",
        "reshape",
        "view",
        "matmul",
        "bmm",
        "unbind",
        "_slice_index",
    ):
        return _SHAPES[op.name](nested, values, each)
    if op.name in _WITH_DIM:
        dims = values[1] if isinstance(values[1], (tuple, list)) else (values[1],)
        if None in dims or not dims:
            raise NotImplementedError(
                f"Could not run 'aten::{op.function_name}' with arguments from the 'NestedTensorCPU' backend."
            )
        if any(d % nested.ndim == 0 for d in dims):
            raise RuntimeError(f"{op.function_name}(): the dimension of the batch is not supported for nested tensors")
        if op.name in ("sum", "mean") and not values[2]:
            raise RuntimeError("NestedTensor always requires keepdim=True for now.")
        inner = [d % nested.ndim - 1 for d in dims]
        values[1] = inner if isinstance(values[1], (tuple, list)) else inner[0]
        return each()
    if op.name in _ON_PARTS:
        return each()
    if op.tags & POINTWISE or op.name in _ON_BUFFER:
        others = [v for v in values if isinstance(v, StridedNestedTensor)]
        if any(other._sizes != nested._sizes for other in others):
            raise RuntimeError(f"{op.function_name}: the sizes of the nested tensors differ")
        dense = [v for v in values if isinstance(v, torch.Tensor) and not v.is_nested and v.ndim]
        if dense and not writes:
            return each(lambda *args: call_op(op, _rows_of(args, dense)))
        result = call_op(op, [v._values if isinstance(v, StridedNestedTensor) else v for v in values], writes)
        return values[0] if writes or op.name[-1] == "_" else nested._like(result)
    if op.is_implicit and op.composite is not None and not writes:
        return op.composite(CALLBACKS.F, *values)
    raise NotImplementedError(
        f"Could not run 'aten::{op.function_name}' with arguments from the 'NestedTensorCPU' backend."
    )


def _rows_of(args: Sequence[Any], dense: Sequence[Any]) -> list[Any]:
    """The arguments of one part: of a dense operand that has a batch of one the row."""
    return [a[0] if any(a is d for d in dense) and a.ndim > 1 and a.shape[0] == 1 else a for a in args]


def _inner(nested: StridedNestedTensor, dim: int, what: str) -> int:
    if not dim % nested.ndim:
        raise RuntimeError(f"{what}(): the dimension of the batch is not supported for nested tensors")
    return dim % nested.ndim - 1


def _transpose(nested: Any, values: Any, each: Any) -> Any:
    a, b = (_inner(nested, d, "transpose") for d in values[1:3])
    return each(lambda part, *rest: part.transpose(a, b))


def _select(nested: Any, values: Any, each: Any) -> Any:
    dim, index = values[1:3]
    if not dim % nested.ndim:
        return nested.unbind()[index]
    return each(lambda part, *rest: part.select(dim % nested.ndim - 1, index))


def _slice_index(nested: Any, values: Any, each: Any) -> Any:
    index = values[1]
    if index and isinstance(index[0], int):
        part = nested.unbind()[index[0]]
        return part[tuple(index[1:])] if len(index) > 1 else part
    if index and index[0] is not Ellipsis and index[0] != slice(None):
        raise NotImplementedError("slices of the batch of a nested tensor")
    return each(lambda part, *rest: part[tuple(index[0 if index[0] is Ellipsis else 1 :])])


def _reshape(nested: Any, values: Any, each: Any) -> Any:
    sizes = values[1]
    sizes = list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else list(sizes)
    if sizes[0] not in (-1, len(nested._sizes)):
        raise RuntimeError(f"reshape(): the batch of {len(nested._sizes)} parts has no size {sizes[0]}")
    # A size of -1 is that of the part in this dimension, where the part has the dimension.
    return each(
        lambda part, *rest: part.reshape(
            [part.shape[i] if n == -1 and i < part.ndim else n for i, n in enumerate(sizes[1:])]
        )
    )


def _chunk(nested: Any, values: Any, each: Any) -> Any:
    chunks, dim = values[1], _inner(nested, values[2], "chunk")
    rows = [part.chunk(chunks, dim) for part in nested.unbind()]
    return tuple(strided_from_list(list(column), None, None) for column in zip(*rows, strict=True))


def _matmul(nested: Any, values: Any, each: Any) -> Any:
    if not all(isinstance(v, StridedNestedTensor) for v in values[:2]):
        which = (
            "self and non-nested other" if isinstance(values[0], StridedNestedTensor) else "other and non-nested self"
        )
        raise RuntimeError(f"Expected both to be nested, but got a nested {which}")
    return each(lambda a, b: a @ b)


_SHAPES: dict[str, Any] = {
    "transpose": _transpose,
    "unsqueeze": lambda nested, values, each: each(
        lambda part, *rest: part.unsqueeze(values[1] % (nested.ndim + 1) - 1)
    ),
    "narrow": lambda nested, values, each: each(
        lambda part, *rest: part.narrow(_inner(nested, values[1], "narrow"), *values[2:4])
    ),
    "select": _select,
    "_slice_index": _slice_index,
    "reshape": _reshape,
    "view": _reshape,
    "chunk": _chunk,
    "matmul": _matmul,
    "bmm": _matmul,
    "unbind": lambda nested, values, each: nested.unbind(values[1]),
}
