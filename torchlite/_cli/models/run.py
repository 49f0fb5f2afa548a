"""`python -m torchlite run MODEL`: runs a model file on a device, with inputs from files."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import torchlite as torch

from ..command_line import check_output, parse_positive_int
from ..device_argument import check_device
from . import SUFFIXES, model_inputs
from .model_loader import Model, read

HELP = "run a program with torchlite as `torch`, or a model file"
USAGE = """\
%(prog)s [PYTHON OPTION ...] SCRIPT [ARGUMENT ...]
       %(prog)s [PYTHON OPTION ...] -m MODULE [ARGUMENT ...]
       %(prog)s [PYTHON OPTION ...] -c CODE [ARGUMENT ...]
       %(prog)s MODEL [--device DEVICE] [--input [NAME=]FILE] [--shape [NAME=]SIZES[:DTYPE]]
                  [--output FILE] [--time] [--repeat REPEAT]"""
DESCRIPTION = """\
SCRIPT, MODULE or CODE runs in Python, where `import torch` means torchlite. Its arguments and exit status are those
of Python. Without any argument Python starts interactively.

MODEL is a file of torch.export (.pt2), torch.jit (.pt, .pth, .ts) or ONNX (.onnx). It runs once on inputs from files
or on random numbers, and the results are printed or written. The arguments below are for MODEL.
"""
EPILOG = """\
examples:
  torchlite run train.py --epochs 3
  torchlite run -m package.module
  torchlite run -c "import torch; print(torch.__version__)"
  torchlite run model.onnx --input x.npy --output y.npz
  torchlite run model.pt --shape 1x3x224x224 --time
"""


def add_arguments(made: argparse.ArgumentParser) -> None:
    """Add the arguments of `run MODEL`."""
    made.add_argument("model", help=f"a file of torch.export, torch.jit or ONNX ({', '.join(SUFFIXES)})")
    made.add_argument("--device", default="cpu", help="where it runs: cpu, opencl, cuda (default: %(default)s)")
    model_inputs.add_arguments(made)
    made.add_argument("--output", metavar="FILE", help="write the outputs: .npz, or .npy where there is one")
    made.add_argument("--time", action="store_true", help="a table of the time that each op takes")
    made.add_argument(
        "--repeat", type=parse_positive_int, default=10, help="calls that --time measures (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit status."""
    check_device(options.device, with_data=True)
    model_inputs.check_shapes(options.shape)
    if options.output:
        check_output("--output", options.output, (".npz", ".npy"))
    model = read(options.model, options.device)
    given = [value.to(options.device) for value in model_inputs.make_inputs(model, options.input, options.shape)]
    with torch.no_grad():
        results = flatten_result(model.module(*given))
    names = [value.name for value in model.outputs] if len(model.outputs) == len(results) else None
    names = names or [f"output_{place}" for place in range(len(results))]
    for name, value in zip(input_names(model, given), given, strict=True):
        print(f"input   {name}  {describe(value)}")
    for name, result in zip(names, results, strict=True):
        print(f"output  {name}  {describe(result)}")
    if options.output:
        save(options.output, dict(zip(names, results, strict=True)))
        print(f"wrote   {options.output}")
    if options.time:
        print(time_calls(model.module, given, options.repeat))
    return 0


def input_names(model: Model, given: list[Any]) -> list[str]:
    """Return the inputs' names, or numbers if the file has none."""
    names = [value.name for value in model.inputs]
    return names if len(names) == len(given) else [f"input_{place}" for place in range(len(given))]


def flatten_result(result: Any) -> list[Any]:
    """Return the leaves of tuples, lists and dicts, in order."""
    from torchlite.utils import _pytree

    return _pytree.tree_leaves(result)


def describe(value: Any) -> str:
    """Describe a value in a line: dtype, shape, and range."""
    if not isinstance(value, torch.Tensor):
        return repr(value)
    text = f"{str(value.dtype).rpartition('.')[2]} {list(value.shape)}"
    if value.numel() == 0 or value.is_complex():
        return text
    numbers = value.detach().cpu().double()
    return f"{text}  from {numbers.min().item():.6g} to {numbers.max().item():.6g}, mean {numbers.mean().item():.6g}"


def save(path: str, results: dict[str, Any]) -> None:
    """Write results as NumPy arrays. ValueError for several results and a name that ends in .npy."""
    from torchlite._serialization.atomic_files import replace_file

    tensors: dict[str, Any] = {name: value for name, value in results.items() if isinstance(value, torch.Tensor)}
    arrays = {name: value._host_array(force=True) for name, value in tensors.items()}
    if path.lower().endswith(".npy") and len(arrays) != 1:
        raise ValueError(f"--output {path}: the model has {len(arrays)} outputs, which go into an .npz")
    with replace_file(path) as file:
        if path.lower().endswith(".npy"):
            np.save(file, next(iter(arrays.values())))
        else:
            np.savez(file, allow_pickle=False, **arrays)


def time_calls(module: Any, given: list[Any], calls: int) -> str:
    """Return the time of a call, and a table by op. Under the profiler a call runs op by op."""
    from torchlite.profiler import profile

    took = []
    with torch.no_grad():
        for _ in range(calls):
            start = time.perf_counter()
            for result in flatten_result(module(*given)):
                if isinstance(result, torch.Tensor):
                    result.cpu()  # the copy waits for the device
            took.append(time.perf_counter() - start)
        for _ in range(2):  # the first one finds nothing prepared
            with profile() as profiler:
                module(*given)
    table = profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=25)
    took.sort()
    median = f"{took[len(took) // 2] * 1e3:.3f} ms a call (median of {len(took)}, least {took[0] * 1e3:.3f})"
    return f"{median}\na call without optimization, op by op:\n{table}"
