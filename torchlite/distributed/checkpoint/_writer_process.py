"""A process that writes this rank's part of a checkpoint.

Planning and the messages between ranks stay in the program's process. The other one gets the storage's writer, the plan
and the data, in shared memory, and returns what the writer wrote.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import traceback
from typing import Any

import torchlite as torch

from .planner import SavePlan, SavePlanner, WriteItem
from .storage import StorageWriter, WriteResult

_held: list[WriterProcess] = []  # at most one, for all saves


class _GivenData:
    """In place of a planner: the data of a plan's items."""

    def __init__(self, data: dict[Any, Any]) -> None:
        self._data = data

    def resolve_data(self, item: WriteItem) -> Any:
        found = self._data[item.index]
        return found if isinstance(found, torch.Tensor) else io.BytesIO(found)


class WriterProcess:
    """The process. It ends with this one, after the file that it writes at that time."""

    def __init__(self) -> None:
        context = torch.multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), name="checkpoint", daemon=True)
        self._process.start()
        other.close()  # or its end could not be noticed
        self.owner = os.getpid()

    def write(self, writer: StorageWriter, plan: SavePlan, planner: SavePlanner) -> list[WriteResult]:
        """Write a plan's items.

        Args:
            writer: The writer, which is set up for this rank.
            plan: The rank's final plan.
            planner: The planner, which resolves the data.

        Raises:
            RuntimeError: The process ended. The errors of the writer are raised as they are.
        """
        data = {}
        for item in plan.items:
            found = planner.resolve_data(item)
            data[item.index] = found.getvalue() if isinstance(found, io.BytesIO) else found.detach()
        try:
            self._connection.send((writer, plan, data))
            answer = self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join(10)
            raise RuntimeError(f"Checkpoint background process is dead. Exit code: {self._process.exitcode}") from None
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[no-any-return]

    def is_usable(self) -> bool:
        """Return whether the process lives and belongs to this one, not to one that forked it."""
        return self.owner == os.getpid() and self._process.is_alive()


def writer_process() -> WriterProcess:
    """Return this process's process for writing; start it if there is none."""
    if not (_held and _held[0].is_usable()):
        _held[:] = [WriterProcess()]
    return _held[0]


def _serve(connection: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program's process decides what becomes of a save
    while True:
        try:
            writer, plan, data = connection.recv()
        except EOFError:  # the program ended
            return
        except Exception as error:  # a class that is not here
            _answer(connection, _describe(error))
            continue
        try:
            future = writer.write_data(plan, _GivenData(data))
            future.wait()
            answer = future.value()
        except Exception as error:  # raised in the program's process
            answer = _describe(error)
        del writer, plan, data
        _answer(connection, answer)


def _describe(error: Exception) -> Exception:
    error.add_note("In the checkpoint process:\n" + "".join(traceback.format_tb(error.__traceback__)))
    return error


def _answer(connection: Any, answer: Any) -> None:
    try:
        connection.send(answer)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        connection.send(RuntimeError(f"{answer!r} cannot be sent from the checkpoint process: {error}"))
