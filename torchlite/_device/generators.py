"""Generators and seeds: `torch.Generator`, `manual_seed` and the states of the random streams.

A generator wraps an *engine*, a `RandomEngine` of `torchlite.backends.protocol` that the device's backend creates. The
backend's `_random_*` kernels get the engine as their last argument.
"""

from __future__ import annotations

import contextlib
import threading
import warnings

import numpy as np

from .._dispatch import GLOBALS, autograd_graph, call, in_place_calls, table_of
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.kernel_recorder import call_recorded
from .._dispatch.memory_overlap import check_no_internal_overlap
from .._dispatch.numpy_errors import run_quietly
from .._dispatch.shape_and_value_checks import set_requires_grad
from .._settings import fork_locks
from .._types import opaque_dtypes
from .._types.devices import device as device_type
from .._types.devices import get_default_device
from .._types.dtypes import uint8

DEFAULT_SEED = 67280421310721
_LIMIT = 1 << 64


def _to_unsigned_seed(seed: int) -> int:
    """A seed as an unsigned 64-bit integer; negative ones count from 2**64."""
    if not -(_LIMIT >> 1) <= seed < _LIMIT:
        raise ValueError("Overflow when unpacking long long")
    return seed % _LIMIT


class Generator:
    """A source of random numbers on one device.

    On the CPU the stream of a seed is PyTorch's own (MT19937), and so is the layout of the state.

    Args:
        device: Device on which it draws. Default: ``"cpu"``.

    Raises:
        NotImplementedError: The device's backend has no random numbers.
        RuntimeError: There is no such device.

    Example:
        >>> import torchlite as torch
        >>> g = torch.Generator().manual_seed(0)
        >>> torch.rand(2, generator=g)
        tensor([0.4963, 0.7682])
    """

    __slots__ = ("__weakref__", "_device", "_engine")

    def __init__(self, device="cpu") -> None:
        where = device_type(device)
        table = table_of(where)
        self._device = table.device
        if not hasattr(table.backend, "random_engine"):
            raise NotImplementedError(
                f"device '{table.device}' has no random numbers: its backend has no hook `random_engine`, which "
                "torchlite.backends.protocol.Random describes"
            )
        engine = table.backend.random_engine(table.device.index or 0)
        if engine is None:
            raise RuntimeError(f"{where.type.upper()} device type not an accelerator.")
        engine.manual_seed(DEFAULT_SEED)
        self._engine = engine

    @property
    def device(self) -> device_type:
        """Device on which it draws."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream of a seed, and returns the generator.

        Args:
            seed: An int of 64 bits; negative ones count from 2**64.

        Raises:
            RuntimeError: ``seed`` is no int.
            ValueError: It has more bits.
        """
        if type(seed) is not int:
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        self._engine.manual_seed(_to_unsigned_seed(seed))
        return self

    def seed(self) -> int:
        """Starts a stream that cannot be foreseen, and returns its seed."""
        return self._engine.seed()

    def initial_seed(self) -> int:
        """Returns the seed with which the stream began."""
        return self._engine.initial_seed

    def get_state(self):
        """Returns the state as a uint8 tensor; on the CPU in PyTorch's layout of 5056 bytes."""
        table = table_of(device_type("cpu"))
        raw = call_recorded("get_state", _state_of, self)
        return call.wrap_array(table, raw, uint8)

    def set_state(self, new_state) -> Generator:
        """Goes back to a state, and returns the generator.

        Args:
            new_state: Tensor that `get_state` returned, here or (on the CPU) in PyTorch.

        Raises:
            TypeError: It is no uint8 tensor.
            RuntimeError: It has another size.
        """
        if not isinstance(new_state, call.Tensor) or new_state.dtype is not uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        call_recorded("set_state", _set_engine_state, self, new_state.detach().cpu()._tl_array)
        return self

    def clone_state(self) -> Generator:
        """Returns a new generator at the same place of the same stream."""
        other = Generator(self._device)
        other._engine.set_state(self._engine.get_state())
        return other

    graphsafe_get_state = clone_state

    def graphsafe_set_state(self, new_state: Generator) -> None:
        """Goes to the place of another generator.

        Args:
            new_state: The other generator.
        """
        self._engine.set_state(new_state._engine.get_state())

    def get_offset(self) -> int:
        """Returns the place in a counter-based stream, such as that of a GPU.

        Raises:
            RuntimeError: The generator is one of the CPU.
        """
        return self._engine_with_offset().get_offset()

    def set_offset(self, offset: int) -> None:
        """Goes to another place of a counter-based stream.

        Args:
            offset: The place.

        Raises:
            RuntimeError: The generator is one of the CPU.
        """
        self._engine_with_offset().set_offset(offset)

    def _engine_with_offset(self):
        if not hasattr(self._engine, "get_offset"):
            raise RuntimeError(f"{self._device.type.upper()} Generator does not use offset")
        return self._engine

    def __reduce__(self):
        return _engine_from_state, (str(self._device), self._engine.get_state().tobytes())

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"


