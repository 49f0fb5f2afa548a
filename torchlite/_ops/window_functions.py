"""torch.hann_window and similar functions. `torch.signal.windows` has the newer ones."""

import math

from .._dispatch import composite
from .._dispatch.shape_and_value_checks import set_requires_grad
from .._types.dtypes import get_default_dtype

_OPTIONS = "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False"


def _make_window(F, name, length, periodic, dtype, device, requires_grad, shape):
    """`shape(n, last)` of the points n = 0 ... last; a periodic window is a symmetric one that lacks its last point."""
    dtype = dtype or get_default_dtype()
    if dtype.category != 2:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length <= 1:
        return F.ones(length, dtype=dtype, device=device, requires_grad=requires_grad)
    points = length + 1 if periodic else length
    out = shape(F.arange(points, dtype=dtype, device=device), points - 1)
    out = F.narrow(out, 0, 0, length).clone() if periodic else out
    return set_requires_grad(out, requires_grad)


@composite(f"bartlett_window(window_length, periodic=True, *, {_OPTIONS})", where="torch")
def bartlett_window(F, window_length, periodic, dtype, device, requires_grad):
    """The triangle 1 - |2 n / N - 1|, n = 0 ... N; periodic: without its last point."""
    return _make_window(
        F,
        "bartlett_window",
        window_length,
        periodic,
        dtype,
        device,
        requires_grad,
        lambda n, last: 1 - (n * (2.0 / last) - 1).abs(),
    )


@composite(f"blackman_window(window_length, periodic=True, *, {_OPTIONS})", where="torch")
def blackman_window(F, window_length, periodic, dtype, device, requires_grad):
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N), n = 0 ... N; periodic: without its last point."""

    def shape(n, last):
        angle = n * (math.pi / last)
        return (angle * 4).cos() * 0.08 - (angle * 2).cos() * 0.5 + 0.42

    return _make_window(F, "blackman_window", window_length, periodic, dtype, device, requires_grad, shape)


@composite(f"hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, {_OPTIONS})", where="torch")
def hamming_window(F, window_length, periodic, alpha, beta, dtype, device, requires_grad):
    """alpha - beta cos(2 pi n / N), n = 0 ... N; periodic: without its last point."""
    return _make_window(
        F,
        "hamming_window",
        window_length,
        periodic,
        dtype,
        device,
        requires_grad,
        lambda n, last: (n * (2 * math.pi / last)).cos() * -beta + alpha,
    )


@composite(f"hann_window(window_length, periodic=True, *, {_OPTIONS})", where="torch")
def hann_window(F, window_length, periodic, dtype, device, requires_grad):
    """(1 - cos(2 pi n / N)) / 2, n = 0 ... N; periodic: without its last point."""
    return _make_window(
        F,
        "hann_window",
        window_length,
        periodic,
        dtype,
        device,
        requires_grad,
        lambda n, last: (n * (2 * math.pi / last)).cos() * -0.5 + 0.5,
    )


@composite(f"kaiser_window(window_length, periodic=True, beta=12.0, *, {_OPTIONS})", where="torch")
def kaiser_window(F, window_length, periodic, beta, dtype, device, requires_grad):
    """I0(beta sqrt(1 - (2 n / N - 1)**2)) / I0(beta), n = 0 ... N; periodic: without its last point."""

    def shape(n, last):
        x = n * (2.0 / last) - 1
        return F.i0((1 - x * x).clamp(min=0).sqrt() * beta) / F.i0(
            F.full((), float(beta), dtype=n.dtype, device=n.device)
        )

    return _make_window(F, "kaiser_window", window_length, periodic, dtype, device, requires_grad, shape)
