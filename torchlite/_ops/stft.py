"""The short-time Fourier transform and its inverse."""

import warnings

from .._dispatch import Out, composite
from .._dispatch.shape_and_value_checks import any_true
from .._types.dtypes import int64
from ._dtype_checks import refuse_floats
from .fft import _REAL
from .node_graphs import stft_graph


def _format_stft_call(name, input, n_fft, hop_length, win_length, window, **rest):
    """The call as PyTorch's errors show it."""

    def type_string(x):
        return f"torch.{x.dtype.scalar_name}Tensor"

    shown = "None" if window is None else f"{type_string(window)}{{{list(window.shape)}}}"
    more = ", ".join(f"{k}={'None' if v is None else int(v)}" for k, v in rest.items())
    shown_type = type_string(input) if name == "stft" else f"CPU{input.dtype.scalar_name}Type"
    arguments = (
        f"{list(input.shape)}, n_fft={n_fft}, hop_length={hop_length}, win_length={win_length}, window={shown}, {more}"
    )
    return f"{name}({shown_type}{arguments}) "


def _warn_window(message):
    warnings.warn(message + "explicitly set `window=torch.ones(n_fft, device=<device>)`.", UserWarning, stacklevel=4)


def _pad_window(F, window, win_length, n_fft, like):
    """The window padded with zeros on both sides to `n_fft`."""
    if window is None:
        window = like.new_ones(win_length, dtype=_REAL.get(like.dtype, like.dtype))
    if win_length < n_fft:
        left = (n_fft - win_length) // 2
        window = F.cat([window.new_zeros(left), window, window.new_zeros(n_fft - win_length - left)], 0)
    return window


def _pad_ends(F, x, amount, mode):
    """(B, L) extended by `amount` on both sides."""
    if mode == "constant":
        zeros = x.new_zeros((x.shape[0], amount))
        return F.cat([zeros, x, zeros], 1)
    return F.pad(x.unsqueeze(1), (amount, amount), mode).squeeze(1)


