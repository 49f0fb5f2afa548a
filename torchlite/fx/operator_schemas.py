"""Normalizes call arguments by function signatures and op schemas."""

from __future__ import annotations

import inspect
import numbers
import typing
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torchlite as torch

from .._library.op_overload import OpOverload, OpOverloadPacket
from .._tensor import Tensor
from .._types.dtypes import dtype
from ._compatibility import compatibility
from ._naming import public_name

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint", "get_signature_for_torch_op",
    "normalize_function", "normalize_module", "type_matches",
]  # fmt: skip

_NON_VARIADIC_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# Python types of schema types.
_TYPES: dict[str, Any] = {
    "Tensor": Tensor, "int": int, "SymInt": int, "float": float, "bool": bool, "str": str, "Scalar": numbers.Number,
    "ScalarType": int, "MemoryFormat": int, "Layout": int, "Device": torch.device, "complex": complex,
}  # fmt: skip


@compatibility(is_backward_compatible=False)
class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _python_type(text: str) -> Any:
    """Return the Python type of a schema type: `Tensor[]` is `List[Tensor]`, `int?` is `Optional[int]`."""
    if text.endswith("?"):
        return typing.Optional[_python_type(text[:-1])]  # noqa: UP045
    if text.endswith("]"):
        return typing.List[_python_type(text[: text.rindex("[")])]  # noqa: UP006
    return _TYPES.get(text.partition("(")[0], Any)


def _signature_of_schema(schema: Any) -> inspect.Signature:
    """Return a schema as a signature, with `self` renamed to `input`."""
    parameters = []
    for arg in schema.arguments:
        kind = inspect.Parameter.KEYWORD_ONLY if arg.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = arg.default_value if arg.has_default_value() else inspect.Parameter.empty
        name = {"self": "input", "from": "from_"}.get(arg.name, arg.name)
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=_python_type(str(arg.type))))
    returned = [_python_type(str(value.type)) for value in schema.returns]
    return inspect.Signature(
        parameters, return_annotation=returned[0] if len(returned) == 1 else tuple(returned) or None
    )


def _schemas_of(op: Any) -> list[Any]:
    """Return the schemas of an op of `torch.ops`, or of the `torch` function of that name."""
    if isinstance(op, OpOverload):
        return [op._schema]
    if not isinstance(op, OpOverloadPacket):
        name = public_name(op)
        if name is None or name.startswith("torch.Tensor.") or not hasattr(op, "__name__"):
            return []
        op = getattr(torch.ops.aten, op.__name__, None)
        if not isinstance(op, OpOverloadPacket):
            return []
    found = []
    for overload in op.overloads():
        try:
            found.append(getattr(op, overload)._schema)
        except (AttributeError, RuntimeError, NotImplementedError):  # no schema
            continue
    return found


@compatibility(is_backward_compatible=False)
def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """Return the signatures of an op's overloads, None if unknown; with ``return_schemas``, a pair of signatures and
    schemas.
    """
    schemas = [schema for schema in _schemas_of(op) if schema is not None]
    if not schemas:
        return (None, None) if return_schemas else None
    signatures = [_signature_of_schema(schema) for schema in schemas]
    return (signatures, schemas) if return_schemas else signatures


