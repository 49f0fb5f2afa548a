"""PowerSGD communication hook: gradients sent as low-rank products (Vogels, Karimireddy, Jaggi, NeurIPS 2019)."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed._grad_bucket import GradBucket

from .default_hooks import _allreduce_fut, _default_group

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

logger = logging.getLogger(__name__)


def _orthogonalize(matrices: Any, epsilon: float = 0) -> None:
    """Orthonormalise the columns of each matrix of a batch in place."""
    rank = matrices.shape[2]
    if rank > 2 and matrices.dtype not in (torch.float16, torch.bfloat16):
        matrices.copy_(torch.linalg.qr(matrices)[0])
        return
    for i in range(rank):
        column = matrices[:, :, i : i + 1]
        column /= column.norm(dim=1, keepdim=True) + epsilon
        if i + 1 < rank:
            rest = matrices[:, :, i + 1 :]
            rest -= (column * rest).sum(1, keepdim=True) * column


def _should_compress(rows: int, columns: int, rank: int, least: float) -> tuple[bool, int, int]:
    """Return whether a matrix is worth compressing, and its elements before and after."""
    before, after = rows * columns, (rows + columns) * rank
    return after * least < before, before, after


class PowerSGDState:
    """State of the PowerSGD hooks between iterations.

    Args:
        process_group: The group; ``None`` for the default group.
        matrix_approximation_rank: The rank of the products that approximate matrices. Default: 1.
        start_powerSGD_iter: The number of iterations without compression. Default: 1000.
        min_compression_rate: A matrix that does not become that many times smaller is not compressed. Default: 2.
        use_error_feedback: Whether the error of the compression is added to the next gradients. Default: ``True``.
        warm_start: Whether an iteration begins with the last one's matrices. Default: ``True``.
        orthogonalization_epsilon: Added to norms when matrices are made orthogonal. Default: 0.
        random_seed: The seed of the first matrices. Default: 0.
        compression_stats_logging_frequency: Iterations between two log messages. Default: 10000.
        batch_tensors_with_same_shape: Whether matrices of one shape are multiplied together. Default: ``False``.

    Raises:
        ValueError: ``start_powerSGD_iter`` is at most 1, with error feedback or warm start: the buckets change after
            the
            first iteration.

    Example:
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState
        >>> PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=10).compression_stats()
        (0, 0, 0)

    References:
        - T. Vogels, S. P. Karimireddy, M. Jaggi. PowerSGD: practical low-rank gradient compression for distributed
          optimization. 2019.
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Any] = {}
        self.p_memory_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[int, Any] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self) -> dict[str, Any]:
        logger.warning("NOTE: Process group is not serializable and excluded from a saved state.")
        return {name: value for name, value in self.__dict__.items() if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        logger.warning("NOTE: Process group will be set to a default group (i.e. the world size).")
        self.process_group = dist.distributed_c10d._get_default_group()
        self.__dict__.update(state)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts an iteration, at its last bucket.

        Args:
            bucket: The bucket.
        """
        self.iter += bucket.is_last()
        if self.iter == self.start_powerSGD_iter:
            logger.info("Start to apply PowerSGD after %s iterations.", self.iter)

    def compression_stats(self) -> tuple[float, int, int]:
        """Returns the rate of compression, and the numbers of elements before and after."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after else 0, before, after

    def _report(self, bucket: GradBucket) -> None:
        if bucket.is_last() and self.iter >= self.next_stats_report:
            rate, before, after = self.compression_stats()
            logger.info("Compression stats: iter %s, before %s, after %s, rate %s", self.iter, before, after, rate)
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency

    def _with_error(self, index: int, tensor: Any) -> Any:
        """Add the last iteration's error; return a copy for the new error."""
        if not self.use_error_feedback:
            return None
        if index in self.error_dict:
            tensor.add_(self.error_dict[index])
        return tensor.detach().clone()

    def _make_factors(self, index: int, shapes: list[tuple[int, ...]], like: Any) -> tuple[list[Any], list[Any]]:
        """Return the matrices P and Q for these (batch, rows, columns, rank), in two flat tensors."""
        new = not self.warm_start or index not in self.p_memory_dict
        if new:
            self.p_memory_dict[index] = like.new_empty(sum(b * n * r for b, n, _, r in shapes))
            self.q_memory_dict[index] = like.new_empty(sum(b * m * r for b, _, m, r in shapes))
        found: tuple[list[Any], list[Any]] = ([], [])
        for memory, matrices, side in ((self.p_memory_dict, found[0], 1), (self.q_memory_dict, found[1], 2)):
            start = 0
            for shape in shapes:
                size = shape[0] * shape[side] * shape[3]
                matrices.append(memory[index][start : start + size].view(shape[0], shape[side], shape[3]))
                start += size
        if new:
            with torch.random.fork_rng(devices=[]):  # the same numbers on all ranks, others in each iteration
                torch.manual_seed(int(self.rng.randint(1_000_000_000)))
                for q in found[1]:
                    q.copy_(torch.randn(q.shape, dtype=q.dtype))
        return found


def _allreduce_compressed(
    state: PowerSGDState, index: int, matrices: list[Any], rest: list[Any], buffer: Any, copied: Any, after: Any = None
) -> Any:
    """Return a future of the buffer, with `matrices` (batches of them) sent as products and `rest` uncompressed."""
    group, size = _default_group(state.process_group), _default_group(state.process_group).size()
    shapes = [(*m.shape, min(m.shape[1], m.shape[2], state.matrix_approximation_rank)) for m in matrices]
    ps, qs = state._make_factors(index, shapes, buffer)
    for q in qs:
        _orthogonalize(q, state.orthogonalization_epsilon)
    for matrix, q, p in zip(matrices, qs, ps, strict=True):
        p.copy_(torch.bmm(matrix, q))
    whole = torch.cat([tensor.reshape(-1) for tensor in rest]) if rest else buffer.new_empty(0)
    work: Any = dist.all_reduce(whole, group=group, async_op=True)

    def compute_p(done: Any) -> Any:
        done.value()
        start = 0
        for tensor in rest:
            tensor.copy_(whole[start : start + tensor.numel()].view(tensor.shape) / size)
            start += tensor.numel()
        dist.all_reduce(state.p_memory_dict[index], group=group)

    def compute_q(done: Any) -> Any:
        done.value()
        for matrix, p, q in zip(matrices, ps, qs, strict=True):
            _orthogonalize(p, state.orthogonalization_epsilon)
            q.copy_(torch.bmm(matrix.transpose(1, 2), p))
        dist.all_reduce(state.q_memory_dict[index], group=group)

    def decompress(done: Any) -> Any:
        done.value()
        state.q_memory_dict[index].div_(size)
        for matrix, p, q in zip(matrices, ps, qs, strict=True):
            matrix.copy_(torch.bmm(p, q.transpose(1, 2)))
        if after is not None:
            after()
        if copied is not None:
            state.error_dict[index] = copied - buffer
        if not state.warm_start:
            state.p_memory_dict.pop(index, None)
            state.q_memory_dict.pop(index, None)
        return buffer

    return work.get_future().then(compute_p).then(compute_q).then(decompress)


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages the gradients over a group, and sends each large matrix as a product of low rank.

    Args:
        state: The state.
        bucket: The gradients, a `GradBucket`.

    Returns:
        A future of the reduced gradients.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(powerSGD_hook.PowerSGDState(None), powerSGD_hook.powerSGD_hook)
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()

    References:
        - T. Vogels, S. P. Karimireddy, M. Jaggi. PowerSGD: practical low-rank gradient compression for distributed
          optimization. 2019.
    """
    buffer = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(state.process_group, buffer)
    copied = state._with_error(bucket.index(), buffer)
    by_shape: dict[Any, list[Any]] = {}
    rest = []
    for tensor in bucket.gradients():
        matrix = tensor.reshape(tensor.shape[0], -1) if tensor.ndim else tensor.reshape(1, 1)
        rank = min(*matrix.shape, state.matrix_approximation_rank)
        worth, before, after = _should_compress(matrix.shape[0], matrix.shape[1], rank, state.min_compression_rate)
        worth = worth and tensor.is_contiguous()
        state.total_numel_before_compression += before
        state.total_numel_after_compression += after if worth else before
        if worth:
            by_shape.setdefault(matrix.shape, []).append(tensor.view(tensor.shape[0], -1))
        else:
            rest.append(tensor)
    state._report(bucket)
    if not state.batch_tensors_with_same_shape:
        single = [matrix.unsqueeze(0) for group in by_shape.values() for matrix in group]
        return _allreduce_compressed(state, bucket.index(), single, rest, buffer, copied)
    groups = list(by_shape.values())
    stacked = [torch.stack(group) for group in groups]

    def unstack() -> None:
        for group, batch in zip(groups, stacked, strict=True):
            for matrix, one in zip(group, batch, strict=True):
                matrix.copy_(one)

    return _allreduce_compressed(state, bucket.index(), stacked, rest, buffer, copied, unstack)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages the gradients over a group, and sends the bucket as one square matrix of low rank.

    It is faster than `powerSGD_hook`, and less exact.

    Args:
        state: The state.
        bucket: The gradients, a `GradBucket`.

    Returns:
        A future of the reduced gradients.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(powerSGD_hook.PowerSGDState(None), powerSGD_hook.batched_powerSGD_hook)
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()

    References:
        - T. Vogels, S. P. Karimireddy, M. Jaggi. PowerSGD: practical low-rank gradient compression for distributed
          optimization. 2019.
    """
    buffer = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(state.process_group, buffer)
    length = buffer.shape[0]
    side = math.ceil(math.sqrt(length))
    padded = buffer.new_zeros(side * side)
    padded[:length] = buffer
    copied = state._with_error(bucket.index(), padded)
    state.total_numel_before_compression += length
    state.total_numel_after_compression += side * state.matrix_approximation_rank * 2
    state._report(bucket)
    state.maybe_increase_iter(bucket)
    future = _allreduce_compressed(state, bucket.index(), [padded.view(1, side, side)], [], padded, copied)
    return future.then(lambda done: buffer.copy_(done.value()[:length]))
