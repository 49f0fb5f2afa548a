"""Functions of torchlite that no op record makes."""

import builtins as _b
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from .aliases import DeviceLike, DType, File, MemoryFormat, Number, TensorLike
from .basic import Generator, Size, TypedStorage, device, dtype
from .tensor import Tensor

_F = TypeVar("_F", bound=Callable[..., Any])

# Making tensors.
def tensor(
    data: TensorLike,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    requires_grad: _b.bool = False,
    pin_memory: _b.bool = False,
) -> Tensor:
    """Returns a new tensor with a copy of data."""

def from_file(
    filename: str,
    shared: _b.bool | None = None,
    size: _b.int = 0,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """A flat tensor over a file's first `size` elements. With `shared`, writes go to the file, which is created or
    extended if necessary. RuntimeError if the file is missing or too short.
    """

def as_tensor(data: TensorLike, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """Returns data as a tensor, on the same memory where dtype and device allow."""

def asarray(
    obj: TensorLike,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    copy: _b.bool | None = None,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns an object as a tensor, on the same memory where that is possible."""

def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """Returns a CPU tensor on the memory of a NumPy array."""

def frombuffer(
    buffer: Any, *, dtype: DType, count: _b.int = -1, offset: _b.int = 0, requires_grad: _b.bool = False
) -> Tensor:
    """Returns a 1-d tensor on the memory of an object with the buffer protocol."""

def from_dlpack(ext_tensor: Any, *, device: DeviceLike = None, copy: _b.bool | None = None) -> Tensor:
    """Returns a tensor on the memory of an array of another library."""

def _assert(condition: Any, message: str) -> None: ...
def _check(cond: bool, message: Callable[[], Any] | None = None) -> None: ...
def _check_index(cond: bool, message: Callable[[], Any] | None = None) -> None: ...
def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None: ...
def _check_not_implemented(cond: bool, message: Callable[[], Any] | None = None) -> None: ...
def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None: ...
def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], Any] | None = None
) -> None: ...
def _check_type(cond: bool, message: Callable[[], Any] | None = None) -> None: ...
def _check_value(cond: bool, message: Callable[[], Any] | None = None) -> None: ...
def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], Any] | None = None) -> None: ...
def to_dlpack(tensor: Tensor) -> Any:
    """Returns a DLPack capsule on a tensor's memory, which one consumer takes over."""

# Files.
def save(
    obj: object,
    f: File,
    pickle_module: Any = ...,
    pickle_protocol: _b.int = 2,
    _use_new_zipfile_serialization: _b.bool = True,
    _disable_byteorder_record: _b.bool = False,
) -> None:
    """Writes an object with its tensors to a file that torchlite and PyTorch can load."""

def load(
    f: File,
    map_location: device | str | dict[str, str] | Callable[[Any, str], Any] | None = None,
    pickle_module: Any = None,
    *,
    weights_only: _b.bool | None = None,
    mmap: _b.bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads a file written by `torch.save`, of torchlite or PyTorch."""

# Devices and dtypes.
def get_default_device() -> device:
    """Returns the device on which tensors are created when `device=` is not given.

    Example:
        >>> torch.get_default_device()
        device(type='cpu')
    """

def set_default_device(device: DeviceLike) -> None:
    """Sets the device on which tensors are created when `device=` is not given."""

def get_device_module(device: device | str | None = None) -> ModuleType:
    """Returns the module of a device type, such as `torch.cuda`.

    Args:
        device: The device. Default: the accelerator, or the CPU if there is none.

    Example:
        >>> torch.get_device_module("cpu") is torch.cpu
        True
    """

def can_cast(from_: dtype, to: dtype) -> _b.bool:
    """Returns whether a result of one dtype may be written to a tensor of another."""

def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Returns the smallest dtype to which both dtypes convert."""

def result_type(*arrays_and_dtypes: Tensor | DType | Number, **named: Tensor | Number) -> dtype:
    """The dtype in which an arithmetic op combines tensors, dtypes and numbers (PyTorch: two tensors or numbers, by
    the names of its signatures: `tensor` and `other`, `scalar` and `tensor`, `scalar1` and `scalar2`). TypeError for
    anything else.
    """

def get_default_dtype() -> dtype:
    """Returns the dtype of tensors made from Python floats: float32 unless `set_default_dtype` changed it.

    Example:
        >>> torch.get_default_dtype()
        torch.float32
    """

def set_default_dtype(d: dtype) -> None:
    """Sets the dtype that Python floats become in new tensors."""

def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype, and for "torch.cuda.FloatTensor" and its kind the default device, by a
    type or its name.
    """

# Asking tensors.
def is_tensor(obj: object) -> _b.bool:
    """True if the object is a Tensor."""

def is_storage(obj: object) -> _b.bool:
    """True if the object is a storage."""

def is_floating_point(input: Tensor) -> _b.bool:
    """True if the tensor's dtype is a floating-point dtype."""

def is_complex(input: Tensor) -> _b.bool:
    """True if the tensor's dtype is complex."""

def is_signed(input: Tensor) -> _b.bool:
    """True if the tensor's dtype can represent negative values."""

def is_conj(input: Tensor) -> _b.bool:
    """Always False: conjugates are computed."""

def is_neg(input: Tensor) -> _b.bool:
    """Always False: negatives are computed."""

def is_inference(input: Tensor) -> _b.bool:
    """True if the tensor carries the mark of inference mode (never)."""

def is_nonzero(input: Tensor) -> _b.bool:
    """True if a one-element tensor is not zero. RuntimeError for other sizes."""

def is_same_size(input: Tensor, other: Tensor) -> _b.bool:
    """True if two tensors have the same shape."""

def get_device(input: Tensor) -> _b.int:
    """The index of the tensor's device; -1 on the CPU."""

def numel(input: Tensor) -> _b.int:
    """The number of elements."""

def typename(obj: object) -> str:
    """The full name of a class or function, else of an object's type; of a tensor such as "torch.FloatTensor"."""

def broadcast_shapes(*shapes_: _b.int | Sequence[_b.int]) -> Size:
    """The broadcast shape of these shapes. RuntimeError if they do not broadcast."""

# Random numbers.
default_generator: Generator
ops: Any

def manual_seed(seed: _b.int) -> Generator:
    """Seeds the default generators of all devices, and returns the CPU's."""

def seed() -> _b.int:
    """Seeds the default generators from the operating system, and returns the seed.

    Example:
        >>> torch.seed() == torch.initial_seed()
        True
    """

def initial_seed() -> _b.int:
    """Returns the seed of the CPU's default generator.

    Example:
        >>> _ = torch.manual_seed(3)
        >>> torch.initial_seed()
        3
    """

def get_rng_state() -> Tensor:
    """Returns the state of the CPU's default generator as a uint8 tensor.

    Example:
        >>> state = torch.get_rng_state()
        >>> x = torch.rand(2)
        >>> torch.set_rng_state(state)
        >>> torch.equal(x, torch.rand(2))
        True
    """

def set_rng_state(new_state: Tensor) -> None:
    """Sets the state of the CPU's default generator."""

def thread_safe_generator() -> Generator | None:
    """Return ``None``: no thread has a generator of its own here."""

# Modes and switches.
def is_grad_enabled() -> _b.bool:
    """Returns whether ops are recorded in this thread.

    Inference mode records nothing; inside it the result is the value that was set last.

    Example:
        >>> with torch.no_grad():
        ...     torch.is_grad_enabled()
        False
    """

def is_inference_mode_enabled() -> _b.bool:
    """Returns whether this thread is in inference mode.

    Example:
        >>> with torch.inference_mode():
        ...     torch.is_inference_mode_enabled()
        True
    """

def is_anomaly_enabled() -> _b.bool:
    """Returns whether anomaly detection is on.

    Example:
        >>> torch.is_anomaly_enabled()
        False
    """

def is_anomaly_check_nan_enabled() -> _b.bool:
    """Returns whether anomaly detection raises at a NaN, once it is on.

    Example:
        >>> torch.is_anomaly_check_nan_enabled()
        True
    """

def set_printoptions(
    precision: _b.int | None = None,
    threshold: _b.float | None = None,
    edgeitems: _b.int | None = None,
    linewidth: _b.int | None = None,
    profile: str | None = None,
    sci_mode: _b.bool | None = None,
) -> None:
    """Set how tensors are printed."""

def set_num_threads(n: _b.int) -> None:
    """Sets the number of threads of CPU kernels, and of NumPy's BLAS if its library supports that."""

def get_num_threads() -> _b.int:
    """Returns the number of threads of CPU kernels.

    Example:
        >>> torch.get_num_threads() >= 1
        True
    """

def set_num_interop_threads(n: _b.int) -> None:
    """Stores a number of threads, which has no effect: ops of one program run in the thread that calls them."""

def get_num_interop_threads() -> _b.int:
    """Returns the value that `set_num_interop_threads` set.

    Example:
        >>> torch.get_num_interop_threads() >= 1
        True
    """

def use_deterministic_algorithms(mode: _b.bool, *, warn_only: _b.bool = False) -> None:
    """Sets whether the same program must give the same results in each run."""

def are_deterministic_algorithms_enabled() -> _b.bool:
    """Returns whether `use_deterministic_algorithms` is on.

    Example:
        >>> torch.are_deterministic_algorithms_enabled()
        False
    """

def is_deterministic_algorithms_warn_only_enabled() -> _b.bool:
    """Returns whether deterministic mode only warns.

    Example:
        >>> torch.is_deterministic_algorithms_warn_only_enabled()
        False
    """

def get_deterministic_debug_mode() -> _b.int:
    """Returns the deterministic mode as a number: 0 off, 1 warns, 2 raises.

    Example:
        >>> torch.get_deterministic_debug_mode()
        0
    """

def set_deterministic_debug_mode(debug_mode: _b.int | str) -> None:
    """Sets the deterministic mode by a number or a word."""

def get_float32_matmul_precision() -> str:
    """Returns the precision of float32 matrix products: "highest", "high" or "medium".

    Example:
        >>> torch.get_float32_matmul_precision()
        'highest'
    """

def set_float32_matmul_precision(precision: str) -> None:
    """Sets the precision of float32 matrix products on devices that offer a choice."""

def set_flush_denormal(mode: _b.bool) -> _b.bool:
    """Returns False: NumPy has no switch that flushes denormal numbers to zero, so they stay.

    Args:
        mode: No effect.

    Example:
        >>> torch.set_flush_denormal(True)
        False
    """

def set_warn_always(b: _b.bool) -> None:
    """Sets whether warnings that are given once are repeated at each occurrence."""

def is_warn_always_enabled() -> _b.bool:
    """Returns whether `set_warn_always` is on.

    Example:
        >>> torch.is_warn_always_enabled()
        False
    """

class OutOfMemoryError(RuntimeError): ...

# Autocast.
class autocast:
    """Chooses the dtype of each op in a block, or as a decorator in a function."""
    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: _b.bool = True,
        cache_enabled: _b.bool | None = None,
    ) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc: object) -> None: ...
    def __call__(self, func: _F) -> _F: ...

def is_autocast_enabled(device_type: str = "cuda") -> _b.bool:
    """True if autocast is enabled for a device type in this thread.

    >>> import torchlite as torch
    >>> with torch.autocast("cpu"):
    ...     torch.is_autocast_enabled("cpu")
    True
    """

def is_autocast_cpu_enabled() -> _b.bool:
    """Deprecated: use `torch.is_autocast_enabled('cpu')`."""

def set_autocast_enabled(device_type: str | _b.bool = "cuda", enabled: _b.bool | None = None) -> None:
    """Enable or disable autocast for a device type in this thread; one argument means CUDA. `torch.autocast` does it
    for a block.
    """

def set_autocast_cpu_enabled(enabled: _b.bool) -> None:
    """Deprecated: use `torch.set_autocast_enabled('cpu', enabled)`."""

def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype that autocast uses on a device type.

    >>> import torchlite as torch
    >>> torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda"), torch.get_autocast_dtype("opencl")
    (torch.bfloat16, torch.float16, torch.float16)
    """

def get_autocast_cpu_dtype() -> dtype:
    """Deprecated: use `torch.get_autocast_dtype('cpu')`."""

def get_autocast_gpu_dtype() -> dtype:
    """Deprecated: use `torch.get_autocast_dtype('cuda')`."""

def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Set the dtype that autocast uses on a device type in this thread."""

def set_autocast_cpu_dtype(dtype: DType) -> None:
    """Deprecated: use `torch.set_autocast_dtype('cpu', dtype)`."""

def set_autocast_gpu_dtype(dtype: DType) -> None:
    """Deprecated: use `torch.set_autocast_dtype('cuda', dtype)`."""

def is_autocast_cache_enabled() -> _b.bool:
    """True if the casts of leaves are cached until the outermost region ends."""

def set_autocast_cache_enabled(enabled: _b.bool) -> None:
    """Set whether the casts of leaves are cached until the outermost region ends."""

def clear_autocast_cache() -> None:
    """Clear the autocast cache."""

def autocast_increment_nesting() -> _b.int:
    """Increment the nesting count, as `torch.autocast` does on entry."""

def autocast_decrement_nesting() -> _b.int:
    """Decrement the nesting count; at 0 the caller clears the cache."""

# Constructors of one dtype.
class BoolTensor(Tensor): ...
class ByteTensor(Tensor): ...
class CharTensor(Tensor): ...
class ShortTensor(Tensor): ...
class IntTensor(Tensor): ...
class LongTensor(Tensor): ...
class HalfTensor(Tensor): ...
class BFloat16Tensor(Tensor): ...
class FloatTensor(Tensor): ...
class DoubleTensor(Tensor): ...

# Storages of one dtype.
class BoolStorage(TypedStorage): ...
class ByteStorage(TypedStorage): ...
class CharStorage(TypedStorage): ...
class ShortStorage(TypedStorage): ...
class IntStorage(TypedStorage): ...
class LongStorage(TypedStorage): ...
class HalfStorage(TypedStorage): ...
class BFloat16Storage(TypedStorage): ...
class FloatStorage(TypedStorage): ...
class DoubleStorage(TypedStorage): ...
class ComplexFloatStorage(TypedStorage): ...
class ComplexDoubleStorage(TypedStorage): ...

# What the Array API has and PyTorch has not.
__array_api_version__: str

class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor

class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor

class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor

def __array_namespace_info__() -> Any: ...
def astype(x: Tensor, dtype: DType, /, *, copy: _b.bool = True, device: DeviceLike = None) -> Tensor:
    """The array with another dtype: a copy, unless `copy` is False and nothing changes.

    >>> import torchlite as torch
    >>> torch.astype(torch.tensor([1.5]), torch.int64)
    tensor([1])
    """

def bitwise_invert(x: Tensor, /) -> Tensor:
    """Each bit turned round; of bools `not`."""

def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The arrays, each broadcast against the others."""

def cumulative_prod(
    x: Tensor, /, *, axis: _b.int | None = None, dtype: DType | None = None, include_initial: _b.bool = False
) -> Tensor:
    """The running products along `axis`, with a 1 before them if `include_initial`."""

def cumulative_sum(
    x: Tensor, /, *, axis: _b.int | None = None, dtype: DType | None = None, include_initial: _b.bool = False
) -> Tensor:
    """The cumulative sum along `axis` (optional for one-dimensional arrays), with a leading 0 if `include_initial`."""

def expand_dims(x: Tensor, /, axis: _b.int | Sequence[_b.int] = 0) -> Tensor:
    """The array with a new dimension of length one at `axis`, or at each of several. IndexError for axes out of range,
    ValueError for repeated ones.
    """

def isdtype(dtype: dtype, kind: Any) -> _b.bool:
    """True if a dtype is of `kind`: a dtype; "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating" or "numeric"; or a tuple of these. ValueError for other names.

    >>> import torchlite as torch
    >>> torch.isdtype(torch.float32, ("bool", "real floating"))
    True
    """

def matrix_transpose(x: Tensor, /) -> Tensor:
    """The array with its last two dimensions exchanged. RuntimeError for fewer than two."""

def permute_dims(x: Tensor, /, axes: Sequence[_b.int]) -> Tensor:
    """The array with its dimensions in another order."""

def repeat(x: Tensor, repeats: Tensor | _b.int, /, *, axis: _b.int | None = None) -> Tensor:
    """Each element `repeats` times (a number, or one for each), along `axis` or of the flattened array.

    >>> import torchlite as torch
    >>> torch.repeat(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """

def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: _b.int = -1) -> Tensor:
    """Elements of `x` by indices along `axis`, the other dimensions broadcast. Negative indices count from the end."""

def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct values, sorted; the index of each one's first occurrence in the flattened array; the inverse
    indices; and the counts. NaNs are distinct from each other.

    >>> import torchlite as torch
    >>> torch.unique_all(torch.tensor([3, 1, 3])).indices
    tensor([1, 0])
    """

def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct values, sorted, and their counts."""

def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The different values, sorted, and which of them each element is."""

def unique_values(x: Tensor, /) -> Tensor:
    """The different values, sorted."""

def unstack(x: Tensor, /, *, axis: _b.int = 0) -> tuple[Tensor, ...]:
    """The array's parts along `axis`, without that axis."""

def vecdot(x1: Tensor, x2: Tensor, /, *, axis: _b.int = -1) -> Tensor:
    """The sums of `conj(x1) * x2` along `axis`, counted from the end of both; the other dimensions broadcast."""

_storage_classes: set[type]
_tensor_classes: set[type]

def eig(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed from PyTorch: RuntimeError. Use `torch.linalg.eig` or its successor."""

def lstsq(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed from PyTorch: RuntimeError. Use `torch.linalg.lstsq` or its successor."""

def matrix_rank(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed from PyTorch: RuntimeError. Use `torch.linalg.matrix_rank` or its successor."""

def solve(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed from PyTorch: RuntimeError. Use `torch.linalg.solve` or its successor."""

def symeig(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed from PyTorch: RuntimeError. Use `torch.linalg.symeig` or its successor."""

def as_torch() -> ModuleType:
    """Makes `import torch` mean torchlite in this process, and in processes that `multiprocessing` starts."""

def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Vectorize a function over a batch dimension of its arguments."""

def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sequence[_b.int] | None = None,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    check_invariants: _b.bool | None = None,
    is_coalesced: _b.bool | None = None,
) -> Tensor:
    """A sparse tensor in the COO layout: `values[i]` is at the index `indices[:, i]`; values at equal indices are
    summed.
    """

def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[_b.int] | None = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    check_invariants: _b.bool | None = None,
) -> Tensor:
    """A sparse tensor in the CSR layout out of `crow_indices`, `col_indices` and `values`; without `size` it is just
    large enough. Takes dtype, device, requires_grad and check_invariants, with which RuntimeError says what does not
    fit.
    """

def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[_b.int] | None = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    check_invariants: _b.bool | None = None,
) -> Tensor:
    """A sparse tensor in the CSC layout out of `ccol_indices`, `row_indices` and `values`; without `size` it is just
    large enough. Takes dtype, device, requires_grad and check_invariants, with which RuntimeError says what does not
    fit.
    """

def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[_b.int] | None = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    check_invariants: _b.bool | None = None,
) -> Tensor:
    """A sparse tensor in the BSR layout out of `crow_indices`, `col_indices` and `values`; without `size` it is just
    large enough. Takes dtype, device, requires_grad and check_invariants, with which RuntimeError says what does not
    fit.
    """

def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[_b.int] | None = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    check_invariants: _b.bool | None = None,
) -> Tensor:
    """A sparse tensor in the BSC layout out of `ccol_indices`, `row_indices` and `values`; without `size` it is just
    large enough. Takes dtype, device, requires_grad and check_invariants, with which RuntimeError says what does not
    fit.
    """

def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[_b.int] | None = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    check_invariants: _b.bool | None = None,
) -> Tensor:
    """A sparse tensor in one of the compressed layouts: CSR, CSC, BSR or BSC. RuntimeError for other values of
    `layout`.

    >>> import torchlite as torch
    >>> x = torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [5.0, 6.0], layout=torch.sparse_csr)
    >>> x.to_dense()
    tensor([[0., 5.],
            [6., 0.]])
    """

