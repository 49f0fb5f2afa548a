"""`torch.jit.freeze`: weights are constants, parts are written out, what decides nothing is gone."""

from __future__ import annotations

import io

import pytest

import torchlite as torch
from torchlite import nn

from ..graph_models import MODELS
from .record import leaves


def again(module):
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    return torch.jit.load(file)


def same(found, wanted):
    for a, b in zip(leaves(found), leaves(wanted), strict=True):
        torch.testing.assert_close(torch.as_tensor(a), torch.as_tensor(b), rtol=1e-5, atol=1e-5)


def frozen(module, *preserved, **options):
    return torch.jit.freeze(torch.jit.script(module.eval()), list(preserved), **options)


def settled(module):
    """A module whose batch norms do something."""
    torch.manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.track_running_stats:
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)
    return module.eval()


class Early(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 3

    def forward(self, x, plain: bool = True):
        if self.training:
            x = x + 1
        if plain:
            return x
        return x * self.scale


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        self.count += 1
        return x * self.weight + self.count


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.early, self.counting = Early(), Counting()
        self.last = nn.Linear(2, 2)

    def forward(self, x, plain: bool = True):
        return self.last(self.counting(self.early(x, plain)))

    @torch.jit.export
    def other(self, x):
        return self.last(x)


class Writing(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.unused = torch.ones(2), torch.ones(3)
        self.register_buffer("seen", torch.zeros(2))
        self.l = [1]

    def forward(self, x):
        self.a.add_(1)
        self.l.append(2)
        y = self.seen.view(2)
        y += 1
        return x + self.a + y


class Looping(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 3

    def forward(self, x):
        for i in range(10):
            if i > self.limit:
                return x + i
        return x


class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Looping()
        self.early = Early()

    def forward(self, x, ask: bool = True):
        y = self.early(x) if ask else self.inner(x)
        flags = [ask and bool(self.early(x).sum() > 0), ask or bool(self.inner(x).sum() > 0)]
        return y, flags


@pytest.mark.parametrize("name", [name for name, one in MODELS.items() if one.scripts])
def test_the_models(name):
    one = MODELS[name]
    module, given = one.make(torch).eval(), one.inputs(torch)
    made = torch.jit.freeze(torch.jit.script(module))
    assert len(list(made.modules())) == 1 and not made.state_dict() and not made._attributes
    assert "batch_norm" not in made.code and "dropout" not in made.code
    with torch.no_grad():
        same(made(*given), module(*given))
        same(again(made)(*given), module(*given))


def test_parts_are_written_out():
    module = Parts().eval()
    x = torch.tensor([[1.0, 2.0]])
    made = frozen(module, "other")
    assert not hasattr(made, "last") and not hasattr(made, "early") and not list(made.parameters())
    assert made.counting.count == 0  # a part stays for what is written to, and has nothing else
    assert not hasattr(made.counting, "weight")
    same(made.other(x), module.other(x))
    for plain in (True, False):
        same(made(x, plain), module(x, plain))
    assert made.counting.count == 2
    same(again(made)(x), module(x))


def test_written_attributes_are_not_frozen():
    made = frozen(Writing())
    assert hasattr(made, "a") and hasattr(made, "l") and not hasattr(made, "unused")
    assert [name for name, _ in made.named_buffers()] == ["seen"]
    wanted = Writing()
    x = torch.ones(2)
    for _ in range(3):
        same(made(x), wanted(x))
    same(again(made)(x), wanted(x))


def test_loops_with_return_are_not_unrolled():
    module, x = Around().eval(), torch.ones(2)
    made = frozen(module)
    assert [name for name, _ in made.named_children()] == ["inner"]
    for ask in (True, False):
        same(made(x, ask), module(x, ask))
        same(again(made)(x, ask), module(x, ask))
    same(frozen(Looping())(x), Looping()(x))  # the root is such a method itself


def test_preserved():
    module = settled(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout()))
    x = torch.randn(2, 3)
    scripted = torch.jit.script(module)
    part = torch.jit.freeze(scripted, ["0"])
    assert [name for name, _ in part.named_modules()] == ["", "0"]
    attribute = torch.jit.freeze(scripted, ["0.weight"])
    assert getattr(attribute, "0").weight.shape == (4, 3) and not hasattr(getattr(attribute, "0"), "bias")
    same(part(x), module(x))
    same(again(part)(x), module(x))
    before = attribute(x)
    getattr(attribute, "0").weight.zero_()
    assert not torch.equal(attribute(x), before)
    with pytest.raises(RuntimeError, match="Unknown name: nope"):
        torch.jit.freeze(scripted, ["nope"])


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_batch_norms_fold(kind, transposed, bias):
    convolution = getattr(nn, f"ConvTranspose{kind}d" if transposed else f"Conv{kind}d")(2, 3, 2, bias=bias)
    module = settled(nn.Sequential(convolution, getattr(nn, f"BatchNorm{kind}d")(3), nn.ReLU()))
    x = torch.randn(2, 2, *[5] * kind).transpose(0, 1)
    made = frozen(module)
    assert "batch_norm" not in made.code
    same(made(x), module(x))
    as_it_was = frozen(module, optimize_numerics=False)
    assert "batch_norm" in as_it_was.code
    torch.jit.run_frozen_optimizations(as_it_was)
    assert "batch_norm" not in as_it_was.code
    same(as_it_was(x), module(x))


def test_batch_norms_that_do_not_fold():
    """A convolution that others use, one with groups that is transposed, and statistics of the batch."""

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.b = nn.Conv1d(2, 2, 1), nn.BatchNorm1d(2)

        def forward(self, x):
            y = self.c(x)
            return self.b(y) + y

    x = torch.randn(2, 2, 5)
    grouped = nn.Sequential(nn.ConvTranspose1d(2, 2, 1, groups=2), nn.BatchNorm1d(2))
    batch = nn.Sequential(nn.Conv1d(2, 2, 1), nn.BatchNorm1d(2, track_running_stats=False))
    for module in (Twice(), grouped, batch, nn.Sequential(nn.Linear(5, 2), nn.BatchNorm1d(2))):
        made = frozen(settled(module))
        same(made(x), module(x))


def test_the_original_is_as_it_was():
    scripted = torch.jit.script(settled(nn.Sequential(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3))))
    before = {name: value.clone() for name, value in scripted.state_dict().items()}
    torch.jit.freeze(scripted)
    assert all(torch.equal(value, before[name]) for name, value in scripted.state_dict().items())
    assert len(list(scripted.parameters())) == 4


def test_frozen_modules_move(device):
    module = settled(nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)))
    x = torch.randn(1, 2, 4, 3).transpose(2, 3)
    wanted = module(x)
    made = frozen(module).to(device)
    assert made(x.to(device)).device == x.to(device).device
    torch.testing.assert_close(made(x.to(device)).cpu(), wanted, rtol=1e-4, atol=1e-4)
