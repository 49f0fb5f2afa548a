"""Ops of ai.onnx.ml: classical models as exported from scikit-learn."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from ..._serialization.pickle_costs import index_of_keys
from .op_registry import Ints, op
from .resource_limits import TrackedSequence, check_broadcast, check_elements, check_objects, check_work
from .strings import string_array

_DOMAIN = "ai.onnx.ml"


def _as_array(values: Any) -> np.ndarray:
    return values if isinstance(values, np.ndarray) else values.detach().cpu().numpy()


def _lookup_table(given: dict[str, Any], prefix: str) -> list | None:
    """Return the keys or values from whichever typed attribute is set."""
    for name in (f"{prefix}_int64s", f"{prefix}_floats", f"{prefix}_strings"):
        if given.get(name) is not None:
            return list(given[name])
    tensor = given.get(f"{prefix}_tensor")
    return None if tensor is None else _as_array(tensor).ravel().tolist()


@op("LabelEncoder", domain=_DOMAIN, since=2)
def label_encoder(
    x: Any, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    default_tensor: Any = None, keys_floats: Any = None, keys_int64s: Any = None, keys_strings: Any = None,
    keys_tensor: Any = None, values_floats: Any = None, values_int64s: Any = None, values_strings: Any = None,
    values_tensor: Any = None,
) -> Any:  # fmt: skip
    given = locals()
    keys, values = _lookup_table(given, "keys") or [], _lookup_table(given, "values") or []
    known = {k: values[place] for k, place in index_of_keys(keys).items() if k == k}
    nothing = next((v for k, v in zip(keys, values, strict=True) if k != k), None)  # the value for NaN
    if values_strings is not None or values_tensor is not None and not isinstance(values_tensor, Tensor):
        missing: Any = default_string if default_tensor is None else _as_array(default_tensor).ravel()[0]
    elif values_floats is not None:
        missing = default_float
    else:
        missing = default_int64
    if values_tensor is not None and default_tensor is not None:
        missing = _as_array(default_tensor).ravel()[0].item() if isinstance(default_tensor, Tensor) else missing
    check_objects("LabelEncoder", math.prod(x.shape) // 2)
    found = [known.get(k, missing if k == k or nothing is None else nothing) for k in _as_array(x).ravel().tolist()]
    if values and isinstance(values[0], str):
        return string_array(found, x.shape)
    dtype = values_tensor.dtype if values_tensor is not None else (
        torch.float32 if values_floats is not None else torch.int64)  # fmt: skip
    return torch.tensor(found, dtype=dtype).reshape(x.shape)


@op("LabelEncoder", domain=_DOMAIN)
def label_encoder_opset1(
    x: Any, *, classes_strings: Any, default_int64: int = -1, default_string: str = "_Unused"
) -> Any:
    if isinstance(x, np.ndarray):
        return label_encoder(
            x, keys_strings=classes_strings, values_int64s=list(range(len(classes_strings))),
            default_int64=default_int64,
        )  # fmt: skip
    return label_encoder(
        x, keys_int64s=list(range(len(classes_strings))), values_strings=classes_strings, default_string=default_string
    )


@op("CategoryMapper", domain=_DOMAIN)
def category_mapper(
    x: Any, *, cats_int64s: Ints, cats_strings: Any, default_int64: int = -1, default_string: str = "_Unused"
) -> Any:
    if isinstance(x, np.ndarray):
        return label_encoder(x, keys_strings=cats_strings, values_int64s=cats_int64s, default_int64=default_int64)
    return label_encoder(x, keys_int64s=cats_int64s, values_strings=cats_strings, default_string=default_string)


@op("ArrayFeatureExtractor", domain=_DOMAIN)
def array_feature_extractor(x: Any, places: Tensor) -> Any:
    if isinstance(x, np.ndarray):
        return x[..., places.reshape(-1).numpy()]
    check_elements("ArrayFeatureExtractor", *x.shape[:-1], places.numel())
    out = torch.index_select(x, -1, places.reshape(-1))
    return out.reshape(1, -1) if x.ndim == 1 else out


@op("Binarizer", domain=_DOMAIN)
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    return (x > threshold).to(x.dtype)


@op("FeatureVectorizer", domain=_DOMAIN)
def feature_vectorizer(*values: Tensor, inputdimensions: Ints = None) -> Tensor:
    check_elements("FeatureVectorizer", sum(v.numel() for v in values), each=2)
    return torch.cat([v.reshape(v.shape[0], -1).to(torch.float32) for v in values], 1)


@op("Imputer", domain=_DOMAIN)
def imputer(
    x: Tensor, *, imputed_value_floats: Any = None, imputed_value_int64s: Any = None,
    replaced_value_float: float = 0.0, replaced_value_int64: int = 0,
) -> Tensor:  # fmt: skip
    values = imputed_value_floats if imputed_value_floats is not None else imputed_value_int64s
    wanted = replaced_value_float if x.is_floating_point() else replaced_value_int64
    gone = torch.isnan(x) if isinstance(wanted, float) and math.isnan(wanted) else x == wanted
    filling = torch.tensor(values, dtype=x.dtype, device=x.device)
    check_broadcast("Imputer", x, filling)
    return torch.where(gone, filling, x)


@op("Normalizer", domain=_DOMAIN)
def normalizer(x: Tensor, *, norm: str = "MAX") -> Tensor:
    x = x.to(torch.float32)
    if norm == "MAX":
        size = x.abs().amax(-1, True)
    else:
        size = x.abs().sum(-1, True) if norm == "L1" else (x * x).sum(-1, True).sqrt()
    return x / torch.where(size == 0, torch.ones_like(size), size)


@op("OneHotEncoder", domain=_DOMAIN)
def one_hot_encoder(x: Any, *, cats_int64s: Ints = None, cats_strings: Any = None, zeros: int = 1) -> Tensor:
    kinds = cats_strings if cats_int64s is None else cats_int64s
    array = _as_array(x)
    known = index_of_keys(kinds)
    found = [known.get(item if isinstance(item, str) else int(item), -1) for item in array.ravel().tolist()]
    if not zeros and -1 in found:
        raise ValueError("OneHotEncoder: a value is of no category")
    check_elements("OneHotEncoder", len(found), len(known), each=2)
    out = np.zeros((len(found), len(known)), np.float32)
    for i, place in enumerate(found):
        if place >= 0:
            out[i, place] = 1
    encoded = torch.from_numpy(out.reshape(*array.shape, len(known)))
    return encoded.to(x.device) if isinstance(x, Tensor) else encoded


@op("Scaler", domain=_DOMAIN)
def scaler(x: Tensor, *, offset: Any = None, scale: Any = None) -> Tensor:
    x = x.to(torch.float32)
    for values, function in ((offset, torch.sub), (scale, torch.mul)):
        if values is not None:
            other = torch.tensor(values, device=x.device)
            check_broadcast("Scaler", x, other)
            x = function(x, other)
    return x


def _inverse_normal_cdf(x: Tensor) -> Tensor:
    return math.sqrt(2) * torch.erfinv(2 * x - 1)


_AFTER: dict[str, Callable[[Tensor], Tensor]] = {
    "NONE": lambda x: x,
    "LOGISTIC": lambda x: torch.sigmoid(x),
    "SOFTMAX": lambda x: torch.softmax(x, -1),
    "SOFTMAX_ZERO": lambda x: torch.where(
        x == 0, torch.zeros_like(x), torch.softmax(torch.where(x == 0, torch.full_like(x, -math.inf), x), -1)
    ),
    "PROBIT": _inverse_normal_cdf,
}


@op("LinearRegressor", domain=_DOMAIN)
def linear_regressor(
    x: Tensor, *, coefficients: Any, intercepts: Any = None, post_transform: str = "NONE", targets: int = 1
) -> Tensor:
    check_elements("LinearRegressor", x.shape[0] * targets)
    weight = torch.tensor(coefficients, device=x.device).reshape(targets, -1)
    out = F.linear(x.to(torch.float32), weight)
    return _AFTER[post_transform](_add_base_values(out, intercepts))


@op("LinearClassifier", domain=_DOMAIN)
def linear_classifier(
    x: Tensor, *, classlabels_ints: Ints = None, classlabels_strings: Any = None, coefficients: Any,
    intercepts: Any = None, multi_class: int = 0, post_transform: str = "NONE", outputs: int = 1,
) -> Any:  # fmt: skip
    labels = classlabels_strings if classlabels_ints is None else classlabels_ints
    rows = max(len(labels), 1) if len(coefficients) % max(len(labels), 1) == 0 else 1
    rows = len(intercepts) if intercepts else rows
    check_elements("LinearClassifier", x.shape[0], rows)
    scores = F.linear(x.to(torch.float32), torch.tensor(coefficients, device=x.device).reshape(rows, -1))
    scores = _add_base_values(scores, intercepts)
    if rows == 1 and len(labels) == 2:
        places = (scores[:, 0] > 0).to(torch.int64)
        scores = torch.cat([-scores, scores], 1) if post_transform == "NONE" else torch.cat(
            [1 - _AFTER[post_transform](scores), _AFTER[post_transform](scores)], 1)  # fmt: skip
    else:
        places, scores = torch.argmax(scores, 1), _AFTER[post_transform](scores)
    return _attach_labels(places, scores, labels, outputs)


def _attach_labels(places: Tensor, scores: Tensor, labels: Any, outputs: int) -> Any:
    found = [labels[i] for i in places.tolist()]
    named = (
        string_array(found, (len(found),)) if isinstance(labels[0], str) else torch.tensor(found, device=places.device)
    )
    return named if outputs == 1 else (named, scores)


@op("ZipMap", domain=_DOMAIN)
def zip_map(x: Tensor, *, classlabels_int64s: Ints = None, classlabels_strings: Any = None) -> list:
    labels = classlabels_strings if classlabels_int64s is None else classlabels_int64s
    objects = x.numel() + 4 * x.shape[0]
    check_objects("ZipMap", objects)
    index_of_keys(labels)
    return TrackedSequence((dict(zip(labels, row, strict=True)) for row in x.tolist()), objects)


@op("DictVectorizer", domain=_DOMAIN)
def dict_vectorizer(x: dict, *, int64_vocabulary: Ints = None, string_vocabulary: Any = None) -> Tensor:
    words = string_vocabulary if int64_vocabulary is None else int64_vocabulary
    return torch.tensor([[x.get(word, 0) for word in words]])


_COMPARE = ["le", "lt", "ge", "gt", "eq", "ne"]  # by mode number of TreeEnsemble
_MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def _find_leaves(
    x: Tensor, root: Tensor, features: Tensor, splits: Tensor, modes: list[int], yes: Tensor, no: Tensor,
    is_leaf: Tensor, missing: Tensor, members: dict[int, Tensor] | None = None,
) -> Tensor:  # fmt: skip
    """Return the leaf of each row of `x` for each root: all rows descend one level at a time."""
    now = root.reshape(1, -1).expand(x.shape[0], -1)
    kinds = torch.tensor(modes, device=x.device)
    count = check_elements("a tree ensemble", *now.shape, each=4)
    for _ in range(len(modes) + 1):
        check_work("a tree ensemble", 32 * count + 4096)
        inside = ~is_leaf[now]
        if not bool(inside.any()):
            return now
        value = torch.gather(x, 1, features[now])
        split = splits[now].to(x.dtype)
        goes = torch.zeros_like(inside)
        for number, compare in enumerate(_COMPARE):
            goes = torch.where(kinds[now] == number, getattr(torch, compare)(value, split), goes)
        for place, values in (members or {}).items():
            check_elements("a tree ensemble", count, values.numel())
            check_work("a tree ensemble", 2 * count * values.numel() + 1024)
            within = (value.unsqueeze(-1) == values.to(x.dtype)).any(-1)
            goes = torch.where(now == place, within, goes)
        goes = goes | (torch.isnan(value) & missing[now])
        now = torch.where(inside, torch.where(goes, yes[now], no[now]), now)
    raise ValueError("a tree's nodes lead back to themselves")


_AGGREGATES = {0: "mean", 1: "sum", 2: "amin", 3: "amax"}


@op("TreeEnsemble", domain=_DOMAIN)
def tree_ensemble(
    x: Tensor, *, aggregate_function: int = 1, leaf_targetids: Ints, leaf_weights: Tensor,
    membership_values: Tensor | None = None, n_targets: int | None = None, nodes_falseleafs: Ints,
    nodes_falsenodeids: Ints, nodes_featureids: Ints, nodes_hitrates: Any = None,
    nodes_missing_value_tracks_true: Ints = None, nodes_modes: Tensor, nodes_splits: Tensor, nodes_trueleafs: Ints,
    nodes_truenodeids: Ints, post_transform: int = 0, tree_roots: Ints,
) -> Tensor:  # fmt: skip
    count = len(nodes_featureids)
    ends = len(leaf_targetids)
    make = functools.partial(torch.tensor, device=x.device)
    whole = torch.arange(count + ends, device=x.device)
    is_leaf = whole >= count

    def child_indices(places: Any, leaf: Any) -> Tensor:
        return make([p + count if at else p for p, at in zip(places, leaf, strict=True)] + [0] * ends)

    def pad_leaves(values: Any) -> Tensor:
        return torch.cat([values, torch.zeros(ends, dtype=values.dtype, device=x.device)])

    modes = [int(m) for m in nodes_modes.tolist()]
    members: dict[int, Tensor] = {}
    if membership_values is not None:
        groups: list[list[float]] = [[]]
        for value in membership_values.tolist():
            if math.isnan(value):
                groups.append([])
            else:
                groups[-1].append(value)
        found = iter(groups)
        members = {i: make(next(found)) for i, mode in enumerate(modes) if mode == 6}
    missing = make(nodes_missing_value_tracks_true or [0] * count, dtype=torch.bool)
    at = _find_leaves(
        x,
        make(tree_roots),
        pad_leaves(make(nodes_featureids)),
        pad_leaves(nodes_splits.to(x.device)),
        modes + [0] * ends,
        child_indices(nodes_truenodeids, nodes_trueleafs),
        child_indices(nodes_falsenodeids, nodes_falseleafs),
        is_leaf,
        pad_leaves(missing),
        members,
    )
    leaf = at - count
    values = leaf_weights.to(x.device)[leaf]
    places = make(leaf_targetids)[leaf]
    check_elements("TreeEnsemble", x.shape[0], n_targets or 1)
    out = torch.zeros(x.shape[0], n_targets or 1, dtype=x.dtype, device=x.device)
    kept = torch.scatter_reduce(
        out, 1, places, values.to(x.dtype), _AGGREGATES[aggregate_function], include_self=aggregate_function == 1
    )
    return list(_AFTER.values())[post_transform](kept)


def _nodes_by_id(trees: Any, nodes: Any) -> dict[tuple[int, int], int]:
    return index_of_keys(list(zip(trees, nodes, strict=True)))


def _child_nodes(x: Tensor, place: dict[tuple[int, int], int], trees: Any, nodes: Any, modes: Any) -> Tensor:
    """Return the child nodes of each tree node; 0 for leaves."""
    found = [0 if mode == "LEAF" else place.get((t, n), -1) for t, n, mode in zip(trees, nodes, modes, strict=True)]
    if min(found, default=0) < 0:
        raise ValueError("a tree has no node that another one leads to")
    return torch.tensor(found, device=x.device)


def _legacy_tree_sums(x: Tensor, given: dict[str, Any], kind: str, targets: int) -> tuple[Tensor, dict]:
    """Return the sums of leaf values for the older tree ops."""
    trees, nodes = given["nodes_treeids"], given["nodes_nodeids"]
    place = _nodes_by_id(trees, nodes)
    if wrong := set(given["nodes_modes"]) - {"LEAF", *_MODES}:
        raise ValueError(f"a tree has nodes of the mode {min(wrong)!r}")
    yes, no = (
        _child_nodes(x, place, trees, given[f"nodes_{way}nodeids"], given["nodes_modes"]) for way in ("true", "false")
    )
    first: dict[int, int] = {}  # first node by tree
    for (tree, _), i in place.items():
        first[tree] = min(i, first.get(tree, i))
    make = functools.partial(torch.tensor, device=x.device)
    is_leaf = make([mode == "LEAF" for mode in given["nodes_modes"]])
    modes = [0 if mode == "LEAF" else _MODES.index(mode) for mode in given["nodes_modes"]]
    roots = make(list(first.values()))
    missing = make(given["nodes_missing_value_tracks_true"] or [0] * len(modes), dtype=torch.bool)
    splits = given["nodes_values"] if given["nodes_values"] is not None else given["nodes_values_as_tensor"].tolist()
    at = _find_leaves(
        x, roots, make(given["nodes_featureids"]), make(splits, dtype=x.dtype), modes, yes, no,
        is_leaf, missing,
    )  # fmt: skip
    check_elements("a tree ensemble", len(modes) + at.numel(), targets)
    weights = np.zeros((len(modes), targets))
    values = given[f"{kind}_weights"]
    values = given[f"{kind}_weights_as_tensor"].tolist() if values is None else values
    if min(given[f"{kind}_ids"], default=0) < 0:
        raise ValueError(f"a tree's {kind}_ids are negative")
    for tree, node, target, weight in zip(
        given[f"{kind}_treeids"], given[f"{kind}_nodeids"], given[f"{kind}_ids"], values, strict=True
    ):
        weights[place[tree, node], target] += weight
    return torch.from_numpy(weights).to(x.dtype).to(x.device)[at], place


def _add_base_values(scores: Tensor, values: Any) -> Tensor:
    if values is None:
        return scores
    other = torch.tensor(values, dtype=scores.dtype, device=scores.device)
    check_broadcast("base values", scores, other)
    return scores + other


@op("TreeEnsembleRegressor", domain=_DOMAIN)
def tree_ensemble_regressor(
    x: Tensor, *, aggregate_function: str = "SUM", base_values: Any = None, base_values_as_tensor: Any = None,
    n_targets: int = 1, nodes_falsenodeids: Ints, nodes_featureids: Ints, nodes_hitrates: Any = None,
    nodes_hitrates_as_tensor: Any = None, nodes_missing_value_tracks_true: Ints = None, nodes_modes: Any,
    nodes_nodeids: Ints, nodes_treeids: Ints, nodes_truenodeids: Ints, nodes_values: Any = None,
    nodes_values_as_tensor: Any = None, post_transform: str = "NONE", target_ids: Ints, target_nodeids: Ints,
    target_treeids: Ints, target_weights: Any = None, target_weights_as_tensor: Any = None,
) -> Tensor:  # fmt: skip
    given = dict(locals())
    x = x if x.is_floating_point() else x.to(torch.float32)
    found, _ = _legacy_tree_sums(x, given, "target", n_targets)
    together = {"SUM": torch.sum, "AVERAGE": torch.mean, "MIN": torch.amin, "MAX": torch.amax}[aggregate_function]
    base = base_values if base_values_as_tensor is None else base_values_as_tensor.tolist()
    return _AFTER[post_transform](_add_base_values(together(found, 1), base)).to(torch.float32)


@op("TreeEnsembleClassifier", domain=_DOMAIN)
def tree_ensemble_classifier(
    x: Tensor, *, base_values: Any = None, base_values_as_tensor: Any = None, class_ids: Ints, class_nodeids: Ints,
    class_treeids: Ints, class_weights: Any = None, class_weights_as_tensor: Any = None,
    classlabels_int64s: Ints = None, classlabels_strings: Any = None, nodes_falsenodeids: Ints,
    nodes_featureids: Ints, nodes_hitrates: Any = None, nodes_hitrates_as_tensor: Any = None,
    nodes_missing_value_tracks_true: Ints = None, nodes_modes: Any, nodes_nodeids: Ints, nodes_treeids: Ints,
    nodes_truenodeids: Ints, nodes_values: Any = None, nodes_values_as_tensor: Any = None,
    post_transform: str = "NONE", outputs: int = 1,
) -> Any:  # fmt: skip
    given = dict(locals())
    labels = classlabels_strings if classlabels_int64s is None else classlabels_int64s
    x = x if x.is_floating_point() else x.to(torch.float32)
    found, _ = _legacy_tree_sums(x, given, "class", len(labels))
    base = base_values if base_values_as_tensor is None else base_values_as_tensor.tolist()
    scores = found.sum(1)
    if len(labels) == 2 and set(class_ids) <= {0}:  # a single score is that of the second class
        one = _add_base_values(scores[:, :1], base)
        first = _AFTER[post_transform](one)
        even = 0.5 if post_transform in ("NONE", "LOGISTIC") else 0.0
        pair = torch.cat([1 - first, first], 1)
        return _attach_labels((first[:, 0] > even).to(torch.int64), pair, labels, outputs)
    scores = _add_base_values(scores, base)
    return _attach_labels(torch.argmax(scores, 1), _AFTER[post_transform](scores).to(torch.float32), labels, outputs)
