"""Compiled loops of samplers: the values and the stream's position are those of the loops in Python."""

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.cc import cxx_compiler
from torchlite_backends.cc.cpu_engine import Engine as CompiledEngine
from torchlite_backends.cpu_engines import engine_selection
from torchlite_backends.numpy import native_sampling

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())

N = 700
SAMPLES = {
    "gamma": lambda: torch._standard_gamma(torch.full((N,), 2.0)),
    "gamma below 1": lambda: torch._standard_gamma(torch.full((N,), 0.3)),
    "gammas": lambda: torch._standard_gamma(torch.linspace(0, 5, N, dtype=torch.float64)),
    "gammas of both kinds": lambda: torch._standard_gamma(torch.linspace(0, 9, N) % 2),
    "gammas in double precision": lambda: torch._standard_gamma(torch.linspace(0, 9, N, dtype=torch.float64) % 2),
    "dirichlet of long rows": lambda: torch._sample_dirichlet(torch.linspace(0.1, 3, N).view(-1, 20)),
    "dirichlet": lambda: torch._sample_dirichlet(torch.tensor([[0.5, 1.0, 2.0]]).expand(N, 3)),
    "poisson": lambda: torch.poisson(torch.linspace(0, 40, N)),
    "few": lambda: torch.poisson(torch.full((N,), 0.01)),
    "binomial": lambda: torch.binomial(torch.full((N,), 100.0), torch.full((N,), 0.3)),
    "rare": lambda: torch.binomial(torch.full((N,), 1000.0), torch.full((N,), 0.003)),
    "binomials": lambda: torch.binomial(torch.arange(N, dtype=torch.float32), torch.linspace(0, 1, N)),
    "all": lambda: torch.binomial(torch.full((N,), 7.0), torch.full((N,), 1.0)),
}


def drawn(sample, monkeypatch, engine, kept):
    """The samples and what the generator gives next."""

    class Selected:
        pass

    Selected.engine = engine
    with monkeypatch.context() as patched:
        patched.setattr(engine_selection, "select_engine", lambda: Selected)
        torch.manual_seed(5)
        if kept:  # the second of a pair of normals
            torch.randn(1, dtype=torch.float64)
        found = sample()
        return found.numpy(), torch.randn(3, dtype=torch.float64).tolist(), torch.rand(2).tolist()


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("piece", [1 << 18, 64])
@pytest.mark.parametrize("name", SAMPLES)
def test_values_and_position(name, piece, kept, monkeypatch):
    monkeypatch.setattr(native_sampling, "_PIECE", piece)
    values, *after = drawn(SAMPLES[name], monkeypatch, CompiledEngine(), kept)
    plain, *after_plain = drawn(SAMPLES[name], monkeypatch, None, kept)
    np.testing.assert_allclose(values, plain, rtol=1e-6)
    assert after == after_plain


def test_few_samples_take_no_compiled_loop(monkeypatch):
    class Refusing:
        def samples(self, *of):
            raise AssertionError

    monkeypatch.setattr(engine_selection, "select_engine", lambda: type("Selected", (), {"engine": Refusing()}))
    assert torch.poisson(torch.ones(10)).shape == (10,)


def test_an_engine_that_is_not_built_leaves_the_stream(monkeypatch):
    engine = type("Absent", (), {"samples": lambda self, *of: False, "doubles": None})()
    values, *after = drawn(SAMPLES["gamma"], monkeypatch, engine, False)
    plain, *after_plain = drawn(SAMPLES["gamma"], monkeypatch, None, False)
    np.testing.assert_array_equal(values, plain)
    assert after == after_plain
