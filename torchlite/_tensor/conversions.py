"""Copies, casts, device transfers, and pickling of tensors."""

from __future__ import annotations

import math
import warnings
from typing import NoReturn

from .._dispatch import call
from .._dispatch.autograd_graph import autograd_meta_of, grad_of, write_raw
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import LEAF, recording
from .._dispatch.error_translation import filter_traceback
from .._dispatch.interceptors import call_override
from .._dispatch.memory_layout import channels_last_strides, suggests_channels_last
from .._dispatch.parsed_functions import parsed
from .._dispatch.shapes import contiguous_strides
from .._dispatch.tracing import TRACES, trace_method
from .._types import dtypes
from .._types.devices import device
from .._types.dtypes import as_dtype
from .._types.dtypes import dtype as dtype_type
from .._types.layouts import channels_last, contiguous_format, preserve_format
from .._types.layouts import memory_format as memory_format_type
from .python_protocols import PythonProtocols

_new = object.__new__
_CPU = device("cpu")


class ConversionMethods(PythonProtocols):
    """Methods of Tensor that copy, convert or move its elements."""

    __slots__ = ()

    def __copy__(self):
        """A leaf of the same class and attributes on the same memory."""
        out = self.detach()
        if type(self) is not call.Tensor and not self._tl_signs:
            out = out.as_subclass(type(self))
        if self.requires_grad:
            out.requires_grad_()
        if self.__dict__ or type(self) is not call.Tensor:
            from .pickling import set_state, state_of

            set_state(out, state_of(self))
        return out

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment.  If you were attempting to deepcopy a module, this may be because of a "
                "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
            )
        import copy

        with recording(False):
            out = self._copied_with_storage(memo)
        if type(self) is not call.Tensor and not self._tl_signs:
            out = out.as_subclass(type(self))
        if self._tl_node is LEAF:
            out.requires_grad_()
        memo[id(self)] = out
        if (grad := grad_of(self)) is not None:
            autograd_meta_of(out).grad = copy.deepcopy(grad, memo)
        if self.__dict__:
            out.__dict__.update(copy.deepcopy(self.__dict__, memo))
        if type(self) is not call.Tensor:
            from .pickling import user_slot_names_of

            for name in user_slot_names_of(type(self)):
                if hasattr(self, name):
                    setattr(out, name, copy.deepcopy(getattr(self, name), memo))
        return out

    def _copied_with_storage(self, memo):
        """A copy on a copy of the storage, at the same offset, so that copies of tensors that share memory share
        memory.
        """
        if not hasattr(self._tl_kernels.backend, "memory") or min(self._tl_array.strides, default=0) < 0:
            return self.detach().clone(memory_format=preserve_format)
        import copy

        from .storage import geometry_of, make_tensor_on_storage
        from .typed_storage import storage_of

        return make_tensor_on_storage(copy.deepcopy(storage_of(self), memo), self.dtype, *geometry_of(self))

    def __reduce_ex__(self, protocol):
        from .pickling import reduce_tensor

        return reduce_tensor(self)

    def as_subclass(self, cls):
        """Returns the same tensor as an instance of a subclass of Tensor.

        Args:
            cls: The subclass.
        """
        out = _new(cls)
        if self._tl_meta is None:  # both have one version counter
            autograd_meta_of(self)
        out._tl_array, out._tl_kernels, out._tl_node, out._tl_meta = (
            self._tl_array,
            self._tl_kernels,
            self._tl_node,
            self._tl_meta,
        )
        call.set_dtype(out, self.dtype)
        return out

    @staticmethod
    def _make_wrapper_subclass(cls, size, *args, **kwargs):
        """A tensor of a subclass with `__torch_dispatch__` that has a size and a dtype, but no data."""
        return CALLBACKS.make_wrapper(cls, size, *args, **kwargs)

    @staticmethod
    def _make_subclass(cls, data, require_grad=False, **dispatch):
        """The data of a tensor as an instance of a subclass, without its history."""
        out = data.detach().as_subclass(cls)
        if require_grad:
            out.requires_grad_()
        return out

    def to(self, *args, **kwargs):
        """The tensor with another dtype, on another device, or both: `to(dtype)`, `to(device)`, `to(device, dtype)`,
        `to(other)`.

        Further arguments: non_blocking, copy, memory_format. Returns the tensor itself when nothing changes and `copy`
        is False.
        """
        if TRACES and (found := trace_method("to", self, *args, **kwargs)) is not NotImplemented:
            return found
        if len(args) == 1 and not kwargs:
            given = args[0]
            if given.__class__ is dtype_type:
                return self if given is self.dtype else CALLBACKS.F.to(self, given)
            if given.__class__ is str or given.__class__ is device:
                return CALLBACKS.move(self, device(given))
        try:
            d, where, copy, order = _parse_to(*args, **kwargs)
        except Exception:
            if (found := call_override(call.Tensor.to, (self, *args), kwargs or None)) is not NotImplemented:
                return found
            filter_traceback()
            raise
        out = self
        if where is not None:
            out = CALLBACKS.move(out, where)
        if d is not None and d is not out.dtype:
            out = CALLBACKS.F.to(out, d)
        if order is None or order is preserve_format:
            return out.clone() if copy and out is self else out
        asked, shape = order is not contiguous_format, tuple(out.shape)
        if asked and len(shape) != (rank := 4 if order is channels_last else 5):
            raise RuntimeError(f"required rank {rank} tensor to use {order.name} format")
        if out is self and not copy and suggests_channels_last(shape, out.stride()) == asked:
            return out
        wanted = channels_last_strides(shape) if asked else contiguous_strides(shape)
        return out if out is not self and out.stride() == wanted else out.clone(memory_format=order)

    def cpu(self, *, memory_format=preserve_format):
        """Returns the tensor on the CPU: itself if it is there.

        Args:
            memory_format: The order of the elements in memory. Default: `torch.preserve_format`.
        """
        if TRACES and (found := trace_method("cpu", self, memory_format)) is not NotImplemented:
            return found
        out = CALLBACKS.move(self, _CPU)
        return out if memory_format is preserve_format else out.contiguous(memory_format=memory_format)

    def cuda(self, device=None, non_blocking=False, *, memory_format=preserve_format):
        """Returns the tensor on a CUDA device.

        Args:
            device: The device. Default: the current CUDA device.
            non_blocking: Whether a copy from page-locked memory may still run on return. Default: ``False``.
            memory_format: The order of the elements in memory. Default: `torch.preserve_format`.

        Raises:
            RuntimeError: The device is not a CUDA device.
        """
        where = call._resolve_device("cuda" if device is None else device)
        if where.type != "cuda":
            raise RuntimeError("Invalid device, must be cuda device")
        return self.to(where, non_blocking=non_blocking, memory_format=memory_format)

    def opencl(self, device=None):
        """Returns the tensor on an OpenCL device.

        Args:
            device: The device. Default: the current OpenCL device.
        """
        return self.to("opencl" if device is None else device)

    def type(self, dtype=None, non_blocking=False):
        """Returns the name of the tensor's type, or the tensor converted to a type.

        Args:
            dtype: A dtype, or a type with its device such as ``"torch.cuda.HalfTensor"``. Default: none, the name is
                returned.
            non_blocking: Has no effect.
        """
        if dtype is None:
            where = "" if self.is_cpu else f"{self.device.type}."
            return f"torch.{where}{self.dtype.scalar_name}Tensor"
        if isinstance(dtype, dtype_type):
            return self.to(dtype)
        from .legacy_types import device_and_dtype_of

        found = device_and_dtype_of(dtype)
        if found is None:
            raise ValueError(f"invalid type: '{dtype}'")
        where, d = found
        return self.to(d) if where == self.device.type else self.to(where, d)

    def new(self, *args, size=None, device=None, other=None, x2=None):
        """A tensor of this one's dtype and device by the legacy constructor: of a size (not initialised), with the
        elements of a sequence, or on the memory of a tensor or a storage.

        >>> torchlite.ones(2, dtype=torchlite.int64).new([3, 4])
        tensor([3, 4])
        """
        from .creation import legacy_tensor

        other = x2 if other is None else other
        if other is not None:
            args = (*args, other)
        of_tensor = len(args) == 1 and isinstance(args[0], call.Tensor)
        if of_tensor and device is not None:
            raise RuntimeError(
                "Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use "
                "torch.as_tensor(...) instead."
            )
        where = self.device if device is None and not of_tensor else device
        result = legacy_tensor(args, self.dtype, where, size, self.device.type)
        return result if result.device == self.device else result.to(self.device)

    def resize(self, *sizes):
        """Returns the numbers in another shape with as many elements. The older name of `reshape`.

        Args:
            *sizes: The shape.

        Raises:
            RuntimeError: The shape has another count of elements.

        Example:
            >>> torch.arange(4).resize(2, 2)
            tensor([[0, 1],
                    [2, 3]])
        """
        warnings.warn("non-inplace resize is deprecated", stacklevel=2)
        return self._tl_reshaped(sizes)

    def resize_as(self, tensor):
        """Returns the numbers in the shape of a tensor with as many elements. The older form of `reshape`.

        Args:
            tensor: The tensor.

        Raises:
            RuntimeError: It has another count of elements.

        Example:
            >>> torch.arange(4).resize_as(torch.ones(2, 2))
            tensor([[0, 1],
                    [2, 3]])
        """
        warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
        return self._tl_reshaped(tensor.size())

    def _tl_reshaped(self, sizes):
        count = math.prod(sizes)
        if self.numel() != count:
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({count} elements in total), but the given tensor "
                f"has a size of {'x'.join(map(str, self.size()))} ({self.numel()} elements). autograd's resize can "
                "only change the shape of a given tensor, while preserving the number of elements. "
            )
        return self.contiguous().view(*sizes)

    @parsed("Tensor.type_as")
    def type_as(self, other):
        """Returns the tensor with the dtype and on the device of another.

        Args:
            other: The other tensor.
        """
        return self.to(other.device, other.dtype)

    def share_memory_(self):
        """Move the memory to where other processes see it; returns the tensor."""
        from .storage import share_memory

        return share_memory(self)

    def module_load(self, other, assign=False):
        """Returns the tensor that replaces this one when `Module.load_state_dict` loads another.

        It is called where `torch.__future__.set_swap_module_params_on_conversion` is on. Subclasses may override it.

        Args:
            other: The tensor of the state.
            assign: Whether `other` itself is the result, else this tensor with its elements. Default: ``False``.
        """
        return other.detach() if assign else self.copy_(other).detach()

    def is_shared(self) -> bool:
        """True if other processes can share the memory."""
        from .storage import is_shared

        return is_shared(self)

    def pin_memory(self, device=None):
        """Returns a copy in page-locked memory, from which copies to a CUDA device are faster.

        Without a CUDA device it is the tensor itself.

        Args:
            device: Has no effect: PyTorch deprecated it.

        Raises:
            RuntimeError: The tensor is not on the CPU.
        """
        from .interop import pin_memory

        return pin_memory(self)

    def is_pinned(self, device=None) -> bool:
        """Returns whether the memory is page-locked.

        Args:
            device: Has no effect: PyTorch deprecated it.
        """
        from .interop import is_pinned

        return is_pinned(self)

    def record_stream(self, s):
        """Marks the tensor as used by another stream than the one it was created in.

        When the tensor is freed, its memory is not reused before the work queued on that stream has run.

        Args:
            s: The stream.
        """
        from .interop import record_stream

        record_stream(self, s)

    def eig(self, eigenvectors=False) -> NoReturn:
        """Raises RuntimeError, as PyTorch does since it was removed. Use `torch.linalg.eig`.

        Args:
            eigenvectors: Has no effect.
        """
        from .removed_functions import eig

        eig(self)

    def lstsq(self, other) -> NoReturn:
        """Raises RuntimeError, as PyTorch does since it was removed. Use `torch.linalg.lstsq`.

        Args:
            other: Has no effect.
        """
        from .removed_functions import lstsq

        lstsq(self)

    def solve(self, other) -> NoReturn:
        """Raises RuntimeError, as PyTorch does since it was removed. Use `torch.linalg.solve`.

        Args:
            other: Has no effect.
        """
        from .removed_functions import solve

        solve(self)

    def symeig(self, eigenvectors=False) -> NoReturn:
        """Raises RuntimeError, as PyTorch does since it was removed. Use `torch.linalg.eigh`.

        Args:
            eigenvectors: Has no effect.
        """
        from .removed_functions import symeig

        symeig(self)

    def apply_(self, function):
        """Replaces each element by a function of it, in place. It is slow, and for the CPU alone.

        Args:
            function: A function of a number.

        Returns:
            The tensor.
        """
        from .nested_sequences import numbers_to_array

        array = self._tl_kernels.to_numpy(self._tl_array)
        result = numbers_to_array([function(x) for x in array.ravel().tolist()], self.dtype)
        write_raw(self, self._tl_kernels.from_numpy(result.reshape(array.shape)))
        return self


