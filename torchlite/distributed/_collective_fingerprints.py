"""TORCH_DISTRIBUTED_DEBUG=DETAIL: ranks compare a fingerprint of each collective before it begins.

Every rank exchanges a fingerprint: sequence number, operation, shapes, dtypes, devices, reduction, root, splits. If
fingerprints differ, all ranks raise PyTorch's RuntimeError, and no data moves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import torchlite as torch

from ._host_comm_backend import HostCommBackend, reduce_op_of
from ._work import DistBackendError, Work


class CollectiveFingerPrint(NamedTuple):
    """A rank's description of a collective."""

    number: int
    op: str
    shapes: list[list[int]]
    dtypes: list[str]
    devices: list[str]
    reduction: str
    root: int
    splits: list[list[int]]  # elements to and from each rank, where the parts of an exchange may differ

    def __str__(self) -> str:
        words = [f"SequenceNumber={self.number}", f"OpType={self.op}"]
        if self.dtypes:
            words.append(f"TensorShape=[{', '.join(map(str, self.shapes[0] if self.shapes else []))}]")
            words.append(f"TensorDtypes={' '.join(self.dtypes)}")
            words.append(f"TensorDeviceTypes={' '.join(map(_format_tensor_options, self.devices))}")
        return f"CollectiveFingerPrint({', '.join(words)})"

    def differences(self, other: CollectiveFingerPrint) -> str:
        """Return the aspects that differ from another rank's; `_find_split_mismatch` compares splits."""
        found = ""
        if self.number != other.number:
            found += f"\t Sequence number: {self.number}vs {other.number}"
        if self.op != other.op:
            found += f"  Op type: {self.op}vs {other.op}"
        for word, mine, its in (
            ("shapes", *(_join_shapes(each.shapes) for each in (self, other))),
            ("dtypes", " ".join(self.dtypes), " ".join(other.dtypes)),
            ("devices", *(" ".join(map(_format_tensor_options, each.devices)) for each in (self, other))),
        ):
            if mine != its:
                found += f"  Tensor Tensor {word}: {mine}vs {its}"
        if self.reduction != other.reduction:
            found += f"  Reduce op: {self.reduction}vs {other.reduction}"
        if self.root != other.root:
            found += f"  Root rank: {self.root}vs {other.root}"
        return found


def _join_shapes(shapes: list[list[int]]) -> str:
    return ", ".join(" ".join(map(str, shape)) for shape in shapes)


def _format_tensor_options(device: str) -> str:
    return (
        f"TensorOptions(dtype=float (default), device={device}, layout=Strided (default), "
        "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))"
    )


def _find_split_mismatch(prints: Sequence[CollectiveFingerPrint]) -> tuple[int, int, str]:
    """Return the first pair of ranks with different splits, and the message; "" if there is none."""
    if all(each.splits for each in prints):
        for rank, each in enumerate(prints):
            for other, its in enumerate(prints):
                if each.splits[0][other] != its.splits[1][rank]:
                    sent, expected = each.splits[0][other], its.splits[1][rank]
                    words = f"  Splits: Rank {rank} sends {sent} to Rank {other}, which expects {expected}"
                    return rank, other, words
    return 0, 0, ""


def compare_fingerprints(prints: Sequence[CollectiveFingerPrint], rank: int) -> None:
    """Raise RuntimeError if the ranks' fingerprints are inconsistent; every rank finds the same."""
    mine = prints[rank]
    source, to, words = _find_split_mismatch(prints)
    for other, its in enumerate(prints):
        found = mine.differences(its)
        if not found and words and rank != other and ({rank, other} == {source, to} or rank not in (source, to)):
            found = words
        if found:
            raise RuntimeError(
                f"Detected mismatch between collectives on ranks. Rank {rank} is running collective: {mine}, but Rank "
                f"{other} is running collective: {its}.Collectives differ in the following aspects: {found}"
            )
    if words:  # a rank's message to itself
        raise RuntimeError(
            f"Detected mismatch between collectives on ranks. Rank {rank} is running collective: {mine}. Collectives "
            f"differ in the following aspects: {words}"
        )


