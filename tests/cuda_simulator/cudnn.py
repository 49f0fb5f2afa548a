"""In the place of the package `cudnn` (nvidia-cudnn-frontend): the same classes and names as far as the backend uses
them.

A graph runs on the simulator's memory, computed by the CPU's ops. What cuDNN would refuse is refused: addresses that
are not aligned, operands that are not there, calls out of order. `Cudnn.refuses` and `Cudnn.fails` are for tests, which
say there what cuDNN does not compute; `Cudnn.graphs` is what was built.
"""

from __future__ import annotations

import ctypes
import enum
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import torchlite as torch

VERSION = 91002
WORKSPACE = 4096
TYPES = {"FLOAT": np.float32, "HALF": np.float16, "BFLOAT16": np.uint16}


class GraphNotSupported(Exception):
    """In the place of cudnnGraphNotSupportedError."""


class DataType(enum.Enum):
    NOT_SET, FLOAT, HALF, BFLOAT16 = range(4)


class HeurMode(enum.Enum):
    A, B, FALLBACK = range(3)


class NumericalNote(enum.Enum):
    TENSOR_CORE, DOWN_CONVERT_INPUTS, NONDETERMINISTIC = range(3)


class Tensor:
    """A tensor's description."""

    def __init__(self, dim=(), stride=(), data_type=None, uid=None, name=""):
        self.dim, self.stride, self.data_type, self.uid, self.name, self.is_output = (
            list(dim),
            list(stride),
            data_type,
            uid,
            name,
            False,
        )

    def _set(self, name: str, value: Any) -> Tensor:
        setattr(self, name, value)
        return self

    def set_output(self, value: bool) -> Tensor:
        return self._set("is_output", value)

    def set_uid(self, uid: int) -> Tensor:
        return self._set("uid", uid)

    def set_dim(self, dim: list[int]) -> Tensor:
        return self._set("dim", dim)

    def set_stride(self, stride: list[int]) -> Tensor:
        return self._set("stride", stride)

    def set_data_type(self, data_type: DataType) -> Tensor:
        return self._set("data_type", data_type)

    def cells(self, address: int) -> np.ndarray:
        """The elements in memory."""
        if address % 16:
            raise RuntimeError("CUDNN_STATUS_BAD_PARAM: address is not aligned")
        dtype = np.dtype(TYPES[self.data_type.name])
        size = 1 + sum((n - 1) * s for n, s in zip(self.dim, self.stride, strict=True))
        memory = np.frombuffer((ctypes.c_char * (size * dtype.itemsize)).from_address(address), dtype)
        return np.lib.stride_tricks.as_strided(memory, self.dim, [s * dtype.itemsize for s in self.stride])

    def read(self, pointers: dict[int, int]) -> torch.Tensor:
        cells = self.cells(pointers[self.uid])
        return torch.tensor(
            (cells.astype(np.uint32) << 16).view(np.float32) if cells.dtype == np.uint16 else cells.astype(np.float32)
        )

    def write(self, pointers: dict[int, int], values: torch.Tensor) -> None:
        if self.data_type is DataType.BFLOAT16:
            bits = values.float().numpy().view(np.uint32)
            self.cells(pointers[self.uid])[...] = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
        else:
            self.cells(pointers[self.uid])[...] = values.float().numpy()


