"""Backends found by entry point, and the kernel table of each device."""

from __future__ import annotations

import copyreg
import functools
import threading
from typing import TYPE_CHECKING

import numpy as np

from .._settings import fork_locks
from .._types.devices import PIP_EXTRAS, PYTORCH_ONLY_TYPES, REGISTERED, device, installed_backends, private_use_type
from .backend import REQUIRED_MEMBERS, KernelTable
from .fallback import MissingKernel, fallback_kernel
from .memory_layout import apply_rule_to_ufuncs, apply_stride_rule
from .op_record import MAYBE_VIEW, REGISTRY, VIEW, Op

if TYPE_CHECKING:
    from ..backends.protocol import AnyBackend, Backend

_tables: dict[device, KernelTable] = {}
_lock = fork_locks.acquire_before_fork(threading.RLock())


def register_backend(name: str, backend: Backend) -> None:
    """Register a backend for the device type `name` in this process. An installed package names its backend in the
    entry-point group `torchlite.backends` instead. TypeError for an object without the members of `Backend`.
    """
    REGISTERED[name] = _check_members(name, backend)


def _check_members(name: str, backend: Backend) -> AnyBackend:
    # The class first: the property `array` may import the backend's runtime.
    missing = [m for m in REQUIRED_MEMBERS if not hasattr(type(backend), m) and not hasattr(backend, m)]
    if missing:
        raise TypeError(
            f"the backend of '{name}' lacks {', '.join(missing)}: torchlite.backends.protocol.Backend describes them"
        )
    return backend  # type: ignore[return-value]


@functools.cache
def _load_backend(name: str) -> AnyBackend:
    point = installed_backends().get(name)
    if point is None:
        if name in PYTORCH_ONLY_TYPES or name == private_use_type():
            ours = ", ".join(installed_backends())
            raise RuntimeError(f"PyTorch is not linked with support for {name} devices: torchlite's are {ours}")
        extra = PIP_EXTRAS.get(name)
        hint = (
            f"pip install 'torchlite-nd[{extra}]'"
            if extra
            else "install torchlite with pip (from a checkout: pip install .)"
        )
        raise RuntimeError(f"device '{name}' has no backend installed: {hint}")
    return _check_members(name, point.load())


def backend_of(name: str) -> AnyBackend:
    """The backend of a device type. RuntimeError saying what to install when it is absent."""
    return REGISTERED.get(name) or _load_backend(name)


def table_of(where: device) -> KernelTable:
    """The kernel table of a device."""
    found = _tables.get(where)
    if found is not None:
        return found
    if where.index is None and where.type not in ("cpu", "meta"):
        return table_of(device(where.type, current_index(where.type)))
    with _lock:
        if where not in _tables:
            _tables.setdefault(where, _make_table(where))
        return _tables[where]


def _reduce_table(table: KernelTable):
    return table_of, (table.device,)


copyreg.pickle(KernelTable, _reduce_table)  # a kernel table is its device's, wherever it is unpickled


def tables_in_use(name: str) -> list[KernelTable]:
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


def _make_table(where: device) -> KernelTable:
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
    table = _fill_table(KernelTable(backend, where), kernels)
    table._larger = functools.partial(_make_large_table, table, kernels)
    return table


def _make_large_table(table: KernelTable, kernels: dict) -> KernelTable:
    """The table of a device's kernels for large arrays; the normal table if it has none."""
    if not hasattr(table.backend, "large_kernels"):
        return table
    found = KernelTable(table.backend, table.device)
    found.large = found
    return _fill_table(found, {**kernels, **table.backend.large_kernels(table.device.index or 0)})


def _fill_table(table: KernelTable, kernels: dict) -> KernelTable:
    """A kernel table with a device's kernels, and composites for ops without one."""
    where = table.device
    unknown = {name for name in kernels if name not in REGISTRY and name.removesuffix("_") not in REGISTRY}
    if unknown:
        raise RuntimeError(f"backend {where.type} has kernels for ops that are not declared: {sorted(unknown)}")
    for record in list(REGISTRY.values()):
        setattr(table, record.name, _resolve_kernel(record, kernels, table))
    for name, kernel in kernels.items():
        if name not in REGISTRY:
            setattr(table, name, kernel)
    if any(isinstance(getattr(kernel, "ufunc", kernel), np.ufunc) for kernel in kernels.values()):
        apply_rule_to_ufuncs(table)
    table._move = lambda raw, to: table.move_to(table_of(to), raw)  # between tables, so no backend's business
    return table


def _resolve_kernel(record: Op, kernels: dict, table: KernelTable):
    kernel = kernels.get(record.name)
    if kernel is None and record.composite is not None:
        kernel = functools.partial(record.composite, table)
        rounds = record.vjp is not None and not record.tags & (VIEW | MAYBE_VIEW) and record.name[-1] != "_"
        if rounds and table.in_float32 is not None:
            kernel = table.in_float32(kernel)
    if kernel is None:
        return fallback_kernel(record, table, lambda: table_of(device("cpu")))
    if record.refuses and table.device.type != "meta":
        kernel = _refuse_dtypes(record, kernel, table)
    return kernel if record.layout is None or record.is_implicit else apply_stride_rule(record.layout, kernel, table)


def _refuse_dtypes(record: Op, kernel, table: KernelTable):
    """A kernel behind the test of what its op refuses."""
    refuses, dtype_of = record.refuses, table.dtype_of
    accepted = set()  # dtypes of raw arrays

    def run_if_dtype_is_accepted(input, *args, dtype=None, **kwargs):
        if dtype is None and input.dtype in accepted:
            return kernel(input, *args, **kwargs)
        d, which = (dtype_of(input), "input") if dtype is None else (dtype, "dtype")
        word = refuses.get((which, d.category)) or refuses.get((which, d))
        if isinstance(word, Exception):
            raise type(word)(*word.args)
        if word is not None:
            raise NotImplementedError(f"\"{word}\" not implemented for '{d.scalar_name}'")
        if dtype is not None:
            return kernel(input, *args, dtype=dtype, **kwargs)
        accepted.add(input.dtype)
        return kernel(input, *args, **kwargs)

    run_if_dtype_is_accepted.plain = kernel  # type: ignore[attr-defined]  # fusion reads its arguments
    return run_if_dtype_is_accepted


def has_kernel(table: KernelTable, name: str) -> bool:
    """True if an op can run on this device."""
    return not isinstance(getattr(table, name), MissingKernel)


def missing_kernels(name: str) -> list[str]:
    """Ops that run on "cpu" and not on device "NAME:0": its backend has no kernel for them, and they have no composite.

    >>> from torchlite.backends.protocol import missing_kernels
    >>> missing_kernels("cpu")
    []
    """
    host, table = table_of(device("cpu")), table_of(device(name) if name in ("cpu", "meta") else device(name, 0))
    return [op for op in REGISTRY if has_kernel(host, op) and not has_kernel(table, op)]
