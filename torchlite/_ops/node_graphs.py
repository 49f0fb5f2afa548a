"""The graphs of nodes that PyTorch shows for ops which it composes of others (`node_name` of a record).

A function here is the `node_name` of one record, or makes it: of a composite's call, whose arguments are `call[name]`,
or of a node, whose saved arguments `saved_argument` finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch.autograd_graph import edge_shape
from .._dispatch.node_names import saved_argument

_POOLS = {
    1: ("SqueezeBackward1({}Pool2D{}(UnsqueezeBackward0(input)))"),
    2: "{}Pool2D{}(input)",
    3: "{}Pool3D{}(input)",
}


def pool_graph(kind: str, argument: str, suffix: str = "Backward0") -> Callable[[Any], str]:
    """Of a pooling, whose `argument` has a number for each spatial dimension: PyTorch pools one dimension as two."""

    def graph(node: Any) -> str:
        return _POOLS[len(saved_argument(node, argument) or (0, 0))].format(kind, suffix)

    return graph


def adaptive_average_graph(node: Any) -> str:
    """Of `_adaptive_avg_pool`: a mean if one element of each plane is left."""
    size = saved_argument(node, "output_size") or (0, 0)
    if any(n != 1 for n in size):
        return _POOLS[len(size)].format("AdaptiveAvg", "Backward0")
    inner = "MeanBackward1(input)"
    return inner if len(size) > 1 else "SqueezeBackward1(MeanBackward1(UnsqueezeBackward0(input)))"


def resize_graph(node: Any) -> str:
    """Of `_resize`: an op for each mode and number of dimensions."""
    mode = saved_argument(node, "mode") or "nearest"
    n = len(saved_argument(node, "size") or (0, 0))
    if mode == "area":
        return _POOLS[n].format("AdaptiveAvg", "Backward0")
    name = {"nearest": "Nearest", "nearest-exact": "NearestExact", "linear": "Linear", "bilinear": "Bilinear"}.get(
        mode, mode.title()
    )
    return f"Upsample{name}{n}D{'Aa' if saved_argument(node, 'antialias') else ''}Backward0(input)"


def grid_sample_graph(node: Any) -> str:
    """Of `_grid_sample`."""
    return f"GridSampler{len(node._shape) - 2}DBackward0"


def linear_graph(node: Any) -> str:
    """Of `linear`: the product with the transposed weight, of a matrix of all rows."""
    bias = saved_argument(node, "bias", ("dtype",)) is not None or node._edges[-1] is not None
    dims, weight = len(node._shape), "TBackward0(weight)"
    if _dims_of(node, "weight") == 1:
        return (
            "MvBackward0(input, weight)"
            if dims == 1
            else "UnsafeViewBackward0(MvBackward0(ViewBackward0(input), weight))"
        )
    if dims == 2:
        return f"AddmmBackward0(bias, input, {weight})" if bias else f"MmBackward0(input, {weight})"
    if bias:
        return f"ViewBackward0(AddmmBackward0(bias, ViewBackward0(input), {weight}))"
    if dims == 1:
        return f"SqueezeBackward4(MmBackward0(UnsqueezeBackward0(input), {weight}))"
    return f"UnsafeViewBackward0(MmBackward0(ViewBackward0(input), {weight}))"


def _dims_of(node: Any, argument: str) -> int:
    """The number of dimensions of a tensor argument: of the input there, or of what is saved for the other input."""
    edge = dict(zip([p.name for p in node._op.tensor_params], node._edges, strict=True))[argument]
    if edge is not None:
        return len(edge_shape(edge))
    return getattr(saved_argument(node, argument), "ndim", len(node._shape))


def reduced(text: str) -> Callable[[Any], str]:
    """Of a loss with an argument `reduction`, of one element each."""
    return lambda call: reduce_graph(text, call["reduction"])


def reduce_graph(text: str, reduction: str) -> str:
    """A mean or sum of a graph."""
    reduction = {1: "mean", 2: "sum"}.get(reduction, reduction)  # type: ignore[call-overload]
    return {"mean": f"MeanBackward0({text})", "sum": f"SumBackward0({text})"}.get(reduction, text)


def mse_loss_graph(call: Any) -> str:
    """Of `mse_loss`, which composes the weighted loss."""
    if call["weight"] is None:
        return "MseLossBackward0(input, target)"
    weighted = "MulBackward0(PowBackward0(SubBackward0(input, target)), weight)"
    if call["reduction"] == "mean":
        return f"DivBackward0(SumBackward0({weighted}), SumBackward0(weight))"
    return reduce_graph(weighted, call["reduction"])


def smooth_l1_loss_graph(call: Any) -> str:
    """Of `smooth_l1_loss`, which is `l1_loss` for `beta=0`."""
    if call["beta"]:
        return "SmoothL1LossBackward0(input, target)"
    return reduce_graph("AbsBackward0(SubBackward0(input, target))", call["reduction"])


def huber_loss_graph(call: Any) -> str:
    """Of `huber_loss`."""
    loss = "HuberLossBackward0(input, target)"
    return loss if call["weight"] is None else reduce_graph(f"MulBackward0({loss}, weight)", call["reduction"])


def gaussian_nll_loss_graph(call: Any) -> str:
    """Of `gaussian_nll_loss`, which clamps a copy of the variances."""
    squares = "DivBackward0(PowBackward0(SubBackward0(input, target)), CloneBackward0(var))"
    loss = f"MulBackward0(AddBackward0(LogBackward0(CloneBackward0(var)), {squares}), -)"
    return reduce_graph(f"AddBackward0({loss}, -)" if call["full"] else loss, call["reduction"])


def multilabel_soft_margin_loss_graph(call: Any) -> str:
    """Of `multilabel_soft_margin_loss`."""
    terms = "MulBackward0(-, LogSigmoidBackward0(input)), MulBackward0(-, LogSigmoidBackward0(NegBackward0(input)))"
    loss = f"NegBackward0(AddBackward0({terms}))"
    if call["weight"] is not None:
        loss = f"MulBackward0({loss}, weight)"
    return reduce_graph(f"DivBackward0(SumBackward1({loss}), -)", call["reduction"])


def triplet_margin_loss_graph(call: Any) -> str:
    """Of `triplet_margin_loss`."""

    def distance(one: str, other: str) -> str:
        return f"NormBackward1(AddBackward1(SubBackward0({one}, {other})))"

    far = distance("anchor", "negative")
    if call["swap"]:
        far = f"MinimumBackward0({far}, {distance('positive', 'negative')})"
    near = f"AddBackward1({distance('anchor', 'positive')})"
    return reduce_graph(f"ClampMinBackward0(SubBackward0({near}, {far}))", call["reduction"])


def nll_loss_graph(ndim: int, reduction: str, input: str) -> str:
    """Of the loss of log-probabilities with so many dimensions."""
    if ndim in (1, 2):
        return f"NllLossBackward0({input})"
    if ndim == 4:
        return f"NllLoss2DBackward0({input})"
    loss = f"NllLoss2DBackward0(ViewBackward0({input}))"
    return f"ViewBackward0({loss})" if reduction == "none" else loss


def ctc_loss_graph(call: Any) -> str:
    """Of `ctc_loss`, whose mean is one of quotients."""
    loss = "CtcLossBackward0(log_probs)"
    if call["zero_infinity"]:
        loss = f"WhereBackward0(-, {loss})"
    if call["reduction"] in ("mean", 1):
        return f"MeanBackward0(DivBackward0({loss}, -))"
    return reduce_graph(loss, call["reduction"])


def product_graph(names: list[str], ndims: list[int], sizes: list[int]) -> str:
    """Of the product of matrices, in the order of the fewest multiplications."""
    count = len(names)
    named = [f"UnsqueezeBackward0({name})" if n == 1 else name for name, n in zip(names, ndims, strict=True)]
    best: dict[tuple[int, int], tuple[int, str]] = {(i, i): (0, named[i]) for i in range(count)}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            best[i, j] = min(
                (
                    (
                        best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1],
                        f"MmBackward0({best[i, k][1]}, {best[k + 1, j][1]})",
                    )
                    for k in range(i, j)
                ),
                key=lambda found: found[0],
            )
    return f"ViewBackward0({best[0, count - 1][1]})"


def multi_dot_graph(argument: str) -> Callable[[Any], str]:
    """Of the product of a list of matrices."""

    def graph(call: Any) -> str:
        shapes = [shape for shape, _ in call[argument]]
        if len(shapes) == 1:
            return f"CloneBackward0({argument})"
        ends = [1 if len(shapes[0]) == 1 else shapes[0][0], *(s[0] for s in shapes[1:])]
        ends.append(1 if len(shapes[-1]) == 1 else shapes[-1][-1])
        return product_graph([f"{argument}[{i}]" for i in range(len(shapes))], [len(s) for s in shapes], ends)

    return graph


def matmul_graph(node: Any) -> str:
    """Of `matmul`: a product of vectors or matrices, one of a matrix of all rows, or one of batches."""
    first, second = _dims_of(node, "input"), _dims_of(node, "other")
    if first < 3 and second < 3:
        if (first, second) == (1, 2):
            return "SqueezeBackward4(MmBackward0(UnsqueezeBackward0(input), other))"
        return {(1, 1): "DotBackward0", (2, 1): "MvBackward0"}.get((first, second), "MmBackward0")
    if second < 3:
        return f"UnsafeViewBackward0({'Mv' if second == 1 else 'Mm'}Backward0(ViewBackward0(input), other))"
    if first < 3 and node._edges[0] is not None:
        rows = "UnsafeViewBackward0(CloneBackward0(TransposeBackward0(other)))"
        if first == 1:
            return f"UnsafeViewBackward0(MvBackward0({rows}, input))"
        return f"CloneBackward0(TransposeBackward0(UnsafeViewBackward0(MmBackward0({rows}, TBackward0(input)))))"
    sides = ", ".join(_batches_of(node, name) for name in ("input", "other"))
    return f"UnsafeViewBackward0(BmmBackward0({sides}))"


def _batches_of(node: Any, argument: str) -> str:
    """An operand of `bmm`, which is copied if it is expanded."""
    edge = dict(zip([p.name for p in node._op.tensor_params], node._edges, strict=True))[argument]
    expanded = edge is not None and tuple(edge_shape(edge)[:-2]) != tuple(node._shape[:-2])
    text = f"ExpandBackward0({argument})"
    return f"UnsafeViewBackward0(CloneBackward0({text}))" if expanded else f"ViewBackward0({text})"


def matrix_power_graph(call: Any) -> str:
    """Of `matrix_power`: repeated squares."""
    n, batched = call["n"], call.ndim("input") > 2
    if n == 0:
        return "CopyBackwards(CloneBackward0(input), -)"
    base = "input" if n > 0 else "LinalgInvExBackward0(input)"

    def product(one: str, other: str) -> str:
        if not batched:
            return f"MmBackward0({one}, {other})"
        batches = [f"ReshapeAliasBackward0(ExpandBackward0({each}))" for each in (one, other)]
        return f"UnsafeViewBackward0(BmmBackward0({', '.join(batches)}))"

    n = abs(n)
    if n == 1:
        return f"CloneBackward0({base})" if call["n"] == 1 else base
    if n == 3:
        return product(product(base, base), base)
    result, square = "", ""
    while n:
        square = product(square, square) if square else base
        if n % 2:
            result = product(result, square) if result else square
        n //= 2
    return result


def matrix_norm_graph(call: Any) -> str:
    """Of `linalg.matrix_norm` and `nuclear_norm`: of vectors' norms, or of singular values."""
    order = call.values.get("ord", "nuc")
    if order == "fro":
        return "LinalgVectorNormBackward0(input)"
    singular = "LinalgSvdBackward0#1(PermuteBackward0(input))"
    if order == "nuc":
        found = f"SumBackward1({singular})"
    else:
        name = "AmaxBackward0" if order > 0 else "AminBackward0"
        if abs(order) != 2:
            return f"{name}(LinalgVectorNormBackward0(input))"
        found = f"{name}({singular})"
    return f"PermuteBackward0(UnsqueezeBackward0({found}))" if call["keepdim"] else found