class Graph:
    """In the place of `cudnn.pygraph`. Three ways to compute: the first cannot be built, the second is slow."""

    def __init__(self, name: str, io_data_type, intermediate_data_type, compute_data_type, handle, sm_version: int):
        assert isinstance(handle, Handle) and intermediate_data_type is compute_data_type is DataType.FLOAT
        self.cudnn, self.name, self.capability = handle.cudnn, name, sm_version
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.call = ""
        self.how: dict[str, Any] = {}
        self.same_bits = False
        self.unwanted: list[NumericalNote] = []
        self.steps: list[str] = []
        self.executed: list[int] = []
        self._compute: Any = None
        self._chosen: int | None = None

    def tensor(self, dim, stride, data_type, uid, name) -> Tensor:
        self.inputs.append(Tensor(dim, stride, data_type, uid, name))
        return self.inputs[-1]

    def _made(self, call: str, count: int, how: dict[str, Any], compute: Callable) -> list[Tensor]:
        assert how.pop("compute_data_type") is DataType.FLOAT
        self.call, self.how, self._compute = call, how, compute
        self.outputs = [Tensor() for _ in range(count)]
        return self.outputs

    # -- operations --

    def conv_fprop(self, image: Tensor, weight: Tensor, **how) -> Tensor:
        return self._made(
            "conv_fprop", 1, how, lambda read, options: (torch.convolution(read(image), read(weight), None, **options),)
        )[0]

    def conv_dgrad(self, loss: Tensor, filter: Tensor, **how) -> Tensor:
        def compute(read, options):
            x = torch.zeros(self.outputs[0].dim, requires_grad=True)
            torch.convolution(x, read(filter), None, **options).backward(read(loss))
            return (x.grad,)

        return self._made("conv_dgrad", 1, how, compute)[0]

    def conv_wgrad(self, image: Tensor, loss: Tensor, **how) -> Tensor:
        def compute(read, options):
            weight = torch.zeros(self.outputs[0].dim, requires_grad=True)
            torch.convolution(read(image), weight, None, **options).backward(read(loss))
            return (weight.grad,)

        return self._made("conv_wgrad", 1, how, compute)[0]

    def sdpa(self, q: Tensor, k: Tensor, v: Tensor, generate_stats: bool, **how) -> list[Tensor]:
        assert generate_stats

        def compute(read, options):
            scores = _scores(read(q), read(k), **options)
            return scores.softmax(-1) @ read(v), scores.logsumexp(-1, keepdim=True)

        return self._made("sdpa", 2, how, compute)

    def sdpa_backward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        o: Tensor,
        dO: Tensor,
        stats: Tensor,
        use_deterministic_algorithm: bool,
        **how,
    ) -> list[Tensor]:
        def compute(read, options):
            """From the result and the logs, as cuDNN does it."""
            query, key, value, grad = read(q), read(k), read(v), read(dO)
            weights = (_scores(query, key, **options) - read(stats)).exp()
            d = weights * (grad @ value.mT - (grad * read(o)).sum(-1, keepdim=True)) * options["attn_scale"]
            return d @ key, d.mT @ query, weights.mT @ grad

        self.same_bits = use_deterministic_algorithm
        return self._made("sdpa_backward", 3, how, compute)

    # -- from the graph to a plan --

    def validate(self) -> None:
        tensors = [*self.inputs, *self.outputs]
        assert [t.uid for t in tensors] == list(range(1, len(tensors) + 1)) and all(t.is_output for t in self.outputs)
        assert all(len(t.dim) == len(t.stride) > 3 and min(t.dim) > 0 and min(t.stride) > 0 for t in tensors)
        assert all(map(_is_apart, self.outputs))
        self.steps.append("validate")

    def build_operation_graph(self) -> None:
        self._after("validate", "build_operation_graph")

    def create_execution_plans(self, modes: list[HeurMode]) -> None:
        assert modes == [HeurMode.A, HeurMode.FALLBACK]
        self._after("build_operation_graph", "create_execution_plans")

    def deselect_numeric_notes(self, notes: list[NumericalNote]) -> None:
        assert self.steps[-1] == "create_execution_plans"
        self.unwanted = notes

    def check_support(self) -> None:
        self._after("create_execution_plans", "check_support")
        if self.cudnn.refuses(self):
            raise GraphNotSupported("no valid engine configs for this graph")

    def build_plans(self) -> None:
        self._after("check_support", "build_plans")
        self._chosen = 1
        self.cudnn.graphs.append(self)

    def get_execution_plan_count(self) -> int:
        return 3

    def build_plan_at_index(self, index: int) -> None:
        assert "check_support" in self.steps
        if index == 0:
            raise GraphNotSupported("this plan cannot be built")
        if self not in self.cudnn.graphs:
            self.cudnn.graphs.append(self)
        self._chosen = index

    def get_workspace_size(self) -> int:
        assert self._chosen is not None
        return WORKSPACE

    def get_workspace_size_plan_at_index(self, index: int) -> int:
        return WORKSPACE

    def _after(self, before: str, now: str) -> None:
        assert self.steps[-1] == before, f"{now} after {self.steps}"
        self.steps.append(now)

    # -- running --

    def execute(self, pointers: dict[int, int], workspace: int, handle: Handle) -> None:
        assert self._chosen is not None
        self.execute_plan_at_index(pointers, workspace, self._chosen, handle)

    def execute_plan_at_index(self, pointers: dict[int, int], workspace: int, index: int, handle: Handle) -> None:
        tensors = [*self.inputs, *self.outputs]
        assert sorted(pointers) == [t.uid for t in tensors] and all(type(at) is int for at in pointers.values())
        if self.cudnn.fails(self):
            raise RuntimeError("CUDNN_STATUS_EXECUTION_FAILED")
        handle.cudnn.streams.append(handle.stream)
        handle.cudnn.driver.do(handle.stream, lambda: self._run(dict(pointers), workspace, index))

    def _run(self, pointers: dict[int, int], workspace: int, index: int) -> None:
        self.executed.append(index)
        ctypes.memset(workspace, 255, WORKSPACE)
        if index == 1:
            time.sleep(self.cudnn.slowness)
        options = {name: value for name, value in self.how.items() if not name.endswith("_padding")}
        if "pre_padding" in self.how:
            assert self.how["pre_padding"] == self.how["post_padding"]
            spatial = len(self.how["stride"])
            x, weight = self._image_and_weight()
            options |= {
                "padding": self.how["pre_padding"],
                "transposed": False,
                "output_padding": [0] * spatial,
                "groups": x.dim[1] // weight.dim[1],
            }
        with torch.device("cpu"), torch.enable_grad():
            results = self._compute(lambda t: t.read(pointers), options)
        for tensor, values in zip(self.outputs, results, strict=True):
            assert list(values.shape) == list(tensor.dim)
            tensor.write(pointers, values.detach())

    def _image_and_weight(self) -> tuple[Tensor, Tensor]:
        first, second, out = *self.inputs, *self.outputs
        return {"conv_fprop": (first, second), "conv_dgrad": (out, second), "conv_wgrad": (first, out)}[self.call]


