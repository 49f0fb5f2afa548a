"""The dtype in which autocast runs each op: PyTorch's lists, by the names of torchlite's op records.

Internal records are listed too where a public op calls the listed op through them. An op on no list runs unchanged; if
it is composite, autocast sees its parts.
"""

from __future__ import annotations

from collections.abc import Callable

from .._types.dtypes import float32

# The casts of an op's floating-point tensors (float64 is never cast).
LOWER = "lower"  # cast to the region's dtype
FLOAT = "float32"  # cast to float32
RESULT = "result"  # dtype=float32 is passed unless the call sets a dtype
WIDEST = "widest"  # cast to float32 if any is float32, else to the region's dtype
BANNED = "banned"  # refused
WHOLE = "whole"  # not cast, nor its parts: one op in PyTorch, several here

_PRODUCTS = """addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    linalg_vecdot linear matmul mm prelu rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell scaled_dot_product_attention """
_LOSSES = """binary_cross_entropy_with_logits cdist cosine_embedding_loss cross_entropy hinge_embedding_loss huber_loss
    kl_div margin_ranking_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss
    soft_margin_loss triplet_margin_loss """

CUDA = {
    LOWER: _PRODUCTS + "addmv addr chain_matmul convolution einsum gru gru_cell linalg_multi_dot lstm lstm_cell mv",
    FLOAT: _LOSSES
    + """_resize acos asin cosh cosine_similarity dist erfinv exp expm1 frobenius_norm group_norm l1_loss layer_norm log
        log10 log1p log2 logsumexp mse_loss multilabel_soft_margin_loss native_layer_norm norm_except_dim nuclear_norm
        pdist pow reciprocal renorm rms_norm rsqrt sinh softplus square tan""",
    RESULT: "cumprod cumsum linalg_matrix_norm linalg_norm linalg_vector_norm log_softmax norm prod softmax sum",
    WIDEST: "addcdiv addcmul atan2 bilinear cross dot grid_sample grid_sampler index_put scatter_add tensordot vdot",
    BANNED: "binary_cross_entropy",
    WHOLE: """_addmm_activation _compute_linear_combination _native_multi_head_attention _safe_softmax cholesky_inverse
        ldexp linalg_lu_solve lu_solve nanmean nansum native_batch_norm native_group_norm trace vander""",
}
CPU = {
    LOWER: _PRODUCTS + "_addmm_activation _native_multi_head_attention affine_grid_generator",
    FLOAT: _LOSSES
    + """adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices binary_cross_entropy cholesky
        cholesky_inverse cholesky_solve ctc_loss fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn
        fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn fractional_max_pool2d
        fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices
        geqrf grid_sample grid_sampler inverse linalg_cholesky linalg_cholesky_ex linalg_cond
        linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex
        linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv
        linalg_tensorsolve lu lu_solve max_unpool1d max_unpool2d max_unpool3d nanquantile ormqr pinverse polar prod qr
        quantile stft svd trace triangular_solve view_as_complex""",
    WIDEST: "cat index_copy stack",
    WHOLE: "_compute_linear_combination bilinear linalg_lu_solve",
}


def _make_conditional_rule(kind: str, condition: Callable) -> Callable:
    """Return the rule `kind` if the condition on the op's arguments is true."""
    return lambda *values: kind if condition(*values) else None


def _is_chain_or_mixed(equation, operands) -> bool:
    flat = [
        x
        for item in (equation, *operands)
        for x in (item if isinstance(item, (list, tuple)) else (item,))
        if hasattr(x, "dtype")
    ]
    return len(flat) > 2 or len({x.dtype for x in flat}) > 1


def _as_states(input, hx, *rest) -> str:
    """Rule of recurrent layers that run step by step: float32 if the input or a state is float32, else the
    lower dtype.
    """
    states = (
        hx if isinstance(hx, (list, tuple)) else [rest[0] if hasattr(rest[0], "dtype") else hx]
    )  # packed data have their sizes before hx
    return FLOAT if float32 in [x.dtype for x in (input, *states)] else LOWER


def _as_states_if_packed(input, hx, *rest) -> str:
    return LOWER if isinstance(hx, (list, tuple)) else _as_states(input, rest[0], *rest[1:])


# Rules that depend on the values of the arguments: for names that cover several of PyTorch's ops.
CPU_BY_ARGUMENTS = {
    "_avg_pool": _make_conditional_rule(FLOAT, lambda input, kernel, *_: len(kernel) == 3),
    "einsum": _make_conditional_rule(LOWER, _is_chain_or_mixed),
    "fake_quantize_per_tensor_affine": _make_conditional_rule(FLOAT, lambda input, scale, *_: isinstance(scale, float)),
    "gru": _as_states,
    "inner": _make_conditional_rule(WHOLE, lambda input, other: input.ndim == other.ndim == 1),
    "l1_loss": _make_conditional_rule(FLOAT, lambda *values: values[-1] is None),  # without weights
    "local_response_norm": _make_conditional_rule(FLOAT, lambda input, *_: input.ndim > 3),
    "lstm": _as_states_if_packed,
    "max_pool3d": _make_conditional_rule(FLOAT, lambda *values: not values[-1]),  # without indices
    "mse_loss": _make_conditional_rule(FLOAT, lambda *values: values[-1] is None),
    "pad": _make_conditional_rule(
        FLOAT, lambda input, pad, mode="constant", value=None: mode == "replicate" or mode == "reflect" and len(pad) < 6
    ),
}


def _make_rules(lists: dict[str, str], by_arguments: dict[str, Callable]) -> dict[str, str | Callable]:
    """{op: rule}, a rule being a kind or a function of the values of the op's parameters."""
    return {**{name: kind for kind, names in lists.items() for name in names.split()}, **by_arguments}


_ON_CUDA = _make_rules(CUDA, {})
RULES = {"cuda": _ON_CUDA, "opencl": _ON_CUDA, "cpu": _make_rules(CPU, CPU_BY_ARGUMENTS)}
AUTOCAST_OPS = frozenset(name for rules in RULES.values() for name in rules)
