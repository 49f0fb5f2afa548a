"""Linear algebra beyond the op table: large blocks, singular matrices, several devices' worth of
layouts, identities.
"""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch


def random(rng, *shape, device, dtype=torch.float64):
    data = rng.standard_normal(shape)
    if dtype.is_complex:
        data = data + 1j * rng.standard_normal(shape)
    return torch.from_numpy(data).to(dtype).to(device)


def close(a, b, tol=1e-9):
    np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().cpu().numpy(), rtol=tol, atol=tol)


@pytest.mark.parametrize("shape", [(100, 100), (2, 90, 40), (3, 40, 90), (0, 3, 3), (2, 0, 3)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_lu_over_several_blocks(shape, dtype, device, rng):
    a = random(rng, *shape, device=device, dtype=dtype)
    p, lower, upper = torch.linalg.lu(a)
    close(p @ lower @ upper, a)
    assert bool((lower.abs() <= 1.5).all())
    packed, pivots = torch.linalg.lu_factor(a)
    assert pivots.dtype is torch.int32 and packed.shape == a.shape
    close(torch.lu_unpack(packed, pivots).U, upper)


@pytest.mark.parametrize("n", [1, 31, 33, 100])
@pytest.mark.parametrize("upper", [False, True])
def test_triangular_solve_over_several_blocks(n, upper, device, rng):
    a = random(rng, 2, n, n, device=device) / n + 2 * torch.eye(n, dtype=torch.float64, device=device)
    b = random(rng, n, 3, device=device)
    x = torch.linalg.solve_triangular(a, b, upper=upper)
    close((a.triu() if upper else a.tril()) @ x, b.expand(2, n, 3))


def test_triangular_solve_of_a_singular_matrix_is_infinite(device):
    x = torch.linalg.solve_triangular(
        torch.tensor([[0.0]], device=device), torch.tensor([[1.0]], device=device), upper=True
    )
    assert x.item() == float("inf")


def test_info_tells_which_matrix_is_singular(device):
    a = torch.stack([torch.eye(3), torch.zeros(3, 3), torch.diag(torch.tensor([1.0, 0.0, 1.0]))]).to(device)
    assert torch.linalg.inv_ex(a).info.tolist() == [0, 1, 2]
    assert torch.linalg.lu_factor_ex(a).info.tolist() == [0, 1, 2]
    assert torch.linalg.solve_ex(a, torch.ones(3, 2, device=device)).info.tolist() == [0, 1, 2]
    assert torch.linalg.cholesky_ex(a).info.tolist() == [0, 1, 2]
    close(torch.linalg.inv_ex(a).inverse[0], torch.eye(3))
    with pytest.raises(torch.linalg.LinAlgError, match=r"\(Batch element 1\): The diagonal element 1 is zero"):
        torch.linalg.inv(a)
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)


def test_gradient_of_the_determinant_of_a_singular_matrix(device):
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, device=device, requires_grad=True)
    torch.linalg.det(a).backward()
    close(a.grad, torch.tensor([[4.0, -2.0], [-2.0, 1.0]]))


def test_norm_gradients_at_zero_are_zero(device):
    for call in (
        torch.linalg.vector_norm,
        torch.linalg.norm,
        lambda x: torch.linalg.vector_norm(x, 3),
        lambda x: torch.cdist(x, x).sum(),
    ):
        x = torch.zeros(2, 2, dtype=torch.float64, device=device, requires_grad=True)
        call(x).backward()
        close(x.grad, torch.zeros(2, 2))


COUNTS = {
    "vector_norm": lambda x: torch.linalg.vector_norm(x, 0),
    "norm of rows": lambda x: torch.linalg.norm(x, 0, dim=1),
    "Tensor.norm": lambda x: x.norm(0, 1, True),
    "of a number": lambda x: torch.linalg.vector_norm(x[0, 0], 0),
    "of no dimension": lambda x: torch.norm(x[0, 0], 0.0, dim=()),
    "dist": lambda x: torch.dist(x, torch.ones_like(x), 0),
    "pairwise_distance": lambda x: torch.nn.functional.pairwise_distance(x, torch.ones_like(x), p=0.0),
    "foreach": lambda x: torch._foreach_norm([x], 0)[0],
}


