"""Programs as graphs of ops: captured, run, and kept in `.pt2` files that PyTorch reads and writes too."""

from __future__ import annotations

from typing import Any

from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .dynamic_shapes import Dim, ShapesCollection, AdditionalInputs, Constraint, dims
from .graph_signature import ExportBackwardSignature, ExportGraphSignature


def load(f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: Any = None) -> ExportedProgram:
    """The program of a `.pt2` file: a path or a binary stream, as `torch.export.save` of PyTorch or torchlite wrote it.

    extra_files: names of files that were saved beside; their text is put in. RuntimeError for what is no such file.
    """
    from ._reading import open_program

    return open_program(f, extra_files)
