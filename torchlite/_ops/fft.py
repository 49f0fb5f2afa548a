"""`torch.fft`, `stft` and `istft`: three core records (complex to complex, real to complex, complex to real) and
everything else over them.
"""

import math
import warnings

from .._dispatch import REGISTRY, Out, call, composite, memory_layout, op
from .._dispatch.shape_and_value_checks import any_true, set_requires_grad
from .._dispatch.shapes import wrap_dim
from .._types.dtypes import complex64, complex128, float32, float64, get_default_dtype, int64

_COMPLEX = {float32: complex64, float64: complex128}
_REAL = {complex64: float32, complex128: float64}


# --- the core: unnormalised sums times a scale ----------------------------------------------------

# The dtypes that `out=` may have.
_COMPLEX_OUT = Out(message="{short} expects a complex output tensor, but got {got}")
_REAL_OUT = Out(message="{short} expects a floating point output tensor, but got {got}")


def _r2c_vjp(F, g, input_shape, dim, scale, onesided):
    """The real part of the transform of the gradient, zero-padded to the full spectrum."""
    last = dim[-1]
    missing = input_shape[last] - g.shape[last]
    if onesided and missing:
        shape = list(g.shape)
        shape[last] = missing
        g = F.cat([g, F._new_zeros(g, tuple(shape))], last)
    return F.real(F._fft_c2c_core(g, dim, scale, False))


def _c2r_vjp(F, g, input_shape, dim, scale, last_size):
    """The half spectrum of the gradient; entries that stood for two count twice."""
    last = dim[-1]
    spectrum = F._fft_r2c_core(g, dim, scale, True)
    twice = last_size - input_shape[last]
    if twice <= 0:
        return spectrum
    inner = F.narrow(spectrum, last, 1, twice)
    parts = [F.narrow(spectrum, last, 0, 1), F.mul(inner, 2)]
    rest = spectrum.shape[last] - twice - 1
    if rest:
        parts.append(F.narrow(spectrum, last, twice + 1, rest))
    return F.cat(parts, last)


def _with_size(shape, dim, n):
    return tuple(n if d == dim else m for d, m in enumerate(shape))


op(
    "_fft_c2c_core(Tensor input, dim, scale, forward)",
    where="",
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={"input": lambda F, g, dim, scale, forward: F._fft_c2c_core(g, dim, scale, not forward)},
    layout=memory_layout.fft,
    node_name="FftC2CBackward0",
)
op(
    "_fft_r2c_core(Tensor input, dim, scale, onesided)",
    where="",
    vjp={"input": _r2c_vjp},
    shape_fn=lambda input, dim, onesided: (
        _with_size(input.shape, dim[-1], input.shape[dim[-1]] // 2 + 1 if onesided else input.shape[dim[-1]]),
        _COMPLEX[input.dtype],
    ),
    layout=memory_layout.fft_real_input,
    node_name="FftR2CBackward0",
)
op(
    "_fft_c2r_core(Tensor input, dim, scale, last_size)",
    where="",
    vjp={"input": _c2r_vjp},
    shape_fn=lambda input, dim, last_size: (_with_size(input.shape, dim[-1], last_size), _REAL[input.dtype]),
    layout=memory_layout.fft_real_output,
    node_name="FftC2RBackward0",
)


# --- arguments ------------------------------------------------------------------------------------


def _normalization_scale(norm, forward, count):
    """The scale of a normalisation mode: "backward" (None) scales the inverse by 1/n, "forward" the forward transform,
    "ortho" both by 1/sqrt(n).
    """
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1 / math.sqrt(count) if count else 1.0
    scaled = (norm == "forward") if forward else (norm != "forward")
    return 1 / count if scaled and count else 1.0


def _as_float(F, x, to_complex=False):
    """Convert integers to the default float dtype, and real numbers to complex if requested."""
    if x.dtype.category < 2:
        x = x.to(get_default_dtype())
    if x.dtype not in _COMPLEX and x.dtype not in _REAL:
        if x.dtype.is_complex:
            raise RuntimeError("MKL FFT doesn't support tensors of type: Half")
        raise RuntimeError(f"Unsupported dtype {x.dtype.scalar_name}")
    return x.to(_COMPLEX[x.dtype]) if to_complex and x.dtype in _COMPLEX else x


def _as_real(F, name, x):
    if x.dtype.is_complex:
        what = "real-valued" if name.endswith("n") else "real"
        raise RuntimeError(f"{name} expects a {what} input tensor, but got {x.dtype.scalar_name}")
    return _as_float(F, x)


def _wrap_single_dim(x, dim):
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, x.ndim)


