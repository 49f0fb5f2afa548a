"""`__torch_function__`: dispatch of ops to Tensor subclasses and modes."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ._dispatch.interceptors import (
    InPlaceCall,
    Interceptor,
    call_torch_function,
    find_torch_function_override,
    put_back,
    show_only,
    show_only_within,
    stack,
    strip_default_args,
    torch_function_disabled,
)
from ._dispatch.op_functions import in_place_method
from ._dispatch.op_record import NAMESPACES
from ._library.library_op import LibraryOp
from ._tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_ignored_functions",
    "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function",
    "is_tensor_like", "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip

disabled = torch_function_disabled
# Public functions for records whose own function is not public.
_METHODS = {"_slice_index": "__getitem__", "_index": "__getitem__", "_setitem": "__setitem__"}


@functools.cache
def _public_function_of(op: Any, writes: bool) -> Any:
    """The function or method by which programs name an op; None where that is the op's own function."""
    if op.name in _METHODS:
        return getattr(Tensor, _METHODS[op.name])
    name = op.function_name.rstrip("_")
    if writes:
        return getattr(Tensor, f"{name}_", None) or in_place_method(op)
    import torchlite as torch

    space = next((space for space in op.where.split() if NAMESPACES.get(space, {}).get(op.name) is op), None)
    if space == "Tensor" or space is None and name not in NAMESPACES["torch"]:
        return getattr(Tensor, name, None)
    return getattr(torch if space is None else _module_of(space), op.name if space else name, None)


