"""Checks of DTensor: `mpiexec -n 3 python -m tests.distributed.tensor.dtensor_checks`."""

from __future__ import annotations

import copy
import io
import itertools
import pickle
import warnings

import pytest

import torchlite as torch
import torchlite.distributed as dist
import torchlite.distributed.tensor as dt
import torchlite.utils.checkpoint
from torchlite.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torchlite.distributed.tensor.debug import CommDebugMode, visualize_sharding
from torchlite.distributed.tensor.experimental import implicit_replication, local_map, register_sharding
from torchlite.distributed.tensor.placement_types import _StridedShard
from torchlite.nn import functional as F
from torchlite.utils._python_dispatch import TorchDispatchMode


def whole(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


def ways(mesh):
    every = [Replicate(), Shard(0), Shard(1), Partial(), _StridedShard(0, split_factor=2)]
    return list(itertools.product(every, repeat=mesh.ndim))


def redistributions(mesh):
    """Every placement to every other, and the gradient back."""
    x = whole(7, 5)
    for source, target in itertools.product(ways(mesh), repeat=2):
        given = distribute_tensor(x, mesh, source).requires_grad_()
        assert torch.equal(given.full_tensor().detach(), x), source
        if any(p.is_partial() and p != q for p, q in zip(target, source, strict=True)):
            with pytest.raises(RuntimeError, match="redistributing to Partial is for internal use only"):
                given.redistribute(mesh, target)
            continue
        there = given.redistribute(mesh, target)
        assert there.placements == tuple(target) and torch.equal(there.full_tensor().detach(), x)
        (there * there).sum().backward()
        assert torch.equal(given.grad.full_tensor(), 2 * x)


def arrivals(mesh):
    """Every redistribution whose messages travel meanwhile: values, gradients, writes before they arrive."""
    x = whole(7, 5)
    for source, target in itertools.product(ways(mesh), repeat=2):
        if any(p.is_partial() and p != q for p, q in zip(target, source, strict=True)):
            continue
        given = distribute_tensor(x, mesh, source).requires_grad_()
        inner = given * 1
        there = inner.redistribute(mesh, target, async_op=True)
        assert isinstance(there, DTensor) and there.placements == tuple(target) and there.shape == (7, 5)
        with torch.no_grad():
            inner.mul_(0)  # what was sent, or copied, is the value before
        with torch.no_grad():
            kept = there.detach()
        assert type(there) is DTensor and "_arrival" not in there.__dict__
        if source != target:
            assert torch.equal(kept.full_tensor(), x), (source, target)
        (there * 2).sum().backward()
        assert torch.equal(given.grad.full_tensor(), torch.full((7, 5), 2.0)), (source, target)


def arrivals_in_any_order(mesh):
    """Results may be dropped, copied, pickled and used in another order than they were asked for."""
    first, second, third, unused = (
        distribute_tensor(whole(6, 4) + i, mesh, [Shard(0)]).redistribute(mesh, [Replicate()], async_op=True)
        for i in range(4)
    )
    assert "_arrival" in first.__dict__ and "_arrival" in unused.__dict__  # nothing has waited yet
    del unused
    assert torch.equal(copy.deepcopy(second).to_local(), whole(6, 4) + 1)
    assert torch.equal((third + third).to_local(), 2 * whole(6, 4) + 4)
    assert torch.equal(torch.nn.Parameter(first).to_local(), whole(6, 4))
    masks = DTensor.from_local(torch.tensor([True, mesh.get_rank() == 0]), mesh, [Partial("max")])
    assert masks.redistribute(mesh, [Replicate()], async_op=True).to_local().tolist() == [True, True]
    late = distribute_tensor(whole(6, 4), mesh, [Shard(0)]).redistribute(mesh, [Shard(1)], async_op=True)
    torch.save(late, file := io.BytesIO())
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False).full_tensor(), whole(6, 4))
    late = distribute_tensor(whole(6, 4), mesh, [Shard(0)]).redistribute(mesh, [Shard(1)], async_op=True)
    assert late.requires_grad_().sum().full_tensor() == whole(6, 4).sum() and "DTensor(local" in repr(late)


