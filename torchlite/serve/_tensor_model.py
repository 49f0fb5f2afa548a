"""A model of tensors: a module with named inputs and outputs, called for one request or for several joined ones."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import torchlite as torch

from . import _wire
from ._errors import InvalidRequest, ModelFailed, RowsMixed, ServeError
from ._protocol import InferRequest, TensorSpec, check_inputs
from ._statistics import StageTimes

Answer = dict[str, np.ndarray]
# What a program raises for inputs that it cannot compute with.
_REFUSALS = (ValueError, TypeError, RuntimeError, LookupError, ArithmeticError, AssertionError, NotImplementedError)


@dataclass(frozen=True)
class Padding:
    """Inputs that may differ in one size and are filled up with a value, and outputs that are cut back."""

    axis: int
    inputs: dict[str, float]
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stream:
    """A request whose answers are sent one by one, while the client wants them."""

    request: InferRequest
    emit: Callable[[Answer], None]
    is_cancelled: Callable[[], bool]


@dataclass
class TensorModel:
    """A module and what is known of its inputs and outputs. `is_code`: errors are of user code, not of the request."""

    module: Any
    platform: str
    inputs: list[TensorSpec]
    outputs: list[TensorSpec]
    device: str = "cpu"
    can_batch: bool = False
    padding: Padding | None = None
    is_code: bool = False
    streams: bool = False
    mixes_rows: bool = field(default=False, init=False)  # its rows are not independent, as a joined call has shown

    def without_code(self) -> TensorModel:
        """Return the model as the server's process knows it, where worker processes compute."""
        made = copy.copy(self)
        made.module = None
        return made

    def check(self, request: InferRequest) -> None:
        """Raise InvalidRequest for a request that does not fit."""
        if self.inputs:
            check_inputs(request, self.inputs)

    def signature(self, request: InferRequest) -> Any:
        """Return what requests must have in common to be joined; None if this one is computed alone."""
        if not self.can_batch or self.mixes_rows or not request.inputs:
            return None
        rows = {array.shape[0] if array.ndim else -1 for array in request.inputs.values()}
        if len(rows) != 1 or rows <= {-1, 0}:
            return None
        return tuple((name, array.dtype.str, self._free_shape(name, array)) for name, array in request.inputs.items())

    def _free_shape(self, name: str, array: np.ndarray) -> tuple[int, ...]:
        """Return the sizes of a row; -1 for one that padding makes equal."""
        sizes = list(array.shape[1:])
        if self.padding is not None and name in self.padding.inputs and array.ndim > self.padding.axis:
            sizes[self.padding.axis - 1] = -1
        return tuple(sizes)

    @staticmethod
    def rows(request: InferRequest) -> int:
        """Return the number of rows of a request."""
        first = next(iter(request.inputs.values()), None)
        return int(first.shape[0]) if first is not None and first.ndim else 1

    @staticmethod
    def size(request: InferRequest) -> int:
        """Return the bytes of a request's inputs."""
        return sum(array.nbytes for array in request.inputs.values())

    @property
    def can_stay(self) -> bool:
        """True if calls may run in the event loop's thread: it is a program of a file, which only computes."""
        return self.device == "cpu" and not self.is_code and not self.streams

    def run(self, requests: Sequence[InferRequest | Stream]) -> tuple[list[Any], StageTimes]:
        """Return the answer to each request: the module is called once. A stream is the only one of its call."""
        start = time.perf_counter()
        if isinstance(requests[0], Stream):
            self._send_stream(requests[0])
            return [None], StageTimes(compute_infer=time.perf_counter() - start)
        return self._run_joined(requests, start)  # type: ignore[arg-type]

    def _send_stream(self, stream: Stream) -> None:
        for answer in self._stream(stream.request):
            if stream.is_cancelled():
                return
            stream.emit(answer)

    def _run_joined(self, requests: Sequence[InferRequest], start: float) -> tuple[list[Any], StageTimes]:
        lengths = [self._padded_length(request) for request in requests]
        arrays = self._joined([request.inputs for request in requests], lengths)
        given = [_wire.tensor_of(array, self.device) for array in arrays]
        ready = time.perf_counter()
        with torch.inference_mode():
            result = self._call(given)
        done = time.perf_counter()
        answer = self._named(result)
        answers: list[Any] = [answer]
        if len(requests) > 1:
            answers = self._split(requests, answer, lengths)
        times = StageTimes(ready - start, done - ready, time.perf_counter() - done)
        return answers, times

    def _stream(self, request: InferRequest) -> Iterator[Answer]:
        """Yield the answers to a request: each that a generator yields, or the one of another module."""
        given = [_wire.tensor_of(array, self.device) for array in self._ordered(request.inputs)]
        with torch.inference_mode():
            result = self._call(given, stream=True)
            if not hasattr(result, "__next__"):
                yield self._named(result)
                return
            try:
                for part in result:
                    yield self._named(part)
            except ServeError:
                raise
            except _REFUSALS as error:
                raise self._refusal(error) from error

    def _call(self, given: list[Any], stream: bool = False) -> Any:
        try:
            result = self.module(*given)
        except ServeError:
            raise
        except _REFUSALS as error:
            raise self._refusal(error) from error
        if hasattr(result, "__next__") and not stream:
            result.close()
            raise InvalidRequest("the model answers in parts: use generate_stream, or ModelStreamInfer of gRPC")
        return result

    def _refusal(self, error: Exception) -> ServeError:
        text = " ".join(str(error).split())[:500]
        if self.is_code:
            return ModelFailed(f"the model's code raised {type(error).__name__}: {text}")
        return InvalidRequest(f"the model cannot compute with these inputs: {text}")

    def _ordered(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        return [inputs[spec.name] for spec in self.inputs] if self.inputs else list(inputs.values())

    def _padded_length(self, request: InferRequest) -> int:
        """Return the size along the padded axis; 0 without padding."""
        if self.padding is None:
            return 0
        found = [a.shape[self.padding.axis] for n, a in request.inputs.items() if n in self.padding.inputs]
        return max(found, default=0)

    def _joined(self, parts: list[dict[str, np.ndarray]], lengths: list[int]) -> list[np.ndarray]:
        """Return the module's inputs: the rows of all requests, padded to one length."""
        if len(parts) == 1:
            return self._ordered(parts[0])
        longest = max(lengths)
        names = [spec.name for spec in self.inputs] or list(parts[0])
        return [np.concatenate([self._padded(name, part[name], longest) for part in parts]) for name in names]

    def _padded(self, name: str, array: np.ndarray, longest: int) -> np.ndarray:
        if self.padding is None or name not in self.padding.inputs:
            return array
        missing = longest - array.shape[self.padding.axis]
        if not missing:
            return array
        widths = [(0, missing if axis == self.padding.axis else 0) for axis in range(array.ndim)]
        return np.pad(array, widths, constant_values=self.padding.inputs[name])

    def _named(self, result: Any) -> Answer:
        """Return a module's result as arrays by the outputs' names."""
        if isinstance(result, dict):
            pairs = [(str(name), value) for name, value in result.items()]
        else:
            values = list(result) if isinstance(result, tuple | list) else [result]
            names = [spec.name for spec in self.outputs]
            if len(names) != len(values):
                names = [f"output_{place}" for place in range(len(values))]
            pairs = list(zip(names, values, strict=True))
        try:
            answer = {name: _wire.array_of(value) for name, value in pairs}
            for array in answer.values():
                _wire.datatype_of(array.dtype)
        except (ValueError, TypeError) as error:
            raise ModelFailed(f"the model's result is no tensor of the protocol: {error}") from error
        return answer

    def _split(self, requests: Sequence[InferRequest], answer: Answer, lengths: list[int]) -> list[Answer]:
        """Return the rows of each request. Without a row for each, the model is not called for several again."""
        counts = [self.rows(request) for request in requests]
        if any(array.ndim == 0 or array.shape[0] != sum(counts) for array in answer.values()):
            self.mixes_rows = True
            raise RowsMixed("the model's results have another number of rows than its inputs")
        ends = np.cumsum(counts)
        found = []
        for count, end, length in zip(counts, ends, lengths, strict=True):
            rows = {name: array[end - count : end] for name, array in answer.items()}
            found.append({name: self._cut(name, array, length) for name, array in rows.items()})
        return found

    def _cut(self, name: str, array: np.ndarray, length: int) -> np.ndarray:
        """Return an output without what belongs to padding."""
        if self.padding is None or name not in self.padding.outputs or array.ndim <= self.padding.axis:
            return array
        return array[(slice(None),) * self.padding.axis + (slice(length),)]
