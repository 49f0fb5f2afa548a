"""The default generators under threads: concurrent calls draw the same numbers as one thread, each once."""

from __future__ import annotations

import contextlib
import copy
import os
import subprocess
import sys

import pytest

import torchlite as torch

from . import in_threads

WEIGHTS = (1.0, 2.0, 3.0, 4.0, 5.0)
SIZES = (1, 5, 16, 100)

# Each draw is `function(size, dtype, device)`.
DRAWS = {
    "rand": lambda n, dtype, d: torch.rand(n, dtype=dtype, device=d),
    "randn": lambda n, dtype, d: torch.randn(n, dtype=dtype, device=d),
    "randint": lambda n, dtype, d: torch.randint(1 << 20, (n,), device=d),
    "randint64": lambda n, dtype, d: torch.randint(1 << 40, (n,), device=d),
    "randperm": lambda n, dtype, d: torch.randperm(n, device=d),
    "normal_": lambda n, dtype, d: torch.empty(n, dtype=dtype, device=d).normal_(1.0, 2.0),
    "normal_transposed": lambda n, dtype, d: torch.empty(n, 3, dtype=dtype, device=d).t().normal_(),
    "bernoulli": lambda n, dtype, d: torch.full((n,), 0.3, dtype=dtype, device=d).bernoulli(),
    "bernoulli_": lambda n, dtype, d: torch.empty(n, dtype=dtype, device=d).bernoulli_(0.3),
    "dropout": lambda n, dtype, d: torch.nn.functional.dropout(torch.ones(n, dtype=dtype, device=d), 0.4),
    "multinomial": lambda n, dtype, d: torch.multinomial(torch.tensor(WEIGHTS, dtype=dtype, device=d), n, True),
    "multinomial_once": lambda n, dtype, d: torch.multinomial(torch.ones(n, dtype=dtype, device=d), n),
    "exponential_": lambda n, dtype, d: torch.empty(n, dtype=dtype, device=d).exponential_(),
    "log_normal_": lambda n, dtype, d: torch.empty(n, dtype=dtype, device=d).log_normal_(),
    "gamma": lambda n, dtype, d: torch._standard_gamma(torch.full((n,), 0.7, dtype=dtype, device=d)),
    "dirichlet": lambda n, dtype, d: torch._sample_dirichlet(torch.full((n, 2), 0.7, dtype=dtype, device=d)),
    "poisson": lambda n, dtype, d: torch.poisson(torch.full((n,), 4.0, dtype=dtype, device=d)),
    "binomial": lambda n, dtype, d: torch.binomial(
        torch.full((n,), 30.0, dtype=dtype, device=d), torch.full((n,), 0.5, dtype=dtype, device=d)
    ),
    "rrelu": lambda n, dtype, d: torch.nn.functional.rrelu(-torch.ones(n, dtype=dtype, device=d), training=True),
}


def key(drawn: torch.Tensor) -> bytes:
    return drawn.cpu().numpy().tobytes()


def check(name: str, size: int, dtype, device: str, each: int, threads: int = 8) -> None:
    """Every call draws from one place of the stream, so the calls of all threads are those of one, in another order."""
    draw = DRAWS[name]
    torch.manual_seed(12)
    found = [k for part in in_threads(lambda _: [key(draw(size, dtype, device)) for _ in range(each)]) for k in part]
    after = torch.rand(3, device=device)
    torch.manual_seed(12)
    wanted = [key(draw(size, dtype, device)) for _ in range(each * threads)]
    assert sorted(found) == sorted(wanted)
    assert torch.equal(after, torch.rand(3, device=device))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", DRAWS)
def test_calls_in_threads_draw_the_numbers_of_one_thread(name, size, dtype, device):
    check(name, size, dtype, device, each=60 if device == "cpu" else 8)


@pytest.mark.parametrize("name", ["rand", "randn", "randint", "normal_", "bernoulli_", "dropout", "poisson"])
@pytest.mark.parametrize("size", [625, 40_001, 70_000])
def test_calls_of_several_blocks_are_not_split(name, size, device):
    """Sizes above the twister's block, above the parts generated at once, and above the limit of a compiled engine."""
    check(name, size, torch.float64 if size == 40_001 else torch.float32, device, each=2)