@compatibility(is_backward_compatible=False)
def check_for_mutable_operation(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise RuntimeError for an in-place function or a call with `out=`."""
    name = getattr(target, "__name__", "")
    writes = name.endswith("_") and not name.endswith("__") and public_name(target) is not None
    if isinstance(target, OpOverload):
        writes = bool(target._schema.is_mutable)
    if writes or kwargs.get("out") is not None:
        said = target._schema if isinstance(target, OpOverload) else f"{public_name(target) or name}{args}"
        raise RuntimeError(
            f"Tried to trace mutable operation {said}. FX only supports functional code, so operations that mutate "
            "operands in-place (e.g. via `out` arguments) are not supported"
        )


@compatibility(is_backward_compatible=False)
def create_type_hint(x: Any) -> Any:
    """Return the common type of a list or tuple of types, or the argument if there is none.

    >>> from torchlite.fx.operator_schemas import create_type_hint
    >>> create_type_hint([int, bool]), create_type_hint((int, str))
    (list[int], tuple[typing.Any, ...])
    """
    if not isinstance(x, (list, tuple)):
        return x
    try:
        widest = next((t for t in x if all(issubclass(other, t) for other in x)), Any)
    except TypeError:
        warnings.warn(f"We were not able to successfully create type hint from the type {x}", stacklevel=2)
        return x
    return list[widest] if isinstance(x, list) else tuple[widest, ...]  # type: ignore[valid-type]


@compatibility(is_backward_compatible=False)
def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """True if a value of one type is accepted for an annotation of another."""
    if signature_type is argument_type or signature_type is Any:
        return True
    origin = typing.get_origin(signature_type)
    if origin is typing.Union:
        return any(type_matches(part, argument_type) for part in typing.get_args(signature_type))
    if origin is list:
        (item,) = typing.get_args(signature_type)
        if argument_type is int and item is int:  # `int[2]` accepts a single number
            return True
        if not inspect.isclass(item):
            return False
        given = typing.get_args(argument_type)
        if typing.get_origin(argument_type) not in (list, tuple):
            return False
        return all(part in (..., ()) or inspect.isclass(part) and issubclass(part, item) for part in given)
    if signature_type is int and argument_type is dtype:
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    return (
        inspect.isclass(argument_type) and inspect.isclass(signature_type) and issubclass(argument_type, signature_type)
    )


@compatibility(is_backward_compatible=False)
def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return a function call's arguments normalized by its signature, with defaults; None if unknown.

    Among several overloads, the arguments or else their types decide.

    >>> import torchlite as torch
    >>> from torchlite.fx.operator_schemas import normalize_function
    >>> def scaled(x, by=2, *, shift=0): ...
    >>> normalize_function(scaled, (1,), {"shift": 3}, normalize_to_only_use_kwargs=True).kwargs
    {'x': 1, 'by': 2, 'shift': 3}
    """
    kwargs = kwargs or {}
    if not isinstance(target, (OpOverload, OpOverloadPacket)):
        try:
            signature = inspect.signature(inspect.unwrap(target))
        except (TypeError, ValueError):
            return None
        return _normalize_call(signature, args, kwargs, normalize_to_only_use_kwargs)
    fitting = [found for found in get_signature_for_torch_op(target) or () if _fits_signature(found, args, kwargs)]
    if len(fitting) > 1:
        if arg_types is None and kwarg_types is None:
            raise RuntimeError(
                f"Tried to normalize arguments to {torch.typename(target)} but the schema match was ambiguous! Please "
                "provide argument types to the normalize_arguments() call. Available schemas:\n"
                + "\n".join(map(str, fitting))
            )
        fitting = [found for found in fitting if _has_types(found, arg_types or (), kwarg_types or {})]
    return _normalize_call(fitting[0], args, kwargs, normalize_to_only_use_kwargs) if fitting else None


def _fits_signature(signature: inspect.Signature, args: Any, kwargs: Any) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _has_types(signature: inspect.Signature, arg_types: Any, kwarg_types: Any) -> bool:
    try:
        bound = signature.bind(*arg_types, **kwarg_types).arguments
    except TypeError:
        return False
    return all(type_matches(signature.parameters[name].annotation, given) for name, given in bound.items())


@compatibility(is_backward_compatible=False)
def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return a module call's arguments normalized like `normalize_function`, for modules of torch.nn by dotted name in
    `root`; None for others.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    if getattr(torch.nn, type(module).__name__, None) is not type(module):
        return None
    return _normalize_call(
        inspect.signature(inspect.unwrap(module.forward)), args, kwargs or {}, normalize_to_only_use_kwargs
    )


def _normalize_call(signature: inspect.Signature, args: Any, kwargs: Any, only_kwargs: bool) -> ArgsKwargsPair | None:
    parameters = signature.parameters.values()
    if any(p.kind not in _NON_VARIADIC_KINDS for p in parameters):
        # A record's `input` may be passed as `self`, which is positional-only.
        if list(signature.parameters) != ["input", "from", "to", "generator"]:
            return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    by_place: list[Any] = []
    by_name: dict[str, Any] = {}
    for place, parameter in enumerate(parameters):
        value = bound.arguments[parameter.name]
        if not only_kwargs and place < len(args):
            by_place.append(value)
        else:
            by_name[parameter.name] = value
    return ArgsKwargsPair(tuple(by_place), by_name)
