"""`torch.compile`: capture, replay, and training."""

from __future__ import annotations

import copy
import gc
import inspect
import sys
import threading
import types
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dynamo.captured_backward import _check_node_is_pure
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite._dynamo.exc import FailOnRecompileLimitHit, InvalidBackend, Unsupported


def same(a, b):
    return a.dtype is b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


def test_the_third_call_is_replayed():
    calls = []

    def f(x, y):
        return (x * 2 + y).tanh() - y.relu()

    frame = CompiledFunction(f, "f")
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    for _ in range(5):
        assert same(frame(x, y), f(x, y))
    assert frame.replays == 3 and not frame.reasons and not calls


def test_arguments_of_another_kind_are_captured_anew():
    def f(x, n=2, *, more=()):
        return x * n + len(more)

    frame = CompiledFunction(f, "f", dynamic=False)
    x = torch.randn(3, 4)
    kinds = [
        ((x,), {}), ((x, 3), {}), ((x, 3.0), {}), ((x, True), {}), ((x.t(),), {}), ((x.double(),), {}),
        ((x,), {"more": [1, 2]}), ((x[:2],), {}),
    ]  # fmt: skip
    for args, kwargs in kinds * 4:
        found, want = frame(*args, **kwargs), f(*args, **kwargs)
        assert same(found, want) and found.stride() == want.stride()
    assert frame.replays == 2 * len(kinds) and not frame.reasons


def test_too_many_kinds_run_as_they_are_written():
    frame = CompiledFunction(lambda x, n: x * n, "f", limit=3, dynamic=False)
    for n in range(3):
        frame(torch.ones(1), n)
    with pytest.warns(UserWarning, match=r"hit config.recompile_limit \(3\)"):
        found = frame(torch.ones(1), 3)
    assert found.item() == 3 and frame(torch.ones(1), 4).item() == 4
    for _ in range(3):
        assert frame(torch.ones(1), 2).item() == 2  # kinds that are known are replayed
    assert frame.replays == 2
    frame.reset()
    frame.limit = 1
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        frame(torch.ones(1), 0)
        with pytest.raises(FailOnRecompileLimitHit, match="recompile_limit"):
            frame(torch.ones(1), 1)


def test_an_odd_call_does_not_end_the_replays_of_others():
    def f(x, tell=False):
        if tell:
            print("here")
        return x + 1

    frame = CompiledFunction(f, "f")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(8):
            frame(torch.ones(1), i % 4 == 0)
    assert frame.replays == 4 and len(caught) == 1


def test_stances_where_something_is_new():
    frame = CompiledFunction(lambda x, n: x * n, "f", dynamic=False)
    for _ in range(3):
        frame(torch.ones(1), 2)
    with torch.compiler.set_stance("eager_on_recompile"):
        assert frame(torch.ones(1), 3).item() == 3 and frame(torch.ones(1), 2).item() == 2
    assert frame.replays == 2 and sum(map(len, frame.variants.values())) == 1
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="fail_on_recompile"):
        frame(torch.ones(1), 3)


def test_gradients_flow_through_one_node():
    def f(x, w):
        h = (x @ w).relu()
        return h.sum(), h * 2

    frame = CompiledFunction(f, "f")
    for _ in range(4):
        x, w = torch.randn(2, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)
        grads = []
        for function in (frame, f):
            a, b = function(x, w)
            grads.append(torch.autograd.grad(a + b.pow(2).sum(), (x, w)))
            a, b = function(x, w)
            grads.append(torch.autograd.grad(b.sum(), (x, w)))
            grads.append(torch.autograd.grad(function(x, w)[0], (w,)))
        assert all(same(g, h) for g, h in zip(sum(grads[:3], ()), sum(grads[3:], ()), strict=True))
    assert frame.replays == 10
    assert type(frame(x, w)[0].grad_fn).__name__ == "CompiledFunctionBackward"