def _check_points(n):
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _trim_or_pad(F, x, dims, sizes):
    """Trimmed, or padded with zeros, to `sizes` along `dims`."""
    for d, n in zip(dims, sizes, strict=True):
        if n < x.shape[d]:
            x = F.narrow(x, d, 0, n)
        elif n > x.shape[d]:
            x = F.cat([x, x.new_zeros(_with_size(x.shape, d, n - x.shape[d]))], d)
    return x


def _dims_and_sizes(x, s, dim):
    """The dimensions (counted from the front) and the sizes of an n-dimensional transform."""
    if hasattr(dim, "__index__"):
        dim = (dim,)
    if dim and not x.ndim:
        raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
    if hasattr(s, "__index__"):
        s = (s,)
    if dim is not None:
        dims = tuple(wrap_dim(d, x.ndim) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    if s is not None:
        if dim is not None and len(dim) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > x.ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions.")
        if dim is None:
            dims = tuple(range(x.ndim - len(s), x.ndim))
        sizes = tuple(x.shape[d] if n == -1 else n for n, d in zip(s, dims, strict=True))
    else:
        dims = tuple(range(x.ndim)) if dim is None else dims
        sizes = tuple(x.shape[d] for d in dims)
    for n in sizes:
        _check_points(n)
    return dims, sizes


# --- one dimension --------------------------------------------------------------------------------


def _c2c_1d(F, x, n, dim, norm, forward):
    dim = _wrap_single_dim(x, dim)
    n = x.shape[dim] if n is None else n
    _check_points(n)
    x = _as_float(F, x)
    scale = _normalization_scale(norm, forward, n)
    x = _trim_or_pad(F, x, (dim,), (n,))
    if x.dtype.is_complex:
        return F._fft_c2c_core(x, (dim,), scale, forward)
    whole = F._fft_r2c_core(x, (dim,), scale, False)
    return whole if forward else whole.conj()


@composite("fft_fft(Tensor input, n=None, dim=-1, norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_fft(F, input, n, dim, norm):
    """The discrete Fourier transform along `dim` (trimmed or padded with zeros to `n`). Complex; single precision stays
    single.

    `norm`: "backward" (no scale, the default), "forward" (1/n) or "ortho" (1/sqrt(n)).

    >>> torch.fft.fft(torch.tensor([1., 0., 0., 0.])).real
    tensor([1., 1., 1., 1.])
    """
    return _c2c_1d(F, input, n, dim, norm, True)


@composite("fft_ifft(Tensor input, n=None, dim=-1, norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_ifft(F, input, n, dim, norm):
    """The inverse of `fft`: scale 1/n ("backward", the default), none ("forward") or 1/sqrt(n) ("ortho")."""
    return _c2c_1d(F, input, n, dim, norm, False)


def _r2c_1d(F, name, x, n, dim, norm, forward):
    dim = _wrap_single_dim(x, dim)
    n = x.shape[dim] if n is None else n
    x = _as_real(F, name, x)
    _check_points(n)
    half = F._fft_r2c_core(_trim_or_pad(F, x, (dim,), (n,)), (dim,), _normalization_scale(norm, forward, n), True)
    return half if forward else half.conj()


@composite("fft_rfft(Tensor input, n=None, dim=-1, norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_rfft(F, input, n, dim, norm):
    """The first n // 2 + 1 entries of the transform of a real input: the rest are their conjugates. RuntimeError for
    complex input.

    >>> torch.fft.rfft(torch.ones(4)).real
    tensor([4., 0., 0.])
    """
    return _r2c_1d(F, "rfft", input, n, dim, norm, True)


@composite("fft_ihfft(Tensor input, n=None, dim=-1, norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_ihfft(F, input, n, dim, norm):
    """The inverse of `hfft`: half of the Hermitian signal whose transform is the real input."""
    return _r2c_1d(F, "ihfft", input, n, dim, norm, False)


def _c2r_1d(F, x, n, dim, norm, forward):
    dim = _wrap_single_dim(x, dim)
    n = 2 * (x.shape[dim] - 1) if n is None else n
    _check_points(n)
    x = _trim_or_pad(F, _as_float(F, x, True), (dim,), (n // 2 + 1,))
    return F._fft_c2r_core(x.conj() if forward else x, (dim,), _normalization_scale(norm, forward, n), n)


@composite("fft_irfft(Tensor input, n=None, dim=-1, norm=None)", where="fft", out=_REAL_OUT)
def fft_irfft(F, input, n, dim, norm):
    """The inverse of `rfft`: a real signal of `n` entries (2 (m - 1) unless given) from half a spectrum.

    >>> torch.fft.irfft(torch.tensor([4., 0., 0.]))
    tensor([1., 1., 1., 1.])
    """
    return _c2r_1d(F, input, n, dim, norm, False)


@composite("fft_hfft(Tensor input, n=None, dim=-1, norm=None)", where="fft", out=_REAL_OUT)
def fft_hfft(F, input, n, dim, norm):
    """The real transform of a Hermitian signal, given by its first half."""
    return _c2r_1d(F, input, n, dim, norm, True)


# --- several dimensions ---------------------------------------------------------------------------


def _c2c_nd(F, x, s, dim, norm, forward):
    dims, sizes = _dims_and_sizes(x, s, dim)
    x = _trim_or_pad(F, _as_float(F, x, True), dims, sizes)
    return F._fft_c2c_core(x, dims, _normalization_scale(norm, forward, math.prod(sizes)), forward) if dims else x


def _r2c_nd(F, name, x, s, dim, norm):
    dims, sizes = _dims_and_sizes(x, s, dim)
    x = _as_real(F, name, x)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return F._fft_r2c_core(
        _trim_or_pad(F, x, dims, sizes), dims, _normalization_scale(norm, True, math.prod(sizes)), True
    )


def _c2r_sizes(name, x, s, dim):
    """Dimensions, the input's sizes, and the size of the real dimension of a complex-to-real transform."""
    dims, sizes = _dims_and_sizes(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    given = None if s is None else s if hasattr(s, "__index__") else s[-1]
    last = 2 * (x.shape[dims[-1]] - 1) if given is None or given == -1 else given
    _check_points(last)
    return dims, (*sizes[:-1], last // 2 + 1), last


def _c2r_nd(F, name, x, s, dim, norm):
    dims, sizes, last = _c2r_sizes(name, x, s, dim)
    x = _trim_or_pad(F, _as_float(F, x, True), dims, sizes)
    return F._fft_c2r_core(x, dims, _normalization_scale(norm, False, math.prod(sizes[:-1]) * last), last)


def _hfft_nd(F, name, x, s, dim, norm):
    dims, sizes, last = _c2r_sizes(name, x, s, dim)
    x = _trim_or_pad(F, _as_float(F, x, True), dims, sizes)
    scale = _normalization_scale(norm, True, math.prod(sizes[:-1]) * last)
    if len(dims) > 1:
        x = F._fft_c2c_core(x, dims[:-1], 1.0, True)
    return F._fft_c2r_core(x.conj(), dims[-1:], scale, last)


def _ihfft_nd(F, name, x, s, dim, norm):
    dims, sizes = _dims_and_sizes(x, s, dim)
    if x.dtype.is_complex:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {x.dtype.scalar_name}")
    x = _as_float(F, x)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    half = F._fft_r2c_core(
        _trim_or_pad(F, x, dims, sizes), dims[-1:], _normalization_scale(norm, False, math.prod(sizes)), True
    ).conj()
    return F._fft_c2c_core(half, dims[:-1], 1.0, False) if len(dims) > 1 else half


@composite(
    "fft_fftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_COMPLEX_OUT, kwarg_aliases={"axes": "dim"}
)
def fft_fftn(F, input, s, dim, norm):
    """The transform over several dimensions `dim` (all, or as many last ones as `s` has), trimmed or padded with zeros
    to the sizes `s`.

    >>> torch.fft.fftn(torch.ones(2, 2)).real
    tensor([[4., 0.],
            [0., 0.]])
    """
    return _c2c_nd(F, input, s, dim, norm, True)


@composite(
    "fft_ifftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_COMPLEX_OUT, kwarg_aliases={"axes": "dim"}
)
def fft_ifftn(F, input, s, dim, norm):
    """The inverse of `fftn`."""
    return _c2c_nd(F, input, s, dim, norm, False)


@composite("fft_fft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_fft2(F, input, s, dim, norm):
    """`fftn` over two dimensions."""
    return _c2c_nd(F, input, s, dim, norm, True)


@composite("fft_ifft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_ifft2(F, input, s, dim, norm):
    """The inverse of `fft2`."""
    return _c2c_nd(F, input, s, dim, norm, False)


@composite(
    "fft_rfftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_COMPLEX_OUT, kwarg_aliases={"axes": "dim"}
)
def fft_rfftn(F, input, s, dim, norm):
    """`fftn` of a real input, half of the last dimension's spectrum."""
    return _r2c_nd(F, "rfftn", input, s, dim, norm)


@composite("fft_rfft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_rfft2(F, input, s, dim, norm):
    """`rfftn` over two dimensions."""
    return _r2c_nd(F, "rfftn", input, s, dim, norm)


@composite(
    "fft_irfftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_REAL_OUT, kwarg_aliases={"axes": "dim"}
)
def fft_irfftn(F, input, s, dim, norm):
    """The inverse of `rfftn`; the last dimension has 2 (m - 1) entries by default; see `s`."""
    return _c2r_nd(F, "irfftn", input, s, dim, norm)


@composite("fft_irfft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_REAL_OUT)
def fft_irfft2(F, input, s, dim, norm):
    """The inverse of `rfft2`."""
    return _c2r_nd(F, "irfftn", input, s, dim, norm)


@composite("fft_hfftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_REAL_OUT)
def fft_hfftn(F, input, s, dim, norm):
    """`hfft` over the last, `fft` over the other dimensions."""
    return _hfft_nd(F, "hfftn", input, s, dim, norm)


@composite("fft_hfft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_REAL_OUT)
def fft_hfft2(F, input, s, dim, norm):
    """`hfftn` over two dimensions."""
    return _hfft_nd(F, "hfftn", input, s, dim, norm)


@composite("fft_ihfftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_ihfftn(F, input, s, dim, norm):
    """The inverse of `hfftn`."""
    return _ihfft_nd(F, "ihfftn", input, s, dim, norm)


@composite("fft_ihfft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_ihfft2(F, input, s, dim, norm):
    """The inverse of `hfft2`."""
    return _ihfft_nd(F, "ihfftn", input, s, dim, norm)


# --- frequencies and shifts -----------------------------------------------------------------------


_MAKE = "n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False"


def _fft_frequencies(first, count, n, d, out, dtype, device, requires_grad):
    dtype = dtype or (get_default_dtype() if out is None else out.dtype)
    if dtype.category < 2:
        raise RuntimeError("fftfreq requires a floating point or complex dtype")
    where = out.device if device is None and out is not None else device
    result = call.create_tensor("_arange", 0, count, 1, dtype, device=where)
    if first is not None:
        result = result - (result >= first).to(dtype) * n
    result = result * (1.0 / (n * d) if n else 0.0)
    if out is not None:
        if out.numel() == count:
            result = result.reshape(out.shape)
        return call.write_out(REGISTRY["_arange"], result, out)
    return set_requires_grad(result, requires_grad)


@composite("fft_fftfreq(" + _MAKE + ")", where="fft")
def fft_fftfreq(F, n, d, out, dtype, device, requires_grad):
    """The frequencies of `fft`'s entries for `n` samples `d` apart: 0 and the positive ones, then the negative ones.

    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _fft_frequencies((n + 1) // 2, n, n, d, out, dtype, device, requires_grad)


@composite("fft_rfftfreq(" + _MAKE + ")", where="fft")
def fft_rfftfreq(F, n, d, out, dtype, device, requires_grad):
    """The frequencies of `rfft`'s n // 2 + 1 entries.

    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _fft_frequencies(None, n // 2 + 1, n, d, out, dtype, device, requires_grad)


def _resolve_shift_dims(x, dim):
    if dim is None:
        return tuple(range(x.ndim))
    return tuple(wrap_dim(d, x.ndim) for d in ((dim,) if hasattr(dim, "__index__") else dim))


@composite(
    "fft_fftshift(Tensor input, dim=None)", where="fft", layout=memory_layout.contiguous, kwarg_aliases={"axes": "dim"}
)
def fft_fftshift(F, input, dim):
    """The entry of frequency 0 moved to the middle of each of `dim` (all unless given).

    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    dims = _resolve_shift_dims(input, dim)
    return F.roll(input, tuple(input.shape[d] // 2 for d in dims), dims) if dims else F.clone(input)


@composite(
    "fft_ifftshift(Tensor input, dim=None)", where="fft", layout=memory_layout.contiguous, kwarg_aliases={"axes": "dim"}
)
def fft_ifftshift(F, input, dim):
    """The inverse of `fftshift`."""
    dims = _resolve_shift_dims(input, dim)
    return F.roll(input, tuple((input.shape[d] + 1) // 2 for d in dims), dims) if dims else F.clone(input)


# --- short-time transforms ------------------------------------------------------------------------


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
    """The transforms of overlapping windowed frames of a signal (L) or (B, L): (..., n_fft // 2 + 1, frames), complex.

    Frames of `n_fft` samples start every `hop_length` (n_fft // 4); `window` has `win_length` (n_fft) entries. With
    `center` frame t is centred on sample t * hop_length of the signal padded by `pad_mode`. `onesided` (the default for
    real signals) leaves out the conjugates. `normalized` scales by 1/sqrt(n_fft).
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
    """The least-squares inverse of `stft` with the same arguments (Griffin and Lim, 1984), `length` samples of it if
    given.

    RuntimeError where the overlapping windows leave a sample uncovered.
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
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
