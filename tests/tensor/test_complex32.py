"""complex32: two halves an element, computed in complex64 and rounded once. The expected values are PyTorch's."""

import io
import pickle

import numpy as np
import pytest

import torchlite as torch


@pytest.fixture
def pair(device):
    return torch.tensor([1 + 2j, 3 - 4j], device=device).chalf()


def test_the_dtype():
    d = torch.complex32
    assert torch.chalf is d
    assert (repr(d), d.itemsize, d.is_complex, d.is_floating_point) == ("torch.complex32", 4, True, False)
    assert (d.to_real(), torch.half.to_complex(), torch.bfloat16.to_complex()) == (torch.half, d, torch.complex64)
    info = torch.finfo(d)
    assert (info.max, info.bits, info.dtype, info.resolution) == (65504.0, 16, "float16", 0.001)


@pytest.mark.parametrize(
    ("other", "expected"),
    [("half", "complex32"), ("bfloat16", "complex64"), ("float32", "complex64"), ("float64", "complex128"),
     ("complex64", "complex64"), ("complex128", "complex128"), ("int64", "complex32"), ("bool", "complex32")],
)  # fmt: skip
def test_promotion(other, expected):
    assert torch.promote_types(torch.complex32, getattr(torch, other)) is getattr(torch, expected)
    assert torch.promote_types(getattr(torch, other), torch.complex32) is getattr(torch, expected)


def test_promotion_with_numbers(device):
    half = torch.ones(2, dtype=torch.half, device=device)
    assert (half * 1j).dtype is torch.complex32
    assert (half.bfloat16() * 1j).dtype is torch.complex64
    assert (half.to(torch.chalf) * 2.0).dtype is torch.complex32
    assert (half.to(torch.chalf) + torch.ones((), dtype=torch.float64, device=device)).dtype is torch.complex32
    assert (half.to(torch.chalf) + torch.ones(2, device=device)).dtype is torch.complex64


def test_creation(device):
    for made, value in [
        (torch.zeros(2, dtype=torch.chalf, device=device), 0j),
        (torch.ones(2, dtype=torch.chalf, device=device), 1 + 0j),
        (torch.full((2,), 1 - 2j, dtype=torch.chalf, device=device), 1 - 2j),
        (torch.tensor([2j, 2j], dtype=torch.chalf, device=device), 2j),
        (torch.complex(torch.ones(2, device=device).half(), torch.full((2,), 3.0, device=device).half()), 1 + 3j),
    ]:
        assert made.dtype is torch.complex32
        assert made.tolist() == [value, value]
    assert torch.empty(2, dtype=torch.chalf, device=device).element_size() == 4
    draws = torch.rand(100, dtype=torch.chalf, device=device)
    assert draws.real.dtype is torch.half
    assert 0 <= draws.imag.min() < draws.imag.max() < 1
    assert abs(float(torch.randn(1000, dtype=torch.chalf, device=device).abs().float().square().mean()) - 1) < 0.2


def test_arithmetic(pair):
    assert (pair + pair).tolist() == [2 + 4j, 6 - 8j]
    assert (pair * pair).tolist() == [-3 + 4j, -7 - 24j]
    assert (-pair * 2j).tolist() == [4 - 2j, -8 - 6j]
    assert pair.conj().tolist() == [1 - 2j, 3 + 4j]
    assert pair.abs().dtype is torch.half
    assert pair.abs().tolist() == [2.236328125, 5.0]
    assert pair.sgn().tolist() == [0.447265625 + 0.89453125j, 0.60009765625 - 0.7998046875j]
    assert (pair == pair).all()
    assert pair.var().dtype is torch.half
    for copy in (pair.mul_(2), pair.add_(1)):
        assert copy.dtype is torch.complex32
    assert pair.tolist() == [3 + 4j, 7 - 8j]


