"""Wrapper between `mpiexec` and a process of the program: environment variables, output, and exit report.

It runs by its path with only the standard library, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

# Prefix of messages to the launcher on the error output, with a secret that the program does not know.
MARK = "\x1etorchlite-run {} "
_PART = 1 << 16  # bytes of a line forwarded at a time
_LONGER = 10.0  # seconds for mpiexec to end this process after the launcher's end
FOREIGN_VARIABLES = ("PMI_", "PMIX_", "OMPI_", "MV2_", "PALS_", "MPI_LOCAL")  # of MPI's launchers, for their ranks
ENDED = "ended"  # file in a rank's folder that marks the end of its program
_NAMES = {
    "rank": ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"),
    "size": ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"),
    "local_rank": ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"),
    "local_size": ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"),
}


def rank_and_size() -> dict[str, int]:
    """Return rank, size and local rank from the environment of MPI's launcher."""
    found = {}
    for name, variables in _NAMES.items():
        value = next((os.environ[variable] for variable in variables if variable in os.environ), None)
        found[name] = int(value) if value is not None else {"rank": 0, "size": 1}.get(name, -1)
    if found["local_rank"] < 0:
        found["local_rank"] = found["rank"]
    if found["local_size"] < 0:
        found["local_size"] = found["size"]
    return found


