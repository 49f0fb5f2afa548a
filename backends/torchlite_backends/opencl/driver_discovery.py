"""Discovery of OpenCL devices: drivers, their probe results, and a fixed device order.

Intel's runtime from pip is included. Drivers are probed once, in a subprocess (`driver_probe`), and the results are
cached on disk until a driver changes. PyOpenCL is not imported before a device is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from torchlite._settings import cache_files, fork_locks, temporary_folders
from torchlite_backends.device_runtime.core.program_cache import program_cache_folder

from . import driver_probe

_INTEL_NEEDS = ("libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so", "libtbb.so.12")
_KINDS = ("gpu", "accelerator", "cpu")
_NO_PYOPENCL = "no PyOpenCL: "
_PROBE_TIMEOUT = 60
_RETRY_SECONDS = 24 * 3600  # failures are probed again after a day: the machine may have been busy
INSTALL = (
    "install one: your GPU vendor's; for CPUs, on x86-64 Linux pip install intel-opencl-rt intel-cmplr-lib-rt, on "
    "Debian apt install pocl-opencl-icd"
)
_lock = fork_locks.reinit_after_fork(threading.RLock())


def cache_folder() -> Path:
    """Return the folder of built programs and probe results."""
    return program_cache_folder("opencl")


# -- drivers ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Driver:
    """Driver library as its .icd file names it, and the libraries to load before it."""

    name: str
    library: str
    before: tuple[str, ...] = ()


def _find_pyopencl_folder() -> Path | None:
    """Return PyOpenCL's folder without importing it; None if it is not installed."""
    spec = importlib.util.find_spec("pyopencl")
    return Path(spec.origin).parent if spec and spec.origin else None


def _list_icd_files() -> list[Path]:
    """Return the .icd files that the OpenCL loader would read, and those of PyOpenCL's wheel."""
    chosen = os.environ.get("OCL_ICD_VENDORS")
    if chosen:
        folders = [Path(chosen)]
    else:
        folders = [Path(os.environ.get("OPENCL_VENDOR_PATH") or "/etc/OpenCL/vendors")]
        if Path(sys.prefix, "conda-meta").is_dir():
            folders.append(Path(sys.prefix, "etc/OpenCL/vendors"))
    home = _find_pyopencl_folder()
    if home:
        folders.append(home / ".libs")
    return [file for folder in folders for file in ([folder] if folder.is_file() else sorted(folder.glob("*.icd")))]


def _read_driver_paths(file: Path) -> list[Driver]:
    try:
        lines = file.read_text(errors="replace").split("\n") if file.suffix == ".icd" else [str(file)]
    except OSError:
        return []
    found = []
    for line in map(str.strip, lines):
        beside = file.parent / line
        library = str(beside) if line and "/" not in line and beside.is_file() else line
        if library and (not os.path.isabs(library) or os.path.exists(library)):
            found.append(Driver(file.stem, library))
    return found


def _install_prefixes() -> list[Path]:
    """Return prefixes where pip may install a package's `lib` folder: the environment's, the system's and the
    user's.
    """
    places = [sys.prefix, sysconfig.get_path("data"), sys.base_prefix, site.getuserbase()]
    return [Path(p) for p in dict.fromkeys(places) if p]


def _from_package_metadata() -> list[Path]:
    """Return the path of Intel's library from package metadata: it differs only after `pip install --target`."""
    try:
        files = importlib.metadata.files("intel-opencl-rt") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Path(str(f.locate())).resolve() for f in files if f.name == "libintelocl.so"]


def find_intel_driver() -> Driver | None:
    """Return the CPU driver of the pip package intel-opencl-rt, whose own .icd file has a wrong path."""
    for library in [*(p / "lib" / "libintelocl.so" for p in _install_prefixes()), *_from_package_metadata()]:
        if library.exists():
            needs = (library.parent / name for name in _INTEL_NEEDS)
            return Driver("pip's intel-opencl-rt", str(library), tuple(str(n) for n in needs if n.exists()))
    return None


def list_installed_drivers() -> list[Driver]:
    """Return the drivers of this machine, each library once; empty if the system does not use .icd files."""
    if not sys.platform.startswith("linux"):
        return []
    found = [driver for file in _list_icd_files() for driver in _read_driver_paths(file)]
    if not any("libintelocl.so" in driver.library for driver in found):
        intel = find_intel_driver()
        found += [intel] if intel else []
    return list({driver.library: driver for driver in found}.values())


