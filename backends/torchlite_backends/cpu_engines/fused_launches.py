"""Groups of pointwise ops as launches planned once, for `torch.compile` on arrays of the same shapes.

The group's ops are called once with arrays without memory, on a device that launches nothing (`_PlanningDevice`). They
are deferred like large ops of a device (`torchlite_backends.device_runtime.core.lazy_fusion`), and the deferred chains
become kernels of the engine's device. A call then allocates the results and launches these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchlite_backends.device_runtime.core.array import Array, empty, kind_of
from torchlite_backends.device_runtime.core.device import Device, NotBuiltError
from torchlite_backends.device_runtime.core.lazy_fusion import LazyQueue, get_fused_chain

from .engine_selection import CpuEngine
from .ndarray_bridge import kernels


class _Unfusable(Exception):
    """Raised for an op that cannot be part of a group of launches."""


class _RecordingQueue(LazyQueue):
    """Queue that records steps instead of launching them."""

    least, takes_rows = 1, True

    def __init__(self, device: Any):
        super().__init__(device)
        self.chains: list[tuple[list, tuple]] = []

    def start(self) -> None:
        if self.steps:
            self.chains.append((self.steps, self.inputs_and_results()))
            self.steps = []


class _PlanningDevice(Device):
    """Device with another one's properties, whose arrays have no memory and whose kernels cannot be launched."""

    waiting: _RecordingQueue

    def __init__(self, device: Any):
        super().__init__(device.index)
        self._like, self.vectors = device, device.vectors
        self.waiting = _RecordingQueue(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._like, name)

    def allocate(self, nbytes: int, array: Any = None) -> None:
        """Allocate nothing."""

    def preamble(self, widths: tuple[int, ...], typed: dict[str, str]) -> str:
        return ""

    def build(self, text: str) -> None:
        """Build no program."""

    def kernel(self, program: Any, name: str, signature: str) -> Any:
        return _NoKernel()

    def finish(self) -> None:
        raise _Unfusable


class _NoKernel:
    def __call__(self, *arguments: Any) -> None:
        raise _Unfusable

    start = __call__


class FusedLaunches:
    """Function from contiguous ndarrays to new ones, by launches on an engine's device.

    launches: a kernel's `start`, its sizes, the indices of its arrays among those of a call, and the values behind
    them. made: shapes and dtypes of the arrays that a call allocates, numbered after its inputs; outs: the indices of
    the results. otherwise: the fallback once the engine has another device (a forked child, another number of threads).
    """

    text = ""

    def __init__(
        self, engine: CpuEngine, device: Any, launches: list, made: list, outs: list, otherwise: Callable
    ) -> None:
        self.engine, self.device, self.launches, self.made, self.outs = engine, device, launches, made, outs
        self.otherwise = otherwise

    def __call__(self, *arrays: np.ndarray) -> tuple:
        device = self.device
        if self.engine.fusion_device() is not device:
            return self.otherwise(*arrays)
        held = [*arrays, *[np.empty(shape, dtype) for shape, dtype in self.made]]
        with device.using:
            try:
                blocks = list(map(device.buffer_of, held))
                for start, whole, local, places, values in self.launches:
                    start(whole, local, [blocks[place] for place in places], values)
            finally:
                device.done()
        return tuple([held[place] for place in self.outs])


def fuse_launches(
    engine: CpuEngine, compute: Callable, given: list, outs: list, otherwise: Callable
) -> FusedLaunches | None:
    """Plan the launches of a group; None if the engine cannot run or build it.

    compute: function of a kernel table and the arrays that returns the results. given, outs: shapes and dtypes. A group
    with many steps or arrays becomes several launches.
    """
    device = engine.fusion_device()
    if device is None:
        return None
    planner = _PlanningDevice(device)
    try:
        arrays = [empty(planner, shape, kind_of(dtype)) for shape, dtype in given]
        results = compute(kernels(device), arrays)
        planner.waiting.start()
        if any(r.__class__ is not Array or (r.shape, r.dtype) != out for r, out in zip(results, outs, strict=True)):
            return None
        launches, all_arrays = _plan_launches(device, planner.waiting.chains, arrays)
        places = [all_arrays.index(r) for r in results]
    except (_Unfusable, NotBuiltError, KeyError, RuntimeError, TypeError, ValueError, AttributeError):
        return None
    return FusedLaunches(
        engine, device, launches, [(x.shape, x.dtype) for x in all_arrays[len(arrays) :]], places, otherwise
    )


def _plan_launches(device: Any, chains: list, arrays: list[Array]) -> tuple[list, list[Array]]:
    """Return the launches of the deferred chains, and a call's arrays: the inputs, then those to allocate."""
    all_arrays, launches = list(arrays), []
    for steps, (inputs, results, written) in chains:
        chain = get_fused_chain(device, steps, inputs, written)
        if not chain.fits:
            raise _Unfusable
        whole, local, used, values = chain.launch_arguments(
            steps, inputs, [r for r, w in zip(results, written, strict=True) if w]
        )
        places = []
        for x in used:
            if not any(x is y for y in all_arrays):
                all_arrays.append(x)
            places.append(next(i for i, y in enumerate(all_arrays) if y is x))
        launches.append((chain._start, whole, local, places, values))
    return launches, all_arrays


__all__ = ["FusedLaunches", "fuse_launches"]
