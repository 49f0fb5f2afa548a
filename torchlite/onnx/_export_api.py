"""`torch.onnx.export`: captures a module and writes an ONNX model."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.export.dynamic_shapes import dims_per_leaf, replace_names

from ._custom_symbolics import SYMBOLICS, to_export_rule
from ._enums import OperatorExportTypes, TrainingMode
from ._export.program_to_model import ExportOptions, name_dimensions
from ._onnx_program import ONNXProgram
from ._quantized_capture import is_quantized_network, with_float_tensors
from ._translate_program import translate_program
from .errors import OnnxExporterWarning

FIRST, LAST, DEFAULT = 11, 25, 20


class _State(threading.local):
    depth = 0


STATE = _State()


def export(
    model: Any, args: Any = (), f: Any = None, *, kwargs: dict[str, Any] | None = None, verbose: bool | None = None,
    input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
    opset_version: int | None = None, dynamo: bool = True, external_data: bool = True, dynamic_shapes: Any = None,
    custom_translation_table: Mapping[Callable, Callable] | None = None, report: bool = False, optimize: bool = True,
    verify: bool = False, profile: bool = False, dump_exported_program: bool = False, artifacts_dir: Any = ".",
    export_params: bool = True, keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None, training: TrainingMode = TrainingMode.EVAL,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX, do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type] = False, autograd_inlining: bool = True,
) -> ONNXProgram | None:  # fmt: skip
    """Exports a module, or an exported program, as an ONNX model.

    `torch.export.export` captures the module, and its ops are translated to ONNX. An LSTM or GRU becomes one node per
    layer, attention is decomposed, and weights keep their names.

    Args:
        model: A module, a function, or a `torch.export.ExportedProgram`.
        args: Tuple of example arguments, or one tensor.
        f: Path or binary file for the model. Default: none.
        kwargs: Dict of example keyword arguments. Default: none.
        verbose: No effect.
        input_names: Names of the model's inputs. Default: the names of forward's parameters.
        output_names: Names of the model's outputs. Default: the names of the graph's nodes.
        opset_version: Version of ONNX's ops, 11 to 25. An older one is written as 11, with a warning. Default: 20.
        dynamo: ``False`` keeps weights in the model file up to 2 GB, exports the module in the mode of ``training`` and
            returns ``None`` if ``f`` is given. Default: ``True``.
        external_data: Whether weights go to a second file with the suffix ``.data``, if ``f`` is a path. Default:
            ``True``.
        dynamic_shapes: Dimensions that vary, as `torch.export.export` takes them, or by names as strings, which the
            model's inputs and outputs then have: ``{"x": {0: "batch"}}``.
        custom_translation_table: Dict from ops to functions. A function is called with a graph and the op's arguments;
            ``graph.op("domain::Name", *inputs, attribute_i=1)`` adds a node.
        report: Only ``False`` is supported.
        optimize: No effect: unused nodes are always removed.
        verify: Whether to run the model and to warn where its results differ. Default: ``False``.
        profile: Only ``False`` is supported.
        dump_exported_program: Only ``False`` is supported.
        artifacts_dir: No effect: it is the folder of reports, which are not written.
        export_params: Whether the model has the weights. Default: ``True``.
        keep_initializers_as_inputs: Whether weights are inputs too. Default: ``False``.
        dynamic_axes: Dimensions that vary by input name: ``{"x": {0: "batch"}}`` or ``{"x": [0]}``. Default: none.
        training: Mode of the module where ``dynamo=False``. Default: ``TrainingMode.EVAL``.
        operator_export_type: Only ``OperatorExportTypes.ONNX`` is supported.
        do_constant_folding: No effect.
        custom_opsets: Versions of the opsets of custom ops by domain. Default: none.
        export_modules_as_functions: Only ``False`` is supported.
        autograd_inlining: No effect.

    Returns:
        An `ONNXProgram`.

    Raises:
        OnnxExporterError: The export fails.
        UnsupportedOperatorError: ONNX, or the version of its ops, cannot express an op.
        ValueError: ``opset_version`` is above 25.
        NotImplementedError: An argument has an unsupported value.

    Example:
        >>> import io, torchlite as torch
        >>> file = io.BytesIO()
        >>> net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
        >>> program = torch.onnx.export(net, (torch.ones(4, 3),), file)
        >>> torch.onnx.load(file.getvalue())(torch.ones(4, 3)).shape
        torch.Size([4, 2])

    See also:
        `torch.onnx.load`, `torch.export.export`.
    """
    _refuse_unsupported(
        report=report, profile=profile, dump_exported_program=dump_exported_program,
        export_modules_as_functions=export_modules_as_functions,
        operator_export_type=operator_export_type is not OperatorExportTypes.ONNX,
    )  # fmt: skip
    version = _check_target_opset(opset_version)
    if isinstance(args, Tensor):
        args = (args,)
    args, kwargs = tuple(args), dict(kwargs or {})
    if args and isinstance(args[-1], dict) and not kwargs and not dynamo:
        args, kwargs = args[:-1], args[-1]
    STATE.depth += 1
    try:
        exported = _capture_program(model, args, kwargs, dynamic_shapes, dynamic_axes, input_names, training, dynamo)
        options = ExportOptions(
            version, list(input_names or []), list(output_names or []), _collect_dynamic_axis_names(dynamic_axes),
            _collect_custom_rules(custom_translation_table, version), dict(custom_opsets or {}), export_params,
            keep_initializers_as_inputs, "main_graph",
        )  # fmt: skip
        exported, message = translate_program(exported, options)
        name_dimensions(message, exported, _names_of_sizes(model, args, kwargs, dynamic_shapes))
    finally:
        STATE.depth -= 1
    program = ONNXProgram(message, exported)
    if verify:
        _compare_with_onnxruntime(program, model, args, kwargs)
    if f is not None:
        path = isinstance(f, (str, os.PathLike))
        program.save(f, external_data=path and external_data and dynamo or None)
    return program if dynamo or f is None else None


def _refuse_unsupported(**options: Any) -> None:
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"torch.onnx.export(): torchlite does not support `{name}`")


def _check_target_opset(asked: int | None) -> int:
    if asked is None:
        return DEFAULT
    if asked > LAST:
        raise ValueError(f"Unsupported ONNX opset version: {asked}; torchlite writes {FIRST} to {LAST}")
    if asked < FIRST:
        warnings.warn(
            f"opset_version {asked} is older than what torchlite writes: the model has opset {FIRST}",
            OnnxExporterWarning, stacklevel=3,
        )  # fmt: skip
    return max(asked, FIRST)


def _capture_program(
    model: Any, args: tuple, kwargs: dict, dynamic_shapes: Any, dynamic_axes: Any, input_names: Any,
    training: TrainingMode, dynamo: bool,
) -> Any:  # fmt: skip
    """Return the exported program of a module; a program is returned unchanged."""
    if hasattr(model, "graph_signature"):
        return model
    if dynamic_shapes is None and dynamic_axes:
        dynamic_shapes = _make_dynamic_shapes(model, args, kwargs, dynamic_axes, input_names)
    dynamic_shapes = replace_names(dynamic_shapes)
    before = [(m, m.training) for m in model.modules()] if isinstance(model, torch.nn.Module) else []
    wrapped = model if before else _FunctionModule(model)
    if not dynamo and before and training is not TrainingMode.PRESERVE:
        model.train(training is TrainingMode.TRAINING)
    if is_quantized_network(wrapped):
        wrapped = with_float_tensors(wrapped)
    try:
        return torch.export.export(wrapped, args, kwargs or None, dynamic_shapes=dynamic_shapes, strict=False)
    finally:
        for module, mode in before:
            module.training = mode


def _names_of_sizes(model: Any, args: tuple, kwargs: dict, dynamic_shapes: Any) -> list[dict[int, str]]:
    """Return the names of dimensions of each tensor input that `dynamic_shapes` gives as strings or Dims."""
    if dynamic_shapes is None or hasattr(model, "graph_signature"):
        return []
    wrapped = model if isinstance(model, torch.nn.Module) else _FunctionModule(model)
    dims = dims_per_leaf(wrapped, args, kwargs, replace_names(dynamic_shapes))
    return [{d: one.__name__ for d, one in of.items() if hasattr(one, "__name__")} for of in dims]


class _FunctionModule(torch.nn.Module):
    """Module that calls a function."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _collect_dynamic_axis_names(dynamic_axes: Mapping[str, Any] | None) -> dict[str, dict[int, str]]:
    """Return the names of dynamic dimensions by value name and dimension."""
    found = {}
    for name, axes in (dynamic_axes or {}).items():
        named = axes.items() if isinstance(axes, Mapping) else ((d, f"{name}_dynamic_axes_{d + 1}") for d in axes)
        found[name] = {int(d): str(label) for d, label in named}
    return found


