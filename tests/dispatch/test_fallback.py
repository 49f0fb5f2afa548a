"""Ops that a backend lacks: an error with instructions, or with TORCHLITE_FALLBACK=1 a computation on the host."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import torchlite as torch
from tests.toy_backend import load_page
from torchlite._dispatch import backend_registry, has_kernel
from torchlite._types import devices


@pytest.fixture
def partial(monkeypatch):
    """Create devices of backends with a subset of the kernels of docs/backend.md's, each under a new name."""
    monkeypatch.setattr(backend_registry, "REGISTERED", dict(backend_registry.REGISTERED))
    monkeypatch.setattr(devices, "REGISTERED", backend_registry.REGISTERED)
    monkeypatch.setattr(backend_registry, "_tables", dict(backend_registry._tables))
    page = load_page()

    def make(name, *lacks):
        class Partial(page.ToyBackend):
            def kernels(self, index):
                return {op: kernel for op, kernel in super().kernels(index).items() if op not in lacks}

        backend_registry.register_backend(name, Partial())
        return name

    return make


@pytest.fixture
def fallback(monkeypatch):
    monkeypatch.setenv("TORCHLITE_FALLBACK", "1")


def test_without_fallback_the_error_names_op_device_and_remedy(partial, monkeypatch):
    monkeypatch.delenv("TORCHLITE_FALLBACK", raising=False)
    x = torch.ones(3, device=partial("half_a", "tanh"))
    with pytest.raises(
        NotImplementedError,
        match="the op 'tanh' has no kernel on device 'half_a:0': set TORCHLITE_FALLBACK=1 to run it on the host",
    ):
        x.tanh()
    assert not has_kernel(x._tl_kernels, "tanh") and has_kernel(x._tl_kernels, "exp")


def test_values_and_gradients_over_the_host(partial, fallback, rng):
    where = partial("half_b", "tanh", "sum", "gather", "sort", "matmul", "mm", "cat")
    data = rng.uniform(0.5, 2, (3, 4)).astype(np.float32)

    def run(device):
        x = torch.tensor(data, device=device, requires_grad=True)
        index = torch.tensor([[0, 1], [3, 3], [2, 0]], device=device)
        values, order = torch.sort(torch.cat([x.tanh(), x.digamma()], 1), 1)
        out = x.gather(1, index) @ torch.ones(2, 5, device=device) + values[:, :5] * order[:, :5]
        out.sum().backward()
        assert out.device == x.device == x.grad.device
        return out.tolist(), x.grad.tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        there = run(where)
    for a, b in zip(there, run("cpu"), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_it_warns_once_an_op(partial, fallback):
    x = torch.ones(3, device=partial("half_c", "tanh", "exp"))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x.tanh(), x.tanh(), x.exp(), x.exp(), x.log()
    assert [str(w.message).split(":")[0] for w in seen] == [
        f"the op '{op}' has no kernel on device 'half_c" for op in ("tanh", "exp")
    ]
    assert "runs on the host (TORCHLITE_FALLBACK is set)" in str(seen[0].message)
    assert seen[0].filename == __file__


def test_kernels_and_composites_precede_the_fallback(partial, fallback):
    table = torch.ones(1, device=partial("half_d", "tanh"))._tl_kernels
    assert type(table.exp).__name__ == "function" and type(table.tanh).__name__ == "HostFallback"
    assert type(table.softmax).__name__ == "partial"  # its composite, not the host


def test_views_do_not_fall_back_to_the_host(partial, fallback):
    x = torch.ones(2, 3, device=partial("half_e", "_as_strided"))
    with pytest.raises(NotImplementedError, match="as_strided"):
        x.as_strided((2,), (1,))


def test_errors_of_the_host_pass_through(partial, fallback):
    x = torch.ones(2, 3, device=partial("half_f", "matmul", "mm"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
            x.mm(x)
