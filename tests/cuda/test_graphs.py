"""CUDA graphs: what is captured does not run, a replay runs it again on the same memory."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite import nn

from .fake_backend import POISON
from .training import losses

cuda = torch.cuda


def test_capture_and_replay(fake):
    x = torch.tensor([1.0, 2.0], device="cuda")
    graph = cuda.CUDAGraph()
    assert not cuda.is_current_stream_capturing()
    with cuda.graph(graph):
        assert (
            cuda.is_current_stream_capturing()
            and cuda.current_stream() != cuda.default_stream()
            and cuda.current_stream().is_capturing()
        )
        y = x * 2 + 1
        y.add_(10)
    assert not cuda.is_current_stream_capturing() and not cuda.current_stream().is_capturing()
    assert y.tolist() == [POISON, POISON]  # recorded, not run
    graph.replay()
    assert y.tolist() == [13, 15]
    x.copy_(torch.tensor([5.0, 6.0]))
    assert y.tolist() == [13, 15]
    graph.replay()
    assert y.tolist() == [21, 23]
    with cuda.stream(cuda.Stream()) as _:
        graph.replay()
        assert cuda.current_stream()._handle.log == [("graph", graph._graph)]


def test_capture_first_synchronizes_and_empties_the_cache(fake):
    """Unused memory is returned, and all earlier work has run."""
    x = torch.ones(1, device="cuda")
    assert not fake.runtime(0).idle()
    with cuda.graph(cuda.CUDAGraph()):
        assert fake.runtime(0).emptied == 1 and fake.runtime(0).idle()
        x + 1


def test_pools_and_modes_and_streams(fake):
    pool, side = cuda.graph_pool_handle(), cuda.Stream()
    x = torch.ones(1, device="cuda")
    first, second, third = cuda.CUDAGraph(), cuda.CUDAGraph(keep_graph=True), cuda.CUDAGraph()
    with cuda.graph(first, pool=pool, stream=side, capture_error_mode="thread_local"):
        assert cuda.current_stream() is side
        x + 1
    assert first.pool() is pool and first._graph.mode == "thread_local"
    with cuda.graph(second, pool=first.pool()):
        x + 2
    with cuda.graph(third):
        x + 3
    assert second.pool() is pool is not third.pool()
    second.instantiate()


def test_by_hand(fake):
    x, graph = torch.ones(2, device="cuda"), cuda.CUDAGraph()
    for call, words in (
        (graph.replay, "replay"),
        (graph.pool, "pool"),
        (graph.capture_end, "capture_end"),
        (graph.instantiate, "instantiate"),
    ):
        with pytest.raises(RuntimeError, match=rf"Called CUDAGraph::{words}.* without a preceding"):
            call()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        graph.capture_begin()
    with cuda.stream(cuda.Stream()):
        with pytest.raises(
            RuntimeError, match="Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got local"
        ):
            graph.capture_begin(capture_error_mode="local")
        graph.capture_begin()
        y = x + 1
        with (
            cuda.stream(cuda.Stream()),
            pytest.raises(RuntimeError, match="Capture must end on the same stream it began on"),
        ):
            graph.capture_end()
        graph.capture_end()
        with pytest.raises(RuntimeError, match="already owns a captured graph"):
            graph.capture_begin()
    graph.replay()
    assert y.tolist() == [2, 2]
    graph.reset()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with cuda.graph(graph):  # it can be used again
        z = x + 5
    graph.replay()
    assert z.tolist() == [6, 6]


def test_an_error_inside_ends_the_capture(fake):
    x = torch.ones(2, device="cuda")
    with pytest.raises(RuntimeError, match="operation not permitted when stream is capturing"):
        with cuda.graph(cuda.CUDAGraph()):
            (x + 1).sum().item()
    assert not cuda.is_current_stream_capturing() and cuda.current_stream() == cuda.default_stream()
    with pytest.raises(ZeroDivisionError):
        with cuda.graph(cuda.CUDAGraph()):
            1 / 0
    assert not cuda.is_current_stream_capturing()
    full = cuda.CUDAGraph()
    with cuda.graph(full):
        x + 1
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        with cuda.graph(full):
            pass
    assert cuda.current_stream() == cuda.default_stream()


def test_random_numbers_in_a_graph_are_refused(fake):
    x, graph = torch.ones(2, device="cuda"), cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="random numbers were drawn while a CUDA graph was recorded"):
        with cuda.graph(graph):
            x + torch.rand(2, device="cuda")
    with cuda.graph(graph):  # the graph is empty again
        x + 1


def test_a_training_step(fake):
    """Recorded once and replayed with new data it goes the way of the eager one."""

    def made():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).cuda()
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    eager, replayed = losses(made)
    assert replayed == pytest.approx(eager, rel=1e-6) and len(set(replayed)) == 6


# -- make_graphed_callables ---------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x, scale):
        h = self.linear(x) * scale
        return {"h": h, "more": (h.tanh(), h.detach() * 2)}


def gradients(net, x, scale, weights):
    for p in net.parameters():
        p.grad = None
    x = x.clone().requires_grad_()
    out = net(x, scale)
    ((out["h"] * weights).sum() + (out["more"][0] ** 2).sum()).backward()
    return [t.tolist() for t in (out["h"], *out["more"], x.grad, *(p.grad for p in net.parameters()))]


def test_a_module(fake):
    torch.manual_seed(0)
    eager, net = Net().cuda(), Net().cuda()
    net.load_state_dict(eager.state_dict())
    sample = (torch.randn(4, 3).cuda().requires_grad_(), torch.ones(2).cuda())
    returned = cuda.make_graphed_callables(net, sample)
    assert returned is net
    kernels = sum(len(s.log) for s in fake.runtime(0).streams.values())
    for _ in range(3):
        x, scale, weights = torch.randn(4, 3).cuda(), torch.randn(2).cuda(), torch.randn(4, 2).cuda()
        for got, want in zip(gradients(net, x, scale, weights), gradients(eager, x, scale, weights), strict=True):
            torch.testing.assert_close(torch.tensor(got), torch.tensor(want))
    replays = [graph for s in fake.runtime(0).streams.values() for what, graph in s.log if what == "graph"]
    assert len(replays) == 6 and len(set(replays)) == 2 and kernels
    net.eval()  # recorded in training: eval runs the module itself
    x, scale = torch.randn(4, 3).cuda(), torch.randn(2).cuda()
    assert net(x, scale)["h"].tolist() == eager.eval()(x, scale)["h"].tolist()
    assert sum(what == "graph" for s in fake.runtime(0).streams.values() for what, _ in s.log) == 6
    net.train()
    with pytest.raises(RuntimeError, match="recorded with 2 tensor arguments, but 1 were given"):
        net(x)


def test_gradients_add_up_over_replays(fake):
    layer = nn.Linear(2, 1, bias=False).cuda()
    layer = cuda.make_graphed_callables(layer, (torch.ones(3, 2).cuda().requires_grad_(),))
    x = [torch.full((3, 2), n).cuda().requires_grad_() for n in (1.0, 10.0, 100.0)]
    for given in x:
        layer(given).sum().backward()
    assert layer.weight.grad.tolist() == [[333, 333]]
    layer.zero_grad()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[5.0, 6.0]]))
    layer(x[1]).sum().backward()
    assert layer.weight.grad.tolist() == [[30, 30]]
    old = x[0].grad.tolist()
    assert (
        x[1].grad.tolist() == [pytest.approx([a + 5, b + 6]) for a, b in old] and x[2].grad.tolist() == old
    )  # each has its own


def test_several_callables_share_memory_and_order(fake):
    first, second = nn.Linear(2, 2).cuda(), lambda h: h.sin() * 3
    x = torch.randn(4, 2).cuda()
    want = second(first(x)).tolist()
    pool = cuda.graph_pool_handle()
    one, two = cuda.make_graphed_callables(
        (first, second), ((x,), (torch.ones(4, 2).cuda().requires_grad_(),)), num_warmup_iters=1, pool=pool
    )
    out = two(one(x))
    torch.testing.assert_close(torch.tensor(out.tolist()), torch.tensor(want))
    out.sum().backward()
    assert first.weight.grad is not None and out.requires_grad
    graphs = [graph for what, graph in fake.runtime(0).first.log if what == "graph"]
    assert len(graphs) == 4 and {id(g.pool) for g in graphs} == {id(pool)}


def test_without_gradients(fake):
    run = cuda.make_graphed_callables(lambda a, b: a * b + 1, (torch.ones(2).cuda(), torch.ones(2).cuda()))
    out = run(torch.tensor([2.0, 3.0]).cuda(), torch.tensor([4.0, 5.0]).cuda())
    assert out.tolist() == [9, 16] and not out.requires_grad


def test_make_graphed_callables_rejects_hooks_and_wrong_arguments(fake):
    x = torch.ones(2, 2).cuda()
    hooked = nn.Linear(2, 2).cuda()
    hooked.register_forward_hook(lambda *_: None)
    with pytest.raises(AssertionError, match="Modules must not have hooks registered at the time they are passed"):
        cuda.make_graphed_callables(hooked, (x,))
    buffered = nn.Linear(2, 2).cuda()
    buffered.register_buffer("b", torch.ones(1).cuda().requires_grad_())
    with pytest.raises(AssertionError, match="only parameters may be trainable"):
        cuda.make_graphed_callables(buffered, (x,))
    with pytest.raises(AssertionError, match="must contain only Tensors"):
        cuda.make_graphed_callables(lambda a, n: a * n, (x, 2))
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="does not support the autocast caching"):
        cuda.make_graphed_callables(nn.Linear(2, 2).cuda(), (x,))
    unused = lambda a, b: a * 2
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        cuda.make_graphed_callables(unused, (x.clone().requires_grad_(), x.clone().requires_grad_()))
    run = cuda.make_graphed_callables(
        unused, (x.clone().requires_grad_(), x.clone().requires_grad_()), allow_unused_input=True
    )
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    run(a, b).sum().backward()
    assert a.grad.tolist() == [[2, 2], [2, 2]] and b.grad is None


# -- optimizers ------------------------------------------------------------------------------------


def stepped(optimizer, *replays):
    """The optimizer's step recorded after an ordinary one, and replayed."""
    optimizer.step()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        optimizer.step()
    for _ in range(*replays):
        graph.replay()


