"""Public collectives: argument checks, and calls of the process group's methods."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import torchlite as torch

from ._coalescing import collect_work
from ._collective_options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from ._group_registry import _get_default_group, _group_or_default, get_global_rank, get_group_rank, is_not_member
from ._process_group import ProcessGroup
from ._reduce_ops import ReduceOp
from ._sync_fast_path import try_fast_path
from ._work import Work

_FIXED = (ReduceOp.MIN, ReduceOp.MAX, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def check_tensor(value: Any, name: str) -> None:
    """Raise TypeError for a value that is not a tensor."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def check_tensors(value: Any, name: str) -> None:
    """Raise TypeError for a value that is not a list of tensors."""
    head = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got "
    if not isinstance(value, list):
        raise TypeError(f"{head}{type(value)} instead.")
    if not all(isinstance(tensor, torch.Tensor) for tensor in value):
        raise TypeError(f"{head}{type(value)} with elements of type {[type(tensor) for tensor in value]}.")


def check_dtypes(*tensors: Any) -> None:
    """Raise ValueError for tensors of different dtypes."""
    lists: Iterable[Any] = (value if isinstance(value, list) else [value] for value in tensors)
    last = None
    for tensor in itertools.chain.from_iterable(lists):
        if last is not None and tensor.dtype is not last:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {last} and  {tensor.dtype}")
        last = tensor.dtype


def resolve_rank(group: ProcessGroup, of_world: int | None, in_group: int | None, of_world_wanted: bool = False) -> int:
    """Return the rank in a group, from a rank in the world or in the group."""
    if in_group is not None:
        if of_world is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return get_global_rank(group, in_group) if of_world_wanted else in_group
    if of_world is None:
        raise ValueError("Must specify global_rank or group_rank")
    if of_world_wanted:
        return of_world
    if group is _get_default_group():
        return of_world
    return get_group_rank(group, of_world)


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Returns whether a reduction supports complex tensors.

    Args:
        reduceOp: The reduction.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.supports_complex(dist.ReduceOp.SUM), dist.supports_complex(dist.ReduceOp.MAX)
        (True, False)
    """
    return reduceOp not in _FIXED


def _return_work(work: Any, async_op: bool) -> Any:
    """Return the work if asynchronous, else wait for it."""
    if work is None:
        return None
    if collect_work(work):
        return work if async_op else None
    if async_op:
        return work
    work.wait()
    return None


def _check_complex(op: Any, dtype: torch.dtype) -> None:
    if dtype.is_complex and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")


def broadcast(
    tensor: torch.Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copies the tensor of one rank to the tensors of all.

    Args:
        tensor: On the source, the data; on the others, a tensor of the same size and dtype that receives them.
        src: The source's rank in the world.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.
        group_src: The source's rank in the group, in place of ``src``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        ValueError: Both or none of ``src`` and ``group_src`` are given.
        TypeError: ``tensor`` is not a tensor.
        DistBackendError: The group's timeout passes.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.arange(3)
        >>> dist.broadcast(x, src=0)
        >>> x
        tensor([0, 1, 2])
        >>> dist.destroy_process_group()
    """
    found = _group_or_default(group)
    if is_not_member(found, "broadcast"):
        return None
    root = resolve_rank(found, src, group_src)
    check_tensor(tensor, "tensor")
    if not async_op and try_fast_path(found, "broadcast", root, tensor):
        return None
    return _return_work(found.broadcast([tensor], BroadcastOptions(rootRank=root, asyncOp=async_op)), async_op)


