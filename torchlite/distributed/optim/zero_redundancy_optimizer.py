"""ZeroRedundancyOptimizer: optimizer state partitioned over processes (Rajbhandari and others: ZeRO, SC 2020)."""

from __future__ import annotations

import copy
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed.algorithms.join import Join, Joinable, JoinHook
from torchlite.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class _ZeROJoinHook(JoinHook):
    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Partitions an optimizer's state: one rank steps each parameter, and sends it to the others.

    All ranks have the same parameters in the same order, with the same gradients. The ranks' parts have about the same
    number of elements. Before a checkpoint, all ranks call ``consolidate_state_dict(to=rank)``; then that rank's
    `state_dict` has the full state. `load_state_dict` takes the full state on every rank.

    Args:
        params: The parameters, or groups of them.
        optimizer_class: The optimizer's class.
        process_group: The group. Default: the default group.
        parameters_as_bucket_view: Whether a rank's parameters of a dtype are views of one flat tensor, so that a step
            sends fewer messages. Default: ``False``.
        overlap_with_ddp: Not supported.
        defaults: Keyword arguments of the optimizer.

    Raises:
        NotImplementedError: ``overlap_with_ddp`` is set.

    Example:
        >>> from torchlite.distributed.optim import ZeroRedundancyOptimizer
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = torch.nn.Linear(2, 1)
        >>> optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
        >>> model(torch.ones(1, 2)).sum().backward()
        >>> optimizer.step()
        >>> optimizer.consolidate_state_dict()
        >>> len(optimizer.state_dict()["state"])
        2
        >>> torch.distributed.destroy_process_group()

    References:
        - S. Rajbhandari, J. Rasley, O. Ruwase, Y. He. ZeRO: memory optimizations toward training trillion parameter
          models. 2020.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: Any,
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not built")
        groups = _verify_params(params)
        self.process_group = dist.distributed_c10d._get_default_group() if process_group is None else process_group
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        self._initialized = False
        Joinable.__init__(self)
        Optimizer.__init__(self, groups, defaults)
        self._optim_constructor, self._optim_defaults = optimizer_class, defaults
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._all_state_dicts: list[dict[str, Any]] = []
        self._share_out()
        self.optim = optimizer_class(
            [
                self._local_param_groups(group, shares[self.rank])
                for group, shares in zip(self.param_groups, self._shares, strict=True)
            ],
            **defaults,
        )
        self._initialized = True
        self._sync_groups(self.optim.param_groups, self.param_groups)
        self._make_buckets()

    # -- partition

    def _share_out(self) -> None:
        """Assign each parameter, largest first, to the rank with the fewest elements."""
        self._shares: list[list[list[Any]]] = []
        sizes = [0] * self.world_size
        for group in self.param_groups:
            shares: list[list[Any]] = [[] for _ in range(self.world_size)]
            for parameter in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
                rank = sizes.index(min(sizes))
                shares[rank].append(parameter)
                sizes[rank] += parameter.numel() if parameter.requires_grad else 0
            self._shares.append(shares)

    def _local_param_groups(self, group: dict[str, Any], mine: list[Any]) -> dict[str, Any]:
        return {**{name: value for name, value in group.items() if name != "params"}, "params": mine}

    def _partition_parameters(self) -> list[list[dict[str, Any]]]:
        """Return each rank's parameter groups."""
        return [
            [
                self._local_param_groups(group, shares[rank])
                for group, shares in zip(self.param_groups, self._shares, strict=True)
            ]
            for rank in range(self.world_size)
        ]

    def _parameters(self) -> list[Any]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def _parameters_of_rank(self, rank: int) -> list[Any]:
        return [parameter for shares in self._shares for parameter in shares[rank]]

    def _make_buckets(self) -> None:
        """With `parameters_as_bucket_view` create a flat tensor for each rank's parameters of a dtype."""
        self._buckets: list[list[Any]] = [[] for _ in range(self.world_size)]
        if not self.parameters_as_bucket_view:
            return
        with torch.no_grad():
            for rank in range(self.world_size):
                kinds: dict[Any, list[Any]] = {}
                for parameter in self._parameters_of_rank(rank):
                    kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
                for members in kinds.values():
                    flat = torch.cat([parameter.detach().reshape(-1) for parameter in members])
                    start = 0
                    for parameter in members:
                        parameter.data = flat[start : start + parameter.numel()].view(parameter.shape)
                        start += parameter.numel()
                    self._buckets[rank].append(flat)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, and partitions them.

        Args:
            param_group: The group.
        """
        super().add_param_group(param_group)
        if not self._initialized:
            return
        before = len(self.optim.param_groups)
        self._share_out()
        state = self.optim.state
        groups = [
            self._local_param_groups(g, shares[self.rank])
            for g, shares in zip(self.param_groups, self._shares, strict=True)
        ]
        for group, own in zip(self.optim.param_groups, groups[:before], strict=True):
            group["params"] = own["params"]  # earlier groups come first, and stay as they were
        self.optim.add_param_group(groups[-1])
        self.optim.state = state
        self._make_buckets()

    # -- steps

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """Steps this rank's parameters, and exchanges all.

        Args:
            closure: As for the optimizer. Default: ``None``.
            kwargs: As for the optimizer.

        Returns:
            The result of the optimizer's step.
        """
        Join.notify_join_context(self)
        self._sync_groups(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._broadcast_parameters()
        self._sync_groups(self.optim.param_groups, self.param_groups)
        return loss

    def _broadcast_parameters(self) -> None:
        works: list[Any] = []
        with torch.no_grad():
            for rank in range(self.world_size):
                source = dist.get_global_rank(self.process_group, rank)
                for tensor in self._buckets[rank] if self.parameters_as_bucket_view else self._parameters_of_rank(rank):
                    works.append(dist.broadcast(tensor.detach(), source, group=self.process_group, async_op=True))
        for work in works:
            work.wait()

    def _sync_groups(self, source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        """Copy the options of groups (learning rates that a scheduler set)."""
        for one, other in zip(source, target, strict=True):
            other.update({name: value for name, value in one.items() if name != "params"})

    # -- states

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Sends the state of all ranks to one, for its `state_dict`. All ranks call it.

        Args:
            to: The rank in the group. Default: 0.
        """
        self._sync_groups(self.param_groups, self.optim.param_groups)
        told: list[Any] | None = [None] * self.world_size if self.rank == to else None
        own = self.optim.state_dict()
        target = dist.get_global_rank(self.process_group, to)
        dist.gather_object(own, told, dst=target, group=self.process_group)
        self._all_state_dicts = told or []

    def state_dict(self) -> dict[str, Any]:
        """Return the full state, on the rank to which it was sent. RuntimeError elsewhere."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global "
                "state."
            )
        whole = super().state_dict()
        numbers = {id(parameter): number for number, parameter in enumerate(self._parameters())}
        whole["state"] = {}
        for rank, rank_state in enumerate(self._all_state_dicts):
            for local, parameter in enumerate(self._parameters_of_rank(rank)):
                if local in rank_state["state"]:
                    whole["state"][numbers[id(parameter)]] = rank_state["state"][local]
        whole["state"] = dict(sorted(whole["state"].items()))
        return whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a full state, and keeps this rank's part.

        Args:
            state_dict: The state.

        Raises:
            ValueError: Its parameters do not match in number.
        """
        numbers = {id(parameter): number for number, parameter in enumerate(self._parameters())}
        if sum(len(group["params"]) for group in state_dict["param_groups"]) != len(numbers) or len(
            state_dict["param_groups"]
        ) != len(self.param_groups):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        mine = self._parameters_of_rank(self.rank)
        own = self.optim.state_dict()
        found = state_dict["state"]
        own["state"] = {
            local: copy.deepcopy(found[numbers[id(parameter)]])
            for local, parameter in enumerate(mine)
            if numbers[id(parameter)] in found
        }
        self._sync_groups(state_dict["param_groups"], own["param_groups"])
        self.optim.load_state_dict(own)
        self._sync_groups(self.optim.param_groups, self.param_groups)

    # -- joining

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Returns the hook that steps this rank's parameters when the others step, for `Join`.

        Args:
            kwargs: Ignored.
        """
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        """Device of the parameters."""
        return self._parameters()[0].device

    @property
    def join_process_group(self) -> Any:
        """Group of the processes."""
        return self.process_group


def _verify_params(params: Any) -> list[Any]:
    """Return the parameters, or groups of them, as a list."""
    if isinstance(params, torch.Tensor):
        raise TypeError(f"`params` argument should be an iterable of Tensors, but got {torch.typename(params)}")
    try:
        found = list(params)
    except TypeError:
        raise TypeError(
            f"`params` argument should be an iterable of Tensors or dicts, but got {type(params).__name__}"
        ) from None
    if not found:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    tensors = [isinstance(item, torch.Tensor) for item in found]
    groups = [isinstance(item, dict) for item in found]
    if not all(tensors) and not all(groups):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    for group in found if all(groups) else ():
        if "params" not in group:
            raise ValueError(
                "Each parameter group passed-in via `params` must have a 'params' key mapping to the parameters"
            )
    return found
