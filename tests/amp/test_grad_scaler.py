"""GradScaler: scaling, unscaling, steps left out, the scale's way, checkpoints, and PyTorch's errors."""

from __future__ import annotations

import pickle

import pytest

import torchlite as torch
from torchlite.amp import GradScaler


@pytest.fixture
def kind(device):
    return device.partition(":")[0]


def setting(device, **options):
    """A parameter, its optimizer and a scaler."""
    weight = torch.nn.Parameter(torch.ones(3, device=device))
    return weight, torch.optim.SGD([weight], lr=0.5), GradScaler(device.partition(":")[0], **options)


def iterate(weight, optimizer, scaler, factor=1.0):
    optimizer.zero_grad()
    scaler.scale((weight * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_a_step_is_that_of_the_unscaled_loss(device):
    weight, optimizer, scaler = setting(device)
    iterate(weight, optimizer, scaler, 0.25)
    assert weight.tolist() == [0.875] * 3 and scaler.get_scale() == 65536.0 and weight.grad.tolist() == [0.25] * 3


@pytest.mark.parametrize("bad", [float("inf"), -float("inf"), float("nan")])
def test_a_bad_step_is_left_out_and_the_scale_halves(device, bad):
    weight, optimizer, scaler = setting(device, init_scale=8.0)
    iterate(weight, optimizer, scaler, bad)
    assert weight.tolist() == [1] * 3 and scaler.get_scale() == 4.0
    iterate(weight, optimizer, scaler)
    assert weight.tolist() == [0.5] * 3 and scaler.get_scale() == 4.0


def test_one_bad_element_of_one_gradient(device):
    weight, _, scaler = setting(device)
    other = torch.nn.Parameter(torch.ones(2, 2, device=device))
    optimizer = torch.optim.SGD([{"params": [weight]}, {"params": [other], "lr": 1.0}], lr=0.5)
    factors = torch.tensor([[1.0, 1.0], [1.0, float("inf")]], device=device)
    scaler.scale(weight.sum() + (other * factors).sum()).backward()
    scaler.step(optimizer)
    assert weight.tolist() == [1] * 3 and other.flatten().tolist() == [1] * 4


def test_the_scale_grows_after_good_steps(device):
    weight, optimizer, scaler = setting(
        device, init_scale=4.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=2
    )
    scales = []
    for factor in (1.0, 1.0, 1.0, float("inf"), 1.0, 1.0):
        iterate(weight, optimizer, scaler, factor)
        scales.append(scaler.get_scale())
    assert scales == [4, 12, 12, 3, 3, 9]


def test_unscale_lets_gradients_be_clipped(device):
    weight, optimizer, scaler = setting(device)
    scaler.scale((weight * 4).sum()).backward()
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [4] * 3
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    scaler.step(optimizer)
    scaler.update()
    assert torch.allclose(weight, torch.full((3,), 1 - 0.5 / 3**0.5, device=device), atol=1e-4)


def test_a_step_reads_one_number_from_the_device(device, monkeypatch):
    weight, optimizer, scaler = setting(device)
    other = torch.nn.Parameter(torch.ones(2, device=device))
    optimizer.add_param_group({"params": [other]})
    reads = []
    item = torch.Tensor.item
    monkeypatch.setattr(torch.Tensor, "item", lambda self: reads.append(self) or item(self))
    scaler.scale(weight.sum() + other.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert len(reads) == 1 and weight.tolist() == [0.5] * 3


def test_two_optimizers_share_a_scale(device):
    weight, optimizer, scaler = setting(device, init_scale=16.0)
    other, second, _ = setting(device)
    scaler.scale(weight.sum()).backward()
    scaler.scale((other * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.step(second)
    scaler.update()
    assert weight.tolist() == [0.5] * 3 and other.tolist() == [1] * 3 and scaler.get_scale() == 8.0


def test_unscaling_is_a_change_in_place(device):
    weight, optimizer, scaler = setting(device)
    scaler.scale(weight.sum()).backward()
    before = weight.grad._version
    scaler.unscale_(optimizer)
    assert weight.grad._version > before


def test_outputs_in_containers(device):
    _, _, scaler = setting(device, init_scale=2.0)
    one = torch.ones(1, device=device)
    found = scaler.scale([one, (one * 3, one.half())])
    assert (
        found[0].tolist() == [2]
        and found[1][0].tolist() == [6]
        and isinstance(found[1], tuple)
        and found[1][1].dtype is torch.float16
    )
    assert [x.tolist() for x in scaler.scale(x for x in (one, one))] == [[2], [2]]
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


def test_the_scale_can_be_set(device):
    weight, optimizer, scaler = setting(device)
    iterate(weight, optimizer, scaler)
    scaler.update(32.0)
    assert scaler.get_scale() == 32.0
    scaler.update(torch.tensor([8.0], device=device))
    assert scaler.get_scale() == 8.0
    with pytest.raises(
        AssertionError,
        match="new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with",
    ):
        scaler.update(torch.ones(2, device=device))


def test_factors_and_interval(kind):
    scaler = GradScaler(kind, 4.0, 3.0, 0.25, 7)
    assert (
        scaler.get_scale(),
        scaler.get_growth_factor(),
        scaler.get_backoff_factor(),
        scaler.get_growth_interval(),
    ) == (4.0, 3.0, 0.25, 7)
    scaler.set_growth_factor(5.0)
    scaler.set_backoff_factor(0.5)
    scaler.set_growth_interval(9)
    assert scaler.state_dict() == {
        "scale": 4.0,
        "growth_factor": 5.0,
        "backoff_factor": 0.5,
        "growth_interval": 9,
        "_growth_tracker": 0,
    }


def test_checkpoints(device):
    weight, optimizer, scaler = setting(device, init_scale=4.0)
    iterate(weight, optimizer, scaler)
    state = scaler.state_dict()
    assert state["_growth_tracker"] == 1
    for make in (lambda: pickle.loads(pickle.dumps(scaler)), lambda: setting(device)[2]):
        other = make()
        other.load_state_dict(state)
        iterate(weight, optimizer, other)
        assert other.state_dict() == {**state, "_growth_tracker": 2}
        other.load_state_dict(state)
        assert other.state_dict() == state
    with pytest.raises(
        RuntimeError,
        match="The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.",
    ):
        scaler.load_state_dict({})


def test_a_disabled_scaler_does_nothing(device, kind):
    weight, optimizer, _ = setting(device)
    scaler = GradScaler(kind, enabled=False)
    loss = weight.sum()
    assert (
        scaler.scale(loss) is loss
        and not scaler.is_enabled()
        and scaler.get_scale() == 1.0
        and scaler.state_dict() == {}
    )
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict({})
    assert weight.tolist() == [0.5] * 3


def test_step_returns_the_result_of_the_optimizer(device):
    weight, optimizer, scaler = setting(device)
    optimizer.step = lambda *args, **kwargs: (args, kwargs)
    scaler.scale(weight.sum()).backward()
    assert scaler.step(optimizer, 1, key=2) == ((1,), {"key": 2})


def test_an_optimizer_that_scales_itself(device):
    weight, _, scaler = setting(device, init_scale=4.0)
    told = []

    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            told.append((self.grad_scale.item() if self.grad_scale is not None else None, self.found_inf.item()))

    optimizer = Own([weight], lr=0.5)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    assert told == [(4.0, 0.0)] and weight.grad.tolist() == [4] * 3 and not hasattr(optimizer, "grad_scale")
    scaler.update()
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert told[1] == (None, 1.0) and scaler.get_scale() == 2.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_many_gradients_of_all_sizes(device, dtype):
    sizes = [1, 17, 1023, 1024, 1025, 5000, 8192, 16387, 70001, 0, *range(2, 70)]
    unscale = torch._amp_foreach_non_finite_check_and_unscale_
    factor = torch.tensor(0.3, device=device)

    def grads():
        made = [torch.arange(n).remainder(7).to(device, dtype) for n in sizes]
        return [
            *made,
            made[3].reshape(32, 32).t().contiguous().t(),
            torch.ones(40, 50, device=device, dtype=dtype)[::2, 1:],
            made[8][1:].clone()[3:],
        ]

    before, mine, found = grads(), grads(), torch.zeros((), device=device)
    unscale(mine, found, factor)
    assert found.item() == 0
    for x, y in zip(mine, before, strict=True):
        torch.testing.assert_close(
            x, (y.double() * factor.double()).to(dtype) if dtype.itemsize > 4 else (y.float() * factor).to(dtype)
        )
    for bad in (0, 4, 8, 40, len(sizes), len(sizes) + 1, len(sizes) + 2):
        mine, found = grads(), torch.zeros((), device=device)
        mine[bad][(-1,) * mine[bad].ndim] = float("nan") if bad % 2 else -float("inf")
        unscale(mine, found, torch.ones((), device=device))
        assert found.item() == 1
        assert [torch.isfinite(x).all().item() for x in mine].count(False) == 1
        torch.testing.assert_close(mine[1], before[1])


def test_large_numbers_are_finite(device):
    grads, found = [torch.full((n,), 3e38, device=device) for n in (5, 5000, 70000)], torch.zeros((), device=device)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5, device=device))
    assert found.item() == 0 and all((g == 1.5e38).all() for g in grads)


def test_errors_of_the_order_of_calls(device):
    weight, optimizer, scaler = setting(device)
    hint = "but _scale is None.  This may indicate your script did not use scaler.scale"
    for name, call in (
        ("unscale_", lambda: scaler.unscale_(optimizer)),
        ("step", lambda: scaler.step(optimizer)),
        ("update", scaler.update),
    ):
        with pytest.raises(AssertionError, match=f"Attempted {name} {hint}"):
            call()
    scaled = scaler.scale(weight.sum())
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer."):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update."):
        scaler.update()
    scaler._per_optimizer_states.clear()
    scaled.backward()
    scaler.unscale_(optimizer)
    with pytest.raises(
        RuntimeError, match=r"unscale_\(\) has already been called on this optimizer since the last update\(\)."
    ):
        scaler.unscale_(optimizer)
    with pytest.raises(
        AssertionError, match="may only be pickled at the beginning of an iteration, or at the end after scaler.update"
    ):
        pickle.dumps(scaler)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update\(\)."):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step\(\)."):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported if GradScaler is enabled."):
        scaler.step(optimizer, closure=lambda: 0)


def test_half_gradients_are_refused(device):
    weight = torch.nn.Parameter(torch.ones(2, device=device).half())
    scaler, optimizer = setting(device)[2], torch.optim.SGD([weight], lr=0.5)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients."):
        scaler.step(optimizer)


def test_errors_of_the_constructor(kind):
    with pytest.raises(AssertionError, match="The growth factor must be > 1.0."):
        GradScaler(kind, growth_factor=1.0)
    with pytest.raises(AssertionError, match="The backoff factor must be < 1.0."):
        GradScaler(kind, backoff_factor=1.0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without CUDA")
def test_cuda_is_accepted_without_cuda():
    with pytest.warns(
        UserWarning, match="torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling."
    ):
        assert not GradScaler().is_enabled()


# -- autocast and scaler combined ---------------------------------------------------------------------


def train(device, kind, steps=12, **region):
    """Return the losses of a small network; `region` selects autocast and a scaler."""
    torch.manual_seed(0)
    x, y = torch.randn(32, 8), torch.randint(4, (32,))
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4)
    ).to(device)
    x, y = x.to(device), y.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    scaler, losses = GradScaler(kind, **region), []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(kind, **region):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses, {p.dtype for p in model.parameters()}


def test_training_in_mixed_precision_follows_float32(device, kind):
    losses, dtypes = train(device, kind)
    plain, _ = train(device, kind, enabled=False)
    assert dtypes == {torch.float32} and losses[-1] < 0.8 * losses[0]
    assert losses == pytest.approx(plain, rel=0.05) and losses != plain
