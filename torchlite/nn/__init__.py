"""Neural networks: layers, losses, initialisation, and helpers for parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite.nn.parameter import Buffer as Buffer
from torchlite.nn.parameter import Parameter as Parameter
from torchlite.nn.parameter import UninitializedBuffer as UninitializedBuffer
from torchlite.nn.parameter import UninitializedParameter as UninitializedParameter

from . import functional as functional
from . import init as init
from . import modules as modules
from . import parameter as parameter
from . import utils as utils
from .modules import Module as Module
from .modules import __all__ as _layers


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Returns the keyword arguments `device`, `dtype` and `memory_format` for tensor factories.

    Args:
        kwargs: The keyword arguments of a layer's constructor, or ``None``. A dict under `factory_kwargs` is merged.

    Raises:
        TypeError: Another name is given, or one name is given both ways.

    Example:
        >>> torch.nn.factory_kwargs({"dtype": torch.float64, "factory_kwargs": {"device": "cpu"}})
        {'device': 'cpu', 'dtype': torch.float64}
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in kwargs:
        if name != "factory_kwargs" and name not in simple:
            raise TypeError(f"unexpected kwargs {set(kwargs) - simple - {'factory_kwargs'}}")
    for name in simple & set(kwargs):
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found


__all__ = [
    *_layers,
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]


_LAZY_MODULES = {
    "DataParallel": "parallel",
    "attention": "attention",
    "common_types": "common_types",
    "grad": "grad",
    "intrinsic": "intrinsic",
    "parallel": "parallel",
    "qat": "qat",
    "quantized": "quantized",
}
__all__ += ["DataParallel"]
_LAYERS = frozenset(_layers)


if TYPE_CHECKING:
    from . import attention as attention
    from . import common_types as common_types
    from . import grad as grad
    from . import parallel as parallel
    from .modules import *
    from .parallel import DataParallel as DataParallel
else:

    def __getattr__(name):
        # Loaded on first access: each layer, and what is rarely used.
        if name in _LAYERS:
            found = globals()[name] = getattr(modules, name)
            return found
        if name not in _LAZY_MODULES:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        import importlib

        module = importlib.import_module(f".{_LAZY_MODULES[name]}", __name__)
        found = globals()[name] = module if name == _LAZY_MODULES[name] else getattr(module, name)
        return found


# What this module imports for itself.
_INTERNAL = {"Any", "TYPE_CHECKING", "annotations"}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - _INTERNAL)
