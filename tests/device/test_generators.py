"""Generators: states, seeds, forks of the default generator, and threads that share one."""

import pickle
import threading

import numpy as np
import pytest

import torchlite as torch
from tests.ops.test_random import GOLDEN


def test_state_has_pytorchs_layout():
    with np.load(GOLDEN) as golden:
        fresh, used = golden["state_fresh"], golden["state_used"]
    g = torch.Generator().manual_seed(1234567890123)
    assert np.array_equal(g.get_state().numpy(), fresh)
    torch.randn(5, generator=g)
    assert np.array_equal(g.get_state().numpy(), used), "the position, or the normal that is kept"
    other = torch.Generator()
    other.set_state(torch.from_numpy(used.copy()))
    assert other.initial_seed() == 1234567890123
    assert torch.equal(torch.randn(700, generator=g), torch.randn(700, generator=other))


@pytest.mark.parametrize("used", [0, 1, 5, 623, 624, 625, 2000])
def test_state_round_trip(used):
    g = torch.Generator().manual_seed(3)
    torch.rand(used, generator=g)
    state = g.get_state()
    first = torch.rand(1500, generator=g)
    g.set_state(state)
    assert torch.equal(g.get_state(), state)
    assert torch.equal(torch.rand(1500, generator=g), first)
    copy = pickle.loads(pickle.dumps(g))
    assert torch.equal(torch.randn(3, generator=copy), torch.randn(3, generator=g.clone_state()))


def test_default_generator_and_seeds():
    assert torch.manual_seed(4) is torch.default_generator
    assert torch.initial_seed() == 4
    assert torch.default_generator.device == torch.device("cpu")
    a = torch.rand(3)
    torch.random.manual_seed(4)
    state = torch.get_rng_state()
    assert torch.equal(torch.rand(3), a)
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(3), a)
    assert torch.seed() == torch.initial_seed()
    assert torch.Generator().initial_seed() == 67280421310721
    assert torch.Generator().seed() != torch.Generator().seed()


def test_fork_rng_restores():
    before = torch.get_rng_state()
    with torch.random.fork_rng():
        torch.rand(10)
        torch.manual_seed(9)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(enabled=False):
        torch.rand(1)
    assert not torch.equal(torch.get_rng_state(), before)


def test_threads_share_a_generator_without_corrupting_it():
    g = torch.Generator().manual_seed(1)
    found: list = []
    threads = [
        threading.Thread(target=lambda: found.extend(torch.rand(97, generator=g) for _ in range(50))) for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    words = torch.rand(97 * 200, generator=torch.Generator().manual_seed(1))
    assert torch.equal(torch.cat(found).sort()[0], words.sort()[0])


def test_refused_state_changes_nothing():
    g = torch.Generator().manual_seed(2)
    before = g.get_state()
    with pytest.raises(RuntimeError):
        g.set_state(torch.zeros(5056, dtype=torch.uint8))
    assert torch.equal(g.get_state(), before)