def make_environment(
    options: dict[str, Any], at: dict[str, int], error_file: str, inherited: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the environment variables of the program's process."""
    node = at.get("node", at["rank"] // options["per_node"])
    variables = {
        "RANK": at["rank"], "WORLD_SIZE": at["size"], "LOCAL_RANK": at["local_rank"],
        "LOCAL_WORLD_SIZE": at["local_size"], "GROUP_RANK": node, "GROUP_WORLD_SIZE": options["nodes"],
        "ROLE_RANK": at.get("role_rank", at["rank"]), "ROLE_WORLD_SIZE": at.get("role_size", at["size"]),
        "ROLE_NAME": options["role"],
        "MASTER_ADDR": options["master_addr"], "MASTER_PORT": options["master_port"],
        "TORCHELASTIC_RUN_ID": options["run_id"], "TORCHELASTIC_RESTART_COUNT": options["restart"],
        "TORCHELASTIC_MAX_RESTARTS": options["max_restarts"],
        "TORCHELASTIC_USE_AGENT_STORE": options.get("agent_store", False),
        "TORCHELASTIC_ERROR_FILE": error_file, "TORCHLITE_RANK_FOLDER": os.path.dirname(error_file),
    }  # fmt: skip
    if _is_shared(options):
        variables["TORCHLITE_RANK_FOLDERS"] = os.path.dirname(os.path.dirname(error_file))
    result = {**inherited, **{name: str(value) for name, value in variables.items()}}
    if at["local_size"] > 1:
        result.setdefault("OMP_NUM_THREADS", "1")
    return result


def _is_shared(options: dict[str, Any]) -> bool:
    """True if all ranks are on the launcher's machine, with folders in the launcher's."""
    return options["nodes"] == 1 and os.path.isdir(options["folder"])


def rank_folders(options: dict[str, Any]) -> str:
    """Return the parent of the ranks' folders if all are on one machine."""
    return os.path.join(options["folder"], f"ranks-{options['restart']}")


def pipe_path(folder: str, rank: int) -> str:
    """Return the path of a rank's named pipe in the folder of the ranks' folders."""
    return os.path.join(folder, f"errors-{rank}")


def _open_error_pipe(options: dict[str, Any], rank: int) -> None:
    """Connect the error output with the launcher's named pipe (`error_streams.py`), if this machine has it."""
    if _is_shared(options):
        with contextlib.suppress(OSError):  # the system has none, or the launcher has ended
            descriptor = os.open(pipe_path(rank_folders(options), rank), os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(descriptor, True)
            os.dup2(descriptor, 2)
            os.close(descriptor)


@contextlib.contextmanager
def _make_rank_folder(options: dict[str, Any], rank: int) -> Iterator[str]:
    """Return the folder of a rank, inside the launcher's, which removes it even if this process is killed.

    Other machines have none.
    """
    if _is_shared(options):
        folder = os.path.join(rank_folders(options), str(rank))
        os.makedirs(folder)
        yield folder
        return
    above = options["folder"] if os.path.isdir(options["folder"]) else None
    with tempfile.TemporaryDirectory(prefix="torchlite_", dir=above, ignore_cleanup_errors=True) as folder:
        yield folder


def signal_child_at_parent_end(number: int) -> Any:
    """Make a child get a signal when its parent ends, if the system supports it (Linux)."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(1, number)


def open_streams(options: dict[str, Any], at: dict[str, int]) -> list[tuple[bool, BinaryIO | None]]:
    """Return for output and errors: whether lines are shown, and the log file."""
    found: list[tuple[bool, BinaryIO | None]] = []
    for bit, name in ((1, "stdout.log"), (2, "stderr.log")):
        filed = (options["redirects"] | options["tee"]) & bit
        file = None
        if filed:
            folder = os.path.join(options["log_dir"], f"attempt_{options['restart']}", str(at["rank"]))
            os.makedirs(folder, mode=0o700, exist_ok=True)
            file = open(os.path.join(folder, name), "xb", buffering=0)  # noqa: SIM115
        found.append((bool(options["tee"] & bit) or not options["redirects"] & bit, file))
    return found


def forward_lines(source: BinaryIO, target: BinaryIO | None, file: BinaryIO | None, prefix: bytes) -> None:
    """Forward lines to the console, with the rank as prefix, and to a file. Long ones are forwarded in parts."""
    begins = True
    for part in iter(lambda: source.readline(_PART), b""):
        if file is not None:
            file.write(part)
        if target is not None:
            target.write(prefix + part if begins else part)
            target.flush()
        begins = part.endswith(b"\n")


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def describe_end(code: int, at: dict[str, int], pid: int, error_file: str) -> dict[str, Any]:
    told: dict[str, Any] = {"host": socket.gethostname(), "pid": pid, **at}
    told["signal"] = signal_name(-code) if code < 0 else ""
    told["code"] = code
    try:
        with open(error_file) as file:
            message = json.load(file)["message"]
        told["error"] = message["message"]
        told["traceback"] = message["extraInfo"]["py_callstack"]
    except (OSError, ValueError, KeyError, TypeError):
        told["error"] = told["traceback"] = ""
    return told


def _read_program_state(folder: str, pid: int) -> str:
    """Return the state that the program's process wrote (torchlite._settings.rank_state)."""
    try:
        with open(os.path.join(folder, f"state-{pid}")) as file:
            return file.read()
    except OSError:
        return ""


def _has_joined(folder: str) -> bool:
    """True if the program's process, or a child of it, has begun to join its world."""
    try:
        return any(name.startswith("state-") for name in os.listdir(folder))
    except OSError:  # the program may have removed it
        return False


def _write_end_marker(folder: str) -> None:
    """Create a marker file: the program ended on its own and was not killed with this process."""
    with contextlib.suppress(OSError), open(os.path.join(folder, ENDED), "w"):
        pass


def _report_to_launcher(options: dict[str, Any], told: dict[str, Any]) -> None:
    sys.stderr.write(f"{MARK.format(options['mark'])}{json.dumps(told)}\n")
    sys.stderr.flush()


def _end_with_launcher(launcher: int, parent: int, child: subprocess.Popen) -> None:
    """End the program some time after the launcher was killed: mpiexec waits forever if its proxy was stopped."""
    try:
        descriptor = os.pidfd_open(launcher)
    except (OSError, AttributeError):  # the system cannot
        return
    waited = select.poll()
    waited.register(descriptor, select.POLLIN)
    waited.poll()
    time.sleep(_LONGER)
    child.kill()
    if os.getppid() == parent:
        os.kill(parent, signal.SIGKILL)
    os._exit(1)


def _report_process_state(
    options: dict[str, Any], folder: str, pid: int, at: dict[str, int], ended: threading.Event
) -> None:
    """Report each new state of the program's process to the launcher, until it ends."""
    state = ""
    while not ended.wait(0.25):
        if (now := _read_program_state(folder, pid)) != state:
            state = now
            _report_to_launcher(options, {**at, "what": "state", "code": 0, "state": state})


def main(options: dict[str, Any], command: list[str]) -> int:
    """Run the program's process and return its exit code. `${local_rank}` in the command is substituted."""
    at, parent = rank_and_size(), os.getppid()
    command = [string.Template(part).safe_substitute(local_rank=at["local_rank"]) for part in command]
    _open_error_pipe(options, at["rank"])
    with _make_rank_folder(options, at["rank"]) as folder:
        error_file = os.path.join(folder, "error.json")
        try:
            streams = open_streams(options, at)
        except OSError as error:
            failure = {**describe_end(1, at, os.getpid(), error_file), "error": str(error), "traceback": str(error)}
            _report_to_launcher(options, {**failure, "what": "end", "state": "", "joined": False})
            return 1
        plain = [shown and file is None for shown, file in streams]
        child = subprocess.Popen(
            command,
            env=make_environment(options, at, error_file),
            # mpiexec connects its input to rank 0 only, and never closes the others'.
            stdin=subprocess.DEVNULL if at["rank"] else None,
            stdout=None if plain[0] else subprocess.PIPE,
            stderr=None if plain[1] else subprocess.PIPE,
            close_fds=False,  # MPI's library speaks to mpiexec by a descriptor
            preexec_fn=signal_child_at_parent_end(signal.SIGKILL),  # noqa: PLW1509 -- no thread runs yet
        )
        for number in (signal.SIGTERM, signal.SIGINT):  # MPI's launchers send them to the process group
            signal.signal(number, lambda given, frame: None)
        prefix = f"[{options['role']}{at['local_rank']}]:".encode()
        carriers = []
        for (shown, file), source, target in zip(
            streams, (child.stdout, child.stderr), (sys.stdout.buffer, sys.stderr.buffer), strict=True
        ):
            if source is not None:
                carriers.append(
                    threading.Thread(target=forward_lines, args=(source, target if shown else None, file, prefix))
                )
                carriers[-1].start()
        ended = threading.Event()
        watcher = threading.Thread(
            target=_report_process_state, args=(options, folder, child.pid, at, ended), daemon=True
        )
        watcher.start()
        if _is_shared(options):
            here = {"host": socket.gethostname(), "pid": child.pid, "watcher": os.getpid(), "parent": parent}
            _report_to_launcher(options, {**at, **here, "what": "start"})
            threading.Thread(target=_end_with_launcher, args=(options["launcher"], parent, child), daemon=True).start()
        code = child.wait()
        ended.set()
        for thread in (*carriers, watcher):
            thread.join(5)
        state = _read_program_state(folder, child.pid)
        joined = _has_joined(folder)
        _write_end_marker(folder)
        _report_to_launcher(
            options, {**describe_end(code, at, child.pid, error_file), "what": "end", "state": state, "joined": joined}
        )
        if code == 0 and state not in ("", "outside"):
            # MPI would end the others of a process that left. The launcher decides, and ends this one.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if not _is_shared(options):
                shutil.rmtree(folder, ignore_errors=True)
            while True:
                signal.pause()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
