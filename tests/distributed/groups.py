"""Process groups: members, objects, meshes, gradients through collectives, errors.

`mpiexec -n 4 python -m tests.distributed.groups`
"""

from __future__ import annotations

import warnings
from datetime import timedelta

import pytest

import torchlite as torch
import torchlite.distributed as dist
import torchlite.distributed._functional_collectives as functional
import torchlite.distributed.nn.functional as differentiable
from torchlite.distributed.device_mesh import DeviceMesh, init_device_mesh


def members():
    rank, size = dist.get_rank(), dist.get_world_size()
    odd = dist.new_group([3, 1])
    assert dist.get_process_group_ranks(dist.group.WORLD) == [0, 1, 2, 3]
    if rank % 2:
        assert dist.get_rank(odd) == rank // 2 and dist.get_world_size(odd) == 2
        assert dist.get_process_group_ranks(odd) == [1, 3] and dist.get_global_rank(odd, 1) == 3
        assert dist.get_group_rank(odd, 3) == 1
        with pytest.raises(ValueError, match="Global rank 2 is not part of group"):
            dist.get_group_rank(odd, 2)
    else:
        assert odd == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(odd) == dist.get_world_size(odd) == -1
        x = torch.ones(2)
        with pytest.warns(UserWarning, match=f"Running all_reduce on global rank {rank} which does not belong"):
            assert dist.all_reduce(x, group=odd) is None
        assert x.tolist() == [1, 1]
    turned = dist.new_group([2, 0, 1, 3], sort_ranks=False)
    assert dist.get_rank(turned) == [1, 2, 0, 3][rank]
    mine, every = dist.new_subgroups(2)
    assert dist.get_process_group_ranks(mine) == [rank // 2 * 2, rank // 2 * 2 + 1] and len(every) == 2
    part = dist.split_group(split_ranks=[[0, 3], [1, 2]])
    x = torch.tensor([rank])
    dist.all_reduce(x, group=part)
    assert x.item() == 3 and dist.get_world_size(part) == size // 2
    if rank in (1, 2):
        local = dist.new_group([1, 2], use_local_synchronization=True)
        dist.broadcast(x, 2, local)
    alone = dist.new_subgroups_by_enumeration([[r] for r in range(size)])[0]
    dist.all_reduce(x, group=alone)
    dist.barrier(alone)
    dist.destroy_process_group(alone)
    with pytest.raises((RuntimeError, ValueError), match="destroyed"):
        dist.all_reduce(x, group=alone)


def objects():
    rank, size = dist.get_rank(), dist.get_world_size()
    given = {"rank": rank, "tensor": torch.arange(rank), "text": "x" * rank * 1000}
    every = [None] * size
    dist.all_gather_object(every, given)
    assert [o["rank"] for o in every] == [0, 1, 2, 3] and every[3]["tensor"].tolist() == [0, 1, 2]
    found = [None] * size if rank == 2 else None
    dist.gather_object(given, found, dst=2)
    assert rank != 2 or [len(o["text"]) for o in found] == [0, 1000, 2000, 3000]
    told = [rank, None, "a"] if rank == 1 else [None] * 3
    dist.broadcast_object_list(told, src=1)
    assert told == [1, None, "a"]
    part = [None]
    dist.scatter_object_list(part, [("to", r) for r in range(size)] if rank == 3 else None, src=3)
    assert part == [("to", rank)]
    if rank == 0:
        dist.send_object_list([1, "two"], dst=3)
    if rank == 3:
        got = [None, None]
        assert dist.recv_object_list(got, src=0) == 0 and got == [1, "two"]
    store = dist.distributed_c10d._get_default_store()
    store.set(f"of {rank}", str(rank))
    assert store.multi_get([f"of {r}" for r in range(size)]) == [b"0", b"1", b"2", b"3"]
    assert store.add("sum", 1) <= size
    dist.barrier()
    assert store.get("sum") == b"4"


def messages():
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        came = set()
        for _ in range(size - 1):
            x = torch.zeros(3)
            source = dist.recv(x, tag=5)
            assert x.tolist() == [source] * 3
            came.add(source)
        assert came == {1, 2, 3}
    else:
        dist.send(torch.full((3,), float(rank)), 0, tag=5)
    other = rank ^ 1
    out, into = torch.arange(4.0).T + rank, torch.zeros(4)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, into, other), dist.P2POp(dist.isend, out, other)]):
        work.wait()
    assert torch.equal(into, torch.arange(4.0) + other)
    for i in range(80):  # never waited for
        dist.isend(torch.full((20_000, 2), i)[:, 1], other, tag=9)
    for i in range(80):
        dist.recv(x := torch.zeros(20_000, dtype=torch.int64), other, tag=9)
        assert (x == i).all()
    dist.all_reduce(torch.ones(3), async_op=True)
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as manager:
        xs = [torch.full((n,), float(rank)) for n in (1, 2, 3)]
        for x in xs:
            dist.all_reduce(x)
    manager.wait()
    assert [x.tolist() for x in xs] == [[6.0] * n for n in (1, 2, 3)]
    dist.all_reduce_coalesced(xs, dist.ReduceOp.MAX)
    outs = [[torch.zeros(2), torch.zeros((), dtype=torch.float32)] for _ in range(size)]
    dist.all_gather_coalesced(outs, [torch.full((2,), float(rank)), torch.tensor(float(rank))])
    assert all(out[0].tolist() == [r, r] and out[1] == r for r, out in enumerate(outs))
    future = dist.all_reduce(x := torch.ones(2), async_op=True).get_future()
    assert future.then(lambda done: done.value()[0] * 2).wait().tolist() == [8, 8] and future.done()
    x = torch.zeros(3)
    before = x._version
    dist.all_reduce(x)
    assert x._version > before
    lazy = torch.ones(3)
    clone = lazy._lazy_clone() if hasattr(lazy, "_lazy_clone") else lazy.clone()
    dist.all_reduce(lazy)
    assert lazy.tolist() == [4, 4, 4] and clone.tolist() == [1, 1, 1]
    z = torch.tensor([1 + 2j]).conj()
    dist.all_reduce(z)
    assert z.tolist() == [4 - 8j]


