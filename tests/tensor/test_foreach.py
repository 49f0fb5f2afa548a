"""`torch._foreach_*`: an op on each tensor of a list."""

import pytest

import torchlite as torch
from torchlite._tensor.foreach import NAMES


def lists(device):
    first = [torch.tensor([[0.3, 0.5], [0.7, 0.9]], device=device), torch.tensor(0.6, device=device)]
    return first, [x * 1.5 + 0.1 for x in first]


@pytest.mark.parametrize("name", "abs acos erf exp frac lgamma log2 neg round rsqrt sigmoid sign tanh trunc".split())
def test_of_each(device, name):
    x, _ = lists(device)
    wanted = [getattr(torch, name)(each) for each in x]
    found = getattr(torch, f"_foreach_{name}")(x)
    assert type(found) is tuple and all(map(torch.equal, found, wanted))
    assert getattr(torch, f"_foreach_{name}_")(x) is x and all(map(torch.equal, x, wanted))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "pow"])
def test_of_two(device, name):
    x, y = lists(device)
    op = getattr(torch, name)
    for other in (0.75, [0.25, 2.0], y):
        each = other if isinstance(other, list) else [other] * 2
        pairs = zip(x, each, strict=True)
        wanted = [
            op(a, b if "m" != name[0] or hasattr(b, "dtype") or name == "mul" else a.new_tensor(b)) for a, b in pairs
        ]
        assert all(map(torch.equal, getattr(torch, f"_foreach_{name}")(x, other), wanted))
        written = [each.clone() for each in x]
        assert getattr(torch, f"_foreach_{name}_")(written, other) is written
        assert all(map(torch.equal, written, wanted))


def test_numbers_in_tensors_and_alpha(device):
    x, y = lists(device)
    two = torch.tensor(2.0, device=device)
    assert all(map(torch.equal, torch._foreach_mul(x, two), [2 * each for each in x]))
    assert all(map(torch.equal, torch._foreach_add(x, two, alpha=3), [each + 6 for each in x]))
    assert all(map(torch.equal, torch._foreach_sub(x, y, alpha=0.5), [a - 0.5 * b for a, b in zip(x, y, strict=True)]))
    assert all(map(torch.equal, torch._foreach_pow(2.0, x), [2.0**each for each in x]))
    with pytest.raises(RuntimeError, match="scalar tensor expected to be 0 dim but it has 1 dimensions and 1 elements"):
        torch._foreach_add(x, torch.ones(1, device=device))


def test_of_three(device):
    x, y = lists(device)
    for name in ("addcmul", "addcdiv"):
        op = getattr(torch, name)
        for given, values in (((), (1, 1)), ((2.0,), (2.0, 2.0)), (([2.0, 3.0],), (2.0, 3.0))):
            wanted = [op(a, b, b, value=value) for a, b, value in zip(x, y, values, strict=True)]
            assert all(map(torch.equal, getattr(torch, f"_foreach_{name}")(x, y, y, *given), wanted))
    packed = torch._foreach_addcmul(x, y, y, torch.tensor([2.0, 3.0]))
    assert all(map(torch.equal, packed, torch._foreach_addcmul(x, y, y, scalars=[2.0, 3.0])))
    with pytest.raises(RuntimeError, match="Expected length of scalars to match input of length 2 but got 1 instead"):
        torch._foreach_addcmul(x, y, y, torch.tensor([1.0]))
    for weight, weights in ((0.5, (0.5, 0.5)), ([0.25, 0.5], (0.25, 0.5)), (y, y)):
        wanted = [torch.lerp(a, b, w) for a, b, w in zip(x, y, weights, strict=True)]
        assert all(map(torch.equal, torch._foreach_lerp(x, y, weight), wanted))


def test_reductions_copies_and_zeros(device):
    x, y = lists(device)
    assert torch.allclose(torch.stack(torch._foreach_norm(x)), torch.stack([torch.linalg.vector_norm(a) for a in x]))
    assert torch._foreach_norm(x, 1, dtype=torch.float64)[0].dtype is torch.float64
    assert [each.item() for each in torch._foreach_max(x)] == [x[0].max().item(), x[1].item()]
    assert torch.allclose(torch._foreach_powsum(x, 3)[0], (x[0] ** 3).sum())
    assert torch.equal(torch._foreach_mm(x[:1], y[:1])[0], x[0] @ y[0])
    target = [torch.zeros_like(each) for each in x]
    assert torch._foreach_copy_(target, x) is target and all(map(torch.equal, target, x))
    torch._foreach_zero_(target)
    assert not any(each.any() for each in target)
    with pytest.raises(RuntimeError, match="_foreach_max cannot compute the maximum of an empty tensor"):
        torch._foreach_max([torch.ones(0, device=device)])


def test_gradients_flow_through():
    x = [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]
    total = sum(each.sum() for each in torch._foreach_mul(torch._foreach_add(x, 1), [2.0, 3.0]))
    total.backward()
    assert x[0].grad.tolist() == [2, 2] and x[1].grad.tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda x: torch._foreach_abs([]), RuntimeError, "Tensor list must have at least one tensor"),
        (lambda x: torch._foreach_add(x, x[:1]), RuntimeError, "must have the same number of tensors, got 2 and 1"),
        (lambda x: torch._foreach_add(x, [1.0]), RuntimeError, "must have same number of elements as scalar list"),
        (lambda x: torch._foreach_abs([1, 2]), TypeError, "expected Tensor as element 0 in argument 0, but got int"),
        (lambda x: torch._foreach_add(x, "x"), TypeError, "_foreach_add\\(\\) received an invalid combination"),
        (lambda x: torch._foreach_add(x, 2, alpha=3), TypeError, "Number alpha = 1"),
        (lambda x: torch._foreach_add_([torch.ones(2, dtype=torch.int64)], 1.5), RuntimeError, "can't be cast to"),
        (lambda x: torch._foreach_clone_(x), AttributeError, "module 'torchlite' has no attribute '_foreach_clone_'"),
    ],
)
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call([torch.ones(2), torch.ones(3)])
    assert len(NAMES) == len(set(NAMES)) == 91
