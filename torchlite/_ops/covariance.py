"""Covariance and correlation of the rows of a matrix."""

import operator

from .._dispatch import composite
from .._dispatch.shape_and_value_checks import any_true


def _check_cov_weights(name, weights, count, integral):
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    if integral and weights.dtype.category != 1:
        raise RuntimeError(
            f"cov(): expected fweights to have integral dtype but got fweights with {weights.dtype.scalar_name} dtype"
        )
    if not integral and weights.dtype.category != 2:
        raise RuntimeError(
            "cov(): expected aweights to have floating point dtype but got aweights with "
            f"{weights.dtype.scalar_name} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {count}"
        )
    if any_true(weights < 0):
        raise RuntimeError(f"cov(): {name} cannot be negative")


@composite("cov(Tensor input, *, correction=1, Tensor? fweights=None, Tensor? aweights=None)")
def cov(F, input, correction, fweights, aweights):
    """Computes the covariance matrix of variables.

    Args:
        input: The observations: a variable a row, an observation a column. One dimension is one variable.
        correction: The number subtracted from the number of observations in the divisor. Default: 1.
        fweights: The number of times that each observation counts, integers.
        aweights: The weight of each observation.

    Returns:
        A matrix of shape ``(variables, variables)``, or the variance for one variable.

    Example:
        >>> torch.cov(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
        tensor([[ 2., -2.],
                [-2.,  2.]])

    See also:
        `torch.corrcoef`, `numpy.cov`.
    """
    if input.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if input.dtype.name == "bool":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input if input.ndim == 2 else input.reshape(1, -1)
    count, correction = x.shape[1], operator.index(correction)
    if fweights is not None:
        _check_cov_weights("fweights", fweights, count, True)
    if aweights is not None:
        _check_cov_weights("aweights", aweights, count, False)
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    total = count if weights is None else weights.sum()
    if weights is None:
        centred = (
            x - (x.sum(1) / total if count else x.sum(1)).unsqueeze(1)
            if x.dtype.category < 2
            else x - x.mean(1, keepdim=True)
        )
    else:
        centred = x - (x * weights).sum(1, keepdim=True) / total
    if weights is None:
        freedom = count - correction
    elif correction == 0 or aweights is None:
        freedom = total - correction
    else:
        freedom = total - correction * (weights * aweights).sum() / total
    if freedom <= 0 if isinstance(freedom, (int, float)) else any_true(freedom <= 0):
        import warnings

        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            UserWarning,
            stacklevel=3,
        )
        freedom = 0.0 if isinstance(freedom, (int, float)) else freedom.clamp(min=0)
    other = centred if weights is None else centred * weights
    product = centred.to(other.dtype) @ other.mT.conj()
    product = product / freedom
    return product.squeeze()


@composite("corrcoef(Tensor input)")
def corrcoef(F, input):
    """Computes the Pearson correlation coefficients of variables.

    Args:
        input: The observations: a variable a row, an observation a column.

    Returns:
        A matrix of shape ``(variables, variables)``, or a 0-d tensor for one variable.

    Example:
        >>> torch.corrcoef(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])

    See also:
        `torch.cov`.
    """
    if input.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    covariance = F.cov(input)
    if not covariance.ndim:
        return covariance / covariance
    deviation = covariance.diagonal().sqrt()
    if deviation.dtype.is_complex:
        deviation = F.real(deviation)
    result = covariance / deviation.unsqueeze(-1) / deviation.unsqueeze(0)
    if result.dtype.is_complex:
        return F.complex(F.real(result).clamp(-1, 1), F.imag(result).clamp(-1, 1))
    return result.clamp(-1, 1)
