"""Embeddings (embedding, embedding_bag, one_hot) and linear layers (linear, bilinear)."""

import math

from torchlite._dispatch import Overlap, composite, op
from torchlite._dispatch.argument_checks import min_and_max
from torchlite._types.dtypes import float32, float64, int32, int64

# --- linear and bilinear --------------------------------------------------------------------------


def _linear(F, input, weight, bias=None):
    if weight.ndim == 1:
        out = F.matmul(input, weight)
    else:
        out = F.matmul(input, F.transpose(weight, 0, 1))
    return out if bias is None else F.add(out, bias)


def _outer_gradient(F, grad, input):
    """``grad^T conj(input)``, summed over every leading dimension: (..., out), (..., in) -> (out, in)."""
    if grad.ndim != 2:  # -1 is ambiguous for an array without elements
        rows = math.prod(grad.shape[:-1])
        grad, input = F.reshape(grad, (rows, grad.shape[-1])), F.reshape(input, (rows, input.shape[-1]))
    return F.matmul(F.transpose(grad, 0, 1), F.conj(input))


def _linear_input_vjp(F, g, weight):
    if weight.ndim == 1:
        return F.mul(F.unsqueeze(g, -1), F.conj(weight))
    return F._linear_input_grad(g, weight)


def _linear_weight_vjp(F, g, input, weight_shape):
    if len(weight_shape) == 1:
        return F.mul(F.unsqueeze(g, -1), F.conj(input))
    return F._linear_weight_grad(g, input)


def _check_added(bias, shape):
    """Raise unless a bias can be added to a product of this shape, whose leading dimensions PyTorch flattens."""
    rows = math.prod(shape[:-1])
    target = [rows, shape[-1]] if len(shape) < 3 or bias.ndim < 2 else list(shape)
    if len(target) == 2 and bias.ndim > 2:
        raise RuntimeError(
            f"expand(torch.{bias.dtype.scalar_name}Tensor{{{list(bias.shape)}}}, size={target}): the number of sizes "
            f"provided (2) must be greater or equal to the number of dimensions in the tensor ({bias.ndim})"
        )
    for back, (have, want) in enumerate(zip(reversed(bias.shape), reversed(target), strict=False), 1):
        dim = len(target) - back
        if have not in (1, want):
            if len(target) > 2:
                raise RuntimeError(
                    f"The size of tensor a ({want}) must match the size of tensor b ({have}) at non-singleton "
                    f"dimension {dim}"
                )
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
                f"dimension {dim}.  Target sizes: {target}.  Tensor sizes: {list(bias.shape)}"
            )


def _linear_meta(input, weight, bias):
    if not input.ndim or not weight.ndim:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if weight.ndim == 1 and bias is not None:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    rows = 1
    for size in input.shape[:-1]:
        rows *= size
    features = input.shape[-1] if input.ndim else 1
    if features != weight.shape[-1]:
        if weight.ndim == 1:
            raise RuntimeError(
                f"inconsistent tensor size, expected tensor [{features}] and src [{weight.shape[0]}] to have the "
                f"same number of elements, but got {features} and {weight.shape[0]} elements respectively"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{features} and {weight.shape[1]}x{weight.shape[0]})"
        )
    if bias is not None:  # by addmm then
        for name, other in (("self", bias), ("mat1", input)):
            if other.dtype is not weight.dtype:
                raise RuntimeError(
                    f"{name} and mat2 must have the same dtype, but got {other.dtype.scalar_name} and "
                    f"{weight.dtype.scalar_name}"
                )
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {_c_name(input.dtype)} != {_c_name(weight.dtype)}"
        )
    shape = tuple(input.shape[:-1]) + tuple(weight.shape[:-1])
    if bias is not None:
        _check_added(bias, shape)
    return shape, input.dtype


