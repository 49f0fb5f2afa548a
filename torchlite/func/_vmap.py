"""`vmap`: vectorizes a function over a batch dimension. Helpers have PyTorch's names, because packages (tensordict)
patch them.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from .._dispatch.mode_restoring import restores_modes
from .._tensor import Tensor
from ..utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from ._batched_tensor import expose_batch_dim, hide_batch_dim, is_batched_at, move_dim
from ._vmap_interceptor import VmapLevel

_RANDOMNESS = ("error", "different", "same")


def _get_name(func: Any) -> str:
    """Return a function's name for error messages."""
    return getattr(func, "__name__", None) or repr(func)


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """Vectorize a function over a batch dimension of its arguments.

    The returned function calls ``func`` once, for all examples at the same time. Inside ``func`` a tensor has the shape
    of one example. Transforms nest: ``vmap(grad(f))`` computes per-example gradients.

    Args:
        func: Function of tensors, or of pytrees of tensors, that returns tensors.
        in_dims: Batch dimension of each argument, ``None`` for an argument without one. An int for all arguments, or a
            tuple with the structure of the arguments. Default: 0.
        out_dims: Batch dimension of each result, as an int or with the structure of the results. ``None`` for a result
            that is the same for all examples. Default: 0.
        randomness: What random ops do: ``"error"`` raises RuntimeError, ``"different"`` draws for each example,
            ``"same"`` draws once for all. Default: ``"error"``.
        chunk_size: Number of examples that are computed at once, to limit memory. Default: ``None``, all.

    Returns:
        A function of the batched arguments that returns the batched results.

    Raises:
        ValueError: ``chunk_size`` is below 1, or ``in_dims`` or ``out_dims`` does not fit at a call.
        RuntimeError: ``randomness`` has another value, or ``func`` depends on data: ``item()``, conditions on tensors
            and ops with data-dependent shapes.

    Example:
        >>> dot = torch.vmap(torch.dot)
        >>> dot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 2))
        tensor([3., 7.])
        >>> torch.vmap(torch.mul, in_dims=(0, None))(torch.tensor([1.0, 2.0]), torch.tensor(10.0))
        tensor([10., 20.])

    See also:
        `grad`, `jacrev`, `stack_module_state`.
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=() if not hasattr(func, "__dict__") else functools.WRAPPER_UPDATES)
    def batched(*args, **kwargs):
        return vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)

    return batched


def vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs):
    """Run a vmapped function."""
    size, dims, flat, spec = _process_batched_inputs(in_dims, args, func)
    if chunk_size is None:
        return _call_vmapped(func, size, dims, flat, spec, out_dims, randomness, kwargs)
    bounds = [(start, min(start + chunk_size, size)) for start in range(0, size, chunk_size)] or [(0, 0)]
    parts = []
    numbers: Iterator[contextlib.AbstractContextManager] = itertools.repeat(contextlib.nullcontext())
    if randomness == "same":
        numbers = _repeat_random_state(flat)
    for (start, stop), drawing in zip(bounds, numbers, strict=False):
        piece = [a if d is None else a.narrow(d, start, stop - start) for a, d in zip(flat, dims, strict=True)]
        with drawing:
            result = _call_vmapped(func, stop - start, dims, piece, spec, out_dims, randomness, kwargs)
        parts.append(tree_flatten(result))
    return _concat_chunks(parts, out_dims, func)


def _repeat_random_state(tensors) -> Iterator[contextlib.AbstractContextManager]:
    """Yield, for each chunk, a context that draws equal random numbers. The first advances the default generators, the
    others draw from copies.
    """
    from .._device.generators import default_generators, exclusive_default_generators, use_copied_generators

    default_generators([t for t in tensors if isinstance(t, Tensor)])  # initializes them
    copies: dict = {}
    yield exclusive_default_generators(copies)
    while True:
        yield use_copied_generators(copies)


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2):
    """Apply `vmap` to `chunks` parts of the batch in turn."""

    @functools.wraps(func)
    def batched(*args, **kwargs):
        size = _process_batched_inputs(in_dims, args, func)[0]
        return vmap_impl(func, in_dims, out_dims, randomness, -(-size // chunks), *args, **kwargs)

    return batched


def _concat_chunks(parts, out_dims, func):
    """Return the concatenated results of all chunks."""
    import torchlite as torch

    spec = parts[0][1]
    dims = _broadcast_to_and_flatten(out_dims, spec) or []
    columns = zip(*(flat for flat, _ in parts), strict=True)
    joined = [
        column[0] if dim is None or not isinstance(column[0], Tensor) else torch.cat(column, dim)
        for column, dim in zip(columns, dims, strict=True)
    ]
    return tree_unflatten(joined, spec)


def _process_batched_inputs(in_dims, args, func) -> tuple[int, list, list, TreeSpec]:
    """Validate arguments; return (batch size, batch dimension of each leaf, leaves, spec)."""
    name = _get_name(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) "
            f"tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    head = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if dims is None:
        raise ValueError(
            f"{head}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for i, (arg, dim) in enumerate(zip(flat, dims, strict=True)):
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(
                f"{head}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if isinstance(dim, int) and not isinstance(arg, Tensor):
            raise ValueError(
                f"{head}Got in_dim={dim} for an input but the input is of type {type(arg)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if dim is not None and (dim < -arg.dim() or dim >= arg.dim()):
            raise ValueError(
                f"{head}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {arg.dim()} so "
                f"expected in_dim to satisfy -{arg.dim()} <= in_dim < {arg.dim()}."
            )
        if dim is not None and dim < 0:
            dims[i] = dim % arg.dim()
    return _batch_size(dims, flat), dims, flat, spec


def _batch_size(dims, flat) -> int:
    sizes = [arg.size(dim) for dim, arg in zip(dims, flat, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


def _add_batch_dim(tensor, in_dim, vmap_level):
    """Wrap a batch as a BatchedTensor for the mapped function."""
    return hide_batch_dim(tensor, vmap_level, in_dim)


def _create_batched_inputs(flat_in_dims, flat_args, vmap_level, args_spec):
    """Return the mapped function's arguments as BatchedTensors."""
    examples = [
        a if d is None else _add_batch_dim(a, d, vmap_level) for a, d in zip(flat_args, flat_in_dims, strict=True)
    ]
    return tree_unflatten(examples, args_spec)


