"""Optimizers and learning-rate schedulers, loaded on first access."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from .._settings.importable_module import ImportableModule

_MODULE_OF = {
    "Adadelta": "adadelta", "Adafactor": "_adafactor", "Adagrad": "adagrad", "Adam": "adam", "AdamW": "adamw",
    "Adamax": "adamax", "ASGD": "asgd", "LBFGS": "lbfgs", "Muon": "_muon", "NAdam": "nadam", "Optimizer": "optimizer",
    "RAdam": "radam", "RMSprop": "rmsprop", "Rprop": "rprop", "SGD": "sgd", "SparseAdam": "sparse_adam",
    "swap_in_optimizer_params_and_state": "_swap_params_and_state",
}  # fmt: skip
_MODULES = {
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "lbfgs", "lr_scheduler", "nadam", "optimizer", "radam",
    "rmsprop", "rprop", "sgd", "sparse_adam", "swa_utils",
}  # fmt: skip

__all__ = [*_MODULE_OF, "lr_scheduler", "swa_utils"]


if TYPE_CHECKING:
    from . import lr_scheduler as lr_scheduler
    from . import swa_utils as swa_utils
    from ._adafactor import Adafactor as Adafactor
    from ._muon import Muon as Muon
    from ._swap_params_and_state import swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state
    from .adadelta import Adadelta as Adadelta
    from .adagrad import Adagrad as Adagrad
    from .adam import Adam as Adam
    from .adamax import Adamax as Adamax
    from .adamw import AdamW as AdamW
    from .asgd import ASGD as ASGD
    from .lbfgs import LBFGS as LBFGS
    from .nadam import NAdam as NAdam
    from .optimizer import Optimizer as Optimizer
    from .radam import RAdam as RAdam
    from .rmsprop import RMSprop as RMSprop
    from .rprop import Rprop as Rprop
    from .sgd import SGD as SGD
    from .sparse_adam import SparseAdam as SparseAdam
else:

    def __getattr__(name):
        if name in _MODULE_OF:
            found = globals()[name] = getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
            return found
        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class _LazyModule(ImportableModule):
    """A module whose `vars` list every public name. Access to `vars` loads the missing ones."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        for name in __all__:
            getattr(self, name)
        return globals()


sys.modules[__name__].__class__ = _LazyModule


# What this module imports for itself, and the modules of one class each.
_INTERNAL = {"Any", "TYPE_CHECKING", "annotations", "importlib", "sys", "ImportableModule", *_MODULES} - {*__all__}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - _INTERNAL)
