"""Storage and lookup of a module's parameters, buffers and submodules."""

import copy
import pickle

import pytest

import torchlite as torch
from torchlite import nn


class Asks(nn.Linear):
    """A layer that answers for its own parameters, as lazily constrained ones do."""

    def __getattr__(self, name):
        if name == "weight" and "weight" in self.__dict__["_parameters"]:
            return self.__dict__["_parameters"]["weight"] * 2
        return super().__getattr__(name)


def test_parameters_overridden_by_properties_are_used():
    layer = Asks(3, 2, bias=False)
    x = torch.ones(1, 3)
    stored = layer._parameters["weight"]
    assert torch.equal(layer.weight, stored * 2)
    out = layer(x)
    assert torch.equal(out, x @ (stored * 2).T)
    out.sum().backward()
    assert torch.equal(stored.grad, torch.full((2, 3), 2.0))


def test_vars_shows_tables_and_not_their_contents():
    module = nn.BatchNorm1d(2)
    module.inner = nn.ReLU()
    assert not {"weight", "bias", "running_mean", "inner"} & set(vars(module))
    assert list(vars(nn.Module())) == [
        "training", "_parameters", "_buffers", "_non_persistent_buffers_set", "_backward_pre_hooks", "_backward_hooks",
        "_is_full_backward_hook", "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
        "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_modules",
    ]  # fmt: skip
    assert type(module._parameters) is dict and type(module._modules) is dict


@pytest.mark.parametrize("layer", [nn.Linear(2, 2), nn.LayerNorm(2), nn.BatchNorm1d(2).eval()])
def test_another_table_counts(layer):
    x = torch.randn(3, 2)
    zeros = {name: nn.Parameter(torch.zeros_like(param)) for name, param in layer._parameters.items()}
    layer.__dict__["_parameters"] = zeros
    assert layer.weight is zeros["weight"] and not layer(x).any()
    assert dict(layer.named_parameters()) == zeros
    layer.__dict__["weight"] = torch.ones_like(zeros["weight"])  # what an instance holds itself comes first
    assert layer.weight.all() and layer(x).any()
    del layer.__dict__["weight"], layer._parameters["weight"]
    with pytest.raises(AttributeError, match="object has no attribute 'weight'"):
        layer(x)


def test_writes_to_tables_are_seen():
    module = nn.Module()
    module._buffers["b"] = torch.ones(1)
    module._modules["m"] = nn.ReLU()
    module._parameters["p"] = nn.Parameter(torch.zeros(1))
    assert module.b.item() == 1 and isinstance(module.m, nn.ReLU) and module.p.item() == 0
    module._parameters.clear()
    assert not hasattr(module, "p")
    module.register_parameter("none", None)
    assert module.none is None
    del module.none
    assert not hasattr(module, "none")


def test_copies_have_separate_attributes():
    layer = nn.Linear(2, 2)
    layer.note = "kept"
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), copy.copy(layer)):
        assert other.note == "kept" and torch.equal(other.weight, layer.weight)
        assert list(vars(other)) == list(vars(layer))
    shallow = copy.copy(layer)
    assert shallow._parameters is layer._parameters
    shallow.weight = nn.Parameter(torch.zeros(2, 2))
    assert not layer.weight.any()


def test_a_module_without_init():
    class Bare(nn.Module):
        def __init__(self):
            self.value = 1

        def forward(self, x):
            return x

    bare = Bare()
    for what, word in (
        (lambda: bare(1), "_backward_hooks"),
        (lambda: repr(bare), "_modules"),
        (lambda: bare.state_dict(), "_state_dict_pre_hooks"),
        (lambda: next(bare.parameters()), "_parameters"),
        (lambda: delattr(bare, "x"), "_parameters"),
    ):
        with pytest.raises(AttributeError, match=f"'Bare' object has no attribute '{word}'"):
            what()
    for value, kind in (
        (nn.Parameter(torch.ones(1)), "parameters"),
        (nn.ReLU(), "module"),
        (nn.Buffer(torch.ones(1)), "buffer"),
    ):
        with pytest.raises(AttributeError, match=rf"cannot assign {kind} before Module.__init__\(\) call"):
            bare.x = value

    class Tables(nn.Module):
        """The class keeps what a call asks for."""

        _backward_hooks = _backward_pre_hooks = _forward_hooks = _forward_pre_hooks = {}

        def __init__(self):
            self.value = 1

        def forward(self, x):
            return x + self.value

    assert Tables()(1) == 2


