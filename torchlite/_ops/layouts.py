"""Which op lays out its results by which rule of `torchlite._dispatch.layouts`. Ops that are not listed lie as their
kernels leave them, which is right for those that NumPy's ufuncs and the devices' pointwise kernels compute.
"""

from __future__ import annotations

from .._dispatch import REGISTRY, layouts, op

op("_placed(Tensor input, strides)", where="", composite=layouts.placed, vjp={"input": lambda F, g: g})

_RULES = {
    layouts.contiguous: """
        all any amax amin mean prod count_nonzero mode kthvalue median nanmedian median_dim nanmedian_dim max_dim
        min_dim aminmax std var std_mean var_mean var_correction std_correction logsumexp norm cosine_similarity
        cumsum cumprod cummax cummin logcumsumexp cumulative_trapezoid gradient _softmax _log_softmax tril triu gather
        repeat tile take_along_dim repeat_interleave linalg_cross masked_fill renorm matmul bmm linalg_pinv
        split_with_sizes_copy unfold_copy expand_copy unbind_copy unsqueeze_copy narrow_copy diagonal_copy view_copy
        transpose_copy squeeze_copy as_strided_copy permute_copy t_copy fft_fftshift fft_ifftshift
        linalg_lu lu_unpack diag index_select native_layer_norm _layer_norm instance_norm avg_pool1d adaptive_avg_pool1d
    """,
    layouts.suggested: """
        roll
        pixel_shuffle pixel_unshuffle channel_shuffle constant_pad_nd _resize interpolate upsample_bilinear
        upsample_nearest upsample group_norm
    """,
    layouts.kept_if_dense: "_batch_norm_train _channel_affine native_batch_norm",
    layouts.pooled: "_max_pool _max_pool_with_indices",
    layouts.suggested_of_images: "_avg_pool _adaptive_avg_pool _adaptive_max_pool max_unpool2d max_unpool3d",
    layouts.solution_from_left: "linalg_lu_solve",
    layouts.convolved: "convolution",
    layouts.like_first: """
        flip sort argsort index_fill put frexp nan_to_num isreal fill local_response_norm slice_scatter
        select_scatter diagonal_scatter dropout2d dropout3d feature_alpha_dropout bernoulli poisson binomial hardtanh
        relu6 threshold index_put
    """,
    layouts.pointwise: """
        igamma igammac special_zeta special_chebyshev_polynomial_t special_chebyshev_polynomial_u
        special_chebyshev_polynomial_v special_chebyshev_polynomial_w special_hermite_polynomial_h
        special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p
        special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
        special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w complex polar leaky_relu gelu
        hardswish hardshrink softshrink erf erfinv xlogy special_xlog1py addcmul addcdiv isclose logaddexp heaviside
        float_power hypot nextafter _choose _where where clamp copysign addr binary_cross_entropy
        binary_cross_entropy_with_logits hinge_embedding_loss kron celu digamma elu erfc hardsigmoid i0 logsigmoid mish
        selu silu softplus special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
        special_erfcx special_i0e special_i1 special_i1e special_log_ndtr special_modified_bessel_i0
        special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_ndtr special_ndtri
        special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0
    """,
    layouts.joined: "cat",
    layouts.stacked: "stack",
    layouts.padded: "pad",
    layouts.indexed: "_index",
    layouts.outputs(layouts.columns, *[layouts.contiguous] * 3): "linalg_lstsq",
    layouts.places: "nonzero argwhere",
    layouts.columns: """
        linalg_inv inverse linalg_cholesky cholesky cholesky_solve cholesky_inverse linalg_householder_product ormqr
        linalg_solve linalg_solve_triangular lu_solve linalg_ldl_solve
    """,
    layouts.outputs(layouts.columns, layouts.columns): "linalg_qr qr triangular_solve",
    layouts.outputs(layouts.columns, layouts.contiguous, layouts.contiguous): """
        linalg_inv_ex linalg_cholesky_ex linalg_solve_ex linalg_lu_factor linalg_lu_factor_ex lu geqrf
        linalg_ldl_factor linalg_ldl_factor_ex
    """,
    layouts.outputs(layouts.contiguous, layouts.columns): "linalg_eig linalg_eigh",
    layouts.outputs(layouts.columns, layouts.contiguous, layouts.contiguous): "svd",
    layouts.outputs(layouts.columns, layouts.contiguous, layouts.columns): "linalg_svd",
}  # fmt: skip


def apply() -> None:
    """Give the records their rules."""
    for rule, names in _RULES.items():
        for name in names.split():
            record = REGISTRY[name]
            record.layout = rule
            if record.is_implicit:
                record.composite = layouts.keeps_composite_layout(record, rule)
