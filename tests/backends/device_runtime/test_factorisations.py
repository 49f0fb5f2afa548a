"""Factorisations on OpenCL devices: sizes over several blocks, batches, one work-item or a group for a matrix,
deficient and bad matrices.
"""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch

KINDS = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SHAPES = [(1, 1), (2, 3, 3), (40, 40), (3, 33, 33), (2, 1, 7, 40), (70, 33), (33, 70)]
SQUARE = [s for s in SHAPES if s[-1] == s[-2]]


pytestmark = pytest.mark.usefixtures("opencl")


WAYS = [(kind, 0) for kind in KINDS] + [(torch.float32, 16), (torch.complex128, 16)]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}{' in groups' if way[1] else ''}")
def kind(request, device):
    """A dtype, and how many work-items share a matrix. CPU devices use one; the way of GPUs is tried here too where the
    driver can.
    """
    from torchlite_backends.opencl.backend import backend

    found, (kind, group) = backend.device(0), request.param
    if group and "pocl" in found.cl_device.platform.version.lower():
        pytest.skip("PoCL 3 loses barriers in loops; it runs matrices with one work-item")
    before = found.matrix_group
    found.matrix_group = group or before
    yield kind
    found.matrix_group = before


def random(rng, device, kind, *shape):
    values = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return torch.from_numpy(values if kind.is_complex else values.real.copy()).to(kind).to(device)


def close(found, wanted, kind, factor=1):
    """Equal up to a few hundred rounding errors of the greatest element."""
    found, wanted = np.asarray(found.cpu()), np.asarray(wanted.cpu())
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    room = 300 * factor * np.finfo(kind.np).eps * (1 + np.abs(wanted).max())
    assert np.abs(found - wanted).max() <= room, (np.abs(found - wanted).max(), room)


def identity(x, n):
    return torch.eye(n, dtype=x.dtype, device=x.device).expand(*x.shape[:-2], n, n)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_multiply_to_the_matrix(device, rng, kind, shape):
    a = random(rng, device, kind, *shape)
    p, lower, upper = torch.linalg.lu(a)
    close(p @ lower @ upper, a, kind)
    for mode in ("reduced", "complete"):
        q, r = torch.linalg.qr(a, mode)
        close(q @ r, a, kind)
        close(q.mH @ q, identity(q, q.shape[-1]), kind)
        assert not r.tril(-1).abs().any()
        close(torch.linalg.qr(a, "r").R, torch.linalg.qr(a).R, kind)
    for full in (False, True):
        u, s, vh = torch.linalg.svd(a, full_matrices=full)
        k = s.shape[-1]
        close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a, kind)
        close(u.mH @ u, identity(u, u.shape[-1]), kind)
        close(vh @ vh.mH, identity(vh, vh.shape[-2]), kind)
    close(torch.linalg.svdvals(a), s, kind)
    close(a @ torch.linalg.pinv(a) @ a, a, kind)


@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_square_matrices(device, rng, kind, shape):
    n = shape[-1]
    a = random(rng, device, kind, *shape) + n**0.5 * torch.eye(n, dtype=kind, device=device)
    b = random(rng, device, kind, n, 70)
    close(a @ torch.linalg.solve(a, b), b.expand(*shape[:-2], n, 70), kind, n)
    close(a @ torch.linalg.inv(a), identity(a, n), kind, n)
    close(
        torch.linalg.solve_triangular(a.tril(), a.tril() @ b, upper=False), b.expand(*shape[:-2], n, 70), kind, 10 * n
    )
    positive = a @ a.mH
    lower = torch.linalg.cholesky(positive)
    close(lower @ lower.mH, positive, kind)
    assert not lower.triu(1).abs().any()
    hermitian = a + a.mH - 2 * n**0.5 * torch.eye(n, dtype=kind, device=device)
    values, vectors = torch.linalg.eigh(hermitian)
    close((vectors * values.unsqueeze(-2)) @ vectors.mH, hermitian, kind)
    close(vectors.mH @ vectors, identity(a, n), kind)
    close(torch.linalg.eigvalsh(hermitian, "U"), values, kind)
    packed, pivots = torch.linalg.ldl_factor(hermitian, hermitian=True)
    close(
        hermitian @ torch.linalg.ldl_solve(packed, pivots, b.expand(*shape[:-2], n, 70), hermitian=True),
        b.expand(*shape[:-2], n, 70),
        kind,
        30 * n,
    )
    values, vectors = torch.linalg.eig(a)
    close(a.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2), kind)
    close(vectors.abs().square().sum(-2), torch.ones_like(values.real), kind)
    close(torch.linalg.eigvals(a).sum(-1), values.sum(-1), kind)
    close(torch.linalg.eigvals(a).sum(-1).real, a.diagonal(dim1=-2, dim2=-1).sum(-1).real, kind, n)
    close(
        torch.linalg.det(a / n),
        torch.linalg.eigvals(a / n).prod(-1).to(kind) if kind.is_complex else torch.linalg.eigvals(a / n).prod(-1).real,
        kind,
        n,
    )
    half = torch.linalg.matrix_exp(a / n)
    close(half @ half, torch.linalg.matrix_exp(2 * a / n), kind)