@pytest.mark.parametrize("call", COUNTS.values(), ids=COUNTS)
def test_a_norm_of_order_zero_counts_and_has_no_gradient(device, call):
    x = torch.tensor([[1.0, 0.0], [-2.0, 3.0]], device=device, requires_grad=True)
    norm = call(x)
    assert norm.requires_grad and norm.grad_fn is not None
    norm.sum().backward(retain_graph=True)
    assert x.grad is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(norm.sum(), x, retain_graph=True)
    assert torch.autograd.grad(norm.sum(), x, allow_unused=True, retain_graph=True) == (None,)
    (norm.sum() + (3 * x).sum()).backward()
    close(x.grad, torch.full((2, 2), 3.0))
    close(torch.func.grad(lambda x: call(x).sum())(x.detach()), torch.zeros(2, 2))
    assert torch.func.jvp(call, (x.detach(),), (torch.ones_like(x),))[1].abs().sum() == 0


@pytest.mark.parametrize("ord", [0, 0.5, 1, 2, 3, -1, float("inf"), -float("inf")])
def test_the_norm_of_a_number_is_its_size(device, ord):
    numbers = torch.tensor([-2.0, 0.0, 3.0, float("inf")], device=device)
    sizes = (numbers != 0).float() if ord == 0 else numbers.abs()
    norm = lambda x: torch.linalg.vector_norm(x, ord)
    x = numbers[0].clone().requires_grad_()
    assert norm(x).grad_fn.name() == "LinalgVectorNormBackward0"
    assert [norm(number).item() for number in numbers] == sizes.tolist()
    assert torch.func.vmap(norm)(numbers).tolist() == sizes.tolist()
    assert torch.func.vmap(torch.func.grad(norm))(numbers[:3]).tolist() == ([-1, 0, 1] if ord else [0, 0, 0])
    assert norm(torch.tensor(3.0 + 4.0j, device=device)) == (5 if ord else 1)


def test_factors_multiply_to_the_matrix(device, rng):
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        a, tol = random(rng, 2, 5, 4, device=device, dtype=dtype), 1e-4 if dtype.to_real() is torch.float32 else 1e-9
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        assert u.dtype is dtype and s.dtype is dtype.to_real()
        close((u * s.unsqueeze(-2)) @ vh, a, tol)
        q, r = torch.linalg.qr(a)
        close(q @ r, a, tol)
        packed, tau = torch.geqrf(a)
        close(torch.linalg.householder_product(packed, tau) @ packed[..., :4, :].triu(), a, tol)
        close(
            torch.ormqr(packed, tau, r.new_zeros((2, 5, 1)) + 1),
            torch.linalg.qr(a, "complete").Q.new_zeros((2, 5, 1)) + _full_q(packed, tau).sum(-1, True),
            tol,
        )
        h = a.mH @ a
        values, vectors = torch.linalg.eigh(h)
        close((vectors * values.unsqueeze(-2)) @ vectors.mH, h, 10 * tol)
        values, vectors = torch.linalg.eig(h)
        close((vectors * values.unsqueeze(-2)) @ torch.linalg.inv(vectors), h.to(values.dtype), 100 * tol)
        low = torch.linalg.cholesky(h + torch.eye(4, device=device))
        close(low @ low.mH, h + torch.eye(4, device=device), 10 * tol)
        packed, pivots = torch.linalg.ldl_factor(h, hermitian=True)
        b = random(rng, 2, 4, 3, device=device, dtype=dtype)
        close(h @ torch.linalg.ldl_solve(packed, pivots, b, hermitian=True), b, 1000 * tol)


@pytest.mark.parametrize(
    ("shape", "columns"), [((0, 0), 2), ((2, 0, 0), 2), ((0, 3, 3), 2), ((3, 3), 0), ((2, 0, 3, 3), 1)]
)
def test_ldl_solve_of_matrices_without_elements(shape, columns, device):
    packed = torch.eye(shape[-1], device=device).expand(shape).contiguous()
    pivots = torch.arange(1, shape[-1] + 1, dtype=torch.int32, device=device).expand(shape[:-1]).contiguous()
    solved = torch.linalg.ldl_solve(packed, pivots, torch.ones(*shape[:-1], columns, device=device))
    assert solved.shape == (*shape[:-1], columns)
    assert solved.eq(1).all()


def _full_q(packed, tau):
    """The m x m product of the reflectors."""
    m = packed.shape[-2]
    result = torch.eye(m, dtype=packed.dtype, device=packed.device)
    for i in range(tau.shape[-1] - 1, -1, -1):
        v = packed[..., i : i + 1].tril(-i)
        v = torch.cat([v[..., :i, :] * 0, v[..., :1, :] * 0 + 1, packed[..., i + 1 :, i : i + 1]], -2)
        result = result - tau[..., i, None, None] * (v @ v.mH @ result)
    return result


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_matrix_exp_of_a_rotation(scale, device):
    angle = torch.tensor(scale, dtype=torch.float64, device=device)
    zero = angle * 0
    a = torch.stack([torch.stack([zero, -angle]), torch.stack([angle, zero])])
    close(
        torch.matrix_exp(a),
        torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])]),
        1e-8,
    )


