"""Configurations by the type and the name of modules."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.nn import functional as F

from .fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from .observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from .qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    default_symmetric_qnnpack_qat_qconfig,
    default_symmetric_qnnpack_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]
_FIXED_QPARAMS_OP_TO_OBSERVER: dict[Any, Any] = {
    **dict.fromkeys(
        (nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, torch.sigmoid, "sigmoid",
         "sigmoid_", nn.Softmax),
        default_fixed_qparams_range_0to1_observer,
    ),
    **dict.fromkeys((nn.Tanh, torch.tanh, "tanh", "tanh_"), default_fixed_qparams_range_neg1to1_observer),
}  # fmt: skip
_GLOBAL_DICT_KEY, _OBJECT_TYPE_DICT_KEY, _MODULE_NAME_REGEX_DICT_KEY = "", "object_type", "module_name_regex"
_MODULE_NAME_DICT_KEY, _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY = "module_name", "module_name_object_type_order"
# The parts of a mapping, and their keys in a dictionary.
_PARTS = {
    "object_type_qconfigs": _OBJECT_TYPE_DICT_KEY,
    "module_name_regex_qconfigs": _MODULE_NAME_REGEX_DICT_KEY,
    "module_name_qconfigs": _MODULE_NAME_DICT_KEY,
    "module_name_object_type_order_qconfigs": _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY,
}


class QConfigMapping:
    """Configurations of modules. Of several that fit, the one that was set last in this order counts: for all, for a
    type, for names that match, for a name, for a type within a named module.

    Example:
        >>> ao = torch.ao.quantization
        >>> mapping = ao.QConfigMapping().set_global(ao.default_qconfig).set_module_name("head", None)
        >>> dict(mapping.module_name_qconfigs)
        {'head': None}
    """

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict = OrderedDict()
        self.module_name_qconfigs: OrderedDict = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict = OrderedDict()

    def set_global(self, global_qconfig: Any) -> QConfigMapping:
        """Sets the configuration of all modules.

        Args:
            global_qconfig: The configuration, or ``None``.
        """
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Any, qconfig: Any) -> QConfigMapping:
        """Sets the configuration of a type.

        Args:
            object_type: A class of modules, a function, or the name of a method.
            qconfig: The configuration, or ``None``.
        """
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: Any) -> QConfigMapping:
        """Sets the configuration of names that match; the first expression that was set counts.

        Args:
            module_name_regex: A regular expression.
            qconfig: The configuration, or ``None``.
        """
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> QConfigMapping:
        """Sets the configuration of a module.

        Args:
            module_name: Its name.
            qconfig: The configuration, or ``None``.
        """
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Any, index: int, qconfig: Any
    ) -> QConfigMapping:
        """Sets the configuration of one of several functions within a module.

        Args:
            module_name: The module's name.
            object_type: The class or function.
            index: Its number among those of the type.
            qconfig: The configuration, or ``None``.
        """
        self.module_name_object_type_order_qconfigs[(module_name, object_type, index)] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} (", " global_qconfig", f"  {self.global_qconfig}"]
        for part in _PARTS:
            entries = getattr(self, part)
            lines += [f" {part}", *([f"  {key}: {value}" for key, value in entries.items()] or [f"  {entries}"])]
        return "\n".join([*lines, ")"])

    def to_dict(self) -> dict[str, Any]:
        """The configurations as a dictionary of lists."""
        found: dict[str, Any] = {"": self.global_qconfig}
        for part, key in _PARTS.items():
            entries = getattr(self, part).items()
            found[key] = [(*name, value) if isinstance(name, tuple) else (name, value) for name, value in entries]
        return found

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """The mapping of a dictionary that `to_dict` returned.

        Args:
            qconfig_dict: The dictionary; keys may be absent.
        """
        found = cls().set_global(qconfig_dict.get(""))
        for part, key in _PARTS.items():
            for *name, value in qconfig_dict.get(key, []):
                getattr(found, part)[name[0] if len(name) == 1 else tuple(name)] = value
        return found


def _get_default_qconfig_mapping(is_qat: bool, backend: str, version: int) -> QConfigMapping:
    qconfig = get_default_qat_qconfig(backend, version) if is_qat else get_default_qconfig(backend, version)
    weight = default_weight_fake_quant if is_qat else default_weight_observer
    # These backends have no scales for the channels of transposed convolutions.
    transposed = QConfig(qconfig.activation, weight) if backend in ("fbgemm", "x86") else qconfig
    mapping = QConfigMapping().set_global(qconfig).set_object_type("reshape", default_reuse_input_qconfig)
    for kind in (
        nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, F.conv_transpose1d, F.conv_transpose2d,
        F.conv_transpose3d,
    ):  # fmt: skip
        mapping.set_object_type(kind, transposed)
    mapping.set_object_type(F.layer_norm, QConfig(qconfig.activation, default_placeholder_observer))
    mapping.set_object_type(nn.LayerNorm, QConfig(qconfig.activation, default_placeholder_observer))
    mapping.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    made: dict[Any, QConfig] = {}
    for kind, observer in _FIXED_QPARAMS_OP_TO_OBSERVER.items():
        if observer not in made:
            made[observer] = QConfig(
                FixedQParamsFakeQuantize.with_args(observer=observer) if is_qat else observer, weight
            )
        mapping.set_object_type(kind, made[observer])
    return mapping


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The configurations for quantization after training.

    Args:
        backend: ``"x86"``, ``"fbgemm"``, ``"onednn"`` or ``"qnnpack"``.
        version: Must be 0.

    Example:
        >>> torch.ao.quantization.get_default_qconfig_mapping().global_qconfig.weight().dtype
        torch.qint8
    """
    return _get_default_qconfig_mapping(False, backend, version)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The configurations for quantization aware training.

    Args:
        backend: ``"x86"``, ``"fbgemm"``, ``"onednn"`` or ``"qnnpack"``.
        version: 1 for fake quantization in one op, 0 for modules of several.

    Example:
        >>> torch.ao.quantization.get_default_qat_qconfig_mapping().global_qconfig.weight().quant_min
        -128
    """
    return _get_default_qconfig_mapping(True, backend, version)


def _with_symmetric_default(mapping: QConfigMapping, qconfig: QConfig) -> QConfigMapping:
    mapping.set_global(qconfig)
    for kind in mapping.object_type_qconfigs:
        if kind not in _FIXED_QPARAMS_OP_TO_OBSERVER:
            mapping.set_object_type(kind, qconfig)
    return mapping


def _get_symmetric_qnnpack_qconfig_mapping() -> QConfigMapping:
    return _with_symmetric_default(get_default_qconfig_mapping("qnnpack"), default_symmetric_qnnpack_qconfig)


def _get_symmetric_qnnpack_qat_qconfig_mapping() -> QConfigMapping:
    return _with_symmetric_default(get_default_qat_qconfig_mapping("qnnpack"), default_symmetric_qnnpack_qat_qconfig)


def _warn_of_dict(name: str, instead: str) -> None:
    warnings.warn(
        f"`torch.ao.quantization.{name}` is deprecated and will be removed in a future version. Please use "
        f"`torch.ao.quantization.{instead}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """`get_default_qconfig_mapping` as a dictionary, with a warning.

    Args:
        backend: The backend. Default: ``"x86"``.
        version: Must be 0.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     "object_type" in torch.ao.quantization.get_default_qconfig_dict()
        True
    """
    _warn_of_dict("get_default_qconfig_dict", "get_default_qconfig_mapping")
    return get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, Any]:
    """`get_default_qat_qconfig_mapping` as a dictionary, with a warning.

    Args:
        backend: The backend. Default: ``"x86"``.
        version: 0 or 1.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     "object_type" in torch.ao.quantization.get_default_qat_qconfig_dict()
        True
    """
    _warn_of_dict("get_default_qat_qconfig_dict", "get_default_qat_qconfig_mapping")
    return get_default_qat_qconfig_mapping(backend, version).to_dict()
