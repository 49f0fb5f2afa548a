"""What observers, fake quantization and configurations share: ranges, scales, and questions about configurations."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn.modules.module import Module
from torchlite.nn.utils.parametrize import is_parametrized

from .quant_type import QuantType

__all__ = [
    "MatchAllNode", "activation_dtype", "activation_is_dynamically_quantized", "activation_is_int32_quantized",
    "activation_is_int8_quantized", "activation_is_statically_quantized", "calculate_qmin_qmax", "check_min_max_valid",
    "determine_qparams", "get_combined_dict", "get_fqn_to_example_inputs", "get_qconfig_dtypes", "get_qparam_dict",
    "get_quant_type", "get_swapped_custom_module_class", "getattr_from_fqn",
    "has_no_children_ignoring_parametrizations", "is_per_channel", "is_per_tensor", "op_is_int8_dynamically_quantized",
    "to_underlying_dtype", "validate_qmin_qmax", "weight_dtype", "weight_is_quantized",
    "weight_is_statically_quantized",
]  # fmt: skip

_UNDERLYING = {
    **{getattr(torch, q): getattr(torch, plain) for q, plain in (
        ("quint8", "uint8"), ("qint8", "int8"), ("qint32", "int32"), ("quint4x2", "uint8"), ("quint2x4", "uint8"))},
    **{d: d for d in (torch.uint8, torch.int8, torch.uint16, torch.int16, torch.int32, torch.float8_e5m2,
                      torch.float8_e4m3fn)},
}  # fmt: skip
_BYTES = (torch.quint8, torch.qint8, torch.uint8, torch.int8)
_STORED = (*_BYTES, torch.int16, torch.int32, torch.float8_e5m2, torch.float8_e4m3fn)
# The range of a dtype, and the one that is a bit shorter.
_RANGES = {
    torch.int8: ((-128, 127), (-64, 63)), torch.uint8: ((0, 255), (0, 127)), torch.int32: ((-(2**31), 2**31 - 1),) * 2,
    torch.uint16: ((0, 2**16 - 1),) * 2, torch.int16: ((-(2**15), 2**15 - 1),) * 2,
}  # fmt: skip
_FULL = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}
# Numbers of levels that a range may have.
_MOST = {torch.int8: 256, torch.int32: 2**32}


class MatchAllNode:
    """Matches each node of a graph, in a pattern of modules that are fused.

    Example:
        >>> torch.ao.quantization.utils.MatchAllNode.__name__
        'MatchAllNode'
    """


def get_combined_dict(default_dict: dict, additional_dict: dict) -> dict:
    """A dictionary with the entries of two; the second's go first.

    Args:
        default_dict: The first.
        additional_dict: The second.

    Example:
        >>> torch.ao.quantization.utils.get_combined_dict({"a": 1, "b": 1}, {"b": 2})
        {'a': 1, 'b': 2}
    """
    return {**default_dict, **additional_dict}


def is_per_tensor(qscheme: Any) -> bool:
    """True for the schemes with one scale for a tensor.

    Args:
        qscheme: The scheme.

    Example:
        >>> torch.ao.quantization.utils.is_per_tensor(torch.per_tensor_affine)
        True
    """
    return qscheme in (torch.per_tensor_affine, torch.per_tensor_symmetric)


def is_per_channel(qscheme: Any) -> bool:
    """True for the schemes with a scale for each channel.

    Args:
        qscheme: The scheme.

    Example:
        >>> torch.ao.quantization.utils.is_per_channel(torch.per_tensor_affine)
        False
    """
    return qscheme in (torch.per_channel_affine, torch.per_channel_affine_float_qparams, torch.per_channel_symmetric)


def getattr_from_fqn(obj: Any, fqn: str) -> Any:
    """An attribute of attributes.

    Args:
        obj: The object.
        fqn: The names, with dots between.

    Example:
        >>> torch.ao.quantization.utils.getattr_from_fqn(torch, "nn.ReLU").__name__
        'ReLU'
    """
    return functools.reduce(getattr, fqn.split("."), obj)


def to_underlying_dtype(qdtype: Any) -> Any:
    """The dtype of the integers of a quantized dtype.

    Args:
        qdtype: The dtype.

    Raises:
        AssertionError: No tensor is quantized to it.

    Example:
        >>> torch.ao.quantization.utils.to_underlying_dtype(torch.qint8)
        torch.int8
    """
    if qdtype not in _UNDERLYING:
        raise AssertionError("Unsupported dtype: " + str(qdtype))
    return _UNDERLYING[qdtype]


def get_qparam_dict(observer_or_fake_quant: Any) -> dict[str, Any]:
    """What an observer found, by name: scheme, dtype, scale, zero point, axis and range.

    Args:
        observer_or_fake_quant: An observer, or a module of fake quantization.

    Example:
        >>> observer = torch.ao.quantization.FixedQParamsObserver(0.5, 0)
        >>> torch.ao.quantization.utils.get_qparam_dict(observer)["scale"]
        tensor([0.5000])
    """
    qscheme, dtype = getattr(observer_or_fake_quant, "qscheme", None), observer_or_fake_quant.dtype
    if not qscheme or type(observer_or_fake_quant).__name__ == "PlaceholderObserver":
        return {"qscheme": None, "dtype": dtype}
    found = {"qscheme": qscheme, "dtype": dtype}
    if is_per_tensor(qscheme):
        found["qscheme"] = torch.per_tensor_affine
    elif is_per_channel(qscheme):
        if qscheme == torch.per_channel_symmetric:
            found["qscheme"] = torch.per_channel_affine
        found["axis"] = observer_or_fake_quant.ch_axis
    else:
        raise RuntimeError(f"Unrecognized qscheme: {qscheme}")
    found["scale"], found["zero_point"] = observer_or_fake_quant.calculate_qparams()
    for name in ("quant_min", "quant_max"):
        if hasattr(observer_or_fake_quant, name):
            found[name] = getattr(observer_or_fake_quant, name)
    return found


def get_swapped_custom_module_class(custom_module: Any, custom_module_class_mapping: dict, qconfig: Any) -> Any:
    """The class that takes the place of a module's.

    Args:
        custom_module: The module.
        custom_module_class_mapping: A dictionary of classes for each `QuantType`.
        qconfig: The configuration, which tells the type.

    Raises:
        AssertionError: The class has no entry.

    Example:
        >>> qconfig = torch.ao.quantization.default_qconfig
        >>> mapping = {torch.ao.quantization.QuantType.STATIC: {torch.nn.ReLU: torch.nn.ReLU6}}
        >>> torch.ao.quantization.utils.get_swapped_custom_module_class(torch.nn.ReLU(), mapping, qconfig).__name__
        'ReLU6'
    """
    class_mapping = custom_module_class_mapping.get(get_quant_type(qconfig), {})
    if type(custom_module) not in class_mapping:
        raise AssertionError(
            f"did not find corresponding observed module class for {type(custom_module)} in mapping: {class_mapping}"
        )
    return class_mapping[type(custom_module)]


def _of_qconfig(qconfig: Any, part: str, purpose: str) -> Any:
    if qconfig is None:
        raise AssertionError(f"qconfig must be provided to {purpose}")
    return getattr(qconfig, part)()


def activation_dtype(qconfig: Any) -> Any:
    """The dtype of a configuration's outputs.

    Args:
        qconfig: The configuration.

    Example:
        >>> torch.ao.quantization.utils.activation_dtype(torch.ao.quantization.default_qconfig)
        torch.quint8
    """
    return _of_qconfig(qconfig, "activation", "determine activation dtype").dtype


def weight_dtype(qconfig: Any) -> Any:
    """The dtype of a configuration's weights.

    Args:
        qconfig: The configuration.

    Example:
        >>> torch.ao.quantization.utils.weight_dtype(torch.ao.quantization.default_qconfig)
        torch.qint8
    """
    return _of_qconfig(qconfig, "weight", "determine weight dtype").dtype


def get_qconfig_dtypes(qconfig: Any) -> tuple[Any, Any, bool]:
    """The dtypes of a configuration's outputs and weights, and whether outputs are quantized dynamically.

    Args:
        qconfig: The configuration.

    Example:
        >>> torch.ao.quantization.utils.get_qconfig_dtypes(torch.ao.quantization.default_dynamic_qconfig)
        (torch.quint8, torch.qint8, True)
    """
    activation = _of_qconfig(qconfig, "activation", "extract dtypes")
    return activation.dtype, qconfig.weight().dtype, getattr(activation, "is_dynamic", False)


def _question(name: str, text: str, answer: Any) -> Any:
    def ask(qconfig: Any) -> bool:
        return answer(qconfig)

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"""{text}

    Args:
        qconfig: The configuration.

    Example:
        >>> torch.ao.quantization.utils.{name}(torch.ao.quantization.default_qconfig) in (True, False)
        True
    """
    return ask


activation_is_dynamically_quantized = _question(
    "activation_is_dynamically_quantized",
    "True if a configuration quantizes outputs dynamically.",
    lambda qconfig: get_qconfig_dtypes(qconfig)[2],
)
activation_is_statically_quantized = _question(
    "activation_is_statically_quantized",
    "True if a configuration quantizes outputs with scales that observers chose.",
    lambda qconfig: (
        activation_dtype(qconfig) in (*_STORED, torch.qint32, torch.float16)
        and not activation_is_dynamically_quantized(qconfig)
    ),
)
activation_is_int8_quantized = _question(
    "activation_is_int8_quantized",
    "True if a configuration quantizes outputs to bytes.",
    lambda qconfig: activation_dtype(qconfig) in _BYTES,
)
activation_is_int32_quantized = _question(
    "activation_is_int32_quantized",
    "True if a configuration quantizes outputs to 32-bit integers.",
    lambda qconfig: activation_dtype(qconfig) in (torch.qint32, torch.int32),
)
weight_is_quantized = _question(
    "weight_is_quantized",
    "True if a configuration quantizes weights.",
    lambda qconfig: weight_dtype(qconfig) in (*_STORED, torch.float16, torch.quint4x2),
)
weight_is_statically_quantized = _question(
    "weight_is_statically_quantized",
    "True if a configuration quantizes weights to bytes.",
    lambda qconfig: weight_dtype(qconfig) in _BYTES,
)


def _is_dynamic_int8(qconfig: Any) -> bool:
    activation, weight, is_dynamic = get_qconfig_dtypes(qconfig)
    return activation in (torch.quint8, torch.uint8) and weight in (torch.qint8, torch.int8) and is_dynamic


op_is_int8_dynamically_quantized = _question(
    "op_is_int8_dynamically_quantized",
    "True if a configuration quantizes weights to signed bytes, and inputs dynamically to unsigned ones.",
    _is_dynamic_int8,
)


def get_quant_type(qconfig: Any) -> QuantType:
    """The kind of quantization that a configuration describes.

    Args:
        qconfig: The configuration.

    Raises:
        Exception: There is none for its dtypes.

    Example:
        >>> torch.ao.quantization.utils.get_quant_type(torch.ao.quantization.default_qconfig)
        <QuantType.STATIC: 1>
    """
    activation = _of_qconfig(qconfig, "activation", "determine quant type")
    weight, stored = qconfig.weight(), (*_STORED, torch.quint4x2, torch.qint32)
    is_dynamic = getattr(activation, "is_dynamic", False)
    if weight.dtype in stored:
        static = QuantType.STATIC if activation.dtype in stored else QuantType.WEIGHT_ONLY
        return QuantType.DYNAMIC if is_dynamic else static
    if weight.dtype == torch.float16 and (is_dynamic or activation.dtype == torch.float16):
        return QuantType.DYNAMIC if is_dynamic else QuantType.STATIC
    raise Exception(
        f"Unrecognized dtype combination in get_quant_type: activation({activation.dtype}),weight({weight.dtype})"
    )


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """True if an observer has seen a range; a warning if it has not.

    Args:
        min_val: The least numbers.
        max_val: The greatest numbers.

    Raises:
        AssertionError: A least number is greater than the greatest.

    Example:
        >>> torch.ao.quantization.utils.check_min_max_valid(torch.tensor(0.0), torch.tensor(1.0))
        True
    """
    single = min_val.dim() == 0 or max_val.dim() == 0
    if (
        min_val.numel() == 0
        or max_val.numel() == 0
        or (single and bool(min_val == float("inf")) and bool(max_val == float("-inf")))
    ):
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
        return False
    if bool((min_val > max_val).any()):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


def calculate_qmin_qmax(
    quant_min: Any, quant_max: Any, has_customized_qrange: bool, dtype: Any, reduce_range: bool
) -> tuple[int, int]:
    """The least and the greatest integer that an observer uses.

    Args:
        quant_min: The least integer that the user chose.
        quant_max: The greatest.
        has_customized_qrange: Whether these count, or the dtype's range.
        dtype: The quantized dtype.
        reduce_range: Whether the range is a bit shorter.

    Raises:
        AssertionError: The chosen range has more integers than the dtype.

    Example:
        >>> torch.ao.quantization.utils.calculate_qmin_qmax(None, None, False, torch.qint8, True)
        (-64, 63)
    """
    dtype = _FULL.get(dtype, dtype)
    if not has_customized_qrange:
        return _RANGES.get(dtype, ((0, 15),) * 2)[bool(reduce_range)]
    most = _MOST.get(dtype)
    if most is not None and not 0 < quant_max - quant_min + 1 <= most:
        raise AssertionError(f"quantization range should be positive and not exceed the maximum bit range (={most}).")
    return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Refuses a range of integers that is empty or lacks zero.

    Args:
        quant_min: The least integer.
        quant_max: The greatest.

    Raises:
        AssertionError: The range is not valid.

    Example:
        >>> torch.ao.quantization.utils.validate_qmin_qmax(0, 255)
    """
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if quant_min >= quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")


