"""Tensor and Parameter: what no op record makes."""

import builtins as _b
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any, Self, TypeAlias, TypeVar, overload

import numpy as np

from .aliases import DeviceLike, Number, Operand
from .basic import RemovableHandle, Size, TypedStorage, UntypedStorage
from .basic import Stream as _Stream
from .basic import device as _device
from .basic import dtype as _dtype
from .basic import layout as _layout
from .basic import memory_format as _memory_format
from .basic import qscheme as _qscheme
from .methods import TensorMethods

class Tensor(TensorMethods):
    """A multi-dimensional array of one dtype on one device, with an optional history for gradients."""

    dtype: _dtype
    def __new__(
        cls, *args: Any, device: DeviceLike = None, dtype: _dtype | None = None, requires_grad: _b.bool = False
    ) -> Self: ...

    # What it is.
    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
    @overload
    def size(self, dim: None = None) -> Size:
        """Returns the shape, or the size of one dimension.

        Args:
            dim: The dimension. Default: all.
        """
    @overload
    def size(self, dim: _b.int) -> _b.int: ...
    @property
    def ndim(self) -> _b.int:
        """The number of dimensions."""
    def dim(self) -> _b.int:
        """The number of dimensions."""
    def ndimension(self) -> _b.int:
        """The number of dimensions."""
    def numel(self) -> _b.int:
        """The number of elements."""
    def nelement(self) -> _b.int:
        """The number of elements."""
    @property
    def device(self) -> _device:
        """The device of the tensor."""
    def get_device(self) -> _b.int:
        """The index of the device; -1 on the CPU."""
    @property
    def layout(self) -> _layout:
        """The layout: `torch.strided` for dense tensors."""
    @property
    def itemsize(self) -> _b.int:
        """The size of an element, in bytes."""
    def element_size(self) -> _b.int:
        """Bytes of one element."""
    @property
    def nbytes(self) -> _b.int:
        """The size of all elements, in bytes."""
    def is_floating_point(self) -> _b.bool:
        """True if the dtype is a floating-point dtype."""
    def is_complex(self) -> _b.bool:
        """True if the dtype is complex."""
    def is_signed(self) -> _b.bool:
        """True if the dtype can represent negative values."""
    @overload
    def stride(self, dim: None = None) -> tuple[_b.int, ...]:
        """Returns the strides in elements, or the stride of one dimension.

        Args:
            dim: The dimension. Default: all.
        """
    @overload
    def stride(self, dim: _b.int) -> _b.int: ...
    def storage_offset(self) -> _b.int:
        """Offset of the first element in the storage, in elements."""
    def untyped_storage(self) -> UntypedStorage:
        """The bytes under this tensor and all that share its memory."""
    def storage(self) -> TypedStorage:
        """The elements under this tensor as a TypedStorage."""
    def storage_type(self) -> Any:
        """The class of the tensor's storage: `torch.FloatStorage` and its kind."""
    def data_ptr(self) -> _b.int:
        """The address of the first element; 0 without elements."""
    def is_contiguous(self, memory_format: _memory_format = ...) -> _b.bool:
        """Returns whether the elements are contiguous in memory.

        Args:
            memory_format: The order of the elements. Default: `torch.contiguous_format`, row-major.
        """
    @property
    def is_cpu(self) -> _b.bool:
        """Whether the tensor is on the CPU."""
    @property
    def is_cuda(self) -> _b.bool:
        """Whether the tensor is on a CUDA device."""
    @property
    def is_opencl(self) -> _b.bool:
        """Whether the tensor is on an OpenCL device."""
    @property
    def is_meta(self) -> _b.bool:
        """Whether the tensor is on the meta device, which has shapes without elements."""
    @property
    def is_ipu(self) -> _b.bool:
        """Whether the tensor is on a device of the type ipu: always ``False``."""
    @property
    def is_maia(self) -> _b.bool:
        """Whether the tensor is on a device of the type maia: always ``False``."""
    @property
    def is_mps(self) -> _b.bool:
        """Whether the tensor is on a device of the type mps: always ``False``."""
    @property
    def is_mtia(self) -> _b.bool:
        """Whether the tensor is on a device of the type mtia: always ``False``."""
    @property
    def is_vulkan(self) -> _b.bool:
        """Whether the tensor is on a device of the type vulkan: always ``False``."""
    @property
    def is_xla(self) -> _b.bool:
        """Whether the tensor is on a device of the type xla: always ``False``."""
    @property
    def is_xpu(self) -> _b.bool:
        """Whether the tensor is on a device of the type xpu: always ``False``."""
    @property
    def is_sparse(self) -> _b.bool:
        """True for a tensor of the layout `torch.sparse_coo`."""
    @property
    def is_quantized(self) -> _b.bool:
        """False: torchlite has no quantized tensors."""
    @property
    def is_mkldnn(self) -> _b.bool:
        """False: torchlite has no such layout."""
    @property
    def is_nested(self) -> _b.bool:
        """False: torchlite has no nested tensors."""
    @property
    def is_sparse_csr(self) -> _b.bool:
        """True for a tensor of the layout `torch.sparse_csr`."""
    def is_conj(self) -> _b.bool:
        """True if the conjugate bit is set."""
    def is_neg(self) -> _b.bool:
        """True if the negative bit is set."""
    def is_inference(self) -> _b.bool:
        """True if the tensor was created in inference mode (and is not a view of a tensor that was not)."""
    @property
    def T(self) -> Tensor:
        """The tensor with its dimensions in reverse order, as a view."""
    @property
    def mT(self) -> Tensor:
        """The tensor with its last two dimensions swapped, as a view."""
    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of the last two dimensions."""
    @property
    def real(self) -> Tensor:
        """The real part, a view; a real tensor itself."""
    @real.setter
    def real(self, value: Operand) -> None: ...
    @property
    def imag(self) -> Tensor:
        """The imaginary part of a complex tensor, a view. RuntimeError for a real one."""
    @imag.setter
    def imag(self, value: Operand) -> None: ...
    @property
    def name(self) -> str | None:
        """The name of the tensor: always ``None``."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    @property
    def _version(self) -> _b.int: ...
    @property
    def _base(self) -> Tensor | None: ...
    def _is_view(self) -> _b.bool: ...

    # Autograd.
    @property
    def requires_grad(self) -> _b.bool:
        """Whether autograd records operations on the tensor."""
    @requires_grad.setter
    def requires_grad(self, value: _b.bool) -> None: ...
    def requires_grad_(self, requires_grad: _b.bool = True) -> Self:
        """Sets in place whether autograd records operations on this leaf."""
    @property
    def is_leaf(self) -> _b.bool:
        """Whether no recorded operation computed the tensor."""
    @property
    def grad_fn(self) -> Any:
        """The node of the autograd graph that computed the tensor, or ``None`` for a leaf."""
    @property
    def output_nr(self) -> _b.int:
        """The position of the tensor among the results of `grad_fn`."""
    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has added up, or ``None``."""
    @grad.setter
    def grad(self, value: Tensor | None) -> None: ...
    @grad.deleter
    def grad(self) -> None: ...
    @property
    def retains_grad(self) -> _b.bool:
        """Whether a tensor that is no leaf keeps its gradient."""
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: _b.bool | None = None,
        create_graph: _b.bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Computes the gradients of this tensor with respect to the leaves and adds them to their `.grad`."""
    def detach(self) -> Tensor:
        """A tensor on the same memory without history. In-place changes of either are seen, and counted, by both."""
    def detach_(self) -> Self:
        """Drop the tensor's history in place."""
    @property
    def data(self) -> Tensor:
        """The tensor on the same memory without its history; assigning it replaces the memory."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    def retain_grad(self) -> None:
        """Keep the gradient of a non-leaf in `.grad`."""
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Registers a function that runs whenever the gradient of this tensor is computed."""
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Registers a function that runs after a gradient was added to the `.grad` of this leaf."""

    # Python and NumPy.
    def item(self) -> _b.int | _b.float | _b.bool:
        """The value of a one-element tensor as a Python number. RuntimeError for more elements."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a 0-d tensor as a number."""
    def numpy(self, *, force: _b.bool = False) -> np.ndarray[Any, Any]:
        """Returns a NumPy array on the same memory."""
    # An array of objects, so that checkers take `ndarray * tensor`, which is a Tensor, for Any and not for an array.
    def __array__(self, dtype: Any = None, copy: _b.bool | None = None) -> np.ndarray[Any, np.dtype[np.object_]]: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[_b.int, _b.int] | None = None,
        dl_device: tuple[Any, _b.int] | None = None,
        copy: _b.bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, _b.int]: ...
    def __getitem__(self, index: _Index) -> Tensor: ...
    def __setitem__(self, index: _Index, value: Operand) -> None: ...
    def __len__(self) -> _b.int: ...
    def __bool__(self) -> _b.bool: ...
    def __int__(self) -> _b.int: ...
    def __float__(self) -> _b.float: ...
    def __complex__(self) -> _b.complex: ...
    def __index__(self) -> _b.int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __reversed__(self) -> Tensor: ...
    def __contains__(self, element: object) -> _b.bool: ...
    def __hash__(self) -> _b.int: ...

    # Conversions.
    def as_subclass(self, cls: _b.type[_T]) -> _T:
        """Returns the same tensor as an instance of a subclass of Tensor.

        Args:
            cls: The subclass.
        """
    @overload
    def to(
        self,
        device: DeviceLike = None,
        dtype: _dtype | None = None,
        non_blocking: _b.bool = False,
        copy: _b.bool = False,
        *,
        memory_format: _memory_format | None = None,
    ) -> Tensor:
        """The tensor with another dtype, on another device, or both: `to(dtype)`, `to(device)`, `to(device, dtype)`,
        `to(other)`.

        Further arguments: non_blocking, copy, memory_format. Returns the tensor itself when nothing changes and
        `copy` is False.
        """
    @overload
    def to(
        self,
        dtype: _dtype,
        non_blocking: _b.bool = False,
        copy: _b.bool = False,
        *,
        memory_format: _memory_format | None = None,
    ) -> Tensor: ...
    @overload
    def to(
        self,
        other: Tensor,
        non_blocking: _b.bool = False,
        copy: _b.bool = False,
        *,
        memory_format: _memory_format | None = None,
    ) -> Tensor: ...
    def cpu(self, memory_format: _memory_format = ...) -> Tensor:
        """Returns the tensor on the CPU: itself if it is there.

        Args:
            memory_format: The order of the elements in memory. Default: `torch.preserve_format`.
        """
    def cuda(
        self, device: DeviceLike = None, non_blocking: _b.bool = False, memory_format: _memory_format = ...
    ) -> Tensor:
        """Returns the tensor on a CUDA device."""
    def opencl(self, device: DeviceLike = None) -> Tensor:
        """Returns the tensor on an OpenCL device.

        Args:
            device: The device. Default: the current OpenCL device.
        """
    @overload
    def type(self, dtype: None = None, non_blocking: _b.bool = False) -> str:
        """Returns the name of the tensor's type, or the tensor converted to a type.

        Args:
            dtype: A dtype, or a type with its device such as ``"torch.cuda.HalfTensor"``. Default: none, the name is
                returned.
            non_blocking: Has no effect.
        """
    @overload
    def type(self, dtype: _dtype | str | Callable[..., Tensor], non_blocking: _b.bool = False) -> Tensor: ...
    def new(self, *args: Any, size: Sequence[_b.int] | None = None, device: DeviceLike = None) -> Tensor:
        """A tensor of this one's dtype and device by the legacy constructor: of a size (not initialised), with the
        elements of a sequence, or on the memory of a tensor or a storage.

        >>> torchlite.ones(2, dtype=torchlite.int64).new([3, 4])
        tensor([3, 4])
        """
    def to_dense(self, dtype: _dtype | None = None, *, masked_grad: _b.bool | None = None) -> Tensor:
        """Returns a dense tensor: itself if it is dense.

        Args:
            dtype: The dtype of the result. Default: this tensor's.
            masked_grad: Whether the gradient is limited to the elements that the sparse tensor has. Default: ``True``.
        """
    def to_sparse(
        self,
        sparse_dim: _b.int | _layout | None = None,
        *,
        layout: _layout | None = None,
        blocksize: Sequence[_b.int] | None = None,
        dense_dim: _b.int | None = None,
    ) -> Tensor:
        """Returns the tensor in a sparse layout."""
    def to_sparse_coo(self) -> Tensor:
        """The tensor in the COO layout."""
    def to_sparse_csr(self, dense_dim: _b.int | None = None) -> Tensor:
        """Returns the tensor in the CSR layout: compressed rows.

        Args:
            dense_dim: The number of dense dimensions. Default: 0.
        """
    def to_sparse_csc(self, dense_dim: _b.int | None = None) -> Tensor:
        """Returns the tensor in the CSC layout: compressed columns.

        Args:
            dense_dim: The number of dense dimensions. Default: 0.
        """
    def to_sparse_bsr(self, blocksize: Sequence[_b.int], dense_dim: _b.int | None = None) -> Tensor:
        """Returns the tensor in the BSR layout: compressed rows of blocks.

        Args:
            blocksize: The sizes of a block, two integers.
            dense_dim: The number of dense dimensions. Default: 0.
        """
    def to_sparse_bsc(self, blocksize: Sequence[_b.int], dense_dim: _b.int | None = None) -> Tensor:
        """Returns the tensor in the BSC layout: compressed columns of blocks.

        Args:
            blocksize: The sizes of a block, two integers.
            dense_dim: The number of dense dimensions. Default: 0.
        """
    def sparse_mask(self, mask: Tensor) -> Tensor:
        """Returns the elements at the indices of a sparse tensor, as a sparse tensor.

        Args:
            mask: The sparse tensor.
        """
    def coalesce(self) -> Tensor:
        """A COO tensor with sorted, unique indices; values at the same index are summed."""
    def is_coalesced(self) -> _b.bool:
        """True if a COO tensor is marked as having sorted, unique indices."""
    def indices(self) -> Tensor:
        """The indices of a coalesced COO tensor, (sparse_dim, nnz)."""
    def values(self) -> Tensor:
        """The specified elements of a sparse tensor; RuntimeError for COO that is not coalesced."""
    def _indices(self) -> Tensor: ...
    def _values(self) -> Tensor: ...
    def _nnz(self) -> _b.int: ...
    def crow_indices(self) -> Tensor:
        """Index of each row's first element in a CSR or BSR tensor."""
    def col_indices(self) -> Tensor:
        """The columns of the elements of a CSR or BSR tensor."""
    def ccol_indices(self) -> Tensor:
        """Index of each column's first element in a CSC or BSC tensor."""
    def row_indices(self) -> Tensor:
        """The rows of the elements of a CSC or BSC tensor."""
    def sparse_dim(self) -> _b.int:
        """Number of sparse dimensions; 0 for a dense tensor."""
    def dense_dim(self) -> _b.int:
        """Number of dense dimensions: those of each value."""
    def sparse_resize_(self, size: Sequence[_b.int], sparse_dim: _b.int, dense_dim: _b.int) -> Self:
        """Resizes a COO tensor in place. The elements stay, so no size may shrink.

        Args:
            size: The new sizes.
            sparse_dim: The number of sparse dimensions.
            dense_dim: The number of dense dimensions.
        """
    def sparse_resize_and_clear_(self, size: Sequence[_b.int], sparse_dim: _b.int, dense_dim: _b.int) -> Self:
        """Resizes a COO tensor in place and removes its elements.

        Args:
            size: The new sizes.
            sparse_dim: The number of sparse dimensions.
            dense_dim: The number of dense dimensions.
        """
    def resize_as_sparse_(self, the_template: Tensor) -> Self:
        """Resizes a COO tensor to the size and numbers of dimensions of another.

        Args:
            the_template: The other tensor.
        """
    def dequantize(self) -> Tensor:
        """Returns the numbers of a quantized tensor, ``(integer - zero_point) * scale``, in float32.

        Example:
            >>> torch.quantize_per_tensor(torch.tensor([0.24]), 0.1, 0, torch.quint8).dequantize()
            tensor([0.2000])
        """
    def int_repr(self) -> Tensor:
        """Returns the integers of a quantized tensor, as `torch.int_repr`."""
    def q_scale(self) -> _b.float:
        """Returns the scale of a tensor that is quantized per tensor, as `torch.q_scale`."""
    def q_zero_point(self) -> _b.int:
        """Returns the zero point of a tensor that is quantized per tensor, as `torch.q_zero_point`."""
    def q_per_channel_scales(self) -> Tensor:
        """Returns the scales of the channels, as `torch.q_per_channel_scales`."""
    def q_per_channel_zero_points(self) -> Tensor:
        """Returns the zero points of the channels, as `torch.q_per_channel_zero_points`."""
    def q_per_channel_axis(self) -> _b.int:
        """Returns the dimension of the channels, as `torch.q_per_channel_axis`."""
    def qscheme(self) -> _qscheme:
        """Returns the quantization scheme.

        Raises:
            NotImplementedError: The tensor is not quantized.

        Example:
            >>> torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8).qscheme()
            torch.per_tensor_affine
        """
    def smm(self, mat2: Tensor) -> Tensor:
        """Returns the product of a sparse matrix and a dense one, as a sparse matrix.

        Args:
            mat2: The dense matrix.
        """
    def sspaddmm(self, mat1: Tensor, mat2: Tensor, *, beta: _b.float = 1, alpha: _b.float = 1) -> Tensor:
        """Computes ``beta * self + alpha * mat1 @ mat2``; all are sparse but `mat2`.

        Args:
            mat1: The sparse matrix.
            mat2: The dense matrix.
            beta: The factor of this tensor. Default: 1.
            alpha: The factor of the product. Default: 1.
        """
    def type_as(self, other: Tensor) -> Tensor:
        """Returns the tensor with the dtype and on the device of another.

        Args:
            other: The other tensor.
        """
    def share_memory_(self) -> Self:
        """Move the memory to where other processes see it; returns the tensor."""
    def module_load(self, other: Tensor, assign: _b.bool = False) -> Tensor:
        """Returns the tensor that replaces this one when `Module.load_state_dict` loads another.

        It is called where `torch.__future__.set_swap_module_params_on_conversion` is on. Subclasses may override it.

        Args:
            other: The tensor of the state.
            assign: Whether `other` itself is the result, else this tensor with its elements. Default: ``False``.
        """
    def is_shared(self) -> _b.bool:
        """True if other processes can share the memory."""
    def pin_memory(self, device: DeviceLike = None) -> Tensor:
        """Returns a copy in page-locked memory, from which copies to a CUDA device are faster."""
    def is_pinned(self, device: DeviceLike = None) -> _b.bool:
        """Returns whether the memory is page-locked.

        Args:
            device: Has no effect: PyTorch deprecated it.
        """
    def record_stream(self, s: _Stream) -> None:
        """Marks the tensor as used by another stream than the one it was created in.

        When the tensor is freed, its memory is not reused before the work queued on that stream has run.

        Args:
            s: The stream.
        """
    def apply_(self, function: Callable[[Any], Number]) -> Self:
        """Replaces each element by a function of it, in place. It is slow, and for the CPU alone.

        Args:
            function: A function of a number.

        Returns:
            The tensor.
        """

class Parameter(Tensor):
    """A tensor that a module registers as a parameter when it is assigned to an attribute."""
    def __new__(cls, data: Tensor | None = None, requires_grad: _b.bool = True) -> Self: ...
    def __init__(self, data: Tensor | None = None, requires_grad: _b.bool = True) -> None: ...

_T = TypeVar("_T", bound=Tensor)
_Item: TypeAlias = _b.bool | _b.int | slice | EllipsisType | Tensor | np.ndarray[Any, Any] | list[Any] | range | None
_Index: TypeAlias = _Item | tuple[_Item, ...]