class CheckedCommBackend(HostCommBackend):
    """Communication backend that compares fingerprints before each collective."""

    _number = 0

    def prepared(self, call: str, how: Any, dtype: torch.dtype) -> Callable[..., Any] | None:
        """Return a fast path only for point-to-point messages: collectives need their check."""
        return super().prepared(call, how, dtype) if call in ("send", "receive") else None

    def alltoall(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None, **more: Any
    ) -> Work:
        """Compare fingerprints, then run `HostCommBackend.alltoall`."""
        splits = [[tensor.numel() for tensor in tensors] for tensors in (inputs, outputs)]
        if all(len(each) == self.size() for each in splits):
            self._compare_fingerprints("ALLTOALL", list(inputs), None, splits)
        return super().alltoall(outputs, inputs, opts, **more)

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int] = (),
        input_split_sizes: Sequence[int] = (),
        opts: Any = None,
        **more: Any,
    ) -> Work:
        """Compare fingerprints, then run `HostCommBackend.alltoall_base`."""
        splits = [
            self._resolve_split_sizes(input, input_split_sizes),
            self._resolve_split_sizes(output, output_split_sizes),
        ]
        self._compare_fingerprints("ALLTOALL_BASE", [input], None, splits)
        return super().alltoall_base(output, input, output_split_sizes, input_split_sizes, opts, **more)

    all_to_all_single = alltoall_base

    def _compare_fingerprints(
        self, op: str, tensors: Sequence[torch.Tensor], opts: Any, splits: Sequence[Sequence[int]] = ()
    ) -> None:
        reduction = reduce_op_of(opts).op.name if hasattr(opts, "reduceOp") else ""
        mine = CollectiveFingerPrint(
            self._number, op, [] if splits else [list(tensor.shape) for tensor in tensors],
            [tensor.dtype.scalar_name for tensor in tensors], [tensor.device.type for tensor in tensors], reduction,
            getattr(opts, "rootRank", -1), [list(each) for each in splits],
        )  # fmt: skip
        compare_fingerprints(
            [CollectiveFingerPrint(*json.loads(each)) for each in self._exchange_fingerprints(mine)], self.rank()
        )
        self._number += 1

    def _exchange_fingerprints(self, mine: CollectiveFingerPrint) -> list[bytes]:
        """Return the fingerprints of all ranks, as JSON."""
        data = np.frombuffer(json.dumps(mine).encode(), np.uint8)
        sizes = np.empty(self.size(), np.int64)
        self._all_gather_or_raise(sizes, np.array([data.size]), mine.op)
        padded = np.zeros(int(sizes.max()), np.uint8)
        padded[: data.size] = data
        every = np.empty((self.size(), padded.size), np.uint8)
        self._all_gather_or_raise(every.reshape(-1), padded, mine.op)
        return [row[:size].tobytes() for row, size in zip(every, sizes.tolist(), strict=True)]

    def _all_gather_or_raise(self, out: np.ndarray, array: np.ndarray, op: str) -> None:
        limit = self._timeout.total_seconds()
        if not self._communicator.all_gather(out, array, "fingerprint").wait(limit):
            raise DistBackendError(
                f"Timed out waiting {round(limit * 1000)}ms for the fingerprints of {op} on rank {self.rank()} of "
                f"{self._title}: not all ranks called a collective"
            )


def _make_argument_getter(index: int) -> Callable[..., Any]:
    return lambda *args: args[index] if isinstance(args[index], list | tuple) else [args[index]]


# By method: PyTorch's name of the operation, and the tensors of its arguments that are alike on all ranks.
_CHECKED: dict[str, tuple[str, Callable[..., Any]]] = {
    "broadcast": ("BROADCAST", _make_argument_getter(0)),
    "allreduce": ("ALLREDUCE", _make_argument_getter(0)),
    "allreduce_coalesced": ("ALLREDUCE_COALESCED", _make_argument_getter(0)),
    "reduce": ("REDUCE", _make_argument_getter(0)),
    "allgather": ("ALLGATHER", _make_argument_getter(1)),
    "_allgather_base": ("_ALLGATHER_BASE", _make_argument_getter(1)),
    "gather": ("GATHER", _make_argument_getter(1)),
    "scatter": ("SCATTER", _make_argument_getter(0)),
    "reduce_scatter": ("REDUCE_SCATTER", lambda output, inputs, *_: inputs[0] if inputs else []),
    "_reduce_scatter_base": ("_REDUCE_SCATTER_BASE", lambda output, input, *_: [input, output]),
    "barrier": ("BARRIER", lambda *_: []),
}


def _make_checked_method(method: str) -> Callable[..., Work]:
    name, tensors_of = _CHECKED[method]
    places = {"barrier": 0, "broadcast": 1, "allreduce": 1, "allreduce_coalesced": 1, "reduce": 1}
    inner, place = getattr(HostCommBackend, method), places.get(method, 2)

    def checked(self: CheckedCommBackend, *args: Any, **kwargs: Any) -> Work:
        opts = kwargs.get("opts", args[place] if len(args) > place else None)
        self._compare_fingerprints(name, tensors_of(*args), opts)
        return inner(self, *args, **kwargs)

    checked.__name__, checked.__doc__ = method, f"Compare fingerprints, then run `HostCommBackend.{method}`."
    return checked


for _method in _CHECKED:
    setattr(CheckedCommBackend, _method, _make_checked_method(_method))
CheckedCommBackend.all_gather_single = CheckedCommBackend._allgather_base  # type: ignore[method-assign]
CheckedCommBackend.reduce_scatter_single = CheckedCommBackend._reduce_scatter_base  # type: ignore[method-assign]