def reductions(mesh):
    rank, size = mesh.get_rank(), mesh.size()
    for reduce_op, right in (("max", size), ("min", 1), ("product", torch.arange(1, size + 1).prod()), ("avg", None)):
        x = DTensor.from_local(torch.full((3, 2), rank + 1.0), mesh, [Partial(reduce_op)])
        right = (size + 1) / 2 if right is None else float(right)
        assert x.full_tensor().tolist() == [[right] * 2] * 3
        assert x.redistribute(mesh, [Shard(0)]).full_tensor().tolist() == [[right] * 2] * 3


def gradients_of_parts(mesh):
    rank, size = mesh.get_rank(), mesh.size()
    own = torch.ones(2, 3, requires_grad=True)
    x = DTensor.from_local(own, mesh, [Shard(0)])
    assert x.shape == (2 * size, 3) and x.stride() == (3, 1)
    (x * whole(2 * size, 3).sum()).sum().backward()
    assert own.grad.shape == (2, 3)
    same = torch.ones(3, requires_grad=True)
    y = DTensor.from_local(same, mesh, [Replicate()])
    (y.to_local(grad_placements=[Partial()]) * (rank + 1)).sum().backward()  # each uses it in its own way
    assert same.grad.tolist() == [size * (size + 1) / 2] * 3
    uneven = DTensor.from_local(torch.ones(rank + 1, 2), mesh, [Replicate()], shape=(rank + 1, 2), stride=(2, 1))
    assert uneven.shape == (rank + 1, 2)
    with pytest.raises(RuntimeError, match="only accepts torch.Tensor but got DTensor"):
        DTensor.from_local(x, mesh, [Shard(0)])


def second_derivatives(mesh):
    for placement in (Replicate(), Shard(0), Shard(1), Partial()):
        x = distribute_tensor(whole(5, 3) / 7, mesh, [placement]).requires_grad_()
        plain = (whole(5, 3) / 7).requires_grad_()
        for tensor in (x, plain):
            first = torch.autograd.grad((tensor @ tensor.t()).exp().sum(), tensor, create_graph=True)[0]
            (first * first).sum().backward()
        torch.testing.assert_close(x.grad.full_tensor(), plain.grad)


def leaves_and_parameters(mesh):
    x = distribute_tensor(whole(4, 3), mesh, [Shard(0)])
    p = torch.nn.Parameter(x)
    assert isinstance(p, torch.nn.Parameter) and isinstance(p, DTensor) and p.is_leaf and p.requires_grad
    assert not x.requires_grad and (p * 2).grad_fn is not None and p.grad is None
    seen = []
    p.register_hook(lambda g: seen.append(g.placements))
    p.register_post_accumulate_grad_hook(lambda q: seen.append(q is p))
    (p * 3).sum().backward()
    assert seen == [(Shard(0),), True] and p.grad is p.grad and p.grad.placements == (Shard(0),)
    p.grad = None
    assert p.grad is None and p._local_tensor.grad is None
    p.grad = torch.zeros_like(p).redistribute(mesh, [Replicate()])
    assert p.grad.placements == (Shard(0),)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
        p.grad = torch.ones_like(p)[:1].redistribute(mesh, [Replicate()])
    y = distribute_tensor(whole(4, 3), mesh, [Shard(0)]).requires_grad_() * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.full_tensor().eq(1).all()


