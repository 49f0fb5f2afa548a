"""Regions of autocast: nesting, dtypes, the cache of weights, gradients, threads, decorators, Functions, modes, and
PyTorch's errors.
"""

from __future__ import annotations

import threading

import pytest

import torchlite as torch
from torchlite.overrides import TorchFunctionMode
from torchlite.utils.checkpoint import checkpoint


@pytest.fixture
def kind(device):
    return device.partition(":")[0]


@pytest.fixture
def lower(kind):
    return torch.get_autocast_dtype(kind)


@pytest.fixture(autouse=True)
def _left_as_found():
    yield
    assert not any(torch.is_autocast_enabled(name) for name in ("cpu", "cuda", "opencl"))
    assert torch._dispatch.GLOBALS["INTERCEPTORS"] == 0


def operands(device):
    weight = torch.linspace(-1, 1, 9, device=device).reshape(3, 3).clone().requires_grad_()
    return torch.linspace(0, 2, 6, device=device).reshape(2, 3), weight


# -- regions ---------------------------------------------------------------------


def test_regions_nest(device, kind, lower):
    x, w = operands(device)
    other = torch.float16 if lower is torch.bfloat16 else torch.bfloat16
    with torch.autocast(kind):
        assert torch.is_autocast_enabled(kind) and torch.mm(x, w).dtype is lower
        with torch.autocast(kind, enabled=False):
            assert not torch.is_autocast_enabled(kind) and torch.mm(x, w).dtype is torch.float32
            with torch.autocast(kind, dtype=other):
                assert torch.get_autocast_dtype(kind) is other and torch.mm(x, w).dtype is other
        with torch.autocast(kind, dtype=other):
            assert torch.mm(x, w).dtype is other
        assert torch.get_autocast_dtype(kind) is lower and torch.mm(x, w).dtype is lower
    assert torch.mm(x, w).dtype is torch.float32 and not torch.is_autocast_enabled(kind)


def test_a_region_may_be_entered_again(device, kind, lower):
    x, w = operands(device)
    region = torch.autocast(kind)
    for _ in range(2):
        with region, region:
            assert torch.mm(x, w).dtype is lower
        assert torch.mm(x, w).dtype is torch.float32


def test_an_error_leaves_the_region(device, kind):
    with pytest.raises(ZeroDivisionError), torch.autocast(kind):
        1 / 0
    assert not torch.is_autocast_enabled(kind)


def test_a_decorated_function_runs_in_the_region(device, kind, lower):
    x, w = operands(device)

    @torch.autocast(kind)
    def product(a, b):
        """The product."""
        return a @ b if a.shape[0] == 1 else product(a[:1], b)

    assert product(x, w).dtype is lower and product.__doc__ == "The product."


def test_regions_are_per_thread(device, kind, lower):
    x, w = operands(device)
    found = []
    with torch.autocast(kind):
        thread = threading.Thread(target=lambda: found.extend([torch.is_autocast_enabled(kind), torch.mm(x, w).dtype]))
        thread.start()
        thread.join()
        assert torch.mm(x, w).dtype is lower
    assert found == [False, torch.float32]


def test_a_region_touches_its_device_type_alone(device, kind):
    x, w = operands(device)
    other = "opencl" if kind == "cpu" else "cpu"
    with torch.autocast(other):
        assert torch.mm(x, w).dtype is torch.float32


def test_integers_in_place_and_out_are_not_cast(device, kind, lower):
    x, w = operands(device)
    with torch.autocast(kind):
        assert torch.mm(x.int(), x.int().T).dtype is torch.int32
        target = torch.zeros(2, 3, device=device)
        assert target.addmm_(x, w.detach()).dtype is torch.float32  # in place
        assert torch.mm(x, w.detach(), out=target).dtype is torch.float32
        assert (x + x.to(lower)).dtype is torch.float32  # on no list: promoted as ever
        assert torch.sum(x.to(lower), dtype=lower).dtype is lower
        if kind == "cpu":  # a device may lack float64
            assert torch.mm(x.double(), w.double()).dtype is torch.float64


def test_the_widest_dtype_wins(device, kind, lower):
    x, _ = operands(device)
    join = torch.cat if kind == "cpu" else (lambda parts: torch.atan2(*parts))
    other = torch.float16 if lower is torch.bfloat16 else torch.bfloat16
    with torch.autocast(kind):
        assert join([x.to(lower), x]).dtype is torch.float32 and join([x.to(lower), x.to(lower)]).dtype is lower
        with pytest.raises(RuntimeError, match="Unexpected floating ScalarType in at::autocast::prioritize"):
            join([x.to(other), x.to(lower)])


