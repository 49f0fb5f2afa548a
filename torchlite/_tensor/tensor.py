"""The class Tensor: a thin object over a raw array. Op records define most methods; the mixin modules define the
others.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from .._dispatch import NAMESPACES, call
from .._dispatch.autograd_graph import root_meta_of
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import GLOBALS, MODE, OVERRIDES, recording
from .._dispatch.interceptors import DISABLED_TORCH_FUNCTION, torch_function_disabled
from .._dispatch.op_functions import in_place_method, method_for
from .._dispatch.op_record import INPLACE, Op
from .._dispatch.shape_and_value_checks import set_requires_grad
from .._types import dtypes
from .._types.devices import get_default_device
from .._types.layouts import Size, preserve_format
from .._types.package_name import is_torchlite_object
from .._types.unsupported import unsupported_function
from .autograd_methods import AutogradMethods
from .conversions import ConversionMethods
from .operators import OperatorMethods
from .properties import PropertyMethods
from .python_protocols import PythonProtocols
from .quantized_methods import QuantizedMethods
from .sparse_methods import SparseMethods


def _make_method(name: str):
    """The method of that name, created from its record."""
    record = NAMESPACES["Tensor"].get(name)
    if record is None:
        return in_place_method(NAMESPACES["Tensor"][name[:-1]])
    made = method_for(record, name)
    made.__name__ = name
    return made


class _LazyMethod:
    """A method that is created from its record at first use, so that importing stays fast.

    This is not a `__getattr__`, because the interpreter's fast attribute lookup does not apply to classes that define
    it.
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __get__(self, tensor, owner=None):
        method = _make_method(self.name)
        setattr(Tensor, self.name, method)
        return method.__get__(tensor, owner)


def _add_method(name: str, record: Op) -> None:
    """Add the method that a record declares to the class, and the in-place one."""
    for each in (name, name + "_") if record.tags & INPLACE else (name,):
        if each not in Tensor.__dict__:
            setattr(Tensor, each, _LazyMethod(each))


if TYPE_CHECKING:

    class _Parts(QuantizedMethods, OperatorMethods):
        """Mixins of Tensor."""
else:
    _Parts = object


def _merge_mixins(tensor: type) -> type:
    """The class with what its parts have: as bases at run time, each would slow down the end of every Tensor."""
    for part in (
        PropertyMethods, AutogradMethods, PythonProtocols, ConversionMethods, SparseMethods, QuantizedMethods,
        OperatorMethods,
    ):  # fmt: skip
        for name, value in vars(part).items():
            if name not in ("__module__", "__doc__", "__slots__", "__annotations__"):
                setattr(tensor, name, value)
            if isinstance(value, FunctionType):  # pickles find a method where users do
                value.__module__, value.__qualname__ = "torchlite._tensor", f"Tensor.{name}"
    return tensor


