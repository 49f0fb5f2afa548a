"""Named pipes for the error output of ranks on the launcher's machine.

`mpiexec` forwards the error output too. It loses what a rank writes just before `mpiexec` kills it, such as MPI's
message about an abort. A pipe to the launcher keeps it.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator

from .rank_wrapper import pipe_path


class ErrorStreams:
    """The error output of `mpiexec`, and of each rank that opens its named pipe in `folder`. Linux has the pipes."""

    def __init__(self, folder: str, size: int) -> None:
        self._pipes: list[int] = []
        if folder and sys.platform == "linux":
            os.makedirs(folder, exist_ok=True)
            for rank in range(size):
                os.mkfifo(pipe_path(folder, rank), 0o600)
                self._pipes.append(os.open(pipe_path(folder, rank), os.O_RDONLY | os.O_NONBLOCK))

    def read(self, mpiexec: int) -> Iterator[tuple[int, bytes]]:
        """Yield parts of the output with their descriptors, until `mpiexec`'s ends and the pipes are empty.

        The last part of a descriptor is empty.
        """
        if not self._pipes:
            yield from ((mpiexec, part) for part in iter(lambda: os.read(mpiexec, 1 << 16), b""))
            yield mpiexec, b""
            return
        poll, is_open = select.poll(), True
        for descriptor in (mpiexec, *self._pipes):
            poll.register(descriptor, select.POLLIN)
        while ready := poll.poll(None if is_open else 0):
            for descriptor, _ in ready:
                data = os.read(descriptor, 1 << 16)
                if not data:
                    poll.unregister(descriptor)
                    is_open = is_open and descriptor != mpiexec
                yield descriptor, data
        for descriptor in self._pipes:
            os.close(descriptor)
