"""PyTorch's names for the nodes of the graph."""

from __future__ import annotations

from collections.abc import Callable

# Where PyTorch's derivative is called otherwise than the record.
_NAMES: dict[str, str] = {
    **dict.fromkeys(
        (
            "floor_divide",
            "heaviside",
            "bincount",
            "_ldl_factor_core",
            "_histogram_counts",
            "_random_binomial",
            "_random_dirichlet",
            "_dirichlet_grad",
            "_set",
        ),
        "NotImplemented",
    ),
    "_bce": "BinaryCrossEntropyBackward0",
    "_clamp_scalars": "ClampBackward1",
    "_clamp_tensors": "ClampBackward0",
    "_choose": "WhereBackward0",
    "_copy_slices": "torch::autograd::CopySlices",
    "_floor_divide": "DivBackward2",
    "_im2col": "Im2ColBackward0",
    "_index": "IndexBackward0",
    "_layer_norm": "NativeLayerNormBackward0",
    "_lerp_scalar": "LerpBackward0",
    "_lerp_tensor": "LerpBackward1",
    "_masked_fill_tensor": "MaskedFillBackward1",
    "_prelu": "PreluKernelBackward0",
    "_trunc_divide": "DivBackward2",
    "_where": "WhereBackward0",
    "_cdist_core": "CdistBackward0",
    "deg2rad": "Deg2RadBackward0",
    "_det_core": "LinalgDetBackward0",
    "_eig_core": "LinalgEigBackward0",
    "_eigh_core": "LinalgEighBackward0",
    "_fft_c2c_core": "FftC2CBackward0",
    "_fft_c2r_core": "FftC2RBackward0",
    "_fft_r2c_core": "FftR2CBackward0",
    "_cow_clone": "LazyCloneBackward0",
    "_householder_product_core": "LinalgHouseholderProductBackward0",
    "_inv_core": "LinalgInvExBackward0",
    "log1p": "Log1PBackward0",
    "logsigmoid": "LogSigmoidBackward0",
    "matrix_exp": "LinalgMatrixExpBackward0",
    "max_dim": "MaxBackward0",
    "median_all": "MedianBackward0",
    "median_dim": "MedianBackward1",
    "min_dim": "MinBackward0",
    "nanmedian_all": "NanmedianBackward0",
    "nanmedian_dim": "NanmedianBackward1",
    "_pinv_core": "LinalgPinvBackward0",
    "_qr_core": "LinalgQrBackward0",
    "_random_bernoulli_each": "BernoulliBackward0",
    "_random_gamma": "StandardGammaBackward0",
    "_random_poisson": "PoissonBackward0",
    "rad2deg": "Rad2DegBackward0",
    "relu6": "HardtanhBackward0",
    "reshape": "ViewBackward0",
    "selu": "EluBackward0",
    "_slogdet_core": "LinalgSlogdetBackward0",
    "special_i0e": "SpecialI0EBackward0",
    "special_i1e": "SpecialI1EBackward0",
    "special_xlog1py": "SpecialXlog1PyBackward0",
    "square": "PowBackward0",
    "std_correction": "StdBackward0",
    "_svd_core": "LinalgSvdBackward0",
    "to": "ToCopyBackward0",
    "var_correction": "VarBackward0",
    "vector_norm_core": "LinalgVectorNormBackward0",
}


def _saved(node, name: str, kinds: tuple = ("value", "plain")):
    """What the node saved of an argument; None where it saved nothing of it."""
    for i, (saved, kind, _) in enumerate(node._op.saved_variables.saves):
        if saved == name and kind in kinds and node._saved is not None:
            return node._saved[i]
    return None


def _saved_dtype(node, name: str):
    return _saved(node, name, ("dtype",))


def _scalar_or_tensor(name: str, argument: str = "other") -> Callable:
    """The form for a number is the first, that for a tensor the second."""

    def form(node) -> str:
        number = (
            isinstance(_saved(node, argument), (int, float, complex)) or node._saved is None and not node._edges[-1]
        )
        return f"{name}Backward{0 if number else 1}"

    return form


