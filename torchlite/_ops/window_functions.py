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
    r"""Returns the triangular window that ends in zeros.

    .. math::

        w_n = 1 - \left| \frac{2 n}{N} - 1 \right|

    :math:`N` is the length of a periodic window, and the length minus 1 of a symmetric one.

    Args:
        window_length: The number of elements.
        periodic: Whether the window is periodic, for spectra, else symmetric. Default: ``True``.
        dtype: A floating-point dtype. Default: the default dtype.

    Example:
        >>> torch.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])

    See also:
        `torch.hann_window`.
    """
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
    r"""Returns the Blackman window.

    .. math::

        w_n = 0.42 - 0.5 \cos \frac{2 \pi n}{N} + 0.08 \cos \frac{4 \pi n}{N}

    :math:`N` is the length of a periodic window, and the length minus 1 of a symmetric one.

    Args:
        window_length: The number of elements.
        periodic: Whether the window is periodic, for spectra, else symmetric. Default: ``True``.
        dtype: A floating-point dtype. Default: the default dtype.

    Example:
        >>> torch.blackman_window(4).round(decimals=3).abs()
        tensor([0.0000, 0.3400, 1.0000, 0.3400])

    See also:
        `torch.hann_window`.
    """

    def shape(n, last):
        angle = n * (math.pi / last)
        return (angle * 4).cos() * 0.08 - (angle * 2).cos() * 0.5 + 0.42

    return _make_window(F, "blackman_window", window_length, periodic, dtype, device, requires_grad, shape)


@composite(f"hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, {_OPTIONS})", where="torch")
def hamming_window(F, window_length, periodic, alpha, beta, dtype, device, requires_grad):
    r"""Returns the Hamming window.

    .. math::

        w_n = \alpha - \beta \cos \frac{2 \pi n}{N}

    :math:`N` is the length of a periodic window, and the length minus 1 of a symmetric one.

    Args:
        window_length: The number of elements.
        periodic: Whether the window is periodic, for spectra, else symmetric. Default: ``True``.
        dtype: A floating-point dtype. Default: the default dtype.
        alpha: The term :math:`\alpha`. Default: ``0.54``.
        beta: The factor :math:`\beta`. Default: ``0.46``.

    Example:
        >>> torch.hamming_window(4)
        tensor([0.0800, 0.5400, 1.0000, 0.5400])

    See also:
        `torch.hann_window`.
    """
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
    r"""Returns the Hann window.

    .. math::

        w_n = \frac{1}{2} \left( 1 - \cos \frac{2 \pi n}{N} \right)

    :math:`N` is the length of a periodic window, and the length minus 1 of a symmetric one.

    Args:
        window_length: The number of elements.
        periodic: Whether the window is periodic, for spectra, else symmetric. Default: ``True``.
        dtype: A floating-point dtype. Default: the default dtype.

    Example:
        >>> torch.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])

    See also:
        `torch.stft`, `torch.signal.windows`.
    """
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
    r"""Returns the Kaiser window.

    .. math::

        w_n = \frac{I_0 \left( \beta \sqrt{1 - (2 n / N - 1)^2} \right)}{I_0(\beta)}

    :math:`N` is the length of a periodic window, and the length minus 1 of a symmetric one.

    Args:
        window_length: The number of elements.
        periodic: Whether the window is periodic, for spectra, else symmetric. Default: ``True``.
        dtype: A floating-point dtype. Default: the default dtype.
        beta: The shape :math:`\beta`. Default: 12.

    Example:
        >>> torch.kaiser_window(3, periodic=False)[1]
        tensor(1.)

    See also:
        `torch.i0`.
    """

    def shape(n, last):
        x = n * (2.0 / last) - 1
        return F.i0((1 - x * x).clamp(min=0).sqrt() * beta) / F.i0(
            F.full((), float(beta), dtype=n.dtype, device=n.device)
        )

    return _make_window(F, "kaiser_window", window_length, periodic, dtype, device, requires_grad, shape)
