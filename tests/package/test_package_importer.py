"""A package that PyTorch wrote: data, TorchScript and resources load; the package's code runs only if it is trusted."""

import importlib.resources
import io
import json
import pickle
import random
import sys
import traceback
import zipfile
from pathlib import Path

import pytest

import torchlite as torch
from tests.hostile.damage import changed

FOLDER = Path(__file__).parent
PATH = FOLDER / "written_by_pytorch.pt"
ANSWERS = json.loads((FOLDER / "answers.json").read_text())
TOP = "written_by_pytorch/"
X = torch.linspace(-1, 1, 6).reshape(2, 3)


@pytest.fixture
def data():
    """The importer that runs nothing."""
    return torch.package.PackageImporter(PATH)


@pytest.fixture
def trusted():
    return torch.package.PackageImporter(PATH, weights_only=False)


def package_with(**changed: bytes) -> io.BytesIO:
    """The package with other or more records. A name's double underscores are slashes."""
    records = {name.replace("__", "/"): content for name, content in changed.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(PATH) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            name = info.filename.removeprefix(TOP)
            new.writestr(info.filename, records.pop(name, None) or old.read(info))
        for name, content in records.items():
            new.writestr(TOP + name, content)
    out.seek(0)
    return out


def pickle_of(module: str, name: str) -> bytes:
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + b")R."


def check_weights(found):
    assert (found["n"], found["half"].dtype) == (3, torch.float16)
    assert found["a"].tolist() == [0, 1, 2, 3, 4, 5] and found["b"].tolist() == [2, 3]
    found["b"][0] = 9
    assert found["a"][2] == 9


def check_script(found):
    first, weight, again = found
    assert first is again and isinstance(first, torch.jit.RecursiveScriptModule)
    torch.testing.assert_close(first(X), torch.tensor(ANSWERS["script"]))
    with torch.no_grad():
        weight.zero_()
    assert not first.weight.any()


@pytest.mark.parametrize("trust", [False, True])
def test_data_and_torchscript_load_without_the_code(trust):
    importer = torch.package.PackageImporter(PATH, weights_only=not trust)
    check_weights(importer.load_pickle("data", "weights"))
    check_weights(importer.load_pickle("data", "weights"))  # of a storage of its own
    check_script(importer.load_pickle("data", "script"))
    assert importer.load_text("data", "notes") == "Größe\n"
    assert importer.load_binary("data", "bytes") == b"\x00\xff"
    assert importer.python_version().startswith("3.11")


def test_code_of_the_package_is_refused(data):
    before = set(sys.modules)
    advice = r"(?s)weights_only=False.*trusted source"
    with pytest.raises(pickle.UnpicklingError, match=r"models\.net\.Net, which is code of the package.*data/net"):
        data.load_pickle("data", "net")
    with pytest.raises(pickle.UnpicklingError, match=advice):
        data.load_pickle("data", "net")
    with pytest.raises(pickle.UnpicklingError, match=advice):
        data.load_pickle("data", "graph")
    with pytest.raises(ImportError, match=advice) as error:
        data.import_module("models.net")
    assert error.value.name == "models.net"
    assert not {name for name in set(sys.modules) - before if "models" in name or "torch_package" in name}
    assert data.import_module("math").sqrt(4) == 2  # the user named it, and Python has it


def test_globals_that_the_user_allows_load():
    class Point:
        pass

    content = pickle_of("places", "Point")
    with pytest.raises(pickle.UnpicklingError, match=r"(?s)add_safe_globals.*data/point"):
        torch.package.PackageImporter(package_with(data__point=content)).load_pickle("data", "point")
    with torch.serialization.safe_globals([(Point, "places.Point")]):
        found = torch.package.PackageImporter(package_with(data__point=content)).load_pickle("data", "point")
    assert type(found) is Point


def test_an_allowed_global_is_not_that_of_the_package():
    """The package's module has the name of a class that the user allows, but may be any code."""

    class Net:
        pass

    with (
        torch.serialization.safe_globals([(Net, "models.net.Net")]),
        pytest.raises(pickle.UnpicklingError, match="code of the package"),
    ):
        torch.package.PackageImporter(package_with(data__x=pickle_of("models.net", "Net"))).load_pickle("data", "x")


@pytest.mark.parametrize(
    "name", ["posix.system", "builtins.eval", "torch.load", "torch.fx.graph_module._exec_with_source"]
)
def test_other_globals_are_refused(name):
    module, _, function = name.rpartition(".")
    importer = torch.package.PackageImporter(package_with(data__x=pickle_of(module, function)))
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        importer.load_pickle("data", "x")


def test_a_function_of_the_format_is_not_called():
    """`reduce_package` calls any function with the importer; only that of TorchScript has a meaning here."""
    calls = b"\x80\x02(X\x0e\x00\x00\x00reduce_packageK\x01ctorch\nadd\n)tQ."
    script = b"\x80\x02(X\x0e\x00\x00\x00reduce_packageK\x01ctorch.jit._script\nunpackage_script_module\n"
    for content in (
        calls.replace(b"ctorch\nadd", b"ccollections\nOrderedDict"),
        calls,
        script + b"K\x00\x85tQ.",
        script + b"X\x02\x00\x00\x00..\x85tQ.",
        script + b")tQ.",
        b"\x80\x02)Q.",
        b"\x80\x02Q.",
    ):
        importer = torch.package.PackageImporter(package_with(data__x=content))
        with pytest.raises((pickle.UnpicklingError, RuntimeError), match="data/x|ts_code"):
            importer.load_pickle("data", "x")


def test_modules_of_a_trusted_package(trusted):
    net = trusted.load_pickle("data", "net")
    torch.testing.assert_close(net(X), torch.tensor(ANSWERS["net"]))
    module = trusted.import_module("models.net")
    assert module is trusted.import_module(module.__name__) and type(net) is module.Net
    assert module.__name__ == f"{trusted.id()}.models.net" and module.__name__ not in sys.modules
    assert trusted.import_module("models").LOADED == [module.__name__]  # run once
    assert trusted.import_module("models").net is module
    assert module.torch is torch and module.F is torch.nn.functional
    assert torch.package.is_from_package(net) and torch.package.is_from_package(module)
    assert not torch.package.is_from_package(torch) and not torch.package.is_from_package(X)
    other = torch.package.PackageImporter(PATH, weights_only=False)
    assert other.id() != trusted.id() and other.import_module("models.net") is not module


def test_a_graph_of_a_trusted_package(trusted):
    graph = trusted.load_pickle("data", "graph")
    assert isinstance(graph, torch.fx.GraphModule)
    torch.testing.assert_close(graph(X), torch.tensor(ANSWERS["graph"]))


def test_tracebacks_show_the_source_of_the_package(trusted):
    try:
        trusted.import_module("models.net").fails()
    except ValueError as error:
        text = "".join(traceback.format_exception(error))
    assert 'raise ValueError("from the package")' in text


def test_the_modules_of_a_package_find_their_importer_and_resources():
    source = b"import torch_package_importer\nfrom importlib.resources import files\n"
    importer = torch.package.PackageImporter(
        package_with(models__more=b"", **{"models__asks.py": source, "models__extra__word": b"hello"}),
        weights_only=False,
    )
    importer.extern_modules += ["importlib.resources", "importlib"]
    asks = importer.import_module("models.asks")
    assert asks.torch_package_importer is importer
    reader = importer.import_module("models").__loader__.get_resource_reader("models")
    assert reader.is_resource("more") and not reader.is_resource("none")
    assert {"more", "extra", "net.py"} <= set(reader.contents())
    assert reader.open_resource("more").read() == b""
    assert importer.load_text("models.extra", "word") == "hello"
    assert importer.load_text(importer.import_module("models"), "more") == ""
    assert importlib.resources.files(importer.import_module("models.extra")).joinpath("word").read_text() == "hello"


def test_imports_that_fail(trusted):
    with pytest.raises(ModuleNotFoundError, match=r'No module named "pickle" in self-contained archive') as error:
        trusted.import_module("pickle")
    assert error.value.name == "pickle"
    with pytest.raises(ModuleNotFoundError, match=r"models\.nothing"):
        trusted.import_module("models.nothing")
    importer = torch.package.PackageImporter(
        package_with(
            **{"models__bad.py": b"x = 1\n1 / 0\n", "models__star.py": b"from . import *\nfrom . import none\n"}
        ),
        weights_only=False,
    )
    for _ in range(2):  # nothing is left of the first try
        with pytest.raises(ZeroDivisionError):
            importer.import_module("models.bad")
    with pytest.raises(ImportError, match="cannot import name 'none'"):
        importer.import_module("models.star")


def test_resources_that_are_not_there(data):
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        data.load_text("nothing", "x")
    with pytest.raises(RuntimeError, match="data/none"):
        data.load_text("data", "none")
    with pytest.raises(ValueError, match="must be only a file name"):
        data.load_text("data", "../models/net.py")
    with pytest.raises(TypeError, match="'models.net' is not a package"):
        data.load_text("models.net", "x")


def test_external_modules_may_be_refused():
    assert "math" in torch.package.PackageImporter(PATH, lambda name: True).extern_modules
    with pytest.raises(ImportError, match="needs the external module 'math' but that module has been disallowed"):
        torch.package.PackageImporter(PATH, lambda name: name != "math")


def test_files():
    with open(PATH, "rb") as file:
        check_weights(torch.package.PackageImporter(file).load_pickle("data", "weights"))
    with pytest.raises(FileNotFoundError):
        torch.package.PackageImporter("no/such/package.pt")
    with pytest.raises(RuntimeError, match="central directory"):
        torch.package.PackageImporter(io.BytesIO(b"junk" * 100))
    file = io.BytesIO()
    torch.save({}, file)
    with pytest.raises(RuntimeError, match="extern_modules"):
        torch.package.PackageImporter(file)


def test_the_environment_may_trust_packages(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        assert torch.package.PackageImporter(PATH).load_pickle("data", "net") is not None
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "")
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError):
        torch.package.PackageImporter(PATH, weights_only=False).load_pickle("data", "net")


