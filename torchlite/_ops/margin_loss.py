"""Margin losses, and the distances that they are made of."""

import math

from torchlite._dispatch import composite, memory_layout
from torchlite._dispatch.shape_and_value_checks import any_true
from torchlite._dispatch.shapes import broadcast_shapes
from torchlite._types.dtypes import float64, int64, promote_types

from ._dtype_checks import refuse_complex
from .loss import LEGACY, _size_str, apply_reduction, reduction_of
from .node_graphs import reduced, triplet_margin_loss_graph

# `F.clamp(x, 0)` has the gradient 1 at 0, as PyTorch has there, and needs its input; `F.relu` has 0.


@composite(
    f"hinge_embedding_loss(Tensor input, Tensor target, margin=1.0, {LEGACY})",
    where="nn.functional",
    layout=memory_layout.pointwise,
)
def hinge_embedding_loss(F, input, target, margin, size_average, reduce, reduction):
    r"""Computes the hinge loss of distances.

    .. math::

        \ell = \begin{cases} x & y = 1 \\ \max(0, \text{margin} - x) & y = -1 \end{cases}

    Args:
        input: Distances.
        target: Targets of 1 (similar) or -1.
        margin: The distance from which on dissimilar pairs cost nothing. Default: 1.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.hinge_embedding_loss(torch.tensor([0.5, 0.5]), torch.tensor([1, -1]), reduction="none")
        tensor([0.5000, 0.5000])

    See also:
        `torch.nn.HingeEmbeddingLoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    zero = F._zeros_like(input)
    gap = margin - input if input.dtype.is_floating_point else F._full_like(input, margin) - input
    far = F.where(target != 1, F.clamp(gap, 0), zero)
    near = F.where(target != -1, input, zero)
    return apply_reduction(far + near, reduction)


@composite(
    f"margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, margin=0, {LEGACY})",
    where="nn.functional",
    node_name=reduced(
        "ClampMinBackward0(AddBackward1(MulBackward0(NegBackward0(target), SubBackward0(input1, input2))))"
    ),
)
def margin_ranking_loss(F, input1, input2, target, margin, size_average, reduce, reduction):
    r"""Computes a loss that ranks the first input above the second where the target is 1.

    .. math::

        \ell = \max(0, -y (x_1 - x_2) + \text{margin})

    Args:
        input1: The first inputs.
        input2: The second inputs.
        target: Targets of 1 or -1.
        margin: The difference that costs nothing. Default: 0.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
        tensor(2.)

    See also:
        `torch.nn.MarginRankingLoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{_size_str(input1)}, input2: {_size_str(input2)}, target: {_size_str(target)} "
        )
    return apply_reduction(F.clamp_min(-target * (input1 - input2) + margin, 0), reduction)


@composite(
    f"multi_margin_loss(Tensor input, Tensor target, p=1, margin=1.0, Tensor? weight=None, {LEGACY})",
    where="nn.functional",
    node_name="MultiMarginLossBackward0(input)",
)
def multi_margin_loss(F, input, target, p, margin, weight, size_average, reduce, reduction):
    r"""Computes the multi-class hinge loss.

    .. math::

        \ell = \frac{1}{C} \sum_{i \neq y} w_y \max(0, \text{margin} - x_y + x_i)^p

    Args:
        input: Scores, of shape ``(N, C)`` or ``(C,)``.
        target: Classes, int64, of shape ``(N,)`` or ``()``.
        p: The exponent, 1 or 2. Default: 1.
        margin: The margin. Default: 1.
        weight: Weights of the classes. Default: 1.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.multi_margin_loss(torch.tensor([[2.0, 1.5]]), torch.tensor([0]))
        tensor(0.2500)

    See also:
        `torch.nn.MultiMarginLoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    if input.ndim > 2 or (input.numel() == 0 and (input.ndim == 0 or input.shape[-1] == 0)):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    x = input if input.ndim == 2 else input.reshape(1, -1)
    count, classes = x.shape
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if target.ndim > 1 or target.numel() != count:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{count}], but got {list(target.shape)}. Input has shape "
            f"{list(input.shape)}."
        )
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")
    index = target.reshape(-1, 1)
    if index.device.type != "meta" and any_true((index < 0) | (index >= classes)):
        raise RuntimeError("target out of range")
    right = F.gather(x, 1, index)
    hinge = F.relu(margin - right + x)
    if p == 2:
        hinge = hinge * hinge
    if weight is not None:
        hinge = hinge * F.index_select(weight, 0, index.reshape(-1)).unsqueeze(1)
    loss = F.scatter(hinge, 1, index, 0).sum(1) / classes
    return apply_reduction(loss if input.ndim == 2 or target.ndim == 1 else loss.reshape(()), reduction)


