"""Training, compiled and as it is written: the same losses, no more memory."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dynamo.compiled_function import CompiledFunction

STEPS = 200


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.three, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.three(self.first(x)).view(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Embedding(8, 16)
        self.blocks, self.head = nn.ModuleList([Block(16), Block(16)]), nn.Linear(16, 20, bias=False)

    def forward(self, words):
        x = self.words(words) + self.places(torch.arange(words.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x).flatten(0, 1)


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.LSTM(6, 12, 2, batch_first=True), nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2),
        nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(128, 4),
    )  # fmt: skip


TASKS = {
    "gpt": (GPT, lambda n: (torch.randint(0, 20, (n, 8)), torch.randint(0, 20, (n * 8,)))),
    "cnn": (cnn, lambda n: (torch.randn(n, 3, 8, 8), torch.randint(0, 4, (n,)))),
    "lstm": (LSTM, lambda n: (torch.randn(n, 7, 6), torch.randint(0, 3, (n,)))),
}


def training(name, size, how):
    """A step of a training on one of four batches, which returns the loss, and the model.

    how: "eager", "step" (the whole step is compiled), "model" (forward and backward are).
    """
    torch.manual_seed(0)
    model, batch = TASKS[name][0](), TASKS[name][1]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    forward = CompiledFunction(model, "model", fullgraph=True) if how == "model" else model

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = CompiledFunction(step, "step", fullgraph=True) if how == "step" else step
    batches = [batch(size) for _ in range(4)]
    return lambda i: run(*batches[i % 4]).item(), model, run if how == "step" else forward


@pytest.mark.parametrize("name", TASKS)
def test_losses_are_those_of_eager(name):
    losses, models = {}, {}
    for how in ("eager", "step", "model"):
        step, models[how], frame = training(name, 4, how)
        losses[how] = [step(i) for i in range(STEPS)]
        assert how == "eager" or frame.replays >= STEPS - 4
    assert losses["eager"][-1] < losses["eager"][0] * 0.7
    for how in ("step", "model"):
        assert max(abs(a - b) for a, b in zip(losses[how], losses["eager"], strict=True)) <= 1e-5
        for (key, s), t in zip(models["eager"].state_dict().items(), models[how].state_dict().values(), strict=True):
            torch.testing.assert_close(s, t, rtol=1e-4, atol=1e-5, msg=key)


@pytest.fixture
def traced():
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def memory_of(name, how):
    """Return the peak memory of a step above that between steps, and the bytes of arrays and the objects that eight
    more steps leave behind.
    """
    step, *_ = training(name, 64, how)
    for i in range(12):
        step(i)
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    for i in range(4):
        step(i)
    peak = tracemalloc.get_traced_memory()[1] - before
    arrays, objects = held()
    for i in range(8):
        step(i)
    more_arrays, more_objects = held()
    return peak, more_arrays - arrays, more_objects - objects


def held():
    """The bytes of all arrays, and how many objects there are."""
    gc.collect()
    arrays = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)])
    return sum(trace.size for trace in arrays.traces), len(gc.get_objects())


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("how", ["step", "model"])
def test_memory_is_at_most_that_of_eager(name, how, traced):
    peak, arrays, objects = memory_of(name, how)
    assert peak <= memory_of(name, "eager")[0] + 4096
    assert arrays == 0 and objects < 8


def test_arrays_die_while_a_call_is_captured(traced):
    """The first calls, which are recorded, hold no more than eager's; nothing is left for the collector."""

    def function(x):
        for _ in range(12):
            x = (x * 2).sin().cumsum(0) + 1
        return x.sum()

    def peak(call):
        x = torch.ones(1 << 20, requires_grad=True)
        gc.collect()
        gc.disable()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        try:
            for _ in range(2):
                call(x).backward()
                x.grad = None
            return tracemalloc.get_traced_memory()[1] - before
        finally:
            gc.enable()

    peak(torch.compile(function))  # what it loads stays
    assert peak(torch.compile(function, fullgraph=True)) <= 1.5 * peak(function)
