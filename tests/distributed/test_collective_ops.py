"""`torch.ops._c10d_functional` and `torch.ops.c10d_functional` in a group of one."""

import pytest

import torchlite as torch
import torchlite.distributed as dist


@pytest.fixture
def group(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield dist.distributed_c10d._get_default_group().group_name
    dist.destroy_process_group()


def test_collectives_of_a_group(group):
    ops, x = torch.ops._c10d_functional, torch.arange(4.0)
    found = [
        ops.broadcast(x, 0, group),
        ops.all_reduce(x, "sum", group),
        ops.all_gather_into_tensor(x, 1, group),
        ops.reduce_scatter_tensor(x, "sum", 1, group),
        ops.all_to_all_single(x, [4], [4], group),
        *ops.all_reduce_coalesced([x], "sum", group),
        *ops.all_gather_into_tensor_coalesced([x], 1, group),
        *ops.reduce_scatter_tensor_coalesced([x], "sum", 1, group),
    ]
    for result in found:
        assert result.tolist() == [0, 1, 2, 3]
    assert ops.all_reduce_(x, "sum", group) is x and ops.broadcast_(x, 0, group) is x
    assert ops.wait_tensor(x) is x and ops._wrap_tensor_autograd(x) is x


def test_collectives_of_ranks(group):
    ops, x = torch.ops.c10d_functional, torch.arange(4.0)
    found = [
        ops.broadcast(x, 0, "", [0], 1),
        ops.all_reduce(x, "sum", "", [0], 1),
        ops.all_gather_into_tensor(x, "", [0], 1),
        ops.reduce_scatter_tensor(x, "sum", "", [0], 1),
        ops.all_to_all_single(x, None, None, "", [0], 1),
        *ops.all_reduce_coalesced([x], "sum", "", [0], 1),
    ]
    for result in found:
        assert result.tolist() == [0, 1, 2, 3]
    assert ops.wait_tensor.default(x) is x


def test_schemas():
    assert str(torch.ops._c10d_functional.all_gather_into_tensor.default._schema) == (
        "_c10d_functional::all_gather_into_tensor(Tensor input, int group_size, Any group_name) -> Tensor"
    )
    assert torch.ops.c10d.scatter_.default.name() == "c10d::scatter_"
