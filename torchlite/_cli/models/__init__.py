"""Commands for model files: `run`, `show` and `convert` for `.pt2`, TorchScript's `.pt` and `.onnx`."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

SUFFIXES = {".pt2": "pt2", ".onnx": "onnx", ".pt": "torchscript", ".pth": "torchscript", ".ts": "torchscript"}


def add_parser(commands: Any) -> None:
    """Add `convert` to the commands; `run` and `show` are listed with their other uses."""
    commands.add_parser("convert", help="write a model in another format: `convert a.onnx b.pt2`", add_help=False)


def is_model_command(arguments: list[str]) -> bool:
    """True for a command on a model file: `convert`, or `run` and `show` of a file named like a model."""
    if arguments[:1] == ["convert"]:
        return True
    return arguments[:1] in (["run"], ["show"]) and any(
        os.path.splitext(word)[1].lower() in SUFFIXES for word in arguments[1:2]
    )


def run_command(command: str, *arguments: str) -> int:
    """Run the command; return 1 after a one-line error for a bad file, input or program."""
    module = importlib.import_module(f"{__name__}.{command}")
    try:
        return module.run(list(arguments))
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    except (ValueError, RuntimeError, TypeError, LookupError, AssertionError, ArithmeticError, MemoryError) as error:
        text = str(error) or repr(error)
    print(f"python -m torchlite {command}: {text}", file=sys.stderr)
    return 1
