"""`python -m torchlite run` and `as-torch`: alias `torch` to torchlite for one program, or for an environment."""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from typing import Any

from .._alias import DIST_INFO, PATH
from ..torch_version import __version__
from .command_line import FAILURE, CommandError, describe_os_error, program_name

_PACKAGES = ("torch", "functorch")  # PyTorch's packages
_TORCHRUN = '#!/bin/sh\nexec {python} -m torchlite.distributed.run "$@"\n'


def run(arguments: list[str]) -> int:
    """Restart Python with these arguments, and a package `torch` on its path and its children's.

    Does not return if the system supports exec.
    """
    if sys.flags.ignore_environment:
        raise CommandError("Python was told (-E or -I) to ignore PYTHONPATH, which names it; start it without them")
    home = os.path.dirname(os.path.dirname(os.path.dirname(PATH)))  # the folder that torchlite was found in
    installed = {os.path.realpath(sysconfig.get_paths()[name]) for name in ("purelib", "platlib")}
    places = [PATH, *([home] if os.path.realpath(home) not in installed else [])]
    given = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    os.environ["PYTHONPATH"] = os.pathsep.join([*places, *(place for place in given if place not in places)])
    command = [sys.executable, *subprocess._args_from_interpreter_flags(), *arguments]  # type: ignore[attr-defined]
    if os.name == "nt":
        return subprocess.call(command)
    sys.stdout.flush()
    os.execv(sys.executable, command)


def add_parser(commands: Any) -> None:
    """Add the arguments of `as-torch`."""
    named = commands.add_parser(
        "as-torch",
        help="let `import torch` mean torchlite in this environment",
        description="Installs a package `torch` that imports torchlite, so that packages find it as PyTorch.\n"
        "Changes nothing if PyTorch itself is installed.",
        epilog="examples:\n  torchlite as-torch --install\n  torchlite as-torch --remove",
    )
    named.set_defaults(run=as_torch)
    choice = named.add_mutually_exclusive_group(required=True)
    choice.add_argument("--install", action="store_true", help="write the package `torch`, which hands over")
    choice.add_argument("--remove", action="store_true", help="remove it again")


def as_torch(options: argparse.Namespace) -> int:
    """Install or remove the alias package `torch`; return the exit status."""
    paths = sysconfig.get_paths()
    site, scripts = paths["purelib"], paths["scripts"]
    try:
        stranger = _find_foreign_torch(site)
        if stranger:
            return _fail(f"{stranger} is PyTorch itself; nothing was changed")
        message = install(site, scripts) if options.install else remove(site, scripts)
    except OSError as error:
        return _fail(f"cannot change {site}: {describe_os_error(error)}")
    print(message)
    return 0


def _fail(message: str) -> int:
    print(f"{program_name()} as-torch: error: {message}", file=sys.stderr)
    return FAILURE


def _find_foreign_torch(site: str) -> str:
    """Return the path of a foreign package `torch`; "" if there is none."""
    for found in importlib.metadata.distributions(name="torch"):
        if "torchlite" not in found.version:
            return f"torch {found.version} in {found.locate_file('')}"
    places = [os.path.join(site, package) for package in _PACKAGES]
    return next((place for place in places if os.path.exists(place) and not _is_ours(place)), "")


def _is_ours(place: str) -> bool:
    return _file_starts_with_word(os.path.join(place, "__init__.py"), "HANDS_OVER")


def _file_starts_with_word(path: str, word: str) -> bool:
    """True if the beginning of an existing file contains a word."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return word in file.read(4096)
    except OSError:
        return False


def install(site: str, scripts: str) -> str:
    """Copy the package and its metadata to site-packages, and `torchrun` to the scripts; return a message."""
    remove(site, scripts)
    names = []
    for package in (*_PACKAGES, DIST_INFO):
        shutil.copytree(
            os.path.join(PATH, package), os.path.join(site, package), ignore=shutil.ignore_patterns("__pycache__")
        )
        names += [f"{package}/{name}" for name in sorted(os.listdir(os.path.join(site, package)))]
    torchrun = os.path.join(scripts, "torchrun")
    if os.name == "posix" and not os.path.exists(torchrun):
        with open(torchrun, "w", encoding="utf-8") as file:
            file.write(_TORCHRUN.format(python=shlex.quote(sys.executable)))
        os.chmod(torchrun, 0o755)
        names.append(os.path.relpath(torchrun, site))
    record = f"{DIST_INFO}/RECORD"
    with open(os.path.join(site, record), "w", encoding="utf-8") as file:
        file.writelines(_record_entry(site, name) for name in names if name != record)
        file.write(f"{record},,\n")
    return (
        f"`import torch` means torchlite in {site}. To install packages beside it, name it, so that pip keeps it: "
        f"pip install torchvision torch=={__version__}"
    )


def _record_entry(site: str, name: str) -> str:
    """Return a file's line in RECORD: digest and size."""
    with open(os.path.join(site, name), "rb") as file:
        content = file.read()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def remove(site: str, scripts: str) -> str:
    """Remove the package, its metadata and `torchrun`, of any version; return a message."""
    ours = [place for place in (os.path.join(site, package) for package in _PACKAGES) if _is_ours(place)]
    ours += [
        os.path.join(site, name)
        for name in os.listdir(site)
        if name.startswith("torch-") and name.endswith("+torchlite.dist-info")
    ]
    for place in ours:
        shutil.rmtree(place)
    torchrun = os.path.join(scripts, "torchrun")
    if _file_starts_with_word(torchrun, "torchlite"):
        os.remove(torchrun)
    return f"removed {', '.join(ours)}" if ours else f"there is no `torch` of torchlite in {site}"
