"""`torch.export`: captures modules as graphs of ATen ops; saves and loads `.pt2` files compatible with PyTorch's."""

from __future__ import annotations

from typing import Any

from torchlite._serialization.file_formats import names_other_loaders
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
    """Exports a module's forward as a graph of ops, for example arguments and for the sizes that may vary.

    The module runs once, and several times with dynamic sizes; its state is restored.

    Args:
        mod: A module.
        args: Tuple of example positional arguments.
        kwargs: Dict of example keyword arguments. Default: none.
        dynamic_shapes: Dimensions that vary, as a pytree like the arguments: ``{"x": {0: Dim("batch")}}`` or
            ``({0: Dim.AUTO},)``.
            A `ShapesCollection` or `AdditionalInputs` works too. Default: all sizes are constants.
        strict: No effect: the module runs in both modes.
        preserve_module_call_signature: Names of modules whose call signature `unflatten` restores. Default: none.
        prefer_deferred_runtime_asserts_over_guards: No effect: decisions on sizes become guards.

    Returns:
        An `ExportedProgram`.

    Raises:
        ValueError: ``mod`` is not a module.
        UserError: ``args`` is not a tuple, ``dynamic_shapes`` does not match the arguments, or a size that should vary
            changes the program.
        GuardOnDataDependentSymNode: A branch depends on the elements of tensors. The message has the source line.

    Example:
        >>> import torchlite as torch
        >>> class Scaled(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.sum(0) / x.shape[0]
        >>> batch = torch.export.Dim("batch")
        >>> program = torch.export.export(Scaled(), (torch.ones(3, 2),), dynamic_shapes={"x": {0: batch}})
        >>> program.module()(torch.ones(5, 2))
        tensor([1., 1.])

    See also:
        `ExportedProgram`, `save`, `unflatten`, `torch.onnx.export`.
    """
    from torchlite.nn import Module

    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    from ._trace import export_program

    return export_program(mod, args, kwargs or {}, dynamic_shapes, tuple(preserve_module_call_signature))


def draft_export(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **options: Any) -> Any:
    """Exports a module; the same as `export`.

    Args:
        mod: A module.
        args: Tuple of example positional arguments.
        kwargs: Dict of example keyword arguments. Default: none.
        **options: Further arguments of `export`.

    Returns:
        An `ExportedProgram`.

    Example:
        >>> program = torch.export.draft_export(torch.nn.ReLU(), (torch.ones(2),))
        >>> program.module()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return export(mod, args, kwargs, **options)


def export_for_training(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **options: Any) -> Any:
    """Exports a module; the same as `export`, whose graph is before decomposition.

    Args:
        mod: A module.
        args: Tuple of example positional arguments.
        kwargs: Dict of example keyword arguments. Default: none.
        **options: Further arguments of `export`.

    Returns:
        An `ExportedProgram`.

    Example:
        >>> torch.export.export_for_training(torch.nn.ReLU(), (torch.ones(2),)).dialect
        'TRAINING'
    """
    return export(mod, args, kwargs, **options)


def _check_opset_version(versions: dict[str, int]) -> None:
    from ._serialize import OPSET_VERSION

    if versions.get("aten", OPSET_VERSION) != OPSET_VERSION:
        raise NotImplementedError(f"torch.export: torchlite reads and writes opset {OPSET_VERSION} of aten alone")


@names_other_loaders("pt2")
def load(f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: Any = None) -> ExportedProgram:
    """Loads a program from a `.pt2` file, written by PyTorch's or torchlite's `torch.export.save`.

    Args:
        f: A path or a binary file.
        extra_files: Dict by name, whose values are replaced by the contents of the extra files. Default: none.
        expected_opset_version: Dict of versions of ops, such as ``{"aten": 10}``; only the supported one is accepted.
            Default: not checked.

    Returns:
        An `ExportedProgram`.

    Raises:
        RuntimeError: The file is no such file, or is damaged.
        NotImplementedError: ``expected_opset_version`` is another version than the supported one.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
        >>> _ = file.seek(0)
        >>> torch.export.load(file).module()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
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
    """Writes a program to a `.pt2` file that PyTorch's and torchlite's `torch.export.load` read.

    Args:
        ep: An `ExportedProgram`.
        f: A path or a binary file.
        extra_files: Contents of additional files by name. Default: none.
        opset_version: Dict of versions of ops; only the supported one is accepted. Default: that version.
        pickle_protocol: No effect: the file has no pickles.

    Raises:
        TypeError: ``ep`` is not a program.
        NotImplementedError: ``opset_version`` is another version than the supported one.

    Example:
        >>> import io
        >>> file, found = io.BytesIO(), {"note.txt": ""}
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> torch.export.save(program, file, extra_files={"note.txt": "first model"})
        >>> _ = file.seek(0)
        >>> _ = torch.export.load(file, extra_files=found)
        >>> found
        {'note.txt': 'first model'}
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}'.")
    from ._serialize import write_program

    if opset_version is not None:
        _check_opset_version(opset_version)
    write_program(ep, f, extra_files)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Registers a dataclass, so that programs take and return it as a tree of its fields.

    Args:
        cls: A dataclass.
        serialized_type_name: Name of the class in `.pt2` files. Default: the class's own name with its module.

    Raises:
        ValueError: The class is registered already, or is not a dataclass.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Pair:
        ...     a: torch.Tensor
        ...     b: torch.Tensor
        >>> torch.export.register_dataclass(Pair)
        >>> torch.utils._pytree.tree_leaves(Pair(1, 2))
        [1, 2]
    """
    from torchlite.utils import _pytree as pytree

    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)


__dir__ = make_module_dir(globals())
