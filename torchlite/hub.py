"""Models from repositories by their `hubconf.py`, and weight files from URLs."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import urllib.request
import warnings
import zipfile
from typing import Any
from urllib.parse import urlparse

from torchlite._settings.module_dir import make_module_dir

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

ENV_TORCH_HOME = "TORCH_HOME"
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
_hub_dir: str | None = None


def _get_torch_home() -> str:  # imported by packages under this name
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """Returns the folder in which repositories and weights are cached.

    It is the folder of `set_dir`, else `$TORCH_HOME/hub`, else `$XDG_CACHE_HOME/torch/hub`, else `~/.cache/torch/hub`.

    Example:
        >>> torch.hub.get_dir().endswith("hub")
        True
    """
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Sets the folder in which repositories and weights are cached.

    Args:
        d: Path of the folder; ``~`` is the home folder.

    Example:
        >>> before = torch.hub.get_dir()
        >>> torch.hub.set_dir("weights")
        >>> torch.hub.get_dir()
        'weights'
        >>> torch.hub.set_dir(before)
    """
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def _import_hubconf(folder: str) -> Any:
    """Return the module of a repository's hubconf.py, with the repository on the import path."""
    path = os.path.join(folder, "hubconf.py")
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    spec = importlib.util.spec_from_file_location("hubconf.py", path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    missing = [name for name in getattr(module, "dependencies", None) or () if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _load_entrypoint(module: Any, name: Any) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, name, None)
    if function is None or not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def _parse_repo_name(github: str) -> tuple[str, str, str]:
    """(owner, repository, branch) of "owner/repository[:branch]"."""
    repository, _, branch = github.partition(":")
    owner, slash, name = repository.partition("/")
    if not slash:
        raise ValueError(f"expected a repository as owner/name[:ref], got {github!r}")
    return owner, name, branch or "main"


def _check_trust(owner: str, name: str, trust: Any) -> None:
    """Check or record whether a repository is trusted, according to `trust_repo`."""
    path = os.path.join(get_dir(), "trusted_list")
    known = set()
    if os.path.exists(path):
        with open(path) as file:
            known = set(file.read().split())
    key = f"{owner}_{name}"
    if key in known or owner in ("facebookresearch", "facebookincubator", "pytorch", "fairinternal"):
        return
    if trust is False or trust == "check" or trust is None:
        answer = input(
            f"The repository {owner}_{name} does not belong to the list of trusted repositories and as such cannot be "
            "downloaded. Do you trust this repository and wish to add it to the trusted list of repositories (y/N)?"
        )
        if answer.lower() not in ("y", "yes"):
            raise RuntimeError("Untrusted repository.")
    with open(path, "a") as file:
        file.write(key + "\n")


def _check_ref(owner: str, name: str, ref: str) -> None:
    """ValueError for a ref that is no branch, tag or commit of the repository itself: a fork's commits have the same
    addresses.
    """
    headers = {"Accept": "application/vnd.github.v3+json", "User-Agent": "torch.hub"}
    if token := os.environ.get("GITHUB_TOKEN"):
        headers["Authorization"] = f"token {token}"
    for kind in ("branches", "tags"):
        for page in itertools.count(1):
            url = f"https://api.github.com/repos/{owner}/{name}/{kind}?per_page=100&page={page}"
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
                found = json.load(answer)
            if not found:
                break
            if any(one["name"] == ref or one["commit"]["sha"].startswith(ref) for one in found):
                return
    raise ValueError(
        f"Cannot find {ref} in https://github.com/{owner}/{name}. If it's a commit from a forked repo, please call "
        "hub.load() with forked repo directly."
    )


def _download_repo(github: str, reload: bool, trust: Any, verbose: bool, skip_validation: bool) -> str:
    """Return the folder of a GitHub repository, downloaded if it is missing."""
    owner, name, branch = _parse_repo_name(github)
    os.makedirs(get_dir(), exist_ok=True)
    folder = os.path.join(get_dir(), "_".join((owner, name, branch.replace("/", "_"))))
    _check_trust(owner, name, trust)
    if os.path.exists(folder) and not reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    if not skip_validation:
        _check_ref(owner, name, branch)
    archive = os.path.join(get_dir(), branch.replace("/", "_") + ".zip")
    url = f"https://github.com/{owner}/{name}/zipball/{branch}"
    sys.stderr.write(f'Downloading: "{url}" to {archive}\n')
    download_url_to_file(url, archive, progress=False)
    with zipfile.ZipFile(archive) as files, tempfile.TemporaryDirectory(dir=get_dir()) as place:
        for member in files.namelist():
            if os.path.isabs(member) or ".." in member.split("/"):
                raise RuntimeError(f"the archive of {github} has a path that leads out of it: {member}")
        files.extractall(place)
        top = os.path.join(place, os.listdir(place)[0])
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(top, folder)
    os.remove(archive)
    return folder


def _find_repo_folder(repo: Any, source: str, reload: bool, trust: Any, verbose: bool, skip_validation: bool) -> str:
    if source == "github":
        return _download_repo(repo, reload, trust, verbose, skip_validation)
    if source == "local":
        return os.fspath(repo)
    raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> Any:
    """Returns the names of the entry points in a repository's hubconf.py.

    The repository is downloaded if it is not cached, and its hubconf.py is run.

        torch.hub.list("pytorch/vision:main")

    Args:
        github: Repository, ``"owner/name[:ref]"``. Default of ``ref``: ``main``.
        force_reload: Whether to download it again. Default: ``False``.
        skip_validation: Whether to download a ref without asking GitHub that the repository has it. Default: ``False``.
        trust_repo: ``"check"`` asks before the first download of a repository; ``True`` adds it to the trusted ones;
            ``False`` asks. Default: ``"check"``.
        verbose: Whether to say that the cache is used. Default: ``True``.

    Raises:
        RuntimeError: The repository is not trusted, or a package that it needs is missing.
        ValueError: The name has another form, or the repository lacks the ref.
        FileNotFoundError: There is no hubconf.py.
    """
    module = _import_hubconf(_download_repo(github, force_reload, trust_repo, verbose, skip_validation))
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check"
) -> Any:
    """Returns the docstring of an entry point in a repository's hubconf.py.

        print(torch.hub.help("pytorch/vision", "resnet18"))

    Args:
        github: Repository, ``"owner/name[:ref]"``.
        model: Name of the entry point.
        force_reload: Whether to download it again. Default: ``False``.
        skip_validation: Whether to download a ref without asking GitHub that the repository has it. Default: ``False``.
        trust_repo: As in `list`. Default: ``"check"``.

    Raises:
        RuntimeError: There is no such entry point, the repository is not trusted, or a package is missing.
    """
    return _load_entrypoint(
        _import_hubconf(_download_repo(github, force_reload, trust_repo, True, skip_validation)), model
    ).__doc__


