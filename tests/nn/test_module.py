"""Module: registration, state, hooks, conversion, copies, containers."""

import copy
import pickle
from collections import OrderedDict

import pytest

import torchlite as torch
from torchlite import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.body = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))
        self.register_buffer("scale", torch.ones(2))
        self.register_buffer("hidden", torch.zeros(1), persistent=False)

    def forward(self, x):
        return self.body(self.first(x)) * self.scale


def test_registration_and_walking():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == [
        "first.weight",
        "first.bias",
        "body.1.weight",
        "body.1.bias",
    ]
    assert [name for name, _ in net.named_buffers()] == ["scale", "hidden"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "body", "body.0", "body.1"]
    assert list(net.state_dict()) == ["scale", "first.weight", "first.bias", "body.1.weight", "body.1.bias"]
    assert net.state_dict()._metadata["first"] == {"version": 1}
    net.shared = net.first
    assert len(list(net.parameters())) == 4 and len(list(net.named_parameters(remove_duplicate=False))) == 6
    assert net.get_parameter("body.1.bias") is net.body[1].bias and net.get_submodule("body.1") is net.body[1]
    del net.shared
    assert not hasattr(net, "shared") and "shared" not in net._modules


def test_the_mirror_follows_the_registry():
    layer = nn.Linear(2, 2)
    new = nn.Parameter(torch.zeros(2, 2))
    layer._parameters["weight"] = new
    assert layer.weight is new
    layer.bias = None
    assert layer.bias is None and "bias" in layer._parameters
    del layer._parameters["weight"]
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weight'"):
        _ = layer.weight
    layer.weight = nn.Parameter(torch.ones(2, 2))
    layer.weight = nn.Parameter(torch.zeros(2, 2))
    assert layer._parameters["weight"].sum().item() == 0
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    net._modules = OrderedDict(only=nn.Tanh())
    assert isinstance(net.only, nn.Tanh) and not hasattr(net, "0") and len(net) == 1
    plain = nn.Module()
    plain.x = 3
    plain.x = nn.Parameter(torch.zeros(1))
    assert list(plain._parameters) == ["x"]
    plain.b = nn.Buffer(torch.ones(1), persistent=False)
    plain.b = torch.zeros(1)
    assert plain._buffers["b"].item() == 0 and "b" not in plain.state_dict()


ERRORS = [
    (
        lambda m: setattr(m, "weight", torch.zeros(3, 2)),
        TypeError,
        r"cannot assign 'torch.FloatTensor' as parameter 'weight' \(torch.nn.Parameter or None expected\)",
    ),
    (lambda m: m.register_parameter("a.b", None), KeyError, "parameter name can.+t contain"),
    (lambda m: m.register_parameter("forward", None), KeyError, "attribute 'forward' already exists"),
    (lambda m: m.register_parameter(1, None), TypeError, "parameter name should be a string. Got int"),
    (
        lambda m: m.register_parameter("x", torch.zeros(2)),
        TypeError,
        "cannot assign 'torch.FloatTensor' object to parameter 'x'",
    ),
    (
        lambda m: m.register_buffer("x", 3),
        TypeError,
        r"cannot assign 'int' object to buffer 'x' \(torch Tensor or None required\)",
    ),
    (lambda m: m.register_buffer("weight", None), KeyError, "attribute 'weight' already exists"),
    (lambda m: m.add_module("x", 3), TypeError, "int is not a Module subclass"),
    (lambda m: m.add_module("a.b", None), KeyError, "module name can.+t contain .*, got: a.b"),
    (lambda m: m.get_submodule("x"), AttributeError, "Linear has no attribute `x`"),
    (lambda m: m.get_submodule("weight"), AttributeError, "`weight` is not an nn.Module"),
    (lambda m: m.get_buffer("weight"), AttributeError, "`weight` is not a buffer"),
    (lambda m: m.train(3), ValueError, "training mode is expected to be boolean"),
    (
        lambda m: m.to(torch.int32),
        TypeError,
        "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.int32",
    ),
    (lambda m: m.load_state_dict(3), TypeError, "Expected state_dict to be dict-like, got <class 'int'>."),
    (lambda m: nn.Module()(1), NotImplementedError, r'Module \[Module\] is missing the required "forward" function'),
    (lambda m: nn.Module(1), TypeError, r"Module.__init__\(\) takes 1 positional argument but 2 were given"),
    (lambda m: nn.Module().set_extra_state(1), RuntimeError, "Reached a code path in Module.set_extra_state"),
    (
        lambda m: nn.Parameter(torch.zeros(2, dtype=torch.int32)),
        RuntimeError,
        "nly Tensors of floating point and complex dtype can require gradients",
    ),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    act, kind, message = ERRORS[number]
    with pytest.raises(kind, match=message):
        act(nn.Linear(2, 3))


def test_attributes_before_init():
    class Forgot(nn.Module):
        def __init__(self, value):
            self.x = value

    for value, what in (
        (nn.Linear(1, 1), "module"),
        (nn.Parameter(torch.zeros(1)), "parameters"),
        (nn.Buffer(torch.zeros(1)), "buffer"),
    ):
        with pytest.raises(AttributeError, match=rf"cannot assign {what} before Module.__init__\(\) call"):
            Forgot(value)


def test_state_dict_round_trip_and_strict_errors():
    net, other = Net(), Net()
    assert repr(net.load_state_dict(other.state_dict())) == "<All keys matched successfully>"
    x = torch.ones(1, 2)
    assert torch.equal(net(x), other(x))
    before = {key: value.clone() for key, value in net.state_dict().items()}
    state = Net().state_dict()
    state["first.bias"] = torch.zeros(4)
    state["extra"] = state.pop("scale")
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "scale". \n'
        '\tUnexpected key(s) in state_dict: "extra". \n'
        "\tsize mismatch for first.bias: copying a param with shape torch.Size([4]) from checkpoint, the shape in "
        "current model is torch.Size([3])."
    )
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items()), (
        "a failed load changed the module"
    )
    del state["first.bias"]
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["scale", "first.bias"] and result.unexpected_keys == ["extra"]
    given = Net().state_dict()
    net.load_state_dict(given, assign=True)
    assert net.first.weight.data_ptr() == given["first.weight"].data_ptr() and isinstance(
        net.first.weight, nn.Parameter
    )


