"""Custom autograd Functions with DTensor arguments: a Function on local tensors calls the given one with DTensors."""

from __future__ import annotations

from typing import Any

from torchlite.autograd.function import BackwardCFunction, Function

from ._dtensor_factory import make_dtensor
from ._dtensor_spec import DTensorSpec
from ._op_strategy import is_dtensor
from .placement_types import Replicate


class _LocalContext(BackwardCFunction):
    """Node that saves the local tensors of DTensor arguments and results."""

    kept_specs: tuple = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.kept_specs = tuple(map(_spec_of, tensors))
        self.to_save = tuple(map(_to_local, tensors))

    @property
    def saved_tensors(self) -> tuple:
        """Tensors saved by `save_for_backward`."""
        return tuple(map(_from_local, super().saved_tensors, self.kept_specs))

    def mark_dirty(self, *tensors: Any) -> None:
        self.dirty_tensors = tuple(map(_to_local, tensors))

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.non_differentiable = tuple(map(_to_local, tensors))


def _to_local(value: Any) -> Any:
    return value._local_tensor if is_dtensor(value) else value


def _spec_of(value: Any) -> DTensorSpec | None:
    return value._spec if is_dtensor(value) else None


def _from_local(part: Any, spec: DTensorSpec | None) -> Any:
    return part if spec is None or part is None else make_dtensor(part, spec)


def _gradient_from_local(part: Any, spec: DTensorSpec | None) -> Any:
    """Return the gradient of a DTensor from its local tensor's."""
    if spec is None or part is None:
        return part
    places = [Replicate() if p.is_partial() else p for p in spec.placements]
    return make_dtensor(part, DTensorSpec(spec.mesh, places, spec.tensor_meta))


def run_function(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return `function.apply(*args, **kwargs)`."""
    given, several = list(map(_spec_of, args)), False
    specs: list[Any] = []

    class OnParts(Function):
        @staticmethod
        def forward(ctx: Any, *parts: Any) -> Any:
            nonlocal several
            values = tuple(map(_from_local, parts, given))
            if function.setup_context is not Function.setup_context:
                found = function.forward(*values, **kwargs)
                function.setup_context(ctx, values, found)
            else:
                found = function.forward(ctx, *values, **kwargs)
            several = isinstance(found, tuple)
            outs = found if several else (found,)
            specs[:] = map(_spec_of, outs)
            return tuple(map(_to_local, outs)) if several else _to_local(found)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            run = function.backward if function.backward is not Function.backward else function.vjp
            found = run(ctx, *map(_gradient_from_local, grads, specs))
            found = found if isinstance(found, tuple) else (found,)
            return tuple(
                args[i]._gradient_to_local(g) if g is not None and i < len(args) and is_dtensor(args[i]) else g
                for i, g in enumerate(found)
            )

    name = function.__name__
    OnParts.__name__ = OnParts.__qualname__ = name
    OnParts._backward_cls = type(f"{name}Backward", (_LocalContext,), {"_forward_cls": OnParts})  # type: ignore[attr-defined]
    results = OnParts.apply(*map(_to_local, args))
    return tuple(map(_from_local, results, specs)) if several else _from_local(results, specs[0])
