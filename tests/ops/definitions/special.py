"""Special functions."""

from tests.ops.op_db import A, S, row

POSITIVE, UNIT = A((3, 4), 0.3, 3), A((3, 4), 0.1, 0.9)
INTS, SINGLE = S(A((2, 3), 1, 5, "int64")), S(A((2, 3), 0.1, 0.9, "float32"))

for _name in (
    "erf",
    "erfc",
    "sinc",
    "i0",
    "special_erfcx",
    "special_ndtr",
    "special_log_ndtr",
    "special_i0e",
    "special_i1",
    "special_i1e",
):
    row(_name, S((3, 4)), SINGLE, INTS)
for _name in ("erfinv", "logit", "special_ndtri"):
    row(_name, S(UNIT), SINGLE)
row("lgamma", S(POSITIVE), S(A((3, 4), -2.9, -2.1)), SINGLE, INTS)
row("digamma", S(POSITIVE), S(A((3, 4), -2.9, -2.1)), SINGLE, INTS)
row("polygamma", S(POSITIVE, 1), S(POSITIVE, 2), S(A((3, 4), -2.9, -2.1), 1), covers=("special_polygamma",))
row("mvlgamma", S(A((3, 4), 2, 5), 3), S(A((2, 3), 3, 9, "int64"), 2))
for _name in ("igamma", "igammac"):
    row(_name, S(A((3, 4), 0.3, 3, grad=False), POSITIVE), S(A((3, 1), 5, 50), A((4,), 5, 50)), grad=False)
row("special_zeta", S(A((3, 4), 1.5, 9), POSITIVE), S(2.0, POSITIVE), S(A((3,), 2, 9), 1.5), grad=False)
row("special_entr", S(POSITIVE), SINGLE, INTS)
for _name in ("xlogy", "special_xlog1py"):
    row(_name, S((3, 4), POSITIVE), S(1.5, POSITIVE), S((3, 4), 0.7))
for _name in ("bessel_j0", "bessel_j1", "modified_bessel_i0", "modified_bessel_i1", "spherical_bessel_j0", "airy_ai"):
    row(f"special_{_name}", S((3, 4)), S(A((3, 4), -30, 30)), SINGLE, INTS, tol=1e-5)
for _name in (
    "bessel_y0",
    "bessel_y1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
):
    row(f"special_{_name}", S(POSITIVE), S(A((3, 4), 1, 30)), SINGLE, INTS, tol=1e-5)
for _name in (
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
):
    row(f"special_{_name}", S((3, 4), A((4,), 0, 9, "int64")), S((3, 4), 3), S(0.3, A((4,), 0, 9)))