def test_extra_state_and_state_hooks():
    class Extra(nn.Linear):
        note = "a"

        def get_extra_state(self):
            return self.note

        def set_extra_state(self, state):
            self.note = state

    one, two = Extra(1, 1), Extra(1, 1)
    one.note = "b"
    assert list(one.state_dict()) == ["weight", "bias", "_extra_state"]
    two.load_state_dict(one.state_dict())
    assert two.note == "b"
    seen = []
    two.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append("pre"))
    two.register_state_dict_post_hook(lambda module, state, prefix, meta: state.update(_extra_state=None))
    two.register_load_state_dict_pre_hook(lambda module, state, *rest: state.update(_extra_state="c"))
    two.register_load_state_dict_post_hook(lambda module, keys: seen.append("post"))
    two.load_state_dict(two.state_dict())
    assert two.note == "c" and seen == ["pre", "post"]


def test_forward_hooks():
    layer, log = nn.Linear(2, 2), []
    x = torch.ones(1, 2)
    plain = layer(x)
    handles = [
        layer.register_forward_pre_hook(lambda m, args: log.append("pre") or (args[0] * 2,)),
        layer.register_forward_hook(lambda m, args, kwargs, out: log.append("post") or out + 1, with_kwargs=True),
        layer.register_forward_hook(lambda m, args, out: log.append("first"), prepend=True),
    ]
    assert torch.equal(layer(x), torch.nn.functional.linear(x * 2, layer.weight, layer.bias) + 1) and log == [
        "pre",
        "first",
        "post",
    ]
    for handle in handles:
        handle.remove()
    assert torch.equal(layer(x), plain)
    layer.register_forward_hook(lambda m, args, out: log.append("always"), always_call=True)
    with pytest.raises(RuntimeError):
        layer(torch.ones(1, 5))
    assert log[-1] == "always"
    handle = nn.modules.module.register_module_forward_hook(lambda m, args, out: log.append(type(m).__name__))
    nn.ReLU()(x)
    handle.remove()
    assert log[-1] == "ReLU"


def test_full_backward_hooks():
    layer, seen = nn.Linear(2, 3), []
    layer.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 2,))
    layer.register_full_backward_hook(
        lambda m, grad_input, grad_output: (
            seen.append((grad_input[0].clone(), grad_output[0].clone())) or (grad_input[0] * 10,)
        )
    )
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    want = layer.weight.detach().sum(0) * 2
    torch.testing.assert_close(x.grad[0], want * 10)
    torch.testing.assert_close(seen[0][0][0], want)
    assert torch.equal(seen[0][1], torch.full((1, 3), 2.0))
    blind = nn.Linear(2, 3)
    blind.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append(grad_input))
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        blind(torch.ones(1, 2)).sum().backward()
    assert seen[-1] == (None,)


