"""The examples in the docstrings of nn and optim."""

import doctest
import importlib
import pkgutil

import pytest

import torchlite
import torchlite.nn.utils
import torchlite.optim

MODULES = [
    f"{package}.{info.name}"
    for package in ("torchlite.nn", "torchlite.nn.modules", "torchlite.nn.utils", "torchlite.optim")
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    names = {"torchlite": torchlite, "torch": torchlite, "F": torchlite.nn.functional}
    result = doctest.testmod(module, extraglobs=names, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
