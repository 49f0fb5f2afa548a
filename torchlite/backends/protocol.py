"""The backend contract: Protocols for packages that add a device type to torchlite. docs/backend.md is the guide.

`Backend` lists the required members of a backend object. Each other Protocol is optional: the front end tests for a
hook with `hasattr` before it calls it, and its docstring states what happens without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from .._dispatch.backend import OutOfMemoryError
from .._dispatch.backend_registry import missing_kernels, register_backend
from .._dispatch.kernel_recorder import UnrecordableError
from .._dispatch.shape_and_value_checks import check_in_bounds_for_storage
from .._dispatch.shapes import broadcast_shapes, contiguous_strides, infer_size, reduced_shape, wrap_dim, wrap_dims
from .._types.devices import device
from .._types.dtypes import dtype
from .._types.dtypes import from_np as from_numpy_dtype

__all__ = [
    "Accelerator", "AcceleratorChoice", "AnyBackend", "Backend", "CapturedGraph", "CounterBasedEngine",
    "DeviceArray", "DeviceRuntime",
    "EventMarker", "FusedFunction", "HalfPrecision", "HostFusion", "Interop", "Kernel", "KernelEngines",
    "KernelLocations", "LargeArrays", "LaunchRecording", "Layout", "Libraries", "MatmulFusion", "OutOfMemoryError",
    "Random", "RandomEngine", "RecordedLaunches", "Reports", "SharedStorage", "StreamHandle", "StreamRuntime",
    "UnrecordableError",
    "broadcast_shapes", "check_in_bounds_for_storage", "contiguous_strides", "device", "dtype", "from_numpy_dtype",
    "infer_size", "missing_kernels",
    "reduced_shape", "register_backend", "wrap_dim", "wrap_dims",
]  # fmt: skip

Kernel = Callable[..., Any]
# Of an array in a captured program: its shape, its NumPy dtype, and whether it is C-contiguous.
Layout = tuple[tuple[int, ...], np.dtype, bool]


class DeviceArray(Protocol):
    """A raw array: the memory of a tensor on a device. The front end reads these attributes and no others, and makes
    weak references to raw arrays.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        ...

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        ...

    @property
    def size(self) -> int:
        """The number of elements."""
        ...

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of all elements: `size * itemsize`."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """The NumPy dtype of the elements, that of ml_dtypes for bfloat16 and float8."""
        ...

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours along each dimension."""
        ...

    @property
    def base(self) -> Any:
        """The raw array that owns the memory, which all views of it have in common. An array that owns its memory has
        None, or an object that is not a raw array.
        """
        ...


class Backend(Protocol):
    """Devices of one type, and their kernels. An entry point of the group `torchlite.backends`, or `register_backend`,
    names an object with these members. The entry point's name is the device type.
    """

    @property
    def array(self) -> type:
        """The class of the raw arrays, see `DeviceArray`. Kernels return instances of exactly this class."""
        ...

    def why_not(self) -> str:
        """Return the reason why no device can be used: a sentence that names what to install. "" if devices can be
        used. Called before the first use of each device, and by `torch.cuda.is_available()` and the like. Must not
        raise.
        """
        ...

    def device_count(self) -> int:
        """The number of devices. Indices run from 0. Called only after `why_not()` returned ""."""
        ...

    def kernels(self, index: int) -> dict[str, Kernel]:
        """Kernels of device `index`, by op name. Called once, when the device is first used.

        A kernel has the parameters of its op's schema, in order. Tensor arguments arrive as raw arrays of this device,
        promoted to a common dtype by the op's rule. Python numbers stay Python numbers, and dtypes are `torch.dtype`.
        A kernel returns a new raw array, or a tuple of them for an op with several results. Kernels of views return
        arrays on their input's memory. No kernel writes to its arguments.

        A kernel named `NAME_` is the in-place variant of the pointwise op NAME. It writes its result to its first
        argument; without it the front end computes a new array and copies it.

        An op without a kernel runs as its composite. An op that has neither raises NotImplementedError when called.
        RuntimeError for a name that is not an op's.
        """
        ...

    def as_array(self, value: Any) -> Any:
        """A kernel's result as a raw array. Called for a result that is not an instance of `array`, such as a NumPy
        scalar.
        """
        ...

    def from_numpy(self, array: np.ndarray, index: int) -> Any:
        """A raw array on device `index` with the elements of a host array. Called for every transfer to the device.
        A device whose memory is not the CPU's own copies the elements.
        """
        ...

    def to_numpy(self, raw: Any) -> np.ndarray:
        """A host array with the elements of a raw array. Called for every transfer to the host, and when Python reads
        elements. Waits for kernels that write to `raw`. Returns a copy, except on "cpu".
        """
        ...

    def dtype_of(self, raw: Any) -> dtype:
        """The `torch.dtype` of a raw array."""
        ...

    def offset_between(self, raw: Any, base: Any) -> int:
        """Bytes from the first element of `base` to the first element of `raw`, a view of it."""
        ...

    def copy_into(self, target: Any, source: Any) -> None:
        """Write `source`, a raw array of the same device, into `target`. Broadcasts to its shape, casts to its
        dtype. Called by in-place ops and writes through views.
        """
        ...

    def is_sole_owner(self, raw: Any) -> bool:
        """True if no other raw array uses this memory. `backward()` then stores the array in `.grad` without a copy.
        False is always correct.
        """
        ...


