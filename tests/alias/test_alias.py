"""torchlite under the name `torch`; each test runs a program in a subprocess."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys

import pytest

from torchlite import torch_version
from torchlite._alias import DIST_INFO, PATH
from torchlite._cli import torch_alias
from torchlite.torch_version import TorchVersion

NAMED = """
import doctest, importlib.util, inspect, pickle, sys
import torchlite
before = torchlite.nn.Linear, torchlite.add
assert torchlite.as_torch() is torchlite and torchlite.as_torch() is torchlite
import torch, torch.nn.functional as F, torchlite.nn.functional as G
assert torch is torchlite and F is G and (torch.nn.Linear, torch.add) == before
import torchlite.signal.windows, torch.optim.lr_scheduler
for name, module in list(sys.modules.items()):
    if name.startswith(("torch.", "torchlite.")) or name in ("torch", "torchlite"):
        other = name.replace("torchlite", "torch")
        assert module is sys.modules[other] and module.__name__ == module.__spec__.name == other, name
for name in ("torch.nope", "torch.nn.nope", "torchlite.nope"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert error.name == name and name in str(error), error
    else:
        raise AssertionError(name)
assert repr(torch.Tensor) == "<class 'torch.Tensor'>" and torch.nn.Linear.__module__ == "torch.nn.modules.linear"
assert torch.__name__ == "torch" and torch.add.__module__ == "torch" and torch.tanh_.__module__ == "torch"
assert torch.nn.MultiheadAttention.__module__ == "torch.nn.modules.activation"
assert torch.optim.SGD.__module__ == "torch.optim.sgd" and torch.float32.__reduce__() == "float32"
assert b"ctorch.nn.modules.linear\\nLinear" in pickle.dumps(torch.nn.Linear, 0)
assert b"ctorch\\nfloat32" in pickle.dumps(torch.float32, 0)
for thing in (torch.nn.Linear(2, 2), torch.arange(3.0), torch.float32, torch.device("cpu"), torch.Size((1, 2)), F.relu,
              torch.add, torch.nn.functional.pad, torch.max(torch.ones(2, 2), 0)):
    again = pickle.loads(pickle.dumps(thing))
    assert repr(again) == repr(thing) and b"torchlite" not in pickle.dumps(thing), thing
assert inspect.getsource(torch.nn.Linear).startswith("class Linear(")
found = doctest.testmod(torch.torch_version)
assert found.attempted and not found.failed, found
assert importlib.util.find_spec("torch").name == "torch"
assert torch.__version__ >= "2.9" and torch.__version__ < (2, 14) and isinstance(torch.__version__, str)
assert torch.version.__version__ == "2.13.0+torchlite" and torch.__torchlite_version__[0] == "0"
try:
    torch.nonsense
except AttributeError as error:
    assert str(error) == "module 'torch' has no attribute 'nonsense'", error
try:
    torch.ops.load_library("lib.so")
except OSError:
    pass
else:
    raise AssertionError
import warnings
warnings.simplefilter("error", append=True)
import functorch, functorch.experimental
from functorch.experimental.control_flow import cond
from functorch.experimental import control_flow
assert cond is control_flow.cond is torch.cond
assert functorch.vmap is torch.vmap and functorch.make_functional.__module__.startswith("torch._functorch")
assert (torch.tensor([1e38]) * torch.tensor([1e38])).isinf() and torch.nn.functional.softplus(torch.ones(1) / 0).isinf()
"""

PROGRAM = """
import importlib.metadata, multiprocessing, subprocess, sys
import torch

def work(x, queue):
    queue.put((x.sum().item(), torch.Tensor.__module__))

if __name__ == "__main__":
    assert sys.argv[1:] == ["--a", "b"], sys.argv
    assert importlib.metadata.version("torch") == str(torch.__version__)
    for kind in ("fork", "spawn"):
        context = multiprocessing.get_context(kind)
        queue = context.SimpleQueue()
        process = context.Process(target=work, args=(torch.ones(3), queue))
        process.start()
        assert queue.get() == (3.0, "torch")
        process.join()
    child = subprocess.run([sys.executable, "-c", "import torch; print(torch.__name__)"], capture_output=True)
    assert child.stdout.split() == [b"torch"], child
    print("done")
"""


def python(*arguments: str, **more) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, timeout=120, **more
    )


def test_one_module_under_both_names():
    done = python("-c", NAMED)
    assert done.returncode == 0, done.stderr


def test_run_gives_a_program_and_its_children_the_name(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = python("-m", "torchlite", "run", "program.py", "--a", "b", cwd=tmp_path)
    assert done.stdout == "done\n", done.stderr
    done = python("-m", "torchlite", "run", "-m", "program", "x", cwd=tmp_path)
    assert done.stderr.endswith("program.py', 'x']\n")


def test_spawned_processes_inherit_as_torch(tmp_path):
    body = PROGRAM.replace("import torch\n", "", 1).replace(
        "    assert sys.argv", "    import torchlite\n    torch = torchlite.as_torch()\n    assert sys.argv"
    )
    body = body[: body.index("    child =")] + "    print('done')\n"
    (tmp_path / "program.py").write_text(body.replace("queue.put(", "import torch\n    queue.put("))
    done = python("program.py", "--a", "b", cwd=tmp_path)
    assert done.stdout == "done\n", done.stderr


def test_as_torch_after_pytorch_raises(tmp_path):
    (tmp_path / "torch.py").write_text("")
    done = python("-c", "import torch, torchlite; torchlite.as_torch()", cwd=tmp_path)
    assert "RuntimeError: as_torch: PyTorch is imported already" in done.stderr


def test_install_and_remove(tmp_path):
    site, scripts = str(tmp_path / "packages"), str(tmp_path / "bin with space")
    os.mkdir(site)
    os.mkdir(scripts)
    for _ in range(2):
        assert "means torchlite" in torch_alias.install(site, scripts)
    (found,) = importlib.metadata.distributions(path=[site])
    assert (found.name, found.version) == ("torch", "2.13.0+torchlite") and found.requires == ["torchlite-nd"]
    assert {str(file) for file in found.files} == {
        os.path.relpath(os.path.join(folder, name), site) for folder, _, names in os.walk(tmp_path) for name in names
    }
    for file in found.files:
        assert file.hash is None or file.size == len(file.read_binary())
    assert torch_alias._find_foreign_torch(site) == ""
    if os.name == "posix":
        done = subprocess.run([os.path.join(scripts, "torchrun"), "--help"], capture_output=True, text=True)
        assert "--nproc-per-node" in done.stdout, done.stderr
    assert "removed" in torch_alias.remove(site, scripts) and os.listdir(site) == os.listdir(scripts) == []
    assert "no `torch`" in torch_alias.remove(site, scripts)


def test_anothers_torchrun_stays(tmp_path):
    torchrun = tmp_path / "torchrun"
    torchrun.write_text("another's")
    torch_alias.install(str(tmp_path), str(tmp_path))
    (found,) = importlib.metadata.distributions(path=[str(tmp_path)])
    assert "torchrun" not in map(str, found.files)
    torch_alias.remove(str(tmp_path), str(tmp_path))
    assert torchrun.read_text() == "another's" and os.listdir(tmp_path) == ["torchrun"]


def test_a_real_pytorch_is_left_alone(tmp_path, monkeypatch, capsys):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("from .version import __version__")
    monkeypatch.setattr(
        torch_alias.sysconfig, "get_paths", lambda: {"purelib": str(tmp_path), "scripts": str(tmp_path)}
    )
    monkeypatch.setattr(torch_alias.importlib.metadata, "distributions", lambda name: [])
    for install in (True, False):
        assert torch_alias.as_torch(torch_alias.argparse.Namespace(install=install)) == 1
        assert "is PyTorch itself; nothing was changed" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["torch"]


def test_the_metadata_has_the_version():
    assert DIST_INFO == f"torch-{torch_version.__version__}.dist-info" and os.path.isdir(os.path.join(PATH, DIST_INFO))


@pytest.mark.parametrize(
    ("other", "answers"),
    [  # ==, <, <=, >, >= of PyTorch
        ("2.13.0", (False, False, False, True, True)),
        ("2.13", (False, False, False, True, True)),
        ("2.13.0+cpu", (True, False, True, False, True)),
        ("2.14", (False, True, True, False, False)),
        ("2.13.0a1", (False, False, False, True, True)),
        ("2.13.0rc1.post2.dev3", (False, False, False, True, True)),
        ("2.13.1.dev20250101", (False, True, True, False, False)),
        ("parrot", (False, True, True, False, False)),
        ((2, 13), (False, False, False, True, True)),
        ([2, 14], (False, True, True, False, False)),
        ("1!1.0", (False, True, True, False, False)),
        ("v2.13.0+cpu", (True, False, True, False, True)),
    ],
)
def test_versions_compare(other, answers):
    v = TorchVersion("2.13.0+cpu")
    assert (v == other, v < other, v <= other, v > other, v >= other) == answers
    assert hash(v) == hash("2.13.0+cpu") and v != 2 and v is not None


def test_versions_in_order():
    texts = "2.1.0.dev1 2.1.0a0 2.1b1 2.1.0rc1 2.1 2.1.0+a 2.1.0+a.1 2.1.0+1 2.1.0.post1 2.10"
    assert sorted(map(TorchVersion, reversed(texts.split()))) == texts.split()


IN_C = """
import torchlite
torchlite.as_torch()
import io, pickle, types, torch
module = types.ModuleType("in_c")
module.Pickler, module.Unpickler, module.load = pickle.Pickler, pickle.Unpickler, pickle.load
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
file = io.BytesIO()
kept = {"model": model, "half": torch.ones(2).bfloat16(), "dtype": torch.float64, "call": torch.sigmoid}
torch.save(kept, file, pickle_module=module)
file.seek(0)
found = torch.load(file, pickle_module=module, weights_only=False)
assert torch.equal(found["model"](torch.ones(1, 2)), model(torch.ones(1, 2)))
assert found["half"].dtype == torch.bfloat16 and found["dtype"] is torch.float64
assert found["call"] is torch.sigmoid
"""


def test_picklers_in_c():
    """cloudpickle's derives from it: mlflow saves models so."""
    done = python("-c", IN_C)
    assert done.returncode == 0, done.stderr