def test_map_location(data):
    assert data.load_pickle("data", "weights", map_location="meta")["a"].device.type == "meta"
    assert data.load_pickle("data", "script", map_location="meta")[0].weight.device.type == "meta"
    seen = []
    data.load_pickle("data", "weights", map_location=lambda storage, place: seen.append(place))
    assert set(seen) == {"cpu"}


def test_many_programs_of_one_large_source_are_refused():
    """Each compiles what it needs of the source."""
    script = (
        b"(X\x0e\x00\x00\x00reduce_packageK%cctorch.jit._script\nunpackage_script_module\nX\x03\x00\x00\x00%03d\x85tQ"
    )
    with zipfile.ZipFile(PATH) as old:
        parts = {name: old.read(f"{TOP}.data/ts_code/0/{name}") for name in ("data.pkl", "constants.pkl")}
    records = {f".data__ts_code__{n:03d}__{name}": parts[name] for n in range(200) for name in parts}
    records[".data__ts_code__code____torch____large.py".replace("____", "__")] = b"# text\n" * 30_000
    listed = b"\x80\x02]" + b"".join(script % (n, n) + b"a" for n in range(200)) + b"."
    with pytest.raises(pickle.UnpicklingError, match="more work or memory"):
        torch.package.PackageImporter(package_with(data__x=listed, **records)).load_pickle("data", "x")


