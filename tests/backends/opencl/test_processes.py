"""Several processes and threads on one device, damaged caches, and forked children."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest

import torchlite as torch

WORK = """
    import sys
    import torchlite as torch
    torch.manual_seed(0)
    where = sys.argv[1]
    x = torch.arange(600, dtype=torch.float32).reshape(20, 30).to(where) / 600
    w = torch.ones(30, 5, device=where, requires_grad=True)
    loss = ((x @ w).tanh().softmax(-1) * x[:, :5]).sum() + (x.sum(0) * x.amax(0)).mean()
    loss = loss + x.t().exp().cumsum(0)[-1].mean()
    loss.backward()
    print(round(loss.item(), 4), round(w.grad.abs().sum().item(), 4))
"""


@pytest.fixture(autouse=True)
def where(opencl):
    return opencl


def start(code: str, *arguments: str, **variables: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TORCHLITE_KEEP_PROGRAMS": "1", **variables},
    )


def finished(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def test_two_processes_at_once_with_one_cold_cache(where, tmp_path):
    expected = finished(start(WORK, "cpu"))
    both = [start(WORK, where, TORCHLITE_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert [finished(process) for process in both] == [expected] * 2
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert kept and all(file.suffix in (".bin", ".json") for file in kept)  # nothing half written is left
    assert finished(start(WORK, where, TORCHLITE_CACHE_DIR=str(tmp_path))) == expected


def test_damaged_binaries_are_built_again(where, tmp_path):
    expected = finished(start(WORK, where, TORCHLITE_CACHE_DIR=str(tmp_path)))
    binaries = sorted(tmp_path.rglob("*.bin"))
    assert binaries
    for i, file in enumerate(binaries):
        whole = file.read_bytes()
        file.write_bytes((b"", whole[: len(whole) // 2], b"nonsense", whole[:-1], bytes(len(whole)))[i % 5])
    assert finished(start(WORK, where, TORCHLITE_CACHE_DIR=str(tmp_path))) == expected


def test_binaries_under_each_others_names_are_built_again(where, tmp_path):
    expected = finished(start(SMALL, where, TORCHLITE_CACHE_DIR=str(tmp_path)))
    first, *others = sorted(tmp_path.rglob("*.bin"))
    assert others
    content = first.read_bytes()
    for file in others:
        content, before = file.read_bytes(), content
        file.write_bytes(before)
    first.write_bytes(content)
    assert finished(start(SMALL, where, TORCHLITE_CACHE_DIR=str(tmp_path))) == expected


def test_cached_probes_with_a_changed_byte(where, tmp_path):
    expected = finished(start(SMALL, where, TORCHLITE_CACHE_DIR=str(tmp_path)))
    [file] = tmp_path.rglob("drivers-*.json")
    whole = file.read_text()
    file.write_text(whole.replace('"name": "', '"name": "X', 1))
    assert finished(start(SMALL, where, TORCHLITE_CACHE_DIR=str(tmp_path))) == expected and file.read_text() == whole


def test_partial_files_of_killed_processes_are_removed(where, tmp_path):
    from torchlite._settings import cache_files

    place = tmp_path / "some" / "name.bin"
    cache_files.write(place, b"1")
    old, new = place.with_suffix(".17.1.part"), place.with_suffix(".18.1.part")
    for left in (old, new):
        left.touch()
    os.utime(old, (1e9, 1e9))
    cache_files.write(place, b"2")
    assert (
        place.read_bytes() == b"2" and not old.exists() and new.exists()
    )  # another process may be writing the new one


@pytest.mark.parametrize("cache", [True, False], ids=["a folder for the cache", "no place that can be written"])
def test_a_home_that_cannot_be_written(where, tmp_path, cache):
    """Neither our cache nor PyOpenCL's nor a driver's has its place below the home."""
    (tmp_path / "file").touch()
    home = str(tmp_path / "file" / "home")
    variables = {"TORCHLITE_CACHE_DIR": str(tmp_path / "cache") if cache else "", "XDG_CACHE_HOME": home, "HOME": home}
    code = "import warnings; warnings.simplefilter('ignore'); " + SMALL
    process = start(code, where, **variables, POCL_CACHE_DIR="")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and not err, err
    assert out.strip() == "[2.0, 2.0, 2.0]"


UNREAD = """
    import sys
    import torchlite as torch
    x = torch.ones(300, 300, device=sys.argv[1])
    y = (x @ x).softmax(0)
