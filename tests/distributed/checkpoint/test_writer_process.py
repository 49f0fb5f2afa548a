"""`async_save` in a process of its own: what is written, errors, and ends of either process."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import torchlite as torch
import torchlite.distributed.checkpoint as dcp
from torchlite.distributed.checkpoint import _writer_process
from torchlite.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def save(state, **options):
    return dcp.async_save(state, async_checkpointer_type=AsyncCheckpointerType.PROCESS, no_dist=True, **options)


class FailingWriter(dcp.FileSystemWriter):
    def write_data(self, plan, planner):
        raise OSError("no space")


class SlowWriter(dcp.FileSystemWriter):
    """Says which process writes, and writes after half a second."""

    def write_data(self, plan, planner):
        (self.path / "writer").write_text(str(os.getpid()))
        time.sleep(0.5)
        return super().write_data(plan, planner)


def wait_for_writer(folder):
    end = time.monotonic() + 60
    while not (folder / "writer").exists() or not (folder / "writer").read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    return int((folder / "writer").read_text())


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_another_process_writes_what_this_one_had(tmp_path):
    tensors = {"whole": torch.arange(6.0), "part": torch.arange(12).reshape(3, 4)[:, 1:3], "half": torch.ones(2).half()}
    state = {**{key: value.clone() for key, value in tensors.items()}, "n": 1, "deep": {"text": "é"}}
    state["part"] = tensors["part"]
    future = save(state, storage_writer=SlowWriter(tmp_path))
    for key in ("whole", "half"):
        state[key].zero_()  # the save has a copy
    assert set(future.result().state_dict_metadata) == {"whole", "part", "half", "n", "deep.text"}
    writer = wait_for_writer(tmp_path)
    assert writer != os.getpid() and is_alive(writer)
    loaded = {**{key: torch.zeros_like(value) for key, value in tensors.items()}, "n": 0, "deep": {"text": ""}}
    dcp.load(loaded, checkpoint_id=tmp_path, no_dist=True)
    assert all(torch.equal(loaded[key], value) for key, value in tensors.items())
    assert loaded["n"] == 1 and loaded["deep"] == {"text": "é"}
    save({"n": 2}, storage_writer=SlowWriter(tmp_path)).result()
    assert wait_for_writer(tmp_path) == writer  # the same process for all saves


def test_errors_come_with_the_future(tmp_path):
    future = save({"x": torch.ones(2)}, storage_writer=FailingWriter(tmp_path))
    with pytest.raises(dcp.CheckpointException, match="no space(.|\n)*In the checkpoint process(.|\n)*in write_data"):
        future.result()
    assert not (tmp_path / ".metadata").exists()
    writer = dcp.FileSystemWriter(tmp_path)
    writer.lock = threading.Lock()
    with pytest.raises(dcp.CheckpointException, match="cannot pickle"):
        save({"x": torch.ones(2)}, storage_writer=writer).result()
    save({"x": torch.ones(2)}, checkpoint_id=tmp_path).result()
    with pytest.raises(TypeError, match="must be an AsyncCheckpointerType, not 'process'"):
        dcp.async_save({"x": torch.ones(2)}, checkpoint_id=tmp_path, no_dist=True, async_checkpointer_type="process")


def test_a_killed_writer_leaves_the_last_checkpoint(tmp_path):
    save({"x": torch.ones(2)}, checkpoint_id=tmp_path).result()
    future = save({"x": torch.zeros(2)}, storage_writer=SlowWriter(tmp_path))
    os.kill(wait_for_writer(tmp_path), signal.SIGKILL)
    with pytest.raises(dcp.CheckpointException, match="Checkpoint background process is dead. Exit code: -9"):
        future.result()
    loaded = {"x": torch.full((2,), 5.0)}
    dcp.load(loaded, checkpoint_id=tmp_path, no_dist=True)
    assert loaded["x"].tolist() == [1, 1]
    save({"x": torch.zeros(2)}, checkpoint_id=tmp_path).result()  # by another process
    dcp.load(loaded, checkpoint_id=tmp_path, no_dist=True)
    assert loaded["x"].tolist() == [0, 0]


PROGRAM = """
import pathlib, sys
import torchlite as torch
from tests.distributed.checkpoint.test_writer_process import SlowWriter, save

if __name__ == "__main__":
    save({"x": torch.ones(2)}, storage_writer=SlowWriter(sys.argv[1]))
    if sys.argv[2] == "wait":
        sys.stdin.read()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells which processes live")
@pytest.mark.parametrize("ending", ["returns", "killed"])
def test_the_writer_ends_with_the_program(tmp_path, ending):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "checkpoint"
    words = [sys.executable, "-W", "ignore", program, folder, "wait" if ending == "killed" else "go"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=environment) as started:
        writer = wait_for_writer(folder)
        if ending == "killed":
            started.kill()
        assert started.wait(60) == (-9 if ending == "killed" else 0)
    end = time.monotonic() + 60
    while is_alive(writer):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert (folder / ".metadata").exists() == (ending == "returns")  # a program waits for its save at its end


def test_a_forked_child_starts_its_own(tmp_path):
    save({"x": torch.ones(2)}, checkpoint_id=tmp_path).result()
    held = _writer_process._held[0]
    assert held.is_usable()
    held.owner += 1
    assert not held.is_usable()
    held.owner -= 1
