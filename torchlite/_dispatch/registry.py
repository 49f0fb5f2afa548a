"""Backends found by entry point, and the kernel table of each device."""
from __future__ import annotations

import functools
import threading

from .._device import device
from .backend import Backend, Table
from .record import REGISTRY, Op

_tables: dict[device, Table] = {}
_lock = threading.RLock()
# Device types that exist even where no backend for them is installed, with the extra that brings it.
KNOWN = {"cpu": "", "cuda": "cuda12", "opencl": "opencl", "meta": ""}


@functools.cache
def _entry_points() -> dict:
    from importlib.metadata import entry_points
    return {point.name: point for point in entry_points(group="torchlite.backends")}


_added: dict[str, Backend] = {}


def register_backend(name: str, backend: Backend) -> None:
    """Add a backend from a running program (an installed one is found by its entry point)."""
    _added[name] = backend


def known_backends() -> list[str]:
    """Device types that can be named."""
    return [*KNOWN, *(name for name in {**_added, **_entry_points()} if name not in KNOWN)]


def is_known(name: str) -> bool:
    """Whether a device type can be named; looks at installed backends only for a name of theirs."""
    return name in KNOWN or name in _added or name in _entry_points()


@functools.cache
def _load(name: str) -> Backend:
    point = _entry_points().get(name)
    if point is None:
        extra = KNOWN.get(name)
        hint = f"pip install 'torchlite-nd[{extra}]'" if extra else "install torchlite with pip (an editable install from a checkout: pip install -e .)"
        raise RuntimeError(f"device '{name}' has no backend installed: {hint}")
    return point.load()


def backend_of(name: str) -> Backend:
    """The backend of a device type. RuntimeError saying what to install when it is absent."""
    return _added.get(name) or _load(name)


def table_of(where: device) -> Table:
    """The kernel table of a device."""
    found = _tables.get(where)
    if found is not None:
        return found
    with _lock:
        if where not in _tables:
            _tables[where] = _make(where)
        return _tables[where]


def _make(where: device) -> Table:
    backend = backend_of(where.type)
    reason = backend.why_not()
    if reason:
        raise RuntimeError(reason)
    index = where.index or 0
    if index >= backend.device_count():
        raise RuntimeError(f"device {where}: invalid device ordinal; {backend.device_count()} {where.type} device(s) found")
    if where.index is None and where.type not in ("cpu", "meta"):
        return table_of(device(where.type, 0))
    table = Table(backend, device(where.type) if where.type in ("cpu", "meta") else where)
    kernels = backend.kernels(index)
    unknown = {name for name in kernels if name not in REGISTRY and name.removesuffix("_") not in REGISTRY}
    if unknown:
        raise RuntimeError(f"backend {where.type} has kernels for ops that are not declared: {sorted(unknown)}")
    for record in list(REGISTRY.values()):
        setattr(table, record.name, _resolve(record, kernels, table))
    for name, kernel in kernels.items():
        if name not in REGISTRY:
            setattr(table, name, kernel)
    table._move = lambda raw, to: table.move_to(table_of(to), raw)  # between tables, so no backend's business
    return table


def _resolve(record: Op, kernels: dict, table: Table):
    kernel = kernels.get(record.name)
    if kernel is None and record.composite is not None:
        return functools.partial(record.composite, table)
    return kernel or _Absent(record.name, table.device)


class _Absent:
    """In the place of a kernel that a backend lacks: says so when called."""

    def __init__(self, name: str, where: device):
        self.name, self.where = name, where

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"the op '{self.name}' has no kernel on device '{self.where}': move its inputs with .cpu(), or give the backend a "
                                  f"kernel named "
                                  f"'{self.name}'")


def has_kernel(table: Table, name: str) -> bool:
    """Whether an op can run on this device."""
    return not isinstance(getattr(table, name), _Absent)