def test_inputs_with_a_history_get_theirs():
    frame = CompiledFunction(lambda x: x.sin() * x, "f")
    for _ in range(3):
        leaf = torch.randn(4, requires_grad=True)
        frame(leaf * 2).sum().backward()
        found, leaf.grad = leaf.grad, None
        y = leaf * 2
        (y.sin() * y).sum().backward()
        assert same(found, leaf.grad)


def test_a_graph_is_freed_and_changes_are_noticed():
    frame = CompiledFunction(lambda x: x * x, "f")
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        y = frame(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
    y = frame(x)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_derivatives_of_derivatives():
    frame = CompiledFunction(lambda x, y: (x.sin() * y, x.exp()), "f")
    x, y = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for _ in range(4):
        assert torch.autograd.gradgradcheck(frame, (x, y))
        leaf = (x * 2).detach().requires_grad_()
        found = []
        for one in (frame, frame.function):
            (g,) = torch.autograd.grad(one(leaf * 3, y)[0].sum(), leaf, create_graph=True)
            found.append((g, *torch.autograd.grad(g.sum(), (leaf, y))))
        assert all(torch.allclose(a, b) for a, b in zip(*found, strict=True))
    drawn = CompiledFunction(lambda x: x.sin() * torch.rand(3), "f")
    for _ in range(3):
        z = drawn(leaf)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        torch.autograd.grad(z.sum(), leaf, create_graph=True)


def test_inference_mode():
    frame = CompiledFunction(lambda x: (x * 2, x.t()), "f")
    with torch.inference_mode():
        for _ in range(3):
            a, b = frame(torch.ones(2, 3))
            assert a.is_inference() and b.shape == (3, 2) and b.is_inference()
    assert frame.replays == 1 and not frame(torch.ones(2, 3))[0].is_inference()


def net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.25), nn.Flatten(), nn.LazyLinear(8), nn.GELU(),
        nn.Linear(8, 3),
    )  # fmt: skip


@pytest.mark.parametrize("inside", ["forward", "backward", "step"])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam"])
def test_training_gives_the_same_losses(inside, optimizer):
    torch.manual_seed(1)
    x, y = torch.randn(6, 1, 5, 5), torch.randint(0, 3, (6,))
    losses, states = [], []
    model = net()
    model(x)
    for compiled in (False, True):
        mine = copy.deepcopy(model)
        opt = getattr(torch.optim, optimizer)(mine.parameters(), lr=0.01)
        loss = nn.CrossEntropyLoss()
        forward = torch.compile(mine, fullgraph=True) if compiled and inside == "forward" else mine

        def step(forward=forward, opt=opt, loss=loss):
            opt.zero_grad()
            found = loss(forward(x), y)
            found.backward()
            if inside != "backward":
                opt.step()
            return found

        run = torch.compile(step, fullgraph=True) if compiled and inside != "forward" else step
        torch.manual_seed(2)
        losses.append([])
        for _ in range(8):
            losses[-1].append(run().item())
            if inside == "backward":
                opt.step()
        states.append([t.tolist() for t in mine.state_dict().values()])
    assert losses[0] == losses[1] and states[0] == states[1]


@pytest.mark.parametrize("make", [
    lambda: nn.LSTM(8, 16, 2, batch_first=True, dropout=0.1),
    lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
])  # fmt: skip
def test_sequences_with_clipped_gradients(make):
    losses = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model, x, y = make(), torch.randn(4, 6, 8), torch.randint(0, 4, (4,))
        opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(model=model, opt=opt, x=x, y=y):
            opt.zero_grad()
            out = model(x)
            found = nn.functional.cross_entropy((out[0] if isinstance(out, tuple) else out)[:, -1], y)
            found.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
            return found

        torch.compiler.reset()
        run = torch.compile(step, fullgraph=True) if compiled else step
        losses.append([run().item() for _ in range(8)])
    assert losses[0] == losses[1]


