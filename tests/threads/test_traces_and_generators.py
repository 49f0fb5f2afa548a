"""Traces run programs that draw: the default generators stay where they are, and other threads lose no number."""

from __future__ import annotations

import threading

import pytest

import torchlite as torch

from . import in_threads


class Noisy(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5) + torch.rand(4) + torch.randn(x.shape)


def export():
    torch.export.export(Noisy(), (torch.ones(2, 4),))


def decompose():
    torch.export.export(Noisy(), (torch.ones(2, 4),)).run_decompositions()


def check_trace():
    torch.jit.trace(lambda x: x + 0 * torch.rand(4), (torch.ones(4),))


def compile_graph():
    torch.compile(lambda x: x * 2 + 1, backend="eager")(torch.ones(4))
    torch._dynamo.reset()


def same_in_chunks():
    drawn = torch.func.vmap(lambda x: x + torch.rand(3), randomness="same", chunk_size=2)(torch.zeros(6, 3))
    assert torch.equal(drawn, drawn[:1].expand(6, 3))
    return drawn[0]


QUIET = [export, decompose, compile_graph]  # draw nothing that is seen


def drawn_beside(work, times: int, threads: int = 4, each: int = 10_000) -> tuple[torch.Tensor, list]:
    """All numbers that threads drew one by one while another one worked, sorted; and what that returned."""
    torch.manual_seed(9)
    made: list = []

    def body(k: int) -> torch.Tensor:
        if k == threads:
            made.extend(work() for _ in range(times))
            return torch.empty(0, dtype=torch.float64)
        return torch.cat([torch.rand(1, dtype=torch.float64) for _ in range(each)])

    return torch.cat(in_threads(body, threads + 1)).sort()[0], made


@pytest.mark.parametrize("work", QUIET)
def test_threads_draw_each_number_once_beside_traces(work):
    work()
    found, _ = drawn_beside(work, 30 if work is export else 10)
    torch.manual_seed(9)
    assert torch.equal(found, torch.rand(40_000, dtype=torch.float64).sort()[0])


def test_threads_draw_each_number_once_beside_chunks_that_draw_the_same():
    found, made = drawn_beside(same_in_chunks, 100, each=2_000)
    after = torch.rand(2, dtype=torch.float64)
    count = 2 * len(found) + 3 * len(made)  # words of 32 bits: `rand` of float64 takes two, of float32 one
    assert len(found.unique()) == len(found)
    torch.manual_seed(9)
    words = torch.randint(1 << 24, (count,)).double() / (1 << 24)
    assert torch.isin(torch.stack(made).double(), words).all()
    assert torch.equal(torch.rand(2, dtype=torch.float64), after)


@pytest.mark.parametrize("work", [*QUIET, check_trace])
def test_the_default_generator_is_where_it_was(work):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    work()
    if work is check_trace:  # the traced run itself draws
        assert not torch.equal(torch.get_rng_state(), before)
    else:
        assert torch.equal(torch.get_rng_state(), before)


def test_seeds_of_a_program_that_is_exported_stay_in_its_trace():
    class Seeds(torch.nn.Module):
        def forward(self, x):
            torch.manual_seed(1)
            return x + 1

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    torch.export.export(Seeds(), (torch.ones(2),))
    assert torch.equal(torch.rand(3), expected)


def test_copies_stand_for_the_default_generators_in_one_thread_alone():
    from torchlite._device.generators import THREADS_WITH_COPIES, use_copied_generators

    torch.manual_seed(2)
    expected = torch.rand(6)
    torch.manual_seed(2)
    other: list = []
    with use_copied_generators():
        inside = torch.rand(3)
        thread = threading.Thread(target=lambda: other.append(torch.rand(3)))
        thread.start()
        thread.join()
        assert torch.equal(torch.rand(3), expected[3:])
        torch.set_rng_state(torch.Generator().manual_seed(2).get_state())
        assert torch.equal(torch.rand(3), expected[:3])
        assert torch.equal(torch.rand(3, generator=torch.default_generator), expected[3:])
    assert torch.equal(inside, expected[:3]) and torch.equal(other[0], expected[:3])
    assert torch.equal(torch.rand(3), expected[3:]) and not THREADS_WITH_COPIES


def test_chunks_draw_as_one_chunk_does():
    torch.manual_seed(4)
    first = same_in_chunks()
    after = torch.rand(2)
    torch.manual_seed(4)
    assert torch.equal(torch.rand(3), first) and torch.equal(torch.rand(2), after)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_functions_draw_on_from_the_default_generator(backend):
    """A program that a first call records draws from the default generator in later calls."""
    from torchlite._device.generators import THREADS_WITH_COPIES

    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x + torch.rand(3), backend=backend)
    torch.manual_seed(8)
    found = [compiled(torch.zeros(3)) for _ in range(4)]
    after = torch.rand(3)
    torch.manual_seed(8)
    assert torch.equal(torch.stack(found), torch.stack([torch.rand(3) for _ in range(4)]))
    assert torch.equal(after, torch.rand(3)) and not THREADS_WITH_COPIES


def test_the_default_generator_is_itself_within_a_trace():
    """`torch.default_generator` is looked up once: a copy that stands for it there must not be what is found."""
    from torchlite._device import generators

    with generators.use_copied_generators():
        found, seeded = generators.default_generator, torch.manual_seed(5)
    assert found is seeded is torch.default_generator
