"""ReplayForms: the replays of a captured call without gradients, with the function's tensors as inputs or constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .constant_tensors import ConstantTensors, find_constant_tensors
from .program_ir import CapturedCall
from .tensor_guards import TensorSource, compile_tensor_guard

# Replays with unchanged tensors before these become constants again. Doubles each time that they change afterwards.
_CALLS_BEFORE_CONSTANTS = 8


class _Specialized(NamedTuple):
    """A replay with constants, and what must hold for it."""

    tensors: ConstantTensors
    guard: Any
    replay: Any


class ReplayForms:
    """The replays of a captured call. One has the tensors of the function's state as constants, for as long as nobody
    writes them. The other one gets them in each call.

    make_replay: returns a replay, given `constants` and `trial` (see `compile_replay`). guard: the test of all tensors.
    always: whether the first form is wanted without constants too.
    """

    def __init__(
        self, make_replay: Callable, guard: Callable, captured: CapturedCall, sources: list[TensorSource], always: bool
    ) -> None:
        self.make_replay, self.guard, self.captured, self.sources = make_replay, guard, captured, sources
        self.always = always
        self.specialized: _Specialized | None = None
        self.general: Any = None  # compiled when it is needed
        self.seen: ConstantTensors | None = None  # the tensors at the last replay in general form
        self.calls, self.needed = 0, _CALLS_BEFORE_CONSTANTS

    def find(self, tensors: list) -> Any:
        """Return the replay for a call with these arguments, None if the call is of another kind."""
        found = self.specialized
        if found is not None:
            if found.tensors.is_same():
                return found.replay if found.guard(*tensors) else None
            self.specialized, self.calls, self.needed = None, 0, 2 * self.needed
        if not self.guard(*tensors):
            return None
        if self.seen is not None and self._is_settled():
            return self.specialize(tensors)
        if self.general is None:
            self.general = self.make_replay()
        return self.general

    def _is_settled(self) -> bool:
        """True if nobody wrote the tensors in as many calls as are needed."""
        if self.seen is None or not self.seen.is_same():
            self.seen, self.calls = ConstantTensors(self.seen.tensors if self.seen is not None else []), 0
        self.calls += 1
        return self.calls > self.needed

    def specialize(self, tensors: list) -> Any:
        """Return the replay for a call that has the guard's tensors, with constants if there can be any."""
        places = find_constant_tensors(self.captured, self.sources)
        if not places and not self.always:
            self.seen = None
            self.general = self.general or self.make_replay()
            return self.general
        outside = [tensors[s.argument] if s.argument >= 0 else s.held for s in self.sources]
        held = ConstantTensors([self.sources[n].held for n in sorted(places)])
        guard = compile_tensor_guard(tensors, self.sources, outside, self.captured, constants=places)
        replay = self.make_replay(constants=places, trial=outside)
        self.seen = held
        self.specialized = _Specialized(held, guard, replay)
        return replay
