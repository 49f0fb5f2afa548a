"""What `run`, `show` and `convert` do with files of models: `.pt2`, TorchScript's `.pt` and `.onnx`."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

SUFFIXES = {".pt2": "pt2", ".onnx": "onnx", ".pt": "torchscript", ".pth": "torchscript", ".ts": "torchscript"}


def add_parser(commands: Any) -> None:
    """`convert`, in the list of commands; `run` and `show` stand there for what else they do."""
    commands.add_parser("convert", help="write a model in another format: `convert a.onnx b.pt2`", add_help=False)


def is_model_command(arguments: list[str]) -> bool:
    """Whether these are of a command for a file of a model: `run` and `show` of one that has the name of a model."""
    if arguments[:1] == ["convert"]:
        return True
    return arguments[:1] in (["run"], ["show"]) and any(
        os.path.splitext(word)[1].lower() in SUFFIXES for word in arguments[1:2]
    )


def run_command(command: str, *arguments: str) -> int:
    """Run the command; 1 and the error in a line where a file, an input or the model's program is bad."""
    module = importlib.import_module(f"{__name__}.{command}")
    try:
        return module.run(list(arguments))
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    except (ValueError, RuntimeError, TypeError, LookupError, AssertionError, ArithmeticError, MemoryError) as error:
        text = str(error) or repr(error)
    print(f"python -m torchlite {command}: {text}", file=sys.stderr)
    return 1
