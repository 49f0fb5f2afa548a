"""Processes that are killed leave no files and no processes."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from torchlite._settings import mpich_shared_memory, temporary_folders

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc and /dev/shm")
SIGNALS = [signal.SIGTERM, signal.SIGKILL]

LOADER = """
    import torchlite as torch
    from torchlite.utils.data import DataLoader, Dataset

    class Large(Dataset):
        def __len__(self):
            return 1000
        def __getitem__(self, i):
            return torch.ones(300_000)

    if __name__ == "__main__":
        loader = DataLoader(Large(), batch_size=1, num_workers=2, multiprocessing_context=sys.argv[1])
        for i, batch in enumerate(loader):
            if i == 3:
                print("ready", flush=True)
            time.sleep(0.01)
"""
STUCK = """
    import torchlite as torch
    from torchlite.utils.data import DataLoader, Dataset

    class Stuck(Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, i):
            os.write(1, b"ready\\n")  # at once: the workers share the pipe
            time.sleep(600)

    if __name__ == "__main__":
        next(iter(DataLoader(Stuck(), num_workers=2, multiprocessing_context=sys.argv[1])))
"""
SHARED = """
    import torchlite as torch
    import torchlite.multiprocessing as mp

    def child(queue, back):
        x = queue.get()
        back.put(x)
        back.put(torch.ones(100_000))
        mp.parent_process().join()

    if __name__ == "__main__":
        mp.set_sharing_strategy(sys.argv[2])
        context = mp.get_context(sys.argv[1])
        queue, back, kept = context.Queue(), context.Queue(), torch.ones(100_000).share_memory_()
        context.Process(target=child, args=(queue, back), daemon=True).start()
        queue.put(kept)
        got = back.get(), back.get()
        queue.put(torch.ones(1000))
        time.sleep(0.05)
        print("ready", flush=True)
        time.sleep(600)
"""
SPAWNED = """
    import torchlite as torch

    def child(number, folder):
        open(os.path.join(folder, str(number)), "w").close()
        time.sleep(600)

    if __name__ == "__main__":
        context = torch.multiprocessing.start_processes(
            child, (sys.argv[2],), nprocs=2, join=False, start_method=sys.argv[1])
        while len(os.listdir(sys.argv[2])) < 2:
            time.sleep(0.01)
        print("ready", flush=True)
        context.join()
"""


def is_in_use(folder: str) -> bool:
    """Whether a folder is another user's, or a process holds its lock: that of a test is counted apart."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        try:
            with temporary_folders._lock_abandoned_folder(folder):
                return False
        except (BlockingIOError, PermissionError):
            return True
    return False


