"""Normalisation."""

from tests.ops.op_db import A, S, row

MEAN, VAR = A((3,), grad=False), A((3,), low=0.5, high=2, grad=False)

row(
    "layer_norm",
    S((3, 4), (4,)),
    S((2, 3, 4), (3, 4), A((3, 4)), A((3, 4)), 1e-3),
    S((3, 4), (4,), A((4,))),
    S((3, 4), (4,), None, A((4,))),
    covers=("_layer_norm", "_layer_norm_backward"),
)
row("rms_norm", S((3, 4), (4,)), S((2, 3, 4), (3, 4), A((3, 4)), 1e-3), covers=("_rms_norm", "_rms_norm_backward"))
row(
    "batch_norm",
    S((4, 3), None, None, None, None, True, 0.1, 1e-5, False),
    S((2, 3, 4, 2), (3,), (3,), None, None, True, 0.1, 1e-3, False),
    S((2, 3, 5), (3,), None, None, None, True, 0.1, 1e-5, False),
    S((2, 3, 5), (3,), (3,), MEAN, VAR, False, 0.1, 1e-5, False),
    covers=(
        "_batch_norm_train",
        "_batch_norm_backward",
        "_batch_norm_eval",
        "_fused_conv_bn",
        "_channel_affine",
        "_moving_average",
    ),
)
row("batch_norm_update_stats", S((4, 3), MEAN, VAR, 0.1), S((2, 3, 4), None, None, 0.1), grad=False)
row(
    "instance_norm",
    S((2, 3, 4), None, None, None, None, True, 0.1, 1e-5, False),
    S((2, 3, 4, 2), (3,), (3,), None, None, True, 0.1, 1e-3, False),
    S((2, 3, 4), (3,), (3,), MEAN, VAR, False, 0.1, 1e-5, False),
    covers=("_normalize_by_statistics",),
)
row(
    "group_norm",
    S((2, 4, 3), 2),
    S((2, 4, 3, 2), 4, (4,), (4,), 1e-3),
    S((3, 4), 2, (4,), (4,)),
    covers=("_group_norm",),
)
row("native_layer_norm", S((3, 4), (4,), None, None, 1e-5), S((2, 3, 4), (3, 4), A((3, 4)), A((3, 4)), 1e-3))
row(
    "native_batch_norm",
    S((4, 3, 2), (3,), (3,), None, None, True, 0.1, 1e-5),
    S((4, 3, 2), (3,), (3,), MEAN, VAR, False, 0.1, 1e-5),
)
row("native_group_norm", S((2, 4, 3), (4,), (4,), 2, 4, 3, 2, 1e-5))
row("local_response_norm", S((2, 5, 3), 3), S((2, 5, 3), 2, 0.1, 0.5, 2.0), S((2, 3, 2, 2), 7))
row("normalize", S((3, 4)), S((3, 4), 1.0, 0), S((2, 3, 4), 3.0, -1))
