"""Weights of eight bits as packages write them: a wrapper with tables of functions and of ops, in networks."""

import copy
import io

import pytest

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.serialization import safe_globals
from torchlite.utils._python_dispatch import (
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)

aten = torch.ops.aten


class Int8(torch.Tensor):
    """Rows of int8 with a scale for each."""

    FUNCTIONS: dict = {}
    OPS: dict = {}

    @staticmethod
    def __new__(cls, codes, scale):
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=scale.dtype, device=codes.device)

    def __init__(self, codes, scale):
        self.codes, self.scale = codes, scale

    @classmethod
    def of(cls, weight):
        scale = weight.abs().amax(1, keepdim=True) / 127
        return cls((weight / scale).round().clamp(-128, 127).to(torch.int8), scale)

    def __tensor_flatten__(self):
        return ["codes", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, context, size, stride):
        return cls(inner["codes"], inner["scale"])

    def dequantize(self):
        return self.codes.to(self.scale.dtype) * self.scale

    def apply(self, function):
        return type(self)(function(self.codes), function(self.scale))

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        found = cls.FUNCTIONS.get(func)
        if found is not None:
            return found(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func not in cls.OPS:
            raise NotImplementedError(f"Int8 has no {func}")
        return cls.OPS[func](func, args, kwargs or {})


def implements(*funcs, table=None):
    def decorator(function):
        (Int8.OPS if table is None else table).update(dict.fromkeys(funcs, function))
        return function

    return decorator


@implements(F.linear, table=Int8.FUNCTIONS)
def _linear(x, weight, bias=None):
    out = (x @ weight.codes.to(x.dtype).t()) * weight.scale.t()
    return out if bias is None else out + bias


@implements(aten.detach.default, aten.clone.default, aten.alias.default)
def _same(func, args, kwargs):
    return return_and_correct_aliasing(func, args, kwargs, args[0].apply(lambda t: func(t, **kwargs)))


@implements(aten._to_copy.default)
def _convert(func, args, kwargs):
    made = Int8(args[0].codes.to(kwargs.get("device")), args[0].scale.to(kwargs.get("device"), kwargs.get("dtype")))
    return return_and_correct_aliasing(func, args, kwargs, made)


@implements(aten.copy_.default)
def _copy(func, args, kwargs):
    args[0].codes.copy_(args[1].codes)
    args[0].scale.copy_(args[1].scale)
    return return_and_correct_aliasing(func, args, kwargs, args[0])


@implements(aten.slice.Tensor)
def _slice(func, args, kwargs):
    return return_and_correct_aliasing(func, args, kwargs, args[0].apply(lambda t: func(t, *args[1:])))


def network(device):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2, bias=False)).to(device)


def quantized(net):
    for layer in net:
        if isinstance(layer, torch.nn.Linear):
            layer.weight = torch.nn.Parameter(Int8.of(layer.weight.detach()), requires_grad=False)
    return net


def test_a_network_of_quantized_weights(device):
    plain, net = network(device), quantized(network(device))
    x = torch.linspace(-1, 1, 8, device=device).reshape(2, 4)
    expected = plain(x)
    assert torch.allclose(net(x), expected, atol=0.02) and not torch.equal(net(x), expected)
    assert isinstance(net[0].weight, torch.nn.Parameter) and type(net[0].weight) is Int8
    assert net[0].weight.codes.device == x.device and net[0].weight.device == x.device
    assert torch.equal(copy.deepcopy(net)(x), net(x))
    assert net.to(torch.float64)[2].weight.scale.dtype is torch.float64
    assert net(x.double()).dtype is torch.float64


def test_its_state_is_saved_and_loaded():
    net, x = quantized(network("cpu")), torch.ones(2, 4)
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    with pytest.raises(Exception, match="Int8"):
        torch.load(io.BytesIO(file.getvalue()))
    with safe_globals([Int8]):
        state = torch.load(io.BytesIO(file.getvalue()))
    for assign in (True, False):
        other = network("cpu") if assign else quantized(network("cpu"))
        other.load_state_dict(state, assign=assign)
        assert torch.equal(other(x), net(x)) and type(other[0].weight) is Int8


def test_views_inner_tensors_and_unknown_ops():
    weight = Int8.of(torch.arange(12.0).reshape(4, 3) + 1)
    part = weight[1:3]
    assert type(part) is Int8 and part.shape == (2, 3) and torch.equal(part.dequantize(), weight.dequantize()[1:3])
    assert is_traceable_wrapper_subclass(weight)
    doubled = transform_subclass(weight, lambda name, t: t * 2 if name == "scale" else t)
    assert torch.equal(doubled.dequantize(), weight.dequantize() * 2)
    assert type(weight.data) is Int8 and weight.data.codes.data_ptr() == weight.codes.data_ptr()
    parameter = torch.nn.Parameter(weight, requires_grad=False)
    assert type(parameter.data) is Int8 and type(torch.nn.Parameter(parameter, requires_grad=False)) is Int8
    with pytest.raises(NotImplementedError, match="Int8 has no aten.sin.default"):
        weight.sin()
