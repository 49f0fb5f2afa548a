"""MPI transport: joins the world of `mpiexec` (or a scheduler) and creates groups of its processes."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import sys
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchlite._settings import mpich_shared_memory, rank_state

if TYPE_CHECKING:
    from .communicator import Communicator
    from .pmi_server import PMIServer

# Environment variables of MPI launchers: Hydra and Slurm's PMI-1 and 2, PMIx, Open MPI.
_LAUNCHER_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID")
# Seconds that a leaving process of a world without a launcher waits for the others, and after it gave up a message.
_EXIT_TIMEOUT, _LOST_EXIT_TIMEOUT = 20.0, 1.0


class MPITransport:
    """Transport of messages over MPI."""

    name = "mpi"

    def __init__(self) -> None:
        self._process: int | None = None  # that has the world: a fork of it has none
        self._server: PMIServer | None = None  # of a world that no launcher started
        self._beginning: Any = None
        self._meeting: Any = None  # of a world under construction

    def is_installed(self) -> bool:
        """True if mpi4py is installed; does not import it."""
        return importlib.util.find_spec("mpi4py") is not None

    def why_not(self) -> str:
        """Return why MPI is not available, or ""."""
        try:
            self._import_mpi4py()
        except ImportError as error:
            return f"mpi4py is missing: install it with pip install 'torchlite-nd[mpi]' ({error})"
        except RuntimeError as error:  # mpi4py without a library of MPI
            return f"mpi4py found no library of MPI: pip install 'torchlite-nd[mpi]' brings one ({error})"
        return ""

    def started(self) -> bool:
        """True if an MPI launcher started this process."""
        return self._server is not None or any(mark in os.environ for mark in _LAUNCHER_VARIABLES)

    def join(self, rank: int, size: int, store: Any, limit: float) -> None:
        """Join a world of processes that no launcher of MPI started; all pass the same store.

        TimeoutError if not all come within `limit` seconds, RuntimeError if they disagree or MPI cannot.
        """
        from .store_world import join_world

        MPI = self._import_mpi4py()
        if MPI.Is_initialized():
            raise RuntimeError(
                "MPI was initialised before init_process_group, as a world of this process alone: set "
                "mpi4py.rc.initialize = False before mpi4py.MPI is imported"
            )
        library = MPI.Get_library_version()
        if "Open MPI" in library:
            raise RuntimeError(
                "Open MPI joins only processes that its launcher started: python -m torchlite.distributed.run "
                f"--nproc-per-node {size} SCRIPT, or mpiexec -n {size} python SCRIPT; MPICH joins others too "
                "(pip install mpich)"
            )
        self._server = join_world(rank, size, store, limit)
        atexit.register(self._server.answer_after_python)  # runs after `_finalize_at_exit`

    def world(self, limit: float | None = None) -> Communicator:
        """Return the group of all processes, once all have called this. TimeoutError after `limit` seconds."""
        from .communicator import Communicator
        from .group_meeting import make_within
        from .mpi_init import Meeting

        MPI = self._initialized_mpi(limit)
        self._begin_init(MPI)
        if self._meeting is None:
            self._meeting = Meeting(MPI)
        world_communicator = self._meeting.wait(limit)
        if world_communicator is None:
            rank_state.write_state(rank_state.ALONE)
            raise TimeoutError(f"not all of the {MPI.COMM_WORLD.size} processes came within {limit} seconds")
        self._meeting = None
        mpich_shared_memory.unlink_mapped()
        ranks = range(world_communicator.size)
        return make_within(lambda: Communicator(world_communicator, ranks), MPI.COMM_WORLD, ranks, 0, limit)

    def group(self, ranks: Sequence[int], name: str, limit: float | None = None) -> Communicator:
        """Return a group of some ranks of the world, in this order; only members call it, all with the same name.

        TimeoutError after `limit` seconds, ConnectionError if MPI lost a member.
        """
        from .communicator import Communicator
        from .group_meeting import make_within, wait_for_members

        MPI = self._initialized_mpi()
        self._begin_init(MPI)
        everyone = MPI.COMM_WORLD
        tag = zlib.crc32(name.encode()) % everyone.Get_attr(MPI.TAG_UB)
        members = everyone.Get_group().Incl(list(ranks))
        make = lambda: Communicator(everyone.Create_group(members, tag), ranks)
        try:
            wait_for_members(everyone, ranks, tag, limit)
            return make_within(make, everyone, ranks, tag, limit)
        except RuntimeError as error:
            raise ConnectionError(str(error)) from None

    def local_rank_and_size(self) -> tuple[int, int]:
        """Return this process's rank on its machine, and the number of ranks there."""
        if self._server is not None:
            return self._server.local_rank_and_size
        MPI = self._initialized_mpi()
        near = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
        found = near.Get_rank(), near.Get_size()
        near.Free()
        return found

    def place(self, limit: float | None = None) -> tuple[int, int]:
        """Return rank and size of the world, once all processes have called this. TimeoutError after `limit`
        seconds.
        """
        everyone = self._initialized_mpi(limit).COMM_WORLD
        return everyone.Get_rank(), everyone.Get_size()

    def abort(self, code: int) -> None:
        """End all processes of the world, this one first. Where no launcher started them, this one alone."""
        sys.stdout.flush()
        sys.stderr.flush()
        if self._server is not None:  # MPI would reach nobody
            os._exit(code)
        self._initialized_mpi().COMM_WORLD.Abort(code)

    def _import_mpi4py(self) -> Any:
        """Import mpi4py without initialising MPI."""
        import mpi4py

        if "mpi4py.MPI" not in sys.modules:
            mpi4py.rc.initialize = False  # `_mpi` does
            mpi4py.rc.finalize = False  # `_end` does
        from mpi4py import MPI

        return MPI

    def _initialized_mpi(self, limit: float | None = None) -> Any:
        """Return mpi4py's module with MPI initialised, which waits for all processes. TimeoutError after `limit`
        seconds.
        """
        MPI = self._import_mpi4py()
        self._check_fork()
        if self._beginning is None and MPI.Is_initialized():
            return MPI
        # MPICH's default took ten times as long from 1 MiB on.
        os.environ.setdefault("MPIR_CVAR_IREDUCE_SCATTER_BLOCK_INTRA_ALGORITHM", "sched_pairwise")
        variables = {} if self._server is None else {**_choose_network(MPI), **self._server.variables}
        before = dict(os.environ)
        os.environ.update(variables)  # for this process only: its children are not ranks
        try:
            if self._beginning is None:
                from .mpi_init import MPIInit

                self._beginning = MPIInit(MPI)
                if self._server is not None:
                    self._server.start(self._beginning.fail)
            rank_state.write_state(rank_state.JOINING)
            if not self._beginning.wait(limit):
                rank_state.write_state(rank_state.ALONE)
                raise TimeoutError(rank_state.count_joined())
        finally:
            for name in variables:
                if name in before:
                    os.environ[name] = before[name]
                else:
                    del os.environ[name]
        self._beginning = None
        rank_state.write_state(rank_state.INSIDE)
        return MPI

    def _begin_init(self, MPI: Any) -> None:
        self._check_fork()
        rank_state.write_state(rank_state.INSIDE)
        if self._process is None:
            self._process = os.getpid()
            atexit.register(self._finalize_at_exit, MPI)
            from .fork_guard import refuse_all

            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=refuse_all)

    def _check_fork(self) -> None:
        if self._process not in (None, os.getpid()):
            from .fork_guard import WORDS

            raise RuntimeError(WORDS)

    def _finalize_at_exit(self, MPI: Any) -> None:
        """Wait for the other processes at exit, asleep: MPI's own waiting would occupy a core."""
        from .collective_queue import release_all
        from .mpi_init import finalize
        from .requests import Request

        if self._process == os.getpid() and not MPI.Is_finalized():
            rank_state.write_state(rank_state.WAITING)
            if self._meeting is None:
                last = Request(MPI.COMM_WORLD.Ibarrier(), ())
            else:  # another barrier would meet the others' next step
                last = self._meeting.barrier()
            # Where no launcher ends the others when one fails, it may not come.
            limit = (_LOST_EXIT_TIMEOUT if Request.gave_up else _EXIT_TIMEOUT) if self._server else None
            if last is not None and last.wait(limit):
                release_all()
                if self._server is not None:
                    self._server.leave()
                finalize(MPI)
                rank_state.write_state(rank_state.OUTSIDE)


def _choose_network(MPI: Any) -> dict[str, str]:
    """Return the variable that selects libfabric, where MPICH has it beside UCX.

    After the end of a rank, MPICH 5.0 over UCX crashes in the next send to it. Over libfabric the call has an error.
    """
    network = "MPIR_CVAR_CH4_NETMOD"
    device = re.search(r"MPICH Device:\s+ch4:(.*)", MPI.Get_library_version())
    if network in os.environ or device is None or not {"ucx", "ofi"} <= set(re.split(r"[ ,]", device.group(1))):
        return {}
    return {network: "ofi"}
