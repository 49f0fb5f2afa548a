"""Orthogonal polynomials of one degree, and of a degree for each element."""

import numpy as np
import pytest

from torchlite_backends.array import orthogonal_polynomials as polynomials

NAMES = [name for name in vars(polynomials) if name.startswith("special_")]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("degree", [-1.0, 0.0, 1.0, 2.7, 5.0, 40.0, np.inf, np.nan])
def test_one_degree_has_the_values_of_many(name, dtype, degree):
    x = np.linspace(-2, 3, 101).astype(dtype)
    x[::20] = np.nan, np.inf, -np.inf, 0, 1, -1
    evaluate = getattr(polynomials, name)
    expected = evaluate(x, np.full(x.shape, degree, dtype))
    for n in (degree, np.array(degree, dtype)):
        np.testing.assert_array_equal(evaluate(x, n), expected)
    np.testing.assert_array_equal(evaluate(x[:0], degree), expected[:0])


def test_a_number_and_many_degrees():
    found = polynomials.special_chebyshev_polynomial_t(0.5, np.array([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(found, [1, 0.5, -0.5])