Generator.__module__ = "torchlite._C"  # where programs find it


def _state_of(generator: Generator):
    """The state as an array of the CPU's."""
    return table_of(device_type("cpu")).from_numpy(generator._engine.get_state())


def _set_engine_state(generator: Generator, state) -> None:
    generator._engine.set_state(np.ascontiguousarray(table_of(device_type("cpu")).to_numpy(state)).ravel())


def _engine_from_state(device: str, state: bytes) -> Generator:
    generator = Generator(device)
    generator._engine.set_state(np.frombuffer(state, np.uint8))
    return generator


_lock = fork_locks.acquire_before_fork(threading.RLock())  # a handler of a signal may come in between
_defaults: dict = {}  # kernel table -> the device's default generator
_seed_of_later_devices = DEFAULT_SEED
_seeds_of_later_devices: dict[device_type, int] = {}  # of those that were seeded one by one before their first use


THREADS_WITH_COPIES: list[None] = []  # one entry for each active `use_copied_generators` block, in any thread


class _Thread(threading.local):
    copies: dict | None = None  # within `use_copied_generators`: kernel table -> copy of the default generator


_THREAD = _Thread()


@contextlib.contextmanager
def use_copied_generators(start: dict | None = None):
    """Context manager in which copies replace the default generators in this thread. The default generators do not
    advance, and other threads still draw from them. The copies start from the default generators' states at first
    use, or from those of `start` (`copy_default_generators`).
    """
    before = _THREAD.copies
    copies = {table: generator.clone_state() for table, generator in (start or {}).items()}
    THREADS_WITH_COPIES.append(None)
    _THREAD.copies = copies
    try:
        yield
    finally:
        _THREAD.copies = before
        THREADS_WITH_COPIES.pop()


def copy_default_generators() -> dict:
    """The default generators in use, by kernel table, as they are now."""
    return {table: default_generator_of(table).clone_state() for table in list(_defaults)}


@contextlib.contextmanager
def exclusive_default_generators(copies: dict):
    """Inside, other threads do not draw from the default generators in use, whose copies `copies` gets at first."""
    with contextlib.ExitStack() as held:
        for table in list(_defaults):
            held.enter_context(default_generator_of(table)._engine.lock)
        copies.update(copy_default_generators())
        yield


def unwrap_engine_copy(value):
    """A value that a recorded program keeps: the engine of a default generator in the place of a copy's."""
    for table, generator in (_THREAD.copies or {}).items():
        if generator._engine is value:
            return _find_default_generator(table)._engine
    return value


def _copy_of(table, copies: dict) -> Generator:
    """The copy of a default generator within `use_copied_generators`."""
    found = copies.get(table)
    if found is None:
        found = copies[table] = _find_default_generator(table).clone_state()
    return found


def default_generator_of(table) -> Generator:
    """The default generator of a device's random functions."""
    if THREADS_WITH_COPIES and _THREAD.copies is not None:
        return _copy_of(table, _THREAD.copies)
    return _find_default_generator(table)


def _find_default_generator(table) -> Generator:
    found = _defaults.get(table)
    if found is None:
        with _lock:
            if table not in _defaults:
                made = Generator(table.device)
                made._engine.manual_seed(_seeds_of_later_devices.pop(table.device, _seed_of_later_devices))
                _defaults.setdefault(table, made)
            found = _defaults[table]
    return found


