"""Configurations: which observer, or fake quantization, a layer's outputs and weight get."""

from __future__ import annotations

import collections
import functools
import warnings
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.nn.modules.module import Module

from ._bases import _PartialWrapper
from .fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from .observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    ReuseInputObserver,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)

__all__ = [
    "QConfig", "QConfigAny", "QConfigDynamic", "default_activation_only_qconfig", "default_debug_qconfig",
    "default_dynamic_qat_qconfig", "default_dynamic_qconfig", "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit", "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig", "default_per_channel_symmetric_qnnpack_qconfig",
    "default_qat_qconfig", "default_qat_qconfig_v2", "default_qconfig", "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig", "default_symmetric_qnnpack_qat_qconfig", "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig", "float16_dynamic_qconfig", "float16_static_qconfig",
    "float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit", "get_default_qat_qconfig",
    "get_default_qconfig", "per_channel_dynamic_qconfig", "qconfig_equals",
]  # fmt: skip


class QConfig(collections.namedtuple("QConfig", ["activation", "weight"])):
    """Makers of the observers of a layer's outputs and of its weight.

    Args:
        activation: A class of observers or of fake quantization, or a function that makes one (`with_args`).
        weight: The same for the weight.

    Raises:
        ValueError: An argument is an observer.

    Example:
        >>> observer = torch.ao.quantization.MinMaxObserver
        >>> qconfig = torch.ao.quantization.QConfig(observer, observer.with_args(dtype=torch.qint8))
        >>> qconfig.weight().dtype
        torch.qint8
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


class QConfigDynamic(collections.namedtuple("QConfigDynamic", ["activation", "weight"])):
    """The older form of `QConfig` for dynamic quantization.

    Args:
        activation: A class of modules. Default: `Identity`.
        weight: A maker of the weight's observer. Default: `Identity`.

    Raises:
        ValueError: `weight` is an observer.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     torch.ao.quantization.QConfigDynamic().weight.__name__
        'Identity'
    """

    __slots__ = ()

    def __new__(cls, activation: Any = nn.Identity, weight: Any = nn.Identity) -> QConfigDynamic:
        warnings.warn(
            "`QConfigDynamic` is going to be deprecated in PyTorch 1.12, please use `QConfig` instead",
            FutureWarning,
            stacklevel=2,
        )
        if isinstance(weight, Module):
            raise ValueError(
                "QConfigDynamic received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None
default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=torch.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=torch.float16),
)
float16_static_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=torch.float16), PlaceholderObserver.with_args(dtype=torch.float16)
)
per_channel_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_per_channel_weight_observer)
float_qparams_weight_only_qconfig = QConfig(default_placeholder_observer, default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(default_placeholder_observer, default_float_qparams_observer_4bit)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(nn.Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, nn.Identity)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(default_reuse_input_observer, NoopObserver)
_SIGNED_HISTOGRAM = HistogramObserver.with_args(dtype=torch.qint8, reduce_range=False, eps=2**-12)
default_symmetric_qnnpack_qconfig = QConfig(_SIGNED_HISTOGRAM, weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _SIGNED_HISTOGRAM, per_channel_weight_observer_range_neg_127_to_127
)
default_embedding_qat_qconfig = QConfig(NoopObserver.with_args(dtype=torch.float32), default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(
    NoopObserver.with_args(dtype=torch.float32), default_embedding_fake_quant_4bit
)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
_SIGNED_FUSED = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8, reduce_range=False,
    eps=2**-12,
)  # fmt: skip
default_symmetric_qnnpack_qat_qconfig = QConfig(_SIGNED_FUSED, fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _SIGNED_FUSED, fused_per_channel_wt_fake_quant_range_neg_127_to_127
)
_default_fp32_placeholder_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=torch.float32), PlaceholderObserver.with_args(dtype=torch.float32)
)
_default_quint8_placeholder_qconfig = QConfig(PlaceholderObserver.with_args(dtype=torch.quint8), None)

# The backends, and what their observers of outputs say of the range: bytes are shorter where sums of products of two
# pairs could overflow.
_REDUCES = {"fbgemm": {"reduce_range": True}, "x86": {"reduce_range": True}, "qnnpack": {"reduce_range": False},
            "onednn": {}}  # fmt: skip


def _options(backend: str, version: int, versions: tuple[int, ...], function: str, text: str) -> dict[str, bool]:
    if backend not in _REDUCES:
        names = ["fbgemm", "x86", "qnnpack", "onednn"]
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {names}")
    if version not in versions:
        raise AssertionError(f"Version number: {version}{text}")
    return _REDUCES[backend]


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The configuration for quantization after training: histograms, and weights with a scale for each channel.

    Args:
        backend: ``"x86"``, ``"fbgemm"``, ``"onednn"``, or ``"qnnpack"``, whose weights have one scale.
        version: Must be 0.

    Raises:
        AssertionError: There is no such backend or version.

    Example:
        >>> torch.ao.quantization.get_default_qconfig("qnnpack").weight().qscheme
        torch.per_tensor_symmetric
    """
    text = " in get_default_qconfig is not supported. Version number must be 0"
    options = {"reduce_range": False, **_options(backend, version, (0,), "get_default_qconfig", text)}
    weight = default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    return QConfig(HistogramObserver.with_args(**options), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """The configuration for quantization aware training: moving averages, and weights with a scale for each channel.

    Args:
        backend: ``"x86"``, ``"fbgemm"``, ``"onednn"``, or ``"qnnpack"``, whose weights have one scale.
        version: 1 for fake quantization in one op, 0 for modules of several.

    Raises:
        AssertionError: There is no such backend or version.

    Example:
        >>> torch.ao.quantization.get_default_qat_qconfig("qnnpack").activation().quant_max
        255
    """
    text = "in get_default_qat_qconfig is not supported. Version number must be 0 or 1"
    options = _options(backend, version, (0, 1), "get_default_qat_qconfig", text)
    one = default_fused_wt_fake_quant if version else default_weight_fake_quant
    each = default_fused_per_channel_wt_fake_quant if version else default_per_channel_weight_fake_quant
    make = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    activation = make.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **options)
    return QConfig(activation, one if backend == "qnnpack" else each)