def _c_name(dtype):
    names = {
        "float32": "float",
        "float64": "double",
        "float16": "c10::Half",
        "bfloat16": "c10::BFloat16",
        "int64": "long int",
    }
    return names.get(dtype.name, dtype.name)


def _linear_bias_vjp(F, g, bias_shape):
    # Another shape than (out,) is summed down to by the engine.
    return F._linear_bias_grad(g) if g.ndim > 1 and tuple(bias_shape) == (g.shape[-1],) else g


def _row_sum(F, grad):
    return F.sum(grad, tuple(range(grad.ndim - 1)), False)


op(
    "_linear_input_grad(Tensor grad, Tensor weight)",
    where="",
    composite=lambda F, grad, weight: F.matmul(grad, F.conj(weight)),
)
op("_linear_bias_grad(Tensor grad)", where="", composite=_row_sum)
op("_linear_weight_grad(Tensor grad, Tensor input)", where="", composite=_outer_gradient)


def _linear_node_name(node):
    """A product of matrices with a bias is PyTorch's `addmm`."""
    return "AddmmBackward0" if len(node._shape) == 2 and node._edges[-1] is not None else "ViewBackward0"


op(
    "linear(Tensor input, Tensor weight, Tensor? bias=None)",
    where="nn.functional",
    composite=_linear,
    meta=_linear_meta,
    vjp={"input": _linear_input_vjp, "weight": _linear_weight_vjp, "bias": _linear_bias_vjp},
    doc="""``input @ weight.T + bias``: (..., in), (out, in), (out) -> (..., out).

    >>> F.linear(torch.ones(1, 2), torch.tensor([[1.0, 2.0]]), torch.tensor([0.5]))
    tensor([[3.5000]])
    """,
    overlap=Overlap(operands="partial"),
    node_name=_linear_node_name,
)


