"""The fused kernels on rows against the composites of the same records: random shapes, layouts and data types, a
work-item a row and a work-group a row.
"""

import functools

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of
from torchlite._types.dtypes import BY_NAME

FLOATS = ("float32", "float64", "float16", "bfloat16")
# Relative and absolute limits. Half precision is compared with the composite in single, so they are those of one
# rounding of the result.
LIMITS = {"float32": 4e-5, "float64": 1e-11, "float16": 2e-3, "bfloat16": 1.6e-2}
SHAPES = [
    (1,), (7,), (3, 5), (33, 16), (5, 17), (2, 3, 100), (4, 70, 6), (9, 1000), (2, 2600), (2, 3, 40, 5), (70, 1),
    (1, 3, 4, 2),
]  # fmt: skip


@functools.cache
def laid_out(as_cpu: bool):
    """A device of the driver under test that lays rows out as CPUs or as GPUs do."""
    from torchlite_backends.opencl.backend import backend
    from torchlite_backends.opencl.device import Device

    own = Device(0, backend.device(0).cl_device)
    own.is_cpu, own.width = as_cpu, 16 if as_cpu else 4
    return own


class Checker:
    """Runs kernel and composite of an op on the same arrays and compares what they return."""

    def __init__(self, device, table, rng, dtype):
        self.device, self.table, self.rng, self.dtype = device, table, rng, dtype
        self.half = dtype in ("float16", "bfloat16")

    def numbers(self, shape, scale=2.0):
        """Random numbers on the device in a random layout: in order, turned, every second of twice as many, or
        repeated.
        """
        from torchlite_backends.device_runtime.core import host_transfer, views

        how = self.rng.integers(4) if shape else 0
        made = [1 if how == 3 and d == 0 else n for d, n in enumerate(shape)]
        values = (self.rng.standard_normal(made) * scale).astype(BY_NAME[self.dtype].np)
        if how == 1:
            return views.permute(
                host_transfer.from_numpy(np.ascontiguousarray(values.transpose()), self.device),
                tuple(range(len(shape)))[::-1],
            )
        if how == 2:
            wide = np.repeat(values, 2, -1)
            return views.slice_view(host_transfer.from_numpy(wide, self.device), len(shape) - 1, 1, shape[-1], 2)
        return views.broadcast_view(host_transfer.from_numpy(values, self.device), tuple(shape))

    def integers(self, high, shape, dtype="int64"):
        from torchlite_backends.device_runtime.core import host_transfer

        return host_transfer.from_numpy(self.rng.integers(0, high, shape).astype(dtype), self.device)

    def wide(self, value):
        from torchlite_backends.device_runtime.core.array import Array
        from torchlite_backends.device_runtime.core.pointwise_dispatch import cast

        return cast(value, "f32") if self.half and isinstance(value, Array) and value.kind in ("f16", "bf16") else value

    def agree(self, name, *args, slack=1.0):
        """Both results, compared; the kernel's are returned."""
        from torchlite_backends.device_runtime.core.host_transfer import to_numpy

        kernel, composite = getattr(self.table, name), functools.partial(REGISTRY[name].composite, self.table)
        got, want = kernel(*args), composite(*map(self.wide, args))
        pairs = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
        for number, (mine, right) in enumerate(pairs):
            if right is None or mine is None:
                assert mine is None, f"{name}, result {number}"
                continue
            assert mine.shape == right.shape, f"{name}, result {number}"
            own, right = to_numpy(mine).astype("f8"), to_numpy(right).astype("f8")
            limit = LIMITS[self.dtype] * slack
            told = f"{name}, result {number}, {[getattr(a, 'shape', a) for a in args]}"
            np.testing.assert_allclose(
                own, right, rtol=limit, atol=limit * max(1.0, np.abs(right).max(initial=0) / 8), err_msg=told
            )
        return got


# A driver takes up to a second for each program, so the second layout runs with a plain and a converted type only.
@pytest.fixture(
    params=[*(("item a row", dtype) for dtype in FLOATS), ("group a row", "float32"), ("group a row", "float16")],
    ids="-".join,
)
def check(request, opencl, rng):
    layout, dtype = request.param
    return Checker(laid_out(layout == "item a row"), table_of(torch.device(opencl)), rng, dtype)


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
def test_softmax(check, name):
    for shape in SHAPES:
        for dim in range(-len(shape), len(shape)):
            if dim >= 0 and check.rng.integers(2):
                continue
            out = check.agree(name, check.numbers(shape), dim)
            check.agree(f"{name}_backward", check.numbers(shape), out, dim, slack=4)


