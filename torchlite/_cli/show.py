"""`python -m torchlite show op NAME`: an op's record, its generated functions, and its kernels on devices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection
from typing import Any

from .._dispatch import (
    ALWAYS_BOOL,
    DEFAULT,
    INPLACE,
    INT_TO_FLOAT,
    KEEPS_DTYPE,
    MAYBE_VIEW,
    NAMESPACES,
    NONDIFF,
    POINTWISE,
    RANDOM,
    REGISTRY,
    VIEW,
    Op,
    function_for,
)
from .command_line import Parser, UsageError, print_json, program_name, suggest
from .device_argument import check_device
from .info import why_not_usable

WIDTH = 100
_DESCRIPTION = """\
Prints an op's record, the functions generated from it, and what each device has for it.
"""
_EPILOG = """\
examples:
  torchlite show op add
  torchlite show op add_
  torchlite show op nn.functional.linear --device opencl --json
"""
_TAGS = {
    POINTWISE: "pointwise",
    VIEW: "a view",
    MAYBE_VIEW: "a view where memory allows",
    RANDOM: "random",
    INPLACE: "has an in-place method",
    NONDIFF: "without derivative",
    KEEPS_DTYPE: "keeps the dtype",
}
_AS_ITS_PARTS = "that of the ops in which it is written"
_PROMOTIONS = {
    None: "none: the kernel gets the dtypes as they are",
    DEFAULT: "to the common dtype",
    INT_TO_FLOAT: "to the common dtype, integers to the default floating-point dtype",
    ALWAYS_BOOL: "to the common dtype; the result is bool",
}


# -- the command -------------------------------------------------------------------


def run_op(words: list[str]) -> int:
    """Run `show op` with the command's words, of which one is `op`; return the exit status."""
    parser = Parser(prog=f"{program_name()} show op", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("name", help="add, add_, Tensor.add, nn.functional.linear, linalg.inv ...")
    parser.add_argument("--device", action="append", default=[], help="also this device (may be given several times)")
    parser.add_argument("--json", action="store_true", help="print JSON; docs/commands.md lists the keys")
    words = list(words)
    words.remove("op")
    options = parser.parse_args(words)
    devices = ["cpu", "meta", *options.device]
    try:
        found = describe_op(options.name, devices)
    except LookupError as error:
        raise UsageError(error.args[0])
    if options.json:
        print_json(found)
    else:
        print(_format_op(found))
    return 0


def describe_op(name: str, devices: list[str]) -> dict[str, Any]:
    """Return the report of `show op NAME --json`; for a name like `add_` with the in-place op's source alone.
    LookupError for an unknown name, UsageError for an unknown device.
    """
    op, in_place = find(name)
    sources = generated_sources(op)
    if in_place:
        sources = {title: text for title, text in sources.items() if title == _find_in_place_name(op)}
    for device in devices:
        if why_not_usable({"ocl": "opencl"}.get(device.partition(":")[0], device.partition(":")[0])) is None:
            check_device(device)
    kinds = {device: execution_kind_on_device(op, device) for device in dict.fromkeys(devices)}
    return {
        "name": op.name,
        "schema": str(op.schema),
        **_describe_record(op),
        "sources": sources,
        "devices": {**kinds, **dict(_unopened_backends(op, kinds))},
    }


def _format_op(found: dict[str, Any]) -> str:
    """Return the text of `show op NAME`."""
    facts = [
        ("declared", found["declared"]),
        ("names", ", ".join(found["names"]) or "none: other ops call it"),
        ("promotion", found["promotion"]),
        ("tags", ", ".join(found["tags"]) or "none"),
        ("derivative", found["derivative"]),
        ("results", ", ".join(found["results"])),
        ("see also", f"{', '.join(found['see_also'])}, which torch.{found['name']} is" if found["see_also"] else ""),
    ]
    texts = {**found["sources"], "devices": _format_columns(list(found["devices"].items()))}
    parts = [f"{f'-- {title} '.ljust(WIDTH, '-')}\n{text.rstrip()}" for title, text in texts.items()]
    return "\n\n".join([found["schema"], _format_columns([fact for fact in facts if fact[1]]), *parts])


def _format_columns(rows: list[tuple[str, str]]) -> str:
    return "\n".join(f"  {name:<12} {value}" for name, value in rows)


# -- names -----------------------------------------------------------------------------


def find(name: str) -> tuple[Op, bool]:
    """Return the record of a name, and whether it is an in-place op's. LookupError for an unknown name."""
    op = _find_record(name)
    if op is not None:
        return op, False
    op = _find_record(name[:-1]) if name.endswith("_") else None
    if op is not None and _find_in_place_record(op) is not None:
        return op, True
    raise LookupError(f"there is no op '{name}'{suggest(name, _all_names('.' in name))}")


def _find_record(name: str) -> Op | None:
    """Return a record by a public name (`linear`, `torch.nn.functional.linear`), or else by its own (`add_alpha`,
    `prims.add`).
    """
    space, _, last = name.removeprefix("torchlite.").removeprefix("torch.").rpartition(".")
    spaces = [space] if space else list(NAMESPACES)
    found = next((NAMESPACES[each][last] for each in spaces if last in NAMESPACES.get(each, {})), None)
    return found or REGISTRY.get(name.removeprefix("prims."))


def _list_public_names(op: Op) -> list[str]:
    names = [(space, name) for space, found in NAMESPACES.items() for name, record in found.items() if record is op]
    return [f"{space}.{name}" for space, name in names]


def _all_names(with_space: bool) -> list[str]:
    public = [f"{space}.{name}" if with_space else name for space, found in NAMESPACES.items() for name in found]
    return list(dict.fromkeys([*public, *REGISTRY]))


# -- the record ----------------------------------------------------------------------


def _describe_record(op: Op) -> dict[str, Any]:
    """Describe a record."""
    part = f", of {', '.join(op.promote_args)}" if op.promote_args else ""
    others = [record.name for record in (NAMESPACES["torch"].get(op.name), NAMESPACES["Tensor"].get(op.name)) if record]
    return {
        "declared": f"torchlite/{op.file.rpartition('/torchlite/')[2]}:{op.line}",
        "names": _list_public_names(op),
        "promotion": _AS_ITS_PARTS if op.promote is None and op.is_implicit else f"{_PROMOTIONS[op.promote]}{part}",
        "tags": [word for tag, word in _TAGS.items() if op.tags & tag],
        "derivative": _describe_derivative(op),
        "results": list(op.outputs or ()),
        "see_also": [name for name in dict.fromkeys(others) if name != op.name],
    }


def _describe_derivative(op: Op) -> str:
    if op.formulas:
        return f"formulas for {', '.join(name for formula in op.formulas for name in formula.targets)}"
    return _AS_ITS_PARTS if op.is_implicit else "none"


# -- generated source --------------------------------------------------------------------


def generated_sources(op: Op) -> dict[str, str]:
    """Return the generated sources of an op: its function, in-place fast path and backward."""
    from .._dispatch.codegen.backward import backward_function
    from .._dispatch.codegen.source_builder import generated_text
    from .._dispatch.op_functions import in_place_fast_path

    texts = {op.name: generated_text(function_for(op))}
    simple = _find_in_place_record(op)
    short_way = None if simple is None else in_place_fast_path(simple)
    if simple is not None:
        texts[_find_in_place_name(op)] = (
            "# No text of its own: the op is computed, and its result written into the tensor.\n"
            if short_way is None
            else generated_text(short_way)
        )
    if op.formulas:
        texts["backward"] = generated_text(backward_function(op))
    return texts


def _find_in_place_record(op: Op) -> Op | None:
    """Return the record whose in-place kernel `op_` runs; None if there is no such method."""
    from .._dispatch.op_functions import op_without_alpha

    return op_without_alpha(op) if op.tags & INPLACE else None


def _find_in_place_name(op: Op) -> str:
    simple = _find_in_place_record(op)
    return "" if simple is None else f"{simple.name}_"


# -- devices -----------------------------------------------------------------------------


def execution_kind_on_device(op: Op, name: str) -> str:
    """Return how a device runs an op: by a kernel, a composite, on the host, or not at all."""
    from .._dispatch.backend_registry import table_of
    from .._types.devices import device

    try:
        table = table_of(device(name))
    except (RuntimeError, AssertionError) as error:
        return f"cannot be used: {error}"
    kind = _entry_kind(op, getattr(table, op.name))
    simple = _find_in_place_record(op)
    kernel = None if simple is None else getattr(table, f"{simple.name}_", None)
    return kind if kernel is None else f"{kind}; in place: {_source_location(kernel)}"


def _unopened_backends(op: Op, shown: Collection[str]) -> list[tuple[str, str]]:
    """For each backend that says where its kernels are, its device type and how it runs an op. No device is opened."""
    from .._dispatch.backend_registry import backend_of
    from .._types.devices import REGISTERED, installed_backends

    rows = []
    for name in sorted({*installed_backends(), *REGISTERED}):
        backend = backend_of(name)
        if name in shown or not hasattr(backend, "kernel_location"):
            continue
        place = backend.kernel_location(op.name)
        simple = _find_in_place_record(op)
        in_place = "" if simple is None else backend.kernel_location(f"{simple.name}_")
        if place:
            kind = f"kernel ({place})"
        elif op.composite is not None:
            kind = f"composite ({_source_location(op.composite)})"
        else:
            kind = "absent"
        rows.append((name, f"{kind}; in place: {in_place}" if in_place else kind))
    return rows


def _entry_kind(op: Op, entry: Any) -> str:
    from .._dispatch.fallback import HostFallback, MissingKernel

    if isinstance(entry, MissingKernel):
        return "absent"
    if isinstance(entry, HostFallback):
        return "absent"
    entry = getattr(entry, "__wrapped__", entry)  # behind it the layout of its results
    if isinstance(entry, functools.partial) and entry.func is op.composite:
        return f"composite ({_source_location(entry.func)})"
    suffix = ", for formulas: the function runs the composite" if op.is_implicit else ""
    return f"kernel ({_source_location(entry)}){suffix}"


def _source_location(function: Any) -> str:
    """Return the source location of a function, or its repr."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None:
        return f"{'/'.join(code.co_filename.split('/')[-2:])}:{code.co_firstlineno}"
    kind = type(function)
    return f"{kind.__module__}.{kind.__name__} {getattr(function, '__name__', '')}".rstrip()
