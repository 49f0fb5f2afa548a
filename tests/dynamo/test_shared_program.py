"""One program for calls of several sizes: few programs, results of eager mode, sizes with programs of their own."""

from __future__ import annotations

import copy
import itertools
import random

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dynamo import compiled_function, shared_program
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite._dynamo.dynamic_shapes import CALLS_BEFORE_CAPTURE, SizeVariant

F = nn.functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm, self.last = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        rows, length, width = x.shape
        parts = self.qkv(self.norm(x)).split(width, 2)
        q, k, v = [t.view(rows, length, self.heads, width // self.heads).transpose(1, 2) for t in parts]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(rows, length, width))
        return x + self.mlp(self.last(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 8), nn.Embedding(32, 8)
        self.blocks, self.head = nn.ModuleList([Block(8, 2), Block(8, 2)]), nn.Linear(8, 20)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        scores = self.head(x)
        return F.cross_entropy(scores.view(-1, scores.size(-1)), tokens.view(-1))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(20, 8, padding_idx=0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(8, 3)

    def forward(self, tokens):
        pads = tokens == 0
        hidden = self.encoder(self.tokens(tokens), src_key_padding_mask=pads)
        kept = (~pads).unsqueeze(-1).float()
        return self.head((hidden * kept).sum(1) / kept.sum(1)).square().mean()


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 4))

    def forward(self, x):
        return F.cross_entropy(self.layers(x), torch.zeros_like(x[:, 0], dtype=torch.int64))


class Plain(nn.Module):
    """Reads no sizes, and has no ops that get positions."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x):
        return self.layers(x).square().mean()


def tokens(n):
    found = torch.randint(1, 20, (4, n))
    found[1, n // 2 :] = 0
    return found


def rows(n):
    return torch.randn(n, 6)


@pytest.fixture
def compiled(monkeypatch):
    """Names of the programs that were compiled."""
    names = []

    def counting(name, *args, run=compiled_function.compile_replay, **kwargs):
        names.append(name)
        return run(name, *args, **kwargs)

    for module in (compiled_function, shared_program):
        monkeypatch.setattr(module, "compile_replay", counting)
    return names


def shared(frame):
    (sizes,) = next(iter(frame.structures.values()))
    return sizes.shared


def run_both(model, inputs, sizes, backward=True):
    """Results and gradients of eager and of compiled calls, and the compiled function."""
    found, frame = [], None
    for run in (False, True):
        mine = copy.deepcopy(model)
        call = frame = CompiledFunction(mine, "model", fullgraph=True) if run else mine
        torch.manual_seed(1)
        found.append([])
        for n in sizes:
            loss = call(inputs(n))
            if backward:
                mine.zero_grad()
                loss.backward()
                found[-1] += [p.grad.tolist() for p in mine.parameters()]
            found[-1].append(loss.tolist())
    return *found, frame


@pytest.mark.parametrize("make, inputs", [(GPT, tokens), (Classifier, tokens), (MLP, rows), (Plain, rows)])
def test_twenty_sizes_compile_at_most_three_programs(make, inputs, compiled):
    torch.manual_seed(0)
    eager, found, frame = run_both(make(), inputs, [*range(4, 24)] * 3)
    assert eager == found
    assert 1 <= len(compiled) <= 3
    assert frame.replays >= 20 and not frame.reasons


class MaskedGPT(GPT):
    """Slices a mask by the length, and checks the length."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(32, 32)))

    def forward(self, tokens):
        length = tokens.size(1)
        assert length <= 32
        h = self.tokens(tokens)
        scores = (h @ h.transpose(1, 2)).masked_fill(self.mask[:length, :length] == 0, -1e9)
        x = scores.softmax(-1) @ h + self.places(torch.arange(length)[None])
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(F.gelu(self.head(x)).flatten(0, 1), tokens.flatten())


@pytest.mark.parametrize("order", ["cycles", "shuffled"])
def test_steps_of_twenty_lengths_are_replayed_from_the_second_call_on(order, compiled):
    lengths = [*range(4, 24)] * 3
    if order == "shuffled":
        random.Random(0).shuffle(lengths)
    found = []
    for compiles in (False, True):
        torch.manual_seed(0)
        model = MaskedGPT()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)

        def step(tokens, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(tokens)
            loss.backward()
            optimizer.step()
            return loss

        call = frame = CompiledFunction(step, "step") if compiles else step
        found.append([call(tokens(n)).item() for n in lengths])
    assert found[0] == found[1]
    assert frame.replays >= 34 and 1 <= len(compiled) <= 3


def test_a_size_never_seen_is_replayed_at_once(compiled):
    torch.manual_seed(0)
    eager, found, frame = run_both(Plain(), rows, range(4, 40))
    assert eager == found
    assert frame.replays == 36 - 3 and len(compiled) == 1


def test_results_without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        eager, found, frame = run_both(Plain(), rows, [*range(4, 12)] * 4, backward=False)
    assert eager == found and frame.replays >= 20


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sin() if x.shape[0] % 2 else x.cos(),
        lambda x: x.sin() if len(x) == 7 else x.cos(),
        lambda x: x * x.numel(),
        lambda x: x / x.size(0),
        lambda x: x.split(4)[-1].exp(),
        lambda x: torch.cat([part.exp() * i for i, part in enumerate(x.split(4))]),
        lambda x: x.chunk(3)[-1].exp(),
        lambda x: x[:5].exp() * 2,
        lambda x: x[-5:].exp() * 2,
        lambda x: x.t().reshape(-1).exp(),
        lambda x: x.exp().var(0, correction=0) + x.std(correction=0),
        lambda x: F.pad(x, (0, 1)).exp(),
        lambda x: [row.exp() for row in x][-1],
        lambda x: x.exp() if str(tuple(x.shape)) == "(8, 3)" else x.sin(),
    ],
)
def test_each_size_has_the_results_of_eager_mode(function):
    torch.manual_seed(0)
    weight = torch.randn(3, requires_grad=True)
    frame = CompiledFunction(lambda x: function(x * weight), "f")
    for n in [9, 10, 11, 13, 8, 7, 5, 16, 2, 1, 9, 10] * 4:
        x = torch.randn(n, 3)
        assert frame(x).tolist() == function(x * weight).tolist()