class SharedStorage(Protocol):
    """Optional. Views of a tensor share one `torch.UntypedStorage`. Needs the kernels `_as_strided` and `_view_dtype`
    too. Without it `untyped_storage()` and `torch.save` work on a copy of each tensor.
    """

    def memory(self, raw: Any) -> Any:
        """The allocation that `raw` is part of, from its first byte to its last, as a raw array of dtype uint8 on the
        same memory.
        """
        ...


class LargeArrays(Protocol):
    """Optional. Other kernels for large arrays, such as kernels that use several threads. Without it one set of
    kernels runs for all sizes.
    """

    def large_kernels(self, index: int) -> dict[str, Kernel]:
        """Kernels of device `index` for ops whose first tensor has 32,768 elements or more. They replace the kernels
        of the same names. Composites and derivative formulas call them with smaller arrays too. Called once, when the
        first large tensor is used.
        """
        ...


class HalfPrecision(Protocol):
    """Optional. Arithmetic in float16 and bfloat16. Without it kernels get half-precision arrays and compute in any
    precision, and Python numbers enter float16, float32 and float64 kernels as they are.
    """

    @property
    def scalar_dtypes(self) -> frozenset[dtype]:
        """Dtypes whose kernels take Python numbers as operands. For others the front end makes a 0-d array first."""
        ...

    def in_float32(self, kernel: Kernel) -> Kernel:
        """A kernel that casts half-precision arguments to float32 and the result back. Called for each composite when
        the device is first used. Without it composites round after each op. If the kernel has an attribute `write`,
        `write(target, number)` computes an op with a number in the place of its first argument.
        """
        ...

    def backward_in_float32(
        self, backward: Callable, table: Any, g: Any, node: Any, get: Callable, get_out: Callable
    ) -> Any:
        """`backward(table, g, node, get, get_out)`, a derivative formula, computed in float32 for a half-precision
        gradient `g`. Called by `backward()` for each node of an op that rounds.
        """
        ...

    def widens_half(self, index: int) -> bool:
        """True if half precision costs more than float32 on a device. Optimized calls of loaded modules without
        gradients then keep half-precision arrays in float32.
        """
        ...


class RandomEngine(Protocol):
    """The state of a random stream behind a `torch.Generator`. Random kernels get it as their last argument, from
    several threads.
    """

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """A reentrant lock. The front end holds it while other threads must not draw; the engine, while its state
        changes.
        """
        ...

    @property
    def initial_seed(self) -> int:
        """The last seed."""
        ...

    def manual_seed(self, seed: int) -> Any:
        """Restart the stream from a seed, an unsigned 64-bit integer."""
        ...

    def seed(self) -> int:
        """Restart the stream from a seed of the operating system. Returns the seed."""
        ...

    def get_state(self) -> np.ndarray:
        """The state, as a new uint8 array of one dimension."""
        ...

    def set_state(self, state: np.ndarray) -> Any:
        """Restore a state of `get_state`. RuntimeError for an array that is no state."""
        ...


