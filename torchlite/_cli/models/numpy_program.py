"""Writes a model as a program of NumPy: a module and its weights' file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import torchlite as torch
from torchlite._serialization.atomic_files import replace_file
from torchlite._types.python_source import compile_source, is_identifier

from ..command_line import CommandError, UsageError
from .model_loader import Model

_MARK = b"Written by torchlite "  # of a module that this command wrote
_MARKED_BYTES = 2000
EXPORT_ERRORS = (RuntimeError, ValueError, LookupError, TypeError, AssertionError, ArithmeticError)


def check_target(path: str) -> None:
    """Raise UsageError for a module whose name cannot be imported, CommandError if other files would be lost: a module
    that this command did not write, or an .npz file without its module.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    if not is_identifier(name):
        raise UsageError(f"target {path}: no module can be imported by the name '{name}'; name another")
    weights = _weights_path(path)
    if os.path.exists(path):
        with open(path, "rb") as file:
            if _MARK not in file.read(_MARKED_BYTES):
                raise CommandError(f"target {path}: this file is no program that convert wrote; name another")
    elif os.path.exists(weights):
        raise CommandError(f"target {path}: its weights would replace {weights}; remove it, or name another target")


def write(model: Model, given: list[torch.Tensor], path: str) -> list[torch.Tensor]:
    """Write a model's module and weights; return the results of the module on the inputs. UnwritableError, which names
    all parts that cannot be written. Nothing is written where the program does not run.
    """
    from torchlite.onnx._numpy_program import write_program

    message, folder = _onnx_model(model, given)
    name = os.path.splitext(os.path.basename(path))[0]
    source = os.path.basename(model.path)
    written = write_program(message, folder, source, name, torch.__version__)
    space = compile_source(written.text, f"<{name}>", {"__name__": name})
    arrays = [tensor.detach().numpy(force=True) for tensor in given]
    found = space["forward"](*arrays, **({"weights": written.weights} if written.weights else {}))
    if written.archive is None:
        with replace_file(path, plain=True) as module:
            module.write(written.text.encode())
    else:  # the weights are in their place first
        with replace_file(path, plain=True) as module, replace_file(_weights_path(path), plain=True) as weights:
            module.write(written.text.encode())
            weights.write(written.archive)
    results = found if isinstance(found, tuple) else (found,)
    return [torch.from_numpy(np.asarray(value)) for value in results if not isinstance(value, list)]


def _weights_path(path: str) -> str:
    return f"{os.path.splitext(path)[0]}.npz"


def _onnx_model(model: Model, given: list[torch.Tensor]) -> tuple[Any, str | None]:
    """Return a model as an ONNX message, and the folder of its external data."""
    if model.kind == "onnx":
        from torchlite.onnx._load import read_model

        message, _, folder = read_model(model.path)
        return message, folder
    from torchlite.onnx._numpy_program import onnx_model

    names, outputs = [value.name for value in model.inputs], [value.name for value in model.outputs]
    if model.program is not None:
        return onnx_model(model.program, names, outputs), None
    try:
        return onnx_model(_with_varying_sizes(model.module, given), names, outputs), None
    except EXPORT_ERRORS:  # the program is another one for other sizes
        from torchlite import export

        return onnx_model(export.export(model.module, tuple(given)), names, outputs), None


def _with_varying_sizes(module: Any, given: list[torch.Tensor]) -> Any:
    """Return the exported program of a script, in which the sizes vary that may: a script does not say them. Equal
    sizes of the same dimension of several inputs vary together.
    """
    from torchlite import export

    def exported(places: set[tuple[int, int]]) -> Any:
        dims = tuple({d: export.Dim.AUTO for d, n in enumerate(x.shape) if (d, n) in places} for x in given)
        return export.export(module, tuple(given), dynamic_shapes=dims)

    places = sorted({(d, n) for x in given for d, n in enumerate(x.shape) if n > 1})
    try:
        return exported(set(places))
    except EXPORT_ERRORS:
        varying: set[tuple[int, int]] = set()
    found = export.export(module, tuple(given))
    for place in places:
        try:
            found = exported(varying | {place})
            varying.add(place)
        except EXPORT_ERRORS:
            continue
    return found