@pytest.mark.parametrize("cls", [torch.optim.Adam, torch.optim.AdamW])
def test_adam_counts_its_steps_on_the_device(fake, cls):
    def made(**options):
        p, other = (
            torch.tensor([1.0, -2.0, 3.0], device="cuda", requires_grad=True),
            torch.ones(2, 2, device="cuda", requires_grad=True),
        )
        p.grad, other.grad = p.detach() * 2, torch.ones(2, 2, device="cuda")
        return p, cls([p, other], lr=0.1, **options)

    want, optimizer = made()
    for _ in range(4):
        optimizer.step()
    p, optimizer = made(capturable=True)
    stepped(optimizer, 3)
    assert (
        p.tolist() == pytest.approx(want.tolist(), rel=1e-5)
        and optimizer.state[p]["step"].tolist() == 4
        and optimizer.state[p]["step"].is_cuda
    )


def test_steps_that_a_graph_would_repeat_are_refused(fake):
    p = torch.ones(2, device="cuda", requires_grad=True)
    p.grad = torch.ones(2, device="cuda")
    with pytest.raises(
        RuntimeError,
        match="Attempting CUDA graph capture of step.. for an instance of Adam but param_groups' capturable is False.",
    ):
        stepped(torch.optim.Adam([p]), 1)
    before = p.tolist()
    stepped(torch.optim.SGD([p], lr=0.5), 2)
    assert p.tolist() == [n - 1.5 for n in before]
