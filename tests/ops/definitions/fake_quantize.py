"""Fake quantization, its gradients, and the choice of scales."""

from tests.ops.op_db import A, S, row

X = A((3, 4), -3, 3)
SINGLE = A((3, 4), -3, 3, "float32")
HALF = A((3, 4), -3, 3, "float16")
SMALL = A((3,), 0.01, 0.05, "float32", grad=False)
SCALE = A((1,), 0.01, 0.05, "float32", grad=False)
ZEROS = A((3,), -20, 20, "int32")
ZERO = A((1,), -20, 20, "int32")
ON = A((1,), 1, 1, "int64")
OFF = A((1,), 0, 0, "int64")
STEPS = {"grad": False}  # of no use to central differences


def in_library(name):
    """A function of PyTorch's library."""
    return lambda lib, *args: getattr(lib.ops.aten, name)(*args)


row(
    "fake_quantize_per_tensor_affine",
    S(X, 0.02, 7, -20, 127),
    S(SINGLE, 0.02, 0, -128, 127),
    S(HALF, 0.05, 3, 0, 63),
    S(SINGLE, SCALE, ZERO, -128, 127),
    S(HALF, SCALE, ZERO, 0, 15),
    S(A((0, 2), dtype="float32"), 0.1, 0, 0, 15),
    **STEPS,
)
row("_fake_quantize_per_tensor_affine_cachemask", S(SINGLE, 0.02, 0, -100, 100),
    oracle=in_library("fake_quantize_per_tensor_affine_cachemask"), **STEPS)  # fmt: skip
row(
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    S(SINGLE, SCALE, ZERO, ON, -100, 100),
    S(SINGLE, SCALE, ZERO, OFF, -100, 100),
    covers=("_fake_quantize_by_tensors",),
    **STEPS,
)
row(
    "fake_quantize_per_channel_affine",
    S(X, SMALL, ZEROS, 0, -128, 127),
    S(SINGLE, SMALL, A((3,), -20, 20, "float32", grad=False), 0, -128, 127),
    S(A((2, 3, 4), -3, 3, "float16"), SMALL, A((3,), -20, 20, "float16", grad=False), 1, -128, 127),
    S(A((2, 4, 3), -3, 3, "float32"), SMALL, ZEROS, 2, -20, 100),
    **STEPS,
)
row("_fake_quantize_per_channel_affine_cachemask", S(SINGLE, SMALL, ZEROS, 0, -50, 100),
    oracle=in_library("fake_quantize_per_channel_affine_cachemask"), **STEPS)  # fmt: skip
_POINTS = A((3,), -20, 20, "float32", grad=False)
row(
    "_fake_quantize_learnable_per_tensor_affine",
    S(SINGLE, SCALE, A((1,), -20, 20, "float32", grad=False), -50, 70, 0.5),
    S(A((0, 2), dtype="float32"), SCALE, A((1,), -20, 20, "float32", grad=False), 0, 15),
    **STEPS,
)
row(
    "_fake_quantize_learnable_per_channel_affine",
    S(SINGLE, SMALL, _POINTS, 0, -50, 70, 0.5),
    S(A((2, 3, 2), -3, 3, "float32"), SMALL, _POINTS, 1, 0, 31),
    **STEPS,
)
for _kind in ("tensor", "channel"):
    _name = f"fake_quantize_per_{_kind}_affine_cachemask_backward"
    row(f"_{_name}", S((3, 4), A((3, 4), dtype="bool")), oracle=in_library(_name))
_GRADIENT = A((3, 4), dtype="float32")
row(
    "_fake_quantize_learnable_per_tensor_affine_backward",
    S(_GRADIENT, SINGLE, SCALE, A((1,), -20, 20, "float32"), -50, 70, 0.5),
    S(_GRADIENT, SINGLE, SCALE, A((1,), 2.5, 2.5, "float32"), 0, 15),
    oracle=in_library("_fake_quantize_learnable_per_tensor_affine_backward"),
    **STEPS,
)
row(
    "_fake_quantize_learnable_per_channel_affine_backward",
    S(_GRADIENT, SINGLE, SMALL, _POINTS, 0, -50, 70, 0.5),
    S(A((2, 3, 2), dtype="float32"), A((2, 3, 2), -3, 3, "float32"), SMALL, _POINTS, 1, 0, 31),
    oracle=in_library("_fake_quantize_learnable_per_channel_affine_backward"),
    **STEPS,
)


def chosen(lib, input, reduce_range=False):
    return tuple(lib.tensor(x, dtype=lib.float64) for x in lib._choose_qparams_per_tensor(input, reduce_range))


CHOICE = {"grad": False, "meta": False}
row("_choose_qparams_per_tensor", S(SINGLE), S(X, True), S(A((3,), 1e-9, 2e-9)), S(A((3,), -2, -1)),
    S(A((3,), 0, 0)), oracle=chosen, **CHOICE)  # fmt: skip


row("choose_qparams_optimized", S(SINGLE, 12, 200, 0.16, 8), S(SINGLE, 7, 50, 0.5, 4),
    S(A((3,), 0, 0, "float32"), 3, 200, 0.16, 2), **CHOICE)  # fmt: skip


def observed(per_channel, symmetric, observe=True, round=True):
    """The results of two steps, and the state after them."""

    def run(lib, *inputs):
        device = inputs[0].device

        def full(value, dtype):
            return lib.full((inputs[0].shape[0],) if per_channel else (1,), value, dtype=dtype, device=device)

        low, high, scale = full(float("inf"), lib.float32), full(-float("inf"), lib.float32), full(1, lib.float32)
        zero, results = full(0, lib.int32), []
        flags = [lib.tensor([int(flag)], device=device) for flag in (observe, round)]
        for x in inputs:
            axis = 0 if per_channel else -1
            found = lib.fused_moving_avg_obs_fake_quant(
                x, *flags, low, high, scale, zero, 0.3, -128, 127, axis, per_channel, symmetric
            )
            results.append(found)
        return [*results, low, high, scale, zero]

    return run


def fused(lib, *inputs):
    return [observed(a, b)(lib, *inputs) for a in (False, True) for b in (False, True)] + [
        observed(False, False, True, False)(lib, *inputs)
    ]


row("fused_moving_avg_obs_fake_quant", S(SINGLE, A((3, 4), -4, 5, "float32")), S(A((2, 3, 2), 0, 4, "float32")),
    oracle=fused, covers=("_fused_moving_avg_obs_fq_helper", "_moved_range"), **CHOICE)  # fmt: skip
