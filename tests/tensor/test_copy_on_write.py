"""Lazy clones: storages that share memory until a write."""

import gc

import numpy as np
import pytest

import torchlite as torch

C = torch._C


def pair():
    x = torch.arange(6.0).reshape(2, 3).clone()
    return x, x._lazy_clone()


def test_memory_is_shared_until_a_write():
    x = torch.arange(6.0).reshape(2, 3).clone()
    storage, address = C._storage_address(x), C._data_address(x)
    view = x.view(-1)
    y = x._lazy_clone()
    assert C._is_cow_tensor(x) and C._is_cow_tensor(y) and C._is_cow_tensor(view)
    assert C._data_address(y) == C._data_address(x) == address
    assert C._storage_address(x) == C._storage_address(view) == storage != C._storage_address(y)
    _ = x + y
    assert C._is_cow_tensor(x) and C._is_cow_tensor(y)
    view += 1
    assert x[0].tolist() == [1, 2, 3] and y[0].tolist() == [0, 1, 2]
    assert not C._is_cow_tensor(x) and not C._is_cow_tensor(view) and C._is_cow_tensor(y)
    assert C._storage_address(x) == C._storage_address(view) == storage
    assert C._data_address(x) == C._data_address(view) != address == C._data_address(y)
    y += 1
    assert C._data_address(y) == address and not C._is_cow_tensor(y)  # the last one keeps the memory


WRITES = {
    "in place": lambda x: x.mul_(2),
    "operator": lambda x: x.__iadd__(1),
    "item": lambda x: x.__setitem__((0, 0), 5.0),
    "mask": lambda x: x.__setitem__(x > 2, 0.0),
    "fill": lambda x: x.fill_(7),
    "copy": lambda x: x.copy_(torch.ones(2, 3)),
    "zero": lambda x: x.zero_(),
    "random": lambda x: x.uniform_(5, 6),
    "out": lambda x: torch.add(x, 1, out=x),
    "scatter": lambda x: x.scatter_(0, torch.zeros(1, 3, dtype=torch.int64), 9.0),
    "a view's view": lambda x: x[1].view(-1)[1:].add_(1),
    "numpy": lambda x: x.numpy().fill(3),
    "dlpack": lambda x: torch.from_dlpack(x).fill_(3),
    "storage": lambda x: x.untyped_storage().fill_(1),
    "storage's item": lambda x: x.untyped_storage().__setitem__(2, 200),
    "resize": lambda x: x.resize_(9).fill_(1),
    "data": lambda x: x.data.add_(1),
    "list": lambda x: torch._foreach_add_([x], 1),
    "negative": lambda x: torch.conj(x).add_(1),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("side", ["original", "clone", "clone of the clone"])
def test_no_write_reaches_the_others(name, side):
    x, y = pair()
    z = y._lazy_clone()
    before = x.tolist()
    written, *others = {"original": (x, y, z), "clone": (y, x, z), "clone of the clone": (z, x, y)}[side]
    WRITES[name](written)
    assert all(other.tolist() == before for other in others)
    assert written.flatten()[:6].tolist() != others[0].flatten().tolist()
    for other in others:
        other.sub_(1)
    assert others[0].tolist() == others[1].tolist() == [[-1, 0, 1], [2, 3, 4]]


def test_one_that_is_gone_counts_no_more():
    x, y = pair()
    address = C._data_address(y)
    del x
    y.add_(1)
    assert C._data_address(y) == address and y[0].tolist() == [1, 2, 3]
    x, y = pair()
    address = C._data_address(x)
    del y
    gc.collect()
    x.add_(1)
    assert C._data_address(x) == address


def test_a_view_of_the_gone_one_still_counts():
    x, y = pair()
    row = x[1]
    del x
    y.zero_()
    assert row.tolist() == [3, 4, 5]


def test_gradients_flow_through_lazy_clones_and_saved_tensors_are_unchanged():
    x = torch.ones(3, requires_grad=True)
    y = (2 * x)._lazy_clone()
    (y * y).sum().backward()
    assert x.grad.tolist() == [8, 8, 8]
    a = torch.ones(2)
    w = torch.ones(2, requires_grad=True)
    b = a._lazy_clone()
    loss = (w * a).sum()
    b.add_(5)
    loss.backward()
    assert w.grad.tolist() == [1, 1]


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, 0.5, momentum=0.9), lambda p: torch.optim.Adam(p, 0.5)])
def test_optimizers_leave_clones_of_parameters_and_states_alone(make):
    parameters = [torch.nn.Parameter(torch.ones(4)), torch.nn.Parameter(torch.ones(2))]
    optimizer = make(parameters)
    kept = []
    for _ in range(4):
        for p in parameters:
            p.grad = torch.ones_like(p)
        optimizer.step()
        states = [value for p in parameters for value in optimizer.state[p].values() if torch.is_tensor(value)]
        kept += [(t.detach()._lazy_clone(), t.tolist()) for t in (*parameters, *states)]
    assert all(clone.tolist() == values for clone, values in kept)


def test_writes_to_the_source_do_not_reach_the_clone(device):
    shared = np.zeros(3)
    x = torch.from_numpy(shared)
    y = x._lazy_clone()
    shared[0] = 1
    assert y.tolist() == [0, 0, 0] and not C._is_cow_tensor(x)
    x = torch.zeros(3, device=device)
    y = torch._lazy_clone(x)
    x.add_(1)
    assert y.tolist() == [0, 0, 0] and x.tolist() == [1, 1, 1]


def test_layouts_and_empty_tensors():
    x = torch.arange(6.0).reshape(2, 3).clone().t()
    y = x._lazy_clone()
    assert y.stride() == (1, 3) and torch.equal(x, y)
    part = torch.arange(6.0).clone()[2:]._lazy_clone()
    assert part.tolist() == [2, 3, 4, 5] and part.storage_offset() == 2
    assert torch.ones(0)._lazy_clone().shape == (0,)
    half = torch.ones(2, dtype=torch.bfloat16)._lazy_clone()
    assert half.add_(1).tolist() == [2, 2]


def test_ordinary_tensors_are_looked_at_only_while_memory_is_leased():
    from torchlite._dispatch.dispatch_state import GLOBALS

    before = len(GLOBALS["WRITE_CHECKS"])
    x, y = pair()
    assert len(GLOBALS["WRITE_CHECKS"]) == before + 1
    del x, y
    assert len(GLOBALS["WRITE_CHECKS"]) == before
