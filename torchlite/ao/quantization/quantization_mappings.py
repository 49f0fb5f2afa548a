"""Which classes take the place of which: in quantization aware training, and over quantized tensors."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn import qat as nnqat
from torchlite.ao.nn import quantizable
from torchlite.ao.nn import quantized as nnq
from torchlite.ao.nn.intrinsic import qat as nniqat
from torchlite.ao.nn.intrinsic import quantized as nniq
from torchlite.ao.nn.qat.dynamic import Linear as _DynamicLinear
from torchlite.ao.nn.quantized import FloatFunctional
from torchlite.ao.nn.quantized import dynamic as nnqd
from torchlite.ao.nn.quantized import reference as nnqr
from torchlite.nn import functional as F
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
DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize, NonDynamicallyQuantizableLinear: nnq.Linear,
    FloatFunctional: nnq.QFunctional,
    **{getattr(nn, name): getattr(nnq, name) for name in """BatchNorm2d BatchNorm3d Dropout Conv1d Conv2d Conv3d
        ConvTranspose1d ConvTranspose2d ConvTranspose3d ELU Embedding EmbeddingBag GroupNorm Hardswish InstanceNorm1d
        InstanceNorm2d InstanceNorm3d LayerNorm LeakyReLU Linear ReLU6 PReLU""".split()},
    **{getattr(nni, name): getattr(nniq, name) for name in """BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d
        ConvAdd2d ConvAddReLU2d LinearReLU LinearLeakyReLU LinearTanh""".split()},
    **{getattr(nniqat, f"ConvBn{n}d"): getattr(nnq, f"Conv{n}d") for n in (1, 2, 3)},
    **{getattr(nniqat, f"ConvBnReLU{n}d"): getattr(nniq, f"ConvReLU{n}d") for n in (1, 2, 3)},
    **{getattr(nniqat, name): getattr(nniq, name) for name in ("ConvReLU2d", "ConvReLU3d", "LinearReLU")},
    nniqat.LinearBn1d: nnq.Linear,
    **{getattr(nnqat, name): getattr(nnq, name) for name in ("Linear", "Conv2d", "Conv3d")},
}  # fmt: skip
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    **{getattr(nn, name): getattr(nnqd, name) for name in "GRUCell Linear LSTM GRU LSTMCell RNNCell".split()},
    _DynamicLinear: nnqd.Linear, NonDynamicallyQuantizableLinear: nnqd.Linear,
    nni.LinearReLU: nniq.dynamic.LinearReLU, nn.EmbeddingBag: nnq.EmbeddingBag, nn.Embedding: nnq.Embedding,
}  # fmt: skip
DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize,
    **{getattr(nn, name): getattr(nnqr, name) for name in """Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
        ConvTranspose3d Embedding EmbeddingBag GRUCell LSTMCell RNNCell LSTM""".split()},
}  # fmt: skip
_OPERATORS = ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")
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
    """The classes that have observers of their own: LSTMs and attention made of observed parts.

    Example:
        >>> sorted(kind.__name__ for kind in torch.ao.quantization.no_observer_set())
        ['LSTM', 'MultiheadAttention']
    """
    return {quantizable.LSTM, quantizable.MultiheadAttention}


def get_default_static_quant_module_mappings() -> dict[Any, Any]:
    """The quantized classes by those of observed float layers, and of layers of quantization aware training.

    Example:
        >>> torch.ao.quantization.get_default_static_quant_module_mappings()[torch.nn.Linear].__module__.split(".")[-3]
        'quantized'
    """
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_dynamic_quant_module_mappings() -> dict[Any, Any]:
    """The classes that quantize their inputs by their range, by those of float layers.

    Example:
        >>> torch.nn.LSTM in torch.ao.quantization.get_default_dynamic_quant_module_mappings()
        True
    """
    return dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings() -> dict[Any, Any]:
    """The classes that compute on numbers, with a quantized weight, by float classes.

    Example:
        >>> mapping = torch.ao.quantization.get_default_static_quant_reference_module_mappings()
        >>> mapping[torch.nn.Linear] is torch.ao.nn.quantized.reference.Linear
        True
    """
    return dict(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> dict[Any, Any]:
    """The quantized classes with those of embeddings that were trained with rounded weights.

    Example:
        >>> len(torch.ao.quantization.get_embedding_static_quant_module_mappings()) > 40
        True
    """
    found = get_default_static_quant_module_mappings()
    return {**found, nnqat.EmbeddingBag: nnq.EmbeddingBag, nnqat.Embedding: nnq.Embedding}


def get_default_float_to_quantized_operator_mappings() -> dict[Any, Any]:
    """The functions on quantized tensors by those on float tensors that need parameters of the result.

    Example:
        >>> torch.nn.functional.elu in torch.ao.quantization.get_default_float_to_quantized_operator_mappings()
        True
    """
    return {getattr(F, name): getattr(torch.ops.quantized, name) for name in _OPERATORS}


def get_default_compare_output_module_list() -> set[Any]:
    """The classes whose outputs are compared before and after quantization.

    Example:
        >>> torch.nn.Linear in torch.ao.quantization.get_default_compare_output_module_list()
        True
    """
    mappings = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, DEFAULT_QAT_MODULE_MAPPINGS,
    )  # fmt: skip
    return {kind for mapping in mappings for pair in mapping.items() for kind in pair} | {nn.Sequential}


def get_static_quant_module_class(
    float_module_class: Any, additional_static_quant_mapping: Any = None, is_reference: bool = False
) -> Any:
    """The quantized class of a float one.

    Args:
        float_module_class: The float class.
        additional_static_quant_mapping: More quantized classes by float ones. Default: none.
        is_reference: Whether the class computes on numbers, with a quantized weight. Default: ``False``.

    Raises:
        NotImplementedError: There is no such class.

    Example:
        >>> torch.ao.quantization.get_static_quant_module_class(torch.nn.ReLU6).__name__
        'ReLU6'
    """
    known = DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS if is_reference else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    return _class_of({**known, **(additional_static_quant_mapping or {})}, float_module_class, "quantized")


def get_dynamic_quant_module_class(float_module_class: Any, additional_dynamic_quant_mapping: Any = None) -> Any:
    """The class that quantizes its inputs by their range, of a float one.

    Args:
        float_module_class: The float class.
        additional_dynamic_quant_mapping: More such classes by float ones. Default: none.

    Raises:
        NotImplementedError: There is no such class.

    Example:
        >>> torch.ao.quantization.get_dynamic_quant_module_class(torch.nn.GRU).__name__
        'GRU'
    """
    mapping = {**DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, **(additional_dynamic_quant_mapping or {})}
    return _class_of(mapping, float_module_class, "dynamically quantized")


def _class_of(mapping: dict[Any, Any], kind: Any, word: str) -> Any:
    if kind not in mapping:
        raise NotImplementedError(
            f"Floating point module class {kind} does not have a corresponding {word} module class"
        )
    return mapping[kind]


def get_quantized_operator(float_op: Any) -> Any:
    """The function on quantized tensors of one on float tensors.

    Args:
        float_op: A function of `torch.nn.functional`.

    Raises:
        AssertionError: There is none.

    Example:
        >>> torch.ao.quantization.get_quantized_operator(torch.nn.functional.elu) is torch.ops.quantized.elu
        True
    """
    found = get_default_float_to_quantized_operator_mappings().get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def get_default_static_sparse_quant_module_mappings() -> dict[Any, Any]:
    """The classes of quantized modules with sparse weights, by float ones, for static quantization.

    Example:
        >>> [kind.__name__ for kind in torch.ao.quantization.get_default_static_sparse_quant_module_mappings()]
        ['Linear']
    """
    from torchlite.ao.pruning import get_static_sparse_quantized_mapping

    return get_static_sparse_quantized_mapping()


def get_default_dynamic_sparse_quant_module_mappings() -> dict[Any, Any]:
    """The classes of quantized modules with sparse weights, by float ones, for dynamic quantization.

    Example:
        >>> [kind.__name__ for kind in torch.ao.quantization.get_default_dynamic_sparse_quant_module_mappings()]
        ['Linear']
    """
    from torchlite.ao.pruning import get_dynamic_sparse_quantized_mapping

    return get_dynamic_sparse_quantized_mapping()


def _get_special_act_post_process(module: Any) -> Any:
    """The fake quantization of a layer whose outputs have a known range."""
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))


def _has_special_act_post_process(module: Any) -> bool:
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS
