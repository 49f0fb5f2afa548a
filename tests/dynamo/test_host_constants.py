"""Captures of a device beside arrays of the processor: what is computed from numbers and sizes alone is constant."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite._dynamo.compiled_function import CompiledFunction


def places(x):
    return x + torch.arange(6).to(x.device)


def sizes(x):
    columns = int(torch.tensor(x.shape)[1:].prod())
    return x[:, torch.arange(columns).flip(0).to(x.device)]


def number(x):
    return x * torch.tensor([1, 2, 4]).sum() + torch.ones(3).mean()


def mask(x):
    even = torch.remainder(torch.arange(12), 2).eq(0).reshape(2, 6)
    return torch.where(even[1].to(x.device), x, -x), torch.cat([even, even]).to(x.device)


def many(x):
    return x.sum() + torch.arange(100_000).to(x.device).to(torch.float32).mean()


def returned(x):
    return x.exp(), torch.arange(3) * 2, torch.zeros(2, 3).to(x.device), torch.ones(2, 3).t().clone()


@pytest.mark.parametrize("function", [places, sizes, number, mask, many, returned])
def test_constants_of_the_processor_are_replayed(function, device):
    frame = CompiledFunction(function, "f", fullgraph=True)
    for k in range(6):
        x = torch.full((4, 6), float(k + 1), device=device)
        for got, want in zip(*(r if isinstance(r, tuple) else (r,) for r in (frame(x), function(x))), strict=True):
            assert got.device == want.device and got.dtype is want.dtype and torch.equal(got, want)
            assert got.stride() == want.stride()
    assert frame.replays >= 3


def test_results_are_new_memory_in_each_call(device):
    frame = CompiledFunction(returned, "f", fullgraph=True)
    x = torch.ones(2, device=device)
    for _ in range(6):
        for result in frame(x)[1:]:
            result += 1
    assert all(torch.equal(got, want) for got, want in zip(frame(x), returned(x), strict=True))


def drawn(x):
    return x + torch.rand(6).to(x.device)


def read(x):
    return x + 1 if torch.rand(1).item() < 0.5 else x - 1


def written(x):
    start = torch.zeros(6)
    start[2] = 3
    return x + start.to(x.device)


def unset(x):
    start = torch.empty(6)
    return x + start.fill_(2).to(x.device)


def views(x):
    found = torch.arange(6)
    return x + 1, found, found[2:], torch.zeros(1).expand(3)


def copied(x):
    return x + (x.cpu() * 2).to(x.device)


@pytest.mark.parametrize("function", [drawn, read, written, unset, views, copied])
@pytest.mark.filterwarnings("ignore:torch.compile")
def test_other_values_of_the_processor_are_computed_anew(function, device):
    frame = CompiledFunction(function, "f")
    for k in range(9):
        x = torch.full((4, 6), float(k), device=device)
        torch.manual_seed(k)
        wanted, after = function(x), torch.rand(1)
        torch.manual_seed(k)
        found = frame(x)
        assert torch.equal(torch.rand(1), after)
        for got, want in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, wanted)), strict=True):
            assert torch.equal(got, want) and got.stride() == want.stride()
    if function is views:
        found[1][2] = 7
        assert found[2][0] == 7
