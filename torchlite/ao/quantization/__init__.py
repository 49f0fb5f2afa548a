"""Quantization of models: observers, fake quantization, configurations, and layers in place of float ones."""

from __future__ import annotations

from typing import Any

from torchlite._settings.module_dir import make_module_dir

from . import backend_config as backend_config
from . import fx as fx
from . import quantize_fx as quantize_fx
from .fake_quantize import *
from .fake_quantize import __all__ as _fake_quantize
from .fuse_modules import fuse_modules, fuse_modules_qat
from .fuser_method_mappings import *
from .fuser_method_mappings import __all__ as _fusers
from .observer import *
from .observer import ObserverBase
from .observer import __all__ as _observers
from .qconfig import *
from .qconfig import __all__ as _qconfigs
from .qconfig_mapping import *
from .qconfig_mapping import __all__ as _mappings
from .qconfig_mapping import get_default_qat_qconfig_dict, get_default_qconfig_dict
from .quant_type import QuantType
from .quantization_mappings import *
from .quantization_mappings import __all__ as _classes
from .quantize import *
from .quantize import __all__ as _quantize
from .stubs import DeQuantStub, QuantStub, QuantWrapper
from .utils import MatchAllNode, get_combined_dict

ObserverOrFakeQuantize = ObserverBase | FakeQuantizeBase
__all__ = [
    "DeQuantStub", "MatchAllNode", "ObserverOrFakeQuantize", "QuantStub", "QuantType", "QuantWrapper",
    "default_eval_fn", "fuse_modules", "fuse_modules_qat", "get_combined_dict", "get_default_qat_qconfig_dict",
    "get_default_qconfig_dict",
]  # fmt: skip
__all__ += [*_fake_quantize, *_fusers, *_observers, *_qconfigs, *_mappings, *_classes, *_quantize]


def default_eval_fn(model: Any, calib_data: Any) -> None:
    """Runs a model over data.

    Args:
        model: The model.
        calib_data: Pairs of inputs and targets.

    Example:
        >>> torch.ao.quantization.default_eval_fn(torch.nn.ReLU(), [(torch.ones(1), None)])
    """
    for data, _ in calib_data:
        model(data)


__dir__ = make_module_dir(globals())
