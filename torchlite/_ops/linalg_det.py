"""Determinants and their logarithms."""

from .._dispatch import Out, composite, op
from .._dispatch.shape_and_value_checks import any_true
from ._gradient_helpers import to_named_tuple
from ._linalg_common import adjoint, as_column, check_float, check_kernel_float, check_square, identity, machine_epsilon


def _conj_cofactors(F, input, det):
    scale = as_column(F, as_column(F, F.conj(det)))
    inverse = F._inv_core(input)[0]
    condition = _frobenius_norm(input.detach()) * _frobenius_norm(inverse.detach())
    ill = ~(condition < machine_epsilon(input) ** -0.5)  # NaN for singular ones
    if input.is_meta or not any_true(ill):
        return F.mul(scale, adjoint(F, inverse))
    regular = F.where(ill, identity(F, input, input.shape[-1]), input)
    inverse = F.mul(scale, adjoint(F, F._inv_core(regular)[0]))
    return F.where(ill, adjoint(F, _adjugate(F, input)), inverse)


def _frobenius_norm(matrix):
    return (matrix.abs() ** 2).sum((-2, -1), keepdim=True).sqrt()


def _adjugate(F, input):
    """The transposed cofactors by the method of Faddeev and LeVerrier: a polynomial, whose derivatives are finite."""
    n = input.shape[-1]
    eye = identity(F, input, n)
    out = F.expand(eye, input.shape)
    for k in range(1, n):
        product = F.matmul(input, out)
        trace = F.sum(F.mul(product, eye), (-2, -1), True)
        out = F.sub(F.div(F.mul(trace, eye), k), product)
    return out


op(
    "_conj_cofactor_matrix(Tensor input, Tensor det)",
    where="",
    composite=_conj_cofactors,
    shape_fn=lambda input: (input.shape, input.dtype),
)
op(
    "_det_core(Tensor input)",
    where="",
    vjp={"input": lambda F, g, input, out: F.mul(as_column(F, as_column(F, g)), F._conj_cofactor_matrix(input, out))},
    shape_fn=lambda input: (tuple(input.shape[:-2]), input.dtype),
    node_name="LinalgDetBackward0",
)


@composite("linalg_det(Tensor A)", where="linalg", out=Out("same"))
def linalg_det(F, A):
    """Computes the determinants of square matrices.

    Args:
        A: The matrices, of shape ``(*, n, n)``.

    Returns:
        A tensor of shape ``(*,)``.

    Example:
        >>> torch.linalg.det(torch.tensor([[2.0, 1.0], [0.0, 3.0]]))
        tensor(6.)

    See also:
        `torch.linalg.slogdet`, which does not overflow.
    """
    check_square("linalg.det", A)
    check_float("linalg.det", A, low_precision=True)
    check_kernel_float("lu_cpu", A)
    return F._det_core(A)


@composite("det(Tensor input)")
def det(F, input):
    """Computes the determinants of square matrices; another name of `torch.linalg.det`.

    Args:
        input: The matrices, of shape ``(*, n, n)``.

    Example:
        >>> torch.det(torch.tensor([[2.0]]))
        tensor(2.)
    """
    return F.linalg_det(input)


def _slogdet_vjp(F, g, input, out0, input_dtype):
    if not input_dtype.is_complex:
        return F.mul(as_column(F, as_column(F, g[1])), adjoint(F, F._inv_core(input)[0])) if g[1] is not None else None
    scale = None if g[1] is None else F.to(g[1], input_dtype)
    if g[0] is not None:
        turned = F.mul(g[0], F.conj(out0))
        phase = F.sub(turned, F.to(F.real(turned), input_dtype))
        scale = phase if scale is None else F.add(scale, phase)
    return F.mul(as_column(F, as_column(F, scale)), adjoint(F, F._inv_core(input)[0]))


op(
    "_slogdet_core(Tensor input)",
    where="",
    outputs=("sign", "logabsdet"),
    vjp={"input": _slogdet_vjp},
    shape_fn=lambda input: [(tuple(input.shape[:-2]), input.dtype), (tuple(input.shape[:-2]), input.dtype.to_real())],
    node_name="LinalgSlogdetBackward0",
)


@composite("linalg_slogdet(Tensor A)", where="linalg", outputs=("sign", "logabsdet"), out=Out("same"))
def linalg_slogdet(F, A):
    """Computes the signs of determinants and the logarithms of their absolute values.

    Args:
        A: The matrices, of shape ``(*, n, n)``.

    Returns:
        A named tuple ``(sign, logabsdet)``; the sign of a complex determinant is a number of absolute value 1.

    Example:
        >>> torch.linalg.slogdet(torch.tensor([[1.0, 0.0], [0.0, -1.0]])).sign
        tensor(-1.)

    See also:
        `torch.linalg.det`, `torch.logdet`.
    """
    check_square("linalg.slogdet", A)
    check_float("linalg.slogdet", A)
    return to_named_tuple("linalg_slogdet", F._slogdet_core(A))


@composite("slogdet(Tensor input)", outputs=("sign", "logabsdet"), out=Out("same"))
def slogdet(F, input):
    """Computes the signs and logarithms of determinants; another name of `torch.linalg.slogdet`.

    Args:
        input: The matrices, of shape ``(*, n, n)``.

    Example:
        >>> torch.slogdet(torch.eye(2)).logabsdet
        tensor(0.)
    """
    return to_named_tuple("slogdet", F.linalg_slogdet(input))


@composite("logdet(Tensor input)")
def logdet(F, input):
    """Computes the logarithms of determinants: NaN for a negative one, ``-inf`` for zero.

    Args:
        input: The matrices, of shape ``(*, n, n)``.

    Example:
        >>> torch.logdet(torch.eye(2))
        tensor(0.)

    See also:
        `torch.linalg.slogdet`.
    """
    check_square("logdet", input)
    check_float("logdet", input)
    sign, logarithm = F._slogdet_core(input)
    if input.dtype.is_complex:
        return logarithm + F.log(sign)
    return F.where(F.eq(sign.detach(), -1.0), F._full_like(logarithm, float("nan")), logarithm)