def test_products_of_half_precision_are_summed_in_single(device):
    a = torch.full((1, 4096), 1.0, dtype=torch.float16, device=device)
    assert torch.mm(a, a.mT).item() == 4096.0
    assert (a @ a.mT).dtype is torch.float16
    b = torch.full((1, 1024), 1.0, dtype=torch.bfloat16, device=device)
    assert torch.addmm(b[:, :1], b, b.mT).item() in (1024.0, 1028.0)


def test_addmm_does_not_read_its_input_when_beta_is_zero(device):
    nan = torch.full((2, 2), float("nan"), device=device)
    one = torch.eye(2, device=device)
    close(torch.addmm(nan, one, one, beta=0), one)
    close(torch.baddbmm(nan, one[None], one[None], beta=0)[0], one)
    x = one.clone()
    x.addmm_(one, one, beta=0.5)
    close(x, 1.5 * one)


def test_multi_dot_multiplies_in_the_cheapest_order(device, rng):
    shapes = [(10, 100), (100, 5), (5, 50), (50, 1)]
    mats = [random(rng, *shape, device=device) for shape in shapes]
    close(torch.linalg.multi_dot(mats), mats[0] @ mats[1] @ mats[2] @ mats[3], 1e-8)


def test_einsum_of_a_single_operand_is_a_view(device):
    x = torch.zeros(2, 3, device=device)
    torch.einsum("ij->ji", x)[0, 0] = 1.0
    assert x[0, 0].item() == 1.0
    assert torch.einsum("ij->ij", x) is not x


def test_einsum_agrees_with_numpy(device, rng):
    for equation, *shapes in [
        ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
        ("abc,cd,de,a->eb", (2, 3, 4), (4, 5), (5, 2), (2,)),
        ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
        ("iij->ji", (3, 3, 2)),
        ("a...,...->a...", (2, 3), (3,)),
        ("ab,cd->", (2, 3), (4, 1)),
        (" i j , j -> i ", (2, 3), (3,)),
    ]:
        arrays = [rng.standard_normal(shape) for shape in shapes]
        result = torch.einsum(equation, *(torch.from_numpy(a).to(device) for a in arrays))
        np.testing.assert_allclose(
            result.cpu().numpy(), np.einsum(equation.replace(" ", ""), *arrays), rtol=1e-9, atol=1e-9
        )
    x, y = torch.ones(2, 3, device=device), torch.ones(3, 4, device=device)
    assert torch.einsum(x, [0, 1], y, [1, 2], [2, 0]).shape == (4, 2)
    assert torch.einsum("ij,jk", [x, y]).shape == (2, 4)


@pytest.mark.parametrize("equation", ["ijk,lkj->il", "ij,jk->ik", "i,i->", "ij,ij->i"])
def test_einsum_over_dimensions_of_size_one_promotes_dtypes(equation, device):
    terms = equation.partition("->")[0].split(",")
    a = torch.full([1] * len(terms[0]), 2, dtype=torch.int8, device=device)
    b = torch.full([1] * len(terms[1]), 1.5, device=device)
    out = torch.einsum(equation, a, b)
    assert out.dtype is torch.float32 and out.shape == (1,) * len(equation.partition("->")[2])
    assert out.sum() == 3
    with pytest.raises(RuntimeError, match="expected scalar type Char but found Float"):
        torch.einsum("ij,jk->ik", a.reshape(1, 1).expand(2, 2), b.reshape(1, 1).expand(2, 2))


