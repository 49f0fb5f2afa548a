"""Lazy fusion of large pointwise ops: deferred ops become one launch, without intermediate memory traffic.

A step is an op that is not launched yet; its result has its memory already. The steps of a device read one another and
have one shape. They are launched as one kernel before other work is launched or read on the device, so that no program
can observe the deferral. A chain that occurs for the first time is launched op by op; its fused program is built when
it recurs.

While launches are recorded (`torchlite_backends.opencl.command_buffer`), smaller ops are deferred too, and those that
broadcast rows, columns or single elements (`takes_rows`): a program is then built once for many runs.
"""

from __future__ import annotations

import contextlib
import math
import struct
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from torchlite._settings import fork_locks
from torchlite_backends.kernel_sources.pointwise_codegen import (
    ChainIndexing,
    chain_kernel_source,
    make_flat_chain_indexing,
    make_row_chain_indexing,
)

from .array import Array, empty, row_major_layout
from .broadcasting import broadcast_steps, collapse_dims
from .pointwise_launch import GROUP, PointwiseLaunch, allocate_flat_result, compute_row_grid, launch, launch_flat

MIN_SIZE = 1 << 17  # minimum elements; below, deferral costs more than the memory traffic
_MAX_OPS, _MAX_ARRAYS = 12, 8


class PendingOp:
    """Deferred op: its inputs (arrays, earlier steps, Python numbers) and its result, which may be unreferenced by
    now.
    """

    __slots__ = ("rule", "plan", "operands", "numbers", "result", "shape")

    def __init__(self, rule, plan: PointwiseLaunch, operands, numbers: tuple, result: Array):
        self.rule, self.plan, self.operands, self.numbers = rule, plan, operands, numbers
        self.result, self.shape = weakref.ref(result), result.shape

    def launch(self, device: Any, operands: list, result: Array | None) -> Array:
        """Launch the op alone."""
        arrays, plan = [x for x in operands if x.__class__ is Array], self.plan
        if plan.global_size is None:
            return launch_flat(device, plan, arrays, operands, self.numbers, arrays[0], result)
        out = empty(device, self.shape, plan.kind) if result is None else result
        layout = plan.pack(*[x.offset for x in arrays], out.offset) + plan.tail
        launch(plan, arrays, operands, self.numbers, out, layout, plan.global_size)
        return out


