"""Values at infinity and beside it, whose limits are known; PyTorch has NaN for some."""

from __future__ import annotations

import math

import pytest

import torchlite as torch

inf, nan = math.inf, math.nan


def evaluated(function, device, *values, dtype=torch.float32):
    return function(*(torch.tensor(v, dtype=dtype, device=device) for v in values)).tolist()


def same(found, wanted):
    torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted), equal_nan=True)


@pytest.mark.parametrize(
    ("s", "q", "wanted"),
    [
        (2.0, inf, 0.0),
        (1.5, inf, 0.0),
        (inf, 2.0, 0.0),
        (inf, 1.0, 1.0),
        (inf, 0.5, inf),
        (inf, inf, 0.0),
        (1e20, 2.0, 0.0),
        (1e20, 1.0, 1.0),
        (2.0, 0.0, inf),
        (1.0, inf, inf),
        (0.5, inf, nan),
        (nan, inf, nan),
        (inf, nan, nan),
        (2.0, nan, nan),
    ],
)
def test_zeta(s, q, wanted, device):
    same(evaluated(torch.special.zeta, device, [s], [q]), [wanted])


@pytest.mark.parametrize("n", [1, 2, 3, 30])
def test_polygamma_of_infinity(n, device):
    x = torch.tensor([inf, 2.0], device=device, requires_grad=True)
    out = torch.polygamma(n, x)
    assert out[0].item() == 0
    out.sum().backward()
    assert x.grad[0].item() == 0 and x.grad[1].item() != 0


LOGARITHMS = [
    ([complex(inf, 1), complex(inf, 1)], [complex(inf, 1), complex(inf, 1)]),
    ([complex(inf, 1), complex(inf, 2)], [complex(inf, 1), complex(inf, nan)]),
    ([complex(inf, 2), complex(1, 1)], [complex(inf, 2), complex(inf, 2)]),
    ([complex(1, 1), complex(inf, 2), 2], [complex(1, 1), complex(inf, 2), complex(inf, 2)]),
    ([complex(-inf, 2), complex(1, 2)], [complex(-inf, 0), complex(1, 2)]),
    ([complex(-inf, 1), complex(-inf, 2), 0], [complex(-inf, 0), complex(-inf, 0), 0]),
    ([complex(inf, inf), 1], [complex(inf, inf), complex(inf, inf)]),
    ([complex(1, nan), 1], [complex(nan, nan), complex(nan, nan)]),
    ([1, complex(nan, 0), complex(inf, 0)], [1, complex(nan, nan), complex(nan, nan)]),
    ([complex(-inf, nan), 1], [complex(nan, nan), complex(nan, nan)]),
]


@pytest.mark.parametrize("values, wanted", LOGARITHMS)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_logcumsumexp(values, wanted, dtype, device):
    x = torch.tensor(values, dtype=dtype, device=device)
    for dim, given in ((0, x), (1, x[None].expand(3, -1)), (0, x[:, None].expand(-1, 20))):
        found = torch.logcumsumexp(given, dim).cpu()
        found = found if found.ndim == 1 else found[0] if dim else found[:, 0]
        wanted_parts = torch.view_as_real(torch.tensor(wanted, dtype=dtype))
        torch.testing.assert_close(torch.view_as_real(found), wanted_parts, equal_nan=True)


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (complex(inf, 1), complex(inf, 1), complex(inf, 1)),
        (complex(inf, 1), complex(inf, 2), complex(inf, nan)),
        (complex(-inf, 1), complex(-inf, 2), complex(-inf, 2)),
        (complex(-inf, 1), complex(1, 2), complex(1, 2)),
        (complex(inf, 1), complex(-inf, 2), complex(inf, 1)),
        (complex(1, nan), complex(1, 0), complex(nan, nan)),
    ],
)
def test_complex_logaddexp(a, b, wanted, device):
    found = evaluated(torch.logaddexp, device, [a], [b], dtype=torch.complex64)
    same([[found[0].real, found[0].imag]], [[wanted.real, wanted.imag]])


def test_powers_of_ten(device):
    exponents = torch.arange(-30, 39, dtype=torch.float64)
    x = (10.0**exponents).to(torch.float32)
    for size in (1, 7, 69):
        found = torch.log10(x[-size:].to(device)).cpu()
        torch.testing.assert_close(found, exponents[-size:].to(torch.float32), rtol=1.2e-7, atol=0)
    assert torch.log10(torch.tensor([1000.0, 1e6, 1e10], device=device)).tolist() == [3, 6, 10]


def test_angles_are_rounded_once(rng):
    x, y = (torch.tensor(rng.standard_normal(3000)).to(torch.float32) for _ in range(2))
    exact = torch.atan2(y.double(), x.double()).to(torch.float32)
    z = torch.complex(x, y)
    assert torch.atan2(y, x).equal(exact) and z.angle().equal(exact)
    assert z.abs().equal(z.to(torch.complex128).abs().to(torch.float32))
    assert torch.angle(torch.tensor(1 + 1j)).item() == torch.tensor(math.pi / 4).item()