def condition_number_graph(call: Any) -> str:
    """Of `linalg.cond`: a quotient of singular values, or a product of norms."""
    p, values = call["p"], "LinalgSvdBackward0#1(input)"
    if p in (None, 2, -2):
        return f"SqueezeBackward1(DivBackward0(SliceBackward0({values}), SliceBackward0({values})))"
    if p == "nuc":
        return f"MulBackward0(SumBackward1({values}), SumBackward1(ReciprocalBackward0({values})))"
    norm = "LinalgVectorNormBackward0({})"
    if p != "fro":
        norm = f"{'AmaxBackward0' if p > 0 else 'AminBackward0'}({norm})"
    inverse = norm.format("MaskedFillBackward0(LinalgInvExBackward0(input))")
    return f"NanToNumBackward0(MulBackward0({norm.format('input')}, {inverse}))"


def has_distances_by_product(p: Any, mode: Any, rows: int) -> bool:
    """True if PyTorch computes `cdist` by a product of matrices. `rows` is the larger number of rows."""
    if p != 2 or mode in (2, "donot_use_mm_for_euclid_dist"):
        return False
    return rows > 25 or mode in (1, "use_mm_for_euclid_dist")


def distances_graph(call: Any) -> str:
    """Of `cdist`: by a product of matrices where that is faster."""
    rows = max(call["x1"][0][-2], call["x2"][0][-2])
    if has_distances_by_product(call["p"], call["compute_mode"], rows):
        return "ViewBackward0(EuclideanDistBackward0(x1, x2))"
    return "CdistBackward0(x1, x2)"