def test_binary_cross_entropy_is_refused_where_half_would_harm(device, kind):
    p, y = torch.full((2,), 0.5, device=device), torch.ones(2, device=device)
    with torch.autocast(kind):
        assert torch.nn.functional.binary_cross_entropy_with_logits(p, y).dtype is torch.float32
        if kind == "cpu":
            assert torch.nn.functional.binary_cross_entropy(p.bfloat16(), y).dtype is torch.float32
        else:
            with pytest.raises(
                RuntimeError,
                match="torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.",
            ):
                torch.nn.functional.binary_cross_entropy(p, y)


# -- gradients and the cache -------------------------------------------------------


def test_gradients_reach_the_float32_weight(device, kind, lower):
    x, w = operands(device)
    with torch.autocast(kind):
        loss = torch.mm(x, w).sum() + torch.mm(x, w).exp().sum()
    loss.backward()
    assert w.grad.dtype is torch.float32
    y = (x @ w.detach()).exp()
    assert torch.allclose(w.grad, x.T @ (1 + y), rtol=0.05)


def test_a_weight_is_cast_once(device, kind):
    from torchlite.amp.autocast_mode import _state

    x, w = operands(device)
    with torch.autocast(kind):
        torch.mm(x, w)
        ((_, _, cast),) = _state.cache.values()
        with torch.autocast(kind, enabled=False):
            pass
        torch.mm(x, w)
        assert next(iter(_state.cache.values()))[2] is cast and len(_state.cache) == 1
        with torch.autocast(kind, cache_enabled=False):
            assert not torch.is_autocast_cache_enabled()
        assert torch.is_autocast_cache_enabled()
        torch.clear_autocast_cache()
        assert not _state.cache
        torch.mm(x, w)
    assert not _state.cache


def test_a_changed_weight_is_cast_anew(device, kind):
    x, w = operands(device)
    with torch.autocast(kind):
        first = torch.mm(x, w)
        with torch.no_grad():
            w.zero_()
        assert torch.mm(x, w).abs().max().item() == 0 and first.abs().max().item() > 0


def test_a_cast_without_gradient_is_not_cached(device, kind):
    x, w = operands(device)
    with torch.autocast(kind):
        with torch.no_grad():
            assert not torch.mm(x, w).requires_grad
        assert torch.mm(x, w).requires_grad


def test_backward_inside_and_twice(device, kind):
    x, w = operands(device)
    with torch.autocast(kind):
        for _ in range(2):  # the cast of the weight serves both
            torch.mm(x, w).float().sum().backward()
    assert torch.allclose(w.grad, 2 * x.sum(0)[:, None].expand(3, 3), rtol=0.02)


def test_second_order(device, kind):
    x, w = operands(device)
    with torch.autocast(kind):
        y = torch.mm(x, w).exp().sum()
        (g,) = torch.autograd.grad(y, w, create_graph=True)
        penalty = g.square().sum()
    penalty.backward()
    assert g.dtype is torch.float32 and w.grad.dtype is torch.float32 and torch.isfinite(w.grad).all()


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpointing_runs_again_as_before(device, kind, lower, use_reentrant):
    x, w = operands(device)
    x.requires_grad_()
    seen = []

    def part(value):
        seen.append((torch.is_autocast_enabled(kind), torch.mm(value, w).dtype))
        return torch.mm(value, w).exp()

    with torch.autocast(kind):
        y = checkpoint(part, x, use_reentrant=use_reentrant)
    y.sum().backward()
    assert seen == [(True, lower)] * 2 and w.grad is not None


# -- Functions, modes and subclasses -------------------------------------------------


def a_function(device_type, **options):
    """A Function that notes the dtypes and the state of autocast in forward and backward."""

    class Product(torch.autograd.Function):
        seen: list = []

        @staticmethod
        @torch.amp.custom_fwd(device_type=device_type, **options)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            Product.seen.append((a.dtype, torch.is_autocast_enabled(device_type), torch.mm(a, b).dtype))
            return torch.mm(a, b)

        @staticmethod
        @torch.amp.custom_bwd(device_type=device_type)
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            Product.seen.append((g.dtype, torch.is_autocast_enabled(device_type), torch.mm(g, b.T.to(g.dtype)).dtype))
            return torch.mm(g, b.T.to(g.dtype)), torch.mm(a.T.to(g.dtype), g)

    return Product


