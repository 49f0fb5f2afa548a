"""`python -m torchlite convert A B`: converts a model between formats."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import Any

import torchlite as torch

from ..command_line import CommandError, check_output
from . import SUFFIXES, model_inputs, numpy_program, quantization_report, quantize
from .model_loader import Model, read
from .run import flatten_result

HELP = "write a model file in another format, or as a program of NumPy"
DESCRIPTION = """\
Writes a model in another format, runs both on the same inputs, and prints the largest difference of their results.

With --quantize, the weights are rounded to levels of 8 or 4 bits, and a table says size, time and error before and
after.

A target that ends in .py is a program: a module and, beside it, an .npz file of weights, which need NumPy alone.
"""
EPILOG = """\
examples:
  torchlite convert model.onnx model.pt2
  torchlite convert model.pt model.onnx --shape 1x3x224x224
  torchlite convert model.onnx model.py
  torchlite convert model.onnx small.onnx --quantize int8 --calibrate samples.npz
"""

_OPSET_OF_FOUR_BITS = 21
_TARGETS = {**SUFFIXES, ".py": "numpy"}


def add_arguments(made: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    made.add_argument("source", help="a file of torch.export, torch.jit or ONNX")
    made.add_argument("target", help=f"the file to write; its ending says the format: {', '.join(_TARGETS)}")
    model_inputs.add_arguments(made)
    made.add_argument(
        "--quantize", choices=quantize.BITS, help="round weights to 8 or 4 bits, and inputs of products to 8"
    )
    made.add_argument(
        "--calibrate", metavar="SAMPLES.npz", help="inputs by name, whose ranges the quantized layers take once for all"
    )
    made.add_argument("--json", action="store_true", help="with --quantize, print the figures as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit status."""
    check_output("target", options.target, tuple(_TARGETS))
    model_inputs.check_shapes(options.shape)
    ending = os.path.splitext(options.target)[1].lower()
    quantize.check_options(options.quantize, options.calibrate, options.json, _TARGETS[ending])
    if _TARGETS[ending] == "numpy":
        numpy_program.check_target(options.target)
    model = read(options.source)
    given = model_inputs.make_inputs(model, options.input, options.shape)
    if options.quantize:
        print(_write_quantized(model, given, options, SUFFIXES[ending]))
        return 0
    if _TARGETS[ending] == "numpy":
        found = numpy_program.write(model, given, options.target)
        with torch.no_grad():
            print(f"{options.target}: {describe_difference(model, model.module(*given), found)}")
        return 0
    {"pt2": _to_pt2, "torchscript": _to_torchscript, "onnx": _to_onnx}[SUFFIXES[ending]](model, given, options.target)
    print(f"{options.target}: {largest_difference(model, read(options.target), given)}")
    return 0


def _write_quantized(model: Model, given: list[torch.Tensor], options: argparse.Namespace, kind: str) -> str:
    """Write a model with quantized layers; return a table of what changed."""
    samples = quantize.read_samples(options.calibrate, model, given) if options.calibrate else None
    size = quantization_report.file_bytes(model.path)
    program = _export(model, given)
    module = program.module()
    layers, kept = quantize.replace_layers(module, kind, options.quantize)
    if not layers:
        raise CommandError(
            f"{model.path}: it has no linear layer, convolution or embedding with float32 weights to quantize"
        )
    count = quantize.calibrate(module, layers, samples) if samples is not None else 0
    made = replace(model, module=module, kind="quantized", program=None, graph=None)
    {"pt2": _to_pt2, "torchscript": _to_torchscript, "onnx": _to_onnx}[kind](made, given, options.target)
    written = read(options.target)
    with torch.no_grad():
        errors = quantization_report.measure_errors(
            flatten_result(model.module(*given)), flatten_result(written.module(*given))
        )
    sizes = size, quantization_report.file_bytes(options.target)
    before, after = (quantization_report.call_seconds(one.module, given) for one in (model, written))
    return quantization_report.describe(
        model.path,
        options.target,
        options.quantize,
        count,
        len(layers),
        kept,
        sizes,
        (before, after),
        errors,
        options.json,
    )


def largest_difference(model: Model, written: Model, given: list[torch.Tensor]) -> str:
    """Return the largest difference between the results of two models on the inputs."""
    with torch.no_grad():
        return describe_difference(model, model.module(*given), written.module(*given))


def describe_difference(model: Model, expected: Any, found: Any) -> str:
    """Return a line with the largest difference between results of a model and of a written one."""
    pairs = zip(flatten_result(expected), flatten_result(found), strict=True)
    largest = max(
        ((a - b).abs().max().item() for a, b in pairs if isinstance(a, torch.Tensor) and a.numel()), default=0.0
    )
    return f"largest difference to {model.path} on these inputs {largest:.3g}"


def make_dynamic_shapes(model: Model) -> tuple | None:
    """Return dynamic shapes for `torch.export`: a Dim for each named size of the file."""
    from torchlite.export import Dim

    named = {size: Dim(str(size)) for value in model.inputs for size in value.shape or () if isinstance(size, str)}
    if not named:
        return None
    return tuple(
        {place: named[size] for place, size in enumerate(value.shape or ()) if isinstance(size, str)}
        for value in model.inputs
    )


def _export(model: Model, given: list[torch.Tensor]) -> Any:
    from torchlite import export

    if model.program is not None:
        return model.program
    return export.export(model.module, tuple(given), dynamic_shapes=make_dynamic_shapes(model))


def _to_pt2(model: Model, given: list[torch.Tensor], path: str) -> None:
    from torchlite import export

    export.save(_export(model, given), path)


def _to_torchscript(model: Model, given: list[torch.Tensor], path: str) -> None:
    module = model.module if model.kind == "torchscript" else torch.jit.trace(model.module, tuple(given))
    torch.jit.save(module, path)


def _to_onnx(model: Model, given: list[torch.Tensor], path: str) -> None:
    names = [value.name for value in model.inputs] or None
    outputs = [value.name for value in model.outputs] or None
    named = {"external_data": False, "opset_version": _OPSET_OF_FOUR_BITS} if model.kind == "quantized" else {}
    torch.onnx.export(_export(model, given), (), path, input_names=names, output_names=outputs, dynamo=True, **named)