def inner_graph(call: Any) -> str:
    """Of `inner`."""
    dims = call.ndim("input"), call.ndim("other")
    if 0 in dims:
        return "MulBackward0(input, other)"
    if dims == (1, 1):
        return "ViewBackward0(DotBackward0(PermuteBackward0(input), PermuteBackward0(other)))"
    sides = "ViewBackward0(PermuteBackward0(input)), ReshapeAliasBackward0(PermuteBackward0(other))"
    return f"ViewBackward0(MmBackward0({sides}))"


def attention_graph(call: Any) -> str:
    """Of `scaled_dot_product_attention` on the CPU: one op for heads of one size, else products."""
    shapes = [call[name][0] for name in ("query", "key", "value")]
    if all(len(s) == 4 and 0 not in s for s in shapes) and not call["dropout_p"]:
        if len({s[-1] for s in shapes}) == 1 and call.edges["attn_mask"] is None:
            return "ScaledDotProductFlashAttentionForCpuBackward0(query, key, value)"
    key = "ReshapeAliasBackward0(ExpandBackward0(MulBackward1(TransposeBackward0(key))))"
    scores = f"UnsafeViewBackward0(BmmBackward0(ViewBackward0(ExpandBackward0(MulBackward1(query))), {key}))"
    if call["attn_mask"] is not None or call["is_causal"]:
        scores = f"AddBackward0({scores}, attn_mask)"
    weights = f"SafeSoftmaxBackward0({scores})"
    if call["dropout_p"]:
        weights = f"MulBackward0({weights}, -)"
    factors = [f"ViewBackward0(ExpandBackward0({each}))" for each in (weights, "value")]
    return f"UnsafeViewBackward0(BmmBackward0({', '.join(factors)}))"


