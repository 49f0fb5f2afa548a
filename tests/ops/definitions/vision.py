"""Sliding blocks and shuffles."""

from tests.ops.op_db import S, row

row(
    "im2col",
    S((2, 3, 4, 5), 2),
    S((3, 4, 5), (2, 3), (1, 2), (1, 0), (2, 1)),
    oracle=lambda torch, *args: torch.nn.functional.unfold(*args),
    covers=("_im2col", "_col2im"),
)
row(
    "col2im",
    S((2, 12, 12), (4, 5), 2),
    S((18, 15), (4, 5), (2, 3), (1, 1), (1, 0), (1, 1)),
    S((18, 3), (4, 5), (2, 3), (1, 2), (1, 0), (2, 1)),
    oracle=lambda torch, *args: torch.nn.functional.fold(*args),
)
row("pixel_shuffle", S((1, 8, 2, 3), 2), S((9, 1, 2), 3))
row("pixel_unshuffle", S((1, 2, 4, 6), 2), S((1, 3, 6), 3))
row("channel_shuffle", S((2, 6, 2, 3), 3), S((1, 4, 3), 2))
