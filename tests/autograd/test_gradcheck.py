"""The checks of `gradcheck` and `gradgradcheck` beyond the comparison with differences."""

from __future__ import annotations

import pytest

import torchlite as torch

gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
GradcheckError = torch.autograd.gradcheck.__globals__["GradcheckError"]


def _inputs(*shapes):
    torch.manual_seed(0)
    return tuple(torch.rand(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


def _function(backward, forward=lambda ctx, x: x.clone()):
    """A Function of one tensor with this backward, and its number of passes."""

    class Identity(torch.autograd.Function):
        passes = 0

        @staticmethod
        def forward(ctx, x):
            return forward(ctx, x)

        @staticmethod
        def backward(ctx, *g):
            Identity.passes += 1
            return backward(Identity.passes, *g)

    return Identity.apply


def test_backward_that_differs_from_pass_to_pass():
    def f(x):
        return _function(lambda n, g: g * (1 + 1e-7 * n))(x)

    with pytest.raises(GradcheckError, match="Backward is not reentrant.*tolerance for nondeterminism was 0.0"):
        gradcheck(f, _inputs((3, 2)))
    assert not gradcheck(f, _inputs((3, 2)), raise_exception=False)
    assert gradcheck(f, _inputs((3, 2)), nondet_tol=1e-3)


def test_backward_that_does_not_multiply_by_the_gradient():
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(_function(lambda n, g: g + 1e-9), _inputs((3, 2)))


def _two(ctx, x):
    ctx.set_materialize_grads(False)
    return x.clone(), x * 2


def test_outputs_without_gradient():
    def of_none(n, a, b):
        if a is None or b is None:
            raise RuntimeError("no gradient")
        return a + 2 * b

    with pytest.raises(GradcheckError, match="Expected backward function to handle undefined output grads"):
        gradcheck(_function(of_none, _two), _inputs((2,)))
    assert gradcheck(_function(of_none, _two), _inputs((2,)), check_undefined_grad=False)


def test_gradients_of_none_that_are_not_zero():
    def ones(n, a, b):
        return (torch.ones(2, dtype=torch.float64) if a is None else a) + 2 * (0 if b is None else b)

    with pytest.raises(GradcheckError, match="Expected all input grads to be undefined or zero"):
        gradcheck(_function(ones, _two), _inputs((2,)))


def test_batched_gradients():
    assert gradcheck(torch.mm, _inputs((3, 2), (2, 2)), check_batched_grad=True)

    def reads(n, g):
        return g * (2 if g.sum().item() > 1e9 else 1)

    with pytest.raises(GradcheckError, match="While computing batched gradients, got: vmap"):
        gradcheck(_function(reads), _inputs((2,)), check_batched_grad=True)
    assert gradcheck(_function(reads), _inputs((2,)))


@pytest.mark.parametrize("fast_mode", [False, True])
def test_forward_over_reverse(fast_mode):
    assert gradgradcheck(torch.mm, _inputs((3, 2), (2, 2)), check_fwd_over_rev=True, fast_mode=fast_mode)
    z = torch.rand(3, dtype=torch.complex128, requires_grad=True)
    assert gradgradcheck(torch.tanh, (z,), check_fwd_over_rev=True, fast_mode=fast_mode)


def test_forward_over_reverse_alone():
    calls = []

    class Cube(torch.autograd.Function):
        """Its second derivative is wrong in forward mode alone."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            calls.append(x)
            return _Square.apply(x) * g * 3

    class _Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx, t):
            return 5 * ctx.saved_tensors[0] * t

    x = _inputs((2,))
    assert gradgradcheck(Cube.apply, x)
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch|dual|forward"):
        gradgradcheck(_Square.apply, x, check_fwd_over_rev=True)
        gradcheck(_Square.apply, x, check_forward_ad=True)
    assert calls


def test_gradgradcheck_requires_a_mode():
    with pytest.raises(AssertionError, match="at least one of check_fwd_over_rev or check_rev_over_rev"):
        gradgradcheck(torch.tanh, _inputs((2,)), check_rev_over_rev=False)
    for name in ("check_undefined_grad", "check_batched_grad"):
        options = {"check_undefined_grad": False, name: True}
        with pytest.raises(AssertionError, match=f"Setting {name}=True requires check_rev_over_rev"):
            gradgradcheck(torch.tanh, _inputs((2,)), check_fwd_over_rev=True, check_rev_over_rev=False, **options)
    assert gradgradcheck(
        torch.tanh, _inputs((2,)), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False
    )


@pytest.mark.parametrize("gaps", [False, True])
def test_gradients_with_gaps_in_memory(gaps):
    seen = []

    def f(x):
        out = x * 2
        out.register_hook(lambda g: seen.append(g.is_contiguous()))
        return out

    assert gradgradcheck(f, _inputs((3, 2)), gen_non_contig_grad_outputs=gaps)
    assert (False in seen) == gaps