"""
SMALL = "import sys, torchlite as torch; print((torch.ones(3, device=sys.argv[1]) + 1).tolist())"


def test_a_process_may_exit_with_unread_work(where, tmp_path):
    cold = {"TORCHLITE_CACHE_DIR": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    assert finished(start(UNREAD, where, **cold)) == ""


def test_a_cache_that_cannot_be_written(where, tmp_path):
    (tmp_path / "file").touch()
    assert finished(
        start(
            "import warnings; warnings.simplefilter('ignore')\n" + textwrap.dedent(WORK),
            where,
            TORCHLITE_CACHE_DIR=str(tmp_path / "file"),
        )
    ) == finished(start(WORK, where, TORCHLITE_CACHE_DIR=str(tmp_path)))


def test_threads_that_launch_at_once(where):
    """Kernels keep their arguments between calls: those of one thread must not reach the launch of another."""
    errors, results = [], {}

    def work(seed):
        try:
            x = torch.full((200,), float(seed), device=where)
            for _ in range(30):
                y = (x + seed) * 2 - x.exp().log()
            z = torch.full((7, 9), float(seed), device=where).sum(1).softmax(0).sum()
            results[seed] = (
                y.tolist(),
                round(z.item(), 4),
                (x.reshape(20, 10) @ torch.ones(10, 3, device=where)).tolist(),
            )
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for seed, (y, z, product) in results.items():
        assert y == pytest.approx([3 * seed] * 200, rel=1e-4) and z == 1 and product == [[10.0 * seed] * 3] * 20
    assert len(results) == 8


def test_gradients_in_threads(where):
    results = {}

    def work(seed):
        x = torch.full((50,), float(seed), device=where, requires_grad=True)
        for _ in range(10):
            x.grad = None
            (x * x).sum().backward()
        results[seed] = x.grad.tolist()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {seed: [2.0 * seed] * 50 for seed in range(4)}


FORKED = """
    import os, sys
    import torchlite as torch
    x = torch.ones(3, device=sys.argv[1])
    child = os.fork()
    if child == 0:
        uses = [lambda: x + 1, lambda: x.cpu(), lambda: print(x), lambda: torch.ones(2).to(sys.argv[1])]
        for use in (*uses, torch.opencl.synchronize, lambda: x.sum().item()):
            try:
                use()
            except RuntimeError as error:
                print(error, flush=True)
        print((torch.ones(2) + 1).tolist(), torch.opencl.is_available(), flush=True)
        del x
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (x + 1).tolist())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_raises(where):
    said = finished(start(FORKED, where)).splitlines()
    refused = (
        "Cannot re-initialize OpenCL in forked subprocess. To use OpenCL with multiprocessing, you must use the "
        "'spawn' start method"
    )
    assert said == [refused] * 6 + ["[2.0, 2.0] True", "0 [2.0, 2.0, 2.0]"]


BEFORE = """
    import os, sys
    import torchlite as torch
    print(torch.opencl.is_available(), torch.opencl.device_count() > 0, flush=True)
    child = os.fork()
    if child == 0:
        print((torch.ones(3, device=sys.argv[1]) + 1).tolist(), flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_before_the_device_was_used_may_use_it(where):
    assert finished(start(BEFORE, where)).splitlines() == ["True True", "[2.0, 2.0, 2.0]", "0"]


SPAWNED = """
    import multiprocessing, sys
    import torchlite as torch

    def double(values, where):
        return (torch.tensor(values, device=where) * 2).tolist()

    if __name__ == "__main__":
        torch.ones(2, device=sys.argv[1]).sum().item()
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(double, ([1.0, 2.0], sys.argv[1])))
"""


def test_a_spawned_child_uses_the_device(where, tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(textwrap.dedent(SPAWNED))
    done = subprocess.run(
        [sys.executable, str(script), where], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "[2.0, 4.0]", done.stderr


def test_a_program_may_use_pyopencl_first(where):
    """The loader reads its drivers once per process. The settings of pip's runtime then come too late, and an error
    says so.
    """
    said = finished(
        start(
            """
        import sys
        import pyopencl as cl
        try:
            cl.get_platforms()
        except cl.Error:
            pass
        import torchlite as torch
        try:
            print((torch.ones(2, device=sys.argv[1]) + 1).tolist())
        except RuntimeError as error:
            print(error)
    """,
            where,
        )
    )
    assert said == "[2.0, 2.0]" or "the OpenCL loader of this process does not see" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_pipes_in_the_cache_are_not_read(where, tmp_path):
    """A pipe would never end."""
    expected = finished(start(SMALL, where, TORCHLITE_CACHE_DIR=str(tmp_path)))
    for file in [found for found in tmp_path.rglob("*") if found.is_file()]:
        file.unlink()
        os.mkfifo(file)
    assert finished(start(SMALL, where, TORCHLITE_CACHE_DIR=str(tmp_path))) == expected


@pytest.mark.parametrize("field, value", [("keep", "ab"), ("devices", {}), ("failed", []), ("keep", {"a": 1})])
def test_cached_probes_with_wrong_types_are_ignored(field, value, tmp_path):
    from torchlite_backends.opencl import driver_discovery

    path = tmp_path / "drivers-1.json"
    driver_discovery._store_probe(path, driver_discovery.ProbeResult([], [], {}))
    assert driver_discovery._load_probe(path) is not None
    driver_discovery._store_probe(
        path, driver_discovery.ProbeResult(**{"keep": [], "devices": [], "failed": {}, field: value})
    )
    assert driver_discovery._load_probe(path) is None
