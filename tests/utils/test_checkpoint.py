"""Activation checkpoints: recomputation, early stop, and saved results."""

from __future__ import annotations

import contextlib
import functools
import warnings

import pytest

import torchlite as torch
from torchlite.autograd import Function
from torchlite.utils import _python_dispatch
from torchlite.utils import checkpoint as checkpoint_module
from torchlite.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def leaf(device, *shape):
    return torch.ones(shape, device=device, requires_grad=True)


class Counted:
    """A function that counts its calls and how many came to their end."""

    def __init__(self):
        self.begun = self.ended = 0

    def __call__(self, x):
        self.begun += 1
        y = x.sin().cos().clone()
        self.ended += 1
        return y


def test_recomputation_stops_early(device):
    for stop in (True, False):
        part = Counted()
        with set_checkpoint_early_stop(stop):
            y = checkpoint(part, leaf(device, 2), use_reentrant=False)
        y.sum().backward()
        assert (part.begun, part.ended) == (2, 1 if stop else 2)


def test_a_node_that_is_looked_at_runs_the_part_again(device):
    part = Counted()
    y = checkpoint(lambda x: part(x).exp(), leaf(device, 2), use_reentrant=False)
    for runs in (2, 3):
        assert y.grad_fn._saved_result.tolist() == y.tolist() and part.begun == runs
    y.sum().backward()
    assert part.begun == 4
    with pytest.raises(RuntimeError, match="already been freed"):
        y.grad_fn._saved_result


@pytest.mark.parametrize("stop", [True, False])
def test_parts_of_parts(device, stop):
    def inner(x):
        return x.sin().exp()

    def outer(x):
        return checkpoint(inner, checkpoint(inner, x, use_reentrant=False), use_reentrant=False).cos()

    x = leaf(device, 3)
    (expected,) = torch.autograd.grad(inner(inner(x)).cos().sum(), x)
    with set_checkpoint_early_stop(stop):
        (found,) = torch.autograd.grad(checkpoint(outer, x, use_reentrant=False).sum(), x)
    assert torch.allclose(found, expected)


def test_each_tensor_is_taken_once_in_a_pass(device):
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert len(ctx.saved_tensors) == 1
            with pytest.raises(CheckpointError, match="already unpacked once"):
                ctx.saved_tensors
            return g * 2

    x = leaf(device, 2)
    checkpoint(lambda x: Twice.apply(x.exp()), x, use_reentrant=False).sum().backward()
    assert torch.allclose(x.grad, 2 * x.detach().exp())


