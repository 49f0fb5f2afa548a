"""Entry points: what `importlib.metadata` finds, without it."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from torchlite._settings import entry_points
from torchlite._settings.entry_points import EntryPoint

GROUP = "torchlite.tests"
TEXT = """
[console_scripts]
first = other:thing

[torchlite.tests]
# a comment
first = math:pi
second=json.decoder : JSONDecoder.decode [extra]
third = math

[torchlite.tests.more]
fourth = math:e
"""


def install(folder: Path, name: str, text: str | None = TEXT, suffix: str = ".dist-info") -> Path:
    """The metadata of an installed package."""
    about = folder / f"{name}{suffix}"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.partition('-')[0]}\nVersion: 1.0\n")
    if text is not None:
        (about / "entry_points.txt").write_text(text)
    return about


@pytest.fixture
def path(monkeypatch, tmp_path) -> list[Path]:
    """Two folders, the only ones on the path."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setattr(sys, "path", [*map(str, folders), str(tmp_path / "absent")])
    monkeypatch.setattr(sys, "meta_path", [f for f in sys.meta_path if not entry_points._is_provided_otherwise(f)])
    return folders


def found() -> dict[str, str]:
    """The values by name, which are those of `importlib.metadata`."""
    values = {name: point.value for name, point in entry_points.entry_points(GROUP).items()}
    assert values == {point.name: point.value for point in importlib.metadata.entry_points(group=GROUP)}
    return values


def test_the_group_of_a_package(path):
    assert found() == {}
    install(path[1], "package-1.0")
    assert found() == {"first": "math:pi", "second": "json.decoder : JSONDecoder.decode [extra]", "third": "math"}


def test_packages_without_the_group(path):
    install(path[0], "none-1.0", None)
    install(path[0], "others-1.0", "[console_scripts]\nfirst = a:b\n")
    (path[0] / "file-1.0.dist-info").write_text("no folder")
    (path[0] / "package").mkdir()
    assert found() == {}


@pytest.mark.parametrize("name", ["my_package-2.0", "My.Package-2.0", "my_package-1.0"])
def test_a_package_counts_once(path, name):
    """The one that Python imports: of the first folder."""
    install(path[0], "my_package-1.0", f"[{GROUP}]\nfirst = math:pi\n")
    install(path[1], name, f"[{GROUP}]\nfirst = math:e\nsecond = math:e\n")
    assert found() == {"first": "math:pi"}


def test_older_forms_of_metadata(path, monkeypatch):
    install(path[0], "older-1.0", suffix=".egg-info")
    egg = path[1] / "oldest-1.0-py3.egg"
    install(egg, "EGG-INFO", f"[{GROUP}]\nfifth = math:tau\n", suffix="")
    monkeypatch.setattr(sys, "path", [*sys.path, str(egg)])
    assert set(found()) == {"first", "second", "third", "fifth"}


def test_packages_in_archives(path, monkeypatch, tmp_path):
    install(path[0], "package-1.0")
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("zipped-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: zipped\nVersion: 1.0\n")
        archive.writestr("zipped-1.0.dist-info/entry_points.txt", f"[{GROUP}]\nsixth = math:inf\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "packages.zip")])
    assert found()["sixth"] == "math:inf" and found()["first"] == "math:pi"


def test_packages_of_other_finders(path, monkeypatch, tmp_path):
    about = install(tmp_path / "elsewhere", "found-1.0", f"[{GROUP}]\nseventh = math:nan\n")

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return None

        @staticmethod
        def find_distributions(context=None):
            return [importlib.metadata.PathDistribution(about)]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert found() == {"seventh": "math:nan"}


def test_load():
    import json
    import math

    assert EntryPoint("a", "math:pi").load() is math.pi and EntryPoint("a", "math").load() is math
    point = EntryPoint("a", "json.decoder : JSONDecoder.decode [extra]")
    assert point.load() is json.decoder.JSONDecoder.decode and point.module == "json.decoder"
    with pytest.raises(ImportError):
        EntryPoint("a", "torchlite.no_module:x").load()
    with pytest.raises(AttributeError):
        EntryPoint("a", "math:no_name").load()


def test_backends_are_those_of_the_standard_library():
    code = """
import importlib.metadata, sys
from torchlite._types.devices import installed_backends
ours = {name: point.value for name, point in installed_backends().items()}
theirs = {point.name: point.value for point in importlib.metadata.entry_points(group="torchlite.backends")}
assert ours == theirs and {"cpu", "meta"} <= set(ours), (ours, theirs)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
