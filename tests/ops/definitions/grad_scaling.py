"""Gradient scaling on the device."""

from tests.ops.op_db import A, S, row


def unscaled(lib, factor, *grads):
    """The gradients, of three dtypes, times the factor, and what is noted of infinities: without one, with an infinity,
    with a NaN.
    """
    results = []
    for bad in (None, float("inf"), float("nan")):
        mine = [grad.to(dtype) for grad, dtype in zip(grads, (lib.float32, lib.float16, lib.float64), strict=True)]
        if bad is not None:
            mine[1][0] = bad
        found = lib.zeros(())
        lib._amp_foreach_non_finite_check_and_unscale_(mine, found, lib.tensor(factor))
        results += [*mine, found]
    return results


def followed(lib, start, interval, notes):
    """The scale and the count after each of a series of steps."""
    scale, count, results = lib.tensor(start), lib.zeros((), dtype=lib.int32), []
    for note in notes:
        lib._amp_update_scale_(scale, count, lib.tensor(note), 2.0, 0.5, interval)
        results += [scale.clone(), count.clone()]
    return results


def on_its_device(function):
    """Create the function's tensors on the device of its last argument."""

    def run(lib, *args):
        tensors = [a for a in args if hasattr(a, "device")]
        with lib.device(tensors[-1].device):
            return function(lib, *args[:-1])

    return run


ONCE = {"grad": False, "meta": False, "noncontiguous": False}
HERE = A((), grad=False)
row(
    "_amp_foreach_non_finite_check_and_unscale_",
    S(0.25, A((3, 4)), A((5,)), A((2,)), HERE),
    S(1.0, A((3, 4)), A((5,)), A((0,)), HERE),
    S(3e4, A((3, 4), low=1), A((5,), low=1), A((2,)), HERE),
    oracle=on_its_device(unscaled),
    covers=("_unscale_homogeneous",),
    **ONCE,
)
row("_amp_update_scale_", S(65536.0, 2, [0.0, 0.0, 0.0, 1.0, 0.0, 2.0], HERE), S(3e38, 1, [0.0, 0.0, 1.0], HERE),
    oracle=on_its_device(followed), **ONCE)  # fmt: skip