@composite("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)", where="torch nn.functional")
def bilinear(F, input1, input2, weight, bias):
    """``input1^T weight[k] input2 + bias[k]`` for each output feature k: (..., in1), (..., in2), (out, in1, in2) ->
    (..., out).
    """
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for dim, (first, second) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if first != second:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {dim}: got {first} and {second}"
            )
    out, size1, size2 = weight.shape
    for number, tensor, size in ((1, input1, size1), (2, input2, size2)):
        if tensor.shape[-1] != size:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got {tensor.shape[-1]} but expected {size}"
            )
    if bias is not None and bias.shape[0] != out:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {out}")
    lead = tuple(input1.shape[:-1])
    half = F.matmul(input1, weight.permute(1, 0, 2).reshape(size1, out * size2)).reshape(*lead, out, size2)
    result = F.matmul(half, input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


# --- embedding ------------------------------------------------------------------------------------


def _embedding(F, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    rows = F.index_select(weight, 0, F.to(F.reshape(indices, (-1,)), int64))
    return F.reshape(rows, tuple(indices.shape) + tuple(weight.shape[1:]))


def _embedding_backward(F, grad, indices, rows, padding_idx, scale_grad_by_freq):
    flat = F.to(F.reshape(indices, (-1,)), int64)
    grad = F.reshape(grad, (flat.shape[0], grad.shape[-1]))
    if padding_idx >= 0:
        keep = F.to(F.ne(flat, padding_idx), F.dtype_of(grad))
        grad = F.mul(grad, F.unsqueeze(keep, 1))
    if scale_grad_by_freq:
        ones = F.to(F._ones_like(flat), F.dtype_of(grad))
        counts = F.index_add(F._new_zeros(grad, (rows,)), 0, flat, ones)
        grad = F.div(grad, F.unsqueeze(F.index_select(counts, 0, flat), 1))
    return F.index_add(F._new_zeros(grad, (rows, grad.shape[1])), 0, flat, grad)


def _embedding_meta(weight, indices):
    check_indices(indices, "embedding")
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    return tuple(indices.shape) + tuple(weight.shape[1:]), weight.dtype


def check_indices(indices, function, argument="argument #1 'indices'"):
    """RuntimeError for indices that are no int32 or int64."""
    if indices.dtype is not int64 and indices.dtype is not int32:
        raise RuntimeError(
            f"Expected tensor for {argument} to have one of the following scalar types: Long, Int; but got "
            f"torch.{indices.dtype.scalar_name}Tensor instead (while checking arguments for {function})"
        )


op(
    "_embedding_backward(Tensor grad, Tensor indices, rows, padding_idx, scale_grad_by_freq)",
    where="",
    composite=_embedding_backward,
)
op(
    "embedding(Tensor weight, Tensor indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False)",
    where="torch",
    composite=_embedding,
    meta=_embedding_meta,
    vjp={
        "weight": lambda F, g, indices, weight_shape, padding_idx, scale_grad_by_freq: F._embedding_backward(
            g, indices, weight_shape[0], padding_idx, scale_grad_by_freq
        )
    },
    doc="""The rows of ``weight`` that ``indices`` name: (rows, features), (*) -> (*, features). Row ``padding_idx``
    gets no gradient.
    """,
    sparse_grad_param="sparse",
)


@composite("embedding_renorm_(Tensor input, Tensor indices, max_norm, norm_type=2.0)", where="torch")
def embedding_renorm_(F, input, indices, max_norm, norm_type):
    """Scale, in place, the rows of ``input`` that ``indices`` name and whose norm is above ``max_norm``, so that it is
    just below.
    """
    weight = input.detach()
    used = F.unique(indices.reshape(-1))
    rows = weight[used]
    norms = rows.norm(norm_type, 1, keepdim=True)
    factor = F.where(norms > max_norm, max_norm / (norms + 1e-7), F._ones_like(norms))
    weight[used] = rows * factor
    return input


_MODES = ("sum", "mean", "max")


def _check_bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx):
    if weight.ndim != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if not weight.dtype.is_floating_point:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got {weight.type()} instead (while checking arguments for embedding_bag)"
        )
    if indices.ndim != 1:
        raise RuntimeError(f"input has to be a 1D Tensor, but got Tensor of dimension {indices.ndim}")
    if offsets.ndim != 1:
        raise RuntimeError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.ndim}")
    check_indices(indices, "embedding_bag", "argument #2 'indices'")
    check_indices(offsets, "embedding_bag", "argument #3 'offsets'")
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
        )
    if include_last_offset and offsets.numel() == 0:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    low, high = min_and_max(offsets[0]) if offsets.numel() else (0, 0)
    if low or high:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {low or high}"
        )
    last = min_and_max(offsets[-1])[1] if offsets.numel() else 0
    if last > indices.shape[0]:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {indices.shape[0]} but got offsets[-1] of {last}"
        )
    if per_sample_weights is None:
        return
    if mode != "sum":
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    if per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            f"expected scalar type {weight.dtype.scalar_name} but found {per_sample_weights.dtype.scalar_name}"
        )
    if tuple(per_sample_weights.shape) != tuple(indices.shape):
        raise RuntimeError(
            f"expected per_sample_weights.size({0}) == indices.size(0), but got {tuple(per_sample_weights.shape)} and "
            f"{tuple(indices.shape)}"
        )


def _check_bag_range(indices, rows):
    """PyTorch's error for an index out of range; devices note it themselves, without a wait."""
    if indices.device.type == "cpu" and indices.numel():
        for found in min_and_max(indices):
            if not 0 <= found < rows:
                raise RuntimeError(
                    f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {found}"
                )


