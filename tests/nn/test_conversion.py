"""Conversions and loads that keep, replace or exchange parameters, as `torch.__future__` says."""

import weakref

import pytest

import torchlite as torch
from torchlite import nn


@pytest.fixture
def settings():
    """The module of settings, as it was afterwards."""
    yield torch.__future__
    torch.__future__.set_overwrite_module_params_on_conversion(False)
    torch.__future__.set_swap_module_params_on_conversion(False)


def test_parameters_stay_the_same_objects_by_default():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer(torch.ones(1, 2)).sum().backward()
    layer.double()
    assert layer.weight is weight and weight.dtype is torch.float64 and weight.grad.dtype is torch.float64
    layer.to("meta")  # other memory altogether: a new parameter, as in PyTorch
    assert layer.weight is not weight and layer.weight.is_meta and layer.weight.requires_grad


def test_overwriting(settings):
    settings.set_overwrite_module_params_on_conversion(True)
    assert settings.get_overwrite_module_params_on_conversion()
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer(torch.ones(1, 2)).sum().backward()
    layer.double()
    assert layer.weight is not weight and weight.dtype is torch.float32
    assert type(layer.weight) is nn.Parameter and layer.weight.grad.dtype is torch.float64


def test_swapping(settings):
    settings.set_swap_module_params_on_conversion(True)
    assert settings.get_swap_module_params_on_conversion()
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer(torch.ones(1, 2)).sum().backward()
    grad = weight.grad
    layer.double()
    assert layer.weight is weight and weight.dtype is torch.float64 and weight.grad is grad
    layer.to("meta")
    assert layer.weight is weight and weight.is_meta
    layer = nn.Linear(2, 2)
    weight, other = layer.weight, nn.Linear(2, 2).state_dict()
    layer.load_state_dict(other)
    assert layer.weight is weight and torch.equal(weight, other["weight"]) and type(weight) is nn.Parameter
    layer.load_state_dict(other, assign=True)
    assert layer.weight is weight and weight.data_ptr() == other["weight"].data_ptr() and weight.requires_grad
    held = weakref.ref(weight)
    with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
        layer.float()
    assert held() is weight


def test_subclasses_say_how_they_are_loaded(settings):
    class Own(torch.Tensor):
        def module_load(self, other, assign=False):
            return other * 2

    class Same(torch.Tensor):
        def module_load(self, other, assign=False):
            return other

    settings.set_swap_module_params_on_conversion(True)
    module = nn.Module()
    module.register_buffer("a", torch.zeros(2).as_subclass(Own))
    module.load_state_dict({"a": torch.ones(2)})
    assert module.a.tolist() == [2, 2]
    module.register_buffer("a", torch.zeros(2).as_subclass(Same))
    with pytest.raises(RuntimeError, match="module_load returned one of self or other"):
        module.load_state_dict({"a": torch.ones(2)})


def test_swap_tensors():
    a, b = torch.zeros(2), nn.Parameter(torch.ones(3, dtype=torch.float64))
    b.grad, a.note = torch.ones(3, dtype=torch.float64), "of a"
    torch.utils.swap_tensors(a, b)
    assert type(a) is nn.Parameter and a.tolist() == [1, 1, 1] and a.grad is not None and a.dtype is torch.float64
    assert type(b) is torch.Tensor and b.tolist() == [0, 0] and b.note == "of a" and not hasattr(a, "note")
    c = (a * 2).sum()
    with pytest.raises(TypeError, match="must be Tensor"):
        torch.utils.swap_tensors(a, 3)
    c.backward()
    held = weakref.ref(b)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref associated with it"):
        torch.utils.swap_tensors(a, b)
    assert held() is b
