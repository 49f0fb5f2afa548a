"""Build hook of hatchling: compiles the kernels of each level, and names the wheel's platform.

The programs come from torchlite's own source: that of the checkout around this folder, or a copy that the source
distribution holds in `source`. A wheel of torchlite is built from it and unpacked, as its backends are entry points.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "torchlite_kernels"
# What a wheel of torchlite is built from.
SOURCE = "torchlite", "backends/torchlite_backends", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"
X86_64 = "x86-64-v3", "x86-64-v4"
VARIABLE = "TORCHLITE_KERNELS_LEVELS"
# g++ 12 splits vectors of 64 bytes into AVX2's through memory: softmax takes 18 times as long as with clang++ 14.
COMPILERS = {"x86-64-v3": "clang++"}


def find_source(root: Path) -> Path:
    """Return the folder that holds torchlite's pyproject.toml."""
    copy = root / "source"
    return copy if copy.is_dir() else root.parent


def unpack_torchlite(root: Path) -> Path:
    """Build a wheel of torchlite, unpack it, and return the folder to import it from."""
    folder = root / "build" / "torchlite"
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")]
    subprocess.run(command, check=True, cwd=find_source(root))
    (wheel,) = (folder / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "package")
    return folder / "package"


def list_levels() -> list[str]:
    """Return the levels to build: those of the variable, else all of this architecture."""
    named = os.environ.get(VARIABLE, "").replace(",", " ").split()
    return named or (list(X86_64) if platform.machine().lower() in ("x86_64", "amd64") else ["baseline"])


def compiler_of(level: str) -> dict[str, str]:
    """Return the variable CXX for a level, unless it is set. RuntimeError if the compiler is missing."""
    name = "" if os.environ.get("CXX") else COMPILERS.get(level, "")
    if name and shutil.which(name) is None:
        raise RuntimeError(f"kernels for {level} need {name}: install it, or name a compiler in the variable CXX")
    return {"CXX": name} if name else {}


def build_archive(root: Path, level: str, package: Path) -> Path:
    """Compile a level's kernels and return their archive. What is compiled already is not compiled again."""
    folder = root / "build"
    path = folder / f"{level}.kernels"
    environment = {
        **os.environ,
        **compiler_of(level),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(package), os.environ.get("PYTHONPATH", "")))),
        "TORCHLITE_CACHE_DIR": str(folder),
        "TORCHLITE_CPU_KERNELS": "cc",
    }
    command = [sys.executable, "-m", "torchlite", "build-kernels", "--level", level, "--archive", str(path)]
    subprocess.run(command, check=True, env=environment, cwd=folder)
    return path


def platform_tag(archives: list[Path]) -> str:
    """Return the wheel's platform: on Linux with glibc, the oldest one that has all symbols of the libraries."""
    libc, _ = platform.libc_ver()
    if not sys.platform.startswith("linux") or libc != "glibc":
        return re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"manylinux_2_{max(map(newest_glibc, archives))}_{platform.machine()}"


def newest_glibc(archive: Path) -> int:
    """Return the minor version of the newest symbol of glibc that an archive's libraries need."""
    from torchlite_backends.cc.kernel_archive import KernelArchive

    opened = KernelArchive(archive)
    found = (re.findall(rb"GLIBC_2\.(\d+)", opened.read(key) or b"") for key in opened)
    return max(int(minor) for minors in found for minor in minors)


class KernelsHook(BuildHookInterface):
    """Adds the archives to a wheel, and torchlite's source to a source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if self.target_name == "sdist":
            source = find_source(root)
            build_data["force_include"].update({str(source / name): f"source/{name}" for name in SOURCE})
            return
        package = unpack_torchlite(root)
        archives = [build_archive(root, level, package) for level in list_levels()]
        for archive in archives:
            build_data["force_include"][str(archive)] = f"{PACKAGE}/{archive.name}"
        sys.path.insert(0, str(package))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(archives)}"