def _largest_of_bags(F, rows, bag, counts):
    """The elementwise largest row of each bag and which of all rows it is, zeros for an empty one; rows of a bag are
    neighbours.
    """
    bags, width = counts.shape[0], rows.shape[1]
    if rows.shape[0] == 0:
        nothing = F._new_zeros(rows, (bags, width))
        return nothing + F.sum(rows, 0, True), F.to(nothing, int64)
    start = F.cumsum(counts, 0) - counts
    steps = F._new_arange(counts, 0, int(counts.max()), 1, int64)
    inside = (steps < counts.unsqueeze(1)).unsqueeze(2)
    index = (start.unsqueeze(1) + steps).clamp(0, rows.shape[0] - 1)
    padded = F.where(inside, rows[index], F._full_like(rows[index], -float("inf")).detach())
    largest, place = padded.max(1)
    full = (counts > 0).unsqueeze(1)
    return F.where(full, largest, F._zeros_like(largest)), F.where(full, start.unsqueeze(1) + place, -1)


@composite(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, scale_grad_by_freq=False, mode=0, sparse=False, "
    "Tensor? per_sample_weights=None, include_last_offset=False, padding_idx=None)",
    where="torch",
    alias="torch._embedding_bag torch._embedding_bag_forward_only",
)
def embedding_bag(
    F, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    """Embeddings of each bag (indices from one offset to the next) reduced by ``mode``: 0 sums, 1 takes the mean, 2 the
    maximum. Four tensors: the reduced embeddings (bags, features), the bag of each index, the number of indices of each
    bag, and for maxima the index that gave each.

    >>> torch.embedding_bag(torch.tensor([[1.], [2.], [3.]]), torch.tensor([0, 2, 1]), torch.tensor([0, 2]))[0]
    tensor([[4.],
            [2.]])
    """
    mode = _MODES[mode]
    _check_bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
    bags = offsets.shape[0] - (1 if include_last_offset else 0)
    offsets, indices = F.to(offsets, int64), F.to(indices, int64)
    count = indices.shape[0]
    plain = padding_idx is None and mode != "max" and weight.dtype is not float64
    if plain and include_last_offset:
        count = int(offsets[-1]) if bags else 0
    _check_bag_range(indices, weight.shape[0])
    bag = F.searchsorted(offsets[:bags], F._new_arange(offsets, 0, count, 1, int64), right=True) - 1
    kept, kept_bag, weights = indices[:count], bag, None if per_sample_weights is None else per_sample_weights[:count]
    if padding_idx is not None:
        keep = kept != (padding_idx + weight.shape[0] if padding_idx < 0 else padding_idx)
        kept, kept_bag = kept[keep], bag[keep]
        weights = None if weights is None else weights[keep]
    rows = F.embedding(weight, kept, -1, scale_grad_by_freq, sparse)
    counts = F.index_add(F._new_zeros(bag, (bags,)), 0, kept_bag, F._ones_like(kept_bag))
    if mode == "max":
        largest, place = _largest_of_bags(F, rows, kept_bag, counts)
        if kept.shape[0]:
            place = F.where(place < 0, 0, kept[place.clamp_min(0)])
        return largest, bag, counts, place
    if weights is not None:
        rows = rows * weights.unsqueeze(1)
    wide = F.to(rows, float32) if rows.dtype.itemsize < 4 else rows
    total = F.index_add(F._new_zeros(wide, (bags, weight.shape[1])), 0, kept_bag, wide)
    if mode == "mean":
        total = total / counts.clamp_min(1).unsqueeze(1)
        return F.to(total, weight.dtype), bag, counts, counts
    none = F._new_zeros(offsets, tuple(offsets.shape))
    return F.to(total, weight.dtype), bag[:0] if plain else bag, none, none


@composite("one_hot(Tensor input, num_classes=-1)", where="nn.functional", tags=0)
def one_hot(F, input, num_classes):
    """Class indices as 0/1 rows: (*) -> (*, num_classes), int64; ``num_classes=-1`` is one more than the largest index.

    >>> F.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if input.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if input.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return F._new_zeros(input, (*input.shape, num_classes))
    smallest, largest = min_and_max(input)
    if smallest < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = largest + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif largest >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return (input.unsqueeze(-1) == F._new_arange(input, 0, num_classes, 1, int64)).to(int64)
