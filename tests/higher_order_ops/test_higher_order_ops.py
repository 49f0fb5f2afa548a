"""Scans and maps as functions; the expected numbers are PyTorch's."""

import pytest

import torchlite as torch
from torchlite._higher_order_ops import cond, while_loop
from torchlite._higher_order_ops.associative_scan import associative_scan
from torchlite._higher_order_ops.foreach_map import foreach_map
from torchlite._higher_order_ops.map import map as mapped
from torchlite._higher_order_ops.scan import scan

X = torch.arange(12.0).view(3, 4)


@pytest.mark.parametrize("count", range(8))
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_a_loop(count, reverse):
    """A linear recurrence: the order of its arguments matters."""
    torch.manual_seed(0)
    a, b = torch.rand(2, count), torch.rand(2, count)
    shapes = set()

    def combine(left, right):
        shapes.add(left["a"].shape)
        return {"a": left["a"] * right["a"], "b": right["a"] * left["b"] + right["b"]}

    found = associative_scan(combine, {"a": a, "b": b}, -1, reverse, combine_mode="generic")
    steps, rows = [], range(count)
    for i in reversed(rows) if reverse else rows:
        element = {"a": a[:, i], "b": b[:, i]}
        steps.append(combine(steps[-1], element) if steps else element)
    steps = steps[::-1] if reverse else steps
    for name in ("a", "b"):
        wanted = torch.stack([step[name] for step in steps], 1) if steps else a
        torch.testing.assert_close(found[name], wanted)
    assert shapes <= {(2,)}


def test_gradients_of_an_associative_scan():
    x = X.clone().requires_grad_()
    associative_scan(lambda a, b: a * b, x + 1, 1, combine_mode="generic").sum().backward()
    assert x.grad.tolist() == [[33.0, 16.0, 10.0, 6.0], [385.0, 320.0, 270.0, 210.0], [1441.0, 1296.0, 1170.0, 990.0]]


def test_associative_scan_rejects_wrong_arguments():
    with pytest.raises(ValueError, match="all input tensors need to be on CUDA"):
        associative_scan(lambda a, b: a + b, X, 0)
    with pytest.raises(ValueError, match="Combine_fn must be a callable, but got 3"):
        associative_scan(3, X, 0, combine_mode="generic")
    with pytest.raises(ValueError, match="must either 'pointwise' or 'generic', but got x"):
        associative_scan(lambda a, b: a + b, X, 0, combine_mode="x")
    with pytest.raises(ValueError, match="combine_fn must return what it is given"):
        associative_scan(lambda a, b: (a, b), X, 0, combine_mode="generic")
    with pytest.raises(IndexError, match="Dimension out of range"):
        associative_scan(lambda a, b: a + b, X, 5, combine_mode="generic")


def test_scan():
    carry, ys = scan(lambda c, x: (c + x, c * 2), torch.zeros(3), X, dim=1, reverse=True)
    assert carry.tolist() == [6.0, 22.0, 38.0]
    assert ys.tolist() == [[12.0, 10.0, 6.0, 0.0], [36.0, 26.0, 14.0, 0.0], [60.0, 42.0, 22.0, 0.0]]
    carry, ys = scan(lambda c, x: ((c[0] + x,), {"y": x.sum()}), (torch.zeros(4),), X)
    assert carry[0].tolist() == [12.0, 15.0, 18.0, 21.0] and ys["y"].tolist() == [6.0, 22.0, 38.0]
    with pytest.raises(RuntimeError, match="must return a carry and a result"):
        scan(lambda c, x: c, torch.zeros(4), X)
    with pytest.raises(RuntimeError, match="at least one xs leaf"):
        scan(lambda c, x: (c, x), torch.zeros(4), [])


def test_map():
    assert mapped(lambda x, y: x.sum() + y, X, torch.tensor(2.0)).tolist() == [8.0, 24.0, 40.0]
    with pytest.raises(RuntimeError, match="Leading dimensions of mapped xs must be consistent"):
        mapped(lambda x: x[0], (X, X[:2]))


def test_homes():
    assert torch.cond is cond and torch.while_loop is while_loop


def test_one_function_over_lists(device):
    a = [torch.arange(3.0, device=device) + i for i in range(4)]
    b = tuple(x.flip(0) for x in a)
    for function in (foreach_map, torch.compile(foreach_map)):
        got = function(torch.add, a, b[:3], alpha=2)
        assert type(got) is list and len(got) == 3
        assert all(torch.equal(x, y + 2 * z) for x, y, z in zip(got, a, b, strict=False))
        assert torch.equal(function(torch.mul, a, 3)[3], a[3] * 3)
        assert torch.equal(function(torch.mul, a[1], 3), a[1] * 3)
