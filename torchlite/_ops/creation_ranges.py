"""Ranges, grids, identity matrices and the indices of triangles."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np

from .._dispatch import REGISTRY, Out, Overlap, call, composite, out_variants
from .._dispatch.kernel_recorder import record_constant
from .._dispatch.public_functions import torch
from .._dispatch.shape_and_value_checks import check_new_size, set_requires_grad
from .._dispatch.shapes import tril_size
from .._dispatch.type_promotion import cast_scalar, check_int64
from .._types.dtypes import bool_, complex128, float64, get_default_dtype, int32, int64
from ._dtype_checks import refuse_floats
from .creation import (
    _TAIL,
    _create_by_kernel,
    _infer_dtype,
    _out_dtype,
    _resolve_device,
    _resolve_dtype,
    _to_python_number,
    _write_into_out,
)
from .node_graphs import cartesian_product_graph, combinations_graph, grids_graph, vander_graph


def _check_range(start, end, step, dtype):
    start, end, step = (check_int64(_to_python_number(value)) for value in (start, end, step))
    if not (step > 0 or step < 0):
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is int64 and not math.isfinite(step):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    if abs((end - start) / step) >= 2**63:
        raise RuntimeError("invalid size, possible overflow?")
    return start, end, step


@composite(
    f"arange(start=0, end=None, step=1, *, out=None, {_TAIL})",
    where="torch",
    out=Out(resize="rounding"),
    kwarg_aliases={"stop": "end"},
    array_api_first=True,
)
def arange(F, start, end, step, out, dtype, device, requires_grad):
    """Returns numbers from `start` up to but without `end`, at equal distances.

    ``arange(end)`` begins at 0.

    Args:
        start: The first number. Default: 0.
        end: The bound, which is not part of the result.
        step: The distance. Default: 1.
        dtype: The dtype of the result. Default: int64 for integers, else the default dtype.

    Returns:
        A tensor of shape ``(ceil((end - start) / step),)``.

    Raises:
        RuntimeError: The step is 0, or leads away from `end`.

    Example:
        >>> torch.arange(1, 7, 2)
        tensor([1, 3, 5])

    See also:
        `torch.linspace`.
    """
    if end is None:
        start, end = 0, start
    dtype = _resolve_dtype("arange", dtype, None)
    dtype = _out_dtype(
        out, dtype, dtype or (int64 if _infer_dtype(start, end, step).category < 2 else get_default_dtype())
    )
    if dtype is bool_ or dtype.category == 3:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.scalar_name}'")
    start, end, step = _check_range(start, end, step, dtype)
    if dtype is int64:
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero")
    elif dtype.category == 1:
        count = max(0, math.ceil((end - start) / step))
        start, step = int(start), int(step)
        if step == 0:
            return _create_by_kernel("_full", (count,), start, dtype, device=device, out=out)
        end = start + count * step
    made = call.create_tensor(
        "_arange", start, end, step, dtype, device=_resolve_device(device, out), requires_grad=requires_grad
    )
    return made if out is None else _write_into_out(REGISTRY["arange"], made, out)


@composite(
    f"range(start=0, end=None, step=1, *, out=None, {_TAIL})", where="torch", out=Out("unchecked", resize="silent")
)
def range_(F, start, end, step, out, dtype, device, requires_grad):
    """Returns numbers from `start` to `end`, both included. Deprecated: use `torch.arange`.

    Args:
        start: The first number. Default: 0.
        end: The last number.
        step: The distance. Default: 1.
        dtype: The dtype of the result. Default: the default dtype.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     torch.range(1, 3)
        tensor([1., 2., 3.])

    See also:
        `torch.arange`.
    """
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=3,
    )
    if end is None:
        start, end = 0, start
    dtype = _out_dtype(out, dtype, dtype or get_default_dtype())
    start, end, step = _check_range(start, end, step, dtype)
    count = math.floor((end - start) / step) + 1
    made = F.add_alpha(F.mul(F.arange(count, dtype=dtype, device=_resolve_device(device, out)), step), start)
    if out is not None:
        return _write_into_out(REGISTRY["range"], made, out)
    return set_requires_grad(made, requires_grad)


def _check_endpoints(name: str, start, end, dtype):
    ends = [(n, v.ndim) for n, v in (("start", start), ("end", end)) if isinstance(v, call.Tensor)]
    if any(ndim for _, ndim in ends):
        got = " and ".join(f"{label} with {ndim} dimension(s)" for label, ndim in ends)
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {got}.")
    start, end = check_int64(_to_python_number(start)), check_int64(_to_python_number(end))
    complex_ends = isinstance(start, complex) or isinstance(end, complex)
    if complex_ends and dtype is not None and dtype.category < 3:
        raise RuntimeError(
            f"torch.{name}(): inferred dtype c10::complex<float> can't be safely cast to passed dtype "
            f"{dtype.scalar_name}"
        )
    return start, end, dtype or (get_default_dtype().to_complex() if complex_ends else get_default_dtype())


def _create_spaced(name: str, kernel: str, start, end, steps, more, out, dtype, device, requires_grad):
    if steps is None:
        raise TypeError(f'{name}() missing 1 required positional arguments: "steps"')
    if not isinstance(steps, (int, np.integer)):
        raise TypeError(f"{name}(): argument 'steps' must be int, not {type(steps).__name__}")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    asked = _resolve_dtype(name, dtype, None) if out is None else out.dtype
    if any(isinstance(v, call.Tensor) and v._tl_level is not None for v in (start, end, *more)):
        return _create_spaced_batch(name, start, end, int(steps), more, asked)
    start, end, dtype = _check_endpoints(name, start, end, asked)
    if dtype is bool_:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    if dtype.category == 1:
        start, end = cast_scalar(start, dtype), cast_scalar(end, dtype)
    more = [_to_python_number(v) for v in more]
    place = _resolve_device(device, out)
    made = call.create_tensor(kernel, start, end, int(steps), *more, dtype, device=place, requires_grad=requires_grad)
    return made if out is None else _write_into_out(REGISTRY[name], made, out)


def _create_spaced_batch(name: str, start, end, steps: int, more, dtype):
    """`linspace` and `logspace` for batched start, end or base inside `vmap`."""
    device = next(v.device for v in (start, end, *more) if isinstance(v, call.Tensor))
    complex_ends = any(getattr(v, "dtype", None) and v.dtype.is_complex for v in (start, end))
    dtype = dtype or (get_default_dtype().to_complex() if complex_ends else get_default_dtype())
    wide = complex128 if dtype.is_complex else float64
    F = call.CALLBACKS.F
    start, end, *more = (F.to(v.detach(), wide) if isinstance(v, call.Tensor) else v for v in (start, end, *more))
    if dtype.category < 2 and steps > 1:  # ends are integers too
        start, end = (F.trunc(v) if isinstance(v, call.Tensor) else int(v) for v in (start, end))
    count = F.arange(steps, dtype=float64, device=device)
    step = (end - start) / max(steps - 1, 1)
    made = F.where(count < steps / 2, start + step * count, end - step * (steps - 1 - count))
    return F.to(F.pow(*more, made) if more else made, dtype)


def _linspace_without_endpoint(function, given, endpoint):
    """`linspace(endpoint=)`: the end left out where it is False."""
    if endpoint or not given.get("steps"):
        return function(**given)
    return torch.clone(function(**{**given, "steps": given["steps"] + 1})[:-1])


@composite(
    f"linspace(start, end, steps=None, *, out=None, {_TAIL})",
    where="torch",
    out=Out(resize="silent"),
    kwarg_aliases={"num": "steps", "endpoint": _linspace_without_endpoint},
    array_api_first=True,
)
def linspace(F, start, end, steps, out, dtype, device, requires_grad):
    """Returns numbers at equal distances from `start` to `end`, both included.

    Args:
        start: The first number, also a 0-d tensor.
        end: The last number, also a 0-d tensor.
        steps: The number of elements.

    Example:
        >>> torch.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])

    See also:
        `torch.logspace`, `torch.arange`.
    """
    return _create_spaced("linspace", "_linspace", start, end, steps, (), out, dtype, device, requires_grad)


@composite(
    f"logspace(start, end, steps=None, base=10.0, *, out=None, {_TAIL})", where="torch", out=Out(resize="silent")
)
def logspace(F, start, end, steps, base, out, dtype, device, requires_grad):
    """Returns powers of a base whose exponents are at equal distances.

    Args:
        start: The first exponent.
        end: The last exponent.
        steps: The number of elements.
        base: The base. Default: 10.

    Example:
        >>> torch.logspace(0, 2, 3)
        tensor([  1.,  10., 100.])

    See also:
        `torch.linspace`.
    """
    return _create_spaced("logspace", "_logspace", start, end, steps, (base,), out, dtype, device, requires_grad)


def _eye_on_diagonal(function, given, k):
    """`eye(k=)`: the ones on another diagonal."""
    device, rows = given.get("device"), given["n"]
    columns = given.get("m", rows)
    k = min(max(k, -rows), columns)
    place = torch.arange(columns, device=device)
    return (place == torch.arange(rows, device=device).unsqueeze(1) + k).to(given.get("dtype") or get_default_dtype())


@composite(
    f"eye(n, m=None, *, out=None, {_TAIL})",
    where="torch",
    out=Out("unchecked", resize="silent"),
    overlap=Overlap("allowed"),
    kwarg_aliases={"k": _eye_on_diagonal},
)
def eye(F, n, m, out, dtype, device, requires_grad):
    """Returns a matrix with ones on its main diagonal and zeros elsewhere.

    Args:
        n: The number of rows.
        m: The number of columns. Default: `n`.

    Example:
        >>> torch.eye(2)
        tensor([[1., 0.],
                [0., 1.]])

    See also:
        `torch.diag`.
    """
    n, m = (
        value.__index__() if isinstance(value, call.Tensor) and not value.dtype.is_floating_point else value
        for value in (n, n if m is None else m)
    )
    for position, (label, value) in enumerate((("n", n), ("m", m))):
        if not isinstance(value, (int, np.integer)):
            raise TypeError(
                f"eye(): argument '{label}' (position {position + 1}) must be int, not {type(value).__name__}"
            )
        if value < 0:
            raise RuntimeError(f"{label} must be greater or equal to 0, got {value}")
    dtype = _resolve_dtype("eye", dtype, get_default_dtype() if out is None else out.dtype)
    made = call.create_tensor(
        "_identity_matrix", n, m, dtype, device=_resolve_device(device, out), requires_grad=requires_grad
    )
    return made if out is None else out_variants.write_out(REGISTRY["eye"], made, out)


def _declare_indices(name: str, doc: str) -> None:
    @composite(
        f"{name}(row, col, offset=0, *, dtype=None, device=None, layout=None, pin_memory=False, requires_grad=False)",
        where="torch",
        doc=doc,
    )
    def indices(F, row, col, offset, dtype, device, requires_grad):
        for label, value in (("row", row), ("col", col)):
            if value < 0:
                raise RuntimeError(f"{label} must be non-negative, got{value}")
        kind = dtype or int64
        if kind not in (int64, int32):
            raise NotImplementedError(f"\"{name}\" not implemented for '{kind.scalar_name}'")
        count = tril_size(row, col, offset) if name == "tril_indices" else row * col - tril_size(row, col, offset - 1)
        check_new_size((2, count), kind.itemsize)
        return set_requires_grad(call.create_tensor(f"_{name}", row, col, offset, kind, device=device), requires_grad)


_declare_indices(
    "tril_indices",
    """Returns the indices of the elements on and below a diagonal of a matrix, row by row.

    Args:
        row: The number of rows.
        col: The number of columns.
        offset: The diagonal, counted from the main one upwards. Default: 0.
        dtype: int64 (default) or int32.

    Returns:
        A tensor of shape ``(2, count)``: the rows and the columns.

    Example:
        >>> torch.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]])

    See also:
        `torch.tril`.
    """,
)
_declare_indices(
    "triu_indices",
    """Returns the indices of the elements on and above a diagonal of a matrix, row by row.

    Args:
        row: The number of rows.
        col: The number of columns.
        offset: The diagonal, counted from the main one upwards. Default: 0.
        dtype: int64 (default) or int32.

    Returns:
        A tensor of shape ``(2, count)``: the rows and the columns.

    Example:
        >>> torch.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]])

    See also:
        `torch.triu`.
    """,
)


# --- grids and products ---------------------------------------------------------------------------


def _flatten_tensor_list(tensors) -> list:
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


@composite("meshgrid(*tensors, indexing=None)", where="torch", out=Out(supported=False), node_name=grids_graph)
def meshgrid(F, tensors, indexing):
    """Returns the coordinates of the grid that vectors span.

    Args:
        tensors: The vectors, each an argument or in one sequence.
        indexing: ``"ij"``: dimension ``i`` of the results belongs to vector ``i``. ``"xy"``: the first two
            dimensions are swapped. Default: ``"ij"``, with a warning.

    Returns:
        A tuple with one tensor a vector.

    Example:
        >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
        (tensor([[1, 1],
                [2, 2]]), tensor([[3, 4],
                [3, 4]]))

    See also:
        `numpy.meshgrid`, whose default is ``"xy"``.
    """
    tensors = _flatten_tensor_list(tensors)
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                f"{' '.join(str(n) for n in t.shape)}"
            )
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.device != tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning,
            stacklevel=3,
        )
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    shape = tuple(t.numel() for t in tensors)
    grids = []
    for i, t in enumerate(tensors):
        grid = F.expand(F.reshape(t, tuple(n if i == d else 1 for d, n in enumerate(shape))), shape)
        grids.append(F.transpose(grid, 0, 1) if indexing == "xy" and len(tensors) > 1 else grid)
    return tuple(grids)


def _check_vectors(tensors) -> None:
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")


@composite("cartesian_prod(*tensors)", where="torch", out=Out(supported=False), node_name=cartesian_product_graph)
def cartesian_prod(F, tensors):
    """Returns the Cartesian product of vectors, a combination a row.

    Args:
        tensors: The vectors, each an argument.

    Example:
        >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])

    See also:
        `itertools.product`.
    """
    tensors = _flatten_tensor_list(tensors)
    _check_vectors(tensors)
    if len(tensors) == 1:
        return tensors[0]
    return F.stack([F.reshape(g, (-1,)) for g in F.meshgrid(*tensors, indexing="ij")], 1)


def _combine_places(count: int, r: int, with_replacement: bool) -> np.ndarray:
    """Return the places of all combinations, one behind the other."""
    if r == 2:
        return np.stack(np.triu_indices(count, 0 if with_replacement else 1), 1).reshape(-1)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.fromiter(itertools.chain.from_iterable(choose(range(count), r)), np.int64)


@composite("combinations(Tensor input, r=2, with_replacement=False)", where="torch", node_name=combinations_graph)
def combinations(F, input, r, with_replacement):
    """Returns the combinations of a vector's elements, a combination a row.

    Args:
        input: The vector.
        r: The number of elements of a combination. Default: 2.
        with_replacement: Whether an element may be repeated. Default: ``False``.

    Example:
        >>> torch.combinations(torch.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])

    See also:
        `itertools.combinations`.
    """
    _check_vectors([input])
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return call.create_tensor("_empty", (0,), input.dtype, device=input.device)
    picks = _combine_places(input.shape[0], r, with_replacement)
    table = input._tl_kernels
    places = call.wrap_array(table, record_constant(table.from_numpy(picks)), int64)
    return F.reshape(F.index_select(input, 0, places), (len(picks) // r, r))


@composite("vander(Tensor x, N=None, increasing=False)", where="torch", node_name=vander_graph)
def vander(F, x, N, increasing):
    """Returns a Vandermonde matrix: the powers of each element of a vector in a row.

    Args:
        x: The vector, of shape ``(n,)``.
        N: The number of columns. Default: ``n``.
        increasing: Whether the powers ascend. Default: ``False``.

    Example:
        >>> torch.vander(torch.tensor([2, 3]))
        tensor([[2, 1],
                [3, 1]])

    See also:
        `torch.linalg.vander`, whose powers ascend.
    """
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    refuse_floats(N)
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    if x.dtype.category < 2:
        x = F.to(x, int64)
    powers = call.create_tensor("_full", (x.shape[0], min(count, 1)), 1, x.dtype, device=x.device)
    if count > 1:
        powers = F.cat([powers, F.cumprod(F.expand(F.unsqueeze(x, 1), (x.shape[0], count - 1)), 1)], 1)
    return powers if increasing else F.flip(powers, (1,))