class TorchFunctionMode(Interceptor):
    """Base class of context managers that see every op.

    While it is entered, every op goes to the object's `__torch_function__(func, types, args, kwargs)`. A call of `func`
    there goes to the next mode below.

    Example:
        >>> import torchlite as torch
        >>> class Counting(torch.overrides.TorchFunctionMode):
        ...     count = 0
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         self.count += 1
        ...         return func(*args, **(kwargs or {}))
        >>> with Counting() as mode:
        ...     y = torch.ones(2).exp() + 1
        >>> mode.count
        3
    """

    inner: TorchFunctionMode
    intercepts_functions = sees_operators = True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """Passes an op's call to `__torch_function__`, under the function's public name.

        Args:
            op: Record of the op.
            function: The function.
            args: Tuple of positional arguments.
            kwargs: Dict of keyword arguments.
        """
        if kwargs.get("out", 0) is None:
            kwargs = {name: value for name, value in kwargs.items() if name != "out"}
        if isinstance(op, LibraryOp):
            function = op.overload
        else:
            args, kwargs = strip_default_args(op, args, kwargs)
            if getattr(function, "op", None) is not op or function is getattr(op, "function", None):
                function = _public_function_of(op, function.__class__ is InPlaceCall) or function
        return self.called(function, args, kwargs)

    def called(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Passes a function's call to `__torch_function__`.

        Args:
            function: The function.
            args: Tuple of positional arguments.
            kwargs: Dict of keyword arguments.
        """
        types = tuple(
            dict.fromkeys(
                type(v)
                for value in (*args, *kwargs.values())
                for v in (value if isinstance(value, (list, tuple)) else (value,))
                if find_torch_function_override((v,)) is not None
            )
        )
        if isinstance(inspect.getattr_static(type(self), "__torch_function__"), classmethod):
            raise RuntimeError(
                "Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a plain "
                "method"
            )
        result = self.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
        with show_only_within([*stack.items, self]):  # the classes of the arguments are asked with all modes active
            return call_torch_function(function, (*args, *kwargs.values()), args, kwargs, self)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Returns an object of the class, to be entered.

        Args:
            *args: Positional arguments of the class.
            **kwargs: Keyword arguments of the class.
        """
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that leaves every op as it is.

    Example:
        >>> with torch.overrides.BaseTorchFunctionMode():
        ...     torch.ones(2) + 1
        tensor([2., 2.])
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The modes of this thread, the innermost last."""
    return [item for item in stack.items if isinstance(item, TorchFunctionMode)]


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode of this thread."""
    return next(reversed(_get_current_function_mode_stack()), None)


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """Without the innermost mode, for a block."""
    mode = _get_current_function_mode_stack()[-1]
    with show_only_within([item for item in stack.items if item is not mode]):
        yield mode


def is_tensor_like(value: Any) -> bool:
    """Returns whether a value is a tensor or has `__torch_function__`.

    Args:
        value: Any object.

    Example:
        >>> torch.overrides.is_tensor_like(torch.ones(2)), torch.overrides.is_tensor_like(2)
        (True, False)
    """
    return hasattr(type(value), "__torch_function__")


def has_torch_function(relevant_args: Any) -> bool:
    """Returns whether one of the values overrides `__torch_function__`, or a mode sees all calls.

    Args:
        relevant_args: The values.

    Example:
        >>> import torchlite as torch
        >>> torch.overrides.has_torch_function((torch.ones(1), 2))
        False
    """
    return find_torch_function_override(tuple(relevant_args)) is not None or bool(_get_current_function_mode_stack())


def has_torch_function_unary(value: Any) -> bool:
    """`has_torch_function` of one value."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values: Any) -> bool:
    """`has_torch_function` of the arguments."""
    return has_torch_function(values)


def handle_torch_function(public_api: Callable, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Passes a function's call to the innermost mode, else to the arguments that override `__torch_function__`.

    Args:
        public_api: The function.
        relevant_args: The arguments that may override it.
        *args: Positional arguments of the call.
        **kwargs: Keyword arguments of the call.

    Returns:
        The result of `__torch_function__`.

    Raises:
        TypeError: All overrides return NotImplemented.

    Example:
        >>> class Logged(torch.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return f"{func.__name__} is called"
        >>> def double(x):
        ...     if torch.overrides.has_torch_function((x,)):
        ...         return torch.overrides.handle_torch_function(double, (x,), x)
        ...     return 2 * x
        >>> double(torch.ones(1).as_subclass(Logged))
        'double is called'
    """
    relevant = tuple(relevant_args)
    types = tuple(dict.fromkeys(type(v) for v in relevant if find_torch_function_override((v,)) is not None))
    if _get_current_function_mode_stack():
        with _pop_mode_temporarily() as mode:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
        return call_torch_function(public_api, relevant, args, kwargs, mode)
    return call_torch_function(public_api, relevant, args, kwargs)


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Returns a decorator that gives a function the `__torch_function__` protocol.

    Args:
        dispatcher: Function of the call's arguments that returns those that may override it.

    Example:
        >>> import torchlite as torch
        >>> @torch.overrides.wrap_torch_function(lambda x: (x,))
        ... def double(x):
        ...     return x + x
        >>> double(torch.ones(1))
        tensor([2.])
    """

    def wrap(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return wrap


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Context manager in which modes see the ops that `__torch_dispatch__` calls.

    Example:
        >>> with torch.overrides.enable_reentrant_dispatch():
        ...     torch.ones(2) + 1
        tensor([2., 2.])
    """
    yield


def redispatch_function(func: Callable, types: Any, args: Any, kwargs: Any) -> Any:
    """Calls a function without `__torch_function__`.

    Args:
        func: The function.
        types: No effect: no override is looked for.
        args: Tuple of positional arguments.
        kwargs: Dict of keyword arguments, or ``None``.

    Example:
        >>> torch.overrides.redispatch_function(torch.add, (), (torch.ones(1), 1), None)
        tensor([2.])
    """
    with torch_function_disabled():
        return func(*args, **(kwargs or {}))


# -- which functions there are ------------------------------------------------------------

_OVERRIDABLE_OF_OBJECT = (
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__", "__format__", "__reduce_ex__", "__dir__",
)  # fmt: skip
_QUERIES = (
    "get_device", "is_complex", "is_conj", "is_floating_point", "is_inference", "is_neg", "is_nonzero", "is_same_size",
    "is_signed", "numel",
)  # fmt: skip
_SPACES = ("torch", "nn.functional", "linalg", "fft", "special")


def _module_of(space: str) -> Any:
    import torchlite as torch

    found: Any = torch
    for part in space.split(".") if space != "torch" else ():
        found = getattr(found, part)
    return found


@functools.cache
def _collect_overridable() -> tuple[dict[Any, list], dict[Any, str]]:
    functions: dict[Any, list] = {}
    names: dict[Any, str] = {}

    def add(owner: Any, function: Any, name: str) -> None:
        functions.setdefault(owner, []).append(function)
        own = getattr(function, "__name__", "")
        if own == name.rpartition(".")[2] and names.get(function, "").rpartition(".")[2] != own:  # and not an alias
            names[function] = name
        else:
            names.setdefault(function, name)

    ignored = get_ignored_functions()
    for name in _QUERIES:
        add(_module_of("torch"), getattr(_module_of("torch"), name), f"torch.{name}")
    for space in _SPACES:
        module = _module_of(space)
        prefix = "torch" if space == "torch" else f"torch.{space}"
        hand_written = dir(module) if space == "nn.functional" else ()
        for name in sorted({*NAMESPACES.get(space, {}), *hand_written}):
            function = getattr(module, name, None)
            if name[0] == "_" or not callable(function):
                continue
            if function in ignored:
                names.setdefault(function, f"{prefix}.{name}")
            else:
                add(module, function, f"{prefix}.{name}")
    for function in ignored:
        home = "torch.Tensor" if getattr(Tensor, function.__name__, None) is function else "torch"
        names.setdefault(function, f"{home}.{function.__name__}")
    for name in dir(Tensor):
        value = inspect.getattr_static(Tensor, name)
        if name.startswith("__") and name in vars(object) and name not in _OVERRIDABLE_OF_OBJECT:
            continue
        if isinstance(value, property) or name == "dtype":
            add(value, value.__get__, f"torch.Tensor.{name}.__get__")
            if not isinstance(value, property) or value.fset is not None:
                names.setdefault(value.__set__, f"torch.Tensor.{name}.__set__")
        elif callable(found := getattr(Tensor, name)) and inspect.isroutine(found) and found not in ignored:
            if name[0] != "_" or name.startswith("__"):
                add(Tensor, found, f"torch.Tensor.{name}")
    return functions, names


def get_ignored_functions() -> set[Callable]:
    """Returns the functions of torch that `__torch_function__` never sees.

    They make tensors of other data, or are settings.

    Example:
        >>> torch.from_numpy in torch.overrides.get_ignored_functions()
        True
    """
    import torchlite as torch

    names = (
        "typename is_tensor is_storage set_default_tensor_type set_default_device get_default_device set_default_dtype "
        "get_default_dtype set_printoptions set_rng_state get_rng_state manual_seed initial_seed seed save load "
        "use_deterministic_algorithms set_flush_denormal arange as_tensor bartlett_window blackman_window can_cast "
        "cudnn_is_acceptable empty empty_strided eye from_file from_numpy frombuffer asarray full hamming_window "
        "hann_window kaiser_window linspace logspace ones promote_types rand randn randint randperm range "
        "result_type scalar_tensor tensor tril_indices triu_indices vander zeros complex polar "
        "is_grad_enabled set_grad_enabled no_grad enable_grad set_num_threads get_num_threads"
    ).split()
    functions = {getattr(torch, name) for name in names if hasattr(torch, name)}
    functions |= {
        getattr(Tensor, name)
        for name in (
            "__new__", "__init__", "__init_subclass__", "__class__", "__dir__", "__subclasshook__", "as_subclass",
            "__torch_function__", "__torch_dispatch__", "_make_subclass", "_make_wrapper_subclass",
        )
    }  # fmt: skip
    return functions


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """Returns the functions that `__torch_function__` sees, by the module or class that has them.

    Getters of attributes stand under their property.

    Example:
        >>> import torchlite as torch
        >>> torch.add in torch.overrides.get_overridable_functions()[torch]
        True
    """
    return {owner: list(functions) for owner, functions in _collect_overridable()[0].items()}


def get_testing_overrides() -> dict[Callable, Callable]:
    """Returns a dict from each overridable function to one with the same parameters that returns -1.

    Example:
        >>> import torchlite as torch
        >>> torch.overrides.get_testing_overrides()[torch.add](1, 2)
        -1
    """
    return {f: _make_dummy_override(f) for functions in _collect_overridable()[0].values() for f in functions}


def _make_dummy_override(function: Any) -> Callable:
    def override(*args: Any, **kwargs: Any) -> int:
        return -1

    with contextlib.suppress(ValueError, TypeError):
        override.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return override


def is_tensor_method_or_property(func: Callable) -> bool:
    """Returns whether a function is a method of Tensor or the getter of one of its attributes.

    Args:
        func: The function.

    Example:
        >>> import torchlite as torch
        >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.exp_)
        True
    """
    functions, _ = _collect_overridable()
    shared = _module_of("torch")
    return (
        func in functions.get(Tensor, ())
        and getattr(shared, getattr(func, "__name__", ""), None) is not func
        or (getattr(func, "__name__", "") == "__get__")
    )


def resolve_name(f: Any) -> str | None:
    """Returns the name under which a function or method of torch is public, or None.

    Args:
        f: The function or method.

    Example:
        >>> torch.overrides.resolve_name(torch.Tensor.exp_)
        'torch.Tensor.exp_'
    """
    if hasattr(f, "overloadpacket") or hasattr(f, "_qualified_op_name"):
        return str(f)
    try:
        return _collect_overridable()[1].get(f)
    except TypeError:  # what cannot be a key is no function
        return None


class DisableTorchFunction(torch_function_disabled):
    """Context manager that switches off `__torch_function__` of subclasses and modes in the calling thread.

    Example:
        >>> with torch.overrides.BaseTorchFunctionMode(), torch.DisableTorchFunction():
        ...     torch.ones(2) + 1
        tensor([2., 2.])
    """

    def __enter__(self) -> None:
        super().__enter__()
        self._view = show_only([item for item in stack.items if not isinstance(item, TorchFunctionMode)])

    def __exit__(self, *error: Any) -> None:
        put_back(self._view)
        super().__exit__(*error)


__dir__ = make_module_dir(globals())
