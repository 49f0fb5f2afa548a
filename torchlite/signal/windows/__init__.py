"""torch.signal.windows: window functions of M points.

All take `M` (points; an empty window for 0) and keyword arguments: `sym` (True: symmetric, for filters; False:
periodic, for spectra), `dtype` (float32 or float64; the default dtype), `device` and `requires_grad`. ValueError for a
negative M, another dtype, or a parameter out of its range.

The formulas are those of F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier
transform", Proc. IEEE 66 (1978).
"""

from __future__ import annotations

import math
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
    """exp(-|n - center| / tau); `center` is (M - 1) / 2 for a symmetric window and M / 2 for a periodic one unless
    given (periodic windows only).

    >>> import torchlite as torch
    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
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
    """sin(pi (n + 1/2) / M).

    >>> import torchlite as torch
    >>> torch.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
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
    """exp(-((n - centre) / std)**2 / 2).

    >>> import torchlite as torch
    >>> torch.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
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
    """I0(beta sqrt(1 - x**2)) / I0(beta) with x from -1 to 1 and I0 the modified Bessel function of order zero.

    >>> import torchlite as torch
    >>> torch.signal.windows.kaiser(3)
    tensor([5.2773e-05, 1.0000e+00, 5.2773e-05])
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
    """Sum over i of (-1)**i a[i] cos(2 pi i n / (M - 1)), or with M for M - 1 in a periodic window.

    >>> import torchlite as torch
    >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    dtype = _check_arguments("general_cosine", M, dtype, layout)
    if M == 0:
        return _empty_window(dtype, device, requires_grad)
    if M == 1:
        return torch.ones((1,), dtype=dtype, device=device, requires_grad=requires_grad)
    if not isinstance(a, (list, tuple)):
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
    """alpha - (1 - alpha) cos(2 pi n / (M - 1)).

    >>> import torchlite as torch
    >>> torch.signal.windows.general_hamming(3, alpha=0.5)
    tensor([0., 1., 0.])
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
    """`general_hamming` with alpha = 0.54.

    >>> import torchlite as torch
    >>> torch.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
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
    """`general_hamming` with alpha = 0.5.

    >>> import torchlite as torch
    >>> torch.signal.windows.hann(3)
    tensor([0., 1., 0.])
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
    """`general_cosine` with a = (0.42, 0.5, 0.08).

    >>> import torchlite as torch
    >>> torch.signal.windows.blackman(5).round(decimals=4)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
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
    """The triangle 1 - |2 n / (M - 1) - 1|.

    >>> import torchlite as torch
    >>> torch.signal.windows.bartlett(3)
    tensor([0., 1., 0.])
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
    """Nuttall's four-term window with minimal side lobes (IEEE Trans. ASSP 29, 1981).

    >>> import torchlite as torch
    >>> torch.signal.windows.nuttall(3).round(decimals=4)
    tensor([4.0000e-04, 1.0000e+00, 4.0000e-04])
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
