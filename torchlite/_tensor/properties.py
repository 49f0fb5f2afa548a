"""Properties of tensors: shape, strides, dtype, device, and attributes that are views."""

from __future__ import annotations

import math
import warnings

from .._dispatch import autograd_graph, call
from .._dispatch.autograd_graph import root_meta_of
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.memory_layout import dim_order_of, is_channels_last, is_contiguous, strides_of
from .._dispatch.shapes import wrap_dim
from .._dispatch.tracing import TRACES, trace_method
from .._types import dtypes
from .._types.devices import device
from .._types.layouts import Size, channels_last, contiguous_format, memory_format, preserve_format, strided
from .tensor_slots import TensorSlots

_new_tuple = tuple.__new__  # makes a Size of a shape, which needs no checks


_IDENTITY, _CONJ = "This function is the identity in these cases.", "Consider using x.conj()."


def _warn_of_scalar(name: str, advice: str) -> None:
    warnings.warn(f"Tensor.{name} is deprecated on 0-D tensors. {advice}", UserWarning, stacklevel=3)


class PropertyMethods(TensorSlots):
    """Properties of Tensor."""

    __slots__ = ()

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        if TRACES and (found := trace_method("shape", self)) is not NotImplemented:
            return found
        return _new_tuple(Size, self._tl_memory.shape)

    def size(self, dim=None):
        """Returns the shape, or the size of one dimension.

        Args:
            dim: The dimension. Default: all.
        """
        if TRACES and (found := trace_method("size", self, dim)) is not NotImplemented:
            return found
        data = self._tl_memory
        if dim is None:
            return _new_tuple(Size, data.shape)
        if not data.ndim:
            raise IndexError("Dimension specified as " + str(dim) + " but tensor has no dimensions")
        return data.shape[wrap_dim(dim, data.ndim)]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._tl_memory.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._tl_memory.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        if TRACES and (found := trace_method("numel", self)) is not NotImplemented:
            return found
        return math.prod(self._tl_memory.shape)

    nelement = numel

    def __len__(self) -> int:
        if not self._tl_memory.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self._tl_memory.shape[0]

    @property
    def device(self) -> device:
        """The device of the tensor."""
        return self._tl_kernels.device

    def get_device(self) -> int:
        """The index of the device; -1 on the CPU."""
        return -1 if self.device.type == "cpu" else self.device.index or 0

    @property
    def layout(self):
        """The layout: `torch.strided` for dense tensors."""
        return strided

    @property
    def itemsize(self) -> int:
        """The size of an element, in bytes."""
        return self.dtype.itemsize

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements, in bytes."""
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """True if the dtype is a floating-point dtype."""
        return self.dtype.category == dtypes.FLOAT

    def is_complex(self) -> bool:
        """True if the dtype is complex."""
        return self.dtype.category == dtypes.COMPLEX

    def is_signed(self) -> bool:
        """True if the dtype can represent negative values."""
        return self.dtype.is_signed

    def stride(self, dim=None):
        """Returns the strides in elements, or the stride of one dimension.

        Args:
            dim: The dimension. Default: all.
        """
        strides = strides_of(self._tl_memory)
        if dim is not None and not strides:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        return strides if dim is None else strides[wrap_dim(dim, len(strides))]

    def storage_offset(self) -> int:
        """Offset of the first element in the storage, in elements."""
        from .storage import offset_of

        return offset_of(self)

    def untyped_storage(self):
        """The bytes under this tensor and all that share its memory."""
        from .typed_storage import storage_of

        found = storage_of(self)
        root_meta_of(self).storage = found  # which is the same object, with its attributes, while a tensor is there
        return found

    @property
    def _cdata(self) -> int:
        """A number that identifies the tensor: PyTorch's is an address."""
        return id(self)

    def storage(self):
        """The elements under this tensor as a TypedStorage."""
        from .typed_storage import _warn_deprecated, typed_storage_of

        _warn_deprecated()
        return typed_storage_of(self)

    def _typed_storage(self):
        from .typed_storage import typed_storage_of

        return typed_storage_of(self)

    def storage_type(self):
        """The class of the tensor's storage: `torch.FloatStorage` and its kind."""
        from .typed_storage import storage_class

        return storage_class(self.dtype, self.device.type)

    def data_ptr(self) -> int:
        """The address of the first element; 0 without elements."""
        if call.GLOBALS["WRITE_CHECKS"]:
            autograd_graph.run_pre_write_hooks(self)
        return self._tl_address()

    def const_data_ptr(self) -> int:
        """The address of the first element, for readers: a lazy clone stays lazy."""
        return self._tl_address()

    def is_distributed(self) -> bool:
        """True if the tensor is distributed over several machines: always False."""
        return False

    @property
    def grad_dtype(self) -> dtypes.dtype:
        """The dtype of gradients: the tensor's own."""
        return self.dtype

    def _tl_address(self) -> int:
        if 0 in self._tl_memory.shape:
            return 0
        pointer = getattr(self._tl_memory, "ctypes", None)
        return (
            pointer.data
            if pointer is not None
            else int(self._tl_memory.data_ptr())
            if hasattr(self._tl_memory, "data_ptr")
            else 0
        )

    def is_contiguous(self, *, memory_format=contiguous_format) -> bool:
        """Returns whether the elements are contiguous in memory.

        Args:
            memory_format: The order of the elements. Default: `torch.contiguous_format`, row-major.
        """
        data = self._tl_memory
        if memory_format is contiguous_format:
            flags = getattr(data, "flags", None)
            return is_contiguous(data.shape, strides_of(data)) if flags is None else flags.c_contiguous
        if memory_format is preserve_format:
            return self.is_contiguous()
        rank = 4 if memory_format is channels_last else 5
        return data.ndim == rank and is_channels_last(data.shape, strides_of(data))

    def dim_order(self, *, ambiguity_check=False) -> tuple[int, ...]:
        """Returns the dimensions from the outermost to the innermost in memory.

        Args:
            ambiguity_check: Whether another order that fits as well is an error; or a list of memory formats, exactly
                one of which must fit. Default: ``False``.

        Raises:
            RuntimeError: The order is ambiguous.

        Example:
            >>> torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).dim_order()
            (0, 2, 3, 1)
        """
        formats = ambiguity_check if isinstance(ambiguity_check, list) else []
        if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(f, memory_format) for f in formats):
            raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
        shape, strides = tuple(self.shape), self.stride()
        ambiguous = ambiguity_check is True and (1 in shape or len(set(strides)) < len(strides))
        if ambiguous or formats and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
            )
        return dim_order_of(shape, strides)

    @property
    def is_cpu(self) -> bool:
        """Whether the tensor is on the CPU."""
        return self.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        """Whether the tensor is on a CUDA device."""
        return self.device.type == "cuda"

    @property
    def is_opencl(self) -> bool:
        """Whether the tensor is on an OpenCL device."""
        return self.device.type == "opencl"

    @property
    def is_meta(self) -> bool:
        """Whether the tensor is on the meta device, which has shapes without elements."""
        return self.device.type == "meta"

    @property
    def is_ipu(self) -> bool:
        """Whether the tensor is on a device of the type ipu: always ``False``."""
        return self.device.type == "ipu"

    @property
    def is_maia(self) -> bool:
        """Whether the tensor is on a device of the type maia: always ``False``."""
        return self.device.type == "maia"

    @property
    def is_mps(self) -> bool:
        """Whether the tensor is on a device of the type mps: always ``False``."""
        return self.device.type == "mps"

    @property
    def is_mtia(self) -> bool:
        """Whether the tensor is on a device of the type mtia: always ``False``."""
        return self.device.type == "mtia"

    @property
    def is_vulkan(self) -> bool:
        """Whether the tensor is on a device of the type vulkan: always ``False``."""
        return self.device.type == "vulkan"

    @property
    def is_xla(self) -> bool:
        """Whether the tensor is on a device of the type xla: always ``False``."""
        return self.device.type == "xla"

    @property
    def is_xpu(self) -> bool:
        """Whether the tensor is on a device of the type xpu: always ``False``."""
        return self.device.type == "xpu"

    @property
    def T(self):
        """The tensor with its dimensions in reverse order, as a view."""
        if not self._tl_memory.ndim:
            _warn_of_scalar("T", _IDENTITY)
            return self.alias()
        return self.permute(*range(self._tl_memory.ndim - 1, -1, -1))

    @property
    def mT(self):
        """The tensor with its last two dimensions swapped, as a view."""
        if not self._tl_memory.ndim:
            _warn_of_scalar("mT", _IDENTITY)
            return self.alias()
        if self._tl_memory.ndim < 2:
            raise RuntimeError(
                f"tensor.mT is only supported on matrices or batches of matrices. Got {self._tl_memory.ndim}-D tensor."
            )
        return self.transpose(-2, -1)

    @property
    def H(self):
        """The conjugate transpose of a matrix."""
        if self._tl_memory.ndim not in (0, 2):
            raise RuntimeError(
                f"tensor.H is only supported on matrices (2-D tensors). Got {self._tl_memory.ndim}-D tensor."
                + (" For batches of matrices, consider using tensor.mH" if self._tl_memory.ndim > 2 else "")
            )
        if not self._tl_memory.ndim:
            _warn_of_scalar("H", _CONJ)
            return self.conj()
        return self.adjoint()

    @property
    def mH(self):
        """The conjugate transpose of the last two dimensions."""
        if not self._tl_memory.ndim:
            _warn_of_scalar("mH", _CONJ)
            return self.conj()
        if self._tl_memory.ndim < 2:
            raise RuntimeError(
                f"tensor.mH is only supported on matrices or batches of matrices. Got {self._tl_memory.ndim}-D tensor."
            )
        return self.adjoint()

    @property
    def real(self):
        """The real part, a view; a real tensor itself."""
        return CALLBACKS.F.real(self)

    @real.setter
    def real(self, value):
        self.real.copy_(value)

    @property
    def imag(self):
        """The imaginary part of a complex tensor, a view. RuntimeError for a real one."""
        return CALLBACKS.F.imag(self)

    @imag.setter
    def imag(self, value):
        self.imag.copy_(value)

    is_sparse = property(lambda self: False, doc="Whether the layout is COO.")
    is_sparse_csr = property(lambda self: False, doc="Whether the layout is CSR.")
    is_mkldnn = property(lambda self: False, doc="Whether the layout is oneDNN's: always ``False``.")
    is_quantized = property(lambda self: False, doc="Whether the tensor is quantized.")
    is_nested = property(lambda self: False, doc="Whether the tensor is nested: always ``False``.")

    def is_conj(self) -> bool:
        """True if the conjugate bit is set."""
        return bool(self._tl_signs & 1)

    def is_neg(self) -> bool:
        """True if the negative bit is set."""
        return bool(self._tl_signs & 2)
