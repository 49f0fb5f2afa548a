"""InferenceFunction: optimizes the calls of a TorchScript module, or one from a file, where no gradients are recorded.

The kernels of such a call are captured as `torch.compile` captures them, and the module's tensors are constants.
"""

from __future__ import annotations

import functools
import inspect
import time
import weakref
from typing import Any

from torchlite._dispatch.call import Tensor
from torchlite._settings.compiler_state import THREAD_STATE
from torchlite.fx import GraphModule

from .capture import Capture
from .compiled_function import CompiledFunction
from .dynamic_shapes import SizeVariant, SizeVariants
from .exc import Unsupported
from .guards import GLOBAL_MODULE_HOOKS, IdentityGuard, ReachableState, items_of, namespace_items

# Kernels of a program that is optimized at once, and of one that must be called often before: recording it takes the
# time of up to a hundred calls.
_SHORT_STEPS, _MAX_STEPS = 1 << 12, 1 << 15
_CALLS_BEFORE_LONG_PROGRAMS = 64
# Seconds of a call that count as one call more of its size. Recording takes the time of one or two more long calls.
_SECONDS_OF_A_CALL = 1 / 32
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


class ModuleState(ReachableState):
    """The state of a module whose code is torchlite's own: tensors, submodules, modes and hooks. Of a module that
    `torch.jit.script` made it is also what the Python functions reach.

    names: further attributes of the module that the code reads. written: attributes that each call writes, as the id of
    their dictionary and their name. ran: see `ReachableState`.
    """

    def __init__(
        self, module: Any, codes: set, names: tuple[str, ...], written: set[tuple[int, str]], ran: set | None
    ) -> None:
        super().__init__(ran)
        self.codes = set(codes)
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
                attributes = own["_attributes"]
                fixed = tuple([name for name in attributes if (id(attributes), name) not in written])
                self.held.append(IdentityGuard(namespace_items, (attributes, fixed)))
                self.walk(*[attributes[name] for name in fixed])
                program = own["_script"].program
                if program is not None:
                    self.held.append(IdentityGuard(namespace_items, (program.__dict__, ("constants",))))
                    self.walk(*program.constants)
            if part is not module:
                self.empty += [own[name] for name in _HOOKS]
        self.empty += GLOBAL_MODULE_HOOKS
        self._walk_functions([part for part in module.modules() if _runs_in_python(part)])

    def _walk_functions(self, parts: list) -> None:
        """Add what the functions of scripted modules reach. Their tensors are those of the scripted modules."""
        if not parts:
            return
        tensors = dict(self.tensors)
        self._seen.update((id(part), part) for part in parts)
        functions = [inspect.unwrap(function) for part in parts for function in part._script.methods.values()]
        self.walk(*functions, *[part.__dict__["_original"] for part in parts])
        self.tensors = tensors
        for part in parts:  # an attribute may be made later
            known = part.__dict__["_attributes"]
            names = tuple(sorted(name for name in self._attributes if name not in known and name[:2] != "__"))
            self.held.append(IdentityGuard(namespace_items, (part.__dict__, names)))


def _runs_in_python(part: Any) -> bool:
    return "_original" in part.__dict__ and part.__dict__["_script"].by_python


class InferenceFunction(CompiledFunction):
    """Compiled `forward` of a module. `function` runs it without optimization.

    A TorchScript module may keep values for its next call in attributes. These become arguments and results of the
    function: `written` has the dictionaries and names. names: see `ModuleState`.
    """

    warns = False
    splits = False
    is_of_inference = True
    shares_sizes = False  # the code of a loaded module, which may read sizes, is not among the state's

    def __init__(self, module: Any, function: Any, names: tuple[str, ...] = ()) -> None:
        self.module, self.names = weakref.ref(module), names
        graphs = [part for part in module.modules() if isinstance(part, GraphModule)]
        for graph in graphs:
            graph._generate_waiting_code()
        self.codes = {inspect.unwrap(type(graph).forward).__code__ for graph in graphs}
        self.run = functools.partial(_run, self.module, function)
        self.written: list[tuple[dict, str]] | None = None  # not known yet
        self.wasted = 0  # captures in succession that never served
        self.most_steps: float = _SHORT_STEPS
        self.waits = 0  # calls before the next capture
        super().__init__(self.run, type(module).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not THREAD_STATE.optimizes_loaded:
            return self.run(*args, **kwargs)
        if self.written is None:
            return self._find_written(args, kwargs)
        if not self.written:
            return super().__call__(*args, **kwargs)
        result, after = super().__call__(self._read_written(), *args, **kwargs)
        for (place, name), value in zip(self.written, after, strict=True):
            place[name] = value
        return result

    def _find_written(self, args: tuple, kwargs: dict) -> Any:
        """Run a call, and note the attributes of scripts that it replaces."""
        module: Any = self.module()
        places = [part.__dict__["_attributes"] for part in module.modules() if "_attributes" in part.__dict__]
        before = [(place, name, value) for place in places for name, value in place.items()]
        result = self.run(*args, **kwargs) if before else None
        self.written = [(place, name) for place, name, value in before if place.get(name, value) is not value]
        if self.written:
            self.function = self._run_with_written
        return result if before else super().__call__(*args, **kwargs)

    def _read_written(self) -> tuple:
        return tuple([place[name] for place, name in self.written or ()])

    def _run_with_written(self, before: tuple, *args: Any, **kwargs: Any) -> tuple:
        """Run a call whose attributes have the values `before`. Return its result and the new values."""
        for (place, name), value in zip(self.written or (), before, strict=True):
            place[name] = value
        return self.run(*args, **kwargs), self._read_written()

    def _find_state(self, objects: list) -> ReachableState:
        written = {(id(place), name) for place, name in self.written or ()}
        if self.discovery.is_wanted:
            raise Unsupported("it runs other code in each call")
        return ModuleState(self.module(), self.codes, self.names, written, self.discovery.codes)

    def _run_new_key(self, key: Any, tensors: list, objects: list, modes: tuple, args: tuple, kwargs: dict) -> Any:
        if objects or self.waits:
            if objects:
                self.postponed = f"it gets an object of {type(objects[0]).__module__}.{type(objects[0]).__name__}"
            self.waits -= bool(self.waits)
            return self.function(*args, **kwargs)
        if any(not variant.is_same() for variants in self.variants.values() for variant in variants):
            self.wasted = 0 if self.replays else self.wasted + 1
            self.reset()  # a tensor was replaced: no earlier capture can serve again
            self.gave_up = self.wasted > self._recompile_limit()
        return super()._run_new_key(key, tensors, objects, modes, args, kwargs)

    def _run_rare_size(self, sizes: SizeVariants, place: SizeVariant, args: tuple, kwargs: dict) -> Any:
        start = time.thread_time()
        result = self.function(*args, **kwargs)
        more = int((time.thread_time() - start) / _SECONDS_OF_A_CALL)
        if more:
            sizes.count(place, more)
        return result

    def _may_settle_next_call(self, capture: Capture) -> bool:
        if capture.is_long and self.most_steps < _MAX_STEPS:
            self.most_steps, self.waits = _MAX_STEPS, _CALLS_BEFORE_LONG_PROGRAMS
            self.postponed += f": such a program is recorded after {self.waits} more calls"
            return True
        return super()._may_settle_next_call(capture)


def _run(module: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(module(), *args, **kwargs)