def writes(mesh):
    """Writes in place are recorded or refused."""
    leaf = distribute_tensor(whole(4, 3), mesh, [Shard(0)]).requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        leaf.mul_(2)
    with torch.no_grad():
        leaf.mul_(2)
    assert torch.equal(leaf.full_tensor().detach(), 2 * whole(4, 3)) and leaf._version == 1
    factor, plain = distribute_tensor(torch.full((3,), 3.0), mesh, [Replicate()]), torch.full((3,), 3.0)
    x, right = leaf * 1, leaf.full_tensor().detach() * 1
    for out, by in ((x, factor.requires_grad_()), (right, plain.requires_grad_())):
        out.mul_(by)
        out.add_(1).div_(by)
        (out * out).sum().backward()
    assert x.grad_fn is not None and torch.equal(x.full_tensor().detach(), right.detach())
    torch.testing.assert_close(factor.grad.full_tensor(), plain.grad, rtol=1e-5, atol=1e-5)


def written_views(mesh):
    x = distribute_tensor(whole(6, 4), mesh, [Shard(0)])
    x[:, 1].fill_(9)
    x.t()[2].zero_()
    right = whole(6, 4)
    right[:, 1], right[:, 2] = 9.0, 0.0
    assert torch.equal(x.full_tensor(), right)
    x[2] = 5
    x[1:3, 0] = 7
    right[2] = 5
    right[1:3, 0] = 7
    assert torch.equal(x.full_tensor(), right)
    if mesh.size() > 1:
        column = distribute_tensor(whole(1, 4), mesh, [Shard(1)])
        with pytest.raises(RuntimeError, match="would be a view of another, but had to be gathered"):
            column[0, 1:3].fill_(1)
    a = distribute_tensor(whole(6, 4), mesh, [Shard(0)]).requires_grad_()
    b = a * 2
    b[:, 1].mul_(a[:, 0])
    c = whole(6, 4).requires_grad_()
    d = c * 2
    d[:, 1].mul_(c[:, 0])
    for out in (b, d):
        out.sum().backward()
    assert torch.equal(a.grad.full_tensor(), c.grad)


def making(mesh):
    x = distribute_tensor(whole(5, 3), mesh, [Shard(0)])
    for make in (torch.zeros_like, torch.ones_like, torch.empty_like, torch.rand_like, torch.randn_like):
        made = make(x)
        assert isinstance(made, DTensor) and made.placements == (Shard(0),) and made.shape == x.shape
    assert torch.full_like(x, 2, dtype=torch.int64).full_tensor().eq(2).all()
    assert x.new_zeros(5, 3).placements == (Shard(0),) and x.new_ones(2).placements == (Replicate(),)
    assert x.new_full((5, 3), 4.0).full_tensor().eq(4).all() and x.new_empty(7).shape == (7,)
    for name, value in (("ones", 1), ("zeros", 0)):
        made = getattr(dt, name)(5, 3, device_mesh=mesh, placements=[Shard(0)], requires_grad=True)
        assert made.full_tensor().eq(value).all() and made.is_leaf and made.requires_grad
    assert (
        dt.full((5, 3), 2.5, device_mesh=mesh).full_tensor().eq(2.5).all() and dt.empty(4, device_mesh=mesh).ndim == 1
    )
    a, b = (dt.rand(9, 4, device_mesh=mesh, placements=[p]).full_tensor() for p in (Shard(0), Replicate()))
    assert not torch.equal(a, b) and a.unique().numel() == 36  # no process repeats another's numbers
    dropped = F.dropout(dt.ones(8, 8, device_mesh=mesh, placements=[Shard(0)]), 0.5).full_tensor()
    assert set(dropped.flatten().tolist()) == {0.0, 2.0} and len({tuple(row) for row in dropped.tolist()}) > 6
    drawn = x.clone().uniform_(2, 3).full_tensor()
    assert drawn.min() >= 2 and drawn.unique().numel() == 15
    with mesh:
        assert dt.ones(2).device_mesh == mesh and distribute_tensor(torch.ones(2)).full_tensor().sum() == 2


