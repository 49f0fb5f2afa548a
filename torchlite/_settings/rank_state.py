"""Records the state of a rank for the launcher: a process that exits with code 0 before it leaves the process group has
failed.
"""

from __future__ import annotations

import os
import threading

FOLDER = "TORCHLITE_RANK_FOLDER"  # the variable with the folder that the launcher reads
FOLDERS = "TORCHLITE_RANK_FOLDERS"  # the one with the folder of all ranks' folders, where they are on one machine
JOINING = "joining"  # MPI begins, and waits for all ranks
ALONE = "alone"  # it waited long enough, and may go on without the others
INSIDE = "inside"  # a process group exists
DESTROYED = "destroyed"  # it was destroyed, but MPI has not ended
WAITING = "waiting"  # the program has ended, and waits for those of the other ranks
OUTSIDE = "outside"  # MPI has ended, or never began


def state_file(folder: str, process: int) -> str:
    """The file of a process. Its children, who have the same variable, have other numbers."""
    return os.path.join(folder, f"state-{process}")


def write_state(state: str) -> None:
    """Write the state of this process to a file, if a launcher requested it."""
    folder = os.environ.get(FOLDER)
    if folder and os.path.isdir(folder):
        name = state_file(folder, os.getpid())
        new = f"{name}.{threading.get_ident()}.new"
        with open(new, "w") as file:
            file.write(state)
        os.replace(new, name)


def count_joined() -> str:
    """Number of ranks that have begun to join the process group, and those missing, if a launcher on this machine knows
    them.
    """
    folders, text = os.environ.get(FOLDERS), os.environ.get("WORLD_SIZE", "")
    if not folders or not os.path.isdir(folders) or not text.isdecimal():
        return "Not all processes that mpiexec started have called init_process_group."
    size = int(text)
    missing = [rank for rank in range(size) if not _has_written(os.path.join(folders, str(rank)))]
    return f"{size - len(missing)}/{size} clients joined. These ranks did not: {missing}"


def _has_written(folder: str) -> bool:
    """True if a process of a rank has written its state."""
    return os.path.isdir(folder) and any(name.startswith("state-") for name in os.listdir(folder))
