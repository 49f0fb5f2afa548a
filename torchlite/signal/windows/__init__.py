"""torch.signal.windows: window functions of M points.

All take `M` (points; an empty window for 0) and keyword arguments: `sym` (True: symmetric, for filters; False:
periodic, for spectra), `dtype` (float32 or float64; the default dtype), `device` and `requires_grad`. ValueError for a
negative M, another dtype, or a parameter out of its range.

The formulas are those of F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier
transform", Proc. IEEE 66 (1978).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _check_arguments(name: str, M: int, dtype, layout):
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not torch.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _window_points(start: float, end: float, M: int, dtype, device, requires_grad: bool):
    return torch.linspace(start, end, M, dtype=dtype, device=device, requires_grad=requires_grad)


def _empty_window(dtype, device, requires_grad: bool):
    return torch.empty((0,), dtype=dtype, device=device, requires_grad=requires_grad)


def exponential(
    M: int,
    *,
    center: Any = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create an exponential (Poisson) window.

    .. math::

        w_n = \exp\left( -\frac{|n - c|}{\tau} \right)

    Here :math:`n = 0, \ldots, M - 1`. The centre :math:`c` is :math:`(M - 1) / 2` for a symmetric window. For a
    periodic one it is ``center``, by default :math:`M / 2`.

    Args:
        M: Number of points; 0 gives an empty window.
        center: Centre :math:`c`, only for a periodic window. Default: ``None``.
        tau: Decay length :math:`\tau`, positive. Default: 1.0.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.
        ValueError: ``tau`` is not positive, or ``center`` is given for a symmetric window.

    Example:
        >>> torch.signal.windows.exponential(3)
        tensor([0.3679, 1.0000, 0.3679])

    References:
        F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.
    """
    dtype = _check_arguments("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return _empty_window(dtype, device, requires_grad)
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    k = _window_points(-center / tau, (M - 1 - center) / tau, M, dtype, device, requires_grad)
    return torch.exp(-torch.abs(k))


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create a cosine (sine) window.

    .. math::

        w_n = \sin\left( \frac{\pi (n + 1/2)}{N} \right)

    Here :math:`n = 0, \ldots, M - 1`, and :math:`N` is :math:`M` for a symmetric window and :math:`M + 1` for a
    periodic one.

    Args:
        M: Number of points; 0 gives an empty window.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.

    Example:
        >>> torch.signal.windows.cosine(3)
        tensor([0.5000, 1.0000, 0.5000])

    References:
        F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.
    """
    dtype = _check_arguments("cosine", M, dtype, layout)
    if M == 0:
        return _empty_window(dtype, device, requires_grad)
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return torch.sin(_window_points(0.5 * step, (M - 0.5) * step, M, dtype, device, requires_grad))


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create a Gaussian window.

    .. math::

        w_n = \exp\left( -\frac{1}{2} \left( \frac{n - c}{\sigma} \right)^2 \right)

    Here :math:`n = 0, \ldots, M - 1`. The centre :math:`c` is :math:`(M - 1) / 2` for a symmetric window and
    :math:`M / 2` for a periodic one.

    Args:
        M: Number of points; 0 gives an empty window.
        std: Standard deviation :math:`\sigma` in points, positive. Default: 1.0.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.
        ValueError: ``std`` is not positive.

    Example:
        >>> torch.signal.windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])

    References:
        F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.
    """
    dtype = _check_arguments("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return _empty_window(dtype, device, requires_grad)
    scale = 1 / (std * math.sqrt(2))
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    k = _window_points(start * scale, (start + M - 1) * scale, M, dtype, device, requires_grad)
    return torch.exp(-(k * k))


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create a Kaiser window.

    .. math::

        w_n = \frac{I_0\left( \beta \sqrt{1 - (2 n / N - 1)^2} \right)}{I_0(\beta)}

    Here :math:`n = 0, \ldots, M - 1`, and :math:`N` is :math:`M - 1` for a symmetric window and :math:`M` for a
    periodic one. :math:`I_0` is the modified Bessel function of order 0.

    Args:
        M: Number of points; 0 gives an empty window.
        beta: Shape :math:`\beta`, nonnegative: the larger, the lower the side lobes and the wider the main lobe.
            Default: 12.0.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.
        ValueError: ``beta`` is negative.

    Example:
        >>> torch.signal.windows.kaiser(3)
        tensor([5.2773e-05, 1.0000e+00, 5.2773e-05])

    References:
        J. F. Kaiser and R. W. Schafer, "On the use of the I0-sinh window for spectrum analysis", 1980.
    """
    dtype = _check_arguments("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return _empty_window(dtype, device, requires_grad)
    if M == 1:
        return torch.ones((1,), dtype=dtype, device=device, requires_grad=requires_grad)
    last = beta if sym else beta * (1 - 2 / M)
    k = torch.minimum(
        _window_points(-beta, last, M, dtype, device, requires_grad), torch.tensor(beta, dtype=dtype, device=device)
    )
    return torch.i0(torch.sqrt(beta * beta - k * k)) / torch.i0(torch.tensor(beta, dtype=dtype, device=device))


def general_cosine(
    M: int,
    *,
    a: Sequence[float],
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create a window that is a weighted sum of cosines.

    .. math::

        w_n = \sum_{i} (-1)^i a_i \cos\left( \frac{2 \pi i n}{N} \right)

    Here :math:`n = 0, \ldots, M - 1`, and :math:`N` is :math:`M - 1` for a symmetric window and :math:`M` for a
    periodic one.

    Args:
        M: Number of points; 0 gives an empty window.
        a: Weights :math:`a_0, a_1, \ldots`, a list or tuple of numbers.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.
        ValueError: ``a`` is empty.
        TypeError: ``a`` is neither a list nor a tuple.

    Example:
        >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
        tensor([0., 1., 0.])

    References:
        F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.

    See also:
        `general_hamming`, `blackman`, `nuttall`.
    """
    dtype = _check_arguments("general_cosine", M, dtype, layout)
    if M == 0:
        return _empty_window(dtype, device, requires_grad)
    if M == 1:
        return torch.ones((1,), dtype=dtype, device=device, requires_grad=requires_grad)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    step = 2 * math.pi / (M if not sym else M - 1)
    k = _window_points(0, (M - 1) * step, M, dtype, device, requires_grad)
    signed = torch.tensor([(-1) ** i * w for i, w in enumerate(a)], device=device, dtype=dtype)
    i = torch.arange(signed.shape[0], dtype=dtype, device=device)
    return (signed.unsqueeze(-1) * torch.cos(i.unsqueeze(-1) * k)).sum(0)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create a generalized Hamming window.

    .. math::

        w_n = \alpha - (1 - \alpha) \cos\left( \frac{2 \pi n}{N} \right)

    Here :math:`n = 0, \ldots, M - 1`, and :math:`N` is :math:`M - 1` for a symmetric window and :math:`M` for a
    periodic one.

    Args:
        M: Number of points; 0 gives an empty window.
        alpha: Weight :math:`\alpha`. Default: 0.54.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.

    Example:
        >>> torch.signal.windows.general_hamming(3, alpha=0.5)
        tensor([0., 1., 0.])

    References:
        F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.

    See also:
        `hamming`, `hann`, `general_cosine`.
    """
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create a Hamming window.

    .. math::

        w_n = 0.54 - 0.46 \cos\left( \frac{2 \pi n}{N} \right)

    Here :math:`n = 0, \ldots, M - 1`, and :math:`N` is :math:`M - 1` for a symmetric window and :math:`M` for a
    periodic one.

    Args:
        M: Number of points; 0 gives an empty window.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.

    Example:
        >>> torch.signal.windows.hamming(3)
        tensor([0.0800, 1.0000, 0.0800])

    References:
        F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.

    See also:
        `general_hamming`, `torch.hamming_window`.
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create a Hann window.

    .. math::

        w_n = \frac{1}{2} - \frac{1}{2} \cos\left( \frac{2 \pi n}{N} \right)

    Here :math:`n = 0, \ldots, M - 1`, and :math:`N` is :math:`M - 1` for a symmetric window and :math:`M` for a
    periodic one.

    Args:
        M: Number of points; 0 gives an empty window.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.

    Example:
        >>> torch.signal.windows.hann(3)
        tensor([0., 1., 0.])

    References:
        F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.

    See also:
        `general_hamming`, `torch.hann_window`.
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create a Blackman window.

    .. math::

        w_n = 0.42 - 0.5 \cos\left( \frac{2 \pi n}{N} \right) + 0.08 \cos\left( \frac{4 \pi n}{N} \right)

    Here :math:`n = 0, \ldots, M - 1`, and :math:`N` is :math:`M - 1` for a symmetric window and :math:`M` for a
    periodic one.

    Args:
        M: Number of points; 0 gives an empty window.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.

    Example:
        >>> torch.signal.windows.blackman(5).round(decimals=4)[1:4]
        tensor([0.3400, 1.0000, 0.3400])

    References:
        F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.

    See also:
        `general_cosine`, `torch.blackman_window`.
    """
    dtype = _check_arguments("blackman", M, dtype, layout)
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create a Bartlett (triangular) window.

    .. math::

        w_n = 1 - \left| \frac{2 n}{N} - 1 \right|

    Here :math:`n = 0, \ldots, M - 1`, and :math:`N` is :math:`M - 1` for a symmetric window and :math:`M` for a
    periodic one.

    Args:
        M: Number of points; 0 gives an empty window.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.

    Example:
        >>> torch.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])

    References:
        F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.

    See also:
        `torch.bartlett_window`.
    """
    dtype = _check_arguments("bartlett", M, dtype, layout)
    if M == 0:
        return _empty_window(dtype, device, requires_grad)
    if M == 1:
        return torch.ones((1,), dtype=dtype, device=device, requires_grad=requires_grad)
    step = 2 / (M if not sym else M - 1)
    return 1 - torch.abs(_window_points(-1, -1 + (M - 1) * step, M, dtype, device, requires_grad))


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = torch.strided,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Create Nuttall's four-term window with minimal side lobes.

    .. math::

        w_n = 0.3635819 - 0.4891775 \cos\left( \frac{2 \pi n}{N} \right)
        + 0.1365995 \cos\left( \frac{4 \pi n}{N} \right) - 0.0106411 \cos\left( \frac{6 \pi n}{N} \right)

    Here :math:`n = 0, \ldots, M - 1`, and :math:`N` is :math:`M - 1` for a symmetric window and :math:`M` for a
    periodic one.

    Args:
        M: Number of points; 0 gives an empty window.
        sym: Whether the window is symmetric, for filters; else it is periodic, for spectra. Default: ``True``.
        dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.
        layout: Only ``torch.strided``. Default: ``torch.strided``.
        device: Device of the window. Default: ``None``, the default device.
        requires_grad: Whether the window requires grad. Default: ``False``.

    Returns:
        A tensor of shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype or layout is another one.

    Example:
        >>> torch.signal.windows.nuttall(3).round(decimals=4)
        tensor([4.0000e-04, 1.0000e+00, 4.0000e-04])

    References:
        A. H. Nuttall, "Some windows with very good sidelobe behavior", 1981.

    See also:
        `general_cosine`.
    """
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


__dir__ = make_module_dir(globals())
