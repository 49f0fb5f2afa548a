"""Quantization of models: observers after layers, and layers of quantization in place of float ones."""

from __future__ import annotations

import copy
import inspect
import warnings
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.ao.nn import quantizable, quantized
from torchlite.ao.nn.intrinsic import _FusedModule
from torchlite.ao.nn.quantized import FloatFunctional, QFunctional
from torchlite.nn.modules.module import Module
from torchlite.nn.utils.parametrize import type_before_parametrizations

from .observer import _is_activation_post_process
from .qconfig import (
    _activation_is_memoryless,
    _add_module_to_qconfig_obs_ctr,
    _assert_valid_qconfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from .quantization_mappings import (
    _get_special_act_post_process,
    _has_special_act_post_process,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    no_observer_set,
)
from .stubs import DeQuantStub, QuantWrapper
from .utils import get_qparam_dict, has_no_children_ignoring_parametrizations

__all__ = [
    "add_quant_dequant", "convert", "get_default_custom_config_dict", "prepare", "prepare_qat", "propagate_qconfig_",
    "quantize", "quantize_dynamic", "quantize_qat", "swap_module",
]  # fmt: skip

is_activation_post_process = _is_activation_post_process


def get_default_custom_config_dict() -> dict[str, dict]:
    """The classes that take the place of LSTMs and of attention: those that are observed, and the quantized ones.

    Example:
        >>> classes = torch.ao.quantization.get_default_custom_config_dict()["float_to_observed_custom_module_class"]
        >>> [kind.__name__ for kind in classes]
        ['LSTM', 'MultiheadAttention']
    """
    steps = [(nn.LSTM, nn.MultiheadAttention)]
    steps += [(home.LSTM, home.MultiheadAttention) for home in (quantizable, quantized)]  # type: ignore[attr-defined]
    return {
        "float_to_observed_custom_module_class": dict(zip(steps[0], steps[1], strict=True)),
        "observed_to_quantized_custom_module_class": dict(zip(steps[1], steps[2], strict=True)),
    }


def _propagate(module: Module, qconfigs: dict, parent: Any, prefix: str, custom: dict) -> None:
    qconfig = qconfigs.get(prefix, qconfigs.get(type_before_parametrizations(module), parent))
    qconfig = getattr(module, "qconfig", qconfig)
    _assert_valid_qconfig(qconfig, module)
    module.qconfig = _add_module_to_qconfig_obs_ctr(qconfig, module)
    for name, child in module.named_children():
        if name not in custom.get("non_traceable_module_name", []) and type(child) not in custom.get(
            "non_traceable_module_class", []
        ):
            _propagate(child, qconfigs, module.qconfig, f"{prefix}.{name}" if prefix else name, {})


def propagate_qconfig_(module: Module, qconfig_dict: Any = None, prepare_custom_config_dict: Any = None) -> None:
    """Gives each module within a model the attribute ``qconfig``: its own, that of its name or class, or its parent's.

    Args:
        module: The model.
        qconfig_dict: Configurations by name or class. Default: none.
        prepare_custom_config_dict: Names and classes that are left out. Default: none.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1))
        >>> torch.ao.quantization.propagate_qconfig_(model, {torch.nn.Linear: torch.ao.quantization.default_qconfig})
        >>> model[0].qconfig.weight().dtype
        torch.qint8
    """
    _propagate(module, qconfig_dict or {}, None, "", prepare_custom_config_dict or {})


def _observer_forward_hook(self: Any, input: Any, output: Any) -> Any:
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: Any, input: Any) -> Any:
    return self.activation_post_process(input[0])


def _register_activation_post_process_hook(module: Any, pre_hook: bool = False) -> None:
    if pre_hook:
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _devices(module: Module) -> set:
    return {x.device for x in (*module.parameters(), *module.buffers()) if x.device.type != "meta"}


def _single_device(module: Module, function: str) -> Any:
    devices = _devices(module)
    if len(devices) > 1:
        raise AssertionError(f"{function} only works with cpu or single-device CUDA modules, but got devices {devices}")
    return next(iter(devices), None)


def _needs_observation(module: Any) -> bool:
    return getattr(module, "qconfig", None) is not None


def _make_observer(make: Any, device: Any) -> Any:
    observer = make()
    return observer if device is None else observer.to(device)