def wrong():
    """Refused alike on all ranks, and the group is as it was."""
    one, rank = torch.ones(2), dist.get_rank()
    for call, kind, words in (
        (lambda: dist.all_reduce([one]), TypeError, "Expected parameter `tensor` of type torch.Tensor"),
        (lambda: dist.all_gather(one, one), TypeError, "Expected parameter `tensor_list` of type List"),
        (lambda: dist.all_gather([one], one), RuntimeError, r"\(expected length 4, got 1\)"),
        (lambda: dist.all_gather([one] * 3 + [torch.ones(3)], one), RuntimeError, r"\(expected \(2\), got \(3\)\)"),
        (lambda: dist.all_gather([one.double()] * 4, one), ValueError, "tensors with different dtypes"),
        (lambda: dist.broadcast(one, 9), RuntimeError, "invalid root rank: 9"),
        (lambda: dist.broadcast(one), ValueError, "Must specify global_rank or group_rank"),
        (lambda: dist.broadcast(one, 1, group_src=1), ValueError, "Can't specify both"),
        (lambda: dist.reduce_scatter(one, [one]), RuntimeError, "invalid input tensor list size, must be world size"),
        (lambda: dist.gather(one, [one] * 4 if rank else None), ValueError, "gather_list"),
        (lambda: dist.send(one, rank), ValueError, "Invalid destination rank"),
        (lambda: dist.all_to_all_single(torch.ones(5), torch.ones(5)), RuntimeError, "divide equally"),
        (lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), [1], [4]), RuntimeError, "Number of tensor spl"),
        (lambda: dist.all_reduce(one, dist.ReduceOp.BAND), RuntimeError, "ReduceOp.BAND with non-integral dtype"),
        (lambda: dist.all_reduce(one * 1j, dist.ReduceOp.MAX), ValueError, "on complex tensors"),
        (lambda: dist.all_reduce(one.to("meta")), RuntimeError, "No backend type associated with device type meta"),
        (lambda: dist.new_group([0, 7]), ValueError, "Rank 7 is out of range"),
        (lambda: dist.new_group([0, 0]), ValueError, "must not contain duplicate entries"),
        (lambda: dist.new_group([0], timeout=3), TypeError, "type datetime.timedelta, got 3"),
        (lambda: dist.new_subgroups(3), ValueError, "must be divisible by"),
        (lambda: dist.init_process_group("gloo"), ValueError, "initialize the default process group twice"),
        (lambda: dist.batch_isend_irecv([one]), ValueError, "Invalid ``p2p_op_list``"),
    ):
        with pytest.raises(kind, match=words):
            call()
    dist.all_reduce(one)
    assert one.tolist() == [4, 4]
    impatient = dist.new_group(timeout=timedelta(seconds=0.3))
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match="Timed out waiting 300ms for recv from rank 1 on rank 0"):
            dist.recv(torch.ones(1), 1, impatient)
        with pytest.raises(RuntimeError, match=r"Ranks 1, 2, 3 failed to pass monitoredBarrier in 100 ms"):
            dist.monitored_barrier(timeout=timedelta(seconds=0.1), wait_all_ranks=True)
    dist.barrier()