def test_file_structure(data):
    shown = str(data.file_structure(include="**/*.py"))
    assert shown == f"─── {PATH}\n" + ANSWERS["structure"]
    assert data.file_structure().has_file("models/net.py")
    assert not data.file_structure(exclude="models/*").has_file("models/net.py")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("torch.**", ["torch", "torch.nn", "torch.nn.functional"]),
        ("torch.*", ["torch.nn", "torch.fx"]),
        ("torch*.**", ["torch", "torchvision.ops", "torch.nn"]),
        ("**.nn", ["nn", "torch.nn", "a.b.nn"]),
    ],
)
def test_glob_group(pattern, names):
    group = torch.package.GlobGroup(pattern)
    every = {"torch", "torch.nn", "torch.nn.functional", "torch.fx", "torchvision.ops", "nn", "a.b.nn", "other"}
    assert {name for name in every if group.matches(name)} >= set(names)
    assert not group.matches("other")
    assert not torch.package.GlobGroup(pattern, exclude=names).matches(names[0])


def test_glob_group_refuses_double_stars_within_a_segment():
    with pytest.raises(ValueError, match=r"\*\* can only appear as an entire path segment"):
        torch.package.GlobGroup("a**.b")


def rewritten(records: dict[str, bytes]) -> io.BytesIO:
    """An archive of records, whose checksums are right."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        for name, content in records.items():
            new.writestr(name, content)
    out.seek(0)
    return out


@pytest.mark.parametrize("seed", range(8))
def test_damaged_packages_raise_one_error_and_run_nothing(seed):
    dice = random.Random(seed)
    with zipfile.ZipFile(PATH) as file:
        records = {name: file.read(name) for name in file.namelist()}
    before = set(sys.modules)
    for _ in range(40):
        name = dice.choice(
            [name for name in records if name.endswith((".pkl", "/weights", "/script", "/net", "modules"))]
        )
        content = changed(dice, records[name], dice.randrange(1, 4))
        try:
            importer = torch.package.PackageImporter(rewritten(records | {name: content}))
            for pickled in ("weights", "script", "net"):
                importer.load_pickle("data", pickled)
        except (pickle.UnpicklingError, RuntimeError, ValueError, EOFError):
            continue
    assert not {name for name in set(sys.modules) - before if not name.startswith(("torchlite", "tests"))}
