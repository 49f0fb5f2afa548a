"""Runtime functions of translated programs: attribute access, method calls, conversions, control flow and errors.

Each checks its arguments, so programs can reach only TorchScript values.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable
from typing import Any

from torchlite.nn.parameter import Parameter

from .._aten.allowlist import check_split_count
from .._dispatch.call import Tensor
from .._dispatch.dispatch_state import MODE
from .._types.devices import device as device_type
from ..autograd.grad_mode import set_grad_enabled
from ..futures import Future
from . import _list_ops, _nontensor_ops, _number_ops, _str_ops, _value_limits
from ._function_modifiers import is_library_class

LOOKUP: list[Callable] = []  # set to `_builtin_ops.lookup` by that module


def operator_of(path: str) -> Any:
    """Return the operator of a name, None if there is none."""
    return LOOKUP[0](path, 10)


class Error(RuntimeError):
    """Raised by a `raise` statement of a TorchScript program.

    Example:
        >>> issubclass(torch.jit.Error, RuntimeError)
        True
    """


_ERROR_PREFIX = (
    "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent "
    "call last):\n"
)


def host_entry(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a function of a loaded program. The host sees RuntimeErrors only, finite results, and its own grad mode
    afterwards.
    """
    grad = MODE.grad
    try:
        result = function(*args, **kwargs)
        if result.__class__ in CONTAINERS:
            _value_limits.count_visited(result, tensor=0)
        return result
    except Exception as error:  # TorchScript's errors are RuntimeErrors
        found = as_runtime_error(error)
        if found is error:
            raise
        raise found from None
    finally:
        if MODE.grad is not grad:
            set_grad_enabled(grad)


CONTAINERS = frozenset((list, tuple, dict))


def as_runtime_error(error: Exception) -> Exception:
    """Convert a Python error to TorchScript's RuntimeError; keep RuntimeError and MemoryError."""
    if isinstance(error, (RuntimeError, MemoryError)) and not isinstance(error, RecursionError):
        return error
    if isinstance(error, UnboundLocalError):
        return RuntimeError(f"undefined value: {error}")
    if isinstance(error, RecursionError):
        return RuntimeError(
            f"{_ERROR_PREFIX}RuntimeError: the program calls itself, or its values lie in each other, too deep"
        )
    return RuntimeError(f"{_ERROR_PREFIX}RuntimeError: {type(error).__name__}: {str(error)[:1000]}")