@restores_modes
def _call_vmapped(func, size, dims, flat, spec, out_dims, randomness, kwargs):
    with VmapLevel(size, randomness) as level:
        results = func(*_create_batched_inputs(dims, flat, level, spec), **kwargs)
    return _unwrap_batched(results, out_dims, level, size, func)


def _unwrap_batched(results, out_dims, vmap_level, batch_size, func):
    """Unwrap the mapped function's result into batches."""
    name = _get_name(func)
    flat, spec = tree_flatten(results)
    if isinstance(results, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]  # a single result may have a tuple of one
    dims = _broadcast_to_and_flatten(out_dims, spec)
    head = f"vmap({name}, ..., out_dims={out_dims})"
    if dims is None:
        raise ValueError(
            f"{head}(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    found = [_maybe_remove_batch_dim(name, x, vmap_level, batch_size, dim) for x, dim in zip(flat, dims, strict=True)]
    return tree_unflatten(found, spec)


def _maybe_remove_batch_dim(name, value, vmap_level, batch_size, dim):
    """Return a result as batch with its batch dimension at `dim`; non-tensors unchanged."""
    if not isinstance(value, Tensor):
        if dim is None:
            return value
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    if dim is None:
        if is_batched_at(value, vmap_level):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return value
    if not isinstance(dim, int):
        raise ValueError(
            f"vmap({name}, ..., out_dims={dim}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )
    ndim = value.ndim + 1
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return move_dim(expose_batch_dim(value, vmap_level), 0, dim % ndim)
