"""torch.device: a name and an index; the registered names; the default device."""

from __future__ import annotations

import functools
import inspect
import threading
from typing import Any

from .._settings import entry_points
from .._settings.generator_contexts import CLASS_MESSAGE, wrap_generator
from .package_name import is_torchlite_object

# The type that PyTorch leaves to other makers, who give it their name.
PRIVATE_USE = "privateuseone"
_ALIASES = {"ocl": "opencl"}
# Device types that exist even where no backend for them is installed, with the extra that brings it.
PIP_EXTRAS = {"cpu": "", "cuda": "cuda12", "opencl": "opencl", "meta": ""}
# PyTorch's device types without a backend: programs can compare and print them.
PYTORCH_ONLY_TYPES = (
    "ipu", "xpu", "mkldnn", "opengl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy", "vulkan", "mps", "hpu",
    "mtia", PRIVATE_USE,
)  # fmt: skip
BACKEND_MODULES: set[str] = set()  # packages whose modules several backends share
REGISTERED: dict[str, Any] = {}  # the backends that the running program registered, by device type


@functools.cache
def installed_backends() -> dict[str, entry_points.EntryPoint]:
    """The backends that installed packages offer, by device type; none is loaded."""
    return entry_points.entry_points("torchlite.backends")


def is_backend_module(name: str) -> bool:
    """True if a module implements a backend: the module of an installed or registered backend, a package in
    `BACKEND_MODULES`, or a module below one of these. A program's main module never counts.
    """
    roots = {point.module for point in installed_backends().values()} | BACKEND_MODULES
    roots |= {type(backend).__module__ for backend in REGISTERED.values()}
    return any(
        name == root or name.startswith(f"{root}.")
        for root in roots
        if root not in ("__main__", "builtins") and not is_torchlite_object(root)
    )


def list_known_device_types() -> list[str]:
    """Device types that something could compute on."""
    return [*PIP_EXTRAS, *(name for name in {**REGISTERED, **installed_backends()} if name not in PIP_EXTRAS)]


def is_known(name: str) -> bool:
    """True if a device type can be named; looks at installed backends only for a name of theirs."""
    return (
        name in PIP_EXTRAS
        or name in PYTORCH_ONLY_TYPES
        or name in REGISTERED
        or name in installed_backends()
        or name == private_use_type()
    )


def _type_name(value: Any) -> str:
    """A value's type as PyTorch's parser names it."""
    cls = value.__class__
    if cls.__module__ == "builtins":
        return str(cls.__name__)
    if is_torchlite_object(cls):
        return f"torch.{cls.__name__}" if cls.__name__.islower() else str(cls.__name__)
    return f"{cls.__module__}.{cls.__name__}"


def _type_error(given: Any, index: Any) -> TypeError:
    """PyTorch's error for what is neither a device nor the name of one."""
    name = _type_name(given)
    if index is not None:
        return TypeError(f"device(): argument 'type' (position 1) must be str, not {name}")
    parts = ", ".join(map(_type_name, given)) if isinstance(given, (list, tuple)) else ""
    shown = f"list of [{parts}]" if isinstance(given, list) else f"tuple of ({parts})" if parts else name
    return TypeError(
        f"device() received an invalid combination of arguments - got ({name}), but expected one of:\n"
        " * (torch.device device)\n      didn't match because some of the arguments have invalid types: "
        f"(!{shown}!)\n * (str type, int index = -1)\n"
    )