def _insert(module: Any, device: Any, make: Any = None) -> None:
    """An observer of the module's outputs, or of its inputs if that keeps nothing of earlier tensors."""
    if _needs_observation(module) and not isinstance(module, DeQuantStub):
        observer = _make_observer(make or module.qconfig.activation, device)
        module.add_module("activation_post_process", observer)
        _register_activation_post_process_hook(module, _activation_is_memoryless(module.qconfig))


def _add_observer_(
    module: Any, qconfig_propagation_list: Any = None, non_leaf_module_list: Any = None, device: Any = None,
    custom_module_class_mapping: Any = None,
) -> None:  # fmt: skip
    """Add observers to the modules within a model that have a configuration and whose class is on the list."""
    observed = get_default_qconfig_propagation_list() if qconfig_propagation_list is None else qconfig_propagation_list
    custom = custom_module_class_mapping or {}
    device = _single_device(module, "_add_observer_") if device is None else device
    for name, child in module.named_children():
        kind = type_before_parametrizations(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, (FloatFunctional, QFunctional)):
            if _needs_observation(child):
                child.activation_post_process = _make_observer(child.qconfig.activation, device)
        elif isinstance(child, _FusedModule) or kind in (non_leaf_module_list or ()):
            _insert(child, device)
        elif _has_special_act_post_process(child):
            _insert(child, device, _get_special_act_post_process(child))
        elif _needs_observation(child) and kind in custom:
            found = custom[kind].from_float(child)
            setattr(module, name, found)
            if not isinstance(found, tuple(no_observer_set())):
                _insert(found, device)
        else:
            _add_observer_(child, observed, non_leaf_module_list, device, custom)
    if type_before_parametrizations(module) in observed and not isinstance(module, nn.Sequential):
        if has_no_children_ignoring_parametrizations(module) or hasattr(module, "weight_fake_quant"):
            _insert(module, device)


def add_quant_dequant(module: Module) -> Module:
    """Puts each layer that has a configuration between a `QuantStub` and a `DeQuantStub`.

    Args:
        module: The model, which is changed.

    Returns:
        The model, or the layer's `QuantWrapper` if the model is a layer.

    Example:
        >>> layer = torch.nn.Linear(1, 1)
        >>> layer.qconfig = torch.ao.quantization.default_qconfig
        >>> type(torch.ao.quantization.add_quant_dequant(layer)).__name__
        'QuantWrapper'
    """
    if has_no_children_ignoring_parametrizations(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare(
    model: Module, inplace: bool = False, allow_list: Any = None, observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: Any = None,
) -> Module:  # fmt: skip
    """Adds observers to the layers of a model that have a configuration.

    Args:
        model: The model; its attribute ``qconfig``, or that of modules within it, is the configuration.
        inplace: Whether the model is changed, not a copy. Default: ``False``.
        allow_list: The classes that are observed. Default: those of `get_default_qconfig_propagation_list`.
        observer_non_leaf_module_list: Classes of modules with layers that are observed too. Default: none.
        prepare_custom_config_dict: Classes that take the place of custom ones, under
            ``"float_to_observed_custom_module_class"``. Default: none.

    Returns:
        The model.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1))
        >>> model.qconfig = torch.ao.quantization.default_qconfig
        >>> torch.ao.quantization.prepare(model)[0].activation_post_process
        MinMaxObserver(min_val=inf, max_val=-inf)
    """
    custom = get_default_custom_config_dict() if prepare_custom_config_dict is None else prepare_custom_config_dict
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(module, "qconfig", None) for module in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through "
            "`qconfig_dict` or by assigning the `.qconfig` attribute directly on submodules",
            stacklevel=2,
        )
    _add_observer_(
        model, allow_list, observer_non_leaf_module_list, None, custom.get("float_to_observed_custom_module_class")
    )
    return model