class CounterBasedEngine(RandomEngine, Protocol):
    """Optional. A counter-based stream, such as Philox. Without it `Generator.get_offset` raises RuntimeError."""

    def get_offset(self) -> int:
        """The position in the stream."""
        ...

    def set_offset(self, offset: int) -> None:
        """Go to a position in the stream."""
        ...


class Random(Protocol):
    """Optional. Random numbers. Random ops need the kernels `_random_*` too; `_random_uniform`, `_random_normal` and
    `_random_integers` suffice for most, since the others have composites. Without it `torch.Generator` and random ops
    raise NotImplementedError on the device.
    """

    def random_engine(self, index: int) -> RandomEngine | None:
        """A new random stream for device `index`. Called for each `torch.Generator(device)`, and once for the default
        generator. None for a device type without data ("meta").
        """
        ...


class Interop(Protocol):
    """Optional, each hook for itself. Memory shared with the host and with other libraries."""

    def host_view(self, raw: Any, write: bool) -> AbstractContextManager[np.ndarray] | None:
        """Context manager: a contiguous array's memory, mapped to the host, as a NumPy array without a copy. With
        `write` the block may write to it. None if the memory cannot be mapped. `torch.distributed` sends and receives
        through it; without it, through copies.
        """
        ...

    def from_foreign_array(self, array: np.ndarray, write: bool = False) -> Any:
        """A raw array on the memory of a NumPy array that another library may own. With `write` it is writable even if
        the array's flag forbids it. `torch.from_numpy` and `torch.frombuffer` call it. Required of "cpu" alone.
        """
        ...

    def from_dlpack(self, exporter: Any) -> Any:
        """A raw array on the memory of an object with `__dlpack__`. Called by `torch.from_dlpack` for an object on a
        device of this type. Without it `torch.from_dlpack` raises BufferError.
        """
        ...

    def to_dlpack(self, raw: Any, stream: int | None) -> Any:
        """A capsule, or an object with `__dlpack__`, for a consumer that works in `stream` (numbered as in DLPack).
        Required of "cuda" alone.
        """
        ...

    def cuda_array_interface(self, raw: Any) -> dict[str, Any]:
        """The value of `Tensor.__cuda_array_interface__`. Required of "cuda" alone."""
        ...

    def from_cuda_array_interface(self, data: Any) -> Any:
        """A raw array on the memory of an object with `__cuda_array_interface__`. Required of "cuda" alone."""
        ...


class MatmulFusion(Protocol):
    """Optional. Epilogues of matrix products and convolutions in programs of `torch.compile`. Without it the two ops
    run one after the other.
    """

    def fused_matmul(self, name: str, then: str) -> Kernel | None:
        """A kernel that computes op `name` ("linear", "addmm", "mm", "matmul" or "convolution") and then the
        elementwise op `then` ("relu", "relu6", "gelu", ...) on its result. It has the parameters of `name`, and gives
        the same bits as the two kernels. None if the backend has no such kernel. In such a backend `addmm` must give
        the bits of `mm` and `add`.
        """
        ...


class RecordedLaunches(Protocol):
    """Kernel launches that `LaunchRecording.record_launches` recorded."""

    def run(self, arrays: tuple) -> tuple | None:
        """Launch everything again, on other arrays of the same shapes and strides. Returns the results, or None if the
        arrays differ in shape or strides; the caller then runs the kernels one by one.
        """
        ...


class LaunchRecording(Protocol):
    """Optional. Kernel launches of a `torch.compile` program, recorded once and replayed, as CUDA graphs are. Without
    it each call launches each kernel from Python.
    """

    def can_record(self, mode: str) -> bool:
        """True if programs that are compiled with this `mode` of `torch.compile` are recorded."""
        ...

    def record_launches(self, index: int, function: Callable, given: tuple, mode: str) -> RecordedLaunches:
        """Run `function(*given)` on device `index`, record its launches, and execute none of them. `function` takes
        raw arrays and returns a tuple of them. `function.touched` is then the list of arrays that its kernels may
        write to. UnrecordableError if a kernel needs the host, for example to read an element.
        """
        ...

    def consume_last_use(self, kernel: Kernel) -> Kernel:
        """The same kernel for a call whose first argument nobody reads afterwards. A backend that delays elementwise
        ops can then skip writing that argument to memory. Optional: without it the kernel itself is called.
        """
        ...


