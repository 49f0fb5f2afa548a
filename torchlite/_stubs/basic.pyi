"""Devices, dtypes, sizes, generators, storages, streams and modes."""

import builtins as _b
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import Any, Protocol, Self, SupportsIndex, TypeVar, overload

import numpy as np

from .tensor import Tensor

_F = TypeVar("_F", bound=Callable[..., Any])

class device:
    """Names a device: its type and, where there are several of that type, its index."""

    type: str
    index: int | None
    def __new__(cls, type: device | str | int, index: int | None = None) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def __call__(self, function: _F) -> _F: ...

class dtype:
    """A data type of tensors, such as `torch.float32`."""

    name: str
    category: int
    itemsize: int
    is_signed: bool
    scalar_name: str
    @property
    def np(self) -> np.dtype[Any]:
        """The NumPy dtype of the same values.

        The NumPy dtypes of bfloat16, float8 and complex32 come from ml_dtypes. Those of `torch.float8_e8m0fnu`,
        `torch.float4_e2m1fn_x2`, integers of fewer than eight bits and bits are structures of bytes, with which
        NumPy does not compute.

        Raises:
            TypeError: The dtype is quantized, such as `torch.qint8`.
        """
    @property
    def is_floating_point(self) -> bool:
        """True for floating-point dtypes, False for complex ones."""
    @property
    def is_complex(self) -> bool:
        """True for complex dtypes."""
    def to_complex(self) -> dtype:
        """The complex dtype whose parts have this precision. RuntimeError for a dtype that has none."""
    def to_real(self) -> dtype:
        """The real dtype of a complex dtype's parts; a real dtype itself."""

class Size(tuple[int, ...]):
    """A tensor's shape: a tuple of ints."""
    def __new__(cls, iterable: Iterable[int] = ..., /) -> Self: ...
    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> Size: ...
    def __add__(self, other: tuple[int, ...], /) -> Size: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
    def __radd__(self, other: tuple[int, ...], /) -> Size: ...
    def __mul__(self, other: SupportsIndex, /) -> Size: ...
    def __rmul__(self, other: SupportsIndex, /) -> Size: ...

class layout:
    """The memory layout of a tensor's elements."""

    name: str

class qscheme:
    """A quantization scheme, such as `torch.per_tensor_affine`.

    An affine scheme stores a number ``x`` as the integer ``round(x / scale + zero_point)``. A symmetric one has the
    zero point 0, or the middle of an unsigned range. Scale and zero point belong to a tensor, or to each channel.

    Example:
        >>> torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8).qscheme()
        torch.per_tensor_affine
    """

    name: str

class memory_format:
    """An order of a tensor's dimensions in memory."""

    name: str

class finfo:
    """Numerical limits of a floating-point dtype, or of the parts of a complex one."""

    dtype: str
    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    def __init__(self, type: _DType | None = None) -> None: ...

class iinfo:
    """Numerical limits of an integer dtype."""

    dtype: str
    bits: int
    max: int
    min: int
    def __init__(self, type: _DType) -> None: ...

class Generator:
    """A source of random numbers on one device."""
    def __init__(self, device: _Device | str | int = "cpu") -> None: ...
    @property
    def device(self) -> _Device:
        """Device on which it draws."""
    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream of a seed, and returns the generator.

        Args:
            seed: An int of 64 bits; negative ones count from 2**64.

        Raises:
            RuntimeError: ``seed`` is no int.
            ValueError: It has more bits.
        """
    def seed(self) -> int:
        """Starts a stream that cannot be foreseen, and returns its seed."""
    def initial_seed(self) -> int:
        """Returns the seed with which the stream began."""
    def get_state(self) -> Tensor:
        """Returns the state as a uint8 tensor; on the CPU in PyTorch's layout of 5056 bytes."""
    def set_state(self, new_state: Tensor) -> None:
        """Goes back to a state, and returns the generator.

        Args:
            new_state: Tensor that `get_state` returned, here or (on the CPU) in PyTorch.

        Raises:
            TypeError: It is no uint8 tensor.
            RuntimeError: It has another size.
        """
    def clone_state(self) -> Generator:
        """Returns a new generator at the same place of the same stream."""
    def graphsafe_get_state(self) -> Generator:
        """Returns a new generator at the same place of the same stream."""
    def graphsafe_set_state(self, new_state: Generator) -> None:
        """Goes to the place of another generator.

        Args:
            new_state: The other generator.
        """
    def get_offset(self) -> int:
        """Returns the place in a counter-based stream, such as that of a GPU.

        Raises:
            RuntimeError: The generator is one of the CPU.
        """
    def set_offset(self, offset: int) -> None:
        """Goes to another place of a counter-based stream.

        Args:
            offset: The place.

        Raises:
            RuntimeError: The generator is one of the CPU.
        """

