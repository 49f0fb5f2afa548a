"""The byte code of generated functions on the disk: later processes find it, and nothing wrong in it is used."""

from __future__ import annotations

import marshal
import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from torchlite._dispatch.codegen import code_cache
from torchlite._dispatch.op_record import REGISTRY, Op

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import inspect, sys, warnings
warnings.simplefilter("error")
import torchlite as torch
from torchlite._dispatch.codegen import code_cache
x = torch.tensor([0.5, 2.0], requires_grad=True)
y = (torch.sigmoid(x) * 3 - x).sum()
y.backward()
print(y.item(), x.grad.tolist(), hash(inspect.getsource(torch.sigmoid)), torch.sigmoid.__doc__[:20])
print(len(code_cache._made), len(code_cache._used))
"""
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no user ids here")


def start(cache: Path, program: str = PROGRAM, **variables: str) -> subprocess.Popen:
    environment = {**os.environ, "TORCHLITE_CACHE_DIR": str(cache), "PYTHONHASHSEED": "0", **variables}
    if "PYTHONDONTWRITEBYTECODE" not in variables:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
    words = [sys.executable, "-c", program]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT)


def finish(process: subprocess.Popen) -> tuple[str, int, int]:
    """Results of a process, the functions that it generated, and those that it found."""
    said, errors = process.communicate()
    assert process.returncode == 0 and not errors, errors
    result, counts = said.splitlines()
    made, used = map(int, counts.split())
    return result, made, used


def run(cache: Path, program: str = PROGRAM, **variables: str) -> tuple[str, int, int]:
    return finish(start(cache, program, **variables))


def the_file(cache: Path) -> Path:
    (found,) = (cache / "torchlite" / "functions").iterdir()
    return found


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[str, bytes, int]:
    """The result of the program, the file that it writes, and the number of its functions."""
    cache = tmp_path_factory.mktemp("written")
    result, made, used = run(cache)
    assert made > 5 and not used
    return result, the_file(cache).read_bytes(), made


def planted(cache: Path, data: bytes, name: str) -> Path:
    """A file of the cache with this content."""
    folder = cache / "torchlite" / "functions"
    for path in (cache, folder.parent, folder):
        path.mkdir(mode=0o700, exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    path.chmod(0o600)
    return path


@pytest.fixture
def name(tmp_path) -> str:
    """The name of the file."""
    run(tmp_path / "first")
    return the_file(tmp_path / "first").name


def test_a_later_process_generates_nothing(tmp_path):
    first, made, _ = run(tmp_path)
    about = the_file(tmp_path).stat()
    assert run(tmp_path) == (first, 0, made)
    assert the_file(tmp_path).stat().st_mtime_ns == about.st_mtime_ns
    if hasattr(os, "geteuid"):
        assert stat.S_IMODE(about.st_mode) == 0o600
        assert stat.S_IMODE(the_file(tmp_path).parent.stat().st_mode) == 0o700


def test_a_process_adds_its_functions(tmp_path):
    result, made, _ = run(tmp_path)
    more = PROGRAM.replace("torch.sigmoid(x) * 3", "torch.sigmoid(x) * 3 + torch.expm1(x) * 0")
    _, added, used = run(tmp_path, more)
    assert added > 0 and used == made
    assert run(tmp_path) == (result, 0, made)
    assert run(tmp_path, more)[1:] == (0, made + added)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "short", "text", "other marshal"])
def test_damage_is_as_good_as_absence(tmp_path, written, name, damage):
    result, data, made = written
    dice = random.Random(damage)
    place = dice.randrange(4, len(data))
    bad = {
        "truncated": data[:place],
        "flipped": data[:place] + bytes([data[place] ^ 1 << dice.randrange(8)]) + data[place + 1 :],
        "empty": b"",
        "short": b"\0\0\0\0",
        "text": b"no functions" * 100,
        "other marshal": code_cache.binascii.crc32(marshal.dumps(5)).to_bytes(4, "little") + marshal.dumps(5),
    }[damage]
    path = planted(tmp_path, bad, name)
    assert run(tmp_path) == (result, made, 0)
    assert path.read_bytes() != bad
    assert run(tmp_path) == (result, 0, made)


def test_another_stamp_is_as_good_as_absence(tmp_path, written, name):
    """The functions of the file would fail, so none of them is called."""
    result, data, made = written
    _, functions = marshal.loads(data[4:])
    broken = marshal.dumps(compile("raise RuntimeError", "<broken>", "exec"))
    content = marshal.dumps((b"an older version", dict.fromkeys(functions, broken)))
    planted(tmp_path, code_cache.binascii.crc32(content).to_bytes(4, "little") + content, name)
    assert run(tmp_path) == (result, made, 0)
    assert run(tmp_path) == (result, 0, made)


def test_the_stamp_names_what_texts_depend_on(tmp_path, monkeypatch):
    for folder in code_cache._FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("1\n")
    monkeypatch.setattr(code_cache, "_PACKAGE", str(tmp_path))
    stamp = code_cache._stamp.__wrapped__
    seen = [stamp()]
    for folder in code_cache._FOLDERS:
        os.utime(tmp_path / folder / "a.py", ns=(1, 1))
        seen.append(stamp())
        (tmp_path / folder / "a.py").write_text("12\n")
        os.utime(tmp_path / folder / "a.py", ns=(1, 1))
        seen.append(stamp())
        (tmp_path / folder / "b.txt").write_text("")
        seen.append(stamp())
    monkeypatch.setattr(sys, "version", "4.0")
    seen.append(stamp())
    assert len(set(seen)) == len(seen)
    assert {"_ops", "_dispatch", "_types"} <= set(code_cache._FOLDERS)


def test_no_folder_can_be_written(tmp_path, written):
    """Here the folder's place has a file. No warning is given, which would be an error."""
    (tmp_path / "cache").write_text("")
    for _ in range(2):
        assert run(tmp_path / "cache") == (written[0], written[2], 0)


