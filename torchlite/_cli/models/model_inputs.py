"""Command-line inputs of a model: files, shapes, or random numbers."""

from __future__ import annotations

import argparse
import re
import zipfile
from typing import Any

import numpy as np

import torchlite as torch

from ..command_line import UsageError
from .model_loader import Model, Value

RANDOM_INDEX = 2  # random integers are below this: they may index small tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the input options."""
    parser.add_argument(
        "--input", action="append", default=[], metavar="[NAME=]FILE",
        help="an input: x.npy, NAME=x.npy, or an .npz with arrays by the inputs' names; in order without a name",
    )  # fmt: skip
    parser.add_argument(
        "--shape", action="append", default=[], metavar="[NAME=]1x3x224x224[:int64]",
        help="random numbers of this shape (seed 0) as an input, where the file does not say it or another is wanted",
    )  # fmt: skip


def make_inputs(model: Model, files: list[str], shapes: list[str]) -> list[torch.Tensor]:
    """Return the arguments of a model's forward, in order. ValueError for one that does not fit or cannot be
    generated.
    """
    names = [value.name for value in model.inputs]
    given: dict[str, np.ndarray] = {}
    for word in files:
        name, path = _split_name(word, names)
        loaded = _load_array(path)
        found = loaded if isinstance(loaded, dict) else {name or _next_input(names, given, word): loaded}
        given.update(found)
    random = np.random.default_rng(0)
    for word in shapes:
        name, text = _split_name(word, names)
        given[name or _next_input(names, given, word)] = _random_array(random, *_parse_shape(text))
    strangers = [name for name in given if names and name not in names]
    if strangers:
        raise ValueError(f"{model.path} has no input {', '.join(strangers)}: its inputs are {', '.join(names)}")
    if not names:
        return [torch.from_numpy(np.asarray(array)) for array in given.values()]
    return [
        _check_input(model, value, torch.from_numpy(np.asarray(given[value.name])))
        if value.name in given
        else _example_or_random(model, place, value, random)
        for place, value in enumerate(model.inputs)
    ]


def _load_array(path: str) -> Any:
    """Load a NumPy file. ValueError that names the file if it is invalid or contains Python objects."""
    try:
        with open(path, "rb") as stream:
            found = np.load(stream, allow_pickle=False)
            return dict(found) if isinstance(found, np.lib.npyio.NpzFile) else found
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        why = "holds Python's objects" if "Object arrays" in str(error) else "is no .npy or .npz file of NumPy's"
        raise ValueError(f"--input {path}: it {why}") from None


def _check_input(model: Model, value: Value, tensor: torch.Tensor) -> torch.Tensor:
    """Return an input after checking it against the file's dtype and shape. ValueError if it differs."""
    sizes = tuple(tensor.shape)
    wrong = value.dtype is not None and tensor.dtype is not value.dtype
    if value.shape is not None:
        pairs = zip(value.shape, sizes, strict=False)
        wrong = wrong or len(sizes) != len(value.shape) or any(isinstance(n, int) and n != m for n, m in pairs)
    if wrong:
        kind = str(tensor.dtype).rpartition(".")[2]
        wanted = str(value).partition("  ")[2]
        raise ValueError(f"{model.path}: the input '{value.name}' is {wanted}, but got {kind} {list(sizes)}")
    return tensor


def _split_name(word: str, names: list[str]) -> tuple[str, str]:
    """Split `NAME=rest`; return "" and the word if it begins with no name."""
    name, found, rest = word.partition("=")
    return (name, rest) if found and (name in names or not names or "/" not in name) else ("", word)


def _next_input(names: list[str], given: dict[str, Any], word: str) -> str:
    """Return the first input without a value."""
    if not names:
        return f"input_{len(given)}"
    free = [name for name in names if name not in given]
    if not free:
        raise ValueError(f"{word}: the model has {len(names)} inputs, and each was given: {', '.join(names)}")
    return free[0]


def check_shapes(shapes: list[str]) -> None:
    """Raise UsageError for a `--shape` that is no shape. A name before `=` is not looked at."""
    for word in shapes:
        _parse_shape(word.rpartition("=")[2])


def _parse_shape(text: str) -> tuple[tuple[int, ...], np.dtype]:
    """Parse `1x3x224x224:int64`."""
    sizes, _, kind = text.partition(":")
    if not re.fullmatch(r"(\d+(x\d+)*)?", sizes):
        raise UsageError(f"--shape {text}: expected sizes with an x between, as in 1x3x224x224, or 1x16:int64")
    try:
        return tuple(int(size) for size in sizes.split("x") if size), np.dtype(kind or "float32")
    except TypeError:
        raise UsageError(f"--shape {text}: there is no dtype '{kind}'") from None


def _random_array(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iub":
        return random.integers(0, RANDOM_INDEX, shape).astype(dtype)
    return np.asarray(random.standard_normal(shape)).astype(dtype)


def _example_or_random(model: Model, place: int, value: Value, random: np.random.Generator) -> torch.Tensor:
    """Return the file's example, or random numbers of the file's shape."""
    if model.example is not None and place < len(model.example):
        return model.example[place]
    if value.shape is None:
        raise ValueError(
            f"{model.path} does not say what shape its input '{value.name}' has: give --input {value.name}=x.npy or "
            f"--shape {value.name}=1x3x224x224"
        )
    sizes = tuple(size if isinstance(size, int) else 1 for size in value.shape)
    dtype = np.dtype("float32") if value.dtype is None else np.dtype(str(value.dtype).rpartition(".")[2])
    return torch.from_numpy(_random_array(random, sizes, dtype))