def errors(mesh):
    x = distribute_tensor(whole(4, 3), mesh, [Shard(0)])
    with pytest.raises(RuntimeError, match="add: got mixed torch.Tensor and DTensor, need to convert all"):
        _ = x + torch.ones(4, 3)
    with pytest.raises(RuntimeError, match="got mixed torch.Tensor and DTensor"):
        torch.ones(4, 3).add_(x)
    with implicit_replication():
        assert torch.equal((x + torch.ones(4, 3)).full_tensor(), whole(4, 3) + 1)
    assert (x + torch.tensor(1.0)).placements == (Shard(0),)
    with pytest.warns(UserWarning, match="Found a non-scalar tensor with numel=1"):
        _ = x + torch.ones(1)
    for method in (x.numpy, x.tolist):
        with pytest.raises(RuntimeError, match="is not supported for tensor subclasses"):
            method()
    with pytest.raises(AssertionError, match="Sharding dim 5 greater than tensor ndim 2"):
        distribute_tensor(torch.ones(2, 2), mesh, [Shard(5)])
    with pytest.raises(ValueError, match="must have the same length as `device_mesh.ndim`"):
        distribute_tensor(torch.ones(2, 2), mesh, [Shard(0)] * 3)
    with pytest.raises(RuntimeError, match="should be used to distribute leaf tensors"):
        distribute_tensor(torch.ones(2, requires_grad=True) * 2, mesh, [Shard(0)])
    assert x.sum().item() == 66 and bool(x.sum() > 1) and torch.equal(x, x) and torch.allclose(x, x + 0)
    assert x.nonzero().shape == (11, 2) and repr(x).startswith("DTensor(local_tensor=tensor(")


def copies(mesh):
    x = distribute_tensor(whole(5, 3), mesh, [Shard(0)]).requires_grad_()
    for made in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert isinstance(made, DTensor) and made.placements == x.placements and made.requires_grad
        assert torch.equal(made.full_tensor(), x.full_tensor())
    net = torch.nn.Linear(3, 2)
    dt.distribute_module(net, mesh)
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert isinstance(loaded["weight"], DTensor)
    net.load_state_dict(loaded)
    assert x.to(torch.float64).dtype is torch.float64 and x.cpu() is x and x.double().placements == (Shard(0),)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        assert isinstance(x, DTensor)
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x**3 * factor, x.sum()

    @staticmethod
    def backward(ctx, g, total):
        (x,) = ctx.saved_tensors
        assert isinstance(g, DTensor) and isinstance(x, DTensor) and total.shape == ()
        return 3 * x * x * g * ctx.factor + total, None


def custom_functions(mesh):
    for placement in (Shard(0), Replicate(), Partial()):
        x = distribute_tensor(whole(4, 3), mesh, [placement]).requires_grad_()
        cube, total = Cube.apply(x, 2.0)
        assert isinstance(cube, DTensor) and total.item() == 66
        (cube.sum() + 3 * total).backward()
        assert torch.equal(x.grad.full_tensor(), 6 * whole(4, 3) ** 2 + 3)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
    dt.distribute_module(net, mesh)
    seen = []
    net[1].register_full_backward_hook(lambda module, into, out: seen.append((into[0].shape, out[0].placements)))
    x = distribute_tensor(whole(4, 3) / 9, mesh, [Shard(0)])
    torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).sum().backward()
    assert seen[-1] == ((4, 4), (Shard(0),)) and net[0].weight.grad.placements == (Replicate(),)


class Names(TorchDispatchMode):
    def __init__(self):
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def modes(mesh):
    """Modes see the library's ops, and gradients are as without them."""
    x = distribute_tensor(whole(4, 3) / 5, mesh, [Shard(0)]).requires_grad_()
    plain = (whole(4, 3) / 5).requires_grad_()

    def loss(x):
        y = F.layer_norm(torch.tanh(x * 2) @ x.t(), (4,)).softmax(-1)
        z = y * 1
        z.add_(x.sum()).mul_(2)
        return (z * z).sum()

    with Names() as mode:
        loss(x).backward()
    loss(plain).backward()
    torch.testing.assert_close(x.grad.full_tensor(), plain.grad, rtol=1e-4, atol=1e-4)
    assert "aten.tanh.default" in mode.seen and "aten.mul_.Scalar" in mode.seen or "aten.mul_.Tensor" in mode.seen


