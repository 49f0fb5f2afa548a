"""Errors and warnings of PyTorch for histories that a program breaks."""

from __future__ import annotations

import contextlib
import warnings

import pytest

import torchlite as torch
from torchlite._settings import backend_flags
from torchlite.nn import functional as F
from torchlite.utils import _device

LEAF_VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation"
DETACHED = "saved tensor that has been detached in-place"


@pytest.mark.parametrize(
    "write",
    [
        lambda v: v.add_(1),
        lambda v: v.mul_(v),
        lambda v: v.zero_(),
        lambda v: v.fill_(3.0),
        lambda v: v.copy_(torch.zeros_like(v)),
        lambda v: v.exp_(),
        lambda v: v.__setitem__(0, 1.0),
        lambda v: v.__setitem__(slice(None), v),
        lambda v: v.clamp_(0, 1),
    ],
)
@pytest.mark.parametrize("view", [lambda x: x[0:1], lambda x: x.view(1, 2), lambda x: x[0:2].t()])
def test_a_view_from_before_requires_grad_is_not_written(device, write, view):
    x = torch.ones(2, device=device)
    v = view(x)
    x.requires_grad_()
    with pytest.raises(RuntimeError, match=LEAF_VIEW):
        write(v)
    assert x.tolist() == [1, 1]
    with torch.no_grad():
        write(v)


def test_a_view_of_a_tensor_without_a_gradient_is_written(device):
    x = torch.ones(2, device=device)
    x[0:1].add_(1)
    x.view(torch.int32)[0:1].fill_(0)
    assert x.tolist() == [0, 1]


@pytest.mark.parametrize(
    "result, error", [(1, TypeError), ("", TypeError), (torch.ones(2), RuntimeError), (None, None)]
)
def test_what_a_post_accumulate_hook_returns(result, error):
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: result)
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        x.sum().backward()


@pytest.mark.parametrize(
    "use", [lambda b: b * b, lambda b: b.sin(), lambda b: b @ b, lambda b: torch.where(b > 0, b * b, b)]
)
def test_a_saved_tensor_that_was_detached_in_place(device, use):
    a = torch.ones(2, device=device, requires_grad=True)
    b = a.clone()
    c = use(b)
    b.detach_()
    with pytest.raises(RuntimeError, match=DETACHED):
        c.sum().backward()


def test_a_detached_tensor_that_is_not_saved_or_used_later(device):
    a = torch.ones(2, device=device, requires_grad=True)
    b = a.clone()
    c, d = b + 1, b.exp()  # which saves its result
    b.detach_()
    (c.sum() + d.sum() + (a * b).sum()).backward()
    assert a.grad.tolist() == pytest.approx([1 + 2.718281828 + 1] * 2)


@pytest.mark.parametrize(
    "call, slope",
    [
        (F.leaky_relu, -0.1), (F.elu, -1.0), (F.celu, -1.0), (F.leaky_relu_, -0.1), (F.elu_, -0.5), (F.celu_, -0.5),
    ],
)  # fmt: skip
def test_an_activation_in_place_with_a_negative_slope_has_no_backward(device, call, slope):
    x = torch.ones(2, device=device, requires_grad=True)
    given = {} if call.__name__[-1] == "_" else {"inplace": True}
    y = call(x.clone(), slope, **given)
    with pytest.raises(RuntimeError, match="backward calculation is triggered with a negative slope"):
        y.sum().backward()
    call(x.clone(), -slope, **given).sum().backward()
    with torch.no_grad():
        assert call(x.clone(), slope, **given).grad_fn is None


def test_rrelu_in_place_between_negative_slopes():
    x = torch.ones(2, requires_grad=True)
    F.rrelu(x.clone(), -0.3, -0.1, training=True, inplace=True).sum().backward()
    with pytest.raises(RuntimeError, match="leakyReLu"):
        F.rrelu(x.clone(), -0.3, -0.1, training=False, inplace=True).sum().backward()


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_an_adaptive_pool_to_nothing_has_no_backward(device, kind, dims):
    x = torch.ones((1, 1, *[4] * dims), device=device, requires_grad=True)
    y = getattr(F, f"adaptive_{kind}_pool{dims}d")(x, 0)
    assert y.numel() == 0
    shape = [1, 1, 1, 0] if dims == 1 else [1, 1, *[0] * dims]
    where = rf"adaptive_{kind}_pool{max(dims, 2)}d_backward\(\): .* has sizes \[{', '.join(map(str, shape))}\]"
    with pytest.raises(RuntimeError, match=where):
        y.sum().backward()


