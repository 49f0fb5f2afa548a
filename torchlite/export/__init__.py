"""`torch.export`: captures modules as graphs of ATen ops; saves and loads `.pt2` files compatible with PyTorch's."""

from __future__ import annotations

from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ._errors import UserError
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .graph_signature import ExportBackwardSignature, ExportGraphSignature
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature", "ExportGraphSignature",
    "ExportedProgram", "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature", "ShapesCollection",
    "UnflattenedModule", "default_decompositions", "dims", "draft_export", "export", "export_for_training", "load",
    "register_dataclass", "save", "unflatten",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "CustomDecompTable":
        from .decomp_utils import CustomDecompTable

        return CustomDecompTable
    if name in ("passes", "graph_signature", "dynamic_shapes", "decomp_utils"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Export a module's forward as a graph of ops for these arguments and sizes.

    preserve_module_call_signature: names of modules whose call signature `unflatten` restores.

    dynamic_shapes: dimensions that vary, as a pytree like the arguments: `{"x": {0: Dim("batch")}}` or
    `({0: Dim.AUTO},)`.
    The module runs once, and several times with dynamic sizes; its state is restored. Raise GuardOnDataDependentSymNode
    with the source line for a data-dependent branch, UserError for sizes that change the program, ValueError for a
    non-module.

    `strict` has no effect: the module runs in both modes. `prefer_deferred_runtime_asserts_over_guards` has no effect:
    decisions on sizes become guards.

    >>> import torchlite as torch
    >>> class Scaled(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.sum(0) / x.shape[0]
    >>> batch = torch.export.Dim("batch")
    >>> program = torch.export.export(Scaled(), (torch.ones(3, 2),), dynamic_shapes={"x": {0: batch}})
    >>> program.module()(torch.ones(5, 2))
    tensor([1., 1.])
    """
    from torchlite.nn import Module

    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    from ._trace import export_program

    return export_program(mod, args, kwargs or {}, dynamic_shapes, tuple(preserve_module_call_signature))


def draft_export(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **options: Any) -> Any:
    """Export a module; same as `export`."""
    return export(mod, args, kwargs, **options)


def export_for_training(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **options: Any) -> Any:
    """Export a module; same as `export`, whose graph is before decomposition."""
    return export(mod, args, kwargs, **options)


def _check_opset_version(versions: dict[str, int]) -> None:
    from ._serialize import OPSET_VERSION

    if versions.get("aten", OPSET_VERSION) != OPSET_VERSION:
        raise NotImplementedError(f"torch.export: torchlite reads and writes opset {OPSET_VERSION} of aten alone")


def load(f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: Any = None) -> ExportedProgram:
    """Load a program from a `.pt2` file, a path or a binary stream, written by PyTorch's or torchlite's
    `torch.export.save`.

    extra_files: dictionary by name; contents of extra files are stored in it. Raise RuntimeError for an invalid file.
    """
    from ._deserialize import open_program

    if expected_opset_version is not None:
        _check_opset_version(expected_opset_version)
    return open_program(f, extra_files)


def save(
    ep: ExportedProgram,
    f: Any,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write a program to a `.pt2` file, a path or a binary stream, that PyTorch's `torch.export.load` reads.

    extra_files: names and contents of additional files. Raise TypeError for a non-program.

    `pickle_protocol` has no effect: the file has no pickles.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}'.")
    from ._serialize import write_program

    if opset_version is not None:
        _check_opset_version(opset_version)
    write_program(ep, f, extra_files)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Register a dataclass as a pytree node for arguments and results of programs."""
    from torchlite.utils import _pytree as pytree

    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)


__dir__ = make_module_dir(globals())
