"""Make `backends/torchlite_backends/array/special_coefficients.py`: the coefficients of the special-function kernels.

Every table is fitted here, in 60-digit arithmetic, to the function itself as mpmath computes it; none is copied from a
library. Needs mpmath. Run from the project's root: `python tools/make_special_coefficients.py >
backends/torchlite_backends/array/special_coefficients.py`.

Every table is a polynomial, highest power first: of t in [-1, 1] where the function was expanded in Chebyshev
polynomials (all these expansions converge fast enough for their power form to lose nothing), else of the variable
itself, `_P` over `_Q`.
"""

import mpmath as mp

mp.mp.dps = 60


def chebyshev(f, size=64, tolerance="1e-17"):
    """The Chebyshev expansion of f on [-1, 1], cut where it no longer matters in double precision, as a polynomial in
    t.
    """
    nodes = [mp.cos(mp.pi * (2 * j + 1) / (2 * size)) for j in range(size)]
    values = [f(t) for t in nodes]
    coefficients = []
    for k in range(size):
        total = mp.fsum(v * mp.cos(mp.pi * k * (2 * j + 1) / (2 * size)) for j, v in enumerate(values))
        coefficients.append(total * (1 if k == 0 else 2) / size)
    limit = mp.mpf(tolerance) * max(abs(c) for c in coefficients)
    while abs(coefficients[-1]) < limit:
        coefficients.pop()
    return powers(coefficients)


def powers(coefficients):
    """sum c[k] T_k(t) as a polynomial, highest power first."""
    before, now = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    total = [mp.mpf(0)] * len(coefficients)
    for c in coefficients:
        for power, value in enumerate(before):
            total[power] += c * value
        following = [mp.mpf(0), *(2 * v for v in now)]
        for power, value in enumerate(before):
            following[power] -= value
        before, now = now, following
    return total[::-1]


def rational(f, low, high, above, below):
    """P/Q of degrees `above` and `below` that meets f at the Chebyshev nodes of [low, high] (close to the best uniform
    approximation).
    """
    count = above + below + 1
    low, high = mp.mpf(low), mp.mpf(high)
    nodes = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * j + 1) / (2 * count)) for j in range(count)]
    system, right = mp.matrix(count, count), mp.matrix(count, 1)
    for row, x in enumerate(nodes):
        value = f(x)
        for power in range(above + 1):
            system[row, power] = x**power
        for power in range(1, below + 1):
            system[row, above + power] = -value * x**power
        right[row] = value
    solution = mp.lu_solve(system, right)
    numerator = [solution[i] for i in range(above + 1)]
    denominator = [mp.mpf(1)] + [solution[above + i] for i in range(1, below + 1)]
    return numerator[::-1], denominator[::-1]


def on(low, high, f):
    """f, a function of x in [low, high], as a function of t in [-1, 1]."""
    low, high = mp.mpf(low), mp.mpf(high)
    return lambda t: f((low + high) / 2 + (high - low) / 2 * t)


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def erfcx_scaled(t):
    x = 4 * (1 + t) / (1 - t)
    return (x + 4) * erfcx(x)


def erf_over_x(u):
    return mp.erf(mp.sqrt(u)) / mp.sqrt(u)


def lgamma_reduced(x):
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def normal_quantile_centre(u):
    q = mp.sqrt(u)
    return mp.sqrt(2) * mp.erfinv(2 * q) / q


def normal_quantile_tail(r):
    """-ndtri(exp(-r*r)), solved from log(erfc) because erfinv has no digits left there."""
    target = -r * r
    start = mp.sqrt(2 * r * r) * mp.mpf("0.93")
    return mp.findroot(lambda z: mp.log(mp.erfc(z / mp.sqrt(2)) / 2) - target, start)


def hankel(order, part):
    """P or Q of Hankel's expansion of J and Y as a function of u = (8/x)**2; Q is divided by 8/x."""

    def f(u):
        x = 8 / mp.sqrt(u)
        angle = x - mp.pi / 4 - order * mp.pi / 2
        j, y, scale = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
        if part == "P":
            return scale * (j * mp.cos(angle) + y * mp.sin(angle))
        return scale * (y * mp.cos(angle) - j * mp.sin(angle)) * x / 8

    return f


