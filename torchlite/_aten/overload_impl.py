"""Finds the implementation of an ATen overload: an adapter, or torchlite's function of that name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torchlite as torch

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.op_functions import function_for
from .._dispatch.op_record import NAMESPACES, REGISTRY, Op
from .._library.function_schema import FunctionSchema
from .overload_adapters import ADAPTERS
from .recorded_schemas import schema_entries

# Prefixes of op names, and the module that has their functions.
_MODULES = {"linalg_": "linalg", "fft_": "fft", "special_": "special"}
# Names in `torch` unrelated to the ATen op of that name.
_UNRELATED_NAMES = frozenset(
    ("abs_", "complex32", "device", "dtype", "layout", "set", "float", "int", "bool", "str", "double")
)
REDUCTIONS = ("none", "mean", "sum")


def is_computable(name: str) -> bool:
    """True if torchlite implements the ops of a name in any way that `find_implementation` knows."""
    if (
        name in ADAPTERS
        or any(key.partition(".")[0] == name for key in ADAPTERS)
        or _torchlite_function(name) is not None
    ):
        return True
    if name.endswith("_") and not name.endswith("__") and is_computable(name[:-1]):
        return True
    return any(name.endswith(ending) and is_computable(name.removesuffix(ending)) for ending in ("_copy", "_backward"))


def _torchlite_function(name: str) -> Any:
    """Return torchlite's function of a name, None if it has none; for `nn.functional` return the record."""
    for prefix, module in _MODULES.items():
        if name.startswith(prefix):
            found = getattr(getattr(torch, module), name.removeprefix(prefix), None)
            if found is not None:
                return found
    if name in _UNRELATED_NAMES:
        return None
    record = NAMESPACES["torch"].get(name)
    if record is not None:
        return function_for(record)
    found = getattr(torch.Tensor, name, None)
    if isinstance(found, property) or type(found).__name__ == "getset_descriptor":
        return lambda self: getattr(self, name)
    if found is not None and not name.startswith("__") and name not in dir(object):
        return found
    if found is not None and name in schema_entries(name):
        return found
    found = getattr(torch, name, None)
    if found is not None and callable(found) and not isinstance(found, type):
        return found
    return NAMESPACES["nn.functional"].get(name)


def find_implementation(overload: Any) -> tuple[Callable, bool]:
    """Return an overload's implementation, and whether it requires positional arguments by position. Raise
    NotImplementedError if there is none.
    """
    name, which = overload._opname, overload._overloadname
    schema = overload._schema
    adapter = ADAPTERS.get(f"{name}.{which}")
    if adapter is not None:
        return adapter, True
    if any(argument.is_write and argument.kwarg_only for argument in schema.arguments):
        return _make_out_variant(overload, schema), True
    adapter = ADAPTERS.get(name)
    if adapter is not None:
        return adapter, True
    found = _torchlite_function(name)
    if isinstance(found, Op):
        mapped = _call_by_schema_names(found, schema)
        if mapped is not None:
            return mapped, True
        found = None
    if found is not None:
        return _convert_results(found, schema), True
    if name.endswith("_") and not name.endswith("__"):
        return _make_in_place_variant(overload), True
    if name.endswith("_copy"):
        return _make_view_copy(overload), True
    if name.endswith("_backward"):
        from .backward_ops import backward_via_autograd

        implementation = backward_via_autograd(overload)
        if implementation is not None:
            return implementation, True
    raise NotImplementedError(f"torchlite has no {overload.name()}")


def _convert_results(function: Callable, schema: FunctionSchema) -> Callable:
    """Return the function with results as the schema has them: several as a tuple, a tensor list as a list."""
    kind: Any = tuple if len(schema.returns) > 1 else None
    if len(schema.returns) == 1 and "[]" in schema.returns[0].type.suffixes:
        kind = list
    record = getattr(function, "op", None)
    taken = {p.name for p in record.params} if record is not None else {"layout", "pin_memory"}
    surplus = [a.name for a in schema.arguments if a.name in ("layout", "pin_memory") and a.name not in taken]
    if kind is None and not surplus and schema.returns:
        return function

    @functools.wraps(function)
    def run_and_convert(*args: Any, **kwargs: Any) -> Any:
        for name in surplus:
            kwargs.pop(name, None)
        result = function(*args, **kwargs)
        if not schema.returns:
            return None
        return kind(result) if kind is not None and isinstance(result, (tuple, list)) else result

    return run_and_convert