class ScriptObject:
    """Object of a class that a TorchScript program defines.

    Programs create such objects and return them. Python code reads their attributes and calls their methods.

    Raises:
        TypeError: Python code calls the class, which has no constructor.

    Example:
        >>> isinstance(torch.ones(2), torch.ScriptObject)
        False
    """

    __slots__ = ("__weakref__", "_attributes", "_script")

    def __init__(self, script: Any = None):
        if script is None:
            raise TypeError("torch._C.ScriptObject: No constructor defined!")
        object.__setattr__(self, "_script", script)
        object.__setattr__(self, "_attributes", {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        method = self._script.methods.get(name)
        run = host_entry if self._script.of_file else _run
        if method is not None:
            return lambda *args, **kwargs: run(method, self, *args, **kwargs)
        return run(get_attribute, self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        set_attribute(self, name, value)

    def __repr__(self) -> str:
        return f"<{self._script.name} object>"

    def __enter__(self) -> Any:
        return self._script.methods["__enter__"](self)

    def __exit__(self, *exc: Any) -> Any:
        return self._script.methods["__exit__"](self, *(None,) * 3)

    def __deepcopy__(self, memo: dict) -> Any:
        import copy

        made = ScriptObject(self._script)
        memo[id(self)] = made
        made._attributes.update(copy.deepcopy(self._attributes, memo))
        return made


def _run(function: Callable, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


# Classes with program-defined attributes and methods; `_script_modules` adds modules.
SCRIPTED: set[Any] = {ScriptObject}


def _make_special_method(name: str) -> Any:
    def run(self: Any, *args: Any) -> Any:
        method = self._script.methods.get(name)
        if method is None:
            raise TypeError(f"'{self._script.original_name}' has no {name}")
        return host_entry(method, self, *args) if self._script.of_file else method(self, *args)

    return run


for _name in (
    "add sub mul truediv mod neg eq ne lt gt le ge getitem setitem len contains call and or xor pow floordiv"
).split():
    if _name not in ("eq", "ne"):
        setattr(ScriptObject, f"__{_name}__", _make_special_method(f"__{_name}__"))


def _make_equality(name: str, otherwise: Callable) -> Any:
    def run(self: Any, other: Any) -> Any:
        method = self._script.methods.get(name)
        return otherwise(self, other) if method is None else method(self, other)

    return run


ScriptObject.__eq__ = _make_equality("__eq__", operator.is_)  # type: ignore[method-assign, assignment]
ScriptObject.__ne__ = _make_equality("__ne__", operator.is_not)  # type: ignore[method-assign, assignment]
ScriptObject.__hash__ = lambda self: id(self)  # type: ignore[method-assign, assignment]


# -- attributes and methods ---------------------------------------------------------------------


def get_attribute(obj: Any, name: str) -> Any:
    """Return an attribute. Raise RuntimeError if programs may not read it."""
    cls = obj.__class__
    if cls in SCRIPTED:
        return _object_attribute(obj, name)
    if getattr(cls, "_script_fields", None) is not None:
        if name in cls._script_fields:
            return tuple.__getitem__(obj, cls._fields.index(name))
    elif isinstance(obj, enum.Enum) and name in ("name", "value"):
        return obj._name_ if name == "name" else obj._value_
    elif isinstance(obj, Tensor) or cls is device_type:
        found = PROPERTIES.get(name) or operator_of(f"ops.prim.{name}")
        if found is not None:
            PROPERTIES[name] = found
            return found(obj)
    raise RuntimeError(f"'{_type_name(obj)}' has no attribute '{name[:100]}' in TorchScript")


def _type_name(obj: Any) -> str:
    return obj._script.original_name if obj.__class__ in SCRIPTED else obj.__class__.__name__


def _object_attribute(obj: Any, name: str) -> Any:
    attributes = obj._attributes
    if name in attributes:
        return attributes[name]
    script = obj._script
    if obj.__class__ is not ScriptObject:
        for table in (obj._parameters, obj._buffers, obj._modules):
            if name in table:
                return table[name]
        if name == "training":
            return obj.training
        if name == "_is_full_backward_hook":
            return None
    if name in script.constants:
        return script.constants[name]
    getter = script.properties.get(name, (None, None))[0]
    if getter is not None:
        return script.methods[getter](obj)
    if name in script.types and script.types[name] == "NoneType":
        return None
    raise RuntimeError(f"Module '{script.original_name}' has no attribute '{name[:100]}'")


def set_attribute(obj: Any, name: str, value: Any) -> None:
    """Set an attribute of a program's object."""
    if obj.__class__ is ScriptObject:
        setter = obj._script.properties.get(name, (None, None))[1]
        if setter is not None:
            obj._script.methods[setter](obj, value)
        else:
            obj._attributes[name] = value
        return
    if obj.__class__ not in SCRIPTED:
        raise RuntimeError(f"'{_type_name(obj)}' takes no attributes in TorchScript")
    if name == "training":
        object.__setattr__(obj, "training", bool(value))
    elif name in obj._parameters:
        obj._parameters[name] = value
    elif name in obj._buffers:
        obj._buffers[name] = value
    elif name in obj._modules:
        raise RuntimeError(f"the submodule {name} cannot be set in TorchScript")
    else:
        _register_attribute(obj, name, value)


def _register_attribute(obj: Any, name: str, value: Any) -> None:
    """Add a new attribute to a module as parameter, buffer, submodule or value."""
    if isinstance(value, Tensor) and name in obj._script.listed("parameters"):
        obj._parameters[name] = to_parameter(value)
    elif isinstance(value, Tensor) and name in obj._script.listed("buffers"):
        obj._buffers[name] = value
    elif value.__class__ in SCRIPTED and value.__class__ is not ScriptObject:
        obj._modules[name] = value
    else:
        obj._attributes[name] = value


def to_parameter(tensor: Any) -> Any:
    """Turn a tensor into a Parameter in place, as lists of weights may share the object."""
    if not isinstance(tensor, Parameter) and type(tensor) is Tensor:
        wants = tensor.requires_grad
        try:
            tensor.__class__ = Parameter
        except TypeError:
            return Parameter(tensor, wants)
    return tensor


def call_method(obj: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a method of an object, or an operator of that name on it."""
    if obj.__class__ in SCRIPTED:
        method = obj._script.methods.get(name)
        if method is not None:
            return method(obj, *args, **kwargs)
        return invoke(_object_attribute(obj, name), *args, **kwargs)
    if name in getattr(obj.__class__, "_script_methods", ()):  # of a class that the library defines
        return getattr(obj, name)(*args, **kwargs)
    return method_of(obj, name)(obj, *args, **kwargs)


PROPERTIES: dict[str, Any] = {}  # cached properties of tensors and devices
METHODS: dict[str, Any] = {}  # cached methods of tensors, strings, lists and dictionaries


def method_of(obj: Any, name: str) -> Any:
    """Return the operator that implements a method. Raise RuntimeError if there is none."""
    if name in getattr(obj.__class__, "_script_methods", ()):  # of a class that the library defines
        return lambda obj, *args, **kwargs: getattr(obj, name)(*args, **kwargs)
    function = METHODS.get(name)
    if function is None and not name.startswith("__"):
        function = operator_of(f"torch.{name}") or operator_of(f"ops.prim.{name}")
    if function is None:
        raise RuntimeError(f"'{_type_name(obj)}' has no method '{name[:100]}' in TorchScript")
    METHODS[name] = function
    return function


def invoke(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a value: a module, an object with `__call__`, or a function."""
    cls = function.__class__
    if cls in SCRIPTED:
        method = function._script.methods.get("forward" if cls is not ScriptObject else "__call__")
        if method is not None:
            return method(function, *args, **kwargs)
    elif is_library_class(getattr(function, "__module__", None), "jit") and callable(function):
        return function(*args, **kwargs)
    raise RuntimeError(f"'{_type_name(function)}' cannot be called in TorchScript")


class ClassConstructor:
    """Constructor of a program's class."""

    __module__ = "torchlite.jit"

    def __init__(self, script: Any):
        self.script = script

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = new_object(self.script)
        method = self.script.methods.get("__init__")
        if method is not None:
            method(made, *args, **kwargs)
        return made


def new_object(script: Any) -> Any:
    """Return an object without attributes."""
    if script.kind != "class":
        raise RuntimeError(f"a program makes no objects of {script.name}")
    return ScriptObject(script)


class DeferredFunction:
    """Function compiled at its first call."""

    __module__ = "torchlite.jit"

    def __init__(self, names: dict[str, Any], path: str):
        self._names, self._path = names, path

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = self._names[self._path]
        if found is self:
            raise RuntimeError(f"{self._path} is not there")
        return found(*args, **kwargs)


def make_namedtuple_class(path: str, fields: dict[str, str], defaults: tuple = ()) -> type:
    """Return a named tuple class."""
    names = tuple(fields)

    def make_namedtuple(cls: type, *args: Any, **kwargs: Any) -> Any:
        given = list(args)
        for place, name in enumerate(names[len(args) :], len(args)):
            if name in kwargs:
                given.append(kwargs.pop(name))
            elif place >= len(names) - len(defaults):
                given.append(defaults[place - len(names)])
            else:
                raise TypeError(f"{path} is missing the field {name}")
        if kwargs or len(given) != len(names):
            raise TypeError(f"{path} has {len(names)} fields, but got {len(args) + len(kwargs)} values")
        return tuple.__new__(cls, given)

    body: dict[str, Any] = {name: property(operator.itemgetter(i)) for i, name in enumerate(names)}
    name = path.rpartition(".")[2]

    def namedtuple_repr(self: Any) -> str:
        shown = [repr(v) if v.__class__ is str else _str_ops.format_value(v) for v in self]
        return f"{name}(" + ", ".join(f"{n}={text}" for n, text in zip(names, shown, strict=True)) + ")"

    def as_dict(self: Any) -> dict:
        """Return the values by field name."""
        return dict(zip(names, self, strict=True))

    def of_items(cls: Any, items: Any) -> Any:
        """Return the tuple of values in field order."""
        return cls(*items)

    def replace(self: Any, **values: Any) -> Any:
        """Return a copy with some fields replaced."""
        return type(self)(**(as_dict(self) | values))

    body |= {
        "_make": classmethod(of_items),
        "_replace": replace,
        "__new__": make_namedtuple,
        "__repr__": namedtuple_repr,
        "_fields": names,
        "_script_fields": dict(fields),
        "_script_name": path,
        "__slots__": (),
        "__module__": "torchlite.jit",
        "_asdict": as_dict,
        "_field_defaults": (dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))),
        "__reduce__": lambda self: (_plain_tuple, (tuple(self),)),
        "__deepcopy__": _deepcopy_namedtuple,
    }
    return type(name, (tuple,), body)


def _plain_tuple(items: tuple) -> tuple:
    return items


def _deepcopy_namedtuple(self: Any, memo: dict) -> Any:
    import copy

    return tuple.__new__(type(self), [copy.deepcopy(item, memo) for item in self])


# -- conversions -----------------------------------------------------------------------------------

_KINDS: dict[str, Callable] = {"int": int, "float": float, "bool": bool, "complex": complex}


def to_number(value: Any, kind: str) -> Any:
    """Convert a one-element tensor to a number type; other values unchanged."""
    if isinstance(value, Tensor):
        value = value.item()
        return _KINDS[kind](value) if kind in _KINDS else value
    return value


def _tensor_to_number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def to_int(value: Any) -> int:
    """`int(value)` of a program."""
    value = _tensor_to_number(value)
    if value.__class__ is float and not math.isfinite(value):
        return -(1 << 63)
    return _number_ops.wrap_int64(int(value))


def _tensors_to_numbers(*values: Any) -> list:
    return [value.item() if isinstance(value, Tensor) else value for value in values]


_ITERABLE = (list, tuple, str, Tensor, enumerate, zip)


def iterate(value: Any) -> Any:
    """Return the iterable of a loop."""
    cls = value.__class__
    if cls is range:
        return _list_ops.to_list(value)
    if isinstance(value, Tensor) and value.ndim:
        check_split_count(value, len(value))
    if isinstance(value, _ITERABLE):
        return value
    if cls is dict:
        return list(value)
    if cls in SCRIPTED and cls is not ScriptObject:
        if value._script.original_name == "ModuleDict":
            return list(value._modules)
        return list(value._modules.values())
    raise RuntimeError(f"'{_type_name(value)}' object is not iterable")


def context_manager_of(value: Any) -> Any:
    """Return the context manager of `with`: a program object or an operator's context."""
    if value.__class__ is ScriptObject and {"__enter__", "__exit__"} <= value._script.methods.keys():
        return value
    if getattr(value.__class__, "_script_context", False):
        return value
    raise RuntimeError(f"'{_type_name(value)}' is no context of TorchScript")


def make_assertion_error(said: Any) -> None:
    """Return the exception of a failed assertion."""
    raise_error(f"AssertionError: {_str_ops.format_value(said)}")


def raise_error(message: Any = "", kind: Any = None, *rest: Any) -> None:
    """Execute a program's `raise`."""
    said = _str_ops.format_value(message)
    raise Error(f"{_ERROR_PREFIX}{kind or 'RuntimeError'}: {said}" if kind else f"{_ERROR_PREFIX}RuntimeError: {said}")


def fork(function: Any, *args: Any, **kwargs: Any) -> Future:
    """Call a function and return a Future of the result."""
    future: Any = Future()
    try:
        future.set_result(invoke(function, *args, **kwargs))
    except Exception as error:  # raised by the future's wait
        future.set_exception(as_runtime_error(error))
    return future


def augmented_assign(name: str, value: Any, other: Any) -> Any:
    """Execute `value += other` and similar, in place for tensors and lists."""
    inside = name + "_" if isinstance(value, Tensor) and name in _IN_PLACE else name
    if value.__class__ is list and name == "add":
        return _nontensor_ops.NONTENSOR_OPS["add_"](value, other)
    function = operator_of(f"torch.{inside}")
    return function(value, other)


_IN_PLACE = frozenset("add sub mul div floor_divide remainder pow".split())


def _print(*values: Any) -> None:
    print(*map(_str_ops.format_value, values))


def _range(*values: Any) -> range:
    return range(*_tensors_to_numbers(*values))


def _range_list(*values: Any) -> list:
    """Return a range used outside a loop as a list."""
    return _list_ops.to_list(_range(*values))


def _length(value: Any) -> int:
    if value.__class__ in SCRIPTED and value.__class__ is not ScriptObject and "__len__" not in value._script.methods:
        return len(value._modules)
    return call_method(value, "__len__") if value.__class__ in SCRIPTED else len(value)


def _has_attribute(obj: Any, name: Any) -> bool:
    if obj.__class__ not in SCRIPTED:
        return False
    try:
        _object_attribute(obj, name)
    except RuntimeError:
        return name in obj._script.methods
    return True


def _make_delegate(name: str) -> Callable:
    def run(*args: Any) -> Any:
        return operator_of(f"torch.{name}")(*args)

    return run


def _make_tensor_or_python_op(name: str) -> Callable:
    python = _nontensor_ops.NONTENSOR_OPS[name]

    def run(*args: Any) -> Any:
        if any(isinstance(a, Tensor) for a in args):
            return operator_of(f"torch.{name}")(*args)
        return python(*args)

    return run


def _enumerate(items: Any, start: int = 0) -> Any:
    return enumerate(iterate(items), start)


def _zip(*items: Any) -> Any:
    return zip(*map(iterate, items), strict=False)


def _is_instance(value: Any, test: Callable) -> bool:
    if value.__class__ in CONTAINERS:
        _value_limits.count_visited(value, tensor=0)
    return test(value)


GLOBALS: dict[str, Any] = {
    "own.key": _list_ops.safe_key,
    "own.plain_keys": frozenset((int, str, float, bool, Tensor, type(None))),
    "own.get": get_attribute,
    "own.set": set_attribute,
    "own.call": call_method,
    "own.invoke": invoke,
    "own.new": new_object,
    "own.iterate": iterate,
    "own.context": context_manager_of,
    "own.failed": make_assertion_error,
    "own.raise": raise_error,
    "own.number": to_number,
    "own.isinstance": _is_instance,
    "own.fork": fork,
    "own.change": augmented_assign,
    "number.inf": math.inf,
    "number.nan": math.nan,
    "number.infj": complex(0, math.inf),
    "number.nanj": complex(0, math.nan),
    "plain.int": to_int,
    "plain.float": lambda value: float(_tensor_to_number(value)),
    "plain.bool": bool,
    "plain.complex": lambda *values: complex(*_tensors_to_numbers(*values)),
    "plain.str": _str_ops.to_str,
    "plain.print": _print,
    "plain.range": _range,
    "own.range": _range_list,
    "plain.len": _length,
    "plain.min": _make_tensor_or_python_op("min"),
    "plain.max": _make_tensor_or_python_op("max"),
    "plain.abs": _make_delegate("abs"),
    "plain.sorted": _list_ops.sorted_,
    "plain.list": lambda items=(): _list_ops.to_list(iterate(items)),
    "plain.tuple": lambda items: tuple(_list_ops.to_list(iterate(items))),
    "plain.dict": _list_ops.to_dict,
    "plain.enumerate": _enumerate,
    "plain.zip": _zip,
    "plain.reversed": lambda items: list(iterate(items))[::-1],
    "plain.round": _make_delegate("round"),
    "plain.hash": _list_ops.safe_hash,
    "plain.ord": ord,
    "plain.chr": chr,
    "plain.hex": hex,
    "plain.oct": oct,
    "plain.bin": bin,
    "plain.divmod": divmod,
    "plain.sum": _make_delegate("sum"),
    "plain.any": _make_delegate("any"),
    "plain.all": _make_delegate("all"),
    "plain.hasattr": _has_attribute,
    "plain.slice": lambda *values: slice(*_tensors_to_numbers(*values)),
}
