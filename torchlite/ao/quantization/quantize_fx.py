"""Quantization of traced models: `prepare_fx` inserts observers, `convert_fx` makes quantized layers."""

from __future__ import annotations

from typing import Any

from torchlite import fx
from torchlite.fx import GraphModule
from torchlite.nn import Module

from .fx.convert import convert
from .fx.custom_config import ConvertCustomConfig, FuseCustomConfig
from .fx.fuse import from_deprecated_dict, fuse
from .fx.graph_module import attach_preserved_attrs_to_model, preserved_attributes
from .fx.prepare import trace_and_prepare
from .fx.tracer import QuantizationTracer as QuantizationTracer
from .fx.tracer import ScopeContextManager as ScopeContextManager

__all__ = ["convert_fx", "convert_to_reference_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


def _check_is_graph_module(model: Any) -> None:
    if not isinstance(model, GraphModule):
        raise ValueError(
            f"input model must be a GraphModule, Got type:{type(model)} Please make sure to follow the tutorials."
        )


def _fuse_fx(model: Any, is_qat: bool, fuse_custom_config: Any = None, backend_config: Any = None) -> GraphModule:
    _check_is_graph_module(model)
    return fuse(model, is_qat, fuse_custom_config, backend_config)


def fuse_fx(model: Module, fuse_custom_config: Any = None, backend_config: Any = None) -> GraphModule:
    """A traced model in which the layers that a backend computes in one are fused.

    Args:
        model: The model, in evaluation mode.
        fuse_custom_config: What else the user chose. Default: nothing.
        backend_config: The backend. Default: PyTorch's own kernels.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU()).eval()
        >>> type(getattr(torch.ao.quantization.quantize_fx.fuse_fx(model), "0")).__name__
        'LinearReLU'
    """
    custom = from_deprecated_dict(fuse_custom_config, FuseCustomConfig, "fuse", "fuse_custom_config_dict")
    custom = FuseCustomConfig() if custom is None else custom
    kept = preserved_attributes(model, custom.preserved_attributes)
    made = _fuse_fx(fx.symbolic_trace(model), False, custom, backend_config)
    attach_preserved_attrs_to_model(made, kept)
    return made


def prepare_fx(
    model: Module, qconfig_mapping: Any, example_inputs: tuple[Any, ...], prepare_custom_config: Any = None,
    _equalization_config: Any = None, backend_config: Any = None,
) -> GraphModule:  # fmt: skip
    """A traced model with observers, for quantization after training.

    Args:
        model: The model, in evaluation mode.
        qconfig_mapping: The configurations.
        example_inputs: Inputs of the model; no effect.
        prepare_custom_config: What else the user chose. Default: nothing.
        _equalization_config: The configurations of equalization. Default: none.
        backend_config: The backend. Default: PyTorch's own kernels.

    Returns:
        The module of the graph.

    Example:
        >>> ao = torch.ao.quantization
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2)).eval()
        >>> model = ao.quantize_fx.prepare_fx(model, ao.get_default_qconfig_mapping("onednn"), (torch.ones(1, 1),))
        >>> [node.name for node in model.graph.nodes if "activation" in node.name]
        ['activation_post_process_0', 'activation_post_process_1']
    """
    return trace_and_prepare(
        model, qconfig_mapping, False, example_inputs, prepare_custom_config, _equalization_config, backend_config
    )


def prepare_qat_fx(
    model: Module, qconfig_mapping: Any, example_inputs: tuple[Any, ...], prepare_custom_config: Any = None,
    backend_config: Any = None,
) -> GraphModule:  # fmt: skip
    """A traced model with fake quantization, for quantization aware training.

    Args:
        model: The model, in training mode.
        qconfig_mapping: The configurations.
        example_inputs: Inputs of the model; no effect.
        prepare_custom_config: What else the user chose. Default: nothing.
        backend_config: The backend. Default: PyTorch's own kernels.

    Returns:
        The module of the graph.

    Example:
        >>> ao = torch.ao.quantization
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2))
        >>> mapping = ao.get_default_qat_qconfig_mapping("onednn")
        >>> model = ao.quantize_fx.prepare_qat_fx(model, mapping, (torch.ones(1, 1),))
        >>> hasattr(getattr(model, "0"), "weight_fake_quant")
        True
    """
    return trace_and_prepare(
        model, qconfig_mapping, True, example_inputs, prepare_custom_config, backend_config=backend_config
    )


def _convert_fx(
    graph_module: Any, is_reference: bool, convert_custom_config: Any = None, is_standalone_module: bool = False,
    _remove_qconfig: bool = True, qconfig_mapping: Any = None, backend_config: Any = None,
    is_decomposed: bool = False, keep_original_weights: bool = False,
) -> GraphModule:  # fmt: skip
    custom = from_deprecated_dict(
        convert_custom_config, ConvertCustomConfig, "convert", "convert_custom_config_dict", 4
    )
    custom = ConvertCustomConfig() if custom is None else custom
    _check_is_graph_module(graph_module)
    kept = preserved_attributes(graph_module, custom.preserved_attributes)
    made = convert(
        graph_module, is_reference, custom, is_standalone_module, _remove_qconfig_flag=_remove_qconfig,
        qconfig_mapping=qconfig_mapping, backend_config=backend_config, is_decomposed=is_decomposed,
        keep_original_weights=keep_original_weights,
    )  # fmt: skip
    attach_preserved_attrs_to_model(made, kept)
    return made


def convert_fx(
    graph_module: GraphModule, convert_custom_config: Any = None, _remove_qconfig: bool = True,
    qconfig_mapping: Any = None, backend_config: Any = None, keep_original_weights: bool = False,
) -> GraphModule:  # fmt: skip
    """The quantized model of one with observers.

    Args:
        graph_module: The model that `prepare_fx` or `prepare_qat_fx` returned, which is changed.
        convert_custom_config: What else the user chose. Default: nothing.
        _remove_qconfig: Whether configurations are removed. Default: ``True``.
        qconfig_mapping: The configurations, if some became ``None`` after `prepare_fx`. Default: those.
        backend_config: The backend. Default: PyTorch's own kernels.
        keep_original_weights: Whether the model keeps the float weights of functions. Default: ``False``.

    Returns:
        The module of the graph.

    Example:
        >>> ao, x = torch.ao.quantization, torch.randn(9, 1)
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2)).eval()
        >>> model = ao.quantize_fx.prepare_fx(model, ao.get_default_qconfig_mapping("onednn"), (x,))
        >>> _ = model(x)
        >>> type(getattr(ao.quantize_fx.convert_fx(model), "0")).__module__.split(".")[-3]
        'quantized'
    """
    return _convert_fx(
        graph_module, False, convert_custom_config, _remove_qconfig=_remove_qconfig, qconfig_mapping=qconfig_mapping,
        backend_config=backend_config, keep_original_weights=keep_original_weights,
    )  # fmt: skip


def convert_to_reference_fx(
    graph_module: GraphModule, convert_custom_config: Any = None, _remove_qconfig: bool = True,
    qconfig_mapping: Any = None, backend_config: Any = None,
) -> GraphModule:  # fmt: skip
    """The model with quantized weights, whose layers compute on numbers between quantization and its inverse.

    Args:
        graph_module: The model that `prepare_fx` or `prepare_qat_fx` returned, which is changed.
        convert_custom_config: What else the user chose. Default: nothing.
        _remove_qconfig: Whether configurations are removed. Default: ``True``.
        qconfig_mapping: The configurations, if some became ``None`` after `prepare_fx`. Default: those.
        backend_config: The backend. Default: PyTorch's own kernels.

    Returns:
        The module of the graph.

    Example:
        >>> ao, x = torch.ao.quantization, torch.randn(9, 1)
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2)).eval()
        >>> model = ao.quantize_fx.prepare_fx(model, ao.get_default_qconfig_mapping("onednn"), (x,))
        >>> _ = model(x)
        >>> getattr(ao.quantize_fx.convert_to_reference_fx(model), "0")
        QuantizedLinear(Reference)(in_features=1, out_features=2, bias=True)
    """
    return _convert_fx(
        graph_module, True, convert_custom_config, _remove_qconfig=_remove_qconfig, qconfig_mapping=qconfig_mapping,
        backend_config=backend_config,
    )  # fmt: skip


def _convert_to_reference_decomposed_fx(
    graph_module: GraphModule, convert_custom_config: Any = None, qconfig_mapping: Any = None,
    backend_config: Any = None,
) -> GraphModule:  # fmt: skip
    """The same with plain integers, by the ops of `torch.ops.quantized_decomposed`."""
    return _convert_fx(
        graph_module, True, convert_custom_config, _remove_qconfig=False, qconfig_mapping=qconfig_mapping,
        backend_config=backend_config, is_decomposed=True,
    )  # fmt: skip


def _convert_standalone_module_fx(
    graph_module: GraphModule, is_reference: bool = False, convert_custom_config: Any = None
) -> GraphModule:
    """The quantized module of one that was prepared by itself."""
    return _convert_fx(graph_module, is_reference, convert_custom_config, is_standalone_module=True)