class Place:
    """A temporary folder, /dev/shm, and the processes that carry a mark in their environment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.temporary = folder, Path(tempfile.mkdtemp(prefix="killed-"))  # short, for sockets
        self.before = set(os.listdir("/dev/shm"))
        self.mark = f"TORCHLITE_TEST_MARK={folder}"
        self.environment = {
            **os.environ, "TMPDIR": str(self.temporary), "TORCHLITE_TEST_MARK": str(folder),
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "backends"))),
        }  # fmt: skip

    def start(self, code: str, *arguments: str) -> subprocess.Popen:
        """Run a program until it prints that it is ready."""
        path = self.folder / "program.py"
        path.write_text("import os, sys, time\n" + textwrap.dedent(code))
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(path), *arguments],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdout.close()
        return process

    def left(self) -> tuple[list[str], list[str]]:
        """Return the remaining files and processes."""
        tree = os.walk(self.temporary)  # which goes over folders that go meanwhile
        files = [os.path.join(where, name) for where, folders, names in tree for name in (*folders, *names)]
        # Jobs of other tests, whose memory this is, may run at the same time.
        others = mpich_shared_memory._find_files_in_use({f"/dev/shm/{name}" for name in os.listdir("/dev/shm")})
        shared = set(os.listdir("/dev/shm")) - self.before - {path.removeprefix("/dev/shm/") for path in others}
        return files + sorted(name for name in shared if not is_in_use(f"/dev/shm/{name}")), self.processes()

    def processes(self) -> list[str]:
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    if self.mark.encode() in Path("/proc", entry, "environ").read_bytes():
                        found.append(Path("/proc", entry, "cmdline").read_text())
                except OSError:
                    continue
        return found

    def await_nothing(self, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while self.left() != ([], []) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert self.left() == ([], [])


@pytest.fixture
def place(tmp_path):
    found = Place(tmp_path)
    yield found
    shutil.rmtree(found.temporary)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda s: s.name)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("program", [LOADER, STUCK], ids=["busy", "stuck"])
def test_a_data_loader(place, program, method, number):
    process = place.start(program, method)
    process.send_signal(number)
    assert process.wait(60) == -number
    place.await_nothing()


@pytest.mark.parametrize("number", SIGNALS, ids=lambda s: s.name)
@pytest.mark.parametrize("strategy", ["file_system", "file_descriptor"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_shared_tensors(place, method, strategy, number):
    process = place.start(SHARED, method, strategy)
    process.send_signal(number)
    assert process.wait(60) == -number
    place.await_nothing()


@pytest.mark.parametrize("number", SIGNALS, ids=lambda s: s.name)
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("ignored", [False, True], ids=["", "background"])
def test_started_processes(place, method, number, ignored, tmp_path):
    """A shell's background jobs ignore SIGINT."""
    (tmp_path / "told").mkdir()
    code = "\n    import signal\n    signal.signal(signal.SIGINT, signal.SIG_IGN)" if ignored else ""
    process = place.start(code + SPAWNED, method, str(tmp_path / "told"))
    process.send_signal(number)
    assert process.wait(60) == -number
    place.await_nothing()


RANK = """
    import torchlite as torch
    import torchlite.distributed as dist

    dist.init_process_group("mpi")
    x = torch.ones(1000)
    dist.all_reduce(x)
    if dist.get_rank() == 0:
        print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda s: s.name)
def test_a_job_of_the_launcher(place, number, tmp_path):
    (tmp_path / "rank.py").write_text("import os, sys, time\n" + textwrap.dedent(RANK))
    launcher = "from torchlite.distributed.run import main; sys.exit(main(sys.argv[1:]))"
    process = place.start(launcher, "--standalone", "--nproc-per-node", "2", str(tmp_path / "rank.py"))
    process.send_signal(number)
    process.wait(60)
    place.await_nothing()


BEGINNING = """
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 0:
        print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda s: s.name)
def test_a_job_killed_during_initialization(place, number, tmp_path):
    """Names of MPICH's shared memory are there still: the launcher removes them, or the next start."""
    (tmp_path / "rank.py").write_text("import os, sys, time\n" + textwrap.dedent(BEGINNING))
    launcher = "from torchlite.distributed.run import main; sys.exit(main(sys.argv[1:]))"
    process = place.start(launcher, "--standalone", "--nproc-per-node", "2", str(tmp_path / "rank.py"))
    process.send_signal(number)
    process.wait(60)
    if number == signal.SIGKILL:
        deadline = time.monotonic() + 60
        while place.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        mpich_shared_memory.clear_shared_memory(patient=True)
    place.await_nothing()


HOLDS = """
    from torchlite._settings import mpich_shared_memory, temporary_folders
    folder = temporary_folders.process_folder()
    open(os.path.join(folder, "file"), "w").close()
    print("ready", flush=True)
    time.sleep(600)
"""


def test_the_next_process_removes_files_of_a_killed_one(place, monkeypatch):
    """The shell that would remove it is killed, too. What a living process has stays."""
    living, dead = place.start(HOLDS), place.start(HOLDS)
    (shell,) = shells_of(dead.pid)
    os.kill(shell, signal.SIGKILL)
    dead.kill()
    dead.wait()
    assert len(list(place.temporary.iterdir())) == 2
    temporary_folders.remove_abandoned(str(place.temporary))
    (left,) = place.temporary.iterdir()
    assert (left / "file").exists()
    living.kill()
    living.wait()
    place.await_nothing()


def shells_of(owner: int) -> list[int]:
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and is_shell_of(int(p), owner)]


