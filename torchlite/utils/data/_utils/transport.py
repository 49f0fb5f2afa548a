"""Messages between the DataLoader and its workers.

Arrays leave the pickle as buffers (protocol 5). What is small goes through the pipe; what is large goes through a file
in shared memory (/dev/shm where there is one, else the folder for temporary files), which the receiver reads and
deletes. A file and not a shared mapping: writing to a full one is an error and no crash, and nothing is left behind to
be tracked. A pipe that only carries small messages never fills up, so neither side can block the other.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import uuid
from typing import Any

import numpy as np

PIPE_LIMIT = 16384


def make_folders() -> list[str]:
    """Private folders for large messages, the fastest first. Delete them with `remove_folders`."""
    parents = ["/dev/shm"] if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else []
    return [tempfile.mkdtemp(prefix="torchlite-", dir=parent) for parent in [*parents, tempfile.gettempdir()]]


def remove_folders(folders: list[str]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def send(connection: Any, message: Any, folders: list[str], limit: int = PIPE_LIMIT) -> None:
    """Send any picklable message."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(body), *(buffer.raw() for buffer in buffers)]
    if sum(part.nbytes for part in parts) <= limit:
        connection.send_bytes(pickle.dumps((None, [bytes(part) for part in parts]), protocol=5))
    else:
        connection.send_bytes(pickle.dumps((_write(parts, folders), [part.nbytes for part in parts]), protocol=5))


def _write(parts, folders: list[str]) -> str:
    """Write the parts to a new file in the first folder that has room."""
    for position, folder in enumerate(folders):
        path = os.path.join(folder, uuid.uuid4().hex)
        try:
            with open(path, "xb", buffering=0) as file:
                for part in parts:
                    _write_all(file, part)
            return path
        except OSError:
            if os.path.exists(path):
                os.unlink(path)
            if position == len(folders) - 1:
                raise
    raise RuntimeError("no folder for messages")


def _write_all(file, part: memoryview) -> None:
    done = 0
    while done < part.nbytes:
        done += file.write(part[done:])


def receive(connection: Any) -> Any:
    """The next message. EOFError when the other side is gone."""
    path, parts = pickle.loads(connection.recv_bytes())
    if path is None:
        return pickle.loads(parts[0], buffers=[bytearray(part) for part in parts[1:]])
    memory = np.empty(sum(parts), np.uint8)
    with open(path, "rb", buffering=0) as file:
        view, done = memoryview(memory), 0  # type: ignore[arg-type]
        while done < memory.nbytes:
            done += file.readinto(view[done:])  # type: ignore[attr-defined]
    os.unlink(path)
    ends = np.cumsum(parts).tolist()
    pieces = [view[end - size : end] for end, size in zip(ends, parts, strict=True)]
    # Each array gets memory of its own, aligned, so that keeping one does not keep the whole batch.
    return pickle.loads(pieces[0], buffers=[np.array(piece) for piece in pieces[1:]])