def _validate_sparse_csr_tensor_args(*args: Any, **kwargs: Any) -> None: ...
def _validate_sparse_csc_tensor_args(*args: Any, **kwargs: Any) -> None: ...
def _validate_sparse_bsr_tensor_args(*args: Any, **kwargs: Any) -> None: ...
def _validate_sparse_bsc_tensor_args(*args: Any, **kwargs: Any) -> None: ...
def _validate_sparse_coo_tensor_args(*args: Any, **kwargs: Any) -> None: ...
def _validate_sparse_compressed_tensor_args(*args: Any, **kwargs: Any) -> None: ...
def _convert_indices_from_coo_to_csr(input: Tensor, size: _b.int, *, out_int32: _b.bool = False) -> Tensor: ...
def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: _b.bool = False, transpose: _b.bool = False
) -> Tensor: ...
def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: DType) -> Any:
    """Quantizes a tensor with one scale and one zero point."""

def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: _b.int, dtype: DType) -> Tensor:
    """Quantizes a tensor with a scale and a zero point for each entry of a dimension."""

def quantize_per_tensor_dynamic(input: Tensor, dtype: DType, reduce_range: _b.bool) -> Tensor:
    """Quantizes a tensor with a scale and a zero point that fit its least and greatest numbers."""

def dequantize(input: Any, tensors: Any = None) -> Any:
    """Returns the numbers of a quantized tensor, ``(integer - zero_point) * scale``."""

