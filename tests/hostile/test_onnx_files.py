"""Damaged and hostile ONNX files: a sample of `python -m tests.hostile.onnx_files`, and what it takes for granted."""

import subprocess
import sys

import pytest

import torchlite as torch
from tests.hostile import onnx_files


def test_a_sample_of_damaged_files():
    """Runs in a subprocess that reports executed code, opened files, and memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.onnx_files", "--count", "300"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize(
    "name, words",
    [
        ("endless number", "Model: a number of more than ten bytes"),
        ("length past the end", "field 7 has 4294967295 bytes, and 0 are left"),
        ("text", "Model.producer_name: the text is not UTF-8"),
        ("deep types", "messages inside more than 100 others"),
        ("functions", "functions inside functions make more nodes"),
        ("a function of itself", "calls itself"),
        ("huge", "the tensor 'w': it has 4 bytes, and float32 of shape"),
        ("sparse", "its indices do not fit"),
    ],
)
def test_an_error_names_the_part(name, words):
    with pytest.raises(torch.onnx.OnnxFileError, match=words):
        torch.onnx.load(onnx_files.harm()[name])


@pytest.mark.parametrize("name", ["up", "root", "link", "folder", "device", "windows", "zero", "absent"])
def test_external_tensors_are_limited_to_the_models_folder(tmp_path, name):
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(16))
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "x.onnx").write_bytes(onnx_files.harm()[name])
    with pytest.raises(torch.onnx.OnnxFileError, match="the tensor 'w'"):
        torch.onnx.load(folder / "x.onnx")


def test_names_in_files_are_not_executed():
    for text in ("self", "True", "a'; import os; os.system('true'); '", "\n    import os\n", "__class__", "forward"):
        found = onnx_files.model(
            [onnx_files.node("Add", [text + "x", text + "w"], ["y"])], [onnx_files.info(text + "x", 1)], ["y"],
            [onnx_files.weight(text + "w", 1)],
        )  # fmt: skip
        assert torch.onnx.load(found)(torch.ones(1)).tolist() == [1]
