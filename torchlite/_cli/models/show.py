"""`python -m torchlite show MODEL`: describes a model file."""

from __future__ import annotations

import argparse
import os
import pickle
from collections.abc import Iterator
from typing import Any

import torchlite as torch

from ..._dispatch.interceptors import Interceptor
from ..._serialization.file_formats import KINDS, detect_file_format
from ..command_line import CommandError, UsageError, check_output, print_json, program_name
from ..device_argument import check_device
from . import graph_boxes, model_inputs
from .model_loader import Model, Value, read
from .run import flatten_result

OPS_A_LINE = 6


HELP = "describe an op, or a model file"
USAGE = """\
%(prog)s op NAME [--device DEVICE] [--json]
       %(prog)s MODEL [--device DEVICE] [--picture FILE.svg] [--input [NAME=]FILE]
                   [--shape [NAME=]SIZES[:DTYPE]] [--json]"""
DESCRIPTION = """\
`show op NAME` prints an op's record, the functions generated from it, and what each device has for it.

`show MODEL` prints the inputs, outputs, sizes and ops of a file of torch.export, torch.jit or ONNX, and which of
these ops a device lacks. Of a file of torch.save it prints the tensors. The arguments below are for MODEL.
"""
EPILOG = """\
examples:
  torchlite show op add
  torchlite show op nn.functional.linear --device opencl
  torchlite show model.onnx --picture model.svg
  torchlite show checkpoint.pt --json
"""


def add_arguments(made: argparse.ArgumentParser) -> None:
    """Add the arguments of `show MODEL`."""
    made.add_argument("model", help="a file of torch.export, torch.jit or ONNX, or of torch.save")
    made.add_argument(
        "--device", action="append", default=[], help="say what this device lacks (may be given several times)"
    )
    made.add_argument("--picture", metavar="FILE.svg", help="draw the graph; of TorchScript as it runs on the inputs")
    model_inputs.add_arguments(made)
    made.add_argument("--json", action="store_true", help="print JSON; docs/commands.md lists the keys")


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit status."""
    path = options.model
    if not os.path.exists(path) and not os.path.splitext(path)[1]:
        raise UsageError(f"there is no file '{path}'; `{program_name()} show op {path}` describes an op")
    for device in options.device:
        check_device(device)
    model_inputs.check_shapes(options.shape)
    if options.picture:
        check_output("--picture", options.picture, (".svg",))
    found: dict[str, Any] = {"path": path, "format": detect_file_format(path), "bytes": os.path.getsize(path)}
    if found["format"] == "checkpoint":
        found["values"] = _list_checkpoint_values(path)
        text = "\n".join(_format_checkpoint_value(value) for value in found["values"])
    else:
        found |= _describe_model(read(path), options)
        text = "\n".join(_format_model(found))
    if options.json:
        print_json(found)
    else:
        print(f"{path}  {KINDS[found['format']]}, {format_bytes(found['bytes'])}\n{text}")
    return 0


def _describe_model(model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Return the keys of `show MODEL --json` after those of the file; writes the picture."""
    found: dict[str, Any] = {
        "inputs": [_describe_value(value) for value in model.inputs],
        "outputs": [_describe_value(value) for value in model.outputs],
        "parameters": _count(list(model.module.parameters())),
        "buffers": _count(list(model.module.buffers())),
        "ops": None,
        "devices": None,
        "picture": options.picture,
    }
    given = _example_inputs(model, options)
    graph = model.graph if model.graph is not None or given is None else _capture_graph(model, given)
    if graph is not None:
        found["ops"] = dict(graph_boxes.count_ops(graph).most_common())
    elif options.picture:
        raise UsageError("--picture: TorchScript's graph is that of a run, for which --shape or --input is needed")
    used = None if given is None else _find_used_records_if_sizes_fit(model, given, options)
    if used is not None:
        found["devices"] = {
            device: sorted(name for name in used if _is_absent(name, device))
            for device in options.device or ["cpu", *_find_available_accelerators()]
        }
    if options.picture:
        draw_graph(options.picture, model, graph, set().union(*(found["devices"] or {}).values()))
    return found


def _describe_value(value: Value) -> dict[str, Any]:
    dtype = None if value.dtype is None else str(value.dtype).rpartition(".")[2]
    return {"name": value.name, "dtype": dtype, "shape": None if value.shape is None else list(value.shape)}


def _count(values: list[Any]) -> dict[str, int]:
    memory = sum(value.numel() * value.element_size() for value in values)
    return {"tensors": len(values), "numbers": sum(value.numel() for value in values), "bytes": memory}


