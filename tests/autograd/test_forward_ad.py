"""Levels of forward mode: dual tensors, their views and writes, what is refused, custom Functions, checks."""

from __future__ import annotations

import weakref

import pytest

import torchlite as torch
from torchlite.autograd import Function, functional, gradcheck
from torchlite.autograd import forward_ad as fwAD


def close(a, b):
    torch.testing.assert_close(a, b)


def tangent_of(tensor):
    return fwAD.unpack_dual(tensor).tangent


def dual(n=2, scale=2.0):
    return fwAD.make_dual(torch.arange(1.0, n + 1), torch.full((n,), scale))


def test_levels_begin_end_and_do_not_nest():
    x, t = torch.rand(2), torch.rand(2)
    with fwAD.dual_level() as level:
        assert level == 0
        d = fwAD.make_dual(x, t)
        assert tangent_of(d) is t and tangent_of(x) is None
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            fwAD.enter_dual_level()
        with pytest.raises(RuntimeError, match="not the last one that was created"):
            fwAD.exit_dual_level(level=3)
    assert tangent_of(d) is None
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fwAD.exit_dual_level()
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(x, t)


def test_nothing_keeps_a_tangent():
    with fwAD.dual_level():
        t = torch.rand(2)
        gone = weakref.ref(t)
        d = fwAD.make_dual(torch.rand(2), t)
        del t
        assert gone() is not None
        del d
        assert gone() is None
        kept = fwAD.make_dual(torch.rand(2), torch.rand(2))
        gone = weakref.ref(tangent_of(kept))
    assert gone() is None and kept.shape == (2,)


@pytest.mark.parametrize(
    "primal, tangent, error, words",
    [
        (torch.ones(2), torch.ones(3), RuntimeError, "different size than that of the original"),
        (torch.ones(2).long(), torch.ones(2), ValueError, "Expected primal to be floating point or complex"),
        (torch.ones(2), torch.ones(2).long(), ValueError, "Expected tangent to be floating point or complex"),
    ],
)
def test_make_dual_rejects_wrong_tangents(primal, tangent, error, words):
    with fwAD.dual_level(), pytest.raises(error, match=words):
        fwAD.make_dual(primal, tangent)


def test_a_dual_tensor_has_one_tangent():
    with fwAD.dual_level():
        d = dual()
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level 0"):
            fwAD.make_dual(d, torch.ones(2))
        with pytest.raises(RuntimeError, match="itself has a forward gradient at the same level0"):
            fwAD.make_dual(torch.ones(2), d)


def test_tangents_have_the_strides_of_their_tensor():
    with fwAD.dual_level():
        t = torch.rand(2, 3)
        assert tangent_of(fwAD.make_dual(torch.rand(3, 2).t(), t)).stride() == (1, 2)
        d = fwAD.make_dual(torch.rand(5)[:4].detach(), torch.rand(4))
        assert d.as_strided((5,), (1,), 0).shape == (5,)
        z = torch.rand(2, dtype=torch.complex64)
        for primal in (z, z.conj(), z._neg_view()):
            made = fwAD.make_dual(primal, torch.ones_like(z))
            assert tangent_of(made).is_conj() == primal.is_conj() and tangent_of(made).is_neg() == primal.is_neg()
            close(tangent_of(torch.real(made)), torch.ones(2))
            close(tangent_of(torch.imag(made)), torch.zeros(2))


def test_writes_and_views():
    with fwAD.dual_level():
        x, t = torch.rand(2), torch.ones(2)
        d = fwAD.make_dual(x, t)
        d *= 2
        close(t, torch.full((2,), 2.0))
        view = d.narrow(0, 0, 1)
        view *= 3
        close(tangent_of(d), torch.tensor([6.0, 2.0]))
        assert tangent_of(x) is None
        other = torch.zeros(2, 2)
        column = other.t()[0]
        column.copy_(d)
        close(tangent_of(other), torch.tensor([[6.0, 0.0], [2.0, 0.0]]))
        other[1, 1] = d[0]
        close(tangent_of(other), torch.tensor([[6.0, 0.0], [2.0, 6.0]]))
        apart = other.detach()
        apart += d
        close(tangent_of(other), torch.tensor([[6.0, 0.0], [2.0, 6.0]]))
        other.zero_()
        close(tangent_of(column), torch.zeros(2))
        other.normal_()
        close(tangent_of(other), torch.zeros(2, 2))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: x.clone(),
        lambda x: torch.zeros(2).copy_(x),
        lambda x: torch.zeros(2).add_(x),
        lambda x: torch.where(x > 0, x, x),
        lambda x: torch.cat([x]),
        lambda x: x.masked_fill(x > 100, 0.0),
    ],
)
def test_writes_to_a_result_leave_the_input_tangent(function):
    with fwAD.dual_level():
        d = dual()
        y = function(d)
        y *= 3
        close(tangent_of(d), torch.full((2,), 2.0))
        close(tangent_of(y), torch.full((2,), 6.0))