def swap_module(
    mod: Any, mapping: dict, custom_module_class_mapping: dict, use_precomputed_fake_quant: bool = False
) -> Any:
    """The module that takes the place of one with a configuration, by its class; it gets the hooks.

    Args:
        mod: The module.
        mapping: The classes by those that they replace; each has ``from_float``.
        custom_module_class_mapping: The same for custom classes, with ``from_observed``.
        use_precomputed_fake_quant: Passed to ``from_float``. Default: ``False``.

    Returns:
        The new module, or the same one.

    Example:
        >>> layer = torch.nn.Linear(1, 1)
        >>> layer.qconfig = torch.ao.quantization.get_default_qat_qconfig("qnnpack")
        >>> mapping = torch.ao.quantization.get_default_qat_module_mappings()
        >>> hasattr(torch.ao.quantization.swap_module(layer, mapping, {}), "weight_fake_quant")
        True
    """
    kind = type_before_parametrizations(mod)
    if not _needs_observation(mod) or kind not in custom_module_class_mapping and kind not in mapping:
        return mod
    if kind in custom_module_class_mapping:
        found = custom_module_class_mapping[kind].from_observed(mod)
    elif getattr(mapping[kind], "_IS_REFERENCE", False):
        observer = mod.qconfig.weight()
        observer(mod.weight)
        found = mapping[kind].from_float(mod, get_qparam_dict(observer))
    elif "use_precomputed_fake_quant" in inspect.signature(mapping[kind].from_float).parameters:
        found = mapping[kind].from_float(mod, use_precomputed_fake_quant=use_precomputed_fake_quant)
    else:
        found = mapping[kind].from_float(mod)
    for hook in mod._forward_pre_hooks.values():
        found.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            found.register_forward_hook(hook)
    device = _single_device(mod, "swap_module")
    return found if device is None else found.to(device)


def _convert(module: Any, mapping: dict, custom: dict, use_precomputed_fake_quant: bool = False) -> None:
    """Swap the modules within a model."""
    for name, child in list(module.named_children()):
        if not isinstance(child, _FusedModule) and type_before_parametrizations(child) not in custom:
            _convert(child, mapping, custom, use_precomputed_fake_quant)
        module._modules[name] = swap_module(child, mapping, custom, use_precomputed_fake_quant)


def _remove_qconfig(module: Any) -> None:
    """Remove the configurations and the observers of a model."""
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    if _is_activation_post_process(getattr(module, "activation_post_process", None)):
        del module.activation_post_process
    for hooks, ours in (
        (module._forward_pre_hooks, _observer_forward_pre_hook),
        (module._forward_hooks, _observer_forward_hook),
    ):
        for key in [key for key, hook in hooks.items() if hook is ours]:
            hooks.pop(key)


