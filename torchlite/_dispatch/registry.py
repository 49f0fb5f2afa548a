"""Backends found by entry point, and the kernel table of each device."""

from __future__ import annotations

import copyreg
import functools
import threading

import numpy as np

from .._settings import forks
from .._types.devices import ADDED, EXTRAS, FOREIGN, device, installed_backends
from .backend import Backend, Table
from .fallback import Absent, stand_in
from .layouts import keep_exactly, keeps_layout
from .record import MAYBE_VIEW, REGISTRY, VIEW, Op

_tables: dict[device, Table] = {}
_lock = forks.hold(threading.RLock())


def register_backend(name: str, backend: Backend) -> None:
    """Add a backend from a running program (an installed one is found by its entry point)."""
    ADDED[name] = backend


@functools.cache
def _load(name: str) -> Backend:
    point = installed_backends().get(name)
    if point is None:
        if name in FOREIGN:
            raise RuntimeError(f"PyTorch is not linked with support for {name} devices")
        extra = EXTRAS.get(name)
        hint = (
            f"pip install 'torchlite-nd[{extra}]'"
            if extra
            else "install torchlite with pip (an editable install from a checkout: pip install -e .)"
        )
        raise RuntimeError(f"device '{name}' has no backend installed: {hint}")
    return point.load()


def backend_of(name: str) -> Backend:
    """The backend of a device type. RuntimeError saying what to install when it is absent."""
    return ADDED.get(name) or _load(name)


def table_of(where: device) -> Table:
    """The kernel table of a device."""
    found = _tables.get(where)
    if found is not None:
        return found
    if where.index is None and where.type not in ("cpu", "meta"):
        return table_of(device(where.type, current_index(where.type)))
    with _lock:
        if where not in _tables:
            _tables.setdefault(where, _make(where))
        return _tables[where]


def _pickled(table: Table):
    return table_of, (table.device,)


copyreg.pickle(Table, _pickled)  # a kernel table is its device's, wherever it is unpickled


def tables(name: str) -> list[Table]:
    """The tables of a device type that are in use."""
    return [table for where, table in list(_tables.items()) if where.type == name]


class _Current(threading.local):
    """Each thread's current device of each type: the one that a name without an index means."""

    def __init__(self):
        self.indices: dict[str, int] = {}


_current = _Current()


def current_index(name: str) -> int:
    """The index of the calling thread's current device of a type."""
    return _current.indices.get(name, 0)


def set_current_index(name: str, index: int) -> None:
    """Choose the calling thread's current device of a type."""
    _current.indices[name] = index


def _make(where: device) -> Table:
    backend = backend_of(where.type)
    reason = backend.why_not()
    if reason:
        raise RuntimeError(reason)
    index = where.index or 0
    if index >= backend.device_count():
        raise RuntimeError(
            f"device {where}: invalid device ordinal; {backend.device_count()} {where.type} device(s) found"
        )
    if where.index is not None and where.type in ("cpu", "meta"):
        return table_of(device(where.type))
    kernels = backend.kernels(index)
    table = _filled(Table(backend, where), kernels)
    table._larger = functools.partial(_large, table, kernels)
    return table


def _large(table: Table, kernels: dict) -> Table:
    """The table of a device's kernels for large arrays: the same one where it has none."""
    if not hasattr(table.backend, "large_kernels"):
        return table
    found = Table(table.backend, table.device)
    found.large = found
    return _filled(found, {**kernels, **table.backend.large_kernels(table.device.index or 0)})


def _filled(table: Table, kernels: dict) -> Table:
    """A table with a device's kernels, and composites for what they lack."""
    where = table.device
    unknown = {name for name in kernels if name not in REGISTRY and name.removesuffix("_") not in REGISTRY}
    if unknown:
        raise RuntimeError(f"backend {where.type} has kernels for ops that are not declared: {sorted(unknown)}")
    for record in list(REGISTRY.values()):
        setattr(table, record.name, _resolve(record, kernels, table))
    for name, kernel in kernels.items():
        if name not in REGISTRY:
            setattr(table, name, kernel)
    if any(isinstance(getattr(kernel, "ufunc", kernel), np.ufunc) for kernel in kernels.values()):
        keep_exactly(table)
    table._move = lambda raw, to: table.move_to(table_of(to), raw)  # between tables, so no backend's business
    return table


def _resolve(record: Op, kernels: dict, table: Table):
    kernel = kernels.get(record.name)
    if kernel is None and record.composite is not None:
        kernel = functools.partial(record.composite, table)
        rounds = record._vjp is not None and not record.tags & (VIEW | MAYBE_VIEW) and record.name[-1] != "_"
        if rounds and table.in_float32 is not None:
            kernel = table.in_float32(kernel)
    if kernel is None:
        return stand_in(record, table, lambda: table_of(device("cpu")))
    if record.refuses and table.device.type != "meta":
        kernel = _refusing(record, kernel, table)
    return kernel if record.layout is None or record.is_implicit else keeps_layout(record.layout, kernel, table)


def _refusing(record: Op, kernel, table: Table):
    """A kernel behind the test of what its op refuses."""
    refuses, dtype_of = record.refuses, table.dtype_of

    def checked(input, *args, dtype=None, **kwargs):
        d, which = (dtype_of(input), "input") if dtype is None else (dtype, "dtype")
        word = refuses.get((which, d.category))
        if isinstance(word, Exception):
            raise type(word)(*word.args)
        if word is not None:
            raise NotImplementedError(f"\"{word}\" not implemented for '{d.scalar_name}'")
        return kernel(input, *args, **kwargs) if dtype is None else kernel(input, *args, dtype=dtype, **kwargs)

    return checked


def has_kernel(table: Table, name: str) -> bool:
    """Whether an op can run on this device."""
    return not isinstance(getattr(table, name), Absent)
