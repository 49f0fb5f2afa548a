"""Collectives and messages, each checked against NumPy's answer: every rank knows what all others give."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed import ReduceOp

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex64, torch.complex128]
MOVED = [torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32]
DTYPES = [*FLOATS, *INTEGERS, *COMPLEX, torch.bool]
BITS = [ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR]
ARITHMETIC = [ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.AVG, ReduceOp.PREMUL_SUM]
FACTOR = 3


def ops_of(dtype: torch.dtype) -> list[Any]:
    """The reductions that a dtype has."""
    if dtype.is_complex:
        return [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM]
    if dtype is torch.bool:
        return [ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX, *BITS]
    if dtype.is_floating_point:
        return [*ARITHMETIC, ReduceOp.MIN, ReduceOp.MAX]
    return [*ARITHMETIC, ReduceOp.MIN, ReduceOp.MAX, *BITS]


class Step(NamedTuple):
    """A collective: all arguments that the members must agree on."""

    kind: str
    group: Any
    members: list[int]
    dtype: torch.dtype
    shape: tuple[int, ...]
    op: Any
    root: int  # in the group
    seed: tuple[int, ...]
    gaps: bool = False
    device: str = "cpu"


def data(step: Step, member: int, count: int = 1) -> list[torch.Tensor]:
    """Return a member's input: small integers, so that every order of reduction has the same result."""
    draw = np.random.default_rng([*step.seed, member])
    made = []
    for _ in range(count):
        numbers = draw.integers(0 if step.dtype in INTEGERS else -2, 3, step.shape)
        made.append(torch.from_numpy(np.asarray(numbers, np.float32)).to(step.dtype))
    return made


