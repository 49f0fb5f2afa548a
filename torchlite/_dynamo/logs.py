"""Log output for `TORCHLITE_LOGS=graph_breaks,recompiles,code` and `torch._logging.set_logs`, to standard error."""

from __future__ import annotations

import os
import sys

from .._settings.compiler_state import PROCESS_STATE, THREAD_STATE


def is_enabled(kind: str) -> bool:
    """True if a log kind is enabled."""
    return kind in PROCESS_STATE.logs or kind in os.environ.get("TORCHLITE_LOGS", "").replace(" ", "").split(",")


def write_log(kind: str, text: str) -> None:
    """Write a message if its log kind is enabled."""
    if is_enabled(kind):
        sys.stderr.write(f"[torchlite {kind}] {text}\n")


def write_program(text: str) -> None:
    """Write the source of a compiled program to the log `code`, and keep it if this thread collects sources."""
    write_log("code", text)
    if THREAD_STATE.programs is not None:
        THREAD_STATE.programs.append(text)