def test_a_function_with_cast_inputs(device, kind, lower):
    x, w = operands(device)
    product = a_function(kind, cast_inputs=torch.float32)
    with torch.autocast(kind):
        y = product.apply(x.to(lower), w)
    y.sum().backward()
    assert product.seen == [(torch.float32, False, torch.float32)] * 2 and w.grad.dtype is torch.float32


def test_a_function_without_cast_inputs(device, kind, lower):
    x, w = operands(device)
    product = a_function(kind)
    with torch.autocast(kind):
        y = product.apply(x, w)
    y.float().sum().backward()
    assert product.seen == [(torch.float32, True, lower), (lower, True, lower)]
    product.seen.clear()
    product.apply(x, w).sum().backward()
    assert product.seen == [(torch.float32, False, torch.float32)] * 2


def test_function_modes_see_the_original_call(device, kind, lower):
    x, w = operands(device)
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((func.__name__, args[0].dtype))
            return func(*args, **(kwargs or {}))

    with Mode(), torch.autocast(kind):
        assert torch.mm(x, w).dtype is lower
    low, target = x.to(lower), torch.tensor([0, 1], device=device)
    with torch.autocast(kind), Mode():
        assert torch.nn.functional.cross_entropy(low, target).dtype is torch.float32
    assert seen == [("mm", torch.float32), ("cross_entropy", lower)]


def test_subclasses_see_the_original_call(device, kind, lower):
    seen = []

    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            with torch._C.DisableTorchFunctionSubclass():  # `dtype` is an attribute that the hook sees too
                seen.append((func.__name__, args[0].dtype))
            return super().__torch_function__(func, types, args, kwargs or {})

    x, w = operands(device)
    mine = x.as_subclass(Mine)
    seen.clear()
    with torch.autocast(kind):
        y = torch.mm(mine, w)
    assert type(y) is Mine and seen[0] == ("mm", torch.float32)
    assert y.dtype is lower


# -- layers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        "Linear(6, 5)",
        "LSTM(6, 5)",
        "GRU(6, 5)",
        "RNN(6, 5)",
        "LSTMCell(6, 5)",
        "GRUCell(6, 5)",
        "MultiheadAttention(6, 2)",
        "TransformerEncoderLayer(6, 2, 8)",
        "TransformerDecoderLayer(6, 2, 8)",
        "BatchNorm1d(6)",
        "LayerNorm(6)",
    ],
)
def test_layers_take_results_of_lower_precision(device, kind, lower, make):
    torch.manual_seed(0)
    layer, before = (eval(f"torch.nn.{text}").to(device) for text in (make, "Linear(6, 6)"))
    is_step = make.endswith("Cell(6, 5)") or make.startswith("Batch")
    x = torch.randn(4, 6, device=device) if is_step else torch.randn(3, 4, 6, device=device)
    with torch.autocast(kind):
        h = before(x)
        y = layer(h, h, h) if make.startswith("Multi") else layer(h, h) if "Decoder" in make else layer(h)
    while not isinstance(y, torch.Tensor):
        y = y[0]
    y.float().square().sum().backward()
    assert h.dtype is lower and all(p.grad.dtype is torch.float32 for p in before.parameters())
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters())


def test_packed_sequences(device, kind):
    torch.manual_seed(0)
    layer = torch.nn.LSTM(6, 5).to(device)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 6, device=device), torch.tensor([5, 4, 2]))
    plain = layer(packed)[0].data
    with torch.autocast(kind):
        found = layer(packed)[0].data
    assert torch.allclose(found.float(), plain, atol=0.02)


# -- PyTorch's questions, warnings and errors ------------------------------------------


def test_questions():
    assert [torch.amp.is_autocast_available(name) for name in ("cpu", "cuda", "opencl", "meta")] == [
        True,
        True,
        True,
        False,
    ]
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16 and torch.get_autocast_dtype("cuda") is torch.float16
    assert not torch.is_autocast_enabled() and not torch.is_autocast_enabled("cpu")
    assert torch.is_autocast_cache_enabled()
    assert (torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()) == (1, 0)