class FusedFunction(Protocol):
    """A function of arrays created by `HostFusion`."""

    text: str  # its source, which the caller sets

    def __call__(self, *arrays: Any) -> Any: ...


class HostFusion(Protocol):
    """Optional, all hooks or none. Loop fusion over host memory in programs of `torch.compile`. Without it a program
    calls the kernels one after the other.
    """

    def engine(self) -> str:
        """The name of the engine that runs the kernels of large arrays: "numpy", "cc" or "opencl"."""
        ...

    def blockwise(self, body: Callable, outs: list, arrays: list, rows: int, size: int) -> FusedFunction:
        """A function of contiguous arrays that returns new ones. It splits all arrays into blocks of rows that fit in
        a core's cache, and calls `body(*blocks of the results, *blocks of the arrays)` for each block.

        outs: for each result its shape, its dtype, and its shape with `rows` as first dimension. arrays: for each
        argument the shape that blocks have of it, and whether it is split. size: elements in a row.
        """
        ...

    def fuse_pointwise(self, compute: Callable, given: list, outs: list, otherwise: Callable) -> Callable:
        """A function of arrays that computes `compute(kernels by op, arrays)`, a list of pointwise results, in as few
        passes over memory as the engine can. `otherwise` if the engine cannot fuse them. given, outs: shape and dtype
        of each argument and result.
        """
        ...

    def with_derivative(self, name: str, *options: Any) -> Kernel | None:
        """A kernel of an activation that returns its value f(x) and its derivative f'(x), both contiguous. None if the
        backend has none. The backward pass is then one multiplication.
        """
        ...

    def out_variant(self, name: str) -> Kernel | None:
        """The kernel of an op with one more argument, `into`: arrays of four dimensions that it writes its results to.
        None if the backend has none. `cat` and `stack` of the results then need no copy.
        """
        ...

    def count_multiplications(self, name: str, layouts: Sequence[Layout]) -> int:
        """The multiplications of a matrix product that `grouped_gemm` can compute. 0 for any other op. layouts: those
        of the arguments.
        """
        ...

    def grouped_gemm(self, calls: Sequence[tuple[str, Sequence[Layout]]]) -> Kernel | None:
        """A kernel that computes several independent products, and takes the arguments of all calls in a row. None if
        one after the other is as fast. calls: for each call the op's name and its arguments' layouts.
        """
        ...

    def varying(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """The placeholder of an array that each call gets anew, among the arguments that a kernel is bound to."""
        ...

    def bind_kernel(self, name: str, args: tuple) -> Kernel | None:
        """A kernel of an op with constant arguments, which it may prepare. It takes the arrays that `varying` stands
        for in `args`. None if the op's kernel is as fast.
        """
        ...

    def bind_channels_last(self, name: str, args: tuple, out: tuple[int, ...]) -> Kernel | None:
        """A kernel of an op like that of `bind_kernel`, for images in the order (images, rows, columns, channels).
        "to_last" and "from_last" are the copies from and to the usual order. None if the backend has none.

        The shapes of the first argument and of the result, `out`, are those of the usual order. A convolution's kernel
        has the attribute `gain`: the nanoseconds that it saves.
        """
        ...

    def join_channels_last(self, shapes: list[tuple[int, ...]]) -> Kernel:
        """A kernel that takes a list of images of these shapes, in the order of `bind_channels_last`, and joins their
        channels. It is only asked for after `bind_channels_last` gave kernels.
        """
        ...

    def chain_serves(self, name: str, operands: int, dtypes: list[np.dtype]) -> bool:
        """Whether a chain of `bind_chain` may have this elementwise op. dtypes: those of its arrays, and the result's.
        operands: its arrays and numbers.
        """
        ...

    def bind_chain(
        self, shape: tuple[int, ...], given: list[tuple], steps: list, outs: list[int], dtypes: dict[int, np.dtype]
    ) -> Any:
        """A kernel that runs elementwise ops one after the other for a few elements at a time. None if they are to run
        one by one.

        shape: that of the results. given: those of the arguments. steps: the name of each op and its operands, a float
        or the position of a value; values are the arguments and then the results of the steps. outs: the positions of
        the results to return. dtypes: those of values that are no float32, by position.
        """
        ...


class EventMarker(Protocol):
    """A position in a device's queue, behind `torch.Event`."""

    def done(self) -> bool:
        """True if all work before it has finished."""
        ...

    def wait(self) -> None:
        """Block until all work before it has finished."""
        ...

    def milliseconds_to(self, later: Any) -> float:
        """Return the milliseconds between two completed markers that were created with `timing`."""
        ...


class DeviceRuntime(Protocol):
    """One device, as modules such as `torch.opencl` access it. Memory is counted in bytes."""

    @property
    def name(self) -> str:
        """The device's name."""
        ...

    def properties(self) -> Any:
        """The value of `get_device_properties`."""
        ...

    def synchronize(self) -> None:
        """Block until the device is idle."""
        ...

    def idle(self) -> bool:
        """True if all work has finished."""
        ...

    def marker(self, timing: bool) -> EventMarker:
        """A marker at the end of the queue."""
        ...

    def memory_stats(self) -> dict[str, int]:
        """Allocator counters by PyTorch's names: "allocated_bytes.all.current" and ".peak",
        "reserved_bytes.all.current" and ".peak", and any others.
        """
        ...

    def reset_peak_memory_stats(self) -> None:
        """Start the peaks of the memory statistics again from the present use."""
        ...

    def empty_cache(self) -> None:
        """Return cached memory that no array uses to the driver."""
        ...

    def mem_get_info(self) -> tuple[int, int]:
        """Free and total memory."""
        ...


class StreamHandle(Protocol):
    """A stream of a runtime."""

    @property
    def ptr(self) -> int:
        """The stream's address, for `ExternalStream` and other libraries."""
        ...


class CapturedGraph(Protocol):
    """Launches that were captured between `begin_capture` and `end_capture`."""

    @property
    def pool(self) -> Any:
        """The memory pool of the results."""
        ...

    def replay(self) -> None:
        """Launch everything that was captured, in the calling thread's stream."""
        ...

    def reset(self) -> None:
        """Free the graph."""
        ...


class StreamRuntime(DeviceRuntime, Protocol):
    """Optional. A device with several streams. "The stream waits" means that the caller does not. Without it all
    streams of the device are one queue.
    """

    def new_stream(self, priority: int) -> StreamHandle:
        """Make a stream; a lower number is a higher priority."""
        ...

    def default_stream(self) -> StreamHandle:
        """The device's default stream."""
        ...

    def stream_from(self, ptr: int) -> StreamHandle:
        """Wrap a stream that another library created."""
        ...

    def use(self, handle: Any) -> None:
        """Make a stream the calling thread's current stream."""
        ...

    def current_stream(self) -> StreamHandle:
        """The calling thread's current stream."""
        ...

    def synchronize_stream(self, handle: Any) -> None:
        """Wait until a stream's work is done."""
        ...

    def is_stream_idle(self, handle: Any) -> bool:
        """True if a stream's work is done."""
        ...

    def marker(self, timing: bool, stream: Any = None) -> EventMarker: ...

    def wait_for(self, marker: Any, stream: Any) -> None:
        """The stream waits for the marker, of this or another device."""
        ...

    def record_use(self, raw: Any, handle: Any) -> None:
        """Do not reuse the memory of `raw` before the work that is in the stream now has finished."""
        ...

    def begin_capture(self, pool: Any = None, mode: str = "global") -> None:
        """Capture the calling thread's launches in its stream instead of executing them. Results live in `pool`."""
        ...

    def end_capture(self) -> CapturedGraph:
        """End the capture and return the graph."""
        ...

    def is_capturing(self) -> bool:
        """True if the calling thread's stream is being captured."""
        ...

    def new_pool(self) -> Any:
        """Make a memory pool for captured graphs."""
        ...

    # Optional, each separately: without one `torch.cuda` raises NotImplementedError, and memory is not pinned.

    def can_access(self, peer: int) -> bool:
        """True if this device can read the memory of device `peer`."""
        ...

    def set_memory_limit(self, nbytes: int) -> None:
        """Limit the allocator; 0 removes the limit."""
        ...

    def profile(self, on: bool) -> None:
        """Start or stop an attached profiler."""
        ...

    def pinned(self, nbytes: int) -> np.ndarray:
        """Page-locked host memory, as an array of uint8 that frees it with its last reference."""
        ...


class Accelerator(Protocol):
    """Optional. A device type with a module: `torch.cuda`, `torch.opencl`. Other device types have none."""

    def runtime(self, index: int) -> DeviceRuntime:
        """The runtime of device `index`, a `StreamRuntime` if it has several streams. The same object on each call."""
        ...


class AcceleratorChoice(Protocol):
    """Optional, each hook for itself. What `torch.accelerator` and `torch.backends.cuda` say of a device type."""

    def is_accelerator(self) -> bool:
        """Whether the devices speed programs up that run on the CPU otherwise. A driver whose only devices are the
        machine's processors says False, unless the user asks for it. Called only after `why_not()` returned "".
        Without it they do.
        """
        ...

    def is_built(self) -> bool:
        """Whether the runtime's library is installed, with or without a driver. It is not imported for this. Without
        it: yes.
        """
        ...


class Reports(Protocol):
    """Optional, each hook for itself. Lines of `python -m torchlite info`."""

    def describe(self, index: int) -> str:
        """One line about device `index`. Without it the line says "ready"."""
        ...

    def problems(self) -> list[str]:
        """A sentence for each driver or device that is installed and cannot be used. Without it there are none."""
        ...


class KernelLocations(Protocol):
    """Optional. Where kernels are defined, for `python -m torchlite show op`."""

    def kernel_location(self, op: str) -> str:
        """The file and line of an op's kernel, without opening a device. "" for an op without a kernel. Without the
        hook the command shows this backend's kernels with `--device` alone.
        """
        ...


class Libraries(Protocol):
    """Optional, each hook for itself. Vendor libraries under a backend."""

    def onednn(self) -> Any:
        """oneDNN: an object with `library`, which has `version`, `path` and `call` or is None, and `why_not`, a
        sentence. Called by `torch.backends.mkldnn` and `python -m torchlite info`. Required of "cpu" alone.
        """
        ...

    def cudnn_version(self) -> int | None:
        """cuDNN's version, such as 91002. None without cuDNN. The value of `torch.backends.cudnn.version()`."""
        ...

    def icd_environment(self, index: int, folder: str) -> dict[str, str]:
        """Environment variables under which another program finds the OpenCL driver of device `index`. Files for it go
        to `folder`. Called by `python -m torchlite bench`. Required of "opencl" alone.
        """
        ...


class KernelEngines(Protocol):
    """Required of "cpu" alone. Engines for large arrays and their compiled kernels, as commands show and build them."""

    def engines(self) -> list[tuple[str, str]]:
        """The name of each engine, and a line: whether it can be used, or why not."""
        ...

    def why_not_buildable(self) -> str:
        """Return the reason why kernels cannot be compiled ahead of time, a sentence. "" if they can."""
        ...

    def record_kernels(self, run: Callable[[], None]) -> list[str]:
        """Sources of the kernels that `run()` would compile. Results computed meanwhile are meaningless."""
        ...

    def build_kernels(self, texts: list[str], done: Callable[[int, int], None]) -> list[str]:
        """Compile sources of `record_kernels` into the kernel cache. Calls `done(compiled, total)` after each. Returns
        a message for each that failed.
        """
        ...

    def archive_kernels(self, texts: list[str], path: str) -> None:
        """Write compiled kernels of `record_kernels` to a file, for a package of kernels."""
        ...


class AnyBackend(
    Backend, SharedStorage, LargeArrays, HalfPrecision, Random, Interop, MatmulFusion, LaunchRecording, HostFusion,
    Accelerator, AcceleratorChoice, Reports, KernelLocations, Libraries, KernelEngines, Protocol,
):  # fmt: skip
    """All hooks: the type under which the front end accesses a backend, after `hasattr` for an optional hook."""