def quantile_graph(call: Any) -> str:
    """Of `quantile` and `nanquantile`: elements of the sorted input."""
    dim, ndim = call["dim"], call.ndim("input")
    last = dim is not None and (dim % ndim if ndim else 0) == ndim - 1
    source = (
        "ViewBackward0(input)" if dim is None else "input" if last else "TransposeBackward0(UnsqueezeBackward0(input))"
    )
    taken = f"GatherBackward0(ViewBackward0(SortBackward0({source})))"
    found = f"LerpBackward1({taken}, {taken}, -)" if call["interpolation"] in ("linear", "midpoint") else taken
    several = call["q"].__class__ is tuple and len(call["q"][0]) == 1
    return (
        f"SqueezeBackward4(TransposeBackward1(UnsqueezeBackward1({found})))"
        if several
        else f"SqueezeBackward4({found})"
    )


def repeat_interleave_graph(call: Any) -> str:
    """Of `repeat_interleave`: an expanded dimension, or an index by a tensor of counts."""
    source = "ViewBackward0(input)" if call["dim"] is None else "input"
    if not isinstance(call["repeats"], int):
        return f"IndexSelectBackward0({source})"
    return f"ViewBackward0(CloneBackward0(ExpandBackward0(UnsqueezeBackward0({source}))))"