def functions(mesh):
    def local(x, y, number):
        return x @ y * number, number

    product = local_map(
        local, out_placements=([Partial()], None), in_placements=([Shard(1)], [Shard(0)], None),
        device_mesh=mesh, redistribute_inputs=True,
    )  # fmt: skip
    x, y = (distribute_tensor(whole(4, 4), mesh, [p]) for p in (Shard(1), Replicate()))
    out, number = product(x, y, 2.0)
    assert number == 2 and torch.equal(out.full_tensor(), whole(4, 4) @ whole(4, 4) * 2)
    with pytest.raises(ValueError, match="mismatched placements"):
        local_map(lambda x: x, [Shard(0)], ([Shard(0)],))(x)

    @register_sharding(torch.ops.aten.fmod.Tensor)
    def only_rows(a, b):
        return [([Shard(0)], [Shard(0), Shard(0)])]

    z = distribute_tensor(whole(4, 4) + 1, mesh, [Shard(1)])
    out = torch.fmod(z, z + 3)
    assert out.placements == ((Replicate(),) if mesh.size() == 1 else (Shard(0),))
    assert torch.equal(out.full_tensor(), torch.fmod(whole(4, 4) + 1, whole(4, 4) + 4))
    visualize_sharding(distribute_tensor(whole(4, 4), mesh, [Shard(0)]))


def parts_that_need_no_messages(mesh):
    """Tensors sharded in dimensions that neither indices nor kernels use stay sharded."""
    size = mesh.size()
    rows = distribute_tensor(torch.randn(2 * size, 4), mesh, [Shard(0)])
    places = distribute_tensor(torch.randint(4, (2 * size, 3)), mesh, [Shard(0)])
    picks = distribute_tensor(torch.tensor([3, 0]), mesh, [Replicate()])
    image = distribute_tensor(torch.randn(2, 3, 5, 5), mesh, [Replicate()])
    weight, bias = (distribute_tensor(torch.randn(2 * size, *s), mesh, [Shard(0)]) for s in ((3, 2, 2), ()))
    counted = CommDebugMode()
    with counted:
        for out in (
            rows.gather(1, places), rows.scatter(1, places, 1.0), rows.scatter_add(1, places, rows[:, :3]),
            rows.index_select(1, picks), rows.index_add(1, picks, rows[:, :2]), rows.index_fill(1, picks, 0.0),
        ):  # fmt: skip
            assert out.placements == (Shard(0),)
        channels = F.conv2d(image, weight, bias)
        into = distribute_tensor(torch.ones(3, 2 * size, 2, 2), mesh, [Shard(1)], src_data_rank=None)
        summed = F.conv2d(channels, into)
    assert channels.placements == (Shard(1),) and (size == 1 or summed.placements == (Partial(),))
    assert counted.get_total_counts() == 0, counted.get_comm_counts()


def main():
    dist.init_process_group("gloo")
    size = dist.get_world_size()
    mesh = dist.init_device_mesh("cpu", (size,))
    for check in (
        redistributions, arrivals, arrivals_in_any_order, reductions, gradients_of_parts, second_derivatives,
        leaves_and_parameters, writes, written_views, making, errors, copies, custom_functions, modes, functions,
        parts_that_need_no_messages,
    ):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check(mesh)
    if size == 4:
        redistributions(dist.init_device_mesh("cpu", (2, 2)))
        arrivals(dist.init_device_mesh("cpu", (2, 2)))
    print("agrees", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
