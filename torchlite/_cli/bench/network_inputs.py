"""Inputs of a network from a file, of the sizes that the file or the user says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..command_line import UsageError
from ..models.model_inputs import _parse_shape, _random_array


class Sizes:
    """Sizes by the words of `--size`.

    `NAME=4` is the size of a dimension by its name, `NAME=1x3x48x192` or `NAME=1x64:int64` the shape of an input.
    `NAME:=16000` is the value of all elements of an input, `NAME:=1..40` the range of random whole numbers.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.shapes: dict[str, str] = {}
        self.values: dict[str, tuple[float, float] | float] = {}
        self.names: list[str] = []  # in the order of the words
        for word in words:
            match = re.fullmatch(r"(.+?)(:?=)(.+)", word)
            if match is None:
                raise UsageError(f"--size {word}: expected NAME=4, NAME=1x3x48x192, NAME=1x64:int64 or NAME:=16000")
            name, sign, text = match.groups()
            if name not in self.names:
                self.names.append(name)
            if sign == "=":
                _parse_shape(text)
                self.shapes[name] = text
            else:
                self.values[name] = _parse_value(word, text)

    def make(self, name: str, shape: Sequence[int], dtype: Any, random: np.random.Generator) -> np.ndarray:
        """Return an input: random numbers, or the values that are given for it."""
        value = self.values.get(name)
        if isinstance(value, tuple):
            return random.integers(int(value[0]), int(value[1]) + 1, tuple(shape)).astype(dtype)
        if value is not None:
            return np.full(tuple(shape), value, dtype)
        return _random_array(random, tuple(shape), np.dtype(dtype))


def _parse_value(word: str, text: str) -> tuple[float, float] | float:
    try:
        low, between, high = text.partition("..")
        if between:
            if int(low) > int(high):
                raise ValueError
            return int(low), int(high)
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        raise UsageError(f"--size {word}: expected a number, or two whole numbers as in 1..40") from None


def make_inputs(path: str, kind: str, sizes: Sequence[str]) -> list[tuple[str, np.ndarray]]:
    """Return the inputs of a file in order, by name (seed 0). A 0-d input of a PyTorch file is a Python number.

    ValueError if the sizes do not fit the file or do not suffice.
    """
    given, random = Sizes(sizes), np.random.default_rng(0)
    if kind == "onnx":
        return _make_onnx_inputs(path, given, random)
    if kind == "pt2" and not sizes:
        return _read_example(path)
    if not sizes:
        raise ValueError(f"{path} does not say what its inputs are: name each in order, as in --size x=1x3x224x224")
    return [(name, given.make(name, *_shape_of(given, name), random)) for name in given.names]


def _shape_of(given: Sizes, name: str) -> tuple[tuple[int, ...], Any]:
    """Return the shape and dtype of an input by its words; a value alone is a number."""
    if name in given.shapes:
        return _parse_shape(given.shapes[name])
    value = given.values[name]
    return (), np.float64 if isinstance(value, float) else np.int64


def _make_onnx_inputs(path: str, given: Sizes, random: np.random.Generator) -> list[tuple[str, np.ndarray]]:
    from torchlite.onnx._load import _read_tensor_type, read_model

    graph = read_model(path)[0].graph
    if graph is None:
        raise ValueError(f"{path}: no ONNX model: there is no graph")
    constants = {tensor.name for tensor in graph.initializer}
    found, known = [], set()
    for item in graph.input:
        if item.name in constants:
            continue
        about = _read_tensor_type(item.type)
        if about is None or about[0] not in np.sctypeDict:
            raise ValueError(f"{path}: the input '{item.name}' is no tensor of numbers")
        dtype: Any = about[0]
        shape = about[1]
        known |= {item.name, *(size for size in shape or () if isinstance(size, str) and size != "?")}
        if item.name in given.shapes:
            shape, other = _parse_shape(given.shapes[item.name])
            dtype = other if ":" in given.shapes[item.name] else dtype
        elif shape is None:
            raise ValueError(f"{path} does not say the shape of '{item.name}': give --size {item.name}=1x3x224x224")
        whole = [size if isinstance(size, int) else _size_of(given, size) for size in shape]
        found.append((item.name, given.make(item.name, whole, dtype, random)))
    strangers = [name for name in given.names if name not in known]
    if strangers:
        raise ValueError(f"{path} has no input or dimension {', '.join(strangers)}: it has {', '.join(sorted(known))}")
    return found


def _size_of(given: Sizes, name: str) -> int:
    sizes = _parse_shape(given.shapes.get(name, "1"))[0]
    if len(sizes) != 1:
        raise ValueError(f"--size {name}={given.shapes[name]}: '{name}' is a dimension, and has one size")
    return sizes[0]


def _read_example(path: str) -> list[tuple[str, np.ndarray]]:
    from ..models.model_loader import read

    model = read(path)
    tensors = model.example or ()
    if not tensors or not all(hasattr(tensor, "numpy") for tensor in tensors):
        raise ValueError(f"{path} has no example of tensors: name each input in order, as in --size x=1x3x224x224")
    names = [value.name for value in model.inputs]
    return [(name, tensor.detach().numpy()) for name, tensor in zip(names, tensors, strict=True)]
