"""Conversions and loads that keep, replace or swap parameters, by the settings of `torch.__future__`."""

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


def test_subclasses_override_module_load(settings):
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


def test_arguments_of_to():
    layer, cpu = nn.Linear(2, 2), torch.device("cpu")
    for args, got in (((cpu, True), "(torch.device, bool)"), ((None, True), "(NoneType, bool)"), (([],), "(list)")):
        with pytest.raises(TypeError) as caught:
            layer.to(*args)
        assert f"to() received an invalid combination of arguments - got {got}, but expected one of:" in str(
            caught.value
        )
    with pytest.raises(TypeError, match=r"got \(dict, non_blocking=bool\)"):
        layer.to({}, non_blocking=True)
    for args in ((torch.int64,), (cpu, torch.int64, True), (torch.tensor(3), True)):
        with pytest.raises(TypeError, match="nn.Module.to only accepts floating point or complex dtypes"):
            layer.to(*args)
    assert layer.to(cpu, torch.float64, True).weight.dtype is torch.float64 and layer.to() is layer
    with pytest.warns(UserWarning, match="Complex modules are a new feature under active development"):
        layer.to(torch.complex64)
    empty = nn.Linear(2, 2, device="meta")
    with pytest.raises(NotImplementedError, match=r"Please use torch.nn.Module.to_empty\(\) instead"):
        empty.to("cpu")
    assert empty.to_empty(device="cpu").weight.is_cpu


def test_loading_leaves_no_cycle():
    import copy
    import gc

    layer = nn.LSTM(4, 4, bidirectional=True)
    layer.load_state_dict(copy.deepcopy(layer).state_dict())
    gc.collect()
    gc.disable()
    try:
        layer.load_state_dict(copy.deepcopy(layer).state_dict())
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_lazy_buffers_are_loaded():
    class Lazy(nn.modules.lazy.LazyModuleMixin, nn.Module):
        pass

    lazy, other, full = Lazy(), Lazy(), Lazy()
    lazy.b, other.b, full.b = nn.UninitializedBuffer(), nn.UninitializedBuffer(), nn.Buffer(torch.ones(2))
    lazy.load_state_dict(other.state_dict())
    assert lazy.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="the shape of an uninitialized"):
        full.load_state_dict(lazy.state_dict())
    lazy.load_state_dict(full.state_dict())
    assert lazy.b.tolist() == [1, 1]
    replica = nn.ParameterDict({"a": torch.ones(1)})._replicate_for_data_parallel()
    replica.a = torch.zeros(1)
    assert list(replica.keys()) == ["a"] and replica["a"].item() == 0 and not replica._parameters


def test_parameters_without_views_are_not_watched():
    """Watched parameters make every op slower."""
    layer, kept = nn.Linear(2, 2), torch.ones(3)
    for parameter in (*layer.parameters(), nn.Parameter(kept), nn.Parameter(kept[:1])):
        assert parameter.requires_grad and parameter.is_leaf and not weakref.getweakrefs(parameter)


@pytest.mark.parametrize("kind,shape", [(nn.BatchNorm1d, (4, 3)), (nn.BatchNorm2d, (4, 3, 2, 2))])
def test_batch_norms_become_synchronized_ones(kind, shape):
    inner = kind(3, eps=0.25, momentum=0.5)
    plain = kind(3, affine=False, track_running_stats=False)
    model = nn.Sequential(nn.Linear(3, 3), nn.ModuleDict({"norm": inner, "plain": plain}))
    inner(torch.randn(shape))
    found = nn.SyncBatchNorm.convert_sync_batchnorm(model, process_group="group")
    norm = found[1]["norm"]
    assert found is model and type(found[0]) is nn.Linear
    assert type(norm) is type(found[1]["plain"]) is nn.SyncBatchNorm
    assert norm.process_group == "group" and (norm.eps, norm.momentum, norm.num_features) == (0.25, 0.5, 3)
    assert norm.weight is inner.weight and norm.bias is inner.bias and norm.running_mean is inner.running_mean
    assert norm.running_var is inner.running_var and norm.num_batches_tracked.item() == 1
    assert found[1]["plain"].weight is None and found[1]["plain"].running_mean is None
    assert nn.SyncBatchNorm.convert_sync_batchnorm(norm) is norm
    inner.eval()
    evaluated = nn.SyncBatchNorm.convert_sync_batchnorm(inner).eval()
    x = torch.randn(shape)
    torch.testing.assert_close(evaluated(x), inner(x))


def test_a_parameter_of_another_layout_is_a_new_one():
    layer = torch.nn.Linear(3, 2)
    layer.weight.grad = torch.ones(2, 3)
    before = layer.weight
    layer._apply(lambda t: t.to_sparse())
    assert layer.weight is not before and before.layout is torch.strided
    assert layer.weight.layout is layer.weight.grad.layout is torch.sparse_coo


def test_results_of_a_subclass_of_parameter_are_plain_tensors():
    """PyTorch switches the conversion of results off for Parameter. What returns the tensor itself keeps the class."""

    class Quantized(torch.nn.Parameter):
        def __new__(cls, data, requires_grad=True):
            return torch.Tensor._make_subclass(cls, data, requires_grad)

    x = Quantized(torch.ones(2))
    plain = (x.data, x.detach(), x + 1, x.clone(), x[0], x.view(2), x.double(), torch.cat([x, x]))
    assert [type(found) for found in plain] == [torch.Tensor] * len(plain)
    same = (x.contiguous(), x.to("cpu"), x.cpu(), x.float(), x.requires_grad_(False))
    assert all(found is x for found in same)
