"""Build hook of hatchling: the folder `.editable` for `pip install -e .`.

The folder holds a link to `torchlite` and nothing else. pyproject.toml names it in `dev-mode-dirs`, so an editable
install puts it on `sys.path` in the place of the root. Other builds need no hook.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "torchlite"


def link_package(root: Path) -> None:
    """Make `root/.editable/torchlite` a link to `root/torchlite`. An existing link is replaced."""
    folder = root / ".editable"
    folder.mkdir(exist_ok=True)
    link = folder / PACKAGE
    if os.path.lexists(link):
        os.rmdir(link) if os.name == "nt" else link.unlink()
    if os.name == "nt":  # a symbolic link needs a privilege there, a junction does not
        import _winapi

        _winapi.CreateJunction(str(root / PACKAGE), str(link))
    else:
        link.symlink_to(Path(os.pardir, PACKAGE), target_is_directory=True)


class EditableFolder(BuildHookInterface):
    """Calls `link_package` for editable builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            link_package(Path(self.root))
