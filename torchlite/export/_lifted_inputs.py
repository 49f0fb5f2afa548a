"""Lifted inputs of exported programs: which placeholders are parameters, buffers and constants."""

from __future__ import annotations

from typing import Any

from .graph_signature import InputKind


def lifted_names(program: Any) -> dict[str, tuple[InputKind, str]]:
    """Return, by placeholder name, the parameter, buffer or constant it stands for."""
    kinds = InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR
    return {
        spec.arg.name: (spec.kind, str(spec.target))
        for spec in program.graph_signature.input_specs
        if spec.kind in kinds
    }