def test_layer_and_rms_norm(check):
    for shape in SHAPES:
        n_dims = int(check.rng.integers(1, len(shape) + 1))
        over = shape[-n_dims:]
        weight, bias = (check.numbers(over) if check.rng.integers(2) else None for _ in range(2))
        x, grad = check.numbers(shape), check.numbers(shape)
        needs = tuple(bool(b) for b in check.rng.integers(0, 2, 3))
        eps = 0.1  # rows of one element: the deviation is that of eps alone
        _, mean, rstd = check.agree("_layer_norm", x, weight, bias, n_dims, eps)
        check.agree("_layer_norm_backward", grad, x, weight, mean, rstd, n_dims, eps, needs, slack=8)
        _, rstd = check.agree("_rms_norm", x, weight, n_dims, eps)
        check.agree("_rms_norm_backward", grad, x, weight, rstd, n_dims, eps, needs[:2], slack=8)


def test_many_rows_share_the_gradient_of_a_weight(check):
    x, grad, weight = check.numbers((700, 24)), check.numbers((700, 24)), check.numbers((24,))
    _, mean, rstd = check.agree("_layer_norm", x, weight, None, 1, 1e-5, slack=2)
    check.agree("_layer_norm_backward", grad, x, weight, mean, rstd, 1, 1e-5, (True, True, True), slack=8)


def test_batch_norm(check):
    for shape in [
        (8, 5),
        (64, 33),
        (4, 6, 7),
        (3, 20, 8, 8),
        (2, 3, 40, 40),
        (2, 5, 2),
        (100, 1),
        (3, 70, 3, 3),
        (2, 1, 5, 1, 4),
        (1, 16, 1, 1),
    ]:
        channels = (shape[1],)
        weight, bias = (check.numbers(channels) if check.rng.integers(2) else None for _ in range(2))
        x, grad = check.numbers(shape), check.numbers(shape)
        _, mean, var = check.agree("_batch_norm_train", x, weight, bias, 0.1, slack=2)
        check.agree(
            "_batch_norm_backward",
            grad,
            x,
            weight,
            mean,
            var,
            0.1,
            tuple(bool(b) for b in check.rng.integers(0, 2, 3)),
            slack=16,
        )
        check.agree("_channel_affine", x, check.numbers(channels), check.numbers(channels))


def test_moving_average(check):
    from torchlite_backends.device_runtime.core.contiguous_copy import clone_row_major
    from torchlite_backends.device_runtime.core.host_transfer import to_numpy

    target, new = check.numbers((5, 7)), check.numbers((5, 7))
    target = clone_row_major(target)
    want = to_numpy(
        REGISTRY["_moving_average"].composite(check.table, check.wide(target), check.wide(new), 0.9, 0.1)
    ).astype("f8")
    check.table._moving_average_(target, new, 0.9, 0.1)
    np.testing.assert_allclose(to_numpy(target).astype("f8"), want, rtol=LIMITS[check.dtype], atol=LIMITS[check.dtype])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(check, reduction):
    for shape in [(10,), (64, 10), (5, 7), (300, 30), (4, 20, 6, 5), (2, 3, 100), (9, 3000), (1, 2)]:
        classes = shape[1] if len(shape) > 1 else shape[0]
        where = shape[:1] + shape[2:] if len(shape) > 1 else ()
        target = check.integers(classes, where, ["int64", "uint8"][check.rng.integers(2)] if classes < 256 else "int64")
        weight = check.table.abs(check.numbers((classes,))) if check.rng.integers(2) else None
        ignored = (
            int(check.rng.integers(classes)) if check.rng.integers(2) and len(shape) > 1 and shape[0] > 9 else -100
        )  # not all: the composite gives NaN then
        x = check.numbers(shape)
        _, lse = check.agree("_cross_entropy", x, target, weight, ignored, reduction, slack=4)
        check.agree(
            "_cross_entropy_backward",
            check.numbers(where if reduction == "none" else ()),
            x,
            target,
            weight,
            lse,
            ignored,
            reduction,
            slack=4,
        )


@pytest.mark.parametrize("by_frequency", [False, True])
def test_embedding_backward(check, by_frequency):
    for rows, features, where in [(10, 7, (5, 4)), (50, 64, (200,)), (30, 1, (3,)), (40, 300, (2, 3, 4)), (5, 3, ())]:
        index = check.integers(rows, where, ["int64", "int32"][check.rng.integers(2)])
        padding = int(check.rng.integers(-1, rows))
        check.agree(
            "_embedding_backward", check.numbers((*where, features)), index, rows, padding, by_frequency, slack=4
        )
