"""Function modifiers of TorchScript (`export`, `ignore`, `unused`, overloads), annotation checks, Attribute and
TracerWarning.
"""

from __future__ import annotations

import contextlib
import functools
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Union, get_args, get_origin

from .._settings.jit_state import STATE
from ..futures import Future


def warn_of_optimize(optimize: Any) -> None:
    """Warn the caller's caller if it passes `optimize`."""
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead",
            FutureWarning,
            stacklevel=3,
        )


class TracerWarning(Warning):
    """Warns that a trace may be valid only for its example inputs.

    Example:
        >>> issubclass(torch.jit.TracerWarning, Warning)
        True
    """


class Attribute(NamedTuple):
    """Value of a module's attribute together with its TorchScript type.

    Args:
        value: The value.
        type: The type, as an annotation.

    Example:
        >>> class Counting(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.counts = torch.jit.Attribute({}, dict[str, int])
        >>> Counting().counts.type
        dict[str, int]
    """

    value: Any
    type: Any


class FunctionModifiers:
    """Values of a function's `_torchscript_modifier`."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from a exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def _mark(fn: Any, modifier: str) -> Any:
    target: Any = fn.fget if isinstance(fn, property) else fn
    target._torchscript_modifier = modifier
    return fn


def is_scripting() -> bool:
    """Returns whether the calling function runs as part of a scripted one.

    Example:
        >>> torch.jit.is_scripting()
        False
    """
    return STATE.scripting > 0


def export(fn: Any) -> Any:
    """Marks a method that `torch.jit.script` compiles although `forward` does not call it.

    Args:
        fn: A method.

    Returns:
        The method.

    Example:
        >>> class Scaled(torch.nn.Module):
        ...     def forward(self, x: torch.Tensor):
        ...         return 2 * x
        ...     @torch.jit.export
        ...     def undo(self, x: torch.Tensor):
        ...         return x / 2
        >>> torch.jit.script(Scaled()).undo(torch.ones(2))
        tensor([0.5000, 0.5000])
    """
    return _mark(fn, FunctionModifiers.EXPORT)


def unused(fn: Any) -> Any:
    """Marks a function or property that TorchScript replaces by an exception.

    Args:
        fn: A function or property.

    Returns:
        The same object.

    Example:
        >>> class Checked(torch.nn.Module):
        ...     def forward(self, x: torch.Tensor, strict: bool = False):
        ...         return self.check(x) if strict else x
        ...     @torch.jit.unused
        ...     def check(self, x: torch.Tensor) -> torch.Tensor:
        ...         raise ValueError
        >>> torch.jit.script(Checked())(torch.ones(2))
        tensor([1., 1.])
    """
    return _mark(fn, FunctionModifiers.UNUSED)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a function that TorchScript leaves to Python.

    A program with such a call runs, and cannot be saved.

    Args:
        drop: The function; or a bool, which returns a decorator. ``True`` is a deprecated form of `unused`. Default:
            ``False``.
        **kwargs: ``drop_on_export=True``, a deprecated form of `unused`.

    Returns:
        The function, or a decorator.

    Raises:
        RuntimeError: ``drop`` is another object.

    Example:
        >>> @torch.jit.ignore
        ... def rounded(x: torch.Tensor) -> float:
        ...     return round(float(x), 2)
        >>> @torch.jit.script
        ... def scaled(x: torch.Tensor):
        ...     return rounded(x) * 2
        >>> scaled(torch.tensor(1.25))
        2.5
    """
    if callable(drop):
        return _mark(drop, FunctionModifiers.IGNORE)
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    drop_on_export = kwargs.pop("drop_on_export", None)
    if drop_on_export:
        warnings.warn(
            "ignore(drop_on_export=True) has been deprecated. TorchScript will now drop the function call on "
            "compilation. Use torch.jit.unused now. {}",
            category=FutureWarning,
            stacklevel=2,
        )
        drop = drop_on_export
    elif drop:
        warnings.warn(
            "ignore(True) has been deprecated. TorchScript will now drop the function call on compilation. Use "
            "torch.jit.unused now. {}",
            category=FutureWarning,
            stacklevel=2,
        )
    return functools.partial(_mark, modifier=FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE)


def _drop(fn: Any) -> Any:
    return _mark(fn, FunctionModifiers._DROP)