@pytest.mark.parametrize(
    "function, error", [(lambda x: x.exp().narrow(0, 2, 4) * 2, RuntimeError), (lambda x: x.exp()[4] * 2, IndexError)]
)
def test_errors_of_sizes_never_seen(function, error):
    frame = CompiledFunction(function, "f")
    for n in (7, 8, 9):
        frame(torch.ones(n, 3, requires_grad=True))
    with pytest.raises(error) as expected:
        function(torch.ones(3, 3))
    with pytest.raises(error) as found:
        frame(torch.ones(3, 3, requires_grad=True))
    assert str(found.value) == str(expected.value)


def test_errors_where_arguments_do_not_fit():
    def f(x, y):
        return (x * y).exp() * 2

    frame = CompiledFunction(f, "f")
    for n in (4, 5, 6, 7):
        frame(torch.ones(n, 3, requires_grad=True), torch.ones(n, 3))
    assert shared(frame).formulas is not None
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        frame(torch.ones(8, 3, requires_grad=True), torch.ones(9, 3))
    assert frame(torch.ones(8, 3, requires_grad=True), torch.ones(1, 3)).shape == (8, 3)


def test_numbers_that_do_not_come_from_sizes():
    for sizes in ([4, 5, 6, 7, 8, 9] * 4, [4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 8, 8] * 2):
        counter = itertools.count(1)
        weight = torch.ones(3, requires_grad=True)

        def f(x, counter=counter, weight=weight):
            return (x * weight).exp() * next(counter)

        frame = CompiledFunction(f, "f")
        frame.warns = False
        for place, n in enumerate(sizes):
            assert frame(torch.zeros(n, 3)).tolist() == [[place + 1.0] * 3] * n


