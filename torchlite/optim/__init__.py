"""Optimizers and learning-rate schedules. Each is loaded when it is first asked for."""

import importlib

_WHERE = {
    "Adadelta": "adadelta", "Adafactor": "_adafactor", "Adagrad": "adagrad", "Adam": "adam", "AdamW": "adamw",
    "Adamax": "adamax", "ASGD": "asgd", "LBFGS": "lbfgs", "Muon": "_muon", "NAdam": "nadam", "Optimizer": "optimizer",
    "RAdam": "radam", "RMSprop": "rmsprop", "Rprop": "rprop", "SGD": "sgd", "SparseAdam": "sparse_adam",
}  # fmt: skip
_MODULES = {
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "lbfgs", "lr_scheduler", "nadam", "optimizer", "radam",
    "rmsprop", "rprop", "sgd", "sparse_adam", "swa_utils",
}  # fmt: skip

__all__ = [*_WHERE, "lr_scheduler", "swa_utils"]


def __getattr__(name):
    if name in _WHERE:
        found = globals()[name] = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
        return found
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'torchlite.optim' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *__all__, *_MODULES})
