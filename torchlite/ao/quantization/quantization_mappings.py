"""Which classes take the place of which: those of quantization aware training. Layers over quantized tensors, which
other mappings name, are not part of torchlite.
"""

from __future__ import annotations

from typing import Any, NoReturn

from torchlite import nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn import qat as nnqat
from torchlite.ao.nn.intrinsic import qat as nniqat
from torchlite.ao.nn.qat.dynamic import Linear as _DynamicLinear
from torchlite.ao.nn.quantized import FloatFunctional
from torchlite.nn.modules.linear import NonDynamicallyQuantizableLinear
from torchlite.nn.utils.parametrize import type_before_parametrizations

from .fake_quantize import default_fixed_qparams_range_0to1_fake_quant, default_fixed_qparams_range_neg1to1_fake_quant
from .stubs import DeQuantStub, QuantStub

__all__ = [
    "get_default_compare_output_module_list", "get_default_dynamic_quant_module_mappings",
    "get_default_dynamic_sparse_quant_module_mappings", "get_default_float_to_quantized_operator_mappings",
    "get_default_qat_module_mappings", "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings", "get_default_static_quant_reference_module_mappings",
    "get_default_static_sparse_quant_module_mappings", "get_dynamic_quant_module_class",
    "get_embedding_qat_module_mappings", "get_embedding_static_quant_module_mappings", "get_quantized_operator",
    "get_static_quant_module_class", "no_observer_set",
]  # fmt: skip


def _classes(module: Any, names: str) -> list[Any]:
    return [getattr(module, name) for name in names.split()]


_FUSED = "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU2d ConvReLU3d LinearReLU LinearBn1d"
DEFAULT_QAT_MODULE_MAPPINGS: dict[Any, Any] = {
    **{getattr(nn, name): getattr(nnqat, name) for name in ("Conv2d", "Conv3d", "Linear")},
    NonDynamicallyQuantizableLinear: nnqat.Linear,  # type: ignore[attr-defined]
    **dict(zip(_classes(nni, _FUSED), _classes(nniqat, _FUSED), strict=True)),
}
# The classes of which quantization has a form, whose outputs are observed.
_OBSERVED = frozenset([
    QuantStub, DeQuantStub, NonDynamicallyQuantizableLinear, FloatFunctional, _DynamicLinear,
    *_classes(nn, """BatchNorm2d BatchNorm3d Dropout Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
        ConvTranspose3d ELU Embedding EmbeddingBag GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d
        LayerNorm LeakyReLU Linear ReLU6 PReLU GRUCell LSTM GRU LSTMCell RNNCell"""),
    *_classes(nni, """BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d ConvAdd2d ConvAddReLU2d LinearReLU
        LinearLeakyReLU LinearTanh"""),
    *_classes(nniqat, _FUSED), *_classes(nnqat, "Linear Conv2d Conv3d"),
])  # fmt: skip
DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Any, Any] = {
    **dict.fromkeys((nn.Hardsigmoid, nn.Sigmoid, nn.Softmax), default_fixed_qparams_range_0to1_fake_quant),
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


def get_default_qat_module_mappings() -> dict[Any, Any]:
    """The classes of quantization aware training by those of float layers.

    Example:
        >>> torch.ao.quantization.get_default_qat_module_mappings()[torch.nn.Linear].__module__.split(".")[-3]
        'qat'
    """
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> dict[Any, Any]:
    """The same with embeddings.

    Example:
        >>> torch.nn.Embedding in torch.ao.quantization.get_embedding_qat_module_mappings()
        True
    """
    found = get_default_qat_module_mappings()
    return {**found, **{getattr(nn, name): getattr(nnqat, name) for name in ("EmbeddingBag", "Embedding")}}


def get_default_qconfig_propagation_list() -> set[Any]:
    """The classes whose outputs `prepare` observes.

    Example:
        >>> torch.nn.Linear in torch.ao.quantization.get_default_qconfig_propagation_list()
        True
    """
    return {*_OBSERVED, *DEFAULT_QAT_MODULE_MAPPINGS, nn.Sequential}


def no_observer_set() -> set[Any]:
    """The classes that have observers of their own: none.

    Example:
        >>> torch.ao.quantization.no_observer_set()
        set()
    """
    return set()


def _without_layers(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"torch.ao.quantization.{name}: torchlite has no layers over quantized tensors")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"""Refuses: torchlite has no layers over quantized tensors.

    Args:
        *args: No effect.
        **kwargs: No effect.

    Raises:
        NotImplementedError: Always.

    Example:
        >>> callable(torch.ao.quantization.{name})
        True
    """
    return refuse


get_default_compare_output_module_list = _without_layers("get_default_compare_output_module_list")
get_default_dynamic_quant_module_mappings = _without_layers("get_default_dynamic_quant_module_mappings")
get_default_dynamic_sparse_quant_module_mappings = _without_layers("get_default_dynamic_sparse_quant_module_mappings")
get_default_float_to_quantized_operator_mappings = _without_layers("get_default_float_to_quantized_operator_mappings")
get_default_static_quant_module_mappings = _without_layers("get_default_static_quant_module_mappings")
get_default_static_quant_reference_module_mappings = _without_layers(
    "get_default_static_quant_reference_module_mappings"
)
get_default_static_sparse_quant_module_mappings = _without_layers("get_default_static_sparse_quant_module_mappings")
get_embedding_static_quant_module_mappings = _without_layers("get_embedding_static_quant_module_mappings")
get_static_quant_module_class = _without_layers("get_static_quant_module_class")
get_dynamic_quant_module_class = _without_layers("get_dynamic_quant_module_class")
get_quantized_operator = _without_layers("get_quantized_operator")


def _get_special_act_post_process(module: Any) -> Any:
    """The fake quantization of a layer whose outputs have a known range."""
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))


def _has_special_act_post_process(module: Any) -> bool:
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS
