"""The cache of compiled kernels takes only what this user or root wrote, and no damage in it ends a process."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import warnings
from pathlib import Path

import pytest

from torchlite._settings import cache_files, temporary_folders
from torchlite_backends.cc import cxx_compiler, load_library, program_build
from torchlite_backends.device_runtime.core import program_cache

ROOT = Path(__file__).resolve().parents[2]
STRANGER = 65534
PROGRAM = 'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }'
EVIL = 'extern "C" __attribute__((visibility("default"))) int answer() { return 666; }'
compiled = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason="no C++ compiler")
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no user ids here")
superuser = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache; what other tests were warned of is forgotten."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TORCHLITE_CACHE_DIR", str(folder))
    cache_files._warn_once_per_folder.cache_clear()
    program_cache._warn_once.cache_clear()
    return folder


@pytest.fixture(scope="module")
def libraries() -> dict[str, bytes]:
    return (
        {text: cxx_compiler.compile_program(text, "a.so") for text in (PROGRAM, EVIL)}
        if not cxx_compiler.why_not()
        else {}
    )


def planted(path: Path, data: bytes) -> Path:
    """A file of the cache as whoever knows its form would write it: with a valid digest."""
    for folder in reversed([p for p in path.parents if not p.exists()]):
        folder.mkdir(mode=0o700)
    path.write_bytes(data + program_cache.digest_binary(path.name, data))
    path.chmod(0o600)
    return path


def python(code: str, cache: Path, **more: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join((str(ROOT), str(ROOT / "backends")))
    environment = {**os.environ, "PYTHONPATH": path, "TORCHLITE_CACHE_DIR": str(cache), **more}
    command = [sys.executable, "-W", "always", "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def modes(folder: Path) -> set[tuple[str, int]]:
    return {("folder" if p.is_dir() else "file", stat.S_IMODE(p.lstat().st_mode)) for p in (folder, *folder.rglob("*"))}


def refuses(path: Path, word: str) -> None:
    """Neither the planted library nor its bytes come from the cache, one warning names the place, and the right
    program runs.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert program_build.open_cached(path) is None
        assert cache_files.read(path) is None
        assert program_build.load_program(PROGRAM).answer() == 42
        assert program_build.load_program(PROGRAM).answer() == 42
    assert word in str(told[0].message)
    assert len([w for w in told if "compiled kernels" in str(w.message)]) == 1


# -- what is written ----------------------------------------------------------------------


@posix
@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077, 0o777], ids=oct)
def test_files_and_folders_are_this_users_alone_whatever_the_umask(cache, mask):
    before = os.umask(mask)
    try:
        program_cache.store_binary(program_cache.program_cache_folder("opencl") / ("ab" * 32), b"binary")
        cache_files.write(program_cache.program_cache_folder("cc") / "ab" / "a.so", b"library")
    finally:
        os.umask(before)
    assert modes(cache) == {("folder", 0o700), ("file", 0o600)}
    assert program_cache.load_binary(program_cache.program_cache_folder("opencl") / ("ab" * 32)) == b"binary"


@posix
def test_links_at_temporary_names_are_not_followed(cache, tmp_path, monkeypatch):
    victim, place = tmp_path / "victim", program_cache.program_cache_folder("cc") / "a.so"
    victim.write_text("untouched")
    cache_files.write(place, b"1")
    monkeypatch.setattr(cache_files.os, "urandom", bytes)
    (place.parent / f".a.{'0' * 16}.part").symlink_to(victim)
    with pytest.raises(FileExistsError):
        cache_files.write(place, b"2")
    assert victim.read_text() == "untouched" and place.read_bytes() == b"1"


@posix
def test_a_link_in_a_files_place_is_replaced_and_not_followed(cache, tmp_path):
    victim, place = tmp_path / "victim", program_cache.program_cache_folder("cc") / "a.so"
    victim.write_text("untouched")
    place.parent.mkdir(parents=True, mode=0o700)
    for folder in (cache, cache / "torchlite", place.parent):
        folder.chmod(0o700)
    place.symlink_to(victim)
    assert cache_files.read(place) is None
    cache_files.write(place, b"2")
    assert victim.read_text() == "untouched" and not place.is_symlink() and cache_files.read(place) == b"2"


def test_a_failed_write_leaves_nothing(cache, monkeypatch):
    place = program_cache.program_cache_folder("cc") / "a.so"
    cache_files.write(place, b"1")

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        cache_files.write(place, b"2")
    assert [p.name for p in place.parent.iterdir()] == ["a.so"] and place.read_bytes() == b"1"


def test_many_threads_write_and_read_one_file(cache):
    place, contents = program_cache.program_cache_folder("cc") / "a.so", [bytes([n]) * 100_000 for n in range(8)]
    cache_files.write(place, contents[0])
    wrong = []

    def work(content: bytes) -> None:
        for _ in range(30):
            cache_files.write(place, content)
            if cache_files.read(place) not in contents:
                wrong.append(content[0])

    threads = [threading.Thread(target=work, args=(c,)) for c in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and [p.name for p in place.parent.iterdir()] == ["a.so"]


@compiled
def test_several_processes_build_one_program_at_once(cache):
    code = f"from torchlite_backends.cc import program_build; print(program_build.load_program({PROGRAM!r}).answer())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "backends")))}
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(4)
    ]
    assert [process.communicate(timeout=120)[0] for process in started] == ["42\n"] * 4
    assert len([p for p in cache.rglob("*") if p.is_file()]) == 1


# -- what strangers wrote -------------------------------------------------------------------


@compiled
@superuser
@pytest.mark.parametrize("which", range(5))
def test_files_owned_by_another_user_are_not_loaded(cache, libraries, which):
    """The file, or any folder from the cache's root down."""
    path = planted(program_build.cache_path(PROGRAM), libraries[EVIL])
    owned = [path, path.parent, path.parent.parent, cache / "torchlite", cache][which]
    os.chown(owned, STRANGER, STRANGER)
    refuses(path, "belongs to another user")


@compiled
@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720, 0o1777], ids=oct)
@pytest.mark.parametrize("which", range(4))
def test_files_writable_by_others_are_not_loaded(cache, libraries, which, mode):
    path = planted(program_build.cache_path(PROGRAM), libraries[EVIL])
    opened = [path, path.parent, path.parent.parent, cache / "torchlite"][which]
    opened.chmod(mode)
    refuses(path, "can be written by others")


@compiled
@posix
def test_a_cache_for_all_is_refused_unless_it_is_sticky(cache, libraries):
    path = planted(program_build.cache_path(PROGRAM), libraries[EVIL])
    cache.chmod(0o777)
    refuses(path, "can be written by others")
    path.unlink()
    cache.chmod(0o1777)
    program_build.load_program(PROGRAM)
    assert path.exists() and program_build.open_cached(path).answer() == 42


