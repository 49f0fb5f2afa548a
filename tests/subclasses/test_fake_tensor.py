"""FakeTensorMode: factories, ops, devices and gradients without elements; what it refuses."""

from __future__ import annotations

import contextlib
import copy
import importlib

import pytest

import torchlite as torch
from torchlite._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorDeviceMismatchError,
    FakeTensorMode,
    UnsupportedOperatorException,
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


def test_custom_ops_run_their_fake_kernels():
    with torch.library._scoped_library("fake_tensors", "DEF") as library:
        library.define("product(Tensor x) -> Tensor")
        library.impl("product", lambda x: x @ x.T, "CompositeExplicitAutograd")
        library.define("known(Tensor x) -> Tensor")
        library.impl("known", lambda x: x.new_zeros(3), "CPU")
        library.impl("known", lambda x: torch.empty(2, device=x.device), "Meta")
        library.define("plus(Tensor[] xs, int n) -> Tensor[]")
        library.impl("plus", lambda xs, n: [x + n for x in xs], "CompositeImplicitAutograd")
        library.define("unknown(Tensor x) -> Tensor")
        library.impl("unknown", lambda x: x + 1, "CPU")
        ops = torch.ops.fake_tensors

        @torch.library.custom_op("fake_tensors::halves", mutates_args=())
        def halves(x: torch.Tensor) -> torch.Tensor:
            return x[: len(x) // 2].clone()

        mode = FakeTensorMode()
        with mode:
            x, there = torch.ones(4, 5), torch.ones(4, 5, device="cuda", requires_grad=True)
        for block in (mode, contextlib.nullcontext()):
            with block:
                assert is_fake(ops.product(x)) and ops.product(x).shape == (4, 4)
                assert ops.product(there).device.type == "cuda" and ops.product(there).requires_grad
                assert is_fake(ops.known(x)) and ops.known(x).shape == (2,)
                assert [y.shape for y in ops.plus([x, x], 2)] == [(4, 5)] * 2
                with pytest.raises(UnsupportedOperatorException, match=r"fake_tensors\.unknown\.default"):
                    ops.unknown(x)
                with pytest.raises(RuntimeError, match="There was no fake impl registered"):
                    halves(x)
        with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors first"):
            ops.plus([x, torch.ones(1)], 2)
        halves.register_fake(lambda x: torch.empty(x.shape[0] // 2, *x.shape[1:]))
        halves.register_autograd(lambda ctx, grad: torch.cat([grad, torch.zeros_like(grad)]))
        with mode:
            w = torch.ones(4, 5, requires_grad=True)
            assert is_fake(halves(x)) and halves(x).shape == (2, 5)
            assert is_fake(halves(w)) and halves(w).requires_grad
            halves(w).sum().backward()
            assert is_fake(w.grad) and w.grad.shape == w.shape


def test_quantized_decomposed():
    importlib.import_module("torchlite.ao.quantization.fx._decomposed")
    ops = torch.ops.quantized_decomposed
    with FakeTensorMode():
        x = torch.randn(3, 4)
        levels = ops.quantize_per_tensor(x, 0.1, 3, 0, 255, torch.uint8)
        assert is_fake(levels) and levels.dtype is torch.uint8 and levels.shape == (3, 4)
        assert ops.dequantize_per_tensor(levels, 0.1, 3, 0, 255, torch.uint8).dtype is torch.float32
        scale, zero_point = ops.choose_qparams.tensor(x, 0, 255, 1e-5, torch.uint8)
        assert ops.quantize_per_tensor.tensor(x, scale, zero_point, 0, 255, torch.uint8).dtype is torch.uint8
        channels = torch.ones(3), torch.zeros(3, dtype=torch.int64)
        assert ops.quantize_per_channel(x, *channels, 0, -128, 127, torch.int8).dtype is torch.int8


def test_functions_that_make_tensors():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.zeros(x.shape[0], 2) + x[:, :2]

        @staticmethod
        def backward(ctx, grad):
            return torch.cat([grad, torch.zeros_like(grad[:, :1])], 1)

    with FakeTensorMode():
        x = torch.ones(4, 3, requires_grad=True)
        found = Doubled.apply(x)
        assert is_fake(found) and not is_fake(found._values) and found.requires_grad
        found.sum().backward()
        assert is_fake(x.grad) and x.grad.shape == (4, 3)
