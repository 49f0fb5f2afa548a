"""The command `torchlite`, which `python -m torchlite` is too. docs/commands.md describes its commands."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from typing import NoReturn

from ._cli import models
from ._cli.command_line import FAILURE, INTERRUPTED, CommandError, Parser, describe_os_error, program_name, suggest

# The modules of the commands. One command imports its own alone, for a short start.
_MODULES = {
    "info": "_cli.info", "demo": "_cli.demo", "run": "_cli.models", "show": "_cli.models", "convert": "_cli.models",
    "serve": "serve._command", "bench": "_cli.bench", "build-kernels": "_cli.build_kernels",
    "as-torch": "_cli.torch_alias", "completion": "_cli.completion",
}  # fmt: skip

_EPILOG = """\
examples:
  torchlite info                          what can be used on this machine, and what to install for the rest
  torchlite run script.py --epochs 3      run a PyTorch program with torchlite as `torch`
  torchlite show model.onnx               inputs, outputs, sizes and ops of a model file

`torchlite COMMAND --help` explains a command. Exit status: 0 success, 1 failure, 2 wrong arguments.
"""


def make_parser(command: str = "") -> Parser:
    """Return the parser of a command; of all by default, and where the command's arguments need them."""
    from . import __torchlite_version__
    from .torch_version import __version__

    parser = Parser(
        prog=program_name(), description="PyTorch's API over NumPy, PyOpenCL and CuPy: commands.", epilog=_EPILOG
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"torchlite {__torchlite_version__} (API of PyTorch {__version__.partition('+')[0]})",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", required=True)
    chosen = (
        [_MODULES[command]] if command in _MODULES and command != "completion" else dict.fromkeys(_MODULES.values())
    )
    for name in chosen:
        importlib.import_module(f"{__package__}.{name}").add_parser(commands)
    parser.set_defaults(program=parser)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit status. SystemExit with status 2 for wrong arguments."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return _run_command(arguments)
    except CommandError as error:
        print(f"{program_name()} {' '.join(arguments[:1])}: error: {error}", file=sys.stderr)
        return error.status


def _run_command(arguments: list[str]) -> int:
    command, words = arguments[0] if arguments else "", arguments[1:]
    if command == "run" and words[:1] not in (["-h"], ["--help"]) and not models.is_model_command(arguments):
        from ._cli import torch_alias

        return torch_alias.run(words)  # these are for Python and the program
    if command == "show" and "op" in words:
        from ._cli import show

        return show.run_op(words)
    parser, names = make_parser(command), list(_MODULES)
    if not arguments:
        parser.error(f"name a command: {', '.join(names)}")
    if command not in names and not command.startswith("-"):
        parser.error(f"there is no command '{command}'{suggest(command, names) or ': use ' + ', '.join(names)}")
    options = parser.parse_args(arguments)
    return options.run(options)


def console() -> NoReturn:
    """Run the command of the command line, and exit with its status. A closed pipe and Ctrl-C are silent."""
    try:
        try:
            status: object = main()
        except SystemExit as error:
            status = error.code
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe: `| head`
        _end_of_pipe()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        print(f"{program_name()}: error: cannot write: {describe_os_error(error)}", file=sys.stderr)
        status = FAILURE
    sys.exit(status)  # type: ignore[arg-type]


def _end_of_pipe() -> NoReturn:
    """End as other programs do whose reader has closed the pipe: by SIGPIPE, where the system has it."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    os._exit(FAILURE)


if __name__ == "__main__":
    console()
