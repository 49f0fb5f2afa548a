"""benchmarks/gpu_check.py without a GPU: every part on devices that are here, at small sizes, and what it does when a
part dies or nothing can be used.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import torchlite as torch
from tests.cuda_simulator import missing

pytestmark = pytest.mark.night

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "gpu_check.py"

# In the place of the conformance folder's table: what gpu_check reads of its results, with a row that fails everywhere
# and one that fails on the device alone.
OPDB = """
import argparse, json
p = argparse.ArgumentParser(); p.add_argument("module")
for name in ("device", "dtypes", "only", "json", "max-samples", "timeout"): p.add_argument("--" + name)
for name in ("backward", "public-only"): p.add_argument("--" + name, action="store_true")
a = p.parse_args()
import torchlite, re
rows = [{"name": n, "part": "forward", "dtype": "float32", "bucket": "public", "ok": ok,
         "reasons": [] if ok else [{"kind": "mismatch", "what": "values"}]}
        for n, ok in (("add", True), ("softmax", False), ("matmul", a.device == "cpu")) if re.search(a.only, n)]
json.dump({"rows": rows}, open(a.json, "w"))
print("opdb", len(rows))
"""
RATIO = """
import sys
print("workload                        candidate    reference   ratio")
print("small.add                           1.5            1    1.50 us")
print("gpt.train                       missing           10       -")
print("mlp.train                         100.5        1.2e+3    0.08 us")
print("torchlite: gpt FAILED RuntimeError: no", file=sys.stderr)
print("torch: lstm FAILED RuntimeError: no", file=sys.stderr)
print("geometric mean 0.35 over 2 rows, 1 above 1, 1 missing")
"""
WORKLOADS = 'print("import 100.2 ms")\nprint("mlp.train 300 us")\n'
# Stands for torch where it is not installed.
ORACLE = """
import torchlite
def __getattr__(name): return getattr(torchlite, name)
__version__ = "0"
class version: cuda = None
class cuda:
    is_available = staticmethod(lambda: False)
"""


@pytest.fixture
def start(tmp_path):
    """Runs gpu_check.py; gives its exit status, what it printed, its JSON and its table."""

    def run(*words, shared=tmp_path / "nowhere", path=""):
        files = tmp_path / "out.json", tmp_path / "out.md"
        for file in files:
            file.unlink(missing_ok=True)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        inherited["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH", "")]))
        given = [
            "--quick",
            "--workers",
            "1",
            "--shared",
            str(shared),
            "--json",
            str(files[0]),
            "--table",
            str(files[1]),
            *words,
        ]
        done = subprocess.run(
            [sys.executable, str(SCRIPT), *given],
            capture_output=True,
            text=True,
            timeout=300,
            env=inherited,
            cwd=tmp_path,
        )
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout, *(file.read_text() if file.exists() else "" for file in files)

    return run


@pytest.fixture
def oracle(tmp_path):
    """A folder with modules in the places of torch and of what its test tables need."""
    folder = tmp_path / "oracle"
    folder.mkdir()
    for name, text in (("torch", ORACLE), ("expecttest", "")):
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture
def shared(tmp_path):
    """A shared folder."""
    folder = tmp_path / "shared"
    for place, text in (("conformance/opdb.py", OPDB), ("bench/ratio.py", RATIO), ("bench/workloads.py", WORKLOADS)):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text)
    return folder


def without(folder: Path, *modules: str) -> Path:
    """A folder whose presence on the path makes modules look absent."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"""