def all_reduce(
    tensor: torch.Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Reduces the tensors of all ranks, in place, to the same result on each.

    Args:
        tensor: The tensor, of the same size and dtype on each rank.
        op: The reduction, one of `ReduceOp`. Default: ``ReduceOp.SUM``.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        ValueError: ``op`` does not support complex tensors.
        TypeError: ``tensor`` is not a tensor.
        DistBackendError: The group's timeout passes.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0])
        >>> work = dist.all_reduce(x, async_op=True)
        >>> work.wait()
        True
        >>> x  # the sum of all ranks' tensors: here of one
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    if is_not_member(group, "all_reduce"):
        return None
    _check_complex(op, tensor.dtype)
    found = _group_or_default(group)
    if not async_op and try_fast_path(found, "all_reduce", op, tensor):
        return None
    return _return_work(found.allreduce([tensor], AllreduceOptions(reduceOp=op, asyncOp=async_op)), async_op)


def all_reduce_coalesced(
    tensors: list[torch.Tensor], op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Reduces several tensors of one dtype as `all_reduce` does, in one call.

    Args:
        tensors: The tensors.
        op: The reduction, one of `ReduceOp`. Default: ``ReduceOp.SUM``.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a future. Default: ``False``.

    Returns:
        A `torch.futures.Future` if ``async_op`` is set, else ``None``.

    Raises:
        TypeError: An argument is not a tensor, or not a list of tensors.
        DistBackendError: The group's timeout passes. Raised where the call or its `Work` waits.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.all_reduce_coalesced([torch.ones(2), torch.zeros(3)])
        >>> dist.destroy_process_group()
    """
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
    check_tensors(tensors, "tensor")
    check_dtypes(tensors)
    if is_not_member(group, "all_reduce_coalesced"):
        return None
    _check_complex(op, tensors[0].dtype if tensors else torch.float32)
    options = AllreduceCoalescedOptions(reduceOp=op, asyncOp=async_op)
    work = _group_or_default(group).allreduce_coalesced(tensors, options)
    if async_op:
        return work.get_future()
    work.wait()
    return None


def reduce(
    tensor: torch.Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduces the tensors of all ranks to the tensor of one.

    The tensors of the other ranks keep no defined value.

    Args:
        tensor: The tensor, of the same size and dtype on each rank.
        dst: The destination's rank in the world.
        op: The reduction, one of `ReduceOp`. Default: ``ReduceOp.SUM``.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.
        group_dst: The destination's rank in the group, in place of ``dst``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        ValueError: Both or none of ``dst`` and ``group_dst`` are given, or ``op`` does not support complex tensors.
        TypeError: ``tensor`` is not a tensor.
        DistBackendError: The group's timeout passes.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0])
        >>> dist.reduce(x, dst=0)
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    found = _group_or_default(group)
    if is_not_member(found, "reduce"):
        return None
    root = resolve_rank(found, dst, group_dst)
    check_tensor(tensor, "tensor")
    _check_complex(op, tensor.dtype)
    return _return_work(found.reduce([tensor], ReduceOptions(reduceOp=op, rootRank=root, asyncOp=async_op)), async_op)


def all_gather(
    tensor_list: list[torch.Tensor], tensor: torch.Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gathers the tensors of all ranks in a list, on each.

    Args:
        tensor_list: A tensor for each rank, of the size and dtype of ``tensor``; receives the results.
        tensor: This rank's tensor, of the same size on each rank.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        TypeError: An argument is not a tensor, or not a list of tensors.
        DistBackendError: The group's timeout passes. Raised where the call or its `Work` waits.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> every = [torch.empty(2) for _ in range(dist.get_world_size())]
        >>> dist.all_gather(every, torch.tensor([1.0, 2.0]))
        >>> every
        [tensor([1., 2.])]
        >>> dist.destroy_process_group()
    """
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_dtypes(tensor_list, tensor)
    if is_not_member(group, "all_gather"):
        return None
    found = _group_or_default(group)
    return _return_work(found.allgather([tensor_list], [tensor], AllgatherOptions(asyncOp=async_op)), async_op)


def all_gather_into_tensor(
    output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gathers the tensors of all ranks in one tensor, on each.

    Args:
        output_tensor: Receives the results: concatenated or stacked along dimension 0, as its shape says.
        input_tensor: This rank's tensor, of the same size on each rank.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        TypeError: An argument is not a tensor, or not a list of tensors.
        DistBackendError: The group's timeout passes. Raised where the call or its `Work` waits.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> out = torch.empty(dist.get_world_size() * 2)
        >>> dist.all_gather_into_tensor(out, torch.tensor([1.0, 2.0]))
        >>> out
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    if is_not_member(group, "all_gather_into_tensor"):
        return None
    found = _group_or_default(group)
    if not async_op and try_fast_path(found, "all_gather", None, output_tensor, input_tensor):
        return None
    return _return_work(
        found._allgather_base(output_tensor, input_tensor, AllgatherOptions(asyncOp=async_op)), async_op
    )


def _all_gather_base(
    output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_gather_into_tensor`."""
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


all_gather_single = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: list[list[torch.Tensor]],
    input_tensor_list: list[torch.Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Gathers several tensors as `all_gather` does, in one call.

    Args:
        output_tensor_lists: For each rank, a list of tensors that receive that rank's.
        input_tensor_list: This rank's tensors.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a future. Default: ``False``.

    Returns:
        A `torch.futures.Future` if ``async_op`` is set, else ``None``.

    Raises:
        TypeError: An argument is not a tensor, or not a list of tensors.
        DistBackendError: The group's timeout passes. Raised where the call or its `Work` waits.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> every = [[torch.empty(2), torch.empty(1)]]
        >>> dist.all_gather_coalesced(every, [torch.tensor([1.0, 2.0]), torch.tensor([3.0])])
        >>> every
        [[tensor([1., 2.]), tensor([3.])]]
        >>> dist.destroy_process_group()
    """
    if is_not_member(group, "all_gather_coalesced"):
        return None
    check_tensors(input_tensor_list, "input_tensor_list")
    check_dtypes(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for output in output_tensor_lists:
        check_tensors(output, "output_tensor_lists")
        check_dtypes(output)
    work = _group_or_default(group).allgather_coalesced(
        output_tensor_lists, input_tensor_list, AllgatherOptions(asyncOp=async_op)
    )
    if async_op:
        return work.get_future()
    work.wait()
    return None


def _check_list_of(mine: bool, given: Any, name: str, place: str) -> None:
    if mine and not given:
        raise ValueError(f"Argument ``{name}`` must be specified on {place} rank.")
    if given and not mine:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{place} ranks.")


def gather(
    tensor: torch.Tensor,
    gather_list: list[torch.Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gathers the tensors of all ranks in a list on one.

    Args:
        tensor: This rank's tensor, of the same size on each rank.
        gather_list: On the destination, a tensor for each rank; ``None`` on the others.
        dst: The destination's rank in the world. Default: 0.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.
        group_dst: The destination's rank in the group, in place of ``dst``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        ValueError: The destination has no list, another rank has one, or both ranks are given.
        TypeError: An argument is not a tensor, or not a list of tensors.
        DistBackendError: The group's timeout passes.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> every = [torch.empty(2)] if dist.get_rank() == 0 else None
        >>> dist.gather(torch.tensor([1.0, 2.0]), every, dst=0)
        >>> every
        [tensor([1., 2.])]
        >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    if gather_list:
        check_tensors(gather_list, "gather_list")
    else:
        gather_list = []
    check_dtypes(tensor, gather_list)
    found = _group_or_default(group)
    if is_not_member(found, "gather"):
        return None
    root = resolve_rank(found, 0 if dst is None and group_dst is None else dst, group_dst)
    mine = found.rank() == root
    _check_list_of(mine, gather_list, "gather_list", "destination")
    options = GatherOptions(rootRank=root, asyncOp=async_op)
    return _return_work(found.gather([gather_list] if mine else [], [tensor], options), async_op)


def scatter(
    tensor: torch.Tensor,
    scatter_list: list[torch.Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Sends each rank one tensor of a list that one rank has.

    Args:
        tensor: Receives this rank's tensor, of the same size on each rank.
        scatter_list: On the source, a tensor for each rank; ``None`` on the others.
        src: The source's rank in the world. Default: 0.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.
        group_src: The source's rank in the group, in place of ``src``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        ValueError: The source has no list, another rank has one, or both ranks are given.
        TypeError: An argument is not a tensor, or not a list of tensors.
        DistBackendError: The group's timeout passes.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> out = torch.empty(2)
        >>> dist.scatter(out, [torch.tensor([1.0, 2.0])], src=0)
        >>> out
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    if scatter_list:
        check_tensors(scatter_list, "scatter_list")
    else:
        scatter_list = []
    check_dtypes(tensor, scatter_list)
    found = _group_or_default(group)
    if is_not_member(found, "scatter"):
        return None
    root = resolve_rank(found, 0 if src is None and group_src is None else src, group_src)
    mine = found.rank() == root
    _check_list_of(mine, scatter_list, "scatter_list", "source")
    options = ScatterOptions(rootRank=root, asyncOp=async_op)
    return _return_work(found.scatter([tensor], [scatter_list] if mine else [], options), async_op)


def reduce_scatter(
    output: torch.Tensor,
    input_list: list[torch.Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces the lists of all ranks, and gives rank ``r`` the result at position ``r``.

    Args:
        output: Receives this rank's result.
        input_list: A tensor for each rank, of the size of ``output``.
        op: The reduction, one of `ReduceOp`. Default: ``ReduceOp.SUM``.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        TypeError: An argument is not a tensor, or not a list of tensors.
        DistBackendError: The group's timeout passes. Raised where the call or its `Work` waits.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> out = torch.empty(2)
        >>> dist.reduce_scatter(out, [torch.tensor([1.0, 2.0])])
        >>> out
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    check_dtypes(output, input_list)
    if is_not_member(group, "reduce_scatter"):
        return None
    _check_complex(op, output.dtype)
    options = ReduceScatterOptions(reduceOp=op, asyncOp=async_op)
    return _return_work(_group_or_default(group).reduce_scatter([output], [input_list], options), async_op)


def reduce_scatter_tensor(
    output: torch.Tensor,
    input: torch.Tensor,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces the inputs of all ranks, and gives rank ``r`` part ``r`` of the result.

    Args:
        output: Receives this rank's part.
        input: The parts of all ranks, concatenated or stacked along dimension 0.
        op: The reduction, one of `ReduceOp`. Default: ``ReduceOp.SUM``.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        TypeError: An argument is not a tensor, or not a list of tensors.
        DistBackendError: The group's timeout passes. Raised where the call or its `Work` waits.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> out = torch.empty(2)
        >>> dist.reduce_scatter_tensor(out, torch.tensor([1.0, 2.0]))
        >>> out
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    if is_not_member(group, "reduce_scatter_tensor"):
        return None
    _check_complex(op, input.dtype)
    found = _group_or_default(group)
    if not async_op and try_fast_path(found, "reduce_scatter", op, output, input):
        return None
    options = ReduceScatterOptions(reduceOp=op, asyncOp=async_op)
    return _return_work(found._reduce_scatter_base(output, input, options), async_op)


def _reduce_scatter_base(
    output: torch.Tensor, input: torch.Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`reduce_scatter_tensor`."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


reduce_scatter_single = reduce_scatter_tensor


def all_to_all_single(
    output: torch.Tensor,
    input: torch.Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Sends part ``r`` of each rank's input to rank ``r``, which concatenates what it receives.

    Args:
        output: Receives the parts, along dimension 0.
        input: The parts to send, along dimension 0.
        output_split_sizes: Rows that come from each rank. Default: equal parts.
        input_split_sizes: Rows that go to each rank. Default: equal parts.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        TypeError: An argument is not a tensor, or not a list of tensors.
        DistBackendError: The group's timeout passes. Raised where the call or its `Work` waits.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> out = torch.empty(2)
        >>> dist.all_to_all_single(out, torch.tensor([1.0, 2.0]))
        >>> out
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    if is_not_member(group, "all_to_all_single"):
        return None
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_dtypes(output, input)
    found = _group_or_default(group)
    if not (async_op or output_split_sizes or input_split_sizes) and try_fast_path(
        found, "all_to_all", None, output, input
    ):
        return None
    work = found.alltoall_base(
        output, input, output_split_sizes or [], input_split_sizes or [], AllToAllOptions(asyncOp=async_op)
    )
    return _return_work(work, async_op)


def all_to_all(
    output_tensor_list: list[torch.Tensor],
    input_tensor_list: list[torch.Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Sends tensor ``r`` of each rank's list to rank ``r``.

    Args:
        output_tensor_list: A tensor for each rank; receives what that rank sends.
        input_tensor_list: A tensor for each rank, to send.
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        TypeError: An argument is not a tensor, or not a list of tensors.
        DistBackendError: The group's timeout passes. Raised where the call or its `Work` waits.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> out = [torch.empty(2)]
        >>> dist.all_to_all(out, [torch.tensor([1.0, 2.0])])
        >>> out
        [tensor([1., 2.])]
        >>> dist.destroy_process_group()
    """
    if is_not_member(group, "all_to_all"):
        return None
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    check_dtypes(output_tensor_list, input_tensor_list)
    found = _group_or_default(group)
    return _return_work(
        found.alltoall(output_tensor_list, input_tensor_list, AllToAllOptions(asyncOp=async_op)), async_op
    )


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Waits until all ranks have called it.

    Args:
        group: The group. Default: the default group.
        async_op: Whether to return at once, with a `Work` to wait for. Default: ``False``.
        device_ids: Devices of the ranks, for backends of devices. Default: ``None``.
        timeout: The limit. Default: the group's.

    Returns:
        A `Work` if ``async_op`` is set, else ``None``. ``None`` also if this process is not in the group.

    Raises:
        TypeError: ``device_ids`` is not a list.
        DistBackendError: The time passes.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.barrier()
        >>> dist.destroy_process_group()
    """
    if is_not_member(group, "barrier"):
        return None
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    options = BarrierOptions(asyncOp=async_op, timeout=timeout, device_ids=device_ids or ())
    return _return_work(_group_or_default(group).barrier(options), async_op)


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Waits until all ranks have called it; on an error, rank 0 names a rank that did not.

    Args:
        group: The group. Default: the default group.
        timeout: The limit. Default: the group's.
        wait_all_ranks: Whether the error names all of them. Default: ``False``.

    Raises:
        ValueError: The backend is neither "gloo" nor "mpi".
        RuntimeError: A rank does not come in time.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.monitored_barrier()
        >>> dist.destroy_process_group()
    """
    if is_not_member(group, "monitored_barrier"):
        return
    if isinstance(timeout, float | int):
        import warnings

        warnings.warn(
            f"Please specify timeout arg as a timedelta. Converting current value of {timeout} assuming it represents "
            "seconds",
            stacklevel=2,
        )
        timeout = timedelta(seconds=timeout)
    found = _group_or_default(group)
    if found.name() not in ("gloo", "mpi"):
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")
    found._get_backend().monitored_barrier(timeout, wait_all_ranks)