def test_settings():
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)
    torch.set_autocast_cache_enabled(False)
    try:
        assert (
            torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype is torch.float16
            and not torch.is_autocast_cache_enabled()
        )
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_dtype("cpu", torch.bfloat16)
        torch.set_autocast_cache_enabled(True)


def test_the_form_without_a_device_type_means_cuda():
    torch.set_autocast_enabled(True)
    try:
        assert (
            torch.is_autocast_enabled() and torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu")
        )
    finally:
        torch.set_autocast_enabled(False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without CUDA")
def test_cuda_is_accepted_without_cuda():
    with (
        pytest.warns(UserWarning, match="CUDA is not available or torch_xla is imported. Disabling autocast."),
        torch.autocast("cuda"),
    ):
        assert (
            not torch.is_autocast_enabled("cuda")
            and torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype is torch.float32
        )


def test_warnings_and_errors():
    with pytest.warns(
        UserWarning,
        match="In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
        "CPU Autocast only supports ",
    ):
        assert not torch.autocast("cpu", dtype=torch.float64)._enabled
    with pytest.raises(RuntimeError, match="unsupported scalarType"):
        torch.autocast("meta")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `<class '.*device'>`"):
        torch.autocast(torch.device("cpu"))
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.amp.custom_fwd(device_type=0)
    with pytest.raises(TypeError, match=r"autocast\(\)\(func\) requires a callable, but got int"):
        torch.autocast("cpu")(3)
    with pytest.raises(
        TypeError, match=r"set_autocast_enabled\(\): argument 'enabled' \(position 2\) must be bool, not int"
    ):
        torch.set_autocast_enabled("cpu", 1)
    with pytest.raises(
        TypeError, match=r"set_autocast_dtype\(\): argument 'dtype' \(position 2\) must be torch.dtype, not int"
    ):
        torch.set_autocast_dtype("cpu", 3)
    with pytest.raises(
        TypeError, match=r"is_autocast_enabled\(\): argument 'device_type' \(position 1\) must be str, not int"
    ):
        torch.is_autocast_enabled(3)
    with pytest.raises(TypeError, match=r"enabled must be a bool \(got str\)"):
        torch.set_autocast_cache_enabled("x")
    with pytest.raises(
        RuntimeError, match="unknown device type for autocast in get_autocast_dispatch_key_from_device_type"
    ):
        torch.is_autocast_enabled("meta")
    with pytest.raises(RuntimeError, match="unsupported scalarType"):
        torch.get_autocast_dtype("meta")


def test_older_names():
    with pytest.warns(
        DeprecationWarning,
        match=r"torch.is_autocast_cpu_enabled\(\) is deprecated. Please use torch.is_autocast_enabled\('cpu'\) ",
    ):
        assert not torch.is_autocast_cpu_enabled()
    with pytest.warns(
        DeprecationWarning,
        match=r"torch.get_autocast_gpu_dtype\(\) is deprecated. Please use torch.get_autocast_dtype\('cuda'\) ",
    ):
        assert torch.get_autocast_gpu_dtype() is torch.float16


def test_saved_tensor_hooks_see_the_cast_tensors(device, kind, lower):
    x, w = operands(device)
    seen = []
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.dtype) or t, lambda t: t),
        torch.autocast(kind),
    ):
        y = torch.mm(x, w).tanh()
    assert seen == [lower, lower]  # the product's input, for the gradient of the weight, and tanh's result
    y.float().sum().backward()
    assert w.grad is not None


def test_device_types_of_other_makers_have_settings():
    for name, dtype in (
        ("mps", torch.float16),
        ("xpu", torch.float16),
        ("hpu", torch.bfloat16),
        ("xla", torch.bfloat16),
    ):
        assert not torch.is_autocast_enabled(name) and torch.get_autocast_dtype(name) is dtype
        assert torch.amp.is_autocast_available(name)
        with torch.autocast(name):
            assert torch.is_autocast_enabled(name)
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32
        assert not torch.is_autocast_enabled(name)
    assert not torch.is_autocast_enabled("cuda:0") and torch.get_autocast_dtype("cpu:0") is torch.bfloat16
    with pytest.raises(RuntimeError, match="unsupported scalarType"):
        torch.autocast("meta")
    with pytest.raises(RuntimeError, match="User specified an unsupported autocast device_type 'meta'"):
        torch.autocast("meta", torch.float16)