import importlib.util as util
found = util.find_spec
util.find_spec = lambda name, *args: None if name in {modules} else found(name, *args)
""")
    return folder


def test_collectives_of_one_rank(start):
    status, printed, text, table = start("--device", "cpu", "--only", "messages", "--quick")
    found = json.loads(text)["parts"]["messages"]
    assert status == 0 and found["failed"] == [] and found["backend"] == "gloo", printed
    assert [row["name"] for row in found["rows"]][:3] == ["all_reduce", "broadcast", "reduce"]
    assert len(found["rows"]) == 9 and "| all_to_all_single |" in table


def test_kernels_and_bandwidth(start, device, pytestconfig):
    simulated = pytestconfig.getoption("--simulate-cuda") and device.startswith("cuda")
    status, printed, text, table = start("--device", device, "--only", "fused,speed", *["--simulate-cuda"] * simulated)
    results = json.loads(text)
    parts = results["parts"]
    assert (status, results["failed"]) == (0, []), printed
    assert list(parts) == ["machine", "speed", "fused"] and results["device"] == device
    speed = parts["speed"]
    assert speed["copies"]["torchlite"] > 0
    assert [row["name"] for row in speed["rows"] if row["dtype"] == "float32"] == [
        "softmax",
        "softmax backward",
        "layer_norm",
        "layer_norm backward",
        "gelu",
        "gelu backward",
        "Adam",
    ]
    assert all(
        row["share"] == pytest.approx(row["bytes/s"] / max(speed["copies"].values())) and row["ms"] > 0
        for row in speed["rows"]
    )
    assert len(speed["products"]) == 7 and all(row["torchlite"] > 0 for row in speed["products"])
    assert {row["name"] for row in parts["fused"]["rows"]} == {
        "softmax",
        "layer_norm",
        "batch_norm",
        "cross_entropy",
        "activations",
        "attention",
        "optimizers",
        "dropout",
    }
    assert all(row["ok"] for row in parts["fused"]["rows"])
    assert any(row["worst"] > 0 for row in parts["fused"]["rows"])
    if not device.startswith("cuda"):
        assert f"dry run on {device}" in table
    assert "| softmax | float32 | 1/1 |" in table
    assert all(aim["met"] is None for aim in results["aims"])
    assert "[fused] attention: 2 of 2" in printed


def test_tables_and_workloads(start, shared, oracle):
    status, _, text, table = start("--device", "cpu", "--only", "bench,opdb,graphs", shared=shared, path=oracle)
    results = json.loads(text)
    bench, opdb, graphs = (results["parts"][name] for name in ("bench", "opdb", "graphs"))
    assert status == 1
    assert [(row["name"], row["torchlite"], row["torch"], row["unit"]) for row in bench["rows"]] == [
        ("small.add", 1.5, 1.0, "us"),
        ("gpt.train", None, 10.0, ""),
        ("mlp.train", 100.5, 1200.0, "us"),
    ]
    assert bench["failed"] == [
        "torchlite: gpt FAILED RuntimeError: no",
        "gpt.train: torchlite did not run it",
    ] and bench["notes"] == ["torch: lstm FAILED RuntimeError: no"]
    assert opdb["counts"] == {"forward": [2, 3]} and opdb["failed"] == ["forward softmax[float32]: mismatch: values"]
    assert set(graphs["times"]) == {"torchlite", "torch"} and all(
        times["eager"] > 0 for times in graphs["times"].values()
    )
    assert "| small.add | 1.5 | 1 | 1.50 | us |" in table and "| gpt.train | - | 10 | - |  |" in table
    assert len(results["failed"]) == 3 and "- opdb: forward softmax[float32]: mismatch: values" in table


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_graphs_on_the_simulator(start, oracle):
    """Captured training steps give the losses of eager ones; torch's times are the CPU's, so no aim is met by them."""
    status, printed, text, table = start("--simulate-cuda", "--only", "graphs", path=oracle)
    results = json.loads(text)
    graphs = results["parts"]["graphs"]
    assert (status, graphs["failed"], graphs["notes"], graphs["reference"]) == (0, [], [], "cpu"), printed
    forms = {"eager", "graphed", "captured", "compiled", "compiled_graphs"}
    assert set(graphs["times"]["torchlite"]) == forms and set(graphs["times"]["torch"]) == {"eager"}
    assert "dry run on the CUDA simulator" in table and all(aim["met"] is None for aim in results["aims"])


def test_device_failures_are_separated_from_cpu_failures(start, shared, oracle):
    status, _, text, table = start("--device", "meta", "--only", "opdb", shared=shared, path=oracle)
    opdb = json.loads(text)["parts"]["opdb"]
    assert status == 1 and opdb["counts"] == {"forward": [1, 3]}
    assert opdb["failed"] == ["forward matmul[float32]: mismatch: values"] and opdb["on_cpu_too"] == [
        "forward softmax[float32]"
    ]
    assert "float32: forward 1/3; fail with torchlite on the CPU too: forward softmax[float32]" in table


def test_missing_packages_are_reported(start, shared, tmp_path):
    path = without(tmp_path / "less", "torch", "xdist")
    status, printed, text, table = start("--device", "cpu", "--only", "bench,opdb", shared=shared, path=path)
    results = json.loads(text)
    assert status == 0, printed
    assert (
        "[machine] missing: pytest-xdist: the device tests on several cores" in printed
        and "- torch: the conformance tables" in table
    )
    assert [(row["name"], row["torchlite"], row["torch"]) for row in results["parts"]["bench"]["rows"]] == [
        ("import", 100.2, None),
        ("mlp.train", 300.0, None),
    ]
    assert results["parts"]["opdb"]["left_out"] == "torch, the oracle, is not installed"
    status, printed, text, table = start("--device", "cpu", "--only", "bench,opdb")
    assert status == 0 and f"Left out: {tmp_path / 'nowhere'}/bench is not there." in table
    assert "opdb.py is not there" in json.loads(text)["parts"]["opdb"]["left_out"]


@pytest.mark.slow
def test_the_tests_are_run_and_failures_named(start, tmp_path):
    words = "--only", "tests", "--device", "cpu"
    status, printed, text, _ = start(*words, "--pytest", "tests/masked/test_masked.py")
    found = json.loads(text)["parts"]["tests"]
    assert status == 0 and found["failed"] == [], printed
    assert found["counts"]["passed"] == found["counts"]["total"] > 1 and found["counts"]["not run"] == 0
    (tmp_path / "test_some.py").write_text("""