def _parse_to(*args, **kwargs):
    """The dtype, the device, the flag `copy` and the order of a call of `to`: None for what it does not give."""
    dtype, where = kwargs.get("dtype"), kwargs.get("device")
    other, copy, order = kwargs.get("tensor"), kwargs.get("copy", False), kwargs.get("memory_format")
    flags = args[1:]
    head = as_dtype(args[0]) if args else None
    if isinstance(head, dtype_type) and dtype is None:
        dtype = head
    elif isinstance(head, call.Tensor) and other is None:
        other = head
    elif head.__class__ is bool:
        flags = args
    elif head is not None:
        _check_to(where is None and isinstance(head, (str, int, device)), args, kwargs)
        where = head
    if args and where is head and flags and flags[0].__class__ is not bool:
        _check_to(dtype is None, args, kwargs)
        dtype, flags = flags[0], flags[1:]
    if len(flags) > 1:
        copy = flags[1]
    dtype = as_dtype(dtype)
    _check_to(
        len(flags) < 3
        and all(flag.__class__ is bool for flag in flags)
        and (dtype is None or isinstance(dtype, dtype_type))
        and (order is None or isinstance(order, memory_format_type))
        and kwargs.keys() <= _TO_KEYWORDS
        and (other is None or isinstance(other, call.Tensor) and dtype is None and where is None),
        args,
        kwargs,
    )
    if other is not None:
        dtype, where = other.dtype, other.device
    return dtype, None if where is None else call._resolve_device(where), copy, order