def _assert_valid_qconfig(qconfig: Any, mod: Module) -> None:
    """Refuse scales for the channels of transposed convolutions."""
    transposed = nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d
    if qconfig is None or not isinstance(mod, transposed) or qconfig.weight is None:
        return
    if isinstance(qconfig.weight(), PerChannelMinMaxObserver):
        raise AssertionError("Per channel weight observer is not supported yet for ConvTranspose{n}d.")


def _place_of(module: Module) -> dict[str, Any] | None:
    device = next((x.device for x in (*module.parameters(), *module.buffers())), None)
    return None if device is None else {"device": device}


def _add_module_to_qconfig_obs_ctr(qconfig: Any, module: Any) -> Any:
    """The configuration with makers that put observers on the module's device."""
    if module is None or qconfig is None or qconfig._fields != ("activation", "weight"):
        return qconfig

    def placed(make: Any) -> Any:
        try:
            make.with_args(factory_kwargs=None)()
            return make.with_callable_args(factory_kwargs=functools.partial(_place_of, module))
        except (AttributeError, TypeError):  # it is no observer, or has no such argument
            return make

    return QConfig(placed(qconfig.activation), placed(qconfig.weight))


def _makers_equal(first: Any, second: Any) -> bool:
    if not (isinstance(first, _PartialWrapper) and isinstance(second, _PartialWrapper)):
        return first == second
    a, b = dict(first.p.keywords), dict(second.p.keywords)
    if "observer" in a and "observer" in b and not _makers_equal(a.pop("observer"), b.pop("observer")):
        return False
    return first.p.func == second.p.func and first.p.args == second.p.args and a == b


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """True if two configurations make the same observers.

    Args:
        q1: The first, or ``None``.
        q2: The second, or ``None``.

    Example:
        >>> ao = torch.ao.quantization
        >>> ao.qconfig_equals(ao.get_default_qconfig(), ao.get_default_qconfig())
        True
    """
    if q1 is None or q2 is None:
        return q1 == q2
    try:
        return _makers_equal(q1.activation, q2.activation) and _makers_equal(q1.weight, q2.weight)
    except AttributeError:
        return q1 == q2


def _activation_is_memoryless(qconfig: Any) -> bool:
    """True if the observer of outputs forgets all but the last."""
    observer = qconfig.activation()
    if isinstance(observer, FakeQuantizeBase) and hasattr(observer, "activation_post_process"):
        observer = observer.activation_post_process
    return getattr(observer, "averaging_constant", None) == 1


def _is_reuse_input_qconfig(qconfig: Any) -> bool:
    return (
        qconfig is not None
        and isinstance(qconfig.activation(), ReuseInputObserver)
        and isinstance(qconfig.weight(), NoopObserver)
    )