def is_shell_of(process: int, owner: int) -> bool:
    """Whether a process reads from the pipe that the owner writes to."""
    try:
        if not Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"sh\0-c"):
            return False
        ends = {os.readlink(f"/proc/{owner}/fd/{n}") for n in os.listdir(f"/proc/{owner}/fd")}
        return os.readlink(f"/proc/{process}/fd/3") in ends
    except OSError:
        return False


def test_folders_of_others_and_links_are_not_cleared(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").touch()
    (tmp_path / f"{temporary_folders.PREFIX}aaaaaaaa").symlink_to(target)
    (tmp_path / f"{temporary_folders.PREFIX}bbbbbbbb").touch()
    (tmp_path / f"{temporary_folders.PREFIX}cccccccc").mkdir(mode=0o755)
    (tmp_path / "torchlite-process").mkdir(mode=0o700)
    if os.geteuid() == 0:
        (tmp_path / f"{temporary_folders.PREFIX}dddddddd").mkdir(mode=0o700)
        os.chown(tmp_path / f"{temporary_folders.PREFIX}dddddddd", 65534, 65534)
    before = sorted(p.name for p in tmp_path.rglob("*"))
    temporary_folders.remove_abandoned(str(tmp_path))
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    (tmp_path / f"{temporary_folders.PREFIX}eeeeeeee").mkdir(mode=0o700)
    temporary_folders.remove_abandoned(str(tmp_path))
    assert sorted(p.name for p in tmp_path.rglob("*")) == before


def test_a_forked_child_has_a_separate_folder(tmp_path):
    mine = temporary_folders.process_folder(str(tmp_path))
    assert temporary_folders.process_folder(str(tmp_path)) == mine and os.stat(mine).st_mode & 0o777 == 0o700
    child = os.fork()
    if not child:
        other = temporary_folders.process_folder(str(tmp_path))
        os._exit(0 if other != mine and os.path.isdir(mine) else 1)
    assert os.waitpid(child, 0)[1] == 0
    deadline = time.monotonic() + 60
    while len(os.listdir(tmp_path)) > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert os.listdir(tmp_path) == [os.path.basename(mine)]


INHERITS = """
    import socket
    from torchlite._settings import temporary_folders
    read, write = os.pipe()
    listener = socket.create_server(("127.0.0.1", 0))
    for descriptor in (write, listener.fileno(), *(os.dup(write) for _ in range(12))):
        os.set_inheritable(descriptor, True)
    temporary_folders.process_folder()
    print("ready", flush=True)
    time.sleep(600)
"""


def test_the_shell_inherits_no_descriptor(place):
    """A pipe's reader sees its end, and a port is free, as soon as the process closes them."""
    process = place.start(INHERITS)
    (shell,) = shells_of(process.pid)
    names = {name: os.readlink(f"/proc/{shell}/fd/{name}") for name in os.listdir(f"/proc/{shell}/fd")}
    pipe = names.pop("3")
    assert pipe.startswith("pipe:") and set(names.values()) <= {pipe, "/dev/null"}, names
    process.kill()
    process.wait()
    place.await_nothing()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
def test_a_process_that_becomes_another_user_gets_a_new_folder():
    """Root's shell removes root's folder alone, whatever the process writes to it."""
    parent = Path(tempfile.mkdtemp(prefix="killed-"))
    parent.chmod(0o1777)
    kept = Path(tempfile.mkdtemp(prefix="killed-"))
    child = os.fork()
    if not child:
        status = 1
        try:
            mine = temporary_folders.process_folder(str(parent))
            held = list(temporary_folders._folders.descriptors)
            os.setgid(65534)
            os.setuid(65534)
            other = temporary_folders.process_folder(str(parent))
            for descriptor in held:
                with contextlib.suppress(OSError):
                    os.write(descriptor, os.fsencode(kept) + b"\n")
            if (
                other != mine
                and os.stat(other).st_uid == 65534
                and temporary_folders.process_folder(str(parent)) == other
            ):
                Path(other, "file").touch()
                status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    deadline = time.monotonic() + 60
    while os.listdir(parent) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert os.listdir(parent) == [] and kept.exists()
    parent.rmdir()
    kept.rmdir()
