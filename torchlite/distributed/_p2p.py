"""Point-to-point messages: send, recv, isend, irecv, batch_isend_irecv."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from ._coalescing import collect_work
from ._collectives import check_tensor, resolve_rank
from ._group_registry import _group_or_default, get_global_rank, is_not_member
from ._process_group import ProcessGroup
from ._sync_fast_path import try_fast_path
from ._work import Work


def _check_not_self(group: ProcessGroup, rank: int, kind: str) -> None:
    if group.rank() == rank:
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")


def isend(
    tensor: torch.Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Starts to send a tensor to a rank.

    Do not change the tensor before the `Work` is complete. With two processes::

        x = torch.ones(2)
        work = dist.isend(x, dst=1) if dist.get_rank() == 0 else dist.irecv(x, src=0)
        work.wait()

    Args:
        tensor: The tensor.
        dst: The destination's rank in the world.
        group: The group. Default: the default group.
        tag: Number that the receiver gives too. Default: 0.
        group_dst: The destination's rank in the group, in place of ``dst``.

    Returns:
        A `Work`; ``None`` if this process is not in the group.

    Raises:
        ValueError: The destination is this rank, or both or none of the ranks are given.
        TypeError: ``tensor`` is not a tensor.
    """
    found = _group_or_default(group)
    if is_not_member(found, "isend"):
        return None
    return found.send([tensor], _destination_rank(found, tensor, dst, group_dst), tag)


def _destination_rank(group: ProcessGroup, tensor: torch.Tensor, dst: int | None, group_dst: int | None) -> int:
    to = resolve_rank(group, dst, group_dst)
    check_tensor(tensor, "tensor")
    _check_not_self(group, to, "destination")
    return to


def irecv(
    tensor: torch.Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Starts to receive a tensor from a rank; `isend` has an example.

    Args:
        tensor: Receives the data; of the size and dtype that were sent.
        src: The source's rank in the world. Default: any rank.
        group: The group. Default: the default group.
        tag: Number that the sender gives too. Default: 0.
        group_src: The source's rank in the group, in place of ``src``.

    Returns:
        A `Work`; ``None`` if this process is not in the group.

    Raises:
        ValueError: The source is this rank, or both ranks are given.
        TypeError: ``tensor`` is not a tensor.
    """
    check_tensor(tensor, "tensor")
    found = _group_or_default(group)
    if is_not_member(found, "irecv"):
        return None
    if src is None and group_src is None:
        return found.recv_anysource([tensor], tag)
    return found.recv([tensor], _source_rank(found, src, group_src), tag)


def _source_rank(group: ProcessGroup, src: int | None, group_src: int | None) -> int:
    source = resolve_rank(group, src, group_src)
    _check_not_self(group, source, "source")
    return source


def send(
    tensor: torch.Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends a tensor to a rank. Afterwards the tensor may be changed.

    With two processes::

        x = torch.ones(2)
        if dist.get_rank() == 0:
            dist.send(x, dst=1)
        else:
            dist.recv(x, src=0)

    Args:
        tensor: The tensor.
        dst: The destination's rank in the world.
        group: The group. Default: the default group.
        tag: Number that the receiver gives too. Default: 0.
        group_dst: The destination's rank in the group, in place of ``dst``.

    Raises:
        ValueError: The destination is this rank, or both or none of the ranks are given.
        TypeError: ``tensor`` is not a tensor.
        DistBackendError: The group's timeout passes.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.send(torch.ones(2), dst=0)
        Traceback (most recent call last):
        ValueError: Invalid destination rank: destination rank should not be the same ...
        >>> dist.destroy_process_group()
    """
    found = _group_or_default(group)
    if is_not_member(found, "isend"):
        return
    to = _destination_rank(found, tensor, dst, group_dst)
    if try_fast_path(found, "send", (to, tag), None, tensor):
        return
    work = found.send([tensor], to, tag)
    if work is not None and not collect_work(work):
        work.wait()


def recv(
    tensor: torch.Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receives a tensor from a rank, and returns the sender's rank; `send` has an example.

    Args:
        tensor: Receives the data; of the size and dtype that were sent.
        src: The source's rank in the world. Default: any rank.
        group: The group. Default: the default group.
        tag: Number that the sender gives too. Default: 0.
        group_src: The source's rank in the group, in place of ``src``.

    Returns:
        The sender's rank in the world; -1 if this process is not in the group.

    Raises:
        ValueError: The source is this rank, or both ranks are given.
        TypeError: ``tensor`` is not a tensor.
        DistBackendError: The group's timeout passes.
    """
    check_tensor(tensor, "tensor")
    found = _group_or_default(group)
    if is_not_member(found, "irecv"):
        return -1
    if src is None and group_src is None:
        work = found.recv_anysource([tensor], tag)
        work.wait()
        return get_global_rank(found, work._source_rank())
    source = _source_rank(found, src, group_src)
    if not try_fast_path(found, "receive", (source, tag), tensor):
        work = found.recv([tensor], source, tag)
        if not collect_work(work):
            work.wait()
    return resolve_rank(found, src, group_src, of_world_wanted=True)


class P2POp:
    """Message of `batch_isend_irecv`, which has an example.

    Args:
        op: `isend` or `irecv`.
        tensor: The tensor.
        peer: The other rank, in the world.
        group: The group. Default: the default group.
        tag: Number that both ranks give. Default: 0.
        group_peer: The other rank, in the group, in place of ``peer``.

    Raises:
        ValueError: ``op`` is another function, the peer is this rank, or both or none of the ranks are given.
        TypeError: ``tensor`` is not a tensor.
    """

    def __init__(
        self,
        op: Any,
        tensor: torch.Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = _group_or_default(group)
        self.peer = resolve_rank(self.group, peer, group_peer, of_world_wanted=True)
        self.group_peer = resolve_rank(self.group, peer, group_peer)
        _check_not_self(self.group, self.group_peer, "peer")

    def __repr__(self) -> str:
        mine, other = self.group.rank(), self.group_peer
        source, target = (mine, other) if self.op is isend else (other, mine)
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, group_dst={target},  "
            f"{self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Starts several messages of one group.

    Each of several processes sends to the next one and receives from the one before::

        rank, size = dist.get_rank(), dist.get_world_size()
        sent, received = torch.full((2,), float(rank)), torch.empty(2)
        messages = [
            dist.P2POp(dist.isend, sent, (rank + 1) % size),
            dist.P2POp(dist.irecv, received, (rank - 1) % size),
        ]
        for work in dist.batch_isend_irecv(messages):
            work.wait()

    Args:
        p2p_op_list: The messages, `P2POp` objects.

    Returns:
        A `Work` for each message.

    Raises:
        ValueError: An item is not a `P2POp`, or the groups differ.
        IndexError: The list is empty.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if not p2p_op_list:
        raise IndexError("list index out of range")
    if any(op.group != p2p_op_list[0].group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = [op.op(op.tensor, group=op.group, tag=op.tag, **_peer_rank(op)) for op in p2p_op_list]
    return [work for work in works if work is not None]


def _peer_rank(op: P2POp) -> dict[str, int]:
    return {"group_dst" if op.op is isend else "group_src": op.group_peer}