def y0_regular(u):
    x = mp.sqrt(u)
    return mp.bessely(0, x) - 2 / mp.pi * mp.log(x / 2) * mp.besselj(0, x)


def y1_regular(u):
    x = mp.sqrt(u)
    return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x / 2) * mp.besselj(1, x) - 1 / x)) / x


def k0_regular(u):
    x = mp.sqrt(u)
    return mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)


def k1_regular(u):
    x = mp.sqrt(u)
    return x * (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x))


def scaled(function, order, sign):
    """sqrt(x) * exp(sign * x) * function(order, x), of w = 1/x."""
    return lambda w: mp.exp(sign / w) * function(order, 1 / w) / mp.sqrt(w)


def airy_oscillating(part):
    """P or Q of the phase form of Ai(-x), as a function of w = 1/zeta**2, zeta = 2/3 x**1.5; Q is
    multiplied by zeta.
    """

    def f(w):
        zeta = 1 / mp.sqrt(w)
        x = (3 * zeta / 2) ** (mp.mpf(2) / 3)
        angle, scale = zeta - mp.pi / 4, mp.sqrt(mp.pi) * x ** mp.mpf("0.25")
        ai, bi = mp.airyai(-x), mp.airybi(-x)
        if part == "P":
            return scale * (ai * mp.cos(angle) - bi * mp.sin(angle))
        return scale * (ai * mp.sin(angle) + bi * mp.cos(angle)) * zeta

    return f


def airy_decaying(w):
    zeta = 1 / w
    x = (3 * zeta / 2) ** (mp.mpf(2) / 3)
    return mp.exp(zeta) * mp.airyai(x) * 2 * mp.sqrt(mp.pi) * x ** mp.mpf("0.25")


def temme(orders=4, terms=16):
    """Taylor coefficients in eta of Temme's c_0 .. c_3 for the incomplete gamma functions.

    eta**2/2 = mu - log(1 + mu). c_0 = 1/mu - 1/eta; c_k = (d c_{k-1}/d eta)/eta + g_k/mu-free part, here by series:
    with lambda = 1 + mu, c_k = [ (1/eta) d/deta c_{k-1} ] + gamma_k/mu, where gamma_k are Stirling's coefficients of
    1/Gamma* with sign; the pole cancels.
    """
    length = terms + 2 * orders + 4
    # mu as a series in eta: from eta d eta = mu/(1+mu) d mu, so mu * mu' = eta * (1 + mu)
    mu = [mp.mpf(0), mp.mpf(1)]
    for n in range(2, length + 2):
        known = mp.fsum(mu[i] * (n + 1 - i) * mu[n + 1 - i] for i in range(2, n))
        # coefficient of eta**n in mu mu' is known + mu_n (n + 1); that of eta (1 + mu) is mu_{n-1}
        mu.append((mu[n - 1] - known) / (n + 1))
    # 1/mu = 1/eta * 1/(1 + mu_2 eta + ...)
    tail, inverse = mu[1:], [mp.mpf(1)]
    for n in range(1, length):
        inverse.append(-mp.fsum(tail[i] * inverse[n - i] for i in range(1, n + 1)))
    current = inverse[1:]  # 1/mu - 1/eta
    # Stirling's series Gamma*(a) = sum g_k a**-k
    bernoulli = [mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) for k in range(1, 8)]
    stirling = [mp.mpf(1)]
    logs = [mp.mpf(0)] * 12
    for k, value in enumerate(bernoulli, 1):
        if 2 * k - 1 < 12:
            logs[2 * k - 1] = value
    for n in range(1, 10):
        stirling.append(mp.fsum(i * logs[i] * stirling[n - i] for i in range(1, n + 1)) / n)
    rows = [current[:terms]]
    for k in range(1, orders):
        derivative = [i * current[i] for i in range(1, len(current))]
        # divided by eta: the coefficient of 1/eta (derivative[0]) cancels against (-1)**k g_k / mu
        weight = (-1) ** k * stirling[k]
        assert abs(derivative[0] + weight) < mp.mpf("1e-30"), (k, derivative[0], weight)
        limit = min(len(derivative) - 1, len(inverse) - 1)
        current = [derivative[i + 1] + weight * inverse[i + 1] for i in range(limit)]
        rows.append(current[:terms])
    return rows