def _by_dim(name: str) -> Callable:
    return lambda node: f"{name}Backward{0 if _saved(node, 'dim') in (None, ()) else 1}"


def _squeeze_name(node) -> str:
    dim = _saved(node, "dim")
    return f"SqueezeBackward{0 if dim is None else 1 if isinstance(dim, int) else 2}"


def _setitem_name(node) -> str:
    """A write by an index: through a view where the index is one of a view."""
    index = _saved(node, "index")
    items = index if isinstance(index, tuple) else (index,)
    basic = all(item is None or item is ... or isinstance(item, (int, slice)) for item in items)
    return "torch::autograd::CopySlices" if basic else "IndexPutBackward0"


def _view_of_base_name(node) -> str:
    """A view by its base's new history."""
    kinds = [dtype is not None and dtype.is_complex for dtype in (_saved(node, "dtype"), _saved_dtype(node, "input"))]
    return {(True, False): "ViewAsComplexBackward0", (False, True): "ViewAsRealBackward0"}.get(
        (kinds[0], kinds[1]), "AsStridedBackward0"
    )


def _matmul_name(node) -> str:
    dims = len(node._shape)
    return {0: "DotBackward0", 1: "MvBackward0", 2: "MmBackward0", 3: "BmmBackward0"}.get(dims, "UnsafeViewBackward0")


def _linear_name(node) -> str:
    return "AddmmBackward0" if len(node._shape) == 2 and node._edges[-1] is not None else "ViewBackward0"


def _split_name(node) -> str:
    sizes = _saved(node, "split_sizes") or ()
    return "SplitBackward0" if len(set(sizes[:-1])) < 2 and sizes[-1:] <= sizes[:1] else "SplitWithSizesBackward0"


def _getitem_name(node) -> str:
    """The last step of an index: an integer selects, a slice slices."""
    index = _saved(node, "index")
    items = index if isinstance(index, tuple) else (index,)
    if items == (slice(None),):
        return "SliceBackward0"
    steps = [item for item in items if item is not ... and item != slice(None)]
    if not steps:
        return "AliasBackward0"
    last = steps[-1]
    return "UnsqueezeBackward0" if last is None else "SliceBackward0" if isinstance(last, slice) else "SelectBackward0"


def _extreme(name: str) -> Callable:
    return lambda node: f"A{name}Backward0" if _saved(node, "dim") not in (None, ()) else f"{name.title()}Backward1"


def _random_fill_name(node) -> str:
    name = str(_saved(node, "name")).strip("_")
    which = {"bernoulli": 2, "random": 1}.get(name, 0)
    return "".join(word.title() for word in name.split("_")) + f"Backward{which}"


def _normal_name(node) -> str:
    mean, std = (edge is not None for edge in node._edges[1:])
    return f"NormalBackward{3 if mean and std else 2 if std else 1}"


_NAME_FUNCTIONS: dict[str, Callable] = {
    "_normal_sample": _normal_name,
    "_random_fill": _random_fill_name,
    "_slice_index": _getitem_name,
    "amax": _extreme("max"),
    "amin": _extreme("min"),
    "clamp_max": _scalar_or_tensor("ClampMax", "max"),
    "clamp_min": _scalar_or_tensor("ClampMin", "min"),
    "fmod": _scalar_or_tensor("Fmod"),
    "linear": _linear_name,
    "matmul": _matmul_name,
    "mean": _by_dim("Mean"),
    "pow": _scalar_or_tensor("Pow", "exponent"),
    "remainder": _scalar_or_tensor("Remainder"),
    "split_with_sizes": _split_name,
    "squeeze": _squeeze_name,
    "_setitem": _setitem_name,
    "_view_of_base": _view_of_base_name,
    "sum": _by_dim("Sum"),
}


def node_name(node) -> str:
    """PyTorch's name for a node, e.g. MulBackward0."""
    name = node._op.name
    form = _NAME_FUNCTIONS.get(name)
    if form is not None:
        return form(node)
    return _NAMES.get(name) or "".join(word[:1].upper() + word[1:] for word in name.split("_")) + "Backward0"
