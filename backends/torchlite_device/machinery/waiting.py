"""Large pointwise ops wait: what the next one reads from the one before is then computed in one launch, without a way
through memory.

A step is an op that has not started; its result has its memory already. The steps of a device read one another and have
one shape. They start, together, before anything else is started or read on the device, so that no program can see that
they waited. A chain that comes for the first time starts op by op: its own program is built when it comes again.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import weakref
from typing import Any

from torchlite_kernels.pointwise import chain_source_of

from .array import Array
from .pointwise_plan import GROUP, Plan, flat_result, launch_flat

LEAST = 1 << 17  # elements from which on the way through memory costs more than waiting does
_MOST, _MOST_ARRAYS = 12, 8


class Step:
    """One op: what it reads (arrays, earlier steps, Python numbers) and its result, which may be gone by now."""

    __slots__ = ("rule", "plan", "operands", "numbers", "result")

    def __init__(self, rule, plan: Plan, operands, numbers: tuple, result: Array):
        self.rule, self.plan, self.operands, self.numbers = rule, plan, operands, numbers
        self.result = weakref.ref(result)


class Waiting:
    """The steps of one device."""

    def __init__(self, device: Any):
        self.device = device
        self.steps: list[Step] = []
        self._lane = 0  # where the steps are to run
        self._lock = threading.RLock()
        self._starting = False

    def add(self, rule, plan: Plan, operands: tuple, numbers: tuple, like: Array) -> Array:
        """The result of an op over contiguous arrays of the shape and kind of `like`, and Python numbers."""
        result = flat_result(self.device, plan, like)
        with self._lock:
            given: Any = operands
            lane = self.device.lane()
            if self.steps:
                given = self._joined(operands) if lane == self._lane else None
                if given is None:
                    self.start()
                    given = operands
            self._lane = lane
            self.steps.append(Step(rule, plan, given, numbers, result))
        return result

    def _joined(self, operands: tuple) -> list | None:
        """The operands with steps in the place of their results. None where the op does not belong to what waits: it
        reads none of their results, or one as another array on its memory, or they are many.
        """
        if len(self.steps) >= _MOST:
            return None
        given, joins = list(operands), False
        for at, x in enumerate(operands):
            if x.__class__ is Array:
                for step in self.steps:
                    result = step.result()
                    if result is x:
                        given[at], joins = step, True
                    elif x.base is not None and result is x.base:
                        return None
        return given if joins and len(self._inputs(given)) <= _MOST_ARRAYS else None

    def _inputs(self, more: Any = ()) -> list[Array]:
        """The arrays that the steps read, each once, and those of a list of operands."""
        found = {
            id(x): x
            for operands in (*[step.operands for step in self.steps], more)
            for x in operands
            if x.__class__ is Array
        }
        return list(found.values())

    def start(self) -> None:
        """Start all steps. What nobody refers to is computed too, but where only later steps read it."""
        with self._lock:
            if self._starting or not self.steps:  # this thread's own launches come by here
                return
            self._starting = True
            try:
                with (
                    contextlib.nullcontext() if self.device.lane() == self._lane else self.device.in_lane(self._lane)
                ):  # another thread may be the one that reads
                    if len(self.steps) > 1:
                        self._start_several()
                    else:
                        self._one_by_one([self.steps[0].result()])
            finally:
                self.steps = []
                self._starting = False

    def hold(self) -> None:
        """Start nothing for other threads until the calling one says `release`."""
        self._lock.acquire()

    def release(self) -> None:
        """The end of `hold`."""
        self._lock.release()

    def forget(self) -> None:
        """Give up the steps, whose results nobody will read."""
        with self._lock:
            self.steps = []

    def _start_several(self) -> None:
        steps, inputs, chains = self.steps, self._inputs(), self.device.kept("chains")
        results, read = (
            [step.result() for step in steps],
            {x for step in steps for x in step.operands if x.__class__ is Step},
        )
        written = tuple([result is not None or step not in read for step, result in zip(steps, results, strict=True)])
        key = (tuple([(step.rule, *references(step, steps, inputs)) for step in steps]), written, inputs[0].kind)
        if key not in chains:
            chains[key] = None
            return self._one_by_one(results)
        chain = chains[key]
        if chain is None:
            chain = chains[key] = Chain(self.device, steps, inputs, written)
        chain.start(steps, inputs, [r for r, w in zip(results, written, strict=True) if w])

    def _one_by_one(self, results: list[Array | None]) -> None:
        done: dict[Step, Array] = {}
        for step, result in zip(self.steps, results, strict=True):
            operands = [done[x] if x.__class__ is Step else x for x in step.operands]
            arrays = [x for x in operands if x.__class__ is Array]
            done[step] = launch_flat(self.device, step.plan, arrays, operands, step.numbers, arrays[0], result)


def references(step: Step, steps: list[Step], inputs: list[Array]) -> list[str]:
    """What a step's parameters are: `r2` the result of the step 2, `i0` the input 0, `n` a number."""
    found = []
    for x in step.operands:
        if x.__class__ is Step:
            found.append(f"r{steps.index(x)}")
        else:
            found.append(f"i{next(at for at, y in enumerate(inputs) if y is x)}" if x.__class__ is Array else "n")
    return found + ["n"] * len(step.numbers)


class Chain:
    """The launch of several steps as one kernel."""

    __slots__ = ("_start", "_per_item", "_pack", "_number")

    def __init__(self, device, steps: list[Step], inputs: list[Array], written: tuple[bool, ...]):
        kind = inputs[0].kind
        links = [(step.rule, len(step.operands), references(step, steps, inputs)) for step in steps]
        source = chain_source_of(device, links, kind, device.width, len(inputs), written)
        self._start = device.function(source, "run", "", (device.width,), T=kind).start
        self._per_item = device.width
        self._pack = struct.Struct(f"{len(inputs) + sum(written) + 1}i").pack
        self._number: Any = next((step.plan.numbers for step in steps if step.plan.numbers is not None), None)

    def start(self, steps: list[Step], inputs: list[Array], results: list[Array | None]) -> None:
        like = inputs[0]
        arrays = inputs + [flat_result(like.device, steps[-1].plan, like) if r is None else r for r in results]
        values = [self._pack(*[x.offset for x in arrays], like.size)]
        for step in steps:
            values += [self._number(x) for x in step.operands if x.__class__ is not Array and x.__class__ is not Step]
            values += map(self._number, step.numbers)
        items = -(-like.size // self._per_item)
        self._start((-(-items // GROUP) * GROUP,), (GROUP,), [x.buffer for x in arrays], values)