def test_sizes_zero_and_one_have_programs_of_their_own():
    weight = torch.ones(3, requires_grad=True)
    frame = CompiledFunction(lambda x: (x * weight).exp() * 2, "f")
    for n in (4, 5, 6, 1, 0, 7):
        for _ in range(2):
            assert frame(torch.zeros(n, 3)).shape == (n, 3)
    known = [place.shapes[0][0][0] for place in shared(frame).known]
    assert 5 in known and 7 in known and 0 not in known and 1 not in known


def test_strides_and_numbers_of_other_calls():
    weight = torch.ones(3, requires_grad=True)
    frame = CompiledFunction(lambda x, n: (x * weight).exp() * n, "f")
    for n in (4, 5, 6, 7):
        for factor in (2, 3):
            for x in (torch.randn(n, 3), torch.randn(3, n).t(), torch.randn(n, 6)[:, ::2]):
                found = frame(x, factor)
                assert torch.equal(found, (x * weight).exp() * factor)
                assert found.stride() == ((x * weight).exp() * factor).stride()


def test_bounds_and_settings_hold(compiled):
    weight = torch.ones(3, requires_grad=True)

    def f(x):
        return (x * weight).exp() * 2

    fixed = CompiledFunction(f, "f", dynamic=False, limit=20)
    for n in range(2, 8):
        fixed(torch.ones(n, 3))
    assert not fixed.structures and fixed.replays == 0
    x = torch.ones(4, 3)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=6)
    marked = CompiledFunction(f, "f")
    for n in (4, 5, 6, 3, 7):
        marked(x if n == 4 else torch.ones(n, 3))
    assert [place.shapes[0][0][0] for place in shared_of_first(marked).known] == [5, 6, 3]


def shared_of_first(frame):
    return next(iter(frame.structures.values()))[0].shared


def test_effects_happen_once_for_each_call():
    torch.manual_seed(0)
    states = []
    for run in (False, True):
        torch.manual_seed(2)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        call = CompiledFunction(step, "step", fullgraph=True) if run else step
        losses = [call(torch.randn(n, 3)).item() for n in [4, 5, 6, 7, 8] * 6]
        states.append((losses, [t.tolist() for t in model.state_dict().values()]))
    assert states[0] == states[1] and call.replays >= 5


def test_a_frequent_size_gets_a_program_of_its_own_where_that_is_faster():
    large = CompiledFunction(lambda x: (x.exp() * 2 + 1).sin(), "f")
    for n in (299, 298, 297):
        large(torch.ones(n, 300, requires_grad=True))
    x = torch.ones(300, 300, requires_grad=True)
    for _ in range(CALLS_BEFORE_CAPTURE + 3):
        large(x)
    own = [key for key in large.variants if key.__class__ is SizeVariant]
    assert [key.shapes[0][0] for key in own] == [(300, 300)]
    small = CompiledFunction(lambda x: (x.exp() * 2 + 1).sin(), "f")
    for n in (4, 5, 6):
        for _ in range(CALLS_BEFORE_CAPTURE + 3):
            small(torch.ones(n, 3, requires_grad=True))
    assert not [key for key in small.variants if key.__class__ is SizeVariant]
    assert len(shared(small).settled) == 2


def test_code_that_was_not_walked_may_read_sizes():
    @torch._dynamo.allow_in_graph
    def last(x):
        return x * 2 if x.shape[0] < 8 else x * 3

    weight = torch.ones(3, requires_grad=True)
    frame = CompiledFunction(lambda x: last(x * weight).exp(), "f")
    for n in (4, 5, 6, 9, 10, 9, 10, 7, 9):
        assert frame(torch.ones(n, 3)).tolist() == last(torch.ones(n, 3)).exp().tolist()


def test_errors_that_the_function_handles():
    weight = torch.ones(4, 3, requires_grad=True)

    def f(x):
        try:
            return torch.nn.functional.embedding(x, weight).exp()
        except IndexError:
            return weight.sum() * 2

    frame = CompiledFunction(f, "f")
    for n in (4, 5, 6, 7, 8, 9):
        x = torch.arange(n) // 2
        assert frame(x).tolist() == f(x).tolist()
