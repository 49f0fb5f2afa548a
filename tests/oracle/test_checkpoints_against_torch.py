"""Checkpoints of several processes: what torchlite writes PyTorch reads, and the reverse; the same with PyTorch's own
processes over gloo, which write and read parts.
"""

import subprocess
import sys

import pytest

import torchlite
import torchlite.distributed.checkpoint as lite_dcp

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore::UserWarning")]

PARTS = """
import sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp, torch.multiprocessing as mp
from torch.distributed.tensor import Shard, distribute_tensor, Replicate, init_device_mesh

def work(rank, size, what, folder, meeting):
    dist.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=size)
    mesh = init_device_mesh("cpu", (size,))
    square = init_device_mesh("cpu", (1, size))
    whole = torch.arange(35.0).reshape(7, 5)
    zero = torch.zeros(7, 5)
    values = whole if what == "save" else zero
    state = {
        "rows": distribute_tensor(values, mesh, [Shard(0)]),
        "columns": distribute_tensor(values, mesh, [Shard(1)]),
        "few": distribute_tensor(values[:1], mesh, [Shard(0)]),
        "twice": distribute_tensor(values, square, [Replicate(), Shard(0)]),
        "same": values.clone(), "n": {"step": 5 if what == "save" else 0},
    }
    if what == "save":
        dcp.save(state, checkpoint_id=folder)
    else:
        dcp.load(state, checkpoint_id=folder)
        for name in ("rows", "columns", "twice"):
            assert torch.equal(state[name].full_tensor(), whole), name
        assert torch.equal(state["few"].full_tensor(), whole[:1])
        assert torch.equal(state["same"], whole) and state["n"]["step"] == 5
    dist.destroy_process_group()

if __name__ == "__main__":
    what, size, folder, meeting = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    mp.spawn(work, (size, what, folder, meeting), nprocs=size)
"""


def state(torch, filled=True):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    if filled:
        with torch.no_grad():
            for number, parameter in enumerate(model.parameters()):
                parameter.copy_(torch.arange(float(parameter.numel())).reshape(parameter.shape) + number)
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    part = torch.arange(12.0).reshape(3, 4)[:, 1:3]
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict() if filled else {"state": {}, "param_groups": []},
        "tensors": [
            part if filled else part * 0,
            torch.ones(2, dtype=torch.bfloat16) * filled,
            {"x": torch.tensor(True)},
        ],
        "plain": {"n": 7 * filled, "pair": (1, 2), "names": ["a", "é"]},
        "none": torch.zeros(0, 3),
    }


def shown(value):
    if hasattr(value, "tolist"):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {str(key): shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("writer", ["torch", "torchlite"])
def test_one_process(tmp_path, writer):
    import torch
    import torch.distributed.checkpoint as torch_dcp

    ours, theirs = (torchlite, lite_dcp), (torch, torch_dcp)
    (one, save), (other, load) = (theirs, ours) if writer == "torch" else (ours, theirs)
    saved = state(one)
    for _ in range(2):  # the second one replaces the first
        save.save(saved, checkpoint_id=tmp_path)
    loaded = state(other, filled=False)
    loaded["optimizer"] = state(other)["optimizer"]
    for held in loaded["optimizer"]["state"].values():
        for tensor in held.values():
            tensor.zero_()
    load.load(loaded, checkpoint_id=tmp_path)
    assert shown(loaded) == shown(saved)
    described = [dcp.FileSystemReader(tmp_path).read_metadata() for dcp in (lite_dcp, torch_dcp)]
    texts = [repr(found.state_dict_metadata).replace("torchlite", "torch") for found in described]
    assert texts[0] == texts[1] and described[0].planner_data == described[1].planner_data


@pytest.mark.parametrize("writer", ["torch", "torchlite"])
def test_as_one_file(tmp_path, writer):
    import torch
    from torch.distributed.checkpoint import format_utils as torch_utils

    from torchlite.distributed.checkpoint import format_utils as lite_utils

    (one, to), (other, back) = (torch, torch_utils), (torchlite, lite_utils)
    if writer == "torchlite":
        (one, to), (other, back) = (other, back), (one, to)
    saved = state(one)
    one.save(saved, tmp_path / "one.pt")
    to.torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "parts")
    back.dcp_to_torch_save(tmp_path / "parts", tmp_path / "two.pt")
    assert shown(other.load(tmp_path / "two.pt")) == shown(saved)


def test_parts_of_pytorchs_processes(tmp_path):
    program = tmp_path / "parts.py"
    program.write_text(PARTS)

    def run(what, size, folder):
        command = [
            sys.executable,
            str(program),
            what,
            str(size),
            str(tmp_path / folder),
            str(tmp_path / f"m{size}{what}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr

    run("save", 3, "theirs")
    whole = torchlite.arange(35.0).reshape(7, 5)
    names = ("rows", "columns", "twice", "same")
    loaded = {**{name: torchlite.zeros(7, 5) for name in names}, "few": torchlite.zeros(1, 5), "n": {"step": 0}}
    lite_dcp.load(loaded, checkpoint_id=tmp_path / "theirs")
    assert all(torchlite.equal(loaded[name], whole) for name in names)
    assert torchlite.equal(loaded["few"], whole[:1]) and loaded["n"] == {"step": 5}
    lite_dcp.save(loaded, checkpoint_id=tmp_path / "ours")
    run("load", 2, "ours")
