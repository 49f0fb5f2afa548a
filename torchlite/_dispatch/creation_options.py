"""The options `layout` and `pin_memory` of creation functions whose composites do not take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._types.layouts import layout as layout_type
from .._types.layouts import strided
from .callbacks import CALLBACKS
from .shape_and_value_checks import set_requires_grad

OPTIONS = ("layout", "pin_memory")


def handled_options(composite: Callable, schema: str) -> tuple[str, ...]:
    """The options of the schema that the composite does not take and this module handles."""
    code = composite.__code__
    taken = code.co_varnames[: code.co_argcount]
    return tuple(name for name in OPTIONS if f" {name}=" in schema and name not in taken)


def with_options(composite: Callable, op: Any) -> Callable:
    """Wrap the composite in a function of all parameters of the op. A sparse layout is an error; `pin_memory=True`
    returns a tensor in page-locked memory.
    """
    handled = op.creation_options

    def run(F: Any, *args: Any) -> Any:
        names = [p.name for p in op.params]
        given = dict(zip(names, args, strict=True))
        if "layout" in handled:
            _refuse_sparse(op, given["layout"])
        pins = given.get("pin_memory")
        if pins:
            given.update(_drop_pin_memory(given))
        made = composite(F, *(value for name, value in given.items() if name not in handled))
        if not pins or given.get("out") is not None:
            return made
        return set_requires_grad(CALLBACKS.pin_memory(made), args[names.index("requires_grad")])

    run.__wrapped__ = composite  # type: ignore[attr-defined]
    return run


def _drop_pin_memory(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments for the unpinned tensor, which is pinned afterwards: a copy without history."""
    CALLBACKS.check_pinning(given.get("device"))
    return {"requires_grad": False} if given.get("out") is None else {}


def _refuse_sparse(op: Any, layout: Any) -> None:
    if layout is None or layout is strided:
        return
    name = op.function_name
    if not isinstance(layout, layout_type):
        raise TypeError(f"{name}(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
    backend = "".join(part.capitalize() for part in layout.name.split("_")).replace("Coo", "") + "CPU"
    raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{backend}' backend.")