def test_gradients_accumulate_across_compiled_steps():
    w = torch.ones(3, requires_grad=True)

    def step(x):
        (w * x).sum().backward()

    compiled = torch.compile(step, fullgraph=True)
    for _ in range(6):
        compiled(torch.ones(3))
    assert w.grad.tolist() == [6.0] * 3 and w.grad._version == 5


def test_refusals_name_the_line():
    def f(x):
        print("here")
        return x

    with pytest.warns(UserWarning, match=r"f runs eagerly, because it calls print .*test_capture.py:\d+"):
        torch.compile(f)(torch.ones(1))
    with pytest.raises(Unsupported, match="it calls print"):
        torch.compile(f, fullgraph=True)(torch.ones(1))
    with pytest.raises(InvalidBackend, match="Invalid backend: 'nonsense'"):
        torch.compile(f, backend="nonsense")


def test_reads_are_branches():
    def f(x):
        return x * 2 if x.sum() > 0 else x - 1

    frame = CompiledFunction(f, "f", fullgraph=True)
    for value in (1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 1.0, -1.0):
        x = torch.full((2,), value)
        assert same(frame(x), f(x))
    assert frame.replays == 4
    frame.reset()
    for value in (1.0, -1.0) * 4:
        x = torch.full((2,), value)
        assert same(frame(x), f(x))
    assert frame.replays == 4


def test_modules_keep_their_names_and_state():
    model = net()
    model(torch.randn(2, 1, 5, 5))
    compiled = torch.compile(model)
    assert all(name.startswith("_orig_mod.") for name in compiled.state_dict())
    compiled.eval()
    assert not model.training and not compiled.training
    compiled.extra = 3
    assert model.extra == 3 and compiled.extra == 3
    again = copy.deepcopy(compiled)
    x = torch.randn(2, 1, 5, 5)
    for _ in range(3):
        assert same(again(x), model(x)) and same(compiled(x), model(x))


def test_other_methods_are_compiled_as_the_module_was():
    class Two(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).relu()

        def second(self, x, *, by=2):
            """Another of its methods."""
            return self(x) * by

    model = Two(3, 2)
    graphs = []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph

    x = torch.randn(4, 3)
    own = torch.compile(model, backend=compiler).dynamo_ctx(model.second)
    assert same(own(x), model.second(x)) and len(graphs) == 1
    second = torch.compile(model).dynamo_ctx(model.second)
    assert second.__doc__ == model.second.__doc__ and str(inspect.signature(second)) == "(x, *, by=2)"
    for _ in range(4):
        assert same(second(x, by=3), model.second(x, by=3))