class LazyQueue:
    """Deferred steps of one device.

    least: minimum elements of deferred ops. takes_rows: whether broadcasting ops are deferred, and reductions fused.
    """

    least, takes_rows = MIN_SIZE, False
    owner_to_drop: Any = None  # array that nobody reads after the current call

    def __init__(self, device: Any):
        self.device = device
        self.steps: list[PendingOp] = []
        self._lane = 0  # where the steps are to run
        self._lock = fork_locks.reinit_after_fork(threading.RLock())
        self._starting = False

    def add(self, rule, plan: PointwiseLaunch, operands: tuple, numbers: tuple, like: Array) -> Array:
        """Defer an op over contiguous arrays of the shape and kind of `like`, and numbers; return its result."""
        return self._append_step(rule, plan, operands, numbers, allocate_flat_result(self.device, plan, like))

    def add_rows(self, rule, plan: PointwiseLaunch, operands: tuple, numbers: tuple) -> Array:
        """Defer an op over broadcast arrays, by its plan for rows; return its result."""
        return self._append_step(rule, plan, operands, numbers, empty(self.device, plan.shape, plan.kind))

    def _append_step(self, rule, plan: PointwiseLaunch, operands: tuple, numbers: tuple, result: Array) -> Array:
        with self._lock:
            given: Any = operands
            lane = self.device.lane()
            if self.steps:
                given = self._link_operands_to_steps(operands, result.shape) if lane == self._lane else None
                if given is None:
                    self.start()
                    given = operands
            self._lane = lane
            self.steps.append(PendingOp(rule, plan, given, numbers, result))
        return result

    def _link_operands_to_steps(self, operands: tuple, shape: tuple) -> list | None:
        """Return the operands with steps in place of their results; None if the op cannot extend the chain.

        That is so if it reads no deferred result, or one through a view or for another shape, or has too many operands.
        """
        if len(self.steps) >= _MAX_OPS:
            return None
        given, joins = list(operands), False
        for at, x in enumerate(operands):
            if x.__class__ is Array:
                for step in self.steps:
                    result = step.result()
                    if result is x and x.shape == shape:
                        given[at], joins = step, True
                    elif result is x or x.base is not None and result is x.base:
                        return None
        return given if joins and len(self._collect_inputs(given)) <= _MAX_ARRAYS else None

    def _collect_inputs(self, more: Any = ()) -> list[Array]:
        """Return the distinct arrays that the steps and a list of operands read."""
        found = {
            id(x): x
            for operands in (*[step.operands for step in self.steps], more)
            for x in operands
            if x.__class__ is Array
        }
        return list(found.values())

    def inputs_and_results(self) -> tuple[list[Array], list[Array | None], tuple[bool, ...]]:
        """Return the steps' inputs, their results (None if unreferenced), and which results are written."""
        results = [step.result() for step in self.steps]
        read = {x for step in self.steps for x in step.operands if x.__class__ is PendingOp}
        written = [result is not None or step not in read for step, result in zip(self.steps, results, strict=True)]
        return self._collect_inputs(), results, tuple(written)

    def start(self) -> None:
        """Launch all steps. Unreferenced results are computed only for later steps."""
        with self._lock:
            if self._starting or not self.steps:  # launches of this method come here
                return
            self._starting = True
            try:
                with (
                    contextlib.nullcontext() if self.device.lane() == self._lane else self.device.in_lane(self._lane)
                ):  # another thread may be the one that reads
                    if len(self.steps) > 1:
                        self._start_several()
                    else:
                        self._run_unfused([self.steps[0].result()])
            finally:
                self.steps = []
                self._starting = False

    def hold(self, least: int) -> None:
        """Defer the calling thread's ops from so many elements, broadcasting ones included, until `release`.

        Ops of other threads do not extend the chain: they would run in this thread.
        """
        self._lock.acquire()
        self.least, self.takes_rows = least, True

    def release(self) -> None:
        """End `hold`; deferred steps are launched later."""
        del self.least, self.takes_rows
        self._lock.release()

    @contextlib.contextmanager
    def joining(self, least: int) -> Iterator[None]:
        """Context manager around `hold`; launches everything at its end."""
        self.start()
        self.hold(least)
        try:
            yield
            self.start()
        finally:
            self.release()

    def forget(self) -> None:
        """Drop the steps, whose results nobody will read."""
        with self._lock:
            self.steps = []

    def _start_several(self) -> None:
        steps, chains = self.steps, self.device.kept("chains")
        inputs, results, written = self.inputs_and_results()
        shape = steps[0].shape
        key: tuple = (
            tuple([(step.rule, *make_parameter_names(step, steps, inputs)) for step in steps]), written, inputs[0].kind,
        )  # fmt: skip
        flat = is_flat(inputs, shape)
        if not flat:
            key = (*key, shape, *[(x.shape, x.steps) for x in inputs])
        if key not in chains:
            chains[key] = None
            return self._run_unfused(results)
        chain = chains[key]
        if chain is None:
            chain = chains[key] = get_fused_chain(self.device, steps, inputs, written)
        if not chain.fits:
            return self._run_unfused(results)
        chain.start(steps, inputs, [r for r, w in zip(results, written, strict=True) if w])

    def _run_unfused(self, results: list[Array | None]) -> None:
        done: dict[PendingOp, Array] = {}
        for step, result in zip(self.steps, results, strict=True):
            operands = [done[x] if x.__class__ is PendingOp else x for x in step.operands]
            done[step] = step.launch(self.device, operands, result)


def is_flat(inputs: list[Array], shape: tuple[int, ...]) -> bool:
    """True if all arrays are contiguous and have that shape."""
    return all(x.contiguous and x.shape == shape for x in inputs)


def get_fused_chain(device: Any, steps: list[PendingOp], inputs: list[Array], written: tuple[bool, ...]) -> FusedChain:
    """Return the launch of several steps."""
    return (FusedChain if is_flat(inputs, steps[0].shape) else BroadcastChain)(device, steps, inputs, written)