class device:
    """Names a device: its type and, where there are several of that type, its index.

    `device("cpu")`, `device("cuda:1")`, `device("cuda", 1)`, `device("opencl")` (alias "ocl") and `device("meta")` are
    examples. Equal devices are one object. As a context manager or decorator, a device is the default device inside.
    PyTorch's device types without a backend ("mps", "xpu:0") have names here, but no tensor can be created there.

    Args:
        type: A device type, or a type and index such as ``"cuda:1"``, or an int (an index of CUDA), or a device.
        index: Index among the devices of that type. Default: none, which means the current device of the type.

    Raises:
        TypeError: ``type`` is not a str, an int or a device.
        RuntimeError: The type is unknown, the string is malformed, or both ``type`` and ``index`` give an index.

    Example:
        >>> import torchlite as torch
        >>> torch.device("cuda:1").index
        1
        >>> with torch.device("meta"):
        ...     torch.empty(2).device
        device(type='meta')
    """

    type: str
    index: int | None
    __slots__ = ("type", "index", "__weakref__")

    def __new__(cls, type, index=None):
        if isinstance(type, device):
            if index is None:
                return type
            type = type.type
        if isinstance(index, bool) or index is not None and not hasattr(index, "__index__"):
            raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
        if isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        if index is not None and index.__index__() < 0:
            raise RuntimeError("Device index must not be negative")
        if isinstance(type, bytes):
            type = type.decode()
        if not isinstance(type, str):
            raise _type_error(type, index)
        if ":" in type:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            type, _, digits = type.partition(":")
            if not digits.isdigit() or (len(digits) > 1 and digits[0] == "0"):
                raise RuntimeError(f"Invalid device string: '{type}:{digits}'")
            index = int(digits)
        return _intern_device(_ALIASES.get(type, type), index)

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return device, (self.type, self.index)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __enter__(self):
        _state.stack = [*_state.stack, self]
        return self

    def __exit__(self, *exc):
        _state.stack = _state.stack[:-1]

    def __call__(self, function):
        if isinstance(function, type):
            raise RuntimeError(CLASS_MESSAGE)
        if inspect.isgeneratorfunction(function):
            return wrap_generator(function, lambda: self)

        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return inside


device.__module__ = "torchlite"  # where programs find it


_devices: dict[tuple[str, int | None], device] = {}


def _intern_device(type: str, index: int | None) -> device:
    """The one object for a device: devices are equal where they are the same object."""
    found = _devices.get((type, index))
    if found is not None:
        return found
    if not is_known(type):
        names = ", ".join((*list_known_device_types(), *PYTORCH_ONLY_TYPES))
        raise RuntimeError(f"Expected one of {names} device type at start of device string: {type}")
    made = object.__new__(device)
    made.type, made.index = type, index
    return _devices.setdefault((type, index), made)


def private_use_type() -> str:
    """The present name of the device type `PRIVATE_USE`."""
    return _ALIASES.get(PRIVATE_USE, PRIVATE_USE)


def rename_private_use(name: str) -> None:
    """Give the device type `PRIVATE_USE` another name, once in a process; its devices have the new name too.

    Raises:
        RuntimeError: The name is that of another device type, or the type has another new name already.
    """
    current = private_use_type()
    if name == current:
        return
    if is_known(name):
        raise RuntimeError(f"Cannot register privateuse1 backend with in-tree device name: {name}")
    if current != PRIVATE_USE:
        raise RuntimeError(f"torch.register_privateuse1_backend() has already been set! Current backend: {current}")
    _ALIASES[PRIVATE_USE] = name
    for (kind, index), made in list(_devices.items()):
        if kind == PRIVATE_USE:
            made.type = name
            _devices[name, index] = made


_CPU = _intern_device("cpu", None)


class _State(threading.local):
    stack: list[device] = []
    default: device | None = None
    tensor_type = "cpu"  # the device type of `torch.set_default_tensor_type`


_state = _State()


def get_default_device() -> device:
    """Returns the device on which tensors are created when `device=` is not given.

    Example:
        >>> torch.get_default_device()
        device(type='cpu')
    """
    if _state.stack:
        return _state.stack[-1]
    return _state.default or _CPU


def default_tensor_type_device() -> str:
    """The device type of `torch.Tensor(...)`: that of `torch.set_default_tensor_type`, whatever the default device."""
    return _state.tensor_type


def set_default_tensor_type_device(type: str) -> None:
    """Set the device type of `torch.Tensor(...)`, and the default device."""
    _state.tensor_type = type
    set_default_device(None if type == "cpu" else type)


def set_default_device(device) -> None:
    """Sets the device on which tensors are created when `device=` is not given.

    The setting is the calling thread's. A `with torch.device(...)` block has precedence.

    Args:
        device: A device or its name. ``None`` resets the default to the CPU.

    Raises:
        RuntimeError: The device type is unknown.

    Example:
        >>> torch.set_default_device("meta")
        >>> torch.zeros(2).device
        device(type='meta')
        >>> torch.set_default_device(None)
    """
    _state.default = None if device is None else globals()["device"](device)
