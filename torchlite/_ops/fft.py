"""`torch.fft`, `stft` and `istft`: three core records (complex to complex, real to complex, complex to real) and
everything else over them.
"""

import math
import operator

from .._dispatch import REGISTRY, Out, call, composite, memory_layout, op, out_variants
from .._dispatch.shape_and_value_checks import set_requires_grad
from .._dispatch.shapes import wrap_dim
from .._types.dtypes import complex64, complex128, float32, float64, get_default_dtype
from ._dtype_checks import refuse_complex, refuse_floats

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
    refuse_floats(n)
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _trim_or_pad(F, x, dims, sizes):
    """Trimmed, or padded with zeros, to `sizes` along `dims`."""
    for d, n in zip(dims, sizes, strict=True):
        if n < x.shape[d]:
            x = F.narrow(x, d, 0, n)
    longer = any(n > x.shape[d] for d, n in zip(dims, sizes, strict=True))
    return F._pad_with_zeros(x, tuple(dims), tuple(sizes)) if longer else x


@composite("_pad_with_zeros(Tensor input, dims, sizes)", where="", node_name="ConstantPadNdBackward0(input)")
def _pad_with_zeros(F, input, dims, sizes):
    """Padded at the end to at least `sizes`."""
    for d, n in zip(dims, sizes, strict=True):
        if n > input.shape[d]:
            input = F.cat([input, input.new_zeros(_with_size(input.shape, d, n - input.shape[d]))], d)
    return input


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
        refuse_floats(*s)
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
    r"""Computes the discrete Fourier transform along a dimension.

    .. math::

        X_k = \sum_{j = 0}^{n - 1} x_j \exp(-2 \pi i j k / n)

    The result is complex; single precision stays single precision.

    Args:
        n: The length: the input is cut or padded with zeros to it. Default: the size of `dim`.
        dim: The dimension. Default: the last.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.fft(torch.tensor([1.0, 0.0, 0.0, 0.0])).real
        tensor([1., 1., 1., 1.])

    See also:
        `torch.fft.ifft`, `torch.fft.rfft`.
    """
    return _c2c_1d(F, input, n, dim, norm, True)


