"""The engine: backward, grad, hooks, freed graphs, depth."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import torchlite as torch
from torchlite._dispatch import table_of


def leaf(values, device):
    return torch.tensor(values, dtype=torch.float64, device=device, requires_grad=True)


def test_gradients_accumulate(device):
    x = leaf([1.0, 2.0], device)
    for _ in range(2):
        (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_a_value_used_twice_gets_the_sum(device):
    x = leaf(3.0, device)
    y = x * 2
    (y * y + y).backward()
    assert x.grad.item() == 2 * (2 * 6 + 1)


def test_grad_returns_and_leaves_dot_grad_alone(device):
    x, w = leaf(2.0, device), leaf(5.0, device)
    (g,) = torch.autograd.grad(x * w, x)
    assert g.item() == 5.0 and x.grad is None and w.grad is None


def test_grad_of_a_non_leaf(device):
    x = leaf(2.0, device)
    y = x * x
    (g,) = torch.autograd.grad(y * y, y)
    assert g.item() == 8.0


def test_unused_inputs(device):
    x, w = leaf(2.0, device), leaf(1.0, device)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(x * 2, [x, w])
    assert torch.autograd.grad(x * 2, [x, w], allow_unused=True)[1] is None
    assert torch.autograd.grad(x * 2, [x, w], materialize_grads=True)[1].item() == 0


def test_third_order_from_one_formula(device):
    x = leaf(2.0, device)
    y = x**4
    for expected in (32.0, 48.0, 48.0, 24.0):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(expected)


def test_second_backward_is_an_error_unless_retained(device):
    x = leaf([1.0], device)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_backward_needs_a_scalar_or_a_gradient(device):
    x = leaf([1.0, 2.0], device)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(torch.ones(3, dtype=torch.float64, device=device))
    (x * 2).backward(torch.tensor([1.0, 10.0], dtype=torch.float64, device=device))
    assert x.grad.tolist() == [2.0, 20.0]


def test_backward_without_history(device):
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.ones(1, device=device).backward()


def test_gradients_do_not_share_memory(device):
    x, w = leaf([1.0, 2.0], device), leaf([3.0, 4.0], device)
    (x + w).sum().backward()
    x.grad.mul_(10)
    assert w.grad.tolist() == [1.0, 1.0]
    given = torch.ones(2, dtype=torch.float64, device=device)
    x.grad = None
    (x + 0).backward(given)
    x.grad.zero_()
    assert given.tolist() == [1.0, 1.0]


def test_accumulation_is_in_place_and_hooks_may_keep_gradients(device):
    x = leaf([1.0, 2.0], device)
    (x * 3).sum().backward()
    same, shared = x.grad, x.grad.detach()
    (x * 3).sum().backward()
    assert x.grad is same and shared.tolist() == [6.0, 6.0]
    kept = []
    for tensor in (x, y := x + 0):
        tensor.register_hook(lambda g: kept.append(g))
    x.grad = None
    y.backward(torch.ones_like(y))
    x.grad.zero_()
    assert [g.tolist() for g in kept] == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("shared", ["nothing", "a row", "turned"])
def test_a_gradient_is_added_to_where_it_lies(device, shared):
    x = torch.ones(3, 2, device=device, requires_grad=True)
    whole = torch.arange(8.0, device=device).reshape(4, 2)
    grad = {
        "nothing": lambda: whole[:3].clone(),
        "a row": lambda: whole[1:],
        "turned": lambda: torch.arange(6.0, device=device).reshape(2, 3).t(),
    }[shared]()
    x.grad, before, version = grad, grad.tolist(), grad._version
    (x * 2).sum().backward()
    assert x.grad is grad
    assert grad.tolist() == [[n + 2 for n in row] for row in before]
    assert grad._version == version + 1
    if shared == "a row":
        assert whole.tolist() == [[0.0, 1.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]


def test_a_gradient_with_elements_in_one_place_is_refused(device):
    x = torch.ones(3, 2, device=device, requires_grad=True)
    x.grad = torch.ones(1, 2, device=device).expand(3, 2)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        (x * 2).sum().backward()


def test_tensor_hooks_change_gradients_and_can_be_removed(device):
    x = leaf([1.0, 2.0], device)
    y = x * 3
    handle = y.register_hook(lambda g: g * 2)
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [6.0, 6.0]
    handle.remove()
    x.grad = None
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and seen == [[3.0, 3.0]]


def test_nodes_that_keep_no_tensors_run_again(device):
    x = torch.ones(2, device=device, requires_grad=True)
    y = x.half().reshape(2, 1)
    for _ in range(2):
        y.sum(0).backward(torch.ones(1, device=device, dtype=torch.float16))
    assert x.grad.tolist() == [2, 2]


def test_node_hooks_and_retain_grad(device):
    x = leaf([1.0, 2.0], device)
    y = x * 3
    y.retain_grad()
    calls = []
    y.grad_fn.register_hook(lambda gi, go: calls.append((gi[0].tolist(), go[0].tolist())))
    y.grad_fn.register_prehook(lambda go: (go[0] * 2,))
    y.sum().backward()
    assert calls == [([6.0, 6.0], [2.0, 2.0])] and x.grad.tolist() == [6.0, 6.0]
    assert y.grad is not None


def test_post_accumulate_hook(device):
    x = leaf([1.0], device)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    (x * 5).sum().backward()
    assert seen == [5.0]


def test_grad_modes_nest_and_are_per_thread(device):
    x = leaf([1.0], device)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        other = []
        thread = threading.Thread(target=lambda: other.append((x * 2).requires_grad))
        thread.start()
        thread.join()
        assert other == [True]
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()

    @torch.no_grad()
    def off():
        return torch.is_grad_enabled()

    assert not off() and torch.is_grad_enabled()


def test_the_mode_is_restored_after_an_error():
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("length", [100_000])
def test_deep_chain(device, length):
    """Neither the run nor the destruction of a long chain recurses."""
    x = leaf([1.0], device)
    y = x
    for _ in range(length):
        y = y + 1
    y.sum().backward()
    assert x.grad.item() == 1.0
    del y
    gc.collect()


def test_backward_frees_saved_tensors(device):
    x = leaf([1.0, 2.0], device)
    y = x.exp()
    z = (y * y).sum()
    kept = weakref.ref(y)
    del y
    assert kept() is not None
    z.backward()
    assert kept() is None


def test_outputs_form_no_reference_cycle(device):
    x = leaf([1.0, 2.0], device)
    gc.collect()
    gc.disable()
    try:
        y = x.exp().tanh()
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_backward_with_inputs_accumulates_only_there(device):
    x, w = leaf(2.0, device), leaf(3.0, device)
    (x * w).backward(inputs=[x])
    assert x.grad.item() == 3.0 and w.grad is None


def test_requires_grad_rules(device):
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        torch.ones(2, dtype=torch.int64, device=device).requires_grad_()
    y = leaf([1.0], device) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)


def test_next_functions_walk_to_the_leaves(device):
    x = leaf([1.0], device)
    y = (x * 2).exp()
    assert y.grad_fn.name() == "ExpBackward0"
    multiply = y.grad_fn.next_functions[0][0]
    assert multiply.name() == "MulBackward0"
    assert multiply.next_functions[0][0].variable is x


def test_broadcast_gradients_are_summed_by_the_engine(device):
    x = torch.ones(3, 1, dtype=torch.float64, device=device, requires_grad=True)
    w = torch.ones(4, dtype=torch.float64, device=device, requires_grad=True)
    (x + w).sum().backward()
    assert x.grad.tolist() == [[4.0]] * 3 and w.grad.tolist() == [3.0] * 4


def test_many_threads_build_and_run_graphs(device):
    w = torch.ones(8, dtype=torch.float64, device=device)
    results = []

    def work(k):
        x = (w * k).requires_grad_()
        for _ in range(20):
            x.grad = None
            (x * x).sum().backward()
        results.append((k, x.grad[0].item()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [(k, 2.0 * k) for k in range(8)]


def test_gradcheck_keeps_its_name_when_its_module_is_imported():
    import importlib

    importlib.import_module("torchlite.autograd.gradcheck")
    assert torch.autograd.gradcheck(torch.sin, (torch.rand(2, dtype=torch.float64, requires_grad=True),))


def test_kernels_for_large_arrays_serve_ops_of_several_results(monkeypatch):
    large, served = table_of(torch.device("cpu")).large, []
    kernel = large._batch_norm_backward
    monkeypatch.setattr(large, "_batch_norm_backward", lambda *args: served.append(args[0].shape) or kernel(*args))
    x = torch.randn(4, 8, 128, 128, requires_grad=True)
    torch.nn.functional.batch_norm(x, None, None, training=True).sum().backward()
    assert served == [(4, 8, 128, 128)]


def test_accumulation_into_a_gradient_whose_elements_share_places(device):
    p = leaf([1.0, 2.0, 3.0], device)
    p.grad = torch.zeros(1, dtype=torch.float64, device=device).expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        (p * p).sum().backward()
    flat = torch.zeros(6, dtype=torch.float64, device=device)  # a gradient in a larger buffer, as DDP has it
    p.grad = flat[::2]
    for _ in range(2):
        (p * p).sum().backward()
    assert flat.tolist() == [4.0, 0.0, 8.0, 0.0, 12.0, 0.0] and p.grad._base is flat


def test_nodes_and_leaves_that_a_pass_runs():
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    product, other = x * 2, y * 3
    seen = []

    def look(_):
        nodes = [product.grad_fn, other.grad_fn]
        seen.append([torch.autograd.graph._will_engine_execute_node(node) for node in nodes])

    total = (product + other).sum()
    total.register_hook(look)
    total.backward(retain_graph=True, inputs=[x])
    torch.autograd.grad(total, y, retain_graph=True)
    total.backward()
    assert seen == [[True, False], [False, True], [True, True]]


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_saved_tensor_that_was_written_to(create_graph, device):
    x, w = leaf([1.0, 2.0], device), leaf([3.0, 4.0], device)
    for result in ((x * w).sum(), (x.exp() * w).sum(), (x / w).sum()):
        with torch.no_grad():
            w.add_(0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(result, x, create_graph=create_graph)