class _IcdFolder:
    """Context manager: temporary folder with an .icd file for each driver.

    If no folder can be created, the path of the only driver's library, which the loader also accepts; OSError for
    several.
    """

    def __init__(self, drivers: list[Driver]):
        self.drivers, self.path = drivers, ""

    def __enter__(self) -> str:
        try:
            self.path = tempfile.mkdtemp(dir=temporary_folders.process_folder())
            for i, driver in enumerate(self.drivers):
                Path(self.path, f"{i:02}.icd").write_text(driver.library + "\n")
        except OSError:
            if len(self.drivers) == 1:
                return self.drivers[0].library
            raise
        return self.path

    def __exit__(self, *exc) -> None:
        if self.path:
            shutil.rmtree(self.path, ignore_errors=True)


def _is_private_cache_folder(path: str) -> bool:
    """True if a driver may cache programs in a folder: only this user can write it."""
    return cache_files.is_trusted(Path(path), make=True) and os.access(path, os.W_OK)


@functools.cache
def _make_driver_environment() -> dict[str, str]:
    """Return environment variables that drivers need.

    PoCL shows no device if it cannot write its cache. If its default folder is read-only, or writable by other users,
    it gets one in our cache folder, or a temporary one.
    """
    own = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if os.environ.get("POCL_CACHE_DIR") or _is_private_cache_folder(os.path.join(own, "pocl")):
        return {}
    place = str(cache_folder() / "pocl")
    if not _is_private_cache_folder(place):
        try:
            place = tempfile.mkdtemp(dir=temporary_folders.process_folder())
        except OSError:
            return {}
    return {"POCL_CACHE_DIR": place}


# -- trials -----------------------------------------------------------------------------


@dataclasses.dataclass
class ProbeResult:
    """Probe results: the drivers to load (by library), a record for each device, and reasons why others are
    excluded.
    """

    keep: list[str]
    devices: list[dict[str, Any]]
    failed: dict[str, str]

    def errors(self) -> list[str]:
        """Return a sentence for each driver and device that cannot be used."""
        return [
            *(f"{name}: {why}" for name, why in self.failed.items()),
            *(f"{d['platform']}, {d['name']}: {d['error']}" for d in self.devices if d["error"]),
        ]


def _probe_drivers(drivers: list[Driver] | None) -> tuple[list[dict[str, Any]], str]:
    """Return the devices of some drivers loaded in one process (None: the system's), and the errors."""
    environment = {
        **os.environ,
        **_make_driver_environment(),
        "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path),
    }
    try:
        with _IcdFolder(drivers or []) as folder:
            options = (
                [folder, *(library for driver in drivers for library in driver.before)] if drivers is not None else []
            )
            done = subprocess.run(
                [sys.executable, "-P", driver_probe.__file__, *options],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                text=True,
                errors="replace",
                timeout=_PROBE_TIMEOUT,
            )
    except subprocess.TimeoutExpired:
        return [], f"gave no answer within {_PROBE_TIMEOUT} seconds"
    except OSError as error:
        return [], f"could not be tried: {error}"
    lines = done.stdout.splitlines()
    if "done" in lines:
        return [json.loads(line.removeprefix("device ")) for line in lines if line.startswith("device ")], ""
    if lines and lines[0].startswith(_NO_PYOPENCL):
        return [], lines[0]
    if done.returncode < 0:
        return [], f"crashes ({signal.Signals(-done.returncode).name})"
    error_lines = [line for line in done.stderr.splitlines() if line.strip()]
    return [], f"fails: {error_lines[-1][:300]}" if error_lines else f"ends the process with status {done.returncode}"


def _probe_all(drivers: list[Driver]) -> ProbeResult:
    """Probe all drivers in one process; if that fails, add them one by one and exclude those that break."""
    if not sys.platform.startswith("linux"):
        devices, error = _probe_drivers(None)
        return ProbeResult([], devices, {"the system's OpenCL": error} if error else {})
    devices, error = _probe_drivers(drivers) if drivers else ([], "")
    if not error:
        return ProbeResult([d.library for d in drivers], devices, {})
    if error.startswith(_NO_PYOPENCL):
        return ProbeResult([], [], {"PyOpenCL": f"cannot be imported ({error.removeprefix(_NO_PYOPENCL)})"})
    kept: list[Driver] = []
    devices, failed = [], {}
    for driver in drivers:
        found, error = _probe_drivers([*kept, driver])
        if error:
            failed[f"{driver.name} ({driver.library})"] = error
        else:
            kept, devices = [*kept, driver], found
    return ProbeResult([d.library for d in kept], devices, failed)


