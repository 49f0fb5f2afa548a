"""Run a script or module like `python`, with an immediate exit on failure.

A normal exit would wait in MPI_Finalize for the other processes, which may wait for this one.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from types import TracebackType


def _program_traceback(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the program's first line."""
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    return trace


def _report_error(error: BaseException) -> None:
    """Report to the launcher; loads the module by path if the program has not imported torchlite."""
    told = sys.modules.get("torchlite.distributed._launch.error_file")
    if told is None:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        told = importlib.import_module("error_file")
    told.report(error)


def _exit_process(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """`run_program.py [-m] NAME ARGUMENT...`"""
    module = sys.argv[1] == "-m"
    del sys.argv[: 2 if module else 1]
    name = sys.argv[0]
    sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.abspath(name))
    try:
        if module:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(name, run_name="__main__")
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        code = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
        if code:
            _exit_process(code)
    except BaseException as error:  # the program may raise anything: report it and end
        error.__traceback__ = _program_traceback(error.__traceback__) or error.__traceback__
        _report_error(error)
        sys.excepthook(type(error), error, error.__traceback__)
        _exit_process(1)


if __name__ == "__main__":
    main()
