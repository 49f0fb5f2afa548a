"""Tensor: a thin object over a raw array. Its methods come from the op records; what is written
here is what no op is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dtype
from ._device import Size, contiguous_format, device, preserve_format, strided
from ._device import memory_format as memory_format_type
from ._dispatch import NAMESPACES, REGISTRY, call, function_for
from ._dispatch.codegen import fast_in_place, in_place_method, operator_for
from ._dispatch.graph import OutputOf, alias_meta, base_of, edge, is_stale, meta_of, node_hooks, renew_history, version
from ._dispatch.record import INPLACE
from ._dispatch.runtime import GLOBALS, LEAF
from ._dtype import dtype as dtype_type

if TYPE_CHECKING:
    from ._tensor_methods import TensorMethods  # a stub, made by tools/make_stubs.py
else:
    TensorMethods = object
_new = object.__new__


def _method(name: str):
    """The method of that name made from a record, or None."""
    names = NAMESPACES["Tensor"]
    record = names.get(name)
    if record is not None:
        return function_for(record)
    if name.endswith("_") and not name.startswith("_"):
        record = names.get(name[:-1])
        if record is not None and record.tags & INPLACE:
            return in_place_method(record)
    return None


class _TensorType(type):
    """Makes the methods that come from records when they are first asked for, so that importing stays quick."""

    def __getattr__(cls, name: str) -> Any:
        method = None if name.startswith("__") else _method(name)
        if method is None:
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        setattr(Tensor, name, method)
        return method

    def __dir__(cls):
        names = NAMESPACES["Tensor"]
        return sorted({*super().__dir__(), *names, *(n + "_" for n, op in names.items() if op.tags & INPLACE)})

    def __instancecheck__(cls, instance) -> bool:
        return type.__instancecheck__(cls, instance)


class Tensor(TensorMethods, metaclass=_TensorType):
    """A multi-dimensional array of one dtype on one device, with an optional history for gradients.

    Make one with `torch.tensor`, `torch.zeros`, `torch.from_numpy` …; `torch.Tensor(2, 3)` is an uninitialised float
    tensor and `torch.Tensor([1, 2])` a float copy, as in PyTorch.

    >>> import torchlite as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    _data: Any
    _table: Any
    dtype: dtype_type
    _node: Any
    _meta: Any
    __slots__ = ("_data", "_table", "dtype", "_node", "_meta", "__dict__", "__weakref__")
    __array_priority__ = 1000
    _is_plain = True

    def __new__(cls, *args, device=None, dtype=None, requires_grad=False):
        from ._creation import legacy_tensor

        made = legacy_tensor(args, dtype or _dtype.get_default_dtype(), device)
        if requires_grad:
            made.requires_grad_()
        return made if cls is Tensor else made.as_subclass(cls)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._is_plain = (
            "__torch_function__" not in cls.__dict__
            and cls.__bases__[0].__dict__.get("_is_plain", True)
            and cls.__module__.startswith("torchlite")
        )

    def __getattr__(self, name: str) -> Any:
        method = None if name.startswith("__") else _method(name)
        if method is None:
            if name == "__cuda_array_interface__":  # the property raised; its words would be lost
                from ._interop import no_interface

                raise AttributeError(no_interface(self))
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        setattr(Tensor, name, method)
        return getattr(self, name)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """How an op treats a subclass: runs as on plain tensors, and results take the subclass.
        Override to intercept.
        """
        return default_torch_function(cls, func, args, kwargs or {})

    # -- what it is ----------------------------------------------------------

    @property
    def shape(self) -> Size:
        return Size(self._data.shape)

    def size(self, dim=None):
        """The shape, or the length of one dimension."""
        if dim is None:
            return Size(self._data.shape)
        from ._dispatch.shapes import wrap_dim

        if not self._data.ndim:
            raise IndexError("Dimension specified as " + str(dim) + " but tensor has no dimensions")
        return self._data.shape[wrap_dim(dim, self._data.ndim)]

    @property
    def ndim(self) -> int:
        return self._data.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._data.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self._data.shape)

    nelement = numel

    def __len__(self) -> int:
        if not self._data.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self._data.shape[0]

    @property
    def device(self) -> device:
        return self._table.device

    def get_device(self) -> int:
        """The index of the device; -1 on the CPU."""
        return -1 if self.device.type == "cpu" else self.device.index or 0

    @property
    def layout(self):
        return strided

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating-point one."""
        return self.dtype.category == _dtype.FLOAT

    def is_complex(self) -> bool:
        """Whether the dtype is a complex one."""
        return self.dtype.category == _dtype.COMPLEX

    def is_signed(self) -> bool:
        """Whether the dtype has negative values."""
        return self.dtype.is_signed

    def stride(self, dim=None):
        """Steps between neighbours in elements, of all dimensions or of one."""
        size = max(self.dtype.itemsize, 1)
        strides = tuple(s // size for s in self._data.strides)
        shape = self._data.shape
        if any(n <= 1 for n in shape) and 0 not in shape:
            strides = _canonical_strides(shape, strides)
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """Where the first element lies in the storage, in elements."""
        from ._storage import offset_of

        return offset_of(self)

    def untyped_storage(self):
        """The bytes under this tensor and all that share its memory."""
        from ._storage import UntypedStorage

        return UntypedStorage(self)

    def storage(self):
        """The elements under this tensor as a TypedStorage."""
        from ._storage import TypedStorage

        return TypedStorage(self)

    def data_ptr(self) -> int:
        """The address of the first element."""
        pointer = getattr(self._data, "ctypes", None)
        return (
            pointer.data
            if pointer is not None
            else int(self._data.data_ptr())
            if hasattr(self._data, "data_ptr")
            else 0
        )

    def is_contiguous(self, memory_format=contiguous_format) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        flags = getattr(self._data, "flags", None)
        if flags is not None and memory_format is contiguous_format:
            return flags.c_contiguous
        from ._dispatch.shapes import contiguous_strides

        shape = self._data.shape
        if 0 in shape:
            return True
        order: Any = range(len(shape))
        if memory_format.name.startswith("channels_last"):
            if len(shape) != (5 if memory_format.name.endswith("3d") else 4):
                return False
            order = (0, *range(2, len(shape)), 1)
        want = contiguous_strides([shape[d] for d in order])
        have = [self._data.strides[d] // self.dtype.itemsize for d in order]
        return all(h == w or shape[d] == 1 for h, w, d in zip(have, want, order, strict=True))

    @property
    def is_cpu(self) -> bool:
        return self.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_opencl(self) -> bool:
        return self.device.type == "opencl"

    @property
    def is_meta(self) -> bool:
        return self.device.type == "meta"

    @property
    def T(self):
        """The tensor with its dimensions in reverse order, as a view."""
        return self.permute(*range(self._data.ndim - 1, -1, -1)) if self._data.ndim else self.alias()

    @property
    def mT(self):
        """The tensor with its last two dimensions swapped, as a view."""
        if self._data.ndim < 2:
            raise RuntimeError(
                f"tensor.mT is only supported on matrices or batches of matrices. Got {self._data.ndim}-D tensor."
            )
        return self.transpose(-2, -1)

    @property
    def H(self):
        """The conjugate transpose of a matrix."""
        if self._data.ndim not in (0, 2):
            raise RuntimeError(
                f"tensor.H is only supported on matrices (2-D tensors). Got {self._data.ndim}-D tensor."
                + (" For batches of matrices, consider using tensor.mH" if self._data.ndim > 2 else "")
            )
        return self.adjoint() if self._data.ndim else self.alias()

    @property
    def mH(self):
        """The conjugate transpose of the last two dimensions."""
        if self._data.ndim < 2:
            raise RuntimeError(
                f"tensor.mH is only supported on matrices or batches of matrices. Got {self._data.ndim}-D tensor."
            )
        return self.adjoint()

    @property
    def real(self):
        """The real part, a view; a real tensor itself."""
        return GLOBALS["F"].real(self)

    @real.setter
    def real(self, value):
        self.real.copy_(value)

    @property
    def imag(self):
        """The imaginary part of a complex tensor, a view. RuntimeError for a real one."""
        return GLOBALS["F"].imag(self)

    @imag.setter
    def imag(self, value):
        self.imag.copy_(value)

    is_sparse = is_quantized = is_mkldnn = is_nested = is_sparse_csr = property(lambda self: False)

    def is_conj(self) -> bool:
        """Always False: a conjugate is computed and never only marked."""
        return False

    def is_neg(self) -> bool:
        """Always False: a negative is computed and never only marked."""
        return False

    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode (such tensors carry no mark here: False)."""
        return False

    # -- autograd --------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool):
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True):
        """Say whether a leaf wants a gradient; returns the tensor. RuntimeError for integers and for non-leaves."""
        if requires_grad:
            if self._node is None:
                if self.dtype.category < _dtype.FLOAT:
                    raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
                meta_of(self)
                self._node = LEAF
        elif self._node is not None:
            if self._node is not LEAF:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed "
                    "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            self._node = None
        return self

    @property
    def is_leaf(self) -> bool:
        return self._node is None or self._node is LEAF

    @property
    def grad_fn(self):
        if self._node is None or self._node is LEAF:
            return None
        if is_stale(self):
            renew_history(self)
        return self._node.node if self._node.__class__ is OutputOf else self._node

    @property
    def output_nr(self) -> int:
        return self._node.index if self._node.__class__ is OutputOf else 0

    @property
    def grad(self):
        return getattr(self._meta, "grad", None)

    @grad.setter
    def grad(self, value):
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value._data.shape != self._data.shape:
                raise RuntimeError("assigned grad has data of a different size")
            if value.dtype is not self.dtype:
                raise RuntimeError("assigned grad has data of a different type")
            if value._table is not self._table:
                raise RuntimeError("assigned grad has data located on a different device")
        meta_of(self).grad = value

    @grad.deleter
    def grad(self):
        meta_of(self).grad = None

    @property
    def _version(self) -> int:
        return version(self)

    @property
    def _base(self):
        return base_of(self)

    def _is_view(self) -> bool:
        return base_of(self) is not None

    @property
    def retains_grad(self) -> bool:
        return getattr(self._meta, "retains", False)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add to the `.grad` of the leaves the gradient of this tensor. See `torch.autograd.backward`."""
        from .autograd import backward

        backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)

    def detach(self):
        """A tensor on the same memory without history. In-place changes of either are seen, and counted, by both."""
        out = _new(Tensor)
        out._data, out._table, out.dtype, out._node = self._data, self._table, self.dtype, None
        out._meta = alias_meta(self)
        return out

    def detach_(self):
        """Drop the tensor's history in place."""
        if self._is_view():
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self._node = None
        return self

    @property
    def data(self):
        out = _new(Tensor)
        out._data, out._table, out.dtype, out._node, out._meta = self._data, self._table, self.dtype, None, None
        return out

    @data.setter
    def data(self, value):
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        self._data, self._table, self.dtype = value._data, value._table, value.dtype

    def retain_grad(self):
        """Keep the gradient of a non-leaf in `.grad`."""
        if self._node is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self._node is LEAF or meta_of(self).retains:
            return
        import weakref

        meta_of(self).retains = True
        me = weakref.ref(self)

        def keep(gradient):
            tensor = me()
            if tensor is not None:
                tensor._meta.grad = gradient.clone() if tensor._meta.grad is None else tensor._meta.grad + gradient

        self.register_hook(keep)

    def register_hook(self, hook):
        """Call `hook(grad)` whenever a gradient of this tensor is computed; what it returns replaces it. Returns a
        handle with `remove()`.
        """
        from .utils.hooks import RemovableHandle

        if self._node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._node is LEAF:
            found = meta_of(self)
            if found.hooks is None:
                found.hooks = {}
            return RemovableHandle(found.hooks, hook)
        where = edge(self)
        node, index = (where.node, where.index) if where.__class__ is OutputOf else (where, 0)
        return RemovableHandle(node_hooks(node).tensor.setdefault(index, {}), hook)

    def register_post_accumulate_grad_hook(self, hook):
        """Call `hook(param)` after a gradient was accumulated into this leaf. Returns a handle with `remove()`."""
        from .utils.hooks import RemovableHandle

        if self._node is not LEAF:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        found = meta_of(self)
        if found.post_hooks is None:
            found.post_hooks = {}
        return RemovableHandle(found.post_hooks, hook)

    @property
    def name(self):
        return getattr(self._meta, "name", None)

    # -- Python and NumPy ----------------------------------------------------------

    def __repr__(self, *, tensor_contents=None) -> str:
        from ._printing import tensor_repr

        return tensor_repr(self)

    def __format__(self, spec: str) -> str:
        if self._data.ndim == 0 and not self.is_meta and type(self) in (Tensor, Parameter):
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __hash__(self) -> int:
        return id(self)

    def item(self):
        """The value of a one-element tensor as a Python number. RuntimeError for more elements."""
        data = self._data
        if math.prod(data.shape) != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        value = self._table.to_numpy(data).item()
        return (
            value
            if value.__class__ in (float, int, bool, complex)
            else self.dtype.category >= 3 and complex(value) or float(value)
        )

    def tolist(self):
        """The elements as nested lists of Python numbers; a 0-d tensor as a number."""
        return self._table.to_numpy(self._data).tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The tensor as a NumPy array on the same memory (a copy when on another device with `force=True`).

        RuntimeError when it requires grad; TypeError on another device, unless `force`.
        """
        if self._node is not None and not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.device.type != "cpu" and not force:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
                "host memory first."
            )
        return self._table.to_numpy(self._data)

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if dtype is None or array.dtype == dtype:
            return array.copy() if copy else array
        if copy is False:
            raise ValueError(f"a copy is needed to give a {array.dtype} tensor as {np.dtype(dtype)}")
        return array.astype(dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from ._numpy import array_ufunc

        return array_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        from ._numpy import array_function

        return array_function(function, args, kwargs)

    def __array_namespace__(self, *, api_version=None):
        from . import _array_api

        return _array_api

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from ._interop import dlpack

        return dlpack(self, stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        from ._interop import dlpack_device

        return dlpack_device(self)

    @property
    def __cuda_array_interface__(self):
        from ._interop import cuda_array_interface

        return cuda_array_interface(self)

    def __bool__(self) -> bool:
        n = self.numel()
        if n != 1:
            raise RuntimeError(
                "Boolean value of Tensor with no values is ambiguous"
                if n == 0
                else "Boolean value of Tensor with more than one value is ambiguous"
            )
        return bool(self._table.to_numpy(self._data))

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.numel() != 1 or self.dtype.category >= _dtype.FLOAT:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __iter__(self):
        if not self._data.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self):
        return self.flip(0) if self._data.ndim else self

    def __contains__(self, element) -> bool:
        if isinstance(element, (Tensor, int, float, complex)):
            return bool(self.eq(element).any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    def __dir__(self):
        return sorted({*object.__dir__(self), *dir(type(self))})

    def __delitem__(self, index):
        raise TypeError("Tensor does not support deleting items")

    # -- copies and conversions -------------------------------------------------------

    def __copy__(self):
        return self.detach() if self.is_leaf and self._node is None else self.clone()

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

        with call._grad(False):
            out = self.detach().clone(memory_format=preserve_format)
        if type(self) is not Tensor:
            out = out.as_subclass(type(self))
        if self._node is LEAF:
            out.requires_grad_()
        memo[id(self)] = out
        if self.grad is not None:
            meta_of(out).grad = copy.deepcopy(self.grad, memo)
        if self.__dict__:
            out.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return out

    def __reduce_ex__(self, protocol):
        from ._storage import reduce_tensor

        return reduce_tensor(self)

    def as_subclass(self, cls):
        """The same tensor as an instance of a subclass of Tensor."""
        out = _new(cls)
        out._data, out._table, out.dtype, out._node, out._meta = (
            self._data,
            self._table,
            self.dtype,
            self._node,
            self._meta,
        )
        return out

    @staticmethod
    def _make_subclass(cls, data, require_grad=False):
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
        d, where, copy, order = _parse_to(*args, **kwargs)
        out = self
        if where is not None:
            out = GLOBALS["move"](out, where)
        if d is not None and d is not out.dtype:
            out = GLOBALS["F"].to(out, d)
        if order is not None and order is not preserve_format and not out.is_contiguous(order):
            return out.contiguous(memory_format=order)
        return out.clone() if copy and out is self else out

    def cpu(self, memory_format=preserve_format):
        """The tensor on the CPU."""
        return self.to("cpu")

    def cuda(self, device=None, non_blocking=False, memory_format=preserve_format):
        """The tensor on a CUDA device, the current one when none is given. RuntimeError for a
        device of another type.
        """
        where = call._device("cuda" if device is None else device)
        if where.type != "cuda":
            raise RuntimeError("Invalid device, must be cuda device")
        return self.to(where)

    def opencl(self, device=None):
        """The tensor on an OpenCL device."""
        return self.to("opencl" if device is None else device)

    def type(self, dtype=None, non_blocking=False):
        """The type's name, or the tensor cast to a dtype, or to a type and its device: `torch.FloatTensor`,
        "torch.cuda.HalfTensor".
        """
        if dtype is None:
            where = "" if self.is_cpu else f"{self.device.type}."
            return f"torch.{where}{self.dtype.scalar_name}Tensor"
        if isinstance(dtype, dtype_type):
            return self.to(dtype)
        from ._legacy import place_of

        found = place_of(dtype)
        if found is None:
            raise ValueError(f"invalid type: '{dtype}'")
        where, d = found
        return self.to(d) if where == self.device.type else self.to(where, d)

    def type_as(self, other):
        """The tensor with the dtype and on the device of another."""
        return self.to(other)

    def share_memory_(self):
        """Move the memory to where other processes see it; returns the tensor."""
        from ._storage import share_memory

        return share_memory(self)

    def is_shared(self) -> bool:
        """Whether other processes can share the memory."""
        from ._storage import is_shared

        return is_shared(self)

    def pin_memory(self, device=None):
        """A copy in page-locked memory, from which copies to a CUDA device are quicker; without one the tensor itself.
        RuntimeError on a device.
        """
        from ._interop import pin_memory

        return pin_memory(self)

    def is_pinned(self, device=None) -> bool:
        """Whether the memory is page-locked."""
        from ._interop import is_pinned

        return is_pinned(self)

    def record_stream(self, s):
        """Say that a stream uses the tensor, which was made in another one: when it is freed its memory is not given
        out before that work has run.
        """
        from ._interop import record_stream

        record_stream(self, s)

    def apply_(self, function):
        """Replace each element x by function(x), in place (slow; CPU only)."""
        array = self._table.to_numpy(self._data)
        result = np.array([function(x) for x in array.ravel().tolist()], dtype=array.dtype).reshape(array.shape)
        self._table.copy_into(self._data, self._table.from_numpy(result))
        return self


def _canonical_strides(shape, strides):
    """Strides as PyTorch gives them for dimensions of length one: what a contiguous neighbour would have."""
    out = list(strides)
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        if shape[d] == 1 and (out[d] == 0 or d == len(shape) - 1 or out[d] != step):
            out[d] = step if out[d] == 0 else out[d]
        step = out[d] * shape[d]
    return tuple(out)


def _parse_to(*args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None, other=None):
    where = device
    rest = [a for a in args if not isinstance(a, bool)]
    flags = [a for a in args if isinstance(a, bool)]
    if len(flags) > 1:
        copy = flags[1]
    for item in [*rest, other]:
        if item is None:
            continue
        if isinstance(item, dtype_type):
            dtype = item
        elif isinstance(item, Tensor):
            dtype, where = item.dtype, item.device
        elif isinstance(item, (str, int)) or item.__class__.__name__ == "device":
            where = item
        elif isinstance(item, memory_format_type):
            memory_format = item
        else:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(item).__name__})")
    return dtype, None if where is None else call._device(where), copy, memory_format


class _Casts:
    """x.float(), x.long() …"""

    @staticmethod
    def make(name: str, d):
        def cast(self, memory_format=preserve_format):
            return self if self.dtype is d else GLOBALS["F"].to(self, d)

        cast.__name__ = cast.__qualname__ = name
        cast.__doc__ = f"The tensor cast to {d}."
        return cast


for _d in _dtype.ALL.values():
    for _name in (
        *_dtype.ALIASES.get(_d.name, ()),
        *(("bool",) if _d is _dtype.bool_ else ()),
        *(("bfloat16",) if _d.name == "bfloat16" else ()),
    ):
        setattr(Tensor, _name, _Casts.make(_name, _d))


class _ParameterType(_TensorType):
    def __instancecheck__(cls, instance) -> bool:
        return type.__instancecheck__(cls, instance) or (
            isinstance(instance, Tensor) and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterType):
    """A Tensor that a Module takes as its parameter when it is assigned as an attribute.

    `Parameter(data, requires_grad=True)` shares the data's memory.
    """

    __slots__ = ()
    _is_plain = True

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            from ._creation import legacy_tensor

            data = legacy_tensor((0,), _dtype.get_default_dtype(), None)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter(): argument 'data' must be Tensor, not {type(data).__name__}")
        if type(data) is not Tensor and not isinstance(data, Parameter):
            out = data.detach().as_subclass(type(data))
            out._is_param = True
        else:
            out = data.data.as_subclass(cls)
        if requires_grad:
            out.requires_grad_()
        return out

    def __init__(self, data=None, requires_grad=True):
        pass

    def __repr__(self, *, tensor_contents=None) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + Tensor.__repr__(self)


def default_torch_function(cls, func, args, kwargs):
    """Run `func` on the arguments as plain tensors and give results the subclass."""
    from .overrides import disabled

    with disabled():
        result = func(*args, **kwargs)
    return _to_subclass(result, cls)


def _to_subclass(result, cls):
    if type(result) is Tensor:
        return result.as_subclass(cls)
    if type(result) in (tuple, list):
        return type(result)(_to_subclass(r, cls) for r in result)
    return result


# -- operators, made at their first use -------------------------------------------------

_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "floordiv": "floor_divide",
    "mod": "remainder", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _lazy_operator(dunder: str, build):
    def first_use(self, *args):
        made = build()
        made.__name__ = made.__qualname__ = dunder
        setattr(Tensor, dunder, made)
        return made(self, *args)

    first_use.__name__ = dunder
    setattr(Tensor, dunder, first_use)


def _in_place_operator(record):
    fast = fast_in_place(record)

    def operator_(self, other):
        if fast is not None:
            done = fast(self, other)
            if done is not None:
                return done
        if other.__class__ not in (float, int, Tensor) and not isinstance(
            other, (Tensor, int, float, complex, np.ndarray, np.generic)
        ):
            return NotImplemented
        return call.in_place(record, (self, other), {})

    return operator_


for _name, _op in _OPERATORS.items():
    _lazy_operator(f"__{_name}__", lambda op=_op: operator_for(REGISTRY[op]))
    _lazy_operator(f"__r{_name}__", lambda op=_op: operator_for(REGISTRY[op], reflected=True))
    if _name != "matmul":
        _lazy_operator(f"__i{_name}__", lambda op=_op: _in_place_operator(REGISTRY[op]))
for _name in _COMPARISONS:
    _lazy_operator(f"__{_name}__", lambda op=_name: operator_for(REGISTRY[op]))
for _name, _op in {"neg": "neg", "abs": "abs", "invert": "bitwise_not", "pos": "positive"}.items():
    _lazy_operator(f"__{_name}__", lambda op=_op: function_for(REGISTRY[op]))

call.Tensor, call.Parameter = Tensor, Parameter
GLOBALS.update(Tensor=Tensor, Parameter=Parameter, Size=Size, bool_=_dtype.bool_)