def test_einsum_with_some_summed_dimensions_of_size_one(device, rng):
    a, b = rng.standard_normal((2, 3, 1)), rng.standard_normal((4, 1, 3))
    out = torch.einsum("ijk,lkj->il", torch.tensor(a, device=device), torch.tensor(b, device=device))
    np.testing.assert_allclose(out.cpu().numpy(), np.einsum("ijk,lkj->il", a, b), rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_cdist_in_half_precision_where_pytorch_multiplies_matrices(device, dtype):
    x = torch.linspace(-2, 2, 150, device=device).reshape(30, 5).to(dtype).requires_grad_()
    y = torch.linspace(3, 1, 20, device=device).reshape(4, 5).to(dtype)
    got = torch.cdist(x, y)
    close(got.float(), torch.cdist(x.float(), y.float()), 2e-2)
    got.sum().backward()
    assert got.dtype is dtype and x.grad.dtype is dtype and x.grad.isfinite().all()
    torch.cdist(y, y, compute_mode="use_mm_for_euclid_dist")
    for refused in (lambda: torch.cdist(y, y), lambda: torch.cdist(x, y, 1.0)):
        with pytest.raises(NotImplementedError, match='"cdist" not implemented for'):
            refused()


def test_cdist_of_many_rows_agrees_with_few(device, rng):
    x, y = random(rng, 60, 7, device=device), random(rng, 40, 7, device=device)
    close(torch.cdist(x, y), (x[:, None] - y).pow(2).sum(-1).sqrt(), 1e-7)
    close(torch.cdist(x, x).diagonal(), torch.zeros(60), 1e-6)
    close(torch.pdist(x), torch.cdist(x, x)[tuple(torch.triu_indices(60, 60, 1))], 1e-6)


def test_rank_and_condition_of_a_deficient_matrix(device):
    a = torch.ones(3, 3, dtype=torch.float64, device=device)
    assert torch.linalg.matrix_rank(a).item() == 1
    assert torch.linalg.matrix_rank(a + torch.eye(3, device=device) * 1e-3, atol=1e-2).item() == 1
    assert torch.linalg.cond(a, 1).item() == float("inf")
    close(torch.linalg.pinv(a), a / 9)


def test_out_arguments(device):
    a, out = torch.eye(2, device=device) * 2, torch.empty(0, device=device)
    assert torch.linalg.inv(a, out=out) is out and out.tolist() == [[0.5, 0.0], [0.0, 0.5]]
    q, r = torch.empty(0, device=device), torch.empty(0, device=device)
    torch.linalg.qr(a, out=(q, r))
    close(q @ r, a)
    torch.mm(a, a, out=out)
    assert out.tolist() == [[4.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("function", [torch.linalg.eigh, torch.linalg.eigvalsh])
def test_eigh_reads_one_triangle_of_each_matrix(function, value, device):
    def eigenvalues(matrices, triangle):
        result = function(matrices, triangle)
        return result if isinstance(result, torch.Tensor) else result[0]

    matrices = torch.eye(3, device=device).repeat(2, 1, 1)
    matrices[1, 2, 0] = value  # below the diagonal of the second matrix
    upper = eigenvalues(matrices, "U")
    assert torch.equal(upper, torch.ones(2, 3, device=device))
    lower = eigenvalues(matrices, "L")
    assert torch.equal(lower[0], torch.ones(3, device=device))
    assert lower[1].isnan().all()


def test_svd_names_the_matrix_that_is_not_finite(device):
    matrices = torch.eye(3, device=device).repeat(3, 1, 1)
    matrices[1, 0, 2] = float("nan")
    for function in (torch.linalg.svd, torch.linalg.svdvals, torch.linalg.pinv):
        with pytest.raises(torch.linalg.LinAlgError, match=r"linalg.svd: \(Batch element 1\): The algorithm failed"):
            function(matrices)


def test_cosine_similarity_refuses_a_negative_eps(device):
    x = torch.ones(2, 3, device=device)
    with pytest.raises(RuntimeError, match="eps must be non-negative, got: -1e-08"):
        torch.nn.functional.cosine_similarity(x, x, eps=-1e-8)


@pytest.mark.parametrize("scale", [1e-19, 1.0, 1e18])
def test_gradient_of_singular_vectors_of_huge_and_tiny_matrices(scale, device):
    a = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]], device=device)

    def first_vector(a):
        return torch.linalg.svd(a).U[:, 0].abs().sum()

    expected = torch.func.grad(first_vector)(a.double())
    close(torch.func.grad(first_vector)(a * scale) * scale, expected, 1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_second_derivatives_of_the_determinant_of_singular_matrices(n, dtype, device):
    """They are polynomials: of the zero matrix, of one with equal rows, of a regular one."""
    generator = torch.Generator().manual_seed(n)
    a = torch.randn(3, n, n, dtype=dtype, generator=generator).to(device)
    a[0] = 0
    a[1, -1] = 2 * a[1, 0] if n > 1 else 0
    a.requires_grad_()
    assert torch.autograd.gradgradcheck(torch.linalg.det, a)


def test_gradient_of_the_determinant_on_the_meta_device():
    a = torch.empty(2, 3, 3, device="meta", requires_grad=True)
    (found,) = torch.autograd.grad(torch.linalg.det(a).sum(), a, create_graph=True)
    assert found.shape == a.shape and found.requires_grad


def test_gradient_of_a_nearly_singular_determinant_under_create_graph(device):
    a = torch.tensor([[1.0, 2.0], [3.0, 6.0 + 1e-6]], dtype=torch.float64, device=device, requires_grad=True)
    (found,) = torch.autograd.grad(torch.linalg.det(a), a, create_graph=True)
    close(found, torch.tensor([[6.0 + 1e-6, -3.0], [-2.0, 1.0]], dtype=torch.float64))