@posix
@pytest.mark.parametrize("mode", ["file", "folder"])
def test_what_others_could_have_written_is_not_read(tmp_path, written, name, mode):
    path = planted(tmp_path, written[1], name)
    assert run(tmp_path) == (written[0], 0, written[2])
    (path if mode == "file" else path.parent).chmod(0o666 if mode == "file" else 0o777)
    assert run(tmp_path) == (written[0], written[2], 0)


def test_several_processes_at_once(tmp_path, written):
    others = [PROGRAM.replace("sigmoid", f) for f in ("tanh", "exp", "sin")]
    processes = [start(tmp_path, program) for program in (PROGRAM, *others, PROGRAM)]
    found = [finish(process) for process in processes]
    assert found[0][0] == found[-1][0] == written[0]
    assert [p.name for p in the_file(tmp_path).parent.iterdir()] == [the_file(tmp_path).name]
    assert run(tmp_path)[0] == written[0]
    assert run(tmp_path) == (written[0], 0, written[2])


def test_without_byte_code_nothing_is_written(tmp_path, written):
    """As for modules: `PYTHONDONTWRITEBYTECODE` forbids writing, not reading."""
    assert run(tmp_path, PYTHONDONTWRITEBYTECODE="1")[1:] == (0, 0) and not list(tmp_path.iterdir())
    run(tmp_path)
    assert run(tmp_path, PYTHONDONTWRITEBYTECODE="1") == (written[0], 0, written[2])


def test_the_switch(tmp_path, written):
    assert run(tmp_path, TORCHLITE_KEEP_FUNCTIONS="0") == (written[0], 0, 0) and not list(tmp_path.iterdir())
    run(tmp_path)
    assert run(tmp_path, TORCHLITE_KEEP_FUNCTIONS="0") == (written[0], 0, 0)


def test_the_installation_is_not_written(tmp_path):
    """It may be read-only: the file is in the user's cache. Python itself writes the byte code of modules."""
    package = str(ROOT / "torchlite")
    program = f"""
import sys
written = []
sys.addaudithook(lambda event, arguments: written.append(str(arguments[0]))
                 if event == "open" and set(str(arguments[1])) & set("wax+") else None)
{PROGRAM}
code_cache._write()
assert not [path for path in written if path.startswith({package!r}) and "__pycache__" not in path]
"""
    run(tmp_path, program)
    assert the_file(tmp_path).is_file()


def test_functions_of_programs_are_not_kept(monkeypatch):
    own = Op("an_op_of_a_program(Tensor input)")
    own.place = (test_functions_of_programs_are_not_kept.__code__, 0)
    assert not code_cache._is_kept(own)
    assert code_cache._is_kept(REGISTRY["add"])
    other = Op(REGISTRY["add"].schema)
    other.place = REGISTRY["add"].place
    assert not code_cache._is_kept(other)


def test_room_for_what_is_used(tmp_path, monkeypatch):
    """With too many functions the file has those that the last process used."""
    monkeypatch.setenv("TORCHLITE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(code_cache, "_LARGEST", 1000)
    for made, used, expected in (
        ({"a": b"a" * 600, "b": b"b" * 300}, {}, {"a", "b"}),
        ({"c": b"c" * 600}, {"b": b"b" * 300}, {"c", "b"}),
        ({"d": b"d" * 100}, {}, {"d", "c", "b"}),
    ):
        monkeypatch.setattr(code_cache, "_made", made)
        monkeypatch.setattr(code_cache, "_used", used)
        code_cache._write()
        kept = code_cache._parse(the_file(tmp_path).read_bytes())
        assert set(kept) == expected
