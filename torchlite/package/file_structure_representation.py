"""`Directory`: the files of a package as a tree."""

from __future__ import annotations

from collections.abc import Iterator


class Directory:
    """A folder or file of a package; `torch.package.PackageImporter.file_structure` makes it. `str` draws the tree.

    Args:
        name: The name.
        is_dir: Whether it is a folder.

    Attributes:
        children: The folders and files in it by name.

    Example:
        >>> print(torch.package.Directory("models", True), end="")
        ─── models
    """

    def __init__(self, name: str, is_dir: bool):
        self.name, self.is_dir = name, is_dir
        self.children: dict[str, Directory] = {}

    def _add_file(self, path: str) -> None:
        """Add a file, and the folders that it is in."""
        place = self
        *folders, file = path.split("/")
        for name in folders:
            place = place.children.setdefault(name, Directory(name, True))
        place.children[file] = Directory(file, False)

    def has_file(self, filename: str) -> bool:
        """Returns whether there is a file or folder.

        Args:
            filename: Its path, with "/" between names.

        Example:
            >>> folder = torch.package.Directory("top", True)
            >>> folder.has_file("a/b.py")
            False
        """
        place: Directory | None = self
        for name in filename.split("/"):
            place = place.children.get(name) if place is not None else None
        return place is not None

    def __str__(self) -> str:
        return "".join(self._lines("", "─── ", "    "))

    def _lines(self, before: str, branch: str, below: str) -> Iterator[str]:
        yield f"{before}{branch}{self.name}\n"
        children = sorted(self.children.values(), key=lambda child: (not child.is_dir, child.name))
        for child in children:
            last = child is children[-1]
            yield from child._lines(before + below, "└── " if last else "├── ", "    " if last else "│   ")