def int_repr(input: Tensor) -> Tensor:
    """Returns the integers of a quantized tensor."""

def q_scale(input: Tensor) -> _b.float:
    """Returns the scale of a tensor that is quantized per tensor."""

def q_zero_point(input: Tensor) -> _b.int:
    """Returns the zero point of a tensor that is quantized per tensor."""

def q_per_channel_scales(input: Tensor) -> Tensor:
    """Returns the scales of a tensor that is quantized per channel, in float64."""

def q_per_channel_zero_points(input: Tensor) -> Tensor:
    """Returns the zero points of a tensor that is quantized per channel."""

def q_per_channel_axis(input: Tensor) -> _b.int:
    """Returns the dimension of the channels of a tensor that is quantized per channel."""

def _make_per_tensor_quantized_tensor(input: Tensor, scale: _b.float, zero_point: _b.int) -> Tensor: ...
def _make_per_channel_quantized_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, axis: _b.int) -> Tensor: ...
def _empty_affine_quantized(
    size: Any,
    *,
    scale: _b.float = 1,
    zero_point: _b.int = 0,
    dtype: DType,
    device: DeviceLike = None,
    memory_format: MemoryFormat = ...,
) -> Tensor: ...
def _empty_per_channel_affine_quantized(
    size: Any,
    *,
    scales: Tensor,
    zero_points: Tensor,
    axis: _b.int,
    dtype: DType,
    device: DeviceLike = None,
    memory_format: MemoryFormat = ...,
) -> Tensor: ...
def _saturate_weight_to_fp16(weight: Tensor) -> Tensor: ...
def quantized_lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """An LSTM of float32 numbers with packed weights; `torch.ao.nn.quantized.dynamic.LSTM` calls it."""