def placed(step: Step, tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor on the step's device, with gaps between its elements if the step has them."""
    tensor = tensor.to(step.device)
    if not step.gaps:
        return tensor.clone()
    wide = torch.zeros((*tensor.shape, 2), dtype=tensor.dtype, device=step.device)
    view = wide[..., 1]
    view.copy_(tensor)
    return view


def reduced(step: Step, parts: list[torch.Tensor]) -> torch.Tensor:
    """NumPy's answer."""
    if step.dtype is torch.bool:
        by = {ReduceOp.SUM: np.logical_or, ReduceOp.MAX: np.logical_or, ReduceOp.BOR: np.logical_or,
              ReduceOp.BXOR: np.logical_xor}.get(step.op, np.logical_and)  # fmt: skip
        return torch.from_numpy(np.asarray(functools.reduce(by, [part.numpy() for part in parts])))
    narrow = step.dtype in (torch.float16, torch.bfloat16)
    arrays = [(part.float() if narrow else part).numpy() for part in parts]
    if step.op is ReduceOp.PREMUL_SUM or getattr(step.op, "op", None) is ReduceOp.PREMUL_SUM:
        arrays = [array * array.dtype.type(FACTOR) for array in arrays]
    by = {ReduceOp.PRODUCT: np.multiply, ReduceOp.MIN: np.minimum, ReduceOp.MAX: np.maximum,
          ReduceOp.BAND: np.bitwise_and, ReduceOp.BOR: np.bitwise_or, ReduceOp.BXOR: np.bitwise_xor}.get(
        step.op.op, np.add)  # fmt: skip
    out = functools.reduce(by, arrays)
    if step.op is ReduceOp.AVG:
        out = out / len(parts) if out.dtype.kind in "fc" else np.trunc(out / len(parts))
    return torch.from_numpy(np.asarray(out)).to(step.dtype)


def check(step: Step, got: torch.Tensor, wanted: torch.Tensor, what: str = "") -> None:
    """Equal, bit for bit but for an average's last one."""
    got = got.cpu()
    assert got.dtype is wanted.dtype and got.shape == wanted.shape, (step, what, got, wanted)
    if step.dtype in MOVED:
        same = torch.equal(got.to(torch.complex64), wanted.to(torch.complex64))
    elif step.op is ReduceOp.AVG:
        same = torch.allclose(got, wanted, rtol=1e-6 if step.dtype not in (torch.float16, torch.bfloat16) else 1e-2)
    else:
        same = torch.equal(got, wanted)
    assert same, (step, what, got, wanted)


def begin(step: Step, async_op: bool) -> Any:
    """Call the step's collective: a function that waits for it and checks its results."""
    mine = step.members.index(dist.get_rank())
    return _KINDS[step.kind](step, mine, async_op)


def _op(step: Step) -> Any:
    return ReduceOp(ReduceOp.PREMUL_SUM, FACTOR) if step.op is ReduceOp.PREMUL_SUM else step.op


def _ending(work: Any, check_results: Any) -> Any:
    def end() -> None:
        if work is not None:
            assert work.wait() and work.is_completed() and work.exception() is None
        check_results()

    return end


def _all_reduce(step: Step, mine: int, async_op: bool) -> Any:
    every = [data(step, member)[0] for member in range(len(step.members))]
    x = placed(step, every[mine])
    work = dist.all_reduce(x, _op(step), step.group, async_op)
    return _ending(work, lambda: check(step, x, reduced(step, every)))


def _reduce(step: Step, mine: int, async_op: bool) -> Any:
    every = [data(step, member)[0] for member in range(len(step.members))]
    x = placed(step, every[mine])
    work = dist.reduce(x, op=_op(step), group=step.group, async_op=async_op, group_dst=step.root)
    wanted = reduced(step, every) if mine == step.root else every[mine]
    return _ending(work, lambda: check(step, x, wanted))


def _broadcast(step: Step, mine: int, async_op: bool) -> Any:
    x = placed(step, data(step, mine)[0])
    work = dist.broadcast(x, group=step.group, async_op=async_op, group_src=step.root)
    return _ending(work, lambda: check(step, x, data(step, step.root)[0]))


def _all_gather(step: Step, mine: int, async_op: bool) -> Any:
    x = placed(step, data(step, mine)[0])
    out = [torch.empty_like(x) for _ in step.members]
    work = dist.all_gather(out, x, step.group, async_op)
    wanted = [data(step, member)[0] for member in range(len(step.members))]
    return _ending(work, lambda: [check(step, o, w) for o, w in zip(out, wanted, strict=True)])


def _all_gather_into_tensor(step: Step, mine: int, async_op: bool) -> Any:
    x = placed(step, data(step, mine)[0])
    out = torch.empty((len(step.members), *x.shape), dtype=x.dtype, device=x.device)
    work = dist.all_gather_into_tensor(out, x, step.group, async_op)
    wanted = torch.stack([data(step, member)[0] for member in range(len(step.members))])
    return _ending(work, lambda: check(step, out, wanted))


def _gather(step: Step, mine: int, async_op: bool) -> Any:
    x = placed(step, data(step, mine)[0])
    out = [torch.empty_like(x) for _ in step.members] if mine == step.root else None
    work = dist.gather(x, out, group=step.group, async_op=async_op, group_dst=step.root)
    wanted = [data(step, member)[0] for member in range(len(step.members))]
    return _ending(work, lambda: [check(step, o, w) for o, w in zip(out or [], wanted, strict=False)])


def _scatter(step: Step, mine: int, async_op: bool) -> Any:
    parts = data(step, step.root, len(step.members))
    x = placed(step, torch.zeros_like(parts[0]))
    given = [placed(step, part) for part in parts] if mine == step.root else None
    work = dist.scatter(x, given, group=step.group, async_op=async_op, group_src=step.root)
    return _ending(work, lambda: check(step, x, parts[mine]))


def _reduce_scatter(step: Step, mine: int, async_op: bool) -> Any:
    every = [data(step, member, len(step.members)) for member in range(len(step.members))]
    x = placed(step, torch.zeros_like(every[mine][0]))
    work = dist.reduce_scatter(x, [placed(step, part) for part in every[mine]], _op(step), step.group, async_op)
    return _ending(work, lambda: check(step, x, reduced(step, [parts[mine] for parts in every])))


def _reduce_scatter_tensor(step: Step, mine: int, async_op: bool) -> Any:
    every = [torch.stack(data(step, member, len(step.members))) for member in range(len(step.members))]
    x = placed(step, torch.zeros_like(every[mine][0]))
    work = dist.reduce_scatter_tensor(x, placed(step, every[mine]), _op(step), step.group, async_op)
    return _ending(work, lambda: check(step, x, reduced(step, [whole[mine] for whole in every])))


def _all_to_all(step: Step, mine: int, async_op: bool) -> Any:
    count = len(step.members)
    given = [placed(step, part) for part in data(step, mine, count)]
    out = [torch.empty_like(part) for part in given]
    work = dist.all_to_all(out, given, step.group, async_op)
    wanted = [data(step, member, count)[mine] for member in range(count)]
    return _ending(work, lambda: [check(step, o, w) for o, w in zip(out, wanted, strict=True)])


def _all_to_all_single(step: Step, mine: int, async_op: bool) -> Any:
    """Member s sends `(s + r) % 3` rows to member r."""
    count = len(step.members)
    rows = lambda sender: [(sender + receiver) % 3 for receiver in range(count)]
    wide = lambda sender: step._replace(shape=(sum(rows(sender)), *step.shape))
    given = placed(step, data(wide(mine), mine)[0])
    into = [rows(sender)[mine] for sender in range(count)]
    out = placed(step, torch.zeros((sum(into), *step.shape), dtype=step.dtype))
    work = dist.all_to_all_single(out, given, into, rows(mine), step.group, async_op)
    wanted = torch.cat([data(wide(sender), sender)[0].split(rows(sender))[mine] for sender in range(count)])
    return _ending(work, lambda: check(step, out, wanted))


def _ring(step: Step, mine: int, async_op: bool) -> Any:
    """Every member sends two messages to one `root + 1` places further on, and receives in the other order."""
    count = len(step.members)
    by = (step.root + 1) % count
    if not by:
        return lambda: None
    to, source = (mine + by) % count, (mine - by) % count
    first, second = (placed(step, part) for part in data(step, mine, 2))
    into = [torch.empty_like(first), torch.empty_like(second)]
    works = [
        dist.irecv(into[1], group=step.group, tag=2, group_src=source),
        dist.isend(first, group=step.group, tag=1, group_dst=to),
        dist.isend(second, group=step.group, tag=2, group_dst=to),
        dist.irecv(into[0], group=step.group, tag=1, group_src=source),
    ]
    wanted = data(step, source, 2)

    def end() -> None:
        for work in works[:: 1 if step.seed[-1] % 2 else -1]:
            work.wait()
        for got, want in zip(into, wanted, strict=True):
            check(step, got, want)

    return end


def _barrier(step: Step, mine: int, async_op: bool) -> Any:
    return _ending(dist.barrier(step.group, async_op), lambda: None)


_KINDS = {
    "all_reduce": _all_reduce, "reduce": _reduce, "broadcast": _broadcast, "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into_tensor, "gather": _gather, "scatter": _scatter,
    "reduce_scatter": _reduce_scatter, "reduce_scatter_tensor": _reduce_scatter_tensor, "all_to_all": _all_to_all,
    "all_to_all_single": _all_to_all_single, "ring": _ring, "barrier": _barrier,
}  # fmt: skip
KINDS = list(_KINDS)
REDUCING = ["all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor"]
