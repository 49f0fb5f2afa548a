"""A worker of a network over RPC: `networks.py CASE,... PORT RANK SIZE`. The networks are those of PyTorch's tutorials.

Each is trained beside the same network on one process, and must have the same losses and parameters.
"""

from __future__ import annotations

import copy
import sys
import threading

import pytest

import torchlite as torch
import torchlite.distributed.autograd as dist_autograd
import torchlite.distributed.rpc as rpc
from torchlite import nn
from torchlite.distributed import _remote_device
from torchlite.distributed.nn import RemoteModule
from torchlite.distributed.optim import DistributedOptimizer
from torchlite.nn import functional as F

WORDS, WIDTH = 11, 6


_drawing = threading.Lock()  # a worker makes several modules at a time


def seeded(make, *args):
    with _drawing:
        torch.manual_seed(len(args) + 1)
        return make(*args)


def parameter_references(module):
    return [rpc.RRef(parameter) for parameter in module.parameters()]


def call_method(method, rref, *args):
    return method(rref.local_value(), *args)


def remote_method(method, rref, *args):
    return rpc.rpc_sync(rref.owner(), call_method, (method, rref, *args))


def parameters_of(rref):
    return [parameter.detach() for parameter in rref.local_value().parameters()]


def close(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.detach(), other.detach(), rtol=1e-5, atol=1e-5)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        return self.linear(x)


class RemoteRNN(nn.Module):
    """Embedding and decoder on another worker, the recurrent layer here."""

    def __init__(self, worker):
        super().__init__()
        self.embedding = rpc.remote(worker, seeded, (nn.Embedding, WORDS, WIDTH))
        self.decoder = rpc.remote(worker, seeded, (Decoder,))
        self.rnn = seeded(nn.LSTM, WIDTH, WIDTH)

    def forward(self, x, state):
        h, state = self.rnn(remote_method(nn.Embedding.forward, self.embedding, x), state)
        return remote_method(Decoder.forward, self.decoder, h), state

    def parameter_references(self):
        return [
            *remote_method(parameter_references, self.embedding), *parameter_references(self.rnn),
            *remote_method(parameter_references, self.decoder),
        ]  # fmt: skip


class LocalRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = seeded(nn.Embedding, WORDS, WIDTH)
        self.rnn = seeded(nn.LSTM, WIDTH, WIDTH)
        self.decoder = seeded(Decoder)

    def forward(self, x, state):
        h, state = self.rnn(self.embedding(x), state)
        return self.decoder(h), state


def recurrent():
    """An RNN over two workers, with the optimizer where the parameters are."""
    model, alone = RemoteRNN("worker1"), LocalRNN()
    optimizer = DistributedOptimizer(torch.optim.SGD, model.parameter_references(), lr=0.3, momentum=0.5)
    local = torch.optim.SGD(alone.parameters(), lr=0.3, momentum=0.5)
    state = other = (torch.zeros(1, 3, WIDTH), torch.zeros(1, 3, WIDTH))
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        x = torch.randint(WORDS, (5, 3), generator=generator)
        y = x.roll(-1, 0).flatten()
        with dist_autograd.context() as context_id:
            out, state = model(x, tuple(s.detach() for s in state))
            loss = F.cross_entropy(out.flatten(0, 1), y)
            dist_autograd.backward(context_id, [loss])
            optimizer.step(context_id)
        assert all(parameter.grad is None for parameter in model.rnn.parameters())
        out, other = alone(x, tuple(s.detach() for s in other))
        expected = F.cross_entropy(out.flatten(0, 1), y)
        local.zero_grad()
        expected.backward()
        local.step()
        close([loss], [expected])
    remote = [rpc.rpc_sync(r.owner(), parameters_of, (r,)) for r in (model.embedding, model.decoder)]
    close([*remote[0], *model.rnn.parameters(), *remote[1]], [p for m in alone.children() for p in m.parameters()])


class ParameterServer(nn.Module):
    """A network on the server, which trainers share."""

    shared: ParameterServer | None = None
    lock = threading.Lock()

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))

    @classmethod
    def get(cls):
        with cls.lock:
            if cls.shared is None:
                cls.shared = cls()
            return cls.shared

    def forward(self, x):
        return self.model(x)

    def gradients(self, context_id):
        found = dist_autograd.get_gradients(context_id)
        return [found[parameter] for parameter in self.parameters()]


def batches(rank):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(3):
        yield torch.randn(6, 4, generator=generator), torch.randint(2, (6,), generator=generator)


def train(server, rank):
    """A trainer: the server has network and optimizer."""
    losses = []
    optimizer = DistributedOptimizer(torch.optim.SGD, remote_method(parameter_references, server), lr=0.05)
    for x, y in batches(rank):
        with dist_autograd.context() as context_id:
            loss = F.cross_entropy(remote_method(ParameterServer.forward, server, x), y)
            dist_autograd.backward(context_id, [loss])
            optimizer.step(context_id)
        losses.append(loss.item())
    return losses


def gradients(server, rank):
    """The gradients of each batch, without a step."""
    found = []
    for x, y in batches(rank):
        with dist_autograd.context() as context_id:
            loss = F.cross_entropy(remote_method(ParameterServer.forward, server, x), y)
            dist_autograd.backward(context_id, [loss])
            found.append(remote_method(ParameterServer.gradients, server, context_id))
    return found


