"""`dir()` of a module shows what it defines, not what it imports."""

import types

import pytest

from torchlite._settings.module_dir import make_module_dir

SOURCE = """
import functools
from fractions import Fraction
from typing import TypeVar

__all__ = ["LIMIT", "parse"]
Item = TypeVar("Item")
LIMIT, TABLE = 3, {}

def parse(text): return Fraction(text)
def helper(): return functools.partial(parse, "1")
class Reader: pass
class _Private: pass
"""


@pytest.fixture
def module():
    made = types.ModuleType("package")
    exec(SOURCE, made.__dict__)
    made.__dict__["part"] = types.ModuleType("package.part")
    return made


def shown(module):
    return [name for name in dir(module) if not name.startswith("__")]


def test_own_names_are_shown(module):
    module.__dict__["__dir__"] = make_module_dir(module.__dict__)
    assert shown(module) == ["LIMIT", "Reader", "_Private", "helper", "parse", "part"]
    assert {"__all__", "__name__"} <= set(dir(module))


def test_more_and_hidden_names(module):
    module.__dict__["__dir__"] = make_module_dir(module.__dict__, "TABLE Fraction", hidden="helper _Private")
    assert shown(module) == ["Fraction", "LIMIT", "Reader", "TABLE", "parse", "part"]
