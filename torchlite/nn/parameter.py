"""Parameter, Buffer, and their uninitialised forms for lazy modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite import Parameter as Parameter
from torchlite import Tensor
from torchlite._settings.module_dir import make_module_dir

if TYPE_CHECKING:
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


_ParameterMeta = type(Parameter)  # its name for packages


class _BufferType(type(Tensor)):
    """Metaclass of Buffer: `isinstance(tensor, Buffer)` is true for tensors marked as buffers, since a Buffer is a
    plain Tensor.
    """

    def __instancecheck__(cls, instance: Any) -> Any:
        return type.__instancecheck__(cls, instance) or (
            isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that a module registers as a buffer when it is assigned to an attribute.

    Args:
        data: The tensor, whose memory is shared. Default: an empty tensor.
        persistent: Whether the buffer is part of `state_dict`. Default: ``True``.

    Example:
        >>> module = torch.nn.Module()
        >>> module.mean = torch.nn.Buffer(torch.zeros(2))
        >>> list(module.state_dict())
        ['mean']
    """

    __slots__ = ()
    _is_plain = True
    persistent: bool

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = torch.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


_LAZY_HINT = (
    " This error happens when you are using a `LazyModule` or explicitly manipulating `torch.nn.parameter.{}` "
    "objects. When using LazyModules Call `forward` with a dummy batch to initialize the parameters before calling "
    "torch functions"
)
_ALLOWED_METHODS = {
    "detach", "detach_", "to", "clone", "cpu", "cuda", "float", "double", "half", "bfloat16", "type", "data",
    "is_floating_point", "is_complex",
}  # fmt: skip


class UninitializedTensorMixin:
    """A tensor without a shape. `materialize(shape)` allocates it and makes it an ordinary parameter or buffer."""

    __slots__ = ()
    cls_to_become: type = torch.Tensor
    device: Any
    dtype: Any
    requires_grad: Any

    def materialize(self, shape: Any, device: DeviceLike = None, dtype: DType | None = None) -> Any:
        """Allocates uninitialized memory and makes the tensor an ordinary parameter or buffer.

        Args:
            shape: The shape.
            device: The device. Default: the one given at construction.
            dtype: The dtype. Default: the one given at construction.
        """
        self.data = torch.empty(
            shape, device=self.device if device is None else device, dtype=self.dtype if dtype is None else dtype
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call "
            "`forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def _convert_uninitialized(self, tensor):
        """Return an uninitialised tensor like `tensor` in dtype and device."""
        kind: Any = type(self)
        return kind(
            device=tensor.device,
            dtype=tensor.dtype,
            **({"requires_grad": self.requires_grad} if isinstance(self, Parameter) else {}),
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (type(self), self.requires_grad, str(self.device), self.dtype)

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            memo[id(self)] = _rebuild(type(self), self.requires_grad, self.device, self.dtype)
        return memo[id(self)]


def _make_unsupported_method(name):
    def method(self, *args, **kwargs):
        raise ValueError(
            f"Attempted to use an uninitialized parameter in <method '{name}' of 'torch._C.TensorBase' objects>."
            + _LAZY_HINT.format(type(self).__name__)
        )

    method.__name__ = name
    return method


# Methods that are not ops, so `__torch_function__` does not see them.
for _name in (
    "__bool__", "__float__", "__int__", "__len__", "clone", "data_ptr", "dim", "element_size", "is_contiguous",
    "is_pinned", "is_shared", "item", "ndimension", "nelement", "numel", "numpy", "requires_grad_", "retain_grad",
    "storage", "storage_offset", "stride", "tolist", "type", "untyped_storage",
):  # fmt: skip
    setattr(UninitializedTensorMixin, _name, _make_unsupported_method(_name))
del _name


def _rebuild(cls, requires_grad, device, dtype):
    return cls(requires_grad=requires_grad, device=device, dtype=dtype)


def _refuse_function(cls, func, args, kwargs):
    """`__torch_function__` of the two classes: nothing can be computed with them but copies in another dtype or on
    another device.
    """
    name = getattr(func, "__name__", str(func))
    if name not in _ALLOWED_METHODS:
        kind = cls.__name__
        raise ValueError(f"Attempted to use an uninitialized parameter in {func}." + _LAZY_HINT.format(kind))
    from torchlite.overrides import disabled

    with disabled():
        plain = [
            torch.empty(0, dtype=arg.dtype, device=arg.device) if isinstance(arg, UninitializedTensorMixin) else arg
            for arg in args
        ]
        return args[0]._convert_uninitialized(func(*plain, **(kwargs or {})))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter of a lazy module, without a shape until the module's first call.

    Args:
        requires_grad: Whether autograd computes its gradient. Default: ``True``.
        device: The device of the parameter. Default: the default device.
        dtype: The dtype of the parameter. Default: the default dtype.

    Example:
        >>> weight = torch.nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> type(weight).__name__, weight.shape
        ('Parameter', torch.Size([2, 3]))
    """

    __slots__ = ()
    cls_to_become = Parameter
    _is_plain = False

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        data = torch.empty(0, device=device, dtype=dtype).as_subclass(cls)
        if requires_grad:
            Tensor.requires_grad_(data)
        return data

    def __init__(self, requires_grad: bool = True, device: DeviceLike = None, dtype: DType | None = None) -> None:
        pass

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _refuse_function(cls, func, args, kwargs)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer of a lazy module, without a shape until the module's first call.

    Args:
        requires_grad: Not read: a buffer has no gradient.
        device: The device of the buffer. Default: the default device.
        dtype: The dtype of the buffer. Default: the default dtype.
        persistent: Whether the buffer is part of `state_dict`. Default: ``True``.

    Example:
        >>> mean = torch.nn.UninitializedBuffer()
        >>> mean.materialize((3,))
        >>> mean.shape
        torch.Size([3])
    """

    __slots__ = ()
    cls_to_become = Tensor
    _is_plain = False

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        data: Any = torch.empty(0, device=device, dtype=dtype).as_subclass(cls)
        data.persistent = persistent
        data._is_buffer = True
        return data

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _refuse_function(cls, func, args, kwargs)


def is_lazy(param: Any) -> Any:
    """Returns whether a parameter or buffer has no shape yet.

    Args:
        param: Any object.

    Example:
        >>> from torchlite.nn.parameter import is_lazy
        >>> is_lazy(torch.nn.LazyLinear(2).weight), is_lazy(torch.nn.Linear(3, 2).weight)
        (True, False)
    """
    return isinstance(param, UninitializedTensorMixin)


__dir__ = make_module_dir(globals(), "_ParameterMeta")
