"""`PackageImporter`: data, resources and TorchScript of a package, and its Python code if the user trusts it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .._serialization.atomic_files import check_regular, open_regular
from .._settings import fork_locks
from ..jit._program_archive import ProgramReader
from ..serialization import _resolve_weights_only
from ._mangling import demangle, new_prefix
from .file_structure_representation import Directory
from .glob_group import GlobGroup, GlobPattern

_UNTRUSTED = (
    "torchlite does not run the code of a package unless the package is opened with "
    "`torch.package.PackageImporter(file, weights_only=False)`. Do it only if you got the file from a trusted source."
)


class PackageImporter:
    """Reads a package of `torch.package`, written by PyTorch.

    A package has pickles, resources, and the source of the Python modules that its pickles need. By default no code of
    the package runs: pickles may have what `torch.load` allows, and TorchScript modules. A pickle that needs another
    class is an error.

    With ``weights_only=False`` pickles may name any class, and the package's modules are imported. They are apart from
    other modules: they are not in `sys.modules`, and import each other from the package. Modules that the package lists
    as external come from this environment, and ``torch`` means torchlite.

    Args:
        file_or_buffer: A path, or a seekable binary file.
        module_allowed: Function that gets the name of each external module of the package and returns whether the
            package may need it. Default: any.
        weights_only: ``False`` lets pickles run code, of the package too. Use it only for files you trust. Default:
            ``True``, or what the environment variable ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD`` says.

    Raises:
        ImportError: ``module_allowed`` refuses a module.
        RuntimeError: The file is damaged or is no package.
        FileNotFoundError: There is no file at the path.

    Example:
        >>> importer = torch.package.PackageImporter("model.pt")  # doctest: +SKIP
        >>> weights = importer.load_pickle("data", "weights")  # doctest: +SKIP

    See also:
        `torch.load`, `torch.jit.load`.
    """

    def __init__(
        self,
        file_or_buffer: Any,
        module_allowed: Callable[[str], bool] = lambda module_name: True,
        *,
        weights_only: bool | None = None,
    ):
        self.weights_only = _resolve_weights_only(weights_only, None)
        is_path = isinstance(file_or_buffer, (str, os.PathLike))
        self.filename = os.fspath(file_or_buffer) if is_path else "<binary>"
        self._stream = open_regular(self.filename) if is_path else check_regular(file_or_buffer)
        self._opened = self._stream if is_path else None
        self._lock = fork_locks.reinit_after_fork(threading.RLock())  # the file has one position
        self._prefix = new_prefix()
        reader = self._reader()
        self._names = dict.fromkeys(reader.names())
        self._folders = {name[:end] for name in self._names for end in range(len(name)) if name[end] == "/"}
        self.extern_modules = reader.text(".data/extern_modules").splitlines()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{file_or_buffer}' needs the external module '{name}' but that module has been disallowed"
                )
        self.modules: dict[str, Any] = {"torch_package_importer": self}
        self._loader: Any = None

    def __del__(self) -> None:
        opened = getattr(self, "_opened", None)
        if opened is not None:
            opened.close()

    def _reader(self) -> ProgramReader:
        """A reader with a budget of its own: what is read before costs nothing."""
        return ProgramReader(self._stream)

    # -- what a package has --------------------------------------------------------------

    def load_binary(self, package: Any, resource: str) -> bytes:
        """Returns the bytes of a resource.

        Args:
            package: The name of the package's folder, with dots, or its module.
            resource: The name of the resource.

        Raises:
            ModuleNotFoundError: There is no such folder.
            RuntimeError: There is no such resource, or it is damaged.
            ValueError: ``resource`` has a folder.

        Example:
            >>> importer.load_binary("data", "bytes")  # doctest: +SKIP
            b'...'
        """
        return self._record(self._path(package, resource))

    def load_text(self, package: Any, resource: str, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Returns the text of a resource.

        Args:
            package: The name of the package's folder, with dots, or its module.
            resource: The name of the resource.
            encoding: The encoding of the text. Default: ``"utf-8"``.
            errors: What happens to bytes that are no text, as for `bytes.decode`. Default: ``"strict"``.

        Raises:
            ModuleNotFoundError: There is no such folder.
            RuntimeError: There is no such resource, or it is damaged.
            UnicodeDecodeError: The bytes are no text.

        Example:
            >>> importer.load_text("data", "notes")  # doctest: +SKIP
            '...'
        """
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: Any, resource: str, map_location: Any = None) -> Any:
        """Returns the object of a pickle.

        Args:
            package: The name of the package's folder, with dots, or its module.
            resource: The name of the pickle.
            map_location: Where the tensors go, as for `torch.load`. Default: the devices from which they were saved.

        Raises:
            pickle.UnpicklingError: The pickle needs a class that is not allowed, or code of the package.
            ModuleNotFoundError: There is no such folder; with ``weights_only=False`` also a module that is neither in
                the package nor external.
            RuntimeError: There is no such pickle, or it is damaged.

        Example:
            >>> importer.load_pickle("data", "weights")  # doctest: +SKIP
            {...}
        """
        from . import _pickles

        path = self._path(package, resource)
        with self._lock:
            return _pickles.load(self, self._reader(), path, map_location, _UNTRUSTED)

    def id(self) -> str:
        """Returns the prefix of the names that the package's modules have in this process.

        Example:
            >>> importer.id()  # doctest: +SKIP
            '<torch_package_0>'
        """
        return self._prefix

    def python_version(self) -> str | None:
        """Returns the version of Python that wrote the package, or None if it does not say.

        Example:
            >>> importer.python_version()  # doctest: +SKIP
            '3.11.7'
        """
        record = ".data/python_version"
        return self._record(record).decode().strip() if record in self._names else None

    def file_structure(self, *, include: GlobPattern = "**", exclude: GlobPattern = ()) -> Directory:
        """Returns the files of the package as a tree, which `print` shows.

        Args:
            include: One or several patterns of the paths to include (`torch.package.GlobGroup`). Default: all.
            exclude: Patterns of paths to leave out. Default: none.

        Example:
            >>> print(importer.file_structure(include="**/*.py"))  # doctest: +SKIP
            ─── model.pt
                └── models
                    └── net.py
        """
        group = GlobGroup(include, exclude=exclude, separator="/")
        top = Directory(self.filename, True)
        for name in self._names:
            if group.matches(name):
                top._add_file(name)
        return top

    def _record(self, path: str) -> bytes:
        with self._lock:
            return self._reader().inflated(path)

    def _path(self, package: Any, resource: str) -> str:
        """Return the path of a resource. Its folder's module is not imported."""
        name = demangle(package if isinstance(package, str) else package.__name__)
        folder = name.replace(".", "/")
        if folder not in self._folders:
            if f"{folder}.py" in self._names:
                raise TypeError(f"{name!r} is not a package")
            raise self._missing(name)
        if os.path.split(resource)[0]:
            raise ValueError(f"{resource!r} must be only a file name")
        return f"{folder}/{resource}"

    def _missing(self, name: str) -> ModuleNotFoundError:
        return ModuleNotFoundError(
            f'No module named "{name}" in self-contained archive "{self.filename}" and the module is also not in the '
            f"list of allowed external modules: {self.extern_modules}",
            name=name,
        )

    # -- the package's code --------------------------------------------------------------

    def _source_of(self, name: str) -> str | None:
        """Return the record of a module's source: "" for a folder without one, None for a module of others."""
        path = name.replace(".", "/")
        for record in (f"{path}/__init__.py", f"{path}.py"):
            if record in self._names:
                return record
        return "" if path in self._folders else None

    def import_module(self, name: str, package: Any = None) -> ModuleType:
        """Imports a module of the package, or an external one, and returns it.

        Args:
            name: The module's name.
            package: No effect.

        Raises:
            ImportError: The module is one of the package, and the package was not opened with ``weights_only=False``.
            ModuleNotFoundError: The module is neither in the package nor external.

        Example:
            >>> importer = torch.package.PackageImporter("model.pt", weights_only=False)  # doctest: +SKIP
            >>> importer.import_module("models.net").Net()  # doctest: +SKIP
            Net(...)
        """
        name = demangle(name)
        if self.weights_only and self._source_of(name) is not None:
            raise ImportError(f"the module {name} is code of the package. {_UNTRUSTED}", name=name)
        if self._loader is None:
            from ._trusted_modules import PackageLoader

            self._loader = PackageLoader(self)
        return self._loader.load(name)