def _scales_and_zero_points(
    low: Tensor, high: Tensor, quant_min: int, quant_max: int, dtype: torch.dtype, eps: Tensor, custom: bool,
    qscheme: torch.qscheme, wide: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Scales, and zero points of int64 or of the scales' dtype, for ranges; each has a dimension at least.

    wide: whether uint16 has its middle as the zero point of a symmetric scheme. TorchScript compiles the function.
    """
    below, above = low.clamp(max=0), high.clamp(min=0)
    zero_point = torch.zeros(below.size(), dtype=torch.int64, device=below.device)
    if qscheme == torch.per_tensor_symmetric or qscheme == torch.per_channel_symmetric:
        scale = torch.max(torch.max(-below, above) / (float(quant_max - quant_min) / 2), eps)
        middle = 0
        if dtype == torch.quint8 or dtype == torch.uint8:
            middle = (quant_min + quant_max) // 2 if custom else 128
        elif wide and dtype == torch.uint16:
            middle = 32768
        zero_point = zero_point.new_full(zero_point.size(), middle)
    elif qscheme == torch.per_channel_affine_float_qparams:
        scale = (high - low) / float(quant_max - quant_min)
        scale = torch.where(scale > eps, scale, torch.ones_like(scale))
        zero_point = -low / scale
    else:
        scale = torch.max((above - below) / float(quant_max - quant_min), eps)
        zero_point = (quant_min - torch.round(below / scale).to(torch.int32)).clamp(quant_min, quant_max)
    if scale.ndim == 0:
        scale = scale.reshape(1)
    if zero_point.ndim == 0:
        zero_point = zero_point.reshape(1)
    return scale, zero_point


def _unseen(device: str) -> tuple[Tensor, Tensor]:
    """The scale and the zero point of an observer that has seen nothing."""
    return torch.tensor([1.0], device=device), torch.tensor([0], device=device)


def determine_qparams(
    min_val: Tensor, max_val: Tensor, quant_min: int, quant_max: int, dtype: Any, eps: Tensor,
    has_customized_qrange: bool, qscheme: Any = torch.per_tensor_affine,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Scales and zero points of ranges, as float64 and int64.

    Args:
        min_val: The least number of each range.
        max_val: The greatest.
        quant_min: The least integer.
        quant_max: The greatest.
        dtype: The quantized dtype.
        eps: The least scale.
        has_customized_qrange: Whether the user chose the range of integers.
        qscheme: The scheme. Default: affine, one scale.

    Example:
        >>> low, high, eps = torch.tensor(-1.0), torch.tensor(1.55), torch.tensor([1e-7])
        >>> torch.ao.quantization.utils.determine_qparams(low, high, 0, 255, torch.uint8, eps, False)[1]
        tensor([100])
    """
    if not check_min_max_valid(min_val, max_val):
        return _unseen(min_val.device.type)
    found = _scales_and_zero_points(
        min_val, max_val, quant_min, quant_max, dtype, eps.to(min_val.device), has_customized_qrange, qscheme,
        False,
    )  # fmt: skip
    return found[0].to(torch.float64), found[1].to(torch.int64)


def has_no_children_ignoring_parametrizations(module: Module) -> bool:
    """True if a module has no modules but parametrizations.

    Args:
        module: The module.

    Example:
        >>> torch.ao.quantization.utils.has_no_children_ignoring_parametrizations(torch.nn.ReLU())
        True
    """
    if not module._modules:
        return True
    return bool(is_parametrized(module)) and len(module._modules) == 1 and "parametrizations" in module._modules


def _parent_name(target: str) -> tuple[str, str]:
    parent, _, name = target.rpartition(".")
    return parent, name


def _normalize_kwargs(func: Any, loc: dict[str, Any]) -> OrderedDict:
    """The keyword arguments of a call with the defaults of the others, in the function's order."""
    parameters = inspect.signature(func).parameters.values()
    known = OrderedDict((p.name, p.default) for p in parameters if p.default is not p.empty)
    known.update({p.name: loc[p.name] for p in parameters if p.name in loc})
    return known


def get_fqn_to_example_inputs(model: Module, example_inputs: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    """The inputs of each module within a model, by name, in one run.

    Args:
        model: The model.
        example_inputs: Its inputs.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.ReLU())
        >>> torch.ao.quantization.utils.get_fqn_to_example_inputs(model, (torch.ones(1),))
        {'': (tensor([1.]),), '0': (tensor([1.]),)}
    """
    names = {id(module): name for name, module in reversed(list(model.named_modules()))}
    found: dict[str, tuple[Any, ...]] = {}

    def note(module: Module, args: tuple, kwargs: dict) -> None:
        inputs, named = list(args), _normalize_kwargs(module.forward, kwargs)
        missing = len(inspect.signature(module.forward).parameters) - len(inputs)
        while len(named) > max(missing, 0):
            named.popitem(last=False)
        found[names[id(module)]] = (*inputs, *named.values())

    handles = [module.register_forward_pre_hook(note, with_kwargs=True) for module in model.modules()]
    try:
        model(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found