def make_parameter_names(step: PendingOp, steps: list[PendingOp], inputs: list[Array]) -> list[str]:
    """Return names of a step's parameters: `r2` the result of the step 2, `i0` the input 0, `n` a number."""
    found = []
    for x in step.operands:
        if x.__class__ is PendingOp:
            found.append(f"r{steps.index(x)}")
        else:
            found.append(f"i{next(at for at, y in enumerate(inputs) if y is x)}" if x.__class__ is Array else "n")
    return found + ["n"] * len(step.numbers)


class FusedChain:
    """Launch of several steps over contiguous arrays of one shape as one kernel."""

    fits = True

    def __init__(self, device, steps: list[PendingOp], inputs: list[Array], written: tuple[bool, ...]):
        self._build(device, steps, inputs, written, make_flat_chain_indexing(len(inputs), sum(written)))
        self._pack = struct.Struct(f"{len(inputs) + sum(written) + 1}i").pack

    def _build(
        self, device, steps: list[PendingOp], inputs: list[Array], written: tuple[bool, ...], walk: ChainIndexing
    ) -> None:
        kind = inputs[0].kind
        links = [(step.rule, len(step.operands), make_parameter_names(step, steps, inputs)) for step in steps]
        source = chain_kernel_source(device, links, kind, device.width, len(inputs), written, walk)
        self._start = device.function(source, "run", "", (device.width,), T=kind).start
        self._per_item = device.width
        self._number: Any = next((step.plan.numbers for step in steps if step.plan.numbers is not None), None)

    def start(self, steps: list[PendingOp], inputs: list[Array], results: list[Array | None]) -> None:
        """Launch with the written results; None for one that is unreferenced."""
        *sizes, arrays, values = self.launch_arguments(steps, inputs, results)
        self._start(*sizes, [x.buffer for x in arrays], values)

    def launch_arguments(self, steps: list[PendingOp], inputs: list[Array], results: list[Array | None]) -> tuple:
        """Return global and local size, arrays, and the values behind them."""
        like = inputs[0]
        arrays = inputs + [allocate_flat_result(like.device, steps[-1].plan, like) if r is None else r for r in results]
        items = -(-like.size // self._per_item)
        layout = self._pack(*[x.offset for x in arrays], like.size)
        return (-(-items // GROUP) * GROUP,), (GROUP,), arrays, [layout, *self._collect_numbers(steps)]

    def _collect_numbers(self, steps: list[PendingOp]) -> list[bytes]:
        values = []
        for step in steps:
            values += [
                self._number(x) for x in step.operands if x.__class__ is not Array and x.__class__ is not PendingOp
            ]
            values += map(self._number, step.numbers)
        return values


class BroadcastChain(FusedChain):
    """Fused chain with broadcast operands.

    It is rejected if the innermost dimension is not a multiple of the elements per work-item: separate ops compute
    vectors there, a chain would compute single elements.
    """

    def __init__(self, device, steps: list[PendingOp], inputs: list[Array], written: tuple[bool, ...]):
        shape = steps[0].shape
        walks = [broadcast_steps(x.shape, x.steps, shape) for x in inputs]
        sizes, steps_of = collapse_dims(list(shape), *walks, row_major_layout(shape)[1])
        modes = [{0: "s", 1: "v"}.get(s[-1], "g") for s in steps_of]
        self.fits = not sizes[-1] % device.width and "g" not in modes
        if not self.fits:
            return
        self._build(device, steps, inputs, written, make_row_chain_indexing(modes, len(sizes) - 1))
        self._global_size, self._local_size = compute_row_grid(sizes, device.width)
        down = math.prod(sizes[:-1])
        tail = [sizes[-1], down, *sizes[:-1], *[n for s in steps_of for n in s[:-1]]]
        self._tail = struct.pack(f"{len(tail)}i", *tail)
        self._pack = struct.Struct(f"{len(inputs) + 1}i").pack

    def launch_arguments(self, steps: list[PendingOp], inputs: list[Array], results: list[Array | None]) -> tuple:
        device, plan, shape = inputs[0].device, steps[-1].plan, steps[0].shape
        arrays = inputs + [empty(device, shape, plan.kind) if r is None else r for r in results]
        layout = self._pack(*[x.offset for x in inputs], 0) + self._tail  # results are new arrays
        return self._global_size, self._local_size, arrays, [layout, *self._collect_numbers(steps)]
