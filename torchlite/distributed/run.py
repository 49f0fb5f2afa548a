"""`python -m torchlite.distributed.run` and `torchlite-run`: launch a program in several processes.

The flags are torchrun's. `mpiexec` starts the processes, on this machine or on those of `--hostfile`. Where the command
runs on each machine, with `--rdzv-backend c10d` or with `--node-rank` and `--master-addr`, each starts its own.
RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT describe the processes. When one fails the
others are ended, and an error names the failed one and its cause; with `--max-restarts` all are restarted.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
import uuid
from typing import Any

from torchlite._settings.mpich_shared_memory import clear_shared_memory
from torchlite._settings.temporary_folders import process_folder

from ._launch.mpiexec_launcher import (
    Hosts,
    LaunchedWorld,
    describe_failure,
    find_mpiexec,
    mpi_command,
    program_command,
    rank_command,
    read_hosts,
)
from ._launch.rank_wrapper import rank_folders, signal_name

__all__ = ["get_args_parser", "main", "run"]


def get_args_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line of `torchlite-run`. Variables such as PET_NNODES are the flags' defaults.

    Example:
        >>> from torchlite.distributed.run import get_args_parser
        >>> get_args_parser().parse_args(["--nproc-per-node", "4", "train.py"]).nproc_per_node
        '4'
    """
    parser = argparse.ArgumentParser("torchlite-run", description="Start a program in several processes.")

    def flag(name: str, *others: str, **options: Any) -> None:
        plain = name.replace("-", "_")
        text = os.environ.get(f"PET_{plain.upper()}")
        if text is not None:  # as torchrun, which Kubeflow and TorchX tell so
            options["default"] = bool(int(text)) if options.get("action") == "store_true" else text
        parser.add_argument(*others, f"--{name}", *([f"--{plain}"] if plain != name else []), **options)

    flag("nnodes", default="1:1", help="number of machines, N or MIN:MAX")
    flag("nproc-per-node", default="1", help="processes on each machine: a number, auto, cpu or gpu")
    flag("hostfile", help="a file that names the machines, one a line: name, name:4 or name slots=4")
    flag("node-rank", type=int, default=0, help="this machine's number, where each machine runs this command")
    flag("master-addr", default="127.0.0.1", help="what MASTER_ADDR says, or where several machines meet")
    flag("master-port", type=int, default=29500, help="what MASTER_PORT says, or where several machines meet")
    flag("local-addr", default="", help="this machine's address, which the others reach")
    flag("standalone", action="store_true", help="one machine, and a free port as MASTER_PORT")
    flag("max-restarts", type=int, default=0, help="how often all start again after a process failed")
    flag("monitor-interval", type=float, default=0.1, help="seconds between two looks at the processes")
    flag("rdzv-backend", default="static", help="c10d: each of several machines runs this command")
    flag("rdzv-endpoint", default="", help="host:port where the machines meet, or for MASTER_ADDR and MASTER_PORT")
    flag("rdzv-id", default="none", help="the run's name")
    flag("rdzv-conf", default="", help="limits of the meeting in seconds, such as join_timeout=600")
    flag("role", default="default", help="the word before the number in front of lines of output")
    flag("start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help="taken, but not needed")
    flag("module", "-m", action="store_true", help="the program is a module, as for python -m")
    flag("no-python", action="store_true", help="the program is a command of its own")
    flag("run-path", action="store_true", help="taken: scripts are run so")
    flag("log-dir", default=None, help="the folder of the files that --tee and --redirects write")
    flag("redirects", "-r", default="0", help="write output (1), errors (2), both (3) to files")
    flag("tee", "-t", default="0", help="write to files and show, each line with its process")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _parse_processes_per_node(text: str) -> int:
    if text.isdigit() and int(text) > 0:
        return int(text)
    if text in ("auto", "gpu", "cpu"):
        import torchlite as torch

        count = torch.cuda.device_count() if text != "cpu" else 0
        if count or text == "gpu":
            if not count:
                raise ValueError("Cuda is not available.")
            return count
        return os.cpu_count() or 1
    raise ValueError(f"Unsupported nproc_per_node value: {text}")


def _parse_nnodes(text: str) -> tuple[int, int]:
    low, colon, high = text.partition(":")
    if not low.isdigit() or (colon and not high.isdigit()) or int(low) < 1:
        raise ValueError(f'nnodes={text} is not in "MIN:MAX" format')
    return int(low), int(high if colon else low)


def _parse_stream_bits(text: str) -> int:
    if text not in ("0", "1", "2", "3"):
        raise ValueError(f"{text!r} is none of 0, 1 (output), 2 (errors) and 3 (both)")
    return int(text)


def _parse_hosts(args: argparse.Namespace, per_node: int) -> tuple[Hosts | None, int]:
    """Return the hosts, and their number."""
    low, high = _parse_nnodes(args.nnodes)
    if args.standalone:
        return None, 1
    if args.hostfile is None:
        if high > 1 and low == high and "SLURM_JOB_ID" not in os.environ and "PBS_NODEFILE" not in os.environ:
            raise ValueError(
                f"{high} machines need --hostfile FILE with their names: mpiexec on the first starts the processes on "
                "all, by SSH"
            )
        return None, high if low == high else low
    found = read_hosts(args.hostfile, per_node)
    if args.nnodes == "1:1":
        return found, len(found.names)
    if len(found.names) < low:
        raise ValueError(
            f"--nnodes {args.nnodes} asks for {low} machines, but {args.hostfile} names {len(found.names)}"
        )
    return Hosts(found.names[:high], found.slots[:high]), min(high, len(found.names))


def _find_endpoint(args: argparse.Namespace) -> tuple[str, int] | None:
    """Return where several machines meet that each run this command; None if mpiexec starts all processes."""
    if args.standalone or args.hostfile is not None or _parse_nnodes(args.nnodes)[1] < 2:
        return None
    if args.rdzv_backend not in ("c10d", "static"):
        raise ValueError(f"--rdzv-backend {args.rdzv_backend}: machines meet by c10d or static")
    if args.rdzv_endpoint:
        host, port = _parse_endpoint(args.rdzv_endpoint)
        return host, port or (29400 if args.rdzv_backend == "c10d" else args.master_port)
    if args.rdzv_backend == "c10d":
        raise ValueError("--rdzv-backend c10d needs --rdzv-endpoint HOST:PORT, the address of one of the machines")
    return None if args.master_addr == "127.0.0.1" else (args.master_addr, args.master_port)


def _parse_endpoint(text: str) -> tuple[str, int]:
    """Return host and port of host:port; 0 without one."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, "0"
    if not port.isdigit() or int(port) > 65535:
        raise ValueError(f"--rdzv-endpoint {text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _log_folder(args: argparse.Namespace, run_id: str) -> str:
    """Create a folder for the files of `--tee` and `--redirects`, inside `--log-dir` if given; "" if neither is set.

    OSError if that fails.
    """
    if args.tee == args.redirects == "0":
        return ""
    if not args.log_dir:
        return tempfile.mkdtemp(prefix="torchlite_run_")
    os.makedirs(args.log_dir, exist_ok=True)
    return tempfile.mkdtemp(prefix=re.sub(r"[^\w.-]", "_", run_id) + "_", dir=os.path.abspath(args.log_dir))


class _Signals:
    """Forwards SIGINT and SIGTERM to the running world. One that arrives between worlds ends the next at once."""

    def __init__(self) -> None:
        self.number = 0  # of the last signal
        self._started: LaunchedWorld | None = None

    def __enter__(self) -> _Signals:
        self._before = {
            number: signal.signal(number, self._handle_signal) for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle_signal(self, number: int, _: Any) -> None:
        self.number = number
        if self._started is not None:
            self._started.stop(number)

    def start(self, *arguments: Any) -> LaunchedWorld:
        """Start a world and return it."""
        self._started = None
        self._started = started = LaunchedWorld(*arguments)
        if self.number and not started.signaled:
            started.stop(self.number)
        return started


def run(args: argparse.Namespace) -> int:
    """Starts the processes that parsed arguments describe, and returns the exit code.

    A script is started with its arguments::

        torchlite.distributed.run.run(get_args_parser().parse_args(["--nproc-per-node", "4", "train.py"]))

    Args:
        args: What the parser of `get_args_parser` returns.
    """
    per_node = _parse_processes_per_node(args.nproc_per_node)
    endpoint = _find_endpoint(args)
    run_id = args.rdzv_id if args.rdzv_id != "none" or endpoint is not None else uuid.uuid4().hex[:12]
    options = {
        "per_node": per_node,
        "role": args.role,
        "run_id": run_id,
        "restart": 0,
        "max_restarts": args.max_restarts,
        "tee": _parse_stream_bits(args.tee),
        "redirects": _parse_stream_bits(args.redirects),
        "log_dir": _log_folder(args, run_id),
        "folder": process_folder(),
        "launcher": os.getpid(),
    }
    program = [args.training_script, *args.training_script_args]
    if endpoint is None:
        return _run_by_mpiexec(args, per_node, options, program)
    from ._launch.elastic_agent import Settings, run_elastic

    command = program_command(program, not args.no_python, args.module)
    machines, settings = _parse_nnodes(args.nnodes), Settings.parse(args.rdzv_conf)
    options |= {"local_addr": args.local_addr, "monitor_interval": args.monitor_interval, "signals": "SIGINT,SIGTERM"}
    return run_elastic(endpoint, machines, args.node_rank, options, command, settings)


def _run_by_mpiexec(args: argparse.Namespace, per_node: int, options: dict[str, Any], program: list[str]) -> int:
    hosts, nodes = _parse_hosts(args, per_node)
    if args.node_rank:
        print(f"torchlite-run: machine 0 starts the processes of all: nothing to do on machine {args.node_rank}")
        return 0
    size = sum(hosts.slots) if hosts is not None else nodes * per_node
    address, port = args.master_addr, _find_free_port() if args.standalone else args.master_port
    if args.rdzv_endpoint:
        address, given = _parse_endpoint(args.rdzv_endpoint)
        port = given or port
    elif hosts is not None and address == "127.0.0.1":
        address = hosts.names[0]
    options |= {"nodes": nodes, "master_addr": address, "master_port": port}
    before = mpi_command(find_mpiexec(), size, per_node, hosts)
    clear_shared_memory()
    with _Signals() as signals:
        for restart in range(args.max_restarts + 1):
            options |= {"restart": restart, "mark": secrets.token_hex(16)}
            command = [*before, *rank_command(options, program, not args.no_python, args.module)]
            started = signals.start(command, size, options["mark"], rank_folders(options) if nodes == 1 else "")
            code = started.wait()
            clear_shared_memory(patient=code != 0)  # of ranks that were killed
            if code == 0 and not started.failures:
                return 0
            left = 0 if signals.number else args.max_restarts - restart
            _report_restart(started, code, left)
            if not left or signals.number:  # a signal may have come meanwhile
                break
    ended = started.failures[0]["code"] if started.failures else code
    return 128 - ended if ended < 0 else ended or 1


def _report_restart(started: LaunchedWorld, code: int, left: int) -> None:
    words = f"mpiexec ended with exit code {code}" if code >= 0 else f"mpiexec was killed by {signal_name(-code)}"
    if started.failures:
        words = describe_failure(started.failures[0])
    after = f"all processes start again ({left} more times at most)" if left else "the others were ended"
    print(f"torchlite-run: {words}\ntorchlite-run: {after}", file=sys.stderr, flush=True)


def run_or_say(args: argparse.Namespace) -> int:
    """`run`, with one line for a wrong flag."""
    try:
        return run(args)
    except (ValueError, RuntimeError, OSError) as error:
        print(f"torchlite-run: {error}", file=sys.stderr)
        return 2


def main(args: list[str] | None = None) -> int:
    """Runs the command line of `torchlite-run`, and returns the exit code.

    The command line is equal to this call::

        torchlite.distributed.run.main(["--nproc-per-node", "4", "train.py"])

    Args:
        args: The arguments. Default: those of the process.
    """
    return run_or_say(get_args_parser().parse_args(args))


if __name__ == "__main__":
    sys.exit(main())