def default_generators(tensors) -> list[Generator]:
    """The default generators of the CPU and of the devices that the tensors are on."""
    tables = {table_of(device_type("cpu")), *(t._tl_kernels for t in tensors if t._tl_kernels.device.type != "meta")}
    return [default_generator_of(table) for table in tables]


def engine_for_table(table, generator: Generator | None):
    """The engine that a random op on the table's device draws from."""
    if generator is None:
        found = _defaults.get(table)
        if found is not None and not THREADS_WITH_COPIES:
            return found._engine
        return None if table.device.type == "meta" else default_generator_of(table)._engine
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    if generator._device != table.device and table.device.type != "meta":
        raise RuntimeError(
            f"Expected a '{table.device.type}' device type for generator but found '{generator._device.type}'"
        )
    if THREADS_WITH_COPIES and generator is _defaults.get(table):
        return default_generator_of(table)._engine
    return generator._engine


# PyTorch's names of kernels in errors.
_KERNEL_NAMES = {
    "_random_uniform": "check_uniform_bounds", "_random_normal": "normal_kernel_cpu",
    "_random_integers": "random_kernel_cpu",
}  # fmt: skip


def new_random_tensor(kernel: str, size, dtype, *parameters, device=None, generator=None, requires_grad=False):
    """A new tensor from a random kernel `kernel(size, dtype, *parameters, engine)`."""
    where = get_default_device() if device is None else call._resolve_device(device)
    table = table_of(where)
    if dtype._np is None:
        opaque_dtypes.refuse(dtype, _KERNEL_NAMES.get(kernel, kernel))
    engine = engine_for_table(table, generator)
    if GLOBALS["INTERCEPTORS"]:
        return call.create_tensor(kernel, size, dtype, *parameters, engine, device=where, requires_grad=requires_grad)
    try:
        out = call.wrap_array(table, run_quietly(getattr(table, kernel), size, dtype, *parameters, engine), dtype)
    except Exception as error:  # every error of a kernel becomes PyTorch's
        values = [size, dtype, *parameters, engine]
        raise call.translate_error(call.REGISTRY[kernel], error, values) from error.__cause__
    return set_requires_grad(out, requires_grad)


def dims_by_stride(tensor) -> tuple[int, ...]:
    """The tensor's dimensions from the one with the largest stride to the one with the smallest: the order in which it
    is filled.
    """
    strides = tensor.stride()
    return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))


def fill_random(record, tensor, kernel: str, *parameters, generator=None):
    """Fill a tensor in place, in the order of its memory, from a random kernel."""
    check_in_place_random(tensor)
    check_no_internal_overlap(tensor)
    if tensor.dtype._np is None:
        opaque_dtypes.refuse(tensor.dtype, _KERNEL_NAMES.get(kernel, kernel))
    table = tensor._tl_kernels
    engine = engine_for_table(table, generator)
    draws = getattr(table, kernel)
    if tensor.is_contiguous():
        values = run_quietly(draws, tensor._tl_array.shape, tensor.dtype, *parameters, engine)
    else:
        order = dims_by_stride(tensor)
        shape = tuple(tensor._tl_array.shape[d] for d in order)
        values = run_quietly(draws, shape, tensor.dtype, *parameters, engine)
        values = table.permute(values, tuple(order.index(d) for d in range(len(order))))
    return write_random_values(record, tensor, call.wrap_array(table, values, tensor.dtype))


def check_in_place_random(tensor) -> None:
    """RuntimeError for a tensor that may not be drawn into: before anything is drawn."""
    if call.GLOBALS["WRITE_CHECKS"]:
        autograd_graph.check_before_write(tensor)
    if call.MODE.grad and tensor.requires_grad:
        autograd_graph.check_in_place_autograd(tensor)


def write_random_values(record, tensor, values):
    """Write random numbers of an in-place method to its tensor; the earlier history gets a zero gradient."""
    if call.MODE.grad and tensor.requires_grad:
        values = CALLBACKS.F._random_fill(tensor, values, record.name)
    return in_place_calls.write_result_in_place(record, tensor, values, tensor)