def trapezoid_graph(cumulative: bool) -> Callable[[Any], str]:
    """Of `trapezoid` and `cumulative_trapezoid`."""

    def graph(call: Any) -> str:
        total = "CumsumBackward0" if cumulative else "SumBackward1"
        pairs = "AddBackward0(SliceBackward0(y), SliceBackward0(y))"
        if call["x"] is not None:
            x = "SliceBackward0(x)" if call.ndim("x") == call.ndim("y") else "SliceBackward0(ViewBackward0(x))"
            if call.ndim("y") == 1:
                x = "SliceBackward0(x)"
            return f"DivBackward1({total}(MulBackward0({pairs}, SubBackward0({x}, {x}))))"
        if cumulative:
            return f"CumsumBackward0(MulBackward1({pairs}))"
        ends = "AddBackward0(SelectBackward0(y), SelectBackward0(y))"
        return f"MulBackward1(SubBackward0(SumBackward1(y), MulBackward1({ends})))"

    return graph


def at_least_graph(ndim: int, argument: str = "tensors") -> Callable[[Any], str]:
    """Of `atleast_2d` and `atleast_3d`: a graph for each tensor."""

    def graph(call: Any) -> str:
        shapes = [shape for shape, _ in call[argument]]
        return "; ".join(at_least_of(len(s), ndim, f"{argument}[{i}]") for i, s in enumerate(shapes))

    return graph


def at_least_of(have: int, want: int, name: str) -> str:
    """Of a tensor that gets dimensions."""
    if have >= want:
        return name
    if have == 0:
        return f"ViewBackward0({name})"
    for _ in range(want - have):
        name = f"UnsqueezeBackward0({name})"
    return name


def stacked_graph(ndim: int) -> Callable[[Any], str]:
    """Of `vstack` and `dstack`: tensors with enough dimensions, one behind the other."""

    def graph(call: Any) -> str:
        shapes = [shape for shape, _ in call["tensors"]]
        return f"CatBackward0({', '.join(at_least_of(len(s), ndim, f'tensors[{i}]') for i, s in enumerate(shapes))})"

    return graph


def combinations_graph(call: Any) -> str:
    """Of `combinations`."""
    each = "MaskedSelectBackward0(ExpandBackward0(ViewBackward0(input)))"
    return f"StackBackward0({', '.join([each] * call['r'])})"


def cartesian_product_graph(call: Any) -> str:
    """Of `cartesian_prod`."""
    each = "UnsafeViewBackward0(CloneBackward0(ExpandBackward0(ViewBackward0(tensors[{}]))))"
    return f"StackBackward0({', '.join(each.format(i) for i in range(len(call['tensors'])))})"


def grids_graph(call: Any) -> str:
    """Of `meshgrid`, which has a result for each tensor."""
    return "; ".join(f"ExpandBackward0(ViewBackward0(tensors[{i}]))" for i in range(len(call["tensors"])))