def test_other_threads_are_left_alone():
    barrier = threading.Barrier(2)
    results = {}

    def f(x):
        for _ in range(20):
            x = x.sin() + x
        return x

    frame = CompiledFunction(f, "f")

    def work(name, value):
        barrier.wait()
        results[name] = [frame(torch.full((3,), value)).tolist() for _ in range(10)]

    threads = [threading.Thread(target=work, args=(n, v)) for n, v in ((0, 1.0), (1, 2.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: [f(torch.full((3,), 1.0)).tolist()] * 10, 1: [f(torch.full((3,), 2.0)).tolist()] * 10}


def test_modes_are_guards():
    def f(x):
        return (x * 3).requires_grad

    frame = CompiledFunction(f, "f")
    x = torch.ones(2, requires_grad=True)
    for _ in range(4):
        assert frame(x)
        with torch.no_grad():
            assert not frame(x)


def test_reachable_objects_are_guarded():
    layers = nn.ModuleList([nn.Linear(2, 2)])
    plain, names = [1.0], {"a": 2.0}

    def f(x):
        for layer in layers:
            x = layer(x)
        return x * sum(plain) + len(names)

    frame = CompiledFunction(f, "f")
    changes = [
        lambda: plain.append(3.0),
        lambda: names.update(b=1),
        lambda: layers.append(nn.Linear(2, 2)),
        lambda: layers[0].register_forward_hook(lambda module, args, out: out * 2),
        lambda: torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: out + 1),
        lambda: setattr(layers[1], "bias", None),
    ]
    x = torch.randn(3, 2)
    for change in changes:
        for _ in range(3):
            assert same(frame(x), f(x))
        handle = change()
        assert same(frame(x), f(x))
    torch.nn.modules.module._global_forward_hooks.clear()
    assert same(frame(x), f(x)) and handle is None and frame.replays == 11


def test_nothing_grows():
    w = torch.randn(16, 16, requires_grad=True)
    compiled = torch.compile(lambda x: (x @ w).relu().sum())
    counts = []
    for i in range(30):
        compiled(torch.randn(4, 16)).backward()
        w.grad = None
        if i in (9, 29):
            gc.collect()
            counts.append(len(gc.get_objects()))
    assert counts[1] - counts[0] < 20


def test_resets_and_stances():
    frame = CompiledFunction(lambda x: x + 1, "f")
    for _ in range(3):
        frame(torch.ones(1))
    assert frame.replays == 1
    with torch.compiler.set_stance("force_eager"):
        frame(torch.ones(1))
    assert frame.replays == 1
    torch.compiler.reset()
    assert frame.replays == 0 and not frame.variants
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert frame(torch.ones(1)).item() == 2


def test_backward_is_replayed_in_a_program_that_has_sparse_tensors_elsewhere():
    torch.eye(2).to_sparse()  # from here on backward passes ask whether gradients are sparse
    weight = torch.ones(3, requires_grad=True)

    def step(x):
        weight.grad = None
        (weight * x).sum().backward()
        return weight.grad

    run = torch.compile(step, fullgraph=True)
    for i in range(4):
        x = torch.arange(3.0) + i
        assert torch.equal(run(x), x)


@pytest.mark.parametrize("used", [[11], [0, 5], list(range(12))], ids=str)
def test_many_results_with_histories(used):
    frame = CompiledFunction(lambda x, w: [x * i + (w * i).sin() for i in range(12)], "f", fullgraph=True)
    for seed in range(4):
        torch.manual_seed(seed)
        x, w = torch.randn(5), torch.randn(5)
        grads = []
        for one in (frame, frame.function):
            a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
            found = one(a, b)
            grads.append(torch.autograd.grad([found[i] for i in used], [a, b], [torch.ones(5)] * len(used)))
        for got, want in zip(*grads, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)
    assert frame.replays == 2


@pytest.mark.parametrize("kind", ["fx", "onnx", "pt2"])
def test_graph_modules_are_captured(kind):
    """With and without gradients."""
    import io

    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    x = torch.randn(2, 3)
    if kind == "fx":
        graph = torch.fx.symbolic_trace(module)
    elif kind == "onnx":
        graph = torch.onnx.load(torch.onnx.export(module, (x,)).to_bytes())
    else:
        held = io.BytesIO()
        torch.export.save(torch.export.export(module, (x,)), held)
        held.seek(0)
        graph = torch.export.load(held).module()
    compiled = torch.compile(graph, fullgraph=True)
    for _ in range(4):
        torch.testing.assert_close(compiled(x), module(x))
    compiled(x).sum().backward()
    module(x).sum().backward()
    for got, want in zip(graph.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(got.grad, want.grad)
    with torch.no_grad():
        next(graph.parameters()).add_(1.0)
        next(module.parameters()).add_(1.0)
        for _ in range(4):
            torch.testing.assert_close(compiled(x), module(x))


def test_recompiled_graph_module_is_captured_anew():
    graph = torch.fx.symbolic_trace(lambda x: torch.relu(x))
    compiled, x = torch.compile(graph), torch.tensor([-1.0, 2.0])
    for _ in range(4):
        assert compiled(x).tolist() == [0, 2]
    node = next(n for n in graph.graph.nodes if n.op == "call_function")
    node.target = torch.neg
    graph.recompile()
    for _ in range(4):
        assert compiled(x).tolist() == [1, -2]


@pytest.mark.parametrize("first", [True, False])
def test_a_result_counts_versions_with_the_tensor_that_it_is_made_of(first):
    """`x.data` shares the memory, not the counter."""
    compiled = torch.compile(lambda a, b: (a if first else b).detach())
    x = torch.ones(3)
    arguments = (x, x.data) if first else (x.data, x)
    for _ in range(3):
        found = compiled(*arguments)
    x.add_(1)
    assert found._version == x._version == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + torch.tensor(3.0)).sin() * torch.tensor([1.0, 2.0]),
        lambda x: torch.where(x > 0, torch.tensor(1.0), torch.as_tensor(2.0)) + x,
        lambda x: torch.maximum(x, torch.full((), 0.5)) - torch.tensor(2),
    ],
)
def test_tensors_of_numbers_are_constants_of_the_program(function):
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(3):
        x = torch.randn(2)
        assert torch.equal(compiled(x), function(x))