def test_refusals(device):
    x = leaf(device, 2)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        y = checkpoint(torch.exp, x)
    assert y.grad_fn.name() == "CheckpointFunctionBackward"
    with pytest.warns(UserWarning, match="checkpoint_sequential: the use_reentrant parameter"):
        checkpoint_sequential([torch.nn.Tanh()], 1, x)
    with pytest.raises(RuntimeError, match="incompatible with .grad"):
        torch.autograd.grad(y.sum(), x)
    y = checkpoint(torch.exp, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="incompatible with .grad"):
        torch.autograd.backward(y.sum(), inputs=[x])
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(torch.exp, x.detach(), use_reentrant=True)
    with pytest.raises(ValueError, match=r"determinism_check should be one of \['default', 'none'\], but got x"):
        checkpoint(torch.exp, x, use_reentrant=False, determinism_check="x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        z = checkpoint(lambda a, b: a, x.detach(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        z.sum().backward()


def test_another_second_run(device):
    runs = []

    def part(x):
        runs.append(None)
        return x.exp() if len(runs) % 2 else x[:1].exp()

    words = "Recomputed values for the following tensors have different metadata.*'shape': torch.Size"
    with pytest.raises(CheckpointError, match="(?s)" + words):
        checkpoint(part, leaf(device, 2), use_reentrant=False).sum().backward()
    with set_checkpoint_debug_enabled(True), pytest.raises(CheckpointError, match="Ops of the recomputation: .*exp"):
        checkpoint(part, leaf(device, 2), use_reentrant=False).sum().backward()


class Noted:
    """A policy that saves products, and records its calls."""

    def __init__(self, kept):
        self.kept, self.asked = kept, []

    def __call__(self, ctx, op, *args, **kwargs):
        self.asked.append((ctx.is_recompute, str(op)))
        return CheckpointPolicy.MUST_SAVE if op == self.kept else CheckpointPolicy.PREFER_RECOMPUTE


def selective(policy, **options):
    return functools.partial(create_selective_checkpoint_contexts, policy, **options)


def test_selected_results_are_saved(device):
    def part(x, w):
        return (torch.nn.functional.relu(x @ w) @ w).exp()

    x, w = leaf(device, 3, 3), leaf(device, 3, 3)
    expected = torch.autograd.grad(part(x, w).sum(), (x, w))
    policy = Noted(torch.ops.aten.mm.default)
    for chosen in ([torch.ops.aten.mm.default], policy, lambda ctx, op, *a, **k: op is torch.ops.aten.mm.default):
        y = checkpoint(part, x, w, use_reentrant=False, context_fn=selective(chosen))
        for f, e in zip(torch.autograd.grad(y.sum(), (x, w)), expected, strict=True):
            assert torch.allclose(f, e)
    assert (False, "aten.mm.default") in policy.asked and (True, "aten.mm.default") in policy.asked
    assert torch.ops.aten.mm(x, w).tolist() == (x @ w).tolist()


def test_saved_results_of_ops_with_several(device):
    def part(x):
        a, b = torch.var_mean(x)
        values, _ = x.max(0)
        return a * b * values.sum()

    x = torch.arange(4.0, device=device).view(2, 2).requires_grad_()
    (expected,) = torch.autograd.grad(part(x), x)
    keep = [torch.ops.aten.var_mean.correction, torch.ops.aten.max.dim]
    (found,) = torch.autograd.grad(checkpoint(part, x, use_reentrant=False, context_fn=selective(keep)), x)
    assert torch.allclose(found, expected)


def test_saved_results_are_read_once_and_unchanged(device):
    keep = [torch.ops.aten.sin.default]
    y = checkpoint(lambda x: x.sin().cos().exp(), leaf(device, 2), use_reentrant=False, context_fn=selective(keep))
    y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.sum().backward()

    def part(x):
        return x.sin().mul_(2).cos().exp()

    y = checkpoint(part, leaf(device, 2), use_reentrant=False, context_fn=selective(keep))
    with pytest.raises(RuntimeError, match="has been mutated"):
        y.sum().backward()
    allowed = selective(keep, allow_cache_entry_mutation=True)
    checkpoint(part, leaf(device, 2), use_reentrant=False, context_fn=allowed).sum().backward()
    for wrong, error, words in (
        ([2], ValueError, "to be an OpOverload"), ([torch.ops.aten.sin], ValueError, "update the OpOverloadPacket"),
        (2, TypeError, "either a function or a list of ops"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            create_selective_checkpoint_contexts(wrong)


def test_checkpoint_helpers():
    from torchlite.utils.checkpoint import check_backward_validity, detach_variable

    x = torch.ones(2, requires_grad=True) * 2
    found = detach_variable((x, torch.ones(1), "text"))
    assert found[0].is_leaf and found[0].requires_grad and not found[1].requires_grad and found[2] == "text"
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported. Got Unsupported input type: list"):
        detach_variable([x])
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        check_backward_validity([torch.ones(1)])


def test_groups_of_backward_passes_run_a_part_again_once():
    runs = []

    def part(x):
        runs.append(x)
        return x.exp().sin(), (x * 2).cos()

    x = torch.ones(2, requires_grad=True)
    for group, count in ((GraphExecGroup(), 2), (contextlib.nullcontext(), 3)):
        runs.clear()
        a, b = checkpoint(part, x, use_reentrant=False)
        with group:
            a.sum().backward()
            b.sum().backward()
        assert len(runs) == count
    (expected,) = torch.autograd.grad(sum(t.sum() for t in part(x)), x)
    assert torch.allclose(x.grad, 2 * expected)
    a, _ = checkpoint(part, x, use_reentrant=False)
    with GraphExecGroup(), pytest.raises(CheckpointError, match="Performing two backward calls that overlap"):
        a.sum().backward(retain_graph=True)
        a.sum().backward()
    with (
        GraphExecGroup(),
        pytest.raises(RuntimeError, match="GraphExecGroup contexts cannot be nested"),
        GraphExecGroup(),
    ):
        pass


def test_custom_op_results_are_saved():
    runs = []

    @torch.library.custom_op("checkpoints::sine", mutates_args=())
    def sine(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        runs.append(x)
        return x.sin(), 2

    sine.register_autograd(
        lambda ctx, g, _: g * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )

    def part(x):
        return (sine(x)[0] * x.exp()).sin()

    x = torch.ones(2, requires_grad=True)
    (expected,) = torch.autograd.grad((x.sin() * x.exp()).sin().sum(), x)
    kept, other = torch.ops.checkpoints.sine.default, torch.ops.aten.exp.default
    for keep, count in ((kept, 1), (other, 2)):
        runs.clear()
        out = checkpoint(part, x, use_reentrant=False, context_fn=selective([keep]))
        (found,) = torch.autograd.grad(out.sum(), x, retain_graph=True)
        assert len(runs) == count and torch.allclose(found, expected)
        with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
            torch.autograd.grad(out.sum(), x)


def test_programs_see_the_mode_and_what_it_keeps():
    found = []

    def part(x):
        mode = _python_dispatch._get_current_dispatch_mode()
        y = x.exp()
        found.append((type(mode), [kept.val for kept in mode.storage[torch.ops.aten.exp.default]]))
        return y.sin()

    keep = selective([torch.ops.aten.exp.default])
    x = torch.ones(2, requires_grad=True)
    checkpoint(part, x, use_reentrant=False, context_fn=keep).sum().backward()
    (first, (kept,)), (second, rest) = found
    assert first is checkpoint_module._CachingTorchDispatchMode and second is checkpoint_module._CachedTorchDispatchMode
    assert torch.equal(kept, x.exp()) and not kept.requires_grad and rest == []
