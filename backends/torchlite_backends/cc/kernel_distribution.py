"""The distribution `torchlite-nd-kernels`: programs that were compiled ahead, for processors of a level.

Its package `torchlite_kernels` has an archive for each level. One serves only if the versions are the same, and if it
was built from this source with these flags. A program is found by a digest of its source.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import importlib.util
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from torchlite_backends import KERNEL_PACKAGES
from torchlite_backends.device_runtime.core import processor_level

from . import cxx_compiler, load_library
from .kernel_archive import DamagedArchiveError, KernelArchive, program_key

DISTRIBUTION = "torchlite-nd-kernels"
PACKAGE = KERNEL_PACKAGES["cc"]
SUFFIX = ".kernels"


class Distribution(NamedTuple):
    """The installed distribution: its version ("" without the distribution), and an archive or why it is not used."""

    version: str
    archive: KernelArchive | None
    why_not: str

    @property
    def level(self) -> str:
        return "" if self.archive is None else self.archive.facts["level"]


def own_version() -> str:
    """Return torchlite's version."""
    import torchlite

    return torchlite.__torchlite_version__


@functools.cache
def source_digest() -> str:
    """Return a digest of the files that the sources of programs come from."""
    found = hashlib.sha256()
    backends = Path(__file__).resolve().parents[1]
    for folder in ("cc", "kernel_sources"):
        for path in sorted((backends / folder).glob("*.py")):
            text = path.read_bytes().replace(b"\r\n", b"\n")
            found.update(f"{folder}/{path.name} {len(text)}\n".encode() + text)
    return found.hexdigest()


@functools.cache
def find_distribution() -> Distribution:
    """Return the installed distribution. Warns once if there is one that cannot be used."""
    wanted = processor_level.requested_level() or processor_level.processor_level()
    if wanted == processor_level.NATIVE or cxx_compiler.sanitizer() or importlib.util.find_spec(PACKAGE) is None:
        return Distribution("", None, "")
    version = ""
    try:
        package: Any = importlib.import_module(PACKAGE)
        version = str(package.__version__)
        return Distribution(version, _open_archive(Path(package.__path__[0]), version, wanted), "")
    except Exception as error:  # a broken package must not break the CPU
        why = f"{DISTRIBUTION} {version or 'of an unknown version'} is not used: {error}"
        warn(why)
        return Distribution(version, None, why)


def _open_archive(folder: Path, version: str, level: str) -> KernelArchive:
    own = own_version()
    again = f"pip install --force-reinstall {DISTRIBUTION}=={own}"
    if version != own:
        raise ValueError(f"this is torchlite-nd {own}; pip install {DISTRIBUTION}=={own}")
    why = processor_level.why_not(level or processor_level.V3)
    if why:
        raise ValueError(why)
    path = folder / f"{level}{SUFFIX}"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob(f"*{SUFFIX}"))) or "nothing"
        raise ValueError(f"it has kernels for {there}, and not for {level}")
    try:
        archive = KernelArchive(path)
    except DamagedArchiveError as error:
        raise ValueError(f"{error}; {again}") from None
    if archive.facts["sources"] != source_digest() or archive.facts["flags"] != list(cxx_compiler.flags(level)):
        raise ValueError(f"it was built from another source; {again}")
    return archive


def load_program(text: str) -> ctypes.CDLL | None:
    """Load a program of the distribution; None if it has none of that source. Warns once if its file is damaged."""
    archive = find_distribution().archive
    if archive is None:
        return None
    key = program_key(text)
    try:
        library = archive.read(key)
        return None if library is None else load_library.load_library_from_bytes(library, f"{key}.so")
    except (DamagedArchiveError, OSError) as error:
        warn(f"a kernel of {DISTRIBUTION} cannot be loaded, NumPy computes: {error}")
        return None


@functools.cache
def warn(message: str) -> None:
    """Warn once in a process, at the program's line."""
    from torchlite._dispatch.fallback import level_of_the_program

    warnings.warn(message, stacklevel=level_of_the_program())