@_merge_mixins
class Tensor(_Parts):
    """A multi-dimensional array of one dtype on one device, with an optional history for gradients.

    Make one with `torch.tensor`, `torch.zeros`, `torch.from_numpy` …; `torch.Tensor(2, 3)` is an uninitialised float
    tensor and `torch.Tensor([1, 2])` a float copy, as in PyTorch.

    >>> import torchlite as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = {  # a text is the attribute's docstring
        "_tl_array": None, "_tl_kernels": None, "dtype": "The dtype of the elements.", "_tl_node": None,
        "_tl_meta": None, "__dict__": None, "__weakref__": None,
    }  # fmt: skip
    __array_priority__ = 1000
    _tl_is_plain = True
    _tl_level: Any = None  # of a tensor inside `vmap` that represents one example of a batch: the batch's level
    _tl_dispatches = False  # whether the class defines `__torch_dispatch__`
    # Whether ops on it go to `_run_record`, as records. Its parts have the autograd history: `_autograd_representative`
    # is the tensor in the graph, `_gradient_to_local` and `_gradient_from_local` convert a gradient, `_set_items`
    # writes at an index.
    _takes_records = False
    _set_items: Any
    _tl_signs = 0  # of a view whose elements are the conjugates or negatives of its memory's (see conj_neg_views.py)

    def __new__(cls, *args, device=None, dtype=None, requires_grad=False, size=None):
        from .creation import legacy_tensor

        made = legacy_tensor(args, dtype or dtypes.get_default_dtype(), device, size, any_dtype=dtype is None)
        set_requires_grad(made, requires_grad)
        return made if made.__class__ is cls else made.as_subclass(cls)

    def __init_subclass__(cls, _tl_is_plain=False, **kwargs):
        super().__init_subclass__(**kwargs)
        if _tl_is_plain is None:  # the class that `_make_overridable` puts in
            return
        own = _find_class_attribute(cls, "__torch_dispatch__")
        cls._tl_dispatches = own is not vars(Tensor)["__torch_dispatch__"] and not _disables_torch_function(own)
        GLOBALS["DISPATCHES"] |= cls._tl_dispatches
        if (
            cls._tl_dispatches
            and _find_class_attribute(cls, "__torch_function__") is vars(Tensor)["__torch_function__"]
        ):
            # PyTorch's rule: such a class only intercepts ops below autograd.
            cls.__torch_function__ = DISABLED_TORCH_FUNCTION  # type: ignore[method-assign]
        cls._tl_is_plain = _disables_torch_function(_find_class_attribute(cls, "__torch_function__")) or (
            "__torch_function__" not in cls.__dict__
            and cls.__bases__[0].__dict__.get("_tl_is_plain", True)
            and is_torchlite_object(cls)
        )
        if not cls._tl_is_plain and not is_torchlite_object(cls):
            _make_overridable(cls)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Defines the behaviour of ops on a subclass: they run as on plain tensors, and results get the subclass.
        Override to intercept.
        """
        return default_torch_function(cls, func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """Defines the behaviour of a subclass in ops below autograd: as plain tensors. Override to intercept them."""
        before, MODE.torch_dispatch_disabled = MODE.torch_dispatch_disabled, True
        try:
            return func(*args, **(kwargs or {}))
        finally:
            MODE.torch_dispatch_disabled = before


def _find_class_attribute(cls: type, name: str) -> Any:
    """The attribute of a class or its nearest base class, unbound."""
    return next(vars(base)[name] for base in cls.__mro__ if name in vars(base))


def _make_overridable(cls: type) -> None:
    """Let the methods of a class that defines `__torch_function__` pass their calls to it."""
    own = _find_class_attribute(cls, "__torch_function__")
    if own is vars(Tensor)["__torch_function__"]:
        return  # with the default one, results get the class, which the ops see to
    OVERRIDES[:] = [None]
    CALLBACKS.make_overridable(cls)


def _disables_torch_function(hook: Any) -> bool:
    return getattr(getattr(hook, "__func__", hook), "is_disabled_torch_function", False)


class _ParameterType(type):
    def __instancecheck__(cls, instance) -> bool:
        return type.__instancecheck__(cls, instance) or (
            isinstance(instance, Tensor) and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterType):
    """A tensor that a module registers as a parameter when it is assigned to an attribute.

    Args:
        data: The tensor, whose memory is shared. Default: an empty tensor.
        requires_grad: Whether autograd computes its gradient. Default: ``True``.

    Raises:
        TypeError: `data` is not a tensor.

    Example:
        >>> module = torch.nn.Module()
        >>> module.scale = torch.nn.Parameter(torch.ones(2))
        >>> [name for name, _ in module.named_parameters()]
        ['scale']
    """

    __slots__ = ()
    _tl_is_plain = True
    __torch_function__ = DISABLED_TORCH_FUNCTION  # results of ops on subclasses are plain tensors too

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = call.create_tensor("_empty", (0,), dtypes.get_default_dtype(), device=get_default_device())
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter(): argument 'data' must be Tensor, not {type(data).__name__}")
        if type(data) is not Tensor and not issubclass(type(data), Parameter) and not data._tl_signs:
            out = data.detach()
            if type(out) is not type(data):  # its own `detach` may say what else an instance has
                out = out.as_subclass(type(data))
            out._is_param = True
        else:
            out = CALLBACKS.resolve_conj_neg(data.data).as_subclass(cls)
            if not data._tl_signs:
                out._tl_meta.root = root_meta_of(data)
        return set_requires_grad(out, requires_grad)

    def __repr__(self, *, tensor_contents=None) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + Tensor.__repr__(self)

    def __deepcopy__(self, memo):
        # A parameter's copy has new memory, and neither its gradient nor its attributes.
        if id(self) not in memo:
            with recording(False):
                data = self.data.clone(memory_format=preserve_format)
            memo[id(self)] = type(self)(data, self.requires_grad)
        return memo[id(self)]


# Where programs and pickles find them.
Tensor.__module__, Parameter.__module__ = "torchlite", "torchlite.nn.parameter"


def default_torch_function(cls, func, args, kwargs):
    """Run `func` on the arguments as plain tensors, and convert results to the subclass."""
    with torch_function_disabled():
        result = func(*args, **kwargs)
    return _to_subclass(result, cls)


def _to_subclass(result, cls):
    if type(result) is Tensor:
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and not isinstance(result, Size):
        return type(result)(_to_subclass(r, cls) for r in result)
    return result


for _name in (
    "index", "to_mkldnn", "to_padded_tensor",
):  # fmt: skip
    setattr(Tensor, _name, unsupported_function(f"torch.Tensor.{_name}"))
Tensor._tl_memory = Tensor.__dict__["_tl_array"]  # the same attribute: only tensors with bits distinguish the two
call.set_tensor_classes(Tensor, Parameter)
CALLBACKS.add_tensor_method = _add_method