def manual_seed(seed) -> Generator:
    """Seeds the default generators of all devices, and returns the CPU's.

    Args:
        seed: An int of 64 bits; negative ones count from 2**64.

    Returns:
        The CPU's default `torch.Generator`.

    Raises:
        ValueError: ``seed`` has more bits.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.rand(2)
        tensor([0.4963, 0.7682])
    """
    global _seed_of_later_devices
    value = _to_unsigned_seed(int(seed))
    first = _find_default_generator(table_of(device_type("cpu")))
    if THREADS_WITH_COPIES and _THREAD.copies is not None:
        for table in list(_defaults):
            default_generator_of(table)._engine.manual_seed(value)
        return first
    with _lock:
        _seed_of_later_devices = value
        _seeds_of_later_devices.clear()
        for generator in list(_defaults.values()):
            generator._engine.manual_seed(value)
    return first


def seed_device(where: device_type, seed: int) -> None:
    """Seed the default generator of one device; a device that is not yet in use starts with this seed."""
    with _lock:
        table = next((table for table in list(_defaults) if table.device == where), None)
        if table is None:
            _seeds_of_later_devices[where] = _to_unsigned_seed(seed)
        else:
            default_generator_of(table)._engine.manual_seed(_to_unsigned_seed(seed))


def _cpu_generator() -> Generator:
    return default_generator_of(table_of(device_type("cpu")))


def seed() -> int:
    """Seeds the default generators from the operating system, and returns the seed.

    Example:
        >>> torch.seed() == torch.initial_seed()
        True
    """
    value = _cpu_generator().seed()
    manual_seed(value)
    return value


def initial_seed() -> int:
    """Returns the seed of the CPU's default generator.

    Example:
        >>> _ = torch.manual_seed(3)
        >>> torch.initial_seed()
        3
    """
    return _cpu_generator().initial_seed()


def get_rng_state():
    """Returns the state of the CPU's default generator as a uint8 tensor.

    Example:
        >>> state = torch.get_rng_state()
        >>> x = torch.rand(2)
        >>> torch.set_rng_state(state)
        >>> torch.equal(x, torch.rand(2))
        True
    """
    return _cpu_generator().get_state()


def set_rng_state(new_state) -> None:
    """Sets the state of the CPU's default generator.

    Args:
        new_state: Tensor that `get_rng_state` returned.

    Raises:
        TypeError: It is no uint8 tensor.
        RuntimeError: It has another size.

    Example:
        >>> torch.set_rng_state(torch.get_rng_state())
    """
    _cpu_generator().set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type=None):
    """Context manager that restores the states of the default generators at its end.

    Args:
        devices: Devices whose generators are restored beside the CPU's. Default: every device used so far.
        enabled: Whether states are restored. Default: ``True``.
        device_type: Device type of the ints among ``devices``. Default: CUDA.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> with torch.random.fork_rng(devices=[]):
        ...     x = torch.rand(2)
        >>> torch.equal(x, torch.rand(2))
        True
    """
    if not enabled:
        yield
        return
    if devices is None:
        chosen = list(_defaults)
        if len(chosen) > 2:
            warnings.warn(
                f"{len(chosen) - 1} devices are in use, and {_caller} restores the generators of all of them. "
                f"Name those that you need with the keyword argument '{_devices_kw}'.",
                stacklevel=3,
            )
    else:
        chosen = [
            table_of(call._resolve_device(f"{device_type or 'cuda'}:{d}" if isinstance(d, int) else d)) for d in devices
        ]
    cpu = _cpu_generator()
    forked = {id(g): g for g in [cpu, *(default_generator_of(t) for t in chosen)]}.values()
    saved = [(g, call_recorded("get_state", _state_of, g)) for g in forked]
    try:
        yield
    finally:
        for generator, state in saved:
            call_recorded("set_state", _set_engine_state, generator, state)


def __getattr__(name: str):
    if name == "default_generator":
        return _find_default_generator(table_of(device_type("cpu")))
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