_TO_KEYWORDS = {"dtype", "device", "tensor", "non_blocking", "copy", "memory_format"}


def _check_to(valid: bool, args, kwargs) -> None:
    """TypeError with the parser's message for a wrong call of `to`."""
    if not valid:
        from .._dispatch.arg_parser import match_signature

        match_signature("Tensor.to", args, kwargs)
        raise TypeError("to() received an invalid combination of arguments")


class _Casts:
    """x.float(), x.long() …"""

    @staticmethod
    def make(name: str, d):
        def cast(self, *, memory_format=preserve_format):
            if memory_format is not preserve_format:
                return self.to(d, memory_format=memory_format)
            return self if self.dtype is d else CALLBACKS.F.to(self, d)

        cast.__name__ = cast.__qualname__ = name
        cast.__doc__ = f"""Returns the tensor converted to `{d}`: itself if it has that dtype.

        Args:
            memory_format: The order of the elements in memory. Default: `torch.preserve_format`.

        Example:
            >>> torch.tensor([1]).{name}().dtype
            {d}
        """
        return cast


for _d in dtypes.BY_NAME.values():
    for _name in (
        *dtypes.ALIASES.get(_d.name, ()),
        *(("bool",) if _d is dtypes.bool_ else ()),
        *(("bfloat16",) if _d.name == "bfloat16" else ()),
    ):
        setattr(ConversionMethods, _name, _Casts.make(_name, _d))