def parameter_server():
    """One trainer after the other has the losses of one process. Passes of two at a time do not mix.

    A step of one trainer between forward and backward of another is an error, as in PyTorch.
    """
    server = rpc.remote("worker1", ParameterServer.get)
    alone = ParameterServer()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.05)
    for rank in (0, 2):
        found = rpc.rpc_sync(f"worker{rank}", train, (server, rank))
        for value, (x, y) in zip(found, batches(rank), strict=True):
            loss = F.cross_entropy(alone(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            close([torch.tensor(value)], [loss])
    close(rpc.rpc_sync("worker1", parameters_of, (server,)), alone.parameters())
    together = [rpc.rpc_async(f"worker{rank}", gradients, (server, rank)) for rank in (0, 2, 0, 2)]
    for rank, found in zip((0, 2, 0, 2), torch.futures.wait_all(together), strict=True):
        for own, (x, y) in zip(found, batches(rank), strict=True):
            close(own, torch.autograd.grad(F.cross_entropy(alone(x), y), list(alone.parameters())))


class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.inner, self.factor = nn.Linear(3, 2), nn.Parameter(torch.tensor(factor))

    def forward(self, x, plus=0.0):
        return {"out": self.inner(x) * self.factor + plus, "training": self.training}


def run_given(module, x):
    return module(x)["out"]


def remote_modules():
    """A hybrid of remote modules and a local one; modules as arguments; what is refused."""
    first = RemoteModule("worker1/cpu", seeded, (Scaled, 2.0))
    second = RemoteModule("rank:2", seeded, (Scaled, 3.0))
    local = seeded(nn.Linear, 2, 3)
    one, two, three = seeded(Scaled, 2.0), seeded(Scaled, 3.0), copy.deepcopy(local)
    references = [*first.remote_parameters(), *second.remote_parameters(), *parameter_references(local)]
    assert len(references) == 8 and [r.owner_name() for r in references[2:4]] == ["worker1", "worker2"]
    assert len(first.remote_parameters(recurse=False)) == 1
    optimizer = DistributedOptimizer(torch.optim.Adam, references, lr=0.1)
    everything = [*one.parameters(), *two.parameters(), *three.parameters()]
    single = torch.optim.Adam(everything, lr=0.1)
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    for _ in range(3):
        with dist_autograd.context() as context_id:
            out = second.forward_async(local(first(x)["out"]), plus=1.0).wait()["out"]
            loss = out.pow(2).sum()
            dist_autograd.backward(context_id, [loss])
            optimizer.step(context_id)
        expected = two(three(one(x)["out"]), plus=1.0)["out"].pow(2).sum()
        single.zero_grad()
        expected.backward()
        single.step()
        close([loss], [expected])
    found = [rpc.rpc_sync(m.on, parameters_of, (m.get_module_rref(),)) for m in (first, second)]
    close([*found[0], *found[1], *local.parameters()], everything)
    close([rpc.rpc_sync("worker2", run_given, (first, x))], [one(x)["out"]])
    again = RemoteModule.init_from_module_rref("worker1", first.get_module_rref())
    assert again.eval() is again and first(x)["training"] is False and first.train()(x)["training"] is True
    own = RemoteModule("cpu", nn.Linear, (3, 2))
    assert own(x).shape == (4, 2) and own.on == 0 and "RemoteModule(worker1/cpu)" == repr(first)
    for call in (lambda: first.parameters(), lambda: first.to("cpu"), lambda: first.state_dict()):
        with pytest.raises(ValueError, match="not supported for RemoteModule"):
            call()
    with pytest.raises(RuntimeError, match="RemoteModule can only be pickled when using RPC"):
        copy.deepcopy(first)
    with pytest.raises(ValueError, match=r"Expect `module_cls\(\*args, \*\*kwargs\)` returns an instance"):
        RemoteModule("worker1", dict)()
    for text in ("a/b/c", "worker:1/cpu", "/cpu"):
        with pytest.raises(ValueError, match="Could not parse remote_device"):
            RemoteModule(text, nn.Linear, (1, 1))
    assert _remote_device("rank:1/cpu").rank() == 1 and _remote_device("cpu").worker_name() is None


class Batcher:
    """Requests of several workers in one update, as the tutorial on batches has it."""

    def __init__(self, count):
        self.weight = nn.Parameter(torch.ones(3))
        self.optimizer = torch.optim.SGD([self.weight], lr=0.1)
        self.lock, self.count, self.waiting = threading.Lock(), count, 0
        self.future = torch.futures.Future()

    @staticmethod
    @rpc.functions.async_execution
    def update(rref, gradient):
        self = rref.local_value()
        with self.lock:
            self.waiting += 1
            self.weight.grad = gradient if self.weight.grad is None else self.weight.grad + gradient
            future = self.future
            if self.waiting == self.count:
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.waiting, self.future = 0, torch.futures.Future()
                future.set_result(self.weight.detach().clone())
        return future


def send_updates(rref, steps):
    found = None
    for step in range(steps):
        found = rpc.rpc_sync(rref.owner(), Batcher.update, (rref, torch.full((3,), float(step))))
    return found


def batched_updates():
    rref = rpc.remote("worker1", Batcher, (3,))
    later = [rpc.rpc_async(f"worker{rank}", send_updates, (rref, 4)) for rank in range(3)]
    for weight in torch.futures.wait_all(later):
        torch.testing.assert_close(weight, torch.full((3,), 1 - 0.1 * 3 * (0 + 1 + 2 + 3)))


def main():
    case, port, rank, size = sys.argv[1], *map(int, sys.argv[2:])
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", num_worker_threads=8)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size, rpc_backend_options=options)
    if rank == 0:
        for name in case.split(","):
            globals()[name]()
    rpc.shutdown(timeout=60)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    sys.modules["tests.distributed.rpc.networks"] = sys.modules["__main__"]
    main()
