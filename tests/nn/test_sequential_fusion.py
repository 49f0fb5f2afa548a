"""A convolution, the batch norm behind it and limits behind that, joined in one op by `nn.Sequential`."""

import math

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dispatch.interceptors import Interceptor


def trained(norm):
    """A batch norm in evaluation whose numbers are all of some size."""
    with torch.no_grad():
        for name, tensor in norm.state_dict().items():
            if name != "num_batches_tracked":
                tensor.uniform_(0.5, 1.5)
        if norm.affine:
            norm.bias.sub_(1)
    norm.running_mean.sub_(1)
    return norm.eval()


def apart(modules, x):
    for module in modules:
        x = module(x)
    return x


CASES = {
    "plane": (lambda: nn.Conv2d(3, 8, 3, 2, 1), lambda: nn.BatchNorm2d(8), nn.ReLU6, (2, 3, 15, 14)),
    "one place": (lambda: nn.Conv2d(16, 24, 1, bias=False), lambda: nn.BatchNorm2d(24), nn.ReLU, (2, 16, 28, 28)),
    "one place, few places": (lambda: nn.Conv2d(160, 64, 1), lambda: nn.BatchNorm2d(64), nn.ReLU, (1, 160, 7, 7)),
    "depthwise": (lambda: nn.Conv2d(48, 48, 3, 1, 1, groups=48), lambda: nn.BatchNorm2d(48), nn.ReLU6, (2, 48, 28, 28)),
    "grouped": (lambda: nn.Conv2d(32, 64, 3, 1, 1, groups=4), lambda: nn.BatchNorm2d(64), nn.ReLU, (2, 32, 14, 14)),
    "filtering": (lambda: nn.Conv2d(64, 64, 3, 1, 1), lambda: nn.BatchNorm2d(64), nn.ReLU, (1, 64, 32, 32)),
    "long rows": (lambda: nn.Conv2d(16, 16, 5, 1, 2), lambda: nn.BatchNorm2d(16), nn.Hardtanh, (1, 16, 64, 64)),
    "line": (lambda: nn.Conv1d(16, 32, 2, dilation=4), lambda: nn.BatchNorm1d(32), nn.ReLU, (2, 16, 500)),
    "volume": (lambda: nn.Conv3d(2, 4, 3), lambda: nn.BatchNorm3d(4, affine=False), nn.ReLU, (2, 2, 6, 6, 6)),
    "nothing behind": (lambda: nn.Conv2d(3, 5, 3, bias=False), lambda: nn.BatchNorm2d(5), nn.Identity, (2, 3, 9, 9)),
    "other activation": (lambda: nn.Conv2d(3, 5, 3), lambda: nn.BatchNorm2d(5), nn.Hardswish, (2, 3, 9, 9)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("case", CASES)
def test_joined_as_apart(case, dtype, device):
    torch.manual_seed(0)
    convolution, norm, activation, shape = CASES[case]
    modules = [convolution(), trained(norm()), activation()]
    modules = [m.to(device, dtype) for m in modules]
    x = torch.randn(shape, device=device).to(dtype)
    with torch.no_grad():
        expected, found = apart(modules, x), nn.Sequential(*modules)(x)
        turned = nn.Sequential(*modules)(x.transpose(-1, -2).contiguous().transpose(-1, -2))
    assert found.dtype is dtype and found.shape == expected.shape and found.stride() == expected.stride()
    tolerance = {torch.float16: 2e-3, torch.float32: 2e-5, torch.float64: 1e-12}[dtype]
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(turned, expected, rtol=tolerance, atol=tolerance)


def test_channels_last_is_preserved(device):
    modules = [nn.Conv2d(8, 16, 3).to(device), trained(nn.BatchNorm2d(16)).to(device), nn.ReLU()]
    x = torch.randn(2, 8, 9, 9, device=device).to(memory_format=torch.channels_last)
    with torch.no_grad():
        expected, found = apart(modules, x), nn.Sequential(*modules)(x)
    assert found.stride() == expected.stride()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nonfinite_inputs(value):
    modules = [nn.Conv2d(32, 32, 3, 1, 1), trained(nn.BatchNorm2d(32)), nn.ReLU6()]
    x = torch.randn(1, 32, 40, 40)
    x[0, 3, 5, 6] = value
    with torch.no_grad():
        expected, found = apart(modules, x), nn.Sequential(*modules)(x)
    torch.testing.assert_close(found, expected, equal_nan=True)


def test_batch_norm_with_limits(device):
    modules = [trained(nn.BatchNorm2d(48)).to(device), nn.ReLU()]
    for shape in (3, 48, 40, 40), (3, 48, 2, 2), (0, 48, 4, 4):
        x = torch.randn(shape, device=device)
        with torch.no_grad():
            torch.testing.assert_close(nn.Sequential(*modules)(x), apart(modules, x))


def test_nothing_is_written_but_the_result():
    modules = [nn.Conv2d(3, 4, 1), trained(nn.BatchNorm2d(4)), nn.ReLU(inplace=True)]
    x = torch.randn(2, 3, 5, 5)
    before = [t.clone() for m in modules for t in m.state_dict().values()], x.clone()
    with torch.no_grad():
        nn.Sequential(*modules)(x)
    after = [t for m in modules for t in m.state_dict().values()]
    assert all(torch.equal(a, b) for a, b in zip(after, before[0], strict=True)) and torch.equal(x, before[1])


def test_hooks_see_unfused_intermediates():
    net = nn.Sequential(nn.Conv2d(3, 4, 1), trained(nn.BatchNorm2d(4)), nn.ReLU())
    seen = []
    x = torch.randn(2, 3, 5, 5)
    for place in range(3):
        handle = net[place].register_forward_hook(lambda module, args, out: seen.append((type(module), out)))
        with torch.no_grad():
            net(x)
        handle.remove()
    assert [kind for kind, _ in seen] == [nn.Conv2d, nn.BatchNorm2d, nn.ReLU]
    with torch.no_grad():
        torch.testing.assert_close(seen[0][1], net[0](x))
        torch.testing.assert_close(seen[1][1], net[1](net[0](x)))
        handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: seen.append(type(module)))
        net(x)
        handle.remove()
    assert seen[3:] == [nn.Conv2d, nn.BatchNorm2d, nn.ReLU, nn.Sequential]


def test_forwards_of_others_are_called():
    calls = []

    class Own(nn.BatchNorm2d):
        def forward(self, input):
            calls.append("own")
            return super().forward(input)

    net = nn.Sequential(nn.Conv2d(3, 4, 1), Own(4).eval(), nn.ReLU())
    net[2].forward = lambda input: calls.append("patched") or input
    with torch.no_grad():
        net(torch.randn(2, 3, 5, 5))
    assert calls == ["own", "patched"]


def test_training_moves_the_statistics():
    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU())
    with torch.no_grad():
        net(torch.randn(8, 3, 5, 5))
    assert net[1].num_batches_tracked == 1 and net[1].running_mean.abs().sum() > 0