def stft_graph(call: Any) -> str:
    """Of `stft`: frames of the padded signal times the window, transformed."""
    one = call.ndim("input") == 1
    signal = "UnsqueezeBackward0(input)" if one else "input"
    if call["center"]:
        kind = {"constant": "ConstantPadNdBackward0", "reflect": "ReflectionPad1DBackward0"}.get(
            call["pad_mode"], "ReplicationPad1DBackward0"
        )
        signal = f"ViewBackward0({kind}(ViewBackward0(input)))"
        signal = f"UnsqueezeBackward0({signal})" if one else signal
    short = call["win_length"] is not None and call["win_length"] < call["n_fft"]
    window = "CopySlices(-, window)" if short else "window"
    name = "FftC2CBackward0" if call["input"][1].is_complex else "FftR2CBackward0"
    graph = f"TransposeBackward1({name}(MulBackward0(AsStridedBackward0({signal}), {window})))"
    graph = f"SqueezeBackward4({graph})" if one else graph
    return f"ViewAsRealBackward0({graph})" if call["return_complex"] is False else graph


def norm_except_dim_graph(call: Any) -> str:
    """Of `norm_except_dim`."""
    dim, last = call["dim"], call.ndim("v") - 1
    if dim == -1:
        return "NormBackward0(v)"
    if dim in (0, last):
        return "ViewBackward0(NormBackward1(ViewBackward0(v)))"
    return "TransposeBackward0(ViewBackward0(NormBackward1(ViewBackward0(CloneBackward0(TransposeBackward0(v))))))"


def vander_graph(call: Any) -> str:
    """Of `vander`: powers written into columns."""
    first = "CopySlices(-, UnsqueezeBackward0(x))"
    return (
        f"CopySlices({first}, CumprodBackward0(SliceBackward0({first})))"
        if call["increasing"]
        else f"FlipBackward0(CopySlices({first}, CumprodBackward0(SliceBackward0({first}))))"
    )


def pad_graph(call: Any) -> str:
    """Of `pad`, by the mode and the number of padded dimensions."""
    n = len(call["pad"]) // 2
    kinds = {"reflect": "ReflectionPad", "replicate": "ReplicationPad"}
    return f"{kinds[call['mode']]}{n}DBackward0(input)" if call["mode"] in kinds else "ConstantPadNdBackward0(input)"


def number_or_tensor(argument: str, number: str, tensor: str) -> Callable[[Any], str]:
    """Of a composite with two overloads, by whether an argument is a number."""
    return lambda call: tensor if call[argument].__class__ is tuple else number


def weighted_sum_graph(call: Any) -> str:
    """Of `bilinear`, which adds the bias last."""
    product = "ViewBackward0(TrilinearBackward0(ViewBackward0(input1), weight, ViewBackward0(input2)))"
    return product if call["bias"] is None else f"AddBackward0({product}, bias)"


def tensorsolve_graph(call: Any) -> str:
    """Of `linalg.tensorsolve`."""
    matrix = (
        "ViewBackward0(input)"
        if call["dims"] is None
        else "UnsafeViewBackward0(CloneBackward0(PermuteBackward0(input)))"
    )
    return f"ViewBackward0(LinalgSolveExBackward0({matrix}, ViewBackward0(other)))"


def rms_norm_graph(call: Any) -> str:
    """Of `rms_norm`."""
    norm = "MulBackward0(input, RsqrtBackward0(AddBackward1(MeanBackward1(PowBackward0(input)))))"
    return norm if call["weight"] is None else f"MulBackward0({norm}, weight)"


def extreme_graph(name: str) -> Callable[[Any], str]:
    """Of `max` and `min`: of all elements one op, and others by a dimension or of two tensors."""
    return lambda call: f"{name}Backward1(input)" if call["dim"] is None and call["other"] is None else ""


def index_graph(node: Any) -> str:
    """Of an index of integers, slices and None: a view for each."""
    index = saved_argument(node, "index")
    items = index if isinstance(index, tuple) else (index,)
    if items == (slice(None),):
        return "SliceBackward0"
    graph = "input"
    for item in items:
        if item is not ... and item != slice(None):
            kind = "Unsqueeze" if item is None else "Slice" if isinstance(item, slice) else "Select"
            graph = f"{kind}Backward0({graph})"
    return "AliasBackward0" if graph == "input" else graph