@composite(
    f"multilabel_margin_loss(Tensor input, Tensor target, {LEGACY})",
    where="nn.functional",
    node_name="MultilabelMarginLossBackward0(input)",
)
def multilabel_margin_loss(F, input, target, size_average, reduce, reduction):
    r"""Computes the hinge loss for several classes an example.

    .. math::

        \ell = \frac{1}{C} \sum_{y} \sum_{i} \max(0, 1 - x_y + x_i)

    The outer sum runs over the target classes, the inner one over all others.

    Args:
        input: Scores, of shape ``(N, C)`` or ``(C,)``.
        target: The classes of each example, int64, followed by -1; of the input's shape.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.multilabel_margin_loss(torch.tensor([[2.0, 1.5]]), torch.tensor([[0, -1]]))
        tensor(0.2500)

    See also:
        `torch.nn.MultiLabelMarginLoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if (input.numel() == 0 and (input.ndim < 2 or 0 in input.shape[1:])) or input.ndim > 2:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    if input.shape != target.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    classes = input.shape[-1] if input.ndim else 1
    x, labels = F._with_constant_gradient(input).reshape(-1, classes), target.reshape(-1, classes)
    listed = F.cumsum((labels < 0).to(labels.dtype), 1) == 0
    safe = F.where(listed, labels, F._zeros_like(labels))
    is_target = F.scatter_add(F._zeros_like(labels), 1, safe, listed.to(labels.dtype)) > 0
    # Of the other classes, those above a limit count, each by its distance: the last ones of their order.
    limit = F.to(F.gather(x, 1, safe), float64) - 1
    others = F.masked_fill(F.to(x, float64), is_target, -math.inf)
    ranked = F.sort(others, 1)[0]
    place = F.searchsorted(ranked.detach(), limit.detach(), right=True)
    sums = F.flip(F.cumsum(F.flip(F.cat([ranked, F._zeros_like(ranked[:, :1])], 1), (1,)), 1), (1,))
    hinge = F.gather(sums, 1, place) - (classes - place) * limit
    counted = listed & (place < classes)
    loss = F.to(F.where(counted, hinge, F._zeros_like(hinge)).sum(1) / classes, input.dtype)
    return apply_reduction(loss if input.ndim == 2 else loss.reshape(()), reduction)


# --- distances ------------------------------------------------------------------------------------


@composite(
    "cosine_similarity(Tensor x1, Tensor x2, dim=1, eps=1e-08)",
    where="torch nn.functional",
    layout=memory_layout.contiguous,
)
def cosine_similarity(F, x1, x2, dim, eps):
    r"""Computes the cosines of the angles between vectors.

    .. math::

        \frac{x_1 \cdot x_2}{\max(\lVert x_1 \rVert, \epsilon) \max(\lVert x_2 \rVert, \epsilon)}

    Args:
        x1: The first vectors.
        x2: The second vectors, which broadcast with `x1`.
        dim: The dimension of the vectors. Default: 1.
        eps: The least length :math:`\epsilon`. Default: ``1e-8``.

    Example:
        >>> F.cosine_similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]))
        tensor([0.7071])

    See also:
        `torch.nn.CosineSimilarity`.
    """
    common = promote_types(x1.dtype, x2.dtype)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.scalar_name}")
    if eps < 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    x1, x2 = x1.to(common), x2.to(common)
    shape = broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = x1.expand(shape), x2.expand(shape)
    length1, length2 = x1.norm(2, dim, keepdim=True), x2.norm(2, dim, keepdim=True)
    # The length is limited below without a gradient through the limit.
    length1 = length1 + (length1.detach().clamp_min(eps) - length1.detach())
    length2 = length2 + (length2.detach().clamp_min(eps) - length2.detach())
    return ((x1 / length1) * (x2 / length2)).sum(dim)


@composite(
    "pairwise_distance(Tensor x1, Tensor x2, p=2.0, eps=1e-06, keepdim=False)",
    where="torch nn.functional",
    node_name="NormBackward1(AddBackward1(SubBackward0(x1, x2)))",
)
def pairwise_distance(F, x1, x2, p, eps, keepdim):
    r"""Computes the distances between vectors along the last dimension.

    .. math::

        \lVert x_1 - x_2 + \epsilon \rVert_p

    Args:
        x1: The first vectors.
        x2: The second vectors, which broadcast with `x1`.
        p: The order of the norm. Default: 2.
        eps: The term :math:`\epsilon`. Default: ``1e-6``.
        keepdim: Whether the result keeps the last dimension with size 1.

    Example:
        >>> F.pairwise_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([5.0000])

    See also:
        `torch.nn.PairwiseDistance`, `torch.cdist`.
    """
    refuse_complex(p, eps)
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


@composite(
    f"cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, margin=0, {LEGACY})", where="nn.functional"
)
def cosine_embedding_loss(F, input1, input2, target, margin, size_average, reduce, reduction):
    r"""Computes a loss of the cosine between two vectors.

    .. math::

        \ell = \begin{cases} 1 - \cos(x_1, x_2) & y = 1 \\ \max(0, \cos(x_1, x_2) - \text{margin}) & y = -1
        \end{cases}

    Args:
        input1: The first vectors, of shape ``(N, D)`` or ``(D,)``.
        input2: The second vectors.
        target: Targets of 1 (similar) or -1, of shape ``(N,)`` or ``()``.
        margin: The cosine up to which dissimilar pairs cost nothing. Default: 0.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.cosine_embedding_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([1]))
        tensor(1.)

    See also:
        `torch.nn.CosineEmbeddingLoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    dim = target.ndim
    if input1.ndim != dim + 1 or input2.ndim != dim + 1:
        kind = "1D" if dim else "0D"
        raise RuntimeError(
            f"{kind} target tensor expects {dim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    # The squares carry eps, so a zero vector has a finite gradient.
    dot = (input1 * input2).sum(dim)
    squares1, squares2 = (input1 * input1).sum(dim) + 1e-12, (input2 * input2).sum(dim) + 1e-12
    cosine = dot / F.sqrt(squares1 * squares2)
    zero = F._zeros_like(cosine)
    near = F.where(target == 1, 1 - cosine, zero)
    far = F.where(target == -1, F.clamp(cosine - margin, 0), zero)
    return apply_reduction(near + far, reduction)


def _triplet_loss_of_distances(F, near, far, swap_distance, margin, reduction):
    if swap_distance is not None:
        far = F.minimum(far, swap_distance())
    return apply_reduction(F.clamp_min(near - far + margin, 0), reduction)


def _check_triplet(anchor, positive, negative, margin):
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, margin=1.0, p=2, eps=1e-06, swap=False, "
    f"{LEGACY})",
    where="nn.functional",
    node_name=triplet_margin_loss_graph,
)
def triplet_margin_loss(F, anchor, positive, negative, margin, p, eps, swap, size_average, reduce, reduction):
    r"""Computes the triplet loss (Balntas et al., 2016).

    .. math::

        \ell = \max(0, d(a, p) - d(a, n) + \text{margin})

    Args:
        anchor: The anchors, of shape ``(N, D)`` or ``(D,)``.
        positive: Examples like the anchors.
        negative: Examples unlike the anchors.
        margin: The margin. Default: 1.
        p: The order of the norm of the distances. Default: 2.
        eps: A term that is added to differences. Default: ``1e-6``.
        swap: Whether the distance of positive and negative replaces a greater one of anchor and negative. Default:
            ``False``.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> a, p, n = torch.tensor([[0.0]]), torch.tensor([[1.0]]), torch.tensor([[3.0]])
        >>> F.triplet_margin_loss(a, p, n, margin=3.0)
        tensor(1.)

    See also:
        `torch.nn.TripletMarginLoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _check_triplet(anchor, positive, negative, margin)

    def distance(a, b):
        return F.pairwise_distance(a, b, p, eps)

    near, far = distance(anchor, positive), distance(anchor, negative)
    return _triplet_loss_of_distances(
        F, near, far, (lambda: distance(positive, negative)) if swap else None, margin, reduction
    )


