"""Attention."""

from tests.ops.op_db import A, S, row

row(
    "scaled_dot_product_attention",
    S((2, 3, 4), (2, 5, 4), (2, 5, 6)),
    S((2, 2, 4, 3), (2, 2, 4, 3), (2, 2, 4, 3), None, 0.0, True),
    S((2, 3, 4), (2, 5, 4), (2, 5, 6), A((3, 5), dtype="bool")),
    S((2, 3, 4), (2, 5, 4), (2, 5, 6), A((3, 5), grad=False), scale=0.7),
    S((2, 4, 3, 2), (2, 2, 5, 2), (2, 2, 5, 2), enable_gqa=True),
    covers=("_sdpa", "_sdpa_backward"),
)
row("_transform_bias_rescale_qkv", S((2, 3, 12), (12,), 2), grad=False)
LAYER = ((2, 3, 4), (2, 3, 4), (2, 3, 4), 4, 2, (12, 4), (12,), (4, 4), (4,))
row(
    "_native_multi_head_attention",
    S(*LAYER),
    S(*LAYER, A((3, 3), dtype="bool"), mask_type=0, average_attn_weights=False),
    grad=False,
)