def _scores(query, key, attn_scale: float, use_causal_mask: bool):
    scores = query @ key.mT * attn_scale
    if use_causal_mask:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    return scores


def _is_apart(t: Tensor) -> bool:
    """True if no two elements share memory."""
    expected = 1
    for n, step in sorted(zip(t.dim, t.stride, strict=True), key=lambda pair: pair[1]):
        if n != 1 and step < expected:
            return False
        expected = n * step if n != 1 else expected
    return True


class Handle:
    def __init__(self, cudnn: Cudnn):
        self.cudnn, self.stream = cudnn, 0


class Cudnn:
    """The module."""

    data_type, heur_mode, numerical_note, pygraph = DataType, HeurMode, NumericalNote, Graph

    driver: Any  # the simulator's, which knows what a stream does with work

    def __init__(self) -> None:
        self.graphs: list[Graph] = []  # with a plan
        self.streams: list[int] = []  # of each run
        self.handles = 0
        self.slowness = 0.0
        self.refuses: Callable[[Graph], bool] = lambda graph: False
        self.fails: Callable[[Graph], bool] = lambda graph: False

    def backend_version(self) -> int:
        return VERSION

    def create_handle(self) -> Handle:
        self.handles += 1
        return Handle(self)

    def set_stream(self, handle: Handle, stream: int) -> None:
        handle.stream = stream
