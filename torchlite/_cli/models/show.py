"""`python -m torchlite show MODEL`: describes a model file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

import torchlite as torch

from ..._dispatch.interceptors import Interceptor
from . import graph_boxes, model_inputs
from .model_loader import KINDS, Model, detect_file_format, read
from .run import flatten_result

OPS_A_LINE = 6


def make_parser() -> argparse.ArgumentParser:
    """Return the argument parser of `show MODEL`."""
    made = argparse.ArgumentParser(prog="python -m torchlite show", description="What a file of a model holds.")
    made.add_argument("model", help="a file of torch.export, torch.jit or ONNX, or of torch.save")
    made.add_argument("--device", action="append", help="say what this device lacks (may be given several times)")
    made.add_argument("--picture", metavar="FILE.svg", help="draw the graph; of TorchScript as it runs on the inputs")
    model_inputs.add_arguments(made)
    return made


def run(arguments: list[str]) -> int:
    """Run the command; return the exit status."""
    options = make_parser().parse_args(arguments)
    path = options.model
    kind = detect_file_format(path)
    print(f"{path}  {KINDS[kind]}, {format_bytes(os.path.getsize(path))}")
    if kind == "checkpoint":
        print("\n".join(_iterate_checkpoint_tensors(path)))
        return 0
    model = read(path)
    print("\n".join(_describe_model(model)))
    given = _example_inputs(model, options)
    graph = model.graph if model.graph is not None or given is None else _capture_graph(model, given)
    if graph is not None:
        print("\n".join(_format_columns("ops", _format_op_counts(graph_boxes.count_ops(graph)))))
    missing: set[str] = set()
    if given is None:
        print("devices     not tried: the file does not say its inputs' shapes (--shape, --input)")
    else:
        used = find_used_records(model, given)
        for device in options.device or ["cpu", *_find_available_accelerators()]:
            lacks = [name for name in used if _is_absent(name, device)]
            missing.update(lacks)
            print(f"{f'on {device}':<11} {'every op' if not lacks else 'without ' + ', '.join(sorted(lacks))}")
    if options.picture:
        if graph is None:
            raise ValueError("--picture: TorchScript's graph is that of a run, for which --shape or --input is needed")
        draw_graph(options.picture, model, graph, missing)
        print(f"wrote       {options.picture}")
    return 0


def format_bytes(count: int) -> str:
    """Format a number of bytes."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:.1f} GiB"


def _format_columns(title: str, lines: list[str]) -> list[str]:
    return [f"{title if not number else '':<11} {line}" for number, line in enumerate(lines)]


def _describe_model(model: Model) -> Iterator[str]:
    yield from _format_columns("inputs", [str(value) for value in model.inputs])
    yield from _format_columns("outputs", [str(value) for value in model.outputs])
    for title, values in (("parameters", list(model.module.parameters())), ("buffers", list(model.module.buffers()))):
        count, memory = sum(v.numel() for v in values), sum(v.numel() * v.element_size() for v in values)
        yield f"{title:<11} {len(values)} tensors, {count:,} numbers, {format_bytes(memory)}"


def _format_op_counts(found: Any) -> list[str]:
    words = [f"{name} {count}" for name, count in found.most_common()]
    return [", ".join(words[start : start + OPS_A_LINE]) for start in range(0, len(words), OPS_A_LINE)] or ["none"]


def _iterate_checkpoint_tensors(path: str) -> Iterator[str]:
    """Yield the tensors of a torch.save file, by their paths."""
    from torchlite.utils import _pytree

    leaves, _ = _pytree.tree_flatten_with_path(torch.load(path, map_location="meta", weights_only=True))
    for place, value in leaves:
        name = _pytree.keystr(place)
        if isinstance(value, torch.Tensor):
            yield f"{name}  {str(value.dtype).rpartition('.')[2]} {list(value.shape)}"
        else:
            yield f"{name}  {value!r:.80}"


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
    """Write the graph's drawing. ValueError if the name does not end in .svg."""
    from torchlite._serialization.atomic_files import replace_file

    from .svg_graph import draw_graph

    if not path.endswith(".svg"):
        raise ValueError(f"--picture {path}: pictures are SVG: expected a name that ends in .svg")
    text = draw_graph(
        graph_boxes.make_boxes(graph, {value.name for value in model.inputs}, missing), os.path.basename(model.path)
    )
    with replace_file(path) as file:
        file.write(text.encode())