def _call_by_schema_names(record: Op, schema: FunctionSchema) -> Callable | None:
    """Return the record's function called by the schema's argument names, None if it lacks one."""
    places: list[tuple[str, bool]] = []
    taken = {p.name for p in record.params}
    for position, argument in enumerate(schema.arguments):
        name = "input" if position == 0 and argument.name == "self" and "self" not in taken else argument.name
        if name not in taken:
            return None
        places.append((name, argument.name == "reduction" and argument.type.base == "int"))
    function = function_for(record)

    def call_with_schema_names(*args: Any, **kwargs: Any) -> Any:
        given = {place[0]: value for place, value in zip(places, args, strict=False)} | kwargs
        for name, is_reduction in places:
            if is_reduction:
                given[name] = REDUCTIONS[given.get(name, 1)]
        return function(**given)

    if [name for name, _ in places] == [p.name for p in record.params][: len(places)] and not any(
        is_reduction for _, is_reduction in places
    ):
        return _convert_results(function, schema)
    call_with_schema_names.op = record  # type: ignore[attr-defined]
    return _convert_results(call_with_schema_names, schema)


def _signature_key(schema: FunctionSchema) -> list[tuple]:
    """Return the key that distinguishes overloads: argument names and types without `out` arguments."""
    return [(a.name, a.type.text) for a in schema.arguments if not (a.is_write and a.kwarg_only)]


def base_overload(overload: Any, packet: Any) -> Any:
    """Return the functional overload that an in-place or out variant corresponds to. Raise NotImplementedError if there
    is none.
    """
    wanted = _signature_key(overload._schema)
    for name in packet.overloads():
        other = getattr(packet, name)
        if other is not overload and _signature_key(other._schema) == wanted and not other.entry.is_script:
            return other
    raise NotImplementedError(f"torchlite has no {overload.name()}")


def write_to_out(out: Any, value: Any) -> Any:
    """Write a result to an `out` argument and resize it. Raise RuntimeError if the dtype cannot be cast."""
    if not torch.can_cast(value.dtype, out.dtype):
        names = [str(d).rpartition(".")[2].capitalize() for d in (value.dtype, out.dtype)]
        raise RuntimeError(f"result type {names[0]} can't be cast to the desired output type {names[1]}")
    if out.shape != value.shape:
        out.resize_(value.shape)
    out.copy_(value)
    return out


def _make_out_variant(overload: Any, schema: FunctionSchema) -> Callable:
    """Return the out variant of an op: compute, then write to `out`."""
    base = base_overload(overload, overload.overloadpacket)
    names = [a.name for a in schema.arguments if a.is_write and a.kwarg_only]

    def run_and_write_out(*args: Any, **kwargs: Any) -> Any:
        outs = [kwargs.pop(name, None) for name in names]
        if any(out is None for out in outs):
            raise TypeError(f"{schema.name}() is missing value for argument '{names[outs.index(None)]}'")
        result = base(*args, **kwargs)
        if len(outs) == 1 and not isinstance(outs[0], (list, tuple)):
            return write_to_out(outs[0], result)
        flat = outs[0] if len(outs) == 1 else outs
        written = [write_to_out(out, value) for out, value in zip(flat, result, strict=True)]
        return None if not schema.returns else tuple(written)

    return run_and_write_out


def _make_in_place_variant(overload: Any) -> Callable:
    """Return the in-place variant of an op: compute, then write to the first argument."""
    packet = getattr(CALLBACKS.overloads("ops").aten, overload._opname[:-1])
    base = base_overload(overload, packet)

    def run_and_write_self(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = base(self, *args, **kwargs)
        if isinstance(self, (list, tuple)):
            for own, value in zip(self, result, strict=True):
                own.copy_(value)
            return None
        return self.copy_(result)

    return run_and_write_self


def _make_view_copy(overload: Any) -> Callable:
    """Return the copying variant of a view op."""
    base = base_overload(overload, getattr(CALLBACKS.overloads("ops").aten, overload._opname.removesuffix("_copy")))

    def run_and_clone(*args: Any, **kwargs: Any) -> Any:
        result = base(*args, **kwargs)
        if isinstance(result, (list, tuple)):
            return [part.clone(memory_format=torch.contiguous_format) for part in result]
        return result.clone(memory_format=torch.contiguous_format)

    return run_and_clone


def record_for_library_name(name: str) -> Op | None:
    """Return the record of an ATen op name."""
    return NAMESPACES["torch"].get(name) or NAMESPACES["nn.functional"].get(name) or REGISTRY.get(name)
