"""Optimizer state dicts of FSDP models, keyed by unwrapped parameter names, in the selected state dict type."""

from __future__ import annotations

from typing import Any

import torchlite.distributed as dist
from torchlite import nn
from torchlite.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict, localize_optim_state

from ._state_dict_types import StateDictTypeMixin
from .api import FullOptimStateDictConfig, OptimStateKeyType, StateDictType


def _optim_state_by_names(
    model: nn.Module, optimizer: Any, whole: bool, on_host: bool, rank0_only: bool
) -> dict[str, Any]:
    options = StateDictOptions(full_state_dict=whole, cpu_offload=on_host and not whole)
    state = get_optimizer_state_dict(model, optimizer, options=options)
    return {} if rank0_only and dist.get_rank() else state


def _refuse_optim_input(optim_input: Any) -> None:
    if optim_input is not None:
        raise NotImplementedError("`optim_input` is deprecated by PyTorch; pass the optimizer as `optim`")


class OptimStateDictMixin:
    """FullyShardedDataParallel's methods for optimizer state."""

    @staticmethod
    def optim_state_dict(
        model: nn.Module, optim: Any, optim_state_dict: dict[str, Any] | None = None, group: Any = None
    ) -> dict[str, Any]:
        """Return an optimizer's state by parameter names, in the type of `set_state_dict_type`: full tensors by
        default.

        `group` has no effect: the group is that of the model's parameters.
        """
        if optim_state_dict is not None:
            raise NotImplementedError(
                "optim_state_dict(): the state is the optimizer's; load another one into it first"
            )
        settings = StateDictTypeMixin.get_state_dict_type(model)
        config = settings.optim_state_dict_config
        alone = isinstance(config, FullOptimStateDictConfig) and config.rank0_only
        whole = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        return _optim_state_by_names(model, optim, whole, config.offload_to_cpu, alone)

    @staticmethod
    def optim_state_dict_to_load(
        model: nn.Module,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """Convert a state of `optim_state_dict` for this rank's `optim.load_state_dict`; with `load_directly` also load
        it.

        `group` has no effect: the group is that of the model's parameters.
        """
        if is_named_optimizer:
            raise NotImplementedError("optim_state_dict_to_load(): is_named_optimizer=True")
        state = optim_state_dict
        config = StateDictTypeMixin.get_state_dict_type(model).optim_state_dict_config
        if isinstance(config, FullOptimStateDictConfig) and config.rank0_only:
            message = [state if dist.get_rank() == 0 else None]
            dist.broadcast_object_list(message, 0)
            state = message[0] or {}
        found = localize_optim_state(model, optim, state)
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def full_optim_state_dict(
        model: nn.Module, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """Return the state by names, as full tensors, on rank 0 or on all.

        `group` has no effect: the group is that of the model's parameters.
        """
        _refuse_optim_input(optim_input)
        return _optim_state_by_names(model, optim, True, True, rank0_only)

    @staticmethod
    def sharded_optim_state_dict(model: nn.Module, optim: Any, group: Any = None) -> dict[str, Any]:
        """Return the state by names, as DTensors.

        `group` has no effect: the group is that of the model's parameters.
        """
        return _optim_state_by_names(model, optim, False, False, False)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any], model: nn.Module, optim_input: Any = None, optim: Any = None
    ) -> dict[str, Any]:
        """Convert a state by names, complete on each rank, for this rank's optimizer."""
        _refuse_optim_input(optim_input)
        return localize_optim_state(model, optim, full_optim_state_dict)

    @staticmethod
    def flatten_sharded_optim_state_dict(
        sharded_optim_state_dict: dict[str, Any], model: nn.Module, optim: Any
    ) -> dict[str, Any]:
        """Convert a state by names, as DTensors, for this rank's optimizer."""
        return localize_optim_state(model, optim, sharded_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any] | None, model: nn.Module, optim_input: Any = None, optim: Any = None,
        group: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Convert a state by names, complete on rank 0, for this rank's optimizer.

        `group` has no effect: rank 0 of the world sends.
        """
        _refuse_optim_input(optim_input)
        held = [full_optim_state_dict if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(held, 0)
        return localize_optim_state(model, optim, held[0] or {})

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any], optim_state_key_type: OptimStateKeyType, model: nn.Module,
        optim_input: Any = None, optim: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Rename a state's keys from parameter numbers to names, or back."""
        _refuse_optim_input(optim_input)
        names = [name.replace("_fsdp_wrapped_module.", "") for name, _ in model.named_parameters()]
        if optim is not None:
            found = {id(p): name.replace("_fsdp_wrapped_module.", "") for name, p in model.named_parameters()}
            names = [found[id(p)] for group in optim.param_groups for p in group["params"]]
        by_number: dict[Any, Any] = dict(enumerate(names))
        keys = (
            by_number
            if optim_state_key_type is OptimStateKeyType.PARAM_NAME
            else dict(zip(names, by_number, strict=True))
        )
        return {
            "state": {keys.get(key, key): value for key, value in optim_state_dict["state"].items()},
            "param_groups": [
                {**group, "params": [keys.get(key, key) for key in group["params"]]}
                for group in optim_state_dict["param_groups"]
            ],
        }