@compiled
@superuser
def test_links_of_others_to_folders_are_not_followed(cache, libraries, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    planted(
        elsewhere / "torchlite" / program_build.cache_path(PROGRAM).relative_to(cache / "torchlite"), libraries[EVIL]
    )
    cache.symlink_to(elsewhere)
    os.lchown(cache, STRANGER, STRANGER)
    refuses(program_build.cache_path(PROGRAM), "is a link of another user")
    cache.unlink()
    cache.symlink_to(elsewhere)  # the user's own link
    assert program_build.open_cached(program_build.cache_path(PROGRAM)).answer() == 666


@pytest.fixture
def above(tmp_path, monkeypatch):
    """A folder above the cache, `outer`, and the cache's place in it."""
    outer = tmp_path / "outer"
    outer.mkdir(mode=0o755)
    monkeypatch.setenv("TORCHLITE_CACHE_DIR", str(outer / "inner" / "cache"))
    return outer


def unused(word: str) -> None:
    """Nothing is read from the cache or written to it, one warning gives the reason, and the right program runs."""
    path = program_build.cache_path(PROGRAM)
    refuses(path, word)
    with pytest.raises(cache_files.NotTrustedError, match=word):
        cache_files.write(path, b"1")
    with pytest.raises(cache_files.NotTrustedError, match=word):
        cache_files.remove(path)


@compiled
@superuser
@pytest.mark.parametrize("variable", ["TORCHLITE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_a_cache_below_another_users_folder_is_not_used(above, libraries, variable, monkeypatch):
    """It may put another folder in the cache's place at any time."""
    monkeypatch.delenv("TORCHLITE_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(variable, str(above / "inner" / "cache"))
    planted(program_build.cache_path(PROGRAM), libraries[EVIL])
    os.chown(above, STRANGER, STRANGER)
    unused("belongs to another user")


@compiled
@superuser
@pytest.mark.parametrize("target", ["whole", "relative", "last"])
def test_a_cache_below_another_users_link_is_not_used(above, libraries, tmp_path, target):
    victim = tmp_path / "victim"
    (victim / "cache").mkdir(mode=0o700, parents=True)
    above.chmod(0o1777)
    link = above / "inner"
    if target == "last":  # a link to a link
        (above / "second").symlink_to(victim)
        os.lchown(above / "second", STRANGER, STRANGER)
        link.symlink_to("second")
    else:
        link.symlink_to(victim if target == "whole" else "../victim")
        os.lchown(link, STRANGER, STRANGER)
    unused("is a link of another user")
    assert not list((victim / "cache").iterdir())


@compiled
@posix
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757], ids=oct)
@pytest.mark.parametrize("which", ["outer", "inner"])
def test_a_cache_below_a_folder_that_others_may_write_is_not_used(above, libraries, which, mode):
    planted(program_build.cache_path(PROGRAM), libraries[EVIL])
    changed = above if which == "outer" else above / "inner"
    if os.geteuid() and mode == 0o775:
        pytest.skip("the group may be this user's own")
    changed.chmod(mode)
    unused("can be written by others")
    changed.chmod(mode | 0o1000)  # as /tmp
    assert program_build.open_cached(program_build.cache_path(PROGRAM)).answer() == 666


@compiled
@posix
def test_symlinks_of_the_user_above_the_cache_are_followed(above, libraries, tmp_path):
    """Whole and relative ones, with steps up, and links to links; loops end."""
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (above / "one").symlink_to("../real/./deep/../deep")
    (above / "inner").symlink_to(above / "one")
    program_build.load_program(PROGRAM)
    assert (
        tmp_path / "real" / "deep" / "cache" / program_build.cache_path(PROGRAM).relative_to(above / "inner" / "cache")
    ).exists()
    assert program_build.open_cached(program_build.cache_path(PROGRAM)).answer() == 42
    (above / "inner").unlink()
    (above / "inner").symlink_to("inner")
    with pytest.raises(OSError, match="symbolic links"):
        cache_files.write(program_build.cache_path(PROGRAM), b"1")
    assert cache_files.read(program_build.cache_path(PROGRAM)) is None


@posix
def test_opened_folders_are_closed(above):
    place = program_cache.program_cache_folder("cc") / "a.so"
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        cache_files.write(place, b"1")
        assert cache_files.read(place) == b"1"
    above.chmod(0o777)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cache_files.read(place) is None
    assert len(os.listdir("/dev/fd")) == before


@superuser
def test_a_private_group_may_write_above_the_cache(above):
    """Of an ordinary user's name and without other members; root has none."""
    import grp
    import pwd

    user = pwd.getpwuid(STRANGER)
    mode = os.stat_result((0o40775, 0, 0, 0, STRANGER, user.pw_gid, 0, 0, 0, 0))
    root = os.stat_result((0o40775, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    with pytest.raises(cache_files.NotTrustedError):
        cache_files._check_above(root, "/x", {0})
    child = os.fork()
    if not child:
        os.setgid(user.pw_gid)
        os.setuid(STRANGER)
        own = grp.struct_group((user.pw_name, "x", user.pw_gid, []))
        shared = grp.struct_group((user.pw_name, "x", user.pw_gid, ["somebody"]))
        found = []
        for group in (own, shared):
            grp.getgrgid = lambda number, group=group: group
            try:
                cache_files._check_above(mode, "/x", {0, STRANGER})
                found.append(True)
            except cache_files.NotTrustedError:
                found.append(False)
        os._exit(0 if found == [True, False] else 1)
    assert os.waitpid(child, 0)[1] == 0


@compiled
@superuser
def test_code_is_not_built_in_a_folder_that_another_user_can_replace(cache, tmp_path):
    """Below a TMPDIR of another user NumPy's kernels serve, with one warning."""
    (tmp_path / "theirs" / "tmp").mkdir(parents=True)
    os.chown(tmp_path / "theirs", STRANGER, STRANGER)
    done = python(
        """
        import torchlite as torch
        x = torch.ones(300, 300)
        print(torch.nn.functional.gelu(x).sum().item() > 0, x.cumsum(0).sum().item(), torch.softmax(x, 0).sum().item())
        """,
        cache, TORCHLITE_CPU_KERNELS="cc", TMPDIR=str(tmp_path / "theirs" / "tmp"),
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.startswith("True 13545000.0 "), done.stdout + done.stderr
    assert done.stderr.count("kernels cannot be built, NumPy's serve") == 1, done.stderr
    assert not list(cache.rglob("*.so"))


@compiled
@superuser
@pytest.mark.parametrize("place", ["new", "none"])
def test_kernels_after_a_process_became_another_user(tmp_path, place):
    """They are built in a new folder of that user's; where it can make none NumPy's serve, with one warning."""
    folder = Path(tempfile.mkdtemp(prefix="becomes-"))
    folder.chmod(0o1777 if place == "new" else 0o755)
    (folder / "cache").mkdir(mode=0o700)
    os.chown(folder / "cache", STRANGER, STRANGER)
    try:
        done = python(
            """
            import os, grp, pwd, traceback
            import torchlite as torch
            torch.nn.functional.gelu(torch.randn(300, 300))
            os.setgid(65534)
            os.setuid(65534)
            x = torch.ones(300, 300)
            y = torch.nn.functional.gelu(torch.randn(300, 300)).softmax(-1)
            print(y.sum().item() > 0, x.cumsum(0).sum().item())
            """,
            folder / "cache", TORCHLITE_CPU_KERNELS="cc", TMPDIR=str(folder), HOME="/",
        )  # fmt: skip
        assert done.returncode == 0 and done.stdout == "True 13545000.0\n", done.stdout + done.stderr
        assert done.stderr.count("kernels cannot be built, NumPy's serve") == (place == "none"), done.stderr
        assert bool(list((folder / "cache").rglob("*.so"))) == (place == "new")
    finally:
        while folder.exists():  # the shells of the process remove its folders at the same time
            shutil.rmtree(folder, ignore_errors=True)


@compiled
@posix
def test_hard_links_and_fifos_are_not_loaded(cache, libraries, tmp_path):
    path = planted(program_build.cache_path(PROGRAM), libraries[EVIL])
    os.link(path, tmp_path / "second")
    assert program_build.open_cached(path) is None
    path.unlink()
    os.mkfifo(path)
    assert program_build.open_cached(path) is None and program_build.load_program(PROGRAM).answer() == 42
    assert program_build.open_cached(path).answer() == 42


@superuser
@pytest.mark.parametrize("name", ["opencl", "cuda"])
def test_binaries_for_devices_of_another_user_are_not_loaded(cache, name):
    path = program_cache.program_cache_folder(name) / ("ab" * 32)
    program_cache.store_binary(path, b"binary")
    (file,) = cache.rglob("*.bin")
    os.chown(file, STRANGER, STRANGER)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert program_cache.load_binary(path) is None
    file.parent.chmod(0o777)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program_cache.store_binary(path, b"binary")
    assert file.stat().st_uid == STRANGER


@compiled
@superuser
def test_an_ordinary_user_loads_a_cache_owned_by_root(cache, libraries, tmp_path):
    """A cache of the administrator's, which users cannot write; one that root owns and all may write is refused."""
    path = planted(program_build.cache_path(PROGRAM), libraries[PROGRAM])
    for folder in (cache, *(p for p in cache.rglob("*") if p.is_dir())):
        folder.chmod(0o755)
    path.chmod(0o644)
    for folder in (tmp_path, *tmp_path.parents):
        if stat.S_IMODE(folder.stat().st_mode) & 0o055 != 0o055:
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) | 0o055)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.setgid(STRANGER)
        os.setuid(STRANGER)
        first = cache_files.read(path) is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program_cache.store_binary(program_cache.program_cache_folder("cc") / "new", b"1")  # a warning, no error
        os.write(write, b"yes" if first else b"no")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"yes"
    os.close(read)
    os.close(write)


# -- damage -----------------------------------------------------------------------------------


@compiled
def test_a_file_that_changes_after_its_check_is_not_loaded(cache, libraries, monkeypatch):
    """By a new file of its name, and in its place."""
    path, original = (
        planted(program_build.cache_path(PROGRAM), libraries[PROGRAM]),
        load_library.load_library_from_bytes,
    )
    evil = libraries[EVIL] + program_cache.digest_binary(path.name, libraries[EVIL])
    for swap in (lambda: path.write_bytes(evil), lambda: cache_files.write(path, evil)):
        load_library._libraries.clear()
        planted(path, libraries[PROGRAM])

        def load_bytes(data, name, swap=swap):
            swap()
            return original(data, name)

        monkeypatch.setattr(load_library, "load_library_from_bytes", load_bytes)
        assert program_build.open_cached(path).answer() == 42
        assert path.read_bytes() == evil


@compiled
def test_a_library_under_anothers_name_is_not_loaded(cache, libraries):
    data, path = libraries[EVIL], program_build.cache_path(PROGRAM)
    planted(path, data).write_bytes(data + program_cache.digest_binary("other.so", data))
    assert program_build.open_cached(path) is None
    path.write_bytes(data + hashlib.sha256(data).digest())
    assert program_build.open_cached(path) is None and program_build.load_program(PROGRAM).answer() == 42


@compiled
def test_truncated_libraries_with_valid_digests_are_built_again(cache, libraries):
    whole = libraries[PROGRAM]
    lengths = sorted({0, 1, 15, 16, 63, 64, 4096, 8192, len(whole) - 1, *range(0, len(whole), 501)})
    code = f"""
        from torchlite_backends.cc import cxx_compiler, program_build
        from torchlite_backends.device_runtime.core import program_cache
        from torchlite._settings import cache_files
        path, whole = program_build.cache_path({PROGRAM!r}), cxx_compiler.compile_program({PROGRAM!r}, "a.so")
        for length in {lengths}:
            cache_files.write(path, whole[:length] + program_cache.digest_binary(path.name, whole[:length]))
            assert program_build.load_program({PROGRAM!r}).answer() == 42, length
        print("alive")
    """
    done = python(code, cache)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@compiled
def test_200_damaged_files_are_built_again(cache, libraries):
    code = f"""
        import random
        from torchlite_backends.cc import cxx_compiler, program_build
        path, text, random = program_build.cache_path({PROGRAM!r}), {PROGRAM!r}, random.Random(34)
        assert program_build.load_program(text).answer() == 42
        whole, found = path.read_bytes(), 0
        for i in range(200):
            data = bytearray(whole)
            for _ in range(random.choice((1, 3, 100))):
                data[random.randrange(len(data))] ^= random.randrange(1, 256)
            if i % 4 == 0:
                data = data[: random.randrange(len(data))]
            path.write_bytes(data)
            found += program_build.open_cached(path) is not None
        assert program_build.load_program(text).answer() == 42 and program_build.open_cached(path) is not None
        print(found)
    """
    done = python(code, cache)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


@compiled
def test_truncated_libraries_are_detected(libraries):
    whole, random_ = libraries[PROGRAM], random.Random(34)
    assert load_library.is_complete(whole)
    ends = [struct.unpack_from("<IIQQQQQQ", whole, struct.unpack_from("<Q", whole, 32)[0] + 56 * i) for i in range(20)]
    last = max(s[2] + s[5] for s in ends if s[0] == 1)
    assert not any(load_library.is_complete(whole[: random_.randrange(last)]) for _ in range(500))
    for _ in range(2000):  # damaged headers are no error
        data = bytearray(whole)
        data[random_.randrange(64 + 56 * 11)] ^= random_.randrange(1, 256)
        assert isinstance(load_library.is_complete(bytes(data)), bool)


@compiled
def test_the_same_bytes_are_one_library_and_others_are_another(libraries):
    """Also where the descriptors' numbers are given anew, for many."""
    assert load_library.load_library_from_bytes(libraries[PROGRAM], "a.so") is load_library.load_library_from_bytes(
        libraries[PROGRAM], "b.so"
    )
    for number in range(20):
        data = cxx_compiler.compile_program(PROGRAM.replace("42", str(number)), "a.so")
        assert load_library.load_library_from_bytes(data, "a.so").answer() == number
    assert load_library.load_library_from_bytes(libraries[EVIL], "a.so").answer() == 666


@compiled
@pytest.mark.parametrize("refused", ["memory", "loading"])
def test_without_memory_that_code_runs_from(libraries, monkeypatch, refused):
    monkeypatch.setattr(load_library, "_libraries", {})

    def none(*arguments):
        return None

    monkeypatch.setattr(load_library, "_make_sealed_memfd" if refused == "memory" else "_load_from_memfd", none)
    assert load_library.load_library_from_bytes(libraries[PROGRAM], "a.so").answer() == 42
    assert stat.S_IMODE(os.stat(temporary_folders.process_folder()).st_mode) == 0o700


@compiled
def test_a_cache_that_cannot_be_written_still_builds(cache, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHLITE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="cannot be kept"):
        assert program_build.load_program(PROGRAM).answer() == 42


# -- folders of others that torchlite sets ------------------------------------------------------


@posix
def test_caches_of_drivers_that_others_may_write_are_not_used(tmp_path, monkeypatch):
    """PoCL loads libraries from its folder, CuPy binaries from its own."""
    from torchlite_backends.cupy import availability
    from torchlite_backends.opencl import driver_discovery

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("POCL_CACHE_DIR", raising=False)
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cupy"))
    monkeypatch.setattr(os, "environ", dict(os.environ) | {})
    monkeypatch.delitem(os.environ, "CUPY_CACHE_IN_MEMORY", raising=False)
    driver_discovery._make_driver_environment.cache_clear()
    try:
        assert driver_discovery._make_driver_environment() == {}
        availability._disable_unsafe_kernel_cache()
        assert "CUPY_CACHE_IN_MEMORY" not in os.environ
        (tmp_path / "home" / "pocl").chmod(0o777)
        (tmp_path / "cupy").mkdir()
        (tmp_path / "cupy").chmod(0o777)
        driver_discovery._make_driver_environment.cache_clear()
        with pytest.warns(UserWarning, match="can be written by others"):
            availability._disable_unsafe_kernel_cache()
        with pytest.warns(UserWarning, match="can be written by others"):
            found = driver_discovery._make_driver_environment()
        assert found == {"POCL_CACHE_DIR": str(driver_discovery.cache_folder() / "pocl")}
        assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"
    finally:
        driver_discovery._make_driver_environment.cache_clear()
