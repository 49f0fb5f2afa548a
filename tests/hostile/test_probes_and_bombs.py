"""Names and costs that programs out of files may not have: `tests.hostile.probes`, and a sample of the bombs."""

import io
import os
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import torchlite as torch
from tests.hostile import bombs
from tests.hostile.program_bombs import lines, script
from torchlite._aten.allowlist import REFUSED_OPS, allowed_overload, allowed_packet
from torchlite._aten.recorded_schemas import all_names, schema_entries

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pipes, devices and forks of Linux")

LOADERS = {
    "load": torch.load, "jit.load": torch.jit.load, "export.load": torch.export.load, "onnx.load": torch.onnx.load,
}  # fmt: skip


def _run(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, errors="replace", timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return done.stdout.splitlines()


def test_names_that_are_no_ops_are_refused():
    """Some 3,000 names in `.pt2` files, TorchScript and ONNX: none opens a file, and each is one error."""
    said = _run("tests.hostile.probes")[-1]
    assert int(said.split()[0]) > 2_000 and said.endswith("probes, 0 wrong, 0 files left")


def test_a_sample_of_bombs():
    """Every twentieth by name, in processes that are forks of one: each ends, and takes no more memory than it may."""
    wanted = sorted(bombs.tables())
    assert len(wanted) > 100
    assert _run("tests.hostile.bombs", "--step", "20", "--untimed")[-1].endswith(" bombs, 0 wrong")


def test_every_op_of_the_library_is_allowed_but_those_that_reach_the_host():
    """An op that takes no tensor, gives nothing or names a file is looked at here: a new one fails this test."""
    hosts = set()
    for name in all_names():
        for overload, entry in schema_entries(name).items():
            given, _, result = entry.text.rpartition("->")
            if "filename" in given or "Generator(a!)" in given or "Tensor" not in given and result.strip() == "()":
                hosts.add(name)
            assert (allowed_overload("aten", name, overload) is None) == (name in REFUSED_OPS)
    assert hosts - {"sort", "_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size"} <= REFUSED_OPS


def test_user_ops_are_looked_up_by_name_only():
    with torch.library._scoped_library("probe", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        assert allowed_overload("probe", "twice", "default") is torch.ops.probe.twice.default
        for name in ("_name", "overloads", "__class__", "_overloads", "name", ""):
            assert allowed_packet("probe", name) is None and allowed_overload("probe", "twice", name) is None


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder"])
@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_load_rejects_pipes_sockets_devices_and_folders(load, kind, tmp_path, monkeypatch):
    """A pipe without a writer would block, and a device has no end."""
    path = str(tmp_path / "x")
    opened = None
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        opened = socket.socket(socket.AF_UNIX)
        monkeypatch.chdir(tmp_path)  # a socket has a short name
        opened.bind("x")
    elif kind == "device":
        path = "/dev/zero"
    else:
        os.mkdir(path)
    errors = []

    def run():
        try:
            load(path)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    if opened is not None:
        opened.close()
    assert len(errors) == 1 and isinstance(errors[0], (RuntimeError, IsADirectoryError, ValueError)), errors
    assert kind in str(errors[0]) or kind == "folder" and "directory" in str(errors[0])


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_an_open_device_is_refused(load):
    with open("/dev/zero", "rb") as stream, pytest.raises(RuntimeError, match="is a device"):
        load(stream)


def test_a_script_shows_no_address():
    """The hash and the text of what only has its place: an error, and the name of its kind."""

    def run(*statements):
        return torch.jit.load(io.BytesIO(script(lines(*statements))))(torch.ones(2))

    for statement in ("return hash(x)", "return torch.hash(x)", "return hash([1])", "return hash(self)"):
        with pytest.raises(RuntimeError, match="unhashable type"):
            run(statement)
    assert run("return hash(None)") == 0 and run("return hash((1, 2))") == hash((1, 2))
    shown = run("def f(y):", "  return y", "return str((f, zip([1], [2]), enumerate([1]), self))")
    assert "0x" not in shown and shown.startswith("(<function>, <zip>, <enumerate>, ")
    assert run('return "%d of %s" % (3, "a")') == "3 of a"
    with pytest.raises(RuntimeError, match="__builtins__ is no name of a variable"):
        run("__builtins__ : int", "return __builtins__")


def test_programs_cannot_seed_the_host():
    """A program draws numbers, and does not choose which."""
    import io

    from tests.hostile.program_bombs import lines, script

    for name in ("manual_seed", "seed", "initial_seed"):
        with pytest.raises(RuntimeError, match="Unknown builtin op"):
            torch.jit.load(io.BytesIO(script(lines(f"_ = torch.{name}(0)", "return x"))))
    drawn = torch.jit.load(io.BytesIO(script(lines("return torch.rand([3])"))))
    torch.manual_seed(1)
    first = drawn(torch.ones(2))
    torch.manual_seed(1)
    assert np.array_equal(first.numpy(), torch.rand(3).numpy())
