"""InferenceFunction: optimizes the calls of a module that was read from a file, where no gradients are recorded.

The kernels of such a call are captured as `torch.compile` captures them. The module's tensors are constants of the
program: what depends on them alone is computed once. A replay first checks that no tensor was replaced or written.
"""

from __future__ import annotations

import functools
import inspect
import operator
import weakref
from typing import Any

from torchlite._dispatch.autograd_graph import root_meta_of
from torchlite._dispatch.call import Tensor
from torchlite._settings.compiler_state import THREAD_STATE
from torchlite.fx import GraphModule

from .compiled_function import GLOBAL_MODULE_HOOKS, CaptureVariant, CompiledFunction
from .guards import IdentityGuard, ReachableState, items_of, namespace_items
from .program_ir import CapturedCall

_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_read_array = operator.attrgetter("_tl_array")
_read_version = operator.attrgetter("n")


class ModuleState(ReachableState):
    """The state of a module whose code is torchlite's own: tensors, submodules, modes and hooks.

    names: further attributes of the module that the code reads.
    """

    def __init__(self, module: Any, codes: set, names: tuple[str, ...]) -> None:
        super().__init__()
        self.codes = codes
        self.held.append(IdentityGuard(namespace_items, (module.__dict__, names)))
        for part in module.modules():
            own = part.__dict__
            for place in (own["_parameters"], own["_buffers"], own["_modules"]):
                if place:
                    self.held.append(IdentityGuard(items_of, place))
            constants = [name for name, value in own.items() if isinstance(value, Tensor)]
            self.held.append(IdentityGuard(namespace_items, (own, ("training", *constants))))
            for table in (own["_parameters"], own["_buffers"], {name: own[name] for name in constants}):
                self.tensors.update((id(tensor), tensor) for tensor in table.values() if tensor is not None)
            if "_attributes" in own:  # of TorchScript
                self.held.append(IdentityGuard(items_of, own["_attributes"]))
                self.walk(*own["_attributes"].values())
            if part is not module:
                self.empty += [own[name] for name in _HOOKS]
        self.empty += GLOBAL_MODULE_HOOKS
        self._tensors = tuple(self.tensors.values())
        self._arrays = [*map(_read_array, self._tensors)]
        self._counters = [*map(root_meta_of, self._tensors)]
        self._versions = [*map(_read_version, self._counters)]

    def is_same(self) -> bool:
        return super().is_same() and self._has_same_values()

    def test(self) -> Any:
        is_same, has_same_values = super().test(), self._has_same_values
        return lambda: is_same() and has_same_values()

    def _has_same_values(self) -> bool:
        """True if no tensor was written or got other memory."""
        return (
            all(map(operator.is_, map(_read_array, self._tensors), self._arrays))
            and [*map(_read_version, self._counters)] == self._versions
        )


class InferenceFunction(CompiledFunction):
    """Compiled `forward` of a module. `function` runs it without optimization.

    names: see `ModuleState`.
    """

    warns = False
    has_constant_state = True

    def __init__(self, module: Any, function: Any, names: tuple[str, ...] = ()) -> None:
        self.module, self.names = weakref.ref(module), names
        graphs = [part for part in module.modules() if isinstance(part, GraphModule)]
        self.codes = {inspect.unwrap(type(graph).forward).__code__ for graph in graphs}
        super().__init__(functools.partial(_run, self.module, function), type(module).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not THREAD_STATE.optimizes_loaded:
            return self.function(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def _find_state(self, objects: list) -> ReachableState:
        return ModuleState(self.module(), self.codes, self.names)

    def _run_new_key(self, key: Any, tensors: list, objects: list, modes: tuple, args: tuple, kwargs: dict) -> Any:
        if objects:
            return self.function(*args, **kwargs)
        if any(not variant.is_same() for variants in self.variants.values() for variant in variants):
            self.reset()  # a tensor was written or replaced: no earlier capture can serve again
        return super()._run_new_key(key, tensors, objects, modes, args, kwargs)

    def _capture_call(
        self, key: Any, variant: CaptureVariant, outside: list, args: tuple, kwargs: dict
    ) -> tuple[Any, CapturedCall | None]:
        result, captured = super()._capture_call(key, variant, outside, args, kwargs)
        if captured is not None and not _is_functional(captured, variant):
            self._give_up(key, "it writes to its inputs or tensors, or returns one", "")
            return result, None
        return result, captured


def _is_functional(captured: CapturedCall, variant: CaptureVariant) -> bool:
    """True if a call has no effect besides its results, and none of them shares the module's memory."""
    sources = variant.sources
    owners = [i for result in captured.results for i in (result.outside, result.shares) if i >= 0]
    return not (captured.bumps or captured.grads or captured.backward or any(sources[i].is_constant for i in owners))


def _run(module: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(module(), *args, **kwargs)
