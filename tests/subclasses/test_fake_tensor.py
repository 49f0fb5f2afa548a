"""FakeTensorMode: factories, ops, devices and gradients without elements; what it refuses."""

from __future__ import annotations

import copy

import pytest

import torchlite as torch
from torchlite._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorDeviceMismatchError,
    FakeTensorMode,
    is_fake,
)


def test_factories_and_ops():
    with FakeTensorMode() as mode:
        a = torch.ones(2, 3)
        found = (a + 1) @ torch.randn(3, 5)
        assert is_fake(found) and isinstance(found, FakeTensor) and found.fake_mode is mode
        assert found.shape == (2, 5) and found.device == torch.device("cpu") and found.stride() == (5, 1)
        assert torch.arange(5).dtype is torch.int64 and torch.zeros_like(a).shape == (2, 3)
        assert a.view(6)[::2].stride() == (2,) and a.add_(1) is a and len(a) == 2 and (a > 0).dtype is torch.bool
        assert [part.shape for part in a.split(1)] == [(1, 3)] * 2 and a.max(1).indices.dtype is torch.int64
        assert torch.nn.functional.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3)).shape == (1, 4, 6, 6)
        assert repr(a.double()) == "FakeTensor(..., size=(2, 3), dtype=torch.float64)"
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            a @ a
    assert type(torch.ones(2)) is torch.Tensor and is_fake(found + 1)


def test_devices_that_are_not_there():
    with FakeTensorMode():
        x = torch.zeros(2, device="cuda")
        assert x.device == torch.device("cuda", 0) and (x * 2).device == x.device and x.cpu().device.type == "cpu"
        assert torch.zeros(2, device="cuda:1").device.index == 1 and x.to("cpu").to("cuda").device == x.device
        assert (torch.zeros(()) + x).device == x.device
        assert repr(x) == "FakeTensor(..., device='cuda:0', size=(2,))"
        with pytest.raises(FakeTensorDeviceMismatchError, match="at least two devices, cpu and cuda:0"):
            torch.zeros(2) + x


def test_elements_are_not_known():
    with FakeTensorMode():
        a = torch.ones(2, 3)
        for read in (lambda: a.sum().item(), lambda: bool(a.sum() > 0), lambda: a.tolist(), lambda: int(a.sum())):
            with pytest.raises(DataDependentOutputException, match="aten._local_scalar_dense.default"):
                read()
        for ask in (lambda: a.nonzero(), lambda: a[a > 0], lambda: a.unique(), lambda: a.masked_select(a > 0)):
            with pytest.raises(DynamicOutputShapeException, match="aten"):
                ask()
        with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
            a.numpy()
        assert torch.tensor(3).item() == 3 and (torch.tensor(3) + 1).item() == 4


def test_real_tensors():
    real, layer = torch.ones(2, 3), torch.nn.Linear(3, 4)
    mode = FakeTensorMode()
    fake = mode.from_tensor(real)
    assert mode.from_tensor(real) is fake and fake.shape == (2, 3)
    assert mode.from_tensor(torch.ones(3, 4).t()).stride() == (1, 4)
    weight = mode.from_tensor(layer.weight)
    assert isinstance(weight, torch.nn.Parameter) and weight.requires_grad and is_fake(weight)
    for mixed in (lambda: fake + real, lambda: torch.nn.functional.linear(fake, layer.weight)):
        with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors first"):
            mixed()
    with mode, pytest.raises(AssertionError, match="instantiate FakeTensorMode with 'allow_non_fake_inputs'"):
        real + 1
    other = FakeTensorMode(allow_non_fake_inputs=True)
    with other:
        assert is_fake(real + 1) and layer(other.from_tensor(real)).shape == (2, 4)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        fake + other.from_tensor(real)
    assert is_fake(copy.deepcopy(fake))


def test_networks_gradients_and_optimizers():
    with FakeTensorMode():
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Flatten(), torch.nn.Linear(72, 10),
        )  # fmt: skip
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(torch.randn(2, 3, 8, 8)), torch.zeros(2, dtype=torch.int64))
            loss.backward()
            optimizer.step()
        assert all(is_fake(p.grad) and p.grad.shape == p.shape for p in net.parameters())
        x = torch.ones(2, 3, requires_grad=True)
        (grad,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
        assert grad.shape == x.shape and grad.requires_grad and isinstance(net[5].weight, torch.nn.Parameter)


def test_random_numbers_are_not_drawn():
    torch.manual_seed(0)
    with FakeTensorMode():
        torch.randn(3)
    first = torch.randn(1)
    torch.manual_seed(0)
    assert torch.equal(first, torch.randn(1))


def test_a_fake_tensor_becomes_another_by_keywords():
    with FakeTensorMode():
        x = torch.ones(2, 3)
        assert x.to(dtype=torch.float64).dtype is torch.float64 and x.to(device="meta").device.type == "meta"
        assert x.to(x.double()).dtype is torch.float64 and x.to().dtype is torch.float32
