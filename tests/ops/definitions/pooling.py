"""Pooling."""

import numpy as np

from tests.ops.op_db import A, S, row


def distinct(*shape, dtype="float64"):
    return A(shape, kind="distinct", dtype=dtype)


MAX = ("_max_pool", "_max_pool_backward", "_max_pool_with_indices")
row(
    "max_pool1d",
    S(distinct(2, 3, 8), 3),
    S(distinct(3, 7), 2, 1, 1, 2),
    S(distinct(2, 3, 8), 3, 2, ceil_mode=True),
    covers=MAX,
)
row(
    "max_pool2d",
    S(distinct(2, 3, 4, 6), 2),
    S(distinct(2, 5, 6), 3, 2, 1),
    S(distinct(1, 2, 6, 5), (2, 3), (1, 2), (1, 0), (2, 1), True),
    S(distinct(0, 2, 4, 4), 2),
    S(distinct(1, 2, 5, 5), 3, 1, return_indices=True),
    S(A((1, 2, 4, 4), low=-1, high=2, dtype="int64"), 2),
)
row("max_pool3d", S(distinct(1, 2, 4, 4, 5), 2), S(distinct(2, 4, 4, 5), (2, 3, 2), 2, (1, 1, 0), 1, True, True))
row("max_pool1d_with_indices", S(distinct(2, 3, 8), 3), S(distinct(2, 3, 8), 2, 3))
row("max_pool2d_with_indices", S(distinct(2, 3, 5, 6), 3, 2, 1), S(distinct(2, 3, 5, 6), 2, 1, 0, 2))
row("max_pool3d_with_indices", S(distinct(1, 2, 4, 4, 5), 2))

AVERAGE = ("_avg_pool", "_avg_pool_backward")
row("avg_pool1d", S((2, 3, 8), 3), S((3, 7), 2, 1, 1, True, False), covers=AVERAGE)
row(
    "avg_pool2d",
    S((2, 3, 4, 6), 2),
    S((2, 5, 6), 3, 2, 1),
    S((1, 2, 6, 5), (2, 3), (1, 2), (1, 0), True, False),
    S((1, 2, 4, 4), 3, 1, 1, False, True, 5),
    S((0, 2, 4, 4), 2),
    S(A((1, 2, 4, 4), low=-9, high=9, dtype="int64"), 2),
)
row("avg_pool3d", S((1, 2, 4, 4, 5), 2), S((2, 4, 4, 5), (2, 3, 2), 2, (1, 1, 0), True, False, 3))

ADAPTIVE = ("_adaptive_avg_pool", "_adaptive_avg_pool_backward")
row("adaptive_avg_pool1d", S((2, 3, 8), 3), S((3, 7), 1), S((3, 7), 7), covers=ADAPTIVE)
row(
    "adaptive_avg_pool2d", S((2, 3, 4, 6), 1), S((2, 5, 6), (2, 4)), S((1, 2, 6, 5), (None, 7)), S((1, 2, 4, 6), (2, 3))
)
row("adaptive_avg_pool3d", S((1, 2, 4, 4, 5), (2, 1, 3)), S((2, 4, 4, 5), 1))
row("adaptive_max_pool1d", S(distinct(2, 3, 8), 3), S(distinct(3, 7), 1, True), covers=("_adaptive_max_pool",))
row(
    "adaptive_max_pool2d",
    S(distinct(2, 3, 4, 6), 1),
    S(distinct(2, 5, 6), (2, 4), True),
    S(distinct(1, 2, 6, 5), (None, 7)),
)
row("adaptive_max_pool3d", S(distinct(1, 2, 4, 4, 5), (2, 1, 3)), S(distinct(2, 4, 4, 5), 1, True))
row("adaptive_max_pool1d_with_indices", S(distinct(2, 3, 8), 3), covers=("adaptive_max_pool1d_pair",))
row("adaptive_max_pool2d_with_indices", S(distinct(2, 3, 4, 6), (3, 4)))
row("adaptive_max_pool3d_with_indices", S(distinct(1, 2, 4, 4, 5), (2, 1, 3)))

row("lp_pool1d", S(A((2, 3, 8), low=0.5), 2, 3), S(A((3, 7), low=0.5), 3.0, 2, 1, True))
row("lp_pool2d", S(A((2, 3, 4, 6), low=0.5), 2, 2), S(A((2, 5, 6), low=0.5), 1.5, (2, 3), 2, True))
row("lp_pool3d", S(A((1, 2, 4, 4, 5), low=0.5), 2, 2))


def unpooling(n):
    return lambda torch, x, *args, **kwargs: unpooled(torch, n, x, *args, **kwargs)


def unpooled(torch, n, x, kernel, stride=None, padding=0, output_size=None):
    functional = torch.nn.functional
    values, indices = getattr(functional, f"max_pool{n}d")(x, kernel, stride, padding, return_indices=True)
    return getattr(functional, f"max_unpool{n}d")(values, indices, kernel, stride, padding, output_size)


row("max_unpool1d", S(distinct(2, 3, 8), 2), S(distinct(3, 7), 2, 2, 0, (7,)), oracle=unpooling(1))
row(
    "max_unpool2d",
    S(distinct(2, 3, 4, 6), 2),
    S(distinct(2, 4, 6), [2, 3]),
    S(distinct(2, 3, 5, 6), 2, 2, 0, (2, 3, 5, 6)),
    oracle=unpooling(2),
)
row("max_unpool3d", S(distinct(1, 2, 4, 4, 6), 2), oracle=unpooling(3))


SAMPLES = np.random.default_rng(0).random(64).tolist()


def placed(n, indices):
    """Fractional pooling with fixed random samples (which are no input to differentiate)."""

    def call(torch, x, *args):
        batch, channels = x.shape[:2] if x.ndim == n + 2 else (1, x.shape[0])
        places = [SAMPLES[k : k + n] for k in range(0, batch * channels * n, n)]
        images = [places[k : k + channels] for k in range(0, batch * channels, channels)]
        samples = torch.tensor(images, dtype=x.dtype, device=x.device)
        name = f"fractional_max_pool{n}d" + ("_with_indices" if indices else "")
        return getattr(torch.nn.functional, name)(x, *args, _random_samples=samples)

    return call


row(
    "fractional_max_pool2d",
    S(distinct(2, 3, 6, 7), 2, (3, 4)),
    S(distinct(3, 6, 7), 3, None, (0.5, 0.6)),
    oracle=placed(2, False),
    meta=False,
    covers=("_fractional_max_pool",),
)
row("fractional_max_pool3d", S(distinct(1, 2, 5, 6, 5), 2, (3, 4, 1)), oracle=placed(3, False), meta=False)
row("fractional_max_pool2d_with_indices", S(distinct(2, 3, 6, 7), 2, (3, 4)), oracle=placed(2, True), meta=False)
row("fractional_max_pool3d_with_indices", S(distinct(1, 2, 5, 6, 5), 2, (3, 4, 1)), oracle=placed(3, True), meta=False)