def test_a_call_that_a_class_changes(monkeypatch):
    class Counted(nn.Identity):
        def _call_impl(self, *args, **kwargs):
            return super()._call_impl(*args, **kwargs) + 1

    assert Counted()(1) == 2 and nn.Module.__call__ is nn.Module._wrapped_call_impl
    plain = nn.Module._call_impl
    with monkeypatch.context() as patch:
        patch.setattr(nn.Module, "_call_impl", lambda self, *args, **kwargs: plain(self, *args, **kwargs) * 10)
        assert nn.Identity()(1) == 10
    assert nn.Identity()(1) == 1 and nn.Identity()._slow_forward(1) == 1


def test_buffers_of_a_class_that_overrides_register_buffer():
    class Own(nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor, True)

    own = Own()
    own.kept = nn.Buffer(torch.ones(1))
    assert list(own.state_dict()) == ["kept"]
    with pytest.raises(RuntimeError, match="Registering a non-persistent buffer on a Module subclass"):
        own.other = nn.Buffer(torch.ones(1), persistent=False)


def test_names_that_programs_reach_for():
    from torchlite.nn.modules import module as module_file

    assert nn.Module.forward is module_file._forward_unimplemented and nn.Module.T_destination is not None
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        nn.Module()(1)
    assert not module_file._has_any_global_hook()
    with module_file.register_module_forward_hook(lambda *args: None):
        assert module_file._has_any_global_hook()
    layer = nn.Linear(2, 2)
    assert not isinstance(layer, (nn.DataParallel, nn.parallel.DistributedDataParallel))
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        nn.parallel.DistributedDataParallel(layer, device_ids=[0])
    x = torch.ones(1, 2)
    assert torch.equal(nn.parallel.data_parallel(layer, x), layer(x))


@pytest.mark.parametrize("before", [5, None, torch.ones(2), "text"])
@pytest.mark.parametrize("persistent", [True, False])
def test_a_buffer_in_the_place_of_an_attribute(before, persistent):
    module = nn.Module()
    module.x = before
    with pytest.raises(KeyError, match="attribute 'x' already exists"):
        module.x = nn.Buffer(torch.ones(2), persistent=persistent)
    assert module.x is before and not list(module.buffers())
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        module.forward = nn.Buffer(torch.ones(2))
    module.y = nn.Buffer(torch.ones(1))
    module.y = nn.Buffer(torch.zeros(3), persistent=persistent)
    assert [name for name, _ in module.named_buffers()] == ["y"] and module.y.shape == (3,)
    assert list(module.state_dict()) == ["y"] * persistent


def test_ops_in_a_class_body_do_not_bind():
    class Base(nn.Module):
        conv = torch.conv2d
        act = torch.relu

        def forward(self, x):
            return self.act(self.conv(x, torch.ones(1, 1, 2, 2)))

    class Derived(Base):
        conv = torch.conv_transpose2d
        join = staticmethod(torch.add)

        def helper(self):
            return self

    x = torch.ones(1, 1, 2, 2)
    assert Base()(x).tolist() == [[[[4.0]]]] and Derived()(x).shape == (1, 1, 3, 3)
    made = Derived()
    assert made.helper() is made and made.join(x, x)[0, 0, 0, 0] == 2 and Base.act(-x).max() == 0
