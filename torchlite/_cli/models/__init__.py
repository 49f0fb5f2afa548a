"""Commands for model files: `run`, `show` and `convert` for `.pt2`, TorchScript's `.pt` and `.onnx`."""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import pickle
import zlib
from typing import Any

from ..command_line import CommandError, describe_os_error, one_line

SUFFIXES = {".pt2": "pt2", ".onnx": "onnx", ".pt": "torchscript", ".pth": "torchscript", ".ts": "torchscript"}
_RUN_OPTIONS = ("--device", "--input", "--shape", "--output", "--time", "--repeat")
_ERRORS = (
    ValueError, RuntimeError, TypeError, LookupError, AssertionError, ArithmeticError, MemoryError, AttributeError,
    EOFError, ImportError, pickle.PickleError, zlib.error,
)  # fmt: skip


def add_parser(commands: Any) -> None:
    """Add `run`, `show` and `convert`, each with the arguments for a model file."""
    for command in ("run", "show", "convert"):
        module = importlib.import_module(f"{__name__}.{command}")
        parser = commands.add_parser(command, help=module.HELP, description=module.DESCRIPTION, epilog=module.EPILOG)
        module.add_arguments(parser)
        parser.set_defaults(run=functools.partial(_run_command, module.run))
        if hasattr(module, "USAGE"):
            parser.usage = module.USAGE


def is_model_command(arguments: list[str]) -> bool:
    """True for a command on a model file: `convert`, or `run` and `show` of a file named like a model."""
    if arguments[:1] == ["convert"]:
        return True
    first = arguments[1] if len(arguments) > 1 else ""
    if arguments[:1] == ["run"] and first.partition("=")[0] in _RUN_OPTIONS:
        return True
    return arguments[:1] in (["run"], ["show"]) and os.path.splitext(first)[1].lower() in SUFFIXES


def _run_command(run: Any, options: argparse.Namespace) -> int:
    """Run a command; CommandError for a bad file, input or model."""
    try:
        return run(options)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(describe_os_error(error))
    except _ERRORS as error:
        raise CommandError(one_line(error) or repr(error))
