"""Rules of views of nested tensors, and of their parts."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch

from .nested_int import NestedInt
from .nested_tensor import NestedTensor
from .ops import OpCall, rule


@rule("unbind")
def _unbind(found: OpCall) -> Any:
    return found.nested.unbind(found.argument("dim"))


@rule("transpose")
def _transpose(found: OpCall) -> Any:
    nested = found.nested
    a, b = (found.dim(d) for d in found.values[1:3])
    if a == b:
        return nested._like(nested._values)
    if not a or not b:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged = {a: b, b: a}.get(nested._ragged_idx, nested._ragged_idx)
    return nested._like(nested._values.transpose(a - 1, b - 1), ragged)


@rule("mT", "adjoint", "t")
def _swap_last(found: OpCall) -> Any:
    return found.nested.transpose(-2, -1)


@rule("permute")
def _permute(found: OpCall) -> Any:
    nested = found.nested
    dims = found.argument("dims")
    dims = [found.dim(d) for d in (dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims)]
    if dims[0]:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    if sorted(dims) != list(range(nested.ndim)):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return nested._like(nested._values.permute([d - 1 for d in dims[1:]]), dims.index(nested._ragged_idx))


@rule("unsqueeze")
def _unsqueeze(found: OpCall) -> Any:
    nested = found.nested
    dim = found.inner_dim(found.argument("dim"), 1)
    return nested._like(nested._values.unsqueeze(dim), nested._ragged_idx + (dim < nested._ragged_idx))


@rule("squeeze")
def _squeeze(found: OpCall) -> Any:
    nested = found.nested
    dims = [d for d in found.values[1:] if d is not None and d != ()]
    dims = list(dims[0]) if dims and isinstance(dims[0], (tuple, list)) else dims
    if not dims:
        raise found.fail("not supported for NestedTensor without dims")
    inner = [found.dense_dim(d) for d in dims]
    gone = [d for d in inner if nested._values.shape[d] == 1]
    return nested._like(
        nested._values.squeeze(tuple(gone)), nested._ragged_idx - sum(d < nested._ragged_idx - 1 for d in gone)
    )


def _view(found: OpCall, sizes: Any) -> Any:
    """The nested tensor with other sizes of the dense dimensions."""
    nested = found.nested
    wanted = list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else list(sizes)
    place = nested._ragged_idx
    before = math.prod(nested._values.shape[: place - 1])
    ragged = next(
        (
            i
            for i in range(1, len(wanted))
            if (isinstance(wanted[i], NestedInt) or wanted[i] == -1) and math.prod(wanted[1:i]) == before
        ),
        None,
    )
    known = [w for w in wanted if isinstance(w, NestedInt)]
    if ragged is None or wanted[0] != len(nested) or any(w != nested._ragged.size for w in known):
        raise RuntimeError(f"view(): cannot view shape {tuple(nested.shape)} as {wanted}")
    inner = wanted[1:]
    inner[ragged - 1] = nested._values.shape[place - 1]
    return nested._like(
        nested._values.reshape(inner) if found.op.name == "reshape" else nested._values.view(inner), ragged
    )


@rule("view", "_view", "reshape")
def _view_rule(found: OpCall) -> Any:
    sizes = found.values[1]
    if isinstance(sizes, torch.dtype) or len(sizes) == 1 and isinstance(sizes[0], torch.dtype):
        return found.like(found.run())
    return _view(found, sizes)


@rule("view_as", "reshape_as")
def _view_as(found: OpCall) -> Any:
    other = found.values[1]
    return getattr(found.values[0], found.op.name.removesuffix("_as"))(other.shape)


@rule("flatten")
def _flatten(found: OpCall) -> Any:
    nested = found.nested
    start, end = (found.inner_dim(found.argument(name)) for name in ("start_dim", "end_dim"))
    place = nested._ragged_idx - 1
    if start == end:
        return nested
    if start <= place <= end:
        raise found.fail("not supported for NestedTensor on ragged dim")
    return nested._like(nested._values.flatten(start, end), nested._ragged_idx - (end - start if end < place else 0))


@rule("unflatten")
def _unflatten(found: OpCall) -> Any:
    nested = found.nested
    dim, sizes = found.dense_dim(found.argument("dim")), found.argument("sizes")
    more = len(sizes) - 1 if dim < nested._ragged_idx - 1 else 0
    return nested._like(nested._values.unflatten(dim, sizes), nested._ragged_idx + more)


@rule("expand")
def _expand(found: OpCall) -> Any:
    nested = found.nested
    sizes = found.argument(found.op.params[1].name)
    sizes = list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else list(sizes)
    place = nested._ragged_idx
    if len(sizes) != nested.ndim or sizes[0] not in (-1, len(nested)) or sizes[place] not in (-1, nested._ragged.size):
        raise RuntimeError(f"expand(): cannot expand shape {tuple(nested.shape)} -> {tuple(sizes)}")
    inner = sizes[1:]
    inner[place - 1] = nested._values.shape[place - 1]
    return nested._like(nested._values.expand(inner))


@rule("expand_as")
def _expand_as(found: OpCall) -> Any:
    return found.values[0].expand(found.values[1].shape)


@rule("select")
def _select(found: OpCall) -> Any:
    nested, index = found.nested, found.argument("index")
    if not found.dim(found.argument("dim")):
        return _part(nested, index)
    dim = found.dense_dim(found.argument("dim"))
    return nested._like(nested._values.select(dim, index), nested._ragged_idx - (dim < nested._ragged_idx - 1))


def _part(nested: NestedTensor, index: int) -> torch.Tensor:
    count = len(nested)
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {count}")
    start, length = nested._bounds()[index % count]
    return nested._values.narrow(nested._ragged_idx - 1, start, length)


@rule("_slice_index", "_index")
def _index(found: OpCall) -> Any:
    """`nt[i]`, `nt[..., i]`, `nt[:, :, a:b]`: numbers, slices and None, which leave batch and parts whole."""
    nested, index = found.nested, found.values[1]
    if found.op.name == "_index" or any(hasattr(i, "dtype") for i in index):
        raise NotImplementedError("aten.index.Tensor")
    if Ellipsis in index:
        at = index.index(Ellipsis)
        used = sum(i is not None for i in index) - 1
        index = (*index[:at], *[slice(None)] * (nested.ndim - used), *index[at + 1 :])
    if index and isinstance(index[0], int):
        part = _part(nested, index[0])
        return part[tuple(index[1:])] if len(index) > 1 else part
    inner: list[Any] = []
    dim, place, ragged = 0, nested._ragged_idx, nested._ragged_idx
    for one in index:
        if one is None:
            if not dim:
                raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
            inner.append(None)
            ragged += dim <= place
            continue
        if dim in (0, place) and one != slice(None):
            name = "select" if isinstance(one, int) else "slice"
            raise RuntimeError(f"{name}(): not supported for NestedTensor on {'dim=0' if not dim else 'ragged dim'}")
        if dim:
            inner.append(one)
            ragged -= isinstance(one, int) and dim < place
        dim += 1
    return nested._like(nested._values[tuple(inner)] if inner else nested._values, ragged)


@rule("narrow")
def _narrow(found: OpCall) -> Any:
    nested = found.nested
    dim, start, length = found.values[1:4]
    return nested._like(nested._values.narrow(found.dense_dim(dim), start, length))


@rule("split", "split_with_sizes")
def _split(found: OpCall) -> Any:
    dim = found.dense_dim(found.argument("dim"))
    return tuple(found.nested._like(part) for part in found.nested._values.split(found.values[1], dim))


@rule("chunk")
def _chunk(found: OpCall) -> Any:
    nested, chunks = found.nested, found.argument("chunks")
    if found.dim(found.argument("dim")):
        dim = found.dense_dim(found.argument("dim"))
        return tuple(nested._like(part) for part in nested._values.chunk(chunks, dim))
    if nested._lengths is not None:
        raise found.fail("not supported for nested tensors with holes")
    made = []
    for numbers in torch.arange(len(nested)).chunk(chunks):
        first, last = int(numbers[0]), int(numbers[-1])
        (start, _), (begin, length) = nested._bounds()[first], nested._bounds()[last]
        values = nested._values.narrow(nested._ragged_idx - 1, start, begin + length - start)
        offsets = nested._offsets[first : last + 2] - start
        made.append(NestedTensor(values, offsets, _ragged_idx=nested._ragged_idx))
    return tuple(made)
