"""Embeddings: embedding, embedding_bag, one_hot."""

import operator

from torchlite._dispatch import composite, op
from torchlite._dispatch.shape_and_value_checks import min_and_max
from torchlite._types.dtypes import float32, float64, int32, int64

from ._dtype_checks import refuse_floats

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


def _embedding_shape_fn(weight, indices):
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
    shape_fn=_embedding_shape_fn,
    vjp={
        "weight": lambda F, g, indices, weight_shape, padding_idx, scale_grad_by_freq: F._embedding_backward(
            g, indices, weight_shape[0], padding_idx, scale_grad_by_freq
        )
    },
    doc="""Looks up rows of a matrix by their indices; the argument order is that of PyTorch's operator.

    Args:
        weight: The matrix, of shape ``(rows, features)``.
        indices: The indices, int32 or int64, of any shape.
        padding_idx: A row that receives no gradient. Default: ``-1``, none.
        scale_grad_by_freq: Whether a row's gradient is divided by the number of its occurrences.
        sparse: Whether the gradient of `weight` is a sparse tensor.

    Returns:
        A tensor of shape ``(*indices.shape, features)``.

    Example:
        >>> torch.embedding(torch.tensor([[1.0], [2.0]]), torch.tensor([1, 0]))
        tensor([[2.],
                [1.]])

    See also:
        `torch.nn.functional.embedding`.
    """,
    sparse_grad_param="sparse",
)


@composite(
    "embedding_renorm_(Tensor input, Tensor indices, max_norm, norm_type=2.0)",
    where="torch",
    node_name="EmbeddingRenormBackward0(input)",
)
def embedding_renorm_(F, input, indices, max_norm, norm_type):
    """Scales rows of a matrix in place to at most a maximal norm.

    Args:
        input: The matrix, of shape ``(rows, features)``.
        indices: The rows to look at, int32 or int64.
        max_norm: The maximal norm.
        norm_type: The order of the norm. Default: 2.

    Returns:
        `input`.

    Example:
        >>> torch.embedding_renorm_(torch.tensor([[3.0, 4.0]]), torch.tensor([0]), 1.0)
        tensor([[0.6000, 0.8000]])
    """
    weight = input.detach()
    used = F.unique(indices.reshape(-1))
    rows = weight[used]
    norms = F.to(rows.norm(norm_type, 1, keepdim=True), float64)  # float32 would lose the 1e-7
    factor = F.where(norms > max_norm, max_norm / (norms + 1e-7), F._ones_like(norms))
    weight[used] = rows * F.to(factor, rows.dtype)
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
    refuse_floats(padding_idx)
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
    if offsets.shape[0] > 2 and min_and_max(offsets[1:] - offsets[:-1])[0] < 0:
        raise RuntimeError("embedding_bag: offsets have to ascend: each is the end of the bag before it")
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


def _max_of_bags(F, rows, bag, counts):
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


def _sum_of_bags(F, weight, indices, counts, factors, scale_grad_by_freq, sparse):
    """The sum of each bag's rows, times factors or None: a product with a sparse matrix. Of half precision in float32;
    rows of a bag are neighbours.
    """
    if scale_grad_by_freq or sparse or weight.dtype.itemsize < 4:
        # The gradient is the look-up's, or fewer rows are cast than the matrix has.
        weight, indices = (
            F.embedding(weight, indices, -1, scale_grad_by_freq, sparse),
            F._new_arange(indices, 0, indices.shape[0], 1, int64),
        )
    if weight.dtype.itemsize < 4:
        weight, factors = F.to(weight, float32), None if factors is None else F.to(factors, float32)
    if factors is None:
        factors = F._new_full(weight, (indices.shape[0],), 1)
    starts = F.cat([F._new_zeros(counts, (1,)), F.cumsum(counts, 0)])
    return F._csr_mm(indices, starts, factors, weight)


@composite(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, scale_grad_by_freq=False, mode=0, sparse=False, "
    "Tensor? per_sample_weights=None, include_last_offset=False, padding_idx=None)",
    where="torch",
    alias="torch._embedding_bag torch._embedding_bag_forward_only",
    node_name="EmbeddingBagBackward0(weight, per_sample_weights)",
)
def embedding_bag(
    F, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    """Reduces bags of rows of a matrix; the argument order is that of PyTorch's operator.

    Args:
        weight: The matrix, of shape ``(rows, features)``.
        indices: The indices, int32 or int64, of one dimension.
        offsets: The positions where bags begin.
        scale_grad_by_freq: Whether a row's gradient is divided by the number of its occurrences.
        mode: 0 (sum), 1 (mean) or 2 (maximum).
        sparse: Whether the gradient of `weight` is a sparse tensor.
        per_sample_weights: Factors of the rows, for sums.
        include_last_offset: Whether the last of `offsets` is the end of the last bag.
        padding_idx: A row that the bags leave out.

    Returns:
        Four tensors: the reduced rows of shape ``(bags, features)``, the bag of each index, the number of indices
        of each bag, and for maxima the index of each.

    Example:
        >>> torch.embedding_bag(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([0, 2, 1]), torch.tensor([0, 2]))[0]
        tensor([[4.],
                [2.]])

    See also:
        `torch.nn.functional.embedding_bag`.
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
    counts = F.index_add(F._new_zeros(bag, (bags,)), 0, kept_bag, F._ones_like(kept_bag))
    if mode == "max":
        rows = F.embedding(weight, kept, -1, scale_grad_by_freq, sparse)
        largest, place = _max_of_bags(F, rows, kept_bag, counts)
        if kept.shape[0]:
            place = F.where(place < 0, 0, kept[place.clamp_min(0)])
        return largest, bag, counts, place
    total = _sum_of_bags(F, weight, kept, counts, weights, scale_grad_by_freq, sparse)
    if mode == "mean":
        total = total / counts.clamp_min(1).unsqueeze(1)
        return F.to(total, weight.dtype), bag, counts, counts
    none = F._new_zeros(offsets, tuple(offsets.shape))
    return F.to(total, weight.dtype), bag[:0] if plain else bag, none, none


@composite("one_hot(Tensor input, num_classes=-1)", where="nn.functional", tags=0)
def one_hot(F, input, num_classes):
    """Returns vectors with a 1 at the position of each class and zeros elsewhere.

    Args:
        input: The classes, int64, of any shape.
        num_classes: The number of classes. Default: one more than the greatest.

    Returns:
        An int64 tensor of shape ``(*input.shape, num_classes)``.

    Raises:
        RuntimeError: A class is negative or not below `num_classes`.

    Example:
        >>> F.one_hot(torch.tensor([0, 2]))
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if input.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    num_classes = operator.index(num_classes)
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