def _make_dynamic_shapes(
    model: Any, args: tuple, kwargs: dict, dynamic_axes: Mapping[str, Any], input_names: Any
) -> Any:
    """Return `dynamic_shapes` for inputs named by `input_names` or by `forward`'s parameters."""
    import inspect

    called = model.forward if isinstance(model, torch.nn.Module) else model
    params = list(inspect.signature(called).parameters)
    names = list(input_names or []) + params[len(input_names or []) :]
    axes = _collect_dynamic_axis_names(dynamic_axes)

    def shapes_of(value: Any, name: str) -> Any:
        if isinstance(value, Tensor):
            dims = {d % max(value.ndim, 1): torch.export.Dim.AUTO for d in axes.get(name, ())}
            return dims or None
        return None

    by_place = tuple(shapes_of(value, names[i] if i < len(names) else "") for i, value in enumerate(args))
    by_name = {key: shapes_of(value, key) for key, value in kwargs.items()}
    if not by_name:
        return by_place
    return {**dict(zip(params, by_place, strict=False)), **by_name}


def _collect_custom_rules(table: Mapping[Callable, Callable] | None, version: int) -> dict[Any, Callable]:
    rules: dict[Any, Callable] = {}
    for (name, since), function in sorted(SYMBOLICS.items(), key=lambda item: item[0][1]):
        if since <= version:
            rules[name] = to_export_rule(function)
    for op, function in (table or {}).items():
        rules[op] = to_export_rule(function[0] if isinstance(function, (list, tuple)) else function)
    return rules


def _compare_with_onnxruntime(program: ONNXProgram, model: Any, args: tuple, kwargs: dict) -> None:
    from torchlite.utils import _pytree as pytree

    run = model.module() if hasattr(model, "graph_signature") else model
    with torch.no_grad():
        wanted = [value for value in pytree.tree_leaves(run(*args, **kwargs)) if isinstance(value, Tensor)]
    for name, got, want in zip(
        (info.name for info in program.model.graph.output), program(*args, **kwargs), wanted, strict=True
    ):
        if not torch.allclose(got.to(want.dtype), want, rtol=1e-4, atol=1e-5):
            warnings.warn(
                f"the output {name} of the model differs from the program's by up to {(got - want).abs().max().item()}",
                OnnxExporterWarning, stacklevel=3,
            )  # fmt: skip
