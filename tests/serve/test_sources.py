"""Where models are, and their configuration."""

import pytest

from torchlite.serve._model_config import ModelConfig, config_of
from torchlite.serve._protocol import TensorSpec
from torchlite.serve._sources import find_sources, version_order
from torchlite.serve._tensor_model import Padding


def found(path, tables=None, **defaults):
    sources = find_sources(str(path), ModelConfig(**defaults), tables or {})
    return {source.name: source for source in sources}


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def test_a_file_has_its_own_name_or_another(tmp_path):
    path = touch(tmp_path / "net.onnx")
    assert found(path)["net"].versions == {"1": path}
    assert found(f"other={path}")["other"].versions == {"1": path}
    odd = touch(tmp_path / "a=b.onnx")
    assert list(found(odd)) == ["a=b"]


def test_a_folder_of_models(tmp_path):
    touch(tmp_path / "net.onnx"), touch(tmp_path / "net.onnx.data"), touch(tmp_path / "notes.txt")
    touch(tmp_path / ".hidden.onnx"), touch(tmp_path / "one" / "model.pt2")
    touch(tmp_path / "two" / "1" / "any.pt"), touch(tmp_path / "two" / "10" / "model.pt")
    touch(tmp_path / "two" / "10" / "other.pt"), touch(tmp_path / "data" / "picture.png")
    sources = found(tmp_path)
    assert list(sources) == ["net", "one", "two"]
    assert sources["two"].versions["10"].name == "model.pt" and sources["two"].chosen_versions() == ["10"]
    assert list(found(tmp_path / "two")) == ["two"]


def test_tables_and_files_configure(tmp_path):
    touch(tmp_path / "one" / "model.pt2")
    (tmp_path / "one" / "config.toml").write_text("max_batch = 4\n")
    config = found(tmp_path, {"one": {"max_batch": 2, "delay_ms": 3}}, max_queue=7)["one"].config
    assert (config.max_batch, config.delay_ms, config.max_queue) == (4, 3, 7)


@pytest.mark.parametrize(
    ("files", "word", "error"),
    [
        ([], "nope.onnx", "there is no such file"),
        (["m/1/a.onnx", "m/1/b.onnx"], "m", "several models: a.onnx, b.onnx"),
        (["m/1/notes.txt"], "m", "no model file"),
        (["m/a.onnx"], "name=m", "leave 'name=' out"),
        (["m/net.mar"], "m", "no archive of torch-model-archiver"),
    ],
)
def test_wrong_places(tmp_path, monkeypatch, files, word, error):
    monkeypatch.chdir(tmp_path)
    for name in files:
        touch(tmp_path / name)
    with pytest.raises(ValueError, match=error):
        found(word)


def test_versions_are_ordered_by_their_numbers():
    assert sorted(["10", "9", "1.10", "1.9", "1"], key=version_order) == ["1", "1.9", "1.10", "9", "10"]


def test_all_keys():
    config = config_of(
        {
            "factory": "a:b", "handler": "h", "device": "cpu", "max_batch": 2, "delay_ms": 0.5, "max_queue": 3,
            "workers": 2, "batching": True, "versions": [1, "2"], "warmup": 0,
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}], "outputs": [{"name": "y"}],
            "padding": {"axis": 1, "inputs": {"x": 0}, "outputs": ["y"]}, "options": {"k": 1},
        },
        ModelConfig(),
        "config.toml",
    )  # fmt: skip
    assert config.versions == ("1", "2") and config.inputs == (TensorSpec("x", "FP32", (-1, 4)),)
    assert config.padding == Padding(1, {"x": 0}, ("y",)) and config.options == {"k": 1}


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"max_bacth": 1}, "unknown key 'max_bacth'"),
        ({"max_batch": 0}, "at least 1"),
        ({"max_batch": True}, "at least 1"),
        ({"delay_ms": -1}, "from 0 to 60000"),
        ({"warmup": -1}, "at least 0"),
        ({"batching": 1}, "true or false"),
        ({"device": 1}, "must be a text"),
        ({"options": 1}, "must be a table"),
        ({"versions": []}, "'latest', 'all' or a list"),
        ({"inputs": {}}, "a list of tables"),
        ({"inputs": [{}]}, "a table with a name"),
        ({"inputs": [{"name": "x", "datatype": "F"}]}, "unknown datatype"),
        ({"inputs": [{"name": "x", "shape": [-2]}]}, "list of sizes"),
        ({"padding": 1}, "a table with axis"),
        ({"padding": {"axis": 0, "inputs": {"x": 0}}}, "padding.axis"),
        ({"padding": {"axis": 1}}, "padding.inputs"),
        ({"padding": {"axis": 1, "inputs": {"x": 0}, "outputs": [1]}}, "padding.outputs"),
    ],
)
def test_wrong_keys(table, error):
    with pytest.raises(ValueError, match=error):
        config_of(table, ModelConfig(), "config.toml")