def _copy_to_script_wrapper(fn: Any) -> Any:
    return _mark(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def get_torchscript_modifier(fn: Any) -> str | None:
    """Return a function's modifier, None for a non-function."""
    if not callable(fn):
        return None
    fn = getattr(fn, "__func__", fn)
    return getattr(fn, "_torchscript_modifier", FunctionModifiers.DEFAULT)


def is_ignored_fn(fn: Any) -> bool:
    """True if TorchScript omits the function."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers.IGNORE, FunctionModifiers._DROP)


def should_drop(fn: Any) -> bool:
    """True if TorchScript replaces the function by an exception."""
    return get_torchscript_modifier(fn) == FunctionModifiers.UNUSED


@contextlib.contextmanager
def _disable_emit_hooks() -> Iterator[None]:
    """Disable emit hooks within the context; there are none."""
    yield


def copy_torchscript_modifier(orig: Any, new: Any) -> None:
    """Copy the modifier of `orig` to `new`."""
    modifier = get_torchscript_modifier(orig)
    if modifier is not None:
        new._torchscript_modifier = modifier


# Declarations by the name of the function that follows them in its module.
_OVERLOADS: dict[tuple[str, str], list[Any]] = {}


def _overload(func: Any) -> Any:
    """Declare an overload of the following function. Python calls that function."""
    _OVERLOADS.setdefault((func.__module__, func.__qualname__), []).append(func)
    return func


_overload_method = _overload


def overloads_of(function: Any) -> list[Any]:
    """Return the overloads that are declared of a function, in their order."""
    place = str(getattr(function, "__module__", "")), str(getattr(function, "__qualname__", ""))
    return [declared for declared in _OVERLOADS.get(place, ()) if declared is not function]


def overload_hints(function: Any) -> dict[str, Any]:
    """Return the annotations of a function's overloads: a Union for a name of which they declare several types."""
    found: dict[str, list[Any]] = {}
    for one in overloads_of(function):
        for name, hint in typing.get_type_hints(one).items():
            found.setdefault(name, []).append(hint)
    return {name: Union[tuple(hints)] for name, hints in found.items()}


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str, func_name: str
) -> Callable[..., Any]:
    """Return a function that calls one of two, depending on one argument."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        chosen = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    fn.__doc__ = if_false.__doc__ or if_true.__doc__
    fn.__module__ = module_name or fn.__module__
    fn.__name__ = func_name or fn.__name__
    return fn


class BroadcastingListCls:
    """Annotation `BroadcastingList2[int]`: one number is broadcast to two."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2 = BroadcastingListCls()
BroadcastingList3 = BroadcastingListCls()
BroadcastingList4 = BroadcastingListCls()
BroadcastingList5 = BroadcastingListCls()
BroadcastingList6 = BroadcastingListCls()


def is_tuple(ann: Any) -> bool:
    return ann is tuple or get_origin(ann) is tuple


def is_list(ann: Any) -> bool:
    return ann is list or get_origin(ann) is list


def is_dict(ann: Any) -> bool:
    return ann is dict or get_origin(ann) is dict


def is_union(ann: Any) -> bool:
    return ann is Union or get_origin(ann) in (Union, types.UnionType)


def is_optional(ann: Any) -> bool:
    return ann is typing.Optional or (is_union(ann) and len(get_args(ann)) == 2 and type(None) in get_args(ann))


def is_future(ann: Any) -> bool:
    return ann is Future or get_origin(ann) is Future


def is_final(ann: Any) -> bool:
    return ann is Final or get_origin(ann) is Final


def _isinstance(obj: Any, target_type: Any) -> bool:
    """Python's `isinstance` with support for `List[int]`, `Dict[str, Tensor]`, `Tuple[int, int]`, `Optional` and tuples
    of types.
    """
    if isinstance(target_type, (tuple, list)):
        return any(_isinstance(obj, one) for one in target_type)
    if is_union(target_type):
        return any(_isinstance(obj, one) for one in get_args(target_type))
    origin, inner = get_origin(target_type), get_args(target_type)
    if target_type in (list, dict, tuple, typing.List, typing.Dict, typing.Tuple, typing.Optional) and not inner:  # noqa: UP006
        raise RuntimeError(
            f"Attempted to use {getattr(target_type, '__name__', target_type).capitalize()} without a contained type. "
            f"Please add a contained type, e.g. {getattr(target_type, '__name__', target_type).capitalize()}[int]"
        )
    if origin is None:
        return isinstance(obj, type(None) if target_type is None else target_type)
    if not isinstance(obj, origin):
        return False
    if origin is list:
        return all(_isinstance(item, inner[0]) for item in obj)
    if origin is dict:
        return all(_isinstance(key, inner[0]) and _isinstance(value, inner[1]) for key, value in obj.items())
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            return all(_isinstance(item, inner[0]) for item in obj)
        return len(obj) == len(inner) and all(_isinstance(*pair) for pair in zip(obj, inner, strict=True))
    return True


def _qualified_name(obj: Any, mangle_name: bool = True) -> str:
    """Return TorchScript's name of a class or function."""
    name = obj.__name__
    if name == "<lambda>":
        name = "_lambda"
    module = obj.__module__
    if module is None:
        raise RuntimeError(f"Could not get qualified name for class '{name}': __module__ can't be None.")
    if "." in name:
        raise RuntimeError(f"Could not get qualified name for class '{name}': '{name}' is not a valid identifier")
    module = "__torch__" if module == "__main__" else f"__torch__.{module}"
    return f"{module}.{name}" if mangle_name else f"{module.removeprefix('__torch__.')}.{name}"


def is_library_class(module: str | None, part: str = "") -> bool:
    """True if a module name belongs to torchlite, or to a part of it; with `as_torch` the names begin with torch."""
    root, _, rest = (module or "").partition(".")
    return root in ("torchlite", "torch") and (not part or f"{rest}.".startswith(f"{part}."))