def test_the_node_of_a_replay_is_no_part_of_a_capture():
    w = torch.ones(2, requires_grad=True)
    frame = CompiledFunction(lambda x: (x * w).exp(), "replayed")
    nodes = [frame(torch.ones(2)).grad_fn for _ in range(4)]
    assert nodes[-1].name() == "CompiledFunctionBackward"
    with pytest.raises(Unsupported, match="CompiledFunctionBackward has a part in it"):
        _check_node_is_pure(nodes[-1])
    _check_node_is_pure(nodes[0])  # that of the op, in a call that was not captured


class _Marked(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


def _asks_for_modules(x):
    return x * 2 if "math" in sys.modules else x


def _asks_for_a_class(x):
    return x * 2 if not isinstance(x, _Marked) else x


class _NoLength(tuple):
    def __len__(self):
        raise NotImplementedError


_SIGNATURE, _NUMBER, _PAIR = inspect.signature(_asks_for_a_class), np.int64(3), _NoLength((2, 3))


@pytest.mark.parametrize(
    "function",
    [
        _asks_for_modules,
        _asks_for_a_class,
        lambda x: x * len(_SIGNATURE.parameters),
        lambda x: x * int(_NUMBER),
        lambda x: x * _PAIR[1],
    ],
)
def test_constants_of_python_and_numpy_are_known(function):
    frame = CompiledFunction(function, "f")
    x = torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(8):
            assert torch.equal(frame(x), function(x))
    assert frame.replays > 2


def test_a_loaded_module_is_noticed():
    name = "module_that_this_test_loads"

    def f(x):
        return x * 2 if name in sys.modules else x

    frame = CompiledFunction(f, "f")
    try:
        for _ in range(6):
            assert frame(torch.ones(1)).item() == 1
        sys.modules[name] = types.ModuleType(name)
        for _ in range(4):
            assert frame(torch.ones(1)).item() == 2
    finally:
        sys.modules.pop(name, None)


class Cache:
    """Keys of text generation: memory that the first call makes, and a position in it."""

    def __init__(self, size):
        self.size, self.keys, self.position = size, None, torch.tensor(0)


def write(x, cache, first=False):
    if cache.keys is None:
        cache.keys = torch.zeros(cache.size, x.shape[1])
    cache.keys.index_copy_(0, torch.arange(x.shape[0]) + cache.position, x * 2)
    cache.position.add_(x.shape[0])
    return cache.keys.sum() + x.exp().sum()


def test_calls_with_new_objects_stay_compiled():
    frame = CompiledFunction(write, "write")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the call that makes the memory runs eagerly
        for n in range(12):  # recompile_limit is 8
            one, two = Cache(40), Cache(40)
            draws = [torch.full((rows, 3), float(n + k)) for k, rows in enumerate([4] + 30 * [1])]
            before = frame.replays
            for k, x in enumerate(draws):
                assert torch.equal(frame(x, one, first=not k), write(x, two))
            assert torch.equal(one.keys, two.keys) and torch.equal(one.position, two.position)
            assert frame.replays - before >= 28