def _format_model(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of `show MODEL`."""
    for title in ("inputs", "outputs"):
        yield from _format_columns(title, [_format_value(value) for value in found[title]])
    for title in ("parameters", "buffers"):
        one = found[title]
        yield f"{title:<11} {one['tensors']} tensors, {one['numbers']:,} numbers, {format_bytes(one['bytes'])}"
    if found["ops"] is not None:
        yield from _format_columns("ops", _format_op_counts(found["ops"]))
    if found["devices"] is None:
        yield "devices     not tried: the file does not say all sizes of its inputs (--shape, --input)"
    for device, lacks in (found["devices"] or {}).items():
        yield f"{f'on {device}':<11} {'every op' if not lacks else 'without ' + ', '.join(lacks)}"
    if found["picture"]:
        yield f"wrote       {found['picture']}"


def _format_value(value: dict[str, Any]) -> str:
    sizes = "any shape" if value["shape"] is None else f"[{', '.join(map(str, value['shape']))}]"
    return f"{value['name']}  {value['dtype'] or 'any dtype'} {sizes}"


def format_bytes(count: int) -> str:
    """Format a number of bytes."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:.1f} GiB"


def _format_columns(title: str, lines: list[str]) -> list[str]:
    return [f"{title if not number else '':<11} {line}" for number, line in enumerate(lines)]


def _format_op_counts(found: dict[str, int]) -> list[str]:
    words = [f"{name} {count}" for name, count in found.items()]
    return [", ".join(words[start : start + OPS_A_LINE]) for start in range(0, len(words), OPS_A_LINE)] or ["none"]


def _list_checkpoint_values(path: str) -> list[dict[str, Any]]:
    """Return the tensors and other values of a torch.save file, by their paths."""
    from torchlite.utils import _pytree

    try:
        content = torch.load(path, map_location="meta", weights_only=True)
    except (pickle.UnpicklingError, EOFError):
        raise CommandError(f"{path}: it is damaged, or holds Python objects that torch.load(weights_only=True) refuses")
    leaves, _ = _pytree.tree_flatten_with_path(content)
    return [
        {"name": _pytree.keystr(place), "dtype": str(value.dtype).rpartition(".")[2], "shape": list(value.shape)}
        if isinstance(value, torch.Tensor)
        else {"name": _pytree.keystr(place), "value": f"{value!r:.80}"}
        for place, value in leaves
    ]


def _format_checkpoint_value(value: dict[str, Any]) -> str:
    return f"{value['name']}  {value['value']}" if "value" in value else _format_value(value)


def _example_inputs(model: Model, options: argparse.Namespace) -> list[torch.Tensor] | None:
    """Return example inputs; None if their shapes are unknown."""
    known = all(value.shape is not None for value in model.inputs) and model.inputs
    if not (options.input or options.shape or model.example or known):
        return None
    return model_inputs.make_inputs(model, options.input, options.shape)


def _capture_graph(model: Model, given: list[torch.Tensor]) -> Any:
    """Capture the graph of a run."""
    from torchlite import export

    return export.export(model.module, tuple(given)).graph


class _OpRecorder(Interceptor):
    """Records the executed ops."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        self.names[op.name] = None
        return function(*args, **kwargs)


def _find_used_records_if_sizes_fit(
    model: Model, given: list[torch.Tensor], options: argparse.Namespace
) -> list[str] | None:
    """Return the ops of a run; None if it fails with sizes of 1 that stand for unknown ones."""
    sizes = [size for value in model.inputs for size in value.shape or ()]
    guessed = not (options.input or options.shape or model.example) and any(isinstance(size, str) for size in sizes)
    try:
        return find_used_records(model, given)
    except (RuntimeError, ValueError, LookupError):
        if guessed:
            return None
        raise


def find_used_records(model: Model, given: list[torch.Tensor]) -> list[str]:
    """Return torchlite's ops that a run calls."""
    noted = _OpRecorder()
    with torch.no_grad(), noted:
        flatten_result(model.module(*given))
    return list(noted.names)


def _is_absent(name: str, device: str) -> bool:
    from ..._dispatch import REGISTRY
    from ..show import execution_kind_on_device

    return name in REGISTRY and execution_kind_on_device(REGISTRY[name], device).startswith(
        ("absent", "cannot be used")
    )


def _find_available_accelerators() -> list[str]:
    """Return the available accelerators."""
    return [name for name in ("opencl", "cuda") if getattr(torch, name).is_available()]


def draw_graph(path: str, model: Model, graph: Any, missing: set[str]) -> None:
    """Write the graph's drawing as SVG."""
    from torchlite._serialization.atomic_files import replace_file

    from .svg_graph import draw_graph

    text = draw_graph(
        graph_boxes.make_boxes(graph, {value.name for value in model.inputs}, missing), os.path.basename(model.path)
    )
    with replace_file(path) as file:
        file.write(text.encode())
