"""`python -m torchlite bench`: benchmarks of torchlite against other installed libraries."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

from ..command_line import parse_positive_int, parse_positive_number

ENGINES = ("numpy", "cc", "opencl")
_ENGINES = ", ".join(ENGINES) + ", each also with oneDNN (numpy+onednn)"
_DESCRIPTION = """\
Runs the same workloads under torchlite and under its rivals, in processes of their own that take turns row by row, and
prints how long each took and the ratio of the times: below 1 torchlite is faster. Needs nothing but torchlite; compares
with PyTorch, JAX and tinygrad where they are installed, here or in the environment of --reference-python.
"""
_EPILOG = """\
examples:
  torchlite bench                                   all rows, some minutes
  torchlite bench --only small,mlp --rounds 5       single ops and small networks
  torchlite bench --engine numpy,cc                 NumPy alone, and with compiled kernels
  torchlite bench --only big.softmax,gpt --against torchlite --reference-python ../before/.venv/bin/python
  torchlite bench --under-load                      networks while another process keeps a core busy
  torchlite bench files                             trained networks of packages, beside ONNX Runtime
"""
_FILES_DESCRIPTION = """\
Downloads packages whose wheels have trained networks (420 MB), and measures these networks without gradients: loading,
first call and later calls, beside ONNX Runtime for ONNX files and PyTorch for its own, with the largest difference of
the results. No code of the packages runs. Each library has a process of its own for each file.
"""
_FILES_EPILOG = """\
examples:
  torchlite bench files --engine numpy,cc --reference-python ../reference/bin/python
  torchlite bench files --only silero-vad,det.onnx --folder wheels
  torchlite bench files --file model.onnx --size batch=1,height=320
"""


def add_parser(commands: Any) -> None:
    """Add the command's arguments."""
    parser = commands.add_parser(
        "bench", help="measure the speed beside PyTorch, JAX and tinygrad, where they are installed",
        description=_DESCRIPTION, epilog=_EPILOG,
    )  # fmt: skip
    what = parser.add_argument_group("what is measured")
    what.add_argument("--only", default="", metavar="WORDS", help="groups (small, mlp, networks, big), workloads, rows")
    what.add_argument("--list", action="store_true", help="show the groups, workloads and rows, and measure nothing")
    what.add_argument("--scale", type=parse_positive_number, default=1.0, help="of the sizes (default: %(default)s)")
    mode = what.add_mutually_exclusive_group()
    mode.add_argument(
        "--under-load", action="store_true", help="instead: networks alone, and beside processes that keep cores busy"
    )
    mode.add_argument(
        "--sharing", action="store_true", help="instead: user threads, worker processes, one thread, and idleness"
    )
    mode.add_argument("--parts", action="store_true", help="instead: what the nanoseconds of a small op are spent on")
    mode.add_argument("--everything", action="store_true", help="the comparison, and then these three")
    who = parser.add_argument_group("who takes part")
    _add_device_and_engine(who)
    who.add_argument(
        "--against", type=_split_words, metavar="NAMES",
        help="torch, jax, tinygrad, torchlite (that of --reference-python), none; default: those that are installed",
    )  # fmt: skip
    _add_reference_python(who)
    how = _add_timing(parser)
    how.add_argument("--cpu-time", action="store_true", help="ratios of CPU times too, as on a busy machine")
    out = parser.add_argument_group("what is kept")
    out.add_argument("--history", type=pathlib.Path, metavar="FILE", help="(default: in the user's cache folder)")
    out.add_argument("--no-history", action="store_true", help="keep nothing")
    out.add_argument("--picture", type=pathlib.Path, metavar="FILE", help="draw the ratios as SVG")
    _add_write_docs(out)
    parser.set_defaults(bench=parser, run=run)
    _add_files_parser(parser)


def _add_files_parser(bench: Any) -> None:
    """Add the arguments of `bench files`."""
    parser = bench.add_subparsers(title="of files", metavar="files").add_parser(
        "files", help="instead: networks from files beside ONNX Runtime and PyTorch",
        description=_FILES_DESCRIPTION, epilog=_FILES_EPILOG,
    )  # fmt: skip
    what = parser.add_argument_group("what is measured")
    what.add_argument("--only", default="", metavar="WORDS", help="packages and files, as --list shows them")
    what.add_argument("--list", action="store_true", help="show the packages and files, and measure nothing")
    what.add_argument("--folder", type=pathlib.Path, help="of the wheels (default: in the user's cache folder)")
    what.add_argument(
        "--file", action="append", default=[], metavar="FILE", help="instead: a network of yours (.onnx, .pt, .pt2)"
    )
    what.add_argument(
        "--size", action="append", type=_split_sizes, default=[], metavar="NAME=SIZE",
        help="of --file: a dimension (batch=4), an input (x=1x3x224x224, ids=1x64:int64), values (ids:=1..9, sr:=8000)",
    )  # fmt: skip
    who = parser.add_argument_group("who takes part")
    _add_device_and_engine(who)
    _add_reference_python(who)
    _add_timing(parser)
    _add_write_docs(parser.add_argument_group("what is kept"))
    parser.set_defaults(bench=parser, run=run_files, scale=1.0)


def _add_device_and_engine(group: Any) -> None:
    group.add_argument("--device", default="cpu", help="torchlite's device (default: %(default)s)")
    group.add_argument("--engine", type=_parse_engines, default=[], metavar="NAMES", help="of cpu: " + _ENGINES)


def _add_reference_python(group: Any) -> None:
    group.add_argument(
        "--reference-python", action="append", default=[], metavar="PATH", help="an interpreter that has rivals"
    )


def _add_timing(parser: Any) -> Any:
    how = parser.add_argument_group("how")
    how.add_argument(
        "--rounds", type=parse_positive_int, default=3, help="new processes in each (default: %(default)s)"
    )
    how.add_argument(
        "--seconds", type=parse_positive_number, default=0.25, help="for each row in a round (default: %(default)s)"
    )
    how.add_argument("--threads", type=parse_positive_int, default=2, help="for each contestant (default: %(default)s)")
    return how


def _add_write_docs(group: Any) -> None:
    group.add_argument(
        "--write-docs", type=pathlib.Path, action="append", default=[], metavar="FILE",
        help="put the figures into a page, between the markers that are there for them",
    )  # fmt: skip


def _split_sizes(text: str) -> list[str]:
    return list(filter(None, text.split(",")))


def _split_words(text: str) -> list[str]:
    words = list(filter(None, text.split(",")))
    unknown = [w for w in words if w not in ("torch", "jax", "tinygrad", "torchlite", "none")]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no rival {unknown[0]!r}: torch, jax, tinygrad, torchlite, none")
    return [w for w in words if w != "none"]


def _parse_engines(text: str) -> list[str]:
    words = list(filter(None, text.split(",")))
    unknown = [w for w in words if w.removesuffix("+onednn") not in ENGINES]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no engine {unknown[0]!r}: {_ENGINES}")
    return words


def run(options: argparse.Namespace) -> int:
    """Measure, print and store; return the exit status."""
    from . import runner

    return runner.run(options)


def run_files(options: argparse.Namespace) -> int:
    """Measure networks from files and print tables; return the exit status."""
    from . import network_files

    return network_files.run(options)