def load(
    repo_or_dir: Any,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    r"""Calls an entry point of a repository's hubconf.py and returns its result.

    Args:
        repo_or_dir: ``"owner/name[:ref]"`` on GitHub, or a folder with ``source="local"``.
        model: Name of the entry point.
        *args: Its positional arguments.
        source: ``"github"`` or ``"local"``. Default: ``"github"``.
        trust_repo: As in `list`. Default: ``"check"``.
        force_reload: Whether to download the repository again. Default: ``False``.
        verbose: Whether to say that the cache is used. Default: ``True``.
        skip_validation: Whether to download a ref without asking GitHub that the repository has it. Default: ``False``.
        **kwargs: Keyword arguments of the entry point.

    Raises:
        ValueError: The source is another one.
        FileNotFoundError: There is no hubconf.py.
        RuntimeError: There is no such entry point, the repository is not trusted, or a package is missing.

    Example:
        >>> import pathlib, tempfile, torchlite as torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "hubconf.py").write_text("def ones(n):\n    import torchlite\n"
        ...                                                       "    return torchlite.ones(n)\n")
        ...     torch.hub.load(folder, "ones", 2, source="local")
        tensor([1., 1.])
    """
    source = source.lower()
    folder = _find_repo_folder(repo_or_dir, source, force_reload, trust_repo, verbose, skip_validation)
    return _load_local(folder, model, *args, **kwargs)


def _load_local(hubconf_dir: str, model: str, *args: Any, **kwargs: Any) -> Any:
    return _load_entrypoint(_import_hubconf(hubconf_dir), model)(*args, **kwargs)


def _make_progress_bar(length: str | None, progress: bool) -> Any:
    from .utils._progress_bar import make_progress_bar

    total = int(length) if length else None
    return make_progress_bar(total, unit="B", unit_scale=True, disable=not progress)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Downloads a file.

    A bar of tqdm shows the progress if tqdm is installed and stderr is a terminal, else plain lines do. The file
    appears at its path when it is complete.

    Args:
        url: The URL.
        dst: Path of the file.
        hash_prefix: First digits of the file's SHA-256 digest. Default: not checked.
        progress: Whether to show the progress. Default: ``True``.

    Raises:
        RuntimeError: The digest has other first digits.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     source, copy = pathlib.Path(folder, "a.txt"), pathlib.Path(folder, "b.txt")
        ...     _ = source.write_text("weights")
        ...     torch.hub.download_url_to_file(source.as_uri(), str(copy), progress=False)
        ...     copy.read_text()
        'weights'
    """
    request = urllib.request.Request(url, headers={"User-Agent": "torch.hub"})
    with urllib.request.urlopen(request) as answer:
        length = answer.headers.get("Content-Length")
        dst = os.path.expanduser(dst)
        digest = hashlib.sha256()
        # In the destination's folder, and moved into place when complete.
        handle, partial = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(dst)), suffix=".partial")
        try:
            with os.fdopen(handle, "wb") as file, _make_progress_bar(length, progress) as bar:
                while chunk := answer.read(READ_DATA_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    bar.update(len(chunk))
            if hash_prefix is not None and digest.hexdigest()[: len(hash_prefix)] != hash_prefix:
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            shutil.move(partial, dst)
        finally:
            if os.path.exists(partial):
                os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Loads a file written by `torch.save` from a URL, and caches it.

    Args:
        url: The URL.
        model_dir: Folder of the cache. Default: ``checkpoints`` in `get_dir`.
        map_location: Where the tensors go, as in `torch.load`. Default: ``None``.
        progress: Whether to show the download's progress. Default: ``True``.
        check_hash: Whether the file's name ends with the first digits of its SHA-256 digest, as in ``net-0a1b2c.pth``,
            which are checked. Default: ``False``.
        file_name: Name of the file in the cache. Default: that of the URL.
        weights_only: As in `torch.load`. Default: ``False``, which can run code of the file.

    Returns:
        The object.

    Raises:
        RuntimeError: The digest does not match.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "net.pth")
        ...     torch.save({"weight": torch.ones(2)}, path)
        ...     torch.hub.load_state_dict_from_url(path.as_uri(), folder, weights_only=True)
        {'weight': tensor([1., 1.])}
    """
    from .serialization import load as load_file

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress=progress)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as files:
            members = files.infolist()
            if len(members) == 1 and not members[0].filename.endswith("data.pkl"):  # a zip around the old format
                files.extractall(folder)
                path = os.path.join(folder, members[0].filename)
    return load_file(path, map_location=map_location, weights_only=weights_only)


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # packages use it for their own downloads
        from .utils._progress_bar import PlainProgress

        try:
            return importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            return PlainProgress
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__dir__ = make_module_dir(globals(), "ENV_TORCH_HOME READ_DATA_CHUNK _hub_dir")
