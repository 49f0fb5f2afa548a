"""The lists of modules that a capture knows name modules that exist."""

import importlib.util
import sys

import pytest

from torchlite._dynamo import known_modules

OF_OTHERS = {"torchlite", "torch", "numpy", "ml_dtypes", "array_api_compat", "typing_extensions"}


@pytest.mark.parametrize("name", [*known_modules.COMPUTING_MODULES, *known_modules.REFUSED_MODULES])
def test_modules_of_torchlite(name):
    assert name == known_modules.GENERATED_MODULE or importlib.util.find_spec(name) is not None


@pytest.mark.parametrize("name", known_modules.REFUSED_MODULES)
def test_refused_modules_lie_in_computing_ones(name):
    assert name.startswith(known_modules.COMPUTING_MODULES)


@pytest.mark.parametrize("name", ["JUDGED_AT_CALL", "COMPUTING_LIBRARIES", "ATTRIBUTE_MODULES"])
def test_modules_of_python(name):
    assert set(getattr(known_modules, name)) - OF_OTHERS <= set(sys.stdlib_module_names)