def quantized_gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """A GRU of float32 numbers with packed weights; `torch.ao.nn.quantized.dynamic.GRU` calls it."""

def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """`torch.smm`: sparse times dense, as a sparse matrix with all elements specified."""

def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _b.float = 1, alpha: _b.float = 1) -> Tensor:
    """`torch.sspaddmm`: the rows of `mat1` are filled, and follow the elements of `input`."""

def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`torch.hspmm`: sparse times dense, as a hybrid matrix with dense rows."""

def spmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the product of two matrices."""

def dsmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the product of two matrices."""

def hsmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`torch.hspmm`: sparse times dense, as a hybrid matrix with dense rows."""

def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _b.float = 1, alpha: _b.float = 1) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2`, sparse."""

def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """Resize a COO tensor to the size and the sparse and dense dimensions of another."""

def _assert_async(input: Tensor, assert_msg: _b.str | None = None) -> None: ...

# Sizes and numbers as symbols: none are.
class SymInt: ...
class SymFloat: ...
class SymBool: ...

def sym_int(a: Any) -> _b.int:
    """Returns the integer part of a number, rounded towards zero.

    Args:
        a: An int, float, `SymInt` or `SymFloat`.

    Example:
        >>> torch.sym_int(-2.7)
        -2
    """

def sym_float(a: Any) -> _b.float:
    """Returns `float(a)`, and of a traced size a `SymFloat`.

    Args:
        a: An int, float, `SymInt` or `SymFloat`.

    Example:
        >>> torch.sym_float(2)
        2.0
    """

def sym_not(a: Any) -> _b.bool:
    """Returns `not a`, and of a traced condition its negation.

    Args:
        a: A bool or `SymBool`.

    Example:
        >>> torch.sym_not(3 > 4)
        True
    """

def sym_max(a: Any, b: Any) -> Any:
    """Returns the larger number, a float if either is one."""

def sym_min(a: Any, b: Any) -> Any:
    """Returns the smaller number, a float if either is one."""

def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Returns `t if b else f`; a graph that is being captured keeps both values."""

def sym_sqrt(a: Any) -> _b.float:
    """Returns the square root of a number as a float."""

def sym_sum(args: Any) -> Any:
    """Returns the sum of numbers.

    Args:
        args: A sequence of numbers, possibly symbolic.

    Example:
        >>> torch.sym_sum([2, 3, 4])
        9
    """

def sym_fresh_size(expr: Any) -> Any:
    """Raises NotImplementedError: only a trace makes sizes that are not known."""

def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """Calls one of two functions, depending on a predicate."""

def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: _b.bool | None = None,
    method: str | None = None,
    tracker: Callable[..., None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, _b.bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest (with `largest=False` smallest) eigenvalues (*, k) and eigenvectors (*, m, k) of a symmetric
    positive definite `A` (*, m, m), dense or sparse, or of the generalised problem A x = e B x.
    """

def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Repeats `values = body_fn(*values)` while `cond_fn(*values)` is True."""

def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool: ...
def _shape_as_tensor(self: Tensor) -> Tensor: ...
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: _b.int, input_dtype: dtype) -> Tensor: ...
def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: _b.int, input_dtype: dtype) -> Tensor: ...
def _register_device_module(device_type: str, module: Any) -> None: ...
def _softmax(self: Tensor, dim: _b.int, half_to_float: _b.bool) -> Tensor: ...
def _log_softmax(self: Tensor, dim: _b.int, half_to_float: _b.bool) -> Tensor: ...
def _cast_Byte(self: Tensor, non_blocking: _b.bool = False) -> Tensor: ...
def _cast_Char(self: Tensor, non_blocking: _b.bool = False) -> Tensor: ...
def _cast_Short(self: Tensor, non_blocking: _b.bool = False) -> Tensor: ...
def _cast_Int(self: Tensor, non_blocking: _b.bool = False) -> Tensor: ...
def _cast_Long(self: Tensor, non_blocking: _b.bool = False) -> Tensor: ...
def _cast_Half(self: Tensor, non_blocking: _b.bool = False) -> Tensor: ...
def _cast_Float(self: Tensor, non_blocking: _b.bool = False) -> Tensor: ...
def _cast_Double(self: Tensor, non_blocking: _b.bool = False) -> Tensor: ...
def is_distributed(input: Tensor) -> _b.bool:
    """True if a tensor is distributed over several machines: always False."""

class AcceleratorError(RuntimeError):
    """Error of a device; `error_code` is the device's error number, if it has one."""

    error_code: _b.int

def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: _b.int = 1
) -> Tensor:
    """`torch.nn.functional.binary_cross_entropy_with_logits`.

    >>> import torchlite as torch
    >>> torch.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2), None, None, 2)
    tensor(1.3863)
    """

def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _b.float = 0.0, reduction: _b.int = 1
) -> Tensor:
    """`torch.nn.functional.cosine_embedding_loss`."""

def hinge_embedding_loss(input: Tensor, target: Tensor, margin: _b.float = 1.0, reduction: _b.int = 1) -> Tensor:
    """`torch.nn.functional.hinge_embedding_loss`."""

def kl_div(input: Tensor, target: Tensor, reduction: _b.int = 1, *, log_target: _b.bool = False) -> Tensor:
    """`torch.nn.functional.kl_div`; the mean is that of all elements, without the other's warning."""

def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _b.float = 0.0, reduction: _b.int = 1
) -> Tensor:
    """`torch.nn.functional.margin_ranking_loss`."""

def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: _b.bool, full: _b.bool, eps: _b.float, reduction: _b.int
) -> Tensor:
    """`torch.nn.functional.poisson_nll_loss`."""

def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: _b.float = 1.0,
    p: _b.float = 2.0,
    eps: _b.float = 1e-6,
    swap: _b.bool = False,
    reduction: _b.int = 1,
) -> Tensor:
    """`torch.nn.functional.triplet_margin_loss`."""

class DisableTorchFunction:
    """Context manager that switches off `__torch_function__` of subclasses and modes in the calling thread.

    Example:
        >>> with torch.overrides.BaseTorchFunctionMode(), torch.DisableTorchFunction():
        ...     torch.ones(2) + 1
        tensor([2., 2.])
    """
    def __enter__(self) -> None: ...
    def __exit__(self, *error: Any) -> None: ...

class DisableTorchFunctionSubclass(DisableTorchFunction): ...

Tag: Any
DispatchKey: Any
DispatchKeySet: Any
has_lapack: _b.bool
has_mkl: _b.bool
has_openmp: _b.bool