import pytest, time
@pytest.fixture
def device(): return "cpu"
def test_right(device): pass
def test_wrong(device): assert 1 == 2, "one is not two"
@pytest.fixture
def broken(device):
    yield
    raise RuntimeError("after the test")
def test_end(device, broken): pass
def test_long(device): time.sleep(60)
""")
    status, printed, text, _ = start(
        *words,
        "--limits",
        "tests=15",
        f"--pytest={tmp_path}/test_some.py -p no:randomly --rootdir {tmp_path} -c /dev/null -p tests.conftest",
    )
    found = json.loads(text)["parts"]["tests"]
    assert status == 1
    assert found["counts"] == {"total": 4, "passed": 1, "failed": 2, "skipped": 0, "not run": 1}, printed
    assert [line.split("::")[-1] for line in found["failed"][:2]] == [
        "test_wrong[cpu]: AssertionError: one is not two",
        "test_end[cpu]: RuntimeError: after the test",
    ]
    assert "1 tests were not run" in found["failed"][2]


@pytest.mark.slow
def test_a_worker_that_lost_its_device_is_replaced(start, tmp_path):
    pytest.importorskip("xdist")
    (tmp_path / "test_lost.py").write_text("""
import os, pytest
@pytest.fixture
def device(): return "cpu"
@pytest.mark.parametrize("n", range(6))
def test_one(device, n):
    global lost
    if n == 1: lost = True
    if globals().get("lost"): raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered")
""")
    status, printed, text, _ = start(
        "--only",
        "tests",
        "--device",
        "cpu",
        "--workers",
        "2",
        f"--pytest={tmp_path}/test_lost.py --rootdir {tmp_path} -c /dev/null -p tests.conftest",
    )
    found = json.loads(text)["parts"]["tests"]
    assert status == 1 and len(found["failures"]) == 1 and "test_one[cpu-n=1]" in next(iter(found["failures"])), printed
    assert found["counts"]["passed"] == 5


def with_adam(folder: Path, how: str) -> Path:
    """A folder whose presence on the path makes one step of the part `speed` go wrong."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"""
import os, signal, sys, time
if "speed" in sys.argv:
    import torchlite
    def fail(*args, **options): {how}
    torchlite.optim.Adam = fail
