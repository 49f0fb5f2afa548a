"""State of a process, as Linux tells it in ``/proc``."""

from __future__ import annotations

__all__ = ["is_uninterruptible_state", "read_proc_state"]


def read_proc_state(pid: int) -> str | None:
    """Returns the letter of a process's state, such as "R" (runs), "S" (sleeps), "D" or "Z" (has ended).

    Args:
        pid: The system's number of the process.

    Returns:
        The letter. ``None`` if there is no such process, or the system has no ``/proc``.

    Example:
        >>> import os
        >>> from torchlite.distributed.elastic.utils.process_state import read_proc_state
        >>> read_proc_state(os.getpid())
        'R'
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            text = file.read()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the program's name before may have blanks and brackets
    return fields[0] if fields else None


def is_uninterruptible_state(state: str | None) -> bool:
    """Returns whether a process in this state sleeps in the kernel, and takes no signal.

    Args:
        state: The letter of `read_proc_state`.

    Example:
        >>> from torchlite.distributed.elastic.utils.process_state import is_uninterruptible_state
        >>> is_uninterruptible_state("D"), is_uninterruptible_state(None)
        (True, False)
    """
    return state is not None and state.startswith("D")
