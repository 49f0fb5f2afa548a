"""The named tuples that ops of several results return: `torch.return_types.max` is the class of `torch.max(x, 0)`."""

from __future__ import annotations

from typing import Any

from ._dispatch import NAMESPACES, REGISTRY


def _load_classes() -> dict[str, Any]:
    """Return the classes by name; they are created at the first access."""
    public = {id(op) for names in NAMESPACES.values() for op in names.values()}
    return {
        name: op.result_type
        for name, op in sorted(REGISTRY.items())
        if op.outputs and (id(op) in public or not name.startswith("_"))
    }


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return list(_load_classes().values())
    if name == "__all__":
        return sorted(_load_classes())
    found = None if name.startswith("__") else _load_classes().get(name.removesuffix("_out"))
    if found is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*sorted(_load_classes()), "all_return_types"]