def test_gradients_and_errors_are_those_of_the_modules():
    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU()).eval()
    x = torch.randn(2, 3, 5, 5, requires_grad=True)
    net(x).sum().backward()
    assert x.grad is not None and net[0].weight.grad is not None
    with torch.no_grad():
        for wrong in (torch.randn(2, 5, 5, 5), torch.randn(2, 3, 5, 5, dtype=torch.float64), torch.randn(3, 5, 5)):
            with pytest.raises((RuntimeError, ValueError)) as expected:
                apart(net, wrong)
            with pytest.raises(expected.type) as found:
                net(wrong)
            assert str(found.value) == str(expected.value)
        net[1] = nn.BatchNorm2d(7).eval()
        with pytest.raises(RuntimeError, match="running_mean should contain 4 elements not 7"):
            net(torch.randn(2, 3, 5, 5))


def test_who_observes_sees_the_modules_ops():
    names = []

    class Names(Interceptor):
        def intercept(self, op, function, args, kwargs):
            names.append(op.name)
            return function(*args, **kwargs)

    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU()).eval()
    with torch.no_grad(), Names():
        net(torch.randn(2, 3, 5, 5))
    assert [n for n in names if n in ("conv2d", "batch_norm", "relu")] == ["conv2d", "batch_norm", "relu"]
    assert "_fused_conv_bn" not in names and "_batch_norm_eval" not in names
