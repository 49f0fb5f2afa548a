"""Old import paths of documented modules warn and give the module at the new path."""

import importlib
import sys

import pytest

from torchlite._settings.moved_modules import MOVED


@pytest.mark.parametrize("old, new", [*MOVED.items(), ("torchlite_array.reduce", "torchlite_backends.array.reduce")])
def test_an_old_path_warns_and_gives_the_module(old, new, monkeypatch):
    try:
        module = importlib.import_module(new)
    except ImportError as error:
        pytest.skip(f"{new} needs an extra: {error}")
    with pytest.warns(DeprecationWarning, match=rf"{old} has moved to {new}"):
        found = importlib.import_module(old)
    names = [name for name, value in vars(module).items() if not name.startswith("__")]
    assert found.__doc__ == module.__doc__ and all(getattr(found, name) is getattr(module, name) for name in names)
    for name in [name for name in sys.modules if name == old or name.startswith(old + ".")]:
        monkeypatch.delitem(sys.modules, name)


def test_a_path_that_never_was_is_no_module():
    with pytest.raises(ModuleNotFoundError, match="torchlite_none"):
        importlib.import_module("torchlite_none")
    with pytest.raises(ModuleNotFoundError, match="torchlite_backends.numpy.none"), pytest.warns(match="has moved"):
        importlib.import_module("torchlite_numpy.none")
