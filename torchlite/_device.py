"""torch.device: a name and an index; the default device; layouts, memory formats and Size."""

from __future__ import annotations

import functools
import math
import threading

_ALIASES = {"ocl": "opencl"}


class device:
    """Where a tensor lives: `device("cpu")`, `device("cuda:1")`, `device("cuda", 1)`, `device("opencl")` (alias "ocl"),
    `device("meta")`.

    As a context manager it is the default device of tensors created inside. RuntimeError for a name that no backend
    has.

    >>> import torchlite as torch
    >>> torch.device("cuda:1").index
    1
    """

    type: str
    index: int | None
    __slots__ = ("type", "index", "__weakref__")

    def __new__(cls, type, index=None):
        if isinstance(type, device):
            if index is None:
                return type
            type = type.type
        if isinstance(type, int):
            return _intern("cuda", type)
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type.__class__.__name__}")
        if ":" in type:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            type, _, digits = type.partition(":")
            if not digits.isdigit() or (len(digits) > 1 and digits[0] == "0"):
                raise RuntimeError(f"Invalid device string: '{type}:{digits}'")
            index = int(digits)
        return _intern(_ALIASES.get(type, type), index)

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

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
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return inside


@functools.cache
def _intern(type: str, index: int | None) -> device:
    from ._dispatch.registry import is_known, known_backends

    if not is_known(type):
        raise RuntimeError(
            f"Expected one of {', '.join(known_backends())} device type at start of device string: {type}"
        )
    made = object.__new__(device)
    made.type, made.index = type, index
    return made


class _State(threading.local):
    stack: list[device] = []
    default: device | None = None


_state = _State()


def get_default_device() -> device:
    """The device on which tensors are created when `device=` is not given."""
    if _state.stack:
        return _state.stack[-1]
    return _state.default or device("cpu")


def set_default_device(d) -> None:
    """Set the device on which tensors are created when `device=` is not given; None resets it to the CPU."""
    _state.default = None if d is None else device(d)


class Size(tuple):
    """A tensor's shape: a tuple of ints."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    __str__ = __repr__

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __getitem__(self, key):
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, other):
        return Size(tuple.__mul__(self, other))

    __rmul__ = __mul__

    def __reduce__(self):
        return Size, (tuple(self),)


class _Constant:
    """A named constant of PyTorch's namespace."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return _constant, (self.name,)


class layout(_Constant):
    """How a tensor's elements lie in memory."""


class memory_format(_Constant):
    """An order of a tensor's dimensions in memory."""


strided, sparse_coo, sparse_csr = layout("strided"), layout("sparse_coo"), layout("sparse_csr")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")


def _constant(name: str) -> _Constant:
    return globals()[name]
