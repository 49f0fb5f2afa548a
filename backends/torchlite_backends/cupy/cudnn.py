"""cuDNN graphs through the package `nvidia-cudnn-frontend`, built once per shape and cached.

Unsupported cases (dtype, size, device) run on our own kernels; `Library.refused` records the reasons.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from torchlite._dispatch.backend import OutOfMemoryError
from torchlite._settings.backend_flags import FLAGS
from torchlite_backends.device_runtime.core.array import Array

_MIN_VERSION = 90000
_MAX_CACHED_PLANS = 4096
_ALIGNED = 16  # bytes; the alignment that cuDNN assumes for every address
# The kinds that are for cuDNN, by its names.
TYPES = {"f32": "FLOAT", "f16": "HALF", "bf16": "BFLOAT16"}


@functools.cache
def import_frontend() -> Any:
    """Return the package's module if it is installed and finds cuDNN 9, else None."""
    try:
        import cudnn

        return cudnn if cudnn.backend_version() >= _MIN_VERSION else None
    except Exception:  # any failure to load has a fallback
        return None


class Tensor(NamedTuple):
    """Tensor of a graph: shape, strides in elements, and dtype. Its index among the operands is its uid - 1."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    kind: str


class Graph:
    """Graph under construction: `take` adds an input, `give` describes an output, in the order of the arrays of a
    run.
    """

    def __init__(self, cudnn: Any, handle: Any, capability: int, kind: str):
        self.cudnn, self._count = cudnn, 0
        self.float = cudnn.data_type.FLOAT
        self.made = cudnn.pygraph(
            name="torchlite",
            io_data_type=self._cudnn_type(kind),
            intermediate_data_type=self.float,
            compute_data_type=self.float,
            handle=handle,
            sm_version=capability,
        )

    def _cudnn_type(self, kind: str) -> Any:
        return getattr(self.cudnn.data_type, TYPES[kind])

    def take(self, t: Tensor) -> Any:
        self._count += 1
        return self.made.tensor(
            dim=list(t.shape),
            stride=list(t.steps),
            data_type=self._cudnn_type(t.kind),
            uid=self._count,
            name=f"tensor {self._count}",
        )

    def give(self, output: Any, t: Tensor) -> None:
        self._count += 1
        output.set_output(True).set_uid(self._count).set_dim(list(t.shape)).set_stride(list(t.steps)).set_data_type(
            self._cudnn_type(t.kind)
        )


class Plan(NamedTuple):
    """A built graph and its workspace size in bytes."""

    graph: Any
    workspace: int


class Library:
    """cuDNN on one device. One thread at a time uses its handle and plans."""

    def __init__(self, device: Any, cudnn: Any):
        self.device, self.cudnn = device, cudnn
        self.capability = device.properties["major"] * 10 + device.properties["minor"]
        self.plans = device.kept(
            "cudnn", _MAX_CACHED_PLANS
        )  # plan; None if cuDNN does not support it; before the build, the number of requests
        self.refused: dict[Any, str] = {}
        self.captured: dict[int, Plan] = {}  # stay as long as the device: a captured graph starts their kernels again
        self.runs = 0
        self._lock = threading.RLock()
        self._handle: Any = None
        self._stream: int | None = None

    def run(
        self, key: tuple, kind: str, describe: Callable[[Graph], Any], arrays: list[Array], patience: int = 0
    ) -> bool:
        """Run the graph of a key on its inputs and outputs; `describe` adds its operations when it is built.

        Return False if cuDNN does not compute it. With `patience` it is built only after that many earlier requests.
        """
        if self.device.waiting.steps:
            self.device.waiting.start()
        pointers = {uid: x.data_ptr() for uid, x in enumerate(arrays, 1)}
        with self._lock, self.device.driver.current():
            plan = self.plans.get(key, 0)
            if plan.__class__ is int:
                if plan < patience:
                    self.plans[key] = plan + 1
                    return False
                plan = self._build(key, kind, describe, pointers)
            if plan is None:
                return False
            try:
                self._execute(plan, pointers)
            except OutOfMemoryError:
                return False
            except Exception as error:  # cuDNN's exceptions have no common base
                self._record_refusal(key, error)
                return False
            self.runs += 1
            if self.device.capturing:
                self.captured[id(plan.graph)] = plan
            return True

    def _execute(self, plan: Plan, pointers: dict[int, int]) -> None:
        handle = self._handle_in_current_stream()
        block = self.device.allocate(plan.workspace)
        plan.graph.execute(pointers, block.ptr, handle=handle)

    def _handle_in_current_stream(self) -> Any:
        """Return the handle, set to the calling thread's stream."""
        if self._handle is None:
            self._handle = self.cudnn.create_handle()
        stream = self.device.driver.stream().ptr
        if stream != self._stream:
            self.cudnn.set_stream(handle=self._handle, stream=stream)
            self._stream = stream
        return self._handle

    def _record_refusal(self, key: tuple, error: Exception) -> None:
        """Record that cuDNN cannot serve a key; a failure during graph capture is not recorded, as it may succeed
        later.
        """
        if not self.device.capturing:
            self.plans[key] = None
            if len(self.refused) < _MAX_CACHED_PLANS:
                self.refused[key] = f"{type(error).__name__}: {error}"

    def _build(self, key: tuple, kind: str, describe: Callable[[Graph], Any], pointers: dict[int, int]) -> Plan | None:
        try:
            graph = Graph(self.cudnn, self._handle_in_current_stream(), self.capability, kind)
            describe(graph)
            plan = self._plan_graph(graph.made, kind, pointers)
        except Exception as error:  # cuDNN's exceptions have no common base
            self._record_refusal(key, error)
            return None
        self.plans[key] = plan
        return plan

    def _plan_graph(self, graph: Any, kind: str, pointers: dict[int, int]) -> Plan:
        cudnn = self.cudnn
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        notes = [getattr(cudnn.numerical_note, name) for name in _excluded_engine_notes(kind)]
        if notes:
            graph.deselect_numeric_notes(notes)
        graph.check_support()
        if FLAGS.cudnn_benchmark and not self.device.capturing:
            return self._find_fastest_plan(graph, pointers)
        graph.build_plans()
        return Plan(graph, graph.get_workspace_size())

    def _find_fastest_plan(self, graph: Any, pointers: dict[int, int]) -> Plan:
        """Return the fastest plan that the heuristics propose, timed on the given arrays.

        The returned graph is built for the winner.
        """
        found: list[tuple[float, int]] = []
        for index in range(graph.get_execution_plan_count()):
            try:
                graph.build_plan_at_index(index)
                found.append((self._time_plan(graph, index, pointers), index))
            except Exception:  # unsupported here
                continue
            if len(found) == FLAGS.cudnn_benchmark_limit:
                break
        if not found:
            raise RuntimeError("none of cuDNN's ways works")
        graph.build_plan_at_index(min(found)[1])  # selects it
        return Plan(graph, graph.get_workspace_size())

    def _time_plan(self, graph: Any, index: int, pointers: dict[int, int]) -> float:
        driver, handle = self.device.driver, self._handle_in_current_stream()
        stream = driver.stream().ptr
        block = self.device.allocate(graph.get_workspace_size_plan_at_index(index))
        graph.execute_plan_at_index(pointers, block.ptr, index, handle=handle)
        start = driver.event(True, stream)
        graph.execute_plan_at_index(pointers, block.ptr, index, handle=handle)
        end = driver.event(True, stream)
        driver.wait_event(end)
        return driver.milliseconds(start, end)

    def statistics(self) -> dict[str, int]:
        """Return how many graphs ran, how many are cached, and how many cuDNN refused."""
        return {
            "runs": self.runs,
            "plans": sum(isinstance(plan, Plan) for plan in list(self.plans.values())),
            "refused": len(self.refused),
        }


def _excluded_engine_notes(kind: str) -> list[str]:
    """Return cuDNN's notes of engines that the settings rule out."""
    names = []
    if kind == "f32":
        names += ["DOWN_CONVERT_INPUTS"] if FLAGS.tf32("conv") else ["DOWN_CONVERT_INPUTS", "TENSOR_CORE"]
    if is_deterministic():
        names.append("NONDETERMINISTIC")
    return names


def is_deterministic() -> bool:
    """True if a setting requires deterministic results."""
    return FLAGS.cudnn_deterministic or FLAGS.deterministic


def get_library(device: Any) -> Library | None:
    """Return cuDNN on a device; None if it is missing or switched off."""
    if not FLAGS.cudnn_enabled:
        return None
    found = device.state.get("cudnn", device)
    if found is device:
        cudnn = device.driver.cudnn()
        found = device.state.setdefault("cudnn", None if cudnn is None else Library(device, cudnn))
    return found


def is_aligned(x: Array) -> bool:
    """True if cuDNN may read an array at its address."""
    return x.offset * x.dtype.itemsize % _ALIGNED == 0