class StorageBase: ...

class UntypedStorage(StorageBase):
    """The bytes under a tensor and all that share its memory.

    `UntypedStorage(4)` has four bytes that are not set, `UntypedStorage([1, 2])` these two, on `device` (the CPU).

    >>> import torchlite as torch
    >>> x = torch.zeros(2, 3)
    >>> x.untyped_storage().nbytes(), x[1].untyped_storage() is x.untyped_storage()
    (24, True)
    """
    def __new__(cls, *args: Any, device: Any = None) -> Self: ...
    @property
    def device(self) -> _Device:
        """The device that has the bytes."""
    @property
    def is_cuda(self) -> _b.bool:
        """True for bytes on a CUDA device."""
    @property
    def filename(self) -> str | None:
        """The file that a mapping shares its memory with; None for other storages."""
    def get_device(self) -> _b.int:
        """The index of the device; -1 on the CPU."""
    def data_ptr(self) -> _b.int:
        """The address of the first byte; on a device a number that no other memory has. 0 without bytes."""
    def nbytes(self) -> _b.int:
        """The length in bytes."""
    def size(self) -> _b.int:
        """The length in bytes."""
    def __len__(self) -> _b.int: ...
    def element_size(self) -> _b.int:
        """Bytes of an element: 1."""
    def resizable(self) -> _b.bool:
        """True if the storage can be resized. It cannot if other objects, such as NumPy arrays, rely on its memory."""
    def resize_(self, size: _b.int) -> Self:
        """Resize the storage to a number of bytes; its tensors follow. RuntimeError if it is not resizable."""
    def numpy(self) -> np.ndarray[Any, Any]:
        """The bytes as a uint8 array on the same memory (CPU), or a copy of a device's."""
    def tolist(self) -> list[_b.int]:
        """The bytes as integers."""
    @overload
    def __getitem__(self, index: SupportsIndex) -> _b.int: ...
    @overload
    def __getitem__(self, index: slice) -> UntypedStorage: ...
    def __setitem__(self, index: SupportsIndex | slice, value: _b.int) -> None: ...
    def __iter__(self) -> Iterator[_b.int]: ...
    def fill_(self, value: _b.int) -> Self:
        """Write a number into every byte."""
    def copy_(self, source: UntypedStorage | TypedStorage, non_blocking: _b.bool | None = None) -> Self:
        """Write the bytes of another storage of the same length."""
    def clone(self) -> UntypedStorage:
        """A copy."""
    def new(self) -> UntypedStorage:
        """A storage without bytes on the same device."""
    def untyped(self) -> UntypedStorage:
        """The storage itself."""
    def to(self, *, device: Any, non_blocking: _b.bool = False) -> UntypedStorage:
        """The storage on a device: itself when it is there."""
    def cpu(self) -> UntypedStorage:
        """The storage on the CPU."""
    def cuda(self, device: Any = None, non_blocking: _b.bool = False) -> UntypedStorage:
        """The storage on a CUDA device."""
    def type(self, dtype: Any = None, non_blocking: _b.bool = False) -> Any:
        """The name of its kind, or itself as that kind. `non_blocking` has no effect: the cast runs on the host."""
    def byteswap(self, dtype: _DType) -> None:
        """Reverse the bytes of every element of a dtype (of each part of complex ones)."""
    def is_shared(self) -> _b.bool:
        """True if the memory is a mapping shared with other processes; always True on a device."""
    def share_memory_(self) -> Self:
        """Move the bytes to shared memory, which forked processes see; the tensors on it go along."""
    def is_pinned(self, device: Any = "cuda") -> _b.bool:
        """True if the memory is page-locked. `device` has no effect: CUDA alone pins memory."""
    def pin_memory(self, device: Any = "cuda") -> UntypedStorage:
        """A copy in page-locked memory. `device` has no effect: CUDA alone pins memory."""
    @staticmethod
    def from_buffer(
        buffer: Any, byte_order: str = "native", count: _b.int = -1, offset: _b.int = 0, *, dtype: _DType = ...
    ) -> UntypedStorage:
        """A storage with a copy of the bytes of an object with the buffer protocol."""
    @staticmethod
    def from_file(filename: str | PathLike[str], shared: _b.bool = False, nbytes: _b.int = 0) -> UntypedStorage:
        """A storage over a file's bytes. With `shared`, writes go to the file, which is created or extended if
        necessary.
        """
    def double(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.float64."""
    def float(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.float32."""
    def half(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.float16."""
    def long(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.int64."""
    def int(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.int32."""
    def short(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.int16."""
    def char(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.int8."""
    def byte(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.uint8."""
    def bool(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.bool."""
    def bfloat16(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.bfloat16."""
    def complex_double(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.complex128."""
    def complex_float(self) -> TypedStorage:
        """The bytes as numbers, converted to torch.complex64."""

class TypedStorage:
    """The elements of a dtype in a storage.

    `TypedStorage(size)`, `TypedStorage(sequence)`, or `TypedStorage(wrap_storage=untyped)` on the memory of another,
    with `dtype` and `device`. Deprecated: `Tensor.untyped_storage` has the bytes.
    """
    def __init__(
        self,
        *args: Any,
        device: Any = None,
        dtype: _DType | None = None,
        wrap_storage: UntypedStorage | None = None,
        _internal: _b.bool = False,
    ) -> None: ...
    @property
    def dtype(self) -> _DType:
        """The dtype of the elements."""
    @property
    def device(self) -> _Device:
        """The device that has the elements."""
    @property
    def is_cuda(self) -> _b.bool:
        """True for elements on a CUDA device."""
    @property
    def filename(self) -> str | None:
        """The file that a mapping shares its memory with."""
    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
    def size(self) -> _b.int:
        """The number of elements."""
    def __len__(self) -> _b.int: ...
    def nbytes(self) -> _b.int:
        """The length in bytes."""
    def element_size(self) -> _b.int:
        """Bytes of an element."""
    def data_ptr(self) -> _b.int:
        """The address of the first element."""
    def get_device(self) -> _b.int:
        """The index of the device; -1 on the CPU."""
    def resizable(self) -> _b.bool:
        """True if the storage can be resized."""
    def resize_(self, size: _b.int) -> None:
        """Resize the storage to a number of elements."""
    def is_shared(self) -> _b.bool:
        """True if the memory is shared with other processes."""
    def share_memory_(self) -> Self:
        """Move the elements to shared memory."""
    def is_pinned(self, device: Any = "cuda") -> _b.bool:
        """True if the memory is page-locked."""
    def pin_memory(self, device: Any = "cuda") -> TypedStorage:
        """A copy in page-locked memory."""
    def pickle_storage_type(self) -> str:
        """The name of its class in checkpoints: "FloatStorage"."""
    def type(self, dtype: Any = None, non_blocking: _b.bool = False) -> Any:
        """The name of its kind, "torch.FloatStorage", or itself as that kind. `non_blocking` has no effect: the cast
        runs on the host.
        """
    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, index: _b.int) -> Any: ...
    def __setitem__(self, index: _b.int | slice, value: complex) -> None: ...
    def fill_(self, value: complex) -> Self:
        """Write a number into every element."""
    def copy_(self, source: UntypedStorage | TypedStorage, non_blocking: _b.bool | None = None) -> Self:
        """Write the bytes of another storage of the same length."""
    def clone(self) -> TypedStorage:
        """A copy."""
    def to(self, *, device: Any, non_blocking: _b.bool = False) -> TypedStorage:
        """The storage on a device."""
    def cpu(self) -> TypedStorage:
        """The storage on the CPU."""
    def cuda(self, device: Any = None, non_blocking: _b.bool = False) -> TypedStorage:
        """The storage on a CUDA device."""
    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """A storage with a copy of a buffer's bytes: `from_buffer(buffer, byte_order)`."""
    @classmethod
    def from_file(cls, filename: str | PathLike[str], shared: _b.bool = False, size: _b.int = 0) -> TypedStorage:
        """A storage on a file's elements; with `shared` changes go to the file."""
    def double(self) -> TypedStorage:
        """The elements converted to torch.float64."""
    def float(self) -> TypedStorage:
        """The elements converted to torch.float32."""
    def half(self) -> TypedStorage:
        """The elements converted to torch.float16."""
    def long(self) -> TypedStorage:
        """The elements converted to torch.int64."""
    def int(self) -> TypedStorage:
        """The elements converted to torch.int32."""
    def short(self) -> TypedStorage:
        """The elements converted to torch.int16."""
    def char(self) -> TypedStorage:
        """The elements converted to torch.int8."""
    def byte(self) -> TypedStorage:
        """The elements converted to torch.uint8."""
    def bool(self) -> TypedStorage:
        """The elements converted to torch.bool."""
    def bfloat16(self) -> TypedStorage:
        """The elements converted to torch.bfloat16."""
    def complex_double(self) -> TypedStorage:
        """The elements converted to torch.complex128."""
    def complex_float(self) -> TypedStorage:
        """The elements converted to torch.complex64."""

class Stream:
    """An order in which a device works: what is started in one stream runs one after the other, several streams may run
    at the same time.

    `torch.Stream(device)` gives the device type's own class. On a device type that has one queue (OpenCL) all
    streams are that queue.

    `device_type` has no effect: the class belongs to one kind of device.
    """

    device: _Device
    priority: int
    stream_id: int
    def __init__(
        self,
        device: _Device | str | int | None = None,
        priority: int = 0,
        *,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: Any = None,
        stream_ptr: int | None = None,
    ) -> None: ...
    @property
    def device_index(self) -> int:
        """The index of the stream's device."""
    @property
    def device_type(self) -> str:
        """The type of the stream's device, a number."""
    @property
    def native_handle(self) -> int:
        """The address of the runtime's stream; 0 where streams are names."""
    def synchronize(self) -> None:
        """Wait for everything that was given to the stream."""
    def query(self) -> bool:
        """True if all work submitted to the stream is complete."""
    def is_capturing(self) -> bool:
        """True if work submitted to the stream is being captured into a graph."""
    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, by default a new one; returns it."""
    def wait_event(self, event: Event) -> None:
        """Make later work in the stream wait for the event."""
    def wait_stream(self, stream: Stream) -> None:
        """Make later work in this stream wait for the work submitted to the other one so far."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

class Event:
    """A place in a stream's work: record it, then ask or wait for it; `enable_timing=True` for `elapsed_time`.

    `torch.Event(device)` gives the device type's own class.

    `blocking` has no effect: how the host waits changes no result. `external` has no effect: graphs record every
    event.
    """

    enable_timing: bool
    device: _Device | None
    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None: ...
    def record(self, stream: Stream | None = None) -> None:
        """Record the event in a stream, by default the current one."""
    def query(self) -> bool:
        """True if all work before the event is complete; True for an event that was not recorded."""
    def synchronize(self) -> None:
        """Wait for everything before the event."""
    def wait(self, stream: Stream | None = None) -> None:
        """Make later work in a stream (by default the current one) wait for the event."""
    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to a later one."""

class _Mode:
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...
    def __call__(self, function: _F) -> _F: ...

class no_grad(_Mode):
    """Disables the recording of gradients in a block, a function or a generator, for this thread."""
    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]

class enable_grad(no_grad): ...

class inference_mode(_Mode):
    """Disables recording as `no_grad` does, and makes tensors that can never be part of a graph."""
    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: _F) -> _F: ...  # type: ignore[misc]

class set_grad_enabled(_Mode):
    """Turns the recording of gradients on or off: at once, and as a context manager until the block ends."""

    mode: bool
    def __init__(self, mode: bool) -> None: ...

class RemovableHandle(Protocol):
    def remove(self) -> None:
        """Remove the hook."""
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc: object) -> None: ...

per_tensor_affine: qscheme
per_channel_affine: qscheme
per_tensor_symmetric: qscheme
per_channel_symmetric: qscheme
per_channel_affine_float_qparams: qscheme
strided: layout
jagged: layout
sparse_coo: layout
sparse_csr: layout
sparse_csc: layout
sparse_bsr: layout
sparse_bsc: layout
contiguous_format: memory_format
preserve_format: memory_format
channels_last: memory_format
channels_last_3d: memory_format
_Device = device
_DType = dtype
