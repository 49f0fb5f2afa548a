"""`torch.lobpcg`: eigenpairs against `eigh`, its gradient, its tracker and its errors."""

import pytest

import torchlite as torch


def positive(m, *batch, dtype=torch.float64):
    x = torch.randn(*batch, m, m, dtype=dtype)
    return x @ x.mT + 0.1 * torch.eye(m, dtype=dtype)


def largest_last(A, B=None):
    if B is None:
        return torch.linalg.eigvalsh(A)
    half = torch.linalg.inv(torch.linalg.cholesky(B))
    return torch.linalg.eigvalsh(half @ A @ half.mT)


@pytest.mark.parametrize("method", ["ortho", "basic"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("batch", [(), (2, 1)])
@pytest.mark.parametrize("m, n, k", [(9, 3, 2), (40, 6, 3)])
def test_pairs(method, largest, general, batch, m, n, k):
    torch.manual_seed(m + n)
    A = positive(m, *batch)
    B = positive(m, *batch) if general else None
    E, X = torch.lobpcg(A, k=k, n=n, B=B, largest=largest, method=method, tol=1e-8)
    assert E.shape == (*batch, k) and X.shape == (*batch, m, k)
    wanted = largest_last(A, B)
    wanted = wanted.flip(-1)[..., :k] if largest else wanted[..., :k]
    torch.testing.assert_close(E, wanted, rtol=1e-5, atol=1e-6)
    scale = E.abs().max().clamp(min=1)
    right = X if B is None else B @ X
    torch.testing.assert_close(A @ X / scale, right * E.unsqueeze(-2) / scale, rtol=1e-4, atol=5e-4)


def test_sparse_and_float32(device):
    torch.manual_seed(0)
    dense = positive(30, dtype=torch.float32).to(device)
    sparse = torch.where(dense.abs() > 4, dense, 0).to_sparse()
    wanted = torch.linalg.eigvalsh(sparse.to_dense()).flip(-1)[:2]
    start = torch.randn(30, 2).to(device)
    torch.testing.assert_close(torch.lobpcg(sparse, X=start)[0], wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.lobpcg(sparse.to_dense(), k=2)[0], wanted, rtol=1e-4, atol=1e-4)


def test_degenerate_and_low_rank():
    torch.manual_seed(0)
    values = torch.lobpcg(torch.eye(9, dtype=torch.float64), k=3)[0]
    torch.testing.assert_close(values, torch.ones(3, dtype=torch.float64))
    row = torch.randn(12, 1, dtype=torch.float64)
    values, vectors = torch.lobpcg(row @ row.mT, k=2, niter=50)
    torch.testing.assert_close(values, torch.stack([(row * row).sum(), torch.zeros((), dtype=torch.float64)]))
    torch.testing.assert_close(vectors.mT @ vectors, torch.eye(2, dtype=torch.float64))


def test_preconditioner_and_start():
    torch.manual_seed(0)
    A = positive(60)
    steps = {}
    for name, iK in (("plain", None), ("inverse", torch.linalg.inv(A))):
        E, _ = torch.lobpcg(
            A, k=2, iK=iK, largest=False, tracker=lambda worker: steps.__setitem__(name, worker.ivars["istep"])
        )
        torch.testing.assert_close(E, torch.linalg.eigvalsh(A)[:2], rtol=1e-5, atol=1e-6)
    assert steps["inverse"] < steps["plain"] / 2


def test_tracker_sees_the_state_and_ends_it():
    torch.manual_seed(0)
    A = positive(20)
    seen = []

    def tracker(worker):
        seen.append((worker.ivars["istep"], worker.ivars["iterations_left"], worker.tvars["rerr"].shape))
        assert worker.A is A and worker.B is None and worker.X.shape == (20, 2) and worker.R.shape == (20, 2)
        torch.testing.assert_close(worker.R, A @ worker.X - worker.X * worker.E)
        if worker.ivars["istep"] == 3:
            worker.bvars["force_stop"] = True

    torch.lobpcg(A, k=2, tracker=tracker, tol=0)
    assert seen == [(1, 999, (2,)), (2, 998, (2,)), (3, 997, (2,))]


def test_parameters_of_the_basis():
    torch.manual_seed(0)
    seen = {}

    def tracker(worker):
        seen.update(worker.fparams | worker.iparams | worker.bparams)
        worker.bvars["force_stop"] = True

    options = {"ortho_iparams": {"ortho_i_max": 5}, "ortho_fparams": {"ortho_tol": 0.25}}
    torch.lobpcg(positive(20), tol=0.125, tracker=tracker, ortho_bparams={"ortho_use_drop": True}, **options)
    assert (seen["ortho_tol"], seen["ortho_tol_drop"], seen["ortho_tol_replace"]) == (0.25, 0.125, 0.125)
    assert (seen["ortho_i_max"], seen["ortho_j_max"], seen["ortho_use_drop"]) == (5, 3, True)


def test_gradients_of_both_orders():
    torch.manual_seed(0)
    A = torch.diag(torch.arange(1.0, 7.0, dtype=torch.float64)) + 0.1 * positive(6)
    start = torch.linalg.eigh(A).eigenvectors[:, -2:].flip(-1)

    def signed(A):
        values, vectors = torch.lobpcg(A, X=start, tol=1e-14)
        return values, vectors * torch.sign(vectors[:1].detach())

    A.requires_grad_()
    assert torch.autograd.gradcheck(signed, A)
    assert torch.autograd.gradgradcheck(signed, A, fast_mode=True)


def test_errors():
    A = positive(9)
    with pytest.raises(ValueError, match=r"number of A rows \(=9\) is smaller than 3 x .* eigenpairs \(=4\)"):
        torch.lobpcg(A, k=4)
    with pytest.raises(AssertionError, match="A must be square"):
        torch.lobpcg(A[:3], k=1)
    with pytest.raises(AssertionError, match=r"X shape mismatch: got torch.Size\(\[8, 1\]\), expected \(9, 1\)"):
        torch.lobpcg(A, X=torch.ones(8, 1, dtype=torch.float64))
    A.requires_grad_()
    with pytest.raises(ValueError, match="does not support backward with B != I yet"):
        torch.lobpcg(A, k=1, B=torch.eye(9, dtype=torch.float64))[0].sum().backward()
    with pytest.raises(ValueError, match="does not support sparse input yet"):
        torch.lobpcg(A.to_sparse(), k=1)[0].sum().backward()
