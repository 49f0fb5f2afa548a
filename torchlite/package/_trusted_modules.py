"""Imports modules of a package. Only packages that the user trusts get here (`PackageImporter.import_module`)."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import io
from collections.abc import Iterator, Sequence
from importlib.abc import InspectLoader
from importlib.resources.abc import ResourceReader
from types import ModuleType
from typing import Any

from .._types.package_name import package_name
from ._mangling import demangle

# Modules that pickles of arrays name, and that packages need not list.
_ALWAYS = frozenset(("builtins", "numpy", "numpy.core", "numpy.core._multiarray_umath"))


class PackageLoader(InspectLoader):
    """The modules of one package, apart from `sys.modules`. Python's own loader runs their source."""

    def __init__(self, importer: Any):
        self._importer, self._modules, self._lock = importer, importer.modules, importer._lock
        self._builtins = {**vars(builtins), "__import__": self.import_from_module}

    def load(self, name: str) -> ModuleType:
        """Return a module; import it, after the packages that it is in, if that was not done."""
        with self._lock:
            parent, _, last = name.rpartition(".")
            if name not in self._modules and parent:
                self.load(parent)
            if name not in self._modules:  # a package may import its parts
                self._import(name)
            found = self._modules[name]
            if found is None:
                raise ModuleNotFoundError(f"import of {name} halted; None in sys.modules", name=name)
            if parent and getattr(self._modules[parent], "__loader__", None) is self:
                setattr(self._modules[parent], last, found)
            return found

    def _import(self, name: str) -> None:
        record = self._importer._source_of(name)
        if record is None:
            self._modules[name] = self._import_external(name)
            return
        spec = importlib.util.spec_from_loader(self._mangle(name), self, origin="<package_importer>")
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        module.__file__ = self._mangle(record) if record else None
        vars(module).update(__builtins__=self._builtins, __torch_package__=True)
        self._modules[name] = module
        try:
            if record:
                self.exec_module(module)
        except BaseException:
            del self._modules[name]
            raise

    def _import_external(self, name: str) -> ModuleType:
        parts = name.split(".")
        prefixes = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
        if prefixes.isdisjoint(self._importer.extern_modules) and name not in _ALWAYS:
            raise self._importer._missing(name)
        if parts[0] == "torch":
            parts[0] = package_name()
        return importlib.import_module(".".join(parts))

    def import_from_module(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
    ) -> ModuleType:
        """What the statement `import` calls in the package's modules: `__import__`."""
        if level > 0:
            name = importlib.util.resolve_name("." * level + name, demangle(globals["__package__"]))
        module = self.load(name)
        if not fromlist:
            return self._modules[name.partition(".")[0]]
        if hasattr(module, "__path__"):
            listed = [*fromlist, *(getattr(module, "__all__", ()) if "*" in fromlist else ())]
            for part in listed:
                if part != "*" and not hasattr(module, part):
                    self._load_part(f"{name}.{part}")
        return module

    def _load_part(self, name: str) -> None:
        """Import a module that a statement `from` may mean. Python itself reports names that do not exist."""
        try:
            self.load(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise

    def _mangle(self, name: str) -> str:
        return f"{self._importer.id()}.{name}"

    # -- the interface of loaders; names are mangled ones ------------------------------------

    def is_package(self, fullname: str) -> bool:
        record = self._importer._source_of(demangle(fullname))
        return not record or record.endswith("/__init__.py")

    def get_source(self, fullname: str) -> str | None:
        record = self._importer._source_of(demangle(fullname))
        return importlib.util.decode_source(self._importer._record(record)) if record else None

    def get_code(self, fullname: str) -> Any:
        source, record = self.get_source(fullname), self._importer._source_of(demangle(fullname))
        return None if source is None else self.source_to_code(source, self._mangle(record))

    def get_resource_reader(self, fullname: str) -> ResourceReader:
        return _Resources(self._importer, demangle(fullname))


class _Resources(ResourceReader):
    """The resources of a module of a package, for `importlib.resources`."""

    def __init__(self, importer: Any, name: str):
        self._importer, self._name, self._folder = importer, name, name.replace(".", "/") + "/"

    def open_resource(self, resource: str) -> io.BytesIO:
        if not self.is_resource(resource):
            raise FileNotFoundError(f"{self._importer.filename} has no {self._folder}{resource}")
        return io.BytesIO(self._importer.load_binary(self._name, resource))

    def resource_path(self, resource: str) -> str:
        raise FileNotFoundError(f"{self._folder}{resource} is in an archive")

    def is_resource(self, path: str) -> bool:
        return self._folder + path in self._importer._names

    def contents(self) -> Iterator[str]:
        found = (name[len(self._folder) :] for name in self._importer._names if name.startswith(self._folder))
        return iter(dict.fromkeys(name.partition("/")[0] for name in found))
