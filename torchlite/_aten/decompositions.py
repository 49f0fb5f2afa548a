"""Decompositions of ATen overloads into other overloads.

Some are written here. Others run the record's composite implementation, whose calls a mode sees (`decompose_mode`).
Core ATen ops and ops with neither form have no decomposition.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import torchlite as torch

from .._dispatch import call
from .._symbolic_shapes import SymInt
from . import ops
from .decompose_mode import decompose_next
from .overload_impl import base_overload
from .recorded_schemas import all_names, schema_entries

aten = ops.aten


def _decompose_composite(overload: Any) -> Callable:
    """Decompose by the record's composite implementation, although a mode would see the op itself."""

    def run_decomposed(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = overload._schema.place_by_position(args, kwargs)
        with decompose_next(overload):
            return (overload._run or overload._find_run())(*args, **kwargs)

    run_decomposed.__name__ = run_decomposed.__qualname__ = f"{overload._opname}_{overload._overloadname}"
    return run_decomposed


def _decompose_via_mode(overload: Any) -> Callable:
    """Decompose by calling the op, of which a mode sees the composite's calls."""
    running = threading.local()

    def run_decomposed(*args: Any, **kwargs: Any) -> Any:
        if getattr(running, "inside", False):
            return NotImplemented
        running.inside = True
        try:
            return overload(*args, **kwargs)
        finally:
            running.inside = False

    run_decomposed.__name__ = run_decomposed.__qualname__ = f"{overload._opname}_{overload._overloadname}"
    return run_decomposed


# -- written here ---------------------------------------------------------------------------------


def _split(self: Any, split_size: int, dim: int = 0) -> Any:
    n = self.shape[dim]
    sizes = [split_size] * (n // split_size) + ([n % split_size] if n % split_size else []) if split_size else [0]
    return aten.split_with_sizes.default(self, sizes or [0], dim)


def _real_or_imag(place: int) -> Callable:
    """Return the real or imaginary part of complex numbers as a view."""

    def select_part(self: Any) -> Any:
        if not self.dtype.is_complex:
            return aten.alias.default(self)
        return aten.select.int(aten.view_as_real.default(self), self.ndim, place)

    return select_part


def _squeeze(self: Any) -> Any:
    if any(isinstance(n, SymInt) for n in self.shape):
        return NotImplemented  # the mask is known only at run time
    return aten.squeeze.dims(self, [d for d, n in enumerate(self.shape) if n == 1])


def _stack(tensors: Any, dim: int = 0) -> Any:
    return aten.cat.default([aten.unsqueeze.default(t, dim) for t in tensors], dim)


def _transpose(self: Any, dim0: int, dim1: int) -> Any:
    dims = list(range(self.ndim))
    if dims:
        dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return aten.permute.default(self, dims)


def _baddbmm(self: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = aten.bmm.default(batch1, batch2)
    product = product if alpha == 1 else aten.mul.Tensor(product, alpha)
    return aten.add.Tensor(self if beta == 1 else aten.mul.Tensor(self, beta), product)


def _full_like(value: Any) -> Callable:
    def make_filled(size: Any, **options: Any) -> Any:
        dtype = options.pop("dtype", None) or torch.get_default_dtype()
        return aten.full.default(size, value, dtype=dtype, **options)

    return make_filled


def _new_full(value: Any) -> Callable:
    def new(self: Any, size: Any, *given: Any, **options: Any) -> Any:
        options = {name: option for name, option in options.items() if option is not None}
        defaults = {"dtype": self.dtype, "device": self.device}
        return aten.full.default(size, given[0] if given else value, **(defaults | options))

    return new


def _std(self: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return aten.sqrt.default(aten.var.correction(self, dim, correction=correction, keepdim=keepdim))


def _var_mean(self: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    variance = aten.var.correction(self, dim, correction=correction, keepdim=keepdim)
    return variance, aten.mean.dim(self, dim if dim else list(range(self.ndim)), keepdim)


def _apply_reduction(loss: Any, reduction: int) -> Any:
    if reduction == 0:
        return loss
    return aten.mean.default(loss) if reduction == 1 else aten.sum.dim_IntList(loss, [])


def _mse(self: Any, target: Any, reduction: int = 1) -> Any:
    return _apply_reduction(aten.pow.Tensor_Scalar(aten.sub.Tensor(self, target), 2), reduction)


def _log_sigmoid_forward(self: Any) -> Any:
    small = aten.minimum.default(self, aten.full.default([], 0, dtype=self.dtype, device=self.device))
    rest = aten.exp.default(aten.neg.default(aten.abs.default(self)))
    return aten.sub.Tensor(small, aten.log1p.default(rest)), rest


def _masked_fill(self: Any, mask: Any, value: Any) -> Any:
    if not isinstance(value, call.Tensor):
        value = aten.full.default([], value, dtype=self.dtype, device=self.device)
    return aten.where.self(mask, value, self)


def _lerp(self: Any, end: Any, weight: Any) -> Any:
    return aten.add.Tensor(self, aten.mul.Tensor(aten.sub.Tensor(end, self), weight))


def _attention(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Any = None,
    scale: Any = None,
) -> Any:  # fmt: skip
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    if key.shape[1] != query.shape[1]:  # grouped-query attention
        key, value = (torch.repeat_interleave(x, query.shape[1] // x.shape[1], 1) for x in (key, value))
    scores = aten.mul.Tensor(torch.matmul(query, aten.permute.default(key, [0, 1, 3, 2])), factor)
    if is_causal:
        size = list(scores.shape[-2:])
        rows, columns = (aten.arange.start_step(0, n, 1, device=query.device) for n in size)
        ahead = aten.gt.Tensor(columns, aten.unsqueeze.default(rows, 1))
        scores = _masked_fill(scores, ahead, -math.inf)
    elif attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = _masked_fill(scores, aten.logical_not.default(attn_mask), -math.inf)
    elif attn_mask is not None:
        scores = aten.add.Tensor(scores, attn_mask)
    sums = aten.log.default(aten.sum.dim_IntList(aten.exp.default(scores), [-1]))
    return torch.matmul(aten._softmax.default(scores, -1, False), value), sums


def _batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float,
) -> Any:  # fmt: skip
    if not training:
        norm = aten._native_batch_norm_legit_no_training.default
        return norm(input, weight, bias, running_mean, running_var, momentum, eps)
    if running_mean is None:
        return aten._native_batch_norm_legit.no_stats(input, weight, bias, training, momentum, eps)
    norm = aten._native_batch_norm_legit.default
    return norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _logsumexp(self: Any, dim: Any, keepdim: bool = False) -> Any:
    dims = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    if not self.numel():
        return aten.log.default(aten.sum.dim_IntList(aten.exp.default(self), dims, keepdim))
    most = aten.amax.default(self, dims, True)
    infinite = aten.eq.Scalar(aten.abs.default(most), math.inf)
    most = aten.where.self(infinite, _scalar_tensor_like(0, most), most)
    total = aten.log.default(aten.sum.dim_IntList(aten.exp.default(aten.sub.Tensor(self, most)), dims, keepdim))
    return aten.add.Tensor(total, most if keepdim or not self.ndim else aten.squeeze.dims(most, dims))


def _scalar_tensor_like(value: Any, like: Any) -> Any:
    return aten.full.default([], value, dtype=like.dtype, device=like.device)


def _conj(x: Any) -> Any:
    return torch.conj_physical(x) if x.is_complex() else x


def _tril_or_triu(upper: bool) -> Callable:
    def triangle(self: Any, diagonal: int = 0) -> Any:
        n, m = self.shape[-2:]
        rows = aten.unsqueeze.default(aten.arange.start_step(0, n, 1, device=self.device), 1)
        apart = aten.sub.Tensor(aten.arange.start_step(0, m, 1, device=self.device), rows)
        kept = aten.ge.Scalar(apart, diagonal) if upper else aten.le.Scalar(apart, diagonal)
        return aten.where.self(kept, self, _scalar_tensor_like(0, self))

    return triangle


def _all(overload: Any) -> Callable:
    def every(self: Any, *dims: Any, **options: Any) -> Any:
        found = aten.logical_not.default(overload(aten.logical_not.default(self), *dims, **options))
        return aten._to_copy.default(found, dtype=torch.uint8) if self.dtype is torch.uint8 else found

    return every


def _nll_forward(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    dim = 0 if self.ndim < 2 else 1
    if weight is not None:
        shape = [1] * self.ndim
        shape[dim] = weight.shape[0]
        self = aten.mul.Tensor(self, aten.view.default(weight, shape))
    zero = aten.full.default([], 0, dtype=target.dtype, device=target.device)
    counted = aten.ne.Scalar(target, ignore_index)
    safe = aten.where.self(counted, target, zero)
    places = aten.unsqueeze.default(safe, dim)
    found = aten.neg.default(aten.squeeze.dims(aten.gather.default(self, dim, places), [dim]))
    found = aten.where.self(counted, found, _scalar_tensor_like(0, self))
    if reduction == 0:
        return found, _scalar_tensor_like(0, self)
    weights = aten._to_copy.default(counted, dtype=self.dtype)
    if weight is not None:
        weights = aten.mul.Tensor(weights, aten.index.Tensor(weight, [safe]))
    total = aten.sum.dim_IntList(weights, [])
    loss = aten.sum.dim_IntList(found, [])
    return aten.div.Tensor(loss, total) if reduction == 1 else loss, total


def _upsample_nearest(self: Any, output_size: Any, *scales: Any, middle: bool = False) -> Any:
    indices: list[Any] = [None, None]
    dims = len(output_size)
    for place, n in enumerate(output_size):
        old = self.shape[2 + place]
        given = scales[place] if place < len(scales) else None
        step = old / n if given is None else 1 / given
        at = aten.arange.start_step(0, n, 1, dtype=torch.float32, device=self.device)
        at = aten.mul.Tensor(aten.add.Tensor(at, 0.5) if middle else at, step)
        at = aten.clamp.default(aten._to_copy.default(at, dtype=torch.int64), None, old - 1)
        indices.append(aten.view.default(at, [n if d == place else 1 for d in range(dims)]))
    return aten.index.Tensor(self, indices)


def _xlogy(self: Any, other: Any) -> Any:
    first = self if isinstance(self, call.Tensor) else _scalar_tensor_like(self, other)
    second = other if isinstance(other, call.Tensor) else _scalar_tensor_like(other, self)
    product = aten.mul.Tensor(first, aten.log.default(second))
    found = aten.where.self(aten.eq.Scalar(first, 0), _scalar_tensor_like(0, product), product)
    return aten.where.self(aten.isnan.default(second), _scalar_tensor_like(math.nan, product), found)


def _binary_cross_entropy(self: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    least = _scalar_tensor_like(-100, self)
    no = aten.maximum.default(aten.log1p.default(aten.neg.default(self)), least)
    yes = aten.maximum.default(aten.log.default(self), least)
    loss = aten.sub.Tensor(aten.mul.Tensor(aten.sub.Tensor(target, 1), no), aten.mul.Tensor(target, yes))
    return _apply_reduction(loss if weight is None else aten.mul.Tensor(loss, weight), reduction)


def _binary_cross_entropy_backward(
    grad_output: Any, self: Any, target: Any, weight: Any = None, reduction: int = 1
) -> Any:
    variance = aten.clamp_min.default(aten.mul.Tensor(aten.rsub.Scalar(self, 1), self), 1e-12)
    grad = aten.div.Tensor(aten.mul.Tensor(grad_output, aten.sub.Tensor(self, target)), variance)
    if weight is not None:
        grad = aten.mul.Tensor(grad, weight)
    return aten.div.Scalar(grad, self.numel()) if reduction == 1 else grad


def _count_nonzero(self: Any, dim: Any = None) -> Any:
    dims = [] if dim is None else list(dim) if isinstance(dim, (list, tuple)) else [dim]
    return aten.sum.dim_IntList(self if self.dtype is torch.bool else aten.ne.Scalar(self, 0), dims)


def _diagonal_mask(n: int, m: int, offset: int, device: Any) -> Any:
    """Return the mask of a diagonal of an n x m matrix."""
    rows = aten.unsqueeze.default(aten.arange.start_step(0, n, 1, device=device), -1)
    return aten.eq.Tensor(aten.arange.start_step(0, m, 1, device=device), aten.add.Tensor(rows, offset))


def _eye(n: int, m: int | None = None, **options: Any) -> Any:
    dtype = options.pop("dtype", None) or torch.get_default_dtype()
    return aten._to_copy.default(_diagonal_mask(n, n if m is None else m, 0, options.get("device")), dtype=dtype)


def _diag_embed(self: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    size, zero = self.shape[-1] + abs(offset), _scalar_tensor_like(0, self)
    pad = [0, 0, 0, offset] if offset > 0 else [0, -offset]
    column = aten.unsqueeze.default(self, -1 if offset > 0 else -2)
    wide = aten.constant_pad_nd.default(column, pad) if offset else column
    found = aten.where.self(_diagonal_mask(size, size, offset, self.device), wide, zero)
    order = list(range(found.ndim - 2))
    first, second = dim1 % found.ndim, dim2 % found.ndim
    for place, dim in sorted(((first, found.ndim - 2), (second, found.ndim - 1))):
        order.insert(place, dim)
    return aten.permute.default(found, order)


def _index_at_dim(index: Any, dim: int, ndim: int) -> list:
    """Return an index of one dimension for `index_put`."""
    return [None] * (dim % max(ndim, 1)) + [index]


def _index_add(self: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    scaled = source if alpha == 1 else aten.mul.Tensor(source, alpha)
    if not self.ndim:
        return aten.add.Tensor(self, aten.sum.dim_IntList(scaled, []))
    return aten.index_put.default(self, _index_at_dim(index, dim, self.ndim), scaled, True)


def _index_copy(self: Any, dim: int, index: Any, source: Any) -> Any:
    if not self.ndim:
        return aten.squeeze.dims(_index_copy(aten.unsqueeze.default(self, 0), 0, index, source), [0])
    return aten.index_put.default(self, _index_at_dim(index, dim, self.ndim), source)


def _index_fill(self: Any, dim: int, index: Any, value: Any) -> Any:
    filling = value if isinstance(value, call.Tensor) else _scalar_tensor_like(value, self)
    if not self.ndim:
        return aten.squeeze.dims(_index_fill(aten.unsqueeze.default(self, 0), 0, index, filling), [0])
    return aten.index_put.default(self, _index_at_dim(index, dim, self.ndim), filling)


def _roll(self: Any, shifts: Any, dims: Any = ()) -> Any:
    shifts, dims = ([x] if isinstance(x, int) else list(x) for x in (shifts, dims))
    if not dims:
        flat = aten.view.default(aten.clone.default(self, memory_format=torch.contiguous_format), [-1])
        return aten.view.default(_roll(flat, shifts, [0]), list(self.shape))
    for shift, dim in zip(shifts, dims, strict=True):
        size = self.shape[dim]
        if not size:
            return aten.clone.default(self)
        places = aten.add.Tensor(aten.arange.start_step(0, size, 1, device=self.device), (size - shift) % size)
        self = aten.index_select.default(self, dim, aten.fmod.Scalar(places, size))
    return self


def _logaddexp(base: Any) -> Callable:
    """Return log(exp(a) + exp(b)), in base 2 if given, computed from the maximum for stability."""

    def compute_logaddexp(self: Any, other: Any) -> Any:
        apart = aten.neg.default(aten.abs.default(aten.sub.Tensor(self, other)))
        power = aten.exp.default(apart) if base is None else aten.exp.default(aten.mul.Tensor(apart, math.log(base)))
        more = aten.log1p.default(power)
        total = aten.add.Tensor(
            aten.maximum.default(self, other), more if base is None else aten.mul.Tensor(more, 1 / math.log(base))
        )
        infinite = aten.logical_and.default(aten.isinf.default(self), aten.eq.Tensor(self, other))
        return aten.where.self(infinite, self, total)

    return compute_logaddexp


def _logit(self: Any, eps: float | None = None) -> Any:
    kept = self if eps is None else aten.clamp.default(self, eps, 1 - eps)
    return aten.log.default(aten.div.Tensor(kept, aten.rsub.Scalar(kept, 1)))


def _nan_to_num(self: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if not self.dtype.is_floating_point:
        return aten.clone.default(self)
    ends = torch.finfo(self.dtype)
    found = aten.where.self(aten.isnan.default(self), _scalar_tensor_like(nan or 0.0, self), self)
    high, low = (ends.max if posinf is None else posinf), (ends.min if neginf is None else neginf)
    found = aten.where.self(aten.eq.Scalar(self, math.inf), _scalar_tensor_like(high, self), found)
    return aten.where.self(aten.eq.Scalar(self, -math.inf), _scalar_tensor_like(low, self), found)


def _sgn(self: Any) -> Any:
    if not self.dtype.is_complex:
        return aten.sign.default(self)
    return aten.where.self(
        aten.eq.Scalar(self, 0), _scalar_tensor_like(0, self), aten.div.Tensor(self, aten.abs.default(self))
    )


def _sinc(self: Any) -> Any:
    turned = aten.mul.Tensor(self, math.pi)
    return aten.where.self(
        aten.eq.Scalar(self, 0), _scalar_tensor_like(1, turned), aten.div.Tensor(aten.sin.default(turned), turned)
    )


def _entropy(self: Any) -> Any:
    product = aten.neg.default(aten.mul.Tensor(self, aten.log.default(self)))
    found = aten.where.self(aten.eq.Scalar(self, 0), _scalar_tensor_like(0, product), product)
    return aten.where.self(aten.lt.Scalar(self, 0), _scalar_tensor_like(-math.inf, product), found)


def _xlog1py(self: Any, other: Any) -> Any:
    first = self if isinstance(self, call.Tensor) else _scalar_tensor_like(self, other)
    second = other if isinstance(other, call.Tensor) else _scalar_tensor_like(other, self)
    product = aten.mul.Tensor(first, aten.log1p.default(second))
    found = aten.where.self(aten.eq.Scalar(first, 0), _scalar_tensor_like(0, product), product)
    return aten.where.self(aten.isnan.default(second), _scalar_tensor_like(math.nan, product), found)


def _heaviside(self: Any, values: Any) -> Any:
    above = aten._to_copy.default(aten.gt.Scalar(self, 0), dtype=self.dtype)
    return aten.where.self(aten.eq.Scalar(self, 0), values, above)


def _replication_pad1d(self: Any, padding: Any) -> Any:
    left, right = padding
    size = self.shape[-1]
    places = aten.clamp.default(aten.arange.start_step(-left, size + right, 1, device=self.device), 0, size - 1)
    return aten.index.Tensor(self, _index_at_dim(places, -1, self.ndim))


def _decompose_in_place(overload: Any) -> Callable | None:
    """Decompose an in-place op into the out-of-place op and a copy."""
    name = overload._opname
    base = getattr(aten, name[:-1], None) if name.endswith("_") and not name.endswith("__") else None
    turns = "h" in overload.entry.flags  # changes the view, not the memory
    if (
        base is None
        or turns
        or name == "copy_"
        or name.startswith("_foreach")
        or overload._overloadname not in base.overloads()
    ):
        return None
    try:
        function = base_overload(overload, base)
    except NotImplementedError:
        return None

    def copy_result_back(self: Any, *args: Any, **kwargs: Any) -> Any:
        return aten.copy_.default(self, function(self, *args, **kwargs))

    return copy_result_back


WRITTEN: dict[str, Callable] = {
    "addcmul.default": lambda self, tensor1, tensor2, *, value=1: aten.add.Tensor(
        self, aten.mul.Tensor(aten.mul.Tensor(tensor1, tensor2), value)
    ),
    "addcdiv.default": lambda self, tensor1, tensor2, *, value=1: aten.add.Tensor(
        self, aten.mul.Tensor(aten.div.Tensor(tensor1, tensor2), value)
    ),
    "t.default": lambda self: _transpose(self, 0, 1) if self.ndim == 2 else self, "transpose.int": _transpose,
    "real.default": _real_or_imag(0), "imag.default": _real_or_imag(1),
    "stack.default": _stack, "split.Tensor": _split, "unsafe_split.Tensor": _split, "baddbmm.default": _baddbmm,
    "unbind.int": lambda self, dim=0: [aten.select.int(self, dim, i) for i in range(self.shape[dim])],
    "square.default": lambda self: aten.pow.Tensor_Scalar(self, 2),
    "rsub.Scalar": lambda self, other, alpha=1: aten.sub.Tensor(
        aten.full.default([], other, dtype=torch.result_type(self, other), device=self.device), self, alpha=alpha
    ),
    "rsub.Tensor": lambda self, other, *, alpha=1: aten.sub.Tensor(other, self, alpha=alpha),
    "mv.default": lambda self, vec: aten.squeeze.dims(aten.mm.default(self, aten.unsqueeze.default(vec, 1)), [1]),
    "dot.default": lambda self, tensor: aten.sum.dim_IntList(aten.mul.Tensor(self, tensor), []),
    "zeros.default": _full_like(0), "ones.default": _full_like(1), "new_zeros.default": _new_full(0),
    "new_ones.default": _new_full(1),
    "new_full.default": _new_full(None),
    "zeros_like.default": lambda self, **options: aten.full_like.default(self, 0, **options),
    "ones_like.default": lambda self, **options: aten.full_like.default(self, 1, **options),
    "std.correction": _std, "var_mean.correction": _var_mean,
    "silu.default": lambda self: aten.mul.Tensor(self, aten.sigmoid.default(self)),
    "hardsigmoid.default": lambda self: aten.div.Tensor(aten.clamp.default(aten.add.Tensor(self, 3), 0, 6), 6),
    "hardswish.default": lambda self: aten.div.Tensor(
        aten.mul.Tensor(self, aten.clamp.default(aten.add.Tensor(self, 3), 0, 6)), 6
    ),
    "relu6.default": lambda self: aten.hardtanh.default(self, 0, 6),
    "clamp_min.default": lambda self, min: aten.clamp.default(self, min),
    "clamp_max.default": lambda self, max: aten.clamp.default(self, None, max),
    "clamp_min.Tensor": lambda self, min: aten.clamp.Tensor(self, min),
    "clamp_max.Tensor": lambda self, max: aten.clamp.Tensor(self, None, max),
    "mse_loss.default": _mse, "log_sigmoid_forward.default": _log_sigmoid_forward,
    "l1_loss.default": lambda self, target, reduction=1: _apply_reduction(
        aten.abs.default(aten.sub.Tensor(self, target)), reduction
    ),
    "masked_fill.Scalar": _masked_fill, "masked_fill.Tensor": _masked_fill, "lerp.Scalar": _lerp, "lerp.Tensor": _lerp,
    "floor_divide.default": lambda self, other: aten.div.Tensor_mode(self, other, rounding_mode="floor"),
    "sum.default": lambda self, *, dtype=None: aten.sum.dim_IntList(self, [], dtype=dtype),
    "_unsafe_view.default": lambda self, size: aten.view.default(self, size),
    "detach.default": lambda self: aten.alias.default(self),
    "squeeze.default": _squeeze,
    "squeeze.dim": lambda self, dim: aten.squeeze.dims(self, [dim]),
    "_scaled_dot_product_flash_attention_for_cpu.default": _attention, "native_batch_norm.default": _batch_norm,
    "threshold.default": lambda self, threshold, value: aten.where.self(
        aten.le.Scalar(self, threshold), aten.full.default([], value, dtype=self.dtype, device=self.device), self
    ),
    "threshold_backward.default": lambda grad_output, self, threshold: aten.where.self(
        aten.le.Scalar(self, threshold),
        aten.full.default([], 0, dtype=grad_output.dtype, device=self.device), grad_output,
    ),
    "logsumexp.default": _logsumexp, "tril.default": _tril_or_triu(False), "triu.default": _tril_or_triu(True),
    "all.default": _all(aten.any.default), "all.dim": _all(aten.any.dim), "all.dims": _all(aten.any.dims),
    "nll_loss_forward.default": _nll_forward, "nll_loss2d_forward.default": _nll_forward,
    **{f"upsample_nearest{d}d.default": _upsample_nearest for d in (1, 2, 3)},
    **{f"xlogy.{which}": _xlogy for which in ("Tensor", "Scalar_Self", "Scalar_Other")},
    **{f"_upsample_nearest_exact{d}d.default": functools.partial(_upsample_nearest, middle=True) for d in (1, 2, 3)},
    **{f"special_xlog1py.{which}": _xlog1py for which in ("default", "self_scalar", "other_scalar")},
    "binary_cross_entropy.default": _binary_cross_entropy,
    "binary_cross_entropy_backward.default": _binary_cross_entropy_backward,
    "count_nonzero.default": _count_nonzero, "count_nonzero.dim_IntList": _count_nonzero,
    "diag_embed.default": _diag_embed, "eye.default": _eye, "eye.m": _eye,
    "fill.Tensor": lambda self, value: aten.copy.default(self, value),
    "floor_divide.Scalar": lambda self, other: aten.div.Scalar_mode(self, other, rounding_mode="floor"),
    "heaviside.default": _heaviside, "index_add.default": _index_add, "index_copy.default": _index_copy,
    "index_fill.int_Scalar": _index_fill, "index_fill.int_Tensor": _index_fill,
    "lift_fresh_copy.default": lambda self: aten.clone.default(self),
    "logaddexp.default": _logaddexp(None), "logaddexp2.default": _logaddexp(2), "logit.default": _logit,
    "nan_to_num.default": _nan_to_num, "replication_pad1d.default": _replication_pad1d, "roll.default": _roll,
    "sgn.default": _sgn, "sinc.default": _sinc, "special_entr.default": _entropy,
    "zero_.default": lambda self: aten.copy_.default(self, aten.full_like.default(self, 0)),
    "squeeze_copy.dims": lambda self, dim: aten.clone.default(aten.squeeze.dims(self, dim)),
    "take.default": lambda self, index: aten.index.Tensor(aten.view.default(self, [-1]), [index]),
    "unsafe_split_with_sizes.default": lambda self, split_sizes, dim=0: aten.split_with_sizes.default(
        self, split_sizes, dim
    ),
    "frac.default": lambda self: aten.sub.Tensor(self, aten.trunc.default(self)),
    "deg2rad.default": lambda self: aten.mul.Tensor(self, math.pi / 180),
    "rad2deg.default": lambda self: aten.mul.Tensor(self, 180 / math.pi),
    "isposinf.default": lambda self: aten.eq.Scalar(self, math.inf),
    "isneginf.default": lambda self: aten.eq.Scalar(self, -math.inf),
    "arange.default": lambda end, **options: aten.arange.start_step(0, end, 1, **options),
    "arange.start": lambda start, end, **options: aten.arange.start_step(start, end, 1, **options),
    "std_mean.correction": lambda self, dim=None, *, correction=None, keepdim=False: (
        _std(self, dim, correction=correction, keepdim=keepdim),
        aten.mean.dim(self, dim if dim else list(range(self.ndim)), keepdim),
    ),
    "vdot.default": lambda self, other: aten.dot.default(
        _conj(self), other
    ),
    "sigmoid_backward.default": lambda grad_output, output: aten.mul.Tensor(
        grad_output, _conj(aten.mul.Tensor(output, aten.rsub.Scalar(output, 1)))
    ),
    "tanh_backward.default": lambda grad_output, output: aten.mul.Tensor(
        grad_output, _conj(aten.rsub.Scalar(aten.mul.Tensor(output, output), 1))
    ),
}  # fmt: skip


# Overloads whose record's composite calls other ATen ops and never itself.
_COMPOSITES = frozenset(
    """
    _chunk_cat.default _euclidean_dist.default _log_softmax_backward_data.default _prelu_kernel.default
    _prelu_kernel_backward.default _safe_softmax.default _softmax_backward_data.default addr.default
    affine_grid_generator.default alias_copy.default aminmax.default
    binary_cross_entropy_with_logits.default block_diag.default celu.default channel_shuffle.default
    diagonal_backward.default diagonal_copy.default elu_backward.default expand_copy.default
    gelu_backward.default glu.default glu_backward.default hardshrink.default hardsigmoid_backward.default
    hardswish_backward.default hardtanh_backward.default huber_loss.default huber_loss_backward.default
    leaky_relu_backward.default linalg_cross.default log_sigmoid_backward.default logit_backward.default
    max_unpool2d.default max_unpool3d.default mish.default mish_backward.default mse_loss_backward.default
    multi_margin_loss.default mvlgamma.default nansum.default native_batch_norm_backward.default
    native_dropout_backward.default new_empty.default nll_loss2d_backward.default nll_loss_backward.default
    norm.Scalar norm.ScalarOpt_dim pixel_shuffle.default pixel_unshuffle.default reflection_pad1d_backward.default
    reflection_pad3d_backward.default renorm.default rot90.default select_backward.default silu_backward.default
    slice_backward.default smooth_l1_loss.default smooth_l1_loss_backward.default soft_margin_loss.default
    soft_margin_loss_backward.default softplus.default softplus_backward.default softshrink.default
    split_with_sizes_copy.default squeeze_copy.default squeeze_copy.dim t_copy.default trace.default
    transpose_copy.int unfold_copy.default unsqueeze_copy.default
    """.split()
)


def is_core(overload: Any) -> bool:
    """True if an overload is core ATen."""
    return "a" in overload.entry.flags


# Composite ops that always decompose: they may return their argument.
_ALWAYS_DECOMPOSED = frozenset(
    """
    _batch_norm_impl_index alpha_dropout atleast_1d atleast_2d atleast_3d batch_norm cartesian_prod conj_physical
    dropout feature_alpha_dropout feature_dropout unsafe_chunk
    """.split()
)


def is_kept_as_one_op(overload: Any) -> bool:
    """True if a composite op is kept as one op unless a decomposition is requested."""
    if not getattr(overload, "is_implicit", False) or overload._opname in _ALWAYS_DECOMPOSED:
        return False
    schema = overload._schema
    returned = [r for r in schema.returns if r.type.base == "Tensor"]
    return bool(returned) and not any(a.alias_info is not None for a in (*schema.arguments, *schema.returns))


def find_decomposition(overload: Any) -> Callable | None:
    """Return the decomposition of an overload, None for core ATen ops and ops without one."""
    name = str(overload).removeprefix("aten.")
    if name in WRITTEN:
        return WRITTEN[name]
    if is_core(overload):
        return None
    if overload.is_implicit:
        return _decompose_via_mode(overload)
    if name in _COMPOSITES:
        return _decompose_composite(overload)
    return _decompose_in_place(overload)


def find_any_decomposition(overload: Any) -> Callable:
    """Return the decomposition of an overload, also one to ops that are no core ATen ops."""
    return find_decomposition(overload) or _decompose_composite(overload)


def all_decompositions() -> dict[Any, Callable]:
    """Return the decompositions of all overloads that have one."""
    found = {}
    for name in all_names():
        packet = getattr(aten, name)
        for which in schema_entries(name):
            overload = getattr(packet, which)
            if overload.entry.is_script:
                continue
            made = find_decomposition(overload)
            if made is not None:
                found[overload] = made
    return found