def gradients():
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.full((3,), rank + 1.0, requires_grad=True)
    (differentiable.all_reduce(x) * (rank + 1)).sum().backward()
    assert x.grad.tolist() == [10, 10, 10]
    x.grad = None
    parts = differentiable.all_gather(x)
    sum((i + 1) * part.sum() for i, part in enumerate(parts)).backward()
    assert x.grad.tolist() == [size * (rank + 1)] * 3
    x.grad = None
    (differentiable.broadcast(x, 2) * (rank + 1)).sum().backward()
    assert x.grad.tolist() == ([10, 10, 10] if rank == 2 else [0, 0, 0])
    x.grad = None
    differentiable.scatter([x * i for i in range(size)], 1).sum().backward()
    assert x.grad.tolist() == ([6, 6, 6] if rank == 1 else [0, 0, 0])
    x.grad = None
    out = functional.reduce_scatter_tensor(functional.all_gather_tensor(x, 0, dist.group.WORLD), "sum", 0, [0, 1, 2, 3])
    assert out.tolist() == [size * (rank + 1)] * 3
    out.sum().backward()
    assert x.grad.tolist() == [size] * 3
    assert functional.all_gather_tensor(torch.full((2, 1), rank), 1, dist.group.WORLD).tolist() == [[0, 1, 2, 3]] * 2
    swapped = functional.permute_tensor(torch.tensor([rank]), [1, 0, 3, 2], dist.group.WORLD)
    assert swapped.item() == rank ^ 1
    assert functional.wait_tensor(functional.all_reduce(torch.tensor(rank), "max", dist.group.WORLD)).item() == 3


def counted(group):
    """How many calls a group knows that go at once."""
    return sum(found is not None for found in group._prepared.values())


def at_once():
    """Calls that are waited for: what goes the short way, what does not, and that ranks may differ in it."""
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.new_group([0, 1, 2, 3])
    x, gaps = torch.arange(4.0), torch.zeros(8)[::2]
    before = x._version
    dist.all_reduce(x, group=group)
    assert counted(group) == 1 and x._version == before + 1 and x.tolist() == [0, 4, 8, 12]
    for _ in range(3):  # one has gaps, another waits later, a third collects
        mine = gaps.fill_(rank) if rank == 1 else torch.full((4,), float(rank))
        if rank == 3:
            with dist.distributed_c10d._coalescing_manager(group):
                dist.all_reduce(mine, dist.ReduceOp(dist.ReduceOp.MAX), group)
        else:
            work = dist.all_reduce(mine, dist.ReduceOp.MAX, group, async_op=rank == 2)
            assert work is None or work.wait()
        assert mine.tolist() == [3.0] * 4
    # Memory in common: a rank's own part of what it gathers, and scatters.
    whole = torch.full((2 * size,), -1.0)
    whole[2 * rank : 2 * rank + 2] = rank
    dist.all_gather_into_tensor(whole, whole[2 * rank : 2 * rank + 2], group)
    assert whole.tolist() == [float(r) for r in range(size) for _ in range(2)]
    dist.reduce_scatter_tensor(whole[2 * rank : 2 * rank + 2], whole, group=group)
    assert whole[2 * rank : 2 * rank + 2].tolist() == [4.0 * rank] * 2
    rows = torch.arange(size * 2.0).view(size, 2) + 10 * rank
    out = torch.empty(size, 2)
    dist.all_to_all_single(out, rows, group=group)
    assert out.tolist() == [[10 * r + 2 * rank, 10 * r + 2 * rank + 1] for r in range(size)]
    dist.all_to_all_single(rows, rows, group=group)
    assert torch.equal(rows, out)
    known = counted(group)
    for tensor, op in ((torch.ones(2, dtype=torch.bfloat16), dist.ReduceOp.SUM), (torch.ones(2), dist.ReduceOp.AVG)):
        dist.all_reduce(tensor, op, group)
        assert tensor.tolist() == [size if op is dist.ReduceOp.SUM else 1] * 2 and counted(group) == known
    with pytest.raises(RuntimeError, match="Cannot use ReduceOp.BAND with non-integral dtype"):
        dist.all_reduce(x, dist.ReduceOp.BAND, group)
    with pytest.raises(TypeError, match="Invalid reduce op"):
        dist.all_reduce(x, 0, group)
    with pytest.raises(RuntimeError, match="does not divide equally"):
        dist.all_to_all_single(torch.ones(size + 1), torch.ones(size + 1), group=group)
    with torch.inference_mode():
        frozen = torch.ones(1)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        dist.broadcast(frozen, 0, group)
    for tag in range(600):  # what is known of a group has an end
        if rank < 2:
            (dist.send if rank == 0 else dist.recv)(x, 1 - rank, group, tag)
    assert len(group._prepared) <= 500
    dist.destroy_process_group(group)


