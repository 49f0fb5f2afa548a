"""Communication backend over host memory (`backend="mpi"` and `"gloo"`): ProcessGroup's methods on a transport.

A method checks its arguments, stages tensors in the transport's memory, and returns a Work whose completion writes the
received data to the tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any

import numpy as np

import torchlite as torch

from . import _host_staging
from ._reduce_ops import RedOpType, ReduceOp
from ._transports import Communicator, Request
from ._work import DistBackendError, MessageWork, Work

_NAMES = {"gloo": "ProcessGroupGloo", "mpi": "ProcessGroupMPI", "nccl": "ProcessGroupNCCL"}
# Names of the reductions in transports; AVG and PREMUL_SUM are sums with a scale.
_TRANSPORT_OPS = {kind: "SUM" if kind.name in ("AVG", "PREMUL_SUM") else kind.name for kind in RedOpType}
_BITWISE_OPS = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)
_CONTROL = 1 << 20  # tags of `monitored_barrier`, which user messages cannot have


def reduce_op_of(opts: Any) -> Any:
    """Return the reduction of an options object."""
    op = getattr(opts, "reduceOp", opts)
    if op.__class__ is RedOpType:
        return op
    if op is None:
        op = RedOpType.SUM
    if not isinstance(op, ReduceOp):
        raise TypeError(f"Invalid reduce op: expected a ReduceOp, but got {type(op)}")
    return op


def _element_signature(tensor: torch.Tensor, op: Any = None) -> str:
    """Return the element signature that all ranks must share: the dtype, and the reduction if the transport's name
    differs.
    """
    dtype = str(tensor.dtype)[6:]
    return dtype if op is None or _TRANSPORT_OPS[op.op] == op.op.name else f"{op.op.name} of {dtype}"


def _timeout_in_options(opts: Any) -> timedelta | None:
    return getattr(opts, "timeout", None)


class HostCommBackend:
    """Communication backend of one group, with ProcessGroup's methods."""

    supports_coalescing = False
    supports_splitting = True
    staging: Any = _host_staging  # copies tensors to the transport's memory

    def __init__(self, communicator: Communicator, name: str, timeout: timedelta, title: str) -> None:
        self._communicator, self._name, self._timeout, self._title = communicator, name, timeout, title

    def rank(self) -> int:
        """Return this process's rank in the group."""
        return self._communicator.rank

    def size(self) -> int:
        """Return the size of the group."""
        return self._communicator.size

    def name(self) -> str:
        """Return the backend's name."""
        return self._name

    getBackendName = name

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the timeout of later calls."""
        self._timeout = timeout

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """Free the transport's communicator."""
        self._communicator.free()

    abort = shutdown

    # One tensor from or to all.

    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any = None, *, timeout: Any = None) -> Work:
        """Copy the root's tensors to all ranks."""
        root = getattr(opts, "rootRank", opts) or 0
        self._check_root("broadcast", root)
        array, finish = self.staging.output_buffer(
            self._check_single_tensor("broadcast", tensors), read=self.rank() == root
        )
        request = self._communicator.broadcast(array, root, _element_signature(tensors[0]))
        return self._make_work(request, "broadcast", opts, finish, tensors)

    def allreduce(self, tensors: Sequence[torch.Tensor], opts: Any = None, *, timeout: Any = None) -> Work:
        """Reduce all tensors over the ranks."""
        tensor, op = self._check_single_tensor("allreduce", tensors), reduce_op_of(opts)
        array, finish = self._reduction_buffer(tensor, op)
        how = self._transport_reduce_op(op, tensor.dtype)
        request = self._communicator.all_reduce(array, how, _element_signature(tensor, op))
        return self._make_work(request, "allreduce", opts, finish, tensors)

    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Work:
        """`allreduce` of several tensors of one dtype in one message."""
        op = reduce_op_of(opts)
        tensors = list(tensors)
        if not tensors:
            raise RuntimeError(f"{self._title_of('allreduce_coalesced')}: requires non-empty tensor list")
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        array, finish = self._reduction_buffer(flat, op)

        def split() -> None:
            finish()
            with torch.no_grad():
                parts = flat.split([tensor.numel() for tensor in tensors])
                for tensor, part in zip(tensors, parts, strict=True):
                    tensor.detach().copy_(part.reshape(tensor.shape))

        sizes = ",".join(str(tensor.numel()) for tensor in tensors)
        what = f"{_element_signature(flat, op)} in parts of {sizes}"
        request = self._communicator.all_reduce(array, self._transport_reduce_op(op, flat.dtype), what)
        return self._make_work(request, "allreduce_coalesced", opts, split, tensors)

    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any = None, *args: Any, timeout: Any = None) -> Work:
        """Reduce over the ranks to the root's tensor."""
        tensor, op, root = (
            self._check_single_tensor("reduce", tensors),
            reduce_op_of(opts),
            getattr(opts, "rootRank", 0),
        )
        self._check_root("reduce", root)
        if self.rank() == root:
            array, finish = self._reduction_buffer(tensor, op)
        else:
            array, finish = self.staging.input_buffer(self._prepare_input(tensor, op)), None
        how = self._transport_reduce_op(op, tensor.dtype)
        request = self._communicator.reduce(array, how, root, _element_signature(tensor, op))
        return self._make_work(request, "reduce", opts, finish, tensors)

    # Parts of one size.

    def allgather(
        self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], opts: Any = None, **_: Any
    ) -> Work:
        """Gather the tensors of all in each output list."""
        tensor, out = (
            self._check_single_tensor("allgather", inputs),
            self._check_tensor_list("allgather", "output", outputs),
        )
        self._check_alike("allgather", out, tensor, "output tensor list at index 0")
        array, finish = self.staging.split_output_buffer(out)
        request = self._communicator.all_gather(array, self.staging.input_buffer(tensor), _element_signature(tensor))
        return self._make_work(request, "allgather", opts, finish, out)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None, **_: Any) -> Work:
        """Gather the tensors of all in `output`, concatenated."""
        self._check_parts("allgather", output, input)
        array, finish = self.staging.output_buffer(output)
        request = self._communicator.all_gather(array, self.staging.input_buffer(input), _element_signature(input))
        return self._make_work(request, "allgather_into_tensor", opts, finish, [output])

    all_gather_single = _allgather_base

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        """`allgather` of several tensors: `outputs[r]` receives rank r's."""
        if len(outputs) != self.size():
            raise RuntimeError("output tensor lists should have one for each rank")
        works = [
            self.allgather([[outputs[rank][i] for rank in range(self.size())]], [tensor], opts)
            for i, tensor in enumerate(inputs)
        ]
        return CombinedWork(works)

    def allgather_into_tensor_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        """`_allgather_base` of several tensors."""
        return CombinedWork([self._allgather_base(o, i, opts) for o, i in zip(outputs, inputs, strict=True)])

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def gather(
        self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], opts: Any = None, **_: Any
    ) -> Work:
        """Gather the tensors of all in the root's output list."""
        tensor, root = self._check_single_tensor("gather", inputs), getattr(opts, "rootRank", 0)
        self._check_root("gather", root)
        array, finish, out = None, None, []
        if self.rank() == root:
            if len(outputs) != 1:
                raise RuntimeError(f"{self._title_of('gather')}: requires a single-element output list")
            if len(out := list(outputs[0])) != self.size():
                raise RuntimeError(
                    f"{self._title_of('gather')}: Incorrect output list size {len(out)}. Output list size should be "
                    f"{self.size()}, same as size of the process group."
                )
            self._check_alike("gather", out, tensor, "output")
            array, finish = self.staging.split_output_buffer(out)
        request = self._communicator.gather(array, self.staging.input_buffer(tensor), root, _element_signature(tensor))
        return self._make_work(request, "gather", opts, finish, out)

    def scatter(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[Sequence[torch.Tensor]], opts: Any = None, **_: Any
    ) -> Work:
        """Scatter the root's input list over the outputs."""
        tensor, root = self._check_single_tensor("scatter", outputs), getattr(opts, "rootRank", 0)
        self._check_root("scatter", root)
        array = None
        if self.rank() == root:
            if len(inputs) != 1:
                raise RuntimeError(f"{self._title_of('scatter')}: requires a single-element input list")
            if len(inputs[0]) != self.size():
                raise RuntimeError(
                    f"{self._title_of('scatter')}: Incorrect input list size {len(inputs[0])}. Input list size should "
                    f"be {self.size()}, same as size of the process group."
                )
            self._check_alike("scatter", inputs[0], tensor, "input")
            array = self.staging.concat_input_buffer(inputs[0])
        into, finish = self.staging.output_buffer(tensor)
        request = self._communicator.scatter(into, array, root, _element_signature(tensor))
        return self._make_work(request, "scatter", opts, finish, outputs)

    def reduce_scatter(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[Sequence[torch.Tensor]], opts: Any = None, **_: Any
    ) -> Work:
        """Reduce all input lists and scatter the result; parts may differ in size."""
        tensor, parts = self._check_single_tensor("reduce_scatter", outputs), list(inputs[0]) if inputs else []
        if len(parts) != self.size():
            raise RuntimeError("invalid input tensor list size, must be world size")
        for i, part in enumerate(parts):
            self._check_dtype("reduce_scatter", part, tensor, i)
        if parts[self.rank()].numel() != tensor.numel():
            raise RuntimeError(
                f"{self._title_of('reduce_scatter')}: invalid tensor size at index {self.rank()} (expected "
                f"{_format_shape(tensor)}, got {_format_shape(parts[self.rank()])})"
            )
        flat = torch.cat([part.detach().reshape(-1) for part in parts])
        return self._reduce_scattered(tensor, flat, [part.numel() for part in parts], opts, "reduce_scatter")

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None, **_: Any) -> Work:
        """Reduce all inputs and scatter the result."""
        self._check_parts("reduce_scatter", input, output)
        return self._reduce_scattered(output, input, [output.numel()] * self.size(), opts, "reduce_scatter_tensor")

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        """`_reduce_scatter_base` of several tensors."""
        return CombinedWork([self._reduce_scatter_base(o, i, opts) for o, i in zip(outputs, inputs, strict=True)])

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def _reduce_scattered(
        self, output: torch.Tensor, input: torch.Tensor, counts: list[int], opts: Any, what: str
    ) -> Work:
        op = reduce_op_of(opts)
        parts = self._prepare_input(input, op)
        into = output if parts.dtype is output.dtype else torch.empty_like(output, dtype=parts.dtype)
        array, back = self.staging.output_buffer(into)
        request = self._communicator.reduce_scatter(
            array,
            self.staging.input_buffer(parts),
            self._transport_reduce_op(op, input.dtype),
            counts,
            _element_signature(input, op),
        )
        return self._make_work(request, what, opts, self._make_write_back(back, into, output, op), [output])

    # From each to each.

    def alltoall(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None, **_: Any
    ) -> Work:
        """Send `inputs[r]` to rank r; receive its tensor in `outputs[r]`."""
        for tensors, word in ((inputs, "input"), (outputs, "output")):
            if len(tensors) != self.size():
                raise RuntimeError(
                    f"{self._title_of('alltoall')}: {word} tensor list size {len(tensors)} does not match world size "
                    f"{self.size()}"
                )
        for i, tensor in enumerate([*inputs, *outputs]):
            self._check_dtype("alltoall", tensor, inputs[0], i)
        array, finish = self.staging.split_output_buffer(outputs)
        counts = [tensor.numel() for tensor in outputs]
        request = self._communicator.all_to_all(
            array,
            self.staging.concat_input_buffer(inputs),
            counts,
            [t.numel() for t in inputs],
            _element_signature(inputs[0]),
        )
        return self._make_work(request, "alltoall", opts, finish, outputs)

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int] = (),
        input_split_sizes: Sequence[int] = (),
        opts: Any = None,
        **_: Any,
    ) -> Work:
        """Exchange rows of `input` with each rank, by the split sizes; receive in `output`."""
        if output.dtype is not input.dtype:
            raise RuntimeError("Tensors are not equal in data type")
        counts, into = (
            self._resolve_split_sizes(input, input_split_sizes),
            self._resolve_split_sizes(output, output_split_sizes),
        )
        array, finish = self.staging.output_buffer(output)
        request = self._communicator.all_to_all(
            array, self.staging.input_buffer(input), into, counts, _element_signature(input)
        )
        return self._make_work(request, "alltoall_base", opts, finish, [output])

    all_to_all_single = alltoall_base

    def _resolve_split_sizes(self, tensor: torch.Tensor, sizes: Sequence[int] | None) -> list[int]:
        rows = tensor.shape[0] if tensor.dim() else 0
        if not sizes:
            if rows % self.size():
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            sizes = [rows // self.size()] * self.size()
        if len(sizes) != self.size():
            raise RuntimeError("Number of tensor splits not equal to group size")
        if sum(sizes) != rows:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        row = tensor.numel() // rows if rows else 0
        return [size * row for size in sizes]

    # From one to another.

    def send(self, tensors: Sequence[torch.Tensor], dst: int, tag: int = 0) -> Work:
        """Send a tensor to a rank of the group."""
        self._check_peer("send", dst, tag)
        tensor = self._check_single_tensor("send", tensors)
        request = self._communicator.send(self.staging.input_buffer(tensor), dst, tag, _element_signature(tensor))
        return self._make_work(request, f"send to rank {dst}", None, None, [])

    def recv(self, tensors: Sequence[torch.Tensor], src: int, tag: int = 0) -> Work:
        """Receive a tensor of the sent size from a rank of the group."""
        self._check_peer("recv", src, tag)
        return self._start_receive(tensors, src, tag, f"recv from rank {src}")

    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int = 0) -> Work:
        """Receive from any rank: the work's `_source_rank()` returns the sender."""
        self._check_peer("recv_anysource", 0, tag)
        return self._start_receive(tensors, None, tag, "recv from any rank")

    def _start_receive(self, tensors: Sequence[torch.Tensor], src: int | None, tag: int, what: str) -> Work:
        tensor = self._check_single_tensor("recv", tensors)
        array, finish = self.staging.output_buffer(tensor)
        request = self._communicator.receive(array, src, tag, _element_signature(tensor))
        return self._make_work(request, what, None, finish, tensors, receives=True)

    def barrier(self, opts: Any = None, **_: Any) -> Work:
        """Complete when all ranks have called it."""
        return self._make_work(self._communicator.barrier(), "barrier", opts, None, [])

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Barrier whose error, on rank 0, names the missing ranks."""
        limit = self._timeout if timeout is None else timeout
        milliseconds = round(limit.total_seconds() * 1000)
        word = np.zeros(1, np.uint8)
        if self.rank():
            self._communicator.send(word, 0, _CONTROL).wait(limit.total_seconds())
            answer = self._communicator.receive(word, 0, _CONTROL + 1)
            if not answer.wait(limit.total_seconds()):
                answer.cancel()
                raise DistBackendError(
                    f"Rank {self.rank()} successfully reached monitoredBarrier, but received errors while waiting for "
                    "send/recv from rank 0. Please check rank 0 logs for faulty rank."
                )
            return
        words = np.zeros(self.size(), np.uint8)
        waiting = {r: self._communicator.receive(words[r : r + 1], r, _CONTROL) for r in range(1, self.size())}
        missing: list[int] = []
        end = monotonic() + limit.total_seconds()
        for rank, request in waiting.items():
            if not request.wait(max(0.0, end - monotonic())):
                request.cancel()
                missing.append(rank)
                if not wait_all_ranks:
                    break
        if missing:
            for request in waiting.values():
                request.cancel()
            ranks = f"Rank {missing[0]}" if len(missing) == 1 else f"Ranks {', '.join(map(str, missing))}"
            raise DistBackendError(f"{ranks} failed to pass monitoredBarrier in {milliseconds} ms")
        for request in [self._communicator.send(word, r, _CONTROL + 1) for r in range(1, self.size())]:
            request.wait(limit.total_seconds())

    # Shared implementation.

    def prepared(self, call: str, how: Any, dtype: torch.dtype) -> Callable[..., Any] | None:
        """Return the transport's prepared call for host elements of a dtype; None if it needs conversion, or lacks
        one.
        """
        prepare = getattr(self._communicator, "prepared", None)
        if prepare is None or dtype.np.kind not in "biufc":
            return None
        if call in ("all_reduce", "reduce_scatter"):
            if (
                how.__class__ is not RedOpType
                or how.name != _TRANSPORT_OPS[how]
                or not self.staging.has_native_reduce(dtype)
            ):
                return None
            self._check_op(how, dtype)
            return prepare(call, dtype.np, how.name, str(dtype)[6:])
        if call in ("send", "receive") and (how[1] < 0 or not 0 <= how[0] < self.size()):
            return None
        if call == "broadcast" and not 0 <= how < self.size():
            return None
        return prepare(call, dtype.np, how, str(dtype)[6:])

    def _make_work(
        self,
        request: Request,
        what: str,
        opts: Any,
        finish: Callable[[], Any] | None,
        results: Any,
        receives: bool = False,
    ) -> Work:
        words = (what, self._communicator.rank, self._title)
        return MessageWork(request, words, _timeout_in_options(opts) or self._timeout, finish, results, receives)

    def _transport_reduce_op(self, op: ReduceOp, dtype: torch.dtype) -> str:
        name = _TRANSPORT_OPS[op.op]
        return f"{name} of {str(dtype)[6:]}" if self._is_sum_of_halves(op, dtype) else name

    def _is_sum_of_halves(self, op: ReduceOp, dtype: torch.dtype) -> bool:
        """True if tensors of two bytes an element are sent and added as they are, which halves the messages."""
        return op.op is RedOpType.SUM and dtype in self.staging.SUMMED_HALVES

    def _prepare_input(self, tensor: torch.Tensor, op: ReduceOp) -> torch.Tensor:
        """Return the tensor to reduce: itself, or widened or scaled."""
        self._check_op(op.op, tensor.dtype)
        if self._is_sum_of_halves(op, tensor.dtype):
            return tensor
        wide = self.staging.widen(tensor)
        if op.op is RedOpType.PREMUL_SUM:
            with torch.no_grad():
                wide = (wide * op.factor).to(wide.dtype)
        return wide

    def _check_op(self, kind: RedOpType, dtype: torch.dtype) -> None:
        if kind in _BITWISE_OPS and (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")
        if dtype.is_complex and kind in (RedOpType.MIN, RedOpType.MAX, RedOpType.PRODUCT, *_BITWISE_OPS):
            if kind is not RedOpType.PRODUCT:
                raise ValueError(f"all_reduce does not support {kind.name} on complex tensors")

    def _reduction_buffer(self, tensor: torch.Tensor, op: ReduceOp) -> tuple[np.ndarray, Callable[[], None]]:
        """Return the buffer in which a tensor is reduced, and the function that writes the result back."""
        wide = self._prepare_input(tensor, op)
        array, back = self.staging.output_buffer(wide, read=True)
        return array, self._make_write_back(back, wide, tensor, op)

    def _make_write_back(
        self, back: Callable[[], None], wide: torch.Tensor, tensor: torch.Tensor, op: ReduceOp
    ) -> Callable[[], None]:
        average = op.op is RedOpType.AVG

        def write_back() -> None:
            back()
            if average or wide is not tensor:
                with torch.no_grad():
                    if average:
                        mode = None if wide.is_floating_point() or wide.is_complex() else "trunc"
                        wide.detach().div_(self.size(), rounding_mode=mode)
                    if wide is not tensor:
                        tensor.detach().copy_(wide)

        return write_back

    # Checks with the messages of PyTorch's Gloo.

    def _title_of(self, call: str) -> str:
        return f"{_NAMES.get(self._name, self._name)}::{call}"

    def _check_single_tensor(self, call: str, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        if len(tensors) != 1:
            raise RuntimeError(f"{self._title_of(call)}: requires a single-element tensor list")
        tensor = tensors[0]
        if tensor.layout is not torch.strided:
            raise RuntimeError(f"{self._title_of(call)}: unsupported layout")
        return tensor

    def _check_tensor_list(self, call: str, word: str, lists: Sequence[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
        if len(lists) != 1:
            raise RuntimeError(f"{self._title_of(call)}: requires a single-element {word} list")
        tensors = list(lists[0])
        if len(tensors) != self.size():
            raise RuntimeError(
                f"{self._title_of(call)}: invalid {word} tensor list at index 0 (expected length {self.size()}, got "
                f"{len(tensors)})"
            )
        return tensors

    def _check_dtype(self, call: str, tensor: torch.Tensor, like: torch.Tensor, i: int) -> None:
        if tensor.dtype is not like.dtype:
            raise RuntimeError(
                f"{self._title_of(call)}: invalid tensor type at index {i} (expected {like.dtype}, got {tensor.dtype})"
            )

    def _check_alike(self, call: str, tensors: Sequence[torch.Tensor], like: torch.Tensor, what: str) -> None:
        for i, tensor in enumerate(tensors):
            self._check_dtype(call, tensor, like, i)
            if tensor.numel() != like.numel():
                raise RuntimeError(
                    f"{self._title_of(call)}: invalid tensor size at index {i} (expected {_format_shape(like)}, got "
                    f"{_format_shape(tensor)})"
                )

    def _check_parts(self, call: str, whole: torch.Tensor, part: torch.Tensor) -> None:
        self._check_dtype(call, whole, part, 0)
        if whole.numel() != part.numel() * self.size():
            raise RuntimeError(
                f"{self._title_of(call)}: invalid tensor size (expected {part.numel() * self.size()} elements, got "
                f"{whole.numel()})"
            )

    def _check_root(self, call: str, root: int) -> None:
        if not 0 <= root < self.size():
            raise RuntimeError(f"{self._title_of(call)}: invalid root rank: {root}")

    def _check_peer(self, call: str, rank: int, tag: int) -> None:
        if tag < 0:
            raise RuntimeError("Tag must be nonnegative")
        if not 0 <= rank < self.size():
            raise RuntimeError(f"{self._title_of(call)}: invalid rank {rank} in a group of {self.size()}")


class CombinedWork(Work):
    """Several works with one wait."""

    def __init__(self, works: Sequence[Work]) -> None:
        self.works = list(works)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for all."""
        for work in self.works:
            work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        """True if all are complete."""
        states = [work.is_completed() for work in self.works]  # asking moves each of them on
        return all(states)

    def exception(self) -> BaseException | None:
        """Return the first error."""
        return next((work.exception() for work in self.works if work.exception() is not None), None)

    def result(self) -> Any:
        """Return the tensors that the works wrote."""
        return [tensor for work in self.works for tensor in work.result()]

    def get_future(self) -> Any:
        """Return a future of all results."""
        from ._work import PolledFuture

        future = PolledFuture(lambda: complete_future(self.is_completed()), lambda: complete_future(self.wait()))

        def complete_future(done: bool) -> None:
            if done and not future._done:
                future.set_result(self.result())

        return future


def _format_shape(tensor: torch.Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))})"