@composite(
    "triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, *, distance_function=None, "
    "margin=1.0, swap=False, reduction='mean')",
    where="nn.functional",
)
def triplet_margin_with_distance_loss(F, anchor, positive, negative, distance_function, margin, swap, reduction):
    r"""Computes the triplet loss with a given distance.

    .. math::

        \ell = \max(0, d(a, p) - d(a, n) + \text{margin})

    Args:
        anchor: The anchors, of shape ``(N, D)`` or ``(D,)``.
        positive: Examples like the anchors.
        negative: Examples unlike the anchors.
        distance_function: A function of two tensors. Default: `pairwise_distance`.
        margin: The margin. Default: 1.
        swap: Whether the distance of positive and negative replaces a greater one of anchor and negative. Default:
            ``False``.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> a, p, n = torch.tensor([[0.0]]), torch.tensor([[1.0]]), torch.tensor([[3.0]])
        >>> distance = lambda x, y: (x - y).abs().sum(-1)
        >>> F.triplet_margin_with_distance_loss(a, p, n, distance_function=distance, margin=3.0)
        tensor(1.)

    See also:
        `torch.nn.TripletMarginWithDistanceLoss`.
    """
    reduction = reduction_of(None, None, reduction)
    _check_triplet(anchor, positive, negative, margin)
    distance = distance_function or F.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    return _triplet_loss_of_distances(
        F, near, far, (lambda: distance(positive, negative)) if swap else None, margin, reduction
    )
