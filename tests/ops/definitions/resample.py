"""Interpolation and sampling on a grid."""

from tests.ops.op_db import A, S, row

row(
    "interpolate",
    S((1, 2, 5), 7),
    S((1, 2, 5), None, 1.7, "nearest-exact"),
    S((1, 2, 5), 3, mode="linear"),
    S((1, 2, 4, 5), (7, 3), mode="bilinear"),
    S((1, 2, 4, 5), None, (1.5, 2.2), "bicubic"),
    S((1, 2, 4, 5), (6, 7), mode="bicubic", align_corners=True),
    S((1, 2, 3, 4, 3), 5, mode="trilinear", align_corners=True),
    S((1, 2, 4, 6), (2, 4), mode="area"),
    S((1, 2, 7, 8), (3, 4), mode="bilinear", antialias=True),
    S((1, 2, 7, 8), (3, 10), mode="bicubic", antialias=True),
    S((1, 2, 4, 5), None, 1.6, "bilinear", recompute_scale_factor=True),
    S((1, 2, 4, 5), (4, 5)),
    covers=("_resize", "_resize_backward"),
)
row("upsample", S((1, 2, 4, 5), 7), S((1, 2, 4, 5), None, 2, "bilinear", True))
row("upsample_nearest", S((1, 2, 4, 5), 7), S((1, 2, 5), None, 3))
row("upsample_bilinear", S((1, 2, 4, 5), 7), S((1, 2, 4, 5), None, 2))


def grid(*shape):
    return A(shape, low=-1.3, high=1.3)


row(
    "grid_sample",
    S((2, 3, 4, 5), grid(2, 2, 3, 2), align_corners=False),
    S((1, 2, 4, 5), grid(1, 2, 3, 2), "bilinear", "border", True),
    S((1, 2, 4, 5), grid(1, 2, 3, 2), "bilinear", "reflection", False),
    S((1, 2, 4, 5), grid(1, 2, 3, 2), "bicubic", "zeros", False),
    S((1, 2, 4, 5), grid(1, 2, 3, 2), "bicubic", "reflection", True),
    S((1, 2, 4, 5), grid(1, 2, 3, 2), "nearest", "zeros", False),
    S((1, 2, 3, 4, 3), grid(1, 2, 2, 2, 3), "bilinear", "zeros", True),
    S((1, 2, 3, 4, 3), grid(1, 2, 2, 2, 3), "bilinear", "reflection", False),
    covers=("_grid_sample", "_grid_sample_backward"),
)
row("grid_sampler", S((1, 2, 4, 5), grid(1, 2, 3, 2), 0, 0, False), S((1, 2, 4, 5), grid(1, 2, 3, 2), 2, 1, True))
row("affine_grid_generator", S((2, 2, 3), (2, 1, 3, 4), False), S((1, 3, 4), (1, 1, 2, 3, 2), True))
row(
    "affine_grid",
    S((2, 2, 3), (2, 1, 3, 4), align_corners=False),
    S((1, 2, 3), (1, 1, 1, 2), align_corners=True),
    S((1, 3, 4), (1, 1, 2, 3, 2), align_corners=False),
)
