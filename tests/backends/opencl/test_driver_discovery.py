"""Drivers: found, tried in another process, remembered, ordered; a broken one is left out and reported. Most of it
needs no driver: the trials are played.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import torchlite as torch
from torchlite_backends.opencl import driver_discovery, driver_probe

GPU = {"platform": "Vendor B", "version": "1", "name": "card", "nth": 0, "kind": "gpu", "error": ""}
GPU2 = {**GPU, "nth": 1}
CPU = {"platform": "Vendor A", "version": "1", "name": "host", "nth": 0, "kind": "cpu", "error": ""}
BOARD = {"platform": "Vendor C", "version": "1", "name": "board", "nth": 0, "kind": "accelerator", "error": ""}
OTHER = {"platform": "Another", "version": "1", "name": "host", "nth": 0, "kind": "cpu", "error": ""}


@pytest.fixture(autouse=True)
def _own_memory(tmp_path, monkeypatch):
    """No outcome of other runs, and none left for them."""
    monkeypatch.setenv("TORCHLITE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TORCHLITE_OPENCL_PLATFORM", raising=False)
    monkeypatch.setattr(driver_discovery, "_find_pyopencl_folder", lambda: tmp_path)
    driver_discovery._load_or_run_probe.cache_clear()
    yield
    driver_discovery._load_or_run_probe.cache_clear()


def found(monkeypatch, *records, failed=None):
    monkeypatch.setattr(
        driver_discovery,
        "probe_result",
        lambda again=False: driver_discovery.ProbeResult([], list(records), failed or {}),
    )


def names():
    return [(record["platform"], record["nth"]) for record in driver_discovery.list_usable_devices()]


def test_order_is_gpus_accelerators_cpus_by_platform(monkeypatch):
    found(monkeypatch, CPU, OTHER, BOARD, GPU, GPU2)
    assert names() == [("Vendor B", 0), ("Vendor B", 1), ("Vendor C", 0), ("Another", 0), ("Vendor A", 0)]


def test_platforms_are_chosen_and_ordered_by_the_variable(monkeypatch):
    found(monkeypatch, CPU, OTHER, BOARD, GPU, {**GPU2, "error": "does not build"})
    monkeypatch.setenv("TORCHLITE_OPENCL_PLATFORM", "vendor a")
    assert names() == [("Vendor A", 0)]
    monkeypatch.setenv("TORCHLITE_OPENCL_PLATFORM", "another, VENDOR")
    assert names() == [("Another", 0), ("Vendor B", 0), ("Vendor C", 0), ("Vendor A", 0)]
    monkeypatch.setenv("TORCHLITE_OPENCL_PLATFORM", "nobody")
    assert names() == []
    assert (
        driver_discovery.why_not()
        == "TORCHLITE_OPENCL_PLATFORM=nobody names none of the platforms that work here: Another, Vendor A, Vendor "
        "B, Vendor C"
    )


def test_why_not_names_the_package_to_install(monkeypatch):
    found(monkeypatch)
    assert (
        driver_discovery.why_not().startswith("no OpenCL driver with a device was found; install one:")
        and "pip install intel-opencl-rt" in driver_discovery.why_not()
    )
    found(monkeypatch, {**CPU, "error": "no compiler"}, failed={"bad": "crashes (SIGSEGV)"})
    assert "bad: crashes (SIGSEGV); Vendor A, host: no compiler" in driver_discovery.why_not()
    monkeypatch.setattr(driver_discovery, "_find_pyopencl_folder", lambda: None)
    assert (
        driver_discovery.why_not() == "device 'opencl' needs PyOpenCL and a driver: pip install 'torchlite-nd[opencl]'"
    )
    assert driver_discovery.problems() == []


def test_availability_never_raises(monkeypatch):
    def broken():
        raise OSError("the disk is gone")

    monkeypatch.setattr(driver_discovery, "why_not", broken)
    assert (
        torch.opencl.is_available() is False
        and torch.opencl.device_count() == 0
        and torch.opencl.why_not() == "the disk is gone"
    )
    torch.opencl.manual_seed_all(0)


# -- trials -----------------------------------------------------------------------------


class Machine:
    """Drivers that fail alone or beside others; counts the trials."""

    def __init__(self, monkeypatch, *, fails=lambda names: "", linux="linux"):
        self.trials = []
        self.drivers = [driver_discovery.Driver(name, f"/lib/{name}.so") for name in "abc"]
        self.fails = fails
        monkeypatch.setattr(driver_discovery, "list_installed_drivers", lambda: self.drivers)
        monkeypatch.setattr(driver_discovery.sys, "platform", linux)
        monkeypatch.setattr(driver_discovery, "_probe_drivers", self.driver_probe)

    def driver_probe(self, chosen):
        self.trials.append("".join(d.name for d in chosen or ()))
        error = self.fails(self.trials[-1])
        return ([], error) if error else ([{**CPU, "platform": d.name} for d in chosen or ()], "")


def test_drivers_are_probed_at_once_and_results_are_cached(monkeypatch):
    machine = Machine(monkeypatch)
    assert [d["platform"] for d in driver_discovery.list_usable_devices()] == ["a", "b", "c"] and machine.trials == [
        "abc"
    ]
    driver_discovery._load_or_run_probe.cache_clear()  # another process
    assert len(driver_discovery.list_usable_devices()) == 3 and machine.trials == ["abc"]
    machine.drivers = machine.drivers[:2]  # a driver was removed
    driver_discovery._load_or_run_probe.cache_clear()
    assert len(driver_discovery.list_usable_devices()) == 2 and machine.trials == ["abc", "ab"]


def test_a_driver_that_crashes_is_left_out(monkeypatch):
    machine = Machine(monkeypatch, fails=lambda names: "crashes (SIGSEGV)" if "b" in names else "")
    assert [d["platform"] for d in driver_discovery.list_usable_devices()] == ["a", "c"] and machine.trials == [
        "abc",
        "a",
        "ab",
        "ac",
    ]
    assert driver_discovery.probe_result().keep == ["/lib/a.so", "/lib/c.so"] and driver_discovery.why_not() == ""
    machine.fails = lambda names: ""
    driver_discovery._load_or_run_probe.cache_clear()
    assert len(driver_discovery.list_usable_devices()) == 2 and len(machine.trials) == 4  # remembered
    assert driver_discovery.problems() == [] and machine.trials[4:] == ["abc"]  # asked for a report, it is tried again


def test_pyopencl_that_does_not_load(monkeypatch):
    machine = Machine(monkeypatch, fails=lambda names: "no PyOpenCL: ImportError: built for another NumPy")
    assert driver_discovery.why_not().startswith(
        "no OpenCL driver works here (PyOpenCL: cannot be imported (ImportError: built for another NumPy)); "
    ) and machine.trials == ["abc"]


def test_drivers_that_crash_beside_each_other(monkeypatch):
    machine = Machine(monkeypatch, fails=lambda names: "crashes (SIGABRT)" if {"a", "c"} <= set(names) else "")
    assert [d["platform"] for d in driver_discovery.list_usable_devices()] == ["a", "b"] and machine.trials == [
        "abc",
        "a",
        "ab",
        "abc",
    ]
    assert driver_discovery.problems() == [
        f"c (/lib/c.so): crashes (SIGABRT). Left out; mend the driver or {driver_discovery.INSTALL}"
    ]


def test_failures_are_tried_again_after_a_day(monkeypatch):
    machine = Machine(monkeypatch, fails=lambda names: "fails: busy" if "b" in names else "")
    assert len(driver_discovery.list_usable_devices()) == 2
    [file] = driver_discovery.cache_folder().glob("drivers-*.json")
    os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 2 * 86400))
    driver_discovery._load_or_run_probe.cache_clear()
    machine.fails = lambda names: ""
    assert len(driver_discovery.list_usable_devices()) == 3


def test_a_damaged_memory_is_written_anew(monkeypatch):
    machine = Machine(monkeypatch)
    driver_discovery.list_usable_devices()
    [file] = driver_discovery.cache_folder().glob("drivers-*.json")
    for text in ("", "{}", "[1]", '{"keep": 1'):
        file.write_text(text)
        driver_discovery._load_or_run_probe.cache_clear()
        assert len(driver_discovery.list_usable_devices()) == 3
    assert json.loads(file.read_text())["keep"] == ["/lib/a.so", "/lib/b.so", "/lib/c.so"] and len(machine.trials) == 5


def test_a_memory_that_is_not_as_it_was_written_is_written_anew(monkeypatch):
    """A letter changed, values of other types, the content of another file, deep nesting: none is believed."""
    machine = Machine(monkeypatch)
    driver_discovery.list_usable_devices()
    [file] = driver_discovery.cache_folder().glob("drivers-*.json")
    whole = file.read_text()
    content = json.loads(whole)
    wrong = [
        whole.replace("host", "hest", 1),
        json.dumps({**content, "devices": 5}),
        json.dumps({**content, "keep": {"a": 1}, "failed": []}),
        json.dumps({"keep": [], "devices": [], "failed": {}}),
        "[" * 100_000,
    ]
    for name, records in (
        ("drivers-other.json", content["devices"]),
        (file.name, [{**content["devices"][0], "nth": "0"}]),
    ):
        changed = {"keep": [], "devices": records, "failed": {}}
        wrong.append(json.dumps({**changed, "digest": driver_discovery._digest_cache_file(name, changed)}))
    for text in wrong:
        file.write_text(text)
        driver_discovery._load_or_run_probe.cache_clear()
        assert len(driver_discovery.list_usable_devices()) == 3
    assert file.read_text() == whole and len(machine.trials) == 1 + len(wrong)


def test_devices_that_are_not_there_are_looked_for_again(monkeypatch):
    """If the cache names a device that the loader does not list, the drivers are probed again."""
    machine = Machine(monkeypatch)
    assert len(driver_discovery.list_usable_devices()) == 3
    machine.fails = lambda names: "fails: removed" if "b" in names else ""
    monkeypatch.setattr(driver_discovery.driver_probe, "list_platforms", lambda folder, libraries: [])
    monkeypatch.setattr(
        driver_discovery.driver_probe,
        "iter_devices",
        lambda found: [({**CPU, "platform": name}, f"device {name}") for name in "ac"],
    )
    driver_discovery._find_devices.cache_clear()
    try:
        assert driver_discovery.devices() == ["device a", "device c"] and machine.trials == [
            "abc",
            "abc",
            "a",
            "ab",
            "ac",
        ]
    finally:
        driver_discovery._find_devices.cache_clear()


def test_one_driver_needs_no_folder(monkeypatch):
    def no_folder(**_):
        raise FileNotFoundError("No usable temporary directory")

    monkeypatch.setattr(driver_discovery.tempfile, "mkdtemp", no_folder)
    one, other = driver_discovery.Driver("a", "/lib/a.so"), driver_discovery.Driver("b", "/lib/b.so")
    with driver_discovery._IcdFolder([one]) as place:
        assert place == "/lib/a.so"
    with (
        pytest.raises(FileNotFoundError, match="No usable temporary directory"),
        driver_discovery._IcdFolder([one, other]),
    ):
        pass
    assert driver_discovery._probe_drivers([one, other])[1] == "could not be tried: No usable temporary directory"


def test_other_systems_ask_their_loader(monkeypatch):
    machine = Machine(monkeypatch, linux="win32")
    machine.drivers = []
    assert driver_discovery.list_usable_devices() == [] and machine.trials == [""]


@pytest.mark.parametrize(
    "body, expected",
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashes (SIGSEGV)"),
        ("print('device {}'); raise OSError('no such library')", "fails: OSError: no such library"),
        ("import time; time.sleep(60)", "gave no answer within 0.5 seconds"),
        ("print('no PyOpenCL: ImportError: initialization failed')", "no PyOpenCL: ImportError: initialization failed"),
        ("import os; os._exit(3)", "ends the process with status 3"),
        ("print('device ' + __import__('json').dumps({'platform': 'P'})); print('done')", ""),
    ],
)
def test_probe_errors(monkeypatch, tmp_path, body, expected):
    script = tmp_path / "script.py"
    script.write_text(body)
    monkeypatch.setattr(driver_probe, "__file__", str(script))
    if "sleep" in body:
        monkeypatch.setattr(driver_discovery, "_PROBE_TIMEOUT", 0.5)
    records, error = driver_discovery._probe_drivers([])
    assert error == expected and records == ([] if expected else [{"platform": "P"}])


# -- what is installed --------------------------------------------------------------------


def test_icd_files(monkeypatch, tmp_path):
    monkeypatch.setattr(driver_discovery.sys, "platform", "linux")
    library = tmp_path / "libx.so"
    library.touch()
    (tmp_path / "a.icd").write_text(f"{library}\n")
    (tmp_path / "b.icd").write_text("libvendor.so.1")
    (tmp_path / "c.icd").write_text("/not/there.so\n")
    (tmp_path / "d.icd").write_text("")
    (tmp_path / "e.icd").write_text("libx.so\n")  # beside the file: the same library again
    monkeypatch.setattr(
        driver_discovery,
        "find_intel_driver",
        lambda: driver_discovery.Driver("intel", "/x/libintelocl.so", ("/x/libtbb.so.12",)),
    )
    monkeypatch.setattr(driver_discovery, "_find_pyopencl_folder", lambda: None)
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    assert [d.library for d in driver_discovery.list_installed_drivers()] == [
        str(library),
        "libvendor.so.1",
        "/x/libintelocl.so",
    ]
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "b.icd"))
    assert [d.library for d in driver_discovery.list_installed_drivers()] == ["libvendor.so.1", "/x/libintelocl.so"]
    (tmp_path / "own.icd").write_text("libintelocl.so")  # the system has the runtime: pip's is not added
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "own.icd"))
    assert [d.library for d in driver_discovery.list_installed_drivers()] == ["libintelocl.so"]


def test_intels_runtime_is_located_in_any_prefix(monkeypatch, tmp_path):
    monkeypatch.setattr(driver_discovery, "_from_package_metadata", list)
    for prefix in ("user", "system"):
        (tmp_path / prefix / "lib").mkdir(parents=True)
    monkeypatch.setattr(driver_discovery, "_install_prefixes", lambda: [tmp_path / "user", tmp_path / "system"])
    assert driver_discovery.find_intel_driver() is None
    for name in ("libintelocl.so", "libtbb.so.12"):
        (tmp_path / "system/lib" / name).touch()
    driver = driver_discovery.find_intel_driver()
    assert (
        driver
        and driver.library == str(tmp_path / "system/lib/libintelocl.so")
        and driver.before == (str(tmp_path / "system/lib/libtbb.so.12"),)
    )


# -- with real drivers ----------------------------------------------------------------------


def python(code: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_questions_load_no_pyopencl_and_leave_no_trace(opencl, tmp_path):
    said = python(
        """
        import os, sys, tempfile
        before = dict(os.environ)
        import torchlite as torch
        print(torch.opencl.is_available(), torch.opencl.device_count() > 0, 'pyopencl' in sys.modules)
        torch.ones(2, device="opencl").sum().item()
        changed = {n for n in before.keys() | os.environ.keys() if before.get(n) != os.environ.get(n)}
        changed -= {"PYOPENCL_HOME"}
        print(changed or None, [f for f in os.listdir(tempfile.gettempdir()) if f.startswith("torchlite-opencl-")])
    """,
        TMPDIR=str(tmp_path),
    )
    assert said.split("\n")[:2] == ["True True False", "None []"]


def test_a_broken_driver_beside_the_good_ones(opencl, tmp_path, monkeypatch):
    """A library that ends the process when it is loaded: the others work, and info names it."""
    compiler = next(
        (c for c in ("cc", "gcc", "clang") if any(Path(p, c).exists() for p in os.environ["PATH"].split(":"))), None
    )
    if compiler is None:
        pytest.skip("no C compiler to make a broken driver with")
    source, library, vendors = tmp_path / "bad.c", tmp_path / "libbad.so", tmp_path / "vendors"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void load(void) { abort(); }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    vendors.mkdir()
    monkeypatch.undo()
    for driver in driver_discovery.list_installed_drivers():
        (vendors / f"{len(list(vendors.iterdir()))}.icd").write_text(driver.library)
    (vendors / "0-bad.icd").write_text(str(library))
    said = python(
        """
        import torchlite as torch
        print(torch.opencl.device_count(), torch.ones(3, device="opencl").sum().item())
        from torchlite._cli.info import format_report
        print(format_report())
    """,
        OCL_ICD_VENDORS=str(vendors),
        TORCHLITE_CACHE_DIR=str(tmp_path),
    )
    assert said.startswith(f"{torch.opencl.device_count()} 3.0")
    assert f"left out: 0-bad ({library}): crashes (SIGABRT). Left out; mend the driver" in said


def test_drivers_of_processors_are_no_accelerator_unless_asked_for(monkeypatch):
    found(monkeypatch, CPU, OTHER)
    assert not driver_discovery.is_accelerator()
    monkeypatch.setenv("TORCHLITE_OPENCL_PLATFORM", "vendor")
    assert driver_discovery.is_accelerator()
    monkeypatch.delenv("TORCHLITE_OPENCL_PLATFORM")
    for other in (GPU, BOARD):
        found(monkeypatch, CPU, other)
        assert driver_discovery.is_accelerator()
    found(monkeypatch, CPU, {**GPU, "error": "does not build"})
    assert not driver_discovery.is_accelerator()


def test_torch_accelerator_asks_the_backend(monkeypatch):
    from torchlite._device.streams import ACCELERATORS
    from torchlite._dispatch import backend_registry

    class Backend:
        says = False

        def why_not(self):
            return ""

        def device_count(self):
            return 1

        def is_accelerator(self):
            return self.says

    backend = Backend()
    monkeypatch.setattr(backend_registry, "backend_of", lambda name: backend)
    monkeypatch.setattr(ACCELERATORS["cuda"], "is_available", lambda: False)
    assert not torch.accelerator.is_available() and torch.accelerator.current_accelerator() is None
    assert torch.accelerator.device_count() == 0 and torch.opencl.is_available()
    backend.says = True
    assert torch.accelerator.current_accelerator() == torch.device("opencl")
    backend.says = False
    torch.set_default_device("opencl")
    try:
        assert torch.accelerator.is_available() and torch.accelerator.device_count() == 1
    finally:
        torch.set_default_device(None)