def _check_stft(shown, x, n_fft, hop_length, win_length, window):
    if x.ndim not in (1, 2):
        raise RuntimeError(f"{shown}: expected a 1D or 2D tensor")
    length = x.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{shown}: expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop_length <= 0:
        raise RuntimeError(f"{shown}: expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{shown}: expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is not None and (window.ndim != 1 or window.shape[0] != win_length):
        raise RuntimeError(
            f"{shown}: expected a 1D window tensor of size equal to win_length={win_length}, but got window with "
            f"size {list(window.shape)}"
        )


@composite(
    "stft(Tensor input, n_fft, hop_length=None, win_length=None, Tensor? window=None, center=True, "
    "pad_mode='reflect', normalized=False, onesided=None, return_complex=None, align_to_window=None)",
    out=Out(supported=False),
    node_name=stft_graph,
)
def stft(
    F,
    input,
    n_fft,
    hop_length,
    win_length,
    window,
    center,
    pad_mode,
    normalized,
    onesided,
    return_complex,
    align_to_window,
):
    """Computes the short-time Fourier transform: the transforms of overlapping frames of a signal.

    Args:
        input: The signal, of shape ``(L,)`` or ``(B, L)``.
        n_fft: The length of a frame.
        hop_length: The distance of frames. Default: ``n_fft // 4``.
        win_length: The length of the window, at most `n_fft`. Default: `n_fft`.
        window: The window, of shape ``(win_length,)``. Default: ones.
        center: Whether frame ``t`` is centered on sample ``t * hop_length``. Default: ``True``.
        pad_mode: How the signal is padded for centered frames; see `torch.nn.functional.pad`. Default:
            ``"reflect"``.
        normalized: Whether the result is scaled by ``1 / sqrt(n_fft)``. Default: ``False``.
        onesided: Whether the result has the first ``n_fft // 2 + 1`` frequencies alone. Default: ``True`` for real
            signals.
        return_complex: Whether the result is complex, else real with a last dimension of two. Required for real
            signals.
        align_to_window: Whether frames are aligned to the window in place of `n_fft`; only without `center`.

    Returns:
        A tensor of shape ``(frequencies, frames)`` or ``(B, frequencies, frames)``.

    Example:
        >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
        torch.Size([3, 9])

    See also:
        `torch.istft`.
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if window is None:
        _warn_window(
            "A window was not provided. A rectangular window will be applied,which is known to cause spectral "
            "leakage. Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce "
            "spectral leakage.To suppress this warning and use a rectangular window, "
        )
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    x = input if input.ndim == 2 else input.unsqueeze(0) if input.ndim == 1 else input
    if center and x.ndim == 2:
        x = _pad_ends(F, x, n_fft // 2, pad_mode)
    shown = _format_stft_call(
        "stft",
        x if input.ndim != 1 else x.squeeze(0),
        n_fft,
        hop_length,
        win_length,
        window,
        normalized=normalized,
        onesided=onesided,
        return_complex=return_complex,
        align_to_window=align_to_window,
    )
    _check_stft(shown, x, n_fft, hop_length, win_length, window)
    frames = x.unfold(-1, n_fft, hop_length)
    if window is not None or win_length < n_fft:
        frames = frames * _pad_window(F, window, win_length, n_fft, x)
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    transform = F.fft_rfft if onesided else F.fft_fft
    result = transform(frames, None, -1, "ortho" if normalized else "backward").transpose(1, 2)
    result = result if input.ndim == 2 else result.squeeze(0)
    return result if return_complex else F.view_as_real(result.contiguous())


def _check_istft(shown, x, n_fft, hop_length, win_length, window, onesided):
    if not x.numel():
        raise RuntimeError(f"{shown}: input tensor cannot be empty.")
    if x.ndim not in (2, 3):
        raise RuntimeError(f"{shown}: expected a tensor with 2 or 3 dimensions, but got {x.ndim}")
    bins = n_fft // 2 + 1 if onesided else n_fft
    if x.shape[-2] != bins:
        formula = "n_fft / 2 + 1 when onesided=True" if onesided else "n_fft when onesided=False"
        raise RuntimeError(
            f"{shown}: expected the frequency dimension (3rd to the last) of the input tensor to match {formula}, "
            f"but got {x.shape[-2]}"
        )
    if not 0 < hop_length <= win_length:
        raise RuntimeError(f"{shown}: expected 0 < hop_length <= win_length")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{shown}: expected 0 < win_length <= n_fft")
    if window is not None and (window.ndim != 1 or window.shape[0] != win_length):
        raise RuntimeError(f"{shown}: Invalid window shape. window has to be 1D and length of `win_length`")


def _overlap_add(F, frames, hop_length):
    """The sum of frames (B, T, N), each `hop_length` after the one before: (B, (T - 1) hop_length + N)."""
    batch, count, width = frames.shape
    start = F._new_arange(frames, 0, count * hop_length, hop_length, int64).unsqueeze(1)
    place = (start + F._new_arange(frames, 0, width, 1, int64)).reshape(-1)
    return F.index_add(
        frames.new_zeros((batch, (count - 1) * hop_length + width)), 1, place, frames.reshape(batch, count * width)
    )


@composite(
    "istft(Tensor input, n_fft, hop_length=None, win_length=None, Tensor? window=None, center=True, "
    "normalized=False, onesided=None, length=None, return_complex=False)"
)
def istft(F, input, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
    """Computes the least-squares inverse of `torch.stft` with the same arguments (Griffin and Lim, 1984).

    Args:
        input: The transforms, complex, of shape ``(frequencies, frames)`` or ``(B, frequencies, frames)``.
        n_fft: The length of a frame.
        hop_length: The distance of frames. Default: ``n_fft // 4``.
        win_length: The length of the window, at most `n_fft`. Default: `n_fft`.
        window: The window, of shape ``(win_length,)``. Default: ones.
        center: Whether frame ``t`` is centered on sample ``t * hop_length``. Default: ``True``.
        normalized: Whether the input was scaled by ``1 / sqrt(n_fft)``. Default: ``False``.
        onesided: Whether the input has the first ``n_fft // 2 + 1`` frequencies alone.
        length: The length of the signal. Default: what the frames cover.
        return_complex: Whether the signal is complex. Default: ``False``.

    Returns:
        The signal, of shape ``(length,)`` or ``(B, length)``.

    Raises:
        RuntimeError: The windows leave a sample uncovered.

    Example:
        >>> window = torch.ones(4)
        >>> torch.istft(torch.stft(torch.ones(8), 4, window=window, return_complex=True), 4, window=window)
        tensor([1., 1., 1., 1., 1., 1., 1., 1.])

    See also:
        `torch.stft`.
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    refuse_floats(n_fft, hop_length, win_length)
    if window is None:
        _warn_window(
            "A window was not provided. A rectangular window will be applied.Please provide the same window used by "
            "stft to make the inversion lossless.To suppress this warning and use a rectangular window, "
        )
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    shown = _format_stft_call(
        "istft",
        input,
        n_fft,
        hop_length,
        win_length,
        window,
        center=center,
        normalized=normalized,
        onesided=onesided,
        length=length,
        return_complex=return_complex,
    )
    onesided = input.shape[-2] != n_fft if onesided is None and input.ndim >= 2 else onesided
    _check_istft(shown, input, n_fft, hop_length, win_length, window, onesided)
    x = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        if onesided:
            raise RuntimeError(f"{shown}: complex output is not supported for onesided=True")
        frames = F.fft_ifft(x, None, -1, norm)
    else:
        if window is not None and window.dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        frames = F.fft_irfft(x if onesided else x[..., : n_fft // 2 + 1], n_fft, -1, norm)
    window = _pad_window(F, window, win_length, n_fft, x)
    total = _overlap_add(F, frames * window, hop_length)
    cover = _overlap_add(F, (window * window).expand(1, frames.shape[1], n_fft), hop_length)
    start = n_fft // 2 if center else 0
    whole = total.shape[1]
    end = start + length if length is not None else whole - n_fft // 2 if center else whole
    stop = min(end, whole)
    total, cover = total[:, start:stop], cover[:, start:stop]
    if not cover.is_meta and any_true(cover.detach().abs() < 1e-11):
        raise RuntimeError(f"{shown}window overlap add min: 1")
    result = total / cover
    if end > whole:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the "
            "tail. Please check your center and hop_length settings.",
            UserWarning,
            stacklevel=3,
        )
        result = F.cat([result, result.new_zeros((result.shape[0], end - whole))], 1)
    return result if input.ndim == 3 else result.squeeze(0)