def test_conversion_keeps_parameters_the_same_objects():
    net = Net()
    weight = net.first.weight
    net(torch.ones(1, 2)).sum().backward()
    net.double()
    assert (
        net.first.weight is weight
        and weight.dtype is torch.float64
        and weight.grad.dtype is torch.float64
        and net.scale.dtype is torch.float64
    )
    net.to("cpu", torch.float32)
    assert weight.dtype is torch.float32 and weight.is_leaf and weight.requires_grad
    net.register_buffer("count", torch.tensor(0))
    assert net.half().count.dtype is torch.int64
    assert net.to_empty(device="meta").first.weight.device.type == "meta"
    assert nn.Linear(2, 2, device="meta").weight.is_meta


def test_train_eval_apply_requires_grad_zero_grad():
    net, names = Net(), []
    assert not any(module.training for module in net.eval().modules()) and all(
        module.training for module in net.train().modules()
    )
    net.apply(lambda module: names.append(type(module).__name__))
    assert names == ["Linear", "ReLU", "Linear", "Sequential", "Net"]
    net(torch.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.first.weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert net.first.weight.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_copies():
    net = Net()
    net.register_forward_hook(print_nothing)
    x = torch.ones(1, 2)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other(x), net(x))
        with torch.no_grad():
            other.first.weight.fill_(0)
        assert net.first.weight.abs().sum() > 0 and other.first.weight is other._parameters.get(
            "weight", other.first.weight
        )
        other.first.weight = nn.Parameter(torch.ones(3, 2))
        assert other.first._parameters["weight"] is other.first.weight
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    assert (
        copy.deepcopy(tied)[0].weight is copy.deepcopy(tied)[0].weight
        or len(list(copy.deepcopy(tied).parameters())) == 3
    )


def print_nothing(module, args, output):
    return None


def test_repr():
    assert repr(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=2, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "  )\n"
        ")"
    )
    assert repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Linear(2, 2)])) == (
        "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Linear(in_features=2, out_features=2, bias=True)\n)"
    )
    assert repr(nn.ParameterList([torch.zeros(3), 5])) == (
        "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 3]\n    (1): Object of type: int\n)"
    )


def test_sequential():
    a, b, c = nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)
    net = nn.Sequential(OrderedDict(a=a, b=b))
    assert net.a is a and net[-1] is b and len(net) == 2 and list(net) == [a, b]
    net = nn.Sequential(a, b)
    assert net.append(c)[2] is c and net.pop(1) is b and list(net._modules) == ["0", "1"]
    assert list(net.insert(1, b)) == [a, b, c] and list(net[1:]) == [b, c]
    assert len(net + nn.Sequential(b)) == 4 and len(net * 2) == 6
    with pytest.raises(IndexError, match="index 7 is out of range"):
        _ = net[7]
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        nn.Sequential(3)


def test_module_and_parameter_containers():
    modules = nn.ModuleList([nn.ReLU()])
    modules += [nn.Linear(1, 1)]
    modules.insert(0, nn.Tanh())
    assert [type(m).__name__ for m in modules] == ["Tanh", "ReLU", "Linear"] and len(modules[:2]) == 2
    del modules[0]
    assert list(modules._modules) == ["0", "1"]
    named = nn.ModuleDict({"a": nn.ReLU()})
    named.update([("b", nn.Tanh())])
    assert list(named) == ["a", "b"] and "a" in named and isinstance(named.pop("a"), nn.ReLU)
    with pytest.raises(ValueError, match="ModuleDict update sequence element #0 has length 3; 2 is required"):
        nn.ModuleDict([(1, 2, 3)])
    values = nn.ParameterList([torch.zeros(2), torch.ones(1)])
    assert isinstance(values[0], nn.Parameter) and len(values.append(torch.ones(3))) == 3 and len(values[1:]) == 2
    table = nn.ParameterDict({"b": torch.zeros(1), "a": torch.ones(1)})
    assert (
        list(table) == ["a", "b"]
        and len(list(table.parameters())) == 2
        and table.get("c", 5) == 5
        and len(table | {"c": torch.ones(1)}) == 3
    )
    assert list(table.state_dict()) == ["a", "b"]


def test_hooks_are_read_from_their_tables():
    """However a hook came into a table, it is run."""
    layer, seen = nn.Identity(), []
    assert layer(3) == 3
    layer._forward_hooks[10**9] = lambda module, args, out: seen.append(out)
    assert layer(4) == 4 and seen == [4]
    layer._forward_hooks = {}
    assert layer(5) == 5 and seen == [4]


def test_modules_are_freed_without_the_collector():
    import gc
    import weakref

    gc.disable()
    try:
        net = Net()
        gone = weakref.ref(net)
        del net
        assert gone() is None
    finally:
        gc.enable()
