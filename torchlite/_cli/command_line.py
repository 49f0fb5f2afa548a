"""Parts that all commands share: the argument parser, one-line errors, and checks of arguments."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from typing import Any, NoReturn

FAILURE, USAGE, INTERRUPTED = 1, 2, 130  # exit statuses


class CommandError(Exception):
    """Error that a command reports in one line; the exit status is 1."""

    status = FAILURE


class UsageError(CommandError):
    """Error in the arguments themselves; the exit status is 2."""

    status = USAGE


class Parser(argparse.ArgumentParser):
    """Argument parser that reports an error in one line, and names the option `--help`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Print the error in one line, and exit with status 2."""
        self.exit(USAGE, f"{self.prog}: error: {one_line(message)} ({self.prog} --help explains the arguments)\n")


def program_name() -> str:
    """Return how the user calls the program: `torchlite`, or `python -m torchlite`."""
    name = os.path.basename(sys.argv[0]).removesuffix(".exe") if sys.argv else ""
    return "torchlite" if name == "torchlite" else "python -m torchlite"


def one_line(text: object) -> str:
    """Return a message without its line breaks."""
    return " ".join(str(text).split())


def describe_os_error(error: OSError) -> str:
    """Return the file and the reason of a system error."""
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def suggest(word: str, known: list[str]) -> str:
    """Return `: did you mean X or Y?` with names that are near to a word, or ""."""
    near = difflib.get_close_matches(word, known, n=2)
    return f": did you mean {' or '.join(near)}?" if near else ""


def print_json(value: Any) -> None:
    """Print a value as JSON with an indent of two spaces."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


# -- types of arguments ------------------------------------------------------------------


def _parse_integer(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{word}' is not a whole number")


def parse_positive_int(word: str) -> int:
    """Return a whole number of at least 1."""
    value = _parse_integer(word)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{word} is not at least 1")
    return value


def parse_positive_number(word: str) -> float:
    """Return a finite number above 0."""
    try:
        value = float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{word}' is not a number")
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{word} is not above 0")
    return value


def parse_seed(word: str) -> int:
    """Return a seed of `torch.manual_seed`."""
    value = _parse_integer(word)
    if not -(2**63) <= value < 2**64:
        raise argparse.ArgumentTypeError(f"{word} is not in -2**63 ... 2**64 - 1")
    return value


# -- files -------------------------------------------------------------------------------


def check_output(option: str, path: str, endings: tuple[str, ...]) -> None:
    """Raise UsageError for a wrong ending of a file that will be written, CommandError if its folder cannot be used."""
    if not path.lower().endswith(endings):
        wanted = " or ".join([*filter(None, [", ".join(endings[:-1])]), endings[-1]])
        raise UsageError(f"{option} {path}: expected a name that ends in {wanted}")
    folder = os.path.dirname(path) or os.curdir
    if not os.path.isdir(folder):
        raise CommandError(f"{option} {path}: there is no folder {folder}; create it, or name another")
    if os.path.isdir(path):
        raise CommandError(f"{option} {path}: this is a folder; name a file")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise CommandError(f"{option} {path}: no permission to write; name another place")