def test_views_share_memory(pair):
    assert torch.view_as_real(pair).tolist() == [[1.0, 2.0], [3.0, -4.0]]
    assert torch.view_as_complex(torch.view_as_real(pair)).dtype is torch.complex32
    assert pair.view(torch.half).tolist() == [1.0, 2.0, 3.0, -4.0]
    pair.imag.fill_(5)
    pair.real[1] = 0
    assert pair.tolist() == [1 + 5j, 5j]
    strided = pair.expand(3, 2).t()
    assert strided.real.stride() == (4 // 2, 0)


def test_moved_rearranged_converted(pair, device):
    assert torch.cat([pair, pair[1:]]).tolist() == [1 + 2j, 3 - 4j, 3 - 4j]
    assert torch.stack([pair, pair]).mT.contiguous().tolist() == [[1 + 2j] * 2, [3 - 4j] * 2]
    assert pair[[1, 0]].tolist() == [3 - 4j, 1 + 2j]
    assert pair.masked_fill(torch.tensor([True, False], device=device), 1j).tolist() == [1j, 3 - 4j]
    assert pair.cfloat().dtype is torch.complex64
    assert pair.half().tolist() == [1.0, 3.0]
    assert pair.bool().all()
    assert pair.cpu().to(device).tolist() == pair.tolist()
    assert repr(pair.cpu()) == "tensor([1.+2.j, 3.-4.j], dtype=torch.complex32)"
    assert pair.cpu().type() == "torch.ComplexHalfTensor"


def test_gradient(pair):
    pair.requires_grad_()
    (pair * pair).real.sum().backward()
    assert pair.grad.dtype is torch.complex32
    assert pair.grad.tolist() == [2 - 4j, 6 + 8j]


def test_saved_and_pickled(pair):
    file = io.BytesIO()
    torch.save({"whole": pair, "part": pair[1:]}, file)
    file.seek(0)
    found = torch.load(file)
    assert found["whole"].dtype is torch.complex32
    assert found["part"].tolist() == [3 - 4j]
    assert pickle.loads(pickle.dumps(pair)).tolist() == pair.tolist()


def test_products_and_order_are_refused(pair):
    with pytest.raises(NotImplementedError, match="\"dot\" not implemented for 'ComplexHalf'"):
        torch.dot(pair, pair)
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexHalf'"):
        torch.mm(pair[None], pair[:, None])
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexHalf'"):
        _ = pair < pair
    with pytest.raises(RuntimeError, match="Sort does not support complex dtypes"):
        pair.sort()


def test_large_and_strided(device):
    made = np.random.default_rng(0).standard_normal((2, 40, 50)).astype(np.float16)
    x = torch.complex(*(torch.from_numpy(m).to(device) for m in made))
    want = made[0].astype(np.float32) + 1j * made[1].astype(np.float32)
    got = (x.mT * x.mT).cfloat().cpu().numpy()
    np.testing.assert_allclose(got, (want.T * want.T), rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose((x[:, ::3] + 1j).cfloat().cpu().numpy(), want[:, ::3] + 1j, rtol=2e-3, atol=2e-3)


def test_convolutions_are_computed_in_complex64():
    x, w = torch.tensor([1 + 2j, 3 - 4j]).chalf().reshape(1, 1, 2), torch.tensor([1 + 2j, 3 - 4j]).chalf()[None, None]
    out = torch.nn.functional.conv1d(x, w, x[0, 0, :1])
    assert out.dtype is torch.complex32 and out.tolist() == [[[-9 - 18j]]]
    turned = torch.nn.functional.conv_transpose1d(x, w)
    assert turned.tolist() == [[[-3 + 4j, 22 + 4j, -7 - 24j]]]


CPU_REFUSES = {
    lambda h: h @ h: (NotImplementedError, '"dot" not implemented for'),
    lambda h: h**2: (NotImplementedError, '"pow" not implemented for'),
    lambda h: torch.lerp(h, h, 0.5): (NotImplementedError, '"lerp_kernel_scalar" not implemented for'),
    lambda h: torch.baddbmm(h, h.expand(1, 2, 2), h.expand(1, 2, 2)): (
        NotImplementedError,
        '"baddbmm" not implemented',
    ),
    lambda h: torch.linalg.svd(h.expand(2, 2)): (NotImplementedError, '"linalg_svd_cpu" not implemented for'),
    lambda h: torch.linalg.eig(h.expand(2, 2)): (NotImplementedError, '"linalg_eig_out_cpu" not implemented for'),
    lambda h: torch.linalg.solve(h.expand(2, 2), h): (NotImplementedError, '"lu_cpu" not implemented for'),
    lambda h: torch.linalg.ldl_factor(h.expand(2, 2)): (NotImplementedError, '"ldl_factor_kernel_cpu" not implemented'),
    lambda h: torch.linalg.inv(h.expand(2, 2)): (RuntimeError, "linalg.inv: Low precision dtypes not supported"),
    lambda h: torch.linalg.matrix_norm(h.expand(2, 2), 2): (RuntimeError, "linalg.matrix_norm: Low precision dtypes"),
    lambda h: torch.linalg.matrix_rank(h.expand(2, 2)): (RuntimeError, "doesn't handle types other than float and dou"),
    lambda h: torch.linalg.lstsq(h.expand(2, 2), h[:, None]): (RuntimeError, "doesn't handle types other than float"),
    lambda h: torch.fft.fft(h): (RuntimeError, "MKL FFT doesn't support tensors of type: Half"),
    lambda h: h.argmax(): (RuntimeError, r"argmax\(\): does not support complex input"),
    lambda h: h.min(0): (RuntimeError, r"min\(\): does not support complex input"),
    lambda h: h.max(): (NotImplementedError, "\"max_all\" not implemented for 'ComplexHalf'"),
    lambda h: h.aminmax(): (NotImplementedError, "\"aminmax_cpu\" not implemented for 'ComplexHalf'"),
}


@pytest.mark.parametrize("call", CPU_REFUSES)
def test_unsupported_ops_raise_on_the_cpu(call):
    kind, words = CPU_REFUSES[call]
    with pytest.raises(kind, match=words):
        call(torch.tensor([1 + 2j, 3 - 4j]).chalf())


def test_argmax_of_unordered_values(device):
    x = torch.ones(2, 2, device=device)
    for kind, one in (("complex", x.cfloat()), ("bool", x.bool())):
        for name in ("argmax", "argmin"):
            with pytest.raises(RuntimeError, match=rf"{name}\(\): does not support {kind} input"):
                getattr(one, name)(0)


def test_truth_without_a_warning():
    h = torch.tensor([0j, 3 - 4j]).chalf()
    assert h.any() and not h.all()
