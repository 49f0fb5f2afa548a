"""Results depend on the input alone: the same numbers in every run, for any number of threads."""

import pytest

import torchlite as torch
import torchlite.nn.functional as F

from .networks import NETWORKS, digest, trained


@pytest.fixture
def threads():
    """Sets the number of threads, and puts it back."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name, threads):
    """`python -m tests.programs.networks` trains longer, and more often."""
    found = []
    for count in (1, 4, 2):
        threads(count)
        found.append(trained(name, steps=2))
    assert len(set(found)) == 1, found


@pytest.mark.parametrize("name", ["cnn", "graph", "gpt", "bags"])
def test_networks_on_devices(name, opencl, deterministic):
    assert trained(name, opencl, steps=2) == trained(name, opencl, steps=2)


def random(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


def definite(n, dtype):
    x = random(n, n, dtype=dtype)
    return x @ x.mT.conj() + n * torch.eye(n, dtype=dtype)


OPS = {
    "a row": lambda d: random(1, 1000, dtype=d) @ random(1000, 1000, dtype=d),
    "a column": lambda d: random(1000, 1000, dtype=d) @ random(1000, 1, dtype=d),
    "long rows": lambda d: random(33, 2000, dtype=d) @ random(2000, 65, dtype=d),
    "transposed": lambda d: random(784, 128, dtype=d).T @ random(512, 784, dtype=d).T,
    "large": lambda d: random(700, 300, dtype=d) @ random(300, 900, dtype=d),
    "mv": lambda d: random(20000, 50, dtype=d).T @ random(20000, dtype=d),
    "dot": lambda d: random(30000, dtype=d) @ random(30000, dtype=d),
    "bmm": lambda d: random(3, 100, 120, dtype=d) @ random(3, 120, 200, dtype=d),
    "einsum": lambda d: torch.einsum("bij,bkj->ik", random(5, 80, 90, dtype=d), random(5, 70, 90, dtype=d)),
    "linear": lambda d: F.linear(random(300, 400, dtype=d), random(500, 400, dtype=d), random(500, dtype=d)),
    "inverse": lambda d: torch.linalg.inv(definite(200, d)),
    "solve": lambda d: torch.linalg.solve(definite(200, d), random(200, 200, dtype=d)),
    "cholesky": lambda d: torch.linalg.cholesky(definite(200, d)),
    "qr": lambda d: torch.linalg.qr(random(200, 200, dtype=d)).Q,
    "eigh": lambda d: torch.linalg.eigh(definite(150, d)).eigenvalues,
    "eig": lambda d: torch.linalg.eigvals(random(150, 150, dtype=d)),
    "svd": lambda d: torch.linalg.svd(random(200, 150, dtype=d)).S,
    "cdist": lambda d: torch.cdist(random(200, 150, dtype=d).real, random(100, 150, dtype=d).real),
    "matrix_exp": lambda d: torch.linalg.matrix_exp(random(120, 120, dtype=d) / 50),
    "sum": lambda d: random(1000, 300, dtype=d).sum(),
    "attention": lambda d: F.scaled_dot_product_attention(*random(3, 2, 4, 200, 32, dtype=d).real),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_ops(name, dtype, threads):
    found = []
    for count in (1, 2, 4):
        threads(count)
        found.append(digest([OPS[name](dtype)]))
    assert len(set(found)) == 1
