"""Where the output of launched processes goes: to files, to the console, or both."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any

from torchlite._settings.temporary_folders import process_folder

from ..._launch.error_file import ERROR_FILE_VARIABLE

_PAUSE = 0.1  # seconds between two looks at a file that grows


class Std(IntFlag):
    """Output (``OUT``), errors (``ERR``), both (``ALL``) or neither (``NONE``).

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing import Std
        >>> Std.ALL == Std.OUT | Std.ERR
        True
    """

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = 3

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """Reads ``"3"``, or a value for each local rank such as ``"0:3,1:1"``.

        Args:
            vm: The text.

        Raises:
            ValueError: The text has another form.

        Example:
            >>> from torchlite.distributed.elastic.multiprocessing import Std
            >>> Std.from_str("0:3,1:1") == {0: Std.ALL, 1: Std.OUT}
            True
        """
        if re.fullmatch("[0123]", vm):
            return cls(int(vm))
        if re.fullmatch(r"(\d:[0123],)*(\d:[0123])", vm):
            pairs = (word.split(":") for word in vm.split(","))
            return {int(rank): cls(int(value)) for rank, value in pairs}
        raise ValueError(f"{vm} does not match: <^[0123]$> or <^(\\d:[0123],)*(\\d:[0123])$>")


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """Returns a value of `Std` for each local rank.

    Args:
        val_or_map: One value for all, or values by local rank; those that are absent are ``Std.NONE``.
        local_world_size: The number of processes.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing import Std, to_map
        >>> to_map({1: Std.OUT}, 2) == {0: Std.NONE, 1: Std.OUT}
        True
    """
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


@dataclass
class LogsDest:
    """Files by local rank: of output and errors (``""``: the console), of what is shown too, and of errors' causes.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing import LogsDest
        >>> LogsDest(stdouts={0: ""}).stdouts
        {0: ''}
    """

    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)
    filtered_stdout: str = ""
    filtered_stderr: str = ""


class LogsSpecs(ABC):
    """Decides where the output of processes goes.

    Args:
        log_dir: The folder of the files.
        redirects: What goes to files only, for all or by local rank.
        tee: What goes to files and to the console.
        local_ranks_filter: The local ranks whose output is shown. Default: all.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs
        >>> issubclass(DefaultLogsSpecs, LogsSpecs)
        True
    """

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        self._root_log_dir, self._redirects, self._tee = log_dir, redirects, tee
        self._local_ranks_filter = local_ranks_filter

    @abstractmethod
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Returns the files of processes with these variables.

        Args:
            envs: The variables by local rank.
        """

    @property
    @abstractmethod
    def root_log_dir(self) -> str:
        """The folder of the files."""


class DefaultLogsSpecs(LogsSpecs):
    """Files in ``log_dir/RUN_*/attempt_N/LOCAL_RANK``, where RUN is the run's name and N counts the restarts.

    Args:
        log_dir: The folder, which is made. Default: one that goes with this process. ``os.devnull``: no files.
        redirects: What goes to files only, for all or by local rank.
        tee: What goes to files and to the console.
        local_ranks_filter: The local ranks whose output is shown. Default: all.

    Raises:
        NotADirectoryError: ``log_dir`` is a file.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing import DefaultLogsSpecs
        >>> DefaultLogsSpecs().reify({0: {}}).stdouts
        {0: ''}
    """

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        if not log_dir:
            log_dir = tempfile.mkdtemp(prefix="torchelastic_", dir=process_folder())
        elif os.path.isfile(log_dir):
            raise NotADirectoryError(f"log_dir: {log_dir} is a file")
        elif log_dir != os.devnull:
            os.makedirs(log_dir, exist_ok=True)
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._run_log_dir = ""

    @property
    def root_log_dir(self) -> str:
        """The folder of the files."""
        return str(self._root_log_dir)

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Makes the folders, and writes the variable TORCHELASTIC_ERROR_FILE to the variables.

        Args:
            envs: The variables by local rank.
        """
        ranks, first = range(len(envs)), envs.get(0, {})
        redirects, tees = to_map(self._redirects, len(envs)), to_map(self._tee, len(envs))
        if self._root_log_dir == os.devnull:
            for rank in ranks:
                envs[rank][ERROR_FILE_VARIABLE] = ""
            nowhere, console = dict.fromkeys(ranks, os.devnull), dict.fromkeys(ranks, "")
            return LogsDest(console, dict(console), {}, {}, nowhere, os.devnull, os.devnull)
        if not self._run_log_dir:
            run = first.get("TORCHELASTIC_RUN_ID", "test_run_id")
            self._run_log_dir = tempfile.mkdtemp(prefix=re.sub(r"[^\w.-]", "_", run) + "_", dir=self.root_log_dir)
        attempt = os.path.join(self._run_log_dir, f"attempt_{first.get('TORCHELASTIC_RESTART_COUNT', '0')}")
        shutil.rmtree(attempt, ignore_errors=True)
        found = LogsDest()
        found.filtered_stdout = os.path.join(attempt, "filtered_stdout.log")
        found.filtered_stderr = os.path.join(attempt, "filtered_stderr.log")
        for rank in ranks:
            folder = os.path.join(attempt, str(rank))
            os.makedirs(folder)
            shown = not self._local_ranks_filter or rank in self._local_ranks_filter
            for bit, name, files, tee_files in (
                (Std.OUT, "stdout.log", found.stdouts, found.tee_stdouts),
                (Std.ERR, "stderr.log", found.stderrs, found.tee_stderrs),
            ):
                filed = (redirects[rank] | tees[rank]) & bit
                files[rank] = os.path.join(folder, name) if filed else "" if shown else os.devnull
                if tees[rank] & bit and shown:
                    tee_files[rank] = files[rank]
            found.error_files[rank] = os.path.join(folder, "error.json")
            envs[rank][ERROR_FILE_VARIABLE] = found.error_files[rank]
        return found


class Tail:
    """Shows the lines of files as they grow, each with its prefix, until `stop`."""

    def __init__(
        self, files: dict[int, str], target: Any, prefixes: dict[int, str], wanted: Callable[[str], bool] | None = None
    ) -> None:
        self._files, self._target, self._prefixes, self._wanted = files, target, prefixes, wanted
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)
        if files:
            self._thread.start()

    def _show(self) -> None:
        for path in self._files.values():
            with open(path, "a"):
                pass  # it is there before the process writes
        opened = {rank: open(path, errors="replace") for rank, path in self._files.items()}  # noqa: SIM115
        parts = dict.fromkeys(opened, "")
        try:
            ended = False
            while not ended:
                ended = self._ended.wait(_PAUSE)  # what was written before the end is shown in the last turn
                for rank, file in opened.items():
                    *lines, parts[rank] = (parts[rank] + file.read()).split("\n")
                    self._write(rank, lines)
            for rank, part in parts.items():
                self._write(rank, [part] if part else [])
        finally:
            for file in opened.values():
                file.close()

    def _write(self, rank: int, lines: Sequence[str]) -> None:
        for line in lines:
            if self._wanted is None or self._wanted(line):
                self._target.write(f"{self._prefixes[rank]}{line}\n")
        if lines:
            self._target.flush()

    def stop(self) -> None:
        """Show what is left, and end."""
        self._ended.set()
        if self._files:
            self._thread.join(10)
