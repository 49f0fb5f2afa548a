"""Distributed autograd: `gradients.py CASE,... PORT RANK SIZE`. Rank 0 runs the cases, the others answer."""

from __future__ import annotations

import sys

import pytest

import torchlite as torch
import torchlite.distributed.autograd as dist_autograd
import torchlite.distributed.rpc as rpc
from torchlite.autograd import Function
from torchlite.distributed.rpc import _autograd_context

WEIGHT = torch.full((2, 2), 0.5, requires_grad=True)


def times_weight(x):
    return x @ WEIGHT


def weight_gradient(context_id):
    return dist_autograd.get_gradients(context_id)[WEIGHT]


def change(x):
    x += 1  # a tensor that came may be changed in place
    return x * x


def relay(x, *others):
    """The product with each worker's weight in turn; this worker's first."""
    x = times_weight(x)
    return rpc.rpc_sync(others[0], relay, (x, *others[1:])) if others else x


def both(x, y):
    return {"sum": x + y, "other": [y * 2, 3]}


class Failing(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("no gradient here")


def fail_later(x):
    return Failing.apply(x)


def contexts():
    return len(_autograd_context._contexts)


def sizes(context_id):
    context = dist_autograd._retrieve_context(context_id)
    return len(context.sent), len(context.received)


@rpc.functions.async_execution
def later(x):
    return rpc.rpc_async("worker0", torch.mul, (x, 2)).then(lambda done: done.wait() * WEIGHT.sum())


def one_call():
    x, y = torch.rand(2, 2, requires_grad=True), torch.rand(2, 2, requires_grad=True)
    with dist_autograd.context() as context_id:
        out = rpc.rpc_sync("worker1", torch.mul, (x, y))
        assert out.grad_fn.name() == "RecvRpcBackward" and not out.is_leaf
        dist_autograd.backward(context_id, [out.sum() + x.sum()])
        found = dist_autograd.get_gradients(context_id)
        assert found.keys() == {x, y} and x.grad is None
        torch.testing.assert_close(found[x], y.detach() + 1)
        torch.testing.assert_close(found[y], x.detach())
    assert rpc.rpc_sync("worker1", contexts) == 0 or rpc.rpc_sync("worker1", contexts) == 0  # released
    for number in (context_id, 7):
        with pytest.raises(RuntimeError, match=f"Could not find autograd context with id: {number}"):
            dist_autograd.get_gradients(number)


def through_all():
    """A chain over three workers, back to this one, with weights on each that take part twice."""
    x = torch.rand(3, 2, requires_grad=True)
    with dist_autograd.context() as context_id:
        out = relay(x, "worker1", "worker2", "worker0", "worker1")
        dist_autograd.backward(context_id, [out.pow(2).sum()])
        mine = dist_autograd.get_gradients(context_id)
        theirs = [rpc.rpc_sync(f"worker{i}", weight_gradient, (context_id,)) for i in (1, 2)]
    weights = [WEIGHT.detach().clone().requires_grad_() for _ in range(3)]
    alone = x.detach().clone().requires_grad_()
    (alone @ weights[0] @ weights[1] @ weights[2] @ weights[0] @ weights[1]).pow(2).sum().backward()
    torch.testing.assert_close(mine[x], alone.grad)
    for found, weight in zip([mine[WEIGHT], *theirs], weights, strict=True):
        torch.testing.assert_close(found, weight.grad)


def pass_here(*others):
    x = torch.ones(3, 2, requires_grad=True)
    with dist_autograd.context() as context_id:
        dist_autograd.backward(context_id, [relay(x, *others).sum()])
        return dist_autograd.get_gradients(context_id)[x]


def on_another_worker():
    """A worker with one thread runs a pass that leads through itself."""
    found = rpc.rpc_sync("worker1", pass_here, ("worker2", "worker1", "worker0"))
    torch.testing.assert_close(found, torch.full((3, 2), 2 * 0.5**4 * 2**3))


def structures():
    x, y, plain = torch.rand(2, requires_grad=True), torch.rand(2, requires_grad=True), torch.rand(2)
    with dist_autograd.context() as context_id:
        out = rpc.rpc_sync("worker1", both, (x, y))
        changed = rpc.rpc_sync("worker2", change, (x * 1,))
        unused = rpc.rpc_sync("worker2", torch.mul, (x, y))
        assert not rpc.rpc_sync("worker1", torch.add, (plain, 1)).requires_grad
        held = rpc.remote("worker1", torch.mul, (y, 3))
        total = out["sum"].sum() + changed.sum() + held.to_here().sum()  # not out["other"], not unused
        dist_autograd.backward(context_id, [total])
        found = dist_autograd.get_gradients(context_id)
        torch.testing.assert_close(found[x], 1 + 2 * (x.detach() + 1))
        torch.testing.assert_close(found[y], torch.full((2,), 4.0))
        del unused
        async_ = rpc.rpc_sync("worker1", later, (x,))
        with torch.no_grad():
            silent = rpc.rpc_sync("worker1", torch.add, (plain, 1))
        dist_autograd.backward(context_id, [async_.sum() + silent.sum()])
        torch.testing.assert_close(dist_autograd.get_gradients(context_id)[x], 5 + 2 * (x.detach() + 1))


def several_passes():
    x = torch.rand(2, 2, requires_grad=True)
    with dist_autograd.context() as context_id:
        first = rpc.rpc_sync("worker1", times_weight, (x,))
        loss = first.sum()
        dist_autograd.backward(context_id, [loss], retain_graph=True)
        dist_autograd.backward(context_id, [loss, loss])
        torch.testing.assert_close(dist_autograd.get_gradients(context_id)[x], torch.full((2, 2), 3.0))
        assert rpc.rpc_sync("worker1", sizes, (context_id,)) == sizes(context_id) == (0, 0)
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            dist_autograd.backward(context_id, [first.mul(2).sum()])
        second = rpc.rpc_sync("worker2", times_weight, (x,)).sum()
        dist_autograd.backward(context_id, [second])
        torch.testing.assert_close(dist_autograd.get_gradients(context_id)[x], torch.full((2, 2), 4.0))


def deep():
    """Many layers whose inputs also go past them: each worker runs its part a number of times that grows no faster."""
    x = torch.rand(1, 2, requires_grad=True)
    layers = 24
    with dist_autograd.context() as context_id:
        h = x
        for layer in range(layers):
            h = h + 0.1 * rpc.rpc_sync(f"worker{1 + layer % 2}", times_weight, (h,))
        dist_autograd.backward(context_id, [h.sum()])
        found = dist_autograd.get_gradients(context_id)[x]
        weights = sum(rpc.rpc_sync(f"worker{i}", weight_gradient, (context_id,)) for i in (1, 2))
    alone, weight = x.detach().clone().requires_grad_(), WEIGHT.detach().clone().requires_grad_()
    h = alone
    for _ in range(layers):
        h = h + 0.1 * (h @ weight)
    h.sum().backward()
    torch.testing.assert_close(found, alone.grad)
    torch.testing.assert_close(weights, weight.grad)


def failures():
    x = torch.rand(2, requires_grad=True)
    with dist_autograd.context() as context_id:
        for _ in range(2):
            out = rpc.rpc_sync("worker2", torch.mul, (rpc.rpc_sync("worker1", fail_later, (x,)), 2))
            with pytest.raises(ValueError, match="no gradient here"):
                dist_autograd.backward(context_id, [out.sum()])
        good = rpc.rpc_sync("worker1", torch.mul, (x, 2)).sum()
        dist_autograd.backward(context_id, [good])
        assert dist_autograd.get_gradients(context_id)[x].tolist() == [2, 2]
        for roots, words in (
            ([], "No tensors provided"), ([torch.ones(())], "requires_grad not set on root"),
            ([x * 2], "all roots need to be scalar"), ([torch.ones(1, requires_grad=True)], "valid gradient function"),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match=words):
                dist_autograd.backward(context_id, roots)
        with pytest.raises(RuntimeError, match="Already have an autograd context id set for this thread"):
            with dist_autograd.context():
                pass
    with pytest.raises(RuntimeError, match="Current thread doesn't have a valid autograd context"):
        dist_autograd._current_context()


def lost():
    """A worker that ends during the pass: the others get an error."""
    x = torch.rand(2, requires_grad=True)
    with dist_autograd.context() as context_id:
        out = rpc.rpc_sync("worker1", torch.mul, (x, 2)) + rpc.rpc_sync("worker2", torch.mul, (x, 2))
        with pytest.raises(RuntimeError, match="failed: the connection was closed"):
            rpc.rpc_sync("worker1", end)
        with pytest.raises(RuntimeError, match="failed: the process has ended"):
            dist_autograd.backward(context_id, [out.sum()])


def end():
    import os

    os._exit(3)


def main():
    case, port, rank, size = sys.argv[1], *map(int, sys.argv[2:])
    threads = 1 if "deep" in case else 4
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=threads, rpc_timeout=60, init_method=f"tcp://127.0.0.1:{port}"
    )
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size, rpc_backend_options=options)
    if rank == 0:
        torch.manual_seed(0)
        for name in case.split(","):
            globals()[name]()
    if case == "lost":
        with pytest.raises(RuntimeError, match="ended without a shutdown"):
            rpc.shutdown(timeout=30)
    else:
        rpc.shutdown(timeout=60)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    sys.modules["tests.distributed.rpc.gradients"] = sys.modules["__main__"]
    main()