def _stat_file(path: str | Path) -> Any:
    try:
        found = os.stat(path)
        return str(path), found.st_mtime_ns, found.st_size
    except OSError:
        return str(path)


def _package_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _compute_fingerprint(drivers: list[Driver]) -> str:
    """Return a digest of everything on which the probe result may depend."""
    folders = [
        "/lib",
        "/usr/lib",
        "/lib64",
        "/usr/lib64",
        "/usr/local/lib",
        f"/usr/lib/{platform.machine()}-linux-gnu",
        *os.environ.get("LD_LIBRARY_PATH", "").split(":"),
    ]
    libraries = [
        path
        for d in drivers
        for path in ([d.library] if os.path.isabs(d.library) else [os.path.join(f, d.library) for f in folders if f])
    ]
    hardware = sorted(str(p) for pattern in ("dri/renderD*", "nvidia[0-9]*", "kfd") for p in Path("/dev").glob(pattern))
    parts = [
        1,
        [dataclasses.astuple(d) for d in drivers],
        [s for s in map(_stat_file, [*libraries, driver_probe.__file__]) if not isinstance(s, str)],
        platform.node(),
        hardware,
        _package_version("pyopencl"),
        sys.version,
        [os.environ.get(n) for n in ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "POCL_DEVICES")],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


_FIELDS = {"platform": str, "version": str, "name": str, "nth": int, "kind": str, "error": str}


def _digest_cache_file(name: str, content: dict[str, Any]) -> str:
    """Return a digest of a cache file's name and content."""
    return hashlib.sha256(f"{name}\n{json.dumps(content, sort_keys=True)}".encode()).hexdigest()


def _is_well_formed(found: ProbeResult) -> bool:
    return (
        (type(found.keep), type(found.devices), type(found.failed)) == (list, list, dict)
        and all(isinstance(library, str) for library in found.keep)
        and all(isinstance(why, str) for why in found.failed.values())
        and all({name: type(value) for name, value in record.items()} == _FIELDS for record in found.devices)
        and all(record["kind"] in _KINDS for record in found.devices)
    )


def _load_probe(path: Path) -> ProbeResult | None:
    """Load a cached probe result; None if there is none or the file is damaged."""
    try:
        text = cache_files.read(path)
        if text is None:
            return None
        content = json.loads(text)
        if content.pop("digest") != _digest_cache_file(path.name, content):
            return None
        kept = ProbeResult(**content)
        if not _is_well_formed(kept):
            return None
        return kept if not kept.errors() or time.time() - path.stat().st_mtime < _RETRY_SECONDS else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _store_probe(path: Path, found: ProbeResult) -> None:
    content = dataclasses.asdict(found)
    text = json.dumps({**content, "digest": _digest_cache_file(path.name, content)})
    with contextlib.suppress(OSError):  # then the next process tries again
        cache_files.write(path, text.encode())


@functools.cache
def _load_or_run_probe(again: bool) -> ProbeResult:
    drivers = list_installed_drivers()
    path = cache_folder() / f"drivers-{_compute_fingerprint(drivers)}.json"
    found = _load_probe(path)
    if found is None or again and found.errors():
        found = _probe_all(drivers)
        _store_probe(path, found)
    return found


def probe_result(again: bool = False) -> ProbeResult:
    """Return the probe result of this machine; `again` repeats failed probes. PyOpenCL must be installed."""
    with _lock:
        return _load_or_run_probe(again)


def _clear_probe() -> None:
    """Invalidate the probe result, so that the next request probes again."""
    drivers = list_installed_drivers()
    with contextlib.suppress(OSError):
        cache_files.remove(cache_folder() / f"drivers-{_compute_fingerprint(drivers)}.json")
    _load_or_run_probe.cache_clear()


# -- devices ----------------------------------------------------------------------------


def _read_requested_platforms() -> list[str]:
    """Return the substrings of platform names in `TORCHLITE_OPENCL_PLATFORM`, in order."""
    return [word.strip().lower() for word in os.environ.get("TORCHLITE_OPENCL_PLATFORM", "").split(",") if word.strip()]