@pytest.fixture
def always():
    """Warnings that come once in a process come again."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


def test_a_backward_that_creates_a_graph_warns(always):
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle") as seen:
        (x * x).sum().backward(create_graph=True)
    assert seen[0].filename == __file__
    torch.autograd.grad((x * x).sum(), x, create_graph=True)


def test_a_warning_comes_once():
    backend_flags._WARNED.discard("once")
    with pytest.warns(UserWarning, match="once"):
        backend_flags.warn_once("once")
    backend_flags.warn_once("once")


def test_the_gradient_of_a_tensor_that_gets_none_warns(device):
    x = torch.ones(2, device=device, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="that is not a leaf Tensor is being accessed") as seen:
        assert y.grad is None
    assert seen[0].filename == __file__
    y.retain_grad()
    assert y.grad is None and x.grad is None and torch.ones(2).grad is None
    with torch.no_grad():
        assert x[0].grad is None


def test_grids_of_unit_size_and_searches_of_strided_tensors_warn(always, device):
    theta = torch.ones(1, 2, 3, device=device)
    with pytest.warns(UserWarning, match="unit-size grids"):
        F.affine_grid(theta, (1, 1, 1, 3), align_corners=True)
    F.affine_grid(theta, (1, 1, 1, 3), align_corners=False)
    steps = torch.arange(10.0, device=device)
    with pytest.warns(UserWarning, match="boundary tensor is non-contiguous"):
        assert torch.searchsorted(steps[::2], torch.tensor([3.0], device=device)).tolist() == [2]
    with pytest.warns(UserWarning, match="input value tensor is non-contiguous"):
        torch.bucketize(torch.ones(3, 2, device=device).t(), steps)
    torch.searchsorted(steps, torch.ones(3, device=device))


class TestInferenceMode:
    def test_views_of_inference_tensors_are_none(self):
        with torch.inference_mode():
            x = torch.ones(2)
            y = x[0:1]
        z = x[0:1]
        assert not y._is_view() and y._base is None and not z._is_view() and z.is_inference()

    def test_resize_of_a_tensor_that_requires_grad(self):
        with torch.inference_mode():
            x = torch.ones(2, requires_grad=True)
            assert x.resize_(3).shape == (3,)
        with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            torch.ones(2, requires_grad=True).resize_(3)

    def test_a_detached_inference_tensor_is_written(self):
        with torch.inference_mode():
            x = torch.ones(2)
        y = x.detach()
        y.add_(1)
        x.data.mul_(2)
        assert y.is_inference() and y._version == 1 and x.tolist() == [4, 4]
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            x.add_(1)
        with pytest.raises(RuntimeError, match="do not track version counter"):
            x._version


class TestSavedTensorHooks:
    def test_pack_gets_the_tensor_itself(self, device):
        a = torch.ones(2, device=device, requires_grad=True)
        seen: list = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (seen.append(t), t)[1], lambda t: t):
            y = a * a
            z = a.exp()
        assert seen[0] is a and seen[1] is a and seen[2] is z and z.grad_fn is not None
        (y.sum() + z.sum()).backward()
        assert a.grad.tolist() == pytest.approx([2 + 2.718281828] * 2)

    def test_pack_does_not_record(self):
        a = torch.ones(2, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
            y = (a * a).sum()
        y.backward()
        assert a.grad.tolist() == [2, 2]


def test_the_object_of_a_storage_stays():
    x = torch.ones(2)
    x.untyped_storage().mark = 3
    assert x.view(2).untyped_storage().mark == 3 and x.untyped_storage() is x[0:1].untyped_storage()
    assert isinstance(x._cdata, int) and x._cdata == x._cdata != torch.ones(2)._cdata


class TestDeviceOfGenerators:
    @pytest.mark.parametrize("decorate", [_device.set_device("meta"), torch.device("meta")])
    def test_only_the_generators_steps_are_on_it(self, decorate):
        @decorate
        def steps():
            sent = yield torch.ones(2).device.type
            yield sent, torch.ones(2).device.type

        found = steps()
        assert next(found) == "meta" and torch.ones(1).device.type == "cpu"
        assert found.send(5) == (5, "meta")

    @pytest.mark.parametrize("decorate", [_device.set_device("meta"), torch.device("meta")])
    def test_a_class_is_refused(self, decorate):
        with pytest.raises(RuntimeError, match="Cannot decorate classes"):
            decorate(type("Thing", (), {}))


def test_nothing_here_warns_by_itself():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward()


def _ones(x, *shape):
    return x.new_ones(shape).requires_grad_()


def _zero(x, dtype):
    return x.new_zeros(1, dtype=dtype)


def _solve_by_factors(x):
    factors, pivots = torch.linalg.ldl_factor(torch.eye(3, device=x.device))
    return torch.linalg.ldl_solve(factors + x, pivots, _ones(x, 3, 1))


NOT_DIFFERENTIABLE = {
    "scale": lambda x: torch.fake_quantize_per_tensor_affine(_ones(x, 3), x, _zero(x, torch.int32), 0, 255),
    "scales": lambda x: torch.fake_quantize_per_channel_affine(_ones(x, 1, 3), x, _zero(x, torch.int32), 0, 0, 255),
    "class weights": lambda x: F.cross_entropy(_ones(x, 1, 1), _zero(x, torch.int64), x),
    "samples": lambda x: F.fractional_max_pool2d(_ones(x, 1, 1, 6, 6), 2, 3, _random_samples=x.expand(1, 1, 2)),
    "factors": _solve_by_factors,
}


@pytest.mark.parametrize("name", NOT_DIFFERENTIABLE)
def test_inputs_without_derivative_raise(name, device):
    """The gradient would be missing in silence."""
    x = torch.full((1,), 0.5, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="is not differentiable with respect to argument"):
        NOT_DIFFERENTIABLE[name](x)
    NOT_DIFFERENTIABLE[name](x.detach())