""")
    return folder


def test_a_kernel_that_fails_is_named(start, tmp_path):
    status, printed, text, _ = start(
        "--device", "cpu", "--only", "speed", path=with_adam(tmp_path / "faulty", "raise MemoryError('no more')")
    )
    results = json.loads(text)
    assert status == 1 and results["failed"] == ["speed: Adam float32: MemoryError: no more"], printed
    assert len(results["parts"]["speed"]["rows"]) == 12 and len(results["parts"]["speed"]["products"]) == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    "how,said",
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "died (SIGSEGV)"),
        ("time.sleep(100)", "ended at its time limit"),
        ("sys.exit(3)", "died (status 3)"),
    ],
)
def test_a_part_that_dies_loses_only_itself(start, oracle, tmp_path, how, said):
    path = f"{with_adam(tmp_path / 'faulty', how)}{os.pathsep}{oracle}"
    status, printed, text, table = start("--device", "cpu", "--only", "speed,bench", "--limits", "speed=10", path=path)
    results = json.loads(text)
    assert status == 1 and said in results["parts"]["speed"]["died"], printed
    assert len(results["parts"]["speed"]["rows"]) == 12 and results["parts"]["speed"]["copies"]
    assert "bench is not there" in results["parts"]["bench"]["left_out"]
    assert results["failed"][0].startswith("speed: ") and f"The part {results['parts']['speed']['died'][:10]}" in table


def test_no_device(start):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    status, printed, text, table = start()
    assert (status, text, table) == (2, "", "")
    assert f"cuda cannot be used: {torch.cuda.why_not()}" in printed
    status, printed, *_ = start("--only", "nothing")
    assert status == 2 and "there are no parts nothing" in printed


def test_aims(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from gpu_parts.summary_table import aims_of

    rows = [
        {"name": "small.add", "torchlite": 3.2, "torch": 2.0},
        {"name": "gpt.train", "torchlite": 9.0, "torch": 10.0},
    ]
    parts = {
        "bench": {"reference": "cuda", "rows": rows},
        "graphs": {"reference": "cuda", "times": {"torchlite": {"eager": 90, "captured": 40}, "torch": {"eager": 100}}},
        "speed": {
            "rows": [
                {"name": "gelu", "dtype": "float32", "share": 0.9},
                {"name": "Adam", "dtype": "float32", "share": 0.8},
            ]
        },
    }
    results = {"device": "cuda", "simulated": False, "quick": False, "parts": parts}

    def met():
        return {aim["name"]: aim["met"] for aim in aims_of(results) if aim["met"] is not None}

    assert met() == {
        "small.add": False,
        "gpt.train, eager": True,
        "mlp.train, captured graph": True,
        "gelu kernel, float32": True,
        "Adam kernel, float32": False,
    }
    parts["bench"]["reference"] = parts["graphs"]["reference"] = "cpu"  # another device's times say nothing
    assert met() == {"gelu kernel, float32": True, "Adam kernel, float32": False}
    results["simulated"] = True
    assert not met()


def test_tox_without_a_gpu(monkeypatch, capsys):
    """Without a GPU, `tox -e cuda` reports that and runs the checks that need none; with one, the device tests."""
    from tests import cuda_simulator, run_cuda_tests

    run = []
    monkeypatch.setattr(
        run_cuda_tests.subprocess,
        "run",
        lambda command, check: (
            run.append(command[2:]) or subprocess.CompletedProcess(command, int("--cuda-schedule" in command))
        ),
    )
    monkeypatch.setattr(cuda_simulator, "missing", lambda: "")
    monkeypatch.setattr(torch.cuda, "why_not", lambda: "there is no driver")
    assert run_cuda_tests.main(["-k", "softmax"]) == 1
    assert (
        "No GPU is used: there is no driver." in (said := capsys.readouterr().out)
        and "failed: device tests on the simulator, schedule 2" in said
    )
    assert [words[0] for words in run] == ["tests.nvrtc", *["pytest"] * 4] and "tests/cuda_simulator" in run[2]
    assert all("--simulate-cuda" in words and words[-2:] == ["-k", "softmax"] for words in run[3:])
    run.clear()
    monkeypatch.setattr(cuda_simulator, "missing", lambda: "there is no compiler")
    assert run_cuda_tests.main([]) == 1 and run == [["tests.nvrtc"], ["pytest", *run_cuda_tests.LIBRARIES]]
    assert "The simulator is left out: there is no compiler." in capsys.readouterr().out
    run.clear()
    monkeypatch.setattr(torch.cuda, "why_not", lambda: "")
    assert run_cuda_tests.main([]) == 0 and len(run) == 1 and run[0][-3:] == ["--device", "cuda", "--device-only"]