def meshes():
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    assert mesh.mesh.tolist() == [[0, 1], [2, 3]] and mesh.shape == (2, 2) and mesh.size() == 4 and mesh.ndim == 2
    assert mesh.get_coordinate() == (rank // 2, rank % 2) and mesh.get_local_rank("tp") == rank % 2
    assert repr(mesh) == "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))"
    dp, tp = mesh["dp"], mesh["tp"]
    assert dp.mesh.tolist() == [rank % 2, rank % 2 + 2] and dp.get_group() is mesh.get_group("dp")
    assert dist.get_process_group_ranks(tp.get_group()) == [rank // 2 * 2, rank // 2 * 2 + 1]
    x = torch.tensor([rank])
    dist.all_reduce(x, group=mesh.get_group(1))
    assert x.item() == (1 if rank < 2 else 5)
    flat = mesh._flatten("world")
    assert flat.mesh.tolist() == [0, 1, 2, 3] and mesh["dp", "tp"] is mesh
    assert functional.all_reduce(torch.tensor(1), "sum", (mesh, 0)).item() == 2
    three = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("a", "b", "c"))
    assert three["a", "b"]._flatten().mesh.tolist() == [rank % 2, rank % 2 + 2]
    assert three["a", "c"].mesh.tolist() == [[0, 1], [2, 3]]
    some = DeviceMesh("cpu", [1, 3])
    assert some.get_coordinate() == ({1: (0,), 3: (1,)}.get(rank))
    back = DeviceMesh.from_group(tp.get_group(), "cpu", mesh_dim_names=("tp",))
    assert back.mesh.tolist() == tp.mesh.tolist() and back == tp and hash(back) == hash(tp)
    for call, kind, words in (
        (lambda: mesh["no"], KeyError, "Invalid mesh_dim_names"),
        (lambda: mesh["tp", "dp"], KeyError, "ascending order"),
        (lambda: mesh.get_group(), RuntimeError, "mesh_dim` needs to be specified"),
        (lambda: init_device_mesh("cpu", (2, 4)), RuntimeError, "Mesh should not be bigger than default world size 4"),
        (lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "a")), RuntimeError, "must be unique"),
        (lambda: init_device_mesh("cpu:0", (2, 2)), RuntimeError, "Device type with index is not supported"),
        (lambda: init_device_mesh("cpu", (4,))["a"], RuntimeError, "Cannot slice a DeviceMesh without"),
    ):
        with pytest.raises(kind, match=words):
            call()


def main():
    warnings.simplefilter("error")
    dist.init_process_group("mpi", timeout=timedelta(seconds=60))
    members()
    objects()
    messages()
    at_once()
    meshes()
    gradients()
    wrong()
    rank = dist.get_rank()
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.barrier()
    dist.init_process_group("gloo")
    x = torch.ones(1)
    dist.all_reduce(x)
    assert x.item() == 4
    dist.destroy_process_group()
    print(f"rank {rank} agrees")


if __name__ == "__main__":
    main()