@pytest.mark.parametrize("shape", [(3, 3), (40, 40), (50, 34), (34, 50)], ids=str)
def test_matrices_of_rank_one(device, rng, kind, shape):
    ones = torch.ones(shape, dtype=kind, device=device)
    for a in (
        ones,
        random(rng, device, kind, shape[0], 1) @ random(rng, device, kind, 1, shape[1]),
        torch.zeros_like(ones),
    ):
        u, s, vh = torch.linalg.svd(a)
        k = s.shape[-1]
        close(u.mH @ u, identity(u, u.shape[-1]), kind)
        close(vh @ vh.mH, identity(vh, vh.shape[-1]), kind)
        close((u[..., :k] * s) @ vh[..., :k, :], a, kind)
        close(s[1:], torch.zeros_like(s[1:]), kind, 1 + s.max().item())
    assert torch.linalg.matrix_rank(ones).item() == 1


def test_sizes_of_zero(device):
    empty = torch.ones(2, 0, 0, device=device)
    assert torch.linalg.inv(empty).shape == (2, 0, 0) and torch.linalg.det(empty).tolist() == [1, 1]
    assert torch.linalg.eigh(empty).eigenvalues.shape == (2, 0) and torch.linalg.cholesky(empty).shape == (2, 0, 0)
    q, r = torch.linalg.qr(torch.ones(3, 0, device=device), "complete")
    assert q.tolist() == torch.eye(3).tolist() and r.shape == (3, 0)
    u, s, vh = torch.linalg.svd(torch.ones(2, 0, 3, device=device))
    assert u.shape == (2, 0, 0) and s.shape == (2, 0) and vh.tolist() == torch.eye(3).expand(2, 3, 3).tolist()


def test_nonfinite_matrices(device):
    bad = torch.tensor([[[1.0, float("nan")], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]], device=device)
    with pytest.raises(torch.linalg.LinAlgError, match="failed to converge"):
        torch.linalg.svd(bad)
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        torch.linalg.eig(bad)
    values = torch.linalg.eigh(bad.mT).eigenvalues
    assert values[0].isnan().all() and values[1].tolist() == [1, 2]
    assert torch.linalg.matrix_exp(bad).isnan().all(-1).all(-1).tolist() == [True, False]


def test_far_scales(device):
    for scale in (1e-30, 1e30):
        a = torch.tensor([[3.0, 1.0], [1.0, 3.0]], device=device) * scale
        close(torch.linalg.svdvals(a) / scale, torch.tensor([4.0, 2.0]), torch.float32)
        close(torch.linalg.eigvalsh(a) / scale, torch.tensor([2.0, 4.0]), torch.float32)
        close(torch.linalg.eigvals(a).real.sort().values / scale, torch.tensor([2.0, 4.0]), torch.float32)
        q, r = torch.linalg.qr(a)
        close(q @ (r / scale), a / scale, torch.float32)
        close(torch.linalg.vector_norm(a) / scale, torch.tensor(20.0).sqrt(), torch.float32)


def test_pivots_that_do_not_fit(device):
    a = torch.eye(3, device=device)
    with pytest.raises(RuntimeError, match="pivots passed to lu_unpack must be between 1 and LU.size"):
        torch.lu_unpack(a, torch.tensor([1, 7, 3], dtype=torch.int32, device=device))[0].cpu()


@pytest.mark.parametrize("kind", [torch.float32, torch.float64], ids=str)
def test_distances_and_norms(device, rng, kind):
    x, y = random(rng, device, kind, 2, 30, 37), random(rng, device, kind, 40, 37)
    for p in (0.0, 1.0, 2.0, 2.5, float("inf")):
        close(torch.cdist(x, y, p), torch.linalg.vector_norm(x.unsqueeze(-2) - y, p, -1), kind, 40)
    for p in (0.0, 1.0, 2.0, 2.5, -1.0, float("inf"), -float("inf")):
        host = torch.linalg.vector_norm(x.cpu(), p, (0, 2))
        close(torch.linalg.vector_norm(x, p, (0, 2)), host, kind, 40)
        close(torch.linalg.vector_norm(x.mT, p, (0, 1), keepdim=True).flatten(), host, kind, 40)