def numbers(values):
    return "(" + ", ".join(repr(float(v)) for v in values) + ",)"


def wrap(text, width=148):
    lines, line = [], "   "
    for word in text.split(" "):
        if len(line) + len(word) + 1 > width:
            lines.append(line)
            line = "   "
        line += " " + word
    return "\n".join([*lines, line])


def emit(name, values):
    print(f"{name} = (\n{wrap(numbers(values)[1:-1])}\n)")


def emit_rational(name, fit):
    emit(name + "_P", fit[0])
    emit(name + "_Q", fit[1])


def main():
    print(
        '"""Coefficients of the special-function kernels. Generated by tools/make_special_coefficients.py; do not '
        'edit."""\n'
    )
    tiny = mp.mpf("1e-30")
    emit_rational("ERF_FLOAT32", rational(erf_over_x, tiny, 16, 6, 5))
    emit("ERF_SMALL", list(rational(erf_over_x, tiny, 1, 12, 0)[0]))
    emit("ERFCX", chebyshev(erfcx_scaled, 80))
    emit_rational("LGAMMA", rational(lgamma_reduced, mp.mpf("0.75001"), mp.mpf("2.50001"), 8, 7))
    emit_rational("QUANTILE_CENTRE", rational(normal_quantile_centre, tiny, mp.mpf("0.180625"), 7, 7))
    emit_rational("QUANTILE_TAIL", rational(normal_quantile_tail, mp.mpf("1.58"), 5, 8, 7))
    emit_rational("QUANTILE_FAR", rational(normal_quantile_tail, 5, 28, 8, 7))
    emit("I0E_SMALL", chebyshev(on(0, 8, lambda x: mp.exp(-x) * mp.besseli(0, x))))
    emit("I0E_LARGE", chebyshev(on(0, mp.mpf(1) / 8, scaled(mp.besseli, 0, -1))))
    emit("I1E_SMALL", chebyshev(on(0, 8, lambda x: mp.exp(-x) * mp.besseli(1, x) / x)))
    emit("I1E_LARGE", chebyshev(on(0, mp.mpf(1) / 8, scaled(mp.besseli, 1, -1))))
    emit("K0_REGULAR", chebyshev(on(0, 4, k0_regular), 24))
    emit("K1_REGULAR", chebyshev(on(0, 4, k1_regular), 24))
    emit("K0_LARGE", chebyshev(on(0, mp.mpf(1) / 2, scaled(mp.besselk, 0, 1))))
    emit("K1_LARGE", chebyshev(on(0, mp.mpf(1) / 2, scaled(mp.besselk, 1, 1))))
    emit("J0_SMALL", chebyshev(on(0, 64, lambda u: mp.besselj(0, mp.sqrt(u))), 40))
    emit("J1_SMALL", chebyshev(on(0, 64, lambda u: mp.besselj(1, mp.sqrt(u)) / mp.sqrt(u)), 40))
    emit("Y0_REGULAR", chebyshev(on(0, 64, y0_regular), 40))
    emit("Y1_REGULAR", chebyshev(on(0, 64, y1_regular), 40))
    for order in (0, 1):
        for part in "PQ":
            emit(f"HANKEL{order}_{part}", chebyshev(on(0, 1, hankel(order, part)), 48))
    emit("AIRY_CENTRE", chebyshev(on(-4, 3, mp.airyai), 56))
    low = 1 / (mp.mpf(2) / 3 * mp.mpf(4) ** mp.mpf("1.5")) ** 2
    emit("AIRY_P", chebyshev(on(0, low, airy_oscillating("P")), 48))
    emit("AIRY_Q", chebyshev(on(0, low, airy_oscillating("Q")), 48))
    emit("AIRY_DECAYING", chebyshev(on(0, 1 / (mp.mpf(2) / 3 * mp.mpf(3) ** mp.mpf("1.5")), airy_decaying), 48))
    print("TEMME = (")
    for row in temme():
        lines = wrap(numbers(row[::-1])[1:-1], 140).split("\n")
        print("    (\n" + "\n".join("    " + line for line in lines) + "\n    ),")
    print(")")


if __name__ == "__main__":
    main()