def test_different_calls_share_one_stream():
    """Words of 32 bits: whatever reads them, one after the other, none is read twice and none is left out."""
    generator = torch.Generator().manual_seed(3)
    sizes = (1, 3, 17, 97, 700)

    def work(k: int) -> list[torch.Tensor]:
        return [torch.randint(1 << 27, (sizes[(i + k) % 5],), generator=generator) for i in range(200)]

    found = torch.cat([part for parts in in_threads(work) for part in parts])
    wanted = torch.randint(1 << 27, (found.numel(),), generator=torch.Generator().manual_seed(3))
    assert torch.equal(found.sort()[0], wanted.sort()[0])


def test_states_are_consistent_beside_draws():
    """A state that is read beside draws is valid: it survives a round trip, and numbers drawn from it are finite."""
    generator = torch.Generator().manual_seed(5)
    states = []

    def work(k: int) -> None:
        for _ in range(60):
            if k % 2:
                torch.randn(3, generator=generator)
                torch.randn(48, generator=generator)
            else:
                states.append(generator.get_state())

    in_threads(work)
    for state in states:
        restored = torch.Generator().set_state(state)
        assert torch.equal(restored.get_state(), state)
        assert torch.isfinite(torch.randn(64, generator=restored)).all()


def test_seeding_and_forking_beside_draws_raise_nothing():
    def work(k: int) -> None:
        for i in range(40):
            if k == 0:
                torch.manual_seed(i)
            elif k == 1:
                with torch.random.fork_rng(devices=()):
                    torch.rand(5)
            elif k == 2:
                torch.set_rng_state(torch.get_rng_state())
            else:
                assert torch.randn(16 * (1 + i % 3)).shape == (16 * (1 + i % 3),)
                assert torch.rand(5, dtype=torch.float64).max() < 1

    in_threads(work)


def test_generators_of_first_use_in_threads_are_one(device):
    from torchlite._device import generators
    from torchlite._dispatch import table_of

    table = table_of(torch.device(device))
    kept = generators._defaults.pop(table, None)
    try:
        made = in_threads(lambda _: generators.default_generator_of(table))
        assert len({id(g) for g in made}) == 1
    finally:
        if kept is not None:
            generators._defaults[table] = kept


@pytest.mark.parametrize("steps", [60])
def test_threads_train_one_model_without_locks(steps):
    """Hogwild: eight threads train the parameters of one model, with dropout and noise from the default generator."""
    torch.manual_seed(0)
    x = torch.randn(256, 8)
    y = (x[:, :1] * 2 - x[:, 1:2]).tanh()
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1))

    def loss_of(kind: bool) -> float:
        model.train(kind)
        with torch.no_grad():
            return float(torch.nn.functional.mse_loss(model(x), y))

    before = loss_of(False)
    model.train()

    def work(k: int) -> None:
        replica = copy.deepcopy(model)  # gradients of its own, the memory of the shared parameters
        for own, shared in zip(replica.parameters(), model.parameters(), strict=True):
            own.data = shared.data
        optimizer = torch.optim.SGD(replica.parameters(), lr=0.02)
        for _ in range(steps):
            at = torch.randint(256, (32,))
            optimizer.zero_grad()
            noisy = x[at] + 0.01 * torch.randn(32, 8)
            torch.nn.functional.mse_loss(replica(noisy), y[at]).backward()
            optimizer.step()

    in_threads(work)
    assert loss_of(False) < before / 2


@pytest.mark.parametrize("engine", ["cc"])
def test_the_compiled_twister_is_exact_under_threads(engine):
    program = """
import torchlite as torch
from torchlite_backends.cpu_engines.engine_selection import find_native
from tests.threads.test_generators import check
assert find_native("words") is not None
for name in ("rand", "randn", "bernoulli_", "randint"):
    for size in (1, 16, 100, 20_000):
        check(name, size, torch.float32, "cpu", each=3)
"""
    with contextlib.suppress(ImportError):
        from torchlite_backends.cc import cxx_compiler

        if cxx_compiler.why_not():
            pytest.skip(cxx_compiler.why_not())
    environment = {**os.environ, "TORCHLITE_CPU_KERNELS": engine}
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], env=environment, check=True, timeout=300)