def test_an_earlier_view_sees_the_tangent_written_to_its_base():
    with fwAD.dual_level():
        base = torch.zeros(2, 2)
        view = base.t()
        base += fwAD.make_dual(torch.ones(2, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        close(tangent_of(view), torch.tensor([[1.0, 3.0], [2.0, 4.0]]))


def test_detach_no_grad_and_the_switch():
    with fwAD.dual_level():
        d = dual()
        assert tangent_of(d.detach() * 2) is None
        with torch.no_grad():
            close(tangent_of(d * 3), torch.full((2,), 6.0))
        with fwAD._set_fwd_grad_enabled(False):
            assert tangent_of(d * 3) is None
        d = d.clone()
        d.detach_()
        assert tangent_of(d) is None


def test_inference_mode():
    with torch.inference_mode(), fwAD.dual_level():
        d = dual()
        close(tangent_of(d.exp() @ d), (d.exp() * (d + 1)).sum().detach() * 2)
        d += 1
        assert d.is_inference()


def test_random_and_constant_results_have_zero_tangents():
    with fwAD.dual_level():
        d = fwAD.make_dual(torch.tensor([0.2, 0.4]), torch.ones(2))
        for made in (torch.bernoulli(d), torch.poisson(d), torch.normal(d, 1.0), d.floor()):
            close(tangent_of(made), torch.zeros(2))
        assert tangent_of(d > 1) is None and tangent_of(d.argmax()) is None


def test_out_is_refused():
    with fwAD.dual_level():
        d = dual()
        for target, argument in ((d, torch.ones(2)), (torch.ones(2), d)):
            with pytest.raises(NotImplementedError, match="add_out that does not support it because it is an out="):
                torch.add(argument, 1, out=target)


def test_printing():
    with fwAD.dual_level():
        assert repr(dual()) == "tensor([1., 2.], tangent=tensor([2., 2.]))"
    assert repr(torch.ones(1)) == "tensor([1.])"


def test_backward_meets_forward():
    x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    t = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    with fwAD.dual_level():
        d = fwAD.make_dual(x, t)
        out, tangent = fwAD.unpack_dual((d.sin() * d).sum())
        by_x, by_t = torch.autograd.grad(tangent, (x, t), retain_graph=True)
        close(by_t, x.cos() * x + x.sin())
        close(by_x, (2 * x.cos() - x.sin() * x) * t)
        (g,) = torch.autograd.grad(out, x)
        close(tangent_of(g), by_x)


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, y, factor):
        assert not fwAD._is_fwd_grad_enabled()
        ctx.save_for_forward(x, y)
        ctx.factor = factor
        return factor * x * y

    @staticmethod
    def jvp(ctx, x_t, y_t, nothing):
        assert nothing is None
        x, y = ctx.saved_tensors
        return ctx.factor * (x_t * y + x * y_t)


class Written(Function):
    wrong = False

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @classmethod
    def jvp(cls, ctx, t):
        return t * 2 if Written.wrong else t.mul_(2)


def test_custom_functions():
    x, y = torch.tensor(2.0), torch.tensor(3.0)
    with fwAD.dual_level():
        close(tangent_of(Scaled.apply(fwAD.make_dual(x, torch.tensor(5.0)), y, 4)), torch.tensor(60.0))
        d, t = dual(), torch.ones(2)
        d = fwAD.make_dual(torch.ones(2), t)
        assert Written.apply(d) is d and tangent_of(d) is t
        close(t, torch.full((2,), 2.0))
        Written.wrong = True
        try:
            with pytest.raises(RuntimeError, match="is not modifying the forward mode gradients inplace"):
                Written.apply(d)
        finally:
            Written.wrong = False


def test_gradcheck_in_forward_mode():
    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    z = torch.rand(2, dtype=torch.complex128, requires_grad=True)

    def fine(x, z):
        return x * z, z.abs(), torch.view_as_real(z) * x

    def wrong(x, z):
        if fwAD._current_level >= 0:
            primal, tangent = fwAD.unpack_dual(x)
            x = primal if tangent is None else fwAD.make_dual(primal, tangent * 1.1)
        return x * 2

    for fast in (False, True):
        assert gradcheck(fine, (x, z), check_forward_ad=True, check_batched_forward_grad=True, fast_mode=fast)
        with pytest.raises(RuntimeError, match="forward mode mismatch for output 0 with respect to input 0"):
            gradcheck(wrong, (x, z), check_forward_ad=True, fast_mode=fast)
    with pytest.raises(AssertionError, match="Expected at least one of"):
        gradcheck(fine, (x, z), check_backward_ad=False)


def test_jacobians_and_hessians_in_forward_mode():
    x, y = torch.rand(2, dtype=torch.float64), torch.rand(2, dtype=torch.float64)

    def f(x, y):
        return x * y.exp(), (x**2).sum() + y

    def g(x, y):
        return (x**2 * y.sin()).sum()

    wanted = functional.jacobian(f, (x, y))
    found = functional.jacobian(f, (x, y), vectorize=True, strategy="forward-mode")
    for a, b in zip(wanted, found, strict=True):
        close(a, b)
    found = functional.hessian(g, (x, y), vectorize=True, outer_jacobian_strategy="forward-mode")
    for a, b in zip(functional.hessian(g, (x, y)), found, strict=True):
        close(a, b)
    with pytest.raises(NotImplementedError, match="`create_graph=True` and `strategy"):
        functional.jacobian(f, (x, y), vectorize=True, strategy="forward-mode", create_graph=True)
    with pytest.raises(RuntimeError, match="`strict=True` and `strategy"):
        functional.jacobian(f, (x, y), vectorize=True, strategy="forward-mode", strict=True)


@pytest.mark.parametrize("which", [0, 1])
def test_running_statistics_have_no_derivative_beside_that_of_the_input(which):
    x, statistics = torch.rand(3, 2), [torch.rand(2), torch.rand(2)]
    with fwAD.dual_level():
        statistics[which] = fwAD.make_dual(statistics[which], torch.ones(2))
        torch.nn.functional.batch_norm(x, *statistics)
        with pytest.raises(RuntimeError, match="not differentiable wrt running_mean and running_var"):
            torch.nn.functional.batch_norm(fwAD.make_dual(x, torch.ones(3, 2)), *statistics)