@composite("fft_ifft(Tensor input, n=None, dim=-1, norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_ifft(F, input, n, dim, norm):
    r"""Computes the inverse discrete Fourier transform along a dimension.

    .. math::

        x_j = \frac{1}{n} \sum_{k = 0}^{n - 1} X_k \exp(2 \pi i j k / n)

    Args:
        n: The length: the input is cut or padded with zeros to it. Default: the size of `dim`.
        dim: The dimension. Default: the last.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.ifft(torch.tensor([4.0, 0.0, 0.0, 0.0])).real
        tensor([1., 1., 1., 1.])

    See also:
        `torch.fft.fft`.
    """
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
    """Computes the discrete Fourier transform of a real input: its first ``n // 2 + 1`` entries.

    The other entries are their conjugates.

    Args:
        n: The length: the input is cut or padded with zeros to it. Default: the size of `dim`.
        dim: The dimension. Default: the last.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Raises:
        RuntimeError: The input is complex.

    Example:
        >>> torch.fft.rfft(torch.ones(4)).real
        tensor([4., 0., 0.])

    See also:
        `torch.fft.irfft`.
    """
    return _r2c_1d(F, "rfft", input, n, dim, norm, True)


@composite("fft_ihfft(Tensor input, n=None, dim=-1, norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_ihfft(F, input, n, dim, norm):
    """Computes the inverse of `torch.fft.hfft`: the first half of the Hermitian signal of a real spectrum.

    Args:
        n: The length: the input is cut or padded with zeros to it. Default: the size of `dim`.
        dim: The dimension. Default: the last.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.ihfft(torch.tensor([1.0, 1.0, 1.0, 1.0])).real
        tensor([1., 0., 0.])

    See also:
        `torch.fft.hfft`.
    """
    return _r2c_1d(F, "ihfft", input, n, dim, norm, False)


def _c2r_1d(F, x, n, dim, norm, forward):
    dim = _wrap_single_dim(x, dim)
    n = 2 * (x.shape[dim] - 1) if n is None else n
    _check_points(n)
    x = _trim_or_pad(F, _as_float(F, x, True), (dim,), (n // 2 + 1,))
    return F._fft_c2r_core(x.conj() if forward else x, (dim,), _normalization_scale(norm, forward, n), n)


@composite("fft_irfft(Tensor input, n=None, dim=-1, norm=None)", where="fft", out=_REAL_OUT)
def fft_irfft(F, input, n, dim, norm):
    """Computes the inverse of `torch.fft.rfft`: a real signal from half of its spectrum.

    Args:
        n: The length of the result. Default: ``2 * (m - 1)`` for a size ``m`` of `dim`.
        dim: The dimension. Default: the last.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.irfft(torch.tensor([4.0, 0.0, 0.0]))
        tensor([1., 1., 1., 1.])

    See also:
        `torch.fft.rfft`.
    """
    return _c2r_1d(F, input, n, dim, norm, False)


@composite("fft_hfft(Tensor input, n=None, dim=-1, norm=None)", where="fft", out=_REAL_OUT)
def fft_hfft(F, input, n, dim, norm):
    """Computes the discrete Fourier transform of a Hermitian signal, given by its first half; the result is real.

    Args:
        n: The length of the result. Default: ``2 * (m - 1)`` for a size ``m`` of `dim`.
        dim: The dimension. Default: the last.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.hfft(torch.tensor([1.0, 0.0, 0.0]))
        tensor([1., 1., 1., 1.])

    See also:
        `torch.fft.ihfft`.
    """
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
    half = F.conj_physical(
        F._fft_r2c_core(
            _trim_or_pad(F, x, dims, sizes), dims[-1:], _normalization_scale(norm, False, math.prod(sizes)), True
        )
    )
    return F._fft_c2c_core(half, dims[:-1], 1.0, False) if len(dims) > 1 else half


@composite(
    "fft_fftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_COMPLEX_OUT, kwarg_aliases={"axes": "dim"}
)
def fft_fftn(F, input, s, dim, norm):
    """Computes the discrete Fourier transform over several dimensions.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes.
        dim: The dimensions. Default: all, or as many last ones as `s` has.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.fftn(torch.ones(2, 2)).real
        tensor([[4., 0.],
                [0., 0.]])

    See also:
        `torch.fft.ifftn`.
    """
    return _c2c_nd(F, input, s, dim, norm, True)


@composite(
    "fft_ifftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_COMPLEX_OUT, kwarg_aliases={"axes": "dim"}
)
def fft_ifftn(F, input, s, dim, norm):
    """Computes the inverse discrete Fourier transform over several dimensions.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes.
        dim: The dimensions. Default: all, or as many last ones as `s` has.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.ifftn(torch.tensor([[4.0, 0.0], [0.0, 0.0]])).real
        tensor([[1., 1.],
                [1., 1.]])

    See also:
        `torch.fft.fftn`.
    """
    return _c2c_nd(F, input, s, dim, norm, False)


@composite("fft_fft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_fft2(F, input, s, dim, norm):
    """Computes the discrete Fourier transform over two dimensions.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes.
        dim: The two dimensions. Default: the last two.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.fft2(torch.ones(2, 2)).real
        tensor([[4., 0.],
                [0., 0.]])

    See also:
        `torch.fft.fftn`.
    """
    return _c2c_nd(F, input, s, dim, norm, True)


@composite("fft_ifft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_ifft2(F, input, s, dim, norm):
    """Computes the inverse discrete Fourier transform over two dimensions.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes.
        dim: The two dimensions. Default: the last two.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.ifft2(torch.tensor([[4.0, 0.0], [0.0, 0.0]])).real
        tensor([[1., 1.],
                [1., 1.]])

    See also:
        `torch.fft.fft2`.
    """
    return _c2c_nd(F, input, s, dim, norm, False)


@composite(
    "fft_rfftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_COMPLEX_OUT, kwarg_aliases={"axes": "dim"}
)
def fft_rfftn(F, input, s, dim, norm):
    """Computes the transform of a real input over several dimensions: half of the last one's spectrum.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes.
        dim: The dimensions. Default: all, or as many last ones as `s` has.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.rfftn(torch.ones(2, 2)).real
        tensor([[4., 0.],
                [0., 0.]])

    See also:
        `torch.fft.irfftn`.
    """
    return _r2c_nd(F, "rfftn", input, s, dim, norm)


@composite("fft_rfft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_rfft2(F, input, s, dim, norm):
    """Computes the transform of a real input over two dimensions: half of the last one's spectrum.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes.
        dim: The two dimensions. Default: the last two.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.rfft2(torch.ones(2, 4)).shape
        torch.Size([2, 3])

    See also:
        `torch.fft.rfftn`.
    """
    return _r2c_nd(F, "rfftn", input, s, dim, norm)


@composite(
    "fft_irfftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_REAL_OUT, kwarg_aliases={"axes": "dim"}
)
def fft_irfftn(F, input, s, dim, norm):
    """Computes the inverse of `torch.fft.rfftn`.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes, and ``2 * (m - 1)`` for
            the last one.
        dim: The dimensions. Default: all, or as many last ones as `s` has.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.irfftn(torch.tensor([[4.0, 0.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [1., 1.]])

    See also:
        `torch.fft.rfftn`.
    """
    return _c2r_nd(F, "irfftn", input, s, dim, norm)


@composite("fft_irfft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_REAL_OUT)
def fft_irfft2(F, input, s, dim, norm):
    """Computes the inverse of `torch.fft.rfft2`.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes, and ``2 * (m - 1)`` for
            the last one.
        dim: The two dimensions. Default: the last two.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.irfft2(torch.tensor([[4.0, 0.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [1., 1.]])

    See also:
        `torch.fft.rfft2`.
    """
    return _c2r_nd(F, "irfftn", input, s, dim, norm)


@composite("fft_hfftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_REAL_OUT)
def fft_hfftn(F, input, s, dim, norm):
    """Computes `torch.fft.hfft` over the last dimension and `torch.fft.fft` over the others.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes, and ``2 * (m - 1)`` for
            the last one.
        dim: The dimensions. Default: all, or as many last ones as `s` has.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.hfftn(torch.ones(2, 3)).shape
        torch.Size([2, 4])

    See also:
        `torch.fft.ihfftn`.
    """
    return _hfft_nd(F, "hfftn", input, s, dim, norm)


@composite("fft_hfft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_REAL_OUT)
def fft_hfft2(F, input, s, dim, norm):
    """Computes `torch.fft.hfftn` over two dimensions.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes, and ``2 * (m - 1)`` for
            the last one.
        dim: The two dimensions. Default: the last two.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.hfft2(torch.ones(2, 3)).shape
        torch.Size([2, 4])

    See also:
        `torch.fft.ihfft2`.
    """
    return _hfft_nd(F, "hfftn", input, s, dim, norm)


@composite("fft_ihfftn(Tensor input, s=None, dim=None, norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_ihfftn(F, input, s, dim, norm):
    """Computes the inverse of `torch.fft.hfftn`.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes.
        dim: The dimensions. Default: all, or as many last ones as `s` has.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.ihfftn(torch.ones(2, 4)).shape
        torch.Size([2, 3])

    See also:
        `torch.fft.hfftn`.
    """
    return _ihfft_nd(F, "ihfftn", input, s, dim, norm)


@composite("fft_ihfft2(Tensor input, s=None, dim=(-2, -1), norm=None)", where="fft", out=_COMPLEX_OUT)
def fft_ihfft2(F, input, s, dim, norm):
    """Computes the inverse of `torch.fft.hfft2`.

    Args:
        s: The lengths: the input is cut or padded with zeros to them. Default: the sizes.
        dim: The two dimensions. Default: the last two.
        norm: ``"backward"`` (default), ``"forward"`` or ``"ortho"``: which of the two transforms is scaled by
            ``1/n``, or both by ``1/sqrt(n)``.

    Example:
        >>> torch.fft.ihfft2(torch.ones(2, 4)).shape
        torch.Size([2, 3])

    See also:
        `torch.fft.hfft2`.
    """
    return _ihfft_nd(F, "ihfftn", input, s, dim, norm)


# --- frequencies and shifts -----------------------------------------------------------------------


_MAKE = "n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False"


def _fft_frequencies(first, count, n, d, out, dtype, device, requires_grad):
    n = operator.index(n)
    if count < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
    dtype = dtype or (get_default_dtype() if out is None else out.dtype)
    if dtype.category < 2:
        raise RuntimeError("fftfreq requires a floating point or complex dtype")
    refuse_complex(d)
    where = out.device if device is None and out is not None else device
    result = call.create_tensor("_arange", 0, count, 1, dtype, device=where)
    if first is not None:
        result = result - (result >= first).to(dtype) * n
    result = result * (1.0 / (n * d) if n * d else math.inf)
    if out is not None:
        if out.numel() == count:
            result = result.reshape(out.shape)
        return out_variants.write_out(REGISTRY["_arange"], result, out)
    return set_requires_grad(result, requires_grad)


@composite("fft_fftfreq(" + _MAKE + ")", where="fft")
def fft_fftfreq(F, n, d, out, dtype, device, requires_grad):
    """Returns the frequencies of the entries of `torch.fft.fft`: 0 and the positive ones, then the negative ones.

    Args:
        n: The number of samples.
        d: The distance of samples, in the unit of time. Default: 1.

    Returns:
        A tensor of shape ``(n,)``, in cycles per unit of time.

    Example:
        >>> torch.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])

    See also:
        `torch.fft.fftshift`.
    """
    return _fft_frequencies((n + 1) // 2, n, n, d, out, dtype, device, requires_grad)


@composite("fft_rfftfreq(" + _MAKE + ")", where="fft")
def fft_rfftfreq(F, n, d, out, dtype, device, requires_grad):
    """Returns the frequencies of the entries of `torch.fft.rfft`.

    Args:
        n: The number of samples.
        d: The distance of samples, in the unit of time. Default: 1.

    Returns:
        A tensor of shape ``(n // 2 + 1,)``, in cycles per unit of time.

    Example:
        >>> torch.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])

    See also:
        `torch.fft.fftfreq`.
    """
    return _fft_frequencies(None, n // 2 + 1, n, d, out, dtype, device, requires_grad)


def _resolve_shift_dims(x, dim):
    if dim is None:
        return tuple(range(x.ndim))
    dims = (dim,) if hasattr(dim, "__index__") else dim
    if not x.ndim and dims:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return tuple(wrap_dim(d, x.ndim) for d in dims)


@composite(
    "fft_fftshift(Tensor input, dim=None)", where="fft", layout=memory_layout.contiguous, kwarg_aliases={"axes": "dim"}
)
def fft_fftshift(F, input, dim):
    """Moves the entry of frequency 0 to the middle.

    Args:
        dim: The dimensions. Default: all.

    Example:
        >>> torch.fft.fftshift(torch.fft.fftfreq(4))
        tensor([-0.5000, -0.2500,  0.0000,  0.2500])

    See also:
        `torch.fft.ifftshift`.
    """
    dims = _resolve_shift_dims(input, dim)
    return F.roll(input, tuple(input.shape[d] // 2 for d in dims), dims) if dims else F.clone(input)


@composite(
    "fft_ifftshift(Tensor input, dim=None)", where="fft", layout=memory_layout.contiguous, kwarg_aliases={"axes": "dim"}
)
def fft_ifftshift(F, input, dim):
    """Reverses `torch.fft.fftshift`.

    Args:
        dim: The dimensions. Default: all.

    Example:
        >>> torch.fft.ifftshift(torch.tensor([-0.5000, -0.2500, 0.0000, 0.2500]))
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])

    See also:
        `torch.fft.fftshift`.
    """
    dims = _resolve_shift_dims(input, dim)
    return F.roll(input, tuple((input.shape[d] + 1) // 2 for d in dims), dims) if dims else F.clone(input)
