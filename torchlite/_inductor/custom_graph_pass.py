"""Base classes of the passes that packages write for PyTorch's own compiler."""

from __future__ import annotations

import abc
import hashlib
from typing import Any


class CustomGraphPass(abc.ABC):
    """Base of a pass over a graph."""

    @abc.abstractmethod
    def __call__(self, graph: Any) -> None:
        """Change the graph."""

    @abc.abstractmethod
    def uuid(self) -> Any:
        """Return what tells the pass from another version of it."""


class CustomGraphModulePass(abc.ABC):
    """Base of a pass over a graph module."""

    @abc.abstractmethod
    def __call__(self, gm: Any) -> None:
        """Change the module."""

    @abc.abstractmethod
    def uuid(self) -> Any:
        """Return what tells the pass from another version of it."""


def get_hash_for_files(paths: tuple[str, ...], extra: str = "") -> bytes:
    """Return the SHA-256 digest of a text and of the contents of files."""
    digest = hashlib.sha256(extra.encode("utf-8"))
    for path in paths:
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.digest()
