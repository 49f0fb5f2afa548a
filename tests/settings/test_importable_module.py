"""Modules with properties are pickled by name, as Ray does with the modules that a training loop uses."""

import copyreg
import importlib
import pickle
import types

import pytest

from torchlite._settings.importable_module import ImportableModule

NAMES = ["optim", "backends", "backends.cudnn", "backends.mkldnn", "backends.quantized", "backends.xnnpack",
         "utils.deterministic", "_functorch.vmap"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_module_is_pickled_by_name(name):
    module = importlib.import_module(f"torchlite.{name}")
    assert type(module) is not types.ModuleType and isinstance(module, ImportableModule)
    assert pickle.loads(pickle.dumps(module)) is module
    assert types.ModuleType not in copyreg.dispatch_table  # plain modules stay as they are