def list_usable_devices() -> list[dict[str, Any]]:
    """Return the records of the devices in index order: GPUs, accelerators, CPUs, each by platform name and version.

    `TORCHLITE_OPENCL_PLATFORM` keeps the platforms whose name contains one of its substrings, in its order.
    """
    words = _read_requested_platforms()
    chosen = []
    for place, record in enumerate(probe_result().devices):
        name = record["platform"].lower()
        rank = next((i for i, word in enumerate(words) if word in name), None)
        if not record["error"] and (rank is not None or not words):
            chosen.append(((rank or 0, _KINDS.index(record["kind"]), name, record["version"], place), record))
    return [record for _, record in sorted(chosen, key=lambda pair: pair[0])]


def is_accelerator() -> bool:
    """Return whether a usable device is no processor, or `TORCHLITE_OPENCL_PLATFORM` asks for a platform."""
    return bool(_read_requested_platforms()) or any(record["kind"] != "cpu" for record in list_usable_devices())


def why_not() -> str:
    """Return "" if a device can be used, else one sentence: the missing part, and the package to install."""
    if _find_pyopencl_folder() is None:
        return "device 'opencl' needs PyOpenCL and a driver: pip install 'torchlite-nd[opencl]'"
    if list_usable_devices():
        return ""
    found = probe_result()
    working = sorted({d["platform"] for d in found.devices if not d["error"]})
    if working:
        return (
            f"TORCHLITE_OPENCL_PLATFORM={','.join(_read_requested_platforms())} names none of the platforms that work "
            f"here: {', '.join(working)}"
        )
    if found.errors():
        return f"no OpenCL driver works here ({'; '.join(found.errors())}); {INSTALL}"
    return f"no OpenCL driver with a device was found; {INSTALL}"


def problems() -> list[str]:
    """Return a sentence for each excluded driver or device, after probing again; for `python -m torchlite info`."""
    if _find_pyopencl_folder() is None:
        return []
    return [f"{error}. Left out; mend the driver or {INSTALL}" for error in probe_result(again=True).errors()]


def describe_device(index: int) -> str:
    """Describe a device in one line."""
    record = list_usable_devices()[index]
    kind = {"gpu": "GPU", "cpu": "CPU"}.get(record["kind"], record["kind"])
    return f"{record['name']}, {kind}, through {record['platform']} ({record['version'].split('  ')[0]})"


@functools.cache
def _find_devices() -> list[Any]:
    found = probe_result()
    drivers = [d for d in list_installed_drivers() if d.library in found.keep]
    with driver_probe.set_environment_variables(**_make_driver_environment()):
        if sys.platform.startswith("linux"):
            with _IcdFolder(drivers) as folder:
                platforms = driver_probe.list_platforms(
                    folder, [library for driver in drivers for library in driver.before]
                )
        else:
            platforms = driver_probe.list_platforms(None, [])
        by_key = {_device_key(record): device for record, device in driver_probe.iter_devices(platforms)}
    if any(_device_key(record) not in by_key for record in list_usable_devices()):
        _clear_probe()
    missing = [record for record in list_usable_devices() if _device_key(record) not in by_key]
    if missing:
        raise RuntimeError(
            f"the OpenCL loader of this process does not see {missing[0]['name']} ({missing[0]['platform']}): "
            "use torchlite's device before PyOpenCL is used otherwise"
        )
    return [by_key[_device_key(record)] for record in list_usable_devices()]


def _device_key(record: dict[str, Any]) -> tuple:
    return record["platform"], record["version"], record["name"], record["nth"]


def devices() -> list[Any]:
    """Return pyopencl's devices in index order."""
    with _lock:
        return _find_devices()


def make_icd_environment(index: int, folder: str) -> dict[str, str]:
    """Return variables under which another program's OpenCL loader finds only the driver of a device.

    `folder` keeps the .icd file. `OPENCL_PATH`, which some programs read, names the loader shipped with the driver.
    """
    intel = "intel" in list_usable_devices()[index]["platform"].lower()
    driver = next(d for d in list_installed_drivers() if ("intel" in d.library) == intel)
    Path(folder, "one.icd").write_text(driver.library + "\n")
    found = {"OCL_ICD_VENDORS": folder}
    if driver.before:
        found["LD_PRELOAD"] = ":".join(driver.before)
    loader = Path(driver.library).with_name("libOpenCL.so.1")
    if loader.is_file():
        found["OPENCL_PATH"] = str(loader)
    return found