def convert(
    module: Module, mapping: Any = None, inplace: bool = False, remove_qconfig: bool = True,
    is_reference: bool = False, convert_custom_config_dict: Any = None, use_precomputed_fake_quant: bool = False,
) -> Module:  # fmt: skip
    """Replaces the modules of a model by those of a mapping: observed layers by quantized ones.

    Args:
        module: The model.
        mapping: The classes by those that they replace; each has ``from_float``. Default: those of
            `get_default_static_quant_module_mappings`.
        inplace: Whether the model is changed, not a copy. Default: ``False``.
        remove_qconfig: Whether configurations and observers are removed. Default: ``True``.
        is_reference: Whether layers compute on numbers, with a quantized weight. Default: ``False``.
        convert_custom_config_dict: Classes that take the place of custom ones, under
            ``"observed_to_quantized_custom_module_class"``. Default: none.
        use_precomputed_fake_quant: Passed to ``from_float``. Default: ``False``.

    Returns:
        The model.

    Example:
        >>> model = torch.ao.quantization.QuantWrapper(torch.nn.Linear(1, 1)).eval()
        >>> model.qconfig = torch.ao.quantization.default_qconfig
        >>> model = torch.ao.quantization.prepare(model)
        >>> _ = model(torch.randn(9, 1))
        >>> type(torch.ao.quantization.convert(model).module).__module__.split(".")[-3]
        'quantized'
    """
    if mapping is None:
        mapping = (
            get_default_static_quant_reference_module_mappings()
            if is_reference
            else get_default_static_quant_module_mappings()
        )
    if not inplace:
        module = copy.deepcopy(module)
    custom = convert_custom_config_dict or get_default_custom_config_dict()
    _convert(module, mapping, custom.get("observed_to_quantized_custom_module_class", {}), use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def prepare_qat(model: Module, mapping: Any = None, inplace: bool = False) -> Module:
    """Replaces the layers of a model by those whose weights are rounded in training, and rounds their outputs.

    Args:
        model: The model, in training mode; its attribute ``qconfig`` is the configuration.
        mapping: The classes by those that they replace. Default: those of `get_default_qat_module_mappings`.
        inplace: Whether the model is changed, not a copy. Default: ``False``.

    Returns:
        The model.

    Raises:
        AssertionError: The model is in evaluation mode.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1))
        >>> model.qconfig = torch.ao.quantization.get_default_qat_qconfig("qnnpack")
        >>> type(torch.ao.quantization.prepare_qat(model)[0].weight_fake_quant).__name__
        'FusedMovingAvgObsFakeQuantize'
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping, inplace=True, remove_qconfig=False)
    prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)
    return model


def quantize(model: Module, run_fn: Any, run_args: Any, mapping: Any = None, inplace: bool = False) -> Module:
    """Quantizes a model after a run over calibration data: `prepare`, the run and `convert`.

    Args:
        model: The model, with a `qconfig`.
        run_fn: A function that runs the prepared model.
        run_args: Its other arguments.
        mapping: The quantized classes by float ones. Default: those of `get_default_static_quant_module_mappings`.
        inplace: Whether the model is changed, not a copy. Default: ``False``.

    Returns:
        The quantized model, in evaluation mode.

    Example:
        >>> model = torch.ao.quantization.QuantWrapper(torch.nn.Linear(1, 1))
        >>> model.qconfig = torch.ao.quantization.default_qconfig
        >>> data = [(torch.randn(9, 1), None)]
        >>> model = torch.ao.quantization.quantize(model, torch.ao.quantization.default_eval_fn, [data])
        >>> model(torch.ones(2, 1)).shape
        torch.Size([2, 1])
    """
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_dynamic(
    model: Module, qconfig_spec: Any = None, dtype: Any = torch.qint8, mapping: Any = None, inplace: bool = False
) -> Module:
    """Quantizes the weights of layers, which quantize their inputs by their range in each call.

    Args:
        model: The model.
        qconfig_spec: Configurations by name or class, or a set of these. Default: linear and recurrent layers, or
            embeddings if `dtype` is `torch.quint8`.
        dtype: Dtype of the weights. Default: `torch.qint8`.
        mapping: The classes by float ones. Default: those of `get_default_dynamic_quant_module_mappings`.
        inplace: Whether the model is changed, not a copy. Default: ``False``.

    Returns:
        The quantized model.

    Raises:
        ValueError: There is no usual configuration for `dtype`.

    Example:
        >>> model = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(3, 2)))
        >>> model[0]
        DynamicQuantizedLinear(in_features=3, out_features=2, dtype=torch.qint8, qscheme=torch.per_tensor_affine)
    """
    if qconfig_spec is None or isinstance(qconfig_spec, set):
        qconfig = {
            torch.qint8: default_dynamic_qconfig, torch.float16: float16_dynamic_qconfig,
            torch.quint8: float_qparams_weight_only_qconfig,
            torch.quint4x2: float_qparams_weight_only_qconfig_4bit,
        }.get(dtype)  # fmt: skip
        if qconfig is None:
            where = "" if qconfig_spec is None else " when qconfig_spec is a set"
            raise ValueError(f"Unknown dtype specified for quantize_dynamic: {dtype}{where}")
        usual = {nn.EmbeddingBag, nn.Embedding} if dtype in (torch.quint8, torch.quint4x2) else _DYNAMIC
        qconfig_spec = dict.fromkeys(usual if qconfig_spec is None else qconfig_spec, qconfig)
    mapping = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, mapping, inplace=True)


_DYNAMIC = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)


def quantize_qat(model: Module, run_fn: Any, run_args: Any, inplace: bool = False) -> Module:
    """Quantizes a model after quantization aware training: `prepare_qat`, the training and `convert`.

    Args:
        model: The model, with a `qconfig`.
        run_fn: A function that trains the prepared model.
        run_args: Its other arguments.
        inplace: Whether the model is changed, not a copy. Default: ``False``.

    Returns:
        The quantized model.

    Example:
        >>> model = torch.ao.quantization.QuantWrapper(torch.nn.Linear(1, 1))
        >>> model.qconfig = torch.ao.quantization.get_default_qat_qconfig("qnnpack")
        >>> data = [(torch.randn(9, 1), None)]
        >>> model = torch.ao.quantization.quantize_qat(model, torch.ao.quantization.default_eval_fn, [data])
        >>> model.eval()(torch.ones(2, 1)).shape
        torch.Size([2, 1])
    """
    if not inplace:
        model = copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def _get_observer_dict(mod: Any, target_dict: dict, prefix: str = "") -> None:
    """Put all observers within a model into a dictionary, by name."""
    for name, module in mod.named_modules(prefix=prefix):
        if hasattr(module, "activation_post_process"):
            key = f"{name}.activation_post_process" if name else "activation_post_process"
            target_dict[key] = module.activation_post_process
